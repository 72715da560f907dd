"""The words of a message as the model knows them."""

from typing import NamedTuple

Weights = tuple[float, ...]


class KnownWords(NamedTuple):
    """The weights of a message's tokens, by channel."""

    text: list[Weights]
    fields: list[Weights]
    header: list[Weights]
    host: list[Weights]  # evidence for the sum rule alone
    text_tokens: int  # of the text, known or not

    @property
    def all(self) -> list[Weights]:
        """The weights of all channels."""
        return [*self.text, *self.fields, *self.header, *self.host]
