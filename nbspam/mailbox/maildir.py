"""Mail in Maildirs on this machine, with the methods of an IMAP connection.

mbsync, offlineimap, notmuch and mail programs keep such folders.  A message is moved by rename(2),
in one step, so it is in exactly one folder at any moment.  It gets a new name, as mbsync requires:
the number in its name (`,U=17`) is of the old folder.

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
from nbspam.names import MAILDIR_PARTS, maildir_flags, unflagged
from nbspam.reading.compression import decompressed
from nbspam.reading.message import BYTES_LIMIT, problem_of
from nbspam.reading.source import Skips
from nbspam.store.writing import QUIET_WAIT

_SIZES = re.compile(r",[SW]=[0-9]+")  # in names of Dovecot and Courier
# Special folders (RFC 6154) by the last part of their names.
JUNK, OLD_JUNK = "\\junk", "old junk"  # such as Archive.Spam beside Junk
_SPECIAL = dict.fromkeys(("junk", "spam", "junk e-mail", "junk email"), JUNK)
_SPECIAL |= {"trash": "\\trash", "deleted messages": "\\trash", "drafts": "\\drafts"}
_POLLING = 2.0  # seconds between two searches for new mail
_PAUSE_LIMIT = 240.0  # seconds after which other folders are searched, as with a server
_DEPTH_LIMIT = 8
_ATTEMPTS = 5  # while other programs rename files
_GONE_LIMIT = 1_000  # numbers stored of messages that are gone
_numbers = count()


class Maildir(NamedTuple):
    """A folder of Maildirs, and the use of each."""

    path: str
    label: str = ""  # its name in the config file; otherwise its path
    folders: tuple[str, ...] = (INBOX,)  # whose new mail is classified
    junk: str | None = None  # None: the one called Junk or Spam
    ham: tuple[str, ...] = (INBOX,)  # whose mail is learned as ham
    auth_host: str | None = None  # the server whose Authentication-Results prove a sender
    keywords: bool = False  # whether what is moved to the folder for spam gets a keyword for it
    class_folders: tuple[tuple[str, str], ...] = ()  # other classes, and where their mail is moved

    @property
    def name(self) -> str:
        """Its name in errors."""
        return self.path

    @property
    def server(self) -> str:
        """Its name in errors, as the server of an account."""
        return self.path

    @property
    def state(self) -> Path:
        """The file of its state."""
        path = os.path.realpath(self.path)
        digest = blake2b(path.encode(errors="surrogateescape"), digest_size=8).hexdigest()
        return state_file(f"{re.sub('[^A-Za-z0-9]', '', Path(path).name)[-40:]}-{digest}")


class _Message(NamedTuple):
    path: str
    flags: str

    def meets(self, criteria: Sequence[str]) -> bool:
        """Return whether it meets criteria of IMAP's search, other than keywords."""
        seen, deleted = "S" in self.flags, "T" in self.flags
        facts = {"SEEN": seen, "UNSEEN": not seen, "UNDELETED": not deleted}
        return all(facts.get(criterion, True) for criterion in criteria)


class LocalFolders:
    """The folders of a Maildir, with the methods of `Connection`.

    Each raises AccountError for an error of the system.
    """

    junk_rule = "no folder is called Junk or Spam"
    moves_once = True  # two processes that move the same message do not copy it

    def __init__(self, account: Maildir, remembers: bool = True) -> None:
        """remembers: whether to store the numbers; a dry run writes nothing."""
        self.account, self._remembers = account, remembers
        self.skips = Skips()  # unreadable messages that are not reported yet
        self._unreadable: set[str] = set()
        self._places = self._find()
        self._uids: dict[str, tuple[int, int, dict[str, int]]] = {}  # folder: as in the file
        self._file = account.state.with_suffix(".uids.json")
        self._messages: dict[int, _Message] = {}  # of the folder that is open
        self._open = ""

    def supports(self, capability: str) -> bool:
        """Return whether it has an extension of IMAP."""
        return capability == "MOVE"

    # Folders

    def _find(self) -> dict[str, Path]:
        """Return the Maildirs by name: of Maildir++ (`.Junk`) and in folders (`Lists/Cycling`)."""
        top = Path(self.account.path)
        places = {INBOX: top} if is_maildir(top) else {}
        with _account_errors(str(top)):
            os.listdir(top)  # noqa: PTH208 (raises; os.walk does not, and may skip lost+found)
        for folder, inside, _ in os.walk(top):
            above = Path(folder).relative_to(top).parts
            is_deep = len(above) > _DEPTH_LIMIT
            inside[:] = [] if is_deep else sorted({*inside} - {*MAILDIR_PARTS, "tmp"})
            for place in (Path(folder, name) for name in inside):
                if is_maildir(place):
                    names = (name.removeprefix(".") for name in (*above, place.name))
                    places.setdefault("/".join(names), place)
        if not places:
            raise AccountError(
                f"{top}: is not a Maildir, nor a folder of Maildirs; name the folder that has cur"
                " and new, or the one above"
            )
        return places

    def folders(self) -> list[connection.ListedFolder]:
        """Return the folders; of those called Junk or Spam, the top ones are for spam."""
        parts = {name: re.split("[./]", name.casefold()) for name in self._places}
        special = {name: _SPECIAL[p[-1]] for name, p in parts.items() if p[-1] in _SPECIAL}
        top = min((len(parts[n]) for n, flag in special.items() if flag == JUNK), default=0)
        for name, flag in special.items():
            if flag == JUNK and len(parts[name]) > top:
                special[name] = OLD_JUNK
        flags = {name: frozenset({special[name]} if name in special else ()) for name in parts}
        return [connection.ListedFolder(name, ".", flags[name]) for name in parts]

    def select(self, name: str, readonly: bool = True) -> connection.Folder:
        """Open a folder."""
        name = self._resolve(name)
        messages = self._list(name)
        uidvalidity, uidnext, numbers = self._number(name, messages)
        self._open, self._messages = name, {numbers[base]: m for base, m in messages.items()}
        return connection.Folder(name, uidvalidity, uidnext, len(messages))

    def status(self, name: str) -> connection.Folder:
        """Return a folder with the lowest number that its next message can have.

        It is not listed again: at each move, the time would grow with the square of the messages.
        """
        name = self._resolve(name)
        uidvalidity, uidnext, _ = self._uids.get(name) or self._number(name, self._list(name))
        return connection.Folder(name, uidvalidity, uidnext)

    def _resolve(self, name: str) -> str:
        name = connection.resolve_folder(name, self.folders())
        if name not in self._places:
            raise missing_folder(self.account.name, name, list(self._places))
        return name

    def is_same(self, name: str, other: str) -> bool:
        """Return whether two folders are one, perhaps by a link."""
        if not {name, other} <= self._places.keys():
            return False
        first, second = self._places[name], self._places[other]
        with _account_errors(str(first)):
            return any((first / part).samefile(second / part) for part in MAILDIR_PARTS)

    def _list(self, name: str) -> dict[str, _Message]:
        """Return the messages of a folder by the constant part of their names, oldest first.

        Lists it again if it changes meanwhile: a renamed file may be missed, or listed twice.
        """
        messages: dict[str, _Message] = {}
        for _ in range(_ATTEMPTS):
            before = self._stamps(name)
            for part in MAILDIR_PARTS:
                folder = self._places[name] / part
                with _account_errors(str(folder)):
                    files = [n for n in os.listdir(folder) if n[0] != "."]  # noqa: PTH208 (faster)
                for file in sorted(files):
                    path, flags = f"{folder}/{file}", maildir_flags(file)
                    base = unflagged(file)
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
            if self._remembers or not self._uids:
                memory.load_state(place, self._take)
            validity, following, numbers = self._uids.get(name, (time.time_ns(), 1, {}))
            # A message that was missed in a listing keeps its number.
            if len(numbers) > 2 * len(messages) + _GONE_LIMIT:
                numbers = {base: numbers[base] for base in messages if base in numbers}
            for base in messages:
                if base not in numbers:
                    numbers[base], following = following, following + 1
            self._uids[name] = validity, following, numbers
            if self._remembers:
                memory.save_state(place, self._uids)
        return self._uids[name]

    def _take(self, state: dict[str, tuple[int, int, dict[str, int]]]) -> None:
        for name, (validity, following, numbers) in state.items():
            ordered = [0, *sorted(numbers.values()), following]
            if {*map(type, (validity, *ordered))} != {int} or any(map(ge, ordered, ordered[1:])):
                raise ValueError
            self._uids[name] = validity, following, numbers

    # Messages of the open folder

    def search(self, criteria: Sequence[str], first: int = 1) -> list[int]:
        """Return the numbers from `first` on of messages that meet all criteria, ascending."""
        messages = self._messages.items()
        return sorted(uid for uid, m in messages if uid >= first and m.meets(criteria))

    def existing(self, uids: Iterable[int], *criteria: str) -> list[int]:
        """Return the numbers that are in the open folder and meet the criteria.

        The folder is listed again only if a message is not where it was.
        """
        uids, known = set(uids), self._messages
        if not all(uid in known and os.path.lexists(known[uid].path) for uid in uids):
            self.select(self._open)
        known = self._messages
        return sorted(uid for uid in uids if uid in known and known[uid].meets(criteria))

    def marked(self) -> tuple[set[int], set[int]]:
        """Return the numbers of messages that a user has marked as spam, and as ham, in Dovecot."""
        stored = _keywords(self._places[self._open])

        def having(keywords: Sequence[str]) -> set[int]:
            names = {keyword.casefold() for keyword in keywords}
            letters = {letter for letter, name in stored.items() if name.casefold() in names}
            messages = self._messages.items()
            return {uid for uid, m in messages if letters & {*m.flags} and "T" not in m.flags}

        spam, ham = having(connection.JUNK_KEYWORDS), having(connection.HAM_KEYWORDS)
        return spam - ham, ham

    def beginnings(self, uids: Sequence[int]) -> Iterator[connection.FetchedMessage]:
        """Yield the beginnings of messages."""
        return self._read(uids, connection.BEGINNING)

    def messages(self, uids: Sequence[int]) -> Iterator[connection.FetchedMessage]:
        """Yield messages in the order of their numbers, without those that are gone meanwhile."""
        return self._read(sorted(uids), BYTES_LIMIT)

    def source_of(self, folder: str, uid: int) -> str:
        """Return the path of a message of the open folder."""
        return self._messages[uid].path

    def _read(self, uids: Sequence[int], limit: int) -> Iterator[connection.FetchedMessage]:
        folder = self._open
        for uid in uids:
            for attempt in range(2):  # a mail program may have just set a flag, which renames it
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
                    content = None
                    problem = f"{error.strerror}; correct its owner and permissions"
                else:
                    problem = problem_of(content, path) if content else ""
                if problem and path not in self._unreadable:
                    self._unreadable.add(path)
                    self.skips(path, problem)
                elif content is not None and not problem:
                    yield connection.FetchedMessage(uid, "S" in flags, content)
                break

    # Changes

    def junk_keyword(self, folder: connection.Folder, junk: str) -> str:
        """Return the keyword for spam that Dovecot has in the folder for spam; "" for none.

        Only Dovecot gives keywords their letters.
        """
        known = {k.casefold() for c, k in _keywords(self._places[junk]).items() if c <= "z"}
        return next((k for k in connection.JUNK_KEYWORDS if k.casefold() in known), "")

    def move(self, uids: Sequence[int], folder: str, keyword: str = "") -> list[int]:
        """Move messages of the open folder to another one; returns the moved ones.

        keyword: of the other folder, that they get by the same rename.
        """
        moved = []
        keywords = _translated(self._places[self._open], self._places[folder])
        there = _keywords(self._places[folder]).items()
        letter = next((c for c, k in there if k and k.casefold() == keyword.casefold()), "")
        for uid in uids:
            for _ in range(_ATTEMPTS):  # while their owner sets flags, which renames them
                if uid not in self._messages:
                    break
                old = Path(self._messages[uid].path)
                # Flags are in names of cur alone.
                part = "cur" if letter else old.parent.name
                new = self._places[folder] / part / _new_name(old.name, keywords, letter)
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
        """Fail: servers without MOVE need it, and the two methods below."""
        raise NotImplementedError

    add_flag = expunge = copy

    def wait(self, until: Callable[[float, int | None], bool], interval: float) -> None:
        """Wait until mail may have come to the open folder, or the time is over.

        until: waits so many seconds; returns True to end the wait.
        """
        end, before = time.monotonic() + _PAUSE_LIMIT, self._stamps(self._open)
        while time.monotonic() < end and self._stamps(self._open) == before:
            if until(min(interval, _POLLING), None):
                return

    def _stamps(self, name: str) -> list[int]:
        folder = self._places[name]
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
                f"{path}: the folder for spam is on another disk, to which no file is moved in one"
                " step",
                Remedy.NAME_JUNK,
            ) from error
        raise AccountError(
            f"{path}: {error.strerror}; correct its owner and permissions, or the disk, and run it"
            " again"
        ) from error


def is_maildir(path: Path) -> bool:
    """Return whether a folder is a Maildir."""
    return all(os.path.isdir(path / part) for part in MAILDIR_PARTS)  # noqa: PTH112 (a closed one raises)


def _new_name(name: str, keywords: Mapping[int, str], letter: str = "") -> str:
    """Return a new unique name with the sizes and flags of a message's name.

    keywords: a table of `str.translate` for the letters of keywords.  letter: one more flag.
    """
    now, host = time.time(), re.sub(r"[/:,]", "_", socket.gethostname())
    unique = f"{now:.0f}.M{now % 1 * 1e6:.0f}P{os.getpid()}Q{next(_numbers)}.{host}"
    flags = maildir_flags(name)
    start = name[flags.start() : flags.start(1)] if flags else ":2," if letter else ""
    letters = flags[1].translate(keywords) if flags else ""
    end = start + letters + ("" if letter in letters else letter)
    return unique + "".join(_SIZES.findall(name)) + end


def _translated(old: Path, new: Path) -> dict[int, str]:
    """Return a table from the letters of keywords in a folder to those in another, "" for none.

    Dovecot numbers the keywords of each folder.  If it has not, a letter means the same anywhere.
    """
    names, others = _keywords(old), _keywords(new)
    letters = {name.casefold(): letter for letter, name in others.items() if letter <= "z"}
    if not (names or letters):
        return {}
    return {ord(c): letters.get(names.get(c, "").casefold(), "") for c in ascii_lowercase}


def _keywords(folder: Path) -> dict[str, str]:
    """Return the keywords of a folder by their letters, which are flags in a message's name.

    Dovecot's list has a number and a name a line, 0 for a (its wiki, MailboxFormat/Maildir).
    """
    with suppress(OSError):
        text = (folder / "dovecot-keywords").read_text("utf-8", "replace")
        return {chr(ord("a") + int(n)): name for n, name in re.findall(r"(?m)^(\d\d?) (.*)", text)}
    return {}


def _content(path: str, limit: int) -> bytes | None:
    """Return the first bytes of a message; None if it is not a regular file."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        return None
    with decompressed(os.fdopen(handle, "rb")) as file:
        return file.read(limit)
