"""The weight of presence, one class against the rest."""

import math

import pytest
from closeness import close
from hypothesis import given
from hypothesis import strategies as st

from nbspam.bayes import token_weight
from nbspam.bayes.bernoulli import Bernoulli, weight
from nbspam.bayes.token_weight import class_alphas, pair_weight


def contrast(row, messages, k, alpha):
    """Return the weight of a token counted in messages, of which a token is in or is not."""
    return token_weight.contrast(row, Bernoulli().size([], messages), k, alpha)


@given(st.lists(st.integers(0, 1000), min_size=2, max_size=5), st.floats(1e-6, 1e6))
def test_class_alphas_average_alpha_and_are_above_nothing(messages, alpha):
    found = class_alphas(messages, alpha)
    assert close(alpha) == sum(found) / len(found)
    assert min(found) > 0
    assert sorted(found) == [a for _, a in sorted(zip(messages, found, strict=True))]


def test_a_pairs_weight_by_hand():
    theta, theta_rest = (3 + 0.2) / (4 + 0.4), (1 + 0.1) / (9 + 0.2)
    assert close(math.log(theta / theta_rest)) == pair_weight(3, 4, 1, 9, (0.1, 0.2))
    # A word seen once in the smaller class does not get an extreme weight.
    alphas, plain = class_alphas((1000, 10), 0.05), pair_weight(1, 10, 0, 1000, (0.05, 0.05))
    assert pair_weight(0, 10, 1, 1000, alphas) < 0 < pair_weight(1, 10, 0, 1000, alphas) < plain


def test_a_token_that_nearly_all_of_both_classes_have_says_next_to_nothing():
    """2,365 of 2,500 ham and 500 of 500 spam: 1.06 : 1; the difference of logits said +7.4."""
    found = contrast((2365, 500), (2500, 500), 1, 0.05)
    assert math.log(2500 / 2365) == pytest.approx(found, abs=1e-4)
    assert 0.05 < found < 0.06
    assert weight(500, 500, 0.05) - weight(2365, 2500, 0.05) > 6


COUNT = st.integers(0, 500)
PAIRS = st.tuples(COUNT, COUNT, COUNT, COUNT).map(
    lambda drawn: (drawn[0], drawn[0] + drawn[1], drawn[2], drawn[2] + drawn[3])
)


@given(PAIRS, st.floats(1e-6, 10), st.floats(1e-6, 10))
def test_classes_changed_over_change_the_sign(pair, alpha, other):
    inside, n, outside, rest = pair
    one = pair_weight(inside, n, outside, rest, (alpha, other))
    assert -one == pair_weight(outside, rest, inside, n, (other, alpha))


@given(COUNT, COUNT, COUNT, st.floats(1e-6, 10))
def test_mirrored_counts_of_equal_classes_have_exactly_opposite_weights(a, b, more, alpha):
    n = max(a, b) + more
    assert contrast((a, b), (n, n), 1, alpha) == -contrast((b, a), (n, n), 1, alpha)
    assert contrast((a, b), (n, n), 1, alpha) == -contrast((a, b), (n, n), 0, alpha)
    assert contrast((a, a), (n, n), 1, alpha) == 0


@st.composite
def rows(draw):
    """Draw counts of a token in two to four classes, and their messages."""
    messages = draw(st.lists(st.integers(0, 3000), min_size=2, max_size=4))
    return tuple(draw(st.integers(0, n)) for n in messages), tuple(messages)


@given(rows(), st.floats(1e-4, 10), st.data())
def test_no_weight_exceeds_what_its_counts_say(drawn, alpha, data):
    row, messages = drawn
    k = data.draw(st.integers(0, len(row) - 1))
    n, rest = messages[k], sum(messages) - messages[k]
    a_rest, a = class_alphas((rest, n), alpha)
    share = (row[k] + a) / (n + 2 * a)
    share_of_rest = (sum(row) - row[k] + a_rest) / (rest + 2 * a_rest)
    found = contrast(row, messages, k, alpha)
    assert close(math.log(share / share_of_rest)) == found
    assert abs(found) <= abs(math.log(share / share_of_rest)) + 1e-9
    # Nor what a share can be at most: 1, and at least that of no message.
    assert found <= -math.log(a_rest / (rest + 2 * a_rest)) + 1e-9
    assert found >= math.log(a / (n + 2 * a)) - 1e-9


@given(st.integers(1, 3000), st.integers(1, 3000), st.integers(0, 3000), st.floats(1e-4, 1))
def test_a_weight_rises_with_the_count_inside_and_falls_with_that_outside(n, rest, count, alpha):
    inside, outside = count % n, count % rest
    found = contrast((outside, inside), (rest, n), 1, alpha)
    assert contrast((outside, inside + 1), (rest, n), 1, alpha) > found
    assert contrast((outside + 1, inside), (rest, n), 1, alpha) < found
    # Of a token of every message only the smoothing says something.
    assert abs(contrast((rest, n), (rest, n), 1, alpha)) <= 2 * alpha * 2
