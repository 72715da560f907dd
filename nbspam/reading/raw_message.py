"""A message before it is parsed: where it came from, its label, its bytes or text."""

from typing import TYPE_CHECKING, NamedTuple

from nbspam.errors import SourceError
from nbspam.reading.compression import open_bytes
from nbspam.reading.message import BYTES_LIMIT, Message, parse, parse_text

if TYPE_CHECKING:  # importing it takes 3 ms, and classifying one message does without
    from pathlib import Path


class RawMessage(NamedTuple):
    """One message of a source.

    A file is named, not read: the process that needs its content opens it.
    """

    source: str  # a path, `path:line` of a row, `path:number` in an mbox, "-", `row:0`, `pair:0`
    label: str | None  # the class that its source or the user gives it
    content: "bytes | str | Path"  # a mail; plain text; a file with one message

    def message(self) -> Message:
        """Return the message, parsed; raises SourceError when its file cannot be read."""
        content = self.content
        if isinstance(content, str):
            return parse_text(content)
        if not isinstance(content, bytes):
            content = _file_bytes(content)
        return parse(content)


_MOST = 1 << 16  # bytes; most mails have fewer


def _file_bytes(path: "Path") -> bytes:
    try:
        with open_bytes(path) as stream:
            # Reading 16 MiB at once costs 32 µs per file; this costs 12.
            content = stream.read(_MOST)
            return content + stream.read(BYTES_LIMIT - _MOST) if len(content) == _MOST else content
    except OSError as error:
        raise SourceError(f"{path}: cannot be read ({error.strerror}); check it") from error
