"""What a text looks like that was given as one message: a table, JSON, an mbox, a list of files."""

import csv
import json
import os
from typing import NamedTuple

from nbspam.errors import counted
from nbspam.labels import HAM, SPAM
from nbspam.reading.columns import SAMPLE_ROWS, label_by_content, names_columns
from nbspam.reading.json_lines import are_json_lines
from nbspam.reading.mbox import count_separators, is_mbox
from nbspam.reading.source_kind import SAMPLE_BYTES, TableOptions
from nbspam.reading.tables import are_labelled_lines

_PATHS_TRIED = 3


class Look(NamedTuple):
    """What a text looks like."""

    what: str  # in a sentence: `a table of 2 columns`
    form: str  # one of `INPUT_FORMATS`


def looks_like(first: bytes) -> Look | None:
    """Return what many messages a text looks like by its first bytes; None for one message."""
    if is_mbox(first):
        return Look("an mbox of several messages", "mbox") if count_separators(first) else None
    if first.startswith(b"PAR1"):
        return Look("a Parquet table", "parquet")
    text = first.decode("utf-8", "replace").removeprefix("\ufeff")
    if len(first) >= SAMPLE_BYTES and "\n" in text:
        text = text.rpartition("\n")[0]  # the last line is cut
    lines = [line for line in text.split("\n")[:SAMPLE_ROWS] if line.strip()]
    return _paths(text) or _json(lines) or _table(lines) if lines else None


def _paths(text: str) -> Look | None:
    """Return whether the first names, NUL or line end between them, are files."""
    separator = "\0" if "\0" in text else "\n"
    names = [name for name in text.split(separator)[:_PATHS_TRIED] if name.strip()]
    try:
        are_files = all("/" in name and os.path.exists(name) for name in names)  # noqa: PTH110
    except ValueError:
        return None
    if not (names and are_files):
        return None
    return Look("a list of files", "files0" if separator == "\0" else "files")


def _json(lines: list[str]) -> Look | None:
    if are_json_lines(lines) and (len(lines) > 1 or _is_flat(lines[0])):
        return Look("JSON lines", "jsonl")
    if lines[0].lstrip().startswith(("[{", "[[", '{"')) or lines[0].strip() in ("[", "{"):
        return Look("JSON", "json")
    return None


def _is_flat(line: str) -> bool:
    """Return whether a JSON object could be a row; a whole table has objects or lists in it."""
    return not any(isinstance(value, dict | list) for value in json.loads(line).values())


def _table(lines: list[str]) -> Look | None:
    """Return what delimiter cuts all lines into as many cells, if these are a table's."""
    if len(lines) < 2:
        return None
    if are_labelled_lines(lines):
        return Look("a table of 2 columns", "tsv")
    for delimiter, form in (("\t", "tsv"), (",", "csv"), (";", "csv"), ("|", "csv")):
        rows = _rows(lines, delimiter)
        widths = [len(row) for row in rows]
        width = max(set(widths), key=widths.count, default=0)
        regular = [row for row in rows if len(row) == width]
        if width < 2 or 10 * len(regular) < 9 * len(rows) or len(regular) < 2:
            continue
        if names_columns(rows[0], TableOptions()) or _has_labels(regular, width):
            return Look(f"a table of {counted(width, 'column')}", form)
    return None


def _rows(lines: list[str], delimiter: str) -> list[list[str]]:
    """Return the cells of each line that has some; none of what is not CSV, as with a bare CR."""
    try:
        return [row for row in csv.reader(lines, delimiter=delimiter) if row]
    except csv.Error:
        return []


def _has_labels(rows: list[list[str]], width: int) -> bool:
    """Return whether a column has few values, or ham and spam: between a text's commas are many."""
    columns = [[row[i] for row in rows] for i in range(width)]
    label = label_by_content(columns)
    if label is None:
        return False
    values = {value.strip().lower() for value in columns[label]}
    return len(values) > 1 and (4 * len(values) <= len(rows) or bool(values & {HAM, SPAM}))
