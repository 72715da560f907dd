"""No tokens at all: messages are told apart by their traits alone."""

from collections.abc import Sequence

from nbspam.bayes.token_weight import Histogram, Row, Size


class NoTokens:
    """The event model of the textbook's Gaussian naive Bayes: no token is counted."""

    name = "none"
    has_tokens = False
    repeats = False
    has_prior = True
    size_is_messages = True

    def is_row(self, row: Row, messages: Row) -> bool:
        """Return False: no token has counts."""
        return False

    def size(self, histograms: Sequence[Histogram], messages: Row) -> Size:
        """Return what the counts would be counts of."""
        return Size(messages, messages, 2)

    def class_weights(self, row: Row, size: Size, alpha: float) -> tuple[float, ...]:
        """Return a weight of 0 for each class."""
        return (0.0,) * len(row)

    def bias(self, histograms: Sequence[Histogram], messages: Row, alpha: float) -> list[float]:
        """Return 0 for each class."""
        return [0.0] * len(messages)
