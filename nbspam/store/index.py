"""A table of a model's tokens in memory, for many messages.

It has the 64-bit hash and the row of each token, as arrays in the order of the hashes, and where
the hashes with the same first bits begin: one or two, so that a token is found in 0.05 microseconds
(by bisection, of a batch's tokens in order, in 0.11; in the file in 2).
Forked processes share the memory.

The hash is Python's of the token's bytes, a keyed one (SipHash) whose key is new in each process
that is not forked: nobody can write words that collide.  Tokens of the model that collide are
noticed when the table is made.  An unknown token collides with a known one with probability
n_tokens / 2^64: with a million tokens once in 2 x 10^13 words.
"""

import json
from bisect import bisect_left
from collections import defaultdict
from itertools import count
from typing import TYPE_CHECKING

from nbspam.store.lookup import Lookup
from nbspam.tokens.kinds import HOST, KINDS, TEXT

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


# Stand for what is escaped in a key, in the same place of the order: JSON has no such bytes.
_BACKSLASH, _QUOTE = b"\\\0", b"\\\1"


CHANNELS = HOST + 1  # HOST is the last


class CollisionError(Exception):
    """Two tokens of the model have the same hash, or one is there twice."""


class TokenTable:
    """The tokens of a model."""

    def __init__(self, lookup: Lookup) -> None:
        """Read all tokens; raises ModelError, and CollisionError if there can be no table."""
        import numpy as np

        numbers = defaultdict[bytes, int](count().__next__)  # of counts, as they are written
        # The last in order ends every search.
        hashes, rows = [np.array([np.iinfo(np.int64).max])], [np.array([-1], np.int32)]
        start, end = lookup.sections[0]
        for text in lookup.parts(start, end - 1):
            is_escaped = b"\\" in text
            if is_escaped:
                text = text.replace(rb"\\", _BACKSLASH).replace(rb"\"", _QUOTE)
            _, *fields = (text + b",\n").split(b'"')  # in turn, keys and what follows them
            keys, counts = fields[::2], fields[1::2]
            n = len(keys)
            if not n == len(counts) == text.count(b"\n") + 1:
                raise lookup.damaged("a line in it is not a token and its counts")
            rows.append(np.fromiter(map(numbers.__getitem__, counts), np.int32, n) * CHANNELS)
            for kind in KINDS:  # the file is in order: the tokens of a kind stand together
                if kind.channel != TEXT:
                    low, high = (bisect_left(keys, f"{kind.name}{sign}".encode()) for sign in ":;")
                    rows[-1][low:high] += kind.channel
            key_hashes = map(hash, map(_unescaped, keys) if is_escaped else keys)
            hashes.append(np.fromiter(key_hashes, np.int64, n))
        # The counts of the tokens, each once: few differ.
        self.counts = [lookup.row(b'""' + text.removesuffix(b"\n")) for text in numbers]
        joined = np.concatenate(hashes)
        order = np.argsort(joined)
        self._hashes, self._rows = joined[order], np.concatenate(rows)[order]
        del joined, order, hashes, rows
        if (self._hashes[1:] == self._hashes[:-1]).any():
            raise CollisionError
        bits = max(1, len(self).bit_length() - 1)
        self._shift, self._half = 64 - bits, 1 << (bits - 1)
        firsts = np.arange(-self._half, self._half) << self._shift
        self._begins = self._hashes.searchsorted(firsts).astype(np.int32)

    def __len__(self) -> int:
        return len(self._hashes) - 1

    def find(self, hashes: "NDArray[np.int64]") -> "NDArray[np.int32]":
        """Return the row of each token, (n_tokens,); -1 of others.

        A row is the place of its counts in `counts` * CHANNELS + its channel.
        hashes: (n_tokens,), of `hashes_of`.
        """
        import numpy as np

        at = self._begins[(hashes >> self._shift) + self._half]
        behind = np.flatnonzero(self._hashes[at] < hashes)
        while len(behind):
            at[behind] += 1
            behind = behind[self._hashes[at[behind]] < hashes[behind]]
        return np.where(self._hashes[at] == hashes, self._rows[at], np.int32(-1))


def hashes_of(tokens: list[str]) -> "NDArray[np.int64]":
    """Return the hash of each token, (n_tokens,), for `TokenTable.find`.

    Python hashes the buffer of a string, which is its bytes if they are ASCII.  Other strings may
    share a hash: hash('に') == hash('k0').
    """
    import numpy as np

    keys = [t if t.isascii() else t.encode("utf-8", "replace") for t in tokens]
    return np.fromiter(map(hash, keys), np.int64, len(keys))


def _unescaped(key: bytes) -> bytes:
    if b"\\" not in key:
        return key
    token: str = json.loads(b'"%b"' % key.replace(_BACKSLASH, rb"\\").replace(_QUOTE, rb"\""))
    return token.encode("utf-8", "replace")
