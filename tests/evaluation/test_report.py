import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbspam.evaluation import report
from nbspam.evaluation.protocols import Evaluation, Outcome
from nbspam.scoring.classifier import Score
from nbspam.scoring.explanation import Word
from nbspam.scoring.verdict import CutOffs


def outcome(label, verdict, *probabilities, positive=-1, source="file:1", words=()):
    p = probabilities[positive]
    score = Score(log_odds=math.log(p / (1 - p)), probability=p, probabilities=probabilities)
    return Outcome(source, label, score, verdict, tuple(words))


WORD = Word(token="prize", weight=2.5, counts=(0, 9), share=2.5)
TWO = Evaluation(
    "a test",
    ("ham", "spam"),
    "spam",
    [
        outcome("ham", "ham", 0.9, 0.1),
        outcome("ham", "spam", 0.2, 0.8, source="file:[b]2[/b]", words=[WORD]),
        outcome("spam", "spam", 0.1, 0.9),
        outcome("spam", "unsure", 0.4, 0.6, source="file:4"),
    ],
)
THREE = Evaluation(
    "a test",
    ("a", "b", "c"),
    None,
    [outcome("a", "a", 0.5, 0.3, 0.2), outcome("b", "c", 0.2, 0.2, 0.6)],
)


def printed(capsys, evaluation, errors=0):
    report.print_report(report.compute(evaluation, CutOffs()), errors)
    return capsys.readouterr().out


def as_json(evaluation, skipped=0, errors=0):
    return json.loads(report.as_json(report.compute(evaluation, CutOffs()), skipped, errors))


def test_figures_are_those_of_the_outcomes():
    values = report.compute(TWO, CutOffs(0.7, 0.3)).figures.values
    assert [values[n] for n in ("tp", "fp", "fn", "tn")] == [1, 1, 1, 1]
    assert values["threshold"] == 0.7
    assert values["brier"] == pytest.approx((0.01 + 0.64 + 0.01 + 0.16) / 4)
    assert values["one_minus_roca_pct"] == pytest.approx(25)


def test_accuracy_of_three_classes_is_over_all_of_them():
    values = report.compute(THREE, CutOffs()).figures.values
    assert values["accuracy"] == 0.5
    assert values["log_loss"] == pytest.approx(-(math.log(0.5) + math.log(0.2)) / 2)


def test_figures_of_spam_have_no_meaning_without_a_class_called_so():
    values = report.compute(THREE, CutOffs()).figures.values
    assert values["messages"] == 2
    assert values["sc_pct"] is None
    assert values["tp"] is None


def test_three_classes_with_spam_have_its_figures_against_the_rest():
    evaluation = Evaluation(
        "a test",
        ("ham", "promo", "spam"),
        "spam",
        [
            outcome("ham", "promo", 0.3, 0.6, 0.1),
            outcome("spam", "spam", 0.1, 0.1, 0.8),
            outcome("promo", "spam", 0.1, 0.3, 0.6),
        ],
    )
    values = report.compute(evaluation, CutOffs()).figures.values
    assert [values[n] for n in ("tp", "fp", "fn", "tn")] == [1, 1, 0, 1]
    assert values["accuracy"] == pytest.approx(1 / 3)


def test_json_has_the_promised_fields():
    found = as_json(TWO, skipped=3)
    promised = (
        "messages spam ham threshold accuracy mcc sc_pct bh_pct sm_pct hm_pct lam_pct"
        " one_minus_roca_pct sm_pct_at_hm_0_1 log_loss brier tp fp fn tn"
    )
    assert set(promised.split()) <= found.keys()
    assert found["skipped"] == 3
    assert found["unsure"] == 1
    assert found["confusion"] == {
        "ham": {"ham": 1, "spam": 1, "unsure": 0},
        "spam": {"ham": 0, "spam": 1, "unsure": 1},
    }


def test_json_has_the_worst_mistakes_when_asked():
    assert "errors" not in as_json(TWO)
    (worst,) = as_json(TWO, errors=1)["errors"]
    assert (worst["label"], worst["verdict"], worst["probability"]) == ("ham", "spam", 0.8)
    assert worst["words"][0]["token"] == "prize"


def test_json_of_the_figures_that_have_none_is_null():
    found = as_json(THREE)
    assert found["mcc"] is None
    assert found["accuracy"] == 0.5


def test_a_prediction_is_what_classify_prints_and_the_label():
    assert report.prediction(TWO.outcomes[3], TWO.classes) == {
        "source": "file:4",
        "label": "spam",
        "verdict": "unsure",
        "probability": 0.6,
        "log_odds": pytest.approx(math.log(1.5)),
    }


def test_a_prediction_of_three_classes_has_the_probability_of_each():
    found = report.prediction(THREE.outcomes[0], THREE.classes)
    assert found["probabilities"] == {"a": 0.5, "b": 0.3, "c": 0.2}


def test_text_in_a_pipe_is_plain_and_not_cut(capsys):
    text = printed(capsys, TWO)
    assert "\x1b" not in text
    assert "…" not in text
    assert text.startswith("a test: 4 messages (")
    for name in ("accuracy", "MCC", "SC%", "BH%", "lam%", "1-ROCA%", "Brier"):
        assert name in text


def test_text_has_the_confusion_counts(capsys):
    lines = [line.split() for line in printed(capsys, TWO).splitlines()]
    assert ["ham", "1", "1", "0"] in lines
    assert ["spam", "0", "1", "1"] in lines


def test_text_of_mistakes_shows_their_source_as_it_is_and_their_words(capsys):
    text = printed(capsys, TWO, errors=1)
    assert "file:[b]2[/b]: ham called spam, probability 0.8" in text
    assert "prize +2.50" in text
    assert "file:4" not in text


def test_text_without_mistakes_says_so(capsys):
    right = Evaluation("a test", ("ham", "spam"), "spam", [TWO.outcomes[0], TWO.outcomes[2]])
    assert "no mistakes" in printed(capsys, right, errors=5)


def test_class_names_are_no_markup(capsys):
    evaluation = Evaluation(
        "a test",
        ("[red]x[/red]", "[/]"),
        "[/]",
        [outcome("[red]x[/red]", "[/]", 0.4, 0.6), outcome("[/]", "[/]", 0.1, 0.9)],
    )
    text = printed(capsys, evaluation, errors=3)
    assert "called [red]x[/red]" in text
    assert "[/]" in text


# Calibration and histogram


def test_json_has_the_calibration():
    found = as_json(TWO)
    assert [b["messages"] for b in found["calibration"]] == [1, 1, 1, 1]
    assert found["calibration"][0] == {
        "low": 0.1,
        "high": 0.2,
        "messages": 1,
        "mean_probability": 0.1,
        "spam_share": 0.0,
    }
    assert found["calibration_error"] == pytest.approx((0.1 + 0.8 + 0.1 + 0.4) / 4)


def test_without_a_positive_class_there_is_no_calibration():
    found = as_json(THREE)
    assert (found["calibration"], found["calibration_error"]) == ([], None)
    assert report.compute(THREE, CutOffs()).bins == []


def test_the_figures_behind_the_report_are_kept():
    found = report.compute(TWO, CutOffs())
    assert found.evaluation is TWO
    assert found.spam.tolist() == [False, False, True, True]
    assert found.probability.tolist() == [0.1, 0.8, 0.9, 0.6]
    assert found.log_odds.tolist() == [o.score.log_odds for o in TWO.outcomes]


def test_the_text_has_calibration_and_histogram(capsys):
    text = printed(capsys, TWO)
    assert "calibration error 0.35" in text
    lines = [line.split() for line in text.splitlines()]
    assert ["0.8", "to", "0.9", "1", "0.8000", "0.0000"] in lines
    bars = [line for line in lines if line[1:2] == ["to"] and line[-1].strip("hS") == ""]
    assert sum(int(line[3]) for line in bars) == 2
    assert sum(int(line[4]) for line in bars) == 2
    assert all(line[-1] for line in bars)


def test_the_text_of_classes_without_spam_has_neither(capsys):
    text = printed(capsys, THREE)
    assert "calibration" not in text
    assert "log-odds" not in text


@settings(deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.floats(-1e9, 1e9) | st.integers(-20, 20)), min_size=1))
def test_the_histogram_counts_everything(messages):
    spam = np.array([s for s, _ in messages])
    log_odds = np.array([z for _, z in messages], dtype=float)
    found = report.histogram(spam, log_odds)
    assert sum(h for _, _, h, _ in found) == (~spam).sum()
    assert sum(s for _, _, _, s in found) == spam.sum()
    for low, high, ham, spams in found[1:-1]:
        inside = (log_odds >= low) & (log_odds < high)
        assert (ham, spams) == ((inside & ~spam).sum(), (inside & spam).sum())


def test_the_histograms_ends_take_what_is_beyond():
    found = report.histogram(np.array([True, False]), np.array([1e9, -1e9]))
    assert found[0][2:] == (1, 0)
    assert found[-1][2:] == (0, 1)
    assert [row[1] for row in found[:-1]] == [row[0] for row in found[1:]]
