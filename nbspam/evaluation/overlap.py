"""Messages that are tested on and were learned before: they flatter the figures.

A message is known by its digest, of its Message-ID and all that is counted of it
(`tokens/digest.py`): two texts with the same tokens are the same, two mails with the same text are
not unless they have the same Message-ID.
"""

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from nbspam.bayes.matrix import Integers
from nbspam.filter import Filter
from nbspam.tokens.tokenized import TokenizedMessage

_BATCH = 500  # messages looked up in the ledger at a time


class LearnedBefore(NamedTuple):
    """How many of the messages read a saved model had learned, as far as its ledger names them."""

    read: int
    learned: int | None  # None: the ledger names no message, so it cannot be known
    left_out: int  # of the learned
    unnamed: int  # messages that the model learned and its ledger does not name


class LedgerCheck:
    """Counts the messages that pass through it and those that a model has learned."""

    def __init__(self, spam_filter: Filter, including_learned: bool) -> None:
        """including_learned: whether to pass on the learned ones too."""
        self._filter, self._including = spam_filter, including_learned
        self._read = self._learned = 0

    def __call__(self, messages: Iterable[TokenizedMessage]) -> Iterator[TokenizedMessage]:
        """Yield the messages, with digests, that are to be tested on; raises ModelError."""
        messages = iter(messages)
        while batch := list(itertools.islice(messages, _BATCH)):
            known = self._filter.learned({message.digest for message in batch})
            for message in batch:
                is_learned = any(known.get(message.digest, ()))
                self._read += 1
                self._learned += is_learned
                if self._including or not is_learned:
                    yield message

    def result(self) -> LearnedBefore:
        """Return what was counted; raises ModelError."""
        unnamed = sum(self._filter.unnamed())
        total = sum(self._filter.own_metadata.learned.messages)
        known = None if total and unnamed == total else self._learned
        return LearnedBefore(self._read, known, 0 if self._including else self._learned, unnamed)


# Of a test, how many messages tested on are the same as one trained on; None without digests.


def of_first(digests: Sequence[bytes], first: int) -> int | None:
    """Return how many messages are the same as one of the first, which are trained on."""
    trained = set(digests[:first])
    return sum(digest in trained for digest in digests[first:]) if digests else None


def of_batches(digests: Sequence[bytes], batch: int) -> int | None:
    """Return how many messages are the same as one of an earlier batch."""
    learned: set[bytes] = set()
    same = 0
    for start in range(0, len(digests), batch):
        part = digests[start : start + batch]
        same += sum(digest in learned for digest in part)
        learned.update(part)
    return same if digests else None


def of_folds(digests: Sequence[bytes], fold: Integers) -> int | None:
    """Return how many messages are the same as one of another fold.

    fold: (n,), the fold of each message.
    """
    folds: defaultdict[bytes, set[int]] = defaultdict(set)
    for digest, k in zip(digests, fold.tolist(), strict=False):
        folds[digest].add(k)
    return sum(len(folds[digest]) > 1 for digest in digests) if digests else None


def of_others(digests: Sequence[bytes]) -> int | None:
    """Return how many messages are the same as another."""
    times = Counter(digests)
    return sum(times[digest] > 1 for digest in digests) if digests else None
