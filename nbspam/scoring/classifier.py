"""From the tokens of a message to its score, with the standard library alone."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

from nbspam.bayes.bernoulli import joints, sigmoid, softmax, weight
from nbspam.bayes.evidence import Evidence, class_alphas, evidence, log_odds, pair_weight
from nbspam.store.metadata import BERNOULLI, Metadata
from nbspam.tokens.headers import TRACE

Counts = Mapping[str, tuple[int, ...]]
IMPOSSIBLE = 1e9  # nats
_BATCH_MESSAGES, _BATCH_TOKENS = 500, 200_000
_KNOWN_LIMIT = 1_000_000  # tokens whose weights are remembered


class HasTokens(Protocol):
    """A message, as far as a classifier looks at it."""

    @property
    def tokens(self) -> Iterable[str]:
        """Its tokens, each once."""


M = TypeVar("M", bound=HasTokens)


class Score(NamedTuple):
    """What the model says of a message, before any cut-off."""

    log_odds: float  # of the positive class, in nats
    probability: float  # of the positive class
    probabilities: tuple[float, ...]  # per class, in the model's order
    evidences: tuple[Evidence, ...] = ()  # per scored; none under plain Bernoulli scoring
    log_scores: tuple[
        float, ...
    ] = ()  # per class, up to a constant; none for two classes' evidence


class Classifier:
    """Scores messages with one model; remembers the weights of tokens it has met."""

    def __init__(
        self,
        head: Metadata,
        counts_of: Callable[[Iterable[str]], Counts],
        remember: int = _KNOWN_LIMIT,
    ) -> None:
        """Score with `head`; `counts_of` gives the counts of those tokens the model knows.

        remember: how many tokens' weights to keep for the messages to come, about.
        """
        self.head = head
        self.scored_classes = head.scored_classes
        self.counts = counts_of
        self._remember = remember
        # Token -> weights; None for one that the model does not know, or that is of a trace field.
        self._known: dict[str, tuple[float, ...] | None] = {}
        self._trace: dict[str, tuple[float, ...]] = {}
        self._weights: dict[tuple[int, ...], tuple[float, ...]] = {}
        total = sum(head.messages)
        self._alphas = [
            class_alphas((total - head.messages[k], head.messages[k]), head.alpha)
            for k in self.scored_classes
        ]
        self._offsets = [class_offset(head, k) for k in self.scored_classes]

    def prepare(self, tokens: Iterable[str]) -> None:
        """Look up tokens; for many messages at once this is far cheaper than one by one."""
        if len(self._known) > self._remember:
            self._known.clear()  # memory goes by the model, not by the messages
            self._trace.clear()
        new = [token for token in tokens if token not in self._known]
        self._known |= dict.fromkeys(new)
        for token, row in self.counts(new).items():
            known = self._trace if token.startswith(TRACE) else self._known
            known[token] = self.weights(row)

    def in_batches(self, messages: Iterable[M]) -> Iterator[M]:
        """Yield messages with their tokens looked up: one walk through the model for many."""
        for batch, tokens in _batches(messages):
            self.prepare(tokens)
            yield from batch

    def weights(self, row: tuple[int, ...]) -> tuple[float, ...]:
        """Return a token's weights, in nats.

        Plain Bernoulli: one for each class, logit theta.  Else: one for each scored, the class
        against the rest.
        """
        found = self._weights.get(row)
        if found is None:
            head = self.head
            if head.scoring == BERNOULLI:
                found = tuple(
                    weight(c, n, head.alpha) for c, n in zip(row, head.messages, strict=True)
                )
            else:
                total, everyone = sum(row), sum(head.messages)
                found = tuple(
                    pair_weight(
                        row[k],
                        head.messages[k],
                        total - row[k],
                        everyone - head.messages[k],
                        alphas,
                    )
                    for k, alphas in zip(self.scored_classes, self._alphas, strict=True)
                )
            self._weights[row] = found
        return found

    def score(self, tokens: Iterable[str]) -> Score:
        """Return the score of a message with these tokens."""
        tokens = set(tokens)
        known = self._known
        if not tokens <= known.keys():
            self.prepare(tokens)
            if not tokens <= known.keys():  # so many that what was known had to go
                self.prepare(tokens)
        head = self.head
        if head.is_one_sided:
            return undecided(head)
        own = list(filter(None, map(known.get, tokens)))
        trace = list(filter(None, map(self._trace.get, tokens)))
        if head.scoring == BERNOULLI:
            return score_of_joints(head, joints(head.bias, own + trace))
        evidences = tuple(
            evidence([row[i] for row in own], [row[i] for row in trace])
            for i in range(len(self.scored_classes))
        )
        return score_of_evidence(head, evidences, self._offsets)


def _batches(messages: Iterable[M]) -> Iterator[tuple[list[M], set[str]]]:
    """Yield messages in batches, with their tokens; what was read before a failure comes first."""
    batch: list[M] = []
    tokens: set[str] = set()
    try:
        for message in messages:
            batch.append(message)
            tokens.update(message.tokens)
            if len(batch) == _BATCH_MESSAGES or len(tokens) > _BATCH_TOKENS:
                yield batch, tokens
                batch, tokens = [], set()
    except Exception:
        yield batch, tokens
        raise
    yield batch, tokens


def undecided(head: Metadata) -> Score:
    """Return the score of every message while fewer than two classes have been seen."""
    n = len(head.classes)
    return Score(0.0, 0.5, (1 / n,) * n)


def class_offset(head: Metadata, k: int) -> float:
    """Return what a prior that the user fixed adds to the log-odds of class k, in nats; else 0.

    The blend's constant knows how the classes were mixed in training; this takes it from there to
    the share that was asked for.
    """
    if head.prior is None or head.positive_index is None:
        return 0.0
    n, total = head.messages[k], sum(head.messages)
    share = head.prior
    if k != head.positive_index:
        others = total - head.messages[head.positive_index]
        share = (1 - head.prior) * (n / others if others else 1 / (len(head.messages) - 1))
    # Half a message more on both sides: finite without messages.
    return logit(share) - math.log((n + 0.5) / (total - n + 0.5))


def score_of_evidence(
    head: Metadata, evidences: tuple[Evidence, ...], offsets: Sequence[float]
) -> Score:
    """Return the calibrated score of the scored_classes' evidence."""
    spoken = [
        log_odds(found, calibration.coefficients) + offset
        for found, calibration, offset in zip(evidences, head.calibrations, offsets, strict=True)
    ]
    if len(head.classes) == 2:
        p, q = sigmoid(spoken[0]), sigmoid(-spoken[0])
        both = (q, p) if head.positive_index == 1 else (p, q)
        return Score(spoken[0], p, both, evidences)
    # Two classes speak with z and -z, and the sigmoid of z is the softmax of half of both; so it is
    # with more.  (Softmax of z itself: log-loss 0.166 against 0.129 in a trial with three classes.)
    return score_of_joints(head, [z / 2 for z in spoken])._replace(evidences=evidences)


def score_of_joints(head: Metadata, log_scores: Sequence[float]) -> Score:
    """Return the score that goes with log-scores of the classes, such as joint log-likelihoods."""
    positive = head.positive_index
    probabilities = softmax(log_scores)
    if positive is None:  # three classes or more and none called spam: of the most probable one
        positive = max(range(len(log_scores)), key=log_scores.__getitem__)
    odds = odds_of_class(log_scores, positive)
    if len(log_scores) == 2:  # so that the two agree to the last digit
        probabilities[positive] = sigmoid(odds)
        probabilities[1 - positive] = sigmoid(-odds)
    return Score(odds, probabilities[positive], tuple(probabilities), log_scores=tuple(log_scores))


def odds_of_class(log_scores: Sequence[float], k: int) -> float:
    """Return the log-odds of class k against the rest, in nats; always finite."""
    others = [value for i, value in enumerate(log_scores) if i != k]
    top = max(others)
    if top == -math.inf or log_scores[k] == -math.inf:
        # A class that has no message is impossible; JSON has no infinity to say so with.
        return IMPOSSIBLE if top == -math.inf else -IMPOSSIBLE
    return log_scores[k] - top - math.log(sum(math.exp(o - top) for o in others))


def logit(probability: float) -> float:
    """Return the log-odds of a probability, in nats; infinite at 0 and 1."""
    if probability <= 0:
        return -math.inf
    if probability >= 1:
        return math.inf
    return math.log(probability) - math.log1p(-probability)
