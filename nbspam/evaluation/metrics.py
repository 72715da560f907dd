"""The metrics, each with a 95 % interval.

`METRICS` has one entry for each: its key in the JSON, how its value and interval are computed, and
its line in the report.  To add a metric, add an entry.

Spam is the positive class.  Accuracy, precision, recall, F1, the area under the ROC curve (AUC),
MCC, log-loss and Brier score are the figures of any classifier.  The others are those of the TREC
2005-2007 spam tracks (Cormack and Lynam, "TREC 2005 Spam Track Overview"): percentages, the smaller
the better.

    hm%   ham misclassified = 100 fp / ham             (bh_pct, "blocked ham", is the same figure)
    sm%   spam misclassified = 100 fn / spam           (sc_pct, "spam caught", is 100 - sm%)
    lam%  100 logit^-1((logit hm + logit sm) / 2)      their logistic average
    1-ROCA%   100 x the share of (ham, spam) pairs in which the ham scores higher; ties count half
    sm@hm.1   sm% at the lowest cut-off that misclassifies at most 0.1 % of the ham

Errors are counted at P(spam) = 0.5, so that figures are comparable whatever the cut-offs are.
Verdicts, which follow the cut-offs, are counted separately: ham blocked, spam missed (called ham or
unsure, since both reach the inbox), and unsure.  With three or more classes a message is assigned
to the most probable one; accuracy, errors and log-loss are over all classes, and the other figures
compare the spam class with the rest.

Shares have Wilson's interval, means the normal one, and what has neither (F1, AUC, MCC and the
rates made of both classes) the percentile bootstrap's.  Such a metric is a function of a `Sample`:
the sample that holds each message once gives its value; samples drawn with replacement give its
interval.

tp, fp, fn, tn: the counts of spam called spam, ham called spam, spam called ham, ham called ham.

A rate of 0 or 1 has no logit.  For lam%, half an error more in one message more is counted then, as
the CEAS 2007 contest did (the TREC tracks left it undefined).
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nbspam.bayes.matrix import Booleans, Floats, Integers
from nbspam.names import UNSURE

_RESAMPLES = 200, 1_000  # at least and at most
_RESAMPLED_LIMIT = 20_000_000  # resamples x messages: time, about 0.4 s
SEED = 0  # of whatever is random, unless another is given
# P(spam) above which a message is called spam, where errors are counted in two classes.
THRESHOLD = 0.5
HAM_LOSS = 0.001  # of sm@hm.1
# Probabilities are kept this far from 0 in the log-loss, so that one certain mistake is finite: it
# costs 27.6 nats.  scikit-learn does so too, at 2.2e-16 (36.0 nats).
LOG_LOSS_FLOOR = 1e-12
_BINS = 10  # of the calibration
_Z = 1.959963984540054  # standard normal quantile at 0.975
_SCORE_EDGES = np.arange(-14, 15, 2)  # nats; beyond them P(spam) is within 1e-6 of 0 or 1

Interval = tuple[float, float]


class VerdictCounts(NamedTuple):
    """Counts of messages by label and verdict; 0 for spam if no class is called spam."""

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


# (label, verdict) -> messages.  Two classes may be True and False.
Called = Mapping[tuple[str, str], int] | Mapping[tuple[bool, bool], int]


def count_verdicts(called: Called, positive: str | bool | None) -> VerdictCounts:
    """Return the counts.

    positive: the class that is spam; None if there is none.
    """
    right = unsure = 0
    cells = [[0, 0], [0, 0]]
    for (label, verdict), n in called.items():
        right += n * (label == verdict)
        unsure += n * (verdict == UNSURE)
        cells[label == positive][verdict == positive] += n
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
    right: Booleans  # whether each is called what it is, over all classes
    p_true_class: Floats  # P(the class that the message is of)
    counts: VerdictCounts  # at the threshold
    verdicts: VerdictCounts  # with the cut-offs
    # The probability above which a message is called spam; reported, not used.  None of three or
    # more classes, where it takes the highest.
    threshold: float | None = THRESHOLD
    has_spam_class: bool = True  # without one, only metrics of any classes are defined

    @classmethod
    def binary(
        cls,
        spam: Booleans,
        log_odds: Floats,
        probability: Floats,
        verdicts: VerdictCounts | None = None,
    ) -> "ScoredMessages":
        """Return messages of spam and ham; a message that is not called spam is called ham.

        verdicts: None for a filter without cut-offs, whose verdicts are what it calls a message.
        """
        called = log_odds > 0
        counts = count_verdicts(Counter(zip(spam.tolist(), called.tolist(), strict=True)), True)
        p_true = np.where(spam, probability, 1 - probability)
        return cls(
            spam, log_odds, probability, called, called == spam, p_true, counts, verdicts or counts
        )

    def __len__(self) -> int:
        return len(self.spam)


class Sample(NamedTuple):
    """Messages of both classes: counts of verdicts, and of messages at each score.

    The distinct scores are those of the whole evaluation, lowest first; a resample may have none
    at some of them.
    """

    counts: VerdictCounts
    spam_at: Integers  # (n_scores,), spam with each score
    ham_at: Integers  # (n_scores,), ham with each score


def samples(messages: ScoredMessages, times: int = 0, seed: int = SEED) -> Iterator[Sample]:
    """Yield the sample that holds each message once, then so many drawn with replacement.

    Each class is resampled by itself, since the mix of classes was chosen and not drawn.  The same
    seed gives the same samples.  For several filters on the same messages, the same messages are
    drawn.
    """
    random = np.random.default_rng(seed)
    scores, score = np.unique(messages.log_odds, return_inverse=True)
    # Of spam and of ham: the index of each message's score, and whether it is called spam.
    of_class = messages.spam, ~messages.spam
    classes = [(score[mask], messages.called_spam[mask]) for mask in of_class]
    for i in range(times + 1):
        called_spam, at_scores = [], []
        for at, called in classes:
            rows = random.integers(len(at), size=len(at)) if i else slice(None)
            called_spam.append(int(np.count_nonzero(called[rows])))
            at_scores.append(np.bincount(at[rows], minlength=len(scores)))
        tp, fp = called_spam
        fn, tn = len(classes[0][0]) - tp, len(classes[1][0]) - fp
        yield Sample(VerdictCounts(len(messages), tp + tn, tp, fp, fn, tn), *at_scores)


# 95 % intervals


def wilson(hits: int, n: int) -> Interval | None:
    """Return the score interval of the share hits / n (Wilson 1927); None where n is 0."""
    if not n:
        return None
    share, z2 = hits / n, _Z**2
    middle = share + z2 / (2 * n)
    half = _Z * ((share * (1 - share) + z2 / (4 * n)) / n) ** 0.5
    # With no hits the lower end is exactly 0, and with nothing but hits the upper end is exactly 1.
    low = 0.0 if not hits else max(0.0, (middle - half) / (1 + z2 / n))
    high = 1.0 if hits == n else min(1.0, (middle + half) / (1 + z2 / n))
    return low, high


def mean_interval(losses: Floats) -> Interval | None:
    """Return the normal interval of the mean of non-negative numbers; None for fewer than two.

    losses: (n,).
    """
    if len(losses) < 2:
        return None
    mean, error = float(losses.mean()), float(losses.std(ddof=1)) / len(losses) ** 0.5
    return max(0.0, mean - _Z * error), mean + _Z * error


def percentile_interval(resampled: Floats) -> Interval:
    """Return the percentile bootstrap interval (Efron and Tibshirani 1993, chapter 13).

    resampled: the statistic's value in each resample, one or more.
    """
    low, high = np.percentile(resampled, (2.5, 97.5)).tolist()
    return low, high


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


def sm_pct_at_hm(sample: Sample) -> float:
    """Return sm% at the lowest cut-off above which lies no more than HAM_LOSS of the ham."""
    delivered = sample.counts.ham - int(sample.counts.ham * HAM_LOSS)
    cut_off = int(np.searchsorted(np.cumsum(sample.ham_at), delivered))
    return float(100 * (sample.spam_at[: cut_off + 1].sum() / sample.counts.spam))


# Bins


class CalibrationBin(NamedTuple):
    """The messages whose P(spam) lies in a range: what was predicted and what was observed."""

    low: float
    high: float
    messages: int
    mean_probability: float  # predicted
    spam_share: float  # observed


def calibration_bins(spam: Booleans, probability: Floats) -> list[CalibrationBin]:
    """Return the bins of equal width that hold a message, lowest first.

    spam, probability: (n,), what each message is, and its P(spam).
    """
    bin_of = np.minimum((probability * _BINS).astype(int), _BINS - 1)
    bins = []
    for k in np.unique(bin_of).tolist():
        members, ends = bin_of == k, (k / _BINS, (k + 1) / _BINS)
        means = float(probability[members].mean()), float(spam[members].mean())
        bins.append(CalibrationBin(*ends, int(members.sum()), *means))
    return bins


def calibration_error(bins: Sequence[CalibrationBin]) -> float:
    """Return the expected calibration error: the mean gap of the bins, weighted by their messages.

    Naeini, Cooper and Hauskrecht 2015.
    """
    total = sum(b.messages for b in bins)
    gaps = (abs(b.mean_probability - b.spam_share) * b.messages for b in bins)
    return sum(gaps) / total if total else 0.0


def score_distribution(messages: ScoredMessages) -> Iterator[tuple[float, float, int, int]]:
    """Yield the histogram of the scores, lowest first: from, to (in nats), and how many ham, spam.

    The outer bins also hold what is beyond.
    """
    edges = _SCORE_EDGES
    clipped = np.clip(messages.log_odds, edges[0], edges[-1] - 1e-9)
    counts = (
        np.histogram(clipped[mask], edges)[0].tolist() for mask in (~messages.spam, messages.spam)
    )
    ends = edges.astype(float).tolist()
    return zip(ends[:-1], ends[1:], *counts, strict=True)


# The metrics


class Figure(NamedTuple):
    """The value of a metric; None where it is undefined, as a rate of no messages is."""

    value: float | int | None
    interval: Interval | None = None
    counts: tuple[int, int] | None = None  # of a share: how many, of how many


UNDEFINED = Figure(None)

# How a metric's value and interval are computed.


class Share(NamedTuple):
    """A share, with Wilson's interval.  hits, all: names of counts."""

    hits: str
    all: str
    scale: int = 100  # 1: a share from 0 to 1; 100: a percentage; 0: the number of hits
    of_verdicts: bool = False  # counted with the cut-offs, not at the threshold

    def of_counts(self, at_threshold: VerdictCounts, verdicts: VerdictCounts) -> Figure:
        """Return the share that these counts give."""
        counts = verdicts if self.of_verdicts else at_threshold
        hits, n = getattr(counts, self.hits), getattr(counts, self.all)
        if (ends := wilson(hits, n)) is None:
            return UNDEFINED
        scale = self.scale or n
        value = scale * hits / n if self.scale else hits
        return Figure(value, (scale * ends[0], scale * ends[1]), (hits, n))


class Mean(NamedTuple):
    """A mean over the messages, with the normal interval."""

    losses: Callable[[ScoredMessages], Floats]  # (n,), not negative


class Resampled(NamedTuple):
    """A statistic of both classes that has no simple interval: a bootstrap gives it."""

    statistic: Callable[[Sample], float]


class WithoutInterval(NamedTuple):
    """A statistic of the messages that has no interval."""

    statistic: Callable[[ScoredMessages], float]


# The parts of the report.
GENERAL = "general"  # figures of any classifier
TRACK = "track"  # figures of the TREC spam tracks
VERDICTS = "verdicts"  # shares of verdicts, by the cut-offs


class Metric(NamedTuple):
    """A metric: how it is computed, and its line in the report."""

    key: str  # in the JSON, with the interval as KEY_ci
    # None: a number of messages, by the key.
    computation: Share | Mean | Resampled | WithoutInterval | None = None
    part: str = ""  # of the report, which has those with a part
    name: str = ""
    meaning: str = ""
    whole: str = ""  # of a share: the sentence after "12 of 300"
    is_brief: bool = False  # whether the short report has it


def _of_counts(formula: Callable[[VerdictCounts], float]) -> Resampled:
    return Resampled(lambda sample: formula(sample.counts))


_F1, _LAM, _MCC = map(_of_counts, (f1, lam_pct, matthews))
_ROCA, _SM_AT_HM = Resampled(one_minus_roca_pct), Resampled(sm_pct_at_hm)
_ROC_AREA = "area above the ROC curve, in percent"
# Of each message -log P(own class), in nats, and the squared error of P(spam) (Brier 1950).
_LOG_LOSS = Mean(lambda messages: -np.log(np.maximum(messages.p_true_class, LOG_LOSS_FLOOR)))
_BRIER = Mean(lambda messages: (messages.probability - messages.spam) ** 2)
_CALIBRATION = WithoutInterval(
    lambda messages: calibration_error(calibration_bins(messages.spam, messages.probability))
)
_MEAN_GAP = "how far the probabilities are off"
_ERRORS, _PRECISION = Share("errors", "messages", 0), Share("tp", "called", 1)
_BLOCKED, _MISSED = (Share(*s, of_verdicts=True) for s in (("fp", "ham"), ("fn", "spam")))
_UNSURE = Share("unsure", "messages", of_verdicts=True)
_MARKED, _LEFT = "ham marked as spam", "spam not marked"
_RIGHT, _FOUND = "in the right class", "spam are called spam"

# In the order of the JSON and of the report.
METRICS = (
    *map(Metric, ("messages", "spam", "ham", "threshold", "tp", "fp", "fn", "tn")),
    Metric("verdict_bh_pct", _BLOCKED, VERDICTS, "blocked %", "ham blocked", _MARKED, True),
    Metric("verdict_sm_pct", _MISSED, VERDICTS, "missed %", "spam missed", _LEFT, True),
    Metric("unsure_pct", _UNSURE, VERDICTS, "unsure %", "unsure", "are unsure", True),
    Metric("errors", _ERRORS, GENERAL, "errors", "wrong", "in the wrong class", True),
    Metric("accuracy", Share("right", "messages", 1), GENERAL, "accuracy", "correct", _RIGHT),
    Metric("precision", _PRECISION, GENERAL, "precision", "right", "called spam are spam", True),
    Metric("recall", Share("tp", "spam", 1), GENERAL, "recall", "called spam", _FOUND, True),
    Metric("f1", _F1, GENERAL, "F1", "harmonic mean of precision and recall"),
    Metric("auc", Resampled(auc), GENERAL, "AUC", "area under the ROC curve"),
    Metric("mcc", _MCC, GENERAL, "MCC", "Matthews correlation coefficient"),
    Metric("log_loss", _LOG_LOSS, GENERAL, "log-loss", "nats per message"),
    Metric("brier", _BRIER, GENERAL, "Brier", "mean squared error of P(spam)"),
    Metric("sc_pct", Share("tp", "spam"), TRACK, "SC%", "spam caught", _FOUND),
    Metric("bh_pct", Share("fp", "ham"), TRACK, "BH%", "ham blocked", "ham called spam"),
    Metric("sm_pct", Share("fn", "spam")),
    Metric("hm_pct", Share("fp", "ham")),
    Metric("lam_pct", _LAM, TRACK, "lam%", "logistic average of both error rates"),
    Metric("one_minus_roca_pct", _ROCA, TRACK, "1-ROCA%", _ROC_AREA, is_brief=True),
    Metric("sm_pct_at_hm_0_1", _SM_AT_HM, TRACK, "sm@hm.1", "spam missed at 0.1 % of ham blocked"),
    Metric("calibration_error", _CALIBRATION, TRACK, "calibration", _MEAN_GAP, is_brief=True),
)
# Metrics that need no class called spam.
_OF_ANY_CLASSES = {"messages", "threshold", "errors", "accuracy", "log_loss", "unsure_pct"}
_LEFT_OUT_RATES = ("accuracy", "sc_pct", "bh_pct", "verdict_bh_pct", "verdict_sm_pct", "unsure_pct")


class ReportRow(NamedTuple):
    """A figure as a line of the report."""

    name: str
    value: float  # a percentage where the name says so
    interval: Interval | None
    meaning: str
    line: str  # the meaning; of a share how many of how many are what
    counts: tuple[int, int] | None  # of a share

    def sentence(self) -> str:
        """Return the percentage of a share in words, with its interval."""
        return f"{self.meaning} {self.percentage()}"

    def percentage(self) -> str:
        """Return the percentage of a share, with its interval."""
        hits, n = self.counts or (0, 1)
        low, high = wilson(hits, n) or (0.0, 1.0)
        return f"{100 * hits / n:.2f} % ({100 * low:.2f} to {100 * high:.2f})"


@dataclass(frozen=True)
class Figures:
    """Figures by the keys of their metrics."""

    by_key: dict[str, Figure]

    @property
    def values(self) -> dict[str, float | int | None]:
        """The values alone."""
        return {key: figure.value for key, figure in self.by_key.items()}

    def as_json(self) -> dict[str, object]:
        """Return the figures, each followed by its interval as `KEY_ci`."""
        alone = {m.key for m in METRICS if isinstance(m.computation, WithoutInterval | None)}
        fields = dict[str, object]()
        for key, figure in self.by_key.items():
            fields[key] = figure.value
            if key not in alone:
                fields[f"{key}_ci"] = figure.interval
        return fields

    def rows(self, *parts: str, brief: bool = False) -> Iterator[ReportRow]:
        """Yield the defined figures of some parts of the report; brief: only the chief ones."""
        for key, _, part, name, meaning, whole, is_brief in METRICS:
            value, interval, counts = self.by_key.get(key, UNDEFINED)
            if value is not None and part in parts and (is_brief or not brief):
                line = f"{counts[0]:,} of {counts[1]:,} {whole}" if counts else meaning
                yield ReportRow(name, value, interval, meaning, line, counts)


def figures(messages: ScoredMessages, seed: int = SEED) -> Figures:
    """Return the figures of all metrics; seed: of the bootstrap."""
    by_key = dict[str, Figure]()
    statistics = {}
    for key, computation, *_ in METRICS:
        by_key[key] = UNDEFINED
        if not messages.has_spam_class and key not in _OF_ANY_CLASSES:
            continue
        if computation is None:
            by_key[key] = Figure(getattr(messages if key == "threshold" else messages.counts, key))
        elif isinstance(computation, Share):
            by_key[key] = computation.of_counts(messages.counts, messages.verdicts)
        elif isinstance(computation, Resampled):
            statistics[key] = computation.statistic
        elif isinstance(computation, WithoutInterval):
            by_key[key] = Figure(computation.statistic(messages)) if len(messages) else UNDEFINED
        elif len(messages):
            losses = computation.losses(messages)
            by_key[key] = Figure(float(losses.mean()), mean_interval(losses))
    if statistics and 0 < messages.counts.spam < len(messages):
        fewest, most = _RESAMPLES
        times = max(fewest, min(most, _RESAMPLED_LIMIT // len(messages)))
        drawn = samples(messages, times, seed)
        values = np.array([[call(sample) for call in statistics.values()] for sample in drawn])
        for key, (whole, *resampled) in zip(statistics, values.T, strict=True):
            by_key[key] = Figure(float(whole), percentile_interval(resampled))
    return Figures(by_key)


def left_out_rates(counts: VerdictCounts, verdicts: VerdictCounts) -> Figures:
    """Return the rates of the leave-one-out estimate.

    counts: at the threshold.  verdicts: with the cut-offs.
    """
    shares = {m.key: m.computation for m in METRICS if isinstance(m.computation, Share)}
    return Figures({key: shares[key].of_counts(counts, verdicts) for key in _LEFT_OUT_RATES})
