"""Tables as one JSON document, in each form in which pandas writes a data frame.

    records  [{"label": "ham", "text": "…"}, …]
    columns  {"label": {"0": "ham", …}, "text": {"0": "…", …}}, and with a list for each column
    index    {"0": {"label": "ham", "text": "…"}, …}
    split    {"columns": ["label", "text"], "index": [0, …], "data": [["ham", "…"], …]}
    table    {"schema": …, "data": [{"index": 0, "label": "ham", "text": "…"}, …]}
    values   [["ham", "…"], …]

A file that is called .json and has an object on each line is read as JSON lines.
"""

import itertools
import json
from collections.abc import Iterable, Iterator
from typing import Any

from nbspam.errors import TableError
from nbspam.reading.columns import LABEL_NAMES, TEXT_NAMES, cell_text, first_rows
from nbspam.reading.content import Content
from nbspam.reading.json_lines import are_json_lines, json_rows
from nbspam.reading.lines import read_lines
from nbspam.reading.rows import Rows
from nbspam.reading.skips import Skips
from nbspam.reading.source_kind import TableOptions

BYTES_LIMIT = 256 << 20  # unpacked; it is read whole, and takes a few times as much memory
_LINES_SEEN = 2  # lines that are objects each, and so no document together

_Table = tuple[list[str] | None, Iterable[list[object]]]  # names, and the values of each row


def document_rows(content: Content, options: TableOptions, skips: Skips) -> Rows:
    """Return the rows of a JSON document, numbered from 1, or of JSON lines.

    Raises TableError: it is too large, not JSON, or not a table.
    """
    encoding = options.encoding or _shown_encoding(content)
    lines = read_lines(content.name, content.beginning, encoding, Skips())
    first = [line for _, line in itertools.islice(lines, _LINES_SEEN)]
    if len(first) == _LINES_SEEN and are_json_lines(first):
        return json_rows(content, encoding, skips)
    document = _document(content, encoding)
    named = [name for name in (options.label_column, options.text_column) if name]
    table = _table(document, {name.lower() for name in (*LABEL_NAMES, *TEXT_NAMES, *named)})
    if table is None:
        raise TableError(
            f"{content.name}: the JSON is not a table; give an array of objects, such as"
            ' [{"label": "ham", "text": "…"}], or what pandas writes with DataFrame.to_json'
        )
    names, values = table
    rows = enumerate(([cell_text(value) for value in row] for row in values), 1)
    sample = list(first_rows(rows, lambda row: sum(map(len, row[1]))))
    return Rows(names, sample, itertools.chain(sample, rows))


def _shown_encoding(content: Content) -> str | None:
    """Return the wide encoding that JSON's first characters show, which are ASCII; else None."""
    with content.beginning() as stream:
        encoding = json.detect_encoding(stream.read(4))
    return encoding if encoding.endswith(("-le", "-be")) else None


def _document(content: Content, encoding: str | None) -> Any:
    with content.whole() as stream:
        data = stream.read(BYTES_LIMIT + 1)
    if len(data) > BYTES_LIMIT:
        raise TableError(
            f"{content.name}: is larger than {BYTES_LIMIT >> 20} MiB, unpacked; convert it to JSON"
            " lines, which are read one by one"
        )
    try:
        text = data.decode(encoding or json.detect_encoding(data))
    except UnicodeDecodeError:
        text = data.decode(encoding or "cp1252", "replace")
    try:
        return json.loads(text.removeprefix("\ufeff")) if text.strip() else []
    except (ValueError, RecursionError) as error:
        raise TableError(f"{content.name}: is not JSON ({error}); check it") from error


def _table(document: Any, usual: set[str]) -> _Table | None:
    """Return the names of the columns and the rows of a document; None if it is not a table.

    usual: names of columns, in lower case.
    """
    if isinstance(document, list):
        return _records(document)
    if not isinstance(document, dict):
        return None
    if not document:
        return None, []
    data, columns = document.get("data"), document.get("columns")
    if isinstance(data, list) and isinstance(columns, list):
        return [str(name) for name in columns], _lists(data)
    if isinstance(data, list) and all(isinstance(row, dict) for row in data):
        return _records(data)
    values = list(document.values())
    if not any(isinstance(value, dict | list) for value in values):
        return _records([document])  # one line of JSON lines
    if not all(isinstance(value, dict) for value in values):
        return _columns(document)
    if _is_by_index(document, usual):
        return _records(values)
    return _columns({name: cells.values() for name, cells in document.items()})


def _is_by_index(document: dict[str, dict[str, object]], usual: set[str]) -> bool:
    """Return whether an object of objects has one for each row, and not one for each column."""
    outer, inner = list(document), list(next(iter(document.values())))
    for names, is_index in ((outer, False), (inner, True)):
        if any(name.strip().lower() in usual for name in names):
            return is_index
    return outer == [str(number) for number in range(len(outer))] and inner != outer


def _records(records: list[Any]) -> _Table | None:
    """Return the rows of a list of objects, or of a list of lists, which has no names."""
    if records and not isinstance(records[0], dict):
        return (None, _lists(records)) if isinstance(records[0], list) else None
    if not records or not all(isinstance(record, dict) for record in records):
        return None if records else (None, [])
    names = list(records[0])
    return names, ([record.get(name) for name in names] for record in records)


def _lists(rows: list[Any]) -> Iterator[list[object]]:
    return (row for row in rows if isinstance(row, list))


def _columns(columns: dict[str, Any]) -> _Table | None:
    """Return the rows of columns, each a list or the like."""
    if any(isinstance(column, str | dict) for column in columns.values()):
        return None
    try:
        return list(columns), map(list, itertools.zip_longest(*columns.values()))
    except TypeError:  # a number among them
        return None
