import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from channel_models import EVERY_CHANNEL, many_mails
from closeness import CLOSE, close
from hypothesis import given
from hypothesis import strategies as st
from one_case import each
from small_models import PRIORS, SCORINGS, labelled_tokens, learn, many_messages
from whole_models import numbers_of

from nbspam.bayes.calibration import (
    CALIBRATION_SPECS,
    MAX_RUN,
    Calibrations,
    calibration_inputs,
    prior_calibrations,
    round_inputs,
    update_calibration,
)
from nbspam.bayes.event_model import log_priors
from nbspam.learning.learner import Learner
from nbspam.learning.settings import TrainingSettings, empty_metadata
from nbspam.store.metadata import histograms_of

TWO, THREE = ("ham", "spam"), ("ham", "promo", "spam")


def empty_learner(**chosen) -> Learner:
    """Return a learner of ham and spam that has learned nothing."""
    return Learner(empty_metadata(("ham", "spam"), "spam", TrainingSettings(**chosen)), {})


def prior_calibration(traits):
    return prior_calibrations(with_traits=traits != "none")


def going_on(learned) -> Learner:
    """Return a learner that goes on from a fitted model."""
    return Learner(learned.fit.metadata, dict(learned.counts))


@given(labelled_tokens(tokens=EVERY_CHANNEL, classes=TWO), st.sets(st.integers(0, 9)))
def test_looking_at_the_counts_between_messages_changes_nothing(messages, looks):
    """What is learned is added to the rows when somebody looks, or all of it at the end."""
    watched, left_alone = empty_learner(), empty_learner()
    for i, (label, tokens) in enumerate(messages):
        for learner in (watched, left_alone):
            learner.learn(label, tokens)
        if i in looks:
            assert watched.may_have_learned(label, tokens)
            assert watched.metadata.n_tokens == len(watched.counts)
    assert watched.counts == left_alone.counts
    assert watched.metadata == left_alone.metadata
    histograms = tuple(map(dict, histograms_of(watched.counts.values(), 2)))
    assert watched.metadata.learned.count_histograms == histograms


def refined(both, found, is_spam):
    """Return both calibrations after one more message with this evidence."""
    pairs = zip(CALIBRATION_SPECS, both, map(round_inputs, calibration_inputs(found)), strict=True)
    return Calibrations(
        *(update_calibration(scale, before, x, is_spam) for scale, before, x in pairs)
    )


@each("traits", ["none", "kernel"])
def test_without_trust_in_headers_both_calibrations_learn_too(traits):
    """Trust may come later, and there must be something to trust then."""
    learner = empty_learner(traits=traits)
    for i, (label, tokens) in enumerate(many_mails(40, hosts="own")):
        learner.learn(label, tokens, numbers_of(i))
        learner.refine(label, tokens, numbers_of(i))
    (both,) = learner.metadata.learned.calibrations
    assert learner.metadata.host_trust[0] < 0.1
    for before, after in zip(prior_calibration(traits), both, strict=True):
        for old, new in zip(before.coefficients, after.coefficients, strict=True):
            assert old != new
        assert np.linalg.eigvalsh(np.array(after.precision)).min() > 0


def test_of_a_batch_each_message_is_scored_with_itself_left_out():
    messages = many_mails(50, seed=3, hosts="mixed")
    learner = going_on(learn(messages[:40], scoring="evidence"))
    (expected,) = learner.metadata.learned.calibrations
    for label, tokens in messages[40:]:
        learner.learn(label, tokens)
    for i, (label, tokens) in enumerate(messages[40:], 40):
        others = learn(messages[:i] + messages[i + 1 :], scoring="evidence")
        (found,) = others.classifier.score(tokens).evidences
        expected = refined(expected, found, label == "spam")
        learner.refine(label, tokens)
    (actual,) = learner.metadata.learned.calibrations
    for calibration, other in zip(expected, actual, strict=True):
        for name in ("coefficients", "precision", "ranges"):
            np.testing.assert_allclose(getattr(other, name), getattr(calibration, name), **CLOSE)


@each("only", TWO)
def test_a_long_run_of_one_class_teaches_nothing_more(only):
    learner = going_on(learn(many_mails(60, seed=6), scoring="evidence"))
    batch = [tokens for label, tokens in many_mails(240, seed=7) if label == only]
    for tokens in batch:
        learner.learn(only, tokens)
    history = [learner.metadata.learned.calibrations[0]]
    for tokens in batch:
        learner.refine(only, tokens)
        history.append(learner.metadata.learned.calibrations[0])
    changed = [one != other for one, other in pairwise(history)]
    # 150 of 180 messages are of this class now: well mixed, its runs would have 6 on average.
    limit = math.ceil(MAX_RUN * (180 + 2) / (30 + 1))
    assert changed == [True] * limit + [False] * (120 - limit)
    sign = 1 if only == "spam" else -1
    assert [both.run for both in history[-1]] == [sign * limit] * 3
    other = "ham" if only == "spam" else "spam"
    learner.learn(other, {"w1"})
    learner.refine(other, {"w1"})
    after = learner.metadata.learned
    assert [both.run for both in after.calibrations[0]] == [-sign] * 3
    # What was learned is counted all the same.
    assert after.messages == ((150, 31) if only == "ham" else (31, 150))


@pytest.mark.long
def test_of_three_classes_a_lesson_that_only_some_took_is_taken_back():
    """In a long run of one class, the others' calibrations learn longer than its own."""
    learner = going_on(learn(many_mails(60, 6, THREE), scoring="evidence"))
    spam = [tokens for label, tokens in many_mails(180, 7, THREE) if label == "spam"]
    history, taken_by = [learner.metadata], []  # of each message, how many classes
    for i, tokens in enumerate(spam):
        learner.learn("spam", tokens)
        learner.refine("spam", tokens, digest=str(i))
        before, after = history[-1].learned, learner.metadata.learned
        history.append(learner.metadata)
        pairs = zip(before.calibrations, after.calibrations, strict=True)
        taken_by.append(sum(one != other for one, other in pairs))
        lessons = [lesson.digest for lesson in after.recent]
        assert (str(i) in lessons) == (taken_by[-1] > 0)
    some = taken_by.index(min(n for n in taken_by if n))
    assert taken_by[some] < 3
    assert 0 in taken_by
    for i in range(len(spam) - 1, some - 1, -1):
        learner.unlearn("spam", spam[i], digest=str(i))
    assert learner.metadata.learned.calibrations == history[some].learned.calibrations


@each("first", TWO)
def test_the_first_messages_of_the_second_class_do_not_spoil_the_calibration(first):
    messages = many_messages(3_000, seed=4, longest=5)
    own = {"ham": {"lunch", "notes"}, "spam": {"prize", "click"}}
    learner = empty_learner()
    for only in sorted(own, key=lambda name: name != first):
        batch = [(only, tokens | own[only]) for label, tokens in messages if label == only]
        for label, tokens in batch:
            learner.learn(label, tokens)
        for label, tokens in batch:
            learner.refine(label, tokens)
    score = learner.classifier().score
    assert score({"lunch", "notes"}).probability < 0.2
    assert score({"prize", "click"}).probability > 0.8


@each("scoring", SCORINGS)
def test_of_three_classes_learned_one_by_one_that_of_the_words_wins(scoring):
    messages = [(name, {name, "x"}) for name in THREE]
    chosen = TrainingSettings(traits="none", scoring=scoring)
    learner = Learner(empty_metadata(THREE, "spam", chosen), {})
    for label, tokens in messages * 20:
        learner.learn(label, tokens)
        learner.refine(label, tokens)
    calibrations = learner.metadata.learned.calibrations
    assert [both != prior_calibration("none") for both in calibrations] == [
        scoring == "evidence"
    ] * 3
    for k, (_, tokens) in enumerate(messages):
        probabilities = learner.classifier().score(tokens).probabilities
        assert probabilities[k] == max(probabilities) > 0.5


@each("traits", ["none", "kernel"])
@each("scoring", SCORINGS)
def test_a_learner_of_nothing_or_of_one_class_alone_is_undecided(scoring, traits):
    learner = empty_learner(scoring=scoring, traits=traits)
    assert (learner.metadata.learned.messages, learner.metadata.n_tokens) == ((0, 0), 0)
    first = learner.classifier()
    for i in range(5):
        tokens, extras = {"lunch", f"word{i}"}, numbers_of(i)
        score = learner.classifier().score(tokens, extras)
        assert (score.probability, score.log_odds) == (0.5, 0)
        learner.learn("ham", tokens, extras)
        learner.refine("ham", tokens, extras)
        assert learner.metadata.learned.calibrations == (prior_calibration(traits),)
    learner.learn("spam", {"prize"})
    assert learner.classifier().score({"lunch"}).probability < 0.5
    with pytest.raises(ValueError, match="not in tuple"):
        learner.learn("promo", {"a"})
    assert learner.metadata.learned.messages == (5, 1)
    assert first.metadata.learned.messages == (0, 0)  # it does not see what is learned later


@each("traits", ["none", "kernel"])
@each("only", TWO)
def test_mails_of_one_class_alone_earn_no_trust_and_no_calibration(only, traits):
    learner = empty_learner(traits=traits)
    for i, (_, tokens) in enumerate(many_mails(20)):
        learner.learn(only, tokens, numbers_of(i))
        learner.refine(only, tokens, numbers_of(i))
    metadata = learner.metadata
    assert metadata.lacks_two_classes
    assert metadata.host_trust == (0, 0)
    assert metadata.learned.host_rows == {(20, 0) if only == "ham" else (0, 20): 1}
    assert metadata.learned.calibrations == (prior_calibration(traits),)
    for i, (_, tokens) in enumerate(many_mails(20)):
        learner.unlearn(only, tokens, numbers_of(i))
    assert learner.metadata.learned.host_rows == {}
    assert not any(any(values) for values in learner.metadata.learned.trait_histograms)


def assert_consistent(metadata, counts, messages, traits):
    """Hold metadata to the counts and messages it was taken with, in all that follows from them.

    traits: (trait, class, value) -> how many messages have it.
    """
    settings, learned = metadata.settings, metadata.learned
    found = {
        (i, k, value): n
        for i, of_trait in enumerate(learned.trait_histograms)
        for k, values in enumerate(of_trait)
        for value, n in values.items()
    }
    assert found == (traits if settings.has_traits else {})
    assert learned.messages == messages
    assert metadata.n_tokens == len(counts)
    assert metadata.lacks_two_classes == (sum(map(bool, messages)) < 2)
    histograms = histograms_of(counts.values(), len(messages))
    assert list(map(dict, learned.count_histograms)) == list(map(dict, histograms))
    hosts = Counter(row for token, row in counts.items() if token.startswith("by:"))
    assert dict(hosts) == learned.host_rows
    priors, alpha = log_priors(messages, settings.prior, settings.positive_index), settings.alpha
    for k, n in enumerate(messages):
        share = [(n - row[k] + alpha) / (n + 2 * alpha) for row in counts.values()]
        assert metadata.bias[k] == close(priors[k] + math.fsum(map(math.log, share)))


STEPS = st.lists(
    st.tuples(
        st.sampled_from(THREE),
        st.sets(EVERY_CHANNEL, max_size=4),
        st.sampled_from(["learn", "learn", "refine", "unlearn"]),
    ),
    max_size=10,
)


@given(STEPS, st.sampled_from(SCORINGS), PRIORS)
def test_metadata_fits_the_counts_at_every_step_and_never_changes(steps, scoring, prior):
    chosen = TrainingSettings(scoring=scoring, prior=prior)
    learner = Learner(empty_metadata(THREE, "spam", chosen), {})
    taken, learned = [], []
    for label, tokens, act in steps:
        extras = numbers_of(len(tokens))
        if act == "unlearn":
            if (label, tokens) not in learned:
                continue
            learned.remove((label, tokens))
            learner.unlearn(label, tokens, extras)
        else:
            learned.append((label, tokens))
            learner.learn(label, tokens, extras)
            if act == "refine":
                learner.refine(label, tokens, extras)
        traits = Counter(
            (i, THREE.index(name), value)
            for name, some in learned
            for i, value in enumerate(numbers_of(len(some)).traits)
        )
        messages = tuple(sum(own == name for own, _ in learned) for name in THREE)
        now = dict(learner.counts), messages, dict(traits)
        for metadata in (learner.metadata, learner.classifier().metadata):
            taken.append((metadata, metadata.learned.calibrations, now))
            assert_consistent(metadata, *now)
    for metadata, calibrations, then in taken:
        assert_consistent(metadata, *then)
        assert metadata.learned.calibrations == calibrations
