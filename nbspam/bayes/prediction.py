"""From a message's features and the calibrations to its log-odds, and the trust in its header.

In the symbols of `calibration.py`:

Prediction shifts the log-odds from the class's prior log-odds p to

    z = p + shift_factor (kappa b . x - caution - p)

- kappa averages out a Gaussian uncertainty s2 of the logit: kappa = 1 / sqrt(1 + (pi / 8) s2)
  (MacKay 1992, "The evidence framework applied to classification networks").  Here s2 is
  CALIBRATION_DOUBT (x' L^-1 x) + COUNT_DOUBT (b . x)^2 / m: the uncertainty of b, and the
  uncertainty of words counted in few messages (m in the smaller class).
- caution = 1 / (1 + (ham / CAUTION_HALVED_AT)^2): 1 nat with no ham learned.  A filter that has
  seen little ham does not know what ham can look like.
- shift_factor limits the shift to MAX_SHIFT_SHARE of the sum of the weights that point in its
  direction: few known words are weak evidence, and without known words there is no shift.
  Correlated words are weaker evidence than their sum, so in a message of ordinary length the limit
  has no effect.

Trust in the header channel depends on the collecting hosts.  On one server's mail the header fields
are the best evidence; if ham and spam were collected at different places, the fields show the place
and not the class.  The collecting host, which received the mail, is known without the mail's
class.  If the host predicts the class by itself, the headers deserve no trust:

    rho = min(1, S / S0)     S  = - sum_h sum_k n_hk ln[(n_hk - 1 + pi_k) / n_h]    left out
                             S0 = - sum_k n_k ln pi_k,   pi_k = (n_k - 1/2) / n
    tau = rho  x  m / (m + HOST_MAILS_HALF_TRUST)  x  w / (w + HEADER_WORDS_HALF_TRUST)

n_hk is the number of mails of class k collected by host h; n_h, n_k and n are sums of n_hk.  S is
the surprise of the mails' classes given their hosts, each mail left out; S0 is the surprise without
the hosts.  All hosts with a single mail count as one host (otherwise, with one mail of each class,
P7 was ranked at 20.9 1-ROCA% instead of 17.4); messages without a host (texts) count as one more
host, because their words are counted too.  w is the number of known header words in the message; m
is the number of mails with a host in the smaller class, times the share of such mails in all
messages.  All of these numbers follow from counts, so learning and forgetting keep them exact.
"""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from nbspam.bayes.calibration import Calibration, Vector, clamp_features, dot, solve
from nbspam.bayes.evidence import GroupSummary

CALIBRATION_DOUBT, COUNT_DOUBT = 0.1, 0.3  # factors of the two terms of s2
CAUTION_HALVED_AT = 200.0
MAX_SHIFT_SHARE = 0.5


class ClassSizes(NamedTuple):
    """The numbers of messages behind a class's log-odds."""

    members: float  # messages of the class
    others: float

    @property
    def n_smaller_class(self) -> float:
        """Number of messages on the smaller side."""
        return min(self)

    @property
    def prior(self) -> float:
        """The class's prior log-odds, in nats, with half a message added on both sides."""
        return math.log((self.members + 0.5) / (self.others + 0.5))

    @property
    def caution(self) -> float:
        """The nats subtracted while few messages of the other classes were learned: caution."""
        return 1 / (1 + (self.others / CAUTION_HALVED_AT) ** 2)


class Prediction(NamedTuple):
    """The log-odds of a message by one calibration, with their factors."""

    log_odds: float  # nats
    logit_scale: float  # shift_factor times kappa, the factor of b . x
    shift_factor: float  # 0 to 1
    inputs: Vector  # x, each feature within its range


def predict(
    calibration: Calibration,
    covariance: Sequence[Vector],
    x: Vector,
    groups: Sequence[GroupSummary],
    sizes: ClassSizes,
) -> Prediction:
    """Predict the log-odds of a message with the inputs x.

    covariance: the inverse of the calibration's precision.
    groups: the groups of words that x summarizes.
    """
    clamped_x = clamp_features(calibration, x)
    raw = dot(calibration.coefficients, clamped_x)
    spread = dot(clamped_x, [dot(row, clamped_x) for row in covariance])
    # If an edited file has a nearly singular precision, rounding can make the spread negative.
    doubt = CALIBRATION_DOUBT * max(0.0, spread)
    doubt += COUNT_DOUBT * raw * raw / max(0.5, sizes.n_smaller_class)
    kappa = 1 / math.sqrt(1 + math.pi / 8 * doubt)
    prior = sizes.prior
    shift = kappa * raw - sizes.caution - prior
    highest = MAX_SHIFT_SHARE * math.fsum(group.positive for group in groups)
    lowest = MAX_SHIFT_SHARE * math.fsum(group.negative for group in groups)
    bounded = min(max(shift, lowest), highest)
    shift_factor = bounded / shift if shift else 1.0
    return Prediction(prior + bounded, shift_factor * kappa, shift_factor, clamped_x)


def invert(matrix: Sequence[Vector]) -> tuple[Vector, ...]:
    """Return the inverse of a symmetric, positive definite matrix."""
    n = len(matrix)
    identity = [[1.0 if i == j else 0.0 for j in range(n)] for i in range(n)]
    return tuple(map(tuple, solve(matrix, *identity)))


# Half of the trust is reached at this number of mails in the smaller class, and at this number of
# known header words in the message.
HOST_MAILS_HALF_TRUST = 5.0
HEADER_WORDS_HALF_TRUST = 1.0

# Mails per class of a host, and the number of hosts with these counts.
HostRow = tuple[tuple[int, ...], int]


def host_independence(rows: Iterable[HostRow], messages: Sequence[int]) -> tuple[float, float]:
    """Return rho, 0 to 1, and m, the effective number of mails with a host.

    Both are 0 unless two classes have such mails.

    rows: a row for each kind of host, in any order.  messages: learned messages per class.
    """
    rows = list(rows)
    classes = range(len(messages))
    hosted = [sum(row[k] * hosts for row, hosts in rows) for k in classes]
    if sum(map(bool, hosted)) < 2:
        return 0.0, 0.0
    # At least 0: in an edited file the hosts may have more mails than there are messages.
    unhosted = tuple(max(0, n - n_hosted) for n, n_hosted in zip(messages, hosted, strict=True))
    singles = [(row, hosts) for row, hosts in rows if sum(row) == 1]
    pooled = tuple(sum(row[k] * hosts for row, hosts in singles) for k in classes)
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
    n_smaller_class = min(n_hosted for n_hosted in hosted if n_hosted)
    share = sum(hosted) / (sum(hosted) + sum(unhosted))
    return max(0.0, min(1.0, given_host / without_host)), n_smaller_class * share


def trust(rho: float, mails: float, header_words: float) -> float:
    """Return tau, 0 to below 1: the weight of FULL in the blend of TEXT and FULL."""
    if not (mails and header_words):
        return 0.0
    by_hosts = rho * mails / (mails + HOST_MAILS_HALF_TRUST)
    return by_hosts * header_words / (header_words + HEADER_WORDS_HALF_TRUST)


# The weight of the opening's log-odds, and the largest shift by the opening towards ham and towards
# spam, in nats.  Mean 1-ROCA% of ten training halves and streams, relative to no opening:
#
#     share    0.1   0.15  0.2   0.3   0.4
#     1-ROCA%  0.94  0.93  0.89  0.89  0.89
#
# A share of 0.3 blocks 0.2 % more ham, and a share of 0.4 blocks 0.3 % more.  Spams that start with
# a learned ham's lines:
#
#     limit towards ham      no opening  0.5   1     no limit
#     called ham             12 %        17 %  19 %  29 %
#     not called spam        29 %        34 %  42 %  51 %
OPENING_SHARE, OPENING_FOR_HAM, OPENING_FOR_SPAM = 0.2, 0.5, 1.0


def opening_weight(others: float, opening: float, known: float) -> float:
    """Return the opening's weight in the blend of log-odds, 0 to OPENING_SHARE.

    others: log-odds without the opening; opening: log-odds by the opening's calibration.
    known: number of the opening's known tokens.
    """
    gap = opening - others
    if not (known and gap):
        return 0.0
    return min(max(OPENING_SHARE * gap, -OPENING_FOR_HAM), OPENING_FOR_SPAM) / gap
