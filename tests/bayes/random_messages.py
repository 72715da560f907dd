"""Random labelled token sets as arrays, for the property tests."""

from collections import Counter
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st
from scipy.sparse import csr_array

from nbspam.bayes import matrix
from nbspam.bayes.event_model import Bernoulli

ALPHAS = st.floats(1e-3, 3)
PRIORS = st.floats(0.01, 0.99)


class Messages(NamedTuple):
    dense: np.ndarray  # (n_messages, n_tokens), 0 or 1; every column has a 1
    labels: np.ndarray  # (n_messages,)
    n_classes: int

    @property
    def presence(self):
        return csr_array(self.dense.astype(float))

    @property
    def counts(self):
        return matrix.class_counts(self.presence, self.labels, self.n_classes)

    @property
    def per_class(self):
        return np.bincount(self.labels, minlength=self.n_classes)


@st.composite
def messages(draw, n_classes=None, most_messages=12, most_tokens=8):
    k = n_classes or draw(st.sampled_from([2, 3]))
    # Each class has a message at least; the rest fall where they may.
    labels = list(range(k)) + draw(st.lists(st.integers(0, k - 1), max_size=most_messages - k))
    n_tokens = draw(st.integers(1, most_tokens))
    row = st.lists(st.booleans(), min_size=n_tokens, max_size=n_tokens)
    rows = draw(st.lists(row, min_size=len(labels), max_size=len(labels)))
    dense = np.array(rows, dtype=np.int64)
    dense = dense[:, dense.any(axis=0)]
    if not dense.shape[1]:
        dense = np.eye(len(labels), 1, dtype=np.int64)
    return Messages(dense, np.array(labels), k)


def absent_sum(histogram, n, alpha):
    """Return sum_j log(1 - theta_j) over the vocabulary of one class."""
    return Bernoulli().bias([histogram], (n,), alpha)[0]


def bias(counts, per_class, alpha: float, log_prior):
    """Return log P(k) + sum_j log(1 - theta_jk) of each class, as a model's metadata has it."""
    rows = zip(counts.tolist(), per_class.tolist(), strict=True)
    return log_prior + np.array([absent_sum(Counter(row), n, alpha) for row, n in rows])


def size_of(found: Messages):
    return Bernoulli().size([], tuple(found.per_class.tolist()))


def arrays_of(found: Messages, alpha):
    return matrix.EventArrays(Bernoulli(), found.counts, found.per_class, alpha, size_of(found))
