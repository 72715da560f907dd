"""`nbspam model prune`."""

import json
from pathlib import Path

import click

from nbspam.cli.configured import ConfiguredCommand
from nbspam.cli.notes import note
from nbspam.cli.options import (
    format_option,
    model_option,
    output_option,
    replace_output_option,
)
from nbspam.cli.terminal import echo_sentence, unbroken
from nbspam.errors import OptionError, counted
from nbspam.learning.remake import LITTLE, prune_file


@click.command("prune", cls=ConfiguredCommand)
@model_option
@click.option(
    "--min-count",
    type=click.IntRange(min=1),
    metavar="N",
    help="Keep the tokens that N or more messages have; that occur N times, if repeats count.",
)
@click.option(
    "--max-tokens",
    type=click.IntRange(min=1),
    metavar="N",
    help="Keep the N most frequent tokens; of equally frequent ones the strongest.",
)
@output_option
@replace_output_option
@format_option
def command(
    model: Path,
    min_count: int | None,
    max_tokens: int | None,
    output: Path | None,
    replace: bool,
    form: str,
) -> None:
    """Make a model smaller by removing its rarest tokens; by default in place.

    Messages, ledger and calibration stay as they are, and learned messages stay known.  Forgetting
    one ignores the tokens that were removed; a removed token that occurs again is counted from 0.
    The hosts that took mails in are kept besides.  A removed token is one that the model does not
    know: of a message with fewer than one known token in ten it is unsure, and never sure of ham.

    Of a model of 3,000 mails --min-count 2 keeps three tokens in ten and decides as well as before;
    on short texts it costs a few more errors (docs/model-file.md).  If fewer than 1 in 20 are left,
    verdicts change, and a note says so.

    \b
    Examples:
      nbspam model prune --min-count 2
      nbspam model prune --max-tokens 100000 -m mail.json -o small.json
    """
    if min_count is None and max_tokens is None:
        raise OptionError("give --min-count or --max-tokens, or both")
    pruned = prune_file(model, output, min_count or 1, max_tokens, replace)
    place = output or model
    if pruned.is_little:
        note(
            f"{place}: has fewer than 1 in {1 / LITTLE:.0f} of its tokens left, so verdicts change;"
            " measure it with nbspam eval, or train again and keep more"
        )
    if form == "json":
        click.echo(json.dumps({"model": str(place), **pruned._asdict()}))
        return
    echo_sentence(
        f"{unbroken(place)}: kept {pruned.tokens:,} of {counted(pruned.tokens_before, 'token')},"
        f" {pruned.bytes:,} of {pruned.bytes_before:,} bytes; messages, ledger and calibration as"
        " before; forget ignores the tokens that were removed"
    )
