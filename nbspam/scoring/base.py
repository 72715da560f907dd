"""A shared model beneath a personal one: what it must be like, and the scores of both together.

`bayes/base_prior.py` has the formulas.  Nothing of this is imported unless a base is given.
"""

import functools
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from nbspam.bayes.base_prior import (
    NO_LOSSES,
    STRENGTHS,
    Sides,
    based_density,
    based_experience,
    based_trust,
    based_weight,
    first_calibrations,
    lent,
    messages_lent,
    part_of_base,
    strength_of,
    with_message,
)
from nbspam.bayes.event_model import BERNOULLI
from nbspam.bayes.evidence import trait_weight
from nbspam.bayes.posterior import odds_of_class, prior_offset
from nbspam.bayes.token_weight import Row
from nbspam.bayes.trait_model import against_rest, trait_model
from nbspam.errors import ModelError
from nbspam.scoring.classifier import CACHED_TOKENS, Beneath, Classifier, CountsOf
from nbspam.scoring.evidence_rule import EvidenceRule
from nbspam.scoring.score import Score
from nbspam.store.metadata import EVIDENCE, LearnedState, Metadata, ModelSettings, WithBase
from nbspam.tokens.tokenized import Numbers

if TYPE_CHECKING:
    from pathlib import Path

    from nbspam.bayes.trait_model import TraitModel


class Base:
    """A shared model, as far as personal ones stand on it; many may share one."""

    def __init__(self, path: "str | Path", metadata: Metadata, counts_of: CountsOf) -> None:
        """Take a model; raises ModelError if it cannot be a base.

        path: its name in errors.  counts_of: the counts of those tokens that it knows.
        """
        self.path, self.metadata, self.counts = path, metadata, counts_of
        self._densities: dict[object, list[TraitModel | None]] = {}
        settings, learned = metadata
        for name, value, needed in (
            ("event model", settings.event_model, BERNOULLI),
            ("scoring", settings.scoring, EVIDENCE),
        ):
            if value != needed:
                raise ModelError(
                    f"{path}: has the {name} {value}, and a base must have {needed}; train it"
                    " again with the defaults, or leave the base out"
                )
        lacking = [
            name for name, n in zip(settings.classes, learned.messages, strict=True) if not n
        ]
        if lacking:
            raise ModelError(
                f"{path}: has learned no message of the class {lacking[0]!r}, so it cannot be a"
                " base; train it with messages of each class"
            )

    def check(self, path: "str | Path", settings: ModelSettings) -> None:
        """Raise ModelError if a personal model of these settings cannot stand on this base.

        path: the personal model's name.
        """
        own = self.metadata.settings
        for name, value, others in (
            ("the classes", ", ".join(own.classes), ", ".join(settings.classes)),
            ("the spam class", own.positive, settings.positive),
            ("the event model", own.event_model, settings.event_model),
            ("the scoring", own.scoring, settings.scoring),
            ("the traits", own.traits, settings.traits),
        ):
            if value != others:
                raise ModelError(
                    f"{path}: has {name} {others}, and its base {self.path} has {value}; train the"
                    " one again with the options of the other, or leave the base out"
                )

    def remembering(self) -> "Base":
        """Return the same base, which looks each token up once; for as long as a training takes."""
        found: dict[str, Row | None] = {}
        look_up = self.counts

        def counts(tokens: Iterable[str]) -> dict[str, Row]:
            tokens = list(tokens)
            if new := [token for token in tokens if token not in found]:
                known = look_up(new)
                found.update((token, known.get(token)) for token in new)
            return {token: row for token in tokens if (row := found[token]) is not None}

        return Base(self.path, self.metadata, counts)

    @functools.cached_property
    def host_trust(self) -> tuple[float, float]:
        """How far the base's collecting hosts let headers be trusted."""
        return self.metadata.host_trust

    @functools.cached_property
    def with_traits(self) -> list[int]:
        """How many messages of each class were learned with their traits."""
        return [sum(of.values()) for of in self.metadata.learned.trait_histograms[0]]

    def densities(self, scored: Sequence[int], traits: Sequence[int]) -> "list[TraitModel | None]":
        """Return the densities of these traits: per scored class, of the others and of it."""
        key = tuple(scored), tuple(traits)
        if key not in self._densities:
            settings, learned = self.metadata
            heeded = [learned.trait_histograms[i] for i in traits]
            self._densities[key] = [
                trait_model(settings.traits, both, settings.variances)
                for both in against_rest(heeded, scored)
            ]
        return self._densities[key]

    def state(self, own: Metadata) -> WithBase:
        """Return what a personal model has learned with a base, or the state that it begins with.

        Another base may have been beneath it: what was learned then is the best that is known.
        """
        settings, learned = own
        if learned.with_base is not None:
            if len(learned.with_base.losses) == len(STRENGTHS):
                return learned.with_base
            return learned.with_base._replace(losses=NO_LOSSES)  # by a version of other strengths
        calibrations = []
        for k, of_base, of_own in zip(
            settings.scored_classes,
            self.metadata.learned.calibrations,
            learned.calibrations,
            strict=True,
        ):
            few = min(learned.messages[k], sum(learned.messages) - learned.messages[k])
            calibrations.append(first_calibrations(settings.scales, of_base, of_own, few))
        return WithBase(NO_LOSSES, tuple(calibrations))


class BasedRule(EvidenceRule):
    """The evidence rule of a personal model with a base beneath it; see `rule.ScoringRule`.

    The row of a token is that of the personal model and then that of the base.
    """

    def __init__(self, own: Metadata, base: Base, strength: float | None = None) -> None:
        """strength: of the base, in messages of each class; None: as it was learned."""
        state = base.state(own)
        super().__init__(
            own._replace(learned=own.learned._replace(calibrations=state.calibrations))
        )
        self.base, self.own = base, own
        self.strength = strength_of(state.losses) if strength is None else strength
        messages, of_base = own.learned.messages, base.metadata.learned.messages
        self._n_classes = len(messages)
        self._own_sides = [Sides.of(messages, k) for k in self._scored]
        self._base_sides = [Sides.of(of_base, k) for k in self._scored]
        self._experience = [
            based_experience(messages, of_base, k, self.strength) for k in self._scored
        ]
        self._lent = messages_lent(messages, of_base, self.strength)
        self._offsets = [
            prior_offset(
                self._lent,
                self._settings.prior,
                self._settings.positive_index,
                k,
            )
            for k in self._scored
        ]

    @property
    def _class_sizes(self) -> Sequence[float]:
        return self._lent

    @functools.cached_property
    def _host_trust(self) -> tuple[float, float]:
        return based_trust(
            self.own.host_trust,
            sum(self.own.learned.messages),
            self.base.host_trust,
            sum(self.base.metadata.learned.messages),
            self.strength,
        )

    @property
    def host_trust(self) -> tuple[float, float]:
        """How far the hosts of both let headers be trusted, and how many mails speak for it."""
        return self._host_trust

    def weights(self, row: Row) -> tuple[float, ...]:
        """Return a token's weight for each scored class against the others, in nats."""
        own, base = row[: self._n_classes], row[self._n_classes :]
        alpha, strength = self._settings.alpha, self.strength
        return tuple(
            based_weight(Sides.of(own, k), n, Sides.of(base, k), m, strength, alpha)
            for k, n, m in zip(self._scored, self._own_sides, self._base_sides, strict=True)
        )

    @functools.cached_property
    def _of_base(self) -> "list[TraitModel | None]":
        return self.base.densities(self._scored, self.traits)

    def trait_weights(
        self, values: Sequence[int], left_out: int | None = None
    ) -> list[tuple[float, ...]]:
        """Return the weight of each trait for each scored class against the others, in nats."""
        if not (self.traits and values):
            return []
        heeded = [values[i] for i in self.traits]
        n_own = [own - (i == left_out) for i, own in enumerate(self._with_traits)]
        n_base = self.base.with_traits
        by_class = []
        for k, densities, of_base in zip(self._scored, self._densities, self._of_base, strict=True):
            if densities is None or of_base is None:
                continue
            own, base = Sides.of(n_own, k), lent(Sides.of(n_base, k), self.strength)
            if not min(own):  # of one class alone: there is no density against it
                own = Sides((0.0, 0.0))
            few = min(own[0] + base[0], own[1] + base[1])
            is_own = None if left_out is None else int(left_out == k)
            pairs = zip(
                densities.log_densities(heeded, is_own), of_base.log_densities(heeded), strict=True
            )
            by_class.append(
                [
                    trait_weight(
                        based_density(mine[1], own[1], theirs[1], base[1])
                        - based_density(mine[0], own[0], theirs[0], base[0]),
                        few,
                    )
                    for mine, theirs in pairs
                ]
            )
        return list(zip(*by_class, strict=True))


def counts_of_both(own: CountsOf, base: CountsOf, n_classes: int) -> CountsOf:
    """Return what gives the counts of tokens that either model knows: of the own, of the base."""
    none = (0,) * n_classes

    def counts(tokens: Iterable[str]) -> dict[str, Row]:
        tokens = list(tokens)
        mine, theirs = own(tokens), base(tokens)
        return {
            token: tuple(mine.get(token, none)) + tuple(theirs.get(token, none))
            for token in mine.keys() | theirs.keys()
        }

    return counts


def based_classifier(
    own: Metadata,
    counts_of: CountsOf,
    base: Base,
    cached: int = CACHED_TOKENS,
    strength: float | None = None,
) -> Classifier:
    """Return a classifier of a personal model with a base beneath it.

    counts_of: of the personal model.  strength: of the base; None: as it was learned.
    Its metadata are those of the personal model, but for the number of messages: of both.
    """
    both = counts_of_both(counts_of, base.counts, len(own.settings.classes))
    rule = BasedRule(own, base, strength)
    beneath = Beneath(base.path, base.metadata, own, rule.strength, rule.host_trust)
    return Classifier(_of_both(own, base), both, cached, rule, beneath)


def _of_both(own: Metadata, base: Base) -> Metadata:
    """Return the metadata that tell whether both together know enough for a verdict."""
    pairs = zip(own.learned.messages, base.metadata.learned.messages, strict=True)
    learned: LearnedState = own.learned._replace(messages=tuple(n + m for n, m in pairs))
    return own._replace(learned=learned)


class BasedLeftOut:
    """A personal model without one message of a class, with a base beneath it: what it learns."""

    def __init__(self, own: Metadata, counts_of: CountsOf, base: Base) -> None:
        """own, counts_of: of the personal model without that message; the traits have it."""
        self._own, self._counts_of, self._base = own, counts_of, base
        # The weights do not depend on the calibrations, so these serve for many messages.
        self._by_strength = [
            based_classifier(own, counts_of, base, strength=strength) for strength in STRENGTHS
        ]

    def refined(
        self, state: WithBase | None, tokens: Iterable[str], numbers: Numbers, label: int
    ) -> WithBase:
        """Return the state after one more message, scored as if it had not been learned.

        A long run of one class teaches nothing more.  label: its class.
        """
        own = self._own._replace(learned=self._own.learned._replace(with_base=state))
        state = self._base.state(own)
        own = own._replace(learned=own.learned._replace(with_base=state))
        tokens = list(tokens)
        now = based_classifier(own, self._counts_of, self._base)
        words = now.known_words(tokens, numbers, left_out=label)
        calibrations = now.rule.refined(state.calibrations, words, label)
        if calibrations == state.calibrations:
            return state
        odds = []
        for strength, classifier in zip(STRENGTHS, self._by_strength, strict=True):
            rule = BasedRule(own, self._base, strength)
            score = rule.score(classifier.known_words(tokens, numbers, left_out=label))
            odds.append(odds_of_label(score, own.settings, label))
        losses = with_message(state.losses, [z for z, _ in odds], odds[0][1])
        return WithBase(losses, calibrations)


def odds_of_label(score: Score, settings: ModelSettings, label: int) -> tuple[float, bool]:
    """Return log-odds of a message of class `label`, and whether they speak for what it is.

    Of two classes those of the positive one; of more, of the message's own.
    """
    if len(settings.classes) == 2:
        return score.log_odds, label == settings.positive_index
    return odds_of_class(score.log_scores, label), True


def nats_of_base(beneath: Beneath, rows: Sequence[Row], shares: Sequence[float]) -> float:
    """Return how much of the shares of words and traits is from the base, in nats.

    A share is divided as the messages that speak are: the own, and the base's as many as it counts.
    rows: of the own counts and then of the base's.
    """
    messages = beneath.base.learned.messages
    n = len(messages)
    return math.fsum(
        share * part_of_base(row[:n], row[n:], messages, beneath.strength)
        for row, share in zip(rows, shares, strict=True)
    )
