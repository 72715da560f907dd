"""The numbers that workers count, in shared memory, and their page for Prometheus.

Each worker changes only its own row of numbers; the page shows the sums of all rows.  No label of a
metric comes from a mail or a user, so the number of time series depends only on the model's
classes.
"""

import itertools
import mmap
import time
from collections.abc import Iterable, Mapping

from nbspam import __version__
from nbspam.names import UNSURE
from nbspam.serving import spamd
from nbspam.serving.log import FORGOTTEN, LEARNED, MOVED, UNCHANGED, LogEntry

# Upper ends, in seconds: a small mail takes 1 to 5 ms, a large one up to 60 s.
_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_OTHER = "other"  # a class that the model did not have when the server started
_BYTES = 8  # bytes of a stored number
_HELP = {
    "requests_total": ("counter", "Complete requests."),
    "judged_messages_total": ("counter", "Messages classified."),
    "judging_seconds": ("histogram", "Seconds from request to reply, of messages."),
    "told_messages_total": ("counter", "Messages learned or forgotten (TELL)."),
    "errors_total": ("counter", "Requests refused, and clients that hung up."),
    "received_bytes_total": ("counter", "Bytes of messages, as sent."),
    "connections": ("gauge", "Open connections."),
    "learning_queue_messages": ("gauge", "Messages that wait to be learned."),
}


def _sample(name: str, labels: Mapping[str, str]) -> str:
    """Return the name of a time series in Prometheus's text format."""
    pairs = []
    for label, value in labels.items():
        text = value.encode("utf-8", "replace").decode()  # a lone surrogate has no UTF-8
        text = text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
        pairs.append(f'{label}="{text}"')
    return f"nbspam_{name}{{{','.join(pairs)}}}" if pairs else f"nbspam_{name}"


class Metrics:
    """The numbers of all workers."""

    def __init__(self, classes: Iterable[str], n_workers: int) -> None:
        """Make all numbers, each 0, before the workers are forked."""
        self._verdicts = [*classes, UNSURE, _OTHER]
        labels: dict[str, dict[str, Iterable[str]]] = {
            "requests_total": {"command": spamd.COMMANDS},
            "judged_messages_total": {
                "command": spamd.CLASSIFY_COMMANDS,
                "verdict": self._verdicts,
            },
            "judging_seconds_bucket": {"le": [*map(str, _BOUNDS), "+Inf"]},
            "judging_seconds_sum": {},
            "judging_seconds_count": {},
            "told_messages_total": {"result": (LEARNED, MOVED, FORGOTTEN, UNCHANGED)},
            "errors_total": {"kind": [kind for kind, _ in spamd.KINDS.values()]},
            "received_bytes_total": {},
            "connections": {},
            "learning_queue_messages": {},
        }
        samples = (
            _sample(name, dict(zip(values, combination, strict=True)))
            for name, values in labels.items()
            for combination in itertools.product(*values.values())
        )
        self._places = {sample: i for i, sample in enumerate(samples)}
        self._started = time.time()
        memory = mmap.mmap(-1, n_workers * len(self._places) * _BYTES)
        self._numbers = memoryview(memory).cast("d")
        self._row = 0  # where this process's row starts

    def begin(self, worker: int) -> None:
        """Count in the row of this worker, which may have replaced a worker that died."""
        self._row = worker * len(self._places)
        for name in ("connections", "learning_queue_messages"):
            self._numbers[self._row + self._places[_sample(name, {})]] = 0

    def add(self, name: str, n: float = 1, **labels: str) -> None:
        """Add to one of this worker's numbers."""
        self._numbers[self._row + self._places[_sample(name, labels)]] += n

    def count(self, entry: LogEntry, code: int) -> None:
        """Count a request; code: the refusal's exit code, or 0."""
        if entry.command:
            self.add("requests_total", command=entry.command)
        self.add("received_bytes_total", entry.size or 0)
        if code:
            self.add("errors_total", kind=spamd.KINDS[code][0])
        if entry.result:
            self.add("told_messages_total", result=entry.result)
        if entry.verdict:
            verdict = entry.verdict if entry.verdict in self._verdicts else _OTHER
            self.add("judged_messages_total", command=entry.command, verdict=verdict)
            seconds = entry.seconds or 0.0
            end = next((str(end) for end in _BOUNDS if seconds <= end), "+Inf")
            self.add("judging_seconds_bucket", le=end)  # `page` adds the buckets below
            self.add("judging_seconds_sum", seconds)
            self.add("judging_seconds_count")

    def page(self, modified: float, n_unusable: int) -> bytes:
        """Return all metrics in Prometheus's text format; the arguments describe the models."""
        others = {
            "nbspam_model_modified_timestamp_seconds": modified,
            "nbspam_unusable_models": n_unusable,
            _sample("build_info", {"version": __version__}): 1,
            "process_start_time_seconds": self._started,
        }
        lines = [f"{sample} {value!r}" for sample, value in others.items()]
        helped, below = "", 0.0
        for sample, place in self._places.items():
            name = sample.partition("{")[0].removeprefix("nbspam_")
            family = "judging_seconds" if name.startswith("judging_seconds") else name
            if family != helped:
                kind, text = _HELP[helped := family]
                lines += [f"# HELP nbspam_{family} {text}", f"# TYPE nbspam_{family} {kind}"]
            value = sum(self._numbers[place :: len(self._places)])
            if name == "judging_seconds_bucket":
                value = below = below + value
            lines.append(f"{sample} {value!r}")
        return "\n".join([*lines, ""]).encode()


def http_reply(first_line: bytes, page: bytes) -> bytes:
    """Answer an HTTP request: `GET /metrics`, and nothing else."""
    status, kind = "200 OK", "text/plain; version=0.0.4; charset=utf-8"
    if not first_line.startswith((b"GET /metrics ", b"GET /metrics?")):
        status, page = "404 Not Found", b"the only page is GET /metrics\n"
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n"
    head += f"Content-Length: {len(page)}\r\nConnection: close\r\n\r\n"
    return head.encode() + page
