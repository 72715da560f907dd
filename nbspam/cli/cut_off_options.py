"""The options of where spam begins and ham ends."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import click

from nbspam.cli.options import PROBABILITY, Decorator, gathered
from nbspam.errors import OptionError
from nbspam.scoring.verdict import CutOffs
from nbspam.store.metadata import Metadata

_CLASSES_NAMED = 10  # in an error


class Cutting(NamedTuple):
    """Where spam begins and ham ends; None is the model's own."""

    spam_cutoff: float | None
    ham_cutoff: float | None
    ham_cost: float | None
    from_file: frozenset[str] = frozenset()  # the names of those that a config file set

    @property
    def is_given(self) -> bool:
        """Whether one of them was given."""
        return any(value is not None for value in self[:3])

    def check(self) -> None:
        """Raise OptionError for what is wrong with any model."""
        # A ham cut-off above the model's spam cut-off is wrong only for that model.
        CutOffs(1.0, 0.0).changed(*self[:3])

    def of(self, metadata: Metadata) -> CutOffs:
        """Return the cut-offs for a model; raises OptionError."""
        classes = metadata.settings.classes
        self.check_classes(classes)
        own = CutOffs.of_model(metadata)
        return own if len(classes) > 2 else own.changed(*self[:3])

    def check_limit(self, max_ham_blocked: str | None) -> None:
        """Raise OptionError for a limit on blocked ham, which finds cut-offs, beside cut-offs."""
        if max_ham_blocked is not None and self.is_given:
            raise OptionError(
                "--max-ham-blocked finds the cut-offs; leave out --spam-cutoff, --ham-cutoff and"
                " --ham-cost"
            )

    def check_classes(self, classes: Sequence[str]) -> None:
        """Raise OptionError for a model that has no use for them; a config file's are ignored."""
        if len(classes) > 2 and self.is_given and not self.from_file:
            named = ", ".join(map(repr, classes[:_CLASSES_NAMED]))
            more = ", …" if len(classes) > _CLASSES_NAMED else ""
            raise OptionError(
                f"the model has {len(classes)} classes ({named}{more}) and its verdict is the most"
                " probable one; leave out the cut-offs, or correct the labels if one of them is a"
                " mistake"
            )

    def of_new(self) -> CutOffs:
        """Return the cut-offs for a model that is yet to be trained; raises OptionError."""
        return CutOffs().changed(*self[:3])


cut_off_options: Decorator[Any] = gathered(
    "cutting",
    Cutting,
    click.option(
        "--spam-cutoff",
        type=PROBABILITY,
        metavar="P",
        help="Classify as spam when P(spam) > P. [default: the model's, 0.9 unless it was set]",
    ),
    click.option(
        "--ham-cutoff",
        type=PROBABILITY,
        metavar="P",
        help="Classify as ham when P(spam) <= P, and as unsure in between. [default: the model's,"
        " 0.5 unless it was set]",
    ),
    click.option(
        "--ham-cost",
        type=float,
        metavar="L",
        help="Set the cost of a false positive relative to a false negative; both cut-offs are then"
        " L/(1+L).",
    ),
)


def max_ham_blocked_option(what: str) -> Decorator[Any]:
    """Return the option --max-ham-blocked; what: what it does, the first words of its help."""
    return click.option(
        "--max-ham-blocked",
        metavar="P%",
        help=f"{what} that blocks at most this share of ham.",
    )


def ham_limit(text: str | None) -> float | None:
    """Return the share that --max-ham-blocked means, 0.1% or 0.001; raises OptionError."""
    if text is None:
        return None
    try:
        share = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        share = math.nan
    if not 0 <= share < 1:
        raise OptionError(f"--max-ham-blocked {text!r} must be in [0, 1); try 0.1% or 0.001")
    return share
