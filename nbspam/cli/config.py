"""`nbspam config`."""

import json
import os
from typing import Any

import click

from nbspam.cli.configured import Command, configured, ways
from nbspam.cli.declared import argument, command_words, config_file, config_place, option, table_of
from nbspam.cli.notes import default_model
from nbspam.cli.options import FORM, Cutting
from nbspam.cli.settings import (
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
_JUDGING = ("classify", "explain", "eval", "serve", "mail-filter", "mail-watch")


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
    accounts: list[tuple[str, str, str]] = []
    if settings is not None:
        check_names(settings)
        if "mail" in settings.document:
            from nbspam.cli.accounts import places_of

            for label, account in places_of(settings).items():
                line = settings.where(f"mail.{label}", "").removeprefix(settings.path)[1:]
                where = f"line {line}" if line else "the file"
                accounts.append((f"[mail.{label}]", account.name, where))
    held = {table_of(c): _rows(settings, c) for c in command_contexts()}
    if settings is not None:
        check_values(settings)
    table = "-".join(words)
    if words and table not in held:
        raise OptionError(
            f"{' '.join(words)}: unknown command; use one of {', '.join(map(command_words, held))}"
        )
    rows = held[table] if words else _set_rows([row for each in held.values() for row in each])
    if form == "json":
        click.echo(json.dumps({"file": file, "settings": rows}))
        return
    place = config_place()
    shown = f"none ({one_line(place)} does not exist)" if place else "none"
    click.echo(f"config file: {one_line(file) if file else shown}")
    cells = [(row["option"], _shown(row["value"]), _origin(row)) for row in rows]
    cells += [] if words else accounts
    if not cells:
        click.echo("no option is set; every option has its built-in default")
        return
    cells.insert(0, ("option", "value", "from"))
    widths = [max(len(cell[i]) for cell in cells) for i in range(2)]
    for name, value, origin in cells:
        click.echo(f"{name.ljust(widths[0])}  {value.ljust(widths[1])}  {origin}")


def _rows(settings: Settings | None, context: click.Context) -> list[dict[str, Any]]:
    """Return what holds for each option of the context's command that a file may set, as in JSON.

    Raises OptionError.
    """
    found = {} if settings is None else settings_of(settings, context)
    rows = []
    for key, each in options_of(context).items():
        if each.declared.typed:
            continue
        row: dict[str, Any] = {"option": key, "value": None}
        row |= {"from": "default", "name": None, "line": None}
        variable = each.envvar if isinstance(each.envvar, str) else ""
        setting = found.get(each.name or key)
        if named := os.environ.get(variable):
            row |= {"value": named, "from": "environment", "name": variable}
        elif setting and settings:
            line = settings.where(setting.table, setting.key).removeprefix(settings.path)
            row |= {"value": setting.value, "from": "file", "name": setting.name}
            row["line"] = int(line[1:]) if line else None
        else:
            row["value"] = _built_in(each, context)
        rows.append(row)
    return rows


def _set_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for each value of the environment or the file, once, in this order.

    Keys outside tables come before those in tables, which stay in the order of commands.
    """
    found: list[dict[str, Any]] = []
    for row in rows:
        if row["from"] == "file":
            row = row | {"option": row["name"]}
        if row["from"] != "default" and row not in found:
            found.append(row)
    return sorted(found, key=lambda row: (row["from"] == "file", row["option"][0] == "["))


def _origin(row: dict[str, Any]) -> str:
    if row["from"] == "environment":
        return f"${row['name']}"
    if row["from"] == "default":
        return "default"
    line = "the file" if row["line"] is None else f"line {row['line']}"
    return line if row["name"] == row["option"] else f"{line}: {row['name']}"


def _shown(value: Any) -> str:
    """Return a value as it stands in a config file; a hyphen for none."""
    return "-" if value is None else one_line(json.dumps(value, ensure_ascii=False))


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
    """Raise OptionError for values that a command would refuse, together or with its model.

    Where no model is named and there is no home folder for one, a command would ask for it first.
    """
    try:
        has_model = bool(default_model())
    except OptionError:
        has_model = False
    for above in command_contexts():
        found, table, command = settings_of(settings, above), table_of(above), above.command
        assert isinstance(command, Command)
        for typed in ways(command) if found and ("model" in found or has_model) else ():
            context = command.make_context(above.info_name, list(typed), parent=above.parent)
            try:
                with context:
                    try:
                        command.checked(context)
                        if table in _JUDGING and not typed:
                            _check_with_model(context)
                    except OptionError as error:
                        raise with_origin(error, context) from error
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
    except (ModelError, OSError):
        return  # there is none, or the command says what is wrong with it
