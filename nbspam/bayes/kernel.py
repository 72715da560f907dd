"""Kernel densities of traits: a small normal curve on each message, their mean the density.

    f(x) = 1/(n h) sum_v n_v phi((x - v) / h)           n_v messages of the class have the value v
    h    = max(1, 0.9 A n^(-1/5)),   A = min(standard deviation, interquartile range / 1.34)

No shape is assumed (John and Langley 1995, "Estimating Continuous Distributions in Bayesian
Classifiers").  The bandwidth is Silverman's rule of thumb (1986, "Density Estimation for Statistics
and Data Analysis", equation 3.31); where more than half of a class has one value the interquartile
range is 0, and A is the standard deviation.

The sum is over the histogram's values, of which there are some hundred whatever the number of
messages.  A value is rounded to an integer, by 1/2 at most, so the density differs from that of the
unrounded values with the same bandwidth by less than 1/2 max |phi'| / h^2 = 0.121 / h^2; and h is
never smaller than the unit, since nothing is known of what is within it.
"""

import math
from collections.abc import Sequence

from nbspam.bayes.histograms import Histograms, Values

BINNING_ERROR = 1 / (2 * math.sqrt(2 * math.pi * math.e))  # of a density, times h^2
_REACH = 9.0  # bandwidths: beyond them phi is below 1e-17 of its height


def _quantile(ordered: Sequence[tuple[int, int]], rank: float) -> int:
    """Return the first value that so many messages do not exceed; ordered: (value, messages)."""
    below = 0
    for value, n in ordered:
        below += n
        if below >= rank:
            return value
    return ordered[-1][0]


def bandwidth(values: Values) -> float:
    """Return Silverman's bandwidth of a histogram that is not empty, 1 at least."""
    ordered = sorted(values.items())
    n = sum(values.values())
    total = sum(x * m for x, m in ordered)
    squares = sum(x * x * m for x, m in ordered)
    spread = math.sqrt((n * squares - total * total) / (n * n))
    middle = _quantile(ordered, 0.75 * n) - _quantile(ordered, 0.25 * n)
    if middle:
        spread = min(spread, middle / 1.34)
    return max(1.0, 0.9 * spread / math.pow(n, 0.2))


def log_density(values: Values, x: int) -> float:
    """Return the log of the kernel density at x of a histogram that is not empty; finite."""
    h = bandwidth(values)
    nearest = min(abs(x - v) for v in values)
    # Relative to the nearest, so that the sum is never 0.
    reach = math.sqrt(nearest * nearest + 2 * (_REACH * h) ** 2)
    scale = -0.5 / (h * h)
    total = math.fsum(
        n * math.exp(scale * ((x - v) ** 2 - nearest * nearest))
        for v, n in values.items()
        if abs(x - v) <= reach
    )
    n = sum(values.values())
    return (
        scale * nearest * nearest + math.log(total) - math.log(n * h) - 0.5 * math.log(2 * math.pi)
    )


class Kernel:
    """Kernel densities; see `trait_model.TraitModel`."""

    def __init__(self, histograms: Histograms) -> None:
        """Keep the histograms, per trait and class."""
        self._histograms = histograms
        # Few values differ: (trait, value, class of the message left out) -> its densities.
        self._known: dict[tuple[int, int, int | None], tuple[float, ...]] = {}

    def log_densities(
        self, values: Sequence[int], left_out: int | None = None
    ) -> list[tuple[float, ...]]:
        """Return the log density of each trait's value, per class."""
        known = self._known
        found = []
        for key in [(trait, x, left_out) for trait, x in enumerate(values)]:
            densities = known.get(key)
            if densities is None:
                densities = known[key] = self._of_trait(*key)
            found.append(densities)
        return found

    def _of_trait(self, trait: int, x: int, left_out: int | None) -> tuple[float, ...]:
        row = list(self._histograms[trait])
        if left_out is not None:
            values = dict(row[left_out])
            values[x] -= 1
            if not values[x]:
                del values[x]
            row[left_out] = values
        if not all(row):
            return (0.0,) * len(row)
        return tuple(log_density(values, x) for values in row)
