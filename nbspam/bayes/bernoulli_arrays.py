"""Bernoulli naive Bayes for many messages: the formulas of `bernoulli.py` on arrays."""

import numpy as np

from nbspam.bayes.bernoulli import class_alphas, pair_weight
from nbspam.bayes.leave_one_out import left_out_joints
from nbspam.bayes.matrix import Floats, Integers


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
    pairs, where = np.unique(key, return_inverse=True)
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
    """The event model's array functions, as `event_model.EventModelArrays` describes them."""

    class_weights = staticmethod(weights)
    contrast = staticmethod(one_against_rest)
    left_out_joints = staticmethod(left_out_joints)
