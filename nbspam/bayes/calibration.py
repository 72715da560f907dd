"""The calibration: how the features of a message are combined into calibrated log-odds.

Logistic regression of "is it spam" on the features, with a Gaussian prior that keeps it sensible
with few messages:

    P(spam) = sigmoid(b . x),   x = (1, features),   b ~ N(prior mean, 1 / prior precision)

There are two for each scored class, of different features (`Scale`): TEXT of the text and the own
fields, FULL of the text and the header channel.  In a model with traits both have their feature
too, as the last.

Training fits them to leave-one-out features, so that they learn how reliable words are in messages
that they were not counted in (`EvidenceRows`).  Of a fit it keeps the mode of b, and the
precision L there (the second derivative: Laplace's approximation).  That is enough to go on
learning one message at a time, each scored as if its words had not been counted:

    L <- FORGET L + (1 - FORGET) FLOOR           old messages count less and less
    b <- b + s L^-1 x,  s = w (y - sigmoid(b_new . x))         the new mode; one unknown, s
    L <- L + w p (1 - p) x x^T                   at the new mode

L decays to FLOOR and never below it: plain forgetting (a covariance divided by 0.995 each time)
raised P4.3's 1-ROCA% from 0.1 to 1.8 after a few thousand easy messages.
The usual step of the extended Kalman filter computes s at the old b; at the new b, s shrinks as the
step grows.  `undone` takes the last message back out: the same equations, solved for the old b, L.

People err, so a label is wrong with probability e (Bootkrajang and Kaban 2012, "Label-noise robust
logistic regression and its applications"):

    P(label spam | x) = (1 - e) sigmoid(b . x) + e sigmoid(-b . x)
    w = (1 - e) r / ((1 - e) r + e (1 - r)),   r = P(the label | x) without noise

w is the probability that a label is right.  The fit finds e by EM: it fits b to the messages, each
weighted by w, and e is the mean of 1 - w.  (What is left out, that with 1 - w a message is of the
other class, only multiplies the likelihood of b by (1 - e) / (1 - 2e) where EM ends.)  An update
takes e from the fit, LEAST_NOISE at least, and w from the old b.  P(spam) stays sigmoid(b . x):
what a message is, not what it would be called.
Without w, one slip costs a filter that was sure of 600 easy messages its ranking: where all are
easy, L is near the prior's, and b is thrown far off (P9; docs/research/ideas-tried.md).

With the fit goes the range of each feature in the messages it was fitted to, each left out: a
feature beyond its range is held at the end of it, since nothing is known of what it means there.
Sums over words may go to +-3 even where less was seen: left-out words of few messages are weak.

Calibrations that were learned from different messages are combined by `pooled`:

    b = sum_i n_i b_i / sum_i n_i,   e likewise,   L = P + sum_i (L_i - P)

n_i is the number of messages in the smaller class of model i, P the precision of the prior, so
that L_i - P is what its messages contributed.
By the textbook (each posterior is prior times likelihood, and likelihoods multiply) b would solve
L b = P m + sum_i (L_i b_i - P m).  But models of different mail do not differ by chance alone,
and where they disagree, that b can lie outside the range of theirs: docs/research/ideas-tried.md
has both measured.

Standard library only: the update is on the one-message path.
"""

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, Protocol

from nbspam.bayes.evidence import LENGTH_CENTRE, Evidence, EvidenceRows, Group
from nbspam.bayes.posterior import sigmoid

if TYPE_CHECKING:  # one message is classified without numpy
    from nbspam.bayes.matrix import Booleans, Floats

Vector = tuple[float, ...]
Range = tuple[float, float]  # from, to


class Scale(NamedTuple):
    """The features of a calibration, and its prior; the constant comes first, then `features`."""

    name: str
    features: tuple[str, ...]
    mean: Vector
    precision: Vector

    @property
    def size(self) -> int:
        """The number of coefficients."""
        return len(self.mean)


# A filter of ten messages should already call a message spam whose words are all evidence of spam;
# the length has no weight until messages give it one.  The means and precisions are near what
# thousands of mails give.
_WORDS = ("strongest", "sum", "strong", "length")
TEXT = Scale("text", _WORDS, (0.0, 0.5, 1.3, 1.5, 0.0), (0.4, 4.0, 1.5, 2.5, 0.5))
FULL = Scale(
    "full",
    (*_WORDS, "header_strongest", "header_sum", "header_strong"),
    (0.0, 0.5, 0.5, 1.0, 0.0, 0.35, 0.35, 1.2),
    (0.4, 4.0, 1.5, 2.5, 0.5, 4.0, 1.5, 2.5),
)
SCALES = (TEXT, FULL)
TRAITS = "traits"  # the name of the feature of the traits
# Fits to P1, P2 and the first halves of Enron 1 and 2 give .84, .7, .4 and .2.  Left-out log-loss
# of the four, without traits .0218 .0184 .0252 .0189: with mean .5, precision 4 .0202 .0179 .0254
# .0190, with 0 and 10 .0209 .0183 .0253 .0189, so .0205 .0181 .0252 .0190, at no cost to Enron.
_TRAITS_MEAN, _TRAITS_PRECISION = 0.25, 10.0
LENGTH = 4  # the index of the length's coefficient in both


def scales(with_traits: bool) -> tuple[Scale, Scale]:
    """Return the two scales of a model."""
    return _WITH_TRAITS if with_traits else SCALES


def _and_traits(scale: Scale) -> Scale:
    return Scale(
        scale.name,
        (*scale.features, TRAITS),
        (*scale.mean, _TRAITS_MEAN),
        (*scale.precision, _TRAITS_PRECISION),
    )


_WITH_TRAITS = (_and_traits(TEXT), _and_traits(FULL))
# The features that are sums over words or traits may go as far as this, whatever was seen: a few
# messages show too little of the range.
_WORD_RANGE = 3.0
# Fewer messages of the smaller class than this are no basis for a fit: the prior it is.
FEWEST = 2

# Measured online, 1-ROCA% of P5 and P4.2: 0.432 and 0.085 at 1, 0.409 and 0.070 at 0.999, 0.432
# and 0.067 at 0.998.
FORGET = 0.999

# The precision that is left when everything is forgotten, in terms of the prior's (the constant's
# counts as 1).
_FLOOR = 3.0

# A long run of one class does not show where that class ends: a folder of spam, learned by itself,
# only raises the constant.  So a run of one class updates the calibration up to RUN times the mean
# length of a run where the classes are well mixed, and no more.  Errors on one half of
# SpamAssassin's corpus, without a limit and with a limit of 10: 33 and 15 when the other half was
# learned as all spam, then all ham; 45 and 14 the other way round; 10 and 10 in ten mixed batches;
# 11 and 13 one by one; 9 when it was trained on at once.  (5: 15, 14, 11 and 13.)
RUN = 10

# 1-ROCA% of P5 and P4's three with .005, .02 and .05: .1196 .1725 .0677 .0964; .1191 .1741 .0695
# .0974; .1195 .1762 .0714 .0998.
LEAST_NOISE = 0.005


class Calibration(NamedTuple):
    """A calibration: its coefficients, their precision, and the ranges of its features."""

    coefficients: Vector  # (size,): the constant, then one a feature
    precision: tuple[Vector, ...]  # (size, size), symmetric, positive definite
    ranges: tuple[Range, ...]  # (size - 1,): of each feature, in the messages it was fitted to
    noise: float = 0.0  # e, as it was fitted
    run: int = 0  # messages of one class that came last: positive for spam, negative for the rest


class Calibrations(NamedTuple):
    """The two calibrations of a scored class, in the order of SCALES."""

    text: Calibration
    full: Calibration


def untrained(scale: Scale) -> Calibration:
    """Return the calibration before any message was scored: the prior."""
    n = scale.size
    rows = (tuple(p if i == j else 0.0 for j in range(n)) for i, p in enumerate(scale.precision))
    return Calibration(scale.mean, tuple(rows), ((0.0, 0.0),) * (n - 1))


def untrained_calibrations(with_traits: bool) -> Calibrations:
    """Return both calibrations of a model before any message was scored."""
    return Calibrations(*map(untrained, scales(with_traits)))


def inputs(evidence: Evidence) -> tuple[Vector, Vector]:
    """Return x of a message for each of SCALES: 1, then its features."""
    words, text, header, traits = evidence
    last = () if traits is None else (traits,)
    return (
        (1.0, *words.features, words.length, *last),
        (1.0, *text.features, text.length, *header.features, *last),
    )


def groups(evidence: Evidence) -> tuple[tuple[Group, ...], tuple[Group, ...]]:
    """Return the groups of words whose features each of SCALES has."""
    return (evidence.text_and_fields,), (evidence.text, evidence.header)


def first_inputs(scale: Scale) -> tuple[int, ...]:
    """Return where the word features of each group begin in x."""
    return (1,) if scale.name == TEXT.name else (1, 1 + LENGTH)


@lru_cache(maxsize=8)
def bounds(ranges: tuple[Range, ...]) -> tuple[Range, ...]:
    """Return how far each feature may go: its range, and all but the length at least +-3."""
    return tuple(
        (low, high) if index == LENGTH else (min(low, -_WORD_RANGE), max(high, _WORD_RANGE))
        for index, (low, high) in enumerate(ranges, 1)
    )


def clamped(calibration: Calibration, x: Vector) -> Vector:
    """Return x with each feature held within its bounds."""
    limits = bounds(calibration.ranges)
    return (1.0, *(min(max(v, lo), hi) for v, (lo, hi) in zip(x[1:], limits, strict=True)))


def update(scale: Scale, before: Calibration, x: Vector, is_spam: bool) -> Calibration:
    """Return the calibration after one more message, scored as if it had not been learned.

    x: (size,), the message's inputs.
    """
    b = before.coefficients
    precision = _rested(scale, before.precision, FORGET)
    direction = solve(precision, x)
    spread = _dot(x, direction)
    z = _dot(b, x)
    right = p_right(z, is_spam, before.noise)
    step = _step(z, spread, is_spam, right)
    run = max(before.run, 0) + 1 if is_spam else min(before.run, 0) - 1
    return before._replace(
        coefficients=tuple(c + step * d for c, d in zip(b, direction, strict=True)),
        precision=_plus(precision, x, right * _variance(z + step * spread)),
        ranges=widened(before, x),
        run=run,
    )


def undone(scale: Scale, after: Calibration, x: Vector, is_spam: bool) -> Calibration:
    """Return the calibration without a message that it has learned from: `update` backwards.

    Right after the update it is what it was before, but for the ranges and a run that the message
    ended; later it is near what it would be without.
    x: (size,), the message's inputs, itself left out.
    """
    y, z = float(is_spam), _dot(after.coefficients, x)
    variance, pull = _variance(z), y - sigmoid(z)
    direction = solve(after.precision, x)
    spread = _dot(x, direction)

    def step(right: float) -> float:
        """Return s / (1 - w p (1 - p) x^T L^-1 x), so that b - step L^-1 x is the old b."""
        return right * pull / max(1e-9, 1 - right * variance * spread)  # Sherman and Morrison

    low, high = 0.0, 1.0
    for _ in range(60):  # w goes by the old b, which goes by w: the larger w, the less it should be
        right = (low + high) / 2
        if right < p_right(z - step(right) * spread, is_spam, after.noise):
            low = right
        else:
            high = right
    forgotten = _plus(after.precision, x, -right * variance)
    precision = _rested(scale, forgotten, 1 / FORGET)
    if not is_positive_definite(precision):
        return after
    back, sign = step(right), 1 if is_spam else -1
    return after._replace(
        coefficients=tuple(
            b - back * d for b, d in zip(after.coefficients, direction, strict=True)
        ),
        precision=tuple(map(tuple, precision)),
        run=after.run - sign if sign * after.run > 0 else after.run,
    )


def _rested(scale: Scale, precision: Sequence[Vector], keep: float) -> list[list[float]]:
    """Return keep L + (1 - keep) FLOOR; keep: FORGET, or 1 / FORGET to take it back."""
    rows = [[keep * value for value in row] for row in precision]
    for i, own in enumerate(scale.precision):
        rows[i][i] += (1 - keep) * _FLOOR * (own if i else 1.0)
    return rows


def p_right(log_odds: float, is_spam: bool, noise: float) -> float:
    """Return w, the probability that a label is right; log_odds: of spam, in nats.  noise: e."""
    noise = max(noise, LEAST_NOISE)
    r = sigmoid(log_odds if is_spam else -log_odds)
    return (1 - noise) * r / ((1 - noise) * r + noise * (1 - r))


def _variance(log_odds: float) -> float:
    """Return p (1 - p)."""
    return sigmoid(log_odds) * sigmoid(-log_odds)


def _plus(matrix: Sequence[Sequence[float]], x: Vector, factor: float) -> tuple[Vector, ...]:
    """Return matrix + factor x x^T."""
    return tuple(
        tuple(value + factor * a * b for value, b in zip(row, x, strict=True))
        for row, a in zip(matrix, x, strict=True)
    )


def widened(calibration: Calibration, x: Vector) -> tuple[Range, ...]:
    """Return the ranges with one more message in them."""
    known = calibration.ranges
    if known == ((0.0, 0.0),) * len(known):  # nothing seen so far
        return tuple((value, value) for value in x[1:])
    pairs = zip(known, x[1:], strict=True)
    return tuple((min(low, value), max(high, value)) for (low, high), value in pairs)


def is_run(before: Calibration, is_spam: bool, share: float) -> bool:
    """Return whether so many messages of one class came last that one more would teach nothing.

    share: of that class among all messages, 0 to below 1.
    """
    run = before.run if is_spam else -before.run
    return run * (1 - share) >= RUN


def pooled_pair(
    scales: Sequence[Scale], parts: Sequence[tuple[Calibrations, float]]
) -> Calibrations:
    """Return both calibrations of all messages together; scales, parts: as of `pooled`."""
    return Calibrations(
        *(pooled(scale, [(both[i], few) for both, few in parts]) for i, scale in enumerate(scales))
    )


def pooled(scale: Scale, parts: Sequence[tuple[Calibration, float]]) -> Calibration:
    """Return the calibration of all messages together, from calibrations that learned from parts.

    parts: each calibration, with the number of messages in the smaller class of its part.
    One stays as it is, but for its run, which is of those messages.
    """
    if len(parts) == 1:
        return parts[0][0]._replace(run=0)
    weights = [max(1, few) for _, few in parts]
    coefficients = tuple(
        _mean([part.coefficients[i] for part, _ in parts], weights) for i in range(scale.size)
    )
    noise = _mean([part.noise for part, _ in parts], weights)
    rows = [list(row) for row in parts[0][0].precision]
    for part, _ in parts[1:]:
        for i, row in enumerate(part.precision):
            for j, value in enumerate(row):
                rows[i][j] += value - (scale.precision[i] if i == j else 0.0)
    if not is_positive_definite(rows):  # some part is less precise than the prior: made elsewhere
        for i, precision in enumerate(scale.precision):
            rows[i][i] += (len(parts) - 1) * precision
    ranges = tuple(
        (min(low for low, _ in same), max(high for _, high in same))
        for same in zip(*(part.ranges for part, _ in parts), strict=True)
    )
    return Calibration(coefficients, tuple(map(tuple, rows)), ranges, noise)


def _mean(values: Sequence[float], weights: Sequence[float]) -> float:
    return math.fsum(w * v for w, v in zip(weights, values, strict=True)) / math.fsum(weights)


def is_positive_definite(matrix: Sequence[Sequence[float]]) -> bool:
    """Return whether a symmetric matrix is positive definite: whether `solve` may divide."""
    rows = [list(row) for row in matrix]
    for i, row in enumerate(rows):
        if not row[i] > 0:
            return False
        for below in rows[i + 1 :]:
            factor = below[i] / row[i]
            for j in range(i, len(rows)):
                below[j] -= factor * row[j]
    return True


def _dot(a: Sequence[float], b: Sequence[float]) -> float:
    return math.fsum(x * y for x, y in zip(a, b, strict=True))


def solve(matrix: Sequence[Sequence[float]], right: Sequence[float]) -> list[float]:
    """Return v with matrix v = right; the matrix is symmetric and positive definite.

    Gaussian elimination, which such a matrix needs no pivoting for (Golub and Van Loan, 4.2).
    """
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    n = len(rows)
    for i in range(n):
        for k in range(i + 1, n):
            factor = rows[k][i] / rows[i][i]
            for j in range(i, n + 1):
                rows[k][j] -= factor * rows[i][j]
    solution = [0.0] * n
    for i in reversed(range(n)):
        known = sum(rows[i][j] * solution[j] for j in range(i + 1, n))
        solution[i] = (rows[i][n] - known) / rows[i][i]
    return solution


def _step(z: float, spread: float, is_spam: bool, right: float) -> float:
    """Return the s with s = w (y - sigmoid(z + s spread)): one root.

    right: w.
    """
    y = 1.0 if is_spam else 0.0
    low, high = sorted((0.0, right * (y - sigmoid(z))))
    for _ in range(60):  # bisection, to the last bit
        middle = (low + high) / 2
        if middle < right * (y - sigmoid(z + middle * spread)):
            low = middle
        else:
            high = middle
    return (low + high) / 2


# The fit to many messages at once

_STEPS = 100
# EM starts high: from .005 it stays in a poor optimum where 10 % of the labels are wrong, finds
# .011 and misses 55.7 % of spam in place of 17 (P10).  The prior of e is worth 100 messages, half a
# one wrong (with 200 and 1, e is .0093 where .0126 of P10's SMS are wrong).
_FIRST_NOISE, _PRIOR_WRONG, _PRIOR_MESSAGES = 0.2, 0.5, 100.0
# What e must add to the log-likelihood, in nats: it is one parameter more (Akaike).  Where all
# labels are right, e takes the few hardest messages for mistakes: P6.1's errors 72 -> 91, with a
# gain of -1.0, as in P1 to P3; with 3 of 2,702 labels wrong the gain is 2.1 to 2.5.
_LEAST_GAIN = 1.0
BLOCK = 1 << 16  # messages whose inputs are in memory together while a calibration is fitted


def inputs_of_rows(scale: Scale, evidence: EvidenceRows) -> "Floats":
    """Return x of each message for a calibration, (n, scale.size), as `calibration.inputs` does."""
    import numpy as np

    of_text = scale.name == TEXT.name
    words = evidence.text_and_fields if of_text else evidence.text
    length = np.log(np.maximum(words[:, 3], 1)) - LENGTH_CENTRE
    columns = [np.ones(len(words)), *words[:, :3].T, length]
    if not of_text:
        columns += [*evidence.header[:, :3].T]
    if evidence.traits is not None:
        columns.append(evidence.traits)
    return np.column_stack(columns)


class Inputs(Protocol):
    """The x of many messages for a calibration, in memory or not, (n, scale.size)."""

    def __len__(self) -> int:
        """Return n."""

    def __getitem__(self, place: slice) -> "Floats":
        """Return the x of some messages."""


def fit_calibration(scale: Scale, x: Inputs, is_spam: "Booleans") -> Calibration:
    """Return the calibration fitted to leave-one-out inputs: the mode of b, and the precision.

    x: (n, scale.size); is_spam: (n,).
    Labels are wrong with probability e, which EM estimates with b (`calibration.py`), unless labels
    without noise are as likely.  Sums over the messages are sums of blocks, so that only one of
    them need be in memory.
    """
    import numpy as np

    n_spam = int(is_spam.sum())
    if min(n_spam, len(is_spam) - n_spam) < FEWEST:
        return untrained(scale)
    data = _Blocks(x, is_spam, np.array(scale.mean), np.array(scale.precision))
    plain = data.mode(np.array(scale.mean))
    surprise = data.surprise(plain, 0.0)
    b, noise, before = plain, _FIRST_NOISE, 0.0
    for _ in range(_STEPS):
        doubted = data.weigh(b, noise)
        b = data.mode(b)
        before, noise = noise, ((doubted + _PRIOR_WRONG) / (len(is_spam) + _PRIOR_MESSAGES))
        if abs(noise - before) < 1e-4 * noise:
            break
    if surprise - data.surprise(b, noise) < _LEAST_GAIN:
        b, noise = plain, 0.0
        data.weigh(b, noise)
    hessian = data.derivatives(b)[1]
    return Calibration(tuple(b.tolist()), tuple(map(tuple, hessian.tolist())), data.ranges(), noise)


def label_noise(odds: "Floats") -> float:
    """Return e, the share of the labels that are wrong, given log-odds that do not depend on it.

    odds: (n,), of the class that each message is labelled as, in nats.  0 where that is as likely.
    """
    import numpy as np

    blocks = [odds[first : first + BLOCK] for first in range(0, len(odds), BLOCK)]
    both = [(_sigmoid(block), _sigmoid(-block)) for block in blocks]
    noise = _FIRST_NOISE
    for _ in range(_STEPS):
        doubted = sum(
            float((noise * wrong / ((1 - noise) * right + noise * wrong)).sum())
            for right, wrong in both
        )
        before, noise = noise, (doubted + _PRIOR_WRONG) / (len(odds) + _PRIOR_MESSAGES)
        if abs(noise - before) < 1e-4 * noise:
            break
    gain = sum(
        float((np.log((1 - noise) * right + noise * wrong) - np.log(right)).sum())
        for right, wrong in both
    )
    return noise if gain >= _LEAST_GAIN else 0.0


class _Blocks:
    """Messages to fit to, a block at a time, each with the probability that its label is right."""

    def __init__(self, x: Inputs, is_spam: "Booleans", mean: "Floats", precision: "Floats") -> None:
        import numpy as np

        self._x, self._is_spam, self._mean, self._precision = x, is_spam, mean, precision
        self._right = np.ones(len(is_spam))

    def _each(self) -> "Iterator[tuple[Floats, Floats, Floats]]":
        """Yield the x of each block; 1 for spam and -1 for others; and the weights."""
        import numpy as np

        for first in range(0, len(self._is_spam), BLOCK):
            place = slice(first, first + BLOCK)
            x = np.ascontiguousarray(self._x[place])
            yield x, np.where(self._is_spam[place], 1.0, -1.0), self._right[place]

    def _penalty(self, b: "Floats") -> float:
        return float(0.5 * (self._precision * (b - self._mean) ** 2).sum())

    def weigh(self, b: "Floats", noise: float) -> float:
        """Let each message weigh as much as its label is likely right; return the sum of 1 - w."""
        for x, sign, right in self._each():
            r = _sigmoid(sign * (x @ b))
            right[:] = (1 - noise) * r / ((1 - noise) * r + noise * (1 - r)) if noise else 1.0
        return float((1 - self._right).sum())

    def surprise(self, b: "Floats", noise: float) -> float:
        """Return the negative log-likelihood of the labels, and of b under the prior, in nats."""
        import numpy as np

        total = self._penalty(b)
        for x, sign, _ in self._each():
            z = sign * (x @ b)
            total -= float(np.log((1 - noise) * _sigmoid(z) + noise * _sigmoid(-z)).sum())
        return total

    def mode(self, b: "Floats") -> "Floats":
        """Return the b of the weighted fit: Newton's method with halved steps, from b.

        The objective is strictly convex because of the prior.
        """
        import numpy as np

        value = self._loss(b)
        for _ in range(_STEPS):
            gradient, hessian = self.derivatives(b)
            step = np.linalg.solve(hessian, gradient)
            size = 1.0
            while size > 1e-8 and self._loss(b - size * step) > value:
                size /= 2
            b = b - size * step
            previous, value = value, self._loss(b)
            if previous - value < 1e-12 * max(1.0, abs(value)):
                break
        return b

    def _loss(self, b: "Floats") -> float:
        """Return the weighted negative log-likelihood of b, in nats."""
        import numpy as np

        total = self._penalty(b)
        for x, sign, right in self._each():
            total += float((right * np.logaddexp(0, -sign * (x @ b))).sum())
        return total

    def derivatives(self, b: "Floats") -> "tuple[Floats, Floats]":
        """Return the gradient and the Hessian of the weighted fit's objective."""
        import numpy as np

        gradient, hessian = self._precision * (b - self._mean), np.diag(self._precision)
        for x, sign, right in self._each():
            r = _sigmoid(-sign * (x @ b))
            gradient = gradient - x.T @ (right * sign * r)
            hessian = hessian + (x * (right * r * (1 - r))[:, None]).T @ x
        return gradient, hessian

    def ranges(self) -> tuple[Range, ...]:
        """Return the lowest and highest value of each feature, but for the constant."""
        import numpy as np

        low = np.min([x[:, 1:].min(axis=0) for x, *_ in self._each()], axis=0)
        high = np.max([x[:, 1:].max(axis=0) for x, *_ in self._each()], axis=0)
        return tuple(zip(low.tolist(), high.tolist(), strict=True))


def _sigmoid(z: "Floats") -> "Floats":
    import numpy as np

    return 1 / (1 + np.exp(-np.clip(z, -700, 700)))
