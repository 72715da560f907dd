"""The clients of listening sockets: accepted, heard and answered within bounds of time and memory.

A thread for each.  One thread at a time waits at the door; whoever accepts a client serves it, and
the next thread takes its place there.  It also looks after the clock: reads and writes of clients
block, and whoever is late finds his connection shut.

No client is accepted while `Limits.connections` are served; others wait in the system's queue.
While all places are taken, a client that keeps the server waiting for longer than `Limits.grace` is
evicted.  A client that the server makes wait (for room, for its turn among large messages, or until
its message is learned) is parked: it stays connected, and leaves its place to others.  Afterwards
it is served at once, even if there are more clients then.
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
_TICK = 0.05  # seconds between two looks at who is late
_IDLE = 8  # threads that stay when they have nothing to do
_LEAVING = 1.0  # seconds for the threads of clients that were hung up on


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
        self.queue: list[object] = []  # who waits
        self._n_holding = 0
        self._is_closed = False
        self.used = 0  # bytes that messages hold

    def take(self, n: int) -> None:
        """Take `n` bytes, when those who came before have theirs; `free` gives them back.

        n: no more than the room has in all.
        Raises RefusedError after a time, or when too many messages are here.
        """
        me = object()
        with self._changed:
            if self._n_holding + len(self.queue) >= self._limits.connections:
                raise RefusedError(TEMPORARY, "(too many large messages at once)")
            self.queue.append(me)
            is_free = self._changed.wait_for(
                lambda: self._is_closed or (self.queue[0] is me and self.used + n <= self._size),
                self._limits.timeout,
            )
            self.queue.remove(me)
            self._changed.notify_all()
            if self._is_closed or not is_free:
                raise RefusedError(TEMPORARY, "(there is no room for a large message)")
            self.used += n
            self._n_holding += 1

    def free(self, n: int) -> None:
        """Give back `n` bytes that one message took."""
        with self._changed:
            self.used -= n
            self._n_holding -= 1
            self._changed.notify_all()

    def close(self) -> None:
        """Refuse those who wait."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()


class Client(io.RawIOBase):
    """One client, connected; `stream` reads what it sends."""

    def __init__(
        self, connection: socket.socket, timeout: float, changed: threading.Condition
    ) -> None:
        """changed: of what `Clients` decides by."""
        self._socket, self._timeout, self._changed = connection, timeout, changed
        self.stream = io.BufferedReader(self, _BUFFER)
        self._flags = 0  # of reading
        self._ends = self._due = math.inf  # by the monotonic clock, while it is waited for
        self._shuts = socket.SHUT_RD  # what is shut when it is late
        self._is_late = False
        self.taken: tuple[Room, int] | None = None  # room that others may wait for
        self.is_parked = False
        self.is_heard = False  # whether it has said all it has to say

    # What the server does while it waits for the client

    @contextmanager
    def awaited(self, seconds: float = math.inf) -> Iterator[None]:
        """Bound the time in which the client sends; what is read later raises TimeoutError."""
        self._is_late = False
        self._due = now = time.monotonic()
        self._ends = now + min(seconds, self._timeout)
        try:
            yield
        finally:
            self._ends = self._due = math.inf

    def readable(self) -> bool:
        """Tell `stream` that it can read."""
        return True

    def readinto(self, buffer: memoryview) -> int | None:  # type: ignore[override]
        """Read some bytes, for `stream`; raises ConnectionError, TimeoutError when it is late."""
        try:
            n = self._socket.recv_into(buffer, min(len(buffer), _CHUNK), self._flags)
        except BlockingIOError:
            return None
        except OSError as error:  # whatever the network says, such as EHOSTUNREACH: it has gone
            raise ConnectionError(*error.args) from None
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
        self._flags = socket.MSG_DONTWAIT
        return len(self.stream.peek())

    def send(self, reply: bytes) -> None:
        """Write the whole reply; raises OSError, of which TimeoutError is one."""
        self._shuts = socket.SHUT_RDWR
        with self.awaited(), memoryview(reply) as view:
            for at in range(0, len(view), _CHUNK):
                self._socket.sendall(view[at : at + _CHUNK])
                self._progress(_CHUNK)

    def linger(self, most: int) -> None:
        """Read for a while until the client has closed, unless it was heard; raises OSError.

        most: bytes.  Closing with unread data resets the connection, and may lose the reply.
        """
        if self.is_heard:
            return
        self._socket.shutdown(socket.SHUT_WR)
        with self.awaited(_LINGER):
            while most > 0 and (chunk := self._socket.recv(_CHUNK)):
                most -= len(chunk)

    def _progress(self, n: int) -> None:
        """Note that the client has sent or read `n` bytes."""
        if self._is_late:
            raise TimeoutError
        self._due = min(self._due + n / _LEAST_RATE, time.monotonic())

    # What it holds

    @contextmanager
    def parked(self) -> Iterator[None]:
        """Leave the client's place to others while the server makes it wait."""
        with self._changed:
            self.is_parked = True
            self._changed.notify_all()
        try:
            yield
        finally:
            self.is_parked = False

    def take_room(self, room: Room, n: int) -> None:
        """Take room for a large message, when there is some; raises RefusedError."""
        with self.parked():
            room.take(n)
        self.taken = room, n

    def free_room(self) -> None:
        """Give back the room of a large message, whose memory is freed."""
        if self.taken:
            (room, n), self.taken = self.taken, None
            room.free(n)

    # How it ends

    def end_if_late(self, now: float, latest: float, grace: float) -> None:
        """End a wait that is over, at `latest` at the latest, or is behind by `grace` seconds."""
        is_over = now >= min(self._ends, latest)
        if self._ends == math.inf or not (is_over or now - self._due >= grace):
            return
        if not is_over and self._shuts == socket.SHUT_RD:
            with suppress(OSError):
                self._socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
                return  # with bytes or the end there to be read, it is the server that is late
        self._is_late = True
        self.hang_up(self._shuts)

    def hang_up(self, how: int = socket.SHUT_RDWR) -> None:
        """End what is read and written."""
        with suppress(OSError):
            self._socket.shutdown(how)

    def close(self) -> None:
        """Close the connection."""
        if not self.closed:
            self.stream.detach()  # else both would wait for Python to look for circles
            super().close()
            with (
                self._changed
            ):  # else whoever is at the door could shut the descriptor's next owner
                self._socket.close()
            self.free_room()


class Clients:
    """Accepts clients, and serves each in a thread of its own."""

    def __init__(
        self,
        limits: Limits,
        serve: Callable[[Client], None],
        say: Say,
        rooms: Sequence[Room] = (),
    ) -> None:
        """Accept nothing yet.

        serve: called with each client; it does not raise.  say: tells what is wrong.
        rooms: where the large messages of these clients are.
        """
        self._limits, self._serve, self._say, self._rooms = limits, serve, say, rooms
        self._changed = threading.Condition()
        self._open: set[Client] = set()
        self._door = deque[socket.socket]()  # accepted, and not served yet
        self._at_door = threading.Lock()  # of the thread that waits there
        self._n_idle = 0  # threads that wait for their turn there
        self._looked = 0.0  # when there was a look at who is late
        self._ends = math.inf  # by the monotonic clock: when no client is answered any more
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
    def is_over(self) -> bool:
        """Whether it is too late to answer a client."""
        return time.monotonic() >= self._ends

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
            self._wake.send(b"x")
            self._ends, self._is_closing = ends, True
            self.join(ends - time.monotonic())
            with self._changed:
                for client in self._open:
                    client.hang_up()

    def join(self, seconds: float = _LEAVING) -> None:
        """Wait for the last client, a little while."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_left, max(0, seconds))

    @property
    def _is_left(self) -> bool:
        return not (self._listeners or self._door or self._open)

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
                with self._changed:
                    self._open.remove(client)
                    self._changed.notify_all()

    def _next(self) -> Client | None:
        """Return a client as soon as there is one and a place for him; None after the last one."""
        while not self._is_left:
            if self._is_closing and self._listeners:
                self._door.extend(self._last_ones())
            with self._changed:
                is_full = len(self._open) - self.n_parked >= self._limits.connections
                if is_full or not (self._listeners or self._door):
                    self._changed.wait(_TICK)
            if not (is_full or self._door) and self._listeners:
                self._door.extend(self._new_ones())
            if self._door and self.is_over:
                self._door.popleft().close()
            elif self._door and not is_full:
                connection = self._door.popleft()
                connection.setblocking(True)
                client = Client(connection, self._limits.timeout, self._changed)
                with self._changed:
                    self._open.add(client)
                return client
            now = time.monotonic()
            if now >= self._looked + _TICK:
                self._looked = now
                self._end_late_clients(now, is_full)
        with self._changed:
            self._changed.notify_all()
        return None

    def _new_ones(self) -> Iterator[socket.socket]:
        """Accept a client at each socket that has one; none, if there are others to look after."""
        for handle, _ in self._poll.poll(1000 * _TICK if self._open else None):
            if handle not in self._listeners:  # woken: this is the end
                return
            try:
                yield self._listeners[handle].accept()[0]
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                continue
            except OSError as error:  # no file descriptor is left, or no memory
                self._say(f"cannot accept connections ({error.strerror}); raise ulimit -n")
                with self._changed:
                    self._changed.wait_for(lambda: self._is_closing, self._limits.retry)

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

    def _end_late_clients(self, now: float, is_full: bool) -> None:
        is_room_wanted = any(room.queue for room in self._rooms)
        with self._changed:
            for client in self._open:
                in_the_way = is_full or (is_room_wanted and client.taken)
                client.end_if_late(now, self._ends, self._limits.grace if in_the_way else math.inf)
