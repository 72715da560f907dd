"""Tables, lines and lists of files on standard input, from the shell's side."""

import contextlib
import os
import subprocess
import sys
import time

import pytest
from one_case import each

TABLE = b"ham\tsee you at noon\nspam\twin a free prize\nham\tlunch at the meeting\n"
MAIL = b"Subject: hello\n\nlunch at noon\n"
BOX = b"From a@example.org Mon Nov 20 10:00:00 2023\n" + MAIL


@pytest.fixture
def classify(nbspam, model):
    """Return a function that classifies: with options between blanks, and sources."""

    def run(options="", *sources, stdin=TABLE):
        return nbspam("classify", "-m", model, *options.split(), *sources, stdin=stdin)

    return run


def sources(found):
    assert found.code == 0, found.err
    return [line.split("\t")[2] for line in found.out.splitlines()]


def test_a_table_is_classified_row_by_row_if_it_is_called_one(nbspam, model, classify):
    found = classify("--input-format tsv")
    assert (sources(found), found.err) == (["-:1", "-:2", "-:3"], "")
    found = classify()
    assert sources(found) == ["-"]
    assert found.err == (
        "nbspam: standard input looks like a table of 2 columns; it was read as one message; add"
        " --input-format tsv to read each of them\n"
    )
    learn = ("train", "--update", "--spam", "-", "-m", model)
    found = nbspam(*learn, stdin=TABLE)
    assert (found.code, "looks like a table" in found.err) == (0, True)
    assert nbspam(*learn, "-q", stdin=b"a\tb\nc\td\n").err == ""


@each("command", [("classify", "-p"), ("classify", "-p", "--exit-code")])
@each("content", [TABLE, b'{"text": "a"}\n{"text": "b"}\n'])
def test_a_passage_says_nothing_of_it(nbspam, model, command, content):
    found = nbspam(*command, "-m", model, stdin=content)
    assert (found.err, found.out.count("X-Nbspam:")) == ("", 1)
    assert found.out.encode().endswith(content)


def test_an_exit_code_is_of_the_whole_message(classify):
    """Who sends a message must not choose which part of it counts."""
    found = classify("--exit-code", stdin=BOX + b"\n" + BOX)
    assert len(found.out.splitlines()) == 1
    assert "looks like an mbox of several messages" in found.err


@each("options", ["--input-format tsv", "", "--text-column 2 --label-column 1 --header-row no"])
def test_a_table_is_learned_from_standard_input(nbspam, table, tmp_path, options):
    ours, theirs = tmp_path / "ours.json", tmp_path / "theirs.json"
    train = ("train", "--replace", "-m")
    found = nbspam(*train, ours, *options.split(), "-", stdin=table.read_bytes())
    assert found.code == 0, found.err
    assert nbspam(*train, theirs, table).out.replace("theirs", "ours") == found.out
    assert ours.read_bytes() == theirs.read_bytes()


def test_other_commands_read_a_table_too(nbspam, model, table):
    options = ("--input-format", "tsv", "-m", model)
    found = nbspam("eval", *options, "-", stdin=table.read_bytes())
    assert found.out == nbspam("eval", "-m", model, table).out
    found = nbspam("explain", *options, stdin=TABLE)
    assert found.out.startswith("-:1: ")
    assert "- contains several messages; this is -:1, the first" in found.err
    found = nbspam("explain", *options, "--", "-:2", stdin=TABLE)
    assert found.out.startswith("-:2: ")
    found = nbspam("train", "--update", "-", *options, stdin=TABLE)
    assert "learned 3 new messages" in found.sentences
    assert "forgot 3 messages" in nbspam("forget", "-", *options, stdin=TABLE).sentences


# Lists of files


@pytest.fixture
def file_list(tmp_path):
    """Return a file that names two mails, and their names."""
    names = [tmp_path / f"{n}.eml" for n in (1, 2)]
    for name in names:
        name.write_bytes(MAIL.replace(b"noon", name.stem.encode()))
    path = tmp_path / "list.txt"
    path.write_text("".join(f"{name}\n" for name in names))
    return path, list(map(str, names))


def test_a_list_of_which_nothing_can_be_read_is_a_failure(classify, file_list, tmp_path):
    (_, [mail, _]), missing = file_list, tmp_path / "nosuch.eml"
    found = classify("--input-format files -", stdin=f"{missing}\n".encode())
    assert (found.code, found.out) == (1, "")
    assert f"-:1: cannot read '{missing}' (No such file or directory)" in found.err
    found = classify("--input-format files -", stdin=f"{missing}\n{mail}\n".encode())
    assert sources(found) == [mail]  # some could be
    assert "nosuch.eml" in found.err
    assert classify("--input-format files -", stdin=b"") == (0, "", "")


def test_a_list_is_read_from_standard_input_or_a_file(nbspam, model, classify, sample, file_list):
    odd = sorted(map(str, (sample / "odd").glob("*.eml")))
    listed = b"".join(os.fsencode(name) + b"\0" for name in odd)
    assert sources(classify("--input-format files0", stdin=listed)) == odd
    assert "looks like a list of files" in classify(stdin=listed).err
    path, names = file_list
    found = classify("--input-format files", path)
    assert sources(found) == names
    assert found == classify("--input-format files", stdin=path.read_bytes())
    options = ("-m", model, "--input-format", "files")
    found = nbspam("explain", *options, path)
    assert found.out.startswith(f"{names[0]}: ")
    assert found.err == f"nbspam: {path} contains several messages; this is {names[0]}, the first\n"
    found = nbspam("eval", *options, "--ham", path, "--format", "json")
    assert '"messages": 2' in found.out
    found = nbspam("train", "--update", *options, "--ham", path)
    assert "learned 2 new messages" in found.out
    assert "forgot 2 messages" in nbspam("forget", *options, path).out


def test_what_a_list_cannot_be(nbspam, classify, file_list, tmp_path, assert_sentence):
    path, _ = file_list
    found = classify("--input-format files0", path)
    assert_sentence(found, path, "ends with a line end", "; read it with --input-format files\n")
    listed = path.read_bytes().replace(b"\n", b"\0")
    found = nbspam("train", "--update", "--ham", "-", "--input-format", "files", stdin=listed)
    assert_sentence(found, "-: ", "ends with NUL", "; read it with --input-format files0\n")
    found = nbspam("train", "--input-format", "files", path, "-m", tmp_path / "new.json")
    assert_sentence(found, path, "the files of a list have no labels", "--spam or --ham")


# Options beside a format


@each(
    "options, said",
    [
        *((f"{option} {of}", f"{option.split()[0]} has no effect with {of}")
          for option, of in (("--text-column a", "--input-format mbox"),
                             ("--label-column a", "--lines"),
                             ("--header-row no", "--input-format jsonl"),
                             ("--encoding utf-8", "--input-format parquet"),
                             ("--encoding utf-8", "--input-format message"),
                             ("--outside", "--input-format tsv"))),
        ("--text-column a", "--text-column applies to tables only"),
        ("--encoding utf-8", "--encoding applies to tables only"),
    ],
)  # fmt: skip
@each("command", ["classify", "classify -", "explain", "forget", "train --update --ham -"])
def test_an_option_without_a_use_is_refused(nbspam, model, assert_sentence, command, options, said):
    before = model.read_bytes()
    found = nbspam(*command.split(), "-m", model, *options.split(), stdin=TABLE)
    assert_sentence(found, said, "leave", code=2)
    assert model.read_bytes() == before


def test_an_option_with_a_use_is_taken(classify, table):
    for options in (
        "--input-format tsv --text-column 2 --header-row no",
        "--input-format tsv --encoding utf-8",
        "--lines --encoding utf-8",
    ):
        assert classify(options).code == 0
    options = "--input-format files --text-column 2 --outside --encoding utf-8"
    assert classify(options, stdin=f"{table}\n".encode()).code == 0


def test_seen_is_of_mailboxes(nbspam, model, assert_sentence):
    arguments = ("train", "--update", "--ham", "-", "-m", model, "--seen", "--input-format")
    found = nbspam(*arguments, "tsv", stdin=TABLE)
    assert_sentence(found, "--seen has no effect with --input-format tsv", code=2)
    assert nbspam(*arguments, "mbox").code == 0


def test_a_folder_is_told_that_it_has_no_format(nbspam, model, classify, tmp_path):
    folder = tmp_path / "mails"
    folder.mkdir()
    (folder / "1").write_bytes(MAIL)
    found = classify("--lines", folder)
    assert len(sources(found)) == 1
    assert found.err == (
        f"nbspam: {folder}: is a folder, so each of its files is read as one message, not as"
        " lines\n"
    )
    assert classify("--input-format message", folder).err == ""
    options = ("--update", "--ham", folder, "-m", model, "--input-format", "mbox")
    assert nbspam("train", "-q", *options) == (0, "", "")


def test_what_a_config_file_sets_is_a_default_for_other_formats(
    nbspam, classify, tmp_path, own_home, monkeypatch
):
    path = own_home / "own.toml"
    path.write_text("lines = true\ntext-column = '2'\nencoding = 'utf-8'\n")
    path.chmod(0o600)
    monkeypatch.setenv("NBSPAM_CONFIG", str(path))
    assert nbspam("config").err == ""
    for options, content, n in (
        ("--input-format mbox", BOX, 1),
        ("--input-format tsv", TABLE, 3),
        ("--input-format message", MAIL, 1),
        ("", TABLE, 3),
        ("-p", MAIL, None),
    ):
        found = classify(options, stdin=content)
        assert (found.code, found.err) == (0, "")
        assert n is None or len(sources(found)) == n
    table = tmp_path / "table.tsv"
    table.write_text("label\ttext\nham\tsee you\n")
    assert sources(classify("--text-column text", table)) == [f"{table}:2"]
    (tmp_path / "mails").mkdir()
    (tmp_path / "mails" / "1").write_bytes(MAIL)
    assert classify("", tmp_path / "mails").err == ""


def test_lines_is_short_for_a_format(classify, assert_sentence):
    short = classify("--lines", stdin=b"win\nlunch\n")
    assert len(short.out.splitlines()) == 2
    assert short == classify("--input-format lines", stdin=b"win\nlunch\n")
    found = classify("--lines --input-format tsv")
    assert_sentence(found, "--lines and --input-format tsv cannot be used together", code=2)


# Through a pipe


@pytest.mark.long
def test_a_table_of_many_rows_is_the_same_through_a_pipe(program, sms_model, sample):
    """Several processes, whose messages a pause must not hold back or put out of order."""
    rows = (sample / "sms.tsv").read_text() * 10
    options = ("-m", sms_model, "--input-format", "tsv", "-j", "2")
    found = program("classify", *options, input=rows.encode())
    assert sources(found) == [f"-:{n}" for n in range(1, 3_041)]


@pytest.mark.few(1)
@pytest.mark.parametrize("option, line", [("lines", "win a prize"), ("tsv", "ham\twin a prize")])
def test_each_line_is_answered_at_once(sms_model, option, line):
    """As of `tail -f`: more lines than are done before processes are started, too."""
    command = [sys.executable, "-m", "nbspam", "classify", "-m", str(sms_model), "-j", "2"]
    command += ["--input-format", option, "-"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "bufsize": 0}
    with subprocess.Popen(command, **pipes) as run, contextlib.closing(run.stdin):
        for n in range(1, 9):
            run.stdin.write(f"{line}\n".encode())
            started = time.monotonic()
            assert run.stdout.readline().endswith(f"\t-:{n}\n".encode())
            assert time.monotonic() - started < 20  # it would wait for ever


# Labels


@pytest.fixture
def labelled(nbspam, tmp_path):
    """Return a function that trains on a table with a header."""

    def train(text, *options):
        (tmp_path / "a.csv").write_text(text)
        return nbspam("train", "--replace", tmp_path / "a.csv", *options, "-m", tmp_path / "m.json")

    return train


@each(
    "answers",
    [("0", "1"), ("0.0", "1.0"), ("N", "Y"), ("no", "Yes"), ("FALSE", "True"), ("f", "t")],
)
@each("name", ["spam", "is_spam"])
def test_a_column_called_spam_answers_yes_or_no(labelled, answers, name):
    no, yes = answers
    found = labelled(f"text,{name}\n" + f"see you at noon,{no}\nwin a free prize,{yes}\n" * 9)
    assert found.code == 0, found.err
    assert "(ham: 9, spam: 9)" in found.out


def test_the_1_of_a_column_called_is_spam_may_be_the_spam_label(
    nbspam, labelled, tmp_path, assert_sentence
):
    text = "text,is_spam\n" + "see you at noon,0\nwin a free prize,1\n" * 9
    found = labelled(text, "--spam-label", "1")
    assert (found.code, "(ham: 9, spam: 9)" in found.sentences) == (0, True)
    found = nbspam("eval", "--leave-one-out", "--spam-label", "yes", tmp_path / "a.csv")
    assert "(ham: 9, spam: 9)" in found.sentences
    found = labelled(text, "--spam-label", "0")
    assert_sentence(found, "'0', which in a column called spam means ham", "'ham', 'spam'")


def test_a_column_of_numbers_with_a_gap_is_as_pandas_writes_it(labelled):
    rows = "0,see you at noon,0.0\n1,win a free prize,1.0\n2,who is this,\n"
    found = labelled(",text,is_spam\n" + rows * 6)
    assert "(ham: 6, spam: 6)" in found.out
    assert "the row has no label" in found.err


def test_a_header_with_unknown_names_is_said_once(labelled, tmp_path):
    text = "outcome,body_text\n" + "ham,see you at noon\nspam,win a free prize\n" * 9
    found = labelled(text)
    assert "(ham: 9, spam: 9)" in found.sentences
    assert found.err == (
        f"nbspam: {tmp_path}/a.csv: its first row names the columns (outcome, body_text); add"
        " --header-row no if that is a message\n"
    )
    found = labelled(text, "--header-row", "no")
    assert "(ham: 9, outcome: 1, spam: 9)" in found.sentences
    assert labelled(text, "-q").err == ""
