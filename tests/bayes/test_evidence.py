import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.bayes.bernoulli import class_alphas, pair_weight
from nbspam.bayes.evidence import (
    FEATURES,
    HEADER_BOUND,
    HEADER_SCALE,
    HEADER_STRONGEST,
    LENGTH_CENTRE,
    STRONG,
    STRONG_SHRINK,
    STRONGEST,
    SUM_SCALE,
    evidence,
    log_odds,
    shares,
    strongest,
)

# Few different values, so that ties at the edge of the strongest are the rule.
TIED = st.lists(st.sampled_from([-4.0, -3.0, -2.5, -1.0, 0.0, 1.0, 2.5, 3.0, 4.0]), max_size=60)
FREE = st.lists(st.floats(-20, 20), max_size=60)
WEIGHTS = TIED | FREE
COEFFICIENTS = st.tuples(*[st.floats(-5, 5)] * (1 + len(FEATURES)))


def close(expected):
    return pytest.approx(expected, rel=1e-9, abs=1e-9)


def features(weights):
    return dict(zip(FEATURES, evidence(weights, []).features, strict=True))


# The definition, by hand


def test_features_of_a_few_weights():
    found = features([3.0, -1.0, 2.5, 0.5])
    assert found["strongest"] == close((3 - 1 + 2.5 + 0.5) / 4)
    assert found["sum"] == close(5 / (SUM_SCALE * 2))
    assert found["strong"] == close((3 + 2.5) / (2 + STRONG_SHRINK))
    assert found["length"] == close(math.log(4) - LENGTH_CENTRE)


def test_the_strongest_alone_are_in_their_mean():
    weights = [5.0] * STRONGEST + [1.0] * 100
    assert features(weights)["strongest"] == close(5)
    assert features(weights)["sum"] == close((5 * STRONGEST + 100) / (SUM_SCALE * 120**0.5))


def test_the_strongest_are_so_on_either_side():
    weights = [-5.0] * 10 + [4.0] * 10 + [0.5] * 30
    assert features(weights)["strongest"] == close(-0.5)


def test_of_weights_as_strong_the_negative_come_first():
    assert strongest(sorted([2.0, -2.0, 1.0, -3.0]), 9) == [-3.0, -2.0, 2.0, 1.0]
    assert strongest(sorted([2.0, -2.0, 1.0, -3.0]), 2) == [-3.0, -2.0]
    weights = [2.0] * STRONGEST + [-2.0] * STRONGEST
    assert features(weights)["strongest"] == close(-2)


def test_strong_begins_at_its_bound():
    assert features([STRONG])["strong"] == close(STRONG / (1 + STRONG_SHRINK))
    assert features([STRONG - 1e-9])["strong"] == 0


def test_a_message_without_known_words():
    found = evidence([], [])
    assert found.features == (0, 0, 0, -LENGTH_CENTRE)
    assert found.header_nats == 0


def test_header_channel_of_a_few_weights():
    found = evidence([], [3.0, -1.0])
    assert found.header_nats == close(
        HEADER_BOUND * math.tanh(2 / (HEADER_STRONGEST * HEADER_SCALE))
    )


def test_the_strongest_alone_are_in_the_header_channel():
    assert evidence([], [5.0] * HEADER_STRONGEST) == evidence([], [5.0] * HEADER_STRONGEST + [1.0])


def test_header_channel_weights_are_no_part_of_the_features():
    assert evidence([1.0], [9.0] * 50).features == evidence([1.0], []).features
    assert evidence([9.0] * 50, [1.0]).header_nats == evidence([], [1.0]).header_nats


def test_log_odds_are_the_calibration_and_the_header_channel():
    found = evidence([3.0, 1.0], [2.0])
    b = (0.1, 0.2, 0.3, 0.4, 0.5)
    expected = 0.1 + found.header_nats
    expected += sum(c * feature for c, feature in zip(b[1:], found.features, strict=True))
    assert close(expected) == log_odds(found, b)


# What holds for any weights


@given(st.lists(st.floats(-1e6, 1e6), max_size=40))
def test_the_header_channel_is_bounded(weights):
    assert abs(evidence([], weights).header_nats) <= HEADER_BOUND


@given(st.lists(st.floats(1, 20), min_size=HEADER_STRONGEST, max_size=40))
def test_more_header_weights_never_turn_its_sign(weights):
    assert 0 < evidence([], weights).header_nats <= HEADER_BOUND


@given(WEIGHTS, WEIGHTS, st.randoms())
def test_the_order_of_the_words_does_not_matter(weights, trace, chance: random.Random):
    mixed, mixed_trace = weights[:], trace[:]
    chance.shuffle(mixed)
    chance.shuffle(mixed_trace)
    assert evidence(weights, trace) == evidence(mixed, mixed_trace)


@given(WEIGHTS)
def test_opposite_weights_have_opposite_features_but_for_ties_and_length(weights):
    strengths = sorted(map(abs, weights), reverse=True)
    tied = len(weights) > STRONGEST and strengths[STRONGEST - 1] == strengths[STRONGEST]
    found, opposite = features(weights), features([-w for w in weights])
    for name in ("sum", "strong") if tied else ("strongest", "sum", "strong"):
        assert close(found[name]) == -opposite[name]
    assert found["length"] == opposite["length"]


@given(WEIGHTS, WEIGHTS, COEFFICIENTS)
def test_shares_and_constants_add_up_to_the_log_odds(weights, trace, coefficients):
    found = evidence(weights, trace)
    own, of_trace = shares(weights, trace, coefficients)
    assert (len(own), len(of_trace)) == (len(weights), len(trace))
    total = coefficients[0] + coefficients[-1] * found.features[-1] + sum(own) + sum(of_trace)
    assert close(log_odds(found, coefficients)) == total


@given(TIED, TIED, COEFFICIENTS)
def test_equal_weights_have_equal_shares(weights, trace, coefficients):
    for part, found in zip((weights, trace), shares(weights, trace, coefficients), strict=True):
        of_weight: dict[float, float] = {}
        for w, share in zip(part, found, strict=True):
            assert close(of_weight.setdefault(w, share)) == share


def test_a_tie_at_the_edge_of_the_strongest_is_shared():
    weights = [3.0] * (STRONGEST - 1) + [1.0] * 4
    own, _ = shares(weights, [], (0.0, 1.0, 0.0, 0.0, 0.0))
    assert own[:-4] == [close(3 / STRONGEST)] * (STRONGEST - 1)
    assert own[-4:] == [close(1 / STRONGEST / 4)] * 4


def test_a_tie_of_both_sides_at_the_edge_goes_to_the_negative_first():
    weights = [3.0] * (STRONGEST - 1) + [1.0, -1.0]
    own, _ = shares(weights, [], (0.0, 1.0, 0.0, 0.0, 0.0))
    assert own[-2:] == [0.0, close(-1 / STRONGEST)]


def test_no_words_have_no_shares():
    assert shares([], [], (1.0, 1.0, 1.0, 1.0, 1.0)) == ([], [])


def test_header_channel_weights_that_cancel_out_have_shares_of_nothing():
    assert shares([], [2.0, -2.0], (0.0,) * 5)[1] == [0.0, 0.0]


# The weights


@given(st.lists(st.integers(0, 1000), min_size=2, max_size=5), st.floats(1e-6, 1e6))
def test_class_alphas_average_alpha_and_are_above_nothing(messages, alpha):
    found = class_alphas(messages, alpha)
    assert close(alpha) == sum(found) / len(found)
    assert min(found) > 0
    assert sorted(found) == [a for _, a in sorted(zip(messages, found, strict=True))]


def test_a_pairs_weight_by_hand():
    expected = math.log((3 + 0.2) / (4 - 3 + 0.2)) - math.log((1 + 0.1) / (9 - 1 + 0.1))
    assert close(expected) == pair_weight(3, 4, 1, 9, (0.1, 0.2))


@given(st.integers(0, 50), st.integers(0, 50), st.integers(0, 50), st.integers(0, 50))
def test_classes_changed_over_change_the_sign(inside, more, outside, others):
    n, rest = inside + more, outside + others
    one = pair_weight(inside, n, outside, rest, (0.1, 0.3))
    other = pair_weight(outside, rest, inside, n, (0.3, 0.1))
    assert close(-one) == other


def test_a_word_seen_once_in_the_smaller_class_does_not_shout():
    messages = (1000, 10)
    alphas = class_alphas(messages, 0.05)
    plain = pair_weight(1, 10, 0, 1000, (0.05, 0.05))
    assert pair_weight(0, 10, 1, 1000, alphas) < 0 < pair_weight(1, 10, 0, 1000, alphas) < plain
