"""Why a message got its score: what each of its words contributed, in nats, to the last digit."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple, cast

from nbspam.bayes.event_model import Row
from nbspam.scoring.classifier import Classifier
from nbspam.scoring.score import Score
from nbspam.scoring.sum_rule import SumRule
from nbspam.scoring.terms import Found, Terms
from nbspam.tokens.kinds import channel_of, is_host
from nbspam.tokens.tokenized import NO_NUMBERS, Numbers
from nbspam.tokens.traits import TRAITS

if TYPE_CHECKING:
    from pathlib import Path

TRAIT_PREFIX = "trait:"


class Word(NamedTuple):
    """A token of the message that the model knows, or one of its traits."""

    token: str  # of a trait: `trait:NAME=VALUE`
    weight: float  # log-odds weight of its presence, for `of` against `against`, in nats
    # Messages of each class that contain it (or how often they do), or have the value; with a base
    # those of both, so that they may be fractions.
    counts: Row
    share: float  # what it adds to the sum, in nats

    @property
    def is_trait(self) -> bool:
        """Whether it is a trait."""
        return self.token.startswith(TRAIT_PREFIX)


class Explanation(NamedTuple):
    """The words of a message, strongest share first, and what else goes into the sum."""

    score: Score
    of: str  # the class whose log-odds are explained
    against: str  # the class that it is compared with, or "the rest"
    constants: Mapping[str, float]  # key of `terms` -> nats: the terms that belong to no word
    words: tuple[Word, ...]
    unknown: int  # tokens of the message that the model does not know
    bias: float | None  # of the textbook's sum, in nats; None with a base, as the sum itself
    sum_log_odds: float | None  # the textbook's sum, for comparison
    base: "str | Path | None" = None  # the model that this one is read through
    unheard: int = 0  # tokens of perhaps hidden text that speak for ham, which count for nothing

    @property
    def total(self) -> float:
        """The constants and all shares."""
        return sum(self.constants.values()) + sum(word.share for word in self.words)


def explain(
    classifier: Classifier, tokens: Iterable[str], numbers: Numbers = NO_NUMBERS
) -> Explanation:
    """Return the explanation of the message with these tokens and numbers.

    Two classes: the positive one against the other.  More: the most probable one, against the next
    under the sum rule, else against the rest.
    """
    metadata = classifier.metadata
    settings = metadata.settings
    tokens = set(tokens)
    score = classifier.score(tokens, numbers)
    if not settings.counts.has_tokens:
        tokens = set()
    unheard = tokens & classifier.unheard(numbers)
    tokens -= unheard
    if metadata.is_one_sided:
        classes = settings.classes
        return Explanation(score, classes[-1], classes[0], {}, (), len(tokens), 0.0, 0.0)
    ranked = sorted(range(len(settings.classes)), key=lambda k: -score.probabilities[k])
    of, against = ranked[:2]
    if len(settings.classes) == 2:
        of = settings.positive_index or 0
        against = 1 - of
    rule = classifier.rule
    found = sorted(classifier.counts(tokens).items())
    in_model = Found(
        [row for _, row in found],
        [channel_of(token) for token, _ in found],
        [numbers.times.get(token, 1) for token, _ in found],
        rule.trait_weights(numbers.traits),
    )
    terms = rule.terms(in_model, score, of)
    bias, textbook = _textbook_sum(classifier, in_model, numbers, of, against)
    if in_model.traits:
        found += [_trait(classifier, i, numbers.traits[i]) for i in rule.traits]
    return Explanation(
        score=score,
        of=settings.classes[of],
        against=terms.against,
        constants=terms.constants,
        words=_words(found, terms),
        unknown=len(tokens) - len(in_model.rows),
        bias=bias,
        sum_log_odds=textbook,
        base=None if classifier.base is None else classifier.base[0],
        unheard=len(unheard),
    )


def _textbook_sum(
    classifier: Classifier, found: Found, numbers: Numbers, of: int, against: int
) -> tuple[float | None, float | None]:
    """Return the bias and the whole of the textbook's log-odds, whatever rule decides.

    None with a base: the absence of tokens is told by one model's tokens.
    """
    metadata = classifier.metadata
    if classifier.base is not None:
        return None, None
    rule = SumRule(metadata)
    bias = metadata.bias[of] - metadata.bias[against]
    times = found.times if rule.heeds_times else [1] * len(found.times)
    weights = zip(map(rule.weights, found.rows), times, strict=True)
    of_tokens = sum(n * (w[of] - w[against]) for w, n in weights)
    of_traits = sum(w[of] - w[against] for w in rule.trait_weights(numbers.traits))
    return bias, bias + of_tokens + of_traits


def _trait(classifier: Classifier, i: int, value: int) -> tuple[str, Row]:
    """Return a trait as a word is shown, and how many messages of each class have its value."""
    trait, histograms = TRAITS[i], classifier.metadata.learned.trait_histograms
    counts = tuple(values.get(value, 0) for values in histograms[i])
    return f"{TRAIT_PREFIX}{trait.name}={trait.show(value)}", counts


def _words(found: list[tuple[str, Row]], terms: Terms) -> tuple[Word, ...]:
    words = [
        Word(token, weight, tuple(map(_shown, row)), share)
        for (token, row), weight, share in zip(found, terms.weights, terms.shares, strict=True)
        if share or not is_host(token)  # which is evidence for the sum rule alone
    ]
    words.sort(key=lambda word: (-abs(word.share), -abs(word.weight), word.token))
    return tuple(words)


def _shown(count: float) -> int:
    """Return a count as it is shown: a fraction has one decimal."""
    return int(count) if count == int(count) else cast(int, round(count, 1))
