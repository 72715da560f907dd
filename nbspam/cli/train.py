"""`nbspam train`: training, updating, and the sentences on the new or changed model."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nbspam.cli import learning_options, notes, options, terminal
from nbspam.cli.command import command, flag, rare_flag, section
from nbspam.cli.progress import open_executor, progress, progress_passes, size_of, training_run
from nbspam.errors import OptionError, Remedy, format_count, one_line
from nbspam.learning import pruning, update
from nbspam.learning.learner import Learner
from nbspam.learning.settings import TrainingSettings, first_metadata
from nbspam.learning.update import Change, PendingMessages
from nbspam.names import FEW
from nbspam.reading.source import MBOX_FORMAT, STDIN, Skips
from nbspam.store import model_file
from nbspam.store.lookup import Lookup
from nbspam.store.metadata import Metadata, with_columns
from nbspam.tokens.tokenized import TokenizedMessage
from nbspam.workers import (
    PIECE_LIMITS,
    Executor,
    batch_messages,
    rare_collections,
    tokenize_messages,
)

if TYPE_CHECKING:  # one message is learned without numpy
    from nbspam.evaluation.estimate import Estimate
    from nbspam.learning.training import TrainingRun
    from nbspam.store.writing import LockWait
    from nbspam.tokens.tokenized import Batch


@section("Model")
class ModelFileOptions(NamedTuple):
    """The options for the model file."""

    update: bool = flag(
        "--update",
        conflicts_with="--replace",
        help="Add to the model; create it if it does not exist.",
    )
    replace: bool = flag("--replace", help="Overwrite the model file if it exists.")
    ledger: bool = rare_flag(
        "--ledger/--no-ledger",
        default=True,
        help="Remember which messages were learned, for --update and forget. [default: ledger]",
    )
    dry_run: bool = rare_flag(
        "--dry-run",
        help="Print the messages that --update would learn, and those that look like another class;"
        " change nothing.",
    )
    seen: bool = flag(
        "--seen",
        help_heading="Sources",
        formats=(MBOX_FORMAT,),
        help="In a Maildir or mbox, use only messages that were read and not deleted.",
    )
    verbose: bool = flag(
        "-v",
        "--verbose",
        help_heading="Output",
        conflicts_with="--quiet",
        help="After training, print the whole estimate with its intervals.",
    )
    # Choosing cut-offs needs all messages at once, and --base learns them one by one.
    max_ham_blocked: float | None = options.ham_limit_option(
        conflicts_with="--spam-cutoff --ham-cutoff --ham-cost --update --base",
        help="Choose and store the lowest spam cut-off that marks at most this share of ham as"
        " spam.",
    )


class Training(NamedTuple):
    """The options and the state of one run."""

    model: Path
    settings: TrainingSettings
    cut_off_options: options.CutOffOptions
    file_options: ModelFileOptions
    form: str
    quiet: bool  # print only errors
    skips: Skips
    wait: "LockWait"  # for the model's lock
    tally: learning_options.LabelTally  # the labels of the messages read
    labels: frozenset[str] = frozenset()  # labels given by options

    def read(self) -> dict[str, int | None]:
        """Return the JSON fields about the messages read."""
        return {"skipped": self.skips.count, "in_two_classes": self.tally.n_shared}


def _check(
    sources: learning_options.Sources,
    model: Path,
    file_options: ModelFileOptions,
    cut_off_options: options.CutOffOptions,
    training_options: learning_options.TrainingOptions,
    source_options: options.SourceOptions,
) -> None:
    """Raise OptionError for options that are wrong with any model."""
    if file_options.dry_run and not (file_options.update and model.exists()):
        raise OptionError(
            f"--dry-run: says what --update would add to a model, and {model} is not updated; add"
            " --update and name a model that exists, or leave out --dry-run"
        )
    cut_off_options.for_new_model()  # raises for wrong cut-offs
    if not (file_options.update and model.exists() and not model.is_dir()):
        training_options.settings()  # raises for a value out of bounds
    source_options.check(sources.names_without_labels())


@command("train")
@rare_collections()
def train(
    *,
    sources: learning_options.Sources,
    model: Path = options.MODEL,
    base: str | None = options.BASE,
    file_options: ModelFileOptions,
    cut_off_options: options.CutOffOptions,
    training_options: learning_options.TrainingOptions,
    source_options: options.SourceOptions,
    form: str = options.FORM,
    quiet: bool = options.QUIET,
    jobs: int = options.JOBS,
    dask: str | None = options.DASK,
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
    trained on all others except its copies (leave-one-out).  -v prints the whole estimate.

    --update adds to the model, or creates it.  The model remembers what it has learned: a message
    is learned as many times as the sources contain it (a mail once), and one that was learned in
    another class is moved.  So the same command can run every night.  A single message from
    standard input is learned without output, unless standard output is a terminal, or -v or
    --format json is given; an empty one is an error, and the model is not changed.

    A message that is in two classes is learned in both, and a note names it; with --strict it is an
    error, and nothing is learned.  --max-ham-blocked needs all messages at once, so it cannot be
    combined with --update or --base, which learn them one by one.

    \b
    More examples:
      zcat messages.tsv.gz | nbspam train --input-format tsv -
      nbspam train --max-ham-blocked 0.1% --ham inbox.mbox --spam junk.mbox
      nbspam train --replace --label promo=ads.mbox --ham in.mbox --spam junk.mbox
      nbspam train --dask tcp://10.0.0.1:8786 /shared/mail.parquet
    """
    _check(sources, model, file_options, cut_off_options, training_options, source_options)
    old = _model_to_update(sources, model, file_options, cut_off_options, training_options)
    skips, tally = Skips(source_options.strict), learning_options.LabelTally()
    read = source_options.options(file_options.seen, quiet, require_content=True)
    read = read._replace(
        on_columns=tally.columns.append, on_note=partial(tally.note_or_defer, read.on_note)
    )
    if old is not None:
        read = read.with_learned_columns(old.learned.columns)
    names = sources.names()
    # Print nothing for a single message, which a macro of a mail reader learns.
    is_one = names == [STDIN] and source_options.is_one_message
    wants_output = file_options.verbose or sys.stdout.isatty()
    silent = quiet or (file_options.update and is_one and not wants_output)
    with (
        tally.report_label_failure(),
        options.open_base_model(base) as base_model,
        open_executor(dask, jobs, quiet) as executor,
    ):
        settings = training_options.settings()._replace(base=base_model)
        if base_model is not None:  # fail before reading anything
            base_model.check(model, (old or first_metadata((), settings)).settings)
        labels = frozenset(sources.given_labels())
        training = Training(
            model,
            settings,
            cut_off_options,
            file_options,
            form,
            silent,
            skips,
            notes.lock_wait(quiet),
            tally,
            labels,
        )
        # A new model with only one class learns its messages one by one, without numpy.
        trains_whole = not file_options.update or sources.may_have_two_classes
        is_whole = old is None and trains_whole and base_model is None
        by_range = is_whole and not executor.is_local
        raws = sources.messages(read._replace(by_range=by_range), skips)
        if is_whole:
            whole = training._replace(quiet=quiet)
            fall_back = partial(learn_by_updating, training=whole) if file_options.update else None
            executor.announce_size(size_of(names) or 0)
            train_whole(executor, batch_messages(raws, *PIECE_LIMITS), names, whole, fall_back)
            return
        pending = PendingMessages((settings if old is None else old.settings).outputs)
        # Mail above the spam cut-off is in the inbox because the user moved it back.
        if file_options.seen and not sources.sources:
            pending.is_presumed = lambda _, is_spam: not is_spam
        messages = tokenize_messages(
            raws, skips, executor, True, pending.corpus.outputs, skip_empty=True
        )
        with progress(silent, names) as with_progress:
            counted_messages = tally(with_progress(messages))
            pending.add(
                counted_messages, model if file_options.update and file_options.ledger else None
            )
        intended = [settings.positive, *labels, *(old.settings.classes if old else ())]
        pending.leave_out(tally.mistyped(intended, skips.strict))
        pending.columns = tally.columns
        tally.note_shared_messages(*pending.messages_in_two_classes(), quiet, skips.strict)
        notes.note_skips(skips, quiet)
        if file_options.seen:
            tally.note_nothing_seen(quiet)
        options.make_default_folder(model)
        learn_one_by_one(pending, training)


def _model_to_update(
    sources: learning_options.Sources,
    model: Path,
    file_options: ModelFileOptions,
    cut_off_options: options.CutOffOptions,
    training_options: learning_options.TrainingOptions,
) -> Metadata | None:
    """Return the metadata of the model to update; None for a new model.

    Raises OptionError or ModelError for options that this model does not allow.
    """
    is_file = model.exists() and not model.is_dir()
    if not (file_options.update and model.exists()):
        if is_file:
            model_file.check_replaceable(model)
            if not file_options.replace:
                sources.check_all()  # a wrong source is reported first
                is_any = sources.may_have_two_classes
                remedy = Remedy.UPDATE_OR_REPLACE if is_any else Remedy.UPDATE_IT
                raise model_file.ModelExistsError(model, remedy)
        return None
    if is_file and cut_off_options.is_given:
        raise OptionError(
            f"{model}: has cut-offs of its own; change them with nbspam model set, and leave them"
            " out here"
        )
    with update.open_for_learning(model) as lookup:
        metadata = lookup.metadata
    of_model = learning_options.TrainingOptions.from_model(metadata.settings)
    for name in training_options.given():
        typed, trained_with = getattr(training_options, name), getattr(of_model, name)
        if typed != trained_with:
            raise OptionError(
                f"{training_options.option(name)} {typed}: the model {model} was trained with"
                f" {'none' if trained_with is None else trained_with}; leave"
                " it out, or train a new model with --replace"
            )
    return metadata


def train_whole(
    executor: Executor,
    batches: "Iterable[Batch]",
    names: Sequence[str],
    training: Training,
    fall_back: Callable[[Iterable[TokenizedMessage]], object] | None = None,
) -> None:
    """Learn from all messages at once, write the model and print its estimated accuracy.

    names: the names of the sources.
    fall_back: learns the messages one by one if there is only one class, or if another process has
        created the model meanwhile; without it, these are errors.
    """
    from nbspam.evaluation.estimate import estimate

    model, quiet = training.model, training.quiet
    with progress_passes(quiet, names) as passes:
        run = training_run(executor, training.settings, passes)
        run.read(batches, training.skips)
        first = {name: run.corpus.first_sources(name, FEW) for name in run.labels}
        training.tally.add(run.labels, first)
        intended = [training.settings.positive, *training.labels]
        run.leave_out(training.tally.mistyped(intended, training.skips.strict))
        notes.note_skips(training.skips, quiet)
        if training.file_options.seen:
            training.tally.note_nothing_seen(quiet)
        options.make_default_folder(model)
        if fall_back is not None and len(run.labels) < 2:
            fall_back(run.messages())
            return
        run.count()
        run.metadata = with_columns(run.metadata, training.tally.columns)
        chosen = run.metadata.settings
        notes.note_binary(training.settings.positive, chosen.classes, chosen.positive)
        training.tally.note_shared_messages(
            *run.messages_in_two_classes(), quiet, training.skips.strict
        )
        if not quiet:
            _note_separating_words(run)
        run.fit(keep_tokens=fall_back is not None)
        if training.file_options.max_ham_blocked is not None:
            run.choose_cut_offs(training.file_options.max_ham_blocked)
        elif training.cut_off_options.is_given:
            run.metadata = training.cut_off_options.for_model(run.metadata).applied_to(run.metadata)
        try:
            model_file.replace_model(
                model,
                lambda file: run.write(file, training.file_options.ledger),
                replace_old=training.file_options.replace,
                wait=training.wait,
            )
        except model_file.ModelExistsError:
            if fall_back is None:
                raise
            fall_back(run.messages())
            return
        if run.metadata.settings.positive is None and not quiet:
            training.tally.print_deferred_notes()
            notes.note(
                f"{model}: none of the {len(run.labels)} classes is called spam, so a verdict is"
                " the most probable of them; name the spam class with --spam-label if there is one"
            )
        if quiet and training.form == "text":
            return
        trained = TrainedModel(training, run.metadata, estimate(run))
    with _ignore_closed_pipe():
        terminal.print_result(training.form, trained.as_json(), trained.sentences())


def _note_separating_words(run: "TrainingRun") -> None:
    """Print a note on header words that are in nearly all messages of only one class."""
    (settings, learned), rows = run.metadata, run.separating_tokens()
    if not rows:
        return
    described, limit = list[str](), learning_options.MAX_EXAMPLES
    for token, row in sorted(rows, key=lambda entry: (-max(entry[1]), entry[0]))[
        : learning_options.MAX_EXAMPLES
    ]:
        counts = zip(row, learned.messages, settings.classes, strict=True)
        shares = (f"in {n:,} of {total:,} {one_line(name)}" for n, total, name in counts)
        described.append(f"{token!r} ({', '.join(shares)})")
    described += [f"{len(rows) - limit:,} more"] if len(rows) > limit else []
    each, they = ("each of ", "they are") if len(rows) > 1 else ("", "it is")
    notes.note(
        f"{each}{', '.join(described)} separates {' from '.join(settings.classes)} by itself:"
        f" {they} not used, since a program that fetches or sorts mail may have written that"
    )


def learn_by_updating(messages: Iterable[TokenizedMessage], training: Training) -> None:
    """Learn messages one by one, instead of all at once, with --update."""
    pending = PendingMessages(training.settings.outputs)
    pending.columns = training.tally.columns
    pending.add(messages, training.model if training.file_options.ledger else None)
    learn_one_by_one(pending, training)


def learn_one_by_one(pending: PendingMessages, training: Training) -> None:
    """Add to the model, or write a new model, and print the change."""
    model, settings, file_options = training.model, training.settings, training.file_options
    quiet, remember, cut_offs_of = (
        training.quiet,
        file_options.ledger,
        training.cut_off_options.for_model,
    )
    if not file_options.update:
        first = first_metadata(pending.labels, settings)
        learner = Learner(first, base=settings.base, remember=remember)
        change = update.learn_pending(learner, model, pending)
        made = learner.model()
        made = made._replace(metadata=cut_offs_of(made.metadata).applied_to(made.metadata))
        model_file.write_model(model, made, replace_old=file_options.replace, wait=training.wait)
    else:
        if remember and len(pending.corpus) and not quiet:
            _note_not_in_ledger(model)
        if file_options.dry_run:
            change = update.learn(model, pending, settings, remember, dry_run=True)
        else:
            with progress_passes(quiet) as passes:
                passes.start(f"adding messages to {model}", 0)
                change = update.learn(model, pending, settings, remember, training.wait)
                if training.cut_off_options.is_given:  # the model is new
                    pruning.set_cut_offs(model, cut_offs_of)
    if training.form != "json":
        _note_surprising(change, training)
    with _ignore_closed_pipe():
        changed = ChangedModel(training, change)
        terminal.print_result(training.form, changed.as_json(), changed.sentences(), quiet)


def _note_not_in_ledger(model: Path) -> None:
    """Print a note on messages that the model has learned without its ledger."""
    if not model.exists():
        return
    with Lookup(model) as lookup:
        learned = sum(lookup.metadata.learned.messages)
        # Adding up a ledger of a million lines takes 2 s; usually the number of lines suffices.
        unnamed = 0 if lookup.ledger_size() == learned else sum(lookup.without_ledger_entry())
    if unnamed:
        notes.note(
            f"{model}: has learned {format_count(unnamed, 'message')} that its ledger does not name"
            " (learned with --no-ledger); one that is given again is counted twice, so"
            " give only newer mail"
        )


@contextmanager
def _ignore_closed_pipe() -> Iterator[None]:
    """Ignore a closed pipe, as in `nbspam train … | true`, because the model is already saved."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class ChangedModel(NamedTuple):
    """A model that has learned messages one by one."""

    training: Training
    change: Change

    def as_json(self) -> dict[str, object]:
        """Return the change as JSON fields."""
        change = notes.change_json(self.change)
        return {"model": str(self.training.model), **change, **self.training.read()}

    def sentences(self) -> Iterator[str]:
        """Yield the numbers learned, and the messages that a young model needs."""
        model, base = self.training.model, self.training.settings.base
        would = "would have " if self.training.file_options.dry_run else ""
        yield f"{terminal.unbroken(model)}: {would}{notes.change_words(self.change)}"
        with Lookup(model) as lookup:
            metadata = lookup.metadata
        if base is not None:
            metadata = base.combine(metadata)
        if not metadata.lacks_two_classes:
            yield notes.young_sentence(metadata)


def _note_surprising(change: Change, training: Training) -> None:
    """Print a note on messages that looked like another class.

    No note if -q is given and all of these messages are from standard input.
    """
    if training.quiet and all(message.source == "-" for message in change.surprising):
        return

    def remedy(sources: list[str], learned: bool) -> str:
        from shlex import quote

        own = str(training.model)
        place = "" if notes.is_default_model(own) else f"-m {quote(own)} "
        files = [quote(source) for source in sources if Path(source).is_file()] or ["MESSAGE"]
        if learned:
            return f"nbspam forget {place}{' '.join(files)}"
        return f"nbspam train --update {place}--ham {' --ham '.join(files)}"

    notes.note_surprising(change, training.quiet, remedy, training.file_options.dry_run)


class TrainedModel(NamedTuple):
    """A new model, and its estimated accuracy."""

    training: Training
    metadata: Metadata
    estimate: "Estimate"

    def as_json(self) -> dict[str, object]:
        """Return the model's numbers and the estimate as JSON fields."""
        return {
            "model": str(self.training.model),
            **notes.counts_json(self.metadata),
            **self.training.read(),
            "label_noise": self.metadata.by_class(self.metadata.label_noise),
            **self.estimate.as_json(),
        }

    def sentences(self) -> Iterator[str]:
        """Yield the numbers learned, and the estimate for new messages."""
        from shlex import quote

        from nbspam.evaluation.estimate import cut_off_sentence

        model, verbose = self.training.model, self.training.file_options.verbose
        words, young = notes.counts_words(self.metadata), notes.young_sentence(self.metadata)
        learned = words if verbose else words.rpartition("),")[0] + ")"
        n_texts = sum(self.estimate.n_texts.values())
        if n_texts < sum(self.metadata.learned.messages):
            learned += f", {format_count(n_texts, 'different text')}"
        yield f"{terminal.unbroken(model)}: learned {learned}"
        if verbose:
            yield self.estimate.sentence()
        else:
            yield from self.estimate.beginner_estimate(self.metadata.settings.positive)
            if not young:
                place = (
                    ""
                    if notes.is_default_model(model)
                    else f"-m {terminal.unbroken(quote(str(model)))} "
                )
                yield f"next: nbspam classify {place}message.eml"
        if wrong := self.estimate.suspect_labels.sentence(self.estimate.suspect_sources):
            yield f"{wrong}; nbspam eval --leave-one-out --errors 20 shows the worst"
        if (limit := self.training.file_options.max_ham_blocked) is not None:
            yield cut_off_sentence(self.metadata, limit)
        yield notes.one_domain_sentence(self.metadata)
        yield young
