"""The progress of long work on a terminal, and the work's executor: processes, or a Dask cluster.

rich is loaded only to draw.
"""

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbspam.errors import format_count
from nbspam.workers import Executor, ProgressPasses, make_executor

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

    from nbspam.learning.settings import TrainingSettings
    from nbspam.learning.training import TrainingRun

REDRAW_SECONDS = 0.1
_MAX_PARTS_DRAWN = 1_000  # a pass with fewer parts is drawn at each part
_COMPRESSED_ENDINGS = (".gz", ".bz2", ".xz")


@contextmanager
def progress_passes(quiet: bool, sources: Sequence[str] = ()) -> Iterator[ProgressPasses]:
    """Draw progress on standard error if it is a terminal; sources: their size is the total."""
    if quiet or not (sys.stderr and sys.stderr.isatty() and find_spec("rich")):
        yield ProgressPasses()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

    text = TextColumn("{task.description}"), TextColumn("{task.fields[rate]}", justify="right")
    columns = SpinnerColumn(), *text, BarColumn(), TimeRemainingColumn()
    console = Console(file=sys.stderr)
    # No drawing thread: processes are forked meanwhile.
    with Progress(*columns, console=console, transient=True, auto_refresh=False) as bar:
        yield _ShownPasses(bar, size_of(sources))


class _ShownPasses(ProgressPasses):
    """Draws each pass: messages, messages per second, and the time left."""

    def __init__(self, bar: "Bar", size: int | None) -> None:
        self._bar, self._size = bar, size
        self._title, self._messages, self._done = "", 0, 0
        self._began = self._drawn = 0.0
        self._task = bar.add_task("", total=None, rate="")

    def start(self, title: str, parts: int | None, done: int = 0) -> None:
        """Start a pass of `parts` parts (None: the sources' bytes), or its next part."""
        self._title, self._messages, self._done = title, 0, done
        self._is_sized = parts is None
        if not done or (parts or 0) < _MAX_PARTS_DRAWN:  # with few parts, each may take long
            self._drawn = 0.0
        if not done:
            self._began = time.monotonic()
            self._bar.reset(self._task, total=self._size if parts is None else parts, rate="")
        self._draw(title, "")

    def advance(self, messages: int = 0, size: int = 0) -> None:
        """Count a part with its messages and bytes."""
        self._messages += messages
        self._done += size if self._is_sized else 1
        text, rate = self._title, ""
        if self._messages:
            text = ": ".join(filter(None, [text, format_count(self._messages, "message")]))
            rate = f"{self._messages / (time.monotonic() - self._began + 1e-9):,.0f}/s"
        self._draw(text, rate)

    def _draw(self, text: str, rate: str) -> None:
        if (now := time.monotonic()) - self._drawn > REDRAW_SECONDS:
            self._drawn = now
            self._bar.update(
                self._task, completed=self._done, description=text, rate=rate, refresh=True
            )


@contextmanager
def progress(
    quiet: bool, sources: Sequence[str]
) -> Iterator[Callable[[Iterable[Any]], Iterator[Any]]]:
    """Yield a function that passes messages on and draws their number, rate and time left.

    A message of size 0 is a whole file, so its source is the path.
    """
    with progress_passes(quiet, sources) as passes:

        def with_progress(messages: Iterable[Any]) -> Iterator[Any]:
            if type(passes) is ProgressPasses:
                yield from messages
                return
            passes.start("", None)
            for message in messages:
                yield message
                passes.advance(1, message.size or _size(message.source))

        yield with_progress


def progress_parts(
    passes: ProgressPasses, text: Callable[[int, Any], str], parts: Sequence[Any]
) -> Iterator[Any]:
    """Yield the parts, and draw a text for each part."""
    for i, part in enumerate(parts):
        passes.start(text(i, part), len(parts), i)
        yield part


def size_of(sources: Sequence[str]) -> int | None:
    """Return the total size of the sources in bytes; None if it is not known in advance."""
    total = 0
    for source in sources:
        files = [source]
        if Path(source).is_dir():
            files = [f"{folder}/{name}" for folder, _, names in os.walk(source) for name in names]
        elif not Path(source).is_file() or source.endswith(_COMPRESSED_ENDINGS):
            return None
        total += sum(map(_size, files))
    return total


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size  # noqa: PTH116 (one of many)
    except OSError:
        return 0


def training_run(
    executor: Executor, settings: "TrainingSettings", passes: ProgressPasses
) -> "TrainingRun":
    """Return a training run on this machine, or on a cluster."""
    if executor.is_local:
        from nbspam.learning.training import TrainingRun

        return TrainingRun(executor, settings, passes)
    from nbspam.cluster.training import ClusterRun

    return ClusterRun(executor, settings, passes)


@contextmanager
def open_executor(dask: str | None, jobs: int, quiet: bool = False) -> Iterator[Executor]:
    """Yield an executor: local processes, or a cluster, which is disconnected at the end.

    dask: the scheduler's address, or None for local processes.
    Raises OptionError and NbspamError.
    """
    if dask is None:
        yield make_executor(jobs)
        return
    from nbspam.cli.notes import note
    from nbspam.cluster.connection import cluster_at

    with cluster_at(dask) as cluster:
        if cluster.dashboard and not quiet and sys.stderr is not None:
            note(f"the dashboard of the workers is {cluster.dashboard}")
        yield cluster
