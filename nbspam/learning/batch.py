"""Learning from many messages at once: token sets to a sparse matrix, the matrix to a model."""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from nbspam.bayes import matrix
from nbspam.bayes.bernoulli import Row
from nbspam.bayes.matrix import Booleans, Chunked, Integers, Presence
from nbspam.bayes.posterior import logit, sigmoid
from nbspam.errors import Remedy, TrainingError
from nbspam.learning.batch_rules import BATCH_RULES, BatchRule
from nbspam.learning.settings import TrainingSettings, class_names, empty_metadata
from nbspam.scoring.score import Score
from nbspam.store.metadata import TRAINING, Histogram, Metadata


class Fit(NamedTuple):
    """A model fitted to a corpus, its counts still in an array."""

    metadata: Metadata
    counts: Integers  # (n_classes, n_tokens)
    labels: Integers  # (n_messages,), indices into the classes
    rule: BatchRule

    def left_out_scores(self, presence: Presence | Chunked) -> Iterator[Score]:
        """Yield each training message's score by the model that never saw it."""
        return self.rule.left_out_scores(presence, self.metadata)

    def scores(self, presence: Presence) -> Iterator[Score]:
        """Yield the score of each row of a matrix with the model's columns."""
        return self.rule.scores(presence, self.metadata)


def fit(
    presence: Presence | Chunked,
    labels: Sequence[str],
    settings: TrainingSettings,
    is_header: Booleans | None = None,
) -> Fit:
    """Return the model of a corpus; raises TrainingError when it has fewer than two classes.

    is_header: (n_tokens,), which columns are tokens of the header channel; None for none.
    """
    classes, positive = class_names(labels, settings.positive)
    number = {name: k for k, name in enumerate(classes)}
    indices = np.fromiter((number[label] for label in labels), np.int64, len(labels))
    counts = matrix.class_counts(presence, indices, len(classes))
    messages = np.bincount(indices, minlength=len(classes))
    empty = empty_metadata(classes, positive, settings)
    learned = empty.learned._replace(
        calibrated_by=TRAINING,
        messages=tuple(map(int, messages)),
        count_histograms=_histograms(counts),
    )
    if is_header is None:
        is_header = np.zeros(presence.shape[1], dtype=bool)
    rule = BATCH_RULES[settings.scoring](counts, indices, is_header)
    uncalibrated = empty._replace(learned=learned)
    calibrations = rule.fit(presence, uncalibrated)
    metadata = uncalibrated._replace(learned=learned._replace(calibrations=calibrations))
    return Fit(metadata, counts, indices, rule)


def _histograms(counts: Integers) -> tuple[Histogram, ...]:
    """Return per class how many tokens have each count, of those that some message has."""
    known = counts.any(axis=0)
    return tuple(
        dict(zip(*(part.tolist() for part in np.unique(row, return_counts=True)), strict=True))
        for row in counts[:, known]
    )


def with_cut_off(fitted: Fit, scores: Iterable[Score], limit: float) -> Fit:
    """Return the fit with the lowest cut-off from 0.5 that blocks at most `limit` of the ham.

    scores: of the training messages, left out.  limit: a share, 0 to below 1.
    Raises TrainingError for more than two classes, whose verdict no cut-off decides.
    """
    settings = fitted.metadata.settings
    if len(settings.classes) > 2:
        raise TrainingError(
            "a limit on blocked ham needs two classes; with more, the verdict is the most probable"
            " class",
            Remedy.LEAVE_OUT_LIMIT,
        )
    ham = sorted(
        score.log_odds
        for score, k in zip(scores, fitted.labels, strict=True)
        if k != settings.positive_index
    )
    highest_delivered = ham[-(int(len(ham) * limit) + 1)]
    cut_off = max(0.5, sigmoid(highest_delivered))
    while logit(cut_off) < highest_delivered:  # a rounded cut-off would block that ham
        cut_off = math.nextafter(cut_off, 1)
    settings = settings._replace(spam_cutoff=cut_off)
    return fitted._replace(metadata=fitted.metadata._replace(settings=settings))


def token_counts(vocabulary: Sequence[str], counts: Integers) -> Iterator[tuple[str, Row]]:
    """Yield each token of the vocabulary that some message has, with its counts per class."""
    rows = zip(*counts.tolist(), strict=True)
    return ((token, row) for token, row in zip(vocabulary, rows, strict=True) if any(row))
