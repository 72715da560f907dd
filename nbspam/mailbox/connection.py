"""A connection to an IMAP server, through imapclient.

Messages are read with PEEK, so that none becomes \\Seen, and expunged by UID only.

If a command on many messages fails, it is tried on halves of the messages, over a new connection if
the server has closed the old one.  So only a message that the server cannot deliver or move is left
out and named, and all other messages are processed.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from functools import partial
from typing import Any, NamedTuple, TypeVar

from nbspam.errors import AccountError, UnavailableError, needs_extra
from nbspam.mailbox.account import (
    Account,
    FolderAddress,
    ImapRefusalError,
    SetupError,
    TimeLimitError,
    command_error,
    missing_folder,
)
from nbspam.reading.folder_names import (
    ListedFolder,
    decoded_name,
    resolve_folder,
    with_special_uses,
)
from nbspam.reading.header_fields import heading
from nbspam.reading.message import BYTES_LIMIT
from nbspam.reading.source import Skips

R = TypeVar("R")
DELETED = "\\Deleted"
READ = ("SEEN", "UNDELETED")  # search criteria
# Keywords with which users classify messages: registered with IANA, or used by Thunderbird.
JUNK_KEYWORDS, HAM_KEYWORDS = ("$Junk", "Junk"), ("$NotJunk", "NonJunk", "NotJunk")
_UIDS_PER_QUERY, _UIDS_PER_FETCH = 500, 100
_MAX_FAILURES_IN_A_ROW = 20  # with this many, the server fails, not single messages
_BYTES_PER_FETCH = 4 << 20  # for small messages; larger messages are fetched one by one
# bytes that identify a message: its first header fields, some of them from the user's server
PREFIX_BYTES = 4096
# IDLE is restarted after this time, because routers forget a silent connection after 5 minutes (RFC
# 2177 requires less than 29 minutes).  At each restart, the other folders are searched.
_IDLE_SECONDS = 240.0


class Folder(NamedTuple):
    """A folder that was opened, or whose status was requested."""

    name: str
    uidvalidity: int
    uidnext: int
    messages: int = 0
    keywords: frozenset[str] = frozenset()  # keywords that can be stored, in lower case; "\\*": any
    used: frozenset[str] = frozenset()  # keywords that its messages may have, in lower case

    def uids_still_valid(self, uidvalidity: int, uid: int) -> bool:
        """Return whether the folder's UIDs are still valid; uid: an earlier UID of the folder.

        A mailbox restored with its old UIDVALIDITY, against RFC 3501, may have a lower UIDNEXT.
        """
        return uidvalidity == self.uidvalidity and uid < self.uidnext


class FetchedMessage(NamedTuple):
    """A message, or its first bytes."""

    uid: int
    is_seen: bool
    content: bytes


class Failures:
    """The messages and folders of an account that one run leaves out."""

    def __init__(self) -> None:
        self.skips = Skips()  # items that were not printed yet
        self.refused: dict[str, set[int]] = {}  # folder -> UIDs that were left out
        self._worked: set[str] = set()  # kinds of work that succeeded for at least one item
        self._errors: dict[str, list[AccountError]] = {}  # kind of work -> errors, one per item
        self._in_a_row = 0
        self._named: set[str] = set()

    def works(self, kind: str) -> None:
        """Record that a kind of work succeeded for an item."""
        self._worked.add(kind)
        self._in_a_row = 0

    def leave_out(self, item: str, error: AccountError, kind: str) -> None:
        """Record that an item is left out; raises the error if everything seems to fail."""
        if item not in self._named:
            reason = error.problem  # the problem with its remedy
            if isinstance(error, ImapRefusalError | UnavailableError):
                reason = getattr(error, "reason", "the connection was lost")
                reason += "; it is tried again in a later run"
            self.skips(item, reason)
            self._named.add(item)
        self._errors.setdefault(kind, []).append(error)
        self._in_a_row += 1
        if self._in_a_row == _MAX_FAILURES_IN_A_ROW or isinstance(error, TimeLimitError):
            raise error

    def check(self, failures: int = 1) -> None:
        """Raise the error if a kind of work failed for all of its items.

        failures: how many items must have failed.  With 2, a single failed item raises nothing,
        because the item itself may be the cause.
        """
        for kind, errors in self._errors.items():
            if kind not in self._worked and len(errors) >= failures:
                raise errors[-1]

    def recover(self, error: AccountError) -> None:
        """Make the connection usable after an error; raises errors that end the run."""
        if isinstance(error, TimeLimitError | SetupError):
            raise error

    def try_select(self, name: str, readonly: bool) -> Folder | None:
        """Open a folder, or leave it out; raises errors that the user must correct."""
        try:
            folder = self.select(name, readonly)
        except AccountError as error:
            self.recover(error)
            self.leave_out(name, error, "open")
            return None
        self.works("open")
        return folder

    def select(self, name: str, readonly: bool) -> Folder:
        """Open a folder; raises AccountError."""
        raise NotImplementedError


class Connection(Failures, AbstractContextManager["Connection"]):
    """A connection to an account's server, logged in; a context manager.

    Methods raise UnavailableError if the server does not answer, and AccountError if it refuses.
    Methods for many messages leave out the messages for which the server fails.
    """

    junk_rule = "the server marks no folder as \\Junk, and none is called Junk or Spam"

    def __init__(self, account: Account) -> None:
        """Connect and log in."""
        super().__init__()
        try:
            from nbspam.mailbox import login
        except ModuleNotFoundError as error:
            problem = needs_extra(f"{account.name}: mail at a server", "imapclient", "imap")
            raise AccountError(problem) from error
        self.account, self._login = account, login
        self._folders: list[ListedFolder] | None = None
        self._open, self._is_readonly = Folder("", 0, 0), True
        self._client = login.connect(account)

    def __exit__(self, kind: object, *_: object) -> None:
        """Log out, or after an error only close the connection."""
        if kind is None:
            with suppress(Exception):
                self._client.logout()
                return
        with suppress(Exception):  # the connection may be closed
            self._client.shutdown()

    def recover(self, error: AccountError) -> None:
        """Connect again if the connection was lost, and open the same folder."""
        super().recover(error)
        if isinstance(error, UnavailableError):
            with suppress(Exception):
                self._client.shutdown()
            self._client = self._login.connect(self.account)
            if self._open.name:
                select_again(self, self._open, self._is_readonly)

    def supports(self, capability: str) -> bool:
        """Return whether the server has an extension such as MOVE, UIDPLUS or IDLE."""
        return bool(self._ask(lambda: self._client.has_capability(capability)))

    # Folders

    def folders(self) -> list[ListedFolder]:
        """Return the folders of the account."""

        def listed() -> list[ListedFolder]:
            self._client.folder_encode = False  # with it, one invalid name would hide all others
            try:
                answer = self._client.list_folders()
            finally:
                self._client.folder_encode = True
            return [
                ListedFolder(name, _text(separator or b""), _lower_case(flags))
                for flags, separator, raw in answer
                if (name := decoded_name(_text(raw))) is not None
            ]

        if self._folders is None:
            self._folders = with_special_uses(self._ask(listed))
        return self._folders

    def select(self, name: str, readonly: bool) -> Folder:
        """Open a folder; readonly: open it by EXAMINE, which changes nothing."""
        name = resolve_folder(name, self.folders())

        def selected() -> Folder:
            answer = self._client.select_folder(name, readonly)
            if b"UIDNEXT" not in answer:  # RFC 3501 lets a server leave it out
                answer |= self._client.folder_status(name, ("UIDNEXT",))
            keys = b"UIDVALIDITY", b"UIDNEXT", b"EXISTS"
            uidvalidity, uidnext, n = (int(answer.get(key, 0)) for key in keys)
            used = _lower_case(answer.get(b"FLAGS", ()))
            stored = _lower_case(answer.get(b"PERMANENTFLAGS", ())) or used
            return Folder(name, uidvalidity, uidnext, n, stored, used | stored)

        # no folder is open if the command fails
        self._open, self._is_readonly = Folder("", 0, 0), readonly
        self._open = self._ask_of_folder(selected, name)
        return self._open

    def status(self, name: str) -> Folder:
        """Ask for a folder's UIDVALIDITY and UIDNEXT, without opening it."""

        def status() -> Folder:
            answer = self._client.folder_status(name, ("UIDVALIDITY", "UIDNEXT"))
            return Folder(name, int(answer[b"UIDVALIDITY"]), int(answer[b"UIDNEXT"]))

        return self._ask_of_folder(status, name)

    def is_same(self, name: str, other: str) -> bool:
        """Return whether two names denote the same folder."""
        return name == other

    def _ask_of_folder(self, command: Callable[[], Folder], name: str) -> Folder:
        try:
            return self._ask(command, name)
        except ImapRefusalError as error:
            names = [folder.name for folder in self.folders() if folder.is_selectable]
            if name in names:
                raise
            raise missing_folder(self.account.name, name, names) from error

    # Messages of the open folder

    def search(self, criteria: Sequence[str], first: int = 1) -> list[int]:
        """Return the UIDs of the messages that meet all criteria, from `first` on, ascending."""
        query = ["UID", f"{first}:*", *criteria]
        uids = set(self._ask(lambda: self._client.search(query), self._open.name))
        return sorted(uid for uid in uids if uid >= first)  # 9:* includes the last UID, even 7

    def existing(self, uids: Iterable[int], *criteria: str) -> list[int]:
        """Return which of the UIDs are in the open folder and meet the search criteria."""
        existing: set[int] = set()
        for piece in _split_uids(sorted(uids), _UIDS_PER_QUERY):
            query = ["UID", ",".join(map(str, piece)), *criteria]
            found = self._ask(partial(self._client.search, query))
            existing.update({*piece} & {*found})
        return sorted(existing)

    def marked(self) -> tuple[set[int], set[int]]:
        """Return the UIDs with a keyword for spam, and those with a keyword for ham.

        A message with both is ham, because a user sets the keyword for ham to correct the other.
        Only keywords that the folder lists are searched.  For other keywords, servers refuse the
        search or close the connection; Exchange has no keywords.
        """
        used, found = self._open.used, []
        for keywords in (JUNK_KEYWORDS, HAM_KEYWORDS):
            uids: set[int] = set()
            for keyword in (keyword for keyword in keywords if keyword.lower() in used):
                try:
                    uids.update(self.search(("UNDELETED", "KEYWORD", keyword)))
                except AccountError as error:
                    self.recover(error)
            found.append(uids)
        spam, ham = found
        return spam - ham, ham

    def prefixes(self, uids: Sequence[int]) -> Iterator[FetchedMessage]:
        """Yield the first bytes of messages."""
        for piece in _split_uids(uids, _UIDS_PER_FETCH):
            yield from self._fetch(piece, ["FLAGS", f"BODY.PEEK[]<0.{PREFIX_BYTES}>"], _message)

    def messages(self, uids: Sequence[int]) -> Iterator[FetchedMessage]:
        """Yield messages in the order of their UIDs, without messages that disappear meanwhile.

        Only the first BYTES_LIMIT bytes of a larger message are fetched.  Memory holds a few
        megabytes of messages at a time, or one message.
        """
        for piece in _split_uids(sorted(uids), _UIDS_PER_QUERY):
            sizes = dict(self._fetch(piece, ["RFC822.SIZE"], _size))
            for batch in _batch_uids(sizes):
                is_whole = all(sizes[uid] <= BYTES_LIMIT for uid in batch)
                items = ["FLAGS", "BODY.PEEK[]" if is_whole else f"BODY.PEEK[]<0.{BYTES_LIMIT}>"]
                yield from self._fetch(batch, items, _message)

    def _fetch(
        self, uids: list[int], items: list[str], parse: Callable[[int, Mapping[bytes, Any]], R]
    ) -> list[R]:
        """Fetch and parse fields of messages, in the order of UIDs, without missing messages.

        parse: called with a UID and the server's fields.
        """

        def fetch(part: list[int]) -> dict[int, R]:
            answer = self._client.fetch(part, items)
            # The answer may have the flags of other messages.
            return {uid: parse(uid, answer[uid]) for uid in part if uid in answer}

        found: dict[int, R] = {}
        kind = items[-1].partition("<")[0]
        self.for_messages(uids, lambda part: found.update(fetch(part)), kind)
        refused = self.refused.get(self._open.name, set())
        if lacking := {*uids} - found.keys() - refused:
            lacks = ImapRefusalError(self.account.name, "the server's answer lacks the message")
            for uid in self.existing(lacking):
                self.leave_out_message(uid, lacks, kind)
        return [found[uid] for uid in sorted(found)]

    def for_messages(
        self, uids: Sequence[int], command: Callable[[list[int]], object], kind: str
    ) -> None:
        """Run a command on messages of the open folder, and on halves of them if it fails.

        A single message for which the command fails is left out.
        """
        parts = [list(uids)] if uids else []
        while parts:
            part = parts.pop()
            try:
                self._ask(partial(command, part), self._open.name)
                self.works(kind)
            except AccountError as error:
                self.recover(error)
                if "EXPUNGEISSUED" in str(error):  # another client has just moved some
                    self._ask(self._client.noop)
                    part = self.existing(part)
                if len(part) > 1:
                    parts += [part[len(part) // 2 :], part[: len(part) // 2]]
                elif self.existing(part):
                    self.leave_out_message(part[0], error, kind)

    def leave_out_message(
        self, uid: int, error: AccountError, kind: str, known: str | None = None
    ) -> None:
        """Leave out a message of the open folder, named by its sender and Subject.

        known: sender and Subject, if they were fetched; otherwise the server is asked.
        """
        name = self._open.name
        if kind != "keyword":  # a message without the keyword can still be moved
            self.refused.setdefault(name, set()).add(uid)
        if known is None:
            known = ""
            try:
                envelope = self._client.fetch([uid], ["ENVELOPE"])[uid][b"ENVELOPE"]
                senders = [b"%s@%s" % (a.mailbox, a.host) for a in envelope.from_ or ()]
                fields = zip((b"From", b"Subject"), (*senders[:1], envelope.subject), strict=True)
                known = heading(b"".join(b"%s: %s\n" % field for field in fields))
            except Exception as failure:  # noqa: BLE001 (the message may be invalid)
                self.recover(command_error(self.account, failure))
        self.leave_out(f"{name}, UID {uid}{f' ({known})' if known else ''}", error, kind)

    def source_of(self, folder: str, uid: int) -> str:
        """Return the address of a message."""
        account = self.account
        return FolderAddress(account.user, account.host, account.port, folder, uid).text

    # Changes

    def junk_keyword(self, folder: Folder, junk: str) -> str:
        """Return the keyword for spam that the open folder can store, or ""."""
        return next((k for k in JUNK_KEYWORDS if {"\\*", k.lower()} & folder.keywords), "")

    def move(self, uids: Sequence[int], folder: str, keyword: str = "") -> list[int]:
        """Move messages of the open folder to another folder by MOVE (RFC 6851); return their UIDs.

        keyword: a keyword that is set on the messages before the move.
        """
        if keyword:
            self.add_flag(uids, keyword, "keyword")
        self._ask(lambda: self._client.move(list(uids), folder), folder)
        return list(uids)

    def copy(self, uids: Sequence[int], folder: str, keyword: str = "") -> None:
        """Copy messages of the open folder to another folder, all or no message."""
        if keyword:
            self.add_flag(uids, keyword, "keyword")
        self._ask(lambda: self._client.copy(list(uids), folder), folder)

    def add_flag(self, uids: Sequence[int], flag: str, kind: str = "flag") -> None:
        """Set a flag or keyword on messages of the open folder."""
        for piece in _split_uids(sorted(uids), _UIDS_PER_QUERY):
            self.for_messages(
                piece, lambda part: self._client.add_flags(part, [flag], silent=True), kind
            )

    def expunge(self, uids: Sequence[int]) -> None:
        """Remove \\Deleted messages by their UIDs, and no others."""
        self.for_messages(uids, self._client.uid_expunge, "expunge")

    def wait(self, wait_for: Callable[[float, int | None], object], interval: float) -> None:
        """Wait until mail may have arrived in the open folder, or the time is over.

        wait_for: called with a number of seconds, and a descriptor whose input ends the wait.
        interval: seconds to wait if the server has no IDLE.
        """
        if self.supports("IDLE"):
            self._ask(self._client.idle)
            if not self._login.has_more(self._client):
                wait_for(_IDLE_SECONDS, self._client.socket().fileno())
            self._ask(self._client.idle_done)
        else:
            wait_for(interval, None)
            self._ask(self._client.noop)

    def _ask(self, command: Callable[[], R], folder: str = "") -> R:
        """Run a command; raises UnavailableError, or ImapRefusalError if the server refuses it.

        command: sends the command and reads the answer; may raise any error.
        """
        try:
            return command()
        except Exception as error:
            raise command_error(self.account, error, folder) from error


def select_again(connection: Failures, folder: Folder, readonly: bool) -> None:
    """Open a folder again; raises UnavailableError if its messages were renumbered."""
    if connection.select(folder.name, readonly).uidvalidity != folder.uidvalidity:
        raise UnavailableError(
            f"{folder.name}: its messages have just been renumbered; run it again"
        )


def read_folder(
    account: Account, address: FolderAddress, only_read: bool, skips: Skips
) -> Iterator[tuple[str, bytes]]:
    """Yield the address and bytes of each message of a folder, or of the addressed message.

    only_read: leave out unread messages.  skips: receives the messages that the server refuses.
    Raises AccountError.  The folder is not changed.
    """
    criteria = READ if only_read else ("ALL",)
    with Connection(account) as connection:
        connection.skips = skips
        address = address._replace(folder=connection.select(address.folder, readonly=True).name)
        if address.uid is None:
            uids = connection.search(criteria)
        elif not (uids := connection.existing([address.uid], *criteria)):
            raise AccountError(
                f"{address.text}: message not found; use a name that nbspam classify prints"
            )
        for message in connection.messages(uids):
            yield address._replace(uid=message.uid).text, message.content
        connection.check()


# Answers


def _size(uid: int, fields: Mapping[bytes, Any]) -> tuple[int, int]:
    return uid, max(0, int(fields[b"RFC822.SIZE"]))


def _message(uid: int, fields: Mapping[bytes, Any]) -> FetchedMessage:
    flags = {_text(flag) for flag in fields.get(b"FLAGS", ())}
    content = fields.get(b"BODY[]", fields.get(b"BODY[]<0>"))
    if isinstance(content, int):  # imapclient turns a quoted message of digits into a number
        content = str(content).encode()
    if not isinstance(content, bytes):
        raise ValueError("no content")
    return FetchedMessage(uid, "\\Seen" in flags, content)


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _lower_case(flags: Iterable[object]) -> frozenset[str]:
    return frozenset(_text(flag).lower() for flag in flags)


def _split_uids(uids: Sequence[int], size: int) -> Iterator[list[int]]:
    for start in range(0, len(uids), size):
        yield list(uids[start : start + size])


def _batch_uids(sizes: Mapping[int, int]) -> Iterator[list[int]]:
    """Yield UIDs of messages to fetch together: small ones, or one large one."""
    batch: list[int] = []
    total = 0
    for uid, size in sizes.items():
        if batch and (total + size > _BYTES_PER_FETCH or len(batch) == _UIDS_PER_FETCH):
            yield batch
            batch, total = [], 0
        batch.append(uid)
        total += size
    if batch:
        yield batch
