"""Moving messages to the junk folder, so that each is in exactly one folder whatever happens.

What is about to be done is written down first, in the file of what is remembered of an account
between two runs, which holds numbers and digests of messages and nothing that is in them.  After a
crash `finish` looks what came of it: a message that was copied is not copied again.

With MOVE the server does it in one step.  Without, a message is copied, marked \\Deleted, and
expunged by its UID (UIDPLUS); where that cannot be done it stays marked.  A plain EXPUNGE would
remove what others have marked, so there is none.

Two machines that move the same message at the same moment may make two of it, with MOVE too: in 2
of 5 runs that began together, Dovecot 2.3 did so with a batch of 50.  `remove_doubles` keeps the
one with the lowest UID, which is the same for both machines.
"""

import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from nbspam.errors import AccountError
from nbspam.mailbox.account import ImapRefusalError
from nbspam.mailbox.connection import BEGINNING, DELETED, Connection, Folder
from nbspam.mailbox.maildir import LocalFolders
from nbspam.store.writing import LockWait, locked, unwritable, write_atomically

Mailbox = Connection | LocalFolders
T = TypeVar("T", bound=tuple[Any, ...])
_VERSION = 1  # of the file
_BYTES = 12  # of a digest: 2^48 messages before two of them are likely to share one
# Digests kept, the newest: of what was judged and of what was in the junk folder.  20,000 make a
# file of 1 MB.
_KEPT = 20_000
_RANGE_LIMIT = 10_000_000  # UIDs in the file; more would fill the memory
_NO_STATE = ArithmeticError, ValueError, TypeError, LookupError, AttributeError, RecursionError
_ATTEMPTS = 5  # while other clients move the same messages


def identity_of(content: bytes) -> str:
    """Return the digest by which a message is known again in another folder.

    It is of the first bytes, which begin with what the user's own server wrote: who sends a mail
    cannot make it pass for another.
    """
    return blake2b(content[:BEGINNING], digest_size=_BYTES).hexdigest()


# What is remembered


class JudgedFolder(NamedTuple):
    """How far a folder has been judged."""

    uidvalidity: int
    uid: int  # the last one judged
    unread_until: int  # below this UID only unread mail is judged: it was there at the first run


class JunkMark(NamedTuple):
    """A message that is or was in the junk folder."""

    at: float  # when it was moved there, or seen there first; seconds since 1970
    uidvalidity: int  # of the junk folder, for:
    uid: int  # there, or the lowest that it can have there
    was_seen: bool  # whether it was \\Seen before it was moved
    is_own: bool  # whether nbspam moved it


class LearnedFolder(NamedTuple):
    """What of a folder has been learned."""

    uidvalidity: int
    uids: set[int]
    waiting: dict[int, str]  # in the junk folder, moved by nbspam and not confirmed: UID -> digest


class PendingMove(NamedTuple):
    """A move that was begun, and of which it is not known yet whether it was done."""

    folder: str
    uidvalidity: int
    junk: str
    junk_uidvalidity: int
    junk_uidnext: int
    is_copy: bool  # by COPY; else by MOVE
    messages: dict[int, tuple[str, bool]]  # UID -> digest, whether it is \Seen


class Memory:
    """What is remembered of an account."""

    def __init__(self, path: Path) -> None:
        """Read the file at `path`, if there is one; raises AccountError."""
        self.path = path
        self.judged: dict[str, None] = {}  # digests, oldest first
        self.junked: dict[str, JunkMark] = {}  # by digest, oldest first
        self.kept: dict[str, None] = {}  # what the user has moved back, oldest first
        self.pending: PendingMove | None = None
        self.folders: dict[str, JudgedFolder] = {}
        self.learned: dict[str, LearnedFolder] = {}
        self.rescued: dict[str, list[int]] = {}  # folder -> UIDs moved out of junk, not learned yet
        if not path.exists():
            return
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            if found["version"] != _VERSION:
                raise AccountError(
                    f"{path}: was written by another version of nbspam; update nbspam, or remove"
                    " the file to start again"
                )
            self._take(found)
        except OSError as error:
            raise AccountError(
                f"{path}: cannot be read ({error.strerror}); fix its permissions"
            ) from error
        except _NO_STATE as error:
            raise AccountError(
                f"{path}: is damaged; remove it, and the next run starts again with unread mail"
            ) from error

    def _take(self, found: dict[str, Any]) -> None:
        folders, junked = found["folders"].items(), found["junked"].items()
        self.folders = {name: _checked(JudgedFolder(**each)) for name, each in folders}
        for name, each in found["learned"].items():
            waiting = {int(uid): str(digest) for uid, digest in each["waiting"].items()}
            uids = _in_ranges(each["uids"])
            self.learned[name] = _checked(LearnedFolder(each["uidvalidity"], uids, waiting))
        self.rescued = {name: [*map(int, uids)] for name, uids in found["rescued"].items()}
        self.judged, self.kept = dict.fromkeys(found["judged"]), dict.fromkeys(found["kept"])
        self.junked = {digest: _checked(JunkMark(*mark)) for digest, mark in junked}
        if found["pending"] is not None:
            move = _checked(PendingMove(**found["pending"]))
            pairs = move.messages.items()
            messages = {int(uid): (str(digest), bool(seen)) for uid, (digest, seen) in pairs}
            self.pending = move._replace(messages=messages)

    def save(self) -> None:
        """Write the file; raises ModelError when that cannot be done."""
        for digests in (self.judged, self.junked, self.kept):
            for digest in list(digests)[: max(0, len(digests) - _KEPT)]:
                del digests[digest]
        found = {
            "version": _VERSION,
            "pending": self.pending and self.pending._asdict(),
            "folders": {name: each._asdict() for name, each in self.folders.items()},
            "learned": {
                name: each._asdict() | {"uids": _ranges(each.uids)}
                for name, each in self.learned.items()
            },
            "rescued": self.rescued,
            "junked": self.junked,
            "kept": list(self.kept),
            "judged": list(self.judged),
        }
        text = json.dumps(found).encode()

        def write(file: Any) -> None:
            file.write(text)

        write_atomically(self.path, write, what="state")

    def judged_folder(self, folder: Folder) -> JudgedFolder:
        """Return how far a folder has been judged: not at all if its UIDs are new ones."""
        known = self.folders.get(folder.name)
        if known is None or known.uidvalidity != folder.uidvalidity:
            self.rescued.pop(folder.name, None)
            return JudgedFolder(folder.uidvalidity, 0, folder.uidnext)
        return known

    def set_judged(self, folder: str, judged: JudgedFolder, digests: Iterable[str]) -> None:
        """Remember how far a folder has been judged; digests: of the messages judged."""
        self.folders[folder] = judged
        for digest in digests:
            self.judged.pop(digest, None)
            self.judged[digest] = None

    def set_junked(self, digest: str, mark: JunkMark) -> None:
        """Remember that a message is in the junk folder."""
        self.kept.pop(digest, None)
        self.junked.pop(digest, None)
        self.junked[digest] = mark

    def add_rescued(self, folder: str, uid: int, digest: str) -> None:
        """Remember that the user has moved a message from the junk folder back to a folder."""
        self.rescued.setdefault(folder, []).append(uid)
        self.junked.pop(digest, None)
        self.kept[digest] = None

    def learned_folder(self, folder: Folder) -> LearnedFolder:
        """Return what of a folder was learned: nothing if its UIDs are new ones."""
        known = self.learned.get(folder.name)
        if known is None or known.uidvalidity != folder.uidvalidity:
            return LearnedFolder(folder.uidvalidity, set(), {})
        return known

    def set_learned(self, folder: str, learned: LearnedFolder) -> None:
        """Remember what of a folder was learned."""
        self.learned[folder] = learned
        self.rescued.pop(folder, None)


def _ranges(uids: Iterable[int]) -> str:
    """Return numbers as IMAP writes a set of them: `1:5,7`."""
    found: list[list[int]] = []
    for uid in sorted(uids):
        if found and uid == found[-1][1] + 1:
            found[-1][1] = uid
        else:
            found.append([uid, uid])
    return ",".join(f"{low}:{high}" if low < high else str(low) for low, high in found)


def _in_ranges(text: str) -> set[int]:
    uids: set[int] = set()
    for piece in text.split(",") if text else ():
        low, _, high = piece.partition(":")
        if int(high or low) - int(low) > _RANGE_LIMIT:
            raise ValueError
        uids.update(range(int(low), int(high or low) + 1))
    return uids


def _checked(read: T) -> T:
    """Return a tuple of the file; raises TypeError where a value is not what it is to be."""
    for value, kind in zip(read, type(read).__annotations__.values(), strict=True):
        if type(value) is not getattr(kind, "__origin__", kind):
            raise TypeError
    return read


@contextmanager
def opened_memory(path: Path, wait: LockWait) -> Iterator[Memory]:
    """Hold what is remembered of an account, in the file at `path`, for one run at a time.

    Raises LockedError when another run holds it for too long, AccountError and ModelError when it
    cannot be read or written.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(path, error, "state") from error
    with locked(path, wait) as place:
        yield Memory(place)


# Moves


class KnownMessage(NamedTuple):
    """A message of a folder, and what it is known by."""

    uid: int
    digest: str
    is_seen: bool


class Mover:
    """Moves messages of an account to its junk folder."""

    def __init__(self, connection: Mailbox, memory: Memory, junk: str) -> None:
        self.connection, self.memory, self.junk = connection, memory, junk
        self._is_copy = not connection.can("MOVE")
        # Without UIDPLUS a message stays where it was, marked \Deleted.
        self.leaves_deleted = self._is_copy and not connection.can("UIDPLUS")
        self._start: Folder | None = None  # the junk folder, when the run began
        self._expected = 0  # the junk folder's next UID if nobody else moves mail there
        self._is_alone = True
        self._tried: Counter[str] = Counter()  # digests

    def begin(self) -> None:
        """Take down what the junk folder is like before the first message is moved."""
        self._start = self.connection.status(self.junk)
        self._expected = self._start.uidnext

    def move(self, folder: Folder, messages: list[KnownMessage]) -> None:
        """Move messages of the open folder; raises AccountError, and then they are where they were.

        What is remembered is saved before; after it the caller saves it.
        """
        self._tried.update(m.digest for m in messages)
        for attempt in range(_ATTEMPTS):
            left = set(self.connection.existing([m.uid for m in messages], "UNDELETED"))
            messages = [m for m in messages if m.uid in left]
            if not messages:
                return
            try:
                self._move(folder, messages)
                return
            except ImapRefusalError as error:
                self.finish()
                # Another client has moved some of them meanwhile.
                if "EXPUNGEISSUED" not in error.answer or attempt == _ATTEMPTS - 1:
                    raise
                self.connection.select_again(folder, readonly=False)

    def _move(self, folder: Folder, messages: list[KnownMessage]) -> None:
        junk = self.connection.status(self.junk)
        self._is_alone &= junk.uidnext == self._expected
        pending = self.memory.pending = PendingMove(
            folder.name,
            folder.uidvalidity,
            self.junk,
            junk.uidvalidity,
            junk.uidnext,
            self._is_copy,
            {m.uid: (m.digest, m.is_seen) for m in messages},
        )
        self.memory.save()
        uids = [m.uid for m in messages]
        if self._is_copy:
            self.connection.copy(uids, self.junk)
            self._remove(uids)
        else:
            uids = self.connection.move(uids, self.junk)
        self._expected = junk.uidnext + len(uids)
        self._done(pending, uids)

    def remove_doubles(self) -> None:
        """Remove what another machine has moved too, at the same moment; opens the junk folder.

        Only what came since the run began is looked at, and only messages whose bytes are those of
        another that stays.
        """
        if self._start is None or not self._tried or self.connection.moves_once:
            return
        now_there = self.connection.status(self.junk)
        if self._is_alone and now_there.uidnext == self._expected:
            return
        junk = self.connection.select(self.junk, readonly=False)
        if junk.uidvalidity != self._start.uidvalidity:
            return
        found: dict[str, list[int]] = {}
        uids = self.connection.search(junk, ("UNDELETED",), self._start.uidnext)
        for message in self.connection.beginnings(uids):
            found.setdefault(identity_of(message.content), []).append(message.uid)
        doubles: list[int] = []
        for digest, times in self._tried.items():
            same = sorted(found.get(digest, ()))
            if len(same) > times:
                contents = {
                    m.uid: blake2b(m.content).digest() for m in self.connection.messages(same)
                }
                stays = {contents[uid] for uid in same[:times] if uid in contents}
                doubles += [uid for uid in same[times:] if contents.get(uid) in stays]
        if doubles:
            self._remove(doubles)

    def finish(self) -> None:
        """Find out what came of a move that a run began and did not end, and end it.

        The folder of the move is open afterwards.
        """
        pending = self.memory.pending
        if pending is None:
            return
        there = {folder.name for folder in self.connection.folders()}
        copied: Counter[str] = Counter()  # how often each has come to junk since the move was begun
        if pending.junk in there:
            junk = self.connection.select(pending.junk, readonly=True)
            is_same = junk.uidvalidity == pending.junk_uidvalidity
            uids = self.connection.search(junk, ("ALL",), pending.junk_uidnext if is_same else 1)
            copied.update(identity_of(m.content) for m in self.connection.beginnings(uids))
        left: set[int] = set()
        if pending.folder in there:
            folder = self.connection.select(pending.folder, readonly=False)
            if folder.uidvalidity == pending.uidvalidity:
                left = set(self.connection.existing(pending.messages))
        # Those that are gone come first: of two alike, one that is gone is the one in junk.
        moved = []
        for uid in sorted(pending.messages, key=lambda uid: (uid in left, uid)):
            digest = pending.messages[uid][0]
            if copied[digest] > 0 and (pending.is_copy or uid not in left):
                copied[digest] -= 1
                moved.append(uid)
        if twice := [uid for uid in moved if uid in left]:
            self._remove(twice)
        self._done(pending, moved)
        self.memory.save()

    def _remove(self, uids: list[int]) -> None:
        self.connection.add_flag(uids, DELETED)
        if not self.leaves_deleted:
            self.connection.expunge(uids)

    def _done(self, pending: PendingMove, uids: list[int]) -> None:
        """Remember that messages are in the junk folder, because nbspam moved them."""
        place = time.time(), pending.junk_uidvalidity, pending.junk_uidnext
        for uid in uids:
            digest, was_seen = pending.messages[uid]
            self.memory.set_junked(digest, JunkMark(*place, was_seen, is_own=True))
        self.memory.pending = None
