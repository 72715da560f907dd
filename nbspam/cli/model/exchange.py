"""`nbspam model export` and `import`: the counts of a model, for other programs and from them."""

import io
import json
import os
import sys
from pathlib import Path
from typing import IO, BinaryIO

import click

from nbspam.cli.configured import configured
from nbspam.cli.declared import OVERWRITES, argument, option
from nbspam.cli.learning_options import Learning
from nbspam.cli.notes import note, note_one_sided, note_skips
from nbspam.cli.options import FORM, MODEL, OUTPUT, REPLACE_OUTPUT, STRICT, make_default_folder
from nbspam.cli.terminal import echo_sentence, unbroken
from nbspam.errors import OptionError, Remedy, SourceError, counted
from nbspam.learning.remake import Imported, read_counts
from nbspam.reading.compression import decompressed, open_bytes
from nbspam.reading.source import STDIN, Skips, Source
from nbspam.scoring.rules import rule_of
from nbspam.store.metadata_json import load_counted
from nbspam.store.model_file import already_exists, check_replaceable, read_model, write_model
from nbspam.store.word_lists import BEGINNINGS, FORMS
from nbspam.store.writing import write_atomically


@configured("export")
def export(
    *,
    model: Path = MODEL,
    form: str = option(
        "Write bogofilter's word list, as `bogoutil -l` loads it, or a CSV table of all counts.",
        takes=click.Choice(list(FORMS)),
        under="Output",
        default="bogofilter",
    ),
    output: Path | None = OUTPUT,
    replace: bool = REPLACE_OUTPUT,
) -> None:
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


def _check(learning: Learning) -> None:
    """Raise OptionError for a senseless value."""
    learning.settings()


@configured("import", _check)
def import_(
    *,
    source: str = argument("FILE"),
    model: Path = MODEL,
    replace: bool = option(
        "Overwrite the model file if it exists.", under="Model", typed=OVERWRITES
    ),
    learning: Learning,
    strict: bool = STRICT,
    form: str = FORM,
) -> None:
    """Create a model from the counts of another program.

    If you still have the mail, train on it instead: on the same 2,000 mails an imported model
    missed 10.7 % of spam, and a trained one 1.0 %.

    FILE is bogofilter's word list as text (`bogoutil -d`) or a table as `model export --form csv`
    writes it; the first line tells which.  - is standard input.  bogofilter's words become the
    tokens that nbspam takes from the same messages.

    The model has the default calibration, which is good on mail and poor on short texts; a few
    hundred new messages, learned with train --update, make it better than it was.  Its ledger
    cannot name the messages that were counted, so give train --update only newer mail: it would
    count the others twice.

    \b
    Examples:
      bogoutil -d ~/.bogofilter/wordlist.db | nbspam model import -
      nbspam model import counts.csv -m mail.json --replace
    """
    settings = learning.settings()
    if model.exists() and not replace:
        raise already_exists(model, Remedy.REPLACE_OUTPUT)
    skips = Skips(strict)
    try:
        with _opened(source) as file:
            found = read_counts(source, file, skips, settings)
    except OSError as error:
        raise SourceError(f"{source}: cannot be read ({error.strerror}); check it") from error
    note_skips(skips)
    if found.capped:
        note(
            f"{source}: {counted(found.capped, 'token')} had a count above the number of messages,"
            " and was set to that number"
            if found.capped == 1
            else f"{source}: {counted(found.capped, 'token')} had counts above the number of"
            " messages, and were set to that number"
        )
    make_default_folder(model)
    metadata = found.model.metadata
    write_model(model, metadata, found.model.counts.items(), replace_old=replace)
    note_one_sided(model, metadata)
    _print(model, found, skips, form)


def _opened(source: str) -> BinaryIO:
    """Open what FILE names, decompressed."""
    if source != STDIN:
        return open_bytes(Source(source).path)
    stream = sys.stdin.buffer
    return decompressed(stream) if isinstance(stream, io.BufferedReader) else stream


def _print(model: Path, found: Imported, skips: Skips, form: str) -> None:
    metadata = found.model.metadata
    settings, state = metadata
    learned = dict(zip(settings.classes, state.messages, strict=True))
    if form == "json":
        fields = {
            "model": str(model),
            "messages": learned,
            "tokens": metadata.n_tokens,
            "skipped": skips.count,
            "capped": found.capped,
            "words": found.words,
            "foreign": found.foreign,
        }
        click.echo(json.dumps(fields))
        return
    per_class = ", ".join(f"{name}: {n:,}" for name, n in learned.items())
    echo_sentence(
        f"{unbroken(model)}: the counts of {counted(sum(state.messages), 'message')} ({per_class}),"
        f" {counted(metadata.n_tokens, 'token')}"
    )
    if found.words:
        echo_sentence(
            f"read {counted(found.words, 'word')}; {found.foreign:,} of them, mostly of header"
            " fields, have no token and were left out"
        )
    if rule_of(metadata).is_calibrated:
        echo_sentence(
            "the calibration is the default; a few hundred new messages, learned with train"
            " --update, refine it"
        )
    echo_sentence(
        "the ledger cannot name the messages that were counted, so train --update would count them"
        " twice: give it only newer mail, or train a new model on all the mail, which is better"
    )
