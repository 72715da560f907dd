import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from nbspam.bayes import evidence_matrix as fit_module
from nbspam.bayes.calibration import (
    FIRM,
    FORGET,
    PRECISION,
    PRIOR_MEAN,
    SIZE,
    Calibration,
    is_positive_definite,
    pooled,
    prior_precision,
    solve,
    untrained,
    update,
)
from nbspam.bayes.evidence_matrix import fit_calibration

VIEW = st.floats(-6, 6)
FEATURES = st.tuples(*[VIEW] * (SIZE - 1))
OFFSETS = st.floats(-1, 1)
HISTORY = st.lists(st.tuples(FEATURES, OFFSETS, st.booleans()), max_size=15)


def after(history, start=None):
    found = start or untrained()
    for features, offset, is_spam in history:
        found = update(found, features, offset, is_spam)
    return found


def arrays(found: Calibration):
    return np.array(found.coefficients), np.array(found.precision)


def assert_sound(found: Calibration):
    coefficients, precision = arrays(found)
    assert np.isfinite(coefficients).all()
    assert np.isfinite(precision).all()
    np.testing.assert_allclose(precision, precision.T, rtol=1e-9, atol=1e-12)
    assert np.linalg.eigvalsh(precision).min() > 0


# One message


def rested(before: Calibration) -> Calibration:
    """Return the calibration after a message beyond doubt: it forgets, and learns nothing."""
    return update(before, (0.0,) * (SIZE - 1), 1000.0, True)


@settings(deadline=None, max_examples=60)
@given(HISTORY, FEATURES, OFFSETS, st.booleans())
def test_an_update_is_the_mode_of_its_objective(history, features, offset, is_spam):
    before = after(history)
    b, precision = arrays(rested(before))
    x = np.array([1, *features])
    y = float(is_spam)

    def objective(c):
        z = x @ c + offset
        return np.logaddexp(0, z) - y * z + 0.5 * (c - b) @ precision @ (c - b)

    def gradient(c):
        return x * (1 / (1 + np.exp(-(x @ c + offset))) - y) + precision @ (c - b)

    def hessian(c):
        p = 1 / (1 + np.exp(-(x @ c + offset)))
        return p * (1 - p) * np.outer(x, x) + precision

    found = minimize(
        objective, b, jac=gradient, hess=hessian, method="trust-exact", options={"gtol": 1e-10}
    )
    coefficients, actual_precision = arrays(update(before, features, offset, is_spam))
    np.testing.assert_allclose(coefficients, found.x, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(gradient(coefficients), 0, atol=1e-9)
    np.testing.assert_allclose(actual_precision, hessian(coefficients), rtol=1e-9, atol=1e-9)


@given(HISTORY)
def test_forgetting_decays_to_a_prior_and_never_below(history):
    before = after(history)
    _, old = arrays(before)
    _, new = arrays(rested(before))
    added = new - FORGET * old
    np.testing.assert_allclose(added, np.diag(np.diag(added)), atol=1e-12)
    assert (np.diag(added) >= 0.999 * (1 - FORGET) * np.array(PRECISION)).all()


@given(HISTORY)
def test_any_history_leaves_a_sound_calibration(history):
    assert_sound(after(history))


@given(st.lists(st.tuples(st.tuples(*[st.floats(-1e3, 1e3)] * 4), st.booleans()), max_size=10))
def test_wild_features_leave_a_finite_calibration(history):
    found = after([(features, 0.0, is_spam) for features, is_spam in history])
    assert np.isfinite(arrays(found)[0]).all()
    assert np.isfinite(arrays(found)[1]).all()


def test_a_message_moves_the_calibration_toward_itself():
    features = (2.0, 1.0, 1.0, 0.0)
    for is_spam in (True, False):
        before, now = untrained(), update(untrained(), features, 0.0, is_spam)
        moved = sum(
            (a - b) * x
            for a, b, x in zip(now.coefficients, before.coefficients, (1, *features), strict=True)
        )
        assert (moved > 0) == is_spam


def test_the_first_precision_is_the_firmest_priors():
    diagonal = np.diag(arrays(untrained())[1])
    assert diagonal.tolist() == pytest.approx([p * (1 + FIRM) for p in PRECISION])
    assert untrained().coefficients == PRIOR_MEAN


def test_the_prior_is_the_less_firm_the_more_messages_there_are():
    assert prior_precision(0) == prior_precision(1)
    assert prior_precision(10**9) == pytest.approx(PRECISION, rel=1e-6)
    assert all(a > b for a, b in zip(prior_precision(5), prior_precision(50), strict=True))


# Many messages


def easy(chance: random.Random, is_spam: bool):
    sign = 1 if is_spam else -1
    return (*(sign * chance.uniform(3, 5) for _ in range(3)), chance.gauss(0, 1))


@pytest.fixture(scope="module")
def seasoned():
    """Return the calibration after 20,000 easy messages, which bring next to no precision."""
    chance = random.Random(1)
    found = untrained()
    for i in range(20_000):
        found = update(found, easy(chance, bool(i % 2)), 0.0, bool(i % 2))
        if i % 1000 == 0:
            assert_sound(found)
    return found


def share_right(found, chance):
    """Return the share of easy messages that a calibration gets right."""
    z = [(np.dot((1, *easy(chance, label)), found.coefficients), label) for label in [0, 1] * 100]
    return sum((nats > 0) == label for nats, label in z) / len(z)


def test_twenty_thousand_easy_messages_leave_a_sound_calibration(seasoned):
    assert_sound(seasoned)
    # It decays to the prior's precision and never below.
    _, precision = arrays(seasoned)
    assert np.linalg.eigvalsh(precision - 0.99 * np.diag(PRECISION)).min() > 0
    assert share_right(seasoned, random.Random(2)) == 1


def test_a_surprising_message_after_many_easy_ones_leaves_a_sound_calibration(seasoned):
    assert_sound(update(seasoned, easy(random.Random(2), True), 0.0, False))
    assert_sound(update(seasoned, (-50.0, -9.0, -50.0, 3.0), 1.0, True))


# With a floor of the prior's own precision all easy spam was ham after one wrong label.
def test_a_mislabelled_message_after_many_easy_ones_does_not_turn_the_filter(seasoned):
    now = update(seasoned, (4.0, 4.0, 4.0, 0.0), 0.0, False)
    assert share_right(now, random.Random(3)) == 1


def test_a_mislabelled_message_that_was_sure_moves_the_calibration_little():
    chance = random.Random(2)
    found = after([(easy(chance, bool(i % 2)), 0.0, bool(i % 2)) for i in range(500)])
    b, precision = arrays(found)
    x = np.array([1, *easy(chance, True)])
    z = x @ b
    assert z > 5
    now, _ = arrays(update(found, tuple(x[1:]), 0.0, False))
    # The step of the extended Kalman filter would be this spread, all of it.
    assert z - x @ now < x @ np.linalg.solve(precision, x)
    assert x @ now > 1
    assert np.abs(now - b).max() < 1
    assert share_right(update(found, tuple(x[1:]), 0.0, False), chance) == 1


def test_each_of_one_class_leaves_a_sound_calibration():
    chance = random.Random(3)
    for is_spam in (True, False):
        assert_sound(after([(easy(chance, is_spam), 0.0, is_spam) for _ in range(3_000)]))


# Linear equations


@given(st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_solve_is_numpys(n, seed):
    chance = np.random.default_rng(seed)
    half = chance.normal(size=(n, n))
    matrix = half @ half.T + 0.1 * np.eye(n)
    right = chance.normal(size=n)
    expected = np.linalg.solve(matrix, right)
    np.testing.assert_allclose(solve(matrix.tolist(), right.tolist()), expected, rtol=1e-7)


def test_solve_leaves_what_it_was_given_alone():
    matrix, right = [[2.0, 1.0], [1.0, 3.0]], [1.0, 2.0]
    assert solve(matrix, right) == pytest.approx([0.2, 0.6])
    assert (matrix, right) == ([[2.0, 1.0], [1.0, 3.0]], [1.0, 2.0])


# The fit


def drawn(n, seed=0, true=(0.3, 1.0, 0.5, -0.4, 0.2)):
    """Return features, offsets and labels of n messages that follow the model."""
    chance = np.random.default_rng(seed)
    features = chance.normal(size=(n, SIZE - 1))
    offset = chance.uniform(-1, 1, n)
    z = np.column_stack((np.ones(n), features)) @ np.array(true) + offset
    return features, offset, chance.random(n) < 1 / (1 + np.exp(-z))


def derivative(found, features, offset, is_spam):
    """Return the objective's gradient at the coefficients found."""
    fewest = min(int(is_spam.sum()), int((~is_spam).sum()))
    x = np.column_stack((np.ones(len(features)), features))
    b, _ = arrays(found)
    p = 1 / (1 + np.exp(-(x @ b + offset)))
    return x.T @ (p - is_spam) + np.array(prior_precision(fewest)) * (b - np.array(PRIOR_MEAN))


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(FEATURES, OFFSETS, st.booleans()), min_size=1, max_size=30),
)
def test_the_fit_is_the_mode(messages):
    features = np.array([m[0] for m in messages])
    offset = np.array([m[1] for m in messages])
    is_spam = np.array([m[2] for m in messages])
    found = fit_calibration(features, offset, is_spam)
    assert_sound(found)
    np.testing.assert_allclose(derivative(found, features, offset, is_spam), 0, atol=1e-4)


def test_the_fit_of_many_messages_is_the_mode_and_near_the_truth():
    features, offset, is_spam = drawn(20_000)
    found = fit_calibration(features, offset, is_spam)
    np.testing.assert_allclose(derivative(found, features, offset, is_spam), 0, atol=1e-3)
    np.testing.assert_allclose(found.coefficients, (0.3, 1.0, 0.5, -0.4, 0.2), atol=0.1)


def test_the_precision_is_the_second_derivative():
    features, offset, is_spam = drawn(200)
    found = fit_calibration(features, offset, is_spam)
    b, precision = arrays(found)
    step = 1e-5
    for i in range(SIZE):
        up, down = (
            derivative(
                found._replace(coefficients=tuple(b + sign * step * np.eye(SIZE)[i])),
                features,
                offset,
                is_spam,
            )
            for sign in (1, -1)
        )
        np.testing.assert_allclose((up - down) / (2 * step), precision[i], rtol=1e-5, atol=1e-5)


def test_with_a_weak_prior_the_fit_is_scikit_learns(monkeypatch):
    monkeypatch.setattr(fit_module, "prior_precision", lambda fewest: (1e-9,) * SIZE)
    features, offset, is_spam = drawn(500, seed=4)
    offset[:] = 0
    found = fit_calibration(features, offset, is_spam)
    reference = LogisticRegression(C=1e12, tol=1e-12, max_iter=10_000).fit(features, is_spam)
    expected = [reference.intercept_[0], *reference.coef_[0]]
    np.testing.assert_allclose(found.coefficients, expected, rtol=1e-4, atol=1e-4)


def test_offsets_are_taken_off_the_constant():
    features, _, is_spam = drawn(5_000, seed=5)
    plain, moved = (
        fit_calibration(features, np.full(len(features), by), is_spam).coefficients
        for by in (0.0, 0.5)
    )
    assert moved[0] == pytest.approx(plain[0] - 0.5, abs=0.01)
    assert moved[1:] == pytest.approx(plain[1:], abs=0.01)


def test_separable_messages_have_a_finite_fit():
    chance = random.Random(6)
    features = np.array([easy(chance, bool(i % 2)) for i in range(1_000)])
    found = fit_calibration(features, np.zeros(1_000), np.arange(1_000) % 2 == 1)
    assert_sound(found)
    assert max(map(abs, found.coefficients)) < 20


@pytest.mark.parametrize(
    ("ham", "spam"),
    [
        ((-1.0, -0.5, -0.5, -2.0), (1.0, 0.5, 0.5, -2.0)),
        ((1.0, 0.2, 0.0, -2.0), (1.0, 0.2, 0.0, -2.0)),  # left out of two, both look the same
        ((0.0, 0.0, 0.0, -4.5), (0.0, 0.0, 0.0, -4.5)),
        ((2.0, 1.0, 1.0, -2.0), (-2.0, -1.0, -1.0, -2.0)),  # and often the wrong way round
    ],
)
def test_one_message_of_each_class_gives_sane_signs(ham, spam):
    found = fit_calibration(np.array([ham, spam]), np.zeros(2), np.array([False, True]))
    assert_sound(found)
    constant, *of_features, of_length = found.coefficients
    assert all(c > 0 for c in of_features)
    assert abs(constant) < 0.5
    assert abs(of_length) < 0.5


def test_learning_one_by_one_ends_near_the_fit_of_all():
    features, offset, is_spam = drawn(3_000, seed=7)
    found = untrained()
    for feature, nats, label in zip(
        features.tolist(), offset.tolist(), is_spam.tolist(), strict=True
    ):
        found = update(found, feature, nats, label)
    whole = fit_calibration(features, offset, is_spam)
    np.testing.assert_allclose(found.coefficients, whole.coefficients, atol=0.4)


# Several calibrations together


def calibrations():
    """Draw a calibration as learning leaves it, with the messages in the smaller class."""
    return st.tuples(st.builds(after, HISTORY), st.integers(0, 1000))


@st.composite
def any_calibration(draw):
    """Draw a calibration that no training could have left: any precision, coefficients far off."""
    chance = np.random.default_rng(draw(st.integers(0, 2**32)))
    root = chance.normal(size=(SIZE, SIZE)) * 10.0 ** draw(st.integers(-2, 3))
    precision = root @ root.T + 1e-3 * np.eye(SIZE)
    rows = tuple(map(tuple, precision.tolist()))
    return Calibration(tuple((100 * chance.normal(size=SIZE)).tolist()), rows), draw(
        st.integers(0, 1000)
    )


@settings(deadline=None, max_examples=60)
@given(st.lists(calibrations() | any_calibration(), min_size=1, max_size=5), st.integers(0, 5000))
def test_calibrations_together_are_one_between_them(parts, fewest):
    found = pooled(parts, fewest)
    assert_sound(found)
    every = np.array([calibration.coefficients for calibration, _ in parts])
    b = np.array(found.coefficients)
    room = 1e-9 * (1 + abs(every).max())
    assert (every.min(axis=0) - room <= b).all()
    assert (b <= every.max(axis=0) + room).all()


@settings(deadline=None, max_examples=60)
@given(st.lists(calibrations(), min_size=2, max_size=4), st.randoms(use_true_random=False))
def test_the_order_of_calibrations_does_not_matter(parts, chance):
    shuffled = chance.sample(parts, len(parts))
    for a, b in zip(arrays(pooled(parts, 50)), arrays(pooled(shuffled, 50)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


@settings(deadline=None, max_examples=60)
@given(calibrations())
def test_one_calibration_alone_stays_as_it_is(part):
    calibration, fewest = part
    for a, b in zip(arrays(pooled([part], fewest)), arrays(calibration), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


def fitted(chance, n):
    """Return a fit to `n` messages, half of them spam, and their features, offsets and labels."""
    is_spam = np.arange(n) % 2 == 1
    features = chance.normal(size=(n, SIZE - 1)) + is_spam[:, None]
    return fit_calibration(features, np.zeros(n), is_spam), features


def test_what_messages_brought_adds_up_and_the_prior_counts_once():
    chance = np.random.default_rng(4)
    (a, _), (b, _) = fitted(chance, 60), fitted(chance, 200)
    found = np.array(pooled([(a, 30), (b, 100)], 130).precision)
    brought = [np.array(c.precision) - np.diag(prior_precision(n)) for c, n in ((a, 30), (b, 100))]
    np.testing.assert_allclose(sum(brought) + np.diag(prior_precision(130)), found, rtol=1e-9)


def test_the_calibration_of_more_messages_weighs_more():
    chance = np.random.default_rng(5)
    (small, _), (large, _) = fitted(chance, 20), fitted(chance, 400)
    found, _ = arrays(pooled([(small, 10), (large, 200)], 210))
    of_small, of_large = (np.array(c.coefficients) for c in (small, large))
    np.testing.assert_allclose((10 * of_small + 200 * of_large) / 210, found)


def test_a_calibration_less_sure_than_its_prior_keeps_all_it_has():
    unsure = np.diag([p / 100 for p in PRECISION])
    calibration = Calibration(PRIOR_MEAN, tuple(map(tuple, unsure.tolist())))
    found = np.array(pooled([(calibration, 10), (calibration, 10)], 20).precision)
    np.testing.assert_allclose(2 * unsure + np.diag(prior_precision(20)), found)


@settings(deadline=None, max_examples=100)
@given(st.integers(0, 2**32), st.integers(1, 6), st.floats(-3, 3))
def test_positive_definite_is_having_positive_eigenvalues_only(seed, size, shift):
    root = np.random.default_rng(seed).normal(size=(size, size))
    matrix = root + root.T + shift * np.eye(size)
    least = np.linalg.eigvalsh(matrix).min()
    if abs(least) > 1e-6:
        assert (least > 0) == is_positive_definite(matrix.tolist())
