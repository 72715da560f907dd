"""What a reader sees of a message: its Subject, whom it is from, and the beginning of its text."""

from typing import NamedTuple

from nbspam.reading.message import Message
from nbspam.tokens.unicode import undo_tricks
from nbspam.tokens.visible_text import VisibleText

_FIELD_LIMIT = 300  # characters of the Subject and of From
_STRANGE = "\ufffd"


class Excerpt(NamedTuple):
    """The part of a message that is shown: harmless, and of bounded size.

    The only control character in it is the line feed, which ends a line of the text.
    """

    subject: str  # empty if there is none, as of a text without a header
    sender: str
    text: str  # the beginning
    characters: int  # of the whole text, as it is shown

    @property
    def rest(self) -> int:
        """How many characters of the text are left out."""
        return self.characters - len(self.text)


def excerpt_of(message: Message, texts: list[VisibleText], limit: int) -> Excerpt:
    """Return the excerpt of a message.

    texts: its texts, as `message_tokens` has them.  limit: the most characters of text.
    """
    whole = "\n".join(filter(None, (printable(text) for text in _different(texts))))
    return Excerpt(
        _field(message.header("subject")), _field(message.header("from")), whole[:limit], len(whole)
    )


def printable(text: str) -> str:
    """Return a text that can be shown: no control character but line feeds, no format character.

    So it can neither command a terminal nor change the order in which it is read.  Blanks are
    single, and so are blank lines.
    """
    lines = [" ".join(line.split()) for line in text.split("\n")]
    kept = [line for i, line in enumerate(lines) if line or (i and lines[i - 1])]
    text = "\n".join(kept).strip("\n")
    if text.replace("\n", "").isprintable():
        return text
    return "".join(c if c == "\n" or c.isprintable() else _STRANGE for c in text)


def _field(value: str) -> str:
    shown = printable(undo_tricks(value)[0].replace("\n", " "))
    return shown if len(shown) <= _FIELD_LIMIT else shown[: _FIELD_LIMIT - 1] + "…"


def _different(texts: list[VisibleText]) -> list[str]:
    """Return the texts, without the pages that repeat a plain text."""
    found: list[str] = []
    words: set[str] = set()
    for text, targets, _ in texts:
        own = set(text.lower().split())
        if targets is None or 2 * len(own & words) < len(own) or not words:
            found.append(text)
            words |= own
    return found
