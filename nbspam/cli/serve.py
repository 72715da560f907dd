"""`nbspam serve`."""

import logging
import socket
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import click

from nbspam.cli import notes
from nbspam.cli.command import LOG, command, flag, is_typed, option, place_of, rare_option, section
from nbspam.cli.options import BASE, FILE_PATH, MODEL, QUIET, Cutting, SenderOptions
from nbspam.errors import NbspamError, OptionError, needs_extra
from nbspam.reading.senders import SenderLists
from nbspam.serving import server as spamd_server
from nbspam.serving.clients import Limits
from nbspam.serving.log import STDERR, Entry, Log
from nbspam.serving.models import Opening, Setup, UserFiles
from nbspam.serving.sockets import check_place, name_of, passed_sockets, tcp_sockets, unix_socket
from nbspam.workers import all_cores

_DEFAULTS = Limits()
_CUT_OFFS = {
    "--spam-cutoff": "the spam cut-off",
    "--ham-cutoff": "the ham cut-off",
    "--ham-cost": "the ham cost",
}
_logger = logging.getLogger(__name__)


def _mode(ctx: click.Context, param: click.Parameter, value: str) -> int:
    """Return a file mode given in octal, as for chmod."""
    try:
        mode = int(value, 8)
    except ValueError:
        mode = -1
    if not 0 <= mode <= 0o777:
        raise OptionError(
            f"{place_of('--socket-mode', ctx)} {value!r} is not a file mode; 0600 is for the owner"
            " only, 0660 for the group too"
        )
    return mode


@section("Sockets")
class Listening(NamedTuple):
    """Where to listen."""

    socket: Path | None = option(metavar="PATH", type=FILE_PATH, help="Listen on a Unix socket.")
    socket_mode: int = option(
        metavar="MODE",
        needs="--socket --metrics",
        callback=_mode,
        default="0600",
        help="Set the file mode of that socket; 0660 lets its group connect.",
    )
    listen: str | None = option(
        metavar="HOST:PORT", help="Listen on TCP; spamc's default port is 783."
    )
    allow_any_address: bool = flag(
        seldom=True,
        needs="--listen --metrics",
        help="Let --listen and --metrics take an address that other machines can connect to.",
    )
    metrics: str | None = option(
        metavar="ADDRESS",
        help="Answer GET /metrics for Prometheus on HOST:PORT, or on a Unix socket (a path with a"
        " slash).",
    )


@section("Serving")
class Serving(NamedTuple):
    """What clients may do, and what the server writes."""

    tell: bool = flag(help="Let clients teach the model (spamc -L).")
    x_spam: bool = flag(
        seldom=True,
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
        type=LOG.type,
        help="Log a line for each message and each problem of the server to syslog or standard"
        " error.",
    )
    user_models: Path | None = option(
        metavar="DIR",
        type=FILE_PATH,
        help="Give each user (spamc -u) a model of their own, DIR/NAME.json, with that of --model"
        " as its base; a path with %u puts it elsewhere.",
    )
    max_users: int = rare_option(
        type=click.IntRange(0),
        default=_DEFAULTS.max_users,
        needs="--user-models",
        help="With --user-models, let no message create a model once N users have one.",
    )
    workers: int | None = option(
        type=click.IntRange(1, 256),
        help="Classify in N processes. [default: the number of processors]",
    )


def check(cutting: Cutting, listening: Listening, serving: Serving) -> None:
    """Raise OptionError for wrong cut-offs and places; names of hosts are not looked up."""
    try:
        cutting.check()
    except OptionError as error:
        for flag, words in _CUT_OFFS.items():  # the sentence begins with the one to correct
            if error.problem.startswith(words):
                raise OptionError(f"{place_of(flag)}: {error.problem}", error.remedy) from error
        raise
    if not serving.timeout > 0:  # it is not a number
        raise OptionError(f"{place_of('--timeout')} must be a number of seconds, such as 60")
    if serving.user_models is not None and is_typed("base"):
        raise OptionError(
            "with --user-models the model of --model is the base of every user's; leave out --base"
        )
    if listening.metrics and find_spec("prometheus_client") is None:
        raise NbspamError(needs_extra("--metrics", "prometheus_client", "serve"))
    for name, place in (("--listen", listening.listen), ("--metrics", listening.metrics)):
        if place is None or (name == "--metrics" and _is_path(place)):
            continue
        try:
            check_place(place, listening.allow_any_address)
        except OptionError as error:
            raise OptionError(f"{place_of(name)} {error.problem}", error.remedy) from error


def _is_path(address: str | None) -> bool:
    """Return whether --metrics names a Unix socket."""
    return address is not None and "/" in address


@command("serve", table="serve")
def serve(
    *,
    listening: Listening,
    model: Path = MODEL,
    base: str | None = BASE,
    cutting: Cutting,
    senders: SenderOptions,
    serving: Serving,
    quiet: bool = QUIET,
) -> None:
    """Answer SpamAssassin's spamc and every other program that speaks the spamd protocol.

    It listens on a Unix socket, on TCP, or on the sockets that systemd passes.  Scores are on
    SpamAssassin's scale: 5.0 or more is spam, and a point is a nat of log-odds.

    The model stays open.  It and the lists of senders are read again when their files change, or at
    SIGHUP.  SIGTERM and SIGINT stop the server once the current requests are answered.

    \b
    Examples:
      nbspam serve --socket ~/.nbspam.sock
      spamc -U ~/.nbspam.sock < message.eml
      nbspam serve --listen 127.0.0.1:7830 --tell
      spamc -p 7830 -L spam < message.eml
      nbspam serve --socket nbspam.sock --log syslog --metrics 127.0.0.1:9783
      journalctl -t nbspam --grep verdict=spam --since today
    """
    check(cutting, listening, serving)
    if is_typed("socket") != is_typed("listen"):  # the other place is the config file's
        if is_typed("socket"):
            listening = listening._replace(listen=None)
        else:
            listening = listening._replace(socket=None)
    log = Log(serving.log) if serving.log else None
    context = click.get_current_context()
    resource = context.with_resource
    # It handles what the server and this file log.
    logger, handler = logging.getLogger("nbspam"), _Handler(log, quiet)
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    context.call_on_close(partial(logger.removeHandler, handler))
    # The model first: without one there is no reason to listen.
    if base is not None and serving.user_models is not None:  # of the environment or a config file
        _logger.info(f"{base}: is not used; with --user-models {model} is the base")
        base = None
    limits = Limits(
        serving.max_size, serving.timeout, serving.connections, max_users=serving.max_users
    )
    lists = senders.lists()
    if lists is None and serving.user_models is not None:  # users may have lists
        lists = SenderLists((), (), senders.auth_host, senders.trust_from)
    setup = Setup(
        model,
        tuple(cutting),
        None if base is None else Path(base),
        None if serving.user_models is None else UserFiles.of(serving.user_models),
        serving.workers or all_cores(),
        limits=limits,
        can_tell=serving.tell,
        x_spam=serving.x_spam,
        senders=lists,
    )
    # This process classifies nothing: the workers have what is kept.
    current = setup.common(Opening(cutting.of, words=0, in_memory=0))
    opened_model = current.use()
    of_model = opened_model.filter.metadata
    notes.note_lacking(model, of_model)
    notes.note_older(opened_model.path, of_model, opened_model.filter.classifier.base, _logger.info)
    del opened_model

    def sockets(path: Path | str | None, address: str | None) -> list[socket.socket]:
        """Open those of a path and of an address."""
        listeners = []
        if path is not None:
            listeners.append(resource(unix_socket(Path(path), listening.socket_mode)))
        if address is not None:
            listeners += resource(tcp_sockets(address, listening.allow_any_address))
        return listeners

    listeners = [*passed_sockets(), *sockets(listening.socket, listening.listen)]
    if not listeners:
        raise OptionError(
            "there is no socket to listen on; name one with --socket PATH or --listen 127.0.0.1:783"
        )
    metrics = listening.metrics
    metrics_listeners = sockets(metrics, None) if _is_path(metrics) else sockets(None, metrics)

    def log_start() -> None:
        sentence = f"serving {model} on {', '.join(map(name_of, listeners))}"
        if metrics_listeners:
            sentence += f", and its metrics on {', '.join(map(name_of, metrics_listeners))}"
        _logger.info(sentence)
        if log and log.problem:
            _note(f"{log.problem}; lines are dropped until it works")

    server = spamd_server.Server(setup, current, log)
    spamd_server.serve(server, listeners, metrics_listeners, log_start)
    _logger.info(f"stopped serving {model}")


class _Handler(logging.Handler):
    """Writes what is about no message to the log, if there is one, and to standard error."""

    def __init__(self, log: Log | None, quiet: bool) -> None:
        super().__init__()
        self._log, self._quiet = log, quiet

    def emit(self, record: logging.LogRecord) -> None:
        sentence, is_warning = record.getMessage(), record.levelno >= logging.WARNING
        if self._log:
            note, error = ("", sentence) if is_warning else (sentence, "")
            self._log.write(Entry("serve", note=note, error=error))
            is_noted = not (is_warning or self._quiet or self._log.destination == STDERR)
        else:
            is_noted = is_warning or not self._quiet
        if is_noted:
            _note(sentence)


def _note(sentence: str) -> None:
    with suppress(OSError):  # standard error that is not read must not stop the mail
        notes.note(sentence)
