"""The settings of learning, and the metadata of a model that has learned nothing yet."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from nbspam.bayes.calibration import prior_calibrations
from nbspam.bayes.event_model import BERNOULLI, EVENT_MODELS, event_model
from nbspam.bayes.trait_model import GAUSSIAN, KERNEL, NO_TRAITS, TRAIT_MODELS, Variances
from nbspam.errors import OptionError, Remedy, TrainingError
from nbspam.names import HAM, SPAM, UNSURE, answer_label, binary_label, cell_label
from nbspam.store import metadata
from nbspam.store.metadata import Metadata, ModelSettings, TokenStatistics, TraitHistograms
from nbspam.tokens.tokenized import TokenizerOutputs

if TYPE_CHECKING:
    from nbspam.scoring.base import Base

# For sums, 0.1 was chosen by leave-one-out on the training half of P1: 10 errors in 1,674 messages,
# against 18 with 0.3 and 34 with 1.  For the evidence rule see docs/research/ideas-tried.md.
DEFAULT_ALPHA = {metadata.SUM: 0.1, metadata.EVIDENCE: 0.05}
# The textbook's sum uses only tokens.
DEFAULT_TRAITS = {metadata.SUM: NO_TRAITS, metadata.EVIDENCE: KERNEL}
# Whether the score has a prior whatever the event model; under the sum, only some models have one.
HAS_PRIOR = {metadata.SUM: False, metadata.EVIDENCE: True}
CLASSES_LIMIT = 100  # more labels are probably texts; time and memory grow with each class


class TrainingSettings(NamedTuple):
    """The user's choices about learning; None is the default."""

    alpha: float | None = None  # the default depends on the scoring
    prior: float | None = None  # learned from the messages
    scoring: str = metadata.EVIDENCE
    positive: str | None = None  # the class called spam
    event_model: str = BERNOULLI
    traits: str | None = None  # the default depends on the scoring
    variances: Variances = Variances()
    base: "Base | None" = None  # the model whose counts are added

    @property
    def effective_traits(self) -> str:
        """The trait model to use."""
        if self.base is not None and self.traits is None:
            return self.base.metadata.settings.traits
        return DEFAULT_TRAITS[self.scoring] if self.traits is None else self.traits

    @property
    def outputs(self) -> TokenizerOutputs:
        """The extras that the model will count in addition to a message's tokens."""
        repeats = event_model(self.event_model).counts_repeats
        return TokenizerOutputs(times=repeats, traits=self.effective_traits != NO_TRAITS)

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
                f"the {self.event_model} model has no prior with the scoring sum; leave the prior"
                " out"
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

    The order is alphabetical; but with two classes, the positive class is last: index 1 is spam.
    If the classes are 0 and 1, or false and true, the second class is spam unless `positive` names
    another.
    """
    classes = sorted(set(labels))
    if SPAM in classes and positive not in classes and answer_label(positive or SPAM) == SPAM:
        # `positive` may be 1: the messages of a column is_spam, with 1 for spam, are labelled spam
        positive = SPAM
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

        # The label that looks like "yes, it is spam" is named first.
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
    """Return the metadata of a model with these classes and without messages."""
    alpha, prior, scoring, _, event_model, _, variances, _ = settings
    alpha, traits = DEFAULT_ALPHA[scoring] if alpha is None else alpha, settings.effective_traits
    chosen = ModelSettings(classes, positive, alpha, prior, scoring, event_model, traits, variances)
    calibrations = (prior_calibrations(chosen.has_traits),) * len(chosen.scored_classes)
    return Metadata(chosen, metadata.empty_state(chosen, calibrations))


def counted_metadata(
    empty: Metadata, messages: Mapping[str, int], tokens: TokenStatistics, traits: TraitHistograms
) -> Metadata:
    """Return the metadata of a counted corpus, not calibrated yet.

    messages: the number of messages with each label.  tokens, traits: histograms, sorted by value,
    which is the order of summation.
    """
    histograms, hosts, domains = tokens
    learned = empty.learned._replace(
        calibrated_by=metadata.TRAINING,
        messages=tuple(messages[name] for name in empty.settings.classes),
        count_histograms=histograms,
        host_rows=dict(sorted(hosts.items())),
        domain_rows=dict(sorted(domains.items())),
        trait_histograms=traits,
    )
    return empty._replace(learned=learned)


def first_metadata(labels: Iterable[str], settings: TrainingSettings) -> Metadata:
    """Return the metadata of a new model for messages with these labels.

    With one label, ham and spam are added as classes.
    With a base, a setting that the user has not chosen is the base's; `Base.check` may refuse a
    chosen one.
    Raises TrainingError.
    """
    if settings.base is None:
        names = set(labels) | (set() if settings.positive is None else {settings.positive})
        if len(names) < 2:
            names = {*labels, HAM, settings.positive or SPAM}
        return empty_metadata(*class_names(names, settings.positive), settings)
    first = settings.base.empty_personal_model()
    chosen_names = ("alpha", "prior", "scoring", "positive", "event_model", "traits")
    values = {name: getattr(settings, name) for name in chosen_names}
    chosen = {name: value for name, value in values.items() if value is not None}
    return first._replace(settings=first.settings._replace(**chosen))
