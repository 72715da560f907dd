"""What the server counts, and the page of it that Prometheus reads.

Names and units follow Prometheus's conventions (base units, `_total` for counters); the page is its
text format 0.0.4: https://prometheus.io/docs/instrumenting/exposition_formats/.  Nothing of a mail
or of a user is in it, so the number of lines depends on the model's classes alone.

It is served by HTTP: `GET /metrics`, and nothing else.  Its clients may use little: some
connections, which are evicted when they are slow and others wait, and so many answers a second.
"""

import os
import resource
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress

from nbspam import __version__
from nbspam.names import UNSURE
from nbspam.serving import spamd
from nbspam.serving.clients import Client, Clients, Limits, Say
from nbspam.serving.log import FORGOTTEN, LEARNED, MOVED, UNCHANGED, Entry

# Upper ends, in seconds: a small mail takes 1 to 5 ms, a large one up to 60 s.
_ENDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)

DISCONNECTED = -1  # beside the codes of the protocol
_KINDS = {
    spamd.DATA: "message",
    spamd.UNAVAILABLE: "tell_disabled",
    spamd.SOFTWARE: "bug",
    spamd.UNUSABLE: "model",
    spamd.TEMPORARY: "busy",
    spamd.PROTOCOL: "protocol",
    spamd.TIMEOUT: "timeout",
    DISCONNECTED: "disconnected",
}

# Name, labels and meaning of each.  One that ends with `_total` is a counter.
_HISTOGRAM = "nbspam_judging_seconds"
_FAMILIES = (
    ("nbspam_requests_total", "command", "Complete requests."),
    ("nbspam_judged_messages_total", "command verdict", "Messages classified."),
    (_HISTOGRAM, "le", "Seconds from request to reply, of messages."),
    ("nbspam_told_messages_total", "result", "Messages learned or forgotten (TELL)."),
    ("nbspam_errors_total", "kind", "Requests refused, and clients that hung up."),
    ("nbspam_received_bytes_total", "", "Bytes of messages, as sent."),
    ("nbspam_dropped_log_lines_total", "", "Log lines that could not be written."),
    ("nbspam_connections", "", "Open connections."),
    ("nbspam_parked_connections", "", "Connections that wait for the server."),
    ("nbspam_room_used_bytes", "room", "Memory that large messages hold."),
    ("nbspam_learning_queue_messages", "", "Messages that wait to be learned."),
    ("nbspam_model_modified_timestamp_seconds", "", "Unix time when the model was written."),
    ("nbspam_unusable_models", "", "Model files that are missing or cannot be used."),
    ("nbspam_build_info", "version", "The version."),
    ("process_start_time_seconds", "", "Unix time when the server was started."),
    ("process_cpu_seconds_total", "", "CPU seconds of all processes."),
    ("process_resident_memory_bytes", "", "Memory used by all processes."),
)

# Values by a name, without what it begins with, and its labels' values.
Values = Mapping[tuple[str, ...], float]


class Metrics:
    """Counts what the server does."""

    def __init__(self) -> None:
        self._started = time.time()
        self._lock = threading.Lock()
        labels = {
            "requests_total": spamd.COMMANDS,
            "judging_seconds_bucket": (*map(str, _ENDS), "+Inf"),
            "told_messages_total": (LEARNED, MOVED, FORGOTTEN, UNCHANGED),
            "errors_total": _KINDS.values(),
        }
        self._counts: dict[tuple[str, ...], float] = {
            (name, value): 0 for name, those in labels.items() for value in those
        }
        for name in ("judging_seconds_sum", "judging_seconds_count", "received_bytes_total"):
            self._counts[name,] = 0

    def count(self, entry: Entry, code: int) -> None:
        """Count a request that was answered, or was not.

        code: of the refusal, DISCONNECTED, or 0.
        """
        with self._lock:
            counts = self._counts
            if entry.command:
                counts["requests_total", entry.command] += 1
            counts["received_bytes_total",] += entry.size or 0
            if code:
                counts["errors_total", _KINDS[code]] += 1
            if entry.result:
                counts["told_messages_total", entry.result] += 1
            if entry.verdict:
                judged = "judged_messages_total", entry.command, entry.verdict
                counts[judged] = counts.get(judged, 0) + 1
                seconds = entry.seconds or 0.0
                for end in _ENDS:
                    counts["judging_seconds_bucket", str(end)] += seconds <= end
                counts["judging_seconds_bucket", "+Inf"] += 1
                counts["judging_seconds_count",] += 1
                counts["judging_seconds_sum",] += seconds

    def page(self, now: Values, classes: Sequence[str], pids: Iterable[int] = ()) -> str:
        """Return all metrics in the text format.

        now: what is not counted here.  classes: of the model.  pids: of the other processes.
        """
        found = [memory_and_time(pid) for pid in (os.getpid(), *pids)]
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = time.process_time() + ended.ru_utime + ended.ru_stime
        verdicts = *classes, UNSURE
        values: dict[tuple[str, ...], float] = {
            ("judged_messages_total", c, v): 0 for c in spamd.JUDGING_COMMANDS for v in verdicts
        }
        with self._lock:
            values |= self._counts
        values |= now
        values["build_info", __version__] = 1
        values["start_time_seconds",] = self._started
        values["cpu_seconds_total",] = cpu + sum(seconds for _, seconds in found[1:])
        if found[0][0]:
            values["resident_memory_bytes",] = sum(memory for memory, _ in found)
        lines = []
        for name, labels, meaning in _FAMILIES:
            kind = "counter" if name.endswith("_total") else "gauge"
            kind = "histogram" if name == _HISTOGRAM else kind
            lines += [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"]
            room, _, short = name.partition("_")
            for (of, *given), value in values.items():
                if of == short or (kind == "histogram" and of.startswith(short)):
                    pairs = zip(labels.split(), map(_escaped, given), strict=False)
                    written = ",".join(f'{label}="{text}"' for label, text in pairs)
                    lines.append(f"{room}_{of}{{{written}}} {value!r}".replace("{} ", " "))
        return "\n".join([*lines, ""])


def _escaped(text: str) -> str:
    """Return a label's value; the names of classes are the user's, of any characters."""
    text = text.encode("utf-8", "replace").decode()
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


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
        self.clients = Clients(_LIMITS, self._serve, say)
        self._turns = threading.Semaphore(_ANSWERS)

    def close(self) -> None:
        """Close the listeners, and wait for the last client, for a short time."""
        self.clients.close(time.monotonic() + _LIMITS.shutdown)
        self.clients.join()

    def _serve(self, client: Client) -> None:
        with suppress(OSError):  # TimeoutError is one; it disconnected, or is too slow
            with client.awaited():
                first = line = client.stream.readline(spamd.LINE_LIMIT + 1)
                n = 1
                while line.strip() and n <= _LINES and len(line) <= spamd.LINE_LIMIT:
                    line = client.stream.readline(spamd.LINE_LIMIT + 1)
                    n += 1
            with self._turns:
                is_too_long = n > _LINES or len(line) > spamd.LINE_LIMIT
                client.send(self._reply(first.rstrip(b"\r\n").split(b" "), is_too_long))
                time.sleep(_PAUSE)

    def _reply(self, words: list[bytes], is_too_long: bool) -> bytes:
        """Return the reply to a request; words: of its first line."""
        kind, more = "text/plain; charset=utf-8", ""
        if is_too_long:
            status, text = "431 Request Header Fields Too Large", "it is too long\n"
        elif len(words) != 3 or not words[2].startswith(b"HTTP/1."):
            status, text = "400 Bad Request", "this is not an HTTP/1 request\n"
        elif words[0] not in (b"GET", b"HEAD"):
            status, text = "405 Method Not Allowed", "only GET and HEAD\n"
            more = "Allow: GET, HEAD\r\n"
        elif words[1].partition(b"?")[0] != b"/metrics":
            status, text = "404 Not Found", "the only page is /metrics\n"
        else:
            status, text = "200 OK", self._page()
            kind = "text/plain; version=0.0.4; charset=utf-8"
        body = text.encode()
        head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{more}"
        return f"{head}Connection: close\r\n\r\n".encode() + body * (words[0] != b"HEAD")
