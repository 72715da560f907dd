"""No tokens, for many messages: `no_tokens.py` on arrays."""

import numpy as np

from nbspam.bayes.leave_one_out import left_out_log_prior
from nbspam.bayes.matrix import Floats, Integers, Presence
from nbspam.bayes.token_weight import Size


class NoTokensArrays:
    """The event model on arrays, as `event_model_arrays.EventModelArrays` describes it."""

    def __init__(
        self, counts: Integers, messages: Integers, alpha: float, size: Size | None = None
    ) -> None:
        """Keep the shape of the counts, (n_classes, n_tokens), and messages, (n_classes,)."""
        self._shape, self._messages = counts.shape, messages

    def class_weights(self) -> Floats:
        """Return a weight of 0 per token and class."""
        return np.zeros(self._shape)

    def contrasts(self, k: int) -> Floats:
        """Return that every token is unknown."""
        return np.full(self._shape[1], np.nan)

    def left_out_contrasts(self, presence: Presence, labels: Integers, k: int) -> Floats:
        """Return that every entry's token is unknown."""
        return np.full(len(presence.indices), np.nan)

    def left_out_joints(
        self, presence: Presence, labels: Integers, log_prior: Floats | None
    ) -> Floats:
        """Return the log prior of each class, each message left out."""
        return left_out_log_prior(labels, self._messages, log_prior)
