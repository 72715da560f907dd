"""A model's tokens as arrays, for classifying many messages: 64-bit hashes, and which row each has.

A token is found by bisection among hashes in memory that processes share: 0.3 microseconds a token
of a mail, where `index.py` takes 1.9 and each process would keep its own.

The hash is Python's of the token's bytes, a keyed one (SipHash) whose key is new in each process
that is not forked: nobody can write words that collide.  (That of a string is of the buffer that
holds it, and two strings may have the same: hash('に') == hash('k0').)  Tokens of the model that
collide are noticed when the table is made.  That a token that the model does not know has the hash
of one that it knows has a chance of the model's tokens in 2^64: with a million of them once in
2 x 10^13 words.
"""

import json
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nbspam.bayes.token_weight import Row
from nbspam.store.lookup import Lookup
from nbspam.tokens.kinds import channel_of

UNKNOWN = -1
# It says `"(?:[^"\\]|\\.)*"` of a key, in two thirds of the time.
_LINE = re.compile(rb'\n"([^"\\\n]*(?:\\.[^"\\\n]*)*)": \[([^\]\n]*)\],?(?=\n)')


class CollisionError(Exception):
    """Two tokens of the model have one hash, or one stands there twice."""


class TokenRow(NamedTuple):
    """What tokens of a model have in common: few differ."""

    counts: Row
    channel: int


class TokenTable:
    """The tokens of a model."""

    def __init__(self, lookup: Lookup) -> None:
        """Read all tokens; raises ModelError, and CollisionError if there can be no table."""
        numbers: dict[tuple[bytes, bytes], int] = {}  # of counts, and what keys begin with
        hashes: list[npt.NDArray[np.int64]] = []
        places: list[npt.NDArray[np.int32]] = []
        rest = b"\n"
        for part in lookup.copy(*lookup.sections[0]):
            text, _, after = (rest + part).rpartition(b"\n")
            found = _LINE.findall(text + b"\n")
            if len(found) != text.count(b"\n"):
                raise lookup.damaged("a line in it is not a token and its counts")
            rest = b"\n" + after
            keys = [key for key, _ in found]
            if b"\\" in text:
                keys = [key if b"\\" not in key else _unescaped(key) for key in keys]
            kinds = [key[: key.find(b":") + 1] for key in keys]  # of a word empty
            pairs = zip([counts for _, counts in found], kinds, strict=True)
            rows = [numbers.setdefault(pair, len(numbers)) for pair in pairs]
            hashes.append(_hashes(keys))
            places.append(np.array(rows, np.int32))
        self.rows = [
            TokenRow(lookup.row(b'"": [%b]' % counts), channel_of(kind.decode("utf-8", "replace")))
            for counts, kind in numbers
        ]
        joined = np.concatenate([*hashes, _hashes([])])
        order = np.argsort(joined)
        self._hashes = joined[order]
        self._rows = np.concatenate([*places, np.array([], np.int32)])[order]
        if (self._hashes[1:] == self._hashes[:-1]).any():
            raise CollisionError

    def __len__(self) -> int:
        return len(self._hashes)

    def find(self, tokens: Sequence[str]) -> npt.NDArray[np.int32]:
        """Return the number of each token's row in `rows`, (n_tokens,); UNKNOWN of others.

        tokens: without line ends.
        """
        if not tokens or not len(self):
            return np.full(len(tokens), UNKNOWN, np.int32)
        hashes = _hashes("\n".join(tokens).encode("utf-8", "replace").split(b"\n"))
        places = self._hashes.searchsorted(hashes)
        places[places == len(self)] = 0
        return np.where(self._hashes[places] == hashes, self._rows[places], np.int32(UNKNOWN))


def _hashes(keys: list[bytes]) -> npt.NDArray[np.int64]:
    return np.fromiter(map(hash, keys), np.int64, len(keys))


def _unescaped(key: bytes) -> bytes:
    token: str = json.loads(b'"%b"' % key)
    return token.encode("utf-8", "replace")
