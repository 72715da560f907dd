"""`nbspam model`: looking at a model and checking it."""

import json
import math
from pathlib import Path

import click

from nbspam.cli.options import format_option, model_option
from nbspam.errors import ModelError


@click.group("model")
def command() -> None:
    """Look at a model and check it."""


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
    from nbspam.model.lookup import Lookup

    with Lookup(model) as lookup:
        head = lookup.head
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
            "spam_cutoff": head.spam_cutoff,
            "bias": head.bias,
        }
        click.echo(json.dumps(found))
        return
    prior = "as learned" if head.prior is None else f"{head.prior:g} (fixed)"
    rows = {
        "model": f"{model} ({size:,} bytes)",
        "learned": ", ".join(f"{name}: {n:,}" for name, n in learned.items()),
        "tokens": f"{head.n_tokens:,}",
        "scoring": f"{head.scoring}, alpha {head.alpha:g}, share of spam to expect {prior}",
        "cut-off": f"spam is above {head.spam_cutoff:g}",
        "spam is": head.positive or "no class: the verdict is the most probable one",
    }
    for name, text in rows.items():
        click.echo(f"{name:8} {text}")


@command.command("check")
@model_option
def check(model: Path) -> None:
    """Read a model whole and compute every derived number anew.

    Exits with 1 and says what disagrees when the file is damaged.

    \b
    Example:
      nbspam model check -m mail.json
    """
    from nbspam.model.head import with_bias
    from nbspam.model.json_file import read_model
    from nbspam.model.lookup import Lookup
    from nbspam.model.training import counts_of_counts

    head, counts, learned = read_model(model)
    wrong = []
    if head.n_tokens != len(counts):
        wrong.append(f"it says {head.n_tokens} tokens and has {len(counts)}")
    having = counts_of_counts(counts.values(), len(head.classes))
    if tuple(map(dict, having)) != tuple(map(dict, head.tokens_with_count)):
        wrong.append("its counts of counts are not those of its tokens")
    true_bias = with_bias(head._replace(tokens_with_count=having)).bias
    if not all(
        math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)
        for a, b in zip(true_bias, head.bias, strict=True)
    ):
        wrong.append("its bias is not what its counts make it")
    with Lookup(model) as lookup:
        found = lookup.counts(counts)
    if found != counts:
        lost = next(token for token in counts if token not in found)
        wrong.append(f"the token {lost!r} cannot be found where the order of the lines puts it")
    for name, n, times in zip(
        head.classes, head.messages, map(sum, zip(*learned.values(), strict=True)), strict=False
    ):
        if times > n:
            wrong.append(f"its ledger has {times} messages of {name} and it learned {n}")
    with Lookup(model) as lookup:
        if lookup.learned(learned) != learned:
            wrong.append("a message of its ledger cannot be found by the order of the lines")
    if wrong:
        raise ModelError(f"{model}: {'; '.join(wrong)}; restore it from a copy or train again")
    click.echo(f"{model}: whole; {len(counts)} tokens and all derived numbers agree")
