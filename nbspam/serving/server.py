"""A server of the spamd protocol: a thread for each client, and processes that classify.

This process accepts clients, reads requests, gives each message to a worker (`pool.py`), and
learns.  So everything that must be bounded is in one place: connections, memory, the messages that
wait to be learned.
"""

import logging
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from nbspam.errors import LockedError, NbspamError
from nbspam.reading import header_fields
from nbspam.serving import clients, pool, sockets, spamd, teaching
from nbspam.serving.log import UNCHANGED, Entry, Log
from nbspam.serving.models import CurrentModel, Setup
from nbspam.serving.spamd import LARGE, PING, SKIP, TELL, RefusedError, Request

if TYPE_CHECKING:
    from nbspam.serving.metrics import Metrics

_logger = logging.getLogger(__name__)

# Seconds that a thread may keep the interpreter while another wants it: learning takes long.  With
# Python's own 5 ms a request would wait as long at each of the few turns that it takes.
_SWITCH_INTERVAL = 0.001

# Of the seconds in which the server stops, the share for learning: those whose messages were not
# learned are told so in the rest.  And the share for clients.
_LEARNING_SHARE, _CLIENTS_SHARE = 0.7, 0.8

_UNSENT = "the client disconnected before the reply"
_HUNG_UP = Entry("serve", error="the client disconnected before its request was complete")


# A reply, what is logged of it, and the code of a refusal or 0.
Reply = tuple[bytes, Entry, int]


class Server:
    """Serves the clients of listening sockets."""

    def __init__(self, setup: Setup, current: CurrentModel, log: Log | None = None) -> None:
        """Start nothing yet.

        current: the model that is not a user's, open.  log: gets a line for each message.
        """
        self.current, self._log = current, log
        self._limits = limits = setup.limits
        self._teacher = teaching.Teacher(setup) if setup.can_tell else None
        self._classifying = clients.MemoryBudget(3 * limits.max_size, limits)
        # Messages to learn that wait for the model must not fill the other.
        self._learning = clients.MemoryBudget(limits.max_size, limits)
        self.clients = clients.Clients(limits, self._serve, (self._classifying, self._learning))
        self._workers = pool.WorkerPool(setup, current)
        self._large = pool.WorkerPool(setup, current, is_for_large=True)
        self._metrics: Metrics | None = None

    def start(
        self, listeners: Sequence[socket.socket], metrics_listeners: Sequence[socket.socket] = ()
    ) -> None:
        """Serve the clients of `listeners` from now on, and metrics; raises OSError."""
        sys.setswitchinterval(_SWITCH_INTERVAL)
        pool.give_back_freed_memory()
        self._workers.start()
        if metrics_listeners:
            from nbspam.serving.metrics import Metrics  # of an extra

            budgets = {"judging": self._classifying, "learning": self._learning}
            pools = self._workers, self._large
            self._metrics = Metrics(
                self.current, self._log, self.clients, budgets, pools, self._teacher
            )
            self._metrics.clients.listen(metrics_listeners)
        self.clients.listen(listeners)

    def close(self) -> None:
        """Accept no new client, and end when the current requests are answered."""
        ends = time.monotonic() + _CLIENTS_SHARE * self._limits.shutdown
        if self._teacher:
            self._teacher.limit_waits(_LEARNING_SHARE * self._limits.shutdown)
        self.clients.close(ends)
        pools = self._workers, self._large
        for part in (self._classifying, self._learning, *pools, self._metrics, self._teacher):
            if part:
                part.close()
        self.clients.join()
        for workers in pools:
            workers.end()

    # One client

    def _serve(self, client: clients.Client) -> None:
        """Answer one client; nothing that it does raises."""
        entry, code = _HUNG_UP, spamd.DISCONNECTED
        try:
            reply, answered, answered_code = self._answered(client)
            entry = answered._replace(error=_UNSENT)  # until all of the reply is sent
            client.send(reply)
            entry, code = answered, answered_code
            if code != spamd.TIMEOUT:
                client.drain(self._limits.max_size)
        except OSError:  # TimeoutError is one; it disconnected, or reads no reply
            pass
        if self._metrics:
            self._metrics.count(entry, code)
        if self._log and entry.action:
            self._log.write(entry)

    def _answered(self, client: clients.Client) -> Reply:
        """Read and answer a client's request; raises ConnectionError when the client has gone."""
        entry, started = Entry(), time.perf_counter()
        try:
            request = self._request(client)
            if request is None:
                return b"", entry, 0
            started = time.perf_counter()
            entry = self._entry(request)
            reply, entry, code = self._answer(client, request, entry)
        except ConnectionError:
            raise
        except Exception as error:  # noqa: BLE001 (a message that fails must not end the server)
            reply, entry, code = self._refused(error, entry)
        return reply, entry._replace(seconds=time.perf_counter() - started), code

    def _request(self, client: clients.Client) -> Request | None:
        """Read a request; None of a client that closed without one.

        Raises RefusedError for an invalid one, TimeoutError, or OSError when the client has gone.
        """
        most = self._limits.max_size
        small = min(LARGE, most)
        body, started = bytearray(), time.monotonic()
        with client.deadline():
            head = spamd.read_head(client.stream, most, self._teacher is not None)
            if head is None:
                return None
            request, length = head
            if request.command in (PING, SKIP):
                return request
            if length is None or length <= small:
                body = client.body(small + 1 if length is None else length)
        budget = self._learning if request.command == TELL else self._classifying
        if (length or len(body)) > small:  # it waits for the memory of its reply too
            if len(body) > most:
                raise spamd.too_large("the message", most)
            left = self._limits.timeout - (time.monotonic() - started)
            with client.idle():
                budget.reserve(client, length if length and not request.compressed else most)
            with client.deadline(left):
                body = client.body(length or most + 1, body)
            if len(body) > most:
                raise spamd.too_large("the message", most)
        if length is not None and (n := len(body) + len(client.stream.peek())) != length:
            reason = f"(Content-Length mismatch: Expected {length} bytes, got {n} bytes)"
            raise RefusedError(spamd.PROTOCOL, reason)
        client.is_read_whole = True
        if request.compressed and client not in budget.reserved:
            message = spamd.unzipped(body, small)
            if message is not None:
                return request._replace(body=message, compressed=False)
            if most <= LARGE:
                raise spamd.too_large("the decompressed message", most)
            with client.idle():
                budget.reserve(client, most)
        return request._replace(body=body)

    def _entry(self, request: Request) -> Entry:
        """Return what is known of a request before it is answered."""
        command = request.command
        if command in (PING, SKIP):
            return Entry(command=command)
        action = "classify" if command != TELL else "learn" if request.set_local else "forget"
        mid = header_fields.message_id(request.beginning(header_fields.HEAD)) if self._log else ""
        label = request.message_class if action == "learn" else ""
        return Entry(action, command, mid, request.user, label=label, size=len(request.body))

    def _answer(self, client: clients.Client, request: Request, entry: Entry) -> Reply:
        """Answer a request that was read whole."""
        if request.command in (PING, SKIP):
            return spamd.PONG if request.command == PING else b"", entry, 0
        if request.command == TELL:
            result = self._learn(client, request)
            if isinstance(result, Exception):
                return self._refused(result, entry)
            reply = spamd.tell_reply(request, result != UNCHANGED)
            return reply, entry._replace(result=result, note=getattr(result, "note", "")), 0
        self.current.use()  # to tell what is wrong with it
        if request.is_large:
            with client.idle():
                answer = self._large.classify(request)
        else:
            answer = self._workers.classify(request)
        reply, verdict, probability, reason = answer
        return reply, entry._replace(verdict=verdict, probability=probability, reason=reason), 0

    def _learn(self, client: clients.Client, request: Request) -> str | Exception:
        """Learn or forget a message; return what was done."""
        assert self._teacher is not None
        is_empty = not request.body or request.body.isspace()  # which is nothing to learn
        if (request.set_local and is_empty) or not (request.set_local or request.remove_local):
            return UNCHANGED
        is_spam = request.message_class == "spam" if request.set_local else None
        if request.is_large:
            lesson = teaching.LearnRequest(partial(self._large.tokenize, request), is_spam)
        else:
            lesson = teaching.LearnRequest(bytes(request.body), is_spam)
        path = self._teacher.path_of(lesson, request.user)
        with client.idle():
            return self._teacher.submit(path, lesson)

    def _refused(self, error: Exception, entry: Entry) -> Reply:
        """Answer what failed, and tell what is wrong with the server.

        The error stays in no variable of a frame that it passed through: each would hold the other
        until Python looks for such circles, and a frame holds a message.
        """
        if isinstance(error, RefusedError):
            code, reason = error.code, str(error)
        elif isinstance(error, TimeoutError):
            code, reason = spamd.TIMEOUT, "(the request did not arrive in time)"
        elif isinstance(error, LockedError):  # the wait for the lock was logged
            code, reason = spamd.TEMPORARY, str(error)
        elif isinstance(error, NbspamError):
            _logger.warning(str(error))
            code, reason = spamd.UNUSABLE, str(error)
        else:
            _logger.warning(f"internal error, {type(error).__name__}: {error}; please report it")
            code, reason = spamd.SOFTWARE, type(error).__name__
        line = RefusedError(code, reason).line
        reason = line.decode().removeprefix("SPAMD/1.0 ").rstrip()
        return line, entry._replace(action=entry.action or "serve", error=reason), code


def serve(
    server: Server,
    listeners: Sequence[socket.socket],
    metrics_listeners: Sequence[socket.socket],
    on_start: Callable[[], None],
) -> None:
    """Run a server until SIGTERM or SIGINT; tell systemd, if it asked for it.

    on_start: called once it accepts clients and handles signals; a message that is written earlier
    may bring a SIGHUP that ends it.
    SIGHUP reopens the model, as `systemctl reload` and log rotation expect of a server; by default
    it would end the server and leave its socket behind.
    """
    # Of all threads that are started from now on, too.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, pool.SIGNALS)
    try:
        server.start(listeners, metrics_listeners)
        on_start()
        sockets.notify("READY=1")
        while signal.sigwait(pool.SIGNALS) == signal.SIGHUP:
            server.current.use()
        sockets.notify("STOPPING=1")
        server.close()
    finally:
        while signal.sigpending().intersection(pool.SIGNALS):  # a second one would end it too early
            signal.sigwait(pool.SIGNALS)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
