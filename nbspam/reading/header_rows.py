"""Header rows: which of the first rows of a table names its columns.

A header that is read as a message adds a class with a single message, which is left out; a message
that is read as a header is lost.  So a row is a header if its cells could be names (short, all
different, not numbers), if no cell except the text's occurs again in its column, and if one of
these conditions holds:

- A cell is a usual name, or contains a usual name.
- A column has numbers or dates in each row below, and no digit in this row.
- The labels below repeat, and are several classes, or ham or spam; this row's label is not a class.

Unless one of the names is usual, the texts below the row must have several words, and the cell
above the texts must be a bare word.  The cell may have a few words if another cell is a usual name.
pandas writes two other kinds of header: with an empty cell above the index, which is a column of
different numbers; and with the names 0, 1, 2 … .
"""

import re
from collections.abc import Sequence

from nbspam.errors import Remedy
from nbspam.names import HAM, SPAM, normal_label
from nbspam.patterns import lazy_pattern
from nbspam.reading.columns import (
    CLASS_NAMES,
    CLASS_WORDS,
    LABEL_NAMES,
    LIKE_SPAM,
    NUMBER,
    TEXT_NAMES,
    WEAK_LABEL_NAMES,
    cell_class,
    column_key,
    columns_of,
    label_by_content,
    name_rank_of,
    text_by_content,
    words_of,
)
from nbspam.reading.source import Input, TableOptions

_MAX_ROWS_ABOVE = 9  # rows above a header
_MAX_NAME_LENGTH = 40  # characters
_BARE_WORD = lazy_pattern(r"[^\W\d]\w*(?:[.-]\w+)*")  # like an identifier
_TITLE = lazy_pattern(r"[^\W\d_][^\d.!,;:]*")  # a few words
_INDEX = lazy_pattern(r"[0-9]+")
_DIGIT = lazy_pattern(r"\d")


def header_row_index(source: Input, rows: list[Sequence[str]]) -> int | None:
    """Find the row that names the columns; None if there is no header.

    A title, with fewer cells, may be above the header.  A note names a header that has no usual
    names or is below other rows, and a first row that looks like a header but is a message.
    """
    options, table = source.options.table, source.title
    if options.header_row is False:
        return None
    sizes = [sum(cell.strip() != "" for cell in row) for row in rows]
    places = range(min(_MAX_ROWS_ABOVE + 1, len(rows)))
    both = [
        i
        for i in places
        if _are_both_names(rows[i]) and not _repeated_cells(rows[i], rows[i + 1 :])
    ]
    wider = [
        i
        for i in places
        if sizes[i] > max(sizes[:i], default=0) and (sizes[i] > 1 or i == 0 or max(sizes) < 2)
    ]
    for i in both[:1] or wider:
        row, below = rows[i], rows[i + 1 :]
        names = ", ".join(cell.strip() for cell in row if cell.strip())
        is_usual = options.header_row or names_columns(row, options)
        repeated = [] if options.header_row else _repeated_cells(row, below)
        if not repeated and (is_usual or is_header_row(row, below)):
            if i or not is_usual:
                which = f"its row {i + 1}" if i else "its first row"
                problem = f"{table}: {which} names the columns ({names})"
                source.note(problem, Remedy.HEADER_IS_MESSAGE)
            return i
        others = {column_key(cell) for cell in row if cell.strip() not in repeated}
        if i == 0 and repeated and not others.isdisjoint(TEXT_NAMES):
            problem = f"{table}: its first row ({names}) is a message: {repeated[0]!r} occurs again"
            source.note(problem, Remedy.HEADER_IS_NAMES)
    return None


def _repeated_cells(row: Sequence[str], others: Sequence[Sequence[str]]) -> list[str]:
    """Return the cells that occur again in their columns, and so cannot be names.

    A header that is repeated in joined files does not count, nor does a message whose text is
    "text".
    """
    cells = [column_key(cell) for cell in row]
    below = [[column_key(cell) for cell in other[: len(cells)]] for other in others]
    columns = columns_of([other for other in below if other != cells], len(cells))
    if [cell for cell in cells if cell] == [str(i) for i in range(sum(map(bool, cells)))]:
        return []  # the numbers that pandas writes
    text = text_by_content(columns, label_by_content(columns))
    repeated = (i for i, cell in enumerate(cells) if i != text and cell and cell in columns[i])
    return [row[i].strip() for i in repeated]


def names_columns(cells: Sequence[str], options: TableOptions) -> bool:
    """Return whether a row has a usual column name, so that it may be a header."""
    names = {column_key(cell) for cell in cells}
    learned = (name for pair in options.learned for name in pair)
    known = (options.text_column, options.label_column, *learned)
    if not names.isdisjoint(column_key(name) for name in known if name):
        return True
    has_text = any(map(_is_text_name, cells))
    # such a cell may be the label of a message in a first row without a header
    may_be_class = not names.isdisjoint(CLASS_WORDS)
    return has_text or not (may_be_class or names.isdisjoint((*LABEL_NAMES, *WEAK_LABEL_NAMES)))


def has_row_names(header: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Return whether each row starts with a number that has no cell in the header, as in R."""
    numbers = [row[0] for row in rows if len(row) == len(header) + 1]
    return (
        len(header) > 0
        and 1 < len(rows) == len({*numbers})
        and all(map(_INDEX.fullmatch, numbers))
        and column_key(header[0]) in (*TEXT_NAMES, *LABEL_NAMES)
    )


def _are_both_names(cells: Sequence[str]) -> bool:
    """Return whether a row has usual names for the text column and for the label column."""
    names = {column_key(cell) for cell in cells}
    return not names.isdisjoint(TEXT_NAMES) and not names.isdisjoint(LABEL_NAMES)


def _is_text_name(cell: str) -> bool:
    """Return whether a cell is a usual name of a text column, like `message` or `comment_text`."""
    is_joined = re.fullmatch(r"\s*[A-Za-z]+(?:_[A-Za-z]+)+\s*", cell) is not None
    return column_key(cell) in TEXT_NAMES or (is_joined and name_rank_of(cell) > 0)


def is_header_row(first: Sequence[str], others: Sequence[Sequence[str]]) -> bool:
    """Return whether a first row without a usual name is a header; others: the rows below it."""
    names = [cell.strip() for cell in first]
    while names and not names[-1]:
        names.pop()
    columns = columns_of([row for row in others if row != first], len(names))
    columns = [[cell.strip() for cell in column if cell.strip()] for column in columns]
    label = label_by_content(columns)
    text = text_by_content(columns, label)
    if len(names) < 2 or text is None or len(columns[text]) < 2:
        return False
    if 4 * sum(map(_is_bare_word, columns[text])) > len(columns[text]):
        return False
    # A data frame's index; the rows may be shuffled.
    index = [] if names[0] else columns[0]
    has_index = 2 < len(index) == len(set(index)) and all(map(_INDEX.fullmatch, index))
    titles = names[1:] if has_index else names
    if titles == [str(number) for number in range(len(titles))]:  # pandas' numbers
        return True
    is_bare = _is_bare_word(names[text])
    if not (
        len({name.lower() for name in titles}) == len(titles)
        and all(0 < len(name) <= _MAX_NAME_LENGTH and not NUMBER.fullmatch(name) for name in titles)
        and not _repeated_cells(first, others)
        and (is_bare or all(map(_TITLE.fullmatch, titles)))
    ):
        return False
    if has_index or any(
        len(column) > 1 and all(map(_DIGIT.search, column)) and not _DIGIT.search(names[i])
        for i, column in enumerate(columns)
        if i != text
    ):
        return True
    words = {word for name in names if name.lower() not in CLASS_NAMES for word in words_of(name)}
    has_usual = not words.isdisjoint({*TEXT_NAMES, *LIKE_SPAM, "verdict"})
    labels = [] if label is None else [*map(cell_class, columns[label])]
    classes = set(labels)
    return (
        label is not None
        and (is_bare or has_usual or len(names) > 2)
        and normal_label(names[label]) not in CLASS_WORDS | classes
        and len(labels) >= 2 * len(classes)
        and (len(classes) > 1 or classes <= {HAM, SPAM})
    )


def _is_bare_word(cell: str) -> bool:
    return _BARE_WORD.fullmatch(cell) is not None
