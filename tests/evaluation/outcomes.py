"""Two evaluations by hand, which the tests of the report share."""

import math

from nbspam.evaluation.results import Evaluation, Outcome
from nbspam.scoring.explanation import Word
from nbspam.scoring.verdict import CutOffs, Score, Verdict

TWO_CLASSES, THREE_CLASSES = ("ham", "spam"), ("a", "b", "c")


def outcome_of(label, verdict, score, classes=TWO_CLASSES, source="file:1", words=()):
    probabilities = dict(zip(classes, score.probabilities, strict=True))
    verdict = Verdict(
        verdict, score.probability, score.log_odds, probabilities, source, label, score
    )
    return Outcome(verdict, tuple(words))


def outcome(label, verdict, *probabilities, classes=TWO_CLASSES, source="file:1", words=()):
    p = probabilities[-1]
    score = Score(log_odds=math.log(p / (1 - p)), probability=p, probabilities=probabilities)
    return outcome_of(label, verdict, score, classes, source, words)


WORD = Word(token="prize", weight=2.5, counts=(0, 9), share=2.5)
CUT_OFFS = CutOffs(0.7, 0.3)  # of the verdicts of TWO
TWO = Evaluation(
    "a test",
    TWO_CLASSES,
    "spam",
    [
        outcome("ham", "ham", 0.9, 0.1),
        outcome("ham", "spam", 0.2, 0.8, source="file:[b]2[/b]", words=[WORD]),
        outcome("spam", "spam", 0.1, 0.9),
        outcome("spam", "unsure", 0.4, 0.6, source="file:4"),
    ],
    CUT_OFFS,
)
THREE = Evaluation(
    "a test",
    THREE_CLASSES,
    None,
    [
        outcome("a", "a", 0.5, 0.3, 0.2, classes=THREE_CLASSES),
        outcome("b", "c", 0.2, 0.2, 0.6, classes=THREE_CLASSES),
    ],
)
