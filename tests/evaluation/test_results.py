import json
import math

import pytest
from outcomes import CUT_OFFS, THREE, TWO, outcome

from nbspam.evaluation import results
from nbspam.evaluation.results import Evaluation, compute, prediction
from nbspam.scoring.verdict import CutOffs


def test_figures_are_those_of_the_outcomes_which_are_kept():
    values = compute(TWO, CUT_OFFS).figures.values
    assert [values[n] for n in ("tp", "fp", "fn", "tn")] == [2, 1, 0, 1]
    assert values["threshold"] == 0.5
    assert values["brier"] == pytest.approx((0.01 + 0.64 + 0.01 + 0.16) / 4)
    assert values["one_minus_roca_pct"] == pytest.approx(25)
    found = compute(TWO, CutOffs())
    assert found.evaluation is TWO
    messages = found.messages
    assert messages.spam.tolist() == [False, False, True, True]
    assert messages.probability.tolist() == [0.1, 0.8, 0.9, 0.6]
    assert messages.log_odds.tolist() == [o.judged.score.log_odds for o in TWO.outcomes]


def test_errors_are_counted_at_a_half_whatever_the_verdicts_are():
    cautious = Evaluation(
        "a test", ("ham", "spam"), "spam", [o._replace(judged=unsure(o)) for o in TWO.outcomes]
    )
    found, other = compute(TWO, CUT_OFFS), compute(cautious, CutOffs(1, 0))
    for key in ("accuracy", "mcc", "sc_pct", "bh_pct", "sm_pct", "hm_pct", "lam_pct", "threshold"):
        assert found.figures.by_key[key] == other.figures.by_key[key]
    assert found.confusion == other.confusion
    assert [o.is_mistake for o in cautious.outcomes] == [False, True, False, False]


def unsure(outcome):
    return outcome.judged._replace(verdict="unsure")


def test_what_the_verdicts_do_is_counted_beside():
    found = compute(TWO, CUT_OFFS)
    values = found.figures.values
    assert values["verdict_bh_pct"] == 50
    assert values["verdict_sm_pct"] == 50  # the unsure one is not kept from the inbox
    assert values["unsure_pct"] == 25
    assert found.cut_offs == CUT_OFFS
    assert found.confusion.counts == [[1, 1], [0, 2]]
    assert found.verdicts.verdicts == ("ham", "spam", "unsure")
    assert found.verdicts.counts == [[1, 1, 0], [0, 1, 1]]


def test_no_cut_off_decides_three_classes_and_figures_are_over_all_of_them():
    found = compute(THREE, CutOffs())
    assert found.cut_offs is None
    assert found.verdicts == found.confusion
    assert found.figures.values["unsure_pct"] == 0
    assert found.figures.values["verdict_bh_pct"] is None
    values = compute(THREE, CutOffs()).figures.values
    assert values["accuracy"] == 0.5
    assert values["log_loss"] == pytest.approx(-(math.log(0.5) + math.log(0.2)) / 2)
    values = compute(THREE, CutOffs()).figures.values
    assert values["messages"] == 2
    assert values["sc_pct"] is None
    assert values["tp"] is None


def test_even_odds_are_called_ham_and_the_unsure_of_three_classes_are_wrong():
    even, more = outcome("spam", "unsure", 0.5, 0.5), TWO.outcomes[0]
    assert even.called == "ham"
    judged = more.judged._replace(log_odds=1e-300, probability=0.5)
    assert more._replace(judged=judged).called == "spam"
    two = compute(TWO, CUT_OFFS).figures.values
    assert two["accuracy"] == 0.75  # the spam that is unsure has a probability of 0.6
    classes = ("a", "b", "spam")
    unsure = outcome("a", "unsure", 0.3, 0.3, 0.4, classes=classes)
    three = Evaluation("a test", classes, "spam", [unsure])
    assert compute(three, CutOffs()).figures.values["accuracy"] == 0


def test_three_classes_with_spam_have_its_figures_against_the_rest():
    classes = ("ham", "promo", "spam")
    evaluation = Evaluation(
        "a test",
        classes,
        "spam",
        [
            outcome("ham", "promo", 0.3, 0.6, 0.1, classes=classes),
            outcome("spam", "spam", 0.1, 0.1, 0.8, classes=classes),
            outcome("promo", "spam", 0.1, 0.3, 0.6, classes=classes),
        ],
    )
    values = compute(evaluation, CutOffs()).figures.values
    assert [values[n] for n in ("tp", "fp", "fn", "tn")] == [1, 1, 0, 1]
    assert values["accuracy"] == pytest.approx(1 / 3)
    assert values["log_loss"] == pytest.approx(-math.log(0.3 * 0.8 * 0.3) / 3)  # over all classes
    assert values["brier"] == pytest.approx((0.1**2 + 0.2**2 + 0.6**2) / 3)  # of P(spam)
    assert values["threshold"] is None


# JSON


def as_json(evaluation, errors=0):
    return json.loads(results.as_json(compute(evaluation, CUT_OFFS, skipped=3), errors))


def test_json_has_the_promised_fields_and_the_worst_mistakes_when_asked():
    found = as_json(TWO)
    promised = (
        "messages spam ham threshold accuracy mcc sc_pct bh_pct sm_pct hm_pct lam_pct"
        " one_minus_roca_pct sm_pct_at_hm_0_1 log_loss brier tp fp fn tn"
        " verdict_bh_pct verdict_sm_pct unsure_pct spam_cutoff ham_cutoff"
    )
    assert set(promised.split()) <= found.keys()
    assert (found["skipped"], found["unsure"], found["positive"]) == (3, 1, "spam")
    assert found["confusion"] == {"ham": {"ham": 1, "spam": 1}, "spam": {"ham": 0, "spam": 2}}
    assert found["verdicts"] == {
        "ham": {"ham": 1, "spam": 1, "unsure": 0},
        "spam": {"ham": 0, "spam": 1, "unsure": 1},
    }
    assert (found["threshold"], found["spam_cutoff"], found["ham_cutoff"]) == (0.5, 0.7, 0.3)
    for key, value in (("verdict_bh_pct", 50), ("verdict_sm_pct", 50), ("unsure_pct", 25)):
        low, high = found[f"{key}_ci"]
        assert low < found[key] == value < high
    assert [b["messages"] for b in found["calibration"]] == [1, 1, 1, 1]
    first = {"low": 0.1, "high": 0.2, "messages": 1, "mean_probability": 0.1, "spam_share": 0.0}
    assert found["calibration"][0] == first
    assert found["calibration_error"] == pytest.approx((0.1 + 0.8 + 0.1 + 0.4) / 4)
    assert "errors" not in found
    (worst,) = as_json(TWO, errors=1)["errors"]
    assert (worst["label"], worst["verdict"], worst["probability"]) == ("ham", "spam", 0.8)
    assert worst["words"][0]["token"] == "prize"


def test_json_of_three_classes_has_null_for_the_figures_it_has_not():
    found = as_json(THREE)
    undefined = ("mcc", "threshold", "positive", "spam_cutoff", "ham_cutoff", "calibration_error")
    assert [found[key] for key in undefined] == [None] * 6
    assert (found["accuracy"], found["calibration"]) == (0.5, [])


def test_a_prediction_is_what_classify_prints_and_the_label():
    assert prediction(TWO.outcomes[3]) == {
        "source": "file:4",
        "label": "spam",
        "verdict": "unsure",
        "probability": 0.6,
        "log_odds": pytest.approx(math.log(1.5)),
    }
    found = prediction(THREE.outcomes[0])
    assert found["probabilities"] == {"a": 0.5, "b": 0.3, "c": 0.2}
