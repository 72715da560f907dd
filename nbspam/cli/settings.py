"""What the config file sets: TOML, for what describes a set-up.

    model = "~/mail.json"      # for every command that has the option
    [serve]                    # any option of nbspam serve
    socket = "nbspam.sock"
    [mail.home]                # a place of `accounts.py`

Keys are the long names of options.  Paths may begin with ~; others are relative to the file.
Loaded only where there is a config file.
"""

import os
import stat
import tomllib
from collections.abc import Mapping
from typing import Any

import click

from nbspam.errors import OptionError

KEYS = ("base", "jobs", "log", "model")  # a test holds them to the options
_TABLES = ("mail", "serve")
_LARGEST = 1 << 20  # bytes of a config file


def read_config(path: str) -> dict[str, Any]:
    """Return a config file's document; raises OptionError for unknown keys and tables."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a named pipe must not block
        try:
            _check_file(path, os.fstat(handle))
            document = tomllib.loads(os.read(handle, _LARGEST).decode())
        finally:
            os.close(handle)
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
    """Raise OptionError for a file that is not regular, or that another user can write.

    Group-writable files are usual where each user has a group.  NBSPAM_CONFIG may name any owner's.
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


def defaults(path: str, table: str, options: Mapping[str, click.Option]) -> dict[str, Any]:
    """Return click's default map of a command: parameter -> value; raises OptionError.

    table: of the command, if it has one.  options: by their keys.
    """
    document = read_config(path)
    values = document.get(table, {})
    for key in values:
        if key not in options:
            raise OptionError(f"{path}: [{table}] {key}: unknown option; see nbspam {table} --help")
    values = {key: document[key] for key in KEYS if key in document and key in options} | values
    return {
        options[key].name or key: _checked(path, key, options[key], value)
        for key, value in values.items()
    }


def _checked(path: str, key: str, option: click.Option, value: object) -> object:
    """Return a value for click to convert; raises OptionError for a wrong TOML type."""
    if isinstance(value, bool) != option.is_flag or not isinstance(value, str | int | float):
        kind = "true or false" if option.is_flag else "text in quotes, or a number"
        raise OptionError(f"{path}: {key}: must be {kind}")
    is_path = isinstance(option.type, click.Path)
    return absolute_path(str(value), path) if is_path else value


def absolute_path(path: str, config: str) -> str:
    """Return a path with ~ expanded; a relative one is in the folder of the config file."""
    path = os.path.expanduser(path)  # noqa: PTH111 (no pathlib for one message)
    return os.path.join(os.path.dirname(os.path.abspath(config)), path)  # noqa: PTH100, PTH118, PTH120
