"""A model with a base beneath it: one message and many alike, left out as if never learned."""

import numpy as np
import pytest
from based_models import base_of, learn_with, nothing_learned, numbered_messages
from channel_models import labelled_mails, many_mails
from hypothesis import given, settings
from hypothesis import strategies as st
from nbspam.learning.based_batch import counts_in_base, with_base
from small_models import assert_one_sentence, learn, with_learned, with_settings
from whole_models import numbers_of

from nbspam.errors import ModelError
from nbspam.scoring.base import Base, based_classifier
from nbspam.scoring.explanation import explain
from nbspam.scoring.verdict import CutOffs, verdict_of

CLOSE = {"rtol": 1e-9, "atol": 1e-9}
TWO = ("ham", "spam")
TRAITS = st.sampled_from(["none", "kernel", "gaussian"])
CLASSES = st.sampled_from([TWO, ("ham", "promo", "spam")])
NEW = {"spam1", "w3", "from:w7", "received:spam2", "received:w9", "by:mx", "never seen"}


@st.composite
def mails_with_base(draw, per_class=1):
    """Draw mails of a base and of a personal model, and the traits of both."""
    classes = draw(CLASSES)
    base = draw(labelled_mails(classes, most=12))
    return base, draw(labelled_mails(classes, per_class=per_class)), draw(TRAITS)


def features(scores):
    return np.array([np.concatenate(e[:3]) for score in scores for e in score.evidences])


def of_traits(scores):
    return [e.traits or 0.0 for score in scores for e in score.evidences]


def assert_alike(expected, found):
    np.testing.assert_allclose(features(found), features(expected), **CLOSE)
    np.testing.assert_allclose(of_traits(found), of_traits(expected), **CLOSE)


@settings(max_examples=40)
@given(mails_with_base())
def test_one_message_and_the_matrix_score_alike(drawn):
    base_mails, mails, traits = drawn
    base = base_of(base_mails, traits)
    learned, fitted = learn_with(base, mails, traits)
    classifier = fitted.classifier(learned.classifier.counts)
    rows = learned.corpus.traits()
    many = list(fitted.scores(learned.corpus.presence(), rows))
    numbers = numbered_messages(mails, traits)
    one = [
        classifier.score(tokens, *([numbers[i]] if numbers else []))
        for i, (_, tokens) in enumerate(mails)
    ]
    assert_alike(many, one)
    for name in ("log_odds", "probability", "probabilities", "trust", "known", "text"):
        expected = [getattr(score, name) for score in many]
        np.testing.assert_allclose([getattr(score, name) for score in one], expected, **CLOSE)


@settings(max_examples=25)
@given(mails_with_base(per_class=2))
def test_a_message_left_out_scores_as_if_never_learned(drawn):
    base_mails, mails, traits = drawn
    base = base_of(base_mails, traits)
    _, fitted = learn_with(base, mails, traits)
    left_out = list(fitted.left_out_scores(None))  # what the fit was made of
    numbers = numbered_messages(mails, traits)
    for i, (_, tokens) in enumerate(mails):
        rest = mails[:i] + mails[i + 1 :]
        own = None if numbers is None else numbers[:i] + numbers[i + 1 :]
        without = learn(rest, own, scoring="evidence", traits=traits)
        # The calibrations and the strength are those of all: they are fitted to these very scores.
        state = fitted.metadata.learned.with_base
        metadata = with_learned(without.fit.metadata, with_base=state)
        classifier = based_classifier(metadata, without.classifier.counts, base)
        found = classifier.score(tokens, *([numbers[i]] if numbers else []))
        assert_alike([left_out[i]], [found])
        assert found.known == left_out[i].evidences[0].text.n


@pytest.mark.parametrize("traits", ["none", "kernel"])
def test_a_base_helps_a_model_of_few_messages(traits):
    mails = many_mails(120, seed=1)
    base = base_of(mails[:80], traits)
    learned, fitted = learn_with(base, mails[80:84], traits)
    classifier = fitted.classifier(learned.classifier.counts)
    numbers = numbered_messages(mails, traits) or [None] * len(mails)

    def errors(which):
        scored = [
            (label, which.score(tokens, *([n] if n else [])))
            for (label, tokens), n in zip(mails[84:], numbers[84:], strict=True)
        ]
        return sum((score.log_odds > 0) != (label == "spam") for label, score in scored)

    assert errors(classifier) <= errors(learned.classifier)
    assert errors(classifier) <= 2


@pytest.mark.parametrize("classes", [TWO, ("ham", "promo", "spam")])
@pytest.mark.parametrize("traits", ["none", "kernel", "gaussian"])
def test_an_explanation_adds_up_and_says_what_is_from_the_base(classes, traits):
    mails = many_mails(90, classes=classes, hosts="mixed")
    mails[5][1].add("never seen")  # but by the base
    base = base_of(mails[:60], traits)
    learned, fitted = learn_with(base, mails[60:], traits)
    classifier = fitted.classifier(learned.classifier.counts)
    numbers = [numbers_of(1)] if traits != "none" else []
    found = explain(classifier, NEW, *numbers)
    if len(classes) == 2:
        assert found.total == pytest.approx(found.score.log_odds, rel=1e-9, abs=1e-9)
    assert all(len(word.counts) == 2 * len(classes) for word in found.words)
    assert found.base.beneath.path == "base.json"
    only_base = [w for w in found.words if not any(w.counts[: len(classes)])]
    assert "never seen" in [word.token for word in only_base]
    assert abs(found.base.nats) <= sum(abs(word.share) for word in found.words)


def test_a_model_without_messages_has_verdicts_from_its_base():
    base = base_of(many_mails(80))
    classifier = based_classifier(nothing_learned(), lambda _: {}, base)
    spam = {f"spam{i}" for i in range(9)}
    score = classifier.score(spam | {"by:mx"})
    assert score.log_odds > 1
    assert verdict_of(classifier.metadata, score, CutOffs(0.7, 0.3)) == "spam"
    found = explain(classifier, spam)
    assert (found.bias, found.sum_log_odds) == (0.0, 0.0)
    assert found.base.nats == pytest.approx(sum(word.share for word in found.words))


def test_what_neither_model_knows_is_the_prior():
    base = base_of(many_mails(60))
    classifier = based_classifier(nothing_learned(), lambda _: {}, base)
    assert classifier.score({"unheard of"}).probability == pytest.approx(0.5)


def test_a_model_that_learned_without_a_base_begins_with_the_mean_of_both_calibrations():
    mails = many_mails(200)
    base = base_of(mails[:40])
    learned = learn(mails[40:], scoring="evidence")
    state = base.state(learned.fit.metadata)
    assert set(state.losses) == {0.0}
    for own, of_base, both in zip(
        learned.fit.metadata.learned.calibrations[0],
        base.metadata.learned.calibrations[0],
        state.calibrations[0],
        strict=True,
    ):
        for a, b, c in zip(own.coefficients, of_base.coefficients, both.coefficients, strict=True):
            assert min(a, b) - 1e-9 <= c <= max(a, b) + 1e-9


# What cannot be a base


def changed(metadata, **changes):
    return Base("base.json", with_settings(metadata, **changes), lambda _: {})


@pytest.mark.parametrize(
    ("chosen", "named"),
    [
        ({"event_model": "multinomial", "scoring": "evidence"}, "event model multinomial"),
        ({"event_model": "complement", "scoring": "evidence"}, "event model complement"),
        ({"event_model": "none", "scoring": "evidence", "traits": "kernel"}, "event model none"),
        ({"scoring": "sum"}, "scoring sum"),
    ],
)
def test_a_base_must_be_of_the_default_kind(chosen, named):
    traits = chosen.get("traits", "none")
    mails = many_mails(6)
    learned = learn(mails, numbered_messages(mails, traits), **chosen)
    with pytest.raises(ModelError) as error:
        Base("base.json", learned.fit.metadata, learned.classifier.counts)
    assert_one_sentence(error, "base.json", named, "leave the base out")


def test_a_base_must_know_every_class():
    metadata = with_learned(base_of(many_mails(6)).metadata, messages=(3, 0))
    with pytest.raises(ModelError) as error:
        Base("base.json", metadata, lambda _: {})
    assert_one_sentence(error, "base.json", "'spam'", "of each class")


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"classes": ("ham", "junk"), "positive": "junk"}, "the classes ham, junk"),
        ({"event_model": "multinomial"}, "the event model multinomial"),
        ({"scoring": "sum"}, "the scoring sum"),
        ({"traits": "kernel"}, "the traits kernel"),
    ],
)
def test_the_two_must_be_alike(changes, named):
    base = base_of(many_mails(6))
    own = with_settings(nothing_learned(), **changes)
    with pytest.raises(ModelError) as error:
        base.check("me.json", own.settings)
    assert_one_sentence(error, "me.json", named, "base.json", "leave the base out")


def test_a_batch_is_held_to_that_too():
    base = base_of(many_mails(6))
    learned = learn(many_mails(6), scoring="sum")
    in_base = counts_in_base(base, learned.corpus.vocabulary)
    with pytest.raises(ModelError, match="the scoring sum"):
        with_base(learned.fit, learned.corpus.presence(), base, in_base)


def test_losses_by_other_strengths_begin_anew():
    base = base_of(many_mails(40))
    state = base.state(nothing_learned())._replace(losses=(1.0,))
    own = with_learned(nothing_learned(), with_base=state)
    assert base.state(own) == state._replace(losses=(0.0,) * 4)
