"""A server of the spamd protocol: one process, one event loop; learning has a thread of its own."""

import asyncio
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial

from nbspam.serving.at_once import UNSENT, AtOnceReception
from nbspam.serving.client import Client
from nbspam.serving.connections import Connections
from nbspam.serving.current import Models, Say
from nbspam.serving.limits import Limits
from nbspam.serving.log import Entry, Log
from nbspam.serving.memory import give_back_freed_memory
from nbspam.serving.metrics import DISCONNECTED, Metrics, State
from nbspam.serving.metrics_page import MetricsPage
from nbspam.serving.responder import Responder, Response, entry_of, release
from nbspam.serving.spamd import TEMPORARY, RefusedError
from nbspam.serving.systemd import notify
from nbspam.serving.tell import Teacher
from nbspam.serving.worker_pool import WorkerPool, shared_loop

# Seconds that a thread may keep the interpreter while another wants it.  With Python's own 5 ms
# the event loop would wait as long at each of the five or so turns that a request takes.
_SWITCH_INTERVAL = 0.001

# Of the seconds in which the server stops, the share for learning: those whose messages were not
# learned are told so in the rest.  And the share for clients: the loop may be busy when the signal
# comes, with messages of all clients, and a thread with one when they have gone.
_LEARNING_SHARE, _CLIENTS_SHARE = 0.7, 0.8

_HUNG_UP = Entry("serve", error="the client disconnected before its request was complete")


class Server:
    """Serves the clients of listening sockets until it is told to stop."""

    def __init__(
        self,
        model: Models,
        limits: Limits,
        queue: Teacher | None,
        say: Say,
        log: Log | None = None,
        x_spam: bool = False,
        workers: WorkerPool | None = None,
    ) -> None:
        """Answer with `model`.

        queue: None where TELL is not allowed.  say: tells what is wrong with the server.
        log: gets a line for each message.  x_spam: whether messages get SpamAssassin's headers too.
        workers: those beside this process, which judge ordinary messages too.
        """
        self._responder = Responder(model, limits, queue, say, x_spam)
        self._model, self._limits, self._queue = model, limits, queue
        self._log = log
        self._metrics = Metrics()
        self._page = MetricsPage(self._metrics_text, say)
        self._at_once = AtOnceReception(self._responder, limits, self._metrics, log, self._hand_on)
        self.connections = Connections(limits, self._serve, say, self._at_once.serve)
        self._workers = workers
        self._stopped = asyncio.Event()

    @property
    def shares(self) -> bool:
        """Whether other processes accept clients too."""
        return self._workers is not None

    def stop(self) -> None:
        """Accept no new client, and end when the current requests are answered."""
        self._stopped.set()

    def reload(self) -> None:
        """Open the model's newest version now rather than at the next request."""
        self._model.refresh()

    async def run(
        self,
        listeners: list[socket.socket],
        ready: Callable[[], None],
        metrics_listeners: Sequence[socket.socket] = (),
    ) -> None:
        """Serve until `stop`, then close the listeners; ready: called once it accepts clients.

        metrics_listeners: where the metrics are asked for.
        """
        sys.setswitchinterval(_SWITCH_INTERVAL)
        give_back_freed_memory()
        self.connections.listen(listeners)
        self._page.listen(list(metrics_listeners))
        if self._workers:
            self._workers.start(listeners, self._adopt, self.connections)
        ready()
        try:
            await self._stopped.wait()
        finally:
            self._responder.hurry(_LEARNING_SHARE * self._limits.shutdown)
            ends = asyncio.get_running_loop().time() + _CLIENTS_SHARE * self._limits.shutdown
            if self._workers:
                await self._workers.stop()
            await self.connections.close(ends)
            await self._page.close()
            await self._responder.close()

    def _hand_on(self, connection: socket.socket, begun: bytes, response: Response | None) -> None:
        serve = self._serve if response is None else partial(self._serve, response=response)
        self.connections.adopt(connection, serve, begun)

    def _adopt(self, connection: socket.socket, begun: bytes, rest: bytes) -> None:
        """Go on with a client of another worker, which has counted what it has answered.

        begun: what was read of the request.  rest: of the reply.
        """
        if rest:
            self._hand_on(connection, b"", Response(rest, Entry()))
        else:
            self._hand_on(connection, begun, None)

    async def _serve(self, client: Client, response: Response | None = None) -> None:
        """Answer one client and close its connection; nothing that it does raises.

        response: if the request was read and answered, and a part of the reply is not sent.
        """
        entry, code = _HUNG_UP, DISCONNECTED
        try:
            if response is None:
                response = await self._response(client)
            entry = response.entry._replace(error=UNSENT)  # until all of the reply is sent
            await client.send(response.reply)
            client.free_room()
            entry, code = response.entry, response.code
            if response.in_time:
                await client.linger()
        except OSError as error:  # TimeoutError is one; it disconnected, or reads no reply
            release(error)
            client.abort()
        finally:
            client.close()
        self._at_once.note(entry, code)

    async def _response(self, client: Client) -> Response:
        """Return the response to a client's request; raises ConnectionError when it has gone."""
        entry, started = Entry(), time.perf_counter()
        try:
            request = await client.request(self._responder.can_tell)
            if self.connections.is_over:
                raise RefusedError(TEMPORARY, "(the server stops)")
            started = time.perf_counter()
            entry = entry_of(request, self._log is not None)
            response = await self._responder.respond(request, entry, client.parked)
        except ConnectionError:
            raise
        except Exception as error:  # noqa: BLE001 (a message that fails must not end the server)
            response = self._responder.refuse(error, entry)
            release(error)
        seconds = time.perf_counter() - started
        return response._replace(entry=response.entry._replace(seconds=seconds))

    async def _metrics_text(self) -> str:
        others = await self._workers.counts() if self._workers else []
        rooms = self.connections.rooms
        with self._model.use() as model:
            state = State(
                connections=self.connections.n_open,
                parked=self.connections.n_parked,
                judging_room=rooms.judging.used,
                learning_room=rooms.learning.used,
                learning=self._queue.n_waiting if self._queue else 0,
                classes=model.filter.classes,
                modified=model.modified,
                dropped_lines=self._log.n_dropped if self._log else 0,
                unusable=self._model.n_unusable,
            )
        return self._metrics.page(state, others)


def serve(
    server: Server,
    listeners: list[socket.socket],
    metrics_listeners: Sequence[socket.socket] = (),
    say_start: Callable[[], None] = lambda: None,
) -> None:
    """Run a server until SIGTERM or SIGINT; tell systemd, if it asked for it.

    metrics_listeners: where the metrics are asked for.  say_start: called once it accepts clients
    and heeds signals: what is said earlier may bring a SIGHUP that ends it.
    SIGHUP reopens the model, as `systemctl reload` and log rotation expect of a server; by default
    it would end the server and leave its socket behind.
    """

    async def run() -> None:
        loop = asyncio.get_running_loop()

        def stop() -> None:
            notify("STOPPING=1")
            server.stop()

        def ready() -> None:
            say_start()
            notify("READY=1")

        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop)
        loop.add_signal_handler(signal.SIGHUP, server.reload)
        await server.run(listeners, ready, metrics_listeners)

    with asyncio.Runner(loop_factory=lambda: shared_loop(listeners, server.shares)) as runner:
        runner.run(run())
