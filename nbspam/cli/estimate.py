"""What to expect of a new model, as `train` says it."""

from array import array
from typing import TYPE_CHECKING

from nbspam.errors import counted
from nbspam.learning.corpus import Corpus
from nbspam.scoring.rule import rule_of
from nbspam.store.metadata import Metadata

if TYPE_CHECKING:  # one message is learned without numpy
    from nbspam.evaluation.metrics import Figures
    from nbspam.evaluation.mislabelled import DoubtedLabels
    from nbspam.learning.batch import Fit


def left_out_rates_of(corpus: Corpus, fitted: "Fit") -> "tuple[Figures, DoubtedLabels]":
    """Return the rates of the model on the training messages, each left out, and wrong labels."""
    from nbspam.evaluation.metrics import left_out_rates
    from nbspam.evaluation.mislabelled import DoubtedLabels, doubted_labels, odds_of_label
    from nbspam.evaluation.outcome import Outcome
    from nbspam.evaluation.samples import count_verdicts
    from nbspam.scoring.verdict import CutOffs, verdict_on

    metadata = fitted.metadata
    cut_offs = CutOffs.of_model(metadata)
    called, verdicts, odds = [], [], array("d")
    for label, score in zip(corpus.labels, fitted.left_out_scores(corpus), strict=True):
        outcome = Outcome(verdict_on(metadata, score, cut_offs, label=label))
        odds.append(odds_of_label(outcome.judged, label))
        called.append((label, outcome.called))
        verdicts.append((label, outcome.verdict))
    positive = metadata.settings.positive
    rates = left_out_rates(count_verdicts(called, positive), count_verdicts(verdicts, positive))
    is_calibrated = rule_of(metadata).is_calibrated
    return rates, doubted_labels(odds) if is_calibrated else DoubtedLabels()


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
