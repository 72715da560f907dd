"""The event models; their arrays are held to scikit-learn's in learning/test_event_models.py."""

import math
from collections import Counter
from typing import ClassVar

import numpy as np
import pytest
from closeness import close
from counted_models import THREE, learn_counted, message, settings_of
from hypothesis import given
from hypothesis import strategies as st
from one_case import each
from random_messages import (
    Messages,
    absent_sum,
    messages,
)

from nbspam.bayes import event_model
from nbspam.bayes.event_model import (
    Bernoulli,
    Complement,
    Multinomial,
    class_alphas,
    joint_log_likelihoods,
    log_priors,
    pair_weight,
    sigmoid,
    softmax,
)
from nbspam.learning.learner import Learner
from nbspam.learning.settings import empty_metadata


def weight(count, n, alpha):
    """Return the Bernoulli weight of a token in one class of n messages."""
    return Bernoulli().class_weights((count,), Bernoulli().size([], (n,)), alpha)[0]


@given(messages())
def test_counts_are_the_sums_of_each_class(found):
    expected = [found.dense[found.labels == k].sum(axis=0) for k in range(found.n_classes)]
    assert np.array(expected).tolist() == found.counts.tolist()
    empty = Messages(np.array([[1, 0], [1, 1]]), np.array([0, 2]), 3)
    assert empty.counts.tolist() == [[1, 0], [0, 0], [1, 1]]


class TestDocumentsAboutChina:
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
            prior + absent_sum(Counter(c[k] for c in self.counts.values()), n, 1)
            for k, (prior, n) in enumerate(
                zip(log_priors(self.documents, None, 1), self.documents, strict=True)
            )
        ]
        found = joint_log_likelihoods(bias, map(self.row, ("chinese", "tokyo", "japan")))
        china = 3 / 4 * 4 / 5 * 1 / 5 * 1 / 5 * (1 - 2 / 5) ** 3  # 0.005
        other = 1 / 4 * (2 / 3) ** 3 * (1 - 1 / 3) ** 3  # 0.022
        assert found == [close(math.log(other)), close(math.log(china))]
        assert softmax(found)[1] == close(0.005184 / (0.005184 + 16 / 729))


def test_weight_takes_logs_of_counts_even_for_the_smallest_alpha():
    assert weight(5, 10, 0.1) == 0  # half the messages hold it
    assert weight(10, 10, 1e-12) == close(math.log(10 + 1e-12) - math.log(1e-12))


@given(st.lists(st.integers(0, 30), max_size=50), st.integers(0, 20), st.floats(1e-6, 10))
def test_sum_by_count_histograms_is_the_direct_sum(counts, more, alpha):
    messages = max(counts, default=0) + more
    direct = sum(math.log(1 - (c + alpha) / (messages + 2 * alpha)) for c in counts)
    actual = absent_sum(Counter(counts), messages, alpha)
    assert pytest.approx(direct, rel=1e-7, abs=1e-7) == actual
    assert absent_sum({}, 7, 0.1) == 0


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
    assert joint_log_likelihoods((-1.5, -2.5), []) == [-1.5, -2.5]
    rows = [(0.1 * i, -1e10 if i == 3 else 1 / (i + 1)) for i in range(50)]
    assert joint_log_likelihoods((1.0, 2.0), rows) == joint_log_likelihoods((1.0, 2.0), rows[::-1])


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


# Weights of presence


def one_vs_rest_weight(row, messages, k, alpha):
    """Return the weight of a token counted in messages, of which a token is in or is not."""
    return event_model.one_vs_rest_weight(row, Bernoulli().size([], messages), k, alpha)


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
    found = one_vs_rest_weight((2365, 500), (2500, 500), 1, 0.05)
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
    assert one_vs_rest_weight((a, b), (n, n), 1, alpha) == -one_vs_rest_weight(
        (b, a), (n, n), 1, alpha
    )
    assert one_vs_rest_weight((a, b), (n, n), 1, alpha) == -one_vs_rest_weight(
        (a, b), (n, n), 0, alpha
    )
    assert one_vs_rest_weight((a, a), (n, n), 1, alpha) == 0


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
    found = one_vs_rest_weight(row, messages, k, alpha)
    assert close(math.log(share / share_of_rest)) == found
    assert abs(found) <= abs(math.log(share / share_of_rest)) + 1e-9
    # Nor what a share can be at most: 1, and at least that of no message.
    assert found <= -math.log(a_rest / (rest + 2 * a_rest)) + 1e-9
    assert found >= math.log(a / (n + 2 * a)) - 1e-9


@given(st.integers(1, 3000), st.integers(1, 3000), st.integers(0, 3000), st.floats(1e-4, 1))
def test_a_weight_rises_with_the_count_inside_and_falls_with_that_outside(n, rest, count, alpha):
    inside, outside = count % n, count % rest
    found = one_vs_rest_weight((outside, inside), (rest, n), 1, alpha)
    assert one_vs_rest_weight((outside, inside + 1), (rest, n), 1, alpha) > found
    assert one_vs_rest_weight((outside + 1, inside), (rest, n), 1, alpha) < found
    # Of a token of every message only the smoothing says something.
    assert abs(one_vs_rest_weight((rest, n), (rest, n), 1, alpha)) <= 2 * alpha * 2


def histograms_of(rows, n_classes=2):
    return [Counter(row[k] for row in rows) for k in range(n_classes)]


class TestWordsAboutChina:
    """Manning, Raghavan and Schütze, Introduction to Information Retrieval, table 13.1.

    With alpha 1, c for China: P(Chinese|c) = 3/7, P(Tokyo|c) = P(Japan|c) = 1/14; all three of ~c
    are 2/9.  `TestDocumentsAboutChina` has the Bernoulli model of the same.
    """

    documents: ClassVar = [
        ("china", "Chinese Beijing Chinese"),
        ("china", "Chinese Chinese Shanghai"),
        ("china", "Chinese Macao"),
        ("not", "Tokyo Japan Chinese"),
    ]
    test_document = "Chinese Chinese Chinese Tokyo Japan"
    counts: ClassVar = {  # not about China, about China
        "Chinese": (1, 5),
        "Beijing": (0, 1),
        "Shanghai": (0, 1),
        "Macao": (0, 1),
        "Tokyo": (1, 0),
        "Japan": (1, 0),
    }

    def learned(self, event_model="multinomial"):
        messages = [message(label, Counter(text.split())) for label, text in self.documents]
        chosen = settings_of((event_model, "none"), alpha=1, positive="china")
        return learn_counted(messages, chosen)

    def score(self, event_model="multinomial"):
        one = message(None, Counter(self.test_document.split()))
        return self.learned(event_model).classifier.score(one.tokens, one.extras)

    def test_counts_and_likelihoods(self):
        learned = self.learned()
        assert learned.fit.metadata.settings.classes == ("not", "china")
        assert learned.counts == self.counts
        assert list(map(math.exp, learned.fit.metadata.bias)) == close([1 / 4, 3 / 4])
        size = learned.fit.metadata.size
        assert (size.messages, size.trials, size.outcomes) == ((1, 3), (3, 8), 6)
        size = Multinomial().size(histograms_of(self.counts.values()), (1, 3))
        for token, expected in (
            ("Chinese", (2 / 9, 3 / 7)),
            ("Tokyo", (2 / 9, 1 / 14)),
            ("Japan", (2 / 9, 1 / 14)),
            ("Beijing", (1 / 9, 1 / 7)),
        ):
            weights = Multinomial().class_weights(self.counts[token], size, 1)
            assert list(map(math.exp, weights)) == close(expected)

    def test_the_test_document_is_about_china(self):
        other, china = map(math.exp, self.score().log_scores)
        assert china == close(3 / 4 * (3 / 7) ** 3 * (1 / 14) ** 2)
        assert other == close(1 / 4 * (2 / 9) ** 3 * (2 / 9) ** 2)
        assert (round(china, 4), round(other, 4)) == (0.0003, 0.0001)
        assert self.score().probability == close(china / (china + other))

    def test_by_the_complement_model_it_is_about_china(self):
        """Without the prior, and of two classes the other's words are those of the complement."""
        other, china = self.score("complement").log_scores
        assert china == close(-5 * math.log(2 / 9))
        assert other == close(-3 * math.log(3 / 7) - 2 * math.log(1 / 14))


def test_a_token_says_as_much_each_time_that_it_occurs_and_an_unknown_one_nothing():
    messages = [message("ham", {"a": 2, "b": 1}), message("spam", {"a": 1, "c": 3})]
    classifier = learn_counted(messages, settings_of(("multinomial", "none"))).classifier
    none, one, two, three = (
        classifier.score(m.tokens, m.extras).log_odds
        for m in (message(None, {"c": n} if n else {}) for n in range(4))
    )
    assert [one - none, two - one, three - two] == close([one - none] * 3)
    assert one > none
    expected = classifier.score(["a"])
    found = classifier.score(["a", "new"], message(None, {"a": 1, "new": 5}).extras)
    assert (expected.log_scores, expected.text + 1) == (found.log_scores, found.text)


def test_sizes_are_of_the_histograms():
    size = Multinomial().size([{0: 2, 3: 1, 5: 2}, {1: 4, 2: 1}], (9, 9))
    assert (size.trials, size.outcomes) == ((13, 6), 5)
    size = Multinomial().size([{}, {}], (0, 0))
    assert (size.trials, size.outcomes) == ((0, 0), 1)


@each(
    "row, multinomial",
    [
        ((0, 0), False),
        ((1, 0), True),
        ((2, 3), True),
        ((3, 0), True),  # more often than there are messages
        ((-1, 2), False),
        ((0, -1), False),
    ],
)
def test_possible_counts_where_two_and_three_messages_were_learned(row, multinomial):
    assert Multinomial().is_valid_row(row, (2, 3)) == multinomial
    # None of a class without messages.
    assert [Multinomial().is_valid_row(some, (0, 3)) for some in ((1, 4), (0, 4))] == [False, True]


BY_COMPLEMENT = settings_of(("complement", "none"), alpha=1)
# Ham has a 4 times; promo a once and b twice; spam b 3 times.
OF_THREE = [message("ham", {"a": 4}), message("promo", {"a": 1, "b": 2}), message("spam", {"b": 3})]


def test_complements_weights_and_scores_by_hand():
    """All but ham: a 1, b 5; all but promo: a 4, b 3; all but spam: a 5, b 2."""
    learned = learn_counted(OF_THREE, BY_COMPLEMENT)
    assert learned.counts == {"a": (4, 1, 0), "b": (0, 2, 3)}
    assert learned.fit.metadata.settings.classes == THREE
    size = learned.fit.metadata.size
    a, b = (Complement().class_weights(learned.counts[token], size, 1) for token in "ab")
    assert [math.exp(-w) for w in a] == close([2 / 8, 5 / 9, 6 / 9])
    assert [math.exp(-w) for w in b] == close([6 / 8, 4 / 9, 3 / 9])
    one = message(None, {"a": 1, "b": 2})
    score = learned.classifier.score(one.tokens, one.extras)
    odds = [1 / (2 / 8 * (6 / 8) ** 2), 1 / (5 / 9 * (4 / 9) ** 2), 1 / (6 / 9 * (3 / 9) ** 2)]
    assert score.log_scores == close([math.log(x) for x in odds])
    assert score.probabilities == close([x / sum(odds) for x in odds])
    # The prior has no part, and copies of a message without tokens change nothing.
    more = learn_counted([*OF_THREE, *[message("spam", {})] * 50], BY_COMPLEMENT).classifier
    assert more.score(["a"]).log_scores == learned.classifier.score(["a"]).log_scores
    assert more.score([]).probabilities == close([1 / 3] * 3)


def test_a_class_without_messages_is_impossible():
    learner = Learner(empty_metadata(THREE, "spam", BY_COMPLEMENT), {})
    for one in OF_THREE[::2]:
        learner.learn(one.label, one.tokens, one.extras)
    assert learner.metadata.bias == (0.0, -math.inf, 0.0)
    probabilities = learner.classifier().score(["a"]).probabilities
    assert probabilities[1] == 0
    assert probabilities[0] > probabilities[2] > 0
