"""Bernoulli naive Bayes for one message, with the standard library alone.

A message is the set of its tokens; class k holds N_k messages, of which c_jk contain token j.

    theta_jk = (c_jk + a) / (N_k + 2 a)                    smoothed likelihood of token j in class k
    w_jk     = log theta_jk - log(1 - theta_jk)             weight of token j, present
    b_k      = log P(k) + sum_j log(1 - theta_jk)           bias: as if no token were present
    log P(k, x) = b_k + sum_j w_jk x_j                      joint log-likelihood of message x

For two classes the log-odds are the difference of the two joints, the difference of the weights
being  w_j = log theta_j1 - log(1 - theta_j1) - log theta_j0 + log(1 - theta_j0).

The denominator has 2 a, not m a for a vocabulary of m tokens: a token is present or absent, two
outcomes, and only with 2 a do P(present) and P(absent) add up to 1 (McCallum and Nigam 1998,
equation 6 with Laplace's prior; scikit-learn's BernoulliNB does the same).  Logs are taken of
counts, never of 1 - exp(...): for small a that loses seven digits.

The sums run over the vocabulary, which is every token seen in training.
`bernoulli_arrays.py` has the same formulas for many messages at once; a test compares the two.
"""

import math
from collections.abc import Iterable, Mapping, Sequence

from nbspam.bayes.token_weight import Histogram, Row, Size


def weight(count: int, messages: int, alpha: float) -> float:
    """Return log theta - log(1 - theta), in nats, of a token that `count` of `messages` contain."""
    return math.log((count + alpha) / (messages - count + alpha))


def log_absent_sum(count_histograms: Mapping[int, int], messages: int, alpha: float) -> float:
    """Return sum_j log(1 - theta_j) over the vocabulary, in nats.

    count_histograms: count -> how many tokens of the vocabulary have it in this class.  The sum
    needs no more than that, so the model file stores it.
    """
    denominator = math.log(messages + 2 * alpha)
    return math.fsum(
        tokens * (math.log(messages - count + alpha) - denominator)
        for count, tokens in count_histograms.items()
    )


def joints(bias: Sequence[float], token_weights: Iterable[Sequence[float]]) -> list[float]:
    """Return the joint log-likelihood of each class, given the weights of the message's tokens."""
    rows = list(token_weights)
    return [math.fsum([b, *(row[k] for row in rows)]) for k, b in enumerate(bias)]


class Bernoulli:
    """The event model: a token is present in a message or absent from it."""

    name = "bernoulli"
    has_tokens = True
    repeats = False
    has_prior = True
    size_is_messages = True

    def is_row(self, row: Row, messages: Row) -> bool:
        """Return whether a token can have these counts: not all 0, none above its class's messages.

        row, messages: per class.
        """
        return any(row) and all(0 <= c <= n for c, n in zip(row, messages, strict=True))

    def size(self, histograms: Sequence[Histogram], messages: Row) -> Size:
        """Return what the counts are counts of: messages, in which a token is or is not."""
        return Size(messages, messages, 2)

    def class_weights(self, row: Row, size: Size, alpha: float) -> tuple[float, ...]:
        """Return a present token's weight for each class, logit theta, in nats."""
        return tuple(weight(c, n, alpha) for c, n in zip(row, size.messages, strict=True))

    def bias(self, histograms: Sequence[Histogram], messages: Row, alpha: float) -> list[float]:
        """Return the joint log-likelihood of each class without any token, less its log prior.

        histograms: per class, count -> how many tokens of the vocabulary have it.
        """
        return [log_absent_sum(h, n, alpha) for h, n in zip(histograms, messages, strict=True)]
