"""Sources cut into pieces, each of which another machine can read.

Files of folders, Maildirs and indexes are listed here and read there.  An mbox, a text and a table
of lines are cut into ranges of bytes.  Sources that cannot be cut are read here, and yield messages
in place of pieces: archives, JSON documents, Parquet, Excel, a CSV with quotes (the end of a row
depends on all quotes before it), standard input, pipes.

A piece is data, so it can go to another machine, and can be read twice with the same result.
Skipped messages are data too, among the others.
"""

import io
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import accumulate, pairwise, takewhile
from typing import NamedTuple, TypeVar

from nbspam.errors import NbspamError, SourceError
from nbspam.names import is_url
from nbspam.reading import mail, tables
from nbspam.reading.compression import MAGIC_BYTES, DerivedStream, unpacking
from nbspam.reading.lines import Opener, each_line
from nbspam.reading.message import RawMessage
from nbspam.reading.rows import Layout, content_of, layout_of
from nbspam.reading.source import (
    LINES,
    ReadingNote,
    ReadingOptions,
    ReadingRequest,
    Skips,
    Source,
    SourceKind,
)
from nbspam.reading.sources import attached_messages, existing, failing_as, recognised

A = TypeVar("A")


class MissingFileError(NbspamError):
    """The file that was cut on another machine is missing here."""


class _Collected(Skips):
    """Skipped messages that are yielded among the others."""

    def __init__(self) -> None:
        super().__init__()
        self._new: list[ReadingNote] = []

    def take(self, skipped: ReadingNote) -> None:
        self._new.append(skipped)

    def among(self, raws: Iterator[A]) -> Iterator[A | ReadingNote]:
        """Yield messages or pieces, and the messages that are skipped meanwhile."""
        for raw in raws:
            while self._new:
                yield self._new.pop(0)
            yield raw
        yield from self._new


class FileList(NamedTuple):
    """Files with one message each."""

    files: tuple[str, ...]
    labels: tuple[str | None, ...]
    size: int = 0  # bytes: unknown until the files are read

    def read(self) -> Iterator[RawMessage | ReadingNote]:
        """Yield its messages; each file is opened when it is parsed.

        A missing file is skipped then, since mail is moved while it is read.  A missing folder
        means that this machine has other files.
        """
        first = Source(self.files[0]).path
        if not is_url(first) and not first.exists() and not first.parent.is_dir():
            raise MissingFileError(f"{first.parent}: no such folder")
        for name, label in zip(self.files, self.labels, strict=True):
            yield RawMessage(name, label, Source(name).path)


# A range is cut at any byte.  Lines, or messages of an mbox, belong to the range in which they
# begin, so its reader finds the first and the last one without the other ranges.


class ByteRange(NamedTuple):
    """Some of a file's bytes, from start to end."""

    name: str
    whole: int  # bytes of the file; on another machine it must have as many
    start: int
    end: int
    of_mails: bool  # of an mbox, and not of lines

    def file(self) -> io.BufferedReader:
        """Open the whole file; raises MissingFileError if it has another size here, and OSError."""
        path = Source(self.name).path
        try:
            here = path.stat().st_size
        except OSError as error:
            raise MissingFileError(f"{self.name}: cannot be found ({error.strerror})") from error
        if here != self.whole:
            raise MissingFileError(
                f"{self.name}: is a different file ({here:,} bytes, not {self.whole:,})"
            )
        return path.open("rb")

    def opened(self) -> io.BufferedReader:
        """Open the lines or messages that begin in it; raises as `file` does."""
        stream, end = self.file(), self.whole
        start = self._begins(stream, self.start) if self.start else 0
        if self.end < self.whole:  # the line end before a mail's blank line belongs to no mail
            end = self._begins(stream, self.end) - self.of_mails
        stream.seek(start)

        def read(n: int) -> bytes:
            return stream.read1(min(n, max(end - stream.tell(), 0)))

        return io.BufferedReader(DerivedStream(read, stream), 1 << 16)

    def _begins(self, stream: io.BufferedReader, at: int) -> int:
        """Return where the first line or message begins from `at` on, which is above 0."""
        if self.of_mails:
            return next(mail.message_starts(stream, at), self.whole + 1)
        stream.seek(at - 1)
        for line in each_line(stream):
            if line.endswith(b"\n"):
                break
        return stream.tell()


class RangeCount(NamedTuple):
    """What a range has, counted before it is read."""

    n: int  # lines or messages that begin in it
    has_quotes: bool = False
    has_quoted_cells: bool = False  # of a TSV: one begins with a quote


def count(part: ByteRange) -> RangeCount:
    """Count the lines or messages that begin in a range; raises MissingFileError and OSError."""
    n, quotes, cells = 0, False, False
    if part.of_mails:
        with part.file() as stream:
            starts = mail.message_starts(stream, max(part.start, 1))
            n = sum(1 for _ in takewhile(lambda at: at < part.end, starts))
        return RangeCount(n + (part.start == 0))
    with part.opened() as stream:
        for line in each_line(stream):
            n += 1
            if not cells and b'"' in line:
                quotes = True
                bare = line.removeprefix(b"\xef\xbb\xbf") if n == 1 else line
                cells = bare.startswith(b'"') or b'\t"' in bare
    return RangeCount(n, quotes, cells)


# Counts ranges before a file is read, as `count` does, perhaps on other machines.
Survey = Callable[[list[ByteRange]], Iterable[RangeCount]]
# Yields the messages of a range; takes the file's name, what opens the range, and the number of its
# first line or message.
PartReader = Callable[[str, Opener, Skips, int], Iterator[RawMessage]]


class RangePiece(NamedTuple):
    """A range of a file and its reader."""

    part: ByteRange
    first: int  # the number of its first line or message
    reader: PartReader

    @property
    def files(self) -> tuple[str, ...]:
        """The file, alone."""
        return (self.part.name,)

    @property
    def size(self) -> int:
        """Its bytes."""
        return self.part.end - self.part.start

    def read(self) -> Iterator[RawMessage | ReadingNote]:
        """Yield its messages."""
        name, skips = self.part.name, _Collected()
        with failing_as(Source(name)):
            yield from skips.among(self.reader(name, self.part.opened, skips, self.first))


# `read` yields its messages in order, and skipped messages among them; it raises SourceError, and
# MissingFileError on a machine without the same file.
SourcePiece = FileList | RangePiece

_SHORT = 4  # ratio of the tokens of a text without a header to those of a mail of as many bytes
# Files of a list, at first; later ones are longer, so that 10^8 files are few lists.
_MAIL, _FILES = 4_096, 125  # bytes of a file, about; files at least
_FILES_LIMIT = 4_000
_LISTS = 1_000  # of one length
# Kinds whose messages are files, which are listed without being read.
_LISTINGS = (mail.CLASS_FOLDERS, mail.FOLDER, mail.INDEX, mail.EMPTY_FILE, mail.MAIL, mail.TEXT)


class Cutter(NamedTuple):
    """Cuts sources into pieces."""

    options: ReadingOptions
    size: int  # bytes of a piece, about
    survey: Survey = partial(map, count)

    def pieces(
        self, name: str, label: str | None = None, needs_labels: bool = False
    ) -> Iterator[SourcePiece | RawMessage | ReadingNote]:
        """Yield a source as pieces, or as messages if it is read here, and what is skipped.

        label: the class that the user gives its messages.
        needs_labels: whether the source must have labels of its own.
        Raises SourceError as `sources.py` does.
        """
        source, skips = existing(name), _Collected()
        request = ReadingRequest(self.options, skips, label, needs_labels)
        with failing_as(source):
            yield from skips.among(self._cut(source, request))

    def _cut(self, source: Source, request: ReadingRequest) -> Iterator[SourcePiece | RawMessage]:
        kind = recognised(source, request)
        if self.options.attached:
            yield from attached_messages(kind.read(source, request), request)
        elif any(kind is listing for listing in _LISTINGS):
            n, lists = max(_FILES, self.size // _MAIL), 0
            files: list[str] = []
            labels: list[str | None] = []
            for raw in kind.read(source, request):
                is_file = not isinstance(raw.content, bytes)  # and not of an mbox
                if is_file:
                    files.append(raw.source)
                    labels.append(raw.label)
                is_full = len(files) >= min(n << (lists // _LISTS), _FILES_LIMIT)
                if files and (is_full or not is_file):
                    yield FileList(tuple(files), tuple(labels))
                    files, labels, lists = [], [], lists + 1
                if not is_file:
                    yield raw
            if files:
                yield FileList(tuple(files), tuple(labels))
        # Only this machine can read a stream.
        elif source.is_imap_folder or not source.is_file:
            yield from kind.read(source, request)
        else:
            yield from self._parts(source, kind, request) or kind.read(source, request)

    def _parts(
        self, source: Source, kind: SourceKind, request: ReadingRequest
    ) -> list[RangePiece] | None:
        """Return a file's parts; None if it is read whole."""
        with source.path.open("rb") as stream:
            if unpacking(stream.read(MAGIC_BYTES)):  # read from its start
                return None
        if kind is mail.MBOX:
            mail.note_unflagged(source, request)
            if mail.body_end(source.sample):  # where messages begin depends on all before them
                return None
            reader: PartReader = partial(mail.mbox_messages, request.label, request.options.seen)
            return _range_pieces(self._counted(source, of_mails=True), reader)
        if self.options.on_row is not None:  # it is called here
            return None
        notes = list[SourceError]()
        options = self.options._replace(tell=notes.append)
        form = LINES if kind is tables.EACH_LINE else self.options.input_format
        form = "tsv" if kind is tables.TSV else form
        content = content_of(source, form, options)
        if content.decoding.is_streamed or content.form not in ("tsv", "csv", "jsonl", LINES):
            return None
        ranges = self._counted(source)
        if content.form == LINES:
            reader = partial(tables.line_messages, request.label, content.decoding)
        elif content.form == "csv" and any(counts.has_quotes for _, counts in ranges):
            return None
        else:
            is_bare = content.form == "tsv" and not any(c.has_quoted_cells for _, c in ranges)
            layout = Layout("\t") if is_bare else layout_of(content, options.table)
            if layout.is_quoted and content.form != "csv":
                return None
            reader = tables.line_plan(content, request, layout).read
        for note in notes:
            self.options.tell(note)
        return _range_pieces(ranges, reader)

    def _counted(
        self, source: Source, of_mails: bool = False
    ) -> list[tuple[ByteRange, RangeCount]]:
        """Return the ranges of a file with their counts."""
        name, whole = str(source.path), source.path.stat().st_size
        size = self.size if of_mails else self.size // _SHORT
        n = max(1, round(whole / max(1, size)))
        cuts = [whole * i // n for i in range(n + 1)]
        parts = [ByteRange(name, whole, *ends, of_mails) for ends in pairwise(cuts)]
        return list(zip(parts, self.survey(parts), strict=True))


def _range_pieces(
    ranges: list[tuple[ByteRange, RangeCount]], reader: PartReader
) -> list[RangePiece]:
    """Return ranges as pieces, with the number of the first line or message of each."""
    firsts = accumulate((counts.n for _, counts in ranges), initial=1)
    return [
        RangePiece(part, first, reader) for (part, _), first in zip(ranges, firsts, strict=False)
    ]
