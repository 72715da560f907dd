"""Binned views of the scores: calibration by probability, and the score distribution."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nbspam.bayes.matrix import Booleans, Floats

_SCORE_EDGES = np.arange(-14, 15, 2)  # nats; beyond them P(spam) is within 1e-6 of 0 or 1


class CalibrationBin(NamedTuple):
    """The messages whose P(spam) lies in a range: what was predicted and what was observed."""

    low: float
    high: float
    messages: int
    mean_probability: float  # predicted
    spam_share: float  # observed


def calibration_bins(spam: Booleans, probability: Floats, n_bins: int = 10) -> list[CalibrationBin]:
    """Return the bins of equal width that hold a message, lowest first.

    spam, probability: (n,), what each message is, and its P(spam).
    """
    which = np.minimum((probability * n_bins).astype(int), n_bins - 1)
    return [
        CalibrationBin(
            k / n_bins,
            (k + 1) / n_bins,
            int((which == k).sum()),
            float(probability[which == k].mean()),
            float(spam[which == k].mean()),
        )
        for k in range(n_bins)
        if (which == k).any()
    ]


def calibration_error(bins: Sequence[CalibrationBin]) -> float:
    """Return the expected calibration error: the mean gap of the bins, weighted by their messages.

    Naeini, Cooper and Hauskrecht 2015.
    """
    total = sum(b.messages for b in bins)
    gaps = (abs(b.mean_probability - b.spam_share) * b.messages for b in bins)
    return sum(gaps) / total if total else 0.0


class ScoreBin(NamedTuple):
    """The messages whose log-odds lie in a range."""

    low: float  # nats
    high: float
    ham: int
    spam: int


def score_distribution(spam: Booleans, log_odds: Floats) -> list[ScoreBin]:
    """Return the histogram of the scores, lowest first; the outer bins also hold what is beyond.

    spam, log_odds: (n,), what each message is, and its score in nats.
    """
    edges = _SCORE_EDGES
    clipped = np.clip(log_odds, edges[0], edges[-1] - 1e-9)
    ham_counts, _ = np.histogram(clipped[~spam], edges)
    spam_counts, _ = np.histogram(clipped[spam], edges)
    return [
        ScoreBin(float(low), float(high), int(ham), int(spams))
        for low, high, ham, spams in zip(
            edges[:-1], edges[1:], ham_counts, spam_counts, strict=True
        )
    ]
