import math
import random
from fractions import Fraction

import pytest
from closeness import close
from hypothesis import given
from hypothesis import strategies as st
from one_case import each

from nbspam.bayes.evidence import (
    HEADERS,
    LENGTH_CENTRE,
    STRONGEST,
    WORD_FEATURES,
    Group,
    evidence,
    group_of,
    group_shares,
    part,
)

# Few different values, so that ties at the edges are the rule; the edges are 0.5 wide.
TIED = st.lists(
    st.sampled_from([-4.0, -2.75, -2.5, -1.0, -0.1, 0.0, 0.1, 0.25, 1.0, 2.25, 2.5, 3.0, 4.0]),
    max_size=60,
)
FREE = st.lists(st.floats(-9, 9), max_size=60)
NEAR_0 = st.lists(st.floats(-0.5, 0.5), max_size=60)
WEIGHTS = TIED | FREE | NEAR_0
MOST = st.sampled_from([1, 2, 5, HEADERS, STRONGEST])
COEFFICIENTS = st.tuples(*[st.floats(-5, 5)] * WORD_FEATURES)


def group(weights, most=STRONGEST):
    return group_of(sorted(weights), most)


@each(
    "strength, edge, expected",
    [
        (2.0, 2.5, 0.0),
        (2.25, 2.5, 0.0),
        (2.4, 2.5, 0.3),
        (2.5, 2.5, 0.5),
        (2.6, 2.5, 0.7),
        (2.75, 2.5, 1.0),
        (9.0, 2.5, 1.0),
        (0.0, 0.0, 0.5),
        (0.1, 0.0, 0.7),
        (0.0, -0.5, 1.0),
    ],
)
def test_the_part_of_a_word(strength, edge, expected):
    assert part(strength, edge) == close(expected)


def test_features_of_a_few_weights():
    found = group([3.0, -1.0, 2.5, 0.5])
    assert found.strongest == close(1.25)  # 5 / 4
    assert found.sum == close(0.5)  # 5 / (5 sqrt 4)
    assert found.strong == close(0.9444444444444444)  # (3 + 2.5 / 2) / (1.5 + 3)
    assert found.length == close(-3.1137056388801093)  # ln 4 - 4.5
    assert found.features == (found.strongest, found.sum, found.strong)
    assert (found.n, found.positive, found.negative) == (4, close(6), close(-1))


@each(
    "weights, most, expected",
    [
        # The 2nd strongest has 3: parts 1, 0.5, 0.3 and 0.
        ([4.0, 3.0, -2.9, 1.0], 2, 2.5722222222222224),  # (4 + 1.5 - 0.87) / 1.8
        ([-5.0, 4.0, 0.5, 0.5], 2, -2.0),  # (-5 + 2) / 1.5
        ([2.0, -2.0, 2.0, -3.0], 2, -0.8),  # (1 - 1 + 1 - 3) / 2.5
        # An edge that is nearer to 0 than the half of its width, where words counted twice once.
        ([0.1, -0.1, 0.2, 0.0, 0.0], 2, 0.06086956521739130),  # 0.7 0.2 / (0.5 + 0.5 + 0.7 + 0.6)
        ([0.2, 0.0, 0.0, 0.0], 2, 0.075),  # 0.9 0.2 / (0.9 + 1.5)
        ([0.25, -0.25, 0.0], 1, 0.0),
        ([0.0, 0.0], 1, 0.0),
    ],
)
def test_the_strongest_of_a_few_weights(weights, most, expected):
    assert group(weights, most).strongest == close(expected)


def test_of_the_text_25_are_the_strongest_and_of_the_header_20():
    found = evidence([9.0] * 24 + [4.0] + [1.0] * 9, [], [9.0] * 19 + [4.0] + [1.0] * 9)
    assert found.text.strongest == close(8.897959183673469)  # (216 + 2) / 24.5
    assert found.text_and_fields == found.text
    assert found.header.strongest == close(8.871794871794872)  # (171 + 2) / 19.5


def test_a_group_without_known_words():
    assert group([]) == Group(0.0, 0.0, 0.0, 0, 0.0, 0.0)
    assert group([]).length == -LENGTH_CENTRE
    assert evidence([], [], []) == (group([]), group([]), group([]), None)
    assert group_shares([], STRONGEST, (1.0, 1.0, 1.0)) == []


def brute_force(weights, most):
    """Return the features by their definition."""
    exact = [Fraction(w) for w in weights]
    strengths = sorted(map(abs, exact), reverse=True)

    def parts(edge):
        return [
            min(Fraction(1), max(Fraction(0), (abs(w) - edge) * 2 + Fraction(1, 2))) for w in exact
        ]

    strongest = parts(strengths[most - 1]) if len(exact) > most else [Fraction(1)] * len(exact)
    strong = parts(Fraction(5, 2))
    of_strongest, of_strong = (
        sum((w * p for w, p in zip(exact, some, strict=True)), Fraction(0))
        for some in (strongest, strong)
    )
    return Group(
        float(of_strongest / (sum(strongest) or 1)),
        float(sum(exact)) / (5 * math.sqrt(max(1, len(exact)))),
        float(of_strong / (sum(strong) + 3)),
        len(exact),
        float(sum(w for w in exact if w > 0)),
        float(sum(w for w in exact if w < 0)),
    )


@given(WEIGHTS, MOST)
def test_a_group_is_what_its_definition_says(weights, most):
    expected, found = brute_force(weights, most), group(weights, most)
    assert expected.n == found.n
    assert pytest.approx(tuple(expected), rel=1e-12, abs=1e-12) == tuple(found)


@given(WEIGHTS.filter(bool), MOST, st.data())
def test_no_word_jumps_over_an_edge(weights, most, data):
    """Many words have the same counts, and so the same weight; all of them move a little."""
    moved = data.draw(st.sampled_from(weights))
    by = data.draw(st.sampled_from([1e-9, -1e-9]))
    before = group(weights, most)
    after = group([w + by if w == moved else w for w in weights], most)
    assert pytest.approx(before.features, rel=0, abs=1e-7) == after.features


@given(WEIGHTS, WEIGHTS, WEIGHTS, st.randoms(use_true_random=False))
def test_the_groups_of_a_message_whatever_the_order_of_the_words(
    text, fields, header, chance: random.Random
):
    found = evidence(text, fields, header)
    assert found.text == group(text)
    assert found.text_and_fields == group(text + fields)
    assert found.header == group(header, HEADERS)
    mixed = [chance.sample(part, len(part)) for part in (text, fields, header)]
    assert found == evidence(*mixed)


@given(WEIGHTS, MOST)
def test_opposite_weights_have_opposite_features_and_equal_lengths(weights, most):
    found, opposite = group(weights, most), group([-w for w in weights], most)
    assert found.features == close(tuple(-x for x in opposite.features))
    assert found.length == opposite.length
    assert (found.positive, found.negative) == close((-opposite.negative, -opposite.positive))
    both = group(weights + [-w for w in weights], most)
    assert both.features == close((0, 0, 0))
    assert both.positive == close(-both.negative)


@given(WEIGHTS, MOST, COEFFICIENTS, st.randoms(use_true_random=False))
def test_the_shares_add_up_to_the_coefficients_times_the_features(
    weights, most, coefficients, chance
):
    shares = group_shares(weights, most, coefficients)
    assert len(shares) == len(weights)
    expected = sum(b * x for b, x in zip(coefficients, group(weights, most).features, strict=True))
    assert close(expected) == sum(shares)
    of_weight: dict[float, float] = {}
    for w, share in zip(weights, shares, strict=True):
        assert close(of_weight.setdefault(w, share)) == share
        if -w in of_weight:
            assert close(-of_weight[-w]) == share
    # A word's share does not depend on its place.
    places = chance.sample(range(len(weights)), len(weights))
    mixed = group_shares([weights[i] for i in places], most, coefficients)
    assert [shares[i] for i in places] == pytest.approx(mixed, rel=1e-12, abs=1e-12)


def test_the_shares_of_words_at_the_edges_by_hand():
    # The 2nd strongest has 2.5, as the edge of the strong: the parts are 1, 0.5, 0.5 and 0 in both.
    shares = group_shares([4.0, 2.5, -2.5, 1.0], 2, (3.0, 0.0, 0.0))
    assert shares == [close(6.0), close(1.875), close(-1.875), 0.0]  # 3 w part / 2
    shares = group_shares([4.0, 2.5, -2.5, 1.0], 2, (0.0, 0.0, 3.0))
    assert shares == [close(2.4), close(0.75), close(-0.75), 0.0]  # 3 w part / (2 + 3)
    shares = group_shares([4.0, 2.5, -2.5, 1.0], 2, (0.0, 3.0, 0.0))
    assert shares == [close(1.2), close(0.75), close(-0.75), close(0.3)]  # 3 w / (5 sqrt 4)
