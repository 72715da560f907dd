"""Connecting to a server, protected by TLS, and logging in; how it writes names.

Only this module and `bounded.py` import imapclient.
"""

import ipaddress
import logging
import ssl
from contextlib import suppress
from typing import TYPE_CHECKING

from nbspam.errors import AccountError, install_command
from nbspam.imap.account import IMPLICIT, PLAIN, STARTTLS, Account
from nbspam.imap.failure import certificate_error, login_error, no_tls, unreachable

if TYPE_CHECKING:
    from nbspam.imap.bounded import BoundedClient


def connected(account: Account) -> "BoundedClient":
    """Return a client that is connected, and protected by TLS; raises AccountError."""
    try:
        import imapclient  # type: ignore[import-untyped]  # noqa: F401
    except ModuleNotFoundError as error:
        raise AccountError(
            f"{account.name}: mail at a server needs imapclient; install it with:"
            f" {install_command('imapclient')}"
        ) from error
    from nbspam.imap.bounded import BoundedClient

    # It would log what the server says, mail included, for whoever turns logging on.
    logging.getLogger("imapclient").setLevel(logging.CRITICAL)
    context = None if account.tls == PLAIN else _context(account)
    client = None
    try:
        client = BoundedClient(account, context if account.tls == IMPLICIT else None)
        _protect(client, account, context)
    except Exception as error:
        if client is not None:
            with suppress(Exception):  # TLS may have closed it
                client.shutdown()
        raise _connection_error(account, error) from error
    return client


def _protect(client: "BoundedClient", account: Account, context: ssl.SSLContext | None) -> None:
    """Begin TLS where that comes second; raises AccountError where a password would be seen."""
    if account.tls == STARTTLS:
        if not client.has_capability("STARTTLS"):
            raise no_tls(account, "it does not offer STARTTLS")
        client.starttls(context)
    elif account.tls == PLAIN and not _is_loopback(client):
        raise AccountError(
            f"{account.server}: a password goes unprotected only to this machine itself; leave out"
            ' tls = "none", or set it to "starttls"'
        )


def _connection_error(account: Account, error: Exception) -> AccountError:
    if isinstance(error, AccountError):
        return error
    if isinstance(error, ssl.SSLCertVerificationError):
        return certificate_error(account, error)
    if isinstance(error, ssl.SSLError):
        return no_tls(account, error.reason or str(error))
    return unreachable(account, error)


def _context(account: Account) -> ssl.SSLContext:
    """Return what verifies the server's certificate and name; raises AccountError."""
    try:
        return ssl.create_default_context(cafile=account.ca_file)
    except (OSError, ssl.SSLError) as error:
        reason = getattr(error, "strerror", None) or "it holds no certificate"
        raise AccountError(
            f"{account.ca_file}: this ca-file cannot be used ({reason}); name a file of"
            " certificates in PEM"
        ) from error


def _is_loopback(client: "BoundedClient") -> bool:
    peer = client.socket().getpeername()[0]
    return ipaddress.ip_address(peer.partition("%")[0]).is_loopback


def log_in(client: "BoundedClient", account: Account) -> None:
    """Log in as the server allows; raises AccountError.

    LOGIN is the last choice: imaplib sends its words as ASCII, and the user's without quotes.
    """
    secret = account.secret()
    try:
        offered = {_text(each).upper() for each in client.capabilities()}
        if secret.is_token:
            login = client.oauth2_login
            if "AUTH=OAUTHBEARER" in offered and "AUTH=XOAUTH2" not in offered:
                login = client.oauthbearer_login
            login(account.user, secret.value)
        elif "AUTH=PLAIN" in offered:
            answer = f"\0{account.user}\0{secret.value}".encode()
            client.sasl_login("PLAIN", lambda _: answer)
        elif "LOGINDISABLED" in offered or not _is_plain(account.user, secret.value):
            raise AccountError(
                f"{account.name}: the server offers no way to log in with this password"
                " (AUTH=PLAIN); ask whoever runs it for a token, or for a password in ASCII"
            )
        else:
            client.login(account.user, secret.value)
    except AccountError:
        raise
    except Exception as error:  # noqa: BLE001 (whatever it says may quote the password)
        problem = login_error(account, secret, error)
        error.__traceback__ = None
        raise problem from None


def decoded_name(raw: bytes | str) -> str | None:
    """Return a folder's name, which comes in modified UTF-7; None if it is written wrongly."""
    from imapclient import imap_utf7

    try:
        name: str = imap_utf7.decode(raw) if isinstance(raw, bytes) else raw
        name.encode()
    except (UnicodeError, ValueError):
        return None
    return name


def _is_plain(user: str, password: str) -> bool:
    """Return whether LOGIN can send both."""
    return user.isascii() and password.isascii() and not set(user) & set(' "\\(){}%*\r\n')


def _text(value: bytes | str) -> str:
    return value.decode("ascii", "replace") if isinstance(value, bytes) else value
