"""A server of the spamd protocol: a thread for each client, and processes that judge.

This process accepts clients, reads requests, gives each message to a process that judges it
(`judges.py`), and learns.  So everything that must be bounded is in one place: connections, memory,
the messages that wait to be learned.
"""

import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial

from nbspam.errors import LockedError, NbspamError
from nbspam.reading.header_fields import HEAD, message_id
from nbspam.serving import spamd
from nbspam.serving.clients import Client, Clients, Room, Say
from nbspam.serving.judges import SIGNALS, Judges, give_back_freed_memory
from nbspam.serving.log import UNCHANGED, Entry, Log
from nbspam.serving.metrics import DISCONNECTED, Metrics, MetricsPage
from nbspam.serving.models import CurrentModel, Setup
from nbspam.serving.sockets import notify
from nbspam.serving.spamd import LARGE, PING, SKIP, TELL, RefusedError, Request, too_large
from nbspam.serving.teaching import LearnRequest, Teacher

# Seconds that a thread may keep the interpreter while another wants it: learning takes long.  With
# Python's own 5 ms a request would wait as long at each of the few turns that it takes.
_SWITCH_INTERVAL = 0.001

# Of the seconds in which the server stops, the share for learning: those whose messages were not
# learned are told so in the rest.  And the share for clients.
_LEARNING_SHARE, _CLIENTS_SHARE = 0.7, 0.8

_UNSENT = "the client disconnected before the reply"
_HUNG_UP = Entry("serve", error="the client disconnected before its request was complete")


# A reply, what is logged of it, and the code of a refusal or 0.
Answered = tuple[bytes, Entry, int]


class Server:
    """Serves the clients of listening sockets."""

    def __init__(
        self, setup: Setup, current: CurrentModel, say: Say, log: Log | None = None
    ) -> None:
        """Serve nobody yet.

        current: the model that is not a user's, open.
        say: tells what is wrong with the server.  log: gets a line for each message.
        """
        self.current, self._say, self._log = current, say, log
        self._limits = limits = setup.limits
        self._teacher = Teacher(setup, say) if setup.can_tell else None
        self._judging = Room(3 * limits.max_size, limits)
        # Messages to learn that wait for the model must not fill the other.
        self._learning = Room(limits.max_size, limits)
        self._clients = Clients(limits, self._serve, say, (self._judging, self._learning))
        self._judges = Judges(setup, current, say)
        self._large = Judges(setup, current, say, are_for_large=True)
        self._metrics = Metrics()
        self._page = MetricsPage(self._metrics_text, say)

    def start(
        self, listeners: Sequence[socket.socket], metrics_listeners: Sequence[socket.socket] = ()
    ) -> None:
        """Serve the clients of `listeners` from now on; raises OSError.

        metrics_listeners: where the metrics are asked for.
        """
        sys.setswitchinterval(_SWITCH_INTERVAL)
        give_back_freed_memory()
        self._judges.start()
        self._clients.listen(listeners)
        self._page.clients.listen(metrics_listeners)

    def close(self) -> None:
        """Accept no new client, and end when the current requests are answered."""
        ends = time.monotonic() + _CLIENTS_SHARE * self._limits.shutdown
        if self._teacher:
            self._teacher.hurry(_LEARNING_SHARE * self._limits.shutdown)
        self._clients.close(ends)
        for part in (self._judging, self._learning, self._judges, self._large, self._page):
            part.close()
        if self._teacher:
            self._teacher.close()
        self._clients.join()
        for judges in (self._judges, self._large):
            judges.end()

    # One client

    def _serve(self, client: Client) -> None:
        """Answer one client; nothing that it does raises."""
        entry, code = _HUNG_UP, DISCONNECTED
        try:
            reply, answered, answered_code = self._answered(client)
            entry = answered._replace(error=_UNSENT)  # until all of the reply is sent
            client.send(reply)
            entry, code = answered, answered_code
            if code != spamd.TIMEOUT:
                client.linger(self._limits.max_size)
        except OSError:  # TimeoutError is one; it disconnected, or reads no reply
            pass
        self._metrics.count(entry, code)
        if self._log and entry.action:
            self._log.write(entry)

    def _answered(self, client: Client) -> Answered:
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

    def _request(self, client: Client) -> Request | None:
        """Read a request; None of a client that closed without one.

        Raises RefusedError for an invalid one, TimeoutError, or OSError when the client has gone.
        """
        most = self._limits.max_size
        small = min(LARGE, most)
        body, started = bytearray(), time.monotonic()
        with client.awaited():
            head = spamd.read_head(client.stream, most, self._teacher is not None)
            if head is None:
                return None
            request, length = head
            if request.command in (PING, SKIP):
                return request
            if length is None or length <= small:
                body = client.body(small + 1 if length is None else length)
        room = self._learning if request.command == TELL else self._judging
        if (length or len(body)) > small:  # it waits for room for its reply too
            if len(body) > most:
                raise too_large("the message", most)
            left = self._limits.timeout - (time.monotonic() - started)
            with client.parked():
                room.take(client, length if length and not request.compressed else most)
            with client.awaited(left):
                body = client.body(length or most + 1, body)
            if len(body) > most:
                raise too_large("the message", most)
        if length is not None and (n := len(body) + client.n_more()) != length:
            reason = f"(Content-Length mismatch: Expected {length} bytes, got {n} bytes)"
            raise RefusedError(spamd.PROTOCOL, reason)
        client.is_heard = True
        if request.compressed and client not in room.taken:
            message = spamd.unzipped(body, small)
            if message is not None:
                return request._replace(body=message, compressed=False)
            if most <= LARGE:
                raise too_large("the decompressed message", most)
            with client.parked():
                room.take(client, most)
        return request._replace(body=body)

    def _entry(self, request: Request) -> Entry:
        """Return what is known of a request before it is answered."""
        command = request.command
        if command in (PING, SKIP):
            return Entry(command=command)
        action = "classify" if command != TELL else "learn" if request.set_local else "forget"
        mid = message_id(request.beginning(HEAD)) if self._log else ""
        label = request.message_class if action == "learn" else ""
        return Entry(action, command, mid, request.user, label=label, size=len(request.body))

    def _answer(self, client: Client, request: Request, entry: Entry) -> Answered:
        """Answer a request that was read whole."""
        if request.command in (PING, SKIP):
            return spamd.PONG if request.command == PING else b"", entry, 0
        if request.command == TELL:
            result = self._told(client, request)
            if isinstance(result, Exception):
                return self._refused(result, entry)
            reply = spamd.tell_reply(request, result != UNCHANGED)
            return reply, entry._replace(result=result, note=getattr(result, "note", "")), 0
        self.current.use()  # to tell what is wrong with it
        if request.is_large:
            with client.parked():
                found = self._large.judge(request)
        else:
            found = self._judges.judge(request)
        reply, verdict, probability, reason = found
        return reply, entry._replace(verdict=verdict, probability=probability, reason=reason), 0

    def _told(self, client: Client, request: Request) -> str | Exception:
        """Learn or forget a message; return what was done."""
        assert self._teacher is not None
        is_empty = not request.body or request.body.isspace()  # which is nothing to learn
        if (request.set_local and is_empty) or not (request.set_local or request.remove_local):
            return UNCHANGED
        is_spam = request.message_class == "spam" if request.set_local else None
        if request.is_large:
            asked = LearnRequest(partial(self._large.tokenize, request), is_spam)
        else:
            asked = LearnRequest(bytes(request.body), is_spam)
        path = self._teacher.path_of(asked, request.user)
        with client.parked():
            return self._teacher.submit(path, asked)

    def _refused(self, error: Exception, entry: Entry) -> Answered:
        """Answer what failed, and tell what is wrong with the server.

        The error stays in no variable of a frame that it passed through: each would hold the other
        until Python looks for such circles, and a frame holds a message.
        """
        if isinstance(error, RefusedError):
            code, reason = error.code, str(error)
        elif isinstance(error, TimeoutError):
            code, reason = spamd.TIMEOUT, "(the request did not arrive in time)"
        elif isinstance(error, LockedError):  # who waited for the lock has said so
            code, reason = spamd.TEMPORARY, str(error)
        elif isinstance(error, NbspamError):
            self._say(str(error))
            code, reason = spamd.UNUSABLE, str(error)
        else:
            self._say(f"internal error, {type(error).__name__}: {error}; please report it")
            code, reason = spamd.SOFTWARE, type(error).__name__
        line = RefusedError(code, reason).line
        said = line.decode().removeprefix("SPAMD/1.0 ").rstrip()
        return line, entry._replace(action=entry.action or "serve", error=said), code

    def _metrics_text(self) -> str:
        model = self.current.use()
        now = {
            ("connections",): self._clients.n_open,
            ("parked_connections",): self._clients.n_parked,
            ("room_used_bytes", "judging"): self._judging.used,
            ("room_used_bytes", "learning"): self._learning.used,
            ("learning_queue_messages",): self._teacher.n_waiting if self._teacher else 0,
            ("model_modified_timestamp_seconds",): model.modified,
            ("dropped_log_lines_total",): self._log.n_dropped if self._log else 0,
            ("unusable_models",): self.current.n_unusable,
        }
        pids = *self._judges.pids, *self._large.pids
        return self._metrics.page(now, model.filter.classes, pids)


def serve(
    server: Server,
    listeners: Sequence[socket.socket],
    metrics_listeners: Sequence[socket.socket],
    say_start: Callable[[], None],
) -> None:
    """Run a server until SIGTERM or SIGINT; tell systemd, if it asked for it.

    metrics_listeners: where the metrics are asked for.  say_start: called once it accepts clients
    and heeds signals: what is said earlier may bring a SIGHUP that ends it.
    SIGHUP reopens the model, as `systemctl reload` and log rotation expect of a server; by default
    it would end the server and leave its socket behind.
    """
    # Of all threads that are started from now on, too.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        server.start(listeners, metrics_listeners)
        say_start()
        notify("READY=1")
        while signal.sigwait(SIGNALS) == signal.SIGHUP:
            server.current.use()
        notify("STOPPING=1")
        server.close()
    finally:
        while signal.sigpending().intersection(SIGNALS):  # a second one would end it too early
            signal.sigwait(SIGNALS)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
