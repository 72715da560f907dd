"""From the tokens of a message to its score, with the standard library alone; and of many at once.

Those are looked up in a table, and go to the rule as the words of one message do, so that a score
is the same to the last bit, whichever way it was made.
"""

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from nbspam.bayes.event_model import Row
from nbspam.scoring.rules import KnownWords, Score, ScoringRule, Weights, rule_of, undecided
from nbspam.store.metadata import Metadata
from nbspam.tokens.kinds import HOST, TEXT, channels_of
from nbspam.tokens.tokenized import NO_NUMBERS, Numbers, TokenizedMessage

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from nbspam.store.index import TokenTable
    from nbspam.store.lookup import Lookup


Counts = Mapping[str, Row]
CountsOf = Callable[[Iterable[str]], Counts]  # of those tokens that a model knows
_BATCH_MESSAGES, _BATCH_TOKENS = 500, 200_000
CACHED_TOKENS = 1_000_000
_UNKNOWN: tuple[tuple[int, Weights | None], ...] = tuple((c, None) for c in range(HOST + 1))


def counts_in(lookup: "Lookup | None", indexed: bool) -> CountsOf:
    """Return what gives the counts of an open model's tokens; None: of a model without tokens.

    indexed: make an index of them, which pays from the second message on.
    """
    if lookup is None:
        return lambda _: {}
    if not indexed:
        return lookup.counts
    from nbspam.store.index import TokenIndex

    made = functools.cache(lambda: TokenIndex(lookup))  # who only learns needs none
    return lambda tokens: made().counts(tokens)


class Classifier:
    """Scores messages with one model; caches the weights of the tokens it has met."""

    def __init__(
        self,
        metadata: Metadata,
        counts_of: CountsOf,
        cached: int = CACHED_TOKENS,
        base: "tuple[str | Path, Metadata] | None" = None,
    ) -> None:
        """Score with a model; `counts_of` gives the counts of those tokens that it knows.

        cached: how many tokens' weights to keep for the messages to come, about.
        base: the name and metadata of the model that this one is read through (`base.py`).
        """
        self.metadata = metadata
        self.rule: ScoringRule = rule_of(metadata)
        self.base = base
        self.counts = counts_of
        self._cached = cached
        # Token -> its channel, and its weights if it is known.
        self._words: dict[str, tuple[int, Weights | None]] = {}
        self._weights: dict[Row, Weights] = {}  # few counts differ

    def trim(self) -> None:
        """Drop the cached tokens if there are more than are to be kept."""
        if len(self._words) > self._cached:  # memory grows with the model, not with the messages
            self._words.clear()

    def prepare(self, tokens: Iterable[str]) -> None:
        """Look up tokens; for many messages at once this is far cheaper than one by one."""
        self.trim()
        new = [token for token in tokens if token not in self._words]
        counts = self.counts(new)
        for token, channel in zip(new, channels_of(new), strict=True):
            row = counts.get(token)
            self._words[token] = _UNKNOWN[channel] if row is None else (channel, self._of(row))

    def _of(self, row: Row) -> Weights:
        weights = self._weights.get(row)
        if weights is None:
            weights = self._weights[row] = self.rule.weights(row)
        return weights

    def in_batches(
        self,
        messages: Iterable[TokenizedMessage],
        batch_messages: int = _BATCH_MESSAGES,
        batch_tokens: int = _BATCH_TOKENS,
        pauses: Callable[[], bool] | None = None,
    ) -> Iterator[TokenizedMessage]:
        """Yield messages with their tokens looked up, many at a time.

        pauses: whether the next message is yet to come, so that those before it do not wait.
        """
        for batch, tokens in _batches(messages, batch_messages, batch_tokens, pauses):
            self.prepare(tokens)
            yield from batch

    def known_words(
        self, tokens: Iterable[str], numbers: Numbers = NO_NUMBERS, left_out: int | None = None
    ) -> KnownWords:
        """Return the weights of a message's tokens, by channel, and of its traits.

        left_out: the message's class, if the traits know the message and its counts do not.
        """
        tokens = set(tokens)
        if not tokens <= self._words.keys():
            self.prepare(tokens)
        unheard = self.unheard(numbers)
        tokens -= unheard
        groups: tuple[list[Weights], ...] = ([], [], [], [])
        unknown = channels_of(unheard).count(TEXT) if unheard else 0
        found: Iterator[tuple[int, Weights | None]] = map(self._words.__getitem__, tokens)
        if numbers.times and self.rule.heeds_times:
            found = (self._repeated(token, numbers.times.get(token, 1)) for token in tokens)
        for channel, weights in found:
            if weights is not None:
                groups[channel].append(weights)
            elif channel == TEXT:
                unknown += 1
        text, fields, header, host = groups
        traits = self.trait_weights(numbers, left_out)
        return KnownWords(text, fields, header, host, len(text) + unknown, traits)

    def unheard(self, numbers: Numbers) -> set[str]:
        """Return the tokens that only perhaps hidden text has and that speak for ham.

        The sum rule, which is the textbook's, hears all.
        """
        if not numbers.perhaps_hidden or not self.rule.heeds_doubt:
            return set()
        if not numbers.perhaps_hidden <= self._words.keys():
            self.prepare(numbers.perhaps_hidden)
        settings = self.metadata.settings
        place = settings.scored_classes.index(settings.positive_index or 0)
        found = ((token, self._words[token][1]) for token in numbers.perhaps_hidden)
        return {token for token, weights in found if weights is not None and weights[place] < 0}

    def trait_weights(self, numbers: Numbers, left_out: int | None = None) -> list[Weights] | None:
        """Return the weights of a message's traits; None of a model without."""
        if not self.metadata.settings.has_traits:
            return None
        return self.rule.trait_weights(numbers.traits, left_out)

    def _repeated(self, token: str, times: int) -> tuple[int, Weights | None]:
        """Return a token's channel, and its weights as often as it occurs."""
        channel, weights = self._words[token]
        return channel, weights and tuple([times * w for w in weights])

    def score(self, tokens: Iterable[str], numbers: Numbers = NO_NUMBERS) -> Score:
        """Return the score of a message with these tokens and numbers."""
        words = self.known_words(tokens, numbers)
        if self.metadata.is_one_sided:
            return undecided(self.metadata.settings)
        return self.rule.score(words)


def _batches(
    messages: Iterable[TokenizedMessage],
    most_messages: int,
    most_tokens: int,
    pauses: Callable[[], bool] | None,
) -> Iterator[tuple[list[TokenizedMessage], set[str]]]:
    """Yield messages in batches, with their tokens; what was read before a failure comes first."""
    batch: list[TokenizedMessage] = []
    tokens: set[str] = set()
    try:
        for message in messages:
            batch.append(message)
            tokens.update(message.tokens)
            full = len(batch) == most_messages or len(tokens) > most_tokens
            if full or (pauses is not None and pauses()):
                yield batch, tokens
                batch, tokens = [], set()
    except Exception:
        yield batch, tokens
        raise
    yield batch, tokens


class BulkClassifier:
    """Scores messages with the table of a model's tokens."""

    def __init__(self, classifier: Classifier, table: "TokenTable") -> None:
        """Score as `classifier` does, with a table of the tokens of its model."""
        import numpy as np

        self._classifier, self._table = classifier, table
        weights = [classifier.rule.weights(counts) for counts in table.counts]
        # A row's rank has the same channel, and within it the place in the order of the weights:
        # sorted ranks of a message are its weights, sorted, channel by channel.
        self._n = n = len(weights)
        order = sorted(range(n), key=weights.__getitem__)
        ranks = np.zeros(n, np.int64)
        ranks[order] = np.arange(n)
        channels = range(HOST + 1)
        self._ranks = np.array([ranks + channel * n for channel in channels]).ravel()
        self._weights = [weights[i] for i in order] * len(channels)
        settings = classifier.metadata.settings
        place = settings.scored_classes.index(settings.positive_index or 0)
        self._is_against = np.array([own[place] < 0 for own in weights] * len(channels), bool)

    def scores(
        self, messages: Iterable[TokenizedMessage]
    ) -> Iterator[tuple[TokenizedMessage, Score]]:
        """Yield each message and its score."""
        import numpy as np

        rule = self._classifier.rule
        # Weights are multiplied by what few models count.
        if rule.heeds_times or self._classifier.metadata.is_one_sided:
            return ((m, self._classifier.score(m.tokens, m.numbers)) for m in messages)
        from nbspam.store.index import hashes_of

        hashes, taken = [], []
        for message in messages:
            hashes.append(hashes_of(message.tokens))  # while they are in the processor's cache
            taken.append(message)
        if not taken:
            return iter(())
        rows = self._table.find(np.concatenate(hashes))
        return zip(taken, map(rule.score, self._words(rows, taken)), strict=True)

    def _words(
        self, rows: "NDArray[np.int32]", messages: list[TokenizedMessage]
    ) -> Iterator[KnownWords]:
        """Yield the words of each message; rows: of the tokens of all."""
        import numpy as np

        if self._classifier.rule.heeds_doubt:
            self._unhear(rows, messages)
        lengths = [len(message.tokens) for message in messages]
        starts = np.cumsum([0, *lengths])
        known = rows >= 0
        unknown = np.flatnonzero(~known)
        others = np.split(unknown, unknown.searchsorted(starts[1:-1]))
        n_ranks = len(self._ranks)
        firsts = np.arange(len(messages)) * n_ranks
        found = np.sort(np.repeat(firsts, lengths)[known] + self._ranks[rows[known]])
        ends = found.searchsorted(firsts[:, None] + np.arange(HOST + 2) * self._n).tolist()
        weights = [self._weights[i] for i in (found % max(1, n_ranks)).tolist()]
        for message, start, other, places in zip(messages, starts, others, ends, strict=False):
            tokens = message.tokens
            marked = [t for i in (other - start).tolist() if ":" in (t := tokens[i])]
            n_unknown = len(other) - len(marked) + channels_of(marked).count(TEXT)
            text, fields, header, host = (weights[a:b] for a, b in itertools.pairwise(places))
            traits = self._classifier.trait_weights(message.numbers)
            yield KnownWords(text, fields, header, host, len(text) + n_unknown, traits)

    def _unhear(self, rows: "NDArray[np.int32]", messages: list[TokenizedMessage]) -> None:
        """Take for unknown what `Classifier.unheard` says; rows: of the tokens of all messages."""
        import numpy as np

        end = 0
        for message in messages:
            start, end = end, end + len(message.tokens)
            if hidden := message.numbers.perhaps_hidden:
                of = rows[start:end]
                is_hidden = np.fromiter(map(hidden.__contains__, message.tokens), bool)
                places = np.flatnonzero(is_hidden & (of >= 0))
                of[places[self._is_against[of[places]]]] = -1
