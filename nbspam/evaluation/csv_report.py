"""A comparison as CSV."""

import csv
import io

from nbspam.evaluation.comparison import Comparison


def comparison_csv(comparison: Comparison) -> str:
    """Return a comparison as CSV, a line per model; an interval is two columns."""
    rows = []
    for model in comparison.models:
        row: dict[str, object] = {}
        for key, value in model.as_json().items():
            if key.endswith("_ci"):
                low, high = value if isinstance(value, list | tuple) else (None, None)
                row |= {f"{key}_low": low, f"{key}_high": high}
            else:
                row[key] = value
        rows.append(row)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().rstrip("\n")
