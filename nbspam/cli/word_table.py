"""The table of words: of a message with their shares, of a model without."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import click

from nbspam.display.lines import WordRow, cell_width, padded, shortened

_BAR = 20  # characters of the longest bar, where there is room
_SHORT_BAR = 8
_NUMBER = 8  # a weight or share with its sign
_GAP = "  "
_LEAST_WORD = 12  # cells; a column is left out rather than less
_CLASS = 14  # cells of a class's name at most, on a terminal


class _Layout(NamedTuple):
    """How wide the columns are, in cells."""

    word: int
    classes: tuple[int, ...]  # the indices of the classes shown
    counts: tuple[int, ...]  # of each of these
    bar: int


def table_lines(
    rows: Sequence[WordRow],
    sums: Sequence[tuple[str, float]],
    heads: Sequence[tuple[str, str]],
    width: int | None,
) -> Iterator[str]:
    """Yield the heads, a line for each word, and one for each sum, which go into the shares.

    heads: of the columns of counts, two lines each.
    width: of the terminal, whose lines are not exceeded; None: tokens are whole, however long.
    """
    has_share = any(row.share is not None for row in rows) or bool(sums)
    if width is not None:
        heads = [(shortened(name, _CLASS), of) for name, of in heads]
    longest_sum = max((cell_width(name) for name, _ in sums), default=0)
    layout = _layout(rows, heads, longest_sum, has_share, width)
    yield from _head_lines(heads, layout, has_share)
    sizes = [abs(row.weight if row.share is None else row.share) for row in rows]
    longest = max(sizes, default=0.0) or 1.0
    for row in rows:
        yield _row_line(row, layout, longest, width)
    before_share = layout.word + 2 + _NUMBER + sum(2 + w for w in layout.counts)
    for name, nats in sums:
        shown = name if width is None else shortened(name, before_share)
        yield f"{padded(shown, before_share)}{_GAP}{nats:+{_NUMBER}.3f}"


def _layout(
    rows: Sequence[WordRow],
    heads: Sequence[tuple[str, str]],
    longest_sum: int,
    has_share: bool,
    width: int | None,
) -> _Layout:
    counts = [
        max(cell_width(name), len(of), *(len(f"{row.counts[k]:,}") for row in rows), 6)
        for k, (name, of) in enumerate(heads)
    ]
    # The name of a sum goes on below the numbers of the words.
    beside = 2 + _NUMBER + sum(2 + size for size in counts)
    longest = max(4, longest_sum - beside, *(cell_width(row.token) for row in rows))
    every = tuple(range(len(heads)))
    if width is None:
        return _Layout(longest, every, tuple(counts), _BAR)
    kept = list(every)
    numbers = 2 + _NUMBER + (2 + _NUMBER if has_share else 0)

    def room(bar: int) -> int:
        """Return the cells left for the word."""
        return width - numbers - sum(2 + counts[k] for k in kept) - (2 + bar if bar else 0)

    while len(kept) > 1 and room(0) < _LEAST_WORD:
        kept.pop(0)  # JSON has them
    bar = next((n for n in (_BAR, _SHORT_BAR) if room(n) >= min(longest, 24)), 0)
    word = max(4, min(longest, room(bar)))
    return _Layout(word, tuple(kept), tuple(counts[k] for k in kept), bar)


def _head_lines(
    heads: Sequence[tuple[str, str]], layout: _Layout, has_share: bool
) -> Iterator[str]:
    for i, word in enumerate(("word", "")):
        cells = [padded(word, layout.word), ("" if i else "weight").rjust(_NUMBER)]
        shown = zip(layout.classes, layout.counts, strict=True)
        cells += [_right(heads[k][i], size) for k, size in shown]
        if has_share:
            cells.append(("" if i else "share").rjust(_NUMBER))
        line = _GAP.join(cells).rstrip()
        if line:
            yield line


def _row_line(row: WordRow, layout: _Layout, longest: float, width: int | None) -> str:
    token = row.token if width is None else shortened(row.token, layout.word)
    cells = [padded(token, layout.word), f"{row.weight:+{_NUMBER}.3f}"]
    shown = zip(layout.classes, layout.counts, strict=True)
    cells += [f"{row.counts[k]:,}".rjust(size) for k, size in shown]
    if row.share is not None:
        cells.append(f"{row.share:+{_NUMBER}.3f}")
    size = row.weight if row.share is None else row.share
    sign = "+" if size > 0 else "-"
    bar = sign * round(abs(size) / longest * layout.bar)
    if bar:
        cells.append(click.style(bar, fg="red" if size > 0 else "green"))
    return _GAP.join(cells)


def _right(text: str, width: int) -> str:
    return " " * (width - cell_width(text)) + text
