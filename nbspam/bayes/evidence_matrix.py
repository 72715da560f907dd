"""Evidence and calibration of many messages at once: `evidence.py` and `calibration.py` on arrays.

Shapes: a sparse matrix of n_messages rows is given by `rows` and `columns`, the row and the column
of each of its entries (nnz,), rows ascending.
"""

import numpy as np

from nbspam.bayes.calibration import PRIOR_MEAN, Calibration, prior_precision
from nbspam.bayes.evidence import (
    FEATURES,
    HEADER_BOUND,
    HEADER_SCALE,
    HEADER_STRONGEST,
    LENGTH_CENTRE,
    STRONG,
    STRONG_SHRINK,
    STRONGEST,
    SUM_SCALE,
)
from nbspam.bayes.matrix import Booleans, Floats, Integers

_STEPS = 100


def evidence_of_rows(
    rows: Integers, weights: Floats, is_header: Booleans, n_rows: int
) -> tuple[Floats, Floats]:
    """Return the features (n_rows, len(FEATURES)) and header nats (n_rows,) of each message.

    rows, weights, is_header: of each entry of the matrix; those with a NaN weight are ignored.
    """
    known = ~np.isnan(weights)
    own, header = known & ~is_header, known & is_header
    features = np.empty((n_rows, len(FEATURES)))
    row, weight = rows[own], weights[own]
    n = np.bincount(row, minlength=n_rows)
    total, taken = _sum_of_strongest(row, weight, n_rows, STRONGEST)
    features[:, 0] = total / np.maximum(taken, 1)
    features[:, 1] = np.bincount(row, weight, n_rows) / (SUM_SCALE * np.sqrt(np.maximum(n, 1)))
    strong = np.abs(weight) >= STRONG
    features[:, 2] = np.bincount(row[strong], weight[strong], n_rows) / (
        np.bincount(row[strong], minlength=n_rows) + STRONG_SHRINK
    )
    features[:, 3] = np.log(np.maximum(n, 1)) - LENGTH_CENTRE
    total, _ = _sum_of_strongest(rows[header], weights[header], n_rows, HEADER_STRONGEST)
    nats = HEADER_BOUND * np.tanh(total / (HEADER_STRONGEST * HEADER_SCALE))
    return features, nats


def _sum_of_strongest(
    rows: Integers, weights: Floats, n_rows: int, most: int
) -> tuple[Floats, Integers]:
    """Return the sum of each row's strongest weights and how many they are."""
    order = np.lexsort((weights, -np.abs(weights), rows))
    sorted_rows = rows[order]
    n = np.bincount(rows, minlength=n_rows)
    starts = np.concatenate(([0], np.cumsum(n)[:-1])) if n_rows else n
    taken = np.arange(len(rows)) - starts[sorted_rows] < most
    total = np.bincount(sorted_rows[taken], weights[order][taken], n_rows).astype(np.float64)
    return total, np.minimum(n, most).astype(np.int64)


def fit_calibration(features: Floats, offset: Floats, is_spam: Booleans) -> Calibration:
    """Return the calibration fitted to leave-one-out features: the mode of b, the precision at it.

    features: (n, len(FEATURES)); offset: (n,); is_spam: (n,).
    Newton's method with halved steps; the prior makes the objective strictly convex.
    """
    x = np.column_stack((np.ones(len(features)), features))
    y = is_spam.astype(float)
    n_spam = int(is_spam.sum())
    mean = np.array(PRIOR_MEAN)
    precision = np.array(prior_precision(min(n_spam, len(y) - n_spam)))

    def objective(b: Floats) -> float:
        z = x @ b + offset
        return float((np.logaddexp(0, z) - y * z).sum() + 0.5 * (precision * (b - mean) ** 2).sum())

    b = mean.copy()
    value = objective(b)
    for _ in range(_STEPS):
        gradient, hessian = _derivatives(x, y, b, offset, mean, precision)
        step = np.linalg.solve(hessian, gradient)
        scale = 1.0
        while scale > 1e-8 and objective(b - scale * step) > value:
            scale /= 2
        b = b - scale * step
        previous, value = value, objective(b)
        if previous - value < 1e-12 * max(1.0, abs(value)):
            break
    _, hessian = _derivatives(x, y, b, offset, mean, precision)
    return Calibration(tuple(b.tolist()), tuple(map(tuple, hessian.tolist())))


def _derivatives(
    x: Floats, y: Floats, b: Floats, offset: Floats, mean: Floats, precision: Floats
) -> tuple[Floats, Floats]:
    p = 1 / (1 + np.exp(-np.clip(x @ b + offset, -700, 700)))
    gradient = x.T @ (p - y) + precision * (b - mean)
    hessian = (x * (p * (1 - p))[:, None]).T @ x + np.diag(precision)
    return gradient, hessian
