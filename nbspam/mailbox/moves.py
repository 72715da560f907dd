"""Moving messages to the junk folder, so that each is in exactly one folder whatever happens.

With MOVE the server does it in one step.  Without, a message is copied, marked \\Deleted, and
expunged by its UID (UIDPLUS); where that cannot be done it stays marked.  A plain EXPUNGE would
remove what others have marked, so there is none.

What is about to be done is written down first.  After a crash `finish` looks what came of it: a
message that was copied is not copied again.
"""

from collections import Counter
from typing import NamedTuple

from nbspam.errors import AccountError
from nbspam.imap.connection import DELETED, Connection, SelectedFolder
from nbspam.imap.failure import RefusedError
from nbspam.mailbox.memory import JunkMark, Memory, PendingMove, identity_of, now


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

    def move(self, folder: SelectedFolder, messages: list[KnownMessage]) -> None:
        """Move messages of the open folder; raises AccountError, and then they are where they were.

        What is remembered is saved before; after it the caller saves it.
        """
        if self._is_copy:  # another client may have moved one meanwhile
            left = set(self._connection.existing([m.uid for m in messages], "UNDELETED"))
            messages = [m for m in messages if m.uid in left]
        if not messages:
            return
        junk = self._connection.status(self._junk)
        self._memory.pending = PendingMove(
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
        try:
            if self._is_copy:
                self._connection.copy(uids, self._junk)
                self._remove(uids)
            else:
                self._connection.move(uids, self._junk)
        except RefusedError:
            self.finish()
            raise
        self._done(self._memory.pending, uids)

    def finish(self) -> None:
        """Find out what came of a move that a run began and did not end, and end it."""
        pending = self._memory.pending
        if pending is None:
            return
        try:
            copied = self._found_in_junk(pending)
            folder = self._connection.select(pending.folder, readonly=False)
        except RefusedError as error:
            raise AccountError(
                f"{error.problem}; until it can be opened it is not known whether the last run has"
                " moved its spam"
            ) from error
        left: set[int] = set()
        if folder.uidvalidity == pending.uidvalidity:
            left = set(self._connection.existing(pending.messages))
        gone = [uid for uid in pending.messages if uid not in left]
        for uid in gone:
            copied[pending.messages[uid][0]] -= 1
        twice = []  # copied, and not yet removed
        for uid in sorted(left):
            digest = pending.messages[uid][0]
            if pending.is_copy and copied[digest] > 0:
                copied[digest] -= 1
                twice.append(uid)
        if twice:
            self._remove(twice)
        self._done(pending, [*gone, *twice])
        self._memory.save()

    def _found_in_junk(self, pending: PendingMove) -> Counter[str]:
        """Return how often each message has come to the junk folder since the move was begun."""
        junk = self._connection.select(pending.junk, readonly=True)
        is_same = junk.uidvalidity == pending.junk_uidvalidity
        first = pending.junk_uidnext if is_same else 1
        uids = self._connection.search(junk, ("ALL",), first)
        return Counter(identity_of(m.content) for m in self._connection.beginnings(uids))

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
