"""`nbspam eval`."""

import itertools
import json
from pathlib import Path
from typing import Any

import click

from nbspam.cli.options import (
    cut_off_options,
    cut_offs_of,
    format_option,
    labelled_messages,
    labelled_sources,
    learning_options,
    model_option,
    quiet_option,
    reading_of,
    reading_options,
    tell,
)
from nbspam.errors import OptionError, SourceError

_BATCH = 500


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
    "--errors", type=click.IntRange(0), default=0, metavar="N", help="Show the N worst mistakes."
)
@click.option(
    "--predictions",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write a JSON object for each message into FILE.",
)
@cut_off_options
@learning_options
@reading_options
@format_option
@quiet_option
def command(
    model: Path,
    folds: int | None,
    train_first: str | None,
    errors: int,
    predictions: Path | None,
    form: str,
    quiet: bool,
    **options: Any,
) -> None:
    """Measure how good the filter is on labelled messages.

    By default it tests the saved model, on messages it should not have learned from.  --folds and
    --train-first train on one part of the messages and test on another; no model file is read or
    written then.  Figures are those of the TREC spam track, each with its 95 % interval.

    \b
    Examples:
      nbspam eval -m model.json --ham later-ham.mbox --spam later-spam.mbox
      nbspam eval --folds 10 messages.tsv
      nbspam eval --train-first 30% --errors 10 messages.tsv
    """
    if folds is not None and train_first is not None:
        raise OptionError("--folds and --train-first are two ways to test; give one of them")
    trains = folds is not None or train_first is not None
    if not trains:
        for name in ("alpha", "prior", "spam_label"):
            if options[name] is not None:
                option = "--" + name.replace("_", "-")
                raise OptionError(
                    f"{option} is for training; add --folds or --train-first, or leave it out"
                )
    cut_offs = cut_offs_of(options)
    reading, skips = reading_of(options)

    from nbspam.cli.train import settings_of
    from nbspam.evaluation import protocols, report
    from nbspam.model.classifier import Classifier
    from nbspam.model.lookup import Lookup
    from nbspam.model.training import Corpus
    from nbspam.workers import token_sets

    settings = settings_of(options)
    raws = labelled_messages(options, reading, skips)
    with report.progress(quiet) as shown:
        messages = shown(token_sets(raws, skips))
        if not trains:
            with Lookup(model) as lookup:
                classifier = Classifier(lookup.head, lookup.counts)

                def prepared() -> Any:
                    while batch := list(itertools.islice(messages, _BATCH)):
                        classifier.prepare(set().union(*(tokens for _, tokens in batch)))
                        yield from batch

                found = protocols.saved_model(classifier, prepared(), cut_offs)
        else:
            corpus, sources = Corpus(), []
            for raw, tokens in messages:
                corpus.add(raw.label or "", tokens)
                sources.append(raw.source)
            if folds is not None:
                found = protocols.folds(corpus, sources, folds, settings, cut_offs)
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
    figures = report.compute(found, cut_offs)
    if form == "json":
        click.echo(report.as_json(found, figures, skips.count, errors))
    else:
        report.print_report(found, figures, errors)


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
