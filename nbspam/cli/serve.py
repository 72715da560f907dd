"""`nbspam serve`."""

import socket
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple

import click

from nbspam.cli.command import LOG, command, flag, is_typed, option, section
from nbspam.cli.notes import note, note_lacking, note_older
from nbspam.cli.options import BASE, MODEL, QUIET, Cutting
from nbspam.errors import OptionError
from nbspam.names import is_url
from nbspam.serving import server as spamd_server
from nbspam.serving.clients import Limits
from nbspam.serving.log import STDERR, Entry, Log
from nbspam.serving.models import Opening, Setup, UserFiles
from nbspam.serving.sockets import check_place, name_of, passed_sockets, tcp_sockets, unix_socket
from nbspam.workers import all_cores

_DEFAULTS = Limits()


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


_PLACE = "listening"
_PATH = click.Path(path_type=Path, readable=False)


@section("Sockets")
class Listening(NamedTuple):
    """Where to listen."""

    socket: Path | None = option(
        "--socket", metavar="PATH", type=_PATH, help="Listen on a Unix socket."
    )
    socket_mode: int = option(
        "--socket-mode",
        metavar="MODE",
        type=click.STRING,
        callback=_mode,
        default="0600",
        help="Set the file mode of that socket; 0660 lets its group connect.",
    )
    listen: str | None = option(
        "--listen", metavar="HOST:PORT", help="Listen on TCP; spamc's default port is 783."
    )
    allow_any_address: bool = flag(
        "--allow-any-address",
        seldom=True,
        help="Let --listen and --metrics take an address that other machines can connect to.",
    )
    metrics: str | None = option(
        "--metrics",
        metavar="ADDRESS",
        help="Answer GET /metrics for Prometheus on HOST:PORT, or on a Unix socket (a path with a"
        " slash).",
    )


@section("Serving")
class Serving(NamedTuple):
    """What clients may do, and what the server writes."""

    tell: bool = flag("--tell", help="Let clients teach the model (spamc -L).")
    x_spam: bool = flag(
        "--x-spam",
        seldom=True,
        help="Also write X-Spam-Flag, X-Spam-Level and X-Spam-Status, for recipes that look for"
        " them.",
    )
    max_size: int = option(
        "--max-size",
        metavar="BYTES",
        type=click.IntRange(1),
        default=_DEFAULTS.max_size,
        seldom=True,
        help="Refuse larger messages.",
    )
    timeout: float = option(
        "--timeout",
        metavar="SECONDS",
        type=click.FloatRange(0, min_open=True),
        default=_DEFAULTS.timeout,
        seldom=True,
        help="Disconnect a client that takes longer to send its request, or to read the reply.",
    )
    connections: int = option(
        "--connections",
        metavar="N",
        type=click.IntRange(1),
        default=_DEFAULTS.connections,
        seldom=True,
        help="Serve at most N clients at a time; others wait.",
    )
    log: str | None = option(
        "--log",
        type=LOG.type,
        help="Log a line for each message and each problem of the server to syslog or standard"
        " error.",
    )
    user_models: Path | None = option(
        "--user-models",
        metavar="DIR",
        type=_PATH,
        help="Give each user (spamc -u) a model of their own, DIR/NAME.json, with that of --model"
        " as its base; a path with %u puts it elsewhere.",
    )
    max_users: int = option(
        "--max-users",
        metavar="N",
        type=click.IntRange(0),
        default=_DEFAULTS.max_users,
        seldom=True,
        help="With --user-models, let no message create a model once N users have one.",
    )
    workers: int | None = option(
        "--workers",
        metavar="N",
        type=click.IntRange(1, 256),
        help="Classify in N processes. [default: the number of processors]",
    )


def _check(
    cutting: Cutting, listening: Listening, serving: Serving, model: Path, base: str | None
) -> None:
    """Raise OptionError for wrong cut-offs, models and places; names of hosts are not looked up."""
    cutting.check()
    if serving.user_models is not None and is_typed("base"):
        raise OptionError(
            "with --user-models the model of --model is the base of every user's; leave out --base"
        )
    for name in filter(is_url, (model, base)):
        raise OptionError(
            f"{name}: the server reopens its model when the file changes, which it cannot see at a"
            " URL; copy the model to a file, and newer ones over it"
        )
    for name, place in (("--listen", listening.listen), ("--metrics", listening.metrics)):
        if place is None or (name == "--metrics" and _is_path(place)):
            continue
        try:
            check_place(place, listening.allow_any_address)
        except OptionError as error:
            raise OptionError(f"{name} {error.problem}", error.remedy) from error


def _is_path(address: str) -> bool:
    """Return whether --metrics names a Unix socket."""
    return "/" in address


@command("serve", table="serve")
def serve(
    *,
    listening: Listening,
    model: Path = MODEL,
    base: str | None = BASE,
    cutting: Cutting,
    serving: Serving,
    quiet: bool = QUIET,
) -> None:
    """Answer SpamAssassin's spamc and every other program that speaks the spamd protocol.

    It listens on a Unix socket, on TCP, or on the sockets that systemd passes.  Scores are on
    SpamAssassin's scale: 5.0 or more is spam, and a point is a nat of log-odds.

    The model stays open, and is reopened when its file is replaced, or at SIGHUP.  SIGTERM and
    SIGINT stop the server once the current requests are answered.

    \b
    Examples:
      nbspam serve --socket ~/.nbspam.sock
      spamc -U ~/.nbspam.sock < message.eml
      nbspam serve --listen 127.0.0.1:7830 --tell
      spamc -p 7830 -L spam < message.eml
      nbspam serve --socket nbspam.sock --log syslog --metrics 127.0.0.1:9783
      journalctl -t nbspam --grep verdict=spam --since today
    """
    _check(cutting, listening, serving, model, base)
    log = Log(serving.log) if serving.log else None
    say = log.say if log else _say

    def say_good(sentence: str) -> bool:
        """Say what is no error; return whether it could be written to the log."""
        if not (quiet or (log and log.destination == STDERR)):
            _say(sentence)
        return log is not None and log.write(Entry("serve", note=sentence))

    # The model first: without one there is no reason to listen.
    if base is not None and serving.user_models is not None:  # of the environment or a config file
        say_good(f"{base}: is not used; with --user-models {model} is the base")
        base = None
    limits = Limits(
        serving.max_size, serving.timeout, serving.connections, max_users=serving.max_users
    )
    setup = Setup(
        model,
        tuple(cutting),
        None if base is None else Path(base),
        None if serving.user_models is None else UserFiles.of(serving.user_models),
        serving.workers or all_cores(),
        limits=limits,
        can_tell=serving.tell,
        x_spam=serving.x_spam,
    )
    # This process judges nothing: the workers have what is kept.
    told = log.say_good if log else None
    current = setup.common(Opening(cutting.of, say, told, 0, 0))
    opened_model = current.use()
    of_model = opened_model.filter.metadata
    note_lacking(model, of_model)
    note_older(opened_model.path, of_model, opened_model.filter.classifier.base, say_good)
    del opened_model
    with ExitStack() as opened:

        def sockets(path: Path | str | None, address: str | None) -> list[socket.socket]:
            """Open those of a path and of an address."""
            found = []
            if path is not None:
                found.append(opened.enter_context(unix_socket(Path(path), listening.socket_mode)))
            if address is not None:
                tcp = tcp_sockets(address, listening.allow_any_address)
                found += opened.enter_context(tcp)
            return found

        listeners = [*passed_sockets(), *sockets(listening.socket, listening.listen)]
        if not listeners:
            raise OptionError(
                "there is no socket to listen on; name one with --socket PATH or --listen"
                " 127.0.0.1:783"
            )
        metrics = listening.metrics
        is_path = _is_path(metrics or "")
        metrics_listeners = sockets(metrics, None) if is_path else sockets(None, metrics)

        def say_start() -> None:
            sentence = f"serving {model} on {', '.join(map(name_of, listeners))}"
            if metrics_listeners:
                sentence += f", and its metrics on {', '.join(map(name_of, metrics_listeners))}"
            if not say_good(sentence) and log:
                _say(f"{log.problem}; lines are dropped until it works")

        server = spamd_server.Server(setup, current, say, log)
        spamd_server.serve(server, listeners, metrics_listeners, say_start)
        say_good(f"stopped serving {model}")


def _say(sentence: str) -> None:
    with suppress(OSError):  # a log that nobody reads must not stop the mail
        note(sentence)
