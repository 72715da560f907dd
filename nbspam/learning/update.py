"""Learning and forgetting messages in a model's file, each message once.

Messages are tokenized before the model is locked.  Under the lock, only the lines that change are
read, and all other lines are copied.  Standard library only.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nbspam.bayes.event_model import Row
from nbspam.errors import ModelError, Remedy, one_line
from nbspam.learning.corpus import Corpus
from nbspam.learning.learner import Learner, Place, Step
from nbspam.learning.settings import TrainingSettings, first_metadata
from nbspam.names import HAM, SPAM
from nbspam.store import model_file
from nbspam.store.lookup import Lookup
from nbspam.store.metadata import Metadata
from nbspam.store.model_file import updating_model
from nbspam.store.writing import DEFAULT_WAIT, LockWait
from nbspam.tokens.tokenized import (
    TOKENIZER_VERSION,
    TOKENS_ONLY,
    TokenizedMessage,
    TokenizerOutputs,
)

if TYPE_CHECKING:
    from nbspam.scoring.base import Base


def moves(learned: Sequence[int], occurrences: Sequence[int]) -> list[Step]:
    """Return the steps that bring a message up to its number of occurrences in each class.

    learned: times that each class has learned it.  occurrences: times that it occurs in each class.
    A class never learns a message more often than the message occurs in it.  A message that no
    longer occurs in a class stays learned there, unless it occurs more often in another class, to
    which the user has moved it.
    """
    surplus = [n - m for n, m in zip(learned, occurrences, strict=True)]
    left = [k for k, n in enumerate(surplus) for _ in range(n)]
    missing = [k for k, n in enumerate(surplus) for _ in range(-n)]
    return list(itertools.zip_longest(left[: len(missing)], missing))


LOOKUP_GROUP = 500  # messages per look-up in the ledger
_MAX_EXAMPLES = 3  # messages in two or more classes that are named


# A label is unexpected if its probability was lower than this before learning.  With this bound, 96
# to 97 % of 20 spams that were taught as ham to models of 756 mails are found, and so are 0.16 to
# 0.25 % of correct lessons.
UNEXPECTED_BELOW = 0.1


class UnexpectedLabel(NamedTuple):
    """A new message that looks like another class than its label."""

    source: str
    label: str
    looks_like: str
    probability: float  # P(label), before the command learned its first message
    learned: bool  # False if nobody gave the label (it was presumed ham because it was read)
    digest: str


class Change(NamedTuple):
    """The numbers of messages that learning or forgetting changed in a model.

    >>> spam_filter.learn([("spam", "win a prize"), ("ham", "see you")])[:4]
    (1, 0, 0, 1)
    """

    learned: int = 0  # new messages
    moved: int = 0  # messages that changed their class
    forgotten: int = 0
    unchanged: int = 0  # messages already known; when forgetting: messages never learned
    surprising: tuple[UnexpectedLabel, ...] = ()


class OlderRulesError(ModelError):
    """The model was made with older tokenizer rules and cannot learn; nothing was changed."""


def open_for_learning(place: Place) -> Lookup:
    """Open a model that can learn; raises ModelError."""
    with ExitStack() as stack:
        lookup = stack.enter_context(model_file.open_model(place))
        check_rules(place, lookup.metadata)
        stack.pop_all()
    return lookup


def check_rules(place: Place, metadata: Metadata) -> None:
    """Raise OlderRulesError unless a model was made with today's tokenizer rules.

    Other rules give a message another digest, so a whole mailbox would count twice.
    """
    if metadata.settings.rules != TOKENIZER_VERSION:
        raise OlderRulesError(
            f"{place}: was made with tokenizer rules {metadata.settings.rules}, and this program"
            f" has {TOKENIZER_VERSION}, so it cannot tell which messages it has learned",
            Remedy.TRAIN_AGAIN,
        )


class PendingMessages:
    """Messages to learn: the occurrences of each, and the tokens of new messages."""

    def __init__(self, outputs: TokenizerOutputs = TOKENS_ONLY) -> None:
        """outputs: the extras that the model counts in addition to tokens."""
        self.occurrences: Counter[tuple[str, str]] = Counter()  # keys: digest, label
        self.copies = 0  # number of further copies of mails
        self.corpus = Corpus(outputs)
        self.columns: list[tuple[str, str]] = []  # text and label columns of the tables
        # Whether a message is only presumed to be ham, because it was read in an inbox.  Arguments:
        # its source, and whether its score is above the spam cut-off.
        self.is_presumed: Callable[[str, bool], bool] = lambda *_: False
        self._sources: list[str] = []  # the first source of each key of occurrences

    def add(self, messages: Iterable[TokenizedMessage], model: Path | None = None) -> None:
        """Add messages with digests; raises ModelError if the model is damaged.

        model: an open model; messages that the model has learned as often as they occur are only
        counted, so memory grows only with new messages.  Without a model, all messages are new.
        """
        with ExitStack() as stack:
            lookup, classes = None, tuple[str, ...]()
            if model is not None and model.exists():
                lookup = stack.enter_context(Lookup(model))
                classes = lookup.metadata.settings.classes
            for message, row in _look_up_rows(lookup, messages):
                label = message.label or ""
                key = message.digest, label
                if key not in self.occurrences:
                    self._sources.append(one_line(message.source))
                elif message.is_mail:  # all copies are one lesson; equal rows of tables all count
                    self.copies += 1
                    continue
                self.occurrences[key] += 1
                if self.occurrences[key] > (
                    row[classes.index(label)] if row and label in classes else 0
                ):
                    self.corpus.add(message)

    def leave_out(self, labels: Collection[str]) -> None:
        """Drop the messages with these labels."""
        if labels:
            pairs = zip(self.occurrences.items(), self._sources, strict=True)
            kept = [(item, source) for item, source in pairs if item[0][1] not in labels]
            occurrences, sources = dict(item for item, _ in kept), [source for _, source in kept]
            self.occurrences, self._sources = Counter(occurrences), sources
            self.corpus = self.corpus.without(labels)

    def source(self, digest: str, label: str) -> str:
        """Return the message's first source."""
        return self._sources[list(self.occurrences).index((digest, label))]

    @property
    def labels(self) -> set[str]:
        """All labels of the messages."""
        return {label for _, label in self.occurrences}

    def messages_in_two_classes(self) -> tuple[int, list[dict[str, str]]]:
        """Count the messages in two or more classes, and return the sources of the first few.

        The sources of a message are a dictionary, class -> first source.
        """
        labels = Counter(digest for digest, _ in self.occurrences)
        sources: dict[str, dict[str, str]] = {}
        for digest, label in self.occurrences:
            if labels[digest] > 1 and (digest in sources or len(sources) < _MAX_EXAMPLES):
                sources.setdefault(digest, {})[label] = self.source(digest, label)
        return sum(n > 1 for n in labels.values()), list(sources.values())


def _look_up_rows(
    lookup: Lookup | None, messages: Iterable[TokenizedMessage]
) -> Iterator[tuple[TokenizedMessage, Row | None]]:
    """Yield each message with its row of the ledger; None if there is no model or no row."""
    messages = iter(messages)
    while group := list(itertools.islice(messages, LOOKUP_GROUP)):
        rows = lookup.ledger_rows(message.digest for message in group) if lookup else {}
        yield from ((message, rows.get(message.digest)) for message in group)


def learn_pending(learner: Learner, place: Place, pending: PendingMessages) -> Change:
    """Learn messages, or move them from the class in which they were learned before.

    All messages are counted first; then each refines the calibration, in the order of digests.
    That order mixes the classes: a folder of spam after a folder of ham would push the calibration
    to one side and back.
    place: names the model in errors.  Raises ModelError.
    """
    metadata = learner.metadata
    check_rules(place, metadata)
    if learner.base is not None:
        learner.base.check(str(place), metadata.settings)
    _check_labels_known(place, metadata, pending.labels)
    if len(pending.corpus) and pending.corpus.outputs != metadata.settings.outputs:
        # The pending messages would have other digests, too, which the ledger does not have.
        raise ModelError(
            f"{place}: was replaced, while messages were read, by a model with another event"
            " model or other traits; run it again"
        )
    occurrences, classes = pending.occurrences, metadata.settings.classes
    digests = {digest for digest, _ in occurrences} if learner.remember else set[str]()
    learner.read(pending.corpus, digests)
    surprising = tuple(_unexpected_labels(learner, pending))
    withheld = {(s.digest, s.label) for s in surprising if not s.learned}
    n_new = n_moved = 0
    refined: list[list[int]] = []  # the classes that learned each message
    for message in pending.corpus.in_digest_order():
        steps: list[Step] = [(None, classes.index(message.label or ""))]
        if (message.digest, message.label) in withheld:
            steps = []
        elif learner.remember:  # all occurrences of a digest are learned at once
            in_pending = [occurrences[message.digest, name] for name in classes]
            steps = moves(learner.row(message.digest), in_pending)
        for step in steps:
            source, target = learner.move(place, message, step)
            n_new += source is None and target is not None
            n_moved += source is not None and target is not None
        refined.append([target for _, target in steps if target is not None])
    for message, targets in zip(pending.corpus.in_digest_order(), refined, strict=True):
        for target in targets:
            digest = message.digest if learner.remember else ""
            learner.refine(classes[target], message.tokens, message.extras, digest)
    learner.add_columns(pending.columns)
    n_withheld = sum(occurrences[key] for key in withheld)
    unchanged = occurrences.total() + pending.copies - n_new - n_moved - n_withheld
    return Change(n_new, n_moved, unchanged=unchanged, surprising=surprising)


def _unexpected_labels(learner: Learner, pending: PendingMessages) -> Iterator[UnexpectedLabel]:
    """Yield the new messages that look like another class to the model before learning."""
    metadata, classifier = learner.metadata, learner.classifier()
    settings = metadata.settings
    classes, spam = settings.classes, settings.positive_index
    if classifier.metadata.lacks_two_classes or not classifier.rule.is_calibrated:
        return
    is_young = bool(metadata.messages_needed)
    for message in pending.corpus.in_digest_order():
        if message.digest in learner.ledger:
            continue
        label = message.label or ""
        probabilities = classifier.score(message.tokens, message.extras).probabilities
        probability = probabilities[classes.index(label)]
        p_spam = 0 if spam is None or label == classes[spam] else probabilities[spam]
        if probability < UNEXPECTED_BELOW or p_spam > settings.ham_cutoff:
            source = pending.source(message.digest, label)
            is_spam = p_spam > settings.spam_cutoff
            # A young model is unsure of most mail, and must learn such mail.
            is_known = p_spam <= settings.ham_cutoff or is_young
            learned = is_known or not pending.is_presumed(source, is_spam)
            if probability < UNEXPECTED_BELOW or not learned:
                looks_like = classes[max(range(len(classes)), key=probabilities.__getitem__)]
                yield UnexpectedLabel(
                    source, label, looks_like, probability, learned, message.digest
                )


def learn(
    place: Place,
    pending: PendingMessages,
    settings: TrainingSettings,
    remember: bool = True,
    wait: LockWait = DEFAULT_WAIT,
    dry_run: bool = False,
) -> Change:
    """Learn messages into a model, which is created if it does not exist.

    Each message is learned up to its number of occurrences, never above, and moved from the class
    in which it was learned before.  The message's score, as if it had not been learned, refines the
    calibration.  A message that is only presumed to be ham and may be spam is not learned.
    settings: the settings of a new model; their base is also used with an old model.
    remember: False learns all messages as new, without the ledger.
    wait: how long to wait for the model's lock.
    dry_run: only return the change; the model must exist, and is neither locked nor changed.
    Raises ModelError: the model is damaged, has other classes, is locked or cannot be written.
    """
    if dry_run:
        with model_file.open_model(place) as old:
            learner = Learner(old.metadata, None, settings.base, old, remember)
            return learn_pending(learner, place, pending)
    with updating_model(place, wait, may_be_new=True) as (lookup, put):
        first = first_metadata(pending.labels, settings) if lookup is None else lookup.metadata
        learner = Learner(first, None, settings.base, lookup, remember)
        change = learn_pending(learner, place, pending)
        if lookup is None or change.learned or change.moved:
            put(learner.write)
        return change


def forget(
    place: Place,
    messages: Iterable[TokenizedMessage],
    remember: bool = True,
    wait: LockWait = DEFAULT_WAIT,
    base: "Base | None" = None,
) -> Change:
    """Unlearn messages, each as often as it is given and was learned.

    This restores counts and ledger, and the calibration as if recent messages among them had not
    been learned (`Learner.unlearn`).
    messages: must have digests; the label None means the class in the ledger.
    remember: False also unlearns labelled messages that are not in the ledger, if the counts may
    contain them and more messages were learned than the ledger has.
    wait: how long to wait for the model's lock.  base: the base with which the model learned.
    Raises ModelError: the model is missing, damaged, locked, has other classes, or cannot be
    written.
    """
    n_messages = 0
    labels: set[str] = set()
    # open the model to find the messages that it may have learned
    with open_for_learning(place) as lookup:
        corpus = Corpus(lookup.metadata.settings.outputs)
        for message, in_ledger in _look_up_rows(lookup, messages):
            n_messages += 1
            labels |= {message.label} if message.label else set()
            if in_ledger if remember else message.label:
                corpus.add(message)
        _check_labels_known(place, lookup.metadata, labels)
    forgotten = 0
    with updating_model(place, wait) as (old, put):
        assert old is not None
        check_rules(place, old.metadata)
        classes = old.metadata.settings.classes
        if base is not None:
            base.check(str(place), old.metadata.settings)
        # Per class, the number of messages outside the ledger that may be unlearned.
        not_in_ledger = [0] * len(classes) if remember else old.without_ledger_entry()
        learner = Learner(old.metadata, None, base, old)
        learner.read(corpus, {message.digest for message in corpus.messages()})
        for message in corpus.in_digest_order():
            row = learner.row(message.digest)
            if message.label and not any(row):
                k = classes.index(message.label)
                if not_in_ledger[k] > 0 and learner.may_have_learned(
                    message.label, message.tokens, message.extras
                ):
                    not_in_ledger[k] -= 1
                    row[k] = 1
                    learner.ledger[message.digest] = tuple(row)
            for k in [k for k, n in enumerate(row) if n and message.label in ("", classes[k])][:1]:
                forgotten += learner.move(place, message, (k, None)) == (k, None)
        if forgotten:
            put(learner.write)
    return Change(forgotten=forgotten, unchanged=n_messages - forgotten)


def _check_labels_known(place: Place, metadata: Metadata, labels: set[str]) -> None:
    classes = metadata.settings.classes
    unknown_labels = sorted(labels - set(classes))
    if unknown_labels:
        from shlex import quote  # for errors only

        positive = metadata.settings.positive
        means = {SPAM: positive, HAM: next(name for name in classes if name != positive)}
        name = means.get(unknown_labels[0]) if len(classes) == 2 else None
        raise ModelError(
            f"{place}: has the classes {', '.join(classes)} and not {unknown_labels[0]!r}",
            Remedy.LABEL_AS if name else Remedy.TRAIN_ANEW,
            name=quote(name or ""),
        )
