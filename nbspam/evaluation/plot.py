"""Plots of an evaluation: ROC, calibration, score distribution, learning curve."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nbspam.errors import OptionError, Remedy, install_command
from nbspam.evaluation.comparison import DEFAULT, Comparison
from nbspam.evaluation.curve_points import (
    CalibrationPoint,
    LearningCurve,
    calibration_points,
    cut_off_points,
    learning_curve,
    linear_roc_points,
    roc_points,
)
from nbspam.evaluation.results import Results
from nbspam.evaluation.samples import ScoredMessages

if TYPE_CHECKING:  # an optional dependency, and slow to import
    from matplotlib.axes import Axes

SUFFIXES = (".png", ".svg")
_SPAM, _HAM = "tab:red", "tab:blue"
_SCORE_BINS = 40


def check_plot(path: Path) -> None:
    """Raise OptionError unless a plot can be drawn into a file of this name."""
    if path.suffix.lower() not in SUFFIXES:
        raise OptionError(
            f"{path}: a plot is a PNG or SVG file; name a file that ends in .png or .svg"
        )
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise OptionError(
            f"{path}: plots need matplotlib; install it with: {install_command('matplotlib')}"
        ) from error


def draw(results: Results, path: Path) -> None:
    """Draw the curves of an evaluation into a file, PNG or SVG by its name.

    ROC on linear and on logarithmic axes, calibration, score distribution, and the learning curve
    of an online test.  Raises OptionError where no class is called spam.
    """
    if not results.messages.has_spam_class:
        raise OptionError(f"{path}: a plot needs a class called spam", Remedy.NAME_SPAM_LABEL)
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    curve = learning_curve(results.evaluation)
    # R and L: the ROC on linear and logarithmic axes; C: calibration; S: scores; E: errors.
    layout = "RC;LS;EE" if curve.points else "RC;LS"
    size = (10, 4.6 * len(layout.split(";")))
    figure, panels = plt.subplot_mosaic(layout, figsize=size, layout="constrained")
    figure.suptitle(f"nbspam, {results.title}")
    _draw_linear_roc(panels["R"], results)
    _draw_log_roc(panels["L"], results.messages)
    _draw_calibration(panels["C"], calibration_points(results))
    _draw_scores(panels["S"], results.messages)
    if curve.points:
        _draw_learning(panels["E"], curve)
    try:
        figure.savefig(path)
    finally:
        plt.close(figure)


def draw_comparison(comparison: Comparison, path: Path) -> None:
    """Draw the ROC curves of all models into one figure, PNG or SVG by the file's name.

    Raises OptionError where no class is called spam.
    """
    models = comparison.models
    counts = models[0].messages.counts
    if not models[0].messages.has_spam_class:
        raise OptionError(f"{path}: a plot needs a class called spam", Remedy.NAME_SPAM_LABEL)
    if not (counts.spam and counts.ham):
        raise OptionError(f"{path}: a ROC curve needs spam and ham; test on messages of both")
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(11, 7), layout="constrained")
    colours = plt.get_cmap("tab20")(range(20))
    by_rank = sorted(models, key=lambda m: m.figures.values["one_minus_roca_pct"] or 0.0)
    for i, model in enumerate(by_rank):
        name, area = model.combination.name, model.figures.values["one_minus_roca_pct"]
        is_default = model.combination == DEFAULT
        _draw_log_roc(
            axes,
            model.messages,
            label=f"{name}{' *' if is_default else ''}  {area:.3g}",
            color="black" if is_default else colours[i % len(colours)],
            linestyle="-" if i < len(colours) else "--",
            linewidth=2 if is_default else 1,
        )
    n = len(models[0].messages)
    axes.set_title(f"ROC of {len(models)} models on {n:,} messages, {comparison.protocol}")
    figure.legend(loc="outside right upper", title="model, 1-ROCA%", fontsize="small")
    try:
        figure.savefig(path)
    finally:
        plt.close(figure)


def _draw_linear_roc(axes: "Axes", results: Results) -> None:
    """Draw the ROC curve as it is known, with the points of the cut-offs and the area below it."""
    messages = results.messages
    counts = messages.counts
    axes.plot([0, 1], [0, 1], color="0.7", linestyle="--", linewidth=1)
    false_positives, true_positives = linear_roc_points(messages)
    if counts.spam and counts.ham:
        axes.plot(false_positives, true_positives, color=_SPAM)
    for point, marker in zip(cut_off_points(results), "os", strict=False):
        axes.plot(
            point.false_positive_rate,
            point.true_positive_rate,
            marker,
            color="black",
            clip_on=False,
            label=f"cut-off {point.cut_off:g}: {100 * point.true_positive_rate:.2f} % of spam,"
            f" {100 * point.false_positive_rate:.2f} % of ham",
        )
    area = results.figures.by_key["auc"]
    if area.value is not None and area.interval is not None:
        low, high = area.interval
        axes.plot([], [], " ", label=f"AUC {area.value:.4f} ({low:.4f} to {high:.4f})")
    axes.plot([], [], " ", label=f"n = {len(messages):,} ({counts.spam:,} spam)")
    axes.set(
        xlim=(-0.02, 1.02),
        ylim=(-0.02, 1.02),
        aspect="equal",
        xlabel="false positive rate (ham blocked)",
        ylabel="true positive rate (spam caught)",
        title="ROC",
    )
    axes.grid(visible=True, alpha=0.3)
    axes.legend(loc="lower right", fontsize="x-small")


def _draw_log_roc(axes: "Axes", messages: ScoredMessages, **line: Any) -> None:
    """Draw the ROC curve on logarithmic axes, as the TREC spam tracks do.

    On linear axes the curve of a good filter is all corner.  line: how it is drawn.
    """
    ham_blocked, spam_missed = roc_points(messages)
    floor = 100 * 0.5 / max(1, messages.counts.ham)  # half a message stands for none
    if messages.counts.spam and messages.counts.ham:
        axes.plot(
            np.maximum(ham_blocked, floor),
            np.maximum(spam_missed, floor),
            drawstyle="steps-post",
            **({"color": _SPAM} | line),
        )
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="ham blocked, %",
        ylabel="spam missed, %",
        title="ROC on logarithmic axes",
    )
    axes.grid(visible=True, which="both", alpha=0.3)


def _draw_calibration(axes: "Axes", points: Sequence[CalibrationPoint]) -> None:
    """Draw the share of spam against P(spam), each point with its interval and its messages."""
    axes.plot([0, 1], [0, 1], color="0.7", linestyle="--", linewidth=1)
    predicted = [point.predicted for point in points]
    observed = [point.observed for point in points]
    # An interval ends at its value, and rounding may take it past that.
    below = [max(0.0, point.observed - point.low) for point in points]
    above = [max(0.0, point.high - point.observed) for point in points]
    axes.errorbar(
        predicted, observed, yerr=(below, above), fmt="o-", color=_SPAM, ecolor="0.6", capsize=2
    )
    for point in points:
        is_right, is_top = point.predicted > 0.9, point.observed > 0.5
        axes.annotate(
            f"{point.messages:,}",
            (point.predicted, point.observed),
            xytext=(-6 if is_right else 6, -12 if is_top else 6),
            ha="right" if is_right else "left",
            textcoords="offset points",
            fontsize="small",
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 0.5},
        )
    axes.set(
        xlim=(-0.05, 1.05),
        ylim=(-0.05, 1.05),
        xlabel="predicted P(spam)",
        ylabel="observed share of spam",
        title="calibration, with the messages at each point",
    )
    axes.grid(visible=True, alpha=0.3)


def _draw_scores(axes: "Axes", messages: ScoredMessages) -> None:
    spam, log_odds = messages.spam, messages.log_odds
    limits = (float(log_odds.min()), float(log_odds.max()))
    kinds = (("ham", _HAM, "-", log_odds[~spam]), ("spam", _SPAM, "--", log_odds[spam]))
    for name, colour, dash, scores in kinds:
        label = f"{name}, {len(scores):,}"
        axes.hist(
            scores,
            bins=_SCORE_BINS,
            range=limits,
            label=label,
            histtype="step",
            color=colour,
            linestyle=dash,
        )
    axes.axvline(0, color="0.7", linewidth=1)
    axes.set(xlabel="log-odds of spam, nats", ylabel="messages", title="score distribution")
    axes.set_yscale("log")
    axes.legend(fontsize="small")


def _draw_learning(axes: "Axes", curve: LearningCurve) -> None:
    """Draw how the errors fall as messages are learned."""
    learned = [point.learned for point in curve.points]
    recent = [100 * point.recent_error_rate for point in curve.points]
    axes.plot(learned, recent, color=_HAM, label=f"last {curve.window:,} messages")
    overall = [100 * point.error_rate for point in curve.points]
    axes.plot(learned, overall, color="black", linestyle="--", label="all messages so far")
    axes.set(xlabel="messages learned", ylabel="errors, %", title="learning curve", ylim=(0, None))
    axes.grid(visible=True, alpha=0.3)
    axes.legend(fontsize="small")
