"""The curves of evaluations, drawn by matplotlib: ROC, calibration, scores, learning curve.

matplotlib is imported when something is drawn, not before: it takes half a second and few need it.
A drawing has no date and no random ids, so the same evaluation gives the same file.
"""

import io
import textwrap
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from nbspam.bayes.matrix import Floats
from nbspam.display.tables import opened
from nbspam.errors import NbspamError, OptionError, Remedy, counted, needs_extra, one_line
from nbspam.evaluation import metrics
from nbspam.evaluation.comparison import DEFAULT, Compared
from nbspam.evaluation.metrics import ScoredMessages
from nbspam.evaluation.results import Results, interval, learning_curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Formats by the ending of a file's name, and the metadata without which a file has no date.
_UNDATED = {".svg": {"Date": None}, ".png": {}, ".pdf": {"CreationDate": None}}
_WIDTH, _HEIGHT = 5.0, 4.0  # of one drawing, in inches
_CAPTION = 72  # characters of a line
_HAM, _SPAM = "tab:blue", "tab:red"
_EVEN: dict[str, Any] = {"color": "0.6", "linestyle": "--", "linewidth": 1}

CutOffPoint = tuple[str, float, float]  # its name; ham blocked and spam missed, in percent


def check_plot(path: Path | None = None) -> None:
    """Raise NbspamError without matplotlib, OptionError unless the file's name ends in a format."""
    if path is not None and path.suffix.lower() not in _UNDATED:
        raise OptionError(
            f"{path}: unknown format of plots; name a file that ends in .svg, .png or .pdf"
        )
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise NbspamError(needs_extra("drawing curves", "matplotlib", "plot")) from error


def roc_points(messages: ScoredMessages) -> tuple[Floats, Floats]:
    """Return ham blocked and spam missed, in percent, at every cut-off, the highest first."""
    order = np.argsort(-messages.log_odds, kind="stable")
    spam, log_odds = messages.spam[order], messages.log_odds[order]
    last = np.append(log_odds[1:] != log_odds[:-1], True)  # of each distinct score
    ham_blocked = 100 * np.cumsum(~spam)[last] / max(1, messages.counts.ham)
    spam_missed = 100 - 100 * np.cumsum(spam)[last] / max(1, messages.counts.spam)
    return ham_blocked, spam_missed


def cut_off_points(results: Results) -> list[CutOffPoint]:
    """Return the points of the threshold, 0.5, and of the spam cut-off if it is another.

    None unless there are spam and ham; one of three or more classes, which have no cut-off.
    """
    messages, cut_offs = results.messages, results.cut_offs
    if not (messages.counts.spam and messages.counts.ham):
        return []
    name = f"cut-off {messages.threshold:g}" if cut_offs else "by the most probable class"
    counts = {name: messages.counts}
    if cut_offs is not None:
        counts.setdefault(f"cut-off {cut_offs.spam:g}", messages.verdicts)
    return [(name, 100 * n.fp / n.ham, 100 * n.fn / n.spam) for name, n in counts.items()]


# One evaluation: each function draws a curve and returns its caption


def _draw_roc(results: Results, axes: "Axes") -> str:
    (blocked, missed), counts = roc_points(results.messages), results.messages.counts
    axes.plot([0, 100], [0, 100], **_EVEN)
    axes.step(np.append(0, blocked), np.append(0, 100 - missed), where="post")
    axes.set(xlabel="ham blocked, %", ylabel="spam caught, %")
    area = results.figures.by_key["auc"]
    caption = (
        f"ROC, area under the curve {area.value:.4f} ({interval(area.interval)});"
        f" {counts.spam:,} spam and {counts.ham:,} ham"
    )
    for name, x, y in cut_off_points(results):
        axes.plot(x, 100 - y, "o", color=_SPAM)
        caption += f"; {name}: {100 - y:.2f} % of spam, {x:.2f} % of ham"
    return caption


def _draw_log_roc(results: Results, axes: "Axes") -> str:
    _draw_log_steps(results.messages, axes)
    for _, x, y in cut_off_points(results):
        (x_least, _), (y_least, _) = axes.get_xlim(), axes.get_ylim()
        axes.plot(max(x, x_least), max(y, y_least), "o", color=_SPAM, clip_on=False)
    return "the same on logarithmic axes, spam missed for caught"


def _draw_log_steps(messages: ScoredMessages, axes: "Axes", **style: Any) -> None:
    """Draw a ROC curve on logarithmic axes, on which half a message stands for none."""
    counts, points = messages.counts, roc_points(messages)
    least = [min(50.0, 50 / n) for n in (counts.ham, counts.spam)]
    x, y = (np.maximum(values, low) for values, low in zip(points, least, strict=True))
    axes.step(x, y, where="post", **style)
    axes.set(xscale="log", yscale="log", xlim=(least[0], 100), ylim=(least[1], 100))
    axes.set(xlabel="ham blocked, %", ylabel="spam missed, %")


def _draw_calibration(results: Results, axes: "Axes") -> str:
    bins, most = results.bins, max(b.messages for b in results.bins)
    predicted, observed = ([b[i] for b in bins] for i in (3, 4))
    ends = [metrics.wilson(round(b.spam_share * b.messages), b.messages) or (0, 1) for b in bins]
    axes.plot([0, 1], [0, 1], **_EVEN)
    axes.plot(predicted, observed)
    axes.vlines(predicted, *zip(*ends, strict=True), color="0.6", linewidth=1)
    axes.scatter(predicted, observed, [20 + 150 * b.messages / most for b in bins], zorder=3)
    axes.set(xlabel="predicted P(spam)", ylabel="observed share of spam")
    error = results.figures.values["calibration_error"]
    return f"calibration, error {error:.4f}; a larger dot stands for more messages"


def _draw_scores(results: Results, axes: "Axes") -> str:
    low, high, ham, spam = zip(*metrics.score_distribution(results.messages), strict=True)
    width = (high[0] - low[0]) / 2
    axes.bar(low, ham, width, align="edge", color=_HAM)
    axes.bar([start + width for start in low], spam, width, align="edge", color=_SPAM)
    axes.set(xlabel="log-odds of spam, nats", ylabel="messages")
    return "scores: ham blue, spam red; the outer columns include everything beyond"


def _draw_learning(results: Results, axes: "Axes") -> str:
    window, rates = learning_curve(results.evaluation)
    axes.plot(*zip(*rates["every"].items(), strict=True), **_EVEN)
    axes.plot(*zip(*rates["recent"].items(), strict=True))
    axes.set(xlabel="messages learned", ylabel="errors, %")
    return f"learning curve: errors over the last {window:,} messages; dashed: over all"


def _figure(results: Results) -> "tuple[Figure, str]":
    """Return the curves that are defined for an evaluation as a figure, and their captions."""
    from matplotlib.figure import Figure

    counts = results.messages.counts
    draws = [_draw_roc, _draw_log_roc] if counts.spam and counts.ham else []
    draws += [_draw_calibration, _draw_scores] if results.bins else []
    draws += [_draw_learning] if results.evaluation.learned_so_far else []
    rows, captions = -(-len(draws) // 2), []
    figure = Figure(figsize=(2 * _WIDTH, rows * _HEIGHT + 0.5), layout="constrained")
    title = one_line(f"nbspam, {results.title}")
    figure.suptitle(title, fontsize=10, parse_math=False)  # a class may be named $x$
    for i, draw in enumerate(draws):
        axes = figure.add_subplot(rows, 2, i + 1)
        captions.append(draw(results, axes))
        axes.set_title(textwrap.fill(captions[-1], _CAPTION), fontsize=8, loc="left")
    return figure, ". ".join(captions)


def _save(figure: "Figure", file: IO[bytes], suffix: str) -> None:
    from matplotlib import rc_context

    with rc_context({"svg.hashsalt": "nbspam", "svg.fonttype": "none"}), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a letter that matplotlib's font does not have
        figure.savefig(file, format=suffix[1:], metadata=_UNDATED[suffix])


def embedded(results: Results) -> tuple[bytes, str]:
    """Return the curves of an evaluation as SVG, and their captions."""
    figure, captions = _figure(results)
    svg = io.BytesIO()
    _save(figure, svg, ".svg")
    return svg.getvalue(), captions


def draw(results: Results, path: Path) -> None:
    """Draw the curves of an evaluation; raises OptionError where no class is called spam."""
    if not results.messages.has_spam_class:
        raise OptionError(f"{path}: a plot needs a class called spam", Remedy.NAME_SPAM_LABEL)
    with opened(path) as file:
        _save(_figure(results)[0], file, path.suffix.lower())


# Several models


def draw_comparison(models: Sequence[Compared], path: Path) -> None:
    """Draw the ROC curves of all models; raises OptionError where no class is called spam."""
    from matplotlib.figure import Figure

    messages, protocol = models[0].messages, models[0].results.evaluation.protocol
    if not messages.has_spam_class:
        raise OptionError(f"{path}: a plot needs a class called spam", Remedy.NAME_SPAM_LABEL)
    if not (messages.counts.spam and messages.counts.ham):
        raise OptionError(f"{path}: a ROC curve needs spam and ham; test on messages of both")
    figure = Figure(figsize=(2 * _WIDTH, 1.5 * _HEIGHT), layout="constrained")
    axes = figure.add_subplot()
    area_of = {m.combination: m.results.figures.values["one_minus_roca_pct"] or 0.0 for m in models}
    for i, model in enumerate(sorted(models, key=lambda m: area_of[m.combination])):
        is_default = model.combination == DEFAULT
        _draw_log_steps(
            model.messages,
            axes,
            label=f"{model.combination.name}{' *' * is_default}  {area_of[model.combination]:.3g}",
            color="black" if is_default else f"C{i % 10}",
            linestyle="--" if i >= 10 and not is_default else "-",
        )
    n = counted(messages.counts.messages, "message")
    title = f"ROC of {counted(len(models), 'model')} on {n}, {protocol}"
    figure.suptitle(one_line(title), fontsize=10, parse_math=False)
    figure.legend(loc="outside right upper", fontsize=8, title="model, 1-ROCA%")
    with opened(path) as file:
        _save(figure, file, path.suffix.lower())
