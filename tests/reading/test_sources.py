"""Sources of every kind, and what cannot be read of them."""

import bz2
import contextlib
import gzip
import io
import lzma
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from golden_tables import golden_table
from one_case import each

from nbspam.errors import SourceError
from nbspam.reading.message import RawMessage
from nbspam.reading.source import (
    NAMED_LIMIT,
    ReadingOptions,
    Skips,
    TableOptions,
)
from nbspam.reading.sources import read_labelled, read_messages, read_unlabelled

MAIL = b"Subject: hello\n\nthe body\n"
BOX = b"".join(
    b"From a@example.org Mon Nov 20 10:00:00 2023\nSubject: %d\n\ntext %d\n\n" % (n, n)
    for n in (1, 2, 3)
)
PLAIN = ReadingOptions()
LINES = ReadingOptions(input_format="lines")


def put(root, *names, content=MAIL):
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def names(raws):
    """Return the sources; each message must be readable."""
    return [raw.source for raw in raws if raw.message().parts]


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


def test_standard_input_loads_no_other_kind():
    code = (
        "import sys; from nbspam.reading import sources; from nbspam.reading.source import Skips;"
        "list(sources.read_messages('-', sources.ReadingOptions(), Skips()));"
        "print(*(name for name in sys.modules if name.startswith('nbspam.reading.')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=b"hello", capture_output=True, check=True
    )
    loaded = {name.removeprefix("nbspam.reading.") for name in done.stdout.decode().split()}
    assert "source" in loaded
    assert not loaded & {"tables", "rows", "mail"}


# Files and folders

READ = {
    "labelled": lambda source, skips: read_labelled(source, PLAIN, skips),
    "spam": lambda source, skips: read_unlabelled(source, "spam", PLAIN, skips),
    "lines": lambda source, skips: read_unlabelled(source, "spam", LINES, skips),
    "any": lambda source, skips: read_messages(source, PLAIN, skips),
    "strict": lambda source, _: read_labelled(source, PLAIN, Skips(strict=True)),
}


@each("case, files, source, read, expected, skipped", golden_table("reading/sources.table", 6))
def test_sources_as_they_are(case, files, source, read, expected, skipped, tmp_path):
    """Files are mails unless their content is given; expected are labels and names, or an error."""

    def own(text):
        return text.replace(f"{tmp_path}/", "").replace(str(tmp_path), "{top}")

    for file in files.split("|"):
        name, _, content = file.partition("=")
        data = content.encode("latin-1").replace(b"<MAIL>", MAIL).replace(b"<BOX>", BOX)
        put(tmp_path, name, content=data if "=" in file else MAIL)
    for how in read.split():
        skips = Skips()
        try:
            raws = list(READ[how](str(tmp_path / source), skips))
            assert all(raw.message().parts for raw in raws)
            found = [f"{raw.label or '-'} {own(raw.source)}" for raw in raws]
        except SourceError as error:
            found = [own(str(error))]
        assert found == expected.split("|") * bool(expected), (case, how)
        said = skipped.split("|") * (skipped != "" and how != "strict")
        assert list(map(own, skips.named)) == said, (case, how)


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
    said = f"index:2: {path} is outside {where}, the folder above the index's own; allow it"
    with pytest.raises(SourceError, match=re.escape(said)):
        list(read_labelled(str(index), PLAIN, Skips()))
    with pytest.raises(SourceError, match="is outside"):
        list(read_messages(str(index), ReadingOptions(), Skips()))
    found = read_labelled(str(index), ReadingOptions(outside=True), Skips())
    assert len(list(found)) == (1 if "no" in line else 2)


def test_a_linked_index_and_files_of_any_name_are_within(tmp_path):
    put(tmp_path, "corpus/data/1", "corpus/1", "corpus/full/deep/1", "corpus/full/..1")
    paths = ("../data/1", "../1", "deep/1", "..1", "../full/../data/../1", "a\0b")
    lines = "".join(f"spam {path}\n" for path in paths)
    put(tmp_path, "corpus/full/index", content=lines.encode())
    (tmp_path / "link").symlink_to("corpus")
    skips = Skips()
    assert len(names(read_labelled(str(tmp_path / "link/full/index"), PLAIN, skips))) == 5
    assert "there is no file" in skips.named[0]


def test_pipe_as_a_table_or_without_labels(tmp_path, monkeypatch):
    with piped(tmp_path / "pipe", b"ham\thello you\nspam\twin now\n") as pipe:
        raws = list(read_labelled(str(pipe), PLAIN, Skips()))
    assert [(raw.source, raw.label) for raw in raws] == [
        (f"{pipe}:1", "ham"),
        (f"{pipe}:2", "spam"),
    ]
    told = "has no labels that can be recognised; give it with a label"
    with piped(pipe, MAIL), pytest.raises(SourceError, match=f"pipe: the pipe {told}"):
        list(read_labelled(str(pipe), PLAIN, Skips()))
    stdin(MAIL, monkeypatch)
    with pytest.raises(SourceError, match=f"^-: standard input {told}"):
        list(read_labelled("-", PLAIN, Skips()))


# Without labels


@each("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
@each("content, n", [(BOX, 3), (MAIL, 0), (b"bare text\n", 0), (b"", 0), (b"\ta\n\tb\n", 0)])
def test_an_mbox_or_one_message_packed_or_not(content, n, pack, tmp_path):
    put(tmp_path, "a", content=pack(content))
    expected = [f"{tmp_path}/a:{i}" for i in range(1, n + 1)] or [f"{tmp_path}/a"]
    for how, label in (("spam", "spam"), ("any", None)):
        raws = list(READ[how](f"{tmp_path}/a", Skips(strict=True)))
        assert names(raws) == expected
        assert {raw.label for raw in raws} == {label}


def test_standard_input_is_one_message_or_lines(monkeypatch):
    stdin(BOX, monkeypatch)
    assert list(read_unlabelled("-", "spam", PLAIN, Skips())) == [RawMessage("-", "spam", BOX)]
    stdin(b"one\r\n\ncaf\xc3\xa9\ncaf\xe9", monkeypatch)
    raws = [tuple(raw) for raw in read_messages("-", LINES, Skips())]
    assert raws == [("-:1", None, "one"), ("-:3", None, "café"), ("-:4", None, "café")]


def test_standard_input_that_is_closed(monkeypatch):
    sentence = "^-: standard input is closed; pipe a message in, or name a file$"
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(SourceError, match=sentence):
        list(read_unlabelled("-", "spam", PLAIN, Skips()))
    closed = io.TextIOWrapper(io.BytesIO())
    closed.close()
    monkeypatch.setattr(sys, "stdin", closed)
    with pytest.raises(SourceError, match=sentence):
        list(read_unlabelled("-", "spam", PLAIN, Skips()))


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
        list(read_unlabelled("-", "spam", PLAIN, Skips()))
    os.close(descriptor)


@each("options, expected", [(PLAIN, ["one\ntwo\n"]), (LINES, ["one", "two"])])
def test_named_pipe(options, expected, tmp_path):
    with piped(tmp_path / "pipe", b"one\ntwo\n") as pipe:
        assert texts(read_messages(str(pipe), options, Skips())) == expected


# What cannot be read


@each("how", READ)
@each("name, sentence", golden_table("reading/sources.table", 2, "not there"))
def test_what_is_not_there_or_damaged(how, name, sentence, tmp_path):
    (tmp_path / "dangling").symlink_to("nothing")
    (tmp_path / "link").symlink_to("link")
    put(tmp_path, "mail")
    put(tmp_path, "a.txt.gz", content=gzip.compress(bytes(1000))[:-9] + b"123456789")
    with pytest.raises(SourceError, match=sentence):
        list(READ[how](f"{tmp_path}/{name.replace('…', 'x' * 5000)}", Skips()))


def test_file_that_may_not_be_opened(tmp_path, monkeypatch):
    put(tmp_path, "closed")

    def refuse(path, mode):
        raise PermissionError(13, "Permission denied", str(path))

    for read in READ.values():
        with (
            monkeypatch.context() as patched,
            pytest.raises(
                SourceError, match=r"closed: cannot be read \(Permission denied\); check"
            ),
        ):
            patched.setattr(Path, "open", refuse)
            # Whoever names a file leaves it to others to read it.
            for raw in read(str(tmp_path / "closed"), Skips()):
                raw.message()


@each("error", [PermissionError(13, "Permission denied"), OSError(5, "I/O error")])
def test_folder_that_fails(error, tmp_path, monkeypatch):
    def iterdir(path):
        error.filename = str(path)
        raise error

    monkeypatch.setattr(Path, "iterdir", iterdir)
    said = rf"{tmp_path.name}: cannot be read \({error.strerror}\); "
    with pytest.raises(SourceError, match=said):
        list(read_unlabelled(str(tmp_path), "spam", PLAIN, Skips()))


def test_folder_in_a_folder_that_may_not_be_read_is_skipped_and_named(tmp_path, monkeypatch):
    put(tmp_path, "a", "closed/b", "d")
    iterdir = Path.iterdir

    def guarded(path):
        if path.name == "closed":
            raise PermissionError(13, "Permission denied", str(path))
        return iterdir(path)

    monkeypatch.setattr(Path, "iterdir", guarded)
    skips = Skips()
    found = names(read_unlabelled(str(tmp_path), "spam", PLAIN, skips))
    assert found == [f"{tmp_path}/a", f"{tmp_path}/d"]
    assert skips.named == [f"{tmp_path}/closed: the folder cannot be read (Permission denied)"]


@each("name, said", [("a:3", "one message, which only"), ("b:3", "no such"), ("a:x", "no such")])
def test_one_message_of_a_file_is_no_source(name, said, tmp_path):
    put(tmp_path, "a", content=BOX)
    with pytest.raises(SourceError, match=f"{name}: (names )?{said}"):
        list(read_messages(str(tmp_path / name), PLAIN, Skips()))


@pytest.mark.long
def test_a_thousand_folders_inside_one_another_are_one_sentence(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for _ in range(1_200):
        Path("a").mkdir()
        os.chdir("a")
    Path("mail").write_bytes(MAIL)
    try:
        with pytest.raises(SourceError, match="too deep inside one another; name an inner folder"):
            list(read_messages(str(tmp_path / "a"), ReadingOptions(), Skips()))
    finally:  # pytest could not remove them
        Path("mail").unlink()
        for _ in range(1_200):
            os.chdir("..")
            Path("a").rmdir()


def test_the_first_file_of_a_folder_that_looks_like_an_mbox_is_told(tmp_path):
    mail = b"From a@b.example Mon Jan  2 10:00:00 2012\n" + MAIL + b"\n"
    for place in ("some mail", "Maildir/cur"):
        (tmp_path / place).mkdir(parents=True)
        put(tmp_path / place, "2012", content=mail)
        put(tmp_path / place, "2013 März.gz", content=gzip.compress(mail * 2))
        put(tmp_path / place, "2014", content=mail * 2)
    (tmp_path / "Maildir" / "new").mkdir()
    told = []
    options = PLAIN._replace(on_note=told.append)
    assert len(list(read_unlabelled(str(tmp_path), "ham", options, Skips()))) == 6
    [said] = map(str, told)
    assert said.startswith(
        f"{tmp_path}/some mail/2013 März.gz: looks like an mbox, and in a folder"
    )


@each(
    "encoding, said",
    [("martian", "unknown encoding: martian"), ("hex", ".*text encoding.*"), ("idna", ".*idna.*")],
)
def test_encoding_that_nobody_knows(encoding, said, tmp_path):
    put(tmp_path, "a.tsv", content=b"ham\tx\n")
    options = ReadingOptions(TableOptions(encoding=encoding))
    with pytest.raises(SourceError, match=rf"a\.tsv: {said}; name another encoding"):
        list(read_labelled(str(tmp_path / "a.tsv"), options, Skips()))


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
    told = r"^a\.tsv:3: the row has no text; fix it, or leave out --strict to"
    with pytest.raises(SourceError, match=told):
        Skips(strict=True)("a.tsv:3", "the row has no text")
    skips = Skips()
    skips("a\nb\x1b[2J\x85", "cannot be read")
    assert skips.named == ["a\ufffdb\ufffd[2J\ufffd: cannot be read"]
    with pytest.raises(SourceError, match=r"^a.b: cannot be read; fix it"):
        Skips(strict=True)("a\nb", "cannot be read")
