"""Every failure is one sentence with a remedy and an exit code; what is printed fits its place."""

import ast
import gzip
import io
import os
import re
import string
import subprocess
import sys
from types import SimpleNamespace

import pytest
from one_case import each
from running import ROOT, commands, on_a_terminal

from nbspam import __main__ as entry
from nbspam.cli.notes import note
from nbspam.cli.progress import progress, progress_parts, progress_passes, size_of
from nbspam.errors import ModelError, Remedy, one_line
from nbspam.serving.spamd import RefusedError
from nbspam.tokens.tokenized import TokenizedMessage

PACKAGE = ROOT / "nbspam"


def test_a_wrong_word_is_one_sentence_with_click_8_1_too():
    code = "import click, runpy; vars(click.exceptions).pop('NoArgsIsHelpError', None)"
    run = "runpy.run_module('nbspam', run_name='__main__')"
    words = [sys.executable, "-c", f"{code}; {run}", "clasify"]
    found = subprocess.run(words, capture_output=True, check=False, cwd=ROOT)
    assert (found.returncode, found.stderr[:29]) == (2, b"nbspam: no such command 'clas")


@pytest.mark.parametrize(
    "command",
    ["classify a\0b", f"classify {'a' * 5_000}", f"train -m new TABLE --encoding={'a' * 500}",
     "train -m new TABLE --label=\x01=TABLE", "train -m new TABLE --encoding idna"],
)  # fmt: skip
def test_what_no_shell_can_type_is_refused_in_one_sentence(
    nbspam, model, table, tmp_path, monkeypatch, assert_sentence, command
):
    """What can be typed is in tests/golden/cli/sessions/refused.txt."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NBSPAM_MODEL", str(model))
    before = sorted(tmp_path.iterdir())
    words = command.replace("TABLE", str(table)).split(" ")
    found = nbspam(*words, stdin=b"free")
    if "idna" in command:
        assert "Traceback" not in found.err
    else:
        assert sorted(tmp_path.iterdir()) == before
        option = re.search("--[a-z]+", command)
        assert_sentence(found, option[0] if option else "", code=2 if option else 1)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
@pytest.mark.parametrize("command", ["train", "classify"])
def test_a_folder_that_may_not_be_read(nbspam, model, tmp_path, assert_sentence, command):
    folder = tmp_path / "locked"
    folder.mkdir(mode=0)
    options = ("--replace",) if command == "train" else ()
    assert_sentence(nbspam(command, folder, "-m", model, *options), folder, "permissions")


# Remedies


def braces(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


def test_every_error_gives_the_values_of_its_remedy():
    """That is, each call that has a remedy among its arguments has its values by their names."""
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text("utf-8")
        for node in ast.walk(ast.parse(text if "Remedy." in text else "")):
            for argument in node.args if isinstance(node, ast.Call) else ():
                if remedy := re.fullmatch(r"Remedy\.(\w+)", ast.unparse(argument)):
                    values = {keyword.arg for keyword in node.keywords}
                    assert braces(Remedy[remedy[1]].value) <= values, (path, node.lineno)


# Names

CONTROLS = "".join(map(chr, [*range(32), *range(127, 160), 0x2028, 0x2029]))

MARKS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def test_errors_have_no_control_characters_and_no_hidden_turns(capfd):
    name = f"a{CONTROLS}b{MARKS}c"
    for said in (
        str(ModelError(f"{name}: is no model; name another")),
        str(ModelError("x: is no model", Remedy.CREATE_MODEL, path=name)),
        RefusedError(76, name).line.decode().removesuffix("\r\n"),
        one_line(name),
    ):
        assert said.isprintable()
        assert "a" in said
    note(name)
    entry.print_error(entry.describe(OSError(2, "not there", name))[1])
    entry.print_error("Error: no such option\n" + name.replace("\n", ""))
    said = capfd.readouterr().err
    assert said.count("\n") == 4
    assert said.replace("\n", "").isprintable()
    assert said.count("nbspam: a") == 2


def test_a_mark_that_turns_the_direction_is_an_escape():
    assert one_line("invoice\u202efdp.exe") == r"invoice\u202efdp.exe"
    assert len(set(map(one_line, MARKS))) == len(MARKS)
    assert one_line("שלום ünï 漢字") == "שלום ünï 漢字"


# A model that has learned little is told of once, and to people


def test_a_young_model_is_told_of_once_and_on_a_terminal(
    nbspam, model, table, make_model, tmp_path
):
    (mail := tmp_path / "mail").write_text("lunch")
    (line,) = [
        each
        for each in on_a_terminal("classify", "-m", model, table).splitlines()
        if ": needs " in each
    ]
    assert line.startswith(f"nbspam: {model}: needs ")
    assert line.endswith("82 more ham and 88 more spam; until then it will often answer 'unsure'")
    assert nbspam("classify", "-m", model, stdin=b"lunch").err == ""  # in a pipe
    rows = [f"ham\tlunch at noon {i}\nspam\ta free prize {i}\n" for i in range(100)]
    (tmp_path / "many.tsv").write_text("".join(rows))
    shown = on_a_terminal("classify", "-m", make_model(tmp_path / "many.tsv", name="m"), mail)
    assert re.fullmatch(rf"ham\t0\.\d+\t{mail}\s+", shown)


# A message that is typed: one Ctrl-D ends it


@each(
    "command, said",
    [
        ("classify", "spam\t"),
        ("classify -p", "X-Nbspam: spam, "),
        ("explain", "-: spam, "),
        ("train --update --spam -", ""),
        ("forget --spam -", ""),
    ],
)
def test_one_ctrl_d_ends_a_message(model, command, said):
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "nbspam", *command.split(), "-m", model]
    process = subprocess.Popen(
        words, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    os.close(theirs)
    os.write(ours, b"win a free prize now\n\4")
    out, err = process.communicate(timeout=30)
    os.close(ours)
    assert (process.returncode, said in out) == (0, True)
    assert err == ""


def test_a_source_without_a_message_is_named_to_a_person(nbspam, model):
    last = on_a_terminal("classify", "-m", model, "--lines", "-").splitlines()[-1]
    assert last == "nbspam: -: contains no message; name a source with one"
    assert nbspam("classify", "-m", model, "--lines", "-") == (0, "", "")


# Progress

MESSAGES = [TokenizedMessage(f"x:{i}", "ham", ["a", "text"], size=6) for i in range(5)]


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def drawn_on(monkeypatch):
    """Return a function that makes a stream standard error, and returns it."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("nbspam.cli.progress.REDRAW_SECONDS", -1)

    def draw(stream):
        monkeypatch.setattr("sys.stderr", stream)
        return stream

    return draw


@each(
    "quiet, stream, has_rich",
    [(False, io.StringIO(), 1), (False, None, 1), (True, Terminal(), 1), (False, Terminal(), None)],
)
def test_nothing_is_shown_where_nobody_looks(drawn_on, monkeypatch, quiet, stream, has_rich):
    drawn_on(stream)
    monkeypatch.setattr("nbspam.cli.progress.find_spec", lambda name: has_rich)
    with progress(quiet, sources=[]) as shown:
        assert list(shown(iter(MESSAGES))) == MESSAGES
    stages(quiet)
    assert stream is None or stream.getvalue() == ""


def test_a_terminal_is_shown_the_rate_and_the_time_left(drawn_on, tmp_path):
    terminal = drawn_on(Terminal())
    source = tmp_path / "x"
    source.write_text("a text" * 10)
    with progress(quiet=False, sources=[str(source)]) as shown:
        assert list(shown(MESSAGES)) == MESSAGES
    for text in ("1 message ", "5 messages", "/s", "0:0"):
        assert text in terminal.getvalue()


def test_the_size_is_that_of_all_files_and_none_where_it_cannot_be_known(tmp_path):
    (tmp_path / "folder" / "inner").mkdir(parents=True)
    for name, content in (("folder/a", b"12345"), ("folder/inner/b", b"123"), ("c", b"12")):
        (tmp_path / name).write_bytes(content)
    assert size_of([str(tmp_path / "folder"), str(tmp_path / "c")]) == 10
    (tmp_path / "x.gz").write_bytes(gzip.compress(b"x"))
    for source in ("-", str(tmp_path / "none"), str(tmp_path / "x.gz")):
        assert size_of([source]) is None


def stages(quiet=False):
    """Go through stages; every one is drawn."""
    with progress_passes(quiet) as passes:
        passes.start("training", 0)
        parts = ["one", "two", "three"]
        shown = progress_parts(passes, lambda i, part: f"fold {i + 1} of 3: {part}", parts)
        assert list(shown) == parts


@each("no_color", ["", "1"])
def test_a_terminal_is_shown_what_is_done_in_colours_unless_none_are_wanted(
    drawn_on, monkeypatch, no_color
):
    monkeypatch.setenv("NO_COLOR", no_color)
    terminal = drawn_on(Terminal())
    stages()
    for text in ("training", "fold 1 of 3: one", "fold 3 of 3: three", "0:0"):
        assert text in terminal.getvalue()
    assert bool(re.search(r"\x1b\[[\d;]*[349]\d[\d;]*m", terminal.getvalue())) == (not no_color)


# What is printed for people fits 80 columns in a pipe, but for names of files and tables

COLUMNS = 80

COMMANDS = dict(commands())


@pytest.fixture(params=[40, pytest.param(300, marks=pytest.mark.long)], ids=["some", "more"])
def folder(request, tmp_path, monkeypatch, sample):
    """Return a folder with short names: the sample data, and models of it."""
    (tmp_path / "sample_data").symlink_to(sample)
    rows = (sample / "sms.tsv").read_text().splitlines(keepends=True)
    (tmp_path / "sms.tsv").write_text("".join(rows[: request.param]))
    (tmp_path / "mail.txt").write_text("WINNER! Claim your FREE prize: http://prize.example/win\n")
    (tmp_path / "promo.txt").write_text("SALE: half price on all shoes\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NBSPAM_MODEL", "model.json")
    (tmp_path / "config.toml").write_text("jobs = 1\n[serve]\ntell = true\n")
    monkeypatch.setenv("NBSPAM_CONFIG", "config.toml")
    return tmp_path


def too_wide(text):
    """Return the lines that are wider; blanks at the end of a line are not seen.

    In a pipe a table of words has each word whole, so its rows, which end with bars, may be wider.
    """
    lines = [line.rstrip() for line in text.splitlines()]
    return [line for line in lines if len(line) > COLUMNS and not re.search(r"  [+-]+$", line)]


# In order: each finds what those before it have left.
STEPS = """
train sms.tsv
train --replace --max-ham-blocked 1% sms.tsv
train --update --ham sample_data/mail/ham.mbox --spam sample_data/mail/spam.mbox
train -m one.json --spam mail.txt --update
train -m three.json --ham sms.tsv --spam mail.txt --label promo=promo.txt --lines
classify mail.txt
explain mail.txt
explain --fragments --top 100 mail.txt
explain -m one.json mail.txt
explain --words
eval --folds 3 --errors 20 sms.tsv
eval --including-learned sms.tsv
eval --online --batch 20 sms.tsv
model info
model info -m one.json
model check
model set --spam-cutoff 0.99
model prune --min-count 2
forget --spam mail.txt
config
""".strip().splitlines()


@pytest.mark.usefixtures("folder")
def test_every_command_fits(nbspam):
    printed = set()
    for step in STEPS:
        found = nbspam(*step.split())
        assert found.code == 0, f"{step}: {found.err}"
        assert too_wide(found.out) == [], step
        printed.add(next((name for name in COMMANDS if step.startswith(name)), step))
    served = {"serve", "mail filter", "mail learn", "mail watch"}  # they need a server
    assert printed == COMMANDS.keys() - served


@pytest.mark.usefixtures("folder")
def test_the_words_about_a_comparison_fit(nbspam):
    found = nbspam("eval", "--compare", "bernoulli,multinomial", "--folds", "2", "sms.tsv")
    tables = ("1-ROCA%", ":evidence ", ":sum ")
    wide = [line for line in too_wide(found.out) if not any(part in line for part in tables)]
    assert (found.code, wide) == (0, [])


@each("name", ["", *COMMANDS, "model"])
def test_every_help_fits_and_has_an_example(nbspam, name):
    found = nbspam(*name.split(), "--help")
    assert (found.code, found.err) == (0, "")
    assert too_wide(found.out) == []
    assert found.out.count("\n") <= 60
    if name != "model":
        assert f"nbspam {name}".strip() in found.out.partition("Example")[2]


def test_the_number_of_users_models_is_an_option(nbspam, model, tmp_path, monkeypatch):
    taken = []

    def serve(config, *_):
        taken.append(config.limits.max_users)
        return SimpleNamespace(run=lambda _: None)

    monkeypatch.setattr("nbspam.cli.serve.Server", serve)
    (tmp_path / "users").mkdir(mode=0o700)
    options = "serve -q --tell --workers 1 -m".split()
    listening = "--socket", tmp_path / "socket", "--user-models", tmp_path / "users"
    for more in ((), ("--max-users", 7)):
        assert nbspam(*options, model, *listening, *more).code == 0
    assert taken == [1000, 7]


def test_every_command_takes_help_all(nbspam):
    for command in ("model info", "config", "serve"):
        assert nbspam(*command.split(), "--help-all").out.startswith("Usage: nbspam")


def test_a_closed_folder_is_named_with_what_to_check():
    """A file below it raises that wherever it is looked up first."""
    _, said = entry.describe(PermissionError(13, "Permission denied", "/root/x"))
    assert said.startswith("/root/x: Permission denied; check its permissions and those of the fol")
