"""The rows of a text and the columns of a table.

Rows are lines, TSV and CSV, well-formed or not, and JSON lines; all are streamed.  How they are
laid out is decided by their beginning.  Of a file that may be read to its end; of a stream, which
cannot be read twice, it is what has come so far, kept in memory.

Columns are the text's and the label's: each is found by the name that the user gives, else by a
usual name, else by its content.  And whether the first row names them.
"""

import csv
import io
import itertools
import json
import re
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from nbspam.errors import Remedy, TableError
from nbspam.names import HAM, SPAM, answer_label, cell_label, normal_label
from nbspam.reading.charsets import is_wide, wide_encoding
from nbspam.reading.compression import Taken
from nbspam.reading.source import Skips, Source, TableOptions, has_more

Opened = Callable[[], io.BufferedReader]
Line = tuple[int, str]  # its number, its text with the line end
TableRow = tuple[int, Sequence[str]]  # the line on which a row begins, and its cells

SAMPLE_ROWS = 200  # rows in which the columns are searched
SAMPLE_CHARACTERS = 1 << 20  # of those rows, so that huge cells are not all kept in memory
_LINE_LIMIT = 4 << 20  # bytes of one line
_WIDE_SAMPLE = 4 << 10  # bytes in which UTF-16 is recognised


# Lines


def decoded_lines(
    name: str, opened: Opened, encoding: str | None, skips: Skips, first: int = 1
) -> Iterator[Line]:
    """Yield (line number, text with its line end) of a text, split at LF alone.

    name: the text's, in errors.  opened: called for its bytes when the first line is asked for.
    encoding: None is UTF-8, and Windows-1252 for a line that is not UTF-8.
    first: the number of the first line, of a part of a text.
    Raises TableError for UTF-16 and UTF-32 without their names.
    """
    with opened() as stream:
        if is_wide(encoding):
            text = io.TextIOWrapper(stream, encoding, errors="replace", newline="\n")
            for number, wide_line in enumerate(text, 1):
                yield number, wide_line.removeprefix("\ufeff") if number == 1 else wide_line
            return
        sample = stream.peek(1)[:_WIDE_SAMPLE] if isinstance(stream, io.BufferedReader) else b""
        if first == 1 and not encoding and (wide := wide_encoding(sample)):
            kind = wide.upper()[: len("utf-16")]
            raise TableError(f"{name}: the file is {kind}", Remedy.NAME_UTF, encoding=wide)
        for number, line in enumerate(each_line(stream), first):
            if number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            try:
                yield number, line.decode(encoding or "utf-8")
            except UnicodeError as error:
                if encoding:
                    reason = getattr(error, "reason", error)
                    skips(f"{name}:{number}", f"the line is not {encoding} ({reason})")
                else:
                    yield number, line.decode("cp1252", "replace")


def each_line(stream: io.BufferedReader) -> Iterator[bytes]:
    """Yield the lines of a text as bytes, which is what is numbered; a long one is several."""
    while line := stream.readline(_LINE_LIMIT):
        yield line


def filled(lines: Iterator[Line]) -> Iterator[Line]:
    """Yield the lines that are not blank, without their line ends."""
    for number, line in lines:
        if line.strip():
            yield number, line.rstrip("\r\n")


# The bytes of a table

# Seconds from a stream's first bytes on in which its beginning is gathered, if its rows are to be
# answered as they come.  A pipe from a file brings 200 rows within a hundredth of one.
PATIENCE = 0.5
_CHUNK = 1 << 16
PARQUET = b"PAR1"  # the first bytes of every Parquet file
_FORMS = {".tab": "tsv", ".ndjson": "jsonl", ".xlsm": "xlsx"}


class Content(NamedTuple):
    """A table's bytes."""

    name: str  # in errors, and of its rows
    form: str  # "tsv", "csv", "jsonl", "json", "parquet" or "xlsx"
    encoding: str | None
    whole: Opened  # opens all of it; of a stream once
    beginning: Opened  # opens what its layout is decided by
    is_cut: bool = False  # whether more follows the beginning

    def first_lines(self) -> Iterator[Line]:
        """Yield the lines that its layout is decided by."""
        return decoded_lines(self.name, self.beginning, self.encoding, Skips())


def file_content(source: Source, form: str | None = None, encoding: str | None = None) -> Content:
    """Return a file's bytes; form: that of its name, if None."""
    form = form or _FORMS.get(source.suffix, source.suffix[1:])
    if source.sample.startswith(PARQUET):
        form = "parquet"
    return Content(source.title, form, encoding, source.opened, source.opened)


def stream_content(
    name: str,
    stream: io.BufferedReader,
    form: str,
    encoding: str | None,
    patience: float | None = None,
) -> Content:
    """Return a stream's bytes, its first ones read.

    They are as many as columns are searched in, or what came in `patience` seconds: one line at
    least.  patience: None waits as long as it takes.
    """
    first, is_cut, started = b"", True, 0.0
    while is_cut and first.count(b"\n") <= SAMPLE_ROWS and len(first) < SAMPLE_CHARACTERS:
        if patience is not None and b"\n" in first:
            left = started + patience - time.monotonic()
            if not has_more(stream, max(left, 0)):
                break
        piece = stream.read1(_CHUNK)
        is_cut, first = bool(piece), first + piece
        started = started or time.monotonic()
    beginning = first[: first.rfind(b"\n") + 1] if is_cut else first
    came = io.BytesIO(first)

    def take(n: int) -> bytes:
        return came.read(n) or stream.read1(n)  # what is there, without waiting for more

    def whole() -> io.BufferedReader:
        return io.BufferedReader(Taken(take, stream), _CHUNK)

    def begun() -> io.BufferedReader:
        return io.BufferedReader(io.BytesIO(beginning))

    return Content(name, form, encoding, whole, begun, is_cut)


# Rows

CELL_LIMIT = 16 << 20  # characters of a quoted cell
_ROW_LINES_LIMIT = 1_000  # a row of more lines has an opening quote that is never closed
_FAILURES_LIMIT = 20  # rows that fail before the table is read as one row per line
_QUOTED = re.compile(r'"[^"]*"')


class Layout(NamedTuple):
    """How the rows of a table are written."""

    delimiter: str  # "" of JSON lines
    is_quoted: bool = False
    names: list[str] | None = None  # of the columns, where the format has them


def layout_of(content: Content) -> Layout:
    """Return the layout of a TSV, a CSV or JSON lines.

    In a CSV file the delimiter may be another than the comma: it is the one in most lines; of
    several, the one that is first in the first line.  JSON's first object names the columns.
    """
    lines = content.first_lines()
    if content.form == "jsonl":
        names = next((list(found) for _, found in _objects("", lines, Skips())), None)
        return Layout("", names=names)
    delimiter = "\t"
    if content.form == "csv":
        sample = [text for _, text in first_rows(lines)]
        first = _QUOTED.sub("", sample[0]) if sample else ""

        def rank(mark: str) -> tuple[int, int]:
            at = first.find(mark)
            return sum(mark in line for line in sample) if at >= 0 else 0, -at

        delimiter = max(",;\t|", key=rank)
    return Layout(delimiter, is_quoted=delimiter != "\t" or _is_quoted_tsv(content))


def _is_quoted_tsv(content: Content) -> bool:
    """Return whether a TSV's quotes are CSV's and do not belong to its texts.

    The UCI SMS collection is full of texts that begin with a quote, end with one, or both; read as
    CSV they run together.  So all of it must be strict CSV, and its quotes needed: every line
    begins with one, or every cell that does contains a quote, a tab or a line end.  Of a stream it
    is its beginning that must be so, up to the last row, which may be cut, and have quotes.
    """

    def has_quoted_cell(line: str) -> bool:
        return line.startswith('"') or '\t"' in line

    if not any(has_quoted_cell(line) for _, line in content.first_lines()):
        return False
    seen = 0, 0, 0  # lines; those that begin with a quote; those in which a cell does

    def counted() -> Iterator[str]:
        nonlocal seen
        for _, line in content.first_lines():
            seen = seen[0] + 1, seen[1] + line.startswith('"'), seen[2] + has_quoted_cell(line)
            yield line

    needed, whole = 0, seen  # as of the last row that is whole
    csv.field_size_limit(CELL_LIMIT)
    try:
        for cells in csv.reader(counted(), delimiter="\t", strict=True):
            needed += any('"' in cell or "\t" in cell or "\n" in cell for cell in cells)
            whole = seen
    except csv.Error as error:
        if not (content.is_cut and "unexpected end of data" in str(error)):
            return False
    n_lines, quoted_lines, quoted_cells = whole
    return bool(quoted_cells) and (needed >= quoted_cells or quoted_lines == n_lines)


S = TypeVar("S", bound=Sequence[str])


def first_rows(rows: Iterator[tuple[int, S]]) -> Iterator[tuple[int, S]]:
    """Yield the first lines or rows, in which the columns are searched."""
    left = SAMPLE_CHARACTERS
    for row in itertools.islice(rows, SAMPLE_ROWS):
        yield row
        left -= sum(map(len, row[1]))
        if left < 0:
            return


def rows_of(name: str, lines: Iterator[Line], layout: Layout, skips: Skips) -> Iterator[TableRow]:
    """Yield (number of its first line, cells) of each row of some lines of a table."""
    if not layout.delimiter:
        for number, values in _objects(name, lines, skips):
            yield number, [cell_text(values.get(column)) for column in layout.names or ()]
    elif layout.is_quoted:
        yield from _csv_rows(name, lines, layout.delimiter, skips)
    else:
        for number, line in filled(lines):
            yield number, line.split(layout.delimiter)


def _objects(
    table: str, lines: Iterator[Line], skips: Skips
) -> Iterator[tuple[int, dict[str, object]]]:
    for number, line in filled(lines):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            skips(f"{table}:{number}", f"the line is not JSON ({error})")
            continue
        if isinstance(value, dict):
            yield number, value
        else:
            skips(f"{table}:{number}", "the line is not a JSON object")


def are_json_lines(lines: list[str]) -> bool:
    """Return whether each line is a JSON object, so that they are no document together."""
    try:
        return bool(lines) and all(isinstance(json.loads(line), dict) for line in lines)
    except (ValueError, RecursionError):
        return False


def _csv_rows(name: str, lines: Iterator[Line], delimiter: str, skips: Skips) -> Iterator[TableRow]:
    """Yield the rows of a CSV file.  A quote that is never closed costs its own row, no other.

    A row that is not strict CSV is one line whose quotes belong to its text.
    """
    csv.field_size_limit(CELL_LIMIT)
    again: deque[Line] = deque()  # lines that are read once more, as a row before them failed
    failures = 0
    row: list[Line] = []  # the lines of the row being read

    def texts() -> Iterator[str]:
        # After many failures a row is one line, so that a file of nothing but failures takes
        # linear time.
        most = _ROW_LINES_LIMIT if failures < _FAILURES_LIMIT else 0
        while len(row) <= most and (line := again.popleft() if again else next(lines, None)):
            row.append(line)
            yield line[1]

    while True:
        try:
            for cells in csv.reader(texts(), delimiter=delimiter, strict=True):
                if cells:
                    yield row[0][0], cells
                row.clear()
            return
        except csv.Error as error:
            problem = str(error)
        number, line = row[0]
        if "field limit" in problem:
            skips(f"{name}:{number}", f"the row is not CSV ({problem})")
        elif "unexpected end of data" in problem:
            skips(f"{name}:{number}", "a quote opened here is never closed")
        else:
            yield number, line.rstrip("\r\n").split(delimiter)
        again.extendleft(reversed(row[1:]))
        row.clear()
        failures += 1


# Columns

# As `column_key` has them.
_YES_NO_NAMES = ("spam", "isspam", "junk", "isjunk")
LABEL_NAMES = "label class category v1 spam isspam type target verdict junk isjunk".split()
TEXT_NAMES = (
    *("text", "message", "sms", "body", "content", "v2", "email", "mail"),
    *("teks", "texto", "texte", "nachricht", "messages", "messagetext", "smstext"),
)
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
        label = normal_label(cells[self.label])
        return (cell_label(label) if self.is_yes_no else label) or None


def cell_text(value: object) -> str:
    """Return a value of JSON, Parquet or a data frame as a CSV file would have it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "1" if value else "0"
    # JSON can contain an unpaired surrogate, which cannot be encoded.
    return _SURROGATES.sub("\ufffd", value if isinstance(value, str) else str(value))


def column_key(name: str) -> str:
    """Return what names of columns are compared by: `Is spam?` is `is_spam`."""
    return re.sub(r"[\s_?]+", "", name.lower())


def names_columns(cells: Sequence[str], options: TableOptions) -> bool:
    """Return whether the first row of a table names its columns."""
    names = [column_key(cell) for cell in cells]
    wanted = {column_key(name) for name in (options.text_column, options.label_column) if name}
    if wanted & set(names):
        return True
    if {SPAM, "junk"} & set(names) and not any(name in TEXT_NAMES for name in names):
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
    contents = [[row[i] for row in sample if i < len(row)] for i in range(len(names))]

    label = _named(table, names, options.label_column, LABEL_NAMES if header else (), first)
    if label is None:
        label = label_by_content(contents)
    text = _named(table, names, options.text_column, TEXT_NAMES if header else (), first)
    if text is None or (text == label and options.text_column is None):
        text = text_by_content(contents, label)
    if text is None:
        text, label = 0, None  # the only column looked like a label; it is the text
    elif text == label:
        label = None
    if needs_labels and label is None:
        problem = f"{table}: no column among {_shown(names)} looks like a label"
        raise TableError(problem, Remedy.NAME_LABEL_COLUMN)
    is_yes_no = label is not None and column_key(names[label]) in _YES_NO_NAMES
    return Columns(text, label, width, is_yes_no)


def _named(
    table: str, names: list[str], wanted: str | None, usual: Sequence[str], first: Sequence[str]
) -> int | None:
    """Return the column that the user names, or else the first with a usual name, if there is one.

    Raises TableError if there is no such column as the user names.
    """
    # As it is typed first: two names may differ in no more than a blank.
    keys = [name.lower() for name in names] + [column_key(name) for name in names]
    tried = usual if wanted is None else [wanted.lower(), column_key(wanted)]
    found = next((keys.index(name) % len(names) for name in tried if name in keys), None)
    if found is not None or wanted is None:
        return found
    row = [cell.strip() for cell in first]
    if row and len(set(row)) == len(row) and all(len(cell) <= _NAME_SHOWN for cell in row):
        names = row
    problem = f"{table}: there is no column {wanted!r}"
    raise TableError(problem, Remedy.NAME_ONE_OF_COLUMNS, columns=_shown(names))


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
    ranks = []
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
            ranks.append((not usual, len(values) == 1, len(values), i))
    return min(ranks)[-1] if ranks else None


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
#   hundred are ("Ok").  It may be several words ("Message text", "What they wrote") if one of them
#   is a usual name, if there are three columns or more, or if the cell over the labels of two
#   classes cannot well be a third: they are 0 and 1, or yes and no, and it is no such answer, or
#   it has several words ("Verdict of reviewer") and they, in 20 rows or more, have one.  Then
#   no cell of the row has a digit.
# - The cell over the labels occurs there only once, while the others repeat, and it is neither ham
#   nor spam, unless it is over numbers.  In a table of two classes the label of a first message
#   always repeats, unless the rest of the sample is of the other class, as in a sorted file: then a
#   row is a header only over numbers or over ham and spam, or with an index.  Where no column looks
#   like a label, the row must be one of words over a column of numbers or dates; that is enough
#   where there is one beside the labels, too.  Names that pandas counted may be like the labels
#   below them.
#
# What is left is the message of one word (of a few, in three columns, or if its class is "not sure"
# beside ham and spam) that is the only one of its class in the sample, and is first, and the
# message "1" of class 0; whoever has it is told that its row was taken for a header.

_NAME_LENGTH = 40  # characters
_WORD = re.compile(r"[^\W\d]\w*(?:[.-]\w+)*")  # a bare word, as an identifier is
_TITLE = re.compile(r"[^\W\d_][^\d.!,;:]*")  # a few words
_INDEX = re.compile(r"[0-9]+")
_DIGIT = re.compile(r"\d")
_NUMBER = re.compile(r"[-+]?\d+(?:[.,]\d+)*")
_ROWS_OF_ONE_WORD = 20  # labels, at least, beside which one of several words is none


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
    labels = [] if label is None else [normal_label(cell) for cell in columns[label]]
    classes, name = set(labels), "" if label is None else normal_label(names[label])
    if text is None or not (
        are_counted
        or _WORD.fullmatch(names[text])
        or _is_title(names[text], own, _is_no_class(name, labels))
    ):
        return False
    words = sum(_WORD.fullmatch(cell) is not None for cell in columns[text])
    if len(columns[text]) < 2 or 4 * words > len(columns[text]):
        return False
    has_numbers = has_index or any(
        all(map(_DIGIT.search, column or [""])) and not _DIGIT.search(names[i])
        for i, column in enumerate(columns)
        if i not in (text, label)
    )
    if label is None:
        return has_numbers
    are_numbers = all(map(_NUMBER.fullmatch, labels))
    if not are_counted and (name in classes or (name in (HAM, SPAM) and not are_numbers)):
        return False
    if are_numbers or has_numbers:
        return len(labels) > 1
    return len(labels) >= 2 * len(classes) and (len(classes) > 1 or classes <= {HAM, SPAM})


def _is_title(name: str, names: Sequence[str], is_header: bool) -> bool:
    """Return whether several words name the column of the texts, beside those of the others."""
    is_usual = any(word in TEXT_NAMES for word in re.findall(r"\w+", name.lower()))
    return (
        (is_usual or len(names) > 2 or is_header)
        and _TITLE.fullmatch(name) is not None
        and not any(map(_DIGIT.search, names))
    )


def _is_no_class(name: str, labels: list[str]) -> bool:
    """Return whether a cell looks like none of the labels below it, which are of two classes."""
    classes = set(labels)
    answers = {answer_label(label) for label in classes - {SPAM, HAM}}
    if len(classes) == 2 and answers == {SPAM, HAM}:
        return answer_label(name) not in answers
    many = len(classes) == 2 and len(labels) >= _ROWS_OF_ONE_WORD
    return many and " " in name and not any(" " in label for label in classes)
