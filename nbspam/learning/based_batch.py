"""The evidence rule on a matrix, with a base beneath the model."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from nbspam.bayes.base_arrays import BasedArrays
from nbspam.bayes.base_prior import (
    FADE,
    STRENGTHS,
    WORST,
    based_ranges,
    based_scale,
    log_loss,
    strength_of,
)
from nbspam.bayes.calibration import Calibrations, Scale
from nbspam.bayes.matrix import Booleans, Chunked, Integers, Presence
from nbspam.learning.batch import Fit
from nbspam.learning.batch_rules import BatchEvidence
from nbspam.scoring.base import Base, BasedRule, based_classifier, odds_of_label
from nbspam.scoring.classifier import Classifier, CountsOf
from nbspam.store.metadata import Metadata, WithBase

_MEMORY = 1 / (1 - FADE)  # messages that the losses of an endless sequence amount to


class BatchBased(BatchEvidence):
    """The evidence of a corpus with a base beneath its counts.

    The calibrations here are those with the base; the model's own are `BatchEvidence`'s.
    """

    def __init__(self, own: BatchEvidence, base: Base, base_counts: Integers) -> None:
        """own: the rule of the same messages; base_counts: (n_classes, n_tokens)."""
        super().__init__(own._counts, own._labels, own._channels, own._traits)
        self._base, self._base_counts = base, base_counts
        self._strength: float | None = None  # in use; None: as the metadata have it

    def learned(self, presence: Presence | Chunked, metadata: Metadata) -> WithBase:
        """Return what the messages teach with the base, each scored with itself left out.

        Of a corpus the order is not known, so all messages count alike in the losses, as many as an
        online model would remember.
        """
        losses = []
        remembered = min(len(self._labels), _MEMORY)
        for strength in STRENGTHS:
            self._strength = strength
            calibrated = self._calibrated(metadata, self.fit(presence, metadata))
            settings = metadata.settings
            scores = self.left_out_scores(presence, calibrated)
            found = [
                min(WORST, log_loss(*odds_of_label(score, settings, label)))
                for score, label in zip(scores, self._labels.tolist(), strict=True)
            ]
            losses.append(remembered * float(np.mean(found)))
        self._strength = strength_of(losses)
        state = WithBase(tuple(losses), self.fit(presence, metadata))
        self._strength = None
        return state

    def _calibrations(self, metadata: Metadata, places: Integers) -> tuple[Calibrations, ...]:
        fitted = super()._calibrations(metadata, places)
        of_base = self._base.metadata.learned.calibrations
        return tuple(
            Calibrations(*map(based_ranges, own, base))
            for own, base in zip(fitted, of_base, strict=True)
        )

    def _scales(self, metadata: Metadata) -> Sequence[Sequence[Scale]]:
        return [
            [
                based_scale(scale, calibration)
                for scale, calibration in zip(metadata.settings.scales, both, strict=True)
            ]
            for both in self._base.metadata.learned.calibrations
        ]

    @staticmethod
    def _calibrated(metadata: Metadata, calibrations: tuple[Calibrations, ...]) -> Metadata:
        state = metadata.learned.with_base
        losses = (0.0,) * len(STRENGTHS) if state is None else state.losses
        learned = metadata.learned._replace(with_base=WithBase(losses, calibrations))
        return metadata._replace(learned=learned)

    def _rule(self, metadata: Metadata) -> BasedRule:
        return BasedRule(metadata, self._base, self._strength)

    def _contrasts(self, metadata: Metadata) -> BasedArrays:
        return BasedArrays(
            self._counts,
            metadata.learned.messages,
            self._base_counts,
            self._base.metadata.learned.messages,
            self._rule(metadata).strength,
            metadata.settings.alpha,
        )

    def classifier(self, metadata: Metadata, counts_of: CountsOf) -> Classifier:
        """Return a classifier of the same model with the base beneath it."""
        return based_classifier(metadata, counts_of, self._base)

    def _is_known(self) -> Booleans:
        return np.asarray(self._counts.any(axis=0) | self._base_counts.any(axis=0))


def with_base(
    fitted: Fit,
    presence: Presence | Chunked,
    base: Base,
    base_counts: Integers,
    path: "str | Path" = "the new model",
) -> Fit:
    """Return a fit that has learned what its messages teach with a base, and scores with it.

    presence: what it was fitted to; base_counts: (n_classes, n_tokens), of the same columns.
    path: the model's name in errors.  Raises ModelError if the two are unlike.
    """
    metadata = fitted.metadata
    base.check(path, metadata.settings)
    assert isinstance(fitted.rule, BatchEvidence)  # a base needs that scoring
    rule = BatchBased(fitted.rule, base, base_counts)
    learned = metadata.learned._replace(with_base=rule.learned(presence, metadata))
    return fitted._replace(metadata=metadata._replace(learned=learned), rule=rule)


def counts_in_base(base: Base, vocabulary: Sequence[str]) -> Integers:
    """Return the base's counts of some tokens, (n_classes, n_tokens)."""
    known = base.counts(vocabulary)
    none = (0,) * len(base.metadata.settings.classes)
    rows = [known.get(token, none) for token in vocabulary]
    return np.array(rows, dtype=np.int64).reshape(len(rows), len(none)).T
