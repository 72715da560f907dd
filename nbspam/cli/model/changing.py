"""`nbspam model set` and `prune`: a model changed."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import click

from nbspam.cli.configured import configured
from nbspam.cli.declared import DECIDES, option
from nbspam.cli.notes import note
from nbspam.cli.options import FORM, MODEL, OUTPUT, REPLACE_OUTPUT, Cutting
from nbspam.cli.terminal import echo_sentence, unbroken
from nbspam.errors import OptionError, counted
from nbspam.learning.update import LITTLE, prune_file, set_cut_offs


def _typed(name: str) -> Any:
    """Return the declaration of a cut-off for a command that is about it: no file sets it."""
    return Cutting._field_defaults[name]._replace(typed=DECIDES, under="Cut-offs")


@configured("set")
def set_(
    *,
    model: Path = MODEL,
    spam_cutoff: float | None = _typed("spam_cutoff"),
    ham_cutoff: float | None = _typed("ham_cutoff"),
    ham_cost: float | None = _typed("ham_cost"),
    form: str = FORM,
) -> None:
    """Change the cut-offs that are stored in a model.

    They apply to every command that uses the model, and to the server; an option of classify, eval
    or serve takes precedence.  What was learned is not changed.

    \b
    Examples:
      nbspam model set --spam-cutoff 0.99
      nbspam model set --ham-cost 9 -m mail.json
    """
    cutting = Cutting(spam_cutoff, ham_cutoff, ham_cost)
    if not cutting.is_given:
        raise OptionError("nothing to set; give --spam-cutoff, --ham-cutoff or --ham-cost")
    cutting.check()
    cut_offs = set_cut_offs(model, cutting.of)
    if form == "json":
        fields = {"model": str(model), "spam_cutoff": cut_offs.spam, "ham_cutoff": cut_offs.ham}
        click.echo(json.dumps(fields))
        return
    click.echo(f"{model}: spam above {cut_offs.spam:g}, ham up to {cut_offs.ham:g}")


_size = partial(option, typed_as="N", takes=click.IntRange(min=1), under="Model", choice="size")


@configured("prune")
def prune(
    *,
    model: Path = MODEL,
    min_count: int | None = _size(
        "Keep the tokens that occur in at least N messages (if repeats count: N times)."
    ),
    max_tokens: int | None = _size(
        "Keep the N most frequent tokens; among equally frequent ones the strongest."
    ),
    output: Path | None = OUTPUT,
    replace: bool = REPLACE_OUTPUT,
    form: str = FORM,
) -> None:
    """Make a model smaller by removing its rarest tokens; by default in place.

    \b
    Examples:
      nbspam model prune --min-count 2
      nbspam model prune --max-tokens 100000 -m mail.json -o small.json

    Messages, ledger and calibration are not changed, and learned messages stay known.  Forgetting
    one ignores the tokens that were removed; a removed token that occurs again is counted from 0.
    The names of receiving servers are kept.  The model no longer knows a removed token: a message
    with fewer than one known token in ten is unsure.

    In a model of 3,000 messages --min-count 2 keeps three tokens in ten and decides as well as
    before; on short texts it costs a few more errors (docs/model-file.md).  If fewer than 1 in 20
    are left, verdicts change, and a note says so.
    """
    if min_count is None and max_tokens is None:
        raise OptionError("nothing to remove; give --min-count or --max-tokens, or both")
    pruned = prune_file(model, output, min_count or 1, max_tokens, replace)
    place = output or model
    if pruned.is_little:
        note(
            f"{place}: fewer than 1 in {1 / LITTLE:.0f} tokens are left, so verdicts change; check"
            " it with nbspam eval, or train again and keep more"
        )
    if form == "json":
        click.echo(json.dumps({"model": str(place), **pruned._asdict()}))
        return
    echo_sentence(
        f"{unbroken(place)}: kept {pruned.tokens:,} of {counted(pruned.tokens_before, 'token')},"
        f" {pruned.bytes:,} of {pruned.bytes_before:,} bytes; messages, ledger and calibration are"
        " unchanged; forget ignores the tokens that were removed"
    )
