"""What `nbspam train` does with the messages that it has read, and what it prints of that."""

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from nbspam.cli.class_sizes import ClassSizes
from nbspam.cli.cut_off_options import Cutting
from nbspam.cli.estimate import cut_off_sentence, estimate_sentence, left_out_rates_of
from nbspam.cli.notes import NoTrace, note, note_skips, young_sentence
from nbspam.cli.options import make_default_folder
from nbspam.cli.progress import work
from nbspam.errors import counted
from nbspam.learning.on_error import SURE, TrainOnError
from nbspam.learning.settings import TrainingSettings, class_names
from nbspam.learning.update import (
    Change,
    PendingMessages,
    Teaching,
    every_message,
    learn,
    learn_in_memory,
    set_cut_offs,
)
from nbspam.reading.source import Skips
from nbspam.store.lookup import Lookup
from nbspam.store.metadata import Metadata
from nbspam.store.model_file import ModelExistsError, put_model, write_model
from nbspam.tokens.tokenized import TokenizedMessage
from nbspam.workers import Executor

if TYPE_CHECKING:  # one message is learned without numpy
    from nbspam.evaluation.metrics import Figures
    from nbspam.learning.training import Piece
    from nbspam.store.writing import LockWait


class Writing(NamedTuple):
    """What to do with the model file."""

    update: bool
    replace: bool
    ledger: bool
    on_error: bool
    sure_from: float | None
    seen: bool
    max_ham_blocked: str | None


class Output(NamedTuple):
    """What to print, and how."""

    model: Path
    form: str
    quiet: bool  # print no text but errors
    skips: Skips
    trace: NoTrace
    sizes: ClassSizes  # of what was read

    def read(self) -> dict[str, int | None]:
        """Return what is said of the reading, as JSON has it."""
        return {"skipped": self.skips.count, "in_two_classes": self.sizes.n_shared}


class Training(NamedTuple):
    """What one run was asked for."""

    settings: TrainingSettings
    cutting: Cutting
    writing: Writing
    limit: float | None  # the share of ham that may be blocked
    output: Output
    wait: "LockWait"  # for the model's lock

    @property
    def is_one_by_one(self) -> bool:
        """Whether messages are learned one by one, even into a new model."""
        return self.writing.on_error or self.settings.base is not None


def train_whole(
    where: Executor,
    pieces: "Iterable[Piece]",
    names: Sequence[str],
    training: Training,
    instead: Callable[[Iterable[TokenizedMessage]], None] | None = None,
) -> None:
    """Learn from all messages at once, write the model and print what to expect of it.

    names: of the sources.
    instead: learns the messages one by one if they are of one class, or another process has created
        the model meanwhile; without it these are errors.
    """
    from nbspam.cli.progress import shown_passes
    from nbspam.evaluation.messages import LISTED
    from nbspam.learning.training import TrainingRun

    settings, cutting, writing, limit, output, wait = training
    with (
        shown_passes(output.quiet, names) as passes,
        TrainingRun(where, settings, passes) as run,
    ):
        run.read(pieces, output.skips)
        for kept in run.kept:
            output.sizes.add(kept.summary.messages, kept.summary.first)
        if not output.quiet:
            output.sizes.note_small()
        note_skips(output.skips)
        make_default_folder(output.model)
        if instead is not None and len(run.labels) < 2:
            instead(run.messages())
            return
        run.count()
        output.sizes.report_shared(*run.shared(), output.quiet, output.skips.strict)
        run.fit()
        if limit is not None:
            run.choose_cut_offs(limit)
        elif cutting.is_given:
            run.store_cut_offs(cutting.of(run.metadata))
        try:
            put_model(
                output.model,
                lambda file: run.write(file, writing.ledger),
                replace_old=writing.replace,
                wait=wait,
            )
        except ModelExistsError:
            if instead is None:
                raise
            instead(run.messages())
            return
        n = run.labels.total()
        output.trace.trained(output.model, n)
        if output.quiet and output.form == "text":
            return
        rates, doubted = left_out_rates_of(run)
        named = run.named(doubted.messages[:LISTED])
    wrong = doubted.as_json(named), doubted.sentence(named)
    print_training(Trained(n, run.metadata, rates, *wrong), limit, output)


def update_instead(messages: Iterable[TokenizedMessage], training: Training) -> None:
    """Learn messages one by one that were to be learned at once, with `--update`."""
    pending = PendingMessages(training.settings.wanted)
    pending.read(training.output.model, messages, training.writing.ledger)
    update_model(pending, training)


def update_model(pending: PendingMessages, training: Training) -> None:
    """Add to the model, or create it, and print what changed."""
    settings, cutting, writing, _, output, wait = training
    if writing.ledger and len(pending.corpus) and not output.quiet:
        _note_unnamed(output.model)
    with work(output.quiet) as at_work, output.trace.changes(output.model, writing.ledger):
        at_work.stage(f"adding messages to {output.model}")
        change = learn(output.model, pending, settings, writing.ledger, wait, _teaching(training))
        if cutting.is_given:  # the model was not there before
            set_cut_offs(output.model, cutting.of)
    _print_change(change, training)


def _note_unnamed(model: Path) -> None:
    """Say, before more is learned, that the ledger cannot tell what of it is counted already."""
    if not model.exists():
        return
    with Lookup(model) as lookup:
        learned = sum(lookup.metadata.learned.messages)
        # To add up a ledger of a million takes 2 s; mostly its lines are as many as the messages.
        unnamed = 0 if lookup.remembered() == learned else sum(lookup.unnamed())
    if unnamed:
        note(
            f"{model}: has learned {counted(unnamed, 'message')} that its ledger does not name"
            " (imported, or learned with --no-ledger); one that is given again is counted twice, so"
            " give only newer mail"
        )


def begin_one_by_one(pending: PendingMessages, training: Training) -> None:
    """Write a new model that learned one message after another, and print what it learned."""
    settings, cutting, writing, _, output, wait = training
    teach = _teaching(training)
    if settings.base is None:
        class_names(pending.corpus.labels, settings.positive)  # raises if there are not two
    change, made = learn_in_memory(output.model, None, pending, settings, writing.ledger, teach)
    write_model(
        output.model,
        cutting.of(made.metadata).stored_in(made.metadata),
        made.counts.items(),
        made.learned.items(),
        replace_old=writing.replace,
        wait=wait,
    )
    output.trace.trained(output.model, change.learned)
    _print_change(change, training)


def _teaching(training: Training) -> Teaching:
    """Return what chooses the messages to learn."""
    sure = training.writing.sure_from
    if not training.writing.on_error:
        return every_message
    return TrainOnError(training.cutting.of, SURE if sure is None else sure)


def _print_change(change: Change, training: Training) -> None:
    settings, _, writing, _, output, _ = training
    if output.form == "json":
        fields = {"model": str(output.model), **change._asdict(), **output.read()}
        del fields["forgotten"]
        if not writing.on_error:
            del fields["judged_right"]
        click.echo(json.dumps(fields))
    elif not output.quiet:
        judged = ""
        if writing.on_error:
            judged = f"left out {counted(change.judged_right, 'message')} judged right, "
        from nbspam.cli.terminal import echo_sentence, unbroken  # one message is learned silently

        echo_sentence(
            f"{unbroken(output.model)}: {judged}learned"
            f" {counted(change.learned, 'new message')}, moved"
            f" {change.moved:,} to another class, {change.unchanged:,} already known"
        )
        with Lookup(output.model) as lookup:
            metadata = lookup.metadata
        if settings.base is not None:
            metadata = settings.base.through(metadata)
        if not metadata.is_one_sided and (sentence := young_sentence(metadata)):
            echo_sentence(sentence)


class Trained(NamedTuple):
    """A new model, as far as it is told of."""

    n: int  # messages
    metadata: Metadata
    rates: "Figures"  # of the messages, each left out
    doubted: list[dict[str, str]]  # labels that look wrong
    wrong: str  # what to say of them


def print_training(trained: Trained, limit: float | None, output: Output) -> None:
    """Print what was learned, and what to expect of the model."""
    from nbspam.cli.terminal import echo_sentence, unbroken

    n, metadata, rates, doubted, wrong = trained
    classes = metadata.settings.classes
    learned = dict(zip(classes, metadata.learned.messages, strict=True))
    if output.form == "json":
        fields = {
            "model": str(output.model),
            "messages": learned,
            "tokens": metadata.n_tokens,
            **output.read(),
            "label_noise": metadata.label_noise,
            "doubted_labels": doubted,
            "leave_one_out": rates.as_json(),
        }
        click.echo(json.dumps(fields))
        return
    per_class = ", ".join(f"{name}: {n:,}" for name, n in learned.items())
    echo_sentence(
        f"{unbroken(output.model)}: learned {counted(n, 'message')} ({per_class}),"
        f" {counted(metadata.n_tokens, 'token')}"
    )
    echo_sentence(estimate_sentence(rates, len(classes)))
    if wrong:
        echo_sentence(f"{wrong}; nbspam eval --leave-one-out --errors 20 shows the worst")
    if limit is not None:
        echo_sentence(cut_off_sentence(metadata, limit))
    if sentence := young_sentence(metadata):
        echo_sentence(sentence)
