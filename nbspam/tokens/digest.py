"""The digest by which the ledger knows a message again.

It is of the message's tokens and its Message-ID, if it has one.  What software adds to a message on
its way (our header, a Status line, an mbox `From ` line) is not a token, so the message keeps its
digest; and since the digest covers the tokens, unlearning takes out exactly what was learned.
"""

from collections.abc import Iterable, Sequence
from hashlib import blake2b

from nbspam.reading.message import Header

_BYTES = 16  # 2^64 messages before two of them are likely to share a digest


def digest_of(tokens: Iterable[str], headers: Sequence[Header]) -> str:
    """Return the digest of a message, in hexadecimal; the order of the tokens does not matter."""
    identity = next((value for name, value in headers if name == "message-id"), "")
    text = "\n".join([identity, *sorted(tokens)])
    return blake2b(text.encode("utf-8", "replace"), digest_size=_BYTES).hexdigest()
