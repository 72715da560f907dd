"""The digest by which the ledger knows a message again.

It is of what a model counts of the message (its tokens, how often they occur, its traits) and of
what tells it from others with the same tokens: its Message-ID, or without one its Subject and text,
since digits are 0 in tokens, but "offer 1" and "offer 2" are two messages.

What software adds to a message on its way (our header, a Status line, an mbox `From ` line) is part
of none of these, so the message keeps its digest; and since the digest covers what was counted,
unlearning takes out of the counts exactly what was learned.
"""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b

from nbspam.reading.header_fields import Header, decode_words

_BYTES = 16  # 2^64 messages before two of them are likely to share a digest
_ADDED = b" \t\r\n>"  # white space and the quotes of an mbox, which differ from folder to folder
_ONCE: Mapping[str, int] = {}


def digest_of(
    tokens: Iterable[str],
    headers: Sequence[Header],
    times: Mapping[str, int] = _ONCE,
    traits: Sequence[int] = (),
    texts: Iterable[str] = (),
) -> str:
    """Return the digest of a message, in hexadecimal.

    tokens: as the message has them in order.  times: of those that occur more than once.
    texts: of the message's parts, decoded.
    """
    known = blake2b(_identity(headers, texts), digest_size=_BYTES)
    lines = ["", *tokens]
    lines += [f"{times[token]} {token}" for token in sorted(times)]
    if traits:
        lines.append(" ".join(map(str, traits)))
    known.update(_bytes("\n".join(lines)))
    return known.hexdigest()


def _identity(headers: Sequence[Header], texts: Iterable[str]) -> bytes:
    """Return the first Message-ID that is not empty; without one the Subject and the texts."""
    for name, value in headers:
        if name == "message-id" and value.strip("<> "):
            return _bytes(value)
    subject = next((decode_words(value) for name, value in headers if name == "subject"), "")
    return _bytes(subject + "".join(texts)).translate(None, _ADDED)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")
