"""The seam between a message's weights and its score: the scoring rules.

A rule is a class like `EvidenceRule`, and an entry of RULES; learning has its part of a rule in
`learning/batch_rules.py`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from nbspam.bayes.calibration import Calibrations
from nbspam.bayes.event_model import Row
from nbspam.scoring.evidence_rule import EvidenceRule
from nbspam.scoring.score import Score
from nbspam.scoring.sum_rule import SumRule
from nbspam.scoring.words import KnownWords, Weights
from nbspam.store.metadata import EVIDENCE, SUM, Metadata

if TYPE_CHECKING:  # only an explanation needs them
    from nbspam.scoring.terms import Found, Terms


class ScoringRule(Protocol):
    """How the weights of a message's tokens become its score, for one model."""

    @property
    def is_calibrated(self) -> bool:
        """Whether its probabilities are calibrated, so that each message can refine them."""

    @property
    def heeds_times(self) -> bool:
        """Whether a token speaks as often as it occurs in a message, or once."""

    @property
    def heeds_doubt(self) -> bool:
        """Whether words that are perhaps hidden are heard for spam alone."""

    @property
    def traits(self) -> Sequence[int]:
        """The traits that it heeds, by their place in `tokens.traits.TRAITS`."""

    def weights(self, row: Row) -> Weights:
        """Return the weights of a token with these counts per class, in nats."""

    def trait_weights(self, values: Sequence[int], left_out: int | None = None) -> list[Weights]:
        """Return the weights of the traits that it heeds, in nats; [] of a model without traits.

        values: of a message, as `tokens/traits.py` lists them.
        left_out: the message's class, if it was learned and is to be scored as if it had not been.
        """

    def score(self, words: KnownWords) -> Score:
        """Return the score of a message with these words."""

    def contrasts(self, row: Row) -> list[float]:
        """Return a token's weight for each class against the others, in nats."""

    def terms(self, found: "Found", score: Score, k: int) -> "Terms":
        """Return the terms of the log-odds of class k, which is the positive or most probable."""

    def refined(
        self,
        calibrations: tuple[Calibrations, ...],
        words: KnownWords,
        label: int,
        undo: bool = False,
    ) -> tuple[Calibrations, ...]:
        """Return the calibrations after one more message of the class `label`.

        words: of the message, as a model knows them that has not learned it.
        undo: without that message, of which they have learned.
        """


RULES: Mapping[str, Callable[[Metadata], ScoringRule]] = {EVIDENCE: EvidenceRule, SUM: SumRule}


def rule_of(metadata: Metadata) -> ScoringRule:
    """Return the scoring rule of a model."""
    return RULES[metadata.settings.scoring](metadata)
