"""What commands tell of their messages where nothing is logged."""

import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from nbspam.reading.raw_message import RawMessage
    from nbspam.scoring.verdict import Verdict
    from nbspam.tokens.tokenized import TokenizedMessage


class NoTrace:
    """What a command tells of its messages without --log: it is not written; see `Trace`."""

    def begin(self, raw: bytes) -> None:
        """Take down which message it is that is to pass; raw: as much of it as was read."""

    def noted(self, raws: "Iterable[RawMessage]") -> "Iterable[RawMessage]":
        """Yield messages, and take down what identifies each."""
        return raws

    def judged(self, verdict: "Verdict") -> None:
        """Log the verdict on a message."""

    def digested(self, messages: "Iterable[TokenizedMessage]") -> "Iterable[TokenizedMessage]":
        """Yield messages to learn or to forget, and take down their digests, for `changes`."""
        return messages

    def changes(self, model: "Path", remember: bool) -> contextlib.AbstractContextManager[None]:
        """Log what changes for each message while the model is changed; if alone, also nothing.

        remember: False where the ledger does not say.
        """
        return contextlib.nullcontext()

    def trained(self, model: "Path", n: int) -> None:
        """Log that a whole model was trained on `n` messages, in one line."""
