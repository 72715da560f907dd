"""`nbspam model`: inspecting a model, and changing it."""

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
    "words": CommandFile("model.inspecting", "Print how often single words were learned", "words"),
    "prune": CommandFile(
        "model.changing", "Make a model smaller by removing its rarest tokens", "prune"
    ),
}


@click.group("model", cls=LazyGroup, files=_FILES)
def command() -> None:
    """Inspect, check, change or prune a model."""
