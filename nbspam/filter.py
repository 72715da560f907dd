"""The filter: one object for commands, server, evaluation and programs.

A `Filter` belongs to a model file, or to a model that is not saved yet.  Before each call, the
filter checks whether the file has changed, and opens a changed file as a new version
(`scoring/version.py`).
"""

import os
from _thread import RLock  # `threading` takes a millisecond to import
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, overload

from nbspam.errors import ModelError, NbspamError, OptionError, Remedy, SourceError, one_line
from nbspam.names import normal_label, real_name
from nbspam.reading.message import parse, parse_text
from nbspam.scoring.verdict import CutOffs, Verdict
from nbspam.scoring.version import (
    DEFAULT_MODEL_OPTIONS,
    CutOffsOf,
    FilterVersion,
    ModelOptions,
    classify_messages,
    open_version,
    with_absolute_name,
)
from nbspam.store.metadata import Metadata
from nbspam.tokens.tokenized import TokenizedMessage, TokenizerOutputs, tokenize

if TYPE_CHECKING:  # only for annotations: classifying one message imports nothing of this
    from pathlib import Path

    import pandas as pd

    from nbspam.bayes.matrix import Floats
    from nbspam.learning.update import Change
    from nbspam.reading.senders import SenderLists
    from nbspam.scoring.explanation import Explanation
    from nbspam.scoring.version import AnyModel
    from nbspam.store.model_file import UnsavedModel
    from nbspam.store.writing import LockWait

    Messages = Iterable[str | bytes] | pd.DataFrame

AnyMessage = str | bytes  # str: plain text; bytes: a mail or plain text
PathOrName = str | os.PathLike[str]
Pairs = Iterable[tuple[str, AnyMessage]]


class Filter:
    """A trained filter, made by `train` or `open`.

    Threads may share a filter, also while a thread learns.  Before each call, a filter of a file
    opens the file anew if it has changed, so it knows what other processes have learned.  If the
    new file cannot be used, the filter logs a warning and keeps the model that it has open.
    Close a filter of a file, or use it as a context manager.  A filter can be pickled.

    >>> pairs = [("spam", "win a prize"), ("ham", "lunch at noon")] * 9
    >>> spam_filter = nbspam.train(pairs)
    >>> spam_filter.classify("win a prize").verdict
    'spam'
    """

    def __init__(
        self,
        model: "AnyModel",
        options: ModelOptions = DEFAULT_MODEL_OPTIONS,
        base: "Filter | None" = None,
    ) -> None:
        """Open a model; raises ModelError, and OptionError for its cut-offs.

        base: the filter of a shared model whose counts are added to the counts of `model`
        (`scoring/base.py`).  With a base, the file of `model` need not exist: until learning
        creates the file, this filter classifies like the base.
        """
        self._model, self._options, self._base = model, options, base
        self.problem = ""  # why the changed model cannot be used; empty if it can
        self._lock = RLock()
        # The open version, and the stamp of its files; both None if the filter is closed.
        self._state: tuple[FilterVersion | None, object] = None, None
        self.reopen()

    def __reduce__(self) -> "tuple[object, ...]":
        return Filter, (with_absolute_name(self._model), self._options, self._base)

    def __repr__(self) -> str:
        learned = zip(self.classes, self.metadata.learned.messages, strict=True)
        messages = ", ".join(f"{round(n):,} {name}" for name, n in learned)
        return f"<nbspam.Filter that learned {messages}; {self.metadata.n_tokens:,} tokens>"

    def __enter__(self) -> "Filter":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the model; the filter then classifies nothing more, but running calls go on.

        >>> spam_filter.save("model.json")
        >>> opened = nbspam.open("model.json")
        >>> opened.close()
        """
        with self._lock:
            self._state = None, None

    def reopen(self) -> None:
        """Open the model as it is now, whether or not it has changed; raises ModelError.

        Every call opens a changed file anew without `reopen`.

        >>> opened = nbspam.open("model.json")
        >>> opened.reopen()
        >>> opened.close()
        """
        with self._lock:
            stamp = self._stamp()  # before opening, so that a change while opening is found later
            base = None if self._base is None else self._base.version.as_base()
            version = open_version(self._model, self._options, base)
            self._state, self.problem = (version, stamp), ""

    @property
    def version(self) -> FilterVersion:
        """The filter with the current model, which later changes of the file do not affect.

        Raises ModelError for a closed filter.

        >>> spam_filter.version.metadata.learned.messages
        (9, 9)
        """
        version, stamp = self._state
        if version is not None and stamp != self._stamp():
            with self._lock:
                try:
                    version, stamp = self._state
                    if version is not None and stamp != (now := self._stamp()):
                        self._state = version, now
                        self.reopen()
                except NbspamError as error:  # reported once
                    import logging  # 8 ms

                    self.problem = str(error)
                    logging.getLogger("nbspam").warning(
                        "%s; the model that was open is still used", error
                    )
                version = self._state[0]
        if version is None:
            raise ModelError(f"{self._model}: the model was closed; open it again")
        return version

    def _stamp(self) -> tuple[object, ...]:
        """Return a value that changes with the model or its base.

        An inode's number is not used again while its file is open.
        """
        model, below = self._model, self._base and self._base.version
        if not isinstance(model, str | os.PathLike):
            return model.lookup, below
        try:
            s = os.stat(model)  # noqa: PTH116 (no pathlib for one message)
        except (OSError, ValueError):
            return (below,)
        # st_ctime_ns also changes with the mode: after a chmod an unreadable file is tried again.
        return s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns, below

    @property
    def metadata(self) -> Metadata:
        """The model's settings, and its numbers of messages and tokens.

        `settings.classes` and `learned.messages` have the classes and their numbers of messages.

        >>> spam_filter.metadata.learned.messages
        (9, 9)
        """
        return self.version.metadata

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes, in the order of the columns of `probabilities`.

        >>> spam_filter.classes
        ('ham', 'spam')
        """
        return self.metadata.settings.classes

    def classify(self, message: AnyMessage) -> Verdict:
        """Return the verdict on a message: plain text, or a mail as bytes.

        Probabilities are from 0 to 1, log-odds in nats.  Raises SourceError if the message has
        another type.

        >>> spam_filter.classify("win a prize").verdict
        'spam'
        >>> spam_filter.classify(b"Subject: noon\\n\\nlunch at noon").probability < 0.5
        True
        """
        version = self.version
        return version.classify(tokenize_message(message, version.outputs))

    @overload
    def classify_many(self, messages: Iterable[AnyMessage], *, jobs: int = 1) -> list[Verdict]: ...

    @overload
    def classify_many(
        self,
        messages: "pd.DataFrame",
        *,
        text_column: str | int | None = None,
        strict: bool = False,
        jobs: int = 1,
    ) -> "pd.DataFrame": ...

    def classify_many(
        self,
        messages: "Messages",
        *,
        text_column: str | int | None = None,
        strict: bool = False,
        jobs: int = 1,
    ) -> "list[Verdict] | pd.DataFrame":
        """Return the verdicts on many messages; for a DataFrame, as additional columns.

        messages: texts and mails, or a DataFrame with a column of them.
        text_column: by default the column that the model learned from, else a column found by
        content.
        strict: raise SourceError for a row without a text; else a warning is given, and the row has
        the verdict on an empty message.  jobs: processes.
        Returns n verdicts, or the DataFrame with the added columns `verdict`, `probability`,
        `log_odds` and `reason`.  If the DataFrame already has a column with one of these names, the
        added columns are called `verdict_2` …, and a warning is given.
        Raises SourceError for an item that is not a message, OptionError, and TableError.

        >>> [verdict.verdict for verdict in spam_filter.classify_many(["win a prize", "lunch"])]
        ['spam', 'ham']
        """
        from nbspam.display.tables import added_names, renamed_columns_note
        from nbspam.reading.columns import VERDICT_COLUMNS
        from nbspam.reading.program import is_data_frame
        from nbspam.reading.whole_tables import is_partitioned

        if is_data_frame(messages) and is_partitioned(messages):
            raise OptionError("the data frame is of Dask; give classify_many to its map_partitions")
        verdicts = list(self._verdicts(messages, text_column, jobs, strict))
        if not is_data_frame(messages):
            return verdicts
        columns = [[getattr(v, name) for v in verdicts] for name in VERDICT_COLUMNS]
        added = added_names(messages.columns)
        if sentence := renamed_columns_note("the data frame", messages.columns, added):
            warn(sentence)
        return messages.assign(**dict(zip(added, columns, strict=True)))

    def probabilities(
        self,
        messages: "Messages",
        *,
        text_column: str | int | None = None,
        strict: bool = False,
        jobs: int = 1,
    ) -> "Floats":
        """Return the probability of each class for many messages, (n_messages, n_classes).

        The columns are in the order of `classes`; parameters and errors are as in `classify_many`.

        >>> spam_filter.probabilities(["win a prize", "lunch at noon"]).shape
        (2, 2)
        """
        import numpy as np

        verdicts = self._verdicts(messages, text_column, jobs, strict)
        rows = [verdict.score.probabilities for verdict in verdicts]
        return np.array(rows, float).reshape(-1, len(self.classes))

    def explain(self, message: AnyMessage) -> "Explanation":
        """Return each word's contribution to a message's log-odds, in nats.

        Contributions and constants add up to the log-odds.

        Raises SourceError for another type than text and bytes.

        >>> explained = spam_filter.explain("win a prize")
        >>> "prize" in [word.token for word in explained.words]
        True
        """
        version = self.version
        return version.explain(tokenize_message(message, version.outputs))

    def words(self, n: int = 20, *, fragments: bool = False) -> "pd.DataFrame":
        """Return the strongest words for each class, as the command `explain` lists them.

        n: how many of each class.  fragments: whether character trigrams are among them.
        Returns a DataFrame with `class`, `word`, `weight` in nats (with two classes, a plus is for
        spam), and the number of messages of each class that contain the word (`in ham` …).
        Raises ModelError if nothing is learned, or the model is damaged.

        >>> spam_filter.words(1)["class"].tolist()
        ['ham', 'spam']
        """
        import pandas as pd

        from nbspam.display.lines import strongest_rows
        from nbspam.scoring.explanation import strongest_words

        if (lookup := self.version.lookup) is None:
            raise ModelError(f"{self._model}: has learned nothing yet; teach it first")
        model = lookup.model()
        heads = [f"in {name}" for name in model.metadata.settings.classes]
        strongest = strongest_words(model, n, fragments=fragments)
        rows = [
            (name, *word[:2], *word.counts)
            for name, words in strongest_rows(strongest, model.metadata).items()
            for word in words
        ]
        return pd.DataFrame(rows, columns=["class", "word", "weight", *heads])

    def learn(
        self, messages: "Pairs | Iterable[TokenizedMessage]", wait: "LockWait | None" = None
    ) -> "Change":
        """Learn labelled messages, each once; a message learned in another class before is moved.

        messages: (label, text or bytes) pairs, or messages that are tokenized already.
        wait: how long to wait for the file's lock; by default 5 minutes.
        An empty message is not learned, and counts as known.
        A filter that was opened from a file changes the file, for other processes too.
        Returns how many messages were new, moved and known.
        Raises ModelError: the model is damaged, or cannot be written; SourceError for an item that
        is not such a pair; and OptionError for a label that is not a class of the model.

        >>> spam_filter.learn([("ham", "see you at nine")]).learned
        1
        """
        from nbspam.learning import settings, update
        from nbspam.store.writing import DEFAULT_WAIT

        version = self.version
        pending = update.PendingMessages(version.metadata.settings.outputs)
        empty: list[object] = []
        pending.add(_tokenize_items(messages, version, empty))
        options = settings.TrainingSettings(base=version.base)
        change = update.learn(self._model_target(), pending, options, wait=wait or DEFAULT_WAIT)
        return change._replace(unchanged=change.unchanged + len(empty))

    def forget(
        self,
        messages: Iterable[tuple[str, AnyMessage] | AnyMessage | TokenizedMessage],
        wait: "LockWait | None" = None,
    ) -> "Change":
        """Unlearn messages, with or without their labels; messages never learned are ignored.

        The counts become as if the messages had not been learned; the calibration does so only
        for messages that were learned lately.
        Returns how many were forgotten, and how many never learned.  Raises as `learn` does.

        >>> spam_filter.forget(["see you at nine", "never learned"])[2:4]
        (1, 1)
        """
        from nbspam.learning import update
        from nbspam.store.writing import DEFAULT_WAIT

        version, wait = self.version, wait or DEFAULT_WAIT
        known = list(_tokenize_items(messages, version))
        return update.forget(self._model_target(), known, wait=wait, base=version.base)

    def save(self, path: PathOrName) -> None:
        """Write the model to a file atomically, mode 0600 if it is new; raises ModelError.

        Saving does not connect a trained filter with the file: later lessons stay in memory until
        the filter is saved again, which replaces the file.  To learn together with other processes,
        open the file.

        >>> spam_filter.save("model.json")
        """
        from pathlib import Path

        from nbspam.store import model_file

        target = self._model_target()
        is_own_file = isinstance(target, Path) and real_name(target) == real_name(path)
        if is_own_file and os.path.exists(path):  # noqa: PTH110 (a name may be bytes)
            return  # the file has everything that was learned
        lookup = self.version.lookup
        if lookup is None:  # there is only the base
            raise ModelError(f"{target}: has learned nothing that could be saved; teach it first")
        if isinstance(target, Path):
            lookup.model()  # raises ModelError if the file is damaged
        model_file.replace_model(Path(path), lambda file: file.writelines(lookup.iter_bytes()))

    def _model_target(self) -> "Path | UnsavedModel":
        """Return the model's path, or the unsaved model, for code that changes it."""
        if not isinstance(self._model, str | os.PathLike):
            return self._model
        from pathlib import Path  # takes 3 ms; classifying one message does not need it

        return Path(self._model)

    def _verdicts(
        self, messages: "Messages", text_column: str | int | None, jobs: int, strict: bool
    ) -> Iterator[Verdict]:
        from nbspam.reading.program import iter_api_messages
        from nbspam.reading.source import ReadingOptions, Skips, TableOptions, column_name
        from nbspam.workers import make_executor

        version = self.version
        table = TableOptions(column_name(text_column), learned=version.metadata.learned.columns)
        empty = Skips(strict)
        raws = iter_api_messages(messages, ReadingOptions(table, on_note=warn_guess), empty)
        for message in classify_messages(raws, Skips(strict=True), make_executor(jobs), version):
            yield message.verdict
        if empty.count:
            sources = "; ".join(empty.named[:3]) + "; …" * (empty.count > 3)
            warn(f"the verdicts on {empty.count:,} rows are those on an empty message ({sources})")


def _tokenize_items(
    items: Iterable[tuple[str, AnyMessage] | AnyMessage | TokenizedMessage],
    version: FilterVersion,
    empty: list[object] | None = None,
) -> Iterator[TokenizedMessage]:
    """Yield the messages of a list.

    empty: receives the messages without content, if messages are to be learned; then each item
    needs a label.  None if messages are to be forgotten.
    """
    # Iterating a text yields characters, and a data frame the names of its columns.
    is_list = isinstance(items, Iterable) and not isinstance(items, str | bytes)
    if not is_list or hasattr(items, "columns"):
        raise SourceError(
            f"the messages are of the type {type(items).__name__}; give a list of them"
        )
    outputs = version.outputs
    for item in items:
        if isinstance(item, TokenizedMessage):
            yield item
        elif isinstance(item, tuple | list) and len(item) == 2 and isinstance(item[0], str):
            if (label := normal_label(item[0])) not in version.classes:
                raise OptionError(
                    f"{item[0]!r} is not a class of the model; give"
                    f" {' or '.join(map(repr, version.classes))}, or train a new model"
                )
            if empty is not None and isinstance(item[1], AnyMessage) and not item[1].strip():
                empty.append(item)
            else:
                yield tokenize_message(item[1], outputs, label, digest=True)
        elif empty is not None:
            raise SourceError(
                f"one of the messages is of the type {type(item).__name__}, without a label;"
                " give each as (label, message)"
            )
        else:
            yield tokenize_message(item, outputs, digest=True)


def tokenize_message(
    message: AnyMessage, outputs: TokenizerOutputs, label: str | None = None, digest: bool = False
) -> TokenizedMessage:
    """Tokenize a text or a mail; raises SourceError for another type."""
    if not isinstance(message, AnyMessage):
        raise SourceError(
            f"the message is of the type {type(message).__name__}; give it as text or bytes"
        )
    parsed = parse_text(message) if isinstance(message, str) else parse(message)
    if digest and parsed.problem:
        raise SourceError(f"the message {parsed.problem}")
    return tokenize(parsed, label=label, digest=digest, outputs=outputs)


def warn(problem: object) -> None:
    """Issue a Python warning at the line that called nbspam."""
    import sys
    import warnings  # classifying one message in a mail system does not need it

    level, frame = 1, sys._getframe()
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("nbspam."):
        level, frame = level + 1, frame.f_back
    warnings.warn(one_line(str(problem)), stacklevel=level)


def warn_guess(guess: SourceError) -> None:
    """Warn of a guess about how a source is read, but not about its labels, which may be right."""
    if guess.remedy is not Remedy.NAME_ANOTHER_LABEL:
        warn(guess)


def open_filter(
    model: "AnyModel",
    cut_offs: CutOffsOf = CutOffs.from_model,
    base: "str | Path | None" = None,
    senders: "SenderLists | None" = None,
) -> Filter:
    """Return the filter of a model; raises ModelError, and OptionError for its cut-offs.

    senders: the user's lists.
    base: the file of a shared model whose counts are added (`scoring/base.py`).
    """
    return Filter(model, ModelOptions(cut_offs, senders), None if base is None else Filter(base))
