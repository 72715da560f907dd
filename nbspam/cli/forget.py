"""`nbspam forget`."""

import sys
from pathlib import Path

from nbspam.cli import learning_options, notes, terminal
from nbspam.cli.command import command, rare_flag
from nbspam.cli.options import BASE, FORM, JOBS, MODEL, QUIET, SourceOptions, open_base_model
from nbspam.errors import OptionError, format_count
from nbspam.learning import update
from nbspam.reading.source import STDIN, Skips
from nbspam.reading.sources import read_messages
from nbspam.workers import make_executor, tokenize_messages


@command("forget")
def forget(
    *,
    sources: learning_options.Sources,
    model: Path = MODEL,
    base: str | None = BASE,
    no_ledger: bool = rare_flag(
        help_heading="Model",
        help="Unlearn messages that the model does not remember, learned with train --no-ledger.",
    ),
    source_options: SourceOptions,
    form: str = FORM,
    quiet: bool = QUIET,
    jobs: int = JOBS,
) -> None:
    """Unlearn messages.

    A SOURCE is anything that `train` accepts.  A message without a label, as in a file that is
    given without --spam or --ham, is removed from the class it was learned in; a message that was
    never learned is ignored.  Without a SOURCE it reads one message from standard input.  The
    message from standard input is unlearned without output, unless standard output is a terminal or
    --format json is given.

    \b
    Examples:
      nbspam forget message.eml
      nbspam forget --spam - < message.eml
      nbspam forget --ham old-inbox.mbox -m mail.json
    \f
    Counts and ledger become exactly what they were before the messages were learned.  In the
    calibration, only the effect of the last messages can be undone, so probabilities may differ
    from before; to undo everything, train again without these messages.  Use --base for messages
    that were learned with it.
    """
    names = sources.names()
    if not names:
        sources, names = sources._replace(sources=(STDIN,)), [STDIN]
    if no_ledger and sources.sources:
        raise OptionError(
            f"--no-ledger: the model does not know in which class {sources.sources[0]} was learned;"
            " give it with --spam or --ham"
        )
    source_options.check(names)
    options, skips = source_options.options(quiet=quiet), Skips(source_options.strict)
    raws = sources.messages(options, skips, read_messages)
    # For one message, as from a macro of a mail reader, print nothing.
    is_one = names == [STDIN] and source_options.is_one_message
    silent = quiet or (is_one and not sys.stdout.isatty())
    with update.open_for_learning(model) as lookup:
        outputs = lookup.metadata.settings.outputs
    messages = tokenize_messages(raws, skips, make_executor(jobs), digests=True, outputs=outputs)
    with open_base_model(base) as base_model:
        wait = notes.lock_wait(quiet)
        change = update.forget(model, messages, not no_ledger, wait=wait, base=base_model)
    notes.note_skips(skips)
    forgotten, unchanged = change.forgotten, change.unchanged
    fields = {"model": str(model), "forgotten": forgotten, "unchanged": unchanged}
    sentence = f"forgot {format_count(forgotten, 'message')}, {unchanged:,} had not been learned"
    sentences = [f"{terminal.unbroken(model)}: {sentence}"]
    terminal.print_result(form, {**fields, "skipped": skips.count}, sentences, silent)
