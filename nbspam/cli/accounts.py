"""The IMAP accounts and Maildirs of the config file, their passwords and their folders.

    [mail.home]
    host = "mail.example.org"
    user = "hal"
    password-command = "pass show mail"

    [mail.local]
    maildir = "~/Maildir"

This module is loaded only for mail at a server and for `nbspam mail`.
"""

import getpass
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any

from nbspam.cli import command, settings
from nbspam.errors import AccountError, OptionError, Remedy
from nbspam.mailbox import account, connection, maildir, moves, sorting
from nbspam.names import normal_label
from nbspam.reading.folder_names import JUNK, resolve_folder
from nbspam.reading.source import Skips

_LIST_KEYS = ("folders", "ham")
_NUMBER_RANGES = {"port": (1, 65_535), "timeout": (1, 3_600)}
_SECRET_KEYS = ("password-command", "password-file", "token-command")
_NOT_FIELDS = (*_SECRET_KEYS, "ca-file", "maildir")  # keys that are not fields of `Account`
_MAILDIR_KEYS = ("maildir", "folders", "ham", "junk", "auth-host", "keywords", "class-folders")
KEYS = ["ca-file", "host", *_MAILDIR_KEYS, *_SECRET_KEYS, "tls", "user", *_NUMBER_RANGES]

Place = account.Account | maildir.Maildir


def mail_places(words: Sequence[str]) -> list[Place]:
    """Find the places with these names, addresses or paths; by default all of the config file.

    Raises OptionError.
    """
    known = configured_places()
    if not words and not known:
        raise OptionError(
            "no account or Maildir is given; name one, such as imaps://USER@HOST or ~/Maildir, or"
            " describe it in the config file in a table [mail.NAME]"
        )
    return [_find_place(word, known) for word in words or known]


def _find_place(word: str, known: Mapping[str, Place]) -> Place:
    if "://" in word:
        address = account.parse_address(word)
        place = _find_account(address, known, word)
        return place._replace(folders=(address.folder,)) if address.folder else place
    if word not in known and ("/" in word or os.path.isdir(word)):  # noqa: PTH112 (loads less)
        path = os.path.normpath(os.path.expanduser(word))  # noqa: PTH111
        same = [p for p in known.values() if isinstance(p, maildir.Maildir) and p.path == path]
        return same[0] if same else maildir.Maildir(path, word)
    if word not in known:
        if not known:
            raise OptionError(
                f"{word}: the config file describes no places; add a table [mail.{word}], or name"
                " a Maildir such as ~/Maildir"
            )
        names = ", ".join(known)
        remedy = settings.suggest_key(word, known, "name one of these, or a Maildir")
        raise OptionError(f"{word}: the config file has no such place ({names}); {remedy}")
    return known[word]


def _find_account(
    address: account.FolderAddress, known: Mapping[str, Place], label: str
) -> account.Account:
    """Return the configured account for an address, or an account that asks for its password."""
    user, host, port = address[:3]
    for place in (p for p in known.values() if isinstance(p, account.Account)):
        is_same = (place.user, place.host.lower()) == (user, host.lower())
        if is_same and port in (None, place.own_port):
            return place
    return account.Account(user, host, partial(_ask_password, f"{user}@{host}"), port, label=label)


def read_messages_at(name: str, seen_only: bool, skips: Skips) -> Iterator[tuple[str, bytes]]:
    """Yield the address and bytes of each message of an IMAP folder.

    skips: receives the messages that the server refuses.
    Raises AccountError, and OptionError for a wrong account of the config file.
    """
    address = account.parse_address(name)
    if not address.folder:
        raise AccountError(f"{name}: names no folder; add one, such as {name.rstrip('/')}/INBOX")
    place = _find_account(address, configured_places(), name)
    yield from connection.read_folder(place, address, seen_only, skips)


@cache
def _ask_password(name: str) -> account.Secret:
    """Ask for a password, only once for each name; raises AccountError."""
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
    """Read the places of the config file, by name; raises OptionError."""
    path = command.config_file()
    tables = {} if path is None else settings.read_config(path).get("mail", {})
    return {label: _make_place(path or "", label, values) for label, values in tables.items()}


def _make_place(path: str, label: str, values: Any) -> Place:
    """Make the place of a table [mail.NAME]; raises OptionError for a wrong table."""

    def key_error(key: str, problem: str) -> OptionError:
        return OptionError(f"{path}: [mail.{label}]{f' {key}' if key else ''}: {problem}")

    def file_path(key: str) -> str | None:
        value = values.get(key)
        return None if value is None else os.path.normpath(settings.absolute_path(value, path))

    if not isinstance(values, dict):
        raise OptionError(
            f"{path}: [mail] holds tables, and {label} is not a table; write [mail.NAME] above it"
        )
    for key, value in values.items():
        if problem := _find_problem(key, value):
            raise key_error(key, problem)
    is_local = "maildir" in values
    for key in () if is_local else ("host", "user"):
        if key not in values:
            raise key_error("", f"the account has no {key}; add {key} = …, or maildir = …")
    for key in [key for key in values if is_local and key not in _MAILDIR_KEYS]:
        raise key_error(key, "is for an IMAP account, and maildir is given; leave one of them out")
    secret_keys = [key for key in _SECRET_KEYS if key in values]
    if len(secret_keys) > 1:
        raise key_error(secret_keys[1], f"{secret_keys[0]} is given too; leave one of them out")
    name = "" if is_local else f"{values['user']}@{values['host']}"
    secret = partial(_ask_password, name)
    if password := file_path("password-file"):
        secret = partial(account.from_file, password, name)
    elif secret_keys:
        secret = partial(account.secret_from_command, values[secret_keys[0]], secret_keys[0], name)
    fields: dict[str, Any] = {
        k.replace("-", "_"): v for k, v in values.items() if k not in _NOT_FIELDS
    }
    pairs = values.get("class-folders", {}).items()
    fields["class_folders"] = tuple((normal_label(name), folder) for name, folder in pairs)
    fields["folders"] = tuple(values.get("folders", (account.INBOX,)))
    fields["ham"] = tuple(values.get("ham", fields["folders"]))
    place: Place
    if is_local:
        place = maildir.Maildir(file_path("maildir") or "", label, **fields)
    else:
        place = account.Account(**fields, secret=secret, ca_file=file_path("ca-file"), label=label)
    for key in _LIST_KEYS:
        if place.junk in fields[key]:
            raise key_error(key, f"has {place.junk!r}, which is the junk folder too")
    return place


def _find_problem(key: str, value: object) -> str:
    """Describe the problem with a key or value of an account; empty without a problem."""
    if key == "password":
        return "passwords are not allowed in the config file; use password-command or password-file"
    if key not in KEYS:
        remedy = settings.suggest_key(key, KEYS, f"choose one of {', '.join(KEYS)}")
        return f"unknown key; {remedy}"
    if key in _NUMBER_RANGES:
        low, high = _NUMBER_RANGES[key]
        is_number = type(value) is int and low <= value <= high
        return "" if is_number else f"must be an integer from {low} to {high:,}"
    if key == "class-folders":
        pairs = value.items() if isinstance(value, dict) else [("", "")]
        if not all(isinstance(text, str) and normal_label(text) for pair in pairs for text in pair):
            return 'must be classes and folders; write class-folders = { promo = "Promotions" }'
        return ""
    if key == "keywords":
        return "" if isinstance(value, bool) else "must be true or false"
    if key in _LIST_KEYS and not isinstance(value, list):
        return f'must be an array; write {key} = ["{account.INBOX}"]'
    if (key, value) == ("folders", []):
        return f'names no folder to filter; write folders = ["{account.INBOX}"]'
    for text in value if isinstance(value, list) and key in _LIST_KEYS else [value]:
        if not isinstance(text, str) or not text or set(text) & set("\0\r\n"):
            return "must be text in quotes, in one line, not empty"
    if key == "tls" and value not in account.SECURITY:
        return f'must be "{account.IMPLICIT}", "{account.STARTTLS}" or "{account.PLAIN}"'
    return ""


# Folders of a place


def find_junk_folder(connection: moves.Mailbox, junk: str | None) -> str:
    """Find the folder for spam; raises AccountError without exactly one such folder."""
    place = connection.account
    if named := junk or place.junk:
        found = resolve_folder(named, connection.folders())
        connection.status(found)  # raises if the folder does not exist
    else:  # the folder with the special use \Junk (RFC 6154)
        listed = [folder for folder in connection.folders() if folder.is_selectable]
        marked = [folder.name for folder in listed if JUNK in folder.flags]
        if len(marked) != 1:
            why = "several folders are for spam" if marked else connection.junk_rule
            raise AccountError(
                f"{place.name}: {why}; the folders are"
                f" {', '.join(folder.name for folder in listed)}",
                Remedy.NAME_JUNK,
            )
        found = marked[0]
    for other in sorting.expand_patterns(connection, (*place.folders, *place.ham), found):
        if connection.is_same(other, found):
            link = "" if other == found else f" (by a link: {other})"
            raise AccountError(
                f"{place.name}: {found} is both the folder for spam and one of the others{link}",
                Remedy.NAME_JUNK,
            )
    return found


def make_class_movers(
    mover: moves.Mover, folders: Sequence[str], others: Sequence[str]
) -> dict[str, moves.Mover]:
    """Return, by class, the movers that move mail of classes other than spam to their folders.

    folders: the filtered folders.  others: the model's classes except spam.
    Raises OptionError for another class or folder, and AccountError for a missing folder.
    """
    connection, movers = mover.connection, dict[str, moves.Mover]()
    for name, folder in connection.account.class_folders:
        target = resolve_folder(folder, connection.folders())
        if name not in others or target in (mover.junk, *folders):
            raise OptionError(
                f"{connection.account.name}: class-folders: {name} = {folder!r}: the classes other"
                f" than spam are {', '.join(others)}, and their mail is moved neither to"
                f" {mover.junk} nor to a folder that is filtered; correct it, or leave it out"
            )
        connection.status(target)  # raises if the folder does not exist
        movers[name] = moves.Mover(connection, mover.memory, target, for_spam=False)
    return movers
