"""`nbspam explain`: why a message got its verdict, in a table of its words and in sentences."""

import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from nbspam.bayes.calibration import DECIMALS
from nbspam.cli import notes
from nbspam.cli.command import argument, command, flag, option, rare_flag
from nbspam.cli.options import BASE, MODEL, Cutting, Reading, SenderOptions
from nbspam.cli.terminal import echo_line, echo_paragraph, has_colours, page_width, terminal_width
from nbspam.display import lines
from nbspam.errors import OptionError, SourceError, counted, one_line
from nbspam.filter import open_filter
from nbspam.names import is_url
from nbspam.reading.message import RawMessage
from nbspam.reading.source import STDIN, ReadingOptions, Skips
from nbspam.reading.sources import any_kind
from nbspam.scoring.explanation import TRAIT_PREFIX, Explanation, StrongWord, Word
from nbspam.scoring.highlights import excerpt_json, highlighted_message
from nbspam.scoring.rules import BIAS, CALIBRATION, CAUTION, LENGTH, OTHER_CLASSES, PRIOR, rule_of
from nbspam.scoring.verdict import TOO_FEW_WORDS, Verdict, rounded
from nbspam.store.metadata import Metadata
from nbspam.tokens.kinds import HEADER, PIECE, TRIGRAM, channel_of, is_fragment, kind_of
from nbspam.tokens.tokenized import TokenizedMessage, tokenize

_HTML = "html"
_LIMIT, _HTML_LIMIT = 2_000, 20_000  # characters of the text that are shown and highlighted
_LINES = 8  # of the text
_NUMBERED = re.compile(r"(.+):(\d+)")
_SUM = "sum (log-odds)"


@command("explain")
def explain(
    *,
    source: str = argument("source", metavar="[SOURCE]", default=STDIN),
    model: Path = MODEL,
    base: str | None = BASE,
    cutting: Cutting,
    senders: SenderOptions,
    reading: Reading,
    top: int = option(type=click.IntRange(1), default=20, help="Show the N strongest words."),
    words: bool = flag(help="Show the strongest words of the model instead of a message."),
    fragments: bool = rare_flag(
        help="Show character trigrams and pieces of the opening one by one."
    ),
    legend: bool = flag(help="Also say what the figures and the kinds of words mean."),
    form: str = option(
        "form",
        "--format",
        type=click.Choice(["text", "json", _HTML]),
        default="text",
        help="Print text for people, JSON for programs, or a page for a browser.",
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
      nbspam explain --words --top 50
    \f
    First it prints the beginning of the message.  The words that decided are highlighted in it: on
    a terminal in red and underlined for spam, in green for ham; else [+like this+] and
    [-like this-].  Then it prints a line for each word: its weight, how many of the learned
    messages contain it, and its share of the sum; --legend says what these are.  Character
    trigrams and pieces of the opening are added up unless --fragments is given.  JSON has all
    words.  --format html prints one self-contained page.
    """
    cutting.check()
    reading.check(() if words else (source,))
    if words and source != STDIN:
        raise OptionError(f"--words reads no message; leave out {source}, or --words")
    if words and form == _HTML:
        raise OptionError(
            "--words and --format html cannot be used together; leave one of them out"
        )
    options, skips = reading.options(), Skips(reading.strict)
    if words:
        _print_words(model, top, form, fragments, legend)
        return
    with open_filter(model, cutting.of, base, senders.lists()) as spam_filter:
        notes.note_lacking(model, spam_filter.metadata)
        if notes.has_reader():
            notes.note_older(model, spam_filter.metadata, spam_filter.classifier.base)
        raw = _one(source, options, skips)
        notes.note_skips(skips)
        wanted = spam_filter.wanted._replace(excerpt=_HTML_LIMIT if form == _HTML else _LIMIT)
        message = tokenize(raw.message(), raw.source, raw.label, wanted=wanted)
        verdict, explanation = spam_filter.classify_tokens(message), spam_filter.explain(message)
        excerpt, metadata = highlighted_message(message, explanation), spam_filter.metadata
    shown_words, sums = words_and_sums(explanation, top, fragments, is_told=form != _HTML)
    heads, positive = lines.class_heads(metadata), metadata.settings.positive
    reasons = [*_sender_sentence(message), *sentences(verdict, explanation, metadata)]
    meanings = list(terms([word.token for word in shown_words], explanation.of))
    view = lines.ExplanationView(
        verdict, explanation, positive, excerpt, shown_words, sums, heads, reasons, meanings
    )
    if form == "json":
        click.echo(json.dumps(_as_json(view)))
    elif form == _HTML:
        from nbspam import __version__
        from nbspam.display.page import explanation_page

        click.echo(explanation_page(view, __version__))
    else:
        _print(view, legend)


def _one(source: str, options: ReadingOptions, skips: Skips) -> RawMessage:
    """Return the first message of a source, or the one that `FILE:NUMBER` names."""
    numbered = _NUMBERED.fullmatch(source)
    if numbered and source != STDIN and (is_url(source) or not Path(source).exists()):
        for raw_message in any_kind(numbered[1], options, skips):
            if os.path.normpath(raw_message.source) == os.path.normpath(source):
                return raw_message
        raise SourceError(f"{source}: message not found; use a name that nbspam classify prints")
    messages = any_kind(source, options, skips)
    raw = next(messages, None)
    if raw is None:
        raise SourceError(f"{source}: contains no message; name a file with one")
    if next(messages, None) is not None:
        notes.note(f"{source} contains several messages; this is {raw.source}, the first")
    return raw


def _print(view: lines.ExplanationView, legend: bool) -> None:
    verdict, colour = view.judged, None
    if view.positive is not None:
        colour = "red" if verdict.verdict == view.positive else "green"
    styled_verdict = click.style(verdict.verdict, fg=colour, bold=True)
    probability = f"{verdict.remark}, probability {verdict.own_probability:.4f}"
    click.echo(f"{one_line(verdict.source)}: {styled_verdict}{probability}\n")
    shown_lines = lines.excerpt_lines(view.excerpt, page_width(), _LINES, signs=not has_colours())
    for line in shown_lines:
        echo_line(line)
    if shown_lines:
        click.echo()
    for row in table_lines(view.words, view.sums, view.heads, terminal_width()):
        click.echo(row)
    for sentence in view.sentences:
        click.echo()
        echo_paragraph(sentence, breaks_words=True)
    listed, pieces = list(view.legend), [piece for line in shown_lines for piece in line]
    if not has_colours() and any(piece.emphasis and piece.text[0] == "[" for piece in pieces):
        of, against = view.explanation.of, view.explanation.against
        listed.insert(0, ("[+ +]", f"what counts towards {of}; [- -]: towards {against}"))
    _echo_legend(legend, listed, has_share=True)


def words_and_sums(
    explanation: Explanation, top: int, fragments: bool, is_told: bool = True
) -> tuple[list[Word], list[tuple[str, float]]]:
    """Return the words to list, and the sums: other words, constants, and the total.

    is_told: name the options that list what is summed up.
    """
    # Fragments are many, and each means little to a reader; JSON has them all.
    words = [word for word in explanation.words if fragments or not is_fragment(word.token)]
    pieces, trigrams = (
        [word for word in explanation.words if not fragments and kind_of(word.token) == kind]
        for kind in (PIECE, TRIGRAM)
    )
    constants = explanation.constants.items()
    sums = [(CONSTANTS[key].removeprefix("the "), nats) for key, nats in constants]
    for several, before, what, how in (
        (pieces, "opening: ", "piece", "--fragments"),
        (trigrams, "", "character trigram", "--fragments"),
        (words[top:], "", "more word", "--top"),
    ):
        if several:
            if any(word.is_trait for word in several):
                what = "more trait" if len(several) == 1 else "more words and trait"
            named = before + counted(len(several), what)
            named += f" ({how} shows them)" if is_told else ""
            sums.insert(0, (named, sum(word.share for word in several)))
    return words[:top], [*sums, (_SUM, explanation.total)]


def _echo_legend(wanted: bool, listed: list[tuple[str, str]], *, has_share: bool) -> None:
    """Print what terms mean, one below the other; unless wanted, on a terminal how to get that.

    has_share: whether shares are shown.
    """
    if not wanted:
        if terminal_width() is not None:
            click.echo()
            echo_paragraph("--legend says what the figures and the kinds of words mean")
        return
    width = max(len(term) for term, _ in listed) + 2
    click.echo()
    for term, meaning in listed:
        if term == "weight" and has_share:
            meaning += "; its share is what it adds to this message's sum"
        echo_paragraph(f"{term:<{width}}{meaning}", indent=width)


def _as_json(view: lines.ExplanationView) -> dict[str, Any]:
    verdict, explanation = view.judged, view.explanation
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
        "unheard": explanation.unheard,
        "known": explanation.score.known,
        "text": explanation.score.text,
        "trust": explanation.score.trust,
        "sentences": view.sentences,
        "message": excerpt_json(view.excerpt),
        "words": words,
        **({} if explanation.base is None else {"base": str(explanation.base)}),
    }
    return {**verdict.as_json(), **rounded(fields, DECIMALS)}


def _print_words(model: Path, top: int, form: str, fragments: bool, legend: bool) -> None:
    """Print the words with the largest weights for each class."""
    from nbspam.scoring.explanation import strongest_words
    from nbspam.store.lookup import read_model

    whole = read_model(model)
    if not whole.metadata.settings.counts.has_tokens:
        raise OptionError(f"{model}: counts no words, only traits; leave out --words")
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
    for i, (name, rows) in enumerate(lines.strongest_rows(ranked, whole.metadata).items()):
        click.echo(("\n" if i else "") + click.style(f"strongest for {name}", bold=True))
        for line in table_lines(rows, [], lines.class_heads(whole.metadata), terminal_width()):
            click.echo(line)
    if not fragments and any(map(is_fragment, whole.counts)):
        click.echo()
        echo_paragraph(
            "character trigrams and pieces of the opening are not shown (--fragments shows them)"
        )
    tokens = [word.token for words in ranked.values() for word in words]
    positive = whole.metadata.settings.positive or "the class"
    _echo_legend(legend, list(terms(tokens, positive)), has_share=False)


# The constant terms in words.
CONSTANTS = {
    BIAS: "the absence of all other words (bias)",
    CALIBRATION: "the baseline",
    LENGTH: "the adjustment for its length",
    CAUTION: "the small-model adjustment",
    PRIOR: "the prior",
    OTHER_CLASSES: "the other classes' scores",
}


def terms(tokens: Iterable[str], of: str) -> Iterator[tuple[str, str]]:
    """Yield (term, meaning) of the figures and of the kinds of tokens.

    of: the class with positive weights.
    """
    yield "nats", f"the unit of log-odds: +0.7 doubles the odds of {of}, -0.7 halves them"
    yield "weight", "the evidence of a word by itself, in nats"
    kinds = {}
    for token in tokens:
        name, meaning = kind_of(token)[:2]
        if token.startswith(TRAIT_PREFIX):
            name = TRAIT_PREFIX.rstrip(":")
            meaning = "a number that every message has, and how many messages had the same"
        kinds[name] = meaning
    for name, meaning in sorted(kinds.items()):
        if name:
            yield f"{name}:", meaning


def _sender_sentence(message: TokenizedMessage) -> Iterator[str]:
    if message.sender:
        from nbspam.reading.senders import sentence_on

        yield sentence_on(message.sender)


def sentences(verdict: Verdict, explanation: Explanation, metadata: Metadata) -> Iterator[str]:
    """Yield the sentences that explain a verdict."""
    if metadata.is_one_sided:
        yield f"{verdict.verdict}: the model has not learned messages of two classes yet."
        return
    known, text, n = explanation.score.known, explanation.score.text, explanation.unknown
    unknown = []
    if n:
        of = counted(n + sum(not word.is_trait for word in explanation.words), "token")
        verb = "is" if n == 1 else "are"
        unknown.append(f"{n:,} of {of} {verb} unknown to the model, and ignored")
    if verdict.reason == TOO_FEW_WORDS:
        model = "it" if n else "the model"
        knows = f"{model} knows {known:,} of {text:,} in the text" if text else "the text has none"
        # One known token is enough for the other class.
        called = explanation.against if known else f"{explanation.against} or {explanation.of}"
        unknown.append(f"{knows}, too few to call it {called}")
    if unknown:
        yield "; ".join(unknown)
    if explanation.unheard:
        hidden = counted(explanation.unheard, "word")
        are = "is" if explanation.unheard == 1 else "are"
        favoured = f"would favour {explanation.against}, and {are} ignored"
        yield f"{hidden} of possibly hidden text {favoured}"
    headers = sum(channel_of(word.token) == HEADER for word in explanation.words)
    if headers and rule_of(metadata).is_calibrated:
        trusted = f"header trust {100 * explanation.score.trust:.0f} %"
        are = "word is" if headers == 1 else "words are"
        yield f"{trusted} ({notes.arrival_words(metadata)}; {headers:,} header {are} known)"
    if explanation.base is not None:
        yield f"the counts include those of the base {explanation.base}"
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
    yield f"{verdict.verdict}{verdict.remark}: {favours}; {reason}."


def _why_no_share(explanation: Explanation) -> str:
    """Return why no word has a share: none is known, or `hold` (bayes/calibration.py) made it 0."""
    known = [word for word in explanation.words if not word.is_trait]
    if not known:
        return "the model knows none of its words"
    count = [w for w in known if explanation.score.trust or channel_of(w.token) != HEADER]
    sides = {explanation.of if w.weight > 0 else explanation.against for w in count if w.weight}
    if len(sides) != 1:
        return "its known words do not change it"
    return f"its known words favour {sides.pop()}, too weakly to change it"


def _strongest(explanation: Explanation, side: int) -> str:
    """Return the words that favour one side most strongly."""
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


_BARS = 20, 8  # characters of the longest bar, where there is room
_LEAST_WORD = 12  # cells; a column is dropped first
_CLASS = 14  # cells of a class's name at most, on a terminal


def table_lines(
    rows: Sequence[Word | StrongWord],
    sums: Sequence[tuple[str, float]],
    heads: Sequence[tuple[str, str]],
    width: int | None,
) -> Iterator[str]:
    """Yield the lines of a table: heads, words and sums.

    heads: of the columns of counts, two lines each.
    width: of the terminal; None: tokens are not shortened.
    """
    names = [name if width is None else lines.shortened(name, _CLASS) for name, _ in heads]
    columns = [["weight", "", *(f"{row.weight:+8.3f}" for row in rows)]]
    for k, name in enumerate(names):
        columns.append([f"{name:>6}", heads[k][1], *(f"{row.counts[k]:,}" for row in rows)])
    shares = [row.share for row in rows if row.share is not None]
    if shares or sums:
        columns.append(["share", "", *(f"{share:+8.3f}" for share in shares)])
    widths = [max(map(lines.cell_width, column)) for column in columns]
    longest = max(
        # The name of a sum may extend below the columns of numbers.
        *(lines.cell_width(name) - sum(widths[:-1]) - 2 * len(widths[:-1]) for name, _ in sums),
        *(lines.cell_width(row.token) for row in rows),
        4,
    )
    room, bar = longest, _BARS[0]
    if width is not None:
        while len(columns) > 2 + bool(shares or sums) and (
            sum(widths) + 2 * len(widths) + _LEAST_WORD > width
        ):
            del columns[1], widths[1]  # JSON has them
        left = width - sum(widths) - 2 * len(widths)
        bar = next((n for n in _BARS if left - 2 - n >= min(longest, 24)), 0)
        room = max(4, min(longest, left - (2 + bar if bar else 0)))
    sizes = [0.0, 0.0, *(row.weight if row.share is None else row.share for row in rows)]
    most = max(map(abs, sizes)) or 1.0
    for i, word in enumerate(["word", "", *(row.token for row in rows)]):
        cells = [lines.padded(lines.shortened(word, room), room)]
        for column, size in zip(columns, widths, strict=True):
            cells.append(" " * (size - lines.cell_width(column[i])) + column[i])
        signs = "-+"[sizes[i] > 0] * round(abs(sizes[i]) / most * bar)
        if signs:
            cells.append(click.style(signs, fg="red" if sizes[i] > 0 else "green"))
        if line := "  ".join(cells).rstrip():
            yield line
    before = room + sum(widths[:-1]) + 2 * len(widths[:-1])
    for name, nats in sums:
        shown = name if width is None else lines.shortened(name, before)
        yield f"{lines.padded(shown, before)}  {nats:+8.3f}"
