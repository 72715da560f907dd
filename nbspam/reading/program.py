"""Messages that a program has in memory: data frames, arrays and objects as rows, and pairs."""

import itertools
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeGuard

from nbspam.errors import OptionError, SourceError, TableError
from nbspam.reading import rows
from nbspam.reading.columns import is_label_last
from nbspam.reading.message import RawMessage
from nbspam.reading.rows import TableRow
from nbspam.reading.source import Input, ReadingOptions, Skips
from nbspam.reading.tables import plan_of
from nbspam.reading.whole_tables import MemoryTable, frame_table, with_fields

if TYPE_CHECKING:  # importing pandas takes half a second
    import pandas as pd


def is_data_frame(source: object) -> "TypeGuard[pd.DataFrame]":
    """Return whether a source is a data frame."""
    return hasattr(source, "columns") and hasattr(source, "itertuples")


def are_names(items: list[Any]) -> bool:
    """Return whether the items are names of sources; the first text must name a file."""
    is_file = isinstance(items[0], os.PathLike) or os.path.exists(str(items[0]))  # noqa: PTH110
    return is_file and all(isinstance(item, str | os.PathLike) for item in items)


def frame_messages(
    frame: "pd.DataFrame", options: ReadingOptions, skips: Skips, require_labels: bool
) -> Iterator[RawMessage]:
    """Yield the rows of a data frame as messages; the source of the first is `row:0`.

    Columns are found as in a file.  Text is plain text, and bytes are a mail.
    require_labels: as for `read_table`.
    Raises TableError when the columns cannot be found.
    """
    source = Input("the data frame", options, skips, require_labels=require_labels)
    return _row_messages(source, frame_table(frame))


def _row_messages(source: Input, table: MemoryTable) -> Iterator[RawMessage]:
    """Yield the rows of a table in memory as messages; source: names the table in errors."""
    names, values = with_fields(*table, source.options.table)
    if not names:
        raise TableError(f"{source.title}: it has no columns; give one with labels and texts")

    def cell(value: Any, keep_bytes: bool = True) -> Any:
        if isinstance(value, bytes):
            return value if keep_bytes else value.decode("latin-1")
        return rows.cell_text(value)

    sample = list(itertools.islice(values, rows.SAMPLE_ROWS))
    if not sample:
        return
    texts: list[TableRow] = [
        (0, [cell(value, keep_bytes=False) for value in row]) for row in sample
    ]
    plan = plan_of(source, list(map(str, names)), texts)
    used = [i for i in (plan.columns.text, plan.columns.label) if i is not None]
    narrow = plan.columns._replace(names=(), text=0, label=len(used) - 1 or None, width=len(used))
    table_rows = enumerate([cell(row[i]) for i in used] for row in itertools.chain(sample, values))
    yield from plan._replace(columns=narrow).messages(table_rows, "row")


def iter_api_messages(
    messages: object, options: ReadingOptions, skips: Skips
) -> Iterator[RawMessage]:
    """Yield all texts, mails or rows of a data frame as messages; the first is `message:0`.

    A row without a text is an empty message, which `skips` notes.
    Raises SourceError for another type, and OptionError for a single message.
    """
    if is_data_frame(messages):
        for raw in frame_messages(messages, options, Skips(strict=True), require_labels=False):
            if raw.content == "":
                skips(raw.source, "the row has no text")
            yield raw
        return
    if isinstance(messages, str | bytes) or not isinstance(messages, Iterable):
        raise OptionError(
            f"the messages are of the type {type(messages).__name__}; give a list, a column or a"
            " DataFrame"
        )
    for number, content in enumerate(messages):
        if not isinstance(content, str | bytes):
            raise SourceError(
                f"message:{number}: is of the type {type(content).__name__}; give text or bytes"
            )
        yield RawMessage(f"message:{number}", None, content)


def labelled_messages(
    messages: Iterable[Any], options: ReadingOptions, skips: Skips
) -> Iterator[RawMessage]:
    """Yield the messages in pairs, in an array's rows, or in dicts like those of `csv.DictReader`.

    Raises SourceError for anything else, and TableError when the columns cannot be found.
    """
    if not isinstance(messages, Iterable):
        raise SourceError(
            f"the source is of the type {type(messages).__name__}; give a name, pairs or a"
            " DataFrame"
        )
    if getattr(messages, "ndim", 1) == 2:  # a numpy array
        table = list(range(getattr(messages, "shape", (0, 0))[1])), iter(messages)
        return _row_messages(Input("the array", options, skips, require_labels=True), table)
    items = iter(messages)
    sample = list(itertools.islice(items, rows.SAMPLE_ROWS))
    items = itertools.chain(sample, items)
    if sample and all(isinstance(item, Mapping) for item in sample):
        names = list(dict.fromkeys(name for item in sample for name in item))
        values = ([item.get(name) for name in names] for item in items)
        source = Input("the rows", options, skips, require_labels=True)
        return _row_messages(source, (names, values))
    return pair_messages(items, skips, _has_labels_last(sample))


def _has_labels_last(sample: list[Any]) -> bool:
    """Return whether pairs are (text, label), as in nltk, TextBlob and spaCy."""
    pairs = [item for item in sample if isinstance(item, tuple | list) and len(item) == 2]
    texts = ([rows.cell_text(pair[i]) for pair in pairs] for i in range(2))
    return bool(pairs) and is_label_last([*texts])


def pair_messages(
    pairs: Iterable[Any], skips: Skips, are_labels_last: bool = False
) -> Iterator[RawMessage]:
    """Yield the messages of (label, text or bytes) pairs; the source of the first is `pair:0`.

    Text is plain text, and bytes are a mail.  A pair without a printable label is skipped.
    are_labels_last: whether the pairs are (text or bytes, label).
    Raises SourceError for anything but such a pair.
    """
    for number, pair in enumerate(pairs):
        source = f"pair:{number}"
        # A string of two characters must not pass for a pair.
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise SourceError(f"{source}: is not a pair; give (label, text or bytes)")
        label, content = reversed(pair) if are_labels_last else pair
        name = rows.label_text(label)
        if name is None or not isinstance(content, str | bytes):
            raise SourceError(
                f"{source}: is a pair of {type(label).__name__} and {type(content).__name__};"
                " give a label, and the message as text or bytes"
            )
        if not name:
            skips(source, "it has no label, or none of printable characters")
        elif not content.strip():
            skips(source, "the message is empty")
        else:
            if isinstance(label, str):
                skips.record_spelling(name, label)
            yield RawMessage(source, name, content)
