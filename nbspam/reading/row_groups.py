"""Row groups of a Parquet file: the parts that it is written in, each read without the others."""

import io
from collections.abc import Iterator
from typing import Any, NamedTuple

from nbspam.errors import TableError
from nbspam.reading.columns import cell_text, first_rows
from nbspam.reading.content import Content
from nbspam.reading.data_frame import frame_rows
from nbspam.reading.piece import Collected, check_same, readable
from nbspam.reading.raw_message import RawMessage
from nbspam.reading.rows import Rows, TableRow
from nbspam.reading.skips import Skipped
from nbspam.reading.source_kind import ReadingRequest, Source
from nbspam.reading.tables import TablePlan, row_messages, table_plan


class RowGroups(NamedTuple):
    """Some row groups of a file, one after the other."""

    source: str
    whole: int  # bytes of the file
    size: int
    groups: tuple[int, ...]
    first: int  # the number of the first row
    plan: TablePlan
    needs_labels: bool

    @property
    def files(self) -> tuple[str, ...]:
        """The file, alone."""
        return (self.source,)

    def read(self) -> Iterator[RawMessage | Skipped]:
        """Yield their rows as messages."""
        source, skips = check_same(self.source, self.whole), Collected()
        name = str(source.path)
        with source.path.open("rb") as stream:
            rows = enumerate(_cells(_parquet(stream), self.groups), self.first)
            raws = row_messages(name, rows, self.plan, self.needs_labels, skips)
            yield from readable(source, skips.among(raws))


def row_groups(
    source: Source, content: Content, request: ReadingRequest, size: int
) -> list[RowGroups] | None:
    """Return a Parquet file's row groups, joined to about so many bytes; None if it has but one.

    None, too, where a column's values would not be the same text in each group as in the whole:
    pandas reads integers with gaps between them as 1.0.
    Raises TableError.
    """
    try:
        import pyarrow  # type: ignore[import-untyped]  # noqa: F401
    except ImportError:
        return None  # who reads it whole says what is missing
    with source.path.open("rb") as stream:
        try:
            file = _parquet(stream)
        except Exception as error:
            reason = " ".join(str(error).split())[:200]
            raise TableError(f"{content.name}: not a Parquet file ({reason}); check it") from error
        n = file.metadata.num_row_groups
        if n < 2 or not all(map(_is_same_apart, _columns(file))):
            return None
        rows: Iterator[TableRow] = enumerate(_cells(file, range(n)), 1)
        sample = list(first_rows(rows, lambda row: sum(map(len, row[1]))))
        found = Rows(list(map(str, file.schema_arrow.names)), sample, iter(()))
        plan = table_plan(content, found, request)
        groups = [file.metadata.row_group(i) for i in range(n)]
    sizes = [(group.total_byte_size, group.num_rows) for group in groups]
    part = RowGroups(source.name, source.path.stat().st_size, 0, (), 1, plan, request.needs_labels)
    return list(_joined(part, sizes, size))


def _joined(part: RowGroups, groups: list[tuple[int, int]], size: int) -> Iterator[RowGroups]:
    """Yield row groups joined to about so many bytes; groups: the bytes and rows of each."""
    own: list[int] = []
    read, first, after = 0, 1, 1
    for i, (n_bytes, n_rows) in enumerate(groups):
        own.append(i)
        read, after = read + n_bytes, after + n_rows
        if read >= size or i == len(groups) - 1:
            yield part._replace(size=read, groups=tuple(own), first=first)
            own, read, first = [], 0, after


def _parquet(stream: io.BufferedReader) -> Any:
    from pyarrow.parquet import ParquetFile  # type: ignore[import-untyped]

    return ParquetFile(stream)


def _cells(file: Any, groups: Any) -> Iterator[list[str]]:
    for i in groups:
        for row in frame_rows(file.read_row_group(i).to_pandas()):
            yield [cell_text(value) for value in row]


def _columns(file: Any) -> Iterator[tuple[Any, list[Any]]]:
    """Yield the type of each column, and what is known of it in each group."""
    schema, metadata = file.schema_arrow, file.metadata
    if metadata.num_columns != len(schema.names):  # a column of columns
        yield None, []
        return
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    for j, field in enumerate(schema):
        yield field.type, [group.column(j).statistics for group in groups]


def _is_same_apart(column: tuple[Any, list[Any]]) -> bool:
    """Return whether a column's values are the same text in each group as in the whole."""
    from pyarrow import types

    kind, statistics = column
    if kind is None:
        return False
    if types.is_string(kind) or types.is_large_string(kind) or types.is_floating(kind):
        return True
    return (types.is_integer(kind) or types.is_boolean(kind)) and all(
        known is not None and known.has_null_count and known.null_count == 0 for known in statistics
    )
