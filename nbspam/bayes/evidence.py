"""From the weights of a message's words to the features from which its log-odds are computed.

The plain sum of naive Bayes takes every word for independent evidence.  Words are correlated, so on
a whole mail the sum is overconfident and ranks poorly.  Three features of the same weights w_1 …
w_n do better together, on SMS and on mail (docs/research/ideas-tried.md has what else was tried):

    strongest  mean of the words of largest |w|: STRONGEST of the text, HEADERS of the header
    sum        sum of all w / (SUM_SCALE sqrt n)
    strong     sum of those |w| above STRONG / (their number + STRONG_SHRINK)

and for a text a fourth, its length, ln n - LENGTH_CENTRE: few words are less evidence than many.

Both edges are soft: a word's part in the feature rises from 0 to 1 while |w| rises by SOFT,

    part = (|w| - edge) / SOFT + 1/2, within 0 and 1

and the edge of the strongest is the |w| of the last of them.  Many words have the same counts, and
so the same weight.  With a hard edge one more message could move all of them across it: taught one
spam more, rightly, a model of 450 mails missed 10.95 % of spam and not 9.52; now 10.24 and not 9.76
(P9).  The features of P1 to P6 are as good either way (docs/research/ideas-tried.md).

Words of one message that have the same counts mostly come from the same learned messages, so they
are no independent evidence: m of them count as m^ALIKE words, each as m^(ALIKE - 1) of one, in all
features.  Their weights are the same too, by which they are known.

Each feature but the length is a sum over words, so every word's share of the log-odds is exact.
What is summed is rounded (`on_grid`), so that the sums do not depend on the order.

A model with traits (`trait_model.py`) has one feature more, what the message's numbers say:

    traits     sum over the traits of log f_spam / f_rest, each within +-TRAIT_LIMIT, / TRAIT_SCALE,
               less while few messages were learned (`trait_weight`)

The densities of a text's numbers depend on each other, as words do; and what is far from anything
seen says little.  Left-out log-loss of P1's and P2's training halves: .0218 and .0184 without
traits; with limits of 1.5, 2, 3 and 4 nats .0204 .0203 .0206 .0208 and .0180 .0180 .0180 .0181;
without a limit .0217 and .0194.

A message has four groups of words: its text; its own fields, which sender and mailer write (From,
To, the mailer …); the header channel, which shows the way it came; and how it begins, its opening.
Three calibrations use them (`calibration.py`): one of the text and the own fields together, which
hold for mail from anywhere; one of the text and of the header channel, which is trusted as far as
`calibration.trust` says; and one of the opening, which moves the others' log-odds a little.
Of the header channel, words that alone tell the classes apart are left out (`tells_alone`).
"""

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import accumulate
from operator import mul
from typing import NamedTuple

from nbspam.bayes.event_model import on_grid

STRONGEST, HEADERS = 25, 20
SUM_SCALE = 5.0
STRONG = 2.5
STRONG_SHRINK = 3.0
SOFT = 0.5  # nats
LENGTH_CENTRE = 4.5
# 1-ROCA% of P2, P3, P5, P4.1 to P4.3 and P1 with 1, .9, .8, .7: .0111 .235 .125 .174 .0657 .0954
# .135; .0110 .222 .116 .173 .0641 .0928 .138; .0113 .216 .110 .174 .0650 .0911 .144; .0116 .213
# .105 .177 .0675 .0912 .143.
ALIKE = 0.8
WORD_FEATURES = 3
TRAIT_LIMIT, TRAIT_SCALE = 2.0, 5.0
TRAITS_ENOUGH = 5.0  # messages of the smaller class beside one whose densities are half relied on

# A header word in so much of one class and so little of the others, with so many messages of each,
# was written by who collected them: a fetcher's folder, another server.  No word of P2, P3, P6 and
# P7 is one.  Of 200 new spams of trec07p that had the mark of 200 hams learned (the spams learned
# had another), 6 were called ham with the marks heard, and 2 without.
ALONE, _ELSEWHERE, _ENOUGH = 0.9, 0.01, 50


def tells_alone(row: Sequence[float], messages: Sequence[float]) -> bool:
    """Return whether a token is in nearly all messages of one class and in hardly any other.

    row: how many messages of each class have it, of so many.
    """
    return min(messages) >= _ENOUGH and any(
        n >= ALONE * n_messages and sum(row) - n <= _ELSEWHERE * (sum(messages) - n_messages)
        for n, n_messages in zip(row, messages, strict=True)
    )


class Group(NamedTuple):
    """The weights of one group of words, summed up."""

    strongest: float
    sum: float
    strong: float
    n: float  # known words, those alike in part
    positive: float  # the sum of the weights above 0, in nats
    negative: float  # of those below 0
    known: float = 0  # words

    @property
    def features(self) -> tuple[float, float, float]:
        """The features that are sums over words."""
        return self.strongest, self.sum, self.strong

    @property
    def length(self) -> float:
        """The length feature."""
        return math.log(max(1, self.n)) - LENGTH_CENTRE


class Evidence(NamedTuple):
    """What the words of a message say, before calibration."""

    text_and_fields: Group
    text: Group
    header: Group
    opening: Group
    traits: float | None = None  # the feature of the traits; None of a model without


def soft_step(strength: float, edge: float) -> float:
    """Return how much of a word of this strength is above a soft edge, 0 to 1."""
    return min(1.0, max(0.0, (strength - edge) / SOFT + 0.5))


@cache
def alike(m: int) -> float:
    """Return how many words m words of the same counts count as, in 1/1024: sums are exact."""
    return round(float(m**ALIKE) * 1024) / 1024


class _Words:
    """The words of a group, those alike together, the strongest first."""

    def __init__(self, weights: Iterable[float], most: int) -> None:
        self.counts = Counter(weights)
        self.weights = sorted(self.counts, key=abs, reverse=True)
        self.times = list(map(alike, map(self.counts.__getitem__, self.weights)))
        pairs = zip(self.times, self.weights, strict=True)
        self.nats = [w if t == 1 else on_grid(t * w) for t, w in pairs]  # weights are on the grid
        self._n, self._total = [0.0, *accumulate(self.times)], [0.0, *accumulate(self.nats)]
        self.n = self._n[-1]
        # The strength of the last of the `most` strongest; below 0 if all are.
        last = bisect_left(self._n, most) - 1
        self.edge = -SOFT if self.n <= most else abs(self.weights[last])

    def above(self, edge: float) -> tuple[float, float]:
        """Return the sum of the weights above a soft edge, and their number."""
        first = bisect_left(self.weights, -(edge + SOFT / 2), key=_weakness)
        end = bisect_right(self.weights, -(edge - SOFT / 2), key=_weakness)
        parts = [soft_step(abs(w), edge) for w in self.weights[first:end]]
        nats, times = (
            map(on_grid, map(mul, parts, values[first:end])) for values in (self.nats, self.times)
        )
        return self._total[first] + sum(nats), self._n[first] + sum(times)


def _weakness(weight: float) -> float:
    return -abs(weight)


def group_of(weights: Iterable[float], most: int) -> Group:
    """Return the summary of a group of words.

    weights: of each known word, in nats, in any order.  most: STRONGEST or HEADERS.
    """
    words = _Words(weights, most)
    strongest, n_strongest = words.above(words.edge)
    strong, n_strong = words.above(STRONG)
    positive = sum(filter((0.0).__lt__, words.nats))
    negative = sum(filter((0.0).__gt__, words.nats))
    return Group(
        strongest / (n_strongest or 1.0),
        (negative + positive) / (SUM_SCALE * math.sqrt(max(1, words.n))),
        strong / (n_strong + STRONG_SHRINK),
        words.n,
        positive,
        negative,
        words.counts.total(),
    )


def trait_weight(log_ratio: float, messages: float) -> float:
    """Return what counts of the log-odds of a trait, in nats.

    log_ratio: log f_spam / f_rest.  messages: with traits, in the smaller class; densities of few
    are relied on in part, of one not at all (P7's 1-ROCA% with one and five of each: 17.4 and 7.11
    without traits, 17.4 and 7.02 so, 19.7 and 6.78 with traits relied on from the first).
    """
    squared = max(0, messages - 1) ** 2
    part = squared / (squared + TRAITS_ENOUGH**2)
    return part * min(max(log_ratio, -TRAIT_LIMIT), TRAIT_LIMIT)


def trait_feature(weights: Iterable[float]) -> float:
    """Return the feature of the traits, from the weight of each, in nats."""
    return math.fsum(weights) / TRAIT_SCALE


def evidence(
    text: list[float],
    fields: list[float],
    header: list[float],
    opening: list[float],
    traits: Sequence[float] | None = None,
) -> Evidence:
    """Return the evidence of a message: the weights of each group's known words, in any order.

    traits: the weight of each trait, in nats; None for a model without traits.
    """
    of_text = group_of(text, STRONGEST)
    return Evidence(
        group_of(text + fields, STRONGEST) if fields else of_text,
        of_text,
        group_of(header, HEADERS),
        group_of(opening, STRONGEST),
        None if traits is None else trait_feature(traits),
    )


def group_shares(weights: Sequence[float], most: int, coefficients: Sequence[float]) -> list[float]:
    """Return what each weight of a group adds to b . features, in nats, in the order given.

    coefficients: of the WORD_FEATURES features.  The shares add up to b . features.
    """
    b_strongest, b_sum, b_strong = coefficients
    words = _Words(weights, most)
    of_strongest = b_strongest / (words.above(words.edge)[1] or 1.0)
    of_sum = b_sum / (SUM_SCALE * math.sqrt(max(1, words.n)))
    of_strong = b_strong / (words.above(STRONG)[1] + STRONG_SHRINK)
    shares = {}
    for w, nats in zip(words.weights, words.nats, strict=True):
        strongest, strong = soft_step(abs(w), words.edge), soft_step(abs(w), STRONG)
        share = nats * (of_strongest * strongest + of_sum + of_strong * strong)
        shares[w] = share / words.counts[w]
    return [shares[w] for w in weights]
