"""An evaluation, or a comparison of models, as CSV; an interval is two columns."""

import io
from collections.abc import Mapping, Sequence

from nbspam.evaluation.comparison import Comparison
from nbspam.evaluation.json_report import numbers
from nbspam.evaluation.results import Results
from nbspam.evaluation.spreadsheet import write_table


def evaluation_csv(results: Results, skipped: int) -> str:
    """Return the figures of an evaluation as CSV, in one line below the heads.

    skipped: how many messages could not be read.
    """
    return _csv([numbers(results, skipped)])


def comparison_csv(comparison: Comparison) -> str:
    """Return a comparison as CSV, a line per model."""
    return _csv([model.as_json() for model in comparison.models])


def _csv(objects: Sequence[Mapping[str, object]]) -> str:
    rows = []
    for fields in objects:
        row: dict[str, object] = {}
        for key, value in fields.items():
            if key.endswith("_ci"):
                low, high = value if isinstance(value, list | tuple) else (None, None)
                row |= {f"{key}_low": low, f"{key}_high": high}
            else:
                row[key] = value
        rows.append(row)
    text = io.StringIO()
    write_table(rows, text)
    return text.getvalue().rstrip("\n")
