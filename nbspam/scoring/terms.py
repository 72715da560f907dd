"""The terms that a score is the sum of."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from nbspam.bayes.calibration import TEXT as OF_TEXT
from nbspam.bayes.calibration import Calibration, Scale, Vector
from nbspam.bayes.event_model import Row
from nbspam.bayes.evidence import HEADERS, STRONGEST, TRAIT_SCALE, group_shares
from nbspam.bayes.prediction import Experience, Prediction, parts_of
from nbspam.scoring.words import Weights
from nbspam.tokens.kinds import FIELDS, HEADER, TEXT

# What a constant term is, by its key in the JSON of `explain`.
BIAS = "bias"  # the sum rule: the absence of every token, and the prior
CALIBRATION = "calibration"  # the calibration's constant: any message
LENGTH = "length"  # the calibration of the number of known tokens
CAUTION = "caution"  # for ham, while little of it was learned
PRIOR = "prior"  # the prior, as far as the words leave it; and a fixed one's difference to it
OTHER_CLASSES = "other_classes"  # three or more classes: what the others' scores take away
THE_REST = "the rest"


class Found(NamedTuple):
    """What was found of a message in the model: its known tokens, and its traits."""

    rows: Sequence[Row]  # of each token
    channels: Sequence[int]
    times: Sequence[int]
    traits: Sequence[Weights]  # the weights of each trait that the rule heeds


class Terms(NamedTuple):
    """The terms of a message's log-odds, in nats; constants and shares add up to it."""

    against: str  # the class that the log-odds speak against, or "the rest"
    constants: dict[str, float]
    weights: list[float]  # of each token by itself, then of each trait
    shares: list[float]  # what each of them adds to the sum


# Part of the score, and what a prediction was made of and with.
WeightedPrediction = tuple[float, Scale, Calibration, Prediction, Vector]


def evidence_terms(
    weights: Sequence[float],
    channels: Sequence[int],
    traits: Sequence[float],
    predictions: Iterable[WeightedPrediction],
    experience: Experience,
) -> tuple[dict[str, float], list[float]]:
    """Return the constants of a blend of predictions, and the share of each token and trait.

    weights, channels: of each token.  traits: the weight of each.
    """
    constants = dict.fromkeys((CALIBRATION, LENGTH, CAUTION, PRIOR), 0.0)
    shares = [0.0] * len(weights)
    of_traits = [0.0] * len(traits)
    for part, scale, calibration, prediction, x in predictions:
        parts = parts_of(scale, calibration, prediction, x, experience)
        constants[CALIBRATION] += part * parts.constant
        constants[LENGTH] += part * parts.length
        constants[CAUTION] += part * parts.caution
        constants[PRIOR] += part * parts.prior
        grouped = ((TEXT, FIELDS),) if scale.name == OF_TEXT.name else ((TEXT,), (HEADER,))
        for group, coefficients in zip(grouped, parts.word_coefficients, strict=True):
            places = [j for j, channel in enumerate(channels) if channel in group]
            most = HEADERS if HEADER in group else STRONGEST
            own = group_shares([weights[j] for j in places], most, coefficients)
            for j, nats in zip(places, own, strict=True):
                shares[j] += part * nats
        for i, weight in enumerate(traits):
            of_traits[i] += part * parts.trait_coefficient * weight / TRAIT_SCALE
    return {key: nats for key, nats in constants.items() if nats}, shares + of_traits
