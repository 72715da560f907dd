"""The metadata of a model: everything in its file but the tokens and the ledger.

No larger than a mail, so it is read whole for every message; the tokens are not.  It has two parts,
what was chosen (`ModelSettings`) and what was learned (`LearnedState`); numbers that follow from
them, such as the bias, are computed when they are asked for and never kept beside them.

The file has it as JSON, which is read with nothing trusted.
"""

import json
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from nbspam.bayes.calibration import (
    Calibration,
    Calibrations,
    HostRow,
    Scale,
    is_positive_definite,
    scales,
    unconfoundedness,
)
from nbspam.bayes.event_model import (
    BERNOULLI,
    EVENT_MODELS,
    EventModel,
    Histogram,
    Row,
    Size,
    event_model,
    log_priors,
)
from nbspam.bayes.trait_model import NO_TRAITS, TRAIT_MODELS, Values, Variances
from nbspam.names import UNSURE, normal_label
from nbspam.tokens.kinds import NAMES, is_host
from nbspam.tokens.tokenized import NAME, RULES, Wanted

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
Counted = tuple[tuple[Histogram, ...], HostRows]  # of tokens: how many per class have each count
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


# As the model file has it

FORMAT = "nbspam-model"
VERSION = 1
_NATS_LIMIT = 1e15
_NUMBER_LIMIT = 1e300
_DIGITS, _HEX = 32, frozenset("0123456789abcdef")  # of a digest
_SHOWN = 40  # characters of a wrong value that an error shows
_HIGHEST = 1_000  # no trait's scale goes as far


def derived_fields(metadata: Metadata) -> dict[str, Any]:
    """Return what follows from the tokens' counts, as the file has it."""
    return {
        "tokens": metadata.n_tokens,
        "bias": [b if math.isfinite(b) else None for b in metadata.bias],
        "count_histograms": [
            {str(count): row[count] for count in sorted(row)}
            for row in metadata.learned.count_histograms
        ],
        "hosts": [[*row, hosts] for row, hosts in sorted(metadata.learned.host_rows.items())],
    }


def dump_metadata(metadata: Metadata) -> str:
    """Return the lines of the file that come before its tokens."""
    settings, learned = metadata
    fields = {
        "tokenizer": {"name": NAME, "rules": settings.rules},
        "event_model": settings.event_model,
        "traits": {
            "model": settings.traits,
            "variance_smoothing": settings.variances.smoothing,
            "variance_prior": settings.variances.prior,
            "shared_variance": settings.variances.shared,
            "histograms": dump_histograms(learned.trait_histograms, settings.classes),
        },
        "classes": settings.classes,
        "messages": learned.messages,
        "alpha": settings.alpha,
        "prior": settings.prior,
        "positive": settings.positive,
        "scoring": settings.scoring,
        "calibration": {
            settings.classes[k]: {name: own._asdict() for name, own in both._asdict().items()}
            for k, both in zip(settings.scored_classes, learned.calibrations, strict=True)
        },
        "calibrated_by": learned.calibrated_by,
        "recent": learned.recent,
        "spam_cutoff": settings.spam_cutoff,
        "ham_cutoff": settings.ham_cutoff,
        "derived": derived_fields(metadata),
    }
    lines = [f'{{"format": "{FORMAT}", "version": {VERSION},']
    lines += [f'"{key}": {json.dumps(value, ensure_ascii=False)},' for key, value in fields.items()]
    return "\n".join(lines) + "\n"


def dump_histograms(
    histograms: TraitHistograms, classes: Sequence[str]
) -> dict[str, dict[str, dict[str, object]]]:
    """Return the histograms as the file has them; {} of a model without traits.

        {"words": {"ham": {"lowest": 12, "counts": [1, 0, 3]}, "spam": …}, …}

    `counts` begins with how many messages have the lowest value, and ends with the highest's.
    """

    def dumped(values: Values) -> dict[str, object]:
        lowest, highest = min(values, default=0), max(values, default=-1)
        return {"lowest": lowest, "counts": [values.get(v, 0) for v in range(lowest, highest + 1)]}

    return {
        name: dict(zip(classes, map(dumped, row), strict=True))
        for name, row in zip(NAMES if histograms else (), histograms, strict=True)
    }


class MetadataError(ValueError):
    """The metadata cannot be used by this program; the text is a clause that says why."""


def load_metadata(fields: Any) -> Metadata:
    """Return the metadata in a model file's parsed JSON; raises MetadataError, trusts nothing.

    Counts of older tokenizer rules are good enough to go on with: most tokens are the same.
    """
    _check_format(fields)
    tokenizer = fields.get("tokenizer")
    named = tokenizer if isinstance(tokenizer, dict) else {}
    rules = named.get("rules")
    if named.get("name") != NAME or type(rules) is not int or rules < 1:
        raise MetadataError(
            f"was made with the tokenizer {shown(tokenizer)}, and this program has"
            f" {NAME!r} with rules {RULES}; train again, or take its counts with nbspam model"
            " export"
        )
    if rules > RULES:
        raise MetadataError(
            f"was made with tokenizer rules {shown(rules)}, newer than this program's {RULES};"
            " update nbspam"
        )
    try:
        settings = _load_settings(fields)._replace(rules=rules)
        return Metadata(settings, _load_learned(fields, settings))
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise _damage(error) from None


def load_counted(fields: Any) -> Metadata:
    """Return what the counts in a model file's parsed JSON are of; raises MetadataError.

    Enough to export them, whatever tokenizer, traits and calibration the model has.
    """
    _check_format(fields)
    try:
        messages, event_model = fields["messages"], fields["event_model"]
        classes = _load_classes(fields["classes"])
        _require(_are_counts(messages, len(classes)), "no message count per class")
        _require(event_model in EVENT_MODELS, f"an unknown event model {shown(event_model)}")
    except (KeyError, TypeError, ValueError) as error:
        raise _damage(error) from None
    settings = ModelSettings(classes, classes[-1], ALPHA_LIMIT, event_model=event_model)
    return Metadata(settings, LearnedState(tuple(messages), (), ()))


def _damage(error: Exception) -> MetadataError:
    reason = f"no {shown(error.args[0])}" if isinstance(error, KeyError) else str(error)
    return MetadataError(f"is damaged: it has {reason}; restore it from a copy or train again")


def _check_format(fields: Any) -> None:
    """Raise MetadataError unless it is a model of a version that this program can read."""
    if not isinstance(fields, dict) or fields.get("format") != FORMAT:
        raise MetadataError("is not an nbspam model; name a file that nbspam train wrote")
    version = fields.get("version")
    if type(version) is not int or version < 1:
        raise MetadataError("has no valid version; restore it from a copy or train again")
    if version > VERSION:
        raise MetadataError(
            f"has version {shown(version)}, newer than this program's {VERSION}; update nbspam"
        )


def _load_classes(classes: Any) -> tuple[str, ...]:
    _require(
        isinstance(classes, list)
        and 2 <= len(set(map(str, classes))) == len(classes)
        # A line end in a name would add a header of its own to marked mail.
        and all(isinstance(name, str) and name and normal_label(name) == name for name in classes),
        "no list of two or more class names, each a printable line",
    )
    _require(UNSURE not in classes, f"a class named {UNSURE!r}, which is a verdict")
    return tuple(classes)


def _load_settings(fields: dict[str, Any]) -> ModelSettings:
    classes = _load_classes(fields["classes"])
    prior, positive, traits = fields["prior"], fields["positive"], fields["traits"]
    _require(prior is None or (_is_number(prior) and 0 < prior < 1), "a prior not between 0 and 1")
    _require(positive is None or positive in classes, "a positive class that is not among them")
    _require(positive is not None or len(classes) > 2, "no positive class")
    _require(
        len(classes) > 2 or positive == classes[1],
        "its positive class first: the positive class must be listed last",
    )
    for key, known in (("scoring", SCORINGS), ("event_model", EVENT_MODELS)):
        _require(fields[key] in known, f"an unknown {key.replace('_', ' ')} {shown(fields[key])}")
    _require(isinstance(traits, dict), "no traits")
    name, shared = traits["model"], traits["shared_variance"]
    _require(name in TRAIT_MODELS, f"an unknown trait model {shown(name)}")
    _require(type(shared) is bool, "no shared variance that is true or false")
    smoothing, variance_prior = (
        _within(traits[key], 0, ALPHA_LIMIT, f"a {key.replace('_', ' ')} out of bounds")
        for key in ("variance_smoothing", "variance_prior")
    )
    settings = ModelSettings(
        classes=classes,
        positive=positive,
        alpha=_within(fields["alpha"], ALPHA_MIN, ALPHA_LIMIT, "an alpha out of bounds"),
        prior=prior,
        scoring=fields["scoring"],
        event_model=fields["event_model"],
        traits=name,
        variances=Variances(smoothing, variance_prior, shared),
        spam_cutoff=_within(fields["spam_cutoff"], 0, 1, "a spam cut-off not between 0 and 1"),
        ham_cutoff=_within(fields["ham_cutoff"], 0, 1, "a ham cut-off not between 0 and 1"),
    )
    _require(settings.ham_cutoff <= settings.spam_cutoff, "a ham cut-off above the spam cut-off")
    return settings


def _load_learned(fields: dict[str, Any], settings: ModelSettings) -> LearnedState:
    classes = settings.classes
    messages, calibrations, derived = fields["messages"], fields["calibration"], fields["derived"]
    _require(_are_counts(messages, len(classes)), "no message count per class")
    _require(fields["calibrated_by"] in ORIGINS, "a calibration of unknown origin")
    _require(isinstance(calibrations, dict), "no calibration")
    histograms, recent = fields["traits"]["histograms"], fields.get("recent", [])
    _require(isinstance(recent, list) and all(map(is_digest, recent)), "no list of recent messages")
    # Of the derived numbers the counts are used; the others are validated and recomputed.
    _require(isinstance(derived, dict), "no derived numbers")
    _require(_is_count(derived["tokens"]), "no number of tokens")
    rows, bias = derived["count_histograms"], derived["bias"]
    _require(isinstance(rows, list) and len(rows) == len(messages), "no count histograms")
    _require(
        isinstance(bias, list)
        and len(bias) == len(messages)
        and all(
            (value is None and not n) or _is_number(value, _NATS_LIMIT)
            for value, n in zip(bias, messages, strict=True)
        ),
        "no bias per class",
    )
    repeats = settings.counts.repeats
    return LearnedState(
        messages=tuple(messages),
        count_histograms=tuple(
            _load_histogram(row, n if not repeats else n and MESSAGES_LIMIT)
            for row, n in zip(rows, messages, strict=True)
        ),
        calibrations=tuple(
            Calibrations(
                *(
                    _load_calibration(scale, calibrations[classes[k]][scale.name])
                    for scale in settings.scales
                )
            )
            for k in settings.scored_classes
        ),
        calibrated_by=fields["calibrated_by"],
        host_rows=_load_host_rows(derived["hosts"], messages),
        trait_histograms=(
            load_histograms(histograms, classes, messages, settings.rules < RULES)
            if settings.has_traits
            else ()
        ),
        recent=tuple(recent),
    )


def _load_histogram(row: Any, most: int) -> Histogram:
    """Return the histogram of a class's counts; most: the highest that is possible."""
    _require(isinstance(row, dict), "no count histograms")
    loaded = {int(count): tokens for count, tokens in row.items() if str(int(count)) == count}
    _require(len(loaded) == len(row), "a count that is not a plain number")
    _require(
        all(0 <= count <= most and _is_count(n) for count, n in loaded.items()),
        "a token counted in more messages than were learned",
    )
    return loaded


def _load_host_rows(lines: Any, messages: list[int]) -> HostRows:
    width = len(messages)
    rows: dict[tuple[int, ...], int] = {}
    _require(isinstance(lines, list), "no hosts")
    for line in lines:
        _require(_are_counts(line, width + 1) and any(line[:-1]) and line[-1], "no counts of hosts")
        row = tuple(line[:-1])
        _require(row not in rows, "duplicate counts of hosts")
        _require(all(map(int.__le__, row, messages)), "a host with more messages than were learned")
        rows[row] = line[-1]
    return rows


def _load_calibration(scale: Scale, value: Any) -> Calibration:
    _require(isinstance(value, dict), "no calibration")
    size = scale.size
    rows, coefficients, ranges = value["precision"], value["coefficients"], value["ranges"]
    _require(_are_numbers(coefficients, size, _NATS_LIMIT), "no coefficients within bounds")
    _require(
        isinstance(ranges, list)
        and len(ranges) == size - 1
        and all(_are_numbers(ends, 2, _NATS_LIMIT) and ends[0] <= ends[1] for ends in ranges),
        "no ranges within bounds",
    )
    _require(
        isinstance(rows, list)
        and len(rows) == size
        and all(_are_numbers(row, size) for row in rows),
        "no precision",
    )
    _require(
        all(
            rows[i][i] > 0
            and math.isclose(rows[i][j], rows[j][i], rel_tol=1e-6, abs_tol=1e-9)
            and rows[i][j] ** 2 <= 1.000001 * rows[i][i] * rows[j][j] <= _NATS_LIMIT**2
            for i in range(size)
            for j in range(size)
        )
        and is_positive_definite(rows),
        "a precision matrix that is not positive definite",
    )
    run, noise = value["run"], value.get("noise", 0.0)  # models of before it have none
    _require(_is_number(noise) and 0 <= noise < 1, "a label noise that is not from 0 to below 1")
    _require(type(run) is int and abs(run) <= MESSAGES_LIMIT, "an invalid run length")
    return Calibration(
        tuple(map(float, coefficients)),
        tuple(tuple(map(float, row)) for row in rows),
        tuple((float(low), float(high)) for low, high in ranges),
        float(noise),
        run,
    )


def load_histograms(
    fields: Any, classes: Sequence[str], messages: Sequence[int], is_older: bool = False
) -> TraitHistograms:
    """Return the histograms in a file's parsed JSON; raises ValueError, trusts nothing.

    is_older: whether the model may have other traits; one that it lacks is of no message.
    """
    _require(
        isinstance(fields, dict) and (is_older or tuple(fields) == NAMES),
        "other traits than this program's",
    )
    known = [fields[name] for name in NAMES if name in fields]
    _require(
        all(isinstance(row, dict) and set(row) == set(classes) for row in known),
        "no histogram of a trait for each class",
    )
    return tuple(
        tuple(_loaded_values(fields[name][k], n) for k, n in zip(classes, messages, strict=True))
        if name in fields
        else ({},) * len(classes)
        for name in NAMES
    )


def _loaded_values(fields: Any, messages: int) -> Values:
    _require(isinstance(fields, dict), "no histogram of a trait")
    lowest, counts = fields.get("lowest"), fields.get("counts")
    _require(
        type(lowest) is int
        and isinstance(counts, list)
        and 0 <= lowest <= _HIGHEST - len(counts)
        and set(map(type, counts)) <= {int}
        and (not counts or (min(counts) >= 0 < counts[0] and counts[-1])),
        "no histogram of a trait",
    )
    _require(sum(counts) <= messages, "a trait of more messages than were learned")
    return {value: n for value, n in enumerate(counts, lowest) if n}


def shown(value: object) -> str:
    """Return a value from a file as an error can show it: short, on one line, in ASCII."""
    text = ascii(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def _require(condition: object, otherwise: str) -> None:
    if not condition:
        raise ValueError(otherwise)


def _within(value: Any, low: float, high: float, otherwise: str) -> float:
    _require(_is_number(value) and low <= value <= high, otherwise)
    return float(value)


def _is_number(value: object, limit: float = _NUMBER_LIMIT) -> bool:
    """Return whether a value is a number within a limit: not NaN, nor beyond floating point."""
    return isinstance(value, int | float) and type(value) is not bool and abs(value) <= limit


def _are_numbers(values: Any, length: int, limit: float = _NUMBER_LIMIT) -> bool:
    is_list = isinstance(values, list) and len(values) == length
    return is_list and all(_is_number(value, limit) for value in values)


def is_digest(value: object) -> bool:
    """Return whether a value from a file is a digest, as `tokens/tokenized.py` makes them."""
    return isinstance(value, str) and len(value) == _DIGITS and _HEX.issuperset(value)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= MESSAGES_LIMIT


def _are_counts(values: object, length: int) -> bool:
    return isinstance(values, list) and len(values) == length and all(map(_is_count, values))
