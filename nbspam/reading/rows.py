"""The rows of a table of lines: TSV and CSV, well-formed or not, and JSON lines; all are streamed.

The first lines of a table decide its layout; a file is read to its end if its first lines do not
decide.  A stream cannot be read twice, so the bytes received so far decide its layout.
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

from nbspam.reading.columns import Nested, cell_class
from nbspam.reading.compression import DerivedStream
from nbspam.reading.lines import Decoding, Line, Opener, decode_lines, decoding_of, nonblank_lines
from nbspam.reading.source import PARQUET, Input, Skips, TableOptions, has_more

TableRow = tuple[int, Sequence[str]]  # a row's first line number, and its cells

SAMPLE_ROWS = 200  # rows by which the columns are found
SAMPLE_CHARACTERS = 1 << 20  # the most characters of these rows, so that they fit in memory


# The bytes of a table

# Seconds after a stream's first bytes during which the sample is collected, if rows are classified
# as they arrive.  A pipe from a file delivers 200 rows within 0.01 s.
PATIENCE = 0.5
_CHUNK = 1 << 16
_FORMS = {".tab": "tsv", ".ndjson": "jsonl", ".xlsm": "xlsx"}
_BINARY = ("parquet", "xlsx")


class Content(NamedTuple):
    """A table's bytes."""

    source: Input
    form: str  # "tsv", "csv", "jsonl", "json", "parquet" or "xlsx"
    decoding: Decoding
    whole: Opener  # opens all bytes; a stream can be opened once
    beginning: Opener  # opens the bytes that decide the layout
    is_cut: bool = False  # whether more bytes follow the beginning

    def first_lines(self) -> Generator[Line, None, None]:
        """Yield the lines that decide the layout."""
        return decode_lines(self.source.title, self.beginning, self.decoding, Skips())


def content_of(source: Input, form: str | None, patience: float = PATIENCE) -> Content:
    """Return the bytes of a table in a file, standard input or a pipe; note a guessed charset.

    form: None uses the form in the file's name.  patience: as in `stream_content`.
    """
    if not source.is_file:
        return stream_content(source, form or "", patience)
    form = form or _FORMS.get(source.suffix, source.suffix[1:])
    if source.sample.startswith(PARQUET):
        form = "parquet"
    decoding = Decoding()
    if form not in _BINARY:
        decoding = decoding_of(source, source.open)
    return Content(source, form, decoding, source.open, source.open)


def stream_content(source: Input, form: str, patience: float | None) -> Content:
    """Return a stream's bytes, after reading its beginning.

    The beginning has SAMPLE_ROWS lines; or, if messages are classified as they arrive, the lines of
    the first `patience` seconds, at least one line.  patience: None waits for SAMPLE_ROWS.
    """
    stream, live_input = source.open(), source.options.live_input
    if live_input and patience is not None:
        live_input.stream = stream
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
    received = io.BytesIO(first)

    def read(n: int) -> bytes:
        return received.read(n) or stream.read1(n)  # the received bytes, without waiting

    def whole() -> io.BufferedReader:
        return io.BufferedReader(DerivedStream(read, stream), _CHUNK)

    def open_beginning() -> io.BufferedReader:
        return io.BufferedReader(io.BytesIO(beginning))

    decoding = Decoding() if form in _BINARY else decoding_of(source, open_beginning)
    return Content(source, form, decoding, whole, open_beginning, is_cut)


# Rows

CELL_LIMIT = 16 << 20  # characters of a quoted cell
_ROW_LINES_LIMIT = 1_000  # in a row of more lines, an opening quote was never closed
_FAILURES_LIMIT = 20  # rows that are not CSV, before the table is read as one row per line
_QUOTED = re.compile(r'"[^"]*"')
_DELIMITERS = ",;\t|"
_SEPARATOR = re.compile(r'"?sep=(.)"?', re.IGNORECASE)  # Excel's first line
_MAX_PATHS, _MAX_DEPTH = 20, 6  # limits of the inner fields that an error lists
_SURROGATES = re.compile("[\ud800-\udfff]")


class Cells(list[str]):
    """The cells of a row whose values are not all texts."""

    values: Any = None  # in the columns' order; for JSON lines, the whole object

    @classmethod
    def of(cls, row: Iterable[Any], values: Any = None) -> "Cells":
        """Convert a row to cells; values: the original values, by default the row."""
        cells = cls(map(cell_text, row))
        cells.values = row if values is None else values
        return cells


class Layout(NamedTuple):
    """The layout of a table of lines."""

    delimiter: str  # "" for JSON lines
    is_quoted: bool = False
    names: list[str] | None = None  # column names, if the format has them
    n_above: int = 0  # lines above the table


def layout_of(content: Content) -> Layout:
    """Find the layout of a TSV, a CSV or JSON lines.

    Excel's `sep=;` names a CSV's delimiter.  Otherwise the delimiter is the mark that most lines
    have equally often; among equals, the mark that is first in the first line.  The columns of JSON
    lines are the fields of the first rows, and inner fields that the user names.
    """
    lines = content.first_lines()
    if content.form == "jsonl":
        objects = itertools.islice(_objects("", lines, Skips()), SAMPLE_ROWS)
        return Layout(
            "", names=field_names([values for _, values in objects], content.source.options.table)
        )
    delimiter = "\t"
    if content.form == "csv":
        texts = [text for _, text in first_rows(nonblank_lines(lines))]
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
    """Return whether a TSV's quotes are CSV syntax and do not belong to its texts.

    Many texts of the UCI SMS collection start or end with a quote, and would run together as CSV.
    So quotes are CSV syntax only if the whole table is strict CSV and needs them: every line starts
    with a quote, or every quoted cell contains a quote, a tab or a line end.  For a stream, only
    its first bytes are known; a last row that they cut is not counted.
    """

    def has_quoted_cell(line: str) -> bool:
        return line.startswith('"') or '\t"' in line

    if not any(has_quoted_cell(line) for _, line in content.first_lines()):
        return False
    # numbers of lines, of lines that start with a quote, and of lines with a cell that does
    seen = 0, 0, 0

    def count_lines() -> Iterator[str]:
        nonlocal seen
        for _, line in content.first_lines():
            seen = seen[0] + 1, seen[1] + line.startswith('"'), seen[2] + has_quoted_cell(line)
            yield line

    needed, whole = 0, seen  # counts up to the last whole row
    csv.field_size_limit(CELL_LIMIT)
    try:
        for cells in csv.reader(count_lines(), delimiter="\t", strict=True):
            needed += any('"' in cell or "\t" in cell or "\n" in cell for cell in cells)
            whole = seen
    except csv.Error as error:
        if not (content.is_cut and "unexpected end of data" in str(error)):
            return False
    n_lines, quoted_lines, quoted_cells = whole
    return bool(quoted_cells) and (needed >= quoted_cells or quoted_lines == n_lines)


S = TypeVar("S", bound=Sequence[str])


def first_rows(rows: Iterator[tuple[int, S]]) -> Iterator[tuple[int, S]]:
    """Yield the first lines or rows, by which the columns are found."""
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
        for number, line in nonblank_lines(lines):
            yield number, line.split(layout.delimiter)


def _objects(
    table: str, lines: Iterator[Line], skips: Skips
) -> Iterator[tuple[int, dict[str, object]]]:
    for number, line in nonblank_lines(lines):
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
    """Return whether each line is a JSON object, so that the text is not one JSON document."""
    try:
        return bool(lines) and all(isinstance(json.loads(line), dict) for line in lines)
    except (ValueError, RecursionError):
        return False


def _csv_rows(name: str, lines: Iterator[Line], delimiter: str, skips: Skips) -> Iterator[TableRow]:
    """Yield the rows of a CSV.  A quote that is never closed damages only its own row.

    A row that is not strict CSV is a single line whose quotes belong to its text.
    """
    csv.field_size_limit(CELL_LIMIT)
    lines_to_retry: deque[Line] = deque()  # lines to read once more, after a row that failed
    failures = 0
    row: list[Line] = []  # the lines of the row being read

    def texts() -> Iterator[str]:
        # After many failures a row is one line, so that a file of failures takes linear time.
        max_more = _ROW_LINES_LIMIT if failures < _FAILURES_LIMIT else 0
        while len(row) <= max_more and (
            line := lines_to_retry.popleft() if lines_to_retry else next(lines, None)
        ):
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
        lines_to_retry.extendleft(reversed(row[1:]))
        row.clear()
        failures += 1


# Cells


def are_objects(value: Any) -> bool:
    """Return whether a value is a non-empty list of objects."""
    return isinstance(value, list) and bool(value) and all(isinstance(v, dict) for v in value)


def _join_pieces(value: Sequence[Any]) -> str | None:
    """Join a text in pieces, as Telegram writes links and bold words; None for other lists."""
    if {*map(type, value)} not in ({dict}, {str, dict}):
        return None
    pieces = [p if isinstance(p, str) else p.get("text") if "type" in p else None for p in value]
    return None if None in pieces else "".join(map(str, pieces))


def cell_text(value: Any) -> str:
    """Convert a value of JSON, Parquet or a data frame to a CSV cell.

    A list of one value becomes the value; an object or a longer list becomes `Nested`.
    """
    if isinstance(value, str):
        # JSON can contain an unpaired surrogate, which cannot be encoded.
        return value if value.isascii() else _SURROGATES.sub("\ufffd", value)
    if getattr(value, "ndim", None) is not None:  # a numpy array
        value = value.tolist()
    if isinstance(value, list | tuple) and (text := _join_pieces(value)) is not None:
        return cell_text(text)
    if isinstance(value, list | tuple) and len(value) < 2:
        return cell_text(value[0]) if value else ""
    if isinstance(value, list | tuple | Mapping):
        cell = Nested(str(value))
        cell.paths = tuple(itertools.islice(_paths(value, ""), _MAX_PATHS))
        return cell
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, bytes):  # Impala and older Spark do not mark texts in Parquet as texts
        return value.decode("utf-8", "replace")
    is_missing = value is None or (isinstance(value, float) and math.isnan(value))
    return "" if is_missing else str(value)


def _paths(value: Any, path: str) -> Iterator[str]:
    """Yield the paths to the texts and numbers within an object; unwraps lists of one value."""
    value = _unwrap(value)
    if isinstance(value, Mapping) and path.count(".") < _MAX_DEPTH:
        for name, inner in value.items():
            yield from _paths(inner, f"{path}.{name}")
    elif path and not isinstance(value, list | Mapping):
        yield path


def _unwrap(value: Any) -> Any:
    """Unwrap a value from lists of one value, which may be numpy's."""
    value = value.tolist() if hasattr(value, "tolist") else value
    return _unwrap(value[0]) if isinstance(value, list) and len(value) == 1 else value


def label_text(value: Any) -> str | None:
    """Convert a program's label to a class's name; "" if it is missing, None if it is invalid.

    A label is a text, a boolean, or a whole number, also as a float.
    """
    if isinstance(value, str):
        return cell_class(value)
    text = cell_text(value)
    if text in ("", "nan", "NaT", "<NA>"):
        return ""
    return text.removesuffix(".0") if re.fullmatch(r"-?\d+(?:\.0)?", text) else None


def field(values: Any, path: str) -> Any:
    """Look up a field of an object, or an inner field `a.b`; None if it is missing.

    Lists of one value are unwrapped.
    """
    values, (outer, _, inner) = _unwrap(values), path.partition(".")
    if not isinstance(values, Mapping) or path in values:
        return values.get(path) if isinstance(values, Mapping) else None
    return field(values.get(outer), inner) if inner else None


def field_names(sample: Sequence[Mapping[str, Any]], options: TableOptions) -> list[str]:
    """Return the names of all fields in some rows, and the inner fields that the user names."""
    names = dict.fromkeys(name for values in sample for name in values)
    learned = (name for pair in options.learned for name in pair)
    for name in (options.text_column, options.label_column, *learned):
        if name and "." in name and any(field(values, name) is not None for values in sample):
            names[name] = None
    return list(names)
