"""Bernoulli naive Bayes for one message, with the standard library alone.

A message is the set of its tokens; class k holds N_k messages, of which c_jk contain token j.

    theta_jk = (c_jk + a) / (N_k + 2 a)                    smoothed likelihood of token j in class k
    w_jk     = log theta_jk - log(1 - theta_jk)             weight of token j, present
    b_k      = log P(k) + sum_j log(1 - theta_jk)           bias: as if no token were present
    log P(k, x) = b_k + sum_j w_jk x_j                      joint log-likelihood of message x

For two classes the log-odds are the difference of the two joints, the difference of the weights
being  w_j = log theta_j1 - log(1 - theta_j1) - log theta_j0 + log(1 - theta_j0).

2 a, not m a with the m of the whole vocabulary, stands below the line: a token is present or
absent, two outcomes, and only so do P(present) and P(absent) add up to 1 (McCallum and Nigam
1998, equation 6 with Laplace's prior; scikit-learn's BernoulliNB does the same).  Logs are taken
of counts, never of 1 - exp(...): for small a that loses seven digits.

The sums run over the vocabulary, which is every token seen in training.
`matrix.py` has the same formulas for many messages at once; a test holds the two together.
"""

import math
from collections.abc import Iterable, Mapping, Sequence


def weight(count: int, messages: int, alpha: float) -> float:
    """Return log theta - log(1 - theta), in nats, of a token that `count` of `messages` contain."""
    return math.log((count + alpha) / (messages - count + alpha))


def log_priors(messages: Sequence[int], prior: float | None, positive: int | None) -> list[float]:
    """Return log P(k) of each class.

    prior: P(positive class) if the user fixed it; the other classes share the rest as their
    messages do.  A class without messages gets -inf.
    """
    total = sum(messages)
    shares = [n / total if total else 1 / len(messages) for n in messages]
    if prior is not None and positive is not None:
        rest = 1 - shares[positive]
        shares = [
            prior
            if k == positive
            else (1 - prior) * (share / rest if rest else 1 / (len(messages) - 1))
            for k, share in enumerate(shares)
        ]
    return [math.log(share) if share > 0 else -math.inf for share in shares]


def log_absent_sum(count_histograms: Mapping[int, int], messages: int, alpha: float) -> float:
    """Return sum_j log(1 - theta_j) over the vocabulary, in nats.

    count_histograms: count -> how many tokens of the vocabulary have it in this class.  The sum
    needs no more than that, which is why the model file keeps it.
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


def softmax(log_scores: Sequence[float]) -> list[float]:
    """Return the probabilities that go with log-scores; they add up to 1."""
    top = max(log_scores)
    if top == -math.inf:
        return [1 / len(log_scores)] * len(log_scores)
    powers = [math.exp(score - top) for score in log_scores]
    total = sum(powers)
    return [power / total for power in powers]


def sigmoid(log_odds: float) -> float:
    """Return the probability of log-odds, without overflow at either end."""
    if log_odds >= 0:
        return 1 / (1 + math.exp(-log_odds))
    power = math.exp(log_odds)
    return power / (1 + power)
