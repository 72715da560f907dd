import numpy as np
import pytest
from one_case import each
from scipy.stats import binomtest

from nbspam.evaluation.intervals import mean_interval, percentile_interval, wilson


def close(expected):
    return pytest.approx(expected, rel=1e-9, abs=1e-9)


@each("of", [1, 2, 7, 100, 4_000])
def test_wilson_is_scipys(of):
    for hits in sorted({0, 1, of // 3, of // 2, of - 1, of}):
        expected = binomtest(hits, of).proportion_ci(confidence_level=0.95, method="wilson")
        assert close((expected.low, expected.high)) == wilson(hits, of)


def test_wilson_of_nothing_is_nothing_and_it_holds_its_ends():
    assert wilson(0, 0) is None
    assert wilson(0, 10)[0] == 0
    assert wilson(10, 10)[1] == 1


def test_intervals_of_a_mean_and_of_percentiles():
    losses = np.array([0.0, 1.0, 2.0, 3.0])
    error = 1.959964 * (5 / 3) ** 0.5 / 2
    assert mean_interval(losses) == pytest.approx((1.5 - error, 1.5 + error), rel=1e-6)
    assert mean_interval(np.array([0.0, 0.0, 1.0]))[0] == 0
    assert mean_interval(np.array([1.0])) is None
    assert percentile_interval(list(range(1001))) == (25, 975)
