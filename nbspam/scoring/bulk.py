"""The scores of many messages at once: tokens looked up in a table, scored by the same rule.

The words of a message go to the rule as those of one message do (`classifier.py`), so that a score
is the same to the last bit, whichever way it was made.
"""

import itertools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from nbspam.scoring.classifier import Classifier
from nbspam.scoring.score import Score
from nbspam.scoring.words import KnownWords
from nbspam.store.token_table import UNKNOWN, TokenTable, hashes_of
from nbspam.tokens.kinds import HOST, TEXT, channels_of
from nbspam.tokens.tokenized import TokenizedMessage

if TYPE_CHECKING:  # importing it takes 5 ms
    from numpy.typing import NDArray


class BulkClassifier:
    """Scores messages with the table of a model's tokens."""

    def __init__(self, classifier: Classifier, table: TokenTable) -> None:
        """Score as `classifier` does, with a table of the tokens of its model."""
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
        rule = self._classifier.rule
        # Weights are multiplied by what few models count.
        if rule.heeds_times or self._classifier.metadata.is_one_sided:
            return ((m, self._classifier.score(m.tokens, m.numbers)) for m in messages)
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
        if self._classifier.rule.heeds_doubt:
            self._unhear(rows, messages)
        lengths = [len(message.tokens) for message in messages]
        starts = np.cumsum([0, *lengths])
        known = rows != UNKNOWN
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
        end = 0
        for message in messages:
            start, end = end, end + len(message.tokens)
            if hidden := message.numbers.perhaps_hidden:
                of = rows[start:end]
                is_hidden = np.fromiter(map(hidden.__contains__, message.tokens), bool)
                places = np.flatnonzero(is_hidden & (of != UNKNOWN))
                of[places[self._is_against[of[places]]]] = UNKNOWN
