"""Where the work of a command is done: in this process, in several, or on a cluster (--dask)."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from nbspam.errors import OptionError
from nbspam.workers import Executor, executor, never_pauses

if TYPE_CHECKING:  # most runs need none of it
    from nbspam.cli.notes import NoTrace
    from nbspam.cluster.connection import Cluster
    from nbspam.reading.cutting import Cutter
    from nbspam.reading.skips import Skips
    from nbspam.reading.source_kind import ReadingOptions

PIECE = 1 << 20  # bytes of a source that go to a worker at a time, where all comes back


class WorkPlace(NamedTuple):
    """Where work is done."""

    where: Executor
    cluster: "Cluster | None"  # if it is one

    def cutter(self, options: "ReadingOptions", skips: "Skips", size: int = PIECE) -> "Cutter":
        """Return what cuts sources into pieces of about so many bytes, for the cluster."""
        from nbspam.cluster.survey import surveyed_by
        from nbspam.reading.cutting import Cutter

        assert self.cluster is not None
        return Cutter(options, skips, size, surveyed_by(self.cluster))


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
        yield WorkPlace(executor(jobs, pauses), None)
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
        yield WorkPlace(cluster, cluster)
