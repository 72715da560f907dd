"""A server of the spamd protocol: who is let in, for how long, and what happens at the end.

One process and one event loop.  A mail of ordinary size is scored in the loop itself, where a hop
to a thread and back would cost more than it saves; a large one goes to a thread, so that the loop
gets its turn every few milliseconds.  Learning has a thread of its own.
"""

import asyncio
import os
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple

from nbspam.errors import NbspamError
from nbspam.serving.answer import answer
from nbspam.serving.current import CurrentModel, OpenModel, Say
from nbspam.serving.spamd import (
    IO,
    LINE_LIMIT,
    PING,
    PONG,
    SKIP,
    SOFTWARE,
    TELL,
    TIMEOUT,
    RefusedError,
    Request,
    read_request,
    tell_reply,
)
from nbspam.serving.tell import Learner, LearnRequest

# Larger messages, and compressed ones, are looked at in a thread.
_SMALL = 32 << 10
_THREADS = 2  # for those; they share one interpreter, so more would only make each slower
# How long a thread may keep the interpreter while another wants it; Python's own is 5 ms, which
# the event loop would wait at each of the five or so turns that a request takes.
_TURN = 0.001
# While all places are taken, whoever has kept the server waiting for longer than this must go.
_GRACE = 2.0
_LOOK = 0.1  # seconds between looks for such clients
_DRAIN = 2.0  # seconds to read on after a refusal, for the client to get to reading the reply
_STOP = 10.0  # seconds that requests have to end when the server is stopped
_NO_DESCRIPTORS = 1.0  # seconds to wait when the system has no file descriptor left


class Limits(NamedTuple):
    """What one client, and all together, may take."""

    max_size: int = (
        32 << 20
    )  # bytes of a message, compressed or not; twice what the reader looks at
    seconds: float = 60.0  # for a client to send its request, and to take the reply
    connections: int = 64  # open at a time; more wait to be let in


class _Done(NamedTuple):
    reply: bytes
    said: str  # to the log
    in_time: bool = True


class Server:
    """Answers the clients of some listening sockets until it is told to stop."""

    def __init__(
        self,
        model: CurrentModel,
        limits: Limits,
        learner: Learner | None,
        say: Say,
        verbose: bool = False,
        x_spam: bool = False,
    ) -> None:
        """Answer with `model`.

        learner: None where TELL is not allowed.  say: to the log.  x_spam: whether messages get
        SpamAssassin's headers too.
        """
        self._model, self._limits = model, limits
        self._learner, self._say = learner, say
        self._verbose, self._x_spam = verbose, x_spam
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="large")
        self._open: dict[asyncio.Task[None], asyncio.StreamWriter | None] = {}
        # Those who wait for their client, longest first, and since when.
        self._waiting: dict[asyncio.Timeout, float] = {}
        self._listeners: list[socket.socket] = []
        self._paused = False
        self._next_look: asyncio.TimerHandle | None = None
        self._stopped = asyncio.Event()

    def stop(self) -> None:
        """Let nobody else in, and end when the requests at hand are answered."""
        self._stopped.set()

    async def run(self, listeners: list[socket.socket], ready: Callable[[], None]) -> None:
        """Serve until `stop`, then close the listeners; ready: called when it has begun."""
        sys.setswitchinterval(_TURN)
        self._listeners = listeners
        self._resume()
        ready()
        try:
            await self._stopped.wait()
        finally:
            await self._end()

    async def _end(self) -> None:
        loop = asyncio.get_running_loop()
        for listener in self._listeners:
            loop.remove_reader(listener)
            self._welcome(listener)  # who is at the door already
            listener.close()
        for patience in self._waiting:
            if not patience.expired():
                patience.reschedule(min(patience.when() or 0, loop.time() + _STOP))
        if self._open:
            await asyncio.wait(self._open, timeout=_STOP)
        for writer in self._open.values():
            if writer:
                writer.transport.abort()
        if self._open:  # what a thread is at takes no longer than a second or so
            await asyncio.wait(self._open)
        self._threads.shutdown()
        if self._learner:
            await self._learner.close()

    # -- places ---------------------------------------------------------------------------------

    def _resume(self) -> None:
        self._paused = False
        loop = asyncio.get_running_loop()
        for listener in self._listeners:
            loop.add_reader(listener, self._welcome, listener)

    def _pause(self) -> None:
        """Let newcomers wait where the system keeps them."""
        self._paused = True
        loop = asyncio.get_running_loop()
        for listener in self._listeners:
            loop.remove_reader(listener)

    def _welcome(self, listener: socket.socket) -> None:
        """Let in who has come, as long as there are places."""
        stopping = self._stopped.is_set()
        while stopping or len(self._open) < self._limits.connections:
            try:
                connection, _ = listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if not stopping:
                    self._say(f"nobody can be let in just now ({error.strerror}); raise ulimit -n")
                    self._pause()
                    asyncio.get_running_loop().call_later(_NO_DESCRIPTORS, self._leave, None)
                return
            connection.setblocking(False)
            task = asyncio.get_running_loop().create_task(self._serve(connection))
            self._open[task] = None
            task.add_done_callback(self._leave)
        if not self._paused:
            self._pause()
        if self._next_look is None:
            self._send_away()

    def _leave(self, task: "asyncio.Task[None] | None") -> None:
        if task is not None:
            self._open.pop(task, None)
        if self._paused and not self._stopped.is_set():
            self._resume()

    def _send_away(self) -> None:
        """End waits for clients that take too long while all places are taken; look again later.

        What a client has sent is read before any timer runs, so nobody is late because we are.
        """
        self._next_look = None
        if not self._paused or self._stopped.is_set():
            return
        loop = asyncio.get_running_loop()
        now = loop.time()
        for patience, since in self._waiting.items():
            if now - since >= _GRACE and not patience.expired():
                patience.reschedule(now)
        self._next_look = loop.call_later(_LOOK, self._send_away)

    @asynccontextmanager
    async def _patience(self) -> AsyncIterator[None]:
        """Bound the time that a client keeps the server waiting; raises TimeoutError."""
        loop = asyncio.get_running_loop()
        limit = _STOP if self._stopped.is_set() else self._limits.seconds
        async with asyncio.timeout(min(limit, self._limits.seconds)) as patience:
            self._waiting[patience] = loop.time()
            try:
                yield
            finally:
                del self._waiting[patience]

    # -- one connection -------------------------------------------------------------------------

    async def _serve(self, connection: socket.socket) -> None:
        """Answer one client; nothing it does raises."""
        started = time.perf_counter()
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=LINE_LIMIT, loop=loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        try:
            transport, _ = await loop.connect_accepted_socket(lambda: protocol, connection)
        except OSError:
            connection.close()
            return
        transport.set_write_buffer_limits(0)  # so that drain() waits for the last byte
        writer = asyncio.StreamWriter(transport, protocol, reader, loop)
        task = asyncio.current_task()
        assert task is not None
        self._open[task] = writer
        try:
            done = await self._reply(reader)
            async with self._patience():
                writer.write(done.reply)
                await writer.drain()
                writer.write_eof()
            if done.in_time and not reader.at_eof():
                await self._read_on(reader)
        except OSError:  # TimeoutError is one; it left, or does not take its reply
            transport.abort()
            done = _Done(b"", "the client left")
        finally:
            transport.close()
        if self._verbose:
            self._say(f"{done.said}, {time.perf_counter() - started:.3f} s")

    async def _read_on(self, reader: asyncio.StreamReader) -> None:
        """Read until the client has closed, for a while.

        Closing with something unread resets the connection, and the reply may be lost with it.
        """
        left = self._limits.max_size
        with suppress(TimeoutError):
            async with asyncio.timeout(_DRAIN):
                while left > 0 and (chunk := await reader.read(1 << 18)):
                    left -= len(chunk)

    async def _reply(self, reader: asyncio.StreamReader) -> "_Done":
        """Return the whole reply to one client; raises OSError when it has gone."""
        try:
            async with self._patience():
                request = await read_request(reader, self._limits.max_size, bool(self._learner))
            if request is None:
                return _Done(b"", "nothing was asked")
            if request.command in (PING, SKIP):
                return _Done(PONG if request.command == PING else b"", request.command)
            answered = self._tell if request.command == TELL else self._judge
            reply, said = await answered(request)
            return _Done(reply, f"{request.command} {said}, {len(request.body)} bytes")
        except RefusedError as error:
            refusal = error
        except TimeoutError:
            refusal = RefusedError(TIMEOUT, "(the request did not come in time)")
        except ConnectionError:
            raise
        except NbspamError as error:
            self._say(str(error))
            refusal = RefusedError(IO, str(error))
        except Exception as error:  # noqa: BLE001 (a mail that we fail on must not end the server)
            self._say(f"internal error, {type(error).__name__}: {error}; please report it")
            refusal = RefusedError(SOFTWARE, type(error).__name__)
        return _Done(refusal.line, f"refused: {refusal}", refusal.code != TIMEOUT)

    async def _judge(self, request: Request) -> tuple[bytes, str]:
        with self._model.use() as model:
            if len(request.body) <= _SMALL and not request.compressed:
                return self._answer(request, model)
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._threads, self._answer, request, model, True)

    def _answer(self, request: Request, model: OpenModel, alone: bool = False) -> tuple[bytes, str]:
        """Return the reply and what to say of it; alone: in a thread."""
        message = request.message(self._limits.max_size)
        classifier = model.fresh_classifier() if alone else model.classifier
        reply, judged = answer(request, message, classifier, model.cut_offs, self._x_spam)
        return reply, f"{judged.called} {judged.tenths / 10:.1f}"

    async def _tell(self, request: Request) -> tuple[bytes, str]:
        assert self._learner is not None
        changed = False
        if request.set_local or request.remove_local:
            is_spam = request.message_class == "spam" if request.set_local else None
            loop, size = asyncio.get_running_loop(), self._limits.max_size
            message = await loop.run_in_executor(self._threads, request.message, size)
            changed = await self._learner(LearnRequest(message, is_spam))
        return tell_reply(request, changed), "learned" if changed else "nothing new"


def serve(server: Callable[[], Server], listeners: list[socket.socket]) -> None:
    """Run a server until SIGTERM or SIGINT; tells systemd, if it asked to be told.

    server: makes it, within the event loop.
    """

    async def run() -> None:
        running = server()
        loop = asyncio.get_running_loop()

        def stop() -> None:
            notify("STOPPING=1")
            running.stop()

        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop)
        await running.run(listeners, lambda: notify("READY=1"))

    asyncio.run(run())


def notify(state: str) -> None:
    """Tell systemd (sd_notify(3)), if it asked to be told."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    address = address.replace("@", "\0", 1) if address.startswith("@") else address
    # Should it fail, systemd waits in vain, and says so.
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.sendto(state.encode(), address)
