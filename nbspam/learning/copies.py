"""Copies of messages, which are left out together.

A message is scored as if it had not been learned.  If the model still had learned a copy of the
message, the message would look familiar, and the score would be too good an estimate for new
messages.  Two messages of a class are copies if they have the same words, whatever their digits and
their case.
"""

from collections.abc import Iterable
from typing import Any
from zlib import crc32

import numpy as np

from nbspam.bayes.matrix import Integers, Rows
from nbspam.tokens.kinds import WORD, kind_of

_SUBJECT = "subject"
_MIXES = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)  # the constants of splitmix64


def token_hashes(tokens: Iterable[str]) -> Any:
    """Hash each token, (n_tokens,), equally in all processes; 0 if the token does not count.

    Words of the text and of the subject count, unless they have digits.
    """
    hashes: Any = np.fromiter(map(_hash, tokens), np.uint64)
    is_counted = hashes > 0
    for shift, mix in zip((30, 27), _MIXES, strict=True):
        hashes = (hashes ^ (hashes >> np.uint64(shift))) * np.uint64(mix)
    return np.where(is_counted, hashes ^ (hashes >> np.uint64(31)), 0)


def _hash(token: str) -> int:
    is_counted = "0" not in token and (":" not in token or _is_word(token))
    return 1 + crc32(token.encode("utf-8", "surrogatepass")) if is_counted else 0


def _is_word(token: str) -> bool:
    kind = kind_of(token)
    return kind is WORD or kind.name == _SUBJECT


def row_keys(hashes: Any, rows: Rows) -> Any:
    """Return a key of each message, (n,), which is equal for copies; 0 without words.

    hashes: one for each token.
    """
    sums = np.zeros(len(rows.indices) + 1, np.uint64)
    np.cumsum(hashes[rows.indices], out=sums[1:])
    return sums[rows.indptr[1:]] - sums[rows.indptr[:-1]]


def copies_of(keys: Any, labels: Integers) -> Integers:
    """Count the copies of each message in its class, itself included, (n,)."""
    own = keys ^ labels.astype(np.uint64)
    _, index, n = np.unique(own, return_inverse=True, return_counts=True)
    return np.asarray(n[index])
