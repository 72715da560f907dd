"""A model's tokens as arrays, for classifying many messages: 64-bit hashes, and which row each has.

The tokens of a batch of messages are sorted by their hashes and found by bisection, each in memory
that the one before has just used: 0.07 microseconds a token, in memory that processes share, where
`index.py` takes 1.9 and each process would keep its own.

The hash is Python's of the token's bytes, a keyed one (SipHash) whose key is new in each process
that is not forked: nobody can write words that collide.  Tokens of the model that collide are
noticed when the table is made.  That a token that the model does not know has the hash of one that
it knows has a chance of the model's tokens in 2^64: with a million of them once in 2 x 10^13 words.
"""

import json
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nbspam.bayes.token_weight import Row
from nbspam.store.lookup import Lookup
from nbspam.tokens.kinds import HOST, KINDS, TEXT

UNKNOWN = -1
_BACKSLASH, _QUOTE = b"\0", b"\1"  # in the place of escaped ones: JSON has no such bytes


class CollisionError(Exception):
    """Two tokens of the model have one hash, or one stands there twice."""


class TokenRow(NamedTuple):
    """What tokens of a model have in common: few differ."""

    channel: int
    counts: Row


class _Numbers(dict[bytes, int]):
    """The number of the row that counts are, as they are written, of tokens of one channel."""

    def __init__(self, channel: int, lookup: Lookup, rows: list[TokenRow]) -> None:
        self._channel, self._lookup, self._rows = channel, lookup, rows

    def __missing__(self, written: bytes) -> int:
        row = self._lookup.row(b'""' + written.removesuffix(b"\n"))
        number = self[written] = len(self._rows)
        self._rows.append(TokenRow(self._channel, row))
        return number


class TokenTable:
    """The tokens of a model."""

    def __init__(self, lookup: Lookup) -> None:
        """Read all tokens; raises ModelError, and CollisionError if there can be no table."""
        self.rows: list[TokenRow] = []
        numbers = [_Numbers(channel, lookup, self.rows) for channel in range(HOST + 1)]
        hashes, places = [_integers(())], [_integers(())]
        for channel, text in _texts(lookup):
            is_escaped = b"\\" in text
            if is_escaped:
                text = text.replace(rb"\\", _BACKSLASH).replace(rb"\"", _QUOTE)
            _, *parts = text.split(b'"')  # in turn, keys and what follows them
            keys, counts = parts[::2], parts[1::2]
            if not len(keys) == len(counts) == text.count(b"\n"):
                raise lookup.damaged("a line in it is not a token and its counts")
            hashes.append(_integers(map(hash, map(_unescaped, keys) if is_escaped else keys)))
            places.append(_integers(map(numbers[channel].__getitem__, counts)))
        joined = np.concatenate(hashes)
        order = np.argsort(joined)
        self._hashes, self._rows = joined[order], np.concatenate(places)[order].astype(np.int32)
        if (self._hashes[1:] == self._hashes[:-1]).any():
            raise CollisionError

    def __len__(self) -> int:
        return len(self._hashes)

    def find(self, hashes: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        """Return the number of each token's row in `rows`, (n_tokens,); UNKNOWN of others.

        hashes: (n_tokens,), of `hashes_of`.
        """
        found = np.full(len(hashes), UNKNOWN, np.int32)
        if len(self):
            order = np.argsort(hashes)
            hashes = hashes[order]
            places = self._hashes.searchsorted(hashes)
            places[places == len(self)] = 0
            found[order] = np.where(self._hashes[places] == hashes, self._rows[places], UNKNOWN)
        return found


def hashes_of(tokens: list[str]) -> npt.NDArray[np.int64]:
    """Return the hash of each token, (n_tokens,), for `TokenTable.find`.

    That of a string is of the buffer that holds it, which is its bytes if they are ASCII; else two
    strings may have the same: hash('に') == hash('k0').
    """
    if "".join(tokens).isascii():
        return _integers(map(hash, tokens))
    return _integers(hash(t if t.isascii() else t.encode("utf-8", "replace")) for t in tokens)


def _integers(found: Iterable[int]) -> npt.NDArray[np.int64]:
    return np.array(list(found), np.int64)  # half the time of np.fromiter


def _texts(lookup: Lookup) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a model's tokens, many at a time, with the channel of their tokens.

    The lines are in order, so the tokens of a kind stand together.
    """
    at, stop = lookup.sections[0]
    channel, channels = TEXT, dict[bytes, int]()
    for kind in KINDS:
        if kind.channel != TEXT:  # what follows all that begins with `kind:` follows `kind;`
            channels[f'"{kind.name}:: ['.encode()] = kind.channel
            channels[f'"{kind.name};: ['.encode()] = TEXT
    borders = sorted(channels)
    for border, (place, _) in zip(borders, lookup.places(borders, ledger=False), strict=True):
        yield from ((channel, text) for text in _lines(lookup, at, place))
        at, channel = place, channels[border]
    yield from ((channel, text) for text in _lines(lookup, at, stop))


def _lines(lookup: Lookup, start: int, stop: int) -> Iterator[bytes]:
    """Yield whole lines of a part of a file, many at a time."""
    rest = b""
    for part in lookup.copy(start, stop):
        text, end, rest = (rest + part).rpartition(b"\n")
        yield text + end
    if rest:
        yield rest  # a line without an end


def _unescaped(key: bytes) -> bytes:
    if b"\\" in key or _BACKSLASH in key or _QUOTE in key:
        written = key.replace(_BACKSLASH, rb"\\").replace(_QUOTE, rb"\"")
        token: str = json.loads(b'"%b"' % written)
        return token.encode("utf-8", "replace")
    return key
