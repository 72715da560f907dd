"""The report of an evaluation: rich tables on a terminal, plain text in a pipe, or JSON."""

import json
import sys
from typing import Any, NamedTuple, TypeVar

import numpy as np

from nbspam.evaluation.metrics import (
    Bin,
    Booleans,
    Figures,
    Floats,
    calibration_bins,
    calibration_error,
    confusion,
    figures,
)
from nbspam.evaluation.protocols import Evaluation, Outcome, worst_mistakes
from nbspam.labels import UNSURE
from nbspam.scoring.verdict import CutOffs, fields

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


class Report(NamedTuple):
    """An evaluation with its figures."""

    evaluation: Evaluation
    figures: Figures
    bins: list[Bin]  # empty without a positive class
    spam: Booleans  # (n,)
    log_odds: Floats  # (n,)
    probability: Floats  # (n,)


def compute(evaluation: Evaluation, cut_offs: CutOffs) -> Report:
    """Return the figures of an evaluation; those of the positive class need one."""
    outcomes = evaluation.outcomes
    positive = evaluation.positive
    spam = np.array([o.label == positive for o in outcomes], dtype=bool)
    log_odds = np.array([o.score.log_odds for o in outcomes], dtype=float)
    probability = np.array([o.score.probability for o in outcomes], dtype=float)
    called = np.array([o.verdict == positive for o in outcomes], dtype=bool)
    found = figures(spam, log_odds, probability, called, cut_offs.spam)
    bins = calibration_bins(spam, probability) if positive is not None else []
    if len(evaluation.classes) > 2:
        found = _of_many_classes(evaluation, found)
    return Report(evaluation, found, bins, spam, log_odds, probability)


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
        np.ones(len(right), dtype=bool),
        of_truth,
        of_truth,
        right,
        float(found.values["threshold"] or 0),
    )
    values, intervals = dict(found.values), dict(found.intervals)
    if evaluation.positive is None:
        kept = {"messages", "threshold"}
        values = {name: value if name in kept else None for name, value in values.items()}
        intervals = dict.fromkeys(intervals)
    for name in ("accuracy", "log_loss"):
        values[name], intervals[name] = every.values[name], every.intervals[name]
    return Figures(values, intervals)


def as_json(report: Report, skipped: int, errors: int) -> str:
    """Return the report as one JSON object."""
    evaluation, found, bins = report[:3]
    outcomes = evaluation.outcomes
    table = confusion(
        [o.label for o in outcomes], [o.verdict for o in outcomes], evaluation.classes
    )
    names = _verdict_names(evaluation)
    out: dict[str, Any] = {
        "protocol": evaluation.protocol,
        **found.as_json(),
        "unsure": sum(o.verdict == UNSURE for o in outcomes),
        "skipped": skipped,
        "calibration_error": calibration_error(bins) if bins else None,
        "calibration": [b._asdict() for b in bins],
        "classes": list(evaluation.classes),
        "confusion": {
            name: dict(zip(names, row, strict=True))
            for name, row in zip(evaluation.classes, table, strict=True)
        },
    }
    if errors:
        out["errors"] = [
            prediction(o, evaluation.classes) | {"words": [w._asdict() for w in o.words]}
            for o in worst_mistakes(evaluation, errors)
        ]
    return json.dumps(out, indent=1)


def prediction(outcome: Outcome, classes: tuple[str, ...]) -> dict[str, Any]:
    """Return what `--predictions` writes of a message."""
    said = fields(classes, outcome.verdict, outcome.score)
    return {"source": outcome.source, "label": outcome.label, **said}


def print_report(report: Report, errors: int) -> None:
    """Print the report to standard output, with colours and lines on a terminal only."""
    evaluation, found, bins = report[:3]
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    terminal = sys.stdout.isatty()
    # In a pipe the width is the content's: nothing is cut for want of a screen.
    console = Console(
        file=sys.stdout, width=None if terminal else 200, highlight=False, emoji=False
    )
    style = box.SIMPLE_HEAD if terminal else None

    def table(*columns: str) -> Table:
        made = Table(box=style, pad_edge=False, header_style="bold")
        for i, name in enumerate(columns):
            made.add_column(Text(name), justify="left" if not i else "right", overflow="fold")
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
        grid.add_row(Text(name), *map(str, row))
    console.print(grid)
    if bins:
        console.print()
        _print_calibration(console, table, report)
    if errors:
        _print_mistakes(console.print, worst_mistakes(evaluation, errors))


def _print_calibration(console: Any, table: Any, report: Report) -> None:
    """Print what the probabilities said and what was true, and how the scores lie."""
    rows = table("P(spam)", "messages", "said", "true")
    for b in report.bins:
        rows.add_row(
            f"{b.low:.1f} to {b.high:.1f}",
            str(b.messages),
            f"{b.mean_probability:.4f}",
            f"{b.spam_share:.4f}",
        )
    console.print(rows)
    error = calibration_error(report.bins)
    console.print(f"calibration error {error:.4f} (mean gap of said and true)", markup=False)
    console.print()
    rows = table("log-odds", "ham", "spam", "")
    rows.columns[3].justify = "left"
    for low, high, ham, spam in histogram(report.spam, report.log_odds):
        bar = "h" * _bar_length(ham, report) + "S" * _bar_length(spam, report)
        rows.add_row(f"{low:+.0f} to {high:+.0f}", str(ham), str(spam), bar)
    console.print(rows)


def histogram(spam: Booleans, log_odds: Floats) -> list[tuple[float, float, int, int]]:
    """Return (from, to, ham, spam) for each two nats of score; the ends take what is beyond."""
    edges = np.arange(-14, 15, 2)
    held = np.clip(log_odds, edges[0], edges[-1] - 1e-9)
    ham, _ = np.histogram(held[~spam], edges)
    spams, _ = np.histogram(held[spam], edges)
    return [
        (float(low), float(high), int(h), int(s))
        for low, high, h, s in zip(edges[:-1], edges[1:], ham, spams, strict=True)
    ]


def _bar_length(count: int, report: Report) -> int:
    """Return the length of a bar: in proportion, but never nothing for something."""
    return -(-40 * count // max(1, len(report.spam)))


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
