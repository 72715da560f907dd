"""Tables that are no lines of text: data frames, and the files that other packages read.

It reads JSON documents in each form in which it writes a data frame, and Parquet; openpyxl reads
Excel.  A file that is called .json and has an object on each line is JSON lines (`rows.py`).

    records  [{"label": "ham", "text": "…"}, …]
    columns  {"label": {"0": "ham", …}, "text": {"0": "…", …}}, and with a list for each column
    index    {"0": {"label": "ham", "text": "…"}, …}
    split    {"columns": ["label", "text"], "index": [0, …], "data": [["ham", "…"], …]}
    table    {"schema": …, "data": [{"index": 0, "label": "ham", "text": "…"}, …]}
    values   [["ham", "…"], …]

Whoever has a data frame has loaded pandas; for that, nothing here imports it.
"""

import io
import json
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeGuard

from nbspam.errors import OptionError, SourceError, TableError, install_command
from nbspam.labels import normal_label
from nbspam.reading.columns import LABEL_NAMES, SAMPLE_ROWS, TEXT_NAMES, cell_text, find_columns
from nbspam.reading.message import RawMessage
from nbspam.reading.rows import Content, TableRow
from nbspam.reading.source import Skips, TableOptions

if TYPE_CHECKING:
    import pandas as pd

# Bytes, unpacked: a megabyte of gzip can hold a gigabyte of zeros.  The file is read whole, and
# JSON takes a few times as much memory.
LIMITS = {"json": 256 << 20, "parquet": 512 << 20, "xlsx": 256 << 20}
# What a file is then, and what reads it.
_FILES = {
    "json": ("JSON", "pandas"),
    "parquet": ("a Parquet file", "pandas and pyarrow"),
    "xlsx": ("an Excel workbook", "openpyxl"),
}
_SHEET_ROWS = 1 << 20  # as Excel has them
_NAME = "the data frame"


def table_rows(
    content: Content, options: TableOptions
) -> tuple[list[str] | None, Iterator[TableRow]]:
    """Return the names of the columns, if there are any, and the rows of a table in a file.

    Raises TableError, as reading the rows does.
    """
    with content.whole() as stream:
        data = stream.read(LIMITS[content.form] + 1)
    with _failing(content):
        _check_size(content, len(data))
        if content.form == "xlsx":
            return None, _sheet_rows(content, data)
        import pandas as pd

        if content.form == "parquet":
            frame = pd.read_parquet(io.BytesIO(data))
        else:
            frame = _document_frame(_document(data, options.encoding), content.name, options)
        names = None if frame.columns.dtype.kind == "i" else [str(name) for name in frame.columns]
        rows = frame_rows(frame)
    return names, enumerate(([cell_text(value) for value in row] for row in rows), 1)


@contextmanager
def _failing(content: Content) -> Iterator[None]:
    """Raise what fails while a table is read as a TableError."""
    kind, packages = _FILES[content.form]
    try:
        yield
    except TableError:
        raise
    except ImportError as error:
        raise TableError(
            f"{content.name}: reading {kind} needs {packages}; install them with:"
            f" {install_command(packages.replace(' and', ''))}"
        ) from error
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


def _sheet_rows(content: Content, data: bytes) -> Iterator[TableRow]:
    """Yield the rows of a workbook's first sheet that have a cell.

    Without pandas, which makes all rows as wide as the widest: a cell far to the right and below
    would take all memory.
    """
    with _failing(content):
        from zipfile import ZipFile  # a workbook is one, of XML

        with ZipFile(io.BytesIO(data)) as archive:
            _check_size(content, sum(entry.file_size for entry in archive.infolist()))
        from openpyxl import load_workbook  # type: ignore[import-untyped]

        with warnings.catch_warnings(action="ignore"):  # of styles that are not known
            sheet = load_workbook(io.BytesIO(data), read_only=True, data_only=True).worksheets[0]
        sheet.reset_dimensions()  # what the file says of them may be wrong
        rows = sheet.iter_rows(max_row=_SHEET_ROWS, values_only=True)
        for number, row in enumerate(rows, 1):
            if any(cells := [cell_text(value) for value in row]):
                yield number, cells


def _document(data: bytes, encoding: str | None) -> Any:
    try:
        text = data.decode(encoding or "utf-8")
    except UnicodeDecodeError:
        text = data.decode(encoding or "cp1252", "replace")
    return json.loads(text.removeprefix("\ufeff")) if text.strip() else []


def _document_frame(document: Any, name: str, options: TableOptions) -> "pd.DataFrame":
    """Return the table that a JSON document is, in the file called `name`."""
    import pandas as pd

    columns = None
    if isinstance(document, dict):
        data, names = document.get("data"), document.get("columns")
        kinds = {type(value) for value in document.values()}
        if isinstance(data, list) and isinstance(names, list):
            columns, document = names, data
        elif isinstance(data, list) and all(isinstance(row, dict) for row in data):
            document = data
        elif not kinds & {dict, list}:  # one line of JSON lines
            document = [document] if document else []
        elif kinds == {dict} and _is_by_index(document, options):
            document = list(document.values())
        is_table = len(kinds) == 1 or isinstance(document, list)
    else:
        is_table = isinstance(document, list) and {*map(type, document)} in (set(), {dict}, {list})
    try:
        if is_table:
            return pd.DataFrame(document, columns=columns, dtype=object)
    except (ValueError, TypeError):  # such as columns of different lengths
        pass
    raise TableError(
        f"{name}: the JSON is not a table; give an array of objects, such as"
        ' [{"label": "ham", "text": "…"}], or what pandas writes with DataFrame.to_json'
    )


def _is_by_index(document: dict[str, dict[str, object]], options: TableOptions) -> bool:
    """Return whether an object of objects has one for each row, and not one for each column."""
    named = [name.lower() for name in (options.label_column, options.text_column) if name]
    usual = {*LABEL_NAMES, *TEXT_NAMES, *named}
    outer, inner = list(document), list(next(iter(document.values())))
    for names, is_index in ((outer, False), (inner, True)):
        if any(name.strip().lower() in usual for name in names):
            return is_index
    return outer == [str(number) for number in range(len(outer))] and inner != outer


def frame_rows(frame: "pd.DataFrame") -> Iterator[tuple[object, ...]]:
    """Return the rows of a data frame as Python's own objects, None for what is missing."""
    objects = frame.astype(object)
    return iter(objects.where(frame.notna(), None).itertuples(index=False, name=None))


# What users of the library have in memory


def is_data_frame(source: object) -> "TypeGuard[pd.DataFrame]":
    """Return whether a source is a data frame."""
    return hasattr(source, "columns") and hasattr(source, "itertuples")


def frame_messages(
    frame: "pd.DataFrame", options: TableOptions, skips: Skips, needs_labels: bool
) -> Iterator[RawMessage]:
    """Yield the rows of a data frame as messages; the source of the first is `row:0`.

    Columns are found as a table's are.  Text is plain text, and bytes are a mail.
    needs_labels: a row without a label or a text is skipped; else labels are read where there are
    any.
    Raises TableError when the columns cannot be found.
    """
    header = [str(name) for name in frame.columns]
    if not header:
        raise TableError(f"{_NAME}: it has no columns; give one with labels and texts")
    sample = [
        [cell.decode("latin-1") if isinstance(cell, bytes) else cell_text(cell) for cell in row]
        for row in frame_rows(frame.head(SAMPLE_ROWS))
    ]
    columns = find_columns(_NAME, header, sample, options, needs_labels)
    used = [columns.text] if columns.label is None else [columns.text, columns.label]
    for number, row in enumerate(frame_rows(frame.iloc[:, used])):
        label = columns.label_named(cell_text(row[1])) if len(used) > 1 else None
        text = row[0] if isinstance(row[0], bytes) else cell_text(row[0])
        if needs_labels and not label:
            skips(f"row:{number}", "the row has no label")
        elif needs_labels and not text.strip():
            skips(f"row:{number}", "the row has no text")
        else:
            yield RawMessage(f"row:{number}", label, text)


def given_messages(messages: object, options: TableOptions) -> Iterator[RawMessage]:
    """Yield every one of texts and mails, or of the rows of a data frame; the first is `message:0`.

    Raises SourceError for what is neither, and OptionError where there are not several.
    """
    if is_data_frame(messages):
        yield from frame_messages(messages, options, Skips(strict=True), needs_labels=False)
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


def pair_messages(pairs: Iterable[tuple[str, str | bytes]], skips: Skips) -> Iterator[RawMessage]:
    """Yield the messages of (label, text or bytes) pairs; the source of the first is `pair:0`.

    Text is plain text, and bytes are a mail.  A pair without a printable label is skipped.
    Raises SourceError for what is not such a pair.
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
        if not isinstance(label, str) or not isinstance(content, str | bytes):
            raise SourceError(
                f"{source}: is a pair of {type(label).__name__} and {type(content).__name__};"
                " give a label, and the message as text or bytes"
            )
        if label := normal_label(label):
            yield RawMessage(source, label, content)
        else:
            skips(source, "the label has no printable character")
