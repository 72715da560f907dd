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
rates made of both classes) the percentile bootstrap's.  Such a metric is a function of a `Sample`:
the sample that holds each message once gives its value; samples drawn with replacement give its
interval.

tp, fp, fn, tn: the counts of spam called spam, ham called spam, spam called ham, ham called ham.

A rate of 0 or 1 has no logit.  For lam%, half an error more in one message more is counted then, as
the CEAS 2007 contest did (the TREC tracks left it undefined).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from nbspam.bayes.matrix import Booleans, Floats, Integers
from nbspam.names import UNSURE

_RESAMPLES = 200, 1_000  # at least and at most
_RESAMPLED_LIMIT = 20_000_000  # resamples x messages: time, about 0.4 s
SEED = 0  # of whatever is random, unless another is given
HAM_LOSS = 0.001  # of sm@hm.1
# Probabilities are kept this far from 0 in the log-loss, so that one certain mistake is finite: it
# costs 27.6 nats.  scikit-learn does so too, at 2.2e-16 (36.0 nats).
LOG_LOSS_FLOOR = 1e-12
_Z = 1.959963984540054  # standard normal quantile at 0.975
_SCORE_EDGES = np.arange(-14, 15, 2)  # nats; beyond them P(spam) is within 1e-6 of 0 or 1

Interval = tuple[float, float]


class VerdictCounts(NamedTuple):
    """How many messages got which verdict; those of spam are 0 where no class is called spam."""

    messages: int
    right: int  # over all classes
    tp: int  # spam called spam
    fp: int  # ham (any other class) called spam
    fn: int
    tn: int
    unsure: int = 0  # of the messages not called spam

    @property
    def spam(self) -> int:
        """How many messages are spam."""
        return self.tp + self.fn

    @property
    def ham(self) -> int:
        """How many messages are of another class."""
        return self.fp + self.tn

    @property
    def called(self) -> int:
        """How many messages are called spam."""
        return self.tp + self.fp

    @property
    def errors(self) -> int:
        """How many messages are called what they are not."""
        return self.messages - self.right

    @property
    def errors_interval(self) -> Interval | None:
        """The 95 % interval of the errors, for as many messages."""
        share = wilson(self.errors, self.messages)
        return share and (self.messages * share[0], self.messages * share[1])


def count_verdicts(pairs: Iterable[tuple[str, str]], positive: str | None) -> VerdictCounts:
    """Return the counts of (label, verdict) pairs.

    positive: the class that is spam; None if there is none.
    """
    right = unsure = 0
    cells = [[0, 0], [0, 0]]
    for label, verdict in pairs:
        right += label == verdict
        unsure += verdict == UNSURE
        cells[label == positive][verdict == positive] += 1
    (tn, fp), (fn, tp) = cells
    of_spam = (tp, fp, fn, tn) if positive is not None else (0, 0, 0, 0)
    return VerdictCounts(tp + fp + fn + tn, right, *of_spam, unsure)


@dataclass(frozen=True)
class ScoredMessages:
    """The messages of an evaluation, with their scores and verdicts; all arrays are (n,).

    Errors are counted at a threshold, 0.5, whatever the cut-offs of the verdicts; of three or more
    classes a message is called the most probable.
    """

    spam: Booleans  # what each message is
    log_odds: Floats  # of spam; only their order counts, so any unit will do
    probability: Floats  # P(spam)
    called_spam: Booleans  # at the threshold
    # The probability above which a message is called spam; reported, not used.  None of three or
    # more classes, where it takes the highest.
    threshold: float | None
    right: Booleans  # whether each is called what it is, over all classes
    own_probability: Floats  # P(the class that the message is of)
    verdicts: VerdictCounts  # with the cut-offs
    has_spam_class: bool = True  # without one, only metrics of any classes are defined

    @classmethod
    def of_two_classes(
        cls,
        spam: Booleans,
        log_odds: Floats,
        probability: Floats,
        called_spam: Booleans,
        threshold: float,
        verdicts: VerdictCounts | None = None,
    ) -> "ScoredMessages":
        """Return messages of spam and ham; whatever is not called spam is called ham.

        verdicts: None for a filter without cut-offs, whose verdicts are what it calls a message.
        """
        right, own = called_spam == spam, np.where(spam, probability, 1 - probability)
        verdicts = verdicts or _counts(spam, called_spam, right)
        return cls(spam, log_odds, probability, called_spam, threshold, right, own, verdicts)

    def __len__(self) -> int:
        return len(self.spam)

    @cached_property
    def counts(self) -> VerdictCounts:
        """How many are called what at the threshold."""
        return _counts(self.spam, self.called_spam, self.right)

    def calibration(self) -> "list[CalibrationBin]":
        """Return the bins of P(spam); none without a class that is called spam."""
        return calibration_bins(self.spam, self.probability) if self.has_spam_class else []


def _counts(spam: Booleans, called_spam: Booleans, right: Booleans) -> VerdictCounts:
    of_spam = (called_spam & spam, called_spam & ~spam, ~called_spam & spam, ~called_spam & ~spam)
    return VerdictCounts(len(spam), int(right.sum()), *(int(each.sum()) for each in of_spam))


class Sample(NamedTuple):
    """Messages of both classes: how many got which verdict, and how many got which score.

    The distinct scores are those of the whole evaluation, lowest first; a resample may have no
    message at some of them.
    """

    counts: VerdictCounts
    spam_at: Integers  # (n_scores,), spam with each score
    ham_at: Integers  # (n_scores,), ham with each score


class Ranking:
    """Scored messages of both classes, to draw samples from.

    Rankings of the same messages by several filters draw the same samples, message by message.
    """

    def __init__(self, messages: ScoredMessages) -> None:
        spam, called = messages.spam, messages.called_spam
        scores, score = np.unique(messages.log_odds, return_inverse=True)
        # Of each class, in order: the index of each message's score, and whether it is called spam.
        self._spam, self._ham = ((score[of], called[of]) for of in (spam, ~spam))
        self._n_scores = len(scores)

    def whole(self) -> Sample:
        """Return the sample that holds each message once."""
        return self._sample(*(np.arange(len(scores)) for scores, _ in (self._spam, self._ham)))

    def draw(self, times: int, seed: int = SEED) -> Iterator[Sample]:
        """Yield samples drawn with replacement.

        Each class is resampled by itself (whoever made the evaluation chose the mix).  The same
        seed and scores give the same samples, and so the same report.
        """
        random = np.random.default_rng(seed)
        n_spam, n_ham = len(self._spam[0]), len(self._ham[0])
        for _ in range(times):
            spam_rows = random.integers(n_spam, size=n_spam)
            yield self._sample(spam_rows, random.integers(n_ham, size=n_ham))

    def _sample(self, spam_rows: Integers, ham_rows: Integers) -> Sample:
        """Return the sample of these messages, given by their places in their class."""
        (spam, spam_called), (ham, ham_called) = self._spam, self._ham
        tp = int(np.count_nonzero(spam_called[spam_rows]))
        fp = int(np.count_nonzero(ham_called[ham_rows]))
        fn, tn = len(spam_rows) - tp, len(ham_rows) - fp
        counts = VerdictCounts(tp + fp + fn + tn, tp + tn, tp, fp, fn, tn)
        spam_at = np.bincount(spam[spam_rows], minlength=self._n_scores)
        return Sample(counts, spam_at, np.bincount(ham[ham_rows], minlength=self._n_scores))


# 95 % intervals


def wilson(hits: int, of: int) -> Interval | None:
    """Return the score interval of the share hits / of (Wilson 1927); None where `of` is 0."""
    if not of:
        return None
    share, z2 = hits / of, _Z**2
    middle = share + z2 / (2 * of)
    half = _Z * ((share * (1 - share) + z2 / (4 * of)) / of) ** 0.5
    # With no hits the lower end is exactly 0, and with nothing but hits the upper end is exactly 1.
    low = 0.0 if not hits else max(0.0, (middle - half) / (1 + z2 / of))
    high = 1.0 if hits == of else min(1.0, (middle + half) / (1 + z2 / of))
    return low, high


def mean_interval(losses: Floats) -> Interval | None:
    """Return the normal interval of the mean of non-negative numbers; None for fewer than two.

    losses: (n,).
    """
    if len(losses) < 2:
        return None
    mean, error = float(losses.mean()), float(losses.std(ddof=1)) / len(losses) ** 0.5
    return max(0.0, mean - _Z * error), mean + _Z * error


def percentile_interval(resampled: Sequence[float]) -> Interval:
    """Return the percentile bootstrap interval (Efron and Tibshirani 1993, chapter 13).

    resampled: the statistic's value in each resample, one or more.
    """
    return float(np.percentile(resampled, 2.5)), float(np.percentile(resampled, 97.5))


# Formulas


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
    """Return 100 (1 - U / (spam x ham)), the share of pairs ranked incorrectly, in percent.

    U counts the (ham, spam) pairs in which the spam scores higher, ties half (Mann and Whitney
    1947).  It is exact: a multiple of 1/2, and far below 2^52.
    """
    ham_below = np.cumsum(sample.ham_at) - sample.ham_at / 2
    ranked_rightly = (sample.spam_at * ham_below).sum()
    return float(100 * (1 - ranked_rightly / (sample.counts.spam * sample.counts.ham)))


def auc(sample: Sample) -> float:
    """Return the area under the ROC curve: the share of (ham, spam) pairs ranked correctly.

    It equals U / (spam x ham) (Hanley and McNeil 1982), so it is 1 - one_minus_roca_pct / 100.
    """
    return 1 - one_minus_roca_pct(sample) / 100


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


# Bins


class CalibrationBin(NamedTuple):
    """The messages whose P(spam) lies in a range: what was predicted and what was observed."""

    low: float
    high: float
    messages: int
    mean_probability: float  # predicted
    spam_share: float  # observed


def calibration_bins(spam: Booleans, probability: Floats, n_bins: int = 10) -> list[CalibrationBin]:
    """Return the bins of equal width that hold a message, lowest first.

    spam, probability: (n,), what each message is, and its P(spam).
    """
    which = np.minimum((probability * n_bins).astype(int), n_bins - 1)
    found = []
    for k in np.unique(which).tolist():
        own, ends = which == k, (k / n_bins, (k + 1) / n_bins)
        means = float(probability[own].mean()), float(spam[own].mean())
        found.append(CalibrationBin(*ends, int(own.sum()), *means))
    return found


def calibration_error(bins: Sequence[CalibrationBin]) -> float:
    """Return the expected calibration error: the mean gap of the bins, weighted by their messages.

    Naeini, Cooper and Hauskrecht 2015.
    """
    total = sum(b.messages for b in bins)
    gaps = (abs(b.mean_probability - b.spam_share) * b.messages for b in bins)
    return sum(gaps) / total if total else 0.0


class ScoreBin(NamedTuple):
    """The messages whose log-odds lie in a range."""

    low: float  # nats
    high: float
    ham: int
    spam: int


def score_distribution(spam: Booleans, log_odds: Floats) -> list[ScoreBin]:
    """Return the histogram of the scores, lowest first; the outer bins also hold what is beyond.

    spam, log_odds: (n,), what each message is, and its score in nats.
    """
    edges = _SCORE_EDGES
    clipped = np.clip(log_odds, edges[0], edges[-1] - 1e-9)
    ham, spams = (np.histogram(clipped[of], edges)[0].tolist() for of in (~spam, spam))
    ends = edges.astype(float).tolist()
    return list(map(ScoreBin, ends[:-1], ends[1:], ham, spams))


# The metrics


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


class Share(NamedTuple):
    """A share, with Wilson's interval.  hits, all: names of counts."""

    hits: str
    all: str
    scale: int = 100  # 1: a share from 0 to 1; 100: a percentage
    of_verdicts: bool = False  # counted with the cut-offs, not at the threshold

    def of_counts(self, at_threshold: VerdictCounts, verdicts: VerdictCounts) -> Figure:
        """Return the share that these counts give."""
        counts = verdicts if self.of_verdicts else at_threshold
        hits, n = getattr(counts, self.hits), getattr(counts, self.all)
        if (ends := wilson(hits, n)) is None:
            return UNDEFINED
        scaled = self.scale * ends[0], self.scale * ends[1]
        return Figure(self.scale * hits / n, scaled, (hits, n))


class Mean(NamedTuple):
    """A mean over the messages, with the normal interval."""

    losses: Callable[[ScoredMessages], Floats]  # (n,), not negative


class Resampled(NamedTuple):
    """A statistic of both classes that has no simple interval: a bootstrap gives it."""

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


_F1, _LAM, _MCC = map(_of_counts, (f1, lam_pct, matthews))
_ROCA, _SM_AT_HM = Resampled(one_minus_roca_pct), Resampled(sm_pct_at_hm)
_BRIER = Mean(squared_errors)
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
    Metric("auc", Resampled(auc), GENERAL, "AUC", "(ham, spam) pairs ranked correctly"),
    Metric("mcc", _MCC, GENERAL, "MCC", "Matthews correlation coefficient"),
    Metric("log_loss", Mean(log_losses), GENERAL, "log-loss", "nats per message"),
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
        elif isinstance(computation, Share):
            by_key[key] = computation.of_counts(messages.counts, messages.verdicts)
        elif isinstance(computation, Mean):
            losses = computation.losses(messages)
            mean = float(losses.mean()) if len(losses) else None
            by_key[key] = Figure(mean, mean_interval(losses))
        elif isinstance(computation, Count):
            by_key[key] = Figure(computation.number(messages))
        else:
            by_key[key] = resampled[key]
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
        key: Figure(statistic(whole), percentile_interval(drawn[key]))
        for key, statistic in statistics.items()
    }
