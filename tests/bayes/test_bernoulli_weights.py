"""The textbook's linear form of two classes: a bias, and a weight for each binary feature."""

import math

import numpy as np
import pytest
from closeness import close
from counted_models import TWO, counted_messages, learn_counted, message, settings_of
from hypothesis import given
from small_models import ALPHAS


class TestSpellingErrors:
    """Misspelt words as binary features, with alpha 1: theta = (count + 1) / (messages + 2).

    Of 4 ham, one has "recieve" and three "tommorow"; of 2 spam, two have "recieve", one "garantee".
    """

    messages = (
        message("ham", {"recieve": 1, "tommorow": 1}),
        message("ham", {"tommorow": 1}),
        message("ham", {"tommorow": 1}),
        message("ham", {}),
        message("spam", {"recieve": 1, "garantee": 1}),
        message("spam", {"recieve": 1}),
    )
    theta_ham = (2 / 6, 4 / 6, 1 / 6)  # recieve, tommorow, garantee
    theta_spam = (3 / 4, 1 / 4, 2 / 4)
    words = ("recieve", "tommorow", "garantee")
    # log th_1 - log(1 - th_1) - log th_0 + log(1 - th_0)
    weights = (math.log(3 * 2), math.log(1 / 3 / 2), math.log(1 * 5))
    # The log prior odds, and for each word log(1 - th_1) - log(1 - th_0).
    bias = (
        math.log(1 / 2)
        + math.log(1 / 4 * 6 / 4)
        + math.log(3 / 4 * 6 / 2)
        + math.log(2 / 4 * 6 / 5)
    )

    def learned(self):
        return learn_counted(self.messages, settings_of(("bernoulli", "none"), alpha=1))

    def test_weights_and_bias(self):
        learned = self.learned()
        ham, spam = learned.fit.metadata.bias
        assert spam - ham == close(self.bias)
        for word, weight in zip(self.words, self.weights, strict=True):
            of_ham, of_spam = learned.classifier.rule.weights(learned.counts[word])
            assert of_spam - of_ham == close(weight)

    @pytest.mark.parametrize("present", range(8))
    def test_log_odds_are_the_bias_and_the_weights_of_what_is_present(self, present):
        found = [i for i in range(3) if present >> i & 1]
        score = self.learned().classifier.score([self.words[i] for i in found])
        assert score.log_odds == close(self.bias + math.fsum(self.weights[i] for i in found))
        # And by Bayes's theorem, from the likelihoods of what is present and what is absent.
        ham, spam = 4 / 6, 2 / 6
        for i in range(3):
            ham *= self.theta_ham[i] if i in found else 1 - self.theta_ham[i]
            spam *= self.theta_spam[i] if i in found else 1 - self.theta_spam[i]
        assert score.probability == close(spam / (ham + spam))


@given(counted_messages(classes=TWO), ALPHAS)
def test_the_linear_form_is_bayes_theorem(messages, alpha):
    """w_j and the bias by the equations, from the shares of messages with each token."""
    learned = learn_counted(messages, settings_of(("bernoulli", "none"), alpha=alpha))
    n = np.array(learned.fit.metadata.learned.messages)
    rows = np.array(list(learned.counts.values())).reshape(-1, 2)
    theta = (rows + alpha) / (n + 2 * alpha)
    absent = (n - rows + alpha) / (n + 2 * alpha)
    weights = (
        np.log(theta[:, 1]) - np.log(absent[:, 1]) - np.log(theta[:, 0]) + np.log(absent[:, 0])
    )
    bias = np.log(n[1] / n[0]) + (np.log(absent[:, 1]) - np.log(absent[:, 0])).sum()
    by_token = dict(zip(learned.counts, weights, strict=True))
    for one in messages:
        expected = bias + sum(by_token[token] for token in one.tokens)
        assert learned.classifier.score(one.tokens).log_odds == close(expected)
