"""The command reference, printed from the commands themselves.

python -m nbspam.cli.reference > docs/commands.md
"""

import sys
from collections.abc import Iterator

import click

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
    for path, command in each_command():
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


def each_command(
    command: click.Command = nbspam, path: tuple[str, ...] = ("nbspam",)
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield a command and those below it, in their order."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None:
                yield from each_command(below, (*path, name))


if __name__ == "__main__":
    sys.stdout.write(page())
