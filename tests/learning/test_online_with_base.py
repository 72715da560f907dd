"""Learning message by message with a base beneath: the model's own is the same as without it."""

import pytest
from based_models import base_of, nothing_learned, numbered_messages
from channel_models import labelled_mails, many_mails
from hypothesis import given, settings
from nbspam.bayes.base_prior import NO_LOSSES, strength_of
from small_models import with_learned

from nbspam.bayes.calibration import RUN
from nbspam.learning.online import OnlineLearner
from nbspam.tokens.tokenized import NO_NUMBERS

TWO = ("ham", "spam")


def taught_with(base, mails, traits="none", batch=1):
    """Return a learner that has learned mails in batches, from nothing."""
    learner = OnlineLearner(nothing_learned(traits=traits), {}, base)
    numbers = numbered_messages(mails, traits) or [NO_NUMBERS] * len(mails)
    for start in range(0, len(mails), batch):
        some = list(zip(mails, numbers, strict=True))[start : start + batch]
        for (label, tokens), own in some:
            learner.learn(label, tokens, own)
        for (label, tokens), own in some:
            learner.refine(label, tokens, own)
    return learner


def without_state(metadata):
    return with_learned(metadata, with_base=None)


@settings(max_examples=30)
@given(labelled_mails(TWO, most=12), labelled_mails(TWO))
@pytest.mark.parametrize("traits", ["none", "kernel"])
def test_all_else_that_is_learned_is_the_same_as_without_a_base(traits, base_mails, mails):
    base = base_of(base_mails, traits)
    with_it, alone = taught_with(base, mails, traits, 3), taught_with(None, mails, traits, 3)
    assert with_it.counts == alone.counts
    assert without_state(with_it.metadata) == alone.metadata
    assert with_it.metadata.learned.with_base is not None


@settings(max_examples=30)
@given(labelled_mails(TWO, most=12), labelled_mails(TWO))
def test_learning_and_forgetting_leave_the_counts_as_they_were(base_mails, mails):
    base = base_of(base_mails)
    learner = taught_with(base, mails)
    before, counts = learner.metadata, dict(learner.counts)
    learner.learn("spam", {"a", "received:a", "new"})
    learner.refine("spam", {"a", "received:a", "new"})
    learner.unlearn("spam", {"a", "received:a", "new"})
    assert learner.counts == counts
    assert without_calibrations(learner.metadata) == without_calibrations(before)


def without_calibrations(metadata):
    return with_learned(metadata, with_base=None, calibrations=())


def test_a_message_is_scored_as_if_it_had_not_been_learned():
    """One after another is the same as scoring it, learning it, and then refining with the score.

    So what a message teaches does not depend on its own counts.
    """
    base, mails = base_of(many_mails(60)), many_mails(30, seed=5)
    learner = taught_with(base, mails)
    label, tokens = "spam", {"spam1", "w1", "received:spam2", "by:mx", "own"}
    classifier = learner.classifier()
    expected = classifier.rule.refined(
        learner.metadata.learned.with_base.calibrations, classifier.known_words(tokens), 1
    )
    learner.learn(label, tokens)
    learner.refine(label, tokens)
    found = learner.metadata.learned.with_base.calibrations
    for one, other in zip(expected[0], found[0], strict=True):
        assert one.coefficients == pytest.approx(other.coefficients, rel=1e-9)
        assert one.ranges == other.ranges


def test_a_base_that_fits_becomes_stronger_and_one_that_does_not_weaker():
    mails = many_mails(160, seed=2)
    swapped = [("ham" if label == "spam" else "spam", tokens) for label, tokens in mails[:80]]
    strengths = []
    for base_mails in (mails[:80], swapped):
        state = taught_with(base_of(base_mails), mails[80:], batch=10).metadata.learned.with_base
        strengths.append(strength_of(state.losses))
    assert strengths[0] > strength_of(NO_LOSSES) > strengths[1]


def test_a_folder_of_one_class_teaches_no_more_than_a_run_of_it():
    base = base_of(many_mails(60))
    spam = [("spam", {f"spam{i % 9}", f"w{i}", "by:mx"}) for i in range(60)]
    calibration = taught_with(base, spam).metadata.learned.with_base.calibrations[0].text
    assert RUN < calibration.run < 50  # of 60: the longer, the less of the other class there is


def test_one_class_alone_is_enough_to_learn_with_a_base():
    base = base_of(many_mails(60))
    learner = taught_with(base, [("ham", {"w1", "friend", "by:mx"})] * 3)
    classifier = learner.classifier()
    friend = classifier.score({"w1", "friend", "by:mx"}).log_odds
    assert friend < classifier.score({"w1", "by:mx"}).log_odds
    assert not classifier.metadata.is_one_sided
