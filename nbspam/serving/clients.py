"""The clients of listening sockets: accepted, heard and answered within bounds of time and memory.

One thread per client.  One thread at a time accepts; it then serves that client, and the next
thread accepts.  No client is accepted while `Limits.connections` are served; others wait in the
system's queue.

A thread that waits for its client looks at the clock now and then.  While all places are taken, a
client that keeps the server waiting for longer than `Limits.grace` is evicted.  A client that the
server makes wait (for memory, for its turn among large messages, or until its message is learned)
is idle: it stays connected, and leaves its place to others.  Afterwards it is served at once, even
if there are more clients then.
"""

import io
import logging
import math
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

from nbspam.serving.sockets import BACKLOG, refuse_more
from nbspam.serving.spamd import TEMPORARY, RefusedError

_logger = logging.getLogger(__name__)

_BUFFER, _CHUNK = 64 << 10, 256 << 10  # bytes read at a time: of the head, and of a message
# Bytes a second that a client must send or read where others wait for what it holds.
_LEAST_RATE = 1 << 20
_DRAIN = 2.0  # seconds to go on reading after the reply, so that the client can read it
# Seconds between two looks at the clock; of more clients than these each looks as much less often:
# 256 looks a second, not 4,000 for a thousand clients.
_TICK, _TICKING = 0.25, 64
_SPARE = 8  # threads that stay when they have nothing to do
_LEAVING = 1.0  # seconds for the threads of clients whose time is over


class Limits(NamedTuple):
    """Sizes, numbers and times that bound what clients may use."""

    # Bytes of a message, as sent and decompressed; twice what the reader looks at.
    max_size: int = 32 << 20
    timeout: float = 60.0  # seconds for a client to send its request, and as many to read the reply
    # Clients served at a time; more wait in the system's queue.  As many more may wait for the
    # server with a large message, and as many with a message to learn.
    connections: int = 64
    # Seconds that a client may keep others waiting: for a connection, or for room.
    grace: float = 2.0
    shutdown: float = 10.0  # seconds for clients to finish when the server stops
    retry: float = 1.0  # seconds before accepting again after the system refused to
    learning: float = 30.0  # seconds that a message waits to be learned, or for the model's lock
    reading: float = 60.0  # seconds to read and classify one message
    max_users: int = 1_000  # users' models beside which no client's message makes another


class MemoryBudget:
    """Bytes that large messages share: first come, first served.

    A message reserves its bytes before it is read and releases them when its answer is sent.
    Reservations are granted in order, so small ones cannot keep a large one waiting for ever.
    """

    def __init__(self, size: int, limits: Limits) -> None:
        self._size, self._limits = size, limits
        self._changed = threading.Condition()
        self._is_closed = False
        self.queue: list[object] = []  # the clients that wait
        self.reserved: dict[object, int] = {}  # client -> bytes

    @property
    def used(self) -> int:
        """How many bytes are reserved."""
        return sum(list(self.reserved.values()))

    def reserve(self, client: object, n: int) -> None:
        """Reserve `n` bytes, after the earlier clients have theirs; n: at most the whole budget.

        Raises RefusedError after a time, or when too many messages are here.
        """

        def is_next() -> bool:
            return self._is_closed or (self.queue[0] is client and self.used + n <= self._size)

        with self._changed:
            if len(self.reserved) + len(self.queue) >= self._limits.connections:
                raise RefusedError(TEMPORARY, "(too many large messages at once)")
            self.queue.append(client)
            is_free = self._changed.wait_for(is_next, self._limits.timeout)
            self.queue.remove(client)
            self._changed.notify_all()
            if self._is_closed or not is_free:
                raise RefusedError(TEMPORARY, "(there is no room for a large message)")
            self.reserved[client] = n

    def release(self, client: object) -> None:
        """Release what a client has reserved, if anything."""
        if client in self.reserved:
            with self._changed:
                del self.reserved[client]
                self._changed.notify_all()

    def close(self) -> None:
        """Refuse the clients that wait."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()


class Client(io.RawIOBase):
    """One client, connected; `stream` reads what it sends."""

    def __init__(self, connection: socket.socket, clients: "Clients") -> None:
        """clients: the group whose limits hold."""
        connection.setblocking(False)
        self._socket, self._clients = connection, clients
        self.stream = io.BufferedReader(self, _BUFFER)
        self._has_deadline = False
        self._ends = math.inf  # by the monotonic clock: when it is waited for no longer
        self._due = 0.0  # when it should have sent, or read, what it has by now
        self.is_idle = False
        self.is_read_whole = False  # whether it has said all it has to say

    @contextmanager
    def deadline(self, seconds: float = math.inf) -> Iterator[None]:
        """Bound the time in which the client sends or reads; what takes longer raises TimeoutError.

        At other times nothing waits for the client.
        """
        self._due = now = time.monotonic()
        self._ends = now + min(seconds, self._clients.limits.timeout)
        self._has_deadline = True
        try:
            self._progress(0)
            yield
        finally:
            self._has_deadline = False

    def readable(self) -> bool:
        """Tell `stream` that it can read."""
        return True

    def readinto(self, buffer: memoryview | bytearray) -> int | None:  # type: ignore[override]
        """Read some bytes, for `stream`; raises ConnectionError, TimeoutError when it is late."""
        while True:
            try:
                n = self._socket.recv_into(buffer, min(len(buffer), _CHUNK))
            except BlockingIOError:
                if not self._has_deadline:
                    return None
                self._wait(select.POLLIN)
            except OSError as error:  # whatever the network says, such as EHOSTUNREACH: it has gone
                raise ConnectionError(*error.args) from None
            else:
                self._progress(n)
                return n

    def body(self, size: int, begun: bytes | bytearray = b"") -> bytearray:
        """Read a message of `size` bytes, or up to the end of what the client sends.

        begun: how it begins, which was read already.
        """
        # Allotted at once: a buffer that grows takes an eighth more, and is copied now and then.
        # All of it takes memory from now on, for which a large message has taken room.
        body, n = bytearray(size), len(begun)
        body[:n] = begun
        with memoryview(body) as view:
            n += self.stream.readinto(view[n:])
        del body[n:]
        return body

    def send(self, reply: bytes) -> None:
        """Write the whole reply; raises OSError, of which TimeoutError is one."""
        with self.deadline(), memoryview(reply) as view:
            at = 0
            while at < len(view):
                try:
                    n = self._socket.send(view[at : at + _CHUNK])
                except BlockingIOError:
                    self._wait(select.POLLOUT)
                else:
                    at += n
                    self._progress(n)

    def drain(self, most: int) -> None:
        """Read for a while until the client has closed, unless it was heard; raises OSError.

        most: bytes.  Closing with unread data resets the connection, and may lose the reply.
        """
        if self.is_read_whole:
            return
        self._socket.shutdown(socket.SHUT_WR)
        chunk = bytearray(_CHUNK)
        with self.deadline(_DRAIN):
            while most > 0 and (n := self.readinto(chunk)):
                most -= n

    def _progress(self, n: int) -> None:
        """Note that the client has sent or read `n` bytes; raises TimeoutError if it is late."""
        now = time.monotonic()
        if self._has_deadline and now >= min(self._ends, self._clients.ends):
            raise TimeoutError
        self._due = min(self._due + n / _LEAST_RATE, now)

    def _wait(self, event: int) -> None:
        """Wait for an event, a little while; raises TimeoutError if the client is late."""
        self._progress(0)
        now = time.monotonic()
        if now - self._due >= self._clients.limits.grace and self._clients.blocks_others(self):
            raise TimeoutError
        poll = select.poll()
        poll.register(self._socket, event)
        # A late client is seen soon, however many there are, and so is the server's end.
        ends = min(self._ends, self._clients.ends, now + 2 * self._clients.limits.grace)
        tick = _TICK * max(1.0, self._clients.n_open / _TICKING)
        poll.poll(1000 * max(0.0, min(tick, ends - now)))

    @contextmanager
    def idle(self) -> Iterator[None]:
        """Leave the client's place to others while the server makes it wait."""
        self.is_idle = True
        self._clients.notify()
        try:
            yield
        finally:
            self.is_idle = False

    def close(self) -> None:
        """Close the connection."""
        if not self.closed:
            self.stream.detach()  # else both would wait for Python to look for circles
            super().close()
            self._socket.close()


class Clients:
    """Accepts clients, and serves each in a thread of its own."""

    def __init__(
        self, limits: Limits, serve: Callable[[Client], None], budgets: Sequence[MemoryBudget] = ()
    ) -> None:
        """Accept nothing yet.

        serve: called with each client; it does not raise.
        budgets: of the large messages of these clients.
        """
        self.limits, self._serve, self._budgets = limits, serve, budgets
        self.ends = math.inf  # by the monotonic clock: when no client is answered any more
        self._changed = threading.Condition()
        self._open: set[Client] = set()
        self._accepted = deque[socket.socket]()  # not served yet
        self._accepting = threading.Lock()  # of the thread that waits for clients
        self._n_spare = 0  # threads that wait for their turn to accept
        self._is_closing = False
        self._poll = select.poll()
        self._listeners: dict[int, socket.socket] = {}

    @property
    def n_open(self) -> int:
        """The number of open connections."""
        return len(self._open)

    @property
    def n_idle(self) -> int:
        """How many of them wait for the server, and leave their places to others."""
        return sum(client.is_idle for client in list(self._open))

    @property
    def _is_full(self) -> bool:
        return self.n_open - self.n_idle >= self.limits.connections

    def blocks_others(self, client: Client) -> bool:
        """Return whether others wait for what a client holds."""
        return self._is_full or any(
            budget.queue and client in budget.reserved for budget in self._budgets
        )

    def notify(self) -> None:
        """Wake the threads that wait for a place, for the last client, or for the end."""
        with self._changed:
            self._changed.notify_all()

    def listen(self, listeners: Sequence[socket.socket]) -> None:
        """Accept the clients of these sockets from now on, until `close`."""
        if listeners:
            self._wake, self._woken = socket.socketpair()
            self._listeners = {listener.fileno(): listener for listener in listeners}
            for handle in (self._woken.fileno(), *self._listeners):
                self._poll.register(handle, select.POLLIN)
            self._start_thread()

    def close(self, ends: float) -> None:
        """Accept the clients in the queue, close the listeners and wait for the last client.

        ends: by the monotonic clock, when no client is waited for any more.
        """
        if self._listeners:
            self.ends = ends
            self._wake.send(b"x")  # before the thread that accepts may close it
            self._is_closing = True
            self.notify()
            self.join(ends - time.monotonic())

    def join(self, seconds: float = _LEAVING) -> None:
        """Wait for the last client, a little while."""
        with self._changed:
            self._changed.wait_for(
                lambda: not (self._listeners or self._accepted or self._open), max(0, seconds)
            )

    def _start_thread(self) -> None:
        try:
            threading.Thread(target=self._work, daemon=True).start()
        except RuntimeError:
            _logger.warning("cannot start a thread; allow the server more threads")

    def _work(self) -> None:
        """Serve one client after the other, while this thread is needed."""
        while self._n_spare < _SPARE:
            with self._changed:
                self._n_spare += 1
            with self._accepting:
                client = self._next()
            with self._changed:
                self._n_spare -= 1
            if client is None:
                return
            if not self._n_spare:
                self._start_thread()
            try:
                self._serve(client)
            finally:
                client.close()
                for budget in self._budgets:
                    budget.release(client)
                self._open.remove(client)
                self.notify()

    def _next(self) -> Client | None:
        """Return a client as soon as it can be served; None after the last one."""
        while True:
            with self._changed:
                self._changed.wait_for(
                    lambda: not self._is_full or (self._is_closing and self._listeners)
                )
            if self._is_closing and self._listeners:
                self._accepted.extend(self._accept_rest())
                continue
            if self._listeners and not self._accepted:
                self._accepted.extend(self._accept())
            if self._accepted and time.monotonic() >= self.ends:
                self._accepted.popleft().close()
            elif self._accepted:
                client = Client(self._accepted.popleft(), self)
                self._open.add(client)
                return client
            elif not self._listeners:
                self.notify()
                return None

    def _accept(self) -> Iterator[socket.socket]:
        """Wait for clients, and accept one at each socket that has some."""
        for handle, _ in self._poll.poll():
            if handle not in self._listeners:  # woken: this is the end
                return
            try:
                yield self._listeners[handle].accept()[0]
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                continue
            except OSError as error:  # no file descriptor is left, or no memory
                _logger.warning(f"cannot accept connections ({error.strerror}); raise ulimit -n")
                with self._changed:
                    self._changed.wait_for(lambda: self._is_closing, self.limits.retry)

    def _accept_rest(self) -> Iterator[socket.socket]:
        """Accept the clients in the queues, and close the listeners."""
        for listener in self._listeners.values():
            with suppress(OSError):
                refuse_more(listener)
                for _ in range(BACKLOG):  # more than the queue holds come without end
                    yield listener.accept()[0]
            listener.close()
        self._listeners = {}
        self._woken.close()
        self._wake.close()
