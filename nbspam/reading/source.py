"""A source of messages: how the user wants it read, what its kind is, what could not be read of it.

Standard input and pipes are opened here, which are read once.
"""

import io
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, cast

from nbspam.errors import Remedy, SourceError, one_line
from nbspam.names import is_url
from nbspam.reading.charsets import marked_encoding
from nbspam.reading.compression import bare_suffix, decompressed, open_bytes, packed_stream
from nbspam.reading.message import BYTES_LIMIT, RawMessage, problem_of

if TYPE_CHECKING:  # importing it takes 3 ms, and classifying one message does without
    from pathlib import Path


STDIN = "-"
_AT_SERVER = ("imaps://", "imap://")  # what the name of an IMAP folder begins with
# How a source may be said to be read; `sources.py` has the kind of source of each.
MESSAGE, LINES, MBOX_FORMAT = "message", "lines", "mbox"
TABLE_FORMATS = ("tsv", "csv", "jsonl", "json", "parquet")
INPUT_FORMATS = (*TABLE_FORMATS, LINES, MBOX_FORMAT, MESSAGE)
SAMPLE_BYTES = 1 << 16  # in which a source's kind is recognised
NAMED_LIMIT = 10  # enough to see what is wrong; a log of a million bad rows helps nobody
_WARNED = 3  # of them, in a warning
_DRAINED = 4_096  # MiB of a pipe that are read and dropped, at most: /dev/zero has no end


# What cannot be read


class Skipped(NamedTuple):
    """A message that could not be read, or has nothing in it."""

    source: str
    reason: str
    remedy: Remedy | None = None
    is_error: bool = True  # under `strict`


class Skips:
    """Called with each bad row or file: skipped, counted, and named at the end.

    Under `strict` the first of them is an error instead.
    """

    def __init__(self, strict: bool = False) -> None:
        self.strict = strict
        self.count = 0
        self._first: list[SourceError] = []  # NAMED_LIMIT at most

    def __call__(self, source: str, reason: str, remedy: Remedy | None = None) -> None:
        """Note that `source` was skipped; raises SourceError under `strict`."""
        self.take(Skipped(source, reason, remedy))

    def note(self, source: str, reason: str, remedy: Remedy | None = None) -> None:
        """Note that `source` was left out, which is not an error even under `strict`."""
        self.take(Skipped(source, reason, remedy, is_error=False))

    def take(self, skipped: Skipped) -> None:
        """Note what was skipped, here or elsewhere; raises SourceError for an error if strict."""
        source, reason, remedy, is_error = skipped
        if self.strict and is_error:
            raise SourceError(f"{source}: {reason}", remedy or Remedy.LEAVE_OUT_STRICT)
        self.count += 1
        if len(self._first) < NAMED_LIMIT:
            self._first.append(SourceError(f"{source}: {reason}", remedy))

    def merge(self, other: "Skips") -> None:
        """Add what another reader skipped after this one."""
        self.count += other.count
        self._first += other._first[: NAMED_LIMIT - len(self._first)]

    def sentence(self, n: int) -> str:
        """Return what a program is told of them; n: how many messages were read."""
        shown = "; ".join(map(one_line, self.named[:_WARNED]))
        more = "; …" * (self.count > _WARNED)
        of = f"{self.count:,} of {n + self.count:,} messages were skipped"
        return f"{of} ({shown}{more}); strict=True stops at the first"

    @property
    def named(self) -> list[str]:
        """The first things skipped, each with the reason."""
        return [str(skipped) for skipped in self._first]

    def report(self, remedies: Mapping[Remedy, str] | None = None) -> list[str]:
        """Return the lines to show the user at the end; empty when nothing was skipped.

        remedies: the words of whoever reports, as in `NbspamError.sentence`.
        """
        if not self.count:
            return []
        lines = [f"skipped {self.count} item{'s' * (self.count > 1)} that could not be read:"]
        lines += [f"  {skipped.sentence(remedies or {})}" for skipped in self._first]
        if self.count > len(self._first):
            lines.append(f"  … and {self.count - len(self._first)} more")
        return lines


# What the user asks for


class TableOptions(NamedTuple):
    """What the user says about a table; what is None, the program finds out."""

    text_column: str | None = None
    label_column: str | None = None
    encoding: str | None = None
    header_row: bool | None = None  # whether the first row names the columns
    # Names of the columns with texts and labels that the model has learned from.
    learned: tuple[tuple[str, str], ...] = ()


def has_more(stream: io.BufferedReader, patience: float) -> bool:
    """Return whether a stream has bytes to read, or has ended, within so many seconds."""
    import select  # a mail is read without

    try:
        return bool(select.select([stream.fileno()], [], [], patience)[0])
    except (OSError, ValueError):  # in memory, or an archive: it never waits for long
        return True


class Flow:
    """Whether the stream that is being read, as of `tail -f`, has nothing more to read just now."""

    stream: io.BufferedReader | None = None

    def pauses(self) -> bool:
        """Return whether to read on would wait for whoever writes the stream.

        It may say so while some lines are in memory already: they are then answered one by one.
        """
        return self.stream is not None and not has_more(self.stream, 0)


class ReadingOptions(NamedTuple):
    """How the user wants sources read."""

    table: TableOptions = TableOptions()
    input_format: str | None = None  # of what is no folder: one of `INPUT_FORMATS`
    is_format_default: bool = False  # a folder need not be told that it has none
    seen: bool = False  # of a Maildir or mbox, only mail that its owner has read and not deleted
    attached: bool = False  # what is attached to messages, as it was forwarded, and not they
    needs_content: bool = False  # an empty message is none: it is not to be learned
    outside: bool = False  # an index may name any file, and links may lead anywhere
    tell: Callable[[SourceError], None] = lambda _: None  # called with what is no error, to be said
    hear_columns: Callable[[tuple[str, str]], None] = lambda _: None  # called with such names
    flow: Flow | None = None  # of messages that are to be answered as they come
    # Real paths of the sources that are given -> their labels ("": their own): what is inside a
    # folder that is given too is read as itself, and not as a part of the folder.
    given: Mapping[str, str] = {}
    # Yields of the messages of an IMAP folder the address and the bytes; called with the
    # folder's address and whether only mail is wanted that was read.  Raises AccountError.
    at_server: Callable[[str, bool], Iterator[tuple[str, bytes]]] | None = None

    def like(self, columns: tuple[tuple[str, str], ...]) -> "ReadingOptions":
        """Return them for tables that have the columns which a model learned from, perhaps."""
        return self._replace(table=self.table._replace(learned=columns))


class ReadingRequest(NamedTuple):
    """How the messages of one source are read."""

    options: ReadingOptions
    skips: Skips
    label: str | None = None  # the class that the user gives the messages
    needs_labels: bool = False  # whether the source must have labels of its own


# What there is


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
        """The source as a path, or a URL as a `RemoteFile`, which readers use alike."""
        if is_url(self.name):
            from nbspam.reading.remote import RemoteFile

            return cast("Path", RemoteFile(self.name))
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
        return self.name != STDIN and stat.S_ISREG(self.mode)

    @property
    def title(self) -> str:
        """Its name in messages and errors."""
        return self.name if self.name == STDIN else str(self.path)

    @property
    def stream_name(self) -> str:
        """What it is called in a sentence; of standard input or a pipe."""
        return "standard input" if self.name == STDIN else "the pipe"

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
        text = self.sample.decode(marked_encoding(self.sample) or "utf-8", "replace")
        if len(self.sample) == SAMPLE_BYTES:
            text = text.rpartition("\n")[0]
        return [line for line in text.split("\n") if line.strip()]

    def opened(self) -> io.BufferedReader:
        """Return standard input, a pipe or a file, decompressed; raises SourceError and OSError."""
        if self.name != STDIN:
            return open_bytes(self.path)
        if sys.stdin is None or sys.stdin.closed:
            raise SourceError("-: standard input is closed; pipe a message in, or name a file")
        stream = cast("io.BufferedReader", sys.stdin.buffer)
        return stream if stream.isatty() else decompressed(stream)  # which would read ahead


class SourceKind(NamedTuple):
    """One kind of source.

    read: yields the messages; raises NbspamError, OSError, or LookupError and UnicodeError for an
    encoding that does not exist or does not fit.
    refusal: why it is no source of labels, or, of one with labels, why the user cannot give others.
    """

    read: Callable[[Source, ReadingRequest], Iterator[RawMessage]]
    refusal: str = ""
    has_labels: bool = False


# One message


def read_one(source: Source, request: ReadingRequest) -> Iterator[RawMessage]:
    """Yield the one message of standard input, a pipe or a file, whatever is in it.

    Raises SourceError for a stream with nothing in it, where the message needs content.
    """
    stream = source.opened()
    with nullcontext() if source.name == STDIN else stream:
        content = stream.read(BYTES_LIMIT)
        # The rest is read and dropped, of an archive as it is: 4 MB may unpack to 4 GB.
        rest = packed_stream(stream)
        is_over = rest is stream and len(content) < BYTES_LIMIT  # at a terminal, one Ctrl-D ends it
        for _ in range(0 if is_over else _DRAINED):  # the writer may not survive a broken pipe
            if not rest.read(1 << 20):
                break
    if not request.options.needs_content or content.strip():
        if request.options.needs_content and (problem := problem_of(content, "")):
            raise SourceError(f"{source.name}: {problem}")
        yield RawMessage(source.name, request.label, content)
    elif source.is_file:
        tell_empty(source, request)
    else:  # what should have written a message has failed
        raise SourceError(
            f"{source.name}: {source.stream_name} is empty, so there is no message in it; check"
            " the command that writes it"
        )


def tell_empty(source: Source, request: ReadingRequest) -> None:
    """Tell the user that a file has no message in it, as an empty mbox."""
    problem = f"{source.path}: the file is empty; nothing is learned from it"
    request.options.tell(SourceError(problem))
