"""`nbspam model`: inspecting a model, changing it, and making others of it."""

import click

from nbspam.cli.program import CommandFile, LazyGroup

_FILES = {
    "info": CommandFile(
        "model.inspecting", "Print what a model has learned and how it decides", "info"
    ),
    "check": CommandFile(
        "model.inspecting", "Read the whole model and recompute every derived number", "check"
    ),
    "set": CommandFile("model.changing", "Change the cut-offs that are stored in a model", "set_"),
    "merge": CommandFile("model.changing", "Merge models into one", "merge"),
    "words": CommandFile("model.inspecting", "Print how often single words were learned", "words"),
    "prune": CommandFile(
        "model.changing", "Make a model smaller by removing its rarest tokens", "prune"
    ),
    "export": CommandFile("model.changing", "Write a model's counts for other programs", "export"),
    "import": CommandFile(
        "model.changing", "Create a model from the counts of another program", "import_"
    ),
}


@click.group("model", cls=LazyGroup, files=_FILES)
def command() -> None:
    """Inspect, check, change, merge, prune, export or import a model."""
