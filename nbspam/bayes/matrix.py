"""Bernoulli naive Bayes for many messages: the formulas of `bernoulli.py` on a sparse matrix.

Shapes: presence (n_messages, n_tokens), entries 0 or 1; counts (n_classes, n_tokens);
messages (n_classes,).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Presence = csr_array[Any, tuple[int, int]]


def class_counts(presence: Presence, labels: Integers, n_classes: int) -> Integers:
    """Return how many messages of each class contain each token, shape (n_classes, n_tokens).

    labels: (n_messages,), the class of each message, 0 to n_classes - 1.
    """
    members = csr_array(
        (np.ones(len(labels)), (labels, np.arange(len(labels)))), shape=(n_classes, len(labels))
    )
    # Counts stay far below 2**53: exact in floating point.
    return np.rint((members @ presence).toarray()).astype(np.int64)


def weights(counts: Integers, messages: Integers, alpha: float) -> Floats:
    """Return log theta - log(1 - theta) per class and token, (n_classes, n_tokens), nats."""
    absent = messages[:, None] - counts
    return np.asarray(np.log(counts + alpha) - np.log(absent + alpha))


def joints(presence: Presence, token_weights: Floats, class_bias: Floats) -> Floats:
    """Return log P(k, x_i) of every message and class, shape (n_messages, n_classes), nats."""
    return np.asarray(presence @ token_weights.T + class_bias)
