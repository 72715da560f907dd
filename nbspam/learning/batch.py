"""Learning from many messages at once: a sparse matrix to a model."""

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from heapq import nlargest
from typing import NamedTuple

import numpy as np

from nbspam.bayes import matrix
from nbspam.bayes.event_model import Row, logit, sigmoid
from nbspam.bayes.matrix import Chunked, Integers, Presence
from nbspam.errors import Remedy, TrainingError
from nbspam.learning.settings import TrainingSettings, class_names, counted_metadata, empty_metadata
from nbspam.scoring.batch_rules import BATCH_RULES, BatchRule
from nbspam.scoring.rules import Score
from nbspam.scoring.verdict import CutOffs
from nbspam.store.metadata import HAM_CUTOFF, Counted, Metadata, TraitHistograms
from nbspam.tokens.kinds import HOST, TEXT

_STEPS = 10**12  # of a cut-off: fine enough to resolve P(spam) at 27 nats


class Fit(NamedTuple):
    """A model fitted to a corpus, its counts still in an array."""

    metadata: Metadata
    counts: Integers  # (n_classes, n_tokens)
    labels: Integers  # (n_messages,), indices into the classes
    rule: BatchRule
    traits: Integers | None  # (n_messages, n_traits)

    def left_out_scores(self, presence: Presence | Chunked, folds: int = 1) -> Iterator[Score]:
        """Yield each training message's score by the model that never saw it.

        folds: above 1, the calibrations of each such part of the messages are fitted to the others.
        """
        return self.rule.left_out_scores(presence, self.metadata, folds)


def fit(
    presence: Presence | Chunked,
    labels: Sequence[str],
    settings: TrainingSettings,
    channels: Integers | None = None,
    traits: Integers | None = None,
) -> Fit:
    """Return the model of a corpus; raises TrainingError when it has fewer than two classes.

    channels: (n_tokens,), the channel of each column (`tokens/kinds.py`); None: all are text.
    traits: (n_messages, n_traits), if they were taken; -1 of a message without them.
    """
    classes, positive = class_names(labels, settings.positive)
    number = {name: k for k, name in enumerate(classes)}
    indices = np.fromiter((number[label] for label in labels), np.int64, len(labels))
    empty = empty_metadata(classes, positive, settings)
    if empty.settings.counts.has_tokens:
        counts = matrix.class_counts(presence, indices, len(classes))
    else:
        counts = np.zeros((len(classes), presence.shape[1]), dtype=np.int64)
    if channels is None:
        channels = np.full(presence.shape[1], TEXT)
    if not empty.settings.has_traits:
        traits = None
    histograms = (
        () if traits is None else [(classes, trait_histograms_of(traits, indices, len(classes)))]
    )
    uncalibrated = counted_metadata(empty, Counter(labels), [counted(counts, channels)], histograms)
    rule = BATCH_RULES[settings.scoring](counts, indices, channels, traits)
    learned = uncalibrated.learned._replace(calibrations=rule.fit(presence, uncalibrated))
    return Fit(uncalibrated._replace(learned=learned), counts, indices, rule, traits)


def counted(counts: Integers, channels: Integers) -> Counted:
    """Return the histograms of the counts of the tokens that some message has, and their hosts.

    counts: (n_classes, n_tokens); channels: (n_tokens,), of the columns.
    """
    is_known = counts.any(axis=0)
    found = (np.unique(row, return_counts=True) for row in counts[:, is_known])
    histograms = tuple(dict(zip(values.tolist(), n.tolist(), strict=True)) for values, n in found)
    return histograms, Counter(map(tuple, counts[:, is_known & (channels == HOST)].T.tolist()))


def trait_histograms_of(traits: Integers, labels: Integers, n_classes: int) -> TraitHistograms:
    """Return per trait and class how many messages have each value."""
    columns = [traits[(traits[:, 0] >= 0) & (labels == k)].T.tolist() for k in range(n_classes)]
    return tuple(tuple(map(Counter, of_trait)) for of_trait in zip(*columns, strict=True))


def ham_odds(metadata: Metadata, labels: Iterable[str], scores: Iterable[Score]) -> list[float]:
    """Return the log-odds of the ham among some messages."""
    spam = metadata.settings.classes[metadata.settings.positive_index or 0]
    return [score.log_odds for label, score in zip(labels, scores, strict=True) if label != spam]


def cut_offs_within(limit: float, metadata: Metadata, ham: Iterable[float]) -> CutOffs:
    """Return the lowest cut-offs, from 0.5 on, that block at most a share of the ham.

    limit: 0 to below 1.  ham: the log-odds of the ham that was learned, each left out.
    Raises TrainingError for more than two classes, whose verdict no cut-off decides.
    """
    settings, learned = metadata
    if len(settings.classes) > 2:
        raise TrainingError(
            "a limit on blocked ham needs two classes; with more, the verdict is the most probable"
            " class",
            Remedy.LEAVE_OUT_LIMIT,
        )
    n_ham = sum(learned.messages) - learned.messages[settings.positive_index or 0]
    highest_delivered = nlargest(int(n_ham * limit) + 1, ham)[-1]
    cut_off = max(0.5, math.ceil(sigmoid(highest_delivered) * _STEPS) / _STEPS)
    while logit(cut_off) < highest_delivered:  # rounding would block that ham
        cut_off += 1 / _STEPS
    return CutOffs(cut_off, min(cut_off, HAM_CUTOFF))


def token_counts(vocabulary: Sequence[str], counts: Integers) -> Iterator[tuple[str, Row]]:
    """Yield each token of the vocabulary that some message has, with its counts per class."""
    rows = zip(*counts.tolist(), strict=True)
    is_known: list[bool] = np.any(counts, axis=0).tolist()
    return itertools.compress(zip(vocabulary, rows, strict=True), is_known)
