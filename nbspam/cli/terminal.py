"""What standard output can show, and how marks are coloured on it."""

import os
import sys

import click

from nbspam.display.marked_lines import Line, Piece

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


def echo_line(line: Line) -> None:
    """Print a line in its colours: red and underlined for, green against, bold if strongly."""
    joined: Line = []
    for piece in line:
        if joined and joined[-1].mark == piece.mark:
            joined[-1] = Piece(joined[-1].text + piece.text, piece.mark)
        else:
            joined.append(piece)
    shown = (
        click.style(text, **_STYLES[mark]) if mark else text  # type: ignore[arg-type]
        for text, mark in joined
    )
    click.echo("".join(shown))
