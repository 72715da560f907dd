"""The bytes of a table: of a file, which can be read twice, or of a stream, which cannot.

How a table is laid out is decided by its beginning, then its rows are read.  Of a file the
beginning may be read to its end; of a stream it is what has come so far, kept in memory.
"""

import io
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from nbspam.reading.columns import SAMPLE_CHARACTERS, SAMPLE_ROWS
from nbspam.reading.compression import bare_suffix, open_bytes
from nbspam.reading.flow import has_more

if TYPE_CHECKING:
    from pathlib import Path

    from typing_extensions import Buffer  # collections.abc has it from Python 3.12 on

# Seconds from a stream's first bytes on in which its beginning is gathered, if its rows are to be
# answered as they come.  A pipe from a file brings 200 rows within a hundredth of one.
PATIENCE = 0.5
_CHUNK = 1 << 16


class Content(NamedTuple):
    """A table's bytes."""

    name: str  # in errors, and of its rows
    form: str  # "tsv", "csv", "jsonl", "json" or "parquet"
    whole: Callable[[], io.BufferedReader]  # opens all of it; of a stream once
    beginning: Callable[[], io.BufferedReader]  # opens what its layout is decided by
    is_cut: bool = False  # whether more follows the beginning


def file_content(path: "Path", form: str | None = None) -> Content:
    """Return a file's bytes; form: that of its name, if None."""
    opened = partial(open_bytes, path)
    form = form or {".tab": "tsv", ".ndjson": "jsonl"}.get(bare_suffix(path), bare_suffix(path)[1:])
    with opened() as stream:
        if stream.read(4) == b"PAR1":
            form = "parquet"
    return Content(str(path), form, opened, opened)


def stream_content(
    name: str, stream: io.BufferedReader, form: str = "", patience: float | None = None
) -> Content:
    """Return a stream's bytes, its first ones read.

    patience: seconds to wait for the rest of the first rows; None waits as long as it takes.
    """
    first, is_cut = first_bytes(stream, patience)
    beginning = first[: first.rfind(b"\n") + 1] if is_cut else first
    return Content(
        name,
        form,
        lambda: io.BufferedReader(_Resumed(first, stream), _CHUNK),
        lambda: io.BufferedReader(io.BytesIO(beginning)),
        is_cut,
    )


def first_bytes(stream: io.BufferedReader, patience: float | None) -> tuple[bytes, bool]:
    """Return the first rows of a stream, and whether more may follow.

    They are as many as columns are searched in, or what came in `patience` seconds: one line at
    least.
    """
    first = b""
    started: float | None = None
    while first.count(b"\n") <= SAMPLE_ROWS and len(first) < SAMPLE_CHARACTERS:
        if patience is not None and started is not None and b"\n" in first:
            left = started + patience - time.monotonic()
            if not has_more(stream, max(left, 0)):
                return first, True
        piece = stream.read1(_CHUNK)
        if not piece:
            return first, False
        first += piece
        started = started or time.monotonic()
    return first, True


class _Resumed(io.RawIOBase):
    """A stream of which the first bytes were read, from these on."""

    def __init__(self, first: bytes, stream: io.BufferedReader) -> None:
        self._first = memoryview(first)
        self._stream = stream

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._stream.close()
        super().close()

    def readinto(self, buffer: "Buffer") -> int:
        if not self._first:
            return self._stream.readinto1(buffer)  # what is there, without waiting for more
        view = memoryview(buffer)
        n = min(len(view), len(self._first))
        view[:n] = self._first[:n]
        self._first = self._first[n:]
        return n
