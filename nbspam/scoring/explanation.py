"""Why a message got its score: what each of its words contributed, in nats, to the last digit."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from nbspam.bayes.bernoulli import Row
from nbspam.scoring.classifier import Classifier
from nbspam.scoring.score import Score
from nbspam.scoring.terms import Terms
from nbspam.store.metadata import Metadata
from nbspam.tokens.kinds import channel_of, is_host


class Word(NamedTuple):
    """A token of the message that the model knows."""

    token: str
    weight: float  # log-odds weight of its presence, for `of` against `against`, in nats
    counts: Row  # messages of each class that contain it
    share: float  # what it adds to the sum, in nats


class Explanation(NamedTuple):
    """The words of a message, strongest share first, and what else goes into the sum."""

    score: Score
    of: str  # the class whose log-odds are explained
    against: str  # the class that it is compared with, or "the rest"
    constants: Mapping[str, float]  # key of `terms` -> nats: the terms that belong to no word
    words: tuple[Word, ...]
    unknown: int  # tokens of the message that the model does not know
    bias: float  # of the textbook's sum, in nats
    bernoulli_log_odds: float  # the textbook's sum, for comparison

    @property
    def total(self) -> float:
        """The constants and all shares."""
        return sum(self.constants.values()) + sum(word.share for word in self.words)


def explain(classifier: Classifier, tokens: Iterable[str]) -> Explanation:
    """Return the explanation of the message with these tokens.

    Two classes: the positive one against the other.  More: the most probable one, against the next
    under the sum rule, else against the rest.
    """
    tokens = set(tokens)
    metadata = classifier.metadata
    settings = metadata.settings
    score = classifier.score(tokens)
    if metadata.is_one_sided:
        classes = settings.classes
        return Explanation(score, classes[-1], classes[0], {}, (), len(tokens), 0.0, 0.0)
    ranked = sorted(range(len(settings.classes)), key=lambda k: -score.probabilities[k])
    of, against = ranked[:2]
    if len(settings.classes) == 2:
        of = settings.positive_index or 0
        against = 1 - of
    found = sorted(classifier.counts(tokens).items())
    rows = [row for _, row in found]
    terms = classifier.rule.terms(rows, [channel_of(token) for token, _ in found], score, of)
    bias, textbook = _textbook_sum(metadata, rows, of, against)
    return Explanation(
        score=score,
        of=settings.classes[of],
        against=terms.against,
        constants=terms.constants,
        words=_words(found, terms),
        unknown=len(tokens) - len(found),
        bias=bias,
        bernoulli_log_odds=textbook,
    )


def _textbook_sum(
    metadata: Metadata, rows: list[Row], of: int, against: int
) -> tuple[float, float]:
    """Return the bias and the whole of the textbook's log-odds, whatever rule decides."""
    settings, learned = metadata
    weights = settings.counts.class_weights
    bias = metadata.bias[of] - metadata.bias[against]
    by_class = [weights(row, learned.messages, settings.alpha) for row in rows]
    return bias, bias + sum(w[of] - w[against] for w in by_class)


def _words(found: list[tuple[str, Row]], terms: Terms) -> tuple[Word, ...]:
    words = [
        Word(token, weight, row, share)
        for (token, row), weight, share in zip(found, terms.weights, terms.shares, strict=True)
        if share or not is_host(token)  # which is evidence for the sum rule alone
    ]
    words.sort(key=lambda word: (-abs(word.share), -abs(word.weight), word.token))
    return tuple(words)
