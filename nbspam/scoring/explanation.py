"""Why a message got its score: what each of its words brought, in nats, to the last digit."""

from collections.abc import Iterable
from typing import NamedTuple

from nbspam.bayes.bernoulli import weight
from nbspam.bayes.evidence import shares
from nbspam.scoring.classifier import Classifier, Score, class_offset, odds_of_class
from nbspam.store.metadata import BERNOULLI
from nbspam.tokens.headers import TRACE


class Word(NamedTuple):
    """A token of the message that the model knows."""

    token: str
    weight: float  # log-odds weight of its presence, for `of` against `against`, in nats
    counts: tuple[int, ...]  # messages of each class that contain it
    share: float  # what it adds to the sum, in nats


class Explanation(NamedTuple):
    """The words of a message, strongest share first, and what else goes into the sum."""

    score: Score
    of: str  # the class that the weights speak for
    against: str  # the class they speak against, or "the rest"
    constants: tuple[tuple[str, float], ...]  # (what it is, nats), the same for any words
    words: tuple[Word, ...]
    unknown: int  # tokens of the message that the model has never seen
    bias: float  # plain Bernoulli's, in nats
    bernoulli_log_odds: float  # plain Bernoulli's sum, for comparison

    @property
    def total(self) -> float:
        """The constants and all shares."""
        return sum(nats for _, nats in self.constants) + sum(word.share for word in self.words)


def explain(classifier: Classifier, tokens: Iterable[str]) -> Explanation:
    """Return the explanation of the message with these tokens.

    Two classes: the positive one against the other.  More: the most probable one, against the next
    under plain Bernoulli scoring, else against the rest.
    """
    tokens = set(tokens)
    head = classifier.head
    score = classifier.score(tokens)
    if head.is_one_sided:
        return Explanation(score, head.classes[-1], head.classes[0], (), (), len(tokens), 0.0, 0.0)
    ranked = sorted(range(len(head.classes)), key=lambda k: -score.probabilities[k])
    of, against = ranked[:2]
    if len(head.classes) == 2:
        of = head.positive_index or 0
        against = 1 - of
    found = sorted(classifier.counts(tokens).items())
    plain = [
        weight(row[of], head.messages[of], head.alpha)
        - weight(row[against], head.messages[against], head.alpha)
        for _, row in found
    ]
    bias = head.bias[of] - head.bias[against]
    if head.scoring == BERNOULLI:
        constants = [("every word's absence (bias)", bias)]
        weights = brought = plain
    else:
        scored = classifier.scored_classes.index(of)
        coefficients = head.calibrations[scored].coefficients
        own = [i for i, (token, _) in enumerate(found) if not token.startswith(TRACE)]
        trace = [i for i, (token, _) in enumerate(found) if token.startswith(TRACE)]
        weights = [classifier.weights(row)[scored] for _, row in found]
        own_shares, trace_shares = shares(
            [weights[i] for i in own], [weights[i] for i in trace], coefficients
        )
        by_index = dict(zip([*own, *trace], [*own_shares, *trace_shares], strict=True))
        brought = [by_index[i] for i in range(len(found))]
        length = score.evidences[scored].features[-1]
        constants = [
            ("calibration: any message", coefficients[0]),
            ("calibration: its length", coefficients[-1] * length),
        ]
        if offset := class_offset(head, of):
            constants.append(("the share of spam to expect (--prior)", offset))
        if len(head.classes) > 2:
            own_total = sum(nats for _, nats in constants) + sum(brought)
            scaled = odds_of_class(score.log_scores, of)
            constants.append(("the other classes' claims", scaled - own_total))
    words = [
        Word(token, w, row, share)
        for (token, row), w, share in zip(found, weights, brought, strict=True)
    ]
    words.sort(key=lambda word: (-abs(word.share), -abs(word.weight), word.token))
    rest = len(head.classes) > 2 and head.scoring != BERNOULLI
    return Explanation(
        score=score,
        of=head.classes[of],
        against="the rest" if rest else head.classes[against],
        constants=tuple(constants),
        words=tuple(words),
        unknown=len(tokens) - len(words),
        bias=bias,
        bernoulli_log_odds=bias + sum(plain),
    )
