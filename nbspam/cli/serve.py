"""`nbspam serve`."""

import logging
import socket
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

import click

from nbspam.cli import notes
from nbspam.cli.command import (
    command,
    flag,
    given_on_command_line,
    option,
    option_origin,
    rare_option,
    section,
)
from nbspam.cli.options import BASE, FILE_PATH, MODEL, QUIET, CutOffOptions, SenderOptions
from nbspam.errors import OptionError
from nbspam.reading.senders import SenderLists
from nbspam.serving.log import (
    ENTRIES,
    LOGGER,
    STDERR,
    SYSLOG_SOCKET,
    has_syslog,
    is_entry,
    make_handler,
)
from nbspam.serving.models import Limits, Models, ServerConfig, UserFiles
from nbspam.serving.prefork import Server
from nbspam.serving.sockets import (
    check_host_port,
    format_address,
    passed_sockets,
    tcp_sockets,
    unix_socket,
)
from nbspam.workers import all_cores

_DEFAULTS = Limits()
_CUT_OFFS = {
    "--spam-cutoff": "the spam cut-off",
    "--ham-cutoff": "the ham cut-off",
    "--ham-cost": "the ham cost",
}
_logger = logging.getLogger(LOGGER)


def _parse_mode(ctx: click.Context, param: click.Parameter, value: str) -> int:
    """Parse a file mode in octal, as for chmod."""
    try:
        mode = int(value, 8)
    except ValueError:
        mode = -1
    if not 0 <= mode <= 0o777:
        raise OptionError(
            f"{option_origin('--socket-mode', ctx)} {value!r} is not a file mode; 0600 is for the"
            " owner only, 0660 for the group too"
        )
    return mode


@section("Sockets")
class SocketOptions(NamedTuple):
    """The sockets to listen on."""

    socket: Path | None = option(metavar="PATH", type=FILE_PATH, help="Listen on a Unix socket.")
    socket_mode: int = option(
        metavar="MODE",
        requires="--socket --metrics",
        callback=_parse_mode,
        default="0600",
        help="Set the file mode of that socket; 0660 lets its group connect.",
    )
    listen: str | None = option(
        metavar="HOST:PORT", help="Listen on TCP; spamc's default port is 783."
    )
    allow_any_address: bool = flag(
        advanced=True,
        requires="--listen --metrics",
        help="Let --listen and --metrics take an address that other machines can connect to.",
    )
    metrics: str | None = option(
        metavar="ADDRESS",
        help="Answer GET /metrics for Prometheus on HOST:PORT, or on a Unix socket (a path with a"
        " slash).",
    )


@section("Serving")
class ServerOptions(NamedTuple):
    """Limits for clients, and the server's output."""

    tell: bool = flag(help="Let clients teach the model (spamc -L).")
    x_spam: bool = flag(
        advanced=True,
        help="Also write X-Spam-Flag, X-Spam-Level and X-Spam-Status, for recipes that look for"
        " them.",
    )
    max_size: int = rare_option(
        metavar="BYTES",
        type=click.IntRange(1),
        default=_DEFAULTS.max_size,
        help="Refuse larger messages.",
    )
    timeout: float = rare_option(
        metavar="SECONDS",
        type=click.FloatRange(0, min_open=True),
        default=_DEFAULTS.timeout,
        help="Disconnect a client that takes longer to send its request, or to read the reply.",
    )
    connections: int = rare_option(
        type=click.IntRange(1),
        default=_DEFAULTS.connections,
        help="Serve at most N clients at a time; others wait.",
    )
    log: str | None = option(
        type=click.Choice(["syslog", "stderr"]),
        help="Log a line for each message and each problem of the server to syslog or standard"
        " error.",
    )
    user_models: Path | None = option(
        metavar="DIR",
        type=FILE_PATH,
        help="Give each user (spamc -u) a model of their own, DIR/NAME.json, with the model"
        " of --model as its base; a path with %u puts the model elsewhere.",
    )
    max_users: int = rare_option(
        type=click.IntRange(0),
        default=_DEFAULTS.max_users,
        requires="--user-models",
        help="With --user-models, create no more models once N users have a model.",
    )
    workers: int | None = option(
        type=click.IntRange(1, 256),
        help="Classify in N processes. [default: the number of processors]",
    )


def check(
    cut_off_options: CutOffOptions, socket_options: SocketOptions, server_options: ServerOptions
) -> None:
    """Raise OptionError for wrong cut-offs and addresses; host names are not resolved."""
    try:
        cut_off_options.check()
    except OptionError as error:
        for flag, words in _CUT_OFFS.items():  # the error starts with the wrong cut-off
            if error.problem.startswith(words):
                raise OptionError(
                    f"{option_origin(flag)}: {error.problem}", error.remedy
                ) from error
        raise
    if not server_options.timeout > 0:  # a NaN, too, is refused
        raise OptionError(f"{option_origin('--timeout')} must be a number of seconds, such as 60")
    if server_options.user_models is not None and given_on_command_line("base"):
        raise OptionError(
            "with --user-models the model of --model is the base of every user's; leave out --base"
        )
    for name, place in (("--listen", socket_options.listen), ("--metrics", socket_options.metrics)):
        if place is None or (name == "--metrics" and _is_path(place)):
            continue
        try:
            check_host_port(place, socket_options.allow_any_address)
        except OptionError as error:
            raise OptionError(f"{option_origin(name)} {error.problem}", error.remedy) from error


def _is_path(address: str | None) -> bool:
    """Return whether the address of --metrics is a Unix socket."""
    return address is not None and "/" in address


@command("serve", table="serve")
def serve(
    *,
    socket_options: SocketOptions,
    model: Path = MODEL,
    base: str | None = BASE,
    cut_off_options: CutOffOptions,
    senders: SenderOptions,
    server_options: ServerOptions,
    quiet: bool = QUIET,
) -> None:
    """Answer SpamAssassin's spamc and every other program that speaks the spamd protocol.

    It listens on a Unix socket, on TCP, or on the sockets that systemd passes.  Scores are on
    SpamAssassin's scale: 5.0 or more is spam, and a point is a nat of log-odds.

    The model and the lists of senders are read again when their files change, or at SIGHUP.
    SIGTERM and SIGINT stop the server once the current requests are answered.

    \b
    Examples:
      nbspam serve --socket ~/.nbspam.sock
      spamc -U ~/.nbspam.sock < message.eml
      nbspam serve --listen 127.0.0.1:7830 --tell
      spamc -p 7830 -L spam < message.eml
      nbspam serve --socket nbspam.sock --log syslog --metrics 127.0.0.1:9783
      journalctl -t nbspam --grep verdict=spam --since today
    """
    check(cut_off_options, socket_options, server_options)
    if given_on_command_line("socket") != given_on_command_line(
        "listen"
    ):  # the other socket comes from the config file
        if given_on_command_line("socket"):
            socket_options = socket_options._replace(listen=None)
        else:
            socket_options = socket_options._replace(socket=None)
    context = click.get_current_context()
    resource = context.with_resource
    _log_to(server_options.log, quiet)
    # Fail without a model before opening a socket.
    # Here a base comes from the environment or a config file.
    if base is not None and server_options.user_models is not None:
        _logger.info(f"{base}: is not used; with --user-models {model} is the base")
        base = None
    limits = Limits(
        server_options.max_size,
        server_options.timeout,
        server_options.connections,
        max_users=server_options.max_users,
    )
    lists = senders.lists()
    if lists is None and server_options.user_models is not None:  # users may have lists
        lists = SenderLists((), (), senders.auth_host, senders.trust_from)
    config = ServerConfig(
        model,
        tuple(cut_off_options),
        None if base is None else Path(base),
        None
        if server_options.user_models is None
        else UserFiles.from_pattern(server_options.user_models),
        server_options.workers or all_cores(),
        limits=limits,
        can_tell=server_options.tell,
        x_spam=server_options.x_spam,
        senders=lists,
    )
    models = Models(config)
    version = models.common.version
    notes.note_one_class(model, version.metadata)
    notes.note_older(model, version.metadata, version.classifier.base, _logger.info)

    def sockets(path: Path | str | None, address: str | None) -> list[socket.socket]:
        """Open the Unix socket and the TCP sockets, if given."""
        listeners = []
        if path is not None:
            listeners.append(resource(unix_socket(Path(path), socket_options.socket_mode)))
        if address is not None:
            listeners += resource(tcp_sockets(address, socket_options.allow_any_address))
        return listeners

    listeners = [*passed_sockets(), *sockets(socket_options.socket, socket_options.listen)]
    if not listeners:
        raise OptionError(
            "there is no socket to listen on; name one with --socket PATH or --listen 127.0.0.1:783"
        )
    metrics = socket_options.metrics
    metrics_listeners = sockets(metrics, None) if _is_path(metrics) else sockets(None, metrics)

    def log_start() -> None:
        sentence = f"serving {model} on {', '.join(map(format_address, listeners))}"
        if metrics_listeners:
            sentence += f", and its metrics on {', '.join(map(format_address, metrics_listeners))}"
        _logger.info(sentence)

    Server(config, models, listeners, metrics_listeners).run(log_start)
    _logger.info(f"stopped serving {model}")


def _log_to(destination: str | None, quiet: bool) -> None:
    """Send the server's notes to standard error, and to a log together with its entries."""
    logger = logging.getLogger("nbspam")
    logger.setLevel(logging.INFO)
    handlers: list[logging.Handler] = []
    entries = logging.getLogger(ENTRIES)
    entries.setLevel(logging.INFO if destination else logging.CRITICAL)
    click.get_current_context().call_on_close(partial(entries.setLevel, logging.NOTSET))
    if destination is not None:
        handlers.append(make_handler(destination))
        if not has_syslog(handlers[0]):
            _note(f"{SYSLOG_SOCKET}: no syslog answers there; lines are dropped until one does")
    if destination != STDERR:
        handlers.append(_Console(logging.WARNING if quiet else logging.INFO))
    for handler in handlers:
        logger.addHandler(handler)
        click.get_current_context().call_on_close(partial(logger.removeHandler, handler))


class _Console(logging.Handler):
    """Writes sentences about the server to standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        if not is_entry(record):
            _note(record.getMessage())


def _note(sentence: str) -> None:
    with suppress(OSError):  # standard error that is not read must not stop the mail
        notes.note(sentence)
