"""Bernoulli naive Bayes for many messages: the formulas of `bernoulli.py` on arrays."""

import numpy as np

from nbspam.bayes.leave_one_out import left_out_joints
from nbspam.bayes.matrix import Floats, Integers, Presence
from nbspam.bayes.token_weight import Size, class_alphas, pair_weight


def weights(counts: Integers, messages: Integers, alpha: float) -> Floats:
    """Return log theta - log(1 - theta) per class and token, (n_classes, n_tokens), nats."""
    absent = messages[:, None] - counts
    return np.asarray(np.log(counts + alpha) - np.log(absent + alpha))


def one_against_rest(
    counts: Integers, messages: Integers, positive: int, alpha: float, left_out: int | None
) -> Floats:
    """Return each token's weight for the positive class against all others, (n_tokens,), nats.

    counts, messages: (n_classes, n_tokens) and (n_classes,).
    left_out: None, or the class of a message that contains the token and is left out; the weight of
    a token that only this message contains is NaN, since it has left the vocabulary.
    Logs are computed by `math`, so that weights equal those of the one-message path to the last bit
    and ties among the strongest are broken alike.
    """
    inside, total = counts[positive], counts.sum(axis=0)
    n, n_all = int(messages[positive]), int(messages.sum())
    gone = np.zeros(len(total), dtype=bool)
    if left_out is not None:
        own = left_out == positive
        inside, total = inside - own, total - 1
        n, n_all = n - own, n_all - 1
        gone = (total <= 0) | (inside < 0) | (inside > total)
    key = np.where(gone, 0, inside * (n_all + 2) + (total - inside))
    pairs = np.unique(key)
    where = pairs.searchsorted(key)
    rest = n_all - n
    alphas = class_alphas((rest, n), alpha)
    table = np.array(
        [
            pair_weight(pair // (n_all + 2), n, pair % (n_all + 2), rest, alphas)
            for pair in pairs.tolist()
        ]
    )
    return np.where(gone, np.nan, table[where])


class BernoulliArrays:
    """The event model on arrays, as `event_model_arrays.EventModelArrays` describes it."""

    def __init__(
        self, counts: Integers, messages: Integers, alpha: float, size: Size | None = None
    ) -> None:
        """Keep the counts, (n_classes, n_tokens), and messages, (n_classes,)."""
        self._counts, self._messages, self._alpha = counts, messages, alpha
        self._left_out: tuple[int, Floats] | None = None  # a class, and its weights left out

    def class_weights(self) -> Floats:
        """Return each token's weight per class."""
        return weights(self._counts, self._messages, self._alpha)

    def contrasts(self, k: int) -> Floats:
        """Return each token's weight for class k against all others."""
        return one_against_rest(self._counts, self._messages, k, self._alpha, None)

    def left_out_contrasts(self, presence: Presence, labels: Integers, k: int) -> Floats:
        """Return the weight for class k of each entry, its message left out.

        Whatever the message, it is one less: two weights for each token, of messages of class k and
        of others.  (For the others it does not matter which of the classes has lost the message.)
        """
        if self._left_out is None or self._left_out[0] != k:
            other = 1 if k == 0 else 0
            arguments = (self._counts, self._messages, k, self._alpha)
            self._left_out = k, np.stack([one_against_rest(*arguments, c) for c in (other, k)])
        own = np.repeat((labels == k).astype(np.int64), np.diff(presence.indptr))
        return np.asarray(self._left_out[1][own, presence.indices])

    def left_out_joints(
        self, presence: Presence, labels: Integers, log_prior: Floats | None
    ) -> Floats:
        """Return each message's joint log-likelihoods, itself left out."""
        return left_out_joints(
            presence, labels, self._counts, self._messages, self._alpha, log_prior
        )
