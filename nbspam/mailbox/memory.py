"""The state of an account between runs: numbers and digests of messages, no text."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from nbspam.mailbox.account import SetupError
from nbspam.mailbox.connection import PREFIX_BYTES, Folder
from nbspam.store.writing import LockWait, locked, unwritable_error, write_atomically

T = TypeVar("T", bound=tuple[Any, ...])
_VERSION = 5
_DIGEST_BYTES = 12  # a shared digest becomes likely with 2^48 messages
# The newest digests of each kind are stored.  20,000 make a file of 1 MB.
_MAX_DIGESTS = 20_000
_FIRST_WAIT, _LONGEST_WAIT = 3, 1_000  # runs before a refused message is tried again
_NO_STATE = ArithmeticError, ValueError, TypeError, LookupError, AttributeError, RecursionError


def identity_of(content: bytes) -> str:
    """Return the digest by which a message is recognised in another folder.

    The digest covers the message's first bytes, which start with fields of the user's own server,
    so a sender cannot imitate another message.
    """
    return blake2b(content[:PREFIX_BYTES], digest_size=_DIGEST_BYTES).hexdigest()


# Files


@contextmanager
def lock_state(path: Path, wait: LockWait) -> Iterator[Path]:
    """Lock a state file for one run at a time; yields its real path.

    Raises LockedError if another run holds the lock for too long, ModelError if the file cannot be
    written.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable_error(path, error, "state") from error
    with locked(path, wait) as place:
        yield place


def load_state(path: Path, load: Callable[[Any], None]) -> None:
    """Call `load` with a state file's content, if the file exists; raises AccountError."""
    try:
        if path.exists():
            load(json.loads(path.read_bytes()))
    except OSError as error:
        raise SetupError(
            f"{path}: cannot be read ({error.strerror}); fix its permissions"
        ) from error
    except _NO_STATE as error:
        raise SetupError(
            f"{path}: is damaged; remove it, and the next run starts again with unread mail"
        ) from error


def save_state(path: Path, state: dict[str, Any]) -> None:
    """Write a state file; raises ModelError if that fails."""
    text = json.dumps(state, default=sorted).encode()  # sets become sorted lists
    write_atomically(path, lambda file: file.write(text), kind="state")


# The state


class ClassifiedFolder(NamedTuple):
    """How far a folder has been classified."""

    uidvalidity: int
    uid: int  # the last classified UID
    unread_until: int  # below this UID (mail before the first run), only unread mail is classified
    retry_later: dict[int, list[int]]  # UID of a refused message -> [runs left to wait, last wait]


class JunkMark(NamedTuple):
    """A message that is or was in the junk folder."""

    since: float  # when it was moved or first found there; seconds since 1970
    uidvalidity: int  # the junk folder's
    uid: int  # the UID in the junk folder, or a lower one
    was_seen: bool  # the message was \\Seen before it was moved
    moved_by_nbspam: bool


class LearnedFolder(NamedTuple):
    """The messages of a folder that have been learned."""

    uidvalidity: int
    uids: set[int]
    # UID -> digest of mail that nbspam moved here and that the user has not confirmed.
    unconfirmed: dict[int, str]
    contradicting: set[int]  # UIDs whose keywords contradict the folder
    looked_up_to: int  # the highest UID that was compared with the mail moved out of junk
    retry_later: dict[int, list[int]]  # UID of a refused message -> [runs left to wait, last wait]


def next_run(retry_later: dict[int, list[int]]) -> set[int]:
    """Start a run; returns the refused messages that it does not try again."""
    for wait in retry_later.values():
        wait[0] -= 1
    return {uid for uid, (left, _) in retry_later.items() if left > 0}


def note_refused(retry_later: dict[int, list[int]], tried: set[int], refused: set[int]) -> None:
    """Record the refused messages among those tried; their wait doubles each time."""
    for uid in tried - refused:
        retry_later.pop(uid, None)
    for uid in refused:
        wait = min(2 * retry_later[uid][1], _LONGEST_WAIT) if uid in retry_later else _FIRST_WAIT
        retry_later[uid] = [wait, wait]


class PendingMove(NamedTuple):
    """A move that was started, and possibly finished."""

    folder: str
    uidvalidity: int
    junk: str
    junk_uidvalidity: int
    junk_uidnext: int
    is_copy: bool  # made by COPY, otherwise by MOVE
    messages: dict[int, tuple[str, bool]]  # UID -> digest, is \Seen


class Memory:
    """The state of an account, in the file at `path`."""

    def __init__(self, path: Path) -> None:
        """Read the file, if it exists; raises AccountError."""
        self.path = path
        # Digests, the oldest first, of messages that were classified, that were in the junk folder,
        # that the user moved back, and that nbspam marked as spam.
        self.classified: dict[str, None] = {}
        self.junked: dict[str, JunkMark] = {}
        self.moved_back: dict[str, None] = {}
        self.marked: dict[str, None] = {}
        self.pending: PendingMove | None = None
        self.folders: dict[str, ClassifiedFolder] = {}
        self.learned: dict[str, LearnedFolder] = {}
        # Folder -> UIDs that the user moved out of junk, not learned yet.
        self.moved_back_uids: dict[str, list[int]] = {}
        load_state(path, self._load)

    def _load(self, state: dict[str, Any]) -> None:
        if state["version"] != _VERSION:
            raise SetupError(
                f"{self.path}: was written by another version of nbspam; update nbspam, or remove"
                " the file to start again"
            )
        names = "classified", "moved_back", "marked"
        self.classified, self.moved_back, self.marked = (dict.fromkeys(state[n]) for n in names)
        self.junked = {digest: _check_types(JunkMark(*m)) for digest, m in state["junked"].items()}
        for name, (validity, uid, unread_until, retry_later) in state["folders"].items():
            folder = ClassifiedFolder(validity, uid, unread_until, _parse_waits(retry_later))
            self.folders[name] = _check_types(folder)
        for name, fields in state["learned"].items():
            validity, uids, unconfirmed, contradicting, looked_up_to, retry_later = fields
            digests = {int(uid): str(digest) for uid, digest in unconfirmed.items()}
            sets = {*map(int, uids)}, digests, {*map(int, contradicting)}
            learned = LearnedFolder(validity, *sets, looked_up_to, _parse_waits(retry_later))
            self.learned[name] = _check_types(learned)
        self.moved_back_uids = {
            name: [*map(int, uids)] for name, uids in state["moved_back_uids"].items()
        }
        if state["pending"] is not None:
            move = PendingMove(*state["pending"])
            pairs = move.messages.items()
            messages = {int(uid): (str(digest), bool(seen)) for uid, (digest, seen) in pairs}
            self.pending = _check_types(move._replace(messages=messages))

    def save(self) -> None:
        """Write the file; raises ModelError if that fails."""
        for digests in (self.classified, self.junked, self.moved_back, self.marked):
            for digest in list(digests)[: max(0, len(digests) - _MAX_DIGESTS)]:
                del digests[digest]
        state = {name: value for name, value in vars(self).items() if name != "path"}
        save_state(self.path, state | {"version": _VERSION})

    def classified_folder(self, folder: Folder) -> ClassifiedFolder:
        """Return how far a folder has been classified; not at all if its UIDs are new."""
        known = self.folders.get(folder.name)
        if known and folder.uids_still_valid(known.uidvalidity, known.uid):
            return known
        self.moved_back_uids.pop(folder.name, None)
        return ClassifiedFolder(folder.uidvalidity, 0, folder.uidnext, {})

    def set_junked(self, digest: str, mark: JunkMark) -> None:
        """Record that a message is in the junk folder."""
        self.moved_back.pop(digest, None)
        self.junked.pop(digest, None)
        self.junked[digest] = mark

    def add_moved_back(self, folder: str, uid: int, digest: str) -> None:
        """Record that the user has moved a message from the junk folder back to a folder."""
        self.moved_back_uids.setdefault(folder, []).append(uid)
        self.keep(digest)

    def keep(self, digest: str) -> None:
        """Record that a message stays where the user moved it out of the junk folder."""
        self.junked.pop(digest, None)
        self.moved_back[digest] = None

    def learned_folder(self, folder: Folder) -> LearnedFolder:
        """Return the learned messages of a folder; no messages if its UIDs are new."""
        known = self.learned.get(folder.name)
        if known and folder.uids_still_valid(known.uidvalidity, max(known.uids, default=0)):
            return known
        return LearnedFolder(folder.uidvalidity, set(), {}, set(), 0, {})


def _parse_waits(retry_later: dict[str, list[int]]) -> dict[int, list[int]]:
    return {int(uid): [int(left), int(wait)] for uid, (left, wait) in retry_later.items()}


def _check_types(read: T) -> T:
    """Return a named tuple from the file; raises TypeError for a value of another type."""
    for value, kind in zip(read, type(read).__annotations__.values(), strict=True):
        if type(value) is not getattr(kind, "__origin__", kind):
            raise TypeError
    return read
