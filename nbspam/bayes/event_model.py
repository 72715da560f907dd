"""The event models: how a token is counted, and the weights and probabilities that follow.

Naive Bayes multiplies a likelihood for each token.  An event model says what is counted, which
counts are possible, and which weights follow from them; everything else (evidence, calibration, the
model file, learning) is the same for all of them.  Counts, messages and histograms are integers per
class, so that learning in any order and forgetting are exact whatever the event model.

A new event model is a subclass of `EventModel`, and an entry of EVENT_MODELS; `EventArrays`
(`matrix.py`) has the same formulas for many messages at once, each left out.

Every event model has the same weight of a token for the evidence rule, that of a class against all
others; they differ in what the counts are counts of (`VocabularySize`):

    theta_k = (c_k + a_k) / (T_k + m a_k),   w = log theta_spam - log theta_rest

T_k is the number of trials in class k and m the number of outcomes of one: of the Bernoulli model
messages, and 2; of the multinomial one words, and the size of the vocabulary.
It is what the counts say of a message with the token, and no more.  The difference of logits,
which the textbook's Bernoulli sum needs beside its bias, has in it what the token's absence would
have said: of a token that 2,365 of 2,500 ham and 500 of 500 spam have, +7.4 nats, where the counts
say 1.06 : 1.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

Row = tuple[int, ...]  # a number per class
Histogram = Mapping[int, int]  # count -> how many tokens have it


class VocabularySize(NamedTuple):
    """What the counts of the tokens are counts of."""

    messages: Row
    trials: Row
    outcomes: int  # of a trial


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


# Weights are multiples of 1 / GRID nats.  So two that are equal on paper are equal in floating
# point, on all processors, and sums of weights are exact up to 2^21 nats, in any order.
GRID = 2.0**32


def on_grid(value: float) -> float:
    """Return the nearest multiple of 1 / GRID."""
    return round(value * GRID) / GRID


def contrast(row: Row, size: VocabularySize, k: int, alpha: float) -> float:
    """Return a present token's weight for class k against all others, in nats, on the grid."""
    messages, trials = size.messages, size.trials
    alphas = class_alphas((sum(messages) - messages[k], messages[k]), alpha)
    rest = sum(trials) - trials[k]
    return on_grid(pair_weight(row[k], trials[k], sum(row) - row[k], rest, alphas, size.outcomes))


class EventModel:
    """How a token is counted, and the weights that follow from its counts."""

    name: str  # in the model file
    has_tokens = True  # whether tokens are counted at all
    repeats = False  # whether a token counts as often as it occurs in a message, or once
    has_prior = True  # whether the textbook's sum has the classes' prior in it

    def is_row(self, row: Row, messages: Row) -> bool:
        """Return whether a token can have these counts: not all 0, none above its class's messages.

        row, messages: per class.
        """
        return any(row) and all(0 <= c <= n for c, n in zip(row, messages, strict=True))

    def size(self, histograms: Sequence[Histogram], messages: Row) -> VocabularySize:
        """Return what the counts are counts of: messages, in which a token is or is not.

        histograms: per class, count -> how many tokens of the vocabulary have it.
        """
        return VocabularySize(messages, messages, 2)

    def class_weights(self, row: Row, size: VocabularySize, alpha: float) -> tuple[float, ...]:
        """Return the weight of a token for each class, in nats; 0 of a model without tokens."""
        return (0.0,) * len(row)

    def bias(self, histograms: Sequence[Histogram], messages: Row, alpha: float) -> list[float]:
        """Return each class's joint log-likelihood without any token, less its log prior."""
        return [0.0] * len(messages)


def joints(bias: Sequence[float], token_weights: Iterable[Sequence[float]]) -> list[float]:
    """Return the joint log-likelihood of each class, given the weights of the message's tokens."""
    rows = list(token_weights)
    return [math.fsum([b, *(row[k] for row in rows)]) for k, b in enumerate(bias)]


class NoTokens(EventModel):
    """The event model of the textbook's Gaussian naive Bayes: messages are told by their traits."""

    name = "none"
    has_tokens = False

    def is_row(self, row: Row, messages: Row) -> bool:
        """Return False: no token has counts."""
        return False


class Bernoulli(EventModel):
    """A token is present in a message or absent from it; a message is the set of its tokens.

    Class k holds N_k messages, of which c_jk contain token j.

        theta_jk = (c_jk + a) / (N_k + 2 a)               smoothed likelihood of token j in class k
        w_jk     = log theta_jk - log(1 - theta_jk)       weight of token j, present
        b_k      = log P(k) + sum_j log(1 - theta_jk)     bias: as if no token were present
        log P(k, x) = b_k + sum_j w_jk x_j                joint log-likelihood of message x

    For two classes the log-odds are the difference of the two joints, the difference of the weights
    being  w_j = log theta_j1 - log(1 - theta_j1) - log theta_j0 + log(1 - theta_j0).

    The denominator has 2 a, not m a for a vocabulary of m tokens: a token is present or absent, two
    outcomes, and only with 2 a do P(present) and P(absent) add up to 1 (McCallum and Nigam 1998,
    equation 6 with Laplace's prior; scikit-learn's BernoulliNB does the same).  Logs are taken of
    counts, never of 1 - exp(...): for small a that loses seven digits.

    The sums run over the vocabulary, which is every token seen in training.
    """

    name = "bernoulli"

    def class_weights(self, row: Row, size: VocabularySize, alpha: float) -> tuple[float, ...]:
        """Return a present token's weight for each class, logit theta, in nats."""
        pairs = zip(row, size.messages, strict=True)
        return tuple(math.log((c + alpha) / (n - c + alpha)) for c, n in pairs)

    def bias(self, histograms: Sequence[Histogram], messages: Row, alpha: float) -> list[float]:
        """Return sum_j log(1 - theta_jk) per class; the histograms are all that it needs."""
        return [
            math.fsum(
                tokens * (math.log(n - count + alpha) - math.log(n + 2 * alpha))
                for count, tokens in histogram.items()
            )
            for histogram, n in zip(histograms, messages, strict=True)
        ]


class Multinomial(EventModel):
    """A token counts as often as it occurs: each word is drawn from its class's vocabulary.

    A message is a bag of tokens, x_j of token j; n_jk tokens j are in the messages of class k, n_k
    tokens of any kind, and the vocabulary has m different ones.

        theta_jk = (n_jk + a) / (n_k + a m)              smoothed likelihood of token j in class k
        log P(k, x) = log P(k) + sum_j x_j log theta_jk  joint, but for the multinomial coefficient,
                                                         which is the same for all classes

    The a are the parameters of a symmetric Dirichlet prior less 1 (its mode), or the parameters
    themselves (its mean): McCallum and Nigam 1998, equations 3 and 6; Manning, Raghavan and
    Schuetze, "Introduction to Information Retrieval", 13.2, where a is 1.  scikit-learn's
    MultinomialNB is the same.  A token that training has not seen says nothing.
    """

    name = "multinomial"
    repeats = True

    def is_row(self, row: Row, messages: Row) -> bool:
        """Return whether a token can have these counts: not all 0, none of a class without any."""
        pairs = zip(row, messages, strict=True)
        return any(row) and all(c == 0 or (c > 0 and n > 0) for c, n in pairs)

    def size(self, histograms: Sequence[Histogram], messages: Row) -> VocabularySize:
        """Return what the counts are counts of: tokens, each one of the vocabulary."""
        trials = tuple(sum(count * tokens for count, tokens in h.items()) for h in histograms)
        # 1 without a vocabulary, whose logarithm nothing uses.
        return VocabularySize(messages, trials, max(1, sum(histograms[0].values())))

    def class_weights(self, row: Row, size: VocabularySize, alpha: float) -> tuple[float, ...]:
        """Return log theta of a token for each class, in nats, of each time that it occurs."""
        log, pairs = math.log, zip(row, size.trials, strict=True)
        return tuple(log(c + alpha) - log(n + alpha * size.outcomes) for c, n in pairs)


class Complement(Multinomial):
    """A class is scored by how badly its complement, all other classes, explains the message.

    With the counts of the multinomial model, and ~k for all classes but k together:

        theta_jk = (n_j~k + a) / (n_~k + a m)
        score of k = - sum_j x_j log theta_jk              the least likely complement wins

    It was made for classes of very different sizes: the counts of a complement are of about the
    same size for all (Rennie, Shih, Teevan and Karger 2003, "Tackling the Poor Assumptions of Naive
    Bayes Text Classifiers", section 3.1; without their length normalization and TF-IDF).  As in
    scikit-learn's ComplementNB the prior is left out, since the words of any text outweigh it.

    With two classes the difference of the scores is that of the multinomial model, but for the
    prior.  The evidence rule's weights are those of the multinomial model.
    """

    name = "complement"
    has_prior = False

    def class_weights(self, row: Row, size: VocabularySize, alpha: float) -> tuple[float, ...]:
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
