"""One option, one declaration: a default of a command's function, or of a field of its records.

    @section("Cut-offs")
    class Cutting(NamedTuple):
        spam_cutoff: float | None = option("Classify as spam when …", takes=PROBABILITY, …)

    @configured("classify", check=_check)
    def command(*, cutting: Cutting, quiet: bool = QUIET) -> int: …

A command has the options of the records that its parameters are annotated with, and of its own;
their defaults come from the user's config file.  All else follows from the declarations: click's
options, the sections of --help and of the manual, what --help leaves to --help-all, the checks
between options, what a config file may set and when its values hold, and the list of those that
take a value (`python -m nbspam.cli.manual` writes it into `nbspam_main.py`).
"""

import inspect
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

import click
from click.core import ParameterSource

from nbspam.cli.notes import NoTrace
from nbspam.errors import OptionError

# Why an option must be typed: a config file holds how commands work, not what one run does.
READS = "it says what a run reads"
WRITES = "it names a file that a run writes"
OVERWRITES = "it lets a run overwrite or count twice"
DECIDES = "it decides what a run does"
PROMISES = "it promises what happens if anything fails, a config file too"

MORE = "More"
# The sections of --help, in their order.
SECTIONS = (
    *("Sources", "Mail", "Sockets", "Serving", "Test"),
    *("Model", "Cut-offs", "Tables", "Output", MORE),
)
_GROUPS = ("imap", "model")  # commands that consist of others

LOGS = ["syslog", "journal", "stderr"]  # as nbspam.serving.log has them, which is not loaded here
_ABSENT = getattr(click.core, "UNSET", ())  # since click 8.3

_WHOLE = "nbspam.whole"  # of a context's `meta`: that all is shown

RecordType = TypeVar("RecordType", bound=type)
Options = TypeVar("Options", bound=Any)  # a NamedTuple of options


class Declaration(NamedTuple):
    """What `option` or `argument` says, whose parameters these are."""

    names: tuple[str, ...]  # none of an argument
    of_click: Mapping[str, Any]
    under: str = ""
    seldom: bool = False
    needs: str = ""
    enables: str = ""
    excludes: str = ""
    overrules: str = ""
    choice: str = ""
    formats: Collection[str] | None = None
    typed: str = ""
    example: str = ""

    def parameter(self, field: str, kind: object, section: str) -> click.Parameter:
        """Return what click takes; kind: the annotation; section: of the record."""
        if not self.names:
            argument = Argument([field], **self.of_click)
            argument.declared = self
            return argument
        words, kinds = dict(self.of_click), getattr(kind, "__args__", (kind,))  # `X | None`
        if words["type"] is None:
            words["type"] = next((each for each in kinds if each in (int, float)), None)
            words["multiple"] = ... in kinds
            if bool in kinds:  # False, given outright, would make the value optional
                words["is_flag"] = True
        long = () if self.names[-1][:2] == "--" else (f"--{field.replace('_', '-')}",)
        option = Option([field, *filter(None, self.names), *long], **words)
        option.declared, option.section = self, self.under or section
        return option


class Argument(click.Argument):
    """What a command is given without the name of an option."""

    declared: Declaration


class Option(click.Option):
    """An option that was declared."""

    declared: Declaration
    section: str

    @property
    def flag(self) -> str:
        """The long name, `--spam-cutoff`; without the hyphens it is the key in a config file."""
        return max(self.opts, key=len)

    @property
    def key(self) -> str:
        """The key in a config file."""
        return self.flag[2:]

    @property
    def can_be_negated(self) -> bool:
        """Whether there is a `--no-x`, so that the command line has the last word over a file."""
        return self.is_bool_flag and not (self.secondary_opts or self.declared.typed)


def option(
    text: str, typed_as: str = "", *, takes: "click.ParamType[Any] | None" = None, **beside: Any
) -> Any:
    """Declare an option; the annotation says if it is a flag, a number, or repeatable.

    text: its help.  takes: what its values are, if no bool, int, float or str.
    typed_as: `P`, what its value is called; before that other names than the parameter's, or beside
    it: `-m FILE`, `--format`.
    Beside these, what click takes, and:
    under: its section in --help, if not that of its record.
    seldom: whether only --help-all shows it.
    needs: the option without which it is refused, and its value in a config file does not hold.
    enables: options whose values in a config file hold only where one is typed that enables them.
    excludes: options (several in one string) that it cannot be used with.
    overrules: options whose value in a config file does not hold where this one is typed.
    choice: the name of what it decides; one that is typed, or in the command's own table, puts the
    others of the same choice in a file out of force.
    formats: those that it is of, if it has no use with others.
    typed: why it must be typed, if no config file may set it.
    example: a value to try, where others need this option and it takes one.
    """
    words = typed_as.split()
    own = {name: beside.pop(name) for name in Declaration._fields if name in beside}
    default = beside.get("default")
    of_click = {
        "help": text,
        "type": takes,
        "metavar": next((word for word in words if word[0] != "-"), None),
        "show_default": bool(default) and default is not True,
        **beside,
    }
    return Declaration(tuple(word for word in words if word[0] == "-") or ("",), of_click, **own)


def argument(metavar: str, overrules: str = "", **of_click: Any) -> Any:
    """Declare what is given without the name of an option; overrules: as of `option`."""
    return Declaration((), {"metavar": metavar, **of_click}, overrules=overrules)


def section(heading: str) -> Callable[[RecordType], RecordType]:
    """Return a decorator that puts the options of a record under a heading of --help."""

    def decorate(record: RecordType) -> RecordType:
        record.section = heading  # type: ignore[attr-defined]
        return record

    return decorate


def set_by_file(names: Iterable[str]) -> frozenset[str]:
    """Return those of the running command's parameters that a config file set."""
    context, file = click.get_current_context(), ParameterSource.DEFAULT_MAP
    return frozenset(name for name in names if context.get_parameter_source(name) is file)


def without_settings(record: Options) -> Options:
    """Return a record of options with None for those that a config file set."""
    unset: dict[str, Any] = dict.fromkeys(set_by_file(record._fields))
    replaced: Options = record._replace(**unset)
    return replaced


def is_typed(parameter: str) -> bool:
    """Return whether an option of the running command was given on the command line."""
    source = click.get_current_context().get_parameter_source(parameter)
    return source is ParameterSource.COMMANDLINE


def typed_without_use(form: str | None) -> Iterator[str]:
    """Yield the options that were typed, and are of other formats of the sources than this.

    What a config file sets is a default, for sources of any format, and is never refused.
    """
    context = click.get_current_context()
    for each in context.command.params:
        if not isinstance(each, Option) or each.declared.formats is None:
            continue
        name = each.name or ""
        if form not in each.declared.formats and is_typed(name) and context.params[name]:
            yield each.flag


# Commands


def configured(
    name: str,
    check: Callable[..., object] | None = None,
    logs: str = "",
    takes_settings: bool = True,
) -> "Callable[[Callable[..., Any]], Command]":
    """Return a decorator that makes a function a command.

    Its parameters are keywords: records of options, declarations, and `trace` if it logs.  One that
    stands alone before them takes the message that is to pass.
    check: takes those of its parameters that it names; raises OptionError for what no declaration
    can say.  It runs before the command, and by itself for `nbspam config`.
    logs: what the lines of --log call what it does with a message.
    takes_settings: whether the config file has defaults for it.
    """
    return lambda function: Command(name, function, check, logs, takes_settings)


class Command(click.Command):
    """A command whose options are declared, and have their defaults in the user's config file."""

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        check: Callable[..., object] | None,
        logs: str,
        takes_settings: bool,
    ) -> None:
        plain: Any = inspect.unwrap(function)
        self._function, self._check, self._logs = function, check, logs
        self._takes_settings = takes_settings
        self._takes_passage = bool(plain.__code__.co_posonlyargcount)
        self._records: dict[str, Any] = {}  # parameter -> record
        params: list[click.Parameter] = []
        for field, kind in plain.__annotations__.items():
            own = (plain.__kwdefaults__ or {}).get(field)
            if isinstance(own, Declaration):
                params.append(own.parameter(field, kind, MORE))
            elif declared := getattr(kind, "_field_defaults", None):
                self._records[field] = kind
                heading = getattr(kind, "section", MORE)
                params += [
                    each.parameter(field, kind.__annotations__[field], heading)
                    for field, each in declared.items()
                    if isinstance(each, Declaration)
                ]
        if logs:
            text = "Log a line for each message to syslog, the systemd journal or standard error."
            log = option(text, takes=click.Choice(LOGS), seldom=True)
            params.append(log.parameter("log", str, MORE))
        if any(isinstance(each, Option) and each.declared.seldom for each in params):
            params.append(
                click.Option(
                    ["--help-all"],
                    is_flag=True,
                    is_eager=True,
                    expose_value=False,
                    callback=_show_whole,
                    help="Show all options, and more about the command.",
                )
            )
        super().__init__(name, params=params, help=function.__doc__)

    def make_parser(self, ctx: click.Context) -> Any:
        parser = super().make_parser(ctx)
        for each in self.options():
            if self._takes_settings and each.can_be_negated:
                words = [f"--no-{each.key}"]
                parser.add_option(each, words, each.name, action="store_const", const=False)
        return parser

    def options(self) -> list[Option]:
        """Return those that were declared."""
        return [each for each in self.params if isinstance(each, Option)]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            is_asked = self._takes_settings and not ctx.resilient_parsing
            path = config_file() if is_asked else None
            if path is not None:
                typed, _, _ = self.make_parser(ctx).parse_args(args=list(args))
                # An argument that is not there is () or a mark of click's.
                names = {name for name, v in typed.items() if v != () and v is not _ABSENT}
                if not names & {"help", "help_all"}:
                    from nbspam.cli.settings import defaults

                    ctx.default_map = defaults(path, ctx, names)
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx  # click leaves it out where an option lacks its value
            raise

    def invoke(self, ctx: click.Context) -> Any:
        try:
            if self._logs and (log := ctx.params["log"]) is not None:
                from nbspam.cli.tracing import Trace

                with Trace(self._logs, log) as trace:  # which logs what the checks refuse, too
                    return self._called(ctx, trace)
            return self._called(ctx, NoTrace())
        except OptionError as error:
            if not ctx.default_map:
                raise
            from nbspam.cli.settings import with_origin

            raise with_origin(error, ctx) from error

    def _called(self, ctx: click.Context, trace: NoTrace) -> Any:
        values = self.checked(ctx)
        if self._logs:
            values["trace"] = trace
        return self._function(*([ctx.obj] if self._takes_passage else []), **values)

    def checked(self, ctx: click.Context) -> dict[str, Any]:
        """Return the arguments of the command's function; raises OptionError."""
        values = dict(ctx.params)
        if self._logs:
            del values["log"]
        for name, record in self._records.items():
            fields = record._field_defaults.items()
            own = {n: values.pop(n) for n, each in fields if isinstance(each, Declaration)}
            if "from_file" in record._fields:
                own["from_file"] = set_by_file(own)
            values[name] = record(**own)
        given = {o.flag: o.declared for o in self.options() if _is_given(ctx, o.name or "")}
        for flag, declared in given.items():
            if declared.needs and declared.needs not in given:
                raise OptionError(f"{flag} needs {declared.needs}; add that, or leave out {flag}")
            for other in declared.excludes.split():
                if other in given and other != flag:
                    raise OptionError(
                        f"{flag} and {other} cannot be used together; leave one of them out"
                    )
        if self._check is not None:
            code = self._check.__code__
            names = code.co_varnames[: code.co_argcount]
            self._check(**{name: values[name] for name in names})
        return values

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if not ctx.meta.get(_WHOLE):
            super().format_help_text(ctx, formatter)  # up to the form feed
            return
        with formatter.indentation():
            formatter.write_paragraph()
            formatter.write_text(whole_text(self))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for heading, records in sections(self, ctx, bool(ctx.meta.get(_WHOLE))).items():
            with formatter.section(heading):
                formatter.write_dl(records)

    def whole_help(self, ctx: click.Context) -> str:
        """Return the help with all options."""
        ctx.meta[_WHOLE] = True
        return self.get_help(ctx)


def _show_whole(ctx: click.Context, parameter: click.Parameter, is_asked: bool) -> None:
    if is_asked and not ctx.resilient_parsing:
        assert isinstance(ctx.command, Command)
        click.echo(ctx.command.whole_help(ctx), color=ctx.color)
        ctx.exit()


def whole_text(of: click.Command) -> str:
    """Return the whole help text of a command; --help shows it up to a form feed."""
    return inspect.cleandoc((of.help or "").replace("\f", ""))


def sections(
    of: click.Command, ctx: click.Context, whole: bool = True
) -> dict[str, list[tuple[str, str]]]:
    """Return heading -> (option, help), in their order; without `whole` those used often."""
    found: dict[str, list[tuple[str, str]]] = {heading: [] for heading in SECTIONS}
    for each in of.get_params(ctx):
        is_shown = whole or not (isinstance(each, Option) and each.declared.seldom)
        if isinstance(each, click.Option) and is_shown and (record := each.get_help_record(ctx)):
            found[getattr(each, "section", MORE)].append(record)
    return {heading: records for heading, records in found.items() if records}


def _is_given(ctx: click.Context, name: str) -> bool:
    """Return whether an option has more than its built-in default, wherever that is from."""
    value, is_default = ctx.params[name], ctx.get_parameter_source(name) is ParameterSource.DEFAULT
    return not (is_default or value is None or value is False or value == ())


def ways(of: Command) -> list[tuple[str, ...]]:
    """Return what may be typed beside a config file, so that each value holds in some way."""
    needed = {each.declared.needs for each in of.options()}
    arguments = [
        word
        for each in of.params
        if each.required
        for word in ([each.flag, "-"] if isinstance(each, Option) else ["-"])
    ]
    typed = [
        (each.flag, *filter(None, [each.declared.example]))
        for each in of.options()
        if each.declared.enables or each.flag in needed
    ]
    return [tuple(arguments), *((*each, *arguments) for each in typed)]


# The config file, as far as one message needs it: where it is, and when its values hold


def config_file() -> str | None:
    """Return the config file to read: $NBSPAM_CONFIG, else the user's if there is one.

    An empty $NBSPAM_CONFIG is for none.  A folder that cannot be searched has none: a daemon may
    have been started with the HOME of root.
    """
    path = config_place()
    if path is None or "NBSPAM_CONFIG" in os.environ:
        return path
    try:
        os.stat(path)  # noqa: PTH116 (no pathlib for one message)
    except OSError:
        return None
    return path


def config_place() -> str | None:
    """Return where the config file is, or would be; None for none.

    On macOS, too, it is in ~/.config, where users of git, uv or ruff look for what they edit.
    """
    named = os.environ.get("NBSPAM_CONFIG")
    if named is not None:
        return named or None
    folder = os.environ.get("XDG_CONFIG_HOME", "")
    if not folder.startswith("/"):  # a relative one is to be ignored, says its specification
        home = os.path.expanduser("~").rstrip("/")  # noqa: PTH111
        if home.startswith("~"):  # there is none
            return None
        folder = f"{home}/.config"
    return f"{folder.rstrip('/')}/nbspam/config.toml"


def table_of(context: click.Context) -> str:
    """Return the table of a command: `classify`, `model-prune`."""
    return context.command_path.removeprefix("nbspam ").replace(" ", "-")


def command_words(table: str) -> str:
    """Return a command as it is typed, by its table: `classify`, `model prune`."""
    first, hyphen, rest = table.partition("-")
    return f"{first} {rest}" if hyphen and first in _GROUPS else table


def holds(each: Option, of: click.Command, typed: Iterable[str]) -> bool:
    """Return whether a config file's value holds for an option of a command.

    typed: the parameters that are typed.  A default must not make a command fail that is right
    without it.
    """
    names, flag, rules = set(typed), each.flag, each.declared
    others = [p for p in of.params if isinstance(p, Option | Argument) and p.name in names]
    flags = {other.flag for other in others if isinstance(other, Option)}
    ways = {
        p.flag for p in of.params if isinstance(p, Option) and flag in p.declared.enables.split()
    }
    ways |= set(filter(None, [rules.needs]))
    if (ways and not ways & flags) or flags & set(rules.excludes.split()):
        return False
    return not any(
        flag in f"{other.declared.excludes} {other.declared.overrules}".split()
        or (rules.choice and rules.choice == other.declared.choice)
        for other in others
    )
