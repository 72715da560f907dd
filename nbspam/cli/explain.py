"""`nbspam explain`."""

import json
import os
import re
from pathlib import Path
from typing import Any

import click

from nbspam.cli.options import (
    cut_off_options,
    cut_offs_of,
    format_option,
    model_option,
    reading_of,
    reading_options,
    tell,
    tell_one_sided,
)
from nbspam.errors import OptionError, SourceError
from nbspam.reading.raw_message import RawMessage
from nbspam.reading.skips import Skips
from nbspam.reading.sources import STDIN, ReadingOptions, any_kind
from nbspam.scoring.classifier import Classifier
from nbspam.scoring.explanation import Explanation, Word, explain
from nbspam.scoring.verdict import fields, verdict
from nbspam.store.lookup import Lookup
from nbspam.store.metadata import BERNOULLI, Metadata
from nbspam.tokens.text import TRIPLE
from nbspam.tokens.tokenizer import message_tokens

_BAR = 20  # characters of the longest bar
_NUMBERED = re.compile(r"(.+):(\d+)")


@click.command("explain")
@click.argument("source", default=STDIN, metavar="[SOURCE]")
@model_option
@click.option(
    "--top",
    type=click.IntRange(1),
    default=20,
    show_default=True,
    metavar="N",
    help="Show the N strongest words.",
)
@click.option("--words", is_flag=True, help="Show the model's strongest words; no message is read.")
@cut_off_options
@reading_options
@format_option
def command(source: str, model: Path, top: int, words: bool, form: str, **options: Any) -> None:
    """Show what each word of a message brought, and the sum that is the score.

    SOURCE is one message, or the name that `classify` printed for a message of a larger source,
    such as messages.tsv:17; without it a message is read from standard input.  A word's weight is
    what it says by itself, its share what it adds to this message's sum; both are log-odds in nats:
    +0.7 doubles the odds of spam, -0.7 halves them.  JSON has all words, whatever --top says.

    \b
    Examples:
      nbspam explain message.eml
      nbspam explain --top 5 messages.tsv:17
      echo "You have won a prize" | nbspam explain
      nbspam explain --words --top 50
    """
    cut_offs = cut_offs_of(options)
    reading, skips = reading_of(options)
    if words:
        if source != STDIN:
            raise OptionError(f"--words reads no message; leave out {source}, or --words")
        _print_words(model, top, form)
        return
    with Lookup(model) as lookup:
        tell_one_sided(model, lookup.head)
        raw = _one(source, reading, skips)
        tell(skips)
        found = explain(Classifier(lookup.head, lookup.counts), message_tokens(raw.message()))
        called = verdict(lookup.head, found.score, cut_offs(lookup.head))
        if form == "json":
            click.echo(json.dumps(_as_json(raw, found, called, lookup.head)))
        else:
            _print(raw, found, called, lookup.head, top)


def _one(source: str, reading: ReadingOptions, skips: Skips) -> RawMessage:
    """Return the message that `source` names: the first of it, or the one of that number."""
    numbered = _NUMBERED.fullmatch(source)
    if numbered and source != STDIN and not Path(source).exists():
        for found in any_kind(numbered[1], reading, skips):
            if os.path.normpath(found.source) == os.path.normpath(source):
                return found
        raise SourceError(
            f"{source}: there is no such message; take a name that nbspam classify prints"
        )
    messages = any_kind(source, reading, skips)
    raw = next(messages, None)
    if raw is None:
        raise SourceError(f"{source}: there is no message in it; name a file with one")
    if next(messages, None) is not None:
        click.echo(
            f"nbspam: {source} holds several messages; this is {raw.source}, the first", err=True
        )
    return raw


def _print(raw: RawMessage, found: Explanation, called: str, head: Metadata, top: int) -> None:
    score = found.score
    colour = None
    if head.positive is not None:
        colour = "red" if called == head.positive else "green"
    shown_verdict = click.style(called, fg=colour, bold=True)
    click.echo(f"{raw.source}: {shown_verdict}, probability {score.probability:.4f}")
    click.echo(f"log-odds in nats, {found.of} against {found.against}\n")
    # Letter triples are many and say nothing to a reader one by one; JSON has them all.
    words = [word for word in found.words if not word.token.startswith(TRIPLE)]
    triples = [word for word in found.words if word.token.startswith(TRIPLE)]
    shown = words[:top]
    rest = list(found.constants)
    for several, what in ((triples, "letter triples"), (words[top:], "more words")):
        if several:
            rest.insert(0, (f"{len(several)} {what}", sum(word.share for word in several)))
    names = [f"in {name}" for name in head.classes]
    wide = [max(len(name), 7) for name in names]
    width = max(len(name) for name in [*(w.token for w in shown), *(n for n, _ in rest), _SUM])
    heads = [name.rjust(w) for name, w in zip(names, wide, strict=True)]
    click.echo("  ".join(["word".ljust(width), "  weight", *heads, "   share"]))
    longest = max((abs(word.share) for word in shown), default=0) or 1
    for word in shown:
        cells = [str(c).rjust(w) for c, w in zip(word.counts, wide, strict=True)]
        row = [word.token.ljust(width), f"{word.weight:+8.3f}", *cells, f"{word.share:+8.3f}"]
        click.echo("  ".join([*row, _bar(word.share / longest)]).rstrip())
    gap = " " * (2 + 8 + sum(wide) + 2 * len(wide) + 2)
    for name, nats in [*rest, (_SUM, found.total)]:
        click.echo(f"{name.ljust(width)}{gap}{nats:+8.3f}")
    if found.unknown:
        click.echo(f"\n{found.unknown} tokens the model has never seen say nothing")
    click.echo(f"\n{_why(found, called)}")


_SUM = "sum: the log-odds"


def _why(found: Explanation, called: str) -> str:
    """Return one sentence that says what decided."""
    side = 1 if found.total > 0 else -1
    toward = found.of if side > 0 else f"{found.against}"
    words = sum(word.share for word in found.words)
    leaning = [word.token for word in found.words if word.share * side > 0]
    readable = [token for token in leaning if not token.startswith(TRIPLE)]
    strongest = [f"“{token}”" for token in (readable or leaning)[:3]]
    if not found.words:
        reason = "by the calibration alone, for it knows none of its words"
    elif words * side <= 0:
        reason = "by the calibration alone: its words speak for the other side, too weakly"
    else:
        reason = f"and the strongest words for that are {_and(strongest)}"
        triples = sum(w.share for w in found.words if w.token.startswith(TRIPLE))
        if 2 * triples * side > words * side:
            reason += "; its letter triples bring most of it"
    return f"{called}: the sum leans to {toward} by {abs(found.total):.2f} nats, {reason}."


def _and(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _bar(share: float) -> str:
    text = ("+" if share > 0 else "-") * round(abs(share) * _BAR)
    return click.style(text, fg="red" if share > 0 else "green")


def _as_json(raw: RawMessage, found: Explanation, called: str, head: Metadata) -> dict[str, Any]:
    out = {"source": raw.source, **fields(head.classes, called, found.score)}
    if len(head.classes) > 2:
        out["of"], out["against"] = found.of, found.against
    out["bias"] = found.bias
    out["bernoulli_log_odds"] = found.bernoulli_log_odds
    out["constants"] = dict(found.constants)
    out["unknown"] = found.unknown
    out["words"] = [_word(word, head) for word in found.words]
    return out


def _word(word: Word, head: Metadata) -> dict[str, Any]:
    counts = dict(zip(head.classes, word.counts, strict=True))
    return word._asdict() | {"counts": counts}


def _print_words(model: Path, top: int, form: str) -> None:
    """Print the words that speak most strongly for each class."""
    from nbspam.store.model_file import read_model

    whole = read_model(model)
    head = whole.head
    weigh = Classifier(head, lambda tokens: {}).weights
    rows = [(token, row, _leads(head, weigh(row))) for token, row in whole.counts.items()]
    ranked: dict[str, list[dict[str, Any]]] = {}
    for k, name in enumerate(head.classes):
        best = sorted(rows, key=lambda item: (-item[2][k], item[0]))[:top]
        ranked[name] = [
            {
                "token": token,
                "weight": leads[k],
                "counts": dict(zip(head.classes, row, strict=True)),
            }
            for token, row, leads in best
        ]
    if form == "json":
        click.echo(json.dumps(ranked))
        return
    for name, words in ranked.items():
        click.echo(click.style(f"strongest for {name}, in nats", bold=True))
        width = max((len(word["token"]) for word in words), default=0)
        for word in words:
            counts = ", ".join(f"{c}: {n}" for c, n in word["counts"].items())
            click.echo(f"  {word['token'].ljust(width)}  {word['weight']:+8.3f}  {counts}")
        click.echo()


def _leads(head: Metadata, weights: tuple[float, ...]) -> list[float]:
    """Return what a word's weights say for each class against the rest (plain: the next best)."""
    if len(weights) == 1:
        sign = 1 if head.positive_index == 1 else -1
        return [-sign * weights[0], sign * weights[0]]
    if head.scoring != BERNOULLI:
        return list(weights)
    return [w - max(weights[:k] + weights[k + 1 :]) for k, w in enumerate(weights)]
