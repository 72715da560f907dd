"""Texts on a terminal: columns that line up, excerpts with highlights, rows of a table of words.

An ideograph or an emoji takes two cells of a terminal, an accent none.  An excerpt is in colours,
or with signs where there are none: those of wdiff, `[+towards spam+]` and `[-towards ham-]`, so
that `grep -F '[+'` finds what spoke for spam.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from nbspam.errors import counted

if TYPE_CHECKING:
    from nbspam.scoring.explanation import Explanation, StrongWord, Word
    from nbspam.scoring.highlights import HighlightedExcerpt, Run
    from nbspam.scoring.verdict import Verdict
    from nbspam.store.metadata import Metadata

ELLIPSIS = "…"
# No other space is in a text that can be shown, but a hard one where a line must not be broken.
_WORD = re.compile(r"[^ \n]+")
HARD_SPACE = "\xa0"


def cell_width(text: str) -> int:
    """Return how many cells of a terminal a text takes."""
    if text.isascii():
        return len(text)
    from unicodedata import category, east_asian_width, normalize

    # Letters and their marks are one cell where they are one character; other marks take none.
    return sum(
        0 if category(c) in ("Mn", "Me", "Cf") else 1 + (east_asian_width(c) in "WF")
        for c in normalize("NFC", text)
    )


def padded(text: str, width: int) -> str:
    """Return a text padded with blanks to `width` cells; a wider one is unchanged."""
    return text + " " * (width - cell_width(text))


def shortened(text: str, width: int) -> str:
    """Return a text that takes `width` cells at most, cut with an ellipsis if it took more."""
    return text if cell_width(text) <= width else beginning(text, width - 1) + ELLIPSIS


def beginning(text: str, width: int) -> str:
    """Return the longest beginning of a text that takes `width` cells at most."""
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
    """A piece of a line."""

    text: str
    emphasis: int = 0  # -2 to 2, as that of a `Run`: how to colour it


StyledLine = list[Piece]


def excerpt_lines(
    excerpt: "HighlightedExcerpt", width: int, most: int, *, signs: bool, indent: str = "  "
) -> list[StyledLine]:
    """Return an excerpt as lines: Subject and From if it has them, and the text.

    width: of a line, in cells.  most: lines of text.
    signs: write signs around what is highlighted, for a place without colours.
    """
    excerpt = excerpt.joined(1 if signs else 2)
    lines: list[StyledLine] = []
    for name, runs in (("Subject: ", excerpt.subject), ("From: ", excerpt.sender)):
        if runs:
            pieces = [Piece(name), *_pieces(runs, signs)]
            lines += [[Piece(indent), *line] for line in _folded(pieces, width - len(indent))]
    text = list(_folded(_pieces(excerpt.text, signs), width - len(indent)))
    lines += [[Piece(indent), *line] for line in text[:most]]
    if len(text) > most or excerpt.rest:
        rest = excerpt.rest + sum(len(piece.text) for line in text[most:] for piece in line)
        lines.append([Piece(f"{indent}… ({counted(rest, 'character')} more)")])
    return lines


def folded_text(
    text: str, width: int, indent: int = 0, *, breaks_words: bool = True
) -> Iterator[str]:
    """Yield a text in lines of at most `width` cells.

    indent: blanks before each line but the first.  A hard space is where no line is broken.
    breaks_words: False: a word longer than a line, such as a path, stays whole, and is longer.
    """
    for i, line in enumerate(_folded([Piece(text[indent:])], width - indent, breaks_words)):
        folded = "".join(piece.text for piece in line).replace(HARD_SPACE, " ")
        yield (" " * indent if i else text[:indent]) + folded


def folded_sentence(text: str, width: int) -> Iterator[str]:
    """Yield a sentence in lines of at most `width` cells; all but the first begin with two blanks.

    What is longer than a line, such as a path, stays whole.
    """
    lines = folded_text("  " + text, width, 2, breaks_words=False)
    yield next(lines)[2:]
    yield from lines


def _pieces(runs: "Iterable[Run]", signs: bool) -> Iterator[Piece]:
    for text, _, emphasis in runs:
        sign = "+" if emphasis > 0 else "-"
        yield Piece(f"[{sign}{text}{sign}]" if signs and emphasis else text, emphasis)


def _folded(pieces: Iterable[Piece], width: int, breaks_words: bool = True) -> Iterator[StyledLine]:
    """Yield lines of at most `width` cells, broken at blanks where there are some."""
    styled = [Piece(character, emphasis) for text, emphasis in pieces for character in text]
    text = "".join(piece.text for piece in styled)
    line: StyledLine = []
    used = 0
    for match in _WORD.finditer(text):
        (start, end), word = match.span(), match[0]
        size = cell_width(word)
        if line and used + 1 + size > width:
            yield _in_runs(line)
            line = []
        elif line:
            line.append(Piece(" ", styled[start - 1].emphasis))
            used += 1
        if not line:
            used = 0
            if size > width and breaks_words:  # longer than a line
                while (most := len(beginning(word, width)) or 1) < len(word):
                    yield _in_runs(styled[start : start + most])
                    start, word = start + most, word[most:]
                size = cell_width(word)
        line += styled[start:end]
        used += size
    if line:
        yield _in_runs(line)


def _in_runs(line: StyledLine) -> StyledLine:
    """Return a line with the characters of one emphasis as one piece."""
    runs = groupby(line, key=lambda piece: piece.emphasis)
    return [Piece("".join(piece.text for piece in run), emphasis) for emphasis, run in runs]


# Words


class ExplanationView(NamedTuple):
    """What is shown of one message."""

    judged: "Verdict"
    explanation: "Explanation"
    positive: str | None  # the class called spam
    excerpt: "HighlightedExcerpt"
    words: "list[Word]"  # those shown one by one
    sums: list[tuple[str, float]]  # the others, the constants, and last the sum of all
    heads: list[tuple[str, str]]  # of the columns of counts: `class_heads`
    sentences: list[str]  # why
    legend: list[tuple[str, str]]


def class_heads(metadata: "Metadata") -> list[tuple[str, str]]:
    """Return the two lines above the counts of each class: its name, and of how many they are.

    Where tokens count as often as they occur, they are not of the number of messages.
    """
    settings, learned = metadata
    totals = [f"of {round(n):,}" for n in learned.messages]
    if settings.counts.repeats:
        totals = [""] * len(totals)
    return [(f"in {name}", total) for name, total in zip(settings.classes, totals, strict=True)]


def strongest_rows(
    ranked: "dict[str, list[StrongWord]]", metadata: "Metadata"
) -> "dict[str, list[StrongWord]]":
    """Return the strongest words of a model with the signs of an explanation.

    Of two classes the positive one has the plus, whichever a word is listed for.
    """
    positive, classes = metadata.settings.positive, metadata.settings.classes
    signs = {name: -1 if len(classes) == 2 and name != positive else 1 for name in ranked}
    return {
        name: [word._replace(weight=signs[name] * word.weight) for word in words]
        for name, words in ranked.items()
    }
