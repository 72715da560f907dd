"""A table of a model's tokens in memory, for many messages.

It consists of two arrays, the 64-bit hash and the row of each token, sorted by hash, and of an
index: for each value of the leading bits, the position of the first hash that is not lower.  On
average, one or two hashes share these bits, so finding a token takes 0.05 µs; bisection of a sorted
batch takes 0.11 µs, a search in the file 2 µs.  Forked processes share the memory.

The hash is Python's keyed hash of the token's bytes (SipHash), whose key is new in each process
that is not forked, so nobody can write words that collide.  Collisions between tokens of the model
are detected when the table is made.  An unknown token collides with a known one with probability
n_tokens / 2^64: with a million tokens, once in 2 x 10^13 words.
"""

import json
from bisect import bisect_left
from collections import defaultdict
from itertools import count
from typing import TYPE_CHECKING

from nbspam.store.lookup import Lookup
from nbspam.tokens.kinds import CHANNELS, KINDS, TEXT

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


# Replacements for escaped characters in a key; they do not occur in JSON, and keep the order of
# keys.
_BACKSLASH, _QUOTE = b"\\\0", b"\\\1"


class CollisionError(Exception):
    """Two tokens of the model have the same hash, or a token occurs twice."""


class TokenTable:
    """The tokens of a model."""

    def __init__(self, lookup: Lookup) -> None:
        """Read all tokens; raises ModelError, and CollisionError if hashes collide."""
        import numpy as np

        numbers = defaultdict[bytes, int](count().__next__)  # text of the counts -> number
        # A sentinel: the largest hash ends every search.
        hashes, rows = [np.array([np.iinfo(np.int64).max])], [np.array([-1], np.int32)]
        start, end = lookup.sections[0]
        for text in lookup.parts(start, end - 1):
            is_escaped = b"\\" in text
            if is_escaped:
                text = text.replace(rb"\\", _BACKSLASH).replace(rb"\"", _QUOTE)
            _, *fields = (text + b",\n").split(b'"')  # keys and counts alternate
            keys, counts = fields[::2], fields[1::2]
            n = len(keys)
            if not n == len(counts) == text.count(b"\n") + 1:
                raise lookup.damage_error("a line in it is not a token and its counts")
            rows.append(np.fromiter(map(numbers.__getitem__, counts), np.int32, n) * len(CHANNELS))
            for kind in KINDS:  # the file is sorted, so the tokens of a kind are adjacent
                if kind.channel != TEXT:
                    low, high = (bisect_left(keys, f"{kind.name}{sign}".encode()) for sign in ":;")
                    rows[-1][low:high] += kind.channel
            key_hashes = map(hash, map(_unescape_key, keys) if is_escaped else keys)
            hashes.append(np.fromiter(key_hashes, np.int64, n))
        # The distinct rows of counts; many tokens share one.
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
        self._first_index = self._hashes.searchsorted(firsts).astype(np.int32)

    def __len__(self) -> int:
        return len(self._hashes) - 1

    def find(self, hashes: "NDArray[np.int64]") -> "NDArray[np.int32]":
        """Return the row of each token, (n_tokens,); -1 for unknown tokens.

        A row is i * len(CHANNELS) + the token's channel, where `counts[i]` has the token's counts.
        hashes: (n_tokens,), from `hash_tokens`.
        """
        import numpy as np

        index = self._first_index[(hashes >> self._shift) + self._half]
        behind = np.flatnonzero(self._hashes[index] < hashes)
        while len(behind):
            index[behind] += 1
            behind = behind[self._hashes[index[behind]] < hashes[behind]]
        return np.where(self._hashes[index] == hashes, self._rows[index], np.int32(-1))


def hash_tokens(tokens: list[str]) -> "NDArray[np.int64]":
    """Hash each token, (n_tokens,), for `TokenTable.find`.

    An ASCII string has the hash of its bytes, because Python hashes a string's buffer.  Other
    strings are encoded first, because their buffers may be equal: hash('に') == hash('k0').
    """
    import numpy as np

    keys = [t if t.isascii() else t.encode("utf-8", "replace") for t in tokens]
    return np.fromiter(map(hash, keys), np.int64, len(keys))


def _unescape_key(key: bytes) -> bytes:
    if b"\\" not in key:
        return key
    token: str = json.loads(b'"%b"' % key.replace(_BACKSLASH, rb"\\").replace(_QUOTE, rb"\""))
    return token.encode("utf-8", "replace")
