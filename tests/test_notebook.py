"""What a notebook shows: tables of words and results, and plots like those of scikit-learn."""

import html
import re
import subprocess
import sys
from pathlib import Path

import pytest

import nbspam
from nbspam.scoring.explanation import CONSTANTS

pd = pytest.importorskip("pandas")
ROOT = Path(__file__).parents[1]
PAIRS = [("spam", f"win a free prize {n}") for n in range(12)] + [
    ("ham", f"lunch at noon with {name}") for name in "ann bob cid dan eve fay gus hal".split()
]


@pytest.fixture(scope="module")
def trained():
    return nbspam.train(ROOT / "sample_data" / "fresh.tsv")


@pytest.fixture(scope="module")
def results():
    return nbspam.evaluate(PAIRS, folds=2)


def test_the_words_are_those_of_the_command(trained, tmp_path):
    trained.save(tmp_path / "m.json")
    command = [sys.executable, "-m", "nbspam", "explain", "--words", "--top", "5"]
    said = subprocess.run([*command, "-m", tmp_path / "m.json"], capture_output=True, text=True)
    rows = re.findall(r"^(\S.*?) +([+-][\d.]+) +([\d,]+) +([\d,]+)", said.stdout, re.M)
    words = trained.words(5)
    assert list(words.columns) == ["class", "word", "weight", "in ham", "in spam"]
    assert list(words["class"]) == ["ham"] * 5 + ["spam"] * 5
    assert [
        (row[1], f"{row[2]:+.3f}", f"{row[3]:,}", f"{row[4]:,}")
        for row in words.itertuples(index=False)
    ] == rows
    with nbspam.open(tmp_path / "m.json") as opened:
        pd.testing.assert_frame_equal(opened.words(5), words)


def test_trigrams_are_shown_on_request(trained):
    assert not any(word.startswith("tri:") for word in trained.words(200)["word"])
    assert any(word.startswith("tri:") for word in trained.words(200, fragments=True)["word"])


def test_an_explanation_uses_the_words_of_the_shell(trained):
    explained = trained.explain("WINNER! Claim your FREE prize now")
    shown = explained._repr_html_()
    assert "tri:" not in shown
    assert "character trigrams and pieces" in shown
    for key in explained.constants:
        assert f"<td>{html.escape(CONSTANTS[key].removeprefix('the '))}</td>" in shown
    shares = map(float, re.findall(r"<td>([+-][\d.]+)</td></tr>", shown))
    *parts, total = shares
    assert sum(parts) == pytest.approx(total, abs=0.02)


def test_results_are_a_table_with_escaped_names():
    hostile = [(f"<b>{label}", text) for label, text in PAIRS]
    shown = nbspam.evaluate(hostile, folds=2, spam_label="<b>spam")._repr_html_()
    assert "<table>" in shown
    assert "<td>calibration</td>" in shown
    assert "<b>" not in shown
    assert "&lt;b&gt;spam" in shown


@pytest.mark.parametrize("kind", ["roc", "confusion", "calibration"])
def test_each_plot_is_drawn_on_given_or_new_axes(results, kind):
    pytest.importorskip("matplotlib").use("agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots()
    display = results.plot(kind, ax=axes)
    assert (display.ax_, display.figure_) == (axes, figure)
    other = results.plot(kind)
    assert other.figure_ is not figure
    assert other.ax_.get_xlabel() == axes.get_xlabel() != ""
    pyplot.close("all")


def test_the_confusion_matrix_has_the_counts(results):
    pytest.importorskip("matplotlib").use("agg")
    from matplotlib import pyplot

    texts = [text.get_text() for text in results.plot("confusion").ax_.texts]
    assert texts == [str(n) for row in results.confusion.values() for n in row.values()]
    pyplot.close("all")


def test_what_cannot_be_drawn_is_refused_in_a_sentence(results, monkeypatch):
    with pytest.raises(nbspam.OptionError, match="no plot 'pie'; give 'roc', 'confusion', 'cal"):
        results.plot("pie")
    three = [*PAIRS, *(("work", f"the report {n} is due") for n in range(8))]
    without = nbspam.evaluate([(f"{label}s", text) for label, text in three], folds=2)
    with pytest.raises(nbspam.OptionError, match="a plot needs a class called spam"):
        without.plot()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(nbspam.NbspamError, match=r"needs matplotlib; .*nbspam\[plot\]"):
        results.plot()


def test_a_percentage_is_trained_first():
    found = nbspam.evaluate(PAIRS[::-1] + PAIRS, train_first="70%")
    assert len(found.predictions) == 12
    assert found.evaluation.protocol == "trained on the first 28"
    for wrong in ("many", 0.7):
        with pytest.raises(nbspam.OptionError, match="neither a number nor a percentage"):
            nbspam.evaluate(PAIRS, train_first=wrong)


@pytest.mark.parametrize("call", ["learn", "forget"])
def test_an_unknown_label_is_an_option_error(trained, call):
    with pytest.raises(nbspam.OptionError, match=r"'eggs' is not a class .*; give 'ham' or 'spam'"):
        getattr(trained, call)([("eggs", "see you at nine")])


@pytest.mark.long
def test_verdicts_have_a_type_without_the_stubs_of_pandas(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "program.py").write_text(
        "import nbspam\nimport pandas as pd\n"
        "f = nbspam.open('model.json')\n"
        "reveal_type(f.classify_many(['a']))\n"
        "reveal_type(nbspam.classify_many(['a'], f))\n"
        "f.classify_many(pd.DataFrame()).head()\n"
    )
    (tmp_path / "mypy.ini").write_text(
        "[mypy]\n[mypy-pandas.*]\nfollow_imports = skip\nfollow_imports_for_stubs = True\n"
    )
    command = [sys.executable, "-m", "mypy", "--strict", "program.py"]
    environ = {"MYPYPATH": str(ROOT), "PATH": ""}
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True)
    revealed = re.findall(r'Revealed type is "(.*)"', done.stdout)
    assert len(revealed) == 2, done.stdout
    assert all(re.search(r"list\[.*Verdict", found) for found in revealed)
