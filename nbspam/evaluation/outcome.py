"""What was said of each message of an evaluation."""

from collections.abc import Sequence
from typing import NamedTuple

from nbspam.evaluation.mislabelled import Mislabelled
from nbspam.evaluation.overlap import LearnedBefore
from nbspam.scoring.explanation import Word
from nbspam.scoring.highlights import HighlightedExcerpt
from nbspam.scoring.verdict import CutOffs, Verdict


class Outcome(NamedTuple):
    """One message of an evaluation."""

    judged: Verdict
    words: tuple[Word, ...] = ()  # of a mistake: the strongest, for the report
    # Where it was wanted: what a reader sees of it; of a mistake with its words highlighted.
    message: HighlightedExcerpt | None = None

    @property
    def label(self) -> str:
        """The class that the message is of."""
        return self.judged.label or ""

    @property
    def verdict(self) -> str:
        """The class it was classified as with the cut-offs, or "unsure"."""
        return self.judged.verdict

    @property
    def called(self) -> str:
        """What it is called where errors are counted: of two classes by P(spam) = 0.5, always one.

        Of more it is the verdict, which no cut-off decides: the most probable class.
        """
        if len(self.judged.probabilities) > 2:
            return self.judged.verdict
        ham, spam = self.judged.probabilities
        return spam if self.judged.log_odds > 0 else ham

    @property
    def is_mistake(self) -> bool:
        """Whether it is called something else than it is."""
        return self.called != self.label


class Evaluation(NamedTuple):
    """What a protocol found, and the model's (or models') classes."""

    protocol: str
    classes: tuple[str, ...]
    positive: str | None
    outcomes: list[Outcome]
    cut_offs: CutOffs | None = None  # where the training messages chose them
    learned_before: LearnedBefore | None = None  # of a saved model
    # How many messages tested on are the same as one trained on; None where that is not counted.
    duplicates: int | None = None
    learned_so_far: Sequence[int] = ()  # online: how many messages were learned before each
    mislabelled: Mislabelled = Mislabelled()  # messages left out


def worst_mistakes(evaluation: Evaluation, limit: int) -> list[Outcome]:
    """Return the mistakes, those that gave the true class the least probability first."""
    mistakes = [o for o in evaluation.outcomes if o.is_mistake]
    mistakes.sort(key=lambda o: o.judged.probabilities[o.label])
    return mistakes[:limit]
