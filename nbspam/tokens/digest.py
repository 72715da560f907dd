"""The digest by which the ledger knows a message again.

It is of what a model counts of the message (its tokens, how often they occur, its traits) and its
Message-ID, if it has one.  What software adds to a message on its way (our header, a Status line,
an mbox `From ` line) is not a token, so the message keeps its digest; and since the digest covers
what was counted, unlearning takes out of the counts exactly what was learned.
"""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b

from nbspam.reading.header_fields import Header

_BYTES = 16  # 2^64 messages before two of them are likely to share a digest
_ONCE: Mapping[str, int] = {}


def digest_of(
    tokens: Iterable[str],
    headers: Sequence[Header],
    times: Mapping[str, int] = _ONCE,
    traits: Sequence[int] = (),
) -> str:
    """Return the digest of a message, in hexadecimal; the order of the tokens does not matter.

    times: of the tokens that occur more than once.
    """
    identity = next((value for name, value in headers if name == "message-id"), "")
    lines = [identity, *sorted(tokens)]
    lines += [f"{times[token]} {token}" for token in sorted(times)]
    if traits:
        lines.append(" ".join(map(str, traits)))
    text = "\n".join(lines)
    return blake2b(text.encode("utf-8", "replace"), digest_size=_BYTES).hexdigest()
