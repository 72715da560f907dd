"""The clients of listening sockets: accepted, heard and answered within bounds of time and memory.

A thread for each.  One thread at a time waits at the door; whoever accepts a client serves it, and
the next thread takes its place there.  No client is accepted while `Limits.connections` are served;
others wait in the system's queue.

Whoever waits for a client looks at the clock now and then.  While all places are taken, a client
that keeps the server waiting for longer than `Limits.grace` is evicted.  A client that the server
makes wait (for room, for its turn among large messages, or until its message is learned) is parked:
it stays connected, and leaves its place to others.  Afterwards it is served at once, even if there
are more clients then.
"""

import io
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

Say = Callable[[str], None]

_BUFFER, _CHUNK = 64 << 10, 256 << 10  # bytes read at a time: of what is small, and of what is not
# Bytes a second that a client must send or read where others wait for what it holds.
_LEAST_RATE = 1 << 20
_LINGER = 2.0  # seconds to go on reading after the reply, so that the client can read it
# Seconds between two looks at the clock; of more clients than these each looks as much less often:
# 256 looks a second, not 4,000 for a thousand clients.
_TICK, _TICKING = 0.25, 64
_IDLE = 8  # threads that stay when they have nothing to do
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
    reading: float = 60.0  # seconds to read and judge one message
    max_users: int = 1_000  # users' models beside which no client's message makes another


class Room:
    """A number of bytes that large messages share: first come, first served.

    A message takes its bytes before it is read and gives them back when its answer is sent.  A
    large message does not wait for ever because small ones find room.
    """

    def __init__(self, size: int, limits: Limits) -> None:
        self._size, self._limits = size, limits
        self._changed = threading.Condition()
        self._is_closed = False
        self.queue: list[object] = []  # who waits
        self.taken: dict[object, int] = {}  # who has how many bytes

    @property
    def used(self) -> int:
        """How many bytes are taken."""
        return sum(list(self.taken.values()))

    def take(self, who: object, n: int) -> None:
        """Take `n` bytes, when those who came before have theirs; `free` gives them back.

        n: no more than the room has in all.
        Raises RefusedError after a time, or when too many messages are here.
        """
        with self._changed:
            if len(self.taken) + len(self.queue) >= self._limits.connections:
                raise RefusedError(TEMPORARY, "(too many large messages at once)")
            self.queue.append(who)
            is_free = self._changed.wait_for(
                lambda: self._is_closed or (self.queue[0] is who and self.used + n <= self._size),
                self._limits.timeout,
            )
            self.queue.remove(who)
            self._changed.notify_all()
            if self._is_closed or not is_free:
                raise RefusedError(TEMPORARY, "(there is no room for a large message)")
            self.taken[who] = n

    def free(self, who: object) -> None:
        """Give back what someone took, if he did."""
        if who in self.taken:
            with self._changed:
                del self.taken[who]
                self._changed.notify_all()

    def close(self) -> None:
        """Refuse those who wait."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()


class Client(io.RawIOBase):
    """One client, connected; `stream` reads what it sends."""

    def __init__(self, connection: socket.socket, clients: "Clients") -> None:
        """clients: that it is one of."""
        connection.setblocking(False)
        self._socket, self._clients = connection, clients
        self.stream = io.BufferedReader(self, _BUFFER)
        self._is_awaited = False
        self._ends = math.inf  # by the monotonic clock: when it is waited for no longer
        self._due = 0.0  # when it should have sent, or read, what it has by now
        self.is_parked = False
        self.is_heard = False  # whether it has said all it has to say

    @contextmanager
    def awaited(self, seconds: float = math.inf) -> Iterator[None]:
        """Bound the time in which the client sends or reads; what takes longer raises TimeoutError.

        At other times nothing waits for the client.
        """
        self._due = now = time.monotonic()
        self._ends = now + min(seconds, self._clients.limits.timeout)
        self._is_awaited = True
        try:
            self._progress(0)
            yield
        finally:
            self._is_awaited = False

    def readable(self) -> bool:
        """Tell `stream` that it can read."""
        return True

    def readinto(self, buffer: memoryview | bytearray) -> int | None:  # type: ignore[override]
        """Read some bytes, for `stream`; raises ConnectionError, TimeoutError when it is late."""
        while True:
            try:
                n = self._socket.recv_into(buffer, min(len(buffer), _CHUNK))
            except BlockingIOError:
                if not self._is_awaited:
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

    def n_more(self) -> int:
        """Return how many bytes are there that were not asked for."""
        return len(self.stream.peek())

    def send(self, reply: bytes) -> None:
        """Write the whole reply; raises OSError, of which TimeoutError is one."""
        with self.awaited(), memoryview(reply) as view:
            at = 0
            while at < len(view):
                try:
                    n = self._socket.send(view[at : at + _CHUNK])
                except BlockingIOError:
                    self._wait(select.POLLOUT)
                else:
                    at += n
                    self._progress(n)

    def linger(self, most: int) -> None:
        """Read for a while until the client has closed, unless it was heard; raises OSError.

        most: bytes.  Closing with unread data resets the connection, and may lose the reply.
        """
        if self.is_heard:
            return
        self._socket.shutdown(socket.SHUT_WR)
        chunk = bytearray(_CHUNK)
        with self.awaited(_LINGER):
            while most > 0 and (n := self.readinto(chunk)):
                most -= n

    def _progress(self, n: int) -> None:
        """Note that the client has sent or read `n` bytes; raises TimeoutError if it is late."""
        now = time.monotonic()
        if self._is_awaited and now >= min(self._ends, self._clients.ends):
            raise TimeoutError
        self._due = min(self._due + n / _LEAST_RATE, now)

    def _wait(self, event: int) -> None:
        """Wait for an event, a little while; raises TimeoutError if the client is late."""
        self._progress(0)
        now = time.monotonic()
        if now - self._due >= self._clients.limits.grace and self._clients.are_kept_by(self):
            raise TimeoutError
        poll = select.poll()
        poll.register(self._socket, event)
        # However many there are, who is late is seen soon, and so is the end.
        ends = min(self._ends, self._clients.ends, now + 2 * self._clients.limits.grace)
        tick = _TICK * max(1.0, self._clients.n_open / _TICKING)
        poll.poll(1000 * max(0.0, min(tick, ends - now)))

    @contextmanager
    def parked(self) -> Iterator[None]:
        """Leave the client's place to others while the server makes it wait."""
        self.is_parked = True
        self._clients.tell_of_change()
        try:
            yield
        finally:
            self.is_parked = False

    def close(self) -> None:
        """Close the connection."""
        if not self.closed:
            self.stream.detach()  # else both would wait for Python to look for circles
            super().close()
            self._socket.close()


class Clients:
    """Accepts clients, and serves each in a thread of its own."""

    def __init__(
        self, limits: Limits, serve: Callable[[Client], None], say: Say, rooms: Sequence[Room] = ()
    ) -> None:
        """Accept nothing yet.

        serve: called with each client; it does not raise.  say: tells what is wrong.
        rooms: where the large messages of these clients are.
        """
        self.limits, self._serve, self._say, self._rooms = limits, serve, say, rooms
        self.ends = math.inf  # by the monotonic clock: when no client is answered any more
        self._changed = threading.Condition()
        self._open: set[Client] = set()
        self._door = deque[socket.socket]()  # accepted, and not served yet
        self._at_door = threading.Lock()  # of the thread that waits there
        self._n_idle = 0  # threads that wait for their turn there
        self._is_closing = False
        self._poll = select.poll()
        self._listeners: dict[int, socket.socket] = {}

    @property
    def n_open(self) -> int:
        """The number of open connections."""
        return len(self._open)

    @property
    def n_parked(self) -> int:
        """How many of them wait for the server, and have left their places."""
        return sum(client.is_parked for client in list(self._open))

    @property
    def _is_full(self) -> bool:
        return self.n_open - self.n_parked >= self.limits.connections

    def are_kept_by(self, client: Client) -> bool:
        """Return whether others wait for what a client holds."""
        return self._is_full or any(room.queue and client in room.taken for room in self._rooms)

    def tell_of_change(self) -> None:
        """Wake whoever waits for a place, for the last client, or for the end."""
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
        """Accept whoever waits in the queue, close the listeners and wait for the last client.

        ends: by the monotonic clock, when no client is waited for any more.
        """
        if self._listeners:
            self.ends = ends
            self._wake.send(b"x")  # before whoever is at the door may close it
            self._is_closing = True
            self.tell_of_change()
            self.join(ends - time.monotonic())

    def join(self, seconds: float = _LEAVING) -> None:
        """Wait for the last client, a little while."""
        with self._changed:
            self._changed.wait_for(
                lambda: not (self._listeners or self._door or self._open), max(0, seconds)
            )

    def _start_thread(self) -> None:
        try:
            threading.Thread(target=self._work, daemon=True).start()
        except RuntimeError:
            self._say("cannot start a thread; allow the server more threads")

    def _work(self) -> None:
        """Serve one client after the other, while there is need for this thread."""
        while self._n_idle < _IDLE:
            with self._changed:
                self._n_idle += 1
            with self._at_door:
                client = self._next()
            with self._changed:
                self._n_idle -= 1
            if client is None:
                return
            if not self._n_idle:
                self._start_thread()
            try:
                self._serve(client)
            finally:
                client.close()
                for room in self._rooms:
                    room.free(client)
                self._open.remove(client)
                self.tell_of_change()

    def _next(self) -> Client | None:
        """Return a client as soon as there is one and a place for him; None after the last one."""
        while True:
            with self._changed:
                self._changed.wait_for(
                    lambda: not self._is_full or (self._is_closing and self._listeners)
                )
            if self._is_closing and self._listeners:
                self._door.extend(self._last_ones())
                continue
            if self._listeners and not self._door:
                self._door.extend(self._new_ones())
            if self._door and time.monotonic() >= self.ends:
                self._door.popleft().close()
            elif self._door:
                client = Client(self._door.popleft(), self)
                self._open.add(client)
                return client
            elif not self._listeners:
                self.tell_of_change()
                return None

    def _new_ones(self) -> Iterator[socket.socket]:
        """Wait for clients, and accept one at each socket that has one."""
        for handle, _ in self._poll.poll():
            if handle not in self._listeners:  # woken: this is the end
                return
            try:
                yield self._listeners[handle].accept()[0]
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                continue
            except OSError as error:  # no file descriptor is left, or no memory
                self._say(f"cannot accept connections ({error.strerror}); raise ulimit -n")
                with self._changed:
                    self._changed.wait_for(lambda: self._is_closing, self.limits.retry)

    def _last_ones(self) -> Iterator[socket.socket]:
        """Accept whoever is at the door, and close it."""
        for listener in self._listeners.values():
            with suppress(OSError):
                refuse_more(listener)
                for _ in range(BACKLOG):  # more than the queue holds come without end
                    yield listener.accept()[0]
            listener.close()
        self._listeners = {}
        self._woken.close()
        self._wake.close()
