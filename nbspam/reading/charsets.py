"""Bytes to text: transfer encodings (RFC 2045) and charsets, also with wrong claims."""

import binascii
import contextlib
import re
from encodings import normalize_encoding
from encodings.aliases import aliases

from nbspam.patterns import lazy_pattern

_SURROGATES = lazy_pattern("[\ud800-\udfff]")
# The charset that software claims, and the superset that it uses (WHATWG's).
_SUPERSETS = {
    **dict.fromkeys(("gb2312", "gbk", "x-gbk"), "gb18030"),
    **dict.fromkeys(("ks_c_5601-1987", "euc-kr"), "cp949"),
    **dict.fromkeys(("shift_jis", "shift-jis", "x-sjis"), "cp932"),
    "chinesebig5": "big5",
    "unicode-1-1-utf-7": "utf-7",
}
# One byte a character, ASCII below 0x80: text in these that is valid UTF-8 is UTF-8.
_SINGLE_BYTE = ("iso-8859", "iso8859", "latin", "windows-125", "cp125", "koi8", "us-ascii", "ascii")
_LIKE_CP1252 = ("iso-8859-1", "latin1", "us-ascii", "ascii", "")
# Charsets that encode more than ASCII in bytes below 128.
_SEVEN_BIT = ("utf-7", "unicode-1-1-utf-7", "iso-2022", "csiso2022", "hz")
_UTF_16 = ("utf-16", "utf16", "utf_16", "ucs-2", "unicode")
# Codecs that are no charsets: their cost is not linear, or their text is code.
_REFUSED = frozenset({"idna", "punycode", "unicode_escape", "raw_unicode_escape", "undefined"})
# Python caches every unknown name for ever: a mail of 1 MB with a new name in each encoded word
# took 20 MB and a second.  So only known names are looked up: those with an alias, and these.
_CODECS = frozenset(aliases.values()).union(
    "cp1006 cp720 cp737 cp856 cp874 cp875 iso8859_1 koi8_t koi8_u mac_arabic mac_croatian mac_farsi"
    " mac_romanian utf_8_sig".split()
)
_CHARSET_LIMIT = 40  # characters; the longest that Python knows has 21


def decode(data: bytes, charset: str) -> str:
    """Return the text of `data`, whose sender claims `charset` ("" for no claim); never raises.

    Claims are often wrong.  Valid UTF-8 with bytes above 127 is UTF-8 whatever one-byte charset is
    claimed (a Latin text that is valid UTF-8 by chance does not occur in practice).  Bytes that are
    invalid in the claimed charset are tried as UTF-8, then read as Windows-1252.
    """
    name = charset[: 2 * _CHARSET_LIMIT].strip(" '\"").lower()
    if data.isascii() and b"\x00" not in data and not name.startswith(_SEVEN_BIT):
        return data.decode("ascii")
    name = _SUPERSETS.get(name, name).replace("iso_8859", "iso-8859")
    if not name.isascii() or "\x00" in name or normalize_encoding(name) in _REFUSED:
        name = ""
    if name.startswith(_UTF_16) or (not name and data.count(0) * 4 > len(data)):
        return _decode_utf16(data, name)
    codec = normalize_encoding(name[: _CHARSET_LIMIT + 1])
    is_known = codec in aliases or codec.replace(".", "_") in aliases or codec in _CODECS
    if len(name) > _CHARSET_LIMIT or not is_known:
        name = ""
    candidates = [name, "utf-8"]
    if not name or name.startswith(_SINGLE_BYTE):
        candidates.reverse()
    elif data.isascii() and name.startswith(_SEVEN_BIT):
        candidates.pop()  # if broken, it is still valid UTF-8, but unreadable
    attempts = [(candidate, "strict") for candidate in candidates if candidate not in _LIKE_CP1252]
    if name and not name.startswith((*_SINGLE_BYTE, "utf-8", "utf8")):
        attempts.append((name, "replace"))  # a broken character hardly matters
    for codec, errors in [*attempts, ("cp1252", "strict")]:
        text = _decode_with(data, codec, errors)
        if text is not None:
            return text
    return data.decode("latin-1")


def _decode_with(data: bytes, codec: str, errors: str = "strict") -> str | None:
    """Return the text without unpaired surrogates; None if it is invalid or the codec unknown."""
    try:
        text = data.decode(codec, errors)
    except (LookupError, ValueError):
        return None
    try:
        text.encode()
    except UnicodeEncodeError:  # UTF-7 allows unpaired surrogates
        return _SURROGATES.sub("\ufffd", text)
    return text


def _decode_utf16(data: bytes, name: str) -> str:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", "replace")
    zeros = data.count(0)
    odd, even = data[1::2].count(0), data[::2].count(0)
    little = odd > even or (odd == even and name.endswith("le"))
    codec = "utf-16-le" if little else "utf-16-be"
    if 4 * zeros >= len(data):
        return data.decode(codec, "replace")
    # A claim with hardly a zero byte: another script than Latin, or a wrong claim.
    if (text := _decode_with(data, "utf-8")) is None and data.count(b" ") * 20 <= len(data):
        text = _decode_with(data[: len(data) & ~1], codec)
    return decode(data, "us-ascii") if text is None else text


# Transfer encodings

_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_NOT_BASE64 = bytes(set(range(256)) - set(_BASE64))  # for bytes.translate
_PADDING = lazy_pattern(rb"={1,3}[ \t]*(?:\n|\Z)")
_NEXT_LINE = lazy_pattern(rb"\n*([A-Za-z0-9+/]+={0,2})[ \t]*(?:\n|\Z)")
_PIECES_LIMIT = 50_000  # of base64, each with padding of its own, that are read: 20 ms
_SOFT_BREAK = lazy_pattern(rb"=[ \t]++(?:\n|\Z)")  # gateways add blanks
_UU_BEGIN = lazy_pattern(rb"^begin [0-7]{3,4} [^\n]*\n", re.MULTILINE)
_UU_LINES_LIMIT = 100_000  # of up to 45 bytes each


def decode_transfer(body: bytes, encoding: str, limits: set[str]) -> bytes:
    """Return a body decoded.

    encoding: the value of Content-Transfer-Encoding in lower case.
    limits: gets "encoding" if not all is decoded.
    """
    if "quoted-printable" in encoding:
        return binascii.a2b_qp(_SOFT_BREAK.sub(b"=\n", body))
    if "base64" in encoding:
        return decode_base64(body, limits)
    if "uue" in encoding:
        return decode_uu(body, limits)
    return body


def is_identity(encoding: str) -> bool:
    """Return whether an encoding (in lower case) leaves a body unchanged."""
    return not any(name in encoding for name in ("quoted-printable", "base64", "uue"))


def decode_base64(data: bytes, limits: set[str]) -> bytes:
    """Return base64 `data` decoded; other characters are ignored.

    A text wrongly claimed to be base64 is returned unchanged, as mail readers show it.
    limits: gets "encoding" if not all is decoded.
    """
    padding = _PADDING.search(data)
    encoded = data[: padding.start()] if padding else data
    digits = encoded.translate(None, _NOT_BASE64)
    # One byte in six of a text is a blank or punctuation; base64 has none except line ends, unless
    # a spammer inserts signs, which decoders ignore.
    n_digits, n = len(digits), len(encoded) - encoded.count(b"\n")
    if 10 * n_digits <= 9 * n and (2 * n_digits <= n or 15 * encoded.count(b" ") > n):
        return data
    first = _decoded(digits)
    # Mail readers go on after padding, so spam may have it in its first line.  Other lines after
    # base64 are a mailing list's footer.
    pieces = [first]
    at = padding.end() if padding else len(data)
    while line := _NEXT_LINE.match(data, at):
        if len(pieces) == _PIECES_LIMIT:
            limits.add("encoding")
            break
        pieces.append(_decoded(line[1].rstrip(b"=")))
        at = line.end()
    return b"".join(pieces)


def _decoded(digits: bytes) -> bytes:
    digits = digits[: len(digits) - (len(digits) % 4 == 1)]
    return binascii.a2b_base64(digits + b"=" * (-len(digits) % 4))


def decode_uu(data: bytes, limits: set[str]) -> bytes:
    """Return uuencoded `data` decoded, from its `begin` line on; unchanged if there is none.

    limits: gets "encoding" if not all is decoded.
    """
    begin = _UU_BEGIN.search(data)
    if not begin:
        return data
    pieces = []
    lines = data[begin.end() :].split(b"\n", _UU_LINES_LIMIT)
    for line in lines[:_UU_LINES_LIMIT]:
        if line.strip() == b"end":
            break
        if line:
            # Many encoders write more characters than the line's length says.
            line = line[: (((line[0] - 32) & 63) * 4 + 5) // 3 + 1]
            with contextlib.suppress(binascii.Error):
                pieces.append(binascii.a2b_uu(line))
    else:
        if len(lines) > _UU_LINES_LIMIT:
            limits.add("encoding")
    return b"".join(pieces)


# Byte order marks

_BYTE_ORDER_MARKS = {
    b"\xff\xfe\0\0": "utf-32",
    b"\0\0\xfe\xff": "utf-32",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
    b"\xef\xbb\xbf": "utf-8-sig",
}


def marked_encoding(first: bytes) -> str | None:
    """Return the encoding that a byte order mark shows; None without one."""
    return next((name for mark, name in _BYTE_ORDER_MARKS.items() if first.startswith(mark)), None)
