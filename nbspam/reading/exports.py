"""What programs for short messages write when they export: many messages in one text.

SMS Backup & Restore writes XML, with an element for each SMS, and one for each part of an MMS.
WhatsApp writes a text, in which each message begins with its time and the name of who wrote it.
"""

import re
from collections.abc import Callable, Iterator
from html import unescape

from nbspam.errors import SourceError
from nbspam.reading.lines import decoded_lines, decoding_of
from nbspam.reading.message import RawMessage
from nbspam.reading.source import ReadingRequest, Source, SourceKind

_SMS = re.compile(
    r"<(?:sms\s[^>]*?\bbody|part\s[^>]*?\bct=[\"']text/plain[\"'][^>]*?\btext)=(\"[^\"]*\"|'[^']*')"
)
_SURROGATE = re.compile(r"&#(5[5-7]\d{3});")  # it writes an emoji as two of them
_TIME = r"\d{1,2}[:.]\d\d(?:[:.]\d\d)?(?:[\s\u202f][AaPp]\.?[\s\u202f]?[Mm]\.?)?"
_CHAT_LINE = re.compile(
    rf"[\ufeff\u200e]*\[?\d{{1,4}}[./-]\d{{1,2}}[./-]\d{{1,4}},? {_TIME}(?:\]| -)"
    r" (?:([^:]{1,100}): )?"
)
_CHAT_LINES = 2  # that show it, of the first ones


def export_kind(source: Source) -> SourceKind | None:
    """Return the kind of a file that such a program wrote; None of any other."""
    if source.sample.lstrip().startswith(b"<?xml") and b"<smses" in source.sample:
        return _SMS_BACKUP
    if source.lines and _CHAT_LINE.match(source.lines[0]):
        lines = sum(_CHAT_LINE.match(line) is not None for line in source.lines)
        return _CHAT if lines >= _CHAT_LINES else None
    return None


def _sms(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        for match in _SMS.finditer(line):
            body = _SURROGATE.sub(lambda number: chr(int(number[1])), match[1][1:-1])
            yield unescape(body).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _chat(lines: Iterator[str]) -> Iterator[str]:
    """Yield the messages of a chat; what WhatsApp itself says there has no name before it."""
    message: list[str] = []
    for line in lines:
        if begins := _CHAT_LINE.match(line):
            yield "".join(message)
            message = [line[begins.end() :]] if begins[1] else []
        elif message:
            message.append(line)
    yield "".join(message)


def _kind(name: str, texts: Callable[[Iterator[str]], Iterator[str]]) -> SourceKind:
    """Return a kind of exports; texts: returns the messages in the lines of one."""

    def read(source: Source, request: ReadingRequest) -> Iterator[RawMessage]:
        options = request.options
        options.tell(SourceError(f"{source.path}: is {name}; each of its messages is read as one"))
        encoding = options.table.encoding
        decoding = decoding_of(source.title, source.opened, encoding, request.options.tell)
        lines = decoded_lines(source.title, source.opened, decoding, request.skips)
        found = (text.strip() for text in texts(text for _, text in lines))
        for number, text in enumerate(filter(None, found), 1):
            yield RawMessage(f"{source.title}:{number}", request.label, text)

    return SourceKind(read, f"{name} has no labels")


_SMS_BACKUP = _kind("an SMS backup", _sms)
_CHAT = _kind("a WhatsApp chat", _chat)
