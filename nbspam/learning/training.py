"""Training: pieces of the sources to tables of counts, counts to features, features to a model.

    1  read      each piece is read, tokenized and kept, with tables of its tokens and digests
    2  count     the tables merge, first of some pieces, then of all pieces by ranges of keys
    3  score     each piece finds the counts of its tokens, and makes the features of its messages,
                 each left out; the calibrations are fitted to these here, in the order of messages
    4  write     the lines of the ranges are merged

One way for one process, several, or a cluster: only the executor differs (`workers.py`), and the
model has the same bytes.  Here are only: what is to be known of each piece, histograms of counts, a
row of features per message on the disk, and blocks of lines.  Whoever works has a piece and a range
of the vocabulary in memory.  A rule that needs all counts to leave a message out has them all.
"""

import itertools
import os
import tempfile
import weakref
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, Any, NamedTuple, TypeVar

import numpy as np

from nbspam.bayes.event_model import Histogram
from nbspam.bayes.fitting import inputs_of_rows
from nbspam.bayes.matrix import EvidenceRows, Floats, Integers, Presence
from nbspam.learning.batch import cut_offs_above, host_rows_of, n_blocked, token_histograms
from nbspam.learning.pieces import (
    FIT_LIMIT,
    KeptPiece,
    Reading,
    Stored,
    Summary,
    Table,
    in_sample,
    merged,
    names_in,
    read_piece,
    sample_end,
)
from nbspam.learning.settings import TrainingSettings, class_names, empty_metadata
from nbspam.reading.cutting import SourcePiece
from nbspam.reading.message import RawMessage
from nbspam.reading.source import Skipped, Skips
from nbspam.scoring.batch_rules import (
    BatchEvidence,
    BatchSum,
    fitted_calibrations,
    scores_of_rows,
)
from nbspam.scoring.rules import EvidenceRule, Score, rule_of
from nbspam.scoring.verdict import CutOffs
from nbspam.store.metadata import TRAINING, HostRows, Metadata
from nbspam.store.model_file import digest_key, sorted_lines, write_blocks
from nbspam.tokens.kinds import TRAITS, channels_of
from nbspam.tokens.tokenized import TokenizedMessage, Wanted
from nbspam.workers import Executor, Passes, Serial

T = TypeVar("T")
K = TypeVar("K", int, tuple[int, ...])
Piece = SourcePiece | list[RawMessage | Skipped]
_GROUP = 8  # tables that a cluster merges before they are cut into ranges
# Keys of a range, if no two pieces shared one, and digests: what is in memory at once.
_RANGE, _RANGE_DIGESTS = 250_000, 50_000
_RANGES = 64  # at most, or one for each worker
_SHARED = 1_000  # digests in two classes that are told of each range
_BLOCK = 4 << 20  # bytes of all runs of lines that are merged at a time
_LONGEST_LINE = 1 << 14  # more than any has
_FLOAT = 8  # bytes


class Kept(NamedTuple):
    """A piece that was read: what is known of it, and where the rest is.

    What is kept is a `Stored`, or stands for one that a cluster has.
    """

    summary: Summary
    parts: list[Any]  # its messages, and the table of their tokens
    digests: Any


class TrainingRun:
    """One training run.  Its methods are called in their order; at its end nothing is left."""

    def __init__(
        self,
        where: Executor,
        settings: TrainingSettings,
        passes: Passes | None = None,
        fit_limit: int = FIT_LIMIT,
    ) -> None:
        """Train where an executor works."""
        self._where, self._settings = where, settings
        self._near: Executor = Serial() if where.is_here else where  # where a file is only read
        self._passes, self._fit_limit = passes or Passes(), fit_limit
        self._folder = None
        if where.is_here:
            temporary = tempfile.TemporaryDirectory(prefix="nbspam-", ignore_cleanup_errors=True)
            self._folder = temporary.name
            self._end = weakref.finalize(self, temporary.cleanup)
        self.kept: list[Kept] = []
        self._evidence: list[Any] = []
        self._tokens: list[tuple[_TokenRange, Any, Any]] = []  # of each range: table, lines
        self._digests: list[tuple[_DigestRange, Any]] = []
        self.metadata: Metadata

    @property
    def labels(self) -> Counter[str]:
        """How many messages each label has."""
        found: Counter[str] = Counter()
        for kept in self.kept:
            found.update(kept.summary.messages)
        return found

    def __enter__(self) -> "TrainingRun":
        return self

    def __exit__(self, *_: object) -> None:
        self.kept, self._evidence, self._tokens, self._digests = [], [], [], []
        if self._folder is not None:
            self._end()

    def read(self, pieces: Iterable[Piece], skips: Skips, wanted: Wanted | None = None) -> None:
        """Have all pieces read; raises NbspamError, of the first that cannot be.

        wanted: other than the model counts.
        """
        self._passes.begin("reading", None)
        how = Reading(wanted or self._settings.wanted, os.urandom(16), self._folder)
        for summary, *parts, digests in self._where.keep(read_piece, how, pieces, 4):
            if self.kept:  # whoever reads has begun, and later passes have it when they are forked
                import scipy.sparse  # noqa: F401
            for skipped in summary.skipped:
                skips.take(skipped)
            skips.count += summary.n_skipped - len(summary.skipped)
            if summary.n:
                self.kept.append(Kept(summary, parts, digests))
            self._passes.done(summary.n, summary.size)

    def pieces(self) -> Iterator[KeptPiece]:
        """Yield the pieces that were read."""
        return self._near.map(_piece_of, None, (kept.parts for kept in self.kept))

    def messages(self) -> Iterator[TokenizedMessage]:
        """Yield the messages that were read, in their order."""
        return itertools.chain.from_iterable(piece.messages() for piece in self.pieces())

    def count(self) -> None:
        """Count all tokens and digests; raises TrainingError when there are not two classes."""
        classes, positive = class_names(self.labels, self._settings.positive)
        empty = empty_metadata(classes, positive, self._settings)
        self._count(empty)
        self.metadata = self._counted(empty)

    def fit(self) -> None:
        """Score and calibrate."""
        settings, learned = self.metadata
        self._evidence = [None] * len(self.kept)
        if rule_of(self.metadata).is_calibrated:
            calibrations = fitted_calibrations(settings, *self._score())
            self.metadata = Metadata(settings, learned._replace(calibrations=calibrations))

    def _count(self, empty: Metadata) -> None:
        """Have all tokens and digests counted."""
        n = sum(kept.summary.n_tokens for kept in self.kept)
        n_ranges = max(self._where.workers, min(n // _RANGE, _RANGES), 1)
        how = _Counting(empty.settings.classes, n_ranges, self._folder)
        if empty.settings.counts.has_tokens:
            parts = self._ranges([kept.parts[1] for kept in self.kept], how)
            self._passes.begin("counting", n_ranges)
            for found in self._where.keep(_token_range, how, parts, 3):
                self._tokens.append(found)
                self._passes.done()
        n_digests = sum(self.labels.values()) // _RANGE_DIGESTS
        more = how._replace(ranges=max(1, min(n_digests, _RANGES)))
        parts = self._ranges([kept.digests for kept in self.kept], more)
        self._digests = list(self._where.keep(_digest_range, more, parts, 2))

    def _ranges(self, tables: list[Any], how: "_Counting") -> list[list[Any]]:
        """Return for each range which part of some tables it has, and the tables.

        On a cluster a part is a table of its own, of some pieces, and moves alone.
        """
        if self._where.is_here:
            return [[i, *tables] for i in range(how.ranges)]
        size = max(1, min(_GROUP, -(-len(tables) // self._where.workers)))
        groups = [tables[i : i + size] for i in range(0, len(tables), size)]
        found = list(self._where.keep(_grouped_parts, how, groups, how.ranges + 1))
        return [[None, *(parts[i] for parts in found)] for i in range(1, how.ranges + 1)]

    def _counted(self, empty: Metadata) -> Metadata:
        """Return the metadata of all counts, not calibrated yet."""
        classes, n_classes = empty.settings.classes, len(empty.settings.classes)
        histograms = [Counter[int]() for _ in classes]
        hosts: Counter[tuple[int, ...]] = Counter()
        for about, *_ in self._tokens:
            for own, more in zip(histograms, about.histograms, strict=True):
                own.update(more)
            hosts.update(about.hosts)
        traits = [[Counter[int]() for _ in range(n_classes)] for _ in TRAITS]
        for kept in self.kept:
            for of_trait, found in zip(traits, kept.summary.traits, strict=False):
                for label, values in zip(kept.summary.messages, found, strict=True):
                    of_trait[classes.index(label)].update(values)
        labels = self.labels
        learned = empty.learned._replace(
            calibrated_by=TRAINING,
            messages=tuple(labels[name] for name in classes),
            count_histograms=tuple(map(_in_order, histograms)),
            host_rows=_in_order(hosts),
        )
        if empty.settings.has_traits:
            of_classes = tuple(tuple(map(_in_order, of_trait)) for of_trait in traits)
            learned = learned._replace(trait_histograms=of_classes)
        return empty._replace(learned=learned)

    def _score(self) -> tuple[list[list["_FeatureFile"]], Integers]:
        """Have all messages scored, each left out; return what calibrations are fitted to.

        Per scored class and scale a row of features for each message; and the messages' classes.
        """
        settings = self.metadata.settings
        features = [
            [_FeatureFile(scale.size) for scale in settings.scales] for _ in settings.scored_classes
        ]
        labels: list[Any] = [np.empty(0, np.uint8)]  # of 100 classes at most
        self._passes.begin("scoring", len(self.kept))
        end = sample_end(sum(self.labels.values()), self._fit_limit)
        how = _Scoring(self.metadata, end, self._folder)
        ranges = [table for _, table, _ in self._tokens]
        pieces = ([*kept.parts, ranges] for kept in self.kept)
        self._evidence = []
        for (own, inputs), evidence in self._where.keep(_scored, how, pieces, 2):
            self._passes.done(len(own))
            self._evidence.append(evidence)
            labels.append(own.astype(np.uint8))
            for files, new in zip(features, inputs, strict=True):
                for file, rows in zip(files, new, strict=True):
                    file.append(rows)
        return features, np.concatenate(labels)

    def shared(self) -> tuple[int, list[dict[str, str]]]:
        """Return how many messages are in two or more classes; of the first ones, where they are.

        Each is class -> its first source.
        """
        n = sum(about.n_shared for about, *_ in self._digests)
        digests = {digest for about, *_ in self._digests for digest in about.shared}
        found: dict[bytes, dict[str, str]] = {}
        if n:
            for rows in self._near.map(_having, digests, (kept.parts for kept in self.kept)):
                for digest, label, source in rows:
                    found.setdefault(digest, {}).setdefault(label, source)
        return n, list(found.values())

    def choose_cut_offs(self, limit: float) -> None:
        """Store the lowest cut-offs that block at most this share of the ham; as `batch.py`."""
        n = n_blocked(limit, self.metadata) + 1
        highest: list[float] = []
        for found in self.each("choosing the cut-off", _highest_ham, n):
            highest = sorted([*highest, *found], reverse=True)[:n]
        self.store_cut_offs(cut_offs_above(limit, self.metadata, highest))

    def store_cut_offs(self, cut_offs: CutOffs) -> None:
        """Give the model cut-offs of its own."""
        self.metadata = cut_offs.stored_in(self.metadata)

    def write(self, file: IO[bytes], ledger: bool = True) -> None:
        """Write the model's lines."""
        runs = self._near.map(_lines_of, None, [lines for *_, lines in self._tokens])
        digests = [table for _, table in self._digests] if ledger else []
        lines = self._near.map(_ledger_lines, None, digests)
        self._passes.begin("writing", len(self._tokens) + len(digests))
        write_blocks(file, self.metadata, _merged_lines(self._done(runs)), self._done(lines))

    def _done(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        for block in blocks:
            self._passes.done()
            yield block

    def each(self, what: str, function: Callable[..., T], *more: object) -> Iterator[T]:
        """Yield what a function makes of each piece's `LeftOut`, the metadata and more, in order.

        what: it is, for progress.
        """
        self._passes.begin(what, len(self.kept))
        how = function, self.metadata, more
        ranges = [table for _, table, _ in self._tokens]
        pairs = (
            [*kept.parts, evidence, ranges if evidence is None else None]
            for kept, evidence in zip(self.kept, self._evidence, strict=True)
        )
        for kept, found in zip(self.kept, self._where.map(_applied, how, pairs), strict=True):
            self._passes.done(kept.summary.n)
            yield found

    def named(self, places: Sequence[int]) -> list[tuple[str, str]]:
        """Return source and label of some messages, by their places among all."""
        starts = [0, *itertools.accumulate(kept.summary.n for kept in self.kept)]
        rows: dict[int, list[int]] = {}  # of each piece
        for place in sorted(places):
            i = bisect_right(starts, place) - 1
            rows.setdefault(i, []).append(place - starts[i])
        items = ([*self.kept[i].parts, own] for i, own in rows.items())
        names = itertools.chain.from_iterable(self._near.map(_named_rows, None, items))
        found = dict(zip(sorted(places), names, strict=True))
        return [found[place] for place in places]


def _in_order(counted: Counter[K]) -> dict[K, int]:
    """Return counts in the order of their keys, in which sums over them are made."""
    return dict(sorted(counted.items()))


class _FeatureFile:
    """The features of many messages in a temporary file, a row each; see `Inputs`."""

    def __init__(self, width: int) -> None:
        self._width, self._rows = width, 0
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 (as long as this)
        weakref.finalize(self, self._file.close)

    def append(self, rows: Floats) -> None:
        self._file.write(np.ascontiguousarray(rows).data)
        self._rows += len(rows)

    def __len__(self) -> int:
        return self._rows

    def __getitem__(self, place: slice) -> Floats:
        first, last, _ = place.indices(self._rows)
        self._file.flush()
        width = self._width * _FLOAT
        content = os.pread(self._file.fileno(), (last - first) * width, first * width)
        return np.frombuffer(content).reshape(-1, self._width)


def _merged_lines(runs: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines of runs that are in order each, in order, in blocks.

    The runs wait in a file, and a block of each is in memory.
    """
    places = []
    with tempfile.TemporaryFile() as file:
        for run in filter(None, runs):
            places.append([file.tell(), file.tell() + len(run)])
            file.write(run)
        file.flush()
        size = max(_BLOCK // max(len(places), 1), _LONGEST_LINE)
        waiting: list[list[bytes]] = [[] for _ in places]
        while any(waiting) or any(start < end for start, end in places):
            for lines, place in zip(waiting, places, strict=True):
                if not lines and place[0] < place[1]:
                    content = os.pread(file.fileno(), min(size, place[1] - place[0]), place[0])
                    if place[0] + len(content) < place[1]:
                        content = content[: content.rindex(b"\n") + 1]
                    place[0] += len(content)
                    lines += content.removesuffix(b"\n").split(b"\n")
            own = [lines for lines in waiting if lines]
            last = min(lines[-1] for lines in own)
            block: list[bytes] = []
            for lines in own:
                n = bisect_right(lines, last)
                block += lines[:n]
                del lines[:n]
            block.sort()
            yield b",\n".join(block)


# What is done with pieces and ranges, in whatever process or machine; the first argument is shared.


class _Counting(NamedTuple):
    classes: tuple[str, ...]
    ranges: int
    folder: str | None


class _TokenRange(NamedTuple):
    """What is to be known of a range of tokens."""

    histograms: tuple[Histogram, ...]
    hosts: HostRows


class _DigestRange(NamedTuple):
    """What is to be known of a range of digests."""

    n_shared: int  # in two classes or more
    shared: list[bytes]  # the first of them


class _Scoring(NamedTuple):
    metadata: Metadata
    end: int | None  # of the sample (`sample_end`)
    folder: str | None


def _grouped_parts(how: _Counting, pieces: list[Stored]) -> tuple[Any, ...]:
    """Return nothing to be known, and the sum of tables, as the parts of the ranges."""
    whole = merged([_of_classes(Table.of(piece), piece, how.classes) for piece in pieces])
    parts = (whole.range(i, how.ranges) for i in range(how.ranges))
    return None, *(Stored(how.folder, **part._asdict()) for part in parts)


def _of_classes(table: Table, stored: Stored, classes: tuple[str, ...]) -> Table:
    """Return a piece's table, or a range of it, with a row of counts for each class."""
    counts = np.zeros((len(classes), len(table.first)), np.int64)
    for label, row in zip(names_in(stored["labels"]), table.counts, strict=True):
        counts[classes.index(label)] = row
    return table._replace(counts=counts)


def _merged_range(how: _Counting, item: list[Any]) -> Table:
    """Return the sum of a range of some tables."""
    i, *tables = item
    if i is None:
        return merged([Table.of(stored) for stored in tables])
    parts = ((Table.of(stored).range(i, how.ranges), stored) for stored in tables)
    return merged([_of_classes(part, stored, how.classes) for part, stored in parts])


def _token_range(how: _Counting, item: list[Any]) -> tuple[_TokenRange, Stored, Stored]:
    """Return a range of the tokens: histograms, its table with channels, and its lines."""
    table = _merged_range(how, item)
    tokens = table.tokens()
    channels = np.array(channels_of(tokens), np.int64)
    about = _TokenRange(token_histograms(table.counts), host_rows_of(table.counts, channels))
    lines = sorted_lines(zip(tokens, map(tuple, table.counts.T.tolist()), strict=True))
    text = np.frombuffer("\n".join(lines).encode("utf-8", "surrogatepass"), np.uint8)
    stored = Stored(how.folder, **table._asdict(), channels=channels)
    return about, stored, Stored(how.folder, lines=text)


def _lines_of(_: None, stored: Stored) -> bytes:
    return stored["lines"].tobytes()


def _digest_range(how: _Counting, item: list[Any]) -> tuple[_DigestRange, Stored]:
    """Return a range of the ledger."""
    table = _merged_range(how, item)
    is_shared = (table.counts > 0).sum(axis=0) > 1
    some = np.flatnonzero(is_shared)[:_SHARED]
    digests = [bytes.fromhex(digest) for digest in _hex(table, some)]
    return _DigestRange(int(is_shared.sum()), digests), Stored(how.folder, **table._asdict())


def _hex(table: Table, places: Integers | slice = slice(None)) -> list[str]:
    """Return the digests of a table."""
    halves = np.column_stack([table.first[places], table.second[places]])
    text = halves.astype(">u8").tobytes().hex()
    return [text[i : i + 32] for i in range(0, len(text), 32)]


def _ledger_lines(_: None, stored: Stored) -> bytes:
    table = Table.of(stored)
    rows = zip(_hex(table), map(tuple, table.counts.T.tolist()), strict=True)
    return ",\n".join(sorted_lines(rows, digest_key)).encode()


def _scored(how: _Scoring, item: list[Any]) -> tuple[tuple[Integers, list[list[Floats]]], Stored]:
    """Return classes and features of a piece's messages, each left out; and what they are of."""
    messages, table, ranges = item
    kept, (settings, _) = KeptPiece(messages, table), how.metadata
    labels = kept.classes(settings.classes)
    counts, channels = _counts_of(kept.table, ranges, len(settings.classes))
    rule = BatchEvidence(counts, labels, channels, kept.traits())
    rows = rule.left_out_evidence(kept, how.metadata)
    chosen = np.arange(len(kept))
    if how.end is not None:
        chosen = np.flatnonzero(in_sample(kept.digests(), how.end))
    inputs = [[inputs_of_rows(scale, own)[chosen] for scale in settings.scales] for own in rows]
    arrays = {
        f"{name}{i}": array
        for i, own in enumerate(rows)
        for name, array in own._asdict().items()
        if array is not None
    }
    return (labels[chosen], inputs), Stored(how.folder, **arrays)


def _counts_of(table: Table, ranges: list[Stored], n_classes: int) -> tuple[Integers, Integers]:
    """Return the counts, (n_classes, n), and the channel, (n,), of each token of a table."""
    counts = np.zeros((n_classes, len(table.first)), np.int64)
    channels = np.zeros(len(table.first), np.int64)
    if not ranges:  # a model without tokens
        channels = np.array(channels_of(table.tokens()), np.int64)
    end = 0
    for i, stored in enumerate(ranges):
        own = table.range(i, len(ranges))
        start, end = end, end + len(own.first)
        whole = Table.of(stored)
        places = whole.places(own.first, own.second)
        counts[:, start:end] = whole.counts[:, places]
        channels[start:end] = stored["channels"][places]
    return counts, channels


class LeftOut(NamedTuple):
    """A piece's messages, each left out of the model."""

    labels: list[str]
    scores: Iterator[Score]


def _applied(how: tuple[Callable[..., T], Metadata, tuple[object, ...]], item: list[Any]) -> T:
    function, metadata, more = how
    messages, table, evidence, ranges = item
    kept = KeptPiece(messages, table)
    scores: Iterator[Score] = iter(())
    if evidence is not None:
        scores = scores_of_rows(_rows_of(evidence), EvidenceRule(metadata))
    elif ranges is not None and len(kept):
        scores = _summed(kept, ranges, metadata)
    return function(LeftOut(kept.labels, scores), metadata, *more)


def _rows_of(evidence: Stored) -> tuple[EvidenceRows, ...]:
    """Return the evidence of each scored class."""
    found: list[EvidenceRows] = []
    while f"text{len(found)}" in evidence:
        names = [f"{name}{len(found)}" for name in EvidenceRows._fields]
        found.append(EvidenceRows(*(evidence.get(n) for n in names)))  # type: ignore[arg-type]
    return tuple(found)


def _summed(kept: KeptPiece, ranges: list[Stored], metadata: Metadata) -> Iterator[Score]:
    """Yield the scores of the sum rule, in which every token of the model has a part."""
    labels, traits = kept.classes(metadata.settings.classes), kept.traits()
    if not ranges:  # a model without tokens
        counts, channels = _counts_of(kept.table, ranges, len(metadata.settings.classes))
        return BatchSum(counts, labels, channels, traits).left_out_scores(kept, metadata)
    wholes = [Table.of(stored) for stored in ranges]
    counts = np.concatenate([whole.counts for whole in wholes], axis=1)
    channels = np.concatenate([stored["channels"] for stored in ranges])
    shifts = np.cumsum([0, *(len(whole.first) for whole in wholes)])
    parts = [kept.table.range(i, len(wholes)) for i in range(len(wholes))]
    triples = zip(parts, wholes, shifts.tolist(), strict=False)
    columns = np.concatenate(
        [whole.places(own.first, own.second) + shift for own, whole, shift in triples]
    )
    wide = _Widened(kept, columns, counts.shape[1])
    return BatchSum(counts, labels, channels, traits).left_out_scores(wide, metadata)


class _Widened(NamedTuple):
    """A piece's matrix with the columns of the model's tokens."""

    kept: KeptPiece
    columns: Integers  # of the piece's tokens
    width: int

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.kept), self.width

    def chunks(self, entries: int) -> Iterator[Presence]:
        from scipy.sparse import csr_array

        for part in self.kept.chunks(entries):
            place = part.data, self.columns[part.indices], part.indptr
            yield csr_array(place, shape=(part.shape[0], self.width))


def _highest_ham(left_out: LeftOut, metadata: Metadata, n: int) -> list[float]:
    """Return the n highest log-odds of ham, in descending order."""
    settings = metadata.settings
    spam = settings.classes[settings.positive_index or 0]
    pairs = zip(left_out.labels, left_out.scores, strict=True)
    return sorted((score.log_odds for label, score in pairs if label != spam), reverse=True)[:n]


def _piece_of(_: None, item: list[Stored]) -> KeptPiece:
    return KeptPiece(item[0], item[1])


def _having(digests: set[bytes], item: list[Stored]) -> list[tuple[bytes, str, str]]:
    """Return digest, label and source of the messages that have one of some digests."""
    kept = KeptPiece(item[0], item[1])
    text = kept.digests()
    each = (text[i : i + 16] for i in range(0, len(text), 16))
    return [
        (digest, kept.labels[i], kept.sources[i])
        for i, digest in enumerate(each)
        if digest in digests
    ]


def _named_rows(_: None, item: list[Any]) -> list[tuple[str, str]]:
    messages, table, rows = item
    kept = KeptPiece(messages, table)
    return [(kept.sources[i], kept.labels[i]) for i in rows]
