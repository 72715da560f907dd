"""The messages of a piece as a worker keeps them: a sparse matrix, labels, digests, traits.

The columns are the piece's own tokens in the order of the model file, so that a range of tokens is
a range of columns.  The entries of a row are in the order in which one machine alone has them: the
sums of a message's weights are then the same to the last bit.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from nbspam.bayes.matrix import Integers, Presence
from nbspam.cluster.count_table import packed, unpacked
from nbspam.cluster.stored import Arrays, Stored
from nbspam.learning.corpus import Corpus
from nbspam.reading.skips import NAMED_LIMIT, Skipped
from nbspam.store.model_file import token_key

# Of the matrix, in one part.  Features of 500,000 entries at once took 216 MiB, and take as long.
_ENTRIES = 1 << 17
_FIRST = 5  # messages of each class whose source is kept
_SAMPLE = 64  # keys of each piece by which ranges are chosen


class Summary(NamedTuple):
    """What is to be known of a piece that was read."""

    messages: dict[str, int]  # of each label
    first: dict[str, list[str]]  # of each label, where the first messages are
    skipped: list[Skipped]  # the first of them
    n_skipped: int
    size: int  # bytes, as progress counts them
    keys: int  # different tokens
    sample: list[str]  # some of the keys
    traits: dict[str, list[dict[int, int]]]  # of each label: per trait, value -> messages

    @property
    def n(self) -> int:
        """How many messages it has."""
        return sum(self.messages.values())


class _About(NamedTuple):
    labels: tuple[str, ...]
    n_keys: int
    summary: Summary


class Taken:
    """Counts what is read of a piece."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.messages: Counter[str] = Counter()
        self.first: dict[str, list[str]] = {}
        self.skipped: list[Skipped] = []
        self.n_skipped = 0

    def skip(self, skipped: Skipped) -> None:
        """Take a message that could not be read."""
        self.n_skipped += 1
        if len(self.skipped) < NAMED_LIMIT:
            self.skipped.append(skipped)

    def add(self, label: str, source: str) -> None:
        """Take a message."""
        self.messages[label] += 1
        if self.messages[label] <= _FIRST:
            self.first.setdefault(label, []).append(source)


def keep(corpus: Corpus, taken: Taken, size: int) -> Stored:
    """Return the messages of a piece in a file."""
    labels = tuple(sorted(taken.messages))
    keys = sorted(map(token_key, corpus.numbers))
    place = {key: i for i, key in enumerate(keys)}
    order = np.fromiter(
        (place[token_key(token)] for token in corpus.numbers), np.int32, len(corpus.numbers)
    )
    codes = np.fromiter(map(labels.index, corpus.labels), np.int64, len(corpus))
    traits = corpus.traits()

    def arrays() -> Arrays:
        yield "keys", packed(keys)
        yield "labels", codes
        yield "digests", np.frombuffer(corpus.digest_bytes, dtype=np.uint8)
        if traits is not None:
            yield "traits", traits
        for i, part in enumerate(corpus.chunks(_ENTRIES)):
            yield f"columns{i}", order[part.indices]
            yield f"ends{i}", part.indptr
            if corpus.wanted.times or (part.data < 0).any():
                yield f"times{i}", part.data

    summary = Summary(
        dict(taken.messages),
        taken.first,
        taken.skipped,
        taken.n_skipped,
        size,
        len(keys),
        keys[:: max(1, len(keys) // _SAMPLE)],
        {} if traits is None else _trait_values(traits, codes, labels),
    )
    return Stored(arrays(), _About(labels, len(keys), summary))


def _trait_values(
    traits: Integers, codes: Integers, labels: tuple[str, ...]
) -> dict[str, list[dict[int, int]]]:
    """Return of each label how many messages have each value of each trait."""
    found = {}
    for k, label in enumerate(labels):
        own = traits[(codes == k) & (traits[:, 0] >= 0)]
        pairs = (np.unique(column, return_counts=True) for column in own.T)
        found[label] = [dict(zip(v.tolist(), n.tolist(), strict=True)) for v, n in pairs]
    return found


class Kept:
    """The messages of a piece, read from where they are kept."""

    def __init__(self, stored: Stored) -> None:
        """Read what `keep` wrote, as far as it is asked for."""
        self._stored = stored
        assert isinstance(stored.about, _About)
        self._about = stored.about

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels that its messages have."""
        return self._about.labels

    @property
    def summary(self) -> Summary:
        """What is to be known of it."""
        return self._about.summary

    def __len__(self) -> int:
        return self._about.summary.n

    def keys(self) -> list[str]:
        """Return its tokens, as the model file has them and in that order: the columns."""
        return unpacked(self._stored.load("keys"))

    def codes(self) -> Integers:
        """Return the label of each message, (n,), as its place among `labels`."""
        return self._stored.load("labels")

    def classes(self, classes: tuple[str, ...]) -> Integers:
        """Return the class of each message, (n,)."""
        number = np.array([classes.index(label) for label in self.labels], dtype=np.int64)
        return np.asarray(number[self.codes()]) if len(self) else self.codes()

    def digests(self) -> bytes:
        """Return the digests of its messages, one after the other."""
        return self._stored.load("digests").tobytes()

    def traits(self) -> Integers | None:
        """Return the traits of its messages, (n, n_traits); None if they were not wanted."""
        return self._stored.load("traits") if "traits" in self._stored.names else None

    @property
    def shape(self) -> tuple[int, int]:
        """The matrix's rows and columns."""
        return len(self), self._about.n_keys

    def chunks(self, entries: int) -> Iterator[Presence]:
        """Yield the matrix's rows, in order, in the parts in which they are kept."""
        names = self._stored.names
        for i in range(sum(name.startswith("columns") for name in names)):
            columns, ends = self._stored.load(f"columns{i}"), self._stored.load(f"ends{i}")
            times: Any = np.ones(len(columns))
            if f"times{i}" in names:
                times = self._stored.load(f"times{i}")
            yield csr_array((times, columns, ends), shape=(len(ends) - 1, self._about.n_keys))
