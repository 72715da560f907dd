"""The progress of long work, on a terminal; and where it is done: here, or on a cluster (--dask).

rich is loaded only to draw.
"""

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from nbspam.errors import OptionError, counted
from nbspam.urls import is_url
from nbspam.workers import Executor, Passes, executor, never_pauses

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.status import Status

    from nbspam.cli.notes import NoTrace
    from nbspam.reading.byte_range import ByteRange, LinesFound
    from nbspam.reading.cutting import Cutter, RangeCount
    from nbspam.reading.source_kind import ReadingOptions

M = TypeVar("M")


class HasSize(Protocol):
    """A message, as far as progress goes."""

    @property
    def source(self) -> str:
        """Its source."""

    @property
    def size(self) -> int:
        """Its bytes or characters; 0 for a file, which its source names."""


P = TypeVar("P", bound=HasSize)
_REDRAWN = 0.1  # seconds
_COMPRESSED = (".gz", ".bz2", ".xz")


@contextmanager
def progress(
    quiet: bool, sources: Sequence[str], redrawn: float = _REDRAWN
) -> Iterator["Progress"]:
    """Show on standard error, if it is a terminal, how many messages have been read.

    Also the rate, and the time left if the size of the sources is known.
    """
    with drawn_bar(quiet) as bar:
        yield Progress(bar, None if bar is None else size_of(sources), redrawn)


@contextmanager
def drawn_bar(quiet: bool) -> Iterator["Bar | None"]:
    """Yield a bar on standard error; None if that is no terminal.

    Its tasks have fields `done` and `rate`, texts.
    """
    if quiet or not sys.stderr or not sys.stderr.isatty() or not find_spec("rich"):
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        SpinnerColumn(),
        TextColumn("{task.fields[done]}"),
        TextColumn("{task.fields[rate]}", justify="right"),
        BarColumn(),
        TimeRemainingColumn(),
    )
    # No thread of its own that redraws: processes are forked meanwhile.
    with Bar(*columns, console=Console(file=sys.stderr), transient=True, auto_refresh=False) as bar:
        yield bar


@contextmanager
def work(quiet: bool) -> Iterator["Work"]:
    """Show on standard error, if it is a terminal, what is done once the messages are read."""
    if quiet or not sys.stderr or not sys.stderr.isatty():
        yield Work(None)
        return
    from rich.console import Console

    # The spinner has a thread of its own; by now all processes have been forked.
    with Console(file=sys.stderr, highlight=False).status("") as status:
        yield Work(status)


class Work:
    """Says what is being done."""

    def __init__(self, status: "Status | None") -> None:
        """Show it in `status`, if there is one."""
        self._status = status

    def stage(self, text: str) -> None:
        """Say what is done from now on."""
        if self._status is not None:
            self._status.update(f"{text} …")

    def parts(self, text: Callable[[int], str]) -> Callable[[Iterable[int]], Iterator[int]]:
        """Return what passes the numbers of parts on, and says of each what is done.

        text: says it.
        """

        def shown(parts: Iterable[int]) -> Iterator[int]:
            for part in parts:
                self.stage(text(part))
                yield part

        return shown


@contextmanager
def steps(quiet: bool, messages: int) -> Iterator["Steps"]:
    """Show on standard error, if it is a terminal, which of several models is at work.

    messages: that each of them is tested on.
    """
    if quiet or not sys.stderr or not sys.stderr.isatty():
        yield Steps(None, messages)
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Bar(*columns, console=Console(file=sys.stderr), transient=True, auto_refresh=False) as bar:
        yield Steps(bar, messages)


class Steps:
    """Counts the models that pass through it, and the messages that each is tested on."""

    def __init__(self, bar: "Bar | None", messages: int) -> None:
        """Draw on `bar`; messages: of each model."""
        self._bar, self._messages = bar, messages

    def __call__(self, models: Sequence[M], name: Callable[[M], str]) -> Iterator[M]:
        """Yield the models, and draw; name: of a model."""
        if self._bar is None:
            yield from models
            return
        total = len(models) * self._messages
        task = self._bar.add_task("", total=total)
        for i, model in enumerate(models):
            done = i * self._messages
            text = (
                f"model {i + 1} of {len(models)}, {done:,} of {counted(total, 'message')}:"
                f" {name(model)}"
            )
            self._bar.update(task, completed=done, description=text, refresh=True)
            yield model


def size_of(sources: Sequence[str]) -> int | None:
    """Return the total size of the sources in bytes; None where it cannot be known in advance."""
    total = 0
    for source in sources:
        if is_url(source):
            return None
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
    """Counts the messages that pass through it."""

    def __init__(self, bar: "Bar | None", size: int | None, redrawn: float) -> None:
        """Draw on `bar`; size: bytes to read, if known; redrawn: seconds between two drawings."""
        self._bar, self._size, self._redrawn = bar, size, redrawn

    def __call__(self, messages: Iterable[P]) -> Iterator[P]:
        """Yield the messages, and draw."""
        if self._bar is None:
            yield from messages
            return
        task = self._bar.add_task("reading", total=self._size, done="", rate="")
        started = drawn = time.monotonic()
        passed = 0
        for done, message in enumerate(messages, 1):
            yield message
            passed += message.size or _size(message.source)
            now = time.monotonic()
            if now - drawn > self._redrawn or done == 1:
                drawn = now
                rate = f"{done / (now - started):,.0f}/s"
                read = counted(done, "message")
                self._bar.update(task, completed=passed, done=read, rate=rate, refresh=True)


@contextmanager
def shown_passes(quiet: bool, sources: Sequence[str]) -> Iterator[Passes]:
    """Show on standard error, if it is a terminal, which pass a training is in, and how far.

    The first pass reads the sources.
    """
    with drawn_bar(quiet) as bar:
        yield Passes() if bar is None else _ShownPasses(bar, size_of(sources))


class _ShownPasses(Passes):
    """Draws each pass: messages, messages per second, and the time left."""

    def __init__(self, bar: "Bar", size: int | None) -> None:
        self._bar, self._size = bar, size
        self._what, self._messages, self._done, self._began = "", 0, 0, 0.0
        self._task = bar.add_task("", total=None, done="", rate="")

    def begin(self, what: str, parts: int | None) -> None:
        """Begin a pass of so many parts; None: of the size of the sources."""
        self._what, self._messages, self._done = what, 0, 0
        self._began, self._is_sized = time.monotonic(), parts is None
        self._bar.reset(
            self._task, total=self._size if parts is None else parts, done=what, rate=""
        )
        self._bar.refresh()

    def done(self, messages: int = 0, size: int = 0) -> None:
        """One part is done, with so many messages and bytes."""
        self._messages += messages
        self._done += size if self._is_sized else 1
        text, rate = self._what, ""
        if self._messages:
            text = f"{self._what}: {counted(self._messages, 'message')}"
            rate = f"{self._messages / (time.monotonic() - self._began + 1e-9):,.0f}/s"
        self._bar.update(self._task, completed=self._done, done=text, rate=rate, refresh=True)


_LARGEST, _SMALLEST = 1 << 20, 1 << 16  # bytes of a piece of a source: its worker's memory
_ROUNDS = 8  # pieces for each worker, at least
_MOST = 20_000  # pieces: each is some work for the scheduler of a cluster


class WorkPlace(NamedTuple):
    """Where work is done."""

    where: Executor

    def cutter(self, options: "ReadingOptions", names: "Sequence[str]") -> "Cutter":
        """Return what cuts sources into pieces for those who work; names: of the sources."""
        from nbspam.cli.progress import size_of
        from nbspam.reading.cutting import Cutter

        size = _LARGEST
        if total := size_of(names):
            per_worker = total // (self.where.workers * _ROUNDS)
            size = max(min(_LARGEST, per_worker), _SMALLEST, total // _MOST)
        return Cutter(options, size, self._survey)

    def _survey(
        self, count: "RangeCount", parts: "list[ByteRange]"
    ) -> "Iterable[LinesFound | int]":
        """Return what begins in each of some ranges."""
        if len(parts) == 1:
            return [count(parts[0])]
        return self.where.map(_counted, count, parts)


def _counted(count: "RangeCount", part: "ByteRange") -> "LinesFound | int":
    return count(part)


@contextmanager
def work_place(
    dask: str | None,
    jobs: int,
    trace: "NoTrace | None" = None,
    quiet: bool = False,
    pauses: Callable[[], bool] = never_pauses,
) -> Iterator[WorkPlace]:
    """Yield where to work; a cluster is left at the end, and one of our own is gone.

    dask: the scheduler's address, or None.  trace: which a cluster cannot write.
    Raises OptionError and NbspamError.
    """
    if dask is None:
        yield WorkPlace(executor(jobs, pauses))
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
        yield WorkPlace(cluster)
