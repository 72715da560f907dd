"""The prior that a base lends: its limits, and how its strength is learned."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.bayes.base_arrays import BasedArrays
from nbspam.bayes.base_prior import (
    FADE,
    NO_LOSSES,
    STRENGTHS,
    WORST,
    based_density,
    based_experience,
    based_trust,
    based_weight,
    first_calibrations,
    log_loss,
    part_of_base,
    strength_of,
    with_message,
)
from nbspam.bayes.calibration import SCALES, UNTRAINED, Calibration, Calibrations
from nbspam.bayes.token_weight import class_alphas, pair_weight

SIZES = st.tuples(st.integers(1, 50), st.integers(1, 50))


@st.composite
def counted(draw):
    """Draw messages of either side, and how many of them have a token."""
    sizes = draw(SIZES)
    return tuple(draw(st.integers(0, n)) for n in sizes), sizes


def close(expected):
    return pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(counted(), counted())
def test_a_base_as_strong_as_its_messages_is_merged(own, base):
    (row, sizes), (base_row, base_sizes) = own, base
    rest, inside = (a + b for a, b in zip(row, base_row, strict=True))
    n = [a + b for a, b in zip(sizes, base_sizes, strict=True)]
    merged = pair_weight(inside, n[1], rest, n[0], class_alphas(n, 0.05))
    assert based_weight(row, sizes, base_row, base_sizes, 1e9, 0.05) == close(merged)


@given(counted(), counted())
def test_a_base_without_strength_is_none(own, base):
    (row, sizes), (base_row, base_sizes) = own, base
    alone = pair_weight(row[1], sizes[1], row[0], sizes[0], class_alphas(sizes, 0.05))
    assert based_weight(row, sizes, base_row, base_sizes, 0.0, 0.05) == close(alone)


@given(counted(), st.floats(0.5, 3000))
def test_without_own_messages_the_base_decides_the_sign(base, strength):
    row, sizes = base
    theta = [c / n for c, n in zip(row, sizes, strict=True)]
    weight = based_weight((0, 0), (0, 0), row, sizes, strength, 1e-9)
    if theta[0] != theta[1] and min(sizes) >= strength:
        assert (weight > 0) == (theta[1] > theta[0])


def test_own_messages_outgrow_the_base():
    weights = [
        based_weight((n // 10, n // 2), (n, n), (40, 4), (100, 100), 100.0, 0.05)
        for n in (0, 10, 100, 1000, 100_000)
    ]
    assert weights == sorted(weights)
    assert weights[0] == pytest.approx(math.log(4 / 40), abs=0.1)
    assert weights[-1] == pytest.approx(math.log(5), abs=0.01)


def test_the_strength_is_between_the_least_and_the_greatest():
    assert strength_of(NO_LOSSES) == pytest.approx(math.prod(STRENGTHS) ** (1 / len(STRENGTHS)))
    for i, strength in enumerate(STRENGTHS):
        losses = [0.0 if i == j else 1e9 for j in range(len(STRENGTHS))]
        assert strength_of(losses) == close(strength)


@given(st.lists(st.floats(-1e6, 1e6), min_size=4, max_size=4), st.booleans())
def test_a_message_adds_a_bounded_loss(log_odds, is_spam):
    losses = with_message((1.0,) * 4, log_odds, is_spam)
    assert all(FADE <= loss <= FADE + WORST for loss in losses)


@given(st.floats(-700, 700), st.booleans())
def test_the_loss_is_that_of_the_probability(log_odds, is_spam):
    p = 1 / (1 + math.exp(-log_odds if is_spam else log_odds))
    assert math.exp(-log_loss(log_odds, is_spam)) == pytest.approx(p, rel=1e-6)


@pytest.mark.parametrize(
    ("n", "n_base", "expected"),
    [(0, 9, 0.5), (9, 0, 0.25), (1, 3, (0.25 + 3 * 0.5) / 4), (5, 5, 0.375)],
)
def test_two_densities_are_mixed_by_their_messages(n, n_base, expected):
    mixed = based_density(math.log(0.25), n, math.log(0.5), n_base)
    assert math.exp(mixed) == close(expected)


def test_what_the_log_odds_stand_on():
    found = based_experience((10, 0), (300, 100), 1, strength=50.0)
    assert found.fewest == 100  # words of both models
    assert found.prior == close(math.log((25 + 0.5) / (10 + 75 + 0.5)))  # 100 messages of the base
    assert 0 < found.margin < 0.35


def test_trust_is_the_bases_until_the_own_hosts_say_otherwise():
    rho, mails = based_trust((0.0, 0.0), 0, (0.5, 400.0), 1000, 100.0)
    assert (rho, mails) == (0.5, 100.0)
    rho, mails = based_trust((1.0, 5000.0), 10_000, (0.5, 400.0), 1000, 100.0)
    assert rho == pytest.approx(0.99, abs=0.01)
    assert mails == 5100.0
    assert based_trust((0.8, 3.0), 50, (0.0, 0.0), 1000, 100.0)[0] == 0.8  # a base without headers


def test_the_part_of_the_base_is_that_of_the_messages_that_speak():
    assert part_of_base((0, 3), (0, 30), (100, 100), 10.0) == close(0.5)
    assert part_of_base((0, 3), (0, 0), (100, 100), 10.0) == 0
    assert part_of_base((0, 0), (1, 0), (100, 100), 10.0) == 1


def test_the_first_calibrations_are_the_bases():
    base = Calibrations(
        *(
            Calibration(tuple(0.1 * i for i in range(s.size)), UNTRAINED[j].precision, ranges(s))
            for j, s in enumerate(SCALES)
        )
    )
    first = first_calibrations(SCALES, base, UNTRAINED, 0)
    for scale, of_base, found in zip(SCALES, base, first, strict=True):
        assert found.coefficients == pytest.approx(of_base.coefficients)
        assert found.ranges == of_base.ranges
        assert [row[i] for i, row in enumerate(found.precision)] == list(scale.precision)
    # Of a model that has learned much without a base it is nearly its own.
    late = first_calibrations(SCALES, base, UNTRAINED, 1_000_000)
    for own, found in zip(UNTRAINED, late, strict=True):
        assert found.coefficients == pytest.approx(own.coefficients, abs=0.01)


def ranges(scale):
    return ((-1.0, 2.0),) * (scale.size - 1)


@given(
    st.lists(st.tuples(counted(), counted()), min_size=1, max_size=6),
    st.sampled_from(STRENGTHS),
    st.sampled_from([0, 1]),
)
def test_arrays_and_single_tokens_weigh_alike(tokens, strength, k):
    sizes, base_sizes = (60, 55), (70, 52)
    counts = np.array([own for (own, _), _ in tokens]).T
    base_counts = np.array([base for _, (base, _) in tokens]).T
    arrays = BasedArrays(counts, sizes, base_counts, base_sizes, strength, 0.05)
    other = 1 - k
    for weight, own, base in zip(arrays.contrasts(k), counts.T, base_counts.T, strict=True):
        if not (own.any() or base.any()):
            assert math.isnan(weight)
            continue
        one = based_weight(
            (own[other], own[k]),
            (sizes[other], sizes[k]),
            (base[other], base[k]),
            (base_sizes[other], base_sizes[k]),
            strength,
            0.05,
        )
        assert weight == close(one)
