"""The parent of the workers: it forks them, restarts those that die and passes signals on.

The workers inherit the open models and the listening sockets, and the system gives each client to a
worker that waits for clients.  A worker ends by itself if the parent dies.
"""

import asyncio
import gc
import logging
import os
import signal
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from nbspam.serving import sockets
from nbspam.serving.answer import answer
from nbspam.serving.log import LOGGER
from nbspam.serving.metrics import Metrics
from nbspam.serving.models import Models, ServerConfig
from nbspam.serving.server import Worker
from nbspam.serving.spamd import REPORT, Request

_logger = logging.getLogger(LOGGER)

_SIGNALS = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD}
_RESTART_SECONDS = 1.0  # seconds between two starts of a worker
_SAVE_SECONDS = 50.0  # seconds for workers to finish a save

# Options of glibc's mallopt, from <malloc.h>, and their values: larger blocks are returned to the
# system when they are freed, and threads share one heap.
_MALLOC = {"M_MMAP_THRESHOLD": (-3, 128 << 10), "M_ARENA_MAX": (-8, 1)}


class Server:
    """The workers of one server."""

    def __init__(
        self,
        config: ServerConfig,
        models: Models,
        listeners: Sequence[socket.socket],
        metrics_listeners: Sequence[socket.socket] = (),
    ) -> None:
        """models: with the common model open."""
        self._config, self._models = config, models
        self._sockets = listeners, metrics_listeners
        self._metrics = Metrics(models.common.classes, config.n_workers)
        # process id -> the worker's number and start time
        self._workers: dict[int, tuple[int, float]] = {}

    def run(self, on_start: Callable[[], None]) -> None:
        """Serve until SIGTERM or SIGINT; tell systemd the state, if systemd asked for it.

        on_start: called when the workers are started and signals are handled.
        SIGHUP opens the models anew, as `systemctl reload` expects.
        """
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        self._alive, self._parent = os.pipe()  # closed with this process
        self._load()
        try:
            for number in range(self._config.n_workers):
                self._start(number)
            on_start()
            sockets.notify("READY=1")
            while (received := signal.sigwait(_SIGNALS)) not in (signal.SIGTERM, signal.SIGINT):
                if received == signal.SIGHUP:
                    self._signal(signal.SIGHUP)
                self._restart_dead()
            sockets.notify("STOPPING=1")
        finally:
            self._stop()
            # a second signal would end the server too early
            while signal.sigpending().intersection(_SIGNALS):
                signal.sigwait(_SIGNALS)
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            os.close(self._alive)
            os.close(self._parent)

    def _load(self) -> None:
        """Load what the first message and the first lesson need, for all workers."""
        if self._config.can_tell:
            from nbspam.learning import update as update
        answer(Request(REPORT), b"Subject: x\n\nx", self._models.version_for(""))
        _return_freed_memory()
        gc.freeze()  # otherwise a collection in a worker would copy the shared memory

    def _start(self, number: int) -> None:
        self._models.reread()  # so that a worker starts with a version that can be used
        if process := os.fork():
            self._workers[process] = number, time.monotonic()
            return
        try:
            os.close(self._parent)
            self._metrics.begin(number)
            asyncio.run(self._work())
        except BaseException as error:  # noqa: BLE001 (nothing of the parent must run here)
            _logger.warning(f"a worker failed, {type(error).__name__}: {error}; please report it")
        finally:
            logging.shutdown()
            os._exit(1)

    async def _work(self) -> None:
        loop, stop = asyncio.get_running_loop(), asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        loop.add_signal_handler(signal.SIGHUP, self._models.reread)
        loop.add_reader(self._alive, stop.set)  # the parent has died
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        await Worker(self._config, self._models, self._metrics).run(*self._sockets, stop)
        logging.shutdown()
        os._exit(0)  # without waiting for threads that still read messages

    def _signal(self, number: int) -> None:
        for process in self._workers:
            with suppress(ProcessLookupError):
                os.kill(process, number)

    def _reap(self) -> list[tuple[int, float]]:
        """Return the number and the start time of each worker that has ended."""
        ended = [process for process in self._workers if os.waitpid(process, os.WNOHANG)[0]]
        return list(map(self._workers.pop, ended))

    def _restart_dead(self) -> None:
        for number, started in self._reap():
            _logger.warning("a worker has ended and is replaced")
            time.sleep(max(0.0, _RESTART_SECONDS - (time.monotonic() - started)))
            self._start(number)

    def _stop(self) -> None:
        """Let the workers answer their clients, and end those that take too long."""
        self._signal(signal.SIGTERM)
        ends = time.monotonic() + self._config.limits.shutdown + _SAVE_SECONDS
        while self._workers and time.monotonic() < ends:
            self._reap()
            signal.sigtimedwait([signal.SIGCHLD], 0.1)
        self._signal(signal.SIGKILL)
        for process in self._workers:
            os.waitpid(process, 0)


def _return_freed_memory() -> None:
    """Have the memory of large messages returned to the system once they are answered.

    By default glibc keeps freed memory, in a heap for each thread.
    """
    # Systems without glibc have no mallopt, and some forbid what ctypes needs.
    with suppress(AttributeError, ImportError, MemoryError, OSError):
        import ctypes

        mallopt = ctypes.CDLL(None).mallopt
        for option, value in _MALLOC.values():
            mallopt(option, value)
