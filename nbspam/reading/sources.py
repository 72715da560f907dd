"""Sources of messages: what a name on the command line stands for, and the messages in it.

Labelled: a table, a folder with one sub-folder per class, a TREC index file.
Unlabelled: an mbox, a Maildir, a folder of messages, one message, a file with one message a
line, standard input ("-").
"""

import io
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

from nbspam.errors import SourceError
from nbspam.labels import normal_label
from nbspam.reading import mbox
from nbspam.reading.charsets import decode
from nbspam.reading.compression import bare_suffix, decompressed, open_bytes
from nbspam.reading.message import BYTES_LIMIT, is_mail
from nbspam.reading.raw_message import RawMessage
from nbspam.reading.skips import Skips
from nbspam.reading.tables import TABLE_SUFFIXES, TableOptions, read_lines, read_table

STDIN = "-"
_SAMPLE = 1 << 16
_DRAINED = 4_096  # MiB of a pipe read past, at the most: /dev/zero has no end
_FOLDERS_LIMIT = 100  # folders within folders
_INDEX_TRIES = 20  # files of an index that are looked for
_INDEX_LINE = re.compile(r"(\S+)\s+(\S.*)")


class ReadingOptions(NamedTuple):
    """How the user wants sources read."""

    table: TableOptions = TableOptions()
    lines: bool = False  # a text file is one message a line
    seen: bool = False  # of a Maildir or mbox, only what its owner has read and not deleted


def labelled(source: str, options: ReadingOptions, skips: Skips) -> Iterator[RawMessage]:
    """Yield the messages of a source that says itself which class each is in.

    Raises SourceError when it cannot be read, or has no labels.
    """
    path = _existing(source)
    with _Named(path):
        if path.is_dir():
            yield from _class_folders(path, options, skips)
        elif not path.is_file():
            raise SourceError(f"{path}: is a pipe, and a table is read twice; save it to a file")
        elif (form := _form(path)) == "table":
            yield from read_table(path, options.table, skips, labelled=True)
        elif form == "index":
            yield from _index(path, skips)
        else:
            what = {"mbox": "an mbox", "mail": "one mail", "empty": "an empty file"}.get(form)
            raise SourceError(
                f"{path}: {what or 'the file'} has no labels; give it as --spam {path} or"
                f" --ham {path}, or give a table, an index, or a folder with a folder per class"
            )


def unlabelled(
    source: str, label: str | None, options: ReadingOptions, skips: Skips
) -> Iterator[RawMessage]:
    """Yield the messages of a source, each as one of class `label`.

    Raises SourceError when it cannot be read.
    """
    if source == STDIN:
        yield from _stdin(label, options)
        return
    path = _existing(source)
    with _Named(path):
        if path.is_dir():
            yield from _folder(path, label, options, skips)
        elif not path.is_file():  # a pipe, such as <(command): it can be read only once
            with path.open("rb") as stream:
                yield from _stream(str(path), stream, label, options)
        elif options.lines:
            for number, line in read_lines(path, options.table.encoding, skips):
                yield RawMessage(f"{path}:{number}", label, line)
        elif bare_suffix(path) in TABLE_SUFFIXES:
            raise SourceError(
                f"{path}: a table goes by its own labels; give it without --spam or --ham,"
                " or add --lines if it has one message a line"
            )
        else:
            yield from _file(path, label, options)


def any_kind(source: str, options: ReadingOptions, skips: Skips) -> Iterator[RawMessage]:
    """Yield the messages of any source, with a label where it gives one.

    Raises SourceError when it cannot be read.
    """
    if source != STDIN and not options.lines and (path := _existing(source)).is_file():
        with _Named(path):
            form = _form(path)
            if form == "table":
                yield from read_table(path, options.table, skips, labelled=False)
                return
            if form == "index":
                yield from _index(path, skips)
                return
    yield from unlabelled(source, None, options, skips)


class _Named:
    """Turns what the system says of a file into a sentence that names it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            name = error.filename or self._path
            raise SourceError(
                f"{name}: cannot be read ({error.strerror}); check its permissions and content"
            ) from error
        if isinstance(error, UnicodeError):
            raise SourceError(
                f"{self._path}: is not in that encoding ({error}); give --encoding another name"
            ) from error
        if isinstance(error, LookupError) and "encoding" in str(error):
            raise SourceError(f"{self._path}: {error}; give --encoding another name") from error


def _existing(source: str) -> Path:
    if source == STDIN:
        raise SourceError("-: standard input has no labels; give --spam - or --ham -")
    path = Path(source)
    try:
        path.stat()
    except FileNotFoundError as error:
        raise SourceError(f"{path}: no such file or folder; check the name") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SourceError(f"{path}: cannot be read ({reason}); check its permissions") from error
    return path


def _form(path: Path) -> str:
    """Return what a file's name and first bytes make it: table, index, mbox, mail, empty, text."""
    suffix = bare_suffix(path)
    if suffix in TABLE_SUFFIXES:
        return "table"
    with open_bytes(path) as stream:
        sample = stream.read(_SAMPLE)
    if not sample.strip():
        return "empty"
    if sample.startswith(b"PAR1"):
        return "table"
    if suffix == ".eml":
        return "mail"
    if mbox.is_mbox(sample):
        return "mbox"
    if is_mail(sample):
        return "mail"
    text = sample.decode("utf-8", "replace")
    lines = [
        line
        for line in (text if len(sample) < _SAMPLE else text.rpartition("\n")[0]).split("\n")
        if line.strip()
    ]
    if _is_index(path, lines):
        return "index"
    if _is_tsv(lines):
        return "table"
    return "text"


def _is_tsv(lines: list[str]) -> bool:
    """Return whether every line is a short label, a tab and more; a guess, for nameless tables."""
    pairs = [line.partition("\t") for line in lines]
    labels = {label for label, _, _ in pairs}
    return (
        all(label and tab for label, tab, _ in pairs)
        and max(map(len, labels), default=99) <= 24
        and (len(labels) <= max(2, len(lines) // 4) or {"ham", "spam"} >= labels)
    )


def _is_index(path: Path, lines: list[str]) -> bool:
    """Return whether each line is a label and a file, and one of the first files is there.

    In a file that is called an index, a line that is not so is a bad line.
    """
    found = [_INDEX_LINE.fullmatch(line.strip()) for line in lines]
    if "index" in (path.name, bare_suffix(path)[1:]):
        return any(found)
    try:
        return all(found) and any(
            (path.parent / line[2]).is_file() for line in found[:_INDEX_TRIES] if line
        )
    except (OSError, ValueError):
        return False


def _index(path: Path, skips: Skips) -> Iterator[RawMessage]:
    for number, line in read_lines(path, None, skips):
        found = _INDEX_LINE.fullmatch(line.strip())
        if not found:
            skips(f"{path}:{number}", "the line is not a label and a file's path")
            continue
        label = normal_label(found[1])
        if not label:
            skips(f"{path}:{number}", "the label has no character that can be shown")
            continue
        target = path.parent / found[2]
        try:
            there = target.is_file()
        except OSError:  # a name too long for any file
            there = False
        if there:
            yield RawMessage(str(target), label, target)
        else:
            skips(f"{path}:{number}", f"there is no file {str(target)[:200]}")


def _class_folders(path: Path, options: ReadingOptions, skips: Skips) -> Iterator[RawMessage]:
    folders = [p for p in sorted(path.iterdir()) if p.is_dir() and not p.name.startswith(".")]
    if not folders or _is_maildir(path):
        raise SourceError(
            f"{path}: the folder has no sub-folder per class; give it as --spam {path} or"
            f" --ham {path}, or put its messages into folders named after their classes"
        )
    for entry in sorted(path.iterdir()):
        if entry.is_file() and not entry.name.startswith("."):
            skips.note(
                str(entry),
                "it lies beside the folders of the classes; give it with --spam or --ham",
            )
    for folder in folders:
        if label := normal_label(folder.name):
            yield from _folder(folder, label, options, skips)
        else:
            skips(str(folder), "the folder's name has no character that can be shown")


def _is_maildir(path: Path) -> bool:
    return (path / "cur").is_dir() and (path / "new").is_dir()


def _folder(
    path: Path,
    label: str | None,
    options: ReadingOptions,
    skips: Skips,
    seen: set[Path] | None = None,
    depth: int = 0,
) -> Iterator[RawMessage]:
    """Yield a folder's files in the order of their names, its sub-folders' too; no dot files.

    A Maildir is its cur and new: tmp holds what is still being written.
    seen: the folders read so far, as they really are: links may lead to them again and again.
    """
    seen = set() if seen is None else seen
    real = path.resolve()
    if real in seen:
        skips(str(path), "the link leads to a folder that was read already")
        return
    if depth > _FOLDERS_LIMIT:
        skips(str(path), f"the folder lies more than {_FOLDERS_LIMIT} deep")
        return
    seen.add(real)
    if _is_maildir(path):
        folders = [path / "cur"] if options.seen else [path / "cur", path / "new"]
        inner = [entry for folder in folders for entry in sorted(folder.iterdir())]
        if options.seen:
            inner = [entry for entry in inner if _is_read(entry.name)]
    else:
        inner = sorted(path.iterdir())
    for entry in inner:
        if entry.name.startswith("."):
            continue
        if entry.is_dir():
            try:
                yield from _folder(entry, label, options, skips, seen, depth + 1)
            except PermissionError as error:
                skips(str(entry), f"the folder cannot be read ({error.strerror})")
        elif entry.is_file():
            yield RawMessage(str(entry), label, entry)
        elif entry.is_symlink():
            skips(str(entry), "the link leads nowhere")


def _is_read(name: str) -> bool:
    """Return whether a Maildir file's name says that its owner has read it, and not deleted it."""
    flags = name.partition(":2,")[2]
    return "S" in flags and "T" not in flags


def _file(path: Path, label: str | None, options: ReadingOptions) -> Iterator[RawMessage]:
    form = _form(path)
    if form != "mbox":
        yield RawMessage(str(path), label, path)
        return
    with open_bytes(path) as stream:
        for number, raw in enumerate(mbox.messages(stream, BYTES_LIMIT), 1):
            if not options.seen or mbox.is_read(raw):
                yield RawMessage(f"{path}:{number}", label, raw)


def _stdin(label: str | None, options: ReadingOptions) -> Iterator[RawMessage]:
    if sys.stdin is None or sys.stdin.closed:
        raise SourceError("-: standard input is closed; pipe a message in, or name a file")
    try:
        yield from _stream(STDIN, sys.stdin.buffer, label, options)
    except OSError as error:
        raise SourceError(
            f"-: standard input cannot be read ({error.strerror}); pipe a message in"
        ) from error


def _stream(
    name: str, stream: IO[bytes], label: str | None, options: ReadingOptions
) -> Iterator[RawMessage]:
    if isinstance(stream, io.BufferedReader):
        stream = decompressed(stream)
    if not options.lines:
        raw = stream.read(BYTES_LIMIT)
        for _ in range(_DRAINED):  # who writes may not bear a broken pipe
            if not stream.read(1 << 20):
                break
        yield RawMessage(name, label, raw)
        return
    number = 0
    while line := stream.readline(BYTES_LIMIT):
        number += 1
        if line.strip():
            yield RawMessage(
                f"{name}:{number}",
                label,
                decode(line.rstrip(b"\r\n"), options.table.encoding or ""),
            )
