"""Learning message by message through a base: its counts are not learned, its calibrations are."""

import numpy as np
import pytest
from based_models import base_of, digest_of, numbered_messages, taught_through, trained
from channel_models import labelled_mails, many_mails
from closeness import CLOSE
from hypothesis import given
from hypothesis import strategies as st
from whole_models import THREE, TWO, numbers_of, without_calibration

from nbspam.bayes import calibration
from nbspam.bayes.calibration import MAX_RUN
from nbspam.learning.learner import Learner
from nbspam.scoring.base import STRENGTH
from nbspam.tokens.tokenized import NO_EXTRAS

MIXED = ["w1", "w9", "spam1", "ham2", "from:w7", "received:spam2", "by:mx", "new"]


@st.composite
def lessons(draw):
    """Draw mails of a base and of its user, and the traits of both."""
    classes, traits = draw(st.sampled_from([TWO, THREE])), draw(st.sampled_from(["none", "kernel"]))
    return draw(labelled_mails(classes, most=12)), draw(labelled_mails(classes)), traits


def assert_same_coefficients(found, expected, name="coefficients", close=CLOSE):
    for both, its in zip(found, expected, strict=True):
        for one, other in zip(both, its, strict=True):
            np.testing.assert_allclose(getattr(one, name), getattr(other, name), **close)


@given(lessons())
def test_what_is_counted_is_the_same_as_without_a_base(drawn):
    base_mails, mails, traits = drawn
    base = base_of(base_mails, traits)
    through = taught_through(base, mails, traits, 3)
    alone = Learner(base.empty_personal_model(), {})
    extras = numbered_messages(mails, traits, 100) or [NO_EXTRAS] * len(mails)
    for (label, tokens), own in zip(mails, extras, strict=True):
        alone.learn(label, tokens, own)
    assert through.counts == alone.counts
    assert without_calibration(through.metadata) == without_calibration(alone.metadata)


@pytest.mark.few(3)
@pytest.mark.parametrize("n", [0, 1, 12])
@pytest.mark.parametrize("strength", [5, STRENGTH])
@pytest.mark.parametrize("traits", ["none", "kernel"])
@pytest.mark.parametrize("label", TWO)
def test_what_is_learned_and_forgotten_was_never_learned(strength, traits, n, label):
    mails = many_mails(72 + n, hosts="mixed")
    base = base_of(mails[:60], traits, strength)
    learner = taught_through(base, mails[60 : 60 + n], traits)
    before, counts = learner.metadata, dict(learner.counts)
    extras = numbers_of(7) if traits != "none" else NO_EXTRAS
    expected = learner.classifier().score(set(MIXED), extras).log_odds
    learner.learn(label, MIXED, extras)
    learner.refine(label, MIXED, extras, "once")
    taught = learner.classifier().score(set(MIXED), extras).log_odds
    assert abs(taught - expected) > 0.1
    assert learner.metadata.learned.recent[-1].digest == "once"
    learner.unlearn(label, MIXED, extras, "once")
    assert learner.counts == counts
    assert learner.metadata == before


def test_a_lesson_is_taken_back_without_the_base_too():
    mails = many_mails(60)
    base = base_of(mails[:40])
    learner = taught_through(base, mails[40:44])
    label, tokens = mails[43]
    alone = Learner(learner.metadata, dict(learner.counts))
    alone.unlearn(label, tokens, digest=digest_of(tokens))
    learner.unlearn(label, tokens, digest=digest_of(tokens))
    assert alone.metadata.learned.calibrations == learner.metadata.learned.calibrations
    assert alone.metadata.learned.messages == (2, 1)


@given(lessons(), st.sampled_from([2, STRENGTH]))
def test_a_message_is_scored_as_if_it_had_not_been_learned(drawn, strength):
    """What it teaches the calibrations is the same as if it were scored first, and then learned."""
    base_mails, mails, traits = drawn
    base = base_of(base_mails, traits, strength)
    learner = taught_through(base, mails, traits)
    label, tokens = "spam", {"a", "b", "from:a", "received:b", "by:mx", "own"}
    extras = numbers_of(5) if traits != "none" else NO_EXTRAS
    classifier, metadata = learner.classifier(), learner.metadata
    known, k = classifier.known_words(tokens, extras), metadata.settings.classes.index(label)
    before, settings = metadata.learned.calibrations, metadata.settings
    lesson = classifier.rule.calibration_lesson(before, known, k, "")
    expected = calibration.replay_lesson(
        settings.calibration_specs, settings.scored_classes, before, lesson
    )
    learner.learn(label, tokens, extras)
    learner.refine(label, tokens, extras)
    for name in ("coefficients", "ranges"):
        assert_same_coefficients(learner.metadata.learned.calibrations, expected, name)


def test_one_right_message_or_one_slip_changes_little():
    """Whatever it is, and whatever it is called."""
    mails = many_mails(400, seed=4)
    base, tested = base_of(mails[:300]), mails[320:]

    def missed(taught):
        score = taught_through(base, taught).classifier().score
        found = [(label, score(tokens).probability > 0.9) for label, tokens in tested]
        return found.count(("spam", False)), found.count(("ham", True))

    before = missed([])
    for i, (label, tokens) in enumerate(mails[300:308]):
        for taught in TWO:
            now = missed([(taught, tokens)])
            assert now[0] <= before[0] + 3, (i, label, taught)
            assert now[1] <= before[1]


def test_a_folder_of_one_class_teaches_something_and_no_more_than_a_run_of_it():
    base = base_of(many_mails(60))
    spam = [("spam", {f"spam{i % 9}", f"w{i}", "by:mx"}) for i in range(60)]
    calibration = taught_through(base, spam).metadata.learned.calibrations[0].text
    assert MAX_RUN < calibration.run < 50  # of 60: the longer, the less of the other class there is
    learner = taught_through(base, [("ham", {"w1", "friend", "by:mx"})] * 3)
    score = learner.classifier().score
    assert score({"w1", "friend", "by:mx"}).log_odds < score({"w1", "by:mx"}).log_odds
    assert not learner.classifier().metadata.lacks_two_classes
    assert learner.metadata.learned.calibrations != base.metadata.learned.calibrations


def test_a_model_that_began_without_a_base_goes_on_with_one():
    mails = many_mails(120)
    base, own = base_of(mails[:40]), trained(mails[40:80])
    before = base.classifier(own.fit.metadata, own.classifier.counts)
    learner = Learner(own.fit.metadata, own.counts, base)
    for label, tokens in mails[80:]:
        found = learner.classifier().score(tokens).log_odds
        assert found == before.score(tokens).log_odds  # nothing was learned yet
        assert (found > 0) == (label == "spam")
    label, tokens = mails[80]
    learner.learn(label, tokens)
    learner.refine(label, tokens)
    assert learner.metadata.learned.calibrated_by == "base"
