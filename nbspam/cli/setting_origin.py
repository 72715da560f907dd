"""Where in the config file an error of a command comes from."""

import re

import click
from click.core import ParameterSource

from nbspam.cli.config_file import config_file
from nbspam.cli.settings import read_settings, settings_of
from nbspam.errors import OptionError


def with_origin(error: OptionError, context: click.Context) -> OptionError:
    """Return an error of a command with the lines of the file that it is of, if it is of one."""
    path = config_file()
    if path is None:
        return error
    settings, sentence = read_settings(path), _letters(error.problem)
    places = [
        f"{settings.where(setting.table, setting.key)}: {setting.key}"
        for name, setting in settings_of(settings, context).items()
        if context.get_parameter_source(name) is ParameterSource.DEFAULT_MAP
        and _letters(setting.key) in sentence
    ]
    if not places:
        return error
    return OptionError(f"{', '.join(places)}: {error.problem}", error.remedy, **error.values)


def _letters(text: str) -> str:
    """Return a text's letters: `spam cut-off` and `--spam-cutoff` are one."""
    return re.sub("[^a-z]", "", text.lower())
