"""`nbspam model merge`."""

import json
from pathlib import Path

import click

from nbspam.cli.options import format_option


@click.command("merge")
@click.argument(
    "models", nargs=-1, required=True, metavar="MODEL MODEL...", type=click.Path(path_type=Path)
)
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The model to write; it may be one of those merged, with --replace.",
)
@click.option("--replace", is_flag=True, help="Overwrite the output if it is there.")
@click.option(
    "--allow-overlap",
    is_flag=True,
    help="Merge models that share messages, which then count twice.",
)
@format_option
def command(
    models: tuple[Path, ...], output: Path, replace: bool, allow_overlap: bool, form: str
) -> None:
    """Make one model of several, as if one had been trained on all their messages.

    Counts, messages and ledger are exactly those of such a training.  The calibration is put
    together from the models' own and marked so (`model info` tells): train anew on all messages if
    they are at hand, or let train --update refine it.  The spam cut-off is the highest of theirs.

    The models must have been trained with the same options.  Models that share messages are
    refused, as far as their ledgers tell.

    \b
    Examples:
      nbspam model merge mine.json hers.json -o ours.json
      nbspam model merge ours.json new.json -o ours.json --replace
    """
    from nbspam.learning.merge import merge_files
    from nbspam.store.metadata import DEFAULT

    merged = merge_files(models, output, replace, allow_overlap)
    head = merged.model.head
    notes = []
    if merged.shared:
        notes.append(f"{merged.shared} messages are in more than one of the models and count twice")
    notes += [
        f"{path}: does not remember all its messages, so whether others share them is unknown"
        for path in merged.unremembered
    ]
    if head.calibrated_by == DEFAULT:
        notes.append(
            f"{output}: none of the models was calibrated, so the calibration is the default; some"
            " hundreds of new messages, learned with nbspam train --update, refine it"
        )
    for note in notes:
        click.echo(f"nbspam: {note}", err=True)
    learned = dict(zip(head.classes, head.messages, strict=True))
    if form == "json":
        told = {
            "model": str(output),
            "merged": list(map(str, models)),
            "messages": learned,
            "tokens": head.n_tokens,
            "shared": merged.shared,
            "calibrated_by": head.calibrated_by,
            "spam_cutoff": head.spam_cutoff,
        }
        click.echo(json.dumps(told))
        return
    shown = ", ".join(f"{name}: {n}" for name, n in learned.items())
    click.echo(
        f"{output}: merged {len(models)} models of {sum(head.messages)} messages ({shown}),"
        f" {head.n_tokens} tokens"
    )
