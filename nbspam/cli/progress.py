"""The progress of long work on a terminal, and its executor: processes here, or a cluster (--dask).

rich is loaded only to draw.
"""

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbspam.errors import OptionError, counted
from nbspam.names import is_url
from nbspam.workers import Executor, Passes, executor

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

    from nbspam.cli.notes import NoTrace
    from nbspam.reading.cutting import ByteRange, Cutter, RangeCount
    from nbspam.reading.source import ReadingOptions

REDRAWN = 0.1  # seconds between two drawings
_ONE_BY_ONE = 1_000  # up to so many parts, each is drawn
_COMPRESSED = (".gz", ".bz2", ".xz")


@contextmanager
def shown_passes(quiet: bool, sources: Sequence[str] = ()) -> Iterator[Passes]:
    """Draw progress on standard error if it is a terminal; sources: whose size is the total."""
    if quiet or not (sys.stderr and sys.stderr.isatty() and find_spec("rich")):
        yield Passes()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

    text = TextColumn("{task.description}"), TextColumn("{task.fields[rate]}", justify="right")
    columns = SpinnerColumn(), *text, BarColumn(), TimeRemainingColumn()
    console = Console(file=sys.stderr)
    # No drawing thread: processes are forked meanwhile.
    with Progress(*columns, console=console, transient=True, auto_refresh=False) as bar:
        yield _ShownPasses(bar, size_of(sources))


class _ShownPasses(Passes):
    """Draws each pass: messages, messages per second, and the time left."""

    def __init__(self, bar: "Bar", size: int | None) -> None:
        self._bar, self._size = bar, size
        self._what, self._messages, self._done = "", 0, 0
        self._began = self._drawn = 0.0
        self._task = bar.add_task("", total=None, rate="")

    def begin(self, what: str, parts: int | None, done: int = 0) -> None:
        """Begin a pass of `parts` parts (None: of the size of the sources), or its next part."""
        self._what, self._messages, self._done = what, 0, done
        self._is_sized = parts is None
        if not done or (parts or 0) < _ONE_BY_ONE:  # each of a few parts may take long
            self._drawn = 0.0
        if not done:
            self._began = time.monotonic()
            self._bar.reset(self._task, total=self._size if parts is None else parts, rate="")
        self._draw(what, "")

    def done(self, messages: int = 0, size: int = 0) -> None:
        """Count a part with its messages and bytes."""
        self._messages += messages
        self._done += size if self._is_sized else 1
        text, rate = self._what, ""
        if self._messages:
            text = ": ".join(filter(None, [text, counted(self._messages, "message")]))
            rate = f"{self._messages / (time.monotonic() - self._began + 1e-9):,.0f}/s"
        self._draw(text, rate)

    def _draw(self, text: str, rate: str) -> None:
        if (now := time.monotonic()) - self._drawn > REDRAWN:
            self._drawn = now
            self._bar.update(
                self._task, completed=self._done, description=text, rate=rate, refresh=True
            )


@contextmanager
def progress(
    quiet: bool, sources: Sequence[str]
) -> Iterator[Callable[[Iterable[Any]], Iterator[Any]]]:
    """Yield a function that passes messages on and draws their number, rate and time left.

    A message of size 0 is the file that its source names.
    """
    with shown_passes(quiet, sources) as passes:

        def with_progress(messages: Iterable[Any]) -> Iterator[Any]:
            if type(passes) is Passes:
                yield from messages
                return
            passes.begin("", None)
            for message in messages:
                yield message
                passes.done(1, message.size or _size(message.source))

        yield with_progress


def parts_shown(
    passes: Passes, text: Callable[[int, Any], str], parts: Sequence[Any]
) -> Iterator[Any]:
    """Yield parts, and draw each one's text."""
    for i, part in enumerate(parts):
        passes.begin(text(i, part), len(parts), i)
        yield part


def size_of(sources: Sequence[str]) -> int | None:
    """Return the total size of the sources in bytes; None where it cannot be known in advance."""
    total = 0
    for source in sources:
        if is_url(source):
            return None
        files = [source]
        if Path(source).is_dir():
            files = [f"{folder}/{name}" for folder, _, names in os.walk(source) for name in names]
        elif not Path(source).is_file() or source.endswith(_COMPRESSED):
            return None
        total += sum(map(_size, files))
    return total


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size  # noqa: PTH116 (one of many)
    except OSError:
        return 0


_LARGEST, _SMALLEST = 1 << 20, 1 << 16  # bytes of a piece; bounds the memory of a worker
_ROUNDS = 12  # pieces for each worker, at least
_MOST = 20_000  # pieces
# Bytes of a file whose lines are counted here: a process takes longer to start.
_SURVEYED = 32 << 20


def cutter(where: Executor, options: "ReadingOptions", names: "Sequence[str]") -> "Cutter":
    """Return a cutter of sources into pieces for the executor's workers."""
    from nbspam.reading.cutting import Cutter

    # Each piece is work for the scheduler of a cluster.
    size = largest = _LARGEST if where.is_here else 2 * _LARGEST
    if total := size_of(names):
        where.expect(total)
        size = max(min(largest, total // (where.workers * _ROUNDS)), _SMALLEST, total // _MOST)
    return Cutter(options, size, partial(_survey, where))


def _survey(where: Executor, parts: "list[ByteRange]") -> "Iterable[RangeCount]":
    """Return the messages that begin in each range."""
    return (Executor() if parts[0].whole < _SURVEYED else where).map(_counted, None, parts)


def _counted(_: None, part: "ByteRange") -> "RangeCount":
    from nbspam.reading.cutting import count

    return count(part)


@contextmanager
def work_place(
    dask: str | None, jobs: int, trace: "NoTrace | None" = None, quiet: bool = False
) -> Iterator[Executor]:
    """Yield the executor; at the end a cluster is disconnected, and a local one is closed.

    dask: the scheduler's address, or None.  trace: a log, which a cluster cannot write.
    Raises OptionError and NbspamError.
    """
    if dask is None:
        yield executor(jobs)
        return
    from nbspam.cli.notes import NoTrace, note
    from nbspam.cluster.connection import cluster_at

    if trace is not None and type(trace) is not NoTrace:
        raise OptionError(
            "--log says of each message what happens to it here, and with --dask that is elsewhere;"
            " leave one of them out"
        )
    with cluster_at(dask) as cluster:
        if cluster.dashboard and not quiet and sys.stderr is not None:
            note(f"the dashboard of the workers is {cluster.dashboard}")
        yield cluster
