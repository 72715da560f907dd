"""Pages for a browser, each a single file that loads nothing; and the page of an explanation.

A message's text may be hostile.  So every text is escaped by `escape`, and the page's
Content-Security-Policy allows only its own style sheet and its embedded images: no script can run,
nothing is loaded and nothing is sent.  The page is ASCII, so a wrong charset cannot change it.
"""

from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from nbspam.display.lines import DIGITS_NOTE, ExplanationView, class_heads, strongest_rows
from nbspam.errors import format_count, one_line
from nbspam.scoring.explanation import TRAIT_PREFIX, StrongWord, Word, strongest_words
from nbspam.scoring.highlights import HighlightedExcerpt, Run
from nbspam.tokens.kinds import kind_of
from nbspam.tokens.tokenized import printable

if TYPE_CHECKING:
    from nbspam.store.lookup import Model

_MAX_PHONE_COLUMNS = 5  # a table with more columns is shown row by row on a narrow screen
_STYLE = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"})


def escape(text: str) -> str:
    """Escape a text for HTML, without control and format characters except line feeds."""
    harmless = text if text.replace("\n", "").isprintable() else printable(text)
    return harmless.translate(_ENTITIES)


def html_page(title: str, body: Iterable[str], footer: str) -> str:
    """Return a page.  title, footer: plain texts.  body: HTML."""
    digest = b64encode(sha256(_STYLE.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none';"
        " form-action 'none'"
    )
    lines = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="referrer" content="no-referrer">',
        f"<title>{escape(title)}</title>",
        f"<style>{_STYLE}</style>",
        "</head>",
        "<body>",
        *body,
        f"<footer>{escape(footer)}</footer>",
        "</body>",
        "</html>",
    ]
    return "\n".join(lines).encode("ascii", "xmlcharrefreplace").decode()


def message_html(excerpt: HighlightedExcerpt) -> str:
    """Format an excerpt; the words that decided are shaded, as on a terminal."""
    subject, sender, text = ("".join(map(_shaded_run, runs)) for runs in excerpt.merge_runs()[:3])
    fields = "".join(
        f'<dt>{name}</dt><dd dir="auto">{line}</dd>'
        for name, line in (("Subject", subject), ("From", sender))
        if line
    )
    rest = f"\n… ({format_count(excerpt.rest, 'character')} more)" if excerpt.rest else ""
    return (
        f'<div class="message">{f"<dl>{fields}</dl>" if fields else ""}'
        f'<div class="body" dir="auto">{text or _EMPTY}{escape(rest)}</div></div>'
    )


_EMPTY = '<span class="dim">(no text)</span>'
_SHADES = {1: "f1", 2: "f2", -1: "a1", -2: "a2"}  # emphasis -> CSS class


def scale_html(favoured: str, other: str) -> str:
    """Return the legend of the shades; favoured, other: the classes that words favour."""
    marks = [f'<mark class="{_SHADES[i]}">&nbsp;&nbsp;&nbsp;</mark>' for i in (-2, -1, 1, 2)]
    return f'<p class="dim">{escape(other)} {" ".join(marks)} {escape(favoured)}</p>'


def _shaded_run(run: Run) -> str:
    text = escape(run.text)
    if not run.emphasis:
        return text
    return f'<mark class="{_SHADES[run.emphasis]}" title="{run.nats:+.3f} nats">{text}</mark>'


def table_html(
    heads: Sequence[str], rows: Iterable[tuple[str, Sequence[str]]], small: Sequence[str] = ()
) -> str:
    """Return a table.

    heads: plain texts.  small: plain texts below the heads.  rows: CSS class, and cells in HTML.
    """
    heads, small = list(map(escape, heads)), list(map(escape, small))
    pairs = list(zip_longest(heads, small, fillvalue=""))
    head = "".join(f"<th>{n}{f'<small>{note}</small>' if note else ''}</th>" for n, note in pairs)
    is_wide = len(heads) > _MAX_PHONE_COLUMNS
    data = [f' data-head="{name} {note}"' if is_wide else "" for name, note in pairs]
    lines = []
    for kind, cells in rows:
        row = "".join(f"<td{d}>{cell}</td>" for d, cell in zip(data, cells, strict=True))
        lines.append(f'<tr class="{kind}">{row}</tr>' if kind else f"<tr>{row}</tr>")
    body = "\n".join(lines)
    return f"<table{' class=many' if is_wide else ''}><tr>{head}</tr>\n{body}</table>"


def bar_html(ham: float, spam: float) -> str:
    """Draw a bar of two parts; ham, spam: the lengths in percent."""
    parts = f'<rect class="ham" width="{ham:.2f}" height="8"></rect>'
    parts += f'<rect class="spam" x="{ham:.2f}" width="{spam:.2f}" height="8"></rect>'
    return f'<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none">{parts}</svg>'


def words_html(model: "Model", top: int) -> Iterator[str]:
    """Yield a table of the strongest words for each class of a model."""
    heads = class_heads(model.metadata)
    ranked = strongest_words(model, top, fragments=False)
    for name, words in strongest_rows(ranked, model.metadata).items():
        yield f"<h2>Strongest words for {escape(name)}</h2>"
        rows = [("", _word_cells(word)) for word in words]
        names, totals = ["word", "weight", *(n for n, _ in heads)], ["", "", *(t for _, t in heads)]
        yield table_html(names, rows, totals)
    yield f'<p class="dim">{DIGITS_NOTE}</p>'


def _word_cells(word: Word | StrongWord) -> list[str]:
    token = f"<bdi><code>{escape(word.token)}</code></bdi>"
    return [token, f"{word.weight:+.3f}", *(f"{n:,}" for n in word.counts)]


def terms_html(terms: Iterable[tuple[str, str]]) -> str:
    """Format a list of terms and their meanings."""
    items = "".join(f"<dt>{escape(t)}</dt><dd>{escape(meaning)}</dd>" for t, meaning in terms)
    return f'<dl class="terms">{items}</dl>'


# The explanation of one message


def explanation_page(view: ExplanationView, version: str) -> str:
    """Return the page that explains a verdict.  version: the version of nbspam."""
    verdict, explanation = view.classification, view.explanation
    colour = "dim"
    if verdict.verdict in verdict.probabilities and view.positive is not None:
        colour = "bad" if verdict.verdict == view.positive else "good"
    rows = [("", [*_word_cells(word), f"{word.share:+.3f}"]) for word in view.words]
    blank = [""] * (1 + len(view.heads))
    rows += [("sum", [escape(name), *blank, f"{nats:+.3f}"]) for name, nats in view.sums]
    rows[-1] = ("total", rows[-1][1])
    heads = ["word", "weight", *(name for name, _ in view.heads), "share"]
    body = [
        f'<p class="dim">{escape(one_line(verdict.source))}</p>',
        f'<h1><span class="{colour}">{escape(verdict.verdict)}</span>{verdict.reason_suffix},'
        f" probability {verdict.displayed_probability:.4f}</h1>",
        *(f"<p>{escape(sentence)}</p>" for sentence in reversed(view.sentences)),
        "<h2>The message</h2>",
        message_html(view.excerpt),
        scale_html(explanation.of, explanation.against),
        "<h2>Its words</h2>",
        table_html(heads, rows, ["", "", *(total for _, total in view.heads)]),
        terms_html(_legend(view)),
    ]
    return html_page(f"{verdict.verdict}: {one_line(verdict.source)}", body, f"nbspam {version}")


def _legend(view: ExplanationView) -> Iterator[tuple[str, str]]:
    """Yield (term, meaning) for the columns of the table and the kinds of its tokens."""
    favoured = view.explanation.of
    yield "nats", f"the unit of log-odds: +0.7 doubles the odds of {favoured}, -0.7 halves them"
    yield "weight", "the evidence of a word by itself, in nats"
    yield "share", "what the word adds to this message's sum, in nats"
    kinds = {}
    for token in (word.token for word in view.words):
        name, meaning = kind_of(token)[:2]
        if token.startswith(TRAIT_PREFIX):
            name = TRAIT_PREFIX.rstrip(":")
            meaning = "a number that every message has, and how many messages had the same"
        kinds[name] = meaning
    yield from ((f"{name}:", meaning) for name, meaning in sorted(kinds.items()) if name)
