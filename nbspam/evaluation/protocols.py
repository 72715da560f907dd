"""Protocols that test a filter on labelled messages it has not learned from."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import islice
from typing import NamedTuple

import numpy as np

from nbspam.bayes.matrix import Integers, Matrix
from nbspam.errors import OptionError, TrainingError, format_count
from nbspam.evaluation import messages as testing
from nbspam.evaluation.results import Evaluation, Outcome
from nbspam.learning.batch import Fit, cut_offs_within, fit, ham_odds, token_counts
from nbspam.learning.corpus import Corpus
from nbspam.learning.learner import Learner
from nbspam.learning.settings import TrainingSettings, class_names, empty_metadata, first_metadata
from nbspam.scoring.classifier import Classifier, dict_lookup
from nbspam.scoring.explanation import Explanation, explain
from nbspam.scoring.highlights import highlight_message, without_highlights
from nbspam.scoring.verdict import CutOffs, Verdict, make_verdict
from nbspam.scoring.version import FilterVersion
from nbspam.store.lookup import Model
from nbspam.tokens.tokenized import Excerpt, TokenizedMessage

N_STRONGEST_WORDS = 8  # words kept for each mistake
# parts of leave-one-out; each tenth's calibration is fitted to the other nine tenths
_N_PARTS = 10
_LOOKUP_BATCH = 500  # messages looked up in the ledger at a time
# Passes on the parts of a long test, and may show progress.
Progress = Callable[[Sequence[int]], Iterable[int]]


class Trial(NamedTuple):
    """The messages of a test, and the settings of the models."""

    corpus: Corpus
    settings: TrainingSettings
    cut_offs: CutOffs
    explain_mistakes: bool = True  # whether to keep the strongest words of mistakes
    progress: Progress = iter

    def fit_model(self, train: Integers | None = None) -> Fit:
        """Fit a model to some of the messages; None: to all messages."""
        corpus = self.corpus
        labels, channels, traits = corpus.labels, corpus.channels(), corpus.traits()
        presence: Matrix = corpus
        keys = corpus.keys()
        if train is not None:
            traits = None if traits is None else traits[train]
            labels = [labels[i] for i in train]
            presence, keys = corpus.presence()[train], keys[train]
        return fit(presence, labels, self.settings, channels, traits, keys)

    def whole_model(self) -> Model:
        """Return a model of all messages, without a ledger."""
        fitted = self.fit_model()
        return Model(fitted.metadata, dict(token_counts(self.corpus.vocabulary, fitted.counts)), {})

    def test_model(self, fitted: Fit, test: Integers) -> Iterator[Outcome]:
        """Classify some messages with a model that has not seen them."""
        counts = dict(token_counts(self.corpus.vocabulary, fitted.counts))
        classifier = Classifier(fitted.metadata, dict_lookup(counts))
        messages = map(self.corpus.message, test.tolist())
        return _outcomes(FilterVersion(classifier, self.cut_offs), messages, self.explain_mistakes)


def saved_model(
    version: FilterVersion,
    messages: Iterable[TokenizedMessage],
    including_learned: bool = False,
    spam_label: str | None = None,
) -> Evaluation:
    """Test a saved model.

    messages: must have digests; messages that the model has learned are left out.
    including_learned: test on learned messages, too.
    spam_label: the label of spam if the labels are not the model's classes; other labels mean ham.
    Messages with an unknown label are left out if they are few; otherwise raises SourceError.
    """
    settings, learned = version.metadata.settings, Counter[bool]()
    labels = testing.LabelCheck(settings, spam_label)

    def messages_to_test() -> Iterator[TokenizedMessage]:
        checked = labels(messages)
        while batch := list(islice(checked, _LOOKUP_BATCH)):
            in_ledger = version.ledger_rows({message.digest for message in batch})
            for message in batch:
                is_learned = any(in_ledger.get(message.digest, ()))
                learned[is_learned] += 1
                if including_learned or not is_learned:
                    yield message

    outcomes = list(_outcomes(version, messages_to_test()))
    mistakes = labels.result()
    if spam_label is not None and mistakes.messages:
        mistaken = {source for sources in mistakes.sources.values() for source in sources}
        outcomes = [
            outcome for outcome in outcomes if outcome.classification.source not in mistaken
        ]
    not_in_ledger = sum(version.lookup.without_ledger_entry()) if version.lookup else 0
    total = sum(version.personal_metadata.learned.messages)
    known = None if total and not_in_ledger == total else learned[True]
    left_out = 0 if including_learned else learned[True]
    before = testing.LearnedBefore(learned.total(), known, left_out, not_in_ledger)
    fields = "saved model", *settings[:2], outcomes, version.cut_offs
    return Evaluation(*fields, learned_before=before, mislabelled=mistakes)


def _outcomes(
    version: FilterVersion, messages: Iterable[TokenizedMessage], explain_mistakes: bool = True
) -> Iterator[Outcome]:
    for message in messages:
        outcome = _make_outcome(version.classify(message), message.excerpt)
        if explain_mistakes and outcome.is_mistake:
            outcome = _add_explanation(outcome, message, version.explain(message))
        yield outcome


def _make_outcome(classification: Verdict, excerpt: Excerpt | None) -> Outcome:
    return Outcome(classification, message=None if excerpt is None else without_highlights(excerpt))


def _add_explanation(
    outcome: Outcome, message: TokenizedMessage, explanation: Explanation
) -> Outcome:
    """Add the strongest words to an outcome, and highlight them in the excerpt."""
    shown = message.excerpt and highlight_message(message, explanation).merge_runs()
    return outcome._replace(
        words=(explanation.readable_words or explanation.words)[:N_STRONGEST_WORDS], message=shown
    )


def leave_one_out(trial: Trial) -> Evaluation:
    """Score each message with a model of all the other messages, computed without training it.

    The copies of a message are left out together with the message.

    The calibrations are not fitted again for each message, but once for each tenth of the messages,
    to the other nine tenths (message i is in tenth i mod 10).
    """
    corpus, fitted = trial.corpus, trial.fit_model()

    @cache
    def learner() -> Learner:
        return Learner(fitted.metadata, dict(token_counts(corpus.vocabulary, fitted.counts)))

    outcomes = []
    for i, score in enumerate(fitted.left_out_scores(_N_PARTS)):
        source, label = corpus.sources[i], corpus.labels[i]
        verdict = make_verdict(fitted.metadata, score, trial.cut_offs, source, label)
        outcome = _make_outcome(verdict, corpus.excerpt(i))
        if trial.explain_mistakes and outcome.is_mistake:
            message = corpus.message(i)
            learned = message.label or "", message.tokens, message.extras
            learner().unlearn(*learned)
            explanation = explain(learner().classifier(), message.tokens, message.extras)
            learner().learn(*learned)
            outcome = _add_explanation(outcome, message, explanation)
        outcomes.append(outcome)
    settings, n_texts = fitted.metadata.settings[:2], sum(fitted.n_texts().values())
    return Evaluation("leave-one-out", *settings, outcomes, trial.cut_offs, n_texts=n_texts)


def count_first(text: str, n: int) -> int:
    """Convert a number or a percentage of n messages to a number; raises OptionError."""
    try:
        return round(n * float(text[:-1]) / 100) if text.endswith("%") else int(text)
    except (ValueError, OverflowError) as error:
        raise OptionError(
            f"cannot train on the first {text!r}, which is neither a number nor a percentage; try"
            " 1000 or 30%"
        ) from error


def train_first(trial: Trial, first: int, limit: float | None = None) -> Evaluation:
    """Train on the first messages, in their order, and test on the rest.

    limit: the share of ham that may be blocked.  With a limit, leave-one-out on the first messages
    chooses the cut-offs, as in `nbspam train`.
    """
    corpus, n = trial.corpus, len(trial.corpus)
    if not 0 < first < n:
        raise OptionError(
            f"cannot train on the first {first} of {format_count(n, 'message')} and test on the"
            f" rest; give a number from 1 to {max(1, n - 1)}"
        )
    train, test = np.arange(first), np.arange(first, n)
    try:
        fitted = trial.fit_model(train)
        if limit is not None:
            ham = ham_odds(fitted.metadata, corpus.labels[:first], fitted.left_out_scores())
            trial = trial._replace(cut_offs=cut_offs_within(limit, fitted.metadata, ham))
    except TrainingError as error:
        raise TrainingError(
            f"among the first {format_count(first, 'message')}, in their order, {error.problem}",
            error.remedy,
            **error.values,
        ) from error
    untrained = sorted(set(corpus.labels[first:]) - set(fitted.metadata.settings.classes))
    if untrained:
        raise TrainingError(
            f"the class {untrained[0]!r} is not among the first {format_count(first, 'message')};"
            " train on more of them, or mix their order"
        )
    outcomes = list(trial.test_model(fitted, test))
    same = testing.duplicates_across_batches(corpus.digests, first)
    protocol, classes = f"trained on the first {first}", fitted.metadata.settings[:2]
    return Evaluation(protocol, *classes, outcomes, trial.cut_offs, duplicates=same)


def folds(trial: Trial, k: int, seed: int | None = None) -> Evaluation:
    """Cross-validate: each message is scored by a model of the other folds.

    The i-th message of a class is in fold i mod k, so every fold has the same share of each class,
    and every run the same folds.  With a seed, the messages of each class are shuffled first.
    Outcomes are in the order of the messages.
    """
    labels = trial.corpus.labels
    classes, positive = class_names(labels, trial.settings.positive)
    fewest = min(map(labels.count, classes))
    if fewest < 2:
        raise OptionError(
            "cannot make folds, since a class has one message; give two or more messages of each"
            " class, or leave that class out"
        )
    if not 2 <= k <= fewest:
        raise OptionError(
            f"cannot make {format_count(k, 'fold')}, since the smallest class has"
            f" {format_count(fewest, 'message')}; give 2 to {fewest} folds"
        )
    fold = testing.stratified_folds(labels, k, seed)
    outcomes: dict[int, Outcome] = {}
    for part in trial.progress(range(k)):
        test = np.flatnonzero(fold == part)
        tested = trial.test_model(trial.fit_model(np.flatnonzero(fold != part)), test)
        outcomes.update(zip(test.tolist(), tested, strict=True))
    ordered = [outcomes[i] for i in range(len(labels))]
    same = testing.duplicates_across_folds(trial.corpus.digests, fold.tolist())
    shuffled = "" if seed is None else f", shuffled with seed {seed}"
    fields = f"{k} folds{shuffled}", classes, positive, ordered, trial.cut_offs
    return Evaluation(*fields, duplicates=same)


def online(trial: Trial, batch: int) -> Evaluation:
    """Classify, then learn, in order, a batch at a time; the first batch is only learned.

    This runs the same code as the daily update of a model.
    """
    corpus, labels = trial.corpus, trial.corpus.labels
    if batch < 1 or len(labels) <= batch:
        raise OptionError(
            f"a batch of {batch} is too large for {format_count(len(labels), 'message')}, since the"
            " first batch is not counted; give a smaller number, at least 1"
            if batch > 0
            else f"a batch of {batch} is not possible; give a number of at least 1"
        )
    learner = _first_batch(trial, batch)
    outcomes: list[Outcome] = []
    learned_so_far: list[int] = []
    for start in trial.progress(range(batch, len(labels), batch)):
        version = FilterVersion(learner.classifier(), trial.cut_offs)
        messages = [corpus.message(i) for i in range(start, min(start + batch, len(labels)))]
        outcomes += _outcomes(version, messages, trial.explain_mistakes)
        learned_so_far += [start] * len(messages)
        _teach(learner, messages)
    protocol = f"online, {batch} at a time, the first {batch} not counted"
    same = testing.duplicates_across_batches(corpus.digests, batch, batch)
    fields = protocol, *learner.metadata.settings[:2], outcomes, trial.cut_offs
    return Evaluation(*fields, duplicates=same, learned_so_far=learned_so_far)


def _first_batch(trial: Trial, batch: int) -> Learner:
    """Return a learner that has learned the first batch.

    Its classes are all labels, or the base's.
    """
    corpus, settings = trial.corpus, trial.settings
    labels = corpus.labels
    if settings.base is None:
        classes, positive = class_names(labels, settings.positive)
        if set(labels[:batch]) == set(classes):
            fitted = trial.fit_model(np.arange(batch))
            counts = dict(token_counts(corpus.vocabulary, fitted.counts))
            return Learner(fitted.metadata, counts)
        learner = Learner(empty_metadata(classes, positive, settings), {})
    else:
        first = first_metadata(labels, settings)
        settings.base.check("a model of these messages", first.settings)
        if unknown := sorted(set(labels) - set(first.settings.classes)):
            raise TrainingError(
                f"the base {settings.base.path} has no class {unknown[0]!r}; leave out either"
            )
        learner = Learner(first, {}, settings.base)
    _teach(learner, [corpus.message(i) for i in range(batch)])
    return learner


def _teach(learner: Learner, messages: Sequence[TokenizedMessage]) -> None:
    for message in messages:
        learner.learn(message.label or "", message.tokens, message.extras)
    for message in messages:
        learner.refine(message.label or "", message.tokens, message.extras)
