"""`nbspam model set`, `prune`, `merge`, `export` and `import`: a model changed, or another made."""

import io
import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import click

from nbspam.cli.configured import configured
from nbspam.cli.declared import DECIDES, OVERWRITES, WRITES, argument, option
from nbspam.cli.learning_options import Learning
from nbspam.cli.notes import counts_json, counts_words, note, note_lacking, note_skips
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
from nbspam.learning.remake import LITTLE, merge_files, prune_file, read_counts
from nbspam.learning.update import set_cut_offs
from nbspam.reading.compression import decompressed, open_bytes
from nbspam.reading.source import Skips, Source
from nbspam.reading.sources import STDIN
from nbspam.scoring.rules import rule_of
from nbspam.store.lookup import read_model
from nbspam.store.metadata import DEFAULT
from nbspam.store.model_file import ModelExistsError, check_replaceable, write_model
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

    They apply to every command that uses the model, and to the server; an option of classify, eval
    or serve takes precedence.  What was learned is not changed.

    \b
    Examples:
      nbspam model set --spam-cutoff 0.99
      nbspam model set --ham-cost 9 -m mail.json
    """
    cutting = Cutting(spam_cutoff, ham_cutoff, ham_cost)
    if not cutting.is_given:
        raise OptionError("nothing to set; give --spam-cutoff, --ham-cutoff or --ham-cost")
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
        "Keep the tokens that occur in at least N messages (if repeats count: N times)."
    ),
    max_tokens: int | None = _size(
        "Keep the N most frequent tokens; among equally frequent ones the strongest."
    ),
    output: Path | None = OUTPUT,
    replace: bool = REPLACE_OUTPUT,
    form: str = FORM,
) -> None:
    """Make a model smaller by removing its rarest tokens; by default in place.

    \b
    Examples:
      nbspam model prune --min-count 2
      nbspam model prune --max-tokens 100000 -m mail.json -o small.json

    Messages, ledger and calibration are not changed, and learned messages stay known.  Forgetting
    one ignores the tokens that were removed; a removed token that occurs again is counted from 0.
    The names of receiving servers are kept.  The model no longer knows a removed token: a message
    with fewer than one known token in ten is unsure.

    In a model of 3,000 messages --min-count 2 keeps three tokens in ten and decides as well as
    before; on short texts it costs a few more errors (docs/model-file.md).  If fewer than 1 in 20
    are left, verdicts change, and a note says so.
    """
    if min_count is None and max_tokens is None:
        raise OptionError("nothing to remove; give --min-count or --max-tokens, or both")
    pruned = prune_file(model, output, min_count or 1, max_tokens, replace)
    place = output or model
    if pruned.is_little:
        note(
            f"{place}: fewer than 1 in {1 / LITTLE:.0f} tokens are left, so verdicts change; check"
            " it with nbspam eval, or train again and keep more"
        )
    if form == "json":
        click.echo(json.dumps({"model": str(place), **pruned._asdict()}))
        return
    echo_sentence(
        f"{unbroken(place)}: kept {pruned.tokens:,} of {counted(pruned.tokens_before, 'token')},"
        f" {pruned.bytes:,} of {pruned.bytes_before:,} bytes; messages, ledger and calibration are"
        " unchanged; forget ignores the tokens that were removed"
    )


@configured("merge")
def merge(
    *,
    models: tuple[Path, ...] = argument("MODEL MODEL...", nargs=-1, required=True, type=FILE_PATH),
    output: Path = option(
        "Write the merged model to this file; with --replace it may be one of the inputs.",
        "-o --output FILE",
        takes=FILE_PATH,
        under="Output",
        required=True,
        typed=WRITES,
    ),
    replace: bool = REPLACE_OUTPUT,
    allow_overlap: bool = option(
        "Merge models that share messages, which then count twice.", under="Model", typed=OVERWRITES
    ),
    form: str = FORM,
) -> None:
    """Merge models into one, as if one had been trained on all their messages.

    Counts, messages and ledger are exactly those of such a training.  The calibration is combined
    from those of the models: train on all messages again if you have them, or let train --update
    refine it.  Each cut-off is the highest of those of the models.

    The models must have been trained with the same options.  Models whose ledgers show that they
    share messages are refused.

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
            f"{output}: none of the models was calibrated, so the calibration is the default; train"
            " --update with a few hundred new messages refines it"
        )
    settings, state = metadata
    if form == "json":
        fields = {
            "model": str(output),
            "merged": list(map(str, models)),
            **counts_json(metadata),
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
        "Write bogofilter's word list, for `bogoutil -l`, or a CSV table of all counts.",
        takes=click.Choice(list(FORMS)),
        under="Output",
        default="bogofilter",
    ),
    output: Path | None = OUTPUT,
    replace: bool = REPLACE_OUTPUT,
) -> None:
    """Write a model's counts for other programs, by default to standard output.

    Neither form can hold the ledger and the calibration.  CSV has every count; bogofilter's list
    works for models of two classes.  bogofilter distinguishes upper and lower case and nbspam does
    not, so bogofilter will miss words written in upper case.

    A model made by another tokenizer, which no other command accepts, can be exported, too.

    \b
    Examples:
      nbspam model export | bogoutil -l ~/.bogofilter/wordlist.db
      nbspam model export --form csv -o counts.csv
    """
    if output is not None and output.exists() and not replace:
        raise ModelExistsError(output, Remedy.REPLACE_OUTPUT)
    try:
        text, left_out = FORMS[form](read_model(model, whole=False))
    except OptionError as error:
        raise OptionError(f"{model}: {error.problem}", error.remedy) from None
    if left_out:
        be = "be a bogofilter word and was" if left_out == 1 else "be bogofilter's words and were"
        note(f"{counted(left_out, 'token')} of {model} cannot {be} left out; --form csv writes all")

    written = text.encode()
    if output is None:
        sys.stdout.buffer.write(written)
    elif output.exists() and not output.is_file():  # /dev/stdout, a pipe
        output.write_bytes(written)
    else:
        check_replaceable(output, BEGINNINGS)
        write_atomically(Path(os.path.realpath(output)), lambda file: file.write(written))


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

    If you still have the messages, train on them instead: with the same 2,000 messages an imported
    model missed 10.7 % of spam, and a trained one 1.0 %.

    \b
    Examples:
      bogoutil -d ~/.bogofilter/wordlist.db | nbspam model import -
      nbspam model import counts.csv -m mail.json --replace

    FILE is bogofilter's word list as text (`bogoutil -d`) or a table of `model export --form csv`;
    - is standard input.  bogofilter's words become the tokens that nbspam finds in the same
    messages.

    The model has the default calibration, which is good on mail and poor on short texts; train
    --update with a few hundred new messages improves it.  Its ledger cannot name the messages that
    were counted, so give train --update only newer messages: the others would count twice.
    """
    settings = learning.settings()
    if model.exists() and not replace:
        raise ModelExistsError(model, Remedy.REPLACE_OUTPUT)
    skips = Skips(strict)
    try:
        with _opened(source) as file:
            found = read_counts(source, file, skips, settings)
    except OSError as error:
        raise SourceError(f"{source}: cannot be read ({error.strerror}); check it") from error
    note_skips(skips)
    if found.capped:
        had = "a count" if found.capped == 1 else "counts"
        note(
            f"{source}: {counted(found.capped, 'token')} had {had} above the number of messages;"
            " that number was used instead"
        )
    make_default_folder(model)
    metadata = found.model.metadata
    write_model(model, found.model, replace_old=replace)
    note_lacking(model, metadata)
    if form == "json":
        fields = {
            "model": str(model),
            **counts_json(metadata),
            "skipped": skips.count,
            "capped": found.capped,
            "words": found.words,
            "foreign": found.foreign,
        }
        click.echo(json.dumps(fields))
        return
    echo_sentence(f"{unbroken(model)}: the counts of {counts_words(metadata)}")
    if found.words:
        kept_out = ", mostly of header fields, match no token and were"
        kept_out = " matches no token and was" if found.foreign == 1 else kept_out
        echo_sentence(
            f"read {counted(found.words, 'word')}; {found.foreign:,} of them{kept_out} left out"
        )
    if rule_of(metadata).is_calibrated:
        echo_sentence(
            "the calibration is the default; train --update with a few hundred new messages refines"
            " it"
        )
    echo_sentence(
        "the ledger cannot name the messages that were counted: give train --update only newer"
        " messages, or, better, train a new model on all messages"
    )


def _opened(source: str) -> BinaryIO:
    """Open what FILE names, decompressed."""
    if source != STDIN:
        return open_bytes(Source(source).path)
    stream = sys.stdin.buffer
    return decompressed(stream) if isinstance(stream, io.BufferedReader) else stream
