"""What an account's folders teach: the junk folder spam, the folders of kept mail ham.

What nbspam itself has moved to the junk folder teaches nothing until the user has seen it there:
a filter that believes its own verdicts makes more of its errors.  What somebody else put there
teaches at once.  Of kept mail only what was read teaches, and what the user has moved back from
the junk folder.  Each message is fetched once per folder; what it was learned as before is in the
model's ledger.
"""

from collections.abc import Iterator, Sequence

from nbspam.errors import counted
from nbspam.imap.address import FolderAddress
from nbspam.imap.connection import Connection, SelectedFolder
from nbspam.mailbox.filtering import JUNK_KEYWORD
from nbspam.mailbox.memory import JunkMark, LearnedFolder, Memory, identity_of, now
from nbspam.reading.mail import READ
from nbspam.reading.message import BYTES_LIMIT, RawMessage

# Kept mail that somebody has marked as spam is not ham: nbspam without moving it, or Thunderbird.
_NOT_MARKED = ("UNKEYWORD", JUNK_KEYWORD, "UNKEYWORD", "Junk")


class Lessons:
    """The messages of one account that are to be learned now."""

    def __init__(
        self,
        connection: Connection,
        memory: Memory,
        junk: str,
        ham: Sequence[str],
        labels: tuple[str, str],
        trust_after: float | None = None,
    ) -> None:
        """junk: the folder of spam.  ham: the folders of kept mail.

        labels: the names of the classes, spam and ham.
        trust_after: seconds after which a message that nbspam moved, and nobody moved back, counts
        as seen; None: never.
        """
        self._connection, self._memory = connection, memory
        self._junk, self._ham, self._labels = junk, ham, labels
        self._trust_after = trust_after
        self._learned: dict[str, LearnedFolder] = {}
        self._new_in_junk: set[str] = set()

    @property
    def waiting(self) -> int:
        """How many messages in the junk folder the user has not confirmed."""
        return sum(len(folder.waiting) for folder in self._learned.values())

    def messages(self) -> Iterator[RawMessage]:
        """Yield the messages with their classes; nothing of it is remembered before `commit`."""
        yield from self._spam()
        for name in self._ham:
            yield from self._kept(name)

    def commit(self) -> None:
        """Remember that all messages were learned."""
        for name, learned in self._learned.items():
            self._memory.set_learned(name, learned)
        self._memory.save()

    def _spam(self) -> Iterator[RawMessage]:
        folder = self._connection.select(self._junk, readonly=True)
        known = self._memory.learned_folder(folder)
        there = set(self._connection.search(folder, ("UNDELETED",)))
        seen = set(self._connection.search(folder, READ))
        new = sorted(there - known.uids - known.waiting.keys())
        digests = {uid: digest for uid, digest in known.waiting.items() if uid in there}
        taught: list[int] = []
        for message in self._connection.beginnings(new):
            digest = identity_of(message.content)
            mark = self._memory.junked.get(digest)
            if mark is not None and mark.is_own:
                digests[message.uid] = digest
            else:
                taught.append(message.uid)
                self._new_in_junk.add(digest)
                place = folder.uidvalidity, message.uid
                self._memory.set_junked(digest, JunkMark(now(), *place, False, is_own=False))
        trusted = {uid for uid, digest in digests.items() if self._is_trusted(digest, uid in seen)}
        waiting = {uid: digest for uid, digest in digests.items() if uid not in trusted}
        self._learned[folder.name] = LearnedFolder(
            folder.uidvalidity, (known.uids & there) | trusted | set(taught), waiting
        )
        self._new_in_junk |= {digests[uid] for uid in trusted}
        yield from self._labelled(folder, sorted(trusted.union(taught)), self._labels[0])

    def _is_trusted(self, digest: str, is_seen: bool) -> bool:
        """Return whether the user has confirmed a message that nbspam moved."""
        mark = self._memory.junked.get(digest)
        if mark is None:  # too long ago to be remembered
            return is_seen
        if self._trust_after is not None and now() - mark.at >= self._trust_after:
            return True
        return is_seen and not mark.was_seen

    def _kept(self, name: str) -> Iterator[RawMessage]:
        folder = self._connection.select(name, readonly=True)
        known = self._memory.learned_folder(folder)
        there = set(self._connection.search(folder, (*READ, *_NOT_MARKED)))
        rescued = self._connection.existing(self._memory.rescued(folder.name), "UNDELETED")
        new = sorted(there.union(rescued) - known.uids)
        learned = LearnedFolder(folder.uidvalidity, set(known.uids), {})
        self._learned[folder.name] = learned
        yield from self._labelled(folder, new, self._labels[1], learned.uids)

    def _labelled(
        self, folder: SelectedFolder, uids: Sequence[int], label: str, taken: set[int] | None = None
    ) -> Iterator[RawMessage]:
        """Yield messages of the open folder; those of kept mail are entered in `taken`.

        A message that is in the junk folder too, since the user is just moving it, is left for the
        next run.
        """
        account = self._connection.account
        address = FolderAddress(account.user, account.host, account.port, folder.name)
        for message in self._connection.messages(uids, BYTES_LIMIT):
            if taken is not None:
                if identity_of(message.beginning) in self._new_in_junk:
                    continue
                taken.add(message.uid)
            yield RawMessage(address.message(message.uid), label, message.content)


def waiting_sentence(n: int) -> str:
    """Return what waits in the junk folder for the user."""
    verb = "teaches" if n == 1 else "teach"
    return f"{counted(n, 'message')} that nbspam moved {verb} nothing until seen in the junk folder"
