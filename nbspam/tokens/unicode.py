"""Unicode tricks undone, each leaving a token that says so; and which letters go without spaces.

Spam writes `fr\u200bee`, `ｆｒｅｅ` or `frее` (in part Cyrillic) so that a filter sees no "free".
"""

import re
from collections.abc import Set

from nbspam.patterns import lazy_pattern

# Sets of characters, each as its ranges in ascending order, for the brackets of a pattern and for
# `may_have`.

# Vowel signs and tone marks are no letters to Python's \w, and words would fall apart at them.
# These are the blocks' ranges, not every single mark.
_INDIC = "".join(
    f"{chr(b)}-{chr(b + 3)}{chr(b + 0x3A)}-{chr(b + 0x57)}{chr(b + 0x62)}-{chr(b + 0x63)}"
    for b in range(0x900, 0xE00, 0x80)  # Devanagari to Sinhala share one plan
)
MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf-\u05bf\u05c1-\u05c2\u0610-\u061a\u064b-\u065f"
    f"\u0670-\u0670{_INDIC}\u0e31-\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1-\u0eb1\u0eb4-\u0ebc"
    "\u0ec8-\u0ecd\u102b-\u103e\u17b4-\u17d3"
)
# Chinese, Japanese, Thai, Lao, Burmese and Khmer: written without spaces between words.
UNSPACED = (
    "\u0e01-\u0e4e\u0e81-\u0ecd\u1000-\u104f\u1780-\u17d3\u3041-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
)

# Characters without width or look: zero-width, soft hyphen, direction marks, byte order mark.
_INVISIBLES = (
    "\u00ad-\u00ad\u034f-\u034f\u061c-\u061c\u115f-\u1160\u17b4-\u17b5\u180e-\u180e\u200b-\u200f"
    "\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufe00-\ufe0f\ufeff-\ufeff"
)
_INVISIBLE = lazy_pattern(f"[{_INVISIBLES}]")
# Between two letters of a script that has no use for joiners (Arabic, Indic scripts and emoji do).
_SPLIT_WORD = lazy_pattern(
    "[A-Za-z\u00c0-\u024f\u0370-\u052f][\u00ad\u034f\u200b-\u200f\u2060-\u2064\ufeff]"
    "[A-Za-z\u00c0-\u024f\u0370-\u052f]"
)
_FULL_WIDTH = lazy_pattern("[\uff21-\uff3a\uff41-\uff5a]")
_STYLED = lazy_pattern("[\u2460-\u24ff\U0001d400-\U0001d7ff\U0001f100-\U0001f1e5]")
_COMPATIBLES = (
    "\u2100-\u214f\u2460-\u24ff\ufb00-\ufb06\uff01-\uff5e\U0001d400-\U0001d7ff\U0001f100-\U0001f1e5"
)
_COMPATIBLE = lazy_pattern(f"[{_COMPATIBLES}]")
# Letters of other scripts that look like Latin ones, and the Latin ones (Unicode's confusables
# list has thousands; these are those that fonts draw alike).
_LOOK_ALIKES = str.maketrans(
    "авеікмнорстухјѕһԁԛԝьАВЕІКМНОРСТУХЈЅҺԀԚԜЬαεικνορτυχΑΒΕΖΗΙΚΜΝΟΡΤΥΧɑɡⅼ",
    "abeikmhopctyxjshdqwbABEIKMHOPCTYXJSHDQWBaeikvoptuxABEZHIKMNOPTYXagl",
)
_ALIKE = "\u0251-\u0251\u0261-\u0261\u0370-\u052f\u217c-\u217c"
_MIXES = lazy_pattern(f"[A-Za-z][{_ALIKE}]|[{_ALIKE}][A-Za-z]")
_LETTERS = lazy_pattern(r"[^\W\d_]+")


def western_bytes(text: str) -> bytes | None:
    """Return a text in Windows-1252, or None if it holds anything else.

    A quick way to know that there is no mark, no look-alike and no script without spaces in it.
    """
    try:
        return text.encode("ascii" if text.isascii() else "cp1252")
    except UnicodeEncodeError:
        return None


def strange_characters(text: str) -> Set[str]:
    """Return the different characters of a text that are neither Latin nor plain signs."""
    return {character for character in set(text) if character > "\u024f" or character == "\u00ad"}


_FEW = 8


def may_have(characters: Set[str], ranges: str) -> bool:
    """Return False if none of the characters is in a set; True if one is, or there are many.

    So no pattern is compiled, 7 ms for all of them, because of an emoji or two in a mail.
    """
    near = [character for character in characters if ranges[0] <= character <= ranges[-1]]
    return len(near) > _FEW or any(
        ranges[i] <= character <= ranges[i + 2]
        for character in near
        for i in range(0, len(ranges), 3)
    )


def _alike(word: re.Match[str]) -> str:
    """Return a word of two scripts in the letters that it looks like, any other as it is."""
    return word[0].translate(_LOOK_ALIKES) if _MIXES.search(word[0]) else word[0]


def undo_tricks(text: str) -> tuple[str, set[str]]:
    """Return the text as it looks to a reader, and a token for each kind of trick in it."""
    if text.isascii() or ("\u00ad" not in text and western_bytes(text) is not None):
        return text, set()
    found = set()
    characters = strange_characters(text)
    if may_have(characters, _INVISIBLES):
        if _SPLIT_WORD.search(text):
            found.add("trick:invisible")
        text = _INVISIBLE.sub("", text)
    if may_have(characters, _COMPATIBLES) and _COMPATIBLE.search(text):
        import unicodedata

        if _FULL_WIDTH.search(text):
            found.add("trick:full-width")
        if _STYLED.search(text):
            found.add("trick:styled-letters")
        text = _COMPATIBLE.sub(lambda m: unicodedata.normalize("NFKC", m[0]), text)
        characters = strange_characters(text)
    if may_have(characters, _ALIKE) and _MIXES.search(text):
        found.add("trick:look-alike")
        # Word by word: a pattern for words with a mix in them took ten times as long on long ones.
        text = _LETTERS.sub(_alike, text)
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which no file can hold
        text = text.encode("utf-8", "replace").decode()
    return text, found
