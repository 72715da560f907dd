"""A model's token counts, looked up where they lie in the file.

The file is sorted by key, a token a line, so the tokens of one message are found by bisection with
positioned reads: a few kilobytes of a model of any size.  The probes are shared: a stretch of the
file is halved once for all tokens in it.  A memory map would be no faster, counts as resident what
it touches, and kills the process when the file shrinks under it; a read merely comes back short.

What is read is validated; the rest of the file is not looked at (`nbspam model check` does).
"""

import json
import os
import re
from bisect import bisect_left
from collections.abc import Iterable
from pathlib import Path

from nbspam.errors import ModelError
from nbspam.model.head import FORMAT, Head, HeadError, load_head
from nbspam.model.json_file import END, TOKENS_LINE, open_model, token_key

_HEAD_CHUNK = 1 << 16
_HEAD_LIMIT = 16 << 20
# Stretches no longer than this are read whole.  Measured on 1,000,000 tokens (25 MB) and a mail of
# 250: 4 KiB 4.4 ms, 8 KiB 4.1 ms, 16 KiB 4.6 ms.
_BLOCK = 8 << 10
_PROBE = 256
_MANY = 20  # tokens looked for in one block
_LINE_LIMIT = 1 << 13  # bytes; the tokenizer's longest token is far shorter


class Lookup:
    """An open model file.  Close it, or use it as a context manager."""

    def __init__(self, path: Path) -> None:
        """Open the model and read its head; raises ModelError."""
        self._path = path
        self._handle = open_model(path)
        try:
            self._size = os.fstat(self._handle).st_size
            self.head: Head
            self.head, self._start = self._read_head()
        except BaseException:
            os.close(self._handle)
            raise
        width = len(self.head.classes)
        self._line = re.compile(
            rb'"(?:[^"\\\n]|\\.)*": \[(\d{1,16}(?:, \d{1,16}){%d})\],?' % (width - 1)
        )

    def __enter__(self) -> "Lookup":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._handle)

    def counts(self, tokens: Iterable[str]) -> dict[str, tuple[int, ...]]:
        """Return the counts per class of those tokens that the model knows.

        Raises ModelError when a line it reads is not as it should be.
        """
        wanted = sorted((token_key(token).encode("utf-8", "replace"), token) for token in tokens)
        keys = [key for key, _ in wanted]
        found: dict[str, tuple[int, ...]] = {}
        # (from, to) in the file, (from, to) in the keys, and the keys that bound the stretch.
        stack = [(self._start, self._size, 0, len(keys), b"", b"")]
        while stack:
            low, high, first, last, above, below = stack.pop()
            if first == last or low >= high:
                continue
            if high - low <= _BLOCK:
                block = b"\n" + self._read(low, high - low)
                if last - first > _MANY:  # one pass over the lines is cheaper than a search each
                    lines = {line.rpartition(b": [")[0]: line for line in block.split(b"\n")}
                    for i in range(first, last):
                        if (known := lines.get(keys[i])) is not None:
                            found[wanted[i][1]] = self._row(known)
                    continue
                for i in range(first, last):
                    at = block.find(b"\n" + keys[i] + b": [")
                    if at >= 0:
                        end = block.find(b"\n", at + 1)
                        line = block[at + 1 : end if end > 0 else len(block)]
                        found[wanted[i][1]] = self._row(line)
                continue
            start, line = self._line_at((low + high) // 2, high)
            if start >= high:  # one long line up to the end of the stretch: go through it whole
                start, line = low, self._read_line(low)
                if low + len(line) + 1 >= high:
                    middle = bisect_left(keys, line.rpartition(b": [")[0], first, last)
                    if middle < last and line.startswith(keys[middle] + b": ["):
                        found[wanted[middle][1]] = self._row(line)
                    continue
                start += len(line) + 1
                line = self._read_line(start)
            if not line.startswith(b'"'):  # past the tokens
                stack.append((low, start, first, last, above, below))
                continue
            self._row(line)
            key = line.rpartition(b": [")[0]
            if (above and key <= above) or (below and key >= below):
                raise self._damaged("its tokens are not in order")
            middle = bisect_left(keys, key, first, last)
            stack.append((low, start, first, middle, above, key))
            stack.append((start, high, middle, last, key, below))
        return found

    def _row(self, line: bytes) -> tuple[int, ...]:
        match = self._line.fullmatch(line)
        if match:
            row = tuple(map(int, match[1].split(b", ")))
            if all(c <= n for c, n in zip(row, self.head.messages, strict=True)):
                return row
        text = line[:80].decode("utf-8", "replace")
        raise self._damaged(f"the line {text!r} is not a token and its counts")

    def _line_at(self, position: int, high: int) -> tuple[int, bytes]:
        """Return the first line that begins after `position`, and where it begins."""
        size = _PROBE
        while True:
            chunk = self._read(position, min(size, self._size - position))
            start = chunk.find(b"\n") + 1
            if start and position + start >= high:
                return high, b""
            end = chunk.find(b"\n", start) if start else -1
            if end >= 0:
                return position + start, chunk[start:end]
            if position + size >= self._size:
                return high, b""
            size *= 4
            if size > 4 * _LINE_LIMIT:
                raise self._damaged("a line in it is too long")

    def _read_line(self, position: int) -> bytes:
        chunk = self._read(position, min(_LINE_LIMIT, self._size - position))
        line, end, _ = chunk.partition(b"\n")
        if not end:
            raise self._damaged("a line in it is too long")
        return line

    def _read(self, position: int, length: int) -> bytes:
        try:
            chunk = os.pread(self._handle, length, position)
        except OSError as error:
            raise ModelError(
                f"{self._path}: the model cannot be read ({error.strerror}); check the disk"
            ) from error
        if len(chunk) < length:
            raise ModelError(
                f"{self._path}: the model became shorter while it was read; run it again, and write"
                " models with nbspam only"
            )
        return chunk

    def _read_head(self) -> tuple[Head, int]:
        head = self._read(0, min(_HEAD_CHUNK, self._size))
        if not head.startswith(b'{"format": "%s"' % FORMAT.encode()):
            if head.lstrip()[:1] == b"{" and f'"{FORMAT}"'.encode() in head:
                raise self._damaged("it was laid out anew by another program")
            raise ModelError(
                f"{self._path}: is not an nbspam model; name a file that nbspam train wrote"
            )
        while (end := head.find(b"\n" + TOKENS_LINE)) < 0:
            if len(head) >= min(self._size, _HEAD_LIMIT):
                raise self._damaged("it is cut short")
            head = self._read(0, min(4 * len(head), self._size))
        try:
            fields = json.loads(head[:end].rstrip(b",") + b"}")
            loaded = load_head(fields)
        except HeadError as error:
            raise ModelError(f"{self._path}: {error}") from None
        except (ValueError, RecursionError):
            raise self._damaged("its head is not JSON") from None
        if self._read(max(0, self._size - len(END)), min(len(END), self._size)) != END:
            raise self._damaged("it is cut short")
        return loaded, end + 1 + len(TOKENS_LINE)

    def _damaged(self, how: str) -> ModelError:
        return ModelError(
            f"{self._path}: the model is damaged: {how}; restore it from a copy or train again"
        )
