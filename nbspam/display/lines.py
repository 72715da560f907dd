"""Texts on a terminal: aligned columns, excerpts with highlights, rows of a table of words.

An ideograph or an emoji takes two cells of a terminal, a combining accent takes no cell.  Excerpts
are highlighted in colours, or with the signs of wdiff, `[+towards spam+]` and `[-towards ham-]`, so
that `grep -F '[+'` finds the words that favour spam.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from nbspam.errors import format_count

if TYPE_CHECKING:
    from nbspam.scoring.explanation import Explanation, StrongWord, Word
    from nbspam.scoring.highlights import HighlightedExcerpt, Run
    from nbspam.scoring.verdict import Verdict
    from nbspam.store.metadata import Metadata

ELLIPSIS = "…"
# Printable texts contain no other white space, except HARD_SPACE, where a line must not be broken.
_WORD = re.compile(r"[^ \n]+")
HARD_SPACE = "\xa0"


def cell_width(text: str) -> int:
    """Return the number of terminal cells that a text takes."""
    if text.isascii():
        return len(text)
    from unicodedata import category, east_asian_width, normalize

    # A letter and its mark take one cell if they compose to one character; other marks take 0.
    return sum(
        0 if category(c) in ("Mn", "Me", "Cf") else 1 + (east_asian_width(c) in "WF")
        for c in normalize("NFC", text)
    )


def pad_cells(text: str, width: int) -> str:
    """Pad a text with blanks to `width` cells; a wider text is unchanged."""
    return text + " " * (width - cell_width(text))


def shorten(text: str, width: int) -> str:
    """Cut a text that is wider than `width` cells, with an ellipsis at its end."""
    return text if cell_width(text) <= width else truncated(text, width - 1) + ELLIPSIS


def truncated(text: str, width: int) -> str:
    """Return the longest prefix of a text that takes at most `width` cells."""
    if text.isascii():
        return text[: max(0, width)]
    used = 0
    for i, character in enumerate(text):
        used += cell_width(character)
        if used > width:
            return text[:i]
    return text


# Excerpts and sentences


class Piece(NamedTuple):
    """A part of a line with the same style."""

    text: str
    emphasis: int = 0  # -2 to 2, as in `Run`


StyledLine = list[Piece]


def excerpt_lines(
    excerpt: "HighlightedExcerpt", width: int, max_lines: int, *, signs: bool, indent: str = "  "
) -> list[StyledLine]:
    """Format an excerpt as lines: Subject and From if it has them, and the text.

    width: cells of a line.  max_lines: lines of the text.
    signs: mark the highlighted words with signs, for output without colours.
    """
    excerpt = excerpt.merge_runs(1 if signs else 2)
    lines: list[StyledLine] = []
    for name, runs in (("Subject: ", excerpt.subject), ("From: ", excerpt.sender)):
        if runs:
            pieces = [Piece(name), *_pieces(runs, signs)]
            lines += [[Piece(indent), *line] for line in _fold(pieces, width - len(indent))]
    text = list(_fold(_pieces(excerpt.text, signs), width - len(indent)))
    lines += [[Piece(indent), *line] for line in text[:max_lines]]
    if len(text) > max_lines or excerpt.rest:
        rest = excerpt.rest + sum(len(piece.text) for line in text[max_lines:] for piece in line)
        lines.append([Piece(f"{indent}… ({format_count(rest, 'character')} more)")])
    return lines


def fold_text(text: str, width: int, indent: int = 0, *, break_words: bool = True) -> Iterator[str]:
    """Yield a text in lines of at most `width` cells.  No line is broken at a hard space.

    indent: blanks before each line except the first.
    break_words: if false, a word that is longer than a line, such as a path, stays whole.
    """
    for i, line in enumerate(_fold([Piece(text[indent:])], width - indent, break_words)):
        folded = "".join(piece.text for piece in line).replace(HARD_SPACE, " ")
        yield (" " * indent if i else text[:indent]) + folded


def fold_sentence(text: str, width: int) -> Iterator[str]:
    """Yield a sentence in lines of at most `width` cells; later lines are indented by two blanks.

    A word that is longer than a line, such as a path, stays whole.
    """
    lines = fold_text("  " + text, width, 2, break_words=False)
    yield next(lines)[2:]
    yield from lines


def _pieces(runs: "Iterable[Run]", signs: bool) -> Iterator[Piece]:
    for text, _, emphasis in runs:
        sign = "+" if emphasis > 0 else "-"
        yield Piece(f"[{sign}{text}{sign}]" if signs and emphasis else text, emphasis)


def _fold(pieces: Iterable[Piece], width: int, break_words: bool = True) -> Iterator[StyledLine]:
    """Yield lines of at most `width` cells, broken at blanks if possible."""
    styled = [Piece(character, emphasis) for text, emphasis in pieces for character in text]
    text = "".join(piece.text for piece in styled)
    line: StyledLine = []
    used = 0
    for match in _WORD.finditer(text):
        (start, end), word = match.span(), match[0]
        size = cell_width(word)
        if line and used + 1 + size > width:
            yield _merge_equal_style(line)
            line = []
        elif line:
            line.append(Piece(" ", styled[start - 1].emphasis))
            used += 1
        if not line:
            used = 0
            if size > width and break_words:  # longer than a line
                while (n_fitting := len(truncated(word, width)) or 1) < len(word):
                    yield _merge_equal_style(styled[start : start + n_fitting])
                    start, word = start + n_fitting, word[n_fitting:]
                size = cell_width(word)
        line += styled[start:end]
        used += size
    if line:
        yield _merge_equal_style(line)


def _merge_equal_style(line: StyledLine) -> StyledLine:
    """Merge adjacent characters of the same emphasis into pieces."""
    runs = groupby(line, key=lambda piece: piece.emphasis)
    return [Piece("".join(piece.text for piece in run), emphasis) for emphasis, run in runs]


# Words

DIGITS_NOTE = "numbers are compared by their length: to the model every digit is a 0"


class ExplanationView(NamedTuple):
    """The explanation of a message, ready to print or to write into a page."""

    classification: "Verdict"
    explanation: "Explanation"
    positive: str | None  # the class called spam
    excerpt: "HighlightedExcerpt"
    words: "list[Word]"  # words with a row each
    sums: list[tuple[str, float]]  # sums of the other words, the constants, and last the total
    heads: list[tuple[str, str]]  # heads of the count columns, from `class_heads`
    sentences: list[str]  # the reasons for the verdict


def class_heads(metadata: "Metadata") -> list[tuple[str, str]]:
    """Return the two header lines for the counts of each class: its name and its messages.

    If tokens count as often as they occur, the number of messages is no upper bound and is omitted.
    """
    settings, learned = metadata
    totals = [f"of {round(n):,}" for n in learned.messages]
    if settings.counts.counts_repeats:
        totals = [""] * len(totals)
    return [(f"in {name}", total) for name, total in zip(settings.classes, totals, strict=True)]


def strongest_rows(
    ranked: "dict[str, list[StrongWord]]", metadata: "Metadata"
) -> "dict[str, list[StrongWord]]":
    """Give the weights of a model's strongest words the same signs as in an explanation.

    With two classes, a plus marks the positive class, whichever class a word is listed for.
    """
    positive, classes = metadata.settings.positive, metadata.settings.classes
    signs = {name: -1 if len(classes) == 2 and name != positive else 1 for name in ranked}
    return {
        name: [word._replace(weight=signs[name] * word.weight) for word in words]
        for name, words in ranked.items()
    }
