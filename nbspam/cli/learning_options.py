"""Options of how to learn."""

from typing import Any, NamedTuple

import click

from nbspam.cli.options import Decorator, gathered
from nbspam.labels import normal_label
from nbspam.learning.settings import TrainingSettings
from nbspam.store.metadata import EVIDENCE, SCORINGS


class Learning(NamedTuple):
    """How to learn; None is the default."""

    scoring: str | None
    alpha: float | None
    prior: float | None
    spam_label: str | None

    def settings(self) -> TrainingSettings:
        """Return them as `learning` takes them; raises OptionError for a senseless value."""
        settings = TrainingSettings(
            alpha=self.alpha,
            prior=self.prior,
            scoring=self.scoring or EVIDENCE,
            positive=None if self.spam_label is None else normal_label(self.spam_label),
        )
        settings.check()
        return settings

    def given(self) -> list[str]:
        """Return the names of the options that were given."""
        return [name for name, value in self._asdict().items() if value is not None]

    @staticmethod
    def option(name: str) -> str:
        """Return a field's option: `--spam-label`."""
        return f"--{name.replace('_', '-')}"


learning_options: Decorator[Any] = gathered(
    "learning",
    Learning,
    click.option(
        "--scoring",
        type=click.Choice(SCORINGS),
        help="Combine and calibrate the weights as evidence, or take the textbook's plain sum."
        " [default: evidence]",
    ),
    click.option(
        "--alpha",
        type=float,
        metavar="A",
        help="Set the additive (Laplace) smoothing, above 0. [default: 0.05; sum 0.1]",
    ),
    click.option(
        "--prior",
        type=float,
        metavar="P",
        help="Fix the prior probability of spam, between 0 and 1. [default: the share learned]",
    ),
    click.option(
        "--spam-label", metavar="NAME", help="Count this class as spam, if none is called spam."
    ),
)
