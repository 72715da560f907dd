"""Unicode tricks undone, each leaving a token that says so; and which letters go without spaces.

Spam writes `fr\u200bee`, `ｆｒｅｅ` or `frее` (in part Cyrillic) so that a filter sees no "free".
"""

import re
from collections.abc import Set
from typing import NamedTuple

from nbspam.patterns import lazy_pattern


class VisibleText(NamedTuple):
    """The text of one part of a message as a reader sees it, with its tricks undone."""

    text: str
    targets: list[str] | None  # of the links and images of HTML; None of plain text
    certain: str | None = None  # the text that is seen for certain; None: all of it


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

# Characters without width or look: control characters, zero-width, soft hyphen, direction marks,
# byte order mark, variation selectors, Hangul fillers, tags.
_CONTROLS = "\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f"  # but those that end a line or a field
_INVISIBLES = (
    "\u00ad-\u00ad\u034f-\u034f\u061c-\u061c\u115f-\u1160\u17b4-\u17b5\u180b-\u180e"
    "\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\u3164-\u3164\ufe00-\ufe0f\ufeff-\ufeff"
    "\uffa0-\uffa0\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e01ef"
)
_INVISIBLE = lazy_pattern(f"[{_CONTROLS}{_INVISIBLES}]")
_CONTROL = lazy_pattern(f"[{_CONTROLS}]")
_ASCII_CONTROLS = [chr(n) for n in (*range(9), *range(14, 28), 127)]
# Between two letters of a script that has no use for joiners (Arabic, Indic scripts and emoji do).
_SPLIT_WORD = lazy_pattern(
    f"[A-Za-z\u00c0-\u024f\u0370-\u052f][{_CONTROLS}\u00ad\u034f\u200b-\u200f\u2060-\u2064\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e01ef][A-Za-z\u00c0-\u024f\u0370-\u052f]"
)
# Marks that do not go with a Latin letter as one character: struck through, or a heap of them.
_LATIN_MARKS = "\u0300-\u036f"
_DECORATION = lazy_pattern(f"(?<=[A-Za-z\u00c0-\u024f\u1e00-\u1eff])[{_LATIN_MARKS}]+")
_OVERLAY = lazy_pattern(f"[A-Za-z](?:[\u0334-\u0338]|[{_LATIN_MARKS}]{{3}})")
_FULL_WIDTH = lazy_pattern("[\uff21-\uff3a\uff41-\uff5a]")
_STYLED_LETTERS = (
    "\u0262-\u0262\u026a-\u026a\u0274-\u0274\u0280-\u0280\u028f-\u028f\u0299-\u0299\u029c-\u029c"
    "\u029f-\u029f\u02b0-\u02b8\u1d00-\u1d6a\u2460-\u24ff\ua730-\ua731"
    "\U0001d400-\U0001d7ff\U0001f100-\U0001f1e5"
)
_STYLED = lazy_pattern(f"[{_STYLED_LETTERS}]")
_FLAGS = "\U0001f1e6-\U0001f1ff"
_REGIONAL = lazy_pattern(f"[{_FLAGS}]{{3,}}")  # two are a flag
# In the ranges' order for `may_have`, which looks at the first and the last.
_COMPATIBLES = f"\u0262-\u0262\u2100-\u214f\ufb00-\ufb06\uff01-\uff5e{_STYLED_LETTERS}{_FLAGS}"
_COMPATIBLE = lazy_pattern(f"[{_COMPATIBLES}]")
# Letters in styles that Unicode does not know as letters: small capitals, white in a black shape.
_STYLES = str.maketrans(
    dict(zip("ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ", "abcdefghijklmnoprstuvwyz", strict=True))
    | {chr(start + i): chr(97 + i) for start in (0x1F150, 0x1F170) for i in range(26)}
)
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


def has_tricks(text: str) -> bool:
    """Return whether a text may have tricks to undo; most have not."""
    # A search for each takes 3 µs a mail, a pattern 27.
    return not text.isascii() or any(map(text.__contains__, _ASCII_CONTROLS))


def undo_tricks(text: str) -> tuple[str, set[str]]:
    """Return the text as it looks to a reader, and a token for each kind of trick in it."""
    if not has_tricks(text):
        return text, set()
    has_control = _CONTROL.search(text) is not None
    if not has_control and "\u00ad" not in text and western_bytes(text) is not None:
        return text, set()
    found = set()
    characters = strange_characters(text)
    if has_control or may_have(characters, _INVISIBLES):
        if _SPLIT_WORD.search(text):
            found.add("trick:invisible")
        text = _INVISIBLE.sub("", text)
    if may_have(characters, "\u0300-\u036f"):
        import unicodedata

        # Without the marks that make no letter with the one before them.
        if _OVERLAY.search(text):
            found.add("trick:marks")
        text = _DECORATION.sub("", unicodedata.normalize("NFC", text))
    if may_have(characters, _COMPATIBLES) and _COMPATIBLE.search(text):
        import unicodedata

        if _FULL_WIDTH.search(text):
            found.add("trick:full-width")
        if _STYLED.search(text) or _REGIONAL.search(text):
            found.add("trick:styled-letters")
            text = text.translate(_STYLES)
            text = _REGIONAL.sub(lambda m: "".join(chr(ord(c) - 0x1F185) for c in m[0]), text)
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
