"""The points of curves: what a plot or a page draws of an evaluation."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nbspam.bayes.matrix import Floats
from nbspam.evaluation.intervals import wilson
from nbspam.evaluation.outcome import Evaluation
from nbspam.evaluation.results import Results
from nbspam.evaluation.samples import ScoredMessages, VerdictCounts

_WINDOW = 20, 200  # messages of the rolling error rate, at least and at most
_WINDOWS = 10  # in a whole test, if that makes windows of such lengths


def roc_points(messages: ScoredMessages) -> tuple[Floats, Floats]:
    """Return ham blocked and spam missed, in percent, at every cut-off, the highest first."""
    order = np.argsort(-messages.log_odds, kind="stable")
    spam, log_odds = messages.spam[order], messages.log_odds[order]
    last = np.append(log_odds[1:] != log_odds[:-1], True)  # of each distinct score
    ham_blocked = 100 * np.cumsum(~spam)[last] / max(1, messages.counts.ham)
    spam_missed = 100 - 100 * np.cumsum(spam)[last] / max(1, messages.counts.spam)
    return ham_blocked, spam_missed


def linear_roc_points(messages: ScoredMessages) -> tuple[Floats, Floats]:
    """Return the false and the true positive rate, 0 to 1, from (0, 0) to (1, 1)."""
    ham_blocked, spam_missed = roc_points(messages)
    return np.append(0.0, ham_blocked / 100), np.append(0.0, 1 - spam_missed / 100)


class CutOffPoint(NamedTuple):
    """Where a cut-off is on the ROC curve."""

    cut_off: float  # the probability above which a message is spam
    false_positive_rate: float  # 0 to 1
    true_positive_rate: float


def cut_off_points(results: Results) -> list[CutOffPoint]:
    """Return the points of the threshold, 0.5, and of the spam cut-off if it is another.

    None unless there are spam and ham, and none of three or more classes, which have no cut-off.
    """
    messages = results.messages
    if not (messages.counts.spam and messages.counts.ham) or messages.threshold is None:
        return []
    counts = {messages.threshold: messages.counts}
    if results.cut_offs is not None and results.cut_offs.spam != messages.threshold:
        counts[results.cut_offs.spam] = messages.verdicts
    return [_cut_off_point(cut_off, of) for cut_off, of in counts.items()]


def _cut_off_point(cut_off: float, counts: VerdictCounts) -> CutOffPoint:
    return CutOffPoint(cut_off, counts.fp / counts.ham, counts.tp / counts.spam)


class CalibrationPoint(NamedTuple):
    """The messages of a range of probability."""

    predicted: float  # the mean P(spam)
    observed: float  # the share of spam
    low: float  # the ends of its 95 % interval (Wilson's)
    high: float
    messages: int


def calibration_points(results: Results) -> list[CalibrationPoint]:
    """Return the points of the calibration curve, the least probability first."""
    points = []
    for part in results.bins:
        low, high = wilson(round(part.spam_share * part.messages), part.messages) or (0.0, 1.0)
        points.append(
            CalibrationPoint(part.mean_probability, part.spam_share, low, high, part.messages)
        )
    return points


class LearningPoint(NamedTuple):
    """The errors of an online test up to the end of a batch."""

    learned: int  # messages learned before the batch
    error_rate: float  # of all messages so far, 0 to 1
    recent_error_rate: float  # of the last messages


class LearningCurve(NamedTuple):
    """How the errors of an online test fall."""

    points: Sequence[LearningPoint]
    window: int  # how many messages are the last


def learning_curve(evaluation: Evaluation) -> LearningCurve:
    """Return the learning curve, a point for each batch; none of another test."""
    so_far = evaluation.learned_so_far
    if not so_far:
        return LearningCurve([], 0)
    wrong = np.array([outcome.is_mistake for outcome in evaluation.outcomes], dtype=float)
    n, (fewest, most) = len(wrong), _WINDOW
    window = min(n, max(fewest, min(most, n // _WINDOWS)))
    errors = np.cumsum(wrong)
    before_window = np.append(np.zeros(window), errors[:-window])
    of = np.arange(1, n + 1)
    rates, recent = errors / of, (errors - before_window) / np.minimum(of, window)
    # The last message of each batch has the last word on how many were wrong until then.
    ends = {learned: i for i, learned in enumerate(so_far)}
    return LearningCurve(
        [LearningPoint(learned, float(rates[i]), float(recent[i])) for learned, i in ends.items()],
        window,
    )
