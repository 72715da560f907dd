"""A message on its way from standard input to standard output: written once, whatever happens.

It needs nothing but the standard library: the message must also pass when the command line is
wrong or a package is missing.
"""

import contextlib
import os
from typing import IO, TextIO

_CHUNK = 1 << 20


class Passage:
    """Reads the message from one stream and writes it to another, once."""

    def __init__(self, source: TextIO | None, sink: TextIO | None) -> None:
        """Pass from `source` to `sink`; None stands for a closed stream."""
        self._terminal = source is not None and source.isatty()
        self._source = _blocking(source)
        self._sink = _blocking(sink)
        self._pending: list[bytes] = []  # read and not yet written
        self._has_written = False

    def take(self, limit: int) -> bytes:
        """Read the first `limit` bytes of the message; if that fails, what was read is kept."""
        if self._source is None:
            raise OSError(0, "standard input is closed")
        left = limit
        # In pieces: those read before a failed read are kept.
        while left and (chunk := self._source.read1(min(left, _CHUNK))):  # type: ignore[attr-defined]
            self._pending.append(chunk)
            left -= len(chunk)
        self._pending = [b"".join(self._pending)]
        return self._pending[0]

    def give(self, first: bytes) -> None:
        """Write `first` in place of what was read, then copy the rest of the message."""
        self._pending = [first]
        self._give()

    def rescue(self) -> bool:
        """Write the message unchanged, unless some was written already; return whether it did.

        It does not wait for a terminal.  Raises OSError.
        """
        if self._has_written or self._source is None or self._sink is None:
            return False
        if self._terminal and not self._pending:
            return False
        self._give()
        return True

    def _give(self) -> None:
        if self._sink is None:
            raise OSError(0, "standard output is closed")
        self._has_written = True
        for chunk in self._pending:
            _write_all(self._sink, chunk)
        self._pending = []
        while chunk := self._source.read1(_CHUNK) if self._source else b"":  # type: ignore[attr-defined]
            _write_all(self._sink, chunk)
        self._sink.flush()


def _write_all(sink: IO[bytes], chunk: bytes) -> None:
    """Write a chunk whole; raises OSError.

    A raw stream, which standard output is with PYTHONUNBUFFERED, may write a part of it only.
    """
    left = memoryview(chunk)
    while left:
        written: int | None = sink.write(left)
        if written is None:  # it could not be made blocking
            raise OSError(0, "standard output does not take what is written")
        left = left[written:]


def _blocking(stream: TextIO | None) -> IO[bytes] | None:
    """Return the stream's bytes, made blocking: no data yet must not look like the end."""
    if stream is None or stream.closed:
        return None
    with contextlib.suppress(OSError, ValueError):  # not a file
        os.set_blocking(stream.fileno(), True)
    return stream.buffer
