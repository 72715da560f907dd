"""Event models: how a token is counted, and the weights and probabilities that follow.

Naive Bayes multiplies a likelihood for each token.  An event model defines the counts, their
possible values, and the weights; everything else (evidence, calibration, the model file, learning)
is the same for all.  Counts, messages and histograms are integers per class, so learning in any
order and forgetting are exact.

A new event model is a subclass of `EventModel`, and an entry of EVENT_MODELS; `EventArrays`
(`matrix.py`) has the same formulas for many messages at once, each scored as if it had not been
learned.

The evidence rule (`scoring/rules.py`) uses as a token's weight the log-ratio between a class and
all other classes, by the same formula in every event model.  The models differ in the trials
(`TrialTotals`):

    theta_k = (c_k + a_k) / (T_k + m a_k),   w = log theta_spam - log theta_rest

In class k, c_k is the token's count, a_k the smoothing (`class_alphas`), and T_k the number of
trials; m is the number of outcomes of one trial.  The trials of the Bernoulli model are messages,
with 2 outcomes; the trials of the multinomial model are words, with an outcome for each word of the
vocabulary.

This weight measures only the token's presence.  The textbook's Bernoulli sum uses the difference of
logits, which also measures the token's absence: for a token in 2,365 of 2,500 hams and 500 of 500
spams that difference is +7.4 nats, although the shares are nearly equal (1.06 : 1).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

Row = tuple[int, ...]  # a number per class
Histogram = Mapping[int, int]  # count -> number of tokens with this count


class TrialTotals(NamedTuple):
    """Messages and trials per class, and the number of outcomes of one trial."""

    messages: Row
    trials: Row
    outcomes: int


def class_alphas(messages: Sequence[float], alpha: float) -> list[float]:
    """Return the smoothing of each of K classes, K alpha (N_k + 1) / (N + K); its mean is alpha.

    Adding 1 and K keeps the smoothing above 0 for a class without messages, such as a class whose
    only message is left out.
    """
    k = len(messages)
    return [alpha * k * (n + 1) / (sum(messages) + k) for n in messages]


def pair_weight(
    n_positive: float,
    n: float,
    outside: float,
    rest: float,
    alphas: Sequence[float],
    outcomes: int = 2,
) -> float:
    """Return log theta_spam - log theta_rest of a token's presence, in nats.

    n_positive: its count in the n trials of the positive class.
    outside: its count in the `rest` trials of the other classes.
    alphas: smoothing of the rest and of the positive class (`class_alphas`).
    """
    log = math.log
    return (log(n_positive + alphas[1]) - log(n + outcomes * alphas[1])) - (
        log(outside + alphas[0]) - log(rest + outcomes * alphas[0])
    )


# Weights are multiples of 1 / GRID nats.  So weights that are equal on paper are equal in floating
# point, on all processors, and sums of weights are exact up to 2^21 nats, in any order.
GRID = 2.0**32


def round_to_grid(value: float) -> float:
    """Return the nearest multiple of 1 / GRID."""
    return round(value * GRID) / GRID


def one_vs_rest_weight(row: Row, size: TrialTotals, k: int, alpha: float) -> float:
    """Return a present token's weight for class k against all others, in nats, on the grid."""
    messages, trials = size.messages, size.trials
    alphas = class_alphas((sum(messages) - messages[k], messages[k]), alpha)
    rest = sum(trials) - trials[k]
    return round_to_grid(
        pair_weight(row[k], trials[k], sum(row) - row[k], rest, alphas, size.outcomes)
    )


class EventModel:
    """How a token is counted, and the weights that follow from its counts."""

    name: str  # in the model file
    has_tokens = True
    counts_repeats = False  # a token counts as often as it occurs in a message, not once
    has_prior = True  # the textbook's sum includes the classes' prior

    def is_valid_row(self, row: Row, messages: Row) -> bool:
        """Return whether a token can have these counts.

        Each count is from 0 to the number of the class's messages, and at least one is above 0.
        row: the count per class.  messages: the number of messages per class.
        """
        return any(row) and all(0 <= c <= n for c, n in zip(row, messages, strict=True))

    def size(self, histograms: Sequence[Histogram], messages: Row) -> TrialTotals:
        """Return the trials: messages, in which a token is present or absent.

        histograms: per class, count -> number of tokens of the vocabulary with this count.
        """
        return TrialTotals(messages, messages, 2)

    def class_weights(self, row: Row, size: TrialTotals, alpha: float) -> tuple[float, ...]:
        """Return the weight of a token for each class, in nats; 0 in a model without tokens."""
        return (0.0,) * len(row)

    def bias(self, histograms: Sequence[Histogram], messages: Row, alpha: float) -> list[float]:
        """Return each class's joint log-likelihood without any token, less its log prior."""
        return [0.0] * len(messages)


def joint_log_likelihoods(
    bias: Sequence[float], token_weights: Iterable[Sequence[float]]
) -> list[float]:
    """Return the joint log-likelihood of each class, given the weights of the message's tokens."""
    rows = list(token_weights)
    return [math.fsum([b, *(row[k] for row in rows)]) for k, b in enumerate(bias)]


class NoTokens(EventModel):
    """The event model of the textbook's Gaussian naive Bayes, which uses traits only."""

    name = "none"
    has_tokens = False

    def is_valid_row(self, row: Row, messages: Row) -> bool:
        """Return False, because no token has counts."""
        return False


class Bernoulli(EventModel):
    """A token is present in a message or absent from it; a message is the set of its tokens.

    Class k has N_k messages, of which c_jk contain token j.

        theta_jk = (c_jk + a) / (N_k + 2 a)               smoothed likelihood of token j in class k
        w_jk     = log theta_jk - log(1 - theta_jk)       weight of token j, present
        b_k      = log P(k) + sum_j log(1 - theta_jk)     bias: for a message without tokens
        log P(k, x) = b_k + sum_j w_jk x_j                joint log-likelihood of message x

    For two classes the log-odds are the difference of the two joint log-likelihoods.  The weight of
    token j in them is  w_j = log theta_j1 - log(1 - theta_j1) - log theta_j0 + log(1 - theta_j0).

    The denominator has 2 a, not m a for a vocabulary of m tokens: a token is present or absent, two
    outcomes, and only with 2 a do P(present) and P(absent) add up to 1 (McCallum and Nigam 1998,
    equation 6 with Laplace's prior; scikit-learn's BernoulliNB does the same).  The code takes
    logs of counts, never of 1 - exp(...), which would lose seven digits for small a.

    The sums run over the vocabulary, which is every token seen in training.
    """

    name = "bernoulli"

    def class_weights(self, row: Row, size: TrialTotals, alpha: float) -> tuple[float, ...]:
        """Return a present token's weight for each class, logit theta, in nats."""
        pairs = zip(row, size.messages, strict=True)
        return tuple(math.log((c + alpha) / (n - c + alpha)) for c, n in pairs)

    def bias(self, histograms: Sequence[Histogram], messages: Row, alpha: float) -> list[float]:
        """Return sum_j log(1 - theta_jk) per class, from the histograms."""
        return [
            math.fsum(
                tokens * (math.log(n - count + alpha) - math.log(n + 2 * alpha))
                for count, tokens in histogram.items()
            )
            for histogram, n in zip(histograms, messages, strict=True)
        ]


class Multinomial(EventModel):
    """A token counts as often as it occurs: each word is drawn from its class's vocabulary.

    A message is a bag of tokens, which contains token j x_j times.  The messages of class k contain
    token j n_jk times, and n_k tokens in all.  The vocabulary has m different tokens.

        theta_jk = (n_jk + a) / (n_k + a m)              smoothed likelihood of token j in class k
        log P(k, x) = log P(k) + sum_j x_j log theta_jk  joint, but for the multinomial coefficient,
                                                         which is the same for all classes

    If theta is the posterior mode under a symmetric Dirichlet prior, a is the prior's parameter
    less 1; if theta is the posterior mean, a is the parameter itself (McCallum and Nigam 1998,
    equations 3 and 6; Manning, Raghavan and Schuetze, "Introduction to Information Retrieval",
    13.2, where a is 1).  scikit-learn's MultinomialNB is the same.  A token that training
    has not seen is ignored.
    """

    name = "multinomial"
    counts_repeats = True

    def is_valid_row(self, row: Row, messages: Row) -> bool:
        """Return whether a token can have these counts.

        At least one is above 0, and the count in a class without messages is 0.
        """
        pairs = zip(row, messages, strict=True)
        return any(row) and all(c == 0 or (c > 0 and n > 0) for c, n in pairs)

    def size(self, histograms: Sequence[Histogram], messages: Row) -> TrialTotals:
        """Return the trials: words, each with one outcome per token of the vocabulary."""
        trials = tuple(sum(count * tokens for count, tokens in h.items()) for h in histograms)
        # At least 1, because an empty vocabulary would give log(0); the weights are not used then.
        return TrialTotals(messages, trials, max(1, sum(histograms[0].values())))

    def class_weights(self, row: Row, size: TrialTotals, alpha: float) -> tuple[float, ...]:
        """Return log theta of a token for each class, in nats, per occurrence."""
        log, pairs = math.log, zip(row, size.trials, strict=True)
        return tuple(log(c + alpha) - log(n + alpha * size.outcomes) for c, n in pairs)


class Complement(Multinomial):
    """A class is scored by how badly its complement, all other classes, explains the message.

    With the counts of the multinomial model, and ~k for all classes but k together:

        theta_jk = (n_j~k + a) / (n_~k + a m)
        score of k = - sum_j x_j log theta_jk              the least likely complement wins

    Complements suit classes of very different sizes, because all complements have similar sizes
    (Rennie, Shih, Teevan and Karger 2003, "Tackling the Poor Assumptions of Naive Bayes Text
    Classifiers", section 3.1; without their length normalization and TF-IDF).  As in scikit-learn's
    ComplementNB the prior is left out, since the words of any text outweigh it.

    With two classes the difference of the scores equals the multinomial model's, except for the
    prior.  The evidence rule's weights equal the multinomial model's.
    """

    name = "complement"
    has_prior = False

    def class_weights(self, row: Row, size: TrialTotals, alpha: float) -> tuple[float, ...]:
        """Return -log theta of a token in the complement of each class, in nats."""
        log = math.log
        total, trials = sum(row), sum(size.trials)
        pairs, added = zip(row, size.trials, strict=True), alpha * size.outcomes
        return tuple(log(trials - n + added) - log(total - c + alpha) for c, n in pairs)


BERNOULLI, NO_TOKENS = Bernoulli.name, NoTokens.name
_MODELS: dict[str, EventModel] = {
    model.name: model for model in (Bernoulli(), Multinomial(), Complement(), NoTokens())
}
EVENT_MODELS = tuple(_MODELS)


def event_model(name: str) -> EventModel:
    """Return the event model of this name, one of EVENT_MODELS."""
    return _MODELS[name]


# Probabilities, odds and log-odds, and the prior in them

MAX_LOG_ODDS = 1e9  # nats: JSON has no infinity


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


def class_log_odds(log_scores: Sequence[float], k: int) -> float:
    """Return the log-odds of class k against the others, in nats; always finite."""
    others = [value for i, value in enumerate(log_scores) if i != k]
    top = max(others)
    if top == -math.inf or log_scores[k] == -math.inf:  # a class without messages
        return MAX_LOG_ODDS if top == -math.inf else -MAX_LOG_ODDS
    return log_scores[k] - top - math.log(sum(math.exp(o - top) for o in others))


def log_priors(messages: Sequence[int], prior: float | None, positive: int | None) -> list[float]:
    """Return log P(k) of each class.

    prior: P(positive class) if the user fixed it; the other classes share the rest in proportion
    to their messages.  A class without messages gets -inf.
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
    """Return the shift of class k's calibrated log-odds by a fixed prior, in nats; 0 without one.

    The calibration's constant has learned the classes' shares in training.  The offset is the
    difference between the requested shares and these.
    """
    if prior is None or positive is None:
        return 0.0
    n, total = messages[k], sum(messages)
    # With half a message added on both sides, the logarithm is finite for a class without messages.
    learned = math.log((n + 0.5) / (total - n + 0.5))
    return logit(_fixed_share(messages, prior, positive, k)) - learned
