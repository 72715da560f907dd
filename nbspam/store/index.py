"""A table of a model's tokens in memory, for many messages.

It has the 64-bit hash and the row of each token, as arrays.  The tokens of a batch of messages are
sorted by hash and found by bisection, so that neighbours share the processor's cache: 0.07
microseconds a token, where the file takes 2.  Forked processes share the memory.

The hash is Python's of the token's bytes, a keyed one (SipHash) whose key is new in each process
that is not forked: nobody can write words that collide.  Tokens of the model that collide are
noticed when the table is made.  An unknown token collides with a known one with probability
n_tokens / 2^64: with a million tokens once in 2 x 10^13 words.
"""

import json
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable
from itertools import count
from typing import TYPE_CHECKING

from nbspam.store.lookup import Lookup
from nbspam.tokens.kinds import KINDS, TEXT

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


# Stand for what is escaped in a key, in the same place of the order: JSON has no such bytes.
_BACKSLASH, _QUOTE = b"\\\0", b"\\\1"


class CollisionError(Exception):
    """Two tokens of the model have the same hash, or one is there twice."""


class TokenTable:
    """The tokens of a model."""

    def __init__(self, lookup: Lookup) -> None:
        """Read all tokens; raises ModelError, and CollisionError if there can be no table."""
        import numpy as np

        numbers = defaultdict[bytes, int](count().__next__)  # of counts, as they are written
        hashes, rows = [np.array([], np.int64)], [np.array([], np.int32)]
        channels = [np.array([], np.int32)]
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
            rows.append(np.fromiter(map(numbers.__getitem__, counts), np.int32, n))
            channels.append(np.full(n, TEXT, np.int32))
            for kind in KINDS:  # the file is in order: the tokens of a kind stand together
                if kind.channel != TEXT:
                    low, high = (bisect_left(keys, f"{kind.name}{sign}".encode()) for sign in ":;")
                    channels[-1][low:high] = kind.channel
            key_hashes = map(hash, map(_unescaped, keys) if is_escaped else keys)
            hashes.append(np.fromiter(key_hashes, np.int64, n))
        # The counts of the tokens, each once: few differ.
        self.counts = [lookup.row(b'""' + text.removesuffix(b"\n")) for text in numbers]
        joined = np.concatenate(hashes)
        order = np.argsort(joined)
        self._hashes = joined[order]
        self._rows = (np.concatenate(channels) * len(numbers) + np.concatenate(rows))[order]
        if (self._hashes[1:] == self._hashes[:-1]).any():
            raise CollisionError

    def __len__(self) -> int:
        return len(self._hashes)

    def find(self, hashes: "NDArray[np.int64]") -> "NDArray[np.int32]":
        """Return the row of each token, (n_tokens,); -1 of others.

        A row is its channel * len(counts) + the place of its counts in `counts`.
        hashes: (n_tokens,), of `hashes_of`.
        """
        import numpy as np

        rows = np.full(len(hashes), -1, np.int32)
        if len(self):
            order = np.argsort(hashes)
            hashes = hashes[order]
            places = self._hashes.searchsorted(hashes)
            places[places == len(self)] = 0
            rows[order] = np.where(self._hashes[places] == hashes, self._rows[places], -1)
        return rows


def hashes_of(tokens: list[str]) -> "NDArray[np.int64]":
    """Return the hash of each token, (n_tokens,), for `TokenTable.find`.

    Python hashes the buffer of a string, which is its bytes if they are ASCII.  Other strings may
    share a hash: hash('に') == hash('k0').
    """
    import numpy as np

    keys: Iterable[str | bytes] = tokens
    if not "".join(tokens).isascii():
        keys = (t if t.isascii() else t.encode("utf-8", "replace") for t in tokens)
    return np.array(list(map(hash, keys)), np.int64)  # in two thirds of the time of np.fromiter


def _unescaped(key: bytes) -> bytes:
    if b"\\" not in key:
        return key
    token: str = json.loads(b'"%b"' % key.replace(_BACKSLASH, rb"\\").replace(_QUOTE, rb"\""))
    return token.encode("utf-8", "replace")
