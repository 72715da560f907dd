"""Sources cut into pieces, each of which another machine can read.

Files of folders, Maildirs and indexes are listed here and read there.  An mbox, a text and a table
of lines are cut into ranges of bytes.  What cannot be cut is read here, and its messages take the
place of pieces: an archive, a JSON document, Parquet, Excel, a CSV with quotes (where a row ends
depends on all the quotes before it), standard input, a pipe.

A piece is data, so that it can go to another machine, and reading it twice gives the same twice.
What could not be read comes as data too, in its place.
"""

import io
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import NamedTuple, TypeVar

from nbspam.errors import NbspamError, Remedy
from nbspam.reading import mail, tables
from nbspam.reading.charsets import is_wide
from nbspam.reading.compression import Taken, unpacking
from nbspam.reading.message import RawMessage
from nbspam.reading.rows import (
    decoded_lines,
    each_line,
    file_content,
    read_lines,
    rows_of,
)
from nbspam.reading.source import (
    FILE_LISTS,
    ReadingOptions,
    ReadingRequest,
    Skipped,
    Skips,
    Source,
    SourceKind,
)
from nbspam.reading.sources import existing, failing_as, recognised

A = TypeVar("A")


class ElsewhereError(NbspamError):
    """A machine does not have the file that the one has which cut it."""


class _Collected(Skips):
    """Skips that are handed on in the place where they occurred."""

    def __init__(self) -> None:
        super().__init__()
        self._new: list[Skipped] = []

    def __call__(self, source: str, reason: str, _: Remedy | None = None) -> None:
        self._new.append(Skipped(source, reason))

    def among(self, raws: Iterator[A]) -> Iterator[A | Skipped]:
        """Yield messages or pieces, and what is skipped while they are read."""
        for raw in raws:
            while self._new:
                yield self._new.pop(0)
            yield raw
        yield from self._new


class FileList(NamedTuple):
    """Files with one message each."""

    source: str  # the folder or index that names them
    files: tuple[str, ...]
    labels: tuple[str | None, ...]
    size: int = 0  # what its files have is known where they are read

    def read(self) -> Iterator[RawMessage | Skipped]:
        """Yield its messages; each file is opened by whoever parses it.

        A file that is gone is skipped by them, as mail is moved while it is read; a machine that
        does not even have the folder is another matter.
        """
        first = Source(self.files[0]).path
        if not first.exists() and not first.parent.is_dir():
            raise ElsewhereError(f"{first.parent}: no such folder")
        for name, label in zip(self.files, self.labels, strict=True):
            yield RawMessage(name, label, Source(name).path)


# A range is cut at any byte.  What begins in it (lines, or the messages of an mbox) belongs to it,
# up to where the next thing begins, and so whoever reads a range finds its beginning and its end
# alone, as the readers of its neighbours do.


class ByteRange(NamedTuple):
    """Some of a file's bytes, from start to end."""

    name: str
    whole: int  # bytes of the file, by which it is known again on another machine
    start: int
    end: int

    def file(self) -> io.BufferedReader:
        """Open the whole file; raises ElsewhereError unless it has as many bytes here; OSError."""
        path = Source(self.name).path
        try:
            here = path.stat().st_size
        except OSError as error:
            raise ElsewhereError(f"{self.name}: cannot be found ({error.strerror})") from error
        if here != self.whole:
            raise ElsewhereError(
                f"{self.name}: is a different file ({here:,} bytes, not {self.whole:,})"
            )
        return path.open("rb")

    def opened(
        self, begins: Callable[[io.BufferedReader, int], int | None], gap: int = 0
    ) -> io.BufferedReader:
        """Open the bytes of what begins in it; raises as `file` does.

        begins: returns where in a stream the first thing begins from a place on; None: nowhere.
        gap: bytes before that which belong to nothing.
        """
        stream = self.file()
        start = begins(stream, self.start) if self.start else 0
        end = begins(stream, self.end) if self.end < self.whole else None
        start = self.whole if start is None else start
        stream.seek(start)
        stop = self.whole if end is None else end - gap

        def take(n: int) -> bytes:
            return stream.read1(min(n, max(stop - stream.tell(), 0)))

        return io.BufferedReader(Taken(take, stream), 1 << 16)

    def lines(self) -> io.BufferedReader:
        """Open the lines that begin in it; raises as `file` does."""
        return self.opened(_line_start)

    def mails(self) -> io.BufferedReader:
        """Open the messages of an mbox that begin in it; raises as `file` does."""
        return self.opened(lambda stream, at: next(mail.message_starts(stream, at), None), 1)


def _line_start(stream: io.BufferedReader, at: int) -> int:
    """Return where the first line begins from `at` on, which is above 0."""
    stream.seek(at - 1)
    for line in each_line(stream):
        if line.endswith(b"\n"):
            break
    return stream.tell()


class RangeFound(NamedTuple):
    """What is to be known of a range before it is read."""

    n: int  # lines or messages that begin in it
    has_quotes: bool = False
    has_quoted_cells: bool = False  # of a TSV: one begins with a quote


def count_lines(part: ByteRange) -> RangeFound:
    """Count the lines that begin in a range; raises ElsewhereError and OSError."""
    n, quotes, cells = 0, False, False
    with part.lines() as stream:
        for line in each_line(stream):
            n += 1
            if not cells and b'"' in line:
                quotes = True
                bare = line.removeprefix(b"\xef\xbb\xbf") if n == 1 else line
                cells = bare.startswith(b'"') or b'\t"' in bare
    return RangeFound(n, quotes, cells)


def count_messages(part: ByteRange) -> RangeFound:
    """Count the messages of an mbox that begin in a range; raises ElsewhereError and OSError."""
    n = int(part.start == 0)
    with part.file() as stream:
        for at in mail.message_starts(stream, max(part.start, 1)):
            if at >= part.end:
                break
            n += 1
    return RangeFound(n)


# What a piece does to bytes before they are read: it counts what begins in each of some ranges.
# The ranges may be counted on other machines.
RangeCount = Callable[[ByteRange], RangeFound]
Survey = Callable[[RangeCount, list[ByteRange]], Iterable[RangeFound]]
# Yields the messages that begin in a range, given the number of its first line or message.
RangeReader = Callable[[ByteRange, int, Skips], Iterator[RawMessage]]


class RangePiece(NamedTuple):
    """A range of a file, with what its reader needs."""

    part: ByteRange
    first: int  # the number of what begins first in it
    reader: RangeReader

    @property
    def source(self) -> str:
        """The file."""
        return self.part.name

    @property
    def files(self) -> tuple[str, ...]:
        """The file, alone."""
        return (self.part.name,)

    @property
    def size(self) -> int:
        """Its bytes."""
        return self.part.end - self.part.start

    def read(self) -> Iterator[RawMessage | Skipped]:
        """Yield its messages."""
        skips = _Collected()
        with failing_as(Source(self.part.name)):
            yield from skips.among(self.reader(self.part, self.first, skips))


# A part of the sources.  `read` yields its messages, in order, and in their place what cannot be
# read; it raises SourceError, and ElsewhereError on a machine that has not the same file.
SourcePiece = FileList | RangePiece


def _rows(
    plan: tables.TablePlan,
    encoding: str | None,
    needs_labels: bool,
    part: ByteRange,
    first: int,
    skips: Skips,
) -> Iterator[RawMessage]:
    """Yield the rows of a table of lines: TSV, JSON lines, and CSV without quotes."""
    lines = decoded_lines(part.name, part.lines, encoding, skips, first)
    rows = rows_of(part.name, lines, plan.layout, skips)
    return tables.row_messages(part.name, rows, plan, needs_labels, skips)


def _lines(
    encoding: str | None, label: str | None, part: ByteRange, first: int, skips: Skips
) -> Iterator[RawMessage]:
    for number, line in read_lines(part.name, part.lines, encoding, skips, first):
        yield RawMessage(f"{part.name}:{number}", label, line)


def _mails(
    label: str | None, seen: bool, part: ByteRange, first: int, skips: Skips
) -> Iterator[RawMessage]:
    request = ReadingRequest(ReadingOptions(seen=seen), skips, label)
    return mail.mbox_messages(part.name, part.mails, request, first)


_SHORT = 4  # times as many tokens has a text without a header, of as many bytes
# Files of a list, at first; the next ones are longer, so that 10^8 files are few lists.
_MAIL, _FILES = 4_096, 125  # bytes of a file, about; files at least
_FILES_LIMIT = 4_000
_LISTS = 1_000  # of one length
# Kinds whose messages are files, which are listed without being read.
_LISTINGS = (
    *(mail.CLASS_FOLDERS, mail.FOLDER, mail.NAMED_INDEX, mail.NAMELESS_INDEX),
    *(mail.EMPTY_FILE, mail.NAMED_MAIL, mail.MAIL, mail.TEXT),
)


class Asked(NamedTuple):
    """A source, and what is asked of it."""

    name: str
    label: str | None = None  # the class that the user gives its messages
    has_label: bool = False  # whether the user gives one
    needs_labels: bool = False  # it must say itself which class each message is in


def local_survey(count: RangeCount, parts: list[ByteRange]) -> Iterable[RangeFound]:
    """Count on this machine."""
    return map(count, parts)


class Cutter(NamedTuple):
    """Cuts sources into pieces."""

    options: ReadingOptions
    size: int  # bytes of a piece, about
    survey: Survey = local_survey

    def pieces(self, asked: Asked) -> Iterator[SourcePiece | RawMessage | Skipped]:
        """Yield a source in pieces, as messages what is read here, and what is skipped meanwhile.

        Raises SourceError as `sources.py` does.
        """
        source, skips = existing(asked.name), _Collected()
        request = ReadingRequest(self.options, skips, *asked[1:])
        with failing_as(source):
            yield from skips.among(self._cut(source, request))

    def _cut(self, source: Source, request: ReadingRequest) -> Iterator[SourcePiece | RawMessage]:
        kind = recognised(source, request)
        if any(kind is listing for listing in _LISTINGS):
            raws, n, lists = kind.read(source, request), max(_FILES, self.size // _MAIL), 0
            while own := list(islice(raws, min(n << (lists // _LISTS), _FILES_LIMIT))):
                names, labels, _ = zip(*own, strict=True)
                yield FileList(source.name, names, labels)
                lists += 1
        # Only this machine can read a stream, or know where the messages of a list are.
        elif source.is_at_server or not source.is_file or self.options.input_format in FILE_LISTS:
            yield from kind.read(source, request)
        else:
            yield from self._parts(source, kind, request) or kind.read(source, request)

    def _parts(
        self, source: Source, kind: SourceKind, request: ReadingRequest
    ) -> list[RangePiece] | None:
        """Return a file's parts; None if it is read whole."""
        encoding = self.options.table.encoding
        with source.path.open("rb") as stream:
            if is_wide(encoding) or unpacking(stream.read(6)):  # read from its start
                return None
        if kind is mail.MBOX:
            reader: RangeReader = partial(_mails, request.label, request.options.seen)
            return _range_pieces(self._ranges(source, count_messages), reader)
        if kind is tables.EACH_LINE:
            counted = self._ranges(source, count_lines, _SHORT)
            return _range_pieces(counted, partial(_lines, encoding, request.label))
        form = "tsv" if kind is tables.NAMELESS_TSV else self.options.input_format
        content = file_content(source.path, form)
        if content.form not in ("tsv", "csv", "jsonl"):
            return None
        counted = self._ranges(source, count_lines, _SHORT)
        if content.form == "csv" and any(found.has_quotes for _, found in counted):
            return None
        has_quoted_cells = any(found.has_quoted_cells for _, found in counted)
        plan = tables.line_plan(content, request, has_quoted_cells)
        if plan.layout.is_quoted and content.form != "csv":
            return None
        return _range_pieces(counted, partial(_rows, plan, encoding, request.needs_labels))

    def _ranges(
        self, source: Source, count: RangeCount, tokens: int = 1
    ) -> list[tuple[ByteRange, RangeFound]]:
        """Return a file in ranges, each with what begins in it.

        tokens: times as many as a mail has in as many bytes.
        """
        name, whole = str(source.path), source.path.stat().st_size
        n = max(1, round(whole / max(1, self.size // tokens)))
        parts = [ByteRange(name, whole, whole * i // n, whole * (i + 1) // n) for i in range(n)]
        return list(zip(parts, self.survey(count, parts), strict=True))


def _range_pieces(
    counted: list[tuple[ByteRange, RangeFound]], reader: RangeReader
) -> list[RangePiece]:
    """Return ranges with the numbers of what is first in each."""
    pieces: list[RangePiece] = []
    first = 1
    for part, found in counted:
        pieces.append(RangePiece(part, first, reader))
        first += found.n
    return pieces
