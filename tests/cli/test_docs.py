"""What is written of the program is what it does: docs/json.md, README, manual pages, reference."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.util import find_spec
from pathlib import Path

import click
import pytest
from one_case import each
from running import ROOT

from nbspam.cli import manual
from nbspam.cli.manual import ENVIRONMENT, manual_pages
from nbspam.cli.program import each_context

# docs/json.md describes the keys that the program prints

JSON_PAGE = ROOT / "docs" / "json.md"

SECTIONS = dict(re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", JSON_PAGE.read_text(), re.M | re.S))

SOMETIMES = {"probabilities", "of", "against", "mistakes", "base", "reason"}


def documented(section):
    rows = re.findall(r"^\| (`.*?) \|", SECTIONS[section], re.M)
    return {key for row in rows for key in re.findall(r"`(\w+)`", row)}


def printed(found):
    assert found.code == 0, found.err
    first = json.loads(found.out.splitlines()[0] if found.out[1] != "\n" else found.out)
    return {key for key in first if not key.endswith("_ci")}


# What prints each section; those with a server are in tests/cli/mail/test_imap_page.py.
PRINTING = {
    "classify": "classify mail.eml",
    "explain": "explain mail.eml",
    "train": "train -m new.json messages.tsv",
    "train --update": "train --update --spam mail.eml",
    "forget": "forget mail.eml",
    "eval": "eval --including-learned messages.tsv --errors 1",
    "eval --compare": "eval --compare bernoulli messages.tsv",
    "model info": "model info",
    "model words": "model words prize",
    "model set": "model set --spam-cutoff 0.99",
    "model prune": "model prune --min-count 2",
    "config": "config classify",
}


@pytest.fixture
def folder(nbspam, model, monkeypatch, few_resamples):
    folder = model.parent
    monkeypatch.chdir(folder)
    monkeypatch.setenv("NBSPAM_MODEL", "model.json")
    (folder / "mail.eml").write_text("Subject: free prize\n\nclaim the free prize\n")
    (folder / "copy.json").write_bytes(model.read_bytes())
    return folder


def test_every_section_is_tried():
    assert SECTIONS.keys() == PRINTING.keys() | {"mail filter", "mail learn"}


@each("section", PRINTING)
def test_the_keys_are_those_documented(nbspam, folder, section):
    (folder / "model.json").write_bytes((folder / "copy.json").read_bytes())
    (folder / "new.json").unlink(missing_ok=True)
    keys = printed(nbspam(*PRINTING[section].split(), "--format", "json"))
    assert documented(section) - SOMETIMES == keys - SOMETIMES
    assert keys <= documented(section)


@pytest.mark.usefixtures("folder")
def test_the_keys_of_three_classes(nbspam, as_json, make_model, three_classes):
    model = make_model(three_classes, name="three.json")
    for section in ("classify", "explain"):
        keys = printed(nbspam(section, "-m", model, "--format", "json", "mail.eml"))
        assert keys == documented(section) - {"base", "reason"}
    for key in as_json("explain", "-m", model, "mail.eml")["constants"]:
        assert f"`{key}`" in SECTIONS["explain"]


# What README and docs/json.md print of README's first steps; NBSPAM_GOLDEN=new writes it again

README = ROOT / "README.md"
STEPS = re.search(r"^```sh\n(.*?)^```$", README.read_text("utf-8"), re.MULTILINE | re.DOTALL)[1]
WINNER = re.search(r'^echo "(.*)" > ', STEPS, re.MULTILINE)[1]


def written(path, pattern, text):
    """Return what a page has in a pattern's group; if asked to, put this text there first."""
    page = path.read_text("utf-8")
    found = re.search(pattern, page, re.MULTILINE | re.DOTALL)
    if os.environ.get("NBSPAM_GOLDEN") == "new":
        path.write_text(page[: found.start(1)] + text + page[found.end(1) :], "utf-8")
        return text
    return found[1]


def block(name, text):
    """Return the block of README that follows the comment with this name."""
    return written(README, rf"<!-- output: {name} -->\n```text\n(.*?)```\n", text)


@pytest.fixture
def first_steps(nbspam, tmp_path, monkeypatch):
    """Run the `nbspam` commands of README's first block, in order; return what each printed."""
    (tmp_path / "sample_data").symlink_to(ROOT / "sample_data")
    monkeypatch.chdir(tmp_path)
    printed = {}
    for line in STEPS.splitlines():
        words = shlex.split(line.removesuffix("&&"))
        if words[0] == "echo":
            assert words[1:3] == [WINNER, ">"]
            Path(words[3]).write_text(WINNER + "\n")
        elif words[0] == "nbspam":
            result = nbspam(*words[1:])
            assert result.code == 0, result.err
            printed[words[1]] = result.out
    assert list(printed) == ["train", "classify", "explain"]
    return printed


def test_the_first_steps_print_what_readme_shows(nbspam, first_steps):
    both = first_steps["train"] + first_steps["classify"]
    assert block("train, classify", both) == both
    beginning = re.match(r"(.*\n)+?(?=\d+ more words)", first_steps["explain"])[0]
    assert block("explain", beginning) == beginning
    verdict, probability, _ = first_steps["classify"].split("\t")
    printed = nbspam("classify", "-m", "demo.json", stdin=f"{WINNER}\n".encode()).out
    assert printed == f"{verdict}\t{probability}\t-\n"


@pytest.mark.usefixtures("first_steps")
def test_the_example_of_json_is_that_of_the_same_message(nbspam):
    command = "classify", "-m", "demo.json", "--format", "json"
    printed = nbspam(*command, stdin=f"{WINNER}\n".encode()).out.rstrip()
    example = json.loads(written(JSON_PAGE, r'^    (\{"source": "-".*?\})$', printed))
    found = json.loads(printed)
    assert list(found) == list(example)
    for key in ("probability", "log_odds"):  # sums of numpy may differ in the last digit
        assert found.pop(key) == pytest.approx(example.pop(key), rel=1e-9)
    assert found == example


# Manual pages, as text and as the programs show them that people read them with

COMMANDS = {c.command_path.replace(" ", "-"): c.command for c in each_context()}

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
    assert {"nbspam.1", "nbspam-train.1", "nbspam-model-prune.1"} <= PAGES.keys()


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
    monkeypatch.setattr(manual, "each_context", lambda: [click.Context(command, None, "x-y")])
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


# The wheel, built as `pip install .` builds it

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Return the wheel's files by name, the shared ones as they are below a prefix."""
    if not find_spec("hatchling"):
        pytest.skip("needs hatchling (pip install '.[dev]')")
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder],
        cwd=ROOT,
        capture_output=True,
        check=True,
        timeout=120,
    )
    (path,) = folder.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        return {
            name.partition(".data/data/")[2] or name: archive.read(name)
            for name in archive.namelist()
        }


UNITS = ("nbspam.service", "nbspam.socket")


def test_the_wheel_has_what_systems_look_for_as_the_program_makes_it(wheel):
    pages = manual_pages("")
    shared = {name for name in wheel if name.startswith(("share/", "lib/"))}
    assert shared == {
        *(f"share/man/man1/{name}" for name in pages),
        *(f"lib/systemd/system/{name}" for name in UNITS),
    }
    assert {"nbspam_main.py", "nbspam/__init__.py", "nbspam/py.typed"} <= wheel.keys()
    for name, text in pages.items():
        lines = wheel[f"share/man/man1/{name}"].decode().splitlines()
        assert lines[1:] == text.splitlines()[1:]  # the first has the date
    for name in UNITS:
        assert wheel[f"lib/systemd/system/{name}"] == (ROOT / "docs" / name).read_bytes()


def test_the_build_needs_what_the_program_needs_to_start():
    """The hook imports the commands, which need click alone."""
    click = [line for line in PROJECT["project"]["dependencies"] if line.startswith("click")]
    assert [
        line for line in PROJECT["build-system"]["requires"] if "hatchling" not in line
    ] == click
