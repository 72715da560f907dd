"""Counts per class of keys in ascending order: of tokens, and of the digests of messages.

Keys are as the model file has them (a token in quotes, escaped), so that their order is that of the
file, and a range of them is a stretch of it.  Classes are labels: which ones there are is known
when all messages are read.  Tables of the same keys' ranges merge by addition, in any order.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from nbspam.bayes.matrix import Integers
from nbspam.cluster.stored import Stored


class CountTable(NamedTuple):
    """Counts, (n_labels, n_keys); no key twice."""

    keys: list[str]
    labels: tuple[str, ...]
    counts: Integers

    def stored(self) -> Stored:
        """Return it in a file; `about` is its labels."""
        arrays = (("keys", packed(self.keys)), ("counts", self.counts))
        return Stored(arrays, self.labels)

    def of_classes(self, classes: Sequence[str]) -> Integers:
        """Return the counts with a row for each class, (n_classes, n_keys)."""
        found = np.zeros((len(classes), len(self.keys)), dtype=np.int64)
        for label, row in zip(self.labels, self.counts, strict=True):
            found[classes.index(label)] = row
        return found

    def places(self, keys: Iterable[str]) -> Integers:
        """Return where each of some keys is, all of which it has, (n,)."""
        return np.fromiter((bisect_left(self.keys, key) for key in keys), np.int64)


def packed(keys: Iterable[str]) -> Integers:
    """Return keys as bytes, a line each: no token has a line end."""
    text = "\n".join(keys).encode("utf-8", "surrogatepass")
    return np.frombuffer(text, dtype=np.uint8)


def unpacked(keys: Integers) -> list[str]:
    """Return the keys of `packed`."""
    text = keys.tobytes().decode("utf-8", "surrogatepass")
    return text.split("\n") if text else []


def loaded(stored: Stored) -> CountTable:
    """Return a table that was stored."""
    labels = stored.about
    assert isinstance(labels, tuple)
    return CountTable(unpacked(stored.load("keys")), labels, stored.load("counts"))


def between(table: Stored, low: str | None, high: str | None) -> Stored:
    """Return the keys of a stored table from `low` up to before `high`; None: all before, or after.

    The keys stay bytes: a table is cut into many ranges, and to decode it each time took longer
    than all else that is done with it.
    """
    text, counts = table.load("keys").tobytes(), table.load("counts")
    n = counts.shape[1]
    start, first = (0, 0) if low is None else _place(text, _packed_key(low))
    end, last = (len(text) + 1, n) if high is None else _place(text, _packed_key(high))
    keys = np.frombuffer(text[start : max(end - 1, start)], dtype=np.uint8)
    return Stored((("keys", keys), ("counts", counts[:, first:last])), table.about)


def _place(text: bytes, key: bytes) -> tuple[int, int]:
    """Return where the first key from `key` on begins in packed keys, and how many are before.

    The order of keys is that of their bytes in UTF-8.
    """
    low, high = 0, len(text) + 1 if text else 0  # beginnings of keys; one after the last
    while low < high:
        middle = (low + high) // 2
        begin = text.rfind(b"\n", low, middle) + 1 or low
        end = text.find(b"\n", begin)
        end = len(text) if end < 0 else end
        if text[begin:end] < key:
            low = end + 1
        else:
            high = begin
    return low, text.count(b"\n", 0, low) + (low > len(text) > 0)


def _packed_key(key: str) -> bytes:
    return key.encode("utf-8", "surrogatepass")


def merged(tables: Iterable[CountTable]) -> CountTable:
    """Return the sum of tables; iterated twice, so that they need not be in memory together."""
    known: set[str] = set()
    names: set[str] = set()
    for table in tables:
        known.update(table.keys)
        names.update(table.labels)
    keys, labels = sorted(known), tuple(sorted(names))
    del known
    place = {key: i for i, key in enumerate(keys)}
    counts = np.zeros((len(labels), len(keys)), dtype=np.int64)
    for table in tables:
        columns = np.fromiter(map(place.__getitem__, table.keys), np.int64, len(table.keys))
        for label, row in zip(table.labels, table.counts, strict=True):
            counts[labels.index(label), columns] += row
    return CountTable(keys, labels, counts)


class LoadedTables:
    """Stored tables, each loaded when its turn comes."""

    def __init__(self, stored: Sequence[Stored]) -> None:
        """Load from these."""
        self._stored = stored

    def __iter__(self) -> Iterator[CountTable]:
        return map(loaded, self._stored)


def key_ranges(sample: Iterable[str], n: int) -> list[tuple[str | None, str | None]]:
    """Return n ranges that have about as many of the sample's keys each, and all keys together."""
    ordered = sorted(sample)
    cuts = sorted({ordered[len(ordered) * i // n] for i in range(1, n)}) if ordered else []
    return list(zip([None, *cuts], [*cuts, None], strict=True))
