"""Texts and tables as sources: TSV, CSV, JSON, JSON lines, Parquet and Excel; a row is a message.

Also data frames, and streams that look like tables.  `lines.py` decodes lines, `rows.py` streams
rows, `whole_tables.py` reads other files and data frames, `columns.py` finds the columns, and
`header_rows.py` the header.  A note reports an uncertain choice, with the option that changes it.
"""

import itertools
import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from nbspam.errors import Remedy, SourceError, TableError
from nbspam.names import HAM, SPAM, binary_label, normal_label
from nbspam.reading import columns, header_rows, lines, rows
from nbspam.reading.columns import Columns, Nested
from nbspam.reading.compression import TABLE_SUFFIXES, bare_suffix, foreign_format
from nbspam.reading.message import RawMessage
from nbspam.reading.rows import Content, TableRow
from nbspam.reading.source import (
    LINES,
    TABLE_FORMATS,
    Input,
    ReadingOptions,
    Skips,
    SourceKind,
)
from nbspam.reading.whole_tables import LIMITS, frame_table, parquet_frame, read_whole_table

if TYPE_CHECKING:  # importing pandas takes half a second
    pass

_SAME_TEXTS = 10  # rows needed for a note that all texts are the same
_LABELS_SHOWN = 3
_LINES_SEEN = 2  # a .json is JSON lines if each of its first lines is an object
_ARRAY = "[{"  # the beginning of a JSON array of objects
_STARTS = ("[", _ARRAY, "[[", "{")  # first characters of a JSON document that is not JSON lines


# Rows as messages


class TablePlan(NamedTuple):
    """How the rows of a table become messages."""

    source: Input
    columns: Columns
    header_line: int = -1  # line of the row that names the columns; rows up to it are skipped

    def messages(self, table_rows: Iterator[TableRow], name: str) -> Iterator[RawMessage]:
        """Yield rows as messages; name: the start of their names."""
        skips, own_label = self.source.skips, self.source.label
        require_labels, on_row = self.source.require_labels, self.source.options.on_row
        fitted, label_of = self.columns.fit_width, self.columns.label_of
        number, label_number, width = self.columns.text, self.columns.label, self.columns.width
        keys = [columns.column_key(column) for column in self.columns.names]
        names = self.columns.names or tuple(
            {label_number: "label", number: "text"}.get(i, f"column_{i + 1}") for i in range(width)
        )
        if on_row:
            on_row(name, names, None)
        for line, row in table_rows:
            if line <= self.header_line:
                continue
            source, cells = f"{name}:{line}", row if len(row) == width else fitted(row)
            if keys and _is_header(source, cells, keys):
                skips.note(source, "the header again")
                continue
            if on_row:
                on_row(source, names, getattr(row, "values", row) if len(row) <= width else cells)
            text = cells[number] if number < len(cells) else None
            has_label = not any(row[width:]) or self.columns.is_usual(cells)
            label = label_of(cells) if has_label else None
            is_learned = require_labels or own_label is not None
            # An empty text is classified, but not learned.
            if text is None or (is_learned and not text.strip()):
                skips(source, "the row has no text")
            elif isinstance(text, Nested):
                skips(source, "its text is an object or a list")
            elif not label and require_labels:
                skips(source, "the row has no label")
            elif require_labels and isinstance(cells[self.columns.label or 0], Nested):
                skips(source, "its label is an object or a list")
            else:
                if label and require_labels:
                    skips.record_spelling(label, cells[self.columns.label or 0])
                yield RawMessage(source, label if own_label is None else own_label, text)


def _is_header(source: str, cells: Sequence[str], keys: list[str]) -> bool:
    """Return whether a row repeats the header, as in joined files.

    keys: the columns' names.  Raises TableError if the row has them in another order.
    """
    if not cells or columns.column_key(cells[0][: columns.LABEL_LENGTH]) not in keys:
        return False
    row = [columns.column_key(cell) for cell in cells[: len(keys)]]
    if row != keys and sorted(row) == sorted(keys):
        raise TableError(
            f"{source}: names the columns in another order than the rows above; save what follows"
            " as a table of its own"
        )
    return row == keys


def read_table(content: Content) -> Iterator[RawMessage]:
    """Yield the rows of a table as messages.

    If labels are required, a row without a label or a text is skipped; otherwise labels are read if
    the table has them.
    Raises TableError when the columns cannot be found, OSError when the file cannot be read.
    """
    content, source = _with_form(content), content.source
    if content.form in LIMITS:
        names, table_rows = read_whole_table(content, _rank_rows)
        sample = list(rows.first_rows(table_rows))
        plan = plan_of(source, names, sample)
        if content.form == "parquet" and (ranges := list(_row_ranges(plan))):
            yield from ranges
        else:
            yield from plan.messages(itertools.chain(sample, table_rows), source.title)
        return
    layout = rows.layout_of(content)
    with closing(content.first_lines()) as texts:
        sample = list(rows.first_rows(rows.rows_of("", texts, layout, Skips())))
    plan = plan_of(source, layout.names, sample)
    plan = plan._replace(columns=plan.columns._replace(joint=layout.delimiter))
    whole = lines.decode_lines(source.title, content.whole, content.decoding, source.skips)
    with closing(whole) as texts:
        table_rows = rows.rows_of(source.title, texts, layout, source.skips)
        yield from plan.messages(table_rows, source.title)


def _with_form(content: Content) -> Content:
    """Replace the form that the file's name shows, if the first lines have another form."""
    if content.form not in ("tsv", "csv", "json", "jsonl"):
        return content
    texts = itertools.islice(lines.nonblank_lines(content.first_lines()), _LINES_SEEN)
    first = [text.strip() for _, text in texts]
    are_lines = rows.are_json_lines(first)
    if are_lines and (content.form != "json" or len(first) == _LINES_SEEN):
        return content._replace(form="jsonl")
    starts = _STARTS if content.form == "jsonl" else (_ARRAY,)
    is_document = not are_lines and "".join(first)[:2].rstrip() in starts
    return content._replace(form="json") if is_document else content


def plan_of(source: Input, header: list[str] | None, sample: list[TableRow]) -> TablePlan:
    """Plan how a table's rows become messages, by a sample of rows; raises TableError.

    Notes uncertain choices: columns that were not found by their names, and a sample whose texts
    are all the same, such as dates or file names.
    """
    name, options, header_line = source.title, source.options, -1
    if not sample and (source.require_labels or not header):
        raise TableError(
            f"{name}: no row can be read in it; give a table with a label and a text in each row"
        )
    cells = [row for _, row in sample]
    if header is None and (place := header_rows.header_row_index(source, cells)) is not None:
        header_line = sample[place][0]
        header = [cell.strip(" \ufeff\t") for cell in cells[place]]
        # Kaggle's `v1,v2,,,`: the empty cells are columns into which texts continue
        while header and not header[-1]:
            header.pop()
        cells = cells[place + 1 :]
        if header_rows.has_row_names(header, cells):
            header = ["", *header]
    table_columns = columns.find_columns(source, header, cells)
    number, label_number, width = table_columns.text, table_columns.label, table_columns.width
    wide = [line for line, row in sample if line > header_line and any(row[width:])]
    is_guess = not table_columns.values and (label_number is None or number < width - 1)
    if wide and (is_guess or len(wide) == len(cells)):
        source.note(f"{name}:{wide[0]}: has more cells than columns; the rest belongs to the text")
    cells = [table_columns.fit_width(row) for row in cells]
    if source.label is not None and label_number is not None:
        _check_label(name, source.label, table_columns, cells)
    if header and source.require_labels and label_number is not None:
        label = header[label_number]
        options.on_columns((header[number], label))
        labels = list(dict.fromkeys(filter(None, map(table_columns.label_of, cells))))
        if labels and not {SPAM, HAM}.intersection(labels):
            first_labels = ", ".join(labels[:_LABELS_SHOWN]) + ", …" * (len(labels) > _LABELS_SHOWN)
            problem = f"{name}: labels are read from column {label!r} ({first_labels})"
            source.note(problem, Remedy.NAME_ANOTHER_LABEL)
    texts = {row[number] if number < len(row) else None for row in cells}
    if len(cells) >= _SAME_TEXTS and len(texts) == 1:
        column = header[number] if header and number < len(header) else str(number + 1)
        problem = f"{name}: the texts in column {column!r} are all the same"
        source.note(problem, Remedy.NAME_TEXT_COLUMN)
    return TablePlan(source, table_columns, header_line)


def _check_label(
    name: str, label: str, table_columns: Columns, cells: Sequence[Sequence[str]]
) -> None:
    """Raise TableError if the user's label contradicts the labels in the table's rows."""
    labels = map(table_columns.label_of, cells)
    own = sorted({binary_label(own) for own in labels if own} - {label})
    number = table_columns.label or 0
    column = table_columns.names[number] if table_columns.names else str(number + 1)
    if {SPAM, HAM}.intersection(own) or len(own) > 1:
        shown = ", ".join(own[:_LABELS_SHOWN])
        problem = f"{name}: has labels of its own, in column {column!r} ({shown})"
        raise TableError(problem, Remedy.LEAVE_OUT_LABEL)


def _rank_rows(source: Input, table_rows: Iterator[TableRow]) -> tuple[int, ...]:
    """Rate how much rows read like messages; the last number counts the sample's rows."""
    sample = list(rows.first_rows(table_rows))
    silent = ReadingOptions(source.options.table)
    trial = Input(source.name, silent, source.skips, source.label, source.require_labels)
    try:
        plan = plan_of(trial, None, sample)
    except TableError:
        return 0, 0, len(sample)
    cells = [plan.columns.fit_width(row) for line, row in sample if line > plan.header_line]
    texts = [row[plan.columns.text] for row in cells if plan.columns.text < len(row)]
    return 1, columns.measure(texts).is_text, len(sample)


# Ranges of rows, which other processes read

_BUFFER_BYTES = 1 << 20  # a row group is not read whole
_RANGE_BYTES = 128 << 10  # unpacked; the rows that a worker tokenizes at a time


class RowRange(RawMessage):
    """Some rows of a row group of a Parquet file, which the process that tokenizes them reads."""

    columns: Columns
    require_labels: bool
    group: int
    size: int  # rows of each range but the last
    rows: range  # in the row group
    first: int  # the number of the first row in the file

    def messages(self, skips: Skips) -> Iterator[RawMessage]:
        """Read the rows; raises OSError, and TableError."""
        _, values = frame_table(parquet_frame(self._read()))
        source = Input(self.source, ReadingOptions(), skips, self.label, self.require_labels)
        table_rows = enumerate(map(rows.Cells.of, values), self.first)
        return TablePlan(source, self.columns).messages(table_rows, self.source)

    def _read(self) -> Any:
        """Return the rows; continues in the row group after the rows that were read last."""
        for _ in range(2):  # once more from the start if the rows were read before
            for start, part in _row_group(self.content, self.group, self.size):
                if (start, part.num_rows) == (self.rows.start, len(self.rows)):
                    return part
            _row_group.cache_clear()
        raise TableError(f"{self.source}: has changed while it was read; run it again")


@lru_cache(maxsize=1)
def _row_group(path: Path, group: int, size: int) -> Iterator[tuple[int, Any]]:
    """Yield the first number and the rows of each range of a row group."""
    from pyarrow import parquet  # type: ignore[import-untyped]

    file = parquet.ParquetFile(path, buffer_size=_BUFFER_BYTES)
    start = 0
    for part in file.iter_batches(size, row_groups=[group]):
        yield start, part
        start += part.num_rows


def _row_ranges(plan: TablePlan) -> Iterator[RowRange]:
    """Divide a Parquet file into ranges of about _RANGE_BYTES.

    Yields nothing if this process must read the rows: they are attached to a message or in an
    archive, or have inner fields.
    """
    source, options = plan.source, plan.source.options
    named = options.table.text_column, options.table.label_column
    has_inner = any(name and "." in name for name in named)
    if not options.by_range or not source.is_file or options.attached or has_inner:
        return
    from pyarrow import parquet

    metadata = parquet.ParquetFile(source.path).metadata
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    first = 1
    for number, group in enumerate(groups):
        n_rows = max(1, group.num_rows * _RANGE_BYTES // max(1, group.total_byte_size))
        for start in range(0, group.num_rows, n_rows):
            part = RowRange(source.title, source.label, source.path.absolute())
            part.columns, part.require_labels = plan.columns, source.require_labels
            part.group, part.size = number, n_rows
            part.rows = range(start, min(start + n_rows, group.num_rows))
            part.first = first + start
            yield part
        first += group.num_rows


# Kinds


def are_labelled_lines(texts: list[str]) -> bool:
    """Return whether every line looks like a short label, a tab and a text."""
    pairs = [text.partition("\t") for text in texts]
    labels = {label for label, _, _ in pairs}
    return (
        bool(pairs)
        and all(label and tab for label, tab, _ in pairs)
        and max(map(len, labels)) <= columns.LABEL_LENGTH
        and (len(labels) <= max(2, len(pairs) // 4) or {HAM, SPAM} >= labels)
    )


def _read_as(form: str | None, source: Input) -> Iterator[RawMessage]:
    """Yield the rows of a file, standard input or a pipe; form: None for the form in its name."""
    return read_table(rows.content_of(source, form))


def _read_each_line(source: Input) -> Iterator[RawMessage]:
    _, _, decoding, whole, *_ = rows.content_of(source, LINES, patience=0.0)
    texts = lines.decode_lines(source.title, whole, decoding, source.skips)
    for number, line in lines.nonblank_lines(texts):
        yield RawMessage(f"{source.title}:{number}", source.label, line)


# Folders of tables, such as Parquet in parts
#
# Hugging Face keeps `train-*.parquet` next to `test-*.parquet`.  Spark and Dask write partitions,
# sub-folders such as `day=2026-11-28`, and files such as `_SUCCESS`.

_PARTS = re.compile(r"(?<![a-z])(train|test|valid|dev|eval)(?:ing|ation)?(?![a-z])", re.I)


def tables_in_folder(folder: Path) -> list[Path]:
    """Return the tables of a folder and its partitions; [] if the folder has other sub-folders.

    In a clone of a Hugging Face repository, the tables are in `data`.
    Raises SourceError if a partition has other sub-folders, whose tables would be left out.
    """
    entries = [path for path in sorted(folder.iterdir()) if path.name[0] not in "._"]
    folders = [path for path in entries if path.is_dir()]
    if not all(map(_is_partition, folders)):
        others = [path for path in entries if path.suffix not in (".md", ".json", ".py")]
        is_clone = others == [folder / "data"] and not others[0].is_symlink()
        return tables_in_folder(others[0]) if is_clone else []
    tables = [path for path in entries if bare_suffix(path) in TABLE_SUFFIXES]
    for path in itertools.chain.from_iterable(part.iterdir() for part in folders):
        if path.is_dir() and path.name[0] not in "._" and not _is_partition(path):
            remedy = "move it, or name the tables"
            raise SourceError(f"{path}: is a folder within a partition of a table; {remedy}")
    return [path for part in folders for path in tables_in_folder(part)] + tables


def _is_partition(folder: Path) -> bool:
    """Return whether a folder has the rows with one value of a column other than the label."""
    column, sign, _ = folder.name.partition("=")
    is_label = columns.column_key(column) in columns.LABEL_NAMES
    return bool(sign) and not is_label and not folder.is_symlink()


def _read_folder(source: Input) -> Iterator[RawMessage]:
    """Yield the rows of a folder's tables; leaves out test tables if there are training tables."""
    found = tables_in_folder(source.path)
    names = {path: str(path.relative_to(source.path)) for path in found}  # `split=test/part-0…`
    parts = {path: part[1].lower() for path in found if (part := _PARTS.search(names[path]))}
    if {"train"} < {*parts.values()}:
        others = [names[path] for path in found if parts.get(path) != "train"]
        found = [path for path in found if parts.get(path) == "train"]
        problem = f"{source.title}: train is read, and not {', '.join(others[:_LABELS_SHOWN])}"
        source.note(f"{problem}{', …' * (len(others) > _LABELS_SHOWN)}")
    for path in found:
        yield from read_in_folder(source.entry(path))


def read_in_folder(table: Input) -> Iterator[RawMessage]:
    """Yield the rows of a table in a folder; a table that cannot be read is skipped."""
    try:
        if problem := foreign_format(table.sample, table.suffix):
            raise SourceError(f"{table.path}: {problem}")
        yield from _read_as(None, table)
    except (SourceError, OSError) as error:
        label = normal_label(table.path.name.partition(".")[0])
        is_named, lacks_label = label in (HAM, SPAM), Remedy.NAME_LABEL_COLUMN  # ham.csv
        if is_named and isinstance(error, TableError) and error.remedy is lacks_label:
            quoted = shlex.quote(table.name)
            error = TableError(error.problem, Remedy.GIVE_ITS_LABEL, label=label, path=quoted)
        table.skips(table.name, str(error).removeprefix(f"{table.name}: "))


TABLE = SourceKind(partial(_read_as, None))
TABLE_FOLDER = SourceKind(_read_folder)
TSV = SourceKind(partial(_read_as, "tsv"))
# Format that the user names -> kind.
FORMS = {form: TABLE._replace(read=partial(_read_as, form)) for form in TABLE_FORMATS}
EACH_LINE = SourceKind(_read_each_line, "lines of text have no labels")
