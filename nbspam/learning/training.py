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
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import IO, Any, NamedTuple, TypeVar

import numpy as np

from nbspam.bayes.fitting import inputs_of_rows
from nbspam.bayes.matrix import EvidenceRows, Floats, Integers, Presence
from nbspam.learning.batch import counted, cut_offs_within, ham_odds
from nbspam.learning.corpus import Spool
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
)
from nbspam.learning.settings import (
    TrainingSettings,
    class_names,
    counted_metadata,
    empty_metadata,
)
from nbspam.reading.cutting import SourcePiece
from nbspam.reading.message import RawMessage
from nbspam.reading.source import Skipped, Skips
from nbspam.scoring.batch_rules import (
    BATCH_RULES,
    BatchEvidence,
    BatchSum,
    fitted_calibrations,
    scores_of_rows,
)
from nbspam.scoring.rules import EvidenceRule, Score
from nbspam.store.metadata import Metadata
from nbspam.store.model_file import digest_key, sorted_lines, write_blocks
from nbspam.tokens.kinds import channels_of
from nbspam.tokens.tokenized import TokenizedMessage, Wanted
from nbspam.workers import Executor, Passes

T = TypeVar("T")
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
    evidence: Any = None  # of its messages, each left out, if the rule has some


class TrainingRun(ExitStack):
    """One training run.  Its methods are called in their order; at its end nothing is left."""

    def __init__(
        self,
        where: Executor,
        settings: TrainingSettings,
        passes: Passes | None = None,
        fit_limit: int = FIT_LIMIT,
    ) -> None:
        """Train where an executor works."""
        super().__init__()
        self._where, self._settings = where, settings
        self._near = Executor() if where.is_here else where  # where a file is only read
        self._passes, self._fit_limit = passes or Passes(), fit_limit
        self._folder = None
        self.kept: list[Kept] = []
        self.labels: Counter[str] = Counter()  # how many messages each has
        self._tokens: list[Any] = []  # of each range: what is counted, the table, its lines
        self._digests: list[tuple[tuple[int, list[str]], Any]] = []  # shared, lines
        self.metadata: Metadata
        if where.is_here:
            folder = tempfile.TemporaryDirectory(prefix="nbspam-", ignore_cleanup_errors=True)
            self._folder = self.enter_context(folder)
        for what in (self.kept, self._tokens, self._digests):
            self.callback(what.clear)

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
            summary.skipped.clear()
            if summary.n:
                self.kept.append(Kept(summary, parts, digests))
                self.labels.update(summary.messages)
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
        if empty.settings.counts.has_tokens:
            n_tokens = sum(kept.summary.n_tokens for kept in self.kept)
            n = max(self._where.workers, min(n_tokens // _RANGE, _RANGES), 1)
            self._passes.begin("counting", n)
            tables = [kept.parts[1] for kept in self.kept]
            for found in self._merged(_token_range, tables, _Counting(classes, n, self._folder), 3):
                self._tokens.append(found)
                self._passes.done()
        n = max(1, min(self.labels.total() // _RANGE_DIGESTS, _RANGES))
        tables = [kept.digests for kept in self.kept]
        how = _Counting(classes, n, self._folder)
        self._digests.extend(self._merged(_digest_range, tables, how, 2))
        traits = ((kept.summary.messages, kept.summary.traits) for kept in self.kept)
        tokens = (found for found, *_ in self._tokens)
        self.metadata = counted_metadata(empty, self.labels, tokens, traits)

    def _merged(
        self, function: Callable[..., tuple[Any, ...]], tables: list[Any], how: "_Counting", n: int
    ) -> Iterator[Any]:
        """Yield what a function makes of each range of some tables, n values as `keep` has them.

        On a cluster each range is first cut out of groups of tables, and moves alone.
        """
        if self._where.is_here:
            items = [[i, *tables] for i in range(how.ranges)]
        else:
            size = max(1, min(_GROUP, -(-len(tables) // self._where.workers)))
            groups = [tables[i : i + size] for i in range(0, len(tables), size)]
            found = self._where.keep(_grouped_parts, how, groups, how.ranges + 1)
            items = [[None, *parts] for parts in zip(*(parts for _, *parts in found), strict=True)]
        return self._where.keep(function, how, items, n)

    def fit(self) -> None:
        """Score all messages, each left out, and fit the calibrations to that."""
        settings, learned = self.metadata
        if not BATCH_RULES[settings.scoring].fits_apart:
            return
        features = [
            [_Features(scale.size) for scale in settings.scales] for _ in settings.scored_classes
        ]
        labels = [np.empty(0, np.uint8)]  # of 100 classes at most
        self._passes.begin("scoring", len(self.kept))
        pieces = ([*kept.parts, self._tables] for kept in self.kept)
        found = self._where.keep(_scored, (self.metadata, self._fit_limit, self._folder), pieces, 2)
        for i, ((own, inputs), evidence) in enumerate(found):
            self._passes.done(len(own))
            self.kept[i] = self.kept[i]._replace(evidence=evidence)
            labels.append(own.astype(np.uint8))
            for files, new in zip(features, inputs, strict=True):
                for file, rows in zip(files, new, strict=True):
                    file.append(rows)
        calibrations = fitted_calibrations(settings, features, np.concatenate(labels))
        self.metadata = Metadata(settings, learned._replace(calibrations=calibrations))

    @property
    def _tables(self) -> list[Any]:
        """The tables of the ranges of the tokens."""
        return [table for _, table, _ in self._tokens]

    def shared(self) -> tuple[int, list[dict[str, str]]]:
        """Return how many messages are in two or more classes; of the first ones, where they are.

        Each is class -> its first source.
        """
        n = sum(own for (own, _), _ in self._digests)
        digests = {digest for (_, some), _ in self._digests for digest in some}
        found: dict[str, dict[str, str]] = {}
        if n:
            pieces = ([*kept.parts, None] for kept in self.kept)
            for rows in self._near.map(_named, digests, pieces):
                for digest, label, source in rows:
                    found.setdefault(digest, {}).setdefault(label, source)
        return n, list(found.values())

    def choose_cut_offs(self, limit: float) -> None:
        """Store the lowest cut-offs that block at most this share of the ham; as `batch.py`."""
        found = self.each("choosing the cut-off", ham_odds)
        ham = itertools.chain.from_iterable(found)
        self.metadata = cut_offs_within(limit, self.metadata, ham).stored_in(self.metadata)

    def write(self, file: IO[bytes], ledger: bool = True) -> None:
        """Write the model's lines."""
        digests = [lines for _, lines in self._digests] if ledger else []
        runs = self._near.map(_lines_of, None, [lines for *_, lines in self._tokens])
        learned = self._near.map(_lines_of, None, digests)
        self._passes.begin("writing", len(self._tokens) + len(digests))
        write_blocks(file, self.metadata, _merged_lines(self._done(runs)), self._done(learned))

    def _done(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        for block in blocks:
            self._passes.done()
            yield block

    def each(
        self, what: str, function: Callable[[Metadata, list[str], Iterator[Score]], T]
    ) -> Iterator[T]:
        """Yield what a function makes of each piece, in order: of labels, and scores left out.

        what: it is, for progress.
        """
        self._passes.begin(what, len(self.kept))
        pieces = (
            [*kept.parts, kept.evidence, self._tables if kept.evidence is None else []]
            for kept in self.kept
        )
        found = self._where.map(_applied, (function, self.metadata), pieces)
        for kept, value in zip(self.kept, found, strict=True):
            self._passes.done(kept.summary.n)
            yield value

    def named(self, places: Sequence[int]) -> list[tuple[str, str]]:
        """Return source and label of some messages, by their places among all."""
        pieces, end = [], 0
        for kept in self.kept:
            start, end = end, end + kept.summary.n
            if own := [place - start for place in sorted(places) if start <= place < end]:
                pieces.append([*kept.parts, own])
        names = itertools.chain.from_iterable(self._near.map(_named, set(), pieces))
        found = dict(zip(sorted(places), names, strict=True))
        return [(source, label) for _, label, source in map(found.__getitem__, places)]


class _Features:
    """The features of many messages on the disk, a row each; see `Inputs`."""

    def __init__(self, width: int) -> None:
        self._row, self._rows = width * _FLOAT, Spool(0)

    def append(self, rows: Floats) -> None:
        self._rows.append(np.ascontiguousarray(rows).data)

    def __len__(self) -> int:
        return len(self._rows) // self._row

    def __getitem__(self, place: slice) -> Floats:
        first, last, _ = place.indices(len(self))
        content = self._rows.part(first * self._row, last * self._row)
        return np.frombuffer(content).reshape(last - first, -1)


def _merged_lines(runs: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines of runs that are in order each, in order, in blocks.

    The runs wait in a file, and a block of each is in memory.
    """
    file, places = Spool(0), []
    for run in filter(None, runs):
        places.append([len(file), len(file) + len(run)])
        file.append(run)
    size = max(_BLOCK // max(len(places), 1), _LONGEST_LINE)
    waiting: list[list[bytes]] = [[] for _ in places]
    while any(waiting) or any(start < end for start, end in places):
        for lines, place in zip(waiting, places, strict=True):
            start, end = place
            if not lines and start < end:
                content = file.part(start, min(start + size, end))
                if start + len(content) < end:
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


def _token_range(how: _Counting, item: list[Any]) -> tuple[Any, Stored, Stored]:
    """Return a range of the tokens: what is counted, its table with channels, and its lines."""
    table = _merged_range(how, item)
    tokens = table.tokens()
    channels = np.array(channels_of(tokens), np.int64)
    lines = sorted_lines(zip(tokens, map(tuple, table.counts.T.tolist()), strict=True))
    stored = Stored(how.folder, **table._asdict(), channels=channels)
    return counted(table.counts, channels), stored, _stored_lines(how, "\n".join(lines))


def _lines_of(_: None, stored: Stored) -> bytes:
    return stored["lines"].tobytes()


def _digest_range(how: _Counting, item: list[Any]) -> tuple[tuple[int, list[str]], Stored]:
    """Return how many digests of a range two classes share, the first of them; and its lines."""
    table = _merged_range(how, item)
    digests = _hex(np.column_stack([table.first, table.second]).astype(">u8").tobytes())
    shared = np.flatnonzero((table.counts > 0).sum(axis=0) > 1)
    rows = zip(digests, map(tuple, table.counts.T.tolist()), strict=True)
    lines = _stored_lines(how, ",\n".join(sorted_lines(rows, digest_key)))
    return (len(shared), [digests[i] for i in shared[:_SHARED].tolist()]), lines


def _stored_lines(how: _Counting, lines: str) -> Stored:
    content = lines.encode("utf-8", "surrogatepass")
    return Stored(how.folder, lines=np.frombuffer(content, np.uint8))


def _hex(digests: bytes) -> list[str]:
    """Return digests, of which the bytes follow one another."""
    text = digests.hex()
    return [text[i : i + 32] for i in range(0, len(text), 32)]


def _scored(
    how: tuple[Metadata, int, str | None], item: list[Any]
) -> tuple[tuple[Integers, list[list[Floats]]], Stored]:
    """Return classes and features of a piece's messages, each left out; and what they are of.

    how: the metadata, the size of the sample (`in_sample`), and the folder.
    """
    (metadata, limit, folder), (messages, table, ranges) = how, item
    kept, settings = KeptPiece(messages, table), metadata.settings
    labels = kept.classes(settings.classes)
    counts, channels = _counts_of(kept.table, ranges, len(settings.classes))
    rule = BatchEvidence(counts, labels, channels, kept.traits())
    rows = rule.left_out_evidence(kept, metadata)
    chosen = np.flatnonzero(in_sample(kept.digests(), sum(metadata.learned.messages), limit))
    inputs = [[inputs_of_rows(scale, own)[chosen] for scale in settings.scales] for own in rows]
    arrays = {
        f"{name}{i}": array
        for i, own in enumerate(rows)
        for name, array in own._asdict().items()
        if array is not None
    }
    return (labels[chosen], inputs), Stored(folder, **arrays)


def _in_ranges(table: Table, ranges: list[Stored]) -> Iterator[tuple[Stored, Table, Integers]]:
    """Yield each range of the tokens, its table, and where in it those of a piece's table are."""
    for i, stored in enumerate(ranges):
        own, whole = table.range(i, len(ranges)), Table.of(stored)
        yield stored, whole, whole.places(own.first, own.second)


def _counts_of(table: Table, ranges: list[Stored], n_classes: int) -> tuple[Integers, Integers]:
    """Return the counts, (n_classes, n), and the channel, (n,), of each token of a table."""
    if not ranges:  # a model without tokens
        zeros = np.zeros((n_classes, len(table.first)), np.int64)
        return zeros, np.array(channels_of(table.tokens()), np.int64)
    found = [(t.counts[:, at], own["channels"][at]) for own, t, at in _in_ranges(table, ranges)]
    counts, channels = zip(*found, strict=True)
    return np.concatenate(counts, axis=1), np.concatenate(channels)


def _applied(
    how: tuple[Callable[[Metadata, list[str], Iterator[Score]], T], Metadata], item: list[Any]
) -> T:
    (function, metadata), (messages, table, evidence, ranges) = how, item
    kept = KeptPiece(messages, table)
    if evidence is None:
        return function(metadata, kept.labels, _summed(kept, ranges, metadata))
    rows = tuple(
        EvidenceRows(*(evidence.get(f"{name}{i}") for name in EvidenceRows._fields))
        for i in range(len(metadata.settings.scored_classes))
    )
    return function(metadata, kept.labels, scores_of_rows(rows, EvidenceRule(metadata)))


def _summed(kept: KeptPiece, ranges: list[Stored], metadata: Metadata) -> Iterator[Score]:
    """Yield the scores of the sum rule, in which every token of the model has a part."""
    labels, traits = kept.classes(metadata.settings.classes), kept.traits()
    if not ranges:  # a model without tokens
        own = _counts_of(kept.table, ranges, len(metadata.settings.classes))
        return BatchSum(own[0], labels, own[1], traits).left_out_scores(kept, metadata)
    stored, wholes, places = zip(*_in_ranges(kept.table, ranges), strict=True)
    counts = np.concatenate([whole.counts for whole in wholes], axis=1)
    channels = np.concatenate([own["channels"] for own in stored])
    shifts = np.cumsum([0, *(len(whole.first) for whole in wholes[:-1])])
    columns = np.concatenate([at + shift for at, shift in zip(places, shifts, strict=True)])
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


def _piece_of(_: None, item: list[Stored]) -> KeptPiece:
    return KeptPiece(item[0], item[1])


def _named(digests: set[str], item: list[Any]) -> list[tuple[str, str, str]]:
    """Return digest, label and source of messages: of some rows, or None: with such digests."""
    messages, table, rows = item
    kept = KeptPiece(messages, table)
    own = _hex(kept.digests())
    if rows is None:
        rows = [i for i, digest in enumerate(own) if digest in digests]
    return [(own[i], kept.labels[i], kept.sources[i]) for i in rows]
