"""A token's counts, and the weight of its presence that the evidence is made of.

The evidence rule uses one weight per token, that of a class against all others, whatever the event
model; the event model says what the counts are counts of (`Size`):

    theta_k = (c_k + a_k) / (T_k + m a_k),   w = log theta_spam - log theta_rest

T_k is the number of trials in class k and m the number of outcomes of one: of the Bernoulli model
messages, and 2; of the multinomial one words, and the size of the vocabulary.

It is what the counts say of a message with the token, and no more.  The difference of logits,
which the textbook's Bernoulli sum needs beside its bias, has in it what the token's absence would
have said: of a token that 2,365 of 2,500 ham and 500 of 500 spam have, +7.4 nats, where the counts
say 1.06 : 1.
"""

import math
from collections.abc import Mapping, Sequence

Row = tuple[int, ...]  # a number per class
Histogram = Mapping[int, int]  # count -> how many tokens have it


class Size:
    """What the counts of the tokens are counts of: messages per class, trials, and outcomes."""

    __slots__ = ("messages", "outcomes", "trials")

    def __init__(self, messages: Sequence[int], trials: Sequence[int], outcomes: int) -> None:
        """Keep them; messages, trials: per class; outcomes: of a trial."""
        self.messages = tuple(messages)
        self.trials = tuple(trials)
        self.outcomes = outcomes


def class_alphas(messages: Sequence[float], alpha: float) -> list[float]:
    """Return the smoothing of each of K classes, K alpha (N_k + 1) / (N + K); its mean is alpha.

    The 1 and the K keep it above 0 for a class without messages: its only one may be left out.
    """
    k = len(messages)
    return [alpha * k * (n + 1) / (sum(messages) + k) for n in messages]


def pair_weight(
    inside: float, n: float, outside: float, rest: float, alphas: Sequence[float], outcomes: int = 2
) -> float:
    """Return log theta_spam - log theta_rest of a token's presence, in nats.

    inside: its count in the n trials of the positive class; outside: in the `rest` of the others.
    alphas: smoothing of the rest and of the positive class (`class_alphas`).
    """
    log = math.log
    return (log(inside + alphas[1]) - log(n + outcomes * alphas[1])) - (
        log(outside + alphas[0]) - log(rest + outcomes * alphas[0])
    )


def contrast(row: Row, size: Size, k: int, alpha: float) -> float:
    """Return a present token's weight for class k against all others, in nats."""
    messages, trials = size.messages, size.trials
    alphas = class_alphas((sum(messages) - messages[k], messages[k]), alpha)
    rest = sum(trials) - trials[k]
    return pair_weight(row[k], trials[k], sum(row) - row[k], rest, alphas, size.outcomes)
