"""The verdict written into a message's header; every other byte stays as it was.

The verdict is the last line of the header.  It follows the last well-formed header line, before the
empty line or the first malformed line:

    X-Nbspam: spam, probability=0.998712, version=1.0.0
    X-Nbspam: unsure, probability=0.000632, reason=too-few-known-words, version=1.0.0

A text without a header also gets an empty line.  An added line has the same line end as the line
before it.
"""

import json
from collections.abc import Iterable
from typing import NamedTuple

from nbspam import __version__
from nbspam.reading import marks
from nbspam.reading.message import FROM_LINE

_COLUMNS = 77  # characters of a line; RFC 5322 asks for at most 78
_WORD_COLUMNS = 48  # characters of a quoted word in the evidence
_CLASS_COLUMNS = 200  # characters of a class's name


class VerdictHeader(NamedTuple):
    """The header fields to write into a message."""

    name: str
    verdict: str
    tag: str = ""  # put before the Subject's text; empty: no tag
    evidence: str | None = None


def verdict_value(called: str, probability: float, reason: str | None = None) -> str:
    """Return the verdict's header value; bytes of the class name beyond printable ASCII become %XX.

    reason: why the verdict is unsure, if the probability did not decide.
    """
    # A comma would end the name, and a newline would end the header, so both are escaped, as is %.
    # Other characters beyond printable ASCII are escaped as UTF-8 bytes, as in a URL.
    name = "".join(
        chr(byte) if 0x20 <= byte < 0x7F and byte not in b"%," else f"%{byte:02X}"
        for byte in called.encode("utf-8", "replace")
    )[:_CLASS_COLUMNS].strip()
    why = f", reason={reason.replace(' ', '-')}" if reason else ""
    return f"{name or '%20'}, probability={probability:.6f}{why}, version={__version__}"


def evidence_value(name: str, words: Iterable[tuple[str, float]]) -> str:
    """Return the evidence header's value, folded with LF: each word and its contribution in nats.

    name: the verdict's header; the first line leaves space for it.  Words are quoted as in JSON, so
    that no word can end its quotes or the header.
    """
    lines = [""]
    room = _COLUMNS - len(f"{name}{marks.EVIDENCE}:")
    items = [f"{_quoted(word)} {nats:+.2f}" for word, nats in words]
    for i, item in enumerate(items):
        item += "," if i + 1 < len(items) else ""
        if len(lines[-1]) + 1 + len(item) > room:
            lines.append("")
            room = _COLUMNS
        lines[-1] += f" {item}"
    return "\n".join(lines).removeprefix(" ") or "none"


def _quoted(word: str) -> str:
    shown = ""
    for character in word:
        piece = json.dumps(character)[1:-1].replace("\x7f", "\\u007f")
        if len(shown) + len(piece) > _WORD_COLUMNS - 3:
            return f'"{shown}..."'
        shown += piece
    return f'"{shown}"'


def remove_own_fields(raw: bytes, name: str) -> bytes:
    """Remove the headers called `name` or X-Nbspam with their evidence and tag.

    Other headers are removed if their value is a verdict, genuine or forged.
    """
    return marks.remove_marks(raw, (name, marks.MARK))


def add_fields(raw: bytes, header: VerdictHeader) -> bytes:
    """Return a message with the header fields; `remove_own_fields` must have removed its old ones.

    raw: the message, or at least its first `marks.PLACE_LIMIT` bytes.
    """
    lines = marks.lines_of(raw)
    end = marks.header_end(lines)
    is_mail = marks.has_header(lines, end)
    if is_mail:
        at = marks.block_end(lines, end)
    else:
        from_line = FROM_LINE.match(lines)
        at = from_line.end() if from_line else 0
    if at == 0:
        # An added first line must not end with a lone CR, because many programs do not treat it as
        # a line end.
        lines = raw
    eol = _line_end(lines, at) if lines is raw else b"\r"
    subject = marks.subject_start(lines, end) if header.tag and is_mail else None
    block = _added_fields(header, eol, subject is not None)
    is_begun = lines[:at] not in (b"", marks.BOM)
    if is_begun and not lines.endswith(b"\n", 0, at):  # the line before has no line end
        block = eol.removeprefix(b"\r" if lines.endswith(b"\r", 0, at) else b"") + block
    if not (is_mail or marks.is_empty_line(lines, at)):
        block += eol  # the empty line that ends the header
    if subject is None:
        return b"".join([raw[:at], block, raw[at:]])
    tag = header.tag.encode("ascii") + b" "
    if subject <= at:
        return b"".join([raw[:subject], tag, raw[subject:at], block, raw[at:]])
    return b"".join([raw[:at], block, raw[at:subject], tag, raw[subject:]])


def _added_fields(header: VerdictHeader, eol: bytes, has_subject: bool) -> bytes:
    """Return the lines of the header fields, the verdict last."""
    fields = []
    if header.tag:
        if not has_subject:
            fields.append(f"Subject: {header.tag}")
        fields.append(f"{header.name}{marks.TAG}: {header.tag}")
    if header.evidence is not None:
        fields.append(f"{header.name}{marks.EVIDENCE}: {header.evidence}".replace(": \n", ":\n"))
    fields.append(f"{header.name}: {header.verdict}")
    return "\n".join([*fields, ""]).encode("ascii").replace(b"\n", eol)


def _line_end(lines: bytes, at: int) -> bytes:
    """Return the line end before `at`, or the message's first one if `at` is the start."""
    if lines.endswith(b"\r", 0, at):
        return b"\r\n"  # the CR is its first half
    before = at if lines.endswith(b"\n", 0, at) else lines.find(b"\n") + 1
    return b"\r\n" if lines.endswith(b"\r\n", 0, before) else b"\n"
