"""Two evaluations by hand, which the tests of the report share."""

import math

from nbspam.evaluation.protocols import Evaluation, Outcome
from nbspam.scoring.classifier import Score
from nbspam.scoring.explanation import Word


def outcome(label, verdict, *probabilities, positive=-1, source="file:1", words=()):
    p = probabilities[positive]
    score = Score(log_odds=math.log(p / (1 - p)), probability=p, probabilities=probabilities)
    return Outcome(source, label, score, verdict, tuple(words))


WORD = Word(token="prize", weight=2.5, counts=(0, 9), share=2.5)
TWO = Evaluation(
    "a test",
    ("ham", "spam"),
    "spam",
    [
        outcome("ham", "ham", 0.9, 0.1),
        outcome("ham", "spam", 0.2, 0.8, source="file:[b]2[/b]", words=[WORD]),
        outcome("spam", "spam", 0.1, 0.9),
        outcome("spam", "unsure", 0.4, 0.6, source="file:4"),
    ],
)
THREE = Evaluation(
    "a test",
    ("a", "b", "c"),
    None,
    [outcome("a", "a", 0.5, 0.3, 0.2), outcome("b", "c", 0.2, 0.2, 0.6)],
)
