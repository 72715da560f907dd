"""What the server counts, and the page of it that Prometheus reads; of the extra `serve`.

No label comes from a mail or a user, so the number of time series depends on the model's classes
alone.  The page is served by HTTP: `GET /metrics`, and nothing else.  Its clients are bounded as
those of the mail are, and in answers a second.
"""

import itertools
import os
import resource
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial

import prometheus_client as prometheus
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from nbspam import __version__
from nbspam.names import UNSURE
from nbspam.serving import models, spamd, teaching
from nbspam.serving.clients import Client, Clients, Limits, MemoryBudget
from nbspam.serving.log import FORGOTTEN, LEARNED, MOVED, UNCHANGED, Entry, Log
from nbspam.serving.pool import WorkerPool

# Upper ends, in seconds: a small mail takes 1 to 5 ms, a large one up to 60 s.
_ENDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)

# Answers at a time, and the least seconds of one: at most 80 answers a second.
_ANSWERS, _PAUSE = 4, 0.05
# Beside 300 idle clients that connect again at once, a client waits for three seconds.
_LIMITS = Limits(connections=64, timeout=5.0, grace=0.5, shutdown=0.2)
_LINES = 64  # of a request; Prometheus sends seven


class Metrics(Collector):
    """Counts what a server does, and answers Prometheus."""

    def __init__(
        self,
        current: models.CurrentModel,
        log: Log | None,
        clients: Clients,
        budgets: Mapping[str, MemoryBudget],
        pools: Sequence[WorkerPool],
        teacher: teaching.Teacher | None,
    ) -> None:
        """Of a server's parts; budgets: by the `room` of their metric."""
        self._log, self._pools = log, pools
        self._started = time.time()
        self.clients = Clients(_LIMITS, self._serve)
        self._turns = threading.Semaphore(_ANSWERS)
        # Each counter would have a gauge of the time when it was made.
        prometheus.disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = registry = prometheus.CollectorRegistry()
        counter, gauge = self._counter, self._gauge
        verdicts = [*map(_label, current.use().filter.classes), UNSURE]
        commands, results = spamd.JUDGING_COMMANDS, (LEARNED, MOVED, FORGOTTEN, UNCHANGED)
        self._requests = counter("requests", "Complete requests.", command=spamd.COMMANDS)
        text = "Messages classified."
        self._verdicts = counter("judged_messages", text, command=commands, verdict=verdicts)
        text = "Seconds from request to reply, of messages."
        self._seconds = prometheus.Histogram(
            "nbspam_judging_seconds", text, buckets=_ENDS, registry=registry
        )
        text = "Messages learned or forgotten (TELL)."
        self._results = counter("told_messages", text, result=results)
        text = "Requests refused, and clients that hung up."
        self._errors = counter("errors", text, kind=[kind for kind, _ in spamd.KINDS.values()])
        self._bytes = counter("received_bytes", "Bytes of messages, as sent.")
        gauge("connections", "Open connections.", lambda: clients.n_open)
        gauge("parked_connections", "Connections that wait.", lambda: clients.n_idle)
        rooms = prometheus.Gauge(
            "nbspam_room_used_bytes", "Memory of large messages.", ["room"], registry=registry
        )
        for room, budget in budgets.items():
            rooms.labels(room).set_function(partial(getattr, budget, "used"))
        text = "Messages that wait to be learned."
        gauge("learning_queue_messages", text, lambda: teacher.n_waiting if teacher else 0)
        text = "Unix time of the model file."
        gauge("model_modified_timestamp_seconds", text, lambda: current.use().modified)
        gauge(
            "unusable_models",
            "Models and lists of senders that are bad.",
            lambda: current.n_unusable,
        )
        info = prometheus.Info("nbspam_build", "The version.", registry=registry)
        info.info({"version": __version__})
        registry.register(self)

    def _counter(self, name: str, text: str, **labels: Iterable[str]) -> prometheus.Counter:
        """Return a counter that is 0 for each combination of its labels' values."""
        new = prometheus.Counter(f"nbspam_{name}", text, tuple(labels), registry=self._registry)
        for values in itertools.product(*labels.values()) if labels else ():
            new.labels(*values)
        return new

    def _gauge(self, name: str, text: str, value: Callable[[], float]) -> None:
        prometheus.Gauge(f"nbspam_{name}", text, registry=self._registry).set_function(value)

    def count(self, entry: Entry, code: int) -> None:
        """Count a request; code: of the refusal, or 0."""
        if entry.command:
            self._requests.labels(entry.command).inc()
        self._bytes.inc(entry.size or 0)
        if code:
            self._errors.labels(spamd.KINDS[code][0]).inc()
        if entry.result:
            self._results.labels(entry.result).inc()
        if entry.verdict:
            self._verdicts.labels(entry.command, _label(entry.verdict)).inc()
            self._seconds.observe(entry.seconds or 0.0)

    def collect(self) -> Iterator[Metric]:
        """Yield what other parts count: dropped lines, memory and time of all processes."""
        n_dropped = self._log.n_dropped if self._log else 0
        yield CounterMetricFamily("nbspam_dropped_log_lines", "Lines not logged.", n_dropped)
        totals = defaultdict[str, float](float)
        for pid in (os.getpid(), *(pid for pool in self._pools for pid in pool.pids)):
            process = prometheus.ProcessCollector(pid=partial(int, pid), registry=None)
            for family in process.collect():
                totals[family.name] += family.samples[0].value
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = totals["process_cpu_seconds"] + ended.ru_utime + ended.ru_stime
        yield CounterMetricFamily("process_cpu_seconds", "CPU time of all processes.", seconds)
        for name, text, value in (
            ("start_time_seconds", "Unix time when the server was started.", self._started),
            ("resident_memory_bytes", "Of all processes.", totals["process_resident_memory_bytes"]),
        ):
            yield GaugeMetricFamily(f"process_{name}", text, value)

    def page(self) -> bytes:
        """Return all metrics in Prometheus's text format."""
        return prometheus.generate_latest(self._registry)

    def close(self) -> None:
        """Close the listeners, and wait for the last client, for a short time."""
        self.clients.close(time.monotonic() + _LIMITS.shutdown)
        self.clients.join()

    def _serve(self, client: Client) -> None:
        with suppress(OSError):  # TimeoutError is one; it disconnected, or is too slow
            with client.deadline():
                first = line = client.stream.readline(spamd.LINE_LIMIT)
                for _ in range(_LINES):
                    if not line.strip():
                        break
                    line = client.stream.readline(spamd.LINE_LIMIT)
            with self._turns:
                if first.startswith((b"GET /metrics ", b"GET /metrics?")):
                    status, kind, body = "200 OK", prometheus.CONTENT_TYPE_LATEST, self.page()
                else:
                    status, kind = "404 Not Found", "text/plain; charset=utf-8"
                    body = b"the only page is GET /metrics\n"
                head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n"
                head += f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
                client.send(head.encode() + body)
                time.sleep(_PAUSE)


def _label(text: str) -> str:
    """Return a class's name as a label's value: a lone surrogate has no UTF-8."""
    return text.encode("utf-8", "replace").decode()
