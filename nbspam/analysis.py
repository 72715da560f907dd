"""The API for notebooks: the matrix of messages, many verdicts at once, an evaluation."""

import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple, overload

from nbspam.bayes.event_model import BERNOULLI
from nbspam.errors import OptionError
from nbspam.evaluation import metrics, protocols, results
from nbspam.evaluation.messages import without_mislabelled
from nbspam.filter import AnyMessage, Filter, PathOrName, warn, warn_guess
from nbspam.learning.corpus import Corpus
from nbspam.learning.settings import TrainingSettings
from nbspam.library import open as open_model
from nbspam.reading.message import RawMessage
from nbspam.reading.program import is_data_frame, iter_api_messages, labelled_messages
from nbspam.reading.rows import label_text
from nbspam.reading.source import ReadingOptions, Skips, TableOptions, column_name
from nbspam.reading.sources import read_api_input, read_labelled
from nbspam.scoring.verdict import CutOffs, Verdict
from nbspam.store.metadata import EVIDENCE
from nbspam.tokens.tokenized import TokenizerOutputs
from nbspam.workers import make_executor, tokenize_messages

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from nbspam.bayes.matrix import Presence
    from nbspam.evaluation.curves import PlotDisplay
    from nbspam.filter import Messages


@overload
def classify_many(
    messages: Iterable[AnyMessage], model: "PathOrName | Filter", **options: Any
) -> list[Verdict]: ...


@overload
def classify_many(
    messages: "pd.DataFrame", model: "PathOrName | Filter", **options: Any
) -> "pd.DataFrame": ...


def classify_many(
    messages: "Messages", model: "PathOrName | Filter", **options: Any
) -> "list[Verdict] | pd.DataFrame":
    """Return the verdicts of a filter, or of a model file, as `Filter.classify_many` does.

    Raises ModelError for the file, and the errors of `Filter.classify_many`.

    >>> [verdict.verdict for verdict in nbspam.classify_many(["win a prize"], "model.json")]
    ['spam']
    """
    if isinstance(model, Filter):
        return model.classify_many(messages, **options)
    with open_model(model) as spam_filter:
        return spam_filter.classify_many(messages, **options)


class Matrix(NamedTuple):
    """Messages as a sparse matrix: (n_messages, n_tokens).

    >>> nbspam.matrix(["win a prize", "lunch"]).counts.shape[0]
    2
    """

    # (n_messages, n_tokens): 1 for each token that a message has, or its number of occurrences
    counts: "Presence"
    labels: list[str | None]  # None for messages without a label in the source
    tokens: list[str]  # the columns' tokens
    sources: list[str]  # where each message came from

    def __repr__(self) -> str:
        rows, columns = self.counts.shape
        return f"<Matrix of {rows:,} messages and {columns:,} tokens>"


def matrix(
    source: Any,
    *,
    text_column: str | int | None = None,
    label_column: str | int | None = None,
    times: bool = False,
    jobs: int = 1,
) -> Matrix:
    """Return messages as a matrix of the tokens that nbspam counts; source: as in `nbspam.train`.

    A DataFrame needs no labels, and a list may have only messages.
    times: count how often a message has a token, and not whether it does.  jobs: processes.
    Raises SourceError, TableError and OptionError.

    >>> found = nbspam.matrix(["win win"], times=True)
    >>> dict(zip(found.tokens, found.counts.toarray()[0].tolist()))["win"]
    2.0
    """
    from nbspam.bayes.matrix import absolute_entries

    options = ReadingOptions(
        TableOptions(column_name(text_column), column_name(label_column)), on_note=warn_guess
    )
    skips = Skips()
    corpus = _read(_raws(source, options, skips), skips, TokenizerOutputs(times=times), jobs)
    labels = [label or None for label in corpus.labels]
    counts = absolute_entries(corpus.presence())
    return Matrix(counts, labels, corpus.vocabulary, list(corpus.sources))


class Results(results.Results):
    """The results of an evaluation, which a notebook shows as a table and draws.

    >>> nbspam.evaluate(pairs, folds=2)
    <Results: 2 folds: 18 messages (ham: 9, spam: 9); 0 errors>
    """

    def _repr_html_(self) -> str:
        from nbspam.display.page import escape, table_html

        parts = [metrics.VERDICTS] * (self.cut_offs is not None) + [metrics.ERRORS, metrics.SCORES]
        rows = []
        for row in self.figures.rows(*parts, brief=True):
            form = results.format_figure if isinstance(row.value, float) else "{:,.0f}".format
            ends = results.format_interval(row.interval, form)
            rows.append(("", list(map(escape, (row.name, form(row.value), ends, row.line)))))
        heads = "metric", "value", "95 % interval", ""
        return f"<p>{escape(self.title)}</p>{table_html(heads, rows)}"

    def plot(self, kind: str = "roc", *, ax: "Axes | None" = None) -> "PlotDisplay":
        """Draw the ROC curve, the "confusion" matrix or the "calibration" with matplotlib.

        ax: axes to draw on; by default new ones.
        Returns an object with `ax_` and `figure_`, like scikit-learn's displays.
        Raises OptionError, and NbspamError without matplotlib.

        >>> nbspam.evaluate(pairs, folds=2).plot("confusion").ax_.get_xlabel()
        'predicted label'
        """
        from nbspam.evaluation.curves import plot

        return plot(self, kind, ax)


def evaluate(
    source: Any,
    *,
    folds: int | None = None,
    train_first: int | str | None = None,
    online: int | None = None,
    seed: int | None = None,
    text_column: str | int | None = None,
    label_column: str | int | None = None,
    alpha: float | None = None,
    prior: float | None = None,
    scoring: str = EVIDENCE,
    event_model: str = BERNOULLI,
    traits: str | None = None,
    spam_label: str | bool | int | None = None,
    jobs: int = 1,
) -> Results:
    """Return the figures of models trained on some of the messages and tested on others.

    folds: cross-validate; train_first: train on the first messages, a number or a percentage such
    as "70%", and test on the rest; online: classify, then learn, this many messages at a time;
    without any of them leave-one-out.
    seed: shuffle the messages before they are split into folds.  The other arguments are as in
    `nbspam.train`.  The result has `figures.values` (a dict), `predictions` (a DataFrame of
    n_messages rows) and `plot`.
    Raises SourceError, TableError, TrainingError and OptionError.

    >>> results = nbspam.evaluate(pairs, folds=2)
    >>> results.figures.values["accuracy"], len(results.predictions)
    (1.0, 18)
    """
    protocols_asked = {"folds": folds, "train_first": train_first, "online": online}
    if len(chosen := [name for name, n in protocols_asked.items() if n is not None]) > 1:
        raise OptionError(f"{chosen[0]} and {chosen[1]} are two tests; leave one out")
    for name, n in {"folds": folds, "online": online, "seed": seed}.items():
        if n is not None and (not isinstance(n, Integral) or (name == "seed" and n < 0)):
            raise OptionError(f"{name} must be a whole number, not {n!r}; leave it out")
    if seed is not None and folds is None:
        raise OptionError("seed needs folds; add that, or leave out seed")
    positive = None if spam_label is None else label_text(spam_label) or str(spam_label)
    settings = TrainingSettings(alpha, prior, scoring, positive, event_model, traits)
    settings.check()
    options = ReadingOptions(
        TableOptions(column_name(text_column), column_name(label_column)), on_note=warn_guess
    )
    skips = Skips()
    corpus = _read(read_api_input(source, (), options, skips), skips, settings.outputs, jobs)
    corpus, mislabelled = without_mislabelled(corpus, positive)
    trial = protocols.Trial(corpus, settings, CutOffs())
    if folds is not None:
        evaluation = protocols.folds(trial, folds, seed)
    elif train_first is not None:
        first = protocols.count_first(str(train_first), len(corpus))
        evaluation = protocols.train_first(trial, first)
    elif online is not None:
        evaluation = protocols.online(trial, online)
    else:
        evaluation = protocols.leave_one_out(trial)
    computed = results.compute(evaluation._replace(mislabelled=mislabelled))
    return Results(computed.evaluation, computed.messages, computed.figures)


def _read(raws: Iterator[RawMessage], skips: Skips, outputs: TokenizerOutputs, jobs: int) -> Corpus:
    messages = tokenize_messages(
        raws, skips, make_executor(jobs), digests=True, outputs=outputs, skip_empty=True
    )
    corpus = Corpus.from_messages(messages, outputs)
    if skips.count:
        warn(skips.sentence(len(corpus)))
    return corpus


def _raws(source: Any, options: ReadingOptions, skips: Skips) -> Iterator[RawMessage]:
    if isinstance(source, str | os.PathLike):
        return read_labelled(os.fspath(source), options, skips)
    if is_data_frame(source) or not hasattr(source, "__iter__"):
        return iter_api_messages(source, options, Skips())
    items = iter(source)
    first = list(next(zip(items, strict=False), ()))
    messages = chain(first, items)
    if first and isinstance(first[0], tuple | list | Mapping):
        return labelled_messages(messages, options, skips)
    return iter_api_messages(messages, options, Skips())
