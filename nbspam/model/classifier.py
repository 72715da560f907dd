"""From the tokens of a message to its verdict, with the standard library alone."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from nbspam.bayes.bernoulli import joints, sigmoid, softmax, weight
from nbspam.errors import OptionError
from nbspam.model.head import Head

UNSURE = "unsure"
Counts = Mapping[str, tuple[int, ...]]


class Score(NamedTuple):
    """What the model says of a message, before any cut-off."""

    log_odds: float  # of the positive class, in nats
    probability: float  # of the positive class
    probabilities: tuple[float, ...]  # per class, in the model's order
    bernoulli_log_odds: float  # bias plus weights, as naive Bayes has it


class CutOffs(NamedTuple):
    """Where spam begins and ham ends, as probabilities of the positive class."""

    spam: float = 0.5
    ham: float = 0.5

    @classmethod
    def of_options(cls, spam: float | None, ham: float | None, ham_cost: float | None) -> "CutOffs":
        """Return the cut-offs that the options ask for; raises OptionError.

        ham_cost: how many times worse a lost ham is than a spam let through; the expected cost is
        least when spam begins at cost / (1 + cost).
        """
        if ham_cost is not None:
            if spam is not None or ham is not None:
                raise OptionError(
                    "--ham-cost sets the cut-offs; leave out --spam-cutoff and --ham-cutoff"
                )
            if not 0 < ham_cost < math.inf:
                raise OptionError(
                    f"--ham-cost must be above 0, not {ham_cost}; 9 is a careful choice"
                )
            spam = ham_cost / (1 + ham_cost)
        if spam is None:
            spam = max(0.5, ham or 0)
        if ham is None:
            ham = spam if ham_cost is not None else min(0.5, spam)
        for name, value in (("--spam-cutoff", spam), ("--ham-cutoff", ham)):
            if not 0 <= value <= 1:
                raise OptionError(
                    f"{name} must be between 0 and 1, not {value}; 0.5 is the default"
                )
        if ham > spam:
            raise OptionError(
                f"--ham-cutoff {ham} is above --spam-cutoff {spam}; give the lower one to ham"
            )
        return cls(spam, ham)


class Classifier:
    """Scores messages with one model; remembers the counts of tokens it has met."""

    def __init__(self, head: Head, counts_of: Callable[[Iterable[str]], Counts]) -> None:
        """Score with `head`; `counts_of` gives the counts of those tokens the model knows."""
        self.head = head
        self._counts_of = counts_of
        self._known: dict[str, tuple[float, ...] | None] = {}

    def prepare(self, tokens: Iterable[str]) -> None:
        """Look up tokens; for many messages at once this is far cheaper than one by one."""
        new = [token for token in tokens if token not in self._known]
        found = self._counts_of(new)
        for token in new:
            row = found.get(token)
            self._known[token] = None if row is None else self.weights(row)

    def counts(self, tokens: Iterable[str]) -> Counts:
        """Return the counts per class of those tokens that the model knows."""
        return self._counts_of(tokens)

    def weights(self, row: Sequence[int]) -> tuple[float, ...]:
        """Return a token's weight per class, in nats."""
        head = self.head
        return tuple(weight(c, n, head.alpha) for c, n in zip(row, head.messages, strict=True))

    def score(self, tokens: Iterable[str]) -> Score:
        """Return the score of a message with these tokens."""
        tokens = set(tokens)
        if not tokens <= self._known.keys():
            self.prepare(tokens)
        known = self._known
        rows = [row for token in tokens if (row := known[token]) is not None]
        log_scores = joints(self.head.bias, rows)
        return score_of_joints(self.head, log_scores)


def score_of_joints(head: Head, log_scores: Sequence[float]) -> Score:
    """Return the score that goes with the classes' joint log-likelihoods."""
    positive = head.positive_index
    probabilities = softmax(log_scores)
    if positive is None:  # three classes or more and none called spam: of the most probable one
        positive = max(range(len(log_scores)), key=log_scores.__getitem__)
    others = [value for k, value in enumerate(log_scores) if k != positive]
    top = max(others)
    rest = top if len(others) == 1 else top + math.log(sum(math.exp(o - top) for o in others))
    log_odds = log_scores[positive] - rest
    if len(log_scores) == 2:  # so that the two agree to the last digit
        probabilities[positive] = sigmoid(log_odds)
        probabilities[1 - positive] = sigmoid(-log_odds)
    return Score(log_odds, probabilities[positive], tuple(probabilities), log_odds)


def verdict(head: Head, score: Score, cut_offs: CutOffs) -> str:
    """Return the class of a message with this score, or `unsure`.

    Two classes: positive above the spam cut-off, negative up to the ham cut-off, else unsure.
    More: the most probable class.
    """
    if len(head.classes) > 2:
        best = max(range(len(head.classes)), key=score.probabilities.__getitem__)
        return head.classes[best]
    positive = head.positive_index or 0
    if score.log_odds > logit(cut_offs.spam):
        return head.classes[positive]
    if score.log_odds <= logit(cut_offs.ham):
        return head.classes[1 - positive]
    return UNSURE


def logit(probability: float) -> float:
    """Return the log-odds of a probability, in nats; infinite at 0 and 1."""
    if probability <= 0:
        return -math.inf
    if probability >= 1:
        return math.inf
    return math.log(probability) - math.log1p(-probability)
