"""Ways to test a filter on labelled messages it has not learned from."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import islice
from typing import NamedTuple

import numpy as np

from nbspam.bayes.matrix import Integers, Presence
from nbspam.errors import OptionError, TrainingError, counted
from nbspam.evaluation import messages as testing
from nbspam.evaluation.messages import LabelledCorpus
from nbspam.evaluation.results import Evaluation, Outcome
from nbspam.filter import TokenFilter
from nbspam.learning.batch import Fit, cut_offs_within, fit, ham_odds, token_counts
from nbspam.learning.corpus import Corpus
from nbspam.learning.online import OnlineLearner
from nbspam.learning.settings import TrainingSettings, class_names, empty_metadata, first_metadata
from nbspam.scoring.classifier import Classifier, counts_in
from nbspam.scoring.explanation import Explanation, explain
from nbspam.scoring.highlights import highlighted_message, without_highlights
from nbspam.scoring.verdict import CutOffs, Verdict, verdict_on
from nbspam.tokens.kinds import is_fragment
from nbspam.tokens.tokenized import Excerpt, TokenizedMessage

TELLING_WORDS = 8  # kept of each mistake
_TENTHS = 10
_BATCH = 500  # messages looked up in the ledger at a time
# Passes on the parts of a long test, and may show progress.
Progress = Callable[[Sequence[int]], Iterable[int]]


class Trial(NamedTuple):
    """The messages of a test, and the settings of the models."""

    dataset: LabelledCorpus
    settings: TrainingSettings
    cut_offs: CutOffs
    explains: bool = True  # whether to keep the strongest words of mistakes
    progress: Progress = iter

    def fitted(self, train: Integers | None = None) -> Fit:
        """Return the model of some of the messages; None: of all."""
        corpus = self.dataset.corpus
        labels, channels, traits = corpus.labels, corpus.channels(), corpus.traits()
        presence: Presence | Corpus = corpus
        if train is not None:
            traits = None if traits is None else traits[train]
            labels = [labels[i] for i in train]
            presence = corpus.presence()[train]
        return fit(presence, labels, self.settings, channels, traits)

    def tested(self, fitted: Fit, test: Integers) -> Iterator[Outcome]:
        """Yield the outcomes of some messages by a model that has not seen them."""
        counts = dict(token_counts(self.dataset.vocabulary, fitted.counts))
        classifier = Classifier(fitted.metadata, counts_in(counts))
        messages = map(self.dataset.message, test.tolist())
        return _outcomes(TokenFilter(classifier, self.cut_offs), messages, self.explains)


def saved_model(
    spam_filter: TokenFilter,
    messages: Iterable[TokenizedMessage],
    including_learned: bool = False,
    spam_label: str | None = None,
) -> Evaluation:
    """Return the evaluation of a saved model.

    messages: with digests; those that the model has learned are left out.
    including_learned: test on them, too.
    spam_label: the label of spam, if the labels are not the model's classes; any other is ham.
    Raises SourceError for labels that the model does not have, except a few, which are left out.
    """
    settings, learned = spam_filter.metadata.settings, Counter[bool]()
    labels = testing.LabelCheck(settings, spam_label)

    def to_test() -> Iterator[TokenizedMessage]:
        checked = labels(messages)
        while batch := list(islice(checked, _BATCH)):
            in_ledger = spam_filter.learned({message.digest for message in batch})
            for message in batch:
                is_learned = any(in_ledger.get(message.digest, ()))
                learned[is_learned] += 1
                if including_learned or not is_learned:
                    yield message

    outcomes = list(_outcomes(spam_filter, to_test()))
    mistakes = labels.result()
    if spam_label is not None and mistakes.messages:
        mistaken = {source for sources in mistakes.sources.values() for source in sources}
        outcomes = [outcome for outcome in outcomes if outcome.judged.source not in mistaken]
    unnamed = sum(spam_filter.without_ledger_entry())
    total = sum(spam_filter.personal_metadata.learned.messages)
    known = None if total and unnamed == total else learned[True]
    left_out = 0 if including_learned else learned[True]
    before = testing.LearnedBefore(learned.total(), known, left_out, unnamed)
    fields = "saved model", *settings[:2], outcomes, spam_filter.cut_offs
    return Evaluation(*fields, learned_before=before, mislabelled=mistakes)


def _outcomes(
    spam_filter: TokenFilter, messages: Iterable[TokenizedMessage], explains: bool = True
) -> Iterator[Outcome]:
    for message in messages:
        outcome = _with_excerpt(spam_filter.classify_tokens(message), message.excerpt)
        if explains and outcome.is_mistake:
            outcome = _explained(outcome, message, spam_filter.explain(message))
        yield outcome


def _with_excerpt(judged: Verdict, excerpt: Excerpt | None) -> Outcome:
    return Outcome(judged, message=None if excerpt is None else without_highlights(excerpt))


def _explained(outcome: Outcome, message: TokenizedMessage, explanation: Explanation) -> Outcome:
    """Return an outcome with its strongest words, highlighted in the excerpt."""
    shown = message.excerpt and highlighted_message(message, explanation).joined()
    readable = tuple(word for word in explanation.words if not is_fragment(word.token))
    return outcome._replace(words=(readable or explanation.words)[:TELLING_WORDS], message=shown)


def left_out(trial: Trial) -> Evaluation:
    """Leave-one-out: each message is scored by a model of all the others, in closed form.

    The calibrations, which are few numbers of all messages, are fitted to nine tenths of them for
    the messages of the other tenth (message i is in tenth i mod 10).
    """
    dataset, fitted = trial.dataset, trial.fitted()

    @cache
    def learner() -> OnlineLearner:
        return OnlineLearner(fitted.metadata, dict(token_counts(dataset.vocabulary, fitted.counts)))

    outcomes = []
    for i, score in enumerate(fitted.left_out_scores(dataset.corpus, _TENTHS)):
        source, label = dataset.sources[i], dataset.corpus.labels[i]
        verdict = verdict_on(fitted.metadata, score, trial.cut_offs, source, label)
        outcome = _with_excerpt(verdict, dataset.excerpt(i))
        if trial.explains and outcome.is_mistake:
            message = dataset.message(i)
            learned = message.label or "", message.tokens, message.numbers
            learner().unlearn(*learned)
            explanation = explain(learner().classifier(), message.tokens, message.numbers)
            learner().learn(*learned)
            outcome = _explained(outcome, message, explanation)
        outcomes.append(outcome)
    same = testing.same_in_folds(dataset.corpus.digests, range(len(outcomes)))
    settings = fitted.metadata.settings[:2]
    return Evaluation("leave-one-out", *settings, outcomes, trial.cut_offs, duplicates=same)


def train_first(trial: Trial, first: int, limit: float | None = None) -> Evaluation:
    """Train on the first messages in their order and test on the rest.

    limit: the share of ham that may be blocked; the first messages, each left out, then choose the
    cut-offs, as in `nbspam train`.
    """
    dataset, n = trial.dataset, len(trial.dataset.corpus)
    if not 0 < first < n:
        raise OptionError(
            f"cannot train on the first {first} of {counted(n, 'message')} and test on the rest;"
            f" give a number from 1 to {max(1, n - 1)}"
        )
    train, test = np.arange(first), np.arange(first, n)
    try:
        fitted = trial.fitted(train)
        if limit is not None:
            scores = fitted.left_out_scores(dataset.corpus.presence()[train])
            ham = ham_odds(fitted.metadata, dataset.corpus.labels[:first], scores)
            trial = trial._replace(cut_offs=cut_offs_within(limit, fitted.metadata, ham))
    except TrainingError as error:
        raise TrainingError(
            f"among the first {counted(first, 'message')}, in their order, {error.problem}",
            error.remedy,
            **error.values,
        ) from error
    untrained = sorted(set(dataset.corpus.labels[first:]) - set(fitted.metadata.settings.classes))
    if untrained:
        raise TrainingError(
            f"the class {untrained[0]!r} is not among the first {counted(first, 'message')}; train"
            " on more of them, or mix their order"
        )
    outcomes = list(trial.tested(fitted, test))
    same = testing.same_in_batches(dataset.corpus.digests, first)
    protocol, classes = f"trained on the first {first}", fitted.metadata.settings[:2]
    return Evaluation(protocol, *classes, outcomes, trial.cut_offs, duplicates=same)


def folds(trial: Trial, k: int, seed: int | None = None) -> Evaluation:
    """Cross-validate: each message is scored by a model of the other folds.

    Message i is in fold i mod k, counted within its class: every fold has each class's share, the
    same on every run.  With a seed the messages of each class are shuffled before they are counted.
    Outcomes come in the order of the messages.
    """
    labels = trial.dataset.corpus.labels
    classes, positive = class_names(labels, trial.settings.positive)
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
    fold = testing.stratified_folds(labels, k, seed)
    outcomes: dict[int, Outcome] = {}
    for part in trial.progress(range(k)):
        test = np.flatnonzero(fold == part)
        tested = trial.tested(trial.fitted(np.flatnonzero(fold != part)), test)
        outcomes.update(zip(test.tolist(), tested, strict=True))
    ordered = [outcomes[i] for i in range(len(labels))]
    same = testing.same_in_folds(trial.dataset.corpus.digests, fold.tolist())
    shuffled = "" if seed is None else f", shuffled with seed {seed}"
    fields = f"{k} folds{shuffled}", classes, positive, ordered, trial.cut_offs
    return Evaluation(*fields, duplicates=same)


def online(trial: Trial, batch: int) -> Evaluation:
    """Classify, then learn, in order, a batch at a time; the first batch is learned uncounted.

    It runs the code of an update of the model with each day's mail.
    """
    dataset, labels = trial.dataset, trial.dataset.corpus.labels
    if batch < 1 or len(labels) <= batch:
        raise OptionError(
            f"a batch of {batch} is too large for {counted(len(labels), 'message')}, since the"
            " first batch is not counted; give a smaller number, at least 1"
            if batch > 0
            else f"a batch of {batch} is not possible; give a number of at least 1"
        )
    learner = _first_batch(trial, batch)
    outcomes: list[Outcome] = []
    learned_so_far: list[int] = []
    for start in trial.progress(range(batch, len(labels), batch)):
        spam_filter = TokenFilter(learner.classifier(), trial.cut_offs)
        messages = [dataset.message(i) for i in range(start, min(start + batch, len(labels)))]
        outcomes += _outcomes(spam_filter, messages, trial.explains)
        learned_so_far += [start] * len(messages)
        _teach(learner, messages)
    protocol = f"online, {batch} at a time, the first {batch} not counted"
    same = testing.same_in_batches(dataset.corpus.digests, batch, batch)
    fields = protocol, *learner.metadata.settings[:2], outcomes, trial.cut_offs
    return Evaluation(*fields, duplicates=same, learned_so_far=learned_so_far)


def _first_batch(trial: Trial, batch: int) -> OnlineLearner:
    """Return a learner of the first messages; the classes are those of all, or of the base."""
    dataset, settings = trial.dataset, trial.settings
    labels = dataset.corpus.labels
    if settings.base is None:
        classes, positive = class_names(labels, settings.positive)
        if set(labels[:batch]) == set(classes):
            fitted = trial.fitted(np.arange(batch))
            counts = dict(token_counts(dataset.vocabulary, fitted.counts))
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
    _teach(learner, [dataset.message(i) for i in range(batch)])
    return learner


def _teach(learner: OnlineLearner, messages: Sequence[TokenizedMessage]) -> None:
    for message in messages:
        learner.learn(message.label or "", message.tokens, message.numbers)
    for message in messages:
        learner.refine(message.label or "", message.tokens, message.numbers)
