"""A comparison as text: rich tables on a terminal, plain text in a pipe."""

from rich.box import Box
from rich.console import Console
from rich.text import Text

from nbspam.errors import counted
from nbspam.evaluation.comparison import DEFAULT, SURE, Compared, Comparison, Difference
from nbspam.evaluation.intervals import Interval
from nbspam.evaluation.report import console, empty_table, table_style

# Key in JSON and CSV -> head and digits in the table.
_COLUMNS = {
    "errors": ("errors", 0),
    "precision": ("precision", 4),
    "recall": ("recall", 4),
    "f1": ("F1", 4),
    "mcc": ("MCC", 4),
    "one_minus_roca_pct": ("1-ROCA%", 4),
    "log_loss": ("log-loss", 4),
    "calibration_error": ("cal.err.", 4),
    "seconds": ("seconds", 1),
}
_WITH_INTERVAL = ("errors", "one_minus_roca_pct")  # in the table; JSON and CSV have all


def _value(model: Compared, key: str) -> float | None:
    if key in ("errors", "calibration_error", "seconds"):
        return float(getattr(model, key)) if getattr(model, key) is not None else None
    return model.figures.values[key]


def _interval(model: Compared, key: str) -> Interval | None:
    return model.errors_interval if key == "errors" else model.figures.intervals.get(key)


def print_comparison(comparison: Comparison, said: str) -> None:
    """Print the tables, and what is said of them, to standard output."""
    out, style = console(), table_style()
    models = comparison.models
    counts = models[0].messages.counts
    of = f" ({counts.spam:,} spam)" if models[0].messages.has_spam_class else ""
    messages = counted(len(models[0].messages), "message")
    out.print(f"{counted(len(models), 'model')} on {messages}{of}, {comparison.protocol}\n")
    keys = [key for key in _COLUMNS if any(_value(model, key) is not None for model in models)]
    heads = []
    for key in keys:
        heads += [_COLUMNS[key][0], *(["95 %"] if key in _WITH_INTERVAL else [])]
    table = empty_table(style, "model", *heads)
    for model in models:
        table.add_row(Text(_shown_name(model)), *_cells(model, keys))
    out.print(table)
    if len(models) > 1:
        out.print()
        _print_differences(out, style, models)
    if any(model.combination == DEFAULT for model in models):
        out.print("\n* the default")
    out.print(f"\n{said}")


def _shown_name(model: Compared) -> str:
    return model.combination.name + (" *" if model.combination == DEFAULT else "")


def _cells(model: Compared, keys: list[str]) -> list[str]:
    cells = []
    for key in keys:
        digits, value = _COLUMNS[key][1], _value(model, key)
        cells.append("" if value is None else f"{value:,.{digits}f}")
        if key in _WITH_INTERVAL:
            ends = _interval(model, key)
            cells.append("" if ends is None else " – ".join(f"{e:.{digits}f}" for e in ends))
    return cells


def _print_differences(out: Console, style: Box | None, models: list[Compared]) -> None:
    best = models[0]
    name = best.combination.name
    out.print(
        f"against the best, {name}: messages that only one of the two has wrong; p-values after"
        " Holm"
    )
    with_roca = any(m.difference and m.difference.roca is not None for m in models)
    heads = ["only it", "only best", "p (McNemar)"]
    if with_roca:
        heads += ["1-ROCA% less", "95 %", "p (bootstrap)"]
    table = empty_table(style, "model", *heads, "")
    for model in models[1:]:
        assert model.difference is not None
        table.add_row(Text(_shown_name(model)), *_difference_cells(model.difference, with_roca))
    out.print(table)


def _difference_cells(difference: Difference, with_roca: bool) -> list[str]:
    cells = [
        str(difference.only_it),
        str(difference.only_best),
        _p(difference.errors_p),
    ]
    if with_roca:
        roca, ends, p = difference.roca, difference.roca_interval, difference.roca_p
        cells.append("" if roca is None else f"{roca:+.4f}")
        cells.append("" if ends is None else " – ".join(f"{end:+.4f}" for end in ends))
        cells.append("" if p is None else _p(p))
    return [*cells, difference.verdict]


def _p(p: float) -> str:
    return f"{p:.3f}" if p >= SURE / 10 else f"{p:.0e}"
