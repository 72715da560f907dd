"""Trait models: a density per trait and class, for the numbers of a message.

Naive Bayes multiplies the likelihoods of all features: tokens and traits.  A trait is an integer on
a scale of its own (`tokens/kinds.py`).  Its likelihood is the density of its value among the
messages of a class, and a trait model defines the density.  The model learns only a histogram of
each trait's values per class: integers that add up, from which mean, variance and kernels follow.
So learning in any order gives the same numbers, forgetting is exact, and a message is left out by
subtracting its value from the histogram.
"""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import accumulate, repeat
from typing import NamedTuple

Values = Mapping[int, int]  # value of a trait -> number of messages with it, above 0
Histograms = Sequence[Sequence[Values]]  # per trait, per class
LogDensities = list[tuple[float, ...]]  # per trait, per class

SMOOTHING = 1e-9  # like scikit-learn's GaussianNB


class Variances(NamedTuple):
    """How variances of Gaussian traits are estimated."""

    smoothing: float = SMOOTHING  # share of the largest variance that is added to each variance
    prior: float = 0.0  # weight of the trait's variance over all classes, in messages
    shared: bool = False  # all classes share one variance per trait


NO_TRAITS, GAUSSIAN, KERNEL = TRAIT_MODELS = "none", "gaussian", "kernel"

# Below _MIN_VARIANCE, densities are beyond floating point.  A smaller variance is replaced by the
# variance of rounding to an integer (Sheppard 1898).
_ROUNDING_VARIANCE, _MIN_VARIANCE = 1 / 12, 1e-100


class Moments(NamedTuple):
    """The sums of a trait's values, in one class or in all."""

    n: int
    total: int
    squares: int

    @classmethod
    def from_values(cls, values: Values) -> "Moments":
        """Add up a histogram."""
        pairs = values.items()
        return cls(
            sum(values.values()), sum(x * n for x, n in pairs), sum(x * x * n for x, n in pairs)
        )

    def without(self, x: int) -> "Moments":
        """Return the sums without one message of value x."""
        return Moments(self.n - 1, self.total - x, self.squares - x * x)

    @property
    def squared_deviations(self) -> float:
        """The sum of (x - mean)^2, 0 without messages."""
        return (self.n * self.squares - self.total**2) / self.n if self.n else 0.0


class Gaussian:
    """Gaussian densities.

        mean_k = (sum of x) / n_k                          over the n_k messages of class k
        s_k    = sum of (x - mean_k)^2                     over the same messages
        v_k    = (s_k + p v) / (n_k + p) + e (maximum of v over all traits)
        log f  = -(1/2) log(2 pi v_k) - (x - mean_k)^2 / (2 v_k)

    v is the trait's variance over the messages of all classes.  With p = 0 and e = 0, v_k is the
    maximum likelihood estimate.  p is the weight, in messages, of a prior by which a class
    varies as much as all messages do: v_k is the mode of the posterior with an inverse gamma
    prior of shape p / 2 - 1 and scale p v / 2 (Gelman et al., "Bayesian Data Analysis", 2.6).
    e keeps v_k above 0, like `var_smoothing` of scikit-learn's GaussianNB; with p = 0 the two
    models are equal.  With the usual 1e-9, a trait that is the same in all messages of a class
    outweighs everything else if a message has another value; an e of 0.01, or a p above 0, prevents
    that.

    With a shared variance, v_k = ((sum over classes of s_k) + p v) / (n + p) + e (…) for all
    classes.  Then the squares cancel, and the log-odds are linear in the trait (linear
    discriminant analysis with a diagonal covariance; Hastie, Tibshirani and Friedman, "The
    Elements of Statistical Learning", 4.3).

    Means and variances are of integers, and the sums of x and x^2 are exact.
    """

    def __init__(self, histograms: Histograms, variances: Variances) -> None:
        """histograms: one per trait and class."""
        self._variances = variances
        self._moments = [list(map(Moments.from_values, row)) for row in histograms]

    def log_densities(self, values: Sequence[int], left_out: int | None = None) -> LogDensities:
        """Return the log density of each trait's value, per class, (n_traits, n_classes).

        values: the message's values.  left_out: the message's class, if it is to be left out.
        A trait has zeros if some class has no message with it.
        """
        pairs = zip(self._moments, values, strict=True)
        traits = [
            [m.without(x) if k == left_out else m for k, m in enumerate(row)] for row, x in pairs
        ]
        totals = [Moments(*map(sum, zip(*row, strict=True))) for row in traits]
        overall = [total.squared_deviations / total.n if total.n else 0.0 for total in totals]
        added = self._variances.smoothing * max(overall, default=0.0)
        return list(map(self._trait_log_densities, traits, overall, repeat(added), values))

    def _trait_log_densities(
        self, row: Sequence[Moments], overall: float, added: float, x: int
    ) -> tuple[float, ...]:
        """Return the log density of a value in each class.

        overall: the trait's variance over all classes; added: the constant added to each variance.
        """
        if not all(m.n for m in row):
            return (0.0,) * len(row)
        _, prior, shared = self._variances
        deviations = [(m.squared_deviations, m.n) for m in row]
        if shared:
            deviations = [(sum(m.squared_deviations for m in row), sum(m.n for m in row))] * len(
                row
            )
        densities = []
        for m, (squared_deviations, n) in zip(row, deviations, strict=True):
            variance = (squared_deviations + prior * overall) / (n + prior) + added
            if variance < _MIN_VARIANCE:
                variance = _ROUNDING_VARIANCE
            distance = x - m.total / m.n
            densities.append(
                -0.5 * math.log(2 * math.pi * variance) - distance * distance / (2 * variance)
            )
        return tuple(densities)


_HALF_LOG_2_PI = 0.5 * math.log(2 * math.pi)
# Terms whose exponent is smaller than the largest by this add nothing to a sum.
_MAX_EXPONENT_GAP = 80.0


class ClassDensity:
    """The kernel density of a trait in a class; a message may be left out."""

    def __init__(self, values: Values) -> None:
        """values: a histogram, which may be empty."""
        self._ordered = sorted(values)
        self._counts = [values[value] for value in self._ordered]
        self._cumulated = list(accumulate(self._counts))
        self._moments = Moments.from_values(values)
        self.n = self._moments.n

    def bandwidth(self, left_out: int | None = None) -> float:
        """Return Silverman's bandwidth, at least 1; left_out: the value of a left-out message."""
        moments = self._moments if left_out is None else self._moments.without(left_out)
        n, total, squares = moments.n, moments.total, moments.squares
        spread = math.sqrt(max(0.0, n * squares - total * total)) / n
        middle = self._quantile(0.75 * n, left_out) - self._quantile(0.25 * n, left_out)
        if middle:
            spread = min(spread, middle / 1.34)
        return max(1.0, 0.9 * spread / math.pow(n, 0.2))

    def _quantile(self, rank: float, left_out: int | None) -> int:
        """Return the lowest value that at least `rank` messages do not exceed."""
        index = bisect_left(self._cumulated, rank)
        if left_out is not None and self._ordered[index] >= left_out:
            index = bisect_left(self._cumulated, rank + 1)
        return self._ordered[index]

    def log_density(self, x: int, left_out: bool = False) -> float:
        """Return the log of the density at x, which is finite.

        left_out: leave out one of the messages with the value x; another message must remain.
        """
        n, h = self.n - left_out, self.bandwidth(x if left_out else None)
        counts = self._counts
        if left_out:
            index = bisect_left(self._ordered, x)
            counts = [*counts[:index], counts[index] - 1, *counts[index + 1 :]]
        scale = -0.5 / (h * h)
        pairs = zip(self._ordered, counts, strict=True)
        terms = [(scale * (x - value) ** 2, times) for value, times in pairs if times]
        largest = max(terms)[0]  # terms are relative to the largest, so that their sum is never 0
        exp, least = math.exp, largest - _MAX_EXPONENT_GAP
        total = math.fsum([times * exp(e - largest) for e, times in terms if e > least])
        return largest + math.log(total) - math.log(n * h) - _HALF_LOG_2_PI


class Kernel:
    """Kernel densities: the mean of small normal curves, one on each message's value.

        f(x) = 1/(n h) sum_v n_v phi((x - v) / h)       n_v messages of the class have the value v
        h    = max(1, 0.9 A n^(-1/5)),   A = min(standard deviation, interquartile range / 1.34)

    No shape is assumed (John and Langley 1995, "Estimating Continuous Distributions in Bayesian
    Classifiers").  The bandwidth is Silverman's rule of thumb (1986, "Density Estimation for
    Statistics and Data Analysis", equation 3.31); if the interquartile range is 0, A is the
    standard deviation.

    The sum runs over the histogram's values, about a hundred for any number of messages.
    Rounding a value to an integer changes it by at most 1/2, and so the density by less than
    1/2 max |phi'| / h^2 = 0.121 / h^2; rounding x changes it by as much again.  h is at least 1,
    because differences below the unit are unknown.
    """

    def __init__(self, histograms: Histograms) -> None:
        """histograms: one per trait and class."""
        self._densities = [[ClassDensity(values) for values in row] for row in histograms]
        self._known = cache(self._trait_log_densities)  # many messages have the same values

    def log_densities(self, values: Sequence[int], left_out: int | None = None) -> LogDensities:
        """Return the log density of each trait's value, per class."""
        return [self._known(trait, x, left_out) for trait, x in enumerate(values)]

    def _trait_log_densities(self, trait: int, x: int, left_out: int | None) -> tuple[float, ...]:
        row = self._densities[trait]
        if not all(density.n > (k == left_out) for k, density in enumerate(row)):
            return (0.0,) * len(row)
        return tuple(density.log_density(x, k == left_out) for k, density in enumerate(row))


TraitModel = Gaussian | Kernel


def trait_model(name: str, histograms: Histograms, variances: Variances) -> TraitModel | None:
    """Return the trait model of this name, one of TRAIT_MODELS; None for no traits."""
    if name == KERNEL:
        return Kernel(histograms)
    return Gaussian(histograms, variances) if name == GAUSSIAN else None


def one_vs_rest_trait_histograms(
    histograms: Histograms, classes: Sequence[int]
) -> list[Histograms]:
    """Return, for each of these classes, the histograms of the other classes and of the class."""
    return [
        [[sum(map(Counter, [*row[:k], *row[k + 1 :]]), Counter()), row[k]] for row in histograms]
        for k in classes
    ]
