"""The memory that large messages share: first come, first served.

A message takes its bytes before it is read and gives them back when its answer is sent, so all
messages together never take more than the room has.  Who comes first is served first: a large
message does not wait for ever because small ones find room.
"""

import asyncio
from collections import deque
from contextlib import suppress

from nbspam.serving.limits import Deadlines, Limits
from nbspam.serving.spamd import TEMPORARY, RefusedError

_EVICT_INTERVAL = 0.1  # seconds

_Waiting = tuple[int, "asyncio.Future[None]"]  # bytes, and when they are taken


class Room:
    """A number of bytes that messages take and free."""

    def __init__(self, size: int, limits: Limits, deadlines: Deadlines) -> None:
        """Have `size` bytes; clients that hold some and are slow are evicted by `deadlines`."""
        self._size, self._bytes, self._limits, self._deadlines = size, size, limits, deadlines
        self._n_holding = 0
        self._waiting: deque[_Waiting] = deque()
        self._eviction: asyncio.TimerHandle | None = None

    @property
    def used(self) -> int:
        """The bytes that messages hold."""
        return self._size - self._bytes

    async def take(self, n: int) -> None:
        """Take `n` bytes, when those who came before have theirs; `free` gives them back.

        n: no more than the room has in all.
        Raises RefusedError after a time, or when too many messages are here.
        """
        if self._n_holding + len(self._waiting) >= self._limits.connections:
            raise RefusedError(TEMPORARY, "(too many large messages at once)")
        if not self._waiting and n <= self._bytes:
            self._give(n)
            return
        waiting: _Waiting = n, asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        if self._eviction is None:
            self._evict_slow_clients()
        try:
            async with asyncio.timeout(self._limits.timeout):
                await waiting[1]
        except BaseException as error:
            with suppress(ValueError):
                self._waiting.remove(waiting)
            if waiting[1].done() and not waiting[1].cancelled():  # given at the same moment
                self.free(n)
            self._give_all()
            if isinstance(error, TimeoutError):
                raise RefusedError(TEMPORARY, "(there is no room for a large message)") from None
            raise

    def free(self, n: int) -> None:
        """Give back `n` bytes that one message took."""
        self._bytes += n
        self._n_holding -= 1
        self._give_all()

    def _give(self, n: int) -> None:
        self._bytes -= n
        self._n_holding += 1

    def _give_all(self) -> None:
        """Give those who wait what they wait for, in order, as far as there is room."""
        while self._waiting and self._waiting[0][0] <= self._bytes:
            n, taken = self._waiting.popleft()
            if not taken.done():  # else it was cancelled, in this turn of the loop
                self._give(n)
                taken.set_result(None)

    def _evict_slow_clients(self) -> None:
        """Evict the clients that hold room and keep the server waiting, while others wait for it.

        One that takes room and sends nothing would keep others out until its time is up.
        """
        self._eviction = None
        if not self._waiting:
            return
        self._deadlines.end_long_waits(self._limits.grace, holding_room=True)
        loop = asyncio.get_running_loop()
        self._eviction = loop.call_later(_EVICT_INTERVAL, self._evict_slow_clients)
