"""An account at an IMAP server: its address, its password, and its errors.

The address of a folder is `imaps://USER@HOST[:PORT]/FOLDER`, as in RFC 5092.  An error quotes the
server, but never the password or token.  For each kind of failure (connection, login, command) one
function makes the error.
"""

import base64
import difflib
import imaplib
import os
import re
import signal
import ssl
import stat
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, unquote

from nbspam.errors import AccountError, UnavailableError, one_line
from nbspam.names import user_folder

SCHEME = "imaps://"
_UID_SEPARATOR = "/;UID="
_EXAMPLE = "write imaps://USER@HOST/FOLDER, such as imaps://hal@mail.example.org/INBOX"

INBOX = "INBOX"
IMPLICIT, STARTTLS, PLAIN = "implicit", "starttls", "none"  # how a connection is protected
SECURITY = (IMPLICIT, STARTTLS, PLAIN)
_PORTS = {IMPLICIT: 993, STARTTLS: 143, PLAIN: 143}
_COMMAND_SECONDS = 120.0  # for a password command, which may ask for a passphrase
_SECRET_LIMIT = 1 << 16  # characters; tokens have a few thousand

_QUOTED_LIMIT = 160  # characters of a server's answer
_MAX_FOLDERS_NAMED = 10
# RFC 5530: the server has a problem, and the password may be right.
_TEMPORARY_CODES = re.compile(r"\[(UNAVAILABLE|INUSE|LIMIT|SERVERBUG|CONTACTADMIN)\b")
_LOST = (imaplib.IMAP4.abort, OSError, EOFError)
RUN_LIMIT = 2 * 3600.0  # seconds of work on one account


# Addresses


class FolderAddress(NamedTuple):
    """A folder at a server, or one message in it."""

    user: str
    host: str
    port: int | None  # None for the usual port
    folder: str  # "" if the address has no folder
    uid: int | None = None  # None for the whole folder

    @property
    def text(self) -> str:
        """The address as text, for `parse_address`."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port is None else f":{self.port}"
        user = quote(self.user, safe="@+!$'()*,=&~")
        # For people: only characters that an address cannot have are encoded.
        folder = "".join(quote(c) if c in '%;?#"<>\\' or c < "!" else c for c in self.folder)
        uid = "" if self.uid is None else f"{_UID_SEPARATOR}{self.uid}"
        return f"{SCHEME}{user}@{host}{port}/{folder}{uid}"


def parse_address(text: str) -> FolderAddress:
    """Parse an address; raises AccountError.

    The user ends at the last @ before the host, so it may be a mail address.  User and folder may
    be percent-encoded UTF-8.
    """
    if not text.lower().startswith(SCHEME):
        raise AccountError(
            f"{text}: only imaps:// is read; write imaps://, and if the server needs STARTTLS, add"
            ' an account with this user and host and tls = "starttls" to the config file'
        )
    place, slash, rest = text[len(SCHEME) :].partition("/")
    user, at, server = place.rpartition("@")
    folder, has_uid, uid = f"/{rest}".partition(_UID_SEPARATOR)
    parts = re.fullmatch(r"(?:\[(.*)\]|(.*?))(?::(.*))?", server, re.DOTALL)
    assert parts
    host, port = parts[1] or parts[2], parts[3]
    # The address without its password, if it has one.
    visible = f"{SCHEME}{user.partition(':')[0]}{at}{server}{slash}{rest}"
    if ":" in user:
        raise AccountError(
            f"{SCHEME}…@{server}: a password cannot stand in an address, where every user of this"
            " machine sees it; leave it out, and give a password-command in the config file"
        )
    problem = AccountError(f"{visible}: is not the address of a folder or message; {_EXAMPLE}")
    is_port = port is None or _is_number(port, 1 << 16)
    if not (user and host and is_port) or (has_uid and not _is_number(uid, 1 << 32)):
        raise problem
    try:
        user, folder = unquote(user, errors="strict"), unquote(folder[1:], errors="strict")
    except UnicodeDecodeError as error:
        raise problem from error
    number, message = None if port is None else int(port), int(uid) if has_uid else None
    return FolderAddress(user, host, number, folder, message)


def _is_number(text: str, end: int) -> bool:
    return text.isascii() and text.isdigit() and 0 < int(text) < end


def state_file(name: str) -> Path:
    """Return the file of an account's state; raises AccountError."""
    folder = user_folder("XDG_STATE_HOME", ".local/state")
    if folder is None:
        raise AccountError(
            "there is no home folder to remember the account's state in; set XDG_STATE_HOME"
        )
    return Path(f"{folder}/nbspam/mail/{quote(name, safe='@+:')}.json")


# Accounts and their passwords


class Secret:
    """A password or token; its value is not shown, not even in a traceback."""

    def __init__(self, value: str, is_token: bool = False) -> None:
        """value: a password, or an OAuth 2 access token."""
        self.value, self.is_token = value, is_token

    def __repr__(self) -> str:
        return "Secret(…)"


class Account(NamedTuple):
    """An account, and the use of its folders."""

    user: str
    host: str
    secret: Callable[[], Secret]  # called at each login, because a token may expire after an hour
    port: int | None = None
    tls: str = IMPLICIT  # one of SECURITY
    ca_file: str | None = None  # certificates to trust instead of the system's
    timeout: float = 60.0  # seconds that the server may be silent
    label: str = ""  # name in the config file; otherwise the address
    folders: tuple[str, ...] = (INBOX,)  # folders to classify
    junk: str | None = None  # None for the folder that the server marks \\Junk
    ham: tuple[str, ...] = (INBOX,)  # folders to learn as ham
    auth_host: str | None = None  # the server whose Authentication-Results prove a sender
    keywords: bool = False  # set a keyword for spam on mail that is moved to the junk folder
    class_folders: tuple[tuple[str, str], ...] = ()  # pairs of another class and its folder

    @property
    def own_port(self) -> int:
        """The given port, or the usual port."""
        return _PORTS[self.tls] if self.port is None else self.port

    @property
    def server(self) -> str:
        """The server, for errors: `mail.example.org:993`."""
        return f"{self.host}:{self.own_port}"

    @property
    def name(self) -> str:
        """The account's name in errors: `hal@mail.example.org`."""
        return f"{self.user}@{self.host}"

    @property
    def state(self) -> Path:
        """The account's state file."""
        return state_file(f"{self.name}:{self.own_port}")


def secret_from_command(command: str, key: str, account: str) -> Secret:
    """Run a shell command, and return its first line of output; raises AccountError.

    key: the command's key in the config file; "token-command" if it prints a token.
    """
    try:
        process = subprocess.run(
            command,
            shell=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            timeout=_COMMAND_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise AccountError(
            f"{account}: the {key} has not ended after {_COMMAND_SECONDS:.0f} s; run it by hand to"
            " see what it waits for"
        ) from None
    if process.returncode:
        raise AccountError(
            f"{account}: the {key} failed with exit code {process.returncode}; run it by hand to"
            " see why"
        )
    return Secret(_first_line(process.stdout, f"the {key}", account), key == "token-command")


def from_file(path: str, account: str) -> Secret:
    """Return the first line of a file that only its owner can read; raises AccountError."""
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 (a name as the user gave it)
            mode = os.fstat(file.fileno()).st_mode
            content = file.read(_SECRET_LIMIT) or b""
    except OSError as error:
        raise AccountError(
            f"{path}: the password file of {account} cannot be read ({error.strerror}); create it"
            " with mode 0600, or correct password-file in the config file"
        ) from error
    if stat.S_ISREG(mode) and stat.S_IMODE(mode) & 0o077:
        raise AccountError(
            f"{path}: others can read this password file; run chmod 600 on it, and change the"
            " password if they may have read it"
        )
    return Secret(_first_line(content, path, account))


def _first_line(content: bytes, origin: str, account: str) -> str:
    """Return the first line as text; raises AccountError if it cannot be a password."""
    line = content.split(b"\n", 1)[0].removesuffix(b"\r")
    try:
        text = line[:_SECRET_LIMIT].decode()
    except UnicodeDecodeError:
        text = ""
    if not text or "\0" in text or "\r" in text:
        problem = "gave no password" if not line else "gave something that cannot be a password"
        raise AccountError(f"{account}: {origin} {problem}; its first line must be the password")
    return text


# Failures


class ImapRefusalError(AccountError):
    """The server refused a command."""

    def __init__(self, where: str, reason: str) -> None:
        """where: the account and folder.  reason: quotes the server's answer."""
        self.reason = reason
        super().__init__(
            f"{where}: {reason}; check the folder's rights, and whether the mailbox is full"
        )


class SetupError(AccountError):
    """The user must correct a name or a file first, so nothing else is tried."""


class TimeLimitError(UnavailableError):
    """The work on one account took too long; the next run continues."""


@contextmanager
def time_limit(name: str) -> Iterator[None]:
    """Raise TimeLimitError once the work on an account has taken RUN_LIMIT seconds.

    A connection's timeout ends a server's silence, but not an endless answer.
    """

    def stop(*_: object) -> None:
        raise TimeLimitError(
            f"{name}: this run was stopped after {RUN_LIMIT / 3600:g} hours; what it did is kept,"
            " and the next run continues"
        )

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, RUN_LIMIT)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def connection_error(account: Account, error: Exception) -> AccountError:
    """Return the error for a failed connection, or for failed TLS."""
    if isinstance(error, AccountError):
        return error
    if isinstance(error, ssl.SSLError):
        reason = getattr(error, "verify_message", "") or getattr(error, "reason", "") or str(error)
        return AccountError(
            f"{account.server}: there is no protected connection"
            f" ({one_line(reason)[:_QUOTED_LIMIT]}), and nothing was sent; correct host, port and"
            ' tls (port 143 needs tls = "starttls"), or name the authority with ca-file'
        )
    return UnavailableError(
        f"{account.server}: cannot be reached ({_quoted(error)}); try again later, or correct host"
        " and port"
    )


def login_error(account: Account, secret: Secret, error: Exception) -> AccountError:
    """Return the error for a failed login.

    The error quotes the server's answer, unless the answer contains the secret.
    """
    answer = _quoted(error)
    # imapclient raises the same error for every failure at the login.
    is_lost = any(isinstance(failure, _LOST) for failure in (error, error.__context__))
    if is_lost or _TEMPORARY_CODES.search(answer):
        reason = "the connection was lost" if is_lost else answer
        return UnavailableError(
            f"{account.server}: no login is possible now ({reason}); try again later"
        )
    plain = f"\0{account.user}\0{secret.value}"
    hidden = [secret.value, *(base64.b64encode(t.encode()).decode() for t in (secret.value, plain))]
    quoted = f" ({answer})" if answer and not any(text in answer for text in hidden) else ""
    return AccountError(
        f"{account.name}: the server refused the login{quoted}; check the user and what"
        " password-command or token-command prints (large providers want an app password, or a"
        " token)"
    )


def missing_folder(account: str, name: str, names: Sequence[str]) -> AccountError:
    """Return the error for a missing folder; names: the existing folders."""
    if close := difflib.get_close_matches(name, names, 1):
        remedy = f"did you mean {close[0]}?"
    else:
        more = ", …" if len(names) > _MAX_FOLDERS_NAMED else ""
        remedy = f"name one of {', '.join(names[:_MAX_FOLDERS_NAMED])}{more}"
    return SetupError(f"{account}: there is no folder {name!r}; {remedy}")


def command_error(account: Account, error: Exception, folder: str = "") -> AccountError:
    """Return the error for a failed command on a folder."""
    where = f"{account.name}: {folder}" if folder else account.name
    if isinstance(error, AccountError):
        return error
    is_lost = isinstance(error, _LOST) and not isinstance(error, imaplib.IMAP4.readonly)
    if isinstance(error, imaplib.IMAP4.error) and not is_lost:
        # A ProtocolError quotes the answer, which may be mail.
        is_quotable = type(error).__name__ != "ProtocolError"
        answer = _quoted(error).partition(" This error may")[0] if is_quotable else ""
        return ImapRefusalError(
            where, f"the server refused the command ({answer or type(error).__name__})"
        )
    reason = getattr(error, "strerror", None) or type(error).__name__
    return UnavailableError(
        f"{account.server}: the connection was lost ({reason}); run it again, and it continues"
        " where it stopped"
    )


def _quoted(error: Exception) -> str:
    """Return a server's answer in one line, without Python's quotes."""
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    if quoted := re.search(r"b'(.*)'|b\"(.*)\"", text, re.DOTALL):
        text = quoted[1] or quoted[2] or ""
    text = re.sub(r"^\w+ failed: ", "", text)
    return one_line(" ".join(text.split()))[:_QUOTED_LIMIT]
