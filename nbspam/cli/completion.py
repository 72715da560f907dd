"""Completion for shells, as scripts that know every command and option, and never start nbspam.

click's own scripts run the program at each press of the tab key, 75 ms; these take 1 ms.  They are
made from the commands themselves, as `--help` is.  The installation has them as files;
`_NBSPAM_COMPLETE=bash_source nbspam` prints one.
"""

import inspect
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import click
from click.shell_completion import ShellComplete, add_completion_class, get_completion_class

from nbspam.cli.groups import LazyGroup, each_command

_FILES = {"FILE", "PATH", "SRC"}  # metavars of values that are files, whatever type click has


class OptionValue(NamedTuple):
    """What follows an option, or stands in its place."""

    name: str
    choices: tuple[str, ...] = ()
    is_file: bool = False


class Flag(NamedTuple):
    """An option as shells complete it."""

    names: tuple[str, ...]
    help: str
    value: OptionValue | None
    is_repeatable: bool


class Completed(NamedTuple):
    """A command as shells complete it."""

    path: tuple[str, ...]  # without the program's name
    options: list[Flag]
    commands: dict[str, str]  # name -> help
    argument: OptionValue | None

    @property
    def function(self) -> str:
        """The name of its function in a script."""
        return "_".join(("_nbspam", *self.path))

    @property
    def words(self) -> str:
        """Its names as typed."""
        return " ".join(self.path)


def completion_script(shell: str, program: click.Command) -> str:
    """Return the script for a shell: bash, zsh or fish."""
    make = {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell]
    commands = [_completed(path, command) for path, command in each_command(program, ())]
    return "".join(f"{line}\n" for line in make(commands))


def _completed(path: tuple[str, ...], command: click.Command) -> Completed:
    context = click.Context(command, info_name="nbspam", help_option_names=["-h", "--help"])
    params = command.get_params(context)
    arguments = [param for param in params if isinstance(param, click.Argument)]
    return Completed(
        path,
        [_flag(param) for param in params if isinstance(param, click.Option)],
        command.summaries() if isinstance(command, LazyGroup) else {},
        OptionValue("file", is_file=True) if arguments else None,
    )


def _flag(option: click.Option) -> Flag:
    text = " ".join(inspect.cleandoc(option.help or "").split())
    help_text = text.partition(" [")[0].partition(". ")[0].rstrip(".").replace(" (repeatable)", "")
    help_text = help_text.replace("`", "")
    # The help option's names have no order in click 8.1.
    names = (*sorted(option.opts, key=len), *option.secondary_opts)
    if option.is_flag or option.count:
        return Flag(names, help_text, None, option.multiple)
    kind = option.type
    choices = tuple(map(str, kind.choices)) if isinstance(kind, click.Choice) else ()
    name = "value" if choices else option.metavar or kind.name.upper()
    is_file = isinstance(kind, click.Path) or name in _FILES
    return Flag(names, help_text, OptionValue(name, choices, is_file), option.multiple)


def _quoted(text: str) -> str:
    """Return a text in single quotes, for bash and zsh."""
    return "'" + text.replace("'", "'\\''") + "'"


def _patterns(options: Iterable[Flag]) -> str:
    return "|".join(name for option in options for name in option.names)


# bash


def _bash(commands: list[Completed]) -> Iterator[str]:
    yield "# bash completion for nbspam"
    yield "_nbspam() {"
    yield "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}"
    yield "    local command= options= words= word"
    yield "    COMPREPLY=()"
    yield "    if [[ $cur == = ]]; then cur="
    yield "    elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}"
    yield "    fi"
    yield '    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do'
    yield '        case "$command:$word" in'
    for each in commands:
        if each.commands:
            names = "|".join(f"{each.words}:{name}".replace(" ", "\\ ") for name in each.commands)
            yield f'            {names}) command="${{command:+$command }}$word" ;;'
    yield "        esac"
    yield "    done"
    # What returns here is completed by readline: a file.
    yield '    case "$command" in'
    for each in commands:
        yield f"    {_quoted(each.words)})"
        yield from (f"        {line}" for line in _bash_command(each))
        yield "        ;;"
    yield "    esac"
    yield '    if [[ $cur == -* && $words == "" ]]; then words=$options; fi'
    yield "    compopt +o default 2> /dev/null"
    yield '    COMPREPLY=($(compgen -W "$words" -- "$cur"))'
    yield "}"
    yield "complete -o default -F _nbspam nbspam"


def _bash_command(command: Completed) -> Iterator[str]:
    """Yield the lines that set what the words of a command may be."""
    valued = [option for option in command.options if option.value]
    files = [option for option in valued if option.value and option.value.is_file]
    yield f"options={_quoted(' '.join(n for option in command.options for n in option.names))}"
    if valued:
        yield 'case "$prev" in'
        if files:
            yield f"{_patterns(files)}) return ;;"
        for option in valued:
            if option.value and option.value.choices:
                yield f"{_patterns([option])}) words={_quoted(' '.join(option.value.choices))} ;;"
        others = [o for o in valued if o.value and not (o.value.choices or o.value.is_file)]
        if others:
            yield f"{_patterns(others)}) compopt +o default 2> /dev/null; return ;;"
        yield "*)"
    if command.commands:
        yield f"[[ $cur == -* ]] || words={_quoted(' '.join(command.commands))}"
    if command.argument:
        yield "[[ $cur == -* ]] || return"
    if valued:
        yield "esac"


# zsh


def _zsh(commands: list[Completed]) -> Iterator[str]:
    yield "#compdef nbspam"
    for command in commands:
        yield f"{command.function if command.path else '_nbspam_'}() {{"
        specifications = [_zsh_option(option) for option in command.options]
        if command.argument:
            specifications.append(f"'*:{command.argument.name}:_files'")
        if command.commands:
            listed = " ".join(
                f"{name}\\:{_quoted(_plain(text))}" for name, text in command.commands.items()
            )
            specifications += [_quoted(f"1:command:(({listed}))"), "'*::argument:->rest'"]
            yield "    local curcontext=$curcontext state line"
            yield "    typeset -A opt_args"
        flags = "-C" if command.commands else "-s -S"
        yield " \\\n        ".join((f"    _arguments {flags}", *specifications))
        if command.commands:
            yield "    [[ $state == rest ]] || return"
            yield f"    (( $+functions[{command.function}_$words[1]] )) || return"
            yield f"    {command.function}_$words[1]"
        yield "}"
    # Loaded by the name of its file it is a function already; else it is registered.
    yield 'if [[ $funcstack[1] == _nbspam ]]; then _nbspam_ "$@"; else compdef _nbspam_ nbspam; fi'


def _zsh_option(option: Flag) -> str:
    """Return an option as `_arguments` takes it."""
    text = f"[{_zsh_text(option.help)}]"
    action = ""
    if option.value:
        values = f"({' '.join(option.value.choices)})" if option.value.choices else " "
        action = f":{_zsh_text(option.value.name)}:{'_files' if option.value.is_file else values}"
    names = [
        name if not option.value else f"{name}=" if name.startswith("--") else f"{name}+"
        for name in option.names
    ]
    alternatives = names[0] if len(names) == 1 else f"{{{','.join(names)}}}"
    if option.is_repeatable:
        return f"'*'{alternatives}{_quoted(text + action)}"
    excluded = f"'({' '.join(option.names)})'" if len(names) > 1 else ""
    return f"{excluded}{alternatives}{_quoted(text + action)}"


def _zsh_text(text: str) -> str:
    """Return a text as a part of what `_arguments` takes."""
    for special in "\\[]:":
        text = text.replace(special, f"\\{special}")
    return _plain(text)


def _plain(text: str) -> str:
    """Return a text without what a quoted list would have to quote again, or expand."""
    return text.replace("'", "\u2019").replace("$", "")


# fish


def _fish(commands: list[Completed]) -> Iterator[str]:
    yield "# fish completion for nbspam"
    yield "function __nbspam_command --description 'Whether the words so far name this command'"
    yield "    set -l words (commandline -opc)"
    yield "    set -l path ''"
    yield "    for word in $words[2..-1]"
    yield '        switch "$path:$word"'
    for command in commands:
        for name in command.commands:
            yield f"            case '{command.words}:{name}'"
            yield f"                set path '{' '.join((*command.path, name))}'"
    yield "        end"
    yield "    end"
    yield '    test "$path" = "$argv[1]"'
    yield "end"
    yield "complete -c nbspam -f"
    for command in commands:
        at = f"complete -c nbspam -n \"__nbspam_command '{command.words}'\""
        for name, text in command.commands.items():
            yield f"{at} -a {name} -d {_fish_quoted(text)}"
        if command.argument:
            yield f"{at} -F"
        for option in command.options:
            yield f"{at}{_fish_option(option)}"


def _fish_option(option: Flag) -> str:
    names = "".join(
        f" -l {name[2:]}" if name.startswith("--") else f" -s {name[1:]}" for name in option.names
    )
    value = ""
    if option.value:
        choices = f" -a '{' '.join(option.value.choices)}'" if option.value.choices else ""
        value = " -r -F" if option.value.is_file else f" -x{choices}"
    return f"{names}{value} -d {_fish_quoted(option.help)}"


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _static(shell: str, dynamic: type[ShellComplete]) -> type[ShellComplete]:
    """Return what click answers `_NBSPAM_COMPLETE=bash_source nbspam` with: the script above."""

    class Static(dynamic):  # type: ignore[misc, valid-type]
        def source(self) -> str:
            return completion_script(shell, self.cli)

    return Static


def register_scripts() -> None:
    """Let click print these scripts in place of its own."""
    for shell in ("bash", "zsh", "fish"):
        dynamic = get_completion_class(shell)
        if dynamic is not None:
            add_completion_class(_static(shell, dynamic), shell)
