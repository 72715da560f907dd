"""Disguises of words undone: Unicode tricks, words spelled letter by letter, digits for letters.

Spam writes `fr\u200bee`, `ｆｒｅｅ` or `frее` (in part Cyrillic) so that a filter sees no "free".
Each kind of trick leaves a token.

Most texts are Western: Windows-1252 can encode them.  Their bytes are looked up in tables, in a
fraction of the time of a pattern.  Tables and patterns give the same tokens (a test compares them),
so an emoji in a text does not change its other tokens.
"""

import contextlib
import re
from collections.abc import Callable, Set
from functools import cached_property

from nbspam.patterns import lazy_pattern

WESTERN = bytes(range(256)).decode("cp1252", "replace")
DIGIT_BYTES = bytes.maketrans(b"123456789", b"000000000")


def western_table(keep: Callable[[str], bool]) -> bytes:
    """Make a table for bytes.translate that turns all characters but those to keep into blanks.

    Translating bytes is a table look-up, 15 times as fast as str.translate or a pattern.
    """
    return bytes(byte if keep(character) else 32 for byte, character in enumerate(WESTERN))


# Turns visible characters into "a", and all others into blanks.
VISIBLE_SHAPE = western_table(lambda c: not c.isspace()).translate(b"a" * 32 + b" " + b"a" * 223)
_C1_CONTROLS = bytes(range(0x80, 0xA0))


class Prepared(str):
    """A text that caches its bytes in Windows-1252, so that all rules share them."""

    @cached_property
    def western(self) -> bytes | None:
        """The bytes; None if Windows-1252 cannot encode the text."""
        return _western_bytes(self)


def western_bytes(text: str) -> bytes | None:
    """Encode a text in Windows-1252; None if that is impossible.

    A quick test: such a text has no combining marks, no look-alikes and no unspaced scripts.
    """
    return text.western if isinstance(text, Prepared) else _western_bytes(text)


def _western_bytes(text: str) -> bytes | None:
    if text.isascii():
        return text.encode()
    try:
        data = text.encode("latin-1")  # equal except for the C1 controls, in a tenth of the time
        return None if data.translate(None, _C1_CONTROLS) != data else data
    except UnicodeEncodeError:
        with contextlib.suppress(UnicodeEncodeError):
            return text.encode("cp1252")
    return None


# Tricks with Unicode
#
# Sets of characters, each as its ranges in ascending order, for the brackets of a pattern and for
# `any_in_ranges`.

# Characters that programs do not show: the property Default_Ignorable_Code_Point in Unicode 18.0
# (14.0 to 18.0 are equal).  Made with PyPI's module `regex`:
#
#     marks = [c for c in map(chr, range(0x110000))
#              if regex.match(r"\p{Default_Ignorable_Code_Point}", c)]
#     for c in marks: print(ascii(c))
INVISIBLES = (
    "\u00ad-\u00ad\u034f-\u034f\u061c-\u061c\u115f-\u1160\u17b4-\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164-\u3164\ufe00-\ufe0f\ufeff-\ufeff\uffa0-\uffa0\ufff0-\ufff8"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_CONTROLS = "\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f"  # except those that end a line or a field
_INVISIBLE = lazy_pattern(f"[{_CONTROLS}{INVISIBLES}]")
# Text that programs show backwards: from a right-to-left override to its end or the line's.
_REVERSED = lazy_pattern("\u202e([^\u202c\n]+)")
_CONTROL = lazy_pattern(f"[{_CONTROLS}]")
_TRICK_BYTES = bytes([*range(9), *range(14, 28), 127, 0xAD])  # in Western texts
# An invisible character between two letters; Arabic, Indic scripts and emoji need joiners.
_SPLIT_WORD = lazy_pattern(
    f"[A-Za-z\u00c0-\u024f\u0370-\u052f][{_CONTROLS}{INVISIBLES}][A-Za-z\u00c0-\u024f\u0370-\u052f]"
)
# Marks that do not combine with a Latin letter into one character: an overlay, or several marks.
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
_REGIONAL = lazy_pattern(f"[{_FLAGS}]{{3,}}")  # two such characters are a flag
# Sorted, because `any_in_ranges` looks at the first and the last range.  ™ (U+2122) is not in the
# ranges, because `Dell™` must give the same token, `dell`, in every text as in a Western text.
COMPATIBLES = (
    f"\u0262-\u0262\u2100-\u2121\u2123-\u214f\ufb00-\ufb06\uff01-\uff5e{_STYLED_LETTERS}{_FLAGS}"
)
_COMPATIBLE = lazy_pattern(f"[{COMPATIBLES}]")
# Letters in styles that Unicode does not map to plain letters: small capitals, and white letters in
# a black shape.
_STYLES = str.maketrans(
    dict(zip("ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ", "abcdefghijklmnoprstuvwyz", strict=True))
    | {chr(start + i): chr(97 + i) for start in (0x1F150, 0x1F170) for i in range(26)}
)
# Letters of other scripts that look like Latin letters, and these Latin letters (Unicode's list of
# confusables has thousands; fonts draw these alike).
_LOOK_ALIKES = str.maketrans(
    "авеікмнорстухјѕһԁԛԝьАВЕІКМНОРСТУХЈЅҺԀԚԜЬαεικνορτυχΑΒΕΖΗΙΚΜΝΟΡΤΥΧɑɡⅼ",
    "abeikmhopctyxjshdqwbABEIKMHOPCTYXJSHDQWBaeikvoptuxABEZHIKMNOPTYXagl",
)
LOOK_ALIKE_RANGES = "\u0251-\u0251\u0261-\u0261\u0370-\u052f\u217c-\u217c"
_MIXES = lazy_pattern(f"[A-Za-z][{LOOK_ALIKE_RANGES}]|[{LOOK_ALIKE_RANGES}][A-Za-z]")
_LETTERS = lazy_pattern(r"[^\W\d_]+")


def strange_characters(text: str) -> Set[str]:
    """Return the set of a text's characters that are neither Latin nor common symbols."""
    return {character for character in set(text) if character > "\u024f" or character == "\u00ad"}


_FEW = 8


def any_in_ranges(characters: Set[str], ranges: str) -> bool:
    """Return whether a character is in one of the ranges.

    Returns True for many characters without a search.  The search saves compiling patterns (7 ms
    for all of them) for a mail that has only a few emoji.
    """
    near = [character for character in characters if ranges[0] <= character <= ranges[-1]]
    return len(near) > _FEW or any(
        ranges[i] <= character <= ranges[i + 2]
        for character in near
        for i in range(0, len(ranges), 3)
    )


def _fold_look_alikes(word: re.Match[str]) -> str:
    """Replace look-alikes in a word with letters of two scripts; keep any other word."""
    return word[0].translate(_LOOK_ALIKES) if _MIXES.search(word[0]) else word[0]


def undo_tricks(text: str) -> tuple[str, set[str]]:
    """Return the text as it looks to a reader, and a token for each kind of trick in the text."""
    if text.isascii() and text.isprintable():  # as most fields are
        return text, set()
    data = western_bytes(text)
    if data is not None and len(data.translate(None, _TRICK_BYTES)) == len(data):  # most texts
        return text, set()
    has_control = _CONTROL.search(text) is not None
    tricks = set()
    characters = strange_characters(text)
    if has_control or any_in_ranges(characters, INVISIBLES):
        if _SPLIT_WORD.search(text):
            tricks.add("trick:invisible")
        if "\u202e" in characters:
            text = _REVERSED.sub(lambda run: run[1][::-1], text)
        text = _INVISIBLE.sub("", text)
    if any_in_ranges(characters, "\u0300-\u036f"):
        import unicodedata

        # Remove marks that do not combine with the letter before the mark.
        if _OVERLAY.search(text):
            tricks.add("trick:marks")
        text = _DECORATION.sub("", unicodedata.normalize("NFC", text))
    if any_in_ranges(characters, COMPATIBLES) and _COMPATIBLE.search(text):
        import unicodedata

        if _FULL_WIDTH.search(text):
            tricks.add("trick:full-width")
        if _STYLED.search(text) or _REGIONAL.search(text):
            tricks.add("trick:styled-letters")
            text = text.translate(_STYLES)
            text = _REGIONAL.sub(lambda m: "".join(chr(ord(c) - 0x1F185) for c in m[0]), text)
        text = _COMPATIBLE.sub(lambda m: unicodedata.normalize("NFKC", m[0]), text)
        characters = strange_characters(text)
    if any_in_ranges(characters, LOOK_ALIKE_RANGES) and _MIXES.search(text):
        tricks.add("trick:look-alike")
        # Word by word, because a pattern for mixed words took ten times as long on long words.
        text = _LETTERS.sub(_fold_look_alikes, text)
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which no file can hold
        text = text.encode("utf-8", "replace").decode()
    return text, tricks


# A word spelled letter by letter, with the same sign between all of them.
_SPELLED = lazy_pattern(
    r"(?<![^\W_])[^\W\d_]([ .*|~+/\xa0·•\u2002-\u200a\u202f-])"
    r"[^\W\d_](?:\1[^\W\d_]){2,60}(?![^\W_])"
)
# Digits for letters within a word.  (Without 2, 6 and 9, which mean other things in SMS.)
LETTERS = str.maketrans("013457", "oieast")
_LETTER = "".join(sorted({c for c in WESTERN.lower() if c.isalnum() and not c.isdecimal()}))
_LEET = lazy_pattern(f"(?<=[{_LETTER}])[013457]{{1,2}}(?=[{_LETTER}])")
_UNDERSCORE = lazy_pattern(r"_(?<=[^\W\d_]_)(?=[^\W\d_])")


def _shape(character: str) -> int:
    """Return the byte that stands for a character in a text's shape."""
    if character.isalnum() and not character.isdecimal():
        return ord("a")
    if character in "013457":
        return ord("0")
    return ord(" ") if character in " .*|~+/-\xa0·•" else ord("!")


# Searching a text's shape takes a fraction of the time of searching the text.
_SHAPES = bytes(map(_shape, WESTERN))
_LEET_SHAPE = lazy_pattern(rb"0(?<=a0)0?(?=a)")


def undo_letter_spacing(lower: str) -> tuple[str, bool]:
    """Undo v.i.a.g.r.a and v1agra in a text in lower case.

    Returns the text, and whether a word was spelled letter by letter.
    """
    if "_" in lower:
        lower = _UNDERSCORE.sub("", lower)
    data = western_bytes(lower)
    if data is None:
        lower = _LEET.sub(lambda digits: digits[0].translate(LETTERS), lower)
        lower, n = _SPELLED.subn(lambda word: word[0].replace(word[1], ""), lower)
        return lower, n > 0
    shape = data.translate(_SHAPES)
    lower = _undo_leet(lower, shape)  # keeps the length
    joined = _join_spelled_words(lower, shape)
    return joined, joined is not lower


def _join_spelled_words(lower: str, shape: bytes) -> str:
    """Join the words that are spelled letter by letter."""
    pieces: list[str] = []
    end = start = 0
    while (start := shape.find(b"a a a a", start)) >= 0:
        if word := _SPELLED.match(lower, start):
            pieces += [lower[end:start], word[0].replace(word[1], "")]
            end = word.end()
        start = max(start + 1, end)
    return "".join([*pieces, lower[end:]]) if pieces else lower


def _undo_leet(lower: str, shape: bytes) -> str:
    """Replace digits within words by letters."""
    pieces: list[str] = []
    end = 0
    for digits in _LEET_SHAPE.finditer(shape):
        start, stop = digits.span()
        pieces += [lower[end:start], lower[start:stop].translate(LETTERS)]
        end = stop
    return "".join([*pieces, lower[end:]]) if pieces else lower


# Encoded data
#
# Uuencode, Ascii85, base85, BinHex, yEnc, PEM and base64 below a text give random words, which do
# not occur in other ham or spam, and padding.  In every such encoding letters, digits and symbols
# follow each other at random, so runs of letters with the same case are short: 1.5 to 2.6 letters
# on average, while words in all languages and links have more than 3.  Few characters repeat.

_LONG_PIECE = b"a" * 20
_MIN_RUNS = 7  # runs of letters in a long piece
_MAX_MEAN_RUN = 2.5  # letters of a run, in a long piece
# A piece next to encoded data may be encoded if its single run, or its mean run, has no more
# letters than this.
_MAX_SINGLE_RUN, _MAX_MEAN_OF_SEVERAL = 3.0, 4.5
_MIN_DIFFERENT = 0.6  # share of different characters in the middle of a long piece
_MIN_DIFFERENT_BEYOND_ASCII = 0.85  # yEnc has 0.9; Chinese in a wrong charset 0.55 to 0.8
_MIDDLE = 40  # characters
_MIN_BLOCK = 40  # characters of long pieces
_MAX_CHANCE_WORD = 3  # characters of words that random letters make between pieces of encoded data
_LETTER_RUN = lazy_pattern("[A-Z]?[a-z]+|[A-Z]+")


def remove_encoded(text: str, encoded: list[str] | None = None) -> str:
    """Remove encoded data from a text.  encoded: receives the data."""
    data = western_bytes(text)
    shape = (text.encode("cp1252", "replace") if data is None else data).translate(VISIBLE_SHAPE)
    kept: list[str] = []
    end = 0  # end of the text that was examined
    done = 0  # end of the text that is in `kept`, or removed
    while (start := shape.find(_LONG_PIECE, end)) >= 0:
        end = _piece_end(shape, start)
        if not _is_encoded(text[start:end]):
            continue
        n = end - start
        position = start
        while (before := shape.rfind(b"a", done, position) + 1) > done:
            position = max(shape.rfind(b" ", done, before) + 1, done)
            if _may_be_encoded(piece := text[position:before]):
                start = position
            elif len(piece) > _MAX_CHANCE_WORD:
                break
        position = end
        while (after := shape.find(b"a", position)) >= 0:
            position = _piece_end(shape, after)
            if _may_be_encoded(piece := text[after:position]):
                n += len(piece) if _is_encoded(piece) else 0
                end = position
            elif len(piece) > _MAX_CHANCE_WORD:
                break
        if n >= _MIN_BLOCK:
            kept.append(text[done:start])
            if encoded is not None:
                encoded.append(text[start:end])
            done = end
    return "".join([*kept, text[done:]]) if kept else text


def text_in_encoded(encoded: str) -> str:
    """Return the pieces of encoded data that may be disguised words, such as "bUy v-i-a-g-r-a"."""
    return " ".join(piece for piece in encoded.split() if not _is_encoded(piece))


def _piece_end(shape: bytes, start: int) -> int:
    end = shape.find(b" ", start)
    return len(shape) if end < 0 else end


def _is_encoded(piece: str) -> bool:
    """Return whether a piece without blanks is encoded data."""
    if len(piece) < len(_LONG_PIECE) or "://" in piece or piece.startswith("www."):
        return False
    middle = piece[max(0, (len(piece) - _MIDDLE) // 2) :][:_MIDDLE]
    different = _MIN_DIFFERENT if _is_mostly_ascii(piece) else _MIN_DIFFERENT_BEYOND_ASCII
    runs = _LETTER_RUN.findall(piece) if len({*middle}) >= different * len(middle) else ()
    return len(runs) >= _MIN_RUNS and sum(map(len, runs)) <= _MAX_MEAN_RUN * len(runs)


def _may_be_encoded(piece: str) -> bool:
    """Return whether a piece next to encoded data may belong to it, because it is not a word."""
    runs = _LETTER_RUN.findall(piece)
    max_mean = _MAX_MEAN_OF_SEVERAL if len(runs) > 1 else _MAX_SINGLE_RUN
    is_word = piece in runs or sum(map(len, runs)) > max_mean * len(runs)
    return not is_word and _is_mostly_ascii(piece)


def _is_mostly_ascii(piece: str) -> bool:
    return len(piece.encode("ascii", "ignore")) >= 0.8 * len(piece)
