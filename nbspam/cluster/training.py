"""Training on a cluster: messages' tokens stay with the workers, and Dask moves and spills them.

Each worker tokenizes batches and keeps them.  A tree of sums merges their counts, eight tables at a
time, up to the table of the whole vocabulary, with which this machine writes the model.  The same
tree takes the counts back to the batches, because each table stores the places of its parts'
tokens.  So a worker computes the features of its own messages, each left out, and this machine fits
the calibrations to the features of all messages.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from nbspam.bayes import matrix
from nbspam.bayes.event_model import event_model
from nbspam.bayes.matrix import Floats, Integers
from nbspam.learning import batch
from nbspam.learning.batch import Apply, Fit
from nbspam.learning.corpus import Corpus
from nbspam.learning.settings import class_names
from nbspam.learning.training import Part, ScoresFunction, TrainingRun, read_batch
from nbspam.scoring.rules import scoring_rule
from nbspam.store.metadata import Metadata
from nbspam.tokens.kinds import channels_of
from nbspam.tokens.tokenized import TokenizedMessage, TokenizerOutputs

if TYPE_CHECKING:
    from nbspam.tokens.tokenized import Batch

T = TypeVar("T")
_TABLES_PER_TASK = 8


class Table(NamedTuple):
    """The counts of tokens."""

    tokens: str  # one per line
    counts: Integers  # (n_classes, n_tokens)

    def __sizeof__(self) -> int:
        """Return the bytes that Dask moves and spills."""
        return len(self.tokens) + self.counts.nbytes


class ClusterRun(TrainingRun):
    """A training run whose local corpus has everything except the messages' tokens."""

    _vocabulary: Sequence[str]
    _collects_tokens = False

    def _parts(
        self, options: tuple[TokenizerOutputs, bool], batches: "Iterable[Batch]"
    ) -> Iterator[Part]:
        self._batches: list[Any] = []  # references to the corpus of each batch
        self._sizes: list[int] = []  # number of messages in each batch
        self._tokens: Any = None  # a reference to the corpus of the last batch
        for part, tokens in self._executor.map(_read_and_keep, options, batches, 2):
            self._tokens = tokens
            yield part

    def _keep(self, corpus: Corpus, rows: Sequence[int]) -> None:
        super()._keep(corpus, rows)
        if 0 < len(rows) < len(corpus):
            [(_, self._tokens)] = self._executor.map(_choose, rows, [[self._tokens]], 2)
        if rows:
            self._batches.append(self._tokens)
            self._sizes.append(len(rows))

    def leave_out(self, labels: Collection[str]) -> None:
        """Drop the messages with these labels."""
        super().leave_out(labels)
        if labels:
            items = [[corpus] for corpus in self._batches]
            left = self._executor.map(_without, labels, items, 2)
            kept = [(n, corpus) for n, corpus in left if n]
            self._sizes, self._batches = [n for n, _ in kept], [corpus for _, corpus in kept]

    def messages(self) -> Iterator[TokenizedMessage]:
        """Yield the messages in reading order."""
        items = ([corpus] for corpus in self._batches)
        for corpus in self._executor.map(_fetch, None, items):
            yield from corpus.messages()

    def count(self) -> None:
        """Count all tokens and messages; raises TrainingError for fewer than two classes."""
        classes, _ = class_names(self.corpus.labels, self._settings.positive)
        mapped = self._executor.map
        items = [[corpus] for corpus in self._batches]
        self._passes.start("counting", len(items))
        has_tokens = event_model(self._settings.event_model).has_tokens
        counted = self._with_progress(mapped(_count, (classes, has_tokens), items, 2))
        tables = [table for _, table in counted]
        levels: list[list[Any]] = []
        while not levels or len(tables) > 1:
            groups = [
                tables[i : i + _TABLES_PER_TASK] for i in range(0, len(tables), _TABLES_PER_TASK)
            ]
            merged = [list(values) for values in mapped(_merge, None, groups, 2 + _TABLES_PER_TASK)]
            tables = [table for _, table, *_ in merged]
            levels.append(
                [values[2 : 2 + len(g)] for values, g in zip(merged, groups, strict=True)]
            )
        [whole] = mapped(_fetch, None, [tables])
        below: list[Any] = tables
        for places in reversed(levels):
            pairs = [[t, part] for t, parts in zip(below, places, strict=True) for part in parts]
            below = [counts for _, counts in mapped(_select_counts, None, pairs, 2)]
        self._vocabulary = whole.tokens.split("\n") if whole.counts.shape[1] else []
        channels: Any = np.array(channels_of(self._vocabulary), np.int8)
        labels = self.corpus.labels
        traits = self.corpus.traits()
        keys = self.corpus.keys()
        self._fit = Fit(self.corpus, labels, self._settings, channels, traits, whole.counts, keys)
        self.metadata = self._fit.metadata
        ends = np.cumsum(self._sizes)[:-1]
        copies = np.split(self._fit.copies, ends)
        self._items = [list(item) for item in zip(self._batches, below, copies, strict=True)]

    @property
    def vocabulary(self) -> Sequence[str]:
        """The tokens, in the order of the counts' columns."""
        return self._vocabulary

    def _calibrate(self, apply: Apply, keep_tokens: bool) -> None:
        if scoring_rule(self.metadata).is_calibrated:
            self._passes.start("scoring", len(self._items))
            options = self.metadata, self._fit.padding()
            found = self._with_progress(self._executor.map(_left_out, options, self._items))
            self._fit.calibrate_to([block for blocks in found for block in blocks], apply)

    def map_blocks(self, title: str, function: ScoresFunction[T]) -> Iterator[T]:
        """Yield function(metadata, labels, left-out scores) for each block, in order."""
        if self._fit.blocks:
            return super().map_blocks(title, function)
        self._passes.start(title, len(self._items))
        return self._with_progress(
            self._executor.map(_apply_to_block, (function, self.metadata), self._items)
        )

    def _with_progress(self, values: Iterator[T]) -> Iterator[T]:
        """Yield values, and report each to the progress bar."""
        for value in values:
            self._passes.advance()
            yield value


# The tasks of the workers.


def _read_and_keep(
    options: tuple[TokenizerOutputs, bool], messages: "Batch"
) -> tuple[Part, Corpus]:
    """Return a batch's messages without their tokens, and a corpus with the tokens."""
    part = read_batch(options, messages)
    light = Corpus(part.corpus.outputs)
    light.extend(part.corpus, with_tokens=False)
    return part._replace(corpus=light), part.corpus.pack()


def _without(labels: Collection[str], item: list[Corpus]) -> tuple[int, Corpus]:
    """Drop the messages with these labels from a batch; return the rest, after its size."""
    left = item[0].without(labels).pack()
    return len(left), left


def _choose(rows: Sequence[int], item: list[Corpus]) -> tuple[None, Corpus]:
    return None, item[0].select(rows).pack()


def _fetch(_: None, item: list[T]) -> T:
    return item[0]


def _labels(corpus: Corpus, classes: tuple[str, ...]) -> Integers:
    return np.fromiter(map(classes.index, corpus.labels), np.int64)


def _count(options: tuple[tuple[str, ...], bool], item: list[Corpus]) -> tuple[None, Table]:
    """Count a batch's tokens; options: the classes, and whether the model counts tokens."""
    (classes, has_tokens), [corpus] = options, item
    counts = matrix.class_counts(corpus, _labels(corpus, classes), len(classes)) * has_tokens
    return None, Table(corpus.packed_vocabulary, counts)


def _merge(_: None, tables: list[Table]) -> tuple[Any, ...]:
    """Add up tables; return None, the sum, and the places of each table's tokens in it."""
    column_of = defaultdict[str, int](count().__next__)
    places = []
    for table in tables:
        tokens = table.tokens.split("\n") if table.counts.shape[1] else []
        places.append(np.fromiter(map(column_of.__getitem__, tokens), np.int32))
    counts: Any = np.zeros((len(tables[0].counts), len(column_of)), np.int32)
    for table, columns in zip(tables, places, strict=True):
        counts[:, columns] += table.counts
    padding = [None] * (_TABLES_PER_TASK - len(tables))
    return None, Table("\n".join(column_of), counts), *places, *padding


def _select_counts(_: None, item: list[Any]) -> tuple[None, Integers]:
    """Select the counts of one part's tokens from the table above it."""
    above, places = item
    counts = above.counts if isinstance(above, Table) else above
    return None, counts[:, places]


def _left_out(options: tuple[Metadata, Sequence[Floats]], item: list[Any]) -> list[Any]:
    """Collect the results of `batch.left_out`; options: the metadata, and the padding."""
    (metadata, padding), (corpus, counts, copies) = options, item
    labels = _labels(corpus, metadata.settings.classes)
    traits = corpus.traits() if metadata.settings.has_traits else None
    learned = counts, corpus.channels(), copies
    corpus.pack()
    return list(batch.left_out(metadata, corpus, labels, traits, *learned, padding))


def _apply_to_block(options: tuple[ScoresFunction[T], Metadata], item: list[Any]) -> T:
    """Apply a function to a batch's scores by the sum rule."""
    function, metadata = options
    scores = (score for block in _left_out((metadata, ()), item) for score in block)
    return function(metadata, item[0].labels, scores)
