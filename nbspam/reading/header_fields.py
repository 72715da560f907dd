"""The header of a message or part: its end, its fields, their parameters and encoded words.

Sources: RFC 5322 (fields), RFC 2045 (parameters), RFC 2047 (encoded words), RFC 2231 (parameters in
pieces and charsets).
"""

import binascii
import itertools
import re

from nbspam.errors import one_line
from nbspam.patterns import lazy_pattern
from nbspam.reading.charsets import codec_of, decode, decode_base64
from nbspam.reading.marks import is_known_field

# Limits far above the mail in the corpora, whose longest header block has 21 KB.
HEADER_LIMIT = 256 << 10  # bytes of one header block
HEADERS_LIMIT = 1_000  # header lines kept of one block
PARAMETERS_LIMIT = 16 << 10  # characters of one Content-Type or Content-Disposition
_JUNK_LIMIT = 64 << 10  # bytes of junk lines after which a header may continue
_LATE_LIMIT = 10  # MIME fields read beyond the limits

Header = tuple[str, str]

# Possessive quantifiers, for speed: each header line matches in one way only.  Only single
# quantifiers are possessive: up to Python 3.11.4, a possessive group that fails in its last
# repetition ends the match too late (gh-106052).
_HEADER_LINES = re.compile(rb"(?:[!-9;-~]++[ \t]*+:[^\n]*+(?:\n[ \t][^\n]*+)*(?:\n|\Z))+")
_HEADER = re.compile(r"^([!-9;-~]++)[ \t]*+:([^\n]*+(?:\n[ \t][^\n]*+)*)", re.MULTILINE)
MIME_FIELDS = frozenset({"content-type", "content-transfer-encoding", "content-disposition"})
_MIME_FIELD = lazy_pattern(
    rb"^content-(?:type|transfer-encoding|disposition)[ \t]*:[^\n]*+(?:\n[ \t][^\n]*+){0,50}",
    re.MULTILINE | re.IGNORECASE,
)
_CHARSET = lazy_pattern(
    rb"^content-type[ \t]*:(?:[^\n]|\n[ \t]){0,500}?;\s*charset\s*=\s*[\"']?([\w.:-]{1,40})",
    re.MULTILINE | re.IGNORECASE,
)
_CHARSET_LIMIT = 64 << 10  # bytes in which a mail's first charset is searched
_NOT_ASCII_BASED = "utf", "iso2022", "hz"  # beginnings of codecs; UTF-8 is tried anyway
_FIELD_LINE = lazy_pattern(rb"[ \t]|[!-9;-~]+[ \t]*:")  # a field, or its continuation
_PARAMETER = lazy_pattern(r';\s*([^\s=;"]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;]*))')
# Some mailers do not encode question marks in a word.  A bound on the length keeps the search
# linear.
_ENCODED_WORD = lazy_pattern(r"=\?([^?\s]{1,40})\?([bBqQ])\?([^?\n]*(?:\?(?!=)[^?\n]*){0,20})\?=")


def split_header(raw: bytes, limits: set[str], is_part: bool = False) -> tuple[list[Header], bytes]:
    """Split `raw` (LF line ends) into its header lines and the rest.

    The header ends at the first line that is neither a header line nor a continuation.  If that
    line is blank, neither result contains it.  A header with junk lines continues after them, as in
    mail readers, if a MIME field follows before the blank line, or if other known fields follow few
    junk lines.  Beyond HEADER_LIMIT and HEADERS_LIMIT only MIME fields are read, and "header" is
    added to `limits`.

    is_part: whether raw is a part of a multipart; it may start with junk lines, because no text
    can be there.
    """
    lines = _HEADER_LINES.match(raw, 0, HEADER_LIMIT)
    end = lines.end() if lines else 0
    headers = _headers(raw[:end], raw, limits) if lines else []
    is_cut = end == HEADER_LIMIT  # the block may be cut within a line
    if (headers or is_part) and end < len(raw) and (is_cut or not raw.startswith(b"\n", end)):
        late, late_end = _late_headers(raw, end, limits, is_part)
        if not (late or is_cut or is_part or "header" in limits):
            late_end = _trim_text_lines(headers, raw, end)
        headers, end = headers + late, late_end
    return headers, raw[end:].removeprefix(b"\n")


def _trim_text_lines(headers: list[Header], raw: bytes, end: int) -> int:
    """Remove text that looks like fields ("Note:") from the end of a header without a blank line.

    Removes the last fields that no mail program is known to write; returns the new end.
    """
    while len(headers) > 1 and not is_known_field(headers[-1][0]):
        del headers[-1]
        end = raw.rfind(b"\n", 0, end - 1) + 1
        while raw.startswith((b" ", b"\t"), end):
            end = raw.rfind(b"\n", 0, end - 1) + 1
    return end


def _late_headers(
    raw: bytes, end: int, limits: set[str], is_part: bool
) -> tuple[list[Header], int]:
    """Return the headers after a junk line, or beyond the limit, and their end."""
    is_long = end > HEADER_LIMIT // 2
    stop = len(raw) if is_long else end + _JUNK_LIMIT
    last = raw.find(b"\n\n", max(end - 1, 0), stop) + 1
    if not last:
        return [], end
    if is_long:
        limits.add("header")
        fields = itertools.islice(_MIME_FIELD.finditer(raw, end, last), _LATE_LIMIT)
        return _headers(b"\n".join(match[0] for match in fields), raw, limits), last
    late = _headers(raw[end:last], raw, limits)
    if not _MIME_FIELD.search(raw, end, last):
        # Without a MIME field this may be text, in which lines with a colon occur by chance.
        is_text = is_part or not any(is_known_field(name) for name, _ in late)
        odd = sum(not _FIELD_LINE.match(line) for line in raw[end : last - 1].split(b"\n"))
        if is_text or odd > len(late):
            return [], end
    return late, last


def _headers(block: bytes, raw: bytes, limits: set[str]) -> list[Header]:
    """Return at most HEADERS_LIMIT headers of a block, and its MIME fields.

    raw: the message or part, whose charset is used for bytes that are not UTF-8.
    """
    try:
        text = block.decode("ascii")
    except UnicodeDecodeError:
        # Lines are decoded one by one, so that a Latin-1 header does not affect the others.  Their
        # number is limited: a mail of 16 MB crafted from parts with 100,000 short lines took 12 s.
        charset = _first_charset(raw)
        lines_of_block = block.split(b"\n", 2 * HEADERS_LIMIT)
        text = "\n".join(_decode_line(line, charset) for line in lines_of_block)
    lines: list[Header] = _HEADER.findall(text)
    if len(lines) > HEADERS_LIMIT:
        limits.add("header")
        late = [header for header in lines[HEADERS_LIMIT:] if header[0].lower() in MIME_FIELDS]
        lines = lines[:HEADERS_LIMIT] + late[:_LATE_LIMIT]
    return [
        (name.lower(), _unfold(value) if "\n" in value else value.strip()) for name, value in lines
    ]


def _first_charset(raw: bytes) -> str:
    """Return the first charset named in a message or its parts, if it extends ASCII."""
    match = _CHARSET.search(raw, 0, _CHARSET_LIMIT)
    charset = match[1].decode("latin-1") if match else ""
    return "us-ascii" if codec_of(charset).startswith(_NOT_ASCII_BASED) else charset or "us-ascii"


def _decode_line(line: bytes, charset: str) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError:
        return decode(line, charset)


def _unfold(value: str) -> str:
    return " ".join(filter(None, map(str.strip, value.split("\n"))))


def content_type(value: str, default: str) -> tuple[str, dict[str, str]]:
    """Return the media type, in lower case, and the parameters of a Content-Type value."""
    if not value:
        return default, {}
    value = value[:PARAMETERS_LIMIT]
    # Only the first word is the type: comments, or parameters without a semicolon, may follow.
    media_type = next(iter(value.partition(";")[0].lower().replace('"', "").split()), "")
    if "/" not in media_type:
        media_type = "text/html" if media_type == "html" else "text/plain"
    return media_type, parameters_of(value)


def parameters_of(value: str) -> dict[str, str]:
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
        # name* and name*0* are encoded, name*0 is not
        percent = not section or section.endswith("*")
        if percent and base not in extended and text.count("'") >= 2:
            charset, _, text = text.split("'", 2)
        data = text.encode("utf-8", "replace")
        if percent and b"%" in data:  # percent-encoding is quoted-printable with another sign
            data = binascii.a2b_qp(data.replace(b"=", b"=3D").replace(b"%", b"="))
        extended.setdefault(base, (charset, []))[1].append(data)
    for base, (charset, pieces) in extended.items():
        parameters[base] = decode(b"".join(pieces), charset)
    return parameters


def decode_words(value: str) -> str:
    """Decode the encoded words (RFC 2047) of a header value.

    Adjacent words in the same charset are decoded together, because many mailers split a character
    between two words.  A word that cannot be decoded stays unchanged.
    """
    if "=?" not in value:
        return value
    out: list[str] = []
    pending, charset, end = b"", "", 0
    for word in _ENCODED_WORD.finditer(value):
        between = value[end : word.start()]
        data = word[3].encode("utf-8", "replace")
        if word[2] in "bB":
            data = decode_base64(data, set())
        else:
            data = binascii.a2b_qp(data.replace(b" ", b"=20"), header=True)
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


# Bytes searched for a Message-ID, a sender or a Subject.  Mail programs write them early; the
# longest header block in the corpora has 21 KB.
HEAD = 64 << 10
_NAMED_FIELD = lazy_pattern(
    rb"^(message-id|from|subject)[ \t]*+:([^\n]*+(?:\n[ \t][^\n]*+)*+)",
    re.MULTILINE | re.IGNORECASE,
)
_FOLD = lazy_pattern(rb"\n[ \t]+")
_MAX_SHOWN = 60  # characters of a sender, and of a Subject


def _first_fields(raw: bytes | bytearray) -> dict[bytes, bytes]:
    """Return the first Message-ID, From and Subject of a mail, by their names in lower case."""
    head = bytes(raw[:HEAD])
    if b"\r" in head:
        head = head.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    end = head.find(b"\n\n")
    fields: dict[bytes, bytes] = {}
    for field in _NAMED_FIELD.finditer(head, 0, end if end >= 0 else len(head)):
        fields.setdefault(field[1].lower(), field[2])
    return fields


def message_id(raw: bytes | bytearray) -> str:
    """Find the first Message-ID, without folds; "" if the header has no Message-ID.

    For logs, which need the Message-ID without parsing the mail.
    raw: a mail, or at least its first HEAD bytes.  The sender chooses the value: any bytes except
    LF, each as a character of Latin-1.
    """
    value = _first_fields(raw).get(b"message-id", b"")
    return _FOLD.sub(b"", value).strip().decode("latin-1")


_CLOCK = lazy_pattern(r"\b\d?\d:(\d\d)(?::(\d\d))?")
_LIST_TAG = lazy_pattern(r"\[[^\]]{0,60}\]")
_QUARTER = 15  # minutes; time zones differ by a multiple of it
_SUBJECT_END_LENGTH = 30  # characters


def identity_of(headers: list[Header], subject: str) -> str:
    """Return a mail's identity, which no program changes; "" without a Message-ID.

    The identity is the Message-ID with the time within a quarter of an hour and the end of the
    Subject, because some programs give all their mails the same Message-ID.  Exchange changes the
    time zone, and lists and filters put words before the Subject.  The identity leaves out the
    text, because lists add footers and servers convert encodings.
    subject: decoded.
    """
    for name, value in headers:
        if name == "message-id" and value.strip("<> "):
            date = next((value for name, value in headers if name == "date"), "")
            clock = _CLOCK.search(date)
            time = f"{int(clock[1]) % _QUARTER}:{clock[2]}" if clock else ""
            letters = "".join(filter(str.isalnum, _LIST_TAG.sub("", subject).casefold()))
            return f"{''.join(value.split())} {time} {letters[-_SUBJECT_END_LENGTH:]}"
    return ""


def heading(raw: bytes) -> str:
    """Name a mail by its sender and Subject, in one line; "" if it has neither."""
    fields = _first_fields(raw)
    texts = []
    for name in (b"from", b"subject"):
        value = decode(_FOLD.sub(b" ", fields.get(name, b"")), "utf-8")
        text = one_line(" ".join(decode_words(value).split()))
        texts.append(text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 1] + "…")
    return ": ".join(filter(None, texts))
