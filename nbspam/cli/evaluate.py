"""`nbspam eval`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

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
    max_ham_blocked_option,
    model_option,
    quiet_option,
    reading_options,
)
from nbspam.cli.sources_options import (
    Sources,
    labelled_sources,
)
from nbspam.errors import OptionError, SourceError
from nbspam.reading.skips import Skips

if TYPE_CHECKING:  # the help of this command loads no numpy
    from collections.abc import Callable, Iterator

    from nbspam.evaluation.protocols import Evaluation, LabelledCorpus
    from nbspam.learning.settings import TrainingSettings
    from nbspam.scoring.verdict import CutOffs
    from nbspam.tokens.tokenized import TokenizedMessage, Wanted


_CSV = "csv"


class Protocol(NamedTuple):
    """How to test; without any of these, the saved model."""

    leave_one_out: bool
    folds: int | None
    train_first: str | None
    online: bool
    batch: int | None
    max_ham_blocked: str | None
    compare: str | None

    @property
    def _ways(self) -> int:
        given = (
            self.leave_one_out,
            self.folds is not None,
            self.train_first is not None,
            self.online,
        )
        return sum(given)

    @property
    def trains(self) -> bool:
        """Whether models are trained on some of the messages."""
        return bool(self._ways) or self.compare is not None

    def check(self, learning: Learning) -> None:
        """Raise OptionError for options that cannot be together."""
        if self._ways > 1:
            raise OptionError(
                "--leave-one-out, --folds, --train-first and --online are four ways to test; give"
                " one of them"
            )
        if self.compare is not None:
            for name in ("event_model", "traits", "scoring"):
                if name in learning.given():
                    raise OptionError(
                        f"--compare tries them all, and {learning.option(name)} asks for one; leave"
                        " it out, or name what to compare"
                    )
            if self.max_ham_blocked is not None:
                raise OptionError(
                    "--max-ham-blocked chooses a cut-off, and --compare counts errors at 0.5; leave"
                    " it out"
                )
        if self.batch is not None and not self.online:
            raise OptionError("--batch goes with --online; add it, or leave --batch out")
        if self.max_ham_blocked is not None and self.train_first is None:
            raise OptionError(
                "--max-ham-blocked chooses a cut-off from the messages of --train-first; add that,"
                " or leave it out: a saved model has the cut-off that train chose"
            )
        for name in learning.given() if not self.trains else ():
            raise OptionError(
                f"{learning.option(name)} is for training; add --leave-one-out, --folds,"
                " --train-first or --online, or leave it out"
            )

    def run(
        self,
        read: "LabelledCorpus",
        settings: "TrainingSettings",
        cut_offs: "CutOffs",
        limit: float | None = None,
        telling: bool = True,
    ) -> "Evaluation":
        """Return the outcomes of models trained on some of the messages; leave-one-out by default.

        limit: the share of ham that may be blocked.  telling: whether to keep the telling words.
        """
        from nbspam.evaluation import protocols

        if self.folds is not None:
            return protocols.folds(read, self.folds, settings, cut_offs, telling)
        if self.online:
            batch = 1 if self.batch is None else self.batch
            return protocols.online(read, batch, settings, cut_offs, telling)
        if self.train_first is not None:
            first = self.first(len(read.corpus))
            return protocols.train_first(read, first, settings, cut_offs, limit, telling)
        return protocols.left_out(read, settings, cut_offs, telling)

    def first(self, messages: int) -> int:
        """Return how many messages --train-first means."""
        text = self.train_first or ""
        try:
            if text.endswith("%"):
                return round(messages * float(text[:-1]) / 100)
            return int(text)
        except (ValueError, OverflowError) as error:
            raise OptionError(
                f"--train-first {text!r} is neither a number nor a percentage; try 1000 or 30%"
            ) from error


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
        if self.plot is not None:
            from nbspam.evaluation.plot import check_plot

            check_plot(self.plot)


@click.command("eval")
@labelled_sources
@model_option
@gathered(
    "protocol",
    Protocol,
    click.option(
        "--leave-one-out",
        is_flag=True,
        help="Score each message by a model of all the others.",
    ),
    click.option("--folds", type=int, metavar="K", help="Cross-validate with K folds."),
    click.option(
        "--train-first",
        metavar="N|P%",
        help="Train on the first N messages (or P percent) and test on the rest.",
    ),
    click.option(
        "--online",
        is_flag=True,
        help="Classify, then learn, in order, simulating a live filter.",
    ),
    click.option(
        "--batch",
        type=int,
        metavar="N",
        help="With --online, classify N messages before learning them. [default: 1]",
    ),
    max_ham_blocked_option(
        "With --train-first, choose from those messages the lowest spam cut-off"
    ),
    click.option(
        "--compare",
        metavar="all|NAME,…",
        help="Compare kinds of naive Bayes on these messages, by leave-one-out or as chosen.",
    ),
)
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
    options, skips = reading.options(), Skips(reading.strict)
    report.check(form, protocol.compare is not None)
    names = sources.names()

    from nbspam.cli.progress import progress
    from nbspam.workers import executor, tokenized

    raws = sources.messages(options, skips)
    if protocol.compare is not None:
        _compare(sources, protocol, report, learning, cutting, reading, form, quiet, jobs)
        return
    with progress(quiet, names) as shown:

        def read(wanted: "Wanted") -> "Iterator[TokenizedMessage]":
            return shown(tokenized(raws, skips, executor(jobs), wanted=wanted))

        if protocol.trains:
            found, cut_offs = _trained(read, protocol, learning, cutting, limit)
        else:
            found, cut_offs = _saved(read, model, cutting)
    note_skips(skips)
    if not found.outcomes:
        raise SourceError("there is no message to test on; name a source that has some")
    _print(found, cut_offs, report, form, skips)


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


def _compare(
    sources: Sources,
    protocol: Protocol,
    report: Report,
    learning: Learning,
    cutting: Cutting,
    reading: Reading,
    form: str,
    quiet: bool,
    jobs: int,
) -> None:
    """Compare kinds of naive Bayes, and print what was asked for."""
    from nbspam.cli.progress import progress, steps
    from nbspam.evaluation import comparison, comparison_report
    from nbspam.evaluation.protocols import LabelledCorpus
    from nbspam.workers import executor, tokenized

    given = learning.settings()
    asked = comparison.chosen(protocol.compare or "", given)
    cut_offs, skips, wanted = cutting.of_new(), Skips(reading.strict), comparison.EVERYTHING
    with progress(quiet, sources.names()) as shown:
        raws = sources.messages(reading.options(), skips)
        read = LabelledCorpus.of(
            shown(tokenized(raws, skips, executor(jobs), wanted=wanted)), wanted
        )
    note_skips(skips)
    if not len(read.corpus):
        raise SourceError("there is no message to test on; name a source that has some")
    with steps(quiet, len(read.corpus)) as shown_models:
        found = comparison.compare(
            read,
            asked,
            given,
            lambda some, settings: protocol.run(some, settings, cut_offs, telling=False),
            lambda models: shown_models(list(models), lambda model: model.name),
        )
    if report.plot is not None:
        from nbspam.evaluation.plot import draw_comparison

        draw_comparison(found, report.plot)
    if form == "json":
        click.echo(comparison_report.as_json(found, skips.count))
    elif form == _CSV:
        click.echo(comparison_report.as_csv(found))
    else:
        comparison_report.print_comparison(found)


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
