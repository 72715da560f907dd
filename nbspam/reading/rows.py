"""The rows of a table, whatever its format."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

TableRow = tuple[int, Sequence[str]]  # the line on which a row begins, and its cells


class Rows(NamedTuple):
    """A table's rows."""

    header: list[str] | None  # the names of the columns, if the format has them
    sample: Sequence[TableRow]  # the first rows, in which the columns are searched
    rows: Iterator[TableRow]  # all rows, with those of the sample
