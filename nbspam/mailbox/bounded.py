"""imapclient, connected and logged in, with bounds on the bytes and seconds of each answer.

imaplib reads as many bytes as a server announces, and waits as long as each byte comes in time.
Here an answer is everything between two commands, and its bytes and seconds are bounded.

Only this module imports imapclient.
"""

import imaplib
import ipaddress
import logging
import socket
import ssl
import time
from contextlib import suppress

from imapclient import IMAPClient, SocketTimeout, imap_utf7  # type: ignore[import-untyped]

from nbspam.errors import AccountError, UnavailableError
from nbspam.mailbox.account import IMPLICIT, PLAIN, STARTTLS, Account, connection_error, login_error

_CONNECT_LIMIT = 30.0  # seconds
_ANSWER = 4 << 20  # bytes beside mail and lists of UIDs
# Seconds of an answer: so many timeouts, since a server that searches reports now and then that it
# goes on; and one second for each 4 KiB.
_SILENCES = 10
_SLOWEST = 4096


class BoundedClient(IMAPClient):  # type: ignore[misc]
    """imapclient, with bounded answers."""

    def __init__(self, account: Account, context: ssl.SSLContext | None) -> None:
        """Connect; context: of TLS, if it begins at once.  Raises UnavailableError too."""
        self._account, self._context = account, context
        timeout = SocketTimeout(min(account.timeout, _CONNECT_LIMIT), account.timeout)
        super().__init__(account.host, account.own_port, ssl=context is not None, timeout=timeout)
        # imapclient has imaplib format each answer for a log: 0.8 s for 16 MiB.
        self._imap.debug = 0

    def _create_IMAP4(self) -> "_Connection":  # noqa: N802 (imapclient's name)
        return _Connection(self._account, self._context)

    def allow(self, content: int) -> None:
        """Allow so many bytes of mail in the next answer, as announced by the server.

        The bound is twice as high, since some servers only estimate the size of a message.
        """
        self._imap.most = _ANSWER + 2 * content

    def has_more(self) -> bool:
        """Return whether received bytes wait to be read, which the socket does not show."""
        return bool(self._imap._buffer)

    def log_in(self) -> None:
        """Log in as the server allows; raises AccountError.

        LOGIN is the last choice: imaplib sends it as ASCII, and the user without quotes.
        """
        account = self._account
        secret, user = account.secret(), account.user
        try:
            offered = {capability.upper() for capability in self.capabilities()}
            if secret.is_token:
                is_bearer = b"AUTH=OAUTHBEARER" in offered and b"AUTH=XOAUTH2" not in offered
                login = self.oauthbearer_login if is_bearer else self.oauth2_login
                login(user, secret.value)
            elif b"AUTH=PLAIN" in offered:
                self.sasl_login("PLAIN", lambda _: f"\0{user}\0{secret.value}".encode())
            elif (
                b"LOGINDISABLED" in offered
                or not (user.isascii() and secret.value.isascii())
                or set(user) & set(' "\\(){}%*\r\n')
            ):
                raise AccountError(
                    f"{account.name}: the server offers no way to log in with this password"
                    " (AUTH=PLAIN); ask its administrator for a token, or for a password in ASCII"
                )
            else:
                self.login(user, secret.value)
        except AccountError:
            raise
        except Exception as error:  # noqa: BLE001 (whatever it says may quote the password)
            problem = login_error(account, secret, error)
            error.__traceback__ = None
            raise problem from None


def connected(account: Account) -> BoundedClient:
    """Return a client that is connected, protected by TLS, and logged in; raises AccountError."""
    # imapclient would log the server's answers, mail included.
    logging.getLogger("imapclient").setLevel(logging.CRITICAL)
    context = None if account.tls == PLAIN else _context(account)
    client = None
    try:
        client = BoundedClient(account, context if account.tls == IMPLICIT else None)
        if account.tls == STARTTLS:
            if not client.has_capability("STARTTLS"):
                raise ssl.SSLError(1, "it does not offer STARTTLS")
            client.starttls(context)
        elif account.tls == PLAIN and not _is_loopback(client):
            raise AccountError(
                f"{account.server}: an unencrypted password is sent only to this machine itself;"
                ' leave out tls = "none", or set it to "starttls"'
            )
        client.log_in()
    except Exception as error:
        if client is not None:
            with suppress(Exception):  # TLS may have closed it
                client.shutdown()
        raise connection_error(account, error) from error
    return client


def _context(account: Account) -> ssl.SSLContext:
    """Return the context that verifies the server's certificate and name; raises AccountError."""
    try:
        return ssl.create_default_context(cafile=account.ca_file)
    except (OSError, ssl.SSLError) as error:
        reason = getattr(error, "strerror", None) or "it holds no certificate"
        raise AccountError(
            f"{account.ca_file}: this ca-file cannot be used ({reason}); name a file of"
            " certificates in PEM"
        ) from error


def _is_loopback(client: BoundedClient) -> bool:
    peer = client.socket().getpeername()[0]
    return ipaddress.ip_address(peer.partition("%")[0]).is_loopback


def decoded_name(raw: bytes | str) -> str | None:
    """Return a folder's name, decoded from modified UTF-7; None if it is invalid."""
    try:
        name: str = imap_utf7.decode(raw) if isinstance(raw, bytes) else raw
        name.encode()
    except (UnicodeError, ValueError):
        return None
    return name


class _Connection(imaplib.IMAP4):
    """imaplib, which reads within the bounds of an answer."""

    def __init__(self, account: Account, context: ssl.SSLContext | None) -> None:
        self._account, self._context = account, context
        self._buffer = bytearray()
        self._source: socket.socket | None = None  # of the bytes in the buffer
        self.most = _ANSWER
        self._begin()
        super().__init__(account.host, account.own_port, min(account.timeout, _CONNECT_LIMIT))

    def _begin(self) -> None:
        self._left = self.most  # bytes
        self._end = time.monotonic() + _SILENCES * self._account.timeout

    def _create_socket(self, timeout: float | None) -> socket.socket:
        plain: socket.socket = super()._create_socket(timeout)  # type: ignore[misc]
        if self._context is None:
            return plain
        return self._context.wrap_socket(plain, server_hostname=self.host)

    def send(self, data: bytes) -> None:  # type: ignore[override]
        """Send a command; an answer begins."""
        self._begin()
        self.sock.settimeout(self._account.timeout)
        if self.sock is not self._source:  # TLS has begun: bytes from before are no answer
            self._source = self.sock
            self._buffer.clear()
        super().send(data)

    def read(self, size: int) -> bytes:
        """Return the next bytes; raises UnavailableError if they are too many."""
        if size > len(self._buffer) + self._left:
            raise self._too_large()
        while len(self._buffer) < size:
            self._receive()
        return self._remove(size)

    def readline(self) -> bytes:
        """Return the next line; raises UnavailableError if it is too long."""
        start = 0
        while (end := self._buffer.find(b"\n", start)) < 0:
            start = len(self._buffer)
            self._receive()
        return self._remove(end + 1)

    def _remove(self, n: int) -> bytes:
        data = bytes(self._buffer[:n])
        del self._buffer[:n]
        return data

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
            raise UnavailableError(
                f"{account.server}: one answer of the server took more than"
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

    def _too_large(self) -> UnavailableError:
        return UnavailableError(
            f"{self._account.server}: the server sent more than was requested or announced, and"
            " the connection was closed; run it again, and tell its administrator if this happens"
            " again"
        )
