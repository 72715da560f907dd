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
        """Go on from a model; `counts` becomes the learner's own.

        counts: of all tokens of the model that are in the messages to come.
        """
        self._head = head
        self.counts = counts
        self._messages = list(head.messages)
        self._calibrations = list(head.calibrations)
        self._having = [Counter(row) for row in head.tokens_with_count]
        self._n_tokens = head.n_tokens

    @property
    def head(self) -> Head:
        """The model's head as it now is."""
        return with_bias(
            self._head._replace(
                messages=tuple(self._messages),
                calibrations=tuple(self._calibrations),
                n_tokens=self._n_tokens,
                tokens_with_count=tuple(+having for having in self._having),
            )
        )

    @property
    def is_one_sided(self) -> bool:
        """Whether fewer than two classes have a message yet."""
        return sum(map(bool, self._messages)) < 2

    def classifier(self) -> Classifier:
        """Return a classifier of the model as it now is, to be used before more is learned."""
        if self._head.scoring == BERNOULLI:
            return Classifier(self.head, self._found)
        # Evidence asks the head for no bias and no counts of counts, which take time to add up.
        head = self._head._replace(
            messages=tuple(self._messages), calibrations=tuple(self._calibrations)
        )
        return Classifier(head, self._found)

    def _found(self, tokens: Iterable[str]) -> Counts:
        counts = self.counts
        return {token: counts[token] for token in tokens if token in counts}

    def learn(self, label: str, tokens: Iterable[str], score: Score | None) -> None:
        """Count a message's tokens.

        score: what a classifier of this learner gave it before; None leaves the blend as it is.
        """
        k = self._head.classes.index(label)
        if score is not None:
            self._refine(k, score)
        self._messages[k] += 1
        for token in tokens:
            self._change(token, k, 1)

    def unlearn(self, label: str, tokens: Iterable[str]) -> None:
        """Take a message out of the counts again; the blend stays as it is.

        A token that was pruned since, or that the class has in no message, is passed over.
        """
        k = self._head.classes.index(label)
        self._messages[k] -= 1
        for token in tokens:
            row = self.counts.get(token)
            if row and row[k]:
                self._change(token, k, -1)

    def has(self, label: str, tokens: Iterable[str], pruned: bool = False) -> bool:
        """Return whether a message with these tokens may be among those learned in a class.

        It is not if the class has no message, or lacks one of these tokens, or has a token in all
        its messages that is not among these: the rest would be fewer messages than have it.
        pruned: tokens may be lacking.
        """
        k = self._head.classes.index(label)
        n = self._messages[k]
        counts = [row[k] if (row := self.counts.get(token)) else 0 for token in tokens]
        return n > 0 and (pruned or all(counts)) and counts.count(n) == self._having[k][n]

    def _change(self, token: str, k: int, by: int) -> None:
        """Add to a token's count in class k; a token that no message has is none."""
        before = self.counts.pop(token, None)
        new = list(before or [0] * len(self._messages))
        new[k] += by
        after = tuple(new)
        if before is not None:
            self._n_tokens -= 1
            for having, count in zip(self._having, before, strict=True):
                having[count] -= 1
        if any(after):
            self.counts[token] = after
            self._n_tokens += 1
            for having, count in zip(self._having, after, strict=True):
                having[count] += 1

    def _refine(self, k: int, score: Score) -> None:
        """Let the blend learn from a score; plain Bernoulli scores have no evidence to learn of."""
        for i, (speaker, found) in enumerate(
            zip(self._head.speakers, score.evidences, strict=False)
        ):
            self._calibrations[i] = update(
                self._calibrations[i], found.views, found.trace, k == speaker
            )
