"""How far long work has come, on a terminal; loads rich only when it draws."""

import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nbspam.workers import TokenizedMessage

_REDRAWN = 0.1  # seconds
_COMPRESSED = (".gz", ".bz2", ".xz")


@contextmanager
def progress(quiet: bool, sources: Sequence[str]) -> Iterator["Progress"]:
    """Show on standard error, if it is a terminal, how many messages have gone by.

    And how many do in a second, and the time left, if the sources tell how large they are.
    """
    if quiet or not sys.stderr or not sys.stderr.isatty():
        yield Progress(None, None)
        return
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        SpinnerColumn(),
        TextColumn("{task.fields[done]:,.0f} messages"),
        TextColumn("{task.fields[rate]}", justify="right"),
        BarColumn(),
        TimeRemainingColumn(),
    )
    # No thread of its own that redraws: processes are forked meanwhile.
    with Bar(*columns, console=Console(file=sys.stderr), transient=True, auto_refresh=False) as bar:
        yield Progress(bar, size_of(sources))


def size_of(sources: Sequence[str]) -> int | None:
    """Return how many bytes the sources have; None where that cannot be known beforehand."""
    total = 0
    for source in sources:
        files = [source]
        if Path(source).is_dir():
            files = [
                str(Path(folder) / name) for folder, _, names in os.walk(source) for name in names
            ]
        elif not Path(source).is_file() or source.endswith(_COMPRESSED):
            return None
        total += sum(map(_size, files))
    return total


def _size(path: str | Path) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0


class Progress:
    """Counts what passes through it."""

    def __init__(self, bar: Any, size: int | None) -> None:
        self._bar = bar
        self._size = size

    def __call__(self, messages: Iterable[TokenizedMessage]) -> Iterator[TokenizedMessage]:
        """Yield the messages."""
        if self._bar is None:
            yield from messages
            return
        task = self._bar.add_task("reading", total=self._size, done=0, rate="")
        started = drawn = time.monotonic()
        passed = 0
        for done, message in enumerate(messages, 1):
            yield message
            content = message.raw.content
            passed += _size(content) if isinstance(content, Path) else len(content)
            now = time.monotonic()
            if now - drawn > _REDRAWN or done == 1:
                drawn = now
                rate = f"{done / (now - started):,.0f}/s"
                self._bar.update(task, completed=passed, done=done, rate=rate, refresh=True)
