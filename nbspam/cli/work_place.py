"""Where the work of a command is done: in this process, in several, or on a cluster (--dask)."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from nbspam.errors import OptionError
from nbspam.workers import Executor, executor, never_pauses

if TYPE_CHECKING:  # most runs need none of it
    from collections.abc import Iterable, Sequence

    from nbspam.cli.notes import NoTrace
    from nbspam.reading.byte_range import ByteRange, LinesFound
    from nbspam.reading.cutting import Cutter, RangeCount
    from nbspam.reading.source_kind import ReadingOptions

_LARGEST, _SMALLEST = 1 << 20, 1 << 16  # bytes of a piece of a source: its worker's memory
_ROUNDS = 12  # pieces for each worker, at least
_MOST = 20_000  # pieces


class WorkPlace(NamedTuple):
    """Where work is done."""

    where: Executor

    def cutter(self, options: "ReadingOptions", names: "Sequence[str]") -> "Cutter":
        """Return what cuts sources into pieces for those who work; names: of the sources."""
        from nbspam.cli.progress import size_of
        from nbspam.reading.cutting import Cutter

        # Each piece is work for the scheduler of a cluster.
        size = largest = _LARGEST if self.where.is_here else 2 * _LARGEST
        if total := size_of(names):
            per_worker = total // (self.where.workers * _ROUNDS)
            size = max(min(largest, per_worker), _SMALLEST, total // _MOST)
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
