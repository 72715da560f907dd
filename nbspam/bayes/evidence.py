"""From the weights of a message's words to a few features, whose calibrated sum is its log-odds.

The plain sum of naive Bayes treats every word as independent evidence.  Words are correlated, so on
a whole mail the sum is overconfident and ranks poorly.  Four features of the same weights w_1 … w_n
do better together, on SMS and on mail (docs/how-it-decides.md has what else was tried):

    strongest  mean of the STRONGEST words of largest |w|
    sum        sum of all w / (SUM_SCALE sqrt n)
    strong     sum of those |w| >= STRONG / (their number + STRONG_SHRINK)
    length     ln n - LENGTH_CENTRE: few words are less evidence, and the calibration may use that

    log-odds = b_0 + b_1 strongest + b_2 sum + b_3 strong + b_4 length + header

with b fitted to leave-one-out features (`calibration.py`).  Each feature but the length is a sum
over words, so every word's share of the log-odds is exact: `shares`.

`header` is the evidence of the header channel: the fields that show where a mail was collected
(relays, dates, ids).  They are excellent evidence on one server's mail and misleading on other
mail, so all of them together contribute at most HEADER_BOUND nats, with no fitted coefficient:

    header = HEADER_BOUND tanh(T / (HEADER_STRONGEST HEADER_SCALE))

with T the sum of the HEADER_STRONGEST weights of largest |w| in the header channel.

The weights are the event model's, with smoothing in proportion to the class,
alpha_k = 2 alpha (N_k + 1) / (N + 2): a word seen once in the smaller class does not get an extreme
weight.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

STRONGEST = 20
SUM_SCALE = 5.0
STRONG = 2.5
STRONG_SHRINK = 3.0
LENGTH_CENTRE = 4.5
HEADER_BOUND = 1.0
HEADER_STRONGEST = 10
HEADER_SCALE = 2.0

FEATURES = ("strongest", "sum", "strong", "length")

Features = tuple[float, float, float, float]


class Evidence(NamedTuple):
    """What a message's weights say, before calibration."""

    features: Features
    header_nats: float  # of the header channel


def strongest(ordered: Sequence[float], most: int) -> list[float]:
    """Return the strongest weights, strongest first; of two equally strong ones the negative first.

    ordered: weights in ascending order; the strongest are taken from both ends, since a sort by
    strength takes longer: 0.25 ms for a mail's 540 weights, against 0.05 ms.
    """
    low, high = 0, len(ordered) - 1
    top: list[float] = []
    while low <= high and len(top) < most:
        if -ordered[low] >= ordered[high]:
            top.append(ordered[low])
            low += 1
        else:
            top.append(ordered[high])
            high -= 1
    return top


def evidence(weights: Sequence[float], header_weights: Sequence[float]) -> Evidence:
    """Return the features of a message.

    weights: log-odds weight of each known token, in nats, in any order.
    header_weights: those of the header channel's tokens, which are not among `weights`.
    """
    ordered = sorted(weights)
    n = len(ordered)
    top = strongest(ordered, STRONGEST)
    strong = ordered[: bisect_right(ordered, -STRONG)] + ordered[bisect_left(ordered, STRONG) :]
    features = (
        math.fsum(top) / max(1, len(top)),
        math.fsum(ordered) / (SUM_SCALE * math.sqrt(max(1, n))),
        math.fsum(strong) / (len(strong) + STRONG_SHRINK),
        math.log(max(1, n)) - LENGTH_CENTRE,
    )
    return Evidence(features, header_nats(strongest(sorted(header_weights), HEADER_STRONGEST)))


def header_nats(strongest: Sequence[float]) -> float:
    """Return what the strongest weights of the header channel contribute, bounded."""
    # Few words are less evidence than many: the sum is always divided by their full number.
    return HEADER_BOUND * math.tanh(math.fsum(strongest) / (HEADER_STRONGEST * HEADER_SCALE))


def shares(
    weights: Sequence[float], header_weights: Sequence[float], coefficients: Sequence[float]
) -> tuple[list[float], list[float]]:
    """Return what each weight adds to the log-odds, in nats, in the order given.

    coefficients: b_0, then one for each of FEATURES.  The shares, b_0 and b_4 length add up to the
    log-odds.  Equal weights at the edge of the strongest have equal parts in that feature.
    """
    _, b_strongest, b_sum, b_strong, _ = coefficients
    n = max(1, len(weights))
    top = max(1, min(STRONGEST, len(weights)))
    strong = sum(abs(w) >= STRONG for w in weights) + STRONG_SHRINK
    part = _part_in_strongest(weights, STRONGEST)
    text = [
        w
        * (
            b_strongest * part.get(w, 0.0) / top
            + b_sum / (SUM_SCALE * math.sqrt(n))
            + (b_strong / strong if abs(w) >= STRONG else 0.0)
        )
        for w in weights
    ]
    # tanh bounds the sum of the header channel; each weight keeps its proportion of it.
    part = _part_in_strongest(header_weights, HEADER_STRONGEST)
    in_sum = strongest(sorted(header_weights), HEADER_STRONGEST)
    total = math.fsum(in_sum)
    per_nat = header_nats(in_sum) / total if total else 0.0
    return text, [w * part.get(w, 0.0) * per_nat for w in header_weights]


def _part_in_strongest(weights: Sequence[float], most: int) -> dict[float, float]:
    """Return weight -> how much of a word of that weight is among the strongest, 0 to 1."""
    top = strongest(sorted(weights), most)
    parts = dict.fromkeys(top, 1.0)
    if top:  # only words as strong as the last of them may be left out
        last = top[-1]
        parts[last] = top.count(last) / weights.count(last)
    return parts


def log_odds(summary: Evidence, coefficients: Sequence[float]) -> float:
    """Return the calibrated log-odds, in nats."""
    return math.fsum(
        [coefficients[0], summary.header_nats]
        + [b * feature for b, feature in zip(coefficients[1:], summary.features, strict=True)]
    )
