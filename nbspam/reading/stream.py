"""Standard input and pipes: read once, as one message or as one message per line."""

import io
import sys
from collections.abc import Iterator
from typing import IO

from nbspam.errors import SourceError
from nbspam.reading.charsets import decode
from nbspam.reading.compression import decompressed
from nbspam.reading.message import BYTES_LIMIT
from nbspam.reading.raw_message import RawMessage
from nbspam.reading.source_kind import (
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


def _standard_input(source: Source, request: ReadingRequest) -> Iterator[RawMessage]:
    if sys.stdin is None or sys.stdin.closed:
        raise SourceError("-: standard input is closed; pipe a message in, or name a file")
    try:
        yield from stream_messages(STDIN, sys.stdin.buffer, request)
    except OSError as error:
        raise SourceError(
            f"-: standard input cannot be read ({error.strerror}); pipe a message in"
        ) from error


def _is_pipe(source: Source, _: ReadingOptions) -> bool:
    return not source.is_file and not source.is_folder


def _pipe(source: Source, request: ReadingRequest) -> Iterator[RawMessage]:
    with source.path.open("rb") as stream:
        yield from stream_messages(str(source.path), stream, request)


def stream_messages(
    name: str, stream: IO[bytes], request: ReadingRequest, limit: int = BYTES_LIMIT
) -> Iterator[RawMessage]:
    """Yield the one message of a stream, or one per line if the request says so.

    limit: bytes kept of a message; the rest of a larger one is read and dropped.
    """
    if isinstance(stream, io.BufferedReader):
        stream = decompressed(stream)
    if request.options.lines:
        yield from _lines(name, stream, request, limit)
        return
    raw = stream.read(limit)
    for _ in range(_DRAINED):  # the writer may not survive a broken pipe
        if not stream.read(1 << 20):
            break
    yield RawMessage(name, request.label, raw)


def _lines(
    name: str, stream: IO[bytes], request: ReadingRequest, limit: int
) -> Iterator[RawMessage]:
    encoding = request.options.table.encoding or ""
    number = 0
    while line := stream.readline(limit):
        number += 1
        if line.strip():
            yield RawMessage(
                f"{name}:{number}", request.label, decode(line.rstrip(b"\r\n"), encoding)
            )


STANDARD_INPUT = SourceKind(
    Labels.NEVER, _is_standard_input, _standard_input, "standard input has no labels"
)
# Such as <(command).
PIPE = SourceKind(
    Labels.NEVER,
    _is_pipe,
    _pipe,
    "is a pipe, and a table is read twice; save it to a file",
    remedy=None,
)
