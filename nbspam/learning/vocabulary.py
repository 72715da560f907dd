"""Tokens as numbers, so that they go from one process to another once and not with each message.

A process that tokenizes has a vocabulary of its own; a batch of messages brings the tokens that are
new in it, and the messages as numbers of that vocabulary.  Who gathers them numbers them anew: one
look-up for each token of a process in place of one for each token of each message.
"""

import itertools
import os
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from nbspam.tokens.tokenized import Numbers, TokenizedMessage

# Tokens that a process numbers before it begins anew: its memory does not grow with the corpus.
_LIMIT = 400_000


def vocabulary() -> defaultdict[str, int]:
    """Return an empty vocabulary: what is looked up is numbered, in order, from 0.

    With its own `__len__` to number it would refer to itself, and be freed by the next collection
    only: a worker of a cluster grew by 1.5 MiB for each piece of 2 MiB.
    """
    return defaultdict(itertools.count().__next__)


def columns_of(message: TokenizedMessage, numbers: defaultdict[str, int]) -> Iterable[int]:
    """Return the numbers of a message's tokens, ~n of those that are perhaps hidden."""
    columns = map(numbers.__getitem__, message.tokens)
    perhaps = message.numbers.perhaps_hidden
    if not perhaps:
        return columns
    pairs = zip(message.tokens, columns, strict=True)
    return [~n if token in perhaps else n for token, n in pairs]


class NumberedMessage(NamedTuple):
    """A tokenized message, its tokens as numbers of a vocabulary."""

    source: str
    label: str | None
    columns: Sequence[int]
    digest: str
    size: int
    numbers: Numbers


class NumberedBatch(NamedTuple):
    """Some messages of one process, as it sends them."""

    vocabulary: tuple[int, int]  # the process, and which of its vocabularies
    new: str  # its tokens after those that it sent before, a line each
    columns: bytes  # the numbers of all messages' tokens
    messages: list[tuple[str, str | None, int, str, int, Numbers]]  # with how many tokens


class Numberer:
    """Numbers the tokens of one process."""

    def __init__(self, limit: int = _LIMIT) -> None:
        """Begin with an empty vocabulary; limit: of its tokens, where the next one begins."""
        self._limit = limit
        self._begun = -1
        self._begin()

    def _begin(self) -> None:
        self._begun += 1
        self._process = os.getpid()
        self._numbers = vocabulary()

    def numbered(self, messages: Iterable[TokenizedMessage]) -> NumberedBatch:
        """Return messages as a batch."""
        if self._process != os.getpid() or len(self._numbers) > self._limit:
            self._begin()
        sent = len(self._numbers)
        columns = array("i")
        shorter = []
        for message in messages:
            columns.extend(columns_of(message, self._numbers))
            source, label, tokens, digest, size, numbers, _ = message
            numbers = numbers._replace(perhaps_hidden=frozenset())  # the columns say it
            shorter.append((source, label, len(tokens), digest, size, numbers))
        # A dictionary keeps its order; its last entries are found without going through the others.
        new: list[str] = []
        for token in reversed(self._numbers):
            if len(new) == len(self._numbers) - sent:
                break
            new.append(token)
        return NumberedBatch(
            (self._process, self._begun), "\n".join(reversed(new)), columns.tobytes(), shorter
        )


class Renumberer:
    """Gathers the batches of several processes, in one vocabulary."""

    def __init__(self, numbers: defaultdict[str, int]) -> None:
        """Number tokens in `numbers`."""
        self._numbers = numbers
        self._places: dict[int, tuple[int, array[int]]] = {}  # of each process's tokens

    def messages(self, batch: NumberedBatch) -> Iterator[NumberedMessage]:
        """Yield the messages of a batch; each process's batches must come in their order."""
        process, begun = batch.vocabulary
        before, places = self._places.get(process, (-1, array("i")))
        if before != begun:
            places = array("i")
            self._places[process] = begun, places
        import numpy as np

        if batch.new:
            places.extend(map(self._numbers.__getitem__, batch.new.split("\n")))
        own_columns = np.frombuffer(batch.columns, np.int32)
        sign = own_columns >> 31  # -1 of what is perhaps hidden; x ^ -1 is ~x
        columns = np.frombuffer(places, np.int32)[own_columns ^ sign] ^ sign
        end = 0
        for source, label, n, digest, size, numbers in batch.messages:
            start, end = end, end + n
            own = array("i", columns[start:end].tobytes())
            yield NumberedMessage(source, label, own, digest, size, numbers)
