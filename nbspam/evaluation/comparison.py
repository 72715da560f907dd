"""Compare kinds of naive Bayes on the same messages: figures, significant differences, advice.

One protocol tests every combination of an event model, a trait model and a scoring rule on the same
messages.  Each model is compared with the best model: does it make significantly more errors
(McNemar's exact test), and does it rank significantly worse (1-ROCA%, DeLong's paired test)?  Equal
models differ "significantly" by chance in one of twenty comparisons, so the p-values are corrected
by Holm's method.  The best model is chosen on the same messages, so the p-values are
still somewhat too small.  `advice` says which model to take.
"""

import json
import math
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from nbspam.bayes.event_model import BERNOULLI, EVENT_MODELS, NO_TOKENS, event_model
from nbspam.bayes.trait_model import GAUSSIAN, KERNEL, NO_TRAITS, TRAIT_MODELS, Variances
from nbspam.errors import OptionError, format_count
from nbspam.evaluation import metrics
from nbspam.evaluation.metrics import Interval, ScoredMessages, Z
from nbspam.evaluation.results import Evaluation, Results, compute
from nbspam.learning.settings import HAS_PRIOR, TrainingSettings
from nbspam.scoring.verdict import rounded
from nbspam.store.metadata import EVIDENCE, SCORINGS
from nbspam.tokens.tokenized import TokenizerOutputs

ALL = "all"
SIGNIFICANT_BELOW = 0.05  # a smaller p-value means a difference
_MAX_NAMED = 3  # models that advice names as equally good
_MIN_TO_TEST_RANKING = 10  # messages of each class, because DeLong's test assumes many
ALL_NUMBERS = TokenizerOutputs(times=True, traits=True)


class Combination(NamedTuple):
    """One kind of naive Bayes."""

    event_model: str
    traits: str
    scoring: str

    @property
    def name(self) -> str:
        """The name in a comparison: `bernoulli+kernel:evidence`."""
        parts = [p for p in (self.event_model, self.traits) if p not in (NO_TOKENS, NO_TRAITS)]
        return f"{'+'.join(parts)}:{self.scoring}"

    def settings(self, options: TrainingSettings) -> TrainingSettings:
        """Return settings for this kind of model, with the user's other options."""
        variances = options.variances if self.traits == GAUSSIAN else Variances()
        return options._replace(**self._asdict(), variances=variances)


DEFAULT = Combination(BERNOULLI, KERNEL, EVIDENCE)


def combinations(options: TrainingSettings) -> list[Combination]:
    """Return every combination that makes sense.

    It leaves out models without tokens and traits, event models without a prior if the user fixed
    the prior, and the complement model with the evidence rule, because with that rule it equals the
    multinomial model.
    """
    is_learned = options.prior is None
    kinds = (Combination(e, t, s) for s in SCORINGS for e in EVENT_MODELS for t in TRAIT_MODELS)
    return [
        c
        for c in kinds
        if (c.event_model, c.traits) != (NO_TOKENS, NO_TRAITS)
        and (event_model(c.event_model).has_prior or (is_learned and not HAS_PRIOR[c.scoring]))
    ]


def parse_combinations(names: str, options: TrainingSettings) -> list[Combination]:
    """Return the named combinations and the default; raises OptionError for an unknown name.

    names: `all`, or names with commas between: EVENT_MODEL, +TRAITS or both, then :SCORING; a name
    without a scoring means both scorings.
    """
    known = {c.name: c for c in combinations(options)}
    selected = {DEFAULT.name}
    for name in names.split(","):
        matches = {n for n in known if name in (ALL, n, n.partition(":")[0])}
        if not matches:
            raise OptionError(
                f"{name!r} is not a kind of naive Bayes; choose all, or some of {', '.join(known)}"
            )
        selected |= matches
    if len(selected) < 2:
        raise OptionError("the default is compared with others; name one or more, or all")
    return [combination for n, combination in known.items() if n in selected]


class Difference(NamedTuple):
    """How a model differs from the best model."""

    only_this_wrong: int  # messages that only this model gets wrong
    only_best_wrong: int  # messages that only the best model gets wrong
    errors_p: float  # McNemar's exact test, corrected by Holm's method
    roca: float | None = None  # 1-ROCA% minus the best model's; None without a spam class
    roca_interval: Interval | None = None  # 95 %
    roca_p: float | None = None  # DeLong's test, corrected by Holm's method

    @property
    def makes_more_errors(self) -> bool:
        """Whether the model makes significantly more errors."""
        return self.errors_p < SIGNIFICANT_BELOW and self.only_this_wrong > self.only_best_wrong

    @property
    def ranking(self) -> int:
        """1 if the model ranks significantly worse, -1 if better, else 0."""
        if self.roca is None or self.roca_p is None or self.roca_p >= SIGNIFICANT_BELOW:
            return 0
        return (self.roca > 0) - (self.roca < 0)

    @property
    def is_worse(self) -> bool:
        """Whether errors or ranking are significantly worse, and neither is better."""
        return self.ranking > 0 or (self.makes_more_errors and not self.ranking)

    @property
    def verdict(self) -> str:
        """The significant differences, in words."""
        errors = "more errors" if self.makes_more_errors else ""
        ranking = ("", "ranks worse", "ranks better")[self.ranking]
        return ", ".join(filter(None, (errors, ranking))) or "not significant"


class ComparedModel(NamedTuple):
    """A model of the comparison."""

    combination: Combination
    results: Results
    seconds: float
    difference: Difference | None = None  # None for the best model

    @property
    def messages(self) -> ScoredMessages:
        """The messages with the model's scores."""
        return self.results.messages

    @property
    def errors(self) -> int:
        """How many messages the model assigns to a wrong class (`Outcome.assigned_class`)."""
        return self.messages.counts.errors

    def as_json(self) -> dict[str, Any]:
        """Return all figures, and the difference from the best model."""
        differences = "only_this_wrong only_best_wrong mcnemar_p_holm one_minus_roca_pct_less_best"
        keys = f"{differences} one_minus_roca_pct_less_best_ci delong_p_holm".split()
        values = self.difference or (None,) * len(keys)
        return {
            "name": self.combination.name,
            **self.combination._asdict(),
            "is_default": self.combination == DEFAULT,
            **self.results.figures.as_json(),
            "seconds": self.seconds,
            **dict(zip(keys, values, strict=True)),
        }


def title_of(models: Sequence[ComparedModel]) -> str:
    """Name the number of models, the messages and the protocol."""
    messages, protocol = models[0].messages, models[0].results.evaluation.protocol
    n_spam = f" ({messages.counts.spam:,} spam)" if messages.has_spam_class else ""
    n = format_count(messages.counts.messages, "message")
    return f"{format_count(len(models), 'model')} on {n}{n_spam}, {protocol}"


def as_json(models: Sequence[ComparedModel], advice: str) -> str:
    """Format a comparison as a JSON object."""
    results = models[0].results
    fields = {
        "protocol": results.evaluation.protocol,
        "skipped": results.evaluation.skipped,
        "mislabelled": results.evaluation.mislabelled.messages,
        "duplicates": results.evaluation.duplicates,
        "models": [model.as_json() for model in models],
        "advice": advice,
    }
    return json.dumps(rounded(fields), indent=1)


def compare(
    combinations: Iterable[Combination],
    options: TrainingSettings,
    protocol: Callable[[TrainingSettings], Evaluation],
) -> list[ComparedModel]:
    """Test all combinations on the same messages; return the models, the best model first.

    options: the user's other settings.  protocol: tests a model.
    Raises NbspamError if the protocol does.
    """
    models = []
    for combination in combinations:
        start = time.perf_counter()
        evaluation = protocol(combination.settings(options))
        seconds = time.perf_counter() - start
        models.append(ComparedModel(combination, compute(evaluation), seconds))
    best, *others = sorted(models, key=_rank)
    differences = zip(others, _differences(best, others), strict=True)
    return [best, *(model._replace(difference=d) for model, d in differences)]


def _rank(model: ComparedModel) -> tuple[float, ...]:
    figures = model.results.figures.values
    known = (figures[key] or 0.0 for key in ("one_minus_roca_pct", "log_loss"))
    return model.errors, *known, model.combination != DEFAULT


def _differences(best: ComparedModel, others: Sequence[ComparedModel]) -> list[Difference]:
    """Return the difference between each other model and the best model."""
    right, counts = best.messages.right, best.messages.counts
    wrong = [~model.messages.right for model in others]
    pairs = [(int((errors & right).sum()), int((~errors & ~right).sum())) for errors in wrong]
    errors_p = holm([mcnemar_p(*pair) for pair in pairs])
    differences = [Difference(*pair, p) for pair, p in zip(pairs, errors_p, strict=True)]
    if not best.messages.has_spam_class or not 0 < counts.spam < counts.messages:
        return differences
    areas = [_area_difference(model.messages, best.messages) for model in others]
    too_few = min(counts.spam, counts.ham) < _MIN_TO_TEST_RANKING
    roca_p = holm([1.0 if too_few else normal_p(roca, error) for roca, error in areas])
    return [
        difference._replace(roca=roca, roca_interval=(roca - Z * error, roca + Z * error), roca_p=p)
        for difference, (roca, error), p in zip(differences, areas, roca_p, strict=True)
    ]


def _area_difference(messages: ScoredMessages, best: ScoredMessages) -> tuple[float, float]:
    """Return 1-ROCA% minus the best model's, and the standard error (DeLong et al. 1988)."""
    pairs = zip(metrics.placements(best), metrics.placements(messages), strict=True)
    spam, ham = (100 * (best_places - places) for best_places, places in pairs)
    error = metrics.mean_variance(spam, ham) ** 0.5 if min(len(spam), len(ham)) > 1 else 0.0
    return float(spam.mean()), error


def normal_p(difference: float, error: float) -> float:
    """Return the two-sided p-value of a difference, given its standard error."""
    return math.erfc(abs(difference / error) / 2**0.5) if error else 1.0


def mcnemar_p(only_one: int, only_other: int) -> float:
    """Return the two-sided p-value of McNemar's exact test (1947).

    Each message that only one of two models gets wrong is a toss of a fair coin.  With n tosses and
    k on the rarer side, p = 2 Σ_{i ≤ k} C(n, i) / 2ⁿ, at most 1.  The sum has only integers, so it
    is exact.  Importing scipy.stats would take a second.
    """
    tosses, rarer = only_one + only_other, min(only_one, only_other)
    term = total = 1  # C(n, 0)
    for i in range(rarer):
        term = term * (tosses - i) // (i + 1)
        total += term
    return min(1.0, 2 * total / (1 << tosses))


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct p-values for the number of comparisons (Holm 1979); the order stays the same."""
    order, n = np.argsort(p_values, kind="stable"), len(p_values)
    adjusted = np.empty(n)
    sorted_values = np.array(p_values, float)[order] * np.arange(n, 0, -1)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(sorted_values))
    return adjusted.tolist()


def advice(models: Sequence[ComparedModel], command: Callable[[Combination], str]) -> str:
    """Return a sentence that names the model to take, the reason, and equally good models.

    models: the best model first; includes the default, which is advised unless it is significantly
        worse than the best model.
    command: returns the command that trains a model that is not the default.
    """
    best, *others = models
    chosen, why = best, "no model makes fewer errors"
    if best.combination != DEFAULT:
        default = next(model for model in others if model.combination == DEFAULT)
        others.remove(default)
        difference = default.difference or Difference(0, 0, 1.0)
        chosen = best if difference.is_worse else default
        mark = "significant: " if difference.makes_more_errors or difference.ranking else ""
        why = (
            f"the default makes {format_count(default.errors, 'error')} and"
            f" {best.combination.name} {best.errors:,} ({mark}{difference.verdict})"
        )
    kind = chosen.combination
    name = f"the default, {kind.name}" if kind == DEFAULT else f"{kind.name}, with {command(kind)}"
    as_good = [m.combination.name for m in others if m.difference and not m.difference.is_worse]
    if len(as_good) > _MAX_NAMED:
        as_good[_MAX_NAMED:] = [f"{len(as_good) - _MAX_NAMED:,} more"]
    rest = f"not significantly worse: {', '.join(as_good)}" if as_good else "the others are worse"
    return f"Take {name}: {why}{f'; {rest}' if others else ''}."
