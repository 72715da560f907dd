"""The command reference, printed from the commands themselves.

python -m nbspam.cli.reference > docs/commands.md
"""

import sys

import click

from nbspam.cli.groups import each_command
from nbspam.cli.program import nbspam

_INTRODUCTION = """\
# Commands

Printed from the program by `python -m nbspam.cli.reference`; a test holds it to the program.  Every
command also prints its part with `--help`.
"""
_WIDTH = 100


def page() -> str:
    """Return the reference as Markdown."""
    parts = [_INTRODUCTION]
    for path, command in each_command(nbspam, ("nbspam",)):
        context = click.Context(
            command,
            info_name=" ".join(path),
            terminal_width=_WIDTH,
            max_content_width=_WIDTH,
            help_option_names=nbspam.context_settings["help_option_names"],
        )
        text = "\n".join(line.rstrip() for line in command.get_help(context).splitlines())
        parts.append(f"## {' '.join(path)}\n\n```text\n{text}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    sys.stdout.write(page())
