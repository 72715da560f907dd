import math
from collections import Counter

from closeness import close
from counted_models import THREE, learn_counted, message, settings_of
from hypothesis import given
from hypothesis import strategies as st

from nbspam.bayes.complement import Complement
from nbspam.bayes.multinomial import Multinomial
from nbspam.learning.online import OnlineLearner
from nbspam.learning.settings import empty_metadata

CHOSEN = settings_of(("complement", "none"), alpha=1)
# Ham has a 4 times; promo a once and b twice; spam b 3 times.
MESSAGES = [message("ham", {"a": 4}), message("promo", {"a": 1, "b": 2}), message("spam", {"b": 3})]


def test_weights_and_scores_by_hand():
    """All but ham: a 1, b 5; all but promo: a 4, b 3; all but spam: a 5, b 2."""
    learned = learn_counted(MESSAGES, CHOSEN)
    assert learned.counts == {"a": (4, 1, 0), "b": (0, 2, 3)}
    assert learned.fit.metadata.settings.classes == THREE
    size = learned.fit.metadata.size
    a, b = (Complement().class_weights(learned.counts[token], size, 1) for token in "ab")
    assert [math.exp(-w) for w in a] == close([2 / 8, 5 / 9, 6 / 9])
    assert [math.exp(-w) for w in b] == close([6 / 8, 4 / 9, 3 / 9])
    one = message(None, {"a": 1, "b": 2})
    score = learned.classifier.score(one.tokens, one.numbers)
    odds = [1 / (2 / 8 * (6 / 8) ** 2), 1 / (5 / 9 * (4 / 9) ** 2), 1 / (6 / 9 * (3 / 9) ** 2)]
    assert score.log_scores == close([math.log(x) for x in odds])
    assert score.probabilities == close([x / sum(odds) for x in odds])
    # The prior has no part, and copies of a message without tokens change nothing.
    more = learn_counted([*MESSAGES, *[message("spam", {})] * 50], CHOSEN).classifier
    assert more.score(["a"]).log_scores == learned.classifier.score(["a"]).log_scores
    assert more.score([]).probabilities == close([1 / 3] * 3)


def test_a_class_without_messages_is_impossible():
    learner = OnlineLearner(empty_metadata(THREE, "spam", CHOSEN), {})
    for one in MESSAGES[::2]:
        learner.learn(one.label, one.tokens, one.numbers)
    assert learner.metadata.bias == (0.0, -math.inf, 0.0)
    probabilities = learner.classifier().score(["a"]).probabilities
    assert probabilities[1] == 0
    assert probabilities[0] > probabilities[2] > 0


ROWS = st.lists(
    st.tuples(st.integers(0, 50), st.integers(0, 50)).filter(any), min_size=1, max_size=10
)


@given(ROWS, st.floats(1e-3, 3))
def test_of_two_classes_weights_differ_as_in_the_multinomial_model(rows, alpha):
    histograms = [Counter(row[k] for row in rows) for k in range(2)]
    size = Complement().size(histograms, (9, 9))
    for row in rows:
        ham, spam = Complement().class_weights(row, size, alpha)
        one, other = Multinomial().class_weights(row, size, alpha)
        assert spam - ham == close(other - one)
