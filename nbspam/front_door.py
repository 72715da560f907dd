"""What a program calls: `nbspam.train` and `nbspam.open`; both return a Filter."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

from nbspam.bayes.event_model import BERNOULLI
from nbspam.bayes.trait_model import SMOOTHING, Variances
from nbspam.errors import OptionError
from nbspam.filter import Filter, InMemory, model_cut_offs, open_filter
from nbspam.labels import HAM, SPAM, normal_label
from nbspam.learning.settings import TrainingSettings
from nbspam.reading.message import RawMessage
from nbspam.reading.source import Skips
from nbspam.reading.sources import ReadingOptions, TableOptions, labelled, unlabelled
from nbspam.reading.tables import frame_messages, is_data_frame, pair_messages
from nbspam.scoring.verdict import CutOffs
from nbspam.store.metadata import EVIDENCE, Metadata
from nbspam.workers import PIECE, executor, in_batches

if TYPE_CHECKING:
    import pandas as pd

PathOrName = str | os.PathLike[str]
Pairs = Iterable[tuple[str, str | bytes]]


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
    spam_label: str | None = None,
    jobs: int = 1,
) -> Filter:
    """Return a filter trained on labelled messages; it is in memory until it is saved.

    source: the name of a table, of a folder with a sub-folder per class, or of a TREC index file;
        or (label, text or bytes) pairs; or a DataFrame.  Text is plain text, bytes are a mail.
    spam, ham: names of sources without labels: mboxes, Maildirs, folders, single messages.
    text_column, label_column, encoding: of a table or DataFrame; found by content if left out.
    strict: raise SourceError for the first message that cannot be read, instead of skipping it.
    alpha: smoothing, in messages.  prior: P(spam), if not the share learned.
    scoring: "evidence", combined and calibrated, or "sum", the textbook's posterior.
    event_model: how tokens are counted: "bernoulli", "multinomial", "complement" or "none".
    traits: "none", "gaussian" or "kernel"; by default kernel, and none with the sum.
    variance_smoothing, variance_prior, shared_variance: of Gaussian traits (see
    `bayes/trait_model.py`).
    spam_label: the class that counts as spam, if none is called so.  jobs: processes.
    Raises SourceError, TableError, TrainingError and OptionError, all of them NbspamError.
    """
    positive = None if spam_label is None else normal_label(spam_label)
    variances = Variances(variance_smoothing, variance_prior, shared_variance)
    settings = TrainingSettings(alpha, prior, scoring, positive, event_model, traits, variances)
    settings.check()
    options = ReadingOptions(TableOptions(text_column, label_column, encoding))
    skips = Skips(strict)
    raws = _raws(source, [(SPAM, spam), (HAM, ham)], options, skips)

    from nbspam.learning.training import TrainingRun

    with TrainingRun(executor(jobs), settings) as run:
        run.read(in_batches(raws, *PIECE), skips)
        run.count()
        run.fit()
        home = InMemory(run.model())
    return Filter(home.classifier(), model_cut_offs(run.metadata), home)


def _raws(
    source: "PathOrName | Pairs | pd.DataFrame | None",
    unlabelled_sources: Iterable[tuple[str, Iterable[PathOrName]]],
    options: ReadingOptions,
    skips: Skips,
) -> Iterator[RawMessage]:
    if is_data_frame(source):
        yield from frame_messages(source, options.table, skips, needs_labels=True)
    elif isinstance(source, str | os.PathLike):
        yield from labelled(os.fspath(source), options, skips)
    elif source is not None:
        yield from pair_messages(cast("Pairs", source), skips)
    for label, names in unlabelled_sources:
        for name in [names] if isinstance(names, str | os.PathLike) else names:
            yield from unlabelled(os.fspath(name), label, options, skips)


def open_model(
    path: PathOrName,
    *,
    spam_cutoff: float | None = None,
    ham_cutoff: float | None = None,
    ham_cost: float | None = None,
) -> Filter:
    """Return the filter of a model file; close it, or use it as a context manager.

    spam_cutoff, ham_cutoff: probabilities above which a message is spam, and up to which it is ham;
        by default the model's own.  ham_cost: instead, how many times worse a false positive is.
    Raises ModelError when the file cannot be used, OptionError for impossible cut-offs.
    """

    def cut_offs(metadata: Metadata) -> CutOffs:
        given = (spam_cutoff, ham_cutoff, ham_cost)
        if len(metadata.settings.classes) > 2 and given != (None, None, None):
            raise OptionError(
                "a model of several classes has no cut-offs: its verdict is the most probable"
                " class; leave them out"
            )
        return CutOffs.of_model(metadata).changed(*given)

    return open_filter(Path(path), cut_offs)
