"""`nbspam explain`: why a message got its verdict, in a table of its words and in sentences."""

import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from nbspam import __version__
from nbspam.bayes.calibration import DECIMALS
from nbspam.cli import notes
from nbspam.cli.command import argument, command, flag, option, rare_flag
from nbspam.cli.options import BASE, MODEL, CutOffOptions, SenderOptions, SourceOptions
from nbspam.cli.terminal import echo_line, echo_paragraph, has_colours, page_width, terminal_width
from nbspam.display import lines
from nbspam.errors import OptionError, SourceError, format_count, one_line
from nbspam.filter import open_filter
from nbspam.reading.message import RawMessage
from nbspam.reading.source import STDIN, ReadingOptions, Skips
from nbspam.reading.sources import read_messages
from nbspam.scoring.explanation import CONSTANTS, Explanation, StrongWord, Word
from nbspam.scoring.highlights import excerpt_json, highlight_message, words_as_written
from nbspam.scoring.rules import PRIOR, scoring_rule
from nbspam.scoring.verdict import (
    FROM_ELSEWHERE,
    IN_CONTAINER,
    TOO_FEW_WORDS,
    TOO_LARGE,
    Verdict,
    rounded,
)
from nbspam.store.metadata import Metadata
from nbspam.tokens.kinds import HEADER, OPENING_PIECE, TRIGRAM, channel_of, is_fragment, kind_of
from nbspam.tokens.tokenized import TokenizedMessage, tokenize

_HTML, _CSV = "html", "csv"
_MAX_TEXT, _MAX_HTML_TEXT = 2_000, 20_000  # characters of the text to show and highlight
_MAX_LINES = 8  # lines of the text
_NUMBERED_MESSAGE = re.compile(r"(.+):(\d+)")
_TOTAL = "sum (log-odds)"


@command("explain")
def explain(
    *,
    source: str = argument("source", metavar="[SOURCE]", default=STDIN),
    model: Path = MODEL,
    base: str | None = BASE,
    cut_off_options: CutOffOptions,
    senders: SenderOptions,
    source_options: SourceOptions,
    top: int = option(type=click.IntRange(1), default=20, help="Show the N strongest words."),
    words: bool = flag(help="Show the strongest words of the model instead of a message."),
    fragments: bool = rare_flag(
        help="Show character trigrams and pieces of the opening one by one."
    ),
    form: str = option(
        "form",
        "--format",
        type=click.Choice(["text", "json", _HTML, _CSV]),
        default="text",
        help="Print text for people, JSON for programs, a page for a browser, or (--words) a table"
        " for a spreadsheet.",
    ),
) -> None:
    """Show how much each word of a message contributed to its score.

    SOURCE is one message, or the name that `classify` printed for a message of a larger source,
    such as messages.tsv:17; without it a message is read from standard input.

    \b
    Examples:
      nbspam explain message.eml
      nbspam explain --top 5 messages.tsv:17
      echo "You have won a prize" | nbspam explain
      nbspam explain --format html message.eml > why.html
      nbspam explain --words --top 50 --format csv > words.csv
    \f
    First it prints the beginning of the message.  The words that decided are highlighted in it: on
    a terminal in red and underlined for spam, in green for ham; else [+like this+] and
    [-like this-].  Then it prints a line for each word: its weight, how many of the learned
    messages contain it, and its share of the sum.  Character trigrams and pieces of the opening are
    added up unless --fragments is given.  Numbers are shown as written; the model knows only their
    length.  JSON has all words in the model's spelling.  --format html prints one self-contained
    page, which says what the figures and the kinds of words mean.
    """
    cut_off_options.check()
    source_options.check(() if words else (source,))
    if words and source != STDIN:
        raise OptionError(f"--words reads no message; leave out {source}, or --words")
    if form == _CSV and not words:
        raise OptionError("--format csv needs --words; add it, or choose text, json or html")
    options, skips = source_options.options(), Skips(source_options.strict)
    if words:
        _print_words(model, top, form, fragments)
        return
    with open_filter(model, cut_off_options.for_model, base, senders.lists()) as spam_filter:
        version = spam_filter.version
        notes.note_one_class(model, version.metadata)
        if notes.has_reader():
            notes.note_older(model, version.metadata, version.classifier.base)
        raw = _read_one(source, options, skips)
        notes.note_skips(skips)
        outputs = version.outputs._replace(excerpt=_MAX_HTML_TEXT if form == _HTML else _MAX_TEXT)
        message = tokenize(raw.message(), raw.source, raw.label, outputs=outputs)
        verdict, explanation = version.classify(message), version.explain(message)
        excerpt, metadata = highlight_message(message, explanation), version.metadata
    written = explanation._replace(words=words_as_written(excerpt, explanation.words))
    shown_words, sums = words_and_sums(written, top, fragments, name_options=form != _HTML)
    heads, positive = lines.class_heads(metadata), metadata.settings.positive
    reasons = [*_sender_sentence(message), *sentences(verdict, written, metadata)]
    if {word.token for word in shown_words} - {word.token for word in explanation.words}:
        reasons.append(lines.DIGITS_NOTE)
    view = lines.ExplanationView(
        verdict, explanation, positive, excerpt, shown_words, sums, heads, reasons
    )
    if form == "json":
        click.echo(json.dumps(_as_json(view)))
    elif form == _HTML:
        from nbspam.display.page import explanation_page

        click.echo(explanation_page(view, __version__))
    else:
        _print(view)


def _read_one(source: str, options: ReadingOptions, skips: Skips) -> RawMessage:
    """Read the first message of a source, or the message that `FILE:NUMBER` names."""
    numbered = _NUMBERED_MESSAGE.fullmatch(source)
    if numbered and source != STDIN and not Path(source).exists():
        for raw_message in read_messages(numbered[1], options, skips):
            if os.path.normpath(raw_message.source) == os.path.normpath(source):
                return raw_message
        raise SourceError(f"{source}: message not found; use a name that nbspam classify prints")
    messages = read_messages(source, options, skips)
    raw = next(messages, None)
    if raw is None:
        raise SourceError(f"{source}: contains no message; name a file with one")
    if next(messages, None) is not None:
        notes.note(f"{source} contains several messages; this is {raw.source}, the first")
    return raw


def _print(view: lines.ExplanationView) -> None:
    verdict, colour = view.classification, None
    if view.positive is not None:
        colour = "red" if verdict.verdict == view.positive else "green"
    styled_verdict = click.style(verdict.verdict, fg=colour, bold=True)
    probability = f"{verdict.reason_suffix}, probability {verdict.displayed_probability:.4f}"
    click.echo(f"{one_line(verdict.source)}: {styled_verdict}{probability}\n")
    shown_lines = lines.excerpt_lines(
        view.excerpt, page_width(), _MAX_LINES, signs=not has_colours()
    )
    for line in shown_lines:
        echo_line(line)
    if shown_lines:
        click.echo()
    for row in table_lines(view.words, view.sums, view.heads, terminal_width()):
        click.echo(row)
    for sentence in view.sentences:
        click.echo()
        echo_paragraph(sentence, break_words=True)


def words_and_sums(
    explanation: Explanation, top: int, fragments: bool, name_options: bool = True
) -> tuple[list[Word], list[tuple[str, float]]]:
    """Return the words to list, and the sums: other words, constants, and the total.

    name_options: add the options that list the summed words to a sum's name.
    """
    # There are many fragments, and each means little to a reader; JSON has all of them.
    words = [word for word in explanation.words if fragments or not is_fragment(word.token)]
    pieces, trigrams = (
        [word for word in explanation.words if not fragments and kind_of(word.token) == kind]
        for kind in (OPENING_PIECE, TRIGRAM)
    )
    constants = explanation.constants.items()
    sums = [(CONSTANTS[key].removeprefix("the "), nats) for key, nats in constants]
    for several, prefix, noun, option_name in (
        (pieces, "opening: ", "piece", "--fragments"),
        (trigrams, "", "character trigram", "--fragments"),
        (words[top:], "", "more word", "--top"),
    ):
        if several:
            if any(word.is_trait for word in several):
                noun = "more trait" if len(several) == 1 else "more words and trait"
            name = prefix + format_count(len(several), noun)
            name += f" ({option_name} shows them)" if name_options else ""
            sums.insert(0, (name, sum(word.share for word in several)))
    return words[:top], [*sums, (_TOTAL, explanation.total)]


def _as_json(view: lines.ExplanationView) -> dict[str, Any]:
    verdict, explanation = view.classification, view.explanation
    classes = tuple(verdict.probabilities)
    words = [
        w._asdict() | {"counts": dict(zip(classes, w.counts, strict=True))}
        for w in explanation.words
    ]
    fields = {
        **({"of": explanation.of, "against": explanation.against} if len(classes) > 2 else {}),
        "bias": explanation.bias,
        "sum_log_odds": explanation.sum_log_odds,
        "constants": dict(explanation.constants),
        "unknown": explanation.unknown,
        "unheard": explanation.ignored_hidden,
        "known": explanation.score.known,
        "text": explanation.score.text,
        "trust": explanation.score.trust,
        "sentences": view.sentences,
        "message": excerpt_json(view.excerpt),
        "words": words,
        **({} if explanation.base is None else {"base": str(explanation.base)}),
    }
    return {**verdict.as_json(), **rounded(fields, DECIMALS)}


def _print_words(model: Path, top: int, form: str, fragments: bool) -> None:
    """Print the words with the largest weights for each class."""
    from nbspam.scoring.explanation import strongest_words
    from nbspam.store.lookup import read_model

    whole = read_model(model)
    if not whole.metadata.settings.counts.has_tokens:
        raise OptionError(f"{model}: counts no words, only traits; leave out --words")
    if form == _HTML:
        from nbspam.display.page import html_page, words_html

        title, words = f"Words of {one_line(str(model))}", words_html(whole, top)
        click.echo(html_page(title, words, f"nbspam {__version__}"))
        return
    ranked = strongest_words(whole, top, fragments=fragments or form == "json")
    if form == "json":
        listed = {
            name: [
                word._asdict() | {"counts": whole.metadata.by_class(word.counts)} for word in words
            ]
            for name, words in ranked.items()
        }
        click.echo(json.dumps(rounded(listed, DECIMALS)))
        return
    if form == _CSV:
        from nbspam.display.tables import TableWriter

        writer = TableWriter(sys.stdout.buffer, _CSV)
        names = ["class", "token", "weight", *(f"in_{name}" for name in ranked)]
        for name, word in ((name, word) for name, strong in ranked.items() for word in strong):
            row = name, word.token, round(word.weight, DECIMALS), *word.counts
            writer.add("", names, row, {})
        writer.close()
        return
    for i, (name, rows) in enumerate(lines.strongest_rows(ranked, whole.metadata).items()):
        click.echo(("\n" if i else "") + click.style(f"strongest for {name}", bold=True))
        for line in table_lines(rows, [], lines.class_heads(whole.metadata), terminal_width()):
            click.echo(line)
    if any("0" in word.token for words in ranked.values() for word in words):
        click.echo()
        echo_paragraph(lines.DIGITS_NOTE)
    if not fragments and any(map(is_fragment, whole.counts)):
        click.echo()
        echo_paragraph(
            "character trigrams and pieces of the opening are not shown (--fragments shows them)"
        )


def _sender_sentence(message: TokenizedMessage) -> Iterator[str]:
    if message.sender:
        from nbspam.reading.senders import sentence_on

        yield sentence_on(message.sender)


def sentences(verdict: Verdict, explanation: Explanation, metadata: Metadata) -> Iterator[str]:
    """Yield the sentences that explain a verdict."""
    if metadata.lacks_two_classes:
        yield f"{verdict.verdict}: the model has not learned messages of two classes yet."
        return
    known, text, n = explanation.score.known, explanation.score.text, explanation.unknown
    unknown = []
    if n:
        total = format_count(n + sum(not word.is_trait for word in explanation.words), "token")
        verb = "is" if n == 1 else "are"
        unknown.append(f"{n:,} of {total} {verb} unknown to the model, and ignored")
    if verdict.reason == TOO_FEW_WORDS:
        model = "it" if n else "the model"
        knows = f"{model} knows {known:,} of {text:,} in the text" if text else "the text has none"
        # A single known token is enough for the other class.
        called = explanation.against if known else f"{explanation.against} or {explanation.of}"
        unknown.append(f"{knows}, too few to call it {called}")
    if unknown:
        yield "; ".join(unknown)
    if verdict.reason == FROM_ELSEWHERE:
        yield (
            "the model has learned little or no mail of the server that received this one; to call"
            f" such mail {explanation.of} it must be surer"
        )
    if verdict.reason == TOO_LARGE:
        yield f"{TOO_LARGE}; what was not read may be {explanation.of}"
    if verdict.reason == IN_CONTAINER:
        yield f"{IN_CONTAINER}; it may be {explanation.of}"
    if explanation.ignored_hidden:
        hidden = format_count(explanation.ignored_hidden, "word")
        are = "is" if explanation.ignored_hidden == 1 else "are"
        favoured = f"would favour {explanation.against}, and {are} ignored"
        yield f"{hidden} of possibly hidden text {favoured}"
    headers = sum(channel_of(word.token) == HEADER for word in explanation.words)
    if headers and scoring_rule(metadata).is_calibrated:
        trusted = f"header trust {100 * explanation.score.trust:.0f} %"
        are = "word is" if headers == 1 else "words are"
        yield f"{trusted} ({notes.arrival_words(metadata)}; {headers:,} header {are} known)"
    if explanation.base is not None:
        yield f"the counts include the base {explanation.base}"
    side = 1 if explanation.total > 0 else -1
    toward, other = (explanation.of, explanation.against)[::side]
    words = sum(word.share for word in explanation.words)
    if words * side > 0:
        reason = _strongest(explanation, side)
    else:
        constants = explanation.constants
        largest = max(constants, key=lambda key: constants[key] * side, default=PRIOR)
        why = f"its words favour {other}, but too weakly" if words else _why_no_share(explanation)
        reason = f"this is due to {CONSTANTS[largest]}; {why}"
    favours = f"the evidence favours {toward} (log-odds {explanation.total:+.2f})"
    yield f"{verdict.verdict}{verdict.reason_suffix}: {favours}; {reason}."


def _why_no_share(explanation: Explanation) -> str:
    """Explain why every share is 0: no word is known, or the calibration makes all shares 0."""
    known = [word for word in explanation.words if not word.is_trait]
    if not known:
        return "the model knows none of its words"
    count = [w for w in known if explanation.score.trust or channel_of(w.token) != HEADER]
    sides = {explanation.of if w.weight > 0 else explanation.against for w in count if w.weight}
    if len(sides) != 1:
        return "its known words do not change it"
    return f"its known words favour {sides.pop()}, too weakly to change it"


def _strongest(explanation: Explanation, side: int) -> str:
    """Name the words that favour a side most strongly; side: 1 or -1."""
    leaning = [word.token for word in explanation.words if word.share * side > 0]
    readable = [token for token in leaning if not is_fragment(token)]
    *names, last = [f"“{token}”" for token in (readable or leaning)[:3]]
    reason = f"the strongest word for that is {last}"
    if names:
        reason = f"the strongest words for that are {', '.join(names)} and {last}"
    words = sum(word.share for word in explanation.words)
    trigrams = sum(word.share for word in explanation.words if kind_of(word.token) == TRIGRAM)
    if 2 * trigrams * side > words * side:
        reason += "; its character trigrams contribute most of it"
    return reason


_BAR_LENGTHS = 20, 8  # characters of the longest bar, if there is room
_MIN_WORD_WIDTH = 12  # cells; columns are dropped before the words get narrower
_MAX_CLASS_WIDTH = 14  # cells of a class's name on a terminal


def table_lines(
    rows: Sequence[Word | StrongWord],
    sums: Sequence[tuple[str, float]],
    heads: Sequence[tuple[str, str]],
    width: int | None,
) -> Iterator[str]:
    """Yield the lines of a table: heads, words and sums.

    heads: the two header lines of each count column.
    width: cells of the terminal; None: tokens are not shortened.
    """
    names = [name if width is None else lines.shorten(name, _MAX_CLASS_WIDTH) for name, _ in heads]
    columns = [["weight", "", *(f"{row.weight:+8.3f}" for row in rows)]]
    for k, name in enumerate(names):
        columns.append([f"{name:>6}", heads[k][1], *(f"{row.counts[k]:,}" for row in rows)])
    shares = [row.share for row in rows if row.share is not None]
    if shares or sums:
        columns.append(["share", "", *(f"{share:+8.3f}" for share in shares)])
    widths = [max(map(lines.cell_width, column)) for column in columns]
    longest = max(
        # A sum's name may be wider than the words, because the number columns below are empty.
        *(lines.cell_width(name) - sum(widths[:-1]) - 2 * len(widths[:-1]) for name, _ in sums),
        *(lines.cell_width(row.token) for row in rows),
        4,
    )
    word_width, bar = longest, _BAR_LENGTHS[0]
    if width is not None:
        while len(columns) > 2 + bool(shares or sums) and (
            sum(widths) + 2 * len(widths) + _MIN_WORD_WIDTH > width
        ):
            del columns[1], widths[1]  # JSON has them
        left = width - sum(widths) - 2 * len(widths)
        bar = next((n for n in _BAR_LENGTHS if left - 2 - n >= min(longest, 24)), 0)
        word_width = max(4, min(longest, left - (2 + bar if bar else 0)))
    sizes = [0.0, 0.0, *(row.weight if row.share is None else row.share for row in rows)]
    largest = max(map(abs, sizes)) or 1.0
    for i, word in enumerate(["word", "", *(row.token for row in rows)]):
        cells = [lines.pad_cells(lines.shorten(word, word_width), word_width)]
        for column, size in zip(columns, widths, strict=True):
            cells.append(" " * (size - lines.cell_width(column[i])) + column[i])
        signs = "-+"[sizes[i] > 0] * round(abs(sizes[i]) / largest * bar)
        if signs:
            cells.append(click.style(signs, fg="red" if sizes[i] > 0 else "green"))
        if line := "  ".join(cells).rstrip():
            yield line
    before = word_width + sum(widths[:-1]) + 2 * len(widths[:-1])
    for name, nats in sums:
        shown = name if width is None else lines.shorten(name, before)
        yield f"{lines.pad_cells(shown, before)}  {nats:+8.3f}"
