"""Exports of programs for short messages: many messages in one text.

SMS Backup & Restore writes XML, with an element for each SMS and for each part of an MMS; its list
of calls is XML, too.  WhatsApp writes a text in which each message starts with its date and time,
in the format of the user's country, and its author's name.
"""

import re
from collections.abc import Callable, Iterator

from nbspam.errors import SourceError
from nbspam.patterns import lazy_pattern
from nbspam.reading.charsets import bom_encoding
from nbspam.reading.lines import decode_lines, decoding_of, wide_encoding
from nbspam.reading.message import RawMessage
from nbspam.reading.source import Input, SourceKind

_WIDE_SAMPLE = 1 << 12  # bytes in which UTF-16 is recognised
_ROOT = lazy_pattern(
    r"\s*(?:<\?[^?]*(?:\?(?!>)[^?]*)*\?>\s*|<!--[^-]*(?:-(?!->)[^-]*)*-->\s*)*<(smses|calls)\b"
)
# SMS Backup & Restore writes an emoji as two surrogates
_SURROGATES = lazy_pattern(r"&#(5[5-6]\d{3});&#(5[67]\d{3});")
_REFERENCE = lazy_pattern(r"&#(x?)([0-9a-fA-F]{1,7});")
_CONTROLS = lazy_pattern("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
# In Arabic, invisible marks are between the numbers.
_CHAT_DATE = r"\d{1,4}[\s\u200f]?[./年년-]\s?\d{1,2}[\s\u200f]?[./月월-]\s?\d{1,4}"
_CHAT_LINE = lazy_pattern(
    r"[\ufeff\u200e\u200f\u202a]*\[?"
    rf"{_CHAT_DATE}[^\d\n]{{0,12}}\d{{1,2}}\s?[:.h٫]\s?\d\d(?:[:.]\d\d)?"
    r"[^\d\n:]{0,12}?(?:\]|\s[-–—]|[,،]\s)\s*(?:([^:\n]{1,100}):[^\S\n]?)?"
)
_MIN_CHAT_LINES = 2


def export_kind(source: Input) -> SourceKind | None:
    """Return the kind of an exported file; None for any other file."""
    codec = bom_encoding(source.sample) or wide_encoding(source.sample[:_WIDE_SAMPLE])
    text = source.sample.decode(codec or "utf-8", "replace").lstrip("\ufeff")
    if _ROOT.match(text):
        return _SMS_BACKUP
    matches = [_CHAT_LINE.match(line) for line in source.lines]
    starts = [match is not None for match in matches]
    is_chat = starts[:1] == [True] or 2 * sum(starts) > len(starts)  # there may be a title above it
    has_author = any(match and match[1] for match in matches)
    return _CHAT if is_chat and has_author and sum(starts) >= _MIN_CHAT_LINES else None


def _check_reference(match: re.Match[str]) -> str:
    """Keep a reference to a character that XML allows; replace any other reference."""
    number = int(match[2], 16 if match[1] else 10)
    is_valid = number in (9, 10, 13) or 32 <= number < 0xD800 or 0xE000 <= number <= 0x10FFFF
    return match[0] if is_valid and number not in (0xFFFE, 0xFFFF) else "\ufffd"


def _join_surrogates(match: re.Match[str]) -> str:
    return chr(0x10000 + ((int(match[1]) - 0xD800) << 10) + int(match[2]) - 0xDC00)


def _parse_sms(lines: Iterator[str]) -> Iterator[str]:
    """Yield the texts; raises SourceError for invalid XML."""
    from xml.parsers import expat

    found: list[str] = []

    def on_element(name: str, attributes: dict[str, str]) -> None:
        if name == "sms" or (name == "part" and attributes.get("ct", "").startswith("text/plain")):
            found.append(attributes.get("body" if name == "sms" else "text", ""))

    # the lines are decoded already, whatever the XML declaration says
    parser = expat.ParserCreate("utf-8")
    parser.StartElementHandler = on_element
    try:
        for line in lines:
            text = _REFERENCE.sub(_check_reference, _SURROGATES.sub(_join_surrogates, line))
            parser.Parse(_CONTROLS.sub("\ufffd", text.removeprefix("\ufeff")))
            yield from found
            found.clear()
        parser.Parse("", True)
    except expat.ExpatError as error:
        yield from found
        raise SourceError(f"is no whole XML ({error})") from error


def _parse_chat(lines: Iterator[str]) -> Iterator[str]:
    """Yield the messages of a chat; WhatsApp's own lines have no author."""
    message: list[str] = []
    for line in lines:
        if start := _CHAT_LINE.match(line):
            yield "".join(message)
            message = [line[start.end() :]] if start[1] else []
        elif message:
            message.append(line)
    yield "".join(message)


def _make_kind(name: str, texts: Callable[[Iterator[str]], Iterator[str]]) -> SourceKind:
    """Make a kind of export; texts: yields the messages in a file's lines."""

    def read(source: Input) -> Iterator[RawMessage]:
        title, number = source.title, 0
        source.note(f"{title}: is {name}; each of its messages is read as one")
        lines = decode_lines(title, source.open, decoding_of(source, source.open), source.skips)
        try:
            for text in filter(None, map(str.strip, texts(text for _, text in lines))):
                number += 1
                yield RawMessage(f"{title}:{number}", source.label, text)
        except SourceError as error:
            source.skips(title, f"{error}, and is read up to there")
        if not number:
            source.note(f"{title}: there is no message in it")

    return SourceKind(read, f"{name} has no labels")


_SMS_BACKUP = _make_kind("an SMS backup", _parse_sms)
_CHAT = _make_kind("an exported chat", _parse_chat)
