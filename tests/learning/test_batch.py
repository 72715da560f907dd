import numpy as np
import pytest
from hypothesis import given, settings
from sklearn.naive_bayes import BernoulliNB
from small_models import (
    ALPHAS,
    MESSAGES,
    PRIORS,
    SCORINGS,
    labelled_tokens,
    learn,
    many_messages,
    rows_of,
    with_learned,
)

from nbspam.errors import TrainingError
from nbspam.learning.batch import fit
from nbspam.learning.corpus import Corpus
from nbspam.learning.settings import CLASSES_LIMIT, TrainingSettings, class_names
from nbspam.store.check import histograms_of
from nbspam.tokens.tokenized import TokenizedMessage

CLOSE = {"rtol": 1e-9, "atol": 1e-9}


def dense(learned):
    return learned.corpus.presence().toarray()


def reference(learned, class_prior=None):
    """Return scikit-learn's model of the same matrix; its classes are numbered as the model's."""
    alpha = learned.fit.metadata.settings.alpha
    model = BernoulliNB(alpha=alpha, binarize=None, class_prior=class_prior)
    return model.fit(dense(learned), learned.fit.labels)


def probabilities(scores):
    return np.array([score.probabilities for score in scores])


def assert_scores_agree(expected, actual):
    for name in ("log_odds", "probability", "probabilities"):
        np.testing.assert_allclose(
            [getattr(s, name) for s in actual], [getattr(s, name) for s in expected], **CLOSE
        )


def some_token(messages):
    """Make sure that the vocabulary is not empty: scikit-learn has no model of no columns."""
    label, tokens = messages[0]
    return [(label, tokens | {"a"}), *messages[1:]]


@settings(deadline=None, max_examples=60)
@given(labelled_tokens(), ALPHAS)
def test_scores_are_scikit_learns(messages, alpha):
    learned = learn(some_token(messages), alpha=alpha)
    scores = list(learned.fit.scores(learned.corpus.presence()))
    expected = reference(learned).predict_proba(dense(learned))
    np.testing.assert_allclose(probabilities(scores), expected, **CLOSE)


@settings(deadline=None, max_examples=60)
@given(labelled_tokens(classes=("ham", "spam")), ALPHAS, PRIORS)
def test_log_odds_are_scikit_learns(messages, alpha, prior):
    learned = learn(some_token(messages), alpha=alpha, prior=prior)
    scores = list(learned.fit.scores(learned.corpus.presence()))
    model = reference(learned, None if prior is None else [1 - prior, prior])
    joint = model.predict_joint_log_proba(dense(learned))
    expected = joint[:, 1] - joint[:, 0]
    np.testing.assert_allclose([s.log_odds for s in scores], expected, **CLOSE)
    shares = model.predict_proba(dense(learned))[:, 1]
    np.testing.assert_allclose([s.probability for s in scores], shares, **CLOSE)


def retrained_scores(messages, which, learned):
    """Return the scores of some messages, each by a model of all the others.

    The calibration is that of the model of all: it is fitted to these very scores.
    """
    scores = []
    metadata = learned.fit.metadata
    for i in which:
        without = learn(
            messages[:i] + messages[i + 1 :],
            alpha=metadata.settings.alpha,
            prior=metadata.settings.prior,
            scoring=metadata.settings.scoring,
        )
        calibrations = metadata.learned.calibrations
        calibrated = with_learned(without.fit.metadata, calibrations=calibrations)
        part = without.fit._replace(metadata=calibrated)
        scores += list(part.scores(rows_of(without, [messages[i][1]])))
    return scores


@settings(deadline=None, max_examples=80)
@given(labelled_tokens(classes=("ham", "spam"), per_class=2), ALPHAS, PRIORS)
def test_left_out_scores_are_those_of_real_retraining(messages, alpha, prior):
    learned = learn(messages, alpha=alpha, prior=prior)
    expected = retrained_scores(messages, range(len(messages)), learned)
    assert_scores_agree(expected, list(learned.fit.left_out_scores(learned.corpus.presence())))


@settings(deadline=None, max_examples=40)
@given(labelled_tokens(classes=("ham", "promo", "spam"), per_class=2), ALPHAS)
def test_left_out_scores_of_three_classes_are_those_of_real_retraining(messages, alpha):
    learned = learn(messages, alpha=alpha)
    expected = retrained_scores(messages, range(len(messages)), learned)
    assert_scores_agree(expected, list(learned.fit.left_out_scores(learned.corpus.presence())))


@settings(deadline=None, max_examples=60)
@given(labelled_tokens(classes=("ham", "spam"), per_class=2), ALPHAS)
def test_left_out_evidence_is_that_of_real_retraining(messages, alpha):
    learned = learn(messages, alpha=alpha, scoring="evidence")
    expected = retrained_scores(messages, range(len(messages)), learned)
    assert_scores_agree(expected, list(learned.fit.left_out_scores(learned.corpus.presence())))


@pytest.mark.parametrize(("scoring", "prior"), [("sum", None), ("sum", 0.3), ("evidence", None)])
def test_left_out_scores_are_those_of_real_retraining_on_many_tokens(scoring, prior):
    messages = many_messages(500, seed=3)
    learned = learn(messages, prior=prior, scoring=scoring)
    actual = list(learned.fit.left_out_scores(learned.corpus.presence()))
    some = range(0, len(messages), 3)
    assert_scores_agree(retrained_scores(messages, some, learned), [actual[i] for i in some])


@pytest.mark.parametrize("scoring", SCORINGS)
def test_the_only_message_of_a_class_left_out_has_a_score(scoring):
    learned = learn([("ham", {"a"}), ("ham", {"b"}), ("spam", {"c"})], scoring=scoring)
    scores = list(learned.fit.left_out_scores(learned.corpus.presence()))
    assert len(scores) == 3
    assert all(0 <= score.probability <= 1 for score in scores)


@pytest.mark.parametrize("scoring", SCORINGS)
def test_a_column_that_training_never_filled_says_nothing(scoring):
    learned = learn(scoring=scoring)
    wider = Corpus()
    for label, tokens in [*MESSAGES, ("ham", {"late"})]:
        wider.add(TokenizedMessage("", label, list(tokens)))
    presence = wider.presence()[:5]
    found = fit(presence, wider.labels[:5], TrainingSettings(scoring=scoring), wider.is_header())
    alone = list(learned.fit.scores(learned.corpus.presence()))
    assert_scores_agree(alone, list(found.scores(presence)))
    assert_scores_agree(
        list(learned.fit.scores(rows_of(learned, [{"prize"}]))),
        list(found.scores(rows_of(Columns(wider), [{"prize", "late"}]))),
    )
    assert learned.fit.metadata.n_tokens == found.metadata.n_tokens


class Columns:
    """Stands in for what was learned where only the columns matter."""

    def __init__(self, corpus):
        self.corpus = corpus


@settings(deadline=None, max_examples=30)
@given(labelled_tokens())
def test_count_histograms_are_those_of_the_tokens(messages):
    learned = learn(messages)
    metadata = learned.fit.metadata
    expected = histograms_of(learned.counts.values(), len(metadata.settings.classes))
    assert list(map(dict, expected)) == list(map(dict, metadata.learned.count_histograms))
    assert len(learned.counts) == metadata.n_tokens


@pytest.mark.parametrize("scoring", SCORINGS)
def test_one_message_of_each_class_is_enough(scoring):
    learned = learn([("ham", {"a"}), ("spam", {"b"})], scoring=scoring)
    ham, spam = list(learned.fit.scores(learned.corpus.presence()))
    assert ham.probability < 0.5 < spam.probability


def test_messages_without_any_token_can_be_learned():
    learned = learn([("ham", set()), ("ham", set()), ("spam", set())])
    scores = list(learned.fit.scores(learned.corpus.presence()))
    assert [pytest.approx(1 / 3)] * 3 == [score.probability for score in scores]


def test_spam_is_the_last_of_two_classes():
    assert class_names(["spam", "zoo"], None) == (("zoo", "spam"), "spam")
    assert class_names(["spam", "ham", "ham"], None) == (("ham", "spam"), "spam")


def test_the_named_class_is_the_positive_one():
    assert class_names(["good", "bad"], "bad") == (("good", "bad"), "bad")
    assert class_names(["spam", "ham"], "ham") == (("spam", "ham"), "ham")


def test_three_classes_need_no_positive_one():
    assert class_names(["c", "a", "b"], None) == (("a", "b", "c"), None)
    assert class_names(["spam", "promo", "ham"], None) == (("ham", "promo", "spam"), "spam")


@pytest.mark.parametrize(
    ("labels", "positive", "part"),
    [
        ([], None, "no message"),
        (["spam"], None, "only the class 'spam'"),
        (["a", "b"], None, "say which class is spam"),
        (["ham", "spam"], "junk", "no message is labelled 'junk'"),
    ],
)
def test_labels_that_make_no_model_are_refused(labels, positive, part):
    with pytest.raises(TrainingError, match=part):
        class_names(labels, positive)


def test_texts_taken_for_labels_are_refused_at_once():
    labels = [f"text {i}" for i in range(CLASSES_LIMIT + 1)]
    with pytest.raises(TrainingError, match=r"101 different labels.*; name the label column$"):
        class_names(labels, None)
