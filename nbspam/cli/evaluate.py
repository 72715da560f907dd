"""`nbspam eval`."""

import contextlib
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click

from nbspam.cli.command import command, flag, option, section
from nbspam.cli.learning_options import Protocol, Sources, TrainingOptions
from nbspam.cli.notes import default_model, note_binary
from nbspam.cli.options import (
    BASE,
    DASK,
    FORM,
    JOBS,
    MODEL_OR_NONE,
    QUIET,
    CutOffOptions,
    SourceOptions,
)
from nbspam.errors import OptionError, SourceError
from nbspam.reading.source import STDIN, Skips

_EXCERPT_LENGTH = 500  # characters of a message's text
_PAGE_ERRORS = 20  # default number of mistakes on a page
_PAGE_WORDS = 20  # words for each class on a page


_PATH = click.Path(path_type=Path, dir_okay=False, readable=False)
_file = partial(option, metavar="FILE", type=_PATH)


@section("Output")
class Report(NamedTuple):
    """The options of the report: its contents and its files."""

    errors: int = option(type=click.IntRange(0), default=0, help="Show the N worst mistakes.")
    predictions: Path | None = _file(
        advanced=True,
        help="Write the columns of the table that was read, and each message's verdict and"
        " probability, to FILE (.csv, .tsv, .jsonl, .json, .parquet or .xlsx); - writes JSON lines"
        " to standard output, and the report to standard error.",
    )
    plot: Path | None = _file(
        advanced=True,
        help="Draw ROC curve, calibration, scores and (--online) learning curve to FILE (.svg,"
        " .png, .pdf); needs matplotlib.",
    )
    page: Path | None = _file(
        "page",
        "--report",
        help="Write metrics, curves, worst mistakes and strongest words to FILE, an HTML page.",
    )
    full: bool = flag(
        help="Print all metrics, the confusion matrix, the calibration and the scores."
    )

    @property
    def excerpt(self) -> int:
        """Characters of each message's text to show; 0 if no message is shown."""
        is_shown = self.errors or self.predictions is not None or self.page is not None
        return _EXCERPT_LENGTH if is_shown else 0

    def check(self, form: str) -> None:
        """Raise an error for a file that cannot be written."""
        if self.predictions_to_stdout and form != "text":
            raise OptionError(
                f"--predictions - and --format {form} both write to standard output; write the"
                " predictions to a file"
            )
        if self.written is not None:
            from nbspam.display.tables import table_format

            table_format(self.written)
        for name, path in self.files.items():
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
    def predictions_to_stdout(self) -> bool:
        """Whether the predictions are written to standard output, and the report is not."""
        return self.predictions == Path(STDIN)

    @property
    def written(self) -> Path | None:
        """The file for the predictions."""
        return None if self.predictions_to_stdout else self.predictions

    @property
    def files(self) -> dict[str, Path | None]:
        """The files to write: option -> path."""
        return {"--predictions": self.written, "--plot": self.plot, "--report": self.page}


@command("eval")
def evaluate(
    *,
    sources: Sources,
    model: Path | None = MODEL_OR_NONE,
    base: str | None = BASE,
    protocol: Protocol,
    cut_off_options: CutOffOptions,
    training_options: TrainingOptions,
    source_options: SourceOptions,
    report: Report,
    form: str = FORM,
    quiet: bool = QUIET,
    jobs: int = JOBS,
    dask: str | None = DASK,
) -> None:
    """Measure how good the filter is on labelled messages.

    By default, the saved model is tested on the messages that it has not learned.  --leave-one-out,
    --folds, --train-first and --online train on some of the messages and test on others, without a
    model file.  --compare tests several kinds of naive Bayes.

    \b
    Examples:
      nbspam eval --ham later-ham.mbox --spam later-spam.mbox
      nbspam eval --folds 10 messages.tsv
      nbspam eval --train-first 30% --errors 10 messages.tsv
      nbspam eval --folds 10 --report report.html messages.tsv
    \f
    The model's ledger tells which messages it has learned.  With --spam-label a saved model can be
    tested on messages with labels that it does not know: this label means spam, and every other
    label means ham.  --full prints accuracy, F1, AUC, the metrics of the TREC spam track and more;
    shares and AUC with their 95 % intervals.

    Errors are counted at P(spam) = 0.5.  Next to the errors, the report has the verdicts by the
    model's cut-offs, or by the given cut-offs: how much ham is classified as spam, how much spam is
    missed, and how many messages are unsure.  With three or more classes the verdict is the most
    probable class, and there is no cut-off.

    --compare tests all kinds of naive Bayes, or only the named kinds.  A name has the event model,
    the traits or both, and then the scoring rule: bernoulli+kernel:evidence is the default, and
    gaussian:sum has no tokens.  A name without a scoring rule means both rules.  The output says
    which kind is best, which kinds are significantly different from the best, and which to choose.

    \b
    More examples:
      nbspam eval -m model.json --label-column target --spam-label 1 messages.csv
      nbspam eval --online --batch 100 --plot figures.svg corpus/index
      nbspam eval --folds 5 --seed 7 --full messages.tsv
      nbspam eval --folds 10 --predictions predictions.csv messages.tsv
      nbspam eval --compare all --plot roc.svg --report kinds.html messages.tsv
      nbspam eval --compare bernoulli,multinomial --folds 10 messages.tsv
    """
    # Imported late, because the help needs no numpy.
    from nbspam.cli.evaluating import (
        Reader,
        compare_models,
        evaluate_model,
        page_terms,
        report_notes,
        write_page,
    )
    from nbspam.cli.progress import progress_passes
    from nbspam.display.page import words_html
    from nbspam.display.tables import check_outputs
    from nbspam.evaluation.curves import draw
    from nbspam.evaluation.report import print_report, report_page
    from nbspam.evaluation.results import as_json, write_predictions, write_records

    # Protocols that train models read no saved model.  Other tests need one, so default_model may
    # raise OptionError.
    if model is None:
        model = Path("model.json" if protocol.trains else default_model() or "")
    protocol.check(training_options, cut_off_options, model)
    source_options.check(sources.names_without_labels())
    report.check(form)
    check_outputs(report.files, sources.names(), None if protocol.trains else model)
    skips = Skips(source_options.strict)
    sources.check()
    options = source_options.options(quiet=quiet, require_content=True)
    rows: dict[str, tuple[Sequence[str], Any]] = {}
    if report.predictions is not None:
        options = options._replace(
            on_row=lambda source, names, row: rows.update({source: (names, row)})
        )
    reader = Reader(sources, options, skips, quiet, (dask, jobs))
    if protocol.compare is not None:
        files = report.plot, report.page
        compare_models(reader, protocol, training_options, cut_off_options, files, form)
        return
    computed, whole = evaluate_model(
        reader,
        model,
        base,
        protocol,
        training_options,
        cut_off_options,
        report.excerpt,
        report.page is not None,
    )
    if protocol.trains:
        found = computed.evaluation
        note_binary(training_options.spam_label, found.classes, found.positive)
    with progress_passes(quiet) as passes:
        if report.written is not None:
            passes.start(f"writing {report.written}", 0)
            write_predictions(computed.evaluation.outcomes, report.written, rows)
        if report.plot is not None:
            draw(computed, report.plot)
        if report.page is not None:
            passes.start(f"writing {report.page}", 0)
            words = words_html(whole, _PAGE_WORDS) if whole else ()
            errors = report.errors or _PAGE_ERRORS
            write_page(report_page(computed, errors, page_terms(sources), words), report.page)
    if form == "json":
        click.echo(as_json(computed, report.errors))
        return
    if report.predictions_to_stdout:
        write_records(computed.evaluation.outcomes, sys.stdout.buffer, "jsonl", rows)
        if quiet:
            return
    with contextlib.redirect_stdout(sys.stderr if report.predictions_to_stdout else sys.stdout):
        print_report(computed, report.errors, report_notes(computed, model), full=report.full)
        if not report.full:
            click.echo("\n--full prints all metrics, the confusion matrix and the scores")
