"""Compare kinds of naive Bayes on the same messages: figures, significant differences, advice.

One protocol tests every combination of an event model, a trait model and a scoring rule on the same
messages.  Each is compared with the best: whether it makes significantly more errors (McNemar's
exact test), and whether it ranks significantly worse (a paired bootstrap of 1-ROCA%).  One in
twenty comparisons differs "significantly" by chance, so the p-values are corrected by Holm's
method.  The best is chosen on the same messages, so the p-values are still somewhat too small.
`advice` says which model to take.
"""

import json
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from nbspam.bayes.event_model import BERNOULLI, EVENT_MODELS, NO_TOKENS, event_model
from nbspam.bayes.matrix import Floats
from nbspam.bayes.trait_model import GAUSSIAN, KERNEL, NO_TRAITS, TRAIT_MODELS, Variances
from nbspam.errors import OptionError, TrainingError, counted
from nbspam.evaluation import metrics
from nbspam.evaluation.metrics import SEED, Interval, ScoredMessages
from nbspam.evaluation.results import Evaluation, Results, compute
from nbspam.learning.settings import HAS_PRIOR, TrainingSettings
from nbspam.scoring.verdict import rounded
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

    def settings(self, options: TrainingSettings) -> TrainingSettings:
        """Return the settings of such a model, the rest of them as they were given."""
        variances = options.variances if self.traits == GAUSSIAN else Variances()
        return options._replace(**self._asdict(), variances=variances)


DEFAULT = Combination(BERNOULLI, KERNEL, EVIDENCE)


def combinations(options: TrainingSettings) -> list[Combination]:
    """Return every combination that makes sense.

    Left out: neither tokens nor traits; a fixed prior and an event model without one; and the
    complement model under the evidence rule, where it equals the multinomial one.
    """
    is_learned = options.prior is None
    kinds = (Combination(e, t, s) for s in SCORINGS for e in EVENT_MODELS for t in TRAIT_MODELS)
    return [
        c
        for c in kinds
        if (c.event_model, c.traits) != (NO_TOKENS, NO_TRAITS)
        and (event_model(c.event_model).has_prior or (is_learned and not HAS_PRIOR[c.scoring]))
    ]


def chosen(names: str, options: TrainingSettings) -> list[Combination]:
    """Return the named combinations; raises OptionError for an unknown name.

    names: `all`, or names with commas between: EVENT_MODEL, +TRAITS or both, then :SCORING; without
    it both scorings.
    """
    known = {c.name: c for c in combinations(options)}
    selected: dict[str, Combination] = {}
    for name in names.split(","):
        matches = {n: c for n, c in known.items() if name in (ALL, n, n.partition(":")[0])}
        if not matches:
            raise OptionError(
                f"{name!r} is not a kind of naive Bayes; choose all, or some of {', '.join(known)}"
            )
        selected |= matches
    if len(selected) < 2:
        raise OptionError("one model alone cannot be compared; name two or more, or all")
    return list(selected.values())


class Difference(NamedTuple):
    """How a model differs from the best."""

    only_it: int  # messages that only this model gets wrong
    only_best: int  # messages that only the best gets wrong
    errors_p: float  # McNemar's exact test, after Holm
    roca: float | None = None  # its 1-ROCA% less the best's; None without a class called spam
    roca_interval: Interval | None = None  # 95 %
    roca_p: float | None = None  # of the paired bootstrap, after Holm

    @property
    def makes_more_errors(self) -> bool:
        """Whether it makes significantly more errors."""
        return self.errors_p < SURE and self.only_it > self.only_best

    @property
    def ranking(self) -> int:
        """1 if it ranks significantly worse, -1 if better, else 0."""
        if self.roca is None or self.roca_p is None or self.roca_p >= SURE:
            return 0
        return (self.roca > 0) - (self.roca < 0)

    @property
    def is_worse(self) -> bool:
        """Whether it is significantly worse in errors or in ranking, and better in neither."""
        return self.ranking > 0 or (self.makes_more_errors and not self.ranking)

    @property
    def verdict(self) -> str:
        """The significant differences, in words."""
        errors = "more errors" if self.makes_more_errors else ""
        ranking = ("", "ranks worse", "ranks better")[self.ranking]
        return ", ".join(filter(None, (errors, ranking))) or "not significant"


class Compared(NamedTuple):
    """A model of the comparison."""

    combination: Combination
    results: Results
    seconds: float
    difference: Difference | None = None  # None of the best

    @property
    def messages(self) -> ScoredMessages:
        """The messages, as it scores them."""
        return self.results.messages

    @property
    def errors(self) -> int:
        """How many messages it assigns to a wrong class (`Outcome.called`)."""
        return self.messages.counts.errors

    def as_json(self) -> dict[str, Any]:
        """Return all figures, and the difference from the best."""
        differences = "only_this_wrong only_best_wrong mcnemar_p_holm one_minus_roca_pct_less_best"
        keys = f"{differences} one_minus_roca_pct_less_best_ci bootstrap_p_holm".split()
        values = self.difference or (None,) * len(keys)
        return {
            "name": self.combination.name,
            **self.combination._asdict(),
            "is_default": self.combination == DEFAULT,
            **self.results.figures.as_json(),
            "seconds": self.seconds,
            **dict(zip(keys, values, strict=True)),
        }


def as_json(models: Sequence[Compared], advice: str) -> str:
    """Return a comparison as one JSON object."""
    results = models[0].results
    fields = {
        "protocol": results.evaluation.protocol,
        "skipped": results.evaluation.skipped,
        "mislabelled": results.evaluation.mislabelled.messages,
        "duplicates": results.evaluation.duplicates,
        "seed": results.seed,
        "models": [model.as_json() for model in models],
        "advice": advice,
    }
    return json.dumps(rounded(fields), indent=1)


def compare(
    combinations: Iterable[Combination],
    options: TrainingSettings,
    protocol: Callable[[TrainingSettings], Evaluation],
    seed: int = SEED,
) -> list[Compared]:
    """Return the comparison of combinations on the same messages, the best first.

    options: the user's other settings.  protocol: tests a model.  seed: of the bootstraps.
    Raises NbspamError as the protocol does.
    """
    models = []
    for combination in combinations:
        begun = time.perf_counter()
        evaluation = protocol(combination.settings(options))
        seconds = time.perf_counter() - begun
        models.append(Compared(combination, compute(evaluation, seed), seconds))
    if not models or not len(models[0].messages):
        raise TrainingError("there is no message to test on; name a source that has some")
    best, *others = sorted(models, key=_rank)
    differences = zip(others, _differences(best, others, seed), strict=True)
    return [best, *(model._replace(difference=d) for model, d in differences)]


def _rank(model: Compared) -> tuple[float, ...]:
    figures = model.results.figures.values
    known = (figures[key] or 0.0 for key in ("one_minus_roca_pct", "log_loss"))
    return model.errors, *known, model.combination != DEFAULT


def _differences(best: Compared, others: Sequence[Compared], seed: int) -> list[Difference]:
    """Return the difference of each of the others from the best."""

    def areas(model: Compared) -> Floats:  # of the messages, and then of each resample
        # One seed, so the same messages are drawn for each model.
        drawn = metrics.samples(model.messages, _RESAMPLES, seed)
        return np.array([metrics.one_minus_roca_pct(sample) for sample in drawn])

    right, counts = best.messages.right, best.messages.counts
    wrong = [~model.messages.right for model in others]
    pairs = [(int((errors & right).sum()), int((~errors & ~right).sum())) for errors in wrong]
    errors_p = holm([mcnemar_p(*pair) for pair in pairs])
    differences = [Difference(*pair, p) for pair, p in zip(pairs, errors_p, strict=True)]
    if not best.messages.has_spam_class or not 0 < counts.spam < counts.messages:
        return differences
    of_best, few = areas(best), min(counts.spam, counts.ham) < _FEWEST
    less = [areas(model) - of_best for model in others]
    roca_p = holm([1.0 if few else bootstrap_p(deltas[1:]) for deltas in less])
    return [
        difference._replace(
            roca=float(deltas[0]), roca_interval=metrics.percentile_interval(deltas[1:]), roca_p=p
        )
        for difference, deltas, p in zip(differences, less, roca_p, strict=True)
    ]


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


def bootstrap_p(differences: Floats) -> float:
    """Return the two-sided p-value that a difference is 0, of its resamples.

    Twice the share on the rarer side of 0, one more on each side (Davison and Hinkley 1997, 4.2).
    """
    if np.ptp(differences) == 0:  # no two messages rank differently
        return 1.0
    rarer = int(min((differences <= 0).sum(), (differences >= 0).sum()))
    return min(1.0, 2 * (rarer + 1) / (len(differences) + 1))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values that hold for all comparisons together (Holm 1979), in the same order."""
    order, n = np.argsort(p_values, kind="stable"), len(p_values)
    adjusted = np.empty(n)
    sorted_values = np.array(p_values, float)[order] * np.arange(n, 0, -1)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(sorted_values))
    return adjusted.tolist()


def advice(models: Sequence[Compared], how: Callable[[Combination], str]) -> str:
    """Return a sentence: which model to take, why, and which others are as good.

    The default, unless it is worse than the best by more than chance.
    how: how a user chooses a model that is not the default.
    """
    best, *others = models
    chosen, why = best, "no model makes fewer errors"
    default = next((model for model in others if model.combination == DEFAULT), None)
    if default is not None and default.difference is not None:
        others.remove(default)
        difference = default.difference
        chosen = best if difference.is_worse else default
        mark = "significant: " if difference.makes_more_errors or difference.ranking else ""
        why = (
            f"the default makes {counted(default.errors, 'error')} and"
            f" {best.combination.name} {best.errors:,} ({mark}{difference.verdict})"
        )
    kind = chosen.combination
    name = f"the default, {kind.name}" if kind == DEFAULT else f"{kind.name}, with {how(kind)}"
    as_good = [m.combination.name for m in others if m.difference and not m.difference.is_worse]
    if len(as_good) > _NAMED:
        as_good[_NAMED:] = [f"{len(as_good) - _NAMED:,} more"]
    rest = f"not significantly worse: {', '.join(as_good)}" if as_good else "the others are worse"
    return f"Take {name}: {why}{f'; {rest}' if others else ''}."
