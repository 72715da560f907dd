"""`nbspam eval --compare`."""

from collections.abc import Callable, Iterator
from pathlib import Path

import click

from nbspam.cli.learning_options import Learning
from nbspam.cli.options import Cutting
from nbspam.cli.progress import steps
from nbspam.cli.protocol_options import Protocol
from nbspam.errors import SourceError
from nbspam.evaluation.comparison import EVERYTHING, Combination, advice, chosen, compare
from nbspam.evaluation.comparison_report import print_comparison
from nbspam.evaluation.csv_report import comparison_csv
from nbspam.evaluation.json_report import comparison_json
from nbspam.evaluation.protocols import LabelledCorpus
from nbspam.reading.skips import Skips
from nbspam.tokens.tokenized import TokenizedMessage, Wanted


def compare_models(
    messages: Callable[[Wanted], Iterator[TokenizedMessage]],
    skips: Skips,
    protocol: Protocol,
    learning: Learning,
    cutting: Cutting,
    plot: Path | None,
    form: str,
    quiet: bool,
) -> None:
    """Compare kinds of naive Bayes on labelled messages, and print the comparison.

    messages: reads them.  skips: those that it cannot read.  plot: where the ROC curves go.
    """
    given, cut_offs = learning.settings(), cutting.of_new()
    asked = chosen(protocol.compare or "", given)
    read = LabelledCorpus.of(messages(EVERYTHING), EVERYTHING)
    if not read.sources:
        raise SourceError("there is no message to test on; name a source that has some")
    with steps(quiet, len(read.corpus)) as shown:
        found = compare(
            read,
            asked,
            given,
            lambda some, settings: protocol.run(some, settings, cut_offs, telling=False),
            lambda models: shown(list(models), lambda model: model.name),
        )
    if plot is not None:
        from nbspam.evaluation.plot import draw_comparison

        draw_comparison(found, plot)
    said = advice(found, _how_to_train)
    if form == "json":
        click.echo(comparison_json(found, said, skips.count))
    elif form == "csv":
        click.echo(comparison_csv(found))
    else:
        print_comparison(found, said)


def _how_to_train(kind: Combination) -> str:
    """Return the command that trains a model of this kind."""
    options = zip(kind._fields, kind, strict=True)
    return " ".join(["nbspam train", *(f"{Learning.option(name)} {v}" for name, v in options)])
