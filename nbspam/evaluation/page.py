"""The results of an evaluation as a page for a browser."""

from collections.abc import Iterator
from datetime import datetime

from nbspam import __version__
from nbspam.display.lines import class_heads, strongest_rows
from nbspam.display.page import (
    escaped,
    html_page,
    message_html,
    scale_html,
    table_html,
    terms_html,
    word_lines,
    words_table,
)
from nbspam.errors import counted, one_line
from nbspam.evaluation.curves import drawings
from nbspam.evaluation.results import (
    Outcome,
    ReportTable,
    Results,
    calibration_table,
    confusion_table,
    figure_tables,
    worst_mistakes,
)
from nbspam.scoring.explanation import strongest_words
from nbspam.store.lookup import Model

_STRONGEST = 15  # words of each class


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
        f'<p class="dim">{escaped(date)}</p>',
        "<h1>Evaluation</h1>",
        f"<p>{escaped(title)}</p>",
        *([f"<p>{escaped(results.of_many_classes)}</p>"] if results.of_many_classes else []),
    ]
    for table in figure_tables(results):
        heading = table.title or "figures"
        body += [f"<h2>{escaped(heading[0].upper() + heading[1:])}</h2>", _table(table)]
    body += [f"<h2>What messages were called, {by}</h2>", _table(confusion_table(results))]
    if curves := list(drawings(results)) if results.messages.has_spam_class else []:
        figures = (f"{svg}<figcaption>{escaped(said)}</figcaption>" for svg, said in curves)
        drawn = "".join(f"<figure>{figure}</figure>" for figure in figures)
        body.append(f'<h2>Curves</h2><div class="curves">{drawn}</div>')
        body.append(_table(calibration_table(results)))
    body += _mistakes(results, errors)
    if model is not None:
        body += _strongest(model)
    terms = [
        ("protocol", protocol),
        ("messages", title.removeprefix(f"{protocol}: ")),
        ("not readable", counted(results.skipped, "message")),
        ("date", date),
        ("program", f"nbspam {__version__}"),
        ("command", command_line),
    ]
    body += ["<h2>How it was measured</h2>", terms_html(terms)]
    return html_page(f"nbspam: {title}", body, f"nbspam {__version__}")


def _table(table: ReportTable) -> str:
    """Return a table; what a row is stands below its name."""
    heads, rows = list(table.heads), [list(map(escaped, row)) for row in table.rows]
    if not heads[-1]:
        rows = [[f"{name}<small>{said}</small>", *cells] for name, *cells, said in rows]
        heads.pop()
    return table_html(heads, [("", row) for row in rows])


def _mistakes(results: Results, errors: int) -> Iterator[str]:
    evaluation = results.evaluation
    every = results.messages.counts.errors
    worst = worst_mistakes(evaluation, errors)
    yield "<h2>Worst mistakes</h2>"
    if not worst:
        yield f"<p>{counted(every, 'mistake') if every else 'none'}</p>"
        return
    yield f"<p>{len(worst):,} of {counted(every, 'mistake')}</p>"
    if len(evaluation.classes) == 2:
        positive = evaluation.positive or evaluation.classes[1]
        (other,) = set(evaluation.classes) - {positive}
        yield scale_html(positive, other, highlights_alone=True)
    for outcome in worst:
        yield from _mistake(outcome)


def _mistake(outcome: Outcome) -> Iterator[str]:
    judged = outcome.judged
    yield (
        f"<h3>{escaped(outcome.label)} called {escaped(outcome.called)},"
        f" probability {judged.probability:.4f}</h3>"
    )
    verdict = escaped(outcome.verdict) + judged.remark
    yield f'<p class="dim">{escaped(one_line(judged.source))}, verdict {verdict}</p>'
    if outcome.message is not None:
        yield message_html(outcome.message, highlights_alone=True)
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
    for name, rows in strongest_rows(ranked, metadata).items():
        yield f"<h3>for {escaped(name)}</h3>"
        yield words_table(word_lines(rows), class_heads(metadata), [""])
