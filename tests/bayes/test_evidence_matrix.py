import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_messages import ALPHAS, Messages, messages

from nbspam.bayes.bernoulli import class_alphas, pair_weight
from nbspam.bayes.bernoulli_arrays import one_against_rest
from nbspam.bayes.evidence import evidence
from nbspam.bayes.evidence_matrix import evidence_of_rows

CLOSE = {"rtol": 1e-12, "atol": 1e-12}
WEIGHT = st.sampled_from([-4.0, -2.5, -1.0, 1.0, 2.5, 4.0]) | st.floats(-9, 9)
ENTRY = st.tuples(WEIGHT | st.just(math.nan), st.booleans())
ROWS = st.lists(st.lists(ENTRY, max_size=60), min_size=1, max_size=8)


def assert_as_each_alone(table):
    """Hold the evidence of many rows of (weight, is it trace) to that of each."""
    rows = np.repeat(np.arange(len(table)), [len(row) for row in table])
    entries = [entry for row in table for entry in row]
    weights = np.array([w for w, _ in entries], dtype=float)
    is_header = np.array([t for _, t in entries], dtype=bool)
    features, header = evidence_of_rows(rows, weights, is_header, len(table))
    for row, feature, nats in zip(table, features, header, strict=True):
        known = [(w, t) for w, t in row if not math.isnan(w)]
        expected = evidence([w for w, t in known if not t], [w for w, t in known if t])
        np.testing.assert_allclose(feature, expected.features, **CLOSE)
        np.testing.assert_allclose(nats, expected.header_nats, **CLOSE)


@settings(deadline=None, max_examples=150)
@given(ROWS)
def test_evidence_of_rows_is_that_of_each_alone(table):
    assert_as_each_alone(table)


def test_ties_at_the_edge_are_broken_alike():
    weights = [(2.0, False)] * 15 + [(-2.0, False)] * 15 + [(2.0, True)] * 8 + [(-2.0, True)] * 8
    assert_as_each_alone([weights, weights[::-1], weights[10:] + weights[:10]])


def test_evidence_of_many_long_rows_is_that_of_each_alone():
    chance = np.random.default_rng(0)
    table = []
    for n in (0, 1, 19, 20, 21, 300, 2_000, 0):
        weights = np.round(chance.normal(0, 3, n), 1).tolist()
        table.append([(w, bool(t)) for w, t in zip(weights, chance.random(n) < 0.2, strict=True)])
    assert_as_each_alone(table)


def test_rows_without_entries_have_the_evidence_of_nothing():
    nothing = np.array([], dtype=int), np.array([]), np.array([], dtype=bool)
    features, header = evidence_of_rows(*nothing, 3)
    np.testing.assert_allclose(features, [evidence([], []).features] * 3)
    assert header.tolist() == [0, 0, 0]


# Weights


def by_hand(counts, per_class, positive, alpha):
    """Return the weights by the definition, NaN for tokens that no message has."""
    n, everyone = int(per_class[positive]), int(per_class.sum())
    alphas = class_alphas((everyone - n, n), alpha)
    return [
        pair_weight(int(c[positive]), n, int(c.sum() - c[positive]), everyone - n, alphas)
        if c.any()
        else math.nan
        for c in counts.T
    ]


@settings(deadline=None, max_examples=80)
@given(messages(), ALPHAS, st.data())
def test_weights_are_those_of_the_definition(found, alpha, data):
    positive = data.draw(st.integers(0, found.n_classes - 1))
    actual = one_against_rest(found.counts, found.per_class, positive, alpha, None)
    np.testing.assert_allclose(actual, by_hand(found.counts, found.per_class, positive, alpha))


@settings(deadline=None, max_examples=80)
@given(messages(), ALPHAS, st.data())
def test_weights_left_out_are_those_after_removing_the_message(found, alpha, data):
    positive = data.draw(st.integers(0, found.n_classes - 1))
    i = data.draw(st.integers(0, len(found.labels) - 1))
    label = int(found.labels[i])
    others = np.arange(len(found.labels)) != i
    rest = Messages(found.dense[others], found.labels[others], found.n_classes)
    left_out = one_against_rest(found.counts, found.per_class, positive, alpha, label)
    held = found.dense[i] == 1
    expected = np.array(by_hand(rest.counts, rest.per_class, positive, alpha))
    np.testing.assert_allclose(left_out[held], expected[held], **CLOSE)


def test_a_token_of_the_message_alone_is_gone():
    counts = np.array([[1, 0, 2], [0, 1, 1]])
    per_class = np.array([3, 2])
    assert np.isnan(one_against_rest(counts, per_class, 1, 0.1, 0)).tolist()[0]
    assert np.isnan(one_against_rest(counts, per_class, 1, 0.1, 1)).tolist()[1]
    assert not np.isnan(one_against_rest(counts, per_class, 1, 0.1, None)).any()


def test_the_only_message_of_a_class_left_out_leaves_finite_weights():
    counts = np.array([[2, 1], [1, 1]])
    found = one_against_rest(counts, np.array([2, 1]), 1, 0.1, 1)
    assert np.isfinite(found).all()


def test_weights_of_two_classes_are_opposite():
    counts = np.array([[5, 0, 2], [1, 3, 2]])
    per_class = np.array([9, 4])
    spam, ham = (one_against_rest(counts, per_class, k, 0.3, None) for k in (1, 0))
    assert spam.tolist() == pytest.approx((-ham).tolist())
