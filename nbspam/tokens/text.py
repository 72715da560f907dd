"""The tokens of plain text: words, numbers, money, pairs of words, links, punctuation.

A token is a word in lower case, or `kind:value`; a word has no colon, so it never equals a
`kind:value`.  docs/research/ideas-tried.md measures the value of each kind.
"""

import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import NamedTuple, TypeVar

from nbspam.patterns import lazy_pattern
from nbspam.tokens.disguises import (
    DIGIT_BYTES,
    WESTERN,
    Prepared,
    any_in_ranges,
    remove_encoded,
    strange_characters,
    undo_letter_spacing,
    undo_tricks,
    western_bytes,
    western_table,
)
from nbspam.tokens.kinds import OPENING_PIECE, TRIGRAM

Value = TypeVar("Value")

# Longer keys seldom occur again, and would cost megabytes.
_KEY_LIMIT = 200


class Memo(dict[str, Value]):
    """A cache of a function's values, because thousands of mails have the same words and fields.

    A dict that computes missing values, and is cleared when it is full.

    `map(memo.__getitem__, keys)` runs in C for known keys: 180 ms for 908,000 keys, 64,000 of them
    different, while functools.lru_cache, which also keeps the order of use, took 240 ms.  With a
    Python method that leaves out long keys, pages took 1.08 times as long.
    """

    def __init__(
        self, function: Callable[[str], Value], limit: int, longest: int = _KEY_LIMIT
    ) -> None:
        """function: must be deterministic; limit: keys that are kept.

        longest: characters of a key that is kept.
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


class Text(Prepared):
    """A text that also keeps its links and words."""

    @cached_property
    def cut(self) -> "CutText":
        """The links and words of the text."""
        return _links_and_words(self)


class CutText(NamedTuple):
    """A text cut into links and words."""

    links: list[str]
    words: list[str]
    has_spelled: bool  # whether a word was spelled letter by letter


class VisibleText(NamedTuple):
    """The text of one part of a message, with its tricks undone."""

    text: Text  # in plain sight
    targets: list[str] | None  # targets of HTML's links and images; None for plain text
    hidden: str = ""  # text that counts for spam only


# Words

# Python's \w does not match vowel signs and tone marks, so they would split words.
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

# Every digit becomes 0, because phone numbers, prices and codes change with each campaign, but keep
# their shape.
_DIGITS = {ord("_"): " "} | {
    zero + digit: "0"
    # ASCII, Arabic-Indic, Persian, Devanagari, Bengali, Thai
    for zero in (0x30, 0x660, 0x6F0, 0x966, 0x9E6, 0xE50)
    for digit in range(10)
}


# Characters allowed in a word or number, with every digit written as 0.
_WORD_BYTES = western_table(lambda c: c.isalnum() or c in "'’-.,$£€¥%").translate(DIGIT_BYTES)


def _word_pattern(letter: str, inner: str, joint: str, money: str) -> re.Pattern[str]:
    """Make the pattern of words and numbers, for texts whose digits are 0, without underscores.

    letter: characters of which a word has at least one; inner: characters within a word; joint:
    characters between two parts of a word; money: currency signs.

    The pattern is equivalent to `0*LETTER INNER*(?:JOINT INNER+)*|[$£]?0+(?:[.,]0+)*%?`, but takes
    59 µs a mail instead of 85 µs: the pattern starts with a single set, so that the search jumps
    from one possible start to the next, and a word without a joint needs no loop over a group.
    """
    more = rf"{inner}*(?:{joint}{inner}+(?:{joint}{inner}+)*|)"
    fraction = r"(?:[.,]0+(?:[.,]0+)*|)(?:%|)"
    return lazy_pattern(
        rf"[{inner[1:-1]}{money}]"
        rf"(?:(?<={letter}){more}|(?<=0)0*(?:{letter}{more}|{fraction})|(?<=[{money}])0+{fraction})"
    )


_ASCII_WORD = _word_pattern("[a-z]", "[a-z0]", "['-]", "$")
_MONEY = "$£€¥₹"
# Underscores are blanks in these texts, so \w matches a letter or digit, much faster than [^\W_].
_PLAIN_WORD = _word_pattern(r"[^\W0]", r"[\w]", "['’-]", _MONEY)


# The patterns below take 6 ms to compile, so they are compiled late: most mails are Western.
_MARK = lazy_pattern(f"[{MARKS}]")
_MARKED_WORD = _word_pattern(r"[^\W0]", rf"[\w{MARKS}]", "['’-]", _MONEY)
_UNSPACED_RUN = lazy_pattern(rf"([{UNSPACED}]+)")
LINK = lazy_pattern(r"((?:https?://|www\.)[^\s<>\"'()\[\]]{1,500})")
_PATH_WORD = lazy_pattern(r"[a-z]{2,20}")
# The pattern has two sets, because with an alternative for each sign, the search took longer than
# for all words.
PUNCTUATION = re.compile(r"[!?]+|[.*#=~+&$£-]{2,}")
_HOST_LIMIT = 255  # characters
_NO_HOST = lazy_pattern(r"[^\w.-]+")
# Characters that move a terminal's cursor or cannot be written; no token has them.
_UNWRITABLE = lazy_pattern("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
CASED_WORD = lazy_pattern(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
SIGNS = frozenset('!?*$£€%&/:;()@+=#~"')

# Longer runs are random letters, encoded data or text without spaces, which do not occur again.
WORD_LIMIT = 30
# Searching for long runs takes a sixth of the time of measuring all words' lengths.
_RUNS, _LONG_RUN = b"a" * 32 + b" " + b"a" * 223, b"a" * (WORD_LIMIT + 1)
_TRIGRAM = TRIGRAM.prefix
# The first 400 characters of a text without a mail's header (an SMS, a row of a table) have extra
# tokens: every word as written, signs, and character trigrams.
SHORT_TEXT_LENGTH = 400


def readable(text: str, encoded: list[str] | None = None) -> tuple[Text, set[str]]:
    """Undo tricks and remove encoded data; return the text, and a token for each trick.

    encoded: receives the encoded data.
    """
    text, tricks = undo_tricks(Text(text))
    text = remove_encoded(text, encoded)
    return text if isinstance(text, Text) else Text(text), tricks


def words_of(lower: str) -> list[str]:
    """Return the words and numbers of a text in lower case, in order."""
    has_long = True
    if (data := western_bytes(lower)) is not None:
        data = data.translate(_WORD_BYTES)
        has_long = _LONG_RUN in data.translate(_RUNS)
        if data.isascii():  # 75 % of Western texts are ASCII except for a © or a hard blank
            words = _ASCII_WORD.findall(data.decode("ascii"))
        else:
            words = _PLAIN_WORD.findall(data.decode("cp1252"))
    else:
        lower = lower.translate(_DIGITS)
        characters = strange_characters(lower)
        has_mark = any_in_ranges(characters, MARKS) and _MARK.search(lower)
        words = (_MARKED_WORD if has_mark else _PLAIN_WORD).findall(lower)
        if any_in_ranges(characters, UNSPACED) and _UNSPACED_RUN.search(lower):
            words = [part for word in words for part in split_unspaced(word)]
    if has_long:
        words = [word for word in words if len(word) <= WORD_LIMIT]
    return words


_REPEATS = 300  # characters; in shorter fields, few words are repeated


def different_words_of(lower: str) -> set[str]:
    """Return the different words and numbers of a text in lower case."""
    if len(lower) > _REPEATS and (data := western_bytes(lower)) is not None:
        # Two thirds of the pieces in a mail's Received lines occur twice, and the pattern needs to
        # see each piece only once.
        lower = b" ".join(set(data.translate(_WORD_BYTES).split())).decode("cp1252")
    return set(words_of(lower))


def written_numbers(text: str) -> dict[str, str]:
    """Map words and bigrams with digits to the text as written, in lower case."""
    lower = LINK.sub(" http ", text.lower().replace("’", "'"))
    matches = _PLAIN_WORD.finditer(lower.translate(_DIGITS))  # as long as the text
    words = [(match[0], lower[slice(*match.span())]) for match in matches]
    pairs = [(f"{a} {b}", f"{c} {d}") for (a, c), (b, d) in itertools.pairwise(words)]
    return {token: written for token, written in reversed(words + pairs) if "0" in token}


def split_unspaced(word: str) -> list[str]:
    """Split unspaced scripts into character pairs; the rest of a word stays unchanged."""
    parts: list[str] = []
    for i, piece in enumerate(_UNSPACED_RUN.split(word)):
        if i % 2:
            parts += [piece[k : k + 2] for k in range(len(piece) - 1)] or [piece]
        elif piece:
            parts.append(piece)
    return parts


def _links_and_words(text: str) -> CutText:
    lower = text.lower().replace("’", "'")  # phones type ’, keyboards '
    links: list[str] = []
    if "://" in lower or "www." in lower:
        # A link's pieces do not count as words, because a mailing list's footer would give a dozen
        # words (P5: 1-ROCA% 0.47 with them, 0.31 without).
        pieces = LINK.split(lower)  # every second piece is a link
        lower, links = " http ".join(pieces[::2]), pieces[1::2]
    lower, is_spelled = undo_letter_spacing(Prepared(lower))
    return CutText(links, words_of(lower), is_spelled)


# PUNCTUATION's signs; only £ is beyond ASCII.
_SIGN_BYTES = western_table(lambda c: c in "!?.*#=~+&$£-")


def text_tokens(text: str) -> dict[str, None]:
    """Return the tokens of a text of any length: words, pairs, links, punctuation.

    They are the keys of a dict, in the text's order, which is the same in every process; sorting
    them took 60 µs a mail.
    """
    text = text if isinstance(text, Text) else Text(text)
    links, words, has_spelled = text.cut
    tokens = set().union(*map(link_tokens, set(links)))
    if has_spelled:
        tokens.add("trick:spelled")
    # Pairs of neighbours add information: P5's 1-ROCA% falls from 0.50 to 0.29.
    # (zip reuses its tuple.)
    pairs = map(" ".join, zip(words, itertools.islice(words, 1, None), strict=False))
    tokens.update([f"punct:{run[:3]}" for run in set(_punctuation(text, set))])
    return dict.fromkeys(itertools.chain(words, pairs, sorted(tokens)))


def repeated_text_tokens(text: Text) -> Iterator[str]:
    """Yield the tokens of `text_tokens` as often as they occur."""
    links, words, _ = text.cut
    yield from words
    yield from map(" ".join, itertools.pairwise(words))
    yield from itertools.chain.from_iterable(map(link_tokens, links))
    for run in _punctuation(text, list):
        yield f"punct:{run[:3]}"


def _punctuation(text: Text, collect: Callable[[list[bytes]], Iterable[bytes]]) -> list[str]:
    """Return the runs of punctuation in a text.

    collect: set, for each different run at least once (7 µs a mail instead of 53 µs); or list, for
    every run.
    """
    signs: str = text
    if text.western is not None:
        signs = b" ".join(collect(text.western.translate(_SIGN_BYTES).split())).decode("cp1252")
    return PUNCTUATION.findall(signs)


def short_text_tokens(text: str) -> list[str]:
    """Return the extra tokens of a text of SMS length: written words, signs, capitals, trigrams.

    Each token is returned as often as it occurs.  Only short texts have a token for capitals,
    because it took 18 µs a mail and made no difference there.  For SMS it makes a difference:

        capitals    ham blocked after 50 SMS of each class    1-ROCA% in P1
        counted     1.9 %                                     0.1354
        not         2.2 % (tests/learning/test_cut_off.py)    0.1367
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
    """Return a link's tokens: `link:`, its host and parent domains, and its path's words.

    link: a link in lower case, with or without its scheme.
    """
    tokens = {"link:"}
    rest = link.partition("://")[2] or link
    host, slash, path = rest.partition("/")
    if not slash:
        host, _, path = rest.partition("?")
    user, at, host = host.rpartition("@")
    if at and user:
        tokens.add("link:user")  # the target follows a text that looks like the host
    host, colon, port = host.partition(":")
    if colon and port.strip("0123456789") == "" and port not in ("", "80", "443"):
        tokens.add("link:port")
    add_host("host:", host, tokens)
    tokens.update([f"path:{word}" for word in _PATH_WORD.findall(path)])
    if "%" in path:
        tokens.add("link:escaped")
    return tokens


def add_host(prefix: str, host: str, tokens: set[str]) -> None:
    """Add a host and its parent domains; for an address add `ip` and its network."""
    tokens.update([prefix + name for name in _host_names[host]])


def _names_of_host(host: str) -> tuple[str, ...]:
    labels = [label for label in _NO_HOST.sub("", host[:255]).split(".") if label]
    if labels and all(map(str.isdigit, labels)):
        return "ip", ".".join(labels[:2])
    return tuple([".".join(labels[i:])[-80:] for i in range(max(0, len(labels) - 6), len(labels))])


_host_names = Memo(_names_of_host, limit=1 << 12)


# The opening: a second, small view of a message, by its first words and its punctuation.
#
# Words count equally at any position.  The first words of a text have statistics of their own, and
# words do not contain punctuation: 4-grams, which need 750 tokens a mail, use both
# (docs/research/ideas-tried.md).  Tokens from the Subject and the text in plain sight, in lower
# case:
#
#     open:hello   a piece between blanks, in the first 500 characters, cut to 5 characters
#     open:!,      a piece without its letters, in the first 12,000 characters, cut to 12
#
# Digits are 0.  Scripts without spaces (Chinese, Thai) are split into pairs.

_PIECES_LENGTH, _SIGNS_LENGTH = 500, 12_000  # characters
_BLANKS = 4  # a text with many blanks is searched in _BLANKS * _PIECES_LENGTH characters
_PIECE_LENGTH, _SIGN_RUN_LENGTH = 5, 12
# The letters that `_LETTERS` matches, including ¹ and ½.
_LETTER_BYTES = bytes(b for b, c in enumerate(WESTERN) if c.isalnum() and not c.isdecimal())
_LOWER_BYTES = WESTERN.lower().encode("cp1252", "replace").translate(DIGIT_BYTES)
_LETTERS = lazy_pattern(r"[^\W\d_]+")
_DIGIT, _MARKS = lazy_pattern(r"\d"), lazy_pattern(f"[{MARKS}]+")


def opening_tokens(texts: Iterable[str]) -> dict[str, None]:
    """Return the tokens of the opening, in the order of the text.

    texts: the Subject, and the text of each part in plain sight.
    """
    text = " ".join(texts)[:_SIGNS_LENGTH]
    data = western_bytes(text)
    n_searched = _BLANKS * _PIECES_LENGTH
    if data is None:
        lower = text[:n_searched].lower()
        left = _DIGIT.sub("0", _MARKS.sub("", _LETTERS.sub("", text)))
    else:
        lower = data[:n_searched].translate(_LOWER_BYTES).decode("cp1252")
        left = data.translate(DIGIT_BYTES, _LETTER_BYTES).decode("cp1252")
    first = " ".join(lower[: 2 * _PIECES_LENGTH].split())
    if len(first) <= _PIECES_LENGTH:  # many blanks
        first = " ".join(lower.split())
    pieces = first[:_PIECES_LENGTH].split()
    if data is None:
        pieces = [part for piece in pieces for part in split_unspaced(piece)]
        pieces = [_DIGIT.sub("0", piece[:_PIECE_LENGTH]) for piece in pieces]
    prefix, signs = OPENING_PIECE.prefix, f"{OPENING_PIECE.prefix}!"
    tokens = [prefix + piece[:_PIECE_LENGTH] for piece in pieces]
    # Two thirds of the runs of signs are repeated.
    tokens += [signs + run[:_SIGN_RUN_LENGTH] for run in dict.fromkeys(left.split())]
    return dict.fromkeys(tokens)
