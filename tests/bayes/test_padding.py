"""The padding follows from counts: each word's weight is the one without its own ham message."""

import numpy as np
import pytest
import random_messages
from hypothesis import given

from nbspam.bayes import padding as padding_module
from nbspam.bayes.event_model import TrialTotals, one_vs_rest_weight
from nbspam.bayes.padding import PADDING_SIZES, ham_pairs, padding_weights


@pytest.fixture(autouse=True, scope="module")
def small_models_have_copies():
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(padding_module, "MIN_SPAM_TO_PAD", 0)
        yield


def weights_of_ham_words(messages, alpha):
    """Return the weight of every known word of every ham, that message left out; and all words."""
    spam, weights, n_words = messages.n_classes - 1, [], 0
    for place in np.flatnonzero(messages.labels != spam):
        others = np.arange(len(messages.labels)) != place
        rest, labels = messages.dense[others], messages.labels[others]
        n_spam = int((labels == spam).sum())
        size = TrialTotals((len(labels) - n_spam, n_spam), (len(labels) - n_spam, n_spam), 2)
        for column in np.flatnonzero(messages.dense[place]):
            n_words += 1
            counts = [
                int(rest[is_class, column].sum()) for is_class in (labels != spam, labels == spam)
            ]
            if any(counts):
                weights.append(one_vs_rest_weight(tuple(counts), size, 1, alpha))
    return sorted(weights), n_words


@given(random_messages.messages(), random_messages.ALPHAS)
def test_the_padding_is_evenly_spaced_among_the_words_of_ham_left_out(messages, alpha):
    weights, n_words = weights_of_ham_words(messages, alpha)
    n_spam = int(messages.per_class[-1])
    pairs = ham_pairs(messages.counts, messages.n_classes - 1)
    found = padding_weights(pairs, len(messages.labels) - n_spam, n_spam, alpha)
    if not weights:
        assert found == []
        return
    assert [len(added) for added in found] == [
        round(n * len(weights) / n_words) for n in PADDING_SIZES
    ]
    for added in found:
        places = (np.arange(len(added)) + 0.5) / max(len(added), 1) * len(weights)
        expected = [weights[max(int(np.ceil(place)) - 1, 0)] for place in places]
        assert added.tolist() == pytest.approx(expected, abs=1e-9)


def test_without_spam_or_without_ham_words_there_is_no_padding():
    assert not ham_pairs(np.array([[1, 2], [0, 3]]), None)
    assert not ham_pairs(np.array([[0, 0], [0, 3]]), 1)
    assert padding_weights({}, 5, 5, 0.05) == padding_weights({(1, 0): 7}, 5, 5, 0.05) == []


def test_all_classes_but_spam_are_ham():
    counts = np.array([[1, 0, 4], [2, 5, 0], [0, 0, 3]])
    assert ham_pairs(counts, 1) == {(1, 2): 1, (7, 0): 1}
    assert ham_pairs(counts, 0) == {(2, 1): 1, (5, 0): 1, (3, 4): 1}
