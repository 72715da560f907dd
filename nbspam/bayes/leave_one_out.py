"""Every training message scored by a Bernoulli model that never saw it, in closed form.

A message scored by a model trained on it looks easier than it is.  Leaving message i of class k
out changes N_k to N_k - 1 and c_jk to c_jk - 1 for its own tokens j, and nothing else; a token
that only i contains leaves the vocabulary.  So each left-out score follows from the full counts:

    log P(m, x_i) without i = log P'(m) + sum over the vocabulary of log(1 - theta'_jm)
                              + sum_{j in x_i} [log theta'_jm - log(1 - theta''_jm)]

with ' for the counts without i.  The first sum has an absent term for i's own tokens too, with i
still in their counts (theta''); the second sum takes it out again.  It is O(V + nnz) in all.

Theory: the counts are sufficient statistics, and one message's part in them is known.
Tested against real retraining to 1e-9.
"""

import numpy as np

from nbspam.bayes.matrix import Floats, Integers, Presence


def left_out_joints(
    presence: Presence,
    labels: Integers,
    counts: Integers,
    messages: Integers,
    alpha: float,
    log_prior: Floats | None = None,
) -> Floats:
    """Return log P(m, x_i) of every message i and class m, i left out; (n_messages, n_classes).

    presence:  (n_messages, n_tokens), entries 0 or 1.
    labels:    (n_messages,), the class of each message.
    counts, messages: of all messages, (n_classes, n_tokens) and (n_classes,).
    alpha:     pseudo-count of each outcome, above 0.
    log_prior: (n_classes,) when the prior is fixed; else it follows from the remaining messages,
               and is -inf for a class that has none left.
    """
    n_classes = len(messages)
    scores = np.empty((presence.shape[0], n_classes))
    only_one = counts.sum(axis=0) == 1
    for k in range(n_classes):
        rows = np.flatnonzero(labels == k)
        if not len(rows):
            continue
        n = messages - (np.arange(n_classes) == k)
        own = np.where(np.arange(n_classes) == k, 1, 0)[:, None]
        denominator = np.log(n + 2 * alpha)[:, None]
        # A message never contains a token that its class lacks, nor lacks one that is in all of its
        # class: a count below 0 is never used, so clamping keeps log() finite and changes no score.
        log_absent = np.log(np.maximum(n[:, None] - counts, 0) + alpha) - denominator
        log_present = np.log(np.maximum(counts - own, 0) + alpha) - denominator
        # A token of i alone has left the vocabulary: it is in neither sum.
        gained = np.where(only_one, 0.0, log_present) - log_absent
        scores[rows] = presence[rows] @ gained.T + log_absent.sum(axis=1)
    return np.asarray(scores + left_out_log_prior(labels, messages, log_prior))


def left_out_log_prior(
    labels: Integers, messages: Integers, log_prior: Floats | None = None
) -> Floats:
    """Return log P(m) of every class m for each message, itself left out; (n_messages, n_classes).

    log_prior: (n_classes,) when the prior is fixed; else it follows from the remaining messages,
    and is -inf for a class that has none left.
    """
    if log_prior is not None:
        return np.repeat(log_prior[None], len(labels), axis=0)
    left = messages - np.eye(len(messages), dtype=np.int64)  # a row for the class of the message
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(left / max(int(messages.sum()) - 1, 1))[labels])
