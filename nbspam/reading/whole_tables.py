"""Tables that other packages read: JSON documents, Excel sheets, Parquet files, data frames.

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
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from nbspam.errors import Remedy, TableError, needs_extra
from nbspam.reading import header_rows, lines, rows
from nbspam.reading.columns import is_label_name
from nbspam.reading.rows import Content, TableRow
from nbspam.reading.source import Input, TableOptions

if TYPE_CHECKING:  # importing pandas takes half a second
    import pandas as pd

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
_SHEET_ROWS = 1 << 20  # the most rows of a sheet in Excel
_SHEETS_SHOWN = 3
# names of the text's field in Telegram, in Discord and other programs, and in QKSMS
_CHAT_TEXT_FIELDS = ("text", "content", "body")
Row = Sequence[Any]  # values that were not converted to cells yet
MemoryTable = tuple[list[Any], Iterator[Row]]  # names of the columns, or numbers
# Rates rows of a sheet; the last number is above 0 if there are any.
Rank = Callable[[Input, Iterator[TableRow]], tuple[int, ...]]


def read_whole_table(content: Content, rank: Rank) -> tuple[list[str] | None, Iterator[TableRow]]:
    """Read a table into memory: its column names, or None, and its rows.

    rank: rates how much the rows of a sheet read like messages.

    Raises TableError, also while the rows are iterated.
    """
    with _table_errors(content):
        if content.form == "xlsx":
            return None, _sheet_rows(content, _whole(content), rank)
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


def _sheet_rows(content: Content, data: bytes, rank: Rank) -> Iterator[TableRow]:
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
            ranks = {sheet: rank(content.source, _iter_sheet_rows(sheet)) for sheet in sheets}
            best = max(sheets, key=lambda sheet: ranks[sheet])
            others = [sheet.title for sheet in sheets if sheet is not best and ranks[sheet][-1]]
            if others:
                more = ", …" * (len(others) > _SHEETS_SHOWN)
                unread = ", ".join(map(repr, others[:_SHEETS_SHOWN])) + more
                problem = f"sheet {best.title!r} is read, and not {unread}"
                content.source.note(f"{content.source.title}: {problem}", Remedy.SAVE_SHEET)
        yield from _iter_sheet_rows(best)


def _iter_sheet_rows(sheet: Any) -> Iterator[TableRow]:
    sheet.reset_dimensions()  # the dimensions in the file may be wrong
    for number, row in enumerate(sheet.iter_rows(max_row=_SHEET_ROWS, values_only=True), 1):
        if any(cells := rows.Cells.of(row)):
            yield number, cells


def _document(data: bytes, decoding: lines.Decoding) -> Any:
    try:
        text = data.decode(decoding.codec)
    except UnicodeDecodeError:
        text = data.decode(decoding.fallback or decoding.codec, "replace")
    return json.loads(text.removeprefix("\ufeff")) if text.strip() else []


def _document_table(document: Any, source: Input) -> MemoryTable:
    """Convert a JSON document to a table; raises TableError."""
    name, options, names = source.title, source.options.table, None
    if messages := _chat_messages(document):
        known = [row for row in messages if any(map(row.get, _CHAT_TEXT_FIELDS))]
        fields = {key for row in messages for key in row}
        if source.require_labels and not (options.label_column or any(map(is_label_name, fields))):
            raise TableError(f"{name}: is an exported chat, without labels", Remedy.GIVE_LABEL)
        document = known or messages  # the program's own entries have no text
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
        elif kinds == {dict} and not _has_object_per_row(document, options):
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


def _chat_messages(document: Any) -> list[dict[str, Any]]:
    """Return the entries of an exported chat, or of Telegram's export of all chats; else [].

    Facebook writes each byte of a text's UTF-8 as a character.
    """
    if not isinstance(document, dict):
        return []
    lists = (rows.field(document, f"{name}.list") for name in ("chats", "left_chats"))
    chats = [chat for chats in lists if rows.are_objects(chats) for chat in chats] or [document]
    parts = (chat.get("messages") for chat in chats)
    messages = [row for part in parts if rows.are_objects(part) for row in part]
    for row in messages:
        if "sender_name" in row and isinstance(row.get("content"), str):
            with suppress(UnicodeError):
                row["content"] = row["content"].encode("latin-1").decode()
    return messages


def _has_object_per_row(document: dict[str, dict[str, object]], options: TableOptions) -> bool:
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
        yield from map(parquet_frame, itertools.chain(parts, [file.schema_arrow.empty_table()]))


def parquet_frame(part: Any) -> "pd.DataFrame":
    """Convert some rows of a Parquet file to a data frame."""
    info = json.loads((part.schema.metadata or {}).get(b"huggingface", b"{}"))
    features = rows.field(info, "info.features") or {}
    # Otherwise numbers would be floats in a part with a missing number, and integers in other
    # parts.
    frame: pd.DataFrame = part.to_pandas(integer_object_nulls=True)
    for column in features.keys() & {*frame.columns}:
        frame[column] = [_with_names(value, features[column]) for value in frame[column]]
    return frame


def _with_names(value: Any, feature: Any) -> Any:
    """Replace class numbers in a value by the classes' names.

    feature: the value's metadata.  If the value is a list, the metadata of its items is the first
    item of `feature`, or is under the key `feature`.
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
    """Return whether a data frame has partitions, like Dask's; a column `partitions` is ignored."""
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
