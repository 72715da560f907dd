"""The connection to one client: a request read, a reply written, no wait without a bound."""

import asyncio
import socket
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import NamedTuple

from nbspam.serving.limits import LARGE, Deadlines, Limits, Wait
from nbspam.serving.room import Room
from nbspam.serving.spamd import (
    DATA,
    LINE_LIMIT,
    PING,
    SKIP,
    TELL,
    RefusedError,
    Request,
    read_body,
    read_head,
    too_large,
    unzipped,
)

_CHUNK = 256 << 10
# Seconds to go on reading after the reply, so that the client can read it.
_LINGER = 2.0


class Rooms(NamedTuple):
    """Where the large messages of all clients are."""

    judging: Room
    learning: Room


class Client:
    """One client, connected."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        limits: Limits,
        deadlines: Deadlines,
        rooms: Rooms,
        parked: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._reader, self._writer = reader, writer
        self._limits, self._deadlines, self._rooms = limits, deadlines, rooms
        self._taken: tuple[Room, int] | None = None
        self._is_read = False  # all that the client has to say
        # To be entered while the server makes the client wait: its place is for others then.
        self.parked = parked

    @classmethod
    async def connect(
        cls,
        connection: socket.socket,
        limits: Limits,
        deadlines: Deadlines,
        rooms: Rooms,
        parked: Callable[[], AbstractContextManager[None]],
        begun: bytes = b"",
    ) -> "Client":
        """Return the client at the other end of an accepted connection; raises OSError.

        parked: returns a context in which the client leaves its place to others.
        begun: what was read of the request.
        """
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=LINE_LIMIT, loop=loop)
        reader.feed_data(begun)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        transport, _ = await loop.connect_accepted_socket(lambda: protocol, connection)
        transport.set_write_buffer_limits(0)  # so that drain() waits for the last byte
        writer = asyncio.StreamWriter(transport, protocol, reader, loop)
        return cls(reader, writer, limits, deadlines, rooms, parked)

    async def request(self, can_tell: bool) -> Request | None:
        """Read the request; None when the client closed without one.

        can_tell: whether TELL is allowed.
        Raises RefusedError for an invalid one, TimeoutError, or OSError when the client has gone.
        """
        small = min(LARGE, self._limits.max_size)
        async with self._deadlines.limit() as wait:
            head = await read_head(self._reader, self._limits.max_size, can_tell)
            if head is None:
                return None
            request, length = head
            body = bytearray()
            if length is None or length <= small:
                body = await read_body(self._reader, body, length, small, wait.progress)
        if len(body) > self._limits.max_size:
            raise too_large("the message", self._limits.max_size)
        if (length or 0) > small or len(body) > small:
            body = await self._large_body(request, body, length)
        self._is_read = request.command not in (PING, SKIP)
        if request.compressed and not self._taken:
            return await self._unzipped(request, body)
        return request._replace(body=body if len(body) > small else bytes(body))

    async def first_line(self, most: int) -> bytes:
        """Read the lines up to an empty one, or to the end; return the first.  Raises OSError.

        most: their number.  Raises RefusedError for more, or for one that is too long.
        """
        first, n = b"", 0
        async with self._deadlines.limit() as wait:
            with suppress(asyncio.IncompleteReadError):
                while line := (await self._line(wait)).rstrip(b"\r\n"):
                    first, n = first or line, n + 1
                    if n > most:
                        raise RefusedError(DATA, "too many lines")
        return first

    async def _line(self, wait: Wait) -> bytes:
        try:
            line = await self._reader.readuntil(b"\n")
        except asyncio.LimitOverrunError:
            raise RefusedError(DATA, "a line is too long") from None
        wait.progress(len(line))
        return line

    async def _large_body(
        self, request: Request, begun: bytearray, length: int | None
    ) -> bytearray:
        """Read a large message, once there is room for it, and for the reply that has it."""
        most = self._limits.max_size
        await self._take_room(request, most if length is None or request.compressed else length)
        async with self._deadlines.limit(holds_room=True) as wait:
            body = await read_body(self._reader, begun, length, most, wait.progress)
        if len(body) > most:
            raise too_large("the message", most)
        return body

    async def _unzipped(self, request: Request, body: bytearray) -> Request:
        """Return a request whose body is small: decompressed, if that is small too."""
        message = unzipped(body, min(LARGE, self._limits.max_size))
        if message is None and self._limits.max_size <= LARGE:
            raise too_large("the decompressed message", self._limits.max_size)
        if message is not None:
            return request._replace(body=message, compressed=False)
        await self._take_room(request, self._limits.max_size)
        return request._replace(body=body)

    async def _take_room(self, request: Request, n: int) -> None:
        room = self._rooms.learning if request.command == TELL else self._rooms.judging
        with self.parked():
            await room.take(n)
        self._taken = room, n

    def free_room(self) -> None:
        """Give back the room of a large message, whose memory is freed."""
        if self._taken:
            room, n = self._taken
            self._taken = None
            room.free(n)

    async def send(self, reply: bytes | bytearray) -> None:
        """Write the whole reply, and nothing after it, and free it; raises OSError.

        TimeoutError is one.
        """
        try:
            async with self._deadlines.limit(holds_room=self._taken is not None) as wait:
                with memoryview(reply) as view:
                    for at in range(0, len(view), _CHUNK):  # of what it cannot send, it has a copy
                        with view[at : at + _CHUNK] as piece:
                            self._writer.write(piece)
                        await self._writer.drain()
                        wait.progress(_CHUNK)
                self._writer.write_eof()
        finally:
            # The stream keeps the error of a client that has gone, and the error its frames.
            if isinstance(reply, bytearray):
                with suppress(BufferError):
                    reply.clear()

    async def linger(self) -> None:
        """Read for a while until the client has closed, unless all was read; raises OSError.

        Closing with unread data resets the connection, and may lose the reply.
        """
        if self._is_read or self._reader.at_eof():
            return
        left = self._limits.max_size
        with suppress(TimeoutError):
            async with asyncio.timeout(_LINGER):
                while left > 0 and (chunk := await self._reader.read(_CHUNK)):
                    left -= len(chunk)

    def abort(self) -> None:
        """Close the connection at once, and drop what was not sent."""
        self._writer.transport.abort()

    def close(self) -> None:
        """Close the connection when everything is sent."""
        self._writer.transport.close()
        self.free_room()
