"""Evaluations and comparisons for people.

An evaluation has one list of tables, which is printed (with rich's lines and colours on a terminal,
plainly in a pipe) or written into a page; `results.as_json` has the same figures as JSON.
"""

import sys
from base64 import b64encode
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from nbspam import __version__
from nbspam.display import lines, page
from nbspam.errors import NbspamError, counted, one_line
from nbspam.evaluation import curves
from nbspam.evaluation.comparison import DEFAULT, Compared
from nbspam.evaluation.metrics import GENERAL, THRESHOLD, TRACK, VERDICTS, score_distribution
from nbspam.evaluation.results import Outcome, Results, interval, number, worst_mistakes
from nbspam.names import UNSURE

_PIPE_WIDTH = 200  # characters; wide enough that no table is folded
_LINE = 80  # cells of a line of text that is read
_EXCERPT_LINES = 4  # of a mistake
_EMPHASIS = {2: "bold underline red", 1: "underline red", 0: "", -1: "green", -2: "bold green"}
_BAR_LENGTH = 40  # characters, of all messages
_FEW_CLASSES = 10  # whose confusion is part of the short report
_MANY_COLUMNS = 6  # of a table that stands closer, to fit into 80 columns


# The tables


class ReportTable(NamedTuple):
    """A table of the report, for each of its writers."""

    title: str
    heads: Sequence[str]  # an empty one: of a column with the row's meaning
    rows: list[list[str]]


def report_tables(results: Results, *, full: bool) -> Iterator[ReportTable]:
    """Yield the tables of the report.

    full: all figures, confusion, calibration and scores; else the chief figures.
    """
    parts, title, cut_offs = [GENERAL, TRACK], "", results.cut_offs
    if cut_offs is not None:
        parts.insert(0, VERDICTS)
        verdicts = f"verdicts: spam above {cut_offs.spam:g}, ham up to {cut_offs.ham:g}"
        title = f"{verdicts}; errors are counted at {THRESHOLD}"
    rows = []
    for row in results.figures.rows(*parts, brief=not full):
        form = number if isinstance(row.value, float) else "{:,.0f}".format
        rows.append([row.name, number(row.value), interval(row.interval, form), row.line])
    yield ReportTable(title, ("metric", "value", "95 % interval", ""), rows)
    if full or (cut_offs is None and len(results.confusion) <= _FEW_CLASSES):
        yield _confusion_table(results)
    if full and results.bins:
        rows = [
            [f"{low:.1f} to {high:.1f}", f"{n:,}", f"{predicted:.4f}", f"{observed:.4f}"]
            for low, high, n, predicted, observed in results.bins
        ]
        yield ReportTable("", ("P(spam)", "messages", "predicted", "observed"), rows)
        yield _score_table(results)


def _confusion_table(results: Results) -> ReportTable:
    """Return the confusion matrix: assigned classes, and verdicts by the cut-offs."""
    at_threshold, verdicts = results.confusion, results.verdicts
    heads = ["actual", *(f"called {name}" for name in next(iter(at_threshold.values())))]
    # Every message is assigned to a class, so these columns add up to the size of the class.
    rows = [
        [f"{sum(row.values()):,} {name}", *(f"{n:,}" for n in row.values())]
        for name, row in at_threshold.items()
    ]
    if results.cut_offs is not None:
        # `unsure` is always a verdict.
        names = next(iter(verdicts.values()))
        heads += [name if name == UNSURE else f"verdict {name}" for name in names]
        for cells, row in zip(rows, verdicts.values(), strict=True):
            cells += [f"{n:,}" for n in row.values()]
    return ReportTable("", heads, rows)


def _score_table(results: Results) -> ReportTable:
    """Return the score distribution: a bar of h for ham and S for spam per range of log-odds."""
    rows = []
    for low, high, *counts in score_distribution(results.messages):
        # In proportion, and at least 1 unless the count is 0.
        h, s = (-(-_BAR_LENGTH * n // max(1, len(results.messages))) for n in counts)
        rows.append([f"{low:+.0f} to {high:+.0f}", *(f"{n:,}" for n in counts), "h" * h + "S" * s])
    rows[0][0] = f"below {rows[0][0].rpartition(' ')[2]}"  # the outer ones have no other end
    rows[-1][0] = f"above {rows[-1][0].partition(' ')[0]}"
    return ReportTable("", ("log-odds", "ham", "spam", ""), rows)


# As text


def print_report(
    results: Results, errors: int, notes: Sequence[str] = (), *, full: bool = True
) -> None:
    """Print the report to standard output, with colours and lines on a terminal only.

    errors: how many of the worst mistakes to show; 0 shows none.
    notes: sentences to read before the figures, such as which messages were left out.
    """
    out = console()
    for line in (results.title, results.multiclass_note, *notes):
        if line:
            print_sentence(out, line)
    for table in report_tables(results, full=full):
        out.print()
        if table.title:
            print_sentence(out, table.title)
        out.print(_table(table.heads, table.rows))
    if errors:
        mistakes = worst_mistakes(results.evaluation, errors)
        for mistake_line in _mistake_lines(mistakes, out):
            out.print(mistake_line, soft_wrap=True)


def print_sentence(out: Console, text: str) -> None:
    """Print a sentence in lines of at most 80 cells; a name that is longer stays whole."""
    for line in lines.folded_sentence(text, min(out.width, _LINE)):
        out.print(line, soft_wrap=True)


def console() -> Console:
    """Return the console of a report: standard output, plain text in a pipe."""
    width = None if sys.stdout.isatty() else _PIPE_WIDTH
    return Console(file=sys.stdout, width=width, highlight=False, emoji=False, markup=False)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Return a table: words in its first column and in those without a head, else numbers."""
    style = box.SIMPLE_HEAD if sys.stdout.isatty() else None
    table = Table(box=style, pad_edge=False, header_style="bold")
    for i, name in enumerate(heads):
        is_text = not (i and name)
        table.add_column(Text(name), justify="left" if is_text else "right", overflow="fold")
    if style and len(heads) >= _MANY_COLUMNS:
        table.padding = (0, 1, 0, 0)
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _mistake_lines(mistakes: list[Outcome], out: Console) -> Iterator[Text]:
    """Yield the mistakes, each with its excerpt and its strongest words and their weights.

    out: the console; without colours, signs stand around the words that decided.
    """
    width = min(out.width, _LINE) if out.is_terminal else _LINE
    signs = out.no_color or not out.is_terminal
    yield Text("\nworst mistakes" if mistakes else "\nno mistakes", style="bold")
    for outcome in mistakes:
        sentence, words = _described(outcome)
        line = one_line(f"  {outcome.judged.source}: {sentence}")
        # In a pipe the name of a message is not folded.
        yield from map(Text, lines.folded_text(line, width, 4) if out.is_terminal else [line])
        if outcome.message is not None:
            limits = outcome.message, width, _EXCERPT_LINES
            for pieces in lines.excerpt_lines(*limits, signs=signs, indent="    "):
                yield Text.assemble(*((text, _EMPHASIS[emphasis]) for text, emphasis in pieces))
        for line in lines.folded_text(f"    {words}", width, 4):
            yield Text(line.rstrip(), style="dim")


def _described(outcome: Outcome) -> tuple[str, str]:
    """Return a sentence about a mistake, and its words with their weights in nats."""
    judged = outcome.judged
    sentence = (
        f"{outcome.label} called {outcome.called}, probability {judged.own_probability:.4f},"
        f" verdict {judged.verdict}{judged.remark}"
    )
    weights = (f"{word.token} {word.weight:+.2f} " for word in outcome.words)
    words = " ".join(weight.replace(" ", lines.HARD_SPACE) for weight in weights)
    return sentence, words or "(no known word)"


# Comparisons


def print_comparison(models: Sequence[Compared], advice: str) -> None:
    """Print the tables, which fit into 80 columns, and the advice to standard output.

    All figures and the p-values are in the JSON.
    """
    out, best = console(), models[0]
    counts, has_spam = best.messages.counts, best.messages.has_spam_class
    of_spam = f" ({counts.spam:,} spam)" if has_spam else ""
    tested = f"{counted(counts.messages, 'message')}{of_spam}, {best.results.evaluation.protocol}"
    print_sentence(out, f"{counted(len(models), 'model')} on {tested}")
    keys = {"1-ROCA%": "one_minus_roca_pct"} if has_spam else {}
    keys["log-loss"] = "log_loss"
    figures, differences = [], []
    for model in models:
        name = model.combination.name + " *" * (model.combination == DEFAULT)
        by_key = model.results.figures.by_key
        ends = interval(by_key["errors"].interval, "{:,.0f}".format)
        values = [by_key[key].value for key in keys.values()]
        cells = ["" if value is None else number(value) for value in values]
        figures.append([name, f"{model.errors:,}", ends, *cells, f"{model.seconds:,.1f}"])
        if difference := model.difference:
            alone = difference.only_it, difference.only_best
            differences.append([name, *map(str, alone), difference.verdict])
    out.print()
    out.print(_table(["model", "errors", "95 %", *keys, "seconds"], figures))
    if differences:
        out.print()
        print_sentence(
            out,
            f"against the best, {best.combination.name}: messages that only one of the two gets"
            " wrong; what is significant after Holm",
        )
        out.print(_table(["model", "only it", "only best", ""], differences))
    if any(model.combination == DEFAULT for model in models):
        out.print("\n* the default")
    out.print()
    print_sentence(out, advice)


# A page for a browser


def report_page(results: Results, errors: int, command_line: str) -> str:
    """Return the page: tables, curves, mistakes.  errors: how many of the worst to show."""
    date = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z")
    title, protocol = results.title, results.evaluation.protocol
    body = [f'<p class="dim">{page.escaped(date)}</p>', "<h1>Evaluation</h1>"]
    body += [f"<p>{page.escaped(line)}</p>" for line in (title, results.multiclass_note) if line]
    for table in report_tables(results, full=True):
        body += [f"<p>{page.escaped(table.title)}</p>"] if table.title else []
        body.append(_table_html(table))
    body += [*_curves(results), *_mistakes(results, errors)]
    terms = [
        ("protocol", protocol),
        ("messages", title.removeprefix(f"{protocol}: ")),
        ("not readable", counted(results.evaluation.skipped, "message")),
        ("date", date),
        ("program", f"nbspam {__version__}"),
        ("command", command_line),
    ]
    body += ["<h2>How it was measured</h2>", page.terms_html(terms)]
    return page.html_page(f"nbspam: {title}", body, f"nbspam {__version__}")


def _curves(results: Results) -> Iterator[str]:
    """Yield the curves as an image, in which no script runs; or how to get them."""
    if not results.messages.has_spam_class:
        return
    yield "<h2>Curves</h2>"
    try:
        curves.check_plot()
    except NbspamError as error:
        yield f"<p>{page.escaped(str(error))}</p>"
        return
    svg, captions = curves.embedded(results)
    source = f"data:image/svg+xml;base64,{b64encode(svg).decode()}"
    yield f'<img class="curves" alt="{page.escaped(captions)}" src="{source}">'


def _table_html(table: ReportTable) -> str:
    """Return a table; a row's meaning stands below its name."""
    heads, rows = list(table.heads), [list(map(page.escaped, row)) for row in table.rows]
    if not heads[-1]:
        rows = [[f"{name}<small>{meaning}</small>", *cells] for name, *cells, meaning in rows]
        heads.pop()
    return page.table_html(heads, [("", row) for row in rows])


def _mistakes(results: Results, errors: int) -> Iterator[str]:
    evaluation, escaped = results.evaluation, page.escaped
    worst, n_mistakes = worst_mistakes(evaluation, errors), results.messages.counts.errors
    yield "<h2>Worst mistakes</h2>"
    yield f"<p>{len(worst):,} of {counted(n_mistakes, 'mistake')}</p>"
    if worst and len(evaluation.classes) == 2:
        (other,) = set(evaluation.classes) - {evaluation.positive}
        yield page.scale_html(evaluation.positive or "", other)
    for outcome in worst:
        sentence, words = _described(outcome)
        yield f"<h3>{escaped(sentence)}</h3>"
        yield f'<p class="dim">{escaped(one_line(outcome.judged.source))}</p>'
        if outcome.message is not None:
            yield page.message_html(outcome.message)
        yield f'<p class="dim" dir="auto">{escaped(words)}</p>'
