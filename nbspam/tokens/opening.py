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
_DIGITS = str.maketrans("123456789", "000000000")
_LETTERS, _DIGIT = lazy_pattern(r"[^\W\d_]+"), lazy_pattern(r"\d")
_MARKS = lazy_pattern(f"[{MARKS}]+")


def opening_tokens(texts: Iterable[str]) -> dict[str, None]:
    """Return the tokens of the opening, in the order of the text.

    texts: the Subject, and the text of each part as far as it is seen for certain.
    """
    text = " ".join(texts)[:_ALL]
    first = " ".join(text[: _BLANKS * _FIRST].lower().split())[:_FIRST]
    data = western_bytes(text)
    if data is None:
        pieces = [part for piece in first.split() for part in pieces_of_unspaced(piece)]
        pieces = [_DIGIT.sub("0", piece[:_CUT]) for piece in pieces]
        left = _DIGIT.sub("0", _MARKS.sub("", _LETTERS.sub("", text)))
    else:
        left = data.translate(_DIGIT_BYTES, _LETTER_BYTES).decode("cp1252")
        pieces = [piece[:_CUT] for piece in first.translate(_DIGITS).split()]
    prefix, signs = PIECE.prefix, f"{PIECE.prefix}!"
    tokens = dict.fromkeys([prefix + piece for piece in pieces])
    return tokens | dict.fromkeys([signs + run[:_CUT_SIGNS] for run in left.split()])
