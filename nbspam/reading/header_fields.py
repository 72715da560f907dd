"""The header of a message or part: its end, its fields, their parameters and encoded words.

Sources: RFC 5322 (fields), RFC 2045 (parameters), RFC 2047 (encoded words), RFC 2231 (parameters in
pieces and charsets).
"""

import binascii
import itertools
import re

from nbspam.patterns import lazy_pattern
from nbspam.reading.charsets import decode, decode_base64
from nbspam.reading.marks import is_known

# Far above the mail in the corpora (longest header block 21 KB).
HEADER_LIMIT = 256 << 10  # bytes of one header block
HEADERS_LIMIT = 1_000  # header lines kept of one block
PARAMETERS_LIMIT = 16 << 10  # characters of one Content-Type or Content-Disposition
_JUNK_LIMIT = 64 << 10  # bytes in which a header goes on after lines that are none
_LATE_LIMIT = 10  # MIME fields read beyond the limits

Header = tuple[str, str]

# Possessive, for speed: each header line matches in one way only.  Groups are not: up to Python
# 3.11.4 a possessive group that fails in its last round ends the match too late (gh-106052).
_HEADER_LINES = re.compile(rb"(?:[!-9;-~]++[ \t]*+:[^\n]*+(?:\n[ \t][^\n]*+)*(?:\n|\Z))+")
_HEADER = re.compile(r"^([!-9;-~]++)[ \t]*+:([^\n]*+(?:\n[ \t][^\n]*+)*)", re.MULTILINE)
MIME_FIELDS = frozenset({"content-type", "content-transfer-encoding", "content-disposition"})
_MIME_FIELD = lazy_pattern(
    rb"^content-(?:type|transfer-encoding|disposition)[ \t]*:[^\n]*+(?:\n[ \t][^\n]*+){0,50}",
    re.MULTILINE | re.IGNORECASE,
)
_FIELD_LINE = lazy_pattern(rb"[ \t]|[!-9;-~]+[ \t]*:")  # or a continuation of one
_PARAMETER = lazy_pattern(r';\s*([^\s=;"]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;]*))')
# Some mailers do not encode question marks in a word; the bound keeps the pattern linear.
_ENCODED_WORD = lazy_pattern(r"=\?([^?\s]{1,40})\?([bBqQ])\?([^?\n]*(?:\?(?!=)[^?\n]*){0,20})\?=")


def split_header(raw: bytes, limits: set[str], is_part: bool = False) -> tuple[list[Header], bytes]:
    """Return the header lines that `raw` (LF line ends) begins with, and the rest.

    The block ends at the first line that is neither a header nor a continuation; if the line is
    blank, it belongs to neither.  As in mail readers, the block goes on after another such line if
    a MIME field follows before the blank line, or other known fields and few such lines.  Beyond
    HEADER_LIMIT and HEADERS_LIMIT only MIME fields are read, and "header" is added to `limits`.

    is_part: of a multipart; it may begin with lines that are no headers, as no text can be there.
    """
    lines = _HEADER_LINES.match(raw, 0, HEADER_LIMIT)
    end = lines.end() if lines else 0
    headers = _headers(raw[:end], limits) if lines else []
    is_cut = end == HEADER_LIMIT  # perhaps before the end of a line
    if (headers or is_part) and end < len(raw) and (is_cut or not raw.startswith(b"\n", end)):
        late, late_end = _late_headers(raw, end, limits, is_part)
        if not (late or is_cut or is_part or "header" in limits):
            late_end = _without_text(headers, raw, end)
        headers, end = headers + late, late_end
    return headers, raw[end:].removeprefix(b"\n")


def _without_text(headers: list[Header], raw: bytes, end: int) -> int:
    """Return the end of a header without a blank line; its last fields may be text ("Note:").

    Removes such fields from `headers`: the last ones that no mail program is known to write.
    """
    while len(headers) > 1 and not is_known(headers[-1][0]):
        del headers[-1]
        end = raw.rfind(b"\n", 0, end - 1) + 1
        while raw.startswith((b" ", b"\t"), end):
            end = raw.rfind(b"\n", 0, end - 1) + 1
    return end


def _late_headers(
    raw: bytes, end: int, limits: set[str], is_part: bool
) -> tuple[list[Header], int]:
    """Return the headers after a line that is no header, or beyond the limit, and their end."""
    is_long = end > HEADER_LIMIT // 2
    stop = len(raw) if is_long else end + _JUNK_LIMIT
    last = raw.find(b"\n\n", max(end - 1, 0), stop) + 1
    if not last:
        return [], end
    if is_long:
        limits.add("header")
        fields = itertools.islice(_MIME_FIELD.finditer(raw, end, last), _LATE_LIMIT)
        return _headers(b"\n".join(match[0] for match in fields), limits), last
    late = _headers(raw[end:last], limits)
    if not _MIME_FIELD.search(raw, end, last):
        # Without the blank line this is text, which has such lines by chance.
        is_text = is_part or not any(is_known(name) for name, _ in late)
        odd = sum(not _FIELD_LINE.match(line) for line in raw[end : last - 1].split(b"\n"))
        if is_text or odd > len(late):
            return [], end
    return late, last


def _headers(block: bytes, limits: set[str]) -> list[Header]:
    """Return at most HEADERS_LIMIT headers of a block, and its MIME fields."""
    try:
        text = block.decode("ascii")
    except UnicodeDecodeError:
        # Line by line: one header in Latin-1 does not affect the others.  But not all of 100,000
        # short ones in each of many parts: a crafted mail of 16 MB took 12 s.
        text = "\n".join(decode(line, "utf-8") for line in block.split(b"\n", 2 * HEADERS_LIMIT))
    lines: list[Header] = _HEADER.findall(text)
    if len(lines) > HEADERS_LIMIT:
        limits.add("header")
        late = [header for header in lines[HEADERS_LIMIT:] if header[0].lower() in MIME_FIELDS]
        lines = lines[:HEADERS_LIMIT] + late[:_LATE_LIMIT]
    return [
        (name.lower(), _unfolded(value) if "\n" in value else value.strip())
        for name, value in lines
    ]


def _unfolded(value: str) -> str:
    return " ".join(filter(None, map(str.strip, value.split("\n"))))


def content_type(value: str, default: str) -> tuple[str, dict[str, str]]:
    """Return the media type, in lower case, and the parameters of a Content-Type value."""
    if not value:
        return default, {}
    value = value[:PARAMETERS_LIMIT]
    # The first word: comments and parameters without a semicolon may follow.
    media_type = next(iter(value.partition(";")[0].lower().split()), "")
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
        percent = not section or section.endswith("*")  # name*, name*0*; name*0 is not encoded
        if percent and base not in extended and text.count("'") >= 2:
            charset, _, text = text.split("'", 2)
        data = text.encode("utf-8", "replace")
        if percent and b"%" in data:  # quoted-printable with another sign
            data = binascii.a2b_qp(data.replace(b"=", b"=3D").replace(b"%", b"="))
        extended.setdefault(base, (charset, []))[1].append(data)
    for base, (charset, pieces) in extended.items():
        parameters[base] = decode(b"".join(pieces), charset)
    return parameters


def decode_words(value: str) -> str:
    """Return a header value with its encoded words (RFC 2047) decoded.

    Adjacent words of one charset are decoded together, since many mailers split a character.  A
    word that cannot be decoded stays unchanged.
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


# Bytes in which a Message-ID is searched.  Mail programs write it early; the longest header block
# of the corpora has 21 KB.
HEAD = 64 << 10
_MESSAGE_ID = lazy_pattern(
    rb"^message-id[ \t]*+:([^\n]*+(?:\n[ \t][^\n]*+)*+)", re.MULTILINE | re.IGNORECASE
)
_FOLD = lazy_pattern(rb"\n[ \t]+")


def message_id(raw: bytes | bytearray) -> str:
    """Return the first Message-ID, without folds; "" if the header has none.

    Logs name it, so it is found without parsing the mail.
    raw: a mail, or at least its first HEAD bytes.  The sender chooses the value: any byte but LF,
    as a character of Latin-1.
    """
    head = bytes(raw[:HEAD])
    if b"\r" in head:
        head = head.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    end = head.find(b"\n\n")
    match = _MESSAGE_ID.search(head, 0, end if end >= 0 else len(head))
    return _FOLD.sub(b"", match[1]).strip().decode("latin-1") if match else ""
