"""A model's token counts for a program that goes on running: looked up by an index in memory.

For one message it pays to halve the file until a token is found; from the second message on it pays
to know where things are.  Every 1,000 bytes or so of the tokens have an entry, so that a token is
one search in a sorted list and one short read.
"""

from bisect import bisect_right
from collections.abc import Iterable
from pathlib import Path

from nbspam.model.json_file import Row, token_key
from nbspam.model.lookup import LINE_LIMIT, Lookup

# Bytes of the file for each entry.  Measured on 554,000 tokens (14 MB) and mails of 540 tokens:
# 512 takes 1.5 ms a mail and 54 ms to make, 1,024 1.8 and 16, 4,096 3.0 and 12; halving 6.7 and 0.
_STRIDE = 1 << 10
_ENTRIES = 1 << 15  # at most, whatever the model's size: 3 MB
_CHUNK = 1 << 20  # bytes read at a time to make them


class Index(Lookup):
    """An open model file with an index of its tokens."""

    def __init__(self, path: Path) -> None:
        """Open the model, read its head and make the index; raises ModelError."""
        super().__init__(path)
        try:
            self._keys, self._starts = self._entries()
            self._rows_of: dict[bytes, Row] = {}  # how counts are written -> the counts
        except BaseException:
            self.__exit__()
            raise

    def _entries(self) -> tuple[list[bytes], list[int]]:
        """Return some of the tokens' keys, in order, and where their lines begin.

        After the last of them, where the tokens end.
        """
        start, end = self.sections[0]
        stride = max(_STRIDE, (end - start) // _ENTRIES)
        keys: list[bytes] = []
        starts: list[int] = []
        block, low, high = b"", 0, 0  # what is read of the file, and from where to where
        position = start - 1  # of a line end, or before one
        while position < end - 1:
            if high < min(position + 2 * LINE_LIMIT, end):
                low, high = position, min(position + _CHUNK, end)
                block = self._read(low, high - low)
            begin = block.find(b"\n", position - low) + 1
            if low + begin == end:
                break
            line_end = block.find(b"\n", begin)
            if not begin or not 0 <= line_end - begin <= LINE_LIMIT:
                raise self._damaged("a line in it is too long")
            key = block[begin:line_end].rpartition(b": [")[0]
            if keys and key <= keys[-1]:
                raise self._damaged("its lines are not in order")
            keys.append(key)
            starts.append(low + begin)
            position = low + begin + stride - 1
        return keys, [*starts, end]

    def counts(self, tokens: Iterable[str]) -> dict[str, Row]:
        """Return the counts per class of those tokens that the model knows.

        Raises ModelError when a line it reads is not as it should be.
        """
        keys, starts, rows = self._keys, self._starts, self._rows_of
        found: dict[str, Row] = {}
        for token in tokens:
            key = token_key(token).encode("utf-8", "replace")
            i = bisect_right(keys, key)
            if not i:
                continue
            low = starts[i - 1] - 1  # with the line end before
            block = self._read(low, starts[i] - low)
            at = block.find(b"\n" + key + b": [")
            if at < 0:
                continue
            end = block.find(b"\n", at + 1)
            counts = block[at + len(key) + 1 : end]
            row = rows.get(counts)
            if row is None:  # few counts differ: each is validated once
                row = rows[counts] = self._row(block[at + 1 : end])
            found[token] = row
        return found
