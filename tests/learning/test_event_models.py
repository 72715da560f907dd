"""Every event model, with traits of every kind, against scikit-learn; and batch against one."""

import numpy as np
import pytest
from closeness import CLOSE, assert_evidence_agrees, assert_scores_agree, close
from counted_models import (
    KINDS,
    THREE,
    TOKEN_MODELS,
    TWO,
    VARIANCES,
    by_combination,
    counted_messages,
    learn_counted,
    message,
    settings_of,
)
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from one_case import each
from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB
from sklearn.neighbors import KernelDensity
from small_models import ALPHAS

import nbspam
from nbspam.bayes import calibration
from nbspam.bayes.trait_model import ClassDensity, Variances
from nbspam.learning.corpus import Corpus
from nbspam.learning.learner import Learner
from nbspam.learning.settings import empty_metadata
from nbspam.reading.message import parse_text
from nbspam.tokens.kinds import TRAIT_NAMES
from nbspam.tokens.tokenized import tokenize


def reference(event_model, alpha, class_prior=None):
    """Return scikit-learn's model of the tokens, not yet fitted."""
    if event_model == "bernoulli":
        return BernoulliNB(alpha=alpha, binarize=None, class_prior=class_prior)
    if event_model == "complement":
        return ComplementNB(alpha=alpha, norm=False)
    return MultinomialNB(alpha=alpha, class_prior=class_prior)


def one_by_one(learned, messages):
    """Return the scores of the one-message path."""
    return [learned.classifier.score(one.tokens, one.extras) for one in messages]


def assert_joint(learned, messages, joint):
    """Hold the scores to these joint log-likelihoods, (n_messages, n_classes)."""
    top = joint.max(axis=1, keepdims=True)
    posterior = np.exp(joint - top - np.log(np.exp(joint - top).sum(axis=1, keepdims=True)))
    scores = one_by_one(learned, messages)
    np.testing.assert_allclose([s.log_scores for s in scores], joint, **CLOSE)
    np.testing.assert_allclose([s.probabilities for s in scores], posterior, **CLOSE)
    if joint.shape[1] == 2:
        assert [s.log_odds for s in scores] == close((joint[:, 1] - joint[:, 0]).tolist())
        assert [s.probability for s in scores] == close(posterior[:, 1].tolist())


def with_a_token(messages):
    """Make sure that the vocabulary is not empty: scikit-learn has no model of no columns."""
    first, *others = messages
    return [first._replace(tokens=sorted({*first.tokens, "a"})), *others]


def token_joint(learned, class_prior=None):
    """Return scikit-learn's joint log-likelihoods of the matrix of tokens."""
    chosen = learned.fit.metadata.settings
    matrix, labels = learned.corpus.presence().toarray(), learned.fit.labels
    model = reference(chosen.event_model, chosen.alpha, class_prior).fit(matrix, labels)
    return model.predict_joint_log_proba(matrix), model.predict_proba(matrix)


@pytest.mark.parametrize("event_model", TOKEN_MODELS)
@given(counted_messages(), ALPHAS)
def test_scores_are_scikit_learns(event_model, messages, alpha):
    messages = with_a_token(messages)
    learned = learn_counted(messages, settings_of((event_model, "none"), alpha=alpha))
    joint, posterior = token_joint(learned)
    assert_joint(learned, messages, joint)
    probabilities = [s.probabilities for s in one_by_one(learned, messages)]
    np.testing.assert_allclose(probabilities, posterior, **CLOSE)


@each("event_model", [name for name in TOKEN_MODELS if name != "complement"])
@settings(max_examples=10)
@given(counted_messages(classes=TWO), ALPHAS, st.floats(0.01, 0.99))
def test_scores_with_a_fixed_prior_are_scikit_learns(event_model, messages, alpha, prior):
    messages = with_a_token(messages)
    learned = learn_counted(messages, settings_of((event_model, "none"), alpha=alpha, prior=prior))
    assert_joint(learned, messages, token_joint(learned, [1 - prior, prior])[0])


def test_the_matrix_has_occurrences_where_they_count():
    messages = [message("ham", {"a": 3, "b": 1}), message("spam", {"a": 1, "c": 2})]
    for event_model, rows in (
        ("multinomial", [[3, 1, 0], [1, 0, 2]]),
        ("complement", [[3, 1, 0], [1, 0, 2]]),
        ("bernoulli", [[1, 1, 0], [1, 0, 1]]),
    ):
        learned = learn_counted(messages, settings_of((event_model, "none")))
        np.testing.assert_array_equal(learned.corpus.presence().toarray(), rows)
        counted = {token: tuple(column) for token, *column in zip("abc", *rows, strict=True)}
        assert learned.counts == counted


def has_variance(messages):
    """Return whether some trait differs: scikit-learn divides by 0 where none does."""
    return np.ptp([one.extras.traits for one in messages], axis=0).any()


def gaussian_reference(learned, smoothing):
    return GaussianNB(var_smoothing=smoothing).fit(learned.fit.traits, learned.fit.labels)


@given(counted_messages(), st.sampled_from([1e-9, 0.01, 0.1, 3.0]))
def test_traits_alone_are_scikit_learns_gaussian_model(messages, smoothing):
    assume(has_variance(messages))
    chosen = settings_of(("none", "gaussian"), variances=Variances(smoothing))
    learned = learn_counted(messages, chosen)
    model = gaussian_reference(learned, smoothing)
    joint = model.predict_joint_log_proba(learned.fit.traits)
    scores = one_by_one(learned, messages)
    np.testing.assert_allclose([s.log_scores for s in scores], joint, **CLOSE)
    if smoothing > 1e-9:  # else the joints are of up to 1e10 nats, and their differences blur
        assert_joint(learned, messages, joint)


def kernel_joint(learned):
    """Return the log densities of all traits by scikit-learn, (n_messages, n_classes)."""
    traits, labels = learned.fit.traits.astype(float), learned.fit.labels
    joint = np.zeros((len(labels), len(learned.fit.metadata.settings.classes)))
    for column, histograms in zip(
        traits.T[:, :, None], learned.fit.metadata.learned.trait_histograms, strict=True
    ):
        for k, values in enumerate(histograms):
            h = ClassDensity(values).bandwidth()
            density = KernelDensity(bandwidth=h).fit(column[labels == k])
            joint[:, k] += density.score_samples(column)
    return joint


@each("event_model", TOKEN_MODELS)
@settings(max_examples=4)
@given(counted_messages(), ALPHAS, st.sampled_from([0.01, 0.1]))
def test_tokens_and_traits_are_multiplied(event_model, messages, alpha, smoothing):
    messages = with_a_token(messages)
    assume(has_variance(messages))
    kind, variances = (event_model, "gaussian"), Variances(smoothing)
    learned = learn_counted(messages, settings_of(kind, alpha=alpha, variances=variances))
    model = gaussian_reference(learned, smoothing)
    of_traits = model.predict_joint_log_proba(learned.fit.traits) - np.log(model.class_prior_)
    assert_joint(learned, messages, token_joint(learned)[0] + of_traits)
    learned = learn_counted(messages, settings_of((event_model, "kernel"), alpha=alpha))
    assert_joint(learned, messages, token_joint(learned)[0] + kernel_joint(learned))


def assert_left_out_is_retrained(messages, chosen, which=None):
    """Hold the scores of messages left out to those of a model of all the others."""
    learned = learn_counted(messages, chosen)
    left_out = list(learned.fit.left_out_scores())
    which = range(len(messages)) if which is None else which
    retrained = [
        learn_counted(messages[:i] + messages[i + 1 :], chosen).classifier.score(
            messages[i].tokens, messages[i].extras
        )
        for i in which
    ]
    left_out = [left_out[i] for i in which]
    if chosen.scoring == "sum":
        assert_scores_agree(retrained, left_out)
    else:  # the calibration is fitted to these very features
        assert_evidence_agrees(retrained, left_out)


@by_combination
@settings(max_examples=3)
@given(counted_messages(per_class=2, told=False), ALPHAS, VARIANCES)
def test_left_out_is_retrained(kind, scoring, messages, alpha, variances):
    assert_left_out_is_retrained(messages, settings_of(kind, scoring, variances, alpha=alpha))


@each("kind", [kind for kind in KINDS if kind[0] != "complement"])
@settings(max_examples=2)
@given(counted_messages(classes=TWO, per_class=2, most=6), st.floats(0.01, 0.99))
def test_left_out_is_retrained_with_a_fixed_prior(kind, messages, prior):
    assert_left_out_is_retrained(messages, settings_of(kind, prior=prior))


def half_in_doubt(one):
    """Return a message every second token of which only perhaps hidden text has."""
    perhaps = frozenset(one.tokens[::2])
    return one._replace(extras=one.extras._replace(possibly_hidden=perhaps))


def test_what_is_in_doubt_never_speaks_for_ham():
    texts = [("spam", f"win a prize w{i}") for i in range(30)]
    texts += [("ham", f"lunch at noon w{i + 20}") for i in range(30)]
    classifier = nbspam.train(texts).version.classifier
    messages = [half_in_doubt(tokenize(parse_text(text))) for _, text in texts]
    corpus = Corpus()
    for one in messages:
        corpus.add(one)
    some = 0
    for i, one in enumerate(messages):
        assert corpus.message(i).extras == one.extras
        ignored_hidden = classifier.hidden_ham_tokens(one.extras)
        some += bool(ignored_hidden)
        rows = classifier.counts(ignored_hidden).values()
        assert all(classifier.rule.weights(row)[0] < 0 for row in rows)
        others = [
            *set(one.tokens) - ignored_hidden,
            *(f"unknown{i}" for i in range(len(ignored_hidden))),
        ]
        alone = classifier.score(others).log_odds
        assert classifier.score(one.tokens, one.extras).log_odds == pytest.approx(alone, abs=1e-9)
    assert some > 20


@pytest.mark.long
@by_combination
def test_left_out_is_retrained_on_longer_messages(kind, scoring):
    for classes in (TWO, THREE):
        chance = np.random.default_rng(len(classes))
        messages = [
            message(
                classes[i % len(classes)],
                {f"w{j}": int(n) for j, n in enumerate(chance.poisson(0.5 + i % 2, 40)) if n},
                chance.integers(0, 80, len(TRAIT_NAMES)).tolist(),
                i,
            )
            for i in range(24)
        ]
        messages[::3] = map(half_in_doubt, messages[::3])
        assert_left_out_is_retrained(messages, settings_of(kind, scoring), range(0, 24, 11))


@by_combination
@settings(max_examples=3)
@given(counted_messages(told=False), st.randoms())
def test_learning_one_by_one_in_any_order_counts_as_learning_all_at_once(
    kind, scoring, messages, chance
):
    chosen = settings_of(kind, scoring)
    learned = learn_counted(messages, chosen)
    expected = learned.fit.metadata
    empty = empty_metadata(expected.settings.classes, expected.settings.positive, chosen)
    learner = Learner(empty, {})
    mixed = messages[:]
    chance.shuffle(mixed)
    for one in mixed:
        learner.learn(one.label, one.tokens, one.extras)
        learner.refine(one.label, one.tokens, one.extras)
    assert learner.counts == learned.counts
    found = learner.metadata
    for name in ("messages", "count_histograms", "trait_histograms", "host_rows"):
        assert getattr(found.learned, name) == getattr(expected.learned, name)
    assert found.bias == expected.bias


@pytest.mark.few(5)
@pytest.mark.parametrize("kind", KINDS, ids="-".join)
def test_a_message_refines_by_the_evidence_that_it_had_before(kind):
    """Batch after batch; what the message itself has taught is left out."""
    chance = np.random.default_rng(7)
    messages = [
        message(
            TWO[i % 2],
            {f"w{j}": int(n) for j, n in enumerate(chance.poisson(0.5 + i % 2, 20)) if n},
            (chance.integers(0, 20, len(TRAIT_NAMES)) + 8 * (i % 2)).tolist(),
            i,
        )
        for i in range(30)
    ]
    learned = learn_counted(messages[:20], settings_of(kind, "evidence"))
    metadata = learned.fit.metadata
    before, after = (Learner(metadata, dict(learned.counts)) for _ in range(2))
    for one in messages[20:]:
        known = before.classifier().known_words(one.tokens, one.extras)
        rule, k = before.classifier().rule, TWO.index(one.label)
        calibrations = after.metadata.learned.calibrations
        lesson = rule.calibration_lesson(calibrations, known, k, "")
        expected = calibration.replay_lesson(
            metadata.settings.calibration_specs, (1,), calibrations, lesson
        )
        before.learn(one.label, one.tokens, one.extras)
        after.learn(one.label, one.tokens, one.extras)
        after.refine(one.label, one.tokens, one.extras)
        assert after.metadata.learned.calibrations == expected
    assert after.metadata.learned.calibrations != metadata.learned.calibrations
