"""`nbspam eval`."""

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from nbspam.cli.configured import configured
from nbspam.cli.declared import WRITES, is_typed, option, section
from nbspam.cli.evaluation_notes import check_some_are_left, evaluation_notes, note_mislabelled
from nbspam.cli.learning_options import Learning, Sources
from nbspam.cli.options import BASE, DASK, FORM, JOBS, MODEL, QUIET, Cutting, Reading, ham_limit
from nbspam.cli.output_files import OutputFiles
from nbspam.cli.protocol_options import Protocol
from nbspam.errors import OptionError, SourceError
from nbspam.reading.skips import Skips
from nbspam.reading.sources import STDIN

if TYPE_CHECKING:  # the help of this command loads no numpy
    from nbspam.cli.progress import Work
    from nbspam.evaluation.results import Results


_EXCERPT = 500  # characters of a message's text
_PAGE_ERRORS = 20  # mistakes that a page shows unless another number is given


_PATH = click.Path(path_type=Path, dir_okay=False, readable=False)


@section("Output")
class Report(NamedTuple):
    """What to report, and where."""

    errors: int = option("Show the N worst mistakes.", "N", takes=click.IntRange(0), default=0)
    predictions: Path | None = option(  # `-` for standard output
        "Write what is said of each message to FILE (.csv, .tsv, .json, .jsonl or .parquet); -"
        " writes JSON lines to standard output, and the report to standard error.",
        "FILE",
        takes=_PATH,
        typed=WRITES,
    )
    plot: Path | None = option(
        "Draw ROC, calibration, scores, and with --online the learning curve, to FILE (.png or"
        " .svg); needs matplotlib.",
        "FILE",
        takes=_PATH,
        typed=WRITES,
    )
    page: Path | None = option(
        "Write figures, curves and worst mistakes to FILE, a page for a browser.",
        "--report FILE",
        takes=_PATH,
        typed=WRITES,
    )

    @property
    def excerpt(self) -> int:
        """How many characters of each message's text are shown, at most; 0 shows no message."""
        is_shown = self.errors or self.predictions is not None or self.page is not None
        return _EXCERPT if is_shown else 0

    def check(self, form: str, compares: bool) -> None:
        """Raise an error for a file that cannot be written, and for what a comparison has not."""
        of_one = {"--errors": self.errors, "--predictions": self.predictions, "--report": self.page}
        if compares and any(of_one.values()):
            option = next(name for name, value in of_one.items() if value)
            raise OptionError(
                f"{option} is of one model; leave it out, or leave --compare out and choose the"
                " model with --event-model, --traits and --scoring"
            )
        if self.predictions is not None:
            self._check_predictions(self.predictions, form)
        if self.page == Path("-"):
            raise OptionError("--report writes a page to a file; name one, such as report.html")
        if self.page is not None and not self.page.parent.is_dir():
            raise SourceError(f"--report {self.page}: there is no such folder; create it first")
        if self.plot is not None and not self.plot.parent.is_dir():
            raise SourceError(f"--plot {self.plot}: there is no such folder; create it first")
        if self.plot is not None:
            from nbspam.evaluation.plot import check_plot

            check_plot(self.plot)

    def files(self) -> OutputFiles:
        """Return the files to write; raises SourceError if two are the same."""
        predictions = None if self.is_beside_predictions else self.predictions
        return OutputFiles(
            {"--predictions": predictions, "--plot": self.plot, "--report": self.page}
        )

    @property
    def is_beside_predictions(self) -> bool:
        """Whether predictions go to standard output, and the report elsewhere."""
        return self.predictions == Path(STDIN)

    def _check_predictions(self, path: Path, form: str) -> None:
        """Raise an error for a file that cannot be written."""
        if self.is_beside_predictions:
            if form != "text":
                raise OptionError(
                    f"--predictions - and --format {form} both write to standard output; name a"
                    " file for the predictions"
                )
            return
        from nbspam.evaluation.predictions import check_predictions

        check_predictions(path)
        if not path.parent.is_dir():
            raise SourceError(f"--predictions {path}: there is no such folder; create it first")


def _check(
    sources: Sources,
    protocol: Protocol,
    learning: Learning,
    reading: Reading,
    cutting: Cutting,
    report: Report,
    form: str,
    model: Path,
) -> None:
    """Raise an error for options that cannot be together, and for files that cannot be written."""
    protocol.check(learning, model if is_typed("model") else None)
    ham_limit(protocol.max_ham_blocked)
    reading.check(sources.names_without_labels())
    if protocol.trains:
        cutting.of_new()  # raises for those of no new model
    else:
        cutting.check()
    if protocol.trains and protocol.compare is None:  # which tries several kinds
        learning.settings()
    if protocol.compare is not None and cutting.is_given:
        raise OptionError("--compare counts errors at 0.5; leave the cut-offs out")
    if protocol.trains and not protocol.online and is_typed("base"):
        raise OptionError(
            "--base goes with --online or a saved model, since with a base messages are learned one"
            " by one; add --online, or leave --base out"
        )
    report.check(form, protocol.compare is not None)


@configured("eval", _check)
def command(
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

    By default it tests the saved model.  Messages that the model has learned are left out, as far
    as its ledger knows them.  --leave-one-out, --folds, --train-first and --online train on some of
    the messages and test on others; they read and write no model file.  The figures are accuracy,
    precision, recall, F1 and AUC, then those of the TREC spam track, each with its 95 % interval.
    With --spam-label a saved model is tested on labels of other names: every other one means ham.

    Errors are counted at P(spam) = 0.5.  Beside them it prints what the verdicts do, with the
    model's cut-offs or those given: how much ham is classified as spam, how much spam is not, and
    how many messages are unsure.  With three or more classes a message is called the most probable,
    and no cut-off decides.

    --compare tries kinds of naive Bayes on the messages, all of them or those named: EVENT_MODEL,
    +TRAITS or both, then :SCORING (bernoulli+kernel:evidence is the default; gaussian:sum has no
    tokens; without a scoring, both).  It says which is best, which of the others differ from it by
    more than chance, and which to take.

    \b
    Examples:
      nbspam eval -m model.json --ham later-ham.mbox --spam later-spam.mbox
      nbspam eval -m model.json --label-column target --spam-label 1 messages.csv
      nbspam eval --folds 10 messages.tsv
      nbspam eval --train-first 30% --errors 10 messages.tsv
      nbspam eval --folds 10 --report report.html messages.tsv
      nbspam eval --online --batch 100 --plot figures.png corpus/index
      nbspam eval --folds 5 --seed 7 --format json messages.tsv
      nbspam eval --folds 10 --predictions predictions.csv messages.tsv
      nbspam eval --compare all --plot roc.png messages.tsv
      nbspam eval --compare bernoulli,multinomial --folds 10 messages.tsv
    """
    files = report.files()
    files.check(sources.names(), None if protocol.trains else model)
    skips = Skips(reading.strict)
    from nbspam.cli.evaluating import Reader, evaluated

    sources.check()
    options = reading.options(quiet=quiet, needs_content=True)
    reader = Reader(sources, files, options, skips, quiet, (dask, jobs))
    if protocol.compare is not None:
        from nbspam.cli.comparing import compare_models

        compare_models(reader, skips, protocol, learning, cutting, report.plot, form, quiet)
        return
    from nbspam.cli.progress import work
    from nbspam.evaluation.results import compute

    found, cut_offs = evaluated(
        reader, model, base, protocol, learning, cutting, report.excerpt, quiet
    )
    note_mislabelled(found.mislabelled, skips.strict, quiet)
    check_some_are_left(found, model)
    with work(quiet) as at_work:
        at_work.stage("computing the figures and their intervals")
        computed = compute(found, cut_offs, protocol.bootstrap_seed)
        _write_files(computed, report, skips, None if protocol.trains else model, at_work)
    notes = evaluation_notes(found, model)
    doubted = (found.outcomes[i] for i in computed.doubted.messages)
    if wrong := computed.doubted.sentence([(o.judged.source, o.label) for o in doubted]):
        notes.append(f"{wrong}; --errors N shows them")
    _print(computed, report, form, skips, notes, quiet)


def _write_files(
    computed: "Results", report: Report, skips: Skips, model: Path | None, at_work: "Work"
) -> None:
    """Write the files that were asked for.  model: that was tested, if it was in a file."""
    if report.predictions is not None and not report.is_beside_predictions:
        from nbspam.evaluation.predictions import write_predictions

        at_work.stage(f"writing {report.predictions}")
        write_predictions(computed.evaluation.outcomes, report.predictions)
    if report.plot is not None:
        from nbspam.evaluation.plot import draw

        at_work.stage(f"drawing {report.plot}")
        draw(computed, report.plot)
    if report.page is not None:
        from nbspam.cli.evaluation_page import write_report_page

        at_work.stage(f"writing {report.page}")
        errors = report.errors or _PAGE_ERRORS
        write_report_page(computed, report.page, errors, skips.count, model)


def _print(
    computed: "Results", report: Report, form: str, skips: Skips, notes: list[str], quiet: bool
) -> None:
    """Print the results, and the predictions if they go to standard output."""
    from nbspam.evaluation.json_report import as_json, prediction

    if form == "json":
        click.echo(as_json(computed, skips.count, report.errors))
        return
    from nbspam.evaluation.predictions import write_json_lines
    from nbspam.evaluation.report import print_report

    if not report.is_beside_predictions:
        print_report(computed, report.errors, notes)
        return
    write_json_lines(map(prediction, computed.evaluation.outcomes), sys.stdout)
    if not quiet:
        with contextlib.redirect_stdout(sys.stderr):
            print_report(computed, report.errors, notes)
