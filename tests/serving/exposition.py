"""A strict reader of Prometheus's text format 0.0.4, after its specification."""

import re
from typing import NamedTuple

NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
SAMPLE = re.compile(
    r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{([^\n]*)\})? ([+-]?(?:Inf|NaN|[0-9.]+(?:e[+-]?[0-9]+)?))"
)
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\n"])*)"(?:,|\Z)')
UNITS = ("_seconds", "_bytes", "_total", "_info", "_connections", "_messages", "_models")


class Metric(NamedTuple):
    kind: str
    samples: dict


def metrics_of(page):
    """Return the metrics by name; each is checked against the format and the conventions."""
    assert page.endswith("\n")
    found, kind, name = {}, "", ""
    for line in page[:-1].split("\n"):
        if line.startswith("# HELP "):
            name, _, text = line.removeprefix("# HELP ").partition(" ")
            assert NAME.fullmatch(name)
            assert name not in found
            assert text.endswith((".", ")."))
            continue
        if line.startswith("# TYPE "):
            assert line.startswith(f"# TYPE {name} ")
            kind = line.rpartition(" ")[2]
            assert kind in ("counter", "gauge", "histogram")
            assert (kind == "counter") == name.endswith("_total")
            assert name.endswith(UNITS)
            found[name] = Metric(kind, {})
            continue
        match = SAMPLE.fullmatch(line)
        assert match, line
        suffix = match[1].removeprefix(name)
        assert suffix in (("_bucket", "_sum", "_count") if kind == "histogram" else ("",))
        labels = LABEL.findall(match[2] or "")
        assert ",".join(f'{key}="{value}"' for key, value in labels) == (match[2] or "")
        key = (suffix, *sorted(labels))
        assert key not in found[name].samples
        found[name].samples[key] = float(match[3])
    for metric in found.values():
        if metric.kind == "histogram":
            _check_histogram(metric.samples)
    return found


def _check_histogram(samples):
    ends = [(float(key[1][1]), n) for key, n in samples.items() if key[0] == "_bucket"]
    assert ends == sorted(ends)
    assert [n for _, n in ends] == sorted(n for _, n in ends)
    assert ends[-1] == (float("inf"), samples["_count",])


def value(found, name, **labels):
    return found[f"nbspam_{name}"].samples["", *sorted(labels.items())]
