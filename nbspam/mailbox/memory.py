"""The state of an account between runs: numbers and digests of messages, no text."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from nbspam.errors import AccountError
from nbspam.mailbox.connection import BEGINNING, Folder
from nbspam.store.writing import LockWait, locked, unwritable, write_atomically

T = TypeVar("T", bound=tuple[Any, ...])
_VERSION = 3  # of the file
_BYTES = 12  # of a digest: 2^48 messages before two of them are likely to share one
# Digests stored, the newest, of each kind.  20,000 make a file of 1 MB.
_KEPT = 20_000
_NO_STATE = ArithmeticError, ValueError, TypeError, LookupError, AttributeError, RecursionError


def identity_of(content: bytes) -> str:
    """Return the digest by which a message is recognised in another folder.

    It is the digest of the first bytes, which begin with fields of the user's own server, so a
    sender cannot imitate another message.
    """
    return blake2b(content[:BEGINNING], digest_size=_BYTES).hexdigest()


# Files


@contextmanager
def lock_state(path: Path, wait: LockWait) -> Iterator[Path]:
    """Lock a state file for one run at a time; yields its real path.

    Raises LockedError when another run holds it for too long, ModelError if it cannot be written.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(path, error, "state") from error
    with locked(path, wait) as place:
        yield place


def load_state(path: Path, take: Callable[[Any], None]) -> None:
    """Pass a state file's content to `take`, if there is one; raises AccountError."""
    try:
        if path.exists():
            take(json.loads(path.read_bytes()))
    except OSError as error:
        raise AccountError(
            f"{path}: cannot be read ({error.strerror}); fix its permissions"
        ) from error
    except _NO_STATE as error:
        raise AccountError(
            f"{path}: is damaged; remove it, and the next run starts again with unread mail"
        ) from error


def save_state(path: Path, state: dict[str, Any]) -> None:
    """Write a state file; raises ModelError when that cannot be done."""
    text = json.dumps(state, default=sorted).encode()  # sorted: of sets
    write_atomically(path, lambda file: file.write(text), what="state")


# The state


class JudgedFolder(NamedTuple):
    """How far a folder has been classified."""

    uidvalidity: int
    uid: int  # the last one classified
    unread_until: int  # below this UID, the first run's mail, only unread mail is classified


class JunkMark(NamedTuple):
    """A message that is or was in the junk folder."""

    at: float  # when it was moved there, or first found there; seconds since 1970
    uidvalidity: int  # of the junk folder
    uid: int  # in the junk folder, or the lowest possible one
    was_seen: bool  # whether it was \\Seen before it was moved
    is_own: bool  # whether nbspam moved it


class LearnedFolder(NamedTuple):
    """The messages of a folder that have been learned."""

    uidvalidity: int
    uids: set[int]
    waiting: dict[int, str]  # UID -> digest of junk moved by nbspam and not confirmed by the user
    against: set[int]  # the UIDs whose keywords contradict the folder


class PendingMove(NamedTuple):
    """A move that was begun, and may be done or not."""

    folder: str
    uidvalidity: int
    junk: str
    junk_uidvalidity: int
    junk_uidnext: int
    is_copy: bool  # by COPY; else by MOVE
    messages: dict[int, tuple[str, bool]]  # UID -> digest, whether it is \Seen


class Memory:
    """The state of an account, in the file at `path`."""

    def __init__(self, path: Path) -> None:
        """Read the file, if there is one; raises AccountError."""
        self.path = path
        # By digest, the oldest first: of messages that were classified, that were in the junk
        # folder, that the user moved back, and that nbspam marked as spam.
        self.judged: dict[str, None] = {}
        self.junked: dict[str, JunkMark] = {}
        self.kept: dict[str, None] = {}
        self.marked: dict[str, None] = {}
        self.pending: PendingMove | None = None
        self.folders: dict[str, JudgedFolder] = {}
        self.learned: dict[str, LearnedFolder] = {}
        self.rescued: dict[str, list[int]] = {}  # folder -> UIDs moved out of junk, not learned yet
        load_state(path, self._take)

    def _take(self, state: dict[str, Any]) -> None:
        if state["version"] != _VERSION:
            raise AccountError(
                f"{self.path}: was written by another version of nbspam; update nbspam, or remove"
                " the file to start again"
            )
        self.judged, self.kept = dict.fromkeys(state["judged"]), dict.fromkeys(state["kept"])
        self.marked = dict.fromkeys(state["marked"])
        self.junked = {digest: _checked(JunkMark(*m)) for digest, m in state["junked"].items()}
        self.folders = {name: _checked(JudgedFolder(*f)) for name, f in state["folders"].items()}
        for name, (validity, uids, waiting, against) in state["learned"].items():
            digests = {int(uid): str(digest) for uid, digest in waiting.items()}
            learned = LearnedFolder(validity, {*map(int, uids)}, digests, {*map(int, against)})
            self.learned[name] = _checked(learned)
        self.rescued = {name: [*map(int, uids)] for name, uids in state["rescued"].items()}
        if state["pending"] is not None:
            move = PendingMove(*state["pending"])
            pairs = move.messages.items()
            messages = {int(uid): (str(digest), bool(seen)) for uid, (digest, seen) in pairs}
            self.pending = _checked(move._replace(messages=messages))

    def save(self) -> None:
        """Write the file; raises ModelError when that cannot be done."""
        for digests in (self.judged, self.junked, self.kept, self.marked):
            for digest in list(digests)[: max(0, len(digests) - _KEPT)]:
                del digests[digest]
        facts = {name: value for name, value in vars(self).items() if name != "path"}
        save_state(self.path, facts | {"version": _VERSION})

    def judged_folder(self, folder: Folder) -> JudgedFolder:
        """Return how far a folder has been classified: not at all if its UIDs are new."""
        known = self.folders.get(folder.name)
        if known and folder.continues(known.uidvalidity, known.uid):
            return known
        self.rescued.pop(folder.name, None)
        return JudgedFolder(folder.uidvalidity, 0, folder.uidnext)

    def set_junked(self, digest: str, mark: JunkMark) -> None:
        """Note that a message is in the junk folder."""
        self.kept.pop(digest, None)
        self.junked.pop(digest, None)
        self.junked[digest] = mark

    def add_rescued(self, folder: str, uid: int, digest: str) -> None:
        """Note that the user has moved a message from the junk folder back to a folder."""
        self.rescued.setdefault(folder, []).append(uid)
        self.junked.pop(digest, None)
        self.kept[digest] = None

    def learned_folder(self, folder: Folder) -> LearnedFolder:
        """Return the learned messages of a folder: none if its UIDs are new."""
        known = self.learned.get(folder.name)
        if known and folder.continues(known.uidvalidity, max(known.uids, default=0)):
            return known
        return LearnedFolder(folder.uidvalidity, set(), {}, set())


def _checked(read: T) -> T:
    """Return a tuple of the file; raises TypeError for a value of another type."""
    for value, kind in zip(read, type(read).__annotations__.values(), strict=True):
        if type(value) is not getattr(kind, "__origin__", kind):
            raise TypeError
    return read
