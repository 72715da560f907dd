"""The progress of a training on a cluster, on a terminal: pass by pass, from all workers."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from nbspam.cli.progress import drawn_bar
from nbspam.cluster.training import Passes
from nbspam.errors import counted

if TYPE_CHECKING:
    from rich.progress import Progress as Bar


@contextmanager
def shown_passes(quiet: bool) -> Iterator[Passes]:
    """Show on standard error, if it is a terminal, which pass the training is in, and how far."""
    with drawn_bar(quiet) as bar:
        yield Passes() if bar is None else ShownPasses(bar)


class ShownPasses(Passes):
    """Draws each pass: messages, messages per second, and the time left."""

    def __init__(self, bar: "Bar") -> None:
        """Draw on `bar`."""
        self._bar = bar
        self._what, self._messages, self._parts, self._began = "", 0, 0, 0.0
        self._task = bar.add_task("", total=None, done="", rate="")

    def begin(self, what: str, parts: int) -> None:
        """Begin a pass of so many parts."""
        self._what, self._messages, self._parts = what, 0, 0
        self._began = time.monotonic()
        self._bar.reset(self._task, total=parts, done=what, rate="")
        self._bar.refresh()

    def done(self, messages: int = 0, size: int = 0) -> None:
        """One part is done, with so many messages and bytes."""
        self._messages += messages
        self._parts += 1
        text, rate = self._what, ""
        if self._messages:
            text = f"{self._what}: {counted(self._messages, 'message')}"
            rate = f"{self._messages / (time.monotonic() - self._began + 1e-9):,.0f}/s"
        self._bar.update(self._task, completed=self._parts, done=text, rate=rate, refresh=True)
