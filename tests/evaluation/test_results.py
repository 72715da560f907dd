import math

import pytest
from outcomes import CUT_OFFS, THREE, TWO, outcome

from nbspam.evaluation.outcome import Evaluation
from nbspam.evaluation.results import compute, confusion
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


def test_even_odds_are_called_ham_and_the_least_more_spam():
    even, more = outcome("spam", "unsure", 0.5, 0.5), TWO.outcomes[0]
    assert even.called == "ham"
    judged = more.judged._replace(log_odds=1e-300, probability=0.5)
    assert more._replace(judged=judged).called == "spam"


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


def test_an_unsure_message_of_two_classes_is_counted_at_a_half_and_of_three_is_wrong():
    two = compute(TWO, CUT_OFFS).figures.values
    assert two["accuracy"] == 0.75  # the spam that is unsure has a probability of 0.6
    classes = ("a", "b", "spam")
    unsure = outcome("a", "unsure", 0.3, 0.3, 0.4, classes=classes)
    three = Evaluation("a test", classes, "spam", [unsure])
    assert compute(three, CutOffs()).figures.values["accuracy"] == 0


# Confusion


def test_confusion_has_a_row_for_each_class_and_a_column_for_each_verdict():
    actual = ["ham", "spam", "spam", "ham", "spam"]
    called = ["ham", "spam", "unsure", "spam", "ham"]
    found = confusion(actual, called, ("ham", "spam"))
    assert found.verdicts == ("ham", "spam", "unsure")
    assert found.counts == [[1, 1, 0], [1, 1, 1]]


def test_confusion_of_no_messages():
    assert confusion([], [], ("a", "b")).counts == [[0, 0], [0, 0]]
