"""What commands say on standard error beside their results."""

from pathlib import Path

import click

from nbspam.reading.skips import Skips
from nbspam.store.metadata import Metadata


def note(sentence: str) -> None:
    """Say a sentence."""
    click.echo(f"nbspam: {sentence}", err=True)


def note_one_sided(model: Path, metadata: Metadata) -> None:
    """Say that the model has not seen both sides yet, if so."""
    if metadata.is_one_sided:
        settings, learned = metadata
        seen = [name for name, n in zip(settings.classes, learned.messages, strict=True) if n]
        what = f"only {seen[0]}" if seen else "nothing"
        note(
            f"{model}: has learned {what} so far, so every verdict is unsure; teach it the rest"
            " with nbspam train --update"
        )


def note_skips(skips: Skips) -> None:
    """Say what was skipped."""
    if not skips.count:
        return
    from nbspam.cli.failure import REMEDIES  # a message without a bad row needs none

    for line in skips.report(REMEDIES):
        click.echo(f"nbspam: {line}" if not line.startswith(" ") else line, err=True)
