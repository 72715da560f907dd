"""The filter: the one chain from a message to its verdict.

The commands, the server, the evaluation and the library (`library.py`) all open a model and
classify messages here.
"""

import contextlib
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from nbspam.errors import ModelError, OptionError
from nbspam.names import TAUGHT_AS_HAM, absolute_name
from nbspam.scoring.classifier import Classifier, CountsOf
from nbspam.scoring.verdict import CutOffs, Verdict, verdict_on
from nbspam.store.lookup import Lookup
from nbspam.store.metadata import Metadata
from nbspam.tokens.tokenized import TokenizedMessage, Tokenizing, Wanted, tokenize_batch

if TYPE_CHECKING:  # one message is classified without what learning and explaining need
    from collections.abc import Mapping
    from pathlib import Path

    from nbspam.bayes.event_model import Row
    from nbspam.reading.cutting import SourcePiece
    from nbspam.reading.message import RawMessage
    from nbspam.reading.senders import SenderLists
    from nbspam.reading.source import ReadingNote, Skips
    from nbspam.scoring.base import Base
    from nbspam.scoring.batch_rules import BulkClassifier
    from nbspam.scoring.explanation import Explanation
    from nbspam.store.model_file import UnsavedModel
    from nbspam.tokens.tokenized import Batch
    from nbspam.workers import Executor

CutOffsOf = Callable[[Metadata], CutOffs]
# A table of the model's tokens pays from so many tokens of messages on.  Measured with a model of
# 556,000 tokens: the first 44,000 tokens of mail (100 mails) take .53 s to look up and score in the
# file, later ones 4.4 microseconds each, and .5 by the table; numpy takes .13 s to import, and the
# table .29 s to read.  To load numpy pays from .13 s / 3.9 microseconds = 33,000 tokens on.
BREAK_EVEN, _PER_TOKEN = 35_000, 0.03
_BYTES = 10  # of mail, per token of it


class TokenFilter(contextlib.AbstractContextManager["TokenFilter"]):
    """The filter of a model that is open, for messages that are tokenized."""

    def __init__(
        self,
        classifier: Classifier,
        cut_offs: CutOffs,
        source: "ModelSource | None" = None,
        senders: "SenderLists | None" = None,
    ) -> None:
        """Classify by a classifier, cut-offs and lists of senders.

        source: the model that it is of, if it may learn or be saved.
        """
        self.classifier, self.cut_offs, self.senders = classifier, cut_offs, senders
        self.source = source
        self._tokens: float = 0  # of messages classified, or known to come; endless: table tried
        self._bulk: BulkClassifier | None = None

    def __reduce__(self) -> "tuple[object, ...]":
        """Go to a process that is not forked, or into a file of `pickle`, with the model."""
        return filter_of, (self.model_source, self.cut_offs, self.senders)

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the model file, if it has one."""
        if self.source is not None:
            self.source.close()

    @property
    def metadata(self) -> Metadata:
        """The model's metadata, read through its base."""
        return self.classifier.metadata

    @property
    def personal_metadata(self) -> Metadata:
        """The model's own metadata, without its base."""
        return self.metadata if self.source is None else self.source.metadata

    @property
    def model_source(self) -> "ModelSource":
        """The model, to learn into or to copy; raises OptionError if there is none."""
        if self.source is None:
            raise OptionError("this filter has no model of its own; train or open one")
        return self.source

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes."""
        return self.metadata.settings.classes

    @property
    def wanted(self) -> Wanted:
        """What to compute of a message to classify beside its tokens, for `tokenize`."""
        return self.metadata.settings.wanted._replace(senders=self.senders)

    def reopen(self) -> None:
        """Read the model that has been changed."""
        source = self.model_source
        source.reopen()
        self.classifier, self._bulk, self._tokens = source.classifier(), None, 0

    def classify_tokens(self, message: TokenizedMessage) -> Verdict:
        """Return the verdict on a tokenized message."""
        score = self.classifier.score(message.tokens, message.numbers)
        return verdict_on(self.metadata, score, self.cut_offs, *message[:2], message.sender)

    def classify_batch(self, messages: Sequence[TokenizedMessage]) -> list[Verdict]:
        """Return the verdicts on tokenized messages."""
        if self._bulk is None:
            self.prepare(sum(len(message.tokens) for message in messages))
        if self._bulk is None:
            return list(map(self.classify_tokens, messages))
        return [
            verdict_on(self.metadata, score, self.cut_offs, *message[:2], message.sender)
            for message, score in zip(messages, self._bulk.scores(messages), strict=True)
        ]

    def prepare(self, n_tokens: float) -> None:
        """Prepare for messages with so many tokens, before processes are forked.

        Once as many have come or are known to come as pay for a table of the model's tokens, it is
        made; that is tried once.
        """
        self._tokens += n_tokens
        if self._tokens >= BREAK_EVEN + _PER_TOKEN * self.metadata.n_tokens and self.source:
            self._tokens = -math.inf
            self._bulk = self.source.bulk(self.classifier)

    def explain(self, message: TokenizedMessage) -> "Explanation":
        """Return each word's contribution to a message's score; all terms add up to it."""
        from nbspam.scoring.explanation import explain

        return explain(self.classifier, message.tokens, message.numbers)

    def learned(self, digests: Iterable[str]) -> "Mapping[str, Row]":
        """Return how often each class has learned a message, of those in the ledger.

        Empty for a filter without a model of its own.  Raises ModelError if it is damaged.
        """
        lookup = self.source and self.source.lookup
        return lookup.learned(digests) if lookup else {}

    def with_taught(
        self, messages: Sequence[TokenizedMessage], verdicts: Sequence[Verdict]
    ) -> list[Verdict]:
        """Return verdicts, with a reason for spam learned as often in other classes as in that one.

        messages: with digests.  Raises ModelError when the ledger is damaged.
        """
        settings, pairs = self.metadata.settings, list(zip(messages, verdicts, strict=True))
        rows = self.learned({m.digest for m, v in pairs if v.verdict == settings.positive})
        taught = set()
        for digest, row in rows.items():
            as_spam = 0 if settings.positive_index is None else row[settings.positive_index]
            if sum(row) - as_spam >= max(1, as_spam):
                taught.add(digest)
        return [v._replace(reason=TAUGHT_AS_HAM) if m.digest in taught else v for m, v in pairs]

    def without_ledger_entry(self) -> list[int]:
        """Return how many learned messages of each class are not in the ledger.

        Raises ModelError if the model is damaged.
        """
        if self.source is None:
            return list(self.metadata.learned.messages)
        return self.source.lookup.without_ledger_entry() if self.source.lookup else []


class ModelSource:
    """The model of a filter, a file or one not saved yet; with the base that it is read through."""

    def __init__(
        self, name: "str | Path | UnsavedModel", base: "str | Path | Base | None" = None
    ) -> None:
        """Open a model; raises ModelError.  base: as of `open_filter`."""
        self._name, self._is_file = name, isinstance(name, str | os.PathLike)
        self.lookup: Lookup | None = None
        with contextlib.ExitStack() as files:
            if isinstance(base, str | os.PathLike):
                from nbspam.scoring.base import open_base

                base = files.enter_context(open_base(base))
            self.base = base
            self.reopen()
            self._files = files.pop_all()

    def reopen(self) -> None:
        """Open the model as it now is; with a base there need not be one yet."""
        name, old = self._name, self.lookup
        if not isinstance(name, str | os.PathLike):
            self.lookup = name.lookup
        elif self.base is None or os.path.exists(name):  # noqa: PTH110 (no pathlib for a message)
            self.lookup = Lookup(name)
            if old is not None:
                old.close()

    def close(self) -> None:
        """Close the files that were opened here."""
        if self.lookup is not None and self._is_file:
            self.lookup.close()
        self._files.close()

    @property
    def place(self) -> "Path | UnsavedModel":
        """The model, for what changes or copies it."""
        if not isinstance(self._name, str | os.PathLike):
            return self._name
        from pathlib import Path  # 3 ms, which one message does without

        return Path(self._name)

    @property
    def metadata(self) -> Metadata:
        """What the model says of itself, without its base."""
        if self.lookup is not None:
            return self.lookup.metadata
        assert self.base is not None
        return self.base.first()

    def classifier(self) -> Classifier:
        """Return a classifier of the model; raises ModelError for a base that does not fit."""
        counts: CountsOf = self.lookup.counts if self.lookup else lambda _: {}
        if self.base is None:
            return Classifier(self.metadata, counts)
        self.base.check(str(self._name), self.metadata.settings)
        return self.base.classifier(self.metadata, counts)

    def bulk(self, classifier: Classifier) -> "BulkClassifier | None":
        """Return what classifies many messages by a table of the tokens; raises ModelError.

        None with a base, since a token's weight is of two tables then, and for the sum rule.
        """
        if self.base is not None or self.lookup is None or not classifier.rule.is_calibrated:
            return None
        from nbspam.store.index import CollisionError, TokenTable

        try:
            from nbspam.scoring.batch_rules import BulkClassifier

            return BulkClassifier(classifier, TokenTable(self.lookup))
        except (CollisionError, ModuleNotFoundError):  # a mail filter alone has no numpy
            return None

    def __reduce__(self) -> "tuple[object, ...]":
        """Go to another process: a file by its name, what is not saved with its bytes."""
        if self._is_file:
            return _same_source, self._identity()
        from nbspam.store import model_file

        with model_file.opened(self.place) as lookup:
            return _source_of_lines, (list(lookup.whole()),)

    def _identity(self) -> "tuple[str, str | None, object]":
        """Return the file, that of its base, and what tells them from later ones of these names."""
        files = self.lookup, None if self.base is None else self.base.lookup
        base = None if self.base is None else absolute_name(self.base.path)
        state = tuple(None if file is None else file.identity() for file in files)
        return absolute_name(str(self._name)), base, state


def _same_source(path: str, base: str | None, state: object) -> ModelSource:
    source = ModelSource(path, base)
    if source._identity() != (path, base, state):
        source.close()
        raise ModelError(
            f"{path}: the model was changed while messages were classified; run it again"
        )
    return source


def _source_of_lines(lines: list[bytes]) -> ModelSource:
    from nbspam.store.model_file import UnsavedModel

    return ModelSource(UnsavedModel(lambda file: file.writelines(lines)))


def filter_of(
    source: ModelSource, cut_offs: CutOffs, senders: "SenderLists | None" = None
) -> TokenFilter:
    """Return the filter of a model; raises ModelError for a base that does not fit."""
    return TokenFilter(source.classifier(), cut_offs, source, senders)


def open_filter(
    path: "str | Path",
    cut_offs: CutOffsOf = CutOffs.of_model,
    base: "str | Path | Base | None" = None,
    senders: "SenderLists | None" = None,
) -> TokenFilter:
    """Return the filter of a model file; raises ModelError, and OptionError for its cut-offs.

    senders: the user's lists of them.
    base: the model that it is read through (`scoring/base.py`), or its file.  An open one is closed
    by the caller.  Without a file at `path` the filter is the base's; learning makes the file.
    """
    source = ModelSource(path, base)
    try:
        classifier = source.classifier()
        return TokenFilter(classifier, cut_offs(classifier.metadata), source, senders)
    except BaseException:
        source.close()
        raise


class ClassifiedMessage(NamedTuple):
    """The verdict on a message of a source."""

    verdict: Verdict
    source: str
    size: int  # bytes or characters; 0 for a file, which its source names


def classified(
    raws: "Iterable[RawMessage | ReadingNote | SourcePiece]",
    skips: "Skips",
    where: "Executor",
    spam_filter: TokenFilter,
    pauses: Callable[[], bool] | None = None,
    size: int = 0,
    is_bare: bool = False,
    finds_taught: bool = False,
) -> Iterator[ClassifiedMessage]:
    """Yield the verdict on each message, in order; a message that cannot be read is skipped.

    Messages are classified in the process that tokenizes them.
    pauses: whether the next message would have to be waited for; earlier ones are not kept waiting.
    size: of all messages, in bytes; 0 if it is not known.
    is_bare: whether the evidence of the scores may be left out: three quarters of what is sent.
    finds_taught: whether spam that the ledger has as ham gets the reason TAUGHT_AS_HAM.
    Raises NbspamError when a process dies, ModelError when the ledger is damaged.
    """
    from nbspam.workers import in_batches, never_pauses, without_skipped

    if where.is_here:
        spam_filter.prepare(size / _BYTES)
    where.expect(size)
    batches = in_batches(iter(raws), pauses=pauses or never_pauses)
    for results in where.map(_classify_batch, (spam_filter, is_bare, finds_taught), batches):
        yield from without_skipped(results, skips)


def _classify_batch(
    how: tuple[TokenFilter, bool, bool], batch: "Batch"
) -> "list[ClassifiedMessage | ReadingNote]":
    spam_filter, is_bare, finds_taught = how
    items = list(tokenize_batch(batch, Tokenizing(finds_taught, spam_filter.wanted)))
    messages = [item for item in items if isinstance(item, TokenizedMessage)]
    verdicts = spam_filter.classify_batch(messages)
    if finds_taught:
        verdicts = spam_filter.with_taught(messages, verdicts)
    if is_bare:
        verdicts = [v._replace(score=v.score._replace(evidences=())) for v in verdicts]
    given = iter(verdicts)
    return [
        ClassifiedMessage(next(given), item.source, item.size)
        if isinstance(item, TokenizedMessage)
        else item
        for item in items
    ]
