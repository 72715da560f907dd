"""Many messages at once: their sparse matrix, and the event models and the evidence on arrays.

The formulas are those of `event_model.py` and `evidence.py`, which one message needs without numpy;
here they are for messages that were learned, each left out.  Tests compare the two.

Shapes: presence (n_messages, n_tokens), entries 0 or 1, or how often a message has a token; an
entry of a token that must not speak for ham is negative.  Counts (n_classes, n_tokens); messages
(n_classes,).
"""

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from nbspam.bayes import evidence
from nbspam.bayes.event_model import GRID, EventModel, VocabularySize, class_alphas

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]
if TYPE_CHECKING:  # scipy takes .15 s to import, and reading does without
    from scipy.sparse import csr_array

    Presence = csr_array[Any, tuple[int, int]]
else:
    Presence = Any
ENTRIES = 2_000_000  # of the matrix, processed at a time


class SparseRows:
    """The arrays of a `csr_array`, without scipy, whose import was 2 % of training on P2."""

    def __init__(self, arrays: tuple[Floats, Any, Any], shape: tuple[int, int]) -> None:
        """arrays: data, indices and indptr."""
        (self.data, self.indices, self.indptr), self.shape = arrays, shape


Rows = Presence | SparseRows
T = TypeVar("T", bound=Rows)


@runtime_checkable
class Chunked(Protocol):
    """A presence matrix that is not in memory as a whole."""

    @property
    def shape(self) -> tuple[int, int]:
        """Its rows and columns."""

    def chunks(self, entries: int) -> "Iterator[Rows]":
        """Yield its rows, in order, in matrices of about so many entries, a row at least."""


def chunks(presence: Presence | Chunked) -> Iterator[tuple[slice, Rows]]:
    """Yield a matrix's rows in pieces, each with its place: only one piece is in memory.

    Without signs.
    """
    for rows, piece in signed_chunks(presence):
        yield rows, without_signs(piece)


def without_signs(presence: T) -> T:
    """Return a matrix whose entries are all positive, in the same order: `abs` would sort them."""
    if not (presence.data < 0).any():
        return presence
    place = presence.indices, presence.indptr
    return type(presence)((np.abs(presence.data), *place), shape=presence.shape)


def signed_chunks(presence: Presence | Chunked) -> Iterator[tuple[slice, Rows]]:
    """Yield a matrix's rows in pieces, each with its place."""
    if isinstance(presence, Chunked):
        first = 0
        for piece in presence.chunks(ENTRIES):
            yield slice(first, first + piece.shape[0]), piece
            first += piece.shape[0]
        return
    for first, last in row_blocks(presence.indptr.astype(np.int64), ENTRIES):
        yield slice(first, last), presence[first:last]


def row_blocks(ends: Sequence[int] | Integers, entries: int) -> Iterator[tuple[int, int]]:
    """Yield the first rows, and those after the last, of blocks of about so many entries, or a row.

    ends: (n_rows + 1,), where each row begins and the last one ends.
    """
    first, n_rows = 0, len(ends) - 1
    while first < n_rows:
        last = bisect_right(ends, ends[first] + entries) - 1
        yield first, (last := min(max(last, first + 1), n_rows))
        first = last


def class_counts(presence: Presence | Chunked, labels: Integers, n_classes: int) -> Integers:
    """Return how often the messages of each class have each token, shape (n_classes, n_tokens).

    Of a 0/1 matrix: how many messages.

    labels: (n_messages,), the class of each message, 0 to n_classes - 1.
    """
    n_tokens = presence.shape[1]
    counts = np.zeros(n_classes * n_tokens, dtype=np.int64)
    for rows, piece in chunks(presence):
        first_of_class = np.repeat(labels[rows] * n_tokens, np.diff(piece.indptr))
        times = None if (piece.data == 1).all() else piece.data
        piece_counts = np.bincount(first_of_class + piece.indices, times, minlength=len(counts))
        counts += piece_counts.astype(np.int64, copy=False)
    return counts.reshape(n_classes, n_tokens)


# The event models on arrays: of messages that were learned, each left out


class _LeftOut(NamedTuple):
    """The entries of a matrix of learned messages, and what each message takes with it."""

    rows: Integers  # (nnz,), as are the next three
    tokens: NDArray[np.integer[Any]]
    times: Integers
    gone: Booleans  # whether only this message has the token, which has left the vocabulary
    trials: Integers  # (n_messages,): its own
    outcomes: Integers  # (n_messages,): of a trial, without it


class EventArrays:
    """An event model of some counts, for messages that were learned.

    A message scored by a model trained on it looks easier than it is.  Leaving it out takes x_ij of
    each of its tokens' counts, its trials of its class's (one message, or all its tokens), and from
    the vocabulary the tokens that only it has; and nothing else.  The counts are sufficient
    statistics, so each left-out weight and score follows from the full counts, in O(V + nnz) for
    all messages.  Tested against real retraining to 1e-9.
    """

    def __init__(
        self,
        model: EventModel,
        counts: Integers,
        messages: Integers,
        alpha: float,
        size: VocabularySize,
    ) -> None:
        """Keep the counts, (n_classes, n_tokens), which may be those of some tokens.

        messages: (n_classes,); size: of the whole model.
        """
        self._model, self._counts, self._messages, self._alpha = model, counts, messages, alpha
        self._totals, self._outcomes = counts.sum(axis=0), size.outcomes
        self._trials = np.array(size.trials)

    def _left_out(self, presence: Rows) -> _LeftOut:
        lengths = np.diff(presence.indptr)
        n, tokens = len(lengths), presence.indices
        rows, times = np.repeat(np.arange(n), lengths), presence.data.astype(np.int64)
        gone = self._totals[tokens] <= times
        trials, outcomes = np.ones(n, np.int64), np.full(n, self._outcomes)
        if self._model.repeats:
            trials = np.bincount(rows, times, n).astype(np.int64)
            outcomes = np.maximum(outcomes - np.bincount(rows[gone], minlength=n), 1)
        return _LeftOut(rows, tokens, times, gone, trials, outcomes)

    def contrasts(self, presence: Rows, labels: Integers, k: int) -> Floats:
        """Return the weight for class k of each entry of a matrix, its message left out, (nnz,).

        NaN for a token that only one message has.  Equal to `contrast` to the last bit, so that
        ties among the strongest break alike.
        """
        left = self._left_out(presence)
        weights = np.full(len(left.tokens), np.nan)
        for is_inside in (False, True):
            is_own = (labels == k) == is_inside
            entries = np.flatnonzero(is_own[left.rows] & ~left.gone)
            rows, tokens, times = (a[entries] for a in left[:3])
            n, others = int(self._messages[k]) - is_inside, int(self._messages.sum()) - 1
            rest, inside = class_alphas((others - n, n), self._alpha)
            counts = self._counts[k][tokens] - is_inside * times
            trials = int(self._trials[k]) - is_inside * left.trials
            trials_of_rest = int(self._trials.sum()) - left.trials - trials
            below, below_rest = (
                np.array([math.log(x) for x in np.where(is_own, t, 1.0).tolist()], float)[rows]
                for t in (trials + left.outcomes * inside, trials_of_rest + left.outcomes * rest)
            )
            against = _logs_of_counts(self._totals[tokens] - times - counts, rest) - below_rest
            weights[entries] = (_logs_of_counts(counts, inside) - below) - against
        return _on_grid(weights)

    def joints(self, presence: Rows, labels: Integers, log_prior: Floats | None) -> Floats:
        """Return each message's joint log-likelihoods, itself left out, (n_messages, n_classes).

        log_prior: (n_classes,) where it is fixed; else it follows from the remaining messages.

        The Bernoulli model has besides, of every token in the vocabulary, log(1 - theta) that it is
        absent, and takes it out again for the message's own tokens.
        """
        model, alpha, left = self._model, self._alpha, self._left_out(presence)
        if log_prior is None:  # a row for each class of the message; -inf of one that has none left
            others = self._messages - np.eye(len(self._messages), dtype=np.int64)
            with np.errstate(divide="ignore"):
                log_prior = np.log(others / max(int(self._messages.sum()) - 1, 1))[labels]
        joints = np.array(np.broadcast_to(log_prior, (len(labels), len(self._messages))))
        if not model.has_tokens:
            return joints
        if not model.has_prior:
            joints = np.where(np.isneginf(joints), joints, 0.0)
        for k, (counts, trials) in enumerate(zip(self._counts, self._trials, strict=True)):
            # Whether the counts that class k is scored by have the message in them.
            member, sign = labels == k, 1.0
            if not model.has_prior:  # of the complement
                counts, trials = self._totals - counts, self._trials.sum() - trials
                member, sign = ~member, -1.0
            # A message never contains a token that its class lacks, nor lacks one that is in all of
            # its class: a count below 0 is never used, so clamping keeps log() finite and changes
            # no score.
            of_token = np.maximum(counts[left.tokens] - member[left.rows] * left.times, 0)
            of_row = np.maximum(trials - member * left.trials, 0)
            with np.errstate(divide="ignore"):
                below = np.log(of_row + alpha * left.outcomes)
            logs = left.times * (np.log(of_token + alpha) - below[left.rows])
            logs[left.gone] = 0.0
            absent = np.zeros(len(labels))
            if not model.repeats:
                n = np.maximum(trials - np.arange(2), 0)[:, None]  # of another class, of this one
                absences = np.log(np.maximum(n - counts, 0) + alpha) - np.log(n + 2 * alpha)
                is_member = member.astype(np.int64)
                logs -= absences[is_member[left.rows], left.tokens]
                absent = absences[:, self._totals > 0].sum(axis=1)[is_member]
            joints[:, k] += sign * np.bincount(left.rows, logs, len(labels)) + absent
        return joints


def _on_grid(values: Floats) -> Floats:
    """Return the values as `on_grid` does."""
    return np.asarray(np.rint(values * GRID) / GRID)


def _logs_of_counts(counts: Integers, alpha: float) -> Floats:
    """Return log(counts + alpha), by `math` as for one message; few counts differ."""
    known = np.flatnonzero(np.bincount(counts))
    logs = np.zeros(known.max(initial=0) + 1)
    logs[known] = [math.log(count + alpha) for count in known.tolist()]
    return np.asarray(logs[counts])


# The evidence of many messages: a sparse matrix of n_rows rows is given by `rows` and `ranks`, the
# row and the rank of the weight of each of its entries (nnz,), rows ascending; `groups` says which
# group of words each entry is in.

TEXT, FIELDS, HEADER, OPENING = range(4)  # the groups of words; others are of none


class EvidenceRows(NamedTuple):
    """The evidence of many messages: of each group an array (n_messages, 7), a `Group` a row."""

    text_and_fields: Floats
    text: Floats
    header: Floats
    opening: Floats
    text_tokens: Integers  # (n_messages,), tokens of the text, known or not
    traits: Floats | None = None  # (n_messages,), the feature of the traits; None without

    def some(self, places: Integers) -> "EvidenceRows":
        """Return the evidence of some messages."""
        return EvidenceRows._make(None if array is None else array[places] for array in self)

    def messages(self, place: slice) -> Iterator[tuple[evidence.Evidence, int]]:
        """Yield the evidence of each message of a slice, and how many tokens its text has."""
        groups = (map(evidence.Group._make, part[place].tolist()) for part in self[:4])
        tokens = self.text_tokens[place].tolist()
        traits = [None] * len(tokens) if self.traits is None else self.traits[place].tolist()
        return zip(map(evidence.Evidence, *groups, traits), tokens, strict=True)


def ranked(weights: Floats) -> tuple[Integers, Floats]:
    """Return the rank of each weight among the different ones, -1 of NaN, and those.

    The strongest come first.
    """
    known = np.flatnonzero(~np.isnan(weights))
    values = weights[known] + 0.0  # -0.0 is 0.0
    by_bits = radix_order(values)
    in_order = values[by_bits]
    is_new = np.diff(in_order, prepend=np.nan) != 0
    different = in_order[is_new]
    order = np.lexsort((different, -np.abs(different)))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    ranks = np.full(len(weights), -1, np.int64)
    ranks[known[by_bits]] = place[np.cumsum(is_new) - 1]
    return ranks, different[order]


def radix_order(values: Floats | NDArray[np.uint64]) -> Integers:
    """Return the stable order of 64-bit numbers by their bits, as unsigned integers.

    By parts of 16 bits, which numpy sorts by radix: in a third of the time of argsort.
    """
    bits = values.view(np.uint64).astype("<u8", copy=False)
    return np.lexsort(bits.view("<u2").reshape(-1, 4).T)


def evidence_of_rows(
    rows: Integers, ranks: Integers, weights: Floats, groups: Integers, n_rows: int
) -> EvidenceRows:
    """Return the evidence of each message; entries of rank -1 are ignored.

    weights: the different ones, as `ranked` has them.
    """
    known = ranks >= 0
    text, header = known & (groups == TEXT), known & (groups == HEADER)
    words = text | (known & (groups == FIELDS))
    bits = len(weights).bit_length()
    kind = np.int32 if n_rows << bits < 1 << 31 else np.int64  # sorted in two thirds of the time

    def summary(is_member: Booleans, most: int) -> Floats:
        # Words alike of a message stand together, the strongest first.
        keys = np.sort(((rows[is_member] << bits) + ranks[is_member]).astype(kind))
        starts = np.flatnonzero(np.diff(keys, prepend=-1))
        counts = np.diff(starts, append=len(keys))
        row_of, weight = keys[starts] >> bits, weights[keys[starts] & ((1 << bits) - 1)]
        strengths = np.abs(weight)
        times = np.array([evidence.alike(m) for m in range(counts.max(initial=0) + 1)])[counts]
        nats = _on_grid(times * weight)

        def total(values: Floats | Integers) -> Floats:
            return np.asarray(np.bincount(row_of, values, n_rows), float)

        def above(edges: Floats | float) -> tuple[Floats, Floats]:
            """Return for each row the sum of the weights above a soft edge, and their number."""
            parts = np.clip((strengths - edges) / evidence.SOFT + 0.5, 0, 1)
            return total(_on_grid(parts * nats)), total(_on_grid(parts * times))

        n = total(times)
        edges, is_long = np.full(n_rows, -evidence.SOFT), n > most
        last = np.cumsum(times).searchsorted((np.cumsum(n) - n)[is_long] + most)
        edges[is_long] = strengths[last]
        strongest, n_strongest = above(edges[row_of])
        strong, n_strong = above(evidence.STRONG)
        positive, negative = total(np.maximum(nats, 0)), total(np.minimum(nats, 0))
        sums = (negative + positive) / (evidence.SUM_SCALE * np.sqrt(np.maximum(n, 1)))
        strongest = strongest / np.where(n_strongest > 0, n_strongest, 1)
        strong = strong / (n_strong + evidence.STRONG_SHRINK)
        return np.column_stack([strongest, sums, strong, n, positive, negative, total(counts)])

    text_tokens = np.bincount(rows[groups == TEXT], minlength=n_rows)
    return EvidenceRows(
        summary(words, evidence.STRONGEST),
        summary(text, evidence.STRONGEST),
        summary(header, evidence.HEADERS),
        summary(known & (groups == OPENING), evidence.STRONGEST),
        text_tokens,
    )
