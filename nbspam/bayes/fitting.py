"""The fit of a calibration to many messages at once (`calibration.py` has what is fitted)."""

from collections.abc import Callable, Iterator
from typing import Protocol

import numpy as np

from nbspam.bayes import calibration
from nbspam.bayes.calibration import Calibration, Scale
from nbspam.bayes.evidence import LENGTH_CENTRE
from nbspam.bayes.matrix import Booleans, EvidenceRows, Floats

_STEPS = 100
# Below this decrement (twice what a step gains, in nats) rounding hides the gain, so that steps are
# neither halved nor compared; from it two steps of Newton's method lead to the last digits of b.
_SMALL_DECREMENT, _LAST_STEPS = 1e-7, 2
# EM starts high: from .005 it stays in a poor optimum where 10 % of the labels are wrong, finds
# .011 and misses 55.7 % of spam in place of 17 (P10).  And it starts with the prior's coefficients:
# those fitted without noise have learned from the wrong labels, and where classes are far apart
# it takes more than 100 steps from there (of 20 and 2 % it finds 2.2 and 1.3).  The prior of the
# shares is worth 100 messages, half a one wrong (with 200 and 1, one e is .0093 where .0126 of
# P10's SMS are wrong).
_FIRST_NOISE, _PRIOR_WRONG, _PRIOR_MESSAGES = 0.2, 0.5, 100.0
# What each share must add to the log-likelihood, in nats: it is a parameter (Akaike).  Where all
# labels are right, one e takes the few hardest messages for mistakes: P6.1's errors 72 -> 91, with
# a gain of -1.0, as in P1 to P3.  Two gain less than 1 there, and 15 to 21 with 20 of 202 spams
# labelled ham.
_LEAST_GAIN = 1.0
BLOCK = 1 << 16  # messages whose inputs are computed with together while a calibration is fitted
_IN_MEMORY = 1 << 17  # messages whose inputs are in memory, 9 MB; of more a block at a time


def inputs_of_rows(scale: Scale, evidence: EvidenceRows) -> Floats:
    """Return x of each message for a calibration, (n, scale.size), rounded.

    As `calibration.inputs` and `learned_inputs` have it.
    """
    groups = (evidence.text_and_fields, evidence.text, evidence.opening)
    words = groups[[known.name for known in calibration.SCALES].index(scale.name)]
    length = np.log(np.maximum(words[:, 3], 1)) - LENGTH_CENTRE
    columns = [np.ones(len(words)), *words[:, :3].T, length]
    if scale.name == calibration.FULL.name:
        columns += [*evidence.header[:, :3].T]
    if evidence.traits is not None:
        columns.append(evidence.traits)
    return np.round(np.column_stack(columns), calibration.INPUT_DECIMALS)


class Inputs(Protocol):
    """The x of many messages for a calibration, in memory or not, (n, scale.size)."""

    def __len__(self) -> int:
        """Return n."""

    def __getitem__(self, place: slice) -> Floats:
        """Return the x of some messages."""


def fit_calibration(scale: Scale, x: Inputs, is_spam: Booleans) -> Calibration:
    """Return the calibration fitted to leave-one-out inputs: the mode of b, and its precision.

    x: (n, scale.size); is_spam: (n,).
    EM estimates with b how many labels are wrong (`calibration.py`), unless labels without noise
    are as likely.  Sums over the messages are sums of blocks, so that only one of
    them need be in memory.
    """
    n_spam = int(is_spam.sum())
    if min(n_spam, len(is_spam) - n_spam) < calibration.FEWEST:
        return calibration.untrained(scale)
    data = _Blocks(x, is_spam, np.array(scale.mean), np.array(scale.precision))
    b = np.array(scale.mean)
    plain = data.fit_mode(b)

    def p_wrong(noise: calibration.Noise) -> Floats:
        nonlocal b
        wrong = data.reweight(b, noise)
        b = data.fit_mode(b)
        return wrong

    noise = _shares_wrong(p_wrong, len(is_spam), is_spam)
    loss = data.negative_log_likelihood
    gain = loss(plain, calibration.Noise()) - loss(b, noise)
    if round(gain, calibration.DECIMALS) < 2 * _LEAST_GAIN:
        b, noise = plain, calibration.Noise()
        data.reweight(b, noise)
    precision = tuple(map(tuple, data.precision(b).tolist()))
    return calibration.settled(Calibration(tuple(b.tolist()), precision, data.ranges(), noise))


def wrong_labels(odds: Floats, is_spam: Booleans | None) -> Floats:
    """Return the probability that each label is wrong, (n,), given odds that do not depend on it.

    odds: (n,), of the class that each message is labelled as, in nats.  is_spam: (n,); None of
    three or more classes, whose labels are wrong with one probability.
    All are 0 where labels without noise are as likely.
    """
    right, wrong = _sigmoid(odds), _sigmoid(-odds)

    def p_wrong(noise: calibration.Noise) -> Floats:
        return 1 - _p_right(right, is_spam, noise)

    n = len(odds)
    noise = _shares_wrong(p_wrong, n, is_spam)
    left, joined = _by_label(noise, is_spam)
    gain = float((np.log((1 - left) * right + joined * wrong) - np.log(right)).sum())
    least = _LEAST_GAIN if is_spam is None else 2 * _LEAST_GAIN
    return p_wrong(noise) if round(gain, calibration.DECIMALS) >= least else np.zeros(n)


def _shares_wrong(
    p_wrong: Callable[[calibration.Noise], Floats], n: int, is_spam: Booleans | None
) -> calibration.Noise:
    """Return the shares of wrong labels among n, by EM; p_wrong: 1 - w of each."""
    noise = calibration.Noise(_FIRST_NOISE, _FIRST_NOISE)
    for _ in range(_STEPS):
        before, wrong = noise, p_wrong(noise)
        if is_spam is None:
            shares = [(float(wrong.sum()) + _PRIOR_WRONG) / (n + _PRIOR_MESSAGES)] * 2
        else:
            missing, foreign = float(wrong[~is_spam].sum()), float(wrong[is_spam].sum())
            n_spam = float(is_spam.sum()) + missing - foreign
            shares = [
                (doubted + _PRIOR_WRONG / 2) / (total + _PRIOR_MESSAGES / 2)
                for doubted, total in ((missing, n_spam), (foreign, n - n_spam))
            ]
        noise = calibration.Noise(*(round(share, calibration.DECIMALS) for share in shares))
        if all(abs(new - old) < 1e-4 * new for new, old in zip(noise, before, strict=True)):
            break
    return noise


def _by_label(noise: calibration.Noise, is_spam: Booleans | None) -> tuple[Floats, Floats]:
    """Return for each label what its class loses to the other, and what it gets from there."""
    is_class = True if is_spam is None else is_spam
    return np.where(is_class, *noise), np.where(is_class, *noise[::-1])


def _p_right(r: Floats, is_spam: Booleans | None, noise: calibration.Noise) -> Floats:
    """Return w of each message; r: the probability of its label without noise."""
    left, joined = _by_label(noise, is_spam)
    return np.asarray((1 - left) * r / ((1 - left) * r + joined * (1 - r)))


class _Blocks:
    """Messages to fit to, a block at a time, each with the probability that its label is right."""

    def __init__(self, x: Inputs, is_spam: Booleans, mean: Floats, precision: Floats) -> None:
        self._x: Inputs = x if len(x) > _IN_MEMORY else x[: len(x)]  # read once
        self._is_spam, self._mean, self._precision = is_spam, mean, precision
        self._right = np.ones(len(is_spam))

    def _each(self) -> Iterator[tuple[Floats, Booleans, Floats]]:
        """Yield the x of each block, which are spam, and the weights."""
        for first in range(0, len(self._is_spam), BLOCK):
            place = slice(first, first + BLOCK)
            yield np.ascontiguousarray(self._x[place]), self._is_spam[place], self._right[place]

    def _penalty(self, b: Floats) -> float:
        return float(0.5 * (self._precision * (b - self._mean) ** 2).sum())

    def reweight(self, b: Floats, noise: calibration.Noise) -> Floats:
        """Let each message weigh as much as its label is likely right; return 1 - w of each."""
        for x, is_spam, right in self._each():
            right[:] = _p_right(_sigmoid(_signs(is_spam) * (x @ b)), is_spam, noise)
        return 1 - self._right

    def negative_log_likelihood(self, b: Floats, noise: calibration.Noise) -> float:
        """Return the negative log-likelihood of the labels, and of b under the prior, in nats."""
        total = self._penalty(b)
        for x, is_spam, _ in self._each():
            z, (left, joined) = _signs(is_spam) * (x @ b), _by_label(noise, is_spam)
            total -= float(np.log((1 - left) * _sigmoid(z) + joined * _sigmoid(-z)).sum())
        return total

    def fit_mode(self, b: Floats) -> Floats:
        """Return the b of the weighted fit: Newton's method with halved steps, from b.

        The objective is strictly convex because of the prior.
        """
        last_steps, value = 0, None
        for _ in range(_STEPS):
            gradient, hessian = self.derivatives(b)
            step = np.linalg.solve(hessian, gradient)
            size = 1.0
            if gradient @ step < _SMALL_DECREMENT:
                last_steps, value = last_steps + 1, None
            else:
                before = self._loss(b) if value is None else value
                while (value := self._loss(b - size * step)) > before and size > 1e-8:
                    size /= 2
            b = b - size * step
            if last_steps == _LAST_STEPS:
                break
        return b

    def _loss(self, b: Floats) -> float:
        """Return the weighted negative log-likelihood of b, in nats."""
        total = self._penalty(b)
        for x, is_spam, right in self._each():
            z = _signs(is_spam) * (x @ b)
            # log(1 + exp(-z)), in a quarter of the time of `np.logaddexp`.
            total += float((right * (np.maximum(-z, 0) + np.log1p(np.exp(-np.abs(z))))).sum())
        return total

    def derivatives(self, b: Floats) -> tuple[Floats, Floats]:
        """Return the gradient and the Hessian of the weighted fit's objective."""
        gradient, hessian = self._precision * (b - self._mean), np.diag(self._precision)
        for x, is_spam, right in self._each():
            sign = _signs(is_spam)
            r = _sigmoid(-sign * (x @ b))
            gradient = gradient - x.T @ (right * sign * r)
            hessian = hessian + (x * (right * r * (1 - r))[:, None]).T @ x
        return gradient, hessian

    def precision(self, b: Floats) -> Floats:
        """Return L, with the curvature c of each message (`calibration.curvature`)."""
        precision = np.diag(self._precision)
        for x, _, right in self._each():
            z = np.maximum(np.abs(x @ b), calibration.LEAST_ODDS)
            precision = precision + (x * (right * np.tanh(z / 2) / (2 * z))[:, None]).T @ x
        return precision

    def ranges(self) -> tuple[calibration.Range, ...]:
        """Return the lowest and highest value of each feature, but for the constant."""
        low = np.min([x[:, 1:].min(axis=0) for x, *_ in self._each()], axis=0)
        high = np.max([x[:, 1:].max(axis=0) for x, *_ in self._each()], axis=0)
        return tuple(zip(low.tolist(), high.tolist(), strict=True))


def _signs(is_spam: Booleans) -> Floats:
    return np.where(is_spam, 1.0, -1.0)


def _sigmoid(z: Floats) -> Floats:
    return 1 / (1 + np.exp(-np.clip(z, -700, 700)))
