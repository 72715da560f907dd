"""`nbspam model words`."""

import json
import sys
from pathlib import Path

import click

from nbspam.cli.configured import ConfiguredCommand
from nbspam.cli.options import format_option, model_option
from nbspam.errors import OptionError, counted, one_line
from nbspam.scoring.explanation import WordCount, word_counts
from nbspam.store.lookup import Lookup
from nbspam.store.metadata import Metadata

_STDIN = "-"


@click.command("words", cls=ConfiguredCommand)
@click.argument("words", nargs=-1, required=True, metavar="WORD...")
@model_option
@format_option
def command(words: tuple[str, ...], model: Path, form: str) -> None:
    """Print how many messages of each class contain a word, and its weight in nats.

    A WORD is a word, two adjacent words in quotes, or a token of another kind such as subject:free
    or host:example.org; - reads words from standard input, one per line.  Words are looked up as
    the tokenizer writes them: in lower case and without disguises, so FREE and fr3e are free, and a
    digit is 0.  If the model knows the word only as another kind of token, it says as which.

    The weight is the log-odds of the word's presence: above 0 for spam, below 0 for ham.  With
    three or more classes it is that of the class that the word speaks for most.

    \b
    Examples:
      nbspam model words free meeting
      nbspam model words "claim now" subject:free -m mail.json
      nbspam model words --format json - < words.txt
    """
    asked = _typed(words)
    with Lookup(model) as lookup:
        metadata = lookup.metadata
        if not metadata.settings.counts.has_tokens:
            raise OptionError(f"{model}: counts no words, only traits; see nbspam model info")
        found = word_counts(lookup, asked)
    if form == "json":
        for word in found:
            click.echo(json.dumps(_as_json(word, metadata)))
    else:
        _print(model, found, metadata)


def _typed(words: tuple[str, ...]) -> list[str]:
    """Return the words, with those of standard input in the place of a `-`; raises OptionError."""
    if words.count(_STDIN) > 1:
        raise OptionError("-: standard input can be read only once; name it once")
    typed: list[str] = []
    for word in words:
        if word == _STDIN:
            lines = sys.stdin.buffer.read().decode("utf-8", "replace") if sys.stdin else ""
            typed += [line.strip() for line in lines.splitlines() if line.strip()]
        else:
            typed.append(word)
    return typed


def _as_json(word: WordCount, metadata: Metadata) -> dict[str, object]:
    classes = metadata.settings.classes
    counts = word.counts or (0,) * len(classes)
    return {
        "word": word.typed,
        "token": word.token,
        "known": word.counts is not None,
        "counts": dict(zip(classes, counts, strict=True)),
        "messages": dict(zip(classes, metadata.learned.messages, strict=True)),
        "weights": None if word.weights is None else dict(zip(classes, word.weights, strict=True)),
        "other_kinds": list(word.other_kinds),
    }


def _print(model: Path, found: list[WordCount], metadata: Metadata) -> None:
    classes, messages = metadata.settings.classes, metadata.learned.messages
    sizes = ", ".join(f"{name}: {n:,}" for name, n in zip(classes, messages, strict=True))
    click.echo(f"{model}: learned {counted(sum(messages), 'message')} ({sizes})\n")
    width = max([4, *(len(one_line(word.token)) for word in found)])
    heads = [f"in {name}".rjust(7) for name in classes]
    click.echo("  ".join(["word".ljust(width), *heads, "  weight"]))
    for word in found:
        token = one_line(word.token).ljust(width)
        if word.counts is None:
            click.echo(f"{token}  {_absent(word)}")
            continue
        cells = [f"{n:,}".rjust(len(head)) for n, head in zip(word.counts, heads, strict=True)]
        click.echo("  ".join([token, *cells, _weight(word, metadata)]))


def _absent(word: WordCount) -> str:
    if not word.other_kinds:
        return "not in the model"
    return f"not in the model, but {one_line(', '.join(word.other_kinds))}"


def _weight(word: WordCount, metadata: Metadata) -> str:
    settings = metadata.settings
    if word.weights is None:
        return "none".rjust(8)
    if settings.positive_index is not None and len(settings.classes) == 2:
        return f"{word.weights[settings.positive_index]:+8.3f}"
    k = max(range(len(settings.classes)), key=lambda k: word.weights[k] if word.weights else 0.0)
    return f"{word.weights[k]:+8.3f} for {settings.classes[k]}"
