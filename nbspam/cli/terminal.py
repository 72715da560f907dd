"""What standard output can show, and how highlights are coloured on it."""

import os
import sys

import click

from nbspam.display.excerpt_lines import Piece, StyledLine

_USUAL_WIDTH = 80  # columns; of a page in a pipe, and where a terminal does not say
_STYLES = {
    2: {"fg": "red", "bold": True, "underline": True},
    1: {"fg": "red", "underline": True},
    -1: {"fg": "green"},
    -2: {"fg": "green", "bold": True},
}


def terminal_width() -> int | None:
    """Return the columns of the terminal that standard output is; None of anything else."""
    if not sys.stdout.isatty():
        return None
    named = os.environ.get("COLUMNS", "")
    if named.isdecimal() and int(named):
        return int(named)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or _USUAL_WIDTH
    except OSError:
        return _USUAL_WIDTH


def page_width() -> int:
    """Return how wide running text is to be."""
    return terminal_width() or _USUAL_WIDTH


def has_colours() -> bool:
    """Return whether colours show on standard output."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def echo_line(line: StyledLine) -> None:
    """Print a line in its colours: red and underlined for, green against, bold if strongly."""
    joined: StyledLine = []
    for piece in line:
        if joined and joined[-1].emphasis == piece.emphasis:
            joined[-1] = Piece(joined[-1].text + piece.text, piece.emphasis)
        else:
            joined.append(piece)
    shown = (
        click.style(text, **_STYLES[emphasis]) if emphasis else text  # type: ignore[arg-type]
        for text, emphasis in joined
    )
    click.echo("".join(shown))
