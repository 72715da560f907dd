"""Probabilities, odds and log-odds, and the prior in them; with the standard library alone."""

import math
from collections.abc import Sequence

IMPOSSIBLE = 1e9  # nats: JSON has no infinity


def sigmoid(log_odds: float) -> float:
    """Return the probability of log-odds, without overflow at either end."""
    if log_odds >= 0:
        return 1 / (1 + math.exp(-log_odds))
    power = math.exp(log_odds)
    return power / (1 + power)


def log_sigmoid(log_odds: float) -> float:
    """Return the log of the probability of log-odds, without overflow at either end."""
    return min(log_odds, 0.0) - math.log1p(math.exp(-abs(log_odds)))


def logit(probability: float) -> float:
    """Return the log-odds of a probability, in nats; infinite at 0 and 1."""
    if probability <= 0:
        return -math.inf
    if probability >= 1:
        return math.inf
    return math.log(probability) - math.log1p(-probability)


def softmax(log_scores: Sequence[float]) -> list[float]:
    """Return the probabilities of classes with these log-scores; they add up to 1."""
    top = max(log_scores)
    if top == -math.inf:
        return [1 / len(log_scores)] * len(log_scores)
    powers = [math.exp(score - top) for score in log_scores]
    total = sum(powers)
    return [power / total for power in powers]


def odds_of_class(log_scores: Sequence[float], k: int) -> float:
    """Return the log-odds of class k against the others, in nats; always finite."""
    others = [value for i, value in enumerate(log_scores) if i != k]
    top = max(others)
    if top == -math.inf or log_scores[k] == -math.inf:  # a class without messages
        return IMPOSSIBLE if top == -math.inf else -IMPOSSIBLE
    return log_scores[k] - top - math.log(sum(math.exp(o - top) for o in others))


def log_priors(messages: Sequence[int], prior: float | None, positive: int | None) -> list[float]:
    """Return log P(k) of each class.

    prior: P(positive class) if the user fixed it; the other classes share the rest as their
    messages do.  A class without messages gets -inf.
    """
    total = sum(messages)
    shares = [n / total if total else 1 / len(messages) for n in messages]
    if prior is not None and positive is not None:
        shares = [_fixed_share(messages, prior, positive, k) for k in range(len(messages))]
    return [math.log(share) if share > 0 else -math.inf for share in shares]


def _fixed_share(messages: Sequence[float], prior: float, positive: int, k: int) -> float:
    """Return the share of class k where the positive class's share is fixed."""
    if k == positive:
        return prior
    others = sum(messages) - messages[positive]
    return (1 - prior) * (messages[k] / others if others else 1 / (len(messages) - 1))


def prior_offset(
    messages: Sequence[float], prior: float | None, positive: int | None, k: int
) -> float:
    """Return what a fixed prior adds to the calibrated log-odds of class k, in nats; else 0.

    The calibration's constant has learned the classes' shares in training; the offset is the
    difference between those and the shares asked for.
    """
    if prior is None or positive is None:
        return 0.0
    n, total = messages[k], sum(messages)
    # Half a message on both sides: finite without messages.
    learned = math.log((n + 0.5) / (total - n + 0.5))
    return logit(_fixed_share(messages, prior, positive, k)) - learned
