"""From a score to a verdict: where spam begins and ham ends."""

import math
from typing import Any, NamedTuple

from nbspam.errors import OptionError
from nbspam.labels import UNSURE
from nbspam.scoring.classifier import Score, logit
from nbspam.store.metadata import Metadata


class CutOffs(NamedTuple):
    """Where spam begins and ham ends, as probabilities of the positive class."""

    spam: float = 0.5
    ham: float = 0.5

    @classmethod
    def of_options(
        cls,
        spam: float | None = None,
        ham: float | None = None,
        ham_cost: float | None = None,
        default: float = 0.5,
    ) -> "CutOffs":
        """Return the cut-offs that the options ask for; raises OptionError.

        ham_cost: how many times worse a lost ham is than a spam let through; the expected cost is
        least when spam begins at cost / (1 + cost).
        default: the model's own cut-off, for both where the options name neither.
        """
        if ham_cost is not None:
            if spam is not None or ham is not None:
                raise OptionError(
                    "--ham-cost sets the cut-offs; leave out --spam-cutoff and --ham-cutoff"
                )
            if not 0 < ham_cost < math.inf:
                raise OptionError(
                    f"--ham-cost must be above 0, not {ham_cost}; 9 is a careful choice"
                )
            spam = ham = ham_cost / (1 + ham_cost)
        if spam is None:
            spam = default
        if ham is None:
            ham = min(default, spam)
        for name, value in (("--spam-cutoff", spam), ("--ham-cutoff", ham)):
            if not 0 <= value <= 1:
                raise OptionError(
                    f"{name} must be between 0 and 1, not {value}; 0.5 is the default"
                )
        if ham > spam:
            raise OptionError(
                f"--ham-cutoff {ham:g} is above the spam cut-off, {spam:g}; lower it, or raise"
                " --spam-cutoff"
            )
        return cls(spam, ham)


def verdict(head: Metadata, score: Score, cut_offs: CutOffs) -> str:
    """Return the class of a message with this score, or `unsure`.

    Two classes: positive above the spam cut-off, negative up to the ham cut-off, else unsure.
    More: the most probable class.  Unsure as long as fewer than two classes have been seen.
    """
    if head.is_one_sided:
        return UNSURE
    if len(head.classes) > 2:
        best = max(range(len(head.classes)), key=score.probabilities.__getitem__)
        return head.classes[best]
    positive = head.positive_index or 0
    if score.log_odds > logit(cut_offs.spam):
        return head.classes[positive]
    if score.log_odds <= logit(cut_offs.ham):
        return head.classes[1 - positive]
    return UNSURE


def fields(classes: tuple[str, ...], called: str, score: Score) -> dict[str, Any]:
    """Return what every JSON output says of a scored message."""
    found: dict[str, Any] = {
        "verdict": called,
        "probability": score.probability,
        "log_odds": score.log_odds,
    }
    if len(classes) > 2:
        found["probabilities"] = dict(zip(classes, score.probabilities, strict=True))
    return found
