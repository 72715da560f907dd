"""Gaussian densities of traits.

    mean_k = sum x / n_k
    s_k    = sum (x - mean_k)^2                                  of the messages of class k
    v_k    = (s_k + p v) / (n_k + p) + e max over all traits of v
    log f  = -1/2 log(2 pi v_k) - (x - mean_k)^2 / (2 v_k)

v is the trait's variance over the messages of all classes.  With p = 0 and e = 0 v_k is the maximum
likelihood estimate.  p is the weight, in messages, of a prior that says that a class varies as
much as all messages do: v_k is the mode of the posterior with an inverse gamma prior of shape
p / 2 - 1 and scale p v / 2 (Gelman et al., "Bayesian Data Analysis", 2.6).  e is a floor that keeps
v_k above 0; it is `var_smoothing` of scikit-learn's GaussianNB, which this equals with p = 0.  As
there, with the usual 1e-9 a trait that is the same in all messages of a class decides alone when a
message has another value: e of .01, or some p, is against that.

With a shared variance, v_k = (sum over classes of s_k + p v) / (n + p) + ... for all of them: the
squares cancel, and the log-odds are linear in the trait (linear discriminant analysis with a
diagonal covariance; Hastie, Tibshirani and Friedman, "The Elements of Statistical Learning", 4.3).

Means and variances are of integers, and the sums of x and x^2 are exact.
"""

import math
from collections.abc import Sequence

from nbspam.bayes.histograms import Histograms, Values
from nbspam.bayes.variances import Variances

# In place of a variance of 0, where nothing is added to it: what rounding to an integer hides
# (Sheppard 1898).  Below the least, densities are beyond floating point.
_ROUNDING, _LEAST = 1 / 12, 1e-100


class Moments:
    """The sums of a trait's values in a class."""

    __slots__ = ("n", "squares", "total")

    def __init__(self, n: int, total: int, squares: int) -> None:
        """Keep n, sum x and sum x^2."""
        self.n, self.total, self.squares = n, total, squares

    @classmethod
    def of(cls, values: Values) -> "Moments":
        """Return the sums of a histogram."""
        return cls(
            sum(values.values()),
            sum(x * n for x, n in values.items()),
            sum(x * x * n for x, n in values.items()),
        )

    def without(self, x: int) -> "Moments":
        """Return them with one message of value x left out."""
        return Moments(self.n - 1, self.total - x, self.squares - x * x)

    def __add__(self, other: "Moments") -> "Moments":
        return Moments(self.n + other.n, self.total + other.total, self.squares + other.squares)

    @property
    def deviation(self) -> float:
        """The sum of (x - mean)^2, 0 without messages."""
        return (self.n * self.squares - self.total**2) / self.n if self.n else 0.0

    @property
    def variance(self) -> float:
        """The maximum likelihood variance, 0 without messages."""
        return self.deviation / self.n if self.n else 0.0


class Gaussian:
    """Gaussian densities; see `trait_model.TraitModel`."""

    def __init__(self, histograms: Histograms, variances: Variances) -> None:
        """Take the sums of the histograms, per trait and class."""
        self._variances = variances
        self._moments = [[Moments.of(values) for values in row] for row in histograms]
        self._totals = [sum(row[1:], row[0]) for row in self._moments]

    def log_densities(
        self, values: Sequence[int], left_out: int | None = None
    ) -> list[tuple[float, ...]]:
        """Return the log density of each trait's value, per class."""
        moments, totals = self._moments, self._totals
        if left_out is not None:
            moments = [
                [m.without(x) if k == left_out else m for k, m in enumerate(row)]
                for row, x in zip(moments, values, strict=True)
            ]
            totals = [total.without(x) for total, x in zip(totals, values, strict=True)]
        overall = [total.variance for total in totals]
        added = self._variances.smoothing * max(overall, default=0.0)
        return [
            self._of_trait(row, variance, added, x)
            for row, variance, x in zip(moments, overall, values, strict=True)
        ]

    def _of_trait(
        self, row: Sequence[Moments], overall: float, added: float, x: int
    ) -> tuple[float, ...]:
        """Return the log density of a value in each class.

        overall: the trait's variance over all classes; added: to each variance.
        """
        if not all(m.n for m in row):
            return (0.0,) * len(row)
        _, prior, shared = self._variances
        deviations = [m.deviation for m in row]
        sizes = [m.n for m in row]
        if shared:
            deviations, sizes = [sum(deviations)] * len(row), [sum(sizes)] * len(row)
        densities = []
        for m, deviation, n in zip(row, deviations, sizes, strict=True):
            variance = (deviation + prior * overall) / (n + prior) + added
            if variance < _LEAST:
                variance = _ROUNDING
            distance = x - m.total / m.n
            densities.append(
                -0.5 * math.log(2 * math.pi * variance) - distance * distance / (2 * variance)
            )
        return tuple(densities)
