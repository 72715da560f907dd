"""Tables as JSON lines: an object per row, a name per column."""

import itertools
import json
from collections.abc import Iterator
from pathlib import Path

from nbspam.reading.columns import cell_text
from nbspam.reading.lines import read_lines
from nbspam.reading.skips import Skips


def json_rows(
    path: Path, encoding: str | None, skips: Skips
) -> tuple[list[str] | None, Iterator[tuple[int, list[str]]]]:
    """Return the names in the first object, and (line number, cells) of each; None if no object."""
    objects = _objects(path, encoding, skips)
    first = next(objects, None)
    if first is None:
        return None, iter(())
    names = list(first[1])
    return names, (
        (number, [cell_text(values.get(name)) for name in names])
        for number, values in itertools.chain([first], objects)
    )


def _objects(
    path: Path, encoding: str | None, skips: Skips
) -> Iterator[tuple[int, dict[str, object]]]:
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
