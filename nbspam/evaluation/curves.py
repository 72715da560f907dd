"""Curves of an evaluation as small drawings in SVG, which need no other package and no script.

They are drawn with the classes of `display.page`, so that they are light and dark with the page.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from nbspam.display.page import escaped
from nbspam.evaluation.bins import CalibrationBin, score_distribution
from nbspam.evaluation.curve_points import roc_points
from nbspam.evaluation.samples import ScoredMessages

_WIDTH, _HEIGHT = 320, 250
_LEFT, _RIGHT, _TOP, _BOTTOM = 48, 12, 10, 42
_DOT, _LARGEST_DOT = 3.0, 9.0

Point = tuple[float, float]


class Axis(NamedTuple):
    """An axis: what is on it, where a value stands (0 to 1), and the values that are named."""

    name: str
    place: Callable[[float], float]
    ticks: Sequence[tuple[float, str]]


def roc_svg(messages: ScoredMessages) -> str:
    """Return the ROC curve: spam caught against ham blocked, with the point of the threshold."""
    blocked, missed = roc_points(messages)
    points = [(0.0, 0.0), *zip(blocked.tolist(), (100 - missed).tolist(), strict=True)]
    point = _at_threshold(messages)
    shapes = [
        _line([(0, 0), (100, 100)], _SHARE, _SHARE, "even"),
        _line(_steps(points), _SHARE, _SHARE, "line"),
        _dot((point[0], 100 - point[1]), _SHARE, _SHARE, "point", 4),
    ]
    return _chart(
        "ROC curve", _SHARE._replace(name="ham blocked, %"), _named("spam caught, %"), shapes
    )


def log_roc_svg(messages: ScoredMessages) -> str:
    """Return the ROC curve on logarithmic axes, where that of a good filter is no mere corner."""
    blocked, missed = roc_points(messages)
    counts = messages.counts
    x = _log_axis("ham blocked, %", 50 / max(1, counts.ham))
    y = _log_axis("spam missed, %", 50 / max(1, counts.spam))
    points = list(zip(blocked.tolist(), missed.tolist(), strict=True))
    shapes = [
        _line(_steps(points), x, y, "line"),
        _dot(_at_threshold(messages), x, y, "point", 4),
    ]
    return _chart("ROC curve, logarithmic", x, y, shapes)


def calibration_svg(bins: Sequence[CalibrationBin]) -> str:
    """Return the share of spam against the predicted one, with the messages of each point."""
    most = max(b.messages for b in bins)
    x, y = _PROBABILITY._replace(name="predicted P(spam)"), _PROBABILITY
    points = [(b.mean_probability, b.spam_share) for b in bins]
    shapes = [
        _line([(0, 0), (1, 1)], x, y, "even"),
        _line(points, x, y, "line"),
    ]
    for b, point in zip(bins, points, strict=True):
        radius = _DOT + (_LARGEST_DOT - _DOT) * math.sqrt(b.messages / most)
        shapes.append(_dot(point, x, y, "dot", radius, f"{b.messages:,} messages"))
    return _chart("calibration", x, y._replace(name="observed share of spam"), shapes)


def scores_svg(messages: ScoredMessages) -> str:
    """Return the histogram of the log-odds of ham and of spam."""
    bins = score_distribution(messages.spam, messages.log_odds)
    most = max(max(b.ham, b.spam) for b in bins) or 1
    low, high = bins[0].low, bins[-1].high
    x = Axis(
        "log-odds of spam, nats",
        lambda v: (v - low) / (high - low),
        [(v, f"{v:+.0f}" if v else "0") for v in (low, low / 2, 0.0, high / 2, high)],
    )
    y = Axis("messages", lambda v: v / most, [(0, "0"), (most / 2, ""), (most, f"{most:,}")])
    shapes = []
    for b in bins:
        middle = (b.low + b.high) / 2
        shapes.append(_column(b.low + 0.1, middle, b.ham, (x, y), "a"))
        shapes.append(_column(middle, b.high - 0.1, b.spam, (x, y), "f"))
    return _chart("score distribution", x, y, shapes)


def _at_threshold(messages: ScoredMessages) -> Point:
    """Return ham blocked and spam missed at the threshold, in percent."""
    counts = messages.counts
    return 100 * counts.fp / max(1, counts.ham), 100 * counts.fn / max(1, counts.spam)


def _steps(points: Iterable[Point]) -> list[Point]:
    """Return the corners of a curve in steps: across, then up."""
    corners: list[Point] = []
    for x, y in points:
        if corners:
            corners.append((x, corners[-1][1]))
        corners.append((x, y))
    return corners


_SHARE = Axis("", lambda v: v / 100, [(v, str(v)) for v in (0, 20, 40, 60, 80, 100)])
_PROBABILITY = Axis("", lambda v: v, [(v / 10, f"{v / 10:g}") for v in (0, 2, 4, 6, 8, 10)])


def _named(name: str) -> Axis:
    return _SHARE._replace(name=name)


def _log_axis(name: str, least: float) -> Axis:
    """Return an axis from `least` percent, half a message, which stands for none, to 100."""
    low = math.log10(min(least, 50.0))
    ticks = [10.0**n for n in range(math.ceil(low), 3)]
    return Axis(
        name,
        lambda v: (math.log10(max(v, least)) - low) / (2 - low),
        [(v, f"{v:g}") for v in ticks],
    )


def _xy(point: Point, x: Axis, y: Axis) -> Point:
    """Return where a point is drawn, to a tenth of a pixel."""
    across = min(1.0, max(0.0, x.place(point[0])))
    up = min(1.0, max(0.0, y.place(point[1])))
    return (
        round(_LEFT + across * (_WIDTH - _LEFT - _RIGHT), 1),
        round(_HEIGHT - _BOTTOM - up * (_HEIGHT - _TOP - _BOTTOM), 1),
    )


def _line(points: Iterable[Point], x: Axis, y: Axis, kind: str) -> str:
    drawn = list(dict.fromkeys(_xy(point, x, y) for point in points))
    # Of several on a straight line the first and the last will do: 40,000 messages are 10 KB.
    kept = [
        p
        for i, p in enumerate(drawn)
        if not 0 < i < len(drawn) - 1
        or (
            not (p[0] == drawn[i - 1][0] == drawn[i + 1][0])
            and not (p[1] == drawn[i - 1][1] == drawn[i + 1][1])
        )
    ]
    places = " ".join(f"{px:g},{py:g}" for px, py in kept)
    return f'<polyline class="{kind}" points="{places}"/>'


def _dot(point: Point, x: Axis, y: Axis, kind: str, radius: float, title: str = "") -> str:
    px, py = _xy(point, x, y)
    told = f"<title>{escaped(title)}</title>" if title else ""
    return f'<circle class="{kind}" cx="{px:g}" cy="{py:g}" r="{radius:.1f}">{told}</circle>'


def _column(low: float, high: float, height: float, axes: tuple[Axis, Axis], kind: str) -> str:
    left, top = _xy((low, height), *axes)
    right, bottom = _xy((high, 0), *axes)
    return (
        f'<rect class="{kind}" x="{left:g}" y="{top:g}" width="{right - left:g}"'
        f' height="{bottom - top:g}"/>'
    )


def _chart(title: str, x: Axis, y: Axis, shapes: Iterable[str]) -> str:
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    lines = [
        f'<svg class="curve" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img"'
        f' aria-label="{escaped(title)}">',
        f'<path class="axis" d="M{_LEFT},{_TOP}V{bottom}H{right}"/>',
    ]
    for value, name in x.ticks:
        across = _LEFT + x.place(value) * (right - _LEFT)
        lines.append(_text(across, bottom + 15, "middle", name))
    for value, name in y.ticks:
        up = bottom - y.place(value) * (bottom - _TOP)
        lines.append(_text(_LEFT - 6, up + 4, "end", name))
    lines.append(_text((_LEFT + right) / 2, _HEIGHT - 8, "middle", x.name))
    middle = (_TOP + bottom) / 2
    lines.append(
        f'<text x="0" y="0" text-anchor="middle" transform="translate(11,{middle:g}) rotate(-90)">'
        f"{escaped(y.name)}</text>"
    )
    return "\n".join([*lines, *shapes, "</svg>"])


def _text(x: float, y: float, anchor: str, text: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escaped(text)}</text>'
