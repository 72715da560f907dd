"""Requests that are there when their clients are accepted, or a moment later: read at once.

spamc sends its whole request as soon as it is connected.  Reading that by streams, tasks and timers
of asyncio takes longer than classifying a small mail.  So the server looks first, and waits for the
rest of the request for a millisecond; asyncio is for the requests that take longer or are unusual.

While the server waits nobody else is served, so these waits have a bound of their own: a tenth of
the time.
"""

import select
import socket
import time
from collections.abc import Callable

from nbspam.serving.spamd import LINE_LIMIT, Beginning, Request, ordinary_head

_WAIT = 0.001  # seconds for a client to send the rest
_REST = 9  # after a wait there is no other for so many times as long


class Arrivals:
    """Reads the requests of new clients, as far as they are there."""

    def __init__(self, most: int, clock: Callable[[], float] = time.perf_counter) -> None:
        """Read requests with messages of at most `most` bytes; clock: in seconds."""
        self._most, self._clock = most, clock
        self._waits_from = 0.0  # by the clock

    def read(self, connection: socket.socket, may_wait: bool) -> tuple[Request | None, bytes]:
        """Return the request of a new client, and what was read if there is no ordinary one.

        connection: not blocking.  may_wait: for up to a millisecond.
        """
        begun = self._clock()
        may_wait = may_wait and begun >= self._waits_from
        data, head = b"", None
        while True:
            if may_wait:
                self._wait(connection, begun)
            try:
                chunk = connection.recv(self._most + LINE_LIMIT + 1)
            except OSError:  # nothing is there; or who reads on meets the error
                return None, data
            data += chunk
            head = head or ordinary_head(data)
            if head and len(data) == head.end <= head.start + self._most:
                command, version, *_, user = head.request
                return Request(command, version, data[head.start :], user=user), b""
            if not (chunk and may_wait and self._is_promising(data, head)):
                return None, data
            may_wait = self._clock() < begun + _WAIT

    def _is_promising(self, data: bytes, head: Beginning | None) -> bool:
        """Return whether the rest of an ordinary request may follow."""
        if head:
            return len(data) < head.end <= head.start + self._most
        return len(data) < LINE_LIMIT and b"\r\n\r\n" not in data

    def _wait(self, connection: socket.socket, begun: float) -> None:
        """Wait until a client has sent something; begun: when it was read first."""
        poll = select.poll()
        poll.register(connection, select.POLLIN)
        poll.poll(1000 * _WAIT)
        now = self._clock()
        self._waits_from = now + _REST * (now - begun)
