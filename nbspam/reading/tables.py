"""Texts and tables as sources: TSV, CSV, JSON, JSON lines, Parquet and Excel, a message a row.

Also data frames, and streams that look like tables.  `lines.py` decodes lines, `rows.py` streams
rows, `columns.py` finds the columns, and `header_rows.py` the header.  A note reports an uncertain
choice, with the option that changes it.

openpyxl reads Excel, and pandas reads Parquet.  JSON documents may have any form in which pandas
writes a data frame; a file called .json with an object on each line is JSON lines.

    records  [{"label": "ham", "text": "…"}, …]
    columns  {"label": {"0": "ham", …}, "text": {"0": "…", …}}, and with a list for each column
    index    {"0": {"label": "ham", "text": "…"}, …}
    split    {"columns": ["label", "text"], "index": [0, …], "data": [["ham", "…"], …]}
    table    {"schema": …, "data": [{"index": 0, "label": "ham", "text": "…"}, …]}
    values   [["ham", "…"], …]
"""

import io
import itertools
import json
import re
import shlex
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from nbspam.errors import Remedy, SourceError, TableError, needs_extra
from nbspam.names import HAM, SPAM, binary_label, normal_label
from nbspam.reading import columns, header_rows, lines, rows
from nbspam.reading.columns import Columns, Nested
from nbspam.reading.compression import TABLE_SUFFIXES, bare_suffix, foreign_format
from nbspam.reading.message import RawMessage
from nbspam.reading.rows import Content, TableRow
from nbspam.reading.source import (
    LINES,
    TABLE_FORMATS,
    Input,
    ReadingOptions,
    Skips,
    SourceKind,
    TableOptions,
)

if TYPE_CHECKING:  # importing pandas takes half a second
    import pandas as pd

_SAME_TEXTS = 10  # rows needed for a note that all texts are the same
_LABELS_SHOWN = 3
_LINES_SEEN = 2  # a .json is JSON lines if each of its first lines is an object
_ARRAY = "[{"  # the beginning of a JSON array of objects
_STARTS = ("[", _ARRAY, "[[", "{")  # first characters of a JSON document that is not JSON lines


# Rows as messages


class TablePlan(NamedTuple):
    """How the rows of a table become messages."""

    source: Input
    columns: Columns
    header_line: int = -1  # line of the row that names the columns; rows up to it are skipped

    def messages(self, table_rows: Iterator[TableRow], name: str) -> Iterator[RawMessage]:
        """Yield rows as messages; name: the start of their names."""
        skips, own_label = self.source.skips, self.source.label
        require_labels, on_row = self.source.require_labels, self.source.options.on_row
        fitted, label_of = self.columns.fit_width, self.columns.label_of
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
            is_learned = require_labels or own_label is not None
            # An empty text is classified, but not learned.
            if text is None or (is_learned and not text.strip()):
                skips(source, "the row has no text")
            elif isinstance(text, Nested):
                skips(source, "its text is an object or a list")
            elif not label and require_labels:
                skips(source, "the row has no label")
            elif require_labels and isinstance(cells[self.columns.label or 0], Nested):
                skips(source, "its label is an object or a list")
            else:
                if label and require_labels:
                    skips.record_spelling(label, cells[self.columns.label or 0])
                yield RawMessage(source, label if own_label is None else own_label, text)


def _is_header(source: str, cells: Sequence[str], keys: list[str]) -> bool:
    """Return whether a row repeats the header, as in joined files.

    keys: the columns' names.  Raises TableError if the row has them in another order.
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


def read_table(content: Content) -> Iterator[RawMessage]:
    """Yield the rows of a table as messages.

    If labels are required, a row without a label or a text is skipped; otherwise labels are read if
    the table has them.
    Raises TableError when the columns cannot be found, OSError when the file cannot be read.
    """
    content, source = _with_form(content), content.source
    if content.form in LIMITS:
        names, table_rows = _read_whole_table(content)
        sample = list(rows.first_rows(table_rows))
        plan = plan_of(source, names, sample)
        if content.form == "parquet" and (ranges := list(_row_ranges(plan))):
            yield from ranges
        else:
            yield from plan.messages(itertools.chain(sample, table_rows), source.title)
        return
    layout = rows.layout_of(content)
    with closing(content.first_lines()) as texts:
        sample = list(rows.first_rows(rows.rows_of("", texts, layout, Skips())))
    plan = plan_of(source, layout.names, sample)
    plan = plan._replace(columns=plan.columns._replace(joint=layout.delimiter))
    whole = lines.decode_lines(source.title, content.whole, content.decoding, source.skips)
    with closing(whole) as texts:
        table_rows = rows.rows_of(source.title, texts, layout, source.skips)
        yield from plan.messages(table_rows, source.title)


def _with_form(content: Content) -> Content:
    """Correct the form in the file's name by the form of the first lines."""
    if content.form not in ("tsv", "csv", "json", "jsonl"):
        return content
    texts = itertools.islice(lines.nonblank_lines(content.first_lines()), _LINES_SEEN)
    first = [text.strip() for _, text in texts]
    are_lines = rows.are_json_lines(first)
    if are_lines and (content.form != "json" or len(first) == _LINES_SEEN):
        return content._replace(form="jsonl")
    starts = _STARTS if content.form == "jsonl" else (_ARRAY,)
    is_document = not are_lines and "".join(first)[:2].rstrip() in starts
    return content._replace(form="json") if is_document else content


def plan_of(source: Input, header: list[str] | None, sample: list[TableRow]) -> TablePlan:
    """Plan how a table's rows become messages, by a sample of rows; raises TableError.

    Notes uncertain choices: columns that were not found by their names, and a sample whose texts
    are all the same, such as dates or file names.
    """
    name, options, header_line = source.title, source.options, -1
    if not sample and (source.require_labels or not header):
        raise TableError(
            f"{name}: no row can be read in it; give a table with a label and a text in each row"
        )
    cells = [row for _, row in sample]
    if header is None and (place := header_rows.header_row_index(source, cells)) is not None:
        header_line = sample[place][0]
        header = [cell.strip(" \ufeff\t") for cell in cells[place]]
        # Kaggle's `v1,v2,,,`: the empty cells are columns into which texts continue
        while header and not header[-1]:
            header.pop()
        cells = cells[place + 1 :]
        if header_rows.has_row_names(header, cells):
            header = ["", *header]
    table_columns = columns.find_columns(source, header, cells)
    number, label_number, width = table_columns.text, table_columns.label, table_columns.width
    wide = [line for line, row in sample if line > header_line and any(row[width:])]
    is_guess = not table_columns.values and (label_number is None or number < width - 1)
    if wide and (is_guess or len(wide) == len(cells)):
        source.note(f"{name}:{wide[0]}: has more cells than columns; the rest belongs to the text")
    cells = [table_columns.fit_width(row) for row in cells]
    if source.label is not None and label_number is not None:
        _check_label(name, source.label, table_columns, cells)
    if header and source.require_labels and label_number is not None:
        label = header[label_number]
        options.on_columns((header[number], label))
        labels = list(dict.fromkeys(filter(None, map(table_columns.label_of, cells))))
        if labels and not {SPAM, HAM}.intersection(labels):
            first_labels = ", ".join(labels[:_LABELS_SHOWN]) + ", …" * (len(labels) > _LABELS_SHOWN)
            problem = f"{name}: labels are read from column {label!r} ({first_labels})"
            source.note(problem, Remedy.NAME_ANOTHER_LABEL)
    texts = {row[number] if number < len(row) else None for row in cells}
    if len(cells) >= _SAME_TEXTS and len(texts) == 1:
        column = header[number] if header and number < len(header) else str(number + 1)
        problem = f"{name}: the texts in column {column!r} are all the same"
        source.note(problem, Remedy.NAME_TEXT_COLUMN)
    return TablePlan(source, table_columns, header_line)


def _check_label(
    name: str, label: str, table_columns: Columns, cells: Sequence[Sequence[str]]
) -> None:
    """Raise TableError if the user's label contradicts the labels in the table's rows."""
    labels = map(table_columns.label_of, cells)
    own = sorted({binary_label(own) for own in labels if own} - {label})
    number = table_columns.label or 0
    column = table_columns.names[number] if table_columns.names else str(number + 1)
    if {SPAM, HAM}.intersection(own) or len(own) > 1:
        shown = ", ".join(own[:_LABELS_SHOWN])
        problem = f"{name}: has labels of its own, in column {column!r} ({shown})"
        raise TableError(problem, Remedy.LEAVE_OUT_LABEL)


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
_PARQUET_ROWS = 1000  # in memory at a time
_BUFFER_BYTES = 1 << 20  # a row group is not read whole
_RANGE_BYTES = 128 << 10  # unpacked; the rows that a worker tokenizes at a time
_SHEET_ROWS = 1 << 20  # the most rows of a sheet in Excel
# the text's field as Telegram, as Discord and others, and as QKSMS name it
_CHAT_TEXT_FIELDS = ("text", "content", "body")
Row = Sequence[Any]  # values that were not converted to cells yet
MemoryTable = tuple[list[Any], Iterator[Row]]  # names of the columns: numbers where it has none


def _read_whole_table(content: Content) -> tuple[list[str] | None, Iterator[TableRow]]:
    """Read a table into memory: its column names, or None, and its rows.

    Raises TableError, also while the rows are iterated.
    """
    with _table_errors(content):
        if content.form == "xlsx":
            return None, _sheet_rows(content, _whole(content))
        if content.form == "json":
            document = _document(_whole(content), content.decoding)
            names, values = _document_table(document, content.source)
        else:
            names, values = _joined_table(_parquet_frames(content))
        names, values = with_fields(names, values, content.source.options.table)
        table_rows = enumerate(map(rows.Cells.of, values), 1)
    return None if all(type(name) is int for name in names) else list(map(str, names)), table_rows


@contextmanager
def _table_errors(content: Content) -> Iterator[None]:
    """Turn errors while a table is read into a TableError."""
    name, (kind, packages, extra) = content.source.title, _FILES[content.form]
    try:
        yield
    except TableError:
        raise
    except ImportError as error:
        what = needs_extra(f"{name}: reading {kind}", packages, extra)
        raise TableError(what) from error
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        is_not = "is not" if content.form == "json" else "not"
        raise TableError(f"{name}: {is_not} {kind} ({reason}); check it") from error


def _whole(content: Content) -> bytes:
    """Read all bytes of a table; raises TableError for too many."""
    with content.whole() as stream:
        data = stream.read(LIMITS[content.form] + 1)
    _check_size(content, len(data))
    return data


def _check_size(content: Content, size: int) -> None:
    if size > LIMITS[content.form]:
        raise TableError(
            f"{content.source.title}: is larger than {LIMITS[content.form] >> 20} MiB, unpacked;"
            " convert it to JSON lines, which are read one by one"
        )


def _sheet_rows(content: Content, data: bytes) -> Iterator[TableRow]:
    """Yield the rows of the sheet that reads most like messages, without empty rows.

    openpyxl reads them row by row: pandas would make all rows as wide as the widest row, so one
    cell far to the right would take all memory.
    """
    with _table_errors(content):
        from zipfile import ZipFile  # a workbook is one, of XML

        with ZipFile(io.BytesIO(data)) as archive:
            _check_size(content, sum(entry.file_size for entry in archive.infolist()))
        from openpyxl import load_workbook  # type: ignore[import-untyped]

        with warnings.catch_warnings(action="ignore"):  # openpyxl warns of unknown styles
            sheets = load_workbook(io.BytesIO(data), read_only=True, data_only=True).worksheets
        best = sheets[0]
        if len(sheets) > 1:
            ranks = {sheet: _sheet_rank(content.source, sheet) for sheet in sheets}
            best = max(sheets, key=lambda sheet: ranks[sheet])
            others = [sheet.title for sheet in sheets if sheet is not best and ranks[sheet][-1]]
            if others:
                more = ", …" * (len(others) > _LABELS_SHOWN)
                unread = ", ".join(map(repr, others[:_LABELS_SHOWN])) + more
                problem = f"sheet {best.title!r} is read, and not {unread}"
                content.source.note(f"{content.source.title}: {problem}", Remedy.SAVE_SHEET)
        yield from _iter_sheet_rows(best)


def _iter_sheet_rows(sheet: Any) -> Iterator[TableRow]:
    sheet.reset_dimensions()  # the dimensions in the file may be wrong
    for number, row in enumerate(sheet.iter_rows(max_row=_SHEET_ROWS, values_only=True), 1):
        if any(cells := rows.Cells.of(row)):
            yield number, cells


def _sheet_rank(source: Input, sheet: Any) -> tuple[int, ...]:
    """Rate how much a sheet reads like messages; the last number counts the sample's rows."""
    sample = list(rows.first_rows(_iter_sheet_rows(sheet)))
    silent = ReadingOptions(source.options.table)
    trial = Input(source.name, silent, source.skips, source.label, source.require_labels)
    try:
        plan = plan_of(trial, None, sample)
    except TableError:
        return 0, 0, len(sample)
    cells = [plan.columns.fit_width(row) for line, row in sample if line > plan.header_line]
    texts = [row[plan.columns.text] for row in cells if plan.columns.text < len(row)]
    return 1, columns.measure(texts).is_text, len(sample)


def _document(data: bytes, decoding: lines.Decoding) -> Any:
    try:
        text = data.decode(decoding.codec)
    except UnicodeDecodeError:
        text = data.decode(decoding.fallback or decoding.codec, "replace")
    return json.loads(text.removeprefix("\ufeff")) if text.strip() else []


def _document_table(document: Any, source: Input) -> MemoryTable:
    """Convert a JSON document to a table; raises TableError."""
    name, options, names = source.title, source.options.table, None
    chats = rows.field(document, "chats.list") if isinstance(document, dict) else None
    if isinstance(chats, list):  # Telegram's export of all chats
        document = {"messages": [row for chat in chats for row in rows.field(chat, "messages")]}
    messages: Any = document.get("messages") if isinstance(document, dict) else None
    if rows.are_objects(messages):
        # An exported chat; the program's own entries have no text.
        if source.require_labels and not any("label" in row for row in messages):
            raise TableError(f"{name}: is an exported chat, without labels", Remedy.GIVE_LABEL)
        document = [row for row in messages if any(map(row.get, _CHAT_TEXT_FIELDS))]
    elif isinstance(document, dict):
        data, values = document.get("data"), list(document.values())
        kinds = {*map(type, values)}
        if isinstance(data, list) and isinstance(document.get("columns"), list):
            names, document = document["columns"], data
        elif isinstance(data, list) and all(isinstance(row, dict) for row in data):
            document = data
        elif not kinds & {dict, list}:  # one line of JSON lines
            document = [document] if document else []
        elif kinds == {list} and len({*map(len, values)}) == 1:
            names, document = list(document), list(map(list, zip(*values, strict=True)))
        elif kinds == {dict} and not _is_by_index(document, options):
            index = dict.fromkeys(key for column in values for key in column)
            document = [{key: column.get(i) for key, column in document.items()} for i in index]
        elif kinds == {dict}:
            document = values
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
    """Return whether an object of objects has an object for each row, not for each column."""
    outer, inner = list(document), list(next(iter(document.values())))
    if header_rows.names_columns(outer, options) or header_rows.names_columns(inner, options):
        return not header_rows.names_columns(outer, options)
    return outer == [str(number) for number in range(len(outer))] and inner != outer


def _parquet_frames(content: Content) -> "Iterator[pd.DataFrame]":
    """Yield the rows of a Parquet file, a part at a time; an archive is unpacked into memory.

    Hugging Face's datasets keep classes as numbers: each is replaced by the class's name.
    """
    with content.whole() as stream, _table_errors(content):
        from pyarrow import parquet  # type: ignore[import-untyped]

        file = parquet.ParquetFile(stream if stream.seekable() else io.BytesIO(_whole(content)))
        parts = file.iter_batches(_PARQUET_ROWS)
        yield from map(_parquet_frame, itertools.chain(parts, [file.schema_arrow.empty_table()]))


def _parquet_frame(part: Any) -> "pd.DataFrame":
    """Convert some rows of a Parquet file to a data frame."""
    info = json.loads((part.schema.metadata or {}).get(b"huggingface", b"{}"))
    features = rows.field(info, "info.features") or {}
    # Otherwise numbers would be floats in a part with a missing number, and integers in other
    # parts.
    frame: pd.DataFrame = part.to_pandas(integer_object_nulls=True)
    for column in features.keys() & {*frame.columns}:
        frame[column] = [_with_names(value, features[column]) for value in frame[column]]
    return frame


class RowRange(RawMessage):
    """Some rows of a row group of a Parquet file, which the process that tokenizes them reads."""

    columns: Columns
    require_labels: bool
    group: int
    size: int  # rows of each range but the last
    rows: range  # in the row group
    first: int  # the number of the first row in the file

    def messages(self, skips: Skips) -> Iterator[RawMessage]:
        """Read the rows; raises OSError, and TableError."""
        _, values = frame_table(_parquet_frame(self._read()))
        source = Input(self.source, ReadingOptions(), skips, self.label, self.require_labels)
        table_rows = enumerate(map(rows.Cells.of, values), self.first)
        return TablePlan(source, self.columns).messages(table_rows, self.source)

    def _read(self) -> Any:
        """Return the rows; reads the row group on from the rows that were read last."""
        for _ in range(2):  # once more from the start if the rows were read before
            for start, part in _row_group(self.content, self.group, self.size):
                if (start, part.num_rows) == (self.rows.start, len(self.rows)):
                    return part
            _row_group.cache_clear()
        raise TableError(f"{self.source}: has changed while it was read; run it again")


@lru_cache(maxsize=1)
def _row_group(path: Path, group: int, size: int) -> Iterator[tuple[int, Any]]:
    """Yield the first number and the rows of each range of a row group."""
    from pyarrow import parquet

    file = parquet.ParquetFile(path, buffer_size=_BUFFER_BYTES)
    start = 0
    for part in file.iter_batches(size, row_groups=[group]):
        yield start, part
        start += part.num_rows


def _row_ranges(plan: TablePlan) -> Iterator[RowRange]:
    """Divide a Parquet file into ranges of about _RANGE_BYTES.

    Yields nothing if this process must read the rows: they are attached to a message or in an
    archive, or have inner fields.
    """
    source, options = plan.source, plan.source.options
    named = options.table.text_column, options.table.label_column
    has_inner = any(name and "." in name for name in named)
    if not options.by_range or not source.is_file or options.attached or has_inner:
        return
    from pyarrow import parquet

    metadata = parquet.ParquetFile(source.path).metadata
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    first = 1
    for number, group in enumerate(groups):
        n_rows = max(1, group.num_rows * _RANGE_BYTES // max(1, group.total_byte_size))
        for start in range(0, group.num_rows, n_rows):
            part = RowRange(source.title, source.label, source.path.absolute())
            part.columns, part.require_labels = plan.columns, source.require_labels
            part.group, part.size = number, n_rows
            part.rows = range(start, min(start + n_rows, group.num_rows))
            part.first = first + start
            yield part
        first += group.num_rows


def _with_names(value: Any, feature: Any) -> Any:
    """Replace class numbers in a value by the classes' names.

    feature: the value's metadata.  For a list of values, the metadata of its items is the item of a
    list, or has the key `feature`.
    """
    feature = feature[0] if isinstance(feature, list) else feature
    if isinstance(value, Mapping):
        return {key: _with_names(inner, feature.get(key, {})) for key, inner in value.items()}
    if getattr(value, "ndim", 0):
        return [_with_names(inner, feature.get("feature", feature)) for inner in value]
    if not (names := feature.get("names")):
        return value
    known = names if isinstance(names, dict) else {str(i): name for i, name in enumerate(names)}
    return known.get(str(value).removesuffix(".0"))


def is_partitioned(frame: object) -> bool:
    """Return whether a data frame is in partitions, as Dask's; a column of that name is ignored."""
    return hasattr(type(frame), "partitions")


def frame_table(frame: "pd.DataFrame") -> MemoryTable:
    """Return a data frame's table of Python's own objects, None for what is missing.

    Dask computes one partition of its frames at a time.
    """
    if is_partitioned(frame):
        parts: Any = frame
        return _joined_table(part.compute() for part in parts.partitions)
    if any(
        name is not None for name in frame.index.names
    ):  # to Parquet, pandas writes such an index as metadata
        frame = frame.reset_index()
    objects = frame.astype(object)
    values = objects.where(frame.notna(), None).itertuples(index=False, name=None)
    return list(frame.columns), values


def _joined_table(frames: "Iterator[pd.DataFrame]") -> MemoryTable:
    """Return the table of data frames with the same columns; each is read when it is needed."""
    tables = map(frame_table, frames)
    names, values = next(tables)
    return names, itertools.chain(values, itertools.chain.from_iterable(v for _, v in tables))


def with_fields(names: list[Any], values: Iterator[Row], options: TableOptions) -> MemoryTable:
    """Add the inner fields that the user names as columns of a table."""
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


def _read_as(form: str | None, source: Input) -> Iterator[RawMessage]:
    """Yield the rows of a file, standard input or a pipe; form: None for the form in its name."""
    return read_table(rows.content_of(source, form))


def _read_each_line(source: Input) -> Iterator[RawMessage]:
    _, _, decoding, whole, *_ = rows.content_of(source, LINES, patience=0.0)
    texts = lines.decode_lines(source.title, whole, decoding, source.skips)
    for number, line in lines.nonblank_lines(texts):
        yield RawMessage(f"{source.title}:{number}", source.label, line)


# Folders of tables, such as Parquet in parts
#
# Hugging Face keeps `train-*.parquet` next to `test-*.parquet`.  Spark and Dask write partitions,
# sub-folders such as `day=2026-11-28`, and files such as `_SUCCESS`.

_PARTS = re.compile(r"(?<![a-z])(train|test|valid|dev|eval)(?:ing|ation)?(?![a-z])", re.I)


def tables_in_folder(folder: Path) -> list[Path]:
    """Return the tables of a folder and its partitions; none if it has other sub-folders.

    Raises SourceError if a partition has other sub-folders, whose tables would be left out.
    """
    entries = [path for path in sorted(folder.iterdir()) if path.name[0] not in "._"]
    folders = [path for path in entries if path.is_dir()]
    if not all(map(_is_partition, folders)):
        return []
    tables = [path for path in entries if bare_suffix(path) in TABLE_SUFFIXES]
    for path in itertools.chain.from_iterable(part.iterdir() for part in folders):
        if path.is_dir() and path.name[0] not in "._" and not _is_partition(path):
            remedy = "move it, or name the tables"
            raise SourceError(f"{path}: is a folder within a partition of a table; {remedy}")
    return [path for part in folders for path in tables_in_folder(part)] + tables


def _is_partition(folder: Path) -> bool:
    """Return whether a folder has the rows with one value of a column other than the label."""
    column, sign, _ = folder.name.partition("=")
    is_label = columns.column_key(column) in columns.LABEL_NAMES
    return bool(sign) and not is_label and not folder.is_symlink()


def _read_folder(source: Input) -> Iterator[RawMessage]:
    """Yield the rows of a folder's tables; leaves out test tables if there are training tables."""
    found = tables_in_folder(source.path)
    names = {path: str(path.relative_to(source.path)) for path in found}  # `split=test/part-0…`
    parts = {path: part[1].lower() for path in found if (part := _PARTS.search(names[path]))}
    if {"train"} < {*parts.values()}:
        others = [names[path] for path in found if parts.get(path) != "train"]
        found = [path for path in found if parts.get(path) == "train"]
        problem = f"{source.title}: train is read, and not {', '.join(others[:_LABELS_SHOWN])}"
        source.note(f"{problem}{', …' * (len(others) > _LABELS_SHOWN)}")
    for path in found:
        yield from read_in_folder(source.entry(path))


def read_in_folder(table: Input) -> Iterator[RawMessage]:
    """Yield the rows of a table in a folder; a table that cannot be read is skipped."""
    try:
        if problem := foreign_format(table.sample, table.suffix):
            raise SourceError(f"{table.path}: {problem}")
        yield from _read_as(None, table)
    except (SourceError, OSError) as error:
        label = normal_label(table.path.name.partition(".")[0])
        is_named, lacks_label = label in (HAM, SPAM), Remedy.NAME_LABEL_COLUMN  # ham.csv
        if is_named and isinstance(error, TableError) and error.remedy is lacks_label:
            quoted = shlex.quote(table.name)
            error = TableError(error.problem, Remedy.GIVE_ITS_LABEL, label=label, path=quoted)
        table.skips(table.name, str(error).removeprefix(f"{table.name}: "))


TABLE = SourceKind(partial(_read_as, None))
TABLE_FOLDER = SourceKind(_read_folder)
TSV = SourceKind(partial(_read_as, "tsv"))
# Format that the user names -> kind.
FORMS = {form: TABLE._replace(read=partial(_read_as, form)) for form in TABLE_FORMATS}
EACH_LINE = SourceKind(_read_each_line, "lines of text have no labels")
