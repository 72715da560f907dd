"""The rows of a table of lines: TSV and CSV, well-formed or not, and JSON lines; all are streamed.

A table's layout is decided by its beginning: of a file by all of it if need be, of a stream, which
cannot be read twice, by the bytes that have come so far.
"""

import csv
import io
import itertools
import json
import math
import re
import time
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from nbspam.names import normal_label
from nbspam.reading.columns import Nested
from nbspam.reading.compression import DerivedStream
from nbspam.reading.lines import Decoding, Line, Opener, decoded_lines, decoding_of, filled
from nbspam.reading.source import PARQUET, ReadingOptions, Skips, Source, TableOptions, has_more

TableRow = tuple[int, Sequence[str]]  # the line on which a row begins, and its cells

SAMPLE_ROWS = 200  # rows in which the columns are searched
SAMPLE_CHARACTERS = 1 << 20  # of those rows: a bound on memory


# The bytes of a table

# Seconds from a stream's first bytes on in which its beginning is collected, if its rows are to be
# classified as they come.  A pipe from a file brings 200 rows within a hundredth of a second.
PATIENCE = 0.5
_CHUNK = 1 << 16
_FORMS = {".tab": "tsv", ".ndjson": "jsonl", ".xlsm": "xlsx"}
_BINARY = ("parquet", "xlsx")


class Content(NamedTuple):
    """A table's bytes."""

    name: str  # in errors, and in the names of its rows
    form: str  # "tsv", "csv", "jsonl", "json", "parquet" or "xlsx"
    decoding: Decoding
    whole: Opener  # opens all bytes; those of a stream once
    beginning: Opener  # opens the bytes by which the layout is decided
    is_cut: bool = False  # whether more bytes follow the beginning

    def first_lines(self) -> Generator[Line, None, None]:
        """Yield the lines by which the layout is decided."""
        return decoded_lines(self.name, self.beginning, self.decoding, Skips())


def content_of(
    source: Source, form: str | None, options: ReadingOptions, patience: float = PATIENCE
) -> Content:
    """Return the bytes of a table in a file, standard input or a pipe.

    form: None for that of its name.  patience: as of `stream_content`.
    Tells the user of a charset that was recognised.
    """
    if not source.is_file:
        return stream_content(source, form or "", options, patience)
    form = form or _FORMS.get(source.suffix, source.suffix[1:])
    if source.sample.startswith(PARQUET):
        form = "parquet"
    decoding = Decoding()
    if form not in _BINARY:
        decoding = decoding_of(source.title, source.opened, options)
    return Content(source.title, form, decoding, source.opened, source.opened)


def stream_content(
    source: Source, form: str, options: ReadingOptions, patience: float | None
) -> Content:
    """Return a stream's bytes; its beginning is read.

    The beginning has SAMPLE_ROWS lines.  If the messages are to be classified as they come, it has
    the lines of the first `patience` seconds, one at least.  patience: None waits for SAMPLE_ROWS.
    """
    stream, name = source.opened(), source.title
    if options.live_input and patience is not None:
        options.live_input.stream = stream
    else:
        patience = None
    first, is_cut, started = b"", True, 0.0
    while is_cut and first.count(b"\n") <= SAMPLE_ROWS and len(first) < SAMPLE_CHARACTERS:
        if patience is not None and b"\n" in first:
            left = started + patience - time.monotonic()
            if not has_more(stream, max(left, 0)):
                break
        piece = stream.read1(_CHUNK)
        is_cut, first = bool(piece), first + piece
        started = started or time.monotonic()
    beginning = first[: first.rfind(b"\n") + 1] if is_cut else first
    came = io.BytesIO(first)

    def read(n: int) -> bytes:
        return came.read(n) or stream.read1(n)  # the bytes that have come, without waiting

    def whole() -> io.BufferedReader:
        return io.BufferedReader(DerivedStream(read, stream), _CHUNK)

    def begun() -> io.BufferedReader:
        return io.BufferedReader(io.BytesIO(beginning))

    decoding = Decoding() if form in _BINARY else decoding_of(name, begun, options)
    return Content(name, form, decoding, whole, begun, is_cut)


# Rows

CELL_LIMIT = 16 << 20  # characters of a quoted cell
_ROW_LINES_LIMIT = 1_000  # a row of more lines has an opening quote that is never closed
_FAILURES_LIMIT = 20  # rows that fail before the table is read as one row per line
_QUOTED = re.compile(r'"[^"]*"')
_DELIMITERS = ",;\t|"
_SEPARATOR = re.compile(r'"?sep=(.)"?', re.IGNORECASE)  # Excel's first line
_PATHS, _DEPTH = 20, 6  # of the fields within an object that an error names
_SURROGATES = re.compile("[\ud800-\udfff]")


class Cells(list[str]):
    """The cells of a row that has other values than texts."""

    values: Any = None  # in the order of the columns; of JSON lines, the object

    @classmethod
    def of(cls, row: Iterable[Any], values: Any = None) -> "Cells":
        """Return a row's cells; values: the row itself, if None."""
        cells = cls(map(cell_text, row))
        cells.values = row if values is None else values
        return cells


class Layout(NamedTuple):
    """The layout of a table of lines."""

    delimiter: str  # "" of JSON lines
    is_quoted: bool = False
    names: list[str] | None = None  # of the columns, where the format has them
    n_above: int = 0  # lines above the table


def layout_of(content: Content, options: TableOptions) -> Layout:
    """Return the layout of a TSV, a CSV or JSON lines.

    A CSV's delimiter is the one that Excel's `sep=;` names, else the one that most lines have, and
    equally often; of several, the first in the first line.
    The columns of JSON lines are the fields of the first rows, and inner fields of the user's.
    """
    lines = content.first_lines()
    if content.form == "jsonl":
        objects = itertools.islice(_objects("", lines, Skips()), SAMPLE_ROWS)
        return Layout("", names=field_names([values for _, values in objects], options))
    delimiter = "\t"
    if content.form == "csv":
        texts = [text for _, text in first_rows(filled(lines))]
        if named := _SEPARATOR.fullmatch(texts[0].strip(" ")) if texts else None:
            return Layout(named[1], is_quoted=True, n_above=1)
        sample = [_QUOTED.sub("", text) for text in texts]
        first = next((line for line in sample if any(mark in line for mark in _DELIMITERS)), "")

        def rank(mark: str) -> tuple[int, int]:
            counts = [line.count(mark) for line in sample if mark in line]
            alike = max(map(counts.count, set(counts)), default=0)
            return len(counts) + alike, -(first.find(mark) % (len(first) + 1))

        delimiter = max(_DELIMITERS, key=rank)
    return Layout(delimiter, is_quoted=delimiter != "\t" or _is_quoted_tsv(content))


def _is_quoted_tsv(content: Content) -> bool:
    """Return whether a TSV's quotes are those of CSV and do not belong to its texts.

    Many texts of the UCI SMS collection begin or end with a quote, and would run together as CSV.
    So the quotes are CSV's only if the whole table is strict CSV, and needs them: every line begins
    with one, or every quoted cell contains a quote, a tab or a line end.  Of a stream its beginning
    decides, except a last row that is cut.
    """

    def has_quoted_cell(line: str) -> bool:
        return line.startswith('"') or '\t"' in line

    if not any(has_quoted_cell(line) for _, line in content.first_lines()):
        return False
    seen = 0, 0, 0  # lines; those that begin with a quote; those in which a cell does

    def counted() -> Iterator[str]:
        nonlocal seen
        for _, line in content.first_lines():
            seen = seen[0] + 1, seen[1] + line.startswith('"'), seen[2] + has_quoted_cell(line)
            yield line

    needed, whole = 0, seen  # up to the last whole row
    csv.field_size_limit(CELL_LIMIT)
    try:
        for cells in csv.reader(counted(), delimiter="\t", strict=True):
            needed += any('"' in cell or "\t" in cell or "\n" in cell for cell in cells)
            whole = seen
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


def rows_of(name: str, lines: Iterator[Line], layout: Layout, skips: Skips) -> Iterator[TableRow]:
    """Yield (number of its first line, cells) of each row in a table's lines."""
    if layout.n_above:
        lines = itertools.dropwhile(lambda line: line[0] <= layout.n_above, lines)
    if not layout.delimiter:
        for number, values in _objects(name, lines, skips):
            yield number, Cells.of([field(values, name) for name in layout.names or ()], values)
    elif layout.is_quoted:
        yield from _csv_rows(name, lines, layout.delimiter, skips)
    else:
        for number, line in filled(lines):
            yield number, line.split(layout.delimiter)


def _objects(
    table: str, lines: Iterator[Line], skips: Skips
) -> Iterator[tuple[int, dict[str, object]]]:
    for number, line in filled(lines):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            skips(f"{table}:{number}", f"the line is not JSON ({error})")
            continue
        if isinstance(value, dict):
            yield number, value
        else:
            skips(f"{table}:{number}", "the line is not a JSON object")


def are_json_lines(lines: list[str]) -> bool:
    """Return whether each line is a JSON object, so that the text is no JSON document."""
    try:
        return bool(lines) and all(isinstance(json.loads(line), dict) for line in lines)
    except (ValueError, RecursionError):
        return False


def _csv_rows(name: str, lines: Iterator[Line], delimiter: str, skips: Skips) -> Iterator[TableRow]:
    """Yield the rows of a CSV.  A quote that is never closed costs only its own row.

    A row that is not strict CSV is one line whose quotes belong to its text.
    """
    csv.field_size_limit(CELL_LIMIT)
    again: deque[Line] = deque()  # lines to read once more, after a row that failed
    failures = 0
    row: list[Line] = []  # the lines of the row being read

    def texts() -> Iterator[str]:
        # After many failures a row is one line, so that a file of failures takes linear time.
        most = _ROW_LINES_LIMIT if failures < _FAILURES_LIMIT else 0
        while len(row) <= most and (line := again.popleft() if again else next(lines, None)):
            row.append(line)
            yield line[1]

    while True:
        try:
            for cells in csv.reader(texts(), delimiter=delimiter, strict=True):
                if cells:
                    yield row[0][0], cells
                row.clear()
            return
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
        row.clear()
        failures += 1


# Cells


def cell_text(value: Any) -> str:
    """Return a value of JSON, Parquet or a data frame as a CSV cell.

    A list of one value is the value; an object or a longer list is `Nested`.
    """
    if isinstance(value, str):
        # JSON can contain an unpaired surrogate, which cannot be encoded.
        return value if value.isascii() else _SURROGATES.sub("\ufffd", value)
    if value is None:
        return ""
    if getattr(value, "ndim", None) is not None:  # of numpy
        value = value.tolist()
    if isinstance(value, list | tuple) and len(value) < 2:
        return cell_text(value[0]) if value else ""
    if isinstance(value, list | tuple | Mapping):
        cell = Nested(str(value))
        cell.paths = tuple(itertools.islice(_paths(value, ""), _PATHS))
        return cell
    if isinstance(value, bool):
        return "1" if value else "0"
    return "" if isinstance(value, float) and math.isnan(value) else str(value)


def _paths(value: Any, path: str) -> Iterator[str]:
    """Yield the paths to the texts and numbers within an object; a list of one is its value."""
    value = value.tolist() if hasattr(value, "tolist") else value
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, Mapping) and path.count(".") < _DEPTH:
        for name, inner in value.items():
            yield from _paths(inner, f"{path}.{name}")
    elif path and not isinstance(value, list | Mapping):
        yield path


def label_text(value: Any) -> str | None:
    """Return a program's label as the model names it; "" if it is missing, None if it is invalid.

    A label is a text, a boolean, or a whole number, also as a float.
    """
    if isinstance(value, str):
        return normal_label(value)
    text = cell_text(value)
    if text in ("", "nan", "NaT", "<NA>"):
        return ""
    return text.removesuffix(".0") if re.fullmatch(r"-?\d+(?:\.0)?", text) else None


def field(values: Any, path: str) -> Any:
    """Return a field of an object, or a field within it: `a.b`; None if there is none.

    A list of one value is the value.
    """
    values = values.tolist() if hasattr(values, "tolist") else values
    while isinstance(values, list) and len(values) == 1:
        values = values[0]
    if not isinstance(values, Mapping) or path in values:
        return values.get(path) if isinstance(values, Mapping) else None
    outer, _, inner = path.partition(".")
    return field(values.get(outer), inner) if inner else None


def field_names(sample: Sequence[Mapping[str, Any]], options: TableOptions) -> list[str]:
    """Return the names of all fields of some rows, and of inner fields that the user names."""
    names = dict.fromkeys(name for values in sample for name in values)
    learned = (name for pair in options.learned for name in pair)
    for name in (options.text_column, options.label_column, *learned):
        if name and "." in name and any(field(values, name) is not None for values in sample):
            names[name] = None
    return list(names)
