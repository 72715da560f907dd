"""The terms that a score is the sum of."""

from typing import NamedTuple

# What a constant term is, by its key in the JSON of `explain`.
BIAS = "bias"  # the sum rule: the absence of every token, and the prior
CALIBRATION = "calibration"  # the calibration's constant: any message
LENGTH = "length"  # the calibration of the number of known tokens
PRIOR = "prior"  # the difference between a fixed prior and the share learned
OTHER_CLASSES = "other_classes"  # three or more classes: what the others' scores take away


class Terms(NamedTuple):
    """The terms of a message's log-odds, in nats; constants and shares add up to it."""

    against: str  # the class that the log-odds compare it with, or "the rest"
    constants: dict[str, float]
    weights: list[float]  # of each token, by itself
    shares: list[float]  # what each token adds to the sum


THE_REST = "the rest"
