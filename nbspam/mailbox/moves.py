"""Move messages to the junk folder or another folder; a crash neither loses nor doubles a message.

Each move is written to the account's state before it is made.  After a crash, `finish` determines
whether it was made, so that no message is copied twice.

With MOVE the server moves in one step.  Without it, a message is copied, marked \\Deleted, and
expunged by its UID (UIDPLUS); without UIDPLUS it stays marked.  A plain EXPUNGE is never sent,
because it would remove messages that others have marked.

If two machines move the same message at the same moment, it may be copied twice, even with MOVE:
Dovecot 2.3 did so in 2 of 5 runs with a batch of 50.  No mail is lost, and both copies are spam.
"""

import time
from collections import Counter
from typing import NamedTuple

from nbspam.errors import AccountError
from nbspam.mailbox.connection import DELETED, Connection, Folder, select_again
from nbspam.mailbox.maildir import MaildirFolders
from nbspam.mailbox.memory import JunkMark, Memory, PendingMove, identity_of

Mailbox = Connection | MaildirFolders


class KnownMessage(NamedTuple):
    """A message of a folder, with its digest."""

    uid: int
    digest: str
    is_seen: bool
    heading: str = ""  # sender and Subject


class Mover:
    """Moves messages of an account to its junk folder, or to the folder of another class."""

    def __init__(
        self, connection: Mailbox, memory: Memory, junk: str, for_spam: bool = True
    ) -> None:
        """junk: the target folder.  for_spam: False for the folder of another class."""
        self.connection, self.memory, self.junk = connection, memory, junk
        self._for_spam = for_spam
        self._is_copy = not connection.supports("MOVE")
        # Without UIDPLUS the original of a copied message stays in its folder, marked \Deleted.
        self.leaves_deleted = self._is_copy and not connection.supports("UIDPLUS")

    def move(self, folder: Folder, messages: list[KnownMessage], keyword: str = "") -> None:
        """Move messages of the open folder.

        If a command fails, it is tried on halves of the messages, so only a message that cannot be
        moved is left out.  keyword: a keyword to set on the messages.
        Saves the state before each move; the caller saves it afterwards.
        """
        parts = [messages]
        while parts:
            part = parts.pop()
            left = set(self.connection.existing([m.uid for m in part], "UNDELETED"))
            part = [message for message in part if message.uid in left]
            try:
                if part:
                    self._move(folder, part, keyword)
                    self.connection.works("move")
            except AccountError as error:
                self.connection.recover(error)
                self.finish()
                select_again(self.connection, folder, readonly=False)
                left = set(self.connection.existing(left, "UNDELETED"))
                part = [message for message in part if message.uid in left]
                if len(part) > 1:
                    parts += [part[len(part) // 2 :], part[: len(part) // 2]]
                elif part:
                    message = part[0]
                    self.connection.leave_out_message(message.uid, error, "move", message.heading)

    def _move(self, folder: Folder, messages: list[KnownMessage], keyword: str) -> None:
        junk = self.connection.status(self.junk)
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
        self._done(pending, uids)

    def finish(self) -> None:
        """Complete and record a pending move, which a crash or an error may have interrupted.

        The folder from which the messages were moved is open afterwards, if it still exists and a
        move was pending.
        """
        pending = self.memory.pending
        if pending is None:
            return
        names = {folder.name for folder in self.connection.folders()}
        copied: Counter[str] = Counter()  # digest -> copies in junk since the move started
        if pending.junk in names:
            junk = self.connection.select(pending.junk, readonly=True)
            is_same = junk.uidvalidity == pending.junk_uidvalidity
            uids = self.connection.search(("ALL",), pending.junk_uidnext if is_same else 1)
            copied.update(identity_of(m.content) for m in self.connection.prefixes(uids))
        left: set[int] = set()
        if pending.folder in names:
            folder = self.connection.select(pending.folder, readonly=False)
            if folder.uidvalidity == pending.uidvalidity:
                left = set(self.connection.existing(pending.messages))
        # Messages that are missing from the folder come first: of two equal messages, the missing
        # one was moved.
        moved = []
        for uid in sorted(pending.messages, key=lambda uid: (uid in left, uid)):
            digest = pending.messages[uid][0]
            if copied[digest] > 0 and (pending.is_copy or uid not in left):
                copied[digest] -= 1
                moved.append(uid)
        if in_both_folders := [uid for uid in moved if uid in left]:
            self._remove(in_both_folders)
        self._done(pending, moved)
        self.memory.save()

    def _remove(self, uids: list[int]) -> None:
        self.connection.add_flag(uids, DELETED)
        if not self.leaves_deleted:
            self.connection.expunge(uids)

    def _done(self, pending: PendingMove, uids: list[int]) -> None:
        """Record that nbspam moved messages, to the junk folder or another folder."""
        place = time.time(), pending.junk_uidvalidity, pending.junk_uidnext
        for uid in uids:
            digest, was_seen = pending.messages[uid]
            if self._for_spam and pending.junk == self.junk:
                self.memory.set_junked(digest, JunkMark(*place, was_seen, moved_by_nbspam=True))
            else:
                # if the user moves the message back, later runs leave it there
                self.memory.moved_back[digest] = None
        self.memory.pending = None
