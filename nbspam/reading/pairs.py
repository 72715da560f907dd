"""Pairs of a label and a message, for users of the library."""

from collections.abc import Iterable, Iterator

from nbspam.errors import SourceError
from nbspam.labels import normal_label
from nbspam.reading.raw_message import RawMessage
from nbspam.reading.skips import Skips


def pair_messages(pairs: Iterable[tuple[str, str | bytes]], skips: Skips) -> Iterator[RawMessage]:
    """Yield the messages of (label, text or bytes) pairs; the source of the first is `pair:0`.

    Text is plain text, and bytes are a mail.  A pair without a printable label is skipped.
    Raises SourceError for what is not such a pair.
    """
    for number, pair in enumerate(pairs):
        source = f"pair:{number}"
        # Two characters of a string would pass for a pair.
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise SourceError(f"{source}: is not a pair; give (label, text or bytes)")
        label, content = pair
        if not isinstance(label, str) or not isinstance(content, str | bytes):
            raise SourceError(
                f"{source}: is a pair of {type(label).__name__} and {type(content).__name__};"
                " give a label, and the message as text or bytes"
            )
        if label := normal_label(label):
            yield RawMessage(source, label, content)
        else:
            skips(source, "the label has no printable character")
