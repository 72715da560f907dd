"""Output: results as JSON or sentences, the width of the terminal, folded text, colours."""

import json
import os
import sys
from collections.abc import Iterable, Mapping

import click

from nbspam.display.lines import HARD_SPACE, StyledLine, fold_sentence, fold_text
from nbspam.scoring.verdict import rounded

_USUAL_WIDTH = 80  # columns, in a pipe or of a terminal of unknown width


def terminal_width() -> int | None:
    """Return the columns of standard output if it is a terminal, else None."""
    if not sys.stdout.isatty():
        return None
    from shutil import get_terminal_size  # not loaded for a pipe

    return get_terminal_size((_USUAL_WIDTH, 1)).columns


def page_width() -> int:
    """Return the columns for running text."""
    return terminal_width() or _USUAL_WIDTH


def echo_paragraph(text: str, indent: int = 0, *, break_words: bool = False) -> None:
    """Print a text in lines of the terminal's width, or of 80 columns in a pipe.

    indent: blanks before each line except the first.
    break_words: break words that are longer than a line; False keeps a path whole.
    """
    for line in fold_text(text, page_width(), indent, break_words=break_words):
        click.echo(line)


def print_result(
    form: str, fields: Mapping[str, object], sentences: Iterable[str], quiet: bool = False
) -> None:
    """Print a result as JSON or as sentences; quiet: no sentences.

    sentences: empty sentences are skipped.
    """
    if form == "json":
        click.echo(json.dumps(rounded(fields)))
    elif not quiet:
        for sentence in filter(None, sentences):
            echo_sentence(sentence)


def echo_sentence(text: str) -> None:
    """Print a sentence in lines of the same width; later lines are indented by two blanks."""
    for line in fold_sentence(text, page_width()):
        click.echo(line)


def unbroken(name: object) -> str:
    """Replace blanks in a name, such as a path, so that `echo_paragraph` keeps it in a line."""
    return str(name).replace(" ", HARD_SPACE)


def has_colours() -> bool:
    """Return whether colours show on standard output."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def echo_line(line: StyledLine) -> None:
    """Print a styled line: red and underlined for spam, green for ham, bold if strong."""
    styled_text = ""
    for text, emphasis in line:
        if emphasis:
            colour, is_strong = "red" if emphasis > 0 else "green", abs(emphasis) == 2
            underline = emphasis > 0 or None  # False would end underlining
            text = click.style(text, colour, bold=is_strong or None, underline=underline)
        styled_text += text
    click.echo(styled_text)
