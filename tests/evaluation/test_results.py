import json
import math
import os
from pathlib import Path

import pytest
from outcomes import THREE, TWO, outcome

from nbspam.evaluation import results
from nbspam.evaluation.metrics import METRICS
from nbspam.evaluation.results import Evaluation, Outcome, compute, prediction
from nbspam.scoring.verdict import CutOffs


def test_errors_are_counted_at_a_half_whatever_the_verdicts_are():
    verdicts = (o.classification._replace(verdict="unsure") for o in TWO.outcomes)
    outcomes = [o._replace(classification=v) for o, v in zip(TWO.outcomes, verdicts, strict=True)]
    cautious = TWO._replace(outcomes=outcomes, cut_offs=CutOffs(1, 0))
    found, other = compute(TWO), compute(cautious)
    for key in ("accuracy", "mcc", "sc_pct", "bh_pct", "sm_pct", "hm_pct", "lam_pct", "threshold"):
        assert found.figures.by_key[key] == other.figures.by_key[key]
    assert found.confusion == other.confusion
    assert [o.is_mistake for o in cautious.outcomes] == [False, True, False, False]


def test_even_odds_are_called_ham_and_the_unsure_of_three_classes_are_wrong():
    even, verdict = outcome("spam", "unsure", 0.5, 0.5), TWO.outcomes[0].classification
    assert even.assigned_class == "ham"
    assert Outcome(verdict._replace(log_odds=1e-300, probability=0.5)).assigned_class == "spam"
    accuracy = compute(TWO).figures.values["accuracy"]
    assert accuracy == 0.75  # the spam that is unsure has a probability of 0.6
    classes = ("a", "b", "spam")
    unsure = outcome("a", "unsure", 0.3, 0.3, 0.4, classes=classes)
    three = compute(Evaluation("a test", classes, "spam", [unsure]))
    assert three.figures.values["accuracy"] == 0


def test_three_classes_with_spam_have_its_figures_against_the_rest():
    classes = ("ham", "promo", "spam")
    outcomes = [
        outcome("ham", "promo", 0.3, 0.6, 0.1, classes=classes),
        outcome("spam", "spam", 0.1, 0.1, 0.8, classes=classes),
        outcome("promo", "spam", 0.1, 0.3, 0.6, classes=classes),
    ]
    values = compute(Evaluation("a test", classes, "spam", outcomes)).figures.values
    assert [values[n] for n in ("tp", "fp", "fn", "tn")] == [1, 1, 0, 1]
    assert values["accuracy"] == pytest.approx(1 / 3)
    assert values["log_loss"] == pytest.approx(-math.log(0.3 * 0.8 * 0.3) / 3)  # over all classes
    assert values["brier"] == pytest.approx((0.1**2 + 0.2**2 + 0.6**2) / 3)  # of P(spam)
    assert values["threshold"] is None


# JSON


def test_the_json_is_the_golden_one_and_has_no_figures_of_spam_without_a_class_called_spam():
    def rounded(number):
        return round(float(number), 9)

    text = results.as_json(compute(TWO._replace(skipped=3)), errors=1)
    path = Path(__file__).parents[1] / "golden" / "evaluation" / "two.json"
    if os.environ.get("NBSPAM_GOLDEN") == "new":
        path.write_text(f"{text}\n", encoding="utf-8")
    expected = json.loads(path.read_text(encoding="utf-8"), parse_float=rounded)
    assert json.loads(text, parse_float=rounded) == expected
    assert list(json.loads(text)) == list(expected)
    three = json.loads(results.as_json(compute(THREE), errors=0))
    assert three.keys() == expected.keys() - {"mistakes"}
    figures = set("messages errors accuracy log_loss unsure_pct".split())
    metric_keys = {metric.key for metric in METRICS}
    assert {key for key in metric_keys if three[key] is not None} == figures
    assert (three["spam_cutoff"], three["calibration"], three["positive"]) == (None, [], None)


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
