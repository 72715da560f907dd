"""A connection to Dask's scheduler, which may be one of our own with workers on this machine.

`local:N` starts both; an address (`tcp://HOST:8786`) is that of a scheduler that somebody started,
as are its workers.  Whatever goes wrong there comes back as one sentence.
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
from nbspam.errors import ModelError, NbspamError, OptionError, install_command
from nbspam.reading.cutting import ElsewhereError
from nbspam.tokens.tokenized import RULES
from nbspam.workers import Executor, ahead

A = TypeVar("A")
B = TypeVar("B")
S = TypeVar("S")
_LOCAL = "local:"
_CONNECTING = 10  # seconds in which a scheduler must answer
_WAITING = 4  # tasks per thread of the workers, done or to be done: memory does not grow
# One task of ours at a time in a process, whatever its threads: Python runs one at a time anyhow.
_one_at_a_time = Lock()
_DEATHS = 5  # of workers that had one task, until it is given up


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
        """Where a scheduler of others shows what it does; "" if it does not."""
        services = self._client.scheduler_info().get("services", {})
        is_shown = "dashboard" in services and not self._address.startswith(_LOCAL)
        return str(self._client.dashboard_link) if is_shown else ""

    @property
    def workers(self) -> int:
        """How many there are; 1 while all are lost, since others may come in their place."""
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
        with self._sentences():
            submitted = self._submitted(function, shared, items)
            if n == 1:
                for future in self._ahead(submitted):
                    value = future.result()
                    future.release()
                    yield value
                return
            for first, *rest in self._ahead(self._parts(whole, n) for whole in submitted):
                yield cast(B, (first.result(), *rest))

    def _parts(self, whole: Any, n: int) -> list[Any]:
        """Return futures of the n values of a task, the first of which is wanted at once."""
        part = partial(self._client.submit, operator.getitem, whole, pure=False)
        return [part(0, priority=10), *map(part, range(1, n))]

    def _submitted(
        self, function: Callable[[S, A], B], shared: S, items: Iterable[A]
    ) -> Iterator[Any]:
        place = self._client.submit(Packed, pickle.dumps(shared), pure=False)
        for item in items:
            yield self._client.submit(applied, _HERE, function, place, item, pure=False)

    def _ahead(self, submitted: Iterator[A]) -> Iterator[A]:
        threads = sum(self._client.nthreads().values()) or 1
        return ahead(submitted, _WAITING * threads)

    @contextmanager
    def _sentences(self) -> Iterator[None]:
        """Raise what goes wrong as one sentence."""
        try:
            yield
        except NbspamError:
            raise
        except Exception as error:
            from asyncio import CancelledError as AsyncCancelled
            from concurrent.futures import CancelledError

            from distributed import KilledWorker
            from distributed.comm.core import CommClosedError

            lost = (CancelledError, AsyncCancelled, CommClosedError, TimeoutError, ConnectionError)
            name = type(error).__name__
            if isinstance(error, KilledWorker):
                what = (
                    "several workers died one after the other at the same work, perhaps for lack of"
                    " memory; give each worker more memory and run it again"
                )
            elif isinstance(error, lost) or name.startswith(("ClosedClient", "FutureCancelled")):
                what = "the scheduler no longer answers; start it and its workers again, and run"
                what += " this again"
            elif isinstance(error, OSError):
                what = (
                    f"a worker failed ({error.strerror or error}); fix that there and run it again"
                )
            else:  # an error of this program
                raise
            raise ClusterError(f"{self._address}: {what}") from error


def _other_version(worker: str, has: str, expected: str) -> ClusterError:
    return ClusterError(
        f"the worker {worker} has {has}, and this machine has {expected}; install the same on all"
        " machines, and start the worker again"
    )


class Packed:
    """What all tasks share, as bytes until one needs it: a model may be missing on a worker.

    Dask would make it of the bytes while it talks to the worker, which ends if that fails.
    """

    def __init__(self, content: bytes) -> None:
        """Take a pickle."""
        self._content = content

    def __reduce__(self) -> tuple[object, ...]:
        """Go to another machine as bytes."""
        return Packed, (self._content,)

    @cached_property
    def value(self) -> Any:
        """What was packed; raises NbspamError."""
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
                raise ElsewhereError(error.problem) from error
            return function(value, item)
        except ElsewhereError as error:
            raise ClusterError(
                f"{error.problem} on the worker {get_worker().address}; put it where all machines"
                " find it under this name, or name it by a URL"
            ) from None


@contextmanager
def cluster_at(address: str) -> Iterator[Cluster]:
    """Connect to a scheduler, or start one; at the end, whatever happens, nothing of ours is left.

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
        raise ClusterError(
            f"{address}: Dask is not installed; install it with:"
            f" {install_command('dask distributed')}"
        ) from error
    for name in ["distributed", *logging.root.manager.loggerDict]:
        if name.split(".")[0] == "distributed":  # what goes wrong is said in a sentence
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    settings = {
        "distributed.comm.timeouts.connect": f"{_CONNECTING}s",
        "distributed.scheduler.allowed-failures": _DEATHS - 1,
        # A thread that looks what each worker does every 10 ms, for the dashboard.
        "distributed.worker.profile.enabled": False,
        # On a machine that is busy or was asleep, a worker that is only late is not started again:
        # what it keeps would be lost.  One that ends is noticed by its connection.
        "distributed.scheduler.worker-ttl": None,
        "distributed.comm.timeouts.tcp": "300s",
        # Memory is given back at 64 KiB otherwise, and each array costs the system twice its time.
        "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 64 << 20,
    }
    if address.startswith(_LOCAL):  # nobody else is to see the work, or to change it
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
            # The scheduler drops what only this client wanted.
            for closable, seconds in ((client, 2), (local, 10)):
                with suppress(Exception):
                    if closable is not None:
                        closable.close(timeout=seconds)


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Keep an interrupt until the end; threads and processes begun meanwhile never get one.

    A terminal's Ctrl-C goes to all processes, and each worker would print where it was.
    """
    from multiprocessing import resource_tracker

    # The process that cleans up after us, whatever happens, and would say that it did.  It is begun
    # before, since its start lets interrupts in again.
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
    """Start a scheduler and workers that know each other by a key made for this run.

    Whoever reaches a port of theirs could run anything as this user: each program of this machine,
    without it.  The key is in memory, and in no file or argument.
    """
    distributed = import_module("distributed")
    try:
        security = distributed.Security.temporary()
    except ImportError as error:
        raise ClusterError(
            f"{address}: cryptography is not installed, and is needed to protect the workers;"
            " install it"
            f" with: {install_command('cryptography')}"
        ) from error
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
