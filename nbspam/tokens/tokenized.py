"""A tokenized message: the one record that goes from the tokenizer to the counts and the score."""

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from nbspam.errors import SourceError
from nbspam.reading.message import Message, RawMessage
from nbspam.reading.source import Skipped
from nbspam.tokens.tokenizer import TOKENS_LIMIT, message_tokens
from nbspam.tokens.visible_text import VisibleText

if TYPE_CHECKING:  # classifying shows nothing of a message
    from nbspam.reading.cutting import SourcePiece
    from nbspam.tokens.excerpt import Excerpt

    # What one process tokenizes at a time: messages, or where it finds them.
    Batch = list[RawMessage | Skipped] | SourcePiece


class Numbers(NamedTuple):
    """What a message has beside its set of tokens, as far as a model counts it."""

    times: Mapping[str, int] = {}  # of the tokens that occur more than once: how often
    traits: tuple[int, ...] = ()  # as `traits.TRAITS` lists them
    # The tokens that only text has that is perhaps hidden: they never speak for ham.
    perhaps_hidden: frozenset[str] = frozenset()


NO_NUMBERS = Numbers()


class Wanted(NamedTuple):
    """What is wanted of a message beside its tokens: the numbers a model counts, an excerpt."""

    times: bool = False
    traits: bool = False
    excerpt: int = 0  # the most characters of its text to show to a reader; 0: no excerpt


TOKENS_ALONE = Wanted()


class TokenizedMessage(NamedTuple):
    """A message and its tokens."""

    source: str  # a path, `path:line`, "-"
    label: str | None  # the class that its source gives, if any
    tokens: list[str]  # each once, in the order in which the message has them
    digest: str = ""  # for the ledger; empty when it was not asked for
    size: int = 0  # bytes or characters; 0 for a file, which its source names
    numbers: Numbers = NO_NUMBERS
    excerpt: "Excerpt | None" = None  # where it was wanted

    def __reduce__(self) -> tuple[object, ...]:
        """Go to another process as one string of tokens, in a fifth of the time of a list."""
        source, label, tokens, digest, size, numbers, excerpt = self
        packed = source, label, "\n".join(tokens), digest, size, tuple(numbers)
        return _unpacked, packed if excerpt is None else (*packed, excerpt)


def _unpacked(
    source: str,
    label: str | None,
    packed: str,
    digest: str,
    size: int,
    numbers: tuple[Mapping[str, int], tuple[int, ...], frozenset[str]],
    excerpt: "Excerpt | None" = None,
) -> TokenizedMessage:
    tokens = packed.split("\n") if packed else []
    return TokenizedMessage(source, label, tokens, digest, size, Numbers(*numbers), excerpt)


def tokenize(
    message: Message,
    source: str = "-",
    label: str | None = None,
    *,
    digest: bool = False,
    wanted: Wanted = TOKENS_ALONE,
) -> TokenizedMessage:
    """Return a parsed message tokenized.

    digest: whether the ledger will be asked for it.
    wanted: the numbers that the model counts, and the digest is of them too; an excerpt.
    """
    texts: list[VisibleText] | None = None if wanted == TOKENS_ALONE else []
    perhaps: set[str] = set()
    found = message_tokens(message, texts, perhaps)
    numbers, excerpt = NO_NUMBERS, None
    if texts is not None:
        numbers = _numbers(message, texts, found, wanted)
        if wanted.excerpt:
            from nbspam.tokens.excerpt import excerpt_of

            excerpt = excerpt_of(message, texts, wanted.excerpt)
    if perhaps:
        numbers = numbers._replace(perhaps_hidden=frozenset(perhaps))
    known = ""
    if digest:
        from nbspam.tokens.digest import digest_of  # hashlib takes 3 ms to import

        known = digest_of(
            found, message.headers, *numbers[:2], texts=(part.text for part in message.parts)
        )
    return TokenizedMessage(source, label, list(found), known, numbers=numbers, excerpt=excerpt)


def _numbers(
    message: Message, texts: list[VisibleText], found: Collection[str], wanted: Wanted
) -> Numbers:
    times: Mapping[str, int] = {}
    traits: tuple[int, ...] = ()
    if wanted.times:
        from nbspam.tokens.times import repeated_tokens

        times = repeated_tokens(texts, is_mail=bool(message.headers))
        if len(found) > TOKENS_LIMIT:  # some were left out
            times = {token: n for token, n in times.items() if token in found}
    if wanted.traits:
        from nbspam.tokens.traits import message_traits

        traits = message_traits(message, texts)
    return Numbers(times, traits)


class Tokenizing(NamedTuple):
    """How messages are tokenized: as `tokenize` takes it."""

    digest: bool = False
    wanted: Wanted = TOKENS_ALONE
    skips_empty: bool = False  # whether a mail with nothing in it is skipped


def tokenize_batch(batch: "Batch", how: Tokenizing) -> Iterator[TokenizedMessage | Skipped]:
    """Yield the messages of a batch tokenized, and in their place what is skipped."""
    for raw in batch if isinstance(batch, list) else batch.read():
        yield tokenize_raw(raw, how) if isinstance(raw, RawMessage) else raw


def tokenize_raw(raw: RawMessage, how: Tokenizing) -> TokenizedMessage | Skipped:
    """Return a message tokenized, or why it is skipped."""
    try:
        message = raw.message()
    except SourceError as error:
        return Skipped(raw.source, str(error).removeprefix(f"{raw.source}: "))
    if how.skips_empty and not isinstance(raw.content, str) and message.is_empty:
        return Skipped(raw.source, "the message is empty", is_error=False)
    size = len(raw.content) if isinstance(raw.content, bytes | str) else 0
    done = tokenize(message, raw.source, raw.label, digest=how.digest, wanted=how.wanted)
    return done._replace(size=size)
