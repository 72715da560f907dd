"""The head of a model: all it holds but the tokens and the ledger.

Of the size of a mail at most, it is read whole for every message; the tokens are not.
"""

import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from nbspam.bayes.bernoulli import log_absent_sum, log_priors
from nbspam.bayes.calibration import SIZE, Calibration, is_positive_definite
from nbspam.labels import UNSURE, normal_label
from nbspam.tokens.tokenizer import RULES

FORMAT = "nbspam-model"
VERSION = 1
BERNOULLI = "bernoulli"  # the textbook rule, and its plain posterior
EVIDENCE = "evidence"  # features of the same weights, blended and calibrated
SCORINGS = (EVIDENCE, BERNOULLI)
# Where the calibration began; `train --update` refines it, whatever it was.
TRAINING = "training"  # fitted to every training message, each left out
MERGING = "merging"  # put together from the calibrations of models that were merged
DEFAULT = "default"  # not fitted: what is likely before any message was scored
ORIGINS = (TRAINING, MERGING, DEFAULT)
# Beyond the one every weight is nothing; below the other logarithms run out of digits.
ALPHA_MIN, ALPHA_LIMIT = 1e-300, 1e6
_NATS_LIMIT = 1e15
MESSAGES_LIMIT = 2**53  # counts are exact in floating point up to here
_SHOWN = 40  # characters of a wrong value that a sentence holds


class Metadata(NamedTuple):
    """Everything a model says of itself."""

    classes: tuple[str, ...]  # in the order of every list of counts
    messages: tuple[int, ...]  # learned, per class
    alpha: float  # pseudo-count of each outcome, in messages
    prior: float | None  # P(positive class) where the user fixed it
    positive: str | None  # the class that "probability" speaks of; None only with 3 or more
    scoring: str
    calibrations: tuple[Calibration, ...]  # one for each of `scored_classes`
    calibrated_by: str  # one of ORIGINS
    spam_cutoff: float  # where spam begins unless the user says otherwise
    n_tokens: int
    count_histograms: tuple[Mapping[int, int], ...]  # per class: count -> tokens that have it
    bias: tuple[float, ...]  # derived: b_k, in nats

    @property
    def positive_index(self) -> int | None:
        """Return which of the classes is the positive one."""
        return None if self.positive is None else self.classes.index(self.positive)

    @property
    def is_one_sided(self) -> bool:
        """Return whether fewer than two classes have a message yet: no ground for any verdict."""
        return sum(map(bool, self.messages)) < 2

    @property
    def scored_classes(self) -> tuple[int, ...]:
        """Return the classes whose evidence is weighed: the positive one of two, each of more."""
        if len(self.classes) == 2:
            return (self.positive_index or 0,)
        return tuple(range(len(self.classes)))


def with_bias(head: Metadata) -> Metadata:
    """Return the head with its bias computed from its counts."""
    priors = log_priors(head.messages, head.prior, head.positive_index)
    bias = (
        prior + log_absent_sum(histogram, n, head.alpha)
        for prior, histogram, n in zip(priors, head.count_histograms, head.messages, strict=True)
    )
    return head._replace(bias=tuple(bias))


def dump_metadata(head: Metadata) -> str:
    """Return the lines of the file that come before its tokens."""
    histogram = [{str(count): row[count] for count in sorted(row)} for row in head.count_histograms]
    fields = {
        "tokenizer": {"rules": RULES},
        "classes": head.classes,
        "messages": head.messages,
        "alpha": head.alpha,
        "prior": head.prior,
        "positive": head.positive,
        "scoring": head.scoring,
        "calibration": {
            head.classes[k]: calibration._asdict()
            for k, calibration in zip(head.scored_classes, head.calibrations, strict=True)
        },
        "calibrated_by": head.calibrated_by,
        "spam_cutoff": head.spam_cutoff,
        "derived": {
            "tokens": head.n_tokens,
            "bias": [b if math.isfinite(b) else None for b in head.bias],
            "count_histograms": histogram,
        },
    }
    lines = [f'{{"format": "{FORMAT}", "version": {VERSION},']
    lines += [f'"{key}": {json.dumps(value, ensure_ascii=False)},' for key, value in fields.items()]
    return "\n".join(lines) + "\n"


class MetadataError(ValueError):
    """The head is not one this program can use; the text says what is wrong, as a clause."""


def load_metadata(fields: Any) -> Metadata:
    """Return the head in a model file's parsed JSON; raises MetadataError, and trusts nothing."""
    if not isinstance(fields, dict) or fields.get("format") != FORMAT:
        raise MetadataError("is not an nbspam model; name a file that nbspam train wrote")
    version = fields.get("version")
    if type(version) is not int or version < 1:
        raise MetadataError("has no valid version; restore it from a copy or train again")
    if version > VERSION:
        raise MetadataError(
            f"is of version {shown(version)}, newer than this program's {VERSION}; update nbspam"
        )
    tokenizer = fields.get("tokenizer")
    rules = tokenizer.get("rules") if isinstance(tokenizer, dict) else None
    if rules != RULES:
        raise MetadataError(
            f"was made with token rules {shown(rules)}, this program's are {RULES}; train again"
        )
    try:
        return _load(fields)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        reason = f"no {shown(error.args[0])}" if isinstance(error, KeyError) else str(error)
        raise MetadataError(
            f"is damaged: it has {reason}; restore it from a copy or train again"
        ) from None


def _load(fields: dict[str, Any]) -> Metadata:
    classes, messages, derived = fields["classes"], fields["messages"], fields["derived"]
    _require(
        isinstance(classes, list)
        and 2 <= len(set(map(str, classes))) == len(classes)
        # A line end in a name would write a header of its own into passed mail.
        and all(isinstance(name, str) and name and normal_label(name) == name for name in classes),
        "no list of two class names or more, each fit to stand in a line",
    )
    _require(UNSURE not in classes, f"a class called {UNSURE!r}, which is a verdict")
    _require(_are_counts(messages, len(classes)), "no message count per class")
    alpha, prior, positive = fields["alpha"], fields["prior"], fields["positive"]
    _require(_is_number(alpha) and ALPHA_MIN <= alpha <= ALPHA_LIMIT, "an alpha out of bounds")
    _require(prior is None or (_is_number(prior) and 0 < prior < 1), "a prior not within 0 and 1")
    _require(positive is None or positive in classes, "a positive class that is none of its own")
    _require(positive is not None or len(classes) > 2, "no positive class")
    _require(len(classes) > 2 or positive == classes[1], "its positive class in the wrong place")
    _require(fields["scoring"] in SCORINGS, f"an unknown scoring {shown(fields['scoring'])}")
    _require(fields["calibrated_by"] in ORIGINS, "a calibration of unknown origin")
    cutoff = fields["spam_cutoff"]
    _require(_is_number(cutoff) and 0 <= cutoff <= 1, "a spam cut-off not within 0 and 1")
    _require(isinstance(derived, dict), "no derived numbers")
    _require(_is_count(derived["tokens"]), "no number of tokens")
    histogram = derived["count_histograms"]
    _require(isinstance(histogram, list) and len(histogram) == len(classes), "no counts of counts")
    bias = derived["bias"]
    _require(
        isinstance(bias, list)
        and len(bias) == len(classes)
        and all(
            (value is None and not n) or (_is_number(value) and abs(value) <= _NATS_LIMIT)
            for value, n in zip(bias, messages, strict=True)
        ),
        "no bias per class",
    )
    head = Metadata(
        classes=tuple(classes),
        messages=tuple(messages),
        alpha=float(alpha),
        prior=prior,
        positive=positive,
        scoring=fields["scoring"],
        calibrations=(),
        calibrated_by=fields["calibrated_by"],
        spam_cutoff=float(cutoff),
        n_tokens=derived["tokens"],
        count_histograms=tuple(
            _load_histogram(row, n) for row, n in zip(histogram, messages, strict=True)
        ),
        bias=tuple(-math.inf if value is None else float(value) for value in bias),
    )
    calibrations = fields["calibration"]
    _require(isinstance(calibrations, dict), "no calibration")
    return head._replace(
        calibrations=tuple(
            _load_calibration(calibrations[head.classes[k]]) for k in head.scored_classes
        )
    )


def _load_calibration(value: Any) -> Calibration:
    _require(isinstance(value, dict), "no calibration")
    rows = value["precision"]
    coefficients = value["coefficients"]
    _require(_are_numbers(coefficients), "no coefficients")
    _require(all(abs(b) <= _NATS_LIMIT for b in coefficients), "coefficients out of bounds")
    _require(
        isinstance(rows, list) and len(rows) == SIZE and all(map(_are_numbers, rows)),
        "no precision",
    )
    _require(
        all(
            rows[i][i] > 0
            and math.isclose(rows[i][j], rows[j][i], rel_tol=1e-6, abs_tol=1e-9)
            and rows[i][j] ** 2 <= 1.000001 * rows[i][i] * rows[j][j] <= _NATS_LIMIT**2
            for i in range(SIZE)
            for j in range(SIZE)
        )
        and is_positive_definite(rows),
        "a precision that is none",
    )
    run = value["run"]
    _require(type(run) is int and abs(run) <= MESSAGES_LIMIT, "no length of a run")
    return Calibration(tuple(map(float, value["coefficients"])), tuple(map(tuple, rows)), run)


def _load_histogram(row: Any, messages: int) -> dict[int, int]:
    _require(isinstance(row, dict), "no counts of counts")
    loaded = {int(count): tokens for count, tokens in row.items() if str(int(count)) == count}
    _require(len(loaded) == len(row), "a count that is no plain number")
    _require(
        all(0 <= count <= messages and _is_count(n) for count, n in loaded.items()),
        "a token counted in more messages than there are",
    )
    return loaded


def shown(value: object) -> str:
    """Return a value out of a file as a sentence can hold it: short, on one line, in ASCII."""
    text = ascii(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def _require(condition: object, otherwise: str) -> None:
    if not condition:
        raise ValueError(otherwise)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _are_numbers(values: object) -> bool:
    return isinstance(values, list) and len(values) == SIZE and all(map(_is_number, values))


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= MESSAGES_LIMIT


def _are_counts(values: object, length: int) -> bool:
    return isinstance(values, list) and len(values) == length and all(map(_is_count, values))
