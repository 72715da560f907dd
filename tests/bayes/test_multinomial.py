import math
from collections import Counter
from typing import ClassVar

from closeness import close
from counted_models import learn_counted, message, settings_of
from hypothesis import given
from hypothesis import strategies as st
from one_case import each

from nbspam.bayes.multinomial import Multinomial, outcomes_of, trials_of


def histograms_of(rows, n_classes=2):
    return [Counter(row[k] for row in rows) for k in range(n_classes)]


class TestChinaExample:
    """Manning, Raghavan and Schütze, Introduction to Information Retrieval, table 13.1.

    With alpha 1, c for China: P(Chinese|c) = 3/7, P(Tokyo|c) = P(Japan|c) = 1/14; all three of ~c
    are 2/9.  The Bernoulli model of the same documents is in `test_bernoulli.py`.
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
        return self.learned(event_model).classifier.score(one.tokens, one.numbers)

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
        classifier.score(m.tokens, m.numbers).log_odds
        for m in (message(None, {"c": n} if n else {}) for n in range(4))
    )
    assert [one - none, two - one, three - two] == close([one - none] * 3)
    assert one > none
    expected = classifier.score(["a"])
    found = classifier.score(["a", "new"], message(None, {"a": 1, "new": 5}).numbers)
    assert (expected.log_scores, expected.text + 1) == (found.log_scores, found.text)


ROWS = st.lists(
    st.tuples(st.integers(0, 50), st.integers(0, 50)).filter(any), min_size=1, max_size=10
)


@given(ROWS, st.floats(1e-3, 3))
def test_likelihoods_of_all_tokens_add_up_to_one(rows, alpha):
    size = Multinomial().size(histograms_of(rows), (9, 9))
    weights = [Multinomial().class_weights(row, size, alpha) for row in rows]
    for k in range(2):
        assert math.fsum(math.exp(row[k]) for row in weights) == close(1)


def test_sizes_are_of_the_histograms():
    histograms = [{0: 2, 3: 1, 5: 2}, {1: 4, 2: 1}]
    assert trials_of(histograms) == [13, 6]
    assert outcomes_of(histograms) == 5
    assert (trials_of([{}, {}]), outcomes_of([{}, {}])) == ([0, 0], 1)


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
    assert Multinomial().is_row(row, (2, 3)) == multinomial
    # None of a class without messages.
    assert [Multinomial().is_row(some, (0, 3)) for some in ((1, 4), (0, 4))] == [False, True]
