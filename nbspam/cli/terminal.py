"""Output for people: the width of the terminal, folded text, colours."""

import os
import sys

import click

from nbspam.display.lines import HARD_SPACE, StyledLine, folded_sentence, folded_text

_USUAL_WIDTH = 80  # columns, in a pipe or of a terminal of unknown width


def terminal_width() -> int | None:
    """Return the columns of standard output if it is a terminal, else None."""
    if not sys.stdout.isatty():
        return None
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return int(columns)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or _USUAL_WIDTH
    except OSError:
        return _USUAL_WIDTH


def page_width() -> int:
    """Return the width of running text."""
    return terminal_width() or _USUAL_WIDTH


def echo_paragraph(text: str, indent: int = 0, *, breaks_words: bool = False) -> None:
    """Print a text in lines of the terminal's width, of 80 columns in a pipe.

    indent: blanks before each line but the first.
    breaks_words: whether what is longer than a line is broken; a path must stay one.
    """
    for line in folded_text(text, page_width(), indent, breaks_words=breaks_words):
        click.echo(line)


def echo_sentence(text: str) -> None:
    """Print a sentence in lines of that width, all but the first with two blanks before."""
    for line in folded_sentence(text, page_width()):
        click.echo(line)


def unbroken(name: object) -> str:
    """Return a name, such as a path, with blanks that `echo_paragraph` keeps in one line."""
    return str(name).replace(" ", HARD_SPACE)


def has_colours() -> bool:
    """Return whether colours show on standard output."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def echo_line(line: StyledLine) -> None:
    """Print a line in its colours: red and underlined for, green against, bold if strongly."""
    shown = ""
    for text, emphasis in line:
        if emphasis:
            colour, is_strong = "red" if emphasis > 0 else "green", abs(emphasis) == 2
            underline = emphasis > 0 or None  # None: no mark of its end
            text = click.style(text, colour, bold=is_strong or None, underline=underline)
        shown += text
    click.echo(shown)
