"""Why a message got its score: what each of its words brought, in nats, to the last digit."""

from collections.abc import Iterable
from typing import NamedTuple

from nbspam.model.classifier import Classifier, Score


class Word(NamedTuple):
    """A token of the message that the model knows."""

    token: str
    weight: float  # log-odds weight of its presence, class `of` against class `against`, in nats
    counts: tuple[int, ...]  # messages of each class that contain it
    share: float  # what it adds to the sum, in nats


class Explanation(NamedTuple):
    """The words of a message, strongest share first, and what else goes into the sum."""

    score: Score
    of: str  # the class that the weights speak for
    against: str  # the class they speak against
    bias: float  # the sum before any word
    words: tuple[Word, ...]
    unknown: int  # tokens of the message that the model has never seen

    @property
    def total(self) -> float:
        """The bias and all shares: the log-odds of `of` against `against`."""
        return self.bias + sum(word.share for word in self.words)


def explain(classifier: Classifier, tokens: Iterable[str]) -> Explanation:
    """Return the explanation of the message with these tokens.

    Two classes: the positive one against the other.  More: the most probable one against the next.
    """
    tokens = set(tokens)
    head = classifier.head
    score = classifier.score(tokens)
    if len(head.classes) == 2:
        of = head.positive_index or 0
        against = 1 - of
    else:
        ranked = sorted(range(len(head.classes)), key=lambda k: -score.probabilities[k])
        of, against = ranked[:2]
    words = []
    for token, counts in classifier.counts(tokens).items():
        row = classifier.weights(counts)
        weight = row[of] - row[against]
        words.append(Word(token, weight, tuple(counts), weight))
    words.sort(key=lambda word: (-abs(word.share), word.token))
    return Explanation(
        score=score,
        of=head.classes[of],
        against=head.classes[against],
        bias=head.bias[of] - head.bias[against],
        words=tuple(words),
        unknown=len(tokens) - len(words),
    )
