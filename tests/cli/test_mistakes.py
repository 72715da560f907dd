"""Mistakes that can be read: what `eval` shows of the messages it judged."""

import json
import re

import pytest
from terminals import on_a_terminal

from nbspam.display.lines import cell_width


def evaluated(nbspam, *arguments):
    found = nbspam("eval", "--format", "json", *arguments)
    assert (found.code, found.err) == (0, "")
    return json.loads(found.out)


MISLABELLED = "ham\twin a <b>free</b> prize \x1b[31m now\nspam\tsee you at lunch\n"


@pytest.fixture
def with_mistakes(table):
    """Return the table with two messages in the wrong class."""
    with table.open("a", encoding="utf-8") as file:
        file.write(MISLABELLED)
    return table


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "protocol", ["--folds 3", "--train-first 20", "--leave-one-out", "--online --batch 6"]
)
def test_mistakes_show_the_message_in_every_protocol(nbspam, with_mistakes, protocol):
    arguments = (with_mistakes, *protocol.split())
    shown = nbspam("eval", *arguments, "--errors", "9").out
    assert "\x1b" not in shown
    assert re.search(r"^    .*\[\+.*prize.*\+\]", shown, re.MULTILINE)
    found = evaluated(nbspam, *arguments, "--errors", "9")
    errors = found.pop("errors")
    message = next(e["message"] for e in errors if e["label"] == "ham")
    assert message["text"].startswith("win a ")
    assert any(nats > 0 for _, _, nats in message["highlights"]["text"])
    assert found == evaluated(nbspam, *arguments)  # without mistakes


@pytest.mark.few(1)
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_mistakes_of_a_saved_model_show_the_message(nbspam, sms_model, sample, jobs):
    how = ("--errors", "5", "--jobs", jobs, "--including-learned")
    found = evaluated(nbspam, "-m", sms_model, sample / "fresh.tsv", *how)
    by_line = (sample / "fresh.tsv").read_text(encoding="utf-8").splitlines()
    assert found["errors"]
    for error in found["errors"]:
        line = by_line[int(error["source"].rpartition(":")[2]) - 1]
        assert error["message"]["text"][:10] in line


def test_nothing_of_a_message_is_kept_unless_it_is_shown(nbspam, table, monkeypatch):
    monkeypatch.setattr("nbspam.tokens.excerpt.excerpt_of", None)  # which would fail
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
