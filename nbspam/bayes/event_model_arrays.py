"""Event models on arrays: `event_model.py` for many messages at once."""

from collections.abc import Callable, Mapping
from typing import Protocol

from nbspam.bayes.bernoulli_arrays import BernoulliArrays
from nbspam.bayes.matrix import Floats, Integers, Presence
from nbspam.bayes.multinomial_arrays import ComplementArrays, MultinomialArrays
from nbspam.bayes.no_tokens_arrays import NoTokensArrays
from nbspam.bayes.token_weight import Size


class EventModelArrays(Protocol):
    """An event model of some counts, (n_classes, n_tokens), and messages, (n_classes,)."""

    def class_weights(self) -> Floats:
        """Return each token's weight per class, (n_classes, n_tokens), in nats."""

    def contrasts(self, k: int) -> Floats:
        """Return each token's weight for class k against all others, (n_tokens,), in nats."""

    def left_out_contrasts(self, presence: Presence, labels: Integers, k: int) -> Floats:
        """Return the weight for class k of each entry of a matrix, its message left out, (nnz,).

        presence, labels: of messages that were learned.  NaN for a token that only one has.
        """

    def left_out_joints(
        self, presence: Presence, labels: Integers, log_prior: Floats | None
    ) -> Floats:
        """Return each message's joint log-likelihoods, itself left out, (n_messages, n_classes).

        log_prior: (n_classes,) where it is fixed; else it follows from the remaining messages.
        """


EVENT_MODEL_ARRAYS: Mapping[
    str, Callable[[Integers, Integers, float, Size | None], EventModelArrays]
] = {
    "bernoulli": BernoulliArrays,
    "multinomial": MultinomialArrays,
    "complement": ComplementArrays,
    "none": NoTokensArrays,
}
