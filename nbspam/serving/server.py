"""A worker of the server: one event loop that reads requests, classifies and replies.

Each worker accepts clients of the same listening sockets, and classifies the messages that it
reads.  A large message is read only when the worker has a place for it, and is classified in a
thread, so that small messages need not wait.  Messages to learn go to `teaching.py`.
"""

import asyncio
import logging
import socket
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress

from nbspam.errors import LockedError, NbspamError
from nbspam.filter import Filter
from nbspam.reading import header_fields
from nbspam.serving import answer, sockets, spamd, teaching
from nbspam.serving.log import ENTRIES, LOGGER, UNCHANGED, LogEntry
from nbspam.serving.metrics import Metrics, http_reply
from nbspam.serving.models import Models, ServerConfig
from nbspam.serving.spamd import LARGE, PING, SKIP, TELL, RefusedError, Request

_logger = logging.getLogger(LOGGER)

_MIN_PLACES = 8  # each worker has at least this many places for clients
_BUFFER = 64 << 10  # bytes read at a time from a refused client
_RETRY_SECONDS = 1.0  # seconds to wait after the system refused to accept a client
_DRAIN_SECONDS = 2.0  # seconds to read on after the reply, so that the client can read the reply
# Shares of the seconds in which the server stops.  Learning ends first, because clients must still
# get the reply that a message was not learned.
_LEARNING_SHARE, _CLIENTS_SHARE = 0.7, 0.8
_HTTP_TIMEOUT = 5.0  # seconds for a request of Prometheus
_HTTP_LINES = 64  # lines of such a request; Prometheus sends seven

_UNSENT = "the client disconnected before the reply"
_HUNG_UP = LogEntry("serve", error="the client disconnected before its request was complete")

_FAILURES: tuple[tuple[type[Exception], int, str], ...] = (
    (TimeoutError, spamd.TIMEOUT, "(the request did not arrive in time)"),
    (MemoryError, spamd.TEMPORARY, "(it takes too much memory)"),
    (LockedError, spamd.TEMPORARY, ""),  # the wait for the lock was logged
    (NbspamError, spamd.UNUSABLE, ""),
)

# A reply, the log entry, and the code of a refusal or 0.
Reply = tuple[bytes, LogEntry, int]


class Worker:
    """Serves clients of the listening sockets until it is stopped."""

    def __init__(self, config: ServerConfig, models: Models, metrics: Metrics) -> None:
        self._config, self._limits, self._models = config, config.limits, models
        self._metrics, self._is_logged = (
            metrics,
            logging.getLogger(ENTRIES).isEnabledFor(logging.INFO),
        )
        self._teacher = teaching.Teacher(config.limits)
        self._large = asyncio.Semaphore(config.limits.large)
        # the number of free places
        self._places = max(_MIN_PLACES, config.limits.connections // config.n_workers)
        self._listeners: Sequence[socket.socket] = ()  # the sockets from which clients are accepted
        self._clients: set[asyncio.Task[None]] = set()

    async def run(
        self,
        listeners: Sequence[socket.socket],
        metrics_listeners: Sequence[socket.socket],
        stop: asyncio.Event,
    ) -> None:
        """Serve clients until `stop` is set; then answer the connected and the waiting clients."""
        self._listeners = listeners
        self._start_accepting()
        pages = [
            await asyncio.start_server(self._serve_page, sock=listener)
            for listener in metrics_listeners
        ]
        await stop.wait()
        self._teacher.deadline = time.monotonic() + _LEARNING_SHARE * self._limits.shutdown
        self._stop_accepting()
        self._listeners = ()
        for listener in listeners:
            with suppress(OSError):  # no client is left
                sockets.refuse_more(listener)
                for _ in range(sockets.BACKLOG):
                    self._begin(listener.accept()[0])
        if self._clients:
            seconds = _CLIENTS_SHARE * self._limits.shutdown
            _, late = await asyncio.wait(self._clients, timeout=seconds)
            for client in late:
                client.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        for page in pages:
            page.close()
        await self._teacher.finish()

    def _start_accepting(self) -> None:
        """Accept clients; the event loop's own `sock_accept` takes three more system calls each."""
        for listener in self._listeners:
            asyncio.get_running_loop().add_reader(listener, self._accept, listener)

    def _stop_accepting(self) -> None:
        """Leave clients in the system's queue."""
        for listener in self._listeners:
            asyncio.get_running_loop().remove_reader(listener)

    def _accept(self, listener: socket.socket) -> None:
        """Accept a client if it still waits; taking the last place stops accepting."""
        try:
            connection = listener.accept()[0]
        except (BlockingIOError, ConnectionAbortedError):
            return
        except OSError as error:  # no file descriptor is left, or no memory
            _logger.warning(f"cannot accept connections ({error.strerror}); raise ulimit -n")
            self._stop_accepting()
            asyncio.get_running_loop().call_later(_RETRY_SECONDS, self._start_accepting)
            return
        self._places -= 1
        if self._places <= 0:
            self._stop_accepting()
        self._begin(connection, holds_place=True)

    def _release_place(self) -> None:
        self._places += 1
        if self._places == 1:
            self._start_accepting()

    def _begin(self, connection: socket.socket, holds_place: bool = False) -> None:
        connection.setblocking(False)
        task = asyncio.create_task(self._serve(connection, holds_place))
        self._clients.add(task)
        task.add_done_callback(self._clients.discard)

    # One client

    async def _serve(self, connection: socket.socket, holds_place: bool) -> None:
        """Answer one client; raises no error, whatever the client does."""
        client, entry, code = spamd.Client(connection), _HUNG_UP, spamd.DISCONNECTED
        loop = asyncio.get_running_loop()
        self._metrics.add("connections", 1)
        try:
            # such as TimeoutError: the client disconnected, or does not read the reply
            with suppress(OSError):
                reply, answered, answered_code = await self._answered(client)
                # this error is logged unless the whole reply is sent
                entry = answered._replace(error=_UNSENT)
                async with asyncio.timeout(self._limits.timeout):
                    await loop.sock_sendall(connection, reply)
                entry, code = answered, answered_code
                # spamc waits for this end of the stream; shutting down may fail if the client has
                # closed.
                connection.shutdown(socket.SHUT_WR)
            if holds_place:  # a client that is only drained needs no place
                self._release_place()
                holds_place = False
            self._metrics.count(entry, code)
            if entry.action:
                entry.log()
            # the client may have more to send
            if code not in (0, spamd.TIMEOUT, spamd.DISCONNECTED):
                with suppress(OSError):
                    async with asyncio.timeout(_DRAIN_SECONDS):
                        while await loop.sock_recv(connection, _BUFFER):
                            pass
        finally:
            if holds_place:
                self._release_place()
            connection.close()
            self._metrics.add("connections", -1)

    async def _answered(self, client: spamd.Client) -> Reply:
        """Read and answer a client's request; raises ConnectionError when the client has gone."""
        entry, started, max_bytes = LogEntry(), time.perf_counter(), self._limits.max_size
        try:
            async with asyncio.timeout(self._limits.timeout):
                head = await spamd.read_head(client, max_bytes, self._config.can_tell)
                if head is None:
                    return b"", entry, 0
                request, length = head
                body = b""
                if request.command not in (PING, SKIP) and (length or 0) <= LARGE:
                    body = await spamd.read_body(client, length, LARGE + 1)
            request = request._replace(body=body)
            is_large = request.is_large or (length or 0) > LARGE
            async with self._place_for_large() if is_large else nullcontext():
                if (length or len(body)) > LARGE:
                    async with asyncio.timeout(self._limits.timeout):
                        body += await spamd.read_body(client, length, max_bytes + 1, len(body))
                    if len(body) > max_bytes:
                        raise spamd.too_large_error("the message", max_bytes)
                    request = request._replace(body=body)
                started = time.perf_counter()
                entry = self._entry(request)
                if request.command != TELL:
                    reply, entry, code = await self._answer(request, entry)
                else:
                    lesson = await self._lesson(request)
            if request.command == TELL:  # a message to learn holds no place while it waits
                reply, entry, code = await self._teach(request, entry, lesson)
        except ConnectionError:
            raise
        except Exception as error:  # noqa: BLE001 (a message that fails must not end the server)
            reply, entry, code = self._refused(error, entry)
            # the frames of an error keep the message in memory
            error.__traceback__ = error.__context__ = None
        return reply, entry._replace(seconds=time.perf_counter() - started), code

    @asynccontextmanager
    async def _place_for_large(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._limits.timeout):
                await self._large.acquire()
        except TimeoutError:
            reason = "(too many large messages at once)"
            raise RefusedError(spamd.TEMPORARY, reason) from None
        try:
            yield
        finally:
            self._large.release()

    def _entry(self, request: Request) -> LogEntry:
        """Return the log entry of a request before it is answered."""
        command = request.command
        if command in (PING, SKIP):
            return LogEntry(command=command)
        action = "classify" if command != TELL else "learn" if request.set_local else "forget"
        mid = ""
        if self._is_logged:
            mid = header_fields.message_id(request.beginning(header_fields.HEAD))
        label = request.message_class if action == "learn" else ""
        return LogEntry(action, command, mid, request.user, label=label, size=len(request.body))

    async def _answer(self, request: Request, entry: LogEntry) -> Reply:
        """Answer a request that was read whole."""
        if request.command in (PING, SKIP):
            return spamd.PONG if request.command == PING else b"", entry, 0
        version = self._models.version_for(request.user)

        def classify() -> answer.Answer:
            message = request.message(self._limits.max_size)
            return answer.answer(request, message, version, self._config.x_spam)

        reply, verdict, probability, reason = (
            await asyncio.to_thread(classify) if request.is_large else classify()
        )
        return reply, entry._replace(verdict=verdict, probability=probability, reason=reason), 0

    async def _lesson(self, request: Request) -> tuple[Filter, teaching.Lesson] | None:
        """Read a message to learn or forget, and its model; None if there is nothing to do."""
        is_empty = not request.body or request.body.isspace()  # then there is nothing to learn
        if (request.set_local and is_empty) or not (request.set_local or request.remove_local):
            return None
        is_spam = request.message_class == "spam" if request.set_local else None
        spam_filter = self._models.filter_to_teach(request.user, is_spam is not None)
        outputs = spam_filter.version.outputs

        def read() -> teaching.Lesson:
            message = request.message(self._limits.max_size)
            return teaching.Lesson(is_spam, answer.message_to_learn(message, outputs))

        return spam_filter, await asyncio.to_thread(read) if request.is_large else read()

    async def _teach(
        self, request: Request, entry: LogEntry, lesson: tuple[Filter, teaching.Lesson] | None
    ) -> Reply:
        done = teaching.TeachResult(UNCHANGED)
        if lesson is not None:
            self._metrics.add("learning_queue_messages", 1)
            try:
                done = await self._teacher.submit(*lesson)
            finally:
                self._metrics.add("learning_queue_messages", -1)
        reply = spamd.tell_reply(request, done.result != UNCHANGED)
        return reply, entry._replace(result=done.result, note=done.note), 0

    def _refused(self, error: Exception, entry: LogEntry) -> Reply:
        """Answer a failed request, and log errors of the server."""
        code, reason = spamd.SOFTWARE, type(error).__name__
        if isinstance(error, RefusedError):
            code, reason = error.code, str(error)
        elif known := next((known for known in _FAILURES if isinstance(error, known[0])), None):
            code, reason = known[1], known[2] or str(error)
            if code == spamd.UNUSABLE:
                _logger.warning(reason)
        else:
            _logger.warning(f"internal error, {reason}: {error}; please report it")
        line = RefusedError(code, reason).line
        reason = line.decode().removeprefix("SPAMD/1.0 ").rstrip()
        return line, entry._replace(action=entry.action or "serve", error=reason), code

    async def _serve_page(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request of Prometheus."""
        # the client disconnected, is too slow, or does not speak HTTP
        with suppress(OSError, ValueError):
            async with asyncio.timeout(_HTTP_TIMEOUT):
                first = line = await reader.readline()
                for _ in range(_HTTP_LINES):
                    if not line.strip():
                        break
                    line = await reader.readline()
                self._models.reread()
                page = self._metrics.page(self._models.modified, self._models.n_unusable)
                writer.write(http_reply(first, page))
                await writer.drain()
        writer.close()
