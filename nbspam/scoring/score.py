"""The score of a message: what the model says of it before any cut-off."""

from collections.abc import Sequence
from typing import NamedTuple

from nbspam.bayes.evidence import Evidence
from nbspam.bayes.posterior import odds_of_class, sigmoid, softmax
from nbspam.store.metadata import ModelSettings


class Score(NamedTuple):
    """What the model says of a message."""

    log_odds: float  # of the positive class, in nats
    probability: float  # of the positive class
    probabilities: tuple[float, ...]  # per class, in the model's order
    evidences: tuple[Evidence, ...] = ()  # per scored class; none under the sum rule
    # Per class, up to a constant; none for the evidence of two classes.
    log_scores: tuple[float, ...] = ()
    trust: float = 0.0  # in the header channel, 0 to 1
    known: int = 0  # tokens of the text that the model knows, of
    text: int = 0  # so many


def undecided(settings: ModelSettings) -> Score:
    """Return the score of every message while fewer than two classes have been seen."""
    n = len(settings.classes)
    return Score(0.0, 0.5, (1 / n,) * n)


def score_of_log_odds(settings: ModelSettings, log_odds: float) -> Score:
    """Return the score of two classes with these log-odds of the positive one."""
    p, q = sigmoid(log_odds), sigmoid(-log_odds)
    both = (q, p) if settings.positive_index == 1 else (p, q)
    return Score(log_odds, p, both)


def score_of_log_scores(settings: ModelSettings, log_scores: Sequence[float]) -> Score:
    """Return the score of classes with these log-scores, such as joint log-likelihoods."""
    positive = settings.positive_index
    probabilities = softmax(log_scores)
    if positive is None:  # three or more classes, none called spam: that of the most probable one
        positive = max(range(len(log_scores)), key=log_scores.__getitem__)
    odds = odds_of_class(log_scores, positive)
    if len(log_scores) == 2:  # so that the two agree to the last digit
        probabilities[positive] = sigmoid(odds)
        probabilities[1 - positive] = sigmoid(-odds)
    return Score(odds, probabilities[positive], tuple(probabilities), log_scores=tuple(log_scores))
