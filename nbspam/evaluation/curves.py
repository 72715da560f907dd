"""Curves of evaluations as drawings in SVG, which need no other package and no script.

They are drawn with the classes of `display.page`, so that they are light and dark with the page; in
a file of their own they are on white.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nbspam.bayes.matrix import Floats
from nbspam.display.lines import folded_text
from nbspam.display.page import escaped, svg_style
from nbspam.errors import OptionError, Remedy, counted
from nbspam.evaluation.comparison import DEFAULT, Compared
from nbspam.evaluation.metrics import CalibrationBin, ScoredMessages, score_distribution, wilson
from nbspam.evaluation.results import Rates, Results, interval, learning_curve

_WIDTH, _HEIGHT = 320, 250
_LEFT, _RIGHT, _TOP, _BOTTOM = 48, 12, 10, 42
_DOT, _LARGEST_DOT = 3.0, 9.0
_CAPTION, _LINE = 56, 15  # of a drawing in a file: characters of a line, and its height

Point = tuple[float, float]
CutOffPoint = tuple[str, float, float]  # what it is; ham blocked and spam missed, in percent


class Axis(NamedTuple):
    """An axis: what is on it, where a value stands (0 to 1), and the values that are named."""

    name: str
    place: Callable[[float], float]
    ticks: Sequence[tuple[float, str]]


def _linear(name: str, most: float, ticks: Sequence[float], low: float = 0.0) -> Axis:
    named = [(v, f"{v:,g}") for v in ticks]
    return Axis(name, lambda v: (v - low) / ((most - low) or 1), named)


def _percent(name: str) -> Axis:
    return _linear(name, 100, range(0, 101, 20))


def _log_percent(name: str, n: int) -> Axis:
    """Return an axis from half a message of n, which stands for none, to 100 percent."""
    least = min(50 / max(1, n), 50.0)
    low = math.log10(least)
    ticks = [(10.0**k, f"{10.0**k:g}") for k in range(math.ceil(low), 3)]
    return Axis(name, lambda v: (math.log10(max(v, least)) - low) / (2 - low), ticks)


class _Chart(NamedTuple):
    """What is drawn on two axes."""

    title: str
    x: Axis
    y: Axis

    def _at(self, point: Point) -> Point:
        """Return where a point is drawn, to a tenth of a pixel."""
        places = self.x.place(point[0]), self.y.place(point[1])
        across, up = (min(1.0, max(0.0, place)) for place in places)
        x, y = across * (_WIDTH - _LEFT - _RIGHT), up * (_HEIGHT - _TOP - _BOTTOM)
        return round(_LEFT + x, 1), round(_HEIGHT - _BOTTOM - y, 1)

    def line(self, points: Iterable[Point], kind: str = "line", style: str = "") -> str:
        drawn = list(dict.fromkeys(map(self._at, points)))
        # Of several on a straight line the first and the last will do: 40,000 messages are 10 KB.
        kept = [
            p
            for i, p in enumerate(drawn)
            if not 0 < i < len(drawn) - 1
            or not any(drawn[i - 1][axis] == p[axis] == drawn[i + 1][axis] for axis in (0, 1))
        ]
        places = " ".join(f"{px:g},{py:g}" for px, py in kept)
        of_its_own = f' style="{style}"' if style else ""
        return f'<polyline class="{kind}" points="{places}"{of_its_own}/>'

    def dot(self, point: Point, kind: str, radius: float, title: str) -> str:
        x, y = self._at(point)
        told = f"<title>{escaped(title)}</title>"
        return f'<circle class="{kind}" cx="{x:g}" cy="{y:g}" r="{radius:.1f}">{told}</circle>'

    def column(self, low: float, high: float, height: float, kind: str) -> str:
        left, top = self._at((low, height))
        right, bottom = self._at((high, 0))
        size = f'width="{right - left:g}" height="{bottom - top:g}"'
        return f'<rect class="{kind}" x="{left:g}" y="{top:g}" {size}/>'

    def svg(self, shapes: Iterable[str]) -> str:
        right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
        return "\n".join(
            [
                f'<svg class="curve" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img"'
                f' aria-label="{escaped(self.title)}">',
                f'<path class="axis" d="M{_LEFT},{_TOP}V{bottom}H{right}"/>',
                *(_text(self._at((v, 0))[0], bottom + 15, name) for v, name in self.x.ticks),
                *(
                    _text(_LEFT - 6, bottom - self.y.place(v) * (bottom - _TOP) + 4, name, "end")
                    for v, name in self.y.ticks
                ),
                _text((_LEFT + right) / 2, _HEIGHT - 8, self.x.name),
                _text(-(_TOP + bottom) / 2, 11, self.y.name, "middle", ' transform="rotate(-90)"'),
                *shapes,
                "</svg>",
            ]
        )


def _text(x: float, y: float, text: str, anchor: str = "middle", turned: str = "") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{turned}'
    return f"<text {place}>{escaped(text)}</text>"


# What is drawn


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
    at = f"cut-off {messages.threshold:g}" if cut_offs else "by the most probable class"
    counts = {at: messages.counts}
    if cut_offs is not None:
        counts.setdefault(f"cut-off {cut_offs.spam:g}", messages.verdicts)
    return [(at, 100 * of.fp / of.ham, 100 * of.fn / of.spam) for at, of in counts.items()]


# Drawings


def _steps(x: Floats, y: Floats) -> Iterable[Point]:
    """Return the corners of a curve in steps: across, then up."""
    return zip(np.repeat(x, 2)[1:].tolist(), np.repeat(y, 2)[:-1].tolist(), strict=True)


def roc_svg(messages: ScoredMessages, at: Iterable[CutOffPoint] = ()) -> str:
    """Return the ROC curve: spam caught against ham blocked.  at: points to show."""
    chart = _Chart("ROC curve", _percent("ham blocked, %"), _percent("spam caught, %"))
    blocked, missed = roc_points(messages)
    caught = _steps(np.append(0, blocked), np.append(0, 100 - missed))
    lines = [chart.line([(0, 0), (100, 100)], "even"), chart.line(caught)]
    dots = [chart.dot((x, 100 - y), "point", 4, said) for said, x, y in at]
    return chart.svg(lines + dots)


def _log_chart(messages: ScoredMessages) -> _Chart:
    ham, spam = messages.counts.ham, messages.counts.spam
    x, y = _log_percent("ham blocked, %", ham), _log_percent("spam missed, %", spam)
    return _Chart("ROC curve, logarithmic", x, y)


def log_roc_svg(messages: ScoredMessages, at: Iterable[CutOffPoint] = ()) -> str:
    """Return the ROC curve on logarithmic axes, where that of a good filter is no mere corner."""
    chart = _log_chart(messages)
    dots = [chart.dot((x, missed), "point", 4, said) for said, x, missed in at]
    return chart.svg([chart.line(_steps(*roc_points(messages))), *dots])


def calibration_svg(bins: Sequence[CalibrationBin]) -> str:
    """Return the share of spam against the predicted one, with interval and messages."""
    most, tenths = max(b.messages for b in bins), [n / 10 for n in range(0, 11, 2)]
    x, y = (_linear(n, 1, tenths) for n in ("predicted P(spam)", "observed share of spam"))
    chart = _Chart("calibration", x, y)
    points = [(b.mean_probability, b.spam_share) for b in bins]
    shapes = [chart.line([(0, 0), (1, 1)], "even"), chart.line(points)]
    for b, point in zip(bins, points, strict=True):
        radius = _DOT + (_LARGEST_DOT - _DOT) * math.sqrt(b.messages / most)
        ends = wilson(round(b.spam_share * b.messages), b.messages) or ()
        shapes.append(chart.line([(point[0], end) for end in ends], "axis"))
        shapes.append(chart.dot(point, "dot", radius, counted(b.messages, "message")))
    return chart.svg(shapes)


def scores_svg(messages: ScoredMessages) -> str:
    """Return the histogram of the log-odds of ham and of spam."""
    bins = list(score_distribution(messages))
    most = max(max(both) for _, _, *both in bins) or 1
    low, high = bins[0][0], bins[-1][1]
    x = _linear("log-odds of spam, nats", high, [low, low / 2, 0, high / 2, high], low)
    x = x._replace(ticks=[(v, f"{v:+.0f}" if v else "0") for v, _ in x.ticks])
    chart = _Chart("score distribution", x, _linear("messages", most, [0, most]))
    shapes = []
    for start, end, ham, spam in bins:
        middle = (start + end) / 2
        shapes.append(chart.column(start + 0.1, middle, ham, "a"))
        shapes.append(chart.column(middle, end - 0.1, spam, "f"))
    return chart.svg(shapes)


def learning_svg(rates: Rates) -> str:
    """Return how the errors fall as messages are learned."""
    first, last = min(rates["every"]), max(rates["every"])
    most = max(rate for of in rates.values() for rate in of.values()) or 1
    x = _linear("messages learned", last, [first, last], first)
    y = _linear("errors, %", most, [0, round(most, 2)])
    chart = _Chart("learning curve", x, y)
    kinds = {"every": "even", "recent": "line"}
    return chart.svg(chart.line(rates[name].items(), kind) for name, kind in kinds.items())


def drawings(results: Results) -> Iterator[tuple[str, str]]:
    """Yield the curves of an evaluation that are defined, each with what it shows."""
    messages, counts = results.messages, results.messages.counts
    if counts.spam and counts.ham:
        at = cut_off_points(results)
        area = results.figures.by_key["auc"]
        points = "; ".join(
            f"{said}: {100 - missed:.2f} % of spam, {x:.2f} % of ham" for said, x, missed in at
        )
        said = f"ROC, area under the curve {area.value:.4f} ({interval(area.interval)})"
        n = f"{counts.spam:,} spam and {counts.ham:,} ham"
        yield roc_svg(messages, at), f"{said}; {n}; {points}"
        yield log_roc_svg(messages, at), "the same on logarithmic axes, spam missed for caught"
    if results.bins:
        error = f"calibration, error {results.calibration_error:.4f}"
        yield calibration_svg(results.bins), f"{error}; a larger dot stands for more messages"
        beyond = "the outer columns include everything beyond"
        yield scores_svg(messages), f"scores: ham blue, spam red; {beyond}"
    if results.evaluation.learned_so_far:
        window, rates = learning_curve(results.evaluation)
        last = f"over the last {window:,} messages; dashed: over all so far"
        yield learning_svg(rates), f"learning curve: errors {last}"


# Drawings in files


def check_plot(path: Path) -> None:
    """Raise OptionError unless a plot can be drawn into a file of this name."""
    if path.suffix.lower() != ".svg":
        raise OptionError(f"{path}: a plot is an SVG file; name a file that ends in .svg")


def _write(path: Path, title: str, parts: Iterable[str], width: int, height: int) -> None:
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
        f' viewBox="0 0 {width} {height}">',
        f"<style>{svg_style()}</style>",
        '<rect width="100%" height="100%" fill="white"/>',
        f'<g class="curve">{_text(_LINE, 1.5 * _LINE, title, "start")}',
        *parts,
        "</g></svg>\n",
    ]
    text = "\n".join(lines)
    path.write_text(text.encode("ascii", "xmlcharrefreplace").decode(), encoding="ascii")


def _placed(svg: str, x: float, y: float, size: float = 1) -> str:
    place = f'<svg x="{x:g}" y="{y:g}" width="{size * _WIDTH:g}" height="{size * _HEIGHT:g}"'
    return svg.replace("<svg", place, 1)


def draw(results: Results, path: Path) -> None:
    """Draw the curves of an evaluation into an SVG file.

    Raises OptionError where no class is called spam.
    """
    if not results.messages.has_spam_class:
        raise OptionError(f"{path}: a plot needs a class called spam", Remedy.NAME_SPAM_LABEL)
    parts = []
    across, down = _WIDTH + 2 * _LINE, _HEIGHT + 5 * _LINE
    row = 0
    for i, (svg, caption) in enumerate(drawings(results)):
        row, column = divmod(i, 2)
        x, y = _LINE + column * across, 2 * _LINE + row * down
        parts.append(_placed(svg, x, y))
        for k, line in enumerate(folded_text(caption, _CAPTION)):
            parts.append(_text(x, y + _HEIGHT + (k + 1) * _LINE, line, "start"))
    _write(path, f"nbspam, {results.title}", parts, 2 * across, 2 * _LINE + (row + 1) * down)


def draw_comparison(models: Sequence[Compared], path: Path) -> None:
    """Draw the ROC curves of all models into one SVG file.

    Raises OptionError where no class is called spam.
    """
    messages, protocol = models[0].messages, models[0].results.evaluation.protocol
    if not messages.has_spam_class:
        raise OptionError(f"{path}: a plot needs a class called spam", Remedy.NAME_SPAM_LABEL)
    if not (messages.counts.spam and messages.counts.ham):
        raise OptionError(f"{path}: a ROC curve needs spam and ham; test on messages of both")
    chart, shapes, legend = _log_chart(messages), [], []
    right = 4 * _LINE + 2 * _WIDTH
    area_of = {m.combination: m.results.figures.values["one_minus_roca_pct"] or 0.0 for m in models}
    for i, model in enumerate(sorted(models, key=lambda m: area_of[m.combination])):
        is_default = model.combination == DEFAULT
        colour = "black" if is_default else f"hsl({360 * i // len(models)}, 70%, 45%)"
        dashes = "; stroke-dasharray: 4 2" if i % 2 and not is_default else ""
        style = f"stroke: {colour}; stroke-width: {2 if is_default else 1}{dashes}"
        shapes.append(chart.line(_steps(*roc_points(model.messages)), style=style))
        area = area_of[model.combination]
        name = f"{model.combination.name}{' *' if is_default else ''}  {area:.3g}"
        y = (i + 4) * _LINE
        mark = f"M{right - 30},{y - 4}h24"
        legend.append(
            f'<path class="line" d="{mark}" style="{style}"/>{_text(right, y, name, "start")}'
        )
    n = counted(messages.counts.messages, "message")
    title = f"ROC of {counted(len(models), 'model')} on {n}, {protocol}"
    head = _text(right, 3 * _LINE, "model, 1-ROCA%", "start")
    height = max(2 * _HEIGHT + 3 * _LINE, (len(models) + 5) * _LINE)
    parts = [_placed(chart.svg(shapes), _LINE, 2 * _LINE, 2), head, *legend]
    _write(path, title, parts, right + _WIDTH, height)
