"""Learning from many messages at once: token sets to a sparse matrix, the matrix to a model."""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nbspam.bayes import leave_one_out, matrix
from nbspam.bayes.bernoulli import log_priors, sigmoid
from nbspam.bayes.evidence import FEATURES, Evidence
from nbspam.bayes.evidence_matrix import evidence_of_rows, fit_calibration, one_against_rest
from nbspam.bayes.matrix import Chunked, Floats, Integers, Presence, chunks
from nbspam.errors import TrainingError
from nbspam.learning.settings import Settings, class_names, empty_metadata
from nbspam.scoring.classifier import (
    Score,
    class_offset,
    logit,
    score_of_evidence,
    score_of_joints,
)
from nbspam.store.metadata import BERNOULLI, TRAINING, Metadata, with_bias

_SCORED = 10_000  # messages whose scores are made at a time
Booleans = NDArray[np.bool_]


class Fit(NamedTuple):
    """A model fitted to a corpus, its counts still in an array."""

    head: Metadata
    counts: Integers  # (n_classes, n_tokens)
    labels: Integers  # (n_messages,), indices into head.classes
    is_header: Booleans  # (n_tokens,)
    left_out: tuple[tuple[Floats, Floats], ...]  # per scored: features and trace, left out


def fit(
    presence: Presence | Chunked,
    labels: Sequence[str],
    settings: Settings,
    is_header: Booleans | None = None,
) -> Fit:
    """Return the model of a corpus; raises TrainingError when it has fewer than two classes.

    is_header: (n_tokens,), which columns are tokens of the trace fields; None for none.
    """
    classes, positive = class_names(labels, settings.positive)
    number = {name: k for k, name in enumerate(classes)}
    indices = np.fromiter((number[label] for label in labels), np.int64, len(labels))
    counts = matrix.class_counts(presence, indices, len(classes))
    messages = np.bincount(indices, minlength=len(classes))
    known = counts.any(axis=0)
    head = empty_metadata(classes, positive, settings)._replace(
        calibrated_by=TRAINING,
        messages=tuple(map(int, messages)),
        n_tokens=int(known.sum()),
        count_histograms=tuple(
            dict(
                zip(
                    *(part.tolist() for part in np.unique(row[known], return_counts=True)),
                    strict=True,
                )
            )
            for row in counts
        ),
    )
    if is_header is None:
        is_header = np.zeros(presence.shape[1], dtype=bool)
    fitted = Fit(with_bias(head), counts, indices, is_header, ())
    if settings.scoring == BERNOULLI:
        return fitted
    found = tuple(
        _evidence(presence, fitted, scored, left_out=True) for scored in head.scored_classes
    )
    calibrations = tuple(
        fit_calibration(features, trace, indices == k)
        for (features, trace), k in zip(found, head.scored_classes, strict=True)
    )
    return fitted._replace(head=fitted.head._replace(calibrations=calibrations), left_out=found)


def _evidence(
    presence: Presence | Chunked, fitted: Fit, scored: int, left_out: bool
) -> tuple[Floats, Floats]:
    """Return every row's features and trace; left out of the counts, or as a new message."""
    head = fitted.head
    messages = np.array(head.messages)
    if left_out:
        # Of the rest it does not matter which class has lost the message.
        other = 1 if scored == 0 else 0
        weights = np.stack(
            [
                one_against_rest(fitted.counts, messages, scored, head.alpha, k)
                for k in (other, scored)
            ]
        )
        own = (fitted.labels == scored).astype(np.int64)
    else:
        weights = one_against_rest(fitted.counts, messages, scored, head.alpha, None)[None]
        # A column the training rows never filled is no vocabulary: its token says nothing.
        weights[:, ~fitted.counts.any(axis=0)] = np.nan
        own = np.zeros(presence.shape[0], dtype=np.int64)
    features, trace = np.empty((len(own), len(FEATURES))), np.empty(len(own))
    for place, piece in chunks(presence):
        lengths = np.diff(piece.indptr)
        rows = np.repeat(np.arange(len(lengths)), lengths)
        entry_weights = weights[np.repeat(own[place], lengths), piece.indices]
        is_header = fitted.is_header[piece.indices]
        features[place], trace[place] = evidence_of_rows(
            rows, entry_weights, is_header, len(lengths)
        )
    return features, trace


def with_cut_off(fitted: Fit, scores: Iterable[Score], limit: float) -> Fit:
    """Return the fit with the lowest cut-off from 0.5 that blocks at most `limit` of the ham.

    scores: of the training messages, left out.  limit: a share, 0 to below 1.
    Raises TrainingError for more than two classes, whose verdict no cut-off decides.
    """
    head = fitted.head
    if len(head.classes) > 2:
        raise TrainingError(
            "--max-ham-blocked needs two classes: of more the most probable one is the verdict;"
            " leave it out"
        )
    ham = sorted(
        score.log_odds
        for score, k in zip(scores, fitted.labels, strict=True)
        if k != head.positive_index
    )
    highest_delivered = ham[-(int(len(ham) * limit) + 1)]
    cut_off = max(0.5, sigmoid(highest_delivered))
    while logit(cut_off) < highest_delivered:  # a last digit lost on the way would block that ham
        cut_off = math.nextafter(cut_off, 1)
    return fitted._replace(head=head._replace(spam_cutoff=cut_off))


def left_out_scores(presence: Presence | Chunked, fitted: Fit) -> Iterator[Score]:
    """Yield each training message's score by the model that never saw it."""
    head = fitted.head
    if head.scoring != BERNOULLI:
        yield from _scores_of(fitted, fitted.left_out)
        return
    fixed = None
    if head.prior is not None:
        fixed = np.array(log_priors(head.messages, head.prior, head.positive_index))
    for place, piece in chunks(presence):
        joints = leave_one_out.left_out_joints(
            piece, fitted.labels[place], fitted.counts, np.array(head.messages), head.alpha, fixed
        )
        yield from (score_of_joints(head, row) for row in joints.tolist())


def matrix_scores(presence: Presence, fitted: Fit) -> Iterator[Score]:
    """Yield the score of each row of a matrix with the fitted model's columns."""
    head = fitted.head
    if head.scoring != BERNOULLI:
        found = tuple(
            _evidence(presence, fitted, scored, left_out=False) for scored in head.scored_classes
        )
        yield from _scores_of(fitted, found)
        return
    weights = matrix.weights(fitted.counts, np.array(head.messages), head.alpha)
    weights[:, ~fitted.counts.any(axis=0)] = 0
    joints: Floats = matrix.joints(presence, weights, np.array(head.bias))
    yield from (score_of_joints(head, row) for row in joints.tolist())


def _scores_of(fitted: Fit, found: tuple[tuple[Floats, Floats], ...]) -> Iterator[Score]:
    head = fitted.head
    offsets = [class_offset(head, k) for k in head.scored_classes]
    for first in range(0, len(found[0][1]), _SCORED):
        place = slice(first, first + _SCORED)
        spoken = (
            [
                Evidence(tuple(v), t)
                for v, t in zip(features[place].tolist(), trace[place].tolist(), strict=True)
            ]
            for features, trace in found
        )
        yield from (score_of_evidence(head, row, offsets) for row in zip(*spoken, strict=True))


def token_counts(
    vocabulary: Sequence[str], counts: Integers
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield each token of the vocabulary that some message has, with its counts per class."""
    rows = zip(*counts.tolist(), strict=True)
    return ((token, row) for token, row in zip(vocabulary, rows, strict=True) if any(row))
