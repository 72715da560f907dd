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
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from one_case import each

from nbspam.errors import SourceError
from nbspam.reading.raw_message import RawMessage
from nbspam.reading.skips import Skips
from nbspam.reading.source_kind import Labels, Source
from nbspam.reading.sources import (
    ReadingOptions,
    TableOptions,
    _kinds,
    any_kind,
    labelled,
    unlabelled,
)
from nbspam.reading.stream import STANDARD_INPUT

SAMPLES = Path(__file__).parents[2] / "sample_data"
MAIL = b"Subject: hello\n\nthe body\n"
BOX = b"".join(
    b"From a@example.org Mon Nov 20 10:00:00 2023\nSubject: %d\n\ntext %d\n\n" % (n, n)
    for n in (1, 2, 3)
)
PLAIN = ReadingOptions()
LINES = ReadingOptions(input_format="lines")
Found = list[tuple[str, str | None]]


def put(root: Path, *names: str, content: bytes = MAIL) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def found(raws: Iterator[RawMessage], root: Path) -> Found:
    """Sources, relative to the folder, and labels; each message must be readable."""
    pairs = []
    for raw in raws:
        assert raw.message().parts
        pairs.append((raw.source.removeprefix(f"{root}/"), raw.label))
    return pairs


def with_labels(source: Path, root: Path, skips: Skips | None = None) -> Found:
    return found(labelled(str(source), PLAIN, skips or Skips(strict=True)), root)


def without(
    source: Path, root: Path, skips: Skips | None = None, options: ReadingOptions = PLAIN
) -> Found:
    raws = unlabelled(str(source), "spam", options, skips or Skips(strict=True))
    return [(name, label) for name, label in found(raws, root) if label == "spam"]


def texts(raws: Iterator[RawMessage]) -> list[str]:
    return [raw.message().parts[0].text for raw in raws]


class Input:
    """Stands for sys.stdin."""

    closed = False

    def __init__(self, content: bytes) -> None:
        self.buffer = io.BytesIO(content)


def stdin(content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Input(content))


@contextlib.contextmanager
def piped(path: Path, content: bytes) -> Iterator[Path]:
    """Return a named pipe into which somebody writes."""
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(content,))
    writer.start()
    yield path
    writer.join()


# Kinds


def test_every_kind_that_may_be_refused_says_why() -> None:
    for kind in (STANDARD_INPUT, *_kinds()):
        assert bool(kind.refusal) == (kind.labels in (Labels.NEVER, Labels.ALWAYS))


def test_any_file_folder_or_pipe_is_of_some_kind(tmp_path: Path) -> None:
    put(tmp_path, "file", content=bytes(range(256)))
    put(tmp_path, "folder/file")
    os.mkfifo(tmp_path / "pipe")
    for name in ("file", "folder", "pipe"):
        source = Source(str(tmp_path / name))
        assert any(
            kind.is_recognised(source, PLAIN) for kind in _kinds() if kind.labels is Labels.NEVER
        )


def test_standard_input_loads_no_other_kind() -> None:
    code = (
        "import sys; from nbspam.reading import sources; from nbspam.reading.skips import Skips;"
        "list(sources.any_kind('-', sources.ReadingOptions(), Skips()));"
        "print(*(name for name in sys.modules if name.startswith('nbspam.reading.')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=b"hello", capture_output=True, check=True
    )
    loaded = {name.removeprefix("nbspam.reading.") for name in done.stdout.decode().split()}
    assert "stream" in loaded
    assert not loaded & {"tables", "columns", "folder", "index", "lines", "mbox", "single_message"}


# With labels


def test_table_has_labels(tmp_path: Path) -> None:
    put(tmp_path, "a.tsv", content=b"ham\tone\nspam\ttwo\n")
    assert with_labels(tmp_path / "a.tsv", tmp_path) == [("a.tsv:1", "ham"), ("a.tsv:2", "spam")]


def test_table_without_a_telling_name(tmp_path: Path) -> None:
    put(tmp_path, "SMSCollection", content=b'ham\tone\nspam\ttwo\nham\t"three\n')
    assert with_labels(tmp_path / "SMSCollection", tmp_path) == [
        ("SMSCollection:1", "ham"),
        ("SMSCollection:2", "spam"),
        ("SMSCollection:3", "ham"),
    ]


def test_folder_per_class(tmp_path: Path) -> None:
    put(tmp_path, "Ham/2", "Ham/1", "spam/deep/er/x", "promo/y", ".git/config", "README")
    assert with_labels(tmp_path, tmp_path) == [
        ("Ham/1", "ham"),
        ("Ham/2", "ham"),
        ("promo/y", "promo"),
        ("spam/deep/er/x", "spam"),
    ]


def test_maildir_per_class(tmp_path: Path) -> None:
    put(tmp_path, "ham/cur/1:2,S", "ham/new/2", "ham/tmp/3", "spam/cur/4", "spam/new/5")
    assert with_labels(tmp_path, tmp_path) == [
        ("ham/cur/1:2,S", "ham"),
        ("ham/new/2", "ham"),
        ("spam/cur/4", "spam"),
        ("spam/new/5", "spam"),
    ]


@each("name", ["full.index", "index", "list"])
def test_index(name: str, tmp_path: Path) -> None:
    put(tmp_path, "data/1", "data/2 with blanks")
    put(tmp_path, f"full/{name}", content=b"spam ../data/1\r\nHAM ../data/2 with blanks\r\n\r\n")
    pairs = with_labels(tmp_path / "full" / name, tmp_path)
    assert pairs == [("full/../data/1", "spam"), ("full/../data/2 with blanks", "ham")]


@each("name", ["full.index", "index", "list"])
def test_missing_files_of_an_index_are_skipped_and_named(name: str, tmp_path: Path) -> None:
    put(tmp_path, "1", "2")
    put(tmp_path, name, content=b"spam gone\nspam 1\nham lost\nham 2\n")
    skips = Skips()
    assert with_labels(tmp_path / name, tmp_path, skips) == [("1", "spam"), ("2", "ham")]
    assert skips.named == [
        f"{tmp_path / name}:1: there is no file {tmp_path / 'gone'}",
        f"{tmp_path / name}:3: there is no file {tmp_path / 'lost'}",
    ]


@each(
    "line",
    ["spam /etc/passwd", "spam ../../elsewhere/1", "ham link", "ham linked/1", "ham ../../no"],
)
def test_a_file_outside_an_index_must_be_allowed(line: str, tmp_path: Path) -> None:
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


def test_a_linked_index_and_files_of_any_name_are_within(tmp_path: Path) -> None:
    put(tmp_path, "corpus/data/1", "corpus/1", "corpus/full/deep/1", "corpus/full/..1")
    paths = ("../data/1", "../1", "deep/1", "..1", "../full/../data/../1", "a\0b")
    lines = "".join(f"spam {path}\n" for path in paths)
    put(tmp_path, "corpus/full/index", content=lines.encode())
    (tmp_path / "link").symlink_to("corpus")
    skips = Skips()
    assert len(with_labels(tmp_path / "link/full/index", tmp_path, skips)) == 5
    assert "there is no file" in skips.named[0]


def test_bad_line_of_an_index_is_skipped_and_named(tmp_path: Path) -> None:
    put(tmp_path, "1")
    put(tmp_path, "a.index", content=b"oops\nspam 1\n")
    skips = Skips()
    assert with_labels(tmp_path / "a.index", tmp_path, skips) == [("1", "spam")]
    assert skips.named == [f"{tmp_path}/a.index:1: the line is not a label and a file's path"]


def test_label_of_nothing_to_show_is_none(tmp_path: Path) -> None:
    put(tmp_path, "1", "ham/2", "\x01/3")
    put(tmp_path, "a.index", content=b"\x02\x00 1\nspam 1\n")
    skips = Skips()
    assert with_labels(tmp_path / "a.index", tmp_path, skips) == [("1", "spam")]
    assert "a.index:1: the label" in skips.named[0]
    assert with_labels(tmp_path, tmp_path, skips) == [("ham/2", "ham")]
    assert "/\ufffd: the folder's name" in skips.named[-1]


def test_strict_stops_at_a_missing_file_of_an_index(tmp_path: Path) -> None:
    put(tmp_path, "a.index", content=b"spam gone\n")
    with pytest.raises(
        SourceError, match=r"a\.index:1: there is no file .*gone; .*without strict to skip it$"
    ):
        with_labels(tmp_path / "a.index", tmp_path)


@each(
    "content, what",
    [(BOX, "an mbox"), (MAIL, "one mail"), (b"", "an empty file"), (b"just text\n", "the file")],
)
def test_file_without_labels_is_an_error_that_says_what_it_is(
    content: bytes, what: str, tmp_path: Path
) -> None:
    put(tmp_path, "thing", content=content)
    with pytest.raises(
        SourceError, match=rf"thing: {what} has no labels; give its messages with a label, or"
    ):
        with_labels(tmp_path / "thing", tmp_path)


def test_folder_without_classes_is_an_error(tmp_path: Path) -> None:
    put(tmp_path, "1", ".hidden/2")
    with pytest.raises(
        SourceError, match="the folder has no sub-folder for each class; give its messages"
    ):
        with_labels(tmp_path, tmp_path)


def test_maildir_is_no_folder_of_classes() -> None:
    with pytest.raises(
        SourceError, match="the folder has no sub-folder for each class; give its messages"
    ):
        list(labelled(str(SAMPLES / "mail" / "ham"), PLAIN, Skips()))


def test_standard_input_without_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin(MAIL, monkeypatch)
    with pytest.raises(
        SourceError, match=r"^-: standard input has no labels that can be recognised; give its mess"
    ):
        list(labelled("-", PLAIN, Skips()))


def test_pipe_as_a_table(tmp_path: Path) -> None:
    with piped(tmp_path / "pipe", b"ham\thello you\nspam\twin now\n") as pipe:
        raws = list(labelled(str(pipe), PLAIN, Skips()))
    assert [(raw.source, raw.label) for raw in raws] == [
        (f"{pipe}:1", "ham"),
        (f"{pipe}:2", "spam"),
    ]


def test_pipe_whose_labels_cannot_be_recognised(tmp_path: Path) -> None:
    with (
        piped(tmp_path / "pipe", MAIL) as pipe,
        pytest.raises(SourceError, match=r"pipe: the pipe has no labels that can be recognised; "),
    ):
        list(labelled(str(pipe), PLAIN, Skips()))


# Without labels


@each("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_mbox(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    put(tmp_path, "box", content=pack(BOX))
    assert without(tmp_path / "box", tmp_path) == [
        ("box:1", "spam"),
        ("box:2", "spam"),
        ("box:3", "spam"),
    ]


@each("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
@each("content", [MAIL, b"bare text\n", b"", b"\tindented\n\ttext\n"])
def test_one_message(content: bytes, pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    put(tmp_path, "mail", content=pack(content))
    assert without(tmp_path / "mail", tmp_path) == [("mail", "spam")]
    assert found(any_kind(str(tmp_path / "mail"), PLAIN, Skips()), tmp_path) == [("mail", None)]


def test_eml_is_one_mail_whatever_is_in_it(tmp_path: Path) -> None:
    put(tmp_path, "a.eml", content=BOX)
    assert without(tmp_path / "a.eml", tmp_path) == [("a.eml", "spam")]


def test_maildir_is_cur_and_new_and_never_tmp(tmp_path: Path) -> None:
    put(
        tmp_path,
        "cur/b:2,S",
        "cur/a:2,",
        "new/c",
        "tmp/d",
        ".Junk/cur/e",
        "dovecot.index",
        "cur/.f",
    )
    expected = [("cur/a:2,", "spam"), ("cur/b:2,S", "spam"), ("new/c", "spam")]
    assert expected == without(tmp_path, tmp_path)


def test_folder_with_folders(tmp_path: Path) -> None:
    put(tmp_path, "b", "a/2", "a/1/x", ".DS_Store", ".cache/y", "c/.hidden")
    assert without(tmp_path, tmp_path) == [("a/1/x", "spam"), ("a/2", "spam"), ("b", "spam")]


def test_empty_folder(tmp_path: Path) -> None:
    assert without(tmp_path, tmp_path) == []


def test_files_of_a_folder_are_one_message_each(tmp_path: Path) -> None:
    put(tmp_path, "1", content=BOX)
    put(tmp_path, "2.tsv", content=b"ham\tone\n")
    assert without(tmp_path, tmp_path) == [("1", "spam"), ("2.tsv", "spam")]


def test_sample_maildir_and_mbox() -> None:
    assert len(list(unlabelled(str(SAMPLES / "mail" / "ham"), "ham", PLAIN, Skips()))) == 28
    assert len(list(unlabelled(str(SAMPLES / "mail" / "spam.mbox"), "spam", PLAIN, Skips()))) == 20


def test_lines(tmp_path: Path) -> None:
    put(tmp_path, "a.csv", content="one, é\r\n\n  \nSubject: two".encode())
    raws = list(unlabelled(str(tmp_path / "a.csv"), "spam", LINES, Skips(strict=True)))
    assert [raw.source.rpartition(":")[2] for raw in raws] == ["1", "4"]
    assert texts(iter(raws)) == ["one, é", "Subject: two"]


def test_table_is_not_taken_without_its_labels(tmp_path: Path) -> None:
    put(tmp_path, "a.csv", content=b"ham,x\n")
    with pytest.raises(
        SourceError, match=r"a\.csv: a table has labels of its own; give it without a label$"
    ):
        without(tmp_path / "a.csv", tmp_path)


def test_standard_input_is_one_message(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin(BOX, monkeypatch)
    assert list(unlabelled("-", "spam", PLAIN, Skips())) == [RawMessage("-", "spam", BOX)]


def test_standard_input_as_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin(b"one\r\n\ncaf\xc3\xa9\ncaf\xe9", monkeypatch)
    raws = list(any_kind("-", LINES, Skips()))
    assert raws == [
        RawMessage("-:1", None, "one"),
        RawMessage("-:3", None, "café"),
        RawMessage("-:4", None, "café"),
    ]


def test_standard_input_that_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    sentence = "^-: standard input is closed; pipe a message in, or name a file$"
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(SourceError, match=sentence):
        list(unlabelled("-", "spam", PLAIN, Skips()))
    closed = io.TextIOWrapper(io.BytesIO())
    closed.close()
    monkeypatch.setattr(sys, "stdin", closed)
    with pytest.raises(SourceError, match=sentence):
        list(unlabelled("-", "spam", PLAIN, Skips()))


def test_standard_input_that_is_a_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    descriptor = os.open(tmp_path, os.O_RDONLY)

    class Folder(io.RawIOBase):
        def readable(self) -> bool:
            return True

        def readinto(self, buffer: object) -> int:
            return len(os.read(descriptor, 1))

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(Folder())))
    with pytest.raises(
        SourceError, match=r"^-: standard input cannot be read \(Is a directory\); "
    ):
        list(unlabelled("-", "spam", PLAIN, Skips()))
    os.close(descriptor)


@each("options, expected", [(PLAIN, ["one\ntwo\n"]), (LINES, ["one", "two"])])
def test_named_pipe(options: ReadingOptions, expected: list[str], tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(b"one\ntwo\n",))
    writer.start()
    assert texts(any_kind(str(pipe), options, Skips())) == expected
    writer.join()


# Any kind


def test_any_kind_takes_labels_where_there_are_any(tmp_path: Path) -> None:
    put(tmp_path, "a.tsv", content=b"ham\tone\nspam\ttwo\n")
    put(tmp_path, "b.csv", content=b"text\none\n")
    put(tmp_path, "c", content=BOX)
    put(tmp_path, "d.index", content=b"spam c\n")

    def kinds(name: str) -> Found:
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
def test_a_message_does_not_choose_how_it_is_read(
    tmp_path: Path, content: bytes, name: str
) -> None:
    """Nor does it name files that are read in its place."""
    put(tmp_path, "c", content=BOX)
    put(tmp_path, name, content=content)
    for messages in (
        any_kind(str(tmp_path / name), PLAIN, Skips(strict=True)),
        unlabelled(str(tmp_path / name), None, PLAIN, Skips(strict=True)),
    ):
        assert found(messages, tmp_path) == [(name, None)]


def test_where_labels_are_needed_an_index_is_recognised_by_its_lines(tmp_path: Path) -> None:
    put(tmp_path, "c", content=BOX)
    put(tmp_path, "list", content=b"spam c\n")
    assert with_labels(tmp_path / "list", tmp_path) == [("c", "spam")]


# What cannot be read

EVERY = pytest.mark.parametrize(
    "read",
    [
        lambda source: list(labelled(source, PLAIN, Skips())),
        lambda source: list(unlabelled(source, "spam", PLAIN, Skips())),
        lambda source: list(unlabelled(source, "spam", LINES, Skips())),
        lambda source: list(any_kind(source, PLAIN, Skips())),
    ],
    ids=["labelled", "unlabelled", "lines", "any"],
)
Read = Callable[[str], list[RawMessage]]


@EVERY
def test_file_that_is_not_there(read: Read, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"nowhere: no such file or folder; check the name$"):
        read(str(tmp_path / "nowhere"))


@EVERY
def test_link_that_leads_nowhere(read: Read, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(SourceError, match=r"link: no such file or folder; check the name$"):
        read(str(tmp_path / "link"))


@EVERY
def test_link_to_itself(read: Read, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("link")
    with pytest.raises(SourceError, match=r"link: cannot be read \(Too many .*\); check its"):
        read(str(tmp_path / "link"))


@EVERY
def test_file_as_a_folder(read: Read, tmp_path: Path) -> None:
    put(tmp_path, "mail")
    with pytest.raises(SourceError, match=r"x: cannot be read \(Not a directory\); check its"):
        read(str(tmp_path / "mail" / "x"))


@EVERY
@each("name", ["a\x00b", "x" * 5000])
def test_name_that_cannot_be(read: Read, name: str) -> None:
    with pytest.raises(SourceError, match=r"cannot be read .*; check its permissions$"):
        read(name)


@EVERY
def test_damaged_archive(read: Read, tmp_path: Path) -> None:
    put(tmp_path, "a.txt.gz", content=gzip.compress(bytes(1000))[:-9] + b"123456789")
    with pytest.raises(SourceError, match=r"a\.txt\.gz: cannot be read \(damaged archive: .+\); "):
        read(str(tmp_path / "a.txt.gz"))


@EVERY
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_no_permission(read: Read, kind: str, tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    path = tmp_path / "closed"
    path.mkdir() if kind == "folder" else path.write_bytes(MAIL)
    path.chmod(0)
    try:
        with pytest.raises(
            SourceError, match=r"closed: cannot be read \(Permission denied\); check"
        ):
            read(str(path))
    finally:
        path.chmod(0o700)


@EVERY
def test_file_that_may_not_be_opened(
    read: Read, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, "closed")

    def refuse(path: Path, mode: str) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(SourceError, match=r"closed: cannot be read \(Permission denied\); check"):
        # Whoever names a file leaves it to others to read it.
        for raw in read(str(tmp_path / "closed")):
            raw.message()


@pytest.mark.parametrize(
    "error", [PermissionError(13, "Permission denied"), OSError(5, "I/O error")]
)
def test_folder_that_fails(error: OSError, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def iterdir(path: Path) -> Iterator[Path]:
        error.filename = str(path)
        raise error

    monkeypatch.setattr(Path, "iterdir", iterdir)
    with pytest.raises(
        SourceError, match=rf"{tmp_path.name}: cannot be read \({error.strerror}\); "
    ):
        without(tmp_path, tmp_path)


def test_folder_in_a_folder_that_may_not_be_read_is_skipped_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, "a", "closed/b", "d")
    iterdir = Path.iterdir

    def guarded(path: Path) -> Iterator[Path]:
        if path.name == "closed":
            raise PermissionError(13, "Permission denied", str(path))
        return iterdir(path)

    monkeypatch.setattr(Path, "iterdir", guarded)
    skips = Skips()
    assert without(tmp_path, tmp_path, skips) == [("a", "spam"), ("d", "spam")]
    assert skips.named == [f"{tmp_path}/closed: the folder cannot be read (Permission denied)"]


def test_links_of_a_folder(tmp_path: Path) -> None:
    put(tmp_path, "elsewhere/x", "box/a")
    (tmp_path / "box" / "to-file").symlink_to("a")
    (tmp_path / "box" / "to-folder").symlink_to("../elsewhere")
    (tmp_path / "box" / "broken").symlink_to("nowhere")
    (tmp_path / "box" / "back").symlink_to(".")
    (tmp_path / "elsewhere" / "round").symlink_to("../box")
    skips = Skips()
    assert without(tmp_path / "box", tmp_path, skips, PLAIN._replace(outside=True)) == [
        ("box/a", "spam"),
        ("box/to-file", "spam"),
        ("box/to-folder/x", "spam"),
    ]
    assert skips.named == [
        f"{tmp_path}/box/back: the link leads to a folder that it is in",
        f"{tmp_path}/box/broken: the link leads nowhere",
        f"{tmp_path}/box/to-folder/round: the link leads to a folder that it is in",
    ]


def test_damaged_archive_in_a_folder_is_named_when_it_is_read(tmp_path: Path) -> None:
    put(tmp_path, "1", "3")
    put(tmp_path, "2.gz", content=gzip.compress(MAIL)[:-4])
    raws = list(unlabelled(str(tmp_path), "spam", PLAIN, Skips()))
    assert len(raws) == 3
    with pytest.raises(SourceError, match=r"2\.gz: cannot be read \(damaged archive: .+\); check"):
        raws[1].message()
    assert raws[0].message() == raws[2].message()


def test_encoding_that_nobody_knows(tmp_path: Path) -> None:
    put(tmp_path, "a.tsv", content=b"ham\tx\n")
    options = ReadingOptions(TableOptions(encoding="martian"))
    with pytest.raises(
        SourceError, match=r"a\.tsv: unknown encoding: martian; name another encoding$"
    ):
        list(labelled(str(tmp_path / "a.tsv"), options, Skips()))
