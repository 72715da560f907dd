import math
from collections import Counter

import numpy as np
import pytest
from closeness import close
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.neighbors import KernelDensity

from nbspam.bayes.trait_model import ClassDensity, Kernel

VALUES = st.lists(st.integers(0, 200), min_size=1, max_size=40)
ROWS = st.lists(VALUES, min_size=2, max_size=3)  # the values of a trait in each class


# Of rounding, on a density, times h^2: half a unit times the steepest slope of a normal curve.
BINNING_ERROR = 1 / (2 * math.sqrt(2 * math.pi * math.e))


def bandwidth(values):
    return ClassDensity(values).bandwidth()


def log_density(values, x):
    return ClassDensity(values).log_density(x)


def reference(values, h):
    """Return scikit-learn's density of the values, not of a histogram."""
    return KernelDensity(kernel="gaussian", bandwidth=h).fit(np.array(values, float)[:, None])


@given(VALUES, st.lists(st.integers(0, 300), min_size=1, max_size=5))
def test_log_densities_are_scikit_learns_and_densities_are_one_in_all(values, points):
    h, histogram = bandwidth(Counter(values)), Counter(values)
    expected = reference(values, h).score_samples(np.array(points, float)[:, None])
    assert [log_density(histogram, x) for x in points] == close(expected.tolist())
    # With kernels no narrower than 1, the sum over the integers is the integral.
    every = range(-int(9 * h) - 1, 202 + int(9 * h))
    total = math.fsum(math.exp(log_density(histogram, x)) for x in every)
    assert total == pytest.approx(1, abs=1e-7)


def test_densities_by_hand():
    """Two messages at 0, one at 1; the spread is so small that the kernels are as wide as 1."""
    expected = (2 * norm.pdf(0) + norm.pdf(1)) / 3
    assert bandwidth({0: 2, 1: 1}) == 1
    assert math.exp(log_density({0: 2, 1: 1}, 0)) == close(expected)
    # Far away a density falls as its nearest kernel does.
    values = {0: 5, 10: 5}
    nearest = norm.logpdf(999_990 / bandwidth(values)) - math.log(2 * bandwidth(values))
    assert log_density(values, 1_000_000) == pytest.approx(nearest, rel=1e-9)


@given(VALUES, st.integers(0, 2**32))
def test_rounding_to_integers_changes_a_density_by_a_bounded_amount(values, seed):
    h = bandwidth(Counter(values))
    exact = np.array(values) + np.random.default_rng(seed).uniform(-0.5, 0.5, len(values))
    points = np.arange(-5, 210)
    of_exact = np.exp(reference(exact, h).score_samples(points[:, None].astype(float)))
    of_rounded = np.exp([log_density(Counter(values), x) for x in points.tolist()])
    assert np.abs(of_exact - of_rounded).max() <= BINNING_ERROR / h**2 + 1e-12
    # It is nearly reached by messages half a step off, where the kernel of h = 5 is steepest.
    slope = (norm.pdf((5 - 0.5) / 5) - norm.pdf(5 / 5)) / 5
    assert 0.9 * BINNING_ERROR / 25 < slope <= BINNING_ERROR / 25


def silverman(values):
    """Return equation 3.31 of Silverman's book, from the values themselves."""
    low, high = np.quantile(values, [0.25, 0.75], method="inverted_cdf")
    spreads = [np.std(values), (high - low) / 1.34]
    return 0.9 * min(s for s in spreads if s > 0) * len(values) ** -0.2


@given(VALUES.filter(lambda values: len(set(values)) > 1))
def test_the_bandwidth_is_silvermans_but_not_below_1(values):
    assert bandwidth(Counter(values)) == close(max(1.0, silverman(values)))


def test_bandwidths_by_hand():
    """Of 0, 100, 200 and 300 the quartiles are 0 and 200, and the standard deviation is 111.8."""
    values = {0: 1, 100: 1, 200: 1, 300: 1}
    assert bandwidth(values) == close(0.9 * math.sqrt(12_500) * 4**-0.2)
    # Thrice as many in the middle: the interquartile range is 100 now, and the smaller measure.
    values = {0: 1, 100: 3, 200: 3, 300: 1}
    assert bandwidth(values) == close(0.9 * 100 / 1.34 * 8**-0.2)
    # Where most have one value the spread is the standard deviation.
    assert bandwidth({0: 90, 100: 10}) == close(0.9 * 30 * 100**-0.2)
    # It is never below the unit.
    assert [bandwidth(few) for few in ({7: 1}, {7: 10**9}, {0: 1, 1: 10**12})] == [1, 1, 1]


@given(VALUES, st.integers(-(10**6), 10**6))
def test_a_density_is_finite_far_from_all_data(values, x):
    assert math.isfinite(log_density(Counter(values), x))


@given(st.lists(ROWS, min_size=1, max_size=3), st.data())
def test_left_out_is_rebuilt(traits, data):
    n = min(len(row) for row in traits)
    k = data.draw(st.integers(0, n - 1))
    traits = [row[:n] for row in traits]
    # One message: its value of each trait is the first of its class.
    message = [row[k][0] for row in traits]
    model = Kernel([[Counter(values) for values in row] for row in traits])
    before = model.log_densities(message)
    found = model.log_densities(message, left_out=k)
    rest = [[values[1:] if i == k else values for i, values in enumerate(row)] for row in traits]
    rebuilt = Kernel([[Counter(values) for values in row] for row in rest])
    assert found == rebuilt.log_densities(message)
    assert model.log_densities(message) == before


def test_densities_of_each_trait_and_class_stand_in_their_places():
    histograms = [[{0: 3}, {5: 1}], [{10: 2, 20: 2}, {0: 1, 30: 1}]]
    found = Kernel(histograms).log_densities([1, 12])
    assert found == [
        (log_density({0: 3}, 1), log_density({5: 1}, 1)),
        (log_density({10: 2, 20: 2}, 12), log_density({0: 1, 30: 1}, 12)),
    ]
    # A class without messages has no say.
    found = Kernel([[{}, {5: 1}], [{1: 1}, {5: 2}]]).log_densities([5, 5])
    assert found[0] == (0.0, 0.0) != found[1]
    assert Kernel([[{3: 1}, {5: 1}]]).log_densities([5], left_out=1) == [(0.0, 0.0)]
