import math
import random
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from closeness import close
from hypothesis import example, given
from hypothesis import strategies as st
from one_case import each
from random_messages import ALPHAS, Messages, arrays_of, messages, size_of

from nbspam.bayes import evidence
from nbspam.bayes.calibration import INPUT_DECIMALS, calibration_inputs, calibration_specs
from nbspam.bayes.event_model import one_vs_rest_weight, round_to_grid
from nbspam.bayes.fitting import input_matrix
from nbspam.bayes.matrix import evidence_of_rows, rank_weights
from nbspam.tokens.kinds import FIELDS, HEADER, HOST, OPENING, TEXT

# Few different values, so that ties at the edges are the rule; the edges are 0.5 wide.
TIED = st.lists(
    st.sampled_from([-4, -2.75, -2.5, -1, -0.1, 0, 0.1, 0.25, 1, 2.25, 2.5, 3, 4]).map(
        round_to_grid
    ),
    max_size=60,
)
FREE = st.lists(st.floats(-9, 9).map(round_to_grid), max_size=60)
NEAR_0 = st.lists(st.floats(-0.5, 0.5).map(round_to_grid), max_size=60)
WEIGHTS = TIED | FREE | NEAR_0
MOST = st.sampled_from([1, 2, 5, evidence.N_STRONGEST_HEADERS, evidence.N_STRONGEST])
COEFFICIENTS = st.tuples(*[st.floats(-5, 5)] * evidence.WORD_FEATURES)


def group(weights, top_n=evidence.N_STRONGEST):
    return evidence.summarize_group(weights, top_n)


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
    assert evidence.soft_step(strength, edge) == close(expected)


def test_features_of_a_few_weights():
    found = group([3.0, -1.0, 2.5, 0.5])
    assert found.strongest == close(1.25)  # 5 / 4
    assert found.sum == close(0.5)  # 5 / (5 sqrt 4)
    assert found.strong == close(0.9444444444444444)  # (3 + 2.5 / 2) / (1.5 + 3)
    assert found.length == close(-3.1137056388801093)  # ln 4 - 4.5
    assert found.features == (found.strongest, found.sum, found.strong)
    assert found[3:] == (4, close(6), close(-1), 4)


def test_words_alike_count_as_fewer():
    """m of the very same weight as m^.8, in 1/1024: 2 as 1.7412 and 3 as 2.4082."""
    assert [evidence.effective_count(m) for m in (0, 1, 2, 3)] == [0, 1, 1783 / 1024, 2466 / 1024]
    assert evidence.effective_count(10_000) == pytest.approx(10_000**0.8, abs=1 / 2048)
    found = group([3.0, 3.0, -1.0, -1.0, -1.0, 0.5])
    nats = 3 * 1783 / 1024, -2466 / 1024, 0.5
    n = (1783 + 2466) / 1024 + 1
    assert found.strongest == close(sum(nats) / n)
    assert found.sum == close(sum(nats) / (5 * math.sqrt(n)))
    assert found.strong == close(nats[0] / (1783 / 1024 + 3))
    assert found.length == close(math.log(n) - 4.5)
    assert found[3:] == (n, close(nats[0] + 0.5), close(nats[1]), 6)
    # The most similar of other weights are words of their own.
    assert group([3.0, 3.0 + 2**-32]).n == 2


def test_of_the_text_and_the_opening_25_are_the_strongest_and_of_the_header_20():
    strong, weak = [9 + i / 1024 for i in range(-12, 13)], [i / 1024 for i in range(9)]
    opening = strong[1:] + weak
    found = evidence.message_evidence(
        [*strong[1:], 4.0, *weak], [], [*strong[3:-3], 4.0, *weak], opening
    )
    assert found.text.strongest == close((24 * 9 + 12 / 1024 + 2) / 24.5)
    assert found.text_and_fields == found.text
    assert found.header.strongest == close(8.871794871794872)  # (171 + 2) / 19.5
    assert found.opening == group(strong[1:] + weak)


def test_a_group_without_known_words():
    assert group([]) == evidence.GroupSummary(0.0, 0.0, 0.0, 0, 0.0, 0.0)
    assert group([]).length == -evidence.LENGTH_CENTRE
    assert evidence.message_evidence([], [], [], []) == (*[group([])] * 4, None)
    assert evidence.group_shares([], evidence.N_STRONGEST, (1.0, 1.0, 1.0)) == []


def brute_force(weights, top_n):
    """Return the features by their definition."""
    alikes = Counter(map(Fraction, weights))
    times = {w: Fraction(round(m**0.8 * 1024), 1024) for w, m in alikes.items()}
    strengths = sorted(times, key=abs, reverse=True)
    n = sum(times.values(), Fraction(0))

    def parts(edge):
        return {
            w: t * min(Fraction(1), max(Fraction(0), (abs(w) - edge) * 2 + Fraction(1, 2)))
            for w, t in times.items()
        }

    strongest, so_far = times, Fraction(0)
    if n > top_n:
        for edge in strengths:
            so_far += times[edge]
            if so_far >= top_n:
                strongest = parts(abs(edge))
                break
    strong = parts(Fraction(5, 2))
    of_strongest, of_strong, total = (
        sum((w * p for w, p in some.items()), Fraction(0)) for some in (strongest, strong, times)
    )
    return evidence.GroupSummary(
        float(of_strongest / (sum(strongest.values()) or 1)),
        float(total) / (5 * math.sqrt(max(1, n))),
        float(of_strong / (sum(strong.values()) + 3)),
        float(n),
        float(sum(w * t for w, t in times.items() if w > 0)),
        float(sum(w * t for w, t in times.items() if w < 0)),
        len(weights),
    )


@given(WEIGHTS, MOST)
def test_a_group_is_what_its_definition_says(weights, top_n):
    expected, found = brute_force(weights, top_n), group(weights, top_n)
    assert (expected.n, expected.known) == (found.n, found.known)
    assert tuple(found) == close(tuple(expected))


@given(WEIGHTS.filter(bool), MOST, st.data())
def test_no_word_jumps_over_an_edge(weights, top_n, data):
    """Many words have the same counts, and so the same weight; all of them move a little."""
    moved = data.draw(st.sampled_from(weights))
    by = data.draw(st.sampled_from([1e-9, -1e-9]))
    before = group(weights, top_n)
    after = group([w + by if w == moved else w for w in weights], top_n)
    assert pytest.approx(before.features, rel=0, abs=1e-7) == after.features


@given(WEIGHTS, WEIGHTS, WEIGHTS, WEIGHTS, st.randoms(use_true_random=False))
def test_the_groups_of_a_message_whatever_the_order_of_the_words(
    text, fields, header, opening, chance: random.Random
):
    found = evidence.message_evidence(text, fields, header, opening)
    assert found.text == group(text)
    assert found.text_and_fields == group(text + fields)
    assert found.header == group(header, evidence.N_STRONGEST_HEADERS)
    assert found.opening == group(opening)
    mixed = [chance.sample(part, len(part)) for part in (text, fields, header, opening)]
    assert found == evidence.message_evidence(*mixed)


@given(WEIGHTS, MOST)
def test_opposite_weights_have_opposite_features_and_equal_lengths(weights, top_n):
    found, opposite = group(weights, top_n), group([-w for w in weights], top_n)
    assert found.features == close(tuple(-x for x in opposite.features))
    assert found.length == opposite.length
    assert (found.positive, found.negative) == close((-opposite.negative, -opposite.positive))
    both = group(weights + [-w for w in weights], top_n)
    assert both.features == close((0, 0, 0))
    assert both.positive == close(-both.negative)


@given(WEIGHTS, MOST, COEFFICIENTS, st.randoms(use_true_random=False))
def test_the_shares_add_up_to_the_coefficients_times_the_features(
    weights, top_n, coefficients, chance
):
    shares = evidence.group_shares(weights, top_n, coefficients)
    assert len(shares) == len(weights)
    expected = sum(b * x for b, x in zip(coefficients, group(weights, top_n).features, strict=True))
    # The features are sums of what is rounded to the grid, 2e-10 apart; the shares are not rounded.
    assert pytest.approx(expected, abs=1e-7) == sum(shares)
    of_weight: dict[float, float] = {}
    for w, share in zip(weights, shares, strict=True):
        assert close(of_weight.setdefault(w, share)) == share
        if -w in of_weight and weights.count(w) == weights.count(-w):  # words alike count less
            assert close(-of_weight[-w]) == share
    # A word's share does not depend on its place.
    places = chance.sample(range(len(weights)), len(weights))
    mixed = evidence.group_shares([weights[i] for i in places], top_n, coefficients)
    assert [shares[i] for i in places] == mixed


def test_the_shares_of_words_at_the_edges_by_hand():
    # The 2nd strongest has 2.5, as the edge of the strong: the parts are 1, 0.5, 0.5 and 0 in both.
    shares = evidence.group_shares([4.0, 2.5, -2.5, 1.0], 2, (3.0, 0.0, 0.0))
    assert shares == [close(6.0), close(1.875), close(-1.875), 0.0]  # 3 w part / 2
    shares = evidence.group_shares([4.0, 2.5, -2.5, 1.0], 2, (0.0, 0.0, 3.0))
    assert shares == [close(2.4), close(0.75), close(-0.75), 0.0]  # 3 w part / (2 + 3)
    shares = evidence.group_shares([4.0, 2.5, -2.5, 1.0], 2, (0.0, 3.0, 0.0))
    assert shares == [close(1.2), close(0.75), close(-0.75), close(0.3)]  # 3 w / (5 sqrt 4)


# evidence_matrix


TIED_WEIGHTS = [-4.0, -2.75, -2.5, -1.0, -0.1, 0.0, 0.1, 0.25, 1.0, 2.25, 2.5, 4.0]
# As a model's weights are: on the grid.
WEIGHT = (st.sampled_from(TIED_WEIGHTS) | st.floats(-9, 9) | st.floats(-0.5, 0.5)).map(
    round_to_grid
)
CHANNEL = st.sampled_from([TEXT, FIELDS, HEADER, OPENING, HOST])
ENTRY = st.tuples(WEIGHT | st.just(math.nan), CHANNEL)
ROWS = st.lists(st.lists(ENTRY, max_size=60), min_size=1, max_size=8)


def rows_of(table):
    """Return the evidence of many rows of (weight, channel)."""
    rows = np.repeat(np.arange(len(table)), [len(row) for row in table])
    entries = [entry for row in table for entry in row]
    ranks, weights = rank_weights(np.array([w for w, _ in entries], dtype=float))
    channels = np.array([c for _, c in entries], dtype=np.int64)
    return evidence_of_rows(rows, ranks, weights, channels, len(table))


def alone(row, traits=None):
    """Return the evidence of one message of (weight, channel), and the weights of its traits."""
    return evidence.message_evidence(
        *(
            [w for w, c in row if c == channel and not math.isnan(w)]
            for channel in (TEXT, FIELDS, HEADER, OPENING)
        ),
        traits,
    )


def assert_as_each_alone(table, traits=None):
    """Hold the evidence of many rows to that of each, and the inputs made of it.

    traits: of each row, the weights of its traits; None for a model without traits.
    """
    found = rows_of(table)
    own_traits = [None] * len(table)
    if traits is not None:
        own_traits = traits
        found = found._replace(traits=np.array([evidence.trait_feature(some) for some in traits]))
    used = calibration_specs(with_traits=traits is not None)
    for some in found[:4]:
        assert some.shape == (len(table), 7)
    both_inputs = [input_matrix(scale, found) for scale in used]
    assert [x.shape for x in both_inputs] == [(len(table), scale.size) for scale in used]
    yielded = list(found.messages())
    assert len(yielded) == len(table)
    for i, row in enumerate(table):
        expected = alone(row, own_traits[i])
        actual, text_tokens, _ = yielded[i]
        assert text_tokens == sum(c == TEXT for _, c in row)
        assert actual.traits == expected.traits
        for own, other, array in zip(expected[:4], actual[:4], found[:4], strict=True):
            assert own == other == tuple(array[i])  # to the last bit
        for x, own in zip(both_inputs, calibration_inputs(expected), strict=True):
            np.testing.assert_array_equal(x[i], x[i].round(INPUT_DECIMALS))
            np.testing.assert_allclose(x[i], own, rtol=0, atol=5.01e-5)


@given(ROWS, st.booleans(), st.data())
def test_evidence_of_rows_is_that_of_each_alone(table, has_traits, data):
    each = st.lists(st.floats(-9, 9), max_size=7)
    traits = st.lists(each, min_size=len(table), max_size=len(table))
    assert_as_each_alone(table, data.draw(traits) if has_traits else None)


def test_ties_at_the_edge_are_shared_alike():
    weights = [
        (sign * 2.0, channel)
        for channel in (TEXT, FIELDS, HEADER, OPENING)
        for sign in [1, -1] * 8 + [1] * 9
    ]
    stronger = [(9.0, channel) for channel in (TEXT, HEADER, OPENING) for _ in range(7)]
    assert_as_each_alone([weights, weights[::-1], weights[10:] + weights[:10], weights + stronger])
    # Of as many words as are the strongest all are whole.
    just = [(i / 8, TEXT) for i in range(25)] + [(i / 8, HEADER) for i in range(20)]
    one_more = [*just, (1 / 16, TEXT), (1 / 16, HEADER)]
    assert_as_each_alone([just, one_more])
    assert alone(just).text.strongest == pytest.approx(1.5)  # (0 + 1 + … + 24) / 8 / 25
    assert alone(one_more).text.strongest > 1.5
    # Rows without known words have the evidence of nothing.
    for row in ([], [(math.nan, TEXT)] * 3, [(1.0, HOST)], [(math.nan, c) for c in (HEADER, TEXT)]):
        assert_as_each_alone([row, [(3.0, TEXT)], row])
        assert alone(row) == evidence.message_evidence([], [], [], [])


@each("spread", [3, 0.1, 1e-9, 0])
def test_evidence_of_many_long_rows_is_that_of_each_alone(spread):
    chance = np.random.default_rng(0)
    table = []
    for n in (0, 1, 19, 20, 21, 24, 25, 26, 300, 2_000, 0):
        weights = chance.normal(0, spread, n)
        if spread > 1:
            weights = np.round(weights, 1)
        weights = np.round(weights * 2**32) / 2**32
        weights[chance.random(n) < 0.1] = math.nan
        channels = chance.choice([TEXT, TEXT, TEXT, FIELDS, HEADER, HEADER, OPENING, HOST], n)
        table.append(list(zip(weights.tolist(), channels.tolist(), strict=True)))
    assert_as_each_alone(table)
    assert_as_each_alone(table[::-1])


ONE_EACH = Messages(np.array([[1, 0], [1, 1], [1, 1]]), np.array([0, 0, 1]), 2)


@given(messages(), ALPHAS)
@example(ONE_EACH, 0.1)  # the only message of a class, and a token that no other has
def test_weights_left_out_are_those_of_the_other_messages_to_the_last_bit(found, alpha):
    arrays = arrays_of(found, alpha)
    for i in range(len(found.labels)):
        held, others = np.flatnonzero(found.dense[i]), np.arange(len(found.labels)) != i
        rest = Messages(found.dense[others], found.labels[others], found.n_classes)
        rows, size = rest.counts[:, held].T.tolist(), size_of(rest)
        for k in range(found.n_classes):
            actual = arrays.one_vs_rest_weights(
                found.presence[[i]], found.labels[[i]], k, np.ones(1, int)
            )
            weights = [
                one_vs_rest_weight(row, size, k, alpha) if any(row) else math.nan for row in rows
            ]
            np.testing.assert_array_equal(actual, weights)
            assert not np.isinf(actual).any()


@given(st.lists(st.sampled_from([math.nan, -0.0, 0.0]) | st.floats(-30, 30)))
def test_weights_are_ranked_by_their_strength(values):
    ranks, different = rank_weights(np.array(values, float))
    assert different.tolist() == sorted({v for v in values if v == v}, key=lambda v: (-abs(v), v))
    for value, rank in zip(values, ranks.tolist(), strict=True):
        assert rank == -1 if math.isnan(value) else different[rank] == value
