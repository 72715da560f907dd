"""Many messages in memory: a growing sparse matrix of token numbers, and one copy of each token.

A message takes 4 bytes for each of its tokens (8 if repeats count), 16 for its digest, 44 for its
place, label, traits and source, and the bytes of its source's name.  While messages are added, each
different token takes its text and about 110 bytes.  Adding messages one by one needs no numpy.
"""

import itertools
from array import array
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from sys import intern
from typing import TYPE_CHECKING, Any

from nbspam.names import FEW, HAM, SPAM, rare_classes
from nbspam.tokens.kinds import TRAITS, channels_of
from nbspam.tokens.tokenized import (
    TOKENS_ONLY,
    Excerpt,
    TokenExtras,
    TokenizedMessage,
    TokenizerOutputs,
)

if TYPE_CHECKING:  # one message is learned without numpy
    from nbspam.bayes.matrix import Integers, Presence, SparseRows

_DIGEST_BYTES = 16
NO_TRAITS = (-1,) * len(TRAITS)  # the traits of a message that was read without them


class Texts:
    """A growing list of texts in one piece of memory: 8 bytes a text instead of 57."""

    def __init__(self) -> None:
        self._text, self._ends = bytearray(), array("q", [0])

    def append(self, text: str) -> None:
        """Add a text."""
        self._text += text.encode("utf-8", "surrogatepass")
        self._ends.append(len(self._text))

    def extend(self, other: "Texts") -> None:
        """Add the texts of another list."""
        start = len(self._text)
        self._ends.extend([start + end for end in other._ends[1:]])
        self._text += other._text

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __iter__(self) -> Iterator[str]:
        return map(self.__getitem__, range(len(self)))

    def __getitem__(self, i: int) -> str:
        first, last = self._ends[i], self._ends[i + 1]
        return self._text[first:last].decode("utf-8", "surrogatepass")


class Corpus:
    """Messages as rows of a growing sparse matrix, with entries 0/1 or numbers of occurrences.

    The entry of a token that only possibly hidden text has is negative.
    """

    def __init__(self, outputs: TokenizerOutputs = TOKENS_ONLY) -> None:
        """outputs: the extras to store next to the tokens."""
        self.outputs = outputs
        # One item per entry; optional lists stay empty unless outputs has them.
        self._columns = array("i")  # the token's number n, or ~n if it is possibly hidden
        self._times = array("i")
        self._ends = array("q", [0])  # the end of each row in _columns
        # One item per message, in the order of the rows.
        self.labels: list[str] = []
        self.sources = Texts()
        self.excerpts: list[Excerpt] = []
        self._digests = bytearray()
        self._keys = array("Q")  # only for messages that came without their tokens
        self._traits = array("h")  # len(TRAITS) items per message
        # The tokens in the order of their columns, as far as they were needed.  _packed: tokens
        # from another process, one per line, and their number.
        self._vocabulary: list[str] = []
        self._packed: tuple[str, int] | None = None

    @cached_property
    def column_of(self) -> defaultdict[str, int]:
        """Token -> its column in the matrix; looking up a new token gives it the next column."""
        tokens = self.vocabulary
        column_of = defaultdict[str, int](itertools.count(len(tokens)).__next__)
        column_of.update(zip(tokens, itertools.count()))
        return column_of

    @classmethod
    def from_messages(
        cls, messages: Iterable[TokenizedMessage], outputs: TokenizerOutputs = TOKENS_ONLY
    ) -> "Corpus":
        """Collect messages."""
        corpus = cls(outputs)
        for message in messages:
            corpus.add(message)
        return corpus

    def __len__(self) -> int:
        return len(self.labels)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for another process, with the tokens as one string."""
        n_tokens = self.shape[1]
        packed = (self.packed_vocabulary, n_tokens) if n_tokens else None
        state = vars(self) | {"_packed": packed, "_vocabulary": []}
        state.pop("column_of", None)
        return state

    def pack(self) -> "Corpus":
        """Keep the tokens as one string, a tenth of their memory, until they are needed.

        Returns the corpus.
        """
        if self._packed is None:
            self._vocabulary = self.vocabulary
            vars(self).pop("column_of", None)  # first, so that the string can have its memory
        state = self.__getstate__()
        vars(self).clear()
        vars(self).update(state)
        return self

    def __sizeof__(self) -> int:
        """Return the bytes that Dask moves and spills."""
        arrays = (self._columns, self._times, self._ends, self._traits)
        n_bytes = sum(len(values) * values.itemsize for values in arrays)
        tokens = len(self._packed[0] if self._packed else "") + 150 * len(
            vars(self).get("column_of", ())
        )
        return n_bytes + len(self) * _DIGEST_BYTES + tokens

    def add(self, message: TokenizedMessage) -> None:
        """Add a message, with its digest if it has one."""
        tokens, extras = message.tokens, message.extras
        if self.outputs.times:
            self._times.extend([extras.times.get(token, 1) for token in tokens])
        columns = [*map(self.column_of.__getitem__, tokens)]
        if hidden := extras.possibly_hidden:
            pairs = zip(tokens, columns, strict=True)
            columns = [~n if token in hidden else n for token, n in pairs]
        self._columns.fromlist(columns)
        if self.outputs.traits:
            self._traits.extend(extras.traits or NO_TRAITS)
        self._ends.append(len(self._columns))
        self.labels.append(intern(message.label or ""))
        self.sources.append(message.source)
        if message.excerpt is not None:
            self.excerpts.append(message.excerpt)
        self._digests += bytes.fromhex(message.digest)

    def extend(self, other: "Corpus", with_tokens: bool = True) -> None:
        """Add the messages of another corpus with the same outputs; with_tokens: their tokens."""
        import numpy as np

        self.labels += map(intern, other.labels)
        self.sources.extend(other.sources)
        self.excerpts += other.excerpts
        self._digests += other._digests
        self._keys.extend(other._keys)
        self._traits.extend(other._traits)
        if not with_tokens:
            self._keys.frombytes(other.keys().tobytes())
            self._ends.extend([0] * len(other))
            return
        places = np.fromiter(map(self.column_of.__getitem__, other.vocabulary), np.int32)
        columns = np.frombuffer(other._columns, np.int32)
        sign = columns >> 31  # -1 if possibly hidden
        self._ends.extend((np.frombuffer(other._ends, np.int64)[1:] + self._ends[-1]).tolist())
        self._columns.frombytes((places[columns ^ sign] ^ sign).data.cast("B"))
        self._times.extend(other._times)

    def select(self, rows: Sequence[int]) -> "Corpus":
        """Return the messages at these rows, in this order."""
        if len(rows) == len(self):
            return self
        chosen = Corpus.from_messages(map(self.message, rows), self.outputs)
        if self._keys:
            chosen._keys.extend(self._keys[i] for i in rows)
        return chosen

    @property
    def vocabulary(self) -> list[str]:
        """The tokens, in the order of the matrix's columns."""
        if self._packed is not None:
            self._vocabulary, self._packed = self._packed[0].split("\n"), None
        column_of = vars(self).get("column_of", ())
        if len(self._vocabulary) < len(column_of):
            self._vocabulary = list(column_of)
        return self._vocabulary

    def drop_tokens(self) -> None:
        """Free the tokens of the messages; the vocabulary and all else stay."""
        self._columns, self._times = array("i"), array("i")

    @property
    def packed_vocabulary(self) -> str:
        """The tokens, one per line."""
        return "\n".join(self.vocabulary) if self._packed is None else self._packed[0]

    @property
    def digests(self) -> list[bytes]:
        """The digest of each message, in the order of the matrix's rows; [] without digests."""
        return [bytes(self._digest(i)) for i in range(len(self))] if self._digests else []

    def first_sources(self, label: str, n: int) -> list[str]:
        """Return the sources of a label's first n messages."""
        rows = (i for i, name in enumerate(self.labels) if name == label)
        return [self.sources[i] for i in itertools.islice(rows, n)]

    def mistyped(self, intended: Iterable[str | None]) -> dict[str, list[str]]:
        """Return classes of a few messages next to two large classes, each with its sources.

        intended: classes that are not mistakes, in addition to ham and spam.
        """
        rare = {*rare_classes(Counter(self.labels))} - {HAM, SPAM, *intended}
        return {name: self.first_sources(name, FEW) for name in sorted(rare)}

    def without(self, labels: Collection[str]) -> "Corpus":
        """Return the messages that have none of these labels."""
        return self.select([i for i, label in enumerate(self.labels) if label not in labels])

    def in_digest_order(self) -> Iterator[TokenizedMessage]:
        """Yield the messages in the order of digests and labels.

        This order is effectively random, so the messages of two folders are mixed.
        """
        order = sorted(range(len(self)), key=lambda i: (self._digest(i), self.labels[i]))
        return map(self.message, order)

    def messages(self) -> Iterator[TokenizedMessage]:
        """Yield the messages, in the order of the matrix's rows."""
        return map(self.message, range(len(self)))

    def excerpt(self, i: int) -> Excerpt | None:
        """Return the excerpt of message i, if excerpts were requested."""
        return self.excerpts[i] if self.excerpts else None

    def message(self, i: int) -> TokenizedMessage:
        """Return message i."""
        vocabulary, place = self.vocabulary, slice(self._ends[i], self._ends[i + 1])
        columns = self._columns[place]
        tokens = [vocabulary[max(j, ~j)] for j in columns]
        hidden = frozenset(vocabulary[~j] for j in columns if j < 0)
        times = {}
        if self.outputs.times:
            pairs = zip(tokens, self._times[place], strict=True)
            times = {token: n for token, n in pairs if n > 1}
        width = len(TRAITS) if self.outputs.traits else 0
        traits = tuple(self._traits[i * width : (i + 1) * width])
        extras = TokenExtras(times, () if traits == NO_TRAITS else traits, hidden)
        fields = self.sources[i], self.labels[i], tokens, self._digest(i).hex()
        return TokenizedMessage(*fields, extras=extras, excerpt=self.excerpt(i))

    def _digest(self, i: int) -> bytearray:
        return self._digests[i * _DIGEST_BYTES : (i + 1) * _DIGEST_BYTES]

    def digest_halves(self) -> Any:
        """Return the digests as numbers, (n_messages, 2), which sort like the digests."""
        import numpy as np

        return np.frombuffer(self._digests, ">u8").reshape(-1, 2)

    def keys(self) -> Any:
        """Return a key of each message, (n,), which is equal for copies (`copies.py`)."""
        import numpy as np

        from nbspam.bayes.matrix import chunks
        from nbspam.learning.copies import row_keys, token_hashes

        if self._keys:
            return np.frombuffer(self._keys, np.uint64)
        hashes, keys = token_hashes(self.vocabulary), np.empty(len(self), np.uint64)
        for place, rows in chunks(self):  # all at once, each entry would take 16 bytes
            keys[place] = row_keys(hashes, rows)
        digests = self.digest_halves()[:, 0] if self._digests else 0
        return np.where(keys == 0, digests, keys)  # a message without words is known by its digest

    def channels(self) -> Any:
        """Return the channel of each column's token (`tokens/kinds.py`), shape (n_tokens,)."""
        import numpy as np

        return np.fromiter(channels_of(self.vocabulary), np.int8)

    def traits(self) -> "Integers | None":
        """Return the traits, (n_messages, n_traits), -1 for a message without traits.

        None if traits were not requested.
        """
        if not self.outputs.traits:
            return None
        import numpy as np

        traits: Any = np.frombuffer(self._traits, np.int16)
        return traits.reshape(-1, len(TRAITS))  # type: ignore[no-any-return]

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of messages and tokens, the rows and columns of the matrix."""
        return len(self.labels), self._packed[1] if self._packed else len(self.vocabulary)

    def without_times(self) -> "Corpus":
        """Return the same messages as a 0/1 matrix."""
        from copy import copy  # not needed for one message

        other = copy(self)
        other.outputs = self.outputs._replace(times=False)
        return other

    @property
    def indptr(self) -> "Integers":
        """Index of each row's first entry, and of the end of the last row, (n_messages + 1,)."""
        import numpy as np

        return np.array(self._ends, np.int64)

    def __getitem__(self, place: slice) -> "SparseRows":
        """Return a slice of the matrix's rows."""
        import numpy as np

        from nbspam.bayes.matrix import SparseRows

        first, last, _ = place.indices(len(self))
        ends = np.array(self._ends[first : last + 1], np.int64)
        entries = slice(int(ends[0]), int(ends[-1]))
        columns = np.frombuffer(self._columns, np.int32)[entries]
        sign = columns >> 31
        times = np.ones(len(columns))
        if self.outputs.times:
            times = np.frombuffer(self._times, np.int32)[entries].astype(np.float64)
        times = np.where(sign, -times, times)
        shape = (last - first, self.shape[1])
        return SparseRows((times, columns ^ sign, ends - ends[0]), shape)

    def presence(self) -> "Presence":
        """Return the whole matrix for scipy, shape (n_messages, n_tokens)."""
        from scipy.sparse import csr_array

        rows = self[:]
        return csr_array((rows.data, rows.indices, rows.indptr), shape=rows.shape)
