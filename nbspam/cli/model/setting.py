"""`nbspam model set`."""

import json
from pathlib import Path

import click

from nbspam.cli.configured import ConfiguredCommand
from nbspam.cli.cut_off_options import Cutting, cut_off_options
from nbspam.cli.options import (
    format_option,
    model_option,
)
from nbspam.errors import OptionError
from nbspam.learning.update import set_cut_offs


@click.command("set", cls=ConfiguredCommand)
@model_option
@cut_off_options
@format_option
def command(model: Path, cutting: Cutting, form: str) -> None:
    """Change the cut-offs that are stored in a model.

    They hold for every command that uses the model, and for the server; an option of classify, eval
    or serve goes first.  What was learned stays as it is.

    \b
    Examples:
      nbspam model set --spam-cutoff 0.99
      nbspam model set --ham-cost 9 -m mail.json
    """
    if not cutting.is_given:
        raise OptionError("there is nothing to set; give --spam-cutoff, --ham-cutoff or --ham-cost")
    cutting.check()
    cut_offs = set_cut_offs(model, cutting.of)
    if form == "json":
        fields = {
            "model": str(model),
            "spam_cutoff": cut_offs.spam,
            "ham_cutoff": cut_offs.ham,
        }
        click.echo(json.dumps(fields))
        return
    click.echo(f"{model}: spam above {cut_offs.spam:g}, ham up to {cut_offs.ham:g}")
