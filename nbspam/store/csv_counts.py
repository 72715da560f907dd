"""A model's counts as CSV, quoted as RFC 4180 says: for spreadsheets and other programs.

    token,ham,spam
    (messages),2075,948
    free,12,340

Tokens stand as they are in the model, so what is exported and imported again is the same.
"""

import csv
import itertools
import re
from collections.abc import Iterable
from typing import NamedTuple, Protocol

from nbspam.bayes.token_weight import Row
from nbspam.errors import Remedy, SourceError
from nbspam.labels import normal_label
from nbspam.reading.source import Skips
from nbspam.store.metadata import MESSAGES_LIMIT
from nbspam.store.model_file import TOKEN_LIMIT, Model

FIRST = "token"  # cell of the first line, before the classes
MESSAGES = "(messages)"  # cell of the second line, before their messages
_SPECIAL = re.compile('[,"\r\n]')


class _Reader(Protocol):
    """What csv.reader returns."""

    line_num: int

    def __next__(self) -> list[str]: ...


def dump_counts_table(model: Model) -> tuple[str, int]:
    """Return the text of a model's counts, and how many tokens are left out: none."""
    rows = itertools.chain(
        ((FIRST, *model.metadata.settings.classes), (MESSAGES, *model.metadata.learned.messages)),
        ((token, *counts) for token, counts in model.counts.items()),
    )
    return "".join(f"{','.join(map(_quoted, row))}\n" for row in rows), 0


def _quoted(cell: object) -> str:
    """Return a cell as RFC 4180 has it; csv.writer quotes no \\r where lines end with \\n alone."""
    text = str(cell)
    if not _SPECIAL.search(text):
        return text
    return f'"{text.replace(chr(34), 2 * chr(34))}"'


class CountsTable(NamedTuple):
    """A table of counts."""

    classes: tuple[str, ...]
    messages: Row
    counts: dict[str, Row]


def read_counts_table(name: str, lines: Iterable[str], skips: Skips) -> CountsTable:
    """Return the table in the lines of a CSV file; invalid rows are skipped and named.

    Raises SourceError when the line of the classes or of their messages is invalid.
    """
    reader = csv.reader(lines, strict=True)
    header = _row(reader) or []
    classes = tuple(map(normal_label, header[1:]))
    if header[:1] != [FIRST] or len(set(classes)) < max(2, len(classes)) or not all(classes):
        raise SourceError(
            f"{name}:1: expected {FIRST!r} and the names of two or more classes", Remedy.SEE_CSV
        )
    second = _row(reader) or []
    messages = _counts(second, len(classes))
    if second[:1] != [MESSAGES] or messages is None:
        raise SourceError(
            f"{name}:2: expected {MESSAGES!r} and the number of messages of each class",
            Remedy.SEE_CSV,
        )
    counts: dict[str, Row] = {}
    while (row := _row(reader)) is not None:
        found = _counts(row, len(classes))
        if not row:
            continue  # an empty line
        if found is None:
            skips(f"{name}:{reader.line_num}", f"expected a token and {len(classes)} counts")
        elif row[0] in counts:
            skips(f"{name}:{reader.line_num}", f"duplicate token {row[0][:80]!r}")
        else:
            counts[row[0]] = found
    return CountsTable(classes, messages, counts)


def _row(reader: _Reader) -> list[str] | None:
    """Return the next row, None after the last; what cannot be read is a row of one odd cell."""
    try:
        return next(reader)
    except StopIteration:
        return None
    except csv.Error as error:
        return [str(error)]


def _counts(row: list[str], classes: int) -> Row | None:
    """Return the counts that follow a row's first cell, None if they are invalid."""
    cells = row[1:]
    if len(cells) != classes or len(row[0]) > TOKEN_LIMIT:
        return None
    if not all(cell.isascii() and cell.isdigit() and len(cell) <= 16 for cell in cells):
        return None
    counts = tuple(map(int, cells))
    return counts if max(counts) <= MESSAGES_LIMIT else None
