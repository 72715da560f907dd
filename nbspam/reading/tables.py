"""Tables of labelled text: TSV, CSV, JSON, JSON lines and Parquet, one message per row.

A table is streamed, except JSON and Parquet.  Text is UTF-8, line by line, and a line that is not
UTF-8 is Windows-1252 (as files from Excel and Kaggle often are).
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from nbspam.errors import Remedy, SourceError, TableError
from nbspam.labels import HAM, SPAM
from nbspam.reading.columns import (
    LABEL_LENGTH,
    Columns,
    find_columns,
    first_rows,
    names_columns,
)
from nbspam.reading.content import Content, file_content
from nbspam.reading.header_row import is_header_row
from nbspam.reading.raw_message import RawMessage
from nbspam.reading.rows import Rows, TableRow
from nbspam.reading.skips import Skips
from nbspam.reading.source_kind import (
    Labels,
    ReadingOptions,
    ReadingRequest,
    Source,
    SourceKind,
    TableOptions,
)

if TYPE_CHECKING:
    from nbspam.reading.delimited import Layout

__all__ = ["NAMED_TABLE", "NAMELESS_PARQUET", "NAMELESS_TSV", "TableOptions", "read_table"]

TABLE_SUFFIXES = frozenset({".tsv", ".tab", ".csv", ".json", ".jsonl", ".ndjson", ".parquet"})
_SAME_TEXTS = 10  # rows, at least, of which one text is told
_PARQUET = b"PAR1"  # the first bytes of every Parquet file


class TablePlan(NamedTuple):
    """How the rows of a table of lines become messages, whichever of them are read."""

    form: str  # "jsonl", or any other for TSV and CSV
    columns: Columns
    header_line: int | None  # the row on it names the columns
    names: tuple[str, ...] = ()  # of the columns of JSON lines
    layout: "Layout | None" = None  # of TSV and CSV

    def rows(self, name: str, lines: Iterator[tuple[int, str]], skips: Skips) -> Iterator[TableRow]:
        """Yield the rows of some lines of the table called `name`."""
        if self.layout is None:
            from nbspam.reading.json_lines import rows_of_json

            return rows_of_json(name, lines, list(self.names), skips)
        from nbspam.reading.delimited import delimited_rows

        return delimited_rows(name, lines, self.layout, skips)


def read_table(content: Content, request: ReadingRequest) -> Iterator[RawMessage]:
    """Yield the rows of a table as messages.

    If labels are needed a row without one, or without a text, is skipped; else they are read where
    there are any.
    Raises TableError when the columns cannot be found, OSError when the file cannot be read.
    """
    options, skips = request.options.table, request.skips
    found = _rows(content, options, skips)
    plan = table_plan(content, found, request)
    yield from row_messages(content.name, found.rows, plan, request.needs_labels, skips)


def table_plan(content: Content, found: Rows, request: ReadingRequest) -> TablePlan:
    """Return how a table's rows become messages; raises TableError.  Its layout is left open."""
    header, sample, _ = found
    if not sample:
        raise TableError(
            f"{content.name}: the table is empty; give one with a label and a text in each row"
        )
    header_line = None
    if header is None and _has_header_row(content, sample, request.options):
        header_line = sample[0][0]
        header = [name.strip() for name in sample[0][1]]
        sample = sample[1:]
        while header and not header[-1]:  # Kaggle's `v1,v2,,,`: the text continues there
            header.pop()
    cells = [row for _, row in sample]
    options, needs_labels = request.options.table, request.needs_labels
    first = sample[0][1] if sample and header is None else ()
    columns = find_columns(content.name, header, cells, options, needs_labels, first)
    _tell_same_texts(content.name, header, columns, cells, request.options)
    return TablePlan(content.form, columns, header_line, tuple(header or ()))


def row_messages(
    name: str, rows: Iterator[TableRow], plan: TablePlan, needs_labels: bool, skips: Skips
) -> Iterator[RawMessage]:
    """Yield rows of the table called `name` as messages."""
    columns = plan.columns
    for line, row in rows:
        if line == plan.header_line:
            continue
        source = f"{name}:{line}"
        text = columns.text_of(row)
        # A row to classify is answered, also an empty one; there is nothing to learn of it.
        if text is None or (needs_labels and not text.strip()):
            skips(source, "the row has no text")
            continue
        label = columns.label_of(row)
        if needs_labels and not label:
            skips(source, "the row has no label")
            continue
        yield RawMessage(source, label, text)


def _tell_same_texts(
    name: str,
    header: Sequence[str] | None,
    columns: Columns,
    cells: Sequence[Sequence[str]],
    options: ReadingOptions,
) -> None:
    """Tell the user if the texts of the sample are all the same: a date, or the name of a file."""
    texts = {columns.text_of(row) for row in cells}
    if len(cells) >= _SAME_TEXTS and len(texts) == 1:
        number = columns.text
        column = header[number] if header and number < len(header) else str(number + 1)
        problem = f"{name}: the texts in column {column!r} are all the same"
        options.tell(SourceError(problem, Remedy.NAME_TEXT_COLUMN))


def _has_header_row(content: Content, sample: Sequence[TableRow], options: ReadingOptions) -> bool:
    """Return whether the first row names the columns; tells the user if nothing but it says so."""
    first, *others = [row for _, row in sample]
    if options.table.header_row is not None:
        return options.table.header_row
    if names_columns(first, options.table):
        return True
    is_header = is_header_row(first, others)
    if is_header:
        names = ", ".join(name.strip() for name in first if name.strip())
        problem = f"{content.name}: its first row names the columns ({names})"
        options.tell(SourceError(problem, Remedy.HEADER_IS_MESSAGE))
    return is_header


def _rows(content: Content, options: TableOptions, skips: Skips) -> Rows:
    """Return the rows of a table, by its form."""
    # Deferred: each format needs a parser of its own, and Parquet pandas.
    if content.form == "parquet":
        from nbspam.reading.parquet import parquet_rows

        return parquet_rows(content)
    if content.form == "jsonl":
        from nbspam.reading.json_lines import json_rows

        return json_rows(content, options.encoding, skips)
    if content.form == "json":
        from nbspam.reading.json_document import document_rows

        return document_rows(content, options, skips)
    return _delimited(content, options.encoding, skips)


def _delimited(
    content: Content, encoding: str | None, skips: Skips, layout: "Layout | None" = None
) -> Rows:
    from nbspam.reading.delimited import delimited_rows, layout_of
    from nbspam.reading.lines import decoded_lines

    layout, name = layout or layout_of(content, encoding), content.name
    beginning = decoded_lines(name, content.beginning, encoding, Skips())
    lines = decoded_lines(name, content.whole, encoding, skips)
    first = delimited_rows(name, beginning, layout, Skips())
    sample = list(first_rows(first, lambda row: sum(map(len, row[1]))))
    return Rows(None, sample, delimited_rows(name, lines, layout, skips))


def line_plan(content: Content, request: ReadingRequest, has_quoted_cells: bool) -> TablePlan:
    """Return the plan of a TSV, a CSV or JSON lines whose every row is one line; raises TableError.

    has_quoted_cells: whether a cell of a TSV begins with a quote; they are its texts' own.
    """
    encoding = request.options.table.encoding
    if content.form == "jsonl":
        from nbspam.reading.json_lines import json_rows

        return table_plan(content, json_rows(content, encoding, Skips()), request)
    from nbspam.reading.delimited import Layout, layout_of

    layout = Layout("\t", is_quoted=False)
    if content.form == "csv" or has_quoted_cells:
        layout = layout_of(content, encoding)
    plan = table_plan(content, _delimited(content, encoding, Skips(), layout), request)
    return plan._replace(layout=layout)


def _has_table_suffix(source: Source, _: ReadingOptions) -> bool:
    return source.suffix in TABLE_SUFFIXES


def _is_parquet(source: Source, _: ReadingOptions) -> bool:
    return source.sample.startswith(_PARQUET)


def are_labelled_lines(lines: list[str]) -> bool:
    """Return whether every line is a short label, a tab and more; a guess."""
    pairs = [line.partition("\t") for line in lines]
    labels = {label for label, _, _ in pairs}
    return (
        all(label and tab for label, tab, _ in pairs)
        and max(map(len, labels), default=LABEL_LENGTH + 1) <= LABEL_LENGTH
        and (len(labels) <= max(2, len(pairs) // 4) or {HAM, SPAM} >= labels)
    )


def _is_tsv(source: Source, _: ReadingOptions) -> bool:
    return are_labelled_lines(source.lines)


def _read_any_table(source: Source, request: ReadingRequest) -> Iterator[RawMessage]:
    return read_table(file_content(source.path), request)


def _read_tsv(source: Source, request: ReadingRequest) -> Iterator[RawMessage]:
    return read_table(file_content(source.path, "tsv"), request)


NAMED_TABLE = SourceKind(
    Labels.ALWAYS,
    _has_table_suffix,
    _read_any_table,
    "a table has labels of its own",
    Remedy.LEAVE_OUT_LABEL,
)
# Only where labels are needed: a message that begins as Parquet does is a message.
NAMELESS_PARQUET = SourceKind(Labels.ON_REQUEST, _is_parquet, _read_any_table)
NAMELESS_TSV = SourceKind(Labels.ALLOWED, _is_tsv, _read_tsv)
