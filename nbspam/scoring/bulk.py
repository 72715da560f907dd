"""The scores of many messages at once: tokens looked up in a table, scored by the same rule.

The words of a message go to the rule as those of one message do (`classifier.py`), so that a score
is the same to the last bit, whichever way it was made.
"""

import itertools
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from nbspam.scoring.classifier import Classifier
from nbspam.scoring.score import Score, undecided
from nbspam.scoring.words import KnownWords
from nbspam.store.token_table import UNKNOWN, TokenTable, hashes_of
from nbspam.tokens.kinds import HOST, TEXT, channels_of
from nbspam.tokens.tokenized import TokenizedMessage


class BulkClassifier:
    """Scores messages with the table of a model's tokens."""

    def __init__(self, classifier: Classifier, table: TokenTable) -> None:
        """Score as `classifier` does, with a table of the tokens of its model."""
        self._classifier, self._table = classifier, table
        settings = classifier.metadata.settings
        weights = [classifier.rule.weights(row.counts) for row in table.rows]
        # A row's rank is its place in the order of channels and weights: sorted ranks of a message
        # are its weights, sorted, channel by channel.
        keys = [(row.channel, own) for row, own in zip(table.rows, weights, strict=True)]
        order = sorted(range(len(keys)), key=keys.__getitem__)
        self._ranks = np.zeros(len(keys) + 1, np.int64)
        self._ranks[order] = np.arange(len(keys))
        self._weights = [weights[i] for i in order]
        channels = [keys[i][0] for i in order]
        self._ends = np.searchsorted(channels, range(HOST + 2))  # of each channel, the first rank
        place = settings.scored_classes.index(settings.positive_index or 0)
        self._is_against = np.array([*(own[place] < 0 for own in weights), False])

    def scores(
        self, messages: Iterable[TokenizedMessage]
    ) -> Iterator[tuple[TokenizedMessage, Score]]:
        """Yield each message and its score."""
        rule = self._classifier.rule
        if self._classifier.metadata.is_one_sided:
            undecided_score = undecided(self._classifier.metadata.settings)
            return ((message, undecided_score) for message in messages)
        if rule.heeds_times:  # weights are multiplied by what few models count
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
        self, rows: npt.NDArray[np.int32], messages: list[TokenizedMessage]
    ) -> Iterator[KnownWords]:
        """Yield the words of each message; rows: of the tokens of all."""
        if self._classifier.rule.heeds_doubt:
            self._unhear(rows, messages)
        lengths = [len(message.tokens) for message in messages]
        starts = np.cumsum([0, *lengths])
        known = rows != UNKNOWN
        unknown = np.flatnonzero(~known)
        others = np.split(unknown, unknown.searchsorted(starts[1:-1]))
        n_ranks = len(self._weights)
        firsts = np.arange(len(messages)) * n_ranks
        found = np.sort(np.repeat(firsts, lengths)[known] + self._ranks[rows[known]])
        ends = found.searchsorted(firsts[:, None] + self._ends).tolist()
        weights = [self._weights[i] for i in (found % max(1, n_ranks)).tolist()]
        for message, start, other, places in zip(messages, starts, others, ends, strict=False):
            tokens = message.tokens
            marked = [t for i in (other - start).tolist() if ":" in (t := tokens[i])]
            n_unknown = len(other) - len(marked) + channels_of(marked).count(TEXT)
            text, fields, header, host = (weights[a:b] for a, b in itertools.pairwise(places))
            traits = self._classifier.trait_weights(message.numbers)
            yield KnownWords(text, fields, header, host, len(text) + n_unknown, traits)

    def _unhear(self, rows: npt.NDArray[np.int32], messages: list[TokenizedMessage]) -> None:
        """Take for unknown what `Classifier.unheard` says; rows: of the tokens of all messages."""
        end = 0
        for message in messages:
            start, end = end, end + len(message.tokens)
            if hidden := message.numbers.perhaps_hidden:
                is_hidden = np.fromiter(map(hidden.__contains__, message.tokens), bool)
                own = rows[start:end]
                own[is_hidden & self._is_against[own]] = UNKNOWN
