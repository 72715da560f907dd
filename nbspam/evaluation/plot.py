"""Plots of an evaluation: ROC curve, calibration curve and score distribution."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nbspam.bayes.matrix import Floats
from nbspam.errors import OptionError, Remedy, install_command
from nbspam.evaluation.bins import CalibrationBin
from nbspam.evaluation.comparison import DEFAULT, Comparison
from nbspam.evaluation.results import Results
from nbspam.evaluation.samples import ScoredMessages

if TYPE_CHECKING:  # an optional dependency, and slow to import
    from matplotlib.axes import Axes

SUFFIXES = (".png", ".svg")


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
    """Draw three plots side by side into a file, PNG or SVG by its name.

    Raises OptionError where no class is called spam.
    """
    if not results.messages.has_spam_class:
        raise OptionError(f"{path}: a plot needs a class called spam", Remedy.NAME_SPAM_LABEL)
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    figure, (roc, calibration, scores) = plt.subplots(1, 3, figsize=(15, 5), layout="constrained")
    _draw_roc(roc, results.messages)
    _draw_calibration(calibration, results.bins)
    _draw_scores(scores, results.messages)
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
        _draw_roc(
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


def _draw_roc(axes: "Axes", messages: ScoredMessages, **line: Any) -> None:
    """Draw the ROC curve on logarithmic axes, as the TREC spam tracks do.

    On linear axes the curve of a good filter is all corner.  line: how it is drawn.
    """
    ham_blocked, spam_missed = roc_points(messages)
    floor = 100 * 0.5 / max(1, messages.counts.ham)  # half a message stands for none
    axes.plot(
        np.maximum(ham_blocked, floor),
        np.maximum(spam_missed, floor),
        drawstyle="steps-post",
        **line,
    )
    axes.set(
        xscale="log", yscale="log", xlabel="ham blocked, %", ylabel="spam missed, %", title="ROC"
    )
    axes.grid(visible=True, which="both", alpha=0.3)


def _draw_calibration(axes: "Axes", bins: list[CalibrationBin]) -> None:
    axes.plot([0, 1], [0, 1], color="0.7")
    axes.plot([b.mean_probability for b in bins], [b.spam_share for b in bins], "o-")
    axes.set(xlabel="predicted P(spam)", ylabel="observed share of spam", title="calibration")


def _draw_scores(axes: "Axes", messages: ScoredMessages) -> None:
    spam, log_odds = messages.spam, messages.log_odds
    limits = (float(log_odds.min()), float(log_odds.max()))
    for name, scores in (("ham", log_odds[~spam]), ("spam", log_odds[spam])):
        axes.hist(scores, bins=60, range=limits, label=name, histtype="step")
    axes.set(xlabel="log-odds, nats", ylabel="messages", yscale="log", title="score distribution")
    axes.legend()


def roc_points(messages: ScoredMessages) -> tuple[Floats, Floats]:
    """Return ham blocked and spam missed, in percent, at every cut-off, the highest first."""
    order = np.argsort(-messages.log_odds, kind="stable")
    spam, log_odds = messages.spam[order], messages.log_odds[order]
    last = np.append(log_odds[1:] != log_odds[:-1], True)  # of each distinct score
    ham_blocked = 100 * np.cumsum(~spam)[last] / max(1, messages.counts.ham)
    spam_missed = 100 - 100 * np.cumsum(spam)[last] / max(1, messages.counts.spam)
    return ham_blocked, spam_missed
