"""Sources of every kind, and what cannot be read of them."""

import bz2
import contextlib
import gzip
import io
import lzma
import os
import pickle
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from one_case import each

from nbspam.errors import Remedy, SourceError
from nbspam.reading.message import RawMessage
from nbspam.reading.source import NAMED_LIMIT, ReadingRequest, Skips, Source
from nbspam.reading.sources import (
    ReadingOptions,
    TableOptions,
    any_kind,
    labelled,
    recognised,
    unlabelled,
)

SAMPLES = Path(__file__).parents[2] / "sample_data" / "mail"
MAIL = b"Subject: hello\n\nthe body\n"
BOX = b"".join(
    b"From a@example.org Mon Nov 20 10:00:00 2023\nSubject: %d\n\ntext %d\n\n" % (n, n)
    for n in (1, 2, 3)
)
PLAIN = ReadingOptions()
LINES = ReadingOptions(input_format="lines")
Found = list[tuple[str, str | None]]


def put(root, *names, content=MAIL):
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def found(raws, root):
    """Sources, relative to the folder, and labels; each message must be readable."""
    pairs = []
    for raw in raws:
        assert raw.message().parts
        pairs.append((raw.source.removeprefix(f"{root}/"), raw.label))
    return pairs


def with_labels(source, root, skips=None):
    return found(labelled(str(source), PLAIN, skips or Skips(strict=True)), root)


def without(source, root, skips=None, options=PLAIN):
    raws = unlabelled(str(source), "spam", options, skips or Skips(strict=True))
    return [(name, label) for name, label in found(raws, root) if label == "spam"]


def texts(raws):
    return [raw.message().parts[0].text for raw in raws]


class Input:
    """Stands for sys.stdin."""

    closed = False

    def __init__(self, content):
        self.buffer = io.BytesIO(content)


def stdin(content, monkeypatch):
    monkeypatch.setattr(sys, "stdin", Input(content))


@contextlib.contextmanager
def piped(path, content):
    """Return a named pipe into which somebody writes."""
    if not path.exists():
        os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(content,))
    writer.start()
    yield path
    writer.join()


# Kinds


def test_any_file_folder_or_pipe_is_of_a_kind(tmp_path):
    put(tmp_path, "file", content=bytes(range(256)))
    put(tmp_path, "folder/file")
    os.mkfifo(tmp_path / "pipe")
    for name in ("file", "folder", "pipe"):
        source = Source(str(tmp_path / name))
        for has_label in (False, True):
            kind = recognised(source, ReadingRequest(PLAIN, Skips(), "ham", has_label))
            assert not kind.has_labels


def test_standard_input_loads_no_other_kind():
    code = (
        "import sys; from nbspam.reading import sources; from nbspam.reading.source import Skips;"
        "list(sources.any_kind('-', sources.ReadingOptions(), Skips()));"
        "print(*(name for name in sys.modules if name.startswith('nbspam.reading.')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=b"hello", capture_output=True, check=True
    )
    loaded = {name.removeprefix("nbspam.reading.") for name in done.stdout.decode().split()}
    assert "source" in loaded
    assert not loaded & {"tables", "rows", "mail"}


# With labels


@each("name", ["a.tsv", "SMSCollection"])
def test_table_has_labels_whatever_its_name(name, tmp_path):
    put(tmp_path, name, content=b'ham\tone\nspam\ttwo\nham\t"three\n')
    labels = ["ham", "spam", "ham"]
    expected = [(f"{name}:{line}", label) for line, label in enumerate(labels, 1)]
    assert with_labels(tmp_path / name, tmp_path) == expected


def test_folder_or_maildir_per_class(tmp_path):
    put(tmp_path, "Ham/2", "Ham/1", "spam/deep/er/x", "promo/y", ".git/config", "README")
    assert with_labels(tmp_path, tmp_path) == [
        *(("Ham/1", "ham"), ("Ham/2", "ham"), ("promo/y", "promo"), ("spam/deep/er/x", "spam")),
    ]
    other = tmp_path / "maildirs"
    put(other, "ham/cur/1:2,S", "ham/new/2", "ham/tmp/3", "spam/cur/4", "spam/new/5")
    assert with_labels(other, other) == [
        *(("ham/cur/1:2,S", "ham"), ("ham/new/2", "ham"), ("spam/cur/4", "spam")),
        ("spam/new/5", "spam"),
    ]


@each("name", ["full.index", "index", "list"])
def test_index_whose_missing_files_and_bad_lines_are_skipped_and_named(name, tmp_path):
    put(tmp_path, "data/1", "data/2 with blanks")
    lines = b"spam gone\nspam ../data/1\r\nHAM ../data/2 with blanks\r\n\r\n"
    bad = b"oops\n\x02\x00 1\n" if "index" in name else b""
    put(tmp_path, f"full/{name}", content=lines + bad)
    index, skips = tmp_path / "full" / name, Skips()
    pairs = with_labels(index, tmp_path, skips)
    assert pairs == [("full/../data/1", "spam"), ("full/../data/2 with blanks", "ham")]
    said = [
        f"{index}:1: there is no file {tmp_path}/full/gone",
        f"{index}:5: the line is not a label and a path",
        f"{index}:6: the label has no printable character",
    ]
    assert skips.named == (said if bad else said[:1])
    with pytest.raises(
        SourceError, match=r":1: there is no file .*gone; .*without strict to skip it$"
    ):
        with_labels(index, tmp_path)


@each(
    "line",
    ["spam /etc/passwd", "spam ../../elsewhere/1", "ham link", "ham linked/1", "ham ../../no"],
)
def test_a_file_outside_an_index_must_be_allowed(line, tmp_path):
    """Whoever wrote the index must not choose what else of its reader's files is learned."""
    put(tmp_path, "elsewhere/1", "corpus/full/1")
    (tmp_path / "corpus/full/link").symlink_to("../../elsewhere/1")
    (tmp_path / "corpus/full/linked").symlink_to("../../elsewhere")
    put(tmp_path, "corpus/full/index", content=f"spam 1\n{line}\n".encode())
    index = tmp_path / "corpus/full/index"
    path, where = line.partition(" ")[2], tmp_path / "corpus"
    said = f"index:2: {path} is outside {where}, the folder above the index's own; copy the file"
    with pytest.raises(SourceError, match=re.escape(said)):
        with_labels(index, tmp_path, Skips())
    with pytest.raises(SourceError, match="is outside"):
        list(any_kind(str(index), ReadingOptions(), Skips()))
    found = labelled(str(index), ReadingOptions(outside=True), Skips())
    assert len(list(found)) == (1 if "no" in line else 2)


def test_a_linked_index_and_files_of_any_name_are_within(tmp_path):
    put(tmp_path, "corpus/data/1", "corpus/1", "corpus/full/deep/1", "corpus/full/..1")
    paths = ("../data/1", "../1", "deep/1", "..1", "../full/../data/../1", "a\0b")
    lines = "".join(f"spam {path}\n" for path in paths)
    put(tmp_path, "corpus/full/index", content=lines.encode())
    (tmp_path / "link").symlink_to("corpus")
    skips = Skips()
    assert len(with_labels(tmp_path / "link/full/index", tmp_path, skips)) == 5
    assert "there is no file" in skips.named[0]


def test_folder_without_classes_is_an_error_and_names_with_nothing_to_show_are_none(tmp_path):
    put(tmp_path, "1", "ham/2", "\x01/3")
    skips = Skips()
    assert with_labels(tmp_path, tmp_path, skips) == [("ham/2", "ham")]
    assert "/\ufffd: the folder's name" in skips.named[-1]
    put(tmp_path / "no", "1", ".hidden/2")
    put(tmp_path / "maildir", "cur/a:2,S", "new/b", "tmp/c")
    for folder in (tmp_path / "no", tmp_path / "maildir"):
        with pytest.raises(SourceError, match="the folder has no sub-folder for each class; give"):
            list(labelled(str(folder), PLAIN, Skips()))


@each(
    "content, what",
    [(BOX, "an mbox"), (MAIL, "one mail"), (b"", "an empty file"), (b"just text\n", "the file")],
)
def test_file_without_labels_is_an_error_that_says_what_it_is(content, what, tmp_path):
    put(tmp_path, "thing", content=content)
    with pytest.raises(
        SourceError, match=rf"thing: {what} has no labels; give its messages with a label, or"
    ):
        with_labels(tmp_path / "thing", tmp_path)


def test_pipe_as_a_table_or_without_labels(tmp_path, monkeypatch):
    with piped(tmp_path / "pipe", b"ham\thello you\nspam\twin now\n") as pipe:
        raws = list(labelled(str(pipe), PLAIN, Skips()))
    assert [(raw.source, raw.label) for raw in raws] == [
        (f"{pipe}:1", "ham"),
        (f"{pipe}:2", "spam"),
    ]
    told = "has no labels that can be recognised; give its messages"
    with piped(pipe, MAIL), pytest.raises(SourceError, match=f"pipe: the pipe {told}"):
        list(labelled(str(pipe), PLAIN, Skips()))
    stdin(MAIL, monkeypatch)
    with pytest.raises(SourceError, match=f"^-: standard input {told}"):
        list(labelled("-", PLAIN, Skips()))


# Without labels


PACKED = each("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])


@PACKED
def test_mbox(pack, tmp_path):
    put(tmp_path, "box", content=pack(BOX))
    assert without(tmp_path / "box", tmp_path) == [(f"box:{i}", "spam") for i in (1, 2, 3)]


@PACKED
@each("content", [MAIL, b"bare text\n", b"", b"\tindented\n\ttext\n"])
def test_one_message(content, pack, tmp_path):
    put(tmp_path, "mail", content=pack(content))
    assert without(tmp_path / "mail", tmp_path) == [("mail", "spam")]
    assert found(any_kind(str(tmp_path / "mail"), PLAIN, Skips()), tmp_path) == [("mail", None)]


def test_folders_hold_one_message_a_file_and_a_maildir_those_of_cur_and_new(tmp_path):
    assert without(tmp_path, tmp_path) == []
    put(tmp_path, "b", "a/2", "a/1/x", ".DS_Store", ".cache/y", "c/.hidden")
    put(tmp_path, "a.eml", "c/box", content=BOX)
    put(tmp_path, "c/d.tsv", content=b"ham\tone\n")
    names = ["a/1/x", "a/2", "a.eml", "b", "c/box", "c/d.tsv"]
    assert sorted(without(tmp_path, tmp_path)) == sorted((name, "spam") for name in names)
    assert without(tmp_path / "a.eml", tmp_path) == [("a.eml", "spam")]
    box = tmp_path / "maildir"
    put(box, "cur/b:2,S", "cur/a:2,", "new/c", "tmp/d", ".Junk/cur/e", "dovecot.index", "cur/.f")
    assert without(box, box) == [("cur/a:2,", "spam"), ("cur/b:2,S", "spam"), ("new/c", "spam")]
    for label, n in (("ham", 81), ("spam", 40)):
        assert len(list(unlabelled(str(SAMPLES / f"{label}.mbox"), label, PLAIN, Skips()))) == n


def test_lines_and_a_table_that_is_not_taken_without_its_labels(tmp_path):
    put(tmp_path, "a.csv", content="one, é\r\n\n  \nSubject: two".encode())
    raws = list(unlabelled(str(tmp_path / "a.csv"), "spam", LINES, Skips(strict=True)))
    assert [raw.source.rpartition(":")[2] for raw in raws] == ["1", "4"]
    assert texts(iter(raws)) == ["one, é", "Subject: two"]
    put(tmp_path, "a.csv", content=b"ham,x\n")
    told = r"a\.csv: a table has labels of its own; give it without a label$"
    with pytest.raises(SourceError, match=told):
        without(tmp_path / "a.csv", tmp_path)


def test_standard_input_is_one_message_or_lines(monkeypatch):
    stdin(BOX, monkeypatch)
    assert list(unlabelled("-", "spam", PLAIN, Skips())) == [RawMessage("-", "spam", BOX)]
    stdin(b"one\r\n\ncaf\xc3\xa9\ncaf\xe9", monkeypatch)
    raws = [tuple(raw) for raw in any_kind("-", LINES, Skips())]
    assert raws == [("-:1", None, "one"), ("-:3", None, "café"), ("-:4", None, "café")]


def test_standard_input_that_is_closed(monkeypatch):
    sentence = "^-: standard input is closed; pipe a message in, or name a file$"
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(SourceError, match=sentence):
        list(unlabelled("-", "spam", PLAIN, Skips()))
    closed = io.TextIOWrapper(io.BytesIO())
    closed.close()
    monkeypatch.setattr(sys, "stdin", closed)
    with pytest.raises(SourceError, match=sentence):
        list(unlabelled("-", "spam", PLAIN, Skips()))


def test_standard_input_that_is_a_folder(monkeypatch, tmp_path):
    descriptor = os.open(tmp_path, os.O_RDONLY)

    class Folder(io.RawIOBase):
        def readable(self):
            return True

        def readinto(self, buffer):
            return len(os.read(descriptor, 1))

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(Folder())))
    with pytest.raises(
        SourceError, match=r"^-: standard input cannot be read \(Is a directory\); "
    ):
        list(unlabelled("-", "spam", PLAIN, Skips()))
    os.close(descriptor)


@each("options, expected", [(PLAIN, ["one\ntwo\n"]), (LINES, ["one", "two"])])
def test_named_pipe(options, expected, tmp_path):
    with piped(tmp_path / "pipe", b"one\ntwo\n") as pipe:
        assert texts(any_kind(str(pipe), options, Skips())) == expected


# Any kind


def test_any_kind_takes_labels_where_there_are_any(tmp_path):
    put(tmp_path, "a.tsv", content=b"ham\tone\nspam\ttwo\n")
    put(tmp_path, "b.csv", content=b"text\none\n")
    put(tmp_path, "c", content=BOX)
    put(tmp_path, "d.index", content=b"spam c\n")

    def kinds(name):
        return found(any_kind(str(tmp_path / name), PLAIN, Skips(strict=True)), tmp_path)

    assert kinds("a.tsv") == [("a.tsv:1", "ham"), ("a.tsv:2", "spam")]
    assert kinds("b.csv") == [("b.csv:2", None)]
    assert kinds("c") == [("c:1", None), ("c:2", None), ("c:3", None)]
    assert kinds("d.index") == [("c", "spam")]
    assert kinds(".") == [("a.tsv", None), ("b.csv", None), ("c", None), ("d.index", None)]


@each(
    "content",
    [
        b"PAR1 is how it begins\n",
        b"PAR1\nSubject: x\n\nhello\nPAR1",
        b"spam c\n",
        b"spam /etc/passwd\n",
    ],
)
@each("name", ["message", "message.eml"])
def test_a_message_does_not_choose_how_it_is_read(tmp_path, content, name):
    """Nor does it name files that are read in its place."""
    put(tmp_path, "c", content=BOX)
    put(tmp_path, name, content=content)
    for messages in (
        any_kind(str(tmp_path / name), PLAIN, Skips(strict=True)),
        unlabelled(str(tmp_path / name), None, PLAIN, Skips(strict=True)),
    ):
        assert found(messages, tmp_path) == [(name, None)]


# What cannot be read

READERS = [
    lambda source: list(labelled(source, PLAIN, Skips())),
    lambda source: list(unlabelled(source, "spam", PLAIN, Skips())),
    lambda source: list(unlabelled(source, "spam", LINES, Skips())),
    lambda source: list(any_kind(source, PLAIN, Skips())),
]
EVERY = each("read", READERS)


@EVERY
@each(
    "name, sentence",
    [
        ("nowhere", r"nowhere: no such file or folder; check the name$"),
        ("dangling", r"dangling: no such file or folder; check the name$"),
        ("link", r"link: cannot be read \(Too many .*\); check its"),
        ("mail/x", r"x: cannot be read \(Not a directory\); check its"),
        ("a\x00b", r"cannot be read .*; check its permissions$"),
        ("x" * 5000, r"cannot be read .*; check its permissions$"),
        ("a.txt.gz", r"a\.txt\.gz: cannot be read \(damaged archive: .+\); "),
    ],
)
def test_what_is_not_there_or_damaged(read, name, sentence, tmp_path):
    (tmp_path / "dangling").symlink_to("nothing")
    (tmp_path / "link").symlink_to("link")
    put(tmp_path, "mail")
    put(tmp_path, "a.txt.gz", content=gzip.compress(bytes(1000))[:-9] + b"123456789")
    with pytest.raises(SourceError, match=sentence):
        read(f"{tmp_path}/{name}")


def test_file_that_may_not_be_opened(tmp_path, monkeypatch):
    put(tmp_path, "closed")

    def refuse(path, mode):
        raise PermissionError(13, "Permission denied", str(path))

    for read in READERS:
        with (
            monkeypatch.context() as patched,
            pytest.raises(
                SourceError, match=r"closed: cannot be read \(Permission denied\); check"
            ),
        ):
            patched.setattr(Path, "open", refuse)
            # Whoever names a file leaves it to others to read it.
            for raw in read(str(tmp_path / "closed")):
                raw.message()


@each("error", [PermissionError(13, "Permission denied"), OSError(5, "I/O error")])
def test_folder_that_fails(error, tmp_path, monkeypatch):
    def iterdir(path):
        error.filename = str(path)
        raise error

    monkeypatch.setattr(Path, "iterdir", iterdir)
    said = rf"{tmp_path.name}: cannot be read \({error.strerror}\); "
    with pytest.raises(SourceError, match=said):
        without(tmp_path, tmp_path)


def test_folder_in_a_folder_that_may_not_be_read_is_skipped_and_named(tmp_path, monkeypatch):
    put(tmp_path, "a", "closed/b", "d")
    iterdir = Path.iterdir

    def guarded(path):
        if path.name == "closed":
            raise PermissionError(13, "Permission denied", str(path))
        return iterdir(path)

    monkeypatch.setattr(Path, "iterdir", guarded)
    skips = Skips()
    assert without(tmp_path, tmp_path, skips) == [("a", "spam"), ("d", "spam")]
    assert skips.named == [f"{tmp_path}/closed: the folder cannot be read (Permission denied)"]


def test_damaged_archive_in_a_folder_is_named_when_it_is_read(tmp_path):
    put(tmp_path, "1", "3")
    put(tmp_path, "2.gz", content=gzip.compress(MAIL)[:-4])
    raws = list(unlabelled(str(tmp_path), "spam", PLAIN, Skips()))
    assert len(raws) == 3
    with pytest.raises(SourceError, match=r"2\.gz: cannot be read \(damaged archive: .+\); check"):
        raws[1].message()
    assert raws[0].message() == raws[2].message()


def test_encoding_that_nobody_knows(tmp_path):
    put(tmp_path, "a.tsv", content=b"ham\tx\n")
    options = ReadingOptions(TableOptions(encoding="martian"))
    told = r"a\.tsv: unknown encoding: martian; name another encoding$"
    with pytest.raises(SourceError, match=told):
        list(labelled(str(tmp_path / "a.tsv"), options, Skips()))


def test_what_was_skipped_is_counted_and_named():
    skips = Skips()
    assert skips.report() == []
    skips("b.eml", "cannot be read")
    one = ["skipped 1 item that could not be read:", "  b.eml: cannot be read"]
    assert skips.report() == one
    skips("a.tsv:3", "the row has no text")
    assert skips.count == 2
    assert skips.report() == [
        "skipped 2 items that could not be read:",
        "  b.eml: cannot be read",
        "  a.tsv:3: the row has no text",
    ]
    for number in range(998):
        skips(f"a.tsv:{number}", "bad")
    assert skips.count == 1000
    assert len(skips.report()) == NAMED_LIMIT + 2
    assert skips.report()[-1] == f"  … and {1000 - NAMED_LIMIT} more"


def test_strict_stops_at_the_first_and_no_name_commands_a_terminal_or_breaks_its_line():
    told = r"^a\.tsv:3: the row has no text; fix it, or read without strict to"
    with pytest.raises(SourceError, match=told):
        Skips(strict=True)("a.tsv:3", "the row has no text")
    skips = Skips()
    skips("a\nb\x1b[2J\x85", "cannot be read")
    assert skips.named == ["a\ufffdb\ufffd[2J\ufffd: cannot be read"]
    with pytest.raises(SourceError, match=r"^a.b: cannot be read; fix it"):
        Skips(strict=True)("a\nb", "cannot be read")


@each("count", [0, 1, NAMED_LIMIT - 1, NAMED_LIMIT, NAMED_LIMIT + 1, 40])
def test_two_halves_merged_equal_the_whole(count):
    for cut in {0, count // 3, count // 2, count}:
        whole, first, second = Skips(), Skips(), Skips()
        for number in range(count):
            for skips in (whole, first if number < cut else second):
                skips(f"a.tsv:{number}", "bad")
        first.merge(pickle.loads(pickle.dumps(second)))  # as from another process
        assert (first.count, first.named) == (whole.count, whole.named)
        assert first.report() == whole.report()
    strict = Skips(strict=True)
    strict.merge(whole)  # is no error
    assert strict.named == whole.named


def test_remedy_is_in_the_words_of_whoever_reports():
    skips = Skips()
    skips.note("ham.txt", "the file is not in the folder of a class", Remedy.GIVE_OUTSIDE_LABEL)
    assert skips.report({Remedy.GIVE_OUTSIDE_LABEL: "give it with --ham"})[1:] == [
        "  ham.txt: the file is not in the folder of a class; give it with --ham"
    ]
    assert skips.report()[1:] == [f"  {skips.named[0]}"]
    assert skips.named[0].endswith(f"; {Remedy.GIVE_OUTSIDE_LABEL.value}")
