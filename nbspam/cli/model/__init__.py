"""`nbspam model`: inspecting a model, checking it, and making others of it."""

import click

from nbspam.cli.model import check, exporting, importing, info, merge, prune


@click.group("model")
def command() -> None:
    """Inspect, check, merge, prune, export or import a model."""


for subcommand in (
    info.command,
    check.command,
    merge.command,
    prune.command,
    exporting.command,
    importing.command,
):
    command.add_command(subcommand)
