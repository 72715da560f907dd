"""The features of a message: its words' weights, summarized for calibration.

Naive Bayes adds up all weights as if the words were independent.  Words are correlated, so the sum
for a whole mail is overconfident and ranks poorly.  Three features of the weights w_1 … w_n do
better, on SMS and on mail (docs/research/ideas-tried.md lists the alternatives):

    strongest  mean of the N_STRONGEST largest |w|, with their signs (header: N_STRONGEST_HEADERS)
    sum        (sum of all w) / (SUM_SCALE sqrt n)
    strong     (sum of the w with |w| > STRONG_EDGE) / (number of these w + STRONG_SHRINK)

A fourth feature is the length, ln n - LENGTH_CENTRE: few words are weaker evidence than many.

Soft edges.  A word near the edge of "strongest" or "strong" counts in part.  The part rises from 0
to 1 while |w| rises by EDGE_WIDTH around the edge:

    part = (|w| - edge) / EDGE_WIDTH + 1/2, clipped to 0 … 1

The edge of "strongest" is the |w| of the last word in it.  Many words share one weight, because
they share their counts.  With a hard edge, one more message moved all of them across it: a model of
450 mails, correctly taught one more spam, missed 10.95 % of spam instead of 9.52 %; with the soft
edge, 10.24 % instead of 9.76 % (P9).  On P1 to P6 both edges are equally good.
docs/research/benchmarks.md defines P1 to P9.

Repeats.  Words of one message with the same counts mostly come from the same training messages, so
they are not independent evidence.  m such words count as m^REPEAT_EXPONENT words in every feature.
Words with the same counts have the same weight, by which they are recognized.

Every feature except the length is a sum over words, so each word's share of the log-odds is exact.
The terms are rounded (`round_to_grid`), so the sums do not depend on the order of the words.

Traits.  A model with traits (`trait_model.py`) has one more feature:

    traits  (sum over the traits of log(f_spam / f_rest), each clipped to +-TRAIT_LIMIT)
            / TRAIT_SCALE

f is the density of the trait's value.  `shrunk_trait_weight` shrinks each trait's weight while few
messages were learned.  A weight is clipped because the traits of a text depend on each other, and
because a value far from all training data proves little.  Log-loss of left-out messages in two
training halves:

    TRAIT_LIMIT     P1      P2
    without traits  0.0218  0.0184
    1.5 nats        0.0204  0.0180
    2 nats          0.0203  0.0180
    3 nats          0.0206  0.0180
    4 nats          0.0208  0.0181
    no limit        0.0217  0.0194

Groups.  A message has four groups of words: the text; its own fields, which the sender and the
mail program write (From, To, X-Mailer …); the header channel, which shows the route of the mail;
and the opening, the start of the text.  Three calibrations use the groups (`calibration.py`): the
text with the own fields, which carries over to any mail; the text with the header channel, trusted
as far as `prediction.trust` allows; and the opening, which moves the result a little.  Header
words that separate the classes on their own are left out (`separates_classes`).
"""

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import accumulate
from operator import mul
from typing import NamedTuple

from nbspam.bayes.event_model import round_to_grid

N_STRONGEST, N_STRONGEST_HEADERS = 25, 20
SUM_SCALE = 5.0
STRONG_EDGE = 2.5  # nats
STRONG_SHRINK = 3.0
EDGE_WIDTH = 0.5  # nats
LENGTH_CENTRE = 4.5
# 1-ROCA%, lower is better:
#
#     exponent  P2      P3     P5     P4.1   P4.2    P4.3    P1
#     1         0.0111  0.235  0.125  0.174  0.0657  0.0954  0.135
#     0.9       0.0110  0.222  0.116  0.173  0.0641  0.0928  0.138
#     0.8       0.0113  0.216  0.110  0.174  0.0650  0.0911  0.144
#     0.7       0.0116  0.213  0.105  0.177  0.0675  0.0912  0.143
REPEAT_EXPONENT = 0.8
WORD_FEATURES = 3
TRAIT_LIMIT, TRAIT_SCALE = 2.0, 5.0  # nats
# Traits get half of their weight with 1 + TRAITS_HALF_WEIGHT messages in the smaller class.
TRAITS_HALF_WEIGHT = 5.0

# If at least SEPARATING_SHARE of one class and at most _MAX_OTHER_SHARE of the rest have a header
# word, the program that collected the mail wrote it: it names, for example, a fetcher's folder or
# another server.  P2, P3, P6 and P7 have no such word.  In a test, the learned hams of trec07p had
# one such word, and the learned spams another.  200 new spams had the hams' word: 6 of them were
# classified as ham with such words, 2 without them.
SEPARATING_SHARE, _MAX_OTHER_SHARE, _MIN_MESSAGES = 0.9, 0.01, 50


def separates_classes(row: Sequence[float], messages: Sequence[float]) -> bool:
    """Return whether a token is in nearly all messages of one class and hardly any others.

    row: number of messages of each class that contain the token.
    messages: number of messages of each class.
    """
    return min(messages) >= _MIN_MESSAGES and any(
        n >= SEPARATING_SHARE * n_class
        and sum(row) - n <= _MAX_OTHER_SHARE * (sum(messages) - n_class)
        for n, n_class in zip(row, messages, strict=True)
    )


class GroupSummary(NamedTuple):
    """The features of one group of words, and the sums of its weights.

    The sums limit how far the group can shift the log-odds.
    """

    strongest: float
    sum: float
    strong: float
    n: float  # number of known words, repeats counted in part
    positive: float  # sum of the weights above 0, in nats
    negative: float  # sum of the weights below 0, in nats
    known: float = 0  # number of known words

    @property
    def features(self) -> tuple[float, float, float]:
        """The three features that are sums over words."""
        return self.strongest, self.sum, self.strong

    @property
    def length(self) -> float:
        """The length feature."""
        return math.log(max(1, self.n)) - LENGTH_CENTRE


class MessageEvidence(NamedTuple):
    """The features of a message, before calibration."""

    text_and_fields: GroupSummary
    text: GroupSummary
    header: GroupSummary
    opening: GroupSummary
    traits: float | None = None  # the trait feature; None for a model without traits


def soft_step(strength: float, edge: float) -> float:
    """Return the part of a word that is above a soft edge, from 0 to 1."""
    return min(1.0, max(0.0, (strength - edge) / EDGE_WIDTH + 0.5))


@cache
def effective_count(m: int) -> float:
    """Return the number of words that m repeats count as.

    It is a multiple of 1/1024, so that sums are exact.
    """
    return round(float(m**REPEAT_EXPONENT) * 1024) / 1024


class _RankedWeights:
    """The distinct weights of a group, strongest first, with running sums."""

    def __init__(self, weights: Iterable[float], top_n: int) -> None:
        self.repeats = Counter(weights)
        self.weights = sorted(self.repeats, key=abs, reverse=True)
        self.counts = [effective_count(self.repeats[w]) for w in self.weights]
        pairs = zip(self.counts, self.weights, strict=True)
        # A weight itself is on the grid; its product with a count may not be.
        self.nats = [w if n == 1 else round_to_grid(n * w) for n, w in pairs]
        self._running_count = [0.0, *accumulate(self.counts)]
        self._running_nats = [0.0, *accumulate(self.nats)]
        self.n = self._running_count[-1]
        # The |w| of the word at rank `top_n`, strongest first.  -EDGE_WIDTH with at most `top_n`
        # words, so that every word counts in full.
        last = bisect_left(self._running_count, top_n) - 1
        self.edge = -EDGE_WIDTH if self.n <= top_n else abs(self.weights[last])

    def sum_above(self, edge: float) -> tuple[float, float]:
        """Return the sum of the weights above a soft edge, and the number of these words."""
        start = bisect_left(self.weights, -(edge + EDGE_WIDTH / 2), key=_negative_strength)
        end = bisect_right(self.weights, -(edge - EDGE_WIDTH / 2), key=_negative_strength)
        parts = [soft_step(abs(w), edge) for w in self.weights[start:end]]
        nats, count = (
            sum(map(round_to_grid, map(mul, parts, values[start:end])))
            for values in (self.nats, self.counts)
        )
        return self._running_nats[start] + nats, self._running_count[start] + count


def _negative_strength(weight: float) -> float:
    """Return a sort key that puts strong weights first."""
    return -abs(weight)


def summarize_group(weights: Iterable[float], top_n: int) -> GroupSummary:
    """Return the features of a group of words.

    weights: the weight of each known word, in nats, in any order.
    top_n: N_STRONGEST or N_STRONGEST_HEADERS.
    """
    words = _RankedWeights(weights, top_n)
    strongest, n_strongest = words.sum_above(words.edge)
    strong, n_strong = words.sum_above(STRONG_EDGE)
    positive = sum(filter((0.0).__lt__, words.nats))
    negative = sum(filter((0.0).__gt__, words.nats))
    return GroupSummary(
        strongest / (n_strongest or 1.0),
        (negative + positive) / (SUM_SCALE * math.sqrt(max(1, words.n))),
        strong / (n_strong + STRONG_SHRINK),
        words.n,
        positive,
        negative,
        words.repeats.total(),
    )


def shrunk_trait_weight(log_ratio: float, messages: float) -> float:
    """Return the weight of a trait, clipped, and shrunk while few messages were learned.

    log_ratio: log(f_spam / f_rest), in nats.
    messages: number of messages with traits in the smaller class.  With one such message the weight
    is 0.

        1-ROCA% of P7, messages of each class  1     5
        without traits                         17.4  7.11
        with shrinking                         17.4  7.02
        without shrinking                      19.7  6.78
    """
    squared = max(0, messages - 1) ** 2
    factor = squared / (squared + TRAITS_HALF_WEIGHT**2)
    return factor * min(max(log_ratio, -TRAIT_LIMIT), TRAIT_LIMIT)


def trait_feature(weights: Iterable[float]) -> float:
    """Return the trait feature from the weight of each trait, in nats."""
    return math.fsum(weights) / TRAIT_SCALE


def message_evidence(
    text: list[float],
    fields: list[float],
    header: list[float],
    opening: list[float],
    traits: Sequence[float] | None = None,
) -> MessageEvidence:
    """Return the features of a message.

    text, fields, header, opening: the weights of the known words of each group, in any order.
    traits: the weight of each trait, in nats; None for a model without traits.
    """
    text_summary = summarize_group(text, N_STRONGEST)
    return MessageEvidence(
        summarize_group(text + fields, N_STRONGEST) if fields else text_summary,
        text_summary,
        summarize_group(header, N_STRONGEST_HEADERS),
        summarize_group(opening, N_STRONGEST),
        None if traits is None else trait_feature(traits),
    )


def group_shares(
    weights: Sequence[float], top_n: int, coefficients: Sequence[float]
) -> list[float]:
    """Return each word's share of b . features, in nats, in the given order.

    coefficients: b of the WORD_FEATURES features.  The shares add up to b . features.
    """
    b_strongest, b_sum, b_strong = coefficients
    words = _RankedWeights(weights, top_n)
    per_strongest = b_strongest / (words.sum_above(words.edge)[1] or 1.0)
    per_word = b_sum / (SUM_SCALE * math.sqrt(max(1, words.n)))
    per_strong = b_strong / (words.sum_above(STRONG_EDGE)[1] + STRONG_SHRINK)
    shares = {}
    for w, nats in zip(words.weights, words.nats, strict=True):
        strongest_part, strong_part = soft_step(abs(w), words.edge), soft_step(abs(w), STRONG_EDGE)
        share = nats * (per_strongest * strongest_part + per_word + per_strong * strong_part)
        shares[w] = share / words.repeats[w]
    return [shares[w] for w in weights]


# Mail from elsewhere was received by a domain that received no learned mail, and a model is too
# sure about it (docs/serve.md has figures).  But some of a user's own mail comes by new domains
# too.  Its share is estimated by the share of learned mails that are the only mail of their domain
# (Good 1953, "The population frequencies of species").  So if the user's provider has a new name
# for each mail, mail by a new domain is hardly doubted (0.09).
_MAILS_HALF_DOUBT, _NEW_HALF_DOUBT = 2.0, 0.1


class DomainCounts(NamedTuple):
    """Numbers of learned mails, by the domains of the hosts that received them."""

    mails: float  # mails with a header
    named: float  # mails whose header names the host
    n_single: float  # domains with one mail

    def doubt(self, n: float) -> float:
        """Return the doubt of a mail, 0 to 1: how far its domain is unknown to the model.

            doubt = 2 / (n + 2) x 0.1 / (0.1 + new)
            new = (domains with one mail + 1) / (mails + 1)

        n: number of learned mails of its domain.
        """
        return _MAILS_HALF_DOUBT / (n + _MAILS_HALF_DOUBT) * self._rarity if self.mails else 0.0

    @property
    def doubt_unnamed(self) -> float:
        """The doubt of a mail whose header names no host.

        It grows with the share of learned mails whose header names a host.
        """
        return self.named / self.mails * self._rarity if self.mails else 0.0

    @property
    def _rarity(self) -> float:
        return _NEW_HALF_DOUBT / (_NEW_HALF_DOUBT + (self.n_single + 1) / (self.mails + 1))
