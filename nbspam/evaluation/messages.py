"""The labelled messages of a test: a corpus, mislabelled and suspect labels, duplicates, folds.

Typing mistakes are left out of a test: a single `hma` among a thousand `ham` and `spam` is not a
class, and a model trained on the other messages does not have such a class.  Other labels may look
wrong to a model that has not seen the message; these are reported, and get little weight when a
model is fitted.

Test messages that were learned before make the figures too good.  A message is identified by its
digest (`tokens/tokenized.py`).  Two texts with the same tokens count as the same message.  Two
mails with the same text count as different, unless Message-ID, time and Subject are the same.
"""

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from nbspam import names as naming
from nbspam.bayes.fitting import wrong_labels
from nbspam.bayes.matrix import Integers
from nbspam.errors import OptionError, Remedy, SourceError, one_line
from nbspam.learning.corpus import Corpus
from nbspam.learning.settings import TrainingSettings
from nbspam.names import FEW, HAM, SPAM, TIMES_LARGER, binary_label, doubt_words, rare_classes
from nbspam.store.metadata import ModelSettings
from nbspam.tokens.tokenized import TokenizedMessage

_MAX_LABELS_NAMED = 20  # labels named in an error
_MAX_EXAMPLES, MAX_SUSPECTS_LISTED = 3, 100  # messages with suspect labels, in the text and in JSON


def without_mislabelled(
    corpus: Corpus, positive: str | None = None
) -> "tuple[Corpus, Mislabelled]":
    """Split off the messages that are probably mislabelled.

    positive: a class that is never a mistake.
    """
    left_out = corpus.mistyped([positive])
    others = corpus.without(left_out) if left_out else corpus
    return others, Mislabelled.from_sources(left_out, corpus.sources)


def for_model(corpus: Corpus, settings: TrainingSettings) -> Corpus:
    """Drop the occurrences of tokens, unless a model with these settings counts them."""
    if settings.outputs.times or not corpus.outputs.times:
        return corpus
    return corpus.without_times()


# Labels that are probably mistakes


class Mislabelled(NamedTuple):
    """The messages that are left out."""

    sources: Mapping[str, list[str]] = MappingProxyType({})  # label -> sources of its messages
    # whether a single message is left out, and is the first row of a table, possibly a header
    is_first_row: bool = False

    @classmethod
    def from_sources(cls, left_out: dict[str, list[str]], others: Iterable[str]) -> "Mislabelled":
        """left_out: label -> sources of its messages.  others: sources of the other messages."""
        sources = [*itertools.chain(*left_out.values())]
        return cls(left_out, bool(sources) and naming.is_first_row(sources, others))

    @property
    def messages(self) -> int:
        """How many messages are left out."""
        return sum(map(len, self.sources.values()))

    def check(self) -> None:
        """Raise SourceError if a message is left out."""
        for label, (source, *_) in self.sources.items():
            raise SourceError(
                f"{source}: is labelled {label!r}, which is probably a mistake",
                Remedy.LEAVE_OUT_STRICT,
            )


class LabelCheck:
    """Passes on messages whose label is a class of the model, and counts the others.

    With a spam label, that label means the model's positive class, and every other label means the
    negative class.
    """

    def __init__(self, settings: ModelSettings, spam_label: str | None) -> None:
        """Raises OptionError for a spam label and a model of three or more classes."""
        self._settings, self._spam_label = settings, spam_label
        self._sizes = Counter[str]()
        self._first = defaultdict[str, list[str]](list)  # label -> its first sources, FEW at most
        self._second_rows = set[str]()
        if spam_label is not None and len(settings.classes) > 2:
            raise OptionError(
                f"a spam label needs a model of two classes, and this one has"
                f" {', '.join(settings.classes)}; label the messages with those, and leave the spam"
                " label out"
            )

    def __call__(self, messages: Iterable[TokenizedMessage]) -> Iterator[TokenizedMessage]:
        """Yield the messages to test on; raises SourceError if an unknown label is frequent."""
        classes, positive = self._settings.classes, self._settings.positive_index or 0
        spam = {classes[positive], self._spam_label}
        for message in messages:
            label = message.label or ""
            if self._spam_label is None and len(classes) == 2 and label not in classes:
                # A model of the classes ham and spam accepts the labels 0 and 1; a model of 0 and 1
                # accepts ham and spam.
                meant = [name for name in classes if binary_label(name) == binary_label(label)]
                label = meant[0] if meant else label
                message = message._replace(label=label)
            self._sizes[label] += 1
            if self._sizes[label] <= FEW:
                self._first[label].append(message.source)
            if message.source.endswith(":2"):
                self._second_rows.add(message.source)
            if self._spam_label is not None:
                yield message._replace(label=classes[positive if label in spam else 1 - positive])
            elif label in classes:
                yield message
            elif self._sizes[label] > FEW:
                raise self._unknown_label_error(label)

    def result(self) -> Mislabelled:
        """Return the mislabelled messages to leave out.

        With a spam label, `__call__` has yielded these messages all the same.
        Raises SourceError for a label outside the model's classes.
        """
        settings = self._settings
        if self._spam_label is None:
            rare = [label for label in self._sizes if label not in settings.classes]
            known = sum(self._sizes[name] for name in settings.classes)
            for label in rare:
                if TIMES_LARGER * self._sizes[label] > known:
                    raise self._unknown_label_error(label)
        else:
            spam = {self._spam_label, settings.positive}
            if self._sizes and not spam & self._sizes.keys():
                labels = ", ".join(map(repr, list(self._sizes)[:_MAX_LABELS_NAMED]))
                raise OptionError(
                    f"no message is labelled {self._spam_label!r}; name one of {labels}"
                )
            intended = {HAM, SPAM, *settings.classes, self._spam_label}
            rare = [label for label in rare_classes(self._sizes) if label not in intended]
        left_out = {label: self._first[label] for label in rare}
        return Mislabelled.from_sources(left_out, self._second_rows)

    def _unknown_label_error(self, label: str) -> SourceError:
        classes = self._settings.classes
        return SourceError(
            f"{self._first[label][0]}: is labelled {label!r}, and the model's classes are"
            f" {', '.join(classes)}",
            Remedy.NAME_SPAM_OR_COLUMN if len(classes) == 2 else Remedy.NAME_LABEL_COLUMN,
        )


class SuspectLabels(NamedTuple):
    """The labels that look wrong to a model that has not seen the messages."""

    # Label -> how many of its messages look like another class, and how many messages it has.
    by_label: Mapping[str, tuple[float, int]] = MappingProxyType({})
    messages: tuple[int, ...] = ()  # indices of labels more likely wrong than right, worst first

    def sentence(self, names: Sequence[tuple[str, str]]) -> str:
        """Describe the suspect labels; empty without any.

        names: source and label of the worst messages.
        """
        if not self.messages:
            return ""
        examples = [f"{one_line(source)} ({label})" for source, label in names[:_MAX_EXAMPLES]]
        if more := len(self.messages) - len(examples):
            examples.append(f"and {more:,} more")
        unseen = "to a model that had not seen them"
        return f"{doubt_words(self.by_label)} {unseen}: {', '.join(examples)}"

    @property
    def shares(self) -> dict[str, float]:
        """The share of each label's messages that look like another class."""
        return {label: wrong / max(1, n) for label, (wrong, n) in self.by_label.items()}

    def as_json(self, names: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
        """Return sources and labels of the worst messages."""
        return [{"source": source, "label": label} for source, label in names[:MAX_SUSPECTS_LISTED]]


def find_suspect_labels(
    odds: Sequence[float], labels: Sequence[str], positive: str | None
) -> SuspectLabels:
    """Find the labels that look wrong.

    EM estimates the share of wrong labels, and fits nothing else (`bayes/fitting.py`).

    odds: the calibrated log-odds of each message's label, in nats, by a model that has not seen the
    message.
    """
    z, names = np.asarray(odds, dtype=float), np.array(labels)
    classes, n = np.unique(names, return_counts=True)
    p_wrong = wrong_labels(z, names == positive if len(classes) == 2 else None)
    wrong = np.flatnonzero(p_wrong > 0.5)
    # A single suspect label may be right and the message hard to classify, like one of
    # sample_data's 304 messages.
    if len(wrong) < 2:
        p_wrong, wrong = np.zeros(len(z)), wrong[:0]
    sums = [float(p_wrong[names == label].sum()) for label in classes]
    by_label = dict(zip(classes.tolist(), zip(sums, n.tolist(), strict=True), strict=True))
    return SuspectLabels(by_label, tuple(wrong[np.argsort(z[wrong], kind="stable")].tolist()))


# Messages that were learned before


class LearnedBefore(NamedTuple):
    """How many of the messages a saved model had learned before, by its ledger."""

    read: int
    learned: int | None  # None if unknown, because the ledger is empty
    left_out: int  # learned messages that are not tested
    not_in_ledger: int  # messages that the model learned and its ledger does not name


# Duplicates: test messages that are the same as a training message; counts are None without digests


def duplicates_across_batches(
    digests: Sequence[bytes], first: int, batch: int | None = None
) -> int | None:
    """Count the messages that are the same as a message of an earlier batch.

    first: the size of the first batch.  batch: the size of the other batches; None: all other
    messages are one batch.
    """
    if not digests:
        return None
    _, first_at, index = np.unique(digests, return_index=True, return_inverse=True)
    batch_index = np.maximum(0, (np.arange(len(digests)) - first) // (batch or len(digests)) + 1)
    return int((batch_index[first_at[index]] < batch_index).sum())


def duplicates_across_folds(digests: Sequence[bytes], fold: Iterable[int]) -> int | None:
    """Count the messages that are the same as a message of another fold."""
    pairs = list(zip(digests, fold, strict=False))
    times, in_fold = Counter(digests), Counter(pairs)
    return sum(times[pair[0]] > in_fold[pair] for pair in pairs) if digests else None


def stratified_folds(labels: Sequence[str], k: int, seed: int | None = None) -> Integers:
    """Return the fold of each message, 0 to k - 1: (n,).

    The messages of each class are dealt to the folds in turn, in their order, or shuffled if there
    is a seed.
    """
    chance = None if seed is None else np.random.default_rng(seed)
    names = np.array(labels)
    fold = np.empty(len(names), dtype=np.int64)
    for name in np.unique(names):
        members = np.flatnonzero(names == name)
        if chance is not None:
            members = chance.permutation(members)
        fold[members] = np.arange(len(members)) % k
    return fold
