"""The columns of a pandas DataFrame, one message per row, for users of the library.

Whoever has a data frame has loaded pandas; nothing here imports it.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeGuard

from nbspam.errors import TableError
from nbspam.reading.columns import SAMPLE_ROWS, cell_text, find_columns
from nbspam.reading.raw_message import RawMessage
from nbspam.reading.skips import Skips
from nbspam.reading.source_kind import TableOptions

if TYPE_CHECKING:
    import pandas as pd

_NAME = "the data frame"


def is_data_frame(source: object) -> "TypeGuard[pd.DataFrame]":
    """Return whether a source is a data frame."""
    return hasattr(source, "columns") and hasattr(source, "itertuples")


def frame_rows(frame: "pd.DataFrame") -> Iterator[tuple[object, ...]]:
    """Return the rows of a data frame as Python's own objects, None for what is missing."""
    objects = frame.astype(object)
    return iter(objects.where(frame.notna(), None).itertuples(index=False, name=None))


def frame_messages(
    frame: "pd.DataFrame", options: TableOptions, skips: Skips, needs_labels: bool
) -> Iterator[RawMessage]:
    """Yield the rows of a data frame as messages; the source of the first is `row:0`.

    Columns are found as a table's are.  Text is plain text, and bytes are a mail.
    needs_labels: a row without a label or a text is skipped; else labels are read where there are
    any.
    Raises TableError when the columns cannot be found.
    """
    header = [str(name) for name in frame.columns]
    if not header:
        raise TableError(f"{_NAME}: it has no columns; give one with labels and texts")
    sample = [[_sample_text(value) for value in row] for row in frame_rows(frame.head(SAMPLE_ROWS))]
    columns = find_columns(_NAME, header, sample, options, needs_labels)
    used = [columns.text] if columns.label is None else [columns.text, columns.label]
    for number, row in enumerate(frame_rows(frame.iloc[:, used])):
        label = columns.label_named(cell_text(row[1])) if len(used) > 1 else None
        if needs_labels and not label:
            skips(f"row:{number}", "the row has no label")
            continue
        text = row[0] if isinstance(row[0], bytes) else cell_text(row[0])
        if needs_labels and not text.strip():
            skips(f"row:{number}", "the row has no text")
            continue
        yield RawMessage(f"row:{number}", label, text)


def _sample_text(value: object) -> str:
    """Return a cell as text in which the columns are searched."""
    return value.decode("latin-1") if isinstance(value, bytes) else cell_text(value)
