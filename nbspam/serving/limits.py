"""How much of the server one client, and all clients together, may use."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

# Bytes.  Larger messages share a room in memory and are read in a process of their own.  The
# costliest shapes known keep the interpreter for 20 to 35 ms with 128 KiB, 40 to 70 with 256 KiB.
# Of the 6,047 mails of SpamAssassin's corpus 5 are larger.
LARGE = 128 << 10

# Bytes a second that a client must send or read where others wait for what it holds.
_LEAST_RATE = 1 << 20


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
    reading: float = 60.0  # seconds to read and judge one large message
    max_users: int = 1_000  # users' models beside which no client's message makes another

    @property
    def judging_room(self) -> int:
        """Bytes that the large messages of all clients may take together while they are judged."""
        return 3 * self.max_size

    @property
    def learning_room(self) -> int:
        """The same of messages to learn: those that wait for the model must not fill the other."""
        return self.max_size

    @property
    def reading_memory(self) -> int:
        """Bytes for the process that reads large messages.

        With 32 MiB of mail it takes 130 MB, the program itself included.
        """
        return (64 << 20) + 6 * self.max_size


class Wait:
    """One wait for a client."""

    def __init__(self, timeout: asyncio.Timeout, holds_room: bool) -> None:
        self.timeout, self.holds_room = timeout, holds_room
        self._due = asyncio.get_running_loop().time()

    @property
    def lag(self) -> float:
        """How far the client is behind the least rate, in seconds."""
        return asyncio.get_running_loop().time() - self._due

    def progress(self, n: int) -> None:
        """Note that the client has sent or read `n` bytes."""
        self._due = min(self._due + n / _LEAST_RATE, asyncio.get_running_loop().time())


class Deadlines:
    """Bounds every wait for a client; all current waits can be cut short."""

    def __init__(self, timeout: float) -> None:
        """Allow `timeout` seconds for each wait."""
        self._timeout = timeout
        self._waits: set[Wait] = set()  # the current ones

    @asynccontextmanager
    async def limit(self, holds_room: bool = False) -> AsyncIterator[Wait]:
        """Bound one wait; raises TimeoutError.

        holds_room: whether the client has room that others may wait for.
        """
        async with asyncio.timeout(self._timeout) as timeout:
            wait = Wait(timeout, holds_room)
            self._waits.add(wait)
            try:
                yield wait
            finally:
                self._waits.remove(wait)

    def end_long_waits(self, grace: float, holding_room: bool = False) -> None:
        """End each wait for a client that is behind by `grace` seconds or more.

        holding_room: only of clients that have room.
        """
        now = asyncio.get_running_loop().time()
        for wait in self._waits:
            if wait.holds_room < holding_room or wait.timeout.expired():
                continue
            if wait.lag >= grace:
                wait.timeout.reschedule(now)

    def shorten(self, seconds: float) -> None:
        """End the current waits within `seconds`, and allow later ones no more than that."""
        self._timeout = min(self._timeout, seconds)
        latest = asyncio.get_running_loop().time() + seconds
        for wait in self._waits:
            if not wait.timeout.expired():
                wait.timeout.reschedule(min(wait.timeout.when() or 0, latest))
