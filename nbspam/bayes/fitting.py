"""The fit of a calibration to many messages at once (`calibration.py` has what is fitted)."""

from collections.abc import Callable, Iterator
from typing import Protocol

import numpy as np

from nbspam.bayes.calibration import (
    DECIMALS,
    FEWEST,
    TEXT,
    Calibration,
    Range,
    Scale,
    settled,
    untrained,
)
from nbspam.bayes.evidence import LENGTH_CENTRE
from nbspam.bayes.matrix import Booleans, EvidenceRows, Floats

_STEPS = 100
# Below this decrement (twice what a step gains, in nats) rounding hides the gain, so that steps are
# neither halved nor compared; from it two steps of Newton's method lead to the last digits of b.
_SMALL_DECREMENT, _LAST_STEPS = 1e-7, 2
# EM starts high: from .005 it stays in a poor optimum where 10 % of the labels are wrong, finds
# .011 and misses 55.7 % of spam in place of 17 (P10).  The prior of e is worth 100 messages, half a
# one wrong (with 200 and 1, e is .0093 where .0126 of P10's SMS are wrong).
_FIRST_NOISE, _PRIOR_WRONG, _PRIOR_MESSAGES = 0.2, 0.5, 100.0
# What e must add to the log-likelihood, in nats: it is one parameter more (Akaike).  Where all
# labels are right, e takes the few hardest messages for mistakes: P6.1's errors 72 -> 91, with a
# gain of -1.0, as in P1 to P3; with 3 of 2,702 labels wrong the gain is 2.1 to 2.5.
_LEAST_GAIN = 1.0
BLOCK = 1 << 16  # messages whose inputs are in memory together while a calibration is fitted


def inputs_of_rows(scale: Scale, evidence: EvidenceRows) -> Floats:
    """Return x of each message for a calibration, (n, scale.size), rounded.

    As `calibration.inputs` and `learned_inputs` have it.
    """
    of_text = scale.name == TEXT.name
    words = evidence.text_and_fields if of_text else evidence.text
    length = np.log(np.maximum(words[:, 3], 1)) - LENGTH_CENTRE
    columns = [np.ones(len(words)), *words[:, :3].T, length]
    if not of_text:
        columns += [*evidence.header[:, :3].T]
    if evidence.traits is not None:
        columns.append(evidence.traits)
    return np.round(np.column_stack(columns), DECIMALS)


class Inputs(Protocol):
    """The x of many messages for a calibration, in memory or not, (n, scale.size)."""

    def __len__(self) -> int:
        """Return n."""

    def __getitem__(self, place: slice) -> Floats:
        """Return the x of some messages."""


def fit_calibration(scale: Scale, x: Inputs, is_spam: Booleans) -> Calibration:
    """Return the calibration fitted to leave-one-out inputs: the mode of b, and the precision.

    x: (n, scale.size); is_spam: (n,).
    Labels are wrong with probability e, which EM estimates with b (`calibration.py`), unless labels
    without noise are as likely.  Sums over the messages are sums of blocks, so that only one of
    them need be in memory.
    """
    n_spam = int(is_spam.sum())
    if min(n_spam, len(is_spam) - n_spam) < FEWEST:
        return untrained(scale)
    data = _Blocks(x, is_spam, np.array(scale.mean), np.array(scale.precision))
    plain = data.mode(np.array(scale.mean))
    surprise = data.surprise(plain, 0.0)
    b = plain

    def doubted(noise: float) -> float:
        nonlocal b
        total = data.weigh(b, noise)
        b = data.mode(b)
        return total

    noise = _share_wrong(doubted, len(is_spam))
    if round(surprise - data.surprise(b, noise), DECIMALS) < _LEAST_GAIN:
        b, noise = plain, 0.0
        data.weigh(b, noise)
    hessian = data.derivatives(b)[1]
    precision = tuple(map(tuple, hessian.tolist()))
    return settled(Calibration(tuple(b.tolist()), precision, data.ranges(), noise))


def label_noise(odds: Floats) -> float:
    """Return e, the share of the labels that are wrong, given log-odds that do not depend on it.

    odds: (n,), of the class that each message is labelled as, in nats.  0 where that is as likely.
    """
    right, wrong = _sigmoid(odds), _sigmoid(-odds)

    def doubted(noise: float) -> float:
        return float((noise * wrong / ((1 - noise) * right + noise * wrong)).sum())

    noise = _share_wrong(doubted, len(odds))
    gain = float((np.log((1 - noise) * right + noise * wrong) - np.log(right)).sum())
    return noise if round(gain, DECIMALS) >= _LEAST_GAIN else 0.0


def _share_wrong(doubted: Callable[[float], float], n: int) -> float:
    """Return e of n labels, by EM; doubted: what the 1 - w add up to with an e."""
    noise = _FIRST_NOISE
    for _ in range(_STEPS):
        before, wrong = noise, doubted(noise) + _PRIOR_WRONG
        noise = round(wrong / (n + _PRIOR_MESSAGES), DECIMALS)
        if abs(noise - before) < 1e-4 * noise:
            break
    return noise


class _Blocks:
    """Messages to fit to, a block at a time, each with the probability that its label is right."""

    def __init__(self, x: Inputs, is_spam: Booleans, mean: Floats, precision: Floats) -> None:
        self._x, self._is_spam, self._mean, self._precision = x, is_spam, mean, precision
        self._right = np.ones(len(is_spam))

    def _each(self) -> Iterator[tuple[Floats, Floats, Floats]]:
        """Yield the x of each block; 1 for spam and -1 for others; and the weights."""
        for first in range(0, len(self._is_spam), BLOCK):
            place = slice(first, first + BLOCK)
            x = np.ascontiguousarray(self._x[place])
            yield x, np.where(self._is_spam[place], 1.0, -1.0), self._right[place]

    def _penalty(self, b: Floats) -> float:
        return float(0.5 * (self._precision * (b - self._mean) ** 2).sum())

    def weigh(self, b: Floats, noise: float) -> float:
        """Let each message weigh as much as its label is likely right; return the sum of 1 - w."""
        for x, sign, right in self._each():
            r = _sigmoid(sign * (x @ b))
            right[:] = (1 - noise) * r / ((1 - noise) * r + noise * (1 - r)) if noise else 1.0
        return float((1 - self._right).sum())

    def surprise(self, b: Floats, noise: float) -> float:
        """Return the negative log-likelihood of the labels, and of b under the prior, in nats."""
        total = self._penalty(b)
        for x, sign, _ in self._each():
            z = sign * (x @ b)
            total -= float(np.log((1 - noise) * _sigmoid(z) + noise * _sigmoid(-z)).sum())
        return total

    def mode(self, b: Floats) -> Floats:
        """Return the b of the weighted fit: Newton's method with halved steps, from b.

        The objective is strictly convex because of the prior.
        """
        last_steps = 0
        for _ in range(_STEPS):
            gradient, hessian = self.derivatives(b)
            step = np.linalg.solve(hessian, gradient)
            size = 1.0
            if gradient @ step < _SMALL_DECREMENT:
                last_steps += 1
            else:
                value = self._loss(b)
                while size > 1e-8 and self._loss(b - size * step) > value:
                    size /= 2
            b = b - size * step
            if last_steps == _LAST_STEPS:
                break
        return b

    def _loss(self, b: Floats) -> float:
        """Return the weighted negative log-likelihood of b, in nats."""
        total = self._penalty(b)
        for x, sign, right in self._each():
            total += float((right * np.logaddexp(0, -sign * (x @ b))).sum())
        return total

    def derivatives(self, b: Floats) -> tuple[Floats, Floats]:
        """Return the gradient and the Hessian of the weighted fit's objective."""
        gradient, hessian = self._precision * (b - self._mean), np.diag(self._precision)
        for x, sign, right in self._each():
            r = _sigmoid(-sign * (x @ b))
            gradient = gradient - x.T @ (right * sign * r)
            hessian = hessian + (x * (right * r * (1 - r))[:, None]).T @ x
        return gradient, hessian

    def ranges(self) -> tuple[Range, ...]:
        """Return the lowest and highest value of each feature, but for the constant."""
        low = np.min([x[:, 1:].min(axis=0) for x, *_ in self._each()], axis=0)
        high = np.max([x[:, 1:].max(axis=0) for x, *_ in self._each()], axis=0)
        return tuple(zip(low.tolist(), high.tolist(), strict=True))


def _sigmoid(z: Floats) -> Floats:
    return 1 / (1 + np.exp(-np.clip(z, -700, 700)))
