"""The words of a message as the model knows them, and what its traits weigh."""

from typing import NamedTuple

Weights = tuple[float, ...]


class KnownWords(NamedTuple):
    """The weights of a message's tokens, by channel, and of its traits."""

    text: list[Weights]
    fields: list[Weights]
    header: list[Weights]
    host: list[Weights]  # evidence for the sum rule alone
    text_tokens: int  # of the text, known or not
    traits: list[Weights] | None = None  # per trait that the rule heeds; None of a model without

    @property
    def all(self) -> list[Weights]:
        """The weights of all channels, and of the traits."""
        return [*self.text, *self.fields, *self.header, *self.host, *(self.traits or ())]
