from collections import Counter

import numpy as np
import pytest
from channel_models import labelled_mails, many_mails
from hypothesis import given
from hypothesis import strategies as st
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
from whole_models import without_calibration

from nbspam.bayes.calibration import UNTRAINED, inputs
from nbspam.errors import TrainingError
from nbspam.learning.batch import fit
from nbspam.learning.corpus import Corpus
from nbspam.learning.settings import CLASSES_LIMIT, TrainingSettings, class_names
from nbspam.scoring.classifier import Classifier
from nbspam.scoring.explanation import explain
from nbspam.store.check import with_counts
from nbspam.store.lookup import Lookup
from nbspam.store.model_file import read_model
from nbspam.tokens.kinds import TEXT, channel_of
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
    for name in ("log_odds", "probability", "probabilities", "trust", "known", "text"):
        np.testing.assert_allclose(
            [getattr(s, name) for s in actual], [getattr(s, name) for s in expected], **CLOSE
        )
    assert_evidence_agrees(expected, actual)


def assert_evidence_agrees(expected, actual):
    """Hold the features of all groups of words to each other, and the tokens that are counted."""
    one, other = (
        np.array([np.concatenate(found[:3]) for score in scores for found in score.evidences])
        for scores in (expected, actual)
    )
    np.testing.assert_allclose(other, one, **CLOSE)
    traits = [
        [e.traits for score in scores for e in score.evidences] for scores in (expected, actual)
    ]
    assert traits[0] == traits[1]
    counted = [[(score.known, score.text) for score in scores] for scores in (expected, actual)]
    assert counted[0] == counted[1]


def some_token(messages):
    """Make sure that the vocabulary is not empty: scikit-learn has no model of no columns."""
    label, tokens = messages[0]
    return [(label, tokens | {"a"}), *messages[1:]]


@given(labelled_tokens(), ALPHAS)
def test_scores_are_scikit_learns(messages, alpha):
    learned = learn(some_token(messages), alpha=alpha)
    scores = list(learned.fit.scores(learned.corpus.presence()))
    expected = reference(learned).predict_proba(dense(learned))
    np.testing.assert_allclose(probabilities(scores), expected, **CLOSE)


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
        (score,) = part.scores(rows_of(without, [messages[i][1]]))
        # The matrix lacks the columns of the message's own tokens, which are unknown and counted.
        text = sum(channel_of(token) == TEXT for token in messages[i][1])
        scores.append(score._replace(text=text))
    return scores


@given(labelled_mails(classes=("ham", "spam"), per_class=2), ALPHAS, PRIORS)
def test_left_out_scores_are_those_of_real_retraining(messages, alpha, prior):
    learned = learn(messages, alpha=alpha, prior=prior)
    expected = retrained_scores(messages, range(len(messages)), learned)
    assert_scores_agree(expected, list(learned.fit.left_out_scores(learned.corpus.presence())))


@given(labelled_mails(classes=("ham", "promo", "spam"), per_class=2), ALPHAS)
def test_left_out_scores_of_three_classes_are_those_of_real_retraining(messages, alpha):
    learned = learn(messages, alpha=alpha)
    expected = retrained_scores(messages, range(len(messages)), learned)
    assert_scores_agree(expected, list(learned.fit.left_out_scores(learned.corpus.presence())))


@given(labelled_mails(per_class=2), ALPHAS)
def test_left_out_evidence_is_that_of_real_retraining(messages, alpha):
    learned = learn(messages, alpha=alpha, scoring="evidence")
    expected = retrained_scores(messages, range(len(messages)), learned)
    actual = list(learned.fit.left_out_scores(learned.corpus.presence()))
    assert_evidence_agrees(expected, actual)


@given(labelled_mails(per_class=2), ALPHAS, PRIORS)
def test_left_out_scores_of_evidence_follow_from_the_left_out_evidence(messages, alpha, prior):
    """Number of messages, hosts and calibrations are those of the whole model."""
    learned = learn(messages, alpha=alpha, prior=prior, scoring="evidence")
    actual = list(learned.fit.left_out_scores(learned.corpus.presence()))
    rule = learned.classifier.rule
    expected = [rule.score_of(score.evidences, score.text) for score in actual]
    assert expected == actual


@pytest.mark.parametrize("prior", [None, 0.3])
def test_left_out_scores_are_those_of_real_retraining_on_many_tokens(prior):
    messages = many_messages(500, seed=3)
    learned = learn(messages, prior=prior)
    actual = list(learned.fit.left_out_scores(learned.corpus.presence()))
    some = range(0, len(messages), 3)
    assert_scores_agree(retrained_scores(messages, some, learned), [actual[i] for i in some])


@pytest.mark.parametrize("classes", [("ham", "spam"), ("ham", "promo", "spam")])
def test_left_out_evidence_is_that_of_real_retraining_on_many_mails(classes):
    messages = many_mails(60, 3, classes, hosts="mixed")
    learned = learn(messages, scoring="evidence")
    actual = list(learned.fit.left_out_scores(learned.corpus.presence()))
    some = range(0, len(messages), 4)
    assert_evidence_agrees(retrained_scores(messages, some, learned), [actual[i] for i in some])


def test_left_out_scores_come_alike_from_a_matrix_in_pieces():
    for scoring in SCORINGS:
        learned = learn(many_mails(60, 3), scoring=scoring)
        whole, corpus = learned.corpus.presence(), learned.corpus
        chosen = TrainingSettings(scoring=scoring, traits="none")
        again = fit(corpus, corpus.labels, chosen, corpus.channels())
        assert again.metadata == learned.fit.metadata
        assert_scores_agree(
            list(learned.fit.left_out_scores(whole)), list(again.left_out_scores(corpus))
        )


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
    late = {"late", "from:late", "received:late", "by:late"}
    for label, tokens in [*MESSAGES, ("ham", late)]:
        wider.add(TokenizedMessage("", label, list(tokens)))
    presence = wider.presence()[:5]
    chosen = TrainingSettings(scoring=scoring, traits="none")
    found = fit(presence, wider.labels[:5], chosen, wider.channels())
    alone = list(learned.fit.scores(learned.corpus.presence()))
    assert_scores_agree(alone, list(found.scores(presence)))
    (expected,) = learned.fit.scores(rows_of(learned, [{"prize"}]))
    actual = list(found.scores(rows_of(Columns(wider), [{"prize", *late}])))
    assert_scores_agree([expected._replace(text=2)], actual)
    assert found.metadata == learned.fit.metadata
    assert learned.fit.metadata.n_tokens == found.metadata.n_tokens


class Columns:
    """Stands in for what was learned where only the columns matter."""

    def __init__(self, corpus):
        self.corpus = corpus


@given(labelled_mails())
def test_count_histograms_and_counts_of_hosts_are_those_of_the_tokens(messages):
    learned = learn(messages)
    metadata = learned.fit.metadata
    assert with_counts(metadata, learned.counts) == metadata
    assert len(learned.counts) == metadata.n_tokens
    hosts = [row for token, row in learned.counts.items() if token.startswith("by:")]
    assert Counter(hosts) == metadata.learned.host_rows


def test_hosts_are_counted_by_the_mails_of_each_class_that_they_took_in():
    mails = [("ham", {"by:mx", "a"})] * 5 + [("spam", {"by:mx"}), ("spam", {"by:mail"})]
    mails += [("ham", {"by:a"}), ("ham", {"by:b"}), ("ham", {"by:c"}), ("ham", {"a"})]
    assert learn(mails).fit.metadata.learned.host_rows == {(5, 1): 1, (0, 1): 1, (1, 0): 3}


@given(labelled_mails(), st.sampled_from(SCORINGS), ALPHAS, PRIORS)
def test_a_saved_model_is_read_as_it_was(tmp_path_factory, messages, scoring, alpha, prior):
    learned = learn(messages, scoring=scoring, alpha=alpha, prior=prior)
    path = learned.save(tmp_path_factory.mktemp("saved") / "model.json")
    model = read_model(path)
    assert (model.metadata, model.counts) == (learned.fit.metadata, learned.counts)
    with Lookup(path) as lookup:
        assert lookup.metadata == learned.fit.metadata
        saved = Classifier(lookup.metadata, lookup.counts)
        for _, tokens in messages:
            assert learned.classifier.score(tokens) == saved.score(tokens)
            assert explain(learned.classifier, tokens) == explain(saved, tokens)


@given(labelled_mails(), st.sampled_from(SCORINGS), st.randoms())
def test_the_order_of_the_messages_does_not_matter(messages, scoring, chance):
    mixed = messages[:]
    chance.shuffle(mixed)
    one, other = learn(messages, scoring=scoring), learn(mixed, scoring=scoring)
    assert one.counts == other.counts
    assert without_calibration(one.fit.metadata) == without_calibration(other.fit.metadata)
    for both, again in zip(
        one.fit.metadata.learned.calibrations, other.fit.metadata.learned.calibrations, strict=True
    ):
        for calibration, same in zip(both, again, strict=True):
            np.testing.assert_allclose(same.coefficients, calibration.coefficients, atol=1e-6)
            np.testing.assert_allclose(same.ranges, calibration.ranges, **CLOSE)


def test_without_channels_all_is_text():
    learned = learn(many_mails(40))
    presence = learned.corpus.presence()
    found = fit(presence, learned.corpus.labels, TrainingSettings())
    (score, *_) = found.scores(presence)
    assert (score.trust, score.evidences[0].header.n) == (0, 0)
    assert score.known == score.text == presence[[0]].nnz
    assert found.metadata.learned.host_rows == {}


@pytest.mark.parametrize("scoring", SCORINGS)
def test_the_ranges_are_those_of_the_features_each_message_left_out(scoring):
    mails = many_mails(60, hosts="mixed")
    learned = learn(mails, scoring=scoring)
    scores = list(learned.fit.left_out_scores(learned.corpus.presence()))
    (both,) = learned.fit.metadata.learned.calibrations
    if scoring == "sum":
        assert both == UNTRAINED
        return
    for i, calibration in enumerate(both):
        x = np.array([inputs(score.evidences[0])[i] for score in scores])
        np.testing.assert_allclose(calibration.ranges, np.stack([x.min(0), x.max(0)])[:, 1:].T)


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
