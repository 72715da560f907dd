"""What is printed is in tests/golden/evaluation; NBSPAM_GOLDEN=new writes it anew."""

import io
import os
import re
import sys
from pathlib import Path

import pytest
from harmless_pages import assert_harmless
from one_case import each
from outcomes import CUT_OFFS, THREE, TWO, outcome

from nbspam.evaluation.report import print_report, report_page
from nbspam.evaluation.results import Evaluation, compute
from nbspam.scoring.highlights import highlight
from nbspam.tokens.tokenized import Excerpt

GOLDEN = Path(__file__).parents[1] / "golden" / "evaluation"
SHOWN = highlight(
    Excerpt("a prize", "Desk <a@b.example>", "free prize and lunch", 2_000),
    {"free": 1.0, "prize": 1.0, "lunch": -1.0, "subject:prize": 1.0},
)
MARKUP = ("[red]x[/red]", "[/]")
MISTAKES = [
    TWO.outcomes[1]._replace(message=SHOWN),
    outcome("[red]x[/red]", "[/]", 0.4, 0.6, classes=MARKUP),
]
EVALUATIONS = {
    "two": TWO,
    "one": TWO._replace(outcomes=TWO.outcomes[:1]),
    "many": TWO._replace(outcomes=TWO.outcomes * 5_000),
    "three": THREE,
    "three-with-spam": THREE._replace(positive="c"),
    "mistakes": TWO._replace(outcomes=[*TWO.outcomes[2:], *MISTAKES[:1]]),
    "markup": Evaluation("a test", MARKUP, "[/]", MISTAKES[1:]),
}


@each(
    "name, full",
    [
        *(("two", False), ("two", True), ("one", False), ("many", True), ("three", True)),
        *(("three-with-spam", False), ("mistakes", False), ("markup", False)),
    ],
)
def test_the_report_in_a_pipe_is_the_golden_one(capsys, name, full):
    errors = 2 if name in ("two", "one", "mistakes", "markup") else 0
    notes = ["one of them was learned", "two are the same"] if name == "two" else []
    print_report(compute(EVALUATIONS[name]._replace(cut_offs=CUT_OFFS)), errors, notes, full=full)
    text = "".join(f"{line.rstrip()}\n" for line in capsys.readouterr().out.splitlines())
    path = GOLDEN / f"{name}{'-full' * full}.txt"
    if os.environ.get("NBSPAM_GOLDEN") == "new":
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
    assert name == "markup" or max(map(len, text.splitlines())) <= 80
    assert full or errors or text.count("\n") <= 25


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("full", [True, False])
def test_a_terminal_of_eighty_columns_folds_nothing(monkeypatch, full):
    many = compute(TWO._replace(outcomes=TWO.outcomes * 10_000))
    drawn = {}
    for columns in (80, 200):
        stream = Terminal()
        monkeypatch.setattr("sys.stdout", stream)
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setenv("TERM", "xterm")
        print_report(many, 0, full=full)
        text = re.sub(r"\x1b\[[\d;]*m", "", stream.getvalue())
        drawn[columns] = [line.split() for line in text.splitlines()]
    assert "10,000 of 20,000 ham marked as spam".split() in [line[-7:] for line in drawn[80]]
    assert drawn[80] == drawn[200]


def test_a_page_is_harmless_and_has_its_curves_or_says_how_to_get_them(monkeypatch):
    results = compute(EVALUATIONS["mistakes"])
    asked = [("command", "nbspam eval <x>")]
    parsed = assert_harmless(report_page(results, 2, asked))
    assert len(parsed.sources) == 4
    assert "nbspam eval <x>" in parsed.text.partition("metric")[0]
    assert "lunch" in parsed.text
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    parsed = assert_harmless(report_page(results, 2, asked))
    assert parsed.sources == []
    assert "drawing curves needs matplotlib; install it with:" in parsed.text
    assert "95 % interval" in parsed.text
