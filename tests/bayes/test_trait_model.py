import math
from collections import Counter
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest
from closeness import close
from hypothesis import assume, given
from hypothesis import strategies as st
from one_case import each
from scipy.stats import norm
from sklearn.neighbors import KernelDensity

from nbspam.bayes.trait_model import ClassDensity, Gaussian, Kernel, Moments, Variances

PLAIN = Variances(smoothing=0.0)


def histograms(columns, labels, n_classes):
    """Return per trait and class the histogram of a matrix, (n_messages, n_traits)."""
    return [
        [
            Counter(x for x, label in zip(column, labels, strict=True) if label == k)
            for k in range(n_classes)
        ]
        for column in zip(*columns, strict=True)
    ]


@st.composite
def tables(draw, highest=150):
    """Draw the traits of some messages, and their classes, each of which has some."""
    k = draw(st.sampled_from([2, 3]))
    width = draw(st.integers(1, 4))
    row = st.lists(st.integers(0, highest), min_size=width, max_size=width)
    labels = [*range(k), *draw(st.lists(st.integers(0, k - 1), max_size=8))]
    return [draw(row) for _ in labels], labels, k


class TestMaleOrFemale:
    """The worked example of many courses: height in feet, weight in pounds, foot size in inches.

    It is known with the unbiased variances, s / (n - 1): P(6 ft | male) 1.5789, P(130 | male)
    5.9881e-6, P(8 | male) 1.3112e-3; 2.2346e-1, 1.6789e-2 and 2.8669e-1 of female.  The sums of
    squares are the same with s / n, which the maximum of the likelihood has.
    """

    male: ClassVar = [(600, 180, 12), (592, 190, 11), (558, 170, 12), (592, 165, 10)]
    female: ClassVar = [(500, 100, 6), (550, 150, 8), (542, 130, 7), (575, 150, 9)]
    message: ClassVar = [600, 130, 8]  # the height in hundredths
    # Of female, then of male: mean, and sum of squared deviations.
    by_hand: ClassVar = [
        ((Fraction(2167, 4), Fraction(11667, 4)), (Fraction(1171, 2), Fraction(1051))),
        ((Fraction(265, 2), Fraction(1675)), (Fraction(705, 4), Fraction(1475, 4))),
        ((Fraction(15, 2), Fraction(5)), (Fraction(45, 4), Fraction(11, 4))),
    ]
    published: ClassVar = [(2.2346e-1, 1.5789), (1.6789e-2, 5.9881e-6), (2.8669e-1, 1.3112e-3)]

    def test_moments_and_densities(self):
        every = histograms([*self.female, *self.male], [0] * 4 + [1] * 4, 2)
        found = Gaussian(every, PLAIN).log_densities(self.message)
        for i, (x, unit) in enumerate(zip(self.message, (100, 1, 1), strict=True)):
            for k, (mean, squared_deviations) in enumerate(self.by_hand[i]):
                moments = Moments.from_values(every[i][k])
                assert (moments.total, moments.squared_deviations) == (mean * 4, squared_deviations)
                square = float((x - mean) ** 2 / (squared_deviations / 4))
                spread = math.log(2 * math.pi * float(squared_deviations / 4))
                assert found[i][k] == close(-0.5 * (spread + square))
                unbiased = norm.pdf(x, moments.total / 4, math.sqrt(moments.squared_deviations / 3))
                assert unit * unbiased == pytest.approx(self.published[i][k], rel=3e-4)
        female, male = np.sum(found, 0)
        assert female - male > 10  # as 5.3778e-4 to 6.1984e-9 says: 11.4 nats


# Ham 0 and 2, spam 4, 6 and 8: means 1 and 6, squared deviations 2 and 8, overall variance 8.
SMALL = [[{0: 1, 2: 1}, {4: 1, 6: 1, 8: 1}]]


@each(
    "variances, expected",
    [
        (PLAIN, (1, 8 / 3)),
        (Variances(0.25), (1 + 2, 8 / 3 + 2)),
        (Variances(0.0, prior=2.0), (18 / 4, 24 / 5)),
        (Variances(0.25, prior=2.0), (18 / 4 + 2, 24 / 5 + 2)),
        (Variances(0.0, shared=True), (10 / 5, 10 / 5)),
        (Variances(0.0, prior=2.0, shared=True), (26 / 7, 26 / 7)),
        (Variances(0.25, prior=2.0, shared=True), (26 / 7 + 2, 26 / 7 + 2)),
        (Variances(0.0, prior=1e12), (8, 8)),  # the variance of all
    ],
)
def test_variances_by_hand(variances, expected):
    assert_normal(SMALL, variances, 3, *zip((1, 6), expected, strict=True))
    if variances == Variances(0.25):  # the floor is of the trait that varies most
        assert_normal([[{5: 1, 6: 1}, {5: 3}], *SMALL], variances, 5, (5.5, 0.25 + 2), (5, 2))


def assert_normal(histograms, variances, x, *expected):
    """Hold the densities of the first trait's value to means and variances of both classes."""
    found = Gaussian(histograms, variances).log_densities([x] * len(histograms))[0]
    assert found == close(tuple(norm.logpdf(x, mean, math.sqrt(v)) for mean, v in expected))


@given(tables(), st.sampled_from([0.0, 0.1]), st.sampled_from([0.0, 2.5]), st.integers(0, 150))
def test_with_a_shared_variance_the_log_odds_are_linear(table, smoothing, prior, x):
    """(mu_1 - mu_0) x / v + (mu_0^2 - mu_1^2) / (2 v), v of all classes together."""
    rows, labels, k = table
    array, labels = np.array(rows, float), np.array(labels)
    means = np.array([array[labels == c].mean(axis=0) for c in range(k)])
    overall = array.var(axis=0)
    within = ((array - means[labels]) ** 2).sum(axis=0)
    variance = (within + prior * overall) / (len(rows) + prior) + smoothing * overall.max()
    assume((variance > 1e-3).all())
    model = Gaussian(histograms(rows, labels.tolist(), k), Variances(smoothing, prior, True))
    found = np.array([model.log_densities([v] * len(rows[0])) for v in (x, x + 1, x + 2)])
    odds = found[:, :, 1] - found[:, :, 0]
    close_to_it = {"rtol": 1e-9, "atol": 1e-9 * max(1.0, np.abs(found).max())}
    np.testing.assert_allclose(odds[2] - 2 * odds[1] + odds[0], 0, **close_to_it)
    slope = (means[1] - means[0]) / variance
    constant = (means[0] ** 2 - means[1] ** 2) / (2 * variance)
    np.testing.assert_allclose(odds[0], slope * x + constant, **close_to_it)


@each("shared", [False, True])
@each("prior", [0.0, 3.0])
def test_a_trait_that_is_the_same_everywhere_says_nothing(shared, prior):
    model = Gaussian([[{7: 4}, {7: 2}]], Variances(0.0, prior, shared))
    for x in (7, 0, 1000):
        ((ham, spam),) = model.log_densities([x])
        assert ham == spam
        assert math.isfinite(ham)
    # Without smoothing a constant has the variance that rounding hides.
    assert_normal([[{7: 4}, {5: 1, 9: 1}]], PLAIN, 8, (7, 1 / 12), (7, 4))
    # A class without messages has no say.
    found = Gaussian([[{}, {5: 1}], [{1: 1}, {5: 2}]], Variances(0.1)).log_densities([5, 5])
    assert found[0] == (0.0, 0.0) != found[1]
    alone = Gaussian([[{3: 1}, {5: 1}]], Variances(0.1))
    assert alone.log_densities([5], left_out=1) == [(0.0, 0.0)]


@given(tables(), st.sampled_from([0.0, 0.1]), st.sampled_from([0.0, 2.5]), st.booleans())
def test_left_out_is_rebuilt(table, smoothing, prior, shared):
    rows, labels, k = table
    variances = Variances(smoothing, prior, shared)
    model = Gaussian(histograms(rows, labels, k), variances)
    before = model.log_densities(rows[-1])
    found = model.log_densities(rows[-1], left_out=labels[-1])
    rebuilt = Gaussian(histograms(rows[:-1], labels[:-1], k), variances)
    assert found == rebuilt.log_densities(rows[-1])
    assert model.log_densities(rows[-1]) == before


@given(st.dictionaries(st.integers(0, 1000), st.integers(1, 2**53), min_size=1, max_size=6))
def test_moments_are_exact_whatever_their_size(values):
    n = sum(values.values())
    mean = Fraction(sum(x * m for x, m in values.items()), n)
    squared_deviations = sum(m * (x - mean) ** 2 for x, m in values.items())
    found = Moments.from_values(values)
    assert found.squared_deviations == float(squared_deviations)


def test_a_small_variance_far_from_0_keeps_its_digits():
    """In floating point the mean of the squares less the square of the mean would lose them."""
    n = 10**13
    two = [[{999: n, 1000: n}, {999: 1, 1001: 1}]]
    assert_normal(two, PLAIN, 999, (999.5, 0.25), (1000, 1))
    moments = Moments.from_values({999: n, 1000: n}).without(1000)
    assert moments.squared_deviations == float(Fraction(n * (n - 1), 2 * n - 1))


# kernel


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
def test_a_kernel_with_one_left_out_is_rebuilt(traits, data):
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
