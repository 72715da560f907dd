"""`nbspam model`: looking at a model, checking it, and making others of it."""

import json
from pathlib import Path

import click

from nbspam.cli.model import exchange, merge, prune
from nbspam.cli.options import format_option, model_option
from nbspam.errors import ModelError

# Where the calibration comes from (head.ORIGINS), in plain words.
_CALIBRATED = {
    "training": "fitted to the messages it was trained on, each left out",
    "merging": "put together from those of the models it was merged from",
    "default": "not fitted: what is likely for any mail; train --update refines it",
}


@click.group("model")
def command() -> None:
    """Look at a model, check it, and make others of it."""


for subcommand in (
    merge.command,
    prune.command,
    exchange.export_command,
    exchange.import_command,
):
    command.add_command(subcommand)


@command.command("info")
@model_option
@format_option
def info(model: Path, form: str) -> None:
    """Say what a model has learned and how it decides.

    \b
    Examples:
      nbspam model info
      nbspam model info -m mail.json --format json
    """
    from nbspam.store.lookup import Lookup
    from nbspam.store.metadata import BERNOULLI

    with Lookup(model) as lookup:
        head, remembered = lookup.head, lookup.remembered()
    size = model.stat().st_size
    learned = dict(zip(head.classes, head.messages, strict=True))
    if form == "json":
        found = {
            "model": str(model),
            "bytes": size,
            "classes": head.classes,
            "messages": learned,
            "tokens": head.n_tokens,
            "alpha": head.alpha,
            "prior": head.prior,
            "positive": head.positive,
            "scoring": head.scoring,
            "calibrated_by": None if head.scoring == BERNOULLI else head.calibrated_by,
            "remembered": remembered,
            "spam_cutoff": head.spam_cutoff,
            "bias": head.bias,
        }
        click.echo(json.dumps(found))
        return
    prior = "as learned" if head.prior is None else f"{head.prior:g} (fixed)"
    calibrated = _CALIBRATED[head.calibrated_by]
    if head.scoring == BERNOULLI:
        calibrated = "none: the plain posterior"
    rows = {
        "model": f"{model} ({size:,} bytes)",
        "learned": ", ".join(f"{name}: {n:,}" for name, n in learned.items()),
        "ledger": f"remembers {remembered:,} messages",
        "tokens": f"{head.n_tokens:,}",
        "scoring": f"{head.scoring}, alpha {head.alpha:g}, share of spam to expect {prior}",
        "calibration": calibrated,
        "cut-off": f"spam is above {head.spam_cutoff:g}",
        "spam is": head.positive or "no class: the verdict is the most probable one",
    }
    for name, text in rows.items():
        click.echo(f"{name:11} {text}")


@command.command("check")
@model_option
def check(model: Path) -> None:
    """Read a model whole and compute every derived number anew.

    Exits with 1 and says what disagrees when the file is damaged.

    \b
    Example:
      nbspam model check -m mail.json
    """
    from nbspam.store.check import disagreements

    whole, wrong = disagreements(model)
    if wrong:
        raise ModelError(f"{model}: {'; '.join(wrong)}; restore it from a copy or train again")
    click.echo(f"{model}: whole; {len(whole.counts)} tokens and all derived numbers agree")
