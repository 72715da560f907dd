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
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import IO, Any, NamedTuple, TypeVar

import numpy as np

from nbspam.bayes.fitting import inputs_of_rows
from nbspam.bayes.matrix import EvidenceRows, Floats, Integers
from nbspam.learning.batch import counted, cut_offs_within, ham_odds
from nbspam.learning.corpus import Spool
from nbspam.learning.pieces import (
    FIT_LIMIT,
    KeptPiece,
    Reading,
    Stored,
    Summary,
    Table,
    file_of_run,
    in_sample,
    merged,
    names_in,
    read_piece,
)
from nbspam.learning.settings import TrainingSettings, class_names, counted_metadata, empty_metadata
from nbspam.reading.cutting import SourcePiece
from nbspam.reading.message import RawMessage
from nbspam.reading.source import Skipped, Skips
from nbspam.scoring import batch_rules
from nbspam.scoring.rules import EvidenceRule, Score, rule_of
from nbspam.store.lookup import token_key
from nbspam.store.metadata import Metadata
from nbspam.store.model_file import digest_key, sorted_lines, write_blocks
from nbspam.tokens.kinds import channels_of
from nbspam.tokens.tokenized import TokenizedMessage, Wanted
from nbspam.workers import Executor, Passes

T = TypeVar("T")
Piece = SourcePiece | list[RawMessage | Skipped]
_GROUP = 8  # tables that a cluster merges before they are cut into ranges
_RANGE = 250_000  # keys of a range, if no two pieces shared one: what is in memory at once
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
        self._path = None
        self.kept: list[Kept] = []
        self.labels: Counter[str] = Counter()  # how many messages each has
        self._tokens: list[Any] = []  # of each range, what `_range` returns
        self._digests: list[Any] = []
        self.metadata: Metadata
        if where.is_here:
            self._path = self.enter_context(file_of_run())
        for what in (self.kept, self._tokens, self._digests):
            self.callback(what.clear)

    def read(self, pieces: Iterable[Piece], skips: Skips, wanted: Wanted | None = None) -> None:
        """Have all pieces read; raises NbspamError, of the first that cannot be.

        wanted: other than the model counts.
        """
        self._passes.begin("reading", None)
        how = Reading(wanted or self._settings.wanted, os.urandom(16), self._path)
        for summary, *parts, digests in self._where.map(read_piece, how, pieces, 4):
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
        self.metadata = empty_metadata(classes, positive, self._settings)
        if self.metadata.settings.counts.has_tokens:
            self._tokens.extend(self._merged(of_tokens=True))
        self._digests.extend(self._merged(of_tokens=False))
        traits = ((kept.summary.messages, kept.summary.traits) for kept in self.kept)
        tokens = (found for (found, _), *_ in self._tokens)
        self.metadata = counted_metadata(self.metadata, self.labels, tokens, traits)

    def _merged(self, of_tokens: bool) -> Iterator[Any]:
        """Have the tables of the tokens merged, or of the digests; yield what `_range` returns.

        On a cluster each range is first cut out of groups of tables, and moves alone.
        """
        tables = [kept.parts[1] if of_tokens else kept.digests for kept in self.kept]
        n_keys = sum(kept.summary.n_tokens if of_tokens else kept.summary.n for kept in self.kept)
        n = max(self._where.workers, min(n_keys // _RANGE, _RANGES), 1)
        classes = self.metadata.settings.classes
        messages = tuple(map(self.labels.__getitem__, classes))
        how = _Counting(classes, messages, of_tokens, n, self._path)
        self._passes.begin("counting", n)
        if self._where.is_here:
            items = [[i, *tables] for i in range(n)]
        else:
            size = max(1, min(_GROUP, -(-len(tables) // self._where.workers)))
            groups = [tables[i : i + size] for i in range(0, len(tables), size)]
            found = self._where.map(_grouped_parts, how, groups, n + 1)
            items = [[None, *parts] for parts in zip(*(parts for _, *parts in found), strict=True)]
        for values in self._where.map(_range, how, items, 3 if of_tokens else 2):
            self._passes.done()
            yield values

    def telling_alone(self) -> list[tuple[str, tuple[int, ...]]]:
        """Return the header words that alone tell the classes apart, with their counts."""
        return [token for (_, some), *_ in self._tokens for token in some]

    def fit(self) -> None:
        """Score all messages, each left out, and fit the calibrations to that."""
        settings, learned = self.metadata
        if not rule_of(self.metadata).is_calibrated:
            return
        features = [
            [_Features(scale.size) for scale in settings.scales] for _ in settings.scored_classes
        ]
        labels = [np.empty(0, np.uint8)]  # of 100 classes at most
        self._passes.begin("scoring", len(self.kept))
        pieces = ([*kept.parts, self._tables] for kept in self.kept)
        found = self._where.map(_scored, (self.metadata, self._fit_limit, self._path), pieces, 2)
        for i, ((own, inputs), evidence) in enumerate(found):
            self._passes.done(len(own))
            self.kept[i] = self.kept[i]._replace(evidence=evidence)
            labels.append(own.astype(np.uint8))
            for files, new in zip(features, inputs, strict=True):
                for file, rows in zip(files, new, strict=True):
                    file.append(np.ascontiguousarray(rows).data)
        calibrations = batch_rules.fitted_calibrations(settings, features, np.concatenate(labels))
        self.metadata = Metadata(settings, learned._replace(calibrations=calibrations))

    @property
    def _tables(self) -> list[Any]:
        """The tables of the ranges of the tokens."""
        return [table for *_, table in self._tokens]

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
        tokens, digests = ([lines for _, lines, *_ in f] for f in (self._tokens, self._digests))
        digests = digests if ledger else []
        self._passes.begin("writing", len(tokens) + len(digests))
        write_blocks(file, self.metadata, self._lines(tokens), self._lines(digests))

    def _lines(self, ranges: list[Any]) -> Iterator[bytes]:
        """Yield the lines of ranges, which are in order each, in order, in blocks.

        They wait in a file, and a block of each is in memory.
        """
        file, places = Spool(in_memory=0), []
        for lines in self._near.map(_lines_of, None, ranges):
            places.append([len(file), len(file) + len(lines)])
            file.append(lines)
            self._passes.done()
        size = max(_BLOCK // max(len(places), 1), _LONGEST_LINE)
        waiting: list[list[bytes]] = [[] for _ in places]
        while any(waiting) or any(start < end for start, end in places):
            for own, place in zip(waiting, places, strict=True):
                start, end = place
                if not own and start < end:
                    content = file.part(start, min(start + size, end))
                    if start + len(content) < end:
                        content = content[: content.rindex(b"\n") + 1]
                    place[0] += len(content)
                    own += content.removesuffix(b"\n").split(b"\n")
            last = min(own[-1] for own in waiting if own)
            block: list[bytes] = []
            for own in waiting:
                n = bisect_right(own, last)
                block += own[:n]
                del own[:n]
            block.sort()
            yield b",\n".join(block)

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


class _Features(Spool):
    """The features of many messages on the disk, a row each; see `Inputs`."""

    def __init__(self, width: int) -> None:
        super().__init__(width * _FLOAT, in_memory=0)

    def __getitem__(self, place: slice) -> Floats:
        first, last, _ = place.indices(len(self))
        return np.frombuffer(self.part(first, last)).reshape(last - first, -1)


# What is done with pieces and ranges, in whatever process or machine; the first argument is shared.


class _Counting(NamedTuple):
    classes: tuple[str, ...]
    messages: tuple[int, ...]  # of each class
    of_tokens: bool  # or of digests
    ranges: int
    path: str | None


def _grouped_parts(how: _Counting, pieces: list[Stored]) -> tuple[Any, ...]:
    """Return nothing to be known, and the sum of tables, as the parts of the ranges."""
    whole = merged([_of_classes(Table.of(piece), piece, how.classes) for piece in pieces])
    parts = (whole.range(i, how.ranges) for i in range(how.ranges))
    return None, *(Stored(how.path, **part._asdict()) for part in parts)


def _of_classes(table: Table, stored: Stored, classes: tuple[str, ...]) -> Table:
    """Return a piece's table, or a range of it, with a row of counts for each class."""
    counts = np.zeros((len(classes), len(table.first)), np.int64)
    for label, row in zip(names_in(stored["labels"]), table.counts, strict=True):
        counts[classes.index(label)] = row
    return table._replace(counts=counts)


def _range(how: _Counting, item: list[Any]) -> tuple[Any, ...]:
    """Return what is to be known of a range of some tables, the model's lines, and their sum.

    To be known are counts of tokens, and those that alone tell the classes apart; of digests, how
    many two classes share, and the first of them.  The sum is of tokens, with their channels.
    """
    i, *stored = item
    tables: Iterator[Table] = map(Table.of, stored)
    if i is not None:
        pairs = zip(tables, stored, strict=True)
        tables = (_of_classes(t.range(i, how.ranges), own, how.classes) for t, own in pairs)
    table = merged(list(tables))
    names, rows = table.tokens(), list(map(tuple, table.counts.T.tolist()))
    key = token_key if how.of_tokens else digest_key
    text = "\n".join(sorted_lines(zip(names, rows, strict=True), key))
    content = np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)
    lines = Stored(how.path, lines=content)
    if not how.of_tokens:
        shared = np.flatnonzero((table.counts > 0).sum(axis=0) > 1)
        return (len(shared), [names[i] for i in shared[:_SHARED].tolist()]), lines
    channels = np.array(channels_of(names), np.int64)
    stored_sum = Stored(how.path, **table._asdict(), channels=channels)
    alone = batch_rules.telling_alone(table.counts, channels, how.messages)
    known = counted(table.counts, channels), [(names[i], rows[i]) for i in alone]
    return known, lines, stored_sum


def _lines_of(_: None, stored: Stored) -> bytes:
    return stored["lines"].tobytes()


def _scored(
    how: tuple[Metadata, int, str | None], item: list[Any]
) -> tuple[tuple[Integers, list[list[Floats]]], Stored]:
    """Return classes and features of a piece's messages, each left out; and what they are of.

    how: the metadata, the size of the sample (`in_sample`), and the run's file.
    """
    (metadata, limit, path), (messages, table, ranges) = how, item
    kept, settings = KeptPiece(messages, table), metadata.settings
    labels = kept.classes(settings.classes)
    counts, channels = _counts_of(kept.table, ranges, len(settings.classes))
    rule = batch_rules.BatchEvidence(counts, labels, channels, kept.traits())
    rows = rule.left_out_evidence(kept, metadata)
    chosen = np.flatnonzero(in_sample(kept.digests(), sum(metadata.learned.messages), limit))
    inputs = [[inputs_of_rows(scale, own)[chosen] for scale in settings.scales] for own in rows]
    arrays = {
        f"{name}{i}": array
        for i, own in enumerate(rows)
        for name, array in own._asdict().items()
        if array is not None
    }
    return (labels[chosen], inputs), Stored(path, **arrays)


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
    return function(metadata, kept.labels, batch_rules.scores_of_rows(rows, EvidenceRule(metadata)))


def _summed(kept: KeptPiece, ranges: list[Stored], metadata: Metadata) -> Iterator[Score]:
    """Yield the scores of the sum rule, in which every token of the model has a part."""
    labels = kept.classes(metadata.settings.classes)
    counts, channels = _counts_of(kept.table, ranges, len(metadata.settings.classes))
    if ranges:  # not a model without tokens
        stored, wholes, places = zip(*_in_ranges(kept.table, ranges), strict=True)
        counts = np.concatenate([whole.counts for whole in wholes], axis=1)
        channels = np.concatenate([own["channels"] for own in stored])
        shifts = np.cumsum([0, *(len(whole.first) for whole in wholes[:-1])])
        columns = np.concatenate([at + shift for at, shift in zip(places, shifts, strict=True)])
        kept.widened = columns, counts.shape[1]
    rule = batch_rules.BatchSum(counts, labels, channels, kept.traits())
    return rule.left_out_scores(kept, metadata)


def _piece_of(_: None, item: list[Stored]) -> KeptPiece:
    return KeptPiece(item[0], item[1])


def _named(digests: set[str], item: list[Any]) -> list[tuple[str, str, str]]:
    """Return digest, label and source of messages: of some rows, or None: with such digests."""
    messages, table, rows = item
    kept = KeptPiece(messages, table)
    text = kept.digests().hex()
    own = [text[i : i + 32] for i in range(0, len(text), 32)]
    if rows is None:
        rows = [i for i, digest in enumerate(own) if digest in digests]
    return [(own[i], kept.labels[i], kept.sources[i]) for i in rows]
