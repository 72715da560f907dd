"""The evidence rule: features of the weights, combined and calibrated (`bayes/evidence.py`)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nbspam.bayes.bernoulli import Row
from nbspam.bayes.calibration import Calibration, is_run, update
from nbspam.bayes.evidence import Evidence, evidence, log_odds, shares
from nbspam.bayes.posterior import odds_of_class, prior_offset
from nbspam.scoring.score import Score, score_of_log_odds, score_of_log_scores
from nbspam.store.metadata import Metadata

if TYPE_CHECKING:  # only an explanation needs them
    from nbspam.scoring.terms import Terms


class EvidenceRule:
    """The calibrated evidence of one model; see `rule.ScoringRule`."""

    is_calibrated = True

    def __init__(self, metadata: Metadata) -> None:
        settings, learned = self._settings, self._learned = metadata
        self._scored = settings.scored_classes
        self._offsets = [
            prior_offset(learned.messages, settings.prior, settings.positive_index, k)
            for k in self._scored
        ]

    def weights(self, row: Row) -> tuple[float, ...]:
        """Return a token's weight for each scored class against the others, in nats."""
        settings, messages = self._settings, self._learned.messages
        contrast = settings.counts.contrast
        return tuple(contrast(row, messages, k, settings.alpha) for k in self._scored)

    def score(
        self, text: Sequence[tuple[float, ...]], header: Sequence[tuple[float, ...]]
    ) -> Score:
        """Return the calibrated score of a message."""
        return self.score_of(
            tuple(
                evidence([row[i] for row in text], [row[i] for row in header])
                for i in range(len(self._scored))
            )
        )

    def score_of(self, evidences: tuple[Evidence, ...]) -> Score:
        """Return the calibrated score of the evidence for each scored class."""
        z = [
            log_odds(found, calibration.coefficients) + offset
            for found, calibration, offset in zip(
                evidences, self._learned.calibrations, self._offsets, strict=True
            )
        ]
        if len(self._settings.classes) == 2:
            return score_of_log_odds(self._settings, z[0], evidences)
        # Two classes have the scores z and -z, and the sigmoid of z is the softmax of their halves;
        # more classes are treated alike.  (Softmax of z itself: log-loss 0.166 against 0.129 in a
        # trial with three classes.)
        score = score_of_log_scores(self._settings, [value / 2 for value in z])
        return score._replace(evidences=evidences)

    def contrasts(self, row: Row) -> list[float]:
        """Return a token's weight for each class against the others, in nats."""
        weights = self.weights(row)
        if len(weights) > 1:
            return list(weights)
        sign = 1 if self._settings.positive_index == 1 else -1
        return [-sign * weights[0], sign * weights[0]]

    def terms(
        self, rows: Sequence[Row], in_header: Sequence[bool], score: Score, k: int
    ) -> "Terms":
        """Return the terms of class k against the others."""
        from nbspam.scoring.terms import CALIBRATION, LENGTH, OTHER_CLASSES, PRIOR, THE_REST, Terms

        i = self._scored.index(k)
        coefficients = self._learned.calibrations[i].coefficients
        weights = [self.weights(row)[i] for row in rows]
        text, header = shares(
            [w for w, is_header in zip(weights, in_header, strict=True) if not is_header],
            [w for w, is_header in zip(weights, in_header, strict=True) if is_header],
            coefficients,
        )
        of_text, of_header = iter(text), iter(header)
        ordered = [next(of_header if is_header else of_text) for is_header in in_header]
        constants = {
            CALIBRATION: coefficients[0],
            LENGTH: coefficients[-1] * score.evidences[i].features[-1],
        }
        if self._offsets[i]:
            constants[PRIOR] = self._offsets[i]
        classes = self._settings.classes
        if len(classes) == 2:
            return Terms(classes[1 - k], constants, weights, ordered)
        own = sum(constants.values()) + sum(ordered)
        constants[OTHER_CLASSES] = odds_of_class(score.log_scores, k) - own
        return Terms(THE_REST, constants, weights, ordered)

    def refined(
        self, calibrations: tuple[Calibration, ...], score: Score, label: int
    ) -> tuple[Calibration, ...]:
        """Return the calibrations after a message that was scored as if it had not been learned.

        A long run of one class teaches nothing more (`calibration.is_run`).
        """
        messages = self._learned.messages
        total = sum(messages) + 1  # with the message itself
        refined = []
        for k, before, found in zip(self._scored, calibrations, score.evidences, strict=True):
            is_own = label == k
            n = messages[k] + 1 if is_own else total - messages[k]
            share = (n + 1) / (total + 2)
            if not is_run(before, is_own, share):
                before = update(before, found.features, found.header_nats, is_own)
            refined.append(before)
        return tuple(refined)
