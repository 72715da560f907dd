"""The explanation of one message as a page."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from nbspam.display.page import (
    bar_html,
    escaped,
    html_page,
    message_html,
    scale_html,
    table_html,
    terms_html,
)
from nbspam.display.word_rows import WordRow
from nbspam.errors import one_line
from nbspam.scoring.explanation import Explanation, Word
from nbspam.scoring.highlights import HighlightedExcerpt
from nbspam.scoring.verdict import Verdict


class ExplanationView(NamedTuple):
    """What the page shows of one message."""

    judged: Verdict
    found: Explanation
    positive: str | None  # the class called spam
    excerpt: HighlightedExcerpt
    words: list[Word]  # those shown one by one
    sums: list[tuple[str, float]]  # the others, the constants, and last the sum of all
    heads: list[tuple[str, str]]  # of the columns of counts: `class_heads`
    sentences: list[str]  # why
    legend: list[tuple[str, str]]


def explanation_page(view: ExplanationView, version: str) -> str:
    """Return the page.  version: of nbspam."""
    judged, found = view.judged, view.found
    colour = "dim"
    if judged.verdict in judged.probabilities and view.positive is not None:
        colour = "bad" if judged.verdict == view.positive else "good"
    body = [
        f'<p class="dim">{escaped(one_line(judged.source))}</p>',
        f'<h1><span class="{colour}">{escaped(judged.verdict)}</span>{judged.remark}, probability'
        f" {judged.probability:.4f}</h1>",
        *(f"<p>{escaped(sentence)}</p>" for sentence in reversed(view.sentences)),
        "<h2>The message</h2>",
        message_html(view.excerpt),
        scale_html(found.of, found.against),
        "<h2>Its words</h2>",
        _table(view),
        terms_html(view.legend),
    ]
    title = f"{judged.verdict}: {one_line(judged.source)}"
    return html_page(title, body, f"nbspam {version}")


def _table(view: ExplanationView) -> str:
    rows = [WordRow(*word) for word in view.words]
    lines = word_lines(rows)
    *sums, total = view.sums
    blank = [""] * (1 + len(view.heads))
    for kind, several in (("sum", sums), ("total", [total])):
        lines += [(kind, [escaped(name), *blank, f"{nats:+.3f}", ""]) for name, nats in several]
    return words_table(lines, view.heads, ["share", ""])


def word_lines(rows: Sequence[WordRow]) -> list[tuple[str, Sequence[str]]]:
    """Return the rows of a table of words, each with a bar."""
    sizes = [row.weight if row.share is None else row.share for row in rows]
    longest = max(map(abs, sizes), default=0.0)
    lines: list[tuple[str, Sequence[str]]] = []
    for row, size in zip(rows, sizes, strict=True):
        cells = [f"<bdi><code>{escaped(row.token)}</code></bdi>", f"{row.weight:+.3f}"]
        cells += [f"{n:,}" for n in row.counts]
        cells += [] if row.share is None else [f"{row.share:+.3f}"]
        lines.append(("", [*cells, bar_html(size, longest)]))
    return lines


def words_table(
    lines: Iterable[tuple[str, Sequence[str]]], heads: list[tuple[str, str]], last: list[str]
) -> str:
    """Return a table of words.  heads: of the columns of counts.  last: those after them."""
    names = ["word", "weight", *(name for name, _ in heads), *last]
    return table_html(names, lines, ["", "", *(of for _, of in heads)])
