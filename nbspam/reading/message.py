"""One message: its headers unchanged, its parts decoded to text.

The standard library's email package is correct for valid mail and slow to start (its import
alone costs as much as scoring a message); spam is seldom valid.  This reader never fails: what
cannot be parsed is text, what cannot be decoded is read as Windows-1252, every loop has a bound.

Sources: RFC 5322 (headers), RFC 2045-2047 (MIME), RFC 2231 (parameters).
"""

import binascii
import itertools
import re
from collections.abc import Iterable
from typing import NamedTuple

from nbspam.patterns import lazy_pattern
from nbspam.reading.charsets import decode
from nbspam.reading.marks import is_known, unmarked

# Bounds.  A spammer chooses the input, so each is a limit on time and memory, far above the mail
# in the corpora (deepest nesting 5, most parts 40, longest header block 21 KB).
BYTES_LIMIT = 16 << 20  # bytes of one message that are read
HEADER_LIMIT = 256 << 10  # bytes of one header block
HEADERS_LIMIT = 1_000  # header lines kept of one block
PARAMETERS_LIMIT = 16 << 10  # characters of one Content-Type or Content-Disposition
TEXT_LIMIT = 512 << 10  # bytes of text decoded, over all parts of a message
DEPTH_LIMIT = 20  # multiparts inside one another
PARTS_LIMIT = 200  # parts of one message

Header = tuple[str, str]


class Part(NamedTuple):
    """A leaf of the MIME tree."""

    content_type: str  # lower case, such as "text/html"
    text: str  # decoded; empty for what is not text
    filename: str  # empty if it has none


class Message(NamedTuple):
    """A message as the tokenizer reads it."""

    headers: list[Header]  # (name in lower case, value unfolded but not decoded), in order
    parts: list[Part]

    def header(self, name: str) -> str:
        """Return the first value of the header, decoded, or an empty string."""
        return next((decode_words(value) for key, value in self.headers if key == name), "")


# Possessive, for speed: no header line can be matched in another way.  Groups are not: up to Python
# 3.11.4 a possessive group that fails in its last round leaves the match too far on (gh-106052).
_HEADER_LINES = re.compile(rb"(?:[!-9;-~]++[ \t]*+:[^\n]*+(?:\n[ \t][^\n]*+)*(?:\n|\Z))+")
_HEADER = re.compile(r"^([!-9;-~]++)[ \t]*+:([^\n]*+(?:\n[ \t][^\n]*+)*)", re.MULTILINE)
FROM_LINE = lazy_pattern(rb">?From \S+ +(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? [^\n]*\d:\d\d[^\n]*\n?")
_FILE_MARK = lazy_pattern(rb"\r?\n(?:\xff\xfe|\xfe\xff|\xef\xbb\xbf)")
_PARAMETER = lazy_pattern(r';\s*([^\s=;"]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;]*))')
# Some mailers do not encode question marks in a word; the bound keeps the pattern linear.
_ENCODED_WORD = lazy_pattern(r"=\?([^?\s]{1,40})\?([bBqQ])\?([^?\n]*(?:\?(?!=)[^?\n]*){0,20})\?=")
_NOT_BASE64 = lazy_pattern(rb"[^A-Za-z0-9+/]+")
_PADDING = lazy_pattern(rb"={1,3}[ \t]*(?:\n|\Z)")


def parse_text(text: str) -> Message:
    """Return a message that is plain text, as a table's row or a line of a file is."""
    return Message([], [Part("text/plain", text[:TEXT_LIMIT], "")])


def parse(raw: bytes, marks: tuple[str, ...] = ()) -> Message:
    """Return the message in `raw`, whatever it holds; never raises.

    raw: a mail with its headers, or plain text.  A first mbox `From ` line is not part of it (but
    "From 9 on I am free" is a text), nor are the marks of nbspam in its header.
    marks: headers that are marks whatever their value.
    Reads BYTES_LIMIT bytes and decodes TEXT_LIMIT bytes of text at most.
    """
    raw = raw[:BYTES_LIMIT]
    raw = unmarked(raw, marks)
    # An empty line before a text may be of nbspam's marks, which are gone: it is never looked at.
    if _FILE_MARK.match(raw):
        raw = raw.lstrip(b"\r\n")
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):  # a file saved as "Unicode"
        raw = raw.decode("utf-16", "replace").encode("utf-8")
    raw = _lf(raw)
    headers, body = split_header(_after_from_line(raw))
    if not _is_known(headers):
        if from_line := FROM_LINE.match(raw):
            raw = raw[from_line.end() :]
        raw = raw.lstrip(b"\n")
        return Message([], [Part("text/plain", decode(raw[:TEXT_LIMIT], ""), "")])
    return Message(headers, _leaves(headers, body))


def is_mail(sample: bytes) -> bool:
    """Return whether a file that begins with `sample` begins with a mail's header."""
    return _is_known(split_header(_after_from_line(_lf(sample)))[0])


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


def split_header(raw: bytes) -> tuple[list[Header], bytes]:
    """Return the header lines that `raw` (LF line ends) begins with, and the rest.

    As in mail readers, the block ends at the first line that is neither a header nor the
    continuation of one; if that is a blank line, it belongs to neither.
    """
    lines = _HEADER_LINES.match(raw, 0, HEADER_LIMIT)
    if not lines:
        return [], raw.removeprefix(b"\n")
    block = lines[0]
    try:
        text = block.decode("ascii")
    except UnicodeDecodeError:
        # Line by line: one header in Latin-1 does not affect the others.  But not all of 100,000
        # short ones in each of many parts: a crafted mail of 16 MB took 12 s.
        text = "\n".join(decode(line, "utf-8") for line in block.split(b"\n", 2 * HEADERS_LIMIT))
    headers = []
    for name, value in _first_headers(text):
        if "\n" in value:
            value = " ".join(filter(None, map(str.strip, value.split("\n"))))
        headers.append((name.lower(), value.strip()))
    return headers, raw[len(block) :].removeprefix(b"\n")


def _first_headers(block: str) -> Iterable[Header]:
    """Return HEADERS_LIMIT headers of a block at most, as they are written."""
    if block.count("\n") < HEADERS_LIMIT:
        return _HEADER.findall(block)  # twice as fast, and cannot stop
    matches = itertools.islice(_HEADER.finditer(block), HEADERS_LIMIT)
    return ((match[1], match[2]) for match in matches)


def _leaves(headers: list[Header], body: bytes) -> list[Part]:
    """Return the leaves of the MIME tree in reading order; a stack, so that depth cannot hurt."""
    leaves: list[Part] = []
    budget = TEXT_LIMIT  # bytes of text that may still be decoded
    stack = [(headers, body, 0, "text/plain")]
    while stack and len(leaves) < PARTS_LIMIT:
        headers, body, depth, default = stack.pop()
        fields = _mime_fields(headers)
        content_type, parameters = _content_type(fields.get("content-type", ""), default)
        if content_type.startswith("multipart/"):
            segments = _split_parts(body, parameters) if depth < DEPTH_LIMIT else []
            if segments:
                inner = "message/rfc822" if content_type == "multipart/digest" else "text/plain"
                stack += [(*split_header(s), depth + 1, inner) for s in reversed(segments)]
                continue
            # The boundary is missing or unused, or the part is too deep: its body is text.
            content_type = "text/plain"
        elif content_type == "message/rfc822" and depth < DEPTH_LIMIT:
            headers, body = split_header(_inner_message(body, fields))
            subject = next((v for n, v in headers if n == "subject"), "")[:budget]
            budget -= len(subject)
            leaves.append(Part(content_type, decode_words(subject), ""))
            stack.append((headers, body, depth + 1, "text/plain"))
            continue
        part, size = _leaf(content_type, parameters, fields, body, budget)
        budget -= size
        leaves.append(part)
    return leaves


_MIME_FIELDS = frozenset({"content-type", "content-transfer-encoding", "content-disposition"})
_TEXTUAL = frozenset({"application/xhtml+xml", "application/xml"})


def _mime_fields(headers: list[Header]) -> dict[str, str]:
    """Return the headers that say how a part is to be read; of several, the first with a value."""
    fields: dict[str, str] = {}
    for header in headers:
        if header[0] in _MIME_FIELDS and header[1]:
            fields.setdefault(*header)
    return fields


def _leaf(
    content_type: str, parameters: dict[str, str], fields: dict[str, str], body: bytes, budget: int
) -> tuple[Part, int]:
    """Return a part that has no parts, and how many bytes of text it has; `budget` at most."""
    filename = _filename(fields.get("content-disposition", ""), parameters)
    if not content_type.startswith(("text/", "message/")) and content_type not in _TEXTUAL:
        return Part(content_type, "", filename), 0
    # Base64 needs 4 bytes for 3; what is cut off before decoding is beyond the budget in any case.
    data = _decode_transfer(body[: 2 * budget], _encoding(fields))[:budget]
    return Part(content_type, decode(data, parameters.get("charset", "")), filename), len(data)


def _inner_message(body: bytes, fields: dict[str, str]) -> bytes:
    """Return the message in a message/rfc822 part.

    RFC 2046 allows no encoding there; of a message that has one, only the beginning is read.
    """
    encoding = _encoding(fields)
    if not encoding or encoding in ("7bit", "8bit", "binary"):
        return body
    return _decode_transfer(body[: 4 * TEXT_LIMIT], encoding)


def _encoding(fields: dict[str, str]) -> str:
    return fields.get("content-transfer-encoding", "").lower()


def _content_type(value: str, default: str) -> tuple[str, dict[str, str]]:
    """Return the media type in lower case and its parameters, of a Content-Type value."""
    if not value:
        return default, {}
    value = value[:PARAMETERS_LIMIT]
    # The first word: comments and parameters without a semicolon may follow.
    media_type = next(iter(value.partition(";")[0].lower().split()), "")
    if "/" not in media_type:
        media_type = "text/html" if media_type == "html" else "text/plain"
    return media_type, _parameters(value)


def _parameters(value: str) -> dict[str, str]:
    """Return the parameters of a header value, without quotes and RFC 2231's encodings."""
    parameters: dict[str, str] = {}
    extended: dict[str, tuple[str, list[bytes]]] = {}  # charset, pieces; preferred (RFC 6266)
    for name, quoted, bare in _PARAMETER.findall(value):
        # An unpaired quote is not part of the value.
        text = quoted.replace("\\", "") if quoted else bare.strip().strip('"')
        base, star, section = name.lower().partition("*")
        if not star:
            parameters.setdefault(base, text)
            continue
        charset = ""
        percent = not section or section.endswith("*")  # name*, name*0*; name*0 is not encoded
        if percent and base not in extended and text.count("'") >= 2:
            charset, _, text = text.split("'", 2)
        data = text.encode("utf-8", "replace")
        extended.setdefault(base, (charset, []))[1].append(
            _percent_decoded(data) if percent else data
        )
    for base, (charset, pieces) in extended.items():
        parameters[base] = decode(b"".join(pieces), charset)
    return parameters


def _percent_decoded(data: bytes) -> bytes:
    """Decode RFC 2231's %XX, which is quoted-printable's =XX with another sign."""
    if b"%" not in data:
        return data
    return binascii.a2b_qp(data.replace(b"=", b"=3D").replace(b"%", b"="))


def _filename(disposition: str, parameters: dict[str, str]) -> str:
    if disposition:
        named = _parameters(disposition[:PARAMETERS_LIMIT]).get("filename")
        if named:
            return decode_words(named)
    return decode_words(parameters["name"]) if "name" in parameters else ""


def _split_parts(body: bytes, parameters: dict[str, str]) -> list[bytes]:
    """Return the parts between the boundary's delimiter lines; empty if there are none.

    A delimiter is `--boundary` on a line of its own; a longer word that begins with it (such as the
    boundary of an inner multipart) is text.  Without an end delimiter, the last part ends with the
    body.
    """
    boundary = parameters.get("boundary", "").rstrip()
    if not boundary:
        return []
    delimiter = b"\n--" + boundary.encode("utf-8", "replace")
    body = b"\n" + body
    parts: list[bytes] = []
    start, at = -1, body.find(delimiter)  # of the part being read; of the delimiter after it
    for _ in range(PARTS_LIMIT):
        if at < 0:
            break
        after = at + len(delimiter)
        line_end = body.find(b"\n", after)
        line_end = len(body) if line_end < 0 else line_end
        rest = body[after:line_end].strip()
        if rest in (b"", b"--"):
            if start >= 0:
                parts.append(body[start:at])
            start = line_end + 1 if not rest else -1
            if rest:
                break
        at = body.find(delimiter, line_end)
    if start >= 0:
        parts.append(body[start:])
    return parts


def _decode_transfer(body: bytes, encoding: str) -> bytes:
    if "quoted-printable" in encoding:
        return binascii.a2b_qp(body)
    if "base64" in encoding:
        return decode_base64(body)
    return body


def decode_base64(data: bytes) -> bytes:
    """Return base64 `data` decoded; characters that are not base64 are ignored.

    A text that claims to be base64 and is not is returned unchanged: mail readers show it so, too.
    """
    # Up to the padding: a mailing list's footer or junk follows it.
    padding = _PADDING.search(data)
    encoded = data[: padding.start()] if padding else data
    digits = _NOT_BASE64.sub(b"", encoded)
    # One byte in six of a text is a space or punctuation; base64 has none except line ends.
    if 10 * len(digits) <= 9 * len(encoded.replace(b"\n", b"")):
        return data
    digits = digits[: len(digits) - (len(digits) % 4 == 1)]
    return binascii.a2b_base64(digits + b"=" * (-len(digits) % 4))


def decode_words(value: str) -> str:
    """Return a header value with its RFC 2047 encoded words decoded.

    Adjacent words of one charset are joined before they are decoded: many mailers cut a character
    in two.  A word that cannot be decoded stays unchanged.
    """
    if "=?" not in value:
        return value
    out: list[str] = []
    pending, charset, end = b"", "", 0
    for word in _ENCODED_WORD.finditer(value):
        between = value[end : word.start()]
        data = _decode_word(word[2], word[3])
        claimed = word[1].partition("*")[0].lower()  # RFC 2231 adds *language
        adjacent = bool(end) and not between.strip()
        if adjacent and claimed == charset:
            pending += data
        else:
            out.append(decode(pending, charset))
            if not adjacent:
                out.append(between)
            pending, charset = data, claimed
        end = word.end()
    out += [decode(pending, charset), value[end:]]
    return "".join(out)


def _decode_word(encoding: str, text: str) -> bytes:
    data = text.encode("utf-8", "replace")
    if encoding in "bB":
        return decode_base64(data)
    return binascii.a2b_qp(data.replace(b" ", b"=20"), header=True)
