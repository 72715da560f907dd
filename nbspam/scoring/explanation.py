"""Why a message got its score, to the last digit, and what a model knows of single words."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, cast

from nbspam.bayes.event_model import Row
from nbspam.scoring.classifier import Classifier
from nbspam.scoring.rules import BIAS, Score, SumRule, Terms, rule_of
from nbspam.store.lookup import Lookup, Model
from nbspam.tokens.kinds import TRAITS, is_fragment, is_host
from nbspam.tokens.text import of_other_kinds, typed_tokens
from nbspam.tokens.tokenized import NO_NUMBERS, Numbers

TRAIT_PREFIX = "trait:"
_SHOWN = 15  # words in a notebook


class Word(NamedTuple):
    """A token of the message that the model knows, or one of its traits.

    >>> word = spam_filter.explain("win a prize").words[0]
    >>> word.counts, word.weight > 0
    ((0, 9), True)
    """

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
    """The words of a message, strongest share first, and what else goes into the sum.

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
    bias: float | None  # of the textbook's sum, in nats; None with a base, as the sum itself
    sum_log_odds: float | None  # the textbook's sum, for comparison
    base: str | None = None  # the model that this one is read through
    unheard: int = 0  # tokens of perhaps hidden text that speak for ham, which count for nothing

    def __repr__(self) -> str:
        words = ", ".join(f"{word.token} {word.share:+.2f}" for word in self.words[:3])
        return f"<Explanation of {self.of}: {self.total:+.3f} nats; {words or 'no known word'}>"

    def _repr_html_(self) -> str:
        """Return a table for a notebook: the strongest words, and the sums of the others."""
        from html import escape

        strongest, others = self.words[:_SHOWN], self.words[_SHOWN:]
        rows = [(f"<bdi>{escape(w.token)}</bdi>", f"{w.weight:+.3f}", w.share) for w in strongest]
        rest = sum(word.share for word in others)
        rows += [(f"{len(others):,} more words", "", rest)] if others else []
        rows += [(escape(name), "", nats) for name, nats in self.constants.items()]
        rows += [(f"log-odds of {escape(self.of)}", "", self.total)]
        cells = "".join(
            f"<tr><td>{name}</td><td>{weight}</td><td>{share:+.3f}</td></tr>"
            for name, weight, share in rows
        )
        return f"<table><tr><th>word</th><th>weight</th><th>share, nats</th></tr>{cells}</table>"

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
    unheard = tokens & classifier.hidden_ham_tokens(numbers)
    tokens -= unheard
    if metadata.is_one_sided:
        classes = settings.classes
        return Explanation(score, classes[-1], classes[0], {}, (), len(tokens), 0.0, 0.0)
    explained = max(range(len(settings.classes)), key=score.probabilities.__getitem__)
    if len(settings.classes) == 2:
        explained = settings.positive_index or 0
    rule = classifier.rule
    known = sorted(classifier.counts(tokens).items())
    terms = rule.terms(known, numbers, score, explained)
    bias, textbook, n = None, None, len(known)
    if classifier.base is None:  # the absence of tokens is told by one model's tokens
        plain = SumRule(metadata).terms(known, numbers, score, explained)
        bias = plain.constants[BIAS]
        textbook = bias + sum(plain.shares[:n]) + sum(plain.shares[n:])
    if len(terms.weights) > n:
        known += [_trait(classifier, i, numbers.traits[i]) for i in rule.traits]
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
        unheard=len(unheard),
    )


def _trait(classifier: Classifier, i: int, value: int) -> tuple[str, Row]:
    """Return a trait as a word is shown, and how many messages of each class have its value."""
    trait, histograms = TRAITS[i], classifier.metadata.learned.trait_histograms
    counts = tuple(values.get(value, 0) for values in histograms[i])
    return f"{TRAIT_PREFIX}{trait.name}={trait.show(value)}", counts


def _words(known: list[tuple[str, Row]], terms: Terms) -> tuple[Word, ...]:
    words = [
        Word(token, weight, tuple(map(_shown, row)), share)
        for (token, row), weight, share in zip(known, terms.weights, terms.shares, strict=True)
        if share or not is_host(token)  # which is evidence for the sum rule alone
    ]
    words.sort(key=lambda word: (-abs(word.share), -abs(word.weight), word.token))
    return tuple(words)


def _shown(count: float) -> int:
    """Return a count as it is shown: a fraction has one decimal."""
    return int(count) if count == int(count) else cast(int, round(count, 1))


class StrongWord(NamedTuple):
    """A token of a model."""

    token: str
    weight: float  # for the class that it is listed for, in nats
    counts: Row

    @property
    def share(self) -> None:
        """What it adds to a message's sum: it is of none."""


def strongest_words(model: Model, top: int, *, fragments: bool) -> dict[str, list[StrongWord]]:
    """Return the strongest words for each class, strongest first.

    top: how many of each class.  fragments: whether character trigrams are among them.
    """
    contrasts = rule_of(model.metadata).contrasts
    rows = [
        (token, row, contrasts(row))
        for token, row in model.counts.items()
        if not is_host(token) and (fragments or not is_fragment(token))
    ]
    ranked = {}
    for k, name in enumerate(model.metadata.settings.classes):
        best = sorted(rows, key=lambda item: (-item[2][k], item[0]))[:top]
        ranked[name] = [StrongWord(token, weights[k], row) for token, row, weights in best]
    return ranked


class WordCount(NamedTuple):
    """A token that was asked for."""

    typed: str
    token: str  # as the tokenizer writes it
    counts: Row | None  # per class, the messages that have it, or how often they do; None: unknown
    weights: tuple[float, ...] | None  # for each class against the others, in nats; None: it is
    # unknown, or a host that took mails in, which has no weight
    other_kinds: tuple[str, ...]  # of an unknown token: what the model knows with its value


def word_counts(lookup: Lookup, typed: Iterable[str]) -> list[WordCount]:
    """Return what the model knows of the tokens that typed words stand for; raises ModelError."""
    pairs = [(word, token) for word in typed for token in typed_tokens(word)]
    kinds = {token: of_other_kinds(token) for _, token in pairs}
    known = lookup.counts({*kinds, *(other for others in kinds.values() for other in others)})
    rule = rule_of(lookup.metadata)
    counts = []
    for word, token in pairs:
        row = known.get(token)
        others = tuple(other for other in kinds[token] if other in known) if row is None else ()
        weights = None
        if row is not None and not (is_host(token) and rule.is_calibrated):
            weights = tuple(rule.contrasts(row))
        counts.append(WordCount(word, token, row, weights, others))
    return counts
