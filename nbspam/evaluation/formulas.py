"""The formulas of the metrics: of counts, of samples with their scores, and of each message.

tp, fp, fn, tn: the counts of spam called spam, ham called spam, spam called ham, ham called ham.
"""

import numpy as np

from nbspam.bayes.matrix import Floats
from nbspam.evaluation.samples import Sample, ScoredMessages, VerdictCounts

HAM_LOSS = 0.001  # of sm@hm.1
# Probabilities are kept this far from 0 in the log-loss, so that one certain mistake is finite: it
# costs 27.6 nats.  scikit-learn does so too, at 2.2e-16 (36.0 nats).
LOG_LOSS_FLOOR = 1e-12


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


def auc(sample: Sample) -> float:
    """Return the area under the ROC curve: the share of (ham, spam) pairs ranked rightly.

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
