"""Texts line by line."""

import io
from collections.abc import Callable, Iterator

from nbspam.errors import Remedy, TableError
from nbspam.reading.skips import Skips

Opened = Callable[[], io.BufferedReader]
_LINE_LIMIT = 4 << 20  # bytes of one line
_SAMPLE = 4 << 10  # bytes in which UTF-16 is recognised
_MARKS = b"\n\r\t,;|"  # what a table, and nearly every text, has


def decoded_lines(
    name: str, opened: Opened, encoding: str | None, skips: Skips, first: int = 1
) -> Iterator[tuple[int, str]]:
    """Yield (line number, text with its line end) of a text, split at LF alone.

    name: the text's, in errors.  opened: called for its bytes when the first line is asked for.
    encoding: None is UTF-8, and Windows-1252 for a line that is not UTF-8.
    first: the number of the first line, of a part of a text.
    Raises TableError for UTF-16 and UTF-32 without their names.
    """
    if is_wide(encoding):
        return _wide_lines(opened, encoding or "")
    return _byte_lines(name, opened, encoding, skips, first)


def is_wide(encoding: str | None) -> bool:
    """Return whether a line end is more than one byte."""
    name = (encoding or "").lower().replace("_", "-")
    return name.startswith(("utf-16", "utf-32", "utf16", "utf32"))


def each_line(stream: io.BufferedReader) -> Iterator[bytes]:
    """Yield the lines of a text as bytes, which is what is numbered; a long one is several."""
    while line := stream.readline(_LINE_LIMIT):
        yield line


def read_lines(
    name: str, opened: Opened, encoding: str | None, skips: Skips, first: int = 1
) -> Iterator[tuple[int, str]]:
    """Yield (line number, text without its line end) of a text, without blank lines."""
    for number, line in decoded_lines(name, opened, encoding, skips, first):
        if line.strip():
            yield number, line.rstrip("\r\n")


def wide_encoding(first: bytes) -> str | None:
    """Return the encoding of a text whose characters have two or four bytes; None of any other.

    first: the first bytes of the text.
    A byte order mark shows it; without one, that most delimiters and line ends have a NUL beside
    them, where UTF-16 has it.  A stray NUL in a text of single bytes does not matter.
    """
    if first.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")):
        return "utf-32"
    if first.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    if b"\0" not in first:
        return None
    places = [i for i, byte in enumerate(first) if byte in _MARKS]
    for encoding, width in (("utf-32", 4), ("utf-16", 2)):
        zeros = bytes(width - 1)
        little = sum(i % width == 0 and first[i + 1 : i + width] == zeros for i in places)
        big = sum(i % width == width - 1 and first[i - width + 1 : i] == zeros for i in places)
        if 2 * max(little, big) > len(places):
            return f"{encoding}-le" if little > big else f"{encoding}-be"
    return None


def _wide_lines(opened: Opened, encoding: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text in which LF is more than one byte."""
    with opened() as stream:
        text = io.TextIOWrapper(stream, encoding, errors="replace", newline="\n")
        for number, line in enumerate(text, 1):
            yield number, line.removeprefix("\ufeff") if number == 1 else line


def _byte_lines(
    name: str, opened: Opened, encoding: str | None, skips: Skips, first: int
) -> Iterator[tuple[int, str]]:
    with opened() as stream:
        sample = stream.peek(1)[:_SAMPLE] if isinstance(stream, io.BufferedReader) else b""
        if first == 1 and not encoding and (wide := wide_encoding(sample)):
            kind = wide.upper()[: len("utf-16")]
            raise TableError(f"{name}: the file is {kind}", Remedy.NAME_UTF, encoding=wide)
        for number, line in enumerate(each_line(stream), first):
            if number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            try:
                yield number, line.decode(encoding or "utf-8")
            except UnicodeError as error:
                if encoding:
                    reason = getattr(error, "reason", error)
                    skips(f"{name}:{number}", f"the line is not {encoding} ({reason})")
                else:
                    yield number, line.decode("cp1252", "replace")
