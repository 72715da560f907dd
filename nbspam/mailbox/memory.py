"""What is remembered of an account between two runs, in a file of its own.

It holds numbers and digests of messages, and nothing that is in them.  It is written before a
message is moved and after it, so that a run which is killed in between leaves a note of what it
was about to do.
"""

import json
import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from nbspam.errors import AccountError
from nbspam.imap.account import Account
from nbspam.imap.connection import SelectedFolder
from nbspam.store.writing import DEFAULT_WAIT, LockWait, locked, unwritable, write_atomically

_VERSION = 1
_BYTES = 12  # 2^48 messages before two of them are likely to share a digest
# Digests kept, the newest: of what was judged and of what was in the junk folder.  20,000 make a
# file of 1 MB.
_KEPT = 20_000


def identity_of(beginning: bytes) -> str:
    """Return the digest by which a message is known again in another folder.

    beginning: its first bytes, which begin with what the user's own server wrote: who sends a mail
    cannot make it pass for another.
    """
    return blake2b(beginning, digest_size=_BYTES).hexdigest()


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
        self._folders: dict[str, JudgedFolder] = {}
        self._learned: dict[str, LearnedFolder] = {}
        self._rescued: dict[str, list[int]] = {}  # folder -> UIDs of what was moved out of junk
        if path.exists():
            self._read()

    def judged_folder(self, folder: SelectedFolder) -> JudgedFolder:
        """Return how far a folder has been judged: not at all if its UIDs are new ones."""
        known = self._folders.get(folder.name)
        if known is None or known.uidvalidity != folder.uidvalidity:
            self._rescued.pop(folder.name, None)
            return JudgedFolder(folder.uidvalidity, 0, folder.uidnext)
        return known

    def is_known(self, folder: str) -> bool:
        """Return whether mail of a folder of this name was judged before."""
        return folder in self._folders

    def set_judged(self, folder: str, judged: JudgedFolder, digests: Iterable[str]) -> None:
        """Remember how far a folder has been judged; digests: of the messages judged."""
        self._folders[folder] = judged
        for digest in digests:
            self.judged.pop(digest, None)
            self.judged[digest] = None

    def set_junked(self, digest: str, mark: JunkMark) -> None:
        """Remember that a message is in the junk folder."""
        self.kept.pop(digest, None)
        self.junked.pop(digest, None)
        self.junked[digest] = mark

    def learned_folder(self, folder: SelectedFolder) -> LearnedFolder:
        """Return what of a folder was learned: nothing if its UIDs are new ones."""
        known = self._learned.get(folder.name)
        if known is None or known.uidvalidity != folder.uidvalidity:
            return LearnedFolder(folder.uidvalidity, set(), {})
        return known

    def set_learned(self, folder: str, learned: LearnedFolder) -> None:
        """Remember what of a folder was learned."""
        self._learned[folder] = learned
        self._rescued.pop(folder, None)

    def rescued(self, folder: str) -> list[int]:
        """Return the UIDs of what the user has moved back to a folder, not learned yet."""
        return self._rescued.get(folder, [])

    def add_rescued(self, folder: str, uid: int, digest: str) -> None:
        """Remember that the user has moved a message from the junk folder back to a folder."""
        self._rescued.setdefault(folder, []).append(uid)
        self.junked.pop(digest, None)
        self.kept[digest] = None

    def save(self) -> None:
        """Write the file; raises ModelError when that cannot be done."""
        for digests in (self.judged, self.junked, self.kept):
            for digest in list(digests)[: max(0, len(digests) - _KEPT)]:
                del digests[digest]
        text = json.dumps(self._as_json(), ensure_ascii=False)
        write_atomically(self.path, lambda file: _write(file, text), what="state")

    def _as_json(self) -> dict[str, Any]:
        learned = {
            name: {
                "uidvalidity": each.uidvalidity,
                "uids": _ranges(each.uids),
                "waiting": {str(uid): digest for uid, digest in each.waiting.items()},
            }
            for name, each in self._learned.items()
        }
        pending = None
        if self.pending is not None:
            messages = {str(uid): list(each) for uid, each in self.pending.messages.items()}
            pending = self.pending._asdict() | {"messages": messages}
        return {
            "version": _VERSION,
            "pending": pending,
            "folders": {name: each._asdict() for name, each in self._folders.items()},
            "learned": learned,
            "rescued": self._rescued,
            "junked": {digest: list(mark) for digest, mark in self.junked.items()},
            "kept": list(self.kept),
            "judged": list(self.judged),
        }

    def _read(self) -> None:
        try:
            found = json.loads(self.path.read_text(encoding="utf-8"))
            if found["version"] != _VERSION:
                raise AccountError(
                    f"{self.path}: was written by another version of nbspam; update nbspam, or"
                    " remove the file to begin anew"
                )
            self._take(found)
        except OSError as error:
            raise AccountError(
                f"{self.path}: cannot be read ({error.strerror}); fix its permissions"
            ) from error
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise AccountError(
                f"{self.path}: is damaged; remove it, and the next run begins anew with unread mail"
            ) from error

    def _take(self, found: dict[str, Any]) -> None:
        self._folders = {
            name: JudgedFolder(*map(int, (each["uidvalidity"], each["uid"], each["unread_until"])))
            for name, each in found["folders"].items()
        }
        self._learned = {
            name: LearnedFolder(
                int(each["uidvalidity"]),
                _in_ranges(each["uids"]),
                {int(uid): str(digest) for uid, digest in each["waiting"].items()},
            )
            for name, each in found["learned"].items()
        }
        self._rescued = {name: list(map(int, uids)) for name, uids in found["rescued"].items()}
        self.judged = dict.fromkeys(map(str, found["judged"]))
        self.kept = dict.fromkeys(map(str, found["kept"]))
        self.junked = {
            str(digest): JunkMark(float(at), int(validity), int(uid), bool(was_seen), bool(own))
            for digest, (at, validity, uid, was_seen, own) in found["junked"].items()
        }
        if found["pending"] is not None:
            pending = PendingMove(**found["pending"])
            messages = {
                int(uid): (str(digest), bool(seen))
                for uid, (digest, seen) in pending.messages.items()
            }
            self.pending = pending._replace(messages=messages)


def _write(file: Any, text: str) -> None:
    file.write(text.encode())


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
        uids.update(range(int(low), int(high or low) + 1))
    return uids


def memory_path(account: Account) -> Path:
    """Return where an account is remembered; raises AccountError without a home folder."""
    home = os.path.expanduser("~").rstrip("/")  # noqa: PTH111 (as for the model)
    state = os.environ.get("XDG_STATE_HOME", "")
    if sys.platform == "darwin":
        state = f"{home}/Library/Application Support"
    elif not state.startswith("/"):  # a relative one is to be ignored, says its specification
        if home.startswith("~"):
            raise AccountError(
                "there is no home folder for what is remembered of the account; set XDG_STATE_HOME"
            )
        state = f"{home}/.local/state"
    name = quote(f"{account.user}@{account.host}:{account.own_port}", safe="@+:")
    return Path(state, "nbspam", "imap", f"{name}.json")


@contextmanager
def opened_memory(account: Account, wait: LockWait = DEFAULT_WAIT) -> Iterator[Memory]:
    """Hold what is remembered of an account, for one run at a time.

    Raises LockedError when another run holds it for too long, AccountError and ModelError when it
    cannot be read or written.
    """
    path = memory_path(account)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(path, error, "state") from error
    with locked(path, wait) as place:
        yield Memory(place)


def now() -> float:
    """Return the time, in seconds since 1970."""
    return time.time()
