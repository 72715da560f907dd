"""The text of one part of a message, as a reader sees it."""

from typing import NamedTuple


class VisibleText(NamedTuple):
    """A part's text, with its tricks undone."""

    text: str
    targets: list[str] | None  # of the links and images of HTML; None of plain text
    certain: str | None = None  # the text that is seen for certain; None: all of it
