"""The filter: the one chain from a message to its verdict.

The commands, the server, the evaluation and programs that `import nbspam` all read, tokenize and
classify messages here.  A Filter also explains its verdicts, and learns.
"""

import contextlib
import math
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from nbspam.bayes.event_model import BERNOULLI
from nbspam.bayes.trait_model import SMOOTHING, Variances
from nbspam.errors import (
    ModelError,
    OptionError,
    Remedy,
    SourceError,
    TrainingError,
    counted,
    one_line,
)
from nbspam.names import HAM, SPAM, absolute_name, normal_label, rare_classes
from nbspam.reading.message import Message, parse, parse_text
from nbspam.scoring.classifier import Classifier, CountsOf
from nbspam.scoring.verdict import CutOffs, Verdict, verdict_on
from nbspam.store.lookup import Lookup
from nbspam.store.metadata import EVIDENCE, Metadata, with_columns
from nbspam.tokens.tokenized import (
    TokenizedMessage,
    Tokenizing,
    Wanted,
    tokenize,
    tokenize_batch,
)

if TYPE_CHECKING:  # one message is classified without what learning and explaining need
    from collections.abc import Mapping
    from pathlib import Path

    import pandas as pd

    from nbspam.bayes.event_model import Row
    from nbspam.bayes.matrix import Floats
    from nbspam.learning.update import Change
    from nbspam.reading.cutting import SourcePiece
    from nbspam.reading.message import RawMessage
    from nbspam.reading.senders import SenderLists
    from nbspam.reading.source import Skipped, Skips
    from nbspam.scoring.base import Base
    from nbspam.scoring.batch_rules import BulkClassifier
    from nbspam.scoring.explanation import Explanation
    from nbspam.store.model_file import UnsavedModel
    from nbspam.tokens.tokenized import Batch
    from nbspam.workers import Executor

    Messages = Iterable[str | bytes] | pd.DataFrame

AnyMessage = str | bytes | Message | TokenizedMessage  # str: plain text; bytes: a mail or a text
PathOrName = str | os.PathLike[str]
Pairs = Iterable[tuple[str, str | bytes]]
LabelledMessage = tuple[str, AnyMessage]
CutOffsOf = Callable[[Metadata], CutOffs]
# A table of the model's tokens pays from so many tokens of messages on.  Measured with a model of
# 556,000 tokens: the first 44,000 tokens of mail (100 mails) take .53 s to look up and score in the
# file, later ones 4.4 microseconds each, and .5 by the table; numpy takes .13 s to import, and the
# table .29 s to read.  To load numpy pays from .13 s / 3.9 microseconds = 33,000 tokens on.
BREAK_EVEN, _PER_TOKEN = 35_000, 0.03
_BYTES = 10  # of mail, per token of it


class Filter:
    """A trained filter.  One opened from a file is to be closed, or used as a context manager."""

    def __init__(
        self,
        classifier: Classifier,
        cut_offs: CutOffs,
        source: "ModelSource | None" = None,
        senders: "SenderLists | None" = None,
    ) -> None:
        """Classify by a classifier, cut-offs and lists of senders.

        Without a source it cannot learn or be saved.
        """
        self.classifier, self.cut_offs, self.senders = classifier, cut_offs, senders
        self._source = source
        self._tokens: float = 0  # of messages classified, or known to come; endless: table tried
        self._bulk: BulkClassifier | None = None

    def __repr__(self) -> str:
        learned = zip(self.classes, self.metadata.learned.messages, strict=True)
        messages = ", ".join(f"{round(n):,} {name}" for name, n in learned)
        return f"<nbspam.Filter that learned {messages}; {self.metadata.n_tokens:,} tokens>"

    def __reduce__(self) -> "tuple[object, ...]":
        """Go to a process that is not forked, or into a file of `pickle`, with the model."""
        return _of_source, (self._model_source(), self.cut_offs, self.senders)

    def __enter__(self) -> "Filter":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the model file, if it has one."""
        if self._source is not None:
            self._source.close()

    @property
    def metadata(self) -> Metadata:
        """The model's metadata, read through its base."""
        return self.classifier.metadata

    @property
    def personal_metadata(self) -> Metadata:
        """The model's own metadata, without its base."""
        return self.metadata if self._source is None else self._source.metadata

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes."""
        return self.metadata.settings.classes

    @property
    def wanted(self) -> Wanted:
        """What to compute of a message to classify beside its tokens, for `tokenize`."""
        return self.metadata.settings.wanted._replace(senders=self.senders)

    def classify(self, message: AnyMessage) -> Verdict:
        """Return the verdict on a message."""
        return self.classify_tokens(self._tokenized(message))

    def classify_many(
        self,
        messages: "Messages",
        *,
        text_column: str | None = None,
        strict: bool = False,
        jobs: int = 1,
    ) -> "list[Verdict] | pd.DataFrame":
        """Return the verdicts on many messages; of a DataFrame, as columns beside its own.

        messages: texts and mails, or a DataFrame with a column of them.
        text_column: by default the column that the model learned from, else one found by content.
        strict: raise SourceError for a row without a text; else a warning is given, and the row has
        the verdict on an empty message.  jobs: processes.
        Raises SourceError for an item that is no message, OptionError, and TableError.
        """
        from nbspam.reading.tables import is_data_frame

        verdicts = list(self._verdicts(messages, text_column, jobs, strict))
        if not is_data_frame(messages):
            return verdicts
        names = "verdict", "probability", "log_odds"
        return messages.assign(**{name: [getattr(v, name) for v in verdicts] for name in names})

    def probabilities(
        self,
        messages: "Messages",
        *,
        text_column: str | None = None,
        strict: bool = False,
        jobs: int = 1,
    ) -> "Floats":
        """Return the probability of each class for many messages, (n_messages, n_classes).

        The classes are in the order of `classes`; the rest is as of `classify_many`.
        """
        import numpy as np

        verdicts = self._verdicts(messages, text_column, jobs, strict)
        rows = [verdict.score.probabilities for verdict in verdicts]
        return np.array(rows, float).reshape(-1, len(self.classes))

    def _verdicts(
        self, messages: "Messages", text_column: str | None, jobs: int, strict: bool
    ) -> Iterator[Verdict]:
        from nbspam.reading.source import ReadingOptions, Skips, TableOptions
        from nbspam.reading.tables import given_messages
        from nbspam.workers import executor

        table, empty = (
            TableOptions(text_column, learned=self.metadata.learned.columns),
            Skips(strict),
        )
        raws = given_messages(messages, ReadingOptions(table, tell=warn_guess), empty)
        for message in classified(raws, Skips(strict=True), executor(jobs), self):
            yield message.verdict
        if empty.count:
            sources = "; ".join(empty.named[:3]) + "; …" * (empty.count > 3)
            warn(f"the verdicts on {empty.count:,} rows are those on an empty message ({sources})")

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
        if self._tokens >= BREAK_EVEN + _PER_TOKEN * self.metadata.n_tokens and self._source:
            self._tokens = -math.inf
            self._bulk = self._source.bulk(self.classifier)

    def classify_tokens(self, message: TokenizedMessage) -> Verdict:
        """Return the verdict on a tokenized message."""
        score = self.classifier.score(message.tokens, message.numbers)
        return verdict_on(self.metadata, score, self.cut_offs, *message[:2], message.sender)

    def explain(self, message: AnyMessage) -> "Explanation":
        """Return each word's contribution to a message's score; all terms add up to it."""
        from nbspam.scoring.explanation import explain

        tokenized = self._tokenized(message)
        return explain(self.classifier, tokenized.tokens, tokenized.numbers)

    def learn(self, messages: Iterable[LabelledMessage]) -> "Change":
        """Learn labelled messages, each once; one learned in another class before is moved.

        A filter that was opened from a file changes the file, for other processes too.
        Raises ModelError: the model has no such class, is damaged, or cannot be written.
        """
        from nbspam.learning import settings, update

        pending = update.PendingMessages(self.metadata.settings.wanted)
        pending.add(self._tokenized_pairs(messages))
        source = self._model_source()
        chosen = settings.TrainingSettings(base=source.base)
        return self._changed(update.learn(source.place, pending, chosen))

    def forget(self, messages: Iterable[LabelledMessage | AnyMessage]) -> "Change":
        """Take messages out again, with or without their labels; those never learned are ignored.

        The counts become what they were; the calibration, too, of what was learned lately.
        Raises ModelError as `learn` does.
        """
        from nbspam.learning import update

        known = list(self._tokenized_pairs(messages, needs_labels=False))
        source = self._model_source()
        return self._changed(update.forget(source.place, known, base=source.base))

    def _changed(self, change: "Change") -> "Change":
        source = self._model_source()
        source.reopen()
        self.classifier, self._bulk, self._tokens = source.classifier(), None, 0
        return change

    def learned(self, digests: Iterable[str]) -> "Mapping[str, Row]":
        """Return how often each class has learned a message, of those in the ledger.

        Empty for a filter without a model of its own.  Raises ModelError if it is damaged.
        """
        lookup = self._source and self._source.lookup
        return lookup.learned(digests) if lookup else {}

    def without_ledger_entry(self) -> list[int]:
        """Return how many learned messages of each class are not in the ledger.

        Raises ModelError if the model is damaged.
        """
        if self._source is None:
            return list(self.metadata.learned.messages)
        return self._source.lookup.without_ledger_entry() if self._source.lookup else []

    def save(self, path: "str | Path") -> None:
        """Write the model to a file atomically, mode 0600 if it is new; raises ModelError."""
        from pathlib import Path

        from nbspam.store import model_file

        source = self._model_source()
        with model_file.opened(source.place) as lookup:
            if isinstance(source.place, Path):
                lookup.model()  # raises if it is damaged
            model_file.put_model(Path(path), lambda file: file.writelines(lookup.whole()))

    def _model_source(self) -> "ModelSource":
        if self._source is None:
            raise OptionError("this filter has no model of its own; train or open one")
        return self._source

    def _tokenized_pairs(
        self, items: Iterable[LabelledMessage | AnyMessage], needs_labels: bool = True
    ) -> Iterator[TokenizedMessage]:
        # Iterating a text yields characters, and a data frame the names of its columns.
        is_list = isinstance(items, Iterable) and not isinstance(items, str | bytes)
        if not is_list or hasattr(items, "columns"):
            raise SourceError(
                f"the messages are of the type {type(items).__name__}; give a list of them"
            )
        for item in items:
            if isinstance(item, tuple | list) and len(item) == 2 and isinstance(item[0], str):
                yield self._tokenized(item[1], normal_label(item[0]), digest=True)
            elif needs_labels:
                raise SourceError(
                    f"one of the messages is of the type {type(item).__name__}, without a label;"
                    " give each as (label, message)"
                )
            else:
                yield self._tokenized(item, digest=True)

    def _tokenized(
        self, message: AnyMessage, label: str | None = None, digest: bool = False
    ) -> TokenizedMessage:
        if isinstance(message, TokenizedMessage):
            return message
        if not isinstance(message, AnyMessage):
            raise SourceError(
                f"the message is of the type {type(message).__name__}; give it as text or bytes"
            )
        if isinstance(message, str):
            message = parse_text(message)
        elif isinstance(message, bytes):
            message = parse(message)
            if digest and message.problem:
                raise SourceError(f"the message {message.problem}")
        return tokenize(message, label=label, digest=digest, wanted=self.wanted)


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


def _of_source(
    source: ModelSource, cut_offs: CutOffs, senders: "SenderLists | None" = None
) -> Filter:
    return Filter(source.classifier(), cut_offs, source, senders)


def open_filter(
    path: "str | Path",
    cut_offs: CutOffsOf = CutOffs.of_model,
    base: "str | Path | Base | None" = None,
    senders: "SenderLists | None" = None,
) -> Filter:
    """Return the filter of a model file; raises ModelError, and OptionError for its cut-offs.

    senders: the user's lists of them.
    base: the model that it is read through (`scoring/base.py`), or its file.  An open one is closed
    by the caller.  Without a file at `path` the filter is the base's; learning makes the file.
    """
    source = ModelSource(path, base)
    try:
        classifier = source.classifier()
        return Filter(classifier, cut_offs(classifier.metadata), source, senders)
    except BaseException:
        source.close()
        raise


class ClassifiedMessage(NamedTuple):
    """The verdict on a message of a source."""

    verdict: Verdict
    source: str
    size: int  # bytes or characters; 0 for a file, which its source names


def classified(
    raws: "Iterable[RawMessage | Skipped | SourcePiece]",
    skips: "Skips",
    where: "Executor",
    spam_filter: Filter,
    pauses: Callable[[], bool] | None = None,
    size: int = 0,
    is_bare: bool = False,
) -> Iterator[ClassifiedMessage]:
    """Yield the verdict on each message, in order; a message that cannot be read is skipped.

    Messages are classified in the process that tokenizes them.
    pauses: whether the next message would have to be waited for; earlier ones are not kept waiting.
    size: of all messages, in bytes; 0 if it is not known.
    is_bare: whether the evidence of the scores may be left out: three quarters of what is sent.
    Raises NbspamError when a process dies.
    """
    from nbspam.workers import in_batches, never_pauses, without_skipped

    if where.is_here:
        spam_filter.prepare(size / _BYTES)
    batches = in_batches(iter(raws), pauses=pauses or never_pauses)
    for results in where.map(_classify_batch, (spam_filter, is_bare), batches):
        yield from without_skipped(results, skips)


def _classify_batch(
    how: tuple[Filter, bool], batch: "Batch"
) -> "list[ClassifiedMessage | Skipped]":
    spam_filter, is_bare = how
    items = list(tokenize_batch(batch, Tokenizing(wanted=spam_filter.wanted)))
    messages = [item for item in items if isinstance(item, TokenizedMessage)]
    verdicts = spam_filter.classify_batch(messages)
    if is_bare:
        verdicts = [v._replace(score=v.score._replace(evidences=())) for v in verdicts]
    given = iter(verdicts)
    return [
        ClassifiedMessage(next(given), item.source, item.size)
        if isinstance(item, TokenizedMessage)
        else item
        for item in items
    ]


# What a program calls


def warn(problem: object) -> None:
    """Issue a Python warning at the line that called nbspam."""
    import sys
    import warnings  # a message in a mail system is classified without

    level, frame = 1, sys._getframe()
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("nbspam."):
        level, frame = level + 1, frame.f_back
    warnings.warn(one_line(str(problem)), stacklevel=level)


def warn_guess(guess: SourceError) -> None:
    """Warn of a guess about how a source is read, but not about its labels, which may be right."""
    if guess.remedy is not Remedy.NAME_ANOTHER_LABEL:
        warn(guess)


def train(
    source: "PathOrName | Pairs | pd.DataFrame | None" = None,
    *,
    spam: Iterable[PathOrName] = (),
    ham: Iterable[PathOrName] = (),
    text_column: str | None = None,
    label_column: str | None = None,
    encoding: str | None = None,
    strict: bool = False,
    alpha: float | None = None,
    prior: float | None = None,
    scoring: str = EVIDENCE,
    event_model: str = BERNOULLI,
    traits: str | None = None,
    variance_smoothing: float = SMOOTHING,
    variance_prior: float = 0.0,
    shared_variance: bool = False,
    spam_label: str | bool | int | None = None,
    jobs: int = 1,
) -> Filter:
    """Return a filter trained on labelled messages; it has no file until it is saved.

    source: the name of a table, of a folder with a sub-folder per class, or of a TREC index file;
        or (label, text or bytes) pairs; or a DataFrame.  Text is plain text, bytes are a mail.  A
        label is a name, a boolean or a whole number.  Warnings report messages without a label or
        text, and columns that were found by content.
    spam, ham: names of sources without labels: mboxes, Maildirs, folders, single messages.
    text_column, label_column, encoding: of a table or DataFrame; found by content if left out.
    strict: raise SourceError for the first message that cannot be read, instead of skipping it,
        and TrainingError for a class of a few messages beside two large ones.
    alpha: smoothing, in messages.  prior: P(spam), if not the share learned.
    scoring: "evidence", combined and calibrated, or "sum", the textbook's posterior.
    event_model: how tokens are counted: "bernoulli", "multinomial", "complement" or "none".
    traits: "none", "gaussian" or "kernel"; by default kernel, and none with the sum.
    variance_smoothing, variance_prior, shared_variance: as `bayes/trait_model.py` has them.
    spam_label: the class that counts as spam, if none is called so.  jobs: processes.
    Raises NbspamError: of a source, a table, training, an option, or ModelError for lack of room.
    """
    from nbspam.learning.settings import TrainingSettings
    from nbspam.learning.training import TrainingRun
    from nbspam.reading.rows import label_text
    from nbspam.reading.source import ReadingOptions, Skips, TableOptions
    from nbspam.reading.sources import from_program
    from nbspam.store.model_file import UnsavedModel
    from nbspam.workers import PIECE, executor, in_batches

    positive = None if spam_label is None else label_text(spam_label) or str(spam_label)
    variances = Variances(variance_smoothing, variance_prior, shared_variance)
    settings = TrainingSettings(alpha, prior, scoring, positive, event_model, traits, variances)
    settings.check()
    columns: list[tuple[str, str]] = []
    table = TableOptions(text_column, label_column, encoding)
    guesses: list[SourceError] = []

    def hear(guess: SourceError) -> None:
        guesses.append(guess)
        warn_guess(guess)

    options = ReadingOptions(table, tell=hear, on_columns=columns.append)
    skips = Skips(strict)
    raws = from_program(source, [(SPAM, spam), (HAM, ham)], options, skips)
    with TrainingRun(executor(jobs), settings) as run:
        run.read(in_batches(raws, *PIECE), skips)
        if skips.count:
            warn(skips.sentence(run.labels.total()))
        for sentence in skips.merged:
            warn(sentence)
        for name in rare_classes(run.labels):
            where = [
                source for record in run.records for source in record.summary.first.get(name, ())
            ]
            only = f"{counted(run.labels[name], 'message')} ({', '.join(where)})"
            problem = (
                f"the class {name!r} has only {only}, beside two large ones; correct the label"
            )
            if strict:
                raise TrainingError(problem)
            warn(problem)
        try:
            run.count()
        except TrainingError:
            for guess in guesses:  # the column of labels may be the wrong one
                if guess.remedy is Remedy.NAME_ANOTHER_LABEL:
                    warn(guess)
            raise
        run.metadata = with_columns(run.metadata, columns)
        run.fit()
        model = ModelSource(UnsavedModel(run.write))
    return _of_source(model, CutOffs.of_model(run.metadata))


def open(  # noqa: A001 (as `nbspam.open`)
    path: PathOrName,
    *,
    spam_cutoff: float | None = None,
    ham_cutoff: float | None = None,
    ham_cost: float | None = None,
    allow: Collection[str] = (),
    block: Collection[str] = (),
    auth_host: str | Collection[str] = (),
    trust_from: bool = False,
) -> Filter:
    """Return the filter of a model file; close it, or use it as a context manager.

    spam_cutoff, ham_cutoff: above the one a message is spam, up to the other ham; by default the
        model's own.  ham_cost: instead, how many times worse a false positive is.
    allow, block: senders of mail that is never spam, and of mail that is: `boss@example.org`,
        `@example.org`, `*@*.example.org`, or `file:NAME` of a file of such lines.
    auth_host: the server, or servers, whose Authentication-Results prove who sent a mail.
    trust_from: whether to believe From without that.
    Raises ModelError when the file cannot be used, OptionError for impossible cut-offs or senders.
    """
    senders = None
    if allow or block:
        from nbspam.reading.senders import sender_lists

        hosts = (auth_host,) if isinstance(auth_host, str) else auth_host
        senders = sender_lists(allow, block, hosts, trust_from)

    def cut_offs(metadata: Metadata) -> CutOffs:
        chosen = (spam_cutoff, ham_cutoff, ham_cost)
        if len(metadata.settings.classes) > 2 and chosen != (None, None, None):
            why = "a model of several classes has no cut-offs: its verdict is the most probable"
            raise OptionError(f"{why} class; leave them out")
        return CutOffs.of_model(metadata).changed(*chosen)

    return open_filter(os.fsdecode(path), cut_offs, senders=senders)
