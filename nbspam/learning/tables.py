"""Tables of counts: how many messages of each class have each token, or each digest.

A token is known by a key of 128 bits.  Tables are in the order of their keys, so two of them merge
as arrays, and a range of keys is a stretch of each table: a machine merges one range of all tables.
The text of each token stands beside its key.

The key is a multilinear hash (Carter and Wegman 1979; Lemire and Kaser 2014): of the bytes b_i of
a token, in UTF-8 and with its line end, Σ_i m_i b_i mod 2^64 for random m_i, twice.  The m_i are
drawn anew for each training run, and all machines of the run have the same: nobody can write words
that collide, and that two of 10^9 tokens do by chance has a probability of about 10^-16.  Two that
share the first half alone are two tokens here.  Python's own hash costs as much a token, and
differs from process to process.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nbspam.bayes.matrix import Booleans, Integers
from nbspam.learning.stored import Stored

Halves = NDArray[np.uint64]
Bytes = NDArray[np.uint8]
_LENGTH = 1 << 12  # bytes of a token for which there are m_i; of a longer one they come in turn
_LINE_END = 10


class KeyMaker:
    """Makes the keys of tokens, for one run."""

    def __init__(self, seed: bytes) -> None:
        """seed: of the run."""
        random = np.random.Generator(np.random.PCG64(int.from_bytes(seed, "big")))
        self._factors = random.integers(0, 1 << 64, (2, _LENGTH), dtype=np.uint64)

    def keys(self, text: bytes) -> tuple[Halves, Halves, Integers]:
        """Return both halves of the key of each line of a text, and where each line ends."""
        data = np.frombuffer(text, np.uint8)
        ends = np.flatnonzero(data == _LINE_END) + 1
        if not len(ends):
            return np.empty(0, np.uint64), np.empty(0, np.uint64), ends
        starts = np.concatenate([[0], ends[:-1]])
        place = np.arange(len(data), dtype=np.int32)
        place -= np.repeat(starts.astype(np.int32), ends - starts)
        if (ends - starts).max() > _LENGTH:
            place %= _LENGTH
        wide = data.astype(np.uint64)
        first, second = (
            np.add.reduceat(factors[place] * wide, starts) for factors in self._factors
        )
        return first, second, ends


class Table(NamedTuple):
    """Counts of keys in ascending order."""

    first: Halves  # (n,)
    second: Halves  # (n,)
    counts: Integers  # (n_labels, n)
    text: Bytes  # of the tokens, each with a line end; empty of digests
    ends: Integers  # (n,), of each token in the text

    @classmethod
    def of(cls, stored: Stored) -> "Table":
        """Return what was stored."""
        return cls(*map(stored.__getitem__, cls._fields))

    def range(self, i: int, n: int) -> "Table":
        """Return the i-th of n ranges of keys, which are the same for all tables."""
        bounds = np.array([(i << 64) // n, ((i + 1) << 64) // n - 1], np.uint64)
        first = int(self.first.searchsorted(bounds[0]))
        last = int(self.first.searchsorted(bounds[1], side="right"))
        place = slice(first, last)
        start = int(self.ends[first - 1]) if first and len(self.ends) else 0
        ends = self.ends[place] - start
        text = self.text[start : start + int(ends[-1]) if len(ends) else start]
        return Table(self.first[place], self.second[place], self.counts[:, place], text, ends)

    def places(self, first: Halves, second: Halves) -> Integers:
        """Return where keys are, in ascending order, that are all in it."""
        found = self.first.searchsorted(first)
        while (other := self.second[found] != second).any():  # two keys share their first half
            found[other] += 1
        return found

    def tokens(self) -> list[str]:
        """Return the text of its tokens."""
        return self.text.tobytes().decode("utf-8", "surrogatepass").split("\n")[:-1]


def distinct(first: Halves, second: Halves) -> tuple[Integers, Booleans]:
    """Return an order of keys in which equal ones are neighbours, and which differ from the last.

    Of equal ones the first stays the first.
    """
    order = np.argsort(first, kind="stable")
    one, other = first[order], second[order]
    is_new = np.ones(len(order), bool)
    is_new[1:] = one[1:] != one[:-1]
    if (other[1:] != other[:-1])[~is_new[1:]].any():
        order = np.lexsort((second, first))
        one, other = first[order], second[order]
        is_new[1:] = (one[1:] != one[:-1]) | (other[1:] != other[:-1])
    return order, is_new


def merged(tables: Sequence[Table]) -> Table:
    """Return the sum of tables that have the same labels."""
    first = np.concatenate([table.first for table in tables])
    second = np.concatenate([table.second for table in tables])
    order, is_new = distinct(first, second)
    starts = np.flatnonzero(is_new)
    chosen = order[starts]
    counts = np.concatenate([table.counts for table in tables], axis=1)[:, order]
    if len(starts):
        counts = np.add.reduceat(counts, starts, axis=1, dtype=np.int64)
    text, ends = tables[0].text, tables[0].ends
    if any(len(table.ends) for table in tables):
        shifts = np.cumsum([0, *(len(table.text) for table in tables[:-1])])
        ends = np.concatenate([t.ends + by for t, by in zip(tables, shifts, strict=True)])
        text, ends = taken(np.concatenate([table.text for table in tables]), ends, chosen)
    return Table(first[chosen], second[chosen], counts, text, ends)


def taken(text: Bytes, ends: Integers, places: Integers) -> tuple[Bytes, Integers]:
    """Return some of the lines of a text, in the order of their places, and where they end."""
    starts = np.concatenate([[0], ends[:-1]])[places]
    lengths = ends[places] - starts
    own_ends = np.cumsum(lengths)
    total = int(own_ends[-1]) if len(own_ends) else 0
    index = np.arange(total) + np.repeat(starts - (own_ends - lengths), lengths)
    return text[index], own_ends
