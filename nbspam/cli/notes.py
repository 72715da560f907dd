"""What commands say beside their results: on standard error, and in a log if there is one."""

import contextlib
import sys
from typing import TYPE_CHECKING

import click

from nbspam.errors import one_line
from nbspam.reading.source import Skips
from nbspam.store.metadata import YOUNG, Metadata
from nbspam.tokens.tokenizer import RULES

if TYPE_CHECKING:  # importing it takes 3 ms, and classifying one message does without
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from nbspam.errors import SourceError
    from nbspam.reading.message import RawMessage
    from nbspam.scoring.verdict import Verdict
    from nbspam.store.writing import LockWait
    from nbspam.tokens.tokenized import TokenizedMessage

    _Named = tuple[str | Path, Metadata]


class NoTrace:
    """What a command tells of its messages without --log: nothing is written.  See `Trace`."""

    def begin(self, raw: bytes) -> None:
        """Take down which message it is that is to pass; raw: as much of it as was read."""

    def noted(self, raws: "Iterable[RawMessage]") -> "Iterable[RawMessage]":
        """Yield messages, and take down what identifies each."""
        return raws

    def judged(self, verdict: "Verdict") -> None:
        """Log the verdict on a message."""

    def digested(self, messages: "Iterable[TokenizedMessage]") -> "Iterable[TokenizedMessage]":
        """Yield messages to learn or to forget, and take down their digests, for `changes`."""
        return messages

    def changes(self, model: "Path", remember: bool) -> contextlib.AbstractContextManager[None]:
        """Log what changes for each message while the model is changed; if alone, also nothing.

        remember: False where the ledger does not say.
        """
        return contextlib.nullcontext()

    def failed(self, error: BaseException) -> None:
        """Log why what was begun fails."""

    def trained(self, model: "Path", n: int) -> None:
        """Log that a whole model was trained on `n` messages, in one line."""


def note(sentence: str) -> None:
    """Say a sentence, of which no name in it can break the line."""
    click.echo(f"nbspam: {one_line(sentence)}", err=True)


def lock_wait(quiet: bool) -> "LockWait":
    """Return how long to wait for a model's lock; a second of it is said, unless quiet."""
    from nbspam.store.writing import DEFAULT_WAIT, QUIET_WAIT  # to classify needs no lock

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


def older_sentences(
    model: "str | Path", metadata: Metadata, base: "_Named | None" = None, learns: bool = False
) -> "Iterator[str]":
    """Yield what newer rules of the tokenizer cost a model, and its base, if they do.

    learns: whether the model is changed.
    """
    costs = "words that are now read differently are not recognised; for full accuracy"
    if learns:
        costs = (
            "a message that is now read differently counts as new, though it was learned before,"
            " and cannot be forgotten;"
        )
    for name, (settings, _) in [(model, metadata), *([base] if base else [])]:
        if settings.rules < RULES:
            yield (
                f"{name}: was made with tokenizer rules {settings.rules}, and this program has"
                f" {RULES}: {costs} train again with nbspam train --replace"
            )


def note_older(
    model: "str | Path", metadata: Metadata, base: "_Named | None" = None, learns: bool = False
) -> None:
    """Say what `older_sentences` yields."""
    for sentence in older_sentences(model, metadata, base, learns):
        note(sentence)


def has_reader() -> bool:
    """Return whether notes go to a terminal, and not to the log of a mail program."""
    return bool(sys.stderr) and sys.stderr.isatty()


def note_young(model: "str | Path", metadata: Metadata) -> None:
    """Say, to a person at a terminal, what a young model lacks."""
    if has_reader() and not metadata.is_one_sided and metadata.missing:
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
