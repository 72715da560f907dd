"""The fit of a calibration to many messages at once; `calibration.py` has the formulas."""

from collections.abc import Callable, Iterator

import numpy as np

from nbspam.bayes import calibration
from nbspam.bayes.calibration import Calibration, CalibrationSpec
from nbspam.bayes.evidence import LENGTH_CENTRE
from nbspam.bayes.matrix import Booleans, EvidenceArrays, Floats
from nbspam.bayes.padding import COPY_WEIGHT

_MAX_STEPS = 100
# The decrement is twice the expected gain of a Newton step, in nats.  Below this bound, rounding
# hides the gain: _LAST_STEPS more steps, whole and unchecked, reach the last digits of b.
_SMALL_DECREMENT, _LAST_STEPS = 1e-7, 2
# EM starts with high shares of wrong labels.  Where 0.1 of P10's labels are wrong, EM that starts
# at 0.005 finds a share of 0.011, and the filter misses 55.7 % of spam instead of 17 %.  EM starts
# with the prior's coefficients, because coefficients of a fit without noise have learned from the
# wrong labels: starting with those, EM takes more than 100 steps if classes are far apart.  (Where
# 20 and 2 % of the two classes' labels are wrong, EM then finds 2.2 and 1.3 %.)  The prior of the
# shares counts as 100 messages, half a message wrong.  Where a share of 0.0126 of P10's labels is
# wrong, EM with a prior of 200 messages, 1 of these wrong, finds 0.0093.
_FIRST_NOISE, _PRIOR_WRONG, _PRIOR_MESSAGES = 0.2, 0.5, 100.0
# A share of wrong labels is a parameter, so it must increase the log-likelihood by this many nats
# (Akaike).  Otherwise, if all labels are right, the few hardest messages would count as mistakes:
# P6.1's errors would rise from 72 to 91.  With right labels the two shares gain less than 1 nat;
# with 20 of 202 spams labelled ham they gain 15 to 21.
_MIN_GAIN = 1.0
BLOCK = 1 << 16  # messages that are added up at a time


def input_matrix(spec: CalibrationSpec, evidence: EvidenceArrays) -> Floats:
    """Return each message's rounded inputs for a calibration, (n, spec.size).

    The result equals `calibration_inputs`, rounded by `round_inputs`.
    """
    groups = (evidence.text_and_fields, evidence.text, evidence.opening)
    words = groups[[known.name for known in calibration.CALIBRATION_SPECS].index(spec.name)]
    length = np.log(np.maximum(words[:, 3], 1)) - LENGTH_CENTRE
    columns = [np.ones(len(words)), *words[:, :3].T, length]
    if spec.name == calibration.FULL.name:
        columns += [*evidence.header[:, :3].T]
    if evidence.traits is not None:
        columns.append(evidence.traits)
    return np.round(np.column_stack(columns), calibration.INPUT_DECIMALS)


def fit_calibration(
    spec: CalibrationSpec, x: Floats, is_spam: Booleans, copies: Floats | None = None
) -> Calibration:
    """Fit a calibration: the most probable coefficients b, and their precision matrix.

    x: (n, spec.size), the inputs of each message as if not learned; is_spam: (n,).
    copies: (n_spam, spec.size), the inputs of the padded copies of the spam.
    EM estimates the shares of wrong labels together with b (`calibration.py`); the shares are 0
    unless they make the labels likelier.  Sums over the messages are computed in blocks, which take
    little memory.
    """
    n_spam = int(is_spam.sum())
    if min(n_spam, len(is_spam) - n_spam) < calibration.MIN_CLASS_MESSAGES:
        return calibration.prior_calibration(spec)
    data = _Blocks(x, is_spam, np.array(spec.mean), np.array(spec.precision))
    b = np.array(spec.mean)
    without_noise = data.fit_mode(b)

    def p_wrong(noise: calibration.Noise) -> Floats:
        nonlocal b
        wrong = data.reweight(b, noise)
        b = data.fit_mode(b)
        return wrong

    noise = _fit_noise(p_wrong, len(is_spam), is_spam)
    loss = data.negative_log_likelihood
    gain = loss(without_noise, calibration.Noise()) - loss(b, noise)
    if round(gain, calibration.DECIMALS) < 2 * _MIN_GAIN:
        b, noise = without_noise, calibration.Noise()
        data.reweight(b, noise)
    if copies is not None:
        b = data.fit_mode_with(copies, b)
    precision = tuple(map(tuple, data.precision(b).tolist()))
    return calibration.round_calibration(
        Calibration(tuple(b.tolist()), precision, data.ranges(), noise)
    )


def wrong_labels(odds: Floats, is_spam: Booleans | None) -> Floats:
    """Return the probability that each label is wrong, (n,).

    odds: (n,), log-odds that each message, not learned, has the class of its label, in nats.
    is_spam: (n,); None with three or more classes, which share one probability of a wrong label.
    The results are 0 unless wrong labels make the labels likelier by _MIN_GAIN for each share.
    """
    right, wrong = _sigmoid(odds), _sigmoid(-odds)

    def p_wrong(noise: calibration.Noise) -> Floats:
        return 1 - _p_right(right, is_spam, noise)

    n = len(odds)
    noise = _fit_noise(p_wrong, n, is_spam)
    lost, gained = _noise_by_label(noise, is_spam)
    gain = float((np.log((1 - lost) * right + gained * wrong) - np.log(right)).sum())
    least = _MIN_GAIN if is_spam is None else 2 * _MIN_GAIN
    return p_wrong(noise) if round(gain, calibration.DECIMALS) >= least else np.zeros(n)


def _fit_noise(
    p_wrong: Callable[[calibration.Noise], Floats], n: int, is_spam: Booleans | None
) -> calibration.Noise:
    """Estimate the shares of wrong labels among n labels, by EM.

    p_wrong: returns the probability that each label is wrong.
    """
    noise = calibration.Noise(_FIRST_NOISE, _FIRST_NOISE)
    for _ in range(_MAX_STEPS):
        before, wrong = noise, p_wrong(noise)
        if is_spam is None:
            shares = [(float(wrong.sum()) + _PRIOR_WRONG) / (n + _PRIOR_MESSAGES)] * 2
        else:
            lost, gained = float(wrong[~is_spam].sum()), float(wrong[is_spam].sum())
            n_spam = float(is_spam.sum()) + lost - gained
            shares = [
                (doubted + _PRIOR_WRONG / 2) / (total + _PRIOR_MESSAGES / 2)
                for doubted, total in ((lost, n_spam), (gained, n - n_spam))
            ]
        noise = calibration.Noise(*(round(share, calibration.DECIMALS) for share in shares))
        if all(abs(new - old) < 1e-4 * new for new, old in zip(noise, before, strict=True)):
            break
    return noise


def _noise_by_label(noise: calibration.Noise, is_spam: Booleans | None) -> tuple[Floats, Floats]:
    """Return, for each label, two shares of wrong labels.

    The first is the share of the label's class that has another label; the second is the share of
    the other classes that has this label.
    """
    is_class = True if is_spam is None else is_spam
    return np.where(is_class, *noise), np.where(is_class, *noise[::-1])


def _p_right(r: Floats, is_spam: Booleans | None, noise: calibration.Noise) -> Floats:
    """Return the probability that each label is right; r: its probability without noise."""
    lost, gained = _noise_by_label(noise, is_spam)
    return np.asarray((1 - lost) * r / ((1 - lost) * r + gained * (1 - r)))


class _Blocks:
    """The messages of a fit, in blocks, weighted by the probability that the label is right."""

    def __init__(self, x: Floats, is_spam: Booleans, mean: Floats, precision: Floats) -> None:
        self._x, self._is_spam, self._mean, self._precision = x, is_spam, mean, precision
        self._right = np.ones(len(is_spam))
        self._copies: _Blocks | None = None

    def _iter_blocks(self) -> Iterator[tuple[Floats, Booleans, Floats]]:
        """Yield x, is_spam and the weights of each block."""
        for first in range(0, len(self._is_spam), BLOCK):
            place = slice(first, first + BLOCK)
            yield np.ascontiguousarray(self._x[place]), self._is_spam[place], self._right[place]
        if self._copies is not None:
            yield from self._copies._iter_blocks()

    def _penalty(self, b: Floats) -> float:
        return float(0.5 * (self._precision * (b - self._mean) ** 2).sum())

    def reweight(self, b: Floats, noise: calibration.Noise) -> Floats:
        """Set the weights to the probability that each label is right; return 1 - w of each."""
        for x, is_spam, right in self._iter_blocks():
            right[:] = _p_right(_sigmoid(_signs(is_spam) * (x @ b)), is_spam, noise)
        return 1 - self._right

    def negative_log_likelihood(self, b: Floats, noise: calibration.Noise) -> float:
        """Return the negative log-likelihood of labels and prior, in nats."""
        total = self._penalty(b)
        for x, is_spam, _ in self._iter_blocks():
            z, (lost, gained) = _signs(is_spam) * (x @ b), _noise_by_label(noise, is_spam)
            total -= float(np.log((1 - lost) * _sigmoid(z) + gained * _sigmoid(-z)).sum())
        return total

    def fit_mode_with(self, copies: Floats, b: Floats) -> Floats:
        """Fit b to the messages and to the padded copies of the spam.

        Scale and constant are then fitted without the copies, because no spammer has sent them, and
        probabilities must be right for real mail.
        """
        is_spam = np.ones(len(copies), bool)
        self._copies = _Blocks(copies, is_spam, self._mean, self._precision)
        self._copies._right = COPY_WEIGHT * self._right[self._is_spam]
        b = self.fit_mode(b)
        self._copies = None
        return self.fit_mode(b, np.column_stack([b, np.eye(len(b))[0]]))

    def fit_mode(self, b: Floats, directions: Floats | None = None) -> Floats:
        """Run the weighted fit from b, by Newton's method with halved steps.

        directions: (size, m), the columns along which b may move; None allows all.
        The prior makes the objective strictly convex.
        """
        last_steps, value = 0, None
        along = np.eye(len(b)) if directions is None else directions
        for _ in range(_MAX_STEPS):
            gradient, hessian = self.derivatives(b)
            step = along @ np.linalg.solve(along.T @ hessian @ along, along.T @ gradient)
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
        for x, is_spam, right in self._iter_blocks():
            z = _signs(is_spam) * (x @ b)
            # log(1 + exp(-z)), four times as fast as `np.logaddexp`.
            total += float((right * (np.maximum(-z, 0) + np.log1p(np.exp(-np.abs(z))))).sum())
        return total

    def derivatives(self, b: Floats) -> tuple[Floats, Floats]:
        """Return the gradient and the Hessian of the weighted fit's objective."""
        gradient, hessian = self._precision * (b - self._mean), np.diag(self._precision)
        for x, is_spam, right in self._iter_blocks():
            sign = _signs(is_spam)
            r = _sigmoid(-sign * (x @ b))
            gradient = gradient - x.T @ (right * sign * r)
            hessian = hessian + (x * (right * r * (1 - r))[:, None]).T @ x
        return gradient, hessian

    def precision(self, b: Floats) -> Floats:
        """Return the precision matrix L of b (the formula is in `calibration.py`)."""
        precision = np.diag(self._precision)
        for x, _, right in self._iter_blocks():
            z = np.maximum(np.abs(x @ b), calibration.MIN_LOG_ODDS)
            precision = precision + (x * (right * np.tanh(z / 2) / (2 * z))[:, None]).T @ x
        return precision

    def ranges(self) -> tuple[calibration.Range, ...]:
        """Return the lowest and highest value of each feature, without the constant."""
        low = np.min([x[:, 1:].min(axis=0) for x, *_ in self._iter_blocks()], axis=0)
        high = np.max([x[:, 1:].max(axis=0) for x, *_ in self._iter_blocks()], axis=0)
        return tuple(zip(low.tolist(), high.tolist(), strict=True))


def _signs(is_spam: Booleans) -> Floats:
    return np.where(is_spam, 1.0, -1.0)


def _sigmoid(z: Floats) -> Floats:
    return 1 / (1 + np.exp(-np.clip(z, -700, 700)))
