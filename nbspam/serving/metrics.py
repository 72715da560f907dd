"""What the server counts, and the page of it that Prometheus reads.

Names and units follow Prometheus's conventions (base units, `_total` for counters); the page is its
text format 0.0.4: https://prometheus.io/docs/instrumenting/exposition_formats/.  Nothing of a mail
or of a user is in it, so the number of lines depends on the model's classes alone.

It is served by HTTP: `GET /metrics`, and nothing else.  Its clients may use little: some
connections, which are evicted when they are slow and others wait, and so many answers a second.
"""

import os
import resource
import socket
import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from nbspam import __version__
from nbspam.labels import UNSURE
from nbspam.serving.clients import Client, Clients, Limits, Say
from nbspam.serving.log import FORGOTTEN, LEARNED, MOVED, UNCHANGED, Entry
from nbspam.serving.spamd import (
    COMMANDS,
    DATA,
    IO,
    JUDGING_COMMANDS,
    LINE_LIMIT,
    PROTOCOL,
    SOFTWARE,
    TELL,
    TEMPORARY,
    TIMEOUT,
    UNAVAILABLE,
)

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_PLAIN = "text/plain; charset=utf-8"

# Upper ends, in seconds: a small mail takes 1 to 5 ms, a large one up to 60 s.
_ENDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)

DISCONNECTED = -1  # beside the codes of the protocol
_KINDS = {
    DATA: "message",
    UNAVAILABLE: "tell_disabled",
    SOFTWARE: "bug",
    IO: "model",
    TEMPORARY: "busy",
    PROTOCOL: "protocol",
    TIMEOUT: "timeout",
    DISCONNECTED: "disconnected",
}
_RESULTS = (LEARNED, MOVED, FORGOTTEN, UNCHANGED)


class State(NamedTuple):
    """What the server is doing, and with which model, at the moment of a scrape."""

    connections: int
    parked: int
    judging_room: int  # bytes in use
    learning_room: int
    learning: int  # requests that wait to be learned
    classes: tuple[str, ...]  # of the model
    modified: float  # seconds since 1970
    dropped_lines: int  # of the log
    unusable: int  # models


class Metrics:
    """Counts what the server does."""

    def __init__(self) -> None:
        self._started = time.time()
        self._lock = threading.Lock()
        self._requests: Counter[str] = Counter(dict.fromkeys(COMMANDS, 0))
        self._judged: Counter[tuple[str, str]] = Counter()
        self._told: Counter[str] = Counter(dict.fromkeys(_RESULTS, 0))
        self._errors: Counter[str] = Counter(dict.fromkeys(_KINDS.values(), 0))
        self._bytes = 0
        self._times = [0] * (len(_ENDS) + 1)  # per bucket, not cumulative
        self._seconds = 0.0

    def count(self, entry: Entry, code: int) -> None:
        """Count a request that was answered, or was not.

        code: of the refusal, DISCONNECTED, or 0.
        """
        with self._lock:
            if entry.command:
                self._requests[entry.command] += 1
            self._bytes += entry.size or 0
            if code:
                self._errors[_KINDS[code]] += 1
            if entry.result:
                self._told[entry.result] += 1
            if entry.verdict:
                self._judged[entry.command, entry.verdict] += 1
                seconds = entry.seconds or 0.0
                self._times[bisect_left(_ENDS, seconds)] += 1
                self._seconds += seconds

    def page(self, state: State, pids: Iterable[int] = ()) -> str:
        """Return all metrics in the text format; pids: of the other processes of the server."""
        with self._lock:
            families = [*self._families(state), *self._process_families(pids)]
            return "".join(map(_family, families))

    def _families(self, state: State) -> Iterator["_Family"]:
        yield _counter("requests", "Requests read whole.", _each("command", self._requests))
        verdicts = {(c, v): 0 for c in JUDGING_COMMANDS for v in (*state.classes, UNSURE)}
        yield _counter(
            "judged_messages",
            "Messages judged.",
            (
                ({"command": command, "verdict": verdict}, n)
                for (command, verdict), n in (verdicts | self._judged).items()
            ),
        )
        yield self._histogram()
        yield _counter(
            "told_messages",
            f"Messages that clients asked to learn or to forget ({TELL}).",
            _each("result", self._told),
        )
        yield _counter(
            "errors", "Requests refused, and clients that hung up.", _each("kind", self._errors)
        )
        yield _counter("received_bytes", "Bytes of messages, as sent.", [({}, self._bytes)])
        yield _counter(
            "dropped_log_lines",
            "Log lines that could not be written at once.",
            [({}, state.dropped_lines)],
        )
        yield _gauge("connections", "Open connections.", state.connections)
        yield _gauge(
            "parked_connections",
            "Connections that wait for room, for the model or among large messages.",
            state.parked,
        )
        yield _Family(
            "nbspam_room_used_bytes",
            "gauge",
            "Memory that large messages hold.",
            [
                ("", {"room": "judging"}, state.judging_room),
                ("", {"room": "learning"}, state.learning_room),
            ],
        )
        yield _gauge("learning_queue_messages", "Messages that wait to be learned.", state.learning)
        yield _gauge(
            "model_modified_timestamp_seconds",
            "When the model in use was written, in seconds since 1970.",
            state.modified,
        )
        yield _gauge(
            "unusable_models",
            "Model files that are missing or cannot be used; the server uses what they were.",
            state.unusable,
        )
        yield _Family(
            "nbspam_build_info", "gauge", "The version.", [("", {"version": __version__}, 1)]
        )

    def _histogram(self) -> "_Family":
        samples: list[_Sample] = []
        n = 0
        for end, times in zip((*map(str, _ENDS), "+Inf"), self._times, strict=True):
            n += times
            samples.append(("_bucket", {"le": end}, n))
        samples += [("_sum", {}, self._seconds), ("_count", {}, n)]
        text = "Seconds from a request read to its reply, of messages judged."
        return _Family("nbspam_judging_seconds", "histogram", text, samples)

    def _process_families(self, pids: Iterable[int]) -> Iterator["_Family"]:
        """Yield what all exporters say of their process, under the names that they share."""
        found = [memory_and_time(pid) for pid in (os.getpid(), *pids)]
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = time.process_time() + ended.ru_utime + ended.ru_stime
        yield _Family(
            "process_start_time_seconds",
            "gauge",
            "When the server was started, in seconds since 1970.",
            [("", {}, self._started)],
        )
        yield _Family(
            "process_cpu_seconds_total",
            "counter",
            "Time on the processor, of all processes.",
            [("", {}, cpu + sum(seconds for _, seconds in found[1:]))],
        )
        if found[0][0]:
            yield _Family(
                "process_resident_memory_bytes",
                "gauge",
                "Memory in use, of all processes.",
                [("", {}, sum(memory for memory, _ in found))],
            )


_Sample = tuple[str, dict[str, str], float]  # suffix of the name, labels, value


class _Family(NamedTuple):
    name: str
    kind: str
    help: str
    samples: list[_Sample]


def _counter(name: str, text: str, values: Iterable[tuple[dict[str, str], float]]) -> _Family:
    samples = [("", labels, value) for labels, value in values]
    return _Family(f"nbspam_{name}_total", "counter", text, samples)


def _each(label: str, counts: Counter[str]) -> Iterator[tuple[dict[str, str], float]]:
    return (({label: value}, n) for value, n in sorted(counts.items()))


def _gauge(name: str, text: str, value: float) -> _Family:
    return _Family(f"nbspam_{name}", "gauge", text, [("", {}, value)])


def _family(family: _Family) -> str:
    lines = [f"# HELP {family.name} {family.help}", f"# TYPE {family.name} {family.kind}"]
    for suffix, labels, value in family.samples:
        written = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items())
        lines.append(f"{family.name}{suffix}{{{written}}} {value!r}".replace("{} ", " "))
    return "\n".join([*lines, ""])


def _escaped(text: str) -> str:
    """Return a label's value; the names of classes are the user's, of any characters."""
    text = text.encode("utf-8", "replace").decode()
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


# The page, by HTTP

# Answers at a time, and seconds that one takes at least: 80 answers a second, whoever asks.
_ANSWERS, _PAUSE = 4, 0.05
# Beside 300 idle clients who come again at once, whoever asks waits for three seconds.
_LIMITS = Limits(connections=64, timeout=5.0, grace=0.5, shutdown=0.2)
_LINES = 64  # of a request; Prometheus sends seven


class MetricsPage:
    """Answers whoever asks for the metrics."""

    def __init__(self, page: Callable[[], str], say: Say) -> None:
        """page: returns what to answer.  say: tells what is wrong."""
        self._page = page
        self._clients = Clients(_LIMITS, self._serve, say)
        self._turns = threading.Semaphore(_ANSWERS)

    def listen(self, listeners: Sequence[socket.socket]) -> None:
        """Answer the clients of these sockets from now on, until `close`."""
        self._clients.listen(listeners)

    def close(self) -> None:
        """Close the listeners, and wait for the last client, for a short time."""
        self._clients.close(time.monotonic() + _LIMITS.shutdown)
        self._clients.join()

    def _serve(self, client: Client) -> None:
        try:
            with client.awaited():
                lines = [client.stream.readline(LINE_LIMIT + 1)]
                while lines[-1].strip() and len(lines) <= _LINES and len(lines[-1]) <= LINE_LIMIT:
                    lines.append(client.stream.readline(LINE_LIMIT + 1))
            if len(lines) > _LINES or len(lines[-1]) > LINE_LIMIT:
                client.send(_response("431 Request Header Fields Too Large", "it is too long\n"))
                return
            with self._turns:
                client.send(self._reply(lines[0].rstrip(b"\r\n")))
                time.sleep(_PAUSE)
        except OSError:  # TimeoutError is one; it disconnected, or is too slow
            pass

    def _reply(self, line: bytes) -> bytes:
        words = line.split(b" ")
        if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
            return _response("400 Bad Request", "this is no request of HTTP/1\n")
        method, target = words[0], words[1].partition(b"?")[0].decode("latin-1")
        if method not in (b"GET", b"HEAD"):
            return _response("405 Method Not Allowed", "only GET and HEAD\n", allow=True)
        with_body = method == b"GET"
        if target == "/metrics":
            return _response("200 OK", self._page(), CONTENT_TYPE, with_body)
        return _response("404 Not Found", "only /metrics is here\n", with_body=with_body)


def _response(
    status: str, text: str, kind: str = _PLAIN, with_body: bool = True, allow: bool = False
) -> bytes:
    body = text.encode()
    lines = [
        f"HTTP/1.1 {status}",
        f"Content-Type: {kind}",
        f"Content-Length: {len(body)}",
        *(["Allow: GET, HEAD"] if allow else []),
        "Connection: close",
        "",
        "",
    ]
    return "\r\n".join(lines).encode() + (body if with_body else b"")


def memory_and_time(pid: int) -> tuple[int, float]:
    """Return the bytes of memory that a process has, and its seconds on the processor.

    Zeros where the system does not say.
    """
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:  # noqa: PTH123
            memory = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
            fields = file.read().rpartition(b")")[2].split()
        return memory, (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return 0, 0.0
