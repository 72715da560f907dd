"""`nbspam model set`, `prune`, `merge`, `export` and `import`: a model changed, or another made."""

import io
import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import IO, Any, BinaryIO

import click

from nbspam.cli.configured import configured
from nbspam.cli.declared import DECIDES, OVERWRITES, WRITES, argument, option
from nbspam.cli.learning_options import Learning
from nbspam.cli.notes import counts_words, note, note_older, note_one_sided, note_skips
from nbspam.cli.options import (
    FILE_PATH,
    FORM,
    MODEL,
    OUTPUT,
    REPLACE_OUTPUT,
    STRICT,
    Cutting,
    make_default_folder,
)
from nbspam.cli.terminal import echo_sentence, unbroken
from nbspam.errors import OptionError, Remedy, SourceError, counted
from nbspam.learning.remake import LITTLE, Imported, merge_files, prune_file, read_counts
from nbspam.learning.update import set_cut_offs
from nbspam.reading.compression import decompressed, open_bytes
from nbspam.reading.source import Skips, Source
from nbspam.reading.sources import STDIN
from nbspam.scoring.rules import rule_of
from nbspam.store.metadata import DEFAULT
from nbspam.store.metadata_json import load_counted
from nbspam.store.model_file import already_exists, check_replaceable, read_model, write_model
from nbspam.store.word_lists import BEGINNINGS, FORMS
from nbspam.store.writing import write_atomically


def _typed(name: str) -> Any:
    """Return the declaration of a cut-off for a command that is about it: no file sets it."""
    return Cutting._field_defaults[name]._replace(typed=DECIDES, under="Cut-offs")


@configured("set")
def set_(
    *,
    model: Path = MODEL,
    spam_cutoff: float | None = _typed("spam_cutoff"),
    ham_cutoff: float | None = _typed("ham_cutoff"),
    ham_cost: float | None = _typed("ham_cost"),
    form: str = FORM,
) -> None:
    """Change the cut-offs that are stored in a model.

    They hold for every command that uses the model, and for the server; an option of classify, eval
    or serve goes first.  What was learned stays as it is.

    \b
    Examples:
      nbspam model set --spam-cutoff 0.99
      nbspam model set --ham-cost 9 -m mail.json
    """
    cutting = Cutting(spam_cutoff, ham_cutoff, ham_cost)
    if not cutting.is_given:
        raise OptionError("there is nothing to set; give --spam-cutoff, --ham-cutoff or --ham-cost")
    cutting.check()
    cut_offs = set_cut_offs(model, cutting.of)
    if form == "json":
        fields = {"model": str(model), "spam_cutoff": cut_offs.spam, "ham_cutoff": cut_offs.ham}
        click.echo(json.dumps(fields))
        return
    click.echo(f"{model}: spam above {cut_offs.spam:g}, ham up to {cut_offs.ham:g}")


_size = partial(option, typed_as="N", takes=click.IntRange(min=1), under="Model", choice="size")


@configured("prune")
def prune(
    *,
    model: Path = MODEL,
    min_count: int | None = _size(
        "Keep the tokens that N or more messages have; that occur N times, if repeats count."
    ),
    max_tokens: int | None = _size(
        "Keep the N most frequent tokens; of equally frequent ones the strongest."
    ),
    output: Path | None = OUTPUT,
    replace: bool = REPLACE_OUTPUT,
    form: str = FORM,
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


@configured("merge")
def merge(
    *,
    models: tuple[Path, ...] = argument("MODEL MODEL...", nargs=-1, required=True, type=FILE_PATH),
    output: Path = option(
        "Write this model; with --replace it may be one of those merged.",
        "-o --output FILE",
        takes=FILE_PATH,
        under="Output",
        required=True,
        typed=WRITES,
    ),
    replace: bool = REPLACE_OUTPUT,
    allow_overlap: bool = option(
        "Merge models that share messages, which will count twice.", under="Model", typed=OVERWRITES
    ),
    form: str = FORM,
) -> None:
    """Merge models into one, as if one had been trained on all their messages.

    Counts, messages and ledger are exactly those of such a training.  The calibration is combined
    from the models' own (`model info` says so): train on all messages again if you have them, or
    let train --update refine it.  Each cut-off is the highest of theirs.

    The models must have been trained with the same options.  Models that share messages, as far as
    their ledgers show, are refused.

    \b
    Examples:
      nbspam model merge mine.json hers.json -o ours.json
      nbspam model merge ours.json new.json -o ours.json --replace
    """
    merged = merge_files(models, output, replace, allow_overlap)
    metadata = merged.model.metadata
    if merged.shared:
        verb = "is" if merged.shared == 1 else "are"
        note(f"{counted(merged.shared, 'message')} {verb} in several of the models and count twice")
    for path in merged.unremembered:
        note(f"{path}: does not remember all its messages, so whether others share them is unknown")
    if metadata.learned.calibrated_by == DEFAULT:
        note(
            f"{output}: none of the models was calibrated, so the calibration is the default; a few"
            " hundred new messages, learned with nbspam train --update, refine it"
        )
    note_older(output, metadata, learns=True)
    settings, state = metadata
    learned = dict(zip(settings.classes, state.messages, strict=True))
    if form == "json":
        fields = {
            "model": str(output),
            "merged": list(map(str, models)),
            "messages": learned,
            "tokens": metadata.n_tokens,
            "shared": merged.shared,
            "calibrated_by": state.calibrated_by,
            "spam_cutoff": settings.spam_cutoff,
            "ham_cutoff": settings.ham_cutoff,
        }
        click.echo(json.dumps(fields))
        return
    merged_models = f"merged {counted(len(models), 'model')} of"
    echo_sentence(f"{unbroken(output)}: {merged_models} {counts_words(metadata)}")


# Counts for other programs, and from them


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


@configured("import", lambda learning: learning.settings())  # raises for a senseless value
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
    echo_sentence(f"{unbroken(model)}: the counts of {counts_words(metadata)}")
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
