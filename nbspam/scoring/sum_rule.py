"""The textbook's rule: the bias and the sum of all weights, and its plain posterior.

    log P(k, x) = b_k + sum_j w_jk x_j + sum_t log f_tk(x_t),   P(k | x) = softmax of these

of the tokens j, and of the traits t where the model has them.

It equals scikit-learn's naive Bayes of the same event model to 1e-9.
"""

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from nbspam.bayes.calibration import Calibrations
from nbspam.bayes.event_model import Row, Size, joints
from nbspam.bayes.trait_model import trait_model
from nbspam.scoring.score import Score, score_of_log_scores
from nbspam.scoring.words import KnownWords
from nbspam.store.metadata import Metadata

if TYPE_CHECKING:  # only an explanation needs them
    from nbspam.bayes.trait_model import TraitModel
    from nbspam.scoring.terms import Found, Terms


class SumRule:
    """The sum of the weights of one model; see `rule.ScoringRule`."""

    is_calibrated = False

    def __init__(self, metadata: Metadata) -> None:
        self._metadata = metadata
        self._settings, self._learned = metadata
        self.heeds_times = self._settings.counts.repeats
        self.heeds_doubt = False
        self.traits = range(len(self._learned.trait_histograms))

    @functools.cached_property
    def _size(self) -> Size:
        return self._metadata.size

    @functools.cached_property
    def _densities(self) -> "TraitModel | None":
        settings = self._settings
        return trait_model(settings.traits, self._learned.trait_histograms, settings.variances)

    def trait_weights(
        self, values: Sequence[int], left_out: int | None = None
    ) -> list[tuple[float, ...]]:
        """Return the log density of each trait per class, in nats."""
        densities = self._densities
        return densities.log_densities(values, left_out) if densities and values else []

    @functools.cached_property
    def _bias(self) -> tuple[float, ...]:
        return self._metadata.bias

    def weights(self, row: Row) -> tuple[float, ...]:
        """Return a token's weight for each class, in nats."""
        settings = self._settings
        return settings.counts.class_weights(row, self._size, settings.alpha)

    def score(self, words: KnownWords) -> Score:
        """Return the plain posterior; the tokens of all channels are added alike."""
        score = score_of_log_scores(self._settings, joints(self._bias, words.all))
        return score._replace(known=len(words.text), text=words.text_tokens)

    def contrasts(self, row: Row) -> list[float]:
        """Return a token's weight for each class, less its highest weight for another."""
        weights = self.weights(row)
        return [w - max(weights[:k] + weights[k + 1 :]) for k, w in enumerate(weights)]

    def terms(self, found: "Found", score: Score, k: int) -> "Terms":
        """Return the terms of class k against the most probable of the others."""
        from nbspam.scoring.terms import BIAS, Terms

        probabilities = score.probabilities
        others = [i for i in range(len(probabilities)) if i != k]
        against = max(others, key=lambda i: probabilities[i])
        of_tokens = [w[k] - w[against] for w in map(self.weights, found.rows)]
        of_traits = [w[k] - w[against] for w in found.traits]
        shares = [w * n for w, n in zip(of_tokens, found.times, strict=True)]
        constants = {BIAS: self._bias[k] - self._bias[against]}
        name = self._settings.classes[against]
        return Terms(name, constants, of_tokens + of_traits, shares + of_traits)

    def refined(
        self,
        calibrations: tuple[Calibrations, ...],
        words: KnownWords,
        label: int,
        undo: bool = False,
    ) -> tuple[Calibrations, ...]:
        """Return the calibrations as they are: the posterior is not calibrated."""
        return calibrations
