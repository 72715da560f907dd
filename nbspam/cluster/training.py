"""A model trained on many machines: the same bytes as one machine makes of the same messages.

    1  read      each piece of the sources is tokenized by a worker, which keeps its messages
    2  count     tables of counts merge in a tree, by ranges of tokens; the ledger likewise
    3  score     each piece gets the counts of its tokens, and makes its messages' features, each
                 left out; a calibration is fitted to these here, in the order of the messages
    4  write     the lines of each range come in order, and are written one range after the other

Here are only: what is to be known of each piece, the histograms, a row of features per message on
the disk, and one range's lines at a time.  A worker has what it keeps on its disk, and in memory
one piece and its ranges of the vocabulary.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from nbspam.bayes.matrix import Integers
from nbspam.cluster import tasks
from nbspam.cluster.connection import Cluster, at_home, grouped, same
from nbspam.cluster.count_table import key_ranges
from nbspam.cluster.feature_file import FeatureFile
from nbspam.cluster.identity import program_version
from nbspam.cluster.kept import Summary
from nbspam.cluster.stored import Stored
from nbspam.cluster.tasks import CalledCounts, FitInputs
from nbspam.learning.batch import (
    blocked_within,
    check_cut_offs,
    cut_offs_above,
)
from nbspam.learning.batch_rules import fitted_calibrations
from nbspam.learning.fit_sample import FIT_LIMIT, sample_end
from nbspam.learning.settings import TrainingSettings, class_names, empty_metadata
from nbspam.reading.piece import SourcePiece
from nbspam.reading.skips import Skips
from nbspam.scoring.verdict import CutOffs
from nbspam.store.metadata import TRAINING, Metadata
from nbspam.store.model_file import write_blocks
from nbspam.tokens.traits import TRAITS
from nbspam.workers import ahead

if TYPE_CHECKING:
    from distributed import Future

T = TypeVar("T")
K = TypeVar("K", int, tuple[int, ...])
_Range = tuple[str | None, str | None]
_GROUP = 8  # tables merged at a time, and pieces whose tokens are looked up together
# Keys of a range, if each piece had other ones: a range is in memory at once, on a worker as text,
# here as lines.  Each is two tasks for each group of pieces.
_RANGE_KEYS, _RANGE_DIGESTS = 250_000, 50_000
_RANGES = 64  # at most, or one for each worker
_IN_FLIGHT = 16  # rows of features on their way


class Passes:
    """Is told how far the training is; this one says nothing."""

    def begin(self, what: str, parts: int) -> None:
        """Begin a pass of so many parts."""

    def done(self, messages: int = 0, size: int = 0) -> None:
        """One part is done, with so many messages and bytes."""


class ClusterTraining:
    """One training run.  Its methods are called in their order."""

    def __init__(
        self,
        cluster: Cluster,
        settings: TrainingSettings,
        ledger: bool = True,
        passes: Passes | None = None,
        fit_limit: int = FIT_LIMIT,
    ) -> None:
        """Train on a cluster; ledger: whether the model remembers what it learned."""
        self._cluster, self._settings, self._ledger = cluster, settings, ledger
        self._passes, self._fit_limit = passes or Passes(), fit_limit
        self._kept: list[Future[Any]] = []
        self._evidence: list[Future[Any]] = []
        self._tokens: list[Future[Any]] = []  # a table for each range of tokens
        self._digests: list[Future[Any]] = []
        self.summaries: list[Summary] = []  # of each piece, in order
        self.metadata: Metadata

    @property
    def labels(self) -> Counter[str]:
        """How many messages each label has."""
        found: Counter[str] = Counter()
        for summary in self.summaries:
            found.update(summary.messages)
        return found

    def read(self, pieces: Iterable[SourcePiece], skips: Skips) -> None:
        """Have all pieces read; raises NbspamError, of the first piece that cannot be."""
        expected, wanted = program_version(), self._settings.wanted
        futures = []
        for piece in pieces:
            kept = self._cluster.submit(read_at_home, expected, piece, wanted)
            self._kept.append(kept)
            futures.append(self._cluster.submit(tasks.summary_of, kept, first=True))
        self._passes.begin("reading", len(futures))
        found: dict[Any, Summary] = {}
        for future in self._cluster.completed(futures):
            summary = found[future.key] = future.result()
            self._passes.done(summary.n, summary.size)
        self.summaries = [found[future.key] for future in futures]
        for summary in self.summaries:
            for skipped in summary.skipped:
                skips.take(skipped)
            skips.count += summary.n_skipped - len(summary.skipped)

    def fit(self) -> None:
        """Count, score and calibrate; raises TrainingError when there are not two classes."""
        classes, positive = class_names(self.labels, self._settings.positive)
        empty = empty_metadata(classes, positive, self._settings)
        ranges = self._ranges()
        parts = self._count(empty, ranges)
        self.metadata = self._counted(empty)
        inputs = self._score(parts)
        settings, learned = self.metadata.settings, self.metadata.learned
        calibrations = fitted_calibrations(settings, inputs.features, inputs.labels)
        self.metadata = self.metadata._replace(learned=learned._replace(calibrations=calibrations))

    def _ranges(self) -> list[_Range]:
        """Return the ranges of the tokens."""
        n = self._n_ranges(sum(summary.keys for summary in self.summaries), _RANGE_KEYS)
        return key_ranges((key for summary in self.summaries for key in summary.sample), n)

    def _n_ranges(self, n: int, most: int) -> int:
        """Return into how many ranges so many keys are cut; most: in each."""
        return max(len(self._cluster.workers), min(n // most, _RANGES), 1)

    def _count(self, empty: Metadata, ranges: list[_Range]) -> list[list["Future[Any]"]]:
        """Have all tokens and digests counted; return each group's tables, by range."""
        parts: list[list[Future[Any]]] = []
        if empty.settings.counts.has_tokens:
            parts = self._parts(tasks.counts_of, ranges)
            self._tokens = self._merged_ranges(parts)
        if self._ledger:
            n = self._n_ranges(sum(self.labels.values()), _RANGE_DIGESTS)
            cuts = [None, *(f"{(i << 32) // n:08x}" for i in range(1, n)), None]
            digests = self._parts(tasks.digests_of, list(itertools.pairwise(cuts)))
            self._digests = self._merged_ranges(digests)
        self._passes.begin("counting", len(self._tokens) + len(self._digests))
        for _ in self._cluster.completed([*self._tokens, *self._digests]):
            self._passes.done()
        return parts

    def _parts(
        self, count: Callable[[Stored], Stored], ranges: list[_Range]
    ) -> list[list["Future[Any]"]]:
        """Return the table of each group of pieces in parts, one for each range."""
        submit = self._cluster.submit
        parts = []
        for group in grouped(self._kept, _GROUP):
            table = submit(tasks.merge_tables, [submit(count, kept) for kept in group])
            parts.append([submit(tasks.part_of, table, low, high) for low, high in ranges])
        return parts

    def _merged_ranges(self, parts: list[list["Future[Any]"]]) -> list["Future[Any]"]:
        """Return the sum of all groups for each range, each on a worker of its own."""
        workers = self._cluster.workers
        found = []
        for i, of_range in enumerate(zip(*parts, strict=True)):
            at = workers[i % len(workers)]
            level = list(of_range)
            while True:
                groups = grouped(level, _GROUP)
                level = [self._cluster.submit(tasks.merge_tables, group, at=at) for group in groups]
                if len(level) == 1:
                    break
            found += level
        return found

    def _counted(self, empty: Metadata) -> Metadata:
        """Return the metadata of all counts, not calibrated yet."""
        classes, n_classes = empty.settings.classes, len(empty.settings.classes)
        histograms = [Counter[int]() for _ in classes]
        hosts: Counter[tuple[int, ...]] = Counter()
        asked = (self._cluster.submit(tasks.histograms, table, classes) for table in self._tokens)
        for of_range, of_hosts in self._cluster.results(ahead(asked, _IN_FLIGHT)):
            for own, more in zip(histograms, of_range, strict=True):
                own.update(more)
            hosts.update(of_hosts)
        traits = [[Counter[int]() for _ in range(n_classes)] for _ in TRAITS]
        for summary in self.summaries:
            for label, values in summary.traits.items():
                for of_trait, more in zip(traits, values, strict=True):
                    of_trait[classes.index(label)].update(more)
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

    def _score(self, parts: list[list["Future[Any]"]]) -> "_Inputs":
        """Have the features of all messages made, each left out; return those to fit to."""
        submit, metadata = self._cluster.submit, self._cluster.submit(same, self.metadata)
        self._evidence = []
        for i, group in enumerate(grouped(self._kept, _GROUP)):
            known = None
            if parts:
                pairs = zip(parts[i], self._tokens, strict=True)
                sums = [submit(tasks.sums_for, part, table) for part, table in pairs]
                known = submit(tasks.joined, sums, self.metadata.settings.classes)
            self._evidence += [submit(tasks.evidence_of, kept, known, metadata) for kept in group]
        self._passes.begin("scoring", len(self._kept))
        settings = self.metadata.settings
        features = [
            [FeatureFile(scale.size) for scale in settings.scales] for _ in settings.scored_classes
        ]
        labels = []
        end = sample_end(sum(self.labels.values()), self._fit_limit)
        made = (
            submit(tasks.inputs_of, kept, evidence, metadata, end, first=True)
            for kept, evidence in zip(self._kept, self._evidence, strict=True)
        )
        found: FitInputs
        for found in self._cluster.results(ahead(made, _IN_FLIGHT)):
            self._passes.done(len(found.labels))
            labels.append(found.labels)
            for own, new in zip(features, found.inputs, strict=False):
                for file, rows in zip(own, new, strict=True):
                    file.append(rows)
        return _Inputs(features, np.concatenate(labels).astype(np.int64))

    def in_two_classes(self) -> int | None:
        """Return how many messages are in two or more classes; None without a ledger."""
        if not self._ledger:
            return None
        asked = (self._cluster.submit(tasks.in_two_classes, table) for table in self._digests)
        return sum(map(int, self._cluster.results(ahead(asked, _IN_FLIGHT))))

    def choose_cut_offs(self, limit: float) -> None:
        """Store the lowest cut-offs that block at most this share of the ham; as `batch.py`."""
        settings, learned = self.metadata
        check_cut_offs(settings)
        positive = settings.positive_index or 0
        n = blocked_within(limit, sum(learned.messages) - learned.messages[positive]) + 1
        highest: list[float] = []
        for found in self._each("choosing the cut-off", tasks.highest_ham, n):
            highest = sorted([*highest, *found], reverse=True)[:n]
        self.store_cut_offs(cut_offs_above(highest[-1]))

    def store_cut_offs(self, cut_offs: CutOffs) -> None:
        """Give the model cut-offs of its own."""
        self.metadata = cut_offs.stored_in(self.metadata)

    def write(self, file: IO[bytes]) -> None:
        """Write the model's lines."""
        self._passes.begin("writing", len(self._tokens) + len(self._digests))
        tokens = self._lines(tasks.lines_of_tokens, self._tokens)
        write_blocks(file, self.metadata, tokens, self._lines(tasks.lines_of_ledger, self._digests))

    def _lines(
        self, function: Callable[..., bytes], tables: Sequence["Future[Any]"]
    ) -> Iterator[bytes]:
        classes = self.metadata.settings.classes
        made = (self._cluster.submit(function, table, classes) for table in tables)
        for block in self._cluster.results(ahead(made, 2)):
            self._passes.done()
            yield block

    def verdict_counts(self) -> tuple[CalledCounts, CalledCounts]:
        """Return how often messages of each class, left out, are called what: at 0.5, and cut."""
        called, verdicts = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
        for found in self._each("estimating", tasks.verdict_counts):
            called.update(found[0])
            verdicts.update(found[1])
        return called, verdicts

    def _each(self, what: str, function: Callable[..., T], *more: object) -> Iterator[T]:
        """Yield what a task makes of the evidence of each piece, in order."""
        submit, metadata = self._cluster.submit, self._cluster.submit(same, self.metadata)
        self._passes.begin(what, len(self._kept))
        made = (
            submit(function, kept, evidence, metadata, *more)
            for kept, evidence in zip(self._kept, self._evidence, strict=True)
        )
        for summary, found in zip(
            self.summaries, self._cluster.results(ahead(made, _IN_FLIGHT)), strict=True
        ):
            self._passes.done(summary.n)
            yield found


class _Inputs(NamedTuple):
    """What calibrations are fitted to."""

    features: list[list[FeatureFile]]  # per scored class and scale
    labels: Integers  # (n,), classes


def _in_order(counted: Counter[K]) -> dict[K, int]:
    """Return counts in the order of their keys, in which sums over them are made."""
    return dict(sorted(counted.items()))


def read_at_home(*args: Any) -> Any:
    """Run `read_piece`, and say in errors which worker they are of."""
    with at_home():
        return tasks.read_piece(*args)
