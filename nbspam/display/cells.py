"""Texts in columns of a terminal: an ideograph or an emoji takes two cells, an accent none."""

ELLIPSIS = "…"


def cell_width(text: str) -> int:
    """Return how many cells of a terminal a text takes."""
    if text.isascii():
        return len(text)
    from unicodedata import category, east_asian_width, normalize

    # Letters and their marks are one cell where they are one character; other marks take none.
    return sum(
        0 if category(c) in ("Mn", "Me", "Cf") else 1 + (east_asian_width(c) in "WF")
        for c in normalize("NFC", text)
    )


def padded(text: str, width: int) -> str:
    """Return a text with blanks after it, `width` cells wide; a wider one as it is."""
    return text + " " * (width - cell_width(text))


def shortened(text: str, width: int) -> str:
    """Return a text that takes `width` cells at most, cut with an ellipsis if it took more."""
    if cell_width(text) <= width:
        return text
    kept = beginning(text, width - 1)
    return kept + ELLIPSIS


def beginning(text: str, width: int) -> str:
    """Return the longest beginning of a text that takes `width` cells at most."""
    if text.isascii():
        return text[: max(0, width)]
    used = 0
    for i, character in enumerate(text):
        used += cell_width(character)
        if used > width:
            return text[:i]
    return text
