"""`nbspam eval`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from nbspam.cli.configured import ConfiguredCommand
from nbspam.cli.learning_options import (
    Learning,
    learning_options,
)
from nbspam.cli.notes import note_skips
from nbspam.cli.options import (
    Cutting,
    Reading,
    cut_off_options,
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

if TYPE_CHECKING:  # the help of this command loads no numpy
    from collections.abc import Callable, Iterator

    from nbspam.evaluation.protocols import Evaluation
    from nbspam.scoring.verdict import CutOffs
    from nbspam.tokens.tokenized import TokenizedMessage, Wanted


_CSV = "csv"


class Report(NamedTuple):
    """What to report, and where."""

    errors: int
    predictions: Path | None
    plot: Path | None

    def check(self, form: str, compares: bool) -> None:
        """Raise an error for a file that cannot be written, and for what a comparison has not."""
        if compares and (self.errors or self.predictions is not None):
            option = "--errors" if self.errors else "--predictions"
            raise OptionError(
                f"{option} is of one model; leave it out, or leave --compare out and choose the"
                " model with --event-model, --traits and --scoring"
            )
        if form == _CSV and not compares:
            raise OptionError("--format csv is of a comparison; add --compare, or take json")
        if self.predictions is not None and not self.predictions.parent.is_dir():
            raise SourceError(
                f"--predictions {self.predictions}: there is no such folder; create it first"
            )
        if self.plot is not None and not self.plot.parent.is_dir():
            raise SourceError(f"--plot {self.plot}: there is no such folder; create it first")
        if self.plot is not None:
            from nbspam.evaluation.plot import check_plot

            check_plot(self.plot)


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
        help="Write a JSON object for each message to FILE.",
    ),
    click.option(
        "--plot",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Draw ROC, calibration and scores to FILE (.png or .svg); needs matplotlib.",
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
    help="Print text for people, JSON for programs, or a comparison as CSV.",
)
@quiet_option
@jobs_option
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
) -> None:
    """Measure how good the filter is on labelled messages.

    By default it tests the saved model, on messages it should not have learned from.
    --leave-one-out, --folds, --train-first and --online train on some of the messages and test on
    others; they read and write no model file.  The figures are those of the TREC spam track, each
    with its 95 % interval.

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
      nbspam eval --online --batch 100 --plot figures.png corpus/index
      nbspam eval --compare all --plot roc.png messages.tsv
      nbspam eval --compare bernoulli,multinomial --folds 10 messages.tsv
    """
    protocol.check(learning)
    cutting.check_limit(protocol.max_ham_blocked)
    limit = ham_limit(protocol.max_ham_blocked)
    if protocol.trains:
        cutting.of_new()  # raises for those of no new model
    else:
        cutting.check()
    skips = Skips(reading.strict)
    report.check(form, protocol.compare is not None)
    messages = _reader(sources, reading, skips, quiet, jobs)
    if protocol.compare is not None:
        if cutting.is_given:
            raise OptionError("--compare counts errors at 0.5; leave the cut-offs out")
        from nbspam.cli.comparing import compare_models

        compare_models(messages, skips, protocol, learning, cutting, report.plot, form, quiet)
        return
    if protocol.trains:
        found, cut_offs = _trained(messages, protocol, learning, cutting, limit)
    else:
        found, cut_offs = _saved(messages, model, cutting)
    if not found.outcomes:
        raise SourceError("there is no message to test on; name a source that has some")
    _print(found, cut_offs, report, form, skips)


def _reader(
    sources: Sources, reading: Reading, skips: Skips, quiet: bool, jobs: int
) -> "Callable[[Wanted], Iterator[TokenizedMessage]]":
    """Return what reads the messages, shows how far it is, and notes what it skipped.

    It is given the numbers that are wanted beside their tokens.
    """
    from nbspam.cli.progress import progress
    from nbspam.workers import executor, tokenized

    raws = sources.messages(reading.options(), skips)

    def read(wanted: "Wanted") -> "Iterator[TokenizedMessage]":
        with progress(quiet, sources.names()) as shown:
            yield from shown(tokenized(raws, skips, executor(jobs), wanted=wanted))
        note_skips(skips)

    return read


def _trained(
    messages: "Callable[[Wanted], Iterator[TokenizedMessage]]",
    protocol: Protocol,
    learning: Learning,
    cutting: Cutting,
    limit: float | None,
) -> "tuple[Evaluation, CutOffs]":
    """Return the outcomes of models trained on some of the messages, and the cut-offs."""
    from nbspam.evaluation import protocols

    cut_offs, settings = cutting.of_new(), learning.settings()
    read = protocols.LabelledCorpus.of(messages(settings.wanted), settings.wanted)
    cutting.check_classes(len(set(read.corpus.labels)))
    found = protocol.run(read, settings, cut_offs, limit)
    return found, found.cut_offs or cut_offs


def _saved(
    messages: "Callable[[Wanted], Iterator[TokenizedMessage]]", model: Path, cutting: Cutting
) -> "tuple[Evaluation, CutOffs]":
    """Return the outcomes of the saved model, and its cut-offs."""
    from nbspam.evaluation import protocols
    from nbspam.filter import open_filter

    with open_filter(model, cutting.of) as spam_filter:
        found = protocols.saved_model(spam_filter, messages(spam_filter.wanted))
        return found, spam_filter.cut_offs


def _print(
    found: "Evaluation", cut_offs: "CutOffs", report: Report, form: str, skips: Skips
) -> None:
    """Write and print what was asked for."""
    from nbspam.evaluation.json_report import as_json, prediction
    from nbspam.evaluation.results import compute

    if report.predictions is not None:
        with report.predictions.open("w", encoding="utf-8") as file:
            file.writelines(f"{json.dumps(prediction(o))}\n" for o in found.outcomes)
    computed = compute(found, cut_offs)
    if report.plot is not None:
        from nbspam.evaluation.plot import draw

        draw(computed, report.plot)
    if form == "json":
        click.echo(as_json(computed, skips.count, report.errors))
        return
    from nbspam.evaluation.report import print_report

    print_report(computed, report.errors)
