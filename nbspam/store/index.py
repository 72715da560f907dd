"""A model's token counts for a program that goes on running: looked up by an index in memory.

For one message it pays to halve the file until a token is found; from the second message on it pays
to know where things are.  Every 1,000 bytes or so of the tokens have an entry, so that a token is
one search in a sorted list, and one in a short stretch of the file; or of its copy in memory.
"""

from bisect import bisect_right
from collections.abc import Iterable
from pathlib import Path

from nbspam.store.lookup import LINE_LIMIT, Lookup
from nbspam.store.model_file import Row, token_key

# Bytes of the file for each entry.  Measured on 554,000 tokens (14 MB) and mails of 540 tokens:
# 512 takes 1.5 ms a mail and 54 ms to make, 1,024 1.8 and 16, 4,096 3.0 and 12; halving 6.7 and 0.
_STRIDE = 1 << 10
_ENTRIES = 1 << 15  # at most, whatever the model's size: 3 MB
_CHUNK = 1 << 20  # bytes read at a time to make them
# Tokens of up to so many bytes, 2.5 million of them, are kept in memory: 1.9 microseconds a token,
# where to read the stretch takes 3.1.
_IN_MEMORY = 64 << 20


class Index(Lookup):
    """An open model file with an index of its tokens."""

    def __init__(self, path: Path) -> None:
        """Open the model, read its head and make the index; raises ModelError."""
        super().__init__(path)
        try:
            self._rows_of: dict[bytes, Row] = {}  # how counts are written -> the counts
            self._start, self._end = self.sections[0]
            small = self._end - self._start <= _IN_MEMORY
            # From the line end before the first line.
            self._text = self._read(self._start - 1, self._end - self._start + 1) if small else b""
            self._keys, self._starts = self._entries()
        except BaseException:
            self.__exit__()
            raise

    def _entries(self) -> tuple[list[bytes], list[int]]:
        """Return some of the tokens' keys, in order, and where the line ends before them are.

        After the last of them, the last line end.
        """
        last = self._end - 1
        stride = max(_STRIDE, (last - self._start) // _ENTRIES)
        keys: list[bytes] = []
        starts: list[int] = []
        text, low = self._text, self._start - 1
        high = low + len(text)
        position = low  # of a line end, or before one
        while position < last:
            if high < min(position + 2 * LINE_LIMIT, self._end):
                low, high = position, min(position + _CHUNK, self._end)
                text = self._read(low, high - low)
            begin = text.find(b"\n", position - low) + 1
            if low + begin > last:
                break
            line_end = text.find(b"\n", begin)
            if not begin or not 0 <= line_end - begin <= LINE_LIMIT:
                raise self._damaged("a line in it is too long")
            key = text[begin:line_end].rpartition(b": [")[0]
            if keys and key <= keys[-1]:
                raise self._damaged("its lines are not in order")
            keys.append(key)
            starts.append(low + begin - 1)
            position = low + begin + stride - 1
        return keys, [*starts, last]

    def counts(self, tokens: Iterable[str]) -> dict[str, Row]:
        """Return the counts per class of those tokens that the model knows.

        Raises ModelError when a line it reads is not as it should be.
        """
        keys, starts, rows = self._keys, self._starts, self._rows_of
        text, base = self._text, self._start - 1
        found: dict[str, Row] = {}
        for token in tokens:
            key = token_key(token).encode("utf-8", "replace")
            i = bisect_right(keys, key)
            if not i:
                continue
            low, high = starts[i - 1] - base, starts[i] - base + 1
            if not self._text:
                text = self._read(low + base, high - low)
                low, high = 0, high - low
            at = text.find(b"\n%b: [" % key, low, high)
            if at < 0:
                continue
            end = text.find(b"\n", at + 1, high)
            counts = text[at + len(key) + 1 : end]
            row = rows.get(counts)
            if row is None:  # few counts differ: each is validated once
                row = rows[counts] = self._row(text[at + 1 : end])
            found[token] = row
        return found
