import math

import pytest
from channel_models import EVERY_CHANNEL, labelled_mails, many_mails
from closeness import close
from hypothesis import given
from hypothesis import strategies as st
from one_case import each
from small_models import (
    ALPHAS,
    PRIORS,
    SCORINGS,
    labelled_tokens,
    learn,
    with_learned,
)

from nbspam.bayes.event_model import MAX_LOG_ODDS, logit, sigmoid
from nbspam.scoring.classifier import BulkClassifier, Classifier
from nbspam.store.index import TokenTable
from nbspam.store.lookup import Lookup
from nbspam.tokens.tokenized import TokenizedMessage

# One message and many


@given(labelled_tokens(tokens=EVERY_CHANNEL), ALPHAS, PRIORS, st.sampled_from(SCORINGS))
def test_the_probabilities_are_those_of_the_log_odds(messages, alpha, prior, scoring):
    classifier = learn(messages, alpha=alpha, prior=prior, scoring=scoring).classifier
    for _, tokens in messages:
        score = classifier.score(tokens | {"never seen before"})
        assert close(1) == sum(score.probabilities)
        assert score.probability in score.probabilities
        assert close(sigmoid(score.log_odds)) == score.probability


@each("hosts, low, high", [("one", 0.9, 1), ("mixed", 0.3, 0.7), ("own", 0, 0.05)])
def test_headers_are_trusted_as_far_as_the_hosts_say(hosts, low, high):
    mails = many_mails(400, 1, hosts=hosts, longest=20)
    score = learn(mails, scoring="evidence").classifier.score
    assert low < score(mails[0][1] | {f"received:w{i}" for i in range(150)}).trust < high
    # Who took a mail in is no evidence of its class.
    tokens = {"ham0", "w1", "w2", "from:w3", "received:w4", "received:ham0"}
    assert score(tokens | {"by:ham"}) == score(tokens | {"by:spam"}) == score(tokens)


def test_the_words_of_a_message_are_told_apart_by_channel():
    ham = {"a", "from:a", "received:a", "open:a", "open:!a", "by:a"}
    classifier = learn([("ham", ham), ("spam", {"b"})]).classifier
    words = classifier.known_words([*ham, *"b c from:b open:b by:b".split()])
    assert [len(channel) for channel in words[:5]] == [2, 1, 1, 2, 1]
    assert (words.text_tokens, len(words.all)) == (3, 7)


@each("cached", [1_000_000, 2, 0])
def test_what_a_classifier_has_met_changes_no_score(cached):
    learned = learn()
    classifier = Classifier(learned.fit.metadata, learned.classifier.counts, cached)
    for tokens in ({"free"}, {"prize", "new"}, {"meeting", "free", "lunch"}, set(), {"free", "b"}):
        assert learned.classifier.score(tokens) == classifier.score(tokens)


def test_the_words_of_a_huge_message_displace_no_others():
    learned, asked = learn(), []

    def counts(tokens):
        asked.append(set(tokens))
        return learned.classifier.counts(tokens)

    classifier = Classifier(learned.fit.metadata, counts, 10)
    huge = {f"w{i}" for i in range(11)}
    for tokens in ({"free"}, huge, huge, {"free"}):
        classifier.score(tokens)
    assert asked == [{"free"}, huge, huge]


@each("scoring", SCORINGS)
def test_an_unknown_token_is_only_counted_and_a_known_one_once(scoring):
    classifier = learn(scoring=scoring).classifier
    alone = classifier.score({"prize"})
    assert (alone.known, alone.text) == (1, 1)
    assert alone._replace(text=2) == classifier.score({"prize", "xylophone"})
    for other in ("from:xylophone", "received:xylophone", "open:xylo", "by:xylophone", "prize"):
        assert alone == classifier.score(["prize", other])


def test_opposite_positive_classes_have_opposite_scores():
    messages = [("good", {"a", "b"}), ("good", {"a"}), ("bad", {"b", "c"})]
    good = learn(messages, positive="good").classifier.score({"b"})
    bad = learn(messages, positive="bad").classifier.score({"b"})
    assert close(good.log_odds) == -bad.log_odds
    assert close(good.probability) == 1 - bad.probability


def test_of_three_classes_the_probability_is_that_of_spam_or_of_the_most_probable():
    score = learn([("a", {"x"}), ("b", {"y"}), ("c", {"z"})]).classifier.score({"y"})
    assert max(score.probabilities) == score.probability == score.probabilities[1]
    score = learn([("ham", {"x"}), ("promo", {"y"}), ("spam", {"z"})]).classifier.score({"y"})
    assert score.probabilities[2] == score.probability < 0.5


def test_a_model_that_has_seen_one_class_alone_is_undecided():
    metadata = learn([("a", {"x"}), ("b", {"x"}), ("spam", {"x"})], scoring="sum").fit.metadata
    one = with_learned(metadata, messages=(0, 0, 1), count_histograms=({0: 1}, {0: 1}, {1: 1}))
    assert one.bias[:2] == (-math.inf, -math.inf)
    score = Classifier(one, lambda tokens: {}).score(set())
    assert score.probabilities == (1 / 3, 1 / 3, 1 / 3)
    assert (score.probability, score.log_odds) == (0.5, 0)
    # A class without messages beside two that have some is impossible.
    two = with_learned(metadata, messages=(1, 1, 0), count_histograms=({1: 1}, {1: 1}, {0: 1}))
    assert two.bias[2] == -math.inf
    score = Classifier(two, lambda tokens: {}).score(set())
    assert score.probabilities == (0.5, 0.5, 0)
    assert score.log_odds == -MAX_LOG_ODDS


@given(st.floats(1e-9, 1 - 1e-9))
def test_logit_undoes_the_logistic_function(probability):
    assert pytest.approx(probability, rel=1e-9) == 1 / (1 + math.exp(-logit(probability)))
    assert (-math.inf, math.inf) == (logit(0), logit(1))


# bulk


WORDS = st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=4)


def scores_both_ways(path, token_sets):
    """Return the scores of messages one by one, and all at once."""
    messages = [TokenizedMessage("-", None, list(tokens)) for tokens in token_sets]
    with Lookup(path) as lookup:
        classifier = Classifier(lookup.metadata, lookup.counts)
        one_by_one = [classifier.score(m.tokens, m.extras) for m in messages]
        at_once = list(BulkClassifier(classifier, TokenTable(lookup)).scores(messages))
    return one_by_one, at_once


@given(
    labelled_tokens(tokens=WORDS | EVERY_CHANNEL) | labelled_mails(),
    st.lists(st.sets(WORDS | EVERY_CHANNEL), max_size=5),
    st.sampled_from(SCORINGS),
)
def test_many_score_as_one_by_one_to_the_last_bit(tmp_path_factory, messages, new, scoring):
    learned = learn(messages, scoring=scoring)
    path = learned.save(tmp_path_factory.getbasetemp() / "bulk.json")
    one_by_one, at_once = scores_both_ways(path, [*new, *(own for _, own in messages)])
    assert one_by_one == at_once


def test_a_model_of_one_class_decides_nothing(tmp_path):
    learned = learn([("ham", {"one"}), ("ham", {"one"}), ("spam", set())])
    with Lookup(learned.save(tmp_path / "model.json")) as lookup:
        metadata = with_learned(lookup.metadata, messages=(2, 0))
        assert metadata.lacks_two_classes
        messages = [TokenizedMessage("-", None, [token]) for token in ("one", "new")]
        classifier = Classifier(metadata, lookup.counts)
        at_once = BulkClassifier(classifier, TokenTable(lookup)).scores(messages)
        assert list(at_once) == [classifier.score(m.tokens) for m in messages]
