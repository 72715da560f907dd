"""Filtering an account's mail, learning from it, and waiting for new mail.

Filtering classifies new mail: messages with UIDs above the last classified UID.  At the first run,
and after the server has renumbered its messages (another UIDVALIDITY), it classifies unread mail,
except messages that are known from before.  A message that the user moved out of the junk folder
stays, and so does a message that was taught as ham.

Learning takes the junk folder as spam and the folders of kept mail as ham:

- Mail that nbspam itself has moved to the junk folder is learned only after the user has seen it
  there, because a filter that learns its own verdicts repeats its errors.  Mail that others put
  there is learned at once.
- Kept mail is learned only if it was read, or moved back from the junk folder.  A message that was
  only read is presumed to be ham, and is not learned if it may be spam.
- A user's keyword for spam or ham overrules the folder, and a user's move out of the junk folder
  overrules the keyword.  nbspam's own keywords do not count.

Each message is fetched once per folder and keyword; the model's ledger records the class in which
the message was learned.
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
from nbspam.mailbox.connection import (
    JUNK_KEYWORDS,
    READ,
    Connection,
    FetchedMessage,
    Folder,
    select_again,
)
from nbspam.mailbox.maildir import Maildir, MaildirFolders
from nbspam.mailbox.memory import (
    JunkMark,
    LearnedFolder,
    Memory,
    identity_of,
    next_run,
    note_refused,
)
from nbspam.mailbox.moves import KnownMessage, Mailbox, Mover
from nbspam.names import TAUGHT_AS_HAM, UNSURE
from nbspam.reading.folder_names import DRAFTS, JUNK, OLD_JUNK, TRASH, resolve_folder
from nbspam.reading.header_fields import heading
from nbspam.reading.message import RawMessage
from nbspam.scoring.verdict import Verdict

JUNK_KEYWORD = JUNK_KEYWORDS[0]
# Spam is moved and the state is saved after each batch: a fiftieth of the messages, within these
# bounds.  A batch is not smaller, because the whole state is written each time; after a killed run,
# one batch is classified again.
_MIN_BATCH, _MAX_BATCH = 100, 500
_UNUSUAL = frozenset((JUNK, OLD_JUNK, TRASH, DRAFTS))
_FIRST_PAUSE, _LONGEST_PAUSE = 5.0, 900.0  # seconds between attempts; the pause doubles

# Arguments: messages, and their number.
Classify = Callable[[Iterable[RawMessage], int], Iterator[Verdict]]


def open_mailbox(
    account: Account | Maildir, is_dry_run: bool = False
) -> AbstractContextManager[Mailbox]:
    """Open an account or Maildir, as a context manager."""
    if isinstance(account, Maildir):
        return nullcontext(MaildirFolders(account, remember=not is_dry_run))
    return Connection(account)


def expand_patterns(connection: Mailbox, names: Iterable[str], junk: str) -> list[str]:
    """Return the folders that a user names; a pattern (`Lists/*`) names all matching folders.

    Patterns do not match the folders for spam, deleted mail and drafts.
    Raises AccountError if all names are patterns, and no folder matches.
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


def _left_junk_folder(digests: set[str], memory: Memory, folders: Mailbox, junk: str) -> set[str]:
    """Open the junk folder, and return the digests of known messages that have left it.

    If a message is still there, an equal message elsewhere is a different message.
    """
    if not digests:
        return digests
    folder = folders.select(junk, readonly=True)
    marks = [memory.junked[digest] for digest in digests]
    first = min(m.uid if m.uidvalidity == folder.uidvalidity else 1 for m in marks)
    uids = folders.search(("UNDELETED",), first)
    return digests - {identity_of(m.content) for m in folders.prefixes(uids)}


# Filtering


class SortedMessage(NamedTuple):
    """A filtered message."""

    folder: str
    uid: int  # in that folder
    heading: str  # sender and Subject
    verdict: Verdict
    action: str  # "moved", "marked", "deleted" (copied and marked \Deleted), "kept"


@dataclass
class MailFilter:
    """Classifies and sorts the mail of one account."""

    mover: Mover
    classify: Classify
    should_stop: Callable[[], bool]  # True stops early
    folders: Sequence[str]
    positive: str  # the class that is moved
    is_dry_run: bool  # change nothing
    mark_only: bool  # set a keyword instead of moving
    unsure_keyword: str | None
    classify_all: bool  # whether to classify old mail, too
    on_note: Callable[[str], None]  # called with each note
    class_movers: Mapping[str, Mover] = field(default_factory=dict)  # other class -> its mover
    # Folders that cannot store the keyword that their account requests.
    without_keyword: list[str] = field(default_factory=list)

    def run(self) -> Iterator[SortedMessage]:
        """Classify and sort the new mail; yields the actions.  Raises AccountError."""
        self._connection, self._memory = self.mover.connection, self.mover.memory
        if not self.is_dry_run:
            self.mover.finish()
        for name in self.folders:
            yield from self._filter_folder(name)
            if self.should_stop():
                break
        self._connection.check()

    def _filter_folder(self, name: str) -> Iterator[SortedMessage]:
        connection = self._connection
        if (folder := connection.try_select(name, self.is_dry_run)) is None:
            return
        keywords = [self.unsure_keyword, JUNK_KEYWORD if self.mark_only else None]
        lacking = [k for k in keywords if k and not {"\\*", k.lower()} & folder.keywords]
        if lacking and not self.is_dry_run:
            raise AccountError(
                f"{connection.account.name}: {folder.name}: does not store the keyword"
                f" {lacking[0]}",
                Remedy.LEAVE_OUT_KEYWORDS,
            )
        self._keyword = ""  # set on moved messages
        if connection.account.keywords and not (self.mark_only or self.is_dry_run):
            self._keyword = connection.junk_keyword(folder, self.mover.junk)
            if not self._keyword:
                self.without_keyword.append(folder.name)
        before = self._memory.folders.get(folder.name)
        self._folder, self._start = folder, self._memory.classified_folder(folder)
        if before and before.uidvalidity == folder.uidvalidity and before != self._start:
            self.on_note(
                f"{connection.account.name}: {folder.name}: its messages have lower numbers than"
                " before, as after a restore; the unread ones are classified again"
            )
        self._reached = self._start.uid
        # Digests of messages that were classified, or moved back by the user, before this run.
        self._classified_before = frozenset(self._memory.classified)
        self._moved_back_before = frozenset(self._memory.moved_back)
        self._unclassified: dict[str, KnownMessage] = {}  # source -> message without a verdict yet
        # UID -> digest of messages that were in the junk folder; all other messages are classified
        # first.
        self._deferred: dict[int, str] = {}
        self._classifies_deferred = False
        connection.refused.pop(folder.name, None)
        postponed = next_run(self._start.retry_later)
        again = connection.existing(self._start.retry_later.keys() - postponed, "UNDELETED")
        self._again = frozenset(again)
        yield from self._sort(sorted({*self._new_uids(), *again} - postponed))
        if self._deferred and not self.should_stop():
            others = self._deferred_to_classify()
            select_again(connection, folder, self.is_dry_run)
            self._classifies_deferred = True
            yield from self._sort(others)
        if not self.should_stop():
            self._reached = max(self._start.uid, folder.uidnext - 1)
            self._save([])
            # the message was tried, and is gone or processed
            for uid in self._start.retry_later.keys() & self._again:
                if self._start.retry_later[uid][0] <= 0:
                    del self._start.retry_later[uid]

    def _new_uids(self) -> list[int]:
        """Return the UIDs of the messages to classify, in ascending order."""
        folder, start = self._folder, self._start
        search, alive = self._connection.search, "UNDELETED"
        if self.classify_all:
            uids = search((alive,))
        else:
            uids = search((alive,), max(start.uid + 1, start.unread_until))
            if start.uid + 1 < start.unread_until:
                old = search((alive, "UNSEEN"), start.uid + 1)
                uids += [uid for uid in old if uid < start.unread_until]
        return sorted(uid for uid in uids if uid < folder.uidnext)

    def _sort(self, uids: Sequence[int]) -> Iterator[SortedMessage]:
        """Classify messages, and sort them in batches."""
        batch: list[tuple[KnownMessage, Verdict]] = []
        together = min(_MAX_BATCH, max(_MIN_BATCH, len(uids) // 50))
        for verdict in self.classify(self._messages_to_classify(uids), len(uids)):
            batch.append((self._unclassified.pop(verdict.source), verdict))
            if len(batch) == together:
                yield from self._apply_verdicts(batch)
                batch = []
                if self.should_stop():
                    return
        if batch:
            yield from self._apply_verdicts(batch)

    def _messages_to_classify(self, uids: Sequence[int]) -> Iterator[RawMessage]:
        """Yield the messages to classify.

        Old messages that were classified under another UID, and messages that the user has moved
        back, are left out.
        """
        for message in self._connection.messages(uids):
            digest = identity_of(message.content)
            is_again = message.uid in self._again
            is_old = message.uid < self._start.unread_until and not (self.classify_all or is_again)
            is_known = (
                is_old and not self._classifies_deferred and digest in self._classified_before
            )
            if not self._classifies_deferred and digest in self._memory.junked:
                self._deferred[message.uid] = digest
            elif not (is_known or digest in self._moved_back_before):
                source = self._connection.source_of(self._folder.name, message.uid)
                known = message.uid, digest, message.is_seen, heading(message.content)
                self._unclassified[source] = KnownMessage(*known)
                yield RawMessage(source, None, message.content)

    def _deferred_to_classify(self) -> list[int]:
        """Return the UIDs of deferred messages to classify; the user has moved the others back."""
        digests = set(self._deferred.values())
        left = _left_junk_folder(digests, self._memory, self._connection, self.mover.junk)
        for uid, digest in self._deferred.items():
            if digest in left and not self.is_dry_run:
                self._memory.add_moved_back(self._folder.name, uid, digest)
        return [uid for uid, digest in self._deferred.items() if digest not in left]

    def _apply_verdicts(self, batch: list[tuple[KnownMessage, Verdict]]) -> Iterator[SortedMessage]:
        """Move or mark messages by their verdicts, and save the state."""
        positive = [(m, v) for m, v in batch if v.verdict == self.positive]
        spam = [message for message, verdict in positive if verdict.reason != TAUGHT_AS_HAM]
        unsure = [message.uid for message, verdict in batch if verdict.verdict == UNSURE]
        others = {name: [m for m, v in batch if v.verdict == name] for name in self.class_movers}
        if not self.is_dry_run:
            if unsure and self.unsure_keyword:
                self._connection.add_flag(unsure, self.unsure_keyword)
            if spam and (self.mark_only or self._keyword):
                self._memory.marked |= dict.fromkeys(message.digest for message in spam)
                self._memory.save()  # saved first, so that nbspam's own keywords are never learned
            if spam and self.mark_only:
                self._connection.add_flag([message.uid for message in spam], JUNK_KEYWORD)
            elif spam:
                self.mover.move(self._folder, spam, self._keyword)
            for name, messages in others.items():
                if messages:
                    self.class_movers[name].move(self._folder, messages)
            if not self._classifies_deferred:
                # If this run ends here, the next run starts with the deferred messages.
                last = batch[-1][0].uid
                last = min(last, min(self._deferred, default=last + 1) - 1)
                self._reached = max(self._reached, last)
        refused = self._save([message for message, _ in batch])
        moved = "deleted" if self.mover.leaves_deleted else "moved"
        actions = dict.fromkeys(unsure, "marked" if self.unsure_keyword else "kept")
        for message in spam:
            actions[message.uid] = "marked" if self.mark_only else moved
        actions |= {m.uid: moved for messages in others.values() for m in messages}
        for message, verdict in batch:
            action = "kept" if message.uid in refused else actions.get(message.uid, "kept")
            name = self._folder.name
            yield SortedMessage(name, message.uid, message.heading, verdict, action)

    def _save(self, messages: list[KnownMessage]) -> set[int]:
        """Save the state after these messages; returns the UIDs that the server refused.

        Raises AccountError if all were refused, because then the server fails.
        """
        self._connection.check(2)
        refused = self._connection.refused.pop(self._folder.name, set())
        if not self.is_dry_run:
            note_refused(self._start.retry_later, {message.uid for message in messages}, refused)
            self._memory.folders[self._folder.name] = self._start._replace(uid=self._reached)
            for message in messages:
                if message.uid not in refused:
                    self._memory.classified.pop(message.digest, None)
                    self._memory.classified[message.digest] = None
            self._memory.save()
        return refused


# Learning


class MessagesToLearn:
    """An account's messages that are to be learned now."""

    def __init__(
        self,
        connection: Mailbox,
        memory: Memory,
        junk: str,
        labels: tuple[str, str],
        trust_after: float | None = None,
    ) -> None:
        """junk: the folder of spam.  labels: the names of the classes, spam and ham.

        trust_after: a message that nbspam moved, and that was not moved back, counts as seen after
        this number of seconds; None for never.
        """
        self._connection, self._memory = connection, memory
        self._junk, self._labels, self._trust_after = junk, labels, trust_after
        self._learned: dict[str, LearnedFolder] = {}
        self._new_in_junk: set[str] = set()
        self._was_junked = frozenset(memory.junked)
        self._read: dict[str, tuple[str, int, str]] = {}  # source -> folder, UID, digest
        self._corrections: set[str] = set()  # sources of messages that the user moved or marked
        self._headings: dict[str, str] = {}  # source -> sender and Subject

    @property
    def unconfirmed(self) -> int:
        """The number of messages in the junk folder that the user has not confirmed."""
        return len(self._learned[self._junk].unconfirmed)

    def is_presumed(self, source: str, is_spam: bool) -> bool:
        """Return whether a message is only presumed to be ham, because it was read.

        is_spam: its score is above the spam cut-off.  If nbspam did not filter the message, another
        filter may have moved it to the junk folder, and the user may have moved it back.
        """
        if source not in self._read:
            return False
        return not is_spam or self._read[source][2] in self._memory.classified

    def is_correction(self, source: str) -> bool:
        """Return whether the user moved or marked a message, because the filter was wrong."""
        return source in self._corrections

    def sender_and_subject(self, source: str) -> str:
        """Return the sender and Subject of a message."""
        return self._headings.get(source) or source

    def messages(self) -> Iterator[RawMessage]:
        """Yield the messages with their classes; `commit` records that they were learned."""
        yield from self._junk_messages()
        for name in expand_patterns(self._connection, self._connection.account.ham, self._junk):
            yield from self._ham_messages(name)
        self._connection.check(2)

    def commit(self, withheld: Iterable[str]) -> None:
        """Record that all messages were learned, except those that wait for the user's keyword."""
        for source in withheld:
            name, uid, digest = self._read[source]
            self._learned[name].uids.discard(uid)
            self._learned[name].unconfirmed[uid] = digest
        for name, learned in self._learned.items():
            self._memory.learned[name] = learned
            self._memory.moved_back_uids.pop(name, None)
        self._memory.save()

    def _fetch(self, learned: LearnedFolder, name: str, uids: set[int]) -> Iterator[FetchedMessage]:
        """Yield messages of the open folder; refused messages wait for a later run."""
        yield from self._connection.messages(sorted(uids))
        refused = self._connection.refused.pop(name, set())
        note_refused(learned.retry_later, uids, refused)
        learned.uids.difference_update(refused)

    def _raw(self, name: str, message: FetchedMessage, is_spam: bool) -> RawMessage:
        source = self._connection.source_of(name, message.uid)
        self._headings[source] = heading(message.content)
        return RawMessage(source, self._labels[not is_spam], message.content)

    def _junk_messages(self) -> Iterator[RawMessage]:
        connection, memory = self._connection, self._memory
        folder = connection.select(self._junk, readonly=True)
        connection.refused.pop(folder.name, None)
        known = memory.learned_folder(folder)
        postponed = next_run(known.retry_later)
        present = set(connection.search(("UNDELETED",)))
        seen = set(connection.search(READ))
        spam, ham = connection.marked()
        digests = {uid: digest for uid, digest in known.unconfirmed.items() if uid in present}
        taught: dict[int, str] = {}
        new = present - known.uids - known.unconfirmed.keys() - postponed
        for message in connection.prefixes(sorted(new)):
            digest = identity_of(message.content)
            mark = memory.junked.get(digest)
            if mark is not None and mark.moved_by_nbspam:
                digests[message.uid] = digest
            else:
                taught[message.uid] = digest
                self._new_in_junk.add(digest)
                place = time.time(), folder.uidvalidity, message.uid
                memory.set_junked(digest, JunkMark(*place, was_seen=False, moved_by_nbspam=False))
        trusted = {
            uid
            for uid, digest in digests.items()
            if uid in ham
            or (uid in spam and digest not in memory.marked)
            or self._is_trusted(digest, uid in seen)
        }
        unconfirmed = {uid: digest for uid, digest in digests.items() if uid not in trusted}
        uids = (known.uids & present) | trusted | taught.keys()
        learned = known._replace(uids=uids, unconfirmed=unconfirmed, contradicting=ham & uids)
        self._learned[folder.name] = learned
        self._new_in_junk |= {digests[uid] for uid in trusted}
        # Messages that nbspam left elsewhere and the user moved here, with their old keywords.
        moved = {uid for uid, digest in taught.items() if digest in memory.classified}
        again = known.uids & present & (ham ^ known.contradicting)
        wanted = (trusted | taught.keys() | again) - postponed
        for message in self._fetch(learned, folder.name, wanted):
            raw = self._raw(folder.name, message, message.uid not in ham - moved)
            if message.uid in moved | again | ham:
                self._corrections.add(raw.source)
            yield raw

    def _is_trusted(self, digest: str, is_seen: bool) -> bool:
        """Return whether the user has confirmed a message that nbspam moved."""
        mark = self._memory.junked.get(digest)
        if mark is None:  # older than all stored digests
            return is_seen
        if self._trust_after is not None and time.time() - mark.since >= self._trust_after:
            return True
        return is_seen and not mark.was_seen

    def _find_moved_back(self, folder: Folder, looked_up_to: int) -> set[int]:
        """Return the unread messages that the user has moved here from the junk folder.

        looked_up_to: the highest UID of the last run; moved messages have higher UIDs.
        """
        connection, memory = self._connection, self._memory
        if not self._was_junked:
            return set()
        uids = connection.search(("UNDELETED", "UNSEEN"), looked_up_to + 1)
        digests = {m.uid: identity_of(m.content) for m in connection.prefixes(uids)}
        digests = {uid: digest for uid, digest in digests.items() if digest in self._was_junked}
        left = _left_junk_folder(set(digests.values()), memory, connection, self._junk)
        select_again(connection, folder, readonly=True)
        for digest in left:
            memory.keep(digest)
        return {uid for uid, digest in digests.items() if digest in left}

    def _ham_messages(self, name: str) -> Iterator[RawMessage]:
        connection, memory = self._connection, self._memory
        if (folder := connection.try_select(name, readonly=True)) is None:
            return
        connection.refused.pop(folder.name, None)
        known = memory.learned_folder(folder)
        postponed = next_run(known.retry_later)
        moved = self._find_moved_back(folder, known.looked_up_to)
        spam, ham = connection.marked()
        others = {
            *memory.moved_back_uids.get(folder.name, []),
            *moved,
            *(known.contradicting - spam),
        }
        there = {*connection.search(READ), *spam, *ham, *connection.existing(others, "UNDELETED")}
        unconfirmed = {uid: known.unconfirmed[uid] for uid in known.unconfirmed.keys() & there}
        learned = known._replace(
            uids=known.uids.copy(),
            unconfirmed=unconfirmed,
            contradicting=known.contradicting & spam,
            looked_up_to=max(known.looked_up_to, folder.uidnext - 1),
        )
        self._learned[folder.name] = learned
        decided_by_user = {*spam, *ham, *others}
        same = (known.uids - (spam ^ known.contradicting)) | (unconfirmed.keys() - decided_by_user)
        for message in self._fetch(learned, folder.name, there - same - postponed):
            # The user is moving a message that is also in the junk folder: leave it to the next
            # run.
            if (digest := identity_of(message.content)) in self._new_in_junk:
                continue
            learned.uids.add(message.uid)
            unconfirmed.pop(message.uid, None)
            is_spam = message.uid in spam
            if is_spam:
                learned.contradicting.add(message.uid)
            # If the user moved a message out of the junk folder, its keyword is outdated.
            was_junked = digest in self._was_junked or digest in memory.moved_back
            if is_spam and not was_junked and digest in memory.marked:
                continue
            raw = self._raw(folder.name, message, is_spam and not was_junked)
            if message.uid in decided_by_user or was_junked:
                self._corrections.add(raw.source)
            else:
                self._read[raw.source] = folder.name, message.uid, digest
            yield raw


# Waiting


class Stop:
    """A request to stop after the current message, by SIGTERM or SIGINT; also wakes a wait."""

    def __enter__(self) -> "Stop":
        self._read, self._write = os.pipe()
        self.is_requested = False
        signals = signal.SIGTERM, signal.SIGINT
        self._before = {number: signal.signal(number, self.request) for number in signals}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self._read)
        os.close(self._write)

    def request(self, *_: object) -> None:
        """Request to stop; a signal handler."""
        self.is_requested = True
        os.write(self._write, b".")

    def wait(self, seconds: float, descriptor: int | None = None) -> bool:
        """Wait for the request, for input of a descriptor, or until the time is over.

        Returns False if the time is over.
        """
        descriptors = [self._read] if descriptor is None else [self._read, descriptor]
        return bool(select.select(descriptors, [], [], seconds)[0])


def watch(
    account: Account | Maildir,
    sort_mail: Callable[[Mailbox], None],
    stop: Stop,
    interval: float,
    on_note: Callable[[str], None],
    first_pause: float = _FIRST_PAUSE,
) -> None:
    """Sort an account's mail whenever mail arrives in its first folder, until `stop` is requested.

    sort_mail: sorts the new mail once.
    interval: seconds to wait if the server has no IDLE.
    on_note: called with a sentence if the connection is lost or restored.
    Raises AccountError if another attempt would not help, as with a wrong password.
    """
    pause, folder = first_pause, account.folders[0]
    while not stop.is_requested:
        try:
            with open_mailbox(account) as connection:
                while not stop.is_requested:
                    before = connection.select(folder, readonly=True).uidnext
                    try:
                        sort_mail(connection)
                    except LockedError as error:  # another run is sorting
                        on_note(str(error))
                    if pause != first_pause:
                        on_note(f"{account.server}: reconnected")
                    pause = first_pause
                    # IDLE does not announce mail that arrived before it started.
                    if connection.select(folder, readonly=True).uidnext == before:
                        connection.wait(stop.wait, interval)
        except UnavailableError as error:
            if stop.is_requested:
                return
            problem = error.problem.rpartition(";")[0] or error.problem
            on_note(f"{problem}; next attempt in {pause:.0f} s")
            stop.wait(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
