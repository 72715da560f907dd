"""The labelled messages of a test: a corpus, mislabelled and doubtful labels, duplicates, folds.

Typing mistakes are left out of a test: one `hma` among a thousand `ham` and `spam` is not a class,
and a model trained on the others does not have it.  Other labels may look wrong to a model that has
not seen the message; these are reported, and get little weight when a model is fitted to them.

Test messages that were learned before make the figures too good.  A message is identified by its
digest, made from its Message-ID and everything that is counted (`tokens/tokenized.py`).  Two texts
with the same tokens are one message; two mails with the same text are two, unless their Message-ID
is the same.
"""

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from nbspam import names as naming
from nbspam.bayes.fitting import wrong_labels
from nbspam.bayes.matrix import Integers
from nbspam.errors import OptionError, Remedy, SourceError, one_line
from nbspam.learning.corpus import Corpus
from nbspam.learning.settings import TrainingSettings
from nbspam.learning.training import TrainingRun
from nbspam.names import FEW, HAM, SPAM, TIMES_LARGER, binary_label, doubt_words, rare_classes
from nbspam.store.metadata import ModelSettings
from nbspam.tokens.tokenized import TOKENS_ALONE, Excerpt, TokenizedMessage, Wanted

_SHOWN = 20  # labels in an error
_NAMED, LISTED = 3, 100  # messages whose labels look wrong: in the text, in JSON


@dataclass(frozen=True)
class LabelledCorpus:
    """Messages to train and test on: the matrix, and where each message came from."""

    corpus: Corpus
    sources: list[str] = field(default_factory=list)
    excerpts: list[Excerpt] = field(default_factory=list)  # of each message, where wanted

    @classmethod
    def of(
        cls, messages: Iterable[TokenizedMessage], wanted: Wanted = TOKENS_ALONE
    ) -> "LabelledCorpus":
        """Return the messages as a corpus; wanted: the numbers that models are to count."""
        dataset = cls(Corpus(wanted))
        for message in messages:
            dataset.corpus.add(message)
            dataset.sources.append(message.source)
            if message.excerpt is not None:
                dataset.excerpts.append(message.excerpt)
        return dataset

    @classmethod
    def of_pieces(cls, run: TrainingRun, wanted: Wanted) -> "LabelledCorpus":
        """Return the messages that a run has read; wanted: as they were read."""
        dataset = cls(Corpus(wanted._replace(excerpt=0)))
        for record, piece in zip(run.records, run.pieces(), strict=True):
            dataset.corpus.add_piece(piece)
            dataset.sources.extend(piece.sources)
            dataset.excerpts.extend(record.summary.excerpts)
        return dataset

    @cached_property
    def vocabulary(self) -> list[str]:
        """The tokens, in the order of the matrix's columns; asked for when all are read."""
        return self.corpus.vocabulary

    def excerpt(self, i: int) -> Excerpt | None:
        """Return what is shown of message i, if that was wanted."""
        return self.excerpts[i] if self.excerpts else None

    def message(self, i: int) -> TokenizedMessage:
        """Return message i."""
        message = self.corpus.message(i, self.vocabulary, self.sources[i])
        return message._replace(excerpt=self.excerpt(i))

    def without_mislabelled(
        self, positive: str | None = None
    ) -> "tuple[LabelledCorpus, Mislabelled]":
        """Return the corpus without probably mislabelled messages, and those messages.

        positive: a class that is never a mistake.
        """
        labels, intended = self.corpus.labels, {HAM, SPAM, positive}
        rare = [name for name in rare_classes(Counter(labels)) if name not in intended]
        if not rare:
            return self, Mislabelled()
        left_out: dict[str, list[str]] = {name: [] for name in rare}
        for label, source in zip(labels, self.sources, strict=True):
            if label in left_out:
                left_out[label].append(source)
        others = (self.message(i) for i, label in enumerate(labels) if label not in left_out)
        return LabelledCorpus.of(others, self.corpus.wanted), Mislabelled.of(left_out, self.sources)

    def for_model(self, settings: TrainingSettings) -> "LabelledCorpus":
        """Return the same messages with the numbers that such a model counts, and no others."""
        if settings.wanted.times or not self.corpus.wanted.times:
            return self
        return LabelledCorpus(self.corpus.without_times(), self.sources, self.excerpts)


# Labels that are probably mistakes


class Mislabelled(NamedTuple):
    """The messages that are left out."""

    sources: Mapping[str, list[str]] = MappingProxyType({})  # label -> where its messages are
    is_first_row: bool = False  # whether it is the first row of a table alone: a header, perhaps

    @classmethod
    def of(cls, left_out: dict[str, list[str]], others: Iterable[str]) -> "Mislabelled":
        """Return the messages with these labels.  others: sources of others."""
        sources = [*itertools.chain(*left_out.values())]
        return cls(left_out, bool(sources) and naming.is_first_row(sources, others))

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


class LabelCheck:
    """Passes on messages whose label is a class of the model, and counts the others.

    A spam label stands for the model's positive class, and every other label for the negative one.
    """

    def __init__(self, settings: ModelSettings, spam_label: str | None) -> None:
        """Raise OptionError for a spam label and a model of three or more classes."""
        self._settings, self._spam_label = settings, spam_label
        self._sizes = Counter[str]()
        self._first = defaultdict[str, list[str]](list)  # label -> its first sources
        self._second_rows = set[str]()
        if spam_label is not None and len(settings.classes) > 2:
            raise OptionError(
                f"a spam label needs a model of two classes, and this one has"
                f" {', '.join(settings.classes)}; label the messages with those, and leave the spam"
                " label out"
            )

    def __call__(self, messages: Iterable[TokenizedMessage]) -> Iterator[TokenizedMessage]:
        """Yield the messages to test on; raises SourceError for too many of another class."""
        classes, positive = self._settings.classes, self._settings.positive_index or 0
        spam = {classes[positive], self._spam_label}
        for message in messages:
            label = message.label or ""
            if self._spam_label is None and len(classes) == 2 and label not in classes:
                # A model of ham and spam is tested on labels 0 and 1, and the other way round.
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
                raise self._unknown(label)

    def result(self) -> Mislabelled:
        """Return the mislabelled messages to leave out.

        Raises SourceError for a label outside the model's classes.  With a spam label the
        mislabelled messages were passed on.
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
                labels = ", ".join(map(repr, list(self._sizes)[:_SHOWN]))
                raise OptionError(
                    f"no message is labelled {self._spam_label!r}; name one of {labels}"
                )
            intended = {HAM, SPAM, *settings.classes, self._spam_label}
            rare = [label for label in rare_classes(self._sizes) if label not in intended]
        return Mislabelled.of({label: self._first[label] for label in rare}, self._second_rows)

    def _unknown(self, label: str) -> SourceError:
        classes = self._settings.classes
        return SourceError(
            f"{self._first[label][0]}: is labelled {label!r}, and the model's classes are"
            f" {', '.join(classes)}",
            Remedy.NAME_SPAM_OR_COLUMN if len(classes) == 2 else Remedy.NAME_LABEL_COLUMN,
        )


class DoubtedLabels(NamedTuple):
    """The labels that look wrong to a model that has not seen the messages."""

    # Label -> how many of its messages look like another class, and how many it has.
    by_label: Mapping[str, tuple[float, int]] = MappingProxyType({})
    messages: tuple[int, ...] = ()  # which are more likely wrong than right, the worst first

    def sentence(self, names: Sequence[tuple[str, str]]) -> str:
        """Return a sentence about them, empty if there are none.

        names: source and label of the worst ones.
        """
        if not self.messages:
            return ""
        examples = [f"{one_line(source)} ({label})" for source, label in names[:_NAMED]]
        if more := len(self.messages) - len(examples):
            examples.append(f"and {more:,} more")
        unseen = "to a model that had not seen them"
        return f"{doubt_words(self.by_label)} {unseen}: {', '.join(examples)}"

    @property
    def shares(self) -> dict[str, float]:
        """The share of each label's messages that look like another class."""
        return {label: wrong / max(1, n) for label, (wrong, n) in self.by_label.items()}

    def as_json(self, names: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
        """Return sources and labels of the worst ones."""
        return [{"source": source, "label": label} for source, label in names[:LISTED]]


def doubted_labels(
    odds: Sequence[float], labels: Sequence[str], positive: str | None
) -> DoubtedLabels:
    """Return the labels that look wrong, by EM for their shares alone (`bayes/calibration.py`).

    odds: of each message, the calibrated log-odds of the class that it is labelled as, in nats, of
    a model that has not seen it.
    """
    z, names = np.asarray(odds, dtype=float), np.array(labels)
    classes, n = np.unique(names, return_counts=True)
    p_wrong = wrong_labels(z, names == positive if len(classes) == 2 else None)
    wrong = np.flatnonzero(p_wrong > 0.5)
    if len(wrong) < 2:  # one may be a hard message: of sample_data's 304 the hardest would be named
        p_wrong, wrong = np.zeros(len(z)), wrong[:0]
    sums = [float(p_wrong[names == label].sum()) for label in classes]
    by_label = dict(zip(classes.tolist(), zip(sums, n.tolist(), strict=True), strict=True))
    return DoubtedLabels(by_label, tuple(wrong[np.argsort(z[wrong], kind="stable")].tolist()))


# Messages that were learned before


class LearnedBefore(NamedTuple):
    """How many of the messages a saved model had learned before, by its ledger."""

    read: int
    learned: int | None  # None: the ledger names no message, so it cannot be known
    left_out: int  # of the learned
    unnamed: int  # messages that the model learned and its ledger does not name


# How many test messages are the same as a training message; None without digests.


def same_in_batches(digests: Sequence[bytes], first: int, batch: int | None = None) -> int | None:
    """Return how many messages are the same as one of an earlier batch; the first trains alone.

    batch: how many are the later ones; None: all that are left.
    """
    if not digests:
        return None
    _, first_at, index = np.unique(digests, return_index=True, return_inverse=True)
    batch_of = np.maximum(0, (np.arange(len(digests)) - first) // (batch or len(digests)) + 1)
    return int((batch_of[first_at[index]] < batch_of).sum())


def same_in_folds(digests: Sequence[bytes], fold: Iterable[int]) -> int | None:
    """Return how many messages are the same as one of another fold."""
    pairs = list(zip(digests, fold, strict=False))
    times, in_fold = Counter(digests), Counter(pairs)
    return sum(times[pair[0]] > in_fold[pair] for pair in pairs) if digests else None


def stratified_folds(labels: Sequence[str], k: int, seed: int | None = None) -> Integers:
    """Return the fold of each message, 0 to k - 1: (n,).

    The messages of each class go to the folds in turn: in their order, or with a seed shuffled.
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
