"""The classifier of one message: from tokens to score, with the standard library alone.

`batch_rules.BulkClassifier` looks up the tokens of many messages in a table.  Both give a message's
weights to the same rule, so a score is the same to the last bit.
"""

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Set

from nbspam.bayes.event_model import Row
from nbspam.bayes.evidence import tells_alone
from nbspam.scoring.rules import KnownWords, Score, ScoringRule, Weights, rule_of
from nbspam.store.metadata import Metadata
from nbspam.tokens.kinds import HEADER, HOST, TEXT, channels_of
from nbspam.tokens.tokenized import NO_NUMBERS, Numbers

Counts = Mapping[str, Row]
CountsOf = Callable[[Iterable[str]], Counts]  # of those tokens that a model knows
CACHED_TOKENS = 1_000_000


def counts_in(counts: Counts) -> CountsOf:
    """Return the function that finds counts in memory."""
    return lambda tokens: {token: counts[token] for token in tokens if token in counts}


_UNKNOWN: tuple[tuple[int, Weights | None], ...] = tuple((c, None) for c in range(HOST + 1))


class Classifier:
    """Scores messages with one model; caches the weights of the tokens it has met."""

    def __init__(
        self,
        metadata: Metadata,
        counts_of: CountsOf,
        cached: int = CACHED_TOKENS,
        base: tuple[str, Metadata] | None = None,
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
        self._weights = functools.cache(self.rule.weights)  # few counts differ

    def _look_up(self, tokens: Set[str]) -> None:
        """Load the weights of tokens into the cache."""
        if tokens <= self._words.keys():
            return
        if len(self._words) > self._cached:  # memory grows with the model, not with the messages
            self._words.clear()
        new = [token for token in tokens if token not in self._words]
        counts = self.counts(new)
        for token, channel in zip(new, channels_of(new), strict=True):
            row = counts.get(token)
            if row is None:
                self._words[token] = _UNKNOWN[channel]
                continue
            if channel == HEADER and tells_alone(row, self.metadata.learned.messages):
                channel = HOST
            self._words[token] = channel, self._weights(row)

    def known_words(
        self, tokens: Iterable[str], numbers: Numbers = NO_NUMBERS, left_out: int | None = None
    ) -> KnownWords:
        """Return the weights of a message's tokens, by channel, and of its traits.

        left_out: the message's class, if its traits were learned and its tokens were not.
        """
        tokens = set(tokens)
        self._look_up(tokens)
        unheard = self.hidden_ham_tokens(numbers)
        tokens -= unheard
        groups: tuple[list[Weights], ...] = ([], [], [], [], [])
        unknown = channels_of(unheard).count(TEXT) if unheard else 0
        words: Iterator[tuple[int, Weights | None]] = map(self._words.__getitem__, tokens)
        if numbers.times and self.rule.uses_counts:
            times, several = numbers.times, ((t, *self._words[t]) for t in tokens)
            words = ((c, w and tuple([times.get(t, 1) * x for x in w])) for t, c, w in several)
        for channel, weights in words:
            if weights is not None:
                groups[channel].append(weights)
            elif channel == TEXT:
                unknown += 1
        text, fields, header, opening, host = groups
        traits = self.rule.trait_weights(numbers.traits, left_out)
        return KnownWords(text, fields, header, opening, host, len(text) + unknown, traits)

    def hidden_ham_tokens(self, numbers: Numbers) -> set[str]:
        """Return the tokens of possibly hidden text that speak for ham, which count for nothing.

        None if all tokens of that text add up to evidence of spam: then hiding it gained nothing,
        and a page that is doubtful as a whole is classified by all of its words.  The sum rule,
        which is the textbook's, uses all tokens.
        """
        if not numbers.possibly_hidden or not self.rule.distrusts_hidden_text:
            return set()
        self._look_up(numbers.possibly_hidden)
        settings = self.metadata.settings
        place = settings.scored_classes.index(settings.positive_index or 0)
        hidden = ((token, self._words[token][1]) for token in numbers.possibly_hidden)
        nats = {token: weights[place] for token, weights in hidden if weights is not None}
        return set() if sum(nats.values()) > 0 else {t for t, w in nats.items() if w < 0}

    def score(self, tokens: Iterable[str], numbers: Numbers = NO_NUMBERS) -> Score:
        """Return the score of a message with these tokens and numbers."""
        words = self.known_words(tokens, numbers)
        if self.metadata.is_one_sided:
            n = len(self.metadata.settings.classes)
            return Score(0.0, 0.5, (1 / n,) * n)
        return self.rule.score(words)
