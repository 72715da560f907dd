"""The weights of many tokens with a base beneath the counts: `base_prior.py` on arrays."""

from collections.abc import Sequence

import numpy as np

from nbspam.bayes.base_prior import Sides, based_weight
from nbspam.bayes.matrix import Floats, Integers, Presence


class BasedArrays:
    """Bernoulli counts with a base beneath them, as `event_model_arrays.Contrasts` describes."""

    def __init__(
        self,
        counts: Integers,
        messages: Sequence[int],
        base_counts: Integers,
        base_messages: Sequence[int],
        strength: float,
        alpha: float,
    ) -> None:
        """counts, base_counts: (n_classes, n_tokens); messages, base_messages: per class."""
        self._counts, self._messages = counts, messages
        self._base_counts, self._base_messages = base_counts, base_messages
        self._strength, self._alpha = strength, alpha
        self._left_out: tuple[int, Floats] | None = None  # a class, and its weights left out

    def contrasts(self, k: int) -> Floats:
        """Return each token's weight for class k against all others, (n_tokens,), in nats."""
        return self._against_rest(k, None)

    def left_out_contrasts(self, presence: Presence, labels: Integers, k: int) -> Floats:
        """Return the weight for class k of each entry, its message left out, (nnz,)."""
        if self._left_out is None or self._left_out[0] != k:
            other = 1 if k == 0 else 0
            self._left_out = k, np.stack([self._against_rest(k, c) for c in (other, k)])
        own = np.repeat((labels == k).astype(np.int64), np.diff(presence.indptr))
        return np.asarray(self._left_out[1][own, presence.indices])

    def _against_rest(self, k: int, left_out: int | None) -> Floats:
        """Return each token's weight for class k; left_out: the class of a message without which.

        NaN for a token that neither model knows then.  Few counts differ, and their logs are taken
        by `math`, as on the one-message path.
        """
        inside, total = self._counts[k], self._counts.sum(axis=0)
        messages = list(self._messages)
        if left_out is not None:
            messages[left_out] -= 1
            inside, total = inside - (left_out == k), total - 1
        base_inside, base_total = self._base_counts[k], self._base_counts.sum(axis=0)
        wrong = (inside < 0) | (inside > total)  # the message has no such token
        gone = wrong | ((total <= 0) & (base_total == 0))
        own, own_place = _pairs(np.where(gone, 0, inside), np.where(gone, 0, total))
        base, base_place = _pairs(base_inside, base_total)
        both, place = np.unique(own_place * len(base) + base_place, return_inverse=True)
        sides, base_sides = Sides.of(messages, k), Sides.of(self._base_messages, k)
        table = [
            based_weight(
                own[pair // len(base)],
                sides,
                base[pair % len(base)],
                base_sides,
                self._strength,
                self._alpha,
            )
            for pair in both.tolist()
        ]
        return np.where(gone, np.nan, np.array(table)[place])


def _pairs(inside: Integers, total: Integers) -> tuple[list[tuple[int, int]], Integers]:
    """Return the different (outside, inside), and which of them each token has, (n_tokens,)."""
    width = int(total.max(initial=0)) + 1
    keys, place = np.unique(inside * width + (total - inside), return_inverse=True)
    return [(key % width, key // width) for key in keys.tolist()], place
