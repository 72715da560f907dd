"""Tables as TSV and CSV, well-formed or not."""

import csv
import re
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from nbspam.reading.columns import first_rows
from nbspam.reading.content import Content
from nbspam.reading.lines import decoded_lines
from nbspam.reading.skips import Skips

CELL_LIMIT = 16 << 20  # characters of a quoted cell
_ROW_LINES_LIMIT = 1_000  # a row of more lines has an opening quote that is never closed
_FAILURES_LIMIT = 20  # rows that fail before the table is read as one row per line
_NEVER_CLOSED = "a quote opened here is never closed"
_QUOTED = re.compile(r'"[^"]*"')

Line = tuple[int, str]  # its number, its text with the line end


class Layout(NamedTuple):
    """How the rows of a table are written."""

    delimiter: str
    is_quoted: bool


def layout_of(content: Content, encoding: str | None, cell_limit: int = CELL_LIMIT) -> Layout:
    """Return the layout of a table; in a CSV file the delimiter may be another than the comma."""
    delimiter = "\t"
    if content.form == "csv":
        lines = decoded_lines(content.name, content.beginning, encoding, Skips())
        delimiter = _delimiter([text for _, text in first_rows(lines, lambda line: len(line[1]))])
    is_quoted = delimiter != "\t" or _is_quoted_tsv(content, encoding, cell_limit)
    return Layout(delimiter, is_quoted)


def delimited_rows(
    name: str, lines: Iterator[Line], layout: Layout, skips: Skips, cell_limit: int = CELL_LIMIT
) -> Iterator[tuple[int, list[str]]]:
    """Yield (number of its first line, cells) of each row of a TSV or CSV table called `name`."""
    if not layout.is_quoted:
        return _plain_rows(lines)
    return _csv_rows(name, lines, layout.delimiter, skips, cell_limit)


def _plain_rows(lines: Iterator[Line]) -> Iterator[tuple[int, list[str]]]:
    for number, line in lines:
        if line.strip():
            yield number, line.rstrip("\r\n").split("\t")


def _delimiter(sample: list[str]) -> str:
    """Return the delimiter in most lines; of several, the one that is first in the first line."""
    first = _QUOTED.sub("", sample[0]) if sample else ""

    def rank(mark: str) -> tuple[int, int]:
        at = first.find(mark)
        return sum(mark in line for line in sample) if at >= 0 else 0, -at

    return max(",;\t|", key=rank)


class _RowLines:
    """The lines of a CSV file, which a reader may return to read them once more."""

    def __init__(self, lines: Iterator[Line]) -> None:
        self._lines = lines
        self._returned: deque[Line] = deque()
        self._failures = 0
        self.row: list[Line] = []  # the lines of the row being read
        self.ended = False  # no line is left for this row

    def texts(self) -> Iterator[str]:
        """Yield the text of each line, as long as the row in `row` may become longer."""
        # Each failure reads its lines once more; after many, a row is one line, so that a file of
        # nothing but failures takes linear time.
        limit = _ROW_LINES_LIMIT if self._failures < _FAILURES_LIMIT else 0
        row, returned, lines = self.row, self._returned, self._lines
        while len(row) <= limit:
            line = returned.popleft() if returned else next(lines, None)
            if line is None:
                break
            row.append(line)
            yield line[1]
        self.ended = True

    def begin_after_failure(self) -> None:
        """Return all lines of the row but its first, which failed."""
        self._failures += 1
        self._returned.extendleft(reversed(self.row[1:]))
        self.row.clear()
        self.ended = False


def _csv_rows(
    name: str, lines: Iterator[Line], delimiter: str, skips: Skips, cell_limit: int
) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a CSV file.  A quote that is never closed costs its own row, no other.

    A row that is not strict CSV is one line whose quotes belong to its text.
    """
    csv.field_size_limit(cell_limit)
    source = _RowLines(lines)
    while True:
        try:
            yield from _strict_rows(source, delimiter)
            problem = _NEVER_CLOSED
        except csv.Error as error:
            problem = _problem(str(error))
        if not source.row:
            return
        number, line = source.row[0]
        if problem:
            skips(f"{name}:{number}", problem)
        else:
            yield number, line.rstrip("\r\n").split(delimiter)
        source.begin_after_failure()


def _strict_rows(source: _RowLines, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield rows of strict CSV, up to the first that is not; its lines are then in `source.row`.

    Raises csv.Error unless that row has no end.
    """
    row = source.row
    for cells in csv.reader(source.texts(), delimiter=delimiter, strict=True):
        if source.ended:  # within the row: its quote is still open
            return
        if cells:
            yield row[0][0], cells
        row.clear()


def _problem(error: str) -> str:
    """Return why a row is skipped; "" if it can be read as one line."""
    if "unexpected end of data" in error:
        return _NEVER_CLOSED
    return f"the row is not CSV ({error})" if "field limit" in error else ""


class _QuoteCounts:
    """How many lines of a TSV have quotes where CSV would have them."""

    def __init__(self, lines: Iterator[Line]) -> None:
        self._lines = lines
        self.lines = 0
        self.quoted_lines = 0  # begin with a quote
        self.quoted_cells = 0  # lines in which a cell begins with a quote

    def texts(self) -> Iterator[str]:
        """Yield the text of each line, and count it."""
        for _, line in self._lines:
            self.lines += 1
            self.quoted_lines += line.startswith('"')
            self.quoted_cells += _begins_with_quote(line)
            yield line


def _begins_with_quote(line: str) -> bool:
    """Return whether a cell of the line begins with a quote."""
    return line.startswith('"') or '\t"' in line


def _is_quoted_tsv(content: Content, encoding: str | None, cell_limit: int) -> bool:
    """Return whether a TSV's quotes are CSV's and do not belong to its texts.

    The UCI SMS collection is full of texts that begin with a quote, end with one, or both; read as
    CSV they run together.  So all of it must be strict CSV, and its quotes needed: every line
    begins with one, or every cell that does contains a quote, a tab or a line end.  Of a stream it
    is its beginning that must be so, up to the last row, which may be cut, and have quotes.
    """

    def lines() -> Iterator[Line]:
        return decoded_lines(content.name, content.beginning, encoding, Skips())

    if not any(_begins_with_quote(line) for _, line in lines()):
        return False
    counts = _QuoteCounts(lines())
    needed = 0
    counted = (0, 0, 0)  # as of the last row that is whole
    csv.field_size_limit(cell_limit)
    try:
        for cells in csv.reader(counts.texts(), delimiter="\t", strict=True):
            needed += any('"' in cell or "\t" in cell or "\n" in cell for cell in cells)
            counted = counts.lines, counts.quoted_lines, counts.quoted_cells
    except csv.Error as error:
        if not (content.is_cut and "unexpected end of data" in str(error)):
            return False
    n_lines, quoted_lines, quoted_cells = counted
    return bool(quoted_cells) and (needed >= quoted_cells or quoted_lines == n_lines)
