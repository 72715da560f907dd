"""`nbspam model`: inspecting a model, changing it, and making others of it."""

import click

from nbspam.cli.groups import CommandFile, LazyGroup

_FILES = {
    "info": CommandFile("model.info", "Print what a model has learned and how it decides"),
    "check": CommandFile("model.check", "Read the whole model and recompute every derived number"),
    "set": CommandFile("model.setting", "Change the cut-offs that are stored in a model"),
    "merge": CommandFile("model.merge", "Merge models into one"),
    "words": CommandFile("model.words", "Print how often single words were learned"),
    "prune": CommandFile("model.prune", "Make a model smaller by removing its rarest tokens"),
    "export": CommandFile("model.exporting", "Write a model's counts for other programs"),
    "import": CommandFile("model.importing", "Create a model from the counts of another program"),
}


@click.group("model", cls=LazyGroup, files=_FILES, suggestions="OF_MODEL")
def command() -> None:
    """Inspect, check, change, merge, prune, export or import a model."""
