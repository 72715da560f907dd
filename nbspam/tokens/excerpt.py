"""What a reader sees of a message, and where its tokens stand in that.

The places follow the rules of `text.py` and `headers.py`; what is seldom met and hard to place (how
parts are encoded) has none.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from nbspam.reading.message import Message
from nbspam.tokens.kinds import SENDER, TRIGRAM
from nbspam.tokens.text import (
    CASED_WORD,
    LEET,
    LETTERS,
    LINK,
    PUNCTUATION,
    SHORT,
    SIGNS,
    SPELLED,
    UNDERSCORE,
    WORD_LIMIT,
    VisibleText,
    capitals_token,
    is_capitals,
    link_tokens,
    undo_tricks,
    word_places,
)

_FIELD_LIMIT = 300  # characters of the Subject and of From
_STRANGE = "\ufffd"


class Excerpt(NamedTuple):
    """The part of a message that is shown: harmless, and of bounded size.

    The only control character in it is the line feed, which ends a line of the text.
    """

    subject: str  # empty if there is none, as of a text without a header
    sender: str
    text: str  # the beginning
    characters: int  # of the whole text, as it is shown

    @property
    def rest(self) -> int:
        """How many characters of the text are left out."""
        return self.characters - len(self.text)


def excerpt_of(message: Message, texts: list[VisibleText], limit: int) -> Excerpt:
    """Return the excerpt of a message.

    texts: its texts, as `message_tokens` has them.  limit: the most characters of text.
    """
    whole = "\n".join(filter(None, (printable(text) for text in _different(texts))))
    return Excerpt(
        _field(message.header("subject")), _field(message.header("from")), whole[:limit], len(whole)
    )


def printable(text: str) -> str:
    """Return a text that can be shown: no control character but line feeds, no format character.

    So it can neither command a terminal nor change the order in which it is read.  Blanks are
    single, and so are blank lines.
    """
    lines = [" ".join(line.split()) for line in text.split("\n")]
    kept = [line for i, line in enumerate(lines) if line or (i and lines[i - 1])]
    text = "\n".join(kept).strip("\n")
    if text.replace("\n", "").isprintable():
        return text
    return "".join(c if c == "\n" or c.isprintable() else _STRANGE for c in text)


def _field(value: str) -> str:
    shown = printable(undo_tricks(value)[0].replace("\n", " "))
    return shown if len(shown) <= _FIELD_LIMIT else shown[: _FIELD_LIMIT - 1] + "…"


def _different(texts: list[VisibleText]) -> list[str]:
    """Return the texts, without the pages that repeat a plain text."""
    found: list[str] = []
    words: set[str] = set()
    for text, targets, _ in texts:
        own = set(text.lower().split())
        if targets is None or 2 * len(own & words) < len(own) or not words:
            found.append(text)
            words |= own
    return found


_ADDRESS = re.compile(r"@([a-z0-9.-]{1,255})")
_PIECE = re.compile(r"[a-z0-9._-]{3,}")


class Place(NamedTuple):
    """A token, and the characters that it was made of: text[start:end]."""

    token: str
    start: int
    end: int


def text_places(text: str, is_short: bool = False) -> Iterator[Place]:
    """Yield the places of the tokens of a text; a bigram has that of each of its words.

    is_short: whether the tokens of a text of SMS length are wanted too.
    """
    lower = _lower(text)
    links = list(LINK.finditer(lower))
    for link in links:
        yield from _link_places(link[0], link.start())
        # As the tokenizer does it, where a link of five characters or more leaves no gap.
        gap = " http".ljust(len(link[0]))
        lower = f"{lower[: link.start()]}{gap}{lower[link.end() :]}"
    words = list(_undisguised(lower))
    yield from words
    for one, other in pairwise(words):
        bigram = f"{one.token} {other.token}"
        yield from (one._replace(token=bigram), other._replace(token=bigram))
    for run in PUNCTUATION.finditer(text):
        yield Place(f"punct:{run[0][:3]}", *run.span())
    if is_short:
        yield from _short_text_places(text[:SHORT])


def sender_places(sender: str) -> Iterator[Place]:
    """Yield the places of the tokens of a From field, of the header channel's too."""
    lower = _lower(sender)
    for word, start in word_places(lower):
        yield Place(f"from:{word}", start, start + len(word))
    for address in _ADDRESS.finditer(lower):
        labels = address[1].split(".")
        for i in range(len(labels)):
            host = ".".join(labels[i:])
            yield Place(f"from:@{host}", address.end() - len(host), address.end())
    for piece in _PIECE.finditer(lower):
        yield Place(f"{SENDER.prefix}{piece[0]}", *piece.span())


def _lower(text: str) -> str:
    """Return a text in lower case, each character in its place."""
    lower = text.lower()
    if len(lower) != len(text):  # of a dotted capital I there would be two
        lower = "".join(c.lower() if len(c.lower()) == 1 else c for c in text)
    return lower.replace("’", "'")


def _link_places(link: str, offset: int) -> Iterator[Place]:
    for token in sorted(link_tokens(link)):
        value = token.partition(":")[2]
        at = link.find(value) if value else -1
        start, end = (0, len(link)) if at < 0 else (at, at + len(value))
        yield Place(token, offset + start, offset + end)


def _undisguised(lower: str) -> Iterator[Place]:
    """Yield the words of a text, those too that are disguised: v.i.a.g.r.a, v1agra, via_gra."""
    places = list(range(len(lower)))

    def leave_out(gone: set[int]) -> str:
        places[:] = [place for i, place in enumerate(places) if i not in gone]
        return "".join(c for i, c in enumerate(lower) if i not in gone)

    if "_" in lower:
        lower = leave_out({match.start() for match in UNDERSCORE.finditer(lower)})
    lower = LEET.sub(lambda digits: digits[0].translate(LETTERS), lower)
    signs = [
        i for match in SPELLED.finditer(lower) for i in range(*match.span()) if lower[i] == match[1]
    ]
    if signs:
        lower = leave_out(set(signs))
    for word, start in word_places(lower):
        yield Place(word, places[start], places[start + len(word) - 1] + 1)


def _short_text_places(text: str) -> Iterator[Place]:
    cased = list(CASED_WORD.finditer(text))
    capitals = [w.span() for w in cased if len(w[0]) <= WORD_LIMIT and is_capitals(w[0])]
    for token in capitals_token(len(capitals)):
        yield from (Place(token, *span) for span in capitals)
    for word in cased:
        if word[0] != word[0].lower():
            yield Place(f"case:{word[0]}", *word.span())
    for i, sign in enumerate(text):
        if sign in SIGNS:
            yield Place(f"sign:{sign}", i, i + 1)
    shown = text.lower() if len(text.lower()) == len(text) else text
    kept = [i for i, c in enumerate(text) if not c.isspace() or not text[i - 1 : i].isspace()]
    spaced = f"_{''.join('_' if shown[i].isspace() else shown[i] for i in kept)}_"
    for i in range(len(spaced) - 2):
        inside = kept[max(0, i - 1) : i + 2]
        yield Place(TRIGRAM.prefix + spaced[i : i + 3], inside[0], inside[-1] + 1)
