"""Transfer encodings of a part's body: base64, quoted-printable and uuencode (RFC 2045)."""

import binascii
import contextlib
import re

from nbspam.patterns import lazy_pattern

_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_NOT_BASE64 = bytes(set(range(256)) - set(_BASE64))  # for bytes.translate
_PADDING = lazy_pattern(rb"={1,3}[ \t]*(?:\n|\Z)")
_NEXT_LINE = lazy_pattern(rb"\n*([A-Za-z0-9+/]+={0,2})[ \t]*(?:\n|\Z)")
_PIECES_LIMIT = 50_000  # of base64, each with padding of its own, that are read: 20 ms
_UU_BEGIN = lazy_pattern(rb"^begin [0-7]{3,4} [^\n]*\n", re.MULTILINE)
_UU_LINES_LIMIT = 100_000  # of up to 45 bytes each


def decode_transfer(body: bytes, encoding: str, limits: set[str]) -> bytes:
    """Return a body decoded.

    encoding: the value of Content-Transfer-Encoding in lower case.
    limits: gets "encoding" if not all is decoded.
    """
    if "quoted-printable" in encoding:
        return binascii.a2b_qp(body)
    if "base64" in encoding:
        return decode_base64(body, limits)
    if "uue" in encoding:
        return decode_uu(body, limits)
    return body


def is_identity(encoding: str) -> bool:
    """Return whether an encoding, in lower case, leaves a body as it is."""
    return not any(name in encoding for name in ("quoted-printable", "base64", "uue"))


def decode_base64(data: bytes, limits: set[str]) -> bytes:
    """Return base64 `data` decoded; characters that are not base64 are ignored.

    A text that claims to be base64 and is not is returned unchanged: mail readers show it so, too.
    limits: gets "encoding" if not all is decoded.
    """
    padding = _PADDING.search(data)
    encoded = data[: padding.start()] if padding else data
    digits = encoded.translate(None, _NOT_BASE64)
    if _is_text(encoded, len(digits)):
        return data
    first = _decoded(digits)
    # Mail readers go on after padding, so spam has some in its first line.  What follows base64 as
    # other lines is a mailing list's footer.
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


def _is_text(encoded: bytes, n_digits: int) -> bool:
    """Return whether what claims to be base64 is a text.

    One byte in six of a text is a space or punctuation; base64 has none except line ends, unless
    a spammer puts signs between, which decoders ignore.
    """
    n = len(encoded) - encoded.count(b"\n")
    return 10 * n_digits <= 9 * n and (2 * n_digits <= n or 15 * encoded.count(b" ") > n)


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
