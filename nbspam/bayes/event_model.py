"""The seam between naive Bayes and how a token is counted.

Naive Bayes multiplies a likelihood for each token.  An event model says what is counted, which
counts are possible, and which weights follow from them; everything else (evidence, calibration, the
model file, learning) is the same for all of them.  Counts, messages and histograms are integers per
class, so that learning in any order, merging and forgetting are exact whatever the event model.

A new event model is a class like `bernoulli.Bernoulli` in a file of its own, its arrays in another
if `multinomial_arrays.py` does not serve (one message needs no numpy), and an entry for each in
EVENT_MODELS, `event_model` and EVENT_MODEL_ARRAYS.
"""

from typing import TYPE_CHECKING

from nbspam.bayes.bernoulli import Bernoulli

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    from nbspam.bayes.token_weight import Histogram, Row, Size

    class EventModel(Protocol):
        """How a token is counted, and the weights that follow from its counts."""

        @property
        def name(self) -> str:
            """Its name in the model file."""

        @property
        def has_tokens(self) -> bool:
            """Whether tokens are counted at all."""

        @property
        def repeats(self) -> bool:
            """Whether a token counts as often as it occurs in a message, or once."""

        @property
        def has_prior(self) -> bool:
            """Whether the textbook's sum has the classes' prior in it."""

        @property
        def size_is_messages(self) -> bool:
            """Whether the size follows from the number of messages, whatever is in them."""

        def is_row(self, row: Row, messages: Row) -> bool:
            """Return whether a token can have these counts."""

        def size(self, histograms: Sequence[Histogram], messages: Row) -> Size:
            """Return what the counts are counts of.

            histograms: per class, count -> how many tokens of the vocabulary have it.
            """

        def class_weights(self, row: Row, size: Size, alpha: float) -> tuple[float, ...]:
            """Return the weight of a token for each class, in nats."""

        def bias(self, histograms: Sequence[Histogram], messages: Row, alpha: float) -> list[float]:
            """Return each class's joint log-likelihood without any token, less its log prior."""


BERNOULLI, NO_TOKENS = Bernoulli.name, "none"
EVENT_MODELS = (BERNOULLI, "multinomial", "complement", NO_TOKENS)
_loaded: dict[str, "EventModel"] = {BERNOULLI: Bernoulli()}


def event_model(name: str) -> "EventModel":
    """Return the event model of this name, one of EVENT_MODELS."""
    if name not in _loaded:  # most models are of the default
        from nbspam.bayes.complement import Complement
        from nbspam.bayes.multinomial import Multinomial
        from nbspam.bayes.no_tokens import NoTokens

        others: list[EventModel] = [Multinomial(), Complement(), NoTokens()]
        _loaded.update((model.name, model) for model in others)
    return _loaded[name]
