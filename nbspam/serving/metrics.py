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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial

import prometheus_client as prometheus
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from nbspam import __version__
from nbspam.names import UNSURE
from nbspam.serving import spamd
from nbspam.serving.clients import Client, Clients, Limits, MemoryBudget
from nbspam.serving.log import FORGOTTEN, LEARNED, MOVED, UNCHANGED, Entry, Log
from nbspam.serving.models import CurrentModel
from nbspam.serving.pool import WorkerPool
from nbspam.serving.teaching import Teacher

# Upper ends, in seconds: a small mail takes 1 to 5 ms, a large one up to 60 s.
_ENDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)

_KINDS = {
    spamd.DATA: "message",
    spamd.UNAVAILABLE: "tell_disabled",
    spamd.SOFTWARE: "bug",
    spamd.UNUSABLE: "model",
    spamd.TEMPORARY: "busy",
    spamd.PROTOCOL: "protocol",
    spamd.TIMEOUT: "timeout",
    spamd.DISCONNECTED: "disconnected",
}

# Answers at a time, and the least seconds of one: at most 80 answers a second.
_ANSWERS, _PAUSE = 4, 0.05
# Beside 300 idle clients that connect again at once, a client waits for three seconds.
_LIMITS = Limits(connections=64, timeout=5.0, grace=0.5, shutdown=0.2)
_LINES = 64  # of a request; Prometheus sends seven


class Metrics(Collector):
    """Counts what a server does, and answers Prometheus."""

    def __init__(
        self,
        current: CurrentModel,
        log: Log | None,
        clients: Clients,
        budgets: Mapping[str, MemoryBudget],
        pools: Sequence[WorkerPool],
        teacher: Teacher | None,
    ) -> None:
        """Of a server's parts; budgets: by the `room` of their metric."""
        self._current, self._log, self._served = current, log, clients
        self._budgets, self._pools, self._teacher = budgets, pools, teacher
        self._started = time.time()
        self.clients = Clients(_LIMITS, self._serve)
        self._turns = threading.Semaphore(_ANSWERS)
        prometheus.disable_created_metrics()  # type: ignore[no-untyped-call]  # twice the time series, of no use
        self._registry = registry = prometheus.CollectorRegistry()
        registry.register(self)
        verdicts = [*map(_label, current.use().filter.classes), UNSURE]
        self._requests = self._counter("requests", "Complete requests.", command=spamd.COMMANDS)
        self._verdicts = self._counter(
            "judged_messages",
            "Messages classified.",
            command=spamd.JUDGING_COMMANDS,
            verdict=verdicts,
        )
        self._seconds = prometheus.Histogram(
            "nbspam_judging_seconds",
            "Seconds from request to reply, of messages.",
            buckets=_ENDS,
            registry=registry,
        )
        self._results = self._counter(
            "told_messages",
            "Messages learned or forgotten (TELL).",
            result=(LEARNED, MOVED, FORGOTTEN, UNCHANGED),
        )
        self._errors = self._counter(
            "errors", "Requests refused, and clients that hung up.", kind=_KINDS.values()
        )
        self._bytes = self._counter("received_bytes", "Bytes of messages, as sent.")

    def _counter(self, name: str, text: str, **labels: Iterable[str]) -> prometheus.Counter:
        """Return a counter that is 0 for each combination of its labels' values."""
        new = prometheus.Counter(f"nbspam_{name}", text, tuple(labels), registry=self._registry)
        for values in itertools.product(*labels.values()) if labels else ():
            new.labels(*values)
        return new

    def count(self, entry: Entry, code: int) -> None:
        """Count a request; code: of the refusal, or 0."""
        if entry.command:
            self._requests.labels(entry.command).inc()
        self._bytes.inc(entry.size or 0)
        if code:
            self._errors.labels(_KINDS[code]).inc()
        if entry.result:
            self._results.labels(entry.result).inc()
        if entry.verdict:
            self._verdicts.labels(entry.command, _label(entry.verdict)).inc()
            self._seconds.observe(entry.seconds or 0.0)

    def collect(self) -> Iterator[Metric]:
        """Yield what is not counted here, for the page."""
        served, modified = self._served, self._current.use().modified
        n_lessons = self._teacher.n_waiting if self._teacher else 0
        for name, text, value in (
            ("connections", "Open connections.", served.n_open),
            ("parked_connections", "Connections that wait for the server.", served.n_idle),
            ("learning_queue_messages", "Messages that wait to be learned.", n_lessons),
            ("model_modified_timestamp_seconds", "Unix time of the model file.", modified),
            ("unusable_models", "Model files that are missing or bad.", self._current.n_unusable),
        ):
            yield GaugeMetricFamily(f"nbspam_{name}", text, value)
        text = "Memory that large messages hold."
        family = GaugeMetricFamily("nbspam_room_used_bytes", text, labels=["room"])
        for room, budget in self._budgets.items():
            family.add_metric([room], budget.used)
        yield family
        family = GaugeMetricFamily("nbspam_build_info", "The version.", labels=["version"])
        family.add_metric([__version__], 1)
        yield family
        n_dropped, text = (
            self._log.n_dropped if self._log else 0,
            "Log lines that were not written.",
        )
        yield CounterMetricFamily("nbspam_dropped_log_lines", text, n_dropped)
        yield from self._processes()

    def _processes(self) -> Iterator[Metric]:
        """Yield the memory and time of all processes, the ended ones too."""
        totals = defaultdict[str, float](float)
        for pid in (os.getpid(), *(pid for pool in self._pools for pid in pool.pids)):
            process = prometheus.ProcessCollector(pid=partial(int, pid), registry=None)
            for family in process.collect():
                totals[family.name] += family.samples[0].value
        text, memory = "Memory used by all processes.", totals["process_resident_memory_bytes"]
        if memory:  # the system says it
            yield GaugeMetricFamily("process_resident_memory_bytes", text, memory)
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = totals["process_cpu_seconds"] + ended.ru_utime + ended.ru_stime
        yield CounterMetricFamily("process_cpu_seconds", "CPU time of all processes.", seconds)
        text = "Unix time when the server was started."
        yield GaugeMetricFamily("process_start_time_seconds", text, self._started)

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
