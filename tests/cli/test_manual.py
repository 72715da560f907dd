"""The manual pages, as text and as the programs show them that people read them with."""

import re
import shutil
import subprocess
from pathlib import Path

import click
import pytest
from one_case import each

from nbspam.cli import manual
from nbspam.cli.manual import ENVIRONMENT, manual_pages
from nbspam.cli.program import each_command
from nbspam.cli.program import nbspam as group

ROOT = Path(__file__).parents[2]
COMMANDS = {"-".join(path): command for path, command in each_command(group, ("nbspam",))}
PAGES = manual_pages("2026-11-22")
REQUESTS = {"TH", "nh", "ad", "SH", "PP", "SS", "TP", "nf", "fi", "RS", "RE", "sp"}


def needs(program, package):
    reason = f"needs {program} (Debian package {package})"
    return pytest.mark.skipif(not shutil.which(program), reason=reason)


def shown(text, *command):
    """Return what a formatter makes of a page, without bold and underlined letters."""
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    return re.sub(r".\x08|\x1b\[[\d;]*m", "", done.stdout)


def by_mandoc(text):
    return shown(text, "mandoc", "-Tutf8", "-O", "width=78")


def test_every_command_has_a_page():
    assert set(PAGES) == {f"{name}.1" for name in COMMANDS}
    assert {"nbspam.1", "nbspam-train.1", "nbspam-model-prune.1"} <= set(PAGES)


@each("name", COMMANDS)
def test_a_page_is_plain_roff_with_its_sections_and_every_option(name):
    page, command = PAGES[f"{name}.1"], COMMANDS[name]
    headings = re.findall(r"^\.SH (.*)$", page, re.MULTILINE)
    wanted = "NAME,SYNOPSIS,DESCRIPTION,OPTIONS,EXIT STATUS,ENVIRONMENT,FILES,SEE ALSO".split(",")
    assert [heading for heading in headings if heading in wanted] == wanted
    own = {"COMMANDS"} if isinstance(command, click.Group) else {"EXAMPLES"}
    assert set(headings) - set(wanted) == own | ({"EXAMPLES"} if name == "nbspam" else set())
    for param in command.params:
        for option in param.opts if isinstance(param, click.Option) else ():
            assert f"\\fB{option}\\fR".replace("-", "\\-") in page
    lines = page.splitlines()
    assert page.isascii()
    assert {line.split()[0][1:] for line in lines if line.startswith((".", "'"))} <= REQUESTS
    assert all(line.isprintable() for line in lines)


@needs("mandoc", "mandoc")
def test_mandoc_has_nothing_to_say(tmp_path):
    for name, text in PAGES.items():
        (tmp_path / name).write_text(text)
    found = subprocess.run(
        ["mandoc", "-Tlint", *sorted(PAGES)], cwd=tmp_path, capture_output=True, text=True
    )
    assert (found.returncode, found.stdout, found.stderr) == (0, "", "")


@needs("groff", "groff-base")
def test_groff_warns_of_nothing():
    text = shown("".join(PAGES.values()), "groff", "-man", "-ww", "-Tutf8")
    assert text.count("EXIT STATUS") >= len(PAGES)


@needs("mandoc", "mandoc")
def test_a_page_reads_as_the_help_does(nbspam):
    text = by_mandoc(PAGES["nbspam-train.1"])
    assert "nbspam-train - train a model on labelled messages" in text
    assert "         nbspam train --update --spam - < message.eml\n" in text
    assert re.search(r"^ +-m, --model PATH\n +Use this model file\. ", text, re.MULTILINE)
    printed = " ".join(nbspam("train", "--help-all").out.split())
    (paragraph,) = re.findall(r"adds to the model, or.*?is\s+not\s+changed\.", text, re.S)
    assert " ".join(paragraph.split()) in printed


AWKWARD = """Do it's thing: `a-b'c` and 50\\% more, ~/x ^y … – "z".

    .TH is no request here, nor is
    'this, and a back\\slash \\fB stays.

    \b
    Examples:
      .hidden 'quoted' \\n "double" `back` ~/tilde ^caret --long-option - < it's
      .RS

    Exit status: -1 never."""


@needs("mandoc", "mandoc")
def test_nothing_is_taken_for_roff(monkeypatch):
    command = click.Command(
        "x", help=AWKWARD, params=[click.Option(["-a", "--a-b"], metavar="X-Y")]
    )
    monkeypatch.setattr(manual, "each_command", lambda *_: [(("x-y",), command)])
    text = by_mandoc(manual_pages("2026-11-22")["x-y.1"])
    assert "Do it's thing: a-b'c and 50\\% more, ~/x ^y … – \"z\"." in text
    flowing = " ".join(text.split())
    assert ".TH is no request here, nor is 'this, and a back\\slash \\fB stays." in flowing
    assert (
        "         .hidden 'quoted' \\n \"double\" `back` ~/tilde ^caret --long-option - < it's\n"
        "         .RS\n"
    ) in text
    assert "-a, --a-b X-Y" in flowing
    assert "-1 never." in flowing


def test_every_variable_that_is_read_is_described():
    sources = [*(ROOT / "nbspam").rglob("*.py"), ROOT / "nbspam_main.py"]
    read = re.compile(r"(?:environ(?:\.get\(|\[)\s*|envvar=)\"(\w+)\"")
    names = {name for path in sources for name in read.findall(path.read_text(encoding="utf-8"))}
    assert names - set(ENVIRONMENT) == {"LISTEN_FDS", "LISTEN_PID", "NOTIFY_SOCKET"}
    assert set(ENVIRONMENT) <= names
    assert all(f"\\fB{name}\\fR" in PAGES["nbspam-serve.1"] for name in names)
