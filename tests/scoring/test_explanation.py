import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_models import ALPHAS, MESSAGES, PRIORS, SCORINGS, labelled_tokens, learn, many_messages

from nbspam.bayes.bernoulli import weight
from nbspam.scoring.explanation import explain


def close(expected):
    return pytest.approx(expected, rel=1e-9, abs=1e-9)


def explained(learned, tokens):
    return explain(learned.classifier, tokens)


@settings(deadline=None, max_examples=80)
@given(
    labelled_tokens(classes=("ham", "spam"), tokens=st.sampled_from(["a", "b", "c", "trace:d"])),
    ALPHAS,
    PRIORS,
    st.sampled_from(SCORINGS),
)
def test_constants_and_shares_add_up_to_the_score(messages, alpha, prior, scoring):
    learned = learn(messages, alpha=alpha, prior=prior, scoring=scoring)
    for _, tokens in messages:
        found = explained(learned, tokens | {"unknown"})
        assert close(found.score.log_odds) == found.total


@pytest.mark.parametrize("scoring", SCORINGS)
@pytest.mark.parametrize("prior", [None, 0.2])
def test_constants_and_shares_of_many_words_add_up_to_the_score(scoring, prior):
    messages = many_messages(2_000, seed=4)
    learned = learn(messages, scoring=scoring, prior=prior)
    for _, tokens in messages:
        found = explained(learned, tokens)
        assert close(found.score.log_odds) == found.total


@settings(deadline=None, max_examples=60)
@given(labelled_tokens(classes=("ham", "spam")), ALPHAS, PRIORS)
def test_plain_bernoulli_is_told_beside_any_score(messages, alpha, prior):
    plain = learn(messages, alpha=alpha, prior=prior)
    other = learn(messages, alpha=alpha, prior=prior, scoring="evidence")
    for _, tokens in messages:
        found = explained(plain, tokens)
        assert close(found.score.log_odds) == found.bernoulli_log_odds
        assert close(found.bernoulli_log_odds) == found.bias + sum(w.weight for w in found.words)
        beside = explained(other, tokens)
        assert close(found.bernoulli_log_odds) == beside.bernoulli_log_odds


@settings(deadline=None, max_examples=60)
@given(labelled_tokens(classes=("a", "b", "c")), ALPHAS, st.sampled_from(SCORINGS))
def test_of_three_classes_the_most_probable_is_explained(messages, alpha, scoring):
    learned = learn(messages, alpha=alpha, scoring=scoring)
    for _, tokens in messages:
        found = explained(learned, tokens)
        names = dict(
            zip(learned.fit.metadata.settings.classes, found.score.probabilities, strict=True)
        )
        assert max(names.values()) == names[found.of]
        if scoring == "sum":
            assert sorted(names.values())[-2] == names[found.against]
            expected = math.log(names[found.of] / names[found.against])
        else:
            assert found.against == "the rest"
            expected = math.log(names[found.of]) - math.log1p(-names[found.of])
        assert pytest.approx(expected, rel=1e-6, abs=1e-6) == found.total


def test_weights_are_those_of_the_formula():
    found = explained(learn(alpha=0.5), {"free", "prize", "notes"})
    expected = {
        token: weight(spam, 2, 0.5) - weight(ham, 3, 0.5)
        for token, ham, spam in [("free", 1, 1), ("prize", 0, 2), ("notes", 1, 0)]
    }
    assert close(expected) == {word.token: word.weight for word in found.words}


def test_words_bring_their_counts_in_the_order_of_the_classes():
    found = explained(learn(), {"free", "prize"})
    assert {w.token: w.counts for w in found.words} == {"free": (1, 1), "prize": (0, 2)}


def test_two_classes_are_explained_as_spam_against_ham():
    found = explained(learn(), {"meeting"})
    assert (found.of, found.against) == ("spam", "ham")
    assert found.words[0].weight < 0


def test_the_strongest_word_comes_first():
    found = explained(learn(), set().union(*(tokens for _, tokens in MESSAGES)))
    shares = [abs(word.share) for word in found.words]
    assert sorted(shares, reverse=True) == shares


def test_words_of_equal_strength_come_in_the_order_of_the_alphabet():
    found = explained(learn([("ham", {"x"}), ("spam", {"b", "c", "a"})]), {"c", "a", "b"})
    assert [word.token for word in found.words] == ["a", "b", "c"]


def test_unknown_tokens_are_counted_and_not_shown():
    found = explained(learn(), {"prize", "xylophone", "zebra"})
    assert found.unknown == 2
    assert [word.token for word in found.words] == ["prize"]


def test_a_message_without_tokens_is_explained_by_the_bias_alone():
    found = explained(learn(), set())
    assert found.words == ()
    assert found.bias == found.total == found.bernoulli_log_odds
