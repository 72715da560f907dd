"""From the inputs of a message to its log-odds, and how sure few words and few messages can be.

Starting from the prior log-odds p of the class, the calibration moves them to

    z = p + hold (kappa b . x - margin - p)

- kappa is MacKay's: a Gaussian uncertainty s2 of the logit is averaged out by
  kappa = 1 / sqrt(1 + pi/8 s2) (MacKay 1992, "The evidence framework applied to classification
  networks").  Here s2 = CALIBRATION_DOUBT x' L^-1 x + COUNT_DOUBT (b . x)^2 / m: the uncertainty of
  the coefficients, and that of words counted in few messages (m in the smaller class).
- margin is caution for ham, 1 nat with no ham learned: 1 / (1 + (ham / HAM_ENOUGH)^2).  A filter
  that has seen little ham does not know what ham can look like.
- hold keeps the move from the prior within HALF of what the words say added up in its direction:
  few known words say little, and no known word says nothing.  Correlated words say less than their
  sum in any case, so a message of ordinary length is never held.

How far the header channel is trusted: as far as the collecting hosts say that it may be.

On one server's mail the header fields are the best evidence there is; where ham and spam were
collected at different places, they show the place and not the class.  Who collected a mail is known
without looking at its class: the host that took it in.  If that host alone tells the class, the
collection is confounded, and the headers deserve no trust:

    rho = min(1, L / L0)     L  = - sum_h sum_k n_hk ln[(n_hk - 1 + pi_k) / n_h]    left out
                             L0 = - sum_k n_k ln pi_k,   pi_k = (n_k - 1/2) / n
    tau = rho m / (m + ENOUGH) w / (w + WORDS)

n_hk: mails of class k collected by host h; n_h, n_k, n their sums.  L is the surprise of each
mail's class given its host, itself left out, and L0 without the host.  A host of one mail says
nothing by itself, so those are one host together (left out, one of each class ranked P7 at 20.9
1-ROCA% and not 17.4); messages without a host (texts, imported counts) are one more, since their
words are counted too.  w: known words of the header channel in the message at
hand; m: mails with a host in the smaller class, times the share of such mails in all messages.
From counts alone, so it merges, is unlearned and updated as counts are.
(docs/research/ideas-tried.md has what was tried.)
"""

import math
from collections.abc import Iterable, Sequence
from operator import mul
from typing import NamedTuple

from nbspam.bayes.calibration import (
    LENGTH,
    TRAITS,
    Calibration,
    Scale,
    Vector,
    clamped,
    first_inputs,
    solve,
)
from nbspam.bayes.evidence import WORD_FEATURES, Group

CALIBRATION_DOUBT, COUNT_DOUBT = 0.1, 0.3
HAM_ENOUGH = 200.0
HALF = 0.5


class Experience(NamedTuple):
    """How many messages a class's log-odds stand on."""

    own: float  # of the class
    others: float

    @property
    def fewest(self) -> float:
        """Messages on the side that has fewer."""
        return min(self)

    @property
    def prior(self) -> float:
        """The prior log-odds of the class, in nats; half a message on both sides."""
        return math.log((self.own + 0.5) / (self.others + 0.5))

    @property
    def margin(self) -> float:
        """The caution for the other classes, in nats."""
        return 1 / (1 + (self.others / HAM_ENOUGH) ** 2)


class Prediction(NamedTuple):
    """The log-odds of a message by one calibration, and what they consist of."""

    log_odds: float  # in nats
    gain: float  # hold kappa: what b . x is multiplied by
    hold: float  # 0 to 1
    inputs: Vector  # x, each feature within its bounds


def predict(
    calibration: Calibration,
    covariance: Sequence[Vector],
    x: Vector,
    groups: Sequence[Group],
    experience: Experience,
) -> Prediction:
    """Return the prediction for a message.

    covariance: the inverse of the calibration's precision.  x: the message's inputs.
    groups: the groups of words that x summarizes.
    """
    held_x = clamped(calibration, x)
    raw = _product(calibration.coefficients, held_x)
    spread = _product(held_x, [_product(row, held_x) for row in covariance])
    # Rounding can take the spread of a nearly singular precision, from an edited file, below 0.
    doubt = CALIBRATION_DOUBT * max(0.0, spread)
    doubt += COUNT_DOUBT * raw * raw / max(0.5, experience.fewest)
    kappa = 1 / math.sqrt(1 + math.pi / 8 * doubt)
    prior = experience.prior
    move = kappa * raw - experience.margin - prior
    highest = HALF * math.fsum(group.positive for group in groups)
    lowest = HALF * math.fsum(group.negative for group in groups)
    held = min(max(move, lowest), highest)
    hold = held / move if move else 1.0
    return Prediction(prior + held, hold * kappa, hold, held_x)


def _product(a: Vector, b: Sequence[float]) -> float:
    """Return the inner product of two vectors; half the time of a generator's."""
    return math.fsum(map(mul, a, b))


def inverse(matrix: Sequence[Vector]) -> tuple[Vector, ...]:
    """Return the inverse of a symmetric, positive definite matrix."""
    n = len(matrix)
    columns = [solve(matrix, [1.0 if i == j else 0.0 for j in range(n)]) for i in range(n)]
    return tuple(map(tuple, columns))


class Parts(NamedTuple):
    """A prediction taken apart; its terms add up to the log-odds, in nats."""

    constant: float
    length: float
    caution: float
    prior: float
    word_coefficients: tuple[Vector, ...]  # per group: of its word features as they are
    trait_coefficient: float  # of the feature of the traits as it is; 0 without


def parts_of(
    scale: Scale, calibration: Calibration, found: Prediction, x: Vector, experience: Experience
) -> Parts:
    """Return what a prediction consists of; x: the message's inputs, before they were held."""
    b, gain = calibration.coefficients, found.gain

    def coefficient(i: int) -> float:
        return gain * b[i] * (found.inputs[i] / x[i] if x[i] else 1.0)

    return Parts(
        constant=gain * b[0],
        length=gain * b[LENGTH] * found.inputs[LENGTH],
        caution=-found.hold * experience.margin,
        prior=(1 - found.hold) * experience.prior,
        word_coefficients=tuple(
            tuple(coefficient(i) for i in range(first, first + WORD_FEATURES))
            for first in first_inputs(scale)
        ),
        trait_coefficient=coefficient(len(x) - 1) if scale.features[-1] == TRAITS else 0.0,
    )


# Mails of the smaller class, and known header words of a message, that earn half of the trust.
ENOUGH = 5.0
WORDS = 1.0

HostRow = tuple[tuple[int, ...], int]  # mails per class of a host, and how many hosts have that


def unconfoundedness(rows: Iterable[HostRow], messages: Sequence[int]) -> tuple[float, float]:
    """Return rho, 0 to 1, and m, how many mails speak for it; 0 without two classes.

    rows: of all hosts, in any order.  messages: learned, per class.
    """
    rows = list(rows)
    classes = range(len(messages))
    hosted = [sum(row[k] * hosts for row, hosts in rows) for k in classes]
    if sum(map(bool, hosted)) < 2:
        return 0.0, 0.0
    # Not below 0: in counts from elsewhere the hosts may have more mails than there are messages.
    unhosted = tuple(max(0, n - own) for n, own in zip(messages, hosted, strict=True))
    alone = [(row, hosts) for row, hosts in rows if sum(row) == 1]
    pooled = tuple(sum(row[k] * hosts for row, hosts in alone) for k in classes)
    rows = [(row, hosts) for row, hosts in rows if sum(row) > 1]
    rows += [(row, 1) for row in (pooled, unhosted) if sum(row) > 1]
    totals = [sum(row[k] * hosts for row, hosts in rows) for k in classes]
    n = sum(totals)
    if sum(map(bool, totals)) < 2:
        return 0.0, 0.0
    shares = [(total - 0.5) / n for total in totals]
    given_host = math.fsum(
        -hosts * row[k] * math.log((max(row[k] - 1, 0) + shares[k]) / sum(row))
        for row, hosts in rows
        for k in classes
        if row[k]
    )
    without_host = math.fsum(
        -total * math.log(share) for total, share in zip(totals, shares, strict=True) if total
    )
    fewest = min(own for own in hosted if own)
    share = sum(hosted) / (sum(hosted) + sum(unhosted))
    return max(0.0, min(1.0, given_host / without_host)), fewest * share


def trust(rho: float, mails: float, header_words: int) -> float:
    """Return tau, 0 to below 1: the part of the log-odds that the header channel has a say in."""
    if not (mails and header_words):
        return 0.0
    return rho * mails / (mails + ENOUGH) * header_words / (header_words + WORDS)
