"""The seam between naive Bayes and how a token is counted.

Naive Bayes multiplies a likelihood for each token.  An event model says what is counted, which
counts are possible, and which weights follow from them; everything else (evidence, calibration, the
model file, learning) is the same for all of them.  Counts, messages and histograms are integers per
class, so that learning in any order, merging and forgetting are exact whatever the event model.

A new event model is a class like `bernoulli.Bernoulli` in a file of its own, its arrays like
`bernoulli_arrays.BernoulliArrays` in another (one message needs no numpy), and an entry for each in
EVENT_MODELS and EVENT_MODEL_ARRAYS.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from nbspam.bayes.bernoulli import Bernoulli, Row


class EventModel(Protocol):
    """How a token is counted, and the weights that follow from its counts."""

    @property
    def name(self) -> str:
        """Its name in the model file."""

    def is_row(self, row: Row, messages: Row) -> bool:
        """Return whether a token can have these counts."""

    def class_weights(self, row: Row, messages: Row, alpha: float) -> tuple[float, ...]:
        """Return the weight of a token for each class, in nats."""

    def contrast(self, row: Row, messages: Row, k: int, alpha: float) -> float:
        """Return the weight of a token for class k against all others, in nats."""

    def bias(
        self, histograms: Sequence[Mapping[int, int]], messages: Row, alpha: float
    ) -> list[float]:
        """Return the joint log-likelihood of each class without any token, less its log prior."""


EVENT_MODELS: Mapping[str, EventModel] = {Bernoulli.name: Bernoulli()}
