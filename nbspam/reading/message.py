"""One message: its headers as they stand, its parts decoded to text.

The standard library's email package is right about valid mail and slow to start (its import
alone costs as much as scoring a message); spam is seldom valid.  This reader never fails: what
cannot be parsed is text, what cannot be decoded is read as Windows-1252, every loop has a bound.

Sources: RFC 5322 (headers), RFC 2045-2047 (MIME), RFC 2231 (parameters).
"""

import binascii
import re
from typing import NamedTuple

# Bounds.  A spammer chooses the input, so each is a limit on time and memory that no real
# mail of the corpora comes near (deepest nesting 5, most parts 40, longest header block 21 KB).
BYTES_LIMIT = 16 << 20  # of one message that are looked at
HEADER_LIMIT = 256 << 10  # bytes of one header block
HEADERS_LIMIT = 1_000  # header lines kept of one block
TEXT_LIMIT = 512 << 10  # bytes of text decoded, over all parts of a message
DEPTH_LIMIT = 20  # multiparts inside one another
PARTS_LIMIT = 200  # parts of one message

Header = tuple[str, str]


class Part(NamedTuple):
    """A leaf of the MIME tree."""

    content_type: str  # lower case, such as "text/html"
    text: str  # decoded; empty for what is not text
    filename: str  # empty when it has none


class Message(NamedTuple):
    """A message as the tokenizer sees it."""

    headers: list[Header]  # (name in lower case, value unfolded but not yet decoded), in order
    parts: list[Part]

    def header(self, name: str) -> str:
        """Return the first value of the header, decoded, or an empty string."""
        return next((decode_words(value) for key, value in self.headers if key == name), "")


# A block is taken for a mail's header only if it has one of these (or an X- header): an SMS may
# well begin with "Reminder: call me".
_KNOWN_HEADERS = frozenset(
    "from to subject date cc bcc sender reply-to message-id received return-path mime-version "
    "content-type content-transfer-encoding content-disposition delivered-to envelope-to "
    "in-reply-to references resent-from resent-to list-id list-unsubscribe precedence "
    "newsgroups path status user-agent dkim-signature authentication-results".split()
)
_HEADER_LINES = re.compile(rb"(?:[!-9;-~]+[ \t]*:[^\n]*(?:\n[ \t][^\n]*)*(?:\n|\Z))+")
_HEADER = re.compile(r"([!-9;-~]+)[ \t]*:([^\n]*(?:\n[ \t][^\n]*)*)")
_FOLD = re.compile(r"\s*\n\s*")
_PARAMETER = re.compile(r';\s*([^\s=;"]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;]*))')
_ENCODED_WORD = re.compile(r"=\?([^?\s]{1,40})\?([bBqQ])\?([^?\n]*)\?=")
_NOT_BASE64 = re.compile(rb"[^A-Za-z0-9+/]+")


def parse_text(text: str) -> Message:
    """Return a message that is plain text, as a table's row or a line of a file is."""
    return Message([], [Part("text/plain", text, "")])


def parse(raw: bytes) -> Message:
    """Return the message in `raw`, whatever it holds; never raises.

    raw: a mail with its headers, or bare text.  A first mbox `From ` line is not part of it.
    Looks at BYTES_LIMIT bytes and decodes TEXT_LIMIT bytes of text at most.
    """
    raw = raw[:BYTES_LIMIT]
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):  # a file saved as "Unicode"
        raw = raw.decode("utf-16", "replace").encode("utf-8")
    if b"\r" in raw:  # CRLF, and the bare CR of old Macintoshes
        raw = raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if raw.startswith((b"From ", b">From ")):
        raw = raw.partition(b"\n")[2]
    headers, body = split_header(raw)
    if not _is_known(headers):
        return Message([], [Part("text/plain", decode(raw[:TEXT_LIMIT], ""), "")])
    return Message(headers, _leaves(headers, body))


def is_mail(sample: bytes) -> bool:
    """Return whether a file that begins with `sample` begins with a mail's header."""
    sample = sample.replace(b"\r\n", b"\n")
    if sample.startswith((b"From ", b">From ")):
        sample = sample.partition(b"\n")[2]
    return _is_known(split_header(sample)[0])


def _is_known(headers: list[Header]) -> bool:
    return any(name in _KNOWN_HEADERS or name.startswith("x-") for name, _ in headers)


def split_header(raw: bytes) -> tuple[list[Header], bytes]:
    """Return the header lines that `raw` (LF line ends) begins with, and the rest.

    The block ends at the first line that is neither a header nor the continuation of one, as
    in mail readers; a blank line there belongs to neither side.
    """
    found = _HEADER_LINES.match(raw, 0, HEADER_LIMIT)
    if not found:
        return [], raw.removeprefix(b"\n")
    block = found[0]
    try:
        text = block.decode("ascii")
    except UnicodeDecodeError:
        text = decode(block, "")
    headers = []
    for line in _HEADER.finditer(text):
        value = line[2]
        if "\n" in value:
            value = _FOLD.sub(" ", value)
        headers.append((line[1].lower(), value.strip()))
        if len(headers) == HEADERS_LIMIT:
            break
    return headers, raw[len(block) :].removeprefix(b"\n")


def _leaves(headers: list[Header], body: bytes) -> list[Part]:
    """Return the leaves of the MIME tree in reading order; a stack, so that depth cannot hurt."""
    leaves: list[Part] = []
    budget = TEXT_LIMIT
    stack = [(headers, body, 0, "text/plain")]
    while stack and len(leaves) < PARTS_LIMIT:
        headers, body, depth, default = stack.pop()
        kind = disposition = encoding = ""
        for name, value in headers:
            if name == "content-type":
                kind = kind or value
            elif name == "content-transfer-encoding":
                encoding = encoding or value.lower()
            elif name == "content-disposition":
                disposition = disposition or value
        content_type, parameters = _content_type(kind, default)
        if content_type.startswith("multipart/") and depth < DEPTH_LIMIT:
            segments = _split_parts(body, parameters.get("boundary", ""))
            if segments:
                inner = "message/rfc822" if content_type == "multipart/digest" else "text/plain"
                stack += [(*split_header(s), depth + 1, inner) for s in reversed(segments)]
                continue
            content_type = "text/plain"  # no boundary, or never used: what is there is text
        elif content_type == "message/rfc822" and depth < DEPTH_LIMIT:
            inner_headers, inner_body = split_header(_decode_transfer(body, encoding))
            subject = next((v for n, v in inner_headers if n == "subject"), "")
            leaves.append(Part("message/rfc822", decode_words(subject), ""))
            stack.append((inner_headers, inner_body, depth + 1, "text/plain"))
            continue
        filename = _filename(disposition, parameters)
        if content_type.startswith(("text/", "message/")) or content_type in _TEXTUAL:
            # Base64 needs 4 bytes for 3; what is cut off was beyond the budget either way.
            data = _decode_transfer(body[: 2 * budget], encoding)[:budget]
            budget -= len(data)
            leaves.append(Part(content_type, decode(data, parameters.get("charset", "")), filename))
        else:
            leaves.append(Part(content_type, "", filename))
    return leaves


_TEXTUAL = frozenset({"text", "multipart", "application/xhtml+xml", "application/xml"})


def _content_type(value: str, default: str) -> tuple[str, dict[str, str]]:
    """Return the media type in lower case and its parameters, of a Content-Type value."""
    if not value:
        return default, {}
    media_type = value.partition(";")[0].strip().lower()
    if "/" not in media_type:
        media_type = "text/html" if media_type == "html" else "text/plain"
    return media_type, _parameters(value)


def _parameters(value: str) -> dict[str, str]:
    """Return the parameters of a header value, with quotes and RFC 2231's encodings undone."""
    found: dict[str, str] = {}
    for name, quoted, bare in _PARAMETER.findall(value):
        text = quoted.replace("\\", "") if quoted else bare.strip()
        base, star, _ = name.lower().partition("*")
        if star and text.count("'") >= 2:
            charset, _, text = text.split("'", 2)
            text = _unquote(text, charset)
        elif star and "%" in text:
            text = _unquote(text, "")
        if star:
            found[base] = found.get(base, "") + text
        else:
            found.setdefault(base, text)
    return found


def _unquote(text: str, charset: str) -> str:
    return decode(binascii.a2b_qp(text.replace("=", "=3D").replace("%", "=")), charset)


def _filename(disposition: str, parameters: dict[str, str]) -> str:
    if disposition:
        named = _parameters(disposition).get("filename")
        if named:
            return decode_words(named)
    return decode_words(parameters.get("name", ""))


def _split_parts(body: bytes, boundary: str) -> list[bytes]:
    """Return what stands between the boundary's delimiter lines; empty when there are none.

    A delimiter is `--boundary` on a line of its own; a longer word that merely begins so (the
    boundary of an inner multipart may) is text.  A missing end delimiter is the end of the body.
    """
    if not boundary:
        return []
    delimiter = b"\n--" + boundary.encode("utf-8", "replace")
    pieces = (b"\n" + body).split(delimiter, PARTS_LIMIT)
    parts: list[bytes] = []
    for piece in pieces[1:]:
        line, _, content = piece.partition(b"\n")
        rest = line.strip()
        if rest == b"--":
            break
        if rest and parts:
            parts[-1] += delimiter + piece
        elif not rest:
            parts.append(content)
    return parts


def _decode_transfer(body: bytes, encoding: str) -> bytes:
    if "quoted-printable" in encoding:
        return binascii.a2b_qp(body)
    if "base64" in encoding:
        return decode_base64(body)
    return body


def decode_base64(data: bytes) -> bytes:
    """Return what base64 `data` stands for; what is not base64 in it is passed over.

    A text that claims to be base64 and is not comes back as it is: the reader sees it so too.
    """
    # Up to the padding: what follows it is a list's footer or junk.
    digits = _NOT_BASE64.sub(b"", data.partition(b"=")[0])
    if 3 * len(digits) < 2 * len(data.split(b"=", 1)[0].replace(b"\n", b"")):
        return data
    digits = digits[: len(digits) - (len(digits) % 4 == 1)]
    return binascii.a2b_base64(digits + b"=" * (-len(digits) % 4))


# What software says and what it means; the supersets are what mail readers use (WHATWG's table).
_SUPERSETS = {
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "x-gbk": "gb18030",
    "chinesebig5": "big5",
    "ks_c_5601-1987": "cp949",
    "euc-kr": "cp949",
    "shift_jis": "cp932",
    "shift-jis": "cp932",
    "x-sjis": "cp932",
    "unicode-1-1-utf-7": "utf-7",
}
# One byte a character, ASCII below 0x80: text in these that is valid UTF-8 is UTF-8.
_SINGLE_BYTE = ("iso-8859", "iso8859", "latin", "windows-125", "cp125", "koi8", "us-ascii", "ascii")
# Charsets that say more than ASCII in bytes below 128.
_SEVEN_BIT = ("utf-7", "unicode-1-1-utf-7", "iso-2022", "csiso2022", "hz")
# Codecs that are no charset: their cost is not linear, or their text is code.
_REFUSED = frozenset({"idna", "punycode", "unicode_escape", "raw_unicode_escape", "undefined"})


def decode(data: bytes, charset: str) -> str:
    """Return the text of `data`, whose sender claims `charset` ("" for no claim); never raises.

    Claims are often lies.  Valid UTF-8 with bytes above 127 is UTF-8 under any one-byte claim (a
    Latin text that is valid UTF-8 by chance is not met in practice); what is not valid in the
    claimed charset is tried as UTF-8, then read as Windows-1252.
    """
    name = charset.strip(" '\"").lower()
    if data.isascii() and b"\x00" not in data and not name.startswith(_SEVEN_BIT):
        return data.decode("ascii")
    name = _SUPERSETS.get(name, name)
    if name.replace("-", "_") in _REFUSED or "\x00" in name:
        name = ""
    if name.startswith("utf-16") or (not name and data.count(0) * 4 > len(data)):
        return _decode_utf16(data, name)
    for candidate in (
        ("utf-8", name) if not name or name.startswith(_SINGLE_BYTE) else (name, "utf-8")
    ):
        if candidate in ("iso-8859-1", "latin1", "us-ascii", "ascii", ""):
            continue
        try:
            return data.decode(candidate)
        except (LookupError, ValueError):  # no such charset; not valid in it
            continue
    if name and not name.startswith((*_SINGLE_BYTE, "utf-8", "utf8")):
        try:  # a multi-byte text with a broken character is still mostly that text
            return data.decode(name, "replace")
        except (LookupError, ValueError):
            pass
    try:
        return data.decode("cp1252")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _decode_utf16(data: bytes, name: str) -> str:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", "replace")
    if 4 * data.count(0) < len(data):  # claimed, but there is hardly a zero byte in it
        return decode(data, "")
    little = data[1::2].count(0) > data[::2].count(0)
    return data.decode("utf-16-le" if little else "utf-16-be", "replace")


def decode_words(value: str) -> str:
    """Return a header value with its RFC 2047 encoded words decoded.

    Neighbours of one charset are joined before they are decoded: many mailers cut a character
    in two.  A word that cannot be decoded stays as it stands.
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
