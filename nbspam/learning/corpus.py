"""Token sets, labels and digests of many messages in little memory: tokens are kept as numbers."""

import os
import weakref
from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING

from nbspam.tokens.kinds import channel_of
from nbspam.tokens.tokenized import TokenizedMessage

if TYPE_CHECKING:  # one message is learned without numpy
    from nbspam.bayes.matrix import Integers, Presence

_DIGEST = 16  # bytes
# Entries; more go to a temporary file, so that memory grows with the vocabulary only.
_IN_MEMORY = 10_000_000


class Corpus:
    """Messages as rows of a growing sparse 0/1 matrix."""

    def __init__(self) -> None:
        self._vocabulary: defaultdict[str, int] = defaultdict()
        self._vocabulary.default_factory = self._vocabulary.__len__
        self._columns = array("i")  # those that are not on disk yet
        self._spool: IO[bytes] | None = None
        self._ends = array("q", [0])
        self._labels: list[str] = []
        self._digests = bytearray()

    def __len__(self) -> int:
        return len(self._labels)

    def add(self, message: TokenizedMessage) -> None:
        """Add a message, with its digest if it has one."""
        before = len(self._columns)
        self._columns.extend(map(self._vocabulary.__getitem__, message.tokens))
        self._ends.append(self._ends[-1] + len(self._columns) - before)
        self._labels.append(message.label or "")
        self._digests += bytes.fromhex(message.digest)
        if len(self._columns) > _IN_MEMORY:
            if self._spool is None:
                from tempfile import TemporaryFile

                self._spool = TemporaryFile()  # noqa: SIM115  # as long as the corpus
                weakref.finalize(self, self._spool.close)
            self._columns.tofile(self._spool)
            del self._columns[:]

    @property
    def vocabulary(self) -> list[str]:
        """The tokens, in the order of the matrix's columns."""
        return list(self._vocabulary)

    @property
    def labels(self) -> list[str]:
        """The label of each message, in the order of the matrix's rows."""
        return self._labels

    def messages(self) -> Iterator[TokenizedMessage]:
        """Yield the messages, in the order of digests and labels.

        That order is effectively random: the messages of two folders come mixed.
        """
        vocabulary = self.vocabulary
        for i in sorted(range(len(self)), key=lambda i: (self._digest(i), self._labels[i])):
            columns = self._entries(self._ends[i], self._ends[i + 1])
            tokens = [vocabulary[j] for j in columns]
            yield TokenizedMessage("", self._labels[i], tokens, self._digest(i).hex())

    def _digest(self, i: int) -> bytearray:
        return self._digests[i * _DIGEST : (i + 1) * _DIGEST]

    def _entries(self, start: int, end: int) -> "array[int]":
        """Return the columns of the matrix's entries from start to end."""
        found = array("i")
        on_disk = self._ends[-1] - len(self._columns)
        if self._spool is not None and start < on_disk:
            self._spool.flush()
            stop = min(end, on_disk)
            width = found.itemsize
            found.frombytes(os.pread(self._spool.fileno(), (stop - start) * width, start * width))
            start = stop
        return found + self._columns[start - on_disk : end - on_disk] if start < end else found

    def channels(self) -> "Integers":
        """Return the channel of each column's token (`tokens/kinds.py`), shape (n_tokens,)."""
        import numpy as np

        return np.fromiter(map(channel_of, self._vocabulary), np.int64, len(self._vocabulary))

    @property
    def shape(self) -> tuple[int, int]:
        """The matrix's rows and columns: messages and tokens."""
        return len(self._labels), len(self._vocabulary)

    def presence(self) -> "Presence":
        """Return the matrix, whole, shape (n_messages, n_tokens), entries 1.0."""
        return self._piece(0, len(self._labels))

    def chunks(self, entries: int) -> "Iterator[Presence]":
        """Yield the matrix's rows, in order, in pieces of about so many entries, a row at least."""
        first = 0
        while first < len(self._labels):
            last = bisect_right(self._ends, self._ends[first] + entries) - 1
            last = min(max(last, first + 1), len(self._labels))
            yield self._piece(first, last)
            first = last

    def _piece(self, first: int, last: int) -> "Presence":
        import numpy as np
        from scipy.sparse import csr_array

        ends = np.array(self._ends[first : last + 1], dtype=np.int64)
        columns = np.array(self._entries(ends[0], ends[-1]), dtype=np.int32)
        shape = (last - first, len(self._vocabulary))
        return csr_array((np.ones(len(columns)), columns, ends - ends[0]), shape=shape)

    def learned(self, classes: tuple[str, ...]) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Yield the ledger: each digest, in order, and how often each class has it.

        Nothing when the messages were added without digests.
        """
        import numpy as np

        if not self._digests:
            return
        number = {name: k for k, name in enumerate(classes)}
        labels = np.fromiter((number[label] for label in self._labels), np.int64, len(self))
        halves = np.frombuffer(bytes(self._digests), dtype=">u8").reshape(-1, 2)
        order = np.lexsort((halves[:, 1], halves[:, 0]))
        ordered = halves[order]
        first = np.flatnonzero(np.r_[True, (ordered[1:] != ordered[:-1]).any(axis=1)])
        own = np.zeros((len(first), len(classes)), dtype=np.int64)
        group = np.repeat(np.arange(len(first)), np.diff(np.r_[first, len(order)]))
        np.add.at(own, (group, labels[order]), 1)
        for at, row in zip(order[first].tolist(), own.tolist(), strict=True):
            yield self._digest(at).hex(), tuple(row)
