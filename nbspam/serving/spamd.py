"""The spamd protocol: read requests from clients, and format replies.

A request is a line `COMMAND SPAMC/1.5`, header lines, an empty line and a message; a reply is a
line `SPAMD/1.1 0 EX_OK`, header lines, an empty line and the content.  Clients are SpamAssassin's
`spamc` and everything else that speaks to spamd (Exim, amavis, sieve scripts).

Two rules follow from what spamc does with a reply:
- spamc ignores the code in the status line.  After an error with `Content-length: 0`, spamc outputs
  an empty message and exits with 0.  After only a status line, spamc outputs the message that it
  read.  So an error reply is only a status line.
- spamc recognises spam only by `Spam: True`, with exactly this case and spacing.
"""

import asyncio
import re
import socket
import zlib
from contextlib import suppress
from typing import NamedTuple

from nbspam.reading.compression import MAGIC_BYTES, unpack_module

# Bytes.  A worker holds few messages above this size, and classifies them in threads.  The
# costliest known messages occupy the interpreter for 20 to 35 ms if they have 128 KiB, and for 40
# to 70 ms if they have 256 KiB.  Only 5 of the 6,047 mails of SpamAssassin's corpus are larger than
# 128 KiB.
LARGE = 128 << 10
# Clients choose what is sent, so everything is bounded.
_CHUNK = 256 << 10  # bytes read at a time
LINE_LIMIT = 8 << 10  # bytes of one line of a request; the longest real one is a User: name
HEADERS_LIMIT = 255  # header lines, as in spamd; spamc sends four
_DIGITS_LIMIT = 15  # digits of a Content-length, because int() takes quadratic time

CHECK, SYMBOLS, REPORT, REPORT_IFSPAM = "CHECK", "SYMBOLS", "REPORT", "REPORT_IFSPAM"
PROCESS, HEADERS, TELL, PING, SKIP = "PROCESS", "HEADERS", "TELL", "PING", "SKIP"
CLASSIFY_COMMANDS = CHECK, SYMBOLS, REPORT, REPORT_IFSPAM, PROCESS, HEADERS
COMMANDS = *CLASSIFY_COMMANDS, TELL, PING, SKIP
# the headers that are read; others are ignored
_HEADERS = {*"compress content-length message-class set remove user".split()}
_FIRST_LINE = re.compile(rb"([A-Z_]+) SPAMC/(\d{1,3})\.(\d{1,3})\s*")
_NOT_PRINTABLE = re.compile("[^ -~]+")

# Exit codes of <sysexits.h>, and spamd's own for a timeout.
DATA, UNAVAILABLE, SOFTWARE, UNUSABLE, TEMPORARY, PROTOCOL, TIMEOUT = 65, 69, 70, 74, 75, 76, 79
DISCONNECTED = -1  # no reply was possible: the client disconnected before
# Exit code -> the label of a metric, and the words between code and reason in the status line.
KINDS = {
    DATA: ("message", "Message refused"),
    UNAVAILABLE: ("tell_disabled", "Service Unavailable"),
    SOFTWARE: ("bug", "Internal error"),
    UNUSABLE: ("model", "Model unusable"),
    TEMPORARY: ("busy", "Try again later"),
    PROTOCOL: ("protocol", "Bad header line"),
    TIMEOUT: ("timeout", "Timeout"),
    DISCONNECTED: ("disconnected", ""),
}


class RefusedError(Exception):
    """The request is answered with a status line only; the error's text is the reason."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code

    @property
    def line(self) -> bytes:
        """The whole reply."""
        reason = _NOT_PRINTABLE.sub(" ", str(self))[:500]
        return f"SPAMD/1.0 {self.code} {KINDS[self.code][1]}: {reason}\r\n".encode()


class Request(NamedTuple):
    """A client's request."""

    command: str
    version: tuple[int, int] = (1, 5)  # version of the client's protocol
    body: bytes = b""  # the message, as sent
    compressed: bool = False  # whether zlib has compressed the body
    message_class: str = ""  # TELL: "spam", "ham" or empty
    set_local: bool = False  # TELL: learn the message
    remove_local: bool = False  # TELL: forget the message
    user: str = ""  # as named by the client; any characters of Latin-1

    @property
    def is_large(self) -> bool:
        """Whether the message may take long to read."""
        is_packed = unpack_module(self.body[:MAGIC_BYTES]) is not None
        return self.compressed or len(self.body) > LARGE or is_packed

    def message(self, max_size: int) -> bytes:
        """Return the message, decompressed if necessary; raises RefusedError."""
        message = decompress(self.body, max_size) if self.compressed else self.body
        if message is None:
            raise too_large_error("the decompressed message", max_size)
        return message

    def beginning(self, n: int) -> bytes:
        """Return the first `n` bytes of the message; b"" for invalid zlib data."""
        with suppress(zlib.error):
            body = self.body
            return zlib.decompressobj().decompress(body, n) if self.compressed else body[:n]
        return b""


class Client:
    """A connected client.  Bytes that have arrived are read without waiting for the event loop."""

    def __init__(self, connection: socket.socket) -> None:
        """connection: does not block."""
        self.socket = connection
        self._buffer = bytearray()

    async def _receive(self) -> bool:
        """Read some bytes; return whether there were any."""
        chunk = await asyncio.get_running_loop().sock_recv(self.socket, _CHUNK)
        self._buffer += chunk
        return bool(chunk)

    async def read_line(self) -> bytes:
        """Read a line with its line end; a longer line is cut after more than LINE_LIMIT bytes."""
        while not (n := self._buffer.find(b"\n") + 1):
            n = len(self._buffer)
            if n > LINE_LIMIT + 1 or not await self._receive():
                break
        line = bytes(self._buffer[:n])
        del self._buffer[:n]
        return line

    async def read(self, n: int) -> bytes:
        """Read n bytes, or fewer if the client closes before."""
        while len(self._buffer) < n and await self._receive():
            pass
        body = bytes(self._buffer) if n >= len(self._buffer) else bytes(self._buffer[:n])
        del self._buffer[:n]
        return body

    def count_surplus(self) -> int:
        """Return the number of further bytes that have arrived, without waiting."""
        with suppress(BlockingIOError):
            self._buffer += self.socket.recv(_CHUNK)
        return len(self._buffer)


async def read_head(
    client: Client, max_size: int, can_tell: bool
) -> tuple[Request, int | None] | None:
    """Read one request up to its message; None when the client closed without sending one.

    Returns the request, and the length of its message as sent; None: the message ends where the
    client closes.
    max_size: the maximum bytes of a message as sent.
    can_tell: whether TELL is allowed.
    Raises RefusedError for a request that is invalid, too large, or not allowed.
    """
    first_line = await _line(client, "the first line", "closed before headers", may_end=True)
    if not first_line:
        return None
    match = _FIRST_LINE.fullmatch(first_line)
    command = match[1].decode() if match else ""
    if not match or command not in COMMANDS:
        raise RefusedError(PROTOCOL, first_line[:100].decode("latin-1").rstrip())
    version = (int(match[2]), int(match[3]))
    if command in (PING, SKIP):  # headers may follow, and are ignored
        return Request(command, version), 0
    # The protocol had no headers before 1.1.
    headers = await _read_headers(client) if version > (1, 0) or command == TELL else {}
    request = _with_headers(Request(command, version), headers)
    if command == TELL and not can_tell:
        raise RefusedError(UNAVAILABLE, "TELL is not enabled on this server")
    value = headers.get("content-length")
    if value is None:
        return request, None
    if not (value.isascii() and value.isdigit()):
        raise RefusedError(PROTOCOL, "(Content-Length contains non-numeric bytes)")
    length = int(value[: _DIGITS_LIMIT + 1])
    if length > max_size:
        raise too_large_error("the message", max_size)
    return request, length


async def _read_headers(client: Client) -> dict[str, str]:
    """Return the values of the known headers; the keys are their names in lower case."""
    headers: dict[str, str] = {}
    for _ in range(HEADERS_LIMIT + 1):
        line = (await _line(client, "a header line", "EOF during headers")).rstrip(b"\r\n")
        if not line:
            return headers
        name, colon, value = line.decode("latin-1").partition(":")
        if not colon:
            raise RefusedError(PROTOCOL, "(header not in 'Name: value' format)")
        if (name := name.strip().lower()) in _HEADERS:  # 255 unknown headers could take 2 MB
            headers[name] = value.strip()
    raise RefusedError(PROTOCOL, "(too many headers)")


async def _line(client: Client, what: str, closed: str, may_end: bool = False) -> bytes:
    """Read a line.

    may_end: whether the client may close the connection instead, for which b"" is returned.
    """
    line = await client.read_line()
    if len(line) > LINE_LIMIT + 1:
        raise RefusedError(PROTOCOL, f"({what} is too long)")
    if not line.endswith(b"\n") and (line or not may_end):
        raise RefusedError(PROTOCOL, f"({closed})")
    return line


async def read_body(client: Client, length: int | None, limit: int, n_read: int = 0) -> bytes:
    """Read the rest of a message.

    length: the bytes of the message; None: read up to its end, or up to `limit` bytes.
    n_read: the number of bytes that were read before.
    Raises RefusedError if the client sends fewer or more bytes than `length`, because a part must
    not be taken for the whole message.
    """
    body = await client.read((limit if length is None else length) - n_read)
    n = n_read + len(body)
    if length is not None and (n := n + client.count_surplus()) != length:
        reason = f"(Content-Length mismatch: Expected {length} bytes, got {n} bytes)"
        raise RefusedError(PROTOCOL, reason)
    return body


def _with_headers(request: Request, headers: dict[str, str]) -> Request:
    """Return the request with the fields that its headers set; raises RefusedError."""
    compress = headers.get("compress")
    if compress is not None and compress.lower() != "zlib":
        raise RefusedError(PROTOCOL, f"(compression type not supported: {compress})")
    user = headers.get("user", "")
    request = request._replace(compressed=compress is not None, user=user)
    if request.command != TELL:
        return request
    to_set, to_remove = (
        {place.strip().lower() for place in headers.get(name, "").split(",")}
        for name in ("set", "remove")
    )
    for place in sorted({"local", "remote"} & to_set & to_remove):
        reason = f"Unable to set {place} and remove {place} in the same operation."
        raise RefusedError(PROTOCOL, reason)
    message_class = headers.get("message-class", "").lower()
    if message_class not in ("spam", "ham", ""):
        raise RefusedError(PROTOCOL, "(Message-class header contains invalid class)")
    if "local" in to_set and not message_class:
        raise RefusedError(PROTOCOL, "(Set needs a Message-class of spam or ham)")
    # "remote" is a database that many sites share, such as Razor; nbspam has none.
    return request._replace(
        message_class=message_class, set_local="local" in to_set, remove_local="local" in to_remove
    )


def too_large_error(what: str, max_size: int) -> RefusedError:
    """Return the error for a message that is too large."""
    return RefusedError(DATA, f"{what} is larger than {max_size} bytes")


def decompress(data: bytes, max_bytes: int) -> bytes | None:
    """Decompress a message with zlib; None if it has more than `max_bytes` bytes.

    Stops after one byte more, because a few kilobytes can expand to gigabytes.
    Raises RefusedError for invalid zlib data.
    """
    stream = zlib.decompressobj()
    try:
        message = stream.decompress(data, max_bytes + 1)
    except zlib.error:
        raise RefusedError(DATA, "invalid zlib data") from None
    if len(message) > max_bytes:
        return None
    if not stream.eof or stream.unused_data:
        raise RefusedError(DATA, "the zlib data is truncated or has trailing bytes")
    return message


PONG = b"SPAMD/1.5 0 PONG\r\n"


def reply(request: Request, spam_line: str, content: bytes | None) -> bytes:
    """Return the reply to a request about a message.

    spam_line: such as "True ; 15.3 / 5.0".
    content: the text after the reply's headers; None for CHECK.  Before version 1.3 of the
    protocol, a reply had at most one header; before 1.2, a reply with a message had no header.
    Exim requests a REPORT in version 1.2.
    """
    status, spam = b"SPAMD/1.1 0 EX_OK\r\n", f"Spam: {spam_line}\r\n".encode()
    if content is None:
        return status + spam + b"\r\n"
    length = b"Content-length: %d\r\n" % len(content)
    if request.version >= (1, 3):
        return status + length + spam + b"\r\n" + content
    if request.command in (PROCESS, HEADERS):
        if request.version >= (1, 2):
            return status + length + b"\r\n" + content
        return b"SPAMD/1.0 0 EX_OK\r\n" + content
    return status + spam + b"\r\n" + content + (b"\r\n" if request.command == SYMBOLS else b"")


def tell_reply(request: Request, changed: bool) -> bytes:
    """Return the reply to TELL; changed: whether the model has changed."""
    done = b""
    if changed:
        done = b"DidSet: local\r\n" if request.set_local else b"DidRemove: local\r\n"
    return b"SPAMD/1.1 0 EX_OK\r\n" + done + b"\r\n\r\n"
