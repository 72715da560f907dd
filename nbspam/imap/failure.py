"""Why an account cannot be used: one sentence for each failure, with its remedy.

Of what a server says one line is quoted, and never if the password or token is in it.
"""

import base64
import difflib
import re
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING

from nbspam.errors import AccountError, AwayError, one_line
from nbspam.imap.account import STARTTLS, Account, Secret

if TYPE_CHECKING:
    import ssl

_QUOTED_LIMIT = 160  # characters of what a server says
_FOLDERS_NAMED = 10
# RFC 5530: the server has trouble of its own, and the password may be right.
_FOR_NOW = re.compile(r"\[(UNAVAILABLE|INUSE|LIMIT|SERVERBUG|CONTACTADMIN)\b")


class ImapRefusalError(AccountError):
    """The server said no to a command."""

    def __init__(self, problem: str, answer: str) -> None:
        """Keep what the server answered."""
        super().__init__(problem)
        self.answer = answer


def unreachable(account: Account, error: Exception) -> AccountError:
    """Return the error of a server to which there is no connection."""
    if isinstance(error, socket.gaierror):
        return AwayError(
            f"{account.server}: there is no address of this host ({error.strerror}); correct the"
            " host, or try again when the network is back"
        )
    if isinstance(error, TimeoutError):
        return AwayError(
            f"{account.server}: the server has not answered; try again later, or correct host and"
            " port"
        )
    reason = getattr(error, "strerror", None) or _quoted(error)
    return AwayError(
        f"{account.server}: cannot be reached ({reason}); try again later, or correct host and port"
    )


def certificate_error(account: Account, error: "ssl.SSLCertVerificationError") -> AccountError:
    """Return the error of a server that does not prove to be the one that was named."""
    return AccountError(
        f"{account.server}: its certificate does not fit"
        f" ({one_line(error.verify_message or str(error))[:_QUOTED_LIMIT]}), and nothing was sent;"
        " give the host as the certificate names it, or name the authority that signed it with"
        " ca-file"
    )


def no_tls(account: Account, reason: str) -> AccountError:
    """Return the error of a server without TLS where it was expected."""
    other = (
        'leave out tls = "starttls" if its port is 993'
        if account.tls == STARTTLS
        else 'port 143 needs an account with tls = "starttls"'
    )
    return AccountError(
        f"{account.server}: no TLS can be begun there ({one_line(reason)[:_QUOTED_LIMIT]}), and"
        f" nothing was sent; correct the port: {other}"
    )


def login_error(account: Account, secret: Secret, error: Exception) -> AccountError:
    """Return the error of a login that failed."""
    import imaplib

    said = _quoted(error)
    # imapclient makes one error of all that fails at the login.
    for each in (error, error.__context__):
        if isinstance(each, imaplib.IMAP4.abort | OSError | EOFError):
            return AwayError(
                f"{account.server}: the connection was lost at the login ({_lost(each)}); try again"
                " later"
            )
    if _FOR_NOW.search(said):
        return AwayError(f"{account.server}: the server cannot log in anybody now; try again later")
    hidden = {secret.value, _base64(secret.value), _base64(f"\0{account.user}\0{secret.value}")}
    quoted = f" ({said})" if said and not any(each in said for each in hidden) else ""
    if secret.is_token:
        return AccountError(
            f"{account.name}: the server refused the token{quoted}; check that token-command"
            " prints an access token for IMAP that has not expired"
        )
    return AccountError(
        f"{account.name}: the server refused the password{quoted}; check the user and what"
        " password-command prints (large providers want an app password, or a token-command)"
    )


def missing_folder(
    account: Account, name: str, error: ImapRefusalError, names: Sequence[str]
) -> AccountError:
    """Return the error of a folder that cannot be opened: most often it is not there.

    names: of the folders that are.
    """
    if name in names:
        return error
    close = difflib.get_close_matches(name, names, 1)
    if close:
        remedy = f"did you mean {close[0]}?"
    else:
        more = ", …" if len(names) > _FOLDERS_NAMED else ""
        remedy = f"name one of {', '.join(names[:_FOLDERS_NAMED])}{more}"
    return AccountError(f"{account.name}: there is no folder {name!r}; {remedy}")


def client_error(account: Account, error: Exception, folder: str = "") -> AccountError:
    """Return the error of a command that failed; folder: the one that it is of."""
    import imaplib

    if isinstance(error, AccountError):
        return error
    if isinstance(error, TimeoutError):
        return AwayError(
            f"{account.server}: the server has not answered for {account.timeout:.0f} s; try again"
            " later, or give the account a longer timeout in the config file"
        )
    if isinstance(error, imaplib.IMAP4.readonly):
        return ImapRefusalError(
            f"{account.name}: {folder}: the folder cannot be changed; ask for the right to, or try"
            " it as a dry run",
            "",
        )
    if isinstance(error, imaplib.IMAP4.abort | OSError | EOFError):
        return AwayError(
            f"{account.server}: the connection was lost ({_lost(error)}); run it again: it goes on"
            " where it was"
        )
    where = f"{account.name}: {folder}" if folder else account.name
    said = _quoted(error)
    if not isinstance(error, imaplib.IMAP4.error) or _is_nonsense(error):
        return AwayError(
            f"{account.server}: the server's answer is not understood ({type(error).__name__});"
            " run it again, and report it if it stays so"
        )
    if "OVERQUOTA" in said.upper() or "quota" in said.lower():
        return ImapRefusalError(
            f"{where}: the mailbox is full, so mail stays where it is ({said}); delete some and run"
            " it again",
            said,
        )
    return ImapRefusalError(
        f"{where}: the server refused it ({said}); check the folder's rights", said
    )


def _is_nonsense(error: Exception) -> bool:
    """Return whether an answer broke the protocol; imapclient quotes it, and it may be mail."""
    return type(error).__name__ in ("ProtocolError", "InvalidCriteriaError")


def _lost(error: BaseException) -> str:
    reason = getattr(error, "strerror", None)
    # imaplib's own words may quote a line of mail.
    return reason or ("it was closed" if "EOF" in str(error) else type(error).__name__)


def _quoted(error: Exception) -> str:
    """Return what a server said, in one line without Python's quotes."""
    text = str(error)
    found = re.search(r"b'(.*)'|b\"(.*)\"", text, re.DOTALL)
    if found:
        text = found[1] or found[2] or ""
    text = re.sub(r"^\w+ failed: ", "", text)
    return one_line(" ".join(text.split()))[:_QUOTED_LIMIT]


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
