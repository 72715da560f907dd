"""`nbspam train` and `nbspam forget`."""

import json
import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nbspam.cli.configured import configured
from nbspam.cli.declared import DECIDES, option, without_settings
from nbspam.cli.learning_options import Learning, Sources
from nbspam.cli.notes import NoTrace, lock_wait, note_skips
from nbspam.cli.options import (
    BASE,
    DASK,
    FORM,
    JOBS,
    MODEL,
    QUIET,
    Cutting,
    Reading,
    make_default_folder,
    opened_base,
)
from nbspam.cli.progress import cutter, progress, work_place
from nbspam.cli.training import (
    ClassSizes,
    Training,
    Writing,
    begin_one_by_one,
    train_whole,
    update_instead,
    update_model,
)
from nbspam.errors import OptionError, counted
from nbspam.learning.settings import first_metadata
from nbspam.learning.update import PendingMessages, forget, opened_to_learn
from nbspam.reading.message import RawMessage
from nbspam.reading.source import Skipped, Skips
from nbspam.reading.sources import STDIN, any_kind
from nbspam.store.metadata import Metadata
from nbspam.store.model_file import ModelExistsError, check_replaceable
from nbspam.workers import PIECE, executor, in_batches, rare_collections, tokenized

if TYPE_CHECKING:
    from nbspam.reading.cutting import SourcePiece


def _check(
    sources: Sources,
    model: Path,
    writing: Writing,
    cutting: Cutting,
    learning: Learning,
    reading: Reading,
) -> None:
    """Raise OptionError for what is wrong with any model and no declaration says."""
    cutting, learning = _of_new(model, writing, cutting, learning)
    if writing.dry_run and not (writing.update and model.exists()):
        raise OptionError(
            f"--dry-run: says what --update would add to a model, and {model} is not updated; add"
            " --update and name a model that exists, or leave it out"
        )
    cutting.of_new()  # raises for those of no new model
    if not (writing.update and model.exists() and not model.is_dir()):
        learning.settings()  # raises for a senseless value
    reading.check(sources.names_without_labels())


def _of_new(
    model: Path, writing: Writing, cutting: Cutting, learning: Learning
) -> tuple[Cutting, Learning]:
    """Return the options that hold for this model.

    An existing model keeps what it was made with: a config file speaks of new models.
    """
    if writing.update and model.exists():
        return without_settings(cutting), without_settings(learning)
    return cutting, learning


@configured("train", _check, logs="learn")
@rare_collections()
def command(
    *,
    sources: Sources,
    model: Path = MODEL,
    base: str | None = BASE,
    writing: Writing,
    cutting: Cutting,
    learning: Learning,
    reading: Reading,
    form: str = FORM,
    quiet: bool = QUIET,
    jobs: int = JOBS,
    dask: str | None = DASK,
    trace: NoTrace,
) -> None:
    """Learn from labelled messages and write a model, or add to one.

    A SOURCE with labels is a table (TSV, CSV, JSON, JSON lines, Parquet), a folder with one
    sub-folder per class, or a TREC index file.  A source without labels, given by --spam, --ham or
    --label, is an mbox, a Maildir, a folder of messages, one message, a text file with --lines, or
    - for standard input.

    \b
    Examples:
      nbspam train messages.tsv
      nbspam train --ham ~/Maildir --spam ~/Maildir/.Junk
      nbspam train --update --seen -q --ham ~/Maildir --spam ~/Maildir/.Junk
      nbspam train --update --spam - < message.eml
    \f
    Compressed files (gzip, bzip2, xz, zstd, lz4) are read directly.

    After training it prints what to expect on new messages: each message is classified with a model
    trained on all the others (leave-one-out).  -v prints the whole estimate.

    --update adds to the model, or creates it.  The model remembers what it has learned: a message
    is learned as many times as the sources contain it, never more, and one that was learned in
    another class is moved.  So the same command can run every night.  A single message from
    standard input is learned without output, unless standard output is a terminal, or -v or
    --format json is given; an empty one is an error, and the model is not changed.

    A message that is in two classes is learned in both, and a note names it; with --strict it is an
    error, and nothing is learned.  --max-ham-blocked needs all messages at once, so it cannot be
    combined with --update or --base, which learn them one by one.

    --log writes a line for each message that --update learns or moves, and one for a new model.

    \b
    More examples:
      zcat messages.tsv.gz | nbspam train --input-format tsv -
      nbspam train --max-ham-blocked 0.1% --ham inbox.mbox --spam junk.mbox
      nbspam train --replace --label promo=ads.mbox --ham in.mbox --spam junk.mbox
      nbspam train --dask tcp://10.0.0.1:8786 /shared/mail.parquet
    """
    cutting, learning = _of_new(model, writing, cutting, learning)
    before = _updated(sources, model, writing, cutting, learning)
    options, skips = reading.options(writing.seen, quiet, needs_content=True), Skips(reading.strict)
    sizes = ClassSizes()
    options = options._replace(hear_columns=sizes.columns.append)
    options = options._replace(tell=partial(sizes.hear, options.tell))
    options = options if before is None else options.like(before.learned.columns)
    names = sources.names()
    # As in a macro of a mail reader.
    is_one = names == [STDIN] and reading.is_one_message
    is_seen = writing.verbose or sys.stdout.isatty()
    silent = quiet or (writing.update and is_one and not is_seen)
    with (
        sizes.fitting(),
        opened_base(base) as beneath,
        work_place(dask, jobs, trace, quiet) as where,
    ):
        settings = learning.settings()._replace(base=beneath)
        if beneath is not None:  # before anything is read
            beneath.check(model, (before or first_metadata((), settings)).settings)
        asked = (settings, cutting, writing, writing.max_ham_blocked, form, silent)
        training = Training(model, *asked, skips, trace, lock_wait(quiet), sizes)
        # One class alone begins a model one by one, without numpy.
        begins = not writing.update or sources.may_have_two_classes
        if before is None and begins and beneath is None:
            whole = training._replace(quiet=quiet)
            pieces = sources.pieces(cutter(where, options, names))
            instead = partial(update_instead, training=whole) if writing.update else None
            train_whole(where, in_batches(pieces, *PIECE), names, whole, instead)
            return
        raws: Iterable[RawMessage | Skipped | SourcePiece]
        if where.is_here:
            raws = trace.noted(sources.messages(options, skips))
        else:
            raws = sources.pieces(cutter(where, options, names))
        pending = PendingMessages((settings if before is None else before.settings).wanted)
        if writing.seen:  # above the spam cut-off it is in the inbox because the user moved it back
            pending.is_presumed = lambda _, is_spam: not is_spam
        found = tokenized(raws, skips, where, True, pending.corpus.wanted, skips_empty=True)
        with progress(silent, names) as shown:
            messages = sizes(shown(found))
            if writing.update:
                pending.add(trace.digested(messages), model if writing.ledger else None)
            else:
                pending.add(messages)
        sizes.note_small(skips.strict)
        pending.columns = sizes.columns
        sizes.report_shared(*pending.shared(), quiet, skips.strict)
        note_skips(skips)
        make_default_folder(model)
        if writing.update:
            update_model(pending, training)
        else:
            begin_one_by_one(pending, training)


def _updated(
    sources: Sources, model: Path, writing: Writing, cutting: Cutting, learning: Learning
) -> Metadata | None:
    """Return the metadata of the model that is added to; None for a new one.

    Raises OptionError or ModelError for options that cannot be with this model.
    """
    is_file = model.exists() and not model.is_dir()
    if not (writing.update and model.exists()):
        if is_file:
            check_replaceable(model)
            if not writing.replace:
                sources.check_all()  # what is wrong with them is said first
                raise ModelExistsError(model)
        return None
    if is_file and cutting.is_given:
        raise OptionError(
            f"{model}: has cut-offs of its own; change them with nbspam model set, and leave them"
            " out here"
        )
    with opened_to_learn(model) as lookup:
        metadata = lookup.metadata
    of_model = Learning.of_model(metadata.settings)
    for name in learning.given():
        asked, kept = getattr(learning, name), getattr(of_model, name)
        if asked != kept:
            raise OptionError(
                f"{learning.option(name)} {asked}: the model {model} was trained with"
                f" {'none' if kept is None else kept}; leave"
                " it out, or train a new model with --replace"
            )
    return metadata


@configured(
    "forget", lambda sources, reading: reading.check(sources.names() or [STDIN]), logs="forget"
)
def forget_command(
    *,
    sources: Sources,
    model: Path = MODEL,
    base: str | None = BASE,
    no_ledger: bool = option(
        "Unlearn messages that the model does not remember, learned with train --no-ledger.",
        under="Model",
        typed=DECIDES,
        seldom=True,
    ),
    reading: Reading,
    form: str = FORM,
    quiet: bool = QUIET,
    jobs: int = JOBS,
    trace: NoTrace,
) -> None:
    """Unlearn messages.

    A SOURCE is anything that `train` accepts.  A message without a label, as in a file that is
    given without --spam or --ham, is removed from the class it was learned in; a message that was
    never learned is ignored.  Without a SOURCE it reads one message from standard input.  That one
    is unlearned without output, unless standard output is a terminal or --format json is given.

    \b
    Examples:
      nbspam forget message.eml
      nbspam forget --spam - < message.eml
      nbspam forget --ham old-inbox.mbox -m mail.json
    \f
    Counts and ledger become exactly what they were before the messages were learned.  Of the
    calibration only what was learned lately is undone, so probabilities may differ from before; to
    undo the rest, train again without these messages.  What was learned with --base is unlearned
    with it.
    """
    names = sources.names()
    if not names:
        sources, names = sources._replace(sources=(STDIN,)), [STDIN]
    if no_ledger and sources.sources:
        raise OptionError(
            f"--no-ledger: the model does not know in which class {sources.sources[0]} was learned;"
            " give it with --spam or --ham"
        )
    options, skips = reading.options(quiet=quiet), Skips(reading.strict)
    raws = sources.messages(options, skips, any_kind)
    # As in a macro of a mail reader.
    is_one = names == [STDIN] and reading.is_one_message
    silent = quiet or (is_one and not sys.stdout.isatty())
    with opened_to_learn(model) as lookup:
        wanted = lookup.metadata.settings.wanted
    noted = trace.noted(raws)
    messages = tokenized(noted, skips, executor(jobs), digests=True, wanted=wanted)
    digested, wait = trace.digested(messages), lock_wait(quiet)
    with opened_base(base) as beneath, trace.changes(model, remember=not no_ledger):
        change = forget(model, digested, not no_ledger, wait=wait, base=beneath)
    note_skips(skips)
    if form == "json":
        fields = {
            "model": str(model),
            "forgotten": change.forgotten,
            "unchanged": change.unchanged,
            "skipped": skips.count,
        }
        click.echo(json.dumps(fields))
    elif not silent:
        from nbspam.cli.terminal import echo_sentence, unbroken  # one message is forgotten silently

        echo_sentence(
            f"{unbroken(model)}: forgot {counted(change.forgotten, 'message')},"
            f" {change.unchanged:,} had not been learned"
        )
