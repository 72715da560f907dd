"""The scoring rules on a matrix: what each has to learn, and many scores at once."""

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

import numpy as np

from nbspam.bayes import matrix
from nbspam.bayes.calibration import Calibration
from nbspam.bayes.event_model_arrays import EVENT_MODEL_ARRAYS
from nbspam.bayes.evidence import FEATURES, Evidence
from nbspam.bayes.evidence_matrix import evidence_of_rows, fit_calibration
from nbspam.bayes.matrix import Booleans, Chunked, Floats, Integers, Presence, chunks
from nbspam.bayes.posterior import log_priors
from nbspam.scoring.evidence_rule import EvidenceRule
from nbspam.scoring.score import Score, score_of_log_scores
from nbspam.store.metadata import EVIDENCE, SUM, Metadata

_SCORED = 10_000  # messages whose scores are made at a time


class BatchRule(Protocol):
    """A scoring rule for all messages of a corpus, made of its counts, labels and header columns.

    counts: (n_classes, n_tokens); labels: (n_messages,); is_header: (n_tokens,).
    """

    def fit(self, presence: Presence | Chunked, metadata: Metadata) -> tuple[Calibration, ...]:
        """Return the calibrations of the model, fitted to its messages, each left out."""

    def left_out_scores(self, presence: Presence | Chunked, metadata: Metadata) -> Iterator[Score]:
        """Yield each training message's score by the model that never saw it."""

    def scores(self, presence: Presence, metadata: Metadata) -> Iterator[Score]:
        """Yield the score of each new message, a row of a matrix of the same columns."""


class BatchSum:
    """The sum rule on a matrix."""

    def __init__(self, counts: Integers, labels: Integers, is_header: Booleans) -> None:
        self._counts, self._labels = counts, labels

    def fit(self, presence: Presence | Chunked, metadata: Metadata) -> tuple[Calibration, ...]:
        """Return the calibrations as they are: the posterior is not calibrated."""
        return metadata.learned.calibrations

    def left_out_scores(self, presence: Presence | Chunked, metadata: Metadata) -> Iterator[Score]:
        """Yield each training message's score by the model that never saw it."""
        settings, learned = metadata
        fixed = None
        if settings.prior is not None:
            fixed = np.array(log_priors(learned.messages, settings.prior, settings.positive_index))
        arrays = EVENT_MODEL_ARRAYS[settings.event_model]
        for place, piece in chunks(presence):
            joints = arrays.left_out_joints(
                piece,
                self._labels[place],
                self._counts,
                np.array(learned.messages),
                settings.alpha,
                fixed,
            )
            yield from (score_of_log_scores(settings, row) for row in joints.tolist())

    def scores(self, presence: Presence, metadata: Metadata) -> Iterator[Score]:
        """Yield the score of each new message."""
        settings, learned = metadata
        weights = EVENT_MODEL_ARRAYS[settings.event_model].class_weights(
            self._counts, np.array(learned.messages), settings.alpha
        )
        weights[:, ~self._counts.any(axis=0)] = 0
        joints: Floats = matrix.joint_matrix(presence, weights, np.array(metadata.bias))
        yield from (score_of_log_scores(settings, row) for row in joints.tolist())


class BatchEvidence:
    """The evidence rule on a matrix."""

    def __init__(self, counts: Integers, labels: Integers, is_header: Booleans) -> None:
        self._counts, self._labels, self._is_header = counts, labels, is_header
        # Per scored class, of the training messages, each left out: what the fit was made of.
        self._left_out: tuple[tuple[Floats, Floats], ...] = ()

    def fit(self, presence: Presence | Chunked, metadata: Metadata) -> tuple[Calibration, ...]:
        """Return the calibrations, fitted to the features of each message left out."""
        scored_classes = metadata.settings.scored_classes
        self._left_out = tuple(
            self._evidence(presence, metadata, scored, left_out=True) for scored in scored_classes
        )
        return tuple(
            fit_calibration(features, header_nats, self._labels == k)
            for (features, header_nats), k in zip(self._left_out, scored_classes, strict=True)
        )

    def left_out_scores(self, presence: Presence | Chunked, metadata: Metadata) -> Iterator[Score]:
        """Yield each training message's score by the model that never saw it."""
        return self._scores_of(self._left_out, metadata)

    def scores(self, presence: Presence, metadata: Metadata) -> Iterator[Score]:
        """Yield the score of each new message."""
        found = tuple(
            self._evidence(presence, metadata, scored, left_out=False)
            for scored in metadata.settings.scored_classes
        )
        return self._scores_of(found, metadata)

    def _evidence(
        self, presence: Presence | Chunked, metadata: Metadata, scored: int, left_out: bool
    ) -> tuple[Floats, Floats]:
        """Return every row's features, (n, len(FEATURES)), and header nats, (n,)."""
        settings = metadata.settings
        contrast = EVENT_MODEL_ARRAYS[settings.event_model].contrast
        arguments = (self._counts, np.array(metadata.learned.messages), scored, settings.alpha)
        if left_out:
            # For the other classes it does not matter which of them has lost the message.
            other = 1 if scored == 0 else 0
            weights = np.stack([contrast(*arguments, k) for k in (other, scored)])
            own = (self._labels == scored).astype(np.int64)
        else:
            weights = contrast(*arguments, None)[None]
            # A column without training messages is not in the vocabulary: its token is ignored.
            weights[:, ~self._counts.any(axis=0)] = np.nan
            own = np.zeros(presence.shape[0], dtype=np.int64)
        features, header_nats = np.empty((len(own), len(FEATURES))), np.empty(len(own))
        for place, piece in chunks(presence):
            lengths = np.diff(piece.indptr)
            rows = np.repeat(np.arange(len(lengths)), lengths)
            entry_weights = weights[np.repeat(own[place], lengths), piece.indices]
            in_header = self._is_header[piece.indices]
            features[place], header_nats[place] = evidence_of_rows(
                rows, entry_weights, in_header, len(lengths)
            )
        return features, header_nats

    @staticmethod
    def _scores_of(found: tuple[tuple[Floats, Floats], ...], metadata: Metadata) -> Iterator[Score]:
        rule = EvidenceRule(metadata)
        for first in range(0, len(found[0][1]), _SCORED):
            place = slice(first, first + _SCORED)
            by_class = (
                [
                    Evidence(tuple(f), nats)
                    for f, nats in zip(
                        features[place].tolist(), header_nats[place].tolist(), strict=True
                    )
                ]
                for features, header_nats in found
            )
            yield from (rule.score_of(row) for row in zip(*by_class, strict=True))


BATCH_RULES: Mapping[str, Callable[[Integers, Integers, Booleans], BatchRule]] = {
    EVIDENCE: BatchEvidence,
    SUM: BatchSum,
}
