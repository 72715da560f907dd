"""One message: its headers unchanged, and its parts decoded to text.

The standard library's email package is correct for valid mail and slow to start (its import costs
as much as scoring a message); spam is seldom valid.  So this reader makes a message of any bytes:
unparsable bytes are text, undecodable bytes are read as Windows-1252, and every loop has a bound.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

from nbspam.errors import SourceError
from nbspam.names import MAILDIR_PARTS, remove_flags
from nbspam.patterns import lazy_pattern
from nbspam.reading.charsets import decode
from nbspam.reading.compression import open_bytes, unpack, why_not_a_message
from nbspam.reading.header_fields import (
    HEAD,
    Header,
    decode_words,
    message_id,
    split_header,
)
from nbspam.reading.marks import is_known_field, remove_marks
from nbspam.reading.mime import (
    LOWEST_OF_TEXT,
    Part,
    attached_messages,
    fit_to_limit,
    is_html,
    mime_parts,
    normalize_line_ends,
)

if TYPE_CHECKING:  # importing pathlib takes 3 ms, and classifying one message does not need it
    from collections.abc import Iterable
    from io import BufferedReader
    from pathlib import Path

BYTES_LIMIT = 16 << 20  # bytes of one message; a larger one is never called ham


class Message(NamedTuple):
    """A message as the tokenizer reads it."""

    headers: list[Header]  # (name in lower case, value unfolded but not decoded), in order
    parts: list[Part]
    limits: frozenset[str] = frozenset()  # the names of the exceeded limits
    # why the bytes are not a message, with the remedy; with a problem, all other fields are empty
    problem: str = ""
    head: bytes = b""  # the unchanged start of a mail, for readers that are more strict

    @property
    def is_empty(self) -> bool:
        """Whether the message has no header and no text except blanks."""
        return not self.headers and not any(part.text.strip() for part in self.parts)

    def header(self, name: str) -> str:
        """Return the first value of the header, decoded, or an empty string."""
        return next((decode_words(value) for key, value in self.headers if key == name), "")


FROM_LINE = lazy_pattern(rb">?From \S+ +(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? [^\n]*\d:\d\d[^\n]*\n?")
# Lines that may precede a header: blank lines, and From_ lines of an mbox, of UUCP or of a mail
# that was piped twice; also a few odd lines, if several usual fields follow.
_BEFORE = lazy_pattern(rb"(?:[ \t]*\n|>*From [^\n]*\n)+")
# tried first, so that the pattern is seldom compiled
_BEFORE_STARTS = b"\n", b" ", b"\t", b">", b"From "
_ODD_LINES, _ODD_LIMIT, _FIELDS_AFTER = 3, 1_000, 2  # lines, bytes of a line, usual fields
_USUAL = frozenset("from to subject date message-id received return-path mime-version".split())
# Apple Mail's .emlx: how many bytes the message has, the message, and a property list.
_EMLX = lazy_pattern(rb"(\d{1,10})[ \t]*\n")
_PLIST = lazy_pattern(rb"\s*<\?xml[^>]*>\s*<!DOCTYPE plist")
_FILE_MARK = lazy_pattern(rb"\r?\n(?:\xff\xfe|\xfe\xff|\xef\xbb\xbf)")


def parse_text(text: str) -> Message:
    """Parse a message that is plain text, such as a table's row or a line of a file."""
    return _text_message(text, set())


def _text_message(text: str, limits: set[str]) -> Message:
    is_page = is_html("", "", text)
    [text] = fit_to_limit([text], [False], limits)
    return Message([], [Part("text/plain", text, is_page)], frozenset(limits))


def parse(raw: bytes, marks: tuple[str, ...] = (), name: str = "") -> Message:
    """Parse any bytes as a message; never raises.

    raw: a mail with its headers, or plain text; may be compressed.  Lines before the header are
    left out (but "From 9 on I am free" is a text), and so are nbspam's own marks.
    marks: headers that are marks whatever their value.  name: the file's name.
    Reads at most BYTES_LIMIT bytes and TEXT_LIMIT characters of text.
    """
    raw = unpack(raw, BYTES_LIMIT)
    limits = {"bytes"} if len(raw) >= BYTES_LIMIT else set()
    data = raw = _strip_plist(remove_marks(raw[:BYTES_LIMIT], marks))
    # nbspam adds an empty line after its marks to a text without a header.
    if _FILE_MARK.match(raw):
        raw = raw.lstrip(b"\r\n")
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):  # a file saved as "Unicode"
        raw = raw.decode("utf-16", "replace").encode("utf-8")
    raw = normalize_line_ends(raw)
    headers, body = _split_mail(raw, limits)
    if not headers:
        from_line = FROM_LINE.match(raw)
        text = raw[from_line.end() :] if from_line else raw
        decoded = decode(text.lstrip(b"\n"), "")
        if problem := why_not_a_message(data, decoded, name):
            return Message([], [], problem=problem)
        return _text_message(decoded, limits)
    parts = mime_parts(headers, body, limits)
    return Message(headers, parts, frozenset(limits), head=data[:HEAD])


def is_mail(sample: bytes) -> bool:
    """Return whether a file starts with a mail's header; sample: its first bytes."""
    return bool(_split_mail(normalize_line_ends(sample), set())[0])


def problem_of(content: bytes, name: str) -> str:
    """Describe why a file is not a message, with the remedy; "" for a message.

    content: the whole content, or its first bytes.
    """
    return "" if is_mail(content) else parse(content, name=name).problem


def _split_mail(raw: bytes, limits: set[str]) -> tuple[list[Header], bytes]:
    """Split a mail into header and body; the header of other bytes is []."""
    if raw.startswith(_BEFORE_STARTS) and (before := _BEFORE.match(raw)):
        raw = raw[before.end() :]
    headers, body = split_header(raw, limits)
    if any(is_known_field(name) for name, _ in headers):
        return headers, body
    end = 0
    for _ in range(_ODD_LINES):
        start, end = end, raw.find(b"\n", end, end + _ODD_LIMIT) + 1
        if not end or min(raw[start:end]) < LOWEST_OF_TEXT:  # binary, such as an archive
            break
        headers, body = split_header(raw[end:], limits)
        if len({name for name, _ in headers} & _USUAL) >= _FIELDS_AFTER:
            return headers, body
    return [], raw


def _strip_plist(raw: bytes) -> bytes:
    """Extract the message of an .emlx file; return other bytes unchanged."""
    if raw[:1].isdigit() and (first := _EMLX.match(raw)):
        end = first.end() + int(first[1])
        if _PLIST.match(raw, end):
            return raw[first.end() : end]
    return raw


def extract_attached(raw: bytes) -> list[bytes]:
    """Extract the messages attached to a mail: forwarded messages, and those in filter reports."""
    raw = normalize_line_ends(unpack(raw, BYTES_LIMIT))
    return attached_messages(*_split_mail(raw, set()))


class RawMessage(NamedTuple):
    """A message of a source, before it is parsed.

    Contains a file's path, not its content: the process that tokenizes the file opens it.
    """

    source: str  # a path, `path:line` of a row, `path:number` in an mbox, "-", `row:0`, `pair:0`
    label: str | None  # the class that its source or the user gives it
    content: "bytes | str | Path"  # a mail; plain text; a file with one message

    def messages(self, skips: Any) -> "Iterable[RawMessage]":  # source.py, with Skips, imports this
        """Return the message; a subclass for rows of a table reads them, and notes skipped rows."""
        return (self,)

    def message(self) -> Message:
        """Parse the message; raises SourceError when its file cannot be read."""
        content = self.content
        if isinstance(content, str):
            return parse_text(content)
        if isinstance(content, bytes):
            return parse(content)
        try:
            with open_message(content) as stream:
                # A first read of 64 KiB takes 12 µs per file; one read of 16 MiB would take 32.
                data = stream.read(_FIRST_READ)
                if len(data) == _FIRST_READ:
                    data += stream.read(BYTES_LIMIT - _FIRST_READ)
        except OSError as error:
            raise SourceError(f"{content}: cannot be read ({error.strerror}); check it") from error
        message = parse(data, name=str(content))
        if message.problem:
            raise SourceError(f"{content}: {message.problem}")
        return message


def open_message(path: "Path") -> "BufferedReader":
    """Open a file with one message, decompressed; in a Maildir also under a new name.

    Mail programs set flags, which renames files, while a folder is read.  Raises OSError.
    """
    try:
        return open_bytes(path)
    except FileNotFoundError:
        base = remove_flags(path.name)
        for part in MAILDIR_PARTS if path.parent.name in MAILDIR_PARTS else ():
            for other in path.parent.with_name(part).iterdir():
                if other.name.startswith(base) and remove_flags(other.name) == base:
                    return open_bytes(other)
        raise


_FIRST_READ = 1 << 16  # bytes; most mails have fewer


class Identity(NamedTuple):
    """The identity of a message in a log."""

    message_id: str = ""  # as `message_id` returns it
    size: int | None = None  # bytes on the disk; None for a row or line of text


def identity(raw: RawMessage) -> Identity:
    """Identify a message; the identity of plain text and of an unreadable file is empty."""
    content = raw.content
    if isinstance(content, str):
        return Identity()
    if isinstance(content, bytes):
        return Identity(message_id(content), len(content))
    try:
        with open_message(content) as stream:
            return Identity(message_id(stream.read(HEAD)), content.stat().st_size)
    except OSError:
        return Identity()  # the error is reported when the whole file is read


# MIME
