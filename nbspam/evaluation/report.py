"""Reports for people: evaluations and comparisons, printed or as pages.

An evaluation has a list of tables, which is printed (with rich's lines and colours on a terminal,
plainly in a pipe) or written into a page.  `results.as_json` returns the same figures as JSON.
"""

import sys
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import chain
from typing import NamedTuple

from rich import box
from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from nbspam import __version__
from nbspam.display import lines, page
from nbspam.errors import NbspamError, format_count, one_line
from nbspam.evaluation import comparison, curves, metrics
from nbspam.evaluation.results import (
    Confusion,
    Outcome,
    Results,
    format_figure,
    format_interval,
    worst_mistakes,
)
from nbspam.names import UNSURE
from nbspam.scoring.highlights import words_as_written

_PIPE_WIDTH = 200  # characters; wide enough that no table is folded
_MAX_LINE_WIDTH = 80  # terminal columns of a line of running text
_EXCERPT_LINES = 4  # lines of a mistake's text
_EMPHASIS = {2: "bold underline red", 1: "underline red", 0: "", -1: "green", -2: "bold green"}
_BAR_LENGTH = 40  # characters of a bar that would show all messages
# Minimal widths in characters, so that columns of the same name align in several tables.
_MIN_WIDTHS = {"metric": 11, "value": 6, "95 % interval": 15}
_MAX_CONFUSION_CLASSES = 10  # with more, the short report omits the confusion matrix
_NARROW_FROM_COLUMNS = 6  # from this many columns on, use narrow spacing to fit into 80


# The tables


class ReportTable(NamedTuple):
    """A table of the report, before it is printed or written into a page."""

    title: str
    heads: Sequence[str]  # the column with the row's meaning has an empty head
    rows: list[list[str]]
    bars: Sequence[tuple[int, int]] = ()  # ham and spam of each row, to draw as a bar


def report_tables(results: Results, *, full: bool) -> Iterator[ReportTable]:
    """Yield the tables of the report.

    full: all figures, confusion, calibration and scores; otherwise the main figures, and without
    cut-offs a small confusion matrix.
    """
    parts = {metrics.ERRORS: "", metrics.SCORES: "ranking and probabilities, at every cut-off"}
    cut_offs, at_half = results.cut_offs, f"at a probability of {metrics.THRESHOLD}"
    verdicts = ""
    if cut_offs is not None:
        verdicts = f"verdicts: spam above {cut_offs.spam:g}, ham up to {cut_offs.ham:g}"
        parts = {metrics.VERDICTS: verdicts} | parts | {metrics.ERRORS: f"errors, {at_half}"}
    for part, title in parts.items():
        rows = []
        for row in results.figures.rows(part, brief=not full):
            form = format_figure if isinstance(row.value, float) else "{:,.0f}".format
            rows.append(
                [row.name, format_figure(row.value), format_interval(row.interval, form), row.line]
            )
        if rows:
            yield ReportTable(title, ("metric", "value", "95 % interval", ""), rows)
    if full or (cut_offs is None and len(results.confusion) <= _MAX_CONFUSION_CLASSES):
        yield _confusion_table(f"classes, {at_half}" if cut_offs else "", results.confusion)
    if full and cut_offs is not None:
        yield _confusion_table(verdicts, results.verdicts)
    if full and results.bins:
        rows = [
            [f"{low:.1f} to {high:.1f}", f"{n:,}", f"{predicted:.4f}", f"{observed:.4f}"]
            for low, high, n, predicted, observed in results.bins
        ]
        title = "calibration: the probability of spam as predicted, and the observed share of spam"
        yield ReportTable(title, ("P(spam)", "messages", "predicted", "observed"), rows)
        yield _score_table(results)


def _confusion_table(title: str, confusion: Confusion) -> ReportTable:
    """Return a confusion matrix; each row starts with the size of its class."""
    columns = next(iter(confusion.values()))
    called = (name if name == UNSURE else f"called {name}" for name in columns)
    rows = [
        [f"{sum(row.values()):,} {name}", *(f"{n:,}" for n in row.values())]
        for name, row in confusion.items()
    ]
    return ReportTable(title, ["actual", *called], rows)


def _score_table(results: Results) -> ReportTable:
    """Return the score distribution, with a bar for each range of log-odds."""
    ranges = list(metrics.score_distribution(results.messages))
    rows = [[f"{low:+.0f} to {high:+.0f}", f"{h:,}", f"{s:,}"] for low, high, h, s in ranges]
    rows[0][0] = f"below {rows[0][0].rpartition(' ')[2]}"  # the outer ranges are open
    rows[-1][0] = f"above {rows[-1][0].partition(' ')[0]}"
    title, bars = "scores; the bars show ham, then spam", [(h, s) for _, _, h, s in ranges]
    return ReportTable(title, ("log-odds", "ham", "spam"), rows, bars)


# As text


def print_report(
    results: Results, errors: int, notes: Sequence[str] = (), *, full: bool = True
) -> None:
    """Print the report to standard output; only a terminal gets colours and lines.

    errors: how many of the worst mistakes to show.
    notes: sentences to read before the figures, such as which messages were left out.
    """
    out = console()
    for line in (results.title, results.multiclass_note, *notes):
        if line:
            print_sentence(out, line)
    _print_tables(out, report_tables(results, full=full))
    if errors:
        mistakes = worst_mistakes(results.evaluation, errors)
        for mistake_line in _mistake_lines(mistakes, out):
            out.print(mistake_line, soft_wrap=True)


def _print_tables(out: Console, tables: Iterable[ReportTable]) -> None:
    """Print tables; a bar consists of letters, at least one for each count above 0."""
    for title, heads, rows, bars in tables:
        out.print()
        if title:
            print_sentence(out, title)
        if bars:
            total = max(1, sum(map(sum, bars)))
            lengths = ([-(-_BAR_LENGTH * n // total) for n in bar] for bar in bars)
            pairs, heads = zip(rows, lengths, strict=True), [*heads, ""]
            rows = [[*row, "h" * ham + "S" * spam] for row, (ham, spam) in pairs]
        out.print(_table(heads, rows))


def print_sentence(out: Console, text: str) -> None:
    """Print a sentence in lines of at most 80 terminal columns; a longer name stays whole."""
    for line in lines.fold_sentence(text, min(out.width, _MAX_LINE_WIDTH)):
        out.print(line, soft_wrap=True)


def console() -> Console:
    """Return a console for standard output, which prints plain text in a pipe."""
    width = None if sys.stdout.isatty() else _PIPE_WIDTH
    return Console(file=sys.stdout, width=width, highlight=False, emoji=False, markup=False)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Build a table.

    The first column and columns without a head contain words and are left-aligned; the others are
    right-aligned numbers.
    """
    style = box.SIMPLE_HEAD if sys.stdout.isatty() else None
    table = Table(box=style, pad_edge=False, header_style="bold")
    for i, name in enumerate(heads):
        is_text = not (i and name)
        justify: JustifyMethod = "left" if is_text else "right"
        min_width = _MIN_WIDTHS.get(name)
        table.add_column(Text(name), justify=justify, overflow="fold", min_width=min_width)
    if style and len(heads) >= _NARROW_FROM_COLUMNS:
        table.padding = (0, 1, 0, 0)
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _mistake_lines(mistakes: list[Outcome], out: Console) -> Iterator[Text]:
    """Yield the mistakes, each with its excerpt, and its strongest words with their weights.

    out: the console; without colours, signs mark the words that decided.
    """
    width = min(out.width, _MAX_LINE_WIDTH) if out.is_terminal else _MAX_LINE_WIDTH
    signs = out.no_color or not out.is_terminal
    yield Text("\nworst mistakes" if mistakes else "\nno mistakes", style="bold")
    for outcome in mistakes:
        sentence, words = _describe_mistake(outcome)
        line = one_line(f"  {outcome.classification.source}: {sentence}")
        # In a pipe, the line with the message's name is not folded.
        yield from map(Text, lines.fold_text(line, width, 4) if out.is_terminal else [line])
        if outcome.message is not None:
            args = outcome.message, width, _EXCERPT_LINES
            for pieces in lines.excerpt_lines(*args, signs=signs, indent="    "):
                yield Text.assemble(*((text, _EMPHASIS[emphasis]) for text, emphasis in pieces))
        for line in lines.fold_text(f"    {words}", width, 4):
            yield Text(line.rstrip(), style="dim")


def _describe_mistake(outcome: Outcome) -> tuple[str, str]:
    """Return a sentence about a mistake, and its words with their weights in nats."""
    verdict = outcome.classification
    sentence = (
        f"{outcome.label} called {outcome.assigned_class},"
        f" probability {verdict.displayed_probability:.4f},"
        f" verdict {verdict.verdict}{verdict.reason_suffix}"
    )
    shown = outcome.words
    if outcome.message is not None:
        shown = words_as_written(outcome.message, shown)
    weights = (f"{word.token} {word.weight:+.2f} " for word in shown)
    words = " ".join(weight.replace(" ", lines.HARD_SPACE) for weight in weights)
    return sentence, words or "(no known word)"


# Comparisons


def comparison_tables(models: Sequence[comparison.ComparedModel]) -> Iterator[ReportTable]:
    """Yield the figures of all models, and the differences from the best model."""
    best = models[0]
    keys = {"1-ROCA%": "one_minus_roca_pct"} if best.messages.has_spam_class else {}
    keys["log-loss"] = "log_loss"
    figures, differences = [], []
    for model in models:
        name = model.combination.name + " *" * (model.combination == comparison.DEFAULT)
        by_key = model.results.figures.by_key
        ends = format_interval(by_key["errors"].interval, "{:,.0f}".format)
        values = [by_key[key].value for key in keys.values()]
        cells = ["" if value is None else format_figure(value) for value in values]
        figures.append([name, f"{model.errors:,}", ends, *cells, f"{model.seconds:,.1f}"])
        if difference := model.difference:
            counts = difference.only_this_wrong, difference.only_best_wrong
            differences.append([name, *map(str, counts), difference.verdict])
    yield ReportTable(
        "figures; * is the default", ["model", "errors", "95 %", *keys, "seconds"], figures
    )
    title = (
        f"against the best model, {best.combination.name}: messages that only one of the two gets"
        " wrong, and which differences are significant (Holm)"
    )
    yield ReportTable(title, ["model", "only this", "only best", ""], differences)


def print_comparison(models: Sequence[comparison.ComparedModel], advice: str) -> None:
    """Print the tables, which fit into 80 columns, and the advice to standard output.

    The JSON has all figures and the p-values.
    """
    out = console()
    print_sentence(out, comparison.title_of(models))
    _print_tables(out, comparison_tables(models))
    out.print()
    print_sentence(out, advice)


# Pages for a browser

Terms = Sequence[tuple[str, str]]  # (term, value): what was tested, and the command


def report_page(results: Results, errors: int, terms: Terms, words: Iterable[str] = ()) -> str:
    """Return the page of an evaluation: tables, curves, mistakes, and the model's words.

    errors: how many of the worst mistakes to show.  words: HTML.
    """
    body = [f"<p>{page.escape(results.multiclass_note)}</p>"] if results.multiclass_note else []
    body += chain.from_iterable(map(_table_html, report_tables(results, full=True)))
    if results.messages.has_spam_class:
        body += _curves(lambda: curves.svg_curves(results))
    body += [*_mistakes(results, errors), *words]
    return _page("Evaluation", results.title, results, terms, body)


def comparison_page(models: Sequence[comparison.ComparedModel], advice: str, terms: Terms) -> str:
    """Return the page of a comparison: advice, tables and curves."""
    body = [f"<p>{page.escape(advice)}</p>"]
    body += chain.from_iterable(map(_table_html, comparison_tables(models)))
    if models[0].messages.has_spam_class:
        body += _curves(lambda: curves.svg_comparison(models))
    title = comparison.title_of(models)
    return _page("Comparison of models", title, models[0].results, terms, body)


def _page(heading: str, title: str, results: Results, terms: Terms, body: Iterable[str]) -> str:
    date = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z")
    program = f"nbspam {__version__}"
    skipped = format_count(results.evaluation.skipped, "message")
    measured = ("not readable", skipped), ("program", program), ("date", date)
    head = [f"<h1>{heading}</h1>", page.terms_html([("test", title), *terms, *measured])]
    return page.html_page(f"nbspam: {title}", [*head, *body], program)


def _curves(embedded: Callable[[], Iterable[tuple[bytes, str]]]) -> Iterator[str]:
    """Yield the curves as images, in which no script runs.

    Without matplotlib, yields the advice to install it.
    embedded: returns SVG files and captions.
    """
    yield "<h2>Curves</h2>"
    try:
        curves.check_plot()
    except NbspamError as error:
        yield f"<p>{page.escape(str(error))}</p>"
        return
    yield '<div class="curves">'
    for svg, caption in embedded():
        text, source = page.escape(caption), f"data:image/svg+xml;base64,{b64encode(svg).decode()}"
        yield f'<figure><img alt="{text}" src="{source}"><figcaption>{text}</figcaption></figure>'
    yield "</div>"


def _table_html(table: ReportTable) -> Iterator[str]:
    """Yield a table and its title; a row's meaning is below its name, a bar in the last column."""
    heads, rows = list(table.heads), [list(map(page.escape, row)) for row in table.rows]
    if not heads[-1]:
        rows = [[f"{name}<small>{meaning}</small>", *cells] for name, *cells, meaning in rows]
        heads.pop()
    if table.bars:
        longest = max(1, *map(sum, table.bars))
        heads.append("")
        for row, (ham, spam) in zip(rows, table.bars, strict=True):
            row.append(page.bar_html(100 * ham / longest, 100 * spam / longest))
    if table.title:
        yield f"<h2>{page.escape(table.title[0].upper() + table.title[1:])}</h2>"
    yield page.table_html(heads, [("", row) for row in rows])


def _mistakes(results: Results, errors: int) -> Iterator[str]:
    evaluation, escape = results.evaluation, page.escape
    worst, n_mistakes = worst_mistakes(evaluation, errors), results.messages.counts.errors
    yield "<h2>Worst mistakes</h2>"
    yield f"<p>{len(worst):,} of {format_count(n_mistakes, 'mistake')}</p>"
    if worst and len(evaluation.classes) == 2:
        (other,) = set(evaluation.classes) - {evaluation.positive}
        yield page.scale_html(evaluation.positive or "", other)
    for outcome in worst:
        sentence, words = _describe_mistake(outcome)
        yield f"<h3>{escape(sentence)}</h3>"
        yield f'<p class="dim">{escape(one_line(outcome.classification.source))}</p>'
        if outcome.message is not None:
            yield page.message_html(outcome.message)
        yield f'<p class="dim" dir="auto">{escape(words)}</p>'
