"""Ways to test a filter on labelled messages it has not learned from."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from nbspam.bayes.matrix import Presence
from nbspam.errors import OptionError, SourceError, TrainingError
from nbspam.learning.batch import Fit, fit, matrix_scores, token_counts
from nbspam.learning.corpus import Corpus
from nbspam.learning.online import Learner
from nbspam.learning.settings import Settings, class_names, empty_metadata
from nbspam.scoring.classifier import Classifier, Score
from nbspam.scoring.explanation import Word, explain
from nbspam.scoring.verdict import CutOffs, verdict
from nbspam.store.metadata import Metadata
from nbspam.workers import TokenizedMessage

TELLING_WORDS = 8  # kept of each mistake


class Outcome(NamedTuple):
    """One message of an evaluation."""

    source: str
    label: str  # what it is
    score: Score
    verdict: str
    words: tuple[Word, ...]  # of a mistake: the strongest, for the report


class Evaluation(NamedTuple):
    """What a protocol found, and the model's (or models') classes."""

    protocol: str
    classes: tuple[str, ...]
    positive: str | None
    outcomes: list[Outcome]


def saved_model(
    classifier: Classifier, messages: Iterable[TokenizedMessage], cut_offs: CutOffs
) -> Evaluation:
    """Return the outcome of every message by a model that was trained before."""
    head = classifier.head
    outcomes = []
    for raw, tokens, _ in messages:
        if raw.label not in head.classes:
            raise SourceError(
                f"{raw.source}: is labelled {raw.label!r}, which is none of the model's classes"
                f" ({', '.join(head.classes)}); name its column with --label-column, or train anew"
            )
        outcomes.append(_outcome(classifier, raw.source, raw.label, tokens, cut_offs))
    return Evaluation("saved model", head.classes, head.positive, outcomes)


def _outcome(
    classifier: Classifier, source: str, label: str, tokens: Iterable[str], cut_offs: CutOffs
) -> Outcome:
    score = classifier.score(tokens)
    called = verdict(classifier.head, score, cut_offs)
    words = explain(classifier, tokens).words[:TELLING_WORDS] if called != label else ()
    return Outcome(source, label, score, called, words)


def train_first(
    corpus: Corpus, sources: Sequence[str], first: int, settings: Settings, cut_offs: CutOffs
) -> Evaluation:
    """Train on the first messages in their order and test on the rest."""
    n = len(corpus)
    if not 0 < first < n:
        raise OptionError(
            f"--train-first {first}: there are {n} messages; give a number from 1 to"
            f" {max(1, n - 1)}"
        )
    train, test = np.arange(first), np.arange(first, n)
    try:
        head, outcomes = _train_and_test(corpus, sources, train, test, settings, cut_offs)
    except TrainingError as error:
        raise TrainingError(f"among the first {first} messages {error}, mixed in order") from error
    return Evaluation(f"trained on the first {first}", head.classes, head.positive, outcomes)


def folds(
    corpus: Corpus, sources: Sequence[str], k: int, settings: Settings, cut_offs: CutOffs
) -> Evaluation:
    """Cross-validate: each message is scored by a model of the other folds.

    Message i is in fold i mod k, counted within its class: every fold has each class's share, the
    same on every run.  Outcomes come in the order of the messages.
    """
    labels = np.array(corpus.labels)
    classes, positive = class_names(corpus.labels, settings.positive)
    fewest = min(int((labels == name).sum()) for name in classes)
    if not 2 <= k <= fewest:
        raise OptionError(
            f"--folds {k}: with {fewest} messages in the smallest class give 2 to {fewest} folds"
        )
    fold = np.empty(len(labels), dtype=np.int64)
    for name in classes:
        members = np.flatnonzero(labels == name)
        fold[members] = np.arange(len(members)) % k
    outcomes: dict[int, Outcome] = {}
    for part in range(k):
        train, test = np.flatnonzero(fold != part), np.flatnonzero(fold == part)
        _, found = _train_and_test(corpus, sources, train, test, settings, cut_offs)
        outcomes.update(zip(test.tolist(), found, strict=True))
    ordered = [outcomes[i] for i in range(len(labels))]
    return Evaluation(f"{k} folds", classes, positive, ordered)


def online(
    corpus: Corpus, sources: Sequence[str], batch: int, settings: Settings, cut_offs: CutOffs
) -> Evaluation:
    """Classify, then learn, in order, a batch at a time; the first batch is learned uncounted.

    As `train --update` on each day's mail would, and with its code.
    """
    labels = corpus.labels
    if batch < 1 or len(labels) <= batch:
        raise OptionError(
            f"--batch {batch}: of {len(labels)} messages the first batch is not counted;"
            " give a smaller number, of 1 at least"
        )
    learner = _first_batch(corpus, batch, settings)
    vocabulary = corpus.vocabulary
    presence = corpus.presence()
    outcomes = []
    for start in range(batch, len(labels), batch):
        classifier = learner.classifier()
        learned = []
        for i in range(start, min(start + batch, len(labels))):
            columns = presence.indices[presence.indptr[i] : presence.indptr[i + 1]].tolist()
            tokens = {vocabulary[j] for j in columns}
            outcomes.append(_outcome(classifier, sources[i], labels[i], tokens, cut_offs))
            learned.append((labels[i], tokens))
        for label, tokens in learned:
            learner.learn(label, tokens)
        for label, tokens in learned:
            learner.refine(label, tokens)
    head = learner.head
    protocol = f"online, {batch} at a time, the first {batch} not counted"
    return Evaluation(protocol, head.classes, head.positive, outcomes)


def _first_batch(corpus: Corpus, batch: int, settings: Settings) -> Learner:
    """Return a learner of the first messages; the classes are those of all."""
    labels = corpus.labels
    classes, positive = class_names(labels, settings.positive)
    presence = corpus.presence()[:batch]
    vocabulary = corpus.vocabulary
    if set(labels[:batch]) == set(classes):
        fitted = fit(presence, labels[:batch], settings, corpus.is_header())
        counts = {token: tuple(row) for token, row in token_counts(vocabulary, fitted.counts)}
        return Learner(fitted.head, counts)
    learner = Learner(empty_metadata(classes, positive, settings), {})
    for i in range(batch):
        columns = presence.indices[presence.indptr[i] : presence.indptr[i + 1]].tolist()
        learner.learn(labels[i], [vocabulary[j] for j in columns])
    return learner


def _train_and_test(
    corpus: Corpus,
    sources: Sequence[str],
    train: "np.ndarray[tuple[int], np.dtype[np.int64]]",
    test: "np.ndarray[tuple[int], np.dtype[np.int64]]",
    settings: Settings,
    cut_offs: CutOffs,
) -> tuple[Metadata, list[Outcome]]:
    presence: Presence = corpus.presence()
    labels = corpus.labels
    fitted = fit(presence[train], [labels[i] for i in train], settings, corpus.is_header())
    rows = presence[test]
    scores = matrix_scores(rows, fitted)
    outcomes = []
    vocabulary: list[str] = []
    for row, (i, score) in enumerate(zip(test.tolist(), scores, strict=True)):
        label = labels[i]
        words: tuple[Word, ...] = ()
        called = verdict(fitted.head, score, cut_offs)
        if called != label:
            vocabulary = vocabulary or corpus.vocabulary
            columns = rows.indices[rows.indptr[row] : rows.indptr[row + 1]].tolist()
            words = _telling_words(fitted, {vocabulary[j]: j for j in columns})
        outcomes.append(Outcome(sources[i], label, score, called, words))
    return fitted.head, outcomes


def _telling_words(fitted: Fit, columns: Mapping[str, int]) -> tuple[Word, ...]:
    def counts_of(tokens: Iterable[str]) -> dict[str, tuple[int, ...]]:
        rows = ((t, tuple(fitted.counts[:, columns[t]].tolist())) for t in tokens)
        return {token: row for token, row in rows if any(row)}

    return explain(Classifier(fitted.head, counts_of), columns).words[:TELLING_WORDS]


def worst_mistakes(evaluation: Evaluation, limit: int) -> list[Outcome]:
    """Return the mistakes, those that gave the true class the least probability first."""
    number = {name: k for k, name in enumerate(evaluation.classes)}
    mistakes = [o for o in evaluation.outcomes if o.verdict != o.label]
    mistakes.sort(key=lambda o: o.score.probabilities[number[o.label]])
    return mistakes[:limit]
