"""Models of a comparison by hand."""

import numpy as np

from nbspam.evaluation.comparison import ComparedModel, Difference, combinations
from nbspam.evaluation.metrics import ScoredMessages
from nbspam.evaluation.results import Results
from nbspam.learning.settings import TrainingSettings

GIVEN = TrainingSettings()


def scored(right, log_odds=None):
    """Return messages, every second one spam, that are called rightly or not, as asked."""
    right = np.array(right)
    spam = np.arange(len(right)) % 2 == 0
    odds = np.where(spam == right, 1.0, -1.0) if log_odds is None else log_odds
    return ScoredMessages.binary(spam, odds, 1 / (1 + np.exp(-odds)))


def compared(name, messages, difference=None):
    (combination,) = [c for c in combinations(GIVEN) if c.name == name]
    return ComparedModel(combination, Results(None, messages, None), 1.0, difference)


def difference(errors_p, roca_p=1.0, roca=0.1):
    return Difference(5, 1, errors_p, roca, (roca - 0.1, roca + 0.1), roca_p)
