"""Kernel densities of traits: a small normal curve on each message, their mean the density.

    f(x) = 1/(n h) sum_v n_v phi((x - v) / h)           n_v messages of the class have the value v
    h    = max(1, 0.9 A n^(-1/5)),   A = min(standard deviation, interquartile range / 1.34)

No shape is assumed (John and Langley 1995, "Estimating Continuous Distributions in Bayesian
Classifiers").  The bandwidth is Silverman's rule of thumb (1986, "Density Estimation for Statistics
and Data Analysis", equation 3.31); where so many messages have one value that the interquartile
range is 0, A is the standard deviation.

The sum is over the histogram's values, of which there are some hundred whatever the number of
messages.  Values are rounded to integers, by 1/2 at most, so the density differs from that of the
unrounded values with the same bandwidth by less than 1/2 max |phi'| / h^2 = 0.121 / h^2, and by as
much again because x itself is rounded; h is never smaller than the unit, since nothing is known of
what is within it.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate

from nbspam.bayes.histograms import Histograms, Values

_HALF_LOG_2_PI = 0.5 * math.log(2 * math.pi)
_REACH = 80.0  # of the exponent, below the largest: what is smaller adds nothing to a sum


class ClassDensity:
    """The kernel density of a trait in a class; a message may be left out."""

    def __init__(self, values: Values) -> None:
        """Take a histogram; it may be empty."""
        self._ordered = sorted(values)
        self._counts = [values[value] for value in self._ordered]
        self._cumulated = list(accumulate(self._counts))
        self.n = sum(self._counts)
        pairs = list(zip(self._ordered, self._counts, strict=True))
        self._total = sum(value * n for value, n in pairs)
        self._squares = sum(value * value * n for value, n in pairs)

    def bandwidth(self, left_out: int | None = None) -> float:
        """Return Silverman's bandwidth, 1 at least; left_out: a value that one message less has."""
        n, total, squares = self.n, self._total, self._squares
        if left_out is not None:
            n, total, squares = n - 1, total - left_out, squares - left_out * left_out
        spread = math.sqrt(max(0.0, n * squares - total * total)) / n
        middle = self._quantile(0.75 * n, left_out) - self._quantile(0.25 * n, left_out)
        if middle:
            spread = min(spread, middle / 1.34)
        return max(1.0, 0.9 * spread / math.pow(n, 0.2))

    def _quantile(self, rank: float, left_out: int | None) -> int:
        """Return the first value that so many messages do not exceed."""
        at = bisect_left(self._cumulated, rank)
        if left_out is not None and self._ordered[at] >= left_out:
            at = bisect_left(self._cumulated, rank + 1)
        return self._ordered[at]

    def log_density(self, x: int, left_out: bool = False) -> float:
        """Return the log of the density at x, of n messages or more than one; it is finite.

        left_out: whether one of the messages with the value x is left out.
        """
        own = x if left_out else None
        n, h = self.n - left_out, self.bandwidth(own)
        counts = self._counts
        if left_out:
            at = bisect_left(self._ordered, x)
            counts = [*counts[:at], counts[at] - 1, *counts[at + 1 :]]
        scale = -0.5 / (h * h)
        terms = [
            (scale * (x - value) ** 2, times)
            for value, times in zip(self._ordered, counts, strict=True)
            if times
        ]
        largest = max(terms)[0]  # relative to it, so that the sum is never 0
        exp, least = math.exp, largest - _REACH
        total = math.fsum([times * exp(e - largest) for e, times in terms if e > least])
        return largest + math.log(total) - math.log(n * h) - _HALF_LOG_2_PI


class Kernel:
    """Kernel densities; see `trait_model.TraitModel`."""

    def __init__(self, histograms: Histograms) -> None:
        """Take the histograms, per trait and class."""
        self._densities = [[ClassDensity(values) for values in row] for row in histograms]
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
        row = self._densities[trait]
        if not all(density.n > (k == left_out) for k, density in enumerate(row)):
            return (0.0,) * len(row)
        return tuple(density.log_density(x, k == left_out) for k, density in enumerate(row))
