"""Learning into a model file, and forgetting: message by message, each once, with nothing lost.

The messages are tokenized before the model is locked; under the lock only the lines that change are
read, and the file is written around them.  Standard library only.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nbspam.bayes.token_weight import Row
from nbspam.errors import ModelError, Remedy
from nbspam.learning.corpus import Corpus
from nbspam.learning.ledger import moves
from nbspam.learning.online import OnlineLearner
from nbspam.learning.settings import TrainingSettings, first_metadata
from nbspam.scoring.verdict import CutOffs
from nbspam.store.atomic_write import write_atomically
from nbspam.store.lock import DEFAULT_WAIT, LockWait, locked
from nbspam.store.lookup import Lookup
from nbspam.store.metadata import Metadata
from nbspam.store.model_file import Model
from nbspam.store.splice import splice
from nbspam.tokens.tokenized import TOKENS_ALONE, TokenizedMessage, Wanted

if TYPE_CHECKING:
    from nbspam.scoring.base import Base

_BATCH = 500  # messages looked up in the ledger at a time


class Change(NamedTuple):
    """What a command did to a model, in messages."""

    learned: int = 0  # that the model had not seen
    moved: int = 0  # from one class to another
    forgotten: int = 0
    unchanged: int = 0  # already known; or to be forgotten, but never learned


class PendingMessages:
    """Messages to learn: how often each was found, and the tokens of those not known yet."""

    def __init__(self, wanted: Wanted = TOKENS_ALONE) -> None:
        """wanted: the numbers that the model counts beside their tokens."""
        self.found: Counter[tuple[str, str]] = Counter()  # (digest, label) -> times
        self.corpus = Corpus(wanted)

    def read(
        self,
        path: Path,
        messages: Iterable[TokenizedMessage],
        remember: bool,
        batch: int = _BATCH,
    ) -> None:
        """Take in messages with digests.

        A message that the model at `path` has learned as often as it was found is only counted, so
        memory grows with what is new.  remember: False learns them all.
        Raises ModelError when the model is damaged.
        """
        if not remember or not path.exists():
            self.add(messages)
            return
        with Lookup(path) as lookup:
            number = {name: k for k, name in enumerate(lookup.metadata.settings.classes)}
            for some in _batches(messages, batch):
                learned = lookup.learned(message.digest for message in some)
                for message in some:
                    row = learned.get(message.digest)
                    k = number.get(message.label or "")
                    self._add(message, row[k] if row and k is not None else 0)

    def add(self, messages: Iterable[TokenizedMessage]) -> None:
        """Take in messages with digests without looking them up in a model."""
        for message in messages:
            self._add(message, 0)

    def _add(self, message: TokenizedMessage, known: int) -> None:
        key = message.digest, message.label or ""
        self.found[key] += 1
        if self.found[key] > known:
            self.corpus.add(message)


def _batches(messages: Iterable[TokenizedMessage], size: int) -> Iterator[list[TokenizedMessage]]:
    messages = iter(messages)
    while batch := list(itertools.islice(messages, size)):
        yield batch


def _learn_all(
    path: Path,
    learner: OnlineLearner,
    pending: PendingMessages,
    known: Mapping[str, Row],
    remember: bool,
) -> tuple[Change, dict[str, Row]]:
    """Learn every message, then let each refine the calibration; return the ledger's new rows, too.

    The messages come in the order of their digests, which is effectively random: a folder of spam
    after one of ham would push the calibration to and fro.
    path: the model's name in errors.  known: the ledger's rows of the pending messages.
    """
    classes, found = learner.metadata.settings.classes, pending.found
    rows: dict[str, Row] = {}
    taught: list[list[int]] = []  # per message: the classes that learned it
    new = moved = 0
    for message in pending.corpus.messages():
        digest = message.digest
        row = list(rows.get(digest) or known.get(digest, (0,) * len(classes)))
        steps: list[tuple[int | None, int]] = [(None, classes.index(message.label or ""))]
        if remember:  # all occurrences of a digest are learned at once
            steps = moves(tuple(row), [found[digest, name] for name in classes])
        for source, target in steps:
            if source is not None:
                row[source] -= 1
                _unlearn(path, learner, classes[source], message)
            learner.learn(classes[target], message.tokens, message.numbers)
            row[target] += 1
            new += source is None
            moved += source is not None
        if steps and remember:
            rows[digest] = tuple(row)
        taught.append([target for _, target in steps])
    for message, targets in zip(pending.corpus.messages(), taught, strict=True):
        for target in targets:
            digest = message.digest if remember else ""
            learner.refine(classes[target], message.tokens, message.numbers, digest)
    return Change(new, moved, 0, found.total() - new - moved), rows


def learn(
    path: Path,
    pending: PendingMessages,
    settings: TrainingSettings,
    remember: bool = True,
    wait: LockWait = DEFAULT_WAIT,
) -> Change:
    """Learn messages into the model at `path`; creates it if there is none.

    Each message is brought up to the number of times it was found, never above, and moved from the
    class that it was learned in before.  It is scored as if it had not been learned, and the score
    refines the calibration.
    settings: for a new model; an old one is read through their base, too.
    remember: False learns all as new, and does not use the ledger.
    wait: how long to wait for the model's lock.
    Raises ModelError: the model is damaged, has other classes, is locked or cannot be written.
    """
    with locked(path, wait) as place:
        if not place.exists():
            change, model = learn_in_memory(path, None, pending, settings, remember)
            write_atomically(place, model.write)
            return change
        with Lookup(place) as old:
            _check_classes(path, old.metadata, {label for _, label in pending.found})
            _check_numbers(path, old.metadata, pending.corpus)
            before = old.counts(pending.corpus.vocabulary)
            known = old.learned({digest for digest, _ in pending.found}) if remember else {}
            learner = _learner(path, old.metadata, before, settings.base)
            change, rows = _learn_all(path, learner, pending, known, remember)
            if change.learned or change.moved:
                _save(place, old, learner, before, rows)
            return change


def _learner(
    path: Path, metadata: Metadata, counts: Mapping[str, Row], base: "Base | None"
) -> OnlineLearner:
    if base is not None:
        base.check(path, metadata.settings)
    return OnlineLearner(metadata, dict(counts), base)


def learn_in_memory(
    path: Path,
    model: Model | None,
    pending: PendingMessages,
    settings: TrainingSettings,
    remember: bool = True,
) -> tuple[Change, Model]:
    """Do what `learn` does with a model in memory; return what it did, and the model after it.

    path: the model's name in errors.  model: None for a new one; it stays as it is.
    """
    if model is None:
        labels = {label for _, label in pending.found}
        model = Model(first_metadata(labels, settings), {}, {})
    _check_classes(path, model.metadata, {label for _, label in pending.found})
    _check_numbers(path, model.metadata, pending.corpus)
    learner = _learner(path, model.metadata, model.counts, settings.base)
    change, rows = _learn_all(path, learner, pending, model.learned, remember)
    rows = {digest: row for digest, row in (model.learned | rows).items() if any(row)}
    return change, Model(learner.metadata, learner.counts, dict(sorted(rows.items())))


def forget(
    path: Path,
    messages: Iterable[TokenizedMessage],
    remember: bool = True,
    batch: int = _BATCH,
    wait: LockWait = DEFAULT_WAIT,
    base: "Base | None" = None,
) -> Change:
    """Take messages out of the model at `path`: each as often as it comes, if it was learned.

    Counts and ledger become what they were, and the calibration what it would be without those that
    were learned lately (`OnlineLearner.unlearn`).
    messages: with digests; a label of None stands for the class that the ledger names.
    remember: False takes out labelled messages that the ledger does not name, if the counts may
    have them and more messages were learned than it names.
    wait: how long to wait for the model's lock.  base: as it was learned with.
    Raises ModelError: there is no model, it is damaged or has other classes, is locked or cannot be
    written.
    """
    asked, corpus = _to_forget(path, messages, remember, batch)
    with locked(path, wait) as place, Lookup(place) as old:
        before = old.counts(corpus.vocabulary)
        learner = _learner(path, old.metadata, before, base)
        learned = old.learned({message.digest for message in corpus.messages()})
        unnamed = [0] * len(old.metadata.settings.classes) if remember else old.unnamed()
        forgotten = _forget(path, learner, corpus, learned, unnamed)
        if forgotten:
            _save(place, old, learner, before, learned)
    return Change(forgotten=forgotten, unchanged=asked - forgotten)


def forget_in_memory(
    path: Path, model: Model, messages: Iterable[TokenizedMessage]
) -> tuple[Change, Model]:
    """Do what `forget` does with a model in memory; return what it did, and the model after it.

    path: the model's name in errors.  model: it stays as it is.
    """
    corpus = Corpus(model.metadata.settings.wanted)
    for message in messages:
        corpus.add(message)
    labels = set(corpus.labels) - {""}
    _check_classes(path, model.metadata, labels)
    learner = OnlineLearner(model.metadata, dict(model.counts))
    learned = dict(model.learned)
    unnamed = [0] * len(model.metadata.settings.classes)
    forgotten = _forget(path, learner, corpus, learned, unnamed)
    rows = {digest: row for digest, row in learned.items() if any(row)}
    change = Change(forgotten=forgotten, unchanged=len(corpus) - forgotten)
    return change, Model(learner.metadata, learner.counts, rows)


def _forget(
    path: Path,
    learner: OnlineLearner,
    corpus: Corpus,
    learned: dict[str, Row],
    unnamed: list[int],
) -> int:
    """Take messages out; return how many were taken.  Changes `learned`, the ledger's rows.

    unnamed: per class, how many messages that the ledger does not name may be taken out.
    """
    classes = learner.metadata.settings.classes
    forgotten = 0
    for message in corpus.messages():
        row = list(learned.get(message.digest, ()))
        k = next((k for k, n in enumerate(row) if n and message.label in ("", classes[k])), None)
        if k is not None:
            _unlearn(path, learner, classes[k], message)
            row[k] -= 1
            learned[message.digest] = tuple(row)
            forgotten += 1
        elif message.label and not any(row):
            own = classes.index(message.label)
            content = message.tokens, message.numbers
            if unnamed[own] > 0 and learner.has(message.label, *content):
                learner.unlearn(message.label, *content)
                unnamed[own] -= 1
                forgotten += 1
    return forgotten


def _to_forget(
    path: Path, messages: Iterable[TokenizedMessage], remember: bool, batch: int
) -> tuple[int, Corpus]:
    """Return how many messages there are, and those that the model may have learned."""
    asked = 0
    labels: set[str] = set()
    with Lookup(path) as lookup:
        corpus = Corpus(lookup.metadata.settings.wanted)
        for some in _batches(messages, batch):
            asked += len(some)
            labels |= {message.label for message in some if message.label}
            known = lookup.learned(message.digest for message in some) if remember else {}
            for message in some:
                if message.digest in known or (message.label and not remember):
                    corpus.add(message)
        _check_classes(path, lookup.metadata, labels)
    return asked, corpus


def _unlearn(path: Path, learner: OnlineLearner, label: str, message: TokenizedMessage) -> None:
    """Take a message out that the ledger names; raises ModelError when the counts lack it."""
    if not learner.has(label, message.tokens, message.numbers, pruned=True):
        raise ModelError(
            f"{path}: the model is damaged: a message of its ledger is not in its counts; restore"
            " it from a copy or train again"
        )
    learner.unlearn(label, message.tokens, message.numbers, message.digest)


def set_cut_offs(path: Path, cut_offs_of: Callable[[Metadata], CutOffs]) -> CutOffs:
    """Store cut-offs in the model at `path`, and return them.

    Raises ModelError: there is no model, it is damaged, or cannot be written.
    """
    Lookup(path).close()  # without a model there is nothing to lock
    with locked(path) as place, Lookup(place) as old:
        cut_offs = cut_offs_of(old.metadata)
        metadata = cut_offs.stored_in(old.metadata)
        write_atomically(place, lambda file: splice(file, old, metadata, {}, {}))
    return cut_offs


def _save(
    place: Path,
    old: Lookup,
    learner: OnlineLearner,
    before: dict[str, Row],
    learned: dict[str, Row],
) -> None:
    after = learner.counts
    none = (0,) * len(old.metadata.settings.classes)
    counts = {token: row for token, row in after.items() if before.get(token) != row}
    counts |= {token: none for token in before if token not in after}
    write_atomically(place, lambda file: splice(file, old, learner.metadata, counts, learned))


def _check_numbers(path: Path, metadata: Metadata, corpus: Corpus) -> None:
    """Raise ModelError if messages were tokenized for a model that counts other numbers.

    Their digests would be others too, and the ledger would not know them.
    """
    if len(corpus) and corpus.wanted != metadata.settings.wanted:
        raise ModelError(
            f"{path}: was replaced, while messages were read, by a model that counts other numbers"
            " of them; run it again"
        )


def _check_classes(path: Path, metadata: Metadata, labels: set[str]) -> None:
    classes = metadata.settings.classes
    strange = sorted(labels - set(classes))
    if strange:
        raise ModelError(
            f"{path}: has the classes {', '.join(classes)} and not {strange[0]!r}",
            Remedy.TRAIN_ANEW,
        )
