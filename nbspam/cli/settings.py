"""The config file: TOML with settings that describe an installation.

    model = "~/mail.json"      # for every command that has the option
    [serve]                    # any option of nbspam serve
    socket = "nbspam.sock"
    [mail.home]                # a place of `accounts.py`

Keys are the long names of options.  A path may start with ~; a relative path starts from the file's
folder.  This module is loaded only if there is a config file.
"""

import os
import stat
import tomllib
from collections.abc import Iterable, Mapping
from typing import Any

import click

from nbspam.errors import OptionError
from nbspam.names import LIST_FILE

# The configurable options; a test compares them with `command.Option.configurable`.
KEYS = ("allow", "auth-host", "base", "block", "jobs", "model", "trust-from")
_TABLES = ("mail", "serve")
_MAX_BYTES = 1 << 20


def read_config(path: str) -> dict[str, Any]:
    """Parse a config file; raises OptionError for unknown keys and tables."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a named pipe must not block
        try:
            _check_file(path, os.fstat(handle))
            document = tomllib.loads(os.read(handle, _MAX_BYTES).decode().removeprefix("\ufeff"))
        finally:
            os.close(handle)
    except OSError as error:
        raise OptionError(
            f"{path}: cannot read the config file ({error.strerror}); fix it, name another with"
            " NBSPAM_CONFIG, or set NBSPAM_CONFIG to an empty string to read no file"
        ) from error
    except UnicodeError as error:
        raise OptionError(f"{path}: is not UTF-8 ({error}); save it as UTF-8") from error
    except (ValueError, RecursionError) as error:
        raise OptionError(f"{path}: invalid TOML ({error}); correct it") from error
    for key, value in document.items():
        if problem := _problem(key, value):
            raise OptionError(f"{path}: {key}: {problem}")
    return document


def _problem(key: str, value: object) -> str:
    """Describe the problem with a key outside the tables; empty without a problem."""
    if key in _TABLES:
        heading = "[mail.NAME]" if key == "mail" else f"[{key}]"
        return "" if isinstance(value, dict) else f"is a table; write {heading} above its keys"
    if key in KEYS:
        return ""
    otherwise = (
        f"its keys are {', '.join(KEYS)}, and its tables [serve], for any option of nbspam serve,"
        " and [mail.NAME]; use other options on the command line"
    )
    return f"cannot be set here; {suggest_key(key, KEYS + _TABLES, otherwise)}"


def suggest_key(key: str, keys: Iterable[str], otherwise: str) -> str:
    """Return the remedy for an unknown key: a similar key, or else `otherwise`."""
    from difflib import get_close_matches  # for errors only

    close = get_close_matches(key.lower().replace("_", "-"), keys, 1, 0.75)
    return f"did you mean {close[0]}?" if close else otherwise


def _check_file(path: str, status: os.stat_result) -> None:
    """Raise OptionError for a file that is not regular, or that another user can write.

    A group may write the file, because on many systems each user has a group.  NBSPAM_CONFIG may
    name a file of any owner.
    """
    if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_BYTES:
        raise OptionError(
            f"{path}: a config file is a regular file of at most 1 MiB; name such a file with"
            " NBSPAM_CONFIG, or set NBSPAM_CONFIG to an empty string to read no file"
        )
    if status.st_mode & stat.S_IWOTH:
        raise OptionError(f"{path}: everybody can write to this config file; run chmod o-w on it")
    if "NBSPAM_CONFIG" not in os.environ and status.st_uid not in (0, os.geteuid()):
        raise OptionError(
            f"{path}: this config file belongs to another user; name it with NBSPAM_CONFIG to use"
            " it, or set NBSPAM_CONFIG to an empty string to read no file"
        )


def defaults(
    path: str, table: str, options: Mapping[str, click.Option]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return click's default map of a command, parameter -> value, and the origin of each key.

    table: the name of the command's table, or "".  options: key -> option.  Raises OptionError.
    """
    document = read_config(path)
    values = document.get(table, {})
    for key in values:
        if key not in options:
            remedy = suggest_key(key, options, f"see nbspam {table} --help")
            raise OptionError(f"{path}: [{table}] {key}: unknown option; {remedy}")
    values = {key: document[key] for key in KEYS if key in document and key in options} | values
    table_keys = document.get(table, {})
    places = {k: f"{path}: {f'[{table}] ' if k in table_keys else ''}{k}" for k in values}
    return {
        options[key].name or key: _check_value(places[key], path, options[key], value)
        for key, value in values.items()
    }, places


def _check_value(place: str, path: str, option: click.Option, value: object) -> Any:
    """Check a value that click converts; raises OptionError for a wrong type.

    A list is for an option that may be repeated.
    An integer is not accepted as text: TOML's 0o660 is the number 432, and as text, `432` is a file
    mode that lets everybody in.
    """
    if option.multiple and isinstance(value, list):
        return [text for item in value for text in _check_value(place, path, option, item)]
    kinds: tuple[type, ...] = (str,)
    kind = "text in quotes, and not empty"
    if option.is_flag:
        kinds, kind = (bool,), "true or false"
    elif isinstance(option.type, click.types.IntParamType):
        kinds, kind = (int,), "a whole number"
    elif isinstance(option.type, click.types.FloatParamType):
        kinds, kind = (int, float), "a number"
    if type(value) not in kinds or value == "":  # click would make 1 of 1.5
        raise OptionError(f"{place}: must be {kind}; correct it, or leave it out")
    if isinstance(value, str) and "\0" in value:
        raise OptionError(f"{place}: contains a NUL character; leave it out")
    if option.multiple:
        name = str(value).removeprefix(LIST_FILE)
        return [value if name == value else LIST_FILE + absolute_path(name, path)]
    return absolute_path(str(value), path) if isinstance(option.type, click.Path) else value


def absolute_path(path: str, config: str) -> str:
    """Expand ~ in a path; a relative path starts in the folder of the config file."""
    if "://" in path:  # the option refuses URLs
        return path
    path = os.path.expanduser(path)  # noqa: PTH111 (no pathlib for one message)
    return os.path.join(os.path.dirname(os.path.abspath(config)), path)  # noqa: PTH100, PTH118, PTH120
