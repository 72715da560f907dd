"""What a kind of source is: how it is recognised, whether it has labels, how it is read."""

import stat
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from nbspam.errors import Remedy, SourceError
from nbspam.reading.compression import bare_suffix, open_bytes
from nbspam.reading.raw_message import RawMessage
from nbspam.reading.skips import Skips
from nbspam.urls import is_url

if TYPE_CHECKING:  # importing it takes 3 ms, and classifying one message does without
    from io import BufferedReader
    from pathlib import Path

STDIN = "-"
_AT_SERVER = ("imaps://", "imap://")  # what the name of a folder at a server begins with
# How a source may be said to be read; `formats.py` has the kind of source of each.
MESSAGE, LINES, MBOX_FORMAT = "message", "lines", "mbox"
TABLE_FORMATS = ("tsv", "csv", "jsonl", "json", "parquet")
FILE_LISTS = {"files": b"\n", "files0": b"\0"}  # what ends each name
INPUT_FORMATS = (*TABLE_FORMATS, LINES, MBOX_FORMAT, *FILE_LISTS, MESSAGE)
SAMPLE_BYTES = 1 << 16  # in which a source's kind is recognised


class TableOptions(NamedTuple):
    """What the user says about a table; what is None, the program finds out."""

    text_column: str | None = None
    label_column: str | None = None
    encoding: str | None = None
    header_row: bool | None = None  # whether the first row names the columns


class Flow:
    """Whether the stream that is being read has nothing more to read just now."""

    def __init__(self) -> None:
        self._stream: BufferedReader | None = None

    def follow(self, stream: "BufferedReader") -> None:
        """Watch a stream from now on."""
        self._stream = stream

    def pauses(self) -> bool:
        """Return whether to read on would wait for whoever writes the stream.

        It may say so while some lines are in memory already: they are then answered one by one.
        """
        if self._stream is None:
            return False
        from nbspam.reading.flow import has_more  # one message does without

        return not has_more(self._stream, 0)


def _say_nothing(_: SourceError) -> None:
    """Do nothing."""


class ReadingOptions(NamedTuple):
    """How the user wants sources read."""

    table: TableOptions = TableOptions()
    input_format: str | None = None  # of what is no folder: one of `INPUT_FORMATS`
    is_format_default: bool = False  # a folder need not be told that it has none
    seen: bool = False  # of a Maildir or mbox, only mail that its owner has read and not deleted
    needs_content: bool = False  # an empty message is none: it is not to be learned
    outside: bool = False  # an index may name any file, and links may lead anywhere
    tell: Callable[[SourceError], None] = _say_nothing  # called with what is no error, to be said
    flow: Flow | None = None  # of messages that are to be answered as they come
    # Real paths of the sources that are given -> their labels ("": their own): what is inside a
    # folder that is given too is read as itself, and not as a part of the folder.
    given: Mapping[str, str] = {}
    # Yields of the messages of a folder at a server the address and the bytes; called with the
    # folder's address and whether only mail is wanted that was read.  Raises AccountError.
    at_server: Callable[[str, bool], Iterator[tuple[str, bytes]]] | None = None


class ReadingRequest(NamedTuple):
    """How the messages of one source are read."""

    options: ReadingOptions
    skips: Skips
    label: str | None = None  # the class that the user gives the messages
    needs_labels: bool = False  # each message must have a label of its own


class Source:
    """A source by its name, with what its kind is recognised by; each is read when needed."""

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def is_at_server(self) -> bool:
        """Whether the source is a folder at a mail server, and no file."""
        return self.name[:8].lower().startswith(_AT_SERVER)

    @cached_property
    def path(self) -> "Path":
        """The source as a path; of a URL as what behaves like one."""
        if is_url(self.name):
            from nbspam.reading.remote import remote_path

            return remote_path(self.name)
        from pathlib import Path

        return Path(self.name)

    @cached_property
    def mode(self) -> int:
        """The type and permissions of the file; raises OSError or ValueError if there is none."""
        return self.path.stat().st_mode

    @property
    def is_folder(self) -> bool:
        """Whether the source is a folder, or a link to one."""
        return stat.S_ISDIR(self.mode)

    @property
    def is_file(self) -> bool:
        """Whether the source is a regular file, or a link to one."""
        return stat.S_ISREG(self.mode)

    @cached_property
    def suffix(self) -> str:
        """The suffix that shows the format, in lower case, without that of an archive."""
        return bare_suffix(self.path)

    @cached_property
    def sample(self) -> bytes:
        """The first bytes of the file, decompressed."""
        with open_bytes(self.path) as stream:
            return stream.read(SAMPLE_BYTES)

    @cached_property
    def lines(self) -> list[str]:
        """The whole lines of the sample that are not blank."""
        text = self.sample.decode("utf-8", "replace")
        if len(self.sample) == SAMPLE_BYTES:
            text = text.rpartition("\n")[0]
        return [line for line in text.split("\n") if line.strip()]


class Labels(Enum):
    """Whether the messages of a source have labels of their own."""

    NEVER = "never"  # their class is what the user says, or unknown
    ALLOWED = "allowed"  # they have, and a label that the user gives replaces them
    ALWAYS = "always"  # they have, and the user cannot give another
    ON_REQUEST = "on request"  # recognised only where labels are needed


class SourceKind(NamedTuple):
    """One kind of source.

    is_recognised: whether a source that no earlier kind in the registry recognised is of this kind.
    read: yields the messages; raises NbspamError, OSError, or LookupError and UnicodeError for an
    encoding that does not exist or does not fit.
    """

    labels: Labels
    is_recognised: Callable[[Source, ReadingOptions], bool]
    read: Callable[[Source, ReadingRequest], Iterator[RawMessage]]
    refusal: str = ""  # why its labels cannot be read (NEVER) or replaced (ALWAYS)
    remedy: Remedy | None = Remedy.GIVE_LABEL  # what fixes that; None: the refusal says so
