"""What a worker beside the first runs: it answers ordinary messages, and hands on everything else.

It shares the listening sockets with the first worker.  A request that is there when its client is
accepted is answered; every other client goes, with what was read of him, through a channel to the
first worker: who is slow, who sends a large message or one to learn.  So all that must be bounded
is in one process, whatever the number of workers.
"""

import json
import select
import signal
import socket
import sys
from array import array
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple

from nbspam.errors import NbspamError, one_line
from nbspam.filter import CutOffsOf
from nbspam.scoring.verdict import CutOffs
from nbspam.serving.at_once import AtOnceReception
from nbspam.serving.current import CurrentModel, Keeping, Models, Say
from nbspam.serving.limits import Limits
from nbspam.serving.log import Log, write_to_stderr
from nbspam.serving.memory import give_back_freed_memory
from nbspam.serving.metrics import Metrics
from nbspam.serving.responder import Responder, Response
from nbspam.serving.user_files import UserFiles
from nbspam.serving.user_models import UserModels
from nbspam.store.index import IndexLayout
from nbspam.store.metadata import Metadata

# The first byte of a record about a client: what was read of his request follows, or the rest of
# his reply.
BEGUN, REST = b"b", b"r"
RECORD_LIMIT = 1 << 17  # bytes


class WorkerSettings(NamedTuple):
    """What every worker is to do."""

    model: Path
    cut_offs: tuple[float | None, ...]  # spam, ham, and what a lost ham costs; None: the model's
    limits: Limits
    x_spam: bool = False
    log: str | None = None
    users: Path | None = None  # where their models are
    n_workers: int = 1
    open_models: int = 100  # of users, of all workers together
    base: Path | None = None  # that `model` is read through, as those of users are through it

    def as_json(self) -> str:
        """Return the settings as JSON."""
        paths = {name: str(path) for name, path in self._asdict().items() if isinstance(path, Path)}
        return json.dumps(self._asdict() | paths)

    @classmethod
    def of_json(cls, text: bytes) -> "WorkerSettings":
        """Return the settings that are JSON."""
        fields = json.loads(text)
        fields["limits"] = Limits(*fields["limits"])
        paths = {name: Path(fields[name]) for name in ("model", "users", "base") if fields[name]}
        return cls(**fields | paths)

    def cut_offs_of(self, metadata: Metadata) -> CutOffs:
        """Return the cut-offs for a model; raises OptionError."""
        own = CutOffs.of_model(metadata)
        return own if len(metadata.settings.classes) > 2 else own.changed(*self.cut_offs)

    def models(
        self, say: Say, cut_offs: CutOffsOf | None = None, say_good: Say | None = None
    ) -> Models:
        """Open the models; raises NbspamError.  Workers divide the memory that one may take.

        cut_offs: of a model, if that is not `cut_offs_of`.  say_good: tells that the model can be
        used again; None for `say`.
        """
        cut_offs = cut_offs or self.cut_offs_of
        n, whole = self.n_workers, Keeping()
        layout = IndexLayout(in_memory=whole.layout.in_memory // n)
        # A worker's cache is of use for its own messages alone, so few workers have a whole one.
        words = min(whole.words, max(20_000, 4 * whole.words // n))
        keeping = Keeping(words, layout)
        if self.users is None and self.base is None:
            return CurrentModel(self.model, cut_offs, say, keeping, say_good)
        shared = self.base or self.model
        base = CurrentModel(shared, cut_offs, say, keeping, say_good, is_base=True)
        if self.users is None:
            return CurrentModel(self.model, cut_offs, say, keeping, say_good, base)
        return UserModels(base, UserFiles(self.users), cut_offs, max(1, self.open_models // n))


class _Worker:
    """Accepts and answers clients until the channel is closed."""

    def __init__(
        self,
        settings: WorkerSettings,
        control: socket.socket,
        clients: socket.socket,
        listeners: list[socket.socket],
    ) -> None:
        self._control, self._clients = control, clients
        self._log = Log(settings.log) if settings.log else None
        say = self._log.say if self._log else _say
        self._metrics = Metrics()
        self.models = settings.models(say)
        responder = Responder(self.models, settings.limits, None, say, settings.x_spam)
        self._at_once = AtOnceReception(
            responder, settings.limits, self._metrics, self._log, self._hand_on
        )
        self._listeners = {listener.fileno(): listener for listener in listeners}
        self._waiting: tuple[bytes, socket.socket] | None = None  # to be handed on
        self._poll = select.epoll()

    def run(self) -> None:
        self._poll.register(self._control, select.EPOLLIN)
        self._listen()
        while True:
            for handle, _ in self._poll.poll():
                if handle == self._control.fileno():
                    if not self._is_asked():
                        return
                elif handle == self._clients.fileno():
                    if self._waiting and self._send(*self._waiting):
                        self._waiting = None
                        self._poll.unregister(self._clients)
                        self._listen()
                elif not self._waiting:
                    self._accept(self._listeners[handle])

    def _listen(self) -> None:
        for handle in self._listeners:  # one of the workers that wait is woken, not all
            self._poll.register(handle, select.EPOLLIN | select.EPOLLEXCLUSIVE)

    def _accept(self, listener: socket.socket) -> None:
        try:
            connection, _ = listener.accept()
        except OSError:  # another worker was faster; or the first one will say what is wrong
            return
        connection.setblocking(False)
        self._at_once.serve(connection, True)

    def _hand_on(self, connection: socket.socket, begun: bytes, response: Response | None) -> None:
        record = BEGUN + begun
        if response is not None:
            self._at_once.note(response.entry, response.code)
            record = REST + response.reply
        if self._send(record, connection):
            return
        # The first worker has no place.  Until it has, this one accepts nobody either.
        self._waiting = record, connection
        for handle in self._listeners:
            self._poll.unregister(handle)
        self._poll.register(self._clients, select.EPOLLOUT)

    def _send(self, record: bytes, connection: socket.socket) -> bool:
        """Hand on a client; return False if that must wait."""
        handles = array("i", [connection.fileno()])
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, handles)]
        try:
            self._clients.sendmsg([record], rights, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:  # the first worker has gone: so does this one, with its next look
            pass
        connection.close()
        return True

    def _is_asked(self) -> bool:
        """Answer the first worker; return False when it wants nothing any more."""
        try:
            asked = self._control.recv(RECORD_LIMIT)
        except OSError:
            asked = b""
        if not asked and self._waiting:  # the first worker reads to the end
            record, connection = self._waiting
            with suppress(OSError):
                self._clients.settimeout(1)
                socket.send_fds(self._clients, [record], [connection.fileno()])
        dropped = self._log.n_dropped if self._log else 0
        with suppress(OSError):
            self._control.send(json.dumps(self._metrics.snapshot(dropped)).encode())
        return bool(asked)


def _say(sentence: str) -> None:
    with suppress(OSError, ValueError):
        write_to_stderr(f"nbspam: {one_line(sentence)}\n".encode())


def be_worker(control: int, clients: int, listeners: list[int]) -> None:
    """Be a worker until the first one wants nothing any more; with that one it ends in any case.

    control, clients, listeners: descriptors: of the channel for what the first worker asks, of that
    for clients who are handed on, and of the sockets.
    """
    # Signals to the group are the first worker's to obey.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    give_back_freed_memory()
    with ExitStack() as opened:
        ours, handed, *shared = (
            opened.enter_context(socket.socket(fileno=number))
            for number in (control, clients, *listeners)
        )
        settings = WorkerSettings.of_json(ours.recv(RECORD_LIMIT))
        try:
            worker = _Worker(settings, ours, handed, shared)
        except NbspamError as error:  # the first one goes on with the model that it has open
            _say(str(error))
            sys.exit(1)
        opened.callback(worker.models.close)
        worker.run()
