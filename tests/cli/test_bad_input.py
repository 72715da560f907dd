"""Every failure is one sentence with the remedy, and an exit code; no traceback reaches a user."""

import os
import subprocess
import sys

import pytest
from many_cases import in_turn, rest_long

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


# Sources


@in_turn("command", ["train", "classify", "eval", "explain"])
def test_no_such_file(nbspam, model, tmp_path, assert_sentence, command):
    path = tmp_path / "none.tsv"
    options = ("--replace",) if command == "train" else ()
    found = nbspam(command, path, "-m", model, *options)
    assert_sentence(found, path, "no such file")


@in_turn("suffix", ["tsv", "csv", "jsonl", "txt", "mbox", "eml"])
def test_an_empty_file_is_nothing_to_learn_from(nbspam, tmp_path, assert_sentence, suffix):
    path = tmp_path / f"empty.{suffix}"
    path.touch()
    assert_sentence(nbspam("train", path, "-m", tmp_path / "m.json"), path, "empty")


def test_an_empty_table_is_nothing_to_classify(nbspam, model, tmp_path, assert_sentence):
    path = tmp_path / "empty.csv"
    path.touch()
    assert_sentence(nbspam("classify", path, "-m", model), path, "empty")


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


def test_one_mail_has_no_label(nbspam, sample, tmp_path, assert_sentence):
    path = sample / "odd" / "crlf-line-ends.eml"
    assert_sentence(nbspam("train", path, "-m", tmp_path / "m.json"), path, "--spam")


@in_turn("name", ["", " ", "\x01", "\xa0\t"])
def test_a_label_of_nothing_to_show(nbspam, table, tmp_path, assert_sentence, name):
    found = nbspam("train", "--label", f"{name}={table}", "-m", tmp_path / "m.json")
    assert_sentence(found, "--label", "NAME=SOURCE", code=2)


def test_a_label_without_a_source(nbspam, tmp_path, assert_sentence):
    found = nbspam("train", "--label", "promo", "-m", tmp_path / "m.json")
    assert_sentence(found, "'promo'", code=2)


def test_a_folder_without_class_folders(nbspam, tmp_path, assert_sentence):
    folder = tmp_path / "folder"
    folder.mkdir()
    assert_sentence(nbspam("train", folder, "-m", tmp_path / "m.json"), folder)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
@pytest.mark.parametrize("command", ["train", "classify"])
def test_a_folder_that_may_not_be_read(nbspam, model, tmp_path, assert_sentence, command):
    folder = tmp_path / "locked"
    folder.mkdir(mode=0)
    options = ("--replace",) if command == "train" else ()
    assert_sentence(nbspam(command, folder, "-m", model, *options), folder, "permissions")


def test_an_encoding_that_nobody_knows(nbspam, table, tmp_path, assert_sentence):
    found = nbspam("train", table, "--encoding", "klingon", "-m", tmp_path / "m.json")
    assert_sentence(found, "klingon", "--encoding", code=2)


@in_turn("name", ["base64", "rot13", "hex", "zip", "idna", "a" * 500])
def test_an_encoding_that_is_no_text_encoding(nbspam, table, tmp_path, assert_sentence, name):
    found = nbspam("train", table, "--encoding", name, "-m", tmp_path / "m.json")
    if name == "idna":  # it is one, of host names
        assert "Traceback" not in found.err
    else:
        assert_sentence(found, "--encoding", code=2)


def test_a_name_with_a_nul(nbspam, model, assert_sentence):
    assert_sentence(nbspam("classify", "a\0b", "-m", model))


def test_a_name_that_is_too_long(nbspam, model, assert_sentence):
    assert_sentence(nbspam("classify", "a" * 5_000, "-m", model))


# Options


@in_turn("alpha", ["0", "-1", "nan", "inf", "-inf"])
@in_turn("command", [("train",), ("eval", "--folds", "2")])
def test_alpha_that_makes_no_sense(
    nbspam, table, tmp_path, assert_sentence, command, alpha, monkeypatch
):
    monkeypatch.setenv("NBSPAM_MODEL", str(tmp_path / "m.json"))
    found = nbspam(*command, table, "--alpha", alpha)
    assert_sentence(found, "alpha must be above 0", code=2)
    assert not (tmp_path / "m.json").exists()


@in_turn("prior", ["0", "1", "-0.5", "1.5", "nan", "inf"])
def test_prior_that_makes_no_sense(nbspam, table, tmp_path, assert_sentence, prior):
    found = nbspam("train", table, "-m", tmp_path / "m.json", "--prior", prior)
    assert_sentence(found, "the prior must be between 0 and 1", code=2)


@in_turn("folds", ["1", "0", "-3", "1000"])
def test_folds_that_cannot_be(nbspam, table, assert_sentence, folds):
    found = nbspam("eval", table, "--folds", folds)
    assert_sentence(found, f"cannot make {int(folds):,} fold", "give 2 to 12 folds", code=2)


@in_turn("first", ["nonsense", "", "%", "nan%", "inf%", "1e400%", "1.5", "ten%"])
def test_train_first_that_is_no_number(nbspam, table, assert_sentence, first):
    assert_sentence(nbspam("eval", table, "--train-first", first), "--train-first", code=2)


@in_turn("first", ["0", "-1", "30", "1000", "0%", "100%", "-5%", "200%"])
def test_train_first_that_leaves_nothing(nbspam, table, assert_sentence, first):
    found = nbspam("eval", table, "--train-first", first)
    assert_sentence(found, "cannot train on the first ", "give a number from 1 to 29", code=2)


def test_train_first_of_one_class(nbspam, tmp_path, assert_sentence):
    path = tmp_path / "table.tsv"
    path.write_text("ham\tlunch\n" * 10 + "spam\tprize\n" * 10)
    assert_sentence(nbspam("eval", path, "--train-first", "5"), "first 5")


def test_a_spam_label_that_nobody_has(nbspam, table, tmp_path, assert_sentence):
    found = nbspam("train", table, "-m", tmp_path / "m.json", "--spam-label", "junk")
    assert_sentence(found, "'junk'", "'ham'", "'spam'")


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


def test_a_model_that_cannot_be_written(nbspam, table, tmp_path, assert_sentence):
    path = tmp_path / "none" / "model.json"
    assert_sentence(nbspam("train", table, "-m", path), path)
    assert_sentence(nbspam("train", table, "-m", tmp_path), tmp_path, "folder")


def test_evaluating_with_a_missing_model(nbspam, table, tmp_path, assert_sentence):
    found = nbspam("eval", table, "-m", tmp_path / "none.json")
    assert_sentence(found, tmp_path / "none.json", "nbspam train")


# The program's own streams


@rest_long("command", ["classify", "explain"])
def test_standard_input_closed(program, model, assert_sentence, command):
    found = program(command, "-m", model, shell="{} <&-")
    assert_sentence(found, "standard input is closed")


@rest_long("command", ["classify", "explain", "--help"])
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
@rest_long("command", [("classify",), ("explain",), ("eval", "--folds", "2")])
def test_standard_output_on_a_full_disk(program, model, table, assert_sentence, command):
    env = {"NBSPAM_MODEL": str(model)}
    found = program(*command, table, shell="{} >/dev/full", env=env)
    lines = [line for line in found.err.splitlines() if "holds several" not in line]
    assert "Traceback" not in found.err
    assert len(lines) == 1
    assert lines[0].startswith("nbspam: ")
    assert found.code == 1


@rest_long(
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


def test_a_reader_that_stops_early(program, model, table):
    found = program("classify", "-m", model, *[table] * 200, shell="{} | head -1")
    assert found.err == ""
    assert found.out.count("\n") == 1


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
