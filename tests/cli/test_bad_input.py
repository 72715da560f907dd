"""Every failure is one sentence with the remedy, and an exit code; no traceback reaches a user."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from many_cases import in_turn

COMMANDS = [
    ("--help",),
    ("train", "--help"),
    ("classify", "--help"),
    ("eval", "--help"),
    ("evaluate", "--help"),
    ("explain", "--help"),
    ("model", "info", "--help"),
    ("model", "check", "--help"),
]


@in_turn("command", COMMANDS)
def test_help_has_an_example(nbspam, command):
    found = nbspam(*command)
    assert (found.code, found.err) == (0, "")
    _, examples, rest = found.out.partition("Example")
    assert examples
    name = " ".join(part for part in command if part != "--help").replace("evaluate", "eval")
    assert f"nbspam {name}".strip() in rest


def test_version(nbspam):
    from nbspam import __version__

    assert nbspam("--version") == (0, f"nbspam {__version__}\n", "")


# What is named in {braces} is there; the command writes no new.json.
NAMED = {
    **{f"{command} -m {{model}} none.tsv": "none.tsv|no such file"
       for command in ("train --replace", "classify", "eval", "explain")},
    **{f"train -m new.json empty.{end}": f"empty.{end}|empty"
       for end in ("tsv", "csv", "jsonl", "txt", "mbox", "eml")},
    "classify -m {model} empty.csv": "empty.csv|empty",
    "train -m new.json mail.eml": "mail.eml|--spam",
    "train -m new.json folder": "folder",
    "train -m new.json {table} --spam-label junk": "'junk'|'ham'|'spam'",
    "classify -m {model} a\0b": "",
    f"classify -m {{model}} {'a' * 5_000}": "",
    "eval {table} -m none.json": "none.json|nbspam train",
    "train {table} -m none/model.json": "none/model.json",
    "train {table} -m folder": "folder",
}  # fmt: skip
SENSELESS = {
    **{f"train -m new.json --label={name}={{table}}": "--label|NAME=SOURCE"
       for name in ("", "\x01")},
    "train -m new.json --label promo": "'promo'",
    **{f"train -m new.json {{table}} --encoding {name}": f"--encoding{more}"
       for name, more in {"klingon": "|klingon", "base64": "", "rot13": "", "hex": "", "zip": "",
                          "a" * 500: ""}.items()},
    **{f"{command} {{table}} --alpha={alpha}": "alpha must be above 0 and at most 1e+06"
       for command in ("train -m new.json", "eval --folds 2")
       for alpha in ("0", "-1", "nan", "inf", "-inf", "1000001", "1e10", "1e308")},
    **{f"train {{table}} -m new.json --prior={prior}": "the prior must be between 0 and 1"
       for prior in ("0", "1", "-0.5", "1.5", "nan", "inf")},
    **{f"eval {{table}} --folds={n}": f"cannot make {int(n):,} fold|give 2 to 12 folds"
       for n in ("1", "0", "-3", "1000")},
    **{f"eval {{table}} --train-first={first}": "--train-first"
       for first in ("nonsense", "", "%", "nan%", "inf%", "1e400%", "1.5", "ten%")},
    **{f"eval {{table}} --train-first={n}":
       "cannot train on the first |give a number from 1 to 29"
       for n in ("0", "-1", "30", "1000", "0%", "100%", "-5%", "200%")},
}  # fmt: skip


@pytest.fixture
def places(tmp_path, model, table, monkeypatch):
    """Return what is in the current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "mail.eml").write_bytes(b"Subject: x\r\n\r\ny\r\n")
    for end in ("tsv", "csv", "jsonl", "txt", "mbox", "eml"):
        (tmp_path / f"empty.{end}").touch()
    return {"model": model, "table": table}


@in_turn("code, refused", [(1, NAMED), (2, SENSELESS)])
def test_what_cannot_be_is_one_sentence(nbspam, places, assert_sentence, code, refused):
    for command, parts in refused.items():
        found = nbspam(*(word.format(**places) for word in command.split(" ")))
        assert found.code == code, (command, found)
        assert_sentence(found, *parts.split("|"), code=code)
    assert not Path("new.json").exists()


@in_turn("name", [" ", "\xa0\t"])
def test_a_label_of_blanks(nbspam, table, tmp_path, assert_sentence, name):
    found = nbspam("train", "--label", f"{name}={table}", "-m", tmp_path / "m.json")
    assert_sentence(found, "--label", "NAME=SOURCE", code=2)


def test_an_encoding_of_host_names_leaves_no_traceback(nbspam, table, tmp_path):
    found = nbspam("train", table, "--encoding", "idna", "-m", tmp_path / "m.json")
    assert "Traceback" not in found.err


# Sources


@in_turn("content", ["text\nhello\nfree prize\n", "hello, you\nfree, prize\nx, y\n"])
def test_a_table_without_a_label_column(nbspam, tmp_path, assert_sentence, content):
    path = tmp_path / "table.csv"
    path.write_text(content)
    found = nbspam("train", path, "-m", tmp_path / "m.json")
    assert_sentence(found, path, "--label-column")
    assert not (tmp_path / "m.json").exists()


@in_turn("option", ["--label-column", "--text-column"])
def test_an_unknown_column(nbspam, tmp_path, assert_sentence, option):
    path = tmp_path / "table.csv"
    path.write_text("label,text\nspam,free prize\nham,lunch\n")
    found = nbspam("train", path, option, "colour", "-m", tmp_path / "m.json")
    assert_sentence(found, path, "'colour'", option, "'label'", "'text'")


@in_turn("command", [("train",), ("eval", "--folds", "2")])
def test_one_class_only(nbspam, tmp_path, assert_sentence, command, monkeypatch):
    monkeypatch.setenv("NBSPAM_MODEL", str(tmp_path / "m.json"))
    path = tmp_path / "table.tsv"
    path.write_text("label\ttext\n" + "ham\tlunch at noon\nham\tsee you\n" * 3)
    found = nbspam(*command, path)
    assert_sentence(found, "'ham'", "two classes")


@in_turn("command", [("train",), ("eval",), ("eval", "--folds", "2")])
def test_nothing_to_read(nbspam, model, assert_sentence, command, monkeypatch):
    monkeypatch.setenv("NBSPAM_MODEL", str(model))
    options = ("--replace",) if command == ("train",) else ()
    found = nbspam(*command, *options)
    assert_sentence(found, "nothing to read", code=2)


def test_standard_input_has_no_labels(nbspam, tmp_path, assert_sentence):
    found = nbspam("train", "-", "-m", tmp_path / "m.json", stdin=b"free")
    assert_sentence(
        found, "standard input has no labels that can be recognised; give it with --spam"
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
@pytest.mark.parametrize("command", ["train", "classify"])
def test_a_folder_that_may_not_be_read(nbspam, model, tmp_path, assert_sentence, command):
    folder = tmp_path / "locked"
    folder.mkdir(mode=0)
    options = ("--replace",) if command == "train" else ()
    assert_sentence(nbspam(command, folder, "-m", model, *options), folder, "permissions")


# Options


def test_train_first_of_one_class(nbspam, tmp_path, assert_sentence):
    path = tmp_path / "table.tsv"
    path.write_text("ham\tlunch\n" * 10 + "spam\tprize\n" * 10)
    assert_sentence(nbspam("eval", path, "--train-first", "5"), "first 5")


@in_turn(
    "arguments",
    [
        ("nonsense",),
        ("train", "--nonsense"),
        ("train", "--alpha", "much"),
        ("eval", "--folds", "1.5"),
        ("explain", "--top", "0"),
        ("explain", "a", "b"),
        ("classify", "--format", "xml"),
        ("eval", "--errors", "-1"),
        ("model", "nonsense"),
    ],
)
def test_usage_errors(nbspam, arguments):
    found = nbspam(*arguments)
    assert (found.code, found.out) == (2, "")
    assert found.err.startswith("Usage: nbspam")
    assert "\nError: " in found.err
    assert "Traceback" not in found.err


# Models

READERS = [
    ("classify",),
    ("explain",),
    ("explain", "--words"),
    ("model", "info"),
    ("model", "check"),
]


@in_turn("command", READERS)
def test_a_model_that_cannot_be_read(nbspam, model, tmp_path, assert_sentence, command):
    whole, path = model.read_bytes(), tmp_path / "other.json"

    def assert_refused(path, *parts):
        found = nbspam(*command, "-m", path, stdin=b"free prize lunch")
        assert_sentence(found, path, *parts)

    assert_refused(tmp_path / "none.json", "nbspam train")
    assert_refused(tmp_path)
    for content in (b"", b"hello\n", b"{}", b"[]", b"null", b"\xff\xfe\0", b"\0" * 9_999):
        path.write_bytes(content)
        assert_refused(path)
    for part in (0.1, 0.5, 0.9, 0.99):
        path.write_bytes(whole[: int(len(whole) * part)])
        assert_refused(path)
    path.write_bytes(whole.replace(b'"version": 1', b'"version": 2'))
    assert_refused(path, "version 2", "update nbspam")


# The program's own streams


@pytest.mark.few(1)
@pytest.mark.parametrize("command", ["classify", "explain"])
def test_standard_input_closed(program, model, assert_sentence, command):
    found = program(command, "-m", model, shell="{} <&-")
    assert_sentence(found, "standard input is closed")


@pytest.mark.few(1)
@pytest.mark.parametrize("command", ["classify", "explain", "--help"])
def test_standard_output_closed(program, model, assert_sentence, command):
    options = () if command == "--help" else ("-m", model)
    assert_sentence(program(command, *options, shell="{} >&-"), "standard output is closed")


def test_standard_error_closed(program, model, table):
    found = program("classify", "-m", model, table, shell="{} 2>&-")
    assert found.code == 0
    assert found.out.count("\n") == 30
    found = program("classify", "-m", model, "none", shell="{} 2>&-")
    assert found == (1, "", "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")  # noqa: PTH110
@pytest.mark.few(1)
@pytest.mark.parametrize("command", [("classify",), ("explain",), ("eval", "--folds", "2")])
def test_standard_output_on_a_full_disk(program, model, table, assert_sentence, command):
    env = {"NBSPAM_MODEL": str(model)}
    found = program(*command, table, shell="{} >/dev/full", env=env)
    lines = [line for line in found.err.splitlines() if "holds several" not in line]
    assert "Traceback" not in found.err
    assert len(lines) == 1
    assert lines[0].startswith("nbspam: ")
    assert found.code == 1


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "command",
    [("classify",), ("explain",), ("eval", "--folds", "2"), ("model", "info"), ("--help",)],
)
def test_a_reader_that_has_gone(model, table, command):
    arguments = [*command]
    if command[0] in ("classify", "explain", "eval"):
        arguments.append(str(table))
    process = subprocess.Popen(
        [sys.executable, "-m", "nbspam", *arguments],
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
    assert found.err == ""
    assert found.out.count("\n") == 1


@pytest.mark.long
def test_a_source_skipped_before_a_failure_leaves_no_traceback(program, tmp_path, table):
    path = tmp_path / "model.json"
    found = program("train", table, tmp_path / "none", "-m", path)
    assert found.code == 1
    assert "Traceback" not in found.err
    assert not path.exists()


@in_turn("command", ["classify", "train", "eval", "explain"])
def test_a_name_that_would_break_the_line_does_not(nbspam, assert_sentence, tmp_path, command):
    name = str(tmp_path / "no\nsuch\x1b[31mfile\x85")
    assert_sentence(nbspam(command, name, "-m", tmp_path / "model.json"), "such")
    assert_sentence(nbspam("classify", "-", "-m", name), "such")


@in_turn(
    "arguments",
    [
        ("train", "--update", "--ham", "-", "--spam", "-"),
        ("classify", "-", "-"),
        ("forget", "-", "--spam", "-"),
    ],
)
def test_standard_input_is_named_once(nbspam, assert_sentence, model, arguments):
    before = model.read_bytes()
    found = nbspam(*arguments, "-m", model, stdin=b"Subject: x\n\ny\n")
    assert_sentence(found, "standard input", code=2)
    assert before == model.read_bytes()


WORKBOOK = b"PK\x03\x04" + bytes(26) + b"xl/workbook.xml"


@in_turn(
    "command",
    [
        ("train", "-m", "new.json"),
        ("train", "-m", "new.json", "--ham"),
        ("eval", "--folds", "2"),
        ("classify", "-m", "{model}"),
        ("explain", "-m", "{model}"),
        ("forget", "-m", "{model}"),
    ],
)
def test_an_excel_workbook_is_refused_as_a_source(
    nbspam, model, tmp_path, assert_sentence, command, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "real.xlsx"
    path.write_bytes(WORKBOOK)
    found = nbspam(*(word.format(model=model) for word in command), path)
    assert_sentence(found, f"{path}: is an Excel workbook; save it as CSV, and give that")


def test_in_the_mail_path_it_is_judged(nbspam, model):
    found = nbspam("classify", "-m", model, stdin=WORKBOOK)
    assert (found.code, found.err) == (0, "")
    found = nbspam("classify", "-p", "-m", model, stdin=WORKBOOK)
    assert found.code == 0
    assert found.out.encode().endswith(WORKBOOK)
