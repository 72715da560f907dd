"""Knowing little is not certainty: what holds for every calibration and every message."""

import math
from collections import Counter
from operator import add

import numpy as np
import pytest
from closeness import close
from hypothesis import given
from hypothesis import strategies as st

from nbspam.bayes.calibration import (
    CALIBRATION_SPECS,
    Calibration,
    CalibrationSpec,
    calibration_groups,
    calibration_inputs,
    calibration_specs,
    clamp_features,
    is_positive_definite,
    prior_calibration,
    prior_calibrations,
)
from nbspam.bayes.evidence import message_evidence
from nbspam.bayes.prediction import (
    CALIBRATION_DOUBT,
    CAUTION_HALVED_AT,
    COUNT_DOUBT,
    HEADER_WORDS_HALF_TRUST,
    HOST_MAILS_HALF_TRUST,
    ClassSizes,
    host_independence,
    invert,
    predict,
    trust,
)

WEIGHT = st.sampled_from([-4.0, -2.5, -1.0, 0.0, 1.0, 2.5, 4.0]) | st.floats(-9, 9)
KNOWN_WORDS = st.lists(WEIGHT, max_size=60)
FEW = st.lists(WEIGHT, max_size=3)
OF_HAM, OF_SPAM = (st.lists(st.floats(*ends), max_size=5) for ends in ((-9, 0), (0, 9)))
SIZES = st.builds(ClassSizes, st.integers(0, 100_000), st.integers(0, 100_000))
TRAITS = st.none() | st.lists(st.floats(-9, 9), max_size=7)  # the weight of each


@st.composite
def calibrations(draw, scale: CalibrationSpec):
    """Draw a calibration: fitted, untrained, or made by no training at all."""
    if draw(st.integers(0, 4)) == 0:
        return prior_calibration(scale)
    n = scale.size
    chance = np.random.default_rng(draw(st.integers(0, 2**32)))
    root = chance.normal(size=(n, n)) * 10.0 ** draw(st.integers(-1, 2))
    precision = root @ root.T + 0.1 * np.eye(n)
    coefficients = chance.normal(size=n) * draw(st.sampled_from([0.5, 3, 50]))
    ends = np.sort(chance.normal(size=(n - 1, 2)) * draw(st.sampled_from([0.1, 2, 10])))
    return Calibration(
        tuple(coefficients.tolist()),
        tuple(map(tuple, precision.tolist())),
        tuple(map(tuple, ends.tolist())),
    )


class Case:
    """A message, a calibration of one scale, and what it predicts."""

    def __init__(self, i, calibration, found, sizes):
        self.scale = calibration_specs(with_traits=found.traits is not None)[i]
        self.calibration, self.sizes = calibration, sizes
        self.covariance = invert(calibration.precision)
        self.groups, self.x = calibration_groups(found)[i], calibration_inputs(found)[i]
        self.found = self.predict()

    def predict(self, **changed):
        parts = {
            "calibration": self.calibration,
            "covariance": self.covariance,
            "x": self.x,
            "groups": self.groups,
            "sizes": self.sizes,
        } | changed
        return predict(*parts.values())

    @property
    def kappa(self):
        return self.found.logit_scale / self.found.shift_factor

    @property
    def move(self):
        return self.found.log_odds - self.sizes.prior


@st.composite
def cases(draw, words=KNOWN_WORDS):
    i = draw(st.integers(0, 2))
    found = message_evidence(*(draw(words) for _ in range(4)), draw(TRAITS))
    scale = calibration_specs(with_traits=found.traits is not None)[i]
    return Case(i, draw(calibrations(scale)), found, draw(SIZES))


def test_a_prediction_by_hand():
    calibration = Calibration(
        (0.1, 1.0, 2.0, 0.5, 0.2),
        tuple(tuple(4.0 * (i == j) for j in range(5)) for i in range(5)),
        ((-5.0, 5.0), (-5.0, 5.0), (-5.0, 5.0), (-4.0, 4.0)),
    )
    found = message_evidence([2.0, 3.0, -1.0], [], [], [])
    group, x = found.text, calibration_inputs(found)[0]
    sizes = ClassSizes(members=30, others=100)
    b_x = 0.1 + group.strongest + 2 * group.sum + 0.5 * group.strong + 0.2 * group.length
    doubt = CALIBRATION_DOUBT * sum(v * v for v in x) / 4 + COUNT_DOUBT * b_x**2 / 30
    kappa = 1 / math.sqrt(1 + math.pi / 8 * doubt)
    caution = 1 / (1 + (100 / CAUTION_HALVED_AT) ** 2)
    prior = math.log(30.5 / 100.5)
    move = kappa * b_x - caution - prior
    assert 0 < move < 0.5 * 5
    actual = predict(calibration, invert(calibration.precision), x, (group,), sizes)
    assert actual.log_odds == close(kappa * b_x - caution)
    assert (actual.shift_factor, actual.logit_scale) == (1, close(kappa))
    assert actual.inputs == x


@given(cases(st.just([])))
def test_without_a_known_word_it_is_exactly_the_prior(case):
    assert case.found.log_odds == case.sizes.prior


@given(cases() | cases(FEW) | cases(OF_HAM) | cases(OF_SPAM))
def test_the_move_from_the_prior_is_at_most_half_of_the_words_sum_in_its_direction(case):
    """So words of one class alone never make the other more probable."""
    highest = 0.5 * sum(group.positive for group in case.groups)
    lowest = 0.5 * sum(group.negative for group in case.groups)
    room = 1e-12 * (1 + abs(case.sizes.prior))
    assert lowest - room <= case.move <= highest + room
    assert 0 <= case.found.logit_scale <= case.found.shift_factor <= 1
    if case.found.shift_factor:
        assert 0 < case.kappa <= 1 + 1e-12


@given(cases(), st.floats(0, 1))
def test_weaker_words_are_held_to_less(case, part):
    """The same features from words that say less in all: no further from the prior."""
    less = tuple(
        group._replace(positive=part * group.positive, negative=part * group.negative)
        for group in case.groups
    )
    held = case.predict(groups=less).log_odds - case.sizes.prior
    assert abs(held) <= abs(case.move) + 1e-12
    assert held * case.move >= -1e-12


@given(cases())
def test_a_feature_outside_its_range_is_held_at_the_ranges_end(case):
    assert case.found.inputs == clamp_features(case.calibration, case.x)
    assert case.predict(x=case.found.inputs) == case.found


@given(cases(), st.integers(1, 50), st.floats(1, 1e6))
def test_more_messages_and_a_more_precise_calibration_leave_less_doubt(case, n, times):
    own, others = case.sizes
    covariance = tuple(tuple(v / times for v in row) for row in case.covariance)
    for changed in ({"sizes": ClassSizes(n * own, n * others)}, {"covariance": covariance}):
        more = case.predict(**changed)
        if case.found.shift_factor and more.shift_factor:
            assert more.logit_scale / more.shift_factor >= case.kappa - 1e-12
    for sizes in (ClassSizes(0, 0), ClassSizes(0, 9), ClassSizes(9, 0), ClassSizes(2**53, 1)):
        found = case.predict(sizes=sizes)
        assert all(map(math.isfinite, (found.log_odds, found.logit_scale, found.shift_factor)))


@given(SIZES)
def test_the_prior_is_that_of_the_messages_and_half_one_on_both_sides(sizes):
    own, others = sizes
    assert sizes.prior == close(math.log(own + 0.5) - math.log(others + 0.5))
    assert sizes.prior == close(-ClassSizes(others, own).prior)
    assert sizes.n_smaller_class == min(own, others)


@given(SIZES, st.integers(1, 1000))
def test_the_margin_falls_with_the_ham_learned_alone(sizes, more):
    own, others = sizes
    assert 0 < sizes.caution <= 1
    assert ClassSizes(own, others + more).caution < sizes.caution
    assert ClassSizes(own + more, others).caution == sizes.caution
    assert (ClassSizes(5, 0).caution, ClassSizes(5, 200).caution) == (1, 0.5)
    assert ClassSizes(5, 100_000).caution < 1e-5


@given(
    st.sampled_from([*CALIBRATION_SPECS, *calibration_specs(with_traits=True)]).flatmap(
        calibrations
    )
)
def test_the_inverse_is_numpys(calibration):
    expected = np.linalg.inv(np.array(calibration.precision))
    np.testing.assert_allclose(invert(calibration.precision), expected, rtol=1e-5, atol=1e-9)


@given(cases(), st.integers(0, 2**32), st.sampled_from([1.0, 1e6, 1e15]))
def test_an_ill_conditioned_precision_gives_finite_log_odds(case, seed, size):
    chance = np.random.default_rng(seed)
    n = case.scale.size
    root = chance.normal(size=(n, chance.integers(1, 4))) * 10 ** chance.uniform(-8, 7, (n, 1))
    precision = root @ root.T + np.diag(10 ** chance.uniform(-16, -6, n))
    if not is_positive_definite(precision.tolist()):  # no such model is loaded
        return
    coefficients = tuple(size * (-1) ** i for i in range(n))
    calibration = case.calibration._replace(coefficients=coefficients)
    found = case.predict(calibration=calibration, covariance=invert(precision.tolist()))
    assert math.isfinite(found.log_odds)
    assert 0 <= found.logit_scale <= found.shift_factor <= 1


def test_a_spread_below_0_by_rounding_is_no_spread():
    x = calibration_inputs(message_evidence([3.0, 3.1, 3.2, 3.3, 3.4], [], [2.0], []))[0]
    case = Case(
        0,
        prior_calibrations(with_traits=False).text,
        message_evidence([3.0, 3.1, 3.2, 3.3, 3.4], [], [], []),
        ClassSizes(10**15, 10**15),
    )
    covariance = tuple(tuple(-1e9 * (i == j) for j in range(5)) for i in range(5))
    assert case.predict(x=x, covariance=covariance).logit_scale == close(case.found.shift_factor)


# How far the collecting hosts let headers be trusted: from counts alone.


@st.composite
def hosts(draw, n_classes=None, most=8):
    """Draw the mails per class of some hosts."""
    k = n_classes or draw(st.integers(2, 4))
    row = st.tuples(*[st.integers(0, 40)] * k).filter(any)
    return draw(st.lists(row, min_size=1, max_size=most))


def measured(rows, messages=None):
    """Return rho and m of hosts that took in all messages, unless there are more."""
    rows = list(rows)
    hosted = [[count * hosts for count in row] for row, hosts in rows]
    return host_independence(rows, messages or tuple(map(sum, zip(*hosted, strict=True))))


def rho(found, *more):
    """Return rho of hosts, each given by itself."""
    return measured((row, 1) for row in [*found, *more])[0]


def test_rho_of_two_hosts_by_hand():
    """Ham 3 and 1, spam 1 and 3: pi = 3.5 / 8 for both."""
    pi = 3.5 / 8
    given_host = -2 * (3 * math.log((2 + pi) / 4) + math.log((0 + pi) / 4))
    alone = -8 * math.log(pi)
    found, mails = measured([((3, 1), 1), ((1, 3), 1)])
    assert (found, mails) == (close(min(1, given_host / alone)), 4)
    # No hosts, and hosts of one class, have no trust.
    assert [measured(rows) for rows in ([], [((5, 0), 3)], [((0, 5, 0), 3)])] == [(0, 0)] * 3
    # A class without mails (from a table, say) changes nothing of the others' trust.
    assert rho([(30, 20, 0), (10, 40, 0)]) == close(rho([(30, 20), (10, 40)]))


def test_a_host_that_tells_the_class_leaves_next_to_no_trust():
    assert rho([(500, 0), (0, 500)]) < 0.01
    assert rho([(500, 0), (0, 500), (1, 1)]) < 0.03
    assert rho([(300, 0), (200, 0), (0, 100), (0, 400)]) < 0.02
    assert rho([(500, 0, 0), (0, 500, 0), (0, 0, 500)]) < 0.01
    # All spam from hosts of its own was taken in elsewhere.
    assert rho([(500, 0)], *[(0, 1)] * 500) < 0.01
    assert rho([(500, 5)], *[(0, 1)] * 500) < 0.1


def test_the_more_the_host_tells_the_less_the_trust():
    found = [rho([(500 - n, n), (n, 500 - n)]) for n in range(0, 251, 50)]
    assert found == sorted(found)
    assert found[0] < 0.01
    assert found[-1] > 0.99


def test_hosts_of_one_mail_are_one_host_together():
    """Left out, such a mail's host has no other mail, so by itself it says nothing."""
    once = [(1, 0)] * 50 + [(0, 1)] * 40
    assert measured((row, 1) for row in once) == (1, 40)
    assert measured([((1, 0), 50), ((0, 1), 40)]) == (1, 40)
    for others in ([(30, 20), (10, 40)], [(500, 0), (0, 500)]):
        assert rho(others, *once) == close(rho(others, (50, 40)))


def test_messages_without_a_host_are_one_more_host():
    """Their words are counted too: texts of spam beside mails of ham are two places."""
    mails, texts = (1_000, 10), (0, 1_000)
    together = tuple(map(add, mails, texts))
    assert measured([(mails, 1)])[0] == 1
    assert measured([(mails, 1)], together)[0] < 0.1
    assert measured([(mails, 1)], together)[0] == close(rho([mails, texts]))
    # Twenty mails of one's own beside an imported list of thousands speak for little.
    assert measured([((10, 10), 1)])[1] == 10
    assert measured([((10, 10), 1)], (1_010, 1_010))[1] == close(10 * 20 / 2_020)


@given(hosts(), st.data())
def test_rho_is_from_0_to_1_and_m_is_the_smaller_class(found, data):
    value, mails = measured((row, 1) for row in found)
    totals = [total for total in map(sum, zip(*found, strict=True)) if total]
    alone = [row for row in found if sum(row) == 1]
    known = [row for row in found if sum(row) > 1 or len(alone) > 1]
    seen = [total for total in map(sum, zip(*known, strict=True)) if total] if known else []
    if len(totals) < 2 or len(seen) < 2:
        assert (value, mails) == (0, 0)
    else:
        assert 0 <= value <= 1
        assert mails == close(min(totals))
    # Hosts with more mails than there are messages, as an imported table may have them.
    messages = data.draw(st.tuples(*[st.integers(1, 60)] * len(found[0])))
    value, mails = host_independence([(row, 1) for row in found], messages)
    assert 0 <= value <= 1
    assert mails >= 0


@given(st.integers(2, 200), st.integers(2, 200), st.integers(2, 6))
def test_hosts_with_the_same_shares_say_nothing_so_rho_is_1(ham, spam, n):
    assert rho([(ham, spam)] * n) == pytest.approx(1, abs=1e-3)
    assert measured([((ham, spam), 1)]) == (1, min(ham, spam))
    assert measured([((ham, 0, spam), 1)]) == (1, min(ham, spam))
    assert measured([((ham, 0), 1)]) == (0, 0)


@given(hosts(), st.randoms(use_true_random=False))
def test_the_order_of_the_hosts_and_of_the_classes_does_not_matter(found, chance):
    expected, mails = measured((row, 1) for row in found)
    assert rho(chance.sample(found, len(found))) == close(expected)
    order = chance.sample(range(len(found[0])), len(found[0]))
    assert rho([tuple(row[k] for k in order) for row in found]) == close(expected)
    # Equal hosts counted together are the same as one by one.
    assert measured(Counter(found).items()) == (close(expected), mails)


def test_tau_by_hand():
    assert trust(0.9, 15, 3) == close(
        0.9 * 15 / (15 + HOST_MAILS_HALF_TRUST) * 3 / (3 + HEADER_WORDS_HALF_TRUST)
    )


@given(st.floats(0, 1), st.integers(0, 10**9), st.integers(0, 10**6))
def test_tau_is_from_0_to_rho_and_0_without_mails_or_header_words(rho, mails, words):
    tau = trust(rho, mails, words)
    assert 0 <= tau <= rho <= 1
    if not (mails and words):
        assert tau == 0
    least = tau * (1 - 1e-12)  # rounded
    assert trust(rho, mails + 1, words) >= least
    assert trust(rho, mails, words + 1) >= least


def test_a_second_servers_spam_costs_trust_in_proportion():
    own = (400, 100)
    assert rho([own]) == 1
    assert rho([own], (0, 20)) > rho([own], (0, 300)) > rho([(400, 0)], (0, 400))
