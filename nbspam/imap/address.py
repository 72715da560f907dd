"""The address of a folder at a server: `imaps://USER@HOST[:PORT]/FOLDER`, as RFC 5092 has it."""

from typing import NamedTuple
from urllib.parse import quote, unquote

from nbspam.errors import AccountError

SCHEME = "imaps://"
_UID = "/;UID="
_EXAMPLE = "write imaps://USER@HOST/FOLDER, such as imaps://hal@mail.example.org/INBOX"


class FolderAddress(NamedTuple):
    """A folder at a server, or one message in it."""

    user: str
    host: str
    port: int | None  # None: the usual one
    folder: str  # "" for none
    uid: int | None = None  # of the one message

    @property
    def text(self) -> str:
        """The address of the folder, which `parse_address` reads."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port is None else f":{self.port}"
        user = quote(self.user, safe="@+!$'()*,=&~")
        # What people read: a folder's name stays as it is but for what an address cannot have.
        folder = "".join(quote(c) if c in '%;?#"<>\\' or c < "!" else c for c in self.folder)
        return f"{SCHEME}{user}@{host}{port}/{folder}"

    def message(self, uid: int) -> str:
        """Return the address of one message of the folder."""
        return f"{self.text}{_UID}{uid}"


def parse_address(text: str) -> FolderAddress:
    """Return the parts of an address; raises AccountError.

    The user is what stands before the last @ of the part with the host, so that it may be a mail
    address; it and the folder may be percent-encoded UTF-8.
    """
    if not text.lower().startswith(SCHEME):
        raise AccountError(
            f"{text}: only imaps:// is read; give imaps:// and, for a server with STARTTLS, an"
            ' account of that user and host with tls = "starttls" in the config file'
        )
    place, _, folder = text[len(SCHEME) :].partition("/")
    user, at, server = place.rpartition("@")
    folder, has_uid, number = f"/{folder}".partition(_UID)
    host, port = _host_and_port(server, text)
    if not at or not user or not host:
        raise AccountError(f"{_shown(text)}: is not the address of a folder; {_EXAMPLE}")
    if ":" in user:
        raise AccountError(
            f"{SCHEME}…@{server}: a password cannot stand in an address, where every user of this"
            " machine sees it; leave it out, and give a password-command in the config file"
        )
    if has_uid and not (number.isascii() and number.isdigit() and 0 < int(number) < 1 << 32):
        raise AccountError(
            f"{_shown(text)}: is not the address of a message; it ends with /;UID=17"
        )
    try:
        user, folder = unquote(user, errors="strict"), unquote(folder[1:], errors="strict")
    except UnicodeDecodeError as error:
        raise AccountError(
            f"{_shown(text)}: what is percent-encoded is not UTF-8; encode it as UTF-8, or write"
            " the letters themselves"
        ) from error
    return FolderAddress(user, host, port, folder, int(number) if has_uid else None)


def _host_and_port(server: str, text: str) -> tuple[str, int | None]:
    host, colon, port = server.rpartition(":")
    if not colon or server.endswith("]"):
        host, port = server, ""
    elif not (port.isascii() and port.isdigit() and 0 < int(port) < 1 << 16):
        raise AccountError(f"{_shown(text)}: the port is not a number from 1 to 65535; {_EXAMPLE}")
    return host.removeprefix("[").removesuffix("]"), int(port) if port else None


def _shown(text: str) -> str:
    """Return an address for an error, without what may be a password."""
    place, slash, folder = text[len(SCHEME) :].partition("/")
    user, at, server = place.rpartition("@")
    return f"{SCHEME}{user.partition(':')[0]}{at}{server}{slash}{folder}"
