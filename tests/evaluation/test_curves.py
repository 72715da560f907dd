import math
import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from one_case import each
from outcomes import THREE, TWO, outcome, outcome_of
from sklearn.metrics import roc_curve

from nbspam.bayes.event_model import IMPOSSIBLE
from nbspam.errors import OptionError
from nbspam.evaluation import curves
from nbspam.evaluation.curves import cut_off_points, draw, roc_svg
from nbspam.evaluation.metrics import ScoredMessages, calibration_bins
from nbspam.evaluation.results import Evaluation, compute, learning_curve
from nbspam.scoring.rules import Score
from nbspam.scoring.verdict import CutOffs


def messages(n, seed=0):
    random = np.random.default_rng(seed)
    spam = np.arange(n) % 2 == 0
    log_odds = random.normal(np.where(spam, 2.0, -2.0), 2.0)
    probability = 1 / (1 + np.exp(-log_odds))
    return ScoredMessages.of_two_classes(spam, log_odds, probability)


def points(svg, kind="line"):
    (line,) = re.findall(rf'<polyline class="{kind}" points="([^"]*)"', svg)
    return [tuple(map(float, point.split(","))) for point in line.split()]


def test_a_perfect_curve_goes_up_and_then_across():
    log_odds = np.array([2.0, 1.0, -1.0, -2.0])
    perfect = ScoredMessages.of_two_classes(log_odds > 0, log_odds, log_odds / 4 + 0.5)
    (left, bottom), (corner, top), (right, end) = points(roc_svg(perfect))
    assert left == corner < right
    assert bottom > top == end


def test_the_curve_rises_from_one_corner_to_the_other_and_has_the_points_of_the_cut_offs():
    found = messages(200)
    of = found.counts
    svg = roc_svg(found, [("cut-off 0.5", 100 * of.fp / of.ham, 100 * of.fn / of.spam)])
    curve, even = points(svg), points(svg, "even")
    assert (curve[0], curve[-1]) == (even[0], even[-1])
    assert all(a[0] <= b[0] and a[1] >= b[1] for a, b in pairwise(curve))
    (x, y) = map(float, re.search(r'class="point" cx="([\d.]+)" cy="([\d.]+)"', svg).groups())
    assert any(a[0] - 1 <= x <= b[0] + 1 and b[1] - 1 <= y <= a[1] + 1 for a, b in pairwise(curve))


def test_many_messages_make_no_large_drawing():
    found = messages(40_000)
    assert max(len(roc_svg(found)), len(curves.log_roc_svg(found))) < 20_000


def test_a_point_of_the_calibration_has_its_messages():
    found = messages(200)
    bins = calibration_bins(found.spam, found.probability)
    svg = curves.calibration_svg(bins)
    counts = [b.messages for b in bins]
    assert [int(n) for n in re.findall(r"<title>(\d+) messages?", svg)] == counts
    sizes = [float(r) for r in re.findall(r'class="dot"[^>]* r="([\d.]+)"', svg)]
    assert sizes.index(max(sizes)) == counts.index(max(counts))
    assert svg.count('<polyline class="axis"') == len(bins)  # the intervals


def test_the_scores_have_a_column_for_each_class_and_range():
    svg = curves.scores_svg(messages(200))
    assert svg.count('<rect class="a"') == svg.count('<rect class="f"') == 14
    assert "-0" not in re.findall(r'(?:width|height)="([^"]*)"', svg)


# Points


def results_of(spam, log_odds):
    outcomes = []
    for label, z in zip(spam, log_odds, strict=True):
        p, name = 1 / (1 + math.exp(-max(-700, min(700, z)))), "spam" if label else "ham"
        outcomes.append(outcome_of(name, name, Score(float(z), p, (1 - p, p))))
    return compute(Evaluation("a test", ("ham", "spam"), "spam", outcomes))


@given(st.lists(st.tuples(st.booleans(), st.integers(-5, 5)), max_size=30))
def test_points_of_the_roc_curve_are_scikit_learns(messages):
    messages = [*messages, (True, 0), (False, 1)]
    spam, log_odds = (np.array(column) for column in zip(*messages, strict=True))
    ham_lost, spam_missed = curves.roc_points(results_of(spam, log_odds).messages)
    false, true, _ = roc_curve(spam, log_odds, drop_intermediate=False)
    np.testing.assert_allclose(ham_lost, 100 * false[1:], atol=1e-9)
    np.testing.assert_allclose(spam_missed, 100 - 100 * true[1:], atol=1e-9)


def test_the_cut_offs_are_points_of_the_curve():
    both = [("cut-off 0.5", 50, 0), ("cut-off 0.7", 50, 50)]
    assert cut_off_points(compute(TWO)) == both
    assert len(cut_off_points(compute(TWO._replace(cut_offs=CutOffs(0.5, 0.3))))) == 1
    with_spam = THREE._replace(positive="c", outcomes=[*THREE.outcomes, THREE.outcomes[0]])
    for none in (TWO._replace(outcomes=TWO.outcomes[2:]), THREE, with_spam):
        assert cut_off_points(compute(none)) == []


def test_the_learning_curve_has_a_point_for_each_batch_of_an_online_test():
    right, wrong = outcome("ham", "ham", 0.9, 0.1), outcome("ham", "spam", 0.2, 0.8)
    outcomes = [wrong, wrong, wrong, right, *[right] * 26]
    so_far = [10] * 2 + [12] * 2 + [14] * 26
    online = TWO._replace(outcomes=outcomes, learned_so_far=so_far)
    window, rates = learning_curve(online)
    assert window == 20
    assert rates == {"every": {10: 100, 12: 75, 14: 10}, "recent": {10: 100, 12: 75, 14: 0}}
    assert [*rates["every"]] == [*rates["recent"]] == [10, 12, 14]  # from left to right


# Files


@each("name", ["a", "a.png", "a.pdf", "svg", "a.svg.gz", ".svg"])
def test_other_files_than_svg_are_refused(tmp_path, name):
    curves.check_plot(tmp_path / "b.c.SVG")
    said = rf"{re.escape(str(tmp_path / name))}: a plot is an SVG file; .* ends in \.svg$"
    with pytest.raises(OptionError, match=f"^{said}"):
        curves.check_plot(tmp_path / name)


@each(
    "spam, log_odds, charts",
    [
        ([True] * 3 + [False] * 5, [5, 2, -1, -3, -2, -1, 1, -4], 4),
        ([True, False, False], [IMPOSSIBLE, -IMPOSSIBLE, 0], 4),
        ([True, False], [1, -1], 4),  # no mistake, and logarithmic axes
        ([True, False], [-1, 1], 4),  # nothing but
        ([True, True], [1, 2], 2),
        ([False, False], [1, 1], 2),
        ([True, False, True], [0, 0, 0], 4),
    ],
)
def test_the_curves_of_an_evaluation_are_drawn_into_a_file_that_needs_no_page(
    tmp_path, spam, log_odds, charts
):
    draw(results_of(spam, log_odds), tmp_path / "a.svg")
    drawn = (tmp_path / "a.svg").read_text(encoding="ascii")
    assert drawn.startswith('<svg xmlns="http://www.w3.org/2000/svg"')
    assert f"nbspam, a test: {len(spam)} messages" in drawn
    assert drawn.count('class="axis" d=') == charts
    assert not re.search("var\\(|nan|inf", drawn)
    assert "--" not in drawn


def test_an_online_test_has_a_learning_curve_and_each_drawing_says_what_it_shows(tmp_path):
    outcomes = results_of([True] * 3 + [False] * 5, [5, 2, -1, -3, -2, -1, 1, -4]).evaluation
    found = compute(outcomes._replace(learned_so_far=[10] * 4 + [14] * 4))
    draw(found, tmp_path / "a.svg")
    said = " ".join(re.findall("<text[^>]*>([^<]*)", (tmp_path / "a.svg").read_text()))
    for part in (
        *("area under the curve 0.9000 (", "3 spam and 5 ham", "messages learned"),
        *("cut-off 0.5: 66.67 % of spam, 20.00 % of ham", "over the last 8 messages"),
        "cut-off 0.9: 100.00 % of spam, 0.00 % of ham",
    ):
        assert part in said


def test_a_plot_needs_a_class_called_spam_and_a_folder(tmp_path):
    with pytest.raises(OptionError, match="a plot needs a class called spam; say which"):
        draw(compute(THREE), tmp_path / "a.svg")
    assert not (tmp_path / "a.svg").exists()
    with pytest.raises(OSError, match="No such file"):
        draw(results_of([True, False], [1, -1]), tmp_path / "no" / "a.svg")
