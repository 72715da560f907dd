"""Training: from sources to a corpus in memory, its counts and features, and the model's lines.

    1  read      workers tokenize batches of messages, and this process merges them into one matrix
    2  count     the counts are the sums of the matrix's columns by class
    3  fit       features of each message as if not learned, in blocks; the calibrations are fitted
    4  write     the lines are sorted and written in blocks

The model has the same bytes for any number of workers: counts are integers, rows keep the order of
the messages, and features depend only on counts.
"""

import itertools
import os
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import cache, cached_property
from operator import add
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from nbspam.bayes.event_model import Row
from nbspam.bayes.matrix import EvidenceArrays, Integers
from nbspam.learning import batch
from nbspam.learning.batch import Apply, Fit
from nbspam.learning.corpus import Corpus
from nbspam.learning.settings import TrainingSettings
from nbspam.reading.source import Note, Skips
from nbspam.scoring.rules import EvidenceRule, scoring_rule, separating_tokens
from nbspam.scoring.verdict import Score
from nbspam.store import model_file
from nbspam.store.lookup import row_text, token_key
from nbspam.store.metadata import Metadata
from nbspam.tokens.tokenized import (
    TokenizedMessage,
    TokenizeOptions,
    TokenizerOutputs,
    tokenize_batch,
)
from nbspam.workers import Executor, ProgressPasses

if TYPE_CHECKING:
    from nbspam.tokens.tokenized import Batch

T = TypeVar("T")
# Arguments: the metadata, the labels of messages, and their scores as if not learned.
ScoresFunction = Callable[[Metadata, list[str], Iterator[Score]], T]
_MAX_EXAMPLES = 3  # how many messages that are in two or more classes are named
_LEDGER_LINES = 20_000  # lines per written block


class Part(NamedTuple):
    """The messages of a batch."""

    corpus: Corpus
    are_mails: list[bool]  # one for each message
    skipped: list[Note]
    size: int  # bytes, for the progress bar


def read_batch(options: tuple[TokenizerOutputs, bool], batch: "Batch") -> Part:
    """Tokenize a batch into a corpus of its own; raises NbspamError.

    options: the extras to store in addition to the tokens, and whether to sum up the bytes.
    """
    (outputs, is_sized), skipped, size = options, list[Note](), 0
    corpus, are_mails = Corpus(outputs), list[bool]()
    for message in tokenize_batch(batch, TokenizeOptions(True, outputs, skip_empty=True)):
        if isinstance(message, TokenizedMessage):
            corpus.add(message)
            are_mails.append(message.is_mail)
            if is_sized:
                size += message.size or _file_size(message.source)
        else:
            skipped.append(message)
    return Part(corpus, are_mails, skipped, size)


def _new_rows(part: Part, mails: set[tuple[str, bytes]]) -> list[int]:
    """Return the rows that are not copies of earlier `mails`; add the batch's mails to `mails`."""
    rows = []
    keys = zip(part.corpus.labels, part.corpus.digests, strict=True)
    for i, (key, is_mail) in enumerate(zip(keys, part.are_mails, strict=True)):
        if not (is_mail and key in mails):
            rows.append(i)
        if is_mail:
            mails.add(key)
    return rows


def _file_size(name: str) -> int:
    try:
        return os.stat(name).st_size  # noqa: PTH116 (called for many messages)
    except (OSError, ValueError):  # the message is not in a file
        return 0


class TrainingRun:
    """One training run, whose methods are called in order."""

    metadata: Metadata
    _fit: Fit
    _collects_tokens = True  # `corpus` has all tokens; on a cluster the workers have them

    def __init__(
        self, executor: Executor, settings: TrainingSettings, passes: ProgressPasses | None = None
    ) -> None:
        self._executor, self._settings, self._passes = (
            executor,
            settings,
            passes or ProgressPasses(),
        )
        self.corpus = Corpus(settings.outputs)

    def read(
        self,
        batches: "Iterable[Batch]",
        skips: Skips,
        outputs: TokenizerOutputs | None = None,
        keep_copies: bool = False,
    ) -> None:
        """Read all batches; raises NbspamError for the first that cannot be read.

        A mail is one lesson, however many sources have it: its copies with the same label are left
        out.  Equal rows of tables and equal texts that are not mails all count.
        outputs: the extras to store; by default those that the model counts.
        keep_copies: keep all copies, for a test that classifies each message.
        """
        if outputs is not None:
            self.corpus = Corpus(outputs)
        self._passes.start("reading", None)
        options = self.corpus.outputs, type(self._passes) is not ProgressPasses
        if self._collects_tokens and self._executor.workers == 1:
            self._read_here(options, batches, skips, keep_copies)
            return
        mails: set[tuple[str, bytes]] = set()  # labels and digests of the mails so far
        for part in self._parts(options, batches):
            for skipped in part.skipped:
                skips.record(skipped)
            rows = [*range(len(part.corpus))] if keep_copies else _new_rows(part, mails)
            skips.copies += len(part.corpus) - len(rows)
            self._keep(part.corpus, rows)
            self._passes.advance(len(part.corpus), part.size)

    def _read_here(
        self,
        options: tuple[TokenizerOutputs, bool],
        batches: "Iterable[Batch]",
        skips: Skips,
        keep_copies: bool,
    ) -> None:
        """Read batches in this process.

        A corpus for each batch would take 20 % of the CPU time.
        """
        (outputs, is_sized), mails = options, set[tuple[str | None, str]]()
        for messages in batches:
            n_messages = size = 0
            for message in tokenize_batch(
                messages, TokenizeOptions(True, outputs, skip_empty=True)
            ):
                if not isinstance(message, TokenizedMessage):
                    skips.record(message)
                    continue
                n_messages += 1
                if is_sized:
                    size += message.size or _file_size(message.source)
                key = message.label, message.digest
                if key in mails:
                    skips.copies += 1
                    continue
                if message.is_mail and not keep_copies:
                    mails.add(key)
                self.corpus.add(message)
            self._passes.advance(n_messages, size)

    def _keep(self, corpus: Corpus, rows: Sequence[int]) -> None:
        """Add some messages of a batch."""
        self.corpus.extend(corpus.select(rows))

    def _parts(
        self, options: tuple[TokenizerOutputs, bool], batches: "Iterable[Batch]"
    ) -> Iterator[Part]:
        return self._executor.map(read_batch, options, batches)

    @property
    def labels(self) -> Counter[str]:
        """The number of messages of each label, in the labels' alphabetical order."""
        return Counter(dict(sorted(Counter(self.corpus.labels).items())))

    def leave_out(self, labels: Collection[str]) -> None:
        """Drop the messages with these labels."""
        if labels:
            self.corpus = self.corpus.without(labels)

    def messages(self) -> Iterator[TokenizedMessage]:
        """Yield the messages in reading order."""
        return self.corpus.messages()

    def count(self) -> None:
        """Count all tokens and messages; raises TrainingError for fewer than two classes."""
        self._passes.start("counting", 0)
        corpus = self.corpus
        corpus.pack()  # frees the dictionary
        features = corpus.channels(), corpus.traits()
        self._fit = Fit(corpus, corpus.labels, self._settings, *features, keys=corpus.keys())
        corpus.pack()
        self.metadata = self._fit.metadata

    @property
    def vocabulary(self) -> Sequence[str]:
        """The tokens, in the order of the counts' columns."""
        return self.corpus.vocabulary

    def n_texts(self) -> dict[str, int]:
        """Return the number of different texts per class; copies count as one."""
        return self._fit.n_texts()

    def separating_tokens(self) -> list[tuple[str, Row]]:
        """Return the header words that separate the classes by themselves, with their counts."""
        counts = self._fit.counts
        places = separating_tokens(counts, self._fit.channels, self.metadata.learned.messages)
        vocabulary = self.vocabulary if len(places) else ()
        return [(vocabulary[j], tuple(counts[:, j].tolist())) for j in places]

    def fit(self, keep_tokens: bool = True) -> None:
        """Score all messages, each left out, and fit the calibrations to the scores.

        keep_tokens: False frees the messages' tokens as soon as a calibrated rule has scored them,
        and `messages` cannot be called any more.
        """
        self._passes.start("scoring", 0)
        with ExitStack() as stack:
            apply: Apply = map
            if self._executor.is_local and self._executor.workers > 1:
                from concurrent.futures import ThreadPoolExecutor

                apply = stack.enter_context(ThreadPoolExecutor(self._executor.workers)).map
            self._calibrate(apply, keep_tokens)
        calibrations = self._fit.metadata.learned.calibrations
        learned = self.metadata.learned._replace(calibrations=calibrations)
        self.metadata = self.metadata._replace(learned=learned)

    def _calibrate(self, apply: Apply, keep_tokens: bool) -> None:
        if scoring_rule(self.metadata).is_calibrated:
            blocks = list(self._fit.left_out(apply))
            if not keep_tokens:
                self.corpus.drop_tokens()
            self._fit.calibrate_to(blocks, apply)

    @cached_property
    def _ledger(self) -> tuple[Any, Any, Integers]:
        """The different digests, sorted, (n, 2); their counts per class; each message's index."""
        halves = self.corpus.digest_halves()
        order = np.lexsort((halves[:, 1], halves[:, 0]))
        halves, is_new = halves[order], np.ones(len(order), bool)
        is_new[1:] = (halves[1:] != halves[:-1]).any(axis=1)
        entries: Any = np.empty(len(order), np.int32)
        entries[order] = np.cumsum(is_new) - 1
        counts = np.zeros((int(is_new.sum()), len(self.metadata.settings.classes)), np.int32)
        np.add.at(counts, (entries, self._fit.labels), 1)
        return halves[is_new], counts, entries

    def messages_in_two_classes(self) -> tuple[int, list[dict[str, str]]]:
        """Count the messages in two or more classes, and return the sources of the first few.

        The sources of a message are a dictionary, class -> first source.
        """
        _, counts, entries = self._ledger
        is_shared = (counts > 0).sum(axis=1) > 1
        rows = np.flatnonzero(is_shared[entries]).tolist()
        sources: dict[int, dict[str, str]] = {}
        for i in rows:
            entry = int(entries[i])
            if entry in sources or len(sources) < _MAX_EXAMPLES:
                by_label = sources.setdefault(entry, {})
                by_label.setdefault(self.corpus.labels[i], self.corpus.sources[i])
        return int(is_shared.sum()), list(sources.values())

    def choose_cut_offs(self, limit: float) -> None:
        """Store the lowest cut-offs that block at most this share of the ham."""
        odds = [z for some in self.map_blocks("choosing the cut-off", batch.ham_odds) for z in some]
        self.metadata = batch.cut_offs_within(limit, self.metadata, odds).applied_to(self.metadata)

    def write(self, file: IO[bytes], ledger: bool = True) -> None:
        """Write the model's lines."""
        self._passes.start("writing", 0)
        learned = self._ledger_blocks() if ledger else ()
        model_file.write_blocks(file, self.metadata, self._token_blocks(), learned)

    def _token_blocks(self) -> Iterator[bytes]:
        """Yield the tokens' sorted lines, in one block for each first character."""
        if not self.metadata.settings.counts.has_tokens:
            return
        # many tokens share a row of counts
        vocabulary, text_of_row = self.vocabulary, cache(row_text)
        by_first: defaultdict[str, array[int]] = defaultdict(lambda: array("i"))
        prefixes = {first: token_key(first)[:2] for first in {t[:1] for t in vocabulary}}
        for j, token in enumerate(vocabulary):
            by_first[prefixes[token[:1]]].append(j)
        for prefix in sorted(by_first):
            columns = by_first.pop(prefix)
            keys = map(token_key, map(vocabulary.__getitem__, columns))
            rows = map(text_of_row, zip(*self._fit.counts[:, columns].tolist(), strict=True))
            yield ",\n".join(sorted(map(add, keys, rows))).encode("utf-8", "surrogatepass")

    def _ledger_blocks(self) -> Iterator[bytes]:
        """Yield the sorted lines of the ledger."""
        halves, counts, _ = self._ledger
        for start in range(0, len(halves), _LEDGER_LINES):
            place = slice(start, start + _LEDGER_LINES)
            text = halves[place].tobytes().hex()
            digests = (text[i : i + 32] for i in range(0, len(text), 32))
            rows = zip(digests, map(tuple, counts[place].tolist()), strict=True)
            yield ",\n".join(model_file.sorted_lines(rows, model_file.digest_key)).encode()

    def map_blocks(self, title: str, function: ScoresFunction[T]) -> Iterator[T]:
        """Yield function(metadata, labels, left-out scores) for each block of messages, in order.

        title: the name of the pass, for the progress bar.
        """
        blocks = self._fit.blocks
        self._passes.start(title, len(blocks))
        if not blocks:  # the sum rule
            yield function(self.metadata, self.corpus.labels, self._fit.left_out_scores())
            return
        ends = np.cumsum([0, *(len(block.single[0].text) for block in blocks)]).tolist()
        labels = (self.corpus.labels[a:b] for a, b in itertools.pairwise(ends))
        items = zip(labels, (block.scored() for block in blocks), strict=True)
        for value in self._executor.map(_apply_to_block, (function, self.metadata), items):
            self._passes.advance()
            yield value

    def sources_at(self, places: Sequence[int]) -> list[tuple[str, str]]:
        """Return source and label of the messages at these places."""
        return [(self.corpus.sources[i], self.corpus.labels[i]) for i in places]


def _apply_to_block(
    options: tuple[ScoresFunction[T], Metadata], block: tuple[list[str], tuple[EvidenceArrays, ...]]
) -> T:
    (function, metadata), (labels, rows) = options, block
    return function(metadata, labels, EvidenceRule(metadata).scores_of_rows(rows))
