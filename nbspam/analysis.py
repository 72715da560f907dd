"""The API for notebooks: the matrix of messages, many verdicts at once, an evaluation."""

import os
from collections.abc import Iterable, Iterator
from itertools import chain
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple, overload

from nbspam.bayes.event_model import BERNOULLI
from nbspam.errors import OptionError
from nbspam.evaluation import protocols
from nbspam.evaluation.messages import LabelledCorpus
from nbspam.evaluation.results import Results, compute
from nbspam.learning.settings import TrainingSettings
from nbspam.library import AnyMessage, Filter, PathOrName, warn, warn_guess
from nbspam.library import open as open_model
from nbspam.reading.message import RawMessage
from nbspam.reading.rows import label_text
from nbspam.reading.source import ReadingOptions, Skips, TableOptions
from nbspam.reading.sources import from_program, labelled
from nbspam.reading.tables import given_messages, is_data_frame, pair_messages
from nbspam.scoring.verdict import CutOffs, Verdict
from nbspam.store.metadata import EVIDENCE
from nbspam.tokens.tokenized import Wanted
from nbspam.workers import executor, tokenized

if TYPE_CHECKING:
    import pandas as pd

    from nbspam.bayes.matrix import Presence
    from nbspam.library import Messages


@overload
def classify_many(
    messages: "pd.DataFrame", model: "PathOrName | Filter", **options: Any
) -> "pd.DataFrame": ...


@overload
def classify_many(
    messages: Iterable[AnyMessage], model: "PathOrName | Filter", **options: Any
) -> list[Verdict]: ...


def classify_many(
    messages: "Messages", model: "PathOrName | Filter", **options: Any
) -> "list[Verdict] | pd.DataFrame":
    """Return the verdicts of a filter, or of a model file, as `Filter.classify_many` does.

    Raises ModelError for the file, and what `Filter.classify_many` raises.

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

    counts: "Presence"  # (n_messages, n_tokens): 1 of each token that a message has, or how often
    labels: list[str | None]  # None where the source gives none
    tokens: list[str]  # of the columns
    sources: list[str]  # where each message came from

    def __repr__(self) -> str:
        rows, columns = self.counts.shape
        return f"<Matrix of {rows:,} messages and {columns:,} tokens>"


def matrix(
    source: Any,
    *,
    text_column: str | None = None,
    label_column: str | None = None,
    times: bool = False,
    jobs: int = 1,
) -> Matrix:
    """Return messages as a matrix of the tokens that nbspam counts; source: as of `nbspam.train`.

    A DataFrame needs no labels, and a list may be of messages alone.
    times: count how often a message has a token, and not whether it does.  jobs: processes.
    Raises SourceError, TableError and OptionError.

    >>> found = nbspam.matrix(["win win"], times=True)
    >>> dict(zip(found.tokens, found.counts.toarray()[0].tolist()))["win"]
    2.0
    """
    from nbspam.bayes.matrix import without_signs

    options = ReadingOptions(TableOptions(text_column, label_column), tell=warn_guess)
    skips = Skips()
    dataset = _read(_raws(source, options, skips), skips, Wanted(times=times), jobs)
    labels = [label or None for label in dataset.corpus.labels]
    counts = without_signs(dataset.corpus.presence())
    return Matrix(counts, labels, dataset.vocabulary, dataset.sources)


def evaluate(
    source: Any,
    *,
    folds: int | None = None,
    train_first: int | None = None,
    online: int | None = None,
    seed: int = 0,
    text_column: str | None = None,
    label_column: str | None = None,
    alpha: float | None = None,
    prior: float | None = None,
    scoring: str = EVIDENCE,
    event_model: str = BERNOULLI,
    traits: str | None = None,
    spam_label: str | bool | int | None = None,
    jobs: int = 1,
) -> Results:
    """Return the figures of models trained on some of the messages and tested on others.

    folds: cross-validate; train_first: train on the first so many, and test on the rest; online:
    classify, then learn, so many at a time; without any of them leave-one-out.
    seed: of the bootstrap.  The rest is as of `nbspam.train`.
    The result has `figures.values`, a dict, and `predictions`, a DataFrame of n_messages rows.
    Raises SourceError, TableError, TrainingError and OptionError.

    >>> results = nbspam.evaluate(pairs, folds=2)
    >>> results.figures.values["accuracy"], len(results.predictions)
    (1.0, 18)
    """
    protocols_asked = {"folds": folds, "train_first": train_first, "online": online}
    if len(chosen := [name for name, n in protocols_asked.items() if n is not None]) > 1:
        raise OptionError(f"{chosen[0]} and {chosen[1]} are two tests; leave one out")
    for name, n in (*protocols_asked.items(), ("seed", seed)):
        if n is not None and (not isinstance(n, Integral) or (name == "seed" and n < 0)):
            raise OptionError(f"{name} must be a whole number, not {n!r}; leave it out")
    positive = None if spam_label is None else label_text(spam_label) or str(spam_label)
    settings = TrainingSettings(alpha, prior, scoring, positive, event_model, traits)
    settings.check()
    options = ReadingOptions(TableOptions(text_column, label_column), tell=warn_guess)
    skips = Skips()
    dataset = _read(from_program(source, (), options, skips), skips, settings.wanted, jobs)
    dataset, mislabelled = dataset.without_mislabelled(positive)
    trial = protocols.Trial(dataset, settings, CutOffs())
    if folds is not None:
        evaluation = protocols.folds(trial, folds)
    elif train_first is not None:
        evaluation = protocols.train_first(trial, train_first)
    elif online is not None:
        evaluation = protocols.online(trial, online)
    else:
        evaluation = protocols.left_out(trial)
    return compute(evaluation._replace(mislabelled=mislabelled), seed)


def _read(raws: Iterator[RawMessage], skips: Skips, wanted: Wanted, jobs: int) -> LabelledCorpus:
    messages = tokenized(raws, skips, executor(jobs), True, wanted, skips_empty=True)
    dataset = LabelledCorpus.of(messages, wanted)
    if skips.count:
        warn(skips.sentence(len(dataset.sources)))
    return dataset


def _raws(source: Any, options: ReadingOptions, skips: Skips) -> Iterator[RawMessage]:
    if isinstance(source, str | os.PathLike):
        return labelled(os.fspath(source), options, skips)
    if is_data_frame(source) or not hasattr(source, "__iter__"):
        return given_messages(source, options, Skips())
    items = iter(source)
    first = list(next(zip(items, strict=False), ()))
    messages = chain(first, items)
    if first and isinstance(first[0], tuple | list):
        return pair_messages(messages, skips)
    return given_messages(messages, options, Skips())
