"""A command whose options have their defaults in the user's config file."""

import functools
from collections.abc import Callable
from typing import Any

import click

from nbspam.cli.config_file import config_file, key_of, reason_to_type, table_of
from nbspam.errors import OptionError

CHECKED = "has_checks"  # the attribute of a command's function whose options are checked
ONLY_CHECKED = "nbspam.only_checked"  # in a context's meta, where the checks alone are run
_ABSENT = getattr(click.core, "UNSET", ())  # since click 8.3


def checked(check: Callable[..., object]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator: the command checks its options first, and `nbspam config` only does that.

    So what a config file sets is refused by `nbspam config` as by the command.
    check: takes those of the command's parameters that it names; raises OptionError.
    """
    names = check.__code__.co_varnames[: check.__code__.co_argcount]

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def with_check(*args: Any, **values: Any) -> Any:
            check(**{name: values[name] for name in names})
            if click.get_current_context().meta.get(ONLY_CHECKED):
                return None
            return command(*args, **values)

        setattr(with_check, CHECKED, True)
        return with_check

    return decorate


class ConfiguredCommand(click.Command):
    """A command that takes from the config file what the command line leaves open.

    Each flag `--x` that a file may set has a `--no-x`, so that the command line has the last word.
    """

    def make_parser(self, ctx: click.Context) -> Any:  # noqa: D102
        parser = super().make_parser(ctx)
        table = table_of(ctx)
        for option in self.params:
            if not isinstance(option, click.Option) or not option.is_bool_flag:
                continue
            key = key_of(option)
            if not option.secondary_opts and reason_to_type(table, key) is None:
                parser.add_option(
                    option, [f"--no-{key}"], option.name, action="store_const", const=False
                )
        return parser

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:  # noqa: D102
        try:
            return self._parsed(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx  # click leaves it out where an option lacks its value
            raise

    def _parsed(self, ctx: click.Context, args: list[str]) -> list[str]:
        path = None if ctx.resilient_parsing else config_file()
        if path is not None:
            typed, _, _ = self.make_parser(ctx).parse_args(args=list(args))
            # A positional argument that is not there is () or a mark of click's.
            names = {name for name, value in typed.items() if value != () and value is not _ABSENT}
            help_option = self.get_help_option(ctx)
            if help_option is None or help_option.name not in names:
                from nbspam.cli.settings import defaults

                ctx.default_map = defaults(path, ctx, names)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: D102
        try:
            return super().invoke(ctx)
        except OptionError as error:
            if not ctx.default_map:
                raise
            from nbspam.cli.setting_origin import with_origin

            raise with_origin(error, ctx) from error
