"""The options of commands that learn or evaluate: sources with labels, and how to learn."""

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import click

from nbspam.bayes.event_model import BERNOULLI, EVENT_MODELS
from nbspam.bayes.trait_model import SMOOTHING, TRAIT_MODELS, Variances
from nbspam.cli.declared import READS, argument, option, section
from nbspam.cli.options import PROBABILITY, refuse_stdin_twice
from nbspam.errors import OptionError
from nbspam.labels import HAM, SPAM, normal_label
from nbspam.learning.settings import TrainingSettings
from nbspam.reading.message import RawMessage
from nbspam.reading.source import STDIN, ReadingOptions, Skipped, Skips
from nbspam.reading.sources import any_kind, labelled, unlabelled
from nbspam.store.metadata import EVIDENCE, SCORINGS, ModelSettings
from nbspam.urls import real_name

if TYPE_CHECKING:
    from nbspam.reading.cutting import Cutter, SourcePiece


@section("Sources")
class Sources(NamedTuple):
    """The labelled messages to read."""

    sources: tuple[str, ...] = argument(  # that carry their own labels
        "[SOURCE]...", nargs=-1, overrules="--lines"
    )
    spam: tuple[str, ...] = option("Read spam from SRC (repeatable).", "SRC", typed=READS)
    ham: tuple[str, ...] = option("Read ham from SRC (repeatable).", "SRC", typed=READS)
    label: tuple[str, ...] = option(
        "Read messages of the class NAME from SRC (repeatable).", "NAME=SRC", typed=READS
    )

    def names(self) -> list[str]:
        """Return the names of all sources; raises OptionError if one cannot be read twice."""
        pairs = [pair.partition("=")[2] for pair in self.label]
        names = [*self.sources, *self.spam, *self.ham, *pairs]
        refuse_stdin_twice(names)
        return names

    @property
    def may_have_two_classes(self) -> bool:
        """Whether not all messages are given the same label."""
        return bool(self.sources) or len({label for label, _ in self._named()}) > 1

    def names_without_labels(self) -> list[str]:
        """Return the names of all sources if none of them has labels of its own."""
        return [] if self.sources else self.names()

    def messages(self, reading: ReadingOptions, skips: Skips) -> Iterator[RawMessage]:
        """Return the messages, with labels; raises OptionError.

        First the sources that carry labels themselves, then --spam, --ham and --label, in order.
        """
        self.check()
        named = self._named()
        reading = self._each_as_itself(reading)
        return itertools.chain(
            *(labelled(source, reading, skips) for source in self.sources),
            *(unlabelled(source, label, reading, skips) for label, source in named),
        )

    def pieces(
        self, cutter: "Cutter", any_kind: bool = False
    ) -> "Iterator[SourcePiece | RawMessage | Skipped]":
        """Yield them cut into pieces, in the order of `messages`; raises OptionError.

        any_kind: the plain sources need no labels of their own.
        """
        from nbspam.reading.cutting import Asked

        self.check()
        named = self._named()
        cutter = cutter._replace(options=self._each_as_itself(cutter.options))
        own = [Asked(source, needs_labels=not any_kind) for source in self.sources]
        for asked in [*own, *(Asked(source, label, True) for label, source in named)]:
            yield from cutter.pieces(asked)

    def messages_of_any_kind(self, reading: ReadingOptions, skips: Skips) -> Iterator[RawMessage]:
        """Return the messages; those of the plain sources have a label only if they carry one."""
        named, reading = self._replace(sources=()), self._each_as_itself(reading)
        return itertools.chain(
            *(any_kind(source, reading, skips) for source in self.sources),
            named.messages(reading, skips) if named != Sources((), (), (), ()) else (),
        )

    def check(self) -> None:
        """Raise OptionError if there is no source."""
        if not (self.sources or self._named()):
            raise OptionError(
                "there is nothing to read; name a table or a folder, or use --spam and --ham"
            )

    def _each_as_itself(self, reading: ReadingOptions) -> ReadingOptions:
        """Return options by which a source that is inside another one is read only once."""
        labels = [(source, "") for source in self.sources]
        labels += [(source, label) for label, source in self._named()]
        if len(labels) < 2:
            return reading
        given = {real_name(source): label for source, label in labels if source != STDIN}
        return reading._replace(given={**reading.given, **given})

    def _named(self) -> list[tuple[str, str]]:
        """Return (label, source) of --spam, --ham and --label."""
        named = [(SPAM, source) for source in self.spam] + [(HAM, source) for source in self.ham]
        for pair in self.label:
            name, equals, source = pair.partition("=")
            if not (equals and normal_label(name) and source):
                raise OptionError(
                    f"--label {pair!r} is not NAME=SOURCE; try --label promo=promo.mbox"
                )
            named.append((normal_label(name), source))
        return named


_VARIANCES = "--variance-smoothing --variance-prior --shared-variance"  # of some kinds only


def _label(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Return a label as the model names its class."""
    return None if value is None else normal_label(value)


@section("Model")
class Learning(NamedTuple):
    """How to learn; None is the default."""

    event_model: str | None = option(
        "How tokens are counted: once a message, present or absent; as often as they occur; by the"
        " complement of the class; not at all. [default: bernoulli]",
        takes=click.Choice(EVENT_MODELS),
        overrules="--prior --base",
    )
    traits: str | None = option(
        "How a message's numbers (its length, digits, capitals …) are modelled. [default: kernel;"
        " sum none]",
        takes=click.Choice(TRAIT_MODELS),
        overrules=f"{_VARIANCES} --base",
    )
    scoring: str | None = option(
        "Combine and calibrate the weights as evidence, or take the textbook's plain sum."
        " [default: evidence]",
        takes=click.Choice(SCORINGS),
        overrules=f"{_VARIANCES} --prior --base",
    )
    alpha: float | None = option(
        "Set the additive (Laplace) smoothing, above 0. [default: 0.05; sum 0.1]", "A"
    )
    prior: float | None = option(
        "Fix the prior probability of spam, between 0 and 1. [default: the share learned]",
        "P",
        takes=PROBABILITY,
    )
    variance_smoothing: float | None = option(
        "Gaussian traits: add this share of the largest variance to each. [default: 1e-9]", "E"
    )
    variance_prior: float | None = option(
        "Gaussian traits: let the variance over all classes weigh as much as N messages."
        " [default: 0]",
        "N",
    )
    shared_variance: bool | None = option(
        "Gaussian traits: use one variance for all classes.", default=None
    )
    spam_label: str | None = option(  # as the model names it
        "Count this class as spam, if none is called spam.", "NAME", callback=_label
    )

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
