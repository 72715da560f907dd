import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_models import (
    SCORINGS,
    labelled_tokens,
    learn,
    many_messages,
    with_learned,
    with_settings,
)

from nbspam.bayes.calibration import Calibrations
from nbspam.bayes.posterior import logit, sigmoid
from nbspam.errors import TrainingError
from nbspam.learning.batch import cut_offs_within, with_cut_offs
from nbspam.reading.skips import Skips
from nbspam.reading.sources import ReadingOptions, labelled
from nbspam.reading.tables import TableOptions
from nbspam.scoring.classifier import Classifier
from nbspam.scoring.explanation import explain
from nbspam.scoring.score import Score
from nbspam.scoring.verdict import CutOffs, verdict_of
from nbspam.store.metadata import HAM_CUTOFF
from nbspam.workers import Serial, tokenized

SAMPLE = Path(__file__).parents[2] / "sample_data" / "sms.tsv"
LIMITS = st.floats(0, 0.99)


def close(expected):
    return pytest.approx(expected, rel=1e-9, abs=1e-9)


def limited(ham, spam, limit):
    """Return the fit with the cut-off for ham and spam of these log-odds."""
    messages = [("ham", {"a"})] * len(ham) + [("spam", {"b"})] * len(spam)
    scores = [Score(z, sigmoid(z), (sigmoid(-z), sigmoid(z))) for z in (*ham, *spam)]
    fitted = learn(messages).fit
    return with_cut_offs(fitted, cut_offs_within(limit, fitted, scores))


def cut_off_of(ham, spam, limit):
    """Return the cut-off for ham and spam of these log-odds."""
    return limited(ham, spam, limit).metadata.settings.spam_cutoff


# cut_offs_within


@given(
    st.lists(st.integers(-12, 12).map(float), min_size=1, max_size=40),
    st.lists(st.integers(-12, 12).map(float), min_size=1, max_size=5),
    LIMITS,
)
def test_the_cut_off_keeps_the_limit_and_is_the_lowest_that_does(ham, spam, limit):
    cut_off = cut_off_of(ham, spam, limit)
    allowed = limit * len(ham)
    bound = logit(cut_off)
    assert 0.5 <= cut_off <= 1
    assert sum(z > bound + 1e-6 for z in ham) <= allowed + 1e-9
    if cut_off > 0.5:  # a hair lower it would block too many
        assert sum(z > bound - 1e-6 for z in ham) > allowed - 1e-9


@pytest.mark.parametrize("scoring", SCORINGS)
@pytest.mark.parametrize("limit", [0.0, 0.05, 0.1, 0.3])
def test_no_more_ham_than_the_limit_is_blocked_left_out(scoring, limit):
    chance = np.random.default_rng(0)
    messages = [
        (label, {f"w{j}" for j in chance.integers(0, 60 if label == "ham" else 40, 8)})
        for label in ["ham", "ham", "spam"] * 40
    ]
    learned = learn(messages, scoring=scoring)
    presence = learned.corpus.presence()
    scores = list(learned.fit.left_out_scores(presence))
    cut_offs = cut_offs_within(limit, learned.fit, scores)
    metadata = with_cut_offs(learned.fit, cut_offs).metadata
    called = [verdict_of(metadata, score, CutOffs.of_model(metadata)) for score in scores]
    blocked = [
        v == "spam" for v, (label, _) in zip(called, messages, strict=True) if label == "ham"
    ]
    assert sum(blocked) <= limit * len(blocked)


def test_the_cut_off_is_never_below_a_half():
    assert cut_off_of([-9.0, -8.0, -7.0], [-5.0, 3.0], 0.0) == 0.5
    assert cut_off_of([-9.0, 5.0], [6.0], 0.6) == 0.5


def test_with_no_ham_to_lose_the_cut_off_is_the_highest_ham():
    assert cut_off_of([-3.0, 1.0, 2.0], [4.0], 0.0) == close(sigmoid(2))
    assert cut_off_of([-3.0, 1.0, 2.0], [4.0], 0.34) == close(sigmoid(1))


def test_the_rest_of_the_model_stays_as_it_is():
    learned = learn()
    scores = list(learned.fit.left_out_scores(learned.corpus.presence()))
    found = with_cut_offs(learned.fit, cut_offs_within(0.0, learned.fit, scores))
    assert learned.fit.metadata == with_settings(found.metadata, spam_cutoff=0.9)
    assert (found.counts is learned.fit.counts, found.rule is learned.fit.rule) == (True, True)


@given(
    st.lists(st.integers(-12, 12).map(float), min_size=1, max_size=40),
    st.lists(st.integers(-12, 12).map(float), min_size=1, max_size=5),
    LIMITS,
)
def test_with_a_limit_ham_ends_at_a_half_as_without_one(ham, spam, limit):
    metadata = limited(ham, spam, limit).metadata
    assert metadata.settings.ham_cutoff == HAM_CUTOFF <= metadata.settings.spam_cutoff


def test_a_fit_keeps_the_cut_offs_that_it_is_given():
    fitted = learn().fit
    found = with_cut_offs(fitted, CutOffs(0.75, 0.25))
    settings_ = found.metadata.settings
    assert (settings_.spam_cutoff, settings_.ham_cutoff) == (0.75, 0.25)
    assert with_cut_offs(found, CutOffs()).metadata == fitted.metadata
    assert CutOffs.of_model(found.metadata) == (0.75, 0.25)
    with_cut_offs(learn([(name, {name}) for name in ("a", "b", "c")]).fit, CutOffs(0.75, 0.25))


def test_more_than_two_classes_have_no_cut_off():
    learned = learn([(name, {name}) for name in ("ham", "promo", "spam")])
    scores = list(learned.fit.scores(learned.corpus.presence()))
    with pytest.raises(TrainingError, match="limit on blocked ham needs two classes") as error:
        cut_offs_within(0.1, learned.fit, scores)
    assert "\n" not in str(error.value)


# The largest double below 1 is logit 36.7; ham that is surer of being spam than that still counts.
def test_ham_of_a_probability_of_one_is_no_hindrance():
    cut_off = cut_off_of([-3.0, 50.0], [60.0], 0.0)
    assert 0.5 <= cut_off <= 1


# Three classes by evidence


def three(seed=0):
    chance = np.random.default_rng(seed)
    messages = []
    for i in range(90):
        name = ("ham", "promo", "spam")[i % 3]
        tokens = {f"w{j}" for j in chance.integers(0, 30, 6)}
        tokens |= {f"{name}{j}" for j in chance.integers(0, 4, 2)}
        if chance.random() < 0.3:
            tokens |= {f"received:{name}", f"by:{name}"}
        messages.append((name, tokens))
    return messages


@given(labelled_tokens(classes=("ham", "promo", "spam")))
def test_probabilities_of_three_classes_add_up_to_one(messages):
    learned = learn(messages, scoring="evidence")
    for score in list(learned.fit.scores(learned.corpus.presence())):
        assert close(1) == sum(score.probabilities)
        assert all(0 <= p <= 1 for p in score.probabilities)


def test_three_classes_are_told_apart_left_out():
    messages = three()
    learned = learn(messages, scoring="evidence")
    scores = list(learned.fit.left_out_scores(learned.corpus.presence()))
    right = [
        verdict_of(learned.fit.metadata, score, CutOffs()) == label
        for score, (label, _) in zip(scores, messages, strict=True)
    ]
    assert sum(right) > 0.8 * len(right)


@pytest.mark.parametrize("prior", [None, 0.05, 0.9])
def test_what_explains_three_classes_adds_up_to_the_log_odds(prior):
    learned = learn(three(), scoring="evidence", prior=prior)
    for _, tokens in three(1):
        found = explain(learned.classifier, tokens)
        k = learned.fit.metadata.settings.classes.index(found.of)
        p = found.score.probabilities[k]
        assert found.total == pytest.approx(math.log(p) - math.log1p(-p), rel=1e-6, abs=1e-6)
        if found.of == "spam":
            assert found.total == pytest.approx(found.score.log_odds, rel=1e-6, abs=1e-6)


def test_what_explains_the_surest_of_three_classes_is_finite():
    learned = learn(three(), scoring="evidence")
    metadata = learned.fit.metadata
    sure = [
        Calibrations(
            both.text._replace(coefficients=(0, 40, 0, 0, 0)),
            both.full._replace(coefficients=(0, 40, 0, 0, 0, 40, 0, 0)),
        )
        for both in metadata.learned.calibrations
    ]
    metadata = with_learned(metadata, calibrations=tuple(sure))
    classifier = Classifier(metadata, learned.classifier.counts)
    found = explain(classifier, {"spam0", "spam1"})
    assert math.isfinite(found.total)
    assert found.total == pytest.approx(found.score.log_odds)


# The prior


def log_odds(learned, tokens):
    return learned.classifier.score(tokens).log_odds


@pytest.mark.parametrize("prior", [0.001, 0.2, 0.5, 0.99])
def test_under_the_sum_rule_a_prior_moves_the_log_odds_by_what_it_differs(prior):
    messages = many_messages(100)[:30] + [("ham", {"x"})] * 10
    spam = sum(label == "spam" for label, _ in messages)
    plain, fixed = learn(messages), learn(messages, prior=prior)
    expected = logit(prior) - logit(spam / len(messages))
    for _, tokens in messages:
        assert log_odds(fixed, tokens) - log_odds(plain, tokens) == close(expected)


@pytest.mark.parametrize("prior", [0.001, 0.2, 0.5, 0.99])
def test_under_evidence_a_prior_moves_the_log_odds_by_what_it_differs(prior):
    messages = many_messages(100)[:30] + [("ham", {"x"})] * 10
    spam = sum(label == "spam" for label, _ in messages)
    plain, fixed = (learn(messages, scoring="evidence", prior=p) for p in (None, prior))
    assert plain.fit.metadata.learned.calibrations == fixed.fit.metadata.learned.calibrations
    expected = logit(prior) - math.log((spam + 0.5) / (len(messages) - spam + 0.5))
    for _, tokens in messages:
        assert log_odds(fixed, tokens) - log_odds(plain, tokens) == close(expected)


def test_two_priors_differ_by_the_difference_of_their_log_odds():
    for scoring in SCORINGS:
        low, high = (learn(scoring=scoring, prior=p) for p in (0.1, 0.8))
        expected = logit(0.8) - logit(0.1)
        assert log_odds(high, {"free"}) - log_odds(low, {"free"}) == close(expected)


# Few messages


@pytest.fixture(scope="module")
def sample_sms():
    reading = ReadingOptions(TableOptions())
    skips = Skips(False)
    return [
        (message.label, message.tokens)
        for message in tokenized(labelled(str(SAMPLE), reading, skips), skips, Serial())
    ]


@pytest.fixture(scope="module")
def few_messages(sample_sms):
    """Return what each number of messages of each class says of the rest, in several draws."""
    found = {}
    for each in (5, 10, 20, 50):
        found[each] = []
        for draw in range(6):
            first, rest = [], []
            seen = {"ham": 0, "spam": 0}
            for i, (label, tokens) in enumerate(sample_sms):
                mine = i >= 12 * draw and seen[label] < each
                seen[label] += mine
                (first if mine else rest).append((label, tokens))
            learned = learn(first, scoring="evidence")
            scores = map(learned.classifier.score, [tokens for _, tokens in rest])
            labels = [label for label, _ in rest]
            found[each].append((learned.fit.metadata, list(zip(labels, scores, strict=True))))
    return found


@pytest.mark.parametrize(("each", "right"), [(5, 0.6), (20, 0.75)])
def test_a_filter_of_a_few_messages_is_of_use(few_messages, each, right):
    """Balanced accuracy at the prior on the rest, over several draws: 0.5 is chance."""
    shares = []
    for _, scored in few_messages[each]:
        of_class = []
        for name in ("ham", "spam"):
            hits = [
                (score.probability > 0.5) == (name == "spam")
                for label, score in scored
                if label == name
            ]
            of_class.append(sum(hits) / len(hits))
        shares.append(sum(of_class) / 2)
    assert sum(shares) / len(shares) > right, shares


@pytest.mark.parametrize("each", [5, 10, 20, 50])
def test_a_filter_of_a_few_messages_blocks_no_more_than_one_ham_in_fifty(few_messages, each):
    shares = []
    for metadata, scored in few_messages[each]:
        blocked = [
            verdict_of(metadata, score, CutOffs()) == "spam"
            for label, score in scored
            if label == "ham"
        ]
        shares.append(sum(blocked) / len(blocked))
    assert sum(shares) / len(shares) <= 0.02, shares
