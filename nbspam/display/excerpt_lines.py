"""A highlighted excerpt as lines of text: in colours, or with signs where there are none.

The signs are those of wdiff, `[+towards spam+]` and `[-towards ham-]`, so that `grep -F '[+'` finds
what spoke for spam.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from nbspam.display.cells import beginning, cell_width
from nbspam.errors import counted
from nbspam.scoring.highlights import HighlightedExcerpt, Run

# No other space is in a text that can be shown, but a hard one where a line must not be broken.
_BLANKS = re.compile(r"[ \n]+")
HARD_SPACE = "\xa0"


class Piece(NamedTuple):
    """A piece of a line."""

    text: str
    emphasis: int = 0  # -2 to 2, as that of a `Run`: how to colour it


StyledLine = list[Piece]


def excerpt_lines(
    excerpt: HighlightedExcerpt, width: int, most: int, *, signs: bool, indent: str = "  "
) -> list[StyledLine]:
    """Return an excerpt as lines: Subject and From if it has them, and the text.

    width: of a line, in cells.  most: lines of text.
    signs: write signs around what is highlighted, for a place without colours.
    """
    excerpt = (excerpt.in_one_strength() if signs else excerpt).joined()
    lines: list[StyledLine] = []
    for name, runs in (("Subject: ", excerpt.subject), ("From: ", excerpt.sender)):
        if runs:
            pieces = [Piece(name), *_pieces(runs, signs)]
            lines += [[Piece(indent), *line] for line in _folded(pieces, width - len(indent))]
    text = list(_folded(_pieces(excerpt.text, signs), width - len(indent)))
    is_cut = len(text) > most or excerpt.rest > 0
    lines += [[Piece(indent), *line] for line in text[:most]]
    if is_cut:
        lines.append([Piece(f"{indent}… ({_how_much(excerpt, text, most)} more)")])
    return lines


def folded_text(
    text: str, width: int, indent: int = 0, *, breaks_words: bool = True
) -> Iterator[str]:
    """Yield a text in lines of at most `width` cells.

    indent: blanks before each line but the first.  A hard space is where no line is broken.
    breaks_words: False: a word longer than a line, such as a path, stays whole, and is longer.
    """
    for i, line in enumerate(_folded([Piece(text[indent:])], width - indent, breaks_words)):
        yield (" " * indent if i else text[:indent]) + "".join(
            piece.text.replace(HARD_SPACE, " ") for piece in line
        )


def folded_sentence(text: str, width: int) -> Iterator[str]:
    """Yield a sentence in lines of at most `width` cells; all but the first begin with two blanks.

    What is longer than a line, such as a path, stays whole.
    """
    lines = folded_text("  " + text, width, 2, breaks_words=False)
    yield next(lines)[2:]
    yield from lines


def _how_much(excerpt: HighlightedExcerpt, text: list[StyledLine], most: int) -> str:
    rest = excerpt.rest + sum(len(piece.text) for line in text[most:] for piece in line)
    return counted(rest, "character")


def _pieces(runs: Iterable[Run], signs: bool) -> Iterator[Piece]:
    for text, _, emphasis in runs:
        if signs and emphasis:
            sign = "+" if emphasis > 0 else "-"
            yield Piece(f"[{sign}{text}{sign}]", emphasis)
        else:
            yield Piece(text, emphasis)


def _folded(pieces: Iterable[Piece], width: int, breaks_words: bool = True) -> Iterator[StyledLine]:
    """Yield lines of at most `width` cells, broken at blanks where there are some."""
    line: StyledLine = []
    used = 0
    for word in _words(pieces):
        size = sum(cell_width(piece.text) for piece in word)
        is_blank = word[0].text == " "
        if line and used + size > width:
            yield _without_blank(line)
            line, used = [], 0
        if is_blank and not line:
            continue
        if size > width and breaks_words:  # longer than a line
            *full, word = _broken(word, width)
            yield from full
            size = sum(cell_width(piece.text) for piece in word)
        line += word
        used += size
    if line:
        yield _without_blank(line)


def _broken(word: StyledLine, width: int) -> Iterator[StyledLine]:
    """Yield a word in lines of at most `width` cells."""
    line: StyledLine = []
    used = 0
    for text, emphasis in word:
        while text:
            first = beginning(text, width - used) or ("" if line else text[0])
            if not first:
                yield line
                line, used = [], 0
                continue
            line.append(Piece(first, emphasis))
            used += cell_width(first)
            text = text[len(first) :]
    yield line


def _words(pieces: Iterable[Piece]) -> Iterator[StyledLine]:
    """Yield what stands between blanks, each as its pieces, and single blanks between them."""
    word: StyledLine = []
    for text, emphasis in pieces:
        for i, part in enumerate(_BLANKS.split(text)):
            if i:
                if word:
                    yield word
                yield [Piece(" ", emphasis)]
                word = []
            if part:
                word.append(Piece(part, emphasis))
    if word:
        yield word


def _without_blank(line: StyledLine) -> StyledLine:
    return line[:-1] if line[-1].text == " " else line
