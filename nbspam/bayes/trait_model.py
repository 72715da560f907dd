"""The seam between naive Bayes and a message's numbers: a density per trait and class.

Naive Bayes multiplies likelihoods, one for each feature, of whatever kind: those of the tokens, and
of each trait (an integer on a scale of its own, `tokens/traits.py`) the density of its value among
the messages of a class.  A trait model says which density.  All that is learned of a trait is a
histogram of its values per class: integers that add, from which mean, variance and kernels follow.
So learning in any order gives the same numbers, merging and forgetting are exact, and a message is
left out by taking its value out of the histogram.

A new trait model is a class like `gaussian.Gaussian` in a file of its own, and a line in
`trait_model`.
"""

from typing import TYPE_CHECKING

from nbspam.bayes.histograms import Histograms, Values
from nbspam.bayes.variances import Variances

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    class TraitModel(Protocol):
        """The densities of each trait in each class."""

        def log_densities(
            self, values: Sequence[int], left_out: int | None = None
        ) -> list[tuple[float, ...]]:
            """Return the log density of each trait's value, per class, (n_traits, n_classes).

            values: of the message.  left_out: its class, if it was learned and is to be left out.
            Zeros for a trait that no message of some class has told, itself left out.
            """


NO_TRAITS, GAUSSIAN, KERNEL = TRAIT_MODELS = "none", "gaussian", "kernel"


def trait_model(name: str, histograms: Histograms, variances: Variances) -> "TraitModel | None":
    """Return the trait model of this name, one of TRAIT_MODELS; None for no traits."""
    if name == KERNEL:
        from nbspam.bayes.kernel import Kernel

        return Kernel(histograms)
    if name == GAUSSIAN:
        from nbspam.bayes.gaussian import Gaussian

        return Gaussian(histograms, variances)
    return None


def against_rest(histograms: Histograms, classes: "Sequence[int]") -> list[Histograms]:
    """Return for each of these classes the histograms of all others together, and of it."""
    return [[[_sum([*row[:k], *row[k + 1 :]]), row[k]] for row in histograms] for k in classes]


def _sum(rows: "Sequence[Values]") -> Values:
    total: dict[int, int] = {}
    for values in rows:
        for value, n in values.items():
            total[value] = total.get(value, 0) + n
    return total
