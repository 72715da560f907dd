"""The scoring rules: from the weights of a message's words to its score and the score's terms.

A weight says, in nats, how much more often a word occurs in one class than in the others.  A share
is a word's contribution to the log-odds of one message.  A rule is a class like `EvidenceRule`, and
an entry of SCORING_RULES.  The methods for arrays of many messages import numpy when called.
"""

import functools
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from nbspam.bayes import calibration, event_model, evidence
from nbspam.bayes.calibration import Calibrations, Lesson, Vector
from nbspam.bayes.event_model import Row
from nbspam.bayes.evidence import TRAIT_SCALE, WORD_FEATURES, MessageEvidence, separates_classes
from nbspam.bayes.prediction import ClassSizes, Prediction, invert, opening_weight, predict, trust
from nbspam.bayes.trait_model import TraitModel, one_vs_rest_trait_histograms, trait_model
from nbspam.scoring.verdict import Score, score_of_log_scores
from nbspam.store.metadata import EVIDENCE, SUM, Metadata
from nbspam.tokens.kinds import EVIDENCE_TRAITS, FIELDS, HEADER, HOST, OPENING, TEXT, channels_of
from nbspam.tokens.tokenized import NO_EXTRAS, TokenExtras

if TYPE_CHECKING:  # one message is scored without numpy
    from nbspam.bayes.matrix import Booleans, EventArrays, EvidenceArrays, Floats, Integers, Rows

Weights = tuple[float, ...]
KnownTokens = Sequence[tuple[str, Row]]  # tokens and their counts


class KnownWords(NamedTuple):
    """The weights of a message's tokens, by channel, and of its traits."""

    text: list[Weights]
    fields: list[Weights]
    header: list[Weights]
    opening: list[Weights]
    host: list[Weights]  # hosts and separating words, which only the sum rule uses as evidence
    text_tokens: int  # all tokens of the text, known or not
    traits: list[Weights]  # for each trait that the rule uses; [] without traits

    @property
    def all(self) -> list[Weights]:
        """The weights of all channels, then of the traits."""
        return [*itertools.chain(*self[:5], self.traits)]


# Keys of the constant terms in the JSON of `explain`.
BIAS = "bias"  # the sum rule: the absence of every token, and the prior
CALIBRATION = "calibration"  # the calibration's constant, equal for all messages
LENGTH = "length"  # the calibration's term for the number of known tokens
CAUTION = "caution"  # favours ham while little ham was learned
PRIOR = "prior"  # the part of the prior that words do not replace; the shift to a fixed prior
OTHER_CLASSES = "other_classes"  # three or more classes: the influence of the other scores
THE_REST = "the rest"


class LearnedTokens(NamedTuple):
    """The tokens of learned messages, for scoring each message as if it had not been learned."""

    counts: "Integers"  # (n_classes, n_tokens)
    channels: "Integers"  # (n_tokens,); HOST for tokens that separate the classes
    arrays: "EventArrays"  # weights of the evidence rule

    @classmethod
    def from_counts(
        cls, metadata: Metadata, counts: "Integers", channels: "Integers"
    ) -> "LearnedTokens":
        """Prepare the counts of some or all tokens of a model."""
        import numpy as np

        from nbspam.bayes.matrix import EventArrays

        (settings, learned), channels = metadata, channels.copy()
        channels[separating_tokens(counts, channels, learned.messages)] = HOST
        messages, size = np.array(learned.messages), metadata.size
        arrays = EventArrays(settings.counts, counts, messages, settings.alpha, size)
        return cls(counts, channels, arrays)


def separating_tokens(
    counts: "Integers", channels: "Integers", messages: Sequence[float]
) -> list[int]:
    """Return the places of the header tokens that `separates_classes` names.

    counts: (n_classes, n_tokens); channels: (n_tokens,); messages: learned messages of each class.
    """
    import numpy as np

    headers = np.flatnonzero(channels == HEADER)
    n_needed = np.array(messages)[:, None] * evidence.SEPARATING_SHARE
    is_frequent = (counts[:, headers] >= n_needed).any(axis=0)
    places = headers[is_frequent].tolist()
    rows = counts.T[places].tolist()
    return [i for i, row in zip(places, rows, strict=True) if separates_classes(row, messages)]


def hidden_ham_entries(
    is_hidden: "Booleans", for_spam: "Floats", rows: "Integers", n: int
) -> "Booleans":
    """Return which entries of n messages are tokens of `Classifier.hidden_ham_tokens`, (nnz,).

    is_hidden: whether the entry's token is only in possibly hidden text; for_spam: its weight for
    spam; rows: its message; all (nnz,).
    """
    import numpy as np

    is_ham = np.bincount(rows, np.where(is_hidden, np.nan_to_num(for_spam), 0.0), n) <= 0
    return is_hidden & (for_spam < 0) & is_ham[rows]


class Terms(NamedTuple):
    """The terms of a message's log-odds, in nats; constants and shares add up to the log-odds."""

    against: str  # the class to compare with, or "the rest"
    constants: dict[str, float]
    weights: list[float]  # each token's weight, then each trait's
    shares: list[float]  # the contributions of these tokens and traits to the sum


class SumRule:
    """The textbook's rule: the bias and the sum of all weights, and its plain posterior.

        log P(k, x) = b_k + sum_j w_jk x_j + sum_t log f_tk(x_t),   P(k | x) = softmax of these

    for the tokens j, and for the traits t of a model that has traits.
    The result equals scikit-learn's naive Bayes with the same event model to 1e-9.
    """

    is_calibrated = False
    distrusts_hidden_text = False

    def __init__(self, metadata: Metadata) -> None:
        settings, learned = self._settings, _ = self.metadata = metadata
        self._counts, self.uses_counts = settings.counts, settings.counts.counts_repeats
        self.traits = range(len(learned.trait_histograms))
        self._size, self._bias = metadata.size, metadata.bias
        self._densities = trait_model(settings.traits, learned.trait_histograms, settings.variances)

    def trait_weights(self, values: Sequence[int], left_out: int | None = None) -> list[Weights]:
        """Return the log density of each trait per class, in nats."""
        densities = self._densities
        return densities.log_densities(values, left_out) if densities and values else []

    def weights(self, row: Row) -> tuple[float, ...]:
        """Return a token's weight for each class, in nats."""
        settings = self._settings
        return settings.counts.class_weights(row, self._size, settings.alpha)

    def score(self, words: KnownWords) -> Score:
        """Return the plain posterior; tokens of all channels count equally."""
        score = score_of_log_scores(
            self._settings, event_model.joint_log_likelihoods(self._bias, words.all)
        )
        return score._replace(known=len(words.text), text=words.text_tokens)

    def left_out_scores(
        self,
        signed: "Rows",
        labels: "Integers",
        traits: "Integers | None",
        learned: LearnedTokens,
        copies: "Integers",
    ) -> Iterator[Score]:
        """Yield the score of each learned message by a model that has not learned it.

        signed: (n_messages, n_tokens), negative for possibly hidden tokens, which are used here.
        labels: (n_messages,); traits: (n_messages, n_traits) or None.
        copies: (n_messages,), the number of messages to leave out with each message, including it.
        """
        weights_of = self._left_out_weights
        if not self.uses_counts:  # then few rows of counts differ, and the cache helps
            weights_of = functools.cache(weights_of)
        starts = signed.indptr.tolist()
        trait_rows = [()] * len(labels) if traits is None else traits.tolist()
        leaving = zip(labels.tolist(), copies.tolist(), trait_rows, strict=True)
        for i, (k, m, values) in enumerate(leaving):
            entries = slice(starts[i], starts[i + 1])
            tokens, times = signed.indices[entries], abs(signed.data[entries]).astype(int)
            counts, is_text = learned.counts[:, tokens], learned.channels[tokens] == TEXT
            rows = zip(*counts.tolist(), strict=True)
            pairs = Counter(zip(rows, times.tolist(), strict=True))
            size, own = self._size_without(pairs, k, m), pairs if self._counts.has_tokens else {}
            weights: list[Weights] = [
                tuple(w * n for w in weights_of(k, m, size, *pair)) for pair, n in own.items()
            ]
            weights += self.trait_weights(values if values and values[0] >= 0 else (), k)
            log_scores = event_model.joint_log_likelihoods(self._bias_without(k, m), weights)
            known = is_text & (counts.sum(axis=0) > m * times)
            yield score_of_log_scores(self._settings, log_scores)._replace(
                known=int(known.sum()), text=int(is_text.sum())
            )

    def _size_without(
        self, pairs: Mapping[tuple[Row, int], int], k: int, m: int
    ) -> event_model.TrialTotals:
        """Return the trial totals without m copies of a message of class k.

        pairs: (a token's counts, its occurrences in the message) -> number of such tokens.
        """
        messages, trials, outcomes = self._size
        messages = tuple(n - m * (i == k) for i, n in enumerate(messages))
        if not self.uses_counts:
            return event_model.TrialTotals(messages, messages, outcomes)
        own = m * sum(times * n for (_, times), n in pairs.items())
        gone = sum(n for (row, times), n in pairs.items() if sum(row) <= m * times)
        trials = tuple(n - own * (i == k) for i, n in enumerate(trials))
        return event_model.TrialTotals(messages, trials, max(1, outcomes - gone))

    def _left_out_weights(
        self, k: int, m: int, size: event_model.TrialTotals, row: Row, times: int
    ) -> Weights:
        """Return a token's weights plus the bias's change without m copies of a message of class k.

        times: the token's occurrences in the message.  size: the trial totals without the message.
        """
        alpha = self._settings.alpha
        after = *row[:k], max(row[k] - m * times, 0), *row[k + 1 :]
        is_known = any(after)
        changes = [Counter({count: 1}) if is_known else Counter[int]() for count in after]
        for i, count in enumerate(row):
            if i != k or count <= size.messages[k]:  # `_bias_without` leaves out higher counts
                changes[i][count] -= 1
        change = self._counts.bias(changes, size.messages, alpha)
        if not is_known:
            return tuple(change)
        weights = self._counts.class_weights(after, size, alpha)
        return tuple(times * w + c for w, c in zip(weights, change, strict=True))

    @functools.cache  # noqa: B019 (a rule lives as long as its metadata)
    def _bias_without(self, k: int, m: int) -> tuple[float, ...]:
        """Return the bias without m messages of class k, but with unchanged token counts.

        Leaves out counts that exceed the remaining messages of the class.
        """
        learned = self.metadata.learned
        messages = tuple(n - m * (i == k) for i, n in enumerate(learned.messages))
        histograms = [dict(histogram) for histogram in learned.count_histograms]
        histograms[k] = {c: n for c, n in histograms[k].items() if c <= messages[k]}
        left = learned._replace(messages=messages, count_histograms=tuple(histograms))
        return self.metadata._replace(learned=left).bias

    def one_vs_rest_weights(self, row: Row) -> list[float]:
        """Return a token's weight for each class minus its highest weight for another class."""
        weights = self.weights(row)
        return [w - max(weights[:k] + weights[k + 1 :]) for k, w in enumerate(weights)]

    def terms(self, known: KnownTokens, extras: TokenExtras, score: Score, k: int) -> Terms:
        """Return the terms of class k against the most probable other class.

        known: the message's tokens that the model knows.
        """
        others = [i for i in range(len(score.probabilities)) if i != k]
        against = max(others, key=score.probabilities.__getitem__)
        times = extras.times if self.uses_counts else NO_EXTRAS.times
        weights = [w[k] - w[against] for w in (self.weights(row) for _, row in known)]
        traits = [w[k] - w[against] for w in self.trait_weights(extras.traits)]
        shares = [w * times.get(token, 1) for w, (token, _) in zip(weights, known, strict=True)]
        constants = {BIAS: self._bias[k] - self._bias[against]}
        name = self._settings.classes[against]
        return Terms(name, constants, weights + traits, shares + traits)


# For each calibration its groups of words: the index of the group's first input, and its channels.
_GROUPS: tuple[tuple[tuple[int, tuple[int, ...]], ...], ...] = (
    ((1, (TEXT, FIELDS)),),
    ((1, (TEXT,)), (1 + calibration.LENGTH_INDEX, (HEADER,))),
    ((1, (OPENING,)),),
)


class EvidenceRule:
    """Three calibrations of a message's features, blended by trust in its headers.

        z = (1 - phi) ((1 - tau) z_text + tau z_full) + phi z_opening

    with the trust tau in the header fields (`trust`), each z from its calibration (`predict`), and
    the opening's weight phi, at most 0.2, less if the opening would move the score too far
    (`opening_weight`).
    """

    is_calibrated = True  # each message can refine the calibrations
    uses_counts = False  # whether a token counts as often as it occurs in a message
    distrusts_hidden_text = True  # whether possibly hidden words count for spam only

    def __init__(self, metadata: Metadata) -> None:
        settings, learned = self._settings, self._learned = metadata
        self.metadata = metadata
        self._size = metadata.size
        traits = range(len(learned.trait_histograms))
        # Without tokens, only the traits show the form of a mail.
        self.traits = EVIDENCE_TRAITS if traits and settings.counts.has_tokens else traits
        self._scored = settings.scored_classes
        total = sum(learned.messages)
        self._class_sizes: list[ClassSizes] = [
            ClassSizes(learned.messages[k], total - learned.messages[k]) for k in self._scored
        ]
        prior = learned.messages, settings.prior, settings.positive_index
        self._offsets = [event_model.prior_offset(*prior, k) for k in self._scored]

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle only the metadata, from which all other attributes are computed."""
        return EvidenceRule, (self.metadata,)

    @functools.cached_property
    def _host_trust(self) -> tuple[float, float]:
        return self.metadata.host_trust

    @functools.cached_property
    def _covariances(self) -> list[tuple[Sequence[Vector], ...]]:
        """The inverses of the calibrations' precisions, per scored class."""
        by_class = ([fitted.precision for fitted in of] for of in self._learned.calibrations)
        return [tuple(map(invert, precisions)) for precisions in by_class]

    def weights(self, row: Row) -> tuple[float, ...]:
        """Return a token's weight for each scored class against the others, in nats."""
        alpha = self._settings.alpha
        return tuple(
            event_model.one_vs_rest_weight(row, self._size, k, alpha) for k in self._scored
        )

    @functools.cached_property
    def _densities(self) -> list[TraitModel | None]:
        """The trait densities of the other classes together, and of the class, per scored class."""
        settings, histograms = self._settings, self._learned.trait_histograms
        pairs = one_vs_rest_trait_histograms([histograms[i] for i in self.traits], self._scored)
        return [trait_model(settings.traits, pair, settings.variances) for pair in pairs]

    @functools.cached_property
    def _with_traits(self) -> list[int]:
        """The number of messages of each class that were learned with traits."""
        return [sum(values.values()) for values in self._learned.trait_histograms[0]]

    def trait_weights(self, values: Sequence[int], left_out: int | None = None) -> list[Weights]:
        """Return the weights of the traits that the rule uses, for each scored class, in nats.

        Returns [] for a model without traits.
        values: a message's traits, in the order of `tokens/kinds.py`.
        left_out: the class of a learned message that is scored as if it had not been learned.
        """
        if not (self.traits and values):
            return []
        used, by_class = [values[i] for i in self.traits], []
        n = [size - (i == left_out) for i, size in enumerate(self._with_traits)]
        for k, densities in zip(self._scored, self._densities, strict=True):
            if densities is not None:
                place = None if left_out is None else int(left_out == k)
                pairs, fewest = densities.log_densities(used, place), min(n[k], sum(n) - n[k])
                nats = [
                    evidence.shrunk_trait_weight(inside - rest, fewest) for rest, inside in pairs
                ]
                by_class.append(nats)
        return list(zip(*by_class, strict=True))

    def score(self, words: KnownWords) -> Score:
        """Return a message's calibrated score."""
        return self.score_of(self._evidences(words), words.text_tokens)

    def _evidences(self, words: KnownWords) -> tuple[MessageEvidence, ...]:
        """Return the evidence for each scored class."""
        evidences = []
        for i in range(len(self._scored)):
            text, fields, header, opening = ([row[i] for row in channel] for channel in words[:4])
            traits = [row[i] for row in words.traits] if self._settings.has_traits else None
            evidences.append(evidence.message_evidence(text, fields, header, opening, traits))
        return tuple(evidences)

    def score_of(
        self, evidences: tuple[MessageEvidence, ...], text_tokens: int, doubt: float = 0.0
    ) -> Score:
        """Return the calibrated score for the evidence of each scored class.

        text_tokens: the number of tokens in the text, known or not.
        doubt: degree to which the message is from elsewhere, 0 to 1.
        """
        tau = trust(*self._host_trust, evidences[0].header.n)
        z = []
        for i, features in enumerate(evidences):
            predictions = self.predictions(features, i, tau)
            pairs = zip(self._blend_weights(features, predictions, tau), predictions, strict=True)
            z.append(math.fsum(part * prediction.log_odds for part, prediction in pairs))
        if len(self._settings.classes) == 2:
            odds = z[0] + self._offsets[0]  # for the second class, which is positive
            p = event_model.sigmoid(odds)
            score = Score(odds, p, (event_model.sigmoid(-odds), p))
        else:
            # Two classes have the scores z and -z, and sigmoid(z) is the softmax of z/2 and -z/2.
            # So z/2 is used for more classes, too, except for the prior, which is not halved: a
            # message without a known word gets the classes' shares as probabilities.  In a trial
            # with three classes, log-loss was 0.129, and 0.166 with the softmax of z.
            log_scores = [
                event_model.log_sigmoid(sizes.prior + offset) + (v - sizes.prior) / 2
                for v, sizes, offset in zip(z, self._class_sizes, self._offsets, strict=True)
            ]
            score = score_of_log_scores(self._settings, log_scores)
        known = int(evidences[0].text.known)
        return score._replace(
            evidences=evidences, trust=tau, doubt=doubt, known=known, text=text_tokens
        )

    def left_out_rows(
        self,
        signed: "Rows",
        labels: "Integers",
        traits: "Integers | None",
        learned: LearnedTokens,
        copies: "Integers",
        padding: "Sequence[Floats]" = (),
    ) -> "tuple[tuple[EvidenceArrays, ...], EvidenceArrays | None]":
        """Return the evidence of learned messages, each left out, for each scored class.

        Also returns the evidence of the spam's padded copies, for the class spam.
        padding: the weights of the words in padded copies (`bayes/padding.py`); (): no copies.
        The other parameters are as in `SumRule.left_out_scores`.  A message's evidence depends only
        on its own tokens' counts and on the metadata, however messages are grouped.
        """
        import numpy as np

        from nbspam.bayes import matrix
        from nbspam.bayes.padding import padded_evidence

        presence, n, settings = matrix.absolute_entries(signed), signed.shape[0], self._settings
        rows = np.repeat(np.arange(n), np.diff(presence.indptr))
        channels = learned.channels[presence.indices]
        totals = learned.counts.sum(axis=0)[presence.indices] - copies[rows]
        doubts = matrix.doubts_of(self.metadata.domains, channels, totals, rows, n)
        weights_of_class = functools.partial(
            learned.arrays.one_vs_rest_weights, presence, labels, copies=copies
        )
        one_vs_rest_weights = functools.cache(weights_of_class)
        features = np.zeros((len(self._scored), n))
        if traits is not None:
            for i, (values, k) in enumerate(zip(traits.tolist(), labels.tolist(), strict=True)):
                if weights := self.trait_weights(values if values[0] >= 0 else (), k):
                    features[:, i] = list(map(evidence.trait_feature, zip(*weights, strict=True)))
        by_class, padded = [], None
        for scored, feature in zip(self._scored, features, strict=True):
            weights_of_entries = one_vs_rest_weights(scored)
            if presence is not signed:  # possibly hidden tokens are no evidence for ham
                for_spam = one_vs_rest_weights(settings.positive_index or 0)
                is_left_out = hidden_ham_entries(signed.data < 0, for_spam, rows, n)
                weights_of_entries = np.where(is_left_out, np.nan, weights_of_entries)
            ranks, different = matrix.rank_weights(weights_of_entries)
            found = matrix.evidence_of_rows(rows, ranks, different, channels, n)
            trait_features = feature if settings.has_traits else None
            by_class.append(found._replace(traits=trait_features, doubts=doubts))
            if padding and scored == settings.padded_class:
                is_spam = labels == scored
                padded = padded_evidence(rows, weights_of_entries, channels, is_spam, padding)
                if settings.has_traits:
                    padded = padded._replace(traits=feature[is_spam])
        return tuple(by_class), padded

    def scores_of_rows(self, rows: "tuple[EvidenceArrays, ...]") -> Iterator[Score]:
        """Yield each message's score; rows: the evidence for each scored class."""
        for by_class in zip(*(of_class.messages() for of_class in rows), strict=True):
            evidences, text_tokens, doubts = zip(*by_class, strict=True)
            yield self.score_of(evidences, text_tokens[0], doubts[0])

    def _blend_weights(
        self, features: MessageEvidence, predictions: Sequence[Prediction], tau: float
    ) -> Vector:
        """Return the weight of each prediction in the log-odds; the weights add up to 1."""
        text, full, opening = (prediction.log_odds for prediction in predictions)
        others = (1 - tau) * text + tau * full
        phi = opening_weight(others, opening, features.opening.n)
        return (1 - phi) * (1 - tau), (1 - phi) * tau, phi

    def predictions(
        self, features: MessageEvidence, i: int, tau: float = 1.0
    ) -> tuple[Prediction, ...]:
        """Return the predictions of the text, full and opening calibrations of scored class i.

        The text's prediction replaces the full prediction if tau is 0, and the opening's prediction
        if no token of the opening is known.
        """
        words = calibration.calibration_groups(features)
        if not self._settings.counts.has_tokens:  # the traits are the only evidence
            nats = TRAIT_SCALE * (features.traits or 0.0)
            words = (
                (evidence.GroupSummary(0.0, 0.0, 0.0, 0, max(nats, 0.0), min(nats, 0.0)),),
            ) * 3
        known = (
            self._learned.calibrations[i],
            self._covariances[i],
            calibration.calibration_inputs(features),
        )
        text, full, opening = zip(*known, words, strict=True)
        sizes = self._class_sizes[i]
        first = predict(*text, sizes)
        return (
            first,
            predict(*full, sizes) if tau else first,
            predict(*opening, sizes) if features.opening.n else first,
        )

    def one_vs_rest_weights(self, row: Row) -> list[float]:
        """Return a token's weight for each class against the others, in nats."""
        weights = self.weights(row)
        return list(weights) if len(weights) > 1 else [-weights[0], weights[0]]

    def terms(self, known: KnownTokens, extras: TokenExtras, score: Score, k: int) -> Terms:
        """Return the terms of class k against the other classes; known: as in `SumRule.terms`.

        Each calibration adds these nats, times its weight in the blend:

            CALIBRATION, LENGTH  its constant and its term for the length
            CAUTION, PRIOR       - shift_factor x caution, and (1 - shift_factor) x prior
            shares               each group's features, split among the words by their weights
        """
        i = self._scored.index(k)
        features, tau = score.evidences[i], score.trust
        weights = [self.weights(row)[i] for _, row in known]
        channels = [
            HOST
            if channel == HEADER and separates_classes(row, self._learned.messages)
            else channel
            for channel, (_, row) in zip(channels_of(t for t, _ in known), known, strict=True)
        ]
        traits = [row[i] for row in self.trait_weights(extras.traits)]
        constants = dict.fromkeys((CALIBRATION, LENGTH, CAUTION, PRIOR), 0.0)
        shares = [0.0] * (len(weights) + len(traits))
        predictions = self.predictions(features, i, tau)
        for blend_weight, groups, fitted, prediction, inputs in zip(
            self._blend_weights(features, predictions, tau),
            _GROUPS,
            self._learned.calibrations[i],
            predictions,
            calibration.calibration_inputs(features),
            strict=True,
        ):
            if not blend_weight:
                continue
            sizes, scale = self._class_sizes[i], prediction.logit_scale
            # Coefficients for the inputs before clamping: b * clamped = (b * clamped / x) * x.
            triples = zip(fitted.coefficients, prediction.inputs, inputs, strict=True)
            coefficients = [scale * b * (clamped / x if x else 1.0) for b, clamped, x in triples]
            length = calibration.LENGTH_INDEX
            length_term = scale * fitted.coefficients[length] * prediction.inputs[length]
            constants[CALIBRATION] += blend_weight * coefficients[0]
            constants[LENGTH] += blend_weight * length_term
            constants[CAUTION] -= blend_weight * (prediction.shift_factor * sizes.caution)
            constants[PRIOR] += blend_weight * ((1 - prediction.shift_factor) * sizes.prior)
            for start, group in groups:
                members = [j for j, channel in enumerate(channels) if channel in group]
                top_n = evidence.N_STRONGEST_HEADERS if HEADER in group else evidence.N_STRONGEST
                nats_of_group = evidence.group_shares(
                    [weights[j] for j in members], top_n, coefficients[start:][:WORD_FEATURES]
                )
                for j, nats in zip(members, nats_of_group, strict=True):
                    shares[j] += blend_weight * nats
            for j, weight in enumerate(traits, len(weights)):
                shares[j] += blend_weight * coefficients[-1] * weight / TRAIT_SCALE
        constants = {key: nats for key, nats in constants.items() if nats}
        if self._offsets[i]:
            constants[PRIOR] = constants.get(PRIOR, 0.0) + self._offsets[i]
        weights += traits
        classes = self._settings.classes
        if len(classes) == 2:
            return Terms(classes[1 - k], constants, weights, shares)
        explained = sum(constants.values()) + sum(shares)
        constants[OTHER_CLASSES] = event_model.class_log_odds(score.log_scores, k) - explained
        return Terms(THE_REST, constants, weights, shares)

    def calibration_lesson(
        self, calibrations: Sequence[Calibrations], words: KnownWords, label: int, digest: str
    ) -> Lesson:
        """Return a message's inputs for the calibrations.

        words: the message's words in a model that has not learned it.
        In a long run of one class there are no inputs (`calibration.exceeds_run_limit`).
        """
        messages = self.metadata.learned.messages
        total = sum(messages) + 1  # all learned messages and this one
        inputs = []
        evidences = self._evidences(words)
        for k, fitted, features in zip(self._scored, calibrations, evidences, strict=True):
            is_own = label == k
            n = messages[k] + 1 if is_own else total - messages[k]
            share = (n + 1) / (total + 2)
            pairs = zip(fitted, calibration.calibration_inputs(features), strict=True)
            xs = (
                () if calibration.exceeds_run_limit(old, is_own, share) else x for old, x in pairs
            )
            inputs.append(tuple(map(calibration.round_inputs, xs)))
        return Lesson(digest, label, tuple(inputs))


ScoringRule = EvidenceRule | SumRule
SCORING_RULES: Mapping[str, Callable[[Metadata], ScoringRule]] = {
    EVIDENCE: EvidenceRule,
    SUM: SumRule,
}


def scoring_rule(metadata: Metadata) -> ScoringRule:
    """Return the scoring rule of a model."""
    return SCORING_RULES[metadata.settings.scoring](metadata)
