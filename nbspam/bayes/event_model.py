"""The event models: how a token is counted, and the weights that follow.

Naive Bayes multiplies a likelihood for each token.  An event model says what is counted, which
counts are possible, and which weights follow from them; everything else (evidence, calibration, the
model file, learning) is the same for all of them.  Counts, messages and histograms are integers per
class, so that learning in any order, merging and forgetting are exact whatever the event model.

A new event model is a subclass of `EventModel`, one of `EventArrays` beside it, and an entry of
EVENT_MODELS.  The arrays have the same formulas for many messages at once, and a test compares the
two; this file loads without numpy, which one message does not need.

Every event model has the same weight of a token for the evidence rule, that of a class against all
others; they differ in what the counts are counts of (`Size`):

    theta_k = (c_k + a_k) / (T_k + m a_k),   w = log theta_spam - log theta_rest

T_k is the number of trials in class k and m the number of outcomes of one: of the Bernoulli model
messages, and 2; of the multinomial one words, and the size of the vocabulary.
It is what the counts say of a message with the token, and no more.  The difference of logits,
which the textbook's Bernoulli sum needs beside its bias, has in it what the token's absence would
have said: of a token that 2,365 of 2,500 ham and 500 of 500 spam have, +7.4 nats, where the counts
say 1.06 : 1.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # one message is classified without numpy
    from nbspam.bayes.matrix import Floats, Integers, Presence

Row = tuple[int, ...]  # a number per class
Histogram = Mapping[int, int]  # count -> how many tokens have it


class Size:
    """What the counts of the tokens are counts of: messages per class, trials, and outcomes."""

    __slots__ = ("messages", "outcomes", "trials")

    def __init__(self, messages: Sequence[int], trials: Sequence[int], outcomes: int) -> None:
        """Keep them; messages, trials: per class; outcomes: of a trial."""
        self.messages = tuple(messages)
        self.trials = tuple(trials)
        self.outcomes = outcomes


def class_alphas(messages: Sequence[float], alpha: float) -> list[float]:
    """Return the smoothing of each of K classes, K alpha (N_k + 1) / (N + K); its mean is alpha.

    The 1 and the K keep it above 0 for a class without messages: its only one may be left out.
    """
    k = len(messages)
    return [alpha * k * (n + 1) / (sum(messages) + k) for n in messages]


def pair_weight(
    inside: float, n: float, outside: float, rest: float, alphas: Sequence[float], outcomes: int = 2
) -> float:
    """Return log theta_spam - log theta_rest of a token's presence, in nats.

    inside: its count in the n trials of the positive class; outside: in the `rest` of the others.
    alphas: smoothing of the rest and of the positive class (`class_alphas`).
    """
    log = math.log
    return (log(inside + alphas[1]) - log(n + outcomes * alphas[1])) - (
        log(outside + alphas[0]) - log(rest + outcomes * alphas[0])
    )


def contrast(row: Row, size: Size, k: int, alpha: float) -> float:
    """Return a present token's weight for class k against all others, in nats."""
    messages, trials = size.messages, size.trials
    alphas = class_alphas((sum(messages) - messages[k], messages[k]), alpha)
    rest = sum(trials) - trials[k]
    return pair_weight(row[k], trials[k], sum(row) - row[k], rest, alphas, size.outcomes)


class EventModel:
    """How a token is counted, and the weights that follow from its counts."""

    name: str  # in the model file
    has_tokens = True  # whether tokens are counted at all
    repeats = False  # whether a token counts as often as it occurs in a message, or once
    has_prior = True  # whether the textbook's sum has the classes' prior in it
    # Whether the size follows from the number of messages, whatever is in them.
    size_is_messages = True

    def is_row(self, row: Row, messages: Row) -> bool:
        """Return whether a token can have these counts: not all 0, none above its class's messages.

        row, messages: per class.
        """
        return any(row) and all(0 <= c <= n for c, n in zip(row, messages, strict=True))

    def size(self, histograms: Sequence[Histogram], messages: Row) -> Size:
        """Return what the counts are counts of: messages, in which a token is or is not.

        histograms: per class, count -> how many tokens of the vocabulary have it.
        """
        return Size(messages, messages, 2)

    def class_weights(self, row: Row, size: Size, alpha: float) -> tuple[float, ...]:
        """Return the weight of a token for each class, in nats; 0 of a model without tokens."""
        return (0.0,) * len(row)

    def bias(self, histograms: Sequence[Histogram], messages: Row, alpha: float) -> list[float]:
        """Return each class's joint log-likelihood without any token, less its log prior."""
        return [0.0] * len(messages)

    def arrays(
        self, counts: "Integers", messages: "Integers", alpha: float, size: Size | None = None
    ) -> "EventArrays":
        """Return the same on arrays; size: where the counts are those of some of its tokens."""
        return EventArrays(counts, messages, alpha)


class EventArrays:
    """An event model of some counts, (n_classes, n_tokens), and messages, (n_classes,).

    Here of a model without tokens.
    """

    def __init__(self, counts: "Integers", messages: "Integers", alpha: float) -> None:
        """Keep them."""
        self._counts, self._messages, self._alpha = counts, messages, alpha

    def class_weights(self) -> "Floats":
        """Return each token's weight per class, (n_classes, n_tokens), in nats."""
        import numpy as np

        return np.zeros(self._counts.shape)

    def contrasts(self, k: int) -> "Floats":
        """Return each token's weight for class k against all others, (n_tokens,), in nats."""
        import numpy as np

        return np.full(self._counts.shape[1], np.nan)

    def left_out_contrasts(self, presence: "Presence", labels: "Integers", k: int) -> "Floats":
        """Return the weight for class k of each entry of a matrix, its message left out, (nnz,).

        presence, labels: of messages that were learned.  NaN for a token that only one has.
        """
        import numpy as np

        return np.full(len(presence.indices), np.nan)

    def left_out_joints(
        self, presence: "Presence", labels: "Integers", log_prior: "Floats | None"
    ) -> "Floats":
        """Return each message's joint log-likelihoods, itself left out, (n_messages, n_classes).

        log_prior: (n_classes,) where it is fixed; else it follows from the remaining messages.
        """
        return left_out_log_prior(labels, self._messages, log_prior)


def left_out_log_prior(
    labels: "Integers", messages: "Integers", log_prior: "Floats | None" = None
) -> "Floats":
    """Return log P(m) of every class m for each message, itself left out; (n_messages, n_classes).

    log_prior: (n_classes,) when the prior is fixed; else it follows from the remaining messages,
    and is -inf for a class that has none left.
    """
    import numpy as np

    if log_prior is not None:
        return np.repeat(log_prior[None], len(labels), axis=0)
    left = messages - np.eye(len(messages), dtype=np.int64)  # a row for the class of the message
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(left / max(int(messages.sum()) - 1, 1))[labels])


def joints(bias: Sequence[float], token_weights: Iterable[Sequence[float]]) -> list[float]:
    """Return the joint log-likelihood of each class, given the weights of the message's tokens."""
    rows = list(token_weights)
    return [math.fsum([b, *(row[k] for row in rows)]) for k, b in enumerate(bias)]


class NoTokens(EventModel):
    """The event model of the textbook's Gaussian naive Bayes: messages are told by their traits."""

    name = "none"
    has_tokens = False

    def is_row(self, row: Row, messages: Row) -> bool:
        """Return False: no token has counts."""
        return False


class Bernoulli(EventModel):
    """A token is present in a message or absent from it; a message is the set of its tokens.

    Class k holds N_k messages, of which c_jk contain token j.

        theta_jk = (c_jk + a) / (N_k + 2 a)               smoothed likelihood of token j in class k
        w_jk     = log theta_jk - log(1 - theta_jk)       weight of token j, present
        b_k      = log P(k) + sum_j log(1 - theta_jk)     bias: as if no token were present
        log P(k, x) = b_k + sum_j w_jk x_j                joint log-likelihood of message x

    For two classes the log-odds are the difference of the two joints, the difference of the weights
    being  w_j = log theta_j1 - log(1 - theta_j1) - log theta_j0 + log(1 - theta_j0).

    The denominator has 2 a, not m a for a vocabulary of m tokens: a token is present or absent, two
    outcomes, and only with 2 a do P(present) and P(absent) add up to 1 (McCallum and Nigam 1998,
    equation 6 with Laplace's prior; scikit-learn's BernoulliNB does the same).  Logs are taken of
    counts, never of 1 - exp(...): for small a that loses seven digits.

    The sums run over the vocabulary, which is every token seen in training.
    """

    name = "bernoulli"

    def class_weights(self, row: Row, size: Size, alpha: float) -> tuple[float, ...]:
        """Return a present token's weight for each class, logit theta, in nats."""
        return tuple(
            math.log((c + alpha) / (n - c + alpha)) for c, n in zip(row, size.messages, strict=True)
        )

    def bias(self, histograms: Sequence[Histogram], messages: Row, alpha: float) -> list[float]:
        """Return sum_j log(1 - theta_jk) per class; the histograms are all that it needs."""
        return [
            math.fsum(
                tokens * (math.log(n - count + alpha) - math.log(n + 2 * alpha))
                for count, tokens in histogram.items()
            )
            for histogram, n in zip(histograms, messages, strict=True)
        ]

    def arrays(
        self, counts: "Integers", messages: "Integers", alpha: float, size: Size | None = None
    ) -> EventArrays:
        """Return the same on arrays."""
        return BernoulliArrays(counts, messages, alpha)


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

    def class_weights(self) -> "Floats":
        """Return log theta - log(1 - theta) per class and token."""
        import numpy as np

        absent = self._messages[:, None] - self._counts
        return np.asarray(np.log(self._counts + self._alpha) - np.log(absent + self._alpha))

    def contrasts(self, k: int, left_out: int | None = None) -> "Floats":
        """Return each token's weight for class k against all others.

        left_out: None, or the class of a message that contains the token and is left out; the
        weight of a token that only this message contains is NaN: it has left the vocabulary.
        Logs are computed by `math`, so that weights equal those of the one-message path to the last
        bit and ties among the strongest are broken alike.
        """
        import numpy as np

        inside, total = self._counts[k], self._counts.sum(axis=0)
        n, n_all = int(self._messages[k]), int(self._messages.sum())
        gone = np.zeros(len(total), dtype=bool)
        if left_out is not None:
            own = left_out == k
            inside, total = inside - own, total - 1
            n, n_all = n - own, n_all - 1
            gone = (total <= 0) | (inside < 0) | (inside > total)
        key = np.where(gone, 0, inside * (n_all + 2) + (total - inside))
        pairs = np.unique(key)
        rest = n_all - n
        alphas = class_alphas((rest, n), self._alpha)
        table = [
            pair_weight(pair // (n_all + 2), n, pair % (n_all + 2), rest, alphas)
            for pair in pairs.tolist()
        ]
        return np.where(gone, np.nan, np.array(table)[pairs.searchsorted(key)])

    def left_out_contrasts(self, presence: "Presence", labels: "Integers", k: int) -> "Floats":
        """Return the weight for class k of each entry, its message left out.

        Whatever the message, it is one less: two weights for each token, of messages of class k and
        of others.  (For the others it does not matter which of the classes has lost the message.)
        """
        import numpy as np

        if self._left_out is None or self._left_out[0] != k:
            other = 1 if k == 0 else 0
            self._left_out = k, np.stack([self.contrasts(k, c) for c in (other, k)])
        own = np.repeat((labels == k).astype(np.int64), np.diff(presence.indptr))
        return np.asarray(self._left_out[1][own, presence.indices])

    _left_out: "tuple[int, Floats] | None" = None  # a class, and its weights left out

    def left_out_joints(
        self, presence: "Presence", labels: "Integers", log_prior: "Floats | None"
    ) -> "Floats":
        """Return each message's joint log-likelihoods, itself left out, in closed form."""
        import numpy as np

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


class Multinomial(EventModel):
    """A token counts as often as it occurs: each word is drawn from its class's vocabulary.

    A message is a bag of tokens, x_j of token j; n_jk tokens j are in the messages of class k, n_k
    tokens of any kind, and the vocabulary has m different ones.

        theta_jk = (n_jk + a) / (n_k + a m)              smoothed likelihood of token j in class k
        log P(k, x) = log P(k) + sum_j x_j log theta_jk  joint, but for the multinomial coefficient,
                                                         which is the same for all classes

    The a are the parameters of a symmetric Dirichlet prior less 1 (its mode), or the parameters
    themselves (its mean): McCallum and Nigam 1998, equations 3 and 6; Manning, Raghavan and
    Schuetze, "Introduction to Information Retrieval", 13.2, where a is 1.  scikit-learn's
    MultinomialNB is the same.  A token that training has not seen says nothing.
    """

    name = "multinomial"
    repeats = True
    size_is_messages = False
    is_complement = False

    def is_row(self, row: Row, messages: Row) -> bool:
        """Return whether a token can have these counts: not all 0, none of a class without any."""
        return any(row) and all(
            c == 0 or (c > 0 and n > 0) for c, n in zip(row, messages, strict=True)
        )

    def size(self, histograms: Sequence[Histogram], messages: Row) -> Size:
        """Return what the counts are counts of: tokens, each one of the vocabulary."""
        trials = [sum(count * tokens for count, tokens in h.items()) for h in histograms]
        # 1 without a vocabulary, whose logarithm nothing uses.
        return Size(messages, trials, max(1, sum(histograms[0].values())))

    def class_weights(self, row: Row, size: Size, alpha: float) -> tuple[float, ...]:
        """Return log theta of a token for each class, in nats, of each time that it occurs."""
        log = math.log
        return tuple(
            log(c + alpha) - log(n + alpha * size.outcomes)
            for c, n in zip(row, size.trials, strict=True)
        )

    def arrays(
        self, counts: "Integers", messages: "Integers", alpha: float, size: Size | None = None
    ) -> EventArrays:
        """Return the same on arrays."""
        return MultinomialArrays(counts, messages, alpha, size, self.is_complement)


class Complement(Multinomial):
    """A class is scored by how badly its complement, all other classes, explains the message.

    With the counts of the multinomial model, and ~k for all classes but k together:

        theta_jk = (n_j~k + a) / (n_~k + a m)
        score of k = - sum_j x_j log theta_jk              the least likely complement wins

    It was made for classes of very different sizes: the counts of a complement are of about the
    same size for all (Rennie, Shih, Teevan and Karger 2003, "Tackling the Poor Assumptions of Naive
    Bayes Text Classifiers", section 3.1; without their length normalization and TF-IDF).  As in
    scikit-learn's ComplementNB the prior is left out, since the words of any text outweigh it.

    With two classes the difference of the scores is that of the multinomial model, but for the
    prior.  The evidence rule's weights are those of the multinomial model.
    """

    name = "complement"
    has_prior = False
    is_complement = True

    def class_weights(self, row: Row, size: Size, alpha: float) -> tuple[float, ...]:
        """Return -log theta of a token in the complement of each class, in nats."""
        log = math.log
        total, trials = sum(row), sum(size.trials)
        return tuple(
            log(trials - n + alpha * size.outcomes) - log(total - c + alpha)
            for c, n in zip(row, size.trials, strict=True)
        )


class _LeftOut:
    """A matrix of messages that were learned, each without itself."""

    def __init__(self, presence: "Presence", totals: "Integers", vocabulary: int) -> None:
        """Take a matrix; totals: (n_tokens,), the counts of all classes; vocabulary: its size."""
        import numpy as np

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
        self,
        counts: "Integers",
        messages: "Integers",
        alpha: float,
        size: Size | None = None,
        is_complement: bool = False,
    ) -> None:
        """Keep the counts; size: of the model, where they are those of some of its tokens."""
        import numpy as np

        super().__init__(counts, messages, alpha)
        self._is_complement, self._sign = is_complement, -1.0 if is_complement else 1.0
        self._totals = counts.sum(axis=0)
        self._trials = counts.sum(axis=1) if size is None else np.array(size.trials)
        known = max(1, int((self._totals > 0).sum()))
        self._vocabulary = known if size is None else size.outcomes

    def class_weights(self) -> "Floats":
        """Return each token's weight per class."""
        import numpy as np

        counts, trials = self._counts, self._trials
        if self._is_complement:
            counts, trials = self._totals - counts, trials.sum() - trials
        below = np.log(trials + self._alpha * self._vocabulary)[:, None]
        return np.asarray(self._sign * (np.log(counts + self._alpha) - below))

    def contrasts(self, k: int) -> "Floats":
        """Return each token's weight for class k against all others."""
        n, everyone = int(self._messages[k]), int(self._messages.sum())
        alphas = class_alphas((everyone - n, n), self._alpha)
        inside, trials = self._counts[k], int(self._trials[k])
        rest = int(self._trials.sum()) - trials
        below = [
            math.log(t + self._vocabulary * a) for t, a in zip((rest, trials), alphas, strict=True)
        ]
        of, against = _logs(inside, alphas[1]), _logs(self._totals - inside, alphas[0])
        return (of - below[1]) - (against - below[0])

    def left_out_contrasts(self, presence: "Presence", labels: "Integers", k: int) -> "Floats":
        """Return the weight for class k of each entry, its message left out."""
        import numpy as np

        left = _LeftOut(presence, self._totals, self._vocabulary)
        is_own = labels == k
        found = np.full(len(left.tokens), np.nan)
        for own in (False, True):
            rows = np.flatnonzero(is_own == own)
            if not len(rows):
                continue
            entries = np.flatnonzero((is_own == own)[left.rows] & ~left.gone)
            tokens, times = left.tokens[entries], left.times[entries]
            n = int(self._messages[k]) - own
            rest = int(self._messages.sum()) - int(self._messages[k]) - (not own)
            alphas = class_alphas((rest, n), self._alpha)
            inside = self._counts[k][tokens] - own * times
            outside = self._totals[tokens] - times - inside
            trials = int(self._trials[k]) - own * left.own_trials
            others = int(self._trials.sum()) - left.own_trials - trials
            of_row = left.rows[entries]
            below = np.zeros(left.n_rows), np.zeros(left.n_rows)
            for i in rows.tolist():
                below[0][i] = math.log(others[i] + left.vocabulary[i] * alphas[0])
                below[1][i] = math.log(trials[i] + left.vocabulary[i] * alphas[1])
            found[entries] = (_logs(inside, alphas[1]) - below[1][of_row]) - (
                _logs(outside, alphas[0]) - below[0][of_row]
            )
        return found

    def left_out_joints(
        self, presence: "Presence", labels: "Integers", log_prior: "Floats | None"
    ) -> "Floats":
        """Return each message's joint log-likelihoods, itself left out."""
        import numpy as np

        left = _LeftOut(presence, self._totals, self._vocabulary)
        kept = ~left.gone
        rows, tokens, times = left.rows[kept], left.tokens[kept], left.times[kept]
        joints = left_out_log_prior(labels, self._messages, log_prior)
        if self._is_complement:
            joints = np.where(np.isneginf(joints), joints, 0.0)
        for k in range(len(self._messages)):
            # Whether the counts that class k is scored by have the message in them.
            member = (labels == k) != self._is_complement
            counts, trials = self._counts[k], int(self._trials[k])
            if self._is_complement:
                counts, trials = self._totals - counts, int(self._trials.sum()) - trials
            of_token = np.maximum(counts[tokens] - member[rows] * times, 0)
            of_row = np.maximum(trials - member * left.own_trials, 0)
            with np.errstate(divide="ignore"):
                below = np.log(of_row + self._alpha * left.vocabulary)
            logs = np.log(of_token + self._alpha) - below[rows]
            joints[:, k] += self._sign * np.bincount(rows, times * logs, left.n_rows)
        return joints


def _logs(counts: "Integers", alpha: float) -> "Floats":
    """Return log(count + alpha) of integers, by `math` as the one-message path computes it."""
    import numpy as np

    known, where = np.unique(counts, return_inverse=True)
    return np.asarray([math.log(count + alpha) for count in known.tolist()])[where]


BERNOULLI, NO_TOKENS = Bernoulli.name, NoTokens.name
_MODELS: dict[str, EventModel] = {
    model.name: model for model in (Bernoulli(), Multinomial(), Complement(), NoTokens())
}
EVENT_MODELS = tuple(_MODELS)


def event_model(name: str) -> EventModel:
    """Return the event model of this name, one of EVENT_MODELS."""
    return _MODELS[name]
