"""Text files line by line; as a source, one message per line."""

import io
from collections.abc import Iterator
from pathlib import Path

from nbspam.errors import Remedy, TableError
from nbspam.reading.compression import open_bytes
from nbspam.reading.raw_message import RawMessage
from nbspam.reading.skips import Skips
from nbspam.reading.source_kind import Labels, ReadingOptions, ReadingRequest, Source, SourceKind

_LINE_LIMIT = 4 << 20  # bytes of one line


def decoded_lines(path: Path, encoding: str | None, skips: Skips) -> Iterator[tuple[int, str]]:
    """Yield (line number, text with its line end) of a text file, split at LF alone.

    encoding: None is UTF-8, and Windows-1252 for a line that is not UTF-8.
    Raises TableError for UTF-16 without its name.
    """
    if encoding and encoding.lower().replace("_", "-").startswith(("utf-16", "utf-32")):
        return _wide_lines(path, encoding)
    return _byte_lines(path, encoding, skips)


def read_lines(path: Path, encoding: str | None, skips: Skips) -> Iterator[tuple[int, str]]:
    """Yield (line number, text without its line end) of a text file, without blank lines."""
    for number, line in decoded_lines(path, encoding, skips):
        if line.strip():
            yield number, line.rstrip("\r\n")


def _wide_lines(path: Path, encoding: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file in which LF is more than one byte."""
    with open_bytes(path) as stream:
        text = io.TextIOWrapper(stream, encoding, errors="replace", newline="\n")
        for number, line in enumerate(text, 1):
            yield number, line.removeprefix("\ufeff") if number == 1 else line


def _byte_lines(path: Path, encoding: str | None, skips: Skips) -> Iterator[tuple[int, str]]:
    with open_bytes(path) as stream:
        number = 0
        while line := stream.readline(_LINE_LIMIT):
            number += 1
            if number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
                if line.startswith((b"\xff\xfe", b"\xfe\xff")) and not encoding:
                    raise TableError(f"{path}: the file is UTF-16", Remedy.NAME_UTF_16)
            try:
                yield number, line.decode(encoding or "utf-8")
            except UnicodeError as error:
                if encoding:
                    reason = getattr(error, "reason", error)
                    skips(f"{path}:{number}", f"the line is not {encoding} ({reason})")
                else:
                    yield number, line.decode("cp1252", "replace")


def _is_read_by_line(source: Source, options: ReadingOptions) -> bool:
    return options.lines and source.is_file


def _read_each_line(source: Source, request: ReadingRequest) -> Iterator[RawMessage]:
    for number, line in read_lines(source.path, request.options.table.encoding, request.skips):
        yield RawMessage(f"{source.path}:{number}", request.label, line)


LINES = SourceKind(Labels.NEVER, _is_read_by_line, _read_each_line, "lines of text have no labels")
