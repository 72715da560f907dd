"""Sources in, token sets out."""

from collections.abc import Iterable, Iterator

from nbspam.errors import SourceError
from nbspam.reading.message import Message
from nbspam.reading.raw import Raw
from nbspam.reading.skips import Skips
from nbspam.tokens.tokenizer import message_tokens


def token_sets(raws: Iterable[Raw], skips: Skips) -> Iterator[tuple[Raw, set[str]]]:
    """Yield each message with its tokens, in order; one whose file cannot be read is skipped."""
    for raw, message in _messages(raws, skips):
        yield raw, message_tokens(message)


def lessons(raws: Iterable[Raw], skips: Skips) -> Iterator[tuple[Raw, set[str], str]]:
    """Yield each message with its tokens and its digest, as `token_sets` does."""
    from nbspam.model.ledger import digest_of

    for raw, message in _messages(raws, skips):
        tokens = message_tokens(message)
        yield raw, tokens, digest_of(tokens, message.headers)


def _messages(raws: Iterable[Raw], skips: Skips) -> Iterator[tuple[Raw, Message]]:
    for raw in raws:
        try:
            message = raw.message()
        except SourceError as error:
            reason = str(error).removeprefix(f"{raw.source}: ")
            skips(raw.source, reason)
            continue
        yield raw, message
