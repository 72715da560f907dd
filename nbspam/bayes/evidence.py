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

Each feature but the length is a sum over words, so every word's share of the log-odds is exact.

A model with traits (`trait_model.py`) has one feature more, what the message's numbers say:

    traits     sum over the traits of log f_spam / f_rest, each within +-TRAIT_LIMIT, / TRAIT_SCALE,
               less while few messages were learned (`trait_weight`)

The densities of a text's numbers depend on each other, as words do; and what is far from anything
seen says little.  Left-out log-loss of P1's and P2's training halves: .0218 and .0184 without
traits; with limits of 1.5, 2, 3 and 4 nats .0204 .0203 .0206 .0208 and .0180 .0180 .0180 .0181;
without a limit .0217 and .0194.

A message has three groups of words: its text; its own fields, which sender and mailer write (From,
To, the mailer …); and the header channel, which shows the way it came.  Two calibrations use them
(`calibration.py`): one of the text and the own fields together, which hold for mail from anywhere,
and one of the text and of the header channel, which is trusted as far as `calibration.trust` says.
Of the latter, words that alone tell the classes apart are left out (`tells_alone`).
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from operator import mul
from typing import NamedTuple

STRONGEST, HEADERS = 25, 20
SUM_SCALE = 5.0
STRONG = 2.5
STRONG_SHRINK = 3.0
SOFT = 0.5  # nats
LENGTH_CENTRE = 4.5
WORD_FEATURES = 3
TRAIT_LIMIT, TRAIT_SCALE = 2.0, 5.0
TRAITS_ENOUGH = 5.0  # messages of the smaller class beside one whose densities are half relied on

# A header word in so much of one class and so little of the others, with so many messages of each,
# was written by who collected them: a fetcher's folder, another server.  No word of P2, P3, P6 and
# P7 is one.  Of 200 new spams of trec07p that had the mark of 200 hams learned (the spams learned
# had another), 6 were called ham with the marks heard, and 2 without.
_ALONE, _ELSEWHERE, _ENOUGH = 0.9, 0.01, 50


def tells_alone(row: Sequence[float], messages: Sequence[float]) -> bool:
    """Return whether a token is in nearly all messages of one class and in hardly any other.

    row: how many messages of each class have it, of so many.
    """
    return min(messages) >= _ENOUGH and any(
        n >= _ALONE * of and sum(row) - n <= _ELSEWHERE * (sum(messages) - of)
        for n, of in zip(row, messages, strict=True)
    )


class Group(NamedTuple):
    """The weights of one group of words, summed up."""

    strongest: float
    sum: float
    strong: float
    n: float  # known words
    positive: float  # the sum of the weights above 0, in nats
    negative: float  # of those below 0

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
    traits: float | None = None  # the feature of the traits; None of a model without


def part(strength: float, edge: float) -> float:
    """Return how much of a word of this strength is above a soft edge, 0 to 1."""
    return min(1.0, max(0.0, (strength - edge) / SOFT + 0.5))


def edge_of(ordered: Sequence[float], most: int) -> float:
    """Return the strength of the last of the `most` strongest weights; below 0 if all are.

    ordered: in ascending order.  They are taken from both ends, since a sort by strength takes
    longer: 0.25 ms for a mail's 540 weights, against 0.05 ms.
    """
    if len(ordered) <= most:
        return -SOFT
    low, high, strength = 0, len(ordered) - 1, 0.0
    for _ in range(most):
        if -ordered[low] >= ordered[high]:
            strength = -ordered[low]
            low += 1
        else:
            strength = ordered[high]
            high -= 1
    return strength


def _above(ordered: Sequence[float], edge: float) -> tuple[float, float]:
    """Return the sum of the weights above a soft edge, and their number; each counts in part."""
    outer, inner = edge + SOFT / 2, edge - SOFT / 2
    if outer < 0:
        return math.fsum(ordered), float(len(ordered))
    first, last = bisect_right(ordered, -outer), bisect_left(ordered, outer)
    some = ordered[first:last]
    if inner > 0:
        some = [*ordered[first : bisect_left(ordered, -inner)]]
        some += ordered[bisect_right(ordered, inner) : last]
    # `part` itself, for those few that rounding puts beside the edge.
    parts = [x if 0 < (x := (abs(w) - edge) / SOFT + 0.5) < 1 else part(abs(w), edge) for w in some]
    whole = [*ordered[:first], *ordered[last:]]
    return math.fsum([*whole, *map(mul, parts, some)]), len(whole) + math.fsum(parts)


def group_of(ordered: Sequence[float], most: int) -> Group:
    """Return the summary of a group of words.

    ordered: log-odds weight of each known word, in nats, ascending.  most: STRONGEST or HEADERS.
    """
    n = len(ordered)
    strongest, n_strongest = _above(ordered, edge_of(ordered, most))
    strong, n_strong = _above(ordered, STRONG)
    zero = bisect_left(ordered, 0.0)
    negative, positive = math.fsum(ordered[:zero]), math.fsum(ordered[zero:])
    return Group(
        strongest / (n_strongest or 1.0),
        (negative + positive) / (SUM_SCALE * math.sqrt(max(1, n))),
        strong / (n_strong + STRONG_SHRINK),
        n,
        positive,
        negative,
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
    traits: Sequence[float] | None = None,
) -> Evidence:
    """Return the evidence of a message: the weights of each group's known words, in any order.

    traits: the weight of each trait, in nats; None for a model without traits.
    """
    ordered = sorted(text)
    return Evidence(
        group_of(sorted(ordered + fields), STRONGEST) if fields else group_of(ordered, STRONGEST),
        group_of(ordered, STRONGEST),
        group_of(sorted(header), HEADERS),
        None if traits is None else trait_feature(traits),
    )


def group_shares(weights: Sequence[float], most: int, coefficients: Sequence[float]) -> list[float]:
    """Return what each weight of a group adds to b . features, in nats, in the order given.

    coefficients: of the WORD_FEATURES features.  The shares add up to b . features.
    """
    b_strongest, b_sum, b_strong = coefficients
    edge = edge_of(sorted(weights), most)
    strongest = [part(abs(w), edge) for w in weights]
    strong = [part(abs(w), STRONG) for w in weights]
    of_strongest = b_strongest / (math.fsum(strongest) or 1.0)
    of_sum = b_sum / (SUM_SCALE * math.sqrt(max(1, len(weights))))
    of_strong = b_strong / (math.fsum(strong) + STRONG_SHRINK)
    return [
        w * (of_strongest * p + of_sum + of_strong * q)
        for w, p, q in zip(weights, strongest, strong, strict=True)
    ]
