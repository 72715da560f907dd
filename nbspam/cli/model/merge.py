"""`nbspam model merge`."""

import json
from pathlib import Path

import click

from nbspam.cli.configured import ConfiguredCommand
from nbspam.cli.notes import note, note_older
from nbspam.cli.options import FilePath, format_option, replace_output_option
from nbspam.cli.terminal import echo_sentence, unbroken
from nbspam.errors import counted
from nbspam.learning.remake import merge_files
from nbspam.store.metadata import DEFAULT


@click.command("merge", cls=ConfiguredCommand)
@click.argument(
    "models",
    nargs=-1,
    required=True,
    metavar="MODEL MODEL...",
    type=FilePath(readable=False),
)
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="FILE",
    type=FilePath(readable=False),
    help="Write this model; with --replace it may be one of those merged.",
)
@replace_output_option
@click.option(
    "--allow-overlap",
    is_flag=True,
    help="Merge models that share messages, which will count twice.",
)
@format_option
def command(
    models: tuple[Path, ...], output: Path, replace: bool, allow_overlap: bool, form: str
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
