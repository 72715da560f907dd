"""95 % confidence intervals: of a share, of a mean, and of any statistic from its resamples."""

from collections.abc import Sequence

import numpy as np

from nbspam.bayes.matrix import Floats

Interval = tuple[float, float]

_Z = 1.959963984540054  # standard normal quantile at 0.975


def wilson(hits: int, of: int) -> Interval | None:
    """Return the score interval of the share hits / of (Wilson 1927); None where `of` is 0."""
    if not of:
        return None
    share, z2 = hits / of, _Z**2
    middle = share + z2 / (2 * of)
    half = _Z * ((share * (1 - share) + z2 / (4 * of)) / of) ** 0.5
    # With no hits the lower end is exactly 0, and with nothing but hits the upper end is exactly 1.
    low = 0.0 if not hits else max(0.0, (middle - half) / (1 + z2 / of))
    high = 1.0 if hits == of else min(1.0, (middle + half) / (1 + z2 / of))
    return low, high


def mean_interval(losses: Floats) -> Interval | None:
    """Return the normal interval of the mean of non-negative numbers; None for fewer than two.

    losses: (n,).
    """
    if len(losses) < 2:
        return None
    mean, error = float(losses.mean()), float(losses.std(ddof=1)) / len(losses) ** 0.5
    return max(0.0, mean - _Z * error), mean + _Z * error


def percentile_interval(resampled: Sequence[float]) -> Interval:
    """Return the percentile bootstrap interval (Efron and Tibshirani 1993, chapter 13).

    resampled: the statistic's value in each resample, one or more.
    """
    return float(np.percentile(resampled, 2.5)), float(np.percentile(resampled, 97.5))
