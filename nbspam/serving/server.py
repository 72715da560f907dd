"""A server of the spamd protocol: one process, one event loop; learning has a thread of its own."""

import asyncio
import signal
import socket
import sys
import time
from collections.abc import Callable

from nbspam.serving.client import Client
from nbspam.serving.connections import Connections
from nbspam.serving.current import CurrentModel, Say
from nbspam.serving.limits import Limits
from nbspam.serving.memory import give_back_freed_memory
from nbspam.serving.responder import Responder, Response
from nbspam.serving.systemd import notify
from nbspam.serving.tell import LearnQueue

# Seconds that a thread may keep the interpreter while another wants it.  With Python's own 5 ms
# the event loop would wait as long at each of the five or so turns that a request takes.
_SWITCH_INTERVAL = 0.001

# Of the seconds that clients have to finish when the server stops, the share for learning: those
# whose messages were not learned are told so in the rest.
_LEARNING_SHARE = 0.8


class Server:
    """Serves the clients of listening sockets until it is told to stop."""

    def __init__(
        self,
        model: CurrentModel,
        limits: Limits,
        queue: LearnQueue | None,
        say: Say,
        verbose: bool = False,
        x_spam: bool = False,
    ) -> None:
        """Answer with `model`.

        queue: None where TELL is not allowed.  say: writes to the log.  verbose: log each request.
        x_spam: whether messages get SpamAssassin's headers too.
        """
        self._responder = Responder(model, limits, queue, say, x_spam)
        self._model, self._limits = model, limits
        self._say, self._verbose = say, verbose
        self.connections = Connections(limits, self._serve, say)
        self._stopped = asyncio.Event()

    def stop(self) -> None:
        """Accept no new client, and end when the current requests are answered."""
        self._stopped.set()

    def reload(self) -> None:
        """Open the model's newest version now rather than at the next request."""
        self._model.refresh()

    async def run(self, listeners: list[socket.socket], ready: Callable[[], None]) -> None:
        """Serve until `stop`, then close the listeners; ready: called once it accepts clients."""
        sys.setswitchinterval(_SWITCH_INTERVAL)
        give_back_freed_memory()
        self.connections.listen(listeners)
        ready()
        try:
            await self._stopped.wait()
        finally:
            self._responder.hurry(_LEARNING_SHARE * self._limits.shutdown)
            await self.connections.close()
            await self._responder.close()

    async def _serve(self, client: Client) -> None:
        """Answer one client and close its connection; nothing that it does raises."""
        started = time.perf_counter()
        try:
            response = await self._response(client)
            await client.send(response.reply)
            client.free_room()
            if response.in_time:
                await client.linger()
            summary = response.summary
        except OSError as error:  # TimeoutError is one; it disconnected, or reads no reply
            _release(error)
            client.abort()
            summary = "the client disconnected"
        finally:
            client.close()
        if self._verbose:
            self._say(f"{summary}, {time.perf_counter() - started:.3f} s")

    async def _response(self, client: Client) -> Response:
        """Return the response to a client's request; raises ConnectionError when it has gone."""
        try:
            request = await client.request(self._responder.can_tell)
            return await self._responder.respond(request, client.parked)
        except ConnectionError:
            raise
        except Exception as error:  # noqa: BLE001 (a message that fails must not end the server)
            response = self._responder.refuse(error)
            _release(error)
            return response


def _release(error: BaseException | None) -> None:
    """Free what the frames of an error and of its causes hold: the message.

    A stream keeps the error that ended it, and the error's frames keep the stream, so the message
    would stay until the garbage collector runs, which is seldom.
    """
    while error:
        error.__traceback__ = None
        error = error.__cause__ or error.__context__


def serve(server: Server, listeners: list[socket.socket]) -> None:
    """Run a server until SIGTERM or SIGINT; tell systemd, if it asked for it.

    SIGHUP reopens the model, as `systemctl reload` and log rotation expect of a server; by default
    it would end the server and leave its socket behind.
    """

    async def run() -> None:
        loop = asyncio.get_running_loop()

        def stop() -> None:
            notify("STOPPING=1")
            server.stop()

        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop)
        loop.add_signal_handler(signal.SIGHUP, server.reload)
        await server.run(listeners, lambda: notify("READY=1"))

    asyncio.run(run())
