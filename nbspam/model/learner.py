"""A model in memory that scores and learns in turn, with the standard library alone."""

from collections import Counter
from collections.abc import Iterable

from nbspam.bayes.calibration import update
from nbspam.model.classifier import Classifier, Counts, Score
from nbspam.model.head import BERNOULLI, Head, with_bias


class Learner:
    """Counts that grow message by message, and the blend that is refined by each.

    What it learns does not depend on the order but for the calibration, which is a history: each
    message was scored before its words were counted.
    """

    def __init__(self, head: Head, counts: dict[str, tuple[int, ...]]) -> None:
        """Go on from a model; `counts` becomes the learner's own."""
        self._head = head
        self._counts = counts
        self._messages = list(head.messages)
        self._calibrations = list(head.calibrations)
        self._having = [Counter(row) for row in head.tokens_with_count]

    @property
    def head(self) -> Head:
        """The model's head as it now is."""
        return with_bias(
            self._head._replace(
                messages=tuple(self._messages),
                calibrations=tuple(self._calibrations),
                n_tokens=len(self._counts),
                tokens_with_count=tuple(+having for having in self._having),
            )
        )

    def classifier(self) -> Classifier:
        """Return a classifier of the model as it now is, to be used before more is learned."""
        return Classifier(self.head, self._found)

    def _found(self, tokens: Iterable[str]) -> Counts:
        counts = self._counts
        return {token: counts[token] for token in tokens if token in counts}

    def learn(self, label: str, tokens: Iterable[str], score: Score | None) -> None:
        """Count a message's tokens.

        score: what a classifier of this learner gave it before; None leaves the blend as it is.
        """
        head = self._head
        k = head.classes.index(label)
        if score is not None and head.scoring != BERNOULLI:
            self._refine(k, score)
        self._messages[k] += 1
        for token in tokens:
            row = self._counts.get(token)
            new = list(row or [0] * len(head.classes))
            new[k] += 1
            self._counts[token] = tuple(new)
            for having, before, after in zip(self._having, row or new, new, strict=True):
                if row is None:
                    having[after] += 1
                elif before != after:
                    having[before] -= 1
                    having[after] += 1

    def _refine(self, k: int, score: Score) -> None:
        for i, (speaker, found) in enumerate(
            zip(self._head.speakers, score.evidences, strict=True)
        ):
            self._calibrations[i] = update(
                self._calibrations[i], found.views, found.trace, k == speaker
            )
