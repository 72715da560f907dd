"""The scoring rules for many messages: learned ones, each left out, or new ones, by a table."""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from nbspam.bayes import matrix
from nbspam.bayes.calibration import Calibration, Calibrations
from nbspam.bayes.event_model import log_priors
from nbspam.bayes.evidence import ALONE, tells_alone, trait_feature
from nbspam.bayes.fitting import Inputs, fit_calibration, inputs_of_rows
from nbspam.bayes.matrix import Booleans, Chunked, EvidenceRows, Floats, Integers, Presence
from nbspam.scoring import rules
from nbspam.scoring.classifier import Classifier
from nbspam.scoring.rules import EvidenceRule, Score, ScoringRule, SumRule
from nbspam.store.index import CHANNELS, TokenTable, hashes_of
from nbspam.store.metadata import EVIDENCE, SUM, Metadata, ModelSettings
from nbspam.tokens.kinds import HEADER, HOST, TEXT, channels_of
from nbspam.tokens.tokenized import TokenizedMessage

_SCORED = 10_000  # messages whose scores are made at a time


class _Batch:
    """A scoring rule for all messages that were learned, each left out."""

    def __init__(
        self, counts: Integers, labels: Integers, channels: Integers, traits: Integers | None
    ) -> None:
        """Keep what was learned.

        counts: (n_classes, n_tokens); labels: (n_messages,); channels: (n_tokens,), of the columns;
        traits: (n_messages, n_traits), or None.
        """
        self._counts, self._labels, self._channels = counts, labels, channels
        self._traits = traits

    def _arrays(self, metadata: Metadata) -> matrix.EventArrays:
        (settings, learned), counts = metadata, self._counts
        messages, size = np.array(learned.messages), metadata.size
        return matrix.EventArrays(settings.counts, counts, messages, settings.alpha, size)

    def _trait_weights(self, rule: ScoringRule) -> Iterator[list[rules.Weights]]:
        """Yield the weights of each message's traits, as `ScoringRule.trait_weights` has them."""
        if self._traits is not None:
            for values, label in zip(self._traits.tolist(), self._labels.tolist(), strict=True):
                yield rule.trait_weights(values if values[0] >= 0 else (), label)


class BatchSum(_Batch):
    """The sum rule on a matrix."""

    def fit(self, _: Presence | Chunked, metadata: Metadata) -> tuple[Calibrations, ...]:
        """Return the calibrations as they are: the posterior is not calibrated."""
        return metadata.learned.calibrations

    def left_out_scores(
        self, presence: Presence | Chunked, metadata: Metadata, folds: int = 1
    ) -> Iterator[Score]:
        """Yield each training message's score by the model that never saw it."""
        settings, learned = metadata
        fixed = None
        if settings.prior is not None:
            fixed = np.array(log_priors(learned.messages, settings.prior, settings.positive_index))
        arrays, totals = self._arrays(metadata), self._counts.sum(axis=0)
        of_traits = self._trait_weights(SumRule(metadata))
        for place, piece in matrix.chunks(presence):
            n = piece.shape[0]
            joints = arrays.joints(piece, self._labels[place], fixed)
            for row, weights in zip(joints, itertools.islice(of_traits, n), strict=False):
                row += np.sum(weights, axis=0) if weights else 0.0
            rows = np.repeat(np.arange(n), np.diff(piece.indptr))
            is_text = self._channels[piece.indices] == TEXT
            # A token that only the message itself has is unknown once that is left out.
            is_known = is_text & (totals[piece.indices] > piece.data)
            text, known = (
                np.bincount(rows[is_counted], minlength=n).tolist()
                for is_counted in (is_text, is_known)
            )
            for log_scores, n_known, n_text in zip(joints.tolist(), known, text, strict=True):
                score = rules.score_of_log_scores(settings, log_scores)
                yield score._replace(known=n_known, text=n_text)


class BatchEvidence(_Batch):
    """The evidence rule on a matrix."""

    # Per scored class, the left-out evidence of the training messages: the input of the fit.
    _left_out: tuple[EvidenceRows, ...] = ()

    def fit(self, presence: Presence | Chunked, metadata: Metadata) -> tuple[Calibrations, ...]:
        """Return the calibrations, fitted to the features of each message left out."""
        self._left_out = self.left_out_evidence(presence, EvidenceRule(metadata))
        return self.calibrations_fitted_to(metadata, np.arange(len(self._labels)))

    def calibrations_fitted_to(
        self, metadata: Metadata, places: Integers
    ) -> tuple[Calibrations, ...]:
        """Return the calibrations fitted to some of the messages."""
        scales = metadata.settings.scales
        inputs = [tuple(inputs_of_rows(s, rows)[places] for s in scales) for rows in self._left_out]
        return fitted_calibrations(metadata.settings, inputs, self._labels[places])

    def left_out_scores(
        self, presence: Presence | Chunked, metadata: Metadata, folds: int = 1
    ) -> Iterator[Score]:
        """Yield each training message's score by the model that never saw it.

        folds: above 1, the messages of each fold are scored by calibrations fitted to the others,
        so that no message influences its own score.
        """
        if folds < 2:
            yield from scores_of_rows(self._left_out, EvidenceRule(metadata))
            return
        fold, parts = np.arange(len(self._labels)) % folds, []
        for part in range(folds):
            calibrations = self.calibrations_fitted_to(metadata, np.flatnonzero(fold != part))
            learned = metadata.learned._replace(calibrations=calibrations)
            evidence = tuple(rows.some(np.flatnonzero(fold == part)) for rows in self._left_out)
            rule = EvidenceRule(metadata._replace(learned=learned))
            parts.append(scores_of_rows(evidence, rule))
        yield from (next(parts[k]) for k in fold.tolist())

    def left_out_evidence(
        self, presence: Presence | Chunked, rule: EvidenceRule
    ) -> tuple[EvidenceRows, ...]:
        """Return the evidence of each training message, itself left out, for each scored class."""
        metadata = rule.metadata
        settings, arrays = metadata.settings, self._arrays(metadata)
        classes, positive = settings.scored_classes, settings.positive_index or 0
        of_tokens = self._channels.copy()
        of_tokens[telling_alone(self._counts, of_tokens, metadata.learned.messages)] = HOST
        features = np.zeros((len(classes), presence.shape[0]))
        for i, of_traits in enumerate(self._trait_weights(rule)):
            if of_traits:
                features[:, i] = [trait_feature(same) for same in zip(*of_traits, strict=True)]
        by_class = []
        for scored, feature in zip(classes, features, strict=True):
            parts = []
            for place, signed in matrix.signed_chunks(presence):
                piece, labels = matrix.without_signs(signed), self._labels[place]
                n = piece.shape[0]
                rows = np.repeat(np.arange(n), np.diff(piece.indptr))
                weights = arrays.contrasts(piece, labels, scored)
                if piece is not signed:  # what is perhaps hidden does not speak for ham
                    for_spam = weights
                    if scored != positive:
                        for_spam = arrays.contrasts(piece, labels, positive)
                    weights[hidden_ham_tokens(signed.data < 0, for_spam, rows, n)] = np.nan
                channels = of_tokens[piece.indices]
                ranks, different = matrix.ranked(weights)
                parts.append(matrix.evidence_of_rows(rows, ranks, different, channels, n))
            *of_rows, _ = zip(*parts, strict=True)
            trait_features = feature if settings.has_traits else None
            by_class.append(EvidenceRows._make([*map(np.concatenate, of_rows), trait_features]))
        return tuple(by_class)


def telling_alone(counts: Integers, channels: Integers, messages: Sequence[float]) -> list[int]:
    """Return the places of the tokens of the header channel that alone tell the classes apart.

    counts: (n_classes, n_tokens); channels: (n_tokens,); messages: of each class.
    """
    headers = np.flatnonzero(channels == HEADER)
    is_frequent = (counts[:, headers] >= np.array(messages)[:, None] * ALONE).any(axis=0)
    places = headers[is_frequent].tolist()
    rows = counts.T[places].tolist()
    return [i for i, row in zip(places, rows, strict=True) if tells_alone(row, messages)]


def hidden_ham_tokens(is_hidden: Booleans, for_spam: Floats, rows: Integers, n: int) -> Booleans:
    """Return which entries of n messages `Classifier.hidden_ham_tokens` has, (nnz,).

    is_hidden: whether the token is in possibly hidden text only; for_spam: its weight; rows: its
    message; all (nnz,).
    """
    is_ham = np.bincount(rows, np.where(is_hidden, np.nan_to_num(for_spam), 0.0), n) <= 0
    return is_hidden & (for_spam < 0) & is_ham[rows]


def scores_of_rows(evidence: tuple[EvidenceRows, ...], rule: EvidenceRule) -> Iterator[Score]:
    """Yield the score of each message; evidence: for each scored class, the evidence of all."""
    for first in range(0, len(evidence[0].text), _SCORED):
        place = slice(first, first + _SCORED)
        for by_class in zip(*(rows.messages(place) for rows in evidence), strict=True):
            evidences, text_tokens = zip(*by_class, strict=True)
            yield rule.score_of(evidences, text_tokens[0])


def fitted_calibrations(
    settings: ModelSettings,
    inputs: Sequence[Sequence[Inputs]],
    labels: Integers,
    apply: Callable[..., Iterator[Calibration]] = map,
) -> tuple[Calibrations, ...]:
    """Return the calibrations fitted to some messages, of each scored class.

    inputs: per scored class, of each of its calibrations.  labels: (n,), the messages' classes.
    apply: calls a function for each calibration, perhaps in threads.
    """
    n, classes = len(settings.scales), settings.scored_classes
    is_class = (labels == k for k in classes for _ in range(n))
    scales = settings.scales * len(classes)
    fitted = apply(fit_calibration, scales, itertools.chain(*inputs), is_class)
    return tuple(Calibrations(*itertools.islice(fitted, n)) for _ in classes)


BatchRule = BatchEvidence | BatchSum
BATCH_RULES: Mapping[str, type[BatchRule]] = {EVIDENCE: BatchEvidence, SUM: BatchSum}


class BulkClassifier:
    """Scores messages with the table of a model's tokens."""

    def __init__(self, classifier: Classifier, table: TokenTable) -> None:
        """Score as `classifier` does, with a table of the tokens of its model."""
        self._classifier, self._table = classifier, table
        settings, n = classifier.metadata.settings, len(table.counts)
        # Of each row of the table, by which tokens are found: its weights, and its channel.  Last,
        # at -1, those of an unknown token.
        rows = [row for row in map(classifier.rule.weights, table.counts) for _ in range(CHANNELS)]
        rows.append((math.nan,) * len(settings.scored_classes))
        of_rows = np.tile(np.arange(CHANNELS), (n, 1))
        messages = classifier.metadata.learned.messages
        alone = [i for i, counts in enumerate(table.counts) if tells_alone(counts, messages)]
        of_rows[alone, HEADER] = HOST
        self._channels = np.append(of_rows, TEXT)
        places = range(len(settings.scored_classes))
        columns = [np.array([weights[i] for weights in rows], float) for i in places]
        self._ranked = [matrix.ranked(column) for column in columns]
        self._for_spam = columns[settings.scored_classes.index(settings.positive_index or 0)]

    def scores(self, messages: Sequence[TokenizedMessage]) -> Iterator[Score]:
        """Yield the score of each message."""
        rule = self._classifier.rule
        # The sum rule may count how often a token occurs, which the table does not have.
        if not messages or isinstance(rule, SumRule) or self._classifier.metadata.is_one_sided:
            return (self._classifier.score(m.tokens, m.numbers) for m in messages)
        tokens = list(itertools.chain.from_iterable(message.tokens for message in messages))
        rows = self._table.find(hashes_of(tokens))
        n, by_class = len(messages), []
        message_of = np.repeat(np.arange(n), [len(message.tokens) for message in messages])
        if any(message.numbers.possibly_hidden for message in messages):
            is_hidden = itertools.chain.from_iterable(map(_are_hidden, messages))
            hidden = np.fromiter(is_hidden, bool, len(tokens))
            rows[hidden_ham_tokens(hidden, self._for_spam[rows], message_of, n)] = -1
        channels = self._channels[rows]
        marked = [i for i in np.flatnonzero(rows < 0).tolist() if ":" in tokens[i]]
        channels[marked] = channels_of(tokens[i] for i in marked)
        traits = [rule.trait_weights(message.numbers.traits) for message in messages]
        for i, (ranks, weights) in enumerate(self._ranked):
            features = None
            if self._classifier.metadata.settings.has_traits:
                features = np.array([trait_feature(row[i] for row in w) for w in traits])
            of_rows = matrix.evidence_of_rows(message_of, ranks[rows], weights, channels, n)
            by_class.append(of_rows._replace(traits=features))
        return scores_of_rows(tuple(by_class), rule)


def _are_hidden(message: TokenizedMessage) -> Iterable[bool]:
    """Return whether each token of a message is in possibly hidden text only."""
    hidden = message.numbers.possibly_hidden
    return map(hidden.__contains__, message.tokens) if hidden else [False] * len(message.tokens)
