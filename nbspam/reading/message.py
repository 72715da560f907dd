"""One message: its headers unchanged, its parts decoded to text.

Whatever the bytes are, there is a message in them: parsing never fails.
"""

from typing import NamedTuple

from nbspam.patterns import lazy_pattern
from nbspam.reading.charsets import decode
from nbspam.reading.header_fields import Header, decode_words, split_header
from nbspam.reading.long_text import fitted
from nbspam.reading.marks import is_known, unmarked
from nbspam.reading.mime import TEXT_LIMIT, Part, is_html, mime_parts

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
    limits: set[str] = set()
    return _text_message(text, limits)


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
