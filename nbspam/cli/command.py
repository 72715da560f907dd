"""Commands and options: click's, with headings in --help, defaults of a config file, and records.

    @section("Cut-offs")
    class CutOffOptions(NamedTuple):
        spam_cutoff: float | None = option(metavar="P", type=float, help="…")  # --spam-cutoff

    @command("classify")
    def classify(*, cut_offs: CutOffOptions, quiet: bool = QUIET) -> int: …

The Python default of a parameter is its click option or argument.  An option without a name gets
the name of its parameter.  A parameter that is annotated with a NamedTuple adds the options of the
tuple's fields to the command, and gets their values as one tuple.
"""

import importlib
import os
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, NamedTuple, TypeVar

import click
from click.core import ParameterSource

from nbspam.errors import OptionError, UnexpectedEndError
from nbspam.names import user_folder

MORE = "More"
# The headings of --help, in their order.
HEADINGS = (
    *("Sources", "Mail", "Sockets", "Serving", "Test"),
    *("Model", "Cut-offs", "Senders", "Output", MORE),
)
_SHOW_ALL, _ORIGINS = "nbspam.show_all", "nbspam.origins"  # keys of a context's `meta`

RecordType = TypeVar("RecordType", bound=type)


class Option(click.Option):
    """A click option with a heading, and rules that `Command` checks.

    advanced: only --help-all shows it.
    requires: options, separated by spaces; at least one of those that the command has must also
    be given, as an option, in the environment or in the config file.
    conflicts_with: options, separated by spaces, that it cannot be combined with.
    formats: formats of the sources for which the option has an effect; None: all.
    configurable: the config file can set the option for all commands that have it.
    greedy: all arguments up to the next option are its values: `--spam new/*`.
    """

    def __init__(
        self,
        names: tuple[str, ...],
        *,
        help_heading: str = "",
        advanced: bool = False,
        requires: str = "",
        conflicts_with: str = "",
        formats: Collection[str] | None = None,
        configurable: bool = False,
        greedy: bool = False,
        **attributes: Any,
    ) -> None:
        default = attributes.get("default")
        if isinstance(attributes.get("type"), click.types.IntParamType):
            attributes.setdefault("metavar", "N")
        attributes.setdefault("show_default", bool(default) and default is not True)
        super().__init__(names or ("--unnamed",), **attributes)
        self.heading, self.advanced, self._has_name = help_heading, advanced, bool(names)
        self.requires, self.conflicts_with, self.formats, self.configurable = (
            requires,
            conflicts_with,
            formats,
            configurable,
        )
        self.greedy = greedy

    def name_after(self, field: str) -> None:
        """Name an option without a name after its parameter: --spam-cutoff for `spam_cutoff`."""
        if not self._has_name:
            self.name, self.opts = field, [f"--{field.replace('_', '-')}"]

    @property
    def flag(self) -> str:
        """The long name, `--spam-cutoff`; a config file names it without the first hyphens."""
        return max(self.opts, key=len)


def option(*names: str, **attributes: Any) -> Any:
    """Return an option, typed as Any because it is the default of a parameter of any type."""
    return Option(names, **attributes)


# Shorthands: boolean options, options that only --help-all shows, and both.
flag = partial(option, is_flag=True)
rare_option = partial(option, advanced=True)
rare_flag = partial(option, is_flag=True, advanced=True)


# Any text, because a source may be a URL.  The shell completes it as a file or folder.
SOURCE = click.Path(readable=False)


def argument(name: str, **attributes: Any) -> Any:
    """Return an argument, typed as Any; by default it names a source."""
    return click.Argument([name], **{"type": SOURCE, **attributes})


def section(heading: str) -> Callable[[RecordType], RecordType]:
    """Return a decorator that puts the options of a record under a heading of --help."""

    def decorate(record: RecordType) -> RecordType:
        for field, parameter in record._field_defaults.items():  # type: ignore[attr-defined]
            if isinstance(parameter, Option):
                parameter.name_after(field)
                parameter.heading = parameter.heading or heading
        return record

    return decorate


def command(
    name: str, *, heading: str = "Output", table: str = ""
) -> "Callable[[Callable[..., Any]], Command]":
    """Return a decorator that makes a command of a function with keyword arguments.

    heading: the heading in --help for options without a heading.
    table: a table of the config file that can set all options of the command.
    """
    return lambda function: Command(name, function, heading, table)


class Program(NamedTuple):
    """The `obj` of every command's context, passed by `nbspam/__main__.py`."""

    passage: Any  # the `Passage` of the message to pass through, or None
    describe: Callable[[BaseException], tuple[int, str]]  # describes errors of other libraries


class Command(click.Command):
    """A command whose options come from its function's signature."""

    def __init__(self, name: str, function: Callable[..., Any], heading: str, table: str) -> None:
        plain: Any = getattr(function, "__wrapped__", function)
        self._function, self.table = function, table
        self._records: dict[str, Any] = {}  # parameter -> record
        params: list[click.Parameter] = []
        for field, annotation in plain.__annotations__.items():
            default = (plain.__kwdefaults__ or {}).get(field)
            if isinstance(default, click.Parameter):
                params.append(default)
                if isinstance(default, Option):
                    default.name_after(field)
                    default.heading = default.heading or heading
            elif options := getattr(annotation, "_field_defaults", None):
                self._records[field] = annotation
                params += options.values()
        has_more = any(getattr(parameter, "advanced", False) for parameter in params)
        params.append(_help_all(is_hidden=not has_more))
        super().__init__(name, params=params, help=function.__doc__)

    def make_parser(self, ctx: click.Context) -> Any:
        parser = super().make_parser(ctx)
        # click first tries `-m` as a long option, and loads difflib to suggest a similar one, which
        # takes 1.5 ms.  The attributes are private to click; without them the parser still works.
        getattr(parser, "_long_opt", {}).update(getattr(parser, "_short_opt", {}))
        return parser

    def options(self) -> list[Option]:
        """Return the options of the command, without --help."""
        return [parameter for parameter in self.params if isinstance(parameter, Option)]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        path = None
        try:
            if not (ctx.resilient_parsing or {"-h", "--help", "--help-all"} & {*args}):
                path = config_file() if any(o.configurable for o in self.options()) else None
            if path is not None:
                from nbspam.cli.settings import defaults

                options = {option.flag[2:]: option for option in self.options()}
                ctx.default_map, ctx.meta[_ORIGINS] = defaults(path, self.table, options)
            return super().parse_args(ctx, self._with_one_value_each(args))
        except click.UsageError as error:
            error.ctx = error.ctx or ctx  # click sets no context if an option lacks its value
            option = getattr(error, "param", None)
            if isinstance(option, Option) and _is_from_file(ctx, option):
                problem = f"{option_origin(option.flag, ctx)}: {error.message.rstrip('.')}"
                raise OptionError(f"{problem}; correct it, or leave it out") from error
            raise

    def _with_one_value_each(self, args: list[str]) -> list[str]:
        """Return `--spam a --spam b` for `--spam a b`; in `--spam=a b`, b is a SOURCE."""
        names = {name for o in self.options() if o.greedy for name in o.opts}
        given, name, is_next = list[str](), "", False
        for i, argument in enumerate(args):
            if argument == "--":
                return given + args[i:]
            # as in click, the next argument is the option's value, even if it starts with a hyphen
            if is_next:
                is_next = False
            elif argument in names:
                name, is_next = argument, True
            elif argument[:1] == "-" != argument:
                name = ""
            elif name:
                given.append(name)
            given.append(argument)
        return given

    def invoke(self, ctx: click.Context) -> Any:
        return self._function(**self.arguments(ctx))

    def arguments(self, ctx: click.Context) -> dict[str, Any]:
        """Return the arguments of the function; raises OptionError."""
        values = dict(ctx.params)
        flags = [option.flag for option in self.options()]
        options = {o.flag: o for o in self.options() if _is_given(ctx, o.name or "")}
        for flag, option in options.items():
            needed = [name for name in option.requires.split() if name in flags]
            if needed and not options.keys() & {*needed} and not _is_from_file(ctx, option):
                names = " or ".join(needed)
                raise OptionError(f"{flag} needs {names}; add that, or leave out {flag}")
            for other in option.conflicts_with.split():
                if other in options and other != flag:
                    where = " of the config file" if _is_from_file(ctx, options[other]) else ""
                    raise OptionError(
                        f"{flag} and {other}{where} cannot be used together; leave one of them out"
                    )
        for name, record in self._records.items():
            values[name] = record(*(values.pop(field) for field in record._fields))
        return values

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the text up to its form feed; with --help-all, the whole text."""
        if ctx.meta.get(_SHOW_ALL):
            from inspect import cleandoc  # for help only

            text = cleandoc((self.help or "").replace("\f", ""))
            click.Command(self.name, help=text).format_help_text(ctx, formatter)
        else:
            super().format_help_text(ctx, formatter)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows: dict[str, list[tuple[str, str]]] = {heading: [] for heading in HEADINGS}
        for parameter in self.get_params(ctx):
            is_shown = ctx.meta.get(_SHOW_ALL) or not getattr(parameter, "advanced", False)
            is_option = isinstance(parameter, click.Option)
            if is_shown and is_option and (record := parameter.get_help_record(ctx)):
                rows[getattr(parameter, "heading", "") or MORE].append(record)
        for heading, records in rows.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


def _show_all(ctx: click.Context, parameter: click.Parameter, is_given: bool) -> None:
    if is_given and not ctx.resilient_parsing:
        ctx.meta[_SHOW_ALL] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


def _help_all(is_hidden: bool) -> click.Option:
    return click.Option(
        ["--help-all"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        hidden=is_hidden,
        callback=_show_all,
        help="Show all options, and more about the command.",
    )


def _is_given(ctx: click.Context, name: str) -> bool:
    """Return whether an option was set: typed, by the environment or by the config file."""
    value, is_default = ctx.params[name], ctx.get_parameter_source(name) is ParameterSource.DEFAULT
    return not (is_default or value is None or value is False or value == ())


def _is_from_file(ctx: click.Context, parameter: click.Parameter) -> bool:
    return ctx.get_parameter_source(parameter.name or "") is ParameterSource.DEFAULT_MAP


def option_origin(flag: str, ctx: click.Context | None = None) -> str:
    """Return the origin of an option for errors: its flag, or the config file and the key.

    ctx: the context of the command; by default the running command.
    """
    ctx = ctx or click.get_current_context(silent=True)  # None in another thread
    name = flag[2:].replace("-", "_")
    is_from_file = ctx and ctx.get_parameter_source(name) is ParameterSource.DEFAULT_MAP
    return str(ctx.meta[_ORIGINS][flag[2:]]) if ctx and is_from_file else flag


def given_on_command_line(name: str) -> bool:
    """Return whether an option of the running command was given on the command line."""
    source = click.get_current_context().get_parameter_source(name)
    return source is ParameterSource.COMMANDLINE


def config_file() -> str | None:
    """Return the config file to read: $NBSPAM_CONFIG, else the user's file if it exists.

    Returns None if $NBSPAM_CONFIG is empty, or if the user may not search the folder: a daemon may
    run with the HOME of root.
    """
    path = config_path()
    if path is None or "NBSPAM_CONFIG" in os.environ:
        return path
    try:
        os.stat(path)  # noqa: PTH116 (importing pathlib would slow one message)
    except OSError:
        return None
    return path


def config_path() -> str | None:
    """Return the path of the config file, which may not exist; None without a config file."""
    path = os.environ.get("NBSPAM_CONFIG")
    if path is not None:
        return path or None
    folder = user_folder("XDG_CONFIG_HOME", ".config")
    return None if folder is None else f"{folder}/nbspam/config.toml"


class LazyGroup(click.Group):
    """Commands that are imported when they are called."""

    def __init__(self, *args: Any, files: Mapping[str, tuple[str, str]], **kwargs: Any) -> None:
        """files: name -> module and function of the command (`train:train`), and its help."""
        super().__init__(*args, **kwargs)
        # click suggests these names for a misspelt command.
        self.commands.update(dict.fromkeys(files))  # type: ignore[arg-type]
        self._files = files

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._files)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._files:
            return None
        module, _, name = self._files[cmd_name][0].partition(":")
        found: click.Command = getattr(importlib.import_module(f"nbspam.cli.{module}"), name)
        return found

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except EOFError as end:  # click would report an interrupt
            raise UnexpectedEndError(end) from end

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self._files.items()])
