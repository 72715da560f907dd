"""What metrics are computed from: scored messages, their verdict counts, and samples of them.

Spam is the positive class throughout.  A metric that needs a bootstrap is a function of a `Sample`.
The sample that holds each message once gives its value; samples drawn with replacement give its
interval.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from nbspam.bayes.matrix import Booleans, Floats, Integers
from nbspam.labels import UNSURE

SEED = 0  # of whatever is random, unless another is given


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


def count_verdicts(pairs: Iterable[tuple[str, str]], positive: str | None) -> VerdictCounts:
    """Return the counts of (label, verdict) pairs.

    positive: the class that is spam; None if there is none.
    """
    messages = right = unsure = 0
    cells = {(is_spam, called): 0 for is_spam in (True, False) for called in (True, False)}
    for label, verdict in pairs:
        messages += 1
        right += label == verdict
        unsure += verdict == UNSURE
        if positive is not None:
            cells[label == positive, verdict == positive] += 1
    return VerdictCounts(
        messages,
        right,
        tp=cells[True, True],
        fp=cells[False, True],
        fn=cells[True, False],
        tn=cells[False, False],
        unsure=unsure,
    )


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
        right = called_spam == spam
        own = np.where(spam, probability, 1 - probability)
        if verdicts is None:
            verdicts = _counts(spam, called_spam, right)
        return cls(spam, log_odds, probability, called_spam, threshold, right, own, verdicts)

    def __len__(self) -> int:
        return len(self.spam)

    @cached_property
    def counts(self) -> VerdictCounts:
        """How many are called what at the threshold."""
        return _counts(self.spam, self.called_spam, self.right)


def _counts(spam: Booleans, called_spam: Booleans, right: Booleans) -> VerdictCounts:
    n, n_spam = len(spam), int(spam.sum())
    tp = int((called_spam & spam).sum())
    fp = int((called_spam & ~spam).sum())
    return VerdictCounts(n, int(right.sum()), tp, fp, n_spam - tp, n - n_spam - fp)


class Sample(NamedTuple):
    """Messages of both classes: how many got which verdict, and how many got which score.

    The distinct scores are those of the whole evaluation, lowest first; a resample may have no
    message at some of them.
    """

    counts: VerdictCounts
    spam_at: Integers  # (n_scores,), spam with each score
    ham_at: Integers  # (n_scores,), ham with each score


class _Ranked(NamedTuple):
    """The messages of one class, in their order."""

    scores: Integers  # (n,), the index of each message's score among the distinct scores
    called_spam: Booleans  # (n,)


class Ranking:
    """Scored messages of both classes, to draw samples from.

    Rankings of the same messages by several filters draw the same samples, message by message.
    """

    def __init__(self, messages: ScoredMessages) -> None:
        spam, called = messages.spam, messages.called_spam
        scores, score = np.unique(messages.log_odds, return_inverse=True)
        self._spam = _Ranked(score[spam], called[spam])
        self._ham = _Ranked(score[~spam], called[~spam])
        self._n_scores = len(scores)

    def whole(self) -> Sample:
        """Return the sample that holds each message once."""
        return self._sample(np.arange(len(self._spam.scores)), np.arange(len(self._ham.scores)))

    def draw(self, times: int, seed: int = SEED) -> Iterator[Sample]:
        """Yield samples drawn with replacement.

        Each class is resampled by itself (whoever made the evaluation chose the mix).  The same
        seed and scores give the same samples, and so the same report.
        """
        random = np.random.default_rng(seed)
        n_spam, n_ham = len(self._spam.scores), len(self._ham.scores)
        for _ in range(times):
            spam_rows = random.integers(n_spam, size=n_spam)
            yield self._sample(spam_rows, random.integers(n_ham, size=n_ham))

    def _sample(self, spam_rows: Integers, ham_rows: Integers) -> Sample:
        """Return the sample of these messages, given by their places in their class."""
        n_spam, n_ham = len(spam_rows), len(ham_rows)
        tp = int(np.count_nonzero(self._spam.called_spam[spam_rows]))
        fp = int(np.count_nonzero(self._ham.called_spam[ham_rows]))
        tn = n_ham - fp
        return Sample(
            VerdictCounts(n_spam + n_ham, tp + tn, tp, fp, n_spam - tp, tn),
            np.bincount(self._spam.scores[spam_rows], minlength=self._n_scores),
            np.bincount(self._ham.scores[ham_rows], minlength=self._n_scores),
        )
