"""A model's token counts for a program that goes on running: looked up by an index in memory.

For one message, bisection of the file is the fastest; from the second message on an index pays.
There is an entry for about every 1,000 bytes of the tokens, so a token takes one search in a sorted
list and one in a short stretch of the file, or of its copy in memory.
"""

from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple

from nbspam.bayes.event_model import Row
from nbspam.store.lookup import LINE_LIMIT, Lookup
from nbspam.store.model_file import token_key


class IndexLayout(NamedTuple):
    """How an index is laid out.

    Measured on 554,000 tokens (14 MB) and mails of 540 tokens: a stride of 512 takes 1.5 ms per
    mail and 54 ms to make, 1,024 1.8 and 16, 4,096 3.0 and 12; bisection of the file 6.7 and 0.  A
    token takes 1.9 microseconds in memory, 3.1 where its stretch of the file is read.
    """

    stride: int = 1 << 10  # bytes of the file for each entry
    entries: int = 1 << 15  # at most, whatever the model's size: 3 MB
    chunk: int = 1 << 20  # bytes read at a time to make them
    in_memory: int = 64 << 20  # bytes of tokens, about 2.5 million, that are kept in memory


_DEFAULT = IndexLayout()


class TokenIndex:
    """An index of the tokens of an open model file."""

    def __init__(self, lookup: Lookup, layout: IndexLayout = _DEFAULT) -> None:
        """Index the tokens of `lookup`, which must stay open; raises ModelError."""
        self._lookup = lookup
        self._rows_of: dict[bytes, Row] = {}  # how counts are written -> the counts
        self._start, self._end = lookup.sections[0]
        small = self._end - self._start <= layout.in_memory
        # From the line end before the first line.
        self._text = lookup.read(self._start - 1, self._end - self._start + 1) if small else b""
        self._keys, self._starts = self._entries(layout)

    def _entries(self, layout: IndexLayout) -> tuple[list[bytes], list[int]]:
        """Return some of the tokens' keys, in order, and where the line ends before them are.

        After the last of them, the last line end.
        """
        last = self._end - 1
        stride = max(layout.stride, (last - self._start) // layout.entries)
        keys: list[bytes] = []
        starts: list[int] = []
        text, low = self._text, self._start - 1
        high = low + len(text)
        position = low  # of a line end, or before one
        while position < last:
            if high < min(position + 2 * LINE_LIMIT, self._end):
                low, high = position, min(position + layout.chunk, self._end)
                text = self._lookup.read(low, high - low)
            begin = text.find(b"\n", position - low) + 1
            if low + begin > last:
                break
            line_end = text.find(b"\n", begin)
            if not begin or not 0 <= line_end - begin <= LINE_LIMIT:
                raise self._lookup.damaged("a line in it is too long")
            key = text[begin:line_end].rpartition(b": [")[0]
            if keys and key <= keys[-1]:
                raise self._lookup.damaged("its lines are not in order")
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
                text = self._lookup.read(low + base, high - low)
                low, high = 0, high - low
            at = text.find(b"\n%b: [" % key, low, high)
            if at < 0:
                continue
            end = text.find(b"\n", at + 1, high)
            counts = text[at + len(key) + 1 : end]
            row = rows.get(counts)
            if row is None:  # there are few different counts: each is validated once
                row = rows[counts] = self._lookup.row(text[at + 1 : end])
            found[token] = row
        return found
