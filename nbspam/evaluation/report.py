"""The report of an evaluation: rich tables on a terminal, plain text in a pipe, or JSON."""

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

from nbspam.evaluation.metrics import Figures, confusion, figures
from nbspam.evaluation.protocols import Evaluation, Outcome, worst_mistakes
from nbspam.model.classifier import UNSURE, CutOffs

T = TypeVar("T")

# Name in the JSON, name in the report, what it is; the order is the report's.
_ROWS = (
    ("accuracy", "accuracy", "right verdicts, %"),
    ("mcc", "MCC", "Matthews' correlation, 1 is perfect"),
    ("sc_pct", "SC%", "spam caught"),
    ("bh_pct", "BH%", "ham blocked"),
    ("lam_pct", "lam%", "logistic average of spam missed and ham blocked"),
    ("one_minus_roca_pct", "1-ROCA%", "(ham, spam) pairs ranked wrongly"),
    ("sm_pct_at_hm_0_1", "sm@hm.1", "spam missed when 0.1 % of ham may be lost"),
    ("log_loss", "log-loss", "nats a message"),
    ("brier", "Brier", "mean square of P(spam) less truth"),
)


def compute(evaluation: Evaluation, cut_offs: CutOffs) -> Figures:
    """Return the figures of an evaluation; those of the positive class need one."""
    outcomes = evaluation.outcomes
    positive = evaluation.positive
    spam = np.array([o.label == positive for o in outcomes], dtype=bool)
    found = figures(
        spam,
        np.array([o.score.log_odds for o in outcomes], dtype=float),
        np.array([o.score.probability for o in outcomes], dtype=float),
        np.array([o.verdict == positive for o in outcomes], dtype=bool),
        cut_offs.spam,
    )
    if len(evaluation.classes) == 2:
        return found
    return _of_many_classes(evaluation, found)


def _of_many_classes(evaluation: Evaluation, found: Figures) -> Figures:
    """Return the figures with accuracy and log-loss over all classes.

    The two-class figures stay as those of the positive class against the rest; without a positive
    class they have no meaning and are None.
    """
    outcomes = evaluation.outcomes
    number = {name: k for k, name in enumerate(evaluation.classes)}
    right = np.array([o.verdict == o.label for o in outcomes], dtype=bool)
    of_truth = np.array([o.score.probabilities[number[o.label]] for o in outcomes], dtype=float)
    every = figures(
        np.ones(len(right), dtype=bool), of_truth, of_truth, right, found.values["threshold"] or 0.5
    )
    values, intervals = dict(found.values), dict(found.intervals)
    if evaluation.positive is None:
        kept = {"messages", "threshold"}
        values = {name: value if name in kept else None for name, value in values.items()}
        intervals = dict.fromkeys(intervals)
    for name in ("accuracy", "log_loss"):
        values[name], intervals[name] = every.values[name], every.intervals[name]
    return Figures(values, intervals)


def as_json(evaluation: Evaluation, found: Figures, skipped: int, errors: int) -> str:
    """Return the report as one JSON object."""
    outcomes = evaluation.outcomes
    table = confusion(
        [o.label for o in outcomes], [o.verdict for o in outcomes], evaluation.classes
    )
    names = _verdict_names(evaluation)
    report: dict[str, Any] = {
        "protocol": evaluation.protocol,
        **found.as_json(),
        "unsure": sum(o.verdict == UNSURE for o in outcomes),
        "skipped": skipped,
        "classes": list(evaluation.classes),
        "confusion": {
            name: dict(zip(names, row, strict=True))
            for name, row in zip(evaluation.classes, table, strict=True)
        },
    }
    if errors:
        report["errors"] = [
            prediction(o, evaluation.classes) | {"words": [w._asdict() for w in o.words]}
            for o in worst_mistakes(evaluation, errors)
        ]
    return json.dumps(report, ensure_ascii=False, indent=1)


def prediction(outcome: Outcome, classes: tuple[str, ...]) -> dict[str, Any]:
    """Return what `--predictions` writes of a message."""
    found: dict[str, Any] = {
        "source": outcome.source,
        "label": outcome.label,
        "verdict": outcome.verdict,
        "probability": outcome.score.probability,
        "log_odds": outcome.score.log_odds,
    }
    if len(classes) > 2:
        found["probabilities"] = dict(zip(classes, outcome.score.probabilities, strict=True))
    return found


def print_report(evaluation: Evaluation, found: Figures, errors: int) -> None:
    """Print the report to standard output, with colours and lines on a terminal only."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    terminal = sys.stdout.isatty()
    # In a pipe the width is the content's: nothing is cut for want of a screen.
    console = Console(file=sys.stdout, width=None if terminal else 200, highlight=False)
    style = box.SIMPLE_HEAD if terminal else None

    def table(*columns: str) -> Table:
        made = Table(box=style, pad_edge=False, header_style="bold")
        for i, name in enumerate(columns):
            made.add_column(name, justify="left" if not i else "right", overflow="fold")
        return made

    counts = dict.fromkeys(evaluation.classes, 0)
    for outcome in evaluation.outcomes:
        counts[outcome.label] += 1
    shown = ", ".join(f"{name}: {n}" for name, n in counts.items())
    console.print(
        f"{evaluation.protocol}: {len(evaluation.outcomes)} messages ({shown})", markup=False
    )
    console.print()
    rows = table("figure", "value", "95 % interval", "")
    rows.columns[3].justify = "left"
    for name, short, meaning in _ROWS:
        value = found.values[name]
        if value is not None:
            times = 100 if name == "accuracy" else 1
            interval = found.intervals.get(name)
            between = "" if interval is None else " – ".join(_number(times * v) for v in interval)
            rows.add_row(short, _number(times * value), between, meaning)
    console.print(rows)
    console.print()
    names = _verdict_names(evaluation)
    grid = table("actual", *(f"called {name}" for name in names))
    counted = confusion(
        [o.label for o in evaluation.outcomes],
        [o.verdict for o in evaluation.outcomes],
        evaluation.classes,
    )
    for name, row in zip(evaluation.classes, counted, strict=True):
        grid.add_row(name, *map(str, row))
    console.print(grid)
    if errors:
        _print_mistakes(console.print, worst_mistakes(evaluation, errors))


def _print_mistakes(write: Any, mistakes: list[Outcome]) -> None:
    write("\nworst mistakes" if mistakes else "\nno mistakes", markup=False)
    for outcome in mistakes:
        words = "  ".join(f"{word.token} {word.weight:+.2f}" for word in outcome.words)
        write(
            f"  {outcome.source}: {outcome.label} called {outcome.verdict},"
            f" probability {outcome.score.probability:.4f}",
            markup=False,
        )
        write(f"    {words or '(no known word)'}", markup=False)


def _verdict_names(evaluation: Evaluation) -> list[str]:
    called = {o.verdict for o in evaluation.outcomes}
    return [*evaluation.classes, *sorted(called - set(evaluation.classes))]


def _number(value: float) -> str:
    return f"{value:.4f}" if abs(value) < 10 else f"{value:.2f}"


@contextmanager
def progress(quiet: bool) -> Iterator["Progress"]:
    """Show on standard error, if it is a terminal, how many messages have gone by."""
    if quiet or not sys.stderr or not sys.stderr.isatty():
        yield Progress(None)
        return
    from rich.console import Console
    from rich.progress import Progress as Bar
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.completed:,.0f} messages"),
        TextColumn("{task.speed:,.0f}/s", justify="right"),
        TimeElapsedColumn(),
    )
    with Bar(*columns, console=Console(file=sys.stderr), transient=True) as bar:
        yield Progress(bar)


class Progress:
    """Counts what passes through it."""

    def __init__(self, bar: Any) -> None:
        self._bar = bar

    def __call__(self, items: Iterable[T]) -> Iterator[T]:
        """Yield the items."""
        if self._bar is None:
            yield from items
            return
        task = self._bar.add_task("reading", total=None)
        for item in items:
            yield item
            self._bar.advance(task)
