"""A connection to Dask's scheduler, which may be one of our own with workers on this machine.

`local:N` starts both; an address (`tcp://HOST:8786`) is that of a running scheduler with workers.
Every failure there is reported in one sentence.
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
from nbspam.reading.cutting import MissingFileError
from nbspam.tokens.tokenized import RULES
from nbspam.workers import Executor, ahead

A = TypeVar("A")
B = TypeVar("B")
S = TypeVar("S")
_LOCAL = "local:"
_CONNECTING = 10  # seconds in which a scheduler must answer
_WAITING = 4  # tasks per thread of the workers, done or to be done: memory does not grow
# A process runs one task at a time, whatever its number of threads: Python runs one anyhow.
_one_at_a_time = Lock()
_DEATHS = 5  # of workers with the same task, after which it is given up


# The program, as far as tokens depend on it: the rules of its tokenizer, and Python's tables of
# Unicode, which say what a letter is.
_PYTHON = "{}.{}".format(*sys.version_info)
_HERE = f"nbspam {__version__} (rules {RULES}) on Python {_PYTHON}"


class ClusterError(NbspamError):
    """The cluster cannot be reached, or does not do its work."""


class Cluster(Executor):
    """Dask's workers."""

    is_here = False

    def __init__(self, client: Any, address: str) -> None:
        """Use an open connection; address: as the user named it."""
        self._client, self._address = client, address

    @property
    def dashboard(self) -> str:
        """The URL of the dashboard of a running scheduler; "" without one."""
        services = self._client.scheduler_info().get("services", {})
        is_shown = "dashboard" in services and not self._address.startswith(_LOCAL)
        return str(self._client.dashboard_link) if is_shown else ""

    @property
    def workers(self) -> int:
        """The number of workers; 1 while all are lost, since others may replace them."""
        with self._sentences():
            return max(1, len(self._client.scheduler_info(n_workers=-1)["workers"]))

    def check(self) -> None:
        """Raise ClusterError: there is no worker, or one has another version of the program."""
        workers = self._client.scheduler_info(n_workers=-1)["workers"]
        if not workers:
            raise ClusterError(
                f"{self._address}: the scheduler has no workers; start some with: dask worker"
                f" {self._address}"
            )
        with self._sentences():
            programs = self._client.get_versions(check=False, packages=["nbspam"])["workers"]
            for worker, versions in programs.items():
                nbspam = versions.get("packages", {}).get("nbspam")
                python = ".".join(str(versions.get("host", {}).get("python", "")).split(".")[:2])
                if nbspam in (None, "", "N/A"):
                    raise ClusterError(
                        f"the worker {worker} has no nbspam; install {_HERE} there, as on this"
                        " machine, and start the worker again"
                    )
                if (nbspam, python) != (__version__, _PYTHON):
                    raise _other_version(worker, f"nbspam {nbspam} on Python {python}", _HERE)

    def map(
        self, function: Callable[[S, A], B], shared: S, items: Iterable[A], n: int = 1
    ) -> Iterator[B]:
        """Yield function(shared, item) of each item, in order; n: as of every executor.

        Raises NbspamError.
        """
        submit = partial(self._client.submit, pure=False)
        with self._sentences():
            place = submit(Packed, pickle.dumps(shared))
            tasks = (submit(applied, _HERE, function, place, item) for item in items)
            length = _WAITING * (sum(self._client.nthreads().values()) or 1)
            if n == 1:
                for task in ahead(tasks, length):
                    value = task.result()
                    task.release()
                    yield value
                return
            parts = (  # the first value is wanted at once
                [submit(operator.getitem, task, i, priority=10 * (i == 0)) for i in range(n)]
                for task in tasks
            )
            for first, *rest in ahead(parts, length):
                yield cast(B, (first.result(), *rest))

    @contextmanager
    def _sentences(self) -> Iterator[None]:
        """Raise what goes wrong as one sentence."""
        try:
            yield
        except NbspamError:
            raise
        except Exception as error:
            from concurrent.futures import CancelledError

            from distributed import KilledWorker
            from distributed.comm.core import CommClosedError

            lost = CancelledError, CommClosedError, TimeoutError, ConnectionError
            name = type(error).__name__
            if isinstance(error, KilledWorker):
                problem = (
                    "several workers died one after the other at the same work, perhaps for lack of"
                    " memory; give each worker more memory and run it again"
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


def _other_version(worker: str, has: str, expected: str) -> ClusterError:
    return ClusterError(
        f"the worker {worker} has {has}, and this machine has {expected}; install the same on all"
        " machines, and start the worker again"
    )


class Packed:
    """The object that all tasks share, unpickled by the first task that needs it.

    Dask would unpickle it while it talks to the worker, which ends if that fails: the object may
    need a model that is missing there.
    """

    def __init__(self, content: bytes) -> None:
        """Take a pickle."""
        self._content = content

    def __reduce__(self) -> tuple[object, ...]:
        """Stay bytes on the way to another machine."""
        return Packed, (self._content,)

    @cached_property
    def value(self) -> Any:
        """The object; raises NbspamError."""
        return pickle.loads(self._content)


def applied(expected: str, function: Callable[[Any, A], B], shared: Packed, item: A) -> B:
    """Return function(shared, item), on a worker of the same version; raises NbspamError."""
    from distributed import get_worker

    with _one_at_a_time:
        if expected != _HERE:
            raise _other_version(get_worker().address, _HERE, expected)
        try:
            try:
                value = shared.value
            except ModelError as error:
                raise MissingFileError(error.problem) from error
            return function(value, item)
        except MissingFileError as error:
            raise ClusterError(
                f"{error.problem} on the worker {get_worker().address}; put it where all machines"
                " find it under this name, or name it by a URL"
            ) from None


@contextmanager
def cluster_at(address: str) -> Iterator[Cluster]:
    """Connect to a scheduler, or start one, which always ends with the connection.

    Raises OptionError, and ClusterError: Dask is not installed, nobody answers, no worker can work.
    """
    if not re.fullmatch(r"local:[1-9]\d{0,3}|(?!local:)(?:[a-z]+://)?[^\s/]+:\d+", address):
        raise OptionError(
            f"{address!r} is not the address of a Dask scheduler; give one, such as"
            " tcp://10.0.0.1:8786, or local:4 for four workers on this machine"
        )
    try:
        dask, distributed = map(import_module, ("dask", "distributed"))
    except ImportError as error:
        what = needs_extra(f"{address}: a cluster", "dask and distributed", "dask")
        raise ClusterError(what) from error
    for name in ["distributed", *logging.root.manager.loggerDict]:
        if name.split(".")[0] == "distributed":  # failures are reported in a sentence
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    settings = {
        "distributed.comm.timeouts.connect": f"{_CONNECTING}s",
        "distributed.scheduler.allowed-failures": _DEATHS - 1,
        # It samples each worker every 10 ms, for the dashboard.
        "distributed.worker.profile.enabled": False,
        # A late worker on a busy machine is not restarted, since its data would be lost.  A worker
        # that ends is noticed by its connection.
        "distributed.scheduler.worker-ttl": None,
        "distributed.comm.timeouts.tcp": "300s",
        # Memory is given back at 64 KiB otherwise, and each array costs the system twice its time.
        "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 64 << 20,
    }
    if address.startswith(_LOCAL):  # other users must not see or change the work
        settings |= {f"distributed.{role}.http.routes": [] for role in ("scheduler", "worker")}
    with dask.config.set(settings):
        with _interrupts_held():
            local = _local_cluster(address) if address.startswith(_LOCAL) else None
        client = None
        try:
            try:
                client = distributed.Client(local or address, timeout=_CONNECTING)
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
            # The scheduler drops the results of this client alone.
            for closable, seconds in ((client, 2), (local, 10)):
                with suppress(Exception):
                    if closable is not None:
                        closable.close(timeout=seconds)


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Block interrupts until the end; threads and processes started meanwhile never get one.

    A terminal's Ctrl-C goes to all processes, and each worker would print a traceback.
    """
    from multiprocessing import resource_tracker

    # This process cleans up after all others, and warns when it does.  Starting it unblocks
    # interrupts, so it is started before.
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

    Without it, every program on this machine could run code as this user through their ports.  The
    key is in memory alone, not in a file or an argument.
    """
    distributed = import_module("distributed")
    try:
        security = distributed.Security.temporary()
    except ImportError as error:
        what = needs_extra(f"{address}: protecting the workers", "cryptography", "dask")
        raise ClusterError(what) from error
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
