"""Filtering an account's mail, learning from it, and waiting for new mail.

New mail is classified: UIDs above the last one classified.  At the first run, and after the server
has given new UIDs (another UIDVALIDITY), the unread mail is classified, except messages that are
known from before.  A message that has left the junk folder was moved out by the user, and stays;
so does one that was taught as ham.

The junk folder is learned as spam, and the folders of kept mail as ham.  Mail that nbspam itself
has moved to the junk folder is not learned until the user has seen it there: a filter that learns
its own verdicts repeats its errors.  Mail that others put there is learned at once.  Of kept mail,
only read messages are learned, and those that the user has moved back from the junk folder.  A
message that was only read is presumed to be ham: it is not learned if it may be spam.  A keyword of
the user's for spam or ham overrules all this; one that nbspam has set is not the user's.  Each
message is fetched once per folder and keyword; the model's ledger has the class as which it was
learned.
"""

import os
import select
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import NamedTuple

from nbspam.errors import AccountError, LockedError, Remedy, UnavailableError
from nbspam.mailbox.account import Account
from nbspam.mailbox.connection import JUNK_KEYWORDS, READ, Connection, resolve_folder
from nbspam.mailbox.maildir import OLD_JUNK, LocalFolders, Maildir
from nbspam.mailbox.memory import JunkMark, LearnedFolder, Memory, identity_of
from nbspam.mailbox.moves import KnownMessage, Mailbox, Mover, select_again
from nbspam.names import TAUGHT_AS_HAM, UNSURE
from nbspam.reading.message import RawMessage
from nbspam.scoring.verdict import Verdict

JUNK_KEYWORD = JUNK_KEYWORDS[0]
# Verdicts after which spam is moved and the state is saved: a fiftieth of the messages, within
# these bounds, since the whole state is written.  A killed run classifies so many messages again.
_TOGETHER, _MOST_TOGETHER = 100, 500
_UNUSUAL = frozenset(("\\junk", OLD_JUNK, "\\trash", "\\drafts"))  # RFC 6154
_FIRST_PAUSE, _LONGEST_PAUSE = 5.0, 900.0  # seconds before the next attempt; each is twice as long

Judge = Callable[[Iterable[RawMessage], int], Iterator[Verdict]]  # messages, how many -> verdicts


def open_mailbox(
    account: Account | Maildir, is_dry_run: bool = False
) -> AbstractContextManager[Mailbox]:
    """Return the folders of an account or Maildir; a context manager."""
    if isinstance(account, Maildir):
        return nullcontext(LocalFolders(account, remembers=not is_dry_run))
    return Connection(account)


def expand_patterns(connection: Mailbox, names: Iterable[str], junk: str) -> list[str]:
    """Return the folders that a user names; a pattern (`Lists/*`) stands for matching folders.

    No pattern matches the folders for spam, deleted mail and drafts.
    Raises AccountError if all names are patterns that no folder matches.
    """
    patterns = list(dict.fromkeys(names))
    folders: dict[str, None] = {}
    for pattern in patterns:
        if not set(pattern) & set("*?["):
            folders[resolve_folder(pattern, connection.folders())] = None
            continue
        for folder in connection.folders():
            is_usual = folder.is_selectable and not folder.flags & _UNUSUAL and folder.name != junk
            spellings = {folder.name, folder.name.replace(folder.separator or "/", "/")}
            if is_usual and any(fnmatchcase(spelling, pattern) for spelling in spellings):
                folders[folder.name] = None
    if patterns and not folders:
        existing = ", ".join(folder.name for folder in connection.folders())
        raise AccountError(
            f"{connection.account.name}: no folder is like {', '.join(patterns)}; name one of"
            f" {existing}"
        )
    return list(folders)


# Filtering


class SortedMessage(NamedTuple):
    """A filtered message."""

    folder: str
    uid: int  # in that folder
    verdict: Verdict
    action: str  # "moved", "marked", "deleted" (copied and marked \Deleted), "kept"


@dataclass
class MailFilter:
    """Classifies and sorts the mail of one account."""

    mover: Mover
    judge: Judge
    is_over: Callable[[], bool]  # returns whether to stop early
    folders: Sequence[str]
    positive: str  # the class that is moved
    is_dry_run: bool  # change nothing
    is_marked: bool  # set a keyword in place of a move
    unsure_keyword: str | None
    judges_all: bool  # old mail too
    say: Callable[[str], None]  # called with each note
    class_movers: Mapping[str, Mover] = field(default_factory=dict)  # of other classes
    # Folders whose messages cannot get the keyword that their account asks for.
    without_keyword: list[str] = field(default_factory=list)

    def run(self) -> Iterator[SortedMessage]:
        """Classify and sort the new mail; yields the actions.  Raises AccountError."""
        self._connection, self._memory = self.mover.connection, self.mover.memory
        moves = not (self.is_dry_run or self.is_marked)
        if not self.is_dry_run:
            self.mover.finish()
        movers = (self.mover, *self.class_movers.values()) if moves else ()
        for mover in movers:
            mover.begin()
        for name in self.folders:
            yield from self._filtered(name)
            if self.is_over():
                break
        for mover in movers:
            mover.remove_doubles()

    def _filtered(self, name: str) -> Iterator[SortedMessage]:
        connection = self._connection
        folder = connection.select(name, self.is_dry_run)
        keywords = [self.unsure_keyword, JUNK_KEYWORD if self.is_marked else None]
        lacking = [k for k in keywords if k and not {"\\*", k.lower()} & folder.keywords]
        if lacking and not self.is_dry_run:
            raise AccountError(
                f"{connection.account.name}: {folder.name}: does not store the keyword"
                f" {lacking[0]}",
                Remedy.LEAVE_OUT_KEYWORDS,
            )
        self._keyword = ""  # that is set on what is moved
        if connection.account.keywords and not (self.is_marked or self.is_dry_run):
            self._keyword = connection.junk_keyword(folder, self.mover.junk)
            if not self._keyword:
                self.without_keyword.append(folder.name)
        before = self._memory.folders.get(folder.name)
        self._folder, self._start = folder, self._memory.judged_folder(folder)
        if before and before.uidvalidity == folder.uidvalidity and before != self._start:
            self.say(
                f"{connection.account.name}: {folder.name}: its messages have lower numbers than"
                " before, as after a restore; the unread ones are classified again"
            )
        self._reached = self._start.uid
        # Digests of messages classified, and moved back by the user, before this run.
        self._judged, self._kept = frozenset(self._memory.judged), frozenset(self._memory.kept)
        self._waiting: dict[str, KnownMessage] = {}  # by source, until the verdict comes
        self._deferred: dict[int, str] = {}  # UID -> digest of messages known from junk
        self._is_settled = False  # whether the deferred messages are being classified
        yield from self._sorted(self._new())
        if self._deferred and not self.is_over():
            others = self._without_rescued()
            select_again(connection, folder, self.is_dry_run)
            self._is_settled = True
            yield from self._sorted(others)
        if not self.is_over():
            self._reached = max(self._start.uid, folder.uidnext - 1)
            self._save([])

    def _new(self) -> list[int]:
        """Return the UIDs of the messages to classify, in ascending order."""
        folder, start = self._folder, self._start
        search, alive = self._connection.search, "UNDELETED"
        if self.judges_all:
            uids = search((alive,))
        else:
            uids = search((alive,), max(start.uid + 1, start.unread_until))
            if start.uid + 1 < start.unread_until:
                old = search((alive, "UNSEEN"), start.uid + 1)
                uids += [uid for uid in old if uid < start.unread_until]
        return sorted(uid for uid in uids if uid < folder.uidnext)

    def _sorted(self, uids: Sequence[int]) -> Iterator[SortedMessage]:
        """Classify messages, and sort them in batches."""
        batch: list[tuple[KnownMessage, Verdict]] = []
        together = min(_MOST_TOGETHER, max(_TOGETHER, len(uids) // 50))
        for verdict in self.judge(self._raws(uids), len(uids)):
            batch.append((self._waiting.pop(verdict.source), verdict))
            if len(batch) == together:
                yield from self._applied(batch)
                batch = []
                if self.is_over():
                    return
        if batch:
            yield from self._applied(batch)

    def _raws(self, uids: Sequence[int]) -> Iterator[RawMessage]:
        """Yield the messages to classify.

        Left out are old messages that were classified under another UID, and those that the user
        has moved back.
        """
        for message in self._connection.messages(uids):
            digest = identity_of(message.content)
            is_old = message.uid < self._start.unread_until and not self.judges_all
            is_known = is_old and not self._is_settled and digest in self._judged
            if not self._is_settled and digest in self._memory.junked:
                self._deferred[message.uid] = digest
            elif not (is_known or digest in self._kept):
                source = self._connection.source_of(self._folder.name, message.uid)
                self._waiting[source] = KnownMessage(message.uid, digest, message.is_seen)
                yield RawMessage(source, None, message.content)

    def _without_rescued(self) -> list[int]:
        """Return the deferred messages to classify; the user has moved the others back.

        If the message in the junk folder is still there, the deferred one is another equal one.
        """
        junk = self._connection.select(self.mover.junk, readonly=True)
        marks = [self._memory.junked[digest] for digest in self._deferred.values()]
        first = min(m.uid if m.uidvalidity == junk.uidvalidity else 1 for m in marks)
        uids = self._connection.search(("UNDELETED",), first)
        present = {identity_of(m.content) for m in self._connection.beginnings(uids)}
        others = []
        for uid, digest in self._deferred.items():
            if digest in present:
                others.append(uid)
            elif not self.is_dry_run:
                self._memory.add_rescued(self._folder.name, uid, digest)
        return others

    def _applied(self, batch: list[tuple[KnownMessage, Verdict]]) -> Iterator[SortedMessage]:
        """Move or mark messages by their verdicts, and save the state."""
        positive = [(m, v) for m, v in batch if v.verdict == self.positive]
        spam = [message for message, verdict in positive if verdict.reason != TAUGHT_AS_HAM]
        unsure = [message.uid for message, verdict in batch if verdict.verdict == UNSURE]
        others = {name: [m for m, v in batch if v.verdict == name] for name in self.class_movers}
        if not self.is_dry_run:
            if unsure and self.unsure_keyword:
                self._connection.add_flag(unsure, self.unsure_keyword)
            if spam and (self.is_marked or self._keyword):
                self._memory.marked |= dict.fromkeys(message.digest for message in spam)
                self._memory.save()  # before: the keywords of nbspam are not learned
            if spam and self.is_marked:
                self._connection.add_flag([message.uid for message in spam], JUNK_KEYWORD)
            elif spam:
                self.mover.move(self._folder, spam, self._keyword)
            for name, messages in others.items():
                if messages:
                    self.class_movers[name].move(self._folder, messages)
            if not self._is_settled:
                # If this run ends here, the next one begins with the deferred messages.
                last = batch[-1][0].uid
                last = min(last, min(self._deferred, default=last + 1) - 1)
                self._reached = max(self._reached, last)
            self._save([message.digest for message, _ in batch])
        moved = "deleted" if self.mover.leaves_deleted else "moved"
        actions = dict.fromkeys(unsure, "marked" if self.unsure_keyword else "kept")
        for message in spam:
            actions[message.uid] = "marked" if self.is_marked else moved
        actions |= {m.uid: moved for messages in others.values() for m in messages}
        for message, verdict in batch:
            action = actions.get(message.uid, "kept")
            yield SortedMessage(self._folder.name, message.uid, verdict, action)

    def _save(self, digests: list[str]) -> None:
        if not self.is_dry_run:
            self._memory.folders[self._folder.name] = self._start._replace(uid=self._reached)
            for digest in digests:
                self._memory.judged.pop(digest, None)
                self._memory.judged[digest] = None
            self._memory.save()


# Learning


class Lessons:
    """The messages of one account to learn now."""

    def __init__(
        self,
        connection: Mailbox,
        memory: Memory,
        junk: str,
        labels: tuple[str, str],
        trust_after: float | None = None,
    ) -> None:
        """junk: the folder of spam.  labels: the names of the classes, spam and ham.

        trust_after: seconds after which a message that nbspam moved, and that was not moved back,
        counts as seen; None: never.
        """
        self._connection, self._memory = connection, memory
        self._junk, self._labels, self._trust_after = junk, labels, trust_after
        self._learned: dict[str, LearnedFolder] = {}
        self._new_in_junk: set[str] = set()
        self._read: dict[str, tuple[str, int, str]] = {}  # source -> folder, UID, digest

    @property
    def waiting(self) -> int:
        """The number of messages in the junk folder that the user has not confirmed."""
        return len(self._learned[self._junk].waiting)

    def is_presumed(self, source: str, is_spam: bool) -> bool:
        """Return whether a message is only presumed to be ham, because it was read.

        is_spam: whether it is above the spam cut-off.  If nbspam did not filter it, another filter
        may have, and the user may have moved it back.
        """
        if source not in self._read:
            return False
        return not is_spam or self._read[source][2] in self._memory.judged

    def messages(self) -> Iterator[RawMessage]:
        """Yield the messages with their classes; `commit` notes that they were learned."""
        yield from self._spam()
        for name in expand_patterns(self._connection, self._connection.account.ham, self._junk):
            yield from self._kept(name)

    def commit(self, withheld: Iterable[str]) -> None:
        """Note that all messages were learned, except those withheld for the user's keyword."""
        for source in withheld:
            name, uid, digest = self._read[source]
            self._learned[name].uids.discard(uid)
            self._learned[name].waiting[uid] = digest
        for name, learned in self._learned.items():
            self._memory.learned[name] = learned
            self._memory.rescued.pop(name, None)
        self._memory.save()

    def _spam(self) -> Iterator[RawMessage]:
        connection, memory = self._connection, self._memory
        folder = connection.select(self._junk, readonly=True)
        known = memory.learned_folder(folder)
        present = set(connection.search(("UNDELETED",)))
        seen = set(connection.search(READ))
        spam, ham = connection.marked()
        digests = {uid: digest for uid, digest in known.waiting.items() if uid in present}
        taught: set[int] = set()
        for message in connection.beginnings(sorted(present - known.uids - known.waiting.keys())):
            digest = identity_of(message.content)
            mark = memory.junked.get(digest)
            if mark is not None and mark.is_own:
                digests[message.uid] = digest
            else:
                taught.add(message.uid)
                self._new_in_junk.add(digest)
                place = time.time(), folder.uidvalidity, message.uid
                memory.set_junked(digest, JunkMark(*place, was_seen=False, is_own=False))
        trusted = {
            uid
            for uid, digest in digests.items()
            if uid in ham
            or (uid in spam and digest not in memory.marked)
            or self._is_trusted(digest, uid in seen)
        }
        waiting = {uid: digest for uid, digest in digests.items() if uid not in trusted}
        uids = (known.uids & present) | trusted | taught
        self._learned[folder.name] = LearnedFolder(folder.uidvalidity, uids, waiting, ham & uids)
        self._new_in_junk |= {digests[uid] for uid in trusted}
        again = known.uids & present & (ham ^ known.against)
        for message in connection.messages(sorted(trusted | taught | again)):
            source = connection.source_of(folder.name, message.uid)
            yield RawMessage(source, self._labels[message.uid in ham], message.content)

    def _is_trusted(self, digest: str, is_seen: bool) -> bool:
        """Return whether the user has confirmed a message that nbspam moved."""
        mark = self._memory.junked.get(digest)
        if mark is None:  # older than the stored digests
            return is_seen
        if self._trust_after is not None and time.time() - mark.at >= self._trust_after:
            return True
        return is_seen and not mark.was_seen

    def _kept(self, name: str) -> Iterator[RawMessage]:
        connection = self._connection
        folder = connection.select(name, readonly=True)
        known = self._memory.learned_folder(folder)
        spam, ham = connection.marked()
        others = {*self._memory.rescued.get(folder.name, []), *(known.against - spam)}
        there = {*connection.search(READ), *spam, *ham, *connection.existing(others, "UNDELETED")}
        waiting = {uid: known.waiting[uid] for uid in known.waiting.keys() & there}
        against = known.against & spam
        learned = known._replace(uids=known.uids.copy(), waiting=waiting, against=against)
        self._learned[folder.name] = learned
        by_hand = {*spam, *ham, *others}
        same = (known.uids - (spam ^ known.against)) | (waiting.keys() - by_hand)
        for message in connection.messages(sorted(there - same)):
            # A message also in the junk folder is being moved by the user: left to the next run.
            if (digest := identity_of(message.content)) in self._new_in_junk:
                continue
            is_spam, memory = message.uid in spam, self._memory
            learned.uids.add(message.uid)
            waiting.pop(message.uid, None)
            if is_spam:
                learned.against.add(message.uid)
            was_junked = digest in memory.junked or digest in memory.kept
            if is_spam and digest in memory.marked and was_junked:
                is_spam = False  # nbspam marked and moved it, and the user has moved it back
            if not (is_spam and digest in memory.marked):
                source = connection.source_of(folder.name, message.uid)
                if message.uid not in by_hand:
                    self._read[source] = folder.name, message.uid, digest
                yield RawMessage(source, self._labels[not is_spam], message.content)


# Waiting


class Stop:
    """A request to stop after the current message, by SIGTERM or SIGINT; also wakes a wait."""

    def __enter__(self) -> "Stop":
        self._read, self._write = os.pipe()
        self.is_asked = False
        signals = signal.SIGTERM, signal.SIGINT
        self._before = {number: signal.signal(number, self.ask) for number in signals}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self._read)
        os.close(self._write)

    def ask(self, *_: object) -> None:
        """Ask to end."""
        self.is_asked = True
        os.write(self._write, b".")

    def wait(self, seconds: float, descriptor: int | None = None) -> bool:
        """Wait for the request, until a descriptor can be read, or for so many seconds.

        Returns False if the time is over.
        """
        descriptors = [self._read] if descriptor is None else [self._read, descriptor]
        return bool(select.select(descriptors, [], [], seconds)[0])


def watch(
    account: Account | Maildir,
    sort: Callable[[Mailbox], None],
    stop: Stop,
    interval: float,
    say: Callable[[str], None],
    first_pause: float = _FIRST_PAUSE,
) -> None:
    """Sort the mail of an account whenever some comes to its first folder, until `stop` is asked.

    sort: sorts the new mail once.
    interval: seconds to wait if the server has no IDLE.
    say: called with a sentence when the connection is lost, and when it is back.
    Raises AccountError if another attempt would not help, such as for a wrong password.
    """
    pause, folder = first_pause, account.folders[0]
    while not stop.is_asked:
        try:
            with open_mailbox(account) as connection:
                while not stop.is_asked:
                    before = connection.select(folder, readonly=True).uidnext
                    try:
                        sort(connection)
                    except LockedError as error:  # another run sorts; the next time is enough
                        say(str(error))
                    if pause != first_pause:
                        say(f"{account.server}: reconnected")
                    pause = first_pause
                    # IDLE does not announce mail that came before it begins.
                    if connection.select(folder, readonly=True).uidnext == before:
                        connection.wait(stop.wait, interval)
        except UnavailableError as error:
            if stop.is_asked:
                return
            problem = error.problem.rpartition(";")[0] or error.problem
            say(f"{problem}; next attempt in {pause:.0f} s")
            stop.wait(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
