"""Two functions for programs: `nbspam.train` and `nbspam.open`, which return a `Filter`."""

import os
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, NamedTuple

from nbspam.bayes.event_model import BERNOULLI
from nbspam.bayes.trait_model import SMOOTHING, Variances
from nbspam.errors import OptionError, Remedy, SourceError, TrainingError, format_count
from nbspam.filter import Filter, Pairs, PathOrName, open_filter, warn, warn_guess
from nbspam.names import HAM, SPAM
from nbspam.scoring.verdict import CutOffs
from nbspam.store.metadata import EVIDENCE, Metadata, with_columns

if TYPE_CHECKING:
    import pandas as pd


def train(
    source: "PathOrName | Pairs | pd.DataFrame | None" = None,
    *,
    spam: Iterable[PathOrName] = (),
    ham: Iterable[PathOrName] = (),
    text_column: str | int | None = None,
    label_column: str | int | None = None,
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
    """Return a filter trained on labelled messages; the filter has no file until it is saved.

    source: the name of a table, of a folder with a sub-folder per class, or of a TREC index file;
        or a list of names; or (label, text or bytes) pairs, or (text, label) ones; or a DataFrame,
        an array of rows, or a list of dictionaries.  Text is plain text, bytes are a mail.  A label
        is a name, a boolean or a whole number.  Warnings report messages without a label or text,
        and columns that were found by content.
    spam, ham: names of sources without labels: mboxes, Maildirs, folders, single messages.
    text_column, label_column: names, or numbers of columns without names; found by content if left
        out.  encoding: the encoding of a table.
    strict: raise SourceError for the first message that cannot be read, instead of skipping it,
        and TrainingError for a class of a few messages next to two large classes.
    alpha: smoothing, in messages.  prior: P(spam); by default its share of the learned messages.
    scoring: "evidence", combined and calibrated, or "sum", the textbook's posterior.
    event_model: how tokens are counted: "bernoulli", "multinomial", "complement" or "none".
    traits: "none", "gaussian" or "kernel"; by default "kernel", and "none" with "sum".
    variance_smoothing, variance_prior, shared_variance: as in `bayes/trait_model.py`.
    spam_label: the class that counts as spam, if it is not called spam.  jobs: processes.
    Raises NbspamError: SourceError, TableError, TrainingError, OptionError, or ModelError if a disk
    is full.

    >>> nbspam.train([("spam", "win a prize"), ("ham", "lunch at noon")]).classes
    ('ham', 'spam')
    """
    from nbspam.learning.settings import TrainingSettings
    from nbspam.learning.training import TrainingRun
    from nbspam.reading.rows import label_text
    from nbspam.reading.source import ReadingOptions, Skips, TableOptions, column_name
    from nbspam.reading.sources import read_api_input
    from nbspam.store.model_file import UnsavedModel
    from nbspam.workers import PIECE_LIMITS, batch_messages, make_executor

    positive = None if spam_label is None else label_text(spam_label) or str(spam_label)
    variances = Variances(variance_smoothing, variance_prior, shared_variance)
    settings = TrainingSettings(alpha, prior, scoring, positive, event_model, traits, variances)
    settings.check()
    columns: list[tuple[str, str]] = []
    table = TableOptions(column_name(text_column), column_name(label_column), encoding)
    guesses: list[SourceError] = []

    def collect_guess(guess: SourceError) -> None:
        guesses.append(guess)
        warn_guess(guess)

    options = ReadingOptions(table, on_note=collect_guess, on_columns=columns.append)
    skips = Skips(strict)
    raws = read_api_input(source, [(SPAM, spam), (HAM, ham)], options, skips)
    run = TrainingRun(make_executor(jobs), settings)
    run.read(batch_messages(raws, *PIECE_LIMITS), skips)
    if skips.count:
        warn(skips.sentence(run.labels.total()))
    for sentence in skips.merged_label_notes:
        warn(sentence)
    mistyped = run.corpus.mistyped([positive])
    for name, where in mistyped.items():
        only = f"{format_count(len(where), 'message')} ({', '.join(where)})"
        what = f"the class {name!r} has only {only}, next to two large ones"
        if strict:
            raise TrainingError(f"{what}; correct the label")
        warn(f"{what}, and is left out; correct the label")
    run.leave_out(mistyped)
    try:
        run.count()
    except TrainingError:
        for guess in guesses:  # the column of labels may be the wrong one
            if guess.remedy is Remedy.NAME_ANOTHER_LABEL:
                warn(guess)
        raise
    run.metadata = with_columns(run.metadata, columns)
    run.fit(keep_tokens=False)
    model = UnsavedModel(run.write)
    return Filter(model)


def open(  # noqa: A001 (as `nbspam.open`)
    path: PathOrName,
    *,
    spam_cutoff: float | None = None,
    ham_cutoff: float | None = None,
    ham_cost: float | None = None,
    trust_elsewhere: bool | None = None,
    base: PathOrName | None = None,
    allow: Collection[str] = (),
    block: Collection[str] = (),
    auth_host: str | Collection[str] = (),
    trust_from: bool = False,
) -> Filter:
    """Return the filter of a model file; close it, or use it as a context manager.

    spam_cutoff, ham_cutoff: a message is spam above spam_cutoff and ham up to ham_cutoff; by
    default the model's cut-offs.  ham_cost: sets both cut-offs; how many times worse a false
    positive is than a false negative.
    trust_elsewhere: whether mail by servers whose mail was not learned is called spam as easily.
    base: the file of a shared model whose counts are added; then the file at `path` may be missing.
    allow, block: the senders whose mail is never spam, and whose mail is always spam:
    `boss@example.org`,
        `@example.org`, `*@*.example.org`, or `file:NAME` of a file of such lines.
    auth_host: the server, or servers, whose Authentication-Results prove who sent a mail.
    trust_from: whether to believe From without such a proof.
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

    cut_offs = _ChosenCutOffs(spam_cutoff, ham_cutoff, ham_cost, trust_elsewhere)
    below = None if base is None else os.fsdecode(base)
    return open_filter(os.fsdecode(path), cut_offs.of, below, senders)


class _ChosenCutOffs(NamedTuple):
    """The cut-offs that a program gives; a filter with a local function could not be pickled."""

    spam: float | None
    ham: float | None
    ham_cost: float | None
    trust_elsewhere: bool | None

    def of(self, metadata: Metadata) -> CutOffs:
        """Replace the model's cut-offs; raises OptionError."""
        if len(metadata.settings.classes) > 2 and any(value is not None for value in self):
            why = "a model of several classes has no cut-offs: its verdict is the most probable"
            raise OptionError(f"{why} class; leave them out")
        return CutOffs.from_model(metadata).overridden(*self)
