"""What the server counts, and the page of it that Prometheus reads.

Names and units follow Prometheus's conventions (base units, `_total` for counters); the page is its
text format 0.0.4: https://prometheus.io/docs/instrumenting/exposition_formats/.  Nothing of a mail
or of a user is in it, so the number of lines depends on the model's classes alone.
"""

import copy
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from nbspam import __version__
from nbspam.names import UNSURE
from nbspam.serving.log import FORGOTTEN, LEARNED, MOVED, UNCHANGED, Entry
from nbspam.serving.memory import resident_memory
from nbspam.serving.spamd import (
    COMMANDS,
    DATA,
    IO,
    JUDGING_COMMANDS,
    PROTOCOL,
    SOFTWARE,
    TELL,
    TEMPORARY,
    TIMEOUT,
    UNAVAILABLE,
)

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

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
        self._requests: Counter[str] = Counter(dict.fromkeys(COMMANDS, 0))
        self._judged: Counter[tuple[str, str]] = Counter()
        self._told: Counter[str] = Counter(dict.fromkeys(_RESULTS, 0))
        self._errors: Counter[str] = Counter(dict.fromkeys(_KINDS.values(), 0))
        self._bytes = 0
        self._times = [0] * (len(_ENDS) + 1)  # per bucket, not cumulative
        self._seconds = 0.0
        self._others_dropped, self._others_cpu, self._others_resident = 0, 0.0, 0

    def count(self, entry: Entry, code: int) -> None:
        """Count a request that was answered, or was not.

        code: of the refusal, DISCONNECTED, or 0.
        """
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

    def snapshot(self, dropped_lines: int) -> dict[str, Any]:
        """Return what another process adds to its own (`page`); dropped_lines: of the log."""
        return {
            "requests": dict(self._requests),
            "judged": [[*key, n] for key, n in self._judged.items()],
            "errors": dict(self._errors),
            "bytes": self._bytes,
            "times": self._times,
            "seconds": self._seconds,
            "dropped": dropped_lines,
            "cpu": time.process_time(),
            "resident": resident_memory(),
        }

    def add(self, other: Mapping[str, Any]) -> None:
        """Add the counts of another process, whose `snapshot` it is."""
        self._requests.update(other["requests"])
        self._judged.update({(command, verdict): n for command, verdict, n in other["judged"]})
        self._errors.update(other["errors"])
        self._bytes += other["bytes"]
        self._times = [a + b for a, b in zip(self._times, other["times"], strict=True)]
        self._seconds += other["seconds"]
        self._others_dropped += other["dropped"]
        self._others_cpu += other["cpu"]

    def others(self) -> dict[str, Any]:
        """Return a snapshot of what was added of other processes, which have ended."""
        known = {"cpu": self._others_cpu, "resident": 0}
        return self.snapshot(self._others_dropped) | known

    def page(self, state: State, others: Iterable[Mapping[str, Any]] = ()) -> str:
        """Return all metrics in the text format.

        others: the snapshots of other processes, which are added.
        """
        total = copy.deepcopy(self)
        for other in others:
            total.add(other)
            total._others_resident += other["resident"]
        return "".join(map(_family, total._families(state)))

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
            [({}, state.dropped_lines + self._others_dropped)],
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
        yield from _process_families(self._started, self._others_cpu, self._others_resident)

    def _histogram(self) -> "_Family":
        samples: list[_Sample] = []
        n = 0
        for end, times in zip((*map(str, _ENDS), "+Inf"), self._times, strict=True):
            n += times
            samples.append(("_bucket", {"le": end}, n))
        samples += [("_sum", {}, self._seconds), ("_count", {}, n)]
        text = "Seconds from a request read to its reply, of messages judged."
        return _Family("nbspam_judging_seconds", "histogram", text, samples)


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


def _process_families(started: float, cpu: float, memory: int) -> Iterator[_Family]:
    """Yield what all exporters say of their process, under the names that they share.

    cpu, memory: of the other workers.
    """
    yield _Family(
        "process_start_time_seconds",
        "gauge",
        "When the server was started, in seconds since 1970.",
        [("", {}, started)],
    )
    yield _Family(
        "process_cpu_seconds_total",
        "counter",
        "Time on the processor, without the process for large messages.",
        [("", {}, time.process_time() + cpu)],
    )
    if resident := resident_memory():
        yield _Family(
            "process_resident_memory_bytes",
            "gauge",
            "Memory in use, without the process for large messages.",
            [("", {}, resident + memory)],
        )


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
