"""Options of how to learn."""

from typing import Any, NamedTuple

import click

from nbspam.bayes.event_model import BERNOULLI, EVENT_MODELS
from nbspam.bayes.trait_model import SMOOTHING, TRAIT_MODELS, Variances
from nbspam.cli.options import PROBABILITY, Decorator, gathered
from nbspam.labels import normal_label
from nbspam.learning.settings import TrainingSettings
from nbspam.store.metadata import EVIDENCE, SCORINGS, ModelSettings


class Learning(NamedTuple):
    """How to learn; None is the default."""

    event_model: str | None
    traits: str | None
    scoring: str | None
    alpha: float | None
    prior: float | None
    variance_smoothing: float | None
    variance_prior: float | None
    shared_variance: bool | None
    spam_label: str | None  # as the model names it

    @classmethod
    def of_model(cls, settings: ModelSettings) -> "Learning":
        """Return the options that a model was trained with."""
        return cls(
            event_model=settings.event_model,
            traits=settings.traits,
            scoring=settings.scoring,
            alpha=settings.alpha,
            prior=settings.prior,
            variance_smoothing=settings.variances.smoothing,
            variance_prior=settings.variances.prior,
            shared_variance=settings.variances.shared,
            spam_label=settings.positive,
        )

    def settings(self) -> TrainingSettings:
        """Return them as `learning` takes them; raises OptionError for a senseless value."""
        settings = self.unchecked()
        settings.check()
        return settings

    def unchecked(self) -> TrainingSettings:
        """Return them as `learning` takes them, for several kinds of models."""
        return TrainingSettings(
            alpha=self.alpha,
            prior=self.prior,
            scoring=self.scoring or EVIDENCE,
            event_model=self.event_model or BERNOULLI,
            traits=self.traits,
            variances=Variances(
                SMOOTHING if self.variance_smoothing is None else self.variance_smoothing,
                self.variance_prior or 0.0,
                bool(self.shared_variance),
            ),
            positive=self.spam_label,
        )

    def given(self) -> list[str]:
        """Return the names of the options that were given."""
        return [name for name, value in self._asdict().items() if value is not None]

    @staticmethod
    def option(name: str) -> str:
        """Return a field's option: `--spam-label`."""
        return f"--{name.replace('_', '-')}"


def _label(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Return a label as the model names its class."""
    return None if value is None else normal_label(value)


learning_options: Decorator[Any] = gathered(
    "learning",
    Learning,
    click.option(
        "--event-model",
        type=click.Choice(EVENT_MODELS),
        help="How tokens are counted: once a message, present or absent; as often as they occur;"
        " once a message, drawn as words; by the complement of the class; not at all."
        " [default: bernoulli]",
    ),
    click.option(
        "--traits",
        type=click.Choice(TRAIT_MODELS),
        help="How a message's numbers (its length, digits, capitals …) are modelled."
        " [default: kernel; sum none]",
    ),
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
        type=PROBABILITY,
        metavar="P",
        help="Fix the prior probability of spam, between 0 and 1. [default: the share learned]",
    ),
    click.option(
        "--variance-smoothing",
        type=float,
        metavar="E",
        help="Gaussian traits: add this share of the largest variance to each. [default: 1e-9]",
    ),
    click.option(
        "--variance-prior",
        type=float,
        metavar="N",
        help="Gaussian traits: let the variance over all classes weigh as much as N messages."
        " [default: 0]",
    ),
    click.option(
        "--shared-variance",
        is_flag=True,
        default=None,
        help="Gaussian traits: use one variance for all classes.",
    ),
    click.option(
        "--spam-label",
        metavar="NAME",
        callback=_label,
        help="Count this class as spam, if none is called spam.",
    ),
)
