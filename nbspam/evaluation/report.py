"""Evaluations and comparisons for people.

As text, with rich tables on a terminal and plain ones in a pipe; an evaluation as a page, too.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from nbspam import __version__
from nbspam.display import lines, page
from nbspam.errors import counted, one_line
from nbspam.evaluation.comparison import DEFAULT, SURE, Compared
from nbspam.evaluation.curves import drawings
from nbspam.evaluation.metrics import GENERAL, THRESHOLD, TRACK, VERDICTS, score_distribution
from nbspam.evaluation.results import Outcome, Results, interval, number, worst_mistakes
from nbspam.names import UNSURE
from nbspam.scoring.explanation import strongest_words
from nbspam.scoring.verdict import CutOffs
from nbspam.store.lookup import Model

_STRONGEST = 15  # words of each class
_PIPE_WIDTH = 200  # characters; wide enough that no table is folded
_LINE = 80  # cells of a line of text that is read
_EXCERPT_LINES = 4  # of a mistake
_EMPHASIS = {2: "bold underline red", 1: "underline red", 0: "", -1: "green", -2: "bold green"}
_BAR_LENGTH = 40  # characters, of all messages
_FEW_CLASSES = 10  # whose confusion is part of the short report
_MANY_COLUMNS = 6  # of a table that stands closer, to fit into 80 columns
# Of the tables of figures, so that they stand below one another.
_FIGURE_WIDTHS = 9, 6, 15


# The tables


class ReportTable(NamedTuple):
    """A table of the report, whatever it is shown as."""

    title: str
    heads: Sequence[str]  # an empty one: of a column that says what the row is
    rows: list[list[str]]
    note: str = ""  # below it, in text


_FIGURE = ("metric", "value", "95 % interval", "")


def _figure_rows(results: Results, *chosen: str) -> list[list[str]]:
    rows = results.figures.rows(*chosen)
    return [[row.name, number(row.value), interval(row.interval), row.shown] for row in rows]


def brief_table(results: Results) -> ReportTable:
    """Return what one looks at: verdicts, errors, precision, recall, ranking, calibration."""
    counts, cut_offs = results.messages.counts, results.cut_offs
    ends = interval(counts.errors_interval, "{:.0f}".format)
    of = f"of {counts.messages:,} messages"
    if cut_offs is not None:
        of = f"{counts.fn:,} spam, {counts.fp:,} ham {of}"
    rows = [["errors", f"{counts.errors:,}", ends, of]]
    if cut_offs is not None:
        rows = _figure_rows(results, VERDICTS) + rows
    rows += _figure_rows(results, "precision", "recall", "1-ROCA%")
    if results.calibration_error is not None:
        rows.append(["cal.err.", number(results.calibration_error), "", CALIBRATION_ERROR])
    title = f"{_verdicts_title(cut_offs)}; errors are counted at {THRESHOLD}" if cut_offs else ""
    return ReportTable(title, _FIGURE, rows)


def figure_tables(results: Results) -> Iterator[ReportTable]:
    """Yield the figures of any classifier, those of the spam tracks, and those of the verdicts."""
    track = "the figures of spam filters, as defined by the TREC spam tracks"
    yield ReportTable("", _FIGURE, _figure_rows(results, GENERAL))
    if rows := _figure_rows(results, TRACK):
        yield ReportTable(track, _FIGURE, rows)
    if (cut_offs := results.cut_offs) is not None:
        yield ReportTable(_verdicts_title(cut_offs), _FIGURE, _figure_rows(results, VERDICTS))


def _verdicts_title(cut_offs: CutOffs) -> str:
    return f"verdicts: spam above {cut_offs.spam:g}, ham up to {cut_offs.ham:g}"


def confusion_table(results: Results) -> ReportTable:
    """Return what messages of each class were called, and their verdicts with the cut-offs."""
    at_threshold, verdicts = results.confusion, results.verdicts
    heads = ["actual", *(f"called {name}" for name in next(iter(at_threshold.values())))]
    # Every message is called something, so these columns add up to all of the class.
    rows = [
        [f"{sum(row.values()):,} {name}", *(f"{n:,}" for n in row.values())]
        for name, row in at_threshold.items()
    ]
    if results.cut_offs is not None:
        # Unsure is nothing but a verdict.
        names = next(iter(verdicts.values()))
        heads += [name if name == UNSURE else f"verdict {name}" for name in names]
        for cells, row in zip(rows, verdicts.values(), strict=True):
            cells += [f"{n:,}" for n in row.values()]
    return ReportTable("", heads, rows)


CALIBRATION_ERROR = "mean gap between predicted and observed"


def calibration_table(results: Results) -> ReportTable:
    """Return what was predicted of the messages of each bin, and what was observed."""
    rows = [
        [f"{low:.1f} to {high:.1f}", f"{n:,}", f"{predicted:.4f}", f"{observed:.4f}"]
        for low, high, n, predicted, observed in results.bins
    ]
    said = f"calibration error {results.calibration_error:.4f} ({CALIBRATION_ERROR})"
    return ReportTable("", ("P(spam)", "messages", "predicted", "observed"), rows, said)


# As text


def print_report(
    results: Results, errors: int, notes: Sequence[str] = (), *, full: bool = True
) -> None:
    """Print the report to standard output, with colours and lines on a terminal only.

    errors: how many of the worst mistakes to show; 0 shows none.
    notes: sentences to read before the figures, such as which messages were left out.
    full: all figures, the confusion, the calibration and the scores, or what one looks at first.
    """
    out = console()
    for line in (results.title, results.of_many_classes, *notes):
        if line:
            print_sentence(out, line)
    tables = [brief_table(results)]
    if full:
        tables = [*figure_tables(results), confusion_table(results)]
        if results.bins:
            tables += [calibration_table(results), _score_table(results)]
    elif results.cut_offs is None and len(results.confusion) <= _FEW_CLASSES:
        tables.append(confusion_table(results))
    for i, table in enumerate(tables):
        out.print()
        _print_table(out, table, has_heads=not i or table.heads is not _FIGURE)
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


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, has_heads: bool = True) -> Table:
    """Return a table: words in its first column and in those without a head, else numbers."""
    style = box.SIMPLE_HEAD if sys.stdout.isatty() else None
    table = Table(box=style, pad_edge=False, header_style="bold", show_header=has_heads)
    for i, name in enumerate(heads):
        is_text = not (i and name)
        table.add_column(Text(name), justify="left" if is_text else "right", overflow="fold")
    if style and len(heads) >= _MANY_COLUMNS:
        table.padding = (0, 1, 0, 0)
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _print_table(out: Console, shown: ReportTable, *, has_heads: bool = True) -> None:
    if shown.title:
        print_sentence(out, shown.title)
    table = _table(shown.heads, shown.rows, has_heads=has_heads)
    if shown.heads[0] == "metric":
        for column, width in zip(table.columns, _FIGURE_WIDTHS, strict=False):
            column.min_width = width
    out.print(table)
    if shown.note:
        out.print(shown.note)


def _score_table(results: Results) -> ReportTable:
    """Return the score distribution: a bar of h for ham and S for spam per range of log-odds."""
    rows = []
    for low, high, *both in score_distribution(results.messages):
        # In proportion, and at least 1 unless the count is 0.
        h, s = (-(-_BAR_LENGTH * n // max(1, len(results.messages))) for n in both)
        rows.append([f"{low:+.0f} to {high:+.0f}", *(f"{n:,}" for n in both), "h" * h + "S" * s])
    rows[0][0] = f"below {rows[0][0].rpartition(' ')[2]}"  # the outer ones have no other end
    rows[-1][0] = f"above {rows[-1][0].partition(' ')[0]}"
    return ReportTable("", ("log-odds", "ham", "spam", ""), rows)


def _mistake_lines(mistakes: list[Outcome], out: Console) -> Iterator[Text]:
    """Yield the mistakes, each with its beginning and its strongest words and their weights.

    out: where they are printed; without colours there, signs stand around what decided.
    """
    width = min(out.width, _LINE) if out.is_terminal else _LINE
    signs = out.no_color or not out.is_terminal
    yield Text("\nworst mistakes" if mistakes else "\nno mistakes", style="bold")
    for outcome in mistakes:
        judged = outcome.judged
        said = one_line(
            f"{judged.source}: {outcome.label} called {outcome.called}, probability"
            f" {judged.probability:.4f}, verdict {outcome.judged.verdict}"
        )
        # In a pipe the name of a message is whole.
        whole = iter([f"  {said}"])
        yield from map(Text, lines.folded_text(f"  {said}", width, 4) if out.is_terminal else whole)
        if judged.reason:
            yield Text(f"    unsure for {judged.reason}")
        if outcome.message is not None:
            of = outcome.message, width, _EXCERPT_LINES
            for pieces in lines.excerpt_lines(*of, signs=signs, indent="    "):
                yield Text.assemble(*((text, _EMPHASIS[emphasis]) for text, emphasis in pieces))
        weights = (f"{word.token} {word.weight:+.2f} " for word in outcome.words)
        words = " ".join(each.replace(" ", lines.HARD_SPACE) for each in weights)
        for folded in lines.folded_text(f"    {words or '(no known word)'}", width, 4):
            yield Text(folded.rstrip(), style="dim")


# Comparisons

Column = tuple[str, list[str], int]  # head, cell of each model, when it leaves: 0: never


def _p(p: float) -> str:
    return f"{p:.3f}" if p >= SURE / 10 else f"{p:.0e}"


# Head, key in JSON, how it is written, and when it leaves a table that is too wide (0: never).
_FIGURES: "list[tuple[str, str, Callable[[float], str], int]]" = [
    ("errors", "errors", "{:,.0f}".format, 0),
    ("95 %", "errors_ci", "{:.0f}".format, 1),
    ("precision", "precision", "{:.4f}".format, 2),
    ("recall", "recall", "{:.4f}".format, 3),
    ("F1", "f1", "{:.4f}".format, 7),
    ("MCC", "mcc", "{:.4f}".format, 4),
    ("1-ROCA%", "one_minus_roca_pct", "{:.4f}".format, 0),
    ("95 %", "one_minus_roca_pct_ci", "{:.4f}".format, 1),
    ("log-loss", "log_loss", "{:.4f}".format, 0),
    ("cal.err.", "calibration_error", "{:.4f}".format, 5),
    ("seconds", "seconds", "{:,.1f}".format, 6),
]
_DIFFERENCES: "list[tuple[str, str, Callable[[float], str], int]]" = [
    ("only it", "only_this_wrong", str, 0),
    ("only best", "only_best_wrong", str, 5),
    ("p (McNemar)", "mcnemar_p_holm", _p, 4),
    ("1-ROCA% less", "one_minus_roca_pct_less_best", "{:+.4f}".format, 2),
    ("95 %", "one_minus_roca_pct_less_best_ci", "{:+.4f}".format, 1),
    ("p (bootstrap)", "bootstrap_p_holm", _p, 3),
]


def print_comparison(models: Sequence[Compared], said: str) -> None:
    """Print the tables, and what is said of them, to standard output."""
    out, best = console(), models[0]
    counts = best.messages.counts
    of = f" ({counts.spam:,} spam)" if best.messages.has_spam_class else ""
    tested = f"{counted(counts.messages, 'message')}{of}, {best.results.evaluation.protocol}"
    print_sentence(out, f"{counted(len(models), 'model')} on {tested}")
    out.print()
    left_out = _print_fitting(out, models, _columns(models, _FIGURES))
    if len(models) > 1:
        out.print()
        print_sentence(
            out,
            f"against the best, {best.combination.name}: messages that only one of the two gets"
            " wrong; p-values after Holm",
        )
        verdicts = [model.difference.verdict for model in models if model.difference is not None]
        columns = [*_columns(models[1:], _DIFFERENCES), ("", verdicts, 0)]
        left_out |= _print_fitting(out, models[1:], columns)
    if left_out:
        out.print("\nmore columns in a wider window")
    if any(model.combination == DEFAULT for model in models):
        out.print("\n* the default")
    out.print()
    print_sentence(out, said)


def _columns(
    models: Sequence[Compared], shown: "list[tuple[str, str, Callable[[float], str], int]]"
) -> list[Column]:
    columns, fields = [], [model.as_json() for model in models]
    for head, key, form, leaves in shown:
        values = [of_model[key] for of_model in fields]
        if any(value is not None for value in values):
            cells = [
                interval(v, form) if key.endswith("_ci") else "" if v is None else form(v)
                for v in values
            ]
            columns.append((head, cells, leaves))
    return columns


def _print_fitting(out: Console, models: Sequence[Compared], columns: list[Column]) -> bool:
    """Print a table of models; return whether columns were left out for its width."""
    every = len(columns)
    anything = out.options.update(max_width=10_000)  # as wide as the table would be
    names = [m.combination.name + (" *" if m.combination == DEFAULT else "") for m in models]
    while True:
        rows = list(zip(names, *(cells for _, cells, _ in columns), strict=True))
        table = _table(["model", *(head for head, *_ in columns)], rows)
        leaving = [column for column in columns if column[2]]
        if not leaving or out.measure(table, options=anything).maximum <= out.width:
            out.print(table)
            return len(columns) < every
        columns.remove(min(leaving, key=lambda column: column[2]))


# A page for a browser


def report_page(results: Results, errors: int, command_line: str, model: Model | None) -> str:
    """Return the page.

    errors: how many of the worst mistakes to show.
    model: that was tested, if there is one, for its strongest words.
    """
    date = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z")
    title, protocol = results.title, results.evaluation.protocol
    threshold = results.messages.threshold
    by = "by the most probable class" if threshold is None else f"at P(spam) = {threshold:g}"
    body = [
        f'<p class="dim">{page.escaped(date)}</p>',
        "<h1>Evaluation</h1>",
        f"<p>{page.escaped(title)}</p>",
        *([f"<p>{page.escaped(results.of_many_classes)}</p>"] if results.of_many_classes else []),
    ]
    for table in figure_tables(results):
        heading = table.title or "figures"
        body += [f"<h2>{page.escaped(heading[0].upper() + heading[1:])}</h2>", _table_html(table)]
    body += [f"<h2>Confusion matrix, {by}</h2>", _table_html(confusion_table(results))]
    if curves := list(drawings(results)) if results.messages.has_spam_class else []:
        figures = (f"{svg}<figcaption>{page.escaped(said)}</figcaption>" for svg, said in curves)
        drawn = "".join(f"<figure>{figure}</figure>" for figure in figures)
        body.append(f'<h2>Curves</h2><div class="curves">{drawn}</div>')
        body.append(_table_html(calibration_table(results)))
    body += _mistakes(results, errors)
    if model is not None:
        body += _strongest(model)
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


def _table_html(table: ReportTable) -> str:
    """Return a table; what a row is stands below its name."""
    heads, rows = list(table.heads), [list(map(page.escaped, row)) for row in table.rows]
    if not heads[-1]:
        rows = [[f"{name}<small>{said}</small>", *cells] for name, *cells, said in rows]
        heads.pop()
    return page.table_html(heads, [("", row) for row in rows])


def _mistakes(results: Results, errors: int) -> Iterator[str]:
    evaluation, escaped = results.evaluation, page.escaped
    every = results.messages.counts.errors
    worst = worst_mistakes(evaluation, errors)
    yield "<h2>Worst mistakes</h2>"
    if not worst:
        yield f"<p>{counted(every, 'mistake') if every else 'none'}</p>"
        return
    yield f"<p>{len(worst):,} of {counted(every, 'mistake')}</p>"
    if len(evaluation.classes) == 2:
        (other,) = set(evaluation.classes) - {evaluation.positive}
        yield page.scale_html(evaluation.positive or "", other, highlights_alone=True)
    for outcome in worst:
        judged, called = (
            outcome.judged,
            f"{escaped(outcome.label)} called {escaped(outcome.called)}",
        )
        yield f"<h3>{called}, probability {judged.probability:.4f}</h3>"
        source, verdict = escaped(one_line(judged.source)), escaped(judged.verdict) + judged.remark
        yield f'<p class="dim">{source}, verdict {verdict}</p>'
        if outcome.message is not None:
            yield page.message_html(outcome.message, highlights_alone=True)
        if outcome.words:
            words = "; ".join(
                f"<bdi><code>{escaped(word.token)}</code></bdi> {word.weight:+.2f}"
                for word in outcome.words
            )
            yield f'<p class="dim">strongest words, weight in nats: {words}</p>'


def _strongest(model: Model) -> Iterator[str]:
    """Yield the strongest words of a model that counts tokens."""
    metadata = model.metadata
    if not metadata.settings.counts.has_tokens or metadata.is_one_sided:
        return
    yield "<h2>Strongest words of the model</h2>"
    ranked = strongest_words(model, _STRONGEST, fragments=False)
    for name, rows in lines.strongest_rows(ranked, metadata).items():
        yield f"<h3>for {page.escaped(name)}</h3>"
        yield page.words_table(page.word_lines(rows), lines.class_heads(metadata), [""])
