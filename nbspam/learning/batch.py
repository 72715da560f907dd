"""Learning from many messages at once: a sparse matrix to a model."""

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from nbspam.bayes import matrix
from nbspam.bayes.event_model import Histogram, Row, logit, sigmoid
from nbspam.bayes.matrix import Chunked, Integers, Presence
from nbspam.errors import Remedy, TrainingError
from nbspam.learning.settings import TrainingSettings, class_names, empty_metadata
from nbspam.scoring.batch_rules import BATCH_RULES, BatchRule
from nbspam.scoring.rules import Score
from nbspam.scoring.verdict import CutOffs
from nbspam.store.metadata import HAM_CUTOFF, TRAINING, HostRows, Metadata, TraitHistograms
from nbspam.tokens.kinds import HOST, TEXT


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

    def scores(self, presence: Presence, traits: Integers | None = None) -> Iterator[Score]:
        """Yield the score of each row of a matrix with the model's columns.

        traits: (n_rows, n_traits), if the model has traits.
        """
        return self.rule.scores(presence, self.metadata, traits)


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
    own = () if traits is None else [(classes, trait_histograms_of(traits, indices, len(classes)))]
    uncalibrated = counted_metadata(empty, Counter(labels), [Counted.of(counts, channels)], own)
    rule = BATCH_RULES[settings.scoring](counts, indices, channels, traits)
    calibrations = rule.fit(presence, uncalibrated)
    learned = uncalibrated.learned._replace(calibrations=calibrations)
    return Fit(uncalibrated._replace(learned=learned), counts, indices, rule, traits)


class Counted(NamedTuple):
    """What a model says of its tokens' counts; of all of them, or of some."""

    histograms: tuple[Histogram, ...]  # per class, how many tokens have each count
    hosts: HostRows  # of those that took mails in: mails per class -> how many hosts have them

    @classmethod
    def of(cls, counts: Integers, channels: Integers) -> "Counted":
        """Return what is said of those that some message has.

        counts: (n_classes, n_tokens); channels: (n_tokens,), of the columns.
        """
        known = counts[:, counts.any(axis=0)]
        histograms = (np.unique(row, return_counts=True) for row in known)
        hosts = Counter(map(tuple, counts[:, (channels == HOST) & counts.any(axis=0)].T.tolist()))
        return cls(
            tuple(dict(zip(*(a.tolist() for a in pair), strict=True)) for pair in histograms), hosts
        )


def counted_metadata(
    empty: Metadata,
    messages: Mapping[str, int],
    tokens: Iterable[Counted],
    traits: Iterable[tuple[Iterable[str], TraitHistograms]],
) -> Metadata:
    """Return the metadata of all that was counted, not calibrated yet.

    messages: of each label.  traits: of parts of the messages, per trait and label; their labels.
    All are in the order of their keys, in which sums over them are made.
    """
    classes = empty.settings.classes
    histograms, hosts = [Counter[int]() for _ in classes], Counter[Row]()
    for part in tokens:
        for own, more in zip(histograms, part.histograms, strict=True):
            own.update(more)
        hosts.update(part.hosts)
    of_traits = [[Counter[int]() for _ in classes] for _ in empty.learned.trait_histograms]
    for labels, found in traits:
        for of_trait, values in zip(of_traits, found, strict=True):
            for label, own_values in zip(labels, values, strict=True):
                of_trait[classes.index(label)].update(own_values)
    learned = empty.learned._replace(
        calibrated_by=TRAINING,
        messages=tuple(messages[name] for name in classes),
        count_histograms=tuple(dict(sorted(own.items())) for own in histograms),
        host_rows=dict(sorted(hosts.items())),
        trait_histograms=tuple(
            tuple(dict(sorted(values.items())) for values in of_trait) for of_trait in of_traits
        ),
    )
    return empty._replace(learned=learned)


def trait_histograms_of(traits: Integers, labels: Integers, n_classes: int) -> TraitHistograms:
    """Return per trait and class how many messages have each value."""
    own = [traits[(traits[:, 0] >= 0) & (labels == k)] for k in range(n_classes)]
    return tuple(
        tuple(Counter(some[:, i].tolist()) for some in own) for i in range(traits.shape[1])
    )


def cut_offs_within(limit: float, fitted: Fit, scores: Iterable[Score]) -> CutOffs:
    """Return the lowest cut-offs that block at most a share of the ham (`cut_offs_above`).

    scores: of the training messages, left out.
    """
    positive = fitted.metadata.settings.positive_index
    pairs = zip(scores, fitted.labels, strict=True)
    ham = sorted((score.log_odds for score, k in pairs if k != positive), reverse=True)
    return cut_offs_above(limit, fitted.metadata, ham)


def n_blocked(limit: float, metadata: Metadata) -> int:
    """Return how many ham messages may be blocked; limit: their share.

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
    return int(n_ham * limit)


def cut_offs_above(limit: float, metadata: Metadata, ham: Sequence[float]) -> CutOffs:
    """Return the lowest spam cut-off from 0.5 that blocks at most `limit` of the ham.

    limit: a share, 0 to below 1.  ham: the highest log-odds, in descending order; `n_blocked`
    and one more of them, or all.
    """
    highest_delivered = ham[n_blocked(limit, metadata)]
    cut_off = max(0.5, sigmoid(highest_delivered))
    while logit(cut_off) < highest_delivered:  # a rounded cut-off would block that ham
        cut_off = math.nextafter(cut_off, 1)
    return CutOffs(cut_off, min(cut_off, HAM_CUTOFF))


def token_counts(vocabulary: Sequence[str], counts: Integers) -> Iterator[tuple[str, Row]]:
    """Yield each token of the vocabulary that some message has, with its counts per class."""
    rows = zip(*counts.tolist(), strict=True)
    is_known: list[bool] = np.any(counts, axis=0).tolist()
    return itertools.compress(zip(vocabulary, rows, strict=True), is_known)
