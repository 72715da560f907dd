"""Counts per class of keys in ascending order: of tokens, and of the digests of messages.

Keys are as the model file has them (a token in quotes, escaped), so that their order is that of the
file, and a range of them is a stretch of it.  Classes are labels: which ones there are is known
when all messages are read.  Tables of the same keys' ranges merge by addition, in any order.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
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

    def between(self, low: str | None, high: str | None) -> "CountTable":
        """Return the keys from `low` up to before `high`; None: from the first, to the last."""
        start = 0 if low is None else bisect_left(self.keys, low)
        end = len(self.keys) if high is None else bisect_left(self.keys, high)
        return CountTable(self.keys[start:end], self.labels, self.counts[:, start:end])

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


def merged(tables: Sequence[CountTable]) -> CountTable:
    """Return the sum of tables."""
    labels = tuple(sorted({label for table in tables for label in table.labels}))
    keys = sorted(set().union(*(table.keys for table in tables)))
    place = {key: i for i, key in enumerate(keys)}
    counts = np.zeros((len(labels), len(keys)), dtype=np.int64)
    for table in tables:
        columns = np.fromiter(map(place.__getitem__, table.keys), np.int64, len(table.keys))
        for label, row in zip(table.labels, table.counts, strict=True):
            counts[labels.index(label), columns] += row
    return CountTable(keys, labels, counts)


def key_ranges(sample: Iterable[str], n: int) -> list[tuple[str | None, str | None]]:
    """Return n ranges that have about as many of the sample's keys each, and all keys together."""
    ordered = sorted(sample)
    cuts = sorted({ordered[len(ordered) * i // n] for i in range(1, n)}) if ordered else []
    return list(zip([None, *cuts], [*cuts, None], strict=True))
