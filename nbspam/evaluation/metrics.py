"""The metrics of the field, each with a 95 % interval.

`METRICS` lists them all, each in one entry: its key in the JSON, how its value and interval are
computed, and its line in the report.  To add a metric, add an entry.

Spam is the positive class throughout.  First come the figures of any classifier: accuracy,
precision, recall, F1, the area under the ROC curve (AUC), MCC, log-loss, Brier score.  The rates
after them are those of the TREC 2005-2007 spam tracks (Cormack and Lynam, "TREC 2005 Spam Track
Overview"): percentages, the smaller the better.

    hm%   ham misclassified = 100 fp / ham             (bh_pct, "blocked ham", is the same figure)
    sm%   spam misclassified = 100 fn / spam           (sc_pct, "spam caught", is 100 - sm%)
    lam%  100 logit^-1((logit hm + logit sm) / 2)      their logistic average
    1-ROCA%   100 x the share of (ham, spam) pairs in which the ham scores higher; ties count half
    sm@hm.1   sm% at the lowest cut-off that misclassifies at most 0.1 % of the ham

Errors are counted at P(spam) = 0.5, so that figures are comparable whatever the cut-offs are.  What
the verdicts with their cut-offs do is counted beside: ham blocked, spam missed (ham and unsure
alike, since neither is kept from the inbox), and unsure.  Of three or more classes a message is
called the most probable one, accuracy and log-loss are over all of them, and the other figures are
of the spam class against the rest.

Shares have Wilson's interval, means the normal one, and what has neither (F1, AUC, MCC and the
rates made of both classes) the percentile bootstrap's (`samples.py` has the sources).

A rate of 0 or 1 has no logit.  For lam%, half an error more in one message more is counted then, as
the CEAS 2007 contest did (the TREC tracks left it undefined).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from nbspam.bayes.matrix import Floats
from nbspam.evaluation import samples
from nbspam.evaluation.samples import (
    SEED,
    Interval,
    Ranking,
    Sample,
    ScoredMessages,
    VerdictCounts,
    wilson,
)

_RESAMPLES = 200, 1_000  # at least and at most
_RESAMPLED_LIMIT = 20_000_000  # resamples x messages: time, about 0.4 s


class Figure(NamedTuple):
    """The value of a metric; None where it is undefined, as a rate of no messages is."""

    value: float | int | None
    interval: Interval | None = None
    counts: tuple[int, int] | None = None  # of a share: how many, of how many


UNDEFINED = Figure(None)

# How a metric's value and interval are computed.


class Count(NamedTuple):
    """A plain number, without an interval."""

    number: Callable[[ScoredMessages], float | int | None]

    def figure(self, messages: ScoredMessages) -> Figure:
        """Return the number."""
        return Figure(self.number(messages))


class Share(NamedTuple):
    """A share, with Wilson's interval.  hits, all: names of counts."""

    hits: str
    all: str
    scale: int = 100  # 1: a share from 0 to 1; 100: a percentage
    of_verdicts: bool = False  # counted with the cut-offs, not at the threshold

    def figure(self, messages: ScoredMessages) -> Figure:
        """Return the share among these messages."""
        return self.of_counts(messages.counts, messages.verdicts)

    def of_counts(self, at_threshold: VerdictCounts, verdicts: VerdictCounts) -> Figure:
        """Return the share that these counts give."""
        counts = verdicts if self.of_verdicts else at_threshold
        hits, n = getattr(counts, self.hits), getattr(counts, self.all)
        interval = wilson(hits, n)
        if interval is None:
            return UNDEFINED
        ends = self.scale * interval[0], self.scale * interval[1]
        return Figure(self.scale * hits / n, ends, (hits, n))


class Mean(NamedTuple):
    """A mean over the messages, with the normal interval."""

    losses: Callable[[ScoredMessages], Floats]  # (n,), not negative

    def figure(self, messages: ScoredMessages) -> Figure:
        """Return the mean over these messages."""
        losses = self.losses(messages)
        return (
            Figure(float(losses.mean()), samples.mean_interval(losses))
            if len(losses)
            else UNDEFINED
        )


class Resampled(NamedTuple):
    """A statistic of both classes that has no simple interval: a bootstrap gives it.

    It has no `figure` of its own: each resample is drawn once for all such metrics.
    """

    statistic: Callable[[Sample], float]


# The parts of the report.
GENERAL = "general"  # the figures of any classifier
TRACK = "track"  # those of the TREC spam tracks
VERDICTS = "verdicts"  # what the verdicts with their cut-offs do


class Metric(NamedTuple):
    """A metric: all there is to know of it."""

    key: str  # in the JSON, with the interval as KEY_ci
    computation: Count | Share | Mean | Resampled
    part: str = ""  # of the report, which has those with a part
    name: str = ""
    meaning: str = ""
    of: str = ""  # of a share: what it is a share of, as "12 of 300 spam" names it


def _of_counts(formula: Callable[[VerdictCounts], float]) -> Resampled:
    return Resampled(lambda sample: formula(sample.counts))


_F1, _LAM, _MCC = map(_of_counts, (samples.f1, samples.lam_pct, samples.matthews))
_ROCA, _SM_AT_HM = Resampled(samples.one_minus_roca_pct), Resampled(samples.sm_pct_at_hm)
_BRIER = Mean(samples.squared_errors)
_BLOCKED, _MISSED = (Share(*s, of_verdicts=True) for s in (("fp", "ham"), ("fn", "spam")))
_UNSURE = Share("unsure", "messages", of_verdicts=True)

# In the order of the JSON and of the report.
METRICS = (
    Metric("messages", Count(lambda m: m.counts.messages)),
    Metric("spam", Count(lambda m: m.counts.spam)),
    Metric("ham", Count(lambda m: m.counts.ham)),
    Metric("threshold", Count(lambda m: m.threshold)),
    Metric("accuracy", Share("right", "messages", 1), GENERAL, "accuracy", "correct", "messages"),
    Metric("precision", Share("tp", "called", 1), GENERAL, "precision", "right", "called spam"),
    Metric("recall", Share("tp", "spam", 1), GENERAL, "recall", "called spam", "spam"),
    Metric("f1", _F1, GENERAL, "F1", "harmonic mean of precision and recall"),
    Metric("auc", Resampled(samples.auc), GENERAL, "AUC", "(ham, spam) pairs ranked correctly"),
    Metric("mcc", _MCC, GENERAL, "MCC", "Matthews correlation coefficient"),
    Metric("log_loss", Mean(samples.log_losses), GENERAL, "log-loss", "nats per message"),
    Metric("brier", _BRIER, GENERAL, "Brier", "mean squared error of P(spam)"),
    Metric("sc_pct", Share("tp", "spam"), TRACK, "SC%", "spam caught", "spam"),
    Metric("bh_pct", Share("fp", "ham"), TRACK, "BH%", "ham blocked", "ham"),
    Metric("sm_pct", Share("fn", "spam")),
    Metric("hm_pct", Share("fp", "ham")),
    Metric("lam_pct", _LAM, TRACK, "lam%", "logistic average of both error rates"),
    Metric("one_minus_roca_pct", _ROCA, TRACK, "1-ROCA%", "(ham, spam) pairs ranked incorrectly"),
    Metric(
        "sm_pct_at_hm_0_1", _SM_AT_HM, TRACK, "sm@hm.1", "spam missed with 0.1 % of ham blocked"
    ),
    Metric("tp", Count(lambda m: m.counts.tp)),
    Metric("fp", Count(lambda m: m.counts.fp)),
    Metric("fn", Count(lambda m: m.counts.fn)),
    Metric("tn", Count(lambda m: m.counts.tn)),
    Metric("verdict_bh_pct", _BLOCKED, VERDICTS, "blocked%", "ham blocked", "ham"),
    Metric("verdict_sm_pct", _MISSED, VERDICTS, "missed%", "spam missed", "spam"),
    Metric("unsure_pct", _UNSURE, VERDICTS, "unsure%", "unsure", "messages"),
)
# Those defined without a class that is called spam, too.
_OF_ANY_CLASSES = {"messages", "threshold", "accuracy", "log_loss", "unsure_pct"}
_LEFT_OUT_RATES = ("accuracy", "sc_pct", "bh_pct", "verdict_bh_pct", "verdict_sm_pct", "unsure_pct")


class ReportRow(NamedTuple):
    """A figure as people read it."""

    name: str
    value: float  # a percentage where the name says so
    interval: Interval | None
    meaning: str
    shown: str  # the meaning, and of a share how many of how many
    to_percent: int = 1  # by which value and interval are multiplied to be percentages

    def sentence(self) -> str:
        """Return the percentage in words, with its interval."""
        return f"{self.meaning} {self.percentage()}"

    def percentage(self) -> str:
        """Return the percentage with its interval."""
        ends = ""
        if self.interval is not None:
            low, high = (self.to_percent * end for end in self.interval)
            ends = f" ({low:.2f} to {high:.2f})"
        return f"{self.to_percent * self.value:.2f} %{ends}"


@dataclass(frozen=True)
class Figures:
    """Figures by the keys of their metrics: all of an evaluation's, or some."""

    by_key: dict[str, Figure]

    @property
    def values(self) -> dict[str, float | int | None]:
        """The values alone."""
        return {key: figure.value for key, figure in self.by_key.items()}

    @property
    def intervals(self) -> dict[str, Interval | None]:
        """The intervals alone, of the metrics that have one."""
        return {
            m.key: self.by_key[m.key].interval
            for m in METRICS
            if m.key in self.by_key and not isinstance(m.computation, Count)
        }

    def as_json(self) -> dict[str, object]:
        """Return the figures, each followed by its interval as `KEY_ci`."""
        intervals, fields = self.intervals, dict[str, object]()
        for key, value in self.values.items():
            fields[key] = value
            if key in intervals:
                fields[f"{key}_ci"] = intervals[key]
        return fields

    def rows(self, *chosen: str) -> Iterator[ReportRow]:
        """Yield the figures that are defined, of these parts of the report or with these names."""
        for key, computation, part, name, meaning, whole in METRICS:
            value, interval, counts = self.by_key.get(key, UNDEFINED)
            if value is not None and part and {part, name} & {*chosen}:
                is_share = isinstance(computation, Share) and computation.scale == 1
                shown = f"{meaning}, {counts[0]:,} of {counts[1]:,} {whole}" if counts else meaning
                yield ReportRow(name, value, interval, meaning, shown, 100 if is_share else 1)


def figures(messages: ScoredMessages, seed: int = SEED) -> Figures:
    """Return the figures of all metrics; seed: of the bootstrap."""
    resampled = _resampled(messages, seed)
    by_key: dict[str, Figure] = {}
    for key, computation, *_ in METRICS:
        if not messages.has_spam_class and key not in _OF_ANY_CLASSES:
            by_key[key] = UNDEFINED
        elif isinstance(computation, Resampled):
            by_key[key] = resampled[key]
        else:
            by_key[key] = computation.figure(messages)
    return Figures(by_key)


def left_out_rates(counts: VerdictCounts, verdicts: VerdictCounts) -> Figures:
    """Return the rates of the leave-one-out estimate.

    counts: at the threshold.  verdicts: with the cut-offs.
    """
    shares = {m.key: m.computation for m in METRICS if isinstance(m.computation, Share)}
    return Figures({key: shares[key].of_counts(counts, verdicts) for key in _LEFT_OUT_RATES})


def _resampled(messages: ScoredMessages, seed: int) -> dict[str, Figure]:
    """Return the figures that need a bootstrap; UNDEFINED unless there are spam and ham."""
    every = ((metric.key, metric.computation) for metric in METRICS)
    statistics = {key: c.statistic for key, c in every if isinstance(c, Resampled)}
    if not 0 < messages.counts.spam < len(messages):
        return dict.fromkeys(statistics, UNDEFINED)
    ranking = Ranking(messages)
    drawn: dict[str, list[float]] = {key: [] for key in statistics}
    fewest, most = _RESAMPLES
    for sample in ranking.draw(max(fewest, min(most, _RESAMPLED_LIMIT // len(messages))), seed):
        for key, statistic in statistics.items():
            drawn[key].append(statistic(sample))
    whole = ranking.whole()
    return {
        key: Figure(statistic(whole), samples.percentile_interval(drawn[key]))
        for key, statistic in statistics.items()
    }
