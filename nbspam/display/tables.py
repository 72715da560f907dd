"""Files to write: tables of verdicts, with the columns of a table that was read.

CSV, TSV, JSON and JSON lines are written row by row, Parquet and Excel at the end.  All text is
UTF-8.

A spreadsheet takes a cell of a CSV that begins with one of `=+-@`, a tab, CR, LF or NUL for a
formula, which may run a program, and a sender chooses the text.  An apostrophe before the cell
makes it text (OWASP, "CSV injection", and ASVS 1.2.10); a number such as -1,5 stays one.  Excel
workbooks have texts and formulas apart, so there texts stay as they are.
"""

import csv
import json
import os
import re
import stat
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from importlib.util import find_spec
from itertools import zip_longest
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

from nbspam.errors import NbspamError, OptionError, SourceError, TableError, needs_extra, one_line
from nbspam.reading.columns import VERDICT_COLUMNS
from nbspam.reading.message import RawMessage
from nbspam.reading.rows import field
from nbspam.reading.source import STDIN, ReadingNote
from nbspam.scoring.verdict import Verdict
from nbspam.store.model_file import is_model_like
from nbspam.store.writing import replaced

if TYPE_CHECKING:
    from nbspam.reading.cutting import SourcePiece

_DELIMITERS = {"csv": ",", "tsv": "\t"}
_PACKAGES = {"parquet": ("pyarrow", "parquet"), "xlsx": ("openpyxl", "excel")}  # and extras
FORMS = (*_DELIMITERS, "jsonl", "json", *_PACKAGES)  # and the endings of files
_FORMULA = tuple("=+-@\t\r\n\0")
_NUMBER = re.compile(r"[-+]?(?:|[\d.,' \u00a0\u202f]*\d(?:e[-+]?\d+)? ?%?|inf|nan)", re.IGNORECASE)
_SOURCE = ("source",)  # the column of a message that is in no table
# What Excel can hold: rows below the header, characters of a cell, digits of a whole number.
_SHEET_ROWS, _CELL, _DIGITS = (1 << 20) - 1, 32_767, 15
_NO_XML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def form_of(path: Path) -> str:
    """Return the form of a table file by its ending, one of FORMS.

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
def opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that takes the place of an old one when it is whole; a pipe is written as it is.

    Raises ModelError when it cannot be written.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
    else:
        place = Path(os.path.realpath(path))  # a link keeps pointing at the file
        with replaced(place, "file", f".{os.getpid()}") as file:
            yield file


def added_names(names: Iterable[str], added: Iterable[str] = VERDICT_COLUMNS) -> list[str]:
    """Return the names of the added columns: with _2, _3 … if the table has one of them."""
    taken, added = {*names}, list(added)
    numbered, n = added, 1
    while taken.intersection(numbered):
        n += 1
        numbered = [f"{name}_{n}" for name in added]
    return numbered


def numbering(table: str, names: Iterable[str], added: Iterable[str]) -> str:
    """Return a sentence on added columns that are numbered; "" if they are not.

    names: of the table's own columns.
    """
    taken = {*names}.intersection(VERDICT_COLUMNS)
    where = ", ".join(map(repr, added))
    return (
        f"{table}: has the column {min(taken)!r}, so the verdicts are in {where}" if taken else ""
    )


class TableWriter:
    """Writes rows into an open file.

    form: one of FORMS.  keeps_formulas: leave what a spreadsheet would take for a formula.
    say: called with the sentence that the added columns have other names.
    """

    def __init__(
        self,
        file: IO[bytes],
        form: str,
        keeps_formulas: bool = False,
        say: Callable[[str], object] = str,
    ) -> None:
        self.file, self._form, self._keeps_formulas, self._say = file, form, keeps_formulas, say
        self._is_json, self._is_terminal = form in ("json", "jsonl"), file.isatty()
        self._names: Sequence[str] | None = None  # of the last table
        self._columns: list[str] = []  # of the last table, none twice
        self._added: list[str] = []
        self._rows: list[list[Any]] = []  # of Parquet and Excel
        self._before = "[\n"  # a JSON record
        self._csv = csv.writer(self, delimiter=_DELIMITERS.get(form, ","))

    def write(self, text: str) -> None:
        """Write a text, of csv.writer a line.

        That quotes a CR in a cell only if lines end with CR, too.  An unpaired surrogate, which
        JSON can contain, is written as JSON escapes it.  A terminal gets nothing that commands it.
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

        names: of the columns; one object for all rows of a table.
        values: in the order of the names, or a JSON object, which may have others; None only
            begins the table.
        added: columns that every row has, after those of the table.
        Raises TableError if the file cannot have such a row beside the first.
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
            self.write(f"{text}\n" if self._form == "jsonl" else f"{self._before}{text}")
            self._before = ",\n"
            return
        if isinstance(values, Mapping):
            values = [field(values, name) for name in names]
        cells = [*values, *[None] * (len(names) - len(values)), *added.values()]
        if self._form in _DELIMITERS:
            self._csv.writerow(map(self._text, cells))
        else:
            self._rows.append(cells)

    def _begin(self, source: str, names: Sequence[str], added: Mapping[str, object]) -> None:
        """Begin a table; the tables in a file that has one header have the same."""
        is_first = self._names is None
        if not (is_first or self._is_json or list(names) == list(self._names or ())):
            raise TableError(
                f"{source}: has other columns than the sources before it; write it to a file of"
                " its own, or write JSON lines"
            )
        self._names, self._columns = names, []
        for name in names:
            self._columns += added_names(self._columns, [name])
        before, self._added = self._added, added_names(self._columns, added)
        if self._added != before and (sentence := numbering(source, names, self._added)):
            self._say(sentence)
        if is_first and self._form in _DELIMITERS:
            self._csv.writerow(map(self._text, [*names, *self._added]))

    def _text(self, value: object) -> object:
        """Return a cell of a CSV or TSV."""
        if isinstance(value, str):
            is_formula = value.startswith(_FORMULA) and not self._keeps_formulas
            return f"'{value}" if is_formula and not _NUMBER.fullmatch(value) else value
        return _flat(value)

    def close(self) -> None:
        """Write what comes at the end."""
        columns = [*self._columns, *self._added]
        if self._form == "json":
            self.write("[]\n" if self._before == "[\n" else "\n]\n")
        elif self._form == "parquet":
            _write_parquet(self.file, columns, self._rows)
        elif self._form == "xlsx":
            _write_workbook(self.file, columns, self._rows)
        self.file.flush()


def _json(value: object) -> str:
    """Return a value as JSON, which has no NaN and nothing infinite: these become null."""
    as_text = partial(json.dumps, ensure_ascii=False, default=_plain)
    try:
        return as_text(value, allow_nan=False)
    except ValueError:
        return as_text(json.loads(as_text(value), parse_constant=lambda _: None))


def _plain(value: Any) -> object:
    """Return what JSON has of a value that it does not know: of numpy a list, else its text."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


def _flat(value: Any) -> object:
    """Return a cell: an object or a list as JSON."""
    if isinstance(value, Mapping | list | tuple) or hasattr(value, "tolist"):
        return _json(value)
    return value


def _write_parquet(file: IO[bytes], columns: list[str], rows: list[list[Any]]) -> None:
    import pyarrow as pa  # type: ignore[import-untyped]
    from pyarrow import parquet

    arrays = []
    for values in zip(*rows, strict=True) if rows else [()] * len(columns):
        try:
            arrays.append(pa.array(values))
        except (pa.ArrowException, OverflowError, UnicodeError):  # of several types
            texts = (None if v is None else _NO_XML.sub("\ufffd", str(_flat(v))) for v in values)
            arrays.append(pa.array(list(texts), pa.string()))
    parquet.write_table(pa.table(arrays, names=columns), file)


def _write_workbook(file: IO[bytes], columns: list[str], rows: list[list[Any]]) -> None:
    """Write a workbook of one sheet; raises TableError for what a sheet cannot have."""
    from datetime import date

    from openpyxl import Workbook  # type: ignore[import-untyped]
    from openpyxl.cell import WriteOnlyCell  # type: ignore[import-untyped]

    book = Workbook(write_only=True)
    sheet = book.create_sheet("verdicts")

    def check(what: str, n: int, most: int) -> None:
        if n > most:
            raise TableError(
                f"the table has {n:,} {what}, and Excel holds {most:,}; write .csv or .parquet"
            )

    def cell(value: Any) -> object:
        is_long = isinstance(value, int) and len(str(value)) > _DIGITS
        is_plain = value is None or isinstance(value, int | float | date)
        if is_plain and not (is_long or getattr(value, "tzinfo", None)):
            return value
        text = _NO_XML.sub("\ufffd", str(_flat(value)))
        check("characters in a cell", len(text), _CELL)
        shown = WriteOnlyCell(sheet, text)
        shown.data_type = "s"  # neither a formula nor an error such as #N/A
        return shown

    check("rows", len(rows), _SHEET_ROWS)
    # All before the first: openpyxl complains of a sheet that is left half written.
    for row in [list(map(cell, row)) for row in [columns, *rows]]:
        sheet.append(row)
    book.save(file)


class VerdictTable:
    """Joins the rows that are read with their verdicts, which come later in the same order.

    A row that was skipped has no verdict.  As many rows wait as messages are read ahead.
    """

    def __init__(
        self, writer: TableWriter, pauses: Callable[[], bool], files: "OutputFiles"
    ) -> None:
        """pauses: whether the next message would have to be waited for.  files: to be written."""
        self._writer, self._pauses, self._files = writer, pauses, files
        # Each row's source, the names of its columns, its values, and whether it is a message.
        self._waiting: deque[tuple[str, Sequence[str], Any, bool]] = deque()

    def on_row(self, source: str, names: Sequence[str], values: object) -> None:
        """Take a row before it becomes a message: `ReadingOptions.on_row`."""
        self._waiting.append((source, names, values, False))

    def noted(self, raws: Iterable[RawMessage]) -> Iterator[RawMessage]:
        """Yield messages; one that is no row gets a row of its source alone.

        Raises SourceError at one in a file that is written.
        """
        for raw in self._files.guarded(raws):
            row: tuple[str, Sequence[str], Any] = raw.source, _SOURCE, (raw.source,)
            if self._waiting and self._waiting[-1][0] == raw.source and not self._waiting[-1][-1]:
                row = self._waiting.pop()[:-1]
            self._waiting.append((*row, True))
            yield raw

    def add(self, verdict: Verdict | None) -> None:
        """Write the row of a verdict, and before it those that were skipped; None: the last."""
        while self._waiting:
            source, names, values, is_message = self._waiting.popleft()
            is_its = is_message and verdict is not None and source == verdict.source
            shown = verdict.as_json() if is_its and verdict else {}
            if is_its or not is_message:
                added = {name: shown.get(name) for name in VERDICT_COLUMNS}
                self._writer.add(source, names, values, added)
            if is_its:
                break
        if self._pauses():
            self._writer.file.flush()

    def close(self) -> None:
        """Write the rows that were skipped after the last message, and what ends the file."""
        self.add(None)
        self._writer.close()


# Files to write

A = TypeVar("A", bound="RawMessage | ReadingNote | SourcePiece")


class OutputFiles:
    """The files to write beside what is read, of which none may be lost.

    All that is read is compared with them, by device and inode, so that neither a link nor another
    path leads around that.
    """

    def __init__(self, files: Mapping[str, Path | None]) -> None:
        """Take the files by the options that name them; raises SourceError for one named twice."""
        self._files: dict[_Identity, tuple[str, Path]] = {}
        for option, path in files.items():
            if path is not None:
                other, _ = self._files.setdefault(_identity(path), (option, path))
                if other != option:
                    raise SourceError(
                        f"{option} {path}: {other} writes to the same file; name another file"
                    )

    def check(self, sources: Iterable[str], model: Path | None, others: Mapping[str, str]) -> None:
        """Raise SourceError if a file is one that is read, or a model, and would be lost.

        model: that is read, if one is.  others: what each other file is that is read.
        """
        if model is not None:
            self._refuse(model, "the model")
        for name, what in others.items():
            self._refuse(name, what)
        for source in sources:
            self._refuse(0 if source == STDIN else source, "a source")
        for identity, (option, path) in self._files.items():
            if isinstance(identity, tuple) and is_model_like(path):  # a pipe is not opened
                raise _lost(option, path, "a model")

    def guarded(self, raws: Iterable[A]) -> Iterator[A]:
        """Yield messages or pieces; raises SourceError at one that is in a file to write.

        So what a folder or an index names is guarded too.
        """
        last = ""
        for raw in raws:
            for name in _files_of(raw) if self._files else ():
                if name != last:
                    self._refuse(name, "a source")
                    last = name
            yield raw

    def _refuse(self, name: Path | str | int, what: str) -> None:
        identity = _identity(name)
        if isinstance(identity, tuple) and identity in self._files:
            raise _lost(*self._files[identity], what)


def _files_of(raw: "RawMessage | ReadingNote | SourcePiece") -> tuple[str, ...]:
    if isinstance(raw, ReadingNote):
        return ()
    if not isinstance(raw, RawMessage):
        return raw.files
    name = raw.source
    if isinstance(raw.content, str | bytes):  # `path:line` or `path:number`
        name = name.rpartition(":")[0] or name
    return (name,)


def _lost(option: str, path: Path, what: str) -> SourceError:
    return SourceError(f"{option} {path}: is {what}, and would be lost; name another file")


_Identity = tuple[int, int] | str  # device and inode of a regular file; the path of any other


def _identity(path: Path | str | int) -> _Identity:
    """Return which file a path or descriptor is."""
    with suppress(OSError, ValueError):
        status = os.stat(path)  # noqa: PTH116 (a descriptor has no Path)
        if stat.S_ISREG(status.st_mode):
            return status.st_dev, status.st_ino
    return os.path.realpath(str(path))
