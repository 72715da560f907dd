"""Event models and evidence for many messages at once, as numpy arrays and a sparse matrix.

The formulas are the same as in `event_model.py` and `evidence.py`, which one message needs without
numpy; here they apply to learned messages, each left out.  Tests compare the two.

Shapes: presence (n_messages, n_tokens).  Its entries are 0 or 1, or the number of times that a
message has a token; the entry of a token that must not count for ham is negative; nnz is the number
of entries other than 0.  Counts (n_classes, n_tokens); messages (n_classes,).
"""

import itertools
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from nbspam.bayes import evidence
from nbspam.bayes.event_model import GRID, EventModel, TrialTotals, class_alphas

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]
if TYPE_CHECKING:  # importing scipy takes 0.15 s, and reading does not need it
    from scipy.sparse import csr_array

    Presence = csr_array[Any, tuple[int, int]]
else:
    Presence = Any
_ENTRIES_PER_BLOCK = 500_000


class SparseRows:
    """The arrays of a `csr_array`, without scipy, whose import was 2 % of training on P2."""

    def __init__(self, arrays: tuple[Floats, Any, Any], shape: tuple[int, int]) -> None:
        """arrays: data, indices and indptr."""
        (self.data, self.indices, self.indptr), self.shape = arrays, shape


Rows = Presence | SparseRows
T = TypeVar("T", bound=Rows)


class Matrix(Protocol):
    """A `csr_array`, or an object with the same rows in another form, such as a `Corpus`."""

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""

    @property
    def indptr(self) -> Any:
        """Index of each row's first entry, and of the end of the last row, (n_rows + 1,)."""

    def __getitem__(self, place: slice) -> "Rows":
        """Return some of the rows."""


def chunks(presence: Matrix) -> Iterator[tuple[slice, Rows]]:
    """Yield a matrix's rows in blocks of about _ENTRIES_PER_BLOCK entries, each with its place."""
    for place in row_blocks(presence.indptr, _ENTRIES_PER_BLOCK):
        yield place, presence[place]


def some_rows(rows: Rows, places: Integers) -> SparseRows:
    """Return the rows at some places, in their order."""
    lengths = np.diff(rows.indptr)
    is_chosen = np.zeros(len(lengths), bool)
    is_chosen[places] = True
    entries = np.repeat(is_chosen, lengths)
    ends = np.concatenate([[0], np.cumsum(lengths[places])])
    shape = (len(places), rows.shape[1])
    return SparseRows((rows.data[entries], rows.indices[entries], ends), shape)


def absolute_entries(presence: T) -> T:
    """Return a matrix with the absolute values of the entries, in their order; `abs` would sort."""
    if not (presence.data < 0).any():
        return presence
    place = presence.indices, presence.indptr
    return type(presence)((np.abs(presence.data), *place), shape=presence.shape)


def row_blocks(ends: Integers, entries: int) -> Iterator[slice]:
    """Yield slices of rows with at most `entries` entries each, or of one row.

    ends: (n_rows + 1,), like `Matrix.indptr`.
    """
    first, n_rows = 0, len(ends) - 1
    while first < n_rows:
        last = int(ends.searchsorted(int(ends[first]) + entries, side="right")) - 1
        yield slice(first, last := min(max(last, first + 1), n_rows))
        first = last


def class_counts(presence: Matrix, labels: Integers, n_classes: int) -> Integers:
    """Count each token in the messages of each class, shape (n_classes, n_tokens).

    labels: (n_messages,), the class of each message, 0 to n_classes - 1.
    """
    n_tokens = presence.shape[1]
    counts: Any = np.zeros(n_classes * n_tokens, np.int32)
    for place, rows in chunks(presence):
        first_of_class = np.repeat(labels[place] * n_tokens, np.diff(rows.indptr))
        np.add.at(counts, first_of_class + rows.indices, np.abs(rows.data).astype(np.int32))
    return counts.reshape(n_classes, n_tokens)  # type: ignore[no-any-return]


# Event models of learned messages, each left out


class _OwnCounts(NamedTuple):
    """The entries of a matrix of learned messages, and the numbers that each message removes."""

    rows: Integers  # (nnz,), like the next three
    tokens: NDArray[np.integer[Any]]
    times: Integers
    is_only_here: Booleans  # no other message has the token, so the vocabulary loses it
    trials: Integers  # (n_messages,), the message's own trials
    outcomes: Integers  # (n_messages,), outcomes of a trial without the message


class EventArrays:
    """An event model's weights for learned messages, each left out.

    A message scored by a model trained on it looks easier than a new message.  Leaving message i
    out subtracts x_ij from the count of each of its tokens j, subtracts its trials (one message, or
    all its tokens) from its class's trials, and removes from the vocabulary the tokens that no
    other message has.  The counts are sufficient statistics, so each left-out weight and score
    follows from the full counts, in O(n_tokens + nnz) for all messages.  Tests compare the results
    with real retraining, to 1e-9.
    """

    def __init__(
        self,
        model: EventModel,
        counts: Integers,
        messages: Integers,
        alpha: float,
        size: TrialTotals,
    ) -> None:
        """counts: (n_classes, n_tokens), possibly for some tokens only; messages: (n_classes,).

        size: the trials of the whole model.
        """
        self._model, self._counts, self._messages, self._alpha = model, counts, messages, alpha
        self._totals, self._outcomes = counts.sum(axis=0, dtype=counts.dtype), size.outcomes
        self._trials = np.array(size.trials)

    def _left_out(self, presence: Rows, copies: Integers) -> _OwnCounts:
        lengths = np.diff(presence.indptr)
        n, tokens = len(lengths), presence.indices
        rows = np.repeat(np.arange(n), lengths)
        times = presence.data.astype(np.int64) * copies[rows]
        is_only_here = self._totals[tokens] <= times
        trials, outcomes = copies.astype(np.int64), np.full(n, self._outcomes)
        if self._model.counts_repeats:
            trials = np.bincount(rows, times, n).astype(np.int64)
            outcomes = np.maximum(outcomes - np.bincount(rows[is_only_here], minlength=n), 1)
        return _OwnCounts(rows, tokens, times, is_only_here, trials, outcomes)

    def one_vs_rest_weights(
        self, presence: Rows, labels: Integers, k: int, copies: Integers
    ) -> Floats:
        """Return the weight for class k of each entry of a matrix, its message left out, (nnz,).

        copies: (n_messages,), how many copies of each message, itself included, are left out with
        it.  NaN for a token that only the copies have.  The weights equal `one_vs_rest_weight` to
        the last bit, so that ties among the strongest are broken in the same way.
        """
        left = self._left_out(presence, copies)
        weights = np.full(len(left.tokens), np.nan)
        for is_inside, m in itertools.product((False, True), np.unique(copies).tolist()):
            is_own = ((labels == k) == is_inside) & (copies == m)
            entries = np.flatnonzero(is_own[left.rows] & ~left.is_only_here)
            rows, tokens, times = (a[entries] for a in left[:3])
            n, others = int(self._messages[k]) - is_inside * m, int(self._messages.sum()) - m
            rest, n_positive = class_alphas((others - n, n), self._alpha)
            # If not all copies have a word, the difference may be negative.
            counts = np.maximum(self._counts[k][tokens] - is_inside * times, 0)
            trials = int(self._trials[k]) - is_inside * left.trials
            trials_of_rest = int(self._trials.sum()) - left.trials - trials
            below, below_rest = (
                np.array([math.log(x) for x in np.where(is_own, t, 1.0).tolist()], float)[rows]
                for t in (
                    trials + left.outcomes * n_positive,
                    trials_of_rest + left.outcomes * rest,
                )
            )
            outside = np.maximum(self._totals[tokens] - times - counts, 0)
            against = _logs_of_counts(outside, rest) - below_rest
            weights[entries] = (_logs_of_counts(counts, n_positive) - below) - against
        return _round_to_grid(weights)


def _round_to_grid(values: Floats) -> Floats:
    """Round values like `round_to_grid`."""
    return np.asarray(np.rint(values * GRID) / GRID)


def _logs_of_counts(counts: Integers, alpha: float) -> Floats:
    """Return log(counts + alpha) by `math`, as for one message; each distinct count once."""
    known = np.flatnonzero(np.bincount(counts))
    logs = np.zeros(known.max(initial=0) + 1)
    logs[known] = [math.log(count + alpha) for count in known.tolist()]
    return np.asarray(logs[counts])


# The evidence of many messages.  A sparse matrix is given by `rows` and `ranks`, (nnz,): the row of
# each entry, ascending, and the rank of its weight.  `groups` is the group of words of each entry.

# The groups of words.  Hosts and their domains are not evidence.
TEXT, FIELDS, HEADER, OPENING, HOST, DOMAIN = range(6)


class EvidenceArrays(NamedTuple):
    """The evidence of many messages: an array (n_messages, 7) for each group of words.

    Each row is a `GroupSummary`.
    """

    text_and_fields: Floats
    text: Floats
    header: Floats
    opening: Floats
    text_tokens: Integers  # (n_messages,), number of text tokens, known or not
    traits: Floats | None = None  # (n_messages,), the trait feature; None without traits
    doubts: Floats | None = None  # (n_messages,), each message's doubt, 0 to 1; None for 0

    def replace_rows(self, places: Integers, others: "EvidenceArrays") -> "EvidenceArrays":
        """Replace the rows at some places."""
        arrays: list[Any] = [None if array is None else array.copy() for array in self]
        for array, other in zip(arrays, others, strict=True):
            if array is not None:
                array[places] = other
        return EvidenceArrays._make(arrays)

    def messages(self) -> Iterator[tuple[evidence.MessageEvidence, int, float]]:
        """Yield each message's evidence, its number of text tokens, and its doubt."""
        groups = (map(evidence.GroupSummary._make, part.tolist()) for part in self[:4])
        tokens = self.text_tokens.tolist()
        traits = [None] * len(tokens) if self.traits is None else self.traits.tolist()
        doubts = [0.0] * len(tokens) if self.doubts is None else self.doubts.tolist()
        return zip(map(evidence.MessageEvidence, *groups, traits), tokens, doubts, strict=True)


def doubts_of(
    domains: evidence.DomainCounts, channels: Integers, totals: Integers, rows: Integers, n: int
) -> Floats:
    """Return the doubt of each of n messages, (n,), like `Classifier.doubt`.

    channels, totals, rows: (nnz,), the entry's channel, its token's number of learned messages,
    and its message.
    """
    doubts = np.zeros(n)
    doubts[rows[channels == HOST]] = domains.doubt_unnamed
    for place in np.flatnonzero(channels == DOMAIN).tolist():
        doubts[rows[place]] = domains.doubt(totals[place])
    return doubts


def rank_weights(weights: Floats) -> tuple[Integers, Floats]:
    """Rank the distinct weights, strongest first.

    Returns each weight's rank, -1 for NaN, and the distinct weights.
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

    numpy sorts parts of 16 bits by radix, three times as fast as argsort.
    """
    bits = values.view(np.uint64).astype("<u8", copy=False)
    return np.lexsort(bits.view("<u2").reshape(-1, 4).T)


def evidence_of_rows(
    rows: Integers, ranks: Integers, weights: Floats, groups: Integers, n_rows: int
) -> EvidenceArrays:
    """Return the evidence of each message; entries of rank -1 are ignored.

    weights: the distinct weights, from `rank_weights`.
    """
    known = ranks >= 0
    text, header, fields = (known & (groups == group) for group in (TEXT, HEADER, FIELDS))
    bits = len(weights).bit_length()
    kind = np.int32 if n_rows << bits < 1 << 31 else np.int64  # sorting takes a third less time

    def summary(is_member: Booleans, top_n: int) -> Floats:
        if not is_member.any():  # an array that takes no memory
            return np.broadcast_to(0.0, (n_rows, len(evidence.GroupSummary._fields)))
        # After sorting, equal words of a message are adjacent, the strongest words first.
        keys = np.sort(((rows[is_member] << bits) + ranks[is_member]).astype(kind))
        starts = np.flatnonzero(np.diff(keys, prepend=-1))
        counts = np.diff(starts, append=len(keys))
        row_of, weight = keys[starts] >> bits, weights[keys[starts] & ((1 << bits) - 1)]
        strengths = np.abs(weight)
        times = np.array([evidence.effective_count(m) for m in range(counts.max(initial=0) + 1)])[
            counts
        ]
        nats = _round_to_grid(times * weight)

        def total(values: Floats | Integers) -> Floats:
            return np.asarray(np.bincount(row_of, values, n_rows), float)

        def sum_above(edges: Floats | float) -> tuple[Floats, Floats]:
            """Return each row's sum of the weights above a soft edge, and their number."""
            parts = np.clip((strengths - edges) / evidence.EDGE_WIDTH + 0.5, 0, 1)
            return total(_round_to_grid(parts * nats)), total(_round_to_grid(parts * times))

        n = total(times)
        edges, is_long = np.full(n_rows, -evidence.EDGE_WIDTH), n > top_n
        last = np.cumsum(times).searchsorted((np.cumsum(n) - n)[is_long] + top_n)
        edges[is_long] = strengths[last]
        strongest, n_strongest = sum_above(edges[row_of])
        strong, n_strong = sum_above(evidence.STRONG_EDGE)
        positive, negative = total(np.maximum(nats, 0)), total(np.minimum(nats, 0))
        sums = (negative + positive) / (evidence.SUM_SCALE * np.sqrt(np.maximum(n, 1)))
        strongest = strongest / np.where(n_strongest > 0, n_strongest, 1)
        strong = strong / (n_strong + evidence.STRONG_SHRINK)
        return np.column_stack([strongest, sums, strong, n, positive, negative, total(counts)])

    text_tokens = np.bincount(rows[groups == TEXT], minlength=n_rows)
    of_text = summary(text, evidence.N_STRONGEST)
    return EvidenceArrays(
        summary(text | fields, evidence.N_STRONGEST) if fields.any() else of_text,
        of_text,
        summary(header, evidence.N_STRONGEST_HEADERS),
        summary(known & (groups == OPENING), evidence.N_STRONGEST),
        text_tokens,
    )
