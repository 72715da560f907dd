"""The IMAP accounts of the config file, and how the password of each is got.

    [imap.home]
    host = "mail.example.org"
    user = "hal"
    password-command = "pass show mail"

Loaded only for mail at a server.
"""

import difflib
import getpass
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

from nbspam.cli.declared import config_file
from nbspam.cli.settings import Settings, absolute_path, read_settings
from nbspam.errors import AccountError, OptionError
from nbspam.imap.account import (
    IMPLICIT,
    PLAIN,
    SECURITY,
    STARTTLS,
    Account,
    Secret,
    from_command,
    from_file,
)
from nbspam.imap.address import SCHEME, FolderAddress, parse_address

TABLE = "imap"  # each account is a table in it
INBOX = "INBOX"
_TEXTS = {"host", "user", "tls", "ca-file", "junk", "password-command", "password-file"} | {
    "token-command"
}
_LISTS = {"folders", "ham"}
_NUMBERS = {"port": (1, 65_535), "timeout": (1, 3_600)}
KEYS = [*sorted(_TEXTS | _LISTS), *_NUMBERS]
_SECRETS = ("password-command", "password-file", "token-command")


class MailAccount(NamedTuple):
    """An account of the config file, or one that is named by its address."""

    name: str  # in the config file; otherwise its address
    account: Account
    folders: tuple[str, ...] = (INBOX,)  # whose new mail is judged
    junk: str | None = None  # None: the one that the server marks so
    ham: tuple[str, ...] = (INBOX,)  # whose mail is learned as ham


def mail_accounts(words: Sequence[str]) -> list[MailAccount]:
    """Return the accounts of these names, or addresses; without names all of the config file.

    Raises OptionError.
    """
    known = configured_accounts()
    if not words:
        if not known:
            raise OptionError(
                "there is no account; name one as imaps://USER@HOST, or describe it in the config"
                " file in a table [imap.NAME] with host and user"
            )
        return list(known.values())
    return [_named(word, known) for word in words]


def _named(word: str, known: Mapping[str, MailAccount]) -> MailAccount:
    if word.lower().startswith(SCHEME):
        address = parse_address(word)
        found = _matching(address, known)
        folders = (address.folder,) if address.folder else None
        if found is None:
            found = MailAccount(word, _prompted(address))
        return found if folders is None else found._replace(folders=folders)
    if word not in known:
        names = ", ".join(known) or "none"
        close = difflib.get_close_matches(word, known, 1)
        remedy = f"did you mean {close[0]}?" if close else "name one of these, or imaps://USER@HOST"
        raise OptionError(f"{word}: the config file has no such account ({names}); {remedy}")
    return known[word]


def account_of(address: FolderAddress) -> Account:
    """Return the account of an address: that of the config file, or one whose user is asked.

    Raises OptionError for a wrong account of the file.
    """
    found = _matching(address, configured_accounts())
    return found.account if found else _prompted(address)


def _matching(address: FolderAddress, known: Mapping[str, MailAccount]) -> MailAccount | None:
    for each in known.values():
        account = each.account
        if (account.user, account.host.lower()) == (address.user, address.host.lower()) and (
            address.port in (None, account.own_port)
        ):
            return each
    return None


def _prompted(address: FolderAddress) -> Account:
    secret = partial(_asked, f"{address.user}@{address.host}")
    return Account(address.user, address.host, secret, address.port)


@cache
def _asked(name: str) -> Secret:
    """Return the password that the user types, asked for once; raises AccountError."""
    if not (sys.stdin and sys.stdin.isatty()):
        raise AccountError(
            f"{name}: there is no password and no terminal to ask for it; give the account a"
            " password-command in the config file"
        )
    try:
        typed = getpass.getpass(f"password of {name}: ")
    except EOFError:
        typed = ""
    if not typed:
        raise AccountError(f"{name}: no password was typed; run it again")
    return Secret(typed)


def configured_accounts() -> dict[str, MailAccount]:
    """Return the accounts of the config file by their names; raises OptionError."""
    path = config_file()
    return {} if path is None else accounts_of(read_settings(path))


def accounts_of(settings: Settings) -> dict[str, MailAccount]:
    """Return the accounts that a config file describes; raises OptionError for a wrong one."""
    tables = settings.document.get(TABLE, {})
    found: dict[str, MailAccount] = {}
    for name, values in tables.items():
        if not isinstance(values, dict):
            raise OptionError(
                f"{settings.where(TABLE, name)}: [{TABLE}] holds tables of accounts, and {name} is"
                f" none; write [{TABLE}.NAME] above it"
            )
        found[name] = _account(settings, name, values)
    return found


def _account(settings: Settings, name: str, values: dict[str, Any]) -> MailAccount:
    table = f"{TABLE}.{name}"
    _check_keys(settings, table, values)
    if "tls" in values and values["tls"] not in SECURITY:
        raise _wrong(settings, table, "tls", f'must be "{IMPLICIT}", "{STARTTLS}" or "{PLAIN}"')
    given = [key for key in _SECRETS if key in values]
    if len(given) > 1:
        raise _wrong(settings, table, given[1], f"{given[0]} is given too; leave one of them out")
    account = Account(
        values["user"],
        values["host"],
        _secret(settings, values, f"{values['user']}@{values['host']}"),
        values.get("port"),
        values.get("tls", IMPLICIT),
        _file(settings, values, "ca-file"),
        float(values.get("timeout", 60)),
    )
    folders = tuple(values.get("folders", (INBOX,)))
    junk, ham = values.get("junk"), tuple(values.get("ham", folders))
    for key, names in (("folders", folders), ("ham", ham)):
        if junk in names:
            raise _wrong(settings, table, key, f"has {junk!r}, which is the junk folder too")
    return MailAccount(name, account, folders, junk, ham)


def _secret(settings: Settings, values: dict[str, Any], name: str) -> Callable[[], Secret]:
    """Return what gets the password or token."""
    for key in ("password-command", "token-command"):
        if key in values:
            return partial(from_command, values[key], key, name)
    if path := _file(settings, values, "password-file"):
        return partial(from_file, path, name)
    return partial(_asked, name)


def _check_keys(settings: Settings, table: str, values: dict[str, Any]) -> None:
    for key, value in values.items():
        if key == "password":
            raise _wrong(
                settings,
                table,
                key,
                "a password does not stand in a config file; give a password-command or a"
                " password-file",
            )
        if key not in KEYS:
            close = difflib.get_close_matches(key.replace("_", "-"), KEYS, 1)
            remedy = f"did you mean {close[0]}?" if close else f"known are {', '.join(KEYS)}"
            raise _wrong(settings, table, key, f"an account has no such key; {remedy}")
        _check_value(settings, table, key, value)
    for key in ("host", "user"):
        if key not in values:
            raise _wrong(settings, table, "", f"the account has no {key}; add {key} = …")


def _check_value(settings: Settings, table: str, key: str, value: object) -> None:
    texts = value if key in _LISTS and isinstance(value, list) else [value]
    if key in _NUMBERS:
        low, high = _NUMBERS[key]
        if type(value) is not int or not low <= value <= high:
            raise _wrong(settings, table, key, f"must be an integer from {low} to {high:,}")
        return
    if key in _LISTS and not isinstance(value, list):
        raise _wrong(settings, table, key, f'must be an array; write {key} = ["{INBOX}"]')
    for text in texts:
        if not isinstance(text, str) or not text or set(text) & set("\0\r\n"):
            raise _wrong(settings, table, key, "must be text in quotes, in one line, not empty")


def _wrong(settings: Settings, table: str, key: str, problem: str) -> OptionError:
    where = settings.where(table, key)
    return OptionError(f"{where}: [{table}]{f' {key}' if key else ''}: {problem}")


def _file(settings: Settings, values: Mapping[str, Any], key: str) -> str | None:
    value = values.get(key)
    return None if value is None else os.path.normpath(absolute_path(value, settings.path))
