"""Event models on arrays: `event_model.py` for many messages at once."""

from collections.abc import Mapping
from typing import Protocol

from nbspam.bayes.bernoulli import Bernoulli
from nbspam.bayes.bernoulli_arrays import BernoulliArrays
from nbspam.bayes.matrix import Floats, Integers, Presence


class EventModelArrays(Protocol):
    """An event model on arrays; counts (n_classes, n_tokens), messages (n_classes,)."""

    def class_weights(self, counts: Integers, messages: Integers, alpha: float) -> Floats:
        """Return each token's weight per class, (n_classes, n_tokens), in nats."""

    def contrast(
        self,
        counts: Integers,
        messages: Integers,
        k: int,
        alpha: float,
        left_out: int | None,
    ) -> Floats:
        """Return each token's weight for class k against all others, (n_tokens,), in nats.

        left_out: None, or the class of a message that has the token and is left out; NaN for a
        token that only it has.
        """

    def left_out_joints(
        self,
        presence: Presence,
        labels: Integers,
        counts: Integers,
        messages: Integers,
        alpha: float,
        log_prior: Floats | None,
    ) -> Floats:
        """Return each message's joint log-likelihoods, itself left out, (n_messages, n_classes)."""


EVENT_MODEL_ARRAYS: Mapping[str, EventModelArrays] = {Bernoulli.name: BernoulliArrays()}
