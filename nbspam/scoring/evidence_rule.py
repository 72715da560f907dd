"""The evidence rule: two calibrations of a message's features, blended by trust in its headers.

    z = (1 - tau) z_text + tau z_full

with tau from the collecting hosts (`bayes/prediction.py`), and each z from its calibration
(`bayes/prediction.py`).
"""

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from nbspam.bayes.calibration import (
    Calibrations,
    Vector,
    groups,
    inputs,
    is_run,
    undone,
    update,
)
from nbspam.bayes.event_model import Row, contrast
from nbspam.bayes.evidence import TRAIT_SCALE, Evidence, Group, evidence, trait_weight
from nbspam.bayes.posterior import log_sigmoid, odds_of_class, prior_offset
from nbspam.bayes.prediction import Experience, Prediction, inverse, predict, trust
from nbspam.bayes.trait_model import against_rest, trait_model
from nbspam.scoring.score import Score, score_of_log_odds, score_of_log_scores
from nbspam.scoring.words import KnownWords
from nbspam.store.metadata import Metadata
from nbspam.tokens.traits import IN_EVIDENCE

if TYPE_CHECKING:  # only an explanation needs them
    from nbspam.bayes.trait_model import TraitModel
    from nbspam.scoring.terms import Found, Terms


class EvidenceRule:
    """The calibrated evidence of one model; see `rule.ScoringRule`."""

    is_calibrated = True
    heeds_times = False
    heeds_doubt = True

    def __init__(self, metadata: Metadata) -> None:
        settings, learned = self._settings, self._learned = metadata
        self._metadata = metadata
        self._size = metadata.size
        every = range(len(learned.trait_histograms))
        # Without tokens, the form of a mail is told by its traits alone.
        self.traits = IN_EVIDENCE if every and settings.counts.has_tokens else every
        self._scored = settings.scored_classes
        total = sum(learned.messages)
        self._experience: list[Experience] = [
            Experience(learned.messages[k], total - learned.messages[k]) for k in self._scored
        ]
        self._offsets = [
            prior_offset(learned.messages, settings.prior, settings.positive_index, k)
            for k in self._scored
        ]

    @functools.cached_property
    def _host_trust(self) -> tuple[float, float]:
        return self._metadata.host_trust

    @functools.cached_property
    def _covariances(self) -> list[tuple[Sequence[Vector], ...]]:
        """The inverses of the calibrations' precisions, per scored class."""
        return [
            tuple(inverse(calibration.precision) for calibration in both)
            for both in self._learned.calibrations
        ]

    def weights(self, row: Row) -> tuple[float, ...]:
        """Return a token's weight for each scored class against the others, in nats."""
        alpha = self._settings.alpha
        return tuple(contrast(row, self._size, k, alpha) for k in self._scored)

    def _fewest_with_traits(self, k: int, left_out: int | None) -> int:
        """Return how many messages with traits class k has, or the others if those are fewer."""
        n = [own - (i == left_out) for i, own in enumerate(self._with_traits)]
        return min(n[k], sum(n) - n[k])

    @functools.cached_property
    def _with_traits(self) -> list[int]:
        """How many messages of each class were learned with their traits."""
        return [sum(values.values()) for values in self._learned.trait_histograms[0]]

    @functools.cached_property
    def _densities(self) -> list["TraitModel | None"]:
        """The densities of the traits: per scored class, of the others together and of it."""
        settings, histograms = self._settings, self._learned.trait_histograms
        heeded = [histograms[i] for i in self.traits]
        return [
            trait_model(settings.traits, both, settings.variances)
            for both in against_rest(heeded, self._scored)
        ]

    def trait_weights(
        self, values: Sequence[int], left_out: int | None = None
    ) -> list[tuple[float, ...]]:
        """Return the weight of each trait for each scored class against the others, in nats."""
        if not (self.traits and values):
            return []
        heeded = [values[i] for i in self.traits]
        by_class = []
        for k, densities in zip(self._scored, self._densities, strict=True):
            if densities is not None:
                own = None if left_out is None else int(left_out == k)
                pairs = densities.log_densities(heeded, own)
                fewest = self._fewest_with_traits(k, left_out)
                by_class.append([trait_weight(of - rest, fewest) for rest, of in pairs])
        return list(zip(*by_class, strict=True))

    def score(self, words: KnownWords) -> Score:
        """Return the calibrated score of a message."""
        return self.score_of(self._evidences(words), words.text_tokens)

    def _evidences(self, words: KnownWords) -> tuple[Evidence, ...]:
        """Return the evidence for each scored class."""
        return tuple(
            evidence(
                [row[i] for row in words.text],
                [row[i] for row in words.fields],
                [row[i] for row in words.header],
                None if words.traits is None else [row[i] for row in words.traits],
            )
            for i in range(len(self._scored))
        )

    def score_of(self, evidences: tuple[Evidence, ...], text_tokens: int) -> Score:
        """Return the calibrated score of the evidence for each scored class.

        text_tokens: how many tokens the text has, known or not.
        """
        tau = self.trust_in(evidences)
        z = []
        for i, found in enumerate(evidences):
            text, full = self.predictions(found, i, tau)
            z.append((1 - tau) * text.log_odds + tau * full.log_odds)
        if len(self._settings.classes) == 2:
            score = score_of_log_odds(self._settings, z[0] + self._offsets[0])
        else:
            # Two classes have the scores z and -z, and the sigmoid of z is the softmax of half of
            # both; so it is with more, but for the prior, which is taken as it is: without any
            # known word the probabilities are the classes' shares.  (Softmax of z itself: log-loss
            # 0.166 against 0.129 in a trial with three classes.)
            log_scores = [
                log_sigmoid(own.prior + offset) + (v - own.prior) / 2
                for v, (own, offset) in zip(
                    z, zip(self._experience, self._offsets, strict=True), strict=True
                )
            ]
            score = score_of_log_scores(self._settings, log_scores)
        known = evidences[0].text.n
        return score._replace(evidences=evidences, trust=tau, known=known, text=text_tokens)

    def trust_in(self, evidences: tuple[Evidence, ...]) -> float:
        """Return tau of a message: how far its header channel is trusted."""
        rho, mails = self._host_trust
        return trust(rho, mails, evidences[0].header.n)

    def predictions(
        self, found: Evidence, i: int, tau: float = 1.0
    ) -> tuple[Prediction, Prediction]:
        """Return what each calibration of scored class number i predicts.

        tau: without trust the second is not needed, and is the first.
        """
        words = groups(found)
        if not self._settings.counts.has_tokens:  # the traits are all that speaks
            nats = TRAIT_SCALE * (found.traits or 0.0)
            words = ((Group(0.0, 0.0, 0.0, 0, max(nats, 0.0), min(nats, 0.0)),),) * 2
        pairs = zip(
            self._learned.calibrations[i],
            self._covariances[i],
            inputs(found),
            words,
            strict=True,
        )
        text, *others = pairs
        first = predict(*text, self._experience[i])
        return first, predict(*others[0], self._experience[i]) if tau else first

    def contrasts(self, row: Row) -> list[float]:
        """Return a token's weight for each class against the others, in nats."""
        weights = self.weights(row)
        if len(weights) > 1:
            return list(weights)
        sign = 1 if self._settings.positive_index == 1 else -1
        return [-sign * weights[0], sign * weights[0]]

    def terms(self, found: "Found", score: Score, k: int) -> "Terms":
        """Return the terms of class k against the others."""
        from nbspam.scoring.terms import OTHER_CLASSES, PRIOR, THE_REST, Terms, evidence_terms

        i = self._scored.index(k)
        evidences, tau = score.evidences[i], score.trust
        weights = [self.weights(row)[i] for row in found.rows]
        traits = [row[i] for row in found.traits]
        constants, shares = evidence_terms(
            weights,
            found.channels,
            traits,
            [
                (tau_part, scale, calibration, prediction, x)
                for tau_part, scale, calibration, prediction, x in zip(
                    (1 - tau, tau),
                    self._settings.scales,
                    self._learned.calibrations[i],
                    self.predictions(evidences, i, tau),
                    inputs(evidences),
                    strict=True,
                )
                if tau_part
            ],
            self._experience[i],
        )
        if self._offsets[i]:
            constants[PRIOR] = constants.get(PRIOR, 0.0) + self._offsets[i]
        weights += traits
        classes = self._settings.classes
        if len(classes) == 2:
            return Terms(classes[1 - k], constants, weights, shares)
        own = sum(constants.values()) + sum(shares)
        constants[OTHER_CLASSES] = odds_of_class(score.log_scores, k) - own
        return Terms(THE_REST, constants, weights, shares)

    def refined(
        self,
        calibrations: tuple[Calibrations, ...],
        words: KnownWords,
        label: int,
        undo: bool = False,
    ) -> tuple[Calibrations, ...]:
        """Return the calibrations after a message that was scored as if it had not been learned.

        A long run of one class teaches nothing more (`calibration.is_run`).
        undo: without the message, from which they have learned.
        """
        messages = self._metadata.learned.messages
        total = sum(messages) + 1  # with the message itself
        refined = []
        for k, both, found in zip(self._scored, calibrations, self._evidences(words), strict=True):
            is_own = label == k
            n = messages[k] + 1 if is_own else total - messages[k]
            share = (n + 1) / (total + 2)
            pairs = []
            for scale, before, x in zip(self._settings.scales, both, inputs(found), strict=True):
                if undo:
                    pairs.append(undone(scale, before, x, is_own))
                elif is_run(before, is_own, share):
                    pairs.append(before)
                else:
                    pairs.append(update(scale, before, x, is_own))
            refined.append(Calibrations(*pairs))
        return tuple(refined)
