"""`nbspam eval`."""

import json
from pathlib import Path
from typing import Any

import click

from nbspam.cli.options import (
    cut_off_options,
    cut_offs_of,
    format_option,
    jobs_option,
    labelled_messages,
    labelled_sources,
    learning_options,
    model_option,
    named_sources,
    quiet_option,
    reading_of,
    reading_options,
    settings_of,
    tell,
)
from nbspam.errors import OptionError, SourceError


@click.command("eval")
@labelled_sources
@model_option
@click.option("--folds", type=int, metavar="K", help="Cross-validate: train and test K times.")
@click.option(
    "--train-first",
    metavar="N|P%",
    help="Train on the first N messages (or P percent), test on the rest.",
)
@click.option(
    "--online", is_flag=True, help="Classify, then learn, in order; as a filter in use would."
)
@click.option(
    "--batch",
    type=int,
    metavar="N",
    help="With --online: messages classified before they are learned. [default: 1]",
)
@click.option(
    "--errors", type=click.IntRange(0), default=0, metavar="N", help="Show the N worst mistakes."
)
@click.option(
    "--predictions",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write a JSON object for each message into FILE.",
)
@click.option(
    "--plot",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Draw ROC, calibration and scores into FILE (.png or .svg); needs matplotlib.",
)
@cut_off_options
@learning_options
@reading_options
@format_option
@quiet_option
@jobs_option
def command(
    model: Path,
    folds: int | None,
    train_first: str | None,
    online: bool,
    batch: int | None,
    errors: int,
    predictions: Path | None,
    plot: Path | None,
    form: str,
    quiet: bool,
    jobs: int,
    **options: Any,
) -> None:
    """Measure how good the filter is on labelled messages.

    By default it tests the saved model, on messages it should not have learned from.  --folds,
    --train-first and --online train on some of the messages and test on others; no model file is
    read or written then.  Figures are those of the TREC spam track, each with its 95 % interval.

    \b
    Examples:
      nbspam eval -m model.json --ham later-ham.mbox --spam later-spam.mbox
      nbspam eval --folds 10 messages.tsv
      nbspam eval --train-first 30% --errors 10 messages.tsv
      nbspam eval --online --batch 100 --plot figures.png corpus/index
    """
    ways = [folds is not None, train_first is not None, online]
    if sum(ways) > 1:
        raise OptionError(
            "--folds, --train-first and --online are three ways to test; give one of them"
        )
    if batch is not None and not online:
        raise OptionError("--batch goes with --online; add it, or leave --batch out")
    trains = any(ways)
    if not trains:
        for name in ("alpha", "prior", "scoring", "spam_label"):
            if options[name] is not None:
                option = "--" + name.replace("_", "-")
                raise OptionError(
                    f"{option} is for training; add --folds, --train-first or --online, or leave it"
                    " out"
                )
    cut_offs_for = cut_offs_of(options)
    cut_offs = cut_offs_for(None)
    reading, skips = reading_of(options)

    from nbspam.cli.progress import progress
    from nbspam.evaluation import protocols, report
    from nbspam.evaluation.plot import check_plot, draw
    from nbspam.learning.corpus import Corpus
    from nbspam.scoring.classifier import Classifier
    from nbspam.store.index import Index
    from nbspam.workers import token_sets

    settings = settings_of(options)
    if predictions is not None and not predictions.parent.is_dir():
        raise SourceError(f"--predictions {predictions}: there is no such folder; make it first")
    if plot is not None:
        check_plot(plot)
    named = named_sources(options)
    raws = labelled_messages(options, reading, skips)
    with progress(quiet, named) as shown:
        messages = shown(token_sets(raws, skips, jobs))
        if not trains:
            with Index(model) as lookup:
                classifier = Classifier(lookup.head, lookup.counts)
                cut_offs = cut_offs_for(lookup.head)

                found = protocols.saved_model(classifier, classifier.in_batches(messages), cut_offs)
        else:
            corpus, sources = Corpus(), []
            for raw, tokens, _ in messages:
                corpus.add(raw.label or "", tokens)
                sources.append(raw.source)
            if folds is not None:
                found = protocols.folds(corpus, sources, folds, settings, cut_offs)
            elif online:
                size = 1 if batch is None else batch
                found = protocols.online(corpus, sources, size, settings, cut_offs)
            else:
                first = _first(train_first or "", len(corpus))
                found = protocols.train_first(corpus, sources, first, settings, cut_offs)
    tell(skips)
    if not found.outcomes:
        raise SourceError("there is no message to test on; name a source that holds some")
    if predictions is not None:
        with predictions.open("w", encoding="utf-8") as file:
            for outcome in found.outcomes:
                line = json.dumps(report.prediction(outcome, found.classes))
                file.write(f"{line}\n")
    computed = report.compute(found, cut_offs)
    if plot is not None:
        if found.positive is None:
            raise OptionError("--plot: no class is called spam; name one with --spam-label")
        draw(computed, plot)
    if form == "json":
        click.echo(report.as_json(computed, skips.count, errors))
    else:
        report.print_report(computed, errors)


def _first(text: str, messages: int) -> int:
    """Return how many messages `--train-first` means."""
    try:
        if text.endswith("%"):
            return round(messages * float(text[:-1]) / 100)
        return int(text)
    except (ValueError, OverflowError) as error:
        raise OptionError(
            f"--train-first {text!r} is neither a number nor a percentage; try 1000 or 30%"
        ) from error
