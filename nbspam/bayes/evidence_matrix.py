"""Evidence and calibration of many messages at once: `evidence.py` and `calibration.py` on arrays.

Shapes: a sparse matrix of n_messages rows is given by `rows` and `weights`, the row and the weight
of each of its entries (nnz,), rows ascending; `groups` says which group of words each entry is in.
"""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np

from nbspam.bayes.calibration import FEWEST, Calibration, Range, Scale, untrained
from nbspam.bayes.calibration import TEXT as OF_TEXT
from nbspam.bayes.evidence import (
    HEADERS,
    LENGTH_CENTRE,
    STRONG,
    STRONG_SHRINK,
    STRONGEST,
    SUM_SCALE,
    Evidence,
    Group,
)
from nbspam.bayes.matrix import Booleans, Floats, Integers

TEXT, FIELDS, HEADER = 0, 1, 2  # the groups of words; others are of none
_STEPS = 100
BLOCK = 1 << 16  # messages whose inputs are in memory together while a calibration is fitted


class EvidenceRows(NamedTuple):
    """The evidence of many messages: of each group an array (n_messages, 6), a `Group` a row."""

    text_and_fields: Floats
    text: Floats
    header: Floats
    text_tokens: Integers  # (n_messages,), tokens of the text, known or not
    traits: Floats | None = None  # (n_messages,), the feature of the traits; None without

    def some(self, places: Integers) -> "EvidenceRows":
        """Return the evidence of some messages."""
        traits = None if self.traits is None else self.traits[places]
        return EvidenceRows(
            self.text_and_fields[places],
            self.text[places],
            self.header[places],
            self.text_tokens[places],
            traits,
        )

    def messages(self, place: slice) -> Iterator[tuple[Evidence, int]]:
        """Yield the evidence of each message of a slice, and how many tokens its text has."""
        words, text, header = (
            map(_group, part[place].tolist())
            for part in (self.text_and_fields, self.text, self.header)
        )
        tokens = self.text_tokens[place].tolist()
        traits = [None] * len(tokens) if self.traits is None else self.traits[place].tolist()
        return zip(map(Evidence, words, text, header, traits), tokens, strict=True)


def _group(row: list[float]) -> Group:
    strongest, total, strong, n, positive, negative = row
    return Group(strongest, total, strong, int(n), positive, negative)


def evidence_of_rows(
    rows: Integers, weights: Floats, groups: Integers, n_rows: int
) -> EvidenceRows:
    """Return the evidence of each message; entries with a NaN weight are ignored."""
    known = ~np.isnan(weights)
    text, header = known & (groups == TEXT), known & (groups == HEADER)
    words = text | (known & (groups == FIELDS))
    # Few weights differ.  A look-up takes half as long as np.unique's inverse.
    strengths = np.abs(weights)
    rank = np.unique(strengths).searchsorted(strengths)
    return EvidenceRows(
        _summaries(rows[words], weights[words], rank[words], n_rows, STRONGEST),
        _summaries(rows[text], weights[text], rank[text], n_rows, STRONGEST),
        _summaries(rows[header], weights[header], rank[header], n_rows, HEADERS),
        np.bincount(rows[groups == TEXT], minlength=n_rows),
    )


def _summaries(rows: Integers, weights: Floats, rank: Integers, n_rows: int, most: int) -> Floats:
    """Return a `Group` for each row, (n_rows, 6); rank: of each weight's strength."""
    found = np.zeros((n_rows, 6))
    n = np.bincount(rows, minlength=n_rows)
    found[:, 0] = _mean_of_strongest(rows, weights, rank, n, most)
    positive = np.bincount(rows, np.maximum(weights, 0), n_rows)
    negative = np.bincount(rows, np.minimum(weights, 0), n_rows)
    found[:, 1] = (positive + negative) / (SUM_SCALE * np.sqrt(np.maximum(n, 1)))
    strong = np.abs(weights) >= STRONG
    found[:, 2] = np.bincount(rows[strong], weights[strong], n_rows) / (
        np.bincount(rows[strong], minlength=n_rows) + STRONG_SHRINK
    )
    found[:, 3], found[:, 4], found[:, 5] = n, positive, negative
    return found


def _mean_of_strongest(
    rows: Integers, weights: Floats, rank: Integers, n: Integers, most: int
) -> Floats:
    """Return the mean of each row's strongest weights; equal ones at the edge have equal parts.

    n: (n_rows,), how many weights each row has.
    """
    n_rows = len(n)
    taken = np.minimum(n, most)
    if not len(rows):
        return np.zeros(n_rows)
    # A sort of integers.
    base = int(rank.max()) + 1
    ordered = np.sort(rows * base + (base - 1 - rank))  # in each row the strongest first
    last = np.cumsum(n) - n + np.maximum(taken, 1) - 1
    edge = np.full(n_rows, -1)
    some = n > 0
    edge[some] = base - 1 - ordered[last[some]] % base
    inner, tied = rank > edge[rows], rank == edge[rows]
    n_inner = np.bincount(rows[inner], minlength=n_rows)
    n_tied = np.bincount(rows[tied], minlength=n_rows)
    total = np.bincount(rows[inner], weights[inner], n_rows)
    at_edge = np.bincount(rows[tied], weights[tied], n_rows)
    part = (taken - n_inner) / np.maximum(n_tied, 1)
    return np.asarray((total + part * at_edge) / np.maximum(taken, 1))


def inputs_of_rows(scale: Scale, evidence: EvidenceRows) -> Floats:
    """Return x of each message for a calibration, (n, scale.size), as `calibration.inputs` does."""
    of_text = scale.name == OF_TEXT.name
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

    def __getitem__(self, place: slice) -> Floats:
        """Return the x of some messages."""


def fit_calibration(scale: Scale, x: Inputs, is_spam: Booleans) -> Calibration:
    """Return the calibration fitted to leave-one-out inputs: the mode of b, and the precision.

    x: (n, scale.size); is_spam: (n,).
    Newton's method with halved steps; the objective is strictly convex because of the prior.  Sums
    over the messages are sums of blocks, so that only one of them need be in memory.
    """
    n_spam = int(is_spam.sum())
    if min(n_spam, len(is_spam) - n_spam) < FEWEST:
        return untrained(scale)
    mean, precision = np.array(scale.mean), np.array(scale.precision)
    data = _Blocks(x, is_spam)

    def objective(b: Floats) -> float:
        return data.loss(b) + float(0.5 * (precision * (b - mean) ** 2).sum())

    b = mean.copy()
    value = objective(b)
    for _ in range(_STEPS):
        gradient, hessian = data.derivatives(b)
        gradient += precision * (b - mean)
        step = np.linalg.solve(hessian + np.diag(precision), gradient)
        size = 1.0
        while size > 1e-8 and objective(b - size * step) > value:
            size /= 2
        b = b - size * step
        previous, value = value, objective(b)
        if previous - value < 1e-12 * max(1.0, abs(value)):
            break
    hessian = data.derivatives(b)[1] + np.diag(precision)
    return Calibration(tuple(b.tolist()), tuple(map(tuple, hessian.tolist())), data.ranges())


class _Blocks:
    """Messages to fit to, a block at a time."""

    def __init__(self, x: Inputs, is_spam: Booleans) -> None:
        self._x, self._is_spam = x, is_spam

    def _each(self) -> Iterator[tuple[Floats, Floats]]:
        """Yield the x of each block, and 1 for spam and 0 for others."""
        for first in range(0, len(self._is_spam), BLOCK):
            place = slice(first, first + BLOCK)
            yield np.ascontiguousarray(self._x[place]), self._is_spam[place].astype(float)

    def loss(self, b: Floats) -> float:
        """Return the negative log-likelihood, nats."""
        total = 0.0
        for x, y in self._each():
            z = x @ b
            total += float((np.logaddexp(0, z) - y * z).sum())
        return total

    def derivatives(self, b: Floats) -> tuple[Floats, Floats]:
        """Return the gradient and the Hessian of the loss."""
        gradient, hessian = np.zeros(len(b)), np.zeros((len(b), len(b)))
        for x, y in self._each():
            p = 1 / (1 + np.exp(-np.clip(x @ b, -700, 700)))
            gradient += x.T @ (p - y)
            hessian += (x * (p * (1 - p))[:, None]).T @ x
        return gradient, hessian

    def ranges(self) -> tuple[Range, ...]:
        """Return the lowest and highest value of each feature, but for the constant."""
        low = np.min([x[:, 1:].min(axis=0) for x, _ in self._each()], axis=0)
        high = np.max([x[:, 1:].max(axis=0) for x, _ in self._each()], axis=0)
        return tuple(zip(low.tolist(), high.tolist(), strict=True))
