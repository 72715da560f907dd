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

The evidence rule uses one weight per token: that of a class against all others, with smoothing in
proportion to the size of the class (`class_alphas`, `pair_weight`).
"""

import math
from collections.abc import Iterable, Mapping, Sequence

Row = tuple[int, ...]  # a number per class


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


def class_alphas(messages: Sequence[int], alpha: float) -> list[float]:
    """Return the smoothing of each of K classes, K alpha (N_k + 1) / (N + K); its mean is alpha.

    The 1 and the K keep it above 0 for a class without messages: its only one may be left out.
    """
    k = len(messages)
    return [alpha * k * (n + 1) / (sum(messages) + k) for n in messages]


def pair_weight(inside: int, n: int, outside: int, rest: int, alphas: Sequence[float]) -> float:
    """Return log theta_spam - log theta_rest of a token's presence, in nats.

    inside: how many of the n positive messages contain it; outside: how many of the `rest` others.
    alphas: smoothing of the rest and of the positive class (`class_alphas`).

    It is what the counts say of a message with the token, and no more.  The difference of logits,
    which the textbook sum needs beside its bias, has in it what the token's absence would have
    said: of a token that 2,365 of 2,500 ham and 500 of 500 spam have, +7.4 nats, where the counts
    say 1.06 : 1.
    """
    log = math.log
    return (log(inside + alphas[1]) - log(n + 2 * alphas[1])) - (
        log(outside + alphas[0]) - log(rest + 2 * alphas[0])
    )


class Bernoulli:
    """The event model: a token is present in a message or absent from it."""

    name = "bernoulli"

    def is_row(self, row: Row, messages: Row) -> bool:
        """Return whether a token can have these counts: not all 0, none above its class's messages.

        row, messages: per class.
        """
        return any(row) and all(0 <= c <= n for c, n in zip(row, messages, strict=True))

    def class_weights(self, row: Row, messages: Row, alpha: float) -> tuple[float, ...]:
        """Return a present token's weight for each class, logit theta, in nats."""
        return tuple(weight(c, n, alpha) for c, n in zip(row, messages, strict=True))

    def contrast(self, row: Row, messages: Row, k: int, alpha: float) -> float:
        """Return a present token's weight for class k against all others, in nats."""
        n, outside = messages[k], sum(messages) - messages[k]
        alphas = class_alphas((outside, n), alpha)
        return pair_weight(row[k], n, sum(row) - row[k], outside, alphas)

    def bias(
        self, histograms: Sequence[Mapping[int, int]], messages: Row, alpha: float
    ) -> list[float]:
        """Return the joint log-likelihood of each class without any token, less its log prior.

        histograms: per class, count -> how many tokens of the vocabulary have it.
        """
        return [log_absent_sum(h, n, alpha) for h, n in zip(histograms, messages, strict=True)]
