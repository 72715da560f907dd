"""`nbspam model export` and `nbspam model import`."""

import io
import json
import os
import sys
from pathlib import Path
from typing import IO, Any, BinaryIO

import click

from nbspam.cli.options import (
    default_model,
    format_option,
    learning_options,
    model_option,
    settings_of,
    tell,
    tell_one_sided,
)
from nbspam.errors import OptionError, SourceError
from nbspam.store.metadata import BERNOULLI
from nbspam.store.model_file import already_there


@click.command("export")
@model_option
@click.option(
    "--form",
    type=click.Choice(["bogofilter", "csv"]),
    default="bogofilter",
    show_default=True,
    help="bogofilter's word list, as `bogoutil -l` loads it; or a table of all counts.",
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The file to write. [default: standard output]",
)
@click.option("--replace", is_flag=True, help="Overwrite the output if it is there.")
def export_command(model: Path, form: str, output: Path | None, replace: bool) -> None:
    """Write a model's counts for other programs.

    The ledger and the calibration have no place in these forms; CSV holds every count, and
    bogofilter's list those of a model of two classes.  bogofilter tells capitals from small
    letters and nbspam does not: it will miss words that are written in capitals.

    \b
    Examples:
      nbspam model export | bogoutil -l ~/.bogofilter/wordlist.db
      nbspam model export --form csv -o counts.csv
    """
    from nbspam.learning.word_list import FORMS
    from nbspam.store.atomic_write import replace as put
    from nbspam.store.model_file import read_model

    if output is not None and output.exists() and not replace:
        raise already_there(output, "--replace to overwrite it, or name another")
    try:
        text, left_out = FORMS[form](read_model(model))
    except OptionError as error:
        raise OptionError(f"{model}: {error}") from None
    if left_out:
        click.echo(
            f"nbspam: {left_out} tokens of {model} cannot be written as words of bogofilter's and"
            " were left out; --form csv holds all",
            err=True,
        )

    def write(file: IO[bytes]) -> None:
        file.write(text.encode())

    if output is None:
        write(sys.stdout.buffer)
    elif output.exists() and not output.is_file():  # /dev/stdout, a pipe
        with output.open("wb") as file:
            write(file)
    else:
        put(Path(os.path.realpath(output)), write)


@click.command("import")
@click.argument("source", metavar="FILE")
@model_option
@click.option("--replace", is_flag=True, help="Overwrite the model file if there is one.")
@learning_options
@click.option("--strict", is_flag=True, help="Stop at the first line that cannot be read.")
@format_option
def import_command(
    source: str, model: Path, replace: bool, strict: bool, form: str, **options: Any
) -> None:
    """Make a model of counts that another program has taken.

    FILE is bogofilter's word list as text (`bogoutil -d`) or a table as `model export --form csv`
    writes it, told apart by its first line; - is standard input.  bogofilter's words become the
    tokens that nbspam takes from the same messages.

    The model has the default calibration, which is good on mail and poor on short texts; some
    hundreds of new messages, learned with train --update, make it better than it was.  It remembers
    no message, so do not train it on those that are counted already.

    \b
    Examples:
      bogoutil -d ~/.bogofilter/wordlist.db | nbspam model import -
      nbspam model import counts.csv -m mail.json --replace
    """
    from nbspam.learning.word_list import read_counts
    from nbspam.reading.skips import Skips
    from nbspam.store.model_file import write_model

    settings = settings_of(options)
    if model.exists() and not replace:
        raise already_there(model, "--replace to overwrite it, or name another")
    skips = Skips(strict)
    try:
        with _opened(source) as file:
            found = read_counts(source, file, skips, settings)
    except OSError as error:
        raise SourceError(f"{source}: cannot be read ({error.strerror}); check it") from error
    tell(skips)
    head = found.model.head
    if found.capped:
        click.echo(
            f"nbspam: {source}: {found.capped} tokens are counted in more messages than there are,"
            " and were cut down to these",
            err=True,
        )
    if model == default_model():
        model.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_model(model, head, found.model.counts.items(), replace_old=replace)
    tell_one_sided(model, head)
    learned = dict(zip(head.classes, head.messages, strict=True))
    if form == "json":
        told = {
            "model": str(model),
            "messages": learned,
            "tokens": head.n_tokens,
            "skipped": skips.count,
            "capped": found.capped,
            "words": found.words,
            "foreign": found.foreign,
        }
        click.echo(json.dumps(told))
        return
    shown = ", ".join(f"{name}: {n}" for name, n in learned.items())
    click.echo(
        f"{model}: the counts of {sum(head.messages)} messages ({shown}), {head.n_tokens} tokens"
    )
    if found.words:
        click.echo(
            f"{found.words} words were read; {found.foreign} of them, of header fields mostly, say"
            " nothing that nbspam takes for a token"
        )
    if head.scoring != BERNOULLI:
        click.echo(
            "the calibration is the default; some hundreds of new messages, learned with train"
            " --update, refine it"
        )


def _opened(source: str) -> BinaryIO:
    """Open what FILE names, decompressed."""
    from nbspam.reading.compression import decompressed, open_bytes
    from nbspam.reading.sources import STDIN

    if source != STDIN:
        return open_bytes(Path(source))
    stream = sys.stdin.buffer
    return decompressed(stream) if isinstance(stream, io.BufferedReader) else stream
