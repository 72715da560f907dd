"""Judging the mail that has come to an account's folders, and moving what is spam.

Whose UID is above the last one judged has come since.  At the first run, and after the server has
given new UIDs (another UIDVALIDITY), there is no such mark: then the unread mail is judged, but for
what is known to have been judged before.  A message that was in the junk folder and is not there
any more was moved out by the user, and stays; so does one that was taught as ham (`taught.py`).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from nbspam.errors import AccountError, Remedy
from nbspam.imap.address import FolderAddress
from nbspam.imap.connection import Connection, FetchedMessage, SelectedFolder
from nbspam.labels import UNSURE
from nbspam.mailbox.memory import JudgedFolder, Memory, identity_of
from nbspam.mailbox.moves import KnownMessage, Mover
from nbspam.mailbox.taught import TAUGHT_AS_HAM
from nbspam.reading.message import BYTES_LIMIT, RawMessage
from nbspam.scoring.verdict import Verdict

JUNK_KEYWORD = "$Junk"  # registered with IANA, as mail programs know it
# Verdicts after which spam is moved and what was done is saved: a run that is killed judges so
# many again.
_TOGETHER = 100

Judge = Callable[[Iterable[RawMessage], int], Iterator[Verdict]]  # messages, how many -> verdicts


class FilterPlan(NamedTuple):
    """What is to be done with judged mail."""

    folders: tuple[str, ...]
    junk: str
    positive: str  # the class that is moved
    is_dry_run: bool = False  # say what would be done
    is_marked: bool = False  # set a keyword and move nothing
    unsure_keyword: str | None = None
    judges_all: bool = False  # old mail too

    def takes(self, judged: Verdict) -> bool:
        """Return whether a message is to be moved, or marked, as spam."""
        return judged.verdict == self.positive and judged.reason != TAUGHT_AS_HAM


class SortedMessage(NamedTuple):
    """What was done with a message."""

    folder: str
    uid: int  # in that folder
    verdict: Verdict
    action: str  # "moved", "marked", "deleted" (copied and marked \Deleted), "kept"


def _never() -> bool:
    return False


class MailFilter:
    """Judges and sorts the mail of one account, over one connection."""

    def __init__(
        self,
        connection: Connection,
        memory: Memory,
        judge: Judge,
        plan: FilterPlan,
        is_over: Callable[[], bool] = _never,
    ) -> None:
        """judge: returns the verdicts on messages.  is_over: asked whether to stop early."""
        self._connection, self._memory, self._judge = connection, memory, judge
        self._plan, self._is_over = plan, is_over
        self._mover = Mover(connection, memory, plan.junk)

    @property
    def leaves_deleted(self) -> bool:
        """Whether spam stays where it was too, marked \\Deleted."""
        return self._mover.leaves_deleted

    def run(self) -> Iterator[SortedMessage]:
        """Judge and sort what has come; yields what was done.  Raises AccountError."""
        moves = not (self._plan.is_dry_run or self._plan.is_marked)
        if not self._plan.is_dry_run:
            self._mover.finish()
        if moves:
            self._mover.begin()
        for name in self._plan.folders:
            yield from self._filtered(name)
            if self._is_over():
                break
        if moves:
            self._mover.remove_doubles()

    def _filtered(self, name: str) -> Iterator[SortedMessage]:
        folder = self._connection.select(name, self._plan.is_dry_run)
        self._check_keywords(folder)
        start = self._memory.judged_folder(folder)
        uids = self._new(folder, start)
        run = _FolderRun(folder, start, self._memory, self._plan.judges_all)
        yield from self._sorted(run, uids)
        if run.deferred and not self._is_over():
            others = self._without_rescued(run)
            self._connection.select_again(folder, self._plan.is_dry_run)
            run.settle()
            yield from self._sorted(run, others)
        if not self._is_over():
            last = max(start.uid, folder.uidnext - 1)
            self._save(folder, start._replace(uid=last), [])

    def _new(self, folder: SelectedFolder, start: JudgedFolder) -> list[int]:
        """Return the UIDs of what is to be judged, in ascending order."""
        search, alive = self._connection.search, "UNDELETED"
        if self._plan.judges_all:
            found = search(folder, (alive,))
        else:
            found = search(folder, (alive,), max(start.uid + 1, start.unread_until))
            if start.uid + 1 < start.unread_until:
                old = search(folder, (alive, "UNSEEN"), start.uid + 1)
                found += [uid for uid in old if uid < start.unread_until]
        return sorted(uid for uid in found if uid < folder.uidnext)

    def _sorted(self, run: "_FolderRun", uids: Sequence[int]) -> Iterator[SortedMessage]:
        """Judge messages, and sort them some at a time."""
        address = self._address(run.folder)
        batch: list[tuple[KnownMessage, Verdict]] = []
        raws = self._raws(run, uids, address)
        for verdict in self._judge(raws, len(uids)):
            batch.append((run.waiting.pop(verdict.source), verdict))
            if len(batch) == _TOGETHER:
                yield from self._applied(run, batch)
                batch = []
                if self._is_over():
                    return
        yield from self._applied(run, batch)

    def _raws(
        self, run: "_FolderRun", uids: Sequence[int], address: FolderAddress
    ) -> Iterator[RawMessage]:
        """Yield the messages that are to be judged; the others are taken down in `run`."""
        for message in self._connection.messages(uids, BYTES_LIMIT):
            digest = identity_of(message.beginning)
            if not run.is_settled and digest in self._memory.junked:
                run.deferred[message.uid] = digest
            elif not run.knows(message, digest):
                raw = RawMessage(address.message(message.uid), None, message.content)
                run.waiting[raw.source] = KnownMessage(message.uid, digest, message.is_seen)
                yield raw

    def _without_rescued(self, run: "_FolderRun") -> list[int]:
        """Return the deferred messages that are to be judged; the user has moved the others back.

        One that was in the junk folder and still is was not moved: this is another, alike.
        """
        junk = self._connection.select(self._plan.junk, readonly=True)
        marks = [self._memory.junked[digest] for digest in run.deferred.values()]
        first = min(m.uid if m.uidvalidity == junk.uidvalidity else 1 for m in marks)
        there = self._connection.search(junk, ("UNDELETED",), first)
        present = {identity_of(m.content) for m in self._connection.beginnings(there)}
        others = []
        for uid, digest in run.deferred.items():
            if digest in present:
                others.append(uid)
            elif not self._plan.is_dry_run:
                self._memory.add_rescued(run.folder.name, uid, digest)
        return others

    def _applied(
        self, run: "_FolderRun", batch: list[tuple[KnownMessage, Verdict]]
    ) -> Iterator[SortedMessage]:
        """Do what the verdicts ask for, and remember it."""
        if not batch:
            return
        plan, connection = self._plan, self._connection
        spam = [message for message, judged in batch if plan.takes(judged)]
        unsure = [message.uid for message, judged in batch if judged.verdict == UNSURE]
        if not plan.is_dry_run:
            if unsure and plan.unsure_keyword:
                connection.add_flag(unsure, plan.unsure_keyword)
            if spam and plan.is_marked:
                connection.add_flag([message.uid for message in spam], JUNK_KEYWORD)
            elif spam:
                self._mover.move(run.folder, spam)
            reached = run.reached(batch[-1][0].uid)
            self._save(run.folder, reached, [message.digest for message, _ in batch])
        for message, judged in batch:
            yield SortedMessage(run.folder.name, message.uid, judged, self._action(judged))

    def _action(self, judged: Verdict) -> str:
        if judged.verdict == UNSURE and self._plan.unsure_keyword:
            return "marked"
        if not self._plan.takes(judged):
            return "kept"
        if self._plan.is_marked:
            return "marked"
        return "deleted" if self._mover.leaves_deleted else "moved"

    def _save(self, folder: SelectedFolder, reached: JudgedFolder, digests: list[str]) -> None:
        if not self._plan.is_dry_run:
            self._memory.set_judged(folder.name, reached, digests)
            self._memory.save()

    def _address(self, folder: SelectedFolder) -> FolderAddress:
        account = self._connection.account
        return FolderAddress(account.user, account.host, account.port, folder.name)

    def _check_keywords(self, folder: SelectedFolder) -> None:
        wanted = [self._plan.unsure_keyword] if self._plan.unsure_keyword else []
        wanted += [JUNK_KEYWORD] if self._plan.is_marked else []
        lacking = [keyword for keyword in wanted if not folder.keeps(keyword)]
        if lacking and not self._plan.is_dry_run:
            raise AccountError(
                f"{self._connection.account.name}: {folder.name}: the server keeps no keyword"
                f" {lacking[0]} there",
                Remedy.LEAVE_OUT_KEYWORDS,
            )


class _FolderRun:
    """One folder, while it is judged."""

    def __init__(
        self,
        folder: SelectedFolder,
        start: JudgedFolder,
        memory: Memory,
        judges_all: bool,
    ) -> None:
        """Take down from the memory what was judged before this run."""
        self.folder, self.start = folder, start
        self.waiting: dict[str, KnownMessage] = {}  # by source, until the verdict is there
        self.deferred: dict[int, str] = {}  # UID -> digest of what was in the junk folder before
        self.is_settled = False  # whether what was deferred is being judged
        self._judged, self._kept = frozenset(memory.judged), frozenset(memory.kept)
        self._judges_all, self._reached = judges_all, start.uid

    def knows(self, message: FetchedMessage, digest: str) -> bool:
        """Return whether a message is not to be judged.

        It is old mail that was judged under another UID, or the user has moved it back.
        """
        is_old = message.uid < self.start.unread_until and not self._judges_all
        return digest in self._kept or (is_old and not self.is_settled and digest in self._judged)

    def reached(self, uid: int) -> JudgedFolder:
        """Return how far the folder has been judged after this UID.

        What was deferred, and what comes after it, is for the next run if this one ends here.
        """
        if not self.is_settled:
            self._reached = max(self._reached, min(uid, min(self.deferred, default=uid + 1) - 1))
        return self.start._replace(uid=self._reached)

    def settle(self) -> None:
        """Judge from now on what was deferred."""
        self.is_settled = True
