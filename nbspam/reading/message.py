"""One message: its headers unchanged, its parts decoded to text; and as its source has it.

Whatever the bytes are, there is a message in them: parsing never fails.
"""

from typing import TYPE_CHECKING, NamedTuple

from nbspam.errors import SourceError
from nbspam.patterns import lazy_pattern
from nbspam.reading.charsets import decode
from nbspam.reading.compression import open_bytes
from nbspam.reading.header_fields import HEAD, Header, decode_words, message_id, split_header
from nbspam.reading.marks import is_known, unmarked
from nbspam.reading.mime import TEXT_LIMIT, Part, fitted, is_html, mime_parts

if TYPE_CHECKING:  # importing it takes 3 ms, and classifying one message does without
    from pathlib import Path

BYTES_LIMIT = 16 << 20  # bytes of one message that are read


class Message(NamedTuple):
    """A message as the tokenizer reads it."""

    headers: list[Header]  # (name in lower case, value unfolded but not decoded), in order
    parts: list[Part]
    limits: frozenset[str] = frozenset()  # the names of the bounds that it met

    @property
    def is_empty(self) -> bool:
        """Whether there is no header and no text, but blanks."""
        return not self.headers and not any(part.text.strip() for part in self.parts)

    def header(self, name: str) -> str:
        """Return the first value of the header, decoded, or an empty string."""
        return next((decode_words(value) for key, value in self.headers if key == name), "")


FROM_LINE = lazy_pattern(rb">?From \S+ +(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? [^\n]*\d:\d\d[^\n]*\n?")
_FILE_MARK = lazy_pattern(rb"\r?\n(?:\xff\xfe|\xfe\xff|\xef\xbb\xbf)")


def parse_text(text: str) -> Message:
    """Return a message that is plain text, as a table's row or a line of a file is."""
    return _text_message(text, set())


def _text_message(text: str, limits: set[str]) -> Message:
    is_page = is_html("", "", text)
    [text] = fitted([text], [is_page], TEXT_LIMIT, limits)
    return Message([], [Part("text/plain", text, is_page)], frozenset(limits))


def parse(raw: bytes, marks: tuple[str, ...] = ()) -> Message:
    """Return the message in `raw`, whatever it holds; never raises.

    raw: a mail with its headers, or plain text.  A first mbox `From ` line is not part of it (but
    "From 9 on I am free" is a text), nor are the marks of nbspam in its header.
    marks: headers that are marks whatever their value.
    Reads BYTES_LIMIT bytes and TEXT_LIMIT characters of text at most.
    """
    limits = {"bytes"} if len(raw) >= BYTES_LIMIT else set()
    raw = unmarked(raw[:BYTES_LIMIT], marks)
    # An empty line before a text may be of nbspam's marks, which are gone: it is never looked at.
    if _FILE_MARK.match(raw):
        raw = raw.lstrip(b"\r\n")
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):  # a file saved as "Unicode"
        raw = raw.decode("utf-16", "replace").encode("utf-8")
    raw = _lf(raw)
    headers, body = split_header(_after_from_line(raw), limits)
    if not _is_known(headers):
        if from_line := FROM_LINE.match(raw):
            raw = raw[from_line.end() :]
        return _text_message(decode(raw.lstrip(b"\n"), ""), limits)
    parts = mime_parts(headers, body, limits)
    return Message(headers, parts, frozenset(limits))


def is_mail(sample: bytes) -> bool:
    """Return whether a file that begins with `sample` begins with a mail's header."""
    return _is_known(split_header(_after_from_line(_lf(sample)), set())[0])


def _lf(raw: bytes) -> bytes:
    """Return `raw` without a byte order mark, its lines ended by LF alone."""
    raw = raw.removeprefix(b"\xef\xbb\xbf")
    if b"\r" in raw:  # CRLF, CRLF written as text once more, and the bare CR of old Macintoshes
        raw = raw.replace(b"\r\r\n", b"\n").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return raw


def _after_from_line(raw: bytes) -> bytes:
    return raw.partition(b"\n")[2] if raw.startswith((b"From ", b">From ")) else raw


def _is_known(headers: list[Header]) -> bool:
    return any(is_known(name) for name, _ in headers)


class RawMessage(NamedTuple):
    """One message of a source, before it is parsed.

    A file is named, not read: the process that needs its content opens it.
    """

    source: str  # a path, `path:line` of a row, `path:number` in an mbox, "-", `row:0`, `pair:0`
    label: str | None  # the class that its source or the user gives it
    content: "bytes | str | Path"  # a mail; plain text; a file with one message

    def message(self) -> Message:
        """Return the message, parsed; raises SourceError when its file cannot be read."""
        content = self.content
        if isinstance(content, str):
            return parse_text(content)
        if isinstance(content, bytes):
            return parse(content)
        try:
            with open_bytes(content) as stream:
                # Reading 16 MiB at once costs 32 µs per file; this costs 12.
                data = stream.read(_MOST)
                if len(data) == _MOST:
                    data += stream.read(BYTES_LIMIT - _MOST)
        except OSError as error:
            raise SourceError(f"{content}: cannot be read ({error.strerror}); check it") from error
        return parse(data)


_MOST = 1 << 16  # bytes; most mails have fewer


class Identity(NamedTuple):
    """What tells a message from others in a log."""

    message_id: str = ""  # as `message_id` returns it
    size: int | None = None  # bytes, as they are on the disk; None of a row or line of text


def identity(raw: RawMessage) -> Identity:
    """Return what identifies a message; nothing of one that is plain text or cannot be read."""
    content = raw.content
    if isinstance(content, str):
        return Identity()
    if isinstance(content, bytes):
        return Identity(message_id(content), len(content))
    try:
        with open_bytes(content) as stream:
            return Identity(message_id(stream.read(HEAD)), content.stat().st_size)
    except OSError:
        return Identity()  # whoever reads it whole says so
