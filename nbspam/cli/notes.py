"""What commands say on standard error beside their results."""

import sys
from typing import TYPE_CHECKING

import click

from nbspam.reading.skips import Skips
from nbspam.store.metadata import YOUNG, Metadata

if TYPE_CHECKING:  # importing it takes 3 ms, and classifying one message does without
    from pathlib import Path

    from nbspam.errors import SourceError
    from nbspam.store.lock import LockWait


def note(sentence: str) -> None:
    """Say a sentence."""
    click.echo(f"nbspam: {sentence}", err=True)


def lock_wait(quiet: bool) -> "LockWait":
    """Return how long to wait for a model's lock; a second of it is said, unless quiet."""
    from nbspam.store.lock import DEFAULT_WAIT, QUIET_WAIT  # to classify needs no lock

    return QUIET_WAIT if quiet else DEFAULT_WAIT


def note_one_sided(model: "str | Path", metadata: Metadata) -> None:
    """Say that the model has not seen both sides yet, if so."""
    if metadata.is_one_sided:
        settings, learned = metadata
        seen = [name for name, n in zip(settings.classes, learned.messages, strict=True) if n]
        what = f"only {seen[0]}" if seen else "nothing"
        note(
            f"{model}: has learned {what} so far, so every verdict is unsure; teach it the rest"
            " with nbspam train --update"
        )


def young_sentence(metadata: Metadata) -> str:
    """Return what a young model lacks; empty once it is not young."""
    missing = metadata.missing
    if not missing:
        return ""
    more = [f"{n:,} more {name}" for name, n in missing.items()]
    return (
        f"the model is young: verdicts stay careful until it has learned {YOUNG} messages of each"
        f" class, {' and '.join(more)}"
    )


def note_young(model: "str | Path", metadata: Metadata) -> None:
    """Say, to a person at a terminal, what a young model lacks."""
    on_terminal = bool(sys.stderr) and sys.stderr.isatty()
    if on_terminal and not metadata.is_one_sided and metadata.missing:
        note(f"{model}: {young_sentence(metadata)}")


def note_reading(what: "SourceError") -> None:
    """Say how a source was read, where that is no error."""
    from nbspam.cli.failure import REMEDIES  # a message on standard input needs none

    note(what.sentence(REMEDIES))


def note_skips(skips: Skips) -> None:
    """Say what was skipped."""
    if not skips.count:
        return
    from nbspam.cli.failure import REMEDIES  # a message without a bad row needs none

    for line in skips.report(REMEDIES):
        click.echo(f"nbspam: {line}" if not line.startswith(" ") else line, err=True)
