"""Messages as a sparse matrix: its pieces, its counts per class, and sums over its rows.

Shapes: presence (n_messages, n_tokens), entries 0 or 1, or how often a message has a token; an
entry of a token that must not speak for ham is negative.  Counts (n_classes, n_tokens); messages
(n_classes,).
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]
if TYPE_CHECKING:  # scipy takes .15 s to import, and reading does without
    from scipy.sparse import csr_array

    Presence = csr_array[Any, tuple[int, int]]
else:
    Presence = Any
ENTRIES = 2_000_000  # of the matrix, processed at a time


@runtime_checkable
class Chunked(Protocol):
    """A presence matrix that is not in memory as a whole."""

    @property
    def shape(self) -> tuple[int, int]:
        """Its rows and columns."""

    def chunks(self, entries: int) -> Iterator[Presence]:
        """Yield its rows, in order, in matrices of about so many entries, a row at least."""


def chunks(presence: Presence | Chunked) -> Iterator[tuple[slice, Presence]]:
    """Yield a matrix's rows in pieces, each with its place: only one piece is in memory.

    Without signs.
    """
    for rows, piece in signed_chunks(presence):
        yield rows, without_signs(piece)


def without_signs(presence: Presence) -> Presence:
    """Return a matrix whose entries are all positive, in the same order: `abs` would sort them."""
    if not (presence.data < 0).any():
        return presence
    from scipy.sparse import csr_array

    place = presence.indices, presence.indptr
    return csr_array((np.abs(presence.data), *place), shape=presence.shape)


def signed_chunks(presence: Presence | Chunked) -> Iterator[tuple[slice, Presence]]:
    """Yield a matrix's rows in pieces, each with its place."""
    if isinstance(presence, Chunked):
        first = 0
        for piece in presence.chunks(ENTRIES):
            yield slice(first, first + piece.shape[0]), piece
            first += piece.shape[0]
        return
    ends = presence.indptr.astype(np.int64)
    first = 0
    while first < presence.shape[0]:
        last = int(np.searchsorted(ends, ends[first] + ENTRIES, side="right")) - 1
        last = min(max(last, first + 1), presence.shape[0])
        yield slice(first, last), presence[first:last]
        first = last


def class_counts(presence: Presence | Chunked, labels: Integers, n_classes: int) -> Integers:
    """Return how often the messages of each class have each token, shape (n_classes, n_tokens).

    Of a 0/1 matrix: how many messages.

    labels: (n_messages,), the class of each message, 0 to n_classes - 1.
    """
    n_tokens = presence.shape[1]
    counts = np.zeros(n_classes * n_tokens, dtype=np.int64)
    for rows, piece in chunks(presence):
        own = np.repeat(labels[rows] * n_tokens, np.diff(piece.indptr))
        times = None if (piece.data == 1).all() else piece.data
        found = np.bincount(own + piece.indices, times, minlength=len(counts))
        counts += found.astype(np.int64, copy=False)
    return counts.reshape(n_classes, n_tokens)
