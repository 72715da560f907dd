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

from nbspam.bayes.trait_model import Gaussian, Moments, Variances

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
            for k, (mean, deviation) in enumerate(self.by_hand[i]):
                moments = Moments.of(every[i][k])
                assert (moments.total, moments.deviation) == (mean * 4, deviation)
                square = float((x - mean) ** 2 / (deviation / 4))
                spread = math.log(2 * math.pi * float(deviation / 4))
                assert found[i][k] == close(-0.5 * (spread + square))
                unbiased = norm.pdf(x, moments.total / 4, math.sqrt(moments.deviation / 3))
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
    deviation = sum(m * (x - mean) ** 2 for x, m in values.items())
    found = Moments.of(values)
    assert found.deviation == float(deviation)
    assert found.variance == pytest.approx(float(deviation / n), rel=1e-15)


def test_a_small_variance_far_from_0_keeps_its_digits():
    """In floating point the mean of the squares less the square of the mean would lose them."""
    n = 10**13
    two = [[{999: n, 1000: n}, {999: 1, 1001: 1}]]
    assert_normal(two, PLAIN, 999, (999.5, 0.25), (1000, 1))
    moments = Moments.of({999: n, 1000: n}).without(1000)
    assert moments.deviation == float(Fraction(n * (n - 1), 2 * n - 1))
