"""What an evaluation says of each message, written in the format that a file's name ends in.

A spreadsheet takes a cell that begins with one of `=+-@` for a formula, which may run a program,
and whoever sends a mail chooses its Subject.  An apostrophe before it makes it text.
"""

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from nbspam.errors import OptionError, install_command
from nbspam.evaluation.results import Outcome, prediction

_FORMULA = tuple("=+-@\t\r")
_PARQUET = ".parquet"
_DELIMITERS = {".csv": ",", ".tsv": "\t"}
ENDINGS = (*_DELIMITERS, ".jsonl", ".json", _PARQUET)


def check_predictions(path: Path) -> None:
    """Raise OptionError unless predictions can be written into a file of this name."""
    suffix = path.suffix.lower()
    if suffix not in ENDINGS:
        *most, last = ENDINGS
        raise OptionError(
            f"{path}: unknown format of predictions; name a file that ends"
            f" in {', '.join(most)} or {last}"
        )
    if suffix != _PARQUET:
        return
    try:
        import pyarrow  # type: ignore[import-untyped]  # noqa: F401
    except ImportError as error:
        raise OptionError(
            f"{path}: writing Parquet needs pyarrow; install it with: {install_command('pyarrow')}"
        ) from error


def write_predictions(outcomes: Iterable[Outcome], path: Path) -> None:
    """Write a record for each message into a file.

    CSV and TSV have a head line, and a column for each class where there are three or more.
    JSON is one array, JSON lines an object per line; raises OSError.
    """
    suffix = path.suffix.lower()
    if suffix == _PARQUET:
        import pyarrow as pa
        from pyarrow import parquet

        parquet.write_table(pa.Table.from_pylist(list(map(_flat, outcomes))), path)
        return
    with path.open("w", encoding="utf-8", newline="") as file:
        if suffix in _DELIMITERS:
            write_table(list(map(_flat, outcomes)), file, _DELIMITERS[suffix])
        elif suffix == ".jsonl":
            write_json_lines(outcomes, file)
        else:
            file.write("[\n" + ",\n".join(map(_json, outcomes)) + "\n]\n")


def write_json_lines(outcomes: Iterable[Outcome], file: IO[str]) -> None:
    """Write a JSON object for each message and line."""
    file.writelines(f"{_json(outcome)}\n" for outcome in outcomes)


def _json(outcome: Outcome) -> str:
    return json.dumps(prediction(outcome))


def _flat(outcome: Outcome) -> dict[str, object]:
    """Return the record of a message without records in it.

    The probability of class x is `probability_x`; of the message its Subject, From and text.
    """
    record = prediction(outcome)
    flat = {key: value for key, value in record.items() if not isinstance(value, Mapping)}
    flat.setdefault("reason", "")  # a table has it in every row
    probabilities, message = record.get("probabilities"), record.get("message")
    if isinstance(probabilities, Mapping):
        flat |= {f"probability_{name}": p for name, p in probabilities.items()}
    if isinstance(message, Mapping):
        flat |= {name: message[name] for name in ("subject", "from", "text")}
    return flat


class _Lines:
    """Ends lines with LF; csv.writer quotes a CR in a cell only if lines end with CR, too."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, line: str) -> None:
        self._file.write(line.removesuffix("\r\n") + "\n")


def write_table(rows: Sequence[Mapping[str, object]], file: IO[str], delimiter: str) -> None:
    """Write a line for each row, below one with the names of the first row's columns."""
    writer = csv.DictWriter(_Lines(file), list(rows[0]), delimiter=delimiter)
    writer.writeheader()
    writer.writerows({name: _as_text(value) for name, value in row.items()} for row in rows)


def _as_text(value: object) -> object:
    """Return what a spreadsheet shows as the value: no formula.  A label may be a number: -1."""
    if not (isinstance(value, str) and value.startswith(_FORMULA)):
        return value
    with suppress(ValueError):
        float(value)
        return value
    return f"'{value}"
