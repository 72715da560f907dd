"""The rows of a table of words, and the heads of its columns of counts."""

from collections.abc import Sequence
from typing import NamedTuple

from nbspam.scoring.explanation import StrongWord
from nbspam.store.metadata import Metadata


class WordRow(NamedTuple):
    """A line of the table."""

    token: str
    weight: float
    counts: Sequence[int]
    share: float | None = None  # None of a model's words, which have their weights' bars


def class_heads(metadata: Metadata) -> list[tuple[str, str]]:
    """Return the two lines above the counts of each class: its name, and of how many they are.

    Where tokens count as often as they occur, they are not of the number of messages.
    """
    settings, learned = metadata
    totals = [f"of {round(n):,}" for n in learned.messages]
    if settings.counts.repeats:
        totals = [""] * len(totals)
    return [(f"in {name}", of) for name, of in zip(settings.classes, totals, strict=True)]


def strongest_rows(
    ranked: dict[str, list[StrongWord]], metadata: Metadata
) -> dict[str, list[WordRow]]:
    """Return the strongest words of a model with the signs of an explanation.

    Of two classes the positive one has the plus, whichever a word is listed for.
    """
    positive, classes = metadata.settings.positive, metadata.settings.classes
    found = {}
    for name, words in ranked.items():
        sign = -1 if len(classes) == 2 and name != positive else 1
        found[name] = [WordRow(word.token, sign * word.weight, word.counts) for word in words]
    return found
