"""Standard input and pipes, which are read once: as one message, unless a format is given.

A message on standard input stays one message whatever it looks like: who sends it must not choose
how it is read.  What looks like many messages is only said to look so.
"""

import io
import sys
from collections.abc import Iterator
from typing import IO, cast

from nbspam.errors import Remedy, SourceError
from nbspam.reading.compression import decompressed, packed_stream
from nbspam.reading.message import BYTES_LIMIT, is_mail
from nbspam.reading.raw_message import RawMessage
from nbspam.reading.source_kind import (
    SAMPLE_BYTES,
    STDIN,
    Labels,
    ReadingOptions,
    ReadingRequest,
    Source,
    SourceKind,
)

_DRAINED = 4_096  # MiB of a pipe that are read and dropped, at most: /dev/zero has no end


def _is_standard_input(source: Source, _: ReadingOptions) -> bool:
    return source.name == STDIN


def _is_pipe(source: Source, _: ReadingOptions) -> bool:
    return not source.is_file and not source.is_folder


def opened_stream(source: Source) -> io.BufferedReader:
    """Return standard input, a pipe or a file, decompressed; raises SourceError and OSError."""
    if source.name != STDIN:
        return decompressed(source.path.open("rb"))
    if sys.stdin is None or sys.stdin.closed:
        raise SourceError("-: standard input is closed; pipe a message in, or name a file")
    return decompressed(cast("io.BufferedReader", sys.stdin.buffer))


def read_one(source: Source, request: ReadingRequest) -> Iterator[RawMessage]:
    """Yield the one message of standard input, a pipe or a file, whatever is in it.

    Raises SourceError for a stream with nothing in it, where the message needs content.
    """
    stream = opened_stream(source)
    raw = one_message(source.name, stream, request.label)
    if source.name != STDIN:
        stream.close()
    if not request.options.needs_content or has_content(raw):
        yield raw
    elif source.name != STDIN and source.is_file:
        tell_empty(source, request)
    else:  # what should have written a message has failed
        where = "standard input" if source.name == STDIN else "the pipe"
        raise SourceError(
            f"{source.name}: {where} is empty, so there is no message to learn; check the command"
            " that writes it"
        )


def has_content(raw: RawMessage) -> bool:
    """Return whether a message that was read has more than blanks in it."""
    return bool(raw.content.strip()) if isinstance(raw.content, bytes | str) else True


def tell_empty(source: Source, request: ReadingRequest) -> None:
    """Tell the user that a file has no message in it, as an empty mbox."""
    request.options.tell(SourceError(f"{source.path}: the file is empty; nothing is learned of it"))


def _read_unsaid(source: Source, request: ReadingRequest) -> Iterator[RawMessage]:
    """Yield the one message; tells the user if it looks like many."""
    for raw in read_one(source, request):
        if isinstance(raw.content, bytes) and _may_be_many(raw.content):
            from nbspam.reading.looks import looks_like  # a mail does without

            if look := looks_like(raw.content[:SAMPLE_BYTES]):
                where = "standard input" if raw.source == STDIN else raw.source
                problem = f"{where} looks like {look.what}; it was read as one message"
                request.options.tell(SourceError(problem, Remedy.SAY_FORMAT, format=look.form))
        yield raw


def one_message(
    name: str, stream: IO[bytes], label: str | None, limit: int = BYTES_LIMIT
) -> RawMessage:
    """Return the one message of a stream.

    limit: bytes kept; the rest of a larger one is read and dropped, of an archive as it is: 4 MB
    may unpack to 4 GB.
    """
    raw = stream.read(limit)
    rest = packed_stream(stream)
    for _ in range(_DRAINED):  # the writer may not survive a broken pipe
        if not rest.read(1 << 20):
            break
    return RawMessage(name, label, raw)


def _may_be_many(raw: bytes) -> bool:
    """Return whether it is worth a look: no mail, and several lines or names."""
    first = raw[:SAMPLE_BYTES]
    if first.startswith(b"From "):
        return b"\nFrom " in raw
    several = (
        b"\n" in first.strip() or b"\0" in first or first.startswith((b"/", b"./", b"[", b"{"))
    )
    return several and not is_mail(first)


STANDARD_INPUT = SourceKind(
    Labels.NEVER, _is_standard_input, _read_unsaid, "standard input has no labels"
)
# Such as <(command).
PIPE = SourceKind(Labels.NEVER, _is_pipe, _read_unsaid, "a pipe has no labels")
