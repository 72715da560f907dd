"""What an evaluation came to: its figures, its calibration and its confusion tables."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nbspam.errors import counted
from nbspam.evaluation.bins import CalibrationBin, calibration_bins
from nbspam.evaluation.metrics import Figures, figures
from nbspam.evaluation.mislabelled import DoubtedLabels, doubted_labels, odds_of_label
from nbspam.evaluation.outcome import Evaluation
from nbspam.evaluation.samples import SEED, ScoredMessages, count_verdicts
from nbspam.scoring.verdict import CutOffs

# P(spam) above which a message is called spam, where errors are counted in two classes.
THRESHOLD = 0.5


class Confusion(NamedTuple):
    """How often messages of each class were called what."""

    classes: tuple[str, ...]  # the rows
    verdicts: tuple[str, ...]  # the columns: the classes, and `unsure` where there is one
    counts: list[list[int]]  # (n_classes, n_verdicts)


class Results(NamedTuple):
    """An evaluation with all that is computed from it."""

    evaluation: Evaluation
    messages: ScoredMessages
    figures: Figures
    bins: list[CalibrationBin]  # empty without a class that is called spam
    confusion: Confusion  # at the threshold; of three or more classes by the most probable
    cut_offs: CutOffs | None  # of the verdicts; None where no cut-off decides them
    verdicts: Confusion
    seed: int = SEED  # of the bootstrap

    @property
    def title(self) -> str:
        """The protocol, and the messages of each class."""
        outcomes = self.evaluation.outcomes
        counts = Counter(outcome.label for outcome in outcomes)
        by_class = ", ".join(f"{name}: {counts[name]:,}" for name in self.evaluation.classes)
        return f"{self.evaluation.protocol}: {counted(len(outcomes), 'message')} ({by_class})"

    @property
    def doubted(self) -> DoubtedLabels:
        """The labels that look wrong; none where the model may be, a saved or uncalibrated one."""
        outcomes = self.evaluation.outcomes
        if self.evaluation.learned_before or not all(o.judged.score.evidences for o in outcomes):
            return DoubtedLabels()
        return doubted_labels([odds_of_label(o.judged, o.label) for o in outcomes])

    @property
    def of_many_classes(self) -> str:
        """What the figures are of where there are three or more classes; else empty."""
        classes, positive = self.evaluation.classes, self.evaluation.positive
        if len(classes) < 3:
            return ""
        said = f"{len(classes)} classes: a message is called the most probable one"
        if positive is None:
            return f"{said}; the figures are over all classes"
        return (
            f"{said}; accuracy and log-loss are over all classes, every other figure is of the"
            f" spam class {positive!r} against the rest"
        )


def compute(evaluation: Evaluation, cut_offs: CutOffs, seed: int = SEED) -> Results:
    """Return the results of an evaluation with these cut-offs; seed: of the bootstrap."""
    messages = scored_messages(evaluation)
    spam_known = messages.has_spam_class
    labels = [o.label for o in evaluation.outcomes]
    return Results(
        evaluation,
        messages,
        figures(messages, seed),
        calibration_bins(messages.spam, messages.probability) if spam_known else [],
        confusion(labels, [o.called for o in evaluation.outcomes], evaluation.classes),
        cut_offs if len(evaluation.classes) == 2 else None,
        confusion(labels, [o.verdict for o in evaluation.outcomes], evaluation.classes),
        seed,
    )


def scored_messages(evaluation: Evaluation) -> ScoredMessages:
    """Return the outcomes of an evaluation as arrays."""
    outcomes, positive = evaluation.outcomes, evaluation.positive
    spam = np.array([o.label == positive for o in outcomes], dtype=bool)
    log_odds = np.array([o.judged.log_odds for o in outcomes], dtype=float)
    probability = np.array([o.judged.probability for o in outcomes], dtype=float)
    called = np.array([o.called == positive for o in outcomes], dtype=bool)
    verdicts = count_verdicts(((o.label, o.verdict) for o in outcomes), positive)
    if len(evaluation.classes) == 2:
        return ScoredMessages.of_two_classes(
            spam, log_odds, probability, called, THRESHOLD, verdicts
        )
    right = np.array([not o.is_mistake for o in outcomes], dtype=bool)
    own = np.array([o.judged.probabilities[o.label] for o in outcomes], dtype=float)
    return ScoredMessages(
        spam,
        log_odds,
        probability,
        called,
        None,
        right,
        own,
        verdicts,
        has_spam_class=positive is not None,
    )


def confusion(
    labels: Sequence[str], verdicts: Sequence[str], classes: tuple[str, ...]
) -> Confusion:
    """Return how often messages of each class got each verdict.

    labels, verdicts: of each message, in the same order; the verdicts with cut-offs, or what each
    is called where errors are counted.
    """
    columns = (*classes, *sorted(set(verdicts) - set(classes)))
    row_of = {name: i for i, name in enumerate(classes)}
    column_of = {name: i for i, name in enumerate(columns)}
    counts = [[0] * len(columns) for _ in classes]
    for label, verdict in zip(labels, verdicts, strict=True):
        counts[row_of[label]][column_of[verdict]] += 1
    return Confusion(classes, columns, counts)
