"""The seam between a message's weights and its score: the scoring rules.

A rule is a class like `EvidenceRule`, and an entry of RULES; learning has its part of a rule in
`learning/batch_rules.py`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from nbspam.bayes.bernoulli import Row
from nbspam.bayes.calibration import Calibrations
from nbspam.scoring.evidence_rule import EvidenceRule
from nbspam.scoring.score import Score
from nbspam.scoring.sum_rule import SumRule
from nbspam.scoring.words import KnownWords, Weights
from nbspam.store.metadata import EVIDENCE, SUM, Metadata

if TYPE_CHECKING:  # only an explanation needs them
    from nbspam.scoring.terms import Terms


class ScoringRule(Protocol):
    """How the weights of a message's tokens become its score, for one model."""

    @property
    def is_calibrated(self) -> bool:
        """Whether its probabilities are calibrated, so that each message can refine them."""

    def weights(self, row: Row) -> Weights:
        """Return the weights of a token with these counts per class, in nats."""

    def score(self, words: KnownWords) -> Score:
        """Return the score of a message with these words."""

    def contrasts(self, row: Row) -> list[float]:
        """Return a token's weight for each class against the others, in nats."""

    def terms(self, rows: Sequence[Row], channels: Sequence[int], score: Score, k: int) -> "Terms":
        """Return the terms of the log-odds of class k, which is the positive or most probable."""

    def refined(
        self, calibrations: tuple[Calibrations, ...], words: KnownWords, label: int
    ) -> tuple[Calibrations, ...]:
        """Return the calibrations after one more message of the class `label`.

        words: of the message, as a model knows them that has not learned it.
        """


RULES: Mapping[str, Callable[[Metadata], ScoringRule]] = {EVIDENCE: EvidenceRule, SUM: SumRule}


def rule_of(metadata: Metadata) -> ScoringRule:
    """Return the scoring rule of a model."""
    return RULES[metadata.settings.scoring](metadata)
