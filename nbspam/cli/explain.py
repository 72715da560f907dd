"""`nbspam explain`."""

import json
import os
import re
from pathlib import Path
from typing import Any

import click

from nbspam.cli.configured import ConfiguredCommand
from nbspam.cli.notes import note, note_one_sided, note_skips
from nbspam.cli.options import (
    Cutting,
    Reading,
    cut_off_options,
    format_option,
    model_option,
    reading_options,
)
from nbspam.cli.why import CONSTANTS, sentences
from nbspam.errors import OptionError, SourceError, counted
from nbspam.filter import open_filter
from nbspam.reading.raw_message import RawMessage
from nbspam.reading.skips import Skips
from nbspam.reading.sources import STDIN, ReadingOptions, any_kind
from nbspam.scoring.explanation import Explanation, Word
from nbspam.scoring.verdict import Verdict
from nbspam.store.metadata import Metadata
from nbspam.tokens.kinds import is_fragment, is_host
from nbspam.tokens.tokenized import tokenize

_BAR = 20  # characters of the longest bar
_NUMBERED = re.compile(r"(.+):(\d+)")
_SUM = "sum: the log-odds"


@click.command("explain", cls=ConfiguredCommand)
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
@click.option("--words", is_flag=True, help="Show the model's strongest words; read no message.")
@cut_off_options
@reading_options
@format_option
def command(
    source: str,
    model: Path,
    top: int,
    words: bool,
    cutting: Cutting,
    reading: Reading,
    form: str,
) -> None:
    """Show how much each word of a message contributed to its score.

    SOURCE is one message, or the name that `classify` printed for a message of a larger source,
    such as messages.tsv:17; without it a message is read from standard input.  A word's weight is
    what it says by itself, its share what it adds to this message's sum.  Both are log-odds in
    nats: +0.7 doubles the odds of spam, -0.7 halves them.  JSON has all words, whatever --top is.

    \b
    Examples:
      nbspam explain message.eml
      nbspam explain --top 5 messages.tsv:17
      echo "You have won a prize" | nbspam explain
      nbspam explain --words --top 50
    """
    cutting.check()
    options, skips = reading.options(), Skips(reading.strict)
    if words:
        if source != STDIN:
            raise OptionError(f"--words reads no message; leave out {source}, or --words")
        _print_words(model, top, form)
        return
    with open_filter(model, cutting.of, indexed=False) as spam_filter:
        note_one_sided(model, spam_filter.metadata)
        raw = _one(source, options, skips)
        note_skips(skips)
        message = tokenize(raw.message(), raw.source, raw.label, wanted=spam_filter.wanted)
        judged, found = spam_filter.judge(message), spam_filter.explain(message)
        if form == "json":
            click.echo(json.dumps(_as_json(judged, found)))
        else:
            _print(judged, found, spam_filter.metadata, top)


def _one(source: str, options: ReadingOptions, skips: Skips) -> RawMessage:
    """Return the message that `source` names: the first of it, or the one of that number."""
    numbered = _NUMBERED.fullmatch(source)
    if numbered and source != STDIN and not Path(source).exists():
        for found in any_kind(numbered[1], options, skips):
            if os.path.normpath(found.source) == os.path.normpath(source):
                return found
        raise SourceError(
            f"{source}: there is no such message; take a name that nbspam classify prints"
        )
    messages = any_kind(source, options, skips)
    raw = next(messages, None)
    if raw is None:
        raise SourceError(f"{source}: there is no message in it; name a file with one")
    if next(messages, None) is not None:
        note(f"{source} holds several messages; this is {raw.source}, the first")
    return raw


def _print(judged: Verdict, found: Explanation, metadata: Metadata, top: int) -> None:
    colour = None
    if metadata.settings.positive is not None:
        colour = "red" if judged.verdict == metadata.settings.positive else "green"
    shown = click.style(judged.verdict, fg=colour, bold=True)
    click.echo(f"{judged.source}: {shown}, probability {judged.probability:.4f}")
    click.echo(f"log-odds in nats, {found.of} against {found.against}\n")
    # Fragments are many and mean little to a reader one by one; JSON has them all.
    words = [word for word in found.words if not is_fragment(word.token)]
    fragments = [word for word in found.words if is_fragment(word.token)]
    rest = [(CONSTANTS[key], nats) for key, nats in found.constants.items()]
    for several, what in ((fragments, "character trigram"), (words[top:], "more word")):
        if several:
            rest.insert(0, (counted(len(several), what), sum(word.share for word in several)))
    _print_table(words[:top], [*rest, (_SUM, found.total)], metadata.settings.classes)
    for sentence in sentences(judged, found, metadata):
        click.echo(f"\n{sentence}")


def _print_table(
    words: list[Word], sums: list[tuple[str, float]], classes: tuple[str, ...]
) -> None:
    """Print a line for each word, then one for each sum."""
    heads = [f"in {name}" for name in classes]
    wide = [max(len(name), 7) for name in heads]
    width = max(len(name) for name in [*(w.token for w in words), *(name for name, _ in sums)])
    heads = [name.rjust(w) for name, w in zip(heads, wide, strict=True)]
    click.echo("  ".join(["word".ljust(width), "  weight", *heads, "   share"]))
    longest = max((abs(word.share) for word in words), default=0) or 1
    for word in words:
        cells = [str(c).rjust(w) for c, w in zip(word.counts, wide, strict=True)]
        row = [word.token.ljust(width), f"{word.weight:+8.3f}", *cells, f"{word.share:+8.3f}"]
        click.echo("  ".join([*row, _bar(word.share / longest)]).rstrip())
    gap = " " * (2 + 8 + sum(wide) + 2 * len(wide) + 2)
    for name, nats in sums:
        click.echo(f"{name.ljust(width)}{gap}{nats:+8.3f}")


def _bar(share: float) -> str:
    text = ("+" if share > 0 else "-") * round(abs(share) * _BAR)
    return click.style(text, fg="red" if share > 0 else "green")


def _as_json(judged: Verdict, found: Explanation) -> dict[str, Any]:
    fields = judged.as_json()
    if len(judged.probabilities) > 2:
        fields["of"], fields["against"] = found.of, found.against
    fields["bias"] = found.bias
    fields["sum_log_odds"] = found.sum_log_odds
    fields["constants"] = dict(found.constants)
    fields["unknown"] = found.unknown
    fields["known"], fields["text"] = found.score.known, found.score.text
    fields["trust"] = found.score.trust
    classes = tuple(judged.probabilities)
    fields["words"] = [
        word._asdict() | {"counts": dict(zip(classes, word.counts, strict=True))}
        for word in found.words
    ]
    return fields


def _print_words(model: Path, top: int, form: str) -> None:
    """Print the words that speak most strongly for each class."""
    from nbspam.scoring.rule import rule_of
    from nbspam.store.model_file import read_model

    whole = read_model(model)
    if not whole.metadata.settings.counts.has_tokens:
        raise OptionError(
            f"{model}: counts no words, only traits; leave --words out to explain a message"
        )
    classes = whole.metadata.settings.classes
    contrasts = rule_of(whole.metadata).contrasts
    rows = [
        (token, row, contrasts(row)) for token, row in whole.counts.items() if not is_host(token)
    ]
    ranked: dict[str, list[dict[str, Any]]] = {}
    for k, name in enumerate(classes):
        best = sorted(rows, key=lambda item: (-item[2][k], item[0]))[:top]
        ranked[name] = [
            {
                "token": token,
                "weight": weights[k],
                "counts": dict(zip(classes, row, strict=True)),
            }
            for token, row, weights in best
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
