"""Labels that are probably mistakes.

Typing mistakes are left out of a test: one `hma` among a thousand `ham` and `spam` is no class, and
a model trained on the others does not have it.  Of the other labels some look wrong to a model that
has not seen the message; those are named, and count for little when a model is fitted.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from nbspam.bayes.evidence_matrix import label_noise
from nbspam.bayes.posterior import odds_of_class
from nbspam.errors import OptionError, Remedy, SourceError, one_line
from nbspam.labels import FEW, HAM, SPAM, TIMES_LARGER, rare_classes
from nbspam.scoring.verdict import Verdict
from nbspam.store.metadata import ModelSettings
from nbspam.tokens.tokenized import TokenizedMessage

_SHOWN = 20  # labels in an error
_NAMED, LISTED = 3, 100  # messages whose labels look wrong: in the text, in JSON


class Mislabelled(NamedTuple):
    """The messages that are left out."""

    sources: Mapping[str, list[str]] = MappingProxyType({})  # label -> where its messages are
    is_first_row: bool = False  # whether it is the first row of a table alone: a header, perhaps

    @property
    def messages(self) -> int:
        """How many messages are left out."""
        return sum(map(len, self.sources.values()))

    def check(self) -> None:
        """Raise SourceError if there is one."""
        for label, (source, *_) in self.sources.items():
            raise SourceError(
                f"{source}: is labelled {label!r}, which is probably a mistake",
                Remedy.LEAVE_OUT_STRICT,
            )


def mislabelled(
    labels: Sequence[str], sources: Sequence[str], positive: str | None = None
) -> Mislabelled:
    """Return which of some messages are probably mislabelled.

    labels, sources: of each message.  positive: a class that is none of them.
    """
    meant = {HAM, SPAM, positive}
    rare = [name for name in rare_classes(Counter(labels)) if name not in meant]
    left_out: dict[str, list[str]] = {name: [] for name in rare}
    for label, source in zip(labels, sources, strict=True) if rare else ():
        if label in left_out:
            left_out[label].append(source)
    return Mislabelled(left_out, _is_first_row(left_out, sources))


def _is_first_row(left_out: dict[str, list[str]], kept: Iterable[str]) -> bool:
    [source, *more] = [source for several in left_out.values() for source in several] or [""]
    table, _, row = source.rpartition(":")
    return not more and row == "1" and any(name.startswith(f"{table}:2") for name in kept)


class LabelCheck:
    """Passes the messages on whose labels are classes of a model, and keeps count of the others.

    With a spam label the model's positive class is meant by it, and the other by any other label.
    """

    def __init__(self, settings: ModelSettings, spam_label: str | None) -> None:
        """Raises OptionError for a model that a spam label cannot be for."""
        self._settings, self._spam_label = settings, spam_label
        self._sizes: Counter[str] = Counter()
        self._first: dict[str, list[str]] = {}  # label -> its first sources
        self._second_rows: set[str] = set()
        if spam_label is not None and (len(settings.classes) > 2 or settings.positive is None):
            raise OptionError(
                f"a spam label is for a model of two classes, and this one has"
                f" {', '.join(settings.classes)}; label the messages with those, and leave the spam"
                " label out"
            )

    def __call__(self, messages: Iterable[TokenizedMessage]) -> Iterator[TokenizedMessage]:
        """Yield the messages to test on; raises SourceError for too many of another class."""
        classes = self._settings.classes
        for message in messages:
            label = message.label or ""
            self._sizes[label] += 1
            if self._sizes[label] <= FEW:
                self._first.setdefault(label, []).append(message.source)
            if message.source.endswith(":2"):
                self._second_rows.add(message.source)
            if self._spam_label is not None:
                yield message._replace(label=self._meant(label))
            elif label in classes:
                yield message
            elif self._sizes[label] > FEW:
                raise self._unknown(label)

    def result(self) -> Mislabelled:
        """Return what is not to be counted; raises SourceError for a label that is no mistake.

        With a spam label those messages were passed on.
        """
        settings = self._settings
        if self._spam_label is None:
            rare = [label for label in self._sizes if label not in settings.classes]
            known = sum(self._sizes[name] for name in settings.classes)
            for label in rare:
                if TIMES_LARGER * self._sizes[label] > known:
                    raise self._unknown(label)
        else:
            spam = {self._spam_label, settings.positive}
            if self._sizes and not spam & self._sizes.keys():
                shown = ", ".join(map(repr, list(self._sizes)[:_SHOWN]))
                raise OptionError(
                    f"no message is labelled {self._spam_label!r}; name one of {shown}"
                )
            meant = {HAM, SPAM, *settings.classes, self._spam_label}
            rare = [label for label in rare_classes(self._sizes) if label not in meant]
        left_out = {label: self._first[label] for label in rare}
        return Mislabelled(left_out, _is_first_row(left_out, self._second_rows))

    def _meant(self, label: str) -> str:
        """Return the class of the model that a label means."""
        positive = self._settings.positive or ""
        (other,) = set(self._settings.classes) - {positive}
        return positive if label in (positive, self._spam_label) else other

    def _unknown(self, label: str) -> SourceError:
        classes = self._settings.classes
        is_two = len(classes) == 2 and self._settings.positive is not None
        return SourceError(
            f"{self._first[label][0]}: is labelled {label!r}, and the model's classes are"
            f" {', '.join(classes)}",
            Remedy.NAME_SPAM_OR_COLUMN if is_two else Remedy.NAME_LABEL_COLUMN,
        )


class DoubtedLabels(NamedTuple):
    """What labels of messages look wrong to a model that has not seen the messages."""

    share: float = 0.0  # of the labels that look wrong, 0 to 1; 0: no more than chance explains
    messages: tuple[int, ...] = ()  # which are more likely wrong than right, the worst first

    def sentence(self, names: Sequence[tuple[str, str]]) -> str:
        """Return what to say of them; empty if there is nothing.

        names: source and label of the first ones.
        """
        if not self.messages:
            return ""
        named = [f"{one_line(source)} ({label})" for source, label in names[:_NAMED]]
        more = len(self.messages) - len(named)
        if more:
            named.append(f"and {more:,} more")
        return (
            f"about {100 * self.share:.2g} % of the labels look wrong, and count for little:"
            f" {', '.join(named)}"
        )

    def as_json(self, names: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
        """Return where the worst of them are."""
        return [{"source": source, "label": label} for source, label in names[:LISTED]]


def doubted_labels(odds: Sequence[float]) -> DoubtedLabels:
    """Return what labels look wrong, by EM for their share alone (`bayes/calibration.py`).

    odds: of each message, the calibrated log-odds of the class that it is labelled as, in nats, of
    a model that has not seen it.
    """
    z = np.asarray(odds, dtype=float)
    share = label_noise(z)
    if not share:
        return DoubtedLabels()
    wrong = np.flatnonzero(z < np.log(share / (1 - share)))  # there w is below 1/2
    worst = wrong[np.argsort(z[wrong], kind="stable")]
    # One may be a hard message: of sample_data's 304, the hardest would be named.
    return DoubtedLabels(share, tuple(worst.tolist())) if len(wrong) > 1 else DoubtedLabels()


def odds_of_label(judged: Verdict, label: str) -> float:
    """Return the log-odds of the class that a message is labelled as, in nats."""
    classes = tuple(judged.probabilities)
    if len(classes) == 2:
        return judged.log_odds if label == classes[1] else -judged.log_odds
    return odds_of_class(judged.score.log_scores, classes.index(label))
