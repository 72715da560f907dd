"""The Message-ID of a mail, by which logs are searched: found without parsing the mail."""

import re
from typing import NamedTuple

from nbspam.patterns import lazy_pattern
from nbspam.reading.compression import open_bytes
from nbspam.reading.raw_message import RawMessage

# Bytes in which it is looked for.  Mail programs write it early; the longest header block of the
# corpora has 21 KB.
HEAD = 64 << 10
_FIELD = lazy_pattern(
    rb"^message-id[ \t]*+:([^\n]*+(?:\n[ \t][^\n]*+)*+)", re.MULTILINE | re.IGNORECASE
)
_FOLD = lazy_pattern(rb"\n[ \t]+")


class Identity(NamedTuple):
    """What tells a message from others in a log."""

    message_id: str = ""  # as `message_id` returns it
    size: int | None = None  # bytes, as they are on the disk; None of a row or line of text


def message_id(raw: bytes | bytearray) -> str:
    """Return the first Message-ID as it is written, without folds; "" if the header has none.

    raw: a mail, or its first HEAD bytes or more.  What it holds is the sender's choice: any byte
    but LF, as a character of Latin-1.
    """
    head = bytes(raw[:HEAD])
    if b"\r" in head:
        head = head.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    end = head.find(b"\n\n")
    match = _FIELD.search(head, 0, end if end >= 0 else len(head))
    return _FOLD.sub(b"", match[1]).strip().decode("latin-1") if match else ""


def identity(raw: RawMessage) -> Identity:
    """Return what identifies a message; nothing of one that is plain text or cannot be read."""
    content = raw.content
    if isinstance(content, str):
        return Identity()
    if isinstance(content, bytes):
        return Identity(message_id(content), len(content))
    try:
        with open_bytes(content) as stream:
            return Identity(message_id(stream.read(HEAD)), content.stat().st_size)
    except OSError:
        return Identity()  # whoever reads it whole says so
