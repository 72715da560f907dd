"""Bytes to text: transfer encodings (RFC 2045) and charsets, also if a mail names a wrong one."""

import binascii
import contextlib
import re
from encodings.aliases import aliases

from nbspam.patterns import lazy_pattern

_SURROGATES = lazy_pattern("[\ud800-\udfff]")
# Codec of a charset -> codec of the larger charset that software means by its name (WHATWG).
_SUPERSETS = {
    **dict.fromkeys(("ascii", "latin_1", "iso8859_1"), "cp1252"),
    **dict.fromkeys(("gb2312", "gbk"), "gb18030"),
    **dict.fromkeys(("iso8859_11", "tis_620"), "cp874"),
    "iso8859_9": "cp1254",
    "big5": "big5hkscs",
    "euc_kr": "cp949",
    "shift_jis": "cp932",
}
# Codec -> names, without hyphens and underscores, that Python's aliases lack.  With these names
# every label in WHATWG's Encoding Standard is known (a test compares them).
_NAMES = {
    "big5": "cnbig5 xxbig5 chinesebig5",
    "cp932": "windows31j",
    "cp949": "cseuckr csksc56011987 isoir149 ksc56011989 windows949",
    "euc_jp": "cseucpkdfmtjapanese",
    "gb2312": "csgb2312",
    "iso8859_6": "csiso88596e csiso88596i iso88596e iso88596i",
    "iso8859_7": "suneugreek",
    "iso8859_8": "csiso88598e csiso88598i iso88598e iso88598i logical visual",
    "iso8859_15": "csisolatin9",
    "koi8_r": "koi koi8",
    "koi8_u": "koi8ru",
    "mac_cyrillic": "macukrainian",
    "mac_roman": "csmacintosh mac",
    "utf_16": "csunicode iso10646ucs2 ucs2 unicode unicodefeff",
    "utf_16_be": "unicodefffe",
    "utf_7": "csunicode11utf7 csutf7 unicode11utf7 unicode20utf7",
    "utf_8": "unicode11utf8 unicode20utf8",
}
# Codecs without any alias.
_UNALIASED = (
    "cp1006 cp720 cp737 cp856 cp874 cp875 iso8859_1 koi8_t koi8_u mac_arabic mac_croatian mac_farsi"
    " mac_romanian utf_8_sig"
)
# Python caches every unknown name and never frees it: a mail of 1 MB with a new name in each
# encoded word took 20 MB and a second.  So only the names in this table are looked up.
_ALIASES = {codec: codec for codec in (*aliases.values(), *_UNALIASED.split())} | aliases
_CODECS = {name.replace("_", ""): codec for name, codec in _ALIASES.items()} | {
    name: codec for codec, names in _NAMES.items() for name in names.split()
}
_NAME_LIMIT = 80  # characters
_CODE_PAGE = lazy_pattern(r"x?(?:cp|dos|ibm|ms|win|windows)(\d+)")
# Charsets of one byte per character, with ASCII below 0x80.  A text that claims one of them and is
# valid UTF-8 is UTF-8.
_SINGLE_BYTE = ("ascii", "cp125", "cp8", "iso8859", "koi8", "latin", "mac")
_CONTROLS = bytes(range(9))
_META_LIMIT = 1024  # bytes at the start of a page in which its charset is searched
_META = lazy_pattern(rb"<meta\s[^>]{0,500}?charset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE)


def codec_of(charset: str) -> str:
    """Look up the Python codec for a charset's name in a mail; "" if the name is unknown.

    Signs and an x- in front do not matter: x-cp1251, cp-1251, win1251 and Windows_1251 are one.
    """
    name = "".join(filter(str.isalnum, charset[:_NAME_LIMIT].lower()))
    codec = _CODECS.get(name) or _CODECS.get(name.lstrip("x"), "")
    if not codec and (page := _CODE_PAGE.fullmatch(name)):
        codec = _CODECS.get(f"cp{page[1]}", "")
    return _SUPERSETS.get(codec, codec)


def decode(data: bytes, charset: str) -> str:
    """Decode `data`, whose sender claims `charset` ("" for no claim); never raises.

    Without a known claim, a page's <meta charset> is the claim.  Claims are often wrong.  Valid
    UTF-8 with bytes above 127 is UTF-8 whatever one-byte charset is claimed (a Latin text that is
    valid UTF-8 by chance does not occur in practice).  If some bytes are invalid in the claimed
    charset, the text is read as UTF-8 if it is valid UTF-8; else as Windows-1252 if nothing, UTF-8
    or Windows-1252 is claimed; else the bytes are replaced.
    """
    codec = codec_of(charset) if charset else ""
    is_ascii = data.isascii()
    if (
        not codec
        and (not is_ascii or b"\x1b" in data)
        and (meta := _META.search(data[:_META_LIMIT]))
    ):
        codec = codec_of(meta[1].decode("latin-1"))
        # the tag was found in ASCII, so the page is not in UTF-16 or UTF-32
        codec = "" if codec.startswith("utf_") else codec
    is_seven_bit = codec in ("utf_7", "hz") or codec.startswith("iso2022")
    if is_ascii and b"\x00" not in data and not is_seven_bit:
        return data.decode("ascii")
    if codec.startswith("utf_16") or (not codec and data.count(0) * 4 > len(data)):
        return _decode_utf16(data, codec)
    attempts = [("utf-8", "strict")]
    if codec and not codec.startswith("utf_8"):
        if is_ascii and is_seven_bit:
            attempts.clear()  # a text in such a charset may be valid UTF-8, but unreadable
        if not codec.startswith(_SINGLE_BYTE):
            attempts.insert(0, (codec, "strict"))
        if codec != "cp1252":
            attempts.append((codec, "replace"))  # a few broken characters do little harm
    for attempt in [*attempts, ("cp1252", "strict")]:
        text = _decode_with(data, *attempt)
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


def _decode_utf16(data: bytes, codec: str) -> str:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", "replace")
    zeros = data.count(0)
    odd, even = data[1::2].count(0), data[::2].count(0)
    little = odd > even or (odd == even and not codec.endswith("be"))
    codec = "utf-16-le" if little else "utf-16-be"
    if 4 * zeros >= len(data):
        return data.decode(codec, "replace")
    # If UTF-16 is claimed and zero bytes are rare, the script is not Latin, or the claim is wrong.
    has_control = len(data.translate(None, _CONTROLS)) < len(
        data
    )  # UTF-16's Greek to Arabic have bytes 3 to 6
    text = None if has_control else _decode_with(data, "utf-8")
    if text is None and (has_control or data.count(b" ") * 20 <= len(data)):
        text = _decode_with(data[: len(data) & ~1], codec)
    return decode(data, "us-ascii") if text is None else text


# Transfer encodings

_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_NOT_BASE64 = bytes(set(range(256)) - set(_BASE64))  # for bytes.translate
_NOT_PADDED = bytes(set(_NOT_BASE64) - {ord("=")})
# The share of valid UTF-8 that shows a text, and the bytes from which on: random bytes have 0.5.
_MIN_VALID, _MIN_DECODED = 0.8, 40
_PADDING = lazy_pattern(rb"={1,3}[ \t]*(?:\n|\Z)")
_NEXT_LINE = lazy_pattern(rb"\n*([A-Za-z0-9+/]+={0,2})[ \t]*(?:\n|\Z)")
_PIECES_LIMIT = 50_000  # base64 pieces with padding of their own; decoding them takes 20 ms
_SOFT_BREAK = lazy_pattern(rb"=[ \t]++(?:\n|\Z)")  # gateways add blanks
_UU_BEGIN = lazy_pattern(rb"^begin [0-7]{3,4} [^\n]*\n", re.MULTILINE)
_UU_LINES_LIMIT = 100_000  # each has up to 45 bytes


def decode_transfer(body: bytes, encoding: str, limits: set[str]) -> bytes:
    """Decode a body.

    encoding: the value of Content-Transfer-Encoding in lower case.
    limits: a set, to which "encoding" is added if a part is not decoded.
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
    """Decode base64 `data`; other characters are ignored.

    Text that may be wrongly claimed to be base64 is returned in both readings.
    limits: a set, to which "encoding" is added if a part is not decoded.
    """
    padding = _PADDING.search(data)
    encoded = data[: padding.start()] if padding else data
    digits = encoded.translate(None, _NOT_BASE64)
    # A sixth of a text's bytes are blanks or punctuation.  Between the digits of base64 are only
    # line ends, unless a spammer inserts signs, which decoders ignore.
    n_digits, n = len(digits), len(encoded) - encoded.count(b"\n")
    if 10 * n_digits <= 9 * n and (2 * n_digits <= n or 15 * encoded.count(b" ") > n):
        return b"\n".join(filter(None, [data, _decode_text(data, limits)]))
    # Mail readers decode further after padding, so spam may have padding in its first line.  Other
    # lines after base64 are mostly a mailing list's footer.
    pieces = [_decode_padded(encoded, limits) if b"=" in encoded else _decode_digits(digits)]
    at = padding.end() if padding else len(data)
    while line := _NEXT_LINE.match(data, at):
        if len(pieces) == _PIECES_LIMIT:
            limits.add("encoding")
            break
        pieces.append(_decode_digits(line[1].rstrip(b"=")))
        at = line.end()
    else:
        pieces.append(_decode_text(data[at:], limits))
    return b"".join(pieces)


def _decode_text(data: bytes, limits: set[str]) -> bytes:
    """Decode base64 between other characters; b"" if that gives no text."""
    decoded = _decode_padded(data, limits)
    n_valid = len(decoded.decode("utf-8", "ignore").encode())
    return decoded if n_valid >= max(_MIN_DECODED, _MIN_VALID * len(decoded)) else b""


def _decode_padded(data: bytes, limits: set[str]) -> bytes:
    """Decode base64 with padding anywhere."""
    *pieces, rest = data.translate(None, _NOT_PADDED).split(b"=", _PIECES_LIMIT)
    if b"=" in rest.rstrip(b"="):
        limits.add("encoding")
    return b"".join(map(_decode_digits, [*pieces, rest.replace(b"=", b"")]))


def _decode_digits(digits: bytes) -> bytes:
    digits = digits[: len(digits) - (len(digits) % 4 == 1)]
    return binascii.a2b_base64(digits + b"=" * (-len(digits) % 4))


def decode_uu(data: bytes, limits: set[str]) -> bytes:
    """Decode uuencoded `data` from its `begin` line on; data without that line stays unchanged.

    limits: a set, to which "encoding" is added if a part is not decoded.
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
            # Many encoders write more characters than the length byte of the line counts.
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


def bom_encoding(first: bytes) -> str | None:
    """Return the encoding that a byte order mark shows; None without one."""
    return next((name for mark, name in _BYTE_ORDER_MARKS.items() if first.startswith(mark)), None)
