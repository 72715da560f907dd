"""A connection to Dask's scheduler, or to a scheduler and workers started on this machine.

`local:N` starts a scheduler and N workers; an address (`tcp://HOST:8786`) belongs to a running
scheduler with workers.  Every failure of the cluster is reported in one sentence.
"""

import logging
import operator
import pickle
import re
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from importlib import import_module
from threading import Lock
from typing import Any, TypeVar, cast

from nbspam import __version__
from nbspam.errors import ModelError, NbspamError, OptionError, needs_extra
from nbspam.reading.message import RawMessage
from nbspam.tokens.tokenized import TOKENIZER_VERSION
from nbspam.workers import Executor, read_ahead

A = TypeVar("A")
B = TypeVar("B")
S = TypeVar("S")
_LOCAL = "local:"
_CONNECT_SECONDS = 10
_TASKS_PER_THREAD = 4  # queued or finished tasks; bounds the memory
# A process runs one task at a time, whatever its number of threads, because Python runs one thread
# at a time.
_one_at_a_time = Lock()
_MAX_DEATHS = 5  # workers that may die at the same task
# Dask starts no other worker for one that dies while it starts, and the task would wait for ever.
_NO_WORKERS_SECONDS = 300


# The parts of the program on which tokens depend: the tokenizer's rules, and Python's tables of
# Unicode, which define letters.
_PYTHON = "{}.{}".format(*sys.version_info)
_THIS_PROGRAM = f"nbspam {__version__} (rules {TOKENIZER_VERSION}) on Python {_PYTHON}"


class ClusterError(NbspamError):
    """The cluster cannot be reached, or does not do its work."""


class Cluster(Executor):
    """Dask's workers."""

    is_local = False

    def __init__(self, client: Any, address: str) -> None:
        """client: an open connection; address: the user's spelling of the address."""
        self._client, self._address = client, address

    @property
    def dashboard(self) -> str:
        """The URL of the dashboard of a running scheduler; "" without one."""
        services = self._client.scheduler_info().get("services", {})
        is_shown = "dashboard" in services and not self._address.startswith(_LOCAL)
        return str(self._client.dashboard_link) if is_shown else ""

    @property
    def workers(self) -> int:
        """The number of workers; 1 while all are lost, because others may replace them."""
        with self._raise_cluster_errors():
            return max(1, len(self._client.scheduler_info(n_workers=-1)["workers"]))

    def check(self) -> None:
        """Raise ClusterError if there are no workers, or one has another version of the program."""
        workers = self._client.scheduler_info(n_workers=-1)["workers"]
        if not workers:
            raise ClusterError(
                f"{self._address}: the scheduler has no workers; start some with: dask worker"
                f" {self._address}"
            )
        with self._raise_cluster_errors():
            programs = self._client.get_versions(check=False, packages=["nbspam"])["workers"]
            for worker, versions in programs.items():
                nbspam = versions.get("packages", {}).get("nbspam")
                python = ".".join(str(versions.get("host", {}).get("python", "")).split(".")[:2])
                if nbspam in (None, "", "N/A"):
                    raise ClusterError(
                        f"the worker {worker} has no nbspam; install {_THIS_PROGRAM} there, as on"
                        " this machine, and start the worker again"
                    )
                if (nbspam, python) != (__version__, _PYTHON):
                    raise _version_error(
                        worker, f"nbspam {nbspam} on Python {python}", _THIS_PROGRAM
                    )

    def map(
        self, function: Callable[[S, A], B], shared: S, items: Iterable[A], n: int = 1
    ) -> Iterator[B]:
        """Yield function(shared, item) for each item, in order; n: see `Executor.map`.

        Raises NbspamError.
        """
        submit = partial(self._client.submit, pure=False)
        with self._raise_cluster_errors():
            place = submit(Packed, pickle.dumps(shared))
            tasks = (submit(run_on_worker, _THIS_PROGRAM, function, place, item) for item in items)
            length = _TASKS_PER_THREAD * (sum(self._client.nthreads().values()) or 1)
            if n == 1:
                for task in read_ahead(tasks, length):
                    value = task.result()
                    task.release()
                    yield value
                return
            parts = (  # the first value is needed at once
                [submit(operator.getitem, task, i, priority=10 * (i == 0)) for i in range(n)]
                for task in tasks
            )
            for first, *rest in read_ahead(parts, length):
                yield cast(B, (first.result(), *rest))

    @contextmanager
    def _raise_cluster_errors(self) -> Iterator[None]:
        """Turn other errors than NbspamError into a ClusterError of one sentence."""
        try:
            yield
        except NbspamError:
            raise
        except Exception as error:
            from concurrent.futures import CancelledError

            from distributed.comm.core import CommClosedError

            lost = CancelledError, CommClosedError, TimeoutError, ConnectionError
            name = type(error).__name__
            if name in ("KilledWorker", "NoWorkerError", "NoValidWorkerError"):
                problem = (
                    "the workers died, or wait for memory; give each worker more memory and run"
                    " this again"
                )
            elif isinstance(error, lost) or name.startswith(("ClosedClient", "FutureCancelled")):
                problem = "the scheduler no longer answers; start it and its workers again, and run"
                problem += " this again"
            elif isinstance(error, OSError):
                problem = (
                    f"a worker failed ({error.strerror or error}); fix that there and run it again"
                )
            else:  # an error of this program
                raise
            raise ClusterError(f"{self._address}: {problem}") from error


def _version_error(worker: str, has: str, expected: str) -> ClusterError:
    return ClusterError(
        f"the worker {worker} has {has}, and this machine has {expected}; install the same on all"
        " machines, and start the worker again"
    )


class Packed:
    """The object that all tasks share, unpickled by the first task that needs it.

    Otherwise Dask would unpickle the object while it communicates with the worker, and if that
    failed, for instance because a model is missing on the worker's machine, the worker would end.
    """

    def __init__(self, content: bytes) -> None:
        """content: a pickle."""
        self._content = content

    def __reduce__(self) -> tuple[object, ...]:
        """Stay pickled on the way to another machine."""
        return Packed, (self._content,)

    @cached_property
    def value(self) -> Any:
        """The object; raises NbspamError."""
        return pickle.loads(self._content)


def run_on_worker(expected: str, function: Callable[[Any, A], B], shared: Packed, item: A) -> B:
    """Call function(shared, item) on a worker with the same version; raises NbspamError."""
    from distributed import get_worker

    with _one_at_a_time:
        if expected != _THIS_PROGRAM:
            raise _version_error(get_worker().address, _THIS_PROGRAM, expected)
        problem = _missing_file_problem(item)
        try:
            value = shared.value
        except ModelError as error:
            problem = error.problem
        if problem:
            raise ClusterError(
                f"{problem} on the worker {get_worker().address}; put it where all machines find it"
                " under this name"
            )
        return function(value, item)


def _missing_file_problem(item: object) -> str:
    """Return a sentence if the folder of a batch's first file is missing here, otherwise "".

    Only the folder is checked: a missing file is skipped, because mail may be moved meanwhile.
    The rows of a table need the file itself.
    """
    raw = item[0] if isinstance(item, list) and item else None
    if not isinstance(raw, RawMessage) or isinstance(raw.content, str | bytes):
        return ""
    if type(raw) is not RawMessage and not raw.content.exists():
        return f"{raw.content}: no such file"
    folder = raw.content.parent
    if raw.content.exists() or folder.is_dir():
        return ""
    return f"{folder}: no such folder"


@contextmanager
def cluster_at(address: str) -> Iterator[Cluster]:
    """Connect to a scheduler, or start a local one, which ends with the connection.

    Raises OptionError, and ClusterError: Dask is not installed, or no scheduler or worker answers.
    """
    if not re.fullmatch(r"local:[1-9]\d{0,3}|(?!local:)(?:[a-z]+://)?[^\s/]+:\d+", address):
        raise OptionError(
            f"{address!r} is not the address of a Dask scheduler; give one, such as"
            " tcp://10.0.0.1:8786, or local:4 for four workers on this machine"
        )
    try:
        dask, distributed = map(import_module, ("dask", "distributed"))
    except ImportError as error:
        problem = needs_extra(f"{address}: a cluster", "dask and distributed", "dask")
        raise ClusterError(problem) from error
    for name in ["distributed", *logging.root.manager.loggerDict]:
        if name.split(".")[0] == "distributed":  # failures are reported in a sentence
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    settings = {
        "distributed.comm.timeouts.connect": f"{_CONNECT_SECONDS}s",
        "distributed.scheduler.allowed-failures": _MAX_DEATHS - 1,
        "distributed.scheduler.no-workers-timeout": f"{_NO_WORKERS_SECONDS}s",
        # The profiler samples each worker every 10 ms, for the dashboard.
        "distributed.worker.profile.enabled": False,
        # A late worker on a busy machine is not restarted, because its data would be lost.  If a
        # worker ends, its connection closes.
        "distributed.scheduler.worker-ttl": None,
        "distributed.comm.timeouts.tcp": "300s",
        # By default 64 KiB, which doubles the system's time for each array.
        "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 64 << 20,
    }
    if address.startswith(_LOCAL):  # other users must not see or change the work
        settings |= {f"distributed.{role}.http.routes": [] for role in ("scheduler", "worker")}
    with dask.config.set(settings):
        with _block_interrupts():
            local = _local_cluster(address) if address.startswith(_LOCAL) else None
        client = None
        try:
            try:
                client = distributed.Client(local or address, timeout=_CONNECT_SECONDS)
            except (OSError, TimeoutError) as error:
                raise ClusterError(
                    f"{address}: no scheduler answers there; start one with: dask scheduler"
                ) from error
            except TypeError as error:  # Dask's for an address tls://
                raise ClusterError(
                    f"{address}: this machine has no certificate for Dask's TLS; name its files in"
                    " ~/.config/dask/distributed.yaml"
                ) from error
            cluster = Cluster(client, address)
            cluster.check()
            yield cluster
        finally:
            # The scheduler drops only the results of this client.
            for closable, seconds in ((client, 2), (local, 10)):
                with suppress(Exception):
                    if closable is not None:
                        closable.close(timeout=seconds)


@contextmanager
def _block_interrupts() -> Iterator[None]:
    """Block interrupts; threads and processes that are started meanwhile never get one.

    A terminal's Ctrl-C goes to all processes, and each worker would print a traceback.
    """
    from multiprocessing import resource_tracker

    # The resource tracker cleans up after all processes, and warns when it does.  Starting it
    # unblocks interrupts, so it is started first.
    sys.warnoptions.append("ignore:resource_tracker:UserWarning")
    try:
        resource_tracker.ensure_running()
    finally:
        sys.warnoptions.pop()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _local_cluster(address: str) -> Any:
    """Start a scheduler and workers that authenticate each other by a key made for this run.

    Without the key, every program on this machine could run code as this user through their ports.
    The key is only in memory, not in a file or an argument.
    """
    distributed = import_module("distributed")
    try:
        security = distributed.Security.temporary()
    except ImportError as error:
        problem = needs_extra(f"{address}: protecting the workers", "cryptography", "dask")
        raise ClusterError(problem) from error
    return distributed.LocalCluster(
        n_workers=int(address.removeprefix(_LOCAL)),
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        security=security,
        scheduler_kwargs={"dashboard": False},
        dashboard_address="127.0.0.1:0",
        silence_logs=logging.CRITICAL + 1,
    )
