"""What was worked out before, remembered: the same words and fields stand in thousands of mails."""

from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")

# Longer keys are not met again, and would cost memory by the megabyte.
_KEY_LIMIT = 200


class Memo(dict[str, Value]):
    """A dict that works out what it lacks, and forgets everything when it is full.

    `map(memo.__getitem__, keys)` runs in C for what is known: functools.lru_cache, which keeps an
    order of use besides, took 240 ms where this takes 180 (908,000 keys, 64,000 of them different).
    """

    def __init__(self, function: Callable[[str], Value], limit: int) -> None:
        """Remember `function`'s values of up to `limit` keys; it must give the same each time."""
        super().__init__()
        self._function = function
        self._limit = limit

    def __missing__(self, key: str) -> Value:
        value = self._function(key)
        if len(key) <= _KEY_LIMIT:
            if len(self) >= self._limit:
                self.clear()
            self[key] = value
        return value
