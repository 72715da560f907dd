"""`nbspam config`, and how the config file is read: TOML, for what describes a set-up.

    model = "~/mail.json"      # for every command that has the option
    [serve]                    # any option of nbspam serve
    socket = "nbspam.sock"
    [mail.home]                # a place of `accounts.py`

Keys are the long names of options.  Paths may begin with ~; others are relative to the file.
Loaded only where there is a config file.
"""

import json
import os
import stat
import tomllib
from typing import Any

import click
from click.core import ParameterSource

from nbspam.cli.command import Command, Option, command, config_file, config_place, option
from nbspam.cli.options import FORM
from nbspam.errors import OptionError, one_line

KEYS = ("base", "jobs", "log", "model")  # a test holds them to the options
_TABLES = ("mail", "serve")
_LARGEST = 1 << 20  # bytes of a config file
_ORIGINS = {ParameterSource.ENVIRONMENT: "environment", ParameterSource.DEFAULT_MAP: "file"}


def read_config(path: str) -> dict[str, Any]:
    """Return what a config file says; raises OptionError for unknown keys and tables."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # not to wait at a named pipe
        with os.fdopen(handle, "rb") as file:
            _check_file(path, os.fstat(handle))
            document = tomllib.load(file)
    except OSError as error:
        raise OptionError(
            f"{path}: cannot read the config file ({error.strerror}); fix it, name another with"
            " NBSPAM_CONFIG, or set NBSPAM_CONFIG to an empty string for none"
        ) from error
    except (ValueError, RecursionError) as error:  # of TOML, or not UTF-8
        raise OptionError(f"{path}: invalid TOML ({error}); correct it") from error
    for key, value in document.items():
        if key not in KEYS + _TABLES or (key in _TABLES) != isinstance(value, dict):
            raise OptionError(
                f"{path}: {key}: cannot be set in the config file; its keys are {', '.join(KEYS)},"
                " and its tables [serve] and [mail.NAME]; use other options on the command line"
            )
    return document


def _check_file(path: str, status: os.stat_result) -> None:
    """Raise OptionError for no regular file, or one that somebody else may have written.

    Group-writable is usual where each user has a group.  NBSPAM_CONFIG names any owner's.
    """
    if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST:
        raise OptionError(
            f"{path}: a config file is a regular file of at most 1 MiB; name such a file with"
            " NBSPAM_CONFIG, or set NBSPAM_CONFIG to an empty string for none"
        )
    if status.st_mode & stat.S_IWOTH:
        raise OptionError(f"{path}: everybody can write to this config file; run chmod o-w on it")
    if "NBSPAM_CONFIG" not in os.environ and status.st_uid not in (0, os.geteuid()):
        raise OptionError(
            f"{path}: this config file belongs to another user; name it with NBSPAM_CONFIG to use"
            " it, or set NBSPAM_CONFIG to an empty string for none"
        )


def defaults(path: str, command: Command) -> dict[str, Any]:
    """Return what a file sets of a command's options, by parameter; raises OptionError."""
    document = read_config(path)
    table = document.get(command.table, {})
    options = {option.flag[2:]: option for option in command.options()}
    for key in table:
        if key not in options:
            raise OptionError(
                f"{path}: [{command.table}] {key}: unknown option; see nbspam {command.table}"
                " --help"
            )
    values = {key: document[key] for key in KEYS if key in document and key in options} | table
    return {
        options[key].name or key: _checked(path, key, options[key], value)
        for key, value in values.items()
    }


def _checked(path: str, key: str, option: Option, value: object) -> object:
    """Return a value as click is to convert it; raises OptionError for one of a wrong kind."""
    if isinstance(value, bool) != option.is_flag or not isinstance(value, str | int | float):
        kind = "true or false" if option.is_flag else "text in quotes, or a number"
        raise OptionError(f"{path}: {key}: must be {kind}")
    is_path = isinstance(option.type, click.Path)
    return absolute_path(str(value), path) if is_path else value


def absolute_path(path: str, config: str) -> str:
    """Return a path with ~ expanded; a relative one is in the folder of the config file."""
    path = os.path.expanduser(path)  # noqa: PTH111 (no pathlib for one message)
    return os.path.join(os.path.dirname(os.path.abspath(config)), path)  # noqa: PTH100, PTH118, PTH120


@command("config")
def config(
    *,
    path: bool = option(
        "--path", is_flag=True, under="Output", help="Print only the name of the config file."
    ),
    form: str = FORM,
) -> None:
    """Print the settings of the config file and the environment, and check them.

    The config file sets what describes a set-up.  It is $NBSPAM_CONFIG (empty for none), else
    ~/.config/nbspam/config.toml.

    \b
      model = "~/mail.json"       # for every command with --model; also base, jobs and log
      [serve]                     # any option of nbspam serve
      socket = "nbspam.sock"
      [mail.home]                 # a place of nbspam mail (docs/mail.md)
      maildir = "~/Maildir"

    The command line takes precedence, then the environment, then the file.

    \b
    Examples:
      nbspam config
      NBSPAM_CONFIG= nbspam classify message.eml
    """
    if path:
        click.echo(config_place() or "")
        return
    from nbspam.cli.accounts import configured_places
    from nbspam.cli.program import nbspam

    file = config_file()
    rows: list[tuple[str, Any, str]] = []
    for name in ("train", "serve"):  # which have all options that the file can set
        group = click.Context(nbspam, info_name="nbspam")
        subcommand = nbspam.get_command(group, name)
        assert isinstance(subcommand, Command)
        context = subcommand.make_context(name, [], group)  # raises for a wrong value
        for parameter in subcommand.options():
            key, field = parameter.flag[2:], parameter.name or ""
            origin = _ORIGINS.get(context.get_parameter_source(field) or ParameterSource.DEFAULT)
            if origin and not (parameter.in_file and name == "serve"):
                value = context.params[field]
                value = value if isinstance(value, bool | int | float) else str(value)
                rows.append((key if parameter.in_file else f"[serve] {key}", value, origin))
    rows += [(f"[mail.{name}]", place.name, "file") for name, place in configured_places().items()]
    if form == "json":
        settings = [dict(zip(("option", "value", "from"), row, strict=True)) for row in rows]
        click.echo(json.dumps({"file": file, "settings": settings}))
        return
    click.echo(f"config file: {one_line(file or 'none')}")
    for key, value, origin in rows:
        click.echo(f"{key} = {one_line(json.dumps(value, ensure_ascii=False))} ({origin})")
