"""What is counted of a message: the kinds of its tokens, and its traits.  The one list of each.

A token is a word, a number or a bigram as it is, or `kind:value`; no word has a colon, so the two
never meet.  A kind says what it stands for, which channel of the evidence it belongs to, and
whether an explanation shows its tokens one by one.  Their worth: docs/research/tokens.md.

A trait says what a message is in numbers, whatever its words say.  Each is an integer on one of
three scales, so that learning them in any order and forgetting are exact, and a histogram
of them is small:

    AMOUNT  round(8 log2(1 + n)) of a number n: eight steps to each doubling, so what is twice as
            much is as far away for a short text as for a long one
    SHARE   round(100 n / of): a percentage, 0 where there is nothing to take a share of
    COUNT   n itself, 99 at most

A step is as wide as a difference that means nothing; kernel densities stand on the histogram.  The
traits are of the text as a reader sees it, of all parts together, and of the message's form.
"""

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

# Channels: what a message says; what its sender and mail program wrote into the header; the way it
# came; how it begins; and who took it in, which is not evidence but the measure of how far the way
# is trusted.
TEXT, FIELDS, HEADER, OPENING, HOST = range(5)


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
PIECE = Kind("open", "a piece of how the text begins, or its signs", OPENING, is_fragment=True)
RECEIVED = Kind("received", "a word or address of Received", HEADER)
RETURN_PATH = Kind("return-path", "a word or address of Return-Path", HEADER)
SENDER = Kind("sender", "a word of From as the header channel has it", HEADER)
RECIPIENT = Kind("recipient", "a word of To or Cc as the header channel has it", HEADER)
OTHER_FIELD = Kind("header", "the name of another header field, or a word of it", HEADER)
COLLECTED_BY = Kind("by", "the server that received the message", HOST)
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
    PIECE,
    COLLECTED_BY,
)
_BY_NAME = {kind.name: kind for kind in KINDS}
_HOST = COLLECTED_BY.prefix


def kind_of(token: str) -> Kind:
    """Return a token's kind; a word with a colon that does not name a kind is a word."""
    name, colon, _ = token.partition(":")
    return _BY_NAME.get(name, WORD) if colon else WORD


def channel_of(token: str) -> int:
    """Return the channel of a token's kind."""
    return kind_of(token).channel


def channels_of(tokens: Iterable[str]) -> list[int]:
    """Return the channel of each token: in a third of the time, if they are many."""
    names = [token[: token.find(":") + 1] for token in tokens]  # with the colon; "" of a word
    channels = {name: channel_of(name) for name in set(names)}
    return list(map(channels.__getitem__, names))


def is_fragment(token: str) -> bool:
    """Return whether a token means little to a reader by itself."""
    return kind_of(token).is_fragment


def is_host(token: str) -> bool:
    """Return whether a token names the host that took a mail in."""
    return token.startswith(_HOST)


STEPS = 8  # of an amount, to each doubling
MOST = 99  # of what is counted


def amount(n: float) -> int:
    """Return a number on the scale of amounts; n: 0 or more."""
    return round(STEPS * math.log2(1 + n))


def shown_amount(value: float) -> str:
    """Return the number that an amount stands for, about."""
    n = 2 ** (value / STEPS) - 1
    return f"{n:.1f}" if n < 9.95 and value % STEPS else f"{n:.0f}"


def share(n: int, of: int) -> int:
    """Return a share on the scale of percentages."""
    return round(100 * n / of) if of else 0


def count(n: int) -> int:
    """Return a number on the scale of counts."""
    return min(n, MOST)


class Trait(NamedTuple):
    """A number that every message has."""

    name: str
    meaning: str
    show: Callable[[float], str]  # a value on its scale, as a reader expects it
    in_evidence: bool = False  # whether the evidence rule uses it; the sum rule uses all


_percent, _plain = "{:.0f} %".format, "{:.0f}".format


# In the order of a message's numbers.  The evidence rule uses the traits of the text; tokens show
# the form of a mail better.  Left-out log-loss of P2's training half: .0184
# without traits, .0180 with the seven of the text, .0185 with all.
TRAITS = (
    Trait("characters", "characters of the text (amount)", shown_amount, in_evidence=True),
    Trait("words", "words between blanks (amount)", shown_amount, in_evidence=True),
    Trait("word-length", "characters of a word, the mean (amount)", shown_amount, in_evidence=True),
    Trait("digits", "digits (amount)", shown_amount, in_evidence=True),
    Trait("digit-run", "the longest run of digits (count)", _plain, in_evidence=True),
    Trait("capitals", "capitals among the letters (share)", _percent, in_evidence=True),
    Trait("signs", "punctuation among non-blank characters (share)", _percent, in_evidence=True),
    Trait("links", "links (amount)", shown_amount),
    Trait("html", "text from HTML parts (share)", _percent),
    Trait("hops", "Received fields (count)", _plain),
)
NAMES = tuple(trait.name for trait in TRAITS)
IN_EVIDENCE = tuple(i for i, trait in enumerate(TRAITS) if trait.in_evidence)
