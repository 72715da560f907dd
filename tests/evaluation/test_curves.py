import math
import re
import subprocess
import sys
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from one_case import each
from outcomes import THREE, TWO, outcome, outcome_of
from sklearn.metrics import roc_curve

from nbspam.bayes.event_model import MAX_LOG_ODDS
from nbspam.errors import ModelError, OptionError
from nbspam.evaluation import curves
from nbspam.evaluation.comparison import DEFAULT, ComparedModel
from nbspam.evaluation.curves import cut_off_points, draw
from nbspam.evaluation.results import Evaluation, compute, learning_curve
from nbspam.scoring.verdict import CutOffs, Score


def svg_of(results, path):
    """Return the text of a drawing, and its root element."""
    draw(results, path)
    return path.read_text(encoding="utf-8"), ElementTree.parse(path).getroot()


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


@each("name", ["a", "a.jpg", "svg", "a.svg.gz", ".svg"])
def test_other_formats_are_refused(tmp_path, name):
    start = re.escape(str(tmp_path / name))
    with pytest.raises(OptionError, match=rf"^{start}: unknown format .* in .svg, .png or .pdf$"):
        curves.check_plot(tmp_path / name)


@pytest.mark.long
@each(
    "spam, log_odds, charts",
    [
        ([True, False, False], [MAX_LOG_ODDS, -MAX_LOG_ODDS, 0], 4),
        ([True, False], [-1, 1], 4),  # nothing but
        ([False, False], [1, 1], 2),
        ([True, False, True], [0, 0, 0], 4),
    ],
)
def test_the_curves_that_are_defined_are_drawn(tmp_path, spam, log_odds, charts):
    text, _ = svg_of(results_of(spam, log_odds), tmp_path / "a.svg")
    assert f"nbspam, a test: {len(spam)} messages" in text
    assert len(re.findall('<g id="axes_', text)) == charts
    assert not re.search(r"\b(nan|inf)\b", text)


@pytest.mark.long
def test_many_messages_make_no_large_drawing(tmp_path):
    chance = np.random.default_rng(0)
    spam = np.arange(20_000) % 2 == 0
    text, _ = svg_of(results_of(spam, chance.normal(np.where(spam, 2, -2), 2)), tmp_path / "a.svg")
    assert len(text) < 200_000


@pytest.mark.long
def test_an_online_test_has_a_learning_curve_and_each_drawing_says_what_it_shows(tmp_path):
    """A class may be named like a formula, and two drawings are the same bytes."""
    outcomes = results_of([True] * 3 + [False] * 5, [5, 2, -1, -3, -2, -1, 1, -4]).evaluation
    protocol, so_far = "$\\frac$ <天> \x1b[2J", [10] * 4 + [14] * 4
    results = compute(outcomes._replace(protocol=protocol, learned_so_far=so_far))
    text, root = svg_of(results, tmp_path / "a.b.SVG")
    assert "$\\frac$ &lt;天&gt; \ufffd[2J: 8 messages" in text
    assert svg_of(results, tmp_path / "a.svg")[0] == text
    assert not re.search('<script|<image|<foreignObject|href="(?!#)', text)
    said = " ".join(" ".join(root.itertext()).split())
    for part in (
        *("area under the curve 0.9000 (", "3 spam and 5 ham", "messages learned"),
        *("cut-off 0.5: 66.67 % of spam, 20.00 % of ham", "over the last 8 messages"),
        "cut-off 0.9: 100.00 % of spam, 0.00 % of ham",
    ):
        assert part in said


def test_a_plot_needs_a_class_called_spam(tmp_path):
    with pytest.raises(OptionError, match="a plot needs a class called spam; name the"):
        draw(compute(THREE), tmp_path / "a.svg")
    with pytest.raises(OptionError, match="a plot needs a class called spam; name the"):
        compared = ComparedModel(DEFAULT, compute(THREE), 0.0)
        curves.draw_comparison([compared], tmp_path / "a.svg")
    with pytest.raises(OptionError, match="a ROC curve needs spam and ham; test"):
        compared = ComparedModel(DEFAULT, results_of([False, False], [1, -1]), 0.0)
        curves.draw_comparison([compared], tmp_path / "a.svg")
    assert not (tmp_path / "a.svg").exists()
    with pytest.raises(ModelError, match=r"a\.svg: cannot be written \(No such file"):
        draw(results_of([True, False], [1, -1]), tmp_path / "no" / "a.svg")


def test_matplotlib_is_imported_when_something_is_drawn_and_not_before():
    code = "import sys, nbspam.evaluation.report; sys.exit('matplotlib' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
