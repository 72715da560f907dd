"""The ledger's rule: what to learn and unlearn so that the model has what a source has."""

from collections import Counter
from collections.abc import Sequence


def moves(learned: Sequence[int], found: Sequence[int]) -> list[tuple[int | None, int]]:
    """Return what brings a message up to the number of times that it was found in each class.

    learned: how often the message has been learned, per class.  found: how often a source has it.
    Each step is (from, to): unlearn it from one class, or from none, and learn it in another.
    A class is brought up to what was found and never above.  A message that is gone from a class
    stays learned there, unless it was found in another: then the user has moved it.
    """
    surplus = Counter({k: n - m for k, (n, m) in enumerate(zip(learned, found, strict=True))})
    steps: list[tuple[int | None, int]] = []
    for to, missing in sorted((-surplus).items()):
        for _ in range(missing):
            left = +surplus
            source = min(left) if left else None
            if source is not None:
                surplus[source] -= 1
            steps.append((source, to))
    return steps
