"""From the tokens of a message to its score, with the standard library alone."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol, TypeVar

from nbspam.bayes.bernoulli import Row
from nbspam.scoring.rule import Weights, rule_of
from nbspam.scoring.score import Score, undecided
from nbspam.store.metadata import Metadata
from nbspam.tokens.kinds import is_header

Counts = Mapping[str, Row]
_BATCH_MESSAGES, _BATCH_TOKENS = 500, 200_000
_CACHED = 1_000_000


class HasTokens(Protocol):
    """A message, as far as a classifier looks at it."""

    @property
    def tokens(self) -> Iterable[str]:
        """Its tokens, each once."""


M = TypeVar("M", bound=HasTokens)


class Classifier:
    """Scores messages with one model; caches the weights of the tokens it has met."""

    def __init__(
        self,
        metadata: Metadata,
        counts_of: Callable[[Iterable[str]], Counts],
        cached: int = _CACHED,
    ) -> None:
        """Score with a model; `counts_of` gives the counts of those tokens that it knows.

        cached: how many tokens' weights to keep for the messages to come, about.
        """
        self.metadata = metadata
        self.rule = rule_of(metadata)
        self.counts = counts_of
        self._cached = cached
        # Token -> weights; None for one that is unknown, or is in the header channel.
        self._text: dict[str, Weights | None] = {}
        self._header: dict[str, Weights] = {}
        self._weights: dict[Row, Weights] = {}  # few counts differ

    def prepare(self, tokens: Iterable[str]) -> None:
        """Look up tokens; for many messages at once this is far cheaper than one by one."""
        if len(self._text) > self._cached:  # memory grows with the model, not with the messages
            self._text.clear()
            self._header.clear()
        new = [token for token in tokens if token not in self._text]
        self._text |= dict.fromkeys(new)
        for token, row in self.counts(new).items():
            channel = self._header if is_header(token) else self._text
            weights = self._weights.get(row)
            if weights is None:
                weights = self._weights[row] = self.rule.weights(row)
            channel[token] = weights

    def in_batches(
        self,
        messages: Iterable[M],
        batch_messages: int = _BATCH_MESSAGES,
        batch_tokens: int = _BATCH_TOKENS,
    ) -> Iterator[M]:
        """Yield messages with their tokens looked up, many at a time."""
        for batch, tokens in _batches(messages, batch_messages, batch_tokens):
            self.prepare(tokens)
            yield from batch

    def score(self, tokens: Iterable[str]) -> Score:
        """Return the score of a message with these tokens."""
        tokens = set(tokens)
        text = self._text
        if not tokens <= text.keys():
            self.prepare(tokens)
            if not tokens <= text.keys():  # so many that the cache was cleared
                self.prepare(tokens)
        if self.metadata.is_one_sided:
            return undecided(self.metadata.settings)
        return self.rule.score(
            list(filter(None, map(text.get, tokens))),
            list(filter(None, map(self._header.get, tokens))),
        )


def _batches(
    messages: Iterable[M], most_messages: int, most_tokens: int
) -> Iterator[tuple[list[M], set[str]]]:
    """Yield messages in batches, with their tokens; what was read before a failure comes first."""
    batch: list[M] = []
    tokens: set[str] = set()
    try:
        for message in messages:
            batch.append(message)
            tokens.update(message.tokens)
            if len(batch) == most_messages or len(tokens) > most_tokens:
                yield batch, tokens
                batch, tokens = [], set()
    except Exception:
        yield batch, tokens
        raise
    yield batch, tokens
