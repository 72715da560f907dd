"""A comparison as text: rich tables on a terminal, plain text in a pipe."""

from collections.abc import Sequence
from typing import NamedTuple

from rich.console import Console
from rich.text import Text

from nbspam.errors import counted
from nbspam.evaluation.comparison import DEFAULT, SURE, Compared, Comparison
from nbspam.evaluation.intervals import Interval
from nbspam.evaluation.report import console, empty_table, print_sentence, table_style

# Key in JSON and CSV -> head in the table, digits, and when it leaves a table that is too wide.
_COLUMNS = {
    "errors": ("errors", 0, 0),
    "precision": ("precision", 4, 2),
    "recall": ("recall", 4, 3),
    "f1": ("F1", 4, 7),
    "mcc": ("MCC", 4, 4),
    "one_minus_roca_pct": ("1-ROCA%", 4, 0),
    "log_loss": ("log-loss", 4, 0),
    "calibration_error": ("cal.err.", 4, 5),
    "seconds": ("seconds", 1, 6),
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
    out, models = console(), comparison.models
    counts = models[0].messages.counts
    of = f" ({counts.spam:,} spam)" if models[0].messages.has_spam_class else ""
    messages = counted(len(models[0].messages), "message")
    head = f"{counted(len(models), 'model')} on {messages}{of}, {comparison.protocol}"
    print_sentence(out, head)
    out.print()
    left_out = _print_fitting(out, models, _figures_of(models))
    if len(models) > 1:
        name = models[0].combination.name
        out.print()
        print_sentence(
            out,
            f"against the best, {name}: messages that only one of the two has wrong; p-values after"
            " Holm",
        )
        others = models[1:]
        left_out = _print_fitting(out, others, _differences_of(others)) or left_out
    if left_out:
        out.print("\nmore columns in a wider window")
    if any(model.combination == DEFAULT for model in models):
        out.print("\n* the default")
    out.print()
    print_sentence(out, said)


class _Column(NamedTuple):
    """A column of a table."""

    head: str
    cells: list[str]  # of each model
    leaves: int = 0  # the order in which columns leave a table that is too wide; 0: it stays


def _print_fitting(out: Console, models: Sequence[Compared], columns: list[_Column]) -> bool:
    """Print a table of models; return whether columns were left out for its width."""
    leaving = sorted((c for c in columns if c.leaves), key=lambda column: column.leaves)
    every = len(columns)
    anything = out.options.update(max_width=10_000)  # as wide as the table would be
    while True:
        table = empty_table(table_style(), "model", *(c.head for c in columns))
        for i, model in enumerate(models):
            star = " *" if model.combination == DEFAULT else ""
            table.add_row(Text(model.combination.name + star), *(c.cells[i] for c in columns))
        if not leaving or out.measure(table, options=anything).maximum <= out.width:
            out.print(table)
            return len(columns) < every
        columns = [c for c in columns if c is not leaving[0]]
        leaving = leaving[1:]


def _figures_of(models: Sequence[Compared]) -> list[_Column]:
    columns = []
    for key, (head, digits, leaves) in _COLUMNS.items():
        values = [_value(model, key) for model in models]
        if all(value is None for value in values):
            continue
        cells = ["" if value is None else f"{value:,.{digits}f}" for value in values]
        columns.append(_Column(head, cells, leaves))
        if key in _WITH_INTERVAL:
            ends = [_interval(model, key) for model in models]
            columns.append(_Column("95 %", [_range(both, f".{digits}f") for both in ends], 1))
    return columns


def _differences_of(models: Sequence[Compared]) -> list[_Column]:
    found = [model.difference for model in models if model.difference is not None]
    columns = [
        _Column("only it", [str(d.only_it) for d in found]),
        _Column("only best", [str(d.only_best) for d in found], 5),
        _Column("p (McNemar)", [_p(d.errors_p) for d in found], 4),
    ]
    if any(d.roca is not None for d in found):
        less = ["" if d.roca is None else f"{d.roca:+.4f}" for d in found]
        columns += [
            _Column("1-ROCA% less", less, 2),
            _Column("95 %", [_range(d.roca_interval, "+.4f") for d in found], 1),
            _Column("p (bootstrap)", [_p(d.roca_p) for d in found], 3),
        ]
    return [*columns, _Column("", [d.verdict for d in found])]


def _range(ends: Interval | None, form: str) -> str:
    return "" if ends is None else " – ".join(f"{end:{form}}" for end in ends)


def _p(p: float | None) -> str:
    if p is None:
        return ""
    return f"{p:.3f}" if p >= SURE / 10 else f"{p:.0e}"
