"""A piece of the sources, as it is kept for later passes: a sparse matrix, labels, digests, traits.

The matrix has a row for each message and a column for each token of the piece, in the order of its
table (`tables.py`).  The entries of a row are in the order of the message's tokens, whatever the
pieces are: the sums of its weights are then the same to the last bit.
"""

import os
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from nbspam.bayes.matrix import Integers, Presence
from nbspam.learning.stored import Stored
from nbspam.learning.tables import Halves, KeyMaker, Table, distinct, taken
from nbspam.reading.cutting import SourcePiece
from nbspam.reading.message import RawMessage
from nbspam.reading.source import NAMED_LIMIT, Skipped
from nbspam.tokens.excerpt import Excerpt
from nbspam.tokens.tokenized import Numbers, TokenizedMessage, Tokenizing, Wanted, tokenize_batch
from nbspam.tokens.traits import TRAITS

_ENTRIES = 1 << 17  # of the matrix, in one part: features of 500,000 at once took 216 MiB
_TEXT = 1 << 18  # bytes whose keys are made at a time
_FIRST = 5  # messages of each class whose source is told
_DIGEST = 16  # bytes
_NO_TRAITS = (-1,) * len(TRAITS)  # of a message whose traits are not known


class Reading(NamedTuple):
    """How pieces are read, and where they are kept."""

    wanted: Wanted
    seed: bytes  # of the keys
    folder: str | None  # None: of a cluster's worker


class Summary(NamedTuple):
    """What is to be known of a piece that was read."""

    messages: dict[str, int]  # of each label, in their order
    first: dict[str, list[str]]  # of each label, where the first messages are
    skipped: list[Skipped]  # the first of them
    n_skipped: int
    size: int  # bytes, as progress counts them
    n_tokens: int  # different ones
    traits: dict[str, list[dict[int, int]]]  # of each label: per trait, value -> messages
    excerpts: list[Excerpt]  # of each message, where they were wanted

    @property
    def n(self) -> int:
        """How many messages it has."""
        return sum(self.messages.values())


def read_piece(
    how: Reading, piece: "SourcePiece | list[RawMessage | Skipped]"
) -> tuple[Summary, Stored, Stored, Stored]:
    """Return what a piece has: a summary, its messages, and the tables of tokens and digests.

    Raises NbspamError.
    """
    found = _Read(how)
    for message in tokenize_batch(piece, Tokenizing(True, how.wanted, skips_empty=True)):
        found.take(message)
    return found.kept(0 if isinstance(piece, list) else piece.size)


class _Read:
    """What was read of a piece so far."""

    def __init__(self, how: Reading) -> None:
        self._how, self._keys = how, _key_maker(how.seed)
        self._halves: list[tuple[Halves, Halves, Integers, bytes]] = []
        self._waiting: list[str] = []  # tokens without keys, a message each
        self._length = 0
        self._n_tokens: list[int] = []
        self._data: list[int] = []  # of each entry; filled where one is not 1
        self._labels: list[str] = []
        self._sources: list[str] = []
        self._digests = bytearray()
        self._traits: list[tuple[int, ...]] = []
        self._excerpts: list[Excerpt] = []
        self._skipped: list[Skipped] = []
        self._n_skipped = self._size = self._entries = 0

    def take(self, message: TokenizedMessage | Skipped) -> None:
        if isinstance(message, Skipped):
            self._n_skipped += 1
            if len(self._skipped) < NAMED_LIMIT:
                self._skipped.append(message)
            return
        tokens, numbers = message.tokens, message.numbers
        if tokens:
            self._waiting.append("\n".join(tokens))
            self._length += len(self._waiting[-1])
        if self._how.wanted.times or numbers.perhaps_hidden:
            self._data += [1] * (self._entries - len(self._data))
            self._data += [
                -numbers.times.get(token, 1)
                if token in numbers.perhaps_hidden
                else numbers.times.get(token, 1)
                for token in tokens
            ]
        self._n_tokens.append(len(tokens))
        self._entries += len(tokens)
        self._labels.append(message.label or "")
        self._sources.append(message.source)
        self._digests += bytes.fromhex(message.digest)
        if message.excerpt is not None:
            self._excerpts.append(message.excerpt)
        if self._how.wanted.traits:
            self._traits.append(numbers.traits or _NO_TRAITS)
        self._size += message.size or _file_size(message.source)
        if self._length > _TEXT:
            self._make_keys()

    def _make_keys(self) -> None:
        if self._waiting:
            text = "\n".join([*self._waiting, ""]).encode("utf-8", "surrogatepass")
            self._halves.append((*self._keys.keys(text), text))
            self._waiting, self._length = [], 0

    def kept(self, size: int) -> tuple[Summary, Stored, Stored, Stored]:
        """Return the piece."""
        self._make_keys()
        labels = tuple(sorted(set(self._labels)))
        place = {label: k for k, label in enumerate(labels)}
        codes = np.array([place[label] for label in self._labels], np.int64)
        rows = np.cumsum([0, *self._n_tokens])
        table, columns = self._table(np.repeat(codes, self._n_tokens), len(labels), rows)
        digests = np.frombuffer(bytes(self._digests), ">u8").astype(np.uint64).reshape(-1, 2)
        ledger, _, _ = _counted(digests[:, 0], digests[:, 1], codes, len(labels))
        traits = np.array(self._traits, np.int64).reshape(-1, len(TRAITS))
        more: dict[str, Any] = {}
        if self._data:
            self._data += [1] * (len(columns) - len(self._data))
            more["data"] = np.array(self._data, np.float64)
        if self._how.wanted.traits:
            more["traits"] = traits
        folder = self._how.folder
        messages = Stored(
            folder,
            columns=columns,
            rows=rows,
            codes=codes,
            digests=np.frombuffer(bytes(self._digests), np.uint8),
            labels=_packed(labels),
            sources=_packed(source.replace("\n", "\0") for source in self._sources),
            **more,
        )
        summary = Summary(
            {label: int(n) for label, n in zip(labels, np.bincount(codes), strict=False)},
            self._first(),
            self._skipped,
            self._n_skipped,
            size or self._size,
            len(table.first),
            _trait_values(traits, codes, labels) if len(traits) else {},
            self._excerpts,
        )
        names = _packed(labels)
        return (
            summary,
            messages,
            Stored(folder, **table._asdict(), labels=names),
            Stored(folder, **ledger._asdict(), labels=names),
        )

    def _table(self, codes: Integers, n_labels: int, rows: Integers) -> tuple[Table, Integers]:
        """Return the table of the tokens, and the column of each entry; codes: its label."""
        empty = np.empty(0, np.uint64), np.empty(0, np.uint64), np.empty(0, np.int64), b""
        first, second, ends, texts = zip(*(self._halves or [empty]), strict=True)
        self._halves = []
        times = np.abs(np.array(self._data)) if self._how.wanted.times else None
        table, columns, chosen = _counted(
            np.concatenate(first), np.concatenate(second), codes, n_labels, times
        )
        shifts = np.cumsum([0, *map(len, texts[:-1])])
        line_ends = np.concatenate([own + by for own, by in zip(ends, shifts, strict=True)])
        text = np.frombuffer(b"".join(texts), np.uint8)
        text, own_ends = taken(text, line_ends, chosen)
        return table._replace(text=text, ends=own_ends), columns

    def _first(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for label, source in zip(self._labels, self._sources, strict=True):
            own = found.setdefault(label, [])
            if len(own) < _FIRST:
                own.append(source)
        return found


def _counted(
    first: Halves, second: Halves, codes: Integers, n: int, times: Any = None
) -> tuple[Table, Any, Integers]:
    """Return the counts of keys per label, the column of each entry, and the first of each column.

    The counts are Y'X, for the labels Y, (n_messages, n_labels), and the matrix X.
    codes: (nnz,), the label of each entry.  times: (nnz,), how often it counts; None: once.
    """
    order, is_new = distinct(first, second)
    chosen = order[is_new]
    columns = np.empty(len(order), np.int32)
    columns[order] = np.cumsum(is_new) - 1
    counts = np.bincount(codes * len(chosen) + columns, times, n * len(chosen))
    nothing = np.empty(0, np.uint8), np.empty(0, np.int64)
    shaped = counts.astype(np.int64, copy=False).reshape(n, len(chosen))
    return Table(first[chosen], second[chosen], shaped, *nothing), columns, chosen


_makers: dict[bytes, KeyMaker] = {}


def _key_maker(seed: bytes) -> KeyMaker:
    """Return the maker of this run's keys, made once in each process."""
    if seed not in _makers:
        _makers.clear()
        _makers[seed] = KeyMaker(seed)
    return _makers[seed]


def _file_size(name: str) -> int:
    try:
        return os.stat(name).st_size  # noqa: PTH116 (one of many)
    except (OSError, ValueError):  # it has no file of its own
        return 0


def _packed(names: Iterable[str]) -> Any:
    text = "".join(f"{name}\n" for name in names)
    return np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)


def names_in(packed: Any) -> list[str]:
    """Return the names that were packed, a line each."""
    found: list[str] = packed.tobytes().decode("utf-8", "surrogatepass").split("\n")[:-1]
    return found


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


class KeptPiece:
    """The messages of a piece, read from where they are kept."""

    def __init__(self, messages: Stored, table: Stored) -> None:
        self._messages, self._table = messages, table

    @cached_property
    def table(self) -> Table:
        """Its tokens, and their counts."""
        return Table.of(self._table)

    def __len__(self) -> int:
        return len(self._messages["codes"])

    @cached_property
    def labels(self) -> list[str]:
        """The label of each message."""
        names = names_in(self._messages["labels"])
        return [names[k] for k in self._messages["codes"].tolist()]

    @cached_property
    def sources(self) -> list[str]:
        """Where each message is."""
        return [name.replace("\0", "\n") for name in names_in(self._messages["sources"])]

    def classes(self, classes: tuple[str, ...]) -> Integers:
        """Return the class of each message, (n,)."""
        names = names_in(self._messages["labels"])
        number = np.array([classes.index(label) for label in names], np.int64)
        return np.asarray(number[self._messages["codes"]])

    def digests(self) -> bytes:
        """Return the digests of its messages, one after the other."""
        return self._messages["digests"].tobytes()

    def traits(self) -> Integers | None:
        """Return the traits of its messages, (n, n_traits); None if they were not wanted."""
        return self._messages.get("traits")

    @property
    def shape(self) -> tuple[int, int]:
        """The matrix's rows and columns."""
        return len(self), len(self.table.first)

    def chunks(self, entries: int = _ENTRIES) -> Iterator[Presence]:
        """Yield the matrix's rows, in order, in parts of at most so many entries, or one row."""
        from scipy.sparse import csr_array

        rows, columns = self._messages["rows"], self._messages["columns"]
        data = self._messages.get("data")
        first = 0
        while first < len(self):
            last = int(rows.searchsorted(rows[first] + min(entries, _ENTRIES), side="right")) - 1
            last = min(max(last, first + 1), len(self))
            place = slice(int(rows[first]), int(rows[last]))
            own = columns[place]
            values = np.ones(len(own)) if data is None else data[place]
            shape = (last - first, len(self.table.first))
            yield csr_array((values, own, rows[first : last + 1] - rows[first]), shape=shape)
            first = last

    def messages(self) -> Iterator[TokenizedMessage]:
        """Yield its messages, as they were tokenized."""
        tokens = self.table.tokens()
        rows, columns = self._messages["rows"].tolist(), self._messages["columns"]
        data = self._messages.get("data")
        traits = self.traits()
        digests = self.digests()
        for i, (label, source) in enumerate(zip(self.labels, self.sources, strict=False)):
            place = slice(rows[i], rows[i + 1])
            own = [tokens[j] for j in columns[place].tolist()]
            times, perhaps = {}, frozenset[str]()
            if data is not None:
                pairs = list(zip(own, data[place].astype(int).tolist(), strict=True))
                times = {token: abs(n) for token, n in pairs if abs(n) > 1}
                perhaps = frozenset(token for token, n in pairs if n < 0)
            values = () if traits is None else tuple(traits[i].tolist())
            numbers = Numbers(times, () if values == _NO_TRAITS else values, perhaps)
            digest = digests[_DIGEST * i : _DIGEST * (i + 1)].hex()
            yield TokenizedMessage(source, label, own, digest, numbers=numbers)
