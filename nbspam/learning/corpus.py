"""Token sets, labels and digests of many messages in little memory: tokens are kept as numbers."""

import io
import itertools
import weakref
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import IO, TYPE_CHECKING, Any

from nbspam.store.writing import temporary_files
from nbspam.tokens.kinds import TRAITS, channels_of
from nbspam.tokens.tokenized import TOKENS_ALONE, Numbers, TokenizedMessage, Wanted

if TYPE_CHECKING:  # one message is learned without numpy
    from nbspam.bayes.matrix import Integers, Presence

_DIGEST = 16  # bytes
# Bytes; more go to a temporary file, so that memory grows with the vocabulary only.
IN_MEMORY = 40_000_000
_INTEGER = array("i").itemsize
NO_TRAITS = (-1,) * len(TRAITS)  # of a message whose traits are not known


class Spool:
    """A growing byte string, in memory or beyond a size in a temporary file."""

    def __init__(self, unit: int = 1, in_memory: int | None = None) -> None:
        """unit: bytes of an item.  in_memory: bytes at most in memory."""
        self._unit, self._size = unit, 0
        self._in_memory = IN_MEMORY if in_memory is None else in_memory
        self._file: IO[bytes] = io.BytesIO()

    def __len__(self) -> int:
        return self._size // self._unit

    def append(self, data: "bytes | memoryview | array[int]") -> None:
        """Add the bytes of an array or a buffer."""
        self._size += memoryview(data).nbytes
        with temporary_files():
            if self._size > self._in_memory and isinstance(self._file, io.BytesIO):
                from tempfile import TemporaryFile

                start, self._file = self._file, TemporaryFile()  # noqa: SIM115  # as long as this
                weakref.finalize(self, self._file.close)
                self._file.write(start.getbuffer())
            self._file.seek(0, io.SEEK_END)
            self._file.write(data)

    def part(self, start: int, end: int) -> bytes:
        """Return the bytes of the items from start to end."""
        with temporary_files():
            self._file.seek(start * self._unit)
            return self._file.read((end - start) * self._unit)


class Corpus:
    """Messages as rows of a growing sparse matrix: 0/1, or how often a message has a token.

    The entry of a token that only possibly hidden text has is negative.
    """

    def __init__(self, wanted: Wanted = TOKENS_ALONE) -> None:
        """wanted: the numbers to store beside the tokens."""
        self.wanted = wanted
        # Of the tokens: the matrix's columns, numbered as they are looked up.
        self.numbers = defaultdict[str, int](itertools.count().__next__)
        self._columns = Spool(_INTEGER)  # of each entry
        self._times = Spool(_INTEGER)  # of each entry; none if they are not wanted
        self._ends = array("q", [0])
        self.labels: list[str] = []  # of each message, in the order of the matrix's rows
        self._digests = bytearray()
        self._traits = array("h")  # a row of TRAITS a message; none if they are not wanted

    def __len__(self) -> int:
        return len(self.labels)

    def add(self, message: TokenizedMessage) -> None:
        """Add a message, with its digest if it has one."""
        if self.wanted.times:
            times = message.numbers.times
            self._times.append(array("i", [times.get(token, 1) for token in message.tokens]))
        columns: Iterable[int] = map(self.numbers.__getitem__, message.tokens)
        if perhaps := message.numbers.possibly_hidden:  # those are ~n
            pairs = zip(message.tokens, columns, strict=True)
            columns = [~n if token in perhaps else n for token, n in pairs]
        self._columns.append(array("i", columns))
        if self.wanted.traits:
            self._traits.extend(message.numbers.traits or NO_TRAITS)
        self._ends.append(len(self._columns))
        self.labels.append(message.label or "")
        self._digests += bytes.fromhex(message.digest)

    def add_piece(self, piece: Any) -> None:
        """Add the messages of a `StoredPiece` that was read with the same numbers."""
        import numpy as np

        parts = list(piece.chunks())
        tokens = piece.table.tokens()
        # Numbered in the order of the messages, not of the keys, which differ from run to run.
        met = np.unique(np.concatenate([part.indices for part in parts]), return_index=True)[1]
        numbers = np.empty(len(tokens), np.int32)
        for j in np.argsort(met).tolist():
            numbers[j] = self.numbers[tokens[j]]
        for part in parts:
            columns = numbers[part.indices]
            columns = np.where(part.data < 0, ~columns, columns)
            self._columns.append(columns.astype(np.int32).data)
            if self.wanted.times:
                self._times.append(np.abs(part.data).astype(np.int32).data)
            self._ends.extend((part.indptr[1:].astype(np.int64) + self._ends[-1]).tolist())
        self.labels += piece.labels
        self._digests += piece.digests()
        if self.wanted.traits and (traits := piece.traits()) is not None:
            self._traits.extend(traits.ravel().tolist())

    @property
    def vocabulary(self) -> list[str]:
        """The tokens, in the order of the matrix's columns."""
        return list(self.numbers)

    @property
    def digests(self) -> list[bytes]:
        """The digest of each message, in the order of the matrix's rows; [] without digests."""
        return [bytes(self._digest(i)) for i in range(len(self))] if self._digests else []

    def messages(self) -> Iterator[TokenizedMessage]:
        """Yield the messages, in the order of digests and labels.

        That order is effectively random: the messages of two folders come mixed.
        """
        vocabulary = self.vocabulary
        for i in sorted(range(len(self)), key=lambda i: (self._digest(i), self.labels[i])):
            yield self.message(i, vocabulary)

    def message(self, i: int, vocabulary: list[str], source: str = "") -> TokenizedMessage:
        """Return message i; vocabulary: the corpus's."""
        place = self._ends[i], self._ends[i + 1]
        columns = array("i", self._columns.part(*place))
        tokens = [vocabulary[max(j, ~j)] for j in columns]
        perhaps = frozenset(vocabulary[~j] for j in columns if j < 0)
        times = {}
        if self.wanted.times:
            pairs = zip(tokens, array("i", self._times.part(*place)), strict=True)
            times = {token: n for token, n in pairs if n > 1}
        width = len(TRAITS) if self.wanted.traits else 0
        traits = tuple(self._traits[i * width : (i + 1) * width])
        numbers = Numbers(times, () if traits == NO_TRAITS else traits, perhaps)
        digest = self._digest(i).hex()
        return TokenizedMessage(source, self.labels[i], tokens, digest, numbers=numbers)

    def _digest(self, i: int) -> bytearray:
        return self._digests[i * _DIGEST : (i + 1) * _DIGEST]

    def channels(self) -> "Integers":
        """Return the channel of each column's token (`tokens/kinds.py`), shape (n_tokens,)."""
        import numpy as np

        return np.array(channels_of(self.numbers), dtype=np.int64)

    def traits(self) -> "Integers | None":
        """Return the messages' traits, (n_messages, n_traits), -1 of a message without them.

        None if they were not wanted.
        """
        if not self.wanted.traits:
            return None
        import numpy as np

        return np.array(self._traits, dtype=np.int64).reshape(-1, len(TRAITS))

    @property
    def shape(self) -> tuple[int, int]:
        """The matrix's rows and columns: messages and tokens."""
        return len(self.labels), len(self.numbers)

    def without_times(self) -> "Corpus":
        """Return the same messages as a 0/1 matrix."""
        from copy import copy  # one message does without

        other = copy(self)
        other.wanted = self.wanted._replace(times=False)
        return other

    def presence(self) -> "Presence":
        """Return the matrix, whole, shape (n_messages, n_tokens)."""
        return self._piece(0, len(self.labels))

    def chunks(self, entries: int) -> "Iterator[Presence]":
        """Yield the matrix's rows, in order, in pieces of about so many entries, a row at least."""
        from nbspam.bayes.matrix import row_blocks

        return itertools.starmap(self._piece, row_blocks(self._ends, entries))

    def _piece(self, first: int, last: int) -> "Presence":
        import numpy as np
        from scipy.sparse import csr_array

        ends = np.array(self._ends[first : last + 1], dtype=np.int64)
        place = int(ends[0]), int(ends[-1])
        columns = np.frombuffer(self._columns.part(*place), np.int32)
        sign = columns >> 31  # -1 of what is perhaps hidden
        times = np.ones(len(columns))
        if self.wanted.times:
            times = np.frombuffer(self._times.part(*place), np.int32).astype(np.float64)
        times = np.where(sign, -times, times)
        shape = (last - first, len(self.numbers))
        return csr_array((times, columns ^ sign, ends - ends[0]), shape=shape)
