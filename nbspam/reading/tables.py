"""Tables of labelled text: TSV, CSV, JSON lines and Parquet, one message per row.

A table is streamed, except Parquet.  Text is UTF-8, line by line, and a line that is not UTF-8 is
Windows-1252 (as files from Excel and Kaggle often are).
"""

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

from nbspam.errors import Remedy, TableError
from nbspam.labels import HAM, SPAM
from nbspam.reading.columns import LABEL_LENGTH, find_columns, first_rows, names_columns
from nbspam.reading.compression import bare_suffix, open_bytes
from nbspam.reading.raw_message import RawMessage
from nbspam.reading.skips import Skips
from nbspam.reading.source_kind import (
    Labels,
    ReadingOptions,
    ReadingRequest,
    Source,
    SourceKind,
    TableOptions,
)

__all__ = ["NAMED_TABLE", "NAMELESS_PARQUET", "NAMELESS_TSV", "TableOptions", "read_table"]

TABLE_SUFFIXES = frozenset({".tsv", ".tab", ".csv", ".jsonl", ".ndjson", ".parquet"})
_PARQUET = b"PAR1"  # the first bytes of every Parquet file

TableRow = tuple[int, Sequence[str]]  # the line on which a row begins, and its cells


def read_table(
    path: Path, options: TableOptions, skips: Skips, needs_labels: bool
) -> Iterator[RawMessage]:
    """Yield the rows of a table as messages.

    needs_labels: a row without a label is skipped; else labels are read where there are any.
    Raises TableError when the columns cannot be found, OSError when the file cannot be read.
    """
    header, rows = _rows(path, options, skips)
    sample = list(first_rows(rows, lambda row: sum(map(len, row[1]))))
    if not sample:
        raise TableError(
            f"{path}: the table is empty; give one with a label and a text in each row"
        )
    if header is None and names_columns(sample[0][1], options):
        header = [name.strip() for name in sample.pop(0)[1]]
        while header and not header[-1]:  # Kaggle's `v1,v2,,,`: the text continues there
            header.pop()
    columns = find_columns(str(path), header, [cells for _, cells in sample], options, needs_labels)
    text, width = columns.text, columns.width
    for line, cells in itertools.chain(sample, rows):
        source = f"{path}:{line}"
        if len(cells) <= text:
            skips(source, "the row has no text")
            continue
        if len(cells) > width and text == width - 1:
            # An unquoted delimiter in the text.
            cells = [*cells[:text], " ".join(filter(None, cells[text:]))]
        label = columns.label_of(cells)
        if needs_labels and not label:
            skips(source, "the row has no label")
            continue
        yield RawMessage(source, label, cells[text])


def _rows(
    path: Path, options: TableOptions, skips: Skips
) -> tuple[list[str] | None, Iterator[TableRow]]:
    """Return the names of the columns, if the format has them, and the rows."""
    # Deferred: each format needs a parser of its own, and Parquet pandas.
    suffix = bare_suffix(path)
    with open_bytes(path) as stream:
        is_parquet = suffix == ".parquet" or stream.read(4) == _PARQUET
    if is_parquet:
        from nbspam.reading.parquet import parquet_rows

        return parquet_rows(path)
    if suffix in (".jsonl", ".ndjson"):
        from nbspam.reading.json_lines import json_rows

        return json_rows(path, options.encoding, skips)
    from nbspam.reading.delimited import delimited_rows

    return None, delimited_rows(path, options.encoding, skips)


def _has_table_suffix(source: Source, _: ReadingOptions) -> bool:
    return source.suffix in TABLE_SUFFIXES


def _is_parquet(source: Source, _: ReadingOptions) -> bool:
    return source.sample.startswith(_PARQUET)


def _is_tsv(source: Source, _: ReadingOptions) -> bool:
    """Return whether every line is a short label, a tab and more; a guess."""
    pairs = [line.partition("\t") for line in source.lines]
    labels = {label for label, _, _ in pairs}
    return (
        all(label and tab for label, tab, _ in pairs)
        and max(map(len, labels), default=LABEL_LENGTH + 1) <= LABEL_LENGTH
        and (len(labels) <= max(2, len(pairs) // 4) or {HAM, SPAM} >= labels)
    )


def _read_any_table(source: Source, request: ReadingRequest) -> Iterator[RawMessage]:
    return read_table(source.path, request.options.table, request.skips, request.needs_labels)


NAMED_TABLE = SourceKind(
    Labels.ALWAYS,
    _has_table_suffix,
    _read_any_table,
    "a table has labels of its own",
    Remedy.LEAVE_OUT_LABEL,
)
# Only where labels are needed: a message that begins as Parquet does is a message.
NAMELESS_PARQUET = SourceKind(Labels.ON_REQUEST, _is_parquet, _read_any_table)
NAMELESS_TSV = SourceKind(Labels.ALLOWED, _is_tsv, _read_any_table)
