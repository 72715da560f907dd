"""A source of messages, the user's options for reading it, and the messages that were skipped.

Standard input and pipes, which can be read once only, are opened here.
"""

import io
import stat
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from nbspam.errors import Remedy, SourceError, one_line
from nbspam.names import is_url
from nbspam.reading.charsets import marked_encoding
from nbspam.reading.compression import bare_suffix, decompressed, open_bytes, packed_stream
from nbspam.reading.message import BYTES_LIMIT, RawMessage, problem_of

if TYPE_CHECKING:  # importing it takes 3 ms, and classifying one message does without
    from pathlib import Path


STDIN = "-"
_IMAP_SCHEMES = ("imaps://", "imap://")  # what the name of an IMAP folder begins with
# Values of `input_format`; `sources.py` has the kind of source of each.
MESSAGE, LINES, MBOX_FORMAT = "message", "lines", "mbox"
TABLE_FORMATS = ("tsv", "csv", "jsonl", "json", "parquet")
INPUT_FORMATS = (*TABLE_FORMATS, LINES, MBOX_FORMAT, MESSAGE)
PARQUET = b"PAR1"  # the first bytes of every Parquet file
SAMPLE_BYTES = 1 << 16  # in which a source's kind is recognised
NAMED_LIMIT = 10  # skipped messages named at the end; a log of a million bad rows helps nobody
_WARNED = 3  # of them, in a warning
_DRAINED = 4_096  # MiB of a pipe that are read and dropped: /dev/zero has no end


# Skipped messages


class Skipped(NamedTuple):
    """A message that could not be read, or is empty."""

    source: str
    reason: str
    remedy: Remedy | None = None
    is_error: bool = True  # under `strict`


class Spelling(NamedTuple):
    """A label as it was written."""

    label: str
    written: str


ReadingNote = Skipped | Spelling  # which comes among the messages of a source


class Skips:
    """The bad rows and files, which are skipped, counted, and named at the end.

    Under `strict` the first is an error instead.
    """

    def __init__(self, strict: bool = False) -> None:
        self.strict = strict
        self.count = 0
        self._first: list[SourceError] = []  # NAMED_LIMIT at most
        self.spellings: dict[str, set[str]] = {}  # label -> as it was written

    def __call__(self, source: str, reason: str, remedy: Remedy | None = None) -> None:
        """Note that `source` was skipped; raises SourceError under `strict`."""
        self.take(Skipped(source, reason, remedy))

    def note(self, source: str, reason: str, remedy: Remedy | None = None) -> None:
        """Note that `source` was left out; no error even under `strict`."""
        self.take(Skipped(source, reason, remedy, is_error=False))

    def spelled(self, label: str, written: str) -> None:
        """Note how a label was written; a few ways of each are kept."""
        known = self.spellings.setdefault(label, set())
        if written not in known and len(known) < NAMED_LIMIT:
            known.add(written)
            self.take(Spelling(label, written))

    @property
    def merged(self) -> list[str]:
        """A sentence for each label that was written in several ways, which are one class."""
        return [
            f"the labels {', '.join(map(repr, sorted(written)))} are one class, {label}"
            for label, written in sorted(self.spellings.items())
            if len(written) > 1
        ]

    def take(self, what: ReadingNote) -> None:
        """Note a skipped message or a label; raises SourceError for an error under `strict`."""
        if isinstance(what, Spelling):
            self.spellings.setdefault(what.label, set()).add(what.written)
            return
        source, reason, remedy, is_error = what
        if self.strict and is_error:
            raise SourceError(f"{source}: {reason}", remedy or Remedy.LEAVE_OUT_STRICT)
        self.count += 1
        if len(self._first) < NAMED_LIMIT:
            self._first.append(SourceError(f"{source}: {reason}", remedy))

    def sentence(self, n: int) -> str:
        """Return a warning for a program; n: how many messages were read."""
        first = "; ".join(map(one_line, self.named[:_WARNED]))
        more = "; …" * (self.count > _WARNED)
        share = f"{self.count:,} of {n + self.count:,} messages were skipped"
        return f"{share} ({first}{more}); strict=True stops at the first"

    @property
    def named(self) -> list[str]:
        """The first skipped messages, each with the reason."""
        return [str(skipped) for skipped in self._first]

    def report(self, remedies: Mapping[Remedy, str] | None = None) -> list[str]:
        """Return the lines to print at the end; empty when nothing was skipped.

        remedies: the words for each remedy, as in `NbspamError.sentence`.
        """
        if not self.count:
            return []
        lines = [f"skipped {self.count} item{'s' * (self.count > 1)} that could not be read:"]
        lines += [f"  {skipped.sentence(remedies or {})}" for skipped in self._first]
        if self.count > len(self._first):
            lines.append(f"  … and {self.count - len(self._first)} more")
        return lines


# Options


class TableOptions(NamedTuple):
    """The user's options for tables; None for what is to be recognised."""

    text_column: str | None = None
    label_column: str | None = None
    encoding: str | None = None
    header_row: bool | None = None  # whether the first row names the columns
    # Names of the columns of texts and labels that the model has learned from.
    learned: tuple[tuple[str, str], ...] = ()


def has_more(stream: io.BufferedReader, patience: float) -> bool:
    """Return whether a stream has bytes to read, or has ended, within so many seconds."""
    import select  # not loaded for a mail

    try:
        return bool(select.select([stream.fileno()], [], [], patience)[0])
    except (OSError, ValueError):  # in memory, or an archive: reading never waits for long
        return True


class LiveInput:
    """The stream that is being read, if its messages are to be classified as they come."""

    stream: io.BufferedReader | None = None

    def would_block(self) -> bool:
        """Return whether reading on would wait for the stream's writer, such as `tail -f`.

        It may be True while lines are in memory: they are then classified one by one.
        """
        return self.stream is not None and not has_more(self.stream, 0)


class ReadingOptions(NamedTuple):
    """The user's options for reading sources, and who hears of what was recognised."""

    table: TableOptions = TableOptions()
    input_format: str | None = None  # one of `INPUT_FORMATS`; not for folders
    seen: bool = False  # of a Maildir or mbox, only mail that its owner has read and not deleted
    attached: bool = False  # the messages attached to messages, in their place
    needs_content: bool = False  # an empty message is skipped, as it cannot be learned
    outside: bool = False  # an index may name any file, and links may lead anywhere
    tell: Callable[[SourceError], None] = lambda _: None  # called with each note
    on_columns: Callable[[tuple[str, str]], None] = lambda _: None  # called with `learned` names
    live_input: LiveInput | None = None  # of messages that are to be classified as they come
    # Called with each row of a table, skipped or not, before its message comes: its source, the
    # names of the columns (one object for a table), and the values or, of JSON lines, the object.
    # Before the first row it is called with None for the values.
    on_row: Callable[[str, Sequence[str], Any], None] | None = None
    # Real path of each source -> its label ("" if it has labels of its own).  A source inside
    # another one, a folder, is read as a source and not as a part of the folder.
    source_labels: Mapping[str, str] = {}
    # Yields the address and the bytes of each message of an IMAP folder; called with the folder's
    # address and whether to leave out unread mail.  Raises AccountError.
    read_imap_folder: Callable[[str, bool], Iterator[tuple[str, bytes]]] | None = None

    def with_learned_columns(self, columns: tuple[tuple[str, str], ...]) -> "ReadingOptions":
        """Return options for tables that may have the columns that a model learned from."""
        return self._replace(table=self.table._replace(learned=columns))


class ReadingRequest(NamedTuple):
    """How the messages of one source are read."""

    options: ReadingOptions
    skips: Skips
    label: str | None = None  # the class that the user gives the messages
    needs_labels: bool = False  # whether the source must have labels of its own


# Sources


class Source:
    """A source by its name; what its kind is recognised by is read when it is first needed."""

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def is_imap_folder(self) -> bool:
        """Whether the source is a folder at a mail server, and no file."""
        return self.name[:8].lower().startswith(_IMAP_SCHEMES)

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
        """Its name in errors, and in the names of its messages."""
        return self.name if self.name == STDIN else str(self.path)

    @property
    def stream_name(self) -> str:
        """What a sentence calls it, if it is standard input or a pipe."""
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
        return stream if stream.isatty() else decompressed(stream)  # this reads ahead


class SourceKind(NamedTuple):
    """One kind of source.

    read: yields the messages; raises NbspamError, OSError, or LookupError and UnicodeError for an
    encoding that does not exist or does not fit.
    refusal: why it has no labels, or why the user cannot give a label to a source with labels.
    """

    read: Callable[[Source, ReadingRequest], Iterator[RawMessage]]
    refusal: str = ""
    has_labels: bool = False


# One message


def read_one(source: Source, request: ReadingRequest) -> Iterator[RawMessage]:
    """Yield the one message of standard input, a pipe or a file, whatever its content.

    Raises SourceError for an empty stream, if the message needs content.
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
        note_empty(source, request)
    else:  # the command that should write a message has failed
        raise SourceError(
            f"{source.name}: {source.stream_name} is empty, so there is no message in it; check"
            " the command that writes it"
        )


def note_empty(source: Source, request: ReadingRequest) -> None:
    """Tell the user that a file has no message, such as an empty mbox."""
    problem = f"{source.path}: the file is empty; nothing is learned from it"
    request.options.tell(SourceError(problem))
