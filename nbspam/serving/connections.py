"""The clients of listening sockets: accepted, evicted when slow, waited for when the server stops.

There are never more clients served than `Limits.connections`; others wait in the system's queue.
While all places are taken, a client that keeps the server waiting for longer than `Limits.grace` is
evicted.  A client that the server makes wait (for room, for its turn among large messages, or until
its message is learned) is parked: it stays connected, and leaves its place to others.
"""

import asyncio
import math
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from nbspam.serving.client import Client, Rooms
from nbspam.serving.current import Say
from nbspam.serving.limits import Deadlines, Limits
from nbspam.serving.room import Room
from nbspam.serving.sockets import BACKLOG

_EVICT_INTERVAL = 0.1  # seconds
# Clients beside whom a new one is not waited for, not even for a moment.
_MANY = 4

Serve = Callable[[Client], Awaitable[None]]
# Given a connection, and whether it may be waited for: either answers and closes it, or gives it
# to `Connections.adopt`.  Returns whether the client was answered.
AtOnce = Callable[[socket.socket, bool], bool]


class Connections:
    """Accepts clients, and serves each in a task of its own."""

    def __init__(
        self, limits: Limits, serve: Serve, say: Say, at_once: AtOnce | None = None
    ) -> None:
        """Accept nothing yet.

        serve: called with each client; it closes the connection and does not raise.
        say: writes to the log.
        at_once: called with each connection first; it does not raise.
        """
        self._limits, self._serve, self._say, self._at_once = limits, serve, say, at_once
        self._deadlines = Deadlines(limits.timeout)
        self.rooms = Rooms(
            judging=Room(limits.judging_room, limits, self._deadlines),
            learning=Room(limits.learning_room, limits, self._deadlines),
        )
        self._listeners: list[socket.socket] = []
        self._channels: dict[int, Callable[[], None]] = {}
        self._open: dict[asyncio.Task[None], Client | None] = {}  # None: not connected yet
        self._parked: set[asyncio.Task[None]] = set()
        self._is_paused = False
        self._is_closing = False
        self._ends = math.inf  # by the clock of the loop: when no client is answered any more
        self._eviction: asyncio.TimerHandle | None = None

    @property
    def n_open(self) -> int:
        """The number of open connections."""
        return len(self._open)

    @property
    def n_parked(self) -> int:
        """How many of them wait for the server, and have left their places."""
        return len(self._parked)

    @contextmanager
    def parked(self) -> Iterator[None]:
        """Leave the place of the current task's client to others."""
        task = asyncio.current_task()
        assert task is not None
        self._parked.add(task)
        self._resume_if_paused()
        try:
            yield
        finally:
            self._parked.remove(task)

    def listen(self, listeners: list[socket.socket]) -> None:
        """Accept the clients of these sockets from now on, until `close`."""
        self._listeners = listeners
        self._resume()

    @property
    def is_over(self) -> bool:
        """Whether it is too late to answer a client."""
        return asyncio.get_running_loop().time() >= self._ends

    async def close(self, ends: float) -> None:
        """Accept whoever waits in the queue, close the listeners and wait for the last client.

        ends: by the clock of the loop, when no client is waited for any more.
        """
        self._is_closing, self._ends = True, ends
        loop = asyncio.get_running_loop()
        for listener in self._listeners:
            loop.remove_reader(listener)
            self._accept(listener)
            listener.close()
        left = max(0.0, ends - loop.time())
        self._deadlines.shorten(left)
        if self._open:
            await asyncio.wait(self._open, timeout=left)
        for task, client in self._open.items():
            if client:
                client.abort()
            task.cancel()  # not even a message that a thread classifies is waited for
        if self._open:
            await asyncio.wait(self._open)

    def look(self) -> None:
        """Accept who waits, whether or not the system says so.

        A worker that died may have been told of a client in this one's place.
        """
        for listener in self._listeners if not (self._is_paused or self._is_closing) else ():
            self._accept(listener)

    def add_channel(self, handle: int, receive: Callable[[], None]) -> None:
        """Call `receive`, which adopts a client, when there is one and a place for him."""
        self._channels[handle] = receive
        if not self._is_paused or self._is_closing:
            asyncio.get_running_loop().add_reader(handle, receive)

    def remove_channel(self, handle: int) -> None:
        """Forget a channel, which is still open."""
        self._channels.pop(handle, None)
        asyncio.get_running_loop().remove_reader(handle)

    def _resume(self) -> None:
        self._is_paused = False
        loop = asyncio.get_running_loop()
        for listener in self._listeners:
            loop.add_reader(listener, self._accept, listener)
        for handle, receive in self._channels.items():
            loop.add_reader(handle, receive)

    def _pause(self) -> None:
        """Stop accepting; new clients wait in the system's queue."""
        self._is_paused = True
        loop = asyncio.get_running_loop()
        for listener in self._listeners:
            loop.remove_reader(listener)
        for handle in self._channels:
            loop.remove_reader(handle)

    def _resume_if_paused(self) -> None:
        if self._is_paused and not self._is_closing:
            self._resume()

    def _accept(self, listener: socket.socket) -> None:
        """Accept the waiting clients; all of them when closing, else up to the limit.

        More than the queue holds come without end, so that many are accepted at once at most.
        """
        for _ in range(BACKLOG):
            if not (self._is_closing or self._has_place):
                break
            try:
                connection, _ = listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if not self._is_closing:
                    self._retry_later(error)
                return
            connection.setblocking(False)
            if self._is_closing or not self._at_once:
                self.adopt(connection, self._serve)
            elif self._at_once(connection, len(self._open) < _MANY):
                return  # the clients that were accepted before have their turn
        self._make_place()

    def _make_place(self) -> None:
        """If there is no place, stop accepting until there is one again, and evict the slow."""
        if self._is_closing or self._has_place:
            return
        if not self._is_paused:
            self._pause()
        if self._eviction is None:
            self._evict_slow_clients()

    def adopt(self, connection: socket.socket, serve: Serve, begun: bytes = b"") -> None:
        """Serve the client of an accepted connection in a task of its own.

        begun: what was read of its request.
        """
        task = asyncio.get_running_loop().create_task(self._run(connection, serve, begun))
        self._open[task] = None
        task.add_done_callback(self._forget)
        self._make_place()

    @property
    def _has_place(self) -> bool:
        return len(self._open) - len(self._parked) < self._limits.connections

    def _retry_later(self, error: OSError) -> None:
        """Pause for a while: the system has no file descriptor left, or no memory."""
        self._say(f"cannot accept connections ({error.strerror}); raise ulimit -n")
        self._pause()
        asyncio.get_running_loop().call_later(self._limits.retry, self._resume_if_paused)

    def _forget(self, task: "asyncio.Task[None]") -> None:
        self._open.pop(task, None)
        self._resume_if_paused()

    def _evict_slow_clients(self) -> None:
        """Evict the clients that take too long while all connections are in use; repeat later.

        The event loop reads what a client has sent before it runs any timer, so no client is late
        because the server is.
        """
        self._eviction = None
        if not self._is_paused or self._is_closing:
            return
        self._deadlines.end_long_waits(self._limits.grace)
        loop = asyncio.get_running_loop()
        self._eviction = loop.call_later(_EVICT_INTERVAL, self._evict_slow_clients)

    async def _run(self, connection: socket.socket, serve: Serve, begun: bytes) -> None:
        """Serve the client of one connection."""
        try:
            client = await Client.connect(
                connection, self._limits, self._deadlines, self.rooms, self.parked, begun
            )
        except OSError:
            connection.close()
            return
        task = asyncio.current_task()
        assert task is not None
        self._open[task] = client
        await serve(client)
