"""Rows of labelled text: TSV, CSV, JSON lines and Parquet.

A table is streamed, but for Parquet.  Columns are found by name, else by content; text is UTF-8,
line by line, and where a line is not, Windows-1252 (what Excel and Kaggle hand out).
"""

import csv
import io
import itertools
import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from nbspam.errors import TableError
from nbspam.labels import HAM, SPAM, normal_label
from nbspam.reading.compression import bare_suffix, open_bytes
from nbspam.reading.raw_message import RawMessage
from nbspam.reading.skips import Skips

TABLE_SUFFIXES = frozenset({".tsv", ".tab", ".csv", ".jsonl", ".ndjson", ".parquet"})
LABEL_NAMES = ("label", "class", "category", "v1", "spam", "is_spam", "type", "target", "verdict")
TEXT_NAMES = (
    *("text", "message", "sms", "body", "content", "v2", "email", "mail"),
    *("teks", "texto", "texte", "nachricht", "messages", "message_text", "sms_text"),
)
_SAMPLE_ROWS = 200  # rows looked at to find the columns
_CLASSES_LIMIT = 20  # a column with more distinct values than this is not a label
_ROW_LINES_LIMIT = 1_000  # a row over more lines is an opening quote that nothing closes
_LINE_LIMIT = 4 << 20  # bytes of one line
_FAILURES_LIMIT = 20
_SAMPLE_CHARACTERS = 1 << 20  # of the rows looked at, so that huge cells are not all held
_NAMES_SHOWN, _NAME_SHOWN = 20, 40  # columns, and characters of each, that a sentence holds
_CELL_LIMIT = 16 << 20  # characters of a quoted cell
_QUOTED = re.compile(r'"[^"]*"')
_SURROGATES = re.compile("[\ud800-\udfff]")


T = TypeVar("T")


class TableOptions(NamedTuple):
    """What the user said about a table; None is for the program to find out."""

    text_column: str | None = None
    label_column: str | None = None
    encoding: str | None = None


Row = tuple[int, Sequence[str]]  # the line a row begins on, its cells


def read_table(
    path: Path, options: TableOptions, skips: Skips, labelled: bool
) -> Iterator[RawMessage]:
    """Yield the rows of a table as messages.

    labelled: whether every row must have a label; else the labels are taken where there are any.
    Raises TableError when the columns cannot be found, OSError when the file cannot be read.
    """
    suffix = bare_suffix(path)
    with open_bytes(path) as stream:
        is_parquet = suffix == ".parquet" or stream.read(4) == b"PAR1"
    if is_parquet:
        header: list[str] | None
        header, rows = _parquet_rows(path)
    elif suffix in (".jsonl", ".ndjson"):
        header, rows = _json_rows(path, options, skips)
    else:
        header, rows = None, _delimited_rows(path, options, skips)
    sample = list(_sample(rows, lambda row: sum(map(len, row[1]))))
    if not sample:
        raise TableError(f"{path}: the table is empty; give one with a label and a text a row")
    if header is None and _is_header(sample, options):
        header = [name.strip() for name in sample.pop(0)[1]]
        while header and not header[-1]:  # Kaggle's `v1,v2,,,`: there the text runs on
            header.pop()
    columns = _Columns(path, header, [cells for _, cells in sample], options, labelled)
    for line, cells in itertools.chain(sample, rows):
        source = f"{path}:{line}"
        if len(cells) <= columns.text:
            skips(source, "the row has no text")
            continue
        if len(cells) > columns.width and columns.text == columns.width - 1:
            # A bare delimiter in the text.
            cells = [*cells[: columns.text], " ".join(filter(None, cells[columns.text :]))]
        label = columns.label_of(cells)
        if labelled and not label:
            skips(source, "the row has no label")
            continue
        yield RawMessage(source, label, cells[columns.text])


class _Columns:
    """Which cell of a row is its text, and which its label."""

    def __init__(
        self,
        path: Path,
        header: Sequence[str] | None,
        sample: Sequence[Sequence[str]],
        options: TableOptions,
        labelled: bool,
    ) -> None:
        widths = [len(row) for row in sample] or [len(header or ())]
        self.width = len(header) if header else max(set(widths), key=widths.count)
        names = list(header or ()) or [str(n + 1) for n in range(self.width)]
        named_ones = [name for name in names if name]
        shown = ", ".join(repr(name[:_NAME_SHOWN]) for name in named_ones[:_NAMES_SHOWN])
        if len(named_ones) > _NAMES_SHOWN:
            shown += f" and {len(named_ones) - _NAMES_SHOWN} more"
        lower = [name.lower() for name in names]

        def named(option: str, wanted: str) -> int:
            if wanted.lower() not in lower:
                raise TableError(
                    f"{path}: there is no column {wanted!r}; give --{option} one of {shown}"
                )
            return lower.index(wanted.lower())

        def known(candidates: Iterable[str]) -> int | None:
            return next((lower.index(name) for name in candidates if name in lower), None)

        columns = [[row[i] for row in sample if i < len(row)] for i in range(len(names))]
        label: int | None
        if options.label_column is not None:
            label = named("label-column", options.label_column)
        else:
            label = known(LABEL_NAMES) if header else None
            if label is None:
                label = _label_by_content(columns)
        if options.text_column is not None:
            text: int | None = named("text-column", options.text_column)
        else:
            text = known(TEXT_NAMES) if header else None
            if text is None or text == label:
                text = _text_by_content(columns, label)
        if text is None or text == label:
            # One column, and no second for the label: it is the text.
            text, label = (0, None) if text is None else (text, None)
        if labelled and label is None:
            raise TableError(
                f"{path}: no column among {shown} looks like a label; name it with --label-column"
            )
        self.text: int = text
        self.label: int | None = label
        # `spam` with 1 and 0 is a column of yes and no, not of classes called 1 and 0.
        self._yes_no = label is not None and lower[label] in ("spam", "is_spam")

    def label_of(self, cells: Sequence[str]) -> str | None:
        if self.label is None or self.label >= len(cells):
            return None
        label = normal_label(cells[self.label])
        if self._yes_no:
            label = {"1": SPAM, "true": SPAM, "yes": SPAM, "0": HAM, "false": HAM, "no": HAM}.get(
                label.lower(), label
            )
        return label or None


def _label_by_content(columns: list[list[str]]) -> int | None:
    """Return the column that says ham or spam, else the one with the fewest short values.

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
            and max(map(len, values)) <= 24
        ):
            says = {SPAM, HAM} & {value.lower() for value in values}
            this = (not says, len(values) == 1, len(values), i)
            best = min(best or this, this)
    return best and best[3]


def _text_by_content(columns: list[list[str]], label: int | None) -> int | None:
    """Return the column with the longest cells, the label's aside."""
    lengths = [(sum(map(len, c)), -i) for i, c in enumerate(columns) if i != label]
    return -max(lengths)[1] if lengths else None


def _is_header(sample: Sequence[Row], options: TableOptions) -> bool:
    """Return whether the first row names the columns."""
    first = [cell.strip().lower() for cell in sample[0][1]]
    asked = {name.lower() for name in (options.text_column, options.label_column) if name}
    if asked & set(first):
        return True
    if SPAM in first and not any(cell in TEXT_NAMES for cell in first):
        return False  # a column may be called spam, but so may the first row's class
    return any(cell in LABEL_NAMES or cell in TEXT_NAMES for cell in first)


# Lines, and the cells in them


def _lines(path: Path, encoding: str | None, skips: Skips) -> Iterator[tuple[int, str]]:
    """Yield (line number, text with its line end) of a text file, split at LF alone."""
    with open_bytes(path) as stream:
        number = 0
        while line := stream.readline(_LINE_LIMIT):
            number += 1
            if number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
                if line.startswith((b"\xff\xfe", b"\xfe\xff")) and not encoding:
                    raise TableError(f"{path}: the file is UTF-16; add --encoding utf-16")
            try:
                yield number, line.decode(encoding or "utf-8")
            except UnicodeError as error:
                if encoding:
                    reason = getattr(error, "reason", error)
                    skips(f"{path}:{number}", f"the line is not {encoding} ({reason})")
                else:
                    yield number, line.decode("cp1252", "replace")


def read_lines(path: Path, encoding: str | None, skips: Skips) -> Iterator[tuple[int, str]]:
    """Yield (line number, text) of a file with one message a line; blank lines are none."""
    for number, line in _decoded_lines(path, encoding, skips):
        if line.strip():
            yield number, line.rstrip("\r\n")


def _decoded_lines(path: Path, encoding: str | None, skips: Skips) -> Iterator[tuple[int, str]]:
    if encoding and encoding.lower().replace("_", "-").startswith(("utf-16", "utf-32")):
        with open_bytes(path) as stream:  # LF is not one byte there
            text = io.TextIOWrapper(stream, encoding, errors="replace", newline="\n")
            for number, line in enumerate(text, 1):
                yield number, line.removeprefix("\ufeff") if number == 1 else line
    else:
        yield from _lines(path, encoding, skips)


def _delimited_rows(path: Path, options: TableOptions, skips: Skips) -> Iterator[Row]:
    lines = _decoded_lines(path, options.encoding, skips)
    head = list(_sample(lines, lambda line: len(line[1])))
    lines = itertools.chain(head, lines)
    sample = [line for _, line in head]
    delimiter = "\t"
    if bare_suffix(path) == ".csv":
        delimiter = _delimiter(sample)
    if delimiter == "\t" and not _is_quoted(path, options.encoding):
        for number, line in lines:
            if line.strip():
                yield number, line.rstrip("\r\n").split("\t")
        return
    yield from _csv_rows(path, lines, delimiter, skips)


def _sample(items: Iterator[T], size: Callable[[T], int]) -> Iterator[T]:
    """Yield the first items, as many as are looked at to find out what a table is like."""
    left = _SAMPLE_CHARACTERS
    for item in itertools.islice(items, _SAMPLE_ROWS):
        yield item
        left -= size(item)
        if left < 0:
            return


def _delimiter(sample: list[str]) -> str:
    """Return the mark that most lines have; of several, the one that the first line has first."""
    first = _QUOTED.sub("", sample[0]) if sample else ""

    def likely(mark: str) -> tuple[int, int]:
        at = first.find(mark)
        return sum(mark in line for line in sample) if at >= 0 else 0, -at

    return max(",;\t|", key=likely)


def _csv_rows(
    path: Path, lines: Iterator[tuple[int, str]], delimiter: str, skips: Skips
) -> Iterator[Row]:
    """Yield the rows of a CSV.  A quote that nothing closes costs the row it is in, no other.

    A row that is not strict CSV is one line whose quotes are its text's own.
    """
    csv.field_size_limit(_CELL_LIMIT)
    again: deque[tuple[int, str]] = deque()  # lines to be read once more
    taken: list[tuple[int, str]] = []  # the lines of the row being read
    ended = False
    failed = 0

    def text() -> Iterator[str]:
        nonlocal ended
        # Each failure reads its lines once more; a file of nothing but failures has no long rows.
        while len(taken) <= (_ROW_LINES_LIMIT if failed < _FAILURES_LIMIT else 0):
            following = again.popleft() if again else next(lines, None)
            if following is None:
                break
            taken.append(following)
            yield following[1]
        ended = True

    while True:
        taken.clear()
        ended = False
        reader = csv.reader(text(), delimiter=delimiter, strict=True)
        try:
            for cells in reader:
                if ended:  # within a row: its quote is still open
                    break
                if cells:
                    yield taken[0][0], cells
                taken.clear()
            if not taken:
                return
            skips(f"{path}:{taken[0][0]}", "a quote opened here is never closed")
        except csv.Error as error:
            if not taken:
                return
            number, line = taken[0]
            if "unexpected end of data" in str(error):
                skips(f"{path}:{number}", "a quote opened here is never closed")
            elif "field limit" in str(error):
                skips(f"{path}:{number}", f"the row is not CSV ({error})")
            else:
                yield number, line.rstrip("\r\n").split(delimiter)
        failed += 1
        again.extendleft(reversed(taken[1:]))


def _is_quoted(path: Path, encoding: str | None) -> bool:
    """Return whether a TSV's quotes are CSV's and not its texts' own.

    The UCI SMS collection is full of texts that begin with a quote, end with one, or both; read as
    CSV they glue messages together.  So the whole file must be strict CSV, and its quotes needed:
    every line begins with one, or every cell that does holds a quote, a tab or a line end.
    """
    lines = (line for _, line in _decoded_lines(path, encoding, Skips()))
    opened = all_lines = lines_quoted = 0

    def counted() -> Iterator[str]:
        nonlocal opened, all_lines, lines_quoted
        for line in lines:
            all_lines += 1
            lines_quoted += line.startswith('"')
            opened += line.startswith('"') or '\t"' in line
            yield line

    if not any(line.startswith('"') or '\t"' in line for line in counted()):
        return False
    lines = (line for _, line in _decoded_lines(path, encoding, Skips()))
    opened = all_lines = lines_quoted = needed = 0
    csv.field_size_limit(_CELL_LIMIT)
    try:
        for cells in csv.reader(counted(), delimiter="\t", strict=True):
            needed += any('"' in cell or "\t" in cell or "\n" in cell for cell in cells)
    except csv.Error:
        return False
    return needed >= opened or lines_quoted == all_lines


def _json_rows(
    path: Path, options: TableOptions, skips: Skips
) -> tuple[list[str] | None, Iterator[Row]]:
    """Return the names of the first row's values, and the rows, each value as text."""
    objects = _json_objects(path, options.encoding, skips)
    first = next(objects, None)
    if first is None:
        return None, iter(())
    names = list(first[1])

    def rows() -> Iterator[Row]:
        for number, value in itertools.chain([first], objects):
            yield number, [_cell(value.get(name)) for name in names]

    return names, rows()


def _json_objects(
    path: Path, encoding: str | None, skips: Skips
) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in read_lines(path, encoding, skips):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            skips(f"{path}:{number}", f"the line is not JSON ({error})")
            continue
        if isinstance(value, dict):
            yield number, value
        else:
            skips(f"{path}:{number}", "the line is not a JSON object")


def _cell(value: object) -> str:
    """Return a JSON or Parquet value as a CSV would have it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "1" if value else "0"
    # JSON can spell half of a character, which nothing can write out.
    return _SURROGATES.sub("\ufffd", value if isinstance(value, str) else str(value))


def _parquet_rows(path: Path) -> tuple[list[str], Iterator[Row]]:
    import pandas as pd

    with open_bytes(path) as stream:
        content = io.BytesIO(stream.read())  # it is read from both ends, so unpacked first
    try:
        frame = pd.read_parquet(content)
        cells = frame.astype(object).where(frame.notna(), None).itertuples(index=False, name=None)
    except ImportError as error:
        raise TableError(
            f"{path}: reading Parquet needs pyarrow; install it with: pip install 'nbspam[parquet]'"
        ) from error
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise TableError(f"{path}: not a Parquet file ({reason}); check it") from error
    return [str(name) for name in frame.columns], (
        (number, [_cell(value) for value in row]) for number, row in enumerate(cells, 1)
    )
