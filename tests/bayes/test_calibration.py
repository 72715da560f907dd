import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from one_case import each
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logit
from sklearn.linear_model import LogisticRegression

from nbspam.bayes import calibration, fitting
from nbspam.bayes.evidence import WORD_FEATURES, message_evidence
from nbspam.bayes.fitting import fit_calibration

WITH_TRAITS = calibration.calibration_specs(with_traits=True)
EVERY = (
    calibration.CALIBRATION_SPECS[0],
    WITH_TRAITS[1],
    calibration.CALIBRATION_SPECS[1],
    WITH_TRAITS[0],
)
EVERY += (calibration.CALIBRATION_SPECS[2], WITH_TRAITS[2])
EACH = pytest.mark.parametrize("scale", EVERY, ids=lambda scale: f"{scale.name}{scale.size}")
SOME = pytest.mark.few(2)  # one scale of either name, with and without traits
FEATURE = st.floats(-6, 6).map(lambda value: round(value, calibration.INPUT_DECIMALS))
LABEL = st.booleans()
SHARE = st.sampled_from([0.0, 0.004, 0.02, 0.2])
NOISE = st.builds(calibration.Noise, SHARE, SHARE)


def xs(scale: calibration.CalibrationSpec, feature=FEATURE):
    """Draw a message's inputs."""
    return st.tuples(st.just(1.0), *[feature] * (scale.size - 1))


def histories(scale: calibration.CalibrationSpec, most=15):
    return st.lists(st.tuples(xs(scale), LABEL), max_size=most)


@st.composite
def with_history(draw, most=15):
    """Draw a scale, and messages of it."""
    scale = draw(st.sampled_from(EVERY))
    return scale, draw(histories(scale, most))


def after(scale, history, start=None):
    found = start or calibration.prior_calibration(scale)
    for x, is_spam in history:
        found = calibration.update_calibration(scale, found, x, is_spam)
    return found


@st.composite
def with_past(draw, most=15):
    """Draw a scale, and a calibration that has learned messages of it."""
    scale, history = draw(with_history(most))
    return scale, after(
        scale, history, calibration.prior_calibration(scale)._replace(noise=draw(NOISE))
    )


def arrays(found: calibration.Calibration):
    return np.array(found.coefficients), np.array(found.precision)


def assert_sound(scale, found: calibration.Calibration):
    coefficients, precision = arrays(found)
    assert len(found.ranges) == scale.size - 1
    assert all(0 <= share < 1 for share in found.noise)
    assert all(low <= high for low, high in found.ranges)
    assert np.isfinite(coefficients).all()
    assert np.isfinite(precision).all()
    np.testing.assert_allclose(precision, precision.T, rtol=1e-9, atol=1e-12)
    assert np.linalg.eigvalsh(precision).min() > 0


def test_the_scales():
    assert [scale.name for scale in calibration.CALIBRATION_SPECS] == ["text", "full", "opening"]
    assert calibration.OPENING.features == calibration.TEXT.features
    assert calibration.FULL.features[: len(calibration.TEXT.features)] == calibration.TEXT.features
    for scale, wider in zip(calibration.CALIBRATION_SPECS, WITH_TRAITS, strict=True):
        assert wider.name == scale.name
        assert wider.features == (*scale.features, "traits")
        assert (wider.mean[:-1], wider.precision[:-1]) == (scale.mean, scale.precision)
    for scale in EVERY:
        assert scale.size == 1 + len(scale.features) == len(scale.mean) == len(scale.precision)
        assert scale.features[calibration.LENGTH_INDEX - 1] == "length"
        assert scale.mean[0] == scale.mean[calibration.LENGTH_INDEX] == 0
        assert all(
            b > 0 for i, b in enumerate(scale.mean) if i not in (0, calibration.LENGTH_INDEX)
        )
        assert all(p > 0 for p in scale.precision)


WEIGHTS = st.lists(st.floats(-9, 9), max_size=40)


@given(WEIGHTS, WEIGHTS, WEIGHTS, WEIGHTS, st.none() | WEIGHTS)
def test_the_inputs_are_the_features_of_the_groups_of_each_scale(
    text, fields, header, opening, traits
):
    found = message_evidence(text, fields, header, opening, traits)
    own = calibration.calibration_specs(with_traits=traits is not None)
    for scale, x, of in zip(
        own,
        calibration.calibration_inputs(found),
        calibration.calibration_groups(found),
        strict=True,
    ):
        if traits is not None:
            assert (scale.features[-1], x[-1]) == ("traits", found.traits)
        assert len(x) == scale.size
        assert (x[0], x[calibration.LENGTH_INDEX]) == (1, of[0].length)
        for first, group in zip((1, 1 + calibration.LENGTH_INDEX), of, strict=False):
            assert x[first : first + WORD_FEATURES] == group.features
    of_full = found.text, found.header
    expected = (found.text_and_fields,), of_full, (found.opening,)
    assert calibration.calibration_groups(found) == expected


def rested(scale, before: calibration.Calibration) -> np.ndarray:
    """Return the precision after forgetting, before anything is learned."""
    _, precision = arrays(before)
    floor = 3 * np.array([1.0, *scale.precision[1:]])
    return calibration.FORGET * precision + (1 - calibration.FORGET) * np.diag(floor)


def share_right_of(z, is_spam, noise, least=0.005):
    """Return w by its definition: P(spam, labelled so) / P(labelled so)."""
    lost, gained = np.maximum(noise, least)
    spam = expit(z) * np.where(is_spam, 1 - lost, lost)
    ham = expit(-z) * np.where(is_spam, gained, 1 - gained)
    return np.where(is_spam, spam, ham) / (spam + ham)


@each(
    "log_odds, is_spam, lost, gained, right",
    [
        (0.0, True, 0.0, 0.0, 0.995),  # the least noise
        (0.0, True, 0.2, 0.2, 0.8),
        (-math.log(199), True, 0.0, 0.0, 0.5),
        (math.log(3), True, 0.1, 0.1, 0.9642857142857143),  # r = 3/4: .675 / (.675 + .025)
        (0.0, True, 0.2, 0.1, 0.8888888888888889),  # .4 / (.4 + .05): ham labelled spam
        (0.0, False, 0.2, 0.1, 0.8181818181818182),  # .45 / (.45 + .1): spam labelled ham
        (math.log(3), False, 0.4, 0.0, 0.45330296127562647),  # .24875 / (.24875 + .3)
        (40.0, True, 0.1, 0.1, 1.0),
        (-1e4, True, 0.0, 0.0, 0.0),
    ],
)
def test_how_likely_a_label_is_right(log_odds, is_spam, lost, gained, right):
    found = calibration.p_label_right(log_odds, is_spam, calibration.Noise(lost, gained))
    assert found == pytest.approx(right, rel=1e-12, abs=1e-12)


def test_the_first_update_by_hand():
    """The constant alone: L = .99 * .4 + .01 * 3 = .426, and s = .995 (1 - sigmoid(s / L))."""
    found = calibration.update_calibration(
        calibration.TEXT,
        calibration.prior_calibration(calibration.TEXT),
        (1.0, 0.0, 0.0, 0.0, 0.0),
        True,
    )
    z = found.coefficients[0]
    assert 0.426 * z == pytest.approx(0.995 * expit(-z), rel=1e-8)
    assert found.coefficients[1:] == calibration.TEXT.mean[1:]
    expected = 0.426 + 0.995 * np.tanh(z / 2) / (2 * z)
    assert found.precision[0][0] == pytest.approx(expected, abs=5.1e-7)


@given(with_past(), st.data(), LABEL)
def test_an_update_is_the_mode_of_its_objective(drawn, data, is_spam):
    """w (log(1 + exp z) - y z) + (c - b)' P (c - b) / 2, z = x'c, which is convex.

    Each message counts as much as its label was likely right before it was learned.
    """
    scale, before = drawn
    message = data.draw(xs(scale))
    b, precision = arrays(before)[0], rested(scale, before)
    x, y = np.array(message), float(is_spam)
    w = share_right_of(x @ b, is_spam, before.noise)
    now = calibration.update_calibration(scale, before, message, is_spam)
    c, actual_precision = arrays(now)
    p = expit(x @ c)
    rounded = 5.01e-10 * np.abs(precision).sum() + 1e-9  # what rounding the coefficients does
    np.testing.assert_allclose(w * x * (p - y) + precision @ (c - b), 0, atol=rounded)
    second = w * calibration.curvature(x @ c) * np.outer(x, x) + precision
    np.testing.assert_allclose(actual_precision, second, rtol=1e-9, atol=5.1e-7)
    assert now.noise == before.noise


@given(
    with_history(),
    st.lists(st.tuples(xs(calibration.FULL, st.floats(-1e3, 1e3)), LABEL), max_size=10),
)
def test_any_history_leaves_a_sound_calibration(drawn, wild):
    scale, history = drawn
    assert_sound(scale, after(scale, history))
    for found in arrays(after(calibration.FULL, wild)):
        assert np.isfinite(found).all()


def test_before_any_message_it_is_the_prior():
    for with_traits in (False, True):
        both = calibration.prior_calibrations(with_traits)
        for scale, found in zip(calibration.calibration_specs(with_traits), both, strict=True):
            assert found == calibration.prior_calibration(scale)
            assert found.coefficients == scale.mean
            assert arrays(found)[1].tolist() == np.diag(scale.precision).tolist()
            assert found.ranges == ((0, 0),) * (scale.size - 1)
            assert found.run == 0
            # The length says nothing then, and words go to 3.
            held = calibration.clamp_features(found, (1.0, *[9.0] * (scale.size - 1)))
            assert held == (1.0, 3.0, 3.0, 3.0, 0.0, *[3.0] * (scale.size - 5))
            assert calibration.LENGTH_INDEX == 4


@given(with_history(), st.lists(LABEL, min_size=1, max_size=30))
def test_the_run_is_how_many_of_one_class_came_last(drawn, labels):
    scale, history = drawn
    x = (1.0,) * scale.size
    found = after(scale, [*history, *((x, label) for label in labels)])
    every = [label for _, label in history] + labels
    run = next((i for i, label in enumerate(every[::-1]) if label != every[-1]), len(every))
    assert found.run == (run if every[-1] else -run)


@each("is_spam", [True, False])
def test_a_long_run_ends_the_updates_of_that_class_alone(is_spam):
    sign = 1 if is_spam else -1
    for share in (0.0, 0.5, 0.75, 0.875):
        last = int(calibration.MAX_RUN / (1 - share))
        at, below = (
            calibration.prior_calibration(calibration.TEXT)._replace(run=sign * n)
            for n in (last, last - 1)
        )
        assert calibration.exceeds_run_limit(at, is_spam, share)
        assert not calibration.exceeds_run_limit(below, is_spam, share)
        assert not calibration.exceeds_run_limit(at, not is_spam, share)
        assert not calibration.exceeds_run_limit(
            calibration.prior_calibration(calibration.TEXT), is_spam, share
        )


@given(with_history().filter(lambda drawn: drawn[1]))
def test_the_ranges_are_those_of_the_messages(drawn):
    scale, history = drawn
    columns = np.array([x for x, _ in history])[:, 1:]
    now = after(scale, history)
    if not columns[0].any():  # as good as nothing seen
        return
    np.testing.assert_array_equal(np.array(now.ranges)[:, 0], columns.min(axis=0))
    np.testing.assert_array_equal(np.array(now.ranges)[:, 1], columns.max(axis=0))
    for x, _ in history:  # what was seen is not held
        assert calibration.clamp_features(now, x) == x


ENDS = st.tuples(FEATURE, FEATURE).map(sorted).map(tuple)


@given(st.sampled_from(EVERY), st.data())
def test_no_feature_goes_beyond_its_range_or_3_for_sums_over_words(scale, data):
    ranges = data.draw(st.tuples(*[ENDS] * (scale.size - 1)))
    fitted = calibration.prior_calibration(scale)._replace(ranges=ranges)
    x = data.draw(xs(scale, st.floats(-1e6, 1e6)))
    held = calibration.clamp_features(fitted, x)
    assert held[0] == 1
    for i in range(1, scale.size):
        low, high = fitted.ranges[i - 1]
        if i != calibration.LENGTH_INDEX:
            low, high = min(low, -3), max(high, 3)
        assert held[i] == min(max(x[i], low), high)  # at the near end
    assert calibration.clamp_features(fitted, held) == held


def easy(chance: random.Random, is_spam: bool):
    """Return the inputs of an easy message, for the text's scale."""
    sign = 1 if is_spam else -1
    return (1.0, *(sign * chance.uniform(3, 5) for _ in range(3)), chance.gauss(0, 1))


@pytest.fixture(scope="module")
def seasoned():
    """Return the calibration after 6,000 easy messages, which bring next to no precision."""
    chance = random.Random(1)
    found = calibration.prior_calibration(calibration.TEXT)
    for i in range(6_000):
        found = calibration.update_calibration(
            calibration.TEXT, found, easy(chance, bool(i % 2)), bool(i % 2)
        )
        if i % 1000 == 0:
            assert_sound(calibration.TEXT, found)
    return found


def are_right(found, chance):
    """Return whether a calibration gets all of 200 easy messages right."""
    z = [(np.dot(easy(chance, label), found.coefficients), label) for label in [0, 1] * 100]
    return all((nats > 0) == label for nats, label in z)


def test_thousands_of_easy_messages_leave_a_sound_calibration(seasoned):
    assert_sound(calibration.TEXT, seasoned)
    # It decays to the prior's precision and never below.
    _, precision = arrays(seasoned)
    assert np.linalg.eigvalsh(precision - 0.99 * np.diag(calibration.TEXT.precision)).min() > 0
    assert are_right(seasoned, random.Random(2))
    # Surprising messages leave it so, too.
    assert_sound(
        calibration.TEXT,
        calibration.update_calibration(
            calibration.TEXT, seasoned, easy(random.Random(2), True), False
        ),
    )
    assert_sound(
        calibration.TEXT,
        calibration.update_calibration(
            calibration.TEXT, seasoned, (1.0, -50.0, -9.0, -50.0, 3.0), True
        ),
    )


# Taken at its word, it took 13 nats from each easy spam's 13.6.
def test_a_mislabelled_message_after_many_easy_ones_does_next_to_nothing(seasoned):
    x = (1.0, 4.0, 4.0, 4.0, 0.0)
    now = calibration.update_calibration(calibration.TEXT, seasoned, x, False)
    assert np.dot(seasoned.coefficients, x) > 10
    assert 0 < np.dot(seasoned.coefficients, x) - np.dot(now.coefficients, x) < 0.01
    assert are_right(now, random.Random(3))


@each(
    "noise, labelled, rest, expected",
    [
        ((0.1, 0.0), 180, 820, (0, 20 / 820)),  # 200 spams, 20 of them among the 820
        ((0.0, 0.1), 280, 720, (80 / 280, 0)),  # 200 spams, and 80 of 800 hams
        ((0.1, 0.1), 260, 740, (80 / 260, 20 / 740)),
        ((0.0, 0.0), 200, 800, (0, 0)),
        ((0.1, 0.0), 0, 0, (0, 0)),
        ((0.0, 0.5), 10, 990, (1, 0)),  # more than there are
    ],
)
def test_what_share_of_each_label_is_wrong(noise, labelled, rest, expected):
    assert calibration.Noise(*noise).label_error_shares(labelled, rest) == pytest.approx(expected)


@given(st.floats(-40, 40), st.floats(-40, 40))
def test_a_parabola_of_the_curvature_bounds_the_loss(z, other):
    """It touches the loss of a message at z, and so does its slope."""
    c, slope = calibration.curvature(z), expit(z)
    bound = np.logaddexp(0, z) + slope * (other - z) + c * (other - z) ** 2 / 2
    assert np.logaddexp(0, other) <= bound + 1e-9
    assert c >= expit(z) * expit(-z) - 1e-9


@given(st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_solve_is_numpys(n, seed):
    chance = np.random.default_rng(seed)
    half = chance.normal(size=(n, n))
    rows, right = (half @ half.T + 0.1 * np.eye(n)).tolist(), chance.normal(size=n).tolist()
    before = [row[:] for row in rows], right[:]
    np.testing.assert_allclose(
        calibration.solve(rows, right)[0], np.linalg.solve(rows, right), rtol=1e-7
    )
    assert (rows, right) == before
    assert calibration.solve([[2.0, 1.0], [1.0, 3.0]], [1.0, 2.0])[0] == pytest.approx([0.2, 0.6])


def truth(scale):
    """Return the coefficients that the drawn messages follow."""
    found = (0.3, 1.0, 0.5, -0.4, 0.2, 0.8, 0.1, 0.6)[: 8 if scale.name == "full" else 5]
    return found + (0.7,) * (scale.size - len(found))


def drawn_messages(scale, n, seed=0):
    """Return inputs and labels of n messages that follow the model."""
    chance = np.random.default_rng(seed)
    x = np.column_stack((np.ones(n), chance.normal(size=(n, scale.size - 1))))
    return x, chance.random(n) < expit(x @ np.array(truth(scale)))


def derivative(scale, coefficients, x, is_spam, right=1.0):
    """Return the gradient of the fit's objective at some coefficients; right: w of each message."""
    b = np.array(coefficients)
    p = expit(x @ b)
    return x.T @ (right * (p - is_spam)) + np.array(scale.precision) * (b - np.array(scale.mean))


@given(with_history(most=30))
def test_the_fit_is_the_mode(drawn):
    scale, history = drawn
    x = np.array([x for x, _ in history]).reshape(-1, scale.size)
    is_spam = np.array([label for _, label in history], dtype=bool)
    found = fit_calibration(scale, x, is_spam)
    assert_sound(scale, found)
    if min(is_spam.sum(), (~is_spam).sum()) < calibration.MIN_CLASS_MESSAGES:
        assert found == calibration.prior_calibration(scale)
        return
    b, precision = arrays(found)
    right = np.ones(len(x))
    if any(found.noise):
        right = share_right_of(x @ b, is_spam, found.noise, least=0)
        lost, gained = sum((1 - right)[~is_spam]), sum((1 - right)[is_spam])
        n_spam = sum(is_spam) + lost - gained
        shares = (lost + 0.25) / (n_spam + 50), (gained + 0.25) / (len(x) - n_spam + 50)
        assert found.noise == pytest.approx(shares, rel=0.01)
    gradient = derivative(scale, b, x, is_spam, right)
    np.testing.assert_allclose(gradient, 0, atol=0.05 if any(found.noise) else 1e-4)
    c = [calibration.curvature(z) for z in x @ b]
    second = (x * (right * c)[:, None]).T @ x + np.diag(scale.precision)
    np.testing.assert_allclose(
        precision, second, rtol=0.01 if any(found.noise) else 1e-9, atol=0.01
    )
    expected = list(zip(x[:, 1:].min(axis=0), x[:, 1:].max(axis=0), strict=True))
    assert list(found.ranges) == expected
    assert found.run == 0
    assert all(type(value) is float for value in (*b.tolist(), *found.ranges[0], *found.noise))


@each("scale", EVERY)
def test_with_a_weak_prior_the_fit_is_scikit_learns(scale):
    weak = scale._replace(precision=(1e-9,) * scale.size)
    x, is_spam = drawn_messages(scale, 500, seed=4)
    found = fit_calibration(weak, x, is_spam)
    assert found.noise == calibration.Noise(0, 0)
    reference = LogisticRegression(C=1e12, tol=1e-12, max_iter=10_000).fit(x[:, 1:], is_spam)
    expected = [reference.intercept_[0], *reference.coef_[0]]
    np.testing.assert_allclose(found.coefficients, expected, rtol=1e-4, atol=1e-4)


@EACH
def test_with_copies_scale_and_constant_are_those_of_the_messages(scale):
    x, is_spam = drawn_messages(scale, 500, seed=4)
    copies = x[is_spam] - np.eye(scale.size)[2]  # less spam-like by one feature
    plain, found = fit_calibration(scale, x, is_spam), fit_calibration(scale, x, is_spam, copies)
    assert found.noise == plain.noise == calibration.Noise(0, 0)
    assert found.ranges == plain.ranges  # of real messages
    slopes = derivative(scale, found.coefficients, x, is_spam)
    assert slopes[0] == pytest.approx(0, abs=1e-4)
    assert slopes @ np.array(found.coefficients) == pytest.approx(0, abs=1e-4)
    odds, before = (copies @ np.array(fitted.coefficients) for fitted in (found, plain))
    assert np.log1p(np.exp(-odds)).sum() < np.log1p(np.exp(-before)).sum()
    none = fit_calibration(scale, x, is_spam, copies[:0])
    np.testing.assert_allclose(none.coefficients, plain.coefficients, atol=1e-8)


def test_separable_messages_have_a_finite_fit():
    chance = random.Random(6)
    x = np.array([easy(chance, bool(i % 2)) for i in range(1_000)])
    found = fit_calibration(calibration.TEXT, x, np.arange(1_000) % 2 == 1)
    assert_sound(calibration.TEXT, found)
    assert max(map(abs, found.coefficients)) < 20
    assert found.noise == calibration.Noise(0, 0)


def two_heaps(scale, n, shares, far=3.0):
    """Return inputs and labels of n messages that are mostly easy, and which labels are wrong.

    shares: of spam labelled ham, and of ham labelled spam.  far: the distance of the middles of
    both classes from 0.
    """
    chance = np.random.default_rng(1)
    is_spam = chance.random(n) < 0.4
    middle = far / np.sqrt(scale.size - 1)
    features = chance.normal(size=(n, scale.size - 1)) + np.where(is_spam, middle, -middle)[:, None]
    wrong = chance.random(n) < np.where(is_spam, *shares)
    return np.column_stack((np.ones(n), features)), is_spam ^ wrong, wrong


@SOME
@EACH
@pytest.mark.parametrize("shares", [(0.01, 0.01), (0.1, 0.1), (0.1, 0.0), (0.01, 0.1), (0.0, 0.03)])
def test_the_shares_of_wrong_labels_are_found(scale, shares):
    x, is_spam, wrong = two_heaps(scale, 5_000, shares)
    found = fit_calibration(scale, x, is_spam)
    were = is_spam ^ wrong
    expected = wrong[were].mean(), wrong[~were].mean()
    assert found.noise == pytest.approx(expected, rel=0.25, abs=0.004)
    # And what the messages are is told as without them.
    clean = fit_calibration(scale, x, were)
    assert clean.noise == calibration.Noise(0, 0)
    z, expected = x @ found.coefficients, x @ clean.coefficients
    assert ((z > 0) == (expected > 0)).mean() > 0.995
    assert np.median(abs(z)) > 5  # the log-odds of 10 % wrong labels are 2.2


def test_em_does_not_stop_where_few_labels_are_wrong():
    """Begun with the coefficients fitted without noise it finds 7.4 and 9.3 %, or 2.2 and 1.3 %."""
    for shares in ((0.1, 0.1), (0.2, 0.02)):
        x, is_spam, wrong = two_heaps(calibration.TEXT, 4_000, shares, far=8)
        expected = wrong[is_spam ^ wrong].mean(), wrong[is_spam == wrong].mean()
        assert fit_calibration(calibration.TEXT, x, is_spam).noise == pytest.approx(
            expected, rel=0.05
        )


def surprise(scale, x, is_spam, b, noise):
    """Return the objective of b and both shares: of the labels as they are, and of the priors."""
    z, noise = np.where(is_spam, 1, -1) * (x @ b), np.array(noise)
    left, joined = np.where(is_spam, *noise), np.where(is_spam, *noise[::-1])
    of_labels = np.logaddexp(np.log1p(-left) + log_expit(z), np.log(joined) + log_expit(-z)).sum()
    of_b = 0.5 * (np.array(scale.precision) * (b - np.array(scale.mean)) ** 2).sum()
    return of_b - of_labels - (0.25 * np.log(noise) + 49.75 * np.log1p(-noise)).sum()


@SOME
@EACH
@pytest.mark.parametrize("shares", [(0.01, 0.01), (0.1, 0.02)])
def test_the_fit_is_the_best_of_coefficients_and_noise_together(scale, shares):
    """Of the likelihood of the observed labels, which the fit itself never computes a step of."""
    x, is_spam, _ = two_heaps(scale, 2_000, shares)
    found = fit_calibration(scale, x, is_spam)
    assert min(found.noise) > 0
    own = surprise(scale, x, is_spam, np.array(found.coefficients), found.noise)
    best = [
        minimize(
            lambda v: surprise(scale, x, is_spam, v[:-2], expit(v[-2:])),
            [*np.random.default_rng(i).normal(scale.mean, 0.5), logit(noise), logit(noise)],
            method="BFGS",
        )
        for i, noise in enumerate((0.3, 0.05, 0.005))
    ]
    least = min(best, key=lambda one: one.fun)
    # The weights leave out what a wrong label says of the other class: more where more are wrong.
    few = sum(shares) < 0.05
    assert own == pytest.approx(least.fun, abs=0.02 if few else 0.1)
    assert found.noise == pytest.approx(expit(least.x[-2:]), rel=0.02)
    np.testing.assert_allclose(found.coefficients, least.x[:-2], atol=0.1 if few else 0.2)


@each(
    "n, far, is_noisy",
    [(20, 2.0, False), (200, 1.0, False), (200, 2.0, False), (200, 3.0, True), (3_000, 2.0, False)],
)
def test_one_surprising_message_is_no_noise_unless_it_is_beyond_belief(n, far, is_noisy):
    """One spam that looks like ham, whose features are at -1 to -3."""
    chance = random.Random(1)
    x = [
        (1.0, *((2 * (i % 2) - 1) * chance.uniform(1, 3) for _ in range(3)), chance.gauss(0, 1))
        for i in range(n)
    ]
    x, is_spam = np.array([*x, (1.0, -far, -far, -far, 0.0)]), np.arange(n + 1) % 2 == 1
    is_spam[-1] = True
    found = fit_calibration(calibration.TEXT, x, is_spam)
    assert any(found.noise) == is_noisy
    if not is_noisy:
        gradient = derivative(calibration.TEXT, found.coefficients, x, is_spam)
        np.testing.assert_allclose(gradient, 0, atol=1e-4)


@each("share_wrong", [0.0, 0.1])
def test_the_fit_does_not_depend_on_how_many_messages_are_in_memory(monkeypatch, share_wrong):
    x, is_spam, _ = two_heaps(calibration.FULL, 500, (share_wrong, share_wrong))
    whole = fit_calibration(calibration.FULL, x, is_spam)
    monkeypatch.setattr(fitting, "BLOCK", 7)
    found = fit_calibration(calibration.FULL, x, is_spam)
    assert any(whole.noise) == (share_wrong > 0)
    assert found.noise == pytest.approx(whole.noise, rel=1e-6)
    assert found.ranges == whole.ranges
    for one, other in zip(arrays(found), arrays(whole), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)


@each(
    "ham, spam",
    [
        ((-1.0, -0.5, -0.5, -2.0), (1.0, 0.5, 0.5, -2.0)),
        ((1.0, 0.2, 0.0, -2.0), (1.0, 0.2, 0.0, -2.0)),  # left out of two, both look the same
        ((0.0, 0.0, 0.0, -4.5), (0.0, 0.0, 0.0, -4.5)),
        ((2.0, 1.0, 1.0, -2.0), (-2.0, -1.0, -1.0, -2.0)),  # or each like the other class
    ],
)
def test_two_messages_of_each_class_give_sane_coefficients(ham, spam):
    x = np.array([(1, *ham), (1, *ham), (1, *spam), (1, *spam)], dtype=float)
    found = fit_calibration(calibration.TEXT, x, np.arange(4) > 1)
    assert_sound(calibration.TEXT, found)
    if ham[0] > spam[0]:  # they outweigh the prior by next to nothing
        assert (abs(x @ found.coefficients) < 0.5).all()
        return
    constant, *of_features, of_length = found.coefficients
    assert all(c > 0 for c in of_features)
    assert abs(constant) < 0.5
    assert abs(of_length) < 0.5


@each("scale", EVERY[:2])
def test_learning_one_by_one_ends_near_the_fit_of_all(scale):
    x, is_spam = drawn_messages(scale, 3_000, seed=7)
    x = x.round(calibration.INPUT_DECIMALS)
    found = after(scale, zip(map(tuple, x.tolist()), is_spam.tolist(), strict=True))
    whole = fit_calibration(scale, x, is_spam)
    np.testing.assert_allclose(found.coefficients, whole.coefficients, atol=0.4)
    np.testing.assert_allclose(whole.coefficients, truth(scale), atol=0.2)
    assert found.ranges == whole.ranges
    for labels in ([], [1], [1, 1, 1], [0, 0], [1, 0], [1, 1, 1, 0], [0, 0, 0, 1]):
        few = np.array(labels, dtype=bool)  # fewer than two of a class are no basis for a fit
        assert fit_calibration(scale, x[: len(few)], few) == calibration.prior_calibration(scale)


@given(st.integers(0, 2**32), st.integers(1, 6), st.floats(-3, 3))
def test_positive_definite_is_having_positive_eigenvalues_only(seed, size, shift):
    root = np.random.default_rng(seed).normal(size=(size, size))
    matrix = root + root.T + shift * np.eye(size)
    least = np.linalg.eigvalsh(matrix).min()
    if abs(least) > 1e-6:
        assert (least > 0) == calibration.is_positive_definite(matrix.tolist())
