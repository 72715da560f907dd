"""Streams that look like many messages: split if labels are needed, otherwise only noted."""

import csv
import json
from collections.abc import Iterator

from nbspam.errors import Remedy, SourceError, format_count
from nbspam.names import HAM, SPAM
from nbspam.reading import columns, header_rows, mail, rows, tables
from nbspam.reading.message import RawMessage
from nbspam.reading.source import (
    PARQUET,
    SAMPLE_BYTES,
    TABLE_FORMATS,
    Input,
    SourceKind,
    TableOptions,
)


def looks_like(first: bytes) -> tuple[str, str] | None:
    """Guess from its first bytes whether a stream has many messages; None for one message.

    Returns the name for a sentence, and the format, one of `INPUT_FORMATS`.
    """
    if mail.is_mbox(first):
        return ("an mbox of several messages", "mbox") if mail.count_separators(first) else None
    if first.startswith(PARQUET):
        return ("a Parquet table", "parquet")
    text = first.decode("utf-8", "replace").removeprefix("\ufeff")
    if len(first) >= SAMPLE_BYTES and "\n" in text:
        text = text.rpartition("\n")[0]  # without the last line, which is cut
    texts = [line for line in text.split("\n")[: rows.SAMPLE_ROWS] if line.strip()]
    if not texts:
        return None
    # A single object could be a row; a whole table has objects or lists in it.
    if rows.are_json_lines(texts) and (
        len(texts) > 1
        or not any(isinstance(value, dict | list) for value in json.loads(texts[0]).values())
    ):
        return ("JSON lines", "jsonl")
    if texts[0].lstrip().startswith(("[{", "[[", '{"')) or texts[0].strip() in ("[", "{"):
        return ("JSON", "json")
    return _looks_like_table(texts) if len(texts) > 1 else None


def _looks_like_table(texts: list[str]) -> tuple[str, str] | None:
    """Guess the kind of table by a delimiter that splits all lines into equally many cells."""
    if tables.are_labelled_lines(texts):
        return ("a table of 2 columns", "tsv")
    for delimiter, form in (("\t", "tsv"), (",", "csv"), (";", "csv"), ("|", "csv")):
        try:
            table = [row for row in csv.reader(texts, delimiter=delimiter) if row]
        except csv.Error:  # csv.Error, for instance for a bare CR
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
        has_header = header_rows.names_columns(table[0], TableOptions())
        if has_labels or has_header or header_rows.is_header_row(regular[0], regular[1:]):
            return (f"a table of {format_count(width, 'column')}", form)
    return None


def _read_labelled(source: Input) -> Iterator[RawMessage]:
    """Yield the rows of a stream's table; a stream with labels cannot be a single message."""
    content = rows.stream_content(source, "", patience=None)
    with content.beginning() as beginning:
        look = looks_like(beginning.read(SAMPLE_BYTES))
    if look is None or look[1] not in TABLE_FORMATS:
        content.whole().close()
        problem = f"{source.title}: {source.stream_name} has no labels that can be recognised"
        raise SourceError(problem, Remedy.GIVE_LABEL_OR_FORMAT)
    yield from tables.read_table(content._replace(form=look[1]))


# Standard input or a pipe where labels are needed and no format is given.
LABELLED_STREAM = SourceKind(_read_labelled)
