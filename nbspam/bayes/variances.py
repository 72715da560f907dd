"""How the variances of Gaussian traits are estimated; the formulas are in `gaussian.py`."""

from typing import NamedTuple

SMOOTHING = 1e-9  # as scikit-learn's GaussianNB has it


class Variances(NamedTuple):
    """What is added to the variances of the classes, and whether they are one."""

    smoothing: float = SMOOTHING  # of the largest variance: what is added to each
    prior: float = 0.0  # messages: the weight of the trait's variance over all classes
    shared: bool = False  # one variance of each trait for all classes
