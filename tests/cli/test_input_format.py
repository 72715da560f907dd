"""Tables, lines and lists of files on standard input, from the shell's side."""

import contextlib
import os
import subprocess
import sys
import time

import pytest
from many_cases import in_turn

TABLE = "ham\tsee you at noon\nspam\twin a free prize\nham\tlunch at the meeting\n"
MAIL = b"Subject: hello\n\nlunch at noon\n"


def verdicts(found):
    assert found.code == 0, found.err
    return [line.split("\t")[::2] for line in found.out.splitlines()]


def test_a_table_is_classified_row_by_row(nbspam, model):
    found = nbspam("classify", "-m", model, "--input-format", "tsv", stdin=TABLE.encode())
    assert [source for _, source in verdicts(found)] == ["-:1", "-:2", "-:3"]
    assert found.err == ""


def test_without_a_format_it_is_one_message_and_that_is_said(nbspam, model):
    found = nbspam("classify", "-m", model, stdin=TABLE.encode())
    assert [source for _, source in verdicts(found)] == ["-"]
    assert found.err == (
        "nbspam: standard input looks like a table of 2 columns; it was read as one message; add"
        " --input-format tsv to read each of them\n"
    )


def test_the_same_is_said_of_what_is_learned(nbspam, model):
    found = nbspam("train", "--update", "--spam", "-", "-m", model, stdin=TABLE.encode())
    assert found.code == 0
    assert "looks like a table" in found.err
    assert (
        nbspam("train", "-q", "--update", "--ham", "-", "-m", model, stdin=b"a\tb\nc\td\n").err
        == ""
    )


def test_a_list_of_which_nothing_can_be_read_is_a_failure(nbspam, model, tmp_path):
    mail, missing = tmp_path / "a.eml", tmp_path / "nosuch.eml"
    mail.write_bytes(MAIL)
    command = ("classify", "-m", model, "--input-format", "files", "-")
    found = nbspam(*command, stdin=f"{missing}\n".encode())
    assert (found.code, found.out) == (1, "")
    assert f"-:1: cannot read '{missing}' (No such file or directory)" in found.err
    found = nbspam(*command, stdin=f"{missing}\n{mail}\n".encode())
    assert found.code == 0  # some could be
    assert "nosuch.eml" in found.err
    assert found.out.endswith(f"\t{mail}\n")
    assert nbspam(*command, stdin=b"") == (0, "", "")  # there is nothing to classify


@in_turn("command", [("classify", "-p"), ("classify", "-p", "--exit-code")])
@in_turn("content", [TABLE.encode(), b'{"text": "a"}\n{"text": "b"}\n'])
def test_a_passage_says_nothing_of_it(nbspam, model, command, content):
    found = nbspam(*command, "-m", model, stdin=content)
    assert found.err == ""
    assert found.out.encode().endswith(content)
    assert found.out.count("X-Nbspam:") == 1


def test_an_exit_code_is_of_the_whole_message(nbspam, model):
    """Who sends a message must not choose which part of it counts."""
    mail = b"From a Mon Nov 20 10:00:00 2023\n" + MAIL
    found = nbspam("classify", "--exit-code", "-m", model, stdin=mail + b"\n" + mail)
    assert len(found.out.splitlines()) == 1
    assert "looks like an mbox of several messages" in found.err


@pytest.mark.parametrize("name", ["tsv", None])
def test_a_table_is_learned_from_standard_input(nbspam, table, tmp_path, name):
    ours, theirs = tmp_path / "ours.json", tmp_path / "theirs.json"
    options = ["--input-format", name] if name else []
    found = nbspam("train", *options, "-", "-m", ours, stdin=table.read_bytes())
    assert found.code == 0, found.err
    assert nbspam("train", table, "-m", theirs).out.replace("theirs", "ours") == found.out
    assert ours.read_bytes() == theirs.read_bytes()


def test_an_update_by_a_table_says_what_it_learned(nbspam, model):
    options = ("--input-format", "tsv", "-m", model)
    found = nbspam("train", "--update", "-", *options, stdin=TABLE.encode())
    assert "learned 3 new messages" in found.sentences
    found = nbspam("forget", "-", *options, stdin=TABLE.encode())
    assert "forgot 3 messages" in found.sentences


def test_eval_reads_standard_input(nbspam, model, table):
    content = table.read_bytes()
    found = nbspam("eval", "-m", model, "--input-format", "tsv", "-", stdin=content)
    assert found.out == nbspam("eval", "-m", model, table).out


def test_explain_shows_the_first_of_a_table_or_the_one_that_is_named(nbspam, model):
    options = ("-m", model, "--input-format", "tsv")
    found = nbspam("explain", *options, stdin=TABLE.encode())
    assert found.out.startswith("-:1: ")
    assert "- holds several messages; this is -:1, the first" in found.err
    found = nbspam("explain", *options, "--", "-:2", stdin=TABLE.encode())
    assert found.out.startswith("-:2: ")


def test_a_list_of_files(nbspam, model, sample):
    names = sorted((sample / "odd").glob("*.eml"))
    listed = b"".join(os.fsencode(name) + b"\0" for name in names)
    found = nbspam("classify", "-m", model, "--input-format", "files0", stdin=listed)
    assert [source for _, source in verdicts(found)] == list(map(str, names))
    found = nbspam("classify", "-m", model, stdin=listed)
    assert "looks like a list of files" in found.err


@pytest.fixture
def file_list(tmp_path):
    """Return a file that names two mails, and their names."""
    names = [tmp_path / f"{n}.eml" for n in (1, 2)]
    for name in names:
        name.write_bytes(MAIL.replace(b"noon", name.stem.encode()))
    path = tmp_path / "list.txt"
    path.write_text("".join(f"{name}\n" for name in names))
    return path, list(map(str, names))


def test_a_list_in_a_file_is_read_as_one_on_standard_input(nbspam, model, file_list):
    path, names = file_list
    options = ("-m", model, "--input-format", "files")
    found = nbspam("classify", *options, path)
    assert [source for _, source in verdicts(found)] == names
    assert found == nbspam("classify", *options, stdin=path.read_bytes())
    found = nbspam("explain", *options, path)
    assert found.out.startswith(f"{names[0]}: ")
    assert found.err == f"nbspam: {path} holds several messages; this is {names[0]}, the first\n"
    found = nbspam("eval", *options, "--ham", path, "--format", "json")
    assert '"messages": 2' in found.out
    found = nbspam("train", "--update", *options, "--ham", path)
    assert "learned 2 new messages" in found.out
    assert "forgot 2 messages" in nbspam("forget", *options, path).out


def test_a_list_with_the_other_separator_is_refused(nbspam, model, file_list, assert_sentence):
    path, _ = file_list
    found = nbspam("classify", "-m", model, "--input-format", "files0", path)
    assert_sentence(found, path, "ends with a line end", "; read it with --input-format files\n")
    listed = path.read_bytes().replace(b"\n", b"\0")
    found = nbspam("train", "--update", "--ham", "-", "--input-format", "files", stdin=listed)
    assert_sentence(found, "-: ", "ends with NUL", "; read it with --input-format files0\n")


def test_a_list_has_no_labels(nbspam, file_list, tmp_path, assert_sentence):
    path, _ = file_list
    found = nbspam("train", "--input-format", "files", path, "-m", tmp_path / "new.json")
    assert_sentence(found, path, "the files of a list have no labels", "--spam or --ham")


UNUSED = {
    "--input-format mbox --text-column a": "--text-column has no use with --input-format mbox",
    "--lines --label-column a": "--label-column has no use with --lines",
    "--input-format jsonl --header-row no": "--header-row has no use with --input-format jsonl",
    "--input-format parquet --encoding utf-8": "--encoding has no use with --input-format parquet",
    "--input-format message --encoding utf-8": "--encoding has no use with --input-format message",
    "--input-format tsv --outside": "--outside has no use with --input-format tsv",
    "--text-column a": "--text-column is of tables",
    "--encoding utf-8": "--encoding is of tables",
}


@in_turn("options", UNUSED)
@in_turn("command", ["classify", "classify -", "explain", "forget", "train --update --ham -"])
def test_an_option_without_a_use_is_refused(nbspam, model, assert_sentence, command, options):
    before = model.read_bytes()
    arguments = (*command.split(), "-m", model, *options.split())
    found = nbspam(*arguments, stdin=TABLE.encode())
    assert_sentence(found, UNUSED[options], "leave", code=2)
    assert model.read_bytes() == before


@in_turn(
    "options",
    [
        ("--input-format", "tsv", "--text-column", "2", "--header-row", "no"),
        ("--input-format", "tsv", "--encoding", "utf-8"),
        ("--lines", "--encoding", "utf-8"),
    ],
)
def test_an_option_with_a_use_is_taken(nbspam, model, options):
    found = nbspam("classify", "-m", model, *options, stdin=TABLE.encode())
    assert found.code == 0, found.err


def test_options_of_tables_are_of_lists_of_files_too(nbspam, model, table):
    options = ("--input-format", "files", "--text-column", "2", "--outside", "--encoding", "utf-8")
    found = nbspam("classify", "-m", model, *options, stdin=f"{table}\n".encode())
    assert found.code == 0, found.err


def test_a_table_on_standard_input_that_is_recognised_may_have_columns_named(
    nbspam, table, tmp_path
):
    options = ("--text-column", "2", "--label-column", "1", "--header-row", "no")
    found = nbspam("train", "-", "-m", tmp_path / "new.json", *options, stdin=table.read_bytes())
    assert found.code == 0, found.err


def test_seen_is_of_mailboxes(nbspam, model, assert_sentence):
    arguments = ("train", "--update", "--ham", "-", "-m", model, "--seen", "--input-format")
    found = nbspam(*arguments, "tsv", stdin=TABLE.encode())
    assert_sentence(found, "--seen is of Maildirs and mboxes", "the format is tsv", code=2)
    assert nbspam(*arguments, "mbox").code == 0


def test_a_folder_is_told_that_it_has_no_format(nbspam, model, tmp_path):
    folder = tmp_path / "mails"
    folder.mkdir()
    (folder / "1").write_bytes(MAIL)
    found = nbspam("classify", "-m", model, "--lines", folder)
    assert len(verdicts(found)) == 1
    assert found.err == (
        f"nbspam: {folder}: is a folder, so each of its files is read as one message, not as"
        " lines\n"
    )
    assert nbspam("classify", "-m", model, "--input-format", "message", folder).err == ""
    options = ("--update", "--ham", folder, "-m", model, "--input-format", "mbox")
    assert nbspam("train", "-q", *options) == (0, "", "")


def test_what_a_config_file_sets_is_a_default_for_other_formats(
    nbspam, model, tmp_path, own_home, monkeypatch
):
    path = own_home / "own.toml"
    path.write_text("lines = true\ntext-column = '2'\nencoding = 'utf-8'\n")
    path.chmod(0o600)
    monkeypatch.setenv("NBSPAM_CONFIG", str(path))
    assert nbspam("config").err == ""
    box = b"From a@example.org Mon Nov 20 10:00:00 2023\n" + MAIL
    for options, content, n in (
        (("--input-format", "mbox"), box, 1),
        (("--input-format", "tsv"), TABLE.encode(), 3),
        (("--input-format", "message"), MAIL, 1),
        ((), TABLE.encode(), 3),
        (("-p",), MAIL, None),
    ):
        found = nbspam("classify", "-m", model, *options, stdin=content)
        assert (found.code, found.err) == (0, "")
        assert n is None or len(verdicts(found)) == n
    table = tmp_path / "table.tsv"
    table.write_text("label\ttext\nham\tsee you\n")
    found = nbspam("classify", "-m", model, "--text-column", "text", table)
    assert [source for _, source in verdicts(found)] == [f"{table}:2"]
    (tmp_path / "mails").mkdir()
    (tmp_path / "mails" / "1").write_bytes(MAIL)
    assert nbspam("classify", "-m", model, tmp_path / "mails").err == ""


def test_lines_is_short_for_a_format(nbspam, model, assert_sentence):
    short = nbspam("classify", "-m", model, "--lines", stdin=b"win\nlunch\n")
    assert len(short.out.splitlines()) == 2
    assert short == nbspam(
        "classify", "-m", model, "--input-format", "lines", stdin=b"win\nlunch\n"
    )
    found = nbspam("classify", "-m", model, "--lines", "--input-format", "tsv")
    assert_sentence(found, "--lines is short for --input-format lines", code=2)


@pytest.mark.few(1)
@pytest.mark.parametrize("times", [2, 10])
def test_a_table_of_many_rows_is_the_same_through_a_pipe(program, sms_model, sample, times):
    """Several processes, whose messages a pause must not hold back or put out of order."""
    rows = (sample / "sms.tsv").read_text() * times
    found = program(
        "classify", "-m", sms_model, "--input-format", "tsv", "-j", "2", input=rows.encode()
    )
    sources = [source for _, source in verdicts(found)]
    assert sources == [f"-:{n}" for n in range(1, len(sources) + 1)]
    assert len(sources) == 304 * times


@pytest.mark.few(1)
@pytest.mark.parametrize("option, line", [("lines", "win a prize"), ("tsv", "ham\twin a prize")])
def test_each_line_is_answered_at_once(sms_model, option, line):
    """As of `tail -f`: more lines than are done before processes are started, too."""
    command = [sys.executable, "-m", "nbspam", "classify", "-m", str(sms_model), "-j", "2"]
    with (
        subprocess.Popen(
            [*command, "--input-format", option, "-"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        ) as run,
        contextlib.closing(run.stdin),
    ):
        for n in range(1, 9):
            run.stdin.write(f"{line}\n".encode())
            started = time.monotonic()
            assert run.stdout.readline().endswith(f"\t-:{n}\n".encode())
            assert time.monotonic() - started < 20  # it would wait for ever


# Labels


def test_the_1_of_a_column_called_is_spam_may_be_the_spam_label(nbspam, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text,is_spam\n" + "see you at noon,0\nwin a free prize,1\n" * 9)
    found = nbspam("train", path, "--spam-label", "1", "-m", tmp_path / "m.json")
    assert found.code == 0, found.err
    assert "(ham: 9, spam: 9)" in found.sentences
    found = nbspam("eval", "--leave-one-out", "--spam-label", "yes", path)
    assert "(ham: 9, spam: 9)" in found.sentences


@in_turn(
    "answers",
    [("0", "1"), ("0.0", "1.0"), ("N", "Y"), ("no", "Yes"), ("FALSE", "True"), ("f", "t")],
)
@in_turn("name", ["spam", "is_spam"])
def test_a_column_called_spam_answers_yes_or_no(nbspam, tmp_path, answers, name):
    no, yes = answers
    path = tmp_path / "a.csv"
    path.write_text(f"text,{name}\n" + f"see you at noon,{no}\nwin a free prize,{yes}\n" * 9)
    found = nbspam("train", "--replace", path, "-m", tmp_path / "m.json")
    assert found.code == 0, found.err
    assert "(ham: 9, spam: 9)" in found.out


def test_a_column_of_numbers_with_a_gap_is_as_pandas_writes_it(nbspam, tmp_path):
    import pandas as pd

    texts = ["see you at noon", "win a free prize", "who is this"] * 6
    frame = pd.DataFrame({"text": texts, "is_spam": [0, 1, None] * 6})
    frame.to_csv(tmp_path / "a.csv")
    found = nbspam("train", tmp_path / "a.csv", "-m", tmp_path / "m.json")
    assert "(ham: 6, spam: 6)" in found.out
    assert "the row has no label" in found.err


def test_its_0_is_not_and_the_sentence_says_why(nbspam, tmp_path, assert_sentence):
    path = tmp_path / "a.csv"
    path.write_text("text,is_spam\nsee you at noon,0\nwin a free prize,1\n")
    found = nbspam("train", path, "--spam-label", "0", "-m", tmp_path / "m.json")
    assert_sentence(found, "'0', which in a column called spam means ham", "'ham', 'spam'")


def test_a_header_with_unknown_names_is_said_once(nbspam, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("outcome,body_text\n" + "ham,see you at noon\nspam,win a free prize\n" * 9)
    found = nbspam("train", path, "-m", tmp_path / "m.json")
    assert "(ham: 9, spam: 9)" in found.sentences
    assert found.err == (
        f"nbspam: {path}: its first row names the columns (outcome, body_text); add"
        " --header-row no if that is a message\n"
    )
    found = nbspam("train", path, "--header-row", "no", "-m", tmp_path / "n.json")
    assert "(ham: 9, outcome: 1, spam: 9)" in found.sentences
    assert nbspam("train", "-q", path, "-m", tmp_path / "q.json").err == ""
