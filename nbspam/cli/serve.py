"""`nbspam serve`."""

from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

import click

from nbspam.cli.options import (
    cut_off_options,
    cut_offs_of,
    model_option,
    quiet_option,
    tell_one_sided,
)
from nbspam.errors import OptionError
from nbspam.serving.current import CurrentModel
from nbspam.serving.server import Limits, Server, serve
from nbspam.serving.sockets import name_of, passed_by_systemd, tcp_sockets, unix_socket
from nbspam.serving.tell import Learner, obey

_DEFAULTS = Limits()


def _mode(ctx: click.Context, param: click.Parameter, value: str) -> int:
    """Take a file mode as chmod does."""
    try:
        mode = int(value, 8)
    except ValueError:
        mode = -1
    if not 0 <= mode <= 0o777:
        raise OptionError(
            f"--socket-mode {value!r} is no mode; 0600 is yours alone, 0660 a group's"
        )
    return mode


@click.command("serve")
@click.option(
    "--socket",
    "path",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Listen on a Unix socket.",
)
@click.option(
    "--socket-mode",
    callback=_mode,
    default="0600",
    show_default=True,
    metavar="MODE",
    help="Who may use that socket; 0660 adds its group.",
)
@click.option(
    "--listen", "place", metavar="HOST:PORT", help="Listen on TCP; spamc's own port is 783."
)
@click.option(
    "--allow-any-address",
    "any_address",
    is_flag=True,
    help="Let --listen take an address that other machines can reach.",
)
@model_option
@click.option("--tell", is_flag=True, help="Let clients teach the model (spamc -L).")
@click.option(
    "--x-spam",
    is_flag=True,
    help="Write X-Spam-Flag, X-Spam-Level and X-Spam-Status too, for recipes that look for them.",
)
@cut_off_options
@click.option(
    "--max-size",
    type=click.IntRange(1),
    default=_DEFAULTS.max_size,
    show_default=True,
    metavar="BYTES",
    help="Refuse larger messages.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    default=_DEFAULTS.seconds,
    show_default=True,
    metavar="SECONDS",
    help="How long a client may take to send its request, and to take the reply.",
)
@click.option(
    "--connections",
    type=click.IntRange(1),
    default=_DEFAULTS.connections,
    show_default=True,
    metavar="N",
    help="How many clients are let in at a time; more have to wait.",
)
@click.option("-v", "--verbose", is_flag=True, help="Write a line for each request.")
@quiet_option
def command(
    path: Path | None, place: str | None, model: Path, quiet: bool, verbose: bool, **options: Any
) -> None:
    """Answer SpamAssassin's spamc, so that all that calls it works with nbspam.

    It listens on a Unix socket, on TCP, or on the sockets that systemd passes, and speaks the
    protocol of spamd: CHECK, SYMBOLS, REPORT, REPORT_IFSPAM, PROCESS, HEADERS, TELL, PING and SKIP.
    Scores are on SpamAssassin's scale: spam from 5.0 on, a point for each nat of log-odds.

    The model stays open, and is opened anew when its file is replaced.  SIGTERM and SIGINT end the
    server once the requests at hand are answered.

    \b
    Examples:
      nbspam serve --socket ~/.nbspam.sock
      spamc -U ~/.nbspam.sock < message.eml
      nbspam serve --listen 127.0.0.1:7830 --tell
      spamc -p 7830 -L spam < message.eml
    """
    cut_offs = cut_offs_of(options)
    limits = Limits(options["max_size"], options["timeout"], options["connections"])
    # First the model: without one there is nothing to listen for.
    current = CurrentModel(model, cut_offs, _say)
    with current.use() as opened_model:
        tell_one_sided(model, opened_model.classifier.head)
    with ExitStack() as opened:
        opened.callback(current.close)
        listeners = passed_by_systemd()
        if path is not None:
            listeners.append(opened.enter_context(unix_socket(path, options["socket_mode"])))
        if place is not None:
            listeners += opened.enter_context(tcp_sockets(place, options["any_address"]))
        if not listeners:
            raise OptionError(
                "there is nowhere to listen; name it with --socket PATH or --listen 127.0.0.1:783"
            )
        if not quiet:
            _say(f"serving {model} on {', '.join(map(name_of, listeners))}")

        def server() -> Server:
            learner = Learner(partial(obey, model)) if options["tell"] else None
            return Server(current, limits, learner, _say, verbose, options["x_spam"])

        serve(server, listeners)


def _say(sentence: str) -> None:
    with suppress(OSError):  # nobody reads the log any more; the mail goes on
        click.echo(f"nbspam: {sentence}", err=True)
