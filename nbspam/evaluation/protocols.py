"""Ways to test a filter on labelled messages it has not learned from."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from nbspam.bayes.event_model import Row
from nbspam.bayes.matrix import Integers, Presence
from nbspam.errors import OptionError, TrainingError, counted
from nbspam.evaluation import overlap
from nbspam.evaluation.mislabelled import LabelCheck, Mislabelled, mislabelled
from nbspam.evaluation.outcome import Evaluation, Outcome
from nbspam.evaluation.overlap import LedgerCheck
from nbspam.evaluation.stratified import stratified_folds
from nbspam.filter import Filter
from nbspam.learning.batch import Fit, cut_offs_within, fit, token_counts
from nbspam.learning.corpus import Corpus
from nbspam.learning.online import OnlineLearner
from nbspam.learning.settings import TrainingSettings, class_names, empty_metadata, first_metadata
from nbspam.learning.training import TrainingRun
from nbspam.scoring.classifier import Classifier
from nbspam.scoring.explanation import Explanation, explain
from nbspam.scoring.highlights import highlighted_message, without_highlights
from nbspam.scoring.verdict import CutOffs, Verdict, verdict_on
from nbspam.tokens.excerpt import Excerpt
from nbspam.tokens.kinds import is_fragment
from nbspam.tokens.tokenized import TOKENS_ALONE, TokenizedMessage, Wanted

TELLING_WORDS = 8  # kept of each mistake
_TENTHS = 10
# Passes the parts of a long test on, and may show how far it is.
Shown = Callable[[Sequence[int]], Iterable[int]]


class LabelledCorpus(NamedTuple):
    """Messages to train and test on: the matrix, and where each message came from."""

    corpus: Corpus
    sources: list[str]
    excerpts: Sequence[Excerpt] = ()  # of each message, where they were wanted

    @classmethod
    def of(
        cls, messages: Iterable[TokenizedMessage], wanted: Wanted = TOKENS_ALONE
    ) -> "LabelledCorpus":
        """Return the messages as a corpus; wanted: the numbers that models are to count."""
        excerpts: list[Excerpt] = []
        read = cls(Corpus(wanted), [], excerpts)
        for message in messages:
            read.corpus.add(message)
            read.sources.append(message.source)
            if message.excerpt is not None:
                excerpts.append(message.excerpt)
        return read

    @classmethod
    def of_pieces(cls, run: TrainingRun, wanted: Wanted) -> "LabelledCorpus":
        """Return the messages that a run has read; wanted: as they were read."""
        excerpts: list[Excerpt] = []
        read = cls(Corpus(wanted._replace(excerpt=0)), [], excerpts)
        for kept, piece in zip(run.kept, run.pieces(), strict=True):
            read.corpus.add_piece(piece)
            read.sources.extend(piece.sources)
            excerpts.extend(kept.summary.excerpts)
        return read

    def excerpt(self, i: int) -> Excerpt | None:
        """Return what is shown of message i, if that was wanted."""
        return self.excerpts[i] if self.excerpts else None

    def without_mislabelled(
        self, positive: str | None = None
    ) -> "tuple[LabelledCorpus, Mislabelled]":
        """Return the messages without those that are probably mislabelled, and these.

        positive: a class that is no mistake.
        """
        mistakes = mislabelled(self.corpus.labels, self.sources, positive)
        if not mistakes.messages:
            return self, mistakes
        rows = _Rows(self)
        excerpts: list[Excerpt] = []
        read = LabelledCorpus(Corpus(self.corpus.wanted), [], excerpts)
        for i, label in enumerate(self.corpus.labels):
            if label not in mistakes.sources:
                read.corpus.add(rows.message(i))
                read.sources.append(self.sources[i])
                excerpts.extend(self.excerpts[i : i + 1])
        return read, mistakes

    def for_model(self, settings: TrainingSettings) -> "LabelledCorpus":
        """Return the same messages with the numbers that such a model counts, and no others."""
        if settings.wanted.times or not self.corpus.wanted.times:
            return self
        return LabelledCorpus(self.corpus.without_times(), self.sources, self.excerpts)


def saved_model(
    spam_filter: Filter,
    messages: Iterable[TokenizedMessage],
    including_learned: bool = False,
    spam_label: str | None = None,
) -> Evaluation:
    """Return the outcome of every message by a filter that was trained before.

    messages: with digests, by which those that the model has learned are left out.
    including_learned: whether to test on them all the same.
    spam_label: the label of spam, if the labels are not the model's classes: any other is ham.
    Raises SourceError for labels that the model does not have, but for a few, which are left out.
    """
    settings = spam_filter.metadata.settings
    labels = LabelCheck(settings, spam_label)
    ledger = LedgerCheck(spam_filter, including_learned)
    tested = spam_filter.classifier.in_batches(ledger(labels(messages)))
    outcomes = [_outcome(spam_filter, message) for message in tested]
    mistakes = labels.result()
    if spam_label is not None and mistakes.messages:
        left_out = {source for sources in mistakes.sources.values() for source in sources}
        outcomes = [outcome for outcome in outcomes if outcome.judged.source not in left_out]
    return Evaluation(
        "saved model",
        settings.classes,
        settings.positive,
        outcomes,
        learned_before=ledger.result(),
        mislabelled=mistakes,
    )


def _outcome(spam_filter: Filter, message: TokenizedMessage, telling: bool = True) -> Outcome:
    outcome = _with_excerpt(spam_filter.judge(message), message.excerpt)
    if not (outcome.is_mistake and telling):
        return outcome
    return _explained(outcome, message, spam_filter.explain(message))


def _with_excerpt(judged: Verdict, excerpt: Excerpt | None) -> Outcome:
    return Outcome(judged, message=None if excerpt is None else without_highlights(excerpt))


def _explained(outcome: Outcome, message: TokenizedMessage, found: Explanation) -> Outcome:
    """Return an outcome with its telling words, and with them highlighted in the message."""
    shown = None if message.excerpt is None else highlighted_message(message, found).joined()
    readable = tuple(word for word in found.words if not is_fragment(word.token))
    return outcome._replace(words=(readable or found.words)[:TELLING_WORDS], message=shown)


def left_out(
    read: LabelledCorpus, settings: TrainingSettings, cut_offs: CutOffs, telling: bool = True
) -> Evaluation:
    """Leave-one-out: each message is scored by a model of all the others, in closed form.

    The calibrations, which are few numbers of all messages, are fitted to nine tenths of them for
    the messages of the other tenth (message i is in tenth i mod 10).
    telling: whether to keep the telling words of mistakes.
    """
    read = read.for_model(settings)
    fitted = _trained(read, None, settings)
    metadata, labels = fitted.metadata, read.corpus.labels
    scores = fitted.left_out_scores(read.corpus, _TENTHS)
    outcomes = [
        _with_excerpt(verdict_on(metadata, score, cut_offs, source, label), read.excerpt(i))
        for i, (score, source, label) in enumerate(zip(scores, read.sources, labels, strict=True))
    ]
    if telling and any(outcome.is_mistake for outcome in outcomes):
        rows = _Rows(read)
        counts = dict(token_counts(rows.vocabulary, fitted.counts))
        learner = OnlineLearner(metadata, counts)
        for i, outcome in enumerate(outcomes):
            if outcome.is_mistake:
                message = rows.message(i)
                _, label, tokens, _, _, numbers, _ = message
                learner.unlearn(label or "", tokens, numbers)
                found = explain(learner.classifier(), tokens, numbers)
                learner.learn(label or "", tokens, numbers)
                outcomes[i] = _explained(outcome, message, found)
    same = overlap.of_others(read.corpus.digests)
    return Evaluation("leave-one-out", *metadata.settings[:2], outcomes, duplicates=same)


def train_first(
    read: LabelledCorpus,
    first: int,
    settings: TrainingSettings,
    cut_offs: CutOffs,
    limit: float | None = None,
    telling: bool = True,
) -> Evaluation:
    """Train on the first messages in their order and test on the rest.

    limit: the share of ham that may be blocked; the first messages, each left out, then choose the
    cut-offs, as in `nbspam train`.
    """
    read = read.for_model(settings)
    n = len(read.corpus)
    if not 0 < first < n:
        raise OptionError(
            f"cannot train on the first {first} of {counted(n, 'message')} and test on the rest;"
            f" give a number from 1 to {max(1, n - 1)}"
        )
    train, test = np.arange(first), np.arange(first, n)
    try:
        fitted = _trained(read, train, settings)
        if limit is not None:
            scores = fitted.left_out_scores(read.corpus.presence()[train])
            cut_offs = cut_offs_within(limit, fitted, scores)
    except TrainingError as error:
        raise TrainingError(
            f"among the first {counted(first, 'message')} {error.problem}, mixed in order",
            error.remedy,
        ) from error
    untrained = sorted(set(read.corpus.labels[first:]) - set(fitted.metadata.settings.classes))
    if untrained:
        raise TrainingError(
            f"the class {untrained[0]!r} is not among the first {counted(first, 'message')}; train"
            " on more of them, or mix their order"
        )
    outcomes = _tested(read, fitted, test, cut_offs, telling)
    of_model = fitted.metadata.settings
    protocol = f"trained on the first {first}"
    same = overlap.of_first(read.corpus.digests, first)
    return Evaluation(
        protocol, of_model.classes, of_model.positive, outcomes, cut_offs, duplicates=same
    )


def folds(
    read: LabelledCorpus,
    k: int,
    settings: TrainingSettings,
    cut_offs: CutOffs,
    telling: bool = True,
    seed: int | None = None,
    shown: Shown = iter,
) -> Evaluation:
    """Cross-validate: each message is scored by a model of the other folds.

    Message i is in fold i mod k, counted within its class: every fold has each class's share, the
    same on every run.  With a seed the messages of each class are shuffled before they are counted.
    Outcomes come in the order of the messages.
    """
    read = read.for_model(settings)
    labels = read.corpus.labels
    classes, positive = class_names(read.corpus.labels, settings.positive)
    fewest = min(map(labels.count, classes))
    if fewest < 2:
        raise OptionError(
            "cannot make folds, since a class has one message; give two or more of each class, or"
            " leave one out"
        )
    if not 2 <= k <= fewest:
        raise OptionError(
            f"cannot make {counted(k, 'fold')}, since the smallest class has"
            f" {counted(fewest, 'message')}; give 2 to {fewest} folds"
        )
    fold = stratified_folds(labels, k, seed)
    outcomes: dict[int, Outcome] = {}
    for part in shown(range(k)):
        train, test = np.flatnonzero(fold != part), np.flatnonzero(fold == part)
        found = _tested(read, _trained(read, train, settings), test, cut_offs, telling)
        outcomes.update(zip(test.tolist(), found, strict=True))
    ordered = [outcomes[i] for i in range(len(labels))]
    same = overlap.of_folds(read.corpus.digests, fold)
    shuffled = "" if seed is None else f", shuffled with seed {seed}"
    return Evaluation(f"{k} folds{shuffled}", classes, positive, ordered, duplicates=same)


def online(
    read: LabelledCorpus,
    batch: int,
    settings: TrainingSettings,
    cut_offs: CutOffs,
    telling: bool = True,
    shown: Shown = iter,
) -> Evaluation:
    """Classify, then learn, in order, a batch at a time; the first batch is learned uncounted.

    It runs the code of an update of the model with each day's mail.
    """
    read = read.for_model(settings)
    labels = read.corpus.labels
    if batch < 1 or len(labels) <= batch:
        raise OptionError(
            f"a batch of {batch} is too large for {counted(len(labels), 'message')}, since the"
            " first batch is not counted; give a smaller number, at least 1"
            if batch > 0
            else f"a batch of {batch} is not possible; give a number of at least 1"
        )
    rows = _Rows(read)
    learner = _first_batch(read, rows, batch, settings)
    outcomes: list[Outcome] = []
    learned_so_far: list[int] = []
    for start in shown(range(batch, len(labels), batch)):
        spam_filter = Filter(learner.classifier(), cut_offs)
        messages = [rows.message(i) for i in range(start, min(start + batch, len(labels)))]
        outcomes += [_outcome(spam_filter, message, telling) for message in messages]
        learned_so_far += [start] * len(messages)
        _teach(learner, messages)
    of_model = learner.metadata.settings
    protocol = f"online, {batch} at a time, the first {batch} not counted"
    return Evaluation(
        protocol,
        of_model.classes,
        of_model.positive,
        outcomes,
        duplicates=overlap.of_batches(read.corpus.digests, batch),
        learned_so_far=learned_so_far,
    )


class _Rows:
    """The rows of a corpus' matrix as messages."""

    def __init__(self, read: LabelledCorpus) -> None:
        self._read = read
        self.vocabulary = read.corpus.vocabulary

    def message(self, i: int) -> TokenizedMessage:
        """Return message i."""
        message = self._read.corpus.message(i, self.vocabulary, self._read.sources[i])
        return message._replace(excerpt=self._read.excerpt(i))


def _first_batch(
    read: LabelledCorpus, rows: _Rows, batch: int, settings: TrainingSettings
) -> OnlineLearner:
    """Return a learner of the first messages; the classes are those of all, or of the base."""
    labels = read.corpus.labels
    if settings.base is None:
        classes, positive = class_names(labels, settings.positive)
        if set(labels[:batch]) == set(classes):
            fitted = _trained(read, np.arange(batch), settings)
            counts = dict(token_counts(read.corpus.vocabulary, fitted.counts))
            return OnlineLearner(fitted.metadata, counts)
        learner = OnlineLearner(empty_metadata(classes, positive, settings), {})
    else:
        first = first_metadata(labels, settings)
        settings.base.check("a model of these messages", first.settings)
        if strange := sorted(set(labels) - set(first.settings.classes)):
            raise TrainingError(
                f"the base {settings.base.path} has no class {strange[0]!r}; leave out either"
            )
        learner = OnlineLearner(first, {}, settings.base)
    _teach(learner, [rows.message(i) for i in range(batch)])
    return learner


def _teach(learner: OnlineLearner, messages: Sequence[TokenizedMessage]) -> None:
    for message in messages:
        learner.learn(message.label or "", message.tokens, message.numbers)
    for message in messages:
        learner.refine(message.label or "", message.tokens, message.numbers)


def _trained(read: LabelledCorpus, train: Integers | None, settings: TrainingSettings) -> Fit:
    """Return the model of some of the messages; None: of all."""
    corpus = read.corpus
    labels, channels, traits = corpus.labels, corpus.channels(), corpus.traits()
    presence: Presence | Corpus = corpus
    if train is not None:
        traits = None if traits is None else traits[train]
        labels = [labels[i] for i in train]
        presence = corpus.presence()[train]
    return fit(presence, labels, settings, channels, traits)


def _tested(
    read: LabelledCorpus, fitted: Fit, test: Integers, cut_offs: CutOffs, telling: bool
) -> list[Outcome]:
    labels = read.corpus.labels
    traits = read.corpus.traits()
    scores = fitted.scores(read.corpus.presence()[test], None if traits is None else traits[test])
    outcomes = [
        _with_excerpt(
            verdict_on(fitted.metadata, score, cut_offs, read.sources[i], labels[i]),
            read.excerpt(i),
        )
        for i, score in zip(test.tolist(), scores, strict=True)
    ]
    if not telling:
        return outcomes
    explained = _FittedExplainer(read, fitted)
    return [
        explained.explained(i, outcome) if outcome.is_mistake else outcome
        for i, outcome in zip(test.tolist(), outcomes, strict=True)
    ]


class _FittedExplainer:
    """The telling words of messages by a fitted model."""

    def __init__(self, read: LabelledCorpus, fitted: Fit) -> None:
        self._rows, self._counts = _Rows(read), fitted.counts
        self._columns: dict[str, int] = {}
        self._classifier = Classifier(fitted.metadata, self._counts_of)

    def explained(self, i: int, outcome: Outcome) -> Outcome:
        """Return the outcome of message i with its strongest words."""
        self._columns = self._columns or {t: j for j, t in enumerate(self._rows.vocabulary)}
        message = self._rows.message(i)
        found = explain(self._classifier, message.tokens, message.numbers)
        return _explained(outcome, message, found)

    def _counts_of(self, tokens: Iterable[str]) -> dict[str, Row]:
        rows = ((t, tuple(self._counts[:, self._columns[t]].tolist())) for t in tokens)
        return {token: row for token, row in rows if any(row)}
