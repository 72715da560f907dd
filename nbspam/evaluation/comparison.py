"""Several kinds of naive Bayes on the same messages: their figures, and which differ for sure.

Every combination of an event model, a trait model and a scoring rule is tested by one protocol on
the same messages, and each is compared with the best: whether its errors are more by more than
chance (McNemar's exact test), and whether it ranks worse (a paired bootstrap of 1-ROCA%).  Of some
twenty comparisons one in twenty differs "significantly" by chance, so the p-values are Holm's.  The
best is chosen on the messages that it is compared on, so they are still somewhat too small.  Which
model to take is said in plain words (`advice`).
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from nbspam.bayes.event_model import BERNOULLI, EVENT_MODELS, NO_TOKENS, event_model
from nbspam.bayes.trait_model import GAUSSIAN, KERNEL, NO_TRAITS, TRAIT_MODELS, Variances
from nbspam.errors import OptionError, TrainingError, counted
from nbspam.evaluation.messages import LabelledCorpus
from nbspam.evaluation.metrics import (
    SEED,
    Figures,
    Interval,
    Ranking,
    ScoredMessages,
    calibration_error,
    figures,
    one_minus_roca_pct,
    percentile_interval,
)
from nbspam.evaluation.results import Evaluation, scored_messages
from nbspam.learning.settings import HAS_PRIOR, TrainingSettings
from nbspam.store.metadata import EVIDENCE, SCORINGS
from nbspam.tokens.tokenized import Wanted

ALL = "all"
SURE = 0.05  # a p-value below it is a difference
# The smallest p-value of a bootstrap is 2 in so many, and Holm's method multiplies it by the number
# of comparisons.
_RESAMPLES = 2_000
_NAMED = 3  # models that are named of those that are as good
_FEWEST = 10  # messages of a class; resamples of fewer are too alike to tell anything
EVERYTHING = Wanted(times=True, traits=True)


class Combination(NamedTuple):
    """One kind of naive Bayes."""

    event_model: str
    traits: str
    scoring: str

    @property
    def name(self) -> str:
        """Its name: `bernoulli+kernel:evidence`."""
        parts = [p for p in (self.event_model, self.traits) if p not in (NO_TOKENS, NO_TRAITS)]
        return f"{'+'.join(parts)}:{self.scoring}"

    def settings(self, given: TrainingSettings) -> TrainingSettings:
        """Return the settings of such a model, the rest of them as they were given."""
        variances = given.variances if self.traits == GAUSSIAN else Variances()
        return given._replace(**self._asdict(), variances=variances)


DEFAULT = Combination(BERNOULLI, KERNEL, EVIDENCE)


def combinations(given: TrainingSettings) -> list[Combination]:
    """Return every combination that makes sense.

    Those of no tokens and no traits do not, nor does a fixed prior where there is none in the sum;
    and under the evidence rule, which weighs a class against all others, the complement model is
    the multinomial one.
    """
    every = (Combination(e, t, s) for s in SCORINGS for e in EVENT_MODELS for t in TRAIT_MODELS)
    return [
        c
        for c in every
        if (c.event_model, c.traits) != (NO_TOKENS, NO_TRAITS)
        and (
            event_model(c.event_model).has_prior
            or (not HAS_PRIOR[c.scoring] and given.prior is None)
        )
    ]


def chosen(names: str, given: TrainingSettings) -> list[Combination]:
    """Return the combinations that a list of names asks for; raises OptionError.

    names: `all`, or names with commas between: EVENT_MODEL, +TRAITS or both, then :SCORING; without
    it both scorings.
    """
    known = {c.name: c for c in combinations(given)}
    found: dict[str, Combination] = {}
    for name in names.split(","):
        asked = {n: c for n, c in known.items() if name in (ALL, n, n.partition(":")[0])}
        if not asked:
            raise OptionError(
                f"{name!r} is not a kind of naive Bayes; choose all, or some of {', '.join(known)}"
            )
        found |= asked
    if len(found) < 2:
        raise OptionError("one model alone cannot be compared; name two or more, or all")
    return list(found.values())


class Difference(NamedTuple):
    """How a model differs from the best."""

    only_it: int  # messages that it alone has wrong
    only_best: int  # that the best alone has wrong
    errors_p: float  # McNemar's exact test, after Holm
    roca: float | None = None  # its 1-ROCA% less the best's; None without a class called spam
    roca_interval: Interval | None = None  # 95 %
    roca_p: float | None = None  # of the paired bootstrap, after Holm

    @property
    def makes_more_errors(self) -> bool:
        """Whether it makes more errors, by more than chance."""
        return self.errors_p < SURE and self.only_it > self.only_best

    @property
    def _ranking(self) -> int:
        """Return 1 if it ranks worse, -1 if better, by more than chance; else 0."""
        if self.roca is None or self.roca_p is None or self.roca_p >= SURE:
            return 0
        return (self.roca > 0) - (self.roca < 0)

    @property
    def ranks_better(self) -> bool:
        """Whether it ranks better, by more than chance, though its errors are no fewer."""
        return self._ranking < 0

    @property
    def is_worse(self) -> bool:
        """Whether it is worse in errors or in ranking, by more than chance, and better in none."""
        return self._ranking > 0 or (self.makes_more_errors and not self._ranking)

    @property
    def verdict(self) -> str:
        """What is sure of it, in words."""
        errors = ["more errors"] if self.makes_more_errors else []
        ranking = {1: ["ranks worse"], -1: ["ranks better"], 0: []}[self._ranking]
        return ", ".join(errors + ranking) or "not significant"


class Compared(NamedTuple):
    """A model of the comparison."""

    combination: Combination
    messages: ScoredMessages
    figures: Figures
    calibration_error: float | None
    seconds: float
    difference: Difference | None = None  # None of the best

    @property
    def errors(self) -> int:
        """How many messages it calls what they are not, as `Outcome.called` says."""
        return self.messages.counts.errors

    def value(self, key: str) -> float | None:
        """Return a figure, or the errors, the calibration error or the seconds."""
        value = self.figures.values.get(key, getattr(self, key, None))
        return None if value is None else float(value)

    def interval(self, key: str) -> Interval | None:
        """Return the 95 % interval of a figure, or of the errors for as many messages."""
        counts = self.messages.counts
        return counts.errors_interval if key == "errors" else self.figures.intervals.get(key)

    def as_json(self) -> dict[str, object]:
        """Return all figures, and the difference from the best."""
        differences = "only_this_wrong only_best_wrong mcnemar_p_holm one_minus_roca_pct_less_best"
        keys = f"{differences} one_minus_roca_pct_less_best_ci bootstrap_p_holm".split()
        values = self.difference or (None,) * len(keys)
        return {
            "name": self.combination.name,
            **self.combination._asdict(),
            "is_default": self.combination == DEFAULT,
            "errors": self.errors,
            "errors_ci": self.interval("errors"),
            **self.figures.as_json(),
            "calibration_error": self.calibration_error,
            "seconds": self.seconds,
            **dict(zip(keys, values, strict=True)),
        }


class Comparison(NamedTuple):
    """A comparison: the best first."""

    protocol: str
    models: list[Compared]
    seed: int = SEED  # of the bootstraps
    duplicates: int | None = None  # as of each evaluation
    mislabelled: int = 0  # messages left out

    def as_json(self, said: str, skipped: int) -> str:
        """Return the comparison as one JSON object.

        said: the advice.  skipped: how many messages could not be read.
        """
        fields = {
            "protocol": self.protocol,
            "skipped": skipped,
            "mislabelled": self.mislabelled,
            "duplicates": self.duplicates,
            "seed": self.seed,
            "models": [model.as_json() for model in self.models],
            "advice": said,
        }
        return json.dumps(fields, indent=1)


def compare(
    read: LabelledCorpus,
    asked: Sequence[Combination],
    given: TrainingSettings,
    protocol: Callable[[LabelledCorpus, TrainingSettings], Evaluation],
    shown: Callable[[Sequence[Combination]], Iterable[Combination]] = iter,
    seed: int = SEED,
) -> Comparison:
    """Return the comparison of combinations on the same messages.

    read: with the numbers that all of them count (EVERYTHING).  given: the user's other settings.
    protocol: tests a model.  shown: passes the combinations on, and may show how far it is.
    seed: of the bootstraps.
    Raises NbspamError as the protocol does.
    """
    models, name, duplicates = [], "", None
    for combination in shown(asked):
        settings = combination.settings(given)
        begun = time.perf_counter()
        found = protocol(read, settings)
        seconds = time.perf_counter() - begun
        name, duplicates, messages = found.protocol, found.duplicates, scored_messages(found)
        bins = messages.calibration()
        error = calibration_error(bins) if messages.has_spam_class else None
        models.append(Compared(combination, messages, figures(messages, seed), error, seconds))
    if not models or not len(models[0].messages):
        raise TrainingError("there is no message to test on; name a source that has some")
    models.sort(key=_rank)
    return Comparison(name, _with_differences(models, seed), seed, duplicates)


def _rank(model: Compared) -> tuple[float, ...]:
    known = (model.value(key) or 0.0 for key in ("one_minus_roca_pct", "log_loss"))
    return model.errors, *known, model.combination != DEFAULT


def _with_differences(models: list[Compared], seed: int) -> list[Compared]:
    """Return the models, each but the first with its difference from the first."""
    best, *others = models
    right = best.messages.right
    wrong = [(~model.messages.right, model.messages.right) for model in others]
    pairs = [(int((it & right).sum()), int((not_it & ~right).sum())) for it, not_it in wrong]
    errors_p = holm([mcnemar_p(*pair) for pair in pairs])
    differences = [Difference(*pair, p) for pair, p in zip(pairs, errors_p, strict=True)]
    counts = best.messages.counts
    if best.messages.has_spam_class and 0 < counts.spam < counts.messages:
        drawn = list(_roca_differences(models, seed))
        few = min(counts.spam, counts.ham) < _FEWEST
        roca_p = holm([1.0 if few else bootstrap_p(sample) for _, sample in drawn])
        differences = [
            d._replace(roca=value, roca_interval=percentile_interval(sample), roca_p=p)
            for d, (value, sample), p in zip(differences, drawn, roca_p, strict=True)
        ]
    pairs_of = zip(others, differences, strict=True)
    return [best, *(model._replace(difference=difference) for model, difference in pairs_of)]


def mcnemar_p(only_one: int, only_other: int) -> float:
    """Return the two-sided p-value of McNemar's exact test (1947): of a fair coin's tosses.

    p = 2 Σ_{i ≤ k} C(n, i) / 2ⁿ for n tosses of which the rarer side came up k times, at most 1.
    The sum is of integers, exact before it is divided.  (scipy.stats takes a second to import.)
    """
    tosses, rarer = only_one + only_other, min(only_one, only_other)
    term = total = 1  # C(n, 0)
    for i in range(rarer):
        term = term * (tosses - i) // (i + 1)
        total += term
    return min(1.0, 2 * total / (1 << tosses))


def _roca_differences(models: Sequence[Compared], seed: int) -> Iterator[tuple[float, list[float]]]:
    """Yield of each model but the first its 1-ROCA% less the first's, and that of each resample."""
    values, samples = [], []
    for model in models:
        ranking = Ranking(model.messages)
        values.append(one_minus_roca_pct(ranking.whole()))
        # One seed, so the same messages are drawn for each model.
        samples.append(
            np.array([one_minus_roca_pct(sample) for sample in ranking.draw(_RESAMPLES, seed)])
        )
    for value, sample in zip(values[1:], samples[1:], strict=True):
        yield value - values[0], (sample - samples[0]).tolist()


def bootstrap_p(differences: Sequence[float]) -> float:
    """Return the two-sided p-value that a difference is 0, of its resamples.

    Twice the share on the rarer side of 0, one more on each side (Davison and Hinkley 1997, 4.2).
    """
    n = len(differences)
    if min(differences) == max(differences):  # no two messages rank differently
        return 1.0
    below = sum(d <= 0 for d in differences)
    above = sum(d >= 0 for d in differences)
    return min(1.0, 2 * (min(below, above) + 1) / (n + 1))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values that hold for all comparisons together (Holm 1979), in the same order."""
    n = len(p_values)
    adjusted = [0.0] * n
    highest = 0.0
    for i, k in enumerate(sorted(range(n), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (n - i) * p_values[k]))
        adjusted[k] = highest
    return adjusted


def advice(comparison: Comparison, how: Callable[[Combination], str]) -> str:
    """Return a sentence: which model to take, why, and which others are as good.

    The default, unless it is worse than the best by more than chance.
    how: how a user chooses a model that is not the default.
    """
    best, *others = comparison.models
    default = next((m for m in others if m.combination == DEFAULT), None)
    fewest = "it makes the fewest errors"
    if any(other.errors <= best.errors for other in others):
        fewest = "no model makes fewer errors"
    if best.combination == DEFAULT:
        taken = f"Take the default, {DEFAULT.name}: {fewest}"
    elif default is not None and default.difference and not default.difference.is_worse:
        taken = f"Take the default, {DEFAULT.name}: {_though_not_first(default, best)}"
    else:
        kind = best.combination
        why = fewest if default is None else _better_than(default, best)
        taken = f"Take {kind.name}, with {how(kind)}: {why}"
    return f"{taken}{_of_the_others([m for m in others if m is not default])}."


def _though_not_first(default: Compared, best: Compared) -> str:
    """Return why to take the default, which is not the first and not worse for sure."""
    fewer, difference = default.errors - best.errors, default.difference
    if not fewer or difference is None:
        return "no model makes fewer errors"
    sure = "significant" if difference.makes_more_errors else "not significant"
    said = f"{best.combination.name} makes {fewer:,} fewer {'error' if fewer == 1 else 'errors'}"
    ranks = ", and the default ranks significantly better" if difference.ranks_better else ""
    return f"{said} ({sure}){ranks}"


def _better_than(default: Compared, best: Compared) -> str:
    """Return in what the best is better than the default."""
    ranks = ", and ranks significantly better"
    if default.errors == best.errors:
        return f"it makes as few errors as the default{ranks}"
    said = f"it makes the fewest errors, {best.errors:,} where the default makes {default.errors:,}"
    is_sure = default.difference is not None and default.difference.makes_more_errors
    return f"{said}{' (significant)' if is_sure else ranks}"


def _of_the_others(others: Sequence[Compared]) -> str:
    """Return which of the other models are as good as the best."""
    as_good = [m.combination.name for m in others if m.difference and not m.difference.is_worse]
    if not others:
        return ""
    if not as_good:
        return "; the others are significantly worse"
    if len(as_good) == len(others):
        return "; no other model is significantly worse"
    if len(as_good) > _NAMED:
        as_good[_NAMED:] = [counted(len(as_good) - _NAMED, "other")]
    verb = "is" if len(as_good) == 1 else "are"
    named = " and ".join(filter(None, [", ".join(as_good[:-1]), as_good[-1]]))
    return f"; {named} {verb} not significantly worse"
