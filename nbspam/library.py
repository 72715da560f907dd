"""What a program calls: `nbspam.train`, `nbspam.open`, and the `Filter` that they return."""

import os
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, overload

from nbspam.bayes.event_model import BERNOULLI
from nbspam.bayes.trait_model import SMOOTHING, Variances
from nbspam.errors import OptionError, Remedy, SourceError, TrainingError, counted, one_line
from nbspam.filter import ModelSource, TokenFilter, classified, filter_of, open_filter
from nbspam.names import HAM, SPAM, normal_label, rare_classes
from nbspam.reading.message import parse, parse_text
from nbspam.scoring.verdict import CutOffs, Verdict
from nbspam.store.metadata import EVIDENCE, Metadata, with_columns
from nbspam.tokens.tokenized import TokenizedMessage, tokenize

if TYPE_CHECKING:  # one message is classified without what learning and explaining need
    import pandas as pd

    from nbspam.bayes.matrix import Floats
    from nbspam.learning.update import Change
    from nbspam.scoring.explanation import Explanation

    Messages = Iterable[str | bytes] | pd.DataFrame

AnyMessage = str | bytes  # plain text; a mail or a text
PathOrName = str | os.PathLike[str]
Pairs = Iterable[tuple[str, AnyMessage]]


class Filter:
    """A trained filter, of `train` or `open`.

    Close one of a file, or use it as a context manager.  It can be pickled.  The examples are of

    >>> pairs = [("spam", "win a prize"), ("ham", "lunch at noon")] * 9
    >>> spam_filter = nbspam.train(pairs)
    >>> spam_filter.classify("win a prize").verdict
    'spam'
    """

    def __init__(self, inner: TokenFilter) -> None:
        self._inner = inner

    def __repr__(self) -> str:
        learned = zip(self.classes, self.metadata.learned.messages, strict=True)
        messages = ", ".join(f"{round(n):,} {name}" for name, n in learned)
        return f"<nbspam.Filter that learned {messages}; {self.metadata.n_tokens:,} tokens>"

    def __enter__(self) -> "Filter":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the model file, if it has one; the filter then classifies nothing more.

        >>> spam_filter.save("model.json")
        >>> opened = nbspam.open("model.json")
        >>> opened.close()
        """
        self._inner.close()

    @property
    def metadata(self) -> Metadata:
        """What the model says of itself: settings, and numbers of messages and tokens.

        `settings.classes` and `learned.messages` have the classes and their numbers of messages.

        >>> spam_filter.metadata.learned.messages
        (9, 9)
        """
        return self._inner.metadata

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes, in the order of the columns of `probabilities`.

        >>> spam_filter.classes
        ('ham', 'spam')
        """
        return self._inner.classes

    def classify(self, message: AnyMessage) -> Verdict:
        """Return the verdict on a message: plain text, or a mail as bytes.

        Probabilities are from 0 to 1, log-odds in nats.  Raises SourceError for another type.

        >>> spam_filter.classify("win a prize").verdict
        'spam'
        >>> spam_filter.classify(b"Subject: noon\\n\\nlunch at noon").probability < 0.5
        True
        """
        return self._inner.classify_tokens(self._tokenized(message))

    @overload
    def classify_many(
        self,
        messages: "pd.DataFrame",
        *,
        text_column: str | None = None,
        strict: bool = False,
        jobs: int = 1,
    ) -> "pd.DataFrame": ...

    @overload
    def classify_many(self, messages: Iterable[AnyMessage], *, jobs: int = 1) -> list[Verdict]: ...

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
        Returns n verdicts, or a DataFrame of n rows with `verdict`, `probability`, `log_odds` and
        `reason`; if it has one of these, with `verdict_2` … and a warning.
        Raises SourceError for an item that is no message, OptionError, and TableError.

        >>> [verdict.verdict for verdict in spam_filter.classify_many(["win a prize", "lunch"])]
        ['spam', 'ham']
        """
        from nbspam.display.tables import added_names, numbering
        from nbspam.reading.columns import VERDICT_COLUMNS
        from nbspam.reading.tables import is_data_frame

        verdicts = list(self._verdicts(messages, text_column, jobs, strict))
        if not is_data_frame(messages):
            return verdicts
        columns = [[getattr(v, name) for v in verdicts] for name in VERDICT_COLUMNS]
        added = added_names(messages.columns)
        if sentence := numbering("the data frame", messages.columns, added):
            warn(sentence)
        return messages.assign(**dict(zip(added, columns, strict=True)))

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

        >>> spam_filter.probabilities(["win a prize", "lunch at noon"]).shape
        (2, 2)
        """
        import numpy as np

        verdicts = self._verdicts(messages, text_column, jobs, strict)
        rows = [verdict.score.probabilities for verdict in verdicts]
        return np.array(rows, float).reshape(-1, len(self.classes))

    def explain(self, message: AnyMessage) -> "Explanation":
        """Return each word's contribution to a message's log-odds, in nats; all add up to it.

        Raises SourceError for another type than text and bytes.

        >>> explained = spam_filter.explain("win a prize")
        >>> "prize" in [word.token for word in explained.words]
        True
        """
        return self._inner.explain(self._tokenized(message))

    def learn(self, messages: Pairs) -> "Change":
        """Learn labelled messages, each once; one learned in another class before is moved.

        messages: (label, text or bytes) pairs.
        A filter that was opened from a file changes the file, for other processes too.
        Returns how many messages were new, moved and known.
        Raises ModelError: the model has no such class, is damaged, or cannot be written; and
        SourceError for what is no such pair.

        >>> spam_filter.learn([("ham", "see you at nine")]).learned
        1
        """
        from nbspam.learning import settings, update

        pending = update.PendingMessages(self.metadata.settings.wanted)
        pending.add(self._tokenized_pairs(messages))
        source = self._inner.model_source
        change = update.learn(source.place, pending, settings.TrainingSettings(base=source.base))
        self._inner.reopen()
        return change

    def forget(self, messages: Iterable[tuple[str, AnyMessage] | AnyMessage]) -> "Change":
        """Take messages out again, with or without their labels; those never learned are ignored.

        The counts become what they were; the calibration, too, of what was learned lately.
        Returns how many were forgotten, and how many never learned.  Raises as `learn` does.

        >>> spam_filter.forget(["see you at nine", "never learned"])[2:4]
        (1, 1)
        """
        from nbspam.learning import update

        known = list(self._tokenized_pairs(messages, needs_labels=False))
        source = self._inner.model_source
        change = update.forget(source.place, known, base=source.base)
        self._inner.reopen()
        return change

    def save(self, path: PathOrName) -> None:
        """Write the model to a file atomically, mode 0600 if it is new; raises ModelError.

        >>> spam_filter.save("model.json")
        """
        from pathlib import Path

        from nbspam.store import model_file

        source = self._inner.model_source
        with model_file.opened(source.place) as lookup:
            if isinstance(source.place, Path):
                lookup.model()  # raises if it is damaged
            model_file.put_model(Path(path), lambda file: file.writelines(lookup.whole()))

    def _verdicts(
        self, messages: "Messages", text_column: str | None, jobs: int, strict: bool
    ) -> Iterator[Verdict]:
        from nbspam.reading.source import ReadingOptions, Skips, TableOptions
        from nbspam.reading.tables import given_messages
        from nbspam.workers import executor

        table = TableOptions(text_column, learned=self.metadata.learned.columns)
        empty = Skips(strict)
        raws = given_messages(messages, ReadingOptions(table, tell=warn_guess), empty)
        for message in classified(raws, Skips(strict=True), executor(jobs), self._inner):
            yield message.verdict
        if empty.count:
            sources = "; ".join(empty.named[:3]) + "; …" * (empty.count > 3)
            warn(f"the verdicts on {empty.count:,} rows are those on an empty message ({sources})")

    def _tokenized_pairs(
        self, items: Iterable[tuple[str, AnyMessage] | AnyMessage], needs_labels: bool = True
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
        if not isinstance(message, AnyMessage):
            raise SourceError(
                f"the message is of the type {type(message).__name__}; give it as text or bytes"
            )
        parsed = parse_text(message) if isinstance(message, str) else parse(message)
        if digest and parsed.problem:
            raise SourceError(f"the message {parsed.problem}")
        return tokenize(parsed, label=label, digest=digest, wanted=self._inner.wanted)


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

    >>> nbspam.train([("spam", "win a prize"), ("ham", "lunch at noon")]).classes
    ('ham', 'spam')
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
            where = [s for record in run.records for s in record.summary.first.get(name, ())]
            only = f"{counted(run.labels[name], 'message')} ({', '.join(where)})"
            what = f"the class {name!r} has only {only}, beside two large ones; correct the label"
            if strict:
                raise TrainingError(what)
            warn(what)
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
    return Filter(filter_of(model, CutOffs.of_model(run.metadata)))


def open(  # noqa: A001 (as `nbspam.open`)
    path: PathOrName,
    *,
    spam_cutoff: float | None = None,
    ham_cutoff: float | None = None,
    ham_cost: float | None = None,
    base: PathOrName | None = None,
    allow: Collection[str] = (),
    block: Collection[str] = (),
    auth_host: str | Collection[str] = (),
    trust_from: bool = False,
) -> Filter:
    """Return the filter of a model file; close it, or use it as a context manager.

    spam_cutoff, ham_cutoff: above the one a message is spam, up to the other ham; by default the
        model's own.  ham_cost: instead, how many times worse a false positive is.
    base: the file of a shared model beneath; then there need not be one at `path` yet.
    allow, block: senders of mail that is never spam, and of mail that is: `boss@example.org`,
        `@example.org`, `*@*.example.org`, or `file:NAME` of a file of such lines.
    auth_host: the server, or servers, whose Authentication-Results prove who sent a mail.
    trust_from: whether to believe From without that.
    Raises ModelError when the file cannot be used, OptionError for impossible cut-offs or senders.

    >>> with nbspam.open("model.json", spam_cutoff=0.99) as opened:
    ...     print(opened.classify("win a prize").verdict)
    spam
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

    below = None if base is None else os.fsdecode(base)
    return Filter(open_filter(os.fsdecode(path), cut_offs, below, senders))
