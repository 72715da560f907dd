"""`nbspam model prune`."""

import json
from pathlib import Path

import click

from nbspam.cli.options import format_option, model_option
from nbspam.errors import OptionError


@click.command("prune")
@model_option
@click.option(
    "--min-count",
    type=click.IntRange(min=1),
    metavar="N",
    help="Keep the tokens that N messages or more have.",
)
@click.option(
    "--max-tokens",
    type=click.IntRange(min=1),
    metavar="N",
    help="Keep the N tokens that most messages have; of equals the strongest.",
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The model to write. [default: the model itself]",
)
@click.option("--replace", is_flag=True, help="Overwrite the output if it is there.")
@format_option
def command(
    model: Path,
    min_count: int | None,
    max_tokens: int | None,
    output: Path | None,
    replace: bool,
    form: str,
) -> None:
    """Make a model smaller: leave its rarest tokens out.

    Messages, ledger and calibration stay as they are, and a message that was learned is still known
    as such.  To forget it passes over the tokens that are gone; and a pruned token that comes again
    is counted from nothing.

    Of a model of 3,000 mails --min-count 2 keeps three tokens of ten, and decides as well as
    before; on short texts it costs a few errors more (docs/model-file.md).

    \b
    Examples:
      nbspam model prune --min-count 2
      nbspam model prune --max-tokens 100000 -m mail.json -o small.json
    """
    from nbspam.learning.prune import prune_file

    if min_count is None and max_tokens is None:
        raise OptionError("there is nothing to prune by; give --min-count or --max-tokens")
    pruned = prune_file(model, output, min_count or 1, max_tokens, replace)
    place = output or model
    if form == "json":
        click.echo(json.dumps({"model": str(place), **pruned._asdict()}))
        return
    click.echo(
        f"{place}: {pruned.tokens:,} of {pruned.tokens_before:,} tokens,"
        f" {pruned.bytes:,} of {pruned.bytes_before:,} bytes; messages, ledger and calibration as"
        " before; forget passes over the tokens that are gone"
    )
