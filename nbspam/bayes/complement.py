"""Complement naive Bayes for one message: a class is what all other classes are not.

With the counts of `multinomial.py`, and ~k for all classes but k together:

    theta_jk = (n_j~k + a) / (n_~k + a m)
    score of k = - sum_j x_j log theta_jk              the least likely complement wins

It was made for classes of very different sizes: the counts of a complement are of about the same
size for all (Rennie, Shih, Teevan and Karger 2003, "Tackling the Poor Assumptions of Naive Bayes
Text Classifiers", section 3.1; without their length normalization and TF-IDF).  As in scikit-
learn's ComplementNB the prior is left out, since the words of any text outweigh it.

With two classes the difference of the scores is that of the multinomial model, but for the prior.
The evidence rule's weights, each class against all others, are those of the multinomial model.
"""

import math

from nbspam.bayes.multinomial import Multinomial
from nbspam.bayes.token_weight import Row, Size


class Complement(Multinomial):
    """The event model: a class is scored by how badly its complement explains the message."""

    name = "complement"
    has_prior = False

    def class_weights(self, row: Row, size: Size, alpha: float) -> tuple[float, ...]:
        """Return -log theta of a token in the complement of each class, in nats."""
        log = math.log
        total, trials = sum(row), sum(size.trials)
        return tuple(
            log(trials - n + alpha * size.outcomes) - log(total - c + alpha)
            for c, n in zip(row, size.trials, strict=True)
        )
