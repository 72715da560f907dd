import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_models import (
    ALPHAS,
    PRIORS,
    SCORINGS,
    labelled_tokens,
    learn,
    many_messages,
    with_learned,
)

from nbspam.bayes.calibration import untrained, update
from nbspam.bayes.posterior import log_priors
from nbspam.learning.online import OnlineLearner
from nbspam.learning.settings import TrainingSettings, empty_metadata
from nbspam.scoring.classifier import Classifier
from nbspam.store.check import histograms_of

TOKENS = st.sampled_from(["a", "b", "c", "d", "trace:e", "trace:f"])


def close(expected):
    return pytest.approx(expected, rel=1e-9, abs=1e-9)


def learner_of(learned) -> OnlineLearner:
    """Return an empty learner for the classes and settings of a fitted model."""
    fitted = learned.fit.metadata.settings
    chosen = TrainingSettings(alpha=fitted.alpha, prior=fitted.prior, scoring=fitted.scoring)
    return OnlineLearner(empty_metadata(fitted.classes, fitted.positive, chosen), {})


def taught(learned, messages, refined=False) -> OnlineLearner:
    learner = learner_of(learned)
    for label, tokens in messages:
        learner.learn(label, tokens)
        if refined:
            learner.refine(label, tokens)
    return learner


def counts_of(learner: OnlineLearner, tokens):
    return dict(learner.classifier().counts(tokens))


def assert_same_counts(learned, learner: OnlineLearner):
    expected, metadata = learned.fit.metadata, learner.metadata
    assert expected.learned.messages == metadata.learned.messages
    assert expected.n_tokens == metadata.n_tokens
    histograms = [list(map(dict, m.learned.count_histograms)) for m in (expected, metadata)]
    assert histograms[0] == histograms[1]
    assert close(expected.bias) == metadata.bias
    assert learned.counts == counts_of(learner, [*learned.counts, "never seen"])


@settings(deadline=None, max_examples=60)
@given(labelled_tokens(tokens=TOKENS), ALPHAS, PRIORS, st.sampled_from(SCORINGS))
def test_learning_one_by_one_counts_as_learning_all_at_once(messages, alpha, prior, scoring):
    learned = learn(messages, alpha=alpha, prior=prior, scoring=scoring)
    assert_same_counts(learned, taught(learned, messages))
    assert_same_counts(learned, taught(learned, messages, refined=True))


@settings(deadline=None, max_examples=40)
@given(labelled_tokens(tokens=TOKENS), st.randoms())
def test_counts_do_not_depend_on_the_order(messages, chance: random.Random):
    learned = learn(messages)
    mixed = messages[:]
    chance.shuffle(mixed)
    assert_same_counts(learned, taught(learned, mixed))


def test_going_on_from_a_fit_counts_as_learning_all_at_once():
    messages = many_messages(500, seed=1)
    whole, first = learn(messages, scoring="evidence"), learn(messages[:15], scoring="evidence")
    learner = OnlineLearner(first.fit.metadata, dict(first.counts))
    for label, tokens in messages[15:]:
        learner.learn(label, tokens)
        learner.refine(label, tokens)
    assert_same_counts(whole, learner)


@pytest.mark.parametrize("scoring", SCORINGS)
@pytest.mark.parametrize("labels", [("ham", "spam"), ("ham", "promo", "spam")])
@pytest.mark.parametrize("prior", [None, 0.2])
def test_scores_are_those_of_a_classifier_of_the_fitted_counts(scoring, labels, prior):
    messages = many_messages(800, seed=2)
    messages = [(labels[i % len(labels)], tokens) for i, (_, tokens) in enumerate(messages)]
    learned = learn(messages, scoring=scoring, prior=prior)
    learner = taught(learned, messages, refined=True)
    calibrations = learner.metadata.learned.calibrations
    metadata = with_learned(learned.fit.metadata, calibrations=calibrations)
    expected = Classifier(metadata, learned.classifier.counts)
    actual = learner.classifier()
    for _, tokens in messages[:20]:
        one, other = expected.score(tokens), actual.score(tokens | {"never seen"})
        assert close(one.log_odds) == other.log_odds
        assert close(one.probabilities) == other.probabilities
        for found, again in zip(one.evidences, other.evidences, strict=True):
            assert close(found.features) == again.features


def test_learning_leaves_the_calibration_as_it_is():
    learned = learn(scoring="evidence")
    learner = OnlineLearner(learned.fit.metadata, dict(learned.counts))
    learner.learn("spam", {"prize", "new"})
    assert learned.fit.metadata.learned.calibrations == learner.metadata.learned.calibrations


def test_under_the_sum_rule_the_calibration_stays_as_it_is():
    learned = learn()
    assert (
        learner_of(learned).metadata.learned.calibrations
        == taught(learned, [("spam", {"prize"})] * 3, refined=True).metadata.learned.calibrations
    )


def test_the_calibration_is_refined_by_the_score_that_a_message_had_before():
    learned = learn(many_messages(300, seed=3), scoring="evidence")
    learner = OnlineLearner(learned.fit.metadata, dict(learned.counts))
    expected = learned.fit.metadata.learned.calibrations[0]
    for label, tokens in many_messages(300, seed=3)[:10]:
        score = learner.classifier().score(tokens)
        (found,) = score.evidences
        expected = update(expected, found.features, found.header_nats, label == "spam")
        learner.learn(label, tokens)
        learner.refine(label, tokens)
    assert (expected,) == learner.metadata.learned.calibrations


def test_of_a_batch_each_message_is_scored_with_itself_left_out():
    messages = many_messages(300, seed=3)
    learned = learn(messages[:20], scoring="evidence")
    learner = OnlineLearner(learned.fit.metadata, dict(learned.counts))
    for label, tokens in messages[20:]:
        learner.learn(label, tokens)
    expected = learned.fit.metadata.learned.calibrations[0]
    for i, (label, tokens) in enumerate(messages[20:], 20):
        others = learn(messages[:i] + messages[i + 1 :], scoring="evidence")
        (found,) = others.classifier.score(tokens).evidences
        expected = update(expected, found.features, found.header_nats, label == "spam")
        learner.refine(label, tokens)
    (actual,) = learner.metadata.learned.calibrations
    assert close(expected.coefficients) == actual.coefficients


@pytest.mark.parametrize("first", ["ham", "spam"])
def test_the_first_messages_of_the_second_class_do_not_spoil_the_calibration(first):
    messages = many_messages(3_000, seed=4, longest=5)
    own = {"ham": {"lunch", "notes"}, "spam": {"prize", "click"}}
    learner = OnlineLearner(empty_metadata(("ham", "spam"), "spam", TrainingSettings()), {})
    for only in sorted(own, key=lambda name: name != first):
        batch = [(only, tokens | own[only]) for label, tokens in messages if label == only]
        for label, tokens in batch:
            learner.learn(label, tokens)
        for label, tokens in batch:
            learner.refine(label, tokens)
    score = learner.classifier().score
    assert score({"lunch", "notes"}).probability < 0.2
    assert score({"prize", "click"}).probability > 0.8


def test_of_three_classes_each_ones_calibration_is_refined():
    learned = learn(
        [(name, {name, "x"}) for name in ("ham", "promo", "spam")] * 3, scoring="evidence"
    )
    learner = learner_of(learned)
    for _ in range(20):
        for name in ("ham", "promo", "spam"):
            tokens = {name, "x"}
            learner.learn(name, tokens)
            learner.refine(name, tokens)
    assert len(learner.metadata.learned.calibrations) == 3
    assert all(found != untrained() for found in learner.metadata.learned.calibrations)
    for k, name in enumerate(("ham", "promo", "spam")):
        probabilities = learner.classifier().score({name, "x"}).probabilities
        assert probabilities[k] == max(probabilities)
        assert probabilities[k] > 0.5


def test_a_learner_of_nothing_is_undecided():
    for scoring in SCORINGS:
        metadata = empty_metadata(("ham", "spam"), "spam", TrainingSettings(scoring=scoring))
        learner = OnlineLearner(metadata, {})
        assert learner.classifier().score({"prize"}).probability == close(0.5)
        assert (learner.metadata.learned.messages, learner.metadata.n_tokens) == ((0, 0), 0)


@pytest.mark.parametrize("scoring", SCORINGS)
def test_a_learner_of_one_class_alone_is_undecided(scoring):
    learner = OnlineLearner(
        empty_metadata(("ham", "spam"), "spam", TrainingSettings(scoring=scoring)), {}
    )
    for i in range(5):
        tokens = {"lunch", f"word{i}"}
        score = learner.classifier().score(tokens)
        assert score.probability == 0.5
        assert score.log_odds == 0
        learner.learn("ham", tokens)
        learner.refine("ham", tokens)
        assert learner.metadata.learned.calibrations == (untrained(),)
    learner.learn("spam", {"prize"})
    assert learner.classifier().score({"lunch"}).probability < 0.5


def test_a_label_that_is_no_class_is_refused():
    learner = OnlineLearner(empty_metadata(("ham", "spam"), "spam", TrainingSettings()), {})
    with pytest.raises(ValueError, match="not in tuple"):
        learner.learn("promo", {"a"})
    assert learner.metadata.learned.messages == (0, 0)


def test_a_classifier_does_not_see_what_is_learned_later():
    learner = learner_of(learn())
    before = learner.classifier()
    learner.learn("spam", {"prize"})
    assert before.metadata.learned.messages == (0, 0)
    assert learner.classifier().metadata.learned.messages == (0, 1)


# Metadata is a snapshot: what follows from it fits it, and it does not change


def assert_consistent(metadata, counts, messages):
    """Hold metadata to the counts and messages it was taken with, in all that follows from them."""
    assert metadata.learned.messages == messages
    assert metadata.n_tokens == len(counts)
    assert metadata.is_one_sided == (sum(map(bool, messages)) < 2)
    histograms = histograms_of(counts.values(), len(messages))
    assert tuple(map(dict, metadata.learned.count_histograms)) == tuple(map(dict, histograms))
    settings_ = metadata.settings
    priors = log_priors(messages, settings_.prior, settings_.positive_index)
    for k, n in enumerate(messages):
        absent = [
            math.log(n - row[k] + settings_.alpha) - math.log(n + 2 * settings_.alpha)
            for row in counts.values()
        ]
        assert close(math.fsum([priors[k], *absent])) == metadata.bias[k]


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["ham", "promo", "spam"]),
        st.sets(TOKENS, max_size=4),
        st.sampled_from(["learn", "learn", "refine", "unlearn"]),
    ),
    max_size=10,
)


@settings(deadline=None, max_examples=80)
@given(STEPS, st.sampled_from(SCORINGS), PRIORS)
def test_metadata_fits_the_counts_at_every_step_and_never_changes(steps, scoring, prior):
    chosen = TrainingSettings(scoring=scoring, prior=prior)
    learner = OnlineLearner(empty_metadata(("ham", "promo", "spam"), "spam", chosen), {})
    messages = [0, 0, 0]
    taken = []
    learned = []
    for label, tokens, act in steps:
        k = ("ham", "promo", "spam").index(label)
        if act == "unlearn":
            if (label, tokens) not in learned:
                continue
            learned.remove((label, tokens))
            learner.unlearn(label, tokens)
            messages[k] -= 1
        else:
            learned.append((label, tokens))
            learner.learn(label, tokens)
            messages[k] += 1
            if act == "refine":
                learner.refine(label, tokens)
        now = dict(learner.counts), tuple(messages)
        assert_consistent(learner.metadata, *now)
        taken.append((learner.metadata, now))
        taken.append((learner.classifier().metadata, now))
    for metadata, then in taken:
        assert_consistent(metadata, *then)


def test_the_calibration_of_metadata_taken_before_stays():
    learned = learn(many_messages(100), scoring="evidence")
    learner = OnlineLearner(learned.fit.metadata, dict(learned.counts))
    before, classifier = learner.metadata, learner.classifier()
    for label, tokens in many_messages(100)[:4]:
        learner.learn(label, tokens)
        learner.refine(label, tokens)
    assert before == classifier.metadata == learned.fit.metadata
    assert learner.metadata.learned.calibrations != before.learned.calibrations
