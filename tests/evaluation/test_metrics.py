import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from closeness import close
from hypothesis import given
from hypothesis import strategies as st
from one_case import each
from scipy.stats import binomtest
from sklearn import metrics as sklearns

from nbspam.evaluation import metrics
from nbspam.evaluation.metrics import (
    ERRORS,
    LOG_LOSS_FLOOR,
    METRICS,
    SCORES,
    VERDICTS,
    CalibrationBin,
    VerdictCounts,
    one_minus_roca,
    sm_pct_at_hm_0_1,
    wilson,
)


def booleans(*values):
    return np.array(values, dtype=bool)


def floats(*values):
    return np.array(values, dtype=float)


@st.composite
def evaluations(draw):
    """Draw what each message is and its log-odds, with ties; both classes are there."""
    spam = [*draw(st.lists(st.booleans(), max_size=30)), True, False]
    scores = draw(st.lists(st.integers(-4, 4), min_size=len(spam), max_size=len(spam)))
    return np.array(spam), np.array(scores) / 2


def scored_messages(spam, log_odds, probability=None, verdicts=None):
    probability = 1 / (1 + np.exp(-log_odds)) if probability is None else probability
    return metrics.ScoredMessages.binary(spam, log_odds, probability, verdicts)


def computed(spam, log_odds):
    return metrics.figures(scored_messages(spam, log_odds))


def intervals_of(found):
    return {k.removesuffix("_ci"): v for k, v in found.as_json().items() if k.endswith("_ci")}


def ranked(spam, log_odds):
    return scored_messages(booleans(*spam), floats(*log_odds))


def counts(tp, fp, fn, tn):
    return VerdictCounts(tp + fp + fn + tn, tp + tn, tp, fp, fn, tn)


def from_cells(*cells):
    return metrics.ScoredMessages.from_counts(counts(*cells), counts(*cells))


# Against scikit-learn


@given(evaluations())
def test_roca_and_the_figures_are_scikit_learns(evaluation):
    spam, log_odds = evaluation
    called, probability = log_odds > 0, 1 / (1 + np.exp(-log_odds))
    values = computed(spam, log_odds).values
    area = sklearns.roc_auc_score(spam, log_odds)
    assert close(100 * (1 - area)) == values["one_minus_roca_pct"]
    assert close(area) == values["auc"]
    for places in metrics.placements(ranked(spam, log_odds)):
        assert places.mean() == close(area)
    assert close(sklearns.matthews_corrcoef(spam, called)) == values["mcc"]
    expected = sklearns.log_loss(spam, probability, labels=[False, True])
    assert close(expected) == values["log_loss"]
    assert close(sklearns.brier_score_loss(spam, probability, pos_label=True)) == values["brier"]
    precision, recall, f1, _ = sklearns.precision_recall_fscore_support(
        spam, called, average="binary", zero_division=0
    )
    assert [close(recall), close(f1)] == [values["recall"], values["f1"]]
    assert values["precision"] == (close(precision) if called.any() else None)


# By hand


def test_lam_is_the_logistic_average_and_counts_half_an_error_at_its_ends():
    hm, sm = 0.5 / 11, 5.5 / 11
    expected = 1 / (1 + math.exp(-(math.log(hm / (1 - hm)) + math.log(sm / (1 - sm))) / 2))
    for (fp, ham, fn, spam), percent in {
        # logit 0.1 + logit 0.5 = log(1/9): half of it is -log 3, and logit^-1(-log 3) = 1/4
        (10, 100, 50, 100): 25,
        (20, 100, 20, 100): 20,
        (0, 100, 0, 100): 100 * 0.5 / 101,
        (100, 100, 100, 100): 100 * 100.5 / 101,
        (0, 10, 5, 10): 100 * expected,
    }.items():
        assert metrics.lam_pct(from_cells(spam - fn, fp, fn, ham - fp)).value == close(percent)


@each(
    "of, expected",
    [
        ((5, 5, 0, 0), 0), ((0, 0, 5, 5), 0), ((5, 0, 0, 5), 1), ((0, 5, 5, 0), -1),
        ((10**9, 1, 1, 10**9), 1 - 2e-9),
    ],
)  # fmt: skip
def test_matthews_of_an_empty_margin_is_nothing_and_of_many_messages_does_not_overflow(
    of, expected
):
    assert metrics.mcc(from_cells(*of)).value == close(expected)


@each(
    "spam, log_odds, expected",
    [
        ((0, 0, 1, 1), (1, 2, 3, 4), 0), ((1, 1, 0, 0), (1, 2, 3, 4), 100),
        ((0, 1, 0, 1), (1, 2, 3, 4), 25), ((0, 1), (7, 7), 50), ((0, 0, 1, 1), (1, 2, 2, 3), 12.5),
        ((0, 1), (-math.inf, math.inf), 0), ((0, 1, 1), (math.inf, math.inf, 0), 75),
    ],
)  # fmt: skip
def test_roca_counts_pairs_ranked_wrongly_and_ties_half(spam, log_odds, expected):
    assert close(expected) == one_minus_roca(ranked(spam, log_odds))


@each(
    "spam, log_odds",
    [
        ((0, 0, 0, 1, 1, 1, 1), (1, 2, 3, 0, 2, 4, 5)),  # few ham may lose none
        ((0, 0, 1, 1), (1, 3, 3, 4)),  # a tie with the last ham counts as missed
        # A thousand may lose that at 999; the cut-off is 998, which no other ham exceeds.
        ([0] * 1000 + [1] * 4, [*range(1000), 998.5, 998, 2000, 997]),
        ([0] * 999 + [1] * 2, [0] * 998 + [10, 5, 11]),  # 999 may lose none
    ],
)
def test_sm_at_hm_misses_half_the_spam(spam, log_odds):
    assert sm_pct_at_hm_0_1(ranked(spam, log_odds)).value == 50


def test_few_messages_infinite_log_odds_and_sure_mistakes_have_finite_figures():
    sure = metrics.figures(scored_messages(booleans(1, 0), floats(-9, -9), floats(0, 0))).values
    assert sure["log_loss"] == pytest.approx(-math.log(LOG_LOSS_FLOOR) / 2)
    assert sure["brier"] == 0.5
    few = computed(booleans(0, 1), floats(-1, 1)).values
    assert (few["mcc"], few["one_minus_roca_pct"]) == (1, 0)
    found = computed(booleans(0, 1, 0, 1), floats(-math.inf, math.inf, math.inf, 0)).values
    assert found["one_minus_roca_pct"] == close(100 * 1.5 / 4)


@each("page", ["json.md", "evaluate.md", "research/which-naive-bayes.md"])
def test_the_floor_of_the_log_loss_is_documented(page):
    text = (Path(__file__).parents[2] / "docs" / page).read_text(encoding="utf-8")
    assert f"below {LOG_LOSS_FLOOR:g} counts as {LOG_LOSS_FLOOR:g}" in text


# Without spam, without ham, without anything

UNDEFINED_WITHOUT_BOTH = {*"mcc f1 auc lam_pct one_minus_roca_pct sm_pct_at_hm_0_1".split()}


@each(
    "spam, undefined, values",
    [
        (0, "recall sc_pct sm_pct verdict_sm_pct", {"bh_pct": 100 / 3, "precision": 0}),
        (1, "bh_pct hm_pct verdict_bh_pct", {"sc_pct": 200 / 3, "recall": 2 / 3, "precision": 1}),
    ],
)
def test_figures_of_one_class_alone(spam, undefined, values):
    found = computed(booleans(*[spam] * 3), (2 * spam - 1) * floats(1, 2, -1))
    undefined = UNDEFINED_WITHOUT_BOTH.union(undefined.split())
    assert undefined == {name for name, value in found.values.items() if value is None}
    ends = intervals_of(found)
    assert undefined & ends.keys() == {name for name in ends if ends[name] is None}
    assert {key: found.values[key] for key in values} == close(values)


def test_figures_of_nothing():
    found = computed(booleans(), floats()).values
    assert found["messages"] == 0
    assert found["accuracy"] is found["log_loss"] is None


# Intervals


def random_evaluation():
    random = np.random.default_rng(11)
    spam = random.random(300) < 0.4
    log_odds = np.round(random.normal(np.where(spam, 2.0, -2.0), 2.0), 1)
    return spam, log_odds


def test_each_interval_holds_its_figure_and_of_a_perfect_ranking_is_perfect():
    found = computed(*random_evaluation())
    shares = "errors accuracy precision recall sc_pct bh_pct sm_pct hm_pct unsure_pct".split()
    areas = "auc one_minus_roca_pct verdict_bh_pct verdict_sm_pct".split()
    assert intervals_of(found).keys() == {*shares, *areas}
    for name, (low, high) in intervals_of(found).items():
        assert low <= found.values[name] <= high
        assert low < high
    low, high = wilson(found.values["tp"], found.values["spam"])
    assert close((100 * low, 100 * high)) == intervals_of(found)["sc_pct"]
    assert close((100 - 100 * high, 100 - 100 * low)) == intervals_of(found)["sm_pct"]
    perfect = intervals_of(computed(booleans(*[0] * 20, *[1] * 20), np.linspace(-1, 1, 40)))
    assert (perfect["auc"], perfect["one_minus_roca_pct"]) == ((1, 1), (0, 0))
    assert computed(booleans(0, 0, 1), floats(1, 3, 2)).by_key["auc"].interval is None


def test_the_interval_of_an_area_is_delongs_on_logits_and_near_a_bootstraps():
    spam, log_odds = random_evaluation()
    classes = log_odds[spam], log_odds[~spam]
    wins = (classes[0][:, None] > classes[1]) + 0.5 * (classes[0][:, None] == classes[1])
    area, variance = wins.mean(), 0
    for axis in (0, 1):
        places = wins.mean(axis=axis)
        variance += places.var(ddof=1) / len(places)
    logit, error = math.log(area / (1 - area)), variance**0.5 / area / (1 - area)
    expected = [1 / (1 + math.exp(-logit - z * error)) for z in (-1.959964, 1.959964)]
    found = computed(spam, log_odds).by_key["auc"].interval
    assert found == pytest.approx(expected, rel=1e-6)
    chance, drawn = np.random.default_rng(0), []
    for _ in range(300):
        rows = (chance.integers(len(scores), size=len(scores)) for scores in classes)
        resampled = wins[np.ix_(*rows)]
        drawn.append(resampled.mean())
    assert found == pytest.approx(np.percentile(drawn, (2.5, 97.5)), abs=0.006)


# The table


def test_the_figures_are_those_of_the_table_in_its_order_with_unique_names():
    names = [metric.name for metric in METRICS if metric.part]
    assert len(set(names)) == len(names)
    found = computed(*random_evaluation())
    assert list(found.values) == [metric.key for metric in METRICS]
    assert len(found.values) == len(METRICS)
    assert [row.name for row in found.rows(VERDICTS, ERRORS, SCORES)] == names
    brief = [metric.name for metric in METRICS if metric.is_brief and metric.part != SCORES]
    assert [row.name for row in found.rows(VERDICTS, ERRORS, brief=True)] == brief
    without_ham = computed(booleans(1, 1, 1), floats(1, 2, -1)).rows(ERRORS, SCORES)
    expected = "errors accuracy precision recall log-loss Brier SC% calibration".split()
    assert [row.name for row in without_ham] == expected


def test_a_share_has_its_counts():
    spam, log_odds = random_evaluation()
    shown = {row.name: row.line for row in computed(spam, log_odds).rows(ERRORS)}
    called = log_odds > 0
    assert shown["precision"] == f"{(called & spam).sum()} of {called.sum()} called spam are spam"
    assert shown["BH%"] == f"{(called & ~spam).sum()} of {(~spam).sum()} ham called spam"
    rates = metrics.left_out_rates(counts(3, 1, 1, 4), counts(3, 1, 1, 4))
    assert next(rates.rows(ERRORS)).sentence() == "correct 77.78 % (45.26 to 93.68)"


# From verdicts alone


def test_left_out_rates_are_the_figures_of_the_same_messages():
    spam, log_odds = random_evaluation()
    labels = np.where(spam, "spam", "ham")
    called = np.where(log_odds > 0, "spam", "ham")
    verdicts = np.where(log_odds > 2, "spam", np.where(log_odds > 0, "unsure", "ham"))
    at_threshold, at_cut_offs = (
        metrics.count_verdicts(Counter(zip(labels, answers, strict=True)), "spam")
        for answers in (called, verdicts)
    )
    rates = metrics.left_out_rates(at_threshold, at_cut_offs)
    whole = metrics.figures(scored_messages(spam, log_odds, verdicts=at_cut_offs)).by_key
    keys = ("accuracy", "sc_pct", "bh_pct", "verdict_bh_pct", "verdict_sm_pct", "unsure_pct")
    assert rates.by_key == {key: whole[key] for key in keys}
    assert list(rates.as_json()) == [name for key in keys for name in (key, f"{key}_ci")]
    meanings = "correct", "spam caught", "ham blocked"
    for row, meaning in zip(rates.rows(ERRORS), meanings, strict=True):
        assert row.sentence() == f"{meaning} {row.percentage()}"
    unsure = (log_odds > 0) & (log_odds <= 2)
    by_hand = [np.mean(log_odds[~spam] > 2), np.mean(log_odds[spam] <= 2), np.mean(unsure)]
    assert [close(100 * share) for share in by_hand] == [row.value for row in rates.rows(VERDICTS)]


@each(
    "pairs, found",
    [
        ("aa ab ba ss bs sa", VerdictCounts(6, right=2, tp=1, fp=1, fn=1, tn=3)),
        ("hu su ss", VerdictCounts(3, right=1, tp=1, fp=0, fn=1, tn=1, unsure=2)),
    ],
)
def test_verdicts_are_counted_against_the_rest_and_unsure_calls_nothing_spam(pairs, found):
    name = {"s": "spam", "u": "unsure", "h": "ham", "a": "a", "b": "b"}
    called = Counter((name[label], name[verdict]) for label, verdict in pairs.split())
    assert metrics.count_verdicts(called, "spam") == found


def test_without_a_class_called_spam_accuracy_and_unsure_alone_are_defined():
    at_cut_offs = metrics.count_verdicts({("a", "a"): 1, ("b", "c"): 1}, None)
    values = metrics.left_out_rates(at_cut_offs, at_cut_offs).values
    defined = {key: value for key, value in values.items() if value is not None}
    assert defined == {"accuracy": 0.5, "unsure_pct": 0}
    none = metrics.count_verdicts({}, "spam")
    assert set(metrics.left_out_rates(none, none).values.values()) == {None}


# Calibration


def test_bins_have_the_predicted_and_the_observed_share_and_their_edges_belong_to_the_bin_above():
    probability = floats(0.02, 0.08, 0.55, 0.95, 1)
    assert metrics.calibration_bins(booleans(0, 1, 0, 1, 1), probability) == [
        CalibrationBin(0, 0.1, 2, close(0.05), 0.5),
        CalibrationBin(0.5, 0.6, 1, close(0.55), 0),
        CalibrationBin(0.9, 1, 2, close(0.975), 1),
    ]
    bins = metrics.calibration_bins(booleans(0, 0, 0), floats(0, 0.5, 1))
    assert [(b.low, b.messages) for b in bins] == [(0, 1), (0.5, 1), (0.9, 1)]


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 1)), min_size=1, max_size=30))
def test_bins_hold_each_message_once_and_the_labels_of_all(messages):
    spam, probability = (np.array(column) for column in zip(*messages, strict=True))
    bins = metrics.calibration_bins(spam, probability)
    assert len(spam) == sum(b.messages for b in bins)
    assert close(spam.sum()) == sum(b.messages * b.spam_share for b in bins)
    assert close(probability.sum()) == sum(b.messages * b.mean_probability for b in bins)
    assert all(b.low - 1e-9 <= b.mean_probability <= b.high + 1e-9 for b in bins)
    assert 0 <= metrics.calibration_error(bins) <= 1


def test_the_calibration_error_is_the_mean_gap_small_for_true_probabilities():
    bins = [CalibrationBin(0, 0.1, 30, 0.05, 0.15), CalibrationBin(0.9, 1, 10, 0.95, 0.75)]
    assert metrics.calibration_error(bins) == close((30 * 0.1 + 10 * 0.2) / 40)
    assert metrics.calibration_error([]) == 0
    chance = np.random.default_rng(0)
    probability = chance.random(20_000)
    spam = chance.random(20_000) < probability
    right, wrong = (metrics.calibration_bins(of, probability) for of in (spam, ~spam))
    assert metrics.calibration_error(right) < 0.015
    assert metrics.calibration_error(wrong) > 0.3


# The score distribution


@given(st.lists(st.tuples(st.booleans(), st.floats(-1e9, 1e9) | st.integers(-20, 20)), min_size=1))
def test_the_histogram_counts_everything_its_ends_what_is_beyond(messages):
    spam = booleans(*(s for s, _ in messages), 1, 0)
    log_odds = floats(*(z for _, z in messages), 1e9, -1e9)
    found = list(metrics.score_distribution(scored_messages(spam, log_odds, log_odds)))
    assert [row[1] for row in found[:-1]] == [row[0] for row in found[1:]]
    lows, highs, *_ = zip(*found, strict=True)
    ends = zip((-math.inf, *lows[1:]), (*highs[:-1], math.inf), found, strict=True)
    for low, high, (*_, ham, spams) in ends:
        inside = (log_odds >= low) & (log_odds < high)
        assert (ham, spams) == ((inside & ~spam).sum(), (inside & spam).sum())


# Intervals


@each("of", [1, 2, 7, 100, 4_000])
def test_wilson_is_scipys(of):
    for hits in sorted({0, 1, of // 3, of // 2, of - 1, of}):
        expected = binomtest(hits, of).proportion_ci(confidence_level=0.95, method="wilson")
        assert close((expected.low, expected.high)) == wilson(hits, of)
    assert wilson(0, of)[0] == 0
    assert wilson(of, of)[1] == 1
    assert wilson(0, 0) is None
