"""An account at an IMAP server: where it is, how it is protected, how its password is got."""

import os
import stat
import subprocess
from collections.abc import Callable
from typing import NamedTuple

from nbspam.errors import AccountError

IMPLICIT, STARTTLS, PLAIN = "implicit", "starttls", "none"  # how a connection is protected
SECURITY = (IMPLICIT, STARTTLS, PLAIN)
_PORTS = {IMPLICIT: 993, STARTTLS: 143, PLAIN: 143}
_PATIENCE = 120.0  # seconds that a command has for a password: it may ask for a passphrase
_SECRET_LIMIT = 1 << 16  # characters; tokens have a few thousand


class Secret:
    """What proves who somebody is; it shows itself nowhere, not in a traceback either."""

    def __init__(self, value: str, is_token: bool = False) -> None:
        """Keep a password, or an access token of OAuth 2."""
        self.value, self.is_token = value, is_token

    def __repr__(self) -> str:
        return "Secret(…)"


class Account(NamedTuple):
    """An account."""

    user: str
    host: str
    secret: Callable[[], Secret]  # called at each login, since a token is good for an hour
    port: int | None = None
    tls: str = IMPLICIT  # one of SECURITY
    ca_file: str | None = None  # of the authorities to trust in place of the system's
    timeout: float = 60.0  # seconds in which a server must say something

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
        """What an error calls it: `hal@mail.example.org`."""
        return f"{self.user}@{self.host}"


def from_command(command: str, key: str, account: str) -> Secret:
    """Return the first line that a shell's command prints; raises AccountError.

    key: where the command stands in a config file, "token-command" for a token.
    """
    try:
        done = subprocess.run(
            command,
            shell=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            timeout=_PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise AccountError(
            f"{account}: the {key} has not ended after {_PATIENCE:.0f} s; run it by hand to see"
            " what it waits for"
        ) from None
    except (OSError, ValueError) as error:
        raise AccountError(
            f"{account}: the {key} cannot be run ({error}); correct it in the config file"
        ) from None
    if done.returncode:
        raise AccountError(
            f"{account}: the {key} failed with exit code {done.returncode}; run it by hand to see"
            " why"
        )
    return Secret(_first_line(done.stdout, f"the {key}", account), key == "token-command")


def from_file(path: str, account: str) -> Secret:
    """Return the first line of a file that only its owner can read; raises AccountError."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise AccountError(
            f"{path}: the password file of {account} cannot be read ({error.strerror}); create it"
            " with mode 0600, or correct password-file in the config file"
        ) from error
    try:
        status = os.fstat(handle)
        if stat.S_ISREG(status.st_mode) and stat.S_IMODE(status.st_mode) & 0o077:
            raise AccountError(
                f"{path}: others can read this password file; run chmod 600 on it, and change the"
                " password if they may have"
            )
        content = os.read(handle, _SECRET_LIMIT)
    except OSError as error:
        raise AccountError(f"{path}: cannot be read ({error.strerror}); check it") from error
    finally:
        os.close(handle)
    return Secret(_first_line(content, path, account))


def _first_line(content: bytes, where: str, account: str) -> str:
    """Return the first line as text; raises AccountError for what is no password."""
    line = content.split(b"\n", 1)[0].removesuffix(b"\r")
    try:
        text = line[:_SECRET_LIMIT].decode()
    except UnicodeDecodeError:
        text = ""
    if not text or "\0" in text or "\r" in text:
        problem = "gave no password" if not line else "gave what cannot be a password"
        raise AccountError(f"{account}: {where} {problem}; its first line must be the password")
    return text
