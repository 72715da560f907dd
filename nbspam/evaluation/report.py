"""The results of an evaluation as text: rich tables on a terminal, plain text in a pipe."""

import sys
from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from nbspam.display.excerpt_lines import HARD_SPACE, excerpt_lines, folded_sentence, folded_text
from nbspam.errors import one_line
from nbspam.evaluation.bins import CalibrationBin, calibration_error, score_distribution
from nbspam.evaluation.metrics import GENERAL, TRACK, VERDICTS, ReportRow
from nbspam.evaluation.outcome import Outcome, worst_mistakes
from nbspam.evaluation.results import Results
from nbspam.evaluation.samples import ScoredMessages
from nbspam.labels import UNSURE

_PIPE_WIDTH = 200  # characters; wide enough that no table is folded
_LINE = 80  # cells of a line of text that is read
_EXCERPT_LINES = 4  # of a mistake
_EMPHASIS = {
    2: "bold underline red",
    1: "underline red",
    0: "",
    -1: "green",
    -2: "bold green",
}
_BAR_LENGTH = 40  # characters, of all messages
# Of the tables of figures, so that they stand below one another.
_FIGURE_WIDTHS = 9, 6, 15


def print_report(results: Results, errors: int, notes: Sequence[str] = ()) -> None:
    """Print the report to standard output, with colours and lines on a terminal only.

    errors: how many of the worst mistakes to show; 0 shows none.
    notes: sentences to read before the figures, such as which messages were left out.
    """
    out, style = console(), table_style()
    for line in (results.title, results.of_many_classes, *notes):
        if line:
            print_sentence(out, line)
    out.print()
    _print_figures(out, style, results)
    out.print(_confusion_table(style, results))
    if results.bins:
        out.print()
        out.print(_calibration_table(style, results.bins))
        error = calibration_error(results.bins)
        out.print(f"calibration error {error:.4f} (mean gap between predicted and observed)")
        out.print()
        out.print(_score_table(style, results.messages))
    if errors:
        mistakes = worst_mistakes(results.evaluation, errors)
        for mistake_line in _mistake_lines(mistakes, out):
            out.print(mistake_line, soft_wrap=True)


def print_sentence(out: Console, text: str) -> None:
    """Print a sentence in lines of at most 80 cells; a name that is longer stays whole."""
    for line in folded_sentence(text, min(out.width, _LINE)):
        out.print(line, soft_wrap=True)


def console() -> Console:
    """Return the console of a report: standard output, plain text in a pipe."""
    return Console(
        file=sys.stdout,
        width=None if sys.stdout.isatty() else _PIPE_WIDTH,
        highlight=False,
        emoji=False,
        markup=False,
    )


def table_style() -> box.Box | None:
    """Return how tables are drawn: with lines on a terminal only."""
    return box.SIMPLE_HEAD if sys.stdout.isatty() else None


def empty_table(style: box.Box | None, *columns: str, last_is_text: bool = False) -> Table:
    """Return an empty table: words in its first column, numbers in the others."""
    table = Table(box=style, pad_edge=False, header_style="bold")
    for i, name in enumerate(columns):
        is_text = i == 0 or (last_is_text and i == len(columns) - 1)
        table.add_column(Text(name), justify="left" if is_text else "right", overflow="fold")
    return table


def _print_figures(out: Console, style: box.Box | None, results: Results) -> None:
    """Print the figures of any classifier, those of the spam tracks, and those of the verdicts."""
    figures, cut_offs = results.figures, results.cut_offs
    out.print(_figures_table(style, list(figures.rows(GENERAL)), heads=True))
    out.print()
    if rows := list(figures.rows(TRACK)):
        out.print("the spam filter's figures, as the TREC spam tracks have them")
        out.print(_figures_table(style, rows))
        out.print()
    if cut_offs is not None:
        out.print(f"verdicts: spam above {cut_offs.spam:g}, ham up to {cut_offs.ham:g}")
        out.print(_figures_table(style, list(figures.rows(VERDICTS))))
        out.print()


def _figures_table(style: box.Box | None, rows: Sequence[ReportRow], heads: bool = False) -> Table:
    table = empty_table(style, "metric", "value", "95 % interval", "", last_is_text=True)
    table.show_header = heads
    for column, width in zip(table.columns, _FIGURE_WIDTHS, strict=False):
        column.min_width = width
    for row in rows:
        ends = "" if row.interval is None else " – ".join(map(_number, row.interval))
        meaning = f"{row.meaning}, {row.counts}" if row.counts else row.meaning
        table.add_row(row.name, _number(row.value), ends, meaning)
    return table


def _confusion_table(style: box.Box | None, results: Results) -> Table:
    """Return what messages of each class were called, and their verdicts with the cut-offs."""
    at_threshold, verdicts = results.confusion, results.verdicts
    columns = [f"called {name}" for name in at_threshold.verdicts]
    rows = at_threshold.counts
    if results.cut_offs is not None:
        columns += [
            name if name == UNSURE else f"verdict {name}"  # unsure is nothing but a verdict
            for name in verdicts.verdicts
        ]
        rows = [[*both, *more] for both, more in zip(rows, verdicts.counts, strict=True)]
    table = empty_table(style, "actual", *columns)
    table.padding = (0, 1, 0, 0) if style else (0, 1)  # narrower, to fit into 80 columns
    for name, row in zip(at_threshold.classes, rows, strict=True):
        # Every message is called something, so these columns add up to all of the class.
        total = sum(row[: len(at_threshold.verdicts)])
        table.add_row(Text(f"{total:,} {name}"), *(f"{n:,}" for n in row))
    return table


def _calibration_table(style: box.Box | None, bins: list[CalibrationBin]) -> Table:
    table = empty_table(style, "P(spam)", "messages", "predicted", "observed")
    for b in bins:
        table.add_row(
            f"{b.low:.1f} to {b.high:.1f}",
            f"{b.messages:,}",
            f"{b.mean_probability:.4f}",
            f"{b.spam_share:.4f}",
        )
    return table


def _score_table(style: box.Box | None, messages: ScoredMessages) -> Table:
    """Return the score distribution: a bar of h for ham and S for spam per range of log-odds."""
    table = empty_table(style, "log-odds", "ham", "spam", "", last_is_text=True)
    for low, high, ham, spam in score_distribution(messages.spam, messages.log_odds):
        bar = "h" * _bar_length(ham, len(messages)) + "S" * _bar_length(spam, len(messages))
        table.add_row(f"{low:+.0f} to {high:+.0f}", f"{ham:,}", f"{spam:,}", bar)
    return table


def _bar_length(count: int, messages: int) -> int:
    """Return the length of a bar, in proportion, and at least 1 unless the count is 0."""
    return -(-_BAR_LENGTH * count // max(1, messages))


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
            f" {judged.probability:.4f}, verdict {outcome.verdict}"
        )
        # In a pipe the name of a message is whole.
        for line in folded_text(f"  {said}", width, indent=4) if out.is_terminal else [f"  {said}"]:
            yield Text(line)
        if judged.reason:
            yield Text(f"    unsure for {judged.reason}")
        if outcome.message is not None:
            for pieces in excerpt_lines(
                outcome.message, width, _EXCERPT_LINES, signs=signs, indent="    "
            ):
                yield Text.assemble(*((text, _EMPHASIS[emphasis]) for text, emphasis in pieces))
        words = " ".join(
            f"{word.token} {word.weight:+.2f} ".replace(" ", HARD_SPACE) for word in outcome.words
        )
        for folded in folded_text(f"    {words or '(no known word)'}", width, indent=4):
            yield Text(folded.rstrip(), style="dim")


def _number(value: float) -> str:
    return f"{value:.4f}" if abs(value) < 10 else f"{value:.2f}"
