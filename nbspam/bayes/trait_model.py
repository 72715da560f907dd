"""What a message's numbers say: a density per trait and class.

Naive Bayes multiplies likelihoods, one for each feature, of whatever kind: those of the tokens, and
of each trait (an integer on a scale of its own, `tokens/kinds.py`) the density of its value among
the messages of a class.  A trait model says which density.  All that is learned of a trait is a
histogram of its values per class: integers that add, from which mean, variance and kernels follow.
So learning in any order gives the same numbers, forgetting is exact, and a message is
left out by taking its value out of the histogram.
"""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import accumulate, repeat
from typing import NamedTuple

Values = Mapping[int, int]  # value of a trait -> how many messages have it, above 0
Histograms = Sequence[Sequence[Values]]  # per trait, per class
LogDensities = list[tuple[float, ...]]  # likewise

SMOOTHING = 1e-9  # as scikit-learn's GaussianNB has it


class Variances(NamedTuple):
    """How variances of Gaussian traits are estimated: what is added, and whether they are one."""

    smoothing: float = SMOOTHING  # of the largest variance: what is added to each
    prior: float = 0.0  # messages: the weight of the trait's variance over all classes
    shared: bool = False  # one variance of each trait for all classes


NO_TRAITS, GAUSSIAN, KERNEL = TRAIT_MODELS = "none", "gaussian", "kernel"

# In place of a variance of 0, where nothing is added to it: what rounding to an integer hides
# (Sheppard 1898).  Below the least, densities are beyond floating point.
_ROUNDING, _LEAST = 1 / 12, 1e-100


class Moments(NamedTuple):
    """The sums of a trait's values in a class, or in all."""

    n: int
    total: int
    squares: int

    @classmethod
    def of(cls, values: Values) -> "Moments":
        """Return the sums of a histogram."""
        pairs = values.items()
        return cls(
            sum(values.values()), sum(x * n for x, n in pairs), sum(x * x * n for x, n in pairs)
        )

    def without(self, x: int) -> "Moments":
        """Return them with one message of value x left out."""
        return Moments(self.n - 1, self.total - x, self.squares - x * x)

    @property
    def deviation(self) -> float:
        """The sum of (x - mean)^2, 0 without messages."""
        return (self.n * self.squares - self.total**2) / self.n if self.n else 0.0


class Gaussian:
    """Gaussian densities.

        mean_k = sum x / n_k
        s_k    = sum (x - mean_k)^2                                  of the messages of class k
        v_k    = (s_k + p v) / (n_k + p) + e max over all traits of v
        log f  = -1/2 log(2 pi v_k) - (x - mean_k)^2 / (2 v_k)

    v is the trait's variance over the messages of all classes.  With p = 0 and e = 0 v_k is the
    maximum likelihood estimate.  p is the weight, in messages, of a prior that says that a
    class varies as much as all messages do: v_k is the mode of the posterior with an inverse
    gamma prior of shape p / 2 - 1 and scale p v / 2 (Gelman et al., "Bayesian Data Analysis",
    2.6).  e is a floor that keeps v_k above 0; it is `var_smoothing` of scikit-learn's
    GaussianNB, which this equals with p = 0.  As there, with the usual 1e-9 a trait that is the
    same in all messages of a class decides alone when a message has another value: e of .01, or
    some p, is against that.

    With a shared variance, v_k = (sum over classes of s_k + p v) / (n + p) + ... for all of
    them: the squares cancel, and the log-odds are linear in the trait (linear discriminant
    analysis with a diagonal covariance; Hastie, Tibshirani and Friedman, "The Elements of
    Statistical Learning", 4.3).

    Means and variances are of integers, and the sums of x and x^2 are exact.
    """

    def __init__(self, histograms: Histograms, variances: Variances) -> None:
        """Take the sums of the histograms, per trait and class."""
        self._variances = variances
        self._moments = [list(map(Moments.of, row)) for row in histograms]

    def log_densities(self, values: Sequence[int], left_out: int | None = None) -> LogDensities:
        """Return the log density of each trait's value, per class, (n_traits, n_classes).

        values: of the message.  left_out: its class, if it was learned and is to be left out.
        Zeros for a trait that no message of some class has told, itself left out.
        """
        pairs = zip(self._moments, values, strict=True)
        traits = [
            [m.without(x) if k == left_out else m for k, m in enumerate(row)] for row, x in pairs
        ]
        totals = [Moments(*map(sum, zip(*row, strict=True))) for row in traits]
        overall = [total.deviation / total.n if total.n else 0.0 for total in totals]
        added = self._variances.smoothing * max(overall, default=0.0)
        return list(map(self._of_trait, traits, overall, repeat(added), values))

    def _of_trait(
        self, row: Sequence[Moments], overall: float, added: float, x: int
    ) -> tuple[float, ...]:
        """Return the log density of a value in each class.

        overall: the trait's variance over all classes; added: to each variance.
        """
        if not all(m.n for m in row):
            return (0.0,) * len(row)
        _, prior, shared = self._variances
        deviations = [(m.deviation, m.n) for m in row]
        if shared:
            deviations = [(sum(m.deviation for m in row), sum(m.n for m in row))] * len(row)
        densities = []
        for m, (deviation, n) in zip(row, deviations, strict=True):
            variance = (deviation + prior * overall) / (n + prior) + added
            if variance < _LEAST:
                variance = _ROUNDING
            distance = x - m.total / m.n
            densities.append(
                -0.5 * math.log(2 * math.pi * variance) - distance * distance / (2 * variance)
            )
        return tuple(densities)


_HALF_LOG_2_PI = 0.5 * math.log(2 * math.pi)
_REACH = 80.0  # of the exponent, below the largest: what is smaller adds nothing to a sum


class ClassDensity:
    """The kernel density of a trait in a class; a message may be left out."""

    def __init__(self, values: Values) -> None:
        """Take a histogram; it may be empty."""
        self._ordered = sorted(values)
        self._counts = [values[value] for value in self._ordered]
        self._cumulated = list(accumulate(self._counts))
        self._moments = Moments.of(values)
        self.n = self._moments.n

    def bandwidth(self, left_out: int | None = None) -> float:
        """Return Silverman's bandwidth, 1 at least; left_out: a value that one message less has."""
        moments = self._moments if left_out is None else self._moments.without(left_out)
        n, total, squares = moments.n, moments.total, moments.squares
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
        n, h = self.n - left_out, self.bandwidth(x if left_out else None)
        counts = self._counts
        if left_out:
            at = bisect_left(self._ordered, x)
            counts = [*counts[:at], counts[at] - 1, *counts[at + 1 :]]
        scale = -0.5 / (h * h)
        pairs = zip(self._ordered, counts, strict=True)
        terms = [(scale * (x - value) ** 2, times) for value, times in pairs if times]
        largest = max(terms)[0]  # relative to it, so that the sum is never 0
        exp, least = math.exp, largest - _REACH
        total = math.fsum([times * exp(e - largest) for e, times in terms if e > least])
        return largest + math.log(total) - math.log(n * h) - _HALF_LOG_2_PI


class Kernel:
    """Kernel densities: a small normal curve on each message, their mean the density.

        f(x) = 1/(n h) sum_v n_v phi((x - v) / h)       n_v messages of the class have the value v
        h    = max(1, 0.9 A n^(-1/5)),   A = min(standard deviation, interquartile range / 1.34)

    No shape is assumed (John and Langley 1995, "Estimating Continuous Distributions in Bayesian
    Classifiers").  The bandwidth is Silverman's rule of thumb (1986, "Density Estimation for
    Statistics and Data Analysis", equation 3.31); where so many messages have one value that
    the interquartile range is 0, A is the standard deviation.

    The sum is over the histogram's values, of which there are some hundred whatever the number
    of messages.  Values are rounded to integers, by 1/2 at most, so the density differs from
    that of the unrounded values with the same bandwidth by less than 1/2 max |phi'| / h^2 =
    0.121 / h^2, and by as much again because x itself is rounded; h is never smaller than the
    unit, since nothing is known of what is within it.
    """

    def __init__(self, histograms: Histograms) -> None:
        """Take the histograms, per trait and class."""
        self._densities = [[ClassDensity(values) for values in row] for row in histograms]
        self._known = cache(self._of_trait)  # few values differ

    def log_densities(self, values: Sequence[int], left_out: int | None = None) -> LogDensities:
        """Return the log density of each trait's value, per class."""
        return [self._known(trait, x, left_out) for trait, x in enumerate(values)]

    def _of_trait(self, trait: int, x: int, left_out: int | None) -> tuple[float, ...]:
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


def against_rest(histograms: Histograms, classes: Sequence[int]) -> list[Histograms]:
    """Return for each of these classes the histograms of all others together, and of it."""
    return [
        [[sum(map(Counter, [*row[:k], *row[k + 1 :]]), Counter()), row[k]] for row in histograms]
        for k in classes
    ]
