import math
import random
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbspam.bayes.evidence import (
    HEADERS,
    LENGTH_CENTRE,
    STRONG,
    STRONG_SHRINK,
    STRONGEST,
    SUM_SCALE,
    WORD_FEATURES,
    Edge,
    Group,
    edge_of,
    evidence,
    group_of,
    group_shares,
)

# Few different values, so that ties at the edge of the strongest are the rule.
TIED = st.lists(st.sampled_from([-4.0, -3.0, -2.5, -1.0, 0.0, 1.0, 2.5, 3.0, 4.0]), max_size=60)
FREE = st.lists(st.floats(-20, 20), max_size=60)
WEIGHTS = TIED | FREE
MOST = st.sampled_from([1, 2, 5, HEADERS, STRONGEST])
COEFFICIENTS = st.tuples(*[st.floats(-5, 5)] * WORD_FEATURES)


def close(expected):
    return pytest.approx(expected, rel=1e-9, abs=1e-9)


def group(weights, most=STRONGEST):
    return group_of(sorted(weights), most)


# The definition, by hand


def test_features_of_a_few_weights():
    found = group([3.0, -1.0, 2.5, 0.5])
    assert found.strongest == close((3 - 1 + 2.5 + 0.5) / 4)
    assert found.sum == close(5 / (SUM_SCALE * 2))
    assert found.strong == close((3 + 2.5) / (2 + STRONG_SHRINK))
    assert found.length == close(math.log(4) - LENGTH_CENTRE)
    assert found.features == (found.strongest, found.sum, found.strong)
    assert (found.n, found.positive, found.negative) == (4, close(6), close(-1))


def test_the_strongest_alone_are_in_their_mean():
    weights = [5.0] * STRONGEST + [1.0] * 100
    n = STRONGEST + 100
    assert group(weights).strongest == close(5)
    assert group(weights).sum == close((5 * STRONGEST + 100) / (SUM_SCALE * n**0.5))


def test_the_strongest_are_so_on_either_side():
    weights = [-5.0] * 15 + [4.0] * 10 + [0.5] * 30
    assert group(weights, 25).strongest == close(-35 / 25)


def test_of_the_header_channel_fewer_are_among_the_strongest():
    found = evidence([5.0] * 20 + [1.0] * 5, [], [5.0] * 20 + [1.0] * 5)
    assert found.text.strongest == close((100 + 5) / 25)
    assert found.header.strongest == close(5)


@pytest.mark.parametrize(
    ("weights", "most", "edge"),
    [
        ([], 3, Edge(math.inf, 0.0, 0)),
        ([1.0], 3, Edge(1.0, 1.0, 1)),
        ([0.0, 0.0], 1, Edge(0.0, 0.5, 1)),
        ([2.0, -2.0, 1.0, -3.0], 2, Edge(2.0, 0.5, 2)),
        ([2.0, -2.0, 1.0, -3.0], 3, Edge(2.0, 1.0, 3)),
        ([2.0, -2.0, 2.0, -3.0], 2, Edge(2.0, 1 / 3, 2)),
        ([1.0, 1.0, 1.0, 1.0], 3, Edge(1.0, 0.75, 3)),
    ],
)
def test_the_edge_of_a_few_weights(weights, most, edge):
    found = edge_of(sorted(weights), most)
    assert (found.strength, found.n) == (edge.strength, edge.n)
    assert found.part == close(edge.part)


def test_ties_on_both_sides_of_the_edge_cancel_out():
    assert group([2.0] * STRONGEST + [-2.0] * STRONGEST).strongest == close(0)
    assert group([3.0] * (STRONGEST - 1) + [1.0, -1.0]).strongest == close(
        3 * (STRONGEST - 1) / STRONGEST
    )


def test_strong_begins_at_its_bound():
    for sign in (1, -1):
        assert group([sign * STRONG]).strong == close(sign * STRONG / (1 + STRONG_SHRINK))
        assert group([sign * (STRONG - 1e-9)]).strong == 0


def test_a_group_without_known_words():
    assert group([]) == Group(0.0, 0.0, 0.0, 0, 0.0, 0.0)
    assert group([]).length == -LENGTH_CENTRE
    assert evidence([], [], []) == (group([]), group([]), group([]), None)


def test_the_groups_of_a_message():
    text, fields, header = [1.0, -4.0], [3.0], [-2.0, 2.5]
    found = evidence(text, fields, header)
    assert found.text == group(text)
    assert found.text_and_fields == group(text + fields)
    assert found.header == group(header, HEADERS)
    assert evidence(text, [], header).text_and_fields == group(text)


# The definition, by brute force, in exact fractions


def brute_force(weights, most):
    """Return the features by their definition; equally strong words at the edge share alike."""
    exact = [Fraction(w) for w in weights]
    strengths = sorted(map(abs, exact), reverse=True)[:most]
    places = Fraction(strengths.count(strengths[-1])) if strengths else Fraction(0)
    rivals = [abs(w) == strengths[-1] for w in exact]
    parts = [
        places / sum(rivals) if is_rival else int(abs(w) > strengths[-1])
        for w, is_rival in zip(exact, rivals, strict=True)
    ]
    strong = [w for w in exact if abs(w) >= STRONG]
    return Group(
        float(sum(w * p for w, p in zip(exact, parts, strict=True)) / max(1, len(strengths))),
        float(sum(exact)) / (SUM_SCALE * math.sqrt(max(1, len(exact)))),
        float(sum(strong) / (len(strong) + Fraction(STRONG_SHRINK))),
        len(exact),
        float(sum(w for w in exact if w > 0)),
        float(sum(w for w in exact if w < 0)),
    )


def assert_equal(expected: Group, found: Group):
    assert expected.n == found.n
    assert pytest.approx(tuple(expected), rel=1e-12, abs=1e-12) == tuple(found)


@settings(deadline=None, max_examples=300)
@given(WEIGHTS, MOST)
def test_a_group_is_what_its_definition_says(weights, most):
    assert_equal(brute_force(weights, most), group(weights, most))


@given(WEIGHTS, MOST)
def test_the_parts_of_the_strongest_add_up_to_their_number(weights, most):
    edge = edge_of(sorted(weights), most)
    assert edge.n == min(most, len(weights))
    parts = [edge.part_of(w) for w in weights]
    assert sum(parts) == close(edge.n)
    assert all(0 <= part <= 1 for part in parts)


# What holds for any weights


@given(WEIGHTS, WEIGHTS, WEIGHTS, st.randoms(use_true_random=False))
def test_the_order_of_the_words_does_not_matter(text, fields, header, chance: random.Random):
    mixed = [chance.sample(part, len(part)) for part in (text, fields, header)]
    assert evidence(text, fields, header) == evidence(*mixed)


@given(WEIGHTS, WEIGHTS)
def test_a_group_does_not_depend_on_the_others(weights, others):
    assert evidence(weights, others, others).text == evidence(weights, [], []).text
    assert evidence(others, others, weights).header == evidence([], [], weights).header
    assert evidence(weights, others, others[:1]).text_and_fields == group(weights + others)


@given(WEIGHTS, MOST)
def test_opposite_weights_have_opposite_features_and_equal_lengths(weights, most):
    found, opposite = group(weights, most), group([-w for w in weights], most)
    for one, other in zip(found.features, opposite.features, strict=True):
        assert close(one) == -other
    assert found.length == opposite.length
    assert (found.positive, found.negative) == (
        close(-opposite.negative),
        close(-opposite.positive),
    )


@given(WEIGHTS, MOST)
def test_the_features_of_a_mirrored_message_are_nothing(weights, most):
    both = group(weights + [-w for w in weights], most)
    assert both.features == (close(0), close(0), close(0))
    assert both.positive == close(-both.negative)


@given(WEIGHTS, MOST, COEFFICIENTS)
def test_the_shares_add_up_to_the_coefficients_times_the_features(weights, most, coefficients):
    shares = group_shares(weights, most, coefficients)
    assert len(shares) == len(weights)
    expected = sum(b * x for b, x in zip(coefficients, group(weights, most).features, strict=True))
    assert close(expected) == sum(shares)


@given(TIED, MOST, COEFFICIENTS)
def test_equal_weights_have_equal_shares_and_opposite_ones_opposite_shares(
    weights, most, coefficients
):
    of_weight: dict[float, float] = {}
    for w, share in zip(weights, group_shares(weights, most, coefficients), strict=True):
        assert close(of_weight.setdefault(w, share)) == share
        if -w in of_weight:
            assert close(-of_weight[-w]) == share


@given(TIED, MOST, COEFFICIENTS, st.randoms(use_true_random=False))
def test_a_words_share_does_not_depend_on_its_place(weights, most, coefficients, chance):
    places = chance.sample(range(len(weights)), len(weights))
    shares = group_shares(weights, most, coefficients)
    mixed = group_shares([weights[i] for i in places], most, coefficients)
    assert [shares[i] for i in places] == pytest.approx(mixed, rel=1e-12, abs=1e-12)


def test_a_tie_at_the_edge_of_the_strongest_is_shared():
    weights = [3.0] * (STRONGEST - 1) + [1.0] * 2 + [-1.0] * 2 + [0.5]
    shares = group_shares(weights, STRONGEST, (1.0, 0.0, 0.0))
    assert shares[:-5] == [close(3 / STRONGEST)] * (STRONGEST - 1)
    assert shares[-5:-3] == [close(1 / STRONGEST / 4)] * 2
    assert shares[-3:-1] == [close(-1 / STRONGEST / 4)] * 2
    assert shares[-1] == 0


def test_no_words_have_no_shares():
    assert group_shares([], STRONGEST, (1.0, 1.0, 1.0)) == []
