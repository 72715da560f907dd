"""What to expect of a new model, as `train` says it."""

from array import array
from collections import Counter
from typing import TYPE_CHECKING

from nbspam.errors import counted
from nbspam.scoring.rules import rule_of
from nbspam.store.metadata import Metadata

if TYPE_CHECKING:  # one message is learned without numpy
    from nbspam.evaluation.messages import DoubtedLabels
    from nbspam.evaluation.metrics import Figures
    from nbspam.learning.training import LeftOut, TrainingRun

_Called = Counter[tuple[str, str]]  # a label, and what a message of it is called -> messages


def left_out_rates_of(run: "TrainingRun") -> "tuple[Figures, DoubtedLabels]":
    """Return the rates of the model on the training messages, each left out, and wrong labels."""
    from nbspam.evaluation.messages import DoubtedLabels, doubted_labels
    from nbspam.evaluation.metrics import left_out_rates
    from nbspam.evaluation.samples import count_verdicts

    called, verdicts, odds = _Called(), _Called(), array("d")
    for found in run.each("estimating the accuracy, each message left out", _judged):
        called.update(found[0])
        verdicts.update(found[1])
        odds.extend(found[2])
    positive = run.metadata.settings.positive
    rates = left_out_rates(
        count_verdicts(called.elements(), positive), count_verdicts(verdicts.elements(), positive)
    )
    is_calibrated = rule_of(run.metadata).is_calibrated
    return rates, doubted_labels(odds) if is_calibrated else DoubtedLabels()


def _judged(left_out: "LeftOut", metadata: Metadata) -> "tuple[_Called, _Called, array[float]]":
    """Return how often messages of each class are called what, at 0.5 and with the cut-offs.

    And of each message the log-odds of its label.
    """
    from nbspam.evaluation.messages import odds_of_label
    from nbspam.evaluation.results import Outcome
    from nbspam.scoring.verdict import CutOffs, verdict_on

    called, verdicts, odds = _Called(), _Called(), array("d")
    cut_offs = CutOffs.of_model(metadata)
    for label, score in zip(left_out.labels, left_out.scores, strict=True):
        outcome = Outcome(verdict_on(metadata, score, cut_offs, label=label))
        odds.append(odds_of_label(outcome.judged, label))
        called[label, outcome.called] += 1
        verdicts[label, outcome.verdict] += 1
    return called, verdicts, odds


def estimate_sentence(rates: "Figures", n_classes: int) -> str:
    """Return the estimate in words: at 0.5, and with the cut-offs where there are two classes."""
    from nbspam.evaluation.metrics import GENERAL, TRACK, VERDICTS

    sentence = "leave-one-out estimate for new messages like these: "
    if n_classes > 2:
        return sentence + ", ".join(row.sentence() for row in rates.rows(GENERAL, TRACK))
    accuracy = next(rates.rows(GENERAL)).percentage().replace(" %", " % correct at 0.5", 1)
    verdicts = ", ".join(row.sentence() for row in rates.rows(VERDICTS))
    return f"{sentence}{accuracy}; verdicts: {verdicts}"


def cut_off_sentence(metadata: Metadata, limit: float) -> str:
    """Return where the cut-off is, and how well it can be known."""
    settings, learned = metadata
    sentence = (
        f"cut-off for at most {100 * limit:g} % of ham blocked: spam is above"
        f" {settings.spam_cutoff:.6g}, stored in the model; the verdicts above are with it"
    )
    if settings.spam_cutoff >= 1:
        sentence += "; some ham scores so high that nothing will be classified as spam"
    ham = sum(learned.messages) - learned.messages[settings.positive_index or 0]
    if limit * ham < 1:
        few = f"{counted(ham, 'ham message')} {'is' if ham == 1 else 'are'} too few"
        sentence += f"; {few} to measure less than {100 / ham:.2g} %"
    return sentence
