"""Tables of verdicts, written with the columns of a table that was read.

CSV, TSV, JSON and JSON lines are written row by row, Parquet and Excel at the end.  All text is
UTF-8.

A spreadsheet reads a cell of a CSV as a formula if it starts with `=+-@`, a tab, CR, LF or NUL.  A
formula may run a program, and the sender of a mail chooses the text.  An apostrophe in front makes
the cell a text (OWASP, "CSV injection", and ASVS 1.2.10); a number such as -1,5 stays a number.
Excel workbooks separate texts from formulas, so their texts are not changed.
"""

import csv
import json
import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from itertools import zip_longest
from pathlib import Path
from typing import IO, Any

from nbspam.errors import NbspamError, OptionError, SourceError, TableError, needs_extra, one_line
from nbspam.names import real_name
from nbspam.reading.columns import VERDICT_COLUMNS
from nbspam.reading.message import RawMessage
from nbspam.reading.rows import field
from nbspam.reading.source import STDIN
from nbspam.scoring.verdict import Verdict
from nbspam.store.writing import atomic_replacement

_DELIMITERS = {"csv": ",", "tsv": "\t"}
# package, and the extra that installs it
_PACKAGES = {"parquet": ("pyarrow", "parquet"), "xlsx": ("openpyxl", "excel")}
FORMS = (*_DELIMITERS, "jsonl", "json", *_PACKAGES)  # formats, and file name endings
_FORMULA_STARTS = tuple("=+-@\t\r\n\0")
_NUMBER = re.compile(r"[-+]?(?:|[\d.,' \u00a0\u202f]*\d(?:e[-+]?\d+)? ?%?|inf|nan)", re.IGNORECASE)
_SOURCE = ("source",)  # the only column for a message that does not come from a table
# Limits of Excel: rows below the header, characters of a cell, digits of a whole number.
_MAX_ROWS, _MAX_CELL_LENGTH, _MAX_DIGITS = (1 << 20) - 1, 32_767, 15
_INVALID_IN_XML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def table_format(path: Path) -> str:
    """Return the format of a table file, one of FORMS, from the ending of its name.

    Raises OptionError for another ending, NbspamError if the package that writes it is missing.
    """
    form = path.suffix.lower()[1:]
    if form not in FORMS:
        endings = [f".{form}" for form in FORMS]
        raise OptionError(
            f"{path}: unknown format of a table; name a file that ends in"
            f" {', '.join(endings[:-1])} or {endings[-1]}"
        )
    package, extra = _PACKAGES.get(form, ("", ""))
    if package and not find_spec(package):
        raise NbspamError(needs_extra(f"{path}: writing .{form}", package, extra))
    return form


@contextmanager
def open_output(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that replaces an old file when it is complete; a pipe is written directly.

    Raises ModelError if it cannot be written.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
    else:
        target = Path(os.path.realpath(path))  # so that a link is kept and its target replaced
        with atomic_replacement(target, "file", str(os.getpid())) as file:
            yield file


def added_names(names: Iterable[str], added: Iterable[str] = VERDICT_COLUMNS) -> list[str]:
    """Return the names of the added columns, with _2, _3 … if the table has such a column."""
    taken, added = {*names}, list(added)
    numbered, n = added, 1
    while taken.intersection(numbered):
        n += 1
        numbered = [f"{name}_{n}" for name in added]
    return numbered


def renamed_columns_note(table: str, names: Iterable[str], added: Iterable[str]) -> str:
    """Return a note on added columns that got a number in their names, else an empty text.

    names: the table's own columns.
    """
    taken = {*names}.intersection(VERDICT_COLUMNS)
    columns = ", ".join(map(repr, added))
    return (
        f"{table}: has the column {min(taken)!r}, so the verdicts are in {columns}" if taken else ""
    )


class TableWriter:
    """Writes rows into an open file.

    form: one of FORMS.  keep_formulas: do not escape texts that a spreadsheet reads as formulas.
    on_note: called with a note if the added columns have other names.
    """

    def __init__(
        self,
        file: IO[bytes],
        form: str,
        keep_formulas: bool = False,
        on_note: Callable[[str], object] = str,
    ) -> None:
        self.file, self._form, self._keeps_formulas, self._on_note = (
            file,
            form,
            keep_formulas,
            on_note,
        )
        self._is_json, self._is_terminal = form in ("json", "jsonl"), file.isatty()
        self._names: Sequence[str] | None = None  # the last table's columns, as they were read
        self._columns: list[str] = []  # the last table's columns, each with a different name
        self._added: list[str] = []  # the columns of the verdicts
        self._rows: list[list[Any]] = []  # collected for Parquet and Excel
        self._separator = "[\n"  # before the next JSON record
        self._csv = csv.writer(self, delimiter=_DELIMITERS.get(form, ","))

    def write(self, text: str) -> None:
        """Write a text; csv.writer calls it with a line.

        csv.writer quotes a CR in a cell only if its lines end with CR LF; this method writes LF in
        place of CR LF.  An unpaired surrogate, which JSON can contain, is escaped as in JSON.  A
        terminal gets no control characters.
        """
        if text.endswith("\r\n"):
            text = text[:-2] + "\n"
        if self._is_terminal:
            pieces = re.split("([\t\n])", text)
            text = "".join(piece if piece in "\t\n" else one_line(piece) for piece in pieces)
        self.file.write(text.encode("utf-8", "backslashreplace"))

    def add(
        self, source: str, names: Sequence[str], values: Any, added: Mapping[str, object]
    ) -> None:
        """Write a row.

        names: the columns; pass the same object for all rows of a table.
        values: the row's values in the order of the names, or a JSON object, which may have other
        keys; None writes no row and only starts the table.
        added: the verdict's columns, which follow the table's own columns.
        Raises TableError if the row does not fit the columns of the file.
        """
        if names is not self._names:
            self._begin(source, names, added)
        if values is None:
            return
        if isinstance(values, Mapping):
            keys = values.keys()
            if late := keys & {*self._added} if self._is_json else keys - {*names}:
                raise TableError(
                    f"{source}: has the field {min(late)!r}, which the first objects lack; give it"
                    " to the first one, too"
                )
        elif self._is_json:
            values = dict(zip_longest(self._columns, values))
        if self._is_json:
            text = _json({**values, **dict(zip(self._added, added.values(), strict=True))})
            self.write(f"{text}\n" if self._form == "jsonl" else f"{self._separator}{text}")
            self._separator = ",\n"
            return
        if isinstance(values, Mapping):
            values = [field(values, name) for name in names]
        cells = [*values, *[None] * (len(names) - len(values)), *added.values()]
        if self._form in _DELIMITERS:
            self._csv.writerow(map(self._text, cells))
        else:
            self._rows.append(cells)

    def _begin(self, source: str, names: Sequence[str], added: Mapping[str, object]) -> None:
        """Start a table; in a file with a header, all tables must have the same columns."""
        is_first = self._names is None
        if not (is_first or self._is_json or list(names) == list(self._names or ())):
            raise TableError(
                f"{source}: has other columns than the sources before it; write it to a file of"
                " its own, or write JSON lines"
            )
        self._names, self._columns = names, []
        for name in names:
            self._columns += added_names(self._columns, [name])
        old, self._added = self._added, added_names(self._columns, added)
        if self._added != old and (sentence := renamed_columns_note(source, names, self._added)):
            self._on_note(sentence)
        if is_first and self._form in _DELIMITERS:
            self._csv.writerow(map(self._text, [*names, *self._added]))

    def _text(self, value: object) -> object:
        """Format a cell of a CSV or TSV."""
        if isinstance(value, str):
            is_formula = value.startswith(_FORMULA_STARTS) and not self._keeps_formulas
            return f"'{value}" if is_formula and not _NUMBER.fullmatch(value) else value
        return _flat(value)

    def close(self) -> None:
        """Write the end of the file; Parquet and Excel are written only now."""
        columns = [*self._columns, *self._added]
        if self._form == "json":
            self.write("[]\n" if self._separator == "[\n" else "\n]\n")
        elif self._form == "parquet":
            _write_parquet(self.file, columns, self._rows)
        elif self._form == "xlsx":
            _write_workbook(self.file, columns, self._rows)
        self.file.flush()


def _json(value: object) -> str:
    """Format a value as JSON; NaN and infinite numbers, which JSON lacks, become null."""
    as_text = partial(json.dumps, ensure_ascii=False, default=_to_json_type)
    try:
        return as_text(value, allow_nan=False)
    except ValueError:
        return as_text(json.loads(as_text(value), parse_constant=lambda _: None))


def _to_json_type(value: Any) -> object:
    """Convert a value that JSON does not know: a numpy array to a list, others to text."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


def _flat(value: Any) -> object:
    """Convert a value to a cell; an object or a list becomes JSON."""
    if isinstance(value, Mapping | list | tuple) or hasattr(value, "tolist"):
        return _json(value)
    return value


def _write_parquet(file: IO[bytes], columns: list[str], rows: list[list[Any]]) -> None:
    import pyarrow as pa  # type: ignore[import-untyped]
    from pyarrow import parquet

    arrays = []
    for values in zip(*rows, strict=True) if rows else [()] * len(columns):
        try:
            array = pa.array(values)
        except (pa.ArrowException, OverflowError, UnicodeError):  # values of several types
            texts = (
                None if v is None else _INVALID_IN_XML.sub("\ufffd", str(_flat(v))) for v in values
            )
            array = pa.array(list(texts), pa.string())
        # A column of nulls, such as `reason` without any reason, is still a column of texts.
        arrays.append(array.cast(pa.string()) if pa.types.is_null(array.type) else array)
    parquet.write_table(pa.table(arrays, names=columns), file)


def _write_workbook(file: IO[bytes], columns: list[str], rows: list[list[Any]]) -> None:
    """Write a workbook with a sheet; raises TableError if the table exceeds Excel's limits."""
    from datetime import date

    from openpyxl import Workbook  # type: ignore[import-untyped]
    from openpyxl.cell import WriteOnlyCell  # type: ignore[import-untyped]

    book = Workbook(write_only=True)
    sheet = book.create_sheet("verdicts")

    def check_limit(noun: str, n: int, limit: int) -> None:
        if n > limit:
            raise TableError(
                f"the table has {n:,} {noun}, and Excel holds {limit:,}; write .csv or .parquet"
            )

    def cell(value: Any) -> object:
        is_long = isinstance(value, int) and len(str(value)) > _MAX_DIGITS
        is_plain = value is None or isinstance(value, int | float | date)
        if is_plain and not (is_long or getattr(value, "tzinfo", None)):
            return value
        text = _INVALID_IN_XML.sub("\ufffd", str(_flat(value)))
        check_limit("characters in a cell", len(text), _MAX_CELL_LENGTH)
        text_cell = WriteOnlyCell(sheet, text)
        # text, so that openpyxl writes neither a formula nor an error such as #N/A
        text_cell.data_type = "s"
        return text_cell

    check_limit("rows", len(rows), _MAX_ROWS)
    # Convert all rows before writing any, because openpyxl warns of a sheet left half written.
    for row in [list(map(cell, row)) for row in [columns, *rows]]:
        sheet.append(row)
    book.save(file)


class VerdictTable:
    """Joins the rows that are read with their verdicts, which follow later in the same order.

    A skipped row has no verdict.  Rows are stored while their messages are classified.
    """

    def __init__(self, writer: TableWriter, input_blocks: Callable[[], bool]) -> None:
        """input_blocks: whether reading the next message would block."""
        self._writer, self._input_blocks = writer, input_blocks
        # Each row's source, column names and values, and whether the row became a message.
        self._waiting: deque[tuple[str, Sequence[str], Any, bool]] = deque()

    def on_row(self, source: str, names: Sequence[str], values: object) -> None:
        """Store a row before it becomes a message; for `ReadingOptions.on_row`."""
        self._waiting.append((source, names, values, False))

    def track_messages(self, raws: Iterable[RawMessage]) -> Iterator[RawMessage]:
        """Yield messages; a message that does not come from a table gets a row with its source."""
        for raw in raws:
            row: tuple[str, Sequence[str], Any] = raw.source, _SOURCE, (raw.source,)
            if self._waiting and self._waiting[-1][0] == raw.source and not self._waiting[-1][-1]:
                row = self._waiting.pop()[:-1]
            self._waiting.append((*row, True))
            yield raw

    def add(self, verdict: Verdict | None) -> None:
        """Write the skipped rows before a verdict's row, and this row; None: all stored rows."""
        while self._waiting:
            source, names, values, is_message = self._waiting.popleft()
            has_verdict = is_message and verdict is not None and source == verdict.source
            fields = verdict.as_json() if has_verdict and verdict else {}
            if has_verdict or not is_message:
                added = {name: fields.get(name) for name in VERDICT_COLUMNS}
                self._writer.add(source, names, values, added)
            if has_verdict:
                break
        if self._input_blocks():
            self._writer.file.flush()

    def close(self) -> None:
        """Write the rows that were skipped after the last message, and the end of the file."""
        self.add(None)
        self._writer.close()


# Files to write


def check_outputs(files: Mapping[str, Path | None], sources: Iterable[str], model: object) -> None:
    """Raise SourceError if a file to write is a named source, the model or another file to write.

    files: option -> path.  model: the path of the model; None if no model is read.
    """
    taken = {real_name(source): "a source" for source in sources if source != STDIN}
    taken |= {} if model is None else {real_name(str(model)): "the model"}
    for option, path in files.items():
        if path is None or (path.exists() and not path.is_file()):  # such as /dev/null
            continue
        owner = taken.setdefault(real_name(str(path)), f"the file of {option}")
        if owner != f"the file of {option}":
            raise SourceError(f"{option} {path}: is {owner}, and would be lost; name another file")
