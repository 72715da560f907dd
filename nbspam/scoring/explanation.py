"""Why a message got its score, to the last digit, and the strongest words of a model."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, cast

from nbspam.bayes.event_model import Row
from nbspam.scoring.classifier import Classifier
from nbspam.scoring.rules import (
    BIAS,
    CALIBRATION,
    CAUTION,
    LENGTH,
    OTHER_CLASSES,
    PRIOR,
    SumRule,
    Terms,
    scoring_rule,
)
from nbspam.scoring.verdict import Score
from nbspam.store.lookup import Model
from nbspam.tokens.kinds import TRAITS, is_collector, is_fragment
from nbspam.tokens.tokenized import NO_EXTRAS, TokenExtras

TRAIT_PREFIX = "trait:"
_MAX_NOTEBOOK_WORDS = 15  # words in a notebook
# The constant terms in words.
CONSTANTS = {
    BIAS: "the absence of all other words (bias)",
    CALIBRATION: "the baseline",
    LENGTH: "the adjustment for its length",
    CAUTION: "the small-model adjustment",
    PRIOR: "the prior",
    OTHER_CLASSES: "the other classes' scores",
}


class Word(NamedTuple):
    """A token of the message that the model knows, or one of its traits.

    >>> word = spam_filter.explain("win a prize").words[0]
    >>> word.counts, word.weight > 0
    ((0, 9), True)
    """

    token: str  # `trait:NAME=VALUE` for a trait
    weight: float  # log-odds weight of its presence, for `of` against `against`, in nats
    # The messages of each class that contain it, or its occurrences, or the messages with the
    # trait's value; with a base the sums of both models, which may be fractions.
    counts: Row
    share: float  # the word's contribution to the sum, in nats

    @property
    def is_trait(self) -> bool:
        """Whether this is a trait of the message and not a token."""
        return self.token.startswith(TRAIT_PREFIX)


class Explanation(NamedTuple):
    """The words of a message, strongest share first, and the other terms of the sum.

    `total` is the log-odds of `of`, in nats: the sum of the shares and the constants.

    >>> explained = spam_filter.explain("win a prize")
    >>> total = sum(word.share for word in explained.words) + sum(explained.constants.values())
    >>> abs(total - explained.total) < 1e-9
    True
    """

    score: Score
    of: str  # the class whose log-odds are explained
    against: str  # the class that it is compared with, or "the rest"
    constants: Mapping[str, float]  # key of `terms` -> nats: the terms that belong to no word
    words: tuple[Word, ...]
    unknown: int  # tokens of the message that the model does not know
    bias: float | None  # the bias of the textbook's sum, in nats; None with a base
    sum_log_odds: float | None  # the textbook's sum, for comparison; None with a base
    base: str | None = None  # the base model's name
    ignored_hidden: int = 0  # ignored tokens: evidence for ham in possibly hidden text

    def __repr__(self) -> str:
        words = ", ".join(f"{word.token} {word.share:+.2f}" for word in self.readable_words[:3])
        return f"<Explanation of {self.of}: {self.total:+.3f} nats; {words or 'no known word'}>"

    def _repr_html_(self) -> str:
        """Return a table for a notebook: the strongest words, and the sums of the others."""
        from html import escape

        strongest, others = (
            self.readable_words[:_MAX_NOTEBOOK_WORDS],
            self.readable_words[_MAX_NOTEBOOK_WORDS:],
        )
        rows = [(f"<bdi>{escape(w.token)}</bdi>", f"{w.weight:+.3f}", w.share) for w in strongest]
        fragments = [word for word in self.words if is_fragment(word.token)]
        for several, name in ((others, "more words"), (fragments, "character trigrams and pieces")):
            share = sum(word.share for word in several)
            rows += [(f"{len(several):,} {name}", "", share)] if several else []
        for key, nats in self.constants.items():
            rows.append((escape(CONSTANTS[key].removeprefix("the ")), "", nats))
        rows += [(f"log-odds of {escape(self.of)}", "", self.total)]
        cells = "".join(
            f"<tr><td>{name}</td><td>{weight}</td><td>{share:+.3f}</td></tr>"
            for name, weight, share in rows
        )
        return f"<table><tr><th>word</th><th>weight</th><th>share, nats</th></tr>{cells}</table>"

    @property
    def readable_words(self) -> tuple[Word, ...]:
        """The words without character trigrams and pieces, which mean little to a reader."""
        return tuple(word for word in self.words if not is_fragment(word.token))

    @property
    def total(self) -> float:
        """The constants and all shares."""
        return sum(self.constants.values()) + sum(word.share for word in self.words)


def explain(
    classifier: Classifier, tokens: Iterable[str], extras: TokenExtras = NO_EXTRAS
) -> Explanation:
    """Explain the score of a message with these tokens and extras.

    With two classes the positive class is explained against the other class.  With more classes the
    most probable class is explained: under the sum rule against the next class, otherwise against
    the rest.
    """
    metadata = classifier.metadata
    settings = metadata.settings
    tokens = set(tokens)
    score = classifier.score(tokens, extras)
    if not settings.counts.has_tokens:
        tokens = set()
    ignored_hidden = tokens & classifier.hidden_ham_tokens(extras)
    tokens -= ignored_hidden
    if metadata.lacks_two_classes:
        classes = settings.classes
        return Explanation(score, classes[-1], classes[0], {}, (), len(tokens), 0.0, 0.0)
    explained = max(range(len(settings.classes)), key=score.probabilities.__getitem__)
    if len(settings.classes) == 2:
        explained = settings.positive_index or 0
    rule = classifier.rule
    known = sorted(classifier.counts(tokens).items())
    terms = rule.terms(known, extras, score, explained)
    bias, textbook, n = None, None, len(known)
    if classifier.base is None:  # the bias needs the tokens of a single model
        plain = SumRule(metadata).terms(known, extras, score, explained)
        bias = plain.constants[BIAS]
        textbook = bias + sum(plain.shares[:n]) + sum(plain.shares[n:])
    if len(terms.weights) > n:
        known += [_trait(classifier, i, extras.traits[i]) for i in rule.traits]
    return Explanation(
        score=score,
        of=settings.classes[explained],
        against=terms.against,
        constants=terms.constants,
        words=_words(known, terms),
        unknown=len(tokens) - n,
        bias=bias,
        sum_log_odds=textbook,
        base=None if classifier.base is None else classifier.base[0],
        ignored_hidden=len(ignored_hidden),
    )


def _trait(classifier: Classifier, i: int, value: int) -> tuple[str, Row]:
    """Return a trait like a word, and the messages of each class with the same value."""
    trait, histograms = TRAITS[i], classifier.metadata.learned.trait_histograms
    counts = tuple(values.get(value, 0) for values in histograms[i])
    return f"{TRAIT_PREFIX}{trait.name}={trait.show(value)}", counts


def _words(known: list[tuple[str, Row]], terms: Terms) -> tuple[Word, ...]:
    words = [
        Word(token, weight, tuple(map(_display_count, row)), share)
        for (token, row), weight, share in zip(known, terms.weights, terms.shares, strict=True)
        if share or not is_collector(token)  # a collector is evidence for the sum rule only
    ]
    words.sort(key=lambda word: (-abs(word.share), -abs(word.weight), word.token))
    return tuple(words)


def _display_count(count: float) -> int:
    """Round a count for display: a fraction gets one decimal."""
    return int(count) if count == int(count) else cast(int, round(count, 1))


class StrongWord(NamedTuple):
    """A token of a model."""

    token: str
    weight: float  # for the class that it is listed for, in nats
    counts: Row

    @property
    def share(self) -> None:
        """None, because the word does not belong to a message."""


def strongest_words(model: Model, top: int, *, fragments: bool) -> dict[str, list[StrongWord]]:
    """Return the strongest words for each class, strongest first.

    top: the number of words for each class.  fragments: whether to include character trigrams.
    """
    one_vs_rest_weights = scoring_rule(model.metadata).one_vs_rest_weights
    rows = [
        (token, row, one_vs_rest_weights(row))
        for token, row in model.counts.items()
        if not is_collector(token) and (fragments or not is_fragment(token))
    ]
    ranked = {}
    for k, name in enumerate(model.metadata.settings.classes):
        best = sorted(rows, key=lambda item: (-item[2][k], item[0]))[:top]
        ranked[name] = [StrongWord(token, weights[k], row) for token, row, weights in best]
    return ranked
