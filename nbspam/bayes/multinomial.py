"""Multinomial naive Bayes for one message: each word is drawn from its class's vocabulary.

A message is a bag of tokens, x_j of token j; n_jk tokens j are in the messages of class k, n_k
tokens of any kind, and the vocabulary has m different ones.

    theta_jk = (n_jk + a) / (n_k + a m)                smoothed likelihood of token j in class k
    log P(k, x) = log P(k) + sum_j x_j log theta_jk     joint, but for the multinomial coefficient,
                                                        which is the same for all classes

The a are the parameters of a symmetric Dirichlet prior less 1 (its mode), or the parameters
themselves (its mean): McCallum and Nigam 1998, equations 3 and 6; Manning, Raghavan and Schuetze,
"Introduction to Information Retrieval", 13.2, where a is 1.  scikit-learn's MultinomialNB is the
same.  A token that training has not seen says nothing.

Two event models share these formulas:

    multinomial  x_j is how often the token occurs in the message
    complement   (`complement.py`)
"""

import math
from collections.abc import Sequence

from nbspam.bayes.token_weight import Histogram, Row, Size


def trials_of(histograms: Sequence[Histogram]) -> list[int]:
    """Return n_k, how many tokens there are in the messages of each class, repeated ones too."""
    return [sum(count * tokens for count, tokens in h.items()) for h in histograms]


def outcomes_of(histograms: Sequence[Histogram]) -> int:
    """Return m, the size of the vocabulary; 1 of none, whose logarithm nothing uses."""
    return max(1, sum(histograms[0].values()))


class Multinomial:
    """The event model: a token counts as often as it occurs."""

    name = "multinomial"
    has_tokens = True
    repeats = True
    has_prior = True
    size_is_messages = False

    def is_row(self, row: Row, messages: Row) -> bool:
        """Return whether a token can have these counts: not all 0, none of a class without any."""
        return any(row) and all(
            c == 0 or (c > 0 and n > 0) for c, n in zip(row, messages, strict=True)
        )

    def size(self, histograms: Sequence[Histogram], messages: Row) -> Size:
        """Return what the counts are counts of: tokens, each one of the vocabulary."""
        return Size(messages, trials_of(histograms), outcomes_of(histograms))

    def class_weights(self, row: Row, size: Size, alpha: float) -> tuple[float, ...]:
        """Return log theta of a token for each class, in nats, of each time that it occurs."""
        log = math.log
        return tuple(
            log(c + alpha) - log(n + alpha * size.outcomes)
            for c, n in zip(row, size.trials, strict=True)
        )

    def bias(self, histograms: Sequence[Histogram], messages: Row, alpha: float) -> list[float]:
        """Return 0: a message without tokens has the log-likelihood 0 in each class."""
        return [0.0] * len(messages)
