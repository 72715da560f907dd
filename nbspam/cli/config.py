"""`nbspam config`."""

import json
from collections.abc import Sequence
from typing import Any

import click
from click.core import ParameterSource

from nbspam.cli import accounts, notes, options
from nbspam.cli.command import Command, command, config_file, config_path, flag
from nbspam.cli.settings import read_config
from nbspam.errors import one_line

_ORIGINS = {ParameterSource.ENVIRONMENT: "environment", ParameterSource.DEFAULT_MAP: "file"}


@command("config")
def config(
    *, path: bool = flag(help="Print only the name of the config file."), form: str = options.FORM
) -> None:
    """Print the settings of the config file and the environment, and check them.

    The config file has the settings that describe an installation.  The file is $NBSPAM_CONFIG
    (empty: no file), else ~/.config/nbspam/config.toml.

    \b
      model = "~/mail.json"   # for all commands; also base, jobs, senders
      [serve]                 # any option of nbspam serve
      socket = "nbspam.sock"
      [mail.home]             # a place of nbspam mail (docs/mail.md)
      maildir = "~/Maildir"

    The command line takes precedence, then the environment, then the file.

    \b
    Examples:
      nbspam config
      NBSPAM_CONFIG= nbspam classify message.eml
    """
    if path:
        click.echo(config_path() or "")
        return
    from nbspam.cli.program import nbspam

    file = config_file()
    table = read_config(file).get("serve", {}) if file else {}
    rows: list[tuple[str, Any, str]] = []
    places = accounts.configured_places()
    hosts = [place.auth_host for place in places.values()]
    for name in ("classify", "serve"):  # these two have all configurable options
        group = click.Context(nbspam, info_name="nbspam")
        subcommand = nbspam.get_command(group, name)
        assert isinstance(subcommand, Command)
        context = subcommand.make_context(name, [], group)  # raises for a wrong value
        values = subcommand.arguments(context)
        if name == "classify":
            senders, common = values["senders"], context
        elif table:
            from nbspam.cli.serve import check

            with context:
                values["senders"].lists()  # raises OptionError, as `check` does
                check(values["cut_off_options"], values["socket_options"], values["server_options"])
        for parameter in subcommand.options():
            key, field = parameter.flag[2:], parameter.name or ""
            origin = _ORIGINS.get(context.get_parameter_source(field) or ParameterSource.DEFAULT)
            if origin and (key in table if name == "serve" else parameter.configurable):
                value = context.params[field]
                if field == "socket_mode":
                    value = f"{value:04o}"  # octal, as in the file
                value = value if isinstance(value, bool | int | float | tuple) else str(value)
                rows.append((f"[serve] {key}" if name == "serve" else key, value, origin))
    with common:
        _check_senders(senders, hosts)
    rows += [(f"[mail.{name}]", place.name, "file") for name, place in places.items()]
    if form == "json":
        settings = [dict(zip(("option", "value", "from"), row, strict=True)) for row in rows]
        click.echo(json.dumps({"file": file, "settings": settings}))
        return
    click.echo(f"config file: {one_line(file or 'none')}")
    for key, value, origin in rows:
        click.echo(f"{key} = {one_line(json.dumps(value, ensure_ascii=False))} ({origin})")


def _check_senders(senders: options.SenderOptions, hosts: Sequence[str | None]) -> None:
    """Raise OptionError for lists of senders that a command cannot use.

    hosts: the auth-host of each place of mail.  If only places have an auth-host, print a note.
    """
    for host in hosts or [None]:
        senders.lists(host)
    if senders.allow and not (senders.auth_host or senders.trust_from):
        notes.note(
            "allow: only nbspam mail can use it, by the auth-host of its places; classify, explain"
            " and serve fail until auth-host is also set above the tables"
        )
