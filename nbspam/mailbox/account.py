"""An account at an IMAP server: its address, its password, and its errors.

The address of a folder is `imaps://USER@HOST[:PORT]/FOLDER`, as in RFC 5092.  Each error is one
sentence with its remedy; it may quote the server, but never the password or token.
"""

import base64
import difflib
import imaplib
import os
import re
import socket
import ssl
import stat
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, unquote

from nbspam.errors import AccountError, UnavailableError, one_line
from nbspam.names import user_folder

SCHEME = "imaps://"
_UID = "/;UID="
_EXAMPLE = "write imaps://USER@HOST/FOLDER, such as imaps://hal@mail.example.org/INBOX"

INBOX = "INBOX"
IMPLICIT, STARTTLS, PLAIN = "implicit", "starttls", "none"  # how a connection is protected
SECURITY = (IMPLICIT, STARTTLS, PLAIN)
_PORTS = {IMPLICIT: 993, STARTTLS: 143, PLAIN: 143}
_PATIENCE = 120.0  # seconds that a command has for a password: it may ask for a passphrase
_SECRET_LIMIT = 1 << 16  # characters; tokens have a few thousand

_QUOTED_LIMIT = 160  # characters of what a server says
_FOLDERS_NAMED = 10
# RFC 5530: the server has a problem, and the password may be right.
_FOR_NOW = re.compile(r"\[(UNAVAILABLE|INUSE|LIMIT|SERVERBUG|CONTACTADMIN)\b")
_LOST = (imaplib.IMAP4.abort, OSError, EOFError)
# Answers against the protocol; imapclient quotes them, and they may be mail.
_NONSENSE = ("ProtocolError", "InvalidCriteriaError")


# Addresses


class FolderAddress(NamedTuple):
    """A folder at a server, or one message in it."""

    user: str
    host: str
    port: int | None  # None: the usual one
    folder: str  # "" for none
    uid: int | None = None  # of the one message

    @property
    def text(self) -> str:
        """The address, which `parse_address` reads."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port is None else f":{self.port}"
        user = quote(self.user, safe="@+!$'()*,=&~")
        # For people: only characters that an address cannot have are encoded.
        folder = "".join(quote(c) if c in '%;?#"<>\\' or c < "!" else c for c in self.folder)
        uid = "" if self.uid is None else f"{_UID}{self.uid}"
        return f"{SCHEME}{user}@{host}{port}/{folder}{uid}"


def parse_address(text: str) -> FolderAddress:
    """Return the parts of an address; raises AccountError.

    The user ends at the last @ before the host, so it may be a mail address.  User and folder may
    be percent-encoded UTF-8.
    """
    if not text.lower().startswith(SCHEME):
        raise AccountError(
            f"{text}: only imaps:// is read; give imaps:// and, for a server with STARTTLS, an"
            ' account of that user and host with tls = "starttls" in the config file'
        )
    place, slash, rest = text[len(SCHEME) :].partition("/")
    user, at, server = place.rpartition("@")
    folder, has_uid, uid = f"/{rest}".partition(_UID)
    parts = re.fullmatch(r"(?:\[(.*)\]|(.*?))(?::(.*))?", server, re.DOTALL)
    assert parts
    host, port = parts[1] or parts[2], parts[3]
    # Without what may be a password.
    visible = f"{SCHEME}{user.partition(':')[0]}{at}{server}{slash}{rest}"
    if port is not None and not _is_number(port, 1 << 16):
        raise AccountError(f"{visible}: the port is not a number from 1 to 65535; {_EXAMPLE}")
    if not user or not host:
        raise AccountError(f"{visible}: is not the address of a folder; {_EXAMPLE}")
    if ":" in user:
        raise AccountError(
            f"{SCHEME}…@{server}: a password cannot stand in an address, where every user of this"
            " machine sees it; leave it out, and give a password-command in the config file"
        )
    if has_uid and not _is_number(uid, 1 << 32):
        raise AccountError(f"{visible}: is not the address of a message; it ends with /;UID=17")
    try:
        user, folder = unquote(user, errors="strict"), unquote(folder[1:], errors="strict")
    except UnicodeDecodeError as error:
        raise AccountError(
            f"{visible}: its percent-encoding is not UTF-8; encode it as UTF-8, or write the"
            " letters themselves"
        ) from error
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
        """Keep a password, or an access token of OAuth 2."""
        self.value, self.is_token = value, is_token

    def __repr__(self) -> str:
        return "Secret(…)"


class Account(NamedTuple):
    """An account, and the use of its folders."""

    user: str
    host: str
    secret: Callable[[], Secret]  # called at each login, since a token is good for an hour
    port: int | None = None
    tls: str = IMPLICIT  # one of SECURITY
    ca_file: str | None = None  # of the authorities to trust in place of the system's
    timeout: float = 60.0  # seconds in which a server must send something
    label: str = ""  # its name in the config file; otherwise its address
    folders: tuple[str, ...] = (INBOX,)  # whose new mail is classified
    junk: str | None = None  # None: the folder that the server marks so
    ham: tuple[str, ...] = (INBOX,)  # whose mail is learned as ham
    auth_host: str | None = None  # the server whose Authentication-Results prove a sender
    keywords: bool = False  # whether what is moved to the folder for spam gets a keyword for it
    class_folders: tuple[tuple[str, str], ...] = ()  # other classes, and where their mail is moved

    @property
    def own_port(self) -> int:
        """The port to connect to."""
        return _PORTS[self.tls] if self.port is None else self.port

    @property
    def server(self) -> str:
        """The server, for errors: `mail.example.org:993`."""
        return f"{self.host}:{self.own_port}"

    @property
    def name(self) -> str:
        """Its name in errors: `hal@mail.example.org`."""
        return f"{self.user}@{self.host}"

    @property
    def state(self) -> Path:
        """The file of its state."""
        return state_file(f"{self.name}:{self.own_port}")


def from_command(command: str, key: str, account: str) -> Secret:
    """Return the first line that a shell command prints; raises AccountError.

    key: of the command in the config file; "token-command" for a token.
    """
    try:
        process = subprocess.run(
            command, shell=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=_PATIENCE
        )
    except subprocess.TimeoutExpired:
        raise AccountError(
            f"{account}: the {key} has not ended after {_PATIENCE:.0f} s; run it by hand to see"
            " what it waits for"
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


def _first_line(content: bytes, where: str, account: str) -> str:
    """Return the first line as text; raises AccountError if it cannot be a password."""
    line = content.split(b"\n", 1)[0].removesuffix(b"\r")
    try:
        text = line[:_SECRET_LIMIT].decode()
    except UnicodeDecodeError:
        text = ""
    if not text or "\0" in text or "\r" in text:
        problem = "gave no password" if not line else "gave something that cannot be a password"
        raise AccountError(f"{account}: {where} {problem}; its first line must be the password")
    return text


# Failures


class ImapRefusalError(AccountError):
    """The server refused a command; the sentence quotes its answer."""


def connection_error(account: Account, error: Exception) -> AccountError:
    """Return the error of a server to which there is no connection, or no protected one."""
    match error:
        case AccountError():
            return error
        case ssl.SSLCertVerificationError():
            reason = one_line(error.verify_message or str(error))[:_QUOTED_LIMIT]
            return AccountError(
                f"{account.server}: its certificate does not fit ({reason}), and nothing was sent;"
                " give the host as the certificate names it, or name the authority that signed it"
                " with ca-file"
            )
        case ssl.SSLError():
            reason = one_line(getattr(error, "reason", None) or str(error))[:_QUOTED_LIMIT]
            other = 'port 143 needs an account with tls = "starttls"'
            if account.tls == STARTTLS:
                other = 'leave out tls = "starttls" if its port is 993'
            return AccountError(
                f"{account.server}: TLS cannot be started there ({reason}), and nothing was sent;"
                f" correct the port: {other}"
            )
        case socket.gaierror():
            return UnavailableError(
                f"{account.server}: this host has no known address ({error.strerror}); correct"
                " the host, or try again when the network is back"
            )
        case TimeoutError():
            problem = "the server has not answered"
        case _:
            problem = f"cannot be reached ({getattr(error, 'strerror', None) or _quoted(error)})"
    return UnavailableError(
        f"{account.server}: {problem}; try again later, or correct host and port"
    )


def login_error(account: Account, secret: Secret, error: Exception) -> AccountError:
    """Return the error of a login that failed."""
    answer = _quoted(error)
    # imapclient raises the same error for every failure at the login.
    for failure in (error, error.__context__):
        if isinstance(failure, _LOST):
            return UnavailableError(
                f"{account.server}: the connection was lost during login ({_reason(failure)}); try"
                " again later"
            )
    if _FOR_NOW.search(answer):
        return UnavailableError(
            f"{account.server}: the server accepts no logins now; try again later"
        )
    plain = f"\0{account.user}\0{secret.value}"
    hidden = [secret.value, *(base64.b64encode(t.encode()).decode() for t in (secret.value, plain))]
    quoted = f" ({answer})" if answer and not any(text in answer for text in hidden) else ""
    if secret.is_token:
        return AccountError(
            f"{account.name}: the server refused the token{quoted}; check that token-command"
            " prints an access token for IMAP that has not expired"
        )
    return AccountError(
        f"{account.name}: the server refused the password{quoted}; check the user and what"
        " password-command prints (large providers want an app password, or a token-command)"
    )


def missing_folder(account: str, name: str, names: Sequence[str]) -> AccountError:
    """Return the error of a missing folder; names: of the existing ones."""
    if close := difflib.get_close_matches(name, names, 1):
        remedy = f"did you mean {close[0]}?"
    else:
        more = ", …" if len(names) > _FOLDERS_NAMED else ""
        remedy = f"name one of {', '.join(names[:_FOLDERS_NAMED])}{more}"
    return AccountError(f"{account}: there is no folder {name!r}; {remedy}")


def command_error(account: Account, error: Exception, folder: str = "") -> AccountError:
    """Return the error of a command that failed; folder: of the command."""
    where = f"{account.name}: {folder}" if folder else account.name
    answer = _quoted(error)
    match error:
        case AccountError():
            return error
        case TimeoutError():
            return UnavailableError(
                f"{account.server}: the server has not answered for {account.timeout:.0f} s; try"
                " again later, or give the account a longer timeout in the config file"
            )
        case imaplib.IMAP4.readonly():
            problem = "the folder is read-only; ask for the right to change it, or try a dry run"
        case imaplib.IMAP4.abort() | OSError() | EOFError():
            return UnavailableError(
                f"{account.server}: the connection was lost ({_reason(error)}); run it again, and"
                " it continues where it stopped"
            )
        case imaplib.IMAP4.error() if type(error).__name__ not in _NONSENSE:
            if "quota" in answer.lower():
                problem = (
                    f"the mailbox is full, so mail stays where it is ({answer}); delete some and"
                    " run it again"
                )
            else:
                problem = f"the server refused it ({answer}); check the folder's rights"
        case _:
            return UnavailableError(
                f"{account.server}: the server's answer cannot be understood"
                f" ({type(error).__name__}); run it again, and report it if this happens again"
            )
    return ImapRefusalError(f"{where}: {problem}")


def _reason(error: BaseException) -> str:
    reason = getattr(error, "strerror", None)
    # imaplib's error may quote a line of mail.
    return reason or ("it was closed" if "EOF" in str(error) else type(error).__name__)


def _quoted(error: Exception) -> str:
    """Return a server's answer in one line, without Python's quotes."""
    text = str(error)
    if quoted := re.search(r"b'(.*)'|b\"(.*)\"", text, re.DOTALL):
        text = quoted[1] or quoted[2] or ""
    text = re.sub(r"^\w+ failed: ", "", text)
    return one_line(" ".join(text.split()))[:_QUOTED_LIMIT]
