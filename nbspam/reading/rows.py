"""The rows of a text: lines, TSV and CSV, well-formed or not, and JSON lines; all are streamed.

How they are laid out is decided by their beginning.  Of a file that may be read to its end; of
a stream, which cannot be read twice, it is what has come so far, kept in memory.
"""

import csv
import io
import itertools
import json
import re
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from nbspam.errors import Remedy, TableError
from nbspam.reading.columns import SAMPLE_CHARACTERS, SAMPLE_ROWS, cell_text
from nbspam.reading.compression import Taken, bare_suffix, open_bytes
from nbspam.reading.source import Skips, has_more

if TYPE_CHECKING:
    from pathlib import Path

Opened = Callable[[], io.BufferedReader]
Line = tuple[int, str]  # its number, its text with the line end
TableRow = tuple[int, Sequence[str]]  # the line on which a row begins, and its cells

_LINE_LIMIT = 4 << 20  # bytes of one line
_WIDE_SAMPLE = 4 << 10  # bytes in which UTF-16 is recognised
_MARKS = b"\n\r\t,;|"  # what a table, and nearly every text, has


# Lines


def decoded_lines(
    name: str, opened: Opened, encoding: str | None, skips: Skips, first: int = 1
) -> Iterator[Line]:
    """Yield (line number, text with its line end) of a text, split at LF alone.

    name: the text's, in errors.  opened: called for its bytes when the first line is asked for.
    encoding: None is UTF-8, and Windows-1252 for a line that is not UTF-8.
    first: the number of the first line, of a part of a text.
    Raises TableError for UTF-16 and UTF-32 without their names.
    """
    with opened() as stream:
        if is_wide(encoding):
            text = io.TextIOWrapper(stream, encoding, errors="replace", newline="\n")
            for number, wide_line in enumerate(text, 1):
                yield number, wide_line.removeprefix("\ufeff") if number == 1 else wide_line
            return
        sample = stream.peek(1)[:_WIDE_SAMPLE] if isinstance(stream, io.BufferedReader) else b""
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
) -> Iterator[Line]:
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


# The bytes of a table

# Seconds from a stream's first bytes on in which its beginning is gathered, if its rows are to be
# answered as they come.  A pipe from a file brings 200 rows within a hundredth of one.
PATIENCE = 0.5
_CHUNK = 1 << 16
_FORMS = {".tab": "tsv", ".ndjson": "jsonl", ".xlsm": "xlsx"}


class Content(NamedTuple):
    """A table's bytes."""

    name: str  # in errors, and of its rows
    form: str  # "tsv", "csv", "jsonl", "json", "parquet" or "xlsx"
    whole: Opened  # opens all of it; of a stream once
    beginning: Opened  # opens what its layout is decided by
    is_cut: bool = False  # whether more follows the beginning


def file_content(path: "Path", form: str | None = None) -> Content:
    """Return a file's bytes; form: that of its name, if None."""
    opened = partial(open_bytes, path)
    suffix = bare_suffix(path)
    form = form or _FORMS.get(suffix, suffix[1:])
    with opened() as stream:
        if stream.read(4) == b"PAR1":
            form = "parquet"
    return Content(str(path), form, opened, opened)


def stream_content(
    name: str, stream: io.BufferedReader, form: str = "", patience: float | None = None
) -> Content:
    """Return a stream's bytes, its first ones read.

    They are as many as columns are searched in, or what came in `patience` seconds: one line at
    least.  patience: None waits as long as it takes.
    """
    first, is_cut = b"", True
    started: float | None = None
    while first.count(b"\n") <= SAMPLE_ROWS and len(first) < SAMPLE_CHARACTERS:
        if patience is not None and started is not None and b"\n" in first:
            left = started + patience - time.monotonic()
            if not has_more(stream, max(left, 0)):
                break
        piece = stream.read1(_CHUNK)
        if not piece:
            is_cut = False
            break
        first += piece
        started = started or time.monotonic()
    beginning = first[: first.rfind(b"\n") + 1] if is_cut else first
    came = io.BytesIO(first)

    def take(n: int) -> bytes:
        return came.read(n) or stream.read1(n)  # what is there, without waiting for more

    def whole() -> io.BufferedReader:
        return io.BufferedReader(Taken(take, stream), _CHUNK)

    return Content(name, form, whole, lambda: io.BufferedReader(io.BytesIO(beginning)), is_cut)


# Rows

CELL_LIMIT = 16 << 20  # characters of a quoted cell
_ROW_LINES_LIMIT = 1_000  # a row of more lines has an opening quote that is never closed
_FAILURES_LIMIT = 20  # rows that fail before the table is read as one row per line
_QUOTED = re.compile(r'"[^"]*"')


class Layout(NamedTuple):
    """How the rows of a table are written."""

    delimiter: str  # "" of JSON lines
    is_quoted: bool = False
    names: tuple[str, ...] | None = None  # of the columns, where the format has them


def layout_of(content: Content, encoding: str | None, cell_limit: int = CELL_LIMIT) -> Layout:
    """Return the layout of a TSV, a CSV or JSON lines.

    In a CSV file the delimiter may be another than the comma: it is the one in most lines; of
    several, the one that is first in the first line.  JSON's first object names the columns.
    """
    lines = decoded_lines(content.name, content.beginning, encoding, Skips())
    if content.form == "jsonl":
        names = next((tuple(found) for _, found in _objects("", lines, Skips())), None)
        return Layout("", names=names)
    delimiter = "\t"
    if content.form == "csv":
        sample = [text for _, text in first_rows(lines)]
        first = _QUOTED.sub("", sample[0]) if sample else ""

        def rank(mark: str) -> tuple[int, int]:
            at = first.find(mark)
            return sum(mark in line for line in sample) if at >= 0 else 0, -at

        delimiter = max(",;\t|", key=rank)
    is_quoted = delimiter != "\t" or _is_quoted_tsv(content, encoding, cell_limit)
    return Layout(delimiter, is_quoted)


def _is_quoted_tsv(content: Content, encoding: str | None, cell_limit: int) -> bool:
    """Return whether a TSV's quotes are CSV's and do not belong to its texts.

    The UCI SMS collection is full of texts that begin with a quote, end with one, or both; read as
    CSV they run together.  So all of it must be strict CSV, and its quotes needed: every line
    begins with one, or every cell that does contains a quote, a tab or a line end.  Of a stream it
    is its beginning that must be so, up to the last row, which may be cut, and have quotes.
    """

    def lines() -> Iterator[str]:
        for _, line in decoded_lines(content.name, content.beginning, encoding, Skips()):
            yield line

    def has_quoted_cell(line: str) -> bool:
        return line.startswith('"') or '\t"' in line

    if not any(map(has_quoted_cell, lines())):
        return False
    seen = [0, 0, 0]  # lines; those that begin with a quote; those in which a cell does

    def counted() -> Iterator[str]:
        for line in lines():
            seen[:] = seen[0] + 1, seen[1] + line.startswith('"'), seen[2] + has_quoted_cell(line)
            yield line

    needed, whole = 0, [0, 0, 0]  # as of the last row that is whole
    csv.field_size_limit(cell_limit)
    try:
        for cells in csv.reader(counted(), delimiter="\t", strict=True):
            needed += any('"' in cell or "\t" in cell or "\n" in cell for cell in cells)
            whole = seen[:]
    except csv.Error as error:
        if not (content.is_cut and "unexpected end of data" in str(error)):
            return False
    n_lines, quoted_lines, quoted_cells = whole
    return bool(quoted_cells) and (needed >= quoted_cells or quoted_lines == n_lines)


S = TypeVar("S", bound=Sequence[str])


def first_rows(rows: Iterator[tuple[int, S]]) -> Iterator[tuple[int, S]]:
    """Yield the first lines or rows, in which the columns are searched."""
    left = SAMPLE_CHARACTERS
    for row in itertools.islice(rows, SAMPLE_ROWS):
        yield row
        left -= sum(map(len, row[1]))
        if left < 0:
            return


def rows_of(
    name: str, lines: Iterator[Line], layout: Layout, skips: Skips, cell_limit: int = CELL_LIMIT
) -> Iterator[TableRow]:
    """Yield (number of its first line, cells) of each row of some lines of a table."""
    if not layout.delimiter:
        for number, values in _objects(name, lines, skips):
            yield number, [cell_text(values.get(column)) for column in layout.names or ()]
    elif layout.is_quoted:
        yield from _csv_rows(name, lines, layout.delimiter, skips, cell_limit)
    else:
        for number, line in lines:
            if line.strip():
                yield number, line.rstrip("\r\n").split(layout.delimiter)


def _objects(
    table: str, lines: Iterator[Line], skips: Skips
) -> Iterator[tuple[int, dict[str, object]]]:
    for number, line in lines:
        if not line.strip():
            continue
        try:
            value = json.loads(line.rstrip("\r\n"))
        except (ValueError, RecursionError) as error:
            skips(f"{table}:{number}", f"the line is not JSON ({error})")
            continue
        if isinstance(value, dict):
            yield number, value
        else:
            skips(f"{table}:{number}", "the line is not a JSON object")


def are_json_lines(lines: list[str]) -> bool:
    """Return whether each line is a JSON object, so that they are no document together."""
    try:
        return bool(lines) and all(isinstance(json.loads(line), dict) for line in lines)
    except (ValueError, RecursionError):
        return False


def _csv_rows(
    name: str, lines: Iterator[Line], delimiter: str, skips: Skips, cell_limit: int
) -> Iterator[TableRow]:
    """Yield the rows of a CSV file.  A quote that is never closed costs its own row, no other.

    A row that is not strict CSV is one line whose quotes belong to its text.
    """
    csv.field_size_limit(cell_limit)
    again: deque[Line] = deque()  # lines that are read once more, as a row before them failed
    failures = 0
    row: list[Line] = []  # the lines of the row being read

    def texts() -> Iterator[str]:
        # After many failures a row is one line, so that a file of nothing but failures takes
        # linear time.
        most = _ROW_LINES_LIMIT if failures < _FAILURES_LIMIT else 0
        while len(row) <= most and (line := again.popleft() if again else next(lines, None)):
            row.append(line)
            yield line[1]

    reader = csv.reader(texts(), delimiter=delimiter, strict=True)
    while True:
        row.clear()
        try:
            cells = next(reader, None)
            if cells:
                yield row[0][0], cells
            elif not row:
                return
            continue
        except csv.Error as error:
            problem = str(error)
        number, line = row[0]
        if "field limit" in problem:
            skips(f"{name}:{number}", f"the row is not CSV ({problem})")
        elif "unexpected end of data" in problem:
            skips(f"{name}:{number}", "a quote opened here is never closed")
        else:
            yield number, line.rstrip("\r\n").split(delimiter)
        again.extendleft(reversed(row[1:]))
        failures += 1
        reader = csv.reader(texts(), delimiter=delimiter, strict=True)
