"""Whether the first row of a table names its columns, though no name in it is a usual one.

Taken for a message, a header is a class of its own (`y,x` over rows of 0 and 1: classes 0, 1, y);
taken for a header, a message is lost.  So a row is a header only if all of this holds:

- Each of its cells could be a name: short, not a number, none twice.  pandas writes two other
  kinds: an empty cell over the index, which is a column of numbers, none twice; and 0, 1, 2 … where
  the columns have no names.
- The cell over the texts is one bare word, and most of the texts are not: of SMS one or two in a
  hundred are ("Ok").
- The cell over the labels occurs there only once, while the others repeat, and it is neither ham
  nor spam.  In a table of two classes the label of a first message always repeats, unless the rest
  of the sample is of the other class, as in a sorted file: then a row is a header only over numbers
  or over ham and spam, or with an index.  Where no column looks like a label, the row must be one
  of words over a column of numbers.  Names that pandas counted may be like the labels below them.

What is left is the message of one word that is the only one of its class in the sample, and is
first, and the message "1" of class 0; whoever has it is told that its row was taken for a header.
"""

import re
from collections.abc import Sequence

from nbspam.labels import HAM, SPAM, normal_label
from nbspam.reading.columns import label_by_content, text_by_content

_NAME_LENGTH = 40  # characters
_WORD = re.compile(r"[^\W\d]\w*(?:[.-]\w+)*")  # a bare word, as an identifier is
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
    has_index = not names[0] and _is_index(columns[0])
    own_names = names[1:] if has_index else names
    are_counted = own_names == [str(number) for number in range(len(own_names))]
    if not (are_counted or _could_be_names(own_names)):
        return False
    label = label_by_content(columns)
    text = text_by_content(columns, label)
    if text is None or not (are_counted or _WORD.fullmatch(names[text])):
        return False
    if not _are_texts(columns[text]):
        return False
    if label is None:
        return has_index or any(_are_numbers(c) for i, c in enumerate(columns) if i != text)
    return _is_above_labels(names[label], columns[label], has_index, are_counted)


def _could_be_names(names: list[str]) -> bool:
    return len({name.lower() for name in names}) == len(names) and all(
        0 < len(name) <= _NAME_LENGTH and not _NUMBER.fullmatch(name) for name in names
    )


def _is_index(cells: list[str]) -> bool:
    """Return whether a column is the index of a data frame; the rows may be shuffled."""
    return (
        len(cells) > 2
        and len(set(cells)) == len(cells)
        and all(cell.isascii() and cell.isdecimal() for cell in cells)
    )


def _are_texts(cells: list[str]) -> bool:
    """Return whether three in four cells are more than one bare word."""
    words = sum(_WORD.fullmatch(cell) is not None for cell in cells)
    return len(cells) > 1 and 4 * words <= len(cells)


def _is_above_labels(name: str, cells: list[str], has_index: bool, is_counted: bool) -> bool:
    """Return whether `name` is unlike the labels below it, which repeat.

    has_index: whether the row begins with the empty name of an index.
    is_counted: whether the name is a number that pandas gave the column.
    """
    labels = [normal_label(cell) for cell in cells]
    classes = set(labels)
    if normal_label(name) in classes | {HAM, SPAM} and not is_counted:
        return False
    if _are_numbers(labels) or has_index:
        return len(labels) > 1
    return len(labels) >= 2 * len(classes) and (len(classes) > 1 or classes <= {HAM, SPAM})


def _are_numbers(cells: list[str]) -> bool:
    return bool(cells) and all(_NUMBER.fullmatch(cell) for cell in cells)
