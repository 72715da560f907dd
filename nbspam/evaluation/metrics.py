"""The figures of the field, each with a 95 % interval.

Spam is the positive class throughout.  Rates are those of the TREC 2005-2007 spam tracks (Cormack
and Lynam, "TREC 2005 Spam Track Overview"): percentages, the smaller the better.

    hm%   ham misclassified = 100 fp / ham             (bh_pct, "blocked ham", is the same figure)
    sm%   spam misclassified = 100 fn / spam           (sc_pct, "spam caught", is 100 - sm%)
    lam%  100 logit^-1((logit hm + logit sm) / 2)      their logistic average
    1-ROCA%   100 x the share of (ham, spam) pairs in which the ham scores higher; ties count half
    sm@hm.1   sm% at the cut-off that loses at most 0.1 % of the ham

Where a rate is 0 or 1 and has no logit, lam% counts half an error more in one message more (the
CEAS 2007 contest did alike; the tracks left it undefined).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]
Interval = tuple[float, float]

_Z = 1.959963984540054  # of the normal distribution, 2.5 % on either side
HAM_LOSS = 0.001  # of sm@hm.1
# Probabilities are held off 0 and 1 by this in the log-loss, so that one sure mistake is finite.
LOG_LOSS_FLOOR = 1e-12
_RESAMPLES = 1_000
_RESAMPLED_LIMIT = 20_000_000  # resamples x messages: time, about 2 s


@dataclass(frozen=True)
class Figures:
    """All figures of one evaluation, by their names in the JSON output; None where undefined."""

    values: dict[str, float | int | None]
    intervals: dict[str, Interval | None]

    def as_json(self) -> dict[str, Any]:
        """Return the figures, each interval beside its own as `…_ci`."""
        out: dict[str, Any] = {}
        for name, value in self.values.items():
            out[name] = value
            if name in self.intervals:
                interval = self.intervals[name]
                out[f"{name}_ci"] = None if interval is None else list(interval)
        return out


def figures(
    spam: Booleans, log_odds: Floats, probability: Floats, called_spam: Booleans, threshold: float
) -> Figures:
    """Return the figures of a two-class evaluation.

    spam:        (n,), what each message is.
    log_odds:    (n,), what it is ranked by; any rising function of P(spam) gives the same ranks.
    probability: (n,), P(spam), for log-loss and Brier score.
    called_spam: (n,), the verdicts; a message that is not called spam is delivered.
    threshold:   the probability above which a message was called spam; reported, not used.
    """
    n, n_spam = len(spam), int(spam.sum())
    n_ham = n - n_spam
    tp, fp = int((called_spam & spam).sum()), int((called_spam & ~spam).sum())
    fn, tn = n_spam - tp, n_ham - fp
    both = n_spam > 0 and n_ham > 0
    losses = -np.log(np.maximum(np.where(spam, probability, 1 - probability), LOG_LOSS_FLOOR))
    squares = (probability - spam) ** 2
    values: dict[str, float | int | None] = {
        "messages": n,
        "spam": n_spam,
        "ham": n_ham,
        "threshold": threshold,
        "accuracy": (tp + tn) / n if n else None,
        "mcc": matthews(tp, fp, fn, tn) if both else None,
        "sc_pct": 100 * tp / n_spam if n_spam else None,
        "bh_pct": 100 * fp / n_ham if n_ham else None,
        "sm_pct": 100 * fn / n_spam if n_spam else None,
        "hm_pct": 100 * fp / n_ham if n_ham else None,
        "lam_pct": lam_pct(fp, n_ham, fn, n_spam) if both else None,
        "one_minus_roca_pct": one_minus_roca_pct(spam, log_odds) if both else None,
        "sm_pct_at_hm_0_1": sm_pct_at_hm(spam, log_odds) if both else None,
        "log_loss": float(losses.mean()) if n else None,
        "brier": float(squares.mean()) if n else None,
        "tp": tp,
        "fp": fp,
        "fn": fn,
        "tn": tn,
    }
    intervals: dict[str, Interval | None] = {
        "accuracy": wilson(tp + tn, n),
        "sc_pct": _percent(wilson(tp, n_spam)),
        "bh_pct": _percent(wilson(fp, n_ham)),
        "sm_pct": _percent(wilson(fn, n_spam)),
        "hm_pct": _percent(wilson(fp, n_ham)),
        "log_loss": _mean_interval(losses),
        "brier": _mean_interval(squares),
        **_resampled(spam, log_odds, called_spam),
    }
    return Figures(values, intervals)


def matthews(tp: float, fp: float, fn: float, tn: float) -> float:
    """Return Matthews' correlation coefficient, 0 where a margin is empty (Matthews 1975)."""
    below = float(tp + fp) * float(tp + fn) * float(tn + fp) * float(tn + fn)
    return float((tp * tn - fp * fn) / below**0.5) if below > 0 else 0.0


def lam_pct(fp: float, ham: float, fn: float, spam: float) -> float:
    """Return the logistic average of the two misclassification rates, in percent."""
    if 0 < fp < ham and 0 < fn < spam:
        hm, sm = fp / ham, fn / spam
    else:
        hm, sm = (fp + 0.5) / (ham + 1), (fn + 0.5) / (spam + 1)
    odds = (hm / (1 - hm) * sm / (1 - sm)) ** 0.5
    return float(100 * odds / (1 + odds))


def one_minus_roca_pct(spam: Booleans, log_odds: Floats) -> float:
    """Return 100 x the share of (ham, spam) pairs ranked wrongly (Mann and Whitney 1947)."""
    _, inverse, count = np.unique(log_odds, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(count) - (count - 1) / 2)[inverse]
    n_spam = int(spam.sum())
    pairs = n_spam * (len(spam) - n_spam)
    return float(100 * (1 - (ranks[spam].sum() - n_spam * (n_spam + 1) / 2) / pairs))


def sm_pct_at_hm(spam: Booleans, log_odds: Floats, ham_loss: float = HAM_LOSS) -> float:
    """Return sm% at the lowest cut-off that calls no more than `ham_loss` of the ham spam."""
    ham = np.sort(log_odds[~spam])
    cut_off = ham[-(int(len(ham) * ham_loss) + 1)]
    return float(100 * (log_odds[spam] <= cut_off).mean())


def wilson(hits: int, of: int) -> Interval | None:
    """Return the 95 % score interval of a share (Wilson 1927); None for a share of nothing."""
    if not of:
        return None
    share, z2 = hits / of, _Z**2
    middle = share + z2 / (2 * of)
    half = _Z * ((share * (1 - share) + z2 / (4 * of)) / of) ** 0.5
    # At no hits the lower end is 0 exactly, and at nothing but hits the upper end is 1.
    low = 0.0 if not hits else max(0.0, (middle - half) / (1 + z2 / of))
    high = 1.0 if hits == of else min(1.0, (middle + half) / (1 + z2 / of))
    return low, high


def share(name: str, hits: int, n: int, scale: float) -> dict[str, Any]:
    """Return hits of n, times `scale`, and its 95 % interval, as in JSON; None for n = 0."""
    interval = wilson(hits, n)
    if interval is None:
        return {name: None, f"{name}_ci": None}
    low, high = interval
    value = scale * hits / n
    return {name: value, f"{name}_ci": [scale * low, scale * high]}


def _percent(interval: Interval | None) -> Interval | None:
    return interval and (100 * interval[0], 100 * interval[1])


def _mean_interval(values: Floats) -> Interval | None:
    if len(values) < 2:
        return None
    mean, error = float(values.mean()), float(values.std(ddof=1)) / len(values) ** 0.5
    return max(0.0, mean - _Z * error), mean + _Z * error


def _resampled(
    spam: Booleans, log_odds: Floats, called_spam: Booleans
) -> dict[str, Interval | None]:
    """Return the percentile bootstrap intervals of the figures that have no simple formula.

    Each class is resampled by itself (the mix of an evaluation is its maker's choice), with a fixed
    seed, so that the same scores give the same report (Efron and Tibshirani 1993, chapter 13).
    """
    names = ("mcc", "lam_pct", "one_minus_roca_pct", "sm_pct_at_hm_0_1")
    n, n_spam = len(spam), int(spam.sum())
    if not 0 < n_spam < n:
        return dict.fromkeys(names)
    order = np.argsort(log_odds, kind="stable")
    spam, called_spam, log_odds = spam[order], called_spam[order], log_odds[order]
    group = np.concatenate([[0], np.cumsum(log_odds[1:] != log_odds[:-1])])
    random = np.random.default_rng(0)
    where = {label: np.flatnonzero(spam == label) for label in (True, False)}
    found: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(max(200, min(_RESAMPLES, _RESAMPLED_LIMIT // n))):
        drawn = np.zeros(n, dtype=np.int64)
        for rows in where.values():
            drawn[rows] = np.bincount(
                random.integers(len(rows), size=len(rows)), minlength=len(rows)
            )
        spams, hams = np.where(spam, drawn, 0), np.where(spam, 0, drawn)
        tp, fp = int(spams[called_spam].sum()), int(hams[called_spam].sum())
        fn, tn = n_spam - tp, n - n_spam - fp
        found["mcc"].append(matthews(tp, fp, fn, tn))
        found["lam_pct"].append(lam_pct(fp, n - n_spam, fn, n_spam))
        spam_in, ham_in = np.bincount(group, spams), np.bincount(group, hams)
        wrong = (spam_in * (ham_in.sum() - np.cumsum(ham_in) + ham_in / 2)).sum()
        found["one_minus_roca_pct"].append(float(100 * wrong / (n_spam * (n - n_spam))))
        above = ham_in[::-1].cumsum()[::-1]  # hams at this score or higher
        allowed = int((n - n_spam) * HAM_LOSS)
        cut = int(
            np.flatnonzero(above > allowed)[-1]
        )  # the highest score not all of whose hams fit
        found["sm_pct_at_hm_0_1"].append(float(100 * spam_in[: cut + 1].sum() / n_spam))
    return {
        name: (float(np.percentile(values, 2.5)), float(np.percentile(values, 97.5)))
        for name, values in found.items()
    }


class Bin(NamedTuple):
    """A tenth of the probabilities: what was said and what was true."""

    low: float
    high: float
    messages: int
    mean_probability: float
    spam_share: float


def calibration_bins(spam: Booleans, probability: Floats, n_bins: int = 10) -> list[Bin]:
    """Return the bins of equal width that hold a message, lowest first."""
    which = np.minimum((probability * n_bins).astype(int), n_bins - 1)
    return [
        Bin(
            k / n_bins,
            (k + 1) / n_bins,
            int((which == k).sum()),
            float(probability[which == k].mean()),
            float(spam[which == k].mean()),
        )
        for k in range(n_bins)
        if (which == k).any()
    ]


def calibration_error(bins: Sequence[Bin]) -> float:
    """Return the expected calibration error: the mean gap of the bins, weighed by their messages.

    Naeini, Cooper and Hauskrecht 2015.
    """
    total = sum(found.messages for found in bins)
    gaps = (abs(b.mean_probability - b.spam_share) * b.messages for b in bins)
    return sum(gaps) / total if total else 0.0


def confusion(
    actual: Sequence[str], called: Sequence[str], classes: Sequence[str]
) -> list[list[int]]:
    """Return how often each class (rows) was called each verdict (columns)."""
    rows = {name: i for i, name in enumerate(classes)}
    names = [*classes, *sorted(set(called) - set(classes))]
    columns = {name: i for i, name in enumerate(names)}
    table = [[0] * len(names) for _ in classes]
    for is_, was in zip(actual, called, strict=True):
        table[rows[is_]][columns[was]] += 1
    return table
