"""Texts and tables as sources: TSV, CSV, JSON, JSON lines, Parquet and Excel, a message a row.

Also data frames, and streams that look like tables.  `lines.py` decodes lines, `rows.py` streams
their rows, and `columns.py` finds the columns and the header.  A note says what is not certain, and
names the option that decides otherwise.

openpyxl reads Excel, and pandas reads Parquet.  JSON documents may have each form in which pandas
writes a data frame; a file called .json with an object on each line is JSON lines.

    records  [{"label": "ham", "text": "…"}, …]
    columns  {"label": {"0": "ham", …}, "text": {"0": "…", …}}, and with a list for each column
    index    {"0": {"label": "ham", "text": "…"}, …}
    split    {"columns": ["label", "text"], "index": [0, …], "data": [["ham", "…"], …]}
    table    {"schema": …, "data": [{"index": 0, "label": "ham", "text": "…"}, …]}
    values   [["ham", "…"], …]
"""

import csv
import io
import itertools
import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

from nbspam.errors import OptionError, Remedy, SourceError, TableError, counted, needs_extra
from nbspam.names import HAM, SPAM
from nbspam.reading import columns, lines, mail, rows
from nbspam.reading.columns import Columns, Nested
from nbspam.reading.message import RawMessage
from nbspam.reading.rows import Content, Layout, TableRow
from nbspam.reading.source import (
    LINES,
    PARQUET,
    SAMPLE_BYTES,
    TABLE_FORMATS,
    ReadingOptions,
    ReadingRequest,
    Skips,
    Source,
    SourceKind,
    TableOptions,
)

if TYPE_CHECKING:  # it takes half a second to start
    import pandas as pd

_SAME_TEXTS = 10  # rows, at least, for a note that all have the same text
_LABELS_SHOWN = 3
_LINES_SEEN = 2  # of a .json; if each is an object, the file is JSON lines


# Rows as messages


class TablePlan(NamedTuple):
    """How the rows of a table, all or some, become messages."""

    columns: Columns
    needs_labels: bool
    header_line: int = -1  # of the row that names the columns; this and what is above is skipped
    layout: Layout = Layout("\t")  # of a table of lines
    decoding: lines.Decoding = lines.Decoding()
    on_row: Callable[[str, Sequence[str], Any], None] | None = None  # of `ReadingOptions`

    def read(
        self, name: str, open_bytes: lines.Opener, skips: Skips, first: int = 1
    ) -> Iterator[RawMessage]:
        """Yield the messages of a table of lines, or of a part whose first line has this number."""
        with closing(lines.decoded_lines(name, open_bytes, self.decoding, skips, first)) as texts:
            yield from self.messages(name, rows.rows_of(name, texts, self.layout, skips), skips)

    def messages(
        self, name: str, table_rows: Iterator[TableRow], skips: Skips
    ) -> Iterator[RawMessage]:
        """Yield rows of the table called `name` as messages."""
        fitted, label_of, on_row = self.columns.fitted, self.columns.label_of, self.on_row
        number, label_number, width = self.columns.text, self.columns.label, self.columns.width
        keys = [columns.column_key(column) for column in self.columns.names]
        names = self.columns.names or tuple(
            {label_number: "label", number: "text"}.get(i, f"column_{i + 1}") for i in range(width)
        )
        if on_row:
            on_row(name, names, None)
        for line, row in table_rows:
            if line <= self.header_line:
                continue
            source, cells = f"{name}:{line}", row if len(row) == width else fitted(row)
            if keys and _is_header(source, cells, keys):
                skips.note(source, "the header again")
                continue
            if on_row:
                on_row(source, names, getattr(row, "values", row) if len(row) <= width else cells)
            text = cells[number] if number < len(cells) else None
            has_label = not any(row[width:]) or self.columns.is_usual(cells)
            label = label_of(cells) if has_label else None
            # An empty text is classified, but not learned.
            if text is None or (self.needs_labels and not text.strip()):
                skips(source, "the row has no text")
            elif isinstance(text, Nested):
                skips(source, "its text is an object or a list")
            elif not label and self.needs_labels:
                skips(source, "the row has no label")
            elif self.needs_labels and isinstance(cells[self.columns.label or 0], Nested):
                skips(source, "its label is an object or a list")
            else:
                if label and self.needs_labels:
                    skips.spelled(label, cells[self.columns.label or 0])
                yield RawMessage(source, label, text)


def _is_header(source: str, cells: Sequence[str], keys: list[str]) -> bool:
    """Return whether a row names the columns once more, as in joined files.

    keys: their names.  Raises TableError if it names them in another order.
    """
    if not cells or columns.column_key(cells[0][: columns.LABEL_LENGTH]) not in keys:
        return False
    row = [columns.column_key(cell) for cell in cells[: len(keys)]]
    if row != keys and sorted(row) == sorted(keys):
        raise TableError(
            f"{source}: names the columns in another order than the rows above; save what follows"
            " as a table of its own"
        )
    return row == keys


def read_table(content: Content, request: ReadingRequest) -> Iterator[RawMessage]:
    """Yield the rows of a table as messages.

    If labels are needed, a row without a label or a text is skipped; else labels are read where
    there are any.
    Raises TableError when the columns cannot be found, OSError when the file cannot be read.
    """
    name, skips = content.name, request.skips
    if content.form == "json":
        texts = itertools.islice(lines.filled(content.first_lines()), _LINES_SEEN)
        first = [text for _, text in texts]
        if len(first) == _LINES_SEEN and rows.are_json_lines(first):
            content = content._replace(form="jsonl")
    if content.form in LIMITS:
        names, table_rows = _memory_table(content, request)
        sample = list(rows.first_rows(table_rows))
        plan = _plan(name, names, sample, request)
        yield from plan.messages(name, itertools.chain(sample, table_rows), skips)
    else:
        layout = rows.layout_of(content, request.options.table)
        yield from line_plan(content, request, layout).read(name, content.whole, skips)


def line_plan(content: Content, request: ReadingRequest, layout: Layout) -> TablePlan:
    """Return the plan of a TSV, a CSV or JSON lines; raises TableError."""
    with closing(content.first_lines()) as texts:
        sample = list(rows.first_rows(rows.rows_of(content.name, texts, layout, Skips())))
    plan = _plan(content.name, layout.names, sample, request)
    fitting = plan.columns._replace(joint=layout.delimiter)
    return plan._replace(columns=fitting, layout=layout, decoding=content.decoding)


def _plan(
    name: str, header: list[str] | None, sample: list[TableRow], request: ReadingRequest
) -> TablePlan:
    """Return how a table's rows become messages, by a sample of them; raises TableError.

    Tells the user what is not certain: columns that were not found by their names, and a sample
    whose texts are all the same, such as dates or names of files.
    """
    options, header_line = request.options, -1
    if not sample and (request.needs_labels or not header):
        raise TableError(
            f"{name}: the table is empty; give one with a label and a text in each row"
        )
    cells = [row for _, row in sample]
    first = () if header else cells[0]
    if header is None and (place := columns.header_place(name, cells, request)) is not None:
        header_line, first = sample[place][0], ()
        header = [cell.strip(" \ufeff\t") for cell in cells[place]]
        while header and not header[-1]:  # Kaggle's `v1,v2,,,`: the text continues there
            header.pop()
        cells = cells[place + 1 :]
        if columns.has_row_names(header, cells):
            header = ["", *header]
    table_columns = columns.find_columns(name, header, cells, request, first)
    number, label_number, width = table_columns.text, table_columns.label, table_columns.width
    wide = [line for line, row in sample if line > header_line and any(row[width:])]
    is_guess = not table_columns.values and (label_number is None or number < width - 1)
    if wide and (is_guess or len(wide) == len(cells)):
        problem = f"{name}:{wide[0]}: has more cells than columns; the rest belongs to the text"
        options.tell(SourceError(problem))
    cells = [table_columns.fitted(row) for row in cells]
    if header and request.needs_labels and label_number is not None:
        label = header[label_number]
        options.on_columns((header[number], label))
        labels = list(dict.fromkeys(filter(None, map(table_columns.label_of, cells))))
        if labels and not {SPAM, HAM}.intersection(labels):
            first_labels = ", ".join(labels[:_LABELS_SHOWN]) + ", …" * (len(labels) > _LABELS_SHOWN)
            problem = f"{name}: labels are read from column {label!r} ({first_labels})"
            options.tell(SourceError(problem, Remedy.NAME_ANOTHER_LABEL))
    texts = {row[number] if number < len(row) else None for row in cells}
    if len(cells) >= _SAME_TEXTS and len(texts) == 1:
        column = header[number] if header and number < len(header) else str(number + 1)
        problem = f"{name}: the texts in column {column!r} are all the same"
        options.tell(SourceError(problem, Remedy.NAME_TEXT_COLUMN))
    return TablePlan(table_columns, request.needs_labels, header_line, on_row=options.on_row)


# Tables that other packages read

# Bytes, unpacked: a megabyte of gzip can hold a gigabyte of zeros.  The file is read whole, and
# JSON takes a few times as much memory.
LIMITS = {"json": 256 << 20, "parquet": 512 << 20, "xlsx": 256 << 20}
# The kind of file, and the packages that read it.
_FILES = {
    "json": ("JSON", "json", ""),
    "parquet": ("a Parquet file", "pandas and pyarrow", "parquet"),
    "xlsx": ("an Excel workbook", "openpyxl", "excel"),
}
_SHEET_ROWS = 1 << 20  # as Excel has them
_NAME = "the data frame"
Row = Sequence[Any]  # of values that are no cells yet
MemoryTable = tuple[list[Any], Iterator[Row]]  # names of the columns: numbers where it has none


def _memory_table(
    content: Content, request: ReadingRequest
) -> tuple[list[str] | None, Iterator[TableRow]]:
    """Return the names of the columns, if there are any, and the rows of a table in a file.

    Raises TableError, as reading the rows does.
    """
    with content.whole() as stream:
        data = stream.read(LIMITS[content.form] + 1)
    with _failing(content):
        _check_size(content, len(data))
        if content.form == "xlsx":
            return None, _sheet_rows(content, data, request)
        if content.form == "json":
            names, values = _document_table(
                _document(data, content.decoding), content.name, request
            )
        else:
            import pandas as pd

            names, values = _frame_table(pd.read_parquet(io.BytesIO(data)))
        names, values = _with_fields(names, values, request.options.table)
        table_rows = enumerate(map(rows.Cells.of, values), 1)
    return None if all(type(name) is int for name in names) else list(map(str, names)), table_rows


@contextmanager
def _failing(content: Content) -> Iterator[None]:
    """Turn what fails while a table is read into a TableError."""
    kind, packages, extra = _FILES[content.form]
    try:
        yield
    except TableError:
        raise
    except ImportError as error:
        what = needs_extra(f"{content.name}: reading {kind}", packages, extra)
        raise TableError(what) from error
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        is_not = "is not" if content.form == "json" else "not"
        raise TableError(f"{content.name}: {is_not} {kind} ({reason}); check it") from error


def _check_size(content: Content, size: int) -> None:
    if size > LIMITS[content.form]:
        raise TableError(
            f"{content.name}: is larger than {LIMITS[content.form] >> 20} MiB, unpacked; convert it"
            " to JSON lines, which are read one by one"
        )


def _sheet_rows(content: Content, data: bytes, request: ReadingRequest) -> Iterator[TableRow]:
    """Yield the rows of the sheet that reads most like messages, without empty rows.

    pandas would make all rows as wide as the widest: a cell far to the right takes all memory.
    """
    with _failing(content):
        from zipfile import ZipFile  # a workbook is one, of XML

        with ZipFile(io.BytesIO(data)) as archive:
            _check_size(content, sum(entry.file_size for entry in archive.infolist()))
        from openpyxl import load_workbook  # type: ignore[import-untyped]

        with warnings.catch_warnings(action="ignore"):  # of styles that are not known
            sheets = load_workbook(io.BytesIO(data), read_only=True, data_only=True).worksheets
        best = sheets[0]
        if len(sheets) > 1:
            ranks = {sheet: _sheet_rank(content.name, sheet, request) for sheet in sheets}
            best = max(sheets, key=lambda sheet: ranks[sheet])
            others = [sheet.title for sheet in sheets if sheet is not best and ranks[sheet][-1]]
            if others:
                more = ", …" * (len(others) > _LABELS_SHOWN)
                unread = ", ".join(map(repr, others[:_LABELS_SHOWN])) + more
                problem = f"{content.name}: sheet {best.title!r} is read, and not {unread}"
                request.options.tell(SourceError(problem, Remedy.SAVE_SHEET))
        yield from _rows_in(best)


def _rows_in(sheet: Any) -> Iterator[TableRow]:
    sheet.reset_dimensions()  # those in the file may be wrong
    for number, row in enumerate(sheet.iter_rows(max_row=_SHEET_ROWS, values_only=True), 1):
        if any(cells := rows.Cells.of(row)):
            yield number, cells


def _sheet_rank(name: str, sheet: Any, request: ReadingRequest) -> tuple[int, ...]:
    """Return how much a sheet reads like messages; the last number is of the sample's rows."""
    sample, silent = list(rows.first_rows(_rows_in(sheet))), ReadingOptions(request.options.table)
    try:
        plan = _plan(name, None, sample, request._replace(options=silent))
    except TableError:
        return 0, 0, len(sample)
    text, cells = plan.columns.text, [row for line, row in sample if line > plan.header_line]
    texts = [row[text] for row in map(plan.columns.fitted, cells) if text < len(row)]
    return 1, columns.measure(texts).is_text, len(sample)


def _document(data: bytes, decoding: lines.Decoding) -> Any:
    try:
        text = data.decode(decoding.codec)
    except UnicodeDecodeError:
        text = data.decode(decoding.fallback or decoding.codec, "replace")
    return json.loads(text.removeprefix("\ufeff")) if text.strip() else []


def _document_table(document: Any, name: str, request: ReadingRequest) -> MemoryTable:
    """Return the table that a JSON document is, in the file called `name`; raises TableError."""
    names: list[Any] | None = None
    if isinstance(document, dict):
        data, values = document.get("data"), list(document.values())
        kinds = {*map(type, values)}
        if isinstance(data, list) and isinstance(document.get("columns"), list):
            names, document = document["columns"], data
        elif isinstance(data, list) and all(isinstance(row, dict) for row in data):
            document = data
        elif not kinds & {dict, list}:  # one line of JSON lines
            document = [document] if document else []
        elif kinds == {dict} and _is_by_index(document, request.options.table):
            document = values
        elif kinds == {dict}:
            index = dict.fromkeys(key for column in values for key in column)
            document = [{key: column.get(i) for key, column in document.items()} for i in index]
        elif kinds == {list} and len({*map(len, values)}) == 1:
            names, document = list(document), list(map(list, zip(*values, strict=True)))
    kinds = {*map(type, document)} if isinstance(document, list) else set()
    if isinstance(document, list) and kinds <= {dict}:
        names = list(dict.fromkeys(key for row in document for key in row))
        return names, ([row.get(key) for key in names] for row in document)
    if kinds == {list}:
        width = max(map(len, document))
        if names is None or len(names) == width:
            missing = [None] * width
            return names or list(range(width)), ((row + missing)[:width] for row in document)
    raise TableError(
        f"{name}: the JSON is not a table; give an array of objects, such as"
        ' [{"label": "ham", "text": "…"}], or what pandas writes with DataFrame.to_json'
    )


def _is_by_index(document: dict[str, dict[str, object]], options: TableOptions) -> bool:
    """Return whether an object of objects has one for each row, rather than for each column."""
    outer, inner = list(document), list(next(iter(document.values())))
    if columns.names_columns(outer, options) or columns.names_columns(inner, options):
        return not columns.names_columns(outer, options)
    return outer == [str(number) for number in range(len(outer))] and inner != outer


def _frame_table(frame: "pd.DataFrame") -> MemoryTable:
    """Return a data frame's table of Python's own objects, None for what is missing."""
    objects = frame.astype(object)
    values = objects.where(frame.notna(), None).itertuples(index=False, name=None)
    return list(frame.columns), values


def _with_fields(names: list[Any], values: Iterator[Row], options: TableOptions) -> MemoryTable:
    """Return a table with more columns: fields within its objects that the user names."""
    sample = list(itertools.islice(values, rows.SAMPLE_ROWS))
    keys = list(map(str, names))
    objects = [dict(zip(keys, row, strict=True)) for row in sample]
    values = itertools.chain(sample, values)
    paths = rows.field_names(objects, options)[len({*keys}) :]
    if not paths:
        return names, values
    return [*keys, *paths], (
        [*row, *(rows.field(dict(zip(keys, row, strict=True)), path) for path in paths)]
        for row in values
    )


# Messages of a program


def is_data_frame(source: object) -> "TypeGuard[pd.DataFrame]":
    """Return whether a source is a data frame."""
    return hasattr(source, "columns") and hasattr(source, "itertuples")


def frame_messages(
    frame: "pd.DataFrame", options: ReadingOptions, skips: Skips, needs_labels: bool
) -> Iterator[RawMessage]:
    """Yield the rows of a data frame as messages; the source of the first is `row:0`.

    Its columns are found like those of a file.  Text is plain text, and bytes are a mail.
    needs_labels: as of `read_table`.
    Raises TableError when the columns cannot be found.
    """
    names, values = _with_fields(*_frame_table(frame), options.table)
    if not names:
        raise TableError(f"{_NAME}: it has no columns; give one with labels and texts")

    def cell(value: Any, keeps_bytes: bool = True) -> Any:
        if isinstance(value, bytes):
            return value if keeps_bytes else value.decode("latin-1")
        return rows.cell_text(value)

    sample = list(itertools.islice(values, rows.SAMPLE_ROWS))
    if not sample:
        return
    texts: list[TableRow] = [
        (0, [cell(value, keeps_bytes=False) for value in row]) for row in sample
    ]
    request = ReadingRequest(options, skips, needs_labels=needs_labels)
    plan = _plan(_NAME, list(map(str, names)), texts, request)
    used = [i for i in (plan.columns.text, plan.columns.label) if i is not None]
    narrow = plan.columns._replace(names=(), text=0, label=len(used) - 1 or None, width=len(used))
    table_rows = enumerate([cell(row[i]) for i in used] for row in itertools.chain(sample, values))
    yield from TablePlan(narrow, needs_labels).messages("row", table_rows, skips)


def given_messages(messages: object, options: ReadingOptions, skips: Skips) -> Iterator[RawMessage]:
    """Yield all texts, mails or rows of a data frame as messages; the first is `message:0`.

    A row without a text is an empty message, which `skips` notes.
    Raises SourceError for another type, and OptionError for a single message.
    """
    if is_data_frame(messages):
        for raw in frame_messages(messages, options, Skips(strict=True), needs_labels=False):
            if raw.content == "":
                skips(raw.source, "the row has no text")
            yield raw
        return
    if isinstance(messages, str | bytes) or not isinstance(messages, Iterable):
        raise OptionError(
            f"the messages are of the type {type(messages).__name__}; give a list, a column or a"
            " DataFrame"
        )
    for number, content in enumerate(messages):
        if not isinstance(content, str | bytes):
            raise SourceError(
                f"message:{number}: is of the type {type(content).__name__}; give text or bytes"
            )
        yield RawMessage(f"message:{number}", None, content)


def pair_messages(
    pairs: Iterable[tuple[object, str | bytes]], skips: Skips
) -> Iterator[RawMessage]:
    """Yield the messages of (label, text or bytes) pairs; the source of the first is `pair:0`.

    Text is plain text, and bytes are a mail.  A pair without a printable label is skipped.
    Raises SourceError for anything but such a pair.
    """
    if not isinstance(pairs, Iterable):
        raise SourceError(
            f"the source is of the type {type(pairs).__name__}; give a name, pairs or a DataFrame"
        )
    for number, pair in enumerate(pairs):
        source = f"pair:{number}"
        # Two characters of a string would pass for a pair.
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise SourceError(f"{source}: is not a pair; give (label, text or bytes)")
        label, content = pair
        name = rows.label_text(label)
        if name is None or not isinstance(content, str | bytes):
            raise SourceError(
                f"{source}: is a pair of {type(label).__name__} and {type(content).__name__};"
                " give a label, and the message as text or bytes"
            )
        if not name:
            skips(source, "it has no label, or none of printable characters")
        elif not content.strip():
            skips(source, "the message is empty")
        else:
            if isinstance(label, str):
                skips.spelled(name, label)
            yield RawMessage(source, name, content)


# Kinds


def are_labelled_lines(texts: list[str]) -> bool:
    """Return whether every line looks like a short label, a tab and a text."""
    pairs = [text.partition("\t") for text in texts]
    labels = {label for label, _, _ in pairs}
    return (
        bool(pairs)
        and all(label and tab for label, tab, _ in pairs)
        and max(map(len, labels)) <= columns.LABEL_LENGTH
        and (len(labels) <= max(2, len(pairs) // 4) or {HAM, SPAM} >= labels)
    )


def _read_as(form: str | None, source: Source, request: ReadingRequest) -> Iterator[RawMessage]:
    """Return the rows of a file, standard input or a pipe; form: that of its name, if None."""
    return read_table(rows.content_of(source, form, request.options), request)


def line_messages(
    label: str | None,
    decoding: lines.Decoding,
    name: str,
    open_bytes: lines.Opener,
    skips: Skips,
    first: int = 1,
) -> Iterator[RawMessage]:
    """Yield the lines of a text as messages; first: the number of the first line."""
    for number, line in lines.filled(lines.decoded_lines(name, open_bytes, decoding, skips, first)):
        yield RawMessage(f"{name}:{number}", label, line)


def _read_each_line(source: Source, request: ReadingRequest) -> Iterator[RawMessage]:
    name, _, decoding, whole, *_ = rows.content_of(source, LINES, request.options, patience=0.0)
    return line_messages(request.label, decoding, name, whole, request.skips)


def _read_labelled(source: Source, request: ReadingRequest) -> Iterator[RawMessage]:
    """Yield the rows of the table in a stream, which cannot be a message as it must have labels."""
    content = rows.stream_content(source, "", request.options, patience=None)
    with content.beginning() as beginning:
        look = looks_like(beginning.read(SAMPLE_BYTES))
    if look is None or look[1] not in TABLE_FORMATS:
        content.whole().close()
        problem = f"{source.title}: {source.stream_name} has no labels that can be recognised"
        raise SourceError(problem, Remedy.GIVE_LABEL_OR_FORMAT)
    yield from read_table(content._replace(form=look[1]), request)


TABLE = SourceKind(partial(_read_as, None), "a table has labels of its own", has_labels=True)
TSV = SourceKind(partial(_read_as, "tsv"))
# Standard input or a pipe where labels are needed and no format is given.
LABELLED_STREAM = SourceKind(_read_labelled)
# By the format that the user names.
FORMS = {form: TABLE._replace(read=partial(_read_as, form)) for form in TABLE_FORMATS}
EACH_LINE = SourceKind(_read_each_line, "lines of text have no labels")


# Streams that look like many messages


def looks_like(first: bytes) -> tuple[str, str] | None:
    """Return the kind of many messages that first bytes look like; None if like one message.

    The kind is its name in a sentence, and one of `INPUT_FORMATS`.
    """
    if mail.is_mbox(first):
        return ("an mbox of several messages", "mbox") if mail.count_separators(first) else None
    if first.startswith(PARQUET):
        return ("a Parquet table", "parquet")
    text = first.decode("utf-8", "replace").removeprefix("\ufeff")
    if len(first) >= SAMPLE_BYTES and "\n" in text:
        text = text.rpartition("\n")[0]  # the last line is cut
    texts = [line for line in text.split("\n")[: rows.SAMPLE_ROWS] if line.strip()]
    if not texts:
        return None
    # One object could be a row; a whole table has objects or lists in it.
    if rows.are_json_lines(texts) and (
        len(texts) > 1
        or not any(isinstance(value, dict | list) for value in json.loads(texts[0]).values())
    ):
        return ("JSON lines", "jsonl")
    if texts[0].lstrip().startswith(("[{", "[[", '{"')) or texts[0].strip() in ("[", "{"):
        return ("JSON", "json")
    return _looks_like_table(texts) if len(texts) > 1 else None


def _looks_like_table(texts: list[str]) -> tuple[str, str] | None:
    """Return the kind of table that lines look like, by a delimiter that cuts them alike."""
    if are_labelled_lines(texts):
        return ("a table of 2 columns", "tsv")
    for delimiter, form in (("\t", "tsv"), (",", "csv"), (";", "csv"), ("|", "csv")):
        try:
            table = [row for row in csv.reader(texts, delimiter=delimiter) if row]
        except csv.Error:  # as with a bare CR
            continue
        widths = [len(row) for row in table]
        width = max(set(widths), key=widths.count, default=0)
        regular = [row for row in table if len(row) == width]
        if width < 2 or 10 * len(regular) < 9 * len(table) or len(regular) < 2:
            continue
        # A column of labels has few values, or ham and spam; parts of a text have many.
        cells = [[row[i] for row in regular] for i in range(width)]
        label = columns.label_by_content(cells)
        values = set() if label is None else {cell.strip().lower() for cell in cells[label]}
        has_labels = len(values) > 1 and (4 * len(values) <= len(regular) or values & {HAM, SPAM})
        has_header = columns.names_columns(table[0], TableOptions())
        if has_labels or has_header or columns.is_header_row(regular[0], regular[1:]):
            return (f"a table of {counted(width, 'column')}", form)
    return None
