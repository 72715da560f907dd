"""The curves of evaluations, drawn by matplotlib: ROC, calibration, scores, learning curve.

matplotlib is imported only to draw, because importing it takes half a second and few users need it.
A drawing has no date and no random ids, so the same evaluation gives the same file.
"""

import io
import textwrap
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nbspam.bayes.matrix import Floats
from nbspam.display.tables import open_output
from nbspam.errors import NbspamError, OptionError, Remedy, needs_extra, one_line
from nbspam.evaluation import comparison, metrics
from nbspam.evaluation.results import Results, format_interval, learning_curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# File name ending -> metadata without which matplotlib would write the date.
_UNDATED = {".svg": {"Date": None}, ".png": {}, ".pdf": {"CreationDate": None}}
_WIDTH, _HEIGHT = 5.0, 4.0  # inches of a drawing
_LEGEND_ROW = 0.18  # inches
_CAPTION_WIDTH = 72  # characters
_HAM_COLOUR, _SPAM_COLOUR = "tab:blue", "tab:red"
_DASHED: dict[str, Any] = {"color": "0.6", "linestyle": "--", "linewidth": 1}

CutOffPoint = tuple[str, float, float]  # name; ham blocked and spam missed, in percent


def check_plot(path: Path | None = None) -> None:
    """Raise NbspamError without matplotlib, and OptionError for an unknown file name ending."""
    if path is not None and path.suffix.lower() not in _UNDATED:
        raise OptionError(
            f"{path}: unknown format of plots; name a file that ends in .svg, .png or .pdf"
        )
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise NbspamError(needs_extra("drawing curves", "matplotlib", "plot")) from error


def roc_points(messages: metrics.ScoredMessages) -> tuple[Floats, Floats]:
    """Return ham blocked and spam missed, in percent, at every cut-off, highest cut-off first."""
    order = np.argsort(-messages.log_odds, kind="stable")
    spam, log_odds = messages.spam[order], messages.log_odds[order]
    is_last = np.append(log_odds[1:] != log_odds[:-1], True)  # the last message with its score
    ham_blocked = 100 * np.cumsum(~spam)[is_last] / max(1, messages.counts.ham)
    spam_missed = 100 - 100 * np.cumsum(spam)[is_last] / max(1, messages.counts.spam)
    return ham_blocked, spam_missed


def cut_off_points(results: Results) -> list[CutOffPoint]:
    """Return the points of the threshold, 0.5, and of the spam cut-off if that is another number.

    Without spam or ham the list is empty.  With three or more classes it has a single point,
    because there is no cut-off.
    """
    messages, cut_offs = results.messages, results.cut_offs
    if not (messages.counts.spam and messages.counts.ham):
        return []
    name = f"cut-off {messages.threshold:g}" if cut_offs else "by the most probable class"
    counts = {name: messages.counts}
    if cut_offs is not None:
        counts.setdefault(f"cut-off {cut_offs.spam:g}", messages.verdicts)
    return [(name, 100 * n.fp / n.ham, 100 * n.fn / n.spam) for name, n in counts.items()]


# The curves of an evaluation: each function draws a curve and returns its caption


def _draw_roc(results: Results, axes: "Axes") -> str:
    (blocked, missed), counts = roc_points(results.messages), results.messages.counts
    axes.plot([0, 100], [0, 100], **_DASHED)
    axes.step(np.append(0, blocked), np.append(0, 100 - missed), where="post")
    axes.set(xlabel="ham blocked, %", ylabel="spam caught, %")
    area = results.figures.by_key["auc"]
    caption = (
        f"ROC, area under the curve {area.value:.4f} ({format_interval(area.interval)});"
        f" {counts.spam:,} spam and {counts.ham:,} ham"
    )
    for name, x, y in cut_off_points(results):
        axes.plot(x, 100 - y, "o", color=_SPAM_COLOUR)
        caption += f"; {name}: {100 - y:.2f} % of spam, {x:.2f} % of ham"
    return caption


def _draw_log_roc(results: Results, axes: "Axes") -> str:
    _draw_log_steps(results.messages, axes)
    for _, x, y in cut_off_points(results):
        (x_min, _), (y_min, _) = axes.get_xlim(), axes.get_ylim()
        axes.plot(max(x, x_min), max(y, y_min), "o", color=_SPAM_COLOUR, clip_on=False)
    return "the same on logarithmic axes, spam missed for caught"


def _draw_log_steps(messages: metrics.ScoredMessages, axes: "Axes", **style: Any) -> None:
    """Draw a ROC curve on logarithmic axes, where 0 messages are drawn as half a message."""
    counts, points = messages.counts, roc_points(messages)
    x_min, y_min = (min(50.0, 50 / n) for n in (counts.ham, counts.spam))
    x, y = (np.maximum(*pair) for pair in zip(points, (x_min, y_min), strict=True))
    axes.step(x, y, where="post", **style)
    axes.set(xscale="log", yscale="log", xlim=(x_min, 100), ylim=(y_min, 100))
    axes.set(xlabel="ham blocked, %", ylabel="spam missed, %")


def _draw_calibration(results: Results, axes: "Axes") -> str:
    bins, largest = results.bins, max(b.messages for b in results.bins)
    predicted, observed = [b.mean_probability for b in bins], [b.spam_share for b in bins]
    ends = [metrics.wilson(round(b.spam_share * b.messages), b.messages) or (0, 1) for b in bins]
    axes.plot([0, 1], [0, 1], **_DASHED)
    axes.plot(predicted, observed)
    axes.vlines(predicted, *zip(*ends, strict=True), color="0.6", linewidth=1)
    axes.scatter(predicted, observed, [20 + 150 * b.messages / largest for b in bins], zorder=3)
    axes.set(xlabel="predicted P(spam)", ylabel="observed share of spam")
    error = results.figures.values["calibration_error"]
    return f"calibration, error {error:.4f}; a larger dot stands for more messages"


def _draw_scores(results: Results, axes: "Axes") -> str:
    low, high, ham, spam = zip(*metrics.score_distribution(results.messages), strict=True)
    width = (high[0] - low[0]) / 2
    axes.bar(low, ham, width, align="edge", color=_HAM_COLOUR)
    axes.bar([start + width for start in low], spam, width, align="edge", color=_SPAM_COLOUR)
    axes.set(xlabel="log-odds of spam, nats", ylabel="messages")
    return "scores: ham blue, spam red; the outer columns include everything beyond"


def _draw_learning(results: Results, axes: "Axes") -> str:
    window, rates = learning_curve(results.evaluation)
    axes.plot(*zip(*rates["every"].items(), strict=True), **_DASHED)
    axes.plot(*zip(*rates["recent"].items(), strict=True))
    axes.set(xlabel="messages learned", ylabel="errors, %")
    return f"learning curve: errors over the last {window:,} messages; dashed: over all"


def _drawing_functions(results: Results) -> "Sequence[Callable[[Results, Axes], str]]":
    """Return the functions that draw the curves that are defined for an evaluation."""
    counts = results.messages.counts
    draws = [_draw_roc, _draw_log_roc] if counts.spam and counts.ham else []
    draws += [_draw_calibration, _draw_scores] if results.bins else []
    return draws + ([_draw_learning] if results.evaluation.learned_so_far else [])


def _figure(results: Results) -> "Figure":
    """Draw all curves of an evaluation, each below its caption."""
    from matplotlib.figure import Figure

    draws = _drawing_functions(results)
    rows = -(-len(draws) // 2)
    figure = Figure(figsize=(2 * _WIDTH, rows * _HEIGHT + 0.5), layout="constrained")
    title = one_line(f"nbspam, {results.title}")
    figure.suptitle(title, fontsize=10, parse_math=False)  # a class may be named $x$
    for i, draw in enumerate(draws):
        axes = figure.add_subplot(rows, 2, i + 1)
        axes.set_title(textwrap.fill(draw(results, axes), _CAPTION_WIDTH), fontsize=8, loc="left")
    return figure


def _save(figure: "Figure", file: IO[bytes], suffix: str, transparent: bool = False) -> None:
    from matplotlib import rc_context

    with rc_context({"svg.hashsalt": "nbspam", "svg.fonttype": "none"}), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # matplotlib warns of letters that its font does not have
        form, metadata = suffix[1:], _UNDATED[suffix]
        figure.savefig(file, format=form, metadata=metadata, transparent=transparent)


def _as_svg(figure: "Figure") -> bytes:
    """Save a figure as SVG with a transparent background."""
    svg = io.BytesIO()
    _save(figure, svg, ".svg", transparent=True)
    return svg.getvalue()


def svg_curves(results: Results) -> Iterator[tuple[bytes, str]]:
    """Yield each curve of an evaluation as SVG, with its caption."""
    from matplotlib.figure import Figure

    for draw in _drawing_functions(results):
        figure = Figure(figsize=(_WIDTH, _HEIGHT), layout="constrained")
        caption = draw(results, figure.add_subplot())
        yield _as_svg(figure), caption


def _check_messages(messages: metrics.ScoredMessages, where: str = "", roc: bool = True) -> None:
    """Raise OptionError without a spam class, and for a ROC curve without spam or without ham."""
    if not messages.has_spam_class:
        raise OptionError(f"{where}a plot needs a class called spam", Remedy.NAME_SPAM_LABEL)
    if roc and not (messages.counts.spam and messages.counts.ham):
        raise OptionError(f"{where}a ROC curve needs spam and ham; test on messages of both")


def draw(results: Results, path: Path) -> None:
    """Draw the curves of an evaluation; raises OptionError without a spam class."""
    _check_messages(results.messages, f"{path}: ", roc=False)
    with open_output(path) as file:
        _save(_figure(results), file, path.suffix.lower())


# For a notebook


def _draw_confusion(results: Results, axes: "Axes") -> str:
    names = list(next(iter(results.confusion.values())))
    counts = np.array([list(row.values()) for row in results.confusion.values()])
    axes.imshow(counts, cmap="Blues")
    for (i, k), n in np.ndenumerate(counts):
        colour = "white" if n > counts.max() / 2 else "black"
        axes.text(k, i, f"{n:,}", ha="center", va="center", color=colour)
    axes.set(xlabel="predicted label", ylabel="true label")
    axes.set_xticks(range(len(names)), names, parse_math=False)
    axes.set_yticks(range(len(counts)), list(results.confusion), parse_math=False)
    return f"{results.messages.counts.errors:,} of {counts.sum():,} messages are errors"


_PLOTS = {"roc": _draw_roc, "confusion": _draw_confusion, "calibration": _draw_calibration}


class PlotDisplay(NamedTuple):
    """The plot drawn by `Results.plot`, with the field names of scikit-learn's displays."""

    ax_: "Axes"
    figure_: "Figure | None"


def plot(results: Results, kind: str, axes: "Axes | None") -> PlotDisplay:
    """Draw a curve, by default on new axes; raises OptionError and NbspamError."""
    if kind not in _PLOTS:
        raise OptionError(f"there is no plot {kind!r}; give {', '.join(map(repr, _PLOTS))}")
    if kind != "confusion":
        _check_messages(results.messages, roc=kind == "roc")
    check_plot()
    if axes is None:
        from matplotlib import pyplot

        _, axes = pyplot.subplots(figsize=(_WIDTH, _HEIGHT), layout="constrained")
    caption = _PLOTS[kind](results, axes)
    axes.set_title(textwrap.fill(caption, _CAPTION_WIDTH), fontsize=8, loc="left")
    return PlotDisplay(axes, axes.get_figure(root=True))


# Several models


def draw_comparison(models: Sequence[comparison.ComparedModel], path: Path) -> None:
    """Draw the ROC curves of all models; raises OptionError without a spam class."""
    _check_messages(models[0].messages, f"{path}: ")
    with open_output(path) as file:
        _save(_comparison_figure(models)[0], file, path.suffix.lower())


def svg_comparison(models: Sequence[comparison.ComparedModel]) -> Iterator[tuple[bytes, str]]:
    """Yield the ROC curves of all models as an SVG, with its caption, if there are spam and ham."""
    if models[0].messages.counts.spam and models[0].messages.counts.ham:
        figure, caption = _comparison_figure(models)
        yield _as_svg(figure), caption


def _comparison_figure(models: Sequence[comparison.ComparedModel]) -> "tuple[Figure, str]":
    """Draw the ROC curves of all models above a legend; return the figure and its title."""
    from matplotlib.figure import Figure

    height = 1.2 * _HEIGHT + _LEGEND_ROW * len(models)
    figure = Figure(figsize=(_WIDTH, height), layout="constrained")
    axes = figure.add_subplot()
    areas = {m.combination: m.results.figures.values["one_minus_roca_pct"] or 0.0 for m in models}
    for i, model in enumerate(sorted(models, key=lambda m: areas[m.combination])):
        is_default = model.combination == comparison.DEFAULT
        _draw_log_steps(
            model.messages,
            axes,
            label=f"{model.combination.name}{' *' * is_default}  {areas[model.combination]:.3g}",
            color="black" if is_default else f"C{i % 10}",
            linestyle="--" if i >= 10 and not is_default else "-",
        )
    title = one_line(f"ROC of {comparison.title_of(models)}")
    figure.suptitle(title, fontsize=10, parse_math=False)
    figure.legend(loc="outside lower center", frameon=False, fontsize=9, title="model, 1-ROCA%")
    return figure, title
