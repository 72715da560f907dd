"""The settings of learning, and the metadata of a model that has learned nothing yet."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from nbspam.bayes.calibration import untrained_calibrations
from nbspam.bayes.event_model import BERNOULLI, EVENT_MODELS, Row, event_model
from nbspam.bayes.trait_model import GAUSSIAN, KERNEL, NO_TRAITS, TRAIT_MODELS, Variances
from nbspam.errors import OptionError, Remedy, TrainingError
from nbspam.names import HAM, SPAM, UNSURE, answer_label, binary_label, cell_label
from nbspam.store import metadata
from nbspam.store.metadata import Counted, Metadata, ModelSettings, TraitHistograms
from nbspam.tokens.tokenized import Wanted

if TYPE_CHECKING:
    from nbspam.scoring.base import Base

# Sum: chosen on the training half of P1 by leave-one-out, 10 errors of 1,674 against 18 and 34 for
# 0.3 and 1.  Evidence: docs/research/ideas-tried.md.
DEFAULT_ALPHA = {metadata.SUM: 0.1, metadata.EVIDENCE: 0.05}
# The textbook's sum is of the tokens alone.  Evidence: docs/research/ideas-tried.md.
DEFAULT_TRAITS = {metadata.SUM: NO_TRAITS, metadata.EVIDENCE: KERNEL}
# Whether the prior has a part in the score whatever the event model.
HAS_PRIOR = {metadata.SUM: False, metadata.EVIDENCE: True}
CLASSES_LIMIT = 100  # with more, texts were taken for labels; time and memory grow with each


class TrainingSettings(NamedTuple):
    """The user's choices about learning; None is the default."""

    alpha: float | None = None  # the default depends on the scoring
    prior: float | None = None  # learned from the messages
    scoring: str = metadata.EVIDENCE
    positive: str | None = None  # the class called spam
    event_model: str = BERNOULLI
    traits: str | None = None  # the default depends on the scoring
    variances: Variances = Variances()
    base: "Base | None" = None  # the model that the learning one is read through

    @property
    def effective_traits(self) -> str:
        """The trait model to use."""
        if self.base is not None and self.traits is None:
            return self.base.metadata.settings.traits
        return DEFAULT_TRAITS[self.scoring] if self.traits is None else self.traits

    @property
    def wanted(self) -> Wanted:
        """The numbers that the model will count beside the tokens of a message."""
        repeats = event_model(self.event_model).repeats
        return Wanted(times=repeats, traits=self.effective_traits != NO_TRAITS)

    def check(self) -> None:
        """Raise OptionError for a value that is out of bounds."""
        if self.alpha is not None and not (
            hasattr(self.alpha, "__float__")
            and metadata.ALPHA_MIN <= self.alpha <= metadata.ALPHA_LIMIT
        ):
            raise OptionError(
                f"alpha must be above 0 and at most {metadata.ALPHA_LIMIT:g}, not {self.alpha}:"
                " without smoothing one unseen word would decide everything; leave it out for the"
                " default"
            )
        if self.prior is not None and not (hasattr(self.prior, "__float__") and 0 < self.prior < 1):
            raise OptionError(
                f"the prior must be between 0 and 1, not {self.prior}; leave it out to learn it"
            )
        for setting, value, known in (
            ("scoring", self.scoring, metadata.SCORINGS),
            ("event model", self.event_model, EVENT_MODELS),
            ("trait model", NO_TRAITS if self.traits is None else self.traits, TRAIT_MODELS),
        ):
            if value not in known:
                raise OptionError(
                    f"the {setting} must be one of {', '.join(known)}, not {value!r}; leave it"
                    " out for the default"
                )
        counts = event_model(self.event_model)
        if not counts.has_tokens and self.effective_traits == NO_TRAITS:
            raise OptionError(
                "without tokens and without traits there is nothing to learn from; choose an event"
                " model, or Gaussian or kernel traits"
            )
        if self.prior is not None and not (counts.has_prior or HAS_PRIOR[self.scoring]):
            raise OptionError(
                f"the {self.event_model} model has no prior under the sum; leave the prior out"
            )
        smoothing, prior, _ = self.variances
        if self.variances != Variances() and self.effective_traits != GAUSSIAN:
            raise OptionError(
                "variances need Gaussian traits; choose those, or leave variance smoothing,"
                " variance prior and shared variance out"
            )
        for name, weight, unit, default in (
            ("variance smoothing", smoothing, "", "the default"),
            ("weight of the variance prior", prior, " messages", "none"),
        ):
            if not 0 <= weight <= metadata.ALPHA_LIMIT:
                raise OptionError(
                    f"the {name} must be from 0 to {metadata.ALPHA_LIMIT:g}{unit}, not {weight};"
                    f" leave it out for {default}"
                )


def class_names(labels: Iterable[str], positive: str | None) -> tuple[tuple[str, ...], str | None]:
    """Return the classes in their order, and the positive one; raises TrainingError.

    The order is alphabetical, with the positive class last of two: index 1 is spam.
    Of 0 and 1, and of false and true, spam is the second unless another is named.
    """
    classes = sorted(set(labels))
    if SPAM in classes and positive not in classes and answer_label(positive or SPAM) == SPAM:
        positive = SPAM  # also for the 1 of a column called is_spam: its messages are spam
    if len(classes) < 2:
        only = f"only the class {classes[0]!r}" if classes else "no message"
        raise TrainingError(f"there is {only} to learn from", Remedy.GIVE_TWO_CLASSES)
    if UNSURE in classes:
        raise TrainingError(f"a class cannot be called {UNSURE!r}, which is a verdict; rename it")
    if len(classes) > CLASSES_LIMIT:
        raise TrainingError(
            f"there are {len(classes)} different labels, such as {classes[0][:40]!r}, and a model"
            f" has at most {CLASSES_LIMIT} classes",
            Remedy.NAME_LABEL_COLUMN,
        )
    names = ", ".join(map(repr, classes[:20]))
    if positive is not None and positive not in classes:
        means_ham = ", which in a column called spam means ham" * (answer_label(positive) == HAM)
        raise TrainingError(f"no message is labelled {positive!r}{means_ham}; name one of {names}")
    if positive is None and {*map(binary_label, classes)} == {SPAM, HAM}:
        positive = next(name for name in classes if binary_label(name) == SPAM)
    if positive is None and len(classes) == 2:
        from shlex import quote  # for errors only

        # What an answer to "is it spam?" would be is named first.
        first, second = map(quote, sorted(classes, key=lambda name: cell_label(name) != SPAM))
        raise TrainingError(
            f"neither {classes[0]!r} nor {classes[1]!r} is called spam",
            Remedy.NAME_ONE_AS_SPAM,
            first=first,
            second=second,
        )
    if len(classes) == 2:
        classes.sort(key=lambda name: name == positive)
    return tuple(classes), positive


def empty_metadata(
    classes: tuple[str, ...], positive: str | None, settings: TrainingSettings
) -> Metadata:
    """Return the metadata of a model of these classes that has learned nothing yet."""
    alpha, prior, scoring, _, event_model, _, variances, _ = settings
    alpha, traits = DEFAULT_ALPHA[scoring] if alpha is None else alpha, settings.effective_traits
    chosen = ModelSettings(classes, positive, alpha, prior, scoring, event_model, traits, variances)
    calibrations = (untrained_calibrations(chosen.has_traits),) * len(chosen.scored_classes)
    return Metadata(chosen, metadata.empty_state(chosen, calibrations))


def counted_metadata(
    empty: Metadata,
    messages: Mapping[str, int],
    tokens: Iterable[Counted],
    traits: Iterable[tuple[Iterable[str], TraitHistograms]],
) -> Metadata:
    """Return the metadata of a counted corpus, not calibrated yet.

    messages: the number of each label.  tokens: histograms of parts of the tokens.  traits: of
    parts of the messages, their labels, and histograms per trait and label.
    The results are sorted by key, the order in which they are summed.
    """
    classes = empty.settings.classes
    histograms, hosts = [Counter[int]() for _ in classes], Counter[Row]()
    for part_histograms, more_hosts in tokens:
        for counts, more in zip(histograms, part_histograms, strict=True):
            counts.update(more)
        hosts.update(more_hosts)
    of_traits = [[Counter[int]() for _ in classes] for _ in empty.learned.trait_histograms]
    for labels, of_part in traits:
        for sums, of_labels in zip(of_traits, of_part, strict=True):
            for label, values in zip(labels, of_labels, strict=True):
                sums[classes.index(label)].update(values)
    learned = empty.learned._replace(
        calibrated_by=metadata.TRAINING,
        messages=tuple(messages[name] for name in classes),
        count_histograms=tuple(dict(sorted(counts.items())) for counts in histograms),
        host_rows=dict(sorted(hosts.items())),
        trait_histograms=tuple(
            tuple(dict(sorted(values.items())) for values in of_trait) for of_trait in of_traits
        ),
    )
    return empty._replace(learned=learned)


def first_metadata(labels: Iterable[str], settings: TrainingSettings) -> Metadata:
    """Return the metadata of a new model for messages with these labels.

    One label is enough: the others are ham and spam then.
    With a base its settings hold, unless others were chosen, which `Base.check` may refuse.
    Raises TrainingError.
    """
    if settings.base is None:
        names = set(labels) | (set() if settings.positive is None else {settings.positive})
        if len(names) < 2:
            names = {*labels, HAM, settings.positive or SPAM}
        return empty_metadata(*class_names(names, settings.positive), settings)
    first = settings.base.first()
    chosen_names = ("alpha", "prior", "scoring", "positive", "event_model", "traits")
    values = {name: getattr(settings, name) for name in chosen_names}
    chosen = {name: value for name, value in values.items() if value is not None}
    return first._replace(settings=first.settings._replace(**chosen))
