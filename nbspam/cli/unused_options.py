"""Options that were typed and have no use beside the format of the sources; loaded only with some.

What a config file sets is a default, for sources of any format, and is never refused here.
"""

from collections.abc import Mapping, Sequence

import click
from click.core import ParameterSource

from nbspam.errors import OptionError
from nbspam.reading.source import FILE_LISTS, LINES, STDIN, TABLE_FORMATS

# Option -> the formats that it is of; a list of files may name files of any.
_USED = {
    "text_column": TABLE_FORMATS,
    "label_column": TABLE_FORMATS,
    "header_row": ("tsv", "csv", "json"),  # the others name the columns in each row, or in the file
    "encoding": ("tsv", "csv", "jsonl", "json", LINES),
    "outside": (),  # of an index or a folder, which are no formats
}
_OF_TABLES = ("text_column", "label_column", "header_row", "encoding")


def refuse_unused(
    options: Mapping[str, object], input_format: str | None, names: Sequence[str]
) -> None:
    """Raise OptionError for an option that was typed and that the sources have no use for.

    options: of the reading, by their names.  names: of sources that are one message if they are
    standard input and no format is given.
    """
    typed = [name for name in _USED if options[name] and is_typed(name)]
    if input_format is None:
        typed = [name for name in typed if name in _OF_TABLES]
        if typed and names and all(name == STDIN for name in names):
            raise OptionError(
                f"{_option(typed[0])} is of tables, and standard input is read as one message; name"
                " the table's format with --input-format, or leave it out"
            )
        return
    for name in typed if input_format not in FILE_LISTS else ():
        if input_format not in _USED[name]:
            shown = "--lines" if options["lines"] else f"--input-format {input_format}"
            raise OptionError(f"{_option(name)} has no use with {shown}; leave one of them out")


def is_typed(parameter: str) -> bool:
    """Return whether an option of the running command was given on the command line."""
    source = click.get_current_context().get_parameter_source(parameter)
    return source is ParameterSource.COMMANDLINE


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
