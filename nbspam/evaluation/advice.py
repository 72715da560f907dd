"""Which model to take after a comparison, in plain words."""

from collections.abc import Callable, Sequence

from nbspam.errors import counted
from nbspam.evaluation.comparison import DEFAULT, Combination, Compared, Comparison, Difference

_NAMED = 3  # models that are named of those that are as good


def advice(comparison: Comparison, how: Callable[[Combination], str]) -> str:
    """Return a sentence: which model to take, why, and which others are as good.

    The default, unless it is worse than the best by more than chance.
    how: how a user chooses a model that is not the default.
    """
    best, *others = comparison.models
    default = next((m for m in others if m.combination == DEFAULT), None)
    if best.combination == DEFAULT:
        taken = f"Take the default, {DEFAULT.name}: {_fewest_errors(best, others)}"
    elif default is not None and default.difference and not default.difference.is_worse:
        taken = _though_not_first(default, default.difference, best)
    else:
        kind = best.combination
        why = f"it makes {_better_than(default, best)}" if default else _fewest_errors(best, others)
        taken = f"Take {kind.name}, with {how(kind)}: {why}"
    return f"{taken}{_of_the_others([m for m in others if m is not default])}."


def _though_not_first(default: Compared, difference: Difference, best: Compared) -> str:
    """Return why to take the default, which is not the first and not worse for sure."""
    fewer = default.errors - best.errors
    if not fewer:
        return f"Take the default, {DEFAULT.name}: no model makes fewer errors"
    errors = "error" if fewer == 1 else "errors"
    name = best.combination.name
    said = f"Take the default, {DEFAULT.name}: {name} makes {fewer:,} fewer {errors}"
    if difference.makes_more_errors:
        said += ", which is not chance"
    else:
        said += ", which may be chance"
    if difference.ranks_better:
        said += ", and the default ranks better, which is not chance"
    return said


def _fewest_errors(best: Compared, others: Sequence[Compared]) -> str:
    """Return what is so of the errors of the best, which others may make as few of."""
    if any(other.errors <= best.errors for other in others):
        return "no model makes fewer errors"
    return "it makes the fewest errors"


def _better_than(default: Compared, best: Compared) -> str:
    """Return in what the best is better than the default."""
    if default.difference is None:
        return "the fewest errors"
    ranks = "and ranks better than it, which is not chance"
    if default.errors == best.errors:
        return f"as few errors as the default, {ranks}"
    said = f"the fewest errors, {best.errors:,} where the default makes {default.errors:,}"
    return f"{said}, {'which is not chance' if default.difference.makes_more_errors else ranks}"


def _of_the_others(others: Sequence[Compared]) -> str:
    """Return which of the other models are as good as the best."""
    as_good = [m.combination.name for m in others if m.difference and not m.difference.is_worse]
    if not others:
        return ""
    if not as_good:
        return "; the others are worse, by more than chance"
    if len(as_good) == len(others):
        return "; no other model is worse by more than chance"
    return f"; {_listed(as_good)} cannot be told from the best by these messages"


def _listed(names: Sequence[str]) -> str:
    *first, last = names
    if len(names) > _NAMED:
        first, last = list(names[:_NAMED]), counted(len(names) - _NAMED, "other")
    return f"{', '.join(first)} and {last}" if first else last
