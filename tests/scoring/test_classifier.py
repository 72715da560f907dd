import math
from typing import NamedTuple

import pytest
from channel_models import EVERY_CHANNEL, labelled_mails, many_mails
from closeness import close
from hypothesis import given
from hypothesis import strategies as st
from small_models import (
    ALPHAS,
    PRIORS,
    SCORINGS,
    labelled_tokens,
    learn,
    many_messages,
    rows_of,
    with_learned,
)

from nbspam.bayes.posterior import IMPOSSIBLE, logit, sigmoid
from nbspam.scoring.classifier import Classifier
from nbspam.store.lookup import Lookup


def assert_same_score(expected, actual):
    assert close(expected.log_odds) == actual.log_odds
    assert close(expected.probability) == actual.probability
    assert close(expected.probabilities) == actual.probabilities
    assert close(expected.log_scores) == actual.log_scores
    assert close(expected.trust) == actual.trust
    assert (expected.known, expected.text) == (actual.known, actual.text)
    for evidence, other in zip(expected.evidences, actual.evidences, strict=True):
        for group, same in zip(evidence[:3], other[:3], strict=True):
            assert close(group) == same
        assert evidence.traits is None is other.traits


# One message and many


@given(
    labelled_tokens(tokens=st.text(min_size=1, max_size=4) | EVERY_CHANNEL),
    ALPHAS,
    PRIORS,
    st.sampled_from(SCORINGS),
)
def test_one_message_scores_as_in_the_matrix(tmp_path_factory, messages, alpha, prior, scoring):
    learned = learn(messages, alpha=alpha, prior=prior, scoring=scoring)
    path = learned.save(tmp_path_factory.getbasetemp() / "one.json")
    expected = list(learned.fit.scores(learned.corpus.presence()))
    with Lookup(path) as lookup:
        for (_, tokens), score in zip(messages, expected, strict=True):
            actual = Classifier(lookup.metadata, lookup.counts).score(
                tokens | {"never seen before"}
            )
            assert_same_score(score._replace(text=score.text + 1), actual)


@given(labelled_mails(), labelled_mails(), ALPHAS, PRIORS, st.sampled_from(SCORINGS))
def test_one_new_message_scores_as_in_the_matrix(known, new, alpha, prior, scoring):
    learned = learn(known, alpha=alpha, prior=prior, scoring=scoring)
    tokens = [own & learned.counts.keys() for _, own in new]
    for own, score in zip(tokens, learned.fit.scores(rows_of(learned, tokens)), strict=True):
        assert_same_score(score, learned.classifier.score(own))


@pytest.mark.parametrize("scoring", SCORINGS)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("labels", [("ham", "spam"), ("ham", "promo", "spam")])
def test_one_message_scores_as_in_a_large_matrix(tmp_path, scoring, seed, labels):
    # Classes of one size: many weights are as strong as others on the other side, and what is
    # counted among the strongest must not hang on the last bit of a logarithm.
    messages = many_messages(5_000, seed)
    messages = [(labels[i % len(labels)], tokens) for i, (_, tokens) in enumerate(messages)]
    learned = learn(messages, scoring=scoring)
    path = learned.save(tmp_path / "model.json")
    expected = list(learned.fit.scores(learned.corpus.presence()))
    with Lookup(path) as lookup:
        classifier = Classifier(lookup.metadata, lookup.counts)
        for (_, tokens), score in zip(messages, expected, strict=True):
            assert_same_score(score, classifier.score(tokens))


@pytest.mark.parametrize("scoring", SCORINGS)
@pytest.mark.parametrize("prior", [None, 0.2])
@pytest.mark.parametrize("classes", [("ham", "spam"), ("ham", "promo", "spam")])
@pytest.mark.parametrize("hosts", ["one", "own", "mixed"])
def test_one_mail_with_every_channel_scores_as_in_the_matrix(scoring, prior, classes, hosts):
    mails = many_mails(90, 5, classes, hosts)
    learned = learn(mails, scoring=scoring, prior=prior)
    expected = list(learned.fit.scores(learned.corpus.presence()))
    unknown = {"never", "from:never", "received:never", "by:never"}
    for (_, tokens), score in zip(mails, expected, strict=True):
        assert_same_score(score, learned.classifier.score(tokens))
        actual = learned.classifier.score(tokens | unknown)
        assert_same_score(score._replace(text=score.text + 1), actual)


def test_headers_are_trusted_as_far_as_the_hosts_say():
    trust = {
        hosts: learn(mails := many_mails(400, 1, hosts=hosts, longest=20), scoring="evidence")
        .classifier.score(mails[0][1] | {f"received:w{i}" for i in range(150)})
        .trust
        for hosts in ("one", "mixed", "own")
    }
    assert trust["one"] > 0.9
    assert 0.3 < trust["mixed"] < 0.7
    assert trust["own"] < 0.05


def test_who_took_a_mail_in_is_no_evidence_of_its_class():
    learned = learn(many_mails(60, hosts="mixed"), scoring="evidence")
    score = learned.classifier.score
    tokens = {"ham0", "w1", "w2", "from:w3", "received:w4", "received:ham0"}
    assert score(tokens | {"by:ham"}) == score(tokens | {"by:spam"}) == score(tokens)


def test_the_words_of_a_message_are_told_apart_by_channel():
    classifier = learn([("ham", {"a", "from:a", "received:a", "by:a"}), ("spam", {"b"})]).classifier
    words = classifier.known_words(
        ["a", "b", "c", "from:a", "from:b", "received:a", "by:a", "by:b"]
    )
    assert [len(channel) for channel in words[:4]] == [2, 1, 1, 1]
    assert (words.text_tokens, len(words.all)) == (3, 5)


def test_tokens_prepared_together_score_as_each_alone():
    learned = learn()
    together, alone = learned.classifier, learned.classifier
    together.prepare(["free", "prize", "unknown", "meeting"])
    for tokens in ({"free"}, {"prize", "unknown"}, {"meeting", "free", "lunch"}, set()):
        assert alone.score(tokens) == together.score(tokens)


class Known(NamedTuple):
    number: int
    tokens: set[str]


@pytest.mark.parametrize(
    ("messages", "tokens", "cached"), [(500, 200_000, 1_000_000), (2, 9, 9), (9, 1, 9), (1, 9, 0)]
)
def test_batches_of_any_size_keep_the_order_and_the_scores(messages, tokens, cached):
    learned = learn()
    given_ = [Known(i, {"prize", ("free", "lunch")[i % 2], f"unknown{i}"}) for i in range(7)]
    given_.append(Known(7, set()))
    classifier = Classifier(learned.fit.metadata, learned.classifier.counts, cached)
    batches = classifier.in_batches(given_, messages, tokens)
    found = [(known, classifier.score(known.tokens)) for known in batches]
    assert [(known, learned.classifier.score(known.tokens)) for known in given_] == found


def test_a_batch_that_breaks_off_comes_before_the_failure():
    def source():
        yield Known(1, {"prize"})
        raise ValueError("broken")

    coming = learn().classifier.in_batches(source())
    assert next(coming).number == 1
    with pytest.raises(ValueError, match="broken"):
        next(coming)


def test_a_token_counts_once_however_often_it_stands():
    classifier = learn().classifier
    assert classifier.score(["prize"]) == classifier.score(["prize", "prize", "prize"])


@pytest.mark.parametrize("scoring", SCORINGS)
def test_an_unknown_token_is_only_counted(scoring):
    classifier = learn(scoring=scoring).classifier
    alone = classifier.score({"prize"})
    assert (alone.known, alone.text) == (1, 1)
    assert alone._replace(text=2) == classifier.score({"prize", "xylophone"})
    for other in ("from:xylophone", "received:xylophone", "by:xylophone"):
        assert alone == classifier.score({"prize", other})


@given(labelled_mails(), ALPHAS, PRIORS, st.sampled_from(SCORINGS))
def test_probabilities_add_up_to_one_and_agree_with_the_log_odds(messages, alpha, prior, scoring):
    classifier = learn(messages, alpha=alpha, prior=prior, scoring=scoring).classifier
    for _, tokens in messages:
        score = classifier.score(tokens)
        assert close(1) == sum(score.probabilities)
        assert score.probability in score.probabilities
        assert close(sigmoid(score.log_odds)) == score.probability


def test_opposite_positive_classes_have_opposite_scores():
    messages = [("good", {"a", "b"}), ("good", {"a"}), ("bad", {"b", "c"})]
    good = learn(messages, positive="good").classifier.score({"b"})
    bad = learn(messages, positive="bad").classifier.score({"b"})
    assert close(good.log_odds) == -bad.log_odds
    assert close(good.probability) == 1 - bad.probability


def test_of_three_classes_without_spam_the_probability_is_the_most_probable_ones():
    score = learn([("a", {"x"}), ("b", {"y"}), ("c", {"z"})]).classifier.score({"y"})
    assert max(score.probabilities) == score.probability
    assert score.probabilities[1] == score.probability


def test_of_three_classes_with_spam_the_probability_is_that_of_spam():
    score = learn([("ham", {"x"}), ("promo", {"y"}), ("spam", {"z"})]).classifier.score({"y"})
    assert score.probabilities[2] == score.probability
    assert score.probability < 0.5


def test_a_model_that_has_seen_one_class_alone_is_undecided():
    metadata = learn([("a", {"x"}), ("b", {"x"}), ("spam", {"x"})]).fit.metadata
    metadata = with_learned(metadata, messages=(0, 0, 1), count_histograms=({0: 1}, {0: 1}, {1: 1}))
    assert metadata.bias[:2] == (-math.inf, -math.inf)
    score = Classifier(metadata, lambda tokens: {}).score(set())
    assert score.probabilities == (1 / 3, 1 / 3, 1 / 3)
    assert score.probability == 0.5
    assert score.log_odds == 0


def test_a_class_without_messages_beside_two_that_have_some_is_impossible():
    metadata = learn([("a", {"x"}), ("b", {"x"}), ("spam", {"x"})], scoring="sum").fit.metadata
    metadata = with_learned(metadata, messages=(1, 1, 0), count_histograms=({1: 1}, {1: 1}, {0: 1}))
    assert metadata.bias[2] == -math.inf
    score = Classifier(metadata, lambda tokens: {}).score(set())
    assert score.probabilities == (0.5, 0.5, 0)
    assert score.log_odds == -IMPOSSIBLE


@given(st.floats(1e-9, 1 - 1e-9))
def test_logit_undoes_the_logistic_function(probability):
    assert pytest.approx(probability, rel=1e-9) == 1 / (1 + math.exp(-logit(probability)))


def test_logit_of_certainty_is_infinite():
    assert (-math.inf, math.inf) == (logit(0), logit(1))
