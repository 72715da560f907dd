"""`nbspam eval`."""

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click
from click.core import ParameterSource

from nbspam.cli.configured import ConfiguredCommand
from nbspam.cli.evaluation_notes import check_some_are_left, evaluation_notes
from nbspam.cli.learning_options import (
    Learning,
    learning_options,
)
from nbspam.cli.notes import note_skips
from nbspam.cli.options import (
    Cutting,
    Reading,
    cut_off_options,
    dask_option,
    gathered,
    ham_limit,
    jobs_option,
    model_option,
    quiet_option,
    reading_options,
)
from nbspam.cli.protocol_options import Protocol, protocol_options
from nbspam.cli.sources_options import (
    Sources,
    labelled_sources,
)
from nbspam.errors import OptionError, SourceError
from nbspam.reading.skips import Skips
from nbspam.reading.sources import STDIN

if TYPE_CHECKING:  # the help of this command loads no numpy
    from collections.abc import Callable, Iterable, Iterator

    from nbspam.cli.progress import Work
    from nbspam.evaluation.outcome import Evaluation
    from nbspam.evaluation.results import Results
    from nbspam.reading.piece import SourcePiece
    from nbspam.reading.raw_message import RawMessage
    from nbspam.scoring.verdict import CutOffs
    from nbspam.tokens.tokenized import TokenizedMessage, Wanted


_CSV = "csv"
_EXCERPT = 500  # characters of a message's text
_PAGE_ERRORS = 20  # mistakes that a page shows unless another number is given


class Report(NamedTuple):
    """What to report, and where."""

    errors: int
    predictions: Path | None  # `-` for standard output
    plot: Path | None
    page: Path | None

    @property
    def excerpt(self) -> int:
        """How many characters of each message's text are shown, at most; 0 shows no message."""
        is_shown = self.errors or self.predictions is not None or self.page is not None
        return _EXCERPT if is_shown else 0

    def check(self, form: str, compares: bool) -> None:
        """Raise an error for a file that cannot be written, and for what a comparison has not."""
        of_one = {
            "--errors": self.errors,
            "--predictions": self.predictions,
            "--report": self.page,
        }
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


@click.command("eval", cls=ConfiguredCommand)
@labelled_sources
@model_option
@protocol_options
@gathered(
    "report",
    Report,
    click.option(
        "--errors",
        type=click.IntRange(0),
        default=0,
        metavar="N",
        help="Show the N worst mistakes.",
    ),
    click.option(
        "--predictions",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Write what is said of each message to FILE (.csv, .tsv, .json, .jsonl or .parquet);"
        " - writes JSON lines to standard output, and the report to standard error.",
    ),
    click.option(
        "--plot",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Draw ROC, calibration, scores, and with --online the learning curve, to FILE (.png or"
        " .svg); needs matplotlib.",
    ),
    click.option(
        "--report",
        "page",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Write figures, curves and worst mistakes to FILE, a page for a browser.",
    ),
)
@cut_off_options
@learning_options
@reading_options
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", _CSV]),
    default="text",
    show_default=True,
    help="Print text for people, or JSON or CSV for programs.",
)
@quiet_option
@jobs_option
@dask_option
def command(
    sources: Sources,
    model: Path,
    protocol: Protocol,
    report: Report,
    cutting: Cutting,
    learning: Learning,
    reading: Reading,
    form: str,
    quiet: bool,
    jobs: int,
    dask: str | None,
) -> None:
    """Measure how good the filter is on labelled messages.

    By default it tests the saved model.  Messages that the model has learned are left out, as far
    as its ledger knows them.  --leave-one-out, --folds, --train-first and --online train on some of
    the messages and test on others; they read and write no model file.  The figures are accuracy,
    precision, recall, F1 and AUC, then those of the TREC spam track, each with its 95 % interval.

    Errors are counted at P(spam) = 0.5.  Beside them it prints what the verdicts do, with the
    model's cut-offs or those given: how much ham is classified as spam, how much spam is not, and
    how many messages are unsure.

    --compare tries kinds of naive Bayes on the messages, all of them or those named: EVENT_MODEL,
    +TRAITS or both, then :SCORING (bernoulli+kernel:evidence is the default; gaussian:sum has no
    tokens; without a scoring, both).  It says which is best, which of the others differ from it by
    more than chance, and which to take.

    \b
    Examples:
      nbspam eval -m model.json --ham later-ham.mbox --spam later-spam.mbox
      nbspam eval --folds 10 messages.tsv
      nbspam eval --train-first 30% --errors 10 messages.tsv
      nbspam eval --folds 10 --report report.html messages.tsv
      nbspam eval --online --batch 100 --plot figures.png corpus/index
      nbspam eval --folds 5 --seed 7 --format csv messages.tsv
      nbspam eval --folds 10 --predictions predictions.csv messages.tsv
      nbspam eval --compare all --plot roc.png messages.tsv
      nbspam eval --compare bernoulli,multinomial --folds 10 messages.tsv
    """
    limit = _check(protocol, learning, cutting, report, form, model)
    skips = Skips(reading.strict)
    messages = _reader(sources, reading, skips, quiet, (dask, jobs))
    if protocol.compare is not None:
        from nbspam.cli.comparing import compare_models

        compare_models(messages, skips, protocol, learning, cutting, report.plot, form, quiet)
        return
    from nbspam.cli.progress import work
    from nbspam.evaluation.results import compute

    if protocol.trains:
        found, cut_offs = _trained(
            messages, protocol, learning, cutting, limit, report.excerpt, quiet
        )
    else:
        found, cut_offs = _saved(
            messages, model, cutting, report.excerpt, protocol.including_learned
        )
    check_some_are_left(found, model)
    with work(quiet) as at_work:
        at_work.stage("computing the figures and their intervals")
        computed = compute(found, cut_offs, protocol.bootstrap_seed)
        _write_files(computed, report, skips, None if protocol.trains else model, at_work)
    _print(computed, report, form, skips, evaluation_notes(found, model), quiet)


def _check(
    protocol: Protocol,
    learning: Learning,
    cutting: Cutting,
    report: Report,
    form: str,
    model: Path,
) -> float | None:
    """Return the share of ham that may be blocked, if it was given.

    Raises an error for options that cannot be together, and for files that cannot be written.
    """
    protocol.check(learning, model if _is_named("model") else None)
    cutting.check_limit(protocol.max_ham_blocked)
    limit = ham_limit(protocol.max_ham_blocked)
    if protocol.trains:
        cutting.of_new()  # raises for those of no new model
    else:
        cutting.check()
    if protocol.compare is not None and cutting.is_given:
        raise OptionError("--compare counts errors at 0.5; leave the cut-offs out")
    report.check(form, protocol.compare is not None)
    return limit


def _is_named(parameter: str) -> bool:
    """Return whether an option was given on the command line."""
    source = click.get_current_context().get_parameter_source(parameter)
    return source is ParameterSource.COMMANDLINE


def _reader(
    sources: Sources, reading: Reading, skips: Skips, quiet: bool, at: tuple[str | None, int]
) -> "Callable[[Wanted], Iterator[TokenizedMessage]]":
    """Return what reads the messages, shows how far it is, and notes what it skipped.

    It is given the numbers that are wanted beside their tokens.
    at: the scheduler's address if there is one, and the number of processes.
    """
    from nbspam.cli.class_sizes import class_sizes
    from nbspam.cli.progress import progress
    from nbspam.cli.work_place import work_place
    from nbspam.workers import tokenized

    options = reading.options(quiet=quiet)
    raws = sources.messages(options, skips)  # raises if there are none

    def read(wanted: "Wanted") -> "Iterator[TokenizedMessage]":
        with (
            work_place(*at, quiet=quiet) as place,
            progress(quiet, sources.names()) as shown,
            class_sizes(quiet) as counted_by_class,
        ):
            found: Iterable[RawMessage | SourcePiece] = raws
            if place.cluster is not None:
                found = sources.pieces(place.cutter(options, skips))
            messages = tokenized(found, skips, place.where, digests=True, wanted=wanted)
            yield from counted_by_class(shown(messages))
        note_skips(skips)

    return read


def _trained(
    messages: "Callable[[Wanted], Iterator[TokenizedMessage]]",
    protocol: Protocol,
    learning: Learning,
    cutting: Cutting,
    limit: float | None,
    excerpt: int,
    quiet: bool,
) -> "tuple[Evaluation, CutOffs]":
    """Return the outcomes of models trained on some of the messages, and the cut-offs."""
    from nbspam.cli.progress import work
    from nbspam.evaluation import protocols

    cut_offs, settings = cutting.of_new(), learning.settings()
    read = protocols.LabelledCorpus.of(
        messages(settings.wanted._replace(excerpt=excerpt)), settings.wanted
    )
    cutting.check_classes(sorted(set(read.corpus.labels)))
    with work(quiet) as at_work:
        at_work.stage("training and testing")
        found = protocol.run(read, settings, cut_offs, limit, at_work=at_work)
    return found, found.cut_offs or cut_offs


def _saved(
    messages: "Callable[[Wanted], Iterator[TokenizedMessage]]",
    model: Path,
    cutting: Cutting,
    excerpt: int,
    including_learned: bool,
) -> "tuple[Evaluation, CutOffs]":
    """Return the outcomes of the saved model, and its cut-offs."""
    from nbspam.evaluation import protocols
    from nbspam.filter import open_filter

    with open_filter(model, cutting.of) as spam_filter:
        wanted = spam_filter.wanted._replace(excerpt=excerpt)
        found = protocols.saved_model(spam_filter, messages(wanted), including_learned)
        return found, spam_filter.cut_offs


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
    if form == _CSV:
        from nbspam.evaluation.csv_report import evaluation_csv

        click.echo(evaluation_csv(computed, skips.count))
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
