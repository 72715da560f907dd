"""Training: pieces of the sources to tables of counts, counts to features, features to a model.

    1  read      each piece is read, tokenized and kept, with tables of its tokens and digests
    2  count     the tables merge, first of some pieces, then of all pieces by ranges of keys
    3  score     each piece finds the counts of its tokens, and makes the features of its messages,
                 each left out; the calibrations are fitted to these here, in the order of messages
    4  write     the lines of the ranges are merged

One process, several, and a cluster run the same code: only the executor differs (`workers.py`), and
the model has the same bytes.  This process holds summaries of the pieces, histograms of counts and
blocks of lines, and on the disk a row of features per message.  Each worker holds one piece and one
range of the vocabulary; a rule that needs all counts to leave a message out holds them all.
"""

import itertools
import os
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import IO, Any, NamedTuple, TypeVar

import numpy as np

from nbspam.bayes.fitting import inputs_of_rows
from nbspam.bayes.matrix import EvidenceRows, Floats, Integers
from nbspam.learning import batch, pieces, settings
from nbspam.learning.corpus import Spool
from nbspam.learning.pieces import StoredArrays, StoredPiece, Summary, Table
from nbspam.reading.cutting import SourcePiece
from nbspam.reading.message import RawMessage
from nbspam.reading.source import ReadingNote, Skips
from nbspam.scoring import batch_rules
from nbspam.scoring.rules import EvidenceRule, Score, rule_of
from nbspam.store import model_file
from nbspam.store.lookup import token_key
from nbspam.store.metadata import Metadata
from nbspam.tokens.kinds import KINDS, TEXT, channels_of
from nbspam.tokens.tokenized import TokenizedMessage, Wanted
from nbspam.workers import Executor, Passes

T = TypeVar("T")
OfScores = Callable[[Metadata, list[str], Iterator[Score]], T]  # labels, and left-out scores
Piece = SourcePiece | list[RawMessage | ReadingNote]
_GROUP = 8  # tables that a cluster merges before they are cut into ranges
_RANGE = 125_000  # keys of a range, if no two pieces shared one: what is in memory at once
_RANGES = 128  # at most, or one for each worker
_SHARED = 1_000  # digests in two classes that are told of each range
_BLOCK = 4 << 20  # bytes of all runs of lines that are merged at a time
_LONGEST_LINE = 1 << 14  # more than any has
_FLOAT = 8  # bytes


class PieceRecord(NamedTuple):
    """A piece that was read: its summary, and references to what is stored of it."""

    summary: Summary
    parts: list[Any]  # its messages, and the table of their tokens: `StoredArrays`, or futures
    digests: Any  # the table of their digests
    evidence: Any = None  # of its messages, each left out, if the rule has some


class TrainingRun(ExitStack):
    """One training run.  Its methods are called in order; its end deletes all it stored."""

    metadata: Metadata

    def __init__(
        self, where: Executor, chosen: settings.TrainingSettings, passes: Passes | None = None
    ) -> None:
        """Train where an executor works."""
        super().__init__()
        self._where, self._settings, self._passes = where, chosen, passes or Passes()
        # For tasks that only read a file, a process is not worth its start.
        self._near = Executor() if where.is_here else where
        self.records: list[PieceRecord] = []
        self.labels: Counter[str] = Counter()  # how many messages each has
        self._tokens: list[Any] = []  # of each range, what `_range` returns
        self._digests: list[Any] = []
        self._path = self.enter_context(pieces.file_of_run()) if where.is_here else None
        for values in (self.records, self._tokens, self._digests):
            self.callback(values.clear)

    def read(self, sources: Iterable[Piece], skips: Skips, wanted: Wanted | None = None) -> None:
        """Read all pieces; raises NbspamError for the first that cannot be read.

        wanted: the numbers to store; by default those that the model counts.
        """
        self._passes.begin("reading", None)
        wanted, is_shown = wanted or self._settings.wanted, type(self._passes) is not Passes
        how = pieces.Reading(wanted, os.urandom(16), self._path, is_shown)
        for summary, *parts, digests in self._where.map(pieces.read_piece, how, sources, 4):
            for skipped in summary.skipped:
                skips.take(skipped)
            summary.skipped.clear()
            if summary.n:
                self.records.append(PieceRecord(summary, parts, digests))
                self.labels.update(summary.messages)
            self._passes.done(summary.n, summary.size)

    def pieces(self) -> Iterator[StoredPiece]:
        """Yield the pieces that were read."""
        stored = self._near.map(_fetched, None, (record.parts for record in self.records))
        return itertools.starmap(StoredPiece, stored)

    def messages(self) -> Iterator[TokenizedMessage]:
        """Yield the messages that were read, in their order."""
        return itertools.chain.from_iterable(piece.messages() for piece in self.pieces())

    def count(self) -> None:
        """Count all tokens and digests; raises TrainingError when there are not two classes."""
        classes, positive = settings.class_names(self.labels, self._settings.positive)
        empty = self.metadata = settings.empty_metadata(classes, positive, self._settings)
        kinds = [True, False] if empty.settings.counts.has_tokens else [False]
        items = [item for of_tokens in kinds for item in self._ranges(of_tokens)]
        self._passes.begin("counting", len(items))
        counted = self._where.map(_range, None, items, 3)
        for (how, *_), values in zip(items, counted, strict=True):
            self._passes.done()
            (self._tokens if how.of_tokens else self._digests).append(values)
        traits = ((record.summary.messages, record.summary.traits) for record in self.records)
        tokens = (counted for (counted, _), *_ in self._tokens)
        self.metadata = settings.counted_metadata(empty, self.labels, tokens, traits)

    def _ranges(self, of_tokens: bool) -> list[list[Any]]:
        """Return the items of `_range` for the tables of the tokens, or of the digests.

        On a cluster groups of tables are merged first and cut into ranges, so that less data moves.
        """
        tables = [record.parts[1] if of_tokens else record.digests for record in self.records]
        n_keys = sum(r.summary.n_tokens if of_tokens else r.summary.n for r in self.records)
        n, workers = max(min(n_keys // _RANGE, _RANGES), 1), self._where.workers
        if of_tokens:  # as many for each worker
            n = -(-n // workers) * workers
        classes = self.metadata.settings.classes
        messages = tuple(map(self.labels.__getitem__, classes))
        how = _Counting(classes, messages, of_tokens, n, self._path)
        if self._where.is_here:
            return [[how, i, *tables] for i in range(n)]
        size = max(1, min(_GROUP, -(-len(tables) // workers)))
        groups = [tables[i : i + size] for i in range(0, len(tables), size)]
        parts = [part for _, *part in self._where.map(_grouped_parts, how, groups, n + 1)]
        return [[how, None, *ranges] for ranges in zip(*parts, strict=True)]

    def telling_alone(self) -> list[tuple[str, tuple[int, ...]]]:
        """Return the header words that alone tell the classes apart, with their counts."""
        return [token for (_, tokens), *_ in self._tokens for token in tokens]

    def fit(self) -> None:
        """Score all messages, each left out, and fit the calibrations to that."""
        chosen, learned = self.metadata
        rule = rule_of(self.metadata)
        if not isinstance(rule, EvidenceRule):
            return
        sizes = [scale.size for scale in chosen.scales]
        features = [list(map(_Features, sizes)) for _ in chosen.scored_classes]
        labels = [np.empty(0, np.uint8)]  # of 100 classes at most
        self._passes.begin("scoring", len(self.records))
        items = ([*record.parts, self._tables] for record in self.records)
        scored = self._where.map(_scored, (rule, self._path), items, 2)
        for i, ((classes, inputs), evidence) in enumerate(scored):
            self._passes.done(len(classes))
            self.records[i] = self.records[i]._replace(evidence=evidence)
            labels.append(classes.astype(np.uint8))
            for files, arrays in zip(features, inputs, strict=True):
                for file, array in zip(files, arrays, strict=True):
                    file.append(np.ascontiguousarray(array).data)
        with ExitStack() as stack:
            apply: Callable[..., Iterator[Any]] = map
            if self._where.is_here and self._where.workers > 1:
                from concurrent.futures import ThreadPoolExecutor

                apply = stack.enter_context(ThreadPoolExecutor(self._where.workers)).map
            calibrations = batch_rules.fitted_calibrations(
                chosen, features, np.concatenate(labels), apply
            )
        self.metadata = Metadata(chosen, learned._replace(calibrations=calibrations))

    @property
    def _tables(self) -> list[Any]:
        """The tables of the ranges of the tokens."""
        return [table for *_, table in self._tokens]

    def shared(self) -> tuple[int, list[dict[str, str]]]:
        """Return how many messages are in two or more classes, and sources of the first ones.

        sources: of each such message, class -> its first source.
        """
        n = sum(n_shared for (n_shared, _), *_ in self._digests)
        digests = {digest for (_, first), *_ in self._digests for digest in first}
        sources: dict[str, dict[str, str]] = {}
        if n:
            items = ([*record.parts, None] for record in self.records)
            for rows in self._near.map(_names, digests, items):
                for digest, label, source in rows:
                    sources.setdefault(digest, {}).setdefault(label, source)
        return n, list(sources.values())

    def choose_cut_offs(self, limit: float) -> None:
        """Store the lowest cut-offs that block at most this share of the ham."""
        odds = itertools.chain.from_iterable(self.each("choosing the cut-off", batch.ham_odds))
        self.metadata = batch.cut_offs_within(limit, self.metadata, odds).stored_in(self.metadata)

    def write(self, file: IO[bytes], ledger: bool = True) -> None:
        """Write the model's lines."""
        tokens = [lines for _, lines, _ in self._tokens]
        digests = [lines for _, lines, _ in self._digests] if ledger else []
        self._passes.begin("writing", len(tokens) + len(digests))
        model_file.write_blocks(file, self.metadata, self._lines(tokens), self._lines(digests))

    def _lines(self, ranges: list[Any]) -> Iterator[bytes]:
        """Yield the lines of sorted ranges, merged, in blocks.

        The lines are in a file, and a block of each range in memory.
        """
        file, places = Spool(in_memory=0), []
        for stored in self._near.map(_fetched, None, ranges):
            lines = stored["lines"].tobytes()
            places.append([len(file), len(file) + len(lines)])
            file.append(lines)
            self._passes.done()
        size = max(_BLOCK // max(len(places), 1), _LONGEST_LINE)
        waiting: list[list[bytes]] = [[] for _ in places]
        while any(waiting) or any(start < end for start, end in places):
            for rows, place in zip(waiting, places, strict=True):
                start, end = place
                if not rows and start < end:
                    content = file.part(start, min(start + size, end))
                    if start + len(content) < end:
                        content = content[: content.rindex(b"\n") + 1]
                    place[0] += len(content)
                    rows += content.removesuffix(b"\n").split(b"\n")
            last = min(rows[-1] for rows in waiting if rows)
            block: list[bytes] = []
            for rows in waiting:
                n = bisect_right(rows, last)
                block += rows[:n]
                del rows[:n]
            block.sort()
            yield b",\n".join(block)

    def each(self, title: str, function: OfScores[T]) -> Iterator[T]:
        """Yield function(metadata, labels, left-out scores) of each piece, in order.

        title: of the pass, for progress.
        """
        self._passes.begin(title, len(self.records))
        items = (
            [*record.parts, record.evidence, self._tables if record.evidence is None else []]
            for record in self.records
        )
        values = self._where.map(_applied, (function, self.metadata), items)
        for record, value in zip(self.records, values, strict=True):
            self._passes.done(record.summary.n)
            yield value

    def named(self, places: Sequence[int]) -> list[tuple[str, str]]:
        """Return source and label of the messages at some places among all."""
        items, end = [], 0
        for record in self.records:
            start, end = end, end + record.summary.n
            if rows := [place - start for place in sorted(places) if start <= place < end]:
                items.append([*record.parts, rows])
        names = itertools.chain.from_iterable(self._near.map(_names, set(), items))
        by_place = dict(zip(sorted(places), names, strict=True))
        return [(source, label) for _, label, source in map(by_place.__getitem__, places)]


class _Features(Spool):
    """The features of many messages on the disk, a row each; see `Inputs`."""

    def __init__(self, width: int) -> None:
        super().__init__(width * _FLOAT, in_memory=0)

    def __getitem__(self, place: slice) -> Floats:
        first, last, _ = place.indices(len(self))
        return np.frombuffer(self.part(first, last)).reshape(last - first, -1)


# Tasks of the workers, on pieces and ranges.  The first argument is shared by all of a pass.


class _Counting(NamedTuple):
    classes: tuple[str, ...]
    messages: tuple[int, ...]  # of each class
    of_tokens: bool  # or of digests
    ranges: int
    path: str | None


def _grouped_parts(how: _Counting, tables: list[StoredArrays]) -> tuple[Any, ...]:
    """Return None, and the sum of tables, cut into ranges."""
    whole = pieces.merged([_of_classes(Table.of(table), table, how.classes) for table in tables])
    parts = (whole.range(i, how.ranges) for i in range(how.ranges))
    return None, *(StoredArrays(how.path, **part._asdict()) for part in parts)


def _of_classes(table: Table, stored: StoredArrays, classes: tuple[str, ...]) -> Table:
    """Return a piece's table, or a range of it, with a row of counts for each class."""
    counts = np.zeros((len(classes), len(table.first)), np.int64)
    for label, row in zip(pieces.unpacked(stored["labels"]), table.counts, strict=True):
        counts[classes.index(label)] = row
    return table._replace(counts=counts)


def _range(_: None, item: list[Any]) -> tuple[Any, ...]:
    """Return a summary of a range of some tables, the model's lines, and for tokens the sum.

    The summary of tokens has their histograms, and the tokens that alone tell the classes apart;
    that of digests how many two classes share, and the first of these.
    """
    how, i, *stored = item
    if i is None:
        table = pieces.merged([Table.of(arrays) for arrays in stored])
    else:  # one is mapped at a time: the system maps more of a file than is read
        ranges = ((Table.of(arrays).range(i, how.ranges), arrays) for arrays in stored)
        table = pieces.merged([_of_classes(part, arrays, how.classes) for part, arrays in ranges])
    order, names = table.by_beginning()
    counts = table.counts[:, order]
    key = token_key if how.of_tokens else model_file.digest_key
    rows = zip(names, zip(*counts.tolist(), strict=True), strict=True)
    text = "\n".join(model_file.sorted_lines(rows, key))
    content = np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)
    lines = StoredArrays(how.path, lines=content)
    if not how.of_tokens:
        shared = np.flatnonzero((counts > 0).sum(axis=0) > 1)
        return (len(shared), [names[i] for i in shared[:_SHARED].tolist()]), lines, None
    channels = np.full(len(names), TEXT)
    for kind in KINDS:
        low, high = (bisect_left(names, f"{kind.name}{sign}") for sign in ":;")
        channels[low:high] = kind.channel
    alone = batch_rules.telling_alone(counts, channels, how.messages)
    told = [(names[i], tuple(counts[:, i].tolist())) for i in alone]
    counted = batch.counted(counts, channels), told
    channels[order] = channels.copy()
    # Its text has been written.
    kept = table._replace(text=table.text[:0], ends=table.ends[:0])
    return counted, lines, StoredArrays(how.path, **kept._asdict(), channels=channels)


def _fetched(_: None, stored: T) -> T:
    """Return what is stored, wherever it is, to this process."""
    return stored


def _scored(
    how: tuple[EvidenceRule, str | None], item: list[Any]
) -> tuple[tuple[Integers, list[list[Floats]]], StoredArrays]:
    """Return classes and features of a piece's messages, each left out; and their evidence.

    how: the rule, and the run's file.
    """
    (rule, path), (messages, table, ranges) = how, item
    piece, chosen = StoredPiece(messages, table), rule.metadata.settings
    labels = piece.classes(chosen.classes)
    counts, channels = _counts_of(piece.table, ranges, len(chosen.classes))
    batch_rule = batch_rules.BatchEvidence(counts, labels, channels, piece.traits())
    rows = batch_rule.left_out_evidence(piece, rule)
    inputs = [[inputs_of_rows(scale, row) for scale in chosen.scales] for row in rows]
    arrays = {
        f"{name}{i}": array
        for i, row in enumerate(rows)
        for name, array in row._asdict().items()
        if array is not None
    }
    return (labels, inputs), StoredArrays(path, **arrays)


def _in_ranges(
    table: Table, ranges: list[StoredArrays]
) -> Iterator[tuple[StoredArrays, Table, Integers]]:
    """Yield each range of the tokens, its table, and the places in it of a piece's tokens."""
    for i, stored in enumerate(ranges):
        part, whole = table.range(i, len(ranges)), Table.of(stored)
        yield stored, whole, whole.places(part.first, part.second)


def _counts_of(
    table: Table, ranges: list[StoredArrays], n_classes: int
) -> tuple[Integers, Integers]:
    """Return the counts, (n_classes, n), and the channel, (n,), of each token of a table."""
    if not ranges:  # a model without tokens
        zeros = np.zeros((n_classes, len(table.first)), np.int64)
        return zeros, np.array(channels_of(table.tokens()), np.int64)
    parts = [(t.counts[:, at], part["channels"][at]) for part, t, at in _in_ranges(table, ranges)]
    counts, channels = zip(*parts, strict=True)
    return np.concatenate(counts, axis=1), np.concatenate(channels)


def _applied(how: tuple[OfScores[T], Metadata], item: list[Any]) -> T:
    (function, metadata), (messages, table, evidence, ranges) = how, item
    piece = StoredPiece(messages, table)
    if evidence is None:
        return function(metadata, piece.labels, _summed(piece, ranges, metadata))
    rows = tuple(
        EvidenceRows(*(evidence.get(f"{name}{i}") for name in EvidenceRows._fields))
        for i in range(len(metadata.settings.scored_classes))
    )
    scores = batch_rules.scores_of_rows(rows, EvidenceRule(metadata))
    return function(metadata, piece.labels, scores)


def _summed(piece: StoredPiece, ranges: list[StoredArrays], metadata: Metadata) -> Iterator[Score]:
    """Yield the scores of the sum rule, to which every token of the model contributes."""
    labels = piece.classes(metadata.settings.classes)
    counts, channels = _counts_of(piece.table, ranges, len(metadata.settings.classes))
    if ranges:  # not a model without tokens
        stored, wholes, places = zip(*_in_ranges(piece.table, ranges), strict=True)
        counts = np.concatenate([whole.counts for whole in wholes], axis=1)
        channels = np.concatenate([arrays["channels"] for arrays in stored])
        shifts = np.cumsum([0, *(len(whole.first) for whole in wholes[:-1])])
        columns = np.concatenate([at + shift for at, shift in zip(places, shifts, strict=True)])
        piece.widened = columns, counts.shape[1]
    rule = batch_rules.BatchSum(counts, labels, channels, piece.traits())
    return rule.left_out_scores(piece, metadata)


def _names(digests: set[str], item: list[Any]) -> list[tuple[str, str, str]]:
    """Return digest, label and source of messages: of the rows, or if None of those digests."""
    messages, table, rows = item
    piece = StoredPiece(messages, table)
    text = piece.digests().hex()
    piece_digests = [text[i : i + 32] for i in range(0, len(text), 32)]
    if rows is None:
        rows = [i for i, digest in enumerate(piece_digests) if digest in digests]
    return [(piece_digests[i], piece.labels[i], piece.sources[i]) for i in rows]
