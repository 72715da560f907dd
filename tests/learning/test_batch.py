"""What batches teach; random messages of every kind of model are in test_event_models.py."""

import numpy as np
import pytest
from channel_models import labelled_mails, many_mails
from closeness import CLOSE, assert_scores_agree
from hypothesis import given
from hypothesis import strategies as st
from one_case import each
from small_models import ALPHAS, MESSAGES, PRIORS, SCORINGS, learn
from whole_models import without_calibration

from nbspam.bayes.calibration import INPUT_DECIMALS, calibration_inputs, prior_calibrations
from nbspam.errors import TrainingError
from nbspam.learning import batch
from nbspam.learning.batch import fit, token_counts
from nbspam.learning.corpus import Corpus
from nbspam.learning.settings import CLASSES_LIMIT, TrainingSettings, class_names
from nbspam.tokens.tokenized import TokenizedMessage


def scores_of(learned):
    score = learned.classifier.score
    return [score(learned.corpus.message(i).tokens) for i in range(len(learned.corpus))]


def left_out_scores(learned):
    return list(learned.fit.left_out_scores())


@given(labelled_mails(per_class=2), ALPHAS, PRIORS)
def test_left_out_scores_of_evidence_follow_from_the_left_out_evidence(messages, alpha, prior):
    """Number of messages, hosts and calibrations are those of the whole model."""
    learned = learn(messages, alpha=alpha, prior=prior, scoring="evidence")
    actual, rule = left_out_scores(learned), learned.classifier.rule
    assert [rule.score_of(s.evidences, s.text, s.doubt) for s in actual] == actual


@each("scoring", SCORINGS)
def test_left_out_scores_come_alike_from_a_matrix_in_blocks(scoring, monkeypatch):
    monkeypatch.setattr(batch, "BLOCK", 50)
    learned = learn(many_mails(60, 3), scoring=scoring)
    corpus, chosen = learned.corpus, TrainingSettings(scoring=scoring, traits="none")
    again = fit(corpus, corpus.labels, chosen, corpus.channels())
    assert again.metadata == learned.fit.metadata
    assert_scores_agree(left_out_scores(learned), list(again.left_out_scores()))


@each("scoring", SCORINGS)
def test_a_column_that_training_never_filled_says_nothing(scoring):
    learned = learn(scoring=scoring)
    wider = Corpus()
    late = {"late", "from:late", "received:late", "by:late"}
    for label, tokens in [*MESSAGES, ("ham", late)]:
        wider.add(TokenizedMessage("", label, list(tokens)))
    presence = wider.presence()[:5]
    chosen = TrainingSettings(scoring=scoring, traits="none")
    found = fit(presence, wider.labels[:5], chosen, wider.channels())
    assert dict(token_counts(wider.vocabulary, found.counts)) == learned.counts
    assert_scores_agree(left_out_scores(learned), list(found.left_out_scores()))
    assert found.metadata == learned.fit.metadata
    assert learned.fit.metadata.n_tokens == found.metadata.n_tokens


def test_hosts_are_counted_by_the_mails_of_each_class_that_they_took_in():
    mails = [("ham", {"by:mx", "a"})] * 5 + [("spam", {"by:mx"}), ("spam", {"by:mail"})]
    mails += [("ham", {"by:a"}), ("ham", {"by:b"}), ("ham", {"by:c"}), ("ham", {"a"})]
    assert learn(mails).fit.metadata.learned.host_rows == {(5, 1): 1, (0, 1): 1, (1, 0): 3}


@given(labelled_mails(), st.sampled_from(SCORINGS), st.randoms())
def test_the_order_of_the_messages_does_not_matter(messages, scoring, chance):
    mixed = messages[:]
    chance.shuffle(mixed)
    one, other = learn(messages, scoring=scoring), learn(mixed, scoring=scoring)
    assert one.counts == other.counts
    assert without_calibration(one.fit.metadata) == without_calibration(other.fit.metadata)
    fitted = [learned.fit.metadata.learned.calibrations for learned in (one, other)]
    for both, again in zip(*fitted, strict=True):
        for calibration, same in zip(both, again, strict=True):
            np.testing.assert_allclose(same.coefficients, calibration.coefficients, atol=1e-6)
            np.testing.assert_allclose(same.ranges, calibration.ranges, **CLOSE)


def test_without_channels_all_is_text():
    learned = learn(many_mails(40))
    presence = learned.corpus.presence()
    found = fit(presence, learned.corpus.labels, TrainingSettings())
    (score, *_) = found.left_out_scores()
    assert (score.trust, score.evidences[0].header.n) == (0, 0)
    assert 0 < score.known <= score.text == presence[[0]].nnz
    assert found.metadata.learned.host_rows == {}


def test_the_ranges_are_those_of_the_features_each_message_left_out():
    learned = learn(many_mails(60, hosts="mixed"), scoring="evidence")
    (both,) = learned.fit.metadata.learned.calibrations
    for i, calibration in enumerate(both):
        x = np.array(
            [calibration_inputs(score.evidences[0])[i] for score in left_out_scores(learned)]
        )
        ends = np.stack([x.min(0), x.max(0)])[:, 1:].T.round(INPUT_DECIMALS)
        np.testing.assert_array_equal(calibration.ranges, ends)
    assert learn(many_mails(60)).fit.metadata.learned.calibrations == (
        prior_calibrations(with_traits=False),
    )


@each("scoring", SCORINGS)
def test_one_message_of_each_class_is_enough(scoring):
    learned = learn([("ham", {"a"}), ("spam", {"b"})], scoring=scoring)
    ham, spam = scores_of(learned)
    assert ham.probability < 0.5 < spam.probability
    learned = learn([("ham", {"a"}), ("ham", {"b"}), ("spam", {"c"})], scoring=scoring)
    scores = left_out_scores(learned)  # without any spam
    assert len(scores) == 3
    assert all(0 <= score.probability <= 1 for score in scores)


def test_messages_without_any_token_can_be_learned():
    learned = learn([("ham", set()), ("ham", set()), ("spam", set())])
    assert [pytest.approx(1 / 3)] * 3 == [score.probability for score in scores_of(learned)]


@each(
    "labels, named, classes, positive",
    [
        (["spam", "zoo"], None, ("zoo", "spam"), "spam"),  # spam is the last of two
        (["spam", "ham", "ham"], None, ("ham", "spam"), "spam"),
        (["good", "bad"], "bad", ("good", "bad"), "bad"),
        (["spam", "ham"], "ham", ("spam", "ham"), "ham"),
        (["c", "a", "b"], None, ("a", "b", "c"), None),
        (["spam", "promo", "ham"], None, ("ham", "promo", "spam"), "spam"),
    ],
)
def test_the_names_of_the_classes_and_of_the_positive_one(labels, named, classes, positive):
    assert class_names(labels, named) == (classes, positive)


@each(
    "labels, positive, part",
    [
        ([], None, "no message"),
        (["spam"], None, "only the class 'spam'"),
        (["a", "b"], None, "name the spam class"),
        (["ham", "spam"], "junk", "no message is labelled 'junk'"),
        (
            [f"text {i}" for i in range(CLASSES_LIMIT + 1)],
            None,
            r"101 different labels.*; name the label column \(--label-column\)$",
        ),
    ],
)
def test_labels_that_make_no_model_are_refused(labels, positive, part):
    with pytest.raises(TrainingError, match=part):
        class_names(labels, positive)


def test_the_last_message_of_a_class_leaves_an_impossible_class_but_with_a_fixed_prior():
    messages = [("ham", {"a"}), ("ham", {"a", "b"}), ("spam", {"b"})]
    *_, last = left_out_scores(learn(messages, alpha=0.5))
    assert last.log_scores[1] == -np.inf
    *_, last = left_out_scores(learn(messages, alpha=0.5, prior=0.3))
    assert np.isfinite(last.log_scores).all()


def test_a_token_in_all_messages_of_a_class_can_be_left_out_of_it():
    """Its count is then above the number of messages that are left, unless it goes down, too."""
    messages = [("ham", {"a", "x"}), ("ham", {"a"}), ("spam", {"a", "b"}), ("spam", {"a"})]
    for i, score in enumerate(left_out_scores(learn(messages))):
        again = learn(messages[:i] + messages[i + 1 :])
        assert score.log_odds == pytest.approx(again.classifier.score(messages[i][1]).log_odds)
