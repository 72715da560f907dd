"""`nbspam eval`."""

import contextlib
import shlex
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click

from nbspam.cli.command import command, flag, option, section
from nbspam.cli.learning_options import Learning, Protocol, Sources
from nbspam.cli.notes import note_binary
from nbspam.cli.options import BASE, DASK, FORM, JOBS, MODEL, QUIET, Cutting, Reading, config_files
from nbspam.errors import OptionError, SourceError
from nbspam.reading.source import STDIN, Skips

_EXCERPT = 500  # characters of a message's text
_PAGE_ERRORS = 20  # mistakes that a page shows unless another number is given


_PATH = click.Path(path_type=Path, dir_okay=False, readable=False)
_file = partial(option, metavar="FILE", type=_PATH)


@section("Output")
class Report(NamedTuple):
    """What to report, and where."""

    errors: int = option(type=click.IntRange(0), default=0, help="Show the N worst mistakes.")
    predictions: Path | None = _file(
        seldom=True,
        help="Write the columns of the table that was read, and each message's verdict and"
        " probability, to FILE (.csv, .tsv, .jsonl, .json, .parquet or .xlsx); - writes JSON lines"
        " to standard output, and the report to standard error.",
    )
    plot: Path | None = _file(
        seldom=True,
        help="Draw ROC curve, calibration, scores and (--online) learning curve to FILE (.svg,"
        " .png, .pdf); needs matplotlib.",
    )
    page: Path | None = _file(
        "page", "--report", help="Write metrics, curves and worst mistakes to FILE, an HTML page."
    )
    full: bool = flag(
        help="Print all metrics, the confusion matrix, the calibration and the scores."
    )

    @property
    def excerpt(self) -> int:
        """How many characters of each message's text are shown, at most; 0 shows no message."""
        is_shown = self.errors or self.predictions is not None or self.page is not None
        return _EXCERPT if is_shown else 0

    def check(self, form: str) -> None:
        """Raise an error for a file that cannot be written."""
        if self.is_beside_predictions and form != "text":
            raise OptionError(
                f"--predictions - and --format {form} both write to standard output; write the"
                " predictions to a file"
            )
        if self.written is not None:
            from nbspam.display.tables import form_of

            form_of(self.written)
        for name, path in self.files.items():
            if path == Path("-") and name == "--report":
                raise OptionError("--report needs a file; name one, such as report.html")
            if name == "--report" and path and path.suffix.lower() not in (".html", ".htm"):
                raise OptionError(
                    f"--report {path}: a report is HTML; name a file that ends in .html"
                )
            if path is not None and not path.parent.is_dir():
                raise SourceError(f"{name} {path}: the folder does not exist; create it")
        if self.plot is not None:
            from nbspam.evaluation.curves import check_plot

            check_plot(self.plot)

    @property
    def is_beside_predictions(self) -> bool:
        """Whether predictions go to standard output, and the report elsewhere."""
        return self.predictions == Path(STDIN)

    @property
    def written(self) -> Path | None:
        """The file for the predictions."""
        return None if self.is_beside_predictions else self.predictions

    @property
    def files(self) -> dict[str, Path | None]:
        """The files to write, by their options."""
        return {"--predictions": self.written, "--plot": self.plot, "--report": self.page}


@command("eval")
def evaluate(
    *,
    sources: Sources,
    model: Path = MODEL,
    base: str | None = BASE,
    protocol: Protocol,
    cutting: Cutting,
    learning: Learning,
    reading: Reading,
    report: Report,
    form: str = FORM,
    quiet: bool = QUIET,
    jobs: int = JOBS,
    dask: str | None = DASK,
) -> None:
    """Measure how good the filter is on labelled messages.

    By default it tests the saved model on those messages that the model has not learned.
    --leave-one-out, --folds, --train-first and --online train on some of the messages and test on
    others; they read and write no model file.  --compare tests several kinds of naive Bayes.

    \b
    Examples:
      nbspam eval --ham later-ham.mbox --spam later-spam.mbox
      nbspam eval --folds 10 messages.tsv
      nbspam eval --train-first 30% --errors 10 messages.tsv
      nbspam eval --folds 10 --report report.html messages.tsv
    \f
    The model's ledger tells which messages it has learned.  With --spam-label a saved model is
    tested on labels of other names: every other label means ham.  --full prints accuracy, F1, AUC,
    the metrics of the TREC spam track and more, each with its 95 % interval.

    Errors are counted at P(spam) = 0.5.  Beside them it prints the verdicts with the model's
    cut-offs or those given: how much ham is classified as spam, how much spam is missed, and how
    many messages are unsure.  With three or more classes the verdict is the most probable class,
    and there is no cut-off.

    --compare tests all kinds of naive Bayes, or those named: EVENT_MODEL, +TRAITS or both, then
    :SCORING (bernoulli+kernel:evidence is the default; gaussian:sum has no tokens; without a
    scoring, both).  It prints which is best, which of the others differ from it significantly, and
    which to choose.

    \b
    More examples:
      nbspam eval -m model.json --label-column target --spam-label 1 messages.csv
      nbspam eval --online --batch 100 --plot figures.svg corpus/index
      nbspam eval --folds 5 --seed 7 --full messages.tsv
      nbspam eval --folds 10 --predictions predictions.csv messages.tsv
      nbspam eval --compare all --plot roc.svg messages.tsv
      nbspam eval --compare bernoulli,multinomial --folds 10 messages.tsv
    """
    # The help loads no numpy.
    from nbspam.cli.evaluating import Reader, compare_models, evaluated, notes_of
    from nbspam.cli.progress import shown_passes
    from nbspam.display.tables import OutputFiles, opened
    from nbspam.evaluation.curves import draw
    from nbspam.evaluation.report import print_report, report_page
    from nbspam.evaluation.results import as_json, write_predictions, write_records

    protocol.check(learning, cutting, model)
    reading.check(sources.names_without_labels())
    report.check(form)
    files = OutputFiles(report.files)
    files.check(sources.names(), None if protocol.trains else model, config_files())
    skips = Skips(reading.strict)
    sources.check()
    options = reading.options(quiet=quiet, needs_content=True)
    rows: dict[str, tuple[Sequence[str], Any]] = {}
    if report.predictions is not None:
        options = options._replace(
            on_row=lambda source, names, row: rows.update({source: (names, row)})
        )
    reader = Reader(sources, files, options, skips, quiet, (dask, jobs))
    if protocol.compare is not None:
        compare_models(reader, protocol, learning, cutting, report.plot, form)
        return
    computed = evaluated(reader, model, base, protocol, learning, cutting, report.excerpt)
    if protocol.trains:
        found = computed.evaluation
        note_binary(learning.spam_label, found.classes, found.positive)
    with shown_passes(quiet) as passes:
        if report.written is not None:
            passes.begin(f"writing {report.written}", 0)
            write_predictions(computed.evaluation.outcomes, report.written, rows)
        if report.plot is not None:
            draw(computed, report.plot)
        if report.page is not None:
            passes.begin(f"writing {report.page}", 0)
            errors, typed = report.errors or _PAGE_ERRORS, shlex.join(["nbspam", *sys.argv[1:]])
            text = report_page(computed, errors, typed)
            with opened(report.page) as file:
                file.write(text.encode("ascii"))
    if form == "json":
        click.echo(as_json(computed, report.errors))
        return
    if report.is_beside_predictions:
        write_records(computed.evaluation.outcomes, sys.stdout.buffer, "jsonl", rows)
        if quiet:
            return
    with contextlib.redirect_stdout(sys.stderr if report.is_beside_predictions else sys.stdout):
        print_report(computed, report.errors, notes_of(computed, model), full=report.full)
        if not report.full:
            click.echo("\n--full prints all metrics, the confusion matrix and the scores")
