"""The metadata of a model: everything in its file but the tokens and the ledger.

No larger than a mail, so it is read whole for every message; the tokens are not.  It has two parts,
what was chosen (`ModelSettings`) and what was learned (`LearnedState`); numbers that follow from
them, such as the bias, are computed when they are asked for and never kept beside them.
"""

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from nbspam.bayes.calibration import Calibrations, HostRow, Scale, scales, unconfoundedness
from nbspam.bayes.event_model import (
    BERNOULLI,
    EventModel,
    Histogram,
    Row,
    Size,
    event_model,
    log_priors,
)
from nbspam.bayes.trait_model import NO_TRAITS, Values, Variances
from nbspam.tokens.kinds import NAMES, is_host
from nbspam.tokens.tokenized import RULES, Wanted

N = TypeVar("N")

SUM = "sum"  # the textbook's rule: the sum of all weights, and its plain posterior
EVIDENCE = "evidence"  # features of the same weights, combined and calibrated
SCORINGS = (EVIDENCE, SUM)
# Where the calibration began; `update` refines it, whatever it was.
TRAINING = "training"  # fitted to every training message, each left out
MERGING = "merging"  # combined from the calibrations of the models that were merged
DEFAULT = "default"  # not fitted: the prior
BASE = "base"  # of the base that it is read through (`scoring/base.py`)
ORIGINS = (TRAINING, MERGING, DEFAULT, BASE)
# Above the limit every weight is 0; below the minimum logarithms run out of digits.
ALPHA_MIN, ALPHA_LIMIT = 1e-300, 1e6
MESSAGES_LIMIT = 2**53  # counts are exact in floating point up to here

# A lost ham is worse than a spam that is let through, and mail in between is delivered: at a spam
# cut-off of 0.5 from 0.5 to 2 % of ham was blocked, at 0.9 a third of that.
SPAM_CUTOFF, HAM_CUTOFF = 0.9, 0.5

# With fewer messages of a class than this a model is young: of P2's spam 40 % is not called spam by
# models of 20 messages of each class, 7 % by models of 100.
YOUNG = 100
HostRows = Mapping[tuple[int, ...], int]  # mails per class of a host -> how many hosts have them
_NO_HOSTS: HostRows = MappingProxyType({})
TraitHistograms = tuple[tuple[Values, ...], ...]  # per trait, in the order of TRAITS; per class


class ModelSettings(NamedTuple):
    """What was chosen when the model was made."""

    classes: tuple[str, ...]  # in the order of every list of counts
    positive: str | None  # the class that "probability" is of; None only with 3 or more
    alpha: float  # smoothing: pseudo-count of each outcome, in messages
    prior: float | None = None  # P(positive class) where the user fixed it
    scoring: str = EVIDENCE
    event_model: str = BERNOULLI
    traits: str = NO_TRAITS  # one of TRAIT_MODELS
    variances: Variances = Variances()  # of Gaussian traits
    # A message is spam above the one and ham up to the other, unless the user says otherwise.
    spam_cutoff: float = SPAM_CUTOFF
    ham_cutoff: float = HAM_CUTOFF
    rules: int = RULES  # of the tokenizer, when the model was made; never newer than the program's

    @property
    def positive_index(self) -> int | None:
        """The index of the positive class."""
        return None if self.positive is None else self.classes.index(self.positive)

    @property
    def scored_classes(self) -> tuple[int, ...]:
        """The classes that have a calibrated score: the positive one of two, each of more."""
        if len(self.classes) == 2:
            return (self.positive_index or 0,)
        return tuple(range(len(self.classes)))

    @property
    def counts(self) -> EventModel:
        """The event model: how tokens are counted."""
        return event_model(self.event_model)

    @property
    def has_traits(self) -> bool:
        """Whether traits are counted."""
        return self.traits != NO_TRAITS

    @property
    def scales(self) -> tuple[Scale, Scale]:
        """The features of its two calibrations."""
        return scales(self.has_traits)

    @property
    def wanted(self) -> Wanted:
        """The numbers that it counts beside the tokens of a message."""
        return Wanted(times=self.counts.repeats, traits=self.has_traits)


class LearnedState(NamedTuple):
    """What was learned, but for the tokens."""

    messages: tuple[int, ...]  # learned, per class
    count_histograms: tuple[Histogram, ...]  # of the tokens' counts, per class
    calibrations: tuple[Calibrations, ...]  # for each scored class
    calibrated_by: str = DEFAULT  # one of ORIGINS
    host_rows: HostRows = _NO_HOSTS  # of the hosts that took mails in
    trait_histograms: TraitHistograms = ()  # per trait and class; none in a model without traits
    recent: tuple[str, ...] = ()  # digests of the last messages that refined the calibrations

    def fewest(self, k: int) -> int:
        """Return how many messages class k has, or the others together if those are fewer."""
        return min(self.messages[k], sum(self.messages) - self.messages[k])


class Metadata(NamedTuple):
    """Everything a model says of itself."""

    settings: ModelSettings
    learned: LearnedState

    @property
    def n_tokens(self) -> int:
        """The size of the vocabulary."""
        return sum(self.learned.count_histograms[0].values())

    @property
    def is_one_sided(self) -> bool:
        """Whether fewer than two classes have a message yet: no basis for any verdict."""
        return sum(map(bool, self.learned.messages)) < 2

    def by_class(self, row: Sequence[N]) -> dict[str, N]:
        """Return the numbers of a row by the names of the classes."""
        return dict(zip(self.settings.classes, row, strict=True))

    @property
    def missing(self) -> dict[str, int]:
        """Class -> how many more messages of it a young model needs; empty once it is not young."""
        learned = self.by_class(self.learned.messages).items()
        return {name: math.ceil(YOUNG - n) for name, n in learned if n < YOUNG}

    @property
    def label_noise(self) -> float:
        """The share of the labels that looked wrong when the calibrations were fitted."""
        both = (pair for pairs in self.learned.calibrations for pair in pairs)
        return max((calibration.noise for calibration in both), default=0.0)

    @property
    def host_trust(self) -> tuple[float, float]:
        """How far the collecting hosts let headers be trusted, and the mails that this is from."""
        rows: list[HostRow] = list(self.learned.host_rows.items())
        return unconfoundedness(rows, self.learned.messages)

    @property
    def size(self) -> Size:
        """What the tokens' counts are counts of."""
        learned = self.learned
        return self.settings.counts.size(learned.count_histograms, learned.messages)

    @property
    def bias(self) -> tuple[float, ...]:
        """Log P(k) and the log-likelihood of a message without any token, per class, in nats."""
        settings, learned = self
        priors = log_priors(learned.messages, settings.prior, settings.positive_index)
        if not settings.counts.has_prior:
            priors = [p if p == -math.inf else 0.0 for p in priors]
        absent = settings.counts.bias(learned.count_histograms, learned.messages, settings.alpha)
        return tuple(map(math.fsum, zip(priors, absent, strict=True)))


def no_histograms(n_classes: int) -> TraitHistograms:
    """Return the histograms of no message."""
    return tuple(tuple({} for _ in range(n_classes)) for _ in NAMES)


def histograms_of(rows: Collection[Row], n_classes: int) -> tuple[Counter[int], ...]:
    """Return per class how many tokens have each count."""
    columns = zip(*rows, strict=True) if rows else [()] * n_classes
    return tuple(Counter(column) for column in columns)


def with_counts(metadata: Metadata, counts: Mapping[str, Row]) -> Metadata:
    """Return the metadata with what follows from the counts of all tokens."""
    learned = metadata.learned._replace(
        count_histograms=histograms_of(counts.values(), len(metadata.settings.classes)),
        host_rows=Counter(row for token, row in counts.items() if is_host(token)),
    )
    return metadata._replace(learned=learned)
