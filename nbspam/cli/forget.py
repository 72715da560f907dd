"""`nbspam forget`."""

import json
import sys
from pathlib import Path

import click

from nbspam.cli.command import command, rare_flag
from nbspam.cli.learning_options import Sources
from nbspam.cli.notes import NoTrace, lock_wait, note_skips
from nbspam.cli.options import BASE, FORM, JOBS, MODEL, QUIET, Reading, opened_base
from nbspam.errors import OptionError, counted
from nbspam.learning import update
from nbspam.reading.source import STDIN, Skips
from nbspam.reading.sources import any_kind
from nbspam.workers import executor, tokenized


@command("forget", logs="forget")
def forget(
    *,
    sources: Sources,
    model: Path = MODEL,
    base: str | None = BASE,
    no_ledger: bool = rare_flag(
        under="Model",
        help="Unlearn messages that the model does not remember, learned with train --no-ledger.",
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
    reading.check(names)
    options, skips = reading.options(quiet=quiet), Skips(reading.strict)
    raws = sources.messages(options, skips, any_kind)
    # A macro of a mail reader runs it silently.
    is_one = names == [STDIN] and reading.is_one_message
    silent = quiet or (is_one and not sys.stdout.isatty())
    with update.open_for_learning(model) as lookup:
        wanted = lookup.metadata.settings.wanted
    messages = tokenized(trace.noted(raws), skips, executor(jobs), digests=True, wanted=wanted)
    digested, wait = trace.digested(messages), lock_wait(quiet)
    with opened_base(base) as beneath, trace.changes(model, remember=not no_ledger):
        change = update.forget(model, digested, not no_ledger, wait=wait, base=beneath)
    note_skips(skips)
    if form == "json":
        numbers = {"forgotten": change.forgotten, "unchanged": change.unchanged}
        click.echo(json.dumps({"model": str(model), **numbers, "skipped": skips.count}))
    elif not silent:
        from nbspam.cli.terminal import echo_sentence, unbroken  # not loaded in silence

        echo_sentence(
            f"{unbroken(model)}: forgot {counted(change.forgotten, 'message')},"
            f" {change.unchanged:,} had not been learned"
        )
