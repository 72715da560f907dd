"""What the model remembers of the messages it has learned: a digest of each, and as what.

The digest is of the message's tokens and its Message-ID, if it has one.  What software adds to a
message on its way (our header, a Status line, an mbox `From ` line) is no token, so the message
keeps its digest; and the tokens in it make unlearning exact, since what is taken out again is just
what was put in.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import blake2b

from nbspam.reading.message import Header

_BYTES = 16  # 2^64 messages before two of them are likely to share a digest


def digest_of(tokens: Iterable[str], headers: Sequence[Header]) -> str:
    """Return the digest of a message, in hexadecimal; the order of the tokens does not matter."""
    identity = next((value for name, value in headers if name == "message-id"), "")
    text = "\n".join([identity, *sorted(tokens)])
    return blake2b(text.encode("utf-8", "replace"), digest_size=_BYTES).hexdigest()


def moves(learned: Sequence[int], found: Sequence[int]) -> list[tuple[int | None, int]]:
    """Return what brings a message up to the number of times that it was found in each class.

    learned: how often the message has been learned, per class.  found: how often a source has it.
    Each step is (from, to): unlearn it from one class, or from none, and learn it in another.
    A class is brought up to what was found and never above; a message that is gone from a class
    stays learned there, unless it has turned up in another: then the user has moved it.
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
