"""Sources cut into pieces, each of which another machine can read.

Files of folders, Maildirs and indexes are listed here and read there.  An mbox, a text and a table
of lines are cut into ranges of bytes, and Parquet into its row groups.  What cannot be cut is read
here, and its messages take the place of pieces: an archive, a JSON document, a CSV with quotes
(where a row ends depends on all the quotes before it), standard input, a pipe.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from nbspam.reading.byte_range import (
    ByteRange,
    LinesFound,
    can_be_cut,
    count_lines,
    count_messages,
    ranges,
)
from nbspam.reading.class_folders import CLASS_FOLDERS
from nbspam.reading.content import file_content
from nbspam.reading.folder import FOLDER
from nbspam.reading.formats import format_kind
from nbspam.reading.index import NAMED_INDEX, NAMELESS_INDEX
from nbspam.reading.lines import is_wide
from nbspam.reading.mbox import MBOX
from nbspam.reading.piece import Collected, FileList, SourcePiece
from nbspam.reading.range_pieces import MboxReader, RangePiece, RangeReader, RowReader, TextReader
from nbspam.reading.raw_message import RawMessage
from nbspam.reading.single_message import EMPTY_FILE, MAIL, NAMED_MAIL, TEXT
from nbspam.reading.skips import Skipped
from nbspam.reading.source_kind import (
    FILE_LISTS,
    LINES,
    MBOX_FORMAT,
    STDIN,
    TABLE_FORMATS,
    Labels,
    ReadingOptions,
    ReadingRequest,
    Source,
    SourceKind,
)
from nbspam.reading.sources import NOT_ASKED_FOR, existing, recognised, source_error
from nbspam.reading.tables import NAMED_TABLE, NAMELESS_PARQUET, NAMELESS_TSV, line_plan

# What a piece does to bytes before they are read: it counts what begins in each of some ranges.
# The ranges may be counted on other machines.
RangeCount = Callable[[ByteRange], LinesFound | int]
Survey = Callable[[RangeCount, list[ByteRange]], Iterable[LinesFound | int]]

_SHORT = 4  # times as many tokens has a text without a header, of as many bytes
# Files of a list, at first; the next ones are longer, so that 10^8 files are few lists.
_MAIL, _FILES = 4_096, 125  # bytes of a file, about; files at least
_FILES_LIMIT = 4_000
_LISTS = 1_000  # of one length


class Asked(NamedTuple):
    """A source, and what is asked of it."""

    name: str
    label: str | None = None  # the class that the user gives its messages
    has_label: bool = False  # whether the user gives one
    needs_labels: bool = False  # it must say itself which class each message is in

    def kind(self, source: Source, request: ReadingRequest) -> SourceKind:
        """Return its kind, as `sources.py` recognises it; raises SourceError."""
        refused = Labels.NEVER if self.needs_labels else Labels.ALWAYS if self.has_label else None
        return recognised(source, request, self.ignored, refused)

    @property
    def ignored(self) -> frozenset[Labels]:
        """The kinds with such labels are not asked whether they recognise it."""
        if self.needs_labels:
            return frozenset()
        return NOT_ASKED_FOR if self.has_label else frozenset({Labels.ON_REQUEST})


def local_survey(count: RangeCount, parts: list[ByteRange]) -> Iterable[LinesFound | int]:
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
        source, skips = existing(asked.name), Collected()
        request = ReadingRequest(self.options, skips, asked.label, asked.needs_labels)
        try:
            yield from skips.among(self._cut(asked, source, request))
        except (OSError, UnicodeError, LookupError) as error:
            if (known := source_error(source, error)) is None:
                raise
            raise known from error

    def _cut(
        self, asked: Asked, source: Source, request: ReadingRequest
    ) -> Iterator[SourcePiece | RawMessage]:
        kind = asked.kind(source, request)
        if any(kind is listing for listing in _LISTINGS):
            yield from self._lists(source, kind.read(source, request))
        elif self._only_here(source):
            yield from kind.read(source, request)
        else:
            yield from self._parts(source, kind, request) or kind.read(source, request)

    def _only_here(self, source: Source) -> bool:
        """Return whether only this machine can read a source, or know where its messages are."""
        is_list = self.options.input_format in FILE_LISTS
        return source.name == STDIN or source.is_at_server or is_list or not source.is_file

    def _lists(self, source: Source, raws: Iterator[RawMessage]) -> Iterator[SourcePiece]:
        """Yield the files of a folder or an index in lists."""
        own: list[RawMessage] = []
        lists, n = 0, max(_FILES, self.size // _MAIL)
        for raw in raws:
            own.append(raw)
            if len(own) == min(n << (lists // _LISTS), _FILES_LIMIT):
                yield _file_list(source, own)
                own, lists = [], lists + 1
        if own:
            yield _file_list(source, own)

    def _parts(
        self, source: Source, kind: SourceKind, request: ReadingRequest
    ) -> list[SourcePiece] | None:
        """Return a file's parts; None if it is read whole."""
        encoding = request.options.table.encoding
        input_format = request.options.input_format
        if not can_be_cut(source.path) or is_wide(encoding):
            return None
        if kind is MBOX or kind is format_kind(MBOX_FORMAT):
            return self._ranges(
                source, count_messages, MboxReader(request.label, request.options.seen)
            )
        if kind is format_kind(LINES):
            return self._ranges(source, count_lines, TextReader(encoding, request.label))
        if kind is NAMELESS_TSV:
            return self._table(source, "tsv", request)
        if input_format in TABLE_FORMATS and kind is format_kind(input_format):
            return self._table(source, input_format, request)
        if kind is NAMED_TABLE or kind is NAMELESS_PARQUET:
            return self._table(source, None, request)
        return None

    def _table(
        self, source: Source, form: str | None, request: ReadingRequest
    ) -> list[SourcePiece] | None:
        content = file_content(source.path, form)
        if content.form == "parquet":
            from nbspam.reading.row_groups import row_groups

            return list(row_groups(source, content, request, self.size) or ()) or None
        if content.form == "json":
            return None
        counted = self._counted(source, count_lines, max(1, self.size // _SHORT))
        found = [n for _, n in counted if isinstance(n, LinesFound)]
        if content.form == "csv" and any(n.has_quotes for n in found):
            return None
        plan = line_plan(content, request, any(n.has_quoted_cells for n in found))
        if plan.layout is not None and plan.layout.is_quoted and content.form != "csv":
            return None
        encoding = request.options.table.encoding
        return _range_pieces(counted, RowReader(plan, encoding, request.needs_labels))

    def _counted(
        self, source: Source, count: RangeCount, size: int
    ) -> list[tuple[ByteRange, LinesFound | int]]:
        parts = list(ranges(str(source.path), source.path.stat().st_size, size))
        return list(zip(parts, self.survey(count, parts), strict=True))

    def _ranges(self, source: Source, count: RangeCount, reader: RangeReader) -> list[SourcePiece]:
        size = self.size if count is count_messages else self.size // _SHORT
        return _range_pieces(self._counted(source, count, max(1, size)), reader)


# Kinds whose messages are files, which are listed without being read.
_LISTINGS = (
    CLASS_FOLDERS,
    FOLDER,
    NAMED_INDEX,
    NAMELESS_INDEX,
    EMPTY_FILE,
    NAMED_MAIL,
    MAIL,
    TEXT,
)


def _file_list(source: Source, raws: list[RawMessage]) -> SourcePiece:
    names, labels, _ = zip(*raws, strict=True)
    return FileList(source.name, 0, names, labels)


def _range_pieces(
    counted: list[tuple[ByteRange, LinesFound | int]], reader: RangeReader
) -> list[SourcePiece]:
    """Return ranges with the numbers of what is first in each."""
    pieces: list[SourcePiece] = []
    first = 1
    for part, found in counted:
        pieces.append(RangePiece(part, first, reader))
        first += found.n if isinstance(found, LinesFound) else found
    return pieces
