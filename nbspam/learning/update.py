"""Learning into a model file, and forgetting: message by message, each once, with nothing lost.

The messages' tokens are taken before the model is locked; under the lock only the lines that
change are read, and the file is written anew around them.  Standard library only.
"""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from nbspam.errors import ModelError
from nbspam.learning.corpus import Corpus
from nbspam.learning.ledger import moves
from nbspam.learning.online import Learner
from nbspam.learning.settings import Settings, empty_metadata, first_classes
from nbspam.store.atomic_write import locked, replace
from nbspam.store.lookup import Lookup
from nbspam.store.metadata import Metadata
from nbspam.store.model_file import Row, write_lines
from nbspam.store.splice import splice

_BATCH = 500  # messages looked up in the ledger at a time


class Change(NamedTuple):
    """What a command did to a model, in messages."""

    learned: int = 0  # that the model had not seen
    moved: int = 0  # from one class to another
    forgotten: int = 0
    unchanged: int = 0  # known already; or to be forgotten, and never learned


class PendingMessages:
    """Messages to learn: how often each was found, and the tokens of those not known yet."""

    def __init__(self) -> None:
        self.found: Counter[tuple[str, str]] = Counter()  # (digest, label) -> times
        self.corpus = Corpus()

    def read(
        self, path: Path, messages: Iterable[tuple[str, Iterable[str], str]], remember: bool
    ) -> None:
        """Take in messages: (label, tokens, digest).

        A message that the model at `path` knows already as much as it was found is counted only:
        memory goes by what is new.  remember: False learns them all.
        Raises ModelError when the model is damaged.
        """
        if not remember or not path.exists():
            for label, tokens, digest in messages:
                self._add(label, tokens, digest, 0)
            return
        with Lookup(path) as lookup:
            number = {name: k for k, name in enumerate(lookup.head.classes)}
            for batch in _batches(messages):
                learned = lookup.learned(digest for _, _, digest in batch)
                for label, tokens, digest in batch:
                    row = learned.get(digest)
                    k = number.get(label)
                    self._add(label, tokens, digest, row[k] if row and k is not None else 0)

    def _add(self, label: str, tokens: Iterable[str], digest: str, known: int) -> None:
        self.found[digest, label] += 1
        if self.found[digest, label] > known:
            self.corpus.add(label, tokens, digest)


def _batches(
    messages: Iterable[tuple[str, Iterable[str], str]],
) -> Iterable[list[tuple[str, Iterable[str], str]]]:
    batch: list[tuple[str, Iterable[str], str]] = []
    for message in messages:
        batch.append(message)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    yield batch


def learn(
    path: Path, lessons: PendingMessages, settings: Settings, remember: bool = True
) -> Change:
    """Learn messages into the model at `path`; makes it if there is none.

    Each message is brought up to the number of times it was found, never above, and moved from the
    class that it was learned in before.  It is scored as if it had not been, and the score refines
    the calibration.
    settings: for a new model.  remember: False learns all as if new, and leaves the ledger alone.
    Raises ModelError: the model is damaged, has other classes, or cannot be written.
    """
    with locked(path) as place:
        if not place.exists():
            classes, positive = first_classes((label for _, label in lessons.found), settings)
            learner = Learner(empty_metadata(classes, positive, settings), {})
            change, learned = _learn(path, learner, lessons, {}, remember)
            replace(
                place,
                lambda file: write_lines(
                    file, learner.head, learner.counts.items(), sorted(learned.items())
                ),
            )
            return change
        with Lookup(place) as old:
            _check_classes(path, old.head, {label for _, label in lessons.found})
            before = old.counts(lessons.corpus.vocabulary)
            learner = Learner(old.head, dict(before))
            known = old.learned({digest for digest, _ in lessons.found}) if remember else {}
            change, learned = _learn(path, learner, lessons, known, remember)
            if change.learned or change.moved:
                _save(place, old, learner, before, learned)
            return change


def _learn(
    path: Path, learner: Learner, lessons: PendingMessages, known: dict[str, Row], remember: bool
) -> tuple[Change, dict[str, Row]]:
    """Teach the learner; return what was done and the ledger's new rows.

    In the order of the digests, which is none: a folder of spam after one of ham would push the
    calibration to and fro.
    """
    classes = learner.head.classes
    learned: dict[str, Row] = {}
    new = moved = 0
    taught: list[list[int]] = []  # per message: the classes that learned it
    for label, tokens, digest in lessons.corpus.rows():
        taught.append([])
        if digest in learned and remember:
            continue  # the digest's other occurrences were seen to at once
        row = list(known.get(digest, (0,) * len(classes)))
        if remember:
            steps = moves(row, [lessons.found[digest, name] for name in classes])
        else:
            steps = [(None, classes.index(label))]
        for source, target in steps:
            if source is not None:
                _unlearn(path, learner, classes[source], tokens)
                row[source] -= 1
                moved += 1
            else:
                new += 1
            learner.learn(classes[target], tokens)
            taught[-1].append(target)
            row[target] += 1
        if remember:
            learned[digest] = tuple(row)
    for (_, tokens, _), targets in zip(lessons.corpus.rows(), taught, strict=True):
        for target in targets:
            learner.refine(classes[target], tokens)
    unchanged = lessons.found.total() - new - moved
    return Change(learned=new, moved=moved, unchanged=unchanged), learned


def forget(
    path: Path, messages: Iterable[tuple[str | None, Iterable[str], str]], remember: bool = True
) -> Change:
    """Take messages out of the model at `path`: each as often as it comes, if it was learned.

    messages: (label, tokens, digest); a label of None is the class that the ledger names.
    remember: False takes those with a label out that the ledger does not name, if the counts may
    have them and more messages were learned than it names.
    Raises ModelError: there is no model, it is damaged or has other classes, or cannot be written.
    """
    asked, corpus = _to_forget(path, messages, remember)
    with locked(path) as place, Lookup(place) as old:
        classes = old.head.classes
        before = old.counts(corpus.vocabulary)
        learner = Learner(old.head, dict(before))
        learned = old.learned({digest for _, _, digest in corpus.rows()})
        unnamed = [0] * len(classes) if remember else old.unnamed()
        forgotten = 0
        for label, tokens, digest in corpus.rows():
            row = list(learned.get(digest, ()))
            if not remember and not any(row):
                own = classes.index(label)
                if unnamed[own] > 0 and learner.has(label, tokens):
                    learner.unlearn(label, tokens)
                    unnamed[own] -= 1
                    forgotten += 1
                continue
            k = next((k for k, n in enumerate(row) if n and label in ("", classes[k])), None)
            if k is None:
                continue
            _unlearn(path, learner, classes[k], tokens)
            row[k] -= 1
            learned[digest] = tuple(row)
            forgotten += 1
        if forgotten:
            _save(place, old, learner, before, learned)
    return Change(forgotten=forgotten, unchanged=asked - forgotten)


def _to_forget(
    path: Path, messages: Iterable[tuple[str | None, Iterable[str], str]], remember: bool
) -> tuple[int, Corpus]:
    """Return how many messages there are, and those that the model may have learned.

    The label is "" where none is given.
    """
    asked = 0
    labels: set[str] = set()
    corpus = Corpus()
    with Lookup(path) as lookup:
        for batch in _batches((label or "", tokens, digest) for label, tokens, digest in messages):
            asked += len(batch)
            labels |= {label for label, _, _ in batch}
            known = lookup.learned(digest for _, _, digest in batch) if remember else {}
            for label, tokens, digest in batch:
                if digest in known or (label and not remember):
                    corpus.add(label, tokens, digest)
        _check_classes(path, lookup.head, labels - {""})
    return asked, corpus


def _unlearn(path: Path, learner: Learner, label: str, tokens: list[str]) -> None:
    """Take a message out that the ledger names; raises ModelError when the counts lack it."""
    if not learner.has(label, tokens, pruned=True):
        raise ModelError(
            f"{path}: the model is damaged: a message of its ledger is not in its counts; restore"
            " it from a copy or train again"
        )
    learner.unlearn(label, tokens)


def _save(
    place: Path, old: Lookup, learner: Learner, before: dict[str, Row], learned: dict[str, Row]
) -> None:
    after = learner.counts
    none = (0,) * len(old.head.classes)
    counts = {token: row for token, row in after.items() if before.get(token) != row}
    counts |= {token: none for token in before if token not in after}
    replace(place, lambda file: splice(file, old, learner.head, counts, learned))


def _check_classes(path: Path, head: Metadata, labels: set[str]) -> None:
    strange = sorted(labels - set(head.classes))
    if strange:
        raise ModelError(
            f"{path}: has the classes {', '.join(head.classes)} and no {strange[0]!r}; correct the"
            " label, or train anew with --replace"
        )
