"""A command whose options are declared, and have their defaults in the user's config file."""

import inspect
from collections.abc import Callable
from typing import Any

import click
from click.core import ParameterSource

from nbspam.cli.declared import (
    MORE,
    SECTIONS,
    Declaration,
    Option,
    config_file,
    option,
    set_by_file,
)
from nbspam.cli.notes import NoTrace
from nbspam.errors import OptionError

LOGS = ["syslog", "stderr"]  # as nbspam.serving.log has them, which is not loaded here
_ABSENT = getattr(click.core, "UNSET", ())  # since click 8.3

_WHOLE = "nbspam.whole"  # of a context's `meta`: that all is shown


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
            text = "Log a line for each message to syslog or standard error."
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
        # click tries `-m` as a long option first, and loads difflib to suggest another: 1.5 ms.
        # Without these attributes, which are its own, it still does what it should.
        getattr(parser, "_long_opt", {}).update(getattr(parser, "_short_opt", {}))
        for each in self.options() if self._takes_settings else ():
            # So that the command line has the last word over a file.
            if each.is_bool_flag and not (each.secondary_opts or each.declared.typed):
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
                help_option = self.get_help_option(ctx)
                if not names & {"help_all", help_option.name if help_option else None}:
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
        """Write the text up to its form feed, or all of it."""
        if ctx.meta.get(_WHOLE):
            click.Command(self.name, help=whole_text(self)).format_help_text(ctx, formatter)
        else:
            super().format_help_text(ctx, formatter)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for heading, records in sections(self, ctx, bool(ctx.meta.get(_WHOLE))).items():
            with formatter.section(heading):
                formatter.write_dl(records)


def _show_whole(ctx: click.Context, parameter: click.Parameter, is_asked: bool) -> None:
    if is_asked and not ctx.resilient_parsing:
        ctx.meta[_WHOLE] = True
        click.echo(ctx.get_help(), color=ctx.color)
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
