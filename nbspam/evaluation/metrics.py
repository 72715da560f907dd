"""The metrics of the field, each with a 95 % interval.

`METRICS` lists them all, each in one entry: its key in the JSON, how its value and interval are
computed, and its line in the report.  To add a metric, add an entry.

Spam is the positive class throughout.  Rates are those of the TREC 2005-2007 spam tracks (Cormack
and Lynam, "TREC 2005 Spam Track Overview"): percentages, the smaller the better.

    hm%   ham misclassified = 100 fp / ham             (bh_pct, "blocked ham", is the same figure)
    sm%   spam misclassified = 100 fn / spam           (sc_pct, "spam caught", is 100 - sm%)
    lam%  100 logit^-1((logit hm + logit sm) / 2)      their logistic average
    1-ROCA%   100 x the share of (ham, spam) pairs in which the ham scores higher; ties count half
    sm@hm.1   sm% at the lowest cut-off that misclassifies at most 0.1 % of the ham

Errors are counted at P(spam) = 0.5, so that figures are comparable whatever the cut-offs are.  What
the verdicts with their cut-offs do is counted beside: ham blocked, spam missed (ham and unsure
alike, since neither is kept from the inbox), and unsure.

A rate of 0 or 1 has no logit.  For lam%, half an error more in one message more is counted then, as
the CEAS 2007 contest did (the TREC tracks left it undefined).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nbspam.bayes.matrix import Floats
from nbspam.evaluation.intervals import Interval, mean_interval, percentile_interval, wilson
from nbspam.evaluation.samples import Ranking, Sample, ScoredMessages, VerdictCounts

HAM_LOSS = 0.001  # of sm@hm.1
# Probabilities are kept this far from 0 in the log-loss, so that one certain mistake is finite.
LOG_LOSS_FLOOR = 1e-12
_RESAMPLES = 200, 1_000  # at least and at most
_RESAMPLED_LIMIT = 20_000_000  # resamples x messages: time, about 0.4 s


class Figure(NamedTuple):
    """The value of a metric; None where it is undefined, as a rate of no messages is."""

    value: float | int | None
    interval: Interval | None = None


UNDEFINED = Figure(None)

# How a metric's value and interval are computed.


class Count(NamedTuple):
    """A plain number, without an interval."""

    number: Callable[[ScoredMessages], float | int]

    def figure(self, messages: ScoredMessages) -> Figure:
        """Return the number."""
        return Figure(self.number(messages))


class Share(NamedTuple):
    """A share, with Wilson's interval."""

    hits: Callable[[VerdictCounts], int]
    of: Callable[[VerdictCounts], int]
    scale: int = 100  # 1: a share from 0 to 1; 100: a percentage
    of_verdicts: bool = False  # counted with the cut-offs, not at the threshold

    def figure(self, messages: ScoredMessages) -> Figure:
        """Return the share among these messages."""
        return self.of_counts(messages.verdicts if self.of_verdicts else messages.counts)

    def of_counts(self, counts: VerdictCounts) -> Figure:
        """Return the share that these counts give."""
        hits, of = self.hits(counts), self.of(counts)
        interval = wilson(hits, of)
        if interval is None:
            return UNDEFINED
        low, high = interval
        return Figure(self.scale * hits / of, (self.scale * low, self.scale * high))


class Mean(NamedTuple):
    """A mean over the messages, with the normal interval."""

    losses: Callable[[ScoredMessages], Floats]  # (n,), not negative

    def figure(self, messages: ScoredMessages) -> Figure:
        """Return the mean over these messages."""
        losses = self.losses(messages)
        return Figure(float(losses.mean()), mean_interval(losses)) if len(losses) else UNDEFINED


class Resampled(NamedTuple):
    """A statistic of both classes that has no simple interval: a bootstrap gives it.

    It has no `figure` of its own: each resample is drawn once for all such metrics.
    """

    statistic: Callable[[Sample], float]


class ReportLine(NamedTuple):
    """How the report shows a metric."""

    name: str
    meaning: str
    scale: int = 1  # by which the figure is multiplied for the report


class Metric(NamedTuple):
    """A metric: all there is to know of it."""

    key: str  # in the JSON, with the interval as KEY_ci
    computation: Count | Share | Mean | Resampled
    line: ReportLine | None = None  # None: not in the report
    any_classes: bool = False  # defined without a class that is called spam, too

    @property
    def is_of_verdicts(self) -> bool:
        """Whether it says what the verdicts with their cut-offs do."""
        return isinstance(self.computation, Share) and self.computation.of_verdicts


def matthews(counts: VerdictCounts) -> float:
    """Return Matthews' correlation coefficient, 0 where a margin is empty (Matthews 1975)."""
    tp, fp, fn, tn = counts.tp, counts.fp, counts.fn, counts.tn
    below = float(tp + fp) * float(tp + fn) * float(tn + fp) * float(tn + fn)
    return float((tp * tn - fp * fn) / below**0.5) if below > 0 else 0.0


def f1(counts: VerdictCounts) -> float:
    """Return the harmonic mean of precision and recall, 2 tp / (2 tp + fp + fn); 0 of no spam."""
    below = 2 * counts.tp + counts.fp + counts.fn
    return 2 * counts.tp / below if below else 0.0


def lam_pct(counts: VerdictCounts) -> float:
    """Return the logistic average of the two misclassification rates, in percent."""
    fp, ham, fn, spam = counts.fp, counts.ham, counts.fn, counts.spam
    if 0 < fp < ham and 0 < fn < spam:
        hm, sm = fp / ham, fn / spam
    else:
        hm, sm = (fp + 0.5) / (ham + 1), (fn + 0.5) / (spam + 1)
    odds = (hm / (1 - hm) * sm / (1 - sm)) ** 0.5
    return float(100 * odds / (1 + odds))


def one_minus_roca_pct(sample: Sample) -> float:
    """Return 100 (1 - U / (spam x ham)), the share of pairs ranked wrongly, in percent.

    U counts the (ham, spam) pairs in which the spam scores higher, ties half (Mann and Whitney
    1947).  It is exact: a multiple of 1/2, and far below 2^52.
    """
    ham_below = np.cumsum(sample.ham_at) - sample.ham_at / 2
    ranked_rightly = (sample.spam_at * ham_below).sum()
    return float(100 * (1 - ranked_rightly / (sample.counts.spam * sample.counts.ham)))


def sm_pct_at_hm(sample: Sample, ham_loss: float = HAM_LOSS) -> float:
    """Return sm% at the lowest cut-off above which lies no more than `ham_loss` of the ham."""
    kept = sample.counts.ham - int(sample.counts.ham * ham_loss)
    cut_off = int(np.searchsorted(np.cumsum(sample.ham_at), kept))
    return float(100 * (sample.spam_at[: cut_off + 1].sum() / sample.counts.spam))


def log_losses(messages: ScoredMessages) -> Floats:
    """Return -log P(own class) of each message, in nats: (n,)."""
    return -np.log(np.maximum(messages.own_probability, LOG_LOSS_FLOOR))


def squared_errors(messages: ScoredMessages) -> Floats:
    """Return the squared error of P(spam) of each message: (n,)  (Brier 1950)."""
    return (messages.probability - messages.spam) ** 2


# In the order of the JSON and of the report.
METRICS = (
    Metric("messages", Count(lambda m: m.counts.messages), any_classes=True),
    Metric("spam", Count(lambda m: m.counts.spam)),
    Metric("ham", Count(lambda m: m.counts.ham)),
    Metric("threshold", Count(lambda m: m.threshold), any_classes=True),
    Metric(
        "accuracy",
        Share(lambda c: c.right, lambda c: c.messages, scale=1),
        ReportLine("accuracy%", "correct verdicts", scale=100),
        any_classes=True,
    ),
    Metric(
        "mcc",
        Resampled(lambda s: matthews(s.counts)),
        ReportLine("MCC", "Matthews correlation coefficient, 1 is perfect"),
    ),
    Metric(
        "precision",
        Share(lambda c: c.tp, lambda c: c.tp + c.fp, scale=1),
        ReportLine("precision", "of what is called spam, the share that is"),
    ),
    Metric(
        "recall",
        Share(lambda c: c.tp, lambda c: c.spam, scale=1),
        ReportLine("recall", "of the spam, the share that is called spam"),
    ),
    Metric(
        "f1",
        Resampled(lambda s: f1(s.counts)),
        ReportLine("F1", "harmonic mean of precision and recall"),
    ),
    Metric("sc_pct", Share(lambda c: c.tp, lambda c: c.spam), ReportLine("SC%", "spam caught")),
    Metric("bh_pct", Share(lambda c: c.fp, lambda c: c.ham), ReportLine("BH%", "ham blocked")),
    Metric("sm_pct", Share(lambda c: c.fn, lambda c: c.spam)),
    Metric("hm_pct", Share(lambda c: c.fp, lambda c: c.ham)),
    Metric(
        "lam_pct",
        Resampled(lambda s: lam_pct(s.counts)),
        ReportLine("lam%", "logistic average of spam missed and ham blocked"),
    ),
    Metric(
        "one_minus_roca_pct",
        Resampled(one_minus_roca_pct),
        ReportLine("1-ROCA%", "(ham, spam) pairs ranked wrongly"),
    ),
    Metric(
        "sm_pct_at_hm_0_1",
        Resampled(sm_pct_at_hm),
        ReportLine("sm@hm.1", "spam missed when at most 0.1 % of ham is blocked"),
    ),
    Metric(
        "log_loss",
        Mean(log_losses),
        ReportLine("log-loss", "nats per message"),
        any_classes=True,
    ),
    Metric("brier", Mean(squared_errors), ReportLine("Brier", "mean squared error of P(spam)")),
    Metric("tp", Count(lambda m: m.counts.tp)),
    Metric("fp", Count(lambda m: m.counts.fp)),
    Metric("fn", Count(lambda m: m.counts.fn)),
    Metric("tn", Count(lambda m: m.counts.tn)),
    Metric(
        "verdict_bh_pct",
        Share(lambda c: c.fp, lambda c: c.ham, of_verdicts=True),
        ReportLine("verdict BH%", "ham blocked"),
    ),
    Metric(
        "verdict_sm_pct",
        Share(lambda c: c.fn, lambda c: c.spam, of_verdicts=True),
        ReportLine("verdict SM%", "spam missed"),
    ),
    Metric(
        "unsure_pct",
        Share(lambda c: c.unsure, lambda c: c.messages, of_verdicts=True),
        ReportLine("unsure%", "unsure"),
        any_classes=True,
    ),
)
_LEFT_OUT_RATES = ("accuracy", "sc_pct", "bh_pct", "verdict_bh_pct", "verdict_sm_pct", "unsure_pct")


class ReportRow(NamedTuple):
    """A figure as people read it: a percentage where its name says so."""

    name: str
    value: float
    interval: Interval | None
    meaning: str

    def sentence(self) -> str:
        """Return the percentage in words, with its interval."""
        return f"{self.meaning} {self.percentage()}"

    def percentage(self) -> str:
        """Return the percentage with its interval."""
        ends = "" if self.interval is None else " ({:.2f} to {:.2f})".format(*self.interval)
        return f"{self.value:.2f} %{ends}"


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
        return {m.key: self.by_key[m.key].interval for m in self._with_interval()}

    def as_json(self) -> dict[str, float | int | list[float] | None]:
        """Return the figures, each followed by its interval as `KEY_ci`."""
        intervals = self.intervals
        fields: dict[str, float | int | list[float] | None] = {}
        for key, value in self.values.items():
            fields[key] = value
            if key in intervals:
                interval = intervals[key]
                fields[f"{key}_ci"] = None if interval is None else list(interval)
        return fields

    def rows(self, of_verdicts: bool = False) -> Iterator[ReportRow]:
        """Yield the figures of the report that are defined.

        of_verdicts: those of the verdicts with their cut-offs, rather than all others.
        """
        for metric in METRICS:
            if metric.is_of_verdicts != of_verdicts:
                continue
            value, interval = self.by_key.get(metric.key, UNDEFINED)
            if metric.line is not None and value is not None:
                name, meaning, scale = metric.line
                scaled = interval and (scale * interval[0], scale * interval[1])
                yield ReportRow(name, scale * value, scaled, meaning)

    def _with_interval(self) -> Iterator[Metric]:
        for metric in METRICS:
            if metric.key in self.by_key and not isinstance(metric.computation, Count):
                yield metric


def figures(messages: ScoredMessages) -> Figures:
    """Return the figures of all metrics."""
    resampled = _resampled(messages)
    by_key: dict[str, Figure] = {}
    for key, computation, _, any_classes in METRICS:
        if not (any_classes or messages.has_spam_class):
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
    return Figures(
        {
            metric.key: metric.computation.of_counts(verdicts if metric.is_of_verdicts else counts)
            for metric in METRICS
            if metric.key in _LEFT_OUT_RATES and isinstance(metric.computation, Share)
        }
    )


def _resampled(messages: ScoredMessages) -> dict[str, Figure]:
    """Return the figures that need a bootstrap; UNDEFINED unless there are spam and ham."""
    statistics = {
        metric.key: metric.computation.statistic
        for metric in METRICS
        if isinstance(metric.computation, Resampled)
    }
    if not 0 < messages.counts.spam < len(messages):
        return dict.fromkeys(statistics, UNDEFINED)
    ranking = Ranking(messages)
    drawn: dict[str, list[float]] = {key: [] for key in statistics}
    fewest, most = _RESAMPLES
    for sample in ranking.draw(max(fewest, min(most, _RESAMPLED_LIMIT // len(messages)))):
        for key, statistic in statistics.items():
            drawn[key].append(statistic(sample))
    whole = ranking.whole()
    return {
        key: Figure(statistic(whole), percentile_interval(drawn[key]))
        for key, statistic in statistics.items()
    }
