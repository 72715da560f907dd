"""`nbspam model set`, `prune` and `merge`: a model is changed, or another made of it."""

import json
from pathlib import Path
from typing import Any

import click

from nbspam.cli.configured import configured
from nbspam.cli.declared import DECIDES, OVERWRITES, WRITES, argument, option
from nbspam.cli.notes import note, note_older
from nbspam.cli.options import FILE_PATH, FORM, MODEL, OUTPUT, REPLACE_OUTPUT, Cutting
from nbspam.cli.terminal import echo_sentence, unbroken
from nbspam.errors import OptionError, counted
from nbspam.learning.remake import LITTLE, merge_files, prune_file
from nbspam.learning.update import set_cut_offs
from nbspam.store.metadata import DEFAULT


def _typed(name: str) -> Any:
    """Return the declaration of a cut-off for a command that is about it: no file sets it."""
    return Cutting._field_defaults[name]._replace(typed=DECIDES, section="Cut-offs")


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


@configured("prune")
def prune(
    *,
    model: Path = MODEL,
    min_count: int | None = option(
        "Keep the tokens that N or more messages have; that occur N times, if repeats count.",
        "N",
        takes=click.IntRange(min=1),
        under="Model",
        choice="size",
    ),
    max_tokens: int | None = option(
        "Keep the N most frequent tokens; of equally frequent ones the strongest.",
        "N",
        takes=click.IntRange(min=1),
        under="Model",
        choice="size",
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
    per_class = ", ".join(f"{name}: {n:,}" for name, n in learned.items())
    echo_sentence(
        f"{unbroken(output)}: merged {counted(len(models), 'model')} of"
        f" {counted(sum(state.messages), 'message')} ({per_class}),"
        f" {counted(metadata.n_tokens, 'token')}"
    )
