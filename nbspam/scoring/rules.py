"""The scoring rules: from the weights of a message's words to its score, and to the terms of it.

A rule is a class like `EvidenceRule`, and an entry of RULES; `batch_rules.py` has the same for the
messages that were learned, each left out.
"""

import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from nbspam.bayes import calibration, event_model, evidence
from nbspam.bayes.calibration import Calibrations, ClassSizes, Lesson, Prediction, Vector
from nbspam.bayes.event_model import Row
from nbspam.bayes.evidence import TRAIT_SCALE, WORD_FEATURES, Evidence, Group, tells_alone
from nbspam.bayes.trait_model import TraitModel, against_rest, trait_model
from nbspam.store.metadata import EVIDENCE, SUM, Metadata, ModelSettings
from nbspam.tokens.kinds import FIELDS, HEADER, HOST, IN_EVIDENCE, OPENING, TEXT, channels_of
from nbspam.tokens.tokenized import NO_NUMBERS, Numbers

Weights = tuple[float, ...]
KnownTokens = Sequence[tuple[str, Row]]  # tokens and their counts


class KnownWords(NamedTuple):
    """The weights of a message's tokens, by channel, and of its traits."""

    text: list[Weights]
    fields: list[Weights]
    header: list[Weights]
    opening: list[Weights]
    host: list[Weights]  # and what alone tells the classes: evidence for the sum rule only
    text_tokens: int  # of the text, known or not
    traits: list[Weights]  # per trait that the rule uses, of a message that has them

    @property
    def all(self) -> list[Weights]:
        """The weights of all channels, and of the traits."""
        return [*itertools.chain(*self[:5], self.traits)]


class Score(NamedTuple):
    """The score of a message."""

    log_odds: float  # of the positive class, in nats
    probability: float  # of the positive class
    probabilities: tuple[float, ...]  # per class, in the model's order
    evidences: tuple[Evidence, ...] = ()  # per scored class; none under the sum rule
    # Per class, up to a constant; none for the evidence of two classes.
    log_scores: tuple[float, ...] = ()
    trust: float = 0.0  # in the header channel, 0 to 1
    known: int = 0  # tokens of the text that the model knows, of
    text: int = 0  # so many


def score_of_log_scores(settings: ModelSettings, log_scores: Sequence[float]) -> Score:
    """Return the score of classes with these log-scores, such as joint log-likelihoods."""
    positive = settings.positive_index
    probabilities = event_model.softmax(log_scores)
    if positive is None:  # three or more classes, none called spam: that of the most probable one
        positive = max(range(len(log_scores)), key=log_scores.__getitem__)
    odds = event_model.odds_of_class(log_scores, positive)
    if len(log_scores) == 2:  # so that the two agree to the last digit
        probabilities[positive] = event_model.sigmoid(odds)
        probabilities[1 - positive] = event_model.sigmoid(-odds)
    return Score(odds, probabilities[positive], tuple(probabilities), log_scores=tuple(log_scores))


# What a constant term is, by its key in the JSON of `explain`.
BIAS = "bias"  # the sum rule: the absence of every token, and the prior
CALIBRATION = "calibration"  # the calibration's constant: any message
LENGTH = "length"  # the calibration of the number of known tokens
CAUTION = "caution"  # for ham, while little of it was learned
PRIOR = "prior"  # the prior, as far as the words leave it; and a fixed one's difference to it
OTHER_CLASSES = "other_classes"  # three or more classes: what the others' scores take away
THE_REST = "the rest"


class Terms(NamedTuple):
    """The terms of a message's log-odds, in nats; constants and shares add up to it."""

    against: str  # the class that the log-odds speak against, or "the rest"
    constants: dict[str, float]
    weights: list[float]  # of each token by itself, then of each trait that the rule uses
    shares: list[float]  # what each of them adds to the sum


class SumRule:
    """The textbook's rule: the bias and the sum of all weights, and its plain posterior.

        log P(k, x) = b_k + sum_j w_jk x_j + sum_t log f_tk(x_t),   P(k | x) = softmax of these

    of the tokens j, and of the traits t where the model has them.
    It equals scikit-learn's naive Bayes of the same event model to 1e-9.
    """

    is_calibrated = False
    distrusts_hidden_text = False

    def __init__(self, metadata: Metadata) -> None:
        settings, learned = self._settings, _ = metadata
        self.uses_counts = settings.counts.repeats
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
        """Return the plain posterior; the tokens of all channels are added alike."""
        score = score_of_log_scores(self._settings, event_model.joints(self._bias, words.all))
        return score._replace(known=len(words.text), text=words.text_tokens)

    def contrasts(self, row: Row) -> list[float]:
        """Return a token's weight for each class, less its highest weight for another."""
        weights = self.weights(row)
        return [w - max(weights[:k] + weights[k + 1 :]) for k, w in enumerate(weights)]

    def terms(self, known: KnownTokens, numbers: Numbers, score: Score, k: int) -> Terms:
        """Return the terms of class k against the most probable of the others.

        known: the tokens of the message that the model knows.
        """
        others = [i for i in range(len(score.probabilities)) if i != k]
        against = max(others, key=score.probabilities.__getitem__)
        times = numbers.times if self.uses_counts else NO_NUMBERS.times
        of_tokens = [w[k] - w[against] for w in (self.weights(row) for _, row in known)]
        of_traits = [w[k] - w[against] for w in self.trait_weights(numbers.traits)]
        shares = [w * times.get(token, 1) for w, (token, _) in zip(of_tokens, known, strict=True)]
        constants = {BIAS: self._bias[k] - self._bias[against]}
        name = self._settings.classes[against]
        return Terms(name, constants, of_tokens + of_traits, shares + of_traits)


# Of each calibration: where the inputs of a group of words begin, and the group's channels.
_GROUPS: tuple[tuple[tuple[int, tuple[int, ...]], ...], ...] = (
    ((1, (TEXT, FIELDS)),),
    ((1, (TEXT,)), (1 + calibration.LENGTH, (HEADER,))),
    ((1, (OPENING,)),),
)


class EvidenceRule:
    """Three calibrations of a message's features, blended by trust in its headers.

        z = (1 - phi) ((1 - tau) z_text + tau z_full) + phi z_opening

    with tau from the collecting hosts (`trust`), each z from its calibration (`predict`), and phi a
    fifth, or less so that the opening moves the others only so far (`opening_part`).
    """

    is_calibrated = True  # so that each message can refine it
    uses_counts = False  # whether a token counts as often as it occurs in a message
    distrusts_hidden_text = True  # whether possibly hidden words count for spam only

    def __init__(self, metadata: Metadata) -> None:
        settings, learned = self._settings, self._learned = metadata
        self.metadata = metadata
        self._size = metadata.size
        traits = range(len(learned.trait_histograms))
        # Without tokens, only the traits show the form of a mail.
        self.traits = IN_EVIDENCE if traits and settings.counts.has_tokens else traits
        self._scored = settings.scored_classes
        total = sum(learned.messages)
        self._class_sizes: list[ClassSizes] = [
            ClassSizes(learned.messages[k], total - learned.messages[k]) for k in self._scored
        ]
        prior = learned.messages, settings.prior, settings.positive_index
        self._offsets = [event_model.prior_offset(*prior, k) for k in self._scored]

    def __reduce__(self) -> tuple[object, ...]:
        """Go to another process by the metadata, without what was computed from them."""
        return EvidenceRule, (self.metadata,)

    @functools.cached_property
    def _host_trust(self) -> tuple[float, float]:
        return self.metadata.host_trust

    @functools.cached_property
    def _covariances(self) -> list[tuple[Sequence[Vector], ...]]:
        """The inverses of the calibrations' precisions, per scored class."""
        by_class = ([fitted.precision for fitted in of] for of in self._learned.calibrations)
        return [tuple(map(calibration.inverse, precisions)) for precisions in by_class]

    def weights(self, row: Row) -> tuple[float, ...]:
        """Return a token's weight for each scored class against the others, in nats."""
        alpha = self._settings.alpha
        return tuple(event_model.contrast(row, self._size, k, alpha) for k in self._scored)

    @functools.cached_property
    def _densities(self) -> list[TraitModel | None]:
        """The densities of the traits: per scored class, of the others together and of it."""
        settings, histograms = self._settings, self._learned.trait_histograms
        pairs = against_rest([histograms[i] for i in self.traits], self._scored)
        return [trait_model(settings.traits, pair, settings.variances) for pair in pairs]

    @functools.cached_property
    def _with_traits(self) -> list[int]:
        """How many messages of each class were learned with their traits."""
        return [sum(values.values()) for values in self._learned.trait_histograms[0]]

    def trait_weights(self, values: Sequence[int], left_out: int | None = None) -> list[Weights]:
        """Return the weights of the traits that the rule uses, for each scored class, in nats.

        [] of a model without traits.  values: of a message, as `tokens/kinds.py` lists them.
        left_out: the message's class, if it was learned and is to be scored as if it had not been.
        """
        if not (self.traits and values):
            return []
        used, by_class = [values[i] for i in self.traits], []
        n = [size - (i == left_out) for i, size in enumerate(self._with_traits)]
        for k, densities in zip(self._scored, self._densities, strict=True):
            if densities is not None:
                place = None if left_out is None else int(left_out == k)
                pairs, fewest = densities.log_densities(used, place), min(n[k], sum(n) - n[k])
                nats = [evidence.trait_weight(inside - rest, fewest) for rest, inside in pairs]
                by_class.append(nats)
        return list(zip(*by_class, strict=True))

    def score(self, words: KnownWords) -> Score:
        """Return the calibrated score of a message."""
        return self.score_of(self._evidences(words), words.text_tokens)

    def _evidences(self, words: KnownWords) -> tuple[Evidence, ...]:
        """Return the evidence for each scored class."""
        evidences = []
        for i in range(len(self._scored)):
            text, fields, header, opening = ([row[i] for row in channel] for channel in words[:4])
            traits = [row[i] for row in words.traits] if self._settings.has_traits else None
            evidences.append(evidence.evidence(text, fields, header, opening, traits))
        return tuple(evidences)

    def score_of(self, evidences: tuple[Evidence, ...], text_tokens: int) -> Score:
        """Return the calibrated score of the evidence for each scored class.

        text_tokens: how many tokens the text has, known or not.
        """
        tau = calibration.trust(*self._host_trust, evidences[0].header.n)
        z = []
        for i, features in enumerate(evidences):
            predictions = self.predictions(features, i, tau)
            pairs = zip(self._parts(features, predictions, tau), predictions, strict=True)
            z.append(math.fsum(part * prediction.log_odds for part, prediction in pairs))
        if len(self._settings.classes) == 2:
            odds = z[0] + self._offsets[0]  # of the second class, which is the positive one
            p = event_model.sigmoid(odds)
            score = Score(odds, p, (event_model.sigmoid(-odds), p))
        else:
            # Two classes have the scores z and -z, and the sigmoid of z is the softmax of half of
            # both; so it is with more, but for the prior, which is taken as it is: without any
            # known word the probabilities are the classes' shares.  (Softmax of z itself: log-loss
            # 0.166 against 0.129 in a trial with three classes.)
            log_scores = [
                event_model.log_sigmoid(sizes.prior + offset) + (v - sizes.prior) / 2
                for v, sizes, offset in zip(z, self._class_sizes, self._offsets, strict=True)
            ]
            score = score_of_log_scores(self._settings, log_scores)
        known = int(evidences[0].text.known)
        return score._replace(evidences=evidences, trust=tau, known=known, text=text_tokens)

    def _parts(self, features: Evidence, predictions: Sequence[Prediction], tau: float) -> Vector:
        """Return the part of each prediction in the log-odds; they add up to 1."""
        text, full, opening = (prediction.log_odds for prediction in predictions)
        others = (1 - tau) * text + tau * full
        phi = calibration.opening_part(others, opening, features.opening.n)
        return (1 - phi) * (1 - tau), (1 - phi) * tau, phi

    def predictions(self, features: Evidence, i: int, tau: float = 1.0) -> tuple[Prediction, ...]:
        """Return the predictions of the calibrations of scored class number i.

        tau: if it is 0, the second is not needed, and equals the first; so does the third without
        known tokens of the opening.
        """
        words = calibration.groups(features)
        if not self._settings.counts.has_tokens:  # the traits are the only evidence
            nats = TRAIT_SCALE * (features.traits or 0.0)
            words = ((Group(0.0, 0.0, 0.0, 0, max(nats, 0.0), min(nats, 0.0)),),) * 3
        known = self._learned.calibrations[i], self._covariances[i], calibration.inputs(features)
        text, full, opening = zip(*known, words, strict=True)
        sizes = self._class_sizes[i]
        first = calibration.predict(*text, sizes)
        return (
            first,
            calibration.predict(*full, sizes) if tau else first,
            calibration.predict(*opening, sizes) if features.opening.n else first,
        )

    def contrasts(self, row: Row) -> list[float]:
        """Return a token's weight for each class against the others, in nats."""
        weights = self.weights(row)
        return list(weights) if len(weights) > 1 else [-weights[0], weights[0]]

    def terms(self, known: KnownTokens, numbers: Numbers, score: Score, k: int) -> Terms:
        """Return the terms of class k against the others; known: as of the sum rule."""
        i = self._scored.index(k)
        evidences, tau = score.evidences[i], score.trust
        weights = [self.weights(row)[i] for _, row in known]
        channels = [
            HOST if channel == HEADER and tells_alone(row, self._learned.messages) else channel
            for channel, (_, row) in zip(channels_of(t for t, _ in known), known, strict=True)
        ]
        traits = [row[i] for row in self.trait_weights(numbers.traits)]
        constants = dict.fromkeys((CALIBRATION, LENGTH, CAUTION, PRIOR), 0.0)
        shares = [0.0] * (len(weights) + len(traits))
        predictions = self.predictions(evidences, i, tau)
        for part, groups, fitted, prediction, x in zip(
            self._parts(evidences, predictions, tau),
            _GROUPS,
            self._learned.calibrations[i],
            predictions,
            calibration.inputs(evidences),
            strict=True,
        ):
            if not part:
                continue
            sizes, gain, clamped = self._class_sizes[i], prediction.gain, prediction.inputs
            # Of each input as it is, before it was held within its bounds.
            triples = zip(fitted.coefficients, clamped, x, strict=True)
            coefficients = [gain * b * (v / before if before else 1.0) for b, v, before in triples]
            length = calibration.LENGTH
            constants[CALIBRATION] += part * coefficients[0]
            constants[LENGTH] += part * (gain * fitted.coefficients[length] * clamped[length])
            constants[CAUTION] -= part * (prediction.hold * sizes.margin)
            constants[PRIOR] += part * ((1 - prediction.hold) * sizes.prior)
            for first, group in groups:
                places = [j for j, channel in enumerate(channels) if channel in group]
                most = evidence.HEADERS if HEADER in group else evidence.STRONGEST
                nats_of_group = evidence.group_shares(
                    [weights[j] for j in places], most, coefficients[first : first + WORD_FEATURES]
                )
                for j, nats in zip(places, nats_of_group, strict=True):
                    shares[j] += part * nats
            for j, weight in enumerate(traits, len(weights)):
                shares[j] += part * coefficients[-1] * weight / TRAIT_SCALE
        constants = {key: nats for key, nats in constants.items() if nats}
        if self._offsets[i]:
            constants[PRIOR] = constants.get(PRIOR, 0.0) + self._offsets[i]
        weights += traits
        classes = self._settings.classes
        if len(classes) == 2:
            return Terms(classes[1 - k], constants, weights, shares)
        explained = sum(constants.values()) + sum(shares)
        constants[OTHER_CLASSES] = event_model.odds_of_class(score.log_scores, k) - explained
        return Terms(THE_REST, constants, weights, shares)

    def lesson(
        self, calibrations: Sequence[Calibrations], words: KnownWords, label: int, digest: str
    ) -> Lesson:
        """Return a message's inputs for the calibrations, scored as if it had not been learned.

        words: of the message, by a model that has not learned it.
        No inputs in a long run of one class (`calibration.is_run`).
        """
        messages = self.metadata.learned.messages
        total = sum(messages) + 1  # with the message itself
        inputs = []
        evidences = self._evidences(words)
        for k, fitted, features in zip(self._scored, calibrations, evidences, strict=True):
            is_own = label == k
            n = messages[k] + 1 if is_own else total - messages[k]
            share = (n + 1) / (total + 2)
            pairs = zip(fitted, calibration.inputs(features), strict=True)
            xs = (() if calibration.is_run(old, is_own, share) else x for old, x in pairs)
            inputs.append(tuple(map(calibration.learned_inputs, xs)))
        return Lesson(digest, label, tuple(inputs))


ScoringRule = EvidenceRule | SumRule
RULES: Mapping[str, Callable[[Metadata], ScoringRule]] = {EVIDENCE: EvidenceRule, SUM: SumRule}


def rule_of(metadata: Metadata) -> ScoringRule:
    """Return the scoring rule of a model."""
    return RULES[metadata.settings.scoring](metadata)
