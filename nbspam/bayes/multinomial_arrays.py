"""Multinomial and complement naive Bayes for many messages: the formulas on arrays.

A message left out takes more than itself with it: x_ij of each of its tokens' counts, the sum of
them of its class's n_k, and from the vocabulary the tokens that only it has.  So the denominators
differ from message to message, and the weights from entry to entry of the matrix; each is a
difference of logarithms of integers, in O(nnz) for all messages.
"""

import math

import numpy as np

from nbspam.bayes.leave_one_out import left_out_log_prior
from nbspam.bayes.matrix import Booleans, Floats, Integers, Presence
from nbspam.bayes.token_weight import Size, class_alphas


class _LeftOut:
    """A matrix of messages that were learned, each without itself."""

    def __init__(self, presence: Presence, totals: Integers, vocabulary: int) -> None:
        """Take a matrix; totals: (n_tokens,), the counts of all classes; vocabulary: its size."""
        self.lengths = np.diff(presence.indptr)
        self.rows = np.repeat(np.arange(len(self.lengths)), self.lengths)
        self.times: Integers = presence.data.astype(np.int64)  # (nnz,)
        self.tokens = presence.indices
        self.gone: Booleans = totals[self.tokens] <= self.times  # only this message has them
        n = len(self.lengths)
        self.n_rows = n
        self.own_trials = np.bincount(self.rows, self.times, n).astype(np.int64)
        gone = np.bincount(self.rows[self.gone], minlength=n)
        self.vocabulary = np.maximum(vocabulary - gone, 1)


class MultinomialArrays:
    """The event model on arrays, as `event_model_arrays.EventModelArrays` describes it."""

    complement = False
    _sign = 1.0

    def __init__(
        self, counts: Integers, messages: Integers, alpha: float, size: Size | None = None
    ) -> None:
        """Keep the counts, (n_classes, n_tokens), and messages, (n_classes,).

        size: of the model, where the counts are those of some of its tokens.
        """
        self._counts, self._messages, self._alpha = counts, messages, alpha
        self._totals = counts.sum(axis=0)
        self._trials = counts.sum(axis=1) if size is None else np.array(size.trials)
        self._vocabulary = max(1, int((self._totals > 0).sum()))
        if size is not None:
            self._vocabulary = size.outcomes

    def class_weights(self) -> Floats:
        """Return each token's weight per class."""
        counts, trials = self._counts, self._trials
        if self.complement:
            counts, trials = self._totals - counts, trials.sum() - trials
        below = np.log(trials + self._alpha * self._vocabulary)[:, None]
        return np.asarray(self._sign * (np.log(counts + self._alpha) - below))

    def contrasts(self, k: int) -> Floats:
        """Return each token's weight for class k against all others."""
        n, everyone = int(self._messages[k]), int(self._messages.sum())
        alphas = class_alphas((everyone - n, n), self._alpha)
        inside, trials = self._counts[k], int(self._trials[k])
        rest = int(self._trials.sum()) - trials
        below = [
            math.log(t + self._vocabulary * a) for t, a in zip((rest, trials), alphas, strict=True)
        ]
        return np.asarray(
            (_logs(inside, alphas[1]) - below[1])
            - (_logs(self._totals - inside, alphas[0]) - below[0])
        )

    def _without(self, presence: Presence) -> _LeftOut:
        return _LeftOut(presence, self._totals, self._vocabulary)

    def left_out_contrasts(self, presence: Presence, labels: Integers, k: int) -> Floats:
        """Return the weight for class k of each entry, its message left out."""
        left = self._without(presence)
        is_own = labels == k
        found = np.full(len(left.tokens), np.nan)
        for own in (False, True):
            rows = np.flatnonzero(is_own == own)
            if not len(rows):
                continue
            entries = np.flatnonzero((is_own == own)[left.rows] & ~left.gone)
            tokens, times = left.tokens[entries], left.times[entries]
            n = int(self._messages[k]) - own
            rest = int(self._messages.sum()) - int(self._messages[k]) - (not own)
            alphas = class_alphas((rest, n), self._alpha)
            inside = self._counts[k][tokens] - own * times
            outside = self._totals[tokens] - times - inside
            trials = int(self._trials[k]) - own * left.own_trials
            others = int(self._trials.sum()) - left.own_trials - trials
            of_row = left.rows[entries]
            below = np.zeros(left.n_rows), np.zeros(left.n_rows)
            for i in rows.tolist():
                below[0][i] = math.log(others[i] + left.vocabulary[i] * alphas[0])
                below[1][i] = math.log(trials[i] + left.vocabulary[i] * alphas[1])
            found[entries] = (_logs(inside, alphas[1]) - below[1][of_row]) - (
                _logs(outside, alphas[0]) - below[0][of_row]
            )
        return found

    def left_out_joints(
        self, presence: Presence, labels: Integers, log_prior: Floats | None
    ) -> Floats:
        """Return each message's joint log-likelihoods, itself left out."""
        left = self._without(presence)
        kept = ~left.gone
        rows, tokens, times = left.rows[kept], left.tokens[kept], left.times[kept]
        joints = left_out_log_prior(labels, self._messages, log_prior)
        if self.complement:
            joints = np.where(np.isneginf(joints), joints, 0.0)
        for k in range(len(self._messages)):
            # Whether the counts that class k is scored by have the message in them.
            member = (labels == k) != self.complement
            counts, trials = self._counts[k], int(self._trials[k])
            if self.complement:
                counts, trials = self._totals - counts, int(self._trials.sum()) - trials
            of_token = np.maximum(counts[tokens] - member[rows] * times, 0)
            of_row = np.maximum(trials - member * left.own_trials, 0)
            with np.errstate(divide="ignore"):
                below = np.log(of_row + self._alpha * left.vocabulary)
            logs = np.log(of_token + self._alpha) - below[rows]
            joints[:, k] += self._sign * np.bincount(rows, times * logs, left.n_rows)
        return joints


class ComplementArrays(MultinomialArrays):
    """The complement model on arrays."""

    complement = True
    _sign = -1.0


def _logs(counts: Integers, alpha: float) -> Floats:
    """Return log(count + alpha) of integers, by `math` as the one-message path computes it."""
    known, where = np.unique(counts, return_inverse=True)
    return np.asarray([math.log(count + alpha) for count in known.tolist()])[where]
