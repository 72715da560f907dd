"""`nbspam config`."""

import json
import os
from typing import Any, NamedTuple

import click

from nbspam.cli.configured import Command, configured, ways
from nbspam.cli.declared import argument, command_words, config_file, config_place, option, table_of
from nbspam.cli.options import FORM, Cutting, default_model
from nbspam.cli.settings import (
    Setting,
    Settings,
    check_names,
    command_contexts,
    options_of,
    read_settings,
    settings_of,
    with_origin,
)
from nbspam.errors import ModelError, OptionError, one_line
from nbspam.store.lookup import Lookup

# Tables of commands that judge with the saved model, if nothing is typed.
_JUDGING = ("classify", "explain", "eval", "serve", "imap-filter", "imap-watch")


class HeldValue(NamedTuple):
    """What holds for an option, and where from; a built-in default has neither of the last two."""

    value: Any
    variable: str | None = None  # of the environment
    setting: Setting | None = None


@configured("config", takes_settings=False)
def command(
    *,
    words: tuple[str, ...] = argument("[COMMAND]", nargs=-1),
    path: bool = option("Print only the name of the config file.", under="Output"),
    form: str = FORM,
) -> None:
    """Print the settings of the config file, and where each comes from.

    The config file has defaults for the options of all commands.  It is $NBSPAM_CONFIG (empty for
    none), else ~/.config/nbspam/config.toml.  The file is checked, up to its first mistake: what a
    command would refuse, by itself or with its model, is an error here.  With a COMMAND it prints
    what holds for each of that command's options: the command line goes first, then the
    environment, the command's table, the keys outside tables, and the built-in default.

    \b
      model = "~/mail.json"       # for every command with --model
      [classify]                  # for nbspam classify
      spam-cutoff = 0.99          # as --spam-cutoff 0.99
      [model-prune]               # for nbspam model prune
      min-count = 2

    A flag is true or false; on the command line --no-FLAG turns off one that the file sets.  What a
    run reads, writes, overwrites or does (--spam, --output, --replace, --update …) is not set in a
    file, nor are --passthrough, --exit-code and --on-error of classify.

    \b
    Examples:
      nbspam config
      nbspam config classify
      nbspam config model prune --format json
      NBSPAM_CONFIG= nbspam classify message.eml
    """
    if path:
        click.echo(config_place() or "")
        return
    file = config_file()
    settings = None if file is None else read_settings(file)
    if settings is not None:
        check_names(settings)
        if "imap" in settings.document:
            from nbspam.cli.accounts import accounts_of

            accounts_of(settings)
    held = {table_of(c): values_of(settings, c) for c in command_contexts()}
    if settings is not None:
        check_values(settings)
    if words:
        table = "-".join(words)
        if table not in held:
            raise OptionError(
                f"{' '.join(words)}: there is no such command; it is one of"
                f" {', '.join(map(command_words, held))}"
            )
        rows = [_row(key, value, settings) for key, value in held[table].items()]
    else:
        rows = _set_rows(held, settings)
    if form == "json":
        click.echo(json.dumps({"file": file, "settings": rows}))
        return
    click.echo(_file_line(file))
    _print_table(rows)


def _file_line(file: str | None) -> str:
    if file is not None:
        return f"config file: {one_line(file)}"
    place = config_place()
    return f"config file: none ({one_line(place)} does not exist)" if place else "config file: none"


def _set_rows(
    held: dict[str, dict[str, HeldValue]], settings: Settings | None
) -> list[dict[str, Any]]:
    """Return a row for each value of the environment or the file, once, in this order."""
    found = [(key, value) for values in held.values() for key, value in values.items()]
    found = [(key, value) for key, value in found if value.variable or value.setting]
    # Top-level keys before tables; those of a table stay together in the order of commands.
    found.sort(
        key=lambda item: (
            item[1].setting is not None,
            bool(item[1].setting and item[1].setting.table),
        )
    )
    rows: list[dict[str, Any]] = []
    for key, value in found:
        row = _row(value.setting.name if value.setting else key, value, settings)
        rows += [] if row in rows else [row]
    return rows


def _row(option: str, value: HeldValue, settings: Settings | None) -> dict[str, Any]:
    """Return the JSON fields of a value."""
    row = {"option": option, "value": value.value, "from": "default", "name": None, "line": None}
    if value.variable is not None:
        row |= {"from": "environment", "name": value.variable}
    elif value.setting is not None and settings is not None:
        setting = value.setting
        line = settings.where(setting.table, setting.key).removeprefix(settings.path)
        row |= {"from": "file", "name": setting.name, "line": int(line[1:]) if line else None}
    return row


def _origin(row: dict[str, Any]) -> str:
    if row["from"] == "environment":
        return f"${row['name']}"
    if row["from"] == "default":
        return "default"
    line = "the file" if row["line"] is None else f"line {row['line']}"
    return line if row["name"] == row["option"] else f"{line}: {row['name']}"


def _print_table(rows: list[dict[str, Any]]) -> None:
    cells = [(row["option"], _shown(row["value"]), _origin(row)) for row in rows]
    if not cells:
        click.echo("nothing is set; every option has its built-in default")
        return
    cells.insert(0, ("option", "value", "from"))
    widths = [max(len(cell[i]) for cell in cells) for i in range(2)]
    for name, value, origin in cells:
        click.echo(f"{name.ljust(widths[0])}  {value.ljust(widths[1])}  {origin}")


def _shown(value: Any) -> str:
    """Return a value as it stands in a config file; a hyphen for none."""
    if value is None:
        return "-"
    return one_line(json.dumps(value, ensure_ascii=False))


def values_of(settings: Settings | None, context: click.Context) -> dict[str, HeldValue]:
    """Return what holds for each option of the context's command, as far as a file may set it.

    Raises OptionError.
    """
    found = {} if settings is None else settings_of(settings, context)
    values: dict[str, HeldValue] = {}
    for key, declared in options_of(context).items():
        if declared.declared.typed:
            continue
        variable = declared.envvar if isinstance(declared.envvar, str) else ""
        if named := os.environ.get(variable):
            values[key] = HeldValue(named, variable=variable)
        elif setting := found.get(declared.name or key):
            values[key] = HeldValue(setting.value, setting=setting)
        else:
            values[key] = HeldValue(_built_in(declared, context))
    return values


def _built_in(option: click.Option, context: click.Context) -> Any:
    """Return an option's default as JSON has it; None if it is another's, such as the model's."""
    try:
        default = option.get_default(context)
    except OptionError:  # there is no home folder for a model
        return None
    if option.is_flag:
        return default is True
    return default if isinstance(default, str | int | float) else None


# What a config file sets and a command would refuse, found by running the checks of all commands:
# each is called as on a command line that lets the file's values hold, up to the end of its own
# checks.  Nothing is read or written but the head of the model.


def check_values(settings: Settings) -> None:
    """Raise OptionError for values that a command would refuse, together or with its model."""
    for context in command_contexts():
        found = settings_of(settings, context)
        if found:
            _check_command(settings, context, "model" in found or _has_default_model())


def _check_command(settings: Settings, command: click.Context, has_model: bool) -> None:
    """Raise OptionError for values that one command would refuse.

    has_model: whether a model is named; without one and without a home folder nothing is checked,
    for the command would ask for a model first.
    """
    table, declared = table_of(command), command.command
    assert isinstance(declared, Command)
    for typed in ways(declared) if has_model else ():
        context = declared.make_context(command.info_name, list(typed), parent=command.parent)
        try:
            with context:
                try:
                    declared.checked(context)
                except OptionError as error:
                    raise with_origin(error, context) from error
                if table in _JUDGING and not typed:
                    _check_with_model(context)
        except OptionError as error:
            if error.problem.startswith(settings.path):
                raise
            words = " ".join(("nbspam", *table.split("-", 1), *typed))
            raise OptionError(
                f"{settings.path}: {words}: {error.problem}", error.remedy, **error.values
            ) from error


def _check_with_model(context: click.Context) -> None:
    """Raise OptionError for cut-offs that are wrong with the command's model, if there is one."""
    model = context.params["model"]
    names = ("spam_cutoff", "ham_cutoff", "ham_cost")
    spam, ham, cost = (context.params[name] for name in names)
    cutting = Cutting(spam, ham, cost, frozenset(names))
    try:
        with Lookup(model) as lookup:
            cutting.of(lookup.metadata)
    except OptionError as error:
        raise with_origin(error, context) from error
    except (ModelError, OSError):
        return  # there is none, or the command says what is wrong with it


def _has_default_model() -> bool:
    try:
        return bool(default_model())
    except OptionError:
        return False
