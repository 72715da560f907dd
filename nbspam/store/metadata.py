"""The metadata of a model: everything in its file but the tokens and the ledger.

The metadata is no larger than a mail, so it is read whole for every message; the tokens are not.
It has two parts, the choices (`ModelSettings`) and the counts (`LearnedState`).  Derived numbers,
such as the bias, are computed on demand.

Reading the file's JSON trusts nothing in it.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from nbspam.bayes import calibration, event_model
from nbspam.bayes.calibration import Calibration, Calibrations, Lesson
from nbspam.bayes.event_model import BERNOULLI, EventModel, Histogram, Row
from nbspam.bayes.trait_model import NO_TRAITS, TRAIT_MODELS, Values, Variances
from nbspam.names import UNSURE, normal_label
from nbspam.tokens.kinds import NAMES, is_host
from nbspam.tokens.tokenized import NAME, RULES, Wanted

N = TypeVar("N")
Check = Callable[[Any], bool]  # whether a value of the file is valid
# Whether so many messages of each class, but not none, may be some of those that were learned.
is_row = event_model.event_model(BERNOULLI).is_row

SUM = "sum"  # the textbook's rule: the sum of all weights, and its plain posterior
EVIDENCE = "evidence"  # features of the same weights, combined and calibrated
SCORINGS = (EVIDENCE, SUM)
# Where the calibration began; `update` refines it, whatever it was.
TRAINING = "training"  # fitted to every training message, each left out
DEFAULT = "default"  # not fitted: the prior
BASE = "base"  # of the base that it is read through (`scoring/base.py`)
ORIGINS = (TRAINING, DEFAULT, BASE)
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
TableColumns = tuple[tuple[str, str], ...]  # names of those with texts and labels
_COLUMNS_LIMIT, _COLUMN_NAME_LIMIT = 10, 200  # pairs, and characters of a name


class ModelSettings(NamedTuple):
    """The choices made when the model was created."""

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
        return event_model.event_model(self.event_model)

    @property
    def has_traits(self) -> bool:
        """Whether traits are counted."""
        return self.traits != NO_TRAITS

    @property
    def scales(self) -> tuple[calibration.Scale, ...]:
        """The features of its calibrations."""
        return calibration.scales(self.has_traits)

    @property
    def wanted(self) -> Wanted:
        """The numbers that it counts beside the tokens of a message."""
        return Wanted(times=self.counts.repeats, traits=self.has_traits)


class LearnedState(NamedTuple):
    """The learned state, without the tokens."""

    messages: tuple[int, ...]  # learned, per class
    count_histograms: tuple[Histogram, ...]  # of the tokens' counts, per class
    calibrations: tuple[Calibrations, ...]  # for each scored class
    calibrated_by: str = DEFAULT  # one of ORIGINS
    host_rows: HostRows = _NO_HOSTS  # of the hosts that took mails in
    trait_histograms: TraitHistograms = ()  # per trait and class; none in a model without traits
    columns: TableColumns = ()  # of the tables that it was learned from
    recent: tuple[Lesson, ...] = ()  # the last messages that refined the calibrations
    before: tuple[Calibrations, ...] = ()  # the calibrations before those, if there are any

    def fewest(self, k: int) -> int:
        """Return the number of messages of class k, or of all others together if that is lower."""
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
    def is_one_sided(self) -> bool:
        """Whether fewer than two classes have a message: no basis for a verdict."""
        return sum(map(bool, self.learned.messages)) < 2

    def by_class(self, row: Sequence[N]) -> dict[str, N]:
        """Return the numbers of a row by the names of the classes."""
        return dict(zip(self.settings.classes, row, strict=True))

    @property
    def missing(self) -> dict[str, int]:
        """Class -> how many more messages a young model needs; empty unless the model is young."""
        learned = self.by_class(self.learned.messages).items()
        return {name: math.ceil(YOUNG - n) for name, n in learned if n < YOUNG}

    @property
    def label_noise(self) -> tuple[float, ...]:
        """The share of each class's labels that looked wrong when the calibrations were fitted.

        By the message as a whole: what its opening says alone is too little to tell.
        """
        messages, scored = self.learned.messages, self.settings.scored_classes
        shares = [0.0] * len(messages)
        for k, calibrations in zip(scored, self.learned.calibrations, strict=True):
            for fitted in (calibrations.text, calibrations.full):
                noise, noise_of_rest = fitted.noise.among(messages[k], sum(messages) - messages[k])
                shares[k] = max(shares[k], noise)
                if len(scored) < len(messages):
                    shares[1 - k] = max(shares[1 - k], noise_of_rest)
        return tuple(shares)

    @property
    def host_trust(self) -> tuple[float, float]:
        """The trust in headers by the collecting hosts, and the number of mails behind it."""
        rows: list[calibration.HostRow] = list(self.learned.host_rows.items())
        return calibration.unconfoundedness(rows, self.learned.messages)

    @property
    def size(self) -> event_model.VocabularySize:
        """The totals that the tokens' counts are part of."""
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
    traits: TraitHistograms = (({},) * n,) * len(NAMES) if settings.has_traits else ()
    return LearnedState((0,) * n, ({},) * n, calibrations, trait_histograms=traits)


def histograms_of(rows: Collection[Row], n_classes: int) -> tuple[Counter[int], ...]:
    """Return per class how many tokens have each count."""
    columns = zip(*rows, strict=True) if rows else [()] * n_classes
    return tuple(Counter(column) for column in columns)


def with_columns(metadata: Metadata, columns: Iterable[tuple[str, str]]) -> Metadata:
    """Return the metadata with more names of columns that were learned from, up to a limit."""
    known = dict.fromkeys((*metadata.learned.columns, *columns))
    usable = [pair for pair in known if max(map(len, pair)) <= _COLUMN_NAME_LIMIT]
    learned = metadata.learned._replace(columns=tuple(usable[:_COLUMNS_LIMIT]))
    return metadata._replace(learned=learned)


def with_counts(metadata: Metadata, counts: Mapping[str, Row]) -> Metadata:
    """Return the metadata with the numbers derived from the counts of all tokens."""
    learned = metadata.learned._replace(
        count_histograms=histograms_of(counts.values(), len(metadata.settings.classes)),
        host_rows=Counter(row for token, row in counts.items() if is_host(token)),
    )
    return metadata._replace(learned=learned)


# The JSON of the model file

FORMAT = "nbspam-model"
VERSION = 1
_NATS_LIMIT = 1e15
_DIGITS, _HEX = 32, frozenset("0123456789abcdef")  # of a digest
_SHOWN = 40  # characters of a wrong value that an error shows
_HIGHEST = 1_000  # no trait's scale goes as far


def derived_fields(metadata: Metadata) -> dict[str, Any]:
    """Return the numbers derived from the tokens' counts, as JSON."""
    decimals = calibration.PRECISION_DECIMALS
    histograms = (sorted(row.items()) for row in metadata.learned.count_histograms)
    return {
        "tokens": metadata.n_tokens,
        "bias": [round(b, decimals) if math.isfinite(b) else None for b in metadata.bias],
        "count_histograms": [{str(count): n for count, n in pairs} for pairs in histograms],
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
        "calibration": _dumped(settings, learned.calibrations),
        "calibrated_by": learned.calibrated_by,
        **({"columns": learned.columns} if learned.columns else {}),
        "lessons": learned.recent,
        "before_lessons": _dumped(settings, learned.before) if learned.recent else {},
        "spam_cutoff": settings.spam_cutoff,
        "ham_cutoff": settings.ham_cutoff,
        "derived": derived_fields(metadata),
    }
    lines = [f'{{"format": "{FORMAT}", "version": {VERSION},']
    lines += [f'"{key}": {json.dumps(value, ensure_ascii=False)},' for key, value in fields.items()]
    return "\n".join(lines) + "\n"


def _dumped(settings: ModelSettings, calibrations: Sequence[Calibrations]) -> dict[str, Any]:
    """Return the calibrations of each scored class as JSON."""
    return {
        settings.classes[k]: {name: fitted._asdict() for name, fitted in pair._asdict().items()}
        for k, pair in zip(settings.scored_classes, calibrations, strict=True)
    }


def dump_histograms(histograms: TraitHistograms, classes: Sequence[str]) -> dict[str, Any]:
    """Return the histograms as JSON; {} of a model without traits.

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
    """The metadata cannot be used by this program; the text is a clause with the reason."""


def load_metadata(fields: Any) -> Metadata:
    """Return the metadata in a model file's parsed JSON; raises MetadataError, trusts nothing."""
    if not isinstance(fields, dict) or fields.get("format") != FORMAT:
        raise MetadataError("is not an nbspam model; name a file that nbspam train wrote")
    version = fields.get("version")
    if type(version) is not int or version < 1:
        raise MetadataError("has no valid version; restore it from a copy or train again")
    if version > VERSION:
        raise MetadataError(
            f"has version {shown(version)}, newer than this program's {VERSION}; update nbspam"
        )
    rules = _rules(fields.get("tokenizer"))
    try:
        top = _Fields(fields)
        settings = _loaded_settings(top, rules)
        return Metadata(_with_read_labels(settings), _loaded_state(top, settings))
    except KeyError as error:
        raise damage(f"it has no {shown(error.args[0])}") from None
    except (TypeError, ValueError, OverflowError) as error:
        raise damage(f"it has {error}") from None


def damage(what: str) -> MetadataError:
    """Return the error of damaged metadata."""
    return MetadataError(f"is damaged: {what}; restore it from a copy or train again")


def _rules(tokenizer: Any) -> int:
    """Return the tokenizer rules of a model; raises MetadataError for another tokenizer.

    Counts of older rules are good enough: most tokens are the same.
    """
    fields = tokenizer if isinstance(tokenizer, dict) else {}
    rules = fields.get("rules")
    if fields.get("name") != NAME or type(rules) is not int or rules < 1:
        raise MetadataError(
            f"was made with the tokenizer {shown(tokenizer)}, and this program has"
            f" {NAME!r} with rules {RULES}; train again"
        )
    if rules > RULES:
        raise MetadataError(
            f"was made with tokenizer rules {shown(rules)}, newer than this program's {RULES};"
            " update nbspam"
        )
    return rules


class _Fields(NamedTuple):
    """A JSON object of the file; its methods raise KeyError, and ValueError for a bad value."""

    values: dict[str, Any]
    place: str = ""  # the keys that led to it

    def take(self, key: str, is_valid: Check, otherwise: str = "") -> Any:
        """Return a valid value, its lists as tuples; otherwise: the clause for an invalid one."""
        value = self.values[key]
        if not is_valid(value):
            raise ValueError(otherwise or f"an invalid {self.place}{key} {shown(value)}")
        return _frozen(value)

    def inner(self, key: str) -> "_Fields":
        """Return an object within this one."""
        path = f"{self.place}{key}"
        return _Fields(self.take(key, _is_object, f"no {path}"), f"{path} ")

    def choice(self, key: str, values: tuple[str, ...]) -> Any:
        """Return one of these values."""
        unknown = f"an unknown {self.place}{key.replace('_', ' ')} {shown(self.values[key])}"
        return self.take(key, values.__contains__, unknown)


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def _loaded_settings(top: _Fields, rules: int) -> ModelSettings:
    classes = top.take("classes", _are_classes, _NO_CLASSES)
    traits = top.inner("traits")
    allowed = classes[1:] if len(classes) == 2 else (None, *classes)
    is_smoothing = _number(0, ALPHA_LIMIT)
    spam_cutoff = top.take("spam_cutoff", _number(0, 1))
    return ModelSettings(
        classes,
        positive=top.take("positive", lambda name: name in allowed),
        alpha=top.take("alpha", _number(ALPHA_MIN, ALPHA_LIMIT)),
        prior=top.take("prior", lambda p: p is None or (_number(0, 1)(p) and 0 < p < 1)),
        scoring=top.choice("scoring", SCORINGS),
        event_model=top.choice("event_model", event_model.EVENT_MODELS),
        traits=traits.choice("model", TRAIT_MODELS),
        variances=Variances(
            traits.take("variance_smoothing", is_smoothing),
            traits.take("variance_prior", is_smoothing),
            traits.take("shared_variance", lambda value: type(value) is bool),
        ),
        spam_cutoff=spam_cutoff,
        ham_cutoff=top.take("ham_cutoff", _number(0, spam_cutoff)),
        rules=rules,
    )


def _with_read_labels(settings: ModelSettings) -> ModelSettings:
    """Return settings whose classes are named as labels are read, in lower case.

    Models from before 1.0.0 may have other names.  Two that would become one stay as they are.
    """
    names = tuple(map(str.lower, settings.classes))
    if len({*names, UNSURE}) <= len(names):
        return settings
    positive = settings.positive and settings.positive.lower()
    return settings._replace(classes=names, positive=positive)


def _loaded_state(top: _Fields, settings: ModelSettings) -> LearnedState:
    classes, repeats = settings.classes, settings.counts.repeats
    n = len(classes)
    messages = top.take("messages", _list(_is_count, n), "no message count per class")
    derived, traits, calibrations = map(top.inner, ("derived", "traits", "calibration"))
    # Of the derived numbers the counts are used; the others are validated and recomputed.
    derived.take("tokens", _is_count)
    bias = derived.take("bias", _list(lambda b: b is None or _is_in_nats(b), n))
    if any(b is None and m for b, m in zip(bias, messages, strict=True)):
        raise ValueError("no bias of a class with messages")
    histograms = traits.values["histograms"]
    rows = derived.take("count_histograms", _list(_is_object, n))
    highest = [n and MESSAGES_LIMIT for n in messages] if repeats else messages
    is_older = settings.rules < RULES
    return LearnedState(
        messages,
        tuple(map(_loaded_histogram, rows, highest)),
        _loaded_calibrations(settings, calibrations),
        top.choice("calibrated_by", ORIGINS),
        _loaded_host_rows(derived, messages),
        load_histograms(histograms, classes, messages, is_older) if settings.has_traits else (),
        top.take("columns", _are_columns) if "columns" in top.values else (),
        *_loaded_lessons(top, settings),
    )


def _loaded_calibrations(settings: ModelSettings, fields: _Fields) -> tuple[Calibrations, ...]:
    return tuple(
        Calibrations(*(_loaded_calibration(s, of_class, settings.rules) for s in settings.scales))
        for of_class in (fields.inner(settings.classes[k]) for k in settings.scored_classes)
    )


def _loaded_lessons(
    top: _Fields, settings: ModelSettings
) -> tuple[tuple[Lesson, ...], tuple[Calibrations, ...]]:
    """Return the lessons that can be taken back, and the calibrations before them.

    None of a model of older rules, which learns nothing and forgets nothing.
    """
    if settings.rules < RULES:
        return (), ()
    sizes, classes = [scale.size for scale in settings.scales], range(len(settings.classes))
    are_inputs = _list(_list(_is_in_nats), len(sizes))

    def is_lesson(row: Any) -> bool:
        if not _list(lambda _: True, len(Lesson._fields))(row):
            return False
        digest, label, inputs = row
        is_known = (digest == "" or is_digest(digest)) and type(label) is int and label in classes
        if not (is_known and _list(are_inputs, len(settings.scored_classes))(inputs)):
            return False
        return all(len(x) in (0, sizes[i]) for xs in inputs for i, x in enumerate(xs))

    lessons = top.take("lessons", _list(is_lesson), "no lessons of its calibrations")
    before = top.inner("before_lessons")
    calibrations = _loaded_calibrations(settings, before) if lessons or before.values else ()
    return tuple(Lesson(*row) for row in lessons), calibrations


def _loaded_histogram(row: dict[str, Any], most: int) -> Histogram:
    """Return the histogram of a class's counts; most: the highest that is possible."""
    loaded = {int(count): n for count, n in row.items()}
    are_written = [*map(str, loaded)] == [*row] and all(map(_is_count, loaded.values()))
    if not are_written or not all(0 <= count <= most for count in loaded):
        raise ValueError("no count histogram, or one of more messages than were learned")
    return loaded


def _loaded_host_rows(derived: _Fields, messages: Row) -> HostRows:
    lines = derived.take("hosts", _list(_list(_is_count, len(messages) + 1)))
    rows = {line[:-1]: line[-1] for line in lines}
    if len(rows) < len(lines) or not all(is_row(row, messages) and n for row, n in rows.items()):
        raise ValueError("no counts of hosts, or a host with more messages than were learned")
    return rows


def _loaded_calibration(scale: calibration.Scale, several: _Fields, rules: int) -> Calibration:
    if scale.name not in several.values and rules < RULES:  # older rules had fewer
        return calibration.untrained(scale)
    fields, size = several.inner(scale.name), scale.size
    precision = fields.take("precision", _list(_list(_is_in_nats, size), size))
    mirrored = ((precision[i][j], precision[j][i]) for i in range(size) for j in range(i))
    is_symmetric = all(math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-9) for a, b in mirrored)
    if not (is_symmetric and calibration.is_positive_definite(precision)):
        raise ValueError("a precision matrix that is not positive definite")
    is_range = _list(_is_in_nats, 2)
    return Calibration(
        fields.take("coefficients", _list(_is_in_nats, size)),
        precision,
        fields.take("ranges", _list(lambda ends: is_range(ends) and ends[0] <= ends[1], size - 1)),
        calibration.Noise(*fields.take("noise", _list(lambda e: _number(0, 1)(e) and e < 1, 2))),
        fields.take("run", lambda run: type(run) is int and abs(run) <= MESSAGES_LIMIT),
    )


def load_histograms(
    fields: Any, classes: Sequence[str], messages: Sequence[int], is_older: bool = False
) -> TraitHistograms:
    """Return the histograms in a file's parsed JSON; raises ValueError, trusts nothing.

    is_older: whether the model may have other traits; one that it lacks is of no message.
    """
    if not isinstance(fields, dict) or not (is_older or tuple(fields) == NAMES):
        raise ValueError("other traits than this program's")
    loaded = []
    for name in NAMES:
        row = fields.get(name, {k: {"lowest": 0, "counts": []} for k in classes})
        is_by_class = isinstance(row, dict) and row.keys() == set(classes)
        if not (is_by_class and all(map(_are_values, row.values()))):
            raise ValueError("no histogram of a trait for each class")
        if any(sum(row[k]["counts"]) > n for k, n in zip(classes, messages, strict=True)):
            raise ValueError("a trait of more messages than were learned")
        counts_by_class = (enumerate(row[k]["counts"], row[k]["lowest"]) for k in classes)
        loaded.append(tuple({value: n for value, n in counts if n} for counts in counts_by_class))
    return tuple(loaded)


# Checks of values


def shown(value: object) -> str:
    """Return a value from a file as an error can show it: short, on one line, in ASCII."""
    text = ascii(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def _number(low: float, high: float) -> Check:
    """Return a check for numbers from low to high; NaN, true and false fail it."""
    return lambda value: type(value) in (int, float) and low <= value <= high


_is_in_nats = _number(-_NATS_LIMIT, _NATS_LIMIT)


def _list(is_one: Check, length: int | None = None) -> Check:
    return lambda v: isinstance(v, list) and length in (None, len(v)) and all(map(is_one, v))


_are_columns = _list(_list(lambda n: isinstance(n, str) and len(n) <= _COLUMN_NAME_LIMIT, 2))


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= MESSAGES_LIMIT


def is_digest(value: object) -> bool:
    """Return whether a value from a file is a digest, as `tokens/tokenized.py` makes them."""
    return isinstance(value, str) and len(value) == _DIGITS and _HEX.issuperset(value)


def _are_classes(names: Any) -> bool:
    # A line end in a name would add a header of its own to marked mail.
    are_labels = _list(lambda n: isinstance(n, str) and normal_label(n) == n.lower() != "")(names)
    return are_labels and 2 <= len(set(names)) == len(names) and UNSURE not in names


_NO_CLASSES = (
    "no list of two or more class names, each a printable line, none of them"
    f" {UNSURE!r}, which is a verdict"
)


def _are_values(values: Any) -> bool:
    """Return whether a trait's values have a histogram, as `dump_histograms` writes it."""
    if not isinstance(values, dict):
        return False
    lowest, counts = values.get("lowest"), values.get("counts")
    if type(lowest) is not int or not isinstance(counts, list) or {*map(type, counts)} - {int}:
        return False
    is_whole = all(counts[:1] + counts[-1:])  # it begins and ends with a value that occurs
    return is_whole and min(counts, default=0) >= 0 <= lowest <= _HIGHEST - len(counts)
