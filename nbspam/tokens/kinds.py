"""The kinds of a message's tokens, and its traits: the complete lists.

A token is a word, a number, a bigram or `kind:value`; words have no colon, so they never equal the
other tokens.  Each kind has a meaning, a channel (the group of words that its tokens belong to),
and a flag for tokens that mean little to a reader by themselves.  docs/research/ideas-tried.md
measures the kinds.

A trait is a number that describes a message independently of its words.  Traits are integers on one
of three scales, so that learning in any order and forgetting are exact, and histograms are small:

    amount  round(8 log2(1 + n)): eight steps to each doubling, so that doubling moves a short text
            as far as a long one
    share   round(100 n / total): a percentage, 0 if the total is 0
    count   n itself, at most 99

Differences below one step do not matter, and kernel densities smooth the histograms.  Traits
describe the text as a reader sees it, in all parts together, and the message's form.
"""

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

# Channels: the text; the fields that sender and mail program wrote; the route in the header; the
# opening; the host that received the mail, and its domain.  Host and domain are not evidence: they
# measure the trust in the route, and the doubt of a mail.
CHANNELS = range(6)
TEXT, FIELDS, HEADER, OPENING, HOST, DOMAIN = CHANNELS


class Kind(NamedTuple):
    """A kind of token."""

    name: str  # the prefix without its colon; "" for words, numbers and bigrams
    meaning: str
    channel: int = TEXT
    is_fragment: bool = False  # means little to a reader by itself

    @property
    def prefix(self) -> str:
        """The prefix of its tokens."""
        return f"{self.name}:" if self.name else ""


WORD = Kind("", "a word, a number or a bigram")
TRIGRAM = Kind("tri", "a character trigram of a short text", is_fragment=True)
OPENING_PIECE = Kind(
    "open", "a piece of how the text begins, or its signs", OPENING, is_fragment=True
)
RECEIVED = Kind("received", "a word or address of Received", HEADER)
RETURN_PATH = Kind("return-path", "a word or address of Return-Path", HEADER)
SENDER = Kind("sender", "a word of From as the header channel has it", HEADER)
RECIPIENT = Kind("recipient", "a word of To or Cc as the header channel has it", HEADER)
OTHER_FIELD = Kind("header", "the name of another header field, or a word of it", HEADER)
COLLECTED_BY = Kind("by", "the server that received the message", HOST)
COLLECTED_IN = Kind("by-domain", "the domain of the server that received the message", DOMAIN)
KINDS = (
    WORD,
    Kind("link", "a link, and what is odd about it"),
    Kind("host", "a link's host and its parent domains"),
    Kind("path", "a word of a link's path"),
    Kind("punct", "a run of punctuation"),
    Kind("caps", "how many words of a short text are in capitals"),
    Kind("trick", "a way of hiding text from a filter"),
    Kind("limit", "a limit of the parser that the message exceeded"),
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
    OPENING_PIECE,
    COLLECTED_BY,
    COLLECTED_IN,
)
_BY_NAME = {kind.name: kind for kind in KINDS}
_COLLECTORS = _HOST, _DOMAIN = COLLECTED_BY.prefix, COLLECTED_IN.prefix


def kind_of(token: str) -> Kind:
    """Return a token's kind; a token with an unknown kind before its colon is a word."""
    name, colon, _ = token.partition(":")
    return _BY_NAME.get(name, WORD) if colon else WORD


def channel_of(token: str) -> int:
    """Return the channel of a token's kind."""
    return kind_of(token).channel


def channels_of(tokens: Iterable[str]) -> list[int]:
    """Return the channel of each token, in a third of the time of `channel_of`."""
    channel = {name: kind.channel for name, kind in _BY_NAME.items()}.get
    return [channel(token.partition(":")[0], TEXT) if ":" in token else TEXT for token in tokens]


def is_fragment(token: str) -> bool:
    """Return whether a token means little to a reader by itself."""
    return kind_of(token).is_fragment


def is_host(token: str) -> bool:
    """Return whether a token names the host that received a mail."""
    return token.startswith(_HOST)


def is_domain(token: str) -> bool:
    """Return whether a token names the domain of the host that received a mail."""
    return token.startswith(_DOMAIN)


def is_collector(token: str) -> bool:
    """Return whether a token names the host that received a mail, or its domain."""
    return token.startswith(_COLLECTORS)


def collector_of(tokens: Iterable[str]) -> str | None:
    """Return the token of the domain of the host that took a mail in, or of the host."""
    # A call of `is_collector` for each token takes five times as long.
    return min([token for token in tokens if token.startswith(_COLLECTORS)], default=None)


STEPS_PER_DOUBLING = 8
MAX_COUNT = 99


def log_scale(n: float) -> int:
    """Convert a number to the scale of amounts; n: 0 or more."""
    return round(STEPS_PER_DOUBLING * math.log2(1 + n))


def show_amount(value: float) -> str:
    """Format the approximate number of an amount."""
    n = 2 ** (value / STEPS_PER_DOUBLING) - 1
    return f"{n:.1f}" if n < 9.95 and value % STEPS_PER_DOUBLING else f"{n:.0f}"


def percentage(n: int, total: int) -> int:
    """Convert a share to the scale of percentages; 0 if the total is 0."""
    return round(100 * n / total) if total else 0


def clipped_count(n: int) -> int:
    """Convert a number to the scale of counts."""
    return min(n, MAX_COUNT)


class Trait(NamedTuple):
    """A number that every message has."""

    name: str
    meaning: str
    show: Callable[[float], str]  # formats a value on its scale for a reader
    in_evidence: bool = False  # whether the evidence rule uses it; the sum rule uses all


_percent, _plain = "{:.0f} %".format, "{:.0f}".format


# The order of a message's traits.  The evidence rule uses the traits of the text, because tokens
# show the form of a mail better.  Leave-one-out log-loss in P2's training half:
#
#     traits             log-loss
#     without traits     0.0184
#     seven of the text  0.0180
#     all                0.0185
TRAITS = (
    Trait("characters", "characters of the text (amount)", show_amount, in_evidence=True),
    Trait("words", "words between blanks (amount)", show_amount, in_evidence=True),
    Trait("word-length", "characters of a word, the mean (amount)", show_amount, in_evidence=True),
    Trait("digits", "digits (amount)", show_amount, in_evidence=True),
    Trait("digit-run", "the longest run of digits (count)", _plain, in_evidence=True),
    Trait("capitals", "capitals among the letters (share)", _percent, in_evidence=True),
    Trait("signs", "punctuation among non-blank characters (share)", _percent, in_evidence=True),
    Trait("links", "links (amount)", show_amount),
    Trait("html", "text from HTML parts (share)", _percent),
    Trait("hops", "Received fields (count)", _plain),
)
TRAIT_NAMES = tuple(trait.name for trait in TRAITS)
EVIDENCE_TRAITS = tuple(i for i, trait in enumerate(TRAITS) if trait.in_evidence)
