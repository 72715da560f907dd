"""Mail in Maildirs on this machine, with the methods of an IMAP connection.

mbsync, offlineimap, notmuch and mail programs use such folders.  A message is moved by rename(2),
in one step, so it is in exactly one folder at any moment.  A moved message gets a new name, as
mbsync requires, because the number in the old name (`,U=17`) belongs to the old folder.

A Maildir has no UIDs: messages are numbered when they are first found, and the numbers are stored.
"""

import errno
import os
import re
import socket
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import blake2b
from itertools import count
from operator import ge
from pathlib import Path
from string import ascii_lowercase
from typing import NamedTuple

from nbspam.errors import AccountError, Remedy
from nbspam.mailbox import connection, memory
from nbspam.mailbox.account import INBOX, missing_folder, state_file
from nbspam.names import MAILDIR_PARTS, maildir_flags, remove_flags
from nbspam.reading import folder_names
from nbspam.reading.compression import decompress
from nbspam.reading.message import BYTES_LIMIT, problem_of
from nbspam.store.writing import QUIET_WAIT

_SIZES = re.compile(r",[SW]=[0-9]+")  # in names of Dovecot and Courier
_POLL_SECONDS = 2.0  # between two searches for new mail
_WAIT_SECONDS = 240.0  # `wait` ends then, so that the other folders are searched, too
_MAX_DEPTH = 8
_MAX_ATTEMPTS = 5  # while other programs rename files
_MAX_STALE_NUMBERS = 1_000  # stored numbers of removed messages
_numbers = count()


class Maildir(NamedTuple):
    """A Maildir or a tree of them, and which of them are ham, junk or classified."""

    path: str
    label: str = ""  # name in the config file; otherwise the path
    folders: tuple[str, ...] = (INBOX,)  # folders to classify
    junk: str | None = None  # None for the folder called Junk or Spam
    ham: tuple[str, ...] = (INBOX,)  # folders to learn as ham
    auth_host: str | None = None  # the server whose Authentication-Results prove a sender
    keywords: bool = False  # set a keyword for spam on mail that is moved to the junk folder
    class_folders: tuple[tuple[str, str], ...] = ()  # pairs of another class and its folder

    @property
    def name(self) -> str:
        """The Maildir's name in errors."""
        return self.path

    @property
    def server(self) -> str:
        """The same as `name`; errors name an account's server here."""
        return self.path

    @property
    def state(self) -> Path:
        """The Maildir's state file."""
        path = os.path.realpath(self.path)
        digest = blake2b(path.encode(errors="surrogateescape"), digest_size=8).hexdigest()
        return state_file(f"{re.sub('[^A-Za-z0-9]', '', Path(path).name)[-40:]}-{digest}")


class _Message(NamedTuple):
    path: str
    flags: str

    def meets(self, criteria: Sequence[str]) -> bool:
        """Return whether the message meets IMAP search criteria, ignoring keywords."""
        seen, deleted = "S" in self.flags, "T" in self.flags
        facts = {"SEEN": seen, "UNSEEN": not seen, "UNDELETED": not deleted}
        return all(facts.get(criterion, True) for criterion in criteria)


class MaildirFolders(connection.Failures):
    """The folders of a Maildir, with the methods of `Connection`.

    Methods raise AccountError for an error of the system.
    """

    junk_rule = "no folder is called Junk or Spam"

    def __init__(self, account: Maildir, remember: bool = True) -> None:
        """remember: store the numbers of the messages; False in a dry run."""
        super().__init__()
        self.account, self._remember = account, remember
        self._paths = self._find()
        self._uids: dict[str, tuple[int, int, dict[str, int]]] = {}  # the content of _file
        self._file = account.state.with_suffix(".uids.json")
        self._messages: dict[int, _Message] = {}  # messages of the open folder
        self._open = ""

    def supports(self, capability: str) -> bool:
        """Return whether an IMAP extension is supported."""
        return capability == "MOVE"

    # Folders

    def _find(self) -> dict[str, Path]:
        """Find Maildirs by name, in Maildir++ (`.Junk`) and in folders (`Lists/Cycling`)."""
        top = Path(self.account.path)
        places = {INBOX: top} if is_maildir(top) else {}
        with _account_errors(str(top)):
            os.listdir(top)  # noqa: PTH208 (os.walk would hide an error)
        for folder, inside, _ in os.walk(top):
            above = Path(folder).relative_to(top).parts
            is_deep = len(above) > _MAX_DEPTH
            inside[:] = [] if is_deep else sorted({*inside} - {*MAILDIR_PARTS, "tmp"})
            for place in (Path(folder, name) for name in inside):
                if is_maildir(place):
                    name = "/".join(part.removeprefix(".") for part in (*above, place.name))
                    name = folder_names.decoded_name(name) or name
                    if (other := places.setdefault(name, place)) != place:
                        self.skips(str(place), f"has the same name as {other}; rename the folder")
        if not places:
            raise AccountError(
                f"{top}: is not a Maildir, nor a folder of Maildirs; name the folder that has cur"
                " and new, or the one above"
            )
        return places

    def folders(self) -> list[folder_names.ListedFolder]:
        """Return the folders with their uses, which their names show."""
        return folder_names.with_special_uses(
            folder_names.ListedFolder(name, ".", frozenset()) for name in self._paths
        )

    def select(self, name: str, readonly: bool = True) -> connection.Folder:
        """Open a folder."""
        name = self._resolve(name)
        messages = self._list(name)
        uidvalidity, uidnext, numbers = self._number(name, messages)
        self._open, self._messages = name, {numbers[base]: m for base, m in messages.items()}
        return connection.Folder(name, uidvalidity, uidnext, len(messages))

    def status(self, name: str) -> connection.Folder:
        """Return a folder with the number of its next message, without counting its messages.

        The folder is not listed again; otherwise the time for moves would grow with the square of
        the number of messages.
        """
        name = self._resolve(name)
        uidvalidity, uidnext, _ = self._uids.get(name) or self._number(name, self._list(name))
        return connection.Folder(name, uidvalidity, uidnext)

    def _resolve(self, name: str) -> str:
        name = folder_names.resolve_folder(name, self.folders())
        if name not in self._paths:
            raise missing_folder(self.account.name, name, list(self._paths))
        return name

    def is_same(self, name: str, other: str) -> bool:
        """Return whether two names denote the same folder, possibly by a link."""
        if not {name, other} <= self._paths.keys():
            return False
        first, second = self._paths[name], self._paths[other]
        with _account_errors(str(first)):
            return any((first / part).samefile(second / part) for part in MAILDIR_PARTS)

    def _list(self, name: str) -> dict[str, _Message]:
        """List the messages of a folder by their names without flags, oldest first.

        The folder is listed again if it changes meanwhile, because a renamed file may be missed or
        listed twice.
        """
        messages: dict[str, _Message] = {}
        for _ in range(_MAX_ATTEMPTS):
            before = self._stamps(name)
            for part in MAILDIR_PARTS:
                folder = self._paths[name] / part
                with _account_errors(str(folder)):
                    files = [n for n in os.listdir(folder) if n[0] != "."]  # noqa: PTH208 (faster)
                for file in sorted(files):
                    path, flags = f"{folder}/{file}", maildir_flags(file)
                    base = remove_flags(file)
                    other = messages.get(base)
                    if other and other.path != path and os.path.lexists(other.path):
                        base = file
                    messages[base] = _Message(path, flags[1] if flags else "")
            if self._stamps(name) == before:
                break
        return dict(sorted(messages.items()))

    def _number(self, name: str, messages: Mapping[str, object]) -> tuple[int, int, dict[str, int]]:
        """Return a folder's UIDVALIDITY and UIDNEXT, and the number of each message."""
        known = self._uids.get(name)
        if known is not None and messages.keys() <= known[2].keys():
            return known
        with memory.lock_state(self._file, QUIET_WAIT) as place:
            if self._remember or not self._uids:
                memory.load_state(place, self._load)
            validity, following, numbers = self._uids.get(name, (time.time_ns(), 1, {}))
            # A message that this listing missed keeps its number, unless too many numbers of
            # missing messages are stored.
            if len(numbers) > 2 * len(messages) + _MAX_STALE_NUMBERS:
                numbers = {base: numbers[base] for base in messages if base in numbers}
            for base in messages:
                if base not in numbers:
                    numbers[base], following = following, following + 1
            self._uids[name] = validity, following, numbers
            if self._remember:
                memory.save_state(place, self._uids)
        return self._uids[name]

    def _load(self, state: dict[str, tuple[int, int, dict[str, int]]]) -> None:
        for name, (validity, following, numbers) in state.items():
            ordered = [0, *sorted(numbers.values()), following]
            if {*map(type, (validity, *ordered))} != {int} or any(map(ge, ordered, ordered[1:])):
                raise ValueError
            self._uids[name] = validity, following, numbers

    # Messages of the open folder

    def search(self, criteria: Sequence[str], first: int = 1) -> list[int]:
        """Return, ascending, the numbers of messages that meet all criteria, from `first` on."""
        messages = self._messages.items()
        return sorted(uid for uid, m in messages if uid >= first and m.meets(criteria))

    def existing(self, uids: Iterable[int], *criteria: str) -> list[int]:
        """Return which of the numbers are in the open folder and meet the search criteria.

        The folder is listed again only if a message has lost its known name.
        """
        uids, known = set(uids), self._messages
        if not all(uid in known and os.path.lexists(known[uid].path) for uid in uids):
            self.select(self._open)
        known = self._messages
        return sorted(uid for uid in uids if uid in known and known[uid].meets(criteria))

    def marked(self) -> tuple[set[int], set[int]]:
        """Return the numbers of messages with Dovecot's keywords for spam, and for ham."""
        stored = _keywords(self._paths[self._open])

        def having(keywords: Sequence[str]) -> set[int]:
            names = {keyword.casefold() for keyword in keywords}
            letters = {letter for letter, name in stored.items() if name.casefold() in names}
            messages = self._messages.items()
            return {uid for uid, m in messages if letters & {*m.flags} and "T" not in m.flags}

        spam, ham = having(connection.JUNK_KEYWORDS), having(connection.HAM_KEYWORDS)
        return spam - ham, ham

    def prefixes(self, uids: Sequence[int]) -> Iterator[connection.FetchedMessage]:
        """Yield the first bytes of messages."""
        return self._read(uids, connection.PREFIX_BYTES)

    def messages(self, uids: Sequence[int]) -> Iterator[connection.FetchedMessage]:
        """Yield messages in the order of their numbers, without those that disappear meanwhile."""
        return self._read(sorted(uids), BYTES_LIMIT)

    def source_of(self, folder: str, uid: int) -> str:
        """Return the path of a message of the open folder."""
        return self._messages[uid].path

    def _read(self, uids: Sequence[int], limit: int) -> Iterator[connection.FetchedMessage]:
        folder = self._open
        for uid in uids:
            # twice, because a mail program may have just set a flag, which renames the file
            for attempt in range(2):
                if self._open != folder or attempt:
                    self.select(folder)
                if uid not in self._messages:
                    break
                path, flags = self._messages[uid]
                try:
                    content = _content(path, limit)
                except FileNotFoundError:
                    continue
                except OSError as error:
                    remedy = "correct its owner and permissions"
                    if error.errno == 0:  # a damaged archive
                        remedy = "get a whole copy"
                    problem = f"{error.strerror}, so {remedy}"
                else:
                    if content is None:
                        break
                    if not (problem := problem_of(content, path) if content else ""):
                        self.works("fetch")
                        yield connection.FetchedMessage(uid, "S" in flags, content)
                        break
                self.leave_out_message(uid, AccountError(problem), "fetch")
                break

    def leave_out_message(
        self, uid: int, error: AccountError, kind: str, known: str | None = None
    ) -> None:
        """Skip a message of the open folder; the note names its file, and `known`.

        known: sender and Subject.
        """
        self.refused.setdefault(self._open, set()).add(uid)
        more = f" ({known})" if known else ""
        self.leave_out(f"{self._messages[uid].path}{more}", error, kind)

    # Changes

    def junk_keyword(self, folder: connection.Folder, junk: str) -> str:
        """Return the keyword for spam that Dovecot has in the junk folder, or "".

        Without Dovecot's list of keywords no letter is known for a keyword.
        """
        known = {k.casefold() for c, k in _keywords(self._paths[junk]).items() if c <= "z"}
        return next((k for k in connection.JUNK_KEYWORDS if k.casefold() in known), "")

    def move(self, uids: Sequence[int], folder: str, keyword: str = "") -> list[int]:
        """Move messages of the open folder to another folder; return the moved messages' numbers.

        keyword: a keyword of the other folder, set by the same rename.
        """
        moved = []
        keywords = _keyword_table(self._paths[self._open], self._paths[folder])
        there = _keywords(self._paths[folder]).items()
        letter = next((c for c, k in there if k and k.casefold() == keyword.casefold()), "")
        for uid in uids:
            # several times, because the owner may set flags, which renames the file
            for _ in range(_MAX_ATTEMPTS):
                if uid not in self._messages:
                    break
                old = Path(self._messages[uid].path)
                # Only names in cur have flags.
                part = "cur" if letter else old.parent.name
                new = self._paths[folder] / part / _new_name(old.name, keywords, letter)
                with _account_errors(str(old)):
                    try:
                        old.rename(new)
                    except FileNotFoundError:
                        if not new.parent.is_dir():
                            raise
                        self.select(self._open)
                    else:
                        del self._messages[uid]
                        moved.append(uid)
                        break
        return moved

    def copy(self, *_: object) -> None:
        """Only servers without MOVE need this method and the two below."""
        raise NotImplementedError

    add_flag = expunge = copy

    def wait(self, wait_for: Callable[[float, int | None], bool], interval: float) -> None:
        """Wait until mail may have arrived in the open folder, or the time is over.

        wait_for: called with a number of seconds to wait; returns True to stop.
        """
        end, before = time.monotonic() + _WAIT_SECONDS, self._stamps(self._open)
        while time.monotonic() < end and self._stamps(self._open) == before:
            if wait_for(min(interval, _POLL_SECONDS), None):
                return

    def _stamps(self, name: str) -> list[int]:
        folder = self._paths[name]
        with _account_errors(str(folder)):
            return [(folder / part).stat().st_mtime_ns for part in MAILDIR_PARTS]


@contextmanager
def _account_errors(path: str) -> Iterator[None]:
    """Turn an error of the system into an AccountError."""
    try:
        yield
    except FileNotFoundError as error:
        raise AccountError(f"{path}: is not there; name a folder that has cur and new") from error
    except OSError as error:
        if error.errno == errno.EXDEV:
            raise AccountError(
                f"{path}: the folder to move to is on another disk, and a file cannot be moved"
                " there in one step",
                Remedy.NAME_JUNK,
            ) from error
        raise AccountError(
            f"{path}: {error.strerror}; correct its owner and permissions, or the disk, and run"
            " nbspam again"
        ) from error


def is_maildir(path: Path) -> bool:
    """Return whether a folder is a Maildir."""
    return all(os.path.isdir(path / part) for part in MAILDIR_PARTS)  # noqa: PTH112 (Path.is_dir raises for a closed folder)


def _new_name(name: str, keywords: Mapping[int, str], letter: str = "") -> str:
    """Return a new unique name with the sizes and flags of a message's name.

    keywords: a table for `str.translate`, for the letters of keywords.  letter: an additional flag.
    """
    now, host = time.time(), re.sub(r"[/:,]", "_", socket.gethostname())
    unique = f"{now:.0f}.M{now % 1 * 1e6:.0f}P{os.getpid()}Q{next(_numbers)}.{host}"
    flags = maildir_flags(name)
    start = name[flags.start() : flags.start(1)] if flags else ":2," if letter else ""
    letters = flags[1].translate(keywords) if flags else ""
    end = start + letters + ("" if letter in letters else letter)
    return unique + "".join(_SIZES.findall(name)) + end


def _keyword_table(old: Path, new: Path) -> dict[int, str]:
    """Return a table from keywords' letters in one folder to the letters in another.

    A letter without a counterpart becomes "".  Dovecot numbers the keywords of each folder; where
    no folder has Dovecot's list, letters stay as they are.
    """
    names, others = _keywords(old), _keywords(new)
    letters = {name.casefold(): letter for letter, name in others.items() if letter <= "z"}
    if not (names or letters):
        return {}
    return {ord(c): letters.get(names.get(c, "").casefold(), "") for c in ascii_lowercase}


def _keywords(folder: Path) -> dict[str, str]:
    """Return the keywords of a folder by their letters, which are flags in a message's name.

    Each line of Dovecot's list has a number, 0 for a, and a name (its wiki, MailboxFormat/Maildir).
    """
    with suppress(OSError):
        text = (folder / "dovecot-keywords").read_text("utf-8", "replace")
        return {chr(ord("a") + int(n)): name for n, name in re.findall(r"(?m)^(\d\d?) (.*)", text)}
    return {}


def _content(path: str, limit: int) -> bytes | None:
    """Read the first bytes of a message; None if it is not a regular file."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        return None
    with decompress(os.fdopen(handle, "rb")) as file:
        return file.read(limit)
