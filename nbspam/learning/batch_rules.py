"""The scoring rules on a matrix: what each has to learn, and many scores at once."""

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

import numpy as np

from nbspam.bayes import matrix
from nbspam.bayes.calibration import SCALES, Calibrations
from nbspam.bayes.event_model_arrays import EVENT_MODEL_ARRAYS
from nbspam.bayes.evidence_matrix import (
    EvidenceRows,
    evidence_of_rows,
    fit_calibration,
    inputs_of_rows,
)
from nbspam.bayes.matrix import Booleans, Chunked, Floats, Integers, Presence, chunks
from nbspam.bayes.posterior import log_priors
from nbspam.scoring.evidence_rule import EvidenceRule
from nbspam.scoring.score import Score, score_of_log_scores
from nbspam.store.metadata import EVIDENCE, SUM, Metadata
from nbspam.tokens.kinds import TEXT

_SCORED = 10_000  # messages whose scores are made at a time


class BatchRule(Protocol):
    """A scoring rule for all messages of a corpus: its counts, its labels, its columns' channels.

    counts: (n_classes, n_tokens); labels: (n_messages,); channels: (n_tokens,).
    """

    def fit(self, presence: Presence | Chunked, metadata: Metadata) -> tuple[Calibrations, ...]:
        """Return the calibrations of the model, fitted to its messages, each left out."""

    def left_out_scores(self, presence: Presence | Chunked, metadata: Metadata) -> Iterator[Score]:
        """Yield each training message's score by the model that never saw it."""

    def scores(self, presence: Presence, metadata: Metadata) -> Iterator[Score]:
        """Yield the score of each new message, a row of a matrix of the same columns."""


class BatchSum:
    """The sum rule on a matrix."""

    def __init__(self, counts: Integers, labels: Integers, channels: Integers) -> None:
        self._counts, self._labels = counts, labels
        self._is_text: Booleans = np.asarray(channels == TEXT)

    def fit(self, presence: Presence | Chunked, metadata: Metadata) -> tuple[Calibrations, ...]:
        """Return the calibrations as they are: the posterior is not calibrated."""
        return metadata.learned.calibrations

    def _in_vocabulary(self) -> Booleans:
        return np.asarray(self._counts.sum(axis=0) > 0, dtype=np.bool_)

    def _scores(
        self, joints: Floats, presence: Presence, is_known: Booleans, metadata: Metadata
    ) -> Iterator[Score]:
        """Yield the scores of rows with these joint log-likelihoods.

        is_known: (n_tokens,), which columns are in the vocabulary.
        """
        text = presence @ self._is_text.astype(float)
        known = presence @ (self._is_text & is_known).astype(float)
        for row, n_known, n_text in zip(
            joints.tolist(), known.tolist(), text.tolist(), strict=True
        ):
            score = score_of_log_scores(metadata.settings, row)
            yield score._replace(known=int(n_known), text=int(n_text))

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
            # A token that only the message itself has is unknown once that is left out.
            left = np.asarray(self._counts.sum(axis=0) > 1, dtype=np.bool_)
            yield from self._scores(joints, piece, left, metadata)

    def scores(self, presence: Presence, metadata: Metadata) -> Iterator[Score]:
        """Yield the score of each new message."""
        settings, learned = metadata
        weights = EVENT_MODEL_ARRAYS[settings.event_model].class_weights(
            self._counts, np.array(learned.messages), settings.alpha
        )
        weights[:, ~self._counts.any(axis=0)] = 0
        joints: Floats = matrix.joint_matrix(presence, weights, np.array(metadata.bias))
        return self._scores(joints, presence, self._in_vocabulary(), metadata)


class BatchEvidence:
    """The evidence rule on a matrix."""

    def __init__(self, counts: Integers, labels: Integers, channels: Integers) -> None:
        self._counts, self._labels, self._channels = counts, labels, channels
        # Per scored class, of the training messages, each left out: what the fit was made of.
        self._left_out: tuple[EvidenceRows, ...] = ()

    def fit(self, presence: Presence | Chunked, metadata: Metadata) -> tuple[Calibrations, ...]:
        """Return the calibrations, fitted to the features of each message left out."""
        scored_classes = metadata.settings.scored_classes
        self._left_out = tuple(
            self._evidence(presence, metadata, scored, left_out=True) for scored in scored_classes
        )
        return tuple(
            Calibrations(
                *(
                    fit_calibration(scale, inputs_of_rows(scale, found), self._labels == k)
                    for scale in SCALES
                )
            )
            for found, k in zip(self._left_out, scored_classes, strict=True)
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
    ) -> EvidenceRows:
        """Return every row's evidence for a scored class."""
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
        parts = []
        for place, piece in chunks(presence):
            lengths = np.diff(piece.indptr)
            rows = np.repeat(np.arange(len(lengths)), lengths)
            entry_weights = weights[np.repeat(own[place], lengths), piece.indices]
            entry_channels = self._channels[piece.indices]
            parts.append(evidence_of_rows(rows, entry_weights, entry_channels, len(lengths)))
        return EvidenceRows(*(np.concatenate(same) for same in zip(*parts, strict=True)))

    @staticmethod
    def _scores_of(found: tuple[EvidenceRows, ...], metadata: Metadata) -> Iterator[Score]:
        rule = EvidenceRule(metadata)
        for first in range(0, len(found[0].text), _SCORED):
            place = slice(first, first + _SCORED)
            for by_class in zip(*(rows.messages(place) for rows in found), strict=True):
                evidences, text_tokens = zip(*by_class, strict=True)
                yield rule.score_of(evidences, text_tokens[0])


BATCH_RULES: Mapping[str, Callable[[Integers, Integers, Integers], BatchRule]] = {
    EVIDENCE: BatchEvidence,
    SUM: BatchSum,
}
