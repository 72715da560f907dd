"""The columns of a table: which holds the text, and which the label; whether a row names them.

A column is found by the name that the user gives, else by a usual name, else by its content.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from nbspam.errors import Remedy, TableError
from nbspam.names import HAM, SPAM, answer_label, normal_label
from nbspam.reading.source import TableOptions

LABEL_NAMES = ("label", "class", "category", "v1", "spam", "is_spam", "type", "target", "verdict")
TEXT_NAMES = (
    *("text", "message", "sms", "body", "content", "v2", "email", "mail"),
    *("teks", "texto", "texte", "nachricht", "messages", "message_text", "sms_text"),
)
SAMPLE_ROWS = 200  # rows in which the columns are searched
SAMPLE_CHARACTERS = 1 << 20  # of those rows, so that huge cells are not all kept in memory
_CLASSES_LIMIT = 20  # a column with more distinct values than this is not a label
LABEL_LENGTH = 24  # characters; a column with a longer value is not a label
_NAMES_SHOWN, _NAME_SHOWN = 20, 40  # columns, and characters of each, in an error
_SURROGATES = re.compile("[\ud800-\udfff]")


class Columns(NamedTuple):
    """Where the cells of a message are in a row."""

    text: int
    label: int | None
    width: int  # cells in a usual row
    is_yes_no: bool  # the label column says whether a message is spam

    def text_of(self, cells: Sequence[str]) -> str | None:
        """Return the text of a row, or None if it has none."""
        text = self.text
        if len(cells) <= text:
            return None
        if len(cells) > self.width and text == self.width - 1:
            # An unquoted delimiter in the text.
            return " ".join(filter(None, cells[text:]))
        return cells[text]

    def label_of(self, cells: Sequence[str]) -> str | None:
        """Return the label of a row, or None if it has none."""
        if self.label is None or self.label >= len(cells):
            return None
        return self.label_named(cells[self.label])

    def label_named(self, cell: str) -> str | None:
        """Return the label in a cell, or None if there is none."""
        label = normal_label(cell)
        if self.is_yes_no:
            label = answer_label(label)
        return label or None


def cell_text(value: object) -> str:
    """Return a value of JSON, Parquet or a data frame as a CSV file would have it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "1" if value else "0"
    # JSON can contain an unpaired surrogate, which cannot be encoded.
    return _SURROGATES.sub("\ufffd", value if isinstance(value, str) else str(value))


def names_columns(cells: Sequence[str], options: TableOptions) -> bool:
    """Return whether the first row of a table names its columns."""
    names = [cell.strip().lower() for cell in cells]
    wanted = {name.lower() for name in (options.text_column, options.label_column) if name}
    if wanted & set(names):
        return True
    if SPAM in names and not any(name in TEXT_NAMES for name in names):
        return False  # a column may be called spam, but so may the class of the first row
    return any(name in LABEL_NAMES or name in TEXT_NAMES for name in names)


def find_columns(
    table: str,
    header: Sequence[str] | None,
    sample: Sequence[Sequence[str]],
    options: TableOptions,
    needs_labels: bool,
    first: Sequence[str] = (),
) -> Columns:
    """Return the columns of a table.

    table: its name in an error.  header: the names of the columns, if it has any.
    first: the first row where there is no header; perhaps it is one of which a name was mistyped.
    Raises TableError when there is no such column as the user names, or no label and one is needed.
    """
    widths = [len(row) for row in sample] or [0]
    width = len(header) if header else max(set(widths), key=widths.count)  # the usual one
    names = list(header or ()) or [str(number + 1) for number in range(width)]
    lower = [name.lower() for name in names]
    contents = [[row[i] for row in sample if i < len(row)] for i in range(len(names))]

    label = _named(table, names, options.label_column, first)
    if label is None and header:
        label = _usually_named(lower, LABEL_NAMES)
    if label is None:
        label = label_by_content(contents)

    text = _named(table, names, options.text_column, first)
    if text is None:
        text = _usually_named(lower, TEXT_NAMES) if header else None
        if text is None or text == label:
            text = text_by_content(contents, label)
    if text is None:
        text, label = 0, None  # the only column looked like a label; it is the text
    elif text == label:
        label = None
    if needs_labels and label is None:
        raise TableError(
            f"{table}: no column among {_shown(names)} looks like a label",
            Remedy.NAME_LABEL_COLUMN,
        )
    return Columns(text, label, width, label is not None and lower[label] in ("spam", "is_spam"))


def _named(table: str, names: list[str], wanted: str | None, first: Sequence[str]) -> int | None:
    """Return the column that the user names; None if the user names none."""
    if wanted is None:
        return None
    for number, name in enumerate(names):
        if name.lower() == wanted.lower():
            return number
    row = [cell.strip() for cell in first]
    if row and len(set(row)) == len(row) and all(len(cell) <= _NAME_SHOWN for cell in row):
        names = row
    raise TableError(
        f"{table}: there is no column {wanted!r}",
        Remedy.NAME_ONE_OF_COLUMNS,
        columns=_shown(names),
    )


def _usually_named(names: list[str], usual: Iterable[str]) -> int | None:
    return next((names.index(name) for name in usual if name in names), None)


def _shown(names: list[str]) -> str:
    """Return the names as an error lists them."""
    not_empty = [name for name in names if name]
    shown = ", ".join(repr(name[:_NAME_SHOWN]) for name in not_empty[:_NAMES_SHOWN])
    more = len(not_empty) - _NAMES_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def label_by_content(columns: list[list[str]]) -> int | None:
    """Return the column with the values ham or spam, else the one with the fewest short values.

    A column that never changes is the last choice; a few bad rows without a value do not matter.
    """
    best: tuple[bool, bool, int, int] | None = None
    for i, column in enumerate(columns):
        cells = [cell.strip() for cell in column if cell.strip()]
        values = set(cells)
        if (
            len(columns) > 1
            and 4 * len(cells) >= 3 * len(column)
            and 0 < len(values) <= min(_CLASSES_LIMIT, max(2, len(cells) // 2))
            and max(map(len, values)) <= LABEL_LENGTH
        ):
            usual = {SPAM, HAM} & {value.lower() for value in values}
            rank = (not usual, len(values) == 1, len(values), i)
            best = min(best or rank, rank)
    return best and best[3]


def text_by_content(columns: list[list[str]], label: int | None) -> int | None:
    """Return the column with the longest cells, apart from the label's; None if there is none."""
    lengths = [(sum(map(len, c)), -i) for i, c in enumerate(columns) if i != label]
    return -max(lengths)[1] if lengths else None


# Whether the first row of a table names its columns, though no name in it is a usual one.
#
# Taken for a message, a header is a class of its own (`y,x` over rows of 0 and 1: classes 0, 1, y);
# taken for a header, a message is lost.  So a row is a header only if all of this holds:
#
# - Each of its cells could be a name: short, not a number, none twice.  pandas writes two other
#   kinds: an empty cell over the index, which is a column of numbers, none twice; and 0, 1, 2 …
#   where the columns have no names.
# - The cell over the texts is one bare word, and most of the texts are not: of SMS one or two in a
#   hundred are ("Ok").
# - The cell over the labels occurs there only once, while the others repeat, and it is neither ham
#   nor spam.  In a table of two classes the label of a first message always repeats, unless the
#   rest of the sample is of the other class, as in a sorted file: then a row is a header only over
#   numbers or over ham and spam, or with an index.  Where no column looks like a label, the row
#   must be one of words over a column of numbers.  Names that pandas counted may be like the labels
#   below them.
#
# What is left is the message of one word that is the only one of its class in the sample, and is
# first, and the message "1" of class 0; whoever has it is told that its row was taken for a header.

_NAME_LENGTH = 40  # characters
_WORD = re.compile(r"[^\W\d]\w*(?:[.-]\w+)*")  # a bare word, as an identifier is
_INDEX = re.compile(r"[0-9]+")
_NUMBER = re.compile(r"[-+]?\d+(?:[.,]\d+)*")


def is_header_row(first: Sequence[str], others: Sequence[Sequence[str]]) -> bool:
    """Return whether a table's first row names its columns, by the rows of the sample below it."""
    names = [cell.strip() for cell in first]
    while names and not names[-1]:
        names.pop()
    if len(names) < 2:
        return False
    columns = [[row[i].strip() for row in others if i < len(row)] for i in range(len(names))]
    columns = [[cell for cell in column if cell] for column in columns]
    # The index of a data frame; the rows may be shuffled.
    index = columns[0] if not names[0] else []
    has_index = 2 < len(index) == len(set(index)) and all(map(_INDEX.fullmatch, index))
    own = names[1:] if has_index else names
    are_counted = own == [str(number) for number in range(len(own))]
    if not are_counted and not (
        len({name.lower() for name in own}) == len(own)
        and all(0 < len(name) <= _NAME_LENGTH and not _NUMBER.fullmatch(name) for name in own)
    ):
        return False
    label = label_by_content(columns)
    text = text_by_content(columns, label)
    if text is None or not (are_counted or _WORD.fullmatch(names[text])):
        return False
    words = sum(_WORD.fullmatch(cell) is not None for cell in columns[text])
    if len(columns[text]) < 2 or 4 * words > len(columns[text]):
        return False
    if label is None:
        return has_index or any(_are_numbers(c) for i, c in enumerate(columns) if i != text)
    labels = [normal_label(cell) for cell in columns[label]]
    classes = set(labels)
    if normal_label(names[label]) in classes | {HAM, SPAM} and not are_counted:
        return False
    if _are_numbers(labels) or has_index:
        return len(labels) > 1
    return len(labels) >= 2 * len(classes) and (len(classes) > 1 or classes <= {HAM, SPAM})


def _are_numbers(cells: list[str]) -> bool:
    return bool(cells) and all(_NUMBER.fullmatch(cell) for cell in cells)
