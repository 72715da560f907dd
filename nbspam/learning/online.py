"""A model in memory that scores and learns in turn, with the standard library alone."""

from collections import Counter
from collections.abc import Iterable

from nbspam.bayes.calibration import is_run, update
from nbspam.scoring.classifier import Classifier, Counts
from nbspam.store.metadata import BERNOULLI, Metadata, with_bias


class Learner:
    """Counts that grow message by message, and the blend that is refined by each.

    What it learns does not depend on the order but for the calibration, which is a history: each
    message is scored as if it had not been learned.  Of a batch each is scored after all were
    learned, with itself left out: by the filter that will be used, and of one message that is to
    score it before.  Learning 622 spam and then 2,080 ham, two batches of SpamAssassin's, made 33
    errors on the other half of the corpus so, and 443 with each scored by what came before it: a
    filter of a few ham calls all ham spam, and what that teaches the blend is wrong ever after.
    """

    def __init__(self, head: Metadata, counts: dict[str, tuple[int, ...]]) -> None:
        """Go on from a model; `counts` becomes the learner's own.

        counts: of all tokens of the model that are in the messages to come.
        """
        self._head = head
        self.counts = counts
        self._messages = list(head.messages)
        self._calibrations = list(head.calibrations)
        self._histograms = [Counter(row) for row in head.count_histograms]
        self._n_tokens = head.n_tokens
        self._left_out: dict[int, Classifier] = {}  # per class, of which a message is left out

    @property
    def head(self) -> Metadata:
        """The model's head as it now is."""
        return with_bias(
            self._head._replace(
                messages=tuple(self._messages),
                calibrations=tuple(self._calibrations),
                n_tokens=self._n_tokens,
                count_histograms=tuple(+histogram for histogram in self._histograms),
            )
        )

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

    def learn(self, label: str, tokens: Iterable[str]) -> None:
        """Count a message's tokens; `refine` lets the blend learn from it too."""
        k = self._head.classes.index(label)
        self._messages[k] += 1
        self._left_out.clear()
        for token in tokens:
            self._change(token, k, 1)

    def refine(self, label: str, tokens: Iterable[str]) -> None:
        """Let the blend learn from a message that was learned, scored with itself left out.

        Plain Bernoulli scores have no evidence to learn from, nor is there any in one class alone.
        """
        k = self._head.classes.index(label)
        classifier = self._left_out.get(k) or self._without_one(k)
        if self._head.scoring == BERNOULLI or classifier.head.is_one_sided:
            return
        found = classifier.score(tokens).evidences
        for i, (scored, evidence) in enumerate(zip(self._head.scored_classes, found, strict=True)):
            before, is_spam = self._calibrations[i], k == scored
            if not is_run(before, is_spam, self._share(scored, is_spam)):
                self._calibrations[i] = update(before, evidence.features, evidence.trace, is_spam)

    def _share(self, scored: int, of_its_own: bool) -> float:
        """Return the share of a class in what was learned, or that of all others."""
        n, total = self._messages[scored], sum(self._messages)
        return ((n if of_its_own else total - n) + 1) / (total + 2)

    def _without_one(self, k: int) -> Classifier:
        """Return a classifier that has not learned a message of class k, which it is to score."""
        messages = list(self._messages)
        messages[k] -= 1
        head = self._head._replace(messages=tuple(messages), calibrations=tuple(self._calibrations))

        def counts_of(tokens: Iterable[str]) -> Counts:
            rows = {token: list(row) for token, row in self._found(tokens).items()}
            for row in rows.values():
                row[k] -= 1
            return {token: tuple(row) for token, row in rows.items() if any(row)}

        self._left_out[k] = Classifier(head, counts_of)
        return self._left_out[k]

    def unlearn(self, label: str, tokens: Iterable[str]) -> None:
        """Take a message out of the counts again; the blend stays as it is.

        A token that was pruned since, or that the class has in no message, is passed over.
        """
        k = self._head.classes.index(label)
        self._messages[k] -= 1
        self._left_out.clear()
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
        return n > 0 and (pruned or all(counts)) and counts.count(n) == self._histograms[k][n]

    def _change(self, token: str, k: int, by: int) -> None:
        """Add to a token's count in class k; a token that no message has is none."""
        before = self.counts.pop(token, None)
        new = list(before or [0] * len(self._messages))
        new[k] += by
        after = tuple(new)
        if before is not None:
            self._n_tokens -= 1
            for histogram, count in zip(self._histograms, before, strict=True):
                histogram[count] -= 1
        if any(after):
            self.counts[token] = after
            self._n_tokens += 1
            for histogram, count in zip(self._histograms, after, strict=True):
                histogram[count] += 1
