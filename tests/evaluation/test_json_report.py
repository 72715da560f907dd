import json
import math

import pytest
from outcomes import CUT_OFFS, THREE, TWO

from nbspam.evaluation import json_report
from nbspam.evaluation.json_report import prediction
from nbspam.evaluation.results import compute
from nbspam.scoring.verdict import CutOffs


def as_json(evaluation, skipped=0, errors=0):
    return json.loads(json_report.as_json(compute(evaluation, CUT_OFFS), skipped, errors))


def test_json_has_the_promised_fields():
    found = as_json(TWO, skipped=3)
    promised = (
        "messages spam ham threshold accuracy mcc sc_pct bh_pct sm_pct hm_pct lam_pct"
        " one_minus_roca_pct sm_pct_at_hm_0_1 log_loss brier tp fp fn tn"
        " verdict_bh_pct verdict_sm_pct unsure_pct spam_cutoff ham_cutoff"
    )
    assert set(promised.split()) <= found.keys()
    assert found["skipped"] == 3
    assert found["unsure"] == 1
    assert found["confusion"] == {"ham": {"ham": 1, "spam": 1}, "spam": {"ham": 0, "spam": 2}}
    assert found["verdicts"] == {
        "ham": {"ham": 1, "spam": 1, "unsure": 0},
        "spam": {"ham": 0, "spam": 1, "unsure": 1},
    }


def test_json_has_the_cut_offs_and_what_the_verdicts_do_with_its_intervals():
    found = as_json(TWO)
    assert (found["threshold"], found["spam_cutoff"], found["ham_cutoff"]) == (0.5, 0.7, 0.3)
    for key, value in (("verdict_bh_pct", 50), ("verdict_sm_pct", 50), ("unsure_pct", 25)):
        low, high = found[f"{key}_ci"]
        assert low < found[key] == value < high
    three = as_json(THREE)
    assert (three["threshold"], three["positive"]) == (None, None)
    assert as_json(TWO)["positive"] == "spam"
    assert (three["spam_cutoff"], three["ham_cutoff"]) == (None, None)


def test_json_has_the_worst_mistakes_when_asked():
    assert "errors" not in as_json(TWO)
    (worst,) = as_json(TWO, errors=1)["errors"]
    assert (worst["label"], worst["verdict"], worst["probability"]) == ("ham", "spam", 0.8)
    assert worst["words"][0]["token"] == "prize"


def test_json_of_three_classes_has_null_for_the_figures_it_has_not():
    found = as_json(THREE)
    assert found["mcc"] is None
    assert found["accuracy"] == 0.5
    found = as_json(THREE)
    assert (found["calibration"], found["calibration_error"]) == ([], None)
    assert compute(THREE, CutOffs()).bins == []


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


def test_json_has_the_calibration():
    found = as_json(TWO)
    assert [b["messages"] for b in found["calibration"]] == [1, 1, 1, 1]
    first = {"low": 0.1, "high": 0.2, "messages": 1, "mean_probability": 0.1, "spam_share": 0.0}
    assert found["calibration"][0] == first
    assert found["calibration_error"] == pytest.approx((0.1 + 0.8 + 0.1 + 0.4) / 4)
