import math
from collections import Counter
from typing import ClassVar

import pytest
from closeness import close
from counted_models import learn_counted, message, settings_of
from hypothesis import given
from hypothesis import strategies as st
from one_case import each

from nbspam.bayes.bernoulli import joints, log_absent_sum, weight
from nbspam.bayes.posterior import log_priors, sigmoid, softmax


class TestChinaExample:
    """Manning, Raghavan and Schütze, Introduction to Information Retrieval, section 13.3.

    Three documents about China and one that is not; with alpha 1:
    P(Chinese | China) = 4/5, P(Tokyo | China) = P(Japan | China) = 1/5, the three others 2/5;
    P(Chinese | not) = P(Tokyo | not) = P(Japan | not) = 2/3, the three others 1/3.
    """

    documents = (1, 3)  # not about China, about China
    counts: ClassVar = {"chinese": (1, 3), "tokyo": (1, 0), "japan": (1, 0)} | dict.fromkeys(
        ("beijing", "shanghai", "macao"), (0, 1)
    )

    def row(self, token):
        return [weight(c, n, 1) for c, n in zip(self.counts[token], self.documents, strict=True)]

    def test_weights(self):
        assert self.row("chinese") == [close(math.log(2)), close(math.log(4))]
        assert self.row("tokyo") == [close(math.log(2)), close(math.log(1 / 4))]
        assert self.row("beijing") == [close(math.log(1 / 2)), close(math.log(2 / 3))]

    def test_the_test_document_is_not_about_china(self):
        bias = [
            prior + log_absent_sum(Counter(c[k] for c in self.counts.values()), n, 1)
            for k, (prior, n) in enumerate(
                zip(log_priors(self.documents, None, 1), self.documents, strict=True)
            )
        ]
        found = joints(bias, map(self.row, ("chinese", "tokyo", "japan")))
        china = 3 / 4 * 4 / 5 * 1 / 5 * 1 / 5 * (1 - 2 / 5) ** 3  # 0.005
        other = 1 / 4 * (2 / 3) ** 3 * (1 - 1 / 3) ** 3  # 0.022
        assert found == [close(math.log(other)), close(math.log(china))]
        assert softmax(found)[1] == close(0.005184 / (0.005184 + 16 / 729))


class TestSpellingErrors:
    """The textbook's linear form of two classes: a bias, and a weight for each binary feature.

    Misspelt words are the features, with alpha 1: theta = (count + 1) / (messages + 2).
    Of 4 ham, one has "recieve" and three "tommorow"; of 2 spam, two have "recieve", one "garantee".
    """

    messages: ClassVar = [
        message("ham", {"recieve": 1, "tommorow": 1}),
        *[message("ham", {"tommorow": 1})] * 2,
        message("ham", {}),
        message("spam", {"recieve": 1, "garantee": 1}),
        message("spam", {"recieve": 1}),
    ]
    theta_ham = (2 / 6, 4 / 6, 1 / 6)  # recieve, tommorow, garantee
    theta_spam = (3 / 4, 1 / 4, 2 / 4)
    words = ("recieve", "tommorow", "garantee")
    # log th_1 - log(1 - th_1) - log th_0 + log(1 - th_0)
    weights = (math.log(3 * 2), math.log(1 / 3 / 2), math.log(1 * 5))
    # The prior odds, and for each word (1 - th_1) / (1 - th_0).
    bias = math.log(1 / 2 * (1 / 4 * 6 / 4) * (3 / 4 * 6 / 2) * (2 / 4 * 6 / 5))

    def test_log_odds_are_the_bias_and_the_weights_of_what_is_present(self):
        learned = learn_counted(self.messages, settings_of(("bernoulli", "none"), alpha=1))
        ham, spam = learned.fit.metadata.bias
        assert spam - ham == close(self.bias)
        for word, expected in zip(self.words, self.weights, strict=True):
            of_ham, of_spam = learned.classifier.rule.weights(learned.counts[word])
            assert of_spam - of_ham == close(expected)
        for present in range(8):
            found = [i for i in range(3) if present >> i & 1]
            score = learned.classifier.score([self.words[i] for i in found])
            assert score.log_odds == close(self.bias + math.fsum(self.weights[i] for i in found))
            # And by Bayes's theorem, from the likelihoods of what is present and what is absent.
            ham, spam = 4 / 6, 2 / 6
            for i in range(3):
                ham *= self.theta_ham[i] if i in found else 1 - self.theta_ham[i]
                spam *= self.theta_spam[i] if i in found else 1 - self.theta_spam[i]
            assert score.probability == close(spam / (ham + spam))


def test_weight_takes_logs_of_counts_even_for_the_smallest_alpha():
    assert weight(5, 10, 0.1) == 0  # half the messages hold it
    assert weight(10, 10, 1e-12) == close(math.log(10 + 1e-12) - math.log(1e-12))


@given(st.lists(st.integers(0, 30), max_size=50), st.integers(0, 20), st.floats(1e-6, 10))
def test_sum_by_count_histograms_is_the_direct_sum(counts, more, alpha):
    messages = max(counts, default=0) + more
    direct = sum(math.log(1 - (c + alpha) / (messages + 2 * alpha)) for c in counts)
    actual = log_absent_sum(Counter(counts), messages, alpha)
    assert pytest.approx(direct, rel=1e-7, abs=1e-7) == actual
    assert log_absent_sum({}, 7, 0.1) == 0


@each(
    "messages, prior, positive, expected",
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
    assert log_priors((0, 4), None, 1) == [-math.inf, 0.0]  # a class without messages


def test_joints_do_not_depend_on_the_order_of_tokens():
    assert joints((-1.5, -2.5), []) == [-1.5, -2.5]
    rows = [(0.1 * i, -1e10 if i == 3 else 1 / (i + 1)) for i in range(50)]
    assert joints((1.0, 2.0), rows) == joints((1.0, 2.0), rows[::-1])


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=5))
def test_softmax_adds_up_to_one(scores):
    assert close(1) == sum(softmax(scores))
    assert softmax([-math.inf, -5.0]) == [0.0, 1.0]
    assert softmax([-math.inf, -math.inf]) == [0.5, 0.5]
    # Far scores neither overflow nor vanish.
    far = [(-1e5, 0.0), (1e5, 0.0), (-3e4, -3e4)]
    assert list(map(softmax, far)) == [[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]]


@given(st.floats(-700, 700))
def test_sigmoid_of_opposites_add_up_to_one(log_odds):
    assert close(1) == sigmoid(log_odds) + sigmoid(-log_odds)
    assert [sigmoid(z) for z in (0, math.log(3))] == close([0.5, 0.75])
    assert [sigmoid(z) for z in (1e9, -1e9, math.inf, -math.inf)] == close([1, 0, 1, 0])
