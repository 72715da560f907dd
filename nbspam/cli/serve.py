"""`nbspam serve`."""

from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

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
from nbspam.serving.limits import Limits
from nbspam.serving.server import Server, serve
from nbspam.serving.sockets import name_of, tcp_sockets, unix_socket
from nbspam.serving.systemd import passed_sockets
from nbspam.serving.tell import LearnQueue, apply_requests

_DEFAULTS = Limits()


class ServeOptions(NamedTuple):
    """The command's options, named as click names them."""

    socket: Path | None
    socket_mode: int
    listen: str | None  # HOST:PORT
    allow_any_address: bool
    model: Path
    tell: bool
    x_spam: bool
    spam_cutoff: float | None
    ham_cutoff: float | None
    ham_cost: float | None
    max_size: int
    timeout: float
    connections: int
    verbose: bool
    quiet: bool


def _mode(ctx: click.Context, param: click.Parameter, value: str) -> int:
    """Return a file mode given in octal, as for chmod."""
    try:
        mode = int(value, 8)
    except ValueError:
        mode = -1
    if not 0 <= mode <= 0o777:
        raise OptionError(
            f"--socket-mode {value!r} is not a file mode; 0600 is for the owner only, 0660 for the"
            " group too"
        )
    return mode


@click.command("serve")
@click.option(
    "--socket",
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
    help="File mode of that socket; 0660 lets its group connect.",
)
@click.option("--listen", metavar="HOST:PORT", help="Listen on TCP; spamc's default port is 783.")
@click.option(
    "--allow-any-address",
    is_flag=True,
    help="Let --listen take an address that other machines can connect to.",
)
@model_option
@click.option("--tell", is_flag=True, help="Let clients teach the model (spamc -L).")
@click.option(
    "--x-spam",
    is_flag=True,
    help="Also write X-Spam-Flag, X-Spam-Level and X-Spam-Status, for recipes that look for them.",
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
    default=_DEFAULTS.timeout,
    show_default=True,
    metavar="SECONDS",
    help="Time for a client to send its request, and again to read the reply.",
)
@click.option(
    "--connections",
    type=click.IntRange(1),
    default=_DEFAULTS.connections,
    show_default=True,
    metavar="N",
    help="Serve at most N clients at a time; others wait.",
)
@click.option("-v", "--verbose", is_flag=True, help="Log each request.")
@quiet_option
def command(**values: Any) -> None:
    """Serve SpamAssassin's spamc, so that every program that calls it works with nbspam.

    It listens on a Unix socket, on TCP, or on the sockets that systemd passes, and speaks the spamd
    protocol: CHECK, SYMBOLS, REPORT, REPORT_IFSPAM, PROCESS, HEADERS, TELL, PING and SKIP.  Scores
    are on SpamAssassin's scale: 5.0 or more is spam, and a point is a nat of log-odds.

    The model stays open, and is reopened when its file is replaced.  SIGTERM and SIGINT stop the
    server once the current requests are answered.

    \b
    Examples:
      nbspam serve --socket ~/.nbspam.sock
      spamc -U ~/.nbspam.sock < message.eml
      nbspam serve --listen 127.0.0.1:7830 --tell
      spamc -p 7830 -L spam < message.eml
    """
    options = ServeOptions(**values)
    cut_offs = cut_offs_of(
        {name: values[name] for name in ("spam_cutoff", "ham_cutoff", "ham_cost")}
    )
    # The model first: without one there is no reason to listen.
    current = CurrentModel(options.model, cut_offs, _log)
    with current.use() as opened_model:
        tell_one_sided(options.model, opened_model.classifier.head)
    with ExitStack() as opened:
        opened.callback(current.close)
        listeners = passed_sockets()
        if options.socket is not None:
            listeners.append(opened.enter_context(unix_socket(options.socket, options.socket_mode)))
        if options.listen is not None:
            listeners += opened.enter_context(
                tcp_sockets(options.listen, options.allow_any_address)
            )
        if not listeners:
            raise OptionError(
                "there is no socket to listen on; name one with --socket PATH or --listen"
                " 127.0.0.1:783"
            )
        if not options.quiet:
            _log(f"serving {options.model} on {', '.join(map(name_of, listeners))}")
        limits = Limits(options.max_size, options.timeout, options.connections)
        queue = LearnQueue(partial(apply_requests, options.model)) if options.tell else None
        serve(
            Server(current, limits, queue, _log, options.verbose, options.x_spam),
            listeners,
        )


def _log(sentence: str) -> None:
    with suppress(OSError):  # a log that nobody reads must not stop the mail
        click.echo(f"nbspam: {sentence}", err=True)
