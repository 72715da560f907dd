"""`nbspam model export`."""

import os
import sys
from pathlib import Path
from typing import IO

import click

from nbspam.cli.configured import ConfiguredCommand
from nbspam.cli.notes import note
from nbspam.cli.options import model_option, output_option, replace_output_option
from nbspam.errors import OptionError, Remedy, counted
from nbspam.store.metadata_json import load_counted
from nbspam.store.model_file import already_exists, check_replaceable, read_model
from nbspam.store.word_lists import BEGINNINGS, FORMS
from nbspam.store.writing import write_atomically


@click.command("export", cls=ConfiguredCommand)
@model_option
@click.option(
    "--form",
    type=click.Choice(list(FORMS)),
    default="bogofilter",
    show_default=True,
    help="Write bogofilter's word list, as `bogoutil -l` loads it, or a CSV table of all counts.",
)
@output_option
@replace_output_option
def command(model: Path, form: str, output: Path | None, replace: bool) -> None:
    """Write a model's counts for other programs, by default to standard output.

    These forms cannot hold the ledger and the calibration.  CSV has every count; bogofilter's list
    has those of a model of two classes.  bogofilter distinguishes capitals from small letters and
    nbspam does not, so it will miss words that are written in capitals.

    It also writes the counts of a model that another tokenizer made, which no other command uses.

    \b
    Examples:
      nbspam model export | bogoutil -l ~/.bogofilter/wordlist.db
      nbspam model export --form csv -o counts.csv
    """
    if output is not None and output.exists() and not replace:
        raise already_exists(output, Remedy.REPLACE_OUTPUT)
    try:
        text, left_out = FORMS[form](read_model(model, load_counted))
    except OptionError as error:
        raise OptionError(f"{model}: {error.problem}", error.remedy) from None
    if left_out:
        note(
            f"{counted(left_out, 'token')} of {model} cannot be written as bogofilter's words and"
            " were left out; --form csv has all"
        )

    def write(file: IO[bytes]) -> None:
        file.write(text.encode())

    if output is None:
        write(sys.stdout.buffer)
    elif output.exists() and not output.is_file():  # /dev/stdout, a pipe
        with output.open("wb") as file:
            write(file)
    else:
        check_replaceable(output, BEGINNINGS)
        write_atomically(Path(os.path.realpath(output)), write)
