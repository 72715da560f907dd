"""The connection to one client: a request read, a reply written, no wait without a bound."""

import asyncio
import socket
from contextlib import suppress

from nbspam.serving.limits import Deadlines, Limits
from nbspam.serving.spamd import LINE_LIMIT, Request, read_request

_CHUNK = 256 << 10
# Seconds to go on reading after the reply, so that the client can read it.
_LINGER = 2.0


class Client:
    """One client, connected."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        limits: Limits,
        deadlines: Deadlines,
    ) -> None:
        self._reader, self._writer = reader, writer
        self._limits, self._deadlines = limits, deadlines

    @classmethod
    async def connect(
        cls, connection: socket.socket, limits: Limits, deadlines: Deadlines
    ) -> "Client":
        """Return the client at the other end of an accepted connection; raises OSError."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=LINE_LIMIT, loop=loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        transport, _ = await loop.connect_accepted_socket(lambda: protocol, connection)
        transport.set_write_buffer_limits(0)  # so that drain() waits for the last byte
        return cls(
            reader, asyncio.StreamWriter(transport, protocol, reader, loop), limits, deadlines
        )

    async def request(self, can_tell: bool) -> Request | None:
        """Read the request; None when the client closed without one.

        can_tell: whether TELL is allowed.
        Raises RefusedError for an invalid one, TimeoutError, or OSError when the client has gone.
        """
        async with self._deadlines.limit():
            return await read_request(self._reader, self._limits.max_size, can_tell)

    async def send(self, reply: bytes) -> None:
        """Write the whole reply, and nothing after it; raises OSError, as TimeoutError is."""
        async with self._deadlines.limit():
            self._writer.write(reply)
            await self._writer.drain()
            self._writer.write_eof()

    async def linger(self) -> None:
        """Read for a while until the client has closed; raises OSError.

        Closing with unread data resets the connection, and may lose the reply.
        """
        if self._reader.at_eof():
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
