"""Tables as JSON lines: an object per row, a name per column."""

import json
from collections.abc import Iterator

from nbspam.reading.columns import cell_text, first_rows
from nbspam.reading.content import Content
from nbspam.reading.lines import read_lines
from nbspam.reading.rows import Rows, TableRow
from nbspam.reading.skips import Skips

_Objects = Iterator[tuple[int, dict[str, object]]]


def json_rows(content: Content, encoding: str | None, skips: Skips) -> Rows:
    """Return the rows of a table of JSON lines; the first object names the columns."""
    beginning = read_lines(content.name, content.beginning, encoding, Skips())
    objects = _objects(content.name, beginning, Skips())
    first = next(objects, None)
    lines = read_lines(content.name, content.whole, encoding, skips)
    names = [] if first is None else list(first[1])
    rows = _cells(_objects(content.name, lines, skips), names)
    if first is None:
        return Rows(None, [], rows)
    sample = [*_cells(iter([first]), names), *_cells(objects, names)]
    return Rows(names, list(first_rows(iter(sample), lambda row: sum(map(len, row[1])))), rows)


def rows_of_json(
    table: str, lines: Iterator[tuple[int, str]], names: list[str], skips: Skips
) -> Iterator[TableRow]:
    """Yield the rows of some lines of a table; names: of its columns."""
    texts = ((number, line.rstrip("\r\n")) for number, line in lines if line.strip())
    return _cells(_objects(table, texts, skips), names)


def are_json_lines(lines: list[str]) -> bool:
    """Return whether each line is a JSON object, so that they are no document together."""
    try:
        return bool(lines) and all(isinstance(json.loads(line), dict) for line in lines)
    except (ValueError, RecursionError):
        return False


def _cells(objects: _Objects, names: list[str]) -> Iterator[TableRow]:
    for number, values in objects:
        yield number, [cell_text(values.get(name)) for name in names]


def _objects(table: str, lines: Iterator[tuple[int, str]], skips: Skips) -> _Objects:
    for number, line in lines:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            skips(f"{table}:{number}", f"the line is not JSON ({error})")
            continue
        if isinstance(value, dict):
            yield number, value
        else:
            skips(f"{table}:{number}", "the line is not a JSON object")
