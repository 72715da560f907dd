"""The scores of many messages at once: tokens looked up in a table, scored by the same rule.

The words of a message go to the rule as those of one message do (`classifier.py`), so that a score
is the same to the last bit, whichever way it was made.
"""

from collections.abc import Sequence

import numpy as np

from nbspam.scoring.classifier import Classifier
from nbspam.scoring.score import Score, undecided
from nbspam.scoring.words import KnownWords, Weights
from nbspam.store.token_table import UNKNOWN, TokenTable
from nbspam.tokens.kinds import FIELDS, HEADER, HOST, TEXT, channels_of
from nbspam.tokens.tokenized import TokenizedMessage


class BulkClassifier:
    """Scores messages with the table of a model's tokens."""

    def __init__(self, classifier: Classifier, table: TokenTable) -> None:
        """Score as `classifier` does, with a table of the tokens of its model."""
        self._classifier, self._table = classifier, table
        self._weights = [classifier.rule.weights(row.counts) for row in table.rows]
        self._channels = np.array([*[row.channel for row in table.rows], UNKNOWN], np.int8)

    def scores(self, messages: Sequence[TokenizedMessage]) -> list[Score]:
        """Return the score of each message."""
        rule = self._classifier.rule
        if self._classifier.metadata.is_one_sided:
            return [undecided(self._classifier.metadata.settings)] * len(messages)
        if rule.heeds_times:  # weights are multiplied by what few models count
            return [self._classifier.score(m.tokens, m.numbers) for m in messages]
        rows = self._table.find([token for message in messages for token in message.tokens])
        channels = self._channels[rows]
        scores = []
        end = 0
        for message in messages:
            start, end = end, end + len(message.tokens)
            if message.numbers.perhaps_hidden:  # few messages have such text
                scores.append(self._classifier.score(message.tokens, message.numbers))
                continue
            own, of = rows[start:end], channels[start:end]
            text, fields, header, host = (
                self._weights_of(own[of == channel].tolist())
                for channel in (TEXT, FIELDS, HEADER, HOST)
            )
            unknown = [message.tokens[i] for i in np.flatnonzero(of == UNKNOWN).tolist()]
            unknown_text = channels_of(unknown).count(TEXT)
            traits = self._classifier.trait_weights(message.numbers)
            words = KnownWords(text, fields, header, host, len(text) + unknown_text, traits)
            scores.append(rule.score(words))
        return scores

    def _weights_of(self, rows: list[int]) -> list[Weights]:
        return list(map(self._weights.__getitem__, rows))
