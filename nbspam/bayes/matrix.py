"""Many messages at once: their sparse matrix, and the event models and the evidence on arrays.

The formulas are those of `event_model.py` and `evidence.py`, which one message needs without numpy;
tests compare the two.

Shapes: presence (n_messages, n_tokens), entries 0 or 1, or how often a message has a token; an
entry of a token that must not speak for ham is negative.  Counts (n_classes, n_tokens); messages
(n_classes,).
"""

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from nbspam.bayes import evidence
from nbspam.bayes.event_model import EventModel, Size, class_alphas

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]
if TYPE_CHECKING:  # scipy takes .15 s to import, and reading does without
    from scipy.sparse import csr_array

    Presence = csr_array[Any, tuple[int, int]]
else:
    Presence = Any
ENTRIES = 2_000_000  # of the matrix, processed at a time


@runtime_checkable
class Chunked(Protocol):
    """A presence matrix that is not in memory as a whole."""

    @property
    def shape(self) -> tuple[int, int]:
        """Its rows and columns."""

    def chunks(self, entries: int) -> Iterator[Presence]:
        """Yield its rows, in order, in matrices of about so many entries, a row at least."""


def chunks(presence: Presence | Chunked) -> Iterator[tuple[slice, Presence]]:
    """Yield a matrix's rows in pieces, each with its place: only one piece is in memory.

    Without signs.
    """
    for rows, piece in signed_chunks(presence):
        yield rows, without_signs(piece)


def without_signs(presence: Presence) -> Presence:
    """Return a matrix whose entries are all positive, in the same order: `abs` would sort them."""
    if not (presence.data < 0).any():
        return presence
    from scipy.sparse import csr_array

    place = presence.indices, presence.indptr
    return csr_array((np.abs(presence.data), *place), shape=presence.shape)


def signed_chunks(presence: Presence | Chunked) -> Iterator[tuple[slice, Presence]]:
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
        own = np.repeat(labels[rows] * n_tokens, np.diff(piece.indptr))
        times = None if (piece.data == 1).all() else piece.data
        found = np.bincount(own + piece.indices, times, minlength=len(counts))
        counts += found.astype(np.int64, copy=False)
    return counts.reshape(n_classes, n_tokens)


# The event models on arrays


class EventArrays:
    """An event model of some counts, (n_classes, n_tokens), and messages, (n_classes,).

    Here of a model without tokens.
    """

    def __init__(self, counts: Integers, messages: Integers, alpha: float) -> None:
        """Keep them."""
        self._counts, self._messages, self._alpha = counts, messages, alpha

    def class_weights(self) -> Floats:
        """Return each token's weight per class, (n_classes, n_tokens), in nats."""
        return np.zeros(self._counts.shape)

    def contrasts(self, k: int) -> Floats:
        """Return each token's weight for class k against all others, (n_tokens,), in nats."""
        return np.full(self._counts.shape[1], np.nan)

    def left_out_contrasts(self, presence: Presence, labels: Integers, k: int) -> Floats:
        """Return the weight for class k of each entry of a matrix, its message left out, (nnz,).

        presence, labels: of messages that were learned.  NaN for a token that only one has.
        """
        return np.full(len(presence.indices), np.nan)

    def left_out_joints(
        self, presence: Presence, labels: Integers, log_prior: Floats | None
    ) -> Floats:
        """Return each message's joint log-likelihoods, itself left out, (n_messages, n_classes).

        log_prior: (n_classes,) where it is fixed; else it follows from the remaining messages.
        """
        return left_out_log_prior(labels, self._messages, log_prior)


def left_out_log_prior(
    labels: Integers, messages: Integers, log_prior: Floats | None = None
) -> Floats:
    """Return log P(m) of every class m for each message, itself left out; (n_messages, n_classes).

    log_prior: (n_classes,) when the prior is fixed; else it follows from the remaining messages,
    and is -inf for a class that has none left.
    """
    if log_prior is not None:
        return np.repeat(log_prior[None], len(labels), axis=0)
    left = messages - np.eye(len(messages), dtype=np.int64)  # a row for the class of the message
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(left / max(int(messages.sum()) - 1, 1))[labels])


class BernoulliArrays(EventArrays):
    """Bernoulli naive Bayes on arrays.

    A message scored by a model trained on it looks easier than it is.  Leaving message i of class k
    out changes N_k to N_k - 1 and c_jk to c_jk - 1 for its own tokens j, and nothing else; a token
    that only i contains leaves the vocabulary.  So each left-out score follows from the full counts
    (the counts are sufficient statistics, and one message's part in them is known):

        log P(m, x_i) without i = log P'(m) + sum over the vocabulary of log(1 - theta'_jm)
                                  + sum_{j in x_i} [log theta'_jm - log(1 - theta''_jm)]

    with ' for the counts without i.  The first sum has an absent term for i's own tokens too, with
    i still in their counts (theta''); the second sum takes it out again: O(V + nnz) in all.
    Tested against real retraining to 1e-9.
    """

    def class_weights(self) -> Floats:
        """Return log theta - log(1 - theta) per class and token."""
        absent = self._messages[:, None] - self._counts
        return np.asarray(np.log(self._counts + self._alpha) - np.log(absent + self._alpha))

    def contrasts(self, k: int, left_out: int | None = None) -> Floats:
        """Return each token's weight for class k against all others.

        left_out: None, or the class of a message that contains the token and is left out; the
        weight of a token that only this message contains is NaN: it has left the vocabulary.
        """
        inside, total = self._counts[k], self._counts.sum(axis=0)
        n, n_all = int(self._messages[k]), int(self._messages.sum())
        gone = np.zeros(len(total), dtype=bool)
        if left_out is not None:
            own = left_out == k
            inside, total = inside - own, total - 1
            n, n_all = n - own, n_all - 1
            gone = (total <= 0) | (inside < 0) | (inside > total)
        counts = np.where(gone, 0, inside), np.where(gone, 0, total - inside)
        alphas = class_alphas((n_all - n, n), self._alpha)
        below = math.log(n_all - n + 2 * alphas[0]), math.log(n + 2 * alphas[1])
        return np.where(gone, np.nan, _pair_weights(*counts, below, alphas))

    def left_out_contrasts(self, presence: Presence, labels: Integers, k: int) -> Floats:
        """Return the weight for class k of each entry, its message left out.

        Whatever the message, it is one less: two weights for each token, of messages of class k and
        of others.  (For the others it does not matter which of the classes has lost the message.)
        """
        if self._left_out is None or self._left_out[0] != k:
            other = 1 if k == 0 else 0
            self._left_out = k, np.stack([self.contrasts(k, c) for c in (other, k)])
        own = np.repeat((labels == k).astype(np.int64), np.diff(presence.indptr))
        return np.asarray(self._left_out[1][own, presence.indices])

    _left_out: "tuple[int, Floats] | None" = None  # a class, and its weights left out

    def left_out_joints(
        self, presence: Presence, labels: Integers, log_prior: Floats | None
    ) -> Floats:
        """Return each message's joint log-likelihoods, itself left out, in closed form."""
        counts, messages, alpha = self._counts, self._messages, self._alpha
        scores = np.empty((presence.shape[0], len(messages)))
        only_one = counts.sum(axis=0) == 1
        for k in range(len(messages)):
            rows = np.flatnonzero(labels == k)
            if not len(rows):
                continue
            own = np.arange(len(messages)) == k
            n = messages - own
            denominator = np.log(n + 2 * alpha)[:, None]
            # A message never contains a token that its class lacks, nor lacks one that is in all of
            # its class: a count below 0 is never used, so clamping keeps log() finite and changes
            # no score.
            log_absent = np.log(np.maximum(n[:, None] - counts, 0) + alpha) - denominator
            log_present = np.log(np.maximum(counts - own[:, None], 0) + alpha) - denominator
            # A token of i alone has left the vocabulary: it is in neither sum.
            gained = np.where(only_one, 0.0, log_present) - log_absent
            scores[rows] = presence[rows] @ gained.T + log_absent.sum(axis=1)
        return np.asarray(scores + left_out_log_prior(labels, messages, log_prior))


class _LeftOut:
    """A matrix of messages that were learned, each without itself."""

    def __init__(self, presence: Presence, totals: Integers, vocabulary: int) -> None:
        """Take a matrix; totals: (n_tokens,), the counts of all classes; vocabulary: its size."""
        lengths = np.diff(presence.indptr)
        self.n_rows = n = len(lengths)
        self.rows = np.repeat(np.arange(n), lengths)
        self.times: Integers = presence.data.astype(np.int64)  # (nnz,)
        self.tokens = presence.indices
        self.gone = totals[self.tokens] <= self.times  # only this message has them
        self.own_trials = np.bincount(self.rows, self.times, n).astype(np.int64)
        gone = np.bincount(self.rows[self.gone], minlength=n)
        self.vocabulary = np.maximum(vocabulary - gone, 1)


class MultinomialArrays(EventArrays):
    """Multinomial and complement naive Bayes on arrays.

    A message left out takes more than itself with it: x_ij of each of its tokens' counts, the sum
    of them of its class's n_k, and from the vocabulary the tokens that only it has.  So the
    denominators differ from message to message, and the weights from entry to entry of the matrix;
    each is a difference of logarithms of integers, in O(nnz) for all messages.
    """

    def __init__(
        self, counts: Integers, messages: Integers, alpha: float, size: Size, is_complement: bool
    ) -> None:
        """Keep the counts, which may be those of some tokens; size: of the whole model."""
        super().__init__(counts, messages, alpha)
        self._totals, self._vocabulary = counts.sum(axis=0), size.outcomes
        self._trials, self._is_complement = np.array(size.trials), is_complement
        self._sign, self._scored_by = 1.0, (counts, self._trials)
        if is_complement:
            others = self._totals - counts, self._trials.sum() - self._trials
            self._sign, self._scored_by = -1.0, others

    def class_weights(self) -> Floats:
        """Return each token's weight per class."""
        counts, trials = self._scored_by
        below = np.log(trials + self._alpha * self._vocabulary)[:, None]
        return np.asarray(self._sign * (np.log(counts + self._alpha) - below))

    def contrasts(self, k: int) -> Floats:
        """Return each token's weight for class k against all others."""
        n, everyone = int(self._messages[k]), int(self._messages.sum())
        alphas = class_alphas((everyone - n, n), self._alpha)
        inside, trials = self._counts[k], int(self._trials[k])
        both = int(self._trials.sum()) - trials, trials
        below = [math.log(t + self._vocabulary * a) for t, a in zip(both, alphas, strict=True)]
        return _pair_weights(inside, self._totals - inside, below, alphas)

    def left_out_contrasts(self, presence: Presence, labels: Integers, k: int) -> Floats:
        """Return the weight for class k of each entry, its message left out."""
        left = _LeftOut(presence, self._totals, self._vocabulary)
        found = np.full(len(left.tokens), np.nan)
        for own in (False, True):
            rows = (labels == k) == own
            entries = np.flatnonzero(rows[left.rows] & ~left.gone)
            tokens, times, of_row = (a[entries] for a in (left.tokens, left.times, left.rows))
            n = int(self._messages[k]) - own
            alphas = class_alphas((int(self._messages.sum()) - 1 - n, n), self._alpha)
            inside = self._counts[k][tokens] - own * times
            trials = int(self._trials[k]) - own * left.own_trials
            both = int(self._trials.sum()) - left.own_trials - trials, trials
            below = [
                _logs(np.where(rows, t + left.vocabulary * a, 1.0))[of_row]
                for t, a in zip(both, alphas, strict=True)
            ]
            outside = self._totals[tokens] - times - inside
            found[entries] = _pair_weights(inside, outside, below, alphas)
        return found

    def left_out_joints(
        self, presence: Presence, labels: Integers, log_prior: Floats | None
    ) -> Floats:
        """Return each message's joint log-likelihoods, itself left out."""
        left = _LeftOut(presence, self._totals, self._vocabulary)
        rows, tokens, times = (a[~left.gone] for a in (left.rows, left.tokens, left.times))
        joints = left_out_log_prior(labels, self._messages, log_prior)
        if self._is_complement:
            joints = np.where(np.isneginf(joints), joints, 0.0)
        for k, (counts, trials) in enumerate(zip(*self._scored_by, strict=True)):
            # Whether the counts that class k is scored by have the message in them.
            member = (labels == k) != self._is_complement
            of_token = np.maximum(counts[tokens] - member[rows] * times, 0)
            of_row = np.maximum(trials - member * left.own_trials, 0)
            with np.errstate(divide="ignore"):
                below = np.log(of_row + self._alpha * left.vocabulary)
            logs = np.log(of_token + self._alpha) - below[rows]
            joints[:, k] += self._sign * np.bincount(rows, times * logs, left.n_rows)
        return joints


def event_arrays(
    model: EventModel, counts: Integers, messages: Integers, alpha: float, size: Size
) -> EventArrays:
    """Return an event model on arrays; size: of the whole model, whose tokens these may not be."""
    if model.repeats:
        return MultinomialArrays(counts, messages, alpha, size, not model.has_prior)
    return (BernoulliArrays if model.has_tokens else EventArrays)(counts, messages, alpha)


def _pair_weights(
    inside: Integers, outside: Integers, below: Sequence[Any], alphas: Sequence[float]
) -> Floats:
    """Return `pair_weight` of arrays; below: the logarithms of the denominators, of the rest first.

    Equal to the one-message path's to the last bit, so that ties among the strongest break alike.
    """
    against = _logs(outside + alphas[0]) - below[0]
    return np.asarray((_logs(inside + alphas[1]) - below[1]) - against)


def _logs(values: NDArray[np.floating[Any]]) -> Floats:
    """Return logarithms, by `math` as the one-message path computes them; few values differ."""
    known = np.unique(values)
    logs = np.array([math.log(value) for value in known.tolist()], float)
    return np.asarray(logs[known.searchsorted(values)])


# The evidence of many messages: a sparse matrix of n_rows rows is given by `rows` and
# `weights`, the row and the weight of each of its entries (nnz,), rows ascending; `groups` says
# which group of words each entry is in.

TEXT, FIELDS, HEADER = 0, 1, 2  # the groups of words; others are of none


class EvidenceRows(NamedTuple):
    """The evidence of many messages: of each group an array (n_messages, 6), a `Group` a row."""

    text_and_fields: Floats
    text: Floats
    header: Floats
    text_tokens: Integers  # (n_messages,), tokens of the text, known or not
    traits: Floats | None = None  # (n_messages,), the feature of the traits; None without

    def some(self, places: Integers) -> "EvidenceRows":
        """Return the evidence of some messages."""
        return EvidenceRows._make(None if own is None else own[places] for own in self)

    def messages(self, place: slice) -> Iterator[tuple[evidence.Evidence, int]]:
        """Yield the evidence of each message of a slice, and how many tokens its text has."""
        parts = self.text_and_fields, self.text, self.header
        words, text, header = (map(_group, part[place].tolist()) for part in parts)
        tokens = self.text_tokens[place].tolist()
        traits = [None] * len(tokens) if self.traits is None else self.traits[place].tolist()
        return zip(map(evidence.Evidence, words, text, header, traits), tokens, strict=True)


def _group(row: list[float]) -> evidence.Group:
    strongest, total, strong, n, positive, negative = row
    return evidence.Group(strongest, total, strong, int(n), positive, negative)


def evidence_of_rows(
    rows: Integers, weights: Floats, groups: Integers, n_rows: int
) -> EvidenceRows:
    """Return the evidence of each message; entries with a NaN weight are ignored."""
    known = ~np.isnan(weights)
    text, header = known & (groups == TEXT), known & (groups == HEADER)
    words = text | (known & (groups == FIELDS))
    # Few strengths differ.  A look-up takes half as long as np.unique's inverse.
    strengths = np.unique(np.abs(weights[known]))
    rank, base = strengths.searchsorted(np.abs(weights)), len(strengths)

    def summary(of: Booleans, most: int) -> Floats:
        own, some = rows[of], weights[of]
        n = np.bincount(own, minlength=n_rows)
        edges, is_long = np.full(n_rows, -evidence.SOFT), n > most
        if is_long.any():
            ordered = np.sort(own * base + (base - 1 - rank[of]))  # in a row the strongest first
            last = np.cumsum(n) - n + most - 1
            edges[is_long] = strengths[base - 1 - ordered[last[is_long]] % base]
        strongest, n_strongest = _above_in_rows(own, some, edges[own], n_rows)
        strong, n_strong = _above_in_rows(own, some, evidence.STRONG, n_rows)
        positive = np.bincount(own, np.maximum(some, 0), n_rows)
        negative = np.bincount(own, np.minimum(some, 0), n_rows)
        total = (positive + negative) / (evidence.SUM_SCALE * np.sqrt(np.maximum(n, 1)))
        strongest = strongest / np.where(n_strongest > 0, n_strongest, 1)
        strong = strong / (n_strong + evidence.STRONG_SHRINK)
        return np.column_stack([strongest, total, strong, n, positive, negative])

    text_tokens = np.bincount(rows[groups == TEXT], minlength=n_rows)
    of_text = summary(text, evidence.STRONGEST)
    return EvidenceRows(
        summary(words, evidence.STRONGEST), of_text, summary(header, evidence.HEADERS), text_tokens
    )


def _above_in_rows(
    rows: Integers, weights: Floats, edges: Floats | float, n_rows: int
) -> tuple[Floats, Floats]:
    """Return for each row the sum of the weights above a soft edge, and their number."""
    parts: Floats = np.clip((np.abs(weights) - edges) / evidence.SOFT + 0.5, 0, 1)
    total = np.bincount(rows, parts * weights, n_rows)
    return np.asarray(total, float), np.asarray(np.bincount(rows, parts, n_rows), float)
