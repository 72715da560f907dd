"""A connection to an IMAP server, through imapclient, with the commands that nbspam uses.

Messages are read with PEEK, so that none becomes \\Seen, and expunged by UID only.
"""

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from functools import partial
from typing import Any, NamedTuple, TypeVar

from nbspam.errors import AccountError, needs_extra
from nbspam.mailbox.account import (
    INBOX,
    Account,
    FolderAddress,
    ImapRefusalError,
    command_error,
    missing_folder,
)
from nbspam.reading.message import BYTES_LIMIT
from nbspam.reading.source import Skips

R = TypeVar("R")
DELETED = "\\Deleted"
READ = ("SEEN", "UNDELETED")  # what a search asks for
# Keywords by which users say what a message is: registered with IANA, and Thunderbird's.
JUNK_KEYWORDS, HAM_KEYWORDS = ("$Junk", "Junk"), ("$NotJunk", "NonJunk")
_UIDS_LISTED = 1_000_000  # UIDs that one answer may hold: ten digits and a blank each
_UIDS_DESCRIBED = 500  # at a time
_UIDS_FETCHED = 100
_ATTEMPTS = 5  # while other clients move the same messages
_BYTES_FETCHED = 4 << 20  # of small messages; a larger one is fetched alone
BEGINNING = 4096  # bytes that identify a message: its first header fields, the server's among them
# Seconds after which IDLE is begun again, at the latest.  RFC 2177 asks for less than 29 minutes,
# and routers forget a silent connection after 5.  Folders beside the first are searched then.
_IDLE_LIMIT = 240.0


class ListedFolder(NamedTuple):
    """A folder in the server's list."""

    name: str
    separator: str
    flags: frozenset[str]  # in lower case

    @property
    def is_selectable(self) -> bool:
        """Whether it can hold messages."""
        return not self.flags & {"\\noselect", "\\nonexistent"}


class Folder(NamedTuple):
    """A folder that is open, or whose status was requested."""

    name: str
    uidvalidity: int
    uidnext: int
    messages: int = 0
    keywords: frozenset[str] = frozenset()  # that it can store, in lower case; "\\*" for any
    states_uidnext: bool = True  # False of an old server: uidnext is the highest UID plus 1

    def continues(self, uidvalidity: int, uid: int) -> bool:
        """Return whether its UIDs are still valid; uid: one that it had before.

        A mailbox restored with its old UIDVALIDITY, against RFC 3501, may have a lower UIDNEXT.
        """
        return uidvalidity == self.uidvalidity and (uid < self.uidnext or not self.states_uidnext)


class FetchedMessage(NamedTuple):
    """A message, or its beginning."""

    uid: int
    is_seen: bool
    content: bytes


class Connection(AbstractContextManager["Connection"]):
    """A connection to an account's server, logged in; a context manager.

    Each method raises UnavailableError when the server does not answer, and AccountError when it
    refuses.
    """

    junk_rule = "the server marks no folder as \\Junk"
    moves_once = False  # two machines that move the same message may copy it twice
    skips = Skips()  # always empty: the server can read its messages

    def __init__(self, account: Account) -> None:
        """Connect and log in."""
        try:
            from nbspam.mailbox.bounded import connected, decoded_name
        except ModuleNotFoundError as error:
            what = needs_extra(f"{account.name}: mail at a server", "imapclient", "imap")
            raise AccountError(what) from error
        self.account, self._decoded = account, decoded_name
        self._folders: list[ListedFolder] | None = None
        self._open = Folder("", 0, 0)
        self._client = connected(account)

    def __exit__(self, kind: object, *_: object) -> None:
        """Log out; after an error only close the connection."""
        if kind is None:
            with suppress(Exception):
                self._client.logout()
                return
        with suppress(Exception):  # it may be closed
            self._client.shutdown()

    def supports(self, capability: str) -> bool:
        """Return whether the server has an extension, by its name: MOVE, UIDPLUS, IDLE."""
        return bool(self._ask(lambda: self._client.has_capability(capability)))

    # Folders

    def folders(self) -> list[ListedFolder]:
        """Return the folders of the account."""

        def listed() -> list[ListedFolder]:
            self._client.folder_encode = False  # one invalid name would hide all others
            try:
                answer = self._client.list_folders()
            finally:
                self._client.folder_encode = True
            return [
                ListedFolder(name, _text(separator or b""), _lower_case(flags))
                for flags, separator, raw in answer
                if (name := self._decoded(raw)) is not None
            ]

        if self._folders is None:
            self._folders = self._ask(listed)
        return self._folders

    def select(self, name: str, readonly: bool) -> Folder:
        """Open a folder; readonly: with EXAMINE, which changes nothing."""
        name = resolve_folder(name, self.folders())

        def selected() -> Folder:
            answer = self._client.select_folder(name, readonly)
            keys = b"UIDVALIDITY", b"UIDNEXT", b"EXISTS"
            uidvalidity, uidnext, n = (int(answer.get(key, 0)) for key in keys)
            keywords = answer.get(b"PERMANENTFLAGS", answer.get(b"FLAGS", ()))
            return Folder(name, uidvalidity, uidnext, n, _lower_case(keywords))

        folder = self._open = self._ask_of_folder(selected, name)
        if not folder.uidnext:  # an old server
            following = max(self.search(("ALL",)), default=0) + 1
            folder = folder._replace(uidnext=following, states_uidnext=False)
        return folder

    def status(self, name: str) -> Folder:
        """Return a folder with its UIDVALIDITY and UIDNEXT, without opening it."""

        def status() -> Folder:
            answer = self._client.folder_status(name, ("UIDVALIDITY", "UIDNEXT"))
            return Folder(name, int(answer[b"UIDVALIDITY"]), int(answer[b"UIDNEXT"]))

        return self._ask_of_folder(status, name)

    def is_same(self, name: str, other: str) -> bool:
        """Return whether two folders are one."""
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
        """Return the UIDs from `first` on of messages that meet all criteria, ascending."""
        query = ["UID", f"{first}:*", *criteria]
        size = 6 * min(self._open.messages, _UIDS_LISTED)  # `allow` doubles it
        uids = set(self._ask(partial(self._client.search, query), self._open.name, size))
        return sorted(uid for uid in uids if uid >= first)  # 9:* includes the last UID, even 7

    def existing(self, uids: Iterable[int], *criteria: str) -> list[int]:
        """Return the UIDs that are in the open folder and meet the criteria."""
        existing: set[int] = set()
        for piece in _pieces(sorted(uids), _UIDS_DESCRIBED):
            query = ["UID", ",".join(map(str, piece)), *criteria]
            existing.update({*piece} & {*self._ask(partial(self._client.search, query))})
        return sorted(existing)

    def marked(self) -> tuple[set[int], set[int]]:
        """Return the UIDs with a keyword for spam, which nbspam may have set, and for ham.

        A message with both is ham: the second keyword corrects the first.
        """
        spam, ham = (
            set(self.search(("UNDELETED", "OR", "KEYWORD", keyword, "KEYWORD", alias)))
            for keyword, alias in (JUNK_KEYWORDS, HAM_KEYWORDS)
        )
        return spam - ham, ham

    def beginnings(self, uids: Sequence[int]) -> Iterator[FetchedMessage]:
        """Yield the beginnings of messages."""
        items = ["FLAGS", f"BODY.PEEK[]<0.{BEGINNING}>"]
        for piece in _pieces(uids, _UIDS_FETCHED):
            yield from self._fetched(piece, items, _message, BEGINNING * len(piece)).values()

    def messages(self, uids: Sequence[int]) -> Iterator[FetchedMessage]:
        """Yield messages in the order of their UIDs, without those that are gone meanwhile.

        Only the first BYTES_LIMIT bytes of a larger message are fetched.  Memory holds a few
        megabytes of messages at a time, or one message.
        """
        for piece in _pieces(sorted(uids), _UIDS_DESCRIBED):
            sizes = self._fetched(piece, ["RFC822.SIZE"], _size)
            for batch in _batches(sizes):
                is_whole = all(sizes[uid] <= BYTES_LIMIT for uid in batch)
                items = ["FLAGS", "BODY.PEEK[]" if is_whole else f"BODY.PEEK[]<0.{BYTES_LIMIT}>"]
                announced = sum(min(sizes[uid], BYTES_LIMIT) for uid in batch)
                yield from self._fetched(batch, items, _message, announced).values()

    def _fetched(
        self,
        uids: Sequence[int],
        items: list[str],
        reads: Callable[[int, Mapping[bytes, Any]], R],
        content: int = 0,
    ) -> dict[int, R]:
        """Return items of messages, in the order of UIDs; fetches again if some are gone.

        reads: makes an item of a UID and the server's fields.
        content: bytes of mail in the answer, at most.
        """

        def fetched() -> dict[int, R]:
            answer = self._client.fetch(list(uids), items)
            # The answer may have the flags of other messages.
            return {uid: reads(uid, answer[uid]) for uid in sorted(uids) if uid in answer}

        for attempt in range(_ATTEMPTS + 1):
            try:
                return self._ask(fetched, content=content) if uids else {}
            except ImapRefusalError as error:  # another client has just moved one
                if "EXPUNGEISSUED" not in str(error) or attempt == _ATTEMPTS:
                    raise
                self._ask(self._client.noop)
                uids = self.existing(uids)
        raise AssertionError

    def source_of(self, folder: str, uid: int) -> str:
        """Return the address of a message."""
        account = self.account
        return FolderAddress(account.user, account.host, account.port, folder, uid).text

    # Changes

    def junk_keyword(self, folder: Folder, junk: str) -> str:
        """Return the keyword for spam that messages of the open folder can take; "" for none."""
        return next((k for k in JUNK_KEYWORDS if {"\\*", k.lower()} & folder.keywords), "")

    def move(self, uids: Sequence[int], folder: str, keyword: str = "") -> list[int]:
        """Move messages of the open folder to another one, with MOVE (RFC 6851); returns them.

        keyword: that they get before.
        """
        if keyword:
            self.add_flag(uids, keyword)
        self._ask(lambda: self._client.move(list(uids), folder), folder)
        return list(uids)

    def copy(self, uids: Sequence[int], folder: str, keyword: str = "") -> None:
        """Copy messages of the open folder to another one: all of them or none."""
        if keyword:
            self.add_flag(uids, keyword)
        self._ask(lambda: self._client.copy(list(uids), folder), folder)

    def add_flag(self, uids: Sequence[int], flag: str) -> None:
        """Set a flag or keyword on messages of the open folder."""
        for piece in _pieces(sorted(uids), _UIDS_DESCRIBED):
            self._ask(partial(self._client.add_flags, piece, [flag], silent=True))

    def expunge(self, uids: Sequence[int]) -> None:
        """Remove messages that are \\Deleted, by their UIDs: never others' messages."""
        self._ask(lambda: self._client.uid_expunge(list(uids)))

    def wait(self, until: Callable[[float, int | None], object], interval: float) -> None:
        """Wait until mail may have come to the open folder, or the time is over.

        until: waits so many seconds, or until a descriptor can be read.
        interval: seconds to wait if the server has no IDLE.
        """
        if self.supports("IDLE"):
            self._ask(self._client.idle)
            if not self._client.has_more():
                until(_IDLE_LIMIT, self._client.socket().fileno())
            self._ask(self._client.idle_done)
        else:
            until(interval, None)
            self._ask(self._client.noop)

    def _ask(self, command: Callable[[], R], folder: str = "", content: int = 0) -> R:
        """Return the server's answer; raises UnavailableError, or ImapRefusalError if it refuses.

        command: sends a command and reads the answer; may raise any error.
        content: bytes of mail in the answer, at most.
        """
        try:
            self._client.allow(content)
            return command()
        except Exception as error:
            raise command_error(self.account, error, folder) from error


def resolve_folder(name: str, folders: Iterable[ListedFolder]) -> str:
    """Return the folder that a user names, perhaps in another spelling; unknown names unchanged.

    The separator may be written as /, letters may be composed differently, a dot may come first.
    """

    def normal(name: str, separator: str) -> str:
        name = unicodedata.normalize("NFC", name).removeprefix(".")
        return INBOX if name.upper() == INBOX else name.replace(separator or "/", "/")

    names = [f.name for f in folders if normal(f.name, f.separator) == normal(name, f.separator)]
    return name if name in names else (names or [name])[0]


def read_folder(
    account: Account, address: FolderAddress, only_read: bool
) -> Iterator[tuple[str, bytes]]:
    """Yield the address and bytes of each message of a folder, or of the one that is addressed.

    only_read: leave out unread messages.
    Raises AccountError.  Nothing in the folder is changed.
    """
    criteria = READ if only_read else ("ALL",)
    with Connection(account) as connection:
        address = address._replace(folder=connection.select(address.folder, readonly=True).name)
        if address.uid is None:
            uids = connection.search(criteria)
        elif not (uids := connection.existing([address.uid], *criteria)):
            raise AccountError(
                f"{address.text}: message not found; use a name that nbspam classify prints"
            )
        for message in connection.messages(uids):
            yield address._replace(uid=message.uid).text, message.content


# Answers


def _size(_: int, fields: Mapping[bytes, Any]) -> int:
    return max(0, int(fields[b"RFC822.SIZE"]))


def _message(uid: int, fields: Mapping[bytes, Any]) -> FetchedMessage:
    flags = {_text(flag) for flag in fields.get(b"FLAGS", ())}
    content = fields.get(b"BODY[]", fields.get(b"BODY[]<0>"))
    if isinstance(content, int):  # a message of digits only, in quotes
        content = str(content).encode()
    if not isinstance(content, bytes | None):
        raise TypeError
    return FetchedMessage(uid, "\\Seen" in flags, content or b"")


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _lower_case(flags: Iterable[object]) -> frozenset[str]:
    return frozenset(_text(flag).lower() for flag in flags)


def _pieces(uids: Sequence[int], size: int) -> Iterator[list[int]]:
    for start in range(0, len(uids), size):
        yield list(uids[start : start + size])


def _batches(sizes: Mapping[int, int]) -> Iterator[list[int]]:
    """Yield UIDs of messages to fetch together: small ones, or one large one."""
    batch: list[int] = []
    total = 0
    for uid, size in sizes.items():
        if batch and (total + size > _BYTES_FETCHED or len(batch) == _UIDS_FETCHED):
            yield batch
            batch, total = [], 0
        batch.append(uid)
        total += size
    if batch:
        yield batch
