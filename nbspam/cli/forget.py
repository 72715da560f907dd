"""`nbspam forget`."""

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from nbspam.cli.options import (
    format_option,
    jobs_option,
    labelled_messages,
    labelled_sources,
    model_option,
    named_sources,
    quiet_option,
    reading_of,
    reading_options,
    tell,
)
from nbspam.errors import OptionError
from nbspam.learning.update import forget
from nbspam.reading.raw_message import RawMessage
from nbspam.reading.skips import Skips
from nbspam.reading.sources import STDIN, ReadingOptions, any_kind
from nbspam.workers import token_sets


@click.command("forget")
@labelled_sources
@model_option
@click.option(
    "--no-ledger",
    is_flag=True,
    help="Take messages out that the model does not remember: learned with train --no-ledger.",
)
@reading_options
@format_option
@quiet_option
@jobs_option
def command(
    model: Path, no_ledger: bool, form: str, quiet: bool, jobs: int, **options: Any
) -> None:
    """Take messages out of a model again, as if they had never been learned.

    A SOURCE is whatever `train` takes.  A message without a label, as in a file that is given
    without --spam or --ham, is taken out of the class it was learned in; a message that was never
    learned is left alone.  Without a SOURCE it reads one message from standard input, in silence.
    Counts and ledger become what they were, to the byte; the calibration
    keeps what it has learned.

    \b
    Examples:
      nbspam forget message.eml
      nbspam forget --spam - < message.eml
      nbspam forget --ham old-inbox.mbox -m mail.json
    """
    sources = options["sources"]
    named = named_sources(options)[len(sources) :]
    if not sources and not named:
        sources = (STDIN,)
    if no_ledger and sources:
        raise OptionError(
            f"--no-ledger: the model does not know in which class {sources[0]} was learned; give it"
            " with --spam or --ham"
        )
    silent = quiet or [*sources, *named] == [STDIN]
    reading, skips = reading_of(options)
    options["sources"] = ()
    raws = itertools.chain(
        _messages(sources, reading, skips),
        labelled_messages(options, reading, skips) if named else (),
    )
    messages = (
        (raw.label, tokens, digest)
        for raw, tokens, digest in token_sets(raws, skips, jobs, digests=True)
    )
    change = forget(model, messages, remember=not no_ledger)
    tell(skips)
    if form == "json":
        told = {"model": str(model), "forgotten": change.forgotten, "unchanged": change.unchanged}
        click.echo(json.dumps(told | {"skipped": skips.count}))
    elif not silent:
        click.echo(
            f"{model}: forgot {change.forgotten} messages, {change.unchanged} had not been learned"
        )


def _messages(
    sources: tuple[str, ...], reading: ReadingOptions, skips: Skips
) -> Iterator[RawMessage]:
    for source in sources:
        yield from any_kind(source, reading, skips)
