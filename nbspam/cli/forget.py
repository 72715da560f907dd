"""`nbspam forget`."""

import json
from pathlib import Path

import click

from nbspam.cli.configured import configured
from nbspam.cli.declared import DECIDES, option
from nbspam.cli.learning_options import Sources
from nbspam.cli.notes import NoTrace, lock_wait, note_older, note_skips
from nbspam.cli.options import BASE, FORM, JOBS, MODEL, QUIET, Reading, opened_base
from nbspam.errors import OptionError, counted
from nbspam.learning.update import forget
from nbspam.reading.skips import Skips
from nbspam.reading.sources import STDIN
from nbspam.store.lookup import Lookup
from nbspam.workers import executor, tokenized


def _check(sources: Sources, reading: Reading) -> None:
    """Raise OptionError for wrong options."""
    reading.check(sources.names() or [STDIN])


@configured("forget", _check, logs="forget")
def command(
    *,
    sources: Sources,
    model: Path = MODEL,
    base: str | None = BASE,
    no_ledger: bool = option(
        "Unlearn messages that the model does not remember, learned with train --no-ledger.",
        under="Model",
        typed=DECIDES,
    ),
    reading: Reading,
    form: str = FORM,
    quiet: bool = QUIET,
    jobs: int = JOBS,
    trace: NoTrace,
) -> None:
    """Take messages out of the model again.

    A SOURCE is anything that `train` takes.  A message without a label, as in a file that is given
    without --spam or --ham, is taken out of the class it was learned in; a message that was never
    learned is left alone.  Without a SOURCE it reads one message from standard input and prints
    nothing.

    Counts and ledger become what they were before the messages were learned, to the byte.  Of the
    calibration only what was learned lately is taken back, so probabilities may differ from before;
    to take back the rest, train again without them.  What was learned with --base is taken back
    with it.

    \b
    Examples:
      nbspam forget message.eml
      nbspam forget --spam - < message.eml
      nbspam forget --ham old-inbox.mbox -m mail.json
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
    raws = sources.messages_of_any_kind(options, skips)
    # As in a macro of a mail reader.
    is_one = names == [STDIN] and reading.is_one_message
    silent = quiet or is_one
    with Lookup(model) as lookup:
        wanted = lookup.metadata.settings.wanted
        if not silent:
            note_older(model, lookup.metadata, learns=True)
    noted = trace.noted(raws)
    messages = tokenized(noted, skips, executor(jobs), digests=True, wanted=wanted)
    digested, wait = trace.digested(messages), lock_wait(quiet)
    with opened_base(base, not is_one) as beneath, trace.changes(model, remember=not no_ledger):
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
        from nbspam.cli.terminal import (  # one message is forgotten silently
            echo_sentence,
            unbroken,
        )

        echo_sentence(
            f"{unbroken(model)}: forgot {counted(change.forgotten, 'message')},"
            f" {change.unchanged:,} had not been learned"
        )
