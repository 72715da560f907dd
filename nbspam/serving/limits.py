"""How much of the server one client, and all clients together, may use."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple


class Limits(NamedTuple):
    """Sizes, numbers and times that bound what clients may use."""

    # Bytes of a message, as sent and decompressed; twice what the reader looks at.
    max_size: int = 32 << 20
    timeout: float = 60.0  # seconds for a client to send its request, and as many to read the reply
    connections: int = 64  # open at a time; more clients wait in the system's queue
    # Seconds that a client may keep the server waiting while all connections are in use.
    grace: float = 2.0
    shutdown: float = 10.0  # seconds for clients to finish when the server stops
    retry: float = 1.0  # seconds before accepting again after the system refused to


class Deadlines:
    """Bounds every wait for a client; all current waits can be cut short."""

    def __init__(self, timeout: float) -> None:
        """Allow `timeout` seconds for each wait."""
        self._timeout = timeout
        self._waits: dict[asyncio.Timeout, float] = {}  # the current ones, and when each began

    @asynccontextmanager
    async def limit(self) -> AsyncIterator[None]:
        """Bound one wait; raises TimeoutError."""
        async with asyncio.timeout(self._timeout) as wait:
            self._waits[wait] = asyncio.get_running_loop().time()
            try:
                yield
            finally:
                del self._waits[wait]

    def end_long_waits(self, grace: float) -> None:
        """End each wait that has taken `grace` seconds or more."""
        now = asyncio.get_running_loop().time()
        for wait, began in self._waits.items():
            if now - began >= grace and not wait.expired():
                wait.reschedule(now)

    def shorten(self, seconds: float) -> None:
        """End the current waits within `seconds`, and allow later ones no more than that."""
        self._timeout = min(self._timeout, seconds)
        latest = asyncio.get_running_loop().time() + seconds
        for wait in self._waits:
            if not wait.expired():
                wait.reschedule(min(wait.when() or 0, latest))
