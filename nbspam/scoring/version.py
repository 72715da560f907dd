"""One state of a filter: an open model that classifies tokenized messages.

A version never changes, so a call uses the same version to its end, whatever is learned meanwhile.
`nbspam/filter.py` opens a new version when the model changes.
"""

import contextlib
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from nbspam.errors import ModelError
from nbspam.names import TAUGHT_AS_HAM, absolute_name
from nbspam.scoring.classifier import CACHED_TOKENS, Classifier, CountLookup
from nbspam.scoring.verdict import CutOffs, Score, Verdict, make_verdict
from nbspam.store.lookup import Lookup, open_model_file
from nbspam.store.metadata import Metadata
from nbspam.tokens.kinds import TEXT, channels_of
from nbspam.tokens.tokenized import (
    TokenizedMessage,
    TokenizeOptions,
    TokenizerOutputs,
    tokenize_batch,
)

if TYPE_CHECKING:  # only for annotations: classifying one message imports nothing of this
    from collections.abc import Mapping
    from pathlib import Path

    from nbspam.bayes.event_model import Row
    from nbspam.reading.message import RawMessage
    from nbspam.reading.senders import SenderLists
    from nbspam.reading.source import Note, Skips
    from nbspam.scoring.base import Base
    from nbspam.scoring.classifier import BulkClassifier
    from nbspam.scoring.explanation import Explanation
    from nbspam.store.model_file import UnsavedModel
    from nbspam.tokens.tokenized import Batch
    from nbspam.workers import Executor

    AnyModel = str | Path | UnsavedModel

CutOffsOf = Callable[[Metadata], CutOffs]
# From this many tokens of messages on, a table of the model's tokens saves time.  Measured with a
# model of 556,000 tokens: the first 44,000 tokens of mail (100 mails) take 0.53 s to look up and
# score in the file, later ones 4.4 microseconds each, and 0.5 by the table; numpy takes 0.13 s to
# import, and the table 0.29 s to read.  Loading numpy pays from 0.13 s / 3.9 microseconds = 33,000
# tokens.
BREAK_EVEN, _PER_TOKEN = 35_000, 0.03
_BYTES_PER_TOKEN = 10  # in mail
# Share of a taught mail's words that its class has learned.  A list's footer adds a few more words.
_MIN_LEARNED = 0.9


class FilterVersion:
    """A filter with one state of its model, for tokenized messages; threads may share it.

    The model file is closed when nothing uses the version any more.
    """

    def __init__(
        self,
        classifier: Classifier,
        cut_offs: CutOffs,
        senders: "SenderLists | None" = None,
        model: "AnyModel | None" = None,
        lookup: Lookup | None = None,
        base: "Base | None" = None,
    ) -> None:
        """senders: the user's lists.

        model, lookup, base: the model, its open file, and the base whose counts are added.
        """
        self.classifier, self.cut_offs, self.senders = classifier, cut_offs, senders
        self.model, self.lookup, self.base = model, lookup, base
        self.metadata = classifier.metadata  # model and base combined
        self._n_tokens: float = 0  # classified or expected; infinite once a table was tried
        self._bulk: BulkClassifier | None = None

    def __reduce__(self) -> "tuple[object, ...]":
        """Pickle the files' names, and the identity of their bytes, for other processes."""
        model, base = (
            with_absolute_name(self.model),
            None if self.base is None else with_absolute_name(self.base.path),
        )
        return _same_version, (model, base, self.cut_offs, self.senders, self.identity())

    def identity(self) -> tuple[object, ...]:
        """Identify the bytes of the model and its base."""
        files = self.lookup, self.base and self.base.lookup
        return tuple(file and file.identity() for file in files)

    @property
    def personal_metadata(self) -> Metadata:
        """The model's own metadata, without its base."""
        if self.lookup is not None:
            return self.lookup.metadata
        return self.metadata if self.base is None else self.base.empty_personal_model()

    @property
    def outputs(self) -> TokenizerOutputs:
        """The outputs that `tokenize` must compute in addition to tokens."""
        return self.metadata.settings.outputs._replace(senders=self.senders)

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes."""
        return self.metadata.settings.classes

    def as_base(self) -> "Base":
        """Return the model as a base for others; raises ModelError if it cannot be one."""
        from nbspam.scoring.base import Base

        return Base(str(self.model), self.metadata, self.classifier.counts, self.lookup)

    def classify(self, message: TokenizedMessage) -> Verdict:
        """Classify a tokenized message."""
        score = self.classifier.score(message.tokens, message.extras)
        return self._verdict(message, score)

    def classify_batch(self, messages: Sequence[TokenizedMessage]) -> list[Verdict]:
        """Classify tokenized messages."""
        if self._bulk is None:
            self.prepare(sum(len(message.tokens) for message in messages))
        if self._bulk is None:
            return list(map(self.classify, messages))
        return [
            self._verdict(message, score)
            for message, score in zip(messages, self._bulk.scores(messages), strict=True)
        ]

    def _verdict(self, message: TokenizedMessage, score: Score) -> Verdict:
        known = message.source, message.label, message.sender, message.tokens
        return make_verdict(self.metadata, score, self.cut_offs, *known)

    def prepare(self, n_tokens: float) -> None:
        """Prepare for messages with n_tokens tokens, before processes are forked.

        Makes a table of the model's tokens, once, as soon as that pays.
        """
        self._n_tokens += n_tokens
        if self._n_tokens < BREAK_EVEN + _PER_TOKEN * self.metadata.n_tokens:
            return
        self._n_tokens = math.inf
        # With a base a token's weight comes from two tables.  The sum rule has no array form.
        if self.base is not None or self.lookup is None or not self.classifier.rule.is_calibrated:
            return
        from nbspam.store.index import CollisionError, TokenTable

        with contextlib.suppress(CollisionError, ModuleNotFoundError):  # numpy may be missing
            from nbspam.scoring.classifier import BulkClassifier

            self._bulk = BulkClassifier(self.classifier, TokenTable(self.lookup))

    def explain(self, message: TokenizedMessage) -> "Explanation":
        """Compute each word's contribution to a message's log-odds; all terms add up to them."""
        from nbspam.scoring.explanation import explain

        return explain(self.classifier, message.tokens, message.extras)

    def ledger_rows(self, digests: Iterable[str]) -> "Mapping[str, Row]":
        """Look up messages in the ledger: how often each class has learned them.

        Raises ModelError if the model is damaged.
        """
        return self.lookup.ledger_rows(digests) if self.lookup else {}

    def flag_taught(
        self, messages: Sequence[TokenizedMessage], verdicts: Sequence[Verdict]
    ) -> list[Verdict]:
        """Add a reason to verdicts of spam on messages that other classes have learned.

        The other classes must have learned the message at least as often as the spam class.
        messages: must have digests.  Raises ModelError when the ledger is damaged.
        """
        settings, pairs = self.metadata.settings, list(zip(messages, verdicts, strict=True))
        positive, spam = settings.positive, settings.positive_index or 0
        rows = self.ledger_rows({m.digest for m, v in pairs if v.verdict == positive})
        with_reasons = []
        for message, verdict in pairs:
            row = rows.get(message.digest, ()) if verdict.verdict == positive else ()
            others = [k for k, n in enumerate(row) if n and k != spam]
            is_taught = bool(others) and sum(row[k] for k in others) >= row[spam]
            if is_taught and self._may_have_learned(message, others):
                verdict = verdict._replace(reason=TAUGHT_AS_HAM)
            with_reasons.append(verdict)
        return with_reasons

    def _may_have_learned(self, message: TokenizedMessage, classes: Sequence[int]) -> bool:
        """Return whether the counts of some classes have nearly all words of a message's text.

        The ledger can be deceived: a sender can copy the Message-ID, Date and Subject of a mail
        that was sent to a public list.
        """
        assert self.lookup is not None
        channels = channels_of(message.tokens)
        words = [t for t, channel in zip(message.tokens, channels, strict=True) if channel == TEXT]
        words = words or message.tokens
        rows = self.lookup.counts(words).values()
        n_learned = sum(any(row[k] for k in classes) for row in rows)
        return n_learned >= _MIN_LEARNED * len(words)


class ModelOptions(NamedTuple):
    """How a filter opens its model, whenever the model has changed."""

    cut_offs: CutOffsOf = CutOffs.from_model
    senders: "SenderLists | None" = None
    cached_tokens: int = CACHED_TOKENS  # tokens whose weights are kept between messages
    in_memory: int | None = None  # bytes; a smaller file is kept in memory; None: prepare nothing
    follow_links: bool = True


DEFAULT_MODEL_OPTIONS = ModelOptions()


def open_version(
    model: "AnyModel", options: ModelOptions = DEFAULT_MODEL_OPTIONS, base: "Base | None" = None
) -> FilterVersion:
    """Open a model; raises ModelError, and OptionError for its cut-offs.

    base: the model whose counts are added; then the file `model` need not exist.
    """
    lookup = None
    if not isinstance(model, str | os.PathLike):
        lookup = model.lookup
    elif base is None or os.path.exists(model):  # noqa: PTH110 (no pathlib for one message)
        lookup = Lookup(model, open_model_file(model, options.follow_links))
        if options.in_memory is not None:
            lookup.prepare(options.in_memory)
    counts: CountLookup = lookup.counts if lookup else lambda _: {}
    if base is None:
        assert lookup is not None
        classifier = Classifier(lookup.metadata, counts, options.cached_tokens)
    else:
        metadata = lookup.metadata if lookup else base.empty_personal_model()
        base.check(str(model), metadata.settings)
        classifier = base.classifier(metadata, counts, options.cached_tokens)
    cut_offs = options.cut_offs(classifier.metadata)
    return FilterVersion(classifier, cut_offs, options.senders, model, lookup, base)


def with_absolute_name(model: "AnyModel | os.PathLike[str] | None") -> "str | UnsavedModel | None":
    """Make a model's name usable in other processes."""
    return absolute_name(model) if isinstance(model, str | os.PathLike) else model


def _same_version(
    model: "AnyModel",
    base: "AnyModel | None",
    cut_offs: CutOffs,
    senders: "SenderLists | None",
    identity: tuple[object, ...],
) -> FilterVersion:
    below = None if base is None else open_version(base).as_base()
    version = open_version(model, ModelOptions(lambda _: cut_offs, senders), below)
    if version.identity() != identity:
        raise ModelError(
            f"{model}: the model was changed while messages were classified; run it again"
        )
    return version


class ClassifiedMessage(NamedTuple):
    """The verdict on a message of a source."""

    verdict: Verdict
    source: str
    size: int  # bytes or characters; 0 for a file, which its source names


def classify_messages(
    raws: "Iterable[RawMessage]",
    skips: "Skips",
    executor: "Executor",
    version: FilterVersion,
    input_blocks: Callable[[], bool] | None = None,
    size: int = 0,
    drop_evidence: bool = False,
    find_taught: bool = False,
) -> Iterator[ClassifiedMessage]:
    """Classify messages, in order; a message that cannot be read is skipped.

    Messages are classified in the process that tokenizes them, all with the same version.
    input_blocks: whether reading the next message would block; earlier messages do not wait then.
    size: bytes of all messages; 0 if unknown.
    drop_evidence: leave out the scores' evidence, three quarters of the data sent between
    processes.
    find_taught: give spam that the ledger has as ham the reason TAUGHT_AS_HAM.
    Raises NbspamError when a process dies, ModelError when the ledger is damaged.
    """
    from nbspam.workers import batch_messages, never_blocks, report_skipped

    if executor.is_local:
        version.prepare(size / _BYTES_PER_TOKEN)
    executor.announce_size(size)
    batches = batch_messages(raws, input_blocks=input_blocks or never_blocks)
    for results in executor.map(_classify_batch, (version, drop_evidence, find_taught), batches):
        yield from report_skipped(results, skips)


def _classify_batch(
    task: tuple[FilterVersion, bool, bool], batch: "Batch"
) -> "list[ClassifiedMessage | Note]":
    version, drop_evidence, find_taught = task
    items = list(tokenize_batch(batch, TokenizeOptions(find_taught, version.outputs)))
    messages = [item for item in items if isinstance(item, TokenizedMessage)]
    verdicts = version.classify_batch(messages)
    if find_taught:
        verdicts = version.flag_taught(messages, verdicts)
    if drop_evidence:
        verdicts = [v._replace(score=v.score._replace(evidences=())) for v in verdicts]
    remaining = iter(verdicts)
    return [
        ClassifiedMessage(next(remaining), item.source, item.size)
        if isinstance(item, TokenizedMessage)
        else item
        for item in items
    ]
