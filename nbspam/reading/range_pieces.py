"""Pieces of files that are cut into ranges of bytes: tables of lines, texts, mboxes."""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple, Protocol

from nbspam.reading.byte_range import ByteRange, line_start, message_start
from nbspam.reading.lines import decoded_lines, read_lines
from nbspam.reading.mbox import mbox_messages
from nbspam.reading.piece import Collected, check_same, readable
from nbspam.reading.raw_message import RawMessage
from nbspam.reading.skips import Skipped, Skips
from nbspam.reading.source_kind import ReadingOptions, ReadingRequest
from nbspam.reading.tables import TablePlan, row_messages


class RangeReader(Protocol):
    """How the bytes of a range become messages."""

    def messages(self, part: ByteRange, first: int, skips: Skips) -> Iterator[RawMessage]:
        """Yield the messages that begin in a range; first: the number of its line or message."""


class RangePiece(NamedTuple):
    """A range of a file, with what its reader needs."""

    part: ByteRange
    first: int
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
        return self.part.size

    def read(self) -> Iterator[RawMessage | Skipped]:
        """Yield its messages."""
        source, skips = check_same(self.part.name, self.part.whole), Collected()
        raws = self.reader.messages(self.part, self.first, skips)
        yield from readable(source, skips.among(raws))


class RowReader(NamedTuple):
    """A table of lines: TSV, JSON lines, and CSV without quotes."""

    plan: TablePlan
    encoding: str | None
    needs_labels: bool

    def messages(self, part: ByteRange, first: int, skips: Skips) -> Iterator[RawMessage]:
        """Yield the rows of a range of lines."""
        opened = partial(part.opened, line_start)
        lines = decoded_lines(part.name, opened, self.encoding, skips, first)
        rows = self.plan.rows(part.name, lines, skips)
        return row_messages(part.name, rows, self.plan, self.needs_labels, skips)


class TextReader(NamedTuple):
    """A message on each line."""

    encoding: str | None
    label: str | None

    def messages(self, part: ByteRange, first: int, skips: Skips) -> Iterator[RawMessage]:
        """Yield the lines of a range."""
        opened = partial(part.opened, line_start)
        for number, line in read_lines(part.name, opened, self.encoding, skips, first):
            yield RawMessage(f"{part.name}:{number}", self.label, line)


class MboxReader(NamedTuple):
    """An mbox."""

    label: str | None
    seen: bool

    def messages(self, part: ByteRange, first: int, skips: Skips) -> Iterator[RawMessage]:
        """Yield the messages of a range."""
        request = ReadingRequest(ReadingOptions(seen=self.seen), skips, self.label)
        return mbox_messages(part.name, partial(part.opened, message_start, 1), request, first)
