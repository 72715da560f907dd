"""A page for a browser: one file that needs nothing else; and that of an explanation.

What a message says may be hostile.  So every text goes through `escaped`, and the page forbids by
its Content-Security-Policy whatever is not its own style sheet or an image within it: no script can
run, nothing is loaded and nothing is sent.  It is ASCII, so no wrong charset can change it.
"""

from base64 import b64encode
from collections.abc import Iterable, Sequence
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path

from nbspam.display.lines import ExplanationView
from nbspam.errors import counted, one_line
from nbspam.scoring.highlights import HighlightedExcerpt, Run
from nbspam.tokens.tokenized import printable

_STYLE = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"})


def escaped(text: str) -> str:
    """Return a text for HTML, without control and format characters but line feeds."""
    harmless = text if text.replace("\n", "").isprintable() else printable(text)
    return harmless.translate(_ENTITIES)


def html_page(title: str, body: Iterable[str], footer: str) -> str:
    """Return a page.  title, footer: texts.  body: HTML."""
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
        f"<title>{escaped(title)}</title>",
        f"<style>{_STYLE}</style>",
        "</head>",
        "<body>",
        *body,
        f"<footer>{escaped(footer)}</footer>",
        "</body>",
        "</html>",
    ]
    return "\n".join(lines).encode("ascii", "xmlcharrefreplace").decode()


def message_html(excerpt: HighlightedExcerpt) -> str:
    """Return an excerpt with the words that decided shaded, as on a terminal."""
    subject, sender, text = ("".join(map(_shaded_run, runs)) for runs in excerpt.joined()[:3])
    fields = "".join(
        f'<dt>{name}</dt><dd dir="auto">{line}</dd>'
        for name, line in (("Subject", subject), ("From", sender))
        if line
    )
    rest = f"\n… ({counted(excerpt.rest, 'character')} more)" if excerpt.rest else ""
    return (
        f'<div class="message">{f"<dl>{fields}</dl>" if fields else ""}'
        f'<div class="body" dir="auto">{text or _EMPTY}{escaped(rest)}</div></div>'
    )


_EMPTY = '<span class="dim">(no text)</span>'
_SHADES = {1: "f1", 2: "f2", -1: "a1", -2: "a2"}  # by emphasis


def scale_html(positive: str, against: str) -> str:
    """Return what the shades mean.  positive, against: the classes that words speak for."""
    marks = [f'<mark class="{_SHADES[i]}">&nbsp;&nbsp;&nbsp;</mark>' for i in (-2, -1, 1, 2)]
    return f'<p class="dim">{escaped(against)} {" ".join(marks)} {escaped(positive)}</p>'


def _shaded_run(run: Run) -> str:
    text = escaped(run.text)
    if not run.emphasis:
        return text
    return f'<mark class="{_SHADES[run.emphasis]}" title="{run.nats:+.3f} nats">{text}</mark>'


def table_html(
    heads: Sequence[str], rows: Iterable[tuple[str, Sequence[str]]], small: Sequence[str] = ()
) -> str:
    """Return a table.

    heads: texts.  small: texts below these.  rows: the class of each, and its cells in HTML.
    """
    head = "".join(
        f"<th>{escaped(name)}{f'<small>{escaped(note)}</small>' if note else ''}</th>"
        for name, note in zip_longest(heads, small, fillvalue="")
    )
    lines = []
    for kind, cells in rows:
        row = "".join(f"<td>{cell}</td>" for cell in cells)
        lines.append(f'<tr class="{kind}">{row}</tr>' if kind else f"<tr>{row}</tr>")
    body = "\n".join(lines)
    return f'<div class="wide"><table><tr>{head}</tr>\n{body}</table></div>'


def terms_html(terms: Iterable[tuple[str, str]]) -> str:
    """Return a list of terms and their meanings."""
    items = "".join(f"<dt>{escaped(t)}</dt><dd>{escaped(meaning)}</dd>" for t, meaning in terms)
    return f'<dl class="terms">{items}</dl>'


# The explanation of one message


def explanation_page(view: ExplanationView, version: str) -> str:
    """Return the page.  version: of nbspam."""
    judged, explanation = view.judged, view.explanation
    colour = "dim"
    if judged.verdict in judged.probabilities and view.positive is not None:
        colour = "bad" if judged.verdict == view.positive else "good"
    rows: list[tuple[str, Sequence[str]]] = []
    for word in view.words:
        token = f"<bdi><code>{escaped(word.token)}</code></bdi>"
        counts = [f"{n:,}" for n in word.counts]
        rows.append(("", [token, f"{word.weight:+.3f}", *counts, f"{word.share:+.3f}"]))
    blank = [""] * (1 + len(view.heads))
    rows += [("sum", [escaped(name), *blank, f"{nats:+.3f}"]) for name, nats in view.sums]
    rows[-1] = ("total", rows[-1][1])
    heads = ["word", "weight", *(name for name, _ in view.heads), "share"]
    body = [
        f'<p class="dim">{escaped(one_line(judged.source))}</p>',
        f'<h1><span class="{colour}">{escaped(judged.verdict)}</span>{judged.remark}, probability'
        f" {judged.own_probability:.4f}</h1>",
        *(f"<p>{escaped(sentence)}</p>" for sentence in reversed(view.sentences)),
        "<h2>The message</h2>",
        message_html(view.excerpt),
        scale_html(explanation.of, explanation.against),
        "<h2>Its words</h2>",
        table_html(heads, rows, ["", "", *(total for _, total in view.heads)]),
        terms_html(view.legend),
    ]
    return html_page(f"{judged.verdict}: {one_line(judged.source)}", body, f"nbspam {version}")
