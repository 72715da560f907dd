"""The clients of listening sockets: accepted, heard and answered within bounds of time and memory.

A thread for each.  One thread at a time waits at the door; whoever accepts a client serves it, and
the next thread takes its place there.  It also looks after the clock: reads and writes of clients
block, and whoever is late finds his connection shut.

There are never more clients served than `Limits.connections`; others wait in the system's queue.
While all places are taken, a client that keeps the server waiting for longer than `Limits.grace` is
evicted.  A client that the server makes wait (for room, for its turn among large messages, or until
its message is learned) is parked: it stays connected, and leaves its place to others.
"""

import math
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from nbspam.serving.limits import Limits
from nbspam.serving.sockets import BACKLOG, refuse_more
from nbspam.serving.spamd import LINE_LIMIT, PROTOCOL, TEMPORARY, RefusedError

Say = Callable[[str], None]

_FIRST, _CHUNK = 64 << 10, 256 << 10  # bytes read at a time: first, and of what is large
# Bytes a second that a client must send or read where others wait for what it holds.
_LEAST_RATE = 1 << 20
_LINGER = 2.0  # seconds to go on reading after the reply, so that the client can read it
_TICK = 0.05  # seconds between two looks at who is late
_IDLE = 8  # threads that stay when they have nothing to do
_LEAVING = 1.0  # seconds for the threads of clients that were hung up on


class Room:
    """A number of bytes that large messages share: first come, first served.

    A message takes its bytes before it is read and gives them back when its answer is sent.  A
    large message does not wait for ever because small ones find room.
    """

    def __init__(self, size: int, limits: Limits) -> None:
        self._size, self._limits = size, limits
        self._changed = threading.Condition()
        self._queue: list[object] = []
        self._n_holding = 0
        self._is_closed = False
        self.used = 0  # bytes that messages hold

    @property
    def is_wanted(self) -> bool:
        """Whether somebody waits for room."""
        return bool(self._queue)

    def take(self, n: int) -> None:
        """Take `n` bytes, when those who came before have theirs; `free` gives them back.

        n: no more than the room has in all.
        Raises RefusedError after a time, or when too many messages are here.
        """
        me = object()
        with self._changed:
            if self._n_holding + len(self._queue) >= self._limits.connections:
                raise RefusedError(TEMPORARY, "(too many large messages at once)")
            self._queue.append(me)
            is_free = self._changed.wait_for(
                lambda: self._is_closed or (self._queue[0] is me and self.used + n <= self._size),
                self._limits.timeout,
            )
            self._queue.remove(me)
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


class Client:
    """One client, connected."""

    def __init__(
        self, connection: socket.socket, timeout: float, changed: threading.Condition
    ) -> None:
        """changed: of what `Clients` decides by."""
        self._socket, self._timeout, self._changed = connection, timeout, changed
        self._read = b""  # and not asked for yet
        self._ends = self._due = math.inf  # by the monotonic clock, while it is waited for
        self._shuts = socket.SHUT_RD  # what is shut when it is late
        self._is_late = False
        self._taken: tuple[Room, int] | None = None
        self.is_parked = False
        self.is_heard = False  # whether it has said all it has to say

    @property
    def holds_room(self) -> bool:
        """Whether it has room that others may wait for."""
        return self._taken is not None

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

    def line(self) -> bytes:
        """Read a line; without its end if the client closes, and longer than LINE_LIMIT if it is.

        Raises OSError, of which TimeoutError is one.
        """
        while (at := self._read.find(b"\n")) < 0 and len(self._read) <= LINE_LIMIT:
            chunk = self._socket.recv(_FIRST)
            self._progress(len(chunk))
            if not chunk:
                at = len(self._read) - 1
                break
            self._read += chunk
        end = at + 1 if at >= 0 else len(self._read)
        line, self._read = self._read[:end], self._read[end:]
        return line

    def body(self, length: int | None, most: int) -> bytes | bytearray:
        """Read a message of `length` bytes, or up to the end of what the client sends.

        most: without a length; at most one byte more is read.
        The client need not close after `length` bytes.  Raises RefusedError when they are others.
        """
        read, size = self._read, most + 1 if length is None else length
        if length is not None and len(read) == size:
            self._read = b""
            return read
        # Allotted at once: a buffer that grows takes an eighth more, and is copied now and then.
        # What is not written to takes no memory.
        body = bytearray(size)
        n = min(len(read), size)
        body[:n], self._read = read[:n], read[n:]
        with memoryview(body) as view:
            while n < size:
                received = self._socket.recv_into(view[n : n + _CHUNK])
                self._progress(received)
                if not received:
                    break
                n += received
        if length is not None and n == size and not self._read:
            with suppress(BlockingIOError):
                self._read = self._socket.recv(_FIRST, socket.MSG_DONTWAIT)
        if length is not None and n + len(self._read) != length:
            n += len(self._read)
            raise RefusedError(
                PROTOCOL, f"(Content-Length mismatch: Expected {length} bytes, got {n} bytes)"
            )
        del body[n:]
        return body

    def unread(self, body: bytes | bytearray) -> None:
        """Let the client have sent this just now."""
        self._read = bytes(body) + self._read

    def send(self, reply: bytes | bytearray) -> None:
        """Write the whole reply, and free it; raises OSError, of which TimeoutError is one."""
        self._shuts = socket.SHUT_RDWR
        with self.awaited(), memoryview(reply) as view:
            for at in range(0, len(view), _CHUNK):
                self._socket.sendall(view[at : at + _CHUNK])
                self._progress(_CHUNK)
        if isinstance(reply, bytearray):
            reply.clear()

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
        self._taken = room, n

    def free_room(self) -> None:
        """Give back the room of a large message, whose memory is freed."""
        if self._taken:
            (room, n), self._taken = self._taken, None
            room.free(n)

    # How it ends

    def end_if_late(self, now: float, latest: float, grace: float) -> None:
        """End a wait that is over, at `latest` at the latest, or is behind by `grace` seconds."""
        if (now < min(self._ends, latest) and now - self._due < grace) or self._ends == math.inf:
            return
        if now < min(self._ends, latest) and self._shuts == socket.SHUT_RD:
            with suppress(OSError):
                if self._socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT):
                    return  # it is the server that is late
        self._is_late = True
        with suppress(OSError):
            self._socket.shutdown(self._shuts)

    def hang_up(self) -> None:
        """End what is read and written."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection."""
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
        self._door = deque[socket.socket]()  # accepted at the end, and not served yet
        self._at_door = threading.Lock()  # of the thread that waits there
        self._n_idle = 0
        self._looked = 0.0  # when there was a look at who is late
        self._ends = math.inf  # by the monotonic clock: when no client is answered any more
        self._is_closing, self._is_closed = False, True
        self._poll = select.poll()
        self._listeners: dict[int, socket.socket] = {}
        self._ready: list[int] = []

    @property
    def n_open(self) -> int:
        """The number of open connections."""
        return len(self._open)

    @property
    def n_parked(self) -> int:
        """How many of them wait for the server, and have left their places."""
        return sum(client.is_parked for client in list(self._open))

    def listen(self, listeners: Sequence[socket.socket]) -> None:
        """Accept the clients of these sockets from now on, until `close`."""
        if not listeners:
            return
        self._is_closed = False
        self._wake, self._woken = socket.socketpair()
        self._poll.register(self._woken, select.POLLIN)
        for listener in listeners:
            self._listeners[listener.fileno()] = listener
            self._poll.register(listener, select.POLLIN)
        self._start_thread()

    @property
    def is_over(self) -> bool:
        """Whether it is too late to answer a client."""
        return time.monotonic() >= self._ends

    def close(self, ends: float) -> None:
        """Accept whoever waits in the queue, close the listeners and wait for the last client.

        ends: by the monotonic clock, when no client is waited for any more.
        """
        if self._is_closed:
            return
        with self._changed:
            self._ends, self._is_closing = ends, True
            self._changed.notify_all()
        self._wake.send(b"x")
        with self._changed:
            self._changed.wait_for(
                lambda: self._is_closed and not (self._open or self._door),
                max(0, ends - time.monotonic()),
            )
            while self._door:
                self._door.popleft().close()
            for client in self._open:
                client.hang_up()
        self._wake.close()
        self._woken.close()

    def join(self) -> None:
        """Wait for the threads of clients that were hung up on, a little while."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed and not self._open, _LEAVING)

    def _start_thread(self) -> None:
        try:
            threading.Thread(target=self._work, daemon=True).start()
        except RuntimeError:
            self._say("cannot start a thread; allow the server more of them")

    def _work(self) -> None:
        """Serve one client after the other, while there is need for this thread."""
        while (client := self._next()) is not None:
            try:
                self._serve(client)
            finally:
                client.close()
                with self._changed:
                    self._open.remove(client)
                    self._changed.notify_all()

    def _next(self) -> Client | None:
        """Wait at the door when it is this thread's turn; None if there is no need for it."""
        with self._changed:
            if self._n_idle >= _IDLE:
                return None
            self._n_idle += 1
        with self._at_door:
            client = self._accepted()
        with self._changed:
            self._n_idle -= 1
            is_over = self._is_closed and not self._door
            is_alone = not (self._n_idle or is_over)
        if is_alone:
            self._start_thread()
        return client

    def _accepted(self) -> Client | None:
        """Return a client as soon as there is one and a place for him; None after the last one."""
        while True:
            with self._changed:
                has_place = len(self._open) - self.n_parked < self._limits.connections
                if self._is_closing and not self._is_closed:
                    self._accept_the_last()
                if self._is_closed and (has_place or not self._door):
                    return self._enter(self._door.popleft()) if self._door else None
                if not has_place:
                    self._changed.wait(_TICK)
            if has_place and (connection := self._wait_for_client()):
                with self._changed:
                    return self._enter(connection)
            now = time.monotonic()
            if now >= self._looked + _TICK:
                self._looked = now
                self._end_late_clients(now, is_full=not has_place)

    def _enter(self, connection: socket.socket) -> Client:
        connection.setblocking(True)
        client = Client(connection, self._limits.timeout, self._changed)
        self._open.add(client)
        return client

    def _wait_for_client(self) -> socket.socket | None:
        """Accept a client; None if none comes soon, if there are others to look after."""
        if not self._ready:
            found = self._poll.poll(1000 * _TICK if self._open else None)
            self._ready = [number for number, _ in found]
        while self._ready:
            listener = self._listeners.get(self._ready.pop())
            if listener is None:  # woken: this is the end
                return None
            try:
                connection, _ = listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                continue
            except OSError as error:  # no file descriptor is left, or no memory
                self._say(f"cannot accept connections ({error.strerror}); raise ulimit -n")
                with self._changed:
                    self._changed.wait_for(lambda: self._is_closing, self._limits.retry)
                return None
            return connection
        return None

    def _accept_the_last(self) -> None:
        """Accept whoever is at the door, and close it."""
        for listener in self._listeners.values():
            with suppress(OSError):
                refuse_more(listener)
                for _ in range(BACKLOG):  # more than the queue holds come without end
                    self._door.append(listener.accept()[0])
            listener.close()
        self._is_closed = True
        self._changed.notify_all()

    def _end_late_clients(self, now: float, is_full: bool) -> None:
        is_room_wanted = any(room.is_wanted for room in self._rooms)
        with self._changed:
            clients = list(self._open)
        for client in clients:
            in_the_way = is_full or (is_room_wanted and client.holds_room)
            client.end_if_late(now, self._ends, self._limits.grace if in_the_way else math.inf)
