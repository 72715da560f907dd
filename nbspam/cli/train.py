"""`nbspam train`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from nbspam.cli.learning_options import (
    Learning,
    learning_options,
)
from nbspam.cli.notes import NoTrace, lock_wait, note_skips, young_sentence
from nbspam.cli.options import (
    Cutting,
    Reading,
    cut_off_options,
    format_option,
    gathered,
    ham_limit,
    jobs_option,
    make_default_folder,
    max_ham_blocked_option,
    model_option,
    quiet_option,
    reading_options,
    traced,
)
from nbspam.cli.progress import progress
from nbspam.cli.sources_options import (
    Sources,
    labelled_sources,
)
from nbspam.errors import OptionError, counted
from nbspam.learning.corpus import Corpus
from nbspam.learning.update import Change, PendingMessages, learn, set_cut_offs
from nbspam.reading.skips import Skips
from nbspam.reading.sources import STDIN
from nbspam.store.lookup import Lookup
from nbspam.store.model_file import (
    ModelExistsError,
    already_exists,
    check_replaceable,
    write_model,
)
from nbspam.tokens.tokenized import Wanted
from nbspam.workers import executor, tokenized

if TYPE_CHECKING:  # one message is learned without numpy
    from nbspam.evaluation.metrics import Figures
    from nbspam.learning.batch import Fit


class Writing(NamedTuple):
    """What to do with the model file."""

    update: bool
    replace: bool
    ledger: bool
    seen: bool
    max_ham_blocked: str | None


class Output(NamedTuple):
    """What to print, and how."""

    model: Path
    form: str
    quiet: bool  # print no text but errors
    skips: Skips
    trace: NoTrace


@click.command("train")
@labelled_sources
@model_option
@gathered(
    "writing",
    Writing,
    click.option("--update", is_flag=True, help="Add to the model; create it if there is none."),
    click.option("--replace", is_flag=True, help="Overwrite the model file if it exists."),
    click.option(
        "--ledger/--no-ledger",
        default=True,
        help="Remember which messages were learned, for --update and forget. [default: ledger]",
    ),
    click.option(
        "--seen",
        is_flag=True,
        help="Read only the mail of a Maildir or mbox that was read and not deleted.",
    ),
    max_ham_blocked_option("Choose and store the lowest spam cut-off"),
)
@cut_off_options
@learning_options
@reading_options
@format_option
@quiet_option
@jobs_option
@traced("learn")
def command(
    sources: Sources,
    model: Path,
    writing: Writing,
    cutting: Cutting,
    learning: Learning,
    reading: Reading,
    form: str,
    quiet: bool,
    jobs: int,
    trace: NoTrace,
) -> None:
    """Learn from labelled messages and write a model, or add to one.

    A SOURCE with labels is a table (TSV, CSV, JSON lines, Parquet), a folder with one sub-folder
    per class, or a TREC index file.  A source without labels, given by --spam, --ham or --label, is
    an mbox, a Maildir, a folder of messages, one message, a text file with --lines, or - for
    standard input.  Gzip, bzip2 and xz files are read directly.

    After training it prints what to expect of the model on new messages: every message is scored by
    a model that has not seen it (leave-one-out).

    --update adds to the model, or creates it.  The model remembers what it has learned: a message
    is learned as many times as the sources have it, never more, and one that was learned in another
    class is moved.  So the same command can run every night.  A single message from standard input
    is learned without output.

    --log writes a line for each message that --update learns or moves, and one for a new model.

    \b
    Examples:
      nbspam train messages.tsv
      nbspam train --ham ~/Maildir --spam ~/Maildir/.Junk -m mail.json
      nbspam train --update --seen -q --ham ~/Maildir --spam ~/Maildir/.Junk
      nbspam train --update --spam - < message.eml
      nbspam train --max-ham-blocked 0.1% --ham inbox.mbox --spam junk.mbox
      nbspam train --replace --label promo=promo.mbox --ham inbox.mbox --spam junk.mbox
    """
    _check_writing(model, writing, cutting, learning)
    limit = ham_limit(writing.max_ham_blocked)
    options, skips = reading.options(writing.seen), Skips(reading.strict)
    names = sources.names()
    silent = quiet or (writing.update and names == [STDIN])  # as in a macro of a mail reader
    pending = PendingMessages(_wanted(model, writing, learning))
    with progress(silent, names) as shown:
        raws = trace.noted(sources.messages(options, skips))
        messages = shown(
            tokenized(raws, skips, executor(jobs), digests=True, wanted=pending.corpus.wanted)
        )
        if writing.update:
            pending.read(model, trace.digested(messages), writing.ledger)
        else:
            for message in messages:
                pending.corpus.add(message)
    note_skips(skips)
    make_default_folder(model)
    begins = not model.exists() and len(set(pending.corpus.labels)) > 1
    if begins or not writing.update:
        try:
            output = Output(model, form, quiet, skips, trace)
            _train(pending.corpus, learning, cutting, writing, limit, output)
            return
        except ModelExistsError:
            if not writing.update:  # else another process has created it meanwhile
                raise
    change = _learn(model, pending, learning, writing.ledger, quiet, trace)
    _store(cutting, model)
    _print_change(change, Output(model, form, silent, skips, trace))


def _check_writing(model: Path, writing: Writing, cutting: Cutting, learning: Learning) -> None:
    """Raise OptionError or ModelError for options that cannot be together, or with this model."""
    if writing.update and writing.replace:
        raise OptionError("--update adds to the model and --replace overwrites it; give one")
    if writing.update and writing.max_ham_blocked is not None:
        raise OptionError(
            "--max-ham-blocked needs all messages at once; give it with --replace, or leave it out"
        )
    cutting.of_new()  # raises for those of no new model
    cutting.check_limit(writing.max_ham_blocked)
    exists = model.exists() and not model.is_dir()
    if exists and writing.update and cutting.is_given:
        raise OptionError(
            f"{model}: has cut-offs of its own; change them with nbspam model set, and leave them"
            " out here"
        )
    if exists and not writing.update:
        check_replaceable(model)
        if not writing.replace:
            raise already_exists(model)
    if not (exists and writing.update):
        learning.settings()  # raises for a senseless value
        return
    with Lookup(model) as lookup:
        of_model = Learning.of_model(lookup.metadata.settings)
    for name in learning.given():
        asked, kept = getattr(learning, name), getattr(of_model, name)
        if asked != kept:
            raise OptionError(
                f"{learning.option(name)} {asked}: the model {model} was trained with {kept}; leave"
                " it out, or train a new model with --replace"
            )


def _wanted(model: Path, writing: Writing, learning: Learning) -> Wanted:
    """Return the numbers that the model counts, or will count."""
    if not (writing.update and model.exists()):
        return learning.settings().wanted
    with Lookup(model) as lookup:
        return lookup.metadata.settings.wanted


def _learn(
    model: Path,
    pending: PendingMessages,
    learning: Learning,
    remember: bool,
    quiet: bool,
    trace: NoTrace,
) -> Change:
    """Learn messages into a model, or begin one with them; return what that changed."""
    with trace.changes(model, remember):
        return learn(model, pending, learning.settings(), remember, lock_wait(quiet))


def _store(cutting: Cutting, model: Path) -> None:
    """Store the cut-offs in a model that was not there before."""
    if cutting.is_given:
        set_cut_offs(model, cutting.of)


def _print_change(change: Change, output: Output) -> None:
    if output.form == "json":
        fields = {"model": str(output.model), **change._asdict(), "skipped": output.skips.count}
        del fields["forgotten"]
        click.echo(json.dumps(fields))
    elif not output.quiet:
        click.echo(
            f"{output.model}: learned {counted(change.learned, 'new message')}, moved"
            f" {change.moved:,} to another class, {change.unchanged:,} already known"
        )
        with Lookup(output.model) as lookup:
            metadata = lookup.metadata
        if not metadata.is_one_sided and (sentence := young_sentence(metadata)):
            click.echo(sentence)


def _train(
    corpus: Corpus,
    learning: Learning,
    cutting: Cutting,
    writing: Writing,
    limit: float | None,
    output: Output,
) -> None:
    """Learn from all messages at once, write the model and print what to expect of it."""
    from nbspam.learning.batch import cut_offs_within, fit, token_counts, with_cut_offs

    fitted = fit(corpus, corpus.labels, learning.settings(), corpus.channels(), corpus.traits())
    if limit is not None:
        cut_offs = cut_offs_within(limit, fitted, fitted.left_out_scores(corpus))
        fitted = with_cut_offs(fitted, cut_offs)
    elif cutting.is_given:
        fitted = with_cut_offs(fitted, cutting.of(fitted.metadata))
    classes = fitted.metadata.settings.classes
    write_model(
        output.model,
        fitted.metadata,
        token_counts(corpus.vocabulary, fitted.counts),
        corpus.learned(classes) if writing.ledger else (),
        replace_old=writing.replace,
        wait=lock_wait(output.quiet),
    )
    output.trace.trained(output.model, len(corpus))
    if output.quiet and output.form == "text":
        return
    rates = _left_out_rates(corpus, fitted)
    learned = dict(zip(classes, fitted.metadata.learned.messages, strict=True))
    if output.form == "json":
        fields = {
            "model": str(output.model),
            "messages": learned,
            "tokens": fitted.metadata.n_tokens,
            "skipped": output.skips.count,
            "leave_one_out": rates.as_json(),
        }
        click.echo(json.dumps(fields))
        return
    per_class = ", ".join(f"{name}: {n:,}" for name, n in learned.items())
    click.echo(
        f"{output.model}: learned {counted(len(corpus), 'message')} ({per_class}),"
        f" {counted(fitted.metadata.n_tokens, 'token')}"
    )
    click.echo(_estimate_sentence(rates, len(classes)))
    if limit is not None:
        click.echo(_cut_off_sentence(fitted, limit))
    if sentence := young_sentence(fitted.metadata):
        click.echo(sentence)


def _left_out_rates(corpus: Corpus, fitted: "Fit") -> "Figures":
    """Return the rates of the model on the training messages, each left out."""
    from nbspam.evaluation.metrics import left_out_rates
    from nbspam.evaluation.protocols import Outcome
    from nbspam.evaluation.samples import count_verdicts
    from nbspam.scoring.verdict import CutOffs, verdict_on

    metadata = fitted.metadata
    cut_offs = CutOffs.of_model(metadata)
    called, verdicts = [], []
    for label, score in zip(corpus.labels, fitted.left_out_scores(corpus), strict=True):
        outcome = Outcome(verdict_on(metadata, score, cut_offs, label=label))
        called.append((label, outcome.called))
        verdicts.append((label, outcome.verdict))
    positive = metadata.settings.positive
    return left_out_rates(count_verdicts(called, positive), count_verdicts(verdicts, positive))


def _estimate_sentence(rates: "Figures", n_classes: int) -> str:
    """Return the estimate in words: at 0.5, and with the cut-offs where there are two classes."""
    sentence = "leave-one-out estimate for new messages like these: "
    if n_classes > 2:
        return sentence + ", ".join(row.sentence() for row in rates.rows())
    accuracy = next(rates.rows()).percentage().replace(" %", " % correct at 0.5", 1)
    verdicts = ", ".join(row.sentence() for row in rates.rows(of_verdicts=True))
    return f"{sentence}{accuracy}; verdicts: {verdicts}"


def _cut_off_sentence(fitted: "Fit", limit: float) -> str:
    """Return where the cut-off is, and how well it can be known."""
    settings, learned = fitted.metadata
    sentence = (
        f"cut-off for at most {100 * limit:g} % of ham blocked: spam is above"
        f" {settings.spam_cutoff:.6g}, stored in the model; the verdicts above are with it"
    )
    if settings.spam_cutoff >= 1:
        sentence += "; some ham scores so high that nothing will be classified as spam"
    ham = sum(learned.messages) - learned.messages[settings.positive_index or 0]
    if limit * ham < 1:
        few = f"{counted(ham, 'ham message')} {'is' if ham == 1 else 'are'} too few"
        sentence += f"; {few} to measure less than {100 / ham:.2g} %"
    return sentence
