"""The tokens of plain text: words, numbers, money, pairs of words, links, punctuation, capitals.

A token is a word in lower case, or `kind:value`; no word holds a colon, so the two never meet.
What each kind is worth is measured in docs/tokens.md.
"""

import itertools
import re

from nbspam.tokens.unicode import MARKS, UNSPACED, western_bytes

# Every digit is a 0: phone numbers, prices and codes change with each campaign, their shape stays.
_DIGITS = {ord("_"): " "} | {
    zero + digit: "0"
    # ASCII, Arabic-Indic, Persian, Devanagari, Bengali, Thai
    for zero in (0x30, 0x660, 0x6F0, 0x966, 0x9E6, 0xE50)
    for digit in range(10)
}
_WESTERN_DIGITS = bytes.maketrans(b"123456789_", b"000000000 ")
_ASCII_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_NUMBER = r"[$£€¥₹]?0+(?:[.,]0+)*%?"
_ASCII_WORD = re.compile(rf"0*[a-z][a-z0]*(?:['-][a-z0]+)*|{_NUMBER}")
# \w is a letter or digit here (underscores are blanks by then), and much faster than [^\W_].
_PLAIN_WORD = re.compile(rf"0*[^\W0]\w*(?:['’-]\w+)*|{_NUMBER}")
_MARK = re.compile(f"[{MARKS}]")
_MARKED_WORD = re.compile(rf"0*[^\W0][\w{MARKS}]*(?:['’-][\w{MARKS}]+)*|{_NUMBER}")
_UNSPACED_RUN = re.compile(rf"[{UNSPACED}]+")
_LINK = re.compile(r"(?:https?://|www\.)[^\s<>\"'()\[\]]{1,500}")
_PATH_WORD = re.compile(r"[a-z]{2,20}")
# One class, so that the search runs at the speed of its fastest loop: with an alternative for each
# sign it took longer than all words together.
_PUNCTUATION = re.compile(r"[!?]+|[.*#=~+&$£-]{2,}")
_NO_HOST = re.compile(r"[^\w.-]+")
# No token may move a terminal's cursor or be impossible to write.
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_ASCII_CAPITALS = re.compile(r"[A-Z]{2,}(?![a-z])")
_CASED_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_SIGNS = frozenset('!?*$£€%&/:;()@+=#~"')

# Longer runs are random letters, encoded data, or text without spaces: no two messages share them.
WORD_LIMIT = 30
# The beginning of a text without mail headers, an SMS or a row of a table, gets tokens that a mail
# has no need of: every word as it is written, signs, and letter triples.
SHORT = 400
TRIPLE = "tri:"  # begins a letter triple's token


def words_of(lower: str) -> list[str]:
    """Return the words and numbers of a text in lower case, in order."""
    if lower.isascii():
        # Over bytes it is a table look-up, 15 times as fast as str.translate.
        words = _ASCII_WORD.findall(lower.encode().translate(_ASCII_DIGITS).decode())
    elif (western := western_bytes(lower)) is not None:
        words = _PLAIN_WORD.findall(western.translate(_WESTERN_DIGITS).decode("cp1252"))
    else:
        lower = lower.translate(_DIGITS)
        words = (_MARKED_WORD if _MARK.search(lower) else _PLAIN_WORD).findall(lower)
        if _UNSPACED_RUN.search(lower):
            words = [part for word in words for part in _split_unspaced(word)]
    if words and max(map(len, words)) > WORD_LIMIT:
        words = [word for word in words if len(word) <= WORD_LIMIT]
    return words


def _split_unspaced(word: str) -> list[str]:
    """Return the character pairs of what is written without spaces, the rest of a word as it is."""
    parts: list[str] = []
    end = 0
    for run in _UNSPACED_RUN.finditer(word):
        if run.start() > end:
            parts.append(word[end : run.start()])
        text = run[0]
        parts += [text[i : i + 2] for i in range(len(text) - 1)] or [text]
        end = run.end()
    if end < len(word):
        parts.append(word[end:])
    return parts


def text_tokens(text: str) -> set[str]:
    """Return the tokens of a text of any length: words, pairs, links, punctuation, capitals."""
    lower = text.lower().replace("’", "'")  # phones type the one, keyboards the other
    tokens: set[str] = set()
    if "://" in lower or "www." in lower:
        # A link's pieces are no words of the text: with them every mailing list's footer would
        # speak a dozen times (P5: 0.47 1-ROCA% with, 0.31 without).
        links = set(_LINK.findall(lower))
        lower = _LINK.sub(" http ", lower)
        for link in links:
            link_tokens(link, tokens)
    words = words_of(lower)
    tokens.update(words)
    # Two neighbours say more than each alone: P5 falls from 0.50 to 0.29 1-ROCA% with them.
    tokens.update(map(" ".join, itertools.pairwise(words)))
    tokens.update([f"punct:{run[:3]}" for run in set(_PUNCTUATION.findall(text))])
    if text.isascii():
        capitals = len(_ASCII_CAPITALS.findall(text))
    else:  # letters without case are no capitals
        capitals = sum(len(word) > 1 and word.isupper() for word in _CASED_WORD.findall(text))
    if capitals:
        tokens.add(f"caps:{min(capitals.bit_length(), 5)}")
    return tokens


def short_text_tokens(text: str) -> set[str]:
    """Return what a text of SMS length has besides: written words, signs and letter triples."""
    tokens = {f"case:{word}" for word in _cased(text) if word != word.lower()}
    tokens.update([f"sign:{sign}" for sign in _SIGNS.intersection(text)])
    spaced = f"_{'_'.join(_CONTROLS.sub(' ', text).lower().split())}_"
    tokens.update([TRIPLE + spaced[i : i + 3] for i in range(len(spaced) - 2)])
    return tokens


def _cased(text: str) -> list[str]:
    return [word for word in _CASED_WORD.findall(text) if len(word) <= WORD_LIMIT]


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
    labels = [label for label in _NO_HOST.sub("", host[:255]).split(".") if label]
    if not labels:
        return
    if all(map(str.isdigit, labels)):
        tokens.add(f"{prefix}ip")
        labels = labels[:2]
        tokens.add(f"{prefix}{'.'.join(labels)}")
        return
    for i in range(max(0, len(labels) - 6), len(labels)):
        tokens.add(f"{prefix}{'.'.join(labels[i:])[-80:]}")
