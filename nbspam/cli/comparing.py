"""`nbspam eval --compare`."""

from pathlib import Path

import click

from nbspam.bayes.trait_model import GAUSSIAN
from nbspam.bayes.variances import Variances
from nbspam.cli.evaluating import Reader
from nbspam.cli.evaluation_notes import duplicates_note, note_mislabelled
from nbspam.cli.learning_options import Learning
from nbspam.cli.options import Cutting
from nbspam.cli.progress import steps
from nbspam.cli.protocol_options import Protocol
from nbspam.cli.terminal import echo_sentence
from nbspam.errors import SourceError
from nbspam.evaluation.advice import advice
from nbspam.evaluation.comparison import EVERYTHING, Combination, chosen, compare
from nbspam.evaluation.comparison_report import print_comparison
from nbspam.evaluation.json_report import comparison_json
from nbspam.reading.skips import Skips


def compare_models(
    reader: Reader,
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
    given, cut_offs = learning.unchecked(), cutting.of_new()
    asked = chosen(protocol.compare or "", given)
    if given.variances != Variances() and not any(kind.traits == GAUSSIAN for kind in asked):
        given.check()  # which says that variances are of Gaussian traits
    for kind in asked:
        kind.settings(given).check()
    every = reader.corpus(EVERYTHING)
    read, mislabelled = every.without_mislabelled(given.positive)
    note_mislabelled(mislabelled, skips.strict, quiet)
    if not read.sources:
        raise SourceError("there is no message to test on; name a source that has some")
    with steps(quiet, len(read.corpus)) as shown:
        found = compare(
            read,
            asked,
            given,
            lambda some, settings: protocol.run(some, settings, cut_offs, telling=False),
            lambda models: shown(list(models), lambda model: model.name),
            protocol.bootstrap_seed,
        )._replace(mislabelled=mislabelled.messages)
    said = advice(found, lambda kind: _how_to_train(kind, learning))
    if form == "json":
        click.echo(comparison_json(found, said, skips.count))
    else:
        print_comparison(found, said)
        if same := duplicates_note(found.duplicates, len(found.models[0].messages)):
            click.echo()
            echo_sentence(same)
    if plot is not None:
        from nbspam.evaluation.plot import draw_comparison

        draw_comparison(found, plot)


def _how_to_train(kind: Combination, learning: Learning) -> str:
    """Return the command that trains a model of this kind, with what else was given."""
    options = kind._asdict() | {name: getattr(learning, name) for name in learning.given()}
    if kind.traits != GAUSSIAN:
        options = {name: v for name, v in options.items() if "variance" not in name}
    shown = (learning.option(name) + ("" if v is True else f" {v}") for name, v in options.items())
    return " ".join(["nbspam train", *shown])
