"""A shared model beneath a personal one: its probabilities are the prior of the personal counts.

A token that c of N own messages contain, and C of the M messages of the base, has in each class

    theta = (c + r C + a) / (N + r M + 2 a),   r = min(s, M) / M

The base counts as s messages of each class, however many it has learned: a Beta prior with the
base's theta as its mean and s as its strength (McCallum and others call it shrinkage).  With s = 0
there is no base, with s = M the two models are merged.

The strength is learned from past messages.  Each own message is scored by each of STRENGTHS as if
it had not been learned; the sum of their log-losses, in which older messages count less and less,
gives each strength a likelihood, and the strength in use is their geometric mean:

    ln s = sum_i p_i ln s_i,   p_i ~ exp(-loss_i)

So a base that fits is relied on, and one that does not, or that the own messages have outgrown, is
not.  (docs/how-it-decides.md has what was tried.)

Standard library only.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from nbspam.bayes.calibration import Calibration, Calibrations, Scale, pooled
from nbspam.bayes.prediction import Experience
from nbspam.bayes.token_weight import class_alphas, pair_weight

STRENGTHS = (1.0, 10.0, 100.0, 1000.0)  # messages of each class
FADE = 0.995  # of the losses, for each message
WORST = 5.0  # nats: one mislabelled message must not decide
Losses = tuple[float, ...]  # per strength: the faded sum of the log-losses, in nats

NO_LOSSES: Losses = (0.0,) * len(STRENGTHS)


def strength_of(losses: Sequence[float]) -> float:
    """Return the strength of the base, in messages of each class."""
    least = min(losses)
    likelihoods = [math.exp(least - loss) for loss in losses]
    logs = (p * math.log(s) for p, s in zip(likelihoods, STRENGTHS, strict=True))
    return math.exp(math.fsum(logs) / math.fsum(likelihoods))


def with_message(losses: Sequence[float], log_odds: Sequence[float], is_spam: bool) -> Losses:
    """Return the losses with one more message in them.

    log_odds: of the message, by each strength, as if it had not been learned.
    """
    return tuple(
        FADE * loss + min(WORST, log_loss(z, is_spam))
        for loss, z in zip(losses, log_odds, strict=True)
    )


def log_loss(log_odds: float, is_spam: bool) -> float:
    """Return -ln of the probability that the log-odds give to what is so, in nats."""
    against = -log_odds if is_spam else log_odds
    return max(against, 0.0) + math.log1p(math.exp(-abs(against)))


class Sides(tuple[float, float]):
    """How many messages there are of a class, and of the others together: (others, own)."""

    __slots__ = ()

    @classmethod
    def of(cls, messages: Sequence[float], k: int) -> "Sides":
        """Return the sides of class k."""
        return cls((math.fsum(messages) - messages[k], messages[k]))


def lent(sides: Sequence[float], strength: float) -> tuple[float, float]:
    """Return as how many messages of either side the base counts."""
    return min(strength, sides[0]), min(strength, sides[1])


def based_weight(
    own: Sequence[float],
    own_sides: Sequence[float],
    base: Sequence[float],
    base_sides: Sequence[float],
    strength: float,
    alpha: float,
) -> float:
    """Return log theta_k - log theta_rest of a token's presence, in nats.

    own, base: how many messages of the others and of the class contain it, (others, own), of the
    own messages and of the base; own_sides, base_sides: of how many.
    """
    rest, of_class = lent(base_sides, strength)
    n_rest, n = own_sides[0] + rest, own_sides[1] + of_class
    return pair_weight(
        own[1] + base[1] * of_class / (base_sides[1] or 1),
        n,
        own[0] + base[0] * rest / (base_sides[0] or 1),
        n_rest,
        class_alphas((n_rest, n), alpha),
    )


def part_of_base(
    own: Sequence[int], base: Sequence[int], base_messages: Sequence[int], strength: float
) -> float:
    """Return how much of what is known of a token is from the base, 0 to 1.

    own, base, base_messages: per class.
    """
    pairs = zip(base, base_messages, strict=True)
    pseudo = math.fsum(c * min(strength, m) / m for c, m in pairs if m)
    return pseudo / (pseudo + sum(own)) if pseudo else 0.0


def based_density(own: float, n: float, base: float, n_base: float) -> float:
    """Return the log of a mixture of two densities of a trait, given their logs.

    n, n_base: the messages that each is of; not both 0.
    """
    if not n:
        return base
    if not n_base:
        return own
    top = max(own, base)
    total = n * math.exp(own - top) + n_base * math.exp(base - top)
    return top + math.log(total / (n + n_base))


class BasedExperience(NamedTuple):
    """An `Experience` with two models: the words and the ham of both are known.

    The prior is that of the own messages and of as many of the base's as it counts, in its own
    classes' shares: twice its strength in all.
    """

    fewest: float
    margin: float
    prior: float


def based_experience(
    own: Sequence[int], base: Sequence[int], k: int, strength: float
) -> BasedExperience:
    """Return what the log-odds of class k stand on; own, base: messages per class."""
    both = [n + m for n, m in zip(own, base, strict=True)]
    known = Experience(both[k], sum(both) - both[k])
    counted = messages_lent(own, base, strength)
    prior = Experience(counted[k], math.fsum(counted) - counted[k]).prior
    return BasedExperience(known.fewest, known.margin, prior)


def messages_lent(own: Sequence[int], base: Sequence[int], strength: float) -> list[float]:
    """Return the messages of each class, the base's as many as it counts."""
    part = min(2 * strength, sum(base)) / sum(base)
    return [n + part * m for n, m in zip(own, base, strict=True)]


def based_trust(
    own: tuple[float, float], n: int, base: tuple[float, float], n_base: int, strength: float
) -> tuple[float, float]:
    """Return rho and m of `trust.py` of both models: the base's hosts are none of the own.

    own, base: rho and m of each; n, n_base: the messages that they have learned.
    """
    lent_messages = min(2 * strength, n_base)
    part = lent_messages / (n + lent_messages)
    rho = (1 - part) * own[0] + part * base[0] if base[1] else own[0]
    return rho, own[1] + min(base[1], strength)


def based_scale(scale: Scale, base: Calibration) -> Scale:
    """Return the scale of a calibration whose prior has the base's coefficients as its mean."""
    return scale._replace(mean=base.coefficients)


def based_ranges(own: Calibration, base: Calibration) -> Calibration:
    """Return a calibration with the ranges of both: what either has seen is known."""
    if own.ranges == ((0.0, 0.0),) * len(own.ranges):  # nothing seen so far
        return own._replace(ranges=base.ranges)
    pairs = zip(own.ranges, base.ranges, strict=True)
    ranges = tuple((min(a, c), max(b, d)) for (a, b), (c, d) in pairs)
    return own._replace(ranges=ranges)


def first_calibrations(
    scales: Sequence[Scale], base: Calibrations, own: Calibrations, few: int
) -> Calibrations:
    """Return the calibrations before any message was scored with the base.

    They are the base's, as sure as a prior is; of a personal model that learned without the base,
    the mean of both, the base's with the weight of so many messages as its strength at first.
    few: own messages of the smaller class.
    """
    start = round(strength_of(NO_LOSSES))
    found = []
    for scale, of_base, of_own in zip(scales, base, own, strict=True):
        parts = [(of_base, start), (of_own, few)] if few else [(of_base, start)]
        both = pooled(scale, parts)
        n = scale.size
        precision = tuple(
            tuple(p if i == j else 0.0 for j in range(n)) for i, p in enumerate(scale.precision)
        )
        found.append(Calibration(both.coefficients, precision, both.ranges))
    return Calibrations(*found)
