import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from one_case import each
from scipy.stats import binomtest

from nbspam.evaluation.metrics import (
    CalibrationBin,
    calibration_bins,
    calibration_error,
    mean_interval,
    percentile_interval,
    score_distribution,
    wilson,
)


def close(expected):
    return pytest.approx(expected, rel=1e-9, abs=1e-9)


# Calibration


def test_bins_have_the_predicted_and_the_observed_share_and_their_edges_belong_to_the_bin_above():
    spam = np.array([0, 1, 0, 1, 1]) == 1
    probability = np.array([0.02, 0.08, 0.55, 0.95, 1])
    assert calibration_bins(spam, probability) == [
        CalibrationBin(0, 0.1, 2, close(0.05), 0.5),
        CalibrationBin(0.5, 0.6, 1, close(0.55), 0),
        CalibrationBin(0.9, 1, 2, close(0.975), 1),
    ]
    bins = calibration_bins(np.zeros(3, dtype=bool), np.array([0, 0.5, 1]))
    assert [(b.low, b.messages) for b in bins] == [(0, 1), (0.5, 1), (0.9, 1)]


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 1)), min_size=1, max_size=30))
def test_bins_hold_each_message_once_and_the_labels_of_all(messages):
    spam, probability = (np.array(column) for column in zip(*messages, strict=True))
    bins = calibration_bins(spam, probability)
    assert len(spam) == sum(b.messages for b in bins)
    assert close(spam.sum()) == sum(b.messages * b.spam_share for b in bins)
    assert close(probability.sum()) == sum(b.messages * b.mean_probability for b in bins)
    for b in bins:
        assert b.low - 1e-9 <= b.mean_probability <= b.high + 1e-9
    assert 0 <= calibration_error(bins) <= 1


def test_the_calibration_error_is_the_mean_gap_small_for_true_probabilities():
    bins = [CalibrationBin(0, 0.1, 30, 0.05, 0.15), CalibrationBin(0.9, 1, 10, 0.95, 0.75)]
    assert calibration_error(bins) == close((30 * 0.1 + 10 * 0.2) / 40)
    assert calibration_error([]) == 0
    chance = np.random.default_rng(0)
    probability = chance.random(20_000)
    spam = chance.random(20_000) < probability
    assert calibration_error(calibration_bins(spam, probability)) < 0.015
    assert calibration_error(calibration_bins(~spam, probability)) > 0.3


# The score distribution


@given(st.lists(st.tuples(st.booleans(), st.floats(-1e9, 1e9) | st.integers(-20, 20)), min_size=1))
def test_the_histogram_counts_everything(messages):
    spam = np.array([s for s, _ in messages])
    log_odds = np.array([z for _, z in messages], dtype=float)
    found = score_distribution(spam, log_odds)
    assert sum(h for _, _, h, _ in found) == (~spam).sum()
    assert sum(s for _, _, _, s in found) == spam.sum()
    for low, high, ham, spams in found[1:-1]:
        inside = (log_odds >= low) & (log_odds < high)
        assert (ham, spams) == ((inside & ~spam).sum(), (inside & spam).sum())


def test_the_histograms_ends_take_what_is_beyond():
    found = score_distribution(np.array([True, False]), np.array([1e9, -1e9]))
    assert found[0][2:] == (1, 0)
    assert found[-1][2:] == (0, 1)
    assert [row[1] for row in found[:-1]] == [row[0] for row in found[1:]]


# Intervals


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
