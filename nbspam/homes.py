"""Where a filter's model is: what every such place does, and a model in memory.

A model in a file is beside the filter (`filter.py`): one message needs nothing more.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from nbspam.errors import ModelError
from nbspam.scoring.classifier import Classifier
from nbspam.store.metadata import Metadata
from nbspam.tokens.tokenized import TokenizedMessage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nbspam.bayes.event_model import Row
    from nbspam.learning.update import Change, PendingMessages
    from nbspam.scoring.classifier import BulkClassifier
    from nbspam.store.model_file import Model


class FileOfFilter(NamedTuple):
    """A model file, and that of its base, so that another process can open the same."""

    path: str | Path
    base: str | Path | None
    state: object  # tells them from later files of these names


class Home(Protocol):
    """Where a filter's model is: how it is looked up, and learns."""

    def classifier(self) -> Classifier:
        """Return a classifier of the model as it now is."""

    def own_metadata(self) -> Metadata:
        """Return the metadata of the model itself, without its base."""

    def named(self) -> FileOfFilter:
        """Return the file that it is; raises ModelError if it is in memory."""

    def bulk(self, classifier: Classifier) -> "BulkClassifier | None":
        """Return what classifies many messages, None if there is nothing better than that."""

    def model(self) -> "Model":
        """Return the whole model."""

    def learn(self, pending: "PendingMessages") -> "Change":
        """Learn messages, each up to the number of times it was found."""

    def forget(self, messages: list[TokenizedMessage]) -> "Change":
        """Take messages out again."""

    def learned(self, digests: Iterable[str]) -> "Mapping[str, Row]":
        """Return how often each class has learned those messages that the ledger knows."""

    def unnamed(self) -> list[int]:
        """Return how many messages of each class were learned that the ledger does not name."""

    def close(self) -> None:
        """Close what is open."""


class InMemory:
    """A model in memory, as the home of a filter."""

    _name = Path("the model")  # in errors

    def __init__(self, model: "Model") -> None:
        self._model = model

    def classifier(self) -> Classifier:
        """Return a classifier of the model as it now is."""
        counts = self._model.counts
        return Classifier(
            self._model.metadata,
            lambda tokens: {token: counts[token] for token in tokens if token in counts},
        )

    def own_metadata(self) -> Metadata:
        """Return the metadata of the model."""
        return self._model.metadata

    def named(self) -> FileOfFilter:
        """Raise ModelError: it is no file."""
        raise ModelError("a filter in memory cannot go to another process; save it and open that")

    def bulk(self, classifier: Classifier) -> None:
        """Return None: its tokens are in memory."""

    def model(self) -> "Model":
        """Return the whole model."""
        return self._model

    def learn(self, pending: "PendingMessages") -> "Change":
        """Learn messages, each up to the number of times it was found."""
        from nbspam.learning.settings import TrainingSettings
        from nbspam.learning.update import learn_in_memory

        change, self._model = learn_in_memory(self._name, self._model, pending, TrainingSettings())
        return change

    def forget(self, messages: list[TokenizedMessage]) -> "Change":
        """Take messages out again."""
        from nbspam.learning.update import forget_in_memory

        change, self._model = forget_in_memory(self._name, self._model, messages)
        return change

    def learned(self, digests: Iterable[str]) -> "Mapping[str, Row]":
        """Return how often each class has learned those messages that the ledger knows."""
        ledger = self._model.learned
        return {digest: ledger[digest] for digest in digests if digest in ledger}

    def unnamed(self) -> list[int]:
        """Return how many messages of each class were learned that the ledger does not name."""
        left = list(self._model.metadata.learned.messages)
        for row in self._model.learned.values():
            left = [n - times for n, times in zip(left, row, strict=True)]
        return left

    def close(self) -> None:
        """Do nothing."""
