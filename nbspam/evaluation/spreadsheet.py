"""Tables for spreadsheets, as CSV or TSV.

A spreadsheet takes a cell that begins with one of `=+-@` for a formula, which may run a program,
and whoever sends a mail chooses its Subject.  An apostrophe before it makes it text.
"""

import csv
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO

_FORMULA = tuple("=+-@\t\r")


class _Lines:
    """Ends lines with LF; csv.writer quotes a CR in a cell only if lines end with CR, too."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, line: str) -> None:
        self._file.write(line.removesuffix("\r\n") + "\n")


def write_table(rows: Sequence[Mapping[str, object]], file: IO[str], delimiter: str = ",") -> None:
    """Write a line for each row, below one with the names of the first row's columns."""
    writer = csv.DictWriter(_Lines(file), list(rows[0]), delimiter=delimiter)
    writer.writeheader()
    writer.writerows({name: _as_text(value) for name, value in row.items()} for row in rows)


def _as_text(value: object) -> object:
    """Return what a spreadsheet shows as the value: no formula.  A label may be a number: -1."""
    if not (isinstance(value, str) and value.startswith(_FORMULA)):
        return value
    with suppress(ValueError):
        float(value)
        return value
    return f"'{value}"
