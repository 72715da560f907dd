"""The calibration: how the features of a message are combined into calibrated log-odds.

Logistic regression of "is it spam" on the features, with a Gaussian prior that keeps it sensible
with few messages:

    P(spam) = sigmoid(b . x),   x = (1, features),   b ~ N(prior mean, 1 / prior precision)

There are three for each scored class, of different features (`Scale`): TEXT of the text and the own
fields, FULL of the text and the header channel, OPENING of how the text begins.  In a model with
traits each has their feature too, as the last.

Training fits them to leave-one-out features, so that they learn how reliable words are in messages
that they were not counted in (`EvidenceRows`).  Of a fit it keeps the mode of b, and its precision
L.  That is enough to go on learning one message at a time, each scored as if its words had not been
counted:

    L <- FORGET L + (1 - FORGET) FLOOR           old messages count less and less
    b <- b + s L^-1 x,  s = w (y - sigmoid(b_new . x))         the new mode; one unknown, s
    L <- L + w c x x^T                           c = tanh(z / 2) / (2 z), z = b_new . x

L decays to FLOOR and never below it: plain forgetting (a covariance divided by 0.995 each time)
raised P4.3's 1-ROCA% from 0.1 to 1.8 after a few thousand easy messages.
The usual step of the extended Kalman filter computes s at the old b; at the new b, s shrinks as the
step grows.  c is the curvature of the parabola that bounds a message's loss from above and touches
it at z and -z (Jaakkola and Jordan 2000, "Bayesian parameter estimation via variational methods").
The second derivative there, p (1 - p), is near 0 where messages are easy, though b could not move
far without their loss: 20 spams of 756 mails learned as ham then turned its signs, and 100 % of
spam was missed; with c 9.6 %, and 9.4 % with the calibration left alone.
A message is taken back out by learning the later ones again (`Lesson`).

Labels are wrong mostly in one direction: spam that the user leaves in the inbox is learned as ham.
So a label is wrong with one of two probabilities (`Noise`; Bootkrajang and Kaban 2012, "Label-noise
robust logistic regression and its applications"; Scott, Blanchard and Handy 2013, "Classification
with asymmetric label noise"):

    P(label spam | x) = (1 - e_ham) sigmoid(b . x) + e_spam sigmoid(-b . x)
    w = (1 - e') r / ((1 - e') r + e (1 - r)),   r = P(the label | x) without noise

with e_ham = P(labelled ham | spam), e_spam = P(labelled spam | ham); e is that of the label, e' the
other.  w is the probability that a label is right.  The fit finds both by EM: it fits b to the
messages, each weighted by w, and e_ham is the sum of 1 - w of those labelled ham, divided by how
many are spam.  (It leaves out that with 1 - w a message is of the other class, which only
multiplies the likelihood of b where EM ends.)  An update takes them from the fit, LEAST_NOISE at
least, and w from the old b.  P(spam) stays sigmoid(b . x): what a message is, not what it would be
labelled.  Without w, one slip costs a filter that was sure of 600 easy messages its ranking.  One e
for both directions stays out of the fit where 20 of 202 spams are labelled ham: it gains -.6 to
1.5 nats, two gain 15 to 21 (docs/research/ideas-tried.md).

With the fit goes the range of each feature in the messages it was fitted to, each left out: a
feature beyond its range is held at the end of it, since nothing is known of what it means there.
Sums over words may go to +-3 even where less was seen: left-out words of few messages are weak.

Processors add in different orders, and their logarithms differ in the last digit.  So that a model
has the same bytes on all of them, the inputs that it learns from are rounded (`learned_inputs`),
and so are the numbers that it keeps (`settled`), where the noise is about 1e-14.

From the inputs x of a message to its log-odds, and how sure few words and few messages can be:
starting from the prior log-odds p of the class, the calibration moves them to

    z = p + hold (kappa b . x - margin - p)

- kappa is MacKay's: a Gaussian uncertainty s2 of the logit is averaged out by
  kappa = 1 / sqrt(1 + pi/8 s2) (MacKay 1992, "The evidence framework applied to classification
  networks").  Here s2 = CALIBRATION_DOUBT x' L^-1 x + COUNT_DOUBT (b . x)^2 / m: the uncertainty of
  the coefficients, and that of words counted in few messages (m in the smaller class).
- margin is caution for ham, 1 nat with no ham learned: 1 / (1 + (ham / HAM_ENOUGH)^2).  A filter
  that has seen little ham does not know what ham can look like.
- hold limits the shift from the prior to HALF the summed weights in that direction: few known words
  are weak evidence, and no known word is none.  Correlated words say less than their sum in any
  case, so a message of ordinary length is never held.

How far the header channel is trusted: as far as the collecting hosts say that it may be.

On one server's mail the header fields are the best evidence there is; where ham and spam were
collected at different places, they show the place and not the class.  Who collected a mail is known
without looking at its class: the host that took it in.  If that host alone tells the class, the
collection is confounded, and the headers deserve no trust:

    rho = min(1, L / L0)     L  = - sum_h sum_k n_hk ln[(n_hk - 1 + pi_k) / n_h]    left out
                             L0 = - sum_k n_k ln pi_k,   pi_k = (n_k - 1/2) / n
    tau = rho m / (m + ENOUGH) w / (w + WORDS)

n_hk: mails of class k collected by host h; n_h, n_k, n their sums.  L is the surprise of each
mail's class given its host, itself left out, and L0 without the host.  A host of one mail says
nothing by itself, so those are one host together (left out, one of each class ranked P7 at 20.9
1-ROCA% and not 17.4); messages without a host (texts) are one more, since their
words are counted too.  w: known words of the header channel in the message at
hand; m: mails with a host in the smaller class, times the share of such mails in all messages.
From counts alone, so it is unlearned and updated as counts are.
(docs/research/ideas-tried.md has what was tried.)

Standard library only: prediction and update are on the one-message path.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from operator import mul
from typing import NamedTuple

from nbspam.bayes.event_model import sigmoid
from nbspam.bayes.evidence import Evidence, Group

Vector = tuple[float, ...]
Range = tuple[float, float]  # from, to


class Scale(NamedTuple):
    """The features of a calibration, and its prior; the constant comes first, then `features`."""

    name: str
    features: tuple[str, ...]
    mean: Vector
    precision: Vector

    @property
    def size(self) -> int:
        """The number of coefficients."""
        return len(self.mean)


# A filter of ten messages should already call a message spam whose words are all evidence of spam;
# the length has no weight until messages give it one.  The means and precisions are near what
# thousands of mails give.
_WORDS = ("strongest", "sum", "strong", "length")
TEXT = Scale("text", _WORDS, (0.0, 0.5, 1.3, 1.5, 0.0), (0.4, 4.0, 1.5, 2.5, 0.5))
FULL = Scale(
    "full",
    (*_WORDS, "header_strongest", "header_sum", "header_strong"),
    (0.0, 0.5, 0.5, 1.0, 0.0, 0.35, 0.35, 1.2),
    (0.4, 4.0, 1.5, 2.5, 0.5, 4.0, 1.5, 2.5),
)
OPENING = Scale("opening", _WORDS, TEXT.mean, TEXT.precision)
SCALES = (TEXT, FULL, OPENING)
TRAITS = "traits"  # the name of the feature of the traits
# Fits to P1, P2 and the first halves of Enron 1 and 2 give .84, .7, .4 and .2.  Left-out log-loss
# of the four, without traits .0218 .0184 .0252 .0189: with mean .5, precision 4 .0202 .0179 .0254
# .0190, with 0 and 10 .0209 .0183 .0253 .0189, so .0205 .0181 .0252 .0190, at no cost to Enron.
_TRAITS_MEAN, _TRAITS_PRECISION = 0.25, 10.0
LENGTH = 4  # the index of the length's coefficient in all


def scales(with_traits: bool) -> tuple[Scale, Scale, Scale]:
    """Return the scales of a model."""
    return _WITH_TRAITS if with_traits else SCALES


def _and_traits(scale: Scale) -> Scale:
    return Scale(
        scale.name,
        (*scale.features, TRAITS),
        (*scale.mean, _TRAITS_MEAN),
        (*scale.precision, _TRAITS_PRECISION),
    )


_WITH_TRAITS = (_and_traits(TEXT), _and_traits(FULL), _and_traits(OPENING))
# The features that are sums over words or traits may go as far as this, whatever was seen: a few
# messages show too little of the range.
_WORD_RANGE = 3.0
# Fewer messages of the smaller class than this are no basis for a fit: the prior it is.
FEWEST = 2

# 1-ROCA% of P5 and P4's three with .999, .995, .99, .98: .113 .200 .0816 .101; .114 .172 .0706
# .0910; .116 .170 .0671 .0882; .119 .169 .0652 .0875.  20 spams of 756 mails learned as ham, 656 of
# them one by one before: 14.2 % of spam missed with .99, 22.8 with .98.
FORGET = 0.99

# The precision that is left when everything is forgotten, in terms of the prior's (the constant's
# counts as 1).
_FLOOR = 3.0

# A long run of one class does not show where that class ends: a folder of spam, learned by itself,
# only raises the constant.  So a run of one class updates the calibration up to RUN times the mean
# length of a run where the classes are well mixed, and no more.  Errors on one half of
# SpamAssassin's corpus, without a limit and with a limit of 10: 33 and 15 when the other half was
# learned as all spam, then all ham; 45 and 14 the other way round; 10 and 10 in ten mixed batches;
# 11 and 13 one by one; 9 when it was trained on at once.  (5: 15, 14, 11 and 13.)
RUN = 10

LEAST_ODDS = 1e-6  # where the curvature is 1/4 already

# 1-ROCA% of P5 and P4's three with .005, .02 and .05: .1196 .1725 .0677 .0964; .1191 .1741 .0695
# .0974; .1195 .1762 .0714 .0998.
LEAST_NOISE = 0.005


# The decimals of coefficients and of the shares of wrong labels; of the precision, whose entries
# grow with the messages to 10^6 and beyond; and of features, of which a model keeps 50 messages'.
DECIMALS, PRECISION_DECIMALS, INPUT_DECIMALS = 9, 6, 4


class Noise(NamedTuple):
    """How many labels are wrong, 0 to 1, in each direction."""

    missing: float = 0.0  # of the messages of the class, those labelled as another: e_ham
    foreign: float = 0.0  # of the others, those labelled as this class: e_spam

    def among(self, labelled: int, rest: int) -> tuple[float, float]:
        """Return which share of the labels of the class is wrong, and of the others.

        labelled: messages labelled as the class; rest: as others.
        """
        n = labelled + rest
        missing, foreign = self
        members = min(max((labelled - foreign * n) / max(1 - missing - foreign, 1e-9), 0.0), n)
        return (
            min(1.0, foreign * (n - members) / max(1, labelled)),
            min(1.0, missing * members / max(1, rest)),
        )


class Calibration(NamedTuple):
    """A calibration: its coefficients, their precision, and the ranges of its features."""

    coefficients: Vector  # (size,): the constant, then one a feature
    precision: tuple[Vector, ...]  # (size, size), symmetric, positive definite
    ranges: tuple[Range, ...]  # (size - 1,): of each feature, in the messages it was fitted to
    noise: Noise = Noise()  # as it was fitted
    run: int = 0  # messages of one class that came last: positive for spam, negative for the rest


class Calibrations(NamedTuple):
    """The calibrations of a scored class, in the order of SCALES."""

    text: Calibration
    full: Calibration
    opening: Calibration


def untrained(scale: Scale) -> Calibration:
    """Return the calibration before any message was scored: the prior."""
    n = scale.size
    rows = (tuple(p if i == j else 0.0 for j in range(n)) for i, p in enumerate(scale.precision))
    return Calibration(scale.mean, tuple(rows), ((0.0, 0.0),) * (n - 1))


def untrained_calibrations(with_traits: bool) -> Calibrations:
    """Return the calibrations of a model before any message was scored."""
    return Calibrations(*map(untrained, scales(with_traits)))


def settled(calibration: Calibration) -> Calibration:
    """Return a calibration rounded, as the model file keeps it."""
    b, precision, _, noise, _ = calibration
    return calibration._replace(
        coefficients=tuple(round(value, DECIMALS) for value in b),
        precision=tuple(tuple(round(v, PRECISION_DECIMALS) for v in row) for row in precision),
        noise=Noise(*(round(share, DECIMALS) for share in noise)),
    )


def learned_inputs(x: Vector) -> Vector:
    """Return a message's inputs as a calibration learns from them: rounded."""
    return tuple(round(value, INPUT_DECIMALS) for value in x)


def inputs(evidence: Evidence) -> tuple[Vector, Vector, Vector]:
    """Return x of a message for each of SCALES: 1, then its features."""
    words, text, header, opening, traits = evidence
    last = () if traits is None else (traits,)
    return (
        (1.0, *words.features, words.length, *last),
        (1.0, *text.features, text.length, *header.features, *last),
        (1.0, *opening.features, opening.length, *last),
    )


def groups(evidence: Evidence) -> tuple[tuple[Group, ...], ...]:
    """Return the groups of words whose features each of SCALES has."""
    return (evidence.text_and_fields,), (evidence.text, evidence.header), (evidence.opening,)


@lru_cache
def _bounds(ranges: tuple[Range, ...]) -> list[Range]:
    return [
        (low, high) if i == LENGTH else (min(low, -_WORD_RANGE), max(high, _WORD_RANGE))
        for i, (low, high) in enumerate(ranges, 1)
    ]


def clamped(calibration: Calibration, x: Vector) -> Vector:
    """Return x with each feature held within its range, and all but the length to +-3 at least."""
    pairs = zip(x[1:], _bounds(calibration.ranges), strict=True)
    return (1.0, *[min(max(value, low), high) for value, (low, high) in pairs])


def update(scale: Scale, before: Calibration, x: Vector, is_spam: bool) -> Calibration:
    """Return the calibration after one more message, scored as if it had not been learned.

    x: (size,), the message's inputs, as `learned_inputs` has them.
    """
    b = before.coefficients
    precision = _rested(scale, before.precision)
    direction = solve(precision, x)
    spread = _dot(x, direction)
    z = _dot(b, x)
    right = p_right(z, is_spam, before.noise)
    y = float(is_spam)
    ends = sorted((0.0, right * (y - sigmoid(z))))
    step = _root(lambda s: right * (y - sigmoid(z + s * spread)), *ends)
    run = max(before.run, 0) + 1 if is_spam else min(before.run, 0) - 1
    after = before._replace(
        coefficients=tuple(c + step * d for c, d in zip(b, direction, strict=True)),
        precision=_plus(precision, x, right * curvature(z + step * spread)),
        ranges=widened(before, x),
        run=run,
    )
    return settled(after)


class Lesson(NamedTuple):
    """A message that refined the calibrations: enough to learn it again."""

    digest: str  # "" of one that will not be forgotten or moved
    label: int  # the index of its class
    # Per scored class, as they were scored then; () in a long run of one class.
    inputs: tuple[tuple[Vector, ...], ...]


def relearned(
    scales: Sequence[Scale], scored: Sequence[int], before: Sequence[Calibrations], lesson: Lesson
) -> tuple[Calibrations, ...]:
    """Return the calibrations of the scored classes after a lesson."""
    after = []
    for k, calibrations, xs in zip(scored, before, lesson.inputs, strict=True):
        triples = zip(scales, calibrations, xs, strict=True)
        fitted = (update(s, old, x, lesson.label == k) if x else old for s, old, x in triples)
        after.append(Calibrations(*fitted))
    return tuple(after)


def _rested(scale: Scale, precision: Sequence[Vector]) -> list[list[float]]:
    """Return FORGET L + (1 - FORGET) FLOOR."""
    rows = [[FORGET * value for value in row] for row in precision]
    for i, prior in enumerate(scale.precision):
        rows[i][i] += (1 - FORGET) * _FLOOR * (prior if i else 1.0)
    return rows


def p_right(log_odds: float, is_spam: bool, noise: Noise) -> float:
    """Return w, the probability that a label is right; log_odds: of spam, in nats."""
    missing, foreign = (max(share, LEAST_NOISE) for share in noise)
    r = sigmoid(log_odds if is_spam else -log_odds)
    left, joined = (missing, foreign) if is_spam else (foreign, missing)
    return (1 - left) * r / ((1 - left) * r + joined * (1 - r))


def curvature(log_odds: float) -> float:
    """Return tanh(z / 2) / (2 z), of the parabola above a message's loss."""
    z = max(abs(log_odds), LEAST_ODDS)
    return math.tanh(z / 2) / (2 * z)


def _plus(matrix: Sequence[Sequence[float]], x: Vector, factor: float) -> tuple[Vector, ...]:
    """Return matrix + factor x x^T."""
    return tuple(
        tuple(value + factor * a * b for value, b in zip(row, x, strict=True))
        for row, a in zip(matrix, x, strict=True)
    )


def widened(calibration: Calibration, x: Vector) -> tuple[Range, ...]:
    """Return the ranges with one more message in them."""
    known = calibration.ranges
    if known == ((0.0, 0.0),) * len(known):  # nothing seen so far
        return tuple((value, value) for value in x[1:])
    pairs = zip(known, x[1:], strict=True)
    return tuple((min(low, value), max(high, value)) for (low, high), value in pairs)


def is_run(before: Calibration, is_spam: bool, share: float) -> bool:
    """Return whether so many messages of one class came last that one more would teach nothing.

    share: of that class among all messages, 0 to below 1.
    """
    run = before.run if is_spam else -before.run
    return run * (1 - share) >= RUN


def is_positive_definite(matrix: Sequence[Sequence[float]]) -> bool:
    """Return whether a symmetric matrix is positive definite: whether `solve` may divide."""
    try:
        return all(row[i] > 0 for i, row in enumerate(_eliminated(map(list, matrix))))
    except ZeroDivisionError:
        return False


def _eliminated(equations: Iterable[list[float]]) -> list[list[float]]:
    """Return equations of which each lacks the unknowns before its own; they are changed.

    Gaussian elimination, which a symmetric and positive definite matrix needs no pivoting for
    (Golub and Van Loan, 4.2).
    """
    rows = list(equations)
    for i, row in enumerate(rows):
        for below in rows[i + 1 :]:
            factor = below[i] / row[i]
            for j in range(i, len(row)):
                below[j] -= factor * row[j]
    return rows


def _dot(a: Sequence[float], b: Sequence[float]) -> float:
    return math.fsum(map(mul, a, b))  # half the time of a generator's


def solve(matrix: Sequence[Sequence[float]], right: Sequence[float]) -> list[float]:
    """Return v with matrix v = right; the matrix is symmetric and positive definite."""
    rows = _eliminated([*row, value] for row, value in zip(matrix, right, strict=True))
    n = len(rows)
    solution = [0.0] * n
    for i in reversed(range(n)):
        known = sum(rows[i][j] * solution[j] for j in range(i + 1, n))
        solution[i] = (rows[i][n] - known) / rows[i][i]
    return solution


def _root(falling: Callable[[float], float], low: float, high: float) -> float:
    """Return where a falling function has its argument's value; bisection, to the last bit."""
    for _ in range(60):
        middle = (low + high) / 2
        if middle < falling(middle):
            low = middle
        else:
            high = middle
    return (low + high) / 2


# Prediction

CALIBRATION_DOUBT, COUNT_DOUBT = 0.1, 0.3
HAM_ENOUGH = 200.0
HALF = 0.5


class ClassSizes(NamedTuple):
    """How many messages a class's log-odds stand on."""

    members: float  # messages of the class
    others: float

    @property
    def fewest(self) -> float:
        """Messages on the side that has fewer."""
        return min(self)

    @property
    def prior(self) -> float:
        """The prior log-odds of the class, in nats; half a message on both sides."""
        return math.log((self.members + 0.5) / (self.others + 0.5))

    @property
    def margin(self) -> float:
        """The caution for the other classes, in nats."""
        return 1 / (1 + (self.others / HAM_ENOUGH) ** 2)


class Prediction(NamedTuple):
    """The log-odds of a message by one calibration, and what they consist of."""

    log_odds: float  # in nats
    gain: float  # hold kappa: what b . x is multiplied by
    hold: float  # 0 to 1
    inputs: Vector  # x, each feature within its bounds


def predict(
    calibration: Calibration,
    covariance: Sequence[Vector],
    x: Vector,
    groups: Sequence[Group],
    sizes: ClassSizes,
) -> Prediction:
    """Return the prediction for a message.

    covariance: the inverse of the calibration's precision.  x: the message's inputs.
    groups: the groups of words that x summarizes.
    """
    held_x = clamped(calibration, x)
    raw = _dot(calibration.coefficients, held_x)
    spread = _dot(held_x, [_dot(row, held_x) for row in covariance])
    # Rounding can take the spread of a nearly singular precision, from an edited file, below 0.
    doubt = CALIBRATION_DOUBT * max(0.0, spread)
    doubt += COUNT_DOUBT * raw * raw / max(0.5, sizes.fewest)
    kappa = 1 / math.sqrt(1 + math.pi / 8 * doubt)
    prior = sizes.prior
    move = kappa * raw - sizes.margin - prior
    highest = HALF * math.fsum(group.positive for group in groups)
    lowest = HALF * math.fsum(group.negative for group in groups)
    bounded = min(max(move, lowest), highest)
    hold = bounded / move if move else 1.0
    return Prediction(prior + bounded, hold * kappa, hold, held_x)


def inverse(matrix: Sequence[Vector]) -> tuple[Vector, ...]:
    """Return the inverse of a symmetric, positive definite matrix."""
    n = len(matrix)
    columns = [solve(matrix, [1.0 if i == j else 0.0 for j in range(n)]) for i in range(n)]
    return tuple(map(tuple, columns))


# Mails of the smaller class, and known header words of a message, that earn half of the trust.
ENOUGH = 5.0
WORDS = 1.0

HostRow = tuple[tuple[int, ...], int]  # mails per class of a host, and how many hosts have that


def unconfoundedness(rows: Iterable[HostRow], messages: Sequence[int]) -> tuple[float, float]:
    """Return rho, 0 to 1, and m, how many mails speak for it; 0 without two classes.

    rows: of all hosts, in any order.  messages: learned, per class.
    """
    rows = list(rows)
    classes = range(len(messages))
    hosted = [sum(row[k] * hosts for row, hosts in rows) for k in classes]
    if sum(map(bool, hosted)) < 2:
        return 0.0, 0.0
    # Not below 0: in counts from elsewhere the hosts may have more mails than there are messages.
    unhosted = tuple(max(0, n - n_hosted) for n, n_hosted in zip(messages, hosted, strict=True))
    alone = [(row, hosts) for row, hosts in rows if sum(row) == 1]
    pooled = tuple(sum(row[k] * hosts for row, hosts in alone) for k in classes)
    rows = [(row, hosts) for row, hosts in rows if sum(row) > 1]
    rows += [(row, 1) for row in (pooled, unhosted) if sum(row) > 1]
    totals = [sum(row[k] * hosts for row, hosts in rows) for k in classes]
    n = sum(totals)
    if sum(map(bool, totals)) < 2:
        return 0.0, 0.0
    shares = [(total - 0.5) / n for total in totals]
    given_host = math.fsum(
        -hosts * row[k] * math.log((max(row[k] - 1, 0) + shares[k]) / sum(row))
        for row, hosts in rows
        for k in classes
        if row[k]
    )
    without_host = math.fsum(
        -total * math.log(share) for total, share in zip(totals, shares, strict=True) if total
    )
    fewest = min(n_hosted for n_hosted in hosted if n_hosted)
    share = sum(hosted) / (sum(hosted) + sum(unhosted))
    return max(0.0, min(1.0, given_host / without_host)), fewest * share


def trust(rho: float, mails: float, header_words: float) -> float:
    """Return tau, 0 to below 1: the part of the log-odds that the header channel has a say in."""
    if not (mails and header_words):
        return 0.0
    return rho * mails / (mails + ENOUGH) * header_words / (header_words + WORDS)


# The part of the opening's log-odds, and how many nats it may move the others for ham and for spam.
# Mean 1-ROCA% of ten training halves and streams, of that without it, with parts of .1, .15, .2, .3
# and .4: .94 .93 .89 .89 .89; ham blocked up by .2 and .3 % with .3 and .4.  With .5 and 1 in place
# of .5 nats for ham, 17 and 19 % of the spams that open with a learned ham's lines are called ham
# (12 % without the opening, 29 % without a limit), and 34 and 42 % are not caught.
OPENING_SHARE, OPENING_FOR_HAM, OPENING_FOR_SPAM = 0.2, 0.5, 1.0


def opening_part(others: float, opening: float, known: float) -> float:
    """Return the part of the opening in the log-odds, 0 to OPENING_SHARE.

    others: the log-odds without it; opening: those by it alone.  known: its known tokens.
    """
    gap = opening - others
    if not (known and gap):
        return 0.0
    return min(max(OPENING_SHARE * gap, -OPENING_FOR_HAM), OPENING_FOR_SPAM) / gap
