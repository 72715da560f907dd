"""A group of commands that imports a command only to run it or to print its help."""

import importlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import click


class CommandFile(NamedTuple):
    """Where a command is, and its line in the group's help."""

    module: str  # in nbspam.cli
    help: str
    name: str = "command"  # in the module


class UnexpectedEndError(Exception):
    """A file ended too early, such as the bytecode of a module."""

    def __init__(self, end: EOFError) -> None:
        self.end = end


class LazyGroup(click.Group):
    """Commands in files of their own."""

    def __init__(
        self,
        *args: Any,
        files: Mapping[str, CommandFile],
        suggestions: str,
        aliases: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        """files: name -> file, in the order of the help.  aliases: other name -> name.

        suggestions: the name of a table in `suggestions.py`, of what else may be typed.
        """
        super().__init__(*args, **kwargs)
        self._files, self._aliases = files, aliases or {}
        self._suggestions = suggestions

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._files)

    def summaries(self) -> dict[str, str]:
        """Return what each command does, in the order of the help, as the help lists it."""
        return {name: file.help for name, file in self._files.items()}

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        file = self._files.get(self._aliases.get(cmd_name, cmd_name))
        if file is None:
            return None
        module = importlib.import_module(f"nbspam.cli.{file.module}")
        command: click.Command = getattr(module, file.name)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except EOFError as end:  # which click takes for an interrupt
            raise UnexpectedEndError(end) from end

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        command = self.get_command(ctx, args[0])
        if command is not None:
            return command.name, command, _in_long(command, args[1:])
        if ctx.resilient_parsing:  # while a shell completes a line
            return None, None, args[1:]
        from nbspam.cli import suggestions  # difflib takes 1.5 ms

        known: Mapping[str, Sequence[str]] = getattr(suggestions, self._suggestions)
        raise suggestions.no_such_command(ctx, args[0], [*self._files, *self._aliases], known)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(self.summaries().items()))


def _in_long(command: click.Command, arguments: list[str]) -> list[str]:
    """Return a command's arguments with `--model` for `-m`, as far as they begin with options.

    click takes `-m` for a long option first, and loads difflib to suggest another: 1.5 ms.
    """
    options = {
        name: option
        for option in command.params
        if isinstance(option, click.Option)
        for name in option.opts
    }
    at = 0
    while at < len(arguments) - 1 and (option := options.get(arguments[at])):  # a value may follow
        arguments[at] = max(option.opts, key=len)
        at += 1 if option.is_flag else 1 + option.nargs
    return arguments


def each_command(
    command: click.Command, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield a command and those below it, in their order, each with its words.

    path: the command's own.
    """
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None:
                yield from each_command(below, (*path, name))
