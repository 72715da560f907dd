"""A range of a file's bytes, and what begins in it: lines, or the messages of an mbox.

A range is cut at any byte.  What begins in it belongs to it, up to where the next thing begins, and
so whoever reads a range finds its beginning and its end alone, as the readers of its neighbours do.
"""

import io
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from nbspam.reading.compression import is_archive
from nbspam.reading.lines import each_line
from nbspam.reading.mbox import message_starts
from nbspam.reading.piece import check_same

if TYPE_CHECKING:
    from pathlib import Path

    from typing_extensions import Buffer  # collections.abc has it from Python 3.12 on

_CHUNK = 1 << 20


class ByteRange(NamedTuple):
    """Some of a file's bytes, from start to end."""

    name: str
    whole: int  # bytes of the file, by which it is known again on another machine
    start: int
    end: int

    @property
    def size(self) -> int:
        """Its bytes."""
        return self.end - self.start

    def opened(
        self, begins: Callable[[io.BufferedReader, int], int | None], gap: int = 0
    ) -> io.BufferedReader:
        """Open the bytes of what begins in it.

        begins: returns where in a stream the first thing begins from a place on; None: nowhere.
        gap: bytes before that which belong to nothing.
        Raises ElsewhereError: the file is not here, or not as long; OSError.
        """
        stream = check_same(self.name, self.whole).path.open("rb")
        start = begins(stream, self.start) if self.start else 0
        end = begins(stream, self.end) if self.end < self.whole else None
        start = self.whole if start is None else start
        stream.seek(start)
        left = (self.whole if end is None else end - gap) - start
        return io.BufferedReader(_Limited(stream, left), 1 << 16)


class _Limited(io.RawIOBase):
    """So many bytes of a stream, from where it stands."""

    def __init__(self, stream: io.BufferedReader, left: int) -> None:
        self._stream, self._left = stream, left

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._stream.close()
        super().close()

    def readinto(self, buffer: "Buffer") -> int:
        view = memoryview(buffer)
        data = self._stream.read1(min(len(view), max(self._left, 0)))
        self._left -= len(data)
        view[: len(data)] = data
        return len(data)


def line_start(stream: io.BufferedReader, at: int) -> int:
    """Return where the first line begins from `at` on, which is above 0."""
    stream.seek(at - 1)
    for line in each_line(stream):
        if line.endswith(b"\n"):
            break
    return stream.tell()


def message_start(stream: io.BufferedReader, at: int) -> int | None:
    """Return where the first message of an mbox begins from `at` on; None: nowhere."""
    return next(message_starts(stream, at), None)


class LinesFound(NamedTuple):
    """What is to be known of a range of lines before it is read."""

    n: int  # lines
    has_quotes: bool
    has_quoted_cells: bool  # of a TSV: one begins with a quote


def count_lines(part: ByteRange) -> LinesFound:
    """Count the lines that begin in a range; raises ElsewhereError and OSError."""
    n, quotes, cells = 0, False, False
    with part.opened(line_start) as stream:
        for line in each_line(stream):
            n += 1
            if not cells and b'"' in line:
                quotes = True
                bare = line.removeprefix(b"\xef\xbb\xbf") if n == 1 else line
                cells = bare.startswith(b'"') or b'\t"' in bare
    return LinesFound(n, quotes, cells)


def count_messages(part: ByteRange) -> int:
    """Count the messages of an mbox that begin in a range; raises ElsewhereError and OSError."""
    n = int(part.start == 0)
    with check_same(part.name, part.whole).path.open("rb") as stream:
        for at in message_starts(stream, max(part.start, 1)):
            if at >= part.end:
                break
            n += 1
    return n


def ranges(name: str, whole: int, size: int) -> Iterator[ByteRange]:
    """Yield a file in ranges of about so many bytes."""
    n = max(1, round(whole / size))
    for i in range(n):
        yield ByteRange(name, whole, whole * i // n, whole * (i + 1) // n)


def can_be_cut(path: "Path") -> bool:
    """Return whether a file's bytes are those of its text: an archive is read from its start."""
    with path.open("rb") as stream:
        return not is_archive(stream.read(6))
