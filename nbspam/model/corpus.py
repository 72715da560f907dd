"""Token sets, labels and digests of many messages, kept small: numbers for tokens."""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from nbspam.tokens.headers import TRACE

if TYPE_CHECKING:  # one message is learned without numpy
    import numpy as np
    from numpy.typing import NDArray

    from nbspam.bayes.matrix import Presence

_DIGEST = 16  # bytes


class Corpus:
    """Messages as rows of a growing sparse 0/1 matrix."""

    def __init__(self) -> None:
        self._vocabulary: defaultdict[str, int] = defaultdict()
        self._vocabulary.default_factory = self._vocabulary.__len__
        self._columns = array("i")
        self._ends = array("q", [0])
        self._labels: list[str] = []
        self._digests = bytearray()

    def __len__(self) -> int:
        return len(self._labels)

    def add(self, label: str, tokens: Iterable[str], digest: str = "") -> None:
        """Add a message: its tokens, each once, and its digest if it is to be remembered."""
        self._columns.extend(map(self._vocabulary.__getitem__, tokens))
        self._ends.append(len(self._columns))
        self._labels.append(label)
        self._digests += bytes.fromhex(digest)

    @property
    def vocabulary(self) -> list[str]:
        """The tokens, in the order of the matrix's columns."""
        return list(self._vocabulary)

    @property
    def labels(self) -> list[str]:
        """The label of each message, in the order of the matrix's rows."""
        return self._labels

    def rows(self) -> Iterator[tuple[str, list[str], str]]:
        """Yield each message's label, tokens and digest."""
        vocabulary = self.vocabulary
        for i, label in enumerate(self._labels):
            columns = self._columns[self._ends[i] : self._ends[i + 1]]
            digest = self._digests[i * _DIGEST : (i + 1) * _DIGEST].hex()
            yield label, [vocabulary[j] for j in columns], digest

    def is_trace(self) -> "NDArray[np.bool_]":
        """Return which columns are tokens of the trace fields, shape (n_tokens,)."""
        import numpy as np

        return np.fromiter(
            (t.startswith(TRACE) for t in self._vocabulary), bool, len(self._vocabulary)
        )

    def presence(self) -> "Presence":
        """Return the matrix, shape (n_messages, n_tokens), entries 1.0."""
        import numpy as np
        from scipy.sparse import csr_array

        columns = (
            np.frombuffer(self._columns, dtype=np.int32) if self._columns else np.empty(0, np.int32)
        )
        ends = np.frombuffer(self._ends, dtype=np.int64)
        shape = (len(self._labels), len(self._vocabulary))
        return csr_array((np.ones(len(columns)), columns, ends), shape=shape)

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
            digest = self._digests[at * _DIGEST : (at + 1) * _DIGEST]
            yield digest.hex(), tuple(row)
