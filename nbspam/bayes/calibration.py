"""Calibration: logistic regression from the features of a message to its log-odds.

    P(spam) = sigmoid(b . x),   x = (1, features),   b ~ N(prior mean, 1 / prior precision)

Each scored class has three calibrations with different features (`CalibrationSpec`): TEXT (the text
and the own fields), FULL (the text and the header channel), and OPENING (the start of the text).
In a model with traits, the trait feature is the last feature of each.  The Gaussian prior keeps b
sensible with few messages.

Training fits b to the features that a message has if it is left out of the counts
(`EvidenceArrays`), so b learns how reliable words are in new messages.  The model keeps b and its
precision matrix L, which suffice to learn more messages one at a time, each left out in the same
way:

    L <- FORGET L + (1 - FORGET) FLOOR           older messages count less and less
    b <- b + s L^-1 x,  s = w (y - sigmoid(b_new . x))         the new mode; s by bisection
    L <- L + w c x x^T                           c = tanh(z / 2) / (2 z), z = b_new . x

- y is 1 for spam, the scored class, and 0 for any other message; w is defined below.
- L decays to FLOOR, a multiple of the prior's precision, and no further, because plain forgetting
  (a covariance divided by 0.995 each time) raised P4.3's 1-ROCA% from 0.1 to 1.8 after a few
  thousand easy messages.
- The usual step of the extended Kalman filter computes s with the old b.  With the new b, s is
  smaller, so one message cannot move b far.
- c is the curvature of the parabola that bounds the message's loss from above and touches it at z
  and -z (Jaakkola and Jordan 2000, "Bayesian parameter estimation via variational methods").  The
  loss's own second derivative, p (1 - p), is near 0 for easy messages, so it would let b move far.
  When 20 spams of 756 mails were learned as ham, updates with p (1 - p) turned the signs of b, and
  100 % of spam was missed; updates with c missed 9.6 %, and no updates 9.4 %.
- To forget a message, the calibration returns to its state before the message, and learns the later
  messages again (`Lesson`).

Wrong labels are mostly wrong in one direction: spam that the user leaves in the inbox is learned as
ham.  So there are two error probabilities (`Noise`; Bootkrajang and Kaban 2012, "Label-noise robust
logistic regression and its applications"; Scott, Blanchard and Handy 2013, "Classification with
asymmetric label noise"): e_ham = P(labelled ham | spam), e_spam = P(labelled spam | ham).

    P(label spam | x) = (1 - e_ham) sigmoid(b . x) + e_spam sigmoid(-b . x)
    w = (1 - e') r / ((1 - e') r + e (1 - r)),   r = P(the label | x) without noise

w is the probability that a label is right; e belongs to that label, e' to the other label.  The fit
finds e_ham and e_spam by EM, which repeats two steps: fit b to the messages, each weighted by w;
set e_ham to the sum of 1 - w over messages labelled ham, divided by the number of spams, and e_spam
likewise.  (The fit leaves out that a message belongs to the other class with probability 1 - w.
Where EM ends, this only multiplies the likelihood of b by a factor.)  An update uses the fit's e,
at least MIN_NOISE, and computes w with the old b.  P(spam) stays sigmoid(b . x): the probability of
the message's class, not of its label.

Without w, a filter that was sure of 600 easy messages ranked badly after one message was taught in
the wrong class.  One e for both directions fits worse than two: where 20 of 202 spams are labelled
ham, the log-likelihood gains -0.6 to 1.5 nats with one e, 15 to 21 nats with two.

The calibration keeps the range of each feature in the messages it was fitted to.  A feature beyond
its range counts as the end of the range, because its meaning there is unknown.  Features that are
sums over words may reach +-3 in any case, because few messages show too narrow a range.

Processors add in different orders, and their logarithms differ in the last digit.  So the inputs
are rounded before learning (`round_inputs`), and the results before they are kept
(`round_calibration`), both far more coarsely than these differences of about 1e-14.

`prediction.py` turns a calibration into log-odds.  docs/research/ideas-tried.md lists the
alternatives.  Standard library only: prediction and update are on the one-message path.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from operator import mul
from typing import NamedTuple

from nbspam.bayes.event_model import sigmoid
from nbspam.bayes.evidence import GroupSummary, MessageEvidence

Vector = tuple[float, ...]
Range = tuple[float, float]  # lowest, highest


class CalibrationSpec(NamedTuple):
    """The features of a calibration, and its prior, whose first coefficient is the constant."""

    name: str
    features: tuple[str, ...]
    mean: Vector
    precision: Vector

    @property
    def size(self) -> int:
        """Number of coefficients."""
        return len(self.mean)


# After ten messages, a message whose words are all evidence of spam should already be spam.  The
# length has no weight in the prior.  Means and precisions are near the fit of thousands of mails.
_WORD_FEATURE_NAMES = ("strongest", "sum", "strong", "length")
TEXT = CalibrationSpec(
    "text", _WORD_FEATURE_NAMES, (0.0, 0.5, 1.3, 1.5, 0.0), (0.4, 4.0, 1.5, 2.5, 0.5)
)
FULL = CalibrationSpec(
    "full",
    (*_WORD_FEATURE_NAMES, "header_strongest", "header_sum", "header_strong"),
    (0.0, 0.5, 0.5, 1.0, 0.0, 0.35, 0.35, 1.2),
    (0.4, 4.0, 1.5, 2.5, 0.5, 4.0, 1.5, 2.5),
)
OPENING = CalibrationSpec("opening", _WORD_FEATURE_NAMES, TEXT.mean, TEXT.precision)
CALIBRATION_SPECS = (TEXT, FULL, OPENING)
TRAITS = "traits"  # the name of the feature of the traits
# Log-loss, each message left out, by the prior of the traits' coefficient:
#
#     mean  precision  P1      P2      Enron 1  Enron 2
#     without traits   0.0218  0.0184  0.0252   0.0189
#     0.5   4          0.0202  0.0179  0.0254   0.0190
#     0     10         0.0209  0.0183  0.0253   0.0189
#     0.25  10         0.0205  0.0181  0.0252   0.0190
#
# The fitted coefficients are 0.84, 0.7, 0.4 and 0.2.
_TRAITS_MEAN, _TRAITS_PRECISION = 0.25, 10.0
LENGTH_INDEX = 4  # index of the length's coefficient in every calibration


def calibration_specs(
    with_traits: bool,
) -> tuple[CalibrationSpec, CalibrationSpec, CalibrationSpec]:
    """Return the three specs of a model."""
    return _WITH_TRAITS if with_traits else CALIBRATION_SPECS


def _and_traits(spec: CalibrationSpec) -> CalibrationSpec:
    return CalibrationSpec(
        spec.name,
        (*spec.features, TRAITS),
        (*spec.mean, _TRAITS_MEAN),
        (*spec.precision, _TRAITS_PRECISION),
    )


_WITH_TRAITS = (_and_traits(TEXT), _and_traits(FULL), _and_traits(OPENING))
# Features that are sums over words or traits may reach this value in any case, because few messages
# show too little of the range.
_WORD_RANGE = 3.0
# With fewer messages in the smaller class, the calibration is the prior.
MIN_CLASS_MESSAGES = 2

# 1-ROCA%, and the percentage of spam missed after 20 spams of 756 mails were learned as ham:
#
#     FORGET  P5     P4.1   P4.2    P4.3    missed
#     0.999   0.113  0.200  0.0816  0.101
#     0.995   0.114  0.172  0.0706  0.0910
#     0.99    0.116  0.170  0.0671  0.0882  14.2
#     0.98    0.119  0.169  0.0652  0.0875  22.8
FORGET = 0.99

# The precision that is left when everything is forgotten, as a multiple of the prior's precision;
# for the constant, as a multiple of 1.
_FLOOR = 3.0

# A long run of messages of one class, such as a folder of spam, shows only one side of the boundary
# between the classes, and only raises the constant.  So a run of one class updates the calibration
# only up to MAX_RUN times the mean run length of well-mixed classes.  Errors on one half of
# SpamAssassin's corpus after learning the other half (trained at once: 9):
#
#     MAX_RUN   spam, then ham  ham, then spam  ten mixed batches  one by one
#     no limit  33              45              10                 11
#     10        15              14              10                 13
#     5         15              14              11                 13
MAX_RUN = 10

MIN_LOG_ODDS = 1e-6  # for log-odds closer to 0, the curvature is 1/4

# 1-ROCA%:
#
#     MIN_NOISE  P5      P4.1    P4.2    P4.3
#     0.005      0.1196  0.1725  0.0677  0.0964
#     0.02       0.1191  0.1741  0.0695  0.0974
#     0.05       0.1195  0.1762  0.0714  0.0998
MIN_NOISE = 0.005


# Decimals in the model file.  Precisions grow with the messages to 10^6 and beyond; inputs are kept
# for 50 messages.
DECIMALS, PRECISION_DECIMALS, INPUT_DECIMALS = 9, 6, 4


class Noise(NamedTuple):
    """The shares of wrong labels, 0 to 1, in each direction."""

    lost: float = 0.0  # share of the class that is labelled as another class: e_ham
    gained: float = 0.0  # share of the other classes that is labelled as this class: e_spam

    def label_error_shares(self, labelled: int, rest: int) -> tuple[float, float]:
        """Return the share of wrong labels among the labels of the class, and among the others.

        labelled: number of messages labelled as the class; rest: number labelled as others.
        """
        n = labelled + rest
        lost, gained = self
        members = min(max((labelled - gained * n) / max(1 - lost - gained, 1e-9), 0.0), n)
        return (
            min(1.0, gained * (n - members) / max(1, labelled)),
            min(1.0, lost * members / max(1, rest)),
        )


class Calibration(NamedTuple):
    """A calibration: its coefficients, their precision, and the ranges of its features."""

    coefficients: Vector  # (size,): the constant, then one coefficient for each feature
    precision: tuple[Vector, ...]  # (size, size), symmetric, positive definite
    ranges: tuple[Range, ...]  # (size - 1,): each feature's range in the fitted messages
    noise: Noise = Noise()
    run: int = 0  # length of the last run of one class: positive for spam, negative for the rest


class Calibrations(NamedTuple):
    """One scored class's calibrations, in the order of CALIBRATION_SPECS."""

    text: Calibration
    full: Calibration
    opening: Calibration


def prior_calibration(spec: CalibrationSpec) -> Calibration:
    """Return the prior as a calibration, for a model without scored messages."""
    n = spec.size
    rows = (tuple(p if i == j else 0.0 for j in range(n)) for i, p in enumerate(spec.precision))
    return Calibration(spec.mean, tuple(rows), ((0.0, 0.0),) * (n - 1))


def prior_calibrations(with_traits: bool) -> Calibrations:
    """Return the priors as calibrations."""
    return Calibrations(*map(prior_calibration, calibration_specs(with_traits)))


def round_calibration(calibration: Calibration) -> Calibration:
    """Round the numbers of a calibration to the decimals of the model file."""
    b, precision, _, noise, _ = calibration
    return calibration._replace(
        coefficients=tuple(round(value, DECIMALS) for value in b),
        precision=tuple(tuple(round(v, PRECISION_DECIMALS) for v in row) for row in precision),
        noise=Noise(*(round(share, DECIMALS) for share in noise)),
    )


def round_inputs(x: Vector) -> Vector:
    """Round a message's inputs before a calibration learns from them."""
    return tuple(round(value, INPUT_DECIMALS) for value in x)


def calibration_inputs(evidence: MessageEvidence) -> tuple[Vector, Vector, Vector]:
    """Return x, (1, features), for each of CALIBRATION_SPECS."""
    words, text, header, opening, traits = evidence
    last = () if traits is None else (traits,)
    return (
        (1.0, *words.features, words.length, *last),
        (1.0, *text.features, text.length, *header.features, *last),
        (1.0, *opening.features, opening.length, *last),
    )


def calibration_groups(evidence: MessageEvidence) -> tuple[tuple[GroupSummary, ...], ...]:
    """Return the groups of words that each of CALIBRATION_SPECS summarizes."""
    return (evidence.text_and_fields,), (evidence.text, evidence.header), (evidence.opening,)


@lru_cache
def _bounds(ranges: tuple[Range, ...]) -> list[Range]:
    return [
        (low, high) if i == LENGTH_INDEX else (min(low, -_WORD_RANGE), max(high, _WORD_RANGE))
        for i, (low, high) in enumerate(ranges, 1)
    ]


def clamp_features(calibration: Calibration, x: Vector) -> Vector:
    """Clip each feature of x to its range, which is at least +-3 except for the length."""
    pairs = zip(x[1:], _bounds(calibration.ranges), strict=True)
    return (1.0, *[min(max(value, low), high) for value, (low, high) in pairs])


def update_calibration(
    spec: CalibrationSpec, before: Calibration, x: Vector, is_spam: bool
) -> Calibration:
    """Return the calibration after one more message, scored as if it had not been learned.

    x: (size,), the message's rounded inputs.  In the symbols of the module's docstring:

        direction  L^-1 x            right  w, the probability that the label is right
        spread     x . L^-1 x        step   s
        z          b . x by the old b; by the new b it is z + s spread
    """
    b = before.coefficients
    precision = _decayed_precision(spec, before.precision)
    (direction,) = solve(precision, x)
    spread = dot(x, direction)
    z = dot(b, x)
    right = p_label_right(z, is_spam, before.noise)
    y = float(is_spam)
    ends = sorted((0.0, right * (y - sigmoid(z))))
    step = _fixed_point(lambda s: right * (y - sigmoid(z + s * spread)), *ends)
    run = max(before.run, 0) + 1 if is_spam else min(before.run, 0) - 1
    after = before._replace(
        coefficients=tuple(c + step * d for c, d in zip(b, direction, strict=True)),
        precision=_add_outer_product(precision, x, right * curvature(z + step * spread)),
        ranges=extend_ranges(before, x),
        run=run,
    )
    return round_calibration(after)


class Lesson(NamedTuple):
    """A message that refined the calibrations: enough to learn it again."""

    digest: str  # "" if the message cannot be forgotten or moved
    label: int  # index of its class
    # The inputs for each scored class when the message was scored; () in a long run of one class.
    inputs: tuple[tuple[Vector, ...], ...]


def replay_lesson(
    calibration_specs: Sequence[CalibrationSpec],
    scored: Sequence[int],
    before: Sequence[Calibrations],
    lesson: Lesson,
) -> tuple[Calibrations, ...]:
    """Learn a lesson again; return the calibrations of the scored classes."""
    after = []
    for k, calibrations, xs in zip(scored, before, lesson.inputs, strict=True):
        triples = zip(calibration_specs, calibrations, xs, strict=True)
        fitted = (
            update_calibration(s, old, x, lesson.label == k) if x else old for s, old, x in triples
        )
        after.append(Calibrations(*fitted))
    return tuple(after)


def _decayed_precision(spec: CalibrationSpec, precision: Sequence[Vector]) -> list[list[float]]:
    """Return FORGET L + (1 - FORGET) FLOOR."""
    rows = [[FORGET * value for value in row] for row in precision]
    for i, prior in enumerate(spec.precision):
        rows[i][i] += (1 - FORGET) * _FLOOR * (prior if i else 1.0)
    return rows


def p_label_right(log_odds: float, is_spam: bool, noise: Noise) -> float:
    """Return w, the probability that a label is right; log_odds: the log-odds of spam, in nats."""
    # For a message of the other classes, lost and gained change places.
    lost, gained = (max(share, MIN_NOISE) for share in noise[:: 1 if is_spam else -1])
    r = sigmoid(log_odds if is_spam else -log_odds)
    return (1 - lost) * r / ((1 - lost) * r + gained * (1 - r))


def curvature(log_odds: float) -> float:
    """Return tanh(z / 2) / (2 z), the curvature of the parabola above a message's loss."""
    z = max(abs(log_odds), MIN_LOG_ODDS)
    return math.tanh(z / 2) / (2 * z)


def _add_outer_product(
    matrix: Sequence[Sequence[float]], x: Vector, factor: float
) -> tuple[Vector, ...]:
    """Return matrix + factor x x^T."""
    return tuple(
        tuple(value + factor * a * b for value, b in zip(row, x, strict=True))
        for row, a in zip(matrix, x, strict=True)
    )


def extend_ranges(calibration: Calibration, x: Vector) -> tuple[Range, ...]:
    """Return the ranges, extended by one message."""
    known = calibration.ranges
    if known == ((0.0, 0.0),) * len(known):  # no message so far
        return tuple((value, value) for value in x[1:])
    pairs = zip(known, x[1:], strict=True)
    return tuple((min(low, value), max(high, value)) for (low, high), value in pairs)


def exceeds_run_limit(before: Calibration, is_spam: bool, share: float) -> bool:
    """Return whether the run of this class is too long for one more message to be learned.

    share: the class's share of all messages, 0 to below 1.
    """
    run = before.run if is_spam else -before.run
    return run * (1 - share) >= MAX_RUN


def is_positive_definite(matrix: Sequence[Sequence[float]]) -> bool:
    """Return whether a symmetric matrix is positive definite, so that `solve` may divide."""
    try:
        return all(row[i] > 0 for i, row in enumerate(_eliminate(map(list, matrix))))
    except ZeroDivisionError:
        return False


def _eliminate(equations: Iterable[list[float]]) -> list[list[float]]:
    """Bring equations into upper triangular form by Gaussian elimination; changes the given lists.

    A symmetric and positive definite matrix needs no pivoting (Golub and Van Loan, 4.2).
    """
    rows = list(equations)
    for i, row in enumerate(rows):
        for below in rows[i + 1 :]:
            factor = below[i] / row[i]
            for j in range(i, len(row)):
                below[j] -= factor * row[j]
    return rows


def dot(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the inner product, exactly rounded."""
    return math.fsum(map(mul, a, b))  # twice as fast as a generator


def solve(matrix: Sequence[Sequence[float]], *rights: Sequence[float]) -> list[list[float]]:
    """Solve matrix v = right for each right; the matrix is symmetric and positive definite."""
    rows = _eliminate([*row, *values] for row, *values in zip(matrix, *rights, strict=True))
    n = len(rows)
    solutions = []
    for k in range(n, n + len(rights)):
        solution = [0.0] * n
        for i in reversed(range(n)):
            known = sum(rows[i][j] * solution[j] for j in range(i + 1, n))
            solution[i] = (rows[i][k] - known) / rows[i][i]
        solutions.append(solution)
    return solutions


def _fixed_point(falling: Callable[[float], float], low: float, high: float) -> float:
    """Return the s with falling(s) = s, by bisection, to the last bit."""
    for _ in range(60):
        middle = (low + high) / 2
        if middle < falling(middle):
            low = middle
        else:
            high = middle
    return (low + high) / 2
