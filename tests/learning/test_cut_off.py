import math
from pathlib import Path

import numpy as np
import pytest
from channel_models import many_mails
from closeness import close
from hypothesis import given
from hypothesis import strategies as st
from one_case import each
from small_models import SCORINGS, learn, many_messages, with_learned, with_settings

from nbspam.bayes.calibration import Calibrations
from nbspam.bayes.event_model import logit, sigmoid
from nbspam.errors import TrainingError
from nbspam.learning.batch import cut_offs_within, ham_odds
from nbspam.reading.source import ReadingOptions, Skips, TableOptions
from nbspam.reading.sources import read_labelled
from nbspam.scoring.classifier import Classifier
from nbspam.scoring.explanation import explain
from nbspam.scoring.verdict import CutOffs, Score, classify_score
from nbspam.store.metadata import HAM_CUTOFF
from nbspam.workers import Executor, tokenize_messages

SAMPLE = Path(__file__).parents[2] / "sample_data" / "sms.tsv"
THREE = ("ham", "promo", "spam")
LOG_ODDS = st.integers(-12, 12).map(float)


def cut_offs_of(ham, spam, limit):
    """Return the cut-offs for ham and spam of these log-odds."""
    messages = [("ham", {"a"})] * len(ham) + [("spam", {"b"})] * len(spam)
    scores = [Score(z, sigmoid(z), (sigmoid(-z), sigmoid(z))) for z in (*ham, *spam)]
    return chosen(limit, learn(messages), scores)


def chosen(limit, learned, scores):
    metadata = learned.fit.metadata
    return cut_offs_within(limit, metadata, ham_odds(metadata, learned.corpus.labels, scores))


def left_out_scores(learned):
    return list(learned.fit.left_out_scores())


@given(
    st.lists(LOG_ODDS, min_size=1, max_size=40),
    st.lists(LOG_ODDS, min_size=1, max_size=5),
    st.floats(0, 0.99),
)
def test_the_cut_off_keeps_the_limit_and_is_the_lowest_that_does(ham, spam, limit):
    """With a limit ham ends at a half, as without one."""
    cut_off, of_ham, _ = cut_offs_of(ham, spam, limit)
    allowed, bound = limit * len(ham), logit(cut_off)
    assert 0.5 <= cut_off <= 1
    assert sum(z > bound + 1e-6 for z in ham) <= allowed + 1e-9
    if cut_off > 0.5:  # a hair lower it would block too many
        assert sum(z > bound - 1e-6 for z in ham) > allowed - 1e-9
    assert of_ham == HAM_CUTOFF <= cut_off


@each("scoring", SCORINGS)
@each("limit", [0.0, 0.05, 0.1, 0.3])
def test_no_more_ham_than_the_limit_is_blocked_left_out(scoring, limit):
    chance = np.random.default_rng(0)
    messages = [
        (label, {f"w{j}" for j in chance.integers(0, 60 if label == "ham" else 40, 8)})
        for label in ["ham", "ham", "spam"] * 40
    ]
    learned = learn(messages, scoring=scoring)
    scores = left_out_scores(learned)
    metadata = chosen(limit, learned, scores).applied_to(learned.fit.metadata)
    called = [classify_score(metadata, score, CutOffs.from_model(metadata)) for score in scores]
    blocked = [
        v == "spam" for v, (label, _) in zip(called, messages, strict=True) if label == "ham"
    ]
    assert sum(blocked) <= limit * len(blocked)


@each(
    "ham, spam, limit, cut_off",
    [
        ([-9.0, -8.0, -7.0], [-5.0, 3.0], 0.0, 0.5),  # never below a half
        ([-9.0, 5.0], [6.0], 0.6, 0.5),
        ([-3.0, 1.0, 2.0], [4.0], 0.0, sigmoid(2)),  # with no ham to lose, the highest ham
        ([-3.0, 1.0, 2.0], [4.0], 0.34, sigmoid(1)),
    ],
)
def test_the_cut_off_by_hand(ham, spam, limit, cut_off):
    assert cut_offs_of(ham, spam, limit)[0] == close(cut_off)


# The largest double below 1 is logit 36.7; ham that is surer of being spam than that still counts.
def test_ham_of_a_probability_of_one_is_no_hindrance():
    assert 0.5 <= cut_offs_of([-3.0, 50.0], [60.0], 0.0)[0] <= 1


def test_a_model_keeps_the_cut_offs_that_it_is_given_and_stays_the_same_otherwise():
    learned = learn()
    metadata = learned.fit.metadata
    found = chosen(0.0, learned, left_out_scores(learned)).applied_to(metadata)
    assert metadata == with_settings(found, spam_cutoff=0.9)
    found = CutOffs(0.75, 0.25).applied_to(metadata)
    assert (found.settings.spam_cutoff, found.settings.ham_cutoff) == (0.75, 0.25)
    assert CutOffs.from_model(found) == CutOffs(0.75, 0.25)
    assert CutOffs().applied_to(found) == metadata


def test_more_than_two_classes_have_no_cut_off():
    learned = learn([(name, {name}) for name in THREE])
    with pytest.raises(TrainingError, match="limit on blocked ham needs two classes") as error:
        chosen(0.1, learned, left_out_scores(learned))
    assert "\n" not in str(error.value)


def test_three_classes_are_told_apart_left_out():
    messages = many_mails(90, 0, THREE, "mixed", longest=12)
    learned = learn(messages, scoring="evidence")
    right = [
        classify_score(learned.fit.metadata, score, CutOffs()) == label
        for score, (label, _) in zip(left_out_scores(learned), messages, strict=True)
    ]
    assert sum(right) > 0.8 * len(right)
    assert {len(score.probabilities) for score in left_out_scores(learned)} == {3}


def test_what_explains_the_surest_of_three_classes_is_finite():
    learned = learn(many_mails(90, 0, THREE, "mixed", longest=12), scoring="evidence")
    metadata = learned.fit.metadata
    sure = [
        Calibrations(
            both.text._replace(coefficients=(0, 40, 0, 0, 0)),
            both.full._replace(coefficients=(0, 40, 0, 0, 0, 40, 0, 0)),
            both.opening,
        )
        for both in metadata.learned.calibrations
    ]
    metadata = with_learned(metadata, calibrations=tuple(sure))
    found = explain(Classifier(metadata, learned.classifier.counts), {"spam0", "spam1"})
    assert math.isfinite(found.total)
    assert found.total == pytest.approx(found.score.log_odds)


@each("scoring", SCORINGS)
@each("prior", [0.001, 0.2, 0.5, 0.99])
def test_a_prior_moves_the_log_odds_by_what_it_differs(scoring, prior):
    messages = many_messages(100)[:30] + [("ham", {"x"})] * 10
    spam = sum(label == "spam" for label, _ in messages)
    plain, fixed, other = (learn(messages, scoring=scoring, prior=p) for p in (None, prior, 0.8))
    assert plain.fit.metadata.learned.calibrations == fixed.fit.metadata.learned.calibrations
    half = 0.5 if scoring == "evidence" else 0
    learned = math.log((spam + half) / (len(messages) - spam + half))
    for _, tokens in messages[::4]:
        odds, of_fixed, of_other = (
            one.classifier.score(tokens).log_odds for one in (plain, fixed, other)
        )
        assert of_fixed - odds == close(logit(prior) - learned)
        assert of_other - of_fixed == close(logit(0.8) - logit(prior))


@pytest.fixture(scope="module")
def sample():
    skips = Skips(False)
    read = read_labelled(str(SAMPLE), ReadingOptions(TableOptions()), skips)
    return [(one.label, one.tokens) for one in tokenize_messages(read, skips, Executor())]


def share(of, verdicts):
    return verdicts.count(of) / len(verdicts)


@pytest.mark.long
@pytest.mark.parametrize(("each", "right"), [(5, 0.6), (20, 0.75), (10, 0.6), (50, 0.75)])
def test_a_filter_of_a_few_messages_is_of_use_and_blocks_one_ham_in_fifty(sample, each, right):
    """Balanced accuracy at the prior on the rest, over several draws: 0.5 is chance."""
    hits, blocked = [], []
    for draw in range(4):
        first, rest = [], []
        seen = {"ham": 0, "spam": 0}
        for i, (label, tokens) in enumerate(sample):
            mine = i >= 12 * draw and seen[label] < each
            seen[label] += mine
            (first if mine else rest).append((label, tokens))
        learned = learn(first, scoring="evidence")
        scored = [(label, learned.classifier.score(tokens)) for label, tokens in rest[::3]]
        for name in ("ham", "spam"):
            own = [score.probability > 0.5 for label, score in scored if label == name]
            hits.append(share(name == "spam", own))
        of_ham = [score for label, score in scored if label == "ham"]
        metadata = learned.fit.metadata
        blocked.append(share("spam", [classify_score(metadata, s, CutOffs()) for s in of_ham]))
    assert sum(hits) / len(hits) > right, hits
    assert sum(blocked) / len(blocked) <= 0.02, blocked
