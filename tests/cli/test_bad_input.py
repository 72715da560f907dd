"""Every failure is one sentence with the remedy, and an exit code; no traceback reaches a user."""

import os
import re
import shlex
import subprocess
import sys

import pytest
from golden_rows import golden_rows
from one_case import each

from nbspam import __version__


@each(
    "command",
    ["", "train", "classify", "eval", "evaluate", "explain", "model info", "model check"],
)
def test_help_has_an_example(nbspam, command):
    found = nbspam(*command.split(), "--help")
    assert (found.code, found.err) == (0, "")
    _, examples, rest = found.out.partition("Example")
    assert examples
    assert f"nbspam {command}".replace("evaluate", "eval").strip() in rest


def test_version(nbspam):
    assert nbspam("--version") == (0, f"nbspam {__version__}\n", "")


@pytest.fixture
def places(tmp_path, model, three_classes, make_model, monkeypatch):
    """Go to a folder with models and with sources of which some are bad."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NBSPAM_MODEL", "model.json")
    make_model(three_classes, name="three.json")
    (tmp_path / "folder").mkdir()
    for name, text in (
        ("mail.eml", "Subject: x\n\ny\n"),
        ("ham.tsv", "label\ttext\n" + "ham\tlunch at noon\nham\tsee you\n" * 3),
        ("sorted.tsv", "ham\tlunch\n" * 10 + "spam\tprize\n" * 10),
        ("header.tsv", "label\ttext\n"),
        ("headless.csv", "text\nhello\nfree prize\n"),
        ("unlabelled.csv", "hello, you\nfree, prize\nx, y\n"),
        ("columns.csv", "label,text\nspam,free prize\nham,lunch\n"),
        *((f"empty.{end}", "") for end in ("tsv", "csv", "jsonl", "txt", "mbox", "eml")),
        ("book.xlsx", "PK\x03\x04" + "\0" * 26 + "xl/workbook.xml"),
    ):
        (tmp_path / name).write_text(text)
    return tmp_path


def test_what_is_refused_is_so_in_one_sentence_and_changes_nothing(nbspam, places, assert_sentence):
    def content():
        return {
            p.name: p.is_file() and p.read_bytes() for p in places.iterdir() if "lock" not in p.name
        }

    before = content()

    @each("command, said", golden_rows("refused.txt"))
    def refuse(command, said):
        found = nbspam(*shlex.split(command), stdin=b"free")
        assert_sentence(found, *said[1:], code=int(said[0]))

    refuse()
    for name in ("a\0b", "a" * 5_000):
        assert_sentence(nbspam("classify", name))
    for option in ("--encoding=" + "a" * 500, "--label=\x01=messages.tsv"):
        found = nbspam("train", "-m", "new.json", "messages.tsv", option)
        assert_sentence(found, option.partition("=")[0], code=2)
    assert "Traceback" not in nbspam("train", "messages.tsv", "--encoding", "idna").err
    assert content() == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
@pytest.mark.parametrize("command", ["train", "classify"])
def test_a_folder_that_may_not_be_read(nbspam, model, tmp_path, assert_sentence, command):
    folder = tmp_path / "locked"
    folder.mkdir(mode=0)
    options = ("--replace",) if command == "train" else ()
    assert_sentence(nbspam(command, folder, "-m", model, *options), folder, "permissions")


@each(
    "arguments",
    [
        *("nonsense", "train --nonsense", "train --alpha much", "eval --folds 1.5"),
        *("explain --top 0", "explain a b", "classify --format xml", "eval --errors -1"),
        *("model nonsense",),
    ],
)
def test_usage_errors(nbspam, arguments):
    found = nbspam(*arguments.split())
    assert (found.code, found.out) == (2, "")
    assert re.fullmatch(r"nbspam: [^\n]+; see nbspam[a-z ]* --help\n", found.err)


@each("command", ["classify", "explain", "explain --words", "model info", "model check"])
def test_a_model_that_cannot_be_read(nbspam, model, tmp_path, assert_sentence, command):
    whole, path = model.read_bytes(), tmp_path / "other.json"

    def assert_refused(path, *parts):
        found = nbspam(*command.split(), "-m", path, stdin=b"free prize lunch")
        assert_sentence(found, path, *parts)

    assert_refused(tmp_path / "none.json", "nbspam train")
    assert_refused(tmp_path)
    cut = (whole[: int(len(whole) * part)] for part in (0.1, 0.5, 0.9, 0.99))
    for content in (b"", b"hello\n", b"{}", b"[]", b"null", b"\xff\xfe\0", b"\0" * 9_999, *cut):
        path.write_bytes(content)
        assert_refused(path)
    path.write_bytes(whole.replace(b'"version": 1', b'"version": 2'))
    assert_refused(path, "version 2", "update nbspam")


# The program's own streams


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "command, shell, said",
    [
        ("classify", "<&-", "standard input is closed"),
        ("--help", ">&-", "standard output is closed"),
        ("explain", "<&-", "standard input is closed"),
        ("classify", ">&-", "standard output is closed"),
        ("explain", ">&-", "standard output is closed"),
    ],
)
def test_streams_that_are_closed(program, model, assert_sentence, command, shell, said):
    found = program(command, shell="{} " + shell, env={"NBSPAM_MODEL": str(model)})
    assert_sentence(found, said)


def test_standard_error_closed(program, model, table):
    found = program("classify", "-m", model, table, shell="{} 2>&-")
    assert (found.code, found.out.count("\n")) == (0, 30)
    assert program("classify", "-m", model, "none", shell="{} 2>&-") == (1, "", "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")  # noqa: PTH110
@pytest.mark.few(1)
@pytest.mark.parametrize("command", ["classify", "explain", "eval --folds 2"])
def test_standard_output_on_a_full_disk(program, model, table, command):
    env = {"NBSPAM_MODEL": str(model)}
    found = program(*command.split(), table, shell="{} >/dev/full", env=env)
    (line,) = (line for line in found.err.splitlines() if "holds several" not in line)
    assert (found.code, line.startswith("nbspam: ")) == (1, True)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "command", ["classify TABLE", "explain TABLE", "eval --folds 2 TABLE", "model info", "--help"]
)
def test_a_reader_that_has_gone(model, table, command):
    process = subprocess.Popen(
        [sys.executable, "-m", "nbspam", *command.replace("TABLE", str(table)).split()],
        env=os.environ | {"NBSPAM_MODEL": str(model)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdout.close()
    errors = process.stderr.read().decode()
    process.stderr.close()
    assert process.wait(60) == 1
    assert [line for line in errors.splitlines() if "holds several" not in line] == []


@pytest.mark.long
def test_a_reader_that_stops_early(program, model, table):
    found = program("classify", "-m", model, *[table] * 200, shell="{} | head -1")
    assert (found.err, found.out.count("\n")) == ("", 1)


@pytest.mark.long
def test_a_source_skipped_before_a_failure_leaves_no_traceback(program, tmp_path, table):
    path = tmp_path / "model.json"
    found = program("train", table, tmp_path / "none", "-m", path)
    assert (found.code, "Traceback" in found.err, path.exists()) == (1, False, False)


@each("command", ["classify", "train", "eval", "explain"])
def test_a_name_that_would_break_the_line_does_not(nbspam, assert_sentence, tmp_path, command):
    name = str(tmp_path / "no\nsuch\x1b[31mfile\x85")
    said = "such" if command == "train" else "not found"
    assert_sentence(nbspam(command, name, "-m", tmp_path / "model.json"), said)
    assert_sentence(nbspam("classify", "-", "-m", name), "not found")


def test_an_excel_workbook_is_judged_in_the_mail_path(nbspam, places):
    content = (places / "book.xlsx").read_bytes()
    found = nbspam("classify", stdin=content)
    assert (found.code, found.err) == (0, "")
    found = nbspam("classify", "-p", stdin=content)
    assert (found.code, found.out.encode().endswith(content)) == (0, True)
