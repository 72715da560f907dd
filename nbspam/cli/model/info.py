"""`nbspam model info`."""

import json
from pathlib import Path

import click

from nbspam.cli.options import format_option, model_option
from nbspam.errors import counted
from nbspam.scoring.rule import rule_of
from nbspam.store.lookup import Lookup
from nbspam.store.metadata import DEFAULT, MERGING, TRAINING, Metadata

# Where the calibration comes from, in words.
_CALIBRATED = {
    TRAINING: "fitted to the messages it was trained on, each left out",
    MERGING: "combined from those of the models it was merged from",
    DEFAULT: "not fitted, the default; train --update refines it",
}


@click.command("info")
@model_option
@format_option
def command(model: Path, form: str) -> None:
    """Print what a model has learned and how it decides.

    \b
    Examples:
      nbspam model info
      nbspam model info -m mail.json --format json
    """
    with Lookup(model) as lookup:
        metadata, remembered = lookup.metadata, lookup.remembered()
    size = model.stat().st_size
    if form == "json":
        click.echo(json.dumps({"model": str(model), "bytes": size} | _fields(metadata, remembered)))
        return
    settings, learned = metadata
    prior = "as learned" if settings.prior is None else f"{settings.prior:g} (fixed)"
    calibrated = "none: the plain posterior"
    if rule_of(metadata).is_calibrated:
        calibrated = _CALIBRATED[learned.calibrated_by]
    messages = zip(settings.classes, learned.messages, strict=True)
    rows = {
        "model": f"{model} ({size:,} bytes)",
        "learned": ", ".join(f"{name}: {n:,}" for name, n in messages),
        "ledger": f"remembers {counted(remembered, 'message')}",
        "tokens": f"{metadata.n_tokens:,}",
        "scoring": f"{settings.scoring}, {settings.event_model} with alpha {settings.alpha:g},"
        f" prior {prior}",
        "calibration": calibrated,
        "cut-off": f"spam above {settings.spam_cutoff:g}",
        "spam is": settings.positive or "no class: the verdict is the most probable one",
    }
    for name, text in rows.items():
        click.echo(f"{name:11} {text}")


def _fields(metadata: Metadata, remembered: int) -> dict[str, object]:
    """Return the JSON fields."""
    settings, learned = metadata
    is_calibrated = rule_of(metadata).is_calibrated
    return {
        "classes": settings.classes,
        "messages": dict(zip(settings.classes, learned.messages, strict=True)),
        "tokens": metadata.n_tokens,
        "event_model": settings.event_model,
        "alpha": settings.alpha,
        "prior": settings.prior,
        "positive": settings.positive,
        "scoring": settings.scoring,
        "calibrated_by": learned.calibrated_by if is_calibrated else None,
        "remembered": remembered,
        "spam_cutoff": settings.spam_cutoff,
        "bias": metadata.bias,
    }
