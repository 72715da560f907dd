"""What one answer of a server may take: bytes, and seconds.

imaplib reads as much as a server announces, and waits as long as each byte comes in time.  Here an
answer is what comes between two things that are sent.
"""

import imaplib
import socket
import ssl
import time

from imapclient import IMAPClient, SocketTimeout  # type: ignore[import-untyped]

from nbspam.errors import AwayError
from nbspam.imap.account import Account

_CONNECT_LIMIT = 30.0  # seconds
_ANSWER = 4 << 20  # bytes beside mail; 80,000 UIDs are 0.9 MB
# The slowest answer: so many times as long as a server may be silent, since one that searches says
# now and then that it is still there; and a second for each 4 KiB.
_SILENCES = 10
_SLOWEST = 4096


class BoundedClient(IMAPClient):  # type: ignore[misc]
    """imapclient, of which each answer ends."""

    def __init__(self, account: Account, context: ssl.SSLContext | None) -> None:
        """Connect; context: of the TLS that begins at once, if it does.  Raises AwayError too."""
        self._account, self._context = account, context
        timeout = SocketTimeout(min(account.timeout, _CONNECT_LIMIT), account.timeout)
        super().__init__(account.host, account.own_port, ssl=context is not None, timeout=timeout)
        # It has imaplib write each answer as text, for a log: 0.8 s for one of 16 MiB.
        self._imap.debug = 0

    def _create_IMAP4(self) -> "_Connection":  # noqa: N802 (imapclient's name)
        return _Connection(self._account, self._context)

    def allow(self, content: int) -> None:
        """Let the next answer hold so many bytes of mail, as announced by the server.

        Twice as many, since some servers only estimate the size of a message.
        """
        self._imap.most = _ANSWER + 2 * content


class _Connection(imaplib.IMAP4):
    """imaplib, with its own way of reading."""

    def __init__(self, account: Account, context: ssl.SSLContext | None) -> None:
        self._account, self._context = account, context
        self._buffer = bytearray()
        self._source: socket.socket | None = None  # of what the buffer holds
        self.most = _ANSWER
        self._begin()
        timeout = min(account.timeout, _CONNECT_LIMIT)
        super().__init__(account.host, account.own_port, timeout)

    def _begin(self) -> None:
        self._left = self.most  # bytes
        self._end = time.monotonic() + _SILENCES * self._account.timeout

    def _create_socket(self, timeout: float | None) -> socket.socket:
        plain: socket.socket = super()._create_socket(timeout)  # type: ignore[misc]
        if self._context is None:
            return plain
        return self._context.wrap_socket(plain, server_hostname=self.host)

    def send(self, data: bytes) -> None:  # type: ignore[override]
        """Send something; an answer begins."""
        self._begin()
        self.sock.settimeout(self._account.timeout)
        if self.sock is not self._source:  # TLS has begun: what came before it is no answer
            self._source = self.sock
            self._buffer.clear()
        super().send(data)

    def read(self, size: int) -> bytes:
        """Return the next bytes; raises AwayError if they are too many."""
        if size > len(self._buffer) + self._left:
            raise self._too_large()
        while len(self._buffer) < size:
            self._receive()
        return self._taken(size)

    def readline(self) -> bytes:
        """Return the next line; raises AwayError if it is too long."""
        start = 0
        while (end := self._buffer.find(b"\n", start)) < 0:
            start = len(self._buffer)
            self._receive()
        return self._taken(end + 1)

    def _taken(self, n: int) -> bytes:
        with memoryview(self._buffer) as view:
            taken = bytes(view[:n])
        del self._buffer[:n]
        return taken

    def _receive(self) -> None:
        account = self._account
        left = self._end - time.monotonic()
        try:
            if left <= 0:
                raise TimeoutError
            self.sock.settimeout(min(left, account.timeout))
            data = self.sock.recv(min(1 << 16, self._left + 1))
        except TimeoutError as error:
            if left >= account.timeout:
                raise
            raise AwayError(
                f"{account.server}: one answer of the server takes more than"
                f" {_SILENCES * account.timeout:.0f} s; try again later, or give the account a"
                " longer timeout in the config file"
            ) from error
        if not data:
            raise self.abort("socket error: EOF")
        self._buffer += data
        self._left -= len(data)
        self._end += len(data) / _SLOWEST
        if self._left < 0:
            raise self._too_large()

    def _too_large(self) -> AwayError:
        return AwayError(
            f"{self._account.server}: the server sends more than it was asked for or has announced,"
            " and the connection was ended; run it again, and report it to whoever runs the server"
            " if it stays so"
        )
