"""The results of an evaluation as a page for a browser."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from nbspam.display.explanation_page import word_lines, words_table
from nbspam.display.page import escaped, html_page, message_html, scale_html, table_html, terms_html
from nbspam.display.word_rows import WordRow
from nbspam.errors import counted, one_line
from nbspam.evaluation.bins import calibration_error
from nbspam.evaluation.curves import calibration_svg, log_roc_svg, roc_svg, scores_svg
from nbspam.evaluation.metrics import GENERAL, TRACK, VERDICTS, ReportRow
from nbspam.evaluation.outcome import Outcome, worst_mistakes
from nbspam.evaluation.results import Confusion, Results
from nbspam.evaluation.samples import ScoredMessages


class Circumstances(NamedTuple):
    """How an evaluation was made."""

    date: str
    version: str  # of nbspam
    command_line: str
    skipped: int  # messages that could not be read


class StrongestWords(NamedTuple):
    """The strongest words of a model."""

    heads: list[tuple[str, str]]  # of the columns of counts: `class_heads`
    of_class: dict[str, list[WordRow]]


def report_page(
    results: Results, errors: int, made: Circumstances, strongest: StrongestWords | None
) -> str:
    """Return the page.

    errors: how many of the worst mistakes to show.  strongest: None where there is no one model.
    """
    evaluation = results.evaluation
    n = counted(len(evaluation.outcomes), "message")
    by_class = ", ".join(
        f"{name}: {sum(row):,}"
        for name, row in zip(results.confusion.classes, results.confusion.counts, strict=True)
    )
    body = [
        f'<p class="dim">{escaped(made.date)}</p>',
        "<h1>Evaluation</h1>",
        f"<p>{escaped(f'{evaluation.protocol}: {n} ({by_class})')}</p>",
        "<h2>Figures</h2>",
        *([f"<p>{escaped(results.of_many_classes)}</p>"] if results.of_many_classes else []),
        _figures(list(results.figures.rows(GENERAL))),
        *_spam_tracks(results),
        *_verdicts(results),
        "<h2>What messages were called</h2>",
        _confusion(results.confusion, _where_called(results.messages)),
        *_curves(results),
        *_mistakes(results, errors),
        *_strongest(strongest),
        "<h2>How it was measured</h2>",
        terms_html(
            [
                ("protocol", evaluation.protocol),
                ("messages", f"{n} ({by_class})"),
                ("not readable", counted(made.skipped, "message")),
                ("date", made.date),
                ("program", f"nbspam {made.version}"),
                ("command", made.command_line),
            ]
        ),
    ]
    return html_page(f"nbspam: {evaluation.protocol}, {n}", body, f"nbspam {made.version}")


def _figures(rows: Sequence[ReportRow]) -> str:
    lines = [
        (
            "",
            [
                f"{escaped(row.name)}<small>{escaped(_meaning(row))}</small>",
                _number(row.value),
                "" if row.interval is None else " – ".join(map(_number, row.interval)),
            ],
        )
        for row in rows
    ]
    return table_html(["metric", "value", "95 % interval"], lines)


def _meaning(row: ReportRow) -> str:
    return f"{row.meaning}, {row.counts}" if row.counts else row.meaning


def _number(value: float) -> str:
    return f"{value:.4f}" if abs(value) < 10 else f"{value:.2f}"


def _spam_tracks(results: Results) -> Iterator[str]:
    """Yield the figures of the TREC spam tracks, where there is a class called spam."""
    if rows := list(results.figures.rows(TRACK)):
        yield "<h2>The spam filter's figures</h2>"
        yield "<p>As the TREC spam tracks have them.</p>"
        yield _figures(rows)


def _verdicts(results: Results) -> Iterator[str]:
    """Yield what the verdicts do, where cut-offs decide them."""
    if results.cut_offs is None:
        return
    spam, ham = results.cut_offs.spam, results.cut_offs.ham
    yield "<h2>Verdicts</h2>"
    yield f"<p>{escaped(f'spam above {spam:g}, ham up to {ham:g}, unsure in between')}</p>"
    yield _figures(list(results.figures.rows(VERDICTS)))
    yield _confusion(results.verdicts, "verdicts")


def _confusion(confusion: Confusion, caption: str) -> str:
    lines = [
        ("", [escaped(name), *(f"{n:,}" for n in row), f"{sum(row):,}"])
        for name, row in zip(confusion.classes, confusion.counts, strict=True)
    ]
    heads = [caption, *(f"called {name}" for name in confusion.verdicts), "of"]
    return table_html(heads, lines)


def _where_called(messages: ScoredMessages) -> str:
    """Return by what messages are called spam where errors are counted."""
    if messages.threshold is None:
        return "by the most probable class"
    return f"at P(spam) = {messages.threshold:g}"


def _curves(results: Results) -> Iterator[str]:
    """Yield the curves that are defined."""
    messages, counts = results.messages, results.messages.counts
    if not (messages.has_spam_class and counts.spam and counts.ham):
        return
    yield '<h2>Curves</h2><div class="curves">'
    n = f"{counts.spam:,} spam and {counts.ham:,} ham"
    point = f"the point is {_where_called(messages)}"
    wrong = results.figures.values["one_minus_roca_pct"] or 0.0
    error = calibration_error(results.bins)
    for drawing, caption in (
        (roc_svg(messages), f"ROC, area under the curve {1 - wrong / 100:.4f}; {n}; {point}"),
        (log_roc_svg(messages), f"the same on logarithmic axes, spam missed for caught; {point}"),
        (
            calibration_svg(results.bins),
            f"calibration, error {error:.4f}; a larger dot stands for more messages",
        ),
        (scores_svg(messages), "scores: ham blue, spam red; the outer columns hold what is beyond"),
    ):
        yield f"<figure>{drawing}<figcaption>{escaped(caption)}</figcaption></figure>"
    yield "</div>"
    if results.bins:
        yield table_html(
            ["P(spam)", "messages", "predicted", "observed"],
            [
                (
                    "",
                    [
                        f"{b.low:.1f} to {b.high:.1f}",
                        f"{b.messages:,}",
                        f"{b.mean_probability:.4f}",
                        f"{b.spam_share:.4f}",
                    ],
                )
                for b in results.bins
            ],
        )


def _mistakes(results: Results, errors: int) -> Iterator[str]:
    evaluation = results.evaluation
    every = sum(outcome.is_mistake for outcome in evaluation.outcomes)
    worst = worst_mistakes(evaluation, errors)
    yield "<h2>Worst mistakes</h2>"
    if not worst:
        yield f"<p>{'none' if not every else counted(every, 'mistake')}</p>"
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


def _strongest(strongest: StrongestWords | None) -> Iterator[str]:
    if strongest is None:
        return
    yield "<h2>Strongest words of the model</h2>"
    for name, rows in strongest.of_class.items():
        yield f"<h3>for {escaped(name)}</h3>"
        yield words_table(word_lines(rows), strongest.heads, [""])
