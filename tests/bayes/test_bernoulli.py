import math
from collections import Counter
from typing import ClassVar

import pytest
from closeness import close
from hypothesis import given
from hypothesis import strategies as st

from nbspam.bayes.bernoulli import joints, log_absent_sum, weight
from nbspam.bayes.posterior import log_priors, sigmoid, softmax


class TestChinaExample:
    """Manning, Raghavan and Schütze, Introduction to Information Retrieval, section 13.3.

    Three documents about China and one that is not; with alpha 1:
    P(Chinese | China) = 4/5, P(Tokyo | China) = P(Japan | China) = 1/5, the three others 2/5;
    P(Chinese | not) = P(Tokyo | not) = P(Japan | not) = 2/3, the three others 1/3.
    """

    documents = (1, 3)  # not about China, about China
    counts: ClassVar = {
        "chinese": (1, 3),
        "beijing": (0, 1),
        "shanghai": (0, 1),
        "macao": (0, 1),
        "tokyo": (1, 0),
        "japan": (1, 0),
    }
    test_document = ("chinese", "tokyo", "japan")

    def row(self, token):
        return [weight(c, n, 1) for c, n in zip(self.counts[token], self.documents, strict=True)]

    def bias(self):
        return [
            prior + log_absent_sum(Counter(c[k] for c in self.counts.values()), n, 1)
            for k, (prior, n) in enumerate(
                zip(log_priors(self.documents, None, 1), self.documents, strict=True)
            )
        ]

    def test_weights(self):
        assert [close(math.log(2)), close(math.log(4))] == self.row("chinese")
        assert [close(math.log(2)), close(math.log(1 / 4))] == self.row("tokyo")
        assert [close(math.log(1 / 2)), close(math.log(2 / 3))] == self.row("beijing")

    def test_joint_likelihoods_of_the_test_document(self):
        actual = joints(self.bias(), map(self.row, self.test_document))
        china = 3 / 4 * 4 / 5 * 1 / 5 * 1 / 5 * (1 - 2 / 5) ** 3  # 0.005
        other = 1 / 4 * (2 / 3) ** 3 * (1 - 1 / 3) ** 3  # 0.022
        assert [close(math.log(other)), close(math.log(china))] == actual

    def test_the_test_document_is_not_about_china(self):
        actual = softmax(joints(self.bias(), map(self.row, self.test_document)))
        assert close(0.005184 / (0.005184 + 16 / 729)) == actual[1]


def test_weight_of_a_token_that_half_the_messages_hold_is_nothing():
    assert weight(5, 10, 0.1) == 0


def test_weight_takes_logs_of_counts_even_for_the_smallest_alpha():
    assert close(math.log(10 + 1e-12) - math.log(1e-12)) == weight(10, 10, 1e-12)


@given(st.lists(st.integers(0, 30), max_size=50), st.integers(0, 20), st.floats(1e-6, 10))
def test_sum_by_count_histograms_is_the_direct_sum(counts, more, alpha):
    messages = max(counts, default=0) + more
    direct = sum(math.log(1 - (c + alpha) / (messages + 2 * alpha)) for c in counts)
    actual = log_absent_sum(Counter(counts), messages, alpha)
    assert pytest.approx(direct, rel=1e-7, abs=1e-7) == actual


def test_sum_over_an_empty_vocabulary_is_nothing():
    assert log_absent_sum({}, 7, 0.1) == 0


@pytest.mark.parametrize(
    ("messages", "prior", "positive", "expected"),
    [
        ((3, 1), None, 1, (0.75, 0.25)),
        ((3, 1), 0.5, 1, (0.5, 0.5)),
        ((3, 1), 0.9, 0, (0.9, 0.1)),
        ((3, 1, 4), None, None, (3 / 8, 1 / 8, 4 / 8)),
        ((3, 1, 4), 0.2, 2, (0.6, 0.2, 0.2)),  # the others keep 3 to 1
        ((3, 1, 4), 0.2, None, (3 / 8, 1 / 8, 4 / 8)),
        ((0, 0), None, 1, (0.5, 0.5)),
        ((0, 4), 0.3, 1, (0.7, 0.3)),  # nothing to share by: evenly
        ((0, 0, 4), 0.4, 2, (0.3, 0.3, 0.4)),
    ],
)
def test_priors_are_shares_or_the_users(messages, prior, positive, expected):
    assert list(map(close, map(math.log, expected))) == log_priors(messages, prior, positive)


def test_prior_of_a_class_without_messages_is_impossible():
    assert [-math.inf, 0.0] == log_priors((0, 4), None, 1)


def test_joints_of_no_tokens_are_the_bias():
    assert joints((-1.5, -2.5), []) == [-1.5, -2.5]


def test_joints_do_not_depend_on_the_order_of_tokens():
    rows = [(0.1 * i, -1e10 if i == 3 else 1 / (i + 1)) for i in range(50)]
    assert joints((1.0, 2.0), rows) == joints((1.0, 2.0), rows[::-1])


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=5))
def test_softmax_adds_up_to_one(scores):
    assert close(1) == sum(softmax(scores))


def test_softmax_of_impossible_classes():
    assert softmax([-math.inf, -5.0]) == [0.0, 1.0]
    assert softmax([-math.inf, -math.inf]) == [0.5, 0.5]


@pytest.mark.parametrize(
    ("log_odds", "expected"),
    [(0, 0.5), (math.log(3), 0.75), (1e9, 1.0), (-1e9, 0.0), (math.inf, 1.0), (-math.inf, 0.0)],
)
def test_sigmoid(log_odds, expected):
    assert close(expected) == sigmoid(log_odds)


@given(st.floats(-700, 700))
def test_sigmoid_of_opposites_add_up_to_one(log_odds):
    assert close(1) == sigmoid(log_odds) + sigmoid(-log_odds)
