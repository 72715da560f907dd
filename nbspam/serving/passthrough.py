"""A message with its verdict in the header, and otherwise byte for byte as it came.

    X-Nbspam: spam, probability=0.998712, version=0.1.0

stands last in the header: after its last well-formed line, before the empty line or the first line
that is no header.  A text without a header gets the empty line too.  Our lines end as the line
before them does.
"""

import json
from collections.abc import Iterable
from typing import NamedTuple

from nbspam import __version__
from nbspam.reading.marks import (
    EVIDENCE,
    MARK,
    TAG,
    block_end,
    block_start,
    has_header,
    header_end,
    is_empty_line,
    lines_of,
    subject_start,
    unmarked,
)
from nbspam.reading.message import FROM_LINE

_COLUMNS = 77  # of a line; RFC 5322 asks for 78 at the most
_WORD_COLUMNS = 48  # of one word of the evidence, quoted
_CLASS_COLUMNS = 200  # of a class's name


class Marks(NamedTuple):
    """What is to be written into the message, and under which name."""

    name: str
    verdict: str
    tag: str = ""  # before the Subject; empty for none
    evidence: str | None = None


def verdict_value(called: str, probability: float) -> str:
    """Return the verdict's header value; the class's name in plain ASCII, the rest as %XX."""
    # A comma would end the name, a line end the header; UTF-8 as in a URL.
    name = "".join(
        chr(byte) if 0x20 <= byte < 0x7F and byte not in b"%," else f"%{byte:02X}"
        for byte in called.encode("utf-8", "replace")
    )[:_CLASS_COLUMNS].strip()
    return f"{name or '%20'}, probability={probability:.6f}, version={__version__}"


def evidence_value(name: str, words: Iterable[tuple[str, float]]) -> str:
    """Return the evidence header's value, folded with LF: each word and what it brought, in nats.

    name: of the verdict's header; the first line has room for it.
    A word is quoted as in JSON, so it can neither leave its quotes nor the header.
    """
    lines = [""]
    room = _COLUMNS - len(f"{name}{EVIDENCE}:")
    items = [f"{_quoted(word)} {nats:+.2f}" for word, nats in words]
    for i, item in enumerate(items):
        item += "," if i + 1 < len(items) else ""
        if len(lines[-1]) + 1 + len(item) > room:
            lines.append("")
            room = _COLUMNS
        lines[-1] += f" {item}"
    if not items:
        return "none"
    return "\n".join(lines).removeprefix(" ")


def _quoted(word: str) -> str:
    shown = ""
    for character in word:
        piece = json.dumps(character)[1:-1].replace("\x7f", "\\u007f")
        if len(shown) + len(piece) > _WORD_COLUMNS - 3:
            return f'"{shown}..."'
        shown += piece
    return f'"{shown}"'


def cleaned(raw: bytes, name: str) -> bytes:
    """Return the message without marks of this name and of nbspam's own, forged or not."""
    return unmarked(raw, (name, MARK))


def marked(raw: bytes, marks: Marks, is_cut: bool = False) -> bytes:
    """Return the message, cleaned before, with its marks.

    is_cut: it goes on; if its header does too, the marks stand first, for it may end within a line.
    """
    lines = lines_of(raw)
    end = header_end(lines)
    whole = has_header(lines, end)
    if whole:
        at = block_end(lines, end)
        if is_cut and at == len(lines):
            at = block_start(lines, end)
    elif found := FROM_LINE.match(lines):
        at = found.end()
    else:
        at = 0
    if at == 0:
        lines = raw  # nothing to agree with: LF then, which every program takes for a line end
    eol = _line_end(lines, at) if lines is raw else b"\r"
    fields = []
    if marks.tag:
        subject = subject_start(lines, end) if whole else None
        if subject is None:
            fields.append(f"Subject: {marks.tag}")
        fields.append(f"{marks.name}{TAG}: {marks.tag}")
    else:
        subject = None
    if marks.evidence is not None:
        fields.append(f"{marks.name}{EVIDENCE}: {marks.evidence}".replace(": \n", ":\n"))
    fields.append(f"{marks.name}: {marks.verdict}")
    block = "\n".join([*fields, ""]).encode("ascii").replace(b"\n", eol)
    if at and not lines.endswith(b"\n", 0, at):
        block = eol.removeprefix(b"\r" if lines.endswith(b"\r", 0, at) else b"") + block
    if not (whole or is_empty_line(lines, at)):
        block += eol
    if subject is None:
        return b"".join([raw[:at], block, raw[at:]])
    tag = marks.tag.encode("ascii") + b" "
    if subject <= at:
        return b"".join([raw[:subject], tag, raw[subject:at], block, raw[at:]])
    return b"".join([raw[:at], block, raw[at:subject], tag, raw[subject:]])


def _line_end(lines: bytes, at: int) -> bytes:
    """Return the line end before `at`; where there is none, the first of all."""
    if lines.endswith(b"\r", 0, at):
        return b"\r\n"  # half of one
    before = at if lines.endswith(b"\n", 0, at) else lines.find(b"\n") + 1
    return b"\r\n" if lines.endswith(b"\r\n", 0, before) else b"\n"
