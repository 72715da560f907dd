"""`nbspam model check`."""

from pathlib import Path

import click

from nbspam.cli.configured import ConfiguredCommand
from nbspam.cli.options import model_option
from nbspam.cli.terminal import echo_sentence, unbroken
from nbspam.errors import ModelError, counted
from nbspam.store.check import disagreements


@click.command("check", cls=ConfiguredCommand)
@model_option
def command(model: Path) -> None:
    """Read the whole model and recompute every derived number.

    Exits with 1 and says what disagrees when the file is damaged.

    \b
    Example:
      nbspam model check -m mail.json
    """
    whole, wrong = disagreements(model)
    if wrong:
        raise ModelError(f"{model}: {'; '.join(wrong)}; restore it from a copy or train again")
    echo_sentence(
        f"{unbroken(model)}: whole; {counted(len(whole.counts), 'token')} and all derived numbers"
        " agree"
    )
