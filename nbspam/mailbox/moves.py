"""Moving messages to the junk folder, so that each is in exactly one folder whatever happens.

Or to the folder of another class.

Each move is written to the account's state before it is made.  After a crash `finish` finds out
whether it was made, so that no message is copied twice.

With MOVE the server moves in one step.  Without it, a message is copied, marked \\Deleted, and
expunged by its UID (UIDPLUS); without UIDPLUS it stays marked.  A plain EXPUNGE would remove
messages that others have marked, so none is sent.

Two machines that move the same message at the same moment may copy it twice, even with MOVE:
Dovecot 2.3 did so in 2 of 5 runs with a batch of 50.  `remove_doubles` keeps the copy with the
lowest UID, which is the same on both machines.
"""

import time
from collections import Counter
from hashlib import blake2b
from typing import NamedTuple

from nbspam.errors import UnavailableError
from nbspam.mailbox.account import ImapRefusalError
from nbspam.mailbox.connection import DELETED, Connection, Folder
from nbspam.mailbox.maildir import LocalFolders
from nbspam.mailbox.memory import JunkMark, Memory, PendingMove, identity_of

Mailbox = Connection | LocalFolders
_ATTEMPTS = 5  # while other clients move the same messages


class KnownMessage(NamedTuple):
    """A message of a folder, and its digest."""

    uid: int
    digest: str
    is_seen: bool


def select_again(connection: Mailbox, folder: Folder, readonly: bool) -> None:
    """Open a folder whose UIDs are in use; raises UnavailableError if they have been renumbered."""
    if connection.select(folder.name, readonly).uidvalidity != folder.uidvalidity:
        raise UnavailableError(
            f"{connection.account.name}: {folder.name}: its messages have just been renumbered;"
            " run it again"
        )


class Mover:
    """Moves messages of an account to its junk folder, or to that of another class."""

    def __init__(
        self, connection: Mailbox, memory: Memory, junk: str, is_of_spam: bool = True
    ) -> None:
        """junk: the folder.  is_of_spam: False for that of another class."""
        self.connection, self.memory, self.junk = connection, memory, junk
        self._is_of_spam = is_of_spam
        self._is_copy = not connection.supports("MOVE")
        # Without UIDPLUS a message stays where it was, marked \Deleted.
        self.leaves_deleted = self._is_copy and not connection.supports("UIDPLUS")
        self._start: Folder | None = None  # the junk folder, when the run began
        self._expected = 0  # the junk folder's next UID if nobody else moves mail there
        self._is_alone = True
        self._tried: Counter[str] = Counter()  # digests

    def begin(self) -> None:
        """Note the junk folder's state before the first move."""
        self._start = self.connection.select(self.junk, readonly=True)
        self._expected = self._start.uidnext

    def move(self, folder: Folder, messages: list[KnownMessage], keyword: str = "") -> None:
        """Move messages of the open folder; raises AccountError, and then none is moved.

        keyword: that they get.  Saves the state before; the caller saves it afterwards.
        """
        self._tried.update(m.digest for m in messages)
        for attempt in range(_ATTEMPTS):
            left = set(self.connection.existing([m.uid for m in messages], "UNDELETED"))
            messages = [m for m in messages if m.uid in left]
            if not messages:
                return
            try:
                self._move(folder, messages, keyword)
                return
            except ImapRefusalError as error:
                self.finish()
                # Another client has moved some of them meanwhile.
                if "EXPUNGEISSUED" not in str(error) or attempt == _ATTEMPTS - 1:
                    raise
                select_again(self.connection, folder, readonly=False)

    def _move(self, folder: Folder, messages: list[KnownMessage], keyword: str) -> None:
        junk = self.connection.status(self.junk)
        self._is_alone &= junk.uidnext == self._expected
        folders = folder.name, folder.uidvalidity, self.junk, junk.uidvalidity, junk.uidnext
        known = {m.uid: (m.digest, m.is_seen) for m in messages}
        pending = self.memory.pending = PendingMove(*folders, self._is_copy, known)
        self.memory.save()
        uids = [m.uid for m in messages]
        if self._is_copy:
            self.connection.copy(uids, self.junk, keyword)
            self._remove(uids)
        else:
            uids = self.connection.move(uids, self.junk, keyword)
        self._expected = junk.uidnext + len(uids)
        self._done(pending, uids)

    def remove_doubles(self) -> None:
        """Remove copies that another machine made at the same moment; opens the junk folder.

        Only messages that came since the run began are removed, and only if the same bytes stay.
        """
        if self._start is None or not self._tried or self.connection.moves_once:
            return
        now_there = self.connection.status(self.junk)
        if self._is_alone and now_there.uidnext == self._expected:
            return
        junk = self.connection.select(self.junk, readonly=False)
        if junk.uidvalidity != self._start.uidvalidity:
            return
        copies: dict[str, list[int]] = {}  # digest -> UIDs
        uids = self.connection.search(("UNDELETED",), self._start.uidnext)
        for message in self.connection.beginnings(uids):
            copies.setdefault(identity_of(message.content), []).append(message.uid)
        doubles: list[int] = []
        for digest, times in self._tried.items():
            uids = sorted(copies.get(digest, ()))
            if len(uids) > times:
                messages = self.connection.messages(uids)
                contents = {m.uid: blake2b(m.content).digest() for m in messages}
                stay = {contents[uid] for uid in uids[:times] if uid in contents}
                doubles += [uid for uid in uids[times:] if contents.get(uid) in stay]
        if doubles:
            self._remove(doubles)

    def finish(self) -> None:
        """Complete a move that an earlier run began, if it was made in part.

        The folder of the move is open afterwards.
        """
        pending = self.memory.pending
        if pending is None:
            return
        names = {folder.name for folder in self.connection.folders()}
        copied: Counter[str] = Counter()  # digest -> copies in junk since the move was begun
        if pending.junk in names:
            junk = self.connection.select(pending.junk, readonly=True)
            is_same = junk.uidvalidity == pending.junk_uidvalidity
            uids = self.connection.search(("ALL",), pending.junk_uidnext if is_same else 1)
            copied.update(identity_of(m.content) for m in self.connection.beginnings(uids))
        left: set[int] = set()
        if pending.folder in names:
            folder = self.connection.select(pending.folder, readonly=False)
            if folder.uidvalidity == pending.uidvalidity:
                left = set(self.connection.existing(pending.messages))
        # Messages that are gone come first: of two equal ones, the one that is gone is in junk.
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
        """Note that nbspam moved messages: to the junk folder, or else for good."""
        place = time.time(), pending.junk_uidvalidity, pending.junk_uidnext
        for uid in uids:
            digest, was_seen = pending.messages[uid]
            if self._is_of_spam and pending.junk == self.junk:
                self.memory.set_junked(digest, JunkMark(*place, was_seen, is_own=True))
            else:
                self.memory.kept[digest] = None  # and stays where the user moves it
        self.memory.pending = None
