"""The tokens of plain text: words, numbers, money, pairs of words, links, punctuation.

Unicode tricks are undone first, and each kind leaves a token: spam writes `fr\u200bee`,
`ｆｒｅｅ` or `frее` (in part Cyrillic) so that a filter sees no "free".

A token is a word in lower case, or `kind:value`; no word holds a colon, so the two never meet.
What each kind is worth is measured in docs/research/tokens.md.
"""

import contextlib
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Set
from typing import NamedTuple, TypeVar

from nbspam.patterns import lazy_pattern
from nbspam.tokens.kinds import KINDS, PIECE, TRIGRAM, kind_of

Value = TypeVar("Value")

# Longer keys seldom occur again, and would cost megabytes.
_KEY_LIMIT = 200


class Memo(dict[str, Value]):
    """A cache of a function's values: the same words and fields stand in thousands of mails.

    A dict that computes missing values, and is cleared when it is full.

    `map(memo.__getitem__, keys)` runs in C for what is known: functools.lru_cache, which keeps an
    order of use besides, took 240 ms where this takes 180 (908,000 keys, 64,000 of them different).
    """

    def __init__(
        self, function: Callable[[str], Value], limit: int, longest: int = _KEY_LIMIT
    ) -> None:
        """Remember `function`'s values of up to `limit` keys; it must give the same each time.

        longest: characters of a key that is remembered.
        """
        super().__init__()
        self._function, self._limit, self._longest = function, limit, longest

    def __missing__(self, key: str) -> Value:
        value = self._function(key)
        if len(key) <= self._longest:
            if len(self) >= self._limit:
                self.clear()
            self[key] = value
        return value


class VisibleText(NamedTuple):
    """The text of one part of a message as a reader sees it, with its tricks undone."""

    text: str
    targets: list[str] | None  # of the links and images of HTML; None of plain text
    certain: str | None = None  # the text that is seen for certain; None: all of it


# Tricks with Unicode
#
# Sets of characters, each as its ranges in ascending order, for the brackets of a pattern and for
# `may_have`.

# Vowel signs and tone marks are not letters to Python's \w, and would split words.
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
INVISIBLES = (
    "\u00ad-\u00ad\u034f-\u034f\u061c-\u061c\u115f-\u1160\u17b4-\u17b5\u180b-\u180e"
    "\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\u3164-\u3164\ufe00-\ufe0f\ufeff-\ufeff"
    "\uffa0-\uffa0\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e01ef"
)
_INVISIBLE = lazy_pattern(f"[{_CONTROLS}{INVISIBLES}]")
_CONTROL = lazy_pattern(f"[{_CONTROLS}]")
_TRICK_BYTES = bytes([*range(9), *range(14, 28), 127, 0xAD])  # in Western texts
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
COMPATIBLES = f"\u0262-\u0262\u2100-\u214f\ufb00-\ufb06\uff01-\uff5e{_STYLED_LETTERS}{_FLAGS}"
_COMPATIBLE = lazy_pattern(f"[{COMPATIBLES}]")
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
ALIKE = "\u0251-\u0251\u0261-\u0261\u0370-\u052f\u217c-\u217c"
_MIXES = lazy_pattern(f"[A-Za-z][{ALIKE}]|[{ALIKE}][A-Za-z]")
_LETTERS = lazy_pattern(r"[^\W\d_]+")


_C1_CONTROLS = bytes(range(0x80, 0xA0))


def western_bytes(text: str) -> bytes | None:
    """Return a text in Windows-1252, or None if it holds anything else.

    A quick way to know that there is no mark, no look-alike and no script without spaces in it.
    """
    if text.isascii():
        return text.encode()
    try:
        data = text.encode("latin-1")  # the same but for these, in a tenth of the time
        return None if data.translate(None, _C1_CONTROLS) != data else data
    except UnicodeEncodeError:
        with contextlib.suppress(UnicodeEncodeError):
            return text.encode("cp1252")
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
    if text.isascii() and text.isprintable():  # as most fields are
        return text, set()
    data = western_bytes(text)
    if data is not None and len(data.translate(None, _TRICK_BYTES)) == len(data):  # most texts
        return text, set()
    has_control = _CONTROL.search(text) is not None
    tricks = set()
    characters = strange_characters(text)
    if has_control or may_have(characters, INVISIBLES):
        if _SPLIT_WORD.search(text):
            tricks.add("trick:invisible")
        text = _INVISIBLE.sub("", text)
    if may_have(characters, "\u0300-\u036f"):
        import unicodedata

        # Without the marks that make no letter with the one before them.
        if _OVERLAY.search(text):
            tricks.add("trick:marks")
        text = _DECORATION.sub("", unicodedata.normalize("NFC", text))
    if may_have(characters, COMPATIBLES) and _COMPATIBLE.search(text):
        import unicodedata

        if _FULL_WIDTH.search(text):
            tricks.add("trick:full-width")
        if _STYLED.search(text) or _REGIONAL.search(text):
            tricks.add("trick:styled-letters")
            text = text.translate(_STYLES)
            text = _REGIONAL.sub(lambda m: "".join(chr(ord(c) - 0x1F185) for c in m[0]), text)
        text = _COMPATIBLE.sub(lambda m: unicodedata.normalize("NFKC", m[0]), text)
        characters = strange_characters(text)
    if may_have(characters, ALIKE) and _MIXES.search(text):
        tricks.add("trick:look-alike")
        # Word by word: a pattern for words with a mix in them took ten times as long on long ones.
        text = _LETTERS.sub(_alike, text)
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which no file can hold
        text = text.encode("utf-8", "replace").decode()
    return text, tricks


# Words

# Every digit is a 0: phone numbers, prices and codes change with each campaign, their shape stays.
_DIGITS = {ord("_"): " "} | {
    zero + digit: "0"
    # ASCII, Arabic-Indic, Persian, Devanagari, Bengali, Thai
    for zero in (0x30, 0x660, 0x6F0, 0x966, 0x9E6, 0xE50)
    for digit in range(10)
}


_WESTERN = bytes(range(256)).decode("cp1252", "replace")
_DIGIT_BYTES = bytes.maketrans(b"123456789", b"000000000")


def western_table(keep: Callable[[str], bool]) -> bytes:
    """Return a table for bytes.translate that turns what is not to be kept into blanks.

    Over bytes this is a table look-up, 15 times as fast as str.translate or a pattern.
    """
    return bytes(byte if keep(character) else 32 for byte, character in enumerate(_WESTERN))


# What can stand in a word or number, every digit as a 0.
_WORD_BYTES = western_table(lambda c: c.isalnum() or c in "'’-.,$£€¥%").translate(_DIGIT_BYTES)


def _word_pattern(letter: str, inner: str, joint: str, money: str) -> re.Pattern[str]:
    """Return the pattern of words and numbers; digits are 0 and underscores blanks by then.

    letter: the set of what makes a word one; inner: of what goes on in it; joint: between two;
    money: the signs of currencies.

    It says `0*LETTER INNER*(?:JOINT INNER+)*|[$£]?0+(?:[.,]0+)*%?` in a way that takes two thirds
    of the time (59 µs a mail in place of 85): it begins with one set, so that the search runs
    from one possible start to the next, and has no loop over a group where a word has no joint.
    """
    more = rf"{inner}*(?:{joint}{inner}+(?:{joint}{inner}+)*|)"
    fraction = r"(?:[.,]0+(?:[.,]0+)*|)(?:%|)"
    return lazy_pattern(
        rf"[{inner[1:-1]}{money}]"
        rf"(?:(?<={letter}){more}|(?<=0)0*(?:{letter}{more}|{fraction})|(?<=[{money}])0+{fraction})"
    )


_ASCII_WORD = _word_pattern("[a-z]", "[a-z0]", "['-]", "$")
_MONEY = "$£€¥₹"
# \w is a letter or digit here (underscores are blanks by then), and much faster than [^\W_].
_PLAIN_WORD = _word_pattern(r"[^\W0]", r"[\w]", "['’-]", _MONEY)


# These take 6 ms to compile, and most mails are Western.
_MARK = lazy_pattern(f"[{MARKS}]")
_MARKED_WORD = _word_pattern(r"[^\W0]", rf"[\w{MARKS}]", "['’-]", _MONEY)
_UNSPACED_RUN = lazy_pattern(rf"([{UNSPACED}]+)")
LINK = lazy_pattern(r"((?:https?://|www\.)[^\s<>\"'()\[\]]{1,500})")
_PATH_WORD = lazy_pattern(r"[a-z]{2,20}")
# One class, so that the search runs at the speed of its fastest loop: with an alternative for each
# sign it took longer than all words together.
PUNCTUATION = re.compile(r"[!?]+|[.*#=~+&$£-]{2,}")
_NO_HOST = lazy_pattern(r"[^\w.-]+")
# No token may move a terminal's cursor or be impossible to write.
_UNWRITABLE = lazy_pattern("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
CASED_WORD = lazy_pattern(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
SIGNS = frozenset('!?*$£€%&/:;()@+=#~"')

# Longer runs are random letters, encoded data, or text without spaces: no two messages share them.
WORD_LIMIT = 30
# To look for such a run takes a sixth of the time of the words' lengths.
_RUNS, _LONG_RUN = b"a" * 32 + b" " + b"a" * 223, b"a" * (WORD_LIMIT + 1)
_TRIGRAM = TRIGRAM.prefix
_REPEATS = 300  # characters from which on a field's words repeat enough
# The beginning of a text without mail headers, an SMS or a row of a table, gets tokens that a mail
# does without: every word as it is written, signs, and letter triples.
SHORT = 400


# A word spelled letter by letter, with the same sign between all of them.
SPELLED = lazy_pattern(r"(?<![^\W_])[^\W\d_]([ .*|~+/-])[^\W\d_](?:\1[^\W\d_]){2,60}(?![^\W_])")
# Digits for letters within a word.  (No 2, 6 and 9: those mean other things in SMS.)
LETTERS = str.maketrans("013457", "oieast")
LEET = lazy_pattern(r"(?<=[a-zß-ÿ])[013457]{1,2}(?=[a-zß-ÿ])")
UNDERSCORE = lazy_pattern(r"_(?<=[^\W\d_]_)(?=[^\W\d_])")


def _shape(character: str) -> int:
    """Return the sign of a character in the shape of a text."""
    if character.isalpha():
        return ord("a")
    if character in "013457":
        return ord("0")
    return ord(" ") if character in " .*|~+/-\n\t" else ord("!")


# A search in a text's shape takes a fraction of the time of one in the text.
_SHAPES = bytes(map(_shape, _WESTERN))
# bytes.find takes twice the time for the one, and seven times for the other.
_SPELLED_SHAPE, _LEET_SHAPE = lazy_pattern(rb" a a a a "), lazy_pattern(rb"0(?<=a0)0?(?=a)")


def unspelled(lower: str) -> tuple[str, bool]:
    """Return a text in lower case with disguised words as they are meant: v.i.a.g.r.a, v1agra.

    And whether a word was spelled letter by letter.
    """
    if "_" in lower:
        lower = UNDERSCORE.sub("", lower)
    data = western_bytes(lower)
    if data is None:
        lower = LEET.sub(lambda digits: digits[0].translate(LETTERS), lower)
        lower, n = SPELLED.subn(lambda word: word[0].replace(word[1], ""), lower)
        return lower, n > 0
    shape = b" %b " % data.translate(_SHAPES)
    lower = _with_letters(lower, shape[1:])  # of the same length
    joined = _joined(lower, shape)
    return joined, joined is not lower


def _joined(lower: str, shape: bytes) -> str:
    """Return a text with the words joined that are spelled letter by letter."""
    pieces: list[str] = []
    end = start = 0
    while found := _SPELLED_SHAPE.search(shape, start):
        if word := SPELLED.match(lower, found.start()):
            pieces += [lower[end : found.start()], word[0].replace(word[1], "")]
            end = word.end()
        start = max(found.start() + 1, end)
    return "".join([*pieces, lower[end:]]) if pieces else lower


def _with_letters(lower: str, shape: bytes) -> str:
    """Return a text with letters for the digits within its words."""
    pieces: list[str] = []
    end = 0
    for digits in _LEET_SHAPE.finditer(shape):
        start, stop = digits.span()
        pieces += [lower[end:start], lower[start:stop].translate(LETTERS)]
        end = stop
    return "".join([*pieces, lower[end:]]) if pieces else lower


def words_of(lower: str) -> list[str]:
    """Return the words and numbers of a text in lower case, in order."""
    has_long = True
    if (data := western_bytes(lower)) is not None:
        data = data.translate(_WORD_BYTES)
        has_long = _LONG_RUN in data.translate(_RUNS)
        if data.isascii():  # as three Western texts in four are: but for a © or a hard blank
            words = _ASCII_WORD.findall(data.decode("ascii"))
        else:
            words = _PLAIN_WORD.findall(data.decode("cp1252"))
    else:
        lower = lower.translate(_DIGITS)
        characters = strange_characters(lower)
        has_mark = may_have(characters, MARKS) and _MARK.search(lower)
        words = (_MARKED_WORD if has_mark else _PLAIN_WORD).findall(lower)
        if may_have(characters, UNSPACED) and _UNSPACED_RUN.search(lower):
            words = [part for word in words for part in pieces_of_unspaced(word)]
    if has_long:
        words = [word for word in words if len(word) <= WORD_LIMIT]
    return words


def different_words_of(lower: str) -> set[str]:
    """Return the different words and numbers of a text in lower case."""
    if len(lower) > _REPEATS and (data := western_bytes(lower)) is not None:
        # Two in three of what stands between blanks in a mail's Received lines is there twice: the
        # pattern need see it once only.
        lower = b" ".join(set(data.translate(_WORD_BYTES).split())).decode("cp1252")
    return set(words_of(lower))


def pieces_of_unspaced(word: str) -> list[str]:
    """Return the character pairs of what is written without spaces, the rest of a word as it is."""
    parts: list[str] = []
    for i, piece in enumerate(_UNSPACED_RUN.split(word)):
        if i % 2:
            parts += [piece[k : k + 2] for k in range(len(piece) - 1)] or [piece]
        elif piece:
            parts.append(piece)
    return parts


def _cut(text: str) -> tuple[list[str], list[str], bool]:
    """Return the links and the words of a text, and whether one was spelled letter by letter."""
    lower = text.lower().replace("’", "'")  # phones type the one, keyboards the other
    links: list[str] = []
    if "://" in lower or "www." in lower:
        # A link's pieces are no words of the text: with them every mailing list's footer would
        # speak a dozen times (P5: 0.47 1-ROCA% with, 0.31 without).
        pieces = LINK.split(lower)  # every second one is a link
        lower, links = " http ".join(pieces[::2]), pieces[1::2]
    lower, is_spelled = unspelled(lower)
    return links, words_of(lower), is_spelled


# The £ is the one sign beyond ASCII among those of PUNCTUATION.
_SIGN_BYTES = western_table(lambda c: c in "!?.*#=~+&$£-")


def text_tokens(text: str) -> dict[str, None]:
    """Return the tokens of a text of any length: words, pairs, links, punctuation.

    They are the keys of a dict, which has them in the order in which the text does, the same in
    every process: to sort them took 60 µs a mail.
    """
    links, words, is_spelled = _cut(text)
    tokens = set().union(*map(link_tokens, set(links)))
    if is_spelled:
        tokens.add("trick:spelled")
    # Two neighbours say more than each alone: P5 falls from 0.50 to 0.29 1-ROCA% with them.
    # (zip uses its tuple again.)
    pairs = map(" ".join, zip(words, itertools.islice(words, 1, None), strict=False))
    data = western_bytes(text)
    signs = text
    if data is not None:  # each different run once: 7 µs a mail in place of 53
        signs = b" ".join(set(data.translate(_SIGN_BYTES).split())).decode("cp1252")
    tokens.update([f"punct:{run[:3]}" for run in set(PUNCTUATION.findall(signs))])
    return dict.fromkeys(itertools.chain(words, pairs, sorted(tokens)))


def every_token(text: str) -> Iterator[str]:
    """Yield the tokens of `text_tokens` as often as they occur."""
    links, words, _ = _cut(text)
    yield from words
    yield from map(" ".join, itertools.pairwise(words))
    yield from itertools.chain.from_iterable(map(link_tokens, links))
    data = western_bytes(text)
    signs = text if data is None else data.translate(_SIGN_BYTES).decode("cp1252")
    for run in PUNCTUATION.findall(signs):
        yield f"punct:{run[:3]}"


def short_text_tokens(text: str) -> list[str]:
    """Return the extra tokens of a text of SMS length: written words, signs, capitals, trigrams.

    As often as they occur.  Capitals are counted here alone: in every text they took 18 µs a mail
    and made no difference; without them a filter of 50 SMS of each class blocks 2.2 % of the ham
    instead of 1.9 (tests/learning/test_cut_off.py), and P1's 1-ROCA% is .1367 instead of .1354.
    """
    words = [word for word in CASED_WORD.findall(text) if len(word) <= WORD_LIMIT]
    tokens = [f"case:{word}" for word in words if word != word.lower()]
    tokens += [f"sign:{sign}" for sign in text if sign in SIGNS]
    if capitals := sum(len(word) > 1 and word.isupper() for word in words):
        tokens.append(f"caps:{min(capitals.bit_length(), 5)}")
    spaced = f"_{'_'.join(_UNWRITABLE.sub(' ', text).lower().split())}_"
    tokens += [_TRIGRAM + spaced[i : i + 3] for i in range(len(spaced) - 2)]
    return tokens


def link_tokens(link: str) -> set[str]:
    """Return a link's tokens: that there is one, its host and parent domains, its path's words.

    link: in lower case, with or without its scheme.
    """
    tokens = {"link:"}
    rest = link.partition("://")[2] or link
    host, slash, path = rest.partition("/")
    if not slash:
        host, _, path = rest.partition("?")
    user, at, host = host.rpartition("@")
    if at and user:
        tokens.add("link:user")  # the target stands behind what looks like the host
    host, colon, port = host.partition(":")
    if colon and port.strip("0123456789") == "" and port not in ("", "80", "443"):
        tokens.add("link:port")
    add_host("host:", host, tokens)
    tokens.update([f"path:{word}" for word in _PATH_WORD.findall(path)])
    if "%" in path:
        tokens.add("link:escaped")
    return tokens


def add_host(prefix: str, host: str, tokens: set[str]) -> None:
    """Add a host and each of its parent domains; of a bare address, that it is one."""
    tokens.update([prefix + name for name in _host_names[host]])


def _names_of_host(host: str) -> tuple[str, ...]:
    labels = [label for label in _NO_HOST.sub("", host[:255]).split(".") if label]
    if labels and all(map(str.isdigit, labels)):
        return "ip", ".".join(labels[:2])
    return tuple([".".join(labels[i:])[-80:] for i in range(max(0, len(labels) - 6), len(labels))])


_host_names = Memo(_names_of_host, limit=1 << 12)


# The opening: a second, small view of a message, by how its text begins and what signs it has.
#
# Words say what a text is about, wherever they stand.  How a text begins has statistics of its own,
# and signs are no part of words: 4-grams, which need 750 tokens a mail, find both there
# (docs/research/ideas-tried.md).  From the Subject and the text that is seen for certain, in lower
# case:
#
#     open:hello   a piece between blanks, of the first 500 characters, cut at 5
#     open:!,      what is left of one without letters, of the first 12,000, cut at 12
#
# Digits are 0.  A piece without spaces between words (Chinese, Thai) is cut into pairs.

_FIRST, _ALL = 500, 12_000  # characters
_BLANKS = 4  # times as many characters, with all their blanks, are looked at for the first ones
_CUT, _CUT_SIGNS = 5, 12
# As `_LETTERS` has them, ¹ and ½ among them.
_LETTER_BYTES = bytes(b for b, c in enumerate(_WESTERN) if c.isalnum() and not c.isdecimal())
_LOWER_BYTES = _WESTERN.lower().encode("cp1252", "replace").translate(_DIGIT_BYTES)
_DIGIT, _MARKS = lazy_pattern(r"\d"), lazy_pattern(f"[{MARKS}]+")


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


def typed_tokens(typed: str) -> list[str]:
    """Return the tokens of a typed word: one, or the bigrams of several words.

    typed: `FREE`, `claim now`, `Subject:Free` or `host:Example.org`.  A text is written as the
    tokenizer does it: in lower case and without disguises.  Of other kinds than words and the
    Subject's the value stays as typed, but in lower case.
    """
    kind = kind_of(typed.lower())
    value = typed.partition(":")[2] if kind.name else typed
    if kind.prefix not in ("", "subject:"):
        return [kind.prefix + (value if kind.name == "case" else value.lower())]
    words = words_of(unspelled(undo_tricks(value)[0].lower().replace("’", "'"))[0])
    tokens = list(map(" ".join, itertools.pairwise(words))) if len(words) > 1 else words
    return [kind.prefix + token for token in tokens or [value]]


def of_other_kinds(token: str) -> list[str]:
    """Return the tokens of other kinds with the same value: `subject:free` for `free`, and back."""
    kind_of_token = kind_of(token)
    value = token.removeprefix(kind_of_token.prefix)
    return [kind.prefix + value for kind in KINDS if kind != kind_of_token]
