"""What an evaluation came to: its figures, its calibration and its confusion table."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nbspam.evaluation.bins import CalibrationBin, calibration_bins
from nbspam.evaluation.metrics import Figures, figures
from nbspam.evaluation.protocols import Evaluation
from nbspam.evaluation.samples import ScoredMessages
from nbspam.scoring.verdict import CutOffs


class Confusion(NamedTuple):
    """How often each class got each verdict."""

    classes: tuple[str, ...]  # the rows
    verdicts: tuple[str, ...]  # the columns: the classes, and `unsure` where there is one
    counts: list[list[int]]  # (n_classes, n_verdicts)


class Results(NamedTuple):
    """An evaluation with all that is computed from it."""

    evaluation: Evaluation
    messages: ScoredMessages
    figures: Figures
    bins: list[CalibrationBin]  # empty without a class that is called spam
    confusion: Confusion


def compute(evaluation: Evaluation, cut_offs: CutOffs) -> Results:
    """Return the results of an evaluation with these cut-offs."""
    messages = scored_messages(evaluation, cut_offs.spam)
    spam_known = messages.has_spam_class
    return Results(
        evaluation,
        messages,
        figures(messages),
        calibration_bins(messages.spam, messages.probability) if spam_known else [],
        confusion(
            [o.label for o in evaluation.outcomes],
            [o.verdict for o in evaluation.outcomes],
            evaluation.classes,
        ),
    )


def scored_messages(evaluation: Evaluation, threshold: float) -> ScoredMessages:
    """Return the outcomes of an evaluation as arrays.

    threshold: the probability above which a message was called spam.
    """
    outcomes, positive = evaluation.outcomes, evaluation.positive
    spam = np.array([o.label == positive for o in outcomes], dtype=bool)
    log_odds = np.array([o.judged.log_odds for o in outcomes], dtype=float)
    probability = np.array([o.judged.probability for o in outcomes], dtype=float)
    called = np.array([o.verdict == positive for o in outcomes], dtype=bool)
    if len(evaluation.classes) == 2:
        return ScoredMessages.of_two_classes(spam, log_odds, probability, called, threshold)
    right = np.array([o.verdict == o.label for o in outcomes], dtype=bool)
    own = np.array([o.judged.probabilities[o.label] for o in outcomes], dtype=float)
    return ScoredMessages(
        spam, log_odds, probability, called, threshold, right, own, positive is not None
    )


def confusion(
    labels: Sequence[str], verdicts: Sequence[str], classes: tuple[str, ...]
) -> Confusion:
    """Return how often messages of each class got each verdict.

    labels, verdicts: of each message, in the same order.
    """
    columns = (*classes, *sorted(set(verdicts) - set(classes)))
    row_of = {name: i for i, name in enumerate(classes)}
    column_of = {name: i for i, name in enumerate(columns)}
    counts = [[0] * len(columns) for _ in classes]
    for label, verdict in zip(labels, verdicts, strict=True):
        counts[row_of[label]][column_of[verdict]] += 1
    return Confusion(classes, columns, counts)
