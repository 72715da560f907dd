"""A model's token counts in memory, for a program that goes on running.

For one message, bisection of the file is the fastest; from the second message on an index pays.
There is an entry for about every 1,000 bytes of the tokens, so a token takes one search in a sorted
list and one in a short stretch of the file, or of its copy in memory.

For many messages there is a table: the 64-bit hash of each token, and which row it has, as arrays.
The tokens of a batch of messages are sorted by their hashes and found by bisection, each in memory
that the one before has just used: 0.07 microseconds a token, in memory that processes share, where
the index takes 1.9 and each process would keep its own.

The hash is Python's of the token's bytes, a keyed one (SipHash) whose key is new in each process
that is not forked: nobody can write words that collide.  Tokens of the model that collide are
noticed when the table is made.  That a token that the model does not know has the hash of one that
it knows has a chance of the model's tokens in 2^64: with a million of them once in 2 x 10^13 words.
"""

import json
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from nbspam.bayes.event_model import Row
from nbspam.store.lookup import LINE_LIMIT, Lookup, token_key
from nbspam.tokens.kinds import KINDS, TEXT

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


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


# Stand for what is escaped in a key, in the same place of the order: JSON has no such bytes.
_BACKSLASH, _QUOTE = b"\\\0", b"\\\1"


class CollisionError(Exception):
    """Two tokens of the model have one hash, or one stands there twice."""


class TokenTable:
    """The tokens of a model."""

    def __init__(self, lookup: Lookup) -> None:
        """Read all tokens; raises ModelError, and CollisionError if there can be no table."""
        import numpy as np

        numbers = defaultdict[bytes, int](count().__next__)  # of counts, as they are written
        hashes, rows = [np.array([], np.int64)], [np.array([], np.int32)]
        channels = [np.array([], np.int32)]
        rest = b""
        for part in lookup.copy(*lookup.sections[0]):
            text, end, rest = (rest + part).rpartition(b"\n")
            is_escaped = b"\\" in text
            if is_escaped:
                text = text.replace(rb"\\", _BACKSLASH).replace(rb"\"", _QUOTE)
            _, *fields = (text + end).split(b'"')  # in turn, keys and what follows them
            keys, counts = fields[::2], fields[1::2]
            n = len(keys)
            if not n == len(counts) == text.count(b"\n") + len(end):
                raise lookup.damaged("a line in it is not a token and its counts")
            rows.append(np.fromiter(map(numbers.__getitem__, counts), np.int32, n))
            channels.append(np.full(n, TEXT, np.int32))
            for kind in KINDS:  # the file is in order: the tokens of a kind stand together
                if kind.channel != TEXT:
                    low, high = (bisect_left(keys, f"{kind.name}{sign}".encode()) for sign in ":;")
                    channels[-1][low:high] = kind.channel
            found = map(hash, map(_unescaped, keys) if is_escaped else keys)
            hashes.append(np.fromiter(found, np.int64, n))
        # The counts of the tokens, each once: few differ.
        self.counts = [lookup.row(b'""' + text.removesuffix(b"\n")) for text in numbers]
        joined = np.concatenate(hashes)
        order = np.argsort(joined)
        self._hashes = joined[order]
        self._rows = (np.concatenate(channels) * len(numbers) + np.concatenate(rows))[order]
        if (self._hashes[1:] == self._hashes[:-1]).any():
            raise CollisionError

    def __len__(self) -> int:
        return len(self._hashes)

    def find(self, hashes: "NDArray[np.int64]") -> "NDArray[np.int32]":
        """Return the row of each token, (n_tokens,); -1 of others.

        A row is its channel * len(counts) + the place of its counts in `counts`.
        hashes: (n_tokens,), of `hashes_of`.
        """
        import numpy as np

        found = np.full(len(hashes), -1, np.int32)
        if len(self):
            order = np.argsort(hashes)
            hashes = hashes[order]
            places = self._hashes.searchsorted(hashes)
            places[places == len(self)] = 0
            found[order] = np.where(self._hashes[places] == hashes, self._rows[places], -1)
        return found


def hashes_of(tokens: list[str]) -> "NDArray[np.int64]":
    """Return the hash of each token, (n_tokens,), for `TokenTable.find`.

    That of a string is of the buffer that holds it, which is its bytes if they are ASCII; else two
    strings may have the same: hash('に') == hash('k0').
    """
    import numpy as np

    keys: Iterable[str | bytes] = tokens
    if not "".join(tokens).isascii():
        keys = (t if t.isascii() else t.encode("utf-8", "replace") for t in tokens)
    return np.array(list(map(hash, keys)), np.int64)  # in two thirds of the time of np.fromiter


def _unescaped(key: bytes) -> bytes:
    if b"\\" not in key:
        return key
    token: str = json.loads(b'"%b"' % key.replace(_BACKSLASH, rb"\\").replace(_QUOTE, rb"\""))
    return token.encode("utf-8", "replace")
