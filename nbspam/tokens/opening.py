"""The opening: a second, small view of a message, by how its text begins and what signs it has.

Words say what a text is about, wherever they stand.  How a text begins has statistics of its own,
and signs are no part of words: 4-grams, which need 750 tokens a mail, find both there
(docs/research/ideas-tried.md).  From the Subject and the text that is seen for certain, in lower
case:

    open:hello   a piece between blanks, of the first 500 characters, cut at 5
    open:!,      what is left of one without letters, of the first 12,000, cut at 12

Digits are 0.  A piece without spaces between words (Chinese, Thai) is cut into pairs, as elsewhere.
"""

from collections.abc import Iterable

from nbspam.patterns import lazy_pattern
from nbspam.tokens.kinds import PIECE
from nbspam.tokens.text import MARKS, pieces_of_unspaced, western_bytes

_FIRST, _ALL = 500, 12_000  # characters
_BLANKS = 4  # times as many characters, with all their blanks, are looked at for the first ones
_CUT, _CUT_SIGNS = 5, 12
_WESTERN = bytes(range(256)).decode("cp1252", "replace")
_LETTER_BYTES = bytes(  # as `_LETTERS` has them, ¹ and ½ among them
    byte for byte, c in enumerate(_WESTERN) if c.isalnum() and not c.isdecimal()
)
_DIGIT_BYTES = bytes.maketrans(b"123456789", b"000000000")
_LOWER_BYTES = _WESTERN.lower().encode("cp1252", "replace").translate(_DIGIT_BYTES)
_LETTERS, _DIGIT = lazy_pattern(r"[^\W\d_]+"), lazy_pattern(r"\d")
_MARKS = lazy_pattern(f"[{MARKS}]+")


def opening_tokens(texts: Iterable[str]) -> dict[str, None]:
    """Return the tokens of the opening, in the order of the text.

    texts: the Subject, and the text of each part as far as it is seen for certain.
    """
    text = " ".join(texts)[:_ALL]
    data = western_bytes(text)
    most = _BLANKS * _FIRST
    if data is None:
        lower = text[:most].lower()
        left = _DIGIT.sub("0", _MARKS.sub("", _LETTERS.sub("", text)))
    else:
        lower = data[:most].translate(_LOWER_BYTES).decode("cp1252")
        left = data.translate(_DIGIT_BYTES, _LETTER_BYTES).decode("cp1252")
    first = " ".join(lower[: 2 * _FIRST].split())
    if len(first) <= _FIRST:  # many blanks
        first = " ".join(lower.split())
    pieces = first[:_FIRST].split()
    if data is None:
        pieces = [part for piece in pieces for part in pieces_of_unspaced(piece)]
        pieces = [_DIGIT.sub("0", piece[:_CUT]) for piece in pieces]
    prefix, signs = PIECE.prefix, f"{PIECE.prefix}!"
    tokens = [prefix + piece[:_CUT] for piece in pieces]
    # Two in three runs of signs were there before.
    tokens += [signs + run[:_CUT_SIGNS] for run in dict.fromkeys(left.split())]
    return dict.fromkeys(tokens)
