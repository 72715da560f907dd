"""How far the collecting hosts let headers be trusted: from counts alone."""

import math
from collections import Counter
from operator import add

import pytest
from closeness import close
from hypothesis import given
from hypothesis import strategies as st

from nbspam.bayes.prediction import ENOUGH, WORDS, trust, unconfoundedness


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
    return unconfoundedness(rows, messages or tuple(map(sum, zip(*hosted, strict=True))))


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


def test_a_second_servers_spam_costs_trust_in_proportion():
    own = (400, 100)
    assert rho([own]) == 1
    assert rho([own], (0, 20)) > rho([own], (0, 300)) > rho([(400, 0)], (0, 400))


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
    value, mails = unconfoundedness([(row, 1) for row in found], messages)
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
    assert trust(0.9, 15, 3) == close(0.9 * 15 / (15 + ENOUGH) * 3 / (3 + WORDS))


@given(st.floats(0, 1), st.integers(0, 10**9), st.integers(0, 10**6))
def test_tau_is_from_0_to_rho_and_0_without_mails_or_header_words(rho, mails, words):
    tau = trust(rho, mails, words)
    assert 0 <= tau <= rho <= 1
    if not (mails and words):
        assert tau == 0
    least = tau * (1 - 1e-12)  # rounded
    assert trust(rho, mails + 1, words) >= least
    assert trust(rho, mails, words + 1) >= least
