"""The metadata as the model file has them: written, and read with nothing trusted."""

import json
import math
from collections.abc import Sequence
from typing import Any

from nbspam.bayes.calibration import Calibration, Calibrations, Scale, is_positive_definite
from nbspam.bayes.event_model import EVENT_MODELS, Histogram
from nbspam.bayes.trait_model import TRAIT_MODELS, Values, Variances
from nbspam.labels import UNSURE, normal_label
from nbspam.store.metadata import (
    ALPHA_LIMIT,
    ALPHA_MIN,
    MESSAGES_LIMIT,
    ORIGINS,
    SCORINGS,
    HostRows,
    LearnedState,
    Metadata,
    ModelSettings,
    TraitHistograms,
)
from nbspam.tokens.kinds import NAMES
from nbspam.tokens.tokenized import NAME, RULES

FORMAT = "nbspam-model"
VERSION = 1
_NATS_LIMIT = 1e15
_NUMBER_LIMIT = 1e300
_DIGITS, _HEX = 32, frozenset("0123456789abcdef")  # of a digest
_SHOWN = 40  # characters of a wrong value that an error shows


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
        "calibration": _dumped(settings, learned.calibrations),
        "calibrated_by": learned.calibrated_by,
        "recent": learned.recent,
        "spam_cutoff": settings.spam_cutoff,
        "ham_cutoff": settings.ham_cutoff,
        "derived": derived_fields(metadata),
    }
    lines = [f'{{"format": "{FORMAT}", "version": {VERSION},']
    lines += [f'"{key}": {json.dumps(value, ensure_ascii=False)},' for key, value in fields.items()]
    return "\n".join(lines) + "\n"


def _dumped(settings: ModelSettings, calibrations: tuple[Calibrations, ...]) -> dict[str, Any]:
    """Return the calibrations by the name of their class."""
    return {
        settings.classes[k]: {
            name: calibration._asdict() for name, calibration in both._asdict().items()
        }
        for k, both in zip(settings.scored_classes, calibrations, strict=True)
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
    alpha, prior, positive = fields["alpha"], fields["prior"], fields["positive"]
    _require(_is_number(alpha) and ALPHA_MIN <= alpha <= ALPHA_LIMIT, "an alpha out of bounds")
    _require(prior is None or (_is_number(prior) and 0 < prior < 1), "a prior not between 0 and 1")
    _require(positive is None or positive in classes, "a positive class that is not among them")
    _require(positive is not None or len(classes) > 2, "no positive class")
    _require(
        len(classes) > 2 or positive == classes[1],
        "its positive class first: the positive class must be listed last",
    )
    for key, known in (("scoring", SCORINGS), ("event_model", EVENT_MODELS)):
        _require(fields[key] in known, f"an unknown {key.replace('_', ' ')} {shown(fields[key])}")
    traits, variances = _load_traits(fields["traits"])
    spam_cutoff, ham_cutoff = fields["spam_cutoff"], fields["ham_cutoff"]
    for name, cutoff in (("spam", spam_cutoff), ("ham", ham_cutoff)):
        _require(_is_number(cutoff) and 0 <= cutoff <= 1, f"a {name} cut-off not between 0 and 1")
    _require(ham_cutoff <= spam_cutoff, "a ham cut-off above the spam cut-off")
    return ModelSettings(
        classes=classes,
        positive=positive,
        alpha=float(alpha),
        prior=prior,
        scoring=fields["scoring"],
        event_model=fields["event_model"],
        traits=traits,
        variances=variances,
        spam_cutoff=float(spam_cutoff),
        ham_cutoff=float(ham_cutoff),
    )


def _load_traits(traits: Any) -> tuple[str, Variances]:
    """Return the trait model, and how it estimates variances."""
    _require(isinstance(traits, dict), "no traits")
    name, smoothing, prior = traits["model"], traits["variance_smoothing"], traits["variance_prior"]
    shared = traits["shared_variance"]
    _require(name in TRAIT_MODELS, f"an unknown trait model {shown(name)}")
    _require(
        _is_number(smoothing) and 0 <= smoothing <= ALPHA_LIMIT,
        "a variance smoothing out of bounds",
    )
    _require(_is_number(prior) and 0 <= prior <= ALPHA_LIMIT, "a variance prior out of bounds")
    _require(type(shared) is bool, "no word on whether variances are shared")
    return name, Variances(float(smoothing), float(prior), shared)


def _load_learned(fields: dict[str, Any], settings: ModelSettings) -> LearnedState:
    n_classes = len(settings.classes)
    messages, calibrations = fields["messages"], fields["calibration"]
    _require(_are_counts(messages, n_classes), "no message count per class")
    _require(fields["calibrated_by"] in ORIGINS, "a calibration of unknown origin")
    _require(isinstance(calibrations, dict), "no calibration")
    histograms, recent = fields["traits"]["histograms"], fields.get("recent", [])
    _require(isinstance(recent, list) and all(map(is_digest, recent)), "no list of recent messages")
    return LearnedState(
        messages=tuple(messages),
        count_histograms=_load_derived(fields["derived"], messages, settings.counts.repeats),
        calibrations=tuple(
            Calibrations(
                *(
                    _load_calibration(scale, calibrations[settings.classes[k]][scale.name])
                    for scale in settings.scales
                )
            )
            for k in settings.scored_classes
        ),
        calibrated_by=fields["calibrated_by"],
        host_rows=_load_host_rows(fields["derived"], messages),
        trait_histograms=(
            load_histograms(histograms, settings.classes, messages, settings.rules < RULES)
            if settings.has_traits
            else ()
        ),
        recent=tuple(recent),
    )


def _load_derived(derived: Any, messages: list[int], repeats: bool) -> tuple[Histogram, ...]:
    """Return the count histograms; the other derived numbers are validated and recomputed."""
    _require(isinstance(derived, dict), "no derived numbers")
    _require(_is_count(derived["tokens"]), "no number of tokens")
    histograms = derived["count_histograms"]
    _require(
        isinstance(histograms, list) and len(histograms) == len(messages), "no count histograms"
    )
    bias = derived["bias"]
    _require(
        isinstance(bias, list)
        and len(bias) == len(messages)
        and all(
            (value is None and not n) or (_is_number(value) and abs(value) <= _NATS_LIMIT)
            for value, n in zip(bias, messages, strict=True)
        ),
        "no bias per class",
    )
    return tuple(
        _load_histogram(row, n if not repeats else n and MESSAGES_LIMIT)
        for row, n in zip(histograms, messages, strict=True)
    )


def _load_host_rows(derived: dict[str, Any], messages: list[int]) -> HostRows:
    width = len(messages)
    rows: dict[tuple[int, ...], int] = {}
    _require(isinstance(derived["hosts"], list), "no hosts")
    for line in derived["hosts"]:
        _require(_are_counts(line, width + 1) and any(line[:-1]) and line[-1], "no counts of hosts")
        row = tuple(line[:-1])
        _require(row not in rows, "duplicate counts of hosts")
        _require(all(map(int.__le__, row, messages)), "a host with more mails than there are")
        rows[row] = line[-1]
    return rows


def _load_calibration(scale: Scale, value: Any) -> Calibration:
    _require(isinstance(value, dict), "no calibration")
    size = scale.size
    rows, coefficients, ranges = value["precision"], value["coefficients"], value["ranges"]
    _require(_are_numbers(coefficients, size), "no coefficients")
    _require(all(abs(b) <= _NATS_LIMIT for b in coefficients), "coefficients out of bounds")
    _require(
        isinstance(ranges, list)
        and len(ranges) == size - 1
        and all(_are_numbers(ends, 2) and ends[0] <= ends[1] for ends in ranges),
        "no ranges",
    )
    _require(
        all(abs(end) <= _NATS_LIMIT for ends in ranges for end in ends), "ranges out of bounds"
    )
    _require(
        isinstance(rows, list)
        and len(rows) == size
        and all(_are_numbers(row, size) for row in rows),
        "no precision",
    )
    _require(_is_precision(rows), "a precision matrix that is not positive definite")
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


def _is_precision(rows: list[list[float]]) -> bool:
    """Return whether a matrix is symmetric, bounded and positive definite."""
    return all(
        rows[i][i] > 0
        and math.isclose(rows[i][j], rows[j][i], rel_tol=1e-6, abs_tol=1e-9)
        and rows[i][j] ** 2 <= 1.000001 * rows[i][i] * rows[j][j] <= _NATS_LIMIT**2
        for i in range(len(rows))
        for j in range(len(rows))
    ) and is_positive_definite(rows)


def _load_histogram(row: Any, most: int) -> Histogram:
    """Return the histogram of a class's counts; most: the highest that is possible."""
    _require(isinstance(row, dict), "no count histograms")
    loaded = {int(count): tokens for count, tokens in row.items() if str(int(count)) == count}
    _require(len(loaded) == len(row), "a count that is not a plain number")
    _require(
        all(0 <= count <= most and _is_count(n) for count, n in loaded.items()),
        "a token counted in more messages than there are",
    )
    return loaded


def shown(value: object) -> str:
    """Return a value from a file as an error can show it: short, on one line, in ASCII."""
    text = ascii(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def _require(condition: object, otherwise: str) -> None:
    if not condition:
        raise ValueError(otherwise)


def _is_number(value: object) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return -_NUMBER_LIMIT < value < _NUMBER_LIMIT  # not NaN, and no integer beyond floating point


def _are_numbers(values: object, length: int) -> bool:
    return isinstance(values, list) and len(values) == length and all(map(_is_number, values))


def is_digest(value: object) -> bool:
    """Return whether a value from a file is a digest, as `tokens/tokenized.py` makes them."""
    return isinstance(value, str) and len(value) == _DIGITS and _HEX.issuperset(value)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= MESSAGES_LIMIT


def _are_counts(values: object, length: int) -> bool:
    return isinstance(values, list) and len(values) == length and all(map(_is_count, values))


_HIGHEST = 1_000  # no trait's scale goes as far


def dump_histograms(
    histograms: TraitHistograms, classes: Sequence[str]
) -> dict[str, dict[str, dict[str, object]]]:
    """Return the histograms as the file has them; {} of a model without traits.

        {"words": {"ham": {"lowest": 12, "counts": [1, 0, 3]}, "spam": …}, …}

    `counts` begins with how many messages have the lowest value, and ends with the highest's.
    """
    return {
        name: dict(zip(classes, map(_dumped_values, row), strict=True))
        for name, row in zip(NAMES if histograms else (), histograms, strict=True)
    }


def _dumped_values(values: Values) -> dict[str, object]:
    lowest, highest = min(values, default=0), max(values, default=-1)
    return {
        "lowest": lowest,
        "counts": [values.get(value, 0) for value in range(lowest, highest + 1)],
    }


def load_histograms(
    fields: Any, classes: Sequence[str], messages: Sequence[int], is_older: bool = False
) -> TraitHistograms:
    """Return the histograms in a file's parsed JSON; raises ValueError, trusts nothing.

    is_older: whether the model may have other traits; one that it lacks is of no message.
    """
    if not isinstance(fields, dict) or (tuple(fields) != NAMES and not is_older):
        raise ValueError("other traits than this program's")
    known = [fields[name] for name in NAMES if name in fields]
    if not all(isinstance(row, dict) and set(row) == set(classes) for row in known):
        raise ValueError("no histogram of a trait for each class")
    return tuple(
        tuple(_loaded_values(fields[name][k], n) for k, n in zip(classes, messages, strict=True))
        if name in fields
        else ({},) * len(classes)
        for name in NAMES
    )


def _loaded_values(fields: Any, messages: int) -> Values:
    if not isinstance(fields, dict):
        raise ValueError("no histogram of a trait")
    lowest, counts = fields.get("lowest"), fields.get("counts")
    if (
        type(lowest) is not int
        or not isinstance(counts, list)
        or not 0 <= lowest <= _HIGHEST - len(counts)
        or not set(map(type, counts)) <= {int}
        or (counts and (min(counts) < 0 or not counts[0] or not counts[-1]))
    ):
        raise ValueError("no histogram of a trait")
    if sum(counts) > messages:
        raise ValueError("a trait of more messages than there are")
    return {value: n for value, n in enumerate(counts, lowest) if n}
