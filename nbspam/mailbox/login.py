"""Connecting an imapclient: TLS, and the login.

Only this module imports imapclient.
"""

import imaplib
import ipaddress
import logging
import ssl
from contextlib import suppress

from imapclient import IMAPClient, SocketTimeout  # type: ignore[import-untyped]

from nbspam.errors import AccountError
from nbspam.mailbox.account import IMPLICIT, PLAIN, STARTTLS, Account, connection_error, login_error

_CONNECT_LIMIT = 30.0  # seconds
# imaplib allows lines of 1 MB, and the answer to a search is one line with all UIDs.
_LINE_LIMIT = 32 << 20  # bytes


def connect(account: Account) -> IMAPClient:
    """Connect and log in; raises AccountError."""
    # Otherwise imapclient would log the server's answers, including mail.
    logging.getLogger("imapclient").setLevel(logging.CRITICAL)
    imaplib._MAXLINE = _LINE_LIMIT  # type: ignore[attr-defined]
    context = None if account.tls == PLAIN else _context(account)
    is_implicit, client = account.tls == IMPLICIT, None
    timeout = SocketTimeout(min(account.timeout, _CONNECT_LIMIT), account.timeout)
    try:
        client = IMAPClient(
            account.host,
            account.own_port,
            ssl=is_implicit,
            ssl_context=context if is_implicit else None,
            timeout=timeout,
        )
        client._imap.debug = 0  # otherwise imaplib formats each answer: 0.8 s for 16 MiB
        if account.tls == STARTTLS:
            if not client.has_capability("STARTTLS"):
                raise ssl.SSLError(1, "it does not offer STARTTLS")
            client.starttls(context)
        elif account.tls == PLAIN and not _is_loopback(client):
            raise AccountError(
                f"{account.server}: an unencrypted password is sent only to this machine itself;"
                ' leave out tls = "none", or set it to "starttls"'
            )
        _log_in(client, account)
    except Exception as error:
        if client is not None:
            with suppress(Exception):  # TLS may have closed it
                client.shutdown()
        raise connection_error(account, error) from error
    return client


def _log_in(client: IMAPClient, account: Account) -> None:
    """Log in by a method that the server offers; raises AccountError.

    LOGIN is the last choice: with it, imaplib sends only ASCII, and does not quote the user name.
    """
    secret, user = account.secret(), account.user
    try:
        offered = {capability.upper() for capability in client.capabilities()}
        if secret.is_token:
            is_bearer = b"AUTH=OAUTHBEARER" in offered and b"AUTH=XOAUTH2" not in offered
            login = client.oauthbearer_login if is_bearer else client.oauth2_login
            login(user, secret.value)
        elif b"AUTH=PLAIN" in offered:
            client.sasl_login("PLAIN", lambda _: f"\0{user}\0{secret.value}".encode())
        elif (
            b"LOGINDISABLED" in offered
            or not (user.isascii() and secret.value.isascii())
            or set(user) & set(' "\\(){}%*\r\n')
        ):
            raise AccountError(
                f"{account.name}: the server does not offer AUTH=PLAIN, the only way to log in with"
                " this user and password; ask its administrator for that, or for a token"
            )
        else:
            client.login(user, secret.value)
    except AccountError:
        raise
    except Exception as error:  # noqa: BLE001 (its text may quote the password)
        problem = login_error(account, secret, error)
        error.__traceback__ = None
        raise problem from None


def _context(account: Account) -> ssl.SSLContext:
    """Make a context that verifies the server's certificate and name; raises AccountError."""
    try:
        return ssl.create_default_context(cafile=account.ca_file)
    except (OSError, ssl.SSLError) as error:
        reason = getattr(error, "strerror", None) or "it holds no certificate"
        raise AccountError(
            f"{account.ca_file}: this ca-file cannot be used ({reason}); name a file of"
            " certificates in PEM"
        ) from error


def _is_loopback(client: IMAPClient) -> bool:
    peer = client.socket().getpeername()[0]
    return ipaddress.ip_address(peer.partition("%")[0]).is_loopback


def has_more(client: IMAPClient) -> bool:
    """Return whether imaplib's buffer has bytes to read, which the socket does not show."""
    sock, file = client.socket(), client._imap.file
    timeout = sock.gettimeout()
    try:
        sock.settimeout(0)
        return bool(file.peek(1))
    except OSError:  # raised with TLS if there are no bytes
        return False
    finally:
        sock.settimeout(timeout)
