"""What the user may choose about learning, and the model that has learned nothing yet."""

from collections.abc import Iterable
from typing import NamedTuple

from nbspam.bayes.calibration import untrained
from nbspam.errors import TrainingError
from nbspam.labels import HAM, SPAM, UNSURE
from nbspam.store.metadata import BERNOULLI, DEFAULT, EVIDENCE, Metadata, with_bias

# Plain Bernoulli: chosen on the training half of P1 by leave-one-out, 10 errors of 1,674 against 18
# and 34 for 0.3 and 1.  Evidence: docs/how-it-decides.md.
DEFAULT_ALPHA = {BERNOULLI: 0.1, EVIDENCE: 0.05}
CLASSES_LIMIT = 100  # more are texts taken for labels, and time and memory grow with each


class Settings(NamedTuple):
    """What the user may choose about learning."""

    alpha: float | None = None  # None: the scoring's default
    prior: float | None = None
    scoring: str = EVIDENCE
    positive: str | None = None  # the class to call spam, where none is called so

    @property
    def effective_alpha(self) -> float:
        """The alpha to use."""
        return DEFAULT_ALPHA[self.scoring] if self.alpha is None else self.alpha


def class_names(labels: Iterable[str], positive: str | None) -> tuple[tuple[str, ...], str | None]:
    """Return the classes in their order, and the positive one; raises TrainingError.

    The order is the alphabet's, with the positive class last of two: index 1 is spam.
    """
    classes = sorted(set(labels))
    if positive is None and SPAM in classes:
        positive = SPAM
    if len(classes) < 2:
        only = f"only the class {classes[0]!r}" if classes else "no message"
        raise TrainingError(f"there is {only} to learn from; give messages of two classes")
    if UNSURE in classes:
        raise TrainingError(f"a class cannot be called {UNSURE!r}, which is a verdict; rename it")
    if len(classes) > CLASSES_LIMIT:
        raise TrainingError(
            f"there are {len(classes)} different labels, {classes[0][:40]!r} among them, and"
            f" {CLASSES_LIMIT} classes at most; name the column of the labels with --label-column"
        )
    shown = ", ".join(map(repr, classes[:20]))
    if positive is not None and positive not in classes:
        raise TrainingError(f"no message is labelled {positive!r}; name one of {shown}")
    if positive is None and len(classes) == 2:
        raise TrainingError(
            f"neither {classes[0]!r} nor {classes[1]!r} is called spam; say which one is with"
            " --spam-label"
        )
    if len(classes) == 2:
        classes.sort(key=lambda name: name == positive)
    return tuple(classes), positive


def first_classes(labels: Iterable[str], settings: Settings) -> tuple[tuple[str, ...], str | None]:
    """Return the classes and the positive one of a model that begins with these labels.

    One label is enough for a beginning: the others are ham and spam.  Raises TrainingError.
    """
    names = set(labels)
    if len(names | {settings.positive} - {None}) < 2:
        names |= {HAM, settings.positive or SPAM}
    elif settings.positive is not None:
        names.add(settings.positive)
    return class_names(names, settings.positive)


def empty_metadata(classes: tuple[str, ...], positive: str | None, settings: Settings) -> Metadata:
    """Return the head of a model of these classes that has learned nothing yet."""
    return with_bias(
        Metadata(
            classes=classes,
            messages=(0,) * len(classes),
            alpha=settings.effective_alpha,
            prior=settings.prior,
            positive=positive,
            scoring=settings.scoring,
            calibrations=(untrained(),) * (1 if len(classes) == 2 else len(classes)),
            calibrated_by=DEFAULT,
            spam_cutoff=0.5,
            n_tokens=0,
            count_histograms=tuple({} for _ in classes),
            bias=(),
        )
    )
