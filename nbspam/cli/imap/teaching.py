"""Learning from an account's folders, for the commands that do."""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import click

from nbspam.cli.accounts import MailAccount
from nbspam.cli.declared import argument, option
from nbspam.cli.notes import NoTrace, lock_wait
from nbspam.cli.options import Cutting, make_default_folder
from nbspam.cli.progress import progress
from nbspam.cli.training import ClassSizes, Output, Training, Writing, train_whole
from nbspam.errors import AccountError, OptionError, Remedy, counted
from nbspam.imap.address import SCHEME
from nbspam.imap.connection import Connection
from nbspam.labels import HAM, SPAM
from nbspam.learning.settings import TrainingSettings
from nbspam.learning.update import Change, PendingMessages, learn
from nbspam.mailbox.lessons import Lessons, waiting_sentence
from nbspam.mailbox.memory import Memory
from nbspam.reading.skips import Skips
from nbspam.store.lookup import Lookup
from nbspam.tokens.tokenized import TokenizedMessage, Wanted
from nbspam.workers import PIECE, executor, in_batches, tokenized

_UNITS = {"m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_NEW = Writing(update=True, replace=False, ledger=True, seen=False, max_ham_blocked=None)

JUNK = option(
    "Name the folder for spam. [default: the account's, else the one that the server marks as"
    " \\Junk]",
    "FOLDER",
    under="Mail",
)
TRUST_AFTER = option(
    "Learn also what nbspam moved to the junk folder so long ago (7d, 12h) and nobody has moved"
    " back. [default: only what was seen there]",
    "TIME",
    under="Mail",
)
ACCOUNTS = argument("[ACCOUNT]...", nargs=-1)


class LearnOptions(NamedTuple):
    """What is learned into, and how."""

    model: Path
    trust_after: float | None  # seconds
    jobs: int
    form: str
    quiet: bool


def seconds_of(text: str | None) -> float | None:
    """Return what a time such as 7d means; raises OptionError."""
    if text is None:
        return None
    found = re.fullmatch(r"(\d{1,6})\s?([mhdw])", text)
    if not found:
        raise OptionError(f"--trust-after {text!r} is not a time; try 7d or 12h")
    return float(found[1]) * _UNITS[found[2]]


def junk_of(account: MailAccount, connection: Connection, junk: str | None) -> str:
    """Return the folder for spam; raises AccountError if there is none."""
    named = junk or account.junk
    if named is not None:
        found = connection.named(named)
        connection.status(found)  # raises if it is not there
    else:
        marked = connection.junk_folder()
        if marked is None:
            folders = ", ".join(f.name for f in connection.folders() if f.is_selectable)
            raise AccountError(
                f"{account.account.name}: the server marks no folder as \\Junk, and has {folders}",
                Remedy.NAME_JUNK,
            )
        found = marked
    for each in (*account.folders, *account.ham):
        if connection.named(each) == found:
            raise AccountError(
                f"{account.account.name}: {found} is the folder for spam and one of the others too",
                Remedy.NAME_JUNK,
            )
    return found


def learn_folders(
    connection: Connection, account: MailAccount, memory: Memory, junk: str, teacher: LearnOptions
) -> None:
    """Learn what is new in the account's folders, and print what changed.

    A new model is trained as a whole if there is mail of both classes, as `nbspam train` does.
    """
    model, is_new = teacher.model, not teacher.model.exists()
    wanted, labels = _learned_by(model)
    ham = [connection.named(name) for name in account.ham]
    lessons = Lessons(connection, memory, junk, ham, labels, teacher.trust_after)
    where, sizes = executor(teacher.jobs), ClassSizes()

    def learn_each(messages: Iterable[TokenizedMessage]) -> None:
        pending = PendingMessages(wanted)
        pending.read(model, messages, remember=True)
        change = Change()
        if pending.found:
            change = learn(model, pending, TrainingSettings(), wait=lock_wait(teacher.quiet))
        _print_change(change, lessons.waiting, account, teacher)

    make_default_folder(model)
    if is_new:
        output = Output(model, teacher.form, teacher.quiet, Skips(), NoTrace(), sizes)
        cutting, wait = Cutting(None, None, None), lock_wait(teacher.quiet)
        training = Training(TrainingSettings(), cutting, _NEW, None, output, wait)
        train_whole(where, in_batches(lessons.messages(), *PIECE), [SCHEME], training, learn_each)
    else:
        found = tokenized(lessons.messages(), Skips(), where, True, wanted, skips_empty=True)
        with progress(teacher.quiet, [SCHEME]) as shown:
            learn_each(sizes(shown(found)))
        sizes.report(teacher.quiet, strict=False)
    lessons.commit()


def _learned_by(model: Path) -> tuple[Wanted, tuple[str, str]]:
    """Return the numbers that a model counts, and its classes: of spam, and of ham."""
    if not model.exists():
        return TrainingSettings().wanted, (SPAM, HAM)
    with Lookup(model) as lookup:
        settings = lookup.metadata.settings
    others = [name for name in settings.classes if name != settings.positive]
    if settings.positive is None or (len(others) != 1 and HAM not in others):
        raise OptionError(
            f"{model}: has the classes {', '.join(settings.classes)}, and the folders are of spam"
            " and ham; name another model, or learn with nbspam train --label NAME=imaps://…"
        )
    return settings.wanted, (settings.positive, HAM if HAM in others else others[0])


def _print_change(
    change: Change, waiting: int, account: MailAccount, teacher: LearnOptions
) -> None:
    if teacher.form == "json":
        fields = {
            "account": account.name,
            "model": str(teacher.model),
            "learned": change.learned,
            "moved": change.moved,
            "unchanged": change.unchanged,
            "waiting": waiting,
        }
        click.echo(json.dumps(fields))
        return
    if teacher.quiet or not (change.learned or change.moved or waiting):
        return
    more = f"; {waiting_sentence(waiting)}" if waiting else ""
    click.echo(
        f"{account.account.name}: learned {counted(change.learned, 'new message')}, moved"
        f" {change.moved:,} to another class, {change.unchanged:,} already known{more}"
    )
