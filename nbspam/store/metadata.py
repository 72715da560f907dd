"""The metadata of a model: everything in its file except the tokens and the ledger.

The metadata is no larger than a mail, so it is read whole for every message; the tokens are not.
It has two parts, the choices (`ModelSettings`) and the counts (`LearnedState`).  Derived numbers,
such as the bias, are computed on demand.  Every value in the file's JSON is validated.
"""

import json
import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from nbspam.bayes import calibration, event_model, evidence
from nbspam.bayes.calibration import Calibration, Calibrations, Lesson
from nbspam.bayes.event_model import BERNOULLI, Bernoulli, EventModel, Histogram, Row
from nbspam.bayes.prediction import HostRow, host_independence
from nbspam.bayes.trait_model import NO_TRAITS, TRAIT_MODELS, Values, Variances
from nbspam.names import UNSURE, normal_label
from nbspam.tokens.kinds import TRAIT_NAMES, is_domain, is_host
from nbspam.tokens.tokenized import NAME, TOKENIZER_VERSION, TokenizerOutputs

N = TypeVar("N")
# Whether a token with this row exists: no number exceeds the learned messages of its class, and at
# least one number is above 0.
is_valid_row = event_model.event_model(BERNOULLI).is_valid_row

SUM = "sum"  # the textbook's rule: the sum of all weights, and its plain posterior
EVIDENCE = "evidence"  # features of the same weights, combined and calibrated
SCORINGS = (EVIDENCE, SUM)
# The origin of the calibration, which learning refines.
TRAINING = "training"  # fitted to every training message, each left out
DEFAULT = "default"  # the prior, not fitted
BASE = "base"  # the base's calibration (`scoring/base.py`)
ORIGINS = (TRAINING, DEFAULT, BASE)
# Smoothing above the limit makes every weight 0; below the minimum, logarithms lose all digits.
ALPHA_MIN, ALPHA_LIMIT = 1e-300, 1e6
MESSAGES_LIMIT = 2**53  # up to this limit, counts are exact in floating point

# The spam cut-off is high, because a lost ham is worse than a delivered spam, and unsure mail is
# delivered.  A cut-off of 0.5 blocked 0.5 to 2 % of ham; 0.9 blocked a third of that.
SPAM_CUTOFF, HAM_CUTOFF = 0.9, 0.5
# Nats that a verdict of spam needs in addition, if the mail is certainly from elsewhere.
# Percentages of ham blocked and spam caught, trained on the first corpus and tested on the second:
#
#     nats  SpamAssassin, trec07p  SpamAssassin, Enron 1  trec07p, SpamAssassin
#     0     3.80  78               3.59  46               0.14  46
#     1.4   1.22  62               1.01  32               0.05  24
#     1.8   0.84  57               0.93  28               0.02  17
#     3     0.71   8               0.33  17               0.02   5
ELSEWHERE = 1.8

# Models of 20 messages of each class miss 40 % of P2's spam, models of 100 miss 7 %.
YOUNG_BELOW = 100  # messages of a class
HostRows = Mapping[tuple[int, ...], int]  # mails per class -> number of hosts with these mails
# Histograms of the tokens' counts, per class; rows of the hosts; rows of the hosts' domains.
TokenStatistics = tuple[tuple[Histogram, ...], HostRows, HostRows]
_NO_HOSTS: HostRows = MappingProxyType({})
TraitHistograms = tuple[tuple[Values, ...], ...]  # per trait, in the order of TRAITS; per class
TableColumns = tuple[tuple[str, str], ...]  # names of text column and label column
_COLUMNS_LIMIT, _COLUMN_NAME_LIMIT = 10, 200  # pairs, characters


class ModelSettings(NamedTuple):
    """The choices made when the model was created."""

    classes: tuple[str, ...]  # in the order of every list of counts
    positive: str | None  # the class of "probability"; None only with three or more classes
    alpha: float  # smoothing: pseudo-count of each outcome, in messages
    prior: float | None = None  # P(positive class), if the user fixed it
    scoring: str = EVIDENCE
    event_model: str = BERNOULLI
    traits: str = NO_TRAITS  # one of TRAIT_MODELS
    variances: Variances = Variances()  # for Gaussian traits
    # Spam above spam_cutoff, ham at or below ham_cutoff, unless an option overrides them.
    spam_cutoff: float = SPAM_CUTOFF
    ham_cutoff: float = HAM_CUTOFF
    elsewhere: float = ELSEWHERE  # nats; 0 trusts mail from elsewhere
    rules: int = TOKENIZER_VERSION  # the model's tokenizer rules, at most the program's

    @property
    def positive_index(self) -> int | None:
        """Index of the positive class."""
        return None if self.positive is None else self.classes.index(self.positive)

    @property
    def scored_classes(self) -> tuple[int, ...]:
        """The classes with a calibrated score: one of two classes, or all of three or more."""
        if len(self.classes) == 2:
            return (self.positive_index or 0,)
        return tuple(range(len(self.classes)))

    @property
    def counts(self) -> EventModel:
        """The event model, which defines how tokens are counted."""
        return event_model.event_model(self.event_model)

    @property
    def has_traits(self) -> bool:
        """Whether traits are counted."""
        return self.traits != NO_TRAITS

    @property
    def padded_class(self) -> int | None:
        """Index of the class that has padded copies, if there is one."""
        return self.positive_index if isinstance(self.counts, Bernoulli) else None

    @property
    def calibration_specs(self) -> tuple[calibration.CalibrationSpec, ...]:
        """The features of the model's calibrations."""
        return calibration.calibration_specs(self.has_traits)

    @property
    def outputs(self) -> TokenizerOutputs:
        """The extras that the model counts in addition to a message's tokens."""
        return TokenizerOutputs(times=self.counts.counts_repeats, traits=self.has_traits)


class LearnedState(NamedTuple):
    """The learned state, without the tokens."""

    messages: tuple[int, ...]  # learned messages per class
    count_histograms: tuple[Histogram, ...]  # histograms of the tokens' counts, per class
    calibrations: tuple[Calibrations, ...]  # one for each scored class
    calibrated_by: str = DEFAULT  # one of ORIGINS
    host_rows: HostRows = _NO_HOSTS  # rows of the hosts that received mails
    domain_rows: HostRows = _NO_HOSTS  # rows of their domains
    trait_histograms: TraitHistograms = ()  # per trait and class; () in a model without traits
    columns: TableColumns = ()  # columns of the learned tables
    recent: tuple[Lesson, ...] = ()  # the last messages that refined the calibrations
    before: tuple[Calibrations, ...] = ()  # calibrations before `recent`, unless that is empty

    def n_smaller_class(self, k: int) -> int:
        """Return the number of messages of class k or of all others, whichever is lower."""
        return min(self.messages[k], sum(self.messages) - self.messages[k])


class Metadata(NamedTuple):
    """The metadata of a model."""

    settings: ModelSettings
    learned: LearnedState

    @property
    def n_tokens(self) -> int:
        """The size of the vocabulary."""
        return sum(self.learned.count_histograms[0].values())

    @property
    def lacks_two_classes(self) -> bool:
        """Whether fewer than two classes have a message, so that there can be no verdict."""
        return sum(map(bool, self.learned.messages)) < 2

    def by_class(self, row: Sequence[N]) -> dict[str, N]:
        """Return a dictionary, class name -> number of the row."""
        return dict(zip(self.settings.classes, row, strict=True))

    @property
    def messages_needed(self) -> dict[str, int]:
        """Class -> number of messages that a young model still needs; {} if it is not young."""
        learned = self.by_class(self.learned.messages).items()
        return {name: math.ceil(YOUNG_BELOW - n) for name, n in learned if n < YOUNG_BELOW}

    @property
    def label_noise(self) -> tuple[float, ...]:
        """The share of each class's labels that looked wrong when the calibrations were fitted.

        The opening's calibration is ignored, because the opening is too small a part of a message
        to judge its label.
        """
        messages, scored = self.learned.messages, self.settings.scored_classes
        shares = [0.0] * len(messages)
        for k, calibrations in zip(scored, self.learned.calibrations, strict=True):
            for fitted in (calibrations.text, calibrations.full):
                noise, noise_of_rest = fitted.noise.label_error_shares(
                    messages[k], sum(messages) - messages[k]
                )
                shares[k] = max(shares[k], noise)
                if len(scored) < len(messages):
                    shares[1 - k] = max(shares[1 - k], noise_of_rest)
        return tuple(shares)

    @property
    def host_trust(self) -> tuple[float, float]:
        """The trust in headers by the collecting hosts, and the number of mails behind it."""
        rows: list[HostRow] = list(self.learned.host_rows.items())
        return host_independence(rows, self.learned.messages)

    @property
    def domains(self) -> evidence.DomainCounts:
        """Numbers of learned mails, by the domains of the hosts that received them."""
        hosts, domains = self.learned.host_rows.items(), self.learned.domain_rows.items()
        mails, named = (sum(sum(row) * n for row, n in rows) for rows in (hosts, domains))
        return evidence.DomainCounts(mails, named, sum(n for row, n in domains if sum(row) == 1))

    @property
    def size(self) -> event_model.TrialTotals:
        """The messages and trials, per class, in which tokens were counted."""
        learned = self.learned
        return self.settings.counts.size(learned.count_histograms, learned.messages)

    @property
    def bias(self) -> tuple[float, ...]:
        """Log P(k) and the log-likelihood of a message without any token, per class, in nats."""
        settings, learned = self
        priors = event_model.log_priors(learned.messages, settings.prior, settings.positive_index)
        if not settings.counts.has_prior:
            priors = [p if p == -math.inf else 0.0 for p in priors]
        absent = settings.counts.bias(learned.count_histograms, learned.messages, settings.alpha)
        return tuple(map(math.fsum, zip(priors, absent, strict=True)))


def empty_state(settings: ModelSettings, calibrations: tuple[Calibrations, ...]) -> LearnedState:
    """Return the learned state of a model without messages."""
    n = len(settings.classes)
    traits: TraitHistograms = (({},) * n,) * len(TRAIT_NAMES) if settings.has_traits else ()
    return LearnedState((0,) * n, ({},) * n, calibrations, trait_histograms=traits)


def histograms_of(rows: Collection[Row], n_classes: int) -> tuple[Counter[int], ...]:
    """Count the tokens with each count, per class."""
    columns = zip(*rows, strict=True) if rows else [()] * n_classes
    return tuple(Counter(column) for column in columns)


def with_columns(metadata: Metadata, columns: Iterable[tuple[str, str]]) -> Metadata:
    """Add names of columns that were learned, up to a limit."""
    known = dict.fromkeys((*metadata.learned.columns, *columns))
    usable = [pair for pair in known if max(map(len, pair)) <= _COLUMN_NAME_LIMIT]
    learned = metadata.learned._replace(columns=tuple(usable[:_COLUMNS_LIMIT]))
    return metadata._replace(learned=learned)


def with_counts(metadata: Metadata, counts: Mapping[str, Row]) -> Metadata:
    """Replace the numbers that are derived from the counts of all tokens."""
    learned = metadata.learned._replace(
        count_histograms=histograms_of(counts.values(), len(metadata.settings.classes)),
        host_rows=Counter(row for token, row in counts.items() if is_host(token)),
        domain_rows=Counter(row for token, row in counts.items() if is_domain(token)),
    )
    return metadata._replace(learned=learned)


# The JSON of the model file

FORMAT = "nbspam-model"
VERSION = 1
_DIGEST_DIGITS, _HEX = 32, frozenset("0123456789abcdef")
_MAX_QUOTED = 40  # characters of a wrong value in an error
_MAX_TRAIT = 1_000  # larger than any trait


def derived_fields(metadata: Metadata) -> dict[str, Any]:
    """Return the numbers derived from the tokens' counts, as JSON."""
    decimals = calibration.PRECISION_DECIMALS
    learned = metadata.learned
    histograms = (sorted(row.items()) for row in learned.count_histograms)
    return {
        "tokens": metadata.n_tokens,
        "bias": [round(b, decimals) if math.isfinite(b) else None for b in metadata.bias],
        "count_histograms": [{str(count): n for count, n in pairs} for pairs in histograms],
        "hosts": [[*row, hosts] for row, hosts in sorted(learned.host_rows.items())],
        "domains": [[*row, domains] for row, domains in sorted(learned.domain_rows.items())],
    }


def dump_metadata(metadata: Metadata) -> str:
    """Return the lines of the file before its tokens."""
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
        "calibration": _dump_calibrations(settings, learned.calibrations),
        "calibrated_by": learned.calibrated_by,
        **({"columns": learned.columns} if learned.columns else {}),
        "lessons": learned.recent,
        "before_lessons": _dump_calibrations(settings, learned.before) if learned.recent else {},
        "spam_cutoff": settings.spam_cutoff,
        "ham_cutoff": settings.ham_cutoff,
        "elsewhere": settings.elsewhere,
        "derived": derived_fields(metadata),
    }
    lines = [f'{{"format": "{FORMAT}", "version": {VERSION},']
    lines += [f'"{key}": {json.dumps(value, ensure_ascii=False)},' for key, value in fields.items()]
    return "\n".join(lines) + "\n"


def _dump_calibrations(
    settings: ModelSettings, calibrations: Sequence[Calibrations]
) -> dict[str, Any]:
    """Return the calibrations of each scored class as JSON."""
    return {
        settings.classes[k]: {name: fitted._asdict() for name, fitted in pair._asdict().items()}
        for k, pair in zip(settings.scored_classes, calibrations, strict=True)
    }


def dump_histograms(histograms: TraitHistograms, classes: Sequence[str]) -> dict[str, Any]:
    """Return the histograms as JSON; {} for a model without traits.

        {"words": {"ham": {"lowest": 12, "counts": [1, 0, 3]}, "spam": …}, …}

    `counts` has the numbers of messages with each value, from the lowest to the highest.
    """

    def dump(values: Values) -> dict[str, object]:
        lowest, highest = min(values, default=0), max(values, default=-1)
        return {"lowest": lowest, "counts": [values.get(v, 0) for v in range(lowest, highest + 1)]}

    return {
        name: dict(zip(classes, map(dump, row), strict=True))
        for name, row in zip(TRAIT_NAMES if histograms else (), histograms, strict=True)
    }


class MetadataError(ValueError):
    """The metadata cannot be used by this program; the text is a clause with the reason."""


def load_metadata(fields: Any) -> Metadata:
    """Build the metadata from a model file's parsed JSON; raises MetadataError.

    Shape and bounds are checked here; `Lookup.model` also checks the format of the lines.
    """
    if not isinstance(fields, dict) or fields.get("format") != FORMAT:
        raise MetadataError("is not an nbspam model; name a file that nbspam train wrote")
    version = fields.get("version")
    if type(version) is not int or version < 1:
        raise MetadataError("has no valid version; restore it from a copy or train again")
    if version > VERSION:
        raise MetadataError(
            f"has version {quoted_value(version)}, newer than this program's {VERSION}; update"
            " nbspam"
        )
    rules = _load_tokenizer_version(fields.get("tokenizer"))
    try:
        settings = _load_settings(fields, rules)
        return Metadata(settings, _load_state(fields, settings))
    except KeyError as error:
        raise damage_error(f"it has no {quoted_value(error.args[0])}") from None
    except (TypeError, AttributeError, OverflowError):
        raise damage_error(
            "a value in its first lines is of another kind than nbspam writes"
        ) from None
    except ValueError as error:
        raise damage_error(f"it has {error}") from None


def damage_error(problem: str) -> MetadataError:
    """Return the error for damaged metadata."""
    return MetadataError(f"is damaged: {problem}; restore it from a copy or train again")


def _load_tokenizer_version(tokenizer: Any) -> int:
    """Return a model's tokenizer rules; raises MetadataError for another tokenizer.

    Counts made with older rules can be used, because most tokens are the same.
    """
    fields = tokenizer if isinstance(tokenizer, dict) else {}
    rules = fields.get("rules")
    if fields.get("name") != NAME or type(rules) is not int or rules < 1:
        raise MetadataError(
            f"was made with the tokenizer {quoted_value(tokenizer)}, and this program has"
            f" {NAME!r} with rules {TOKENIZER_VERSION}; train again"
        )
    if rules > TOKENIZER_VERSION:
        raise MetadataError(
            f"was made with tokenizer rules {quoted_value(rules)}, newer than this program's"
            f" {TOKENIZER_VERSION}; update nbspam"
        )
    return rules


# Types, lowest and highest number, and the depth of lists around it.  NaN and true are refused.
_Bounds = tuple[Collection[type], float, float, int]
_WHOLE, _REAL = {int}, {int, float}
_NATS, _SMOOTHING = (_REAL, -1e15, 1e15), (_REAL, 0, ALPHA_LIMIT, 0)
_COUNT, _SHARE = (_WHOLE, 0, MESSAGES_LIMIT), (_REAL, 0, 1, 0)
_BOUNDS: dict[str, _Bounds] = {
    "messages": (*_COUNT, 1),
    "alpha": (_REAL, ALPHA_MIN, ALPHA_LIMIT, 0),
    "prior": (_REAL, math.nextafter(0, 1), math.nextafter(1, 0), 0),
    "variance_smoothing": _SMOOTHING,
    "variance_prior": _SMOOTHING,
    "spam_cutoff": _SHARE,
    "ham_cutoff": _SHARE,
    "tokens": (*_COUNT, 0),
    "bias": (*_NATS, 1),
    "count_histograms": (*_COUNT, 2),
    "hosts": (*_COUNT, 2),
    "domains": (*_COUNT, 2),
    "elsewhere": (_REAL, 0, 100, 0),
    "coefficients": (*_NATS, 1),
    "precision": (*_NATS, 2),
    "ranges": (*_NATS, 2),
    "noise": (_REAL, 0, math.nextafter(1, 0), 1),
    "run": (_WHOLE, -MESSAGES_LIMIT, MESSAGES_LIMIT, 0),
    "features": (*_NATS, 3),
    "lowest": (_WHOLE, 0, _MAX_TRAIT, 0),
    "counts": (*_COUNT, 1),
}


def _numbers(fields: dict[str, Any], key: str) -> Any:
    """Check a field of numbers against its bounds, and return it with tuples for lists."""
    types, low, high, depth = _BOUNDS[key]

    def is_within(value: Any, depth: int) -> bool:
        if not depth:
            return type(value) in types and low <= value <= high
        values = value.values() if isinstance(value, dict) else value
        return isinstance(value, list | dict) and all(is_within(item, depth - 1) for item in values)

    if not is_within(fields[key], depth):
        raise ValueError(f"an invalid {key} {quoted_value(fields[key])}")
    return _freeze(fields[key])


def _freeze(value: Any) -> Any:
    return tuple(map(_freeze, value)) if isinstance(value, list) else value


def _choice(fields: dict[str, Any], key: str, values: Collection[Any]) -> Any:
    value = fields[key]
    if not any(type(value) is type(known) and value == known for known in values):
        raise ValueError(f"an unknown {key.replace('_', ' ')} {quoted_value(value)}")
    return value


def _list(values: Any, length: int) -> Any:
    if not isinstance(values, tuple) or len(values) != length:
        raise ValueError(f"a list of another length than {length}: {quoted_value(values)}")
    return values


def _load_settings(fields: dict[str, Any], rules: int) -> ModelSettings:
    classes, traits = _freeze(fields["classes"]), fields["traits"]
    # A line end in a name would add a header field to mail.
    are_labels = all(isinstance(name, str) and normal_label(name) == name for name in classes)
    if not (are_labels and 2 <= len({*classes}) == len(classes)) or {"", UNSURE} & {*classes}:
        raise ValueError(
            "no list of two or more class names, each a printable line in lower case, none of them"
            f" {UNSURE!r}, which is a verdict"
        )
    if _numbers(fields, "ham_cutoff") > _numbers(fields, "spam_cutoff"):
        raise ValueError("a ham_cutoff above the spam_cutoff")
    return ModelSettings(
        classes,
        _choice(fields, "positive", classes[1:] if len(classes) == 2 else (None, *classes)),
        _numbers(fields, "alpha"),
        None if fields["prior"] is None else _numbers(fields, "prior"),
        _choice(fields, "scoring", SCORINGS),
        _choice(fields, "event_model", event_model.EVENT_MODELS),
        _choice(traits, "model", TRAIT_MODELS),
        Variances(
            _numbers(traits, "variance_smoothing"),
            _numbers(traits, "variance_prior"),
            _choice(traits, "shared_variance", (True, False)),
        ),
        fields["spam_cutoff"],
        fields["ham_cutoff"],
        _numbers(fields, "elsewhere"),
        rules,
    )


def _load_state(fields: dict[str, Any], settings: ModelSettings) -> LearnedState:
    n, is_older, derived = (
        len(settings.classes),
        settings.rules < TOKENIZER_VERSION,
        fields["derived"],
    )
    messages, histograms = _list(_numbers(fields, "messages"), n), fields["traits"]["histograms"]
    counts = []
    rows = _list(_numbers(derived, "count_histograms"), n)
    for row, n_messages in zip(rows, messages, strict=True):
        counts.append({int(count): tokens for count, tokens in row.items()})
        highest = MESSAGES_LIMIT if n_messages and settings.counts.counts_repeats else n_messages
        if not all(0 <= count <= highest for count in counts[-1]):
            raise ValueError("a count histogram of more messages than were learned")
    # Only the shape is checked here; `lookup.find_inconsistencies` compares the values.
    bias = [0 if b is None else b for b in derived["bias"]]
    _list(_numbers({"bias": bias}, "bias"), n), _numbers(derived, "tokens")
    hosts, domains = (
        {_list(row, n + 1)[:-1]: row[-1] for row in _numbers(derived, key)}
        for key in ("hosts", "domains")
    )
    rows_of_hosts = [*hosts.items(), *domains.items()]
    if not all(is_valid_row(row, messages) and times for row, times in rows_of_hosts):
        raise ValueError("a host of more messages than were learned")
    columns = tuple(_list(pair, 2) for pair in _freeze(fields.get("columns", [])))
    if not all(isinstance(name, str) for pair in columns for name in pair):
        raise ValueError(f"invalid columns {quoted_value(columns)}")
    # A model with older rules neither learns nor forgets.
    lessons = () if is_older else tuple(_load_lesson(row, settings) for row in fields["lessons"])
    before = fields["before_lessons"] if lessons else {}
    return LearnedState(
        messages,
        tuple(counts),
        _load_calibrations(settings, fields["calibration"]),
        _choice(fields, "calibrated_by", ORIGINS),
        hosts,
        domains,
        load_histograms(histograms, settings.classes, messages, is_older)
        if settings.has_traits
        else (),
        columns,
        lessons,
        _load_calibrations(settings, before) if lessons else (),
    )


def _load_lesson(row: Any, settings: ModelSettings) -> Lesson:
    digest, label, inputs = row
    inputs = _list(_numbers({"features": inputs}, "features"), len(settings.scored_classes))
    pairs = (
        zip(settings.calibration_specs, _list(xs, len(settings.calibration_specs)), strict=True)
        for xs in inputs
    )
    are_whole = all(len(x) in (0, spec.size) for some in pairs for spec, x in some)
    if not are_whole or not (digest == "" or is_digest(digest)):
        raise ValueError("no lessons of its calibrations")
    return Lesson(digest, _choice({"class": label}, "class", range(len(settings.classes))), inputs)


def _load_calibrations(settings: ModelSettings, fields: Any) -> tuple[Calibrations, ...]:
    names = (settings.classes[k] for k in settings.scored_classes)
    return tuple(
        Calibrations(
            *(
                _load_calibration(s, fields[name], settings.rules)
                for s in settings.calibration_specs
            )
        )
        for name in names
    )


def _load_calibration(spec: calibration.CalibrationSpec, several: Any, rules: int) -> Calibration:
    if spec.name not in several and rules < TOKENIZER_VERSION:  # models with older rules have fewer
        return calibration.prior_calibration(spec)
    fields, size = several[spec.name], spec.size
    precision = tuple(_list(row, size) for row in _list(_numbers(fields, "precision"), size))
    mirrored = ((precision[i][j], precision[j][i]) for i in range(size) for j in range(i))
    is_symmetric = all(math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-9) for a, b in mirrored)
    if not (is_symmetric and calibration.is_positive_definite(precision)):
        raise ValueError("a precision matrix that is not positive definite")
    ranges = _list(_numbers(fields, "ranges"), size - 1)
    if any(low > high for low, high in ranges):
        raise ValueError(f"an invalid ranges {quoted_value(ranges)}")
    coefficients, run = _list(_numbers(fields, "coefficients"), size), _numbers(fields, "run")
    noise = calibration.Noise(*_list(_numbers(fields, "noise"), 2))
    return Calibration(coefficients, precision, ranges, noise, run)


def load_histograms(
    fields: Any, classes: Sequence[str], messages: Sequence[int], is_older: bool = False
) -> TraitHistograms:
    """Build the histograms from a file's parsed JSON; raises ValueError, KeyError, TypeError.

    is_older: the model may have other traits; a missing trait has no messages.
    """
    if not isinstance(fields, dict) or not (is_older or tuple(fields) == TRAIT_NAMES):
        raise ValueError("other traits than this program's")
    loaded = []
    for name in TRAIT_NAMES:
        row, histograms = fields.get(name, {}), []
        for k, n in zip(classes, messages, strict=True):
            histogram = row[k] if row or not is_older else {"lowest": 0, "counts": []}
            lowest, counts = _numbers(histogram, "lowest"), _numbers(histogram, "counts")
            if sum(counts) > n or lowest + len(counts) > _MAX_TRAIT:
                raise ValueError(f"a trait {name} of more messages than were learned, or too high")
            histograms.append({value: n for value, n in enumerate(counts, lowest) if n})
        loaded.append(tuple(histograms))
    return tuple(loaded)


def quoted_value(value: object) -> str:
    """Format a value from a file for an error: short, on one line, in ASCII."""
    text = ascii(value)
    return text if len(text) <= _MAX_QUOTED else text[:_MAX_QUOTED] + "…"


def is_digest(value: object) -> bool:
    """Return whether a value from a file has the format of a digest."""
    return isinstance(value, str) and len(value) == _DIGEST_DIGITS and _HEX.issuperset(value)
