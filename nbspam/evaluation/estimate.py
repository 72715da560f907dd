"""The accuracy estimate for a new model: its leave-one-out rates, in figures and in words."""

import math
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from nbspam.errors import format_count
from nbspam.evaluation import messages, metrics, results
from nbspam.learning.training import TrainingRun
from nbspam.scoring.rules import scoring_rule
from nbspam.scoring.verdict import CutOffs, Score, make_verdict
from nbspam.store.metadata import Metadata

_MIN_FOR_ESTIMATE = 20  # messages of each class

_VerdictTally = Counter[tuple[str, str]]  # (label, verdict) -> messages


class Estimate(NamedTuple):
    """The rates for the learned messages, each message left out with its copies."""

    rates: metrics.Figures
    suspect_labels: messages.SuspectLabels
    suspect_sources: list[tuple[str, str]]  # source and label of the worst suspects
    n_texts: Mapping[str, int]  # class -> messages without copies

    def as_json(self) -> dict[str, object]:
        """Return the estimate as fields of a JSON object."""
        return {
            "doubted_labels": self.suspect_labels.as_json(self.suspect_sources),
            "different_texts": self.n_texts,
            "leave_one_out": self.rates.as_json(),
        }

    def beginner_estimate(self, positive: str | None) -> list[str]:
        """Estimate the rates in 100 new messages, in words; empty for too few messages.

        The share of ham lost is an upper bound; if all spam was caught, its share is a lower bound.
        positive: the class called spam.
        """
        if min(self.n_texts.values()) < _MIN_FOR_ESTIMATE:
            return []
        blocked, missed = (self.rates.by_key[f"verdict_{key}_pct"].counts for key in ("bh", "sm"))
        if len(self.n_texts) > 2 or blocked is None or missed is None:
            right, n_messages = self.rates.by_key["accuracy"].counts or (0, 1)
            return [
                f"{100 * right // n_messages} in 100 new messages would be classified correctly"
            ]
        # Copies prove nothing new, so the bounds use the number of different texts.
        n_spam = self.n_texts.get(positive or "", 0)
        n_ham = sum(self.n_texts.values()) - n_spam
        (marked, ham), (delivered, spam) = blocked, missed
        caught = f"{100 * (spam - delivered) // spam}"
        if not delivered:
            caught = f"more than {100 - _upper_bound(0, n_spam)}"
        rest = "; the rest delivered, as unsure or ham" if delivered else ""
        few = _upper_bound(marked / ham, n_ham)
        return [
            f"fewer than {few} in 100 legitimate messages would be marked as spam",
            f"{caught} in 100 spam messages would be caught{rest}",
        ]

    def sentence(self) -> str:
        """Describe the rates at 0.5 and, with two classes, with the cut-offs."""
        sentence = "leave-one-out estimate for new messages like these: "
        if len(self.n_texts) > 2:
            rows = self.rates.rows(metrics.ERRORS)
            return sentence + ", ".join(row.sentence() for row in rows)
        accuracy = next(self.rates.rows(metrics.ERRORS)).percentage()
        verdicts = ", ".join(row.sentence() for row in self.rates.rows(metrics.VERDICTS))
        return f"{sentence}{accuracy.replace(' %', ' % correct at 0.5', 1)}; verdicts: {verdicts}"


def estimate(run: TrainingRun) -> Estimate:
    """Compute the estimate for a model being trained."""
    rates, suspect_labels = leave_one_out_rates(run)
    named = run.sources_at(suspect_labels.messages[: messages.MAX_SUSPECTS_LISTED])
    return Estimate(rates, suspect_labels, list(named), run.n_texts())


def leave_one_out_rates(run: TrainingRun) -> tuple[metrics.Figures, messages.SuspectLabels]:
    """Compute the leave-one-out rates of the model, and the labels that look wrong."""
    at_half, verdicts, odds, labels = _VerdictTally(), _VerdictTally(), array("d"), list[str]()
    for part_at_half, part_verdicts, part_odds, part_labels in run.map_blocks(
        "estimating the accuracy, each message left out", _classify_part
    ):
        at_half.update(part_at_half)
        verdicts.update(part_verdicts)
        odds.extend(part_odds)
        labels.extend(part_labels)
    positive = run.metadata.settings.positive
    counts = (metrics.count_verdicts(pairs, positive) for pairs in (at_half, verdicts))
    suspect_labels = messages.SuspectLabels()
    if scoring_rule(run.metadata).is_calibrated:
        suspect_labels = messages.find_suspect_labels(odds, labels, positive)
    return metrics.left_out_rates(*counts), suspect_labels


def _classify_part(
    metadata: Metadata, labels: list[str], scores: Iterator[Score]
) -> "tuple[_VerdictTally, _VerdictTally, array[float], list[str]]":
    """Classify left-out messages.

    Returns counts of (label, class at 0.5), of (label, verdict), log-odds and labels.
    """
    at_half, verdicts, odds = _VerdictTally(), _VerdictTally(), array("d")
    cut_offs = CutOffs.from_model(metadata)
    for label, score in zip(labels, scores, strict=True):
        outcome = results.Outcome(make_verdict(metadata, score, cut_offs, label=label))
        odds.append(outcome.label_odds)
        at_half[label, outcome.assigned_class] += 1
        verdicts[label, outcome.classification.verdict] += 1
    return at_half, verdicts, odds, labels


def _upper_bound(share: float, n: int) -> int:
    """Return an upper bound for a share of n messages, with 95 % confidence, in whole percent."""
    bounds = metrics.wilson(share * n, n, metrics.ONE_SIDED_Z)
    return math.ceil(100 * bounds[1]) if bounds else 100


def cut_off_sentence(metadata: Metadata, limit: float) -> str:
    """Describe the chosen cut-off, and whether there is enough ham to measure the limit."""
    settings, learned = metadata
    sentence = (
        f"cut-off for at most {100 * limit:g} % of ham blocked: spam is above"
        f" {settings.spam_cutoff:.6g}, stored in the model; the verdicts above are with it"
    )
    if settings.spam_cutoff >= 1:
        sentence += "; some ham scores so high that nothing will be classified as spam"
    ham = sum(learned.messages) - learned.messages[settings.positive_index or 0]
    if limit * ham < 1:
        few = f"{format_count(ham, 'ham message')} {'is' if ham == 1 else 'are'} too few"
        sentence += f"; {few} to measure less than {100 / ham:.2g} %"
    return sentence
