import numpy as np
import pytest
from outcomes import CUT_OFFS, THREE, TWO, outcome

from nbspam.evaluation import curve_points
from nbspam.evaluation.outcome import Evaluation
from nbspam.evaluation.results import compute


def test_the_linear_curve_goes_from_nothing_to_everything_and_the_area_below_is_the_figure():
    found = compute(TWO, CUT_OFFS)
    false_positives, true_positives = curve_points.linear_roc_points(found.messages)
    points = list(zip(false_positives.tolist(), true_positives.tolist(), strict=True))
    assert points == [(0, 0), (0, 0.5), (0.5, 0.5), (0.5, 1), (1, 1)]
    assert found.figures.values["auc"] == np.trapezoid(true_positives, false_positives)


def test_the_cut_offs_are_points_of_the_curve():
    assert curve_points.cut_off_points(compute(TWO, CUT_OFFS)) == [(0.5, 0.5, 1.0), (0.7, 0.5, 0.5)]
    assert len(curve_points.cut_off_points(compute(TWO, CUT_OFFS._replace(spam=0.5)))) == 1
    spam = Evaluation("a test", TWO.classes, "spam", TWO.outcomes[2:])
    assert curve_points.cut_off_points(compute(spam, CUT_OFFS)) == []
    assert curve_points.cut_off_points(compute(THREE, CUT_OFFS)) == []
    with_spam = THREE._replace(positive="c", outcomes=[*THREE.outcomes, THREE.outcomes[0]])
    assert curve_points.cut_off_points(compute(with_spam, CUT_OFFS)) == []


def test_points_of_the_calibration_have_their_messages_and_their_intervals():
    points = curve_points.calibration_points(compute(TWO, CUT_OFFS))
    assert [point.messages for point in points] == [1, 1, 1, 1]
    for point in points:
        assert point.low <= point.observed <= point.high
    assert points[0].predicted == pytest.approx(0.1)


def test_the_learning_curve_has_a_point_for_each_batch_of_an_online_test():
    right, wrong = outcome("ham", "ham", 0.9, 0.1), outcome("ham", "spam", 0.2, 0.8)
    outcomes = [wrong, wrong, wrong, right, *[right] * 26]
    so_far = [10] * 2 + [12] * 2 + [14] * 26
    found = curve_points.learning_curve(TWO._replace(outcomes=outcomes, learned_so_far=so_far))
    assert found.window == 20
    expected = [(10, 1.0, 1.0), (12, 0.75, 0.75), (14, 0.1, 0.0)]
    assert [tuple(point) for point in found.points] == expected
    assert curve_points.learning_curve(TWO).points == []
