"""Messages in an mbox, whatever program wrote it.

A message begins at a `From ` line (a "From_ line") that is first in the file or follows a blank
line, has a date in the format of asctime, and is followed by a header line.  All three are
required, since only some writers quote body lines that begin with `From `; those that do put a `>`
before them (mboxrd: before `>From ` too), and one such `>` is removed.

Source: RFC 4155, and the mboxo/mboxrd/mboxcl family as qmail's mbox(5) describes it.
"""

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import IO

from nbspam.reading.compression import open_bytes
from nbspam.reading.message import BYTES_LIMIT
from nbspam.reading.raw_message import RawMessage
from nbspam.reading.source_kind import Labels, ReadingOptions, ReadingRequest, Source, SourceKind

_CHUNK = 1 << 20
_BORDER = 2_000  # longer than any separator with the first byte of the header after it
_DATE = rb"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? +(?:[A-Z][a-z][a-z] +\d?\d|\d?\d +[A-Z][a-z][a-z])\b"
_FROM_LINE = rb"From [^\n]{0,500}?" + _DATE + rb"[^\n]{0,500}\n(?=[!-9;-~]+[ \t]*:|>?From )"
_FIRST = re.compile(rb"\s*" + _FROM_LINE)
_SEPARATOR = re.compile(rb"\n(?=\r?\n" + _FROM_LINE + rb")")
_STATUS = re.compile(rb"^(X-|)Status:[ \t]*([A-Za-z]*)", re.MULTILINE)
_HEADER_LIMIT = 1 << 17  # bytes in which a Status line is searched
_QUOTED = re.compile(rb"^>(>*From )", re.MULTILINE)


def is_mbox(sample: bytes) -> bool:
    """Return whether a file that begins with `sample` is an mbox."""
    return _FIRST.match(sample) is not None


def count_separators(sample: bytes) -> int:
    """Return how many messages begin in `sample` after the first."""
    return len(_SEPARATOR.findall(sample))


def message_starts(stream: IO[bytes], at: int) -> Iterator[int]:
    """Yield where messages begin from `at` on, above 0: at the blank line before a From_ line.

    The line end before it belongs to neither message.
    """
    stream.seek(at - 1)
    place, buffer = at - 1, b""  # where the buffer begins, and bytes not searched to their end
    while chunk := stream.read(_CHUNK):
        buffer += chunk
        searched = 0
        for found in _SEPARATOR.finditer(buffer):
            yield place + found.end()
            searched = found.end()
        # One across two chunks is found once it is whole.
        kept = max(searched, len(buffer) - _BORDER)
        place, buffer = place + kept, buffer[kept:]


def is_read(message: bytes) -> bool:
    """Return whether a message's Status lines say that its owner has read and not deleted it.

    Source: the convention of mail readers since Berkeley's: R is read, and in X-Status D deleted.
    """
    header = message[:_HEADER_LIMIT].replace(b"\r\n", b"\n").partition(b"\n\n")[0]
    flags = dict(_STATUS.findall(header))
    return b"R" in flags.get(b"", b"") and b"D" not in flags.get(b"X-", b"")


def messages(stream: IO[bytes], limit: int) -> Iterator[bytes]:
    """Yield each message without its From_ line, its quoted `From ` lines restored.

    limit: bytes kept of a message; the rest of a larger one is read and dropped.
    Memory is bounded by the limit, not by the size of the mailbox.
    """
    kept, tail = b"", b""  # a message's bytes so far; what may be the start of a separator
    while chunk := stream.read(_CHUNK):
        pieces = _SEPARATOR.split(tail + chunk)
        for piece in pieces[:-1]:
            yield _unquoted(kept + piece, limit)
            kept = b""
        # A separator across two chunks is found once it is whole: From_ lines are short.
        last = pieces[-1]
        border = max(0, len(last) - _BORDER)
        if len(kept) < limit + _BORDER:  # bytes beyond the limit are not worth copying
            kept = (kept + last[:border])[: limit + _BORDER]
        tail = last[border:]
    if (kept + tail).strip():
        yield _unquoted(kept + tail, limit)


def _unquoted(piece: bytes, limit: int) -> bytes:
    message = piece.lstrip(b"\r\n").partition(b"\n")[2][:limit]
    return _QUOTED.sub(rb"\1", message) if b">From " in message else message


def _has_from_line(source: Source, _: ReadingOptions) -> bool:
    return is_mbox(source.sample)


def mbox_messages(
    name: str, opened: Callable[[], IO[bytes]], request: ReadingRequest, first: int = 1
) -> Iterator[RawMessage]:
    """Yield the messages of an mbox called `name`; opened: called for its bytes.

    first: the number of the first message, of a part of an mbox.
    """
    with opened() as stream:
        for number, raw in enumerate(messages(stream, BYTES_LIMIT), first):
            if not request.options.seen or is_read(raw):
                yield RawMessage(f"{name}:{number}", request.label, raw)


def _read_mbox(source: Source, request: ReadingRequest) -> Iterator[RawMessage]:
    return mbox_messages(str(source.path), partial(open_bytes, source.path), request)


MBOX = SourceKind(Labels.NEVER, _has_from_line, _read_mbox, "an mbox has no labels")
