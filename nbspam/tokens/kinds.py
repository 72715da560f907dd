"""The kinds of tokens: the one list of them.

A token is a word, a number or a bigram as it is, or `kind:value`; no word has a colon, so the two
never meet.  A kind says what it stands for, which channel of the evidence it belongs to, and
whether an explanation shows its tokens one by one.  docs/tokens.md says what each is worth.
"""

from typing import NamedTuple


class Kind(NamedTuple):
    """A kind of token."""

    name: str  # what its tokens begin with, before the colon; "" for words, numbers and bigrams
    meaning: str
    is_header: bool = False  # of the header channel, whose evidence is bounded
    is_fragment: bool = False  # means little to a reader by itself


WORD = Kind("", "a word, a number, or two neighbours")
TRIGRAM = Kind("tri", "three characters of a short text", is_fragment=True)
HEADER = Kind("trace", "a word of the other header fields, which tell the way", is_header=True)
KINDS = (
    WORD,
    Kind("link", "a link, and what is odd about it"),
    Kind("host", "a link's host and its parent domains"),
    Kind("path", "a word of a link's path"),
    Kind("punct", "a run of punctuation"),
    Kind("caps", "how many words are in capitals"),
    Kind("trick", "a way of hiding text from a filter"),
    Kind("case", "a word of a short text as it is written"),
    Kind("sign", "a sign of a short text"),
    TRIGRAM,
    Kind("subject", "a token of the Subject"),
    Kind("from", "a word or domain of From"),
    Kind("to", "a word or domain of To and Cc"),
    Kind("reply-to", "a word or domain of Reply-To"),
    Kind("message-id", "a word or domain of Message-ID"),
    Kind("mailer", "a word of the mail program's name"),
    Kind("content", "a word of the content's type and encoding"),
    Kind("priority", "a word of the priority"),
    Kind("organization", "a word of Organization"),
    Kind("mime-version", "a word of MIME-Version"),
    Kind("mime", "the type of a part"),
    Kind("attachment", "a word or the ending of an attached file's name"),
    HEADER,
)
_BY_NAME = {kind.name: kind for kind in KINDS}
_HEADER_PREFIXES = tuple(f"{kind.name}:" for kind in KINDS if kind.is_header)
_FRAGMENT_PREFIXES = tuple(f"{kind.name}:" for kind in KINDS if kind.is_fragment)


def prefix(kind: Kind) -> str:
    """Return what the tokens of a kind begin with."""
    return f"{kind.name}:" if kind.name else ""


def kind_of(token: str) -> Kind:
    """Return a token's kind; a word with a colon that is no kind's name is a word."""
    name, colon, _ = token.partition(":")
    return _BY_NAME.get(name, WORD) if colon else WORD


def is_header(token: str) -> bool:
    """Return whether a token belongs to the header channel."""
    return token.startswith(_HEADER_PREFIXES)


def is_fragment(token: str) -> bool:
    """Return whether a token means little to a reader by itself."""
    return token.startswith(_FRAGMENT_PREFIXES)
