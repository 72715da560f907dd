"""One message: its headers unchanged, the leaves of its MIME tree decoded to text.

The standard library's email package is correct for valid mail and slow to start (its import
alone costs as much as scoring a message); spam is seldom valid.  This reader never fails: whatever
the bytes are, there is a message in them.  What cannot be parsed is text, what cannot be decoded is
read as Windows-1252, every loop has a bound.

Sources: RFC 2045 and 2046.
"""

import re
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING, NamedTuple

from nbspam.errors import SourceError
from nbspam.names import MAILDIR_PARTS, is_url, unflagged
from nbspam.patterns import lazy_pattern
from nbspam.reading.charsets import decode, decode_transfer, is_identity
from nbspam.reading.compression import no_message, open_bytes, unpacked
from nbspam.reading.header_fields import (
    HEAD,
    MIME_FIELDS,
    PARAMETERS_LIMIT,
    Header,
    content_type,
    decode_words,
    message_id,
    parameters_of,
    split_header,
)
from nbspam.reading.marks import is_known, unmarked

if TYPE_CHECKING:  # importing it takes 3 ms, and classifying one message does without
    from io import BufferedReader
    from pathlib import Path

# Bounds.  A spammer chooses the input, so each is a limit on time and memory, far above the mail
# in the corpora (deepest nesting 5, most parts 40).
TEXT_LIMIT = 512 << 10  # characters of text, over all parts of a message
DEPTH_LIMIT = 1_000  # multiparts inside one another
_WORK_LIMIT = 128 << 20  # bytes looked through for parts: those of a deep tree many times
_DECODING_WORK = 8  # a byte decoded costs as much as so many looked through
PARTS_LIMIT = 200  # parts of one message that are read
_DELIMITERS_LIMIT = 10_000  # of one multipart that are heeded: half the first, half the last
BYTES_LIMIT = 16 << 20  # bytes of one message that are read


class Part(NamedTuple):
    """A leaf of the MIME tree."""

    content_type: str  # lower case, such as "text/html"
    text: str  # decoded; empty for what is not text
    is_html: bool = False  # whether mail readers and browsers show the text as a page
    filename: str = ""  # empty if it has none
    is_doubtful: bool = False  # whether mail programs show it on demand only, or another part


class Message(NamedTuple):
    """A message as the tokenizer reads it."""

    headers: list[Header]  # (name in lower case, value unfolded but not decoded), in order
    parts: list[Part]
    limits: frozenset[str] = frozenset()  # the names of the bounds that it met
    problem: str = ""  # why the bytes are no message, and what to do; then all else is empty
    head: bytes = b""  # the beginning of a mail as it came, which may be read more strictly

    @property
    def is_empty(self) -> bool:
        """Whether it has no header, and no text but blanks."""
        return not self.headers and not any(part.text.strip() for part in self.parts)

    def header(self, name: str) -> str:
        """Return the first value of the header, decoded, or an empty string."""
        return next((decode_words(value) for key, value in self.headers if key == name), "")


FROM_LINE = lazy_pattern(rb">?From \S+ +(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? [^\n]*\d:\d\d[^\n]*\n?")
# Lines that may precede a header: blank lines, From_ lines of an mbox, of UUCP and of a mail that
# was piped twice.  And a few odd lines, if several fields of every mail follow.
_BEFORE = lazy_pattern(rb"(?:[ \t]*\n|>*From [^\n]*\n)+")
_MAY_BEGIN = b"\n", b" ", b"\t", b">", b"From "  # tried first: to compile a pattern takes longer
_ODD_LINES, _ODD_LIMIT, _FIELDS_AFTER = 3, 1_000, 2  # lines, bytes of one, fields
_USUAL = frozenset("from to subject date message-id received return-path mime-version".split())
# Apple Mail's .emlx: how many bytes the message has, the message, and a property list.
_EMLX = lazy_pattern(rb"(\d{1,10})[ \t]*\n")
_PLIST = lazy_pattern(rb"\s*<\?xml[^>]*>\s*<!DOCTYPE plist")
_ORIGINAL = b"x-spam-type"
_REPORTING = "x-spam-", "x-amavis-"
# Received fields of a filter, which writes the report, and of machines that mail came from.  Fields
# above the filter's were written here; if they name another machine, a sender wrote the report.
# Otherwise a spam could attach a ham, and the ham would be classified.
_FILTERING = lazy_pattern(r"\bwith SpamAssassin\b|\bamavisd")
_FETCHING = lazy_pattern(r"\bwith (?:IMAP|POP3|LMTP|local)\b")
_ADDRESS = lazy_pattern(
    r"(?<![\d.])(?!127\.|10\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.)\d{1,3}(?:\.\d{1,3}){3}(?![\d.])"
    r"|\[(?:IPv6:)?(?!::1\])[0-9a-f]*:[0-9a-f:]+\]",
    re.IGNORECASE,
)
_REPORTS_LIMIT = 4  # of a message in a report in a report
_FILE_MARK = lazy_pattern(rb"\r?\n(?:\xff\xfe|\xfe\xff|\xef\xbb\xbf)")


def parse_text(text: str) -> Message:
    """Return a message that is plain text, as a table's row or a line of a file is."""
    return _text_message(text, set())


def _text_message(text: str, limits: set[str]) -> Message:
    is_page = is_html("", "", text)
    [text] = fitted([text], [is_page], TEXT_LIMIT, limits)
    return Message([], [Part("text/plain", text, is_page)], frozenset(limits))


def parse(raw: bytes, marks: tuple[str, ...] = (), name: str = "") -> Message:
    """Return the message in `raw`, whatever it holds; never raises.

    raw: a mail with its headers, or plain text; perhaps compressed.  Lines before the header are
    left out (but "From 9 on I am free" is a text), and so are nbspam's own marks.  The message of a
    spam filter's report is the original that it has attached.
    marks: headers that are marks whatever their value.  name: of the file.
    Reads at most BYTES_LIMIT bytes and TEXT_LIMIT characters of text.
    """
    raw = unpacked(raw, BYTES_LIMIT)
    limits = {"bytes"} if len(raw) >= BYTES_LIMIT else set()
    data = raw = _without_plist(unmarked(raw[:BYTES_LIMIT], marks))
    # nbspam adds an empty line after its marks to a text without a header.
    if _FILE_MARK.match(raw):
        raw = raw.lstrip(b"\r\n")
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):  # a file saved as "Unicode"
        raw = raw.decode("utf-16", "replace").encode("utf-8")
    raw = _lf(raw)
    headers, body = _split_mail(raw, limits)
    for _ in range(_REPORTS_LIMIT):
        if _ORIGINAL not in body or not (original := _original(headers, body)):
            break
        inner, rest = _split_mail(original, limits)
        if not inner:
            break
        headers, body = inner, rest
    if not headers:
        text = raw
        if from_line := FROM_LINE.match(raw):
            text = raw[from_line.end() :]
        decoded = decode(text.lstrip(b"\n"), "")
        if problem := no_message(data, decoded, name):
            return Message([], [], problem=problem)
        return _text_message(decoded, limits)
    parts = mime_parts(headers, body, limits)
    return Message(headers, parts, frozenset(limits), head=data[:HEAD])


def is_mail(sample: bytes) -> bool:
    """Return whether a file that begins with `sample` begins with a mail's header."""
    return bool(_split_mail(_lf(sample), set())[0])


def problem_of(content: bytes, name: str) -> str:
    """Return why the content of a file is no message, and what to do; "" if it is one.

    content: all of it, or its first bytes.
    """
    return "" if is_mail(content) else parse(content, name=name).problem


def _lf(raw: bytes) -> bytes:
    """Return `raw` without a byte order mark, its lines ended by LF alone."""
    raw = raw.removeprefix(b"\xef\xbb\xbf")
    if b"\r" in raw:  # CRLF, CRLF written as text once more, and the bare CR of old Macintoshes
        raw = raw.replace(b"\r\r\n", b"\n").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return raw


def _split_mail(raw: bytes, limits: set[str]) -> tuple[list[Header], bytes]:
    """Return the header and the body of a mail; of other bytes no header."""
    if raw.startswith(_MAY_BEGIN) and (before := _BEFORE.match(raw)):
        raw = raw[before.end() :]
    headers, body = split_header(raw, limits)
    if any(is_known(name) for name, _ in headers):
        return headers, body
    at = 0
    for _ in range(_ODD_LINES):
        begin, at = at, raw.find(b"\n", at, at + _ODD_LIMIT) + 1
        if not at or min(raw[begin:at]) < 9:  # as in an archive
            break
        headers, body = split_header(raw[at:], limits)
        if len({name for name, _ in headers} & _USUAL) >= _FIELDS_AFTER:
            return headers, body
    return [], raw


def _without_plist(raw: bytes) -> bytes:
    """Return the message of an .emlx file; other bytes unchanged."""
    if raw[:1].isdigit() and (first := _EMLX.match(raw)):
        end = first.end() + int(first[1])
        if _PLIST.match(raw, end):
            return raw[first.end() : end]
    return raw


def _original(headers: list[Header], body: bytes) -> bytes:
    """Return the message that SpamAssassin or amavis has attached to its report; b"" if none.

    A report has two parts: a text, and the original as message/rfc822 (`report_safe 1`) or as text
    (`report_safe 2`).
    """
    received = (value for name, value in headers if name == "received")
    above = takewhile(lambda value: not _FILTERING.search(value), received)
    if any(_ADDRESS.search(value) and not _FETCHING.search(value) for value in above):
        return b""
    if not any(name.startswith(_REPORTING) or "SpamAssassin" in value for name, value in headers):
        return b""
    parts = _children(_node(headers, body, 0), set())
    if len(parts) != 2 or parts[1].parameters.get("x-spam-type") != "original":
        return b""
    return decode_transfer(parts[1].body, parts[1].encoding, set())


def attached(raw: bytes) -> list[bytes]:
    """Return the messages that are attached to a mail, as they were forwarded."""
    limits: set[str] = set()
    messages: list[bytes] = []
    nodes = [_node(*_split_mail(_lf(unpacked(raw, BYTES_LIMIT)), limits), 0)]
    while nodes and len(messages) < PARTS_LIMIT:
        node = nodes.pop()
        if node.content_type == _MESSAGE or node.filename.lower().endswith(".eml"):
            messages.append(decode_transfer(node.body, node.encoding, limits))
        elif node.content_type.startswith("multipart/") and node.depth < DEPTH_LIMIT:
            nodes += reversed(_children(node, limits))
    return messages


class RawMessage(NamedTuple):
    """One message of a source, before it is parsed.

    A file is named, not read: the process that tokenizes it opens it.
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
            with open_message(content) as stream:
                # Reading 16 MiB at once costs 32 µs per file; this costs 12.
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
    """Open a file of one message, decompressed; one of a Maildir also by its new name.

    Mail programs set flags, which renames it, while a folder is read.  Raises OSError.
    """
    try:
        return open_bytes(path)
    except FileNotFoundError:
        if is_url(path):
            raise
        base = unflagged(path.name)
        for part in MAILDIR_PARTS if path.parent.name in MAILDIR_PARTS else ():
            for other in path.parent.with_name(part).iterdir():
                if other.name.startswith(base) and unflagged(other.name) == base:
                    return open_bytes(other)
        raise


_FIRST_READ = 1 << 16  # bytes; most mails have fewer


class Identity(NamedTuple):
    """The identity of a message in a log."""

    message_id: str = ""  # as `message_id` returns it
    size: int | None = None  # bytes, as they are on the disk; None of a row or line of text


def identity(raw: RawMessage) -> Identity:
    """Return a message's identity; an empty one for plain text, or a file that cannot be read."""
    content = raw.content
    if isinstance(content, str):
        return Identity()
    if isinstance(content, bytes):
        return Identity(message_id(content), len(content))
    try:
        with open_message(content) as stream:
            return Identity(message_id(stream.read(HEAD)), content.stat().st_size)
    except OSError:
        return Identity()  # reading it whole reports the error


# MIME


class _Node(NamedTuple):
    """A part that is not decoded yet, and may have parts."""

    content_type: str
    parameters: dict[str, str]
    fields: dict[str, str]
    body: bytes
    depth: int = 0
    is_doubtful: bool = False

    @property
    def filename(self) -> str:
        if disposition := self.fields.get("content-disposition", ""):
            filename = parameters_of(disposition[:PARAMETERS_LIMIT]).get("filename")
            if filename:
                return decode_words(filename)
        return decode_words(self.parameters["name"]) if "name" in self.parameters else ""

    @property
    def encoding(self) -> str:
        return self.fields.get("content-transfer-encoding", "")


_MESSAGE = "message/rfc822"
_PAGE_TYPES = frozenset({"text/html", "application/xhtml+xml"})
_READABLE = frozenset({"text/plain", "text/html", "application/xhtml+xml"})
# Types that mail programs show unasked; the Subject of an inner message is a part, too.
_SHOWN = _READABLE | {"text/enriched", "text/richtext", _MESSAGE}
_TEXTUAL = frozenset({"application/xhtml+xml", "application/xml"})
# Lines that are joined without a blank: of calendars and cards (RFC 5545), of DelSp (RFC 3676).
_FOLDED = frozenset("text/calendar text/vcard text/x-vcard text/directory".split())
_FOLD = lazy_pattern(r"\r?\n[ \t]")
_FLOW = lazy_pattern(r"(?<!^--) \r?\n>* ?", re.MULTILINE)
_HTML_NAME = lazy_pattern(r"\.(?:x|s|m)?html?$", re.IGNORECASE)
_PAGE_BEGINS = lazy_pattern(
    r"\s{0,200}<(?:html|!doctype|head|body|meta|table|div)\b", re.IGNORECASE
)
# The delimiter of a part, whatever the boundary claimed.
_ANY_DELIMITER = lazy_pattern(
    rb"(?:\A|\n)--[^\n]{1,200}\n(?=content-[a-z-]{1,30}[ \t]{0,9}:)", re.IGNORECASE
)
_DELIMITER_AND_TYPE = lazy_pattern(
    rb"\n--[^\n]{1,200}\n(?:content-[a-z-]{1,30}[ \t]{0,9}:[^\n]*+\n){0,5}", re.IGNORECASE
)


def mime_parts(headers: list[Header], body: bytes, limits: set[str]) -> list[Part]:
    """Return the leaves of the MIME tree in reading order.

    limits: gets the names of the limits that were met: "parts", "depth", "text", "header",
    "encoding".
    """
    leaves = _leaves(_node(headers, body, 0), limits)
    if len(leaves) > PARTS_LIMIT:
        limits.add("parts")
        leaves = _sampled(leaves)
    names = [leaf.filename for leaf in leaves]
    texts = [_text(leaf, name, limits) for leaf, name in zip(leaves, names, strict=True)]
    kinds = [leaf.content_type for leaf in leaves]
    pages = list(map(is_html, kinds, names, texts))
    texts = fitted(texts, pages, TEXT_LIMIT, limits)
    return list(map(Part, kinds, texts, pages, names, map(_is_doubtful, leaves)))


def _is_doubtful(leaf: _Node) -> bool:
    disposition = leaf.fields.get("content-disposition", "").lower()
    is_attached = disposition.startswith("attachment") or leaf.content_type not in _SHOWN
    return leaf.is_doubtful or (is_attached and leaf.depth > 0)


def is_html(content_type: str, filename: str, text: str) -> bool:
    """Return whether a text is HTML, by its type, its file's name or its beginning."""
    if content_type in _PAGE_TYPES or (filename and _HTML_NAME.search(filename)):
        return True
    return text[:201].lstrip().startswith("<") and _PAGE_BEGINS.match(text) is not None


def _sampled(leaves: list[_Node]) -> list[_Node]:
    """Return PARTS_LIMIT leaves in order.

    Of those that may be text a third are the first, a third the last and a third the longest of the
    others; if there are fewer, the first others besides.
    """
    texts = [i for i, leaf in enumerate(leaves) if _may_be_text(leaf) and not leaf.body.isspace()]
    third = PARTS_LIMIT // 3
    between = sorted(texts[third:-third], key=lambda i: len(leaves[i].body), reverse=True)
    places = {*texts[:third], *texts[-third:], *between[: PARTS_LIMIT - 2 * third]}
    others = (i for i in range(len(leaves)) if i not in places)
    places.update(i for i, _ in zip(others, range(PARTS_LIMIT - len(places)), strict=False))
    return [leaves[i] for i in sorted(places)]


def _leaves(root: _Node, limits: set[str]) -> list[_Node]:
    """Return the leaves in reading order; there is a stack, so that depth cannot hurt.

    The Subject of a message within the message is a leaf.
    """
    leaves: list[_Node] = []
    stack, work = [root], 0  # bytes looked through
    while stack:
        node = stack.pop()
        body, media_type = node.body, node.content_type
        is_multipart, is_message = media_type.startswith("multipart/"), media_type == _MESSAGE
        work += len(body) * is_multipart
        is_deep = node.depth >= DEPTH_LIMIT or work > _WORK_LIMIT
        if is_deep and (is_multipart or is_message):
            limits.add("depth")
        if is_multipart:
            # Its boundary may be missing or not used.
            nodes = ([] if is_deep else _children(node, limits)) or _flat(node, limits)
            stack += reversed(nodes)
            if not nodes:
                leaves.append(node._replace(content_type="text/plain"))
        elif is_message and not is_deep:
            if not is_identity(node.encoding):  # RFC 2046 allows none
                work += _DECODING_WORK * len(body)
                body = decode_transfer(body[: 4 * TEXT_LIMIT], node.encoding, limits)
            work += len(body)
            headers, body = split_header(body, limits)
            subject = decode_words(_value(headers, "subject"))
            leaves.append(_Node(_MESSAGE, {}, {}, subject.encode("utf-8", "replace")))
            stack.append(_node(headers, body, node.depth + 1))
        else:
            leaves.append(node)
    return leaves


def _value(headers: list[Header], name: str) -> str:
    return next((value for key, value in headers if key == name), "")


def _children(node: _Node, limits: set[str]) -> list[_Node]:
    """Return the parts of a multipart that its boundary shows.

    Parts that mail programs do not show are doubtful: of alternatives all but the last that is text
    (RFC 2046, 5.1.4), of related parts all but the root (RFC 2387).
    """
    default = _MESSAGE if node.content_type == "multipart/digest" else "text/plain"
    segments = _split_parts(node.body, node.parameters, limits)
    parts = [split_header(segment, limits, is_part=True) for segment in segments]
    nodes = [_node(*part, node.depth + 1, default) for part in parts]
    shown = None
    if node.content_type == "multipart/related":
        start = node.parameters.get("start", "")
        ids = [_value(headers, "content-id") for headers, _ in parts]
        shown = ids.index(start) if start and start in ids else 0
    elif node.content_type == "multipart/alternative":
        for i, child in enumerate(nodes):
            if child.content_type in _READABLE or child.content_type.startswith("multipart/"):
                shown = i
    return [
        child._replace(is_doubtful=node.is_doubtful or shown not in (None, i))
        for i, child in enumerate(nodes)
    ]


def _node(headers: list[Header], body: bytes, depth: int, default: str = "text/plain") -> _Node:
    """Return a part with its MIME fields, its type and the parameters of the type.

    Mail readers differ in which of several fields of one name they use: here it is the first,
    unless only a later one makes sense of the body.
    default: its type if its header has none.
    """
    fields: dict[str, str] = {}
    types: list[str] = []
    for name, value in headers:
        if name not in MIME_FIELDS or not value:
            continue
        if name == "content-type":
            types.append(value)
        elif name == "content-transfer-encoding":
            value = value.lower()
            if name not in fields or (is_identity(fields[name]) and not is_identity(value)):
                fields[name] = value
        else:
            fields.setdefault(name, value)
    described = content_type(types[0] if types else "", default)
    for value in types[1:]:
        other, parameters = content_type(value, default)
        boundary = parameters.get("boundary", "").encode("utf-8", "replace")
        if other.startswith("multipart/") and boundary and b"--" + boundary in body:
            described = other, parameters
            break
    return _Node(*described, fields, body, depth)


def _flat(node: _Node, limits: set[str]) -> list[_Node]:
    """Return what looks like a part of a body, at any depth, except multiparts.

    Mail readers show such parts if the claimed boundary is wrong or the tree is deep.
    """
    starts = [match.end() for match in _ANY_DELIMITER.finditer(node.body)]
    if len(starts) > _DELIMITERS_LIMIT:
        limits.add("parts")
        half = _DELIMITERS_LIMIT // 2
        starts = starts[:half] + starts[-half:]
    nodes = []
    for start, end in pairwise([*starts, len(node.body)]):
        headers, inside = split_header(node.body[start:end], limits)
        kind, _ = content_type(_value(headers, "content-type"), "text/plain")
        if not kind.startswith("multipart/"):
            nodes.append(_node(headers, inside, node.depth))
    return nodes


def _may_be_text(leaf: _Node) -> bool:
    return leaf.content_type.startswith(("text/", "message/")) or leaf.content_type in _TEXTUAL


def _text(leaf: _Node, filename: str, limits: set[str]) -> str:
    """Return the text of a leaf; empty if it has none."""
    if not _may_be_text(leaf):
        is_page = _HTML_NAME.search(filename) is not None
        if not is_page and leaf.content_type == "application/octet-stream":
            beginning = decode_transfer(leaf.body[:1024], leaf.encoding, set())
            is_page = is_html("", "", beginning.decode("latin-1"))
        if not is_page:  # a page in an attachment is opened with one click
            return ""
    data = decode_transfer(leaf.body, leaf.encoding, limits)
    text = decode(data, leaf.parameters.get("charset", ""))
    if leaf.content_type in _FOLDED:
        return _FOLD.sub("", text)
    is_flowed = leaf.parameters.get("delsp", "").lower() == "yes"
    return _FLOW.sub("", text) if is_flowed and leaf.content_type == "text/plain" else text


def _split_parts(body: bytes, parameters: dict[str, str], limits: set[str]) -> list[bytes]:
    """Return the parts between the boundary's delimiter lines; empty if there are none.

    Without an end delimiter, the last part ends with the body.
    """
    boundary = parameters.get("boundary", "").rstrip()
    if not boundary:
        return []
    sign = b"\n--" + boundary.encode("utf-8", "replace")
    body = b"\n" + body
    first, last, is_cut = _delimiters(body, sign)
    parts: list[bytes] = []
    for (_, end, is_last), (following, _, _) in pairwise(first + last):
        if is_last:
            break
        parts.append(body[end:following])
    if is_cut:
        limits.add("parts")
        if len(parts) >= len(first) > 0:  # many parts are one
            parts[len(first) - 1] = _DELIMITER_AND_TYPE.sub(b"\n", parts[len(first) - 1])
    return parts


_Delimiter = tuple[int, int, bool]  # a line between two parts: its start and end; whether the last


def _delimiters(body: bytes, sign: bytes) -> tuple[list[_Delimiter], list[_Delimiter], bool]:
    """Return a body's first and last delimiters, its end the last, and whether some are left out.

    A delimiter is `--boundary` on a line of its own; a longer word that begins with it (such as the
    boundary of an inner multipart) is text.
    """

    def at_line(at: int) -> list[_Delimiter]:
        after = at + len(sign)
        line_end = body.find(b"\n", after)
        line_end = len(body) if line_end < 0 else line_end
        rest = body[after:line_end].strip()
        return [(at, line_end + 1, bool(rest))] if rest in (b"", b"--") else []

    first: list[_Delimiter] = []
    at = body.find(sign)
    for _ in range(_DELIMITERS_LIMIT // 2):
        if at < 0:
            break
        first += (delimiter := at_line(at))
        at = -1 if delimiter and delimiter[0][2] else body.find(sign, at + len(sign))
    last: list[_Delimiter] = [(len(body), len(body), True)]
    end = len(body)
    for _ in range(_DELIMITERS_LIMIT // 2 if at >= 0 else 0):
        end = body.rfind(sign, at, end)
        if end < 0:
            break
        last += at_line(end)
    return first, last[::-1], min(at, end) >= 0 and body.find(sign, at, end) >= 0


# A text too long to be read whole is sampled.  Markup that shows nothing (comments, scripts,
# blanks, bare tags) is removed first, so it cannot push a text beyond a limit.  If the rest is
# still too long, its beginning, its end and some pieces between them are read.

SOURCE_LIMIT = 4 << 20  # characters of one text that are looked through for markup
_SHEET_LIMIT = 32 << 10  # characters of the beginning and of the end of a style sheet
_VALUE_LIMIT = 300  # characters of an attribute, the last ones
_PIECES = 16  # from between the beginning and the end
_EDGE = 200  # characters in which a piece may begin later, with a word or a tag

# As browsers have them: a comment; what is behind a tag's name, up to its >; the end of a closing
# tag.  None is tried twice at a place, whatever its length.
COMMENT = r"<!--(?:-?>|.*?(?:--!?>|\Z))"
ATTRIBUTES = r"(?![^\s/>])(?:[^>\"']++|\"[^\"]*+\"|'[^']*+'|[\"'])*+"
END = r"(?![^\s/>])[^>]*+>?"
_UNSEEN = lazy_pattern(
    rf"{COMMENT}|<script{ATTRIBUTES}>?.*?(?:</script{END}|\Z)"
    rf"|(<style{ATTRIBUTES}>?)(.*?)(</style{END}|\Z)",
    re.IGNORECASE | re.DOTALL | re.ASCII,
)
_BARE_INLINE = lazy_pattern(
    r"</?(?=[a-z])(?!(?:br|p|div|t[dhr]|table|tbody|li|[uo]l|dl|d[dt]|h[1-6]|hr|body|html|head|title|style"
    r"|template|noframes|select|option|details|textarea|center|blockquote|pre|form|section)\b)"
    r"[a-z][a-z0-9]{0,15}\s{0,9}/?>",
    re.IGNORECASE,
)
_BARE_RUN = lazy_pattern(
    r"(?:</?(?:p|div|center|br|span|section)\s{0,9}/?>\s{0,9}){3,}", re.IGNORECASE
)
# One pattern for both would be tried at each word: it took 91 ms for 2.4 MB, these take 42.
_LONG_VALUE = lazy_pattern(r"=\s{0,9}(?:\"([^\"<>]{300,})\"|'([^'<>]{300,})')")
_LONG_LOOK = lazy_pattern(
    r"(style|class)\s{0,9}=\s{0,9}(?:\"([^\"<>]{300,})\"|'([^'<>]{300,})')", re.IGNORECASE
)
# Stands for the declarations that were cut off: they may hide text, or show it.
_DOUBT = "opacity:calc(0)!important"
_BLANKS = lazy_pattern(r"[\s\u200b-\u200f\u2060]{3,}")
_BLANK_ENTITIES = lazy_pattern(r"(?:&(?:nbsp|zwnj|#160|#8203|#x200b);\s{0,9}){3,}", re.IGNORECASE)


def fitted(texts: list[str], are_html: list[bool], most: int, limits: set[str]) -> list[str]:
    """Return the texts cut to `most` characters in all, the longest first; adds to `limits`."""
    if sum(map(len, texts)) <= most:
        return texts
    texts = [
        _condensed(text, is_html, limits) if len(text) > most // len(texts) else text
        for text, is_html in zip(texts, are_html, strict=True)
    ]
    room = _room(sorted(map(len, texts)), most)
    if any(len(text) > room for text in texts):
        limits.add("text")
    return [sample(text, room) for text in texts]


def _room(sizes: list[int], most: int) -> int:
    """Return how much of each text fits: all of the short ones, and of the others alike.

    sizes: in ascending order.
    """
    for i, size in enumerate(sizes):
        share = most // (len(sizes) - i)
        if size > share:
            return share
        most -= size
    return sizes[-1] if sizes else 0


def _condensed(text: str, is_html: bool, limits: set[str]) -> str:
    """Return a text without the markup that shows nothing."""
    if len(text) > SOURCE_LIMIT:
        limits.add("text")
        text = sample(text, SOURCE_LIMIT)
    if is_html:
        text = _UNSEEN.sub(_short_sheet, text)
        text = _BARE_INLINE.sub("", text)
        text = _LONG_LOOK.sub(_short_look, text)
        text = _LONG_VALUE.sub(lambda m: f'="{(m[1] or m[2])[-_VALUE_LIMIT:]}"', text)
        text = _BARE_RUN.sub("<p>", _BLANK_ENTITIES.sub("  ", text))
    return _BLANKS.sub("  ", text)


def _short_look(match: re.Match[str]) -> str:
    end = (match[2] or match[3])[-_VALUE_LIMIT:] if match[1].lower() == "style" else ""
    return f'style="{end};{_DOUBT}"'


def _short_sheet(match: re.Match[str]) -> str:
    if match[1] is None:
        return ""
    rules = match[2]
    if len(rules) > 2 * _SHEET_LIMIT:
        cut = f"</style><style>:is(*){{{_DOUBT}}}</style>{match[1]}"
        rules = rules[:_SHEET_LIMIT] + cut + rules[-_SHEET_LIMIT:]
    return f"{match[1]}{rules}{match[3]}"


def sample(text: str, room: int) -> str:
    """Return `room` characters of a text at most: half the beginning, a quarter the end."""
    if len(text) <= room:
        return text
    head, tail = room // 2, room // 4
    size = (room - head - tail) // _PIECES - 1
    pieces = [text[:head]]
    for i in range(_PIECES if size > 0 else 0):
        start = head + (len(text) - head - tail) * i // _PIECES
        pieces.append(_from_word(text[start : start + size]))
    pieces.append(_from_word(text[len(text) - tail :] if tail else ""))
    return "\n".join(pieces)[:room]


def _from_word(piece: str) -> str:
    """Return a piece from the beginning of its first whole tag or word on."""
    tag = piece.find("<", 0, _EDGE)
    return piece[tag:] if tag >= 0 else piece[piece.find(" ", 0, _EDGE) + 1 :]
