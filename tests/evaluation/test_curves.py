import re
from itertools import pairwise

import numpy as np
from one_case import each

from nbspam.evaluation.bins import calibration_bins
from nbspam.evaluation.curves import calibration_svg, log_roc_svg, roc_svg, scores_svg
from nbspam.evaluation.samples import ScoredMessages


def messages(n, seed=0):
    random = np.random.default_rng(seed)
    spam = np.arange(n) % 2 == 0
    log_odds = random.normal(np.where(spam, 2.0, -2.0), 2.0)
    probability = 1 / (1 + np.exp(-log_odds))
    return ScoredMessages.of_two_classes(spam, log_odds, probability, log_odds > 0, 0.5)


def points(svg, kind="line"):
    (line,) = re.findall(rf'<polyline class="{kind}" points="([^"]*)"', svg)
    return [tuple(map(float, point.split(","))) for point in line.split()]


def test_a_perfect_curve_goes_up_and_then_across():
    spam = np.array([True, True, False, False])
    log_odds = np.array([2.0, 1.0, -1.0, -2.0])
    perfect = ScoredMessages.of_two_classes(spam, log_odds, log_odds / 4 + 0.5, spam, 0.5)
    (left, bottom), (corner, top), (right, end) = points(roc_svg(perfect))
    assert left == corner < right
    assert bottom > top == end


def test_the_curve_rises_from_one_corner_to_the_other_and_has_the_point_of_the_threshold():
    svg = roc_svg(messages(200))
    curve = points(svg)
    even = points(svg, "even")
    assert (curve[0], curve[-1]) == (even[0], even[-1])
    assert all(a[0] <= b[0] and a[1] >= b[1] for a, b in pairwise(curve))
    (x, y) = map(float, re.search(r'class="point" cx="([\d.]+)" cy="([\d.]+)"', svg).groups())
    assert any(a[0] - 1 <= x <= b[0] + 1 and b[1] - 1 <= y <= a[1] + 1 for a, b in pairwise(curve))


@each("draw", [roc_svg, log_roc_svg])
def test_many_messages_make_no_large_drawing(draw):
    assert len(draw(messages(40_000))) < 20_000


def test_a_point_of_the_calibration_has_its_messages():
    found = messages(200)
    bins = calibration_bins(found.spam, found.probability)
    svg = calibration_svg(bins)
    counts = [b.messages for b in bins]
    assert [int(n) for n in re.findall(r"<title>(\d+) messages", svg)] == counts
    sizes = [float(r) for r in re.findall(r'class="dot"[^>]* r="([\d.]+)"', svg)]
    assert sizes.index(max(sizes)) == counts.index(max(counts))


def test_the_scores_have_a_column_for_each_class_and_range():
    svg = scores_svg(messages(200))
    assert svg.count('<rect class="a"') == svg.count('<rect class="f"') == 14
    assert "-0" not in re.findall(r'(?:width|height)="([^"]*)"', svg)
