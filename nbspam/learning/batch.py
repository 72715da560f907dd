"""Training on many messages at once: from a sparse matrix to a model."""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import nlargest
from typing import Any, NamedTuple

import numpy as np

from nbspam.bayes import matrix
from nbspam.bayes.calibration import Calibration, Calibrations, CalibrationSpec
from nbspam.bayes.event_model import Row, logit, sigmoid
from nbspam.bayes.fitting import fit_calibration, input_matrix
from nbspam.bayes.matrix import Booleans, EvidenceArrays, Floats, Integers, Matrix
from nbspam.bayes.padding import ham_pairs, padding_weights
from nbspam.errors import Remedy, TrainingError
from nbspam.learning.copies import copies_of
from nbspam.learning.settings import TrainingSettings, class_names, counted_metadata, empty_metadata
from nbspam.scoring.rules import EvidenceRule, LearnedTokens, scoring_rule
from nbspam.scoring.verdict import CutOffs, Score
from nbspam.store.metadata import (
    HAM_CUTOFF,
    Metadata,
    ModelSettings,
    TokenStatistics,
    TraitHistograms,
)
from nbspam.tokens.kinds import DOMAIN, HOST, TEXT

_CUT_OFF_STEPS = 10**12  # steps between cut-offs 0 and 1, fine enough to resolve P(spam) at 27 nats
# Matrix entries per block of rows.  The features of 500,000 entries took 216 MiB.
BLOCK = 1 << 17
Apply = Callable[..., Iterator[Any]]  # `map`, or the `map` of a thread pool


class LeftOut(NamedTuple):
    """The evidence of a block of messages, each left out, per scored class.

    The calibrations are fitted to evidence that leaves out one message and keeps its copies: fitted
    with the copies left out, they were less accurate on later mail (P1: 25 errors instead of 22;
    P2: 16 instead of 13).  Scores are computed with all copies left out.
    """

    single: tuple[EvidenceArrays, ...]  # evidence with the message left out and its copies kept
    padded: EvidenceArrays | None  # the padded copies of the block's spam, for the class spam
    places: Integers  # the messages that have copies
    # evidence of the messages at `places`, left out with their copies
    with_copies: tuple[EvidenceArrays, ...]

    def scored(self) -> tuple[EvidenceArrays, ...]:
        """Return the evidence of all messages, each left out together with its copies."""
        if not len(self.places):
            return self.single
        pairs = zip(self.single, self.with_copies, strict=True)
        return tuple(rows.replace_rows(self.places, others) for rows, others in pairs)


class Fit:
    """A model that learns from a matrix: first its counts, then its calibrations.

    presence: (n_messages, n_tokens); labels: one for each row.
    channels: (n_tokens,), the channel of each column (`tokens/kinds.py`); None if all are text.
    traits: (n_messages, n_traits), -1 without traits; None for a model without traits.
    counts: (n_classes, n_tokens), if they are known.
    keys: (n_messages,), equal for copies (`copies.py`), to leave copies out together.
    Raises TrainingError for fewer than two classes.
    """

    def __init__(
        self,
        presence: Matrix,
        labels: Sequence[str],
        settings: TrainingSettings,
        channels: Integers | None = None,
        traits: Integers | None = None,
        counts: Integers | None = None,
        keys: Any = None,
    ) -> None:
        classes, positive = class_names(labels, settings.positive)
        number = {name: k for k, name in enumerate(classes)}
        empty = empty_metadata(classes, positive, settings)
        self.presence = presence
        self.labels: Integers = np.fromiter((number[label] for label in labels), np.int64)
        self.traits = traits if empty.settings.has_traits else None
        self.channels = np.full(presence.shape[1], TEXT) if channels is None else channels
        if counts is None and empty.settings.counts.has_tokens:
            counts = matrix.class_counts(presence, self.labels, len(classes))
        elif counts is None:
            counts = np.zeros((len(classes), presence.shape[1]), np.int64)
        self.counts = counts  # (n_classes, n_tokens)
        self.copies = np.ones(len(self.labels), np.int64)
        if keys is not None:
            self.copies = copies_of(keys, self.labels)
        histograms = empty.learned.trait_histograms
        if self.traits is not None:
            histograms = trait_histograms_of(self.traits, self.labels, len(classes))
        tokens = token_statistics(self.counts, self.channels)
        self.metadata = counted_metadata(empty, Counter(labels), tokens, histograms)
        self.blocks: list[LeftOut] = []

    def n_texts(self) -> dict[str, int]:
        """Return the number of different texts per class; copies count as one."""
        shares = np.bincount(self.labels, 1 / self.copies)
        return dict(
            zip(self.metadata.settings.classes, np.rint(shares).astype(int).tolist(), strict=True)
        )

    def calibrate(self, apply: Apply = map) -> None:
        """Fit the calibrations to the features of all messages, each left out.

        apply: calls a function for each block and each calibration, possibly in threads.
        """
        if scoring_rule(self.metadata).is_calibrated:
            self.calibrate_to(list(self.left_out(apply)), apply)

    def padding(self) -> list[Floats]:
        """Return the weights of the words in the padded copies of spam; [] without copies."""
        settings, messages = self.metadata.settings, self.metadata.learned.messages
        if settings.padded_class is None or not scoring_rule(self.metadata).is_calibrated:
            return []
        pairs = ham_pairs(self.counts[:, self.channels == TEXT], settings.padded_class)
        n_spam = messages[settings.padded_class]
        return padding_weights(pairs, sum(messages) - n_spam, n_spam, settings.alpha)

    def calibrate_to(self, blocks: list[LeftOut], apply: Apply = map) -> None:
        """Fit the calibrations to the evidence of blocks of messages."""
        self.blocks, (settings, learned) = blocks, self.metadata
        calibrations = fit_calibrations(settings, blocks, self.labels, apply=apply)
        self.metadata = Metadata(settings, learned._replace(calibrations=calibrations))

    def left_out(self, apply: Apply = map) -> Iterator[Any]:
        """Score all messages, each left out, by the function `left_out`."""
        learned = self.counts, self.channels, self.copies
        return left_out(
            *(self.metadata, self.presence, self.labels, self.traits, *learned),
            padding=self.padding(),
            apply=apply,
        )

    def left_out_scores(self, folds: int = 1) -> Iterator[Score]:
        """Yield each message's score by the model without it.

        folds: if above 1, the messages of each fold (message i is in fold i mod folds) are scored
        by calibrations fitted to the other folds, so that no message influences its own score.
        """
        rule = scoring_rule(self.metadata)
        if not isinstance(rule, EvidenceRule):
            return itertools.chain.from_iterable(self.left_out())
        if folds < 2:
            scored = (block.scored() for block in self.blocks)
            return itertools.chain.from_iterable(map(rule.scores_of_rows, scored))
        fold = np.arange(len(self.labels)) % folds
        rules = []
        for part in range(folds):
            settings, learned = self.metadata
            fitted = fit_calibrations(settings, self.blocks, self.labels, fold != part)
            rules.append(EvidenceRule(Metadata(settings, learned._replace(calibrations=fitted))))
        return _scores_in_turn(rules, (block.scored() for block in self.blocks))


def left_out(
    metadata: Metadata,
    presence: Matrix,
    labels: Integers,
    traits: Integers | None,
    counts: Integers,
    channels: Integers,
    copies: Integers,
    padding: Sequence[Floats] = (),
    apply: Apply = map,
) -> Iterator[Any]:
    """Score blocks of learned messages, each message left out.

    Yields `LeftOut` under the evidence rule, scores under the sum rule.
    counts: (n_classes, n_tokens); channels: (n_tokens,); copies: (n_messages,), the number of
    messages of its class that are left out with each message; padding: from `Fit.padding`.  `Fit`
    describes the other parameters.
    """
    rule, learned = scoring_rule(metadata), LearnedTokens.from_counts(metadata, counts, channels)

    def evidence_of_block(place: slice) -> Any:
        rows, labels_of_rows, m = presence[place], labels[place], copies[place]
        values = None if traits is None else traits[place]
        if not isinstance(rule, EvidenceRule):
            return rule.left_out_scores(rows, labels_of_rows, values, learned, m)
        arguments = rows, labels_of_rows, values, learned, np.ones_like(m), padding
        single, padded = rule.left_out_rows(*arguments)
        places = np.flatnonzero(m > 1)
        some = None if values is None else values[places]
        copied = matrix.some_rows(rows, places), labels_of_rows[places], some, learned, m[places]
        with_copies = rule.left_out_rows(*copied)[0] if len(places) else ()
        return LeftOut(single, padded, places, with_copies)

    return apply(evidence_of_block, matrix.row_blocks(presence.indptr, BLOCK))


def _scores_in_turn(
    rules: Sequence[EvidenceRule], blocks: Iterable[tuple[EvidenceArrays, ...]]
) -> Iterator[Score]:
    """Yield the scores; message i is scored by rule i mod len(rules)."""
    turn = itertools.cycle(rules)
    for rows in blocks:
        for by_class in zip(*(evidence.messages() for evidence in rows), strict=True):
            evidences, text_tokens, doubts = zip(*by_class, strict=True)
            yield next(turn).score_of(evidences, text_tokens[0], doubts[0])


def fit(
    presence: Matrix,
    labels: Sequence[str],
    settings: TrainingSettings,
    channels: Integers | None = None,
    traits: Integers | None = None,
    keys: Any = None,
) -> Fit:
    """Train and calibrate a model on a corpus; `Fit` describes the parameters."""
    fitted = Fit(presence, labels, settings, channels, traits, keys=keys)
    fitted.calibrate()
    return fitted


def fit_calibrations(
    settings: ModelSettings,
    blocks: Sequence[LeftOut],
    labels: Integers,
    chosen: Booleans | None = None,
    apply: Apply = map,
) -> tuple[Calibrations, ...]:
    """Fit the calibrations of each scored class.

    blocks: the evidence of blocks of messages.  labels: (n,), their classes.
    chosen: (n,), the messages to fit to; None for all.
    """
    place = slice(None) if chosen is None else chosen  # a slice copies nothing

    def fitted(i: int, spec: CalibrationSpec) -> Calibration:
        is_class, padded = labels == settings.scored_classes[i], None
        x = _inputs(spec, [block.single[i] for block in blocks])[place]
        added = [block.padded for block in blocks if block.padded is not None]
        if added and settings.scored_classes[i] == settings.padded_class:
            padded = _inputs(spec, added)[place if chosen is None else chosen[is_class]]
        return fit_calibration(spec, x, is_class[place], padded)

    pairs = itertools.product(range(len(settings.scored_classes)), settings.calibration_specs)
    found = apply(fitted, *zip(*pairs, strict=True))
    n = len(settings.calibration_specs)
    return tuple(Calibrations(*itertools.islice(found, n)) for _ in settings.scored_classes)


def _inputs(spec: CalibrationSpec, blocks: Sequence[EvidenceArrays]) -> Floats:
    """Return the inputs of the messages of all blocks, (n, spec.size)."""
    x, first = np.empty((sum(len(rows.text) for rows in blocks), spec.size)), 0
    for rows in blocks:
        last = first + len(rows.text)
        x[first:last], first = input_matrix(spec, rows), last
    return x


def token_statistics(counts: Integers, channels: Integers) -> TokenStatistics:
    """Return the histograms of the tokens' counts, and the rows of hosts and of domains.

    counts: (n_classes, n_tokens); channels: (n_tokens,).  Tokens without messages are left out.
    """
    is_known = counts.any(axis=0)
    found = (np.unique(row, return_counts=True) for row in counts[:, is_known])
    histograms = tuple(dict(zip(values.tolist(), n.tolist(), strict=True)) for values, n in found)
    hosts, domains = (
        Counter(map(tuple, counts[:, is_known & (channels == channel)].T.tolist()))
        for channel in (HOST, DOMAIN)
    )
    return histograms, hosts, domains


def trait_histograms_of(traits: Integers, labels: Integers, n_classes: int) -> TraitHistograms:
    """Count the messages with each value, per trait and class."""

    def histogram(values: Integers) -> dict[int, int]:
        found, n = np.unique(values, return_counts=True)
        return dict(zip(found.tolist(), n.tolist(), strict=True))

    has_traits = traits[:, 0] >= 0
    by_class = [traits[has_traits & (labels == k)].T for k in range(n_classes)]
    return tuple(tuple(map(histogram, of_trait)) for of_trait in zip(*by_class, strict=True))


def ham_odds(metadata: Metadata, labels: Iterable[str], scores: Iterable[Score]) -> list[float]:
    """Return the log-odds of the ham among some messages."""
    spam = metadata.settings.classes[metadata.settings.positive_index or 0]
    return [score.log_odds for label, score in zip(labels, scores, strict=True) if label != spam]


def cut_offs_within(limit: float, metadata: Metadata, ham: Iterable[float]) -> CutOffs:
    """Return the lowest cut-offs, from 0.5 on, that block at most a share of the ham.

    limit: 0 to below 1.  ham: the log-odds of the learned ham, each message left out.
    Raises TrainingError for more than two classes, because cut-offs decide only between two.
    """
    settings, learned = metadata
    if len(settings.classes) > 2:
        raise TrainingError(
            "a limit on blocked ham needs two classes; with more, the verdict is the most probable"
            " class",
            Remedy.LEAVE_OUT_LIMIT,
        )
    n_ham = sum(learned.messages) - learned.messages[settings.positive_index or 0]
    highest_delivered = nlargest(int(n_ham * limit) + 1, ham)[-1]
    cut_off = max(0.5, math.ceil(sigmoid(highest_delivered) * _CUT_OFF_STEPS) / _CUT_OFF_STEPS)
    while logit(cut_off) < highest_delivered:  # rounding down would block the highest delivered ham
        cut_off += 1 / _CUT_OFF_STEPS
    return CutOffs(cut_off, min(cut_off, HAM_CUTOFF), metadata.settings.elsewhere)


def token_counts(vocabulary: Sequence[str], counts: Integers) -> Iterator[tuple[str, Row]]:
    """Yield each token that some message has, with its counts per class."""
    rows = zip(*counts.tolist(), strict=True)
    is_known: list[bool] = np.any(counts, axis=0).tolist()
    return itertools.compress(zip(vocabulary, rows, strict=True), is_known)
