import builtins
import math
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from one_case import each
from outcomes import outcome_of
from sklearn.metrics import roc_curve

from nbspam.bayes.posterior import IMPOSSIBLE
from nbspam.errors import OptionError
from nbspam.evaluation import curve_points, plot
from nbspam.evaluation.outcome import Evaluation
from nbspam.evaluation.results import compute
from nbspam.scoring.rules import Score
from nbspam.scoring.verdict import CutOffs

MAGIC = {".png": b"\x89PNG\r\n\x1a\n", ".svg": b"<?xml"}


def results_of(spam, log_odds):
    outcomes = []
    for label, z in zip(spam, log_odds, strict=True):
        p = 1 / (1 + math.exp(-max(-700, min(700, z))))
        name = "spam" if label else "ham"
        outcomes.append(outcome_of(name, name, Score(float(z), p, (1 - p, p))))
    return compute(Evaluation("a test", ("ham", "spam"), "spam", outcomes), CutOffs())


def test_png_and_svg_can_be_drawn_and_other_kinds_of_file_are_refused(tmp_path):
    for name in ("a.png", "a.svg", "A.PNG", "b.c.SVG"):
        plot.check_plot(tmp_path / name)
    for name in ("a", "a.pdf", "a.jpg", "png", "a.png.gz", ".svg"):
        with pytest.raises(OptionError, match="a plot is a PNG or SVG file") as error:
            plot.check_plot(tmp_path / name)
        assert str(error.value).startswith(f"{tmp_path / name}: ")
        assert ".png or .svg" in str(error.value)


def test_without_matplotlib_the_remedy_is_told(tmp_path, monkeypatch):
    real = builtins.__import__

    def refuse(name, *rest):
        if name.partition(".")[0] == "matplotlib":
            raise ImportError(name)
        return real(name, *rest)

    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(OptionError, match=r"^[^\n]*needs? matplotlib.* -m pip install matplotlib$"):
        plot.check_plot(tmp_path / "a.png")


def assert_drawn(results, path):
    plot.draw(results, path)
    written = path.read_bytes()
    assert written.startswith(MAGIC[path.suffix])
    assert len(written) > 5_000


@pytest.mark.long
def test_a_picture_is_drawn(tmp_path):
    chance = np.random.default_rng(0)
    spam = chance.random(200) < 0.4
    assert_drawn(results_of(spam, chance.normal(size=200) + 2 * spam), tmp_path / "a.png")


@pytest.mark.long
@each(
    "spam, log_odds",
    [
        ([True, False, False], [IMPOSSIBLE, -IMPOSSIBLE, 0]),
        ([True, False], [1, -1]),  # no mistake, and logarithmic axes
        ([True, False], [-1, 1]),  # nothing but
        ([True, True], [1, 2]),
        ([False, False], [1, 1]),
        ([True, False, True], [0, 0, 0]),
    ],
)
def test_pictures_of_odd_evaluations_are_drawn(tmp_path, spam, log_odds):
    assert_drawn(results_of(spam, log_odds), tmp_path / "a.svg")


@pytest.mark.long
def test_pictures_of_classes_without_spam_or_where_none_can_be_written_are_refused(tmp_path):
    outcomes = [outcome_of("a", "a", Score(0.0, 0.5, (0.4, 0.3, 0.3)), ("a", "b", "c"))]
    results = compute(Evaluation("a test", ("a", "b", "c"), None, outcomes), CutOffs())
    with pytest.raises(OptionError, match="a plot needs a class called spam; say which"):
        plot.draw(results, tmp_path / "a.png")
    assert not (tmp_path / "a.png").exists()
    with pytest.raises(OSError, match="No such file"):
        plot.draw(results_of([True, False], [1, -1]), tmp_path / "no" / "a.png")


@given(st.lists(st.tuples(st.booleans(), st.integers(-5, 5)), max_size=30))
def test_points_of_the_roc_curve_are_scikit_learns(messages):
    messages = [*messages, (True, 0), (False, 1)]
    spam, log_odds = (np.array(column) for column in zip(*messages, strict=True))
    ham_lost, spam_missed = curve_points.roc_points(results_of(spam, log_odds).messages)
    false, true, _ = roc_curve(spam, log_odds, drop_intermediate=False)
    np.testing.assert_allclose(ham_lost, 100 * false[1:], atol=1e-9)
    np.testing.assert_allclose(spam_missed, 100 - 100 * true[1:], atol=1e-9)


@pytest.fixture
def drawn(monkeypatch):
    """Return a list that the figures are put into as they are saved."""
    from matplotlib.figure import Figure

    saved = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, _: saved.append(figure))
    return saved


def texts_of(axes):
    legend = [text.get_text() for text in axes.get_legend().get_texts()]
    return axes.get_title(), legend


def test_panels_have_titles_and_say_what_they_show(drawn, tmp_path):
    results = results_of([True] * 3 + [False] * 5, [5, 2, -1, -3, -2, -1, 1, -4])
    plot.draw(results, tmp_path / "a.png")
    (figure,) = drawn
    assert figure.get_suptitle() == "nbspam, a test: 8 messages (ham: 5, spam: 3)"
    panels = {axes.get_title(): axes for axes in figure.axes}
    counted = "calibration, with the messages at each point"
    assert list(panels) == ["ROC", counted, "ROC on logarithmic axes", "score distribution"]
    roc = panels["ROC"]
    assert [roc.get_xscale(), roc.get_yscale()] == ["linear", "linear"]
    assert roc.get_lines()[0].get_xydata().tolist() == [[0, 0], [1, 1]]  # the diagonal
    _, legend = texts_of(roc)
    assert legend[0] == "cut-off 0.5: 66.67 % of spam, 20.00 % of ham"
    assert legend[1] == "cut-off 0.9: 100.00 % of spam, 0.00 % of ham"
    assert legend[2].startswith("AUC 0.9000 (")
    assert legend[3] == "n = 8 (3 spam)"
    assert panels["ROC on logarithmic axes"].get_xscale() == "log"
    calibration = panels[counted]
    assert sum(int(text.get_text()) for text in calibration.texts) == 8


def test_an_online_test_has_a_learning_curve(drawn, tmp_path):
    results = results_of([True] * 3 + [False] * 5, [5, 2, -1, -3, -2, -1, 1, -4])
    so_far = [10] * 4 + [14] * 4
    online = results._replace(evaluation=results.evaluation._replace(learned_so_far=so_far))
    plot.draw(online, tmp_path / "a.png")
    axes = drawn[0].axes[-1]
    assert texts_of(axes) == ("learning curve", ["last 8 messages", "all messages so far"])
    assert axes.get_lines()[1].get_xydata().tolist() == [[10, 25], [14, 25]]
