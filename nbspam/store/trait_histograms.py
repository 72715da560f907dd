"""The histograms of the traits, as the model file has them.

    {"words": {"ham": {"lowest": 12, "counts": [1, 0, 3]}, "spam": …}, …}

`counts` begins with how many messages have the lowest value, and ends with those of the highest.
"""

from collections.abc import Sequence
from typing import Any

from nbspam.bayes.trait_model import Values
from nbspam.tokens.traits import NAMES

TraitHistograms = tuple[tuple[Values, ...], ...]  # per trait, in the order of TRAITS; per class
_HIGHEST = 1_000  # no trait's scale goes as far


def no_histograms(n_classes: int) -> TraitHistograms:
    """Return the histograms of no message."""
    return tuple(tuple({} for _ in range(n_classes)) for _ in NAMES)


def dump_histograms(
    histograms: TraitHistograms, classes: Sequence[str]
) -> dict[str, dict[str, dict[str, object]]]:
    """Return the histograms as the file has them; {} of a model without traits."""
    return {
        name: dict(zip(classes, map(_dumped, row), strict=True))
        for name, row in zip(NAMES if histograms else (), histograms, strict=True)
    }


def _dumped(values: Values) -> dict[str, object]:
    lowest, highest = min(values, default=0), max(values, default=-1)
    return {
        "lowest": lowest,
        "counts": [values.get(value, 0) for value in range(lowest, highest + 1)],
    }


def load_histograms(
    fields: Any, classes: Sequence[str], messages: Sequence[int], is_older: bool = False
) -> TraitHistograms:
    """Return the histograms in a file's parsed JSON; raises ValueError, trusts nothing.

    is_older: whether the model may have other traits; one that it lacks is of no message.
    """
    if not isinstance(fields, dict) or (tuple(fields) != NAMES and not is_older):
        raise ValueError("other traits than this program's")
    known = [fields[name] for name in NAMES if name in fields]
    if not all(isinstance(row, dict) and set(row) == set(classes) for row in known):
        raise ValueError("no histogram of a trait for each class")
    return tuple(
        tuple(_loaded(fields[name][k], n) for k, n in zip(classes, messages, strict=True))
        if name in fields
        else ({},) * len(classes)
        for name in NAMES
    )


def _loaded(fields: Any, messages: int) -> Values:
    if not isinstance(fields, dict):
        raise ValueError("no histogram of a trait")
    lowest, counts = fields.get("lowest"), fields.get("counts")
    if (
        type(lowest) is not int
        or not isinstance(counts, list)
        or not 0 <= lowest <= _HIGHEST - len(counts)
        or not set(map(type, counts)) <= {int}
        or (counts and (min(counts) < 0 or not counts[0] or not counts[-1]))
    ):
        raise ValueError("no histogram of a trait")
    if sum(counts) > messages:
        raise ValueError("a trait of more messages than there are")
    return {value: n for value, n in enumerate(counts, lowest) if n}
