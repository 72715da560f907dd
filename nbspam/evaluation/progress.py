"""How many messages have gone by, on a terminal; loads rich only when it draws."""

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")


@contextmanager
def progress(quiet: bool) -> Iterator["Progress"]:
    """Show on standard error, if it is a terminal, how many messages have gone by."""
    if quiet or not sys.stderr or not sys.stderr.isatty():
        yield Progress(None)
        return
    from rich.console import Console
    from rich.progress import Progress as Bar
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.completed:,.0f} messages"),
        TextColumn("{task.fields[rate]}", justify="right"),
        TimeElapsedColumn(),
    )
    with Bar(*columns, console=Console(file=sys.stderr), transient=True) as bar:
        yield Progress(bar)


class Progress:
    """Counts what passes through it."""

    def __init__(self, bar: Any) -> None:
        self._bar = bar

    def __call__(self, items: Iterable[T]) -> Iterator[T]:
        """Yield the items."""
        if self._bar is None:
            yield from items
            return
        task = self._bar.add_task("reading", total=None, rate="")
        started = time.monotonic()
        for done, item in enumerate(items, 1):
            yield item
            if done % 50 == 0:
                rate = f"{done / (time.monotonic() - started):,.0f}/s"
                self._bar.update(task, completed=done, rate=rate)
