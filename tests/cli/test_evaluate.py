"""`nbspam eval`: what its figures come from, mistakes and pages, and the comparison of models."""

import contextlib
import re
import sys
from typing import ClassVar

import pytest
from one_case import each
from running import on_a_terminal

from nbspam.display.lines import cell_width
from nbspam.workers import ProgressPasses

# Files


# Mistakes that can be read


@pytest.fixture
def with_mistakes(table):
    """Return the table with two messages in the wrong class."""
    with table.open("a", encoding="utf-8") as file:
        file.write("ham\twin a <b>free</b> prize \x1b[31m now\nspam\tsee you at lunch\n")
    return table


def test_nothing_of_a_message_is_kept_unless_it_is_shown(nbspam, table, monkeypatch):
    monkeypatch.setattr("nbspam.tokens.tokenized.excerpt_of", None)  # which would fail
    assert nbspam("eval", "--folds", "3", table, "--jobs", "1").code == 0


@pytest.mark.long
def test_mistakes_fit_a_terminal(with_mistakes):
    arguments = ("eval", "--folds", "3", with_mistakes, "--errors", "9", "--quiet")
    coloured = on_a_terminal(*arguments, COLUMNS="80")
    shown = coloured.partition("worst mistakes")[2]
    assert "\x1b[" in shown
    assert "[+" not in shown
    plain = on_a_terminal(*arguments, COLUMNS="80", NO_COLOR="1").partition("worst mistakes")[2]
    assert "[+" in plain
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]", plain)  # bold and dim are no colours
    lines = re.sub(r"\x1b\[[0-9;]*m", "", plain).splitlines()
    assert max(map(cell_width, lines)) <= 80


def test_a_page_needs_no_model_over_the_base(nbspam, table, make_model, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # the curves are in test_report.py
    page = tmp_path / "page.html"
    model = "-m", tmp_path / "none.json", "--base", make_model(table)
    assert nbspam("eval", *model, table, "--including-learned", "--report", page).code == 0
    assert b"Strongest words" not in page.read_bytes()


# Comparison


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "protocol, tested",
    [
        *(("--folds 3", 30), ("--train-first 20", 10)),
        *(("--online --batch 10", 20), ("--leave-one-out", 30)),
    ],
)
def test_each_protocol_compares_what_it_finds_of_each_model_alone(as_json, table, protocol, tested):
    kinds = ("--compare", "bernoulli+gaussian,multinomial:sum")
    for model in as_json("eval", *kinds, *protocol.split(), table)["models"]:
        assert model["messages"] == tested
        options = [f"--{key.replace('_', '-')}={model[key]}" for key in ("event_model", "traits")]
        options.append(f"--scoring={model['scoring']}")
        alone = as_json("eval", *protocol.split(), *options, table)
        for key in ("tp", "fp", "fn", "tn", "log_loss", "one_minus_roca_pct", "calibration_error"):
            assert alone[key] == model[key]


def test_it_is_told_which_model_is_at_work(nbspam, table, monkeypatch):
    class Said(ProgressPasses):
        started: ClassVar = []

        def start(self, title, parts, done=0):
            self.started.append((title.partition(":")[0], parts, done))

    monkeypatch.setattr(
        "nbspam.cli.evaluating.progress_passes", lambda *_: contextlib.nullcontext(Said())
    )
    assert nbspam("eval", "--compare", "bernoulli,gaussian:sum", table).code == 0
    models = [(f"model {i + 1} of 4", 4, i) for i in range(4)]
    assert [each for each in Said.started if each[0].startswith("model ")] == models


@each("scoring", ["evidence", "sum"])
@each("smoothing", ["0", "5e-324", "1e-310", "1e-90"])
def test_a_tiny_variance_gives_finite_verdicts(nbspam, table, make_model, scoring, smoothing):
    table.write_text("label\ttext\n" + "spam\tAAAA 77\nham\tbbb\n" * 5)
    kind = f"--traits gaussian --scoring {scoring} --variance-smoothing {smoothing} -q --replace"
    model = make_model(table, *kind.split())
    for command in ("classify", "explain"):
        found = nbspam(command, "-m", model, "--format", "json", stdin=b"win a prize 12 Ab")
        assert found.code == 0, found.err
        assert not re.search("NaN|Infinity", found.out)
