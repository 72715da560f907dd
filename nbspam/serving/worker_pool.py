"""The workers beside the first, as that one sees them: started, replaced when they die, ended."""

import asyncio
import json
import select
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from nbspam.errors import Remedy, ServingError
from nbspam.serving.connections import Connections
from nbspam.serving.current import Say
from nbspam.serving.metrics import Metrics
from nbspam.serving.worker_program import BEGUN, RECORD_LIMIT, WorkerSettings

_CODE = (  # packages are found where the server found them
    "import sys; sys.path[:] = {}\n"
    "from nbspam.serving.worker_program import be_worker; be_worker({}, {}, {})"
)
# Seconds before a worker is replaced; twice as many each time that one ends soon.
_PAUSE, _LONGEST_PAUSE, _SHORT = 1.0, 60.0, 5.0
_ANSWER = 0.5  # seconds for its counts
_END = 2.0  # seconds for its last message

CAN_SHARE = hasattr(select, "EPOLLEXCLUSIVE")  # Linux

Adopt = Callable[[socket.socket, bytes, bytes], None]
_Counts = Mapping[str, Any]


class WorkerPool:
    """Workers that share the listening sockets of this process, and hand clients to it."""

    def __init__(self, settings: WorkerSettings, say: Say) -> None:
        """Start nothing yet; settings: `n_workers` counts this process too.

        Raises ServingError where workers cannot share sockets.
        """
        if not CAN_SHARE:
            raise ServingError("several workers need Linux", Remedy.ONE_WORKER)
        self._settings, self._say = settings, say
        self._listeners: list[socket.socket] = []
        self._workers: set[_Worker] = set()
        self._gone = Metrics()  # what those had counted that have ended
        self._is_stopping = False
        self._pause = _PAUSE

    @property
    def pids(self) -> list[int]:
        """The numbers of the processes."""
        return [worker.popen.pid for worker in self._workers]

    def start(self, listeners: list[socket.socket], adopt: Adopt, connections: Connections) -> None:
        """Start the workers; adopt: called with each client that they hand on."""
        self._listeners, self._adopt, self._connections = listeners, adopt, connections
        for _ in range(self._settings.n_workers - 1):
            self._start_one()

    def _start_one(self) -> None:
        if self._is_stopping:
            return
        try:
            worker = _Worker(self._settings, [listener.fileno() for listener in self._listeners])
        except OSError as error:
            self._say(f"a worker cannot be started ({error.strerror}); trying again")
            asyncio.get_running_loop().call_later(_PAUSE, self._start_one)
            return
        self._workers.add(worker)
        loop = asyncio.get_running_loop()
        loop.add_reader(worker.control, self._hear, worker)
        self._connections.add_channel(
            worker.clients.fileno(), lambda: worker.hand_on(self._adopt, 1)
        )

    def _hear(self, worker: "_Worker") -> None:
        """Take a worker's counts, or note that it has ended."""
        if worker.hear():
            return
        self._connections.remove_channel(worker.clients.fileno())
        asyncio.get_running_loop().remove_reader(worker.control)
        worker.hand_on(self._adopt)
        self._workers.discard(worker)
        self._gone.add(worker.counts)
        code = worker.end()
        self._connections.look()
        if not self._is_stopping:
            reason = f"signal {-code}" if code < 0 else f"exit status {code}"
            self._say(f"a worker has ended ({reason}); a new one follows")
            is_short = time.monotonic() - worker.started < _SHORT
            self._pause = min(2 * self._pause, _LONGEST_PAUSE) if is_short else _PAUSE
            asyncio.get_running_loop().call_later(self._pause, self._start_one)

    async def counts(self) -> list[_Counts]:
        """Return what the workers have counted, as `Metrics.snapshot` has it."""
        workers = list(self._workers)
        asked = [worker.ask() for worker in workers]
        if asked:
            await asyncio.wait(asked, timeout=_ANSWER)
        return [self._gone.others(), *(worker.counts for worker in workers)]

    async def stop(self) -> None:
        """End the workers when they have answered their clients; those of others are handed on."""
        self._is_stopping = True
        for worker in self._workers:
            with suppress(OSError):
                worker.control.shutdown(socket.SHUT_WR)
        ends = asyncio.get_running_loop().time() + _END
        while self._workers and asyncio.get_running_loop().time() < ends:
            for worker in self._workers:
                worker.hand_on(self._adopt)
            await asyncio.sleep(0.005)
        for worker in list(self._workers):
            worker.popen.kill()
            worker.popen.wait()
            self._hear(worker)


class _Worker:
    """One process; raises OSError when it cannot be started."""

    def __init__(self, settings: WorkerSettings, listeners: list[int]) -> None:
        kind = socket.SOCK_SEQPACKET
        self.control, control = socket.socketpair(socket.AF_UNIX, kind)
        self.clients, clients = socket.socketpair(socket.AF_UNIX, kind)
        # What it has counted, the last that was heard of it.
        self.counts: _Counts = Metrics().snapshot(0) | {"cpu": 0.0, "resident": 0}
        self._asked: list[asyncio.Future[None]] = []
        self.started = time.monotonic()
        try:
            with control, clients:
                self.control.setblocking(False)
                self.clients.setblocking(False)
                self.control.send(settings.as_json().encode())
                handles = control.fileno(), clients.fileno(), listeners
                self.popen = subprocess.Popen(
                    [sys.executable, "-c", _CODE.format(sys.path, *handles)],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    pass_fds=[control.fileno(), clients.fileno(), *listeners],
                )
        except BaseException:
            self.control.close()
            self.clients.close()
            raise

    def ask(self) -> "asyncio.Future[None]":
        """Ask for the counts; they are there when the future is done."""
        asked: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._asked.append(asked)
        with suppress(OSError):
            self.control.send(b"?")
        return asked

    def hear(self) -> bool:
        """Take the counts; return False when it has ended."""
        try:
            record = self.control.recv(RECORD_LIMIT)
        except BlockingIOError:
            return True
        except OSError:
            record = b""
        for asked in self._asked:
            if not asked.done():
                asked.set_result(None)
        self._asked.clear()
        if record:
            self.counts = json.loads(record)
        return bool(record)

    def hand_on(self, adopt: Adopt, most: int | None = None) -> None:
        """Hand on the clients that wait in the channel; most: how many."""
        while most != 0:
            try:
                record, handles, _, _ = socket.recv_fds(self.clients, RECORD_LIMIT, 1)
            except OSError:
                return
            if not record:
                return
            for handle in handles:
                connection = socket.socket(fileno=handle)
                connection.setblocking(False)
                is_begun = record.startswith(BEGUN)
                adopt(connection, record[1:] if is_begun else b"", b"" if is_begun else record[1:])
            most = None if most is None else most - 1

    def end(self) -> int:
        """Free what it leaves; return its exit code."""
        self.control.close()
        self.clients.close()
        try:
            return self.popen.wait(_ANSWER)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            return self.popen.wait()


def shared_loop(listeners: list[socket.socket], is_shared: bool) -> asyncio.AbstractEventLoop:
    """Return an event loop; one of the processes that wait for a client is woken, not all.

    is_shared: whether other processes accept from the listeners too.
    """
    if not is_shared:
        return asyncio.new_event_loop()
    return asyncio.SelectorEventLoop(_SharingSelector({one.fileno() for one in listeners}))


if CAN_SHARE:

    class _SharingSelector(selectors.EpollSelector):
        """Epoll, with EPOLLEXCLUSIVE for shared listeners."""

        def __init__(self, shared: set[int]) -> None:
            super().__init__()
            self._shared = shared

        def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
            key = super().register(fileobj, events, data)
            if key.fd in self._shared:  # the flag can only be set with a new entry
                poll: select.epoll = self._selector  # type: ignore[attr-defined]
                poll.unregister(key.fd)
                poll.register(key.fd, select.EPOLLIN | select.EPOLLEXCLUSIVE)
            return key
