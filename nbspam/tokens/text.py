"""The tokens of plain text: words, numbers, money, pairs of words, links, punctuation.

A token is a word in lower case, or `kind:value`; no word holds a colon, so the two never meet.
What each kind is worth is measured in docs/research/tokens.md.
"""

import itertools
import re
from collections.abc import Callable, Iterator
from typing import TypeVar

from nbspam.patterns import lazy_pattern
from nbspam.tokens.kinds import KINDS, TRIGRAM, kind_of
from nbspam.tokens.unicode import (
    MARKS,
    UNSPACED,
    may_have,
    strange_characters,
    undo_tricks,
    western_bytes,
)

Value = TypeVar("Value")

# Longer keys are not met again, and would cost memory by the megabyte.
_KEY_LIMIT = 200


class Memo(dict[str, Value]):
    """What was worked out before: the same words and fields stand in thousands of mails.

    A dict that works out what it lacks, and forgets everything when it is full.

    `map(memo.__getitem__, keys)` runs in C for what is known: functools.lru_cache, which keeps an
    order of use besides, took 240 ms where this takes 180 (908,000 keys, 64,000 of them different).
    """

    def __init__(self, function: Callable[[str], Value], limit: int) -> None:
        """Remember `function`'s values of up to `limit` keys; it must give the same each time."""
        super().__init__()
        self._function = function
        self._limit = limit

    def __missing__(self, key: str) -> Value:
        value = self._function(key)
        if len(key) <= _KEY_LIMIT:
            if len(self) >= self._limit:
                self.clear()
            self[key] = value
        return value


# Every digit is a 0: phone numbers, prices and codes change with each campaign, their shape stays.
_DIGITS = {ord("_"): " "} | {
    zero + digit: "0"
    # ASCII, Arabic-Indic, Persian, Devanagari, Bengali, Thai
    for zero in (0x30, 0x660, 0x6F0, 0x966, 0x9E6, 0xE50)
    for digit in range(10)
}


def _western_table(keep: Callable[[str], bool]) -> bytes:
    """Return a table for bytes.translate that turns what is not to be kept into blanks.

    Over bytes this is a table look-up, 15 times as fast as str.translate or a pattern.
    """
    characters = bytes(range(256)).decode("cp1252", "replace")
    return bytes(byte if keep(character) else 32 for byte, character in enumerate(characters))


# What can stand in a word or number, every digit as a 0.
_WORD_BYTES = _western_table(lambda c: c.isalnum() or c in "'’-.,$£€¥%").translate(
    bytes.maketrans(b"123456789", b"000000000")
)


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
_CONTROLS = lazy_pattern("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
CASED_WORD = lazy_pattern(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
SIGNS = frozenset('!?*$£€%&/:;()@+=#~"')

# Longer runs are random letters, encoded data, or text without spaces: no two messages share them.
WORD_LIMIT = 30
_TRIGRAM = TRIGRAM.prefix
_REPEATS = 300  # characters from which on a field's words repeat enough
# The beginning of a text without mail headers, an SMS or a row of a table, gets tokens that a mail
# has no need of: every word as it is written, signs, and letter triples.
SHORT = 400


# A word spelled letter by letter, with the same sign between all of them.
SPELLED = lazy_pattern(r"(?<![^\W_])[^\W\d_]([ .*|~+/-])[^\W\d_](?:\1[^\W\d_]){2,60}(?![^\W_])")
# Digits for letters within a word.  (No 2, 6 and 9: those mean other things in SMS.)
LETTERS = str.maketrans("013457", "oieast")
LEET = lazy_pattern(r"(?<=[a-zß-ÿ])[013457]{1,2}(?=[a-zß-ÿ])")
UNDERSCORE = lazy_pattern(r"_(?<=[^\W\d_]_)(?=[^\W\d_])")


def _shape(character: str) -> int:
    """Return what stands for a character in the shape of a text."""
    if character.isalpha():
        return ord("a")
    if character in "013457":
        return ord("0")
    return ord(" ") if character in " .*|~+/-\n\t" else ord("!")


# A search in a text's shape takes a fraction of the time of a pattern.
_SHAPES = bytes(map(_shape, bytes(range(256)).decode("cp1252", "replace")))
_SPELLED_SHAPE, _LEET_SHAPES = b" a a a a ", (b"a0a", b"a00a")


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
    at = shape.find(_SPELLED_SHAPE)
    pieces, end = [], 0
    while at >= 0:
        if word := SPELLED.match(lower, at):
            pieces += [lower[end:at], word[0].replace(word[1], "")]
            end = word.end()
        at = shape.find(_SPELLED_SHAPE, max(at + 1, end))
    return "".join([*pieces, lower[end:]]) if pieces else lower


def _with_letters(lower: str, shape: bytes) -> str:
    """Return a text with letters for the digits within its words."""
    for disguise in _LEET_SHAPES:
        at = shape.find(disguise)
        if at < 0:
            continue
        pieces, end = [], 0
        while at >= 0:
            last = at + len(disguise) - 1
            pieces += [lower[end : at + 1], lower[at + 1 : last].translate(LETTERS)]
            end = last
            at = shape.find(disguise, last)
        lower = "".join([*pieces, lower[end:]])
    return lower


def words_of(lower: str) -> list[str]:
    """Return the words and numbers of a text in lower case, in order."""
    if (data := western_bytes(lower)) is not None:
        data = data.translate(_WORD_BYTES)
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
            words = [part for word in words for part in _split_unspaced(word)]
    if words and max(map(len, words)) > WORD_LIMIT:
        words = [word for word in words if len(word) <= WORD_LIMIT]
    return words


def word_places(lower: str) -> Iterator[tuple[str, int]]:
    """Yield what `words_of` returns, each with the place where it begins; seven times as slow."""
    lower = lower.translate(_DIGITS)
    pattern = _MARKED_WORD if _MARK.search(lower) else _PLAIN_WORD
    for match in pattern.finditer(lower):
        start = match.start()
        if not _UNSPACED_RUN.search(match[0]):
            if len(match[0]) <= WORD_LIMIT:
                yield match[0], start
            continue
        for part in _split_unspaced(match[0]):
            # The pairs of a run overlap, so each begins one further on than the one before.
            start = lower.index(part, start)
            if len(part) <= WORD_LIMIT:
                yield part, start
            start += 1


def different_words_of(lower: str) -> set[str]:
    """Return the different words and numbers of a text in lower case."""
    if len(lower) > _REPEATS and (data := western_bytes(lower)) is not None:
        # Two in three of what stands between blanks in a mail's Received lines is there twice: the
        # pattern need see it once only.
        lower = b" ".join(set(data.translate(_WORD_BYTES).split())).decode("cp1252")
    return set(words_of(lower))


def _split_unspaced(word: str) -> list[str]:
    """Return the character pairs of what is written without spaces, the rest of a word as it is."""
    parts: list[str] = []
    for i, piece in enumerate(_UNSPACED_RUN.split(word)):
        if i % 2:
            parts += [piece[k : k + 2] for k in range(len(piece) - 1)] or [piece]
        elif piece:
            parts.append(piece)
    return parts


def text_tokens(text: str) -> dict[str, None]:
    """Return the tokens of a text of any length: words, pairs, links, punctuation.

    They are the keys of a dict, which has them in the order in which the text does, the same in
    every process: to sort them took 60 µs a mail.
    """
    lower = text.lower().replace("’", "'")  # phones type the one, keyboards the other
    tokens: set[str] = set()
    if "://" in lower or "www." in lower:
        # A link's pieces are no words of the text: with them every mailing list's footer would
        # speak a dozen times (P5: 0.47 1-ROCA% with, 0.31 without).
        pieces = LINK.split(lower)  # every second one is a link
        lower = " http ".join(pieces[::2])
        for link in set(pieces[1::2]):
            link_tokens(link, tokens)
    lower, is_spelled = unspelled(lower)
    if is_spelled:
        tokens.add("trick:spelled")
    words = words_of(lower)
    # Two neighbours say more than each alone: P5 falls from 0.50 to 0.29 1-ROCA% with them.
    pairs = map(" ".join, itertools.pairwise(words))
    data = western_bytes(text)
    signs = text if data is None else _runs_of_signs(data)
    tokens.update([f"punct:{run[:3]}" for run in set(PUNCTUATION.findall(signs))])
    return dict.fromkeys(itertools.chain(words, pairs, sorted(tokens)))


# The £ is the one sign beyond ASCII among those of PUNCTUATION.
_SIGN_BYTES = _western_table(lambda c: c in "!?.*#=~+&$£-")


def _runs_of_signs(data: bytes) -> str:
    """Return each different run of punctuation once.

    So the pattern need not see all the text: 7 µs a mail in place of 53.
    """
    return b" ".join(set(data.translate(_SIGN_BYTES).split())).decode("cp1252")


def every_token(text: str) -> Iterator[str]:
    """Yield the tokens of `text_tokens` as often as they occur."""
    lower = text.lower().replace("’", "'")
    pieces = LINK.split(lower)
    words = words_of(unspelled(" http ".join(pieces[::2]))[0])
    yield from words
    yield from map(" ".join, itertools.pairwise(words))
    for link in pieces[1::2]:
        found: set[str] = set()
        link_tokens(link, found)
        yield from found
    data = western_bytes(text)
    signs = text if data is None else data.translate(_SIGN_BYTES).decode("cp1252")
    for run in PUNCTUATION.findall(signs):
        yield f"punct:{run[:3]}"


def is_capitals(word: str) -> bool:
    """Return whether a word of several letters is in capitals."""
    return len(word) > 1 and word.isupper()


def capitals_token(words: int) -> list[str]:
    """Return the token of so many words in capitals, if there are any."""
    return [f"caps:{min(words.bit_length(), 5)}"] if words else []


def short_text_tokens(text: str) -> list[str]:
    """Return what a text of SMS length has besides: written words, signs, capitals and trigrams.

    As often as they occur.  Capitals are counted here alone: in every text they took 18 µs a mail
    and made no difference; without them a filter of 50 SMS of each class blocks 2.2 % of the ham
    instead of 1.9 (tests/learning/test_cut_off.py), and P1's 1-ROCA% is .1367 instead of .1354.
    """
    words = [word for word in CASED_WORD.findall(text) if len(word) <= WORD_LIMIT]
    tokens = [f"case:{word}" for word in words if word != word.lower()]
    tokens += [f"sign:{sign}" for sign in text if sign in SIGNS]
    tokens += capitals_token(sum(map(is_capitals, words)))
    spaced = f"_{'_'.join(_CONTROLS.sub(' ', text).lower().split())}_"
    tokens += [_TRIGRAM + spaced[i : i + 3] for i in range(len(spaced) - 2)]
    return tokens


def link_tokens(link: str, tokens: set[str]) -> None:
    """Add a link's tokens: that there is one, its host and parent domains, the words of its path.

    link: in lower case, with or without its scheme.
    """
    tokens.add("link:")
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
    if path:
        tokens.update([f"path:{word}" for word in _PATH_WORD.findall(path)])
        if "%" in path:
            tokens.add("link:escaped")


def add_host(prefix: str, host: str, tokens: set[str]) -> None:
    """Add a host and each of its parent domains; of a bare address, that it is one."""
    tokens.update([prefix + name for name in _host_names[host]])


def _names_of_host(host: str) -> tuple[str, ...]:
    labels = [label for label in _NO_HOST.sub("", host[:255]).split(".") if label]
    if labels and all(map(str.isdigit, labels)):
        return "ip", ".".join(labels[:2])
    return tuple([".".join(labels[i:])[-80:] for i in range(max(0, len(labels) - 6), len(labels))])


_host_names = Memo(_names_of_host, limit=1 << 12)


def typed_tokens(typed: str) -> list[str]:
    """Return the tokens that a typed word stands for: one, or the bigrams of several words.

    typed: `FREE`, `claim now`, `Subject:Free` or `host:Example.org`.  A text is written as the
    tokenizer does it: in lower case and without disguises.  Of other kinds than words and the
    Subject's the value stays as typed, but in lower case.
    """
    kind = kind_of(typed.lower())
    value = typed.partition(":")[2] if kind.name else typed
    if kind.prefix in ("", "subject:"):
        tokens = _text_tokens(value)
        return [kind.prefix + token for token in tokens or [value]]
    return [kind.prefix + (value if kind.name == "case" else value.lower())]


def _text_tokens(text: str) -> list[str]:
    lower = undo_tricks(text)[0].lower().replace("’", "'")
    words = words_of(unspelled(lower)[0])
    return list(map(" ".join, itertools.pairwise(words))) if len(words) > 1 else words


def of_other_kinds(token: str) -> list[str]:
    """Return what a token would be as each other kind: `subject:free` for `free`, and back."""
    own = kind_of(token)
    value = token.removeprefix(own.prefix)
    return [kind.prefix + value for kind in KINDS if kind != own]
