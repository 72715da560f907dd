"""`nbspam explain`."""

import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import click

from nbspam.cli.base import base_option
from nbspam.cli.configured import ConfiguredCommand, checked
from nbspam.cli.cut_off_options import Cutting, cut_off_options
from nbspam.cli.notes import has_reader, note, note_older, note_one_sided, note_skips
from nbspam.cli.options import (
    Reading,
    model_option,
    reading_options,
)
from nbspam.cli.terminal import echo_line, echo_paragraph, has_colours, page_width, terminal_width
from nbspam.cli.why import CONSTANTS, legend, sentences
from nbspam.cli.word_table import table_lines
from nbspam.display.lines import WordRow, class_heads, excerpt_lines
from nbspam.errors import OptionError, SourceError, counted, one_line
from nbspam.filter import Filter, open_filter
from nbspam.reading.message import RawMessage
from nbspam.reading.source import Skips
from nbspam.reading.sources import STDIN, ReadingOptions, any_kind
from nbspam.scoring.explanation import Explanation, Word
from nbspam.scoring.highlights import HighlightedExcerpt, excerpt_json, highlighted_message
from nbspam.scoring.verdict import Verdict
from nbspam.store.metadata import Metadata
from nbspam.tokens.kinds import is_fragment
from nbspam.tokens.tokenized import tokenize
from nbspam.urls import is_url

_HTML = "html"
_LIMIT, _HTML_LIMIT = 2_000, 20_000  # characters of the text that are shown and highlighted
_LINES = 8  # of the text
_NUMBERED = re.compile(r"(.+):(\d+)")
_SUM = "sum: the log-odds"


def _check(source: str, words: bool, cutting: Cutting, reading: Reading, form: str) -> None:
    """Raise OptionError for options that are wrong with any model."""
    cutting.check()
    reading.check(() if words else (source,))
    if words and source != STDIN:
        raise OptionError(f"--words reads no message; leave out {source}, or --words")
    if words and form == _HTML:
        raise OptionError("--format html is of a message; leave it out, or --words")


@click.command("explain", cls=ConfiguredCommand)
@click.argument("source", default=STDIN, metavar="[SOURCE]")
@model_option
@base_option
@click.option(
    "--top",
    type=click.IntRange(1),
    default=20,
    show_default=True,
    metavar="N",
    help="Show the N strongest words.",
)
@click.option("--words", is_flag=True, help="Show the model's strongest words; read no message.")
@click.option("--fragments", is_flag=True, help="Show character trigrams one by one, too.")
@cut_off_options
@reading_options
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", _HTML]),
    default="text",
    show_default=True,
    help="Print text for people, JSON for programs, or a page for a browser.",
)
@checked(_check)
def command(
    source: str,
    model: Path,
    base: str | None,
    top: int,
    words: bool,
    cutting: Cutting,
    reading: Reading,
    form: str,
    fragments: bool,
) -> None:
    """Show how much each word of a message contributed to its score.

    SOURCE is one message, or the name that `classify` printed for a message of a larger source,
    such as messages.tsv:17; without it a message is read from standard input.

    First comes the beginning of the message.  The words that decided are highlighted in it: on a
    terminal in red and underlined for spam, in green for ham; else [+like this+] and [-like this-].
    Then comes a line for each word: its weight, how many of the learned messages have it, and its
    share of the sum.  Character trigrams are summed up unless --fragments is given.  JSON has all
    words.  --format html prints a page that needs nothing else, to look at or to send.

    \b
    Examples:
      nbspam explain message.eml
      nbspam explain --top 5 messages.tsv:17
      echo "You have won a prize" | nbspam explain
      nbspam explain --format html message.eml > why.html
      nbspam explain --words --top 50
    """
    options, skips = reading.options(), Skips(reading.strict)
    if words:
        _print_words(model, top, form, fragments)
        return
    with open_filter(model, cutting.of, indexed=False, base=base) as spam_filter:
        note_one_sided(model, spam_filter.metadata)
        if has_reader():
            note_older(model, spam_filter.metadata, spam_filter.classifier.base)
        raw = _one(source, options, skips)
        note_skips(skips)
        explained = _explained(spam_filter, raw, _HTML_LIMIT if form == _HTML else _LIMIT)
    if form == "json":
        click.echo(json.dumps(_as_json(explained)))
    elif form == _HTML:
        _print_page(explained, top, fragments)
    else:
        _print(explained, top, fragments)


class _Explained(NamedTuple):
    """A message, judged and explained."""

    judged: Verdict
    found: Explanation
    excerpt: HighlightedExcerpt
    metadata: Metadata


def _explained(spam_filter: Filter, raw: RawMessage, limit: int) -> _Explained:
    """Return a message explained.  limit: the most characters of its text to show."""
    wanted = spam_filter.wanted._replace(excerpt=limit)
    message = tokenize(raw.message(), raw.source, raw.label, wanted=wanted)
    judged, found = spam_filter.judge(message), spam_filter.explain(message)
    return _Explained(judged, found, highlighted_message(message, found), spam_filter.metadata)


def _one(source: str, options: ReadingOptions, skips: Skips) -> RawMessage:
    """Return the message that `source` names: the first of it, or the one of that number."""
    numbered = _NUMBERED.fullmatch(source)
    if numbered and source != STDIN and (is_url(source) or not Path(source).exists()):
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


def _print(explained: _Explained, top: int, fragments: bool) -> None:
    judged, found, metadata = explained.judged, explained.found, explained.metadata
    colour = None
    if metadata.settings.positive is not None:
        colour = "red" if judged.verdict == metadata.settings.positive else "green"
    shown = click.style(judged.verdict, fg=colour, bold=True)
    probability = f"{judged.remark}, probability {judged.probability:.4f}"
    click.echo(f"{one_line(judged.source)}: {shown}{probability}\n")
    lines = excerpt_lines(explained.excerpt, page_width(), _LINES, signs=not has_colours())
    for line in lines:
        echo_line(line)
    if lines:
        click.echo()
    words, sums = word_sums(found, top, fragments)
    _echo_table([WordRow(*word) for word in words], sums, class_heads(explained.metadata))
    for sentence in sentences(judged, found, metadata):
        click.echo()
        echo_paragraph(sentence, breaks_words=True)
    _echo_legend(legend([word.token for word in words], found.of), has_share=True)


def _print_page(explained: _Explained, top: int, fragments: bool) -> None:
    from nbspam import __version__
    from nbspam.display.page import ExplanationView, explanation_page

    judged, found, excerpt, metadata = explained
    words, sums = word_sums(found, top, fragments, is_told=False)
    view = ExplanationView(
        judged,
        found,
        metadata.settings.positive,
        excerpt,
        words,
        sums,
        class_heads(explained.metadata),
        list(sentences(judged, found, metadata)),
        list(legend([word.token for word in words], found.of)),
    )
    click.echo(explanation_page(view, __version__))


def word_sums(
    found: Explanation, top: int, fragments: bool, is_told: bool = True
) -> tuple[list[Word], list[tuple[str, float]]]:
    """Return the words to show one by one, and the sums: of the others, the constants, of all.

    is_told: whether to name the options that show what is summed up.
    """
    words, folded = list(found.words), []
    if not fragments:  # they are many and mean little to a reader one by one; JSON has them all
        words = [word for word in found.words if not is_fragment(word.token)]
        folded = [word for word in found.words if is_fragment(word.token)]
    sums = [(CONSTANTS[key], nats) for key, nats in found.constants.items()]
    for several, what, how in (
        (folded, "character trigram", "--fragments"),
        (words[top:], "more word", "--top"),
    ):
        if several:
            named = counted(len(several), what) + (f" ({how} shows them)" if is_told else "")
            sums.insert(0, (named, sum(word.share for word in several)))
    return words[:top], [*sums, (_SUM, found.total)]


def _echo_table(
    rows: list[WordRow], sums: list[tuple[str, float]], heads: list[tuple[str, str]]
) -> None:
    for line in table_lines(rows, sums, heads, terminal_width()):
        click.echo(line)


def _echo_legend(terms: Iterable[tuple[str, str]], *, has_share: bool) -> None:
    """Print what terms mean, one below the other.  has_share: whether shares are shown."""
    listed = list(terms)
    width = max(len(term) for term, _ in listed) + 2
    click.echo()
    for term, meaning in listed:
        if term == "weight" and has_share:
            meaning += "; its share is what it adds to this message's sum"
        echo_paragraph(f"{term:<{width}}{meaning}", indent=width)


def _as_json(explained: _Explained) -> dict[str, Any]:
    judged, found = explained.judged, explained.found
    fields = judged.as_json()
    if len(judged.probabilities) > 2:
        fields["of"], fields["against"] = found.of, found.against
    fields["bias"] = found.bias
    fields["sum_log_odds"] = found.sum_log_odds
    fields["constants"] = dict(found.constants)
    fields["unknown"] = found.unknown
    fields["unheard"] = found.unheard
    fields["known"], fields["text"] = found.score.known, found.score.text
    fields["trust"] = found.score.trust
    fields["sentences"] = list(sentences(judged, found, explained.metadata))
    fields["message"] = excerpt_json(explained.excerpt)
    classes = tuple(judged.probabilities)
    fields["words"] = [
        word._asdict() | {"counts": dict(zip(classes, word.counts, strict=True))}
        for word in found.words
    ]
    if found.base is not None:
        fields["base"] = str(found.base)
    return fields


def _print_words(model: Path, top: int, form: str, fragments: bool) -> None:
    """Print the words that speak most strongly for each class."""
    from nbspam.scoring.explanation import strongest_words
    from nbspam.store.model_file import read_model

    whole = read_model(model)
    if not whole.metadata.settings.counts.has_tokens:
        raise OptionError(
            f"{model}: counts no words, only traits; leave --words out to explain a message"
        )
    ranked = strongest_words(whole, top, fragments=fragments or form == "json")
    if form == "json":
        classes = whole.metadata.settings.classes
        listed = {
            name: [
                {
                    "token": token,
                    "weight": weight,
                    "counts": dict(zip(classes, row, strict=True)),
                }
                for token, weight, row in words
            ]
            for name, words in ranked.items()
        }
        click.echo(json.dumps(listed))
        return
    from nbspam.display.lines import strongest_rows

    for name, rows in strongest_rows(ranked, whole.metadata).items():
        click.echo(click.style(f"strongest for {name}", bold=True))
        _echo_table(rows, [], class_heads(whole.metadata))
        click.echo()
    if not fragments and any(map(is_fragment, whole.counts)):
        echo_paragraph("character trigrams are left out (--fragments shows them)")
    tokens = [word.token for words in ranked.values() for word in words]
    positive = whole.metadata.settings.positive or "the class"
    _echo_legend(legend(tokens, positive), has_share=False)
