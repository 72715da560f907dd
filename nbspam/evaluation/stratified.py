"""Stratified folds: parts of the messages with the same share of each class."""

from collections.abc import Sequence

import numpy as np

from nbspam.bayes.matrix import Integers


def stratified_folds(labels: Sequence[str], k: int, seed: int | None = None) -> Integers:
    """Return the fold of each message, 0 to k - 1: (n,).

    The messages of each class go to the folds in turn: in their order, or with a seed shuffled.
    """
    chance = None if seed is None else np.random.default_rng(seed)
    names = np.array(labels)
    fold = np.empty(len(names), dtype=np.int64)
    for name in np.unique(names):
        members = np.flatnonzero(names == name)
        if chance is not None:
            members = chance.permutation(members)
        fold[members] = np.arange(len(members)) % k
    return fold
