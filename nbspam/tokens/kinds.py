"""The kinds of tokens: the one list of them.

A token is a word, a number or a bigram as it is, or `kind:value`; no word has a colon, so the two
never meet.  A kind says what it stands for, which channel of the evidence it belongs to, and
whether an explanation shows its tokens one by one.  docs/tokens.md says what each is worth.
"""

from collections.abc import Iterable
from typing import NamedTuple

# Channels: what a message says; what its sender and mail program wrote into the header; the way it
# came; and who took it in, which is not evidence but the measure of how far the way is trusted.
TEXT, FIELDS, HEADER, HOST = range(4)


class Kind(NamedTuple):
    """A kind of token."""

    name: str  # what its tokens begin with, before the colon; "" for words, numbers and bigrams
    meaning: str
    channel: int = TEXT
    is_fragment: bool = False  # means little to a reader by itself

    @property
    def prefix(self) -> str:
        """What its tokens begin with."""
        return f"{self.name}:" if self.name else ""


WORD = Kind("", "a word, a number or a bigram")
TRIGRAM = Kind("tri", "a character trigram of a short text", is_fragment=True)
RECEIVED = Kind("received", "a word or address of Received", HEADER)
RETURN_PATH = Kind("return-path", "a word or address of Return-Path", HEADER)
SENDER = Kind("sender", "a word of From as the header channel has it", HEADER)
RECIPIENT = Kind("recipient", "a word of To or Cc as the header channel has it", HEADER)
OTHER_FIELD = Kind("header", "the name of another header field, or a word of it", HEADER)
COLLECTED_BY = Kind("by", "the host that took the mail in", HOST)
KINDS = (
    WORD,
    Kind("link", "a link, and what is odd about it"),
    Kind("host", "a link's host and its parent domains"),
    Kind("path", "a word of a link's path"),
    Kind("punct", "a run of punctuation"),
    Kind("trick", "a way of hiding text from a filter"),
    Kind("limit", "a limit of reading that the message met"),
    Kind("case", "a word of a short text, as written"),
    Kind("sign", "a sign of a short text"),
    TRIGRAM,
    Kind("subject", "a token of the Subject"),
    Kind("mime", "the type of a part"),
    Kind("attachment", "a word or the ending of an attached file's name"),
    Kind("from", "a word or domain of From", FIELDS),
    Kind("to", "a word or domain of To and Cc", FIELDS),
    Kind("reply-to", "a word or domain of Reply-To", FIELDS),
    Kind("message-id", "a word or domain of Message-ID", FIELDS),
    Kind("mailer", "a word of the mail program's name", FIELDS),
    Kind("priority", "a word of the priority", FIELDS),
    Kind("organization", "a word of Organization", FIELDS),
    RECEIVED,
    RETURN_PATH,
    SENDER,
    RECIPIENT,
    OTHER_FIELD,
    COLLECTED_BY,
)
_BY_NAME = {kind.name: kind for kind in KINDS}
_CHANNELS = {kind.name: kind.channel for kind in KINDS}
_HOST = COLLECTED_BY.prefix
_FRAGMENTS = tuple(kind.prefix for kind in KINDS if kind.is_fragment)


def kind_of(token: str) -> Kind:
    """Return a token's kind; a word with a colon that does not name a kind is a word."""
    name, colon, _ = token.partition(":")
    return _BY_NAME.get(name, WORD) if colon else WORD


def channel_of(token: str) -> int:
    """Return the channel of a token's kind."""
    return _CHANNELS.get(token.partition(":")[0], TEXT) if ":" in token else TEXT


def channels_of(tokens: Iterable[str]) -> list[int]:
    """Return the channel of each token: in a third of the time, if they are many."""
    names = [token[: token.find(":") + 1] for token in tokens]  # with the colon; "" of a word
    channels = {name: channel_of(name) for name in set(names)}
    return list(map(channels.__getitem__, names))


def is_fragment(token: str) -> bool:
    """Return whether a token means little to a reader by itself."""
    return token.startswith(_FRAGMENTS)


def is_host(token: str) -> bool:
    """Return whether a token names the host that took a mail in."""
    return token.startswith(_HOST)
