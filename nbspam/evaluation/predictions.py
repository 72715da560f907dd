"""What an evaluation says of each message, written in the format that a file's name ends in."""

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import IO

from nbspam.errors import OptionError, install_command
from nbspam.evaluation.json_report import prediction
from nbspam.evaluation.outcome import Outcome
from nbspam.evaluation.spreadsheet import write_table

Record = Mapping[str, object]


def write_predictions(outcomes: Iterable[Outcome], path: Path) -> None:
    """Write a record for each message into a file.

    CSV and TSV have a head line, and a column for each class where there are three or more.
    JSON is one array, JSON lines an object per line; raises OSError.
    """
    rows = [prediction(outcome) for outcome in outcomes]
    suffix = path.suffix.lower()
    if suffix == _PARQUET:
        _write_parquet(rows, path)
        return
    with path.open("w", encoding="utf-8", newline="") as file:
        _WRITERS[suffix](rows, file)


def write_json_lines(rows: Iterable[Record], file: IO[str]) -> None:
    """Write a JSON object for each record and line."""
    file.writelines(f"{json.dumps(row)}\n" for row in rows)


def _write_json(rows: Iterable[Record], file: IO[str]) -> None:
    file.write("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n")


def _write_csv(rows: Iterable[Record], file: IO[str]) -> None:
    write_table(list(map(_flat, rows)), file)


def _write_tsv(rows: Iterable[Record], file: IO[str]) -> None:
    write_table(list(map(_flat, rows)), file, "\t")


def _write_parquet(rows: Iterable[Record], path: Path) -> None:
    import pyarrow as pa  # type: ignore[import-untyped]
    from pyarrow import parquet

    parquet.write_table(pa.Table.from_pylist([_flat(row) for row in rows]), path)


def _flat(row: Record) -> dict[str, object]:
    """Return a record without records in it.

    The probability of class x is `probability_x`; of the message its Subject, From and text.
    """
    flat = {key: value for key, value in row.items() if not isinstance(value, Mapping)}
    flat.setdefault("reason", "")  # a table has it in every row
    probabilities, message = row.get("probabilities"), row.get("message")
    if isinstance(probabilities, Mapping):
        flat |= {f"probability_{name}": p for name, p in probabilities.items()}
    if isinstance(message, Mapping):
        flat |= {name: message[name] for name in ("subject", "from", "text")}
    return flat


_PARQUET = ".parquet"
_WRITERS: Mapping[str, Callable[[Iterable[Record], IO[str]], None]] = {
    ".csv": _write_csv,
    ".tsv": _write_tsv,
    ".jsonl": write_json_lines,
    ".json": _write_json,
}
ENDINGS = (*_WRITERS, _PARQUET)


def check_predictions(path: Path) -> None:
    """Raise OptionError unless predictions can be written into a file of this name."""
    suffix = path.suffix.lower()
    if suffix not in ENDINGS:
        *most, last = ENDINGS
        raise OptionError(
            f"{path}: the ending says in which format to write predictions; name a file that ends"
            f" in {', '.join(most)} or {last}"
        )
    if suffix != _PARQUET:
        return
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise OptionError(
            f"{path}: writing Parquet needs pyarrow; install it with: {install_command('pyarrow')}"
        ) from error
