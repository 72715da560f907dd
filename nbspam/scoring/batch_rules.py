"""The scoring rules on a matrix: what each has to learn, and many scores at once."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from nbspam.bayes import matrix
from nbspam.bayes.calibration import Calibrations, Inputs, fit_calibration, inputs_of_rows
from nbspam.bayes.event_model import EventArrays
from nbspam.bayes.evidence import EvidenceRows, evidence_of_rows, trait_feature
from nbspam.bayes.matrix import (
    Booleans,
    Chunked,
    Floats,
    Integers,
    Presence,
    chunks,
    signed_chunks,
    without_signs,
)
from nbspam.bayes.posterior import log_priors
from nbspam.scoring.rules import EvidenceRule, Score, ScoringRule, SumRule, score_of_log_scores
from nbspam.store.metadata import EVIDENCE, SUM, Metadata, ModelSettings
from nbspam.tokens.kinds import TEXT

_SCORED = 10_000  # messages whose scores are made at a time


def _arrays(counts: Integers, metadata: Metadata) -> EventArrays:
    settings, learned = metadata
    messages = np.array(learned.messages)
    return settings.counts.arrays(counts, messages, settings.alpha, metadata.size)


def _trait_weights(
    rule: ScoringRule, traits: Integers | None, labels: Integers | None
) -> Iterator[list[tuple[float, ...]]]:
    """Yield the weights of each message's traits, as `ScoringRule.trait_weights` returns them.

    labels: of learned messages, each left out; None of new ones.
    """
    if traits is not None:
        left_out = [None] * len(traits) if labels is None else labels.tolist()
        for values, own in zip(traits.tolist(), left_out, strict=True):
            yield rule.trait_weights(values if values[0] >= 0 else (), own)


class _Batch:
    """A scoring rule for all messages of a corpus."""

    def __init__(
        self, counts: Integers, labels: Integers, channels: Integers, traits: Integers | None
    ) -> None:
        """Keep what was learned.

        counts: (n_classes, n_tokens); labels: (n_messages,); channels: (n_tokens,), of the columns;
        traits: (n_messages, n_traits), or None.
        """
        self._counts, self._labels, self._channels = counts, labels, channels
        self._traits = traits


class BatchSum(_Batch):
    """The sum rule on a matrix."""

    # Whether it needs of the counts only those of a message's own tokens, to leave that out: here
    # the absence of every other token has a part in the score.
    fits_apart = False

    def fit(self, _: Presence | Chunked, metadata: Metadata) -> tuple[Calibrations, ...]:
        """Return the calibrations as they are: the posterior is not calibrated."""
        return metadata.learned.calibrations

    def _scores(
        self, joints: Floats, presence: Presence, is_known: Booleans, metadata: Metadata
    ) -> Iterator[Score]:
        """Yield the scores of rows with these joint log-likelihoods.

        is_known: (nnz,), which entries are of tokens in the vocabulary.
        """
        n = presence.shape[0]
        rows = np.repeat(np.arange(n), np.diff(presence.indptr))
        is_text = self._channels[presence.indices] == TEXT
        text = np.bincount(rows[is_text], minlength=n)
        known = np.bincount(rows[is_text & is_known], minlength=n)
        for row, n_known, n_text in zip(
            joints.tolist(), known.tolist(), text.tolist(), strict=True
        ):
            score = score_of_log_scores(metadata.settings, row)
            yield score._replace(known=n_known, text=n_text)

    def left_out_scores(
        self, presence: Presence | Chunked, metadata: Metadata, folds: int = 1
    ) -> Iterator[Score]:
        """Yield each training message's score by the model that never saw it."""
        settings, learned = metadata
        fixed = None
        if settings.prior is not None:
            fixed = np.array(log_priors(learned.messages, settings.prior, settings.positive_index))
        arrays, rule = _arrays(self._counts, metadata), SumRule(metadata)
        totals = self._counts.sum(axis=0)
        for place, piece in chunks(presence):
            labels = self._labels[place]
            joints = arrays.left_out_joints(piece, labels, fixed)
            _add_traits(joints, rule, self._traits, place, labels)
            # A token that only the message itself has is unknown once that is left out.
            yield from self._scores(joints, piece, totals[piece.indices] > piece.data, metadata)

    def scores(
        self, presence: Presence, metadata: Metadata, traits: Integers | None
    ) -> Iterator[Score]:
        """Yield the score of each new message."""
        weights = _arrays(self._counts, metadata).class_weights()
        is_known: Booleans = np.asarray(self._counts.any(axis=0))
        weights[:, ~is_known] = 0
        presence = matrix.without_signs(presence)
        joints = np.asarray(presence @ weights.T + np.array(metadata.bias))
        _add_traits(joints, SumRule(metadata), traits, slice(None), None)
        return self._scores(joints, presence, is_known[presence.indices], metadata)


def _add_traits(
    joints: Floats,
    rule: ScoringRule,
    traits: Integers | None,
    place: slice,
    labels: Integers | None,
) -> None:
    """Add the log densities of the traits of some messages to their joint log-likelihoods."""
    some = None if traits is None else traits[place]
    for i, found in enumerate(_trait_weights(rule, some, labels)):
        if found:
            joints[i] += np.sum(found, axis=0)


class BatchEvidence(_Batch):
    """The evidence rule on a matrix."""

    fits_apart = True
    # Per scored class, of the training messages, each left out: what the fit was made of.
    _left_out: tuple[EvidenceRows, ...] = ()

    def fit(self, presence: Presence | Chunked, metadata: Metadata) -> tuple[Calibrations, ...]:
        """Return the calibrations, fitted to the features of each message left out."""
        self._left_out = self.left_out_evidence(presence, metadata)
        return self._calibrations(metadata, np.arange(len(self._labels)))

    def left_out_evidence(
        self, presence: Presence | Chunked, metadata: Metadata
    ) -> tuple[EvidenceRows, ...]:
        """Return the evidence of each training message, itself left out, for each scored class."""
        return self._evidence(presence, metadata, self._traits, left_out=True)

    def _calibrations(self, metadata: Metadata, places: Integers) -> tuple[Calibrations, ...]:
        """Return the calibrations fitted to some of the messages."""
        inputs = [
            tuple(inputs_of_rows(scale, found)[places] for scale in metadata.settings.scales)
            for found in self._left_out
        ]
        return fitted_calibrations(metadata.settings, inputs, self._labels[places])

    def left_out_scores(
        self, presence: Presence | Chunked, metadata: Metadata, folds: int = 1
    ) -> Iterator[Score]:
        """Yield each training message's score by the model that never saw it.

        folds: above 1, each such part of the messages is scored by calibrations of the others, so
        that no message has had a part in its score.
        """
        if folds < 2:
            return scores_of_rows(self._left_out, EvidenceRule(metadata))
        return self._cross_fitted(metadata, folds)

    def _cross_fitted(self, metadata: Metadata, folds: int) -> Iterator[Score]:
        fold = np.arange(len(self._labels)) % folds
        scores: dict[int, Score] = {}
        for part in range(folds):
            calibrations = self._calibrations(metadata, np.flatnonzero(fold != part))
            own = np.flatnonzero(fold == part)
            learned = metadata.learned._replace(calibrations=calibrations)
            of_part = metadata._replace(learned=learned)
            found = tuple(rows.some(own) for rows in self._left_out)
            scores.update(
                zip(own.tolist(), scores_of_rows(found, EvidenceRule(of_part)), strict=True)
            )
        yield from (scores[i] for i in range(len(fold)))

    def scores(
        self, presence: Presence, metadata: Metadata, traits: Integers | None
    ) -> Iterator[Score]:
        """Yield the score of each new message."""
        found = self._evidence(presence, metadata, traits, left_out=False)
        return scores_of_rows(found, EvidenceRule(metadata))

    def _evidence(
        self,
        presence: Presence | Chunked,
        metadata: Metadata,
        traits: Integers | None,
        left_out: bool,
    ) -> tuple[EvidenceRows, ...]:
        """Return every row's evidence, for each scored class."""
        settings = metadata.settings
        arrays = _arrays(self._counts, metadata)
        features = self._trait_features(presence.shape[0], metadata, traits, left_out)
        unknown = ~self._counts.any(axis=0)
        positive = settings.positive_index or 0

        def weights_of(piece: Presence, place: slice, k: int) -> Floats:
            """Return the weight for class k of each entry; NaN of what is not in the vocabulary."""
            if left_out:
                return arrays.left_out_contrasts(piece, self._labels[place], k)
            weights = arrays.contrasts(k)
            weights[unknown] = np.nan
            return np.asarray(weights[piece.indices])

        found = []
        for scored, of_traits in zip(settings.scored_classes, features, strict=True):
            parts = []
            for place, signed in signed_chunks(presence):
                piece = without_signs(signed)
                lengths = np.diff(piece.indptr)
                rows = np.repeat(np.arange(len(lengths)), lengths)
                weights = weights_of(piece, place, scored)
                if piece is not signed:  # what is perhaps hidden never speaks for ham
                    same = scored == positive
                    for_spam = weights if same else weights_of(piece, place, positive)
                    weights = np.where((signed.data < 0) & (for_spam < 0), np.nan, weights)
                channels = self._channels[piece.indices]
                parts.append(evidence_of_rows(rows, weights, channels, len(lengths)))
            *arrays_of_rows, _ = zip(*parts, strict=True)
            found.append(EvidenceRows._make([*map(np.concatenate, arrays_of_rows), of_traits]))
        return tuple(found)

    def _trait_features(
        self, n: int, metadata: Metadata, traits: Integers | None, left_out: bool
    ) -> tuple[Floats | None, ...]:
        """Return the feature of the traits, (n_messages,), for each scored class."""
        n_scored = len(metadata.settings.scored_classes)
        if not metadata.settings.has_traits:
            return (None,) * n_scored
        features = np.zeros((n_scored, n))
        rule = EvidenceRule(metadata)
        labels = self._labels if left_out else None
        for i, weights in enumerate(_trait_weights(rule, traits, labels)):
            if weights:
                features[:, i] = [trait_feature(same) for same in zip(*weights, strict=True)]
        return tuple(features)


def scores_of_rows(found: tuple[EvidenceRows, ...], rule: EvidenceRule) -> Iterator[Score]:
    """Yield the score of each message; found: for each scored class, the evidence of all."""
    for first in range(0, len(found[0].text), _SCORED):
        place = slice(first, first + _SCORED)
        for by_class in zip(*(rows.messages(place) for rows in found), strict=True):
            evidences, text_tokens = zip(*by_class, strict=True)
            yield rule.score_of(evidences, text_tokens[0])


def fitted_calibrations(
    settings: ModelSettings, inputs: Sequence[Sequence[Inputs]], labels: Integers
) -> tuple[Calibrations, ...]:
    """Return the calibrations fitted to some messages, of each scored class.

    inputs: per scored class, of each of its calibrations.  labels: (n,), the messages' classes.
    """
    return tuple(
        Calibrations(
            *(
                fit_calibration(scale, x, labels == k)
                for scale, x in zip(settings.scales, both, strict=True)
            )
        )
        for k, both in zip(settings.scored_classes, inputs, strict=True)
    )


BatchRule = BatchEvidence | BatchSum
BATCH_RULES: Mapping[str, type[BatchEvidence] | type[BatchSum]] = {
    EVIDENCE: BatchEvidence,
    SUM: BatchSum,
}
