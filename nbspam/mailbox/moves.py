"""Moving messages to the junk folder, so that each is in exactly one folder whatever happens.

With MOVE the server does it in one step.  Without, a message is copied, marked \\Deleted, and
expunged by its UID (UIDPLUS); where that cannot be done it stays marked.  A plain EXPUNGE would
remove what others have marked, so there is none.

What is about to be done is written down first.  After a crash `finish` looks what came of it: a
message that was copied is not copied again.

Two machines that move the same message at the same moment may make two of it, with MOVE too: in 2
of 5 runs that began together, Dovecot 2.3 did so with a batch of 50.  `remove_doubles` keeps the
one with the lowest UID, which is the same for both machines.
"""

from collections import Counter
from hashlib import blake2b
from typing import NamedTuple

from nbspam.imap.connection import DELETED, Connection, FolderStatus, SelectedFolder
from nbspam.imap.failure import ImapRefusalError
from nbspam.mailbox.memory import JunkMark, Memory, PendingMove, identity_of, now
from nbspam.reading.message import BYTES_LIMIT

_ATTEMPTS = 5  # while other clients move the same messages


class KnownMessage(NamedTuple):
    """A message of a folder, and what it is known by."""

    uid: int
    digest: str
    is_seen: bool


class Mover:
    """Moves messages of an account to its junk folder."""

    def __init__(self, connection: Connection, memory: Memory, junk: str) -> None:
        self._connection, self._memory, self._junk = connection, memory, junk
        self._is_copy = not connection.can("MOVE")
        # Without UIDPLUS a message stays where it was, marked \Deleted.
        self.leaves_deleted = self._is_copy and not connection.can("UIDPLUS")
        self._start: FolderStatus | None = None  # of the junk folder, when the run began
        self._expected = 0  # the junk folder's next UID if nobody else moves mail there
        self._is_alone = True
        self._tried: Counter[str] = Counter()  # digests

    def begin(self) -> None:
        """Take down what the junk folder is like before the first message is moved."""
        self._start = self._connection.status(self._junk)
        self._expected = self._start.uidnext

    def move(self, folder: SelectedFolder, messages: list[KnownMessage]) -> None:
        """Move messages of the open folder; raises AccountError, and then they are where they were.

        What is remembered is saved before; after it the caller saves it.
        """
        self._tried.update(m.digest for m in messages)
        for attempt in range(_ATTEMPTS):
            left = set(self._connection.existing([m.uid for m in messages], "UNDELETED"))
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
                self._connection.select_again(folder, readonly=False)

    def _move(self, folder: SelectedFolder, messages: list[KnownMessage]) -> None:
        junk = self._connection.status(self._junk)
        self._is_alone &= junk.uidnext == self._expected
        pending = self._memory.pending = PendingMove(
            folder.name,
            folder.uidvalidity,
            self._junk,
            junk.uidvalidity,
            junk.uidnext,
            self._is_copy,
            {m.uid: (m.digest, m.is_seen) for m in messages},
        )
        self._memory.save()
        uids = [m.uid for m in messages]
        if self._is_copy:
            self._connection.copy(uids, self._junk)
            self._remove(uids)
        else:
            self._connection.move(uids, self._junk)
        self._expected = junk.uidnext + len(uids)
        self._done(pending, uids)

    def remove_doubles(self) -> None:
        """Remove what another machine has moved too, at the same moment; opens the junk folder.

        Only what came since the run began is looked at, and only messages whose bytes are those of
        another that stays.
        """
        if self._start is None or not self._tried:
            return
        now_there = self._connection.status(self._junk)
        if self._is_alone and now_there.uidnext == self._expected:
            return
        junk = self._connection.select(self._junk, readonly=False)
        if junk.uidvalidity != self._start.uidvalidity:
            return
        found: dict[str, list[int]] = {}
        uids = self._connection.search(junk, ("UNDELETED",), self._start.uidnext)
        for message in self._connection.beginnings(uids):
            found.setdefault(identity_of(message.content), []).append(message.uid)
        doubles: list[int] = []
        for digest, times in self._tried.items():
            same = sorted(found.get(digest, ()))
            if len(same) > times:
                doubles += self._same_bytes(same[:times], same[times:])
        if doubles:
            self._remove(doubles)

    def _same_bytes(self, kept: list[int], others: list[int]) -> list[int]:
        """Return those of the others whose bytes are those of one that is kept."""
        fetched = self._connection.messages([*kept, *others], BYTES_LIMIT)
        contents = {m.uid: blake2b(m.content).digest() for m in fetched}
        stays = {contents[uid] for uid in kept if uid in contents}
        return [uid for uid in others if contents.get(uid) in stays]

    def finish(self) -> None:
        """Find out what came of a move that a run began and did not end, and end it.

        The folder of the move is open afterwards.
        """
        pending = self._memory.pending
        if pending is None:
            return
        copied = self._found_in_junk(pending)
        left: set[int] = set()
        if self._is_there(pending.folder):
            folder = self._connection.select(pending.folder, readonly=False)
            if folder.uidvalidity == pending.uidvalidity:
                left = set(self._connection.existing(pending.messages))
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
        self._memory.save()

    def _found_in_junk(self, pending: PendingMove) -> Counter[str]:
        """Return how often each message has come to the junk folder since the move was begun."""
        if not self._is_there(pending.junk):
            return Counter()
        junk = self._connection.select(pending.junk, readonly=True)
        is_same = junk.uidvalidity == pending.junk_uidvalidity
        first = pending.junk_uidnext if is_same else 1
        uids = self._connection.search(junk, ("ALL",), first)
        return Counter(identity_of(m.content) for m in self._connection.beginnings(uids))

    def _is_there(self, folder: str) -> bool:
        return any(each.name == folder for each in self._connection.folders())

    def _remove(self, uids: list[int]) -> None:
        self._connection.add_flag(uids, DELETED)
        if not self.leaves_deleted:
            self._connection.expunge(uids)

    def _done(self, pending: PendingMove, uids: list[int]) -> None:
        """Remember that messages are in the junk folder, because nbspam moved them."""
        at = now()
        for uid in uids:
            digest, was_seen = pending.messages[uid]
            place = pending.junk_uidvalidity, pending.junk_uidnext
            self._memory.set_junked(digest, JunkMark(at, *place, was_seen, is_own=True))
        self._memory.pending = None
