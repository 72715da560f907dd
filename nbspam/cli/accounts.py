"""The IMAP accounts and Maildirs of the config file, and how the password of each is got.

    [mail.home]
    host = "mail.example.org"
    user = "hal"
    password-command = "pass show mail"

    [mail.local]
    maildir = "~/Maildir"

Loaded only for mail at a server and for `nbspam mail`.
"""

import difflib
import getpass
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any

from nbspam.cli.command import config_file
from nbspam.cli.settings import absolute_path, near_miss, read_config
from nbspam.errors import AccountError, OptionError
from nbspam.mailbox import account
from nbspam.mailbox.connection import read_folder
from nbspam.mailbox.maildir import Maildir
from nbspam.names import normal_label

_LISTS = ("folders", "ham")
_NUMBERS = {"port": (1, 65_535), "timeout": (1, 3_600)}
_SECRETS = ("password-command", "password-file", "token-command")
_OTHERS = (*_SECRETS, "ca-file", "maildir")  # not fields of `Account`
_LOCAL = ("maildir", "folders", "ham", "junk", "auth-host", "keywords", "class-folders")
KEYS = ["ca-file", "host", *_LOCAL, *_SECRETS, "tls", "user", *_NUMBERS]

Place = account.Account | Maildir


def mail_places(words: Sequence[str]) -> list[Place]:
    """Return the places with these names, addresses or paths; by default all of the config file.

    Raises OptionError.
    """
    known = configured_places()
    if not words and not known:
        raise OptionError(
            "no account or Maildir is given; name one, such as imaps://USER@HOST or ~/Maildir, or"
            " describe it in the config file in a table [mail.NAME]"
        )
    return [_named(word, known) for word in words or known]


def _named(word: str, known: Mapping[str, Place]) -> Place:
    if "://" in word:
        address = account.parse_address(word)
        place = _account_at(address, known, word)
        return place._replace(folders=(address.folder,)) if address.folder else place
    if word not in known and ("/" in word or os.path.isdir(word)):  # noqa: PTH112 (loads less)
        path = os.path.normpath(os.path.expanduser(word))  # noqa: PTH111
        same = [p for p in known.values() if isinstance(p, Maildir) and p.path == path]
        return same[0] if same else Maildir(path, word)
    if word not in known:
        if not known:
            raise OptionError(
                f"{word}: the config file describes no places; add a table [mail.{word}], or name"
                " a Maildir such as ~/Maildir"
            )
        names = ", ".join(known)
        close = difflib.get_close_matches(word, known, 1)
        remedy = f"did you mean {close[0]}?" if close else "name one of these, or a Maildir"
        raise OptionError(f"{word}: the config file has no such place ({names}); {remedy}")
    return known[word]


def _account_at(
    address: account.FolderAddress, known: Mapping[str, Place], label: str
) -> account.Account:
    """Return the account of an address: a configured one, or one that asks for its password."""
    user, host, port = address[:3]
    for place in (p for p in known.values() if isinstance(p, account.Account)):
        is_same = (place.user, place.host.lower()) == (user, host.lower())
        if is_same and port in (None, place.own_port):
            return place
    return account.Account(user, host, partial(_ask_password, f"{user}@{host}"), port, label=label)


def messages_at(name: str, seen_only: bool) -> Iterator[tuple[str, bytes]]:
    """Yield the address and bytes of each message of an IMAP folder.

    Raises AccountError, and OptionError for a wrong account of the config file.
    """
    address = account.parse_address(name)
    if not address.folder:
        raise AccountError(f"{name}: names no folder; add one, such as {name.rstrip('/')}/INBOX")
    yield from read_folder(_account_at(address, configured_places(), name), address, seen_only)


@cache
def _ask_password(name: str) -> account.Secret:
    """Ask for a password once, and return it; raises AccountError."""
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
    return account.Secret(typed)


def configured_places() -> dict[str, Place]:
    """Return the places of the config file by their names; raises OptionError."""
    path = config_file()
    tables = {} if path is None else read_config(path).get("mail", {})
    return {label: _place(path or "", label, values) for label, values in tables.items()}


def _place(path: str, label: str, values: Any) -> Place:
    """Return the place of a table [mail.NAME]; raises OptionError for a wrong one."""

    def wrong(key: str, problem: str) -> OptionError:
        return OptionError(f"{path}: [mail.{label}]{f' {key}' if key else ''}: {problem}")

    def file(key: str) -> str | None:
        value = values.get(key)
        return None if value is None else os.path.normpath(absolute_path(value, path))

    if not isinstance(values, dict):
        raise OptionError(
            f"{path}: [mail] holds tables, and {label} is not a table; write [mail.NAME] above it"
        )
    for key, value in values.items():
        if problem := _problem(key, value):
            raise wrong(key, problem)
    is_local = "maildir" in values
    for key in () if is_local else ("host", "user"):
        if key not in values:
            raise wrong("", f"the account has no {key}; add {key} = …, or maildir = …")
    for key in [key for key in values if is_local and key not in _LOCAL]:
        raise wrong(key, "is for an IMAP account, and maildir is given; leave one of them out")
    secret_keys = [key for key in _SECRETS if key in values]
    if len(secret_keys) > 1:
        raise wrong(secret_keys[1], f"{secret_keys[0]} is given too; leave one of them out")
    name = "" if is_local else f"{values['user']}@{values['host']}"
    secret = partial(_ask_password, name)
    if password := file("password-file"):
        secret = partial(account.from_file, password, name)
    elif secret_keys:
        secret = partial(account.from_command, values[secret_keys[0]], secret_keys[0], name)
    fields: dict[str, Any] = {k.replace("-", "_"): v for k, v in values.items() if k not in _OTHERS}
    pairs = values.get("class-folders", {}).items()
    fields["class_folders"] = tuple((normal_label(name), folder) for name, folder in pairs)
    fields["folders"] = tuple(values.get("folders", (account.INBOX,)))
    fields["ham"] = tuple(values.get("ham", fields["folders"]))
    place: Place
    if is_local:
        place = Maildir(file("maildir") or "", label, **fields)
    else:
        place = account.Account(**fields, secret=secret, ca_file=file("ca-file"), label=label)
    for key in _LISTS:
        if place.junk in fields[key]:
            raise wrong(key, f"has {place.junk!r}, which is the junk folder too")
    return place


def _problem(key: str, value: object) -> str:
    """Return what is wrong with a key or value of an account; empty if nothing is."""
    if key == "password":
        return "passwords are not allowed in the config file; use password-command or password-file"
    if key not in KEYS:
        remedy = near_miss(key, KEYS, f"choose one of {', '.join(KEYS)}")
        return f"unknown key; {remedy}"
    if key in _NUMBERS:
        low, high = _NUMBERS[key]
        is_number = type(value) is int and low <= value <= high
        return "" if is_number else f"must be an integer from {low} to {high:,}"
    if key == "class-folders":
        pairs = value.items() if isinstance(value, dict) else [("", "")]
        if not all(isinstance(text, str) and normal_label(text) for pair in pairs for text in pair):
            return 'must be classes and folders; write class-folders = { promo = "Promotions" }'
        return ""
    if key == "keywords":
        return "" if isinstance(value, bool) else "must be true or false"
    if key in _LISTS and not isinstance(value, list):
        return f'must be an array; write {key} = ["{account.INBOX}"]'
    if (key, value) == ("folders", []):
        return f'names no folder to filter; write folders = ["{account.INBOX}"]'
    for text in value if isinstance(value, list) and key in _LISTS else [value]:
        if not isinstance(text, str) or not text or set(text) & set("\0\r\n"):
            return "must be text in quotes, in one line, not empty"
    if key == "tls" and value not in account.SECURITY:
        return f'must be "{account.IMPLICIT}", "{account.STARTTLS}" or "{account.PLAIN}"'
    return ""
