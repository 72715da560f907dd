"""Pieces of the sources, stored in files between the passes of a training run.

A piece is a sparse matrix with labels, digests and traits.  The matrix has a row for each message
and a column for each token of the piece, in the order of its table.  The entries of a row have the
order of the message's tokens, however the sources are cut: so the sums of its weights are the same
to the last bit.

Tables count the messages of each class with each token; digests are counted like tokens.  A key of
128 bits stands for a token.  Tables are sorted by key, so they merge as arrays, and a range of keys
is a slice of each table: one machine merges one range of all tables.  The text of each token stands
beside its key.

The key is a multilinear hash (Carter and Wegman 1979; Lemire and Kaser 2014): of the bytes b_i of
a token, in UTF-8 and with its line end, Σ_i m_i b_i mod 2^64 for random m_i, twice.  The m_i are
random for each training run and the same on all its machines: nobody can write words that collide,
and two of 10^9 tokens collide by chance with a probability of about 10^-16.  Tokens that share only
the first half of their keys stay two.  Python's own hash costs as much, and differs from process to
process.
"""

import mmap
import os
import tempfile
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from fcntl import LOCK_EX, LOCK_UN, flock
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nbspam.bayes.matrix import Booleans, Integers, SparseRows, radix_order, row_blocks
from nbspam.learning.batch import trait_histograms_of
from nbspam.learning.corpus import Corpus
from nbspam.reading.cutting import SourcePiece
from nbspam.reading.message import RawMessage
from nbspam.reading.source import ReadingNote
from nbspam.store.metadata import TraitHistograms
from nbspam.store.writing import temporary_files
from nbspam.tokens.kinds import TRAITS
from nbspam.tokens.tokenized import Excerpt, TokenizedMessage, Tokenizing, Wanted, tokenize_batch

_ALIGNED = 8  # bytes


@contextmanager
def file_of_run() -> Iterator[str]:
    """Create a file for all arrays of a run; yields the path by which processes open it.

    The file has no name in any folder, so a killed run leaves nothing; on a system without /proc it
    has a name until the run ends.
    """
    has_no_name = Path("/proc/self/fd").exists()
    with temporary_files():
        file: Any = (tempfile.TemporaryFile if has_no_name else tempfile.NamedTemporaryFile)()
    with file:
        yield f"/proc/{os.getpid()}/fd/{file.fileno()}" if has_no_name else file.name


class StoredArrays:
    """Named arrays in a file.

    Arrays in the file of a run go to another process of this machine by the file's path.  A worker
    of a cluster has no such file: its arrays are in a file of their own, which is deleted with the
    last reference, and go to another machine as bytes.
    """

    def __init__(self, path: str | None, **arrays: NDArray[Any]) -> None:
        """Write the arrays; path: of the run's file."""
        self._stays, self._size, self._start = path is not None, 0, 0
        self._layout: dict[str, tuple[str, tuple[int, ...], int]] = {}  # type, shape, place
        contents = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        for name, array in contents.items():
            self._layout[name] = array.dtype.str, array.shape, self._size
            self._size += array.nbytes + -array.nbytes % _ALIGNED
        with temporary_files(), Path(path).open("r+b") if path else self._created() as file:
            if path:  # of a run, whose file many processes write: this one reserves a place
                self._path = Path(path)
                flock(file, LOCK_EX)
                n = -(-os.fstat(file.fileno()).st_size // mmap.ALLOCATIONGRANULARITY)
                self._start = n * mmap.ALLOCATIONGRANULARITY
                file.truncate(self._start + self._size)
                flock(file, LOCK_UN)
                file.seek(self._start)
            for array in contents.values():
                file.write(array.data)
                file.write(bytes(-array.nbytes % _ALIGNED))

    def _created(self) -> IO[bytes]:
        """Return a new file in the folder of a cluster's worker, or in the temporary folder."""
        from distributed import get_worker

        try:
            folder = get_worker().local_directory
        except ValueError:  # not a worker
            folder = tempfile.gettempdir()
        self._path = Path(folder) / f"nbspam-{os.urandom(16).hex()}"
        weakref.finalize(self, self._path.unlink, missing_ok=True)
        return open(self._path, "xb", opener=partial(os.open, mode=0o600))

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for another process: with the bytes, unless it has the run's file."""
        return vars(self) | {"content": None if self._stays else self._path.read_bytes()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Store the bytes in a file here, if the state has them."""
        content = state.pop("content")
        vars(self).update(state)
        if content is not None:
            with temporary_files(), self._created() as file:
                file.write(content)

    def __sizeof__(self) -> int:
        """Return the number of bytes to move to another worker, by which Dask schedules."""
        return self._size

    def get(self, name: str) -> NDArray[Any] | None:
        """Return an array, or None."""
        return self[name] if name in self._layout else None

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return an array, read-only: a memory map of the file."""
        kind, shape, place = self._layout[name]
        if 0 in shape:
            return np.empty(shape, kind)
        handle = os.open(self._path, os.O_RDONLY)  # np.memmap: 1.5 % of a small training
        try:
            pages = mmap.mmap(handle, self._size, access=mmap.ACCESS_READ, offset=self._start)
        finally:
            os.close(handle)
        return np.frombuffer(pages, kind, int(np.prod(shape)), place).reshape(shape)


Halves = NDArray[np.uint64]
Bytes = NDArray[np.uint8]
BEGINNING = 16  # bytes of a token, by which many are nearly sorted; a kind's name is shorter
_LENGTH = 1 << 12  # bytes of a token for which there are m_i; of a longer one they come in turn
_LINE_END = 10
_TEXT = 1 << 16  # bytes whose keys are made at a time


@lru_cache(1)
def _factors(seed: bytes) -> Halves:
    """Return the m_i of a run, twice."""
    from hashlib import shake_128  # importing numpy.random takes 10 ms

    return np.frombuffer(shake_128(seed).digest(16 * _LENGTH), "<u8").reshape(2, _LENGTH)


def token_keys(text: bytes | bytearray, seed: bytes) -> tuple[Halves, Halves, Integers]:
    """Return both halves of the key of each line of a text, and where each line ends.

    seed: of the run.
    """
    data = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero(data == _LINE_END) + 1
    bounds = np.concatenate([[0], ends])
    halves = np.empty((2, len(ends)), np.uint64)
    for first, last in row_blocks(bounds, _TEXT):
        starts, lengths = bounds[first:last] - bounds[first], np.diff(bounds[first : last + 1])
        wide = data[bounds[first] : bounds[last]].astype(np.uint64)
        place = np.arange(len(wide)) - np.repeat(starts, lengths)
        if lengths.max() > _LENGTH:
            place %= _LENGTH
        for half, factors in zip(halves, _factors(seed), strict=True):
            np.add.reduceat(factors.take(place) * wide, starts, out=half[first:last])
    return halves[0], halves[1], ends


class Table(NamedTuple):
    """Counts of keys in ascending order."""

    first: Halves  # (n,)
    second: Halves  # (n,)
    counts: Integers  # (n_labels, n)
    text: Bytes  # of the tokens, each with a line end; or of digests
    ends: Integers  # (n,), of each token in the text

    @classmethod
    def of(cls, stored: StoredArrays) -> "Table":
        """Return a stored table."""
        return cls(*map(stored.__getitem__, cls._fields))

    def range(self, i: int, n: int) -> "Table":
        """Return a copy of the i-th of n ranges of keys, which are the same for all tables.

        A copy releases the pages of the file: of 300 tables they were 200 MiB.
        """
        bounds = np.array([(i << 64) // n, ((i + 1) << 64) // n - 1], np.uint64)
        first = int(self.first.searchsorted(bounds[0]))
        last = int(self.first.searchsorted(bounds[1], side="right"))
        place = slice(first, last)
        start = int(self.ends[first - 1]) if first else 0
        ends = self.ends[place] - start
        text = self.text[start : start + int(ends[-1]) if len(ends) else start]
        counts = self.counts[:, place].copy()
        return Table(self.first[place].copy(), self.second[place].copy(), counts, text.copy(), ends)

    def places(self, first: Halves, second: Halves) -> Integers:
        """Return the places of keys, which are sorted and all in the table."""
        places = self.first.searchsorted(first)
        while (other := self.second[places] != second).any():  # two keys share their first half
            places[other] += 1
        return places

    def tokens(self) -> list[str]:
        """Return the text of its tokens."""
        return self.text.tobytes().decode("utf-8", "surrogatepass").split("\n")[:-1]

    def by_beginning(self) -> tuple[Integers, list[str]]:
        """Return the order of the tokens by their first BEGINNING bytes, and the tokens in it.

        What is nearly sorted is sorted in a third of the time, and tokens of a kind are neighbours.
        """
        text = np.concatenate([self.text, np.zeros(BEGINNING, np.uint8)])
        starts = np.concatenate([[0], self.ends])[:-1]
        order = np.lexsort(text[starts + np.arange(BEGINNING)[::-1, None]])
        return order, self._replace(text=lines_at(self.text, self.ends, order)[0]).tokens()


def distinct(first: Halves, second: Halves) -> tuple[Integers, Booleans]:
    """Return an order that makes equal keys neighbours, and which keys differ from the last one.

    Equal keys stay in their order.
    """
    order = radix_order(first)
    is_new = _differ(first[order])
    if (_differ(second[order]) & ~is_new).any():
        order = np.lexsort((second, first))
        is_new = _differ(first[order]) | _differ(second[order])
    return order, is_new


def _differ(halves: Halves) -> Booleans:
    """Return which numbers differ from the last one; the first does."""
    return np.append(True, halves[1:] != halves[:-1])[: len(halves)]


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
    shifts = np.cumsum([0, *(len(table.text) for table in tables[:-1])])
    ends = np.concatenate([t.ends + by for t, by in zip(tables, shifts, strict=True)])
    lines = lines_at(np.concatenate([table.text for table in tables]), ends, chosen)
    return Table(first[chosen], second[chosen], counts, *lines)


def lines_at(text: Bytes, ends: Integers, places: Integers) -> tuple[Bytes, Integers]:
    """Return some of the lines of a text, in the order of their places, and where they end."""
    starts = np.concatenate([[0], ends[:-1]])[places]
    lengths = ends[places] - starts
    own_ends = np.cumsum(lengths)
    own_starts, copied = own_ends - lengths, [text[:0]]
    # Each byte copied takes 24 bytes of numbers: of all lines at once 200 MiB.
    for first in range(0, len(places), _LINES):
        some = slice(first, first + _LINES)
        index = np.arange(own_starts[first], own_ends[some][-1])
        index += np.repeat(starts[some] - own_starts[some], lengths[some])
        copied.append(text[index])
    return np.concatenate(copied), own_ends


_LINES = 1 << 14  # copied at a time
_ENTRIES = 1 << 17  # of the matrix, in one part: features of 500,000 at once took 216 MiB
_FIRST = 5  # messages of each class whose sources a summary names


class Reading(NamedTuple):
    """How pieces are read, and where they are stored."""

    wanted: Wanted
    seed: bytes  # of the keys
    path: str | None  # of the run's file; None: of a cluster's worker
    is_sized: bool = True  # whether the bytes are summed, for progress


class Summary(NamedTuple):
    """The summary of a piece, for the process that runs the training."""

    messages: dict[str, int]  # of each label, in their order
    first: dict[str, list[str]]  # of each label, where the first messages are
    skipped: list[ReadingNote]
    size: int  # bytes, as progress counts them
    n_tokens: int  # different ones
    traits: TraitHistograms  # per trait and label
    excerpts: list[Excerpt]  # of each message, where they were wanted

    @property
    def n(self) -> int:
        """How many messages it has."""
        return sum(self.messages.values())


def read_piece(
    how: Reading, piece: "SourcePiece | list[RawMessage | ReadingNote]"
) -> tuple[Summary, StoredArrays, StoredArrays, StoredArrays]:
    """Return a piece's summary, its messages, and the tables of its tokens and digests.

    Raises NbspamError.
    """
    text = bytearray()
    rows: list[tuple[str, str, str, int, tuple[int, ...]]] = []
    times: list[int] = []  # of each entry, if they are wanted
    hidden: list[int] = []  # the entries of tokens that only possibly hidden text has
    excerpts: list[Excerpt] = []
    skipped: list[ReadingNote] = []
    entries = size = 0
    for message in tokenize_batch(piece, Tokenizing(True, how.wanted, skips_empty=True)):
        if isinstance(message, ReadingNote):
            skipped.append(message)
            continue
        tokens, numbers = message.tokens, message.numbers
        if how.wanted.times:
            times += [numbers.times.get(token, 1) for token in tokens]
        if numbers.possibly_hidden:
            places = enumerate(tokens, entries)
            hidden += [i for i, token in places if token in numbers.possibly_hidden]
        entries += len(tokens)
        text += "\n".join([*tokens, ""]).encode("utf-8", "surrogatepass")
        label, n_tokens = message.label or "", len(tokens)
        rows.append((label, message.source, message.digest, n_tokens, numbers.traits))
        if message.excerpt is not None:
            excerpts.append(message.excerpt)
        if how.is_sized:
            size += message.size or _file_size(message.source)

    labels, sources, digests, lengths, traits = zip(*rows, strict=True) if rows else ((),) * 5
    sizes = dict(sorted(Counter(labels).items()))
    first_of: dict[str, list[str]] = {label: [] for label in sizes}
    for label, source, *_ in rows:  # once, however many labels there are
        if len(first_of[label]) < _FIRST:
            first_of[label].append(source)
    place = {label: k for k, label in enumerate(sizes)}
    codes = np.array([place[label] for label in labels], np.int64)
    more: dict[str, Any] = {}
    if times or hidden:
        more["data"] = np.array(times, np.int32) if times else np.ones(entries, np.int8)
        more["data"][hidden] *= -1
    if how.wanted.traits:
        more["traits"] = np.array(traits, np.int64).reshape(-1, len(TRAITS))
    of_entries = np.repeat(codes, lengths)
    table, columns = _count_lines(text, how.seed, of_entries, len(place), times or None)
    digest_lines = "".join(f"{digest}\n" for digest in digests).encode()
    ledger, _ = _count_lines(digest_lines, how.seed, codes, len(place))
    packed = _packed(place)
    messages = StoredArrays(
        how.path,
        columns=columns,
        rows=np.cumsum([0, *lengths]),
        codes=codes,
        digests=np.frombuffer(bytes.fromhex("".join(digests)), np.uint8),
        labels=packed,
        sources=_packed(source.replace("\n", "\0") for source in sources),
        **more,
    )
    summary = Summary(
        sizes,
        first_of,
        skipped,
        (0 if isinstance(piece, list) else piece.size) or size,
        len(table.first),
        trait_histograms_of(more["traits"], codes, len(place)) if "traits" in more else (),
        excerpts,
    )
    of_tokens, of_digests = (
        StoredArrays(how.path, **part._asdict(), labels=packed) for part in (table, ledger)
    )
    return summary, messages, of_tokens, of_digests


def _count_lines(
    text: bytes | bytearray, seed: bytes, codes: Integers, n: int, times: Any = None
) -> tuple[Table, Any]:
    """Return the counts of the lines of a text per label, and the column of each line.

    The counts are Y'X, for the labels Y, (n_messages, n_labels), and the matrix X.
    codes: (nnz,), the label of each line.  times: (nnz,), how often it counts; None: once.
    """
    first, second, ends = token_keys(text, seed)
    order, is_new = distinct(first, second)
    chosen = order[is_new]
    columns = np.empty(len(order), np.int32)
    columns[order] = np.cumsum(is_new) - 1
    counts = np.bincount(codes * len(chosen) + columns, times, n * len(chosen))
    shaped = counts.astype(np.int64, copy=False).reshape(n, len(chosen))
    lines = lines_at(np.frombuffer(text, np.uint8), ends, chosen)
    return Table(first[chosen], second[chosen], shaped, *lines), columns


def _file_size(name: str) -> int:
    try:
        return os.stat(name).st_size  # noqa: PTH116 (one of many)
    except (OSError, ValueError):  # it has no file of its own
        return 0


def _packed(names: Iterable[str]) -> Any:
    text = "".join(f"{name}\n" for name in names)
    return np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)


def unpacked(packed: Any) -> list[str]:
    """Return the names that were packed, a line each."""
    names: list[str] = packed.tobytes().decode("utf-8", "surrogatepass").split("\n")[:-1]
    return names


class StoredPiece:
    """The messages of a piece, read from their file."""

    def __init__(self, messages: StoredArrays, table: StoredArrays) -> None:
        self._messages, self._table = messages, table
        # The columns of its tokens in a wider matrix, and that matrix's width; None: its own.
        self.widened: tuple[Integers, int] | None = None

    @cached_property
    def table(self) -> Table:
        """Its tokens, and their counts."""
        return Table.of(self._table)

    def __len__(self) -> int:
        return len(self._messages["codes"])

    @cached_property
    def labels(self) -> list[str]:
        """The label of each message."""
        names = unpacked(self._messages["labels"])
        return [names[k] for k in self._messages["codes"].tolist()]

    @cached_property
    def sources(self) -> list[str]:
        """The source of each message."""
        return [name.replace("\0", "\n") for name in unpacked(self._messages["sources"])]

    def classes(self, classes: tuple[str, ...]) -> Integers:
        """Return the class of each message, (n,)."""
        names = unpacked(self._messages["labels"])
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
        return len(self), self.widened[1] if self.widened else len(self.table.first)

    def chunks(self, entries: int = _ENTRIES) -> Iterator[SparseRows]:
        """Yield the matrix's rows, in order, in parts of at most so many entries, or one row."""
        rows, columns = self._messages["rows"], self._messages["columns"]
        data, width = self._messages.get("data"), self.shape[1]
        for first, last in row_blocks(rows, min(entries, _ENTRIES)):
            place = slice(int(rows[first]), int(rows[last]))
            indices = columns[place] if self.widened is None else self.widened[0][columns[place]]
            values = np.ones(len(indices)) if data is None else data[place].astype(np.float64)
            ends = rows[first : last + 1] - rows[first]
            yield SparseRows((values, indices, ends), (last - first, width))

    def messages(self) -> Iterator[TokenizedMessage]:
        """Yield its messages, as they were tokenized."""
        corpus = Corpus(Wanted(self._messages.get("data") is not None, self.traits() is not None))
        corpus.add_piece(self)
        vocabulary = corpus.vocabulary
        for i, source in enumerate(self.sources):
            yield corpus.message(i, vocabulary, source)
