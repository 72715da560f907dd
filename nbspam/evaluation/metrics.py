"""The metrics; shares and the area under the ROC curve have a 95 % interval.

`METRICS` has an entry for each metric: its key in the JSON, the function that computes it, and its
line in the report.  To add a metric, add an entry.

Spam is the positive class.  Accuracy, precision, recall, F1, the area under the ROC curve (AUC),
MCC, log-loss and Brier score apply to any classifier.  The following metrics come from the TREC
2005-2007 spam tracks (Cormack and Lynam, "TREC 2005 Spam Track Overview"): percentages, the smaller
the better, except sc_pct.

    hm%   ham misclassified = 100 fp / ham             (bh_pct, "blocked ham", is the same figure)
    sm%   spam misclassified = 100 fn / spam           (sc_pct, "spam caught", is 100 - sm%)
    lam%  100 logit^-1((logit hm + logit sm) / 2)      logistic average of hm% and sm%
    1-ROCA%   100 x the share of (ham, spam) pairs in which the ham scores higher; a tie counts half
    sm@hm.1   sm% at the lowest cut-off that misclassifies at most 0.1 % of the ham

Errors are counted at P(spam) = 0.5, so that figures are comparable whatever the cut-offs are.
Verdicts, which follow the cut-offs, are counted separately: ham blocked, spam missed (called ham or
unsure, since both reach the inbox), and unsure.  With three or more classes, a message is assigned
to the most probable class; accuracy, errors and log-loss cover all classes, and the other figures
compare the spam class with the rest.

Shares have Wilson's interval.  The area under the ROC curve has the interval by DeLong, DeLong and
Clarke-Pearson (1988), on the scale of logits.  Other figures have no interval.

tp, fp, fn, tn: the counts of spam called spam, ham called spam, spam called ham, ham called ham.

A rate of 0 or 1 has no logit.  lam% then counts half an error and one message more, as the CEAS
2007 contest did (the TREC tracks left it undefined).
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nbspam.bayes.matrix import Booleans, Floats
from nbspam.names import UNSURE

# With two classes, a message with P(spam) above this threshold counts as called spam.
THRESHOLD = 0.5
MAX_HAM_LOST = 0.001  # sm@hm.1 allows this share of ham above the cut-off
# The smallest probability in the log-loss, so that a mistake at P = 0 costs 27.6 nats and not
# infinity.  scikit-learn uses 2.2e-16 (36.0 nats).
LOG_LOSS_FLOOR = 1e-12
_N_BINS = 10  # bins of P(spam) for the calibration
Z = 1.959963984540054  # standard normal quantile at 0.975
# quantile at 0.95, for upper bounds; with 0 hits, the bound is 2.7 / (n + 2.7)
ONE_SIDED_Z = 1.6448536269514722
_SCORE_EDGES = np.arange(-14, 15, 2)  # nats; beyond these edges, P(spam) is within 1e-6 of 0 or 1

Interval = tuple[float, float]


class VerdictCounts(NamedTuple):
    """Counts of messages by label and verdict; tp, fp, fn and tn are 0 if no class is spam."""

    messages: int
    right: int  # messages of any class that are assigned to their own class
    tp: int  # spam called spam
    fp: int  # ham (any other class) called spam
    fn: int
    tn: int
    unsure: int = 0  # included in the messages not called spam

    @property
    def spam(self) -> int:
        """How many messages are spam."""
        return self.tp + self.fn

    @property
    def ham(self) -> int:
        """How many messages are of another class."""
        return self.fp + self.tn

    @property
    def n_called_spam(self) -> int:
        """How many messages are called spam."""
        return self.tp + self.fp

    @property
    def errors(self) -> int:
        """How many messages are assigned to a wrong class."""
        return self.messages - self.right


# (label, verdict) -> messages.  Two classes may be True and False.
LabelledVerdicts = Mapping[tuple[str, str], int] | Mapping[tuple[bool, bool], int]


def count_verdicts(verdicts: LabelledVerdicts, positive: str | bool | None) -> VerdictCounts:
    """Count messages by label and verdict.

    positive: the class that is spam; None without a spam class.
    """
    right = unsure = 0
    cells = [[0, 0], [0, 0]]
    for (label, verdict), n in verdicts.items():
        right += n * (label == verdict)
        unsure += n * (verdict == UNSURE)
        cells[label == positive][verdict == positive] += n
    (tn, fp), (fn, tp) = cells
    spam_and_ham = (tp, fp, fn, tn) if positive is not None else (0, 0, 0, 0)
    return VerdictCounts(tp + fp + fn + tn, right, *spam_and_ham, unsure)


@dataclass(frozen=True)
class ScoredMessages:
    """The messages of an evaluation, with their scores and verdicts; all arrays are (n,).

    Errors are counted at a threshold, 0.5, whatever the cut-offs of the verdicts.  With three or
    more classes a message is assigned to the most probable class.
    """

    spam: Booleans  # whether each message is spam
    log_odds: Floats  # log-odds of spam, in nats; ranking uses only their order
    probability: Floats  # P(spam)
    called_spam: Booleans  # whether each message is called spam at the threshold
    right: Booleans  # whether each message is assigned to its own class
    p_true_class: Floats  # P(true class)
    counts: VerdictCounts  # counted at the threshold
    verdicts: VerdictCounts  # counted with the cut-offs
    # The threshold to report; None with three or more classes, where the highest probability wins.
    threshold: float | None = THRESHOLD
    has_spam_class: bool = True  # without it, only metrics with `classes=0` are defined

    @classmethod
    def binary(
        cls,
        spam: Booleans,
        log_odds: Floats,
        probability: Floats,
        verdicts: VerdictCounts | None = None,
    ) -> "ScoredMessages":
        """Return messages of spam and ham; a message that is not called spam is called ham.

        verdicts: None for a filter without cut-offs; then the counts at the threshold are used.
        """
        called_spam = log_odds > 0
        pairs = zip(spam.tolist(), called_spam.tolist(), strict=True)
        counts = count_verdicts(Counter(pairs), True)
        return cls(
            spam,
            log_odds,
            probability,
            called_spam,
            right=called_spam == spam,
            p_true_class=np.where(spam, probability, 1 - probability),
            counts=counts,
            verdicts=verdicts or counts,
        )

    @classmethod
    def from_counts(cls, counts: VerdictCounts, verdicts: VerdictCounts) -> "ScoredMessages":
        """Return messages without scores, for metrics that are shares and need only the counts."""
        floats, booleans = np.zeros(0), np.zeros(0, dtype=bool)
        return cls(booleans, floats, floats, booleans, booleans, floats, counts, verdicts)

    def __len__(self) -> int:
        return len(self.spam)


# 95 % intervals


def wilson(hits: float, n: float, z: float = Z) -> Interval | None:
    """Return the score interval of the share hits / n (Wilson 1927); None if n is 0."""
    if not n:
        return None
    share, z2 = hits / n, z**2
    middle = share + z2 / (2 * n)
    half = z * ((share * (1 - share) + z2 / (4 * n)) / n) ** 0.5
    # Without hits the lower end is exactly 0; without misses the upper end is exactly 1.
    low = 0.0 if not hits else max(0.0, (middle - half) / (1 + z2 / n))
    high = 1.0 if hits == n else min(1.0, (middle + half) / (1 + z2 / n))
    return low, high


def placements(messages: ScoredMessages) -> tuple[Floats, Floats]:
    """Return, for each spam, the share of ham that scores lower; for each ham, of spam higher.

    A tie counts half.  The mean of either array is the area under the ROC curve.
    """
    spam, ham = (messages.log_odds[mask] for mask in (messages.spam, ~messages.spam))
    below, above = _share_below(spam, ham), 1 - _share_below(ham, spam)
    return below, above


def _share_below(scores: Floats, others: Floats) -> Floats:
    others = np.sort(others)
    first, last = (np.searchsorted(others, scores, side) for side in ("left", "right"))
    shares: Floats = (first + last) / (2 * len(others))
    return shares


def mean_variance(spam: Floats, ham: Floats) -> float:
    """Return the variance of an area, or of the difference of two areas (DeLong).

    spam, ham: their placements, or the differences of their placements.
    """
    return sum(float(values.var(ddof=1)) / len(values) for values in (spam, ham))


def area_interval(messages: ScoredMessages, area: float) -> Interval | None:
    """Return the interval of the area under the ROC curve; None if a class has one message.

    The ends are symmetric on the scale of logits, so they are between 0 and 1.
    """
    if min(messages.counts.spam, messages.counts.ham) < 2:
        return None
    if not 0 < area < 1:
        return area, area
    error = mean_variance(*placements(messages)) ** 0.5 / (area * (1 - area))
    low, high = (area / (area + (1 - area) * np.exp(z * error)) for z in (Z, -Z))
    return float(low), float(high)


# Bins


class CalibrationBin(NamedTuple):
    """The messages whose P(spam) is in a range: the predicted and the observed share of spam."""

    low: float
    high: float
    messages: int
    mean_probability: float  # the mean predicted P(spam)
    spam_share: float  # the observed share of spam


def calibration_bins(spam: Booleans, probability: Floats) -> list[CalibrationBin]:
    """Return the bins of equal width that contain a message, lowest first.

    spam, probability: (n,), whether each message is spam, and its P(spam).
    """
    bin_index = np.minimum((probability * _N_BINS).astype(int), _N_BINS - 1)
    bins = []
    for k in np.unique(bin_index).tolist():
        members, ends = bin_index == k, (k / _N_BINS, (k + 1) / _N_BINS)
        means = float(probability[members].mean()), float(spam[members].mean())
        bins.append(CalibrationBin(*ends, int(members.sum()), *means))
    return bins


def calibration_error(bins: Sequence[CalibrationBin]) -> float:
    """Return the expected calibration error (Naeini, Cooper and Hauskrecht 2015).

    It is the mean gap between prediction and observation, weighted by the bins' messages.
    """
    total = sum(b.messages for b in bins)
    gaps = (abs(b.mean_probability - b.spam_share) * b.messages for b in bins)
    return sum(gaps) / total if total else 0.0


def score_distribution(messages: ScoredMessages) -> Iterator[tuple[float, float, int, int]]:
    """Yield the histogram of the scores, lowest first: from, to (in nats), ham and spam counts.

    The outer bins include all scores beyond their outer edges.
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
    """The value of a metric; None if it is undefined, such as a rate over 0 messages."""

    value: float | int | None
    interval: Interval | None = None
    counts: tuple[int, int] | None = None  # only for a share: hits and all


UNDEFINED = Figure(None)


@dataclass(frozen=True)
class ShareMetric:
    """Computes a metric that is a share, with Wilson's interval."""

    hits: str  # a field of VerdictCounts
    all: str  # a field of VerdictCounts
    scale: int = 100  # 1: a share from 0 to 1; 100: a percentage; 0: the number of hits
    with_cut_offs: bool = False  # counted with the cut-offs, not at the threshold

    def __call__(self, messages: ScoredMessages) -> Figure:
        """Compute the share."""
        counts = messages.verdicts if self.with_cut_offs else messages.counts
        hits, n = getattr(counts, self.hits), getattr(counts, self.all)
        if (ends := wilson(hits, n)) is None:
            return UNDEFINED
        scale = self.scale or n
        value = scale * hits / n if self.scale else hits
        return Figure(value, (scale * ends[0], scale * ends[1]), (hits, n))


def mcc(messages: ScoredMessages) -> Figure:
    """Return Matthews' correlation coefficient, 0 if a margin is empty (Matthews 1975)."""
    tp, fp, fn, tn = (float(n) for n in messages.counts[2:6])
    below = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    return Figure((tp * tn - fp * fn) / below**0.5 if below > 0 else 0.0)


def f1(messages: ScoredMessages) -> Figure:
    """Return the harmonic mean of precision and recall: 2 tp / (2 tp + fp + fn)."""
    counts = messages.counts
    return Figure(2 * counts.tp / (2 * counts.tp + counts.fp + counts.fn))


def lam_pct(messages: ScoredMessages) -> Figure:
    """Return the logistic average of the two misclassification rates, in percent."""
    counts = messages.counts
    fp, ham, fn, spam = counts.fp, counts.ham, counts.fn, counts.spam
    if 0 < fp < ham and 0 < fn < spam:
        hm, sm = fp / ham, fn / spam
    else:
        hm, sm = (fp + 0.5) / (ham + 1), (fn + 0.5) / (spam + 1)
    odds = (hm / (1 - hm) * sm / (1 - sm)) ** 0.5
    return Figure(100 * odds / (1 + odds))


def auc(messages: ScoredMessages) -> Figure:
    """Return the area under the ROC curve: the share of (ham, spam) pairs ranked correctly."""
    area = 1 - one_minus_roca(messages) / 100
    return Figure(area, area_interval(messages, area))


def one_minus_roca(messages: ScoredMessages) -> float:
    """Return 100 (1 - U / (spam x ham)), the share of pairs ranked incorrectly, in percent.

    U counts the (ham, spam) pairs in which the spam scores higher, ties half (Mann and Whitney
    1947).
    """
    return 100 * (1 - float(placements(messages)[0].mean()))


def one_minus_roca_pct(messages: ScoredMessages) -> Figure:
    """Return the area above the ROC curve, in percent."""
    value, ends = one_minus_roca(messages), auc(messages).interval
    return Figure(value, ends and (100 * (1 - ends[1]), 100 * (1 - ends[0])))


def sm_pct_at_hm_0_1(messages: ScoredMessages) -> Figure:
    """Return sm% at the lowest cut-off that calls at most MAX_HAM_LOST of the ham spam."""
    ham = np.sort(messages.log_odds[~messages.spam])
    cut_off = ham[len(ham) - int(len(ham) * MAX_HAM_LOST) - 1]
    return Figure(100 * float((messages.log_odds[messages.spam] <= cut_off).mean()))


def log_loss(messages: ScoredMessages) -> Figure:
    """Return the mean of -log P(true class), in nats."""
    return _mean(-np.log(np.maximum(messages.p_true_class, LOG_LOSS_FLOOR)))


def brier(messages: ScoredMessages) -> Figure:
    """Return the mean squared error of P(spam) (Brier 1950)."""
    return _mean((messages.probability - messages.spam) ** 2)


def _mean(losses: Floats) -> Figure:
    return Figure(float(losses.mean())) if len(losses) else UNDEFINED


# The parts of the report.
VERDICTS = "verdicts"  # figures that depend on the cut-offs
ERRORS = "errors"  # figures at the threshold, 0.5, or by the most probable class
SCORES = "scores"  # figures of ranking and probabilities, independent of a threshold


class Metric(NamedTuple):
    """A metric: the function that computes it, and its line in the report."""

    key: str  # in the JSON, which has the interval as KEY_ci
    compute: Callable[[ScoredMessages], Figure]
    part: str = ""  # VERDICTS, ERRORS or SCORES; a metric without a part is only in the JSON
    name: str = ""
    meaning: str = ""
    whole: str = ""  # only for a share: the words after "12 of 300"
    is_brief: bool = False  # whether it is in the short report
    # 0: defined for any classes; 1: with a spam class; 2: with messages of spam and of ham.
    classes: int = 1


def _count(key: str, classes: int = 1) -> Metric:
    return Metric(key, lambda messages: Figure(getattr(messages.counts, key)), classes=classes)


def _calibration(messages: ScoredMessages) -> Figure:
    bins = calibration_bins(messages.spam, messages.probability)
    return Figure(calibration_error(bins)) if bins else UNDEFINED


_ROC_AREA = "area above the ROC curve, in percent"
_MEAN_GAP, _MISSED_AT = (
    "how far the probabilities are off",
    "percent, if 0.1 % of ham is blocked",
)
_ERRORS, _PRECISION = ShareMetric("errors", "messages", 0), ShareMetric("tp", "n_called_spam", 1)
_BLOCKED, _MISSED = (ShareMetric(*s, with_cut_offs=True) for s in (("fp", "ham"), ("fn", "spam")))
_UNSURE, _RIGHT_SHARE = (
    ShareMetric("unsure", "messages", with_cut_offs=True),
    ShareMetric("right", "messages", 1),
)
_MARKED, _LEFT = "ham marked as spam", "spam not marked"
_RIGHT, _FOUND = "in the right class", "spam are called spam"

# In the order of the JSON and of the report.
METRICS = (
    *(_count("messages", 0), _count("spam"), _count("ham")),
    Metric("threshold", lambda messages: Figure(messages.threshold), classes=0),
    *map(_count, ("tp", "fp", "fn", "tn")),
    Metric("verdict_bh_pct", _BLOCKED, VERDICTS, "blocked %", "ham blocked", _MARKED, True),
    Metric("verdict_sm_pct", _MISSED, VERDICTS, "missed %", "spam missed", _LEFT, True),
    Metric("unsure_pct", _UNSURE, VERDICTS, "unsure %", "unsure", "are unsure", True, 0),
    Metric("errors", _ERRORS, ERRORS, "errors", "wrong", "in the wrong class", True, 0),
    Metric("accuracy", _RIGHT_SHARE, ERRORS, "accuracy", "correct", _RIGHT, True, 0),
    Metric("precision", _PRECISION, ERRORS, "precision", "right", "called spam are spam", True),
    Metric("recall", ShareMetric("tp", "spam", 1), ERRORS, "recall", "called spam", _FOUND, True),
    Metric("f1", f1, ERRORS, "F1", "harmonic mean of precision and recall", classes=2),
    Metric("auc", auc, SCORES, "AUC", "area under the ROC curve", classes=2),
    Metric("mcc", mcc, ERRORS, "MCC", "Matthews correlation coefficient", classes=2),
    Metric("log_loss", log_loss, SCORES, "log-loss", "nats per message", classes=0),
    Metric("brier", brier, SCORES, "Brier", "mean squared error of P(spam)"),
    Metric("sc_pct", ShareMetric("tp", "spam"), ERRORS, "SC%", "spam caught", _FOUND),
    Metric("bh_pct", ShareMetric("fp", "ham"), ERRORS, "BH%", "ham blocked", "ham called spam"),
    Metric("sm_pct", ShareMetric("fn", "spam")),
    Metric("hm_pct", ShareMetric("fp", "ham")),
    Metric("lam_pct", lam_pct, ERRORS, "lam%", "logistic average of both error rates", classes=2),
    Metric("one_minus_roca_pct", one_minus_roca_pct, SCORES, "1-ROCA%", _ROC_AREA, "", True, 2),
    Metric("sm_pct_at_hm_0_1", sm_pct_at_hm_0_1, SCORES, "spam missed", _MISSED_AT, classes=2),
    Metric("calibration_error", _calibration, SCORES, "calibration", _MEAN_GAP, is_brief=True),
)
_HAVE_INTERVALS = {
    m.key for m in METRICS if isinstance(m.compute, ShareMetric) or m.compute == auc
} | {"one_minus_roca_pct"}
_LEFT_OUT_RATES = ("accuracy", "sc_pct", "bh_pct", "verdict_bh_pct", "verdict_sm_pct", "unsure_pct")


class ReportRow(NamedTuple):
    """A figure as a line of the report."""

    name: str
    value: float  # a percentage if the metric's key ends in _pct
    interval: Interval | None
    meaning: str
    line: str  # the meaning; for a share "12 of 300 …"
    counts: tuple[int, int] | None  # only for a share: hits and all

    def sentence(self) -> str:
        """Format a share as its meaning, its percentage and its interval."""
        return f"{self.meaning} {self.percentage()}"

    def percentage(self) -> str:
        """Format a share as a percentage with its interval."""
        hits, n = self.counts or (0, 1)
        low, high = wilson(hits, n) or (0.0, 1.0)
        return f"{100 * hits / n:.2f} % ({100 * low:.2f} to {100 * high:.2f})"


@dataclass(frozen=True)
class Figures:
    """Figures by the keys of their metrics."""

    by_key: dict[str, Figure]

    @property
    def values(self) -> dict[str, float | int | None]:
        """The values without intervals and counts."""
        return {key: figure.value for key, figure in self.by_key.items()}

    def as_json(self) -> dict[str, object]:
        """Return the figures, each followed by its interval as `KEY_ci`."""
        fields = dict[str, object]()
        for key, figure in self.by_key.items():
            fields[key] = figure.value
            if key in _HAVE_INTERVALS:
                fields[f"{key}_ci"] = figure.interval
        return fields

    def rows(self, *parts: str, brief: bool = False) -> Iterator[ReportRow]:
        """Yield the defined figures of these parts of the report.

        brief: yield only the main figures.
        """
        for key, _, part, name, meaning, whole, is_brief, _ in METRICS:
            value, interval, counts = self.by_key.get(key, UNDEFINED)
            if value is not None and part in parts and (is_brief or not brief):
                line = f"{counts[0]:,} of {counts[1]:,} {whole}" if counts else meaning
                yield ReportRow(name, value, interval, meaning, line, counts)


def figures(messages: ScoredMessages) -> Figures:
    """Compute all metrics."""
    classes = 0 if not messages.has_spam_class else 1
    classes += 0 < messages.counts.spam < messages.counts.messages
    defined = {m.key: m.compute(messages) for m in METRICS if m.classes <= classes}
    return Figures({m.key: defined.get(m.key, UNDEFINED) for m in METRICS})


def left_out_rates(counts: VerdictCounts, verdicts: VerdictCounts) -> Figures:
    """Compute the rates of the leave-one-out estimate.

    counts: counted at the threshold.  verdicts: counted with the cut-offs.
    """
    messages = ScoredMessages.from_counts(counts, verdicts)
    by_key = {m.key: m for m in METRICS}
    return Figures({key: by_key[key].compute(messages) for key in _LEFT_OUT_RATES})
