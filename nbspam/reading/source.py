"""The name of a source and its bytes, the options for reading sources, and the skipped messages.

`sources.py` recognises the kind of a source.  Standard input and pipes, which can be read only
once, are opened here.
"""

import io
import stat
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from nbspam.errors import Remedy, SourceError, one_line
from nbspam.reading.charsets import bom_encoding
from nbspam.reading.compression import bare_suffix, decompress, open_bytes, packed_stream
from nbspam.reading.message import BYTES_LIMIT, RawMessage, problem_of

if TYPE_CHECKING:  # importing pathlib takes 3 ms, and classifying one message does not need it
    from pathlib import Path


STDIN = "-"
_IMAP_SCHEMES = ("imaps://", "imap://")  # prefixes of an IMAP folder's name
# Values of `input_format`; `sources.py` maps each value to a kind of source.
MESSAGE, LINES, MBOX_FORMAT = "message", "lines", "mbox"
TABLE_FORMATS = ("tsv", "csv", "jsonl", "json", "parquet")
INPUT_FORMATS = (*TABLE_FORMATS, LINES, MBOX_FORMAT, MESSAGE)
PARQUET = b"PAR1"  # the first bytes of every Parquet file
SAMPLE_BYTES = 1 << 16  # bytes by which a source's kind is recognised
NAMED_LIMIT = 10  # skipped messages named at the end, because nobody reads a million names
_MAX_WARNED = 3  # skipped messages named in a warning
_MAX_DRAINED = 4_096  # MiB of a pipe that are read and dropped: /dev/zero has no end


# Skipped messages


class Skipped(NamedTuple):
    """A message that could not be read, or is empty."""

    source: str
    reason: str
    remedy: Remedy | None = None
    is_error: bool = True  # under `strict`


class Spelling(NamedTuple):
    """A label as it was written, in rows that another process has read."""

    label: str
    written: str


Note = Skipped | Spelling  # a note between the messages of a source


class Skips:
    """The bad rows and files, which are skipped, counted, and named at the end.

    Under `strict` the first bad row or file is an error instead.
    """

    def __init__(self, strict: bool = False) -> None:
        self.strict = strict
        self.count = 0
        self.copies = 0  # copies of mails that were read before
        self._first: list[SourceError] = []  # NAMED_LIMIT at most
        self.spellings: dict[str, set[str]] = {}  # label -> its written forms

    def __call__(self, source: str, reason: str, remedy: Remedy | None = None) -> None:
        """Note that `source` was skipped; raises SourceError under `strict`."""
        self.record(Skipped(source, reason, remedy))

    def note(self, source: str, reason: str, remedy: Remedy | None = None) -> None:
        """Note that `source` was left out; no error even under `strict`."""
        self.record(Skipped(source, reason, remedy, is_error=False))

    def record_spelling(self, label: str, written: str) -> None:
        """Note how a label was written; keeps a few written forms of each label."""
        known = self.spellings.setdefault(label, set())
        if len(known) < NAMED_LIMIT:
            known.add(written)

    @property
    def merged_label_notes(self) -> list[str]:
        """A sentence for each label with several written forms, which are one class."""
        return [
            f"the labels {', '.join(map(repr, sorted(written)))} are one class, {label}"
            for label, written in sorted(self.spellings.items())
            if len(written) > 1
        ]

    def record(self, note: Note) -> None:
        """Record a note of another process; raises SourceError for an error under `strict`."""
        if isinstance(note, Spelling):
            self.record_spelling(*note)
            return
        source, reason, remedy, is_error = note
        if self.strict and is_error:
            raise SourceError(f"{source}: {reason}", remedy or Remedy.LEAVE_OUT_STRICT)
        self.count += 1
        if len(self._first) < NAMED_LIMIT:
            self._first.append(SourceError(f"{source}: {reason}", remedy))

    def sentence(self, n: int) -> str:
        """Return a warning for a program; n: how many messages were read."""
        first = "; ".join(map(one_line, self.named[:_MAX_WARNED]))
        more = "; …" * (self.count > _MAX_WARNED)
        share = f"{self.count:,} of {n + self.count:,} messages were skipped"
        return f"{share} ({first}{more}); strict=True stops at the first"

    @property
    def named(self) -> list[str]:
        """The first skipped messages, each with the reason."""
        return [str(skipped) for skipped in self._first]

    def report(self) -> list[str]:
        """Return the lines to print at the end; empty when nothing was skipped."""
        if not self.count:
            return []
        lines = [f"skipped {self.count} item{'s' * (self.count > 1)} that could not be read:"]
        lines += [f"  {skipped}" for skipped in self._first]
        if self.count > len(self._first):
            lines.append(f"  … and {self.count - len(self._first)} more")
        return lines


class CollectedNotes(Skips):
    """The notes on rows that a worker reads, for the `Skips` of the program that was started."""

    def __init__(self) -> None:
        super().__init__()
        self.notes: list[Note] = []

    def record(self, note: Note) -> None:
        """Keep a note."""
        self.notes.append(note)

    def record_spelling(self, label: str, written: str) -> None:
        """Keep a label's written form as a note, once."""
        if written not in self.spellings.get(label, ()):
            super().record_spelling(label, written)
            self.notes.append(Spelling(label, written))


# Options


class TableOptions(NamedTuple):
    """The user's options for tables; an option that is None is recognised by content."""

    text_column: str | None = None
    label_column: str | None = None
    encoding: str | None = None
    header_row: bool | None = None  # whether the first row names the columns
    # (text column, label column) pairs that the model has learned from.
    learned: tuple[tuple[str, str], ...] = ()


def column_name(column: str | int | None) -> str | None:
    """Convert a column's name for the options: a frame or an array may number its columns."""
    return None if column is None else str(column)


def has_more(stream: io.BufferedReader, patience: float) -> bool:
    """Return whether a stream has bytes to read, or has ended, within `patience` seconds."""
    import select  # not loaded for a mail

    try:
        return bool(select.select([stream.fileno()], [], [], patience)[0])
    except (OSError, ValueError):  # a stream in memory or an archive, which never waits for long
        return True


class LiveInput:
    """The stream that is being read, if its messages are classified as they arrive."""

    stream: io.BufferedReader | None = None

    def would_block(self) -> bool:
        """Return whether reading more would wait for the stream's writer, such as `tail -f`.

        May return True while lines are in memory; these lines are then classified one by one.
        """
        return self.stream is not None and not has_more(self.stream, 0)


class ReadingOptions(NamedTuple):
    """The user's options for reading sources, and callbacks for notes and recognised columns."""

    table: TableOptions = TableOptions()
    input_format: str | None = None  # one of `INPUT_FORMATS`; not for folders
    seen: bool = False  # read only mail that its owner has read and not deleted (Maildir, mbox)
    # read the messages attached to messages instead of the messages themselves
    attached: bool = False
    require_content: bool = False  # skip empty messages, which cannot be learned
    outside: bool = False  # an index may name any file, and links may lead anywhere
    on_note: Callable[[SourceError], None] = lambda _: None  # called with each note
    on_columns: Callable[[tuple[str, str]], None] = lambda _: None  # called with `learned` names
    live_input: LiveInput | None = None  # set if messages are classified as they arrive
    by_range: bool = False  # yield a Parquet file's rows unread, for workers that have the file
    # Called with each row of a table, skipped or not, before its message is yielded: its source,
    # the column names (the same object for all rows), and the values (for JSON lines, the object).
    # Before the first row it is called with None for the values.
    on_row: Callable[[str, Sequence[str], Any], None] | None = None
    # Real path of each source -> its label ("" if it has labels of its own).  A source inside a
    # folder that is also a source is not read as a part of the folder.
    source_labels: Mapping[str, str] = {}
    # Yields the address and the bytes of each message in an IMAP folder; called with the folder's
    # address, whether to leave out unread mail, and the Skips for messages that the server refuses.
    # Raises AccountError.
    read_imap_folder: Callable[[str, bool, Skips], Iterator[tuple[str, bytes]]] | None = None

    def with_learned_columns(self, columns: tuple[tuple[str, str], ...]) -> "ReadingOptions":
        """Add the columns that a model learned from, which tables may have."""
        return self._replace(table=self.table._replace(learned=columns))


# Sources


class Input:
    """A source: its name, and options.  The file's mode and first bytes are read when needed."""

    def __init__(
        self,
        name: str,
        options: ReadingOptions,
        skips: Skips,
        label: str | None = None,
        require_labels: bool = False,
    ) -> None:
        """label: the class that the user gives the messages.

        require_labels: whether the source must have labels of its own.
        """
        self.name, self.options, self.skips = name, options, skips
        self.label, self.require_labels = label, require_labels

    def entry(self, path: "Path", label: str | None = None) -> "Input":
        """Make the input for a file in a folder.

        label: the file's class; None: the folder's class.
        """
        label = self.label if label is None else label
        require_labels = self.require_labels and label is None
        return Input(str(path), self.options, self.skips, label, require_labels)

    def note(self, problem: str, remedy: Remedy | None = None, **details: str) -> None:
        """Tell the user about an uncertain choice."""
        self.options.on_note(SourceError(problem, remedy, **details))

    @property
    def is_imap_folder(self) -> bool:
        """Whether the source is a folder at a mail server and not a file."""
        return self.name[:8].lower().startswith(_IMAP_SCHEMES)

    @cached_property
    def path(self) -> "Path":
        """The source as a path."""
        from pathlib import Path

        return Path(self.name)

    @cached_property
    def mode(self) -> int:
        """The file's type and permissions; raises OSError or ValueError if there is no file."""
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
        """The source's name in errors, and in the names of its messages."""
        return self.name if self.name == STDIN else str(self.path)

    @property
    def stream_name(self) -> str:
        """The source's name in a sentence, if it is standard input or a pipe."""
        return "standard input" if self.name == STDIN else "the pipe"

    @cached_property
    def suffix(self) -> str:
        """The suffix that shows the format, in lower case, without an archive's suffix."""
        return bare_suffix(self.path)

    @cached_property
    def sample(self) -> bytes:
        """The first bytes of the file, decompressed."""
        with open_bytes(self.path) as stream:
            return stream.read(SAMPLE_BYTES)

    @cached_property
    def lines(self) -> list[str]:
        """The whole lines of the sample that are not blank."""
        text = self.sample.decode(bom_encoding(self.sample) or "utf-8", "replace")
        if len(self.sample) == SAMPLE_BYTES:
            text = text.rpartition("\n")[0]
        return [line for line in text.split("\n") if line.strip()]

    def open(self) -> io.BufferedReader:
        """Open standard input, a pipe or a file, decompressed; raises SourceError and OSError."""
        if self.name != STDIN:
            return open_bytes(self.path)
        if sys.stdin is None or sys.stdin.closed:
            raise SourceError("-: standard input is closed; pipe a message in, or name a file")
        stream = cast("io.BufferedReader", sys.stdin.buffer)
        return stream if stream.isatty() else decompress(stream)  # decompressing reads ahead


class SourceKind(NamedTuple):
    """One kind of source.

    read: yields the messages; raises NbspamError, OSError, or LookupError and UnicodeError for an
    encoding that does not exist or does not fit.
    refusal: why such a source has no labels; "" if it may have labels.
    """

    read: Callable[[Input], Iterator[RawMessage]]
    refusal: str = ""


# One message


def read_one(source: Input) -> Iterator[RawMessage]:
    """Yield the one message of standard input, a pipe or a file, whatever its content.

    Raises SourceError for an empty stream, if the message needs content.
    """
    stream = source.open()
    with nullcontext() if source.name == STDIN else stream:
        content = stream.read(BYTES_LIMIT)
        # The rest is read and dropped; the rest of an archive is not unpacked, because 4 MB may
        # unpack to 4 GB.
        rest = packed_stream(stream)
        # A stream that has ended is not read again, so one Ctrl-D at a terminal ends the message.
        is_over = rest is stream and len(content) < BYTES_LIMIT
        # otherwise a broken pipe may end the writer
        for _ in range(0 if is_over else _MAX_DRAINED):
            if not rest.read(1 << 20):
                break
    require_content = source.options.require_content
    if not require_content or content.strip():
        if require_content and (problem := problem_of(content, "")):
            raise SourceError(f"{source.name}: {problem}")
        yield RawMessage(source.name, source.label, content)
    elif source.is_file:
        note_empty(source)
    else:  # the command that should write the message has failed
        raise SourceError(
            f"{source.name}: {source.stream_name} is empty, so there is no message in it; check"
            " the command that writes it"
        )


def note_empty(source: Input) -> None:
    """Note that a file has no message, such as an empty mbox."""
    source.note(f"{source.path}: the file is empty; nothing is learned from it")
