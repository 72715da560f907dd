"""The page of metrics, by HTTP: `GET /metrics`, and nothing else.

It is served in the event loop of the mail, so its clients may use little: some connections, which
are evicted when they are slow and others wait, and so many answers a second at most.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable

from nbspam.serving.client import Client
from nbspam.serving.connections import Connections
from nbspam.serving.current import Say
from nbspam.serving.limits import Limits
from nbspam.serving.metrics import CONTENT_TYPE
from nbspam.serving.spamd import RefusedError

# Answers at a time, and seconds that one takes at least: 80 answers a second, whoever asks.
_ANSWERS, _PAUSE = 4, 0.05
# Beside 300 idle clients who come again at once, whoever asks waits for three seconds.
_LIMITS = Limits(connections=64, timeout=5.0, grace=0.5, shutdown=0.2)
_LINES = 64  # of a request; Prometheus sends seven

_PLAIN = "text/plain; charset=utf-8"


class MetricsPage:
    """Answers whoever asks for the metrics."""

    def __init__(self, page: Callable[[], Awaitable[str]], say: Say) -> None:
        """page: returns what to answer.  say: writes to the log."""
        self._page, self._say = page, say
        self._connections = Connections(_LIMITS, self._serve, say)
        self._turns = asyncio.Semaphore(_ANSWERS)

    def listen(self, listeners: list[socket.socket]) -> None:
        """Answer the clients of these sockets from now on, until `close`."""
        self._connections.listen(listeners)

    async def close(self) -> None:
        """Close the listeners, and wait for the last client, for a short time."""
        await self._connections.close(asyncio.get_running_loop().time() + _LIMITS.shutdown)

    async def _serve(self, client: Client) -> None:
        """Answer one client and close its connection; nothing that it does raises."""
        try:
            await self._answer(client)
        except OSError:  # TimeoutError is one; it disconnected, or is too slow
            client.abort()
        finally:
            client.close()

    async def _answer(self, client: Client) -> None:
        try:
            line = await client.first_line(_LINES)
        except RefusedError as error:
            reply = _response("431 Request Header Fields Too Large", f"{error}\n")
            await client.send(reply)
            return
        async with self._turns:
            await client.send(await self._reply(line))
            await asyncio.sleep(_PAUSE)

    async def _reply(self, line: bytes) -> bytes:
        words = line.split(b" ")
        if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
            return _response("400 Bad Request", "this is no request of HTTP/1\n")
        method, target = words[0], words[1].partition(b"?")[0].decode("latin-1")
        if method not in (b"GET", b"HEAD"):
            return _response("405 Method Not Allowed", "only GET and HEAD\n", allow=True)
        with_body = method == b"GET"
        if target == "/metrics":
            return _response("200 OK", await self._page(), CONTENT_TYPE, with_body)
        return _response("404 Not Found", "only /metrics is here\n", with_body=with_body)


def _response(
    status: str, text: str, kind: str = _PLAIN, with_body: bool = True, allow: bool = False
) -> bytes:
    body = text.encode()
    lines = [
        f"HTTP/1.1 {status}",
        f"Content-Type: {kind}",
        f"Content-Length: {len(body)}",
        *(["Allow: GET, HEAD"] if allow else []),
        "Connection: close",
        "",
        "",
    ]
    return "\r\n".join(lines).encode() + (body if with_body else b"")
