"""The calibration: how the features of a message are combined into calibrated log-odds.

Logistic regression of "is it spam" on the features, with a Gaussian prior that keeps it sensible
with few messages:

    P(spam) = sigmoid(b . x + offset),   x = (1, features),   b ~ N(PRIOR_MEAN, 1 / prior precision)

Training fits it to leave-one-out features, so that it learns how reliable words are in messages
that they were not counted in (`evidence_matrix.py`).  Of the fit it keeps the mode of b, and the
precision L there (the second derivative: Laplace's approximation).  That is enough to go on
learning one message at a time, each scored as if its words had not been counted:

    L <- FORGET L + (1 - FORGET) FLOOR           old messages count less and less
    b <- b + s L^-1 x,  s = y - sigmoid(b_new . x + offset)    the new mode; one unknown, s
    L <- L + p (1 - p) x x^T                     at the new mode

L decays to FLOOR and never below it: plain forgetting (a covariance divided by 0.995 each time)
raised P4.3's 1-ROCA% from 0.1 to 1.8 after a few thousand easy messages.
The usual step of the extended Kalman filter computes s at the old b, so that one mislabelled
message that the filter was sure of throws b far off; at the new b, s shrinks as the step grows.

Calibrations that were learned from different messages are combined by `pooled`:

    b = sum_i n_i b_i / sum_i n_i,   L = P + sum_i (L_i - P_i)

n_i is the number of messages in the smaller class of model i, P_i the precision of its prior, so
that L_i - P_i is what its messages contributed; P is the precision of the prior for all messages.
By the textbook (each posterior is prior times likelihood, and likelihoods multiply) b would solve
L b = P m + sum_i (L_i b_i - P_i m).  But models of different mail do not differ by chance alone,
and where they disagree, that b can lie outside the range of theirs: docs/ideas-tried.md has both
measured.

Standard library only: the update is on the one-message path.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from nbspam.bayes.evidence import FEATURES
from nbspam.bayes.posterior import sigmoid

SIZE = 1 + len(FEATURES)
# A filter of ten messages should already call a message spam whose words are all evidence of spam;
# the length has no weight until messages give it one.
PRIOR_MEAN = (0.0, 0.7, 0.7, 0.7, 0.0)
PRECISION = (0.1, 0.4, 0.4, 0.4, 0.5)
# With n messages in the smaller class the prior is 1 + FIRM / n times as precise: the left-out
# features of two messages per class are too little evidence to change the sign of a coefficient.
# Measured on 200 + 200 mails by a filter of 1 + 1 and 5 + 5: 43 and 83 % right with 0, 58 and 84 %
# with 10, 66 and 86 % with 30.
FIRM = 20
# Measured online, 1-ROCA% of P5 and P4.2: 0.432 and 0.085 at 1, 0.409 and 0.070 at 0.999, 0.432
# and 0.067 at 0.998.
FORGET = 0.999

# The precision that is left when everything is forgotten.  After thousands of easy messages, which
# teach next to nothing, one mislabelled message takes b from 1.01 to -0.08 at 1 x PRECISION, from
# 0.88 to 0.54 at 30 and from 0.82 to 0.70 at 100.  P5's 1-ROCA% is 0.327, 0.310 and 0.281 with
# them, and the mean of P4's recalls 98.10, 98.13 and 98.05.
FLOOR = tuple(30 * p for p in PRECISION)

Vector = tuple[float, ...]


# A long run of one class does not show where that class ends: a folder of spam, learned by itself,
# only raises the constant.  So a run of one class updates the calibration up to RUN times the mean
# length of a run where the classes are well mixed, and no more.  Errors on one half of
# SpamAssassin's corpus, without a limit and with a limit of 10: 33 and 15 when the other half was
# learned as all spam, then all ham; 45 and 14 the other way round; 10 and 10 in ten mixed batches;
# 11 and 13 one by one; 9 when it was trained on at once.  (5: 15, 14, 11 and 13.)
RUN = 10


class Calibration(NamedTuple):
    """A calibration: its coefficients and their precision."""

    coefficients: Vector  # (SIZE,): the constant, then one a feature
    precision: tuple[Vector, ...]  # (SIZE, SIZE), symmetric, positive definite
    run: int = 0  # messages of one class that came last: positive for spam, negative for the rest


def prior_precision(fewest: int) -> Vector:
    """Return the prior's precision per coefficient, with `fewest` messages in the smaller class."""
    return tuple(p * (1 + FIRM / max(1, fewest)) for p in PRECISION)


def untrained() -> Calibration:
    """Return the calibration before any message was scored: the prior."""
    diagonal = prior_precision(0)
    rows = (tuple(p if i == j else 0.0 for j in range(SIZE)) for i, p in enumerate(diagonal))
    return Calibration(PRIOR_MEAN, tuple(rows))


def update(
    before: Calibration, features: Sequence[float], offset: float, is_spam: bool
) -> Calibration:
    """Return the calibration after one more message, scored as if it had not been learned.

    features: (len(FEATURES),); offset: the part of its log-odds that is not fitted, in nats.
    """
    x = (1.0, *features)
    b = list(before.coefficients)
    precision = [[FORGET * value for value in row] for row in before.precision]
    for i in range(SIZE):
        precision[i][i] += (1 - FORGET) * FLOOR[i]
    direction = solve(precision, x)
    spread = _dot(x, direction)
    z = _dot(b, x) + offset
    step = _step(z, spread, is_spam)
    b = [c + step * d for c, d in zip(b, direction, strict=True)]
    p = sigmoid(z + step * spread)
    for i in range(SIZE):
        for j in range(SIZE):
            precision[i][j] += p * (1 - p) * x[i] * x[j]
    run = max(before.run, 0) + 1 if is_spam else min(before.run, 0) - 1
    return Calibration(tuple(b), tuple(map(tuple, precision)), run)


def is_run(before: Calibration, is_spam: bool, share: float) -> bool:
    """Return whether so many messages of one class came last that one more would teach nothing.

    share: of that class among all messages, 0 to below 1.
    """
    run = before.run if is_spam else -before.run
    return run * (1 - share) >= RUN


def pooled(parts: Sequence[tuple[Calibration, int]], fewest: int) -> Calibration:
    """Return the calibration of all messages together, from calibrations that learned from parts.

    parts: each calibration, with the number of messages in the smaller class of its part.
    fewest: the same number for all messages together.
    """
    total = sum(max(1, few) for _, few in parts)
    coefficients = tuple(
        math.fsum(max(1, few) * part.coefficients[i] for part, few in parts) / total
        for i in range(SIZE)
    )
    prior = prior_precision(fewest)
    precision = _summed([part for part, _ in parts], prior)
    for _, few in parts:
        for i, within in enumerate(prior_precision(few)):
            precision[i][i] -= within
    # Updates only add to the prior that a calibration began with, since FLOOR is above it.  One
    # that is less precise than its prior was made elsewhere: its messages are all its precision.
    surplus = [list(row) for row in precision]
    for i in range(SIZE):
        surplus[i][i] -= prior[i] / 2
    if not is_positive_definite(surplus):
        precision = _summed([part for part, _ in parts], prior)
    return Calibration(coefficients, tuple(map(tuple, precision)))


def _summed(parts: Sequence[Calibration], prior: Vector) -> list[list[float]]:
    """Return the sum of the calibrations' precisions and a diagonal one."""
    return [
        [
            math.fsum([prior[i] if i == j else 0.0, *(part.precision[i][j] for part in parts)])
            for j in range(SIZE)
        ]
        for i in range(SIZE)
    ]


def is_positive_definite(matrix: Sequence[Sequence[float]]) -> bool:
    """Return whether a symmetric matrix is positive definite: whether `solve` may divide."""
    rows = [list(row) for row in matrix]
    for i, row in enumerate(rows):
        if not row[i] > 0:
            return False
        for below in rows[i + 1 :]:
            factor = below[i] / row[i]
            for j in range(i, len(rows)):
                below[j] -= factor * row[j]
    return True


def _dot(a: Sequence[float], b: Sequence[float]) -> float:
    return math.fsum(x * y for x, y in zip(a, b, strict=True))


def solve(matrix: Sequence[Sequence[float]], right: Sequence[float]) -> list[float]:
    """Return v with matrix v = right; the matrix is symmetric and positive definite.

    Gaussian elimination, which such a matrix needs no pivoting for (Golub and Van Loan, 4.2).
    """
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    n = len(rows)
    for i in range(n):
        for k in range(i + 1, n):
            factor = rows[k][i] / rows[i][i]
            for j in range(i, n + 1):
                rows[k][j] -= factor * rows[i][j]
    solution = [0.0] * n
    for i in reversed(range(n)):
        known = sum(rows[i][j] * solution[j] for j in range(i + 1, n))
        solution[i] = (rows[i][n] - known) / rows[i][i]
    return solution


def _step(z: float, spread: float, is_spam: bool) -> float:
    """Return the s with s = y - sigmoid(z + s spread): one root, between 0 and y - sigmoid(z)."""
    y = 1.0 if is_spam else 0.0
    low, high = sorted((0.0, y - sigmoid(z)))
    for _ in range(60):  # bisection, to the last bit
        middle = (low + high) / 2
        if middle < y - sigmoid(z + middle * spread):
            low = middle
        else:
            high = middle
    return (low + high) / 2
