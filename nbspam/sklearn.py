"""nbspam as a classifier of scikit-learn: in pipelines, searches and cross-validation.

from sklearn.model_selection import cross_val_score
from nbspam.sklearn import NBSpam

cross_val_score(NBSpam(), texts, labels, cv=5)
"""

from functools import partial
from typing import Any

import numpy as np

from nbspam.bayes.event_model import BERNOULLI, class_log_odds
from nbspam.errors import OptionError, SourceError, needs_extra
from nbspam.filter import Filter
from nbspam.learning.settings import TrainingSettings, first_metadata
from nbspam.library import train
from nbspam.names import SPAM, UNSURE, normal_label
from nbspam.reading.rows import label_text
from nbspam.store.lookup import Model
from nbspam.store.metadata import EVIDENCE
from nbspam.store.model_file import UnsavedModel, write_lines

try:
    from sklearn import base, utils  # type: ignore[import-untyped]
    from sklearn.utils.multiclass import (  # type: ignore[import-untyped]
        check_classification_targets,
    )
    from sklearn.utils.validation import check_is_fitted  # type: ignore[import-untyped]
except ImportError as error:
    raise ImportError(needs_extra("nbspam.sklearn", "scikit-learn", "sklearn")) from error


class NBSpam(base.ClassifierMixin, base.BaseEstimator):  # type: ignore[misc]
    """A classifier of texts and mails.

    The parameters are as in `nbspam.train`.  Labels may be of any type; spam is the class that
    `spam_label` names, else the class called spam, else the second of two classes.  A fitted
    estimator has `classes_`, and `filter_`, which explains, learns and can be saved.  Messages, X,
    are a list or a column: n_messages texts or bytes; `n_features_in_` is 1.

    >>> from nbspam.sklearn import NBSpam
    >>> labels, texts = zip(*pairs)
    >>> fitted = NBSpam(alpha=0.1).fit(texts, labels)
    >>> fitted.predict(["win a prize"]).tolist()
    ['spam']
    """

    def __init__(
        self,
        *,
        alpha: float | None = None,
        prior: float | None = None,
        scoring: str = EVIDENCE,
        event_model: str = BERNOULLI,
        traits: str | None = None,
        spam_label: object = None,
        jobs: int = 1,
    ) -> None:
        self.alpha, self.prior, self.scoring = alpha, prior, scoring
        self.event_model, self.traits = event_model, traits
        self.spam_label, self.jobs = spam_label, jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "NBSpam":  # noqa: N803 (as there)
        """Learn messages (text or bytes) and their labels; raises NbspamError.

        sample_weight: how often each message is learned, in whole numbers.

        >>> fitted.fit(texts, labels, sample_weight=[2] * 18).filter_.metadata.learned.messages
        (18, 18)
        """
        texts, labels = _repeat_by_weight(X, y, sample_weight)
        self.classes_, which = np.unique(labels, return_inverse=True)
        names, spam = self._named()
        self.filter_ = train(
            zip([names[k] for k in which.tolist()], texts, strict=True),
            **self.get_params(deep=False) | {"spam_label": spam},
        )
        self._fit_names(names)
        return self

    def partial_fit(
        self,
        X: Any,  # noqa: N803
        y: Any,
        classes: Any = None,
        sample_weight: Any = None,
    ) -> "NBSpam":
        """Learn more messages like an update of a model: each once, however often it is passed.

        A message passed with another label is moved.  A first call with messages of all classes is
        like `fit`: a message counts as often as it is passed.
        classes: all labels of this and later calls; the first call needs them unless it has all
        labels.
        sample_weight: as in `fit`, summed over all calls.
        Raises NbspamError, also for a label that is not a class.

        >>> fitted.partial_fit(["see you at nine"], ["ham"]).filter_.metadata.learned.messages
        (19, 18)
        """
        texts, labels = _repeat_by_weight(X, y, sample_weight)
        is_first = not hasattr(self, "filter_")
        known = np.unique(labels if classes is None else classes) if is_first else self.classes_
        if len(unknown := np.setdiff1d(labels, known)):
            raise SourceError(
                f"the label {unknown.tolist()[0]!r} is not among the classes of the first call;"
                " name all classes there"
            )
        if len(known) < 2:
            raise OptionError(
                "the first call of partial_fit has labels of one class; name all with classes"
            )
        if is_first and len(np.unique(labels)) == len(known):
            return self.fit(texts, labels)
        if is_first:
            self.classes_ = known
            names, spam = self._named()
            settings = TrainingSettings(
                self.alpha, self.prior, self.scoring, spam, self.event_model, self.traits
            )
            settings.check()
            model = Model(first_metadata(names, settings), {}, {})
            self.filter_ = Filter(UnsavedModel(partial(write_lines, model=model)))
            self._fit_names(names)
        which = np.searchsorted(self.classes_, labels).tolist()
        names = [self.filter_.classes[self._places[k]] for k in which]
        self.filter_.learn(zip(names, texts, strict=True))
        return self

    def _named(self) -> tuple[list[str], str | None]:
        """Return the names of the classes in a model, and of spam; raises OptionError."""
        labels = self.classes_.tolist()
        names = [label_text(label) or normal_label(str(label)) for label in labels]
        # Labels such as Spam and spam, which are two classes here, or a name that no class of a
        # model can have.
        if len({*names, "", UNSURE}) < len(names) + 2:
            names = [f"class {k}" for k in range(len(names))]
        if self.spam_label is None:
            return names, names[-1] if len(names) == 2 and SPAM not in names else None
        same = label_text(self.spam_label) or self.spam_label
        class_labels = [label_text(label) or label for label in labels]
        if same not in class_labels:
            raise OptionError(
                f"no message is labelled {self.spam_label!r}; name one of"
                f" {', '.join(map(repr, labels))}"
            )
        return names, names[class_labels.index(same)]

    def _fit_names(self, names: list[str]) -> None:
        self._places = [self.filter_.classes.index(name) for name in names]
        self.n_features_in_ = 1

    def predict_proba(self, X: Any) -> Any:  # noqa: N803
        """Return the probability of each class, (n_messages, n_classes), ordered as `classes_`.

        Raises NotFittedError and SourceError, like all methods below.

        >>> fitted.predict_proba(["win a prize"]).shape
        (1, 2)
        """
        check_is_fitted(self, "filter_")
        return self.filter_.probabilities(_texts(X), jobs=self.jobs)[:, self._places]

    def predict_log_proba(self, X: Any) -> Any:  # noqa: N803
        """Return the logarithms of `predict_proba`, all finite.

        >>> fitted.predict_log_proba(["win a prize"]).shape
        (1, 2)
        """
        return -np.logaddexp(0, -self._odds(X))

    def decision_function(self, X: Any) -> Any:  # noqa: N803
        """Return the log-odds of `classes_[1]` in nats, (n_messages,).

        With three or more classes, the log-odds of each class against the others, (n_messages,
        n_classes).

        >>> fitted.decision_function(["win a prize", "lunch at noon"]) > 0
        array([ True, False])
        """
        odds = self._odds(X)
        return odds[:, 1] if len(self.classes_) == 2 else odds

    def predict(self, X: Any) -> Any:  # noqa: N803
        """Return the most probable class of each message, (n_messages,); no cut-off decides.

        >>> fitted.predict(["win a prize", "lunch at noon"]).tolist()
        ['spam', 'ham']
        """
        best = self._odds(X).argmax(axis=1)  # raises for an estimator that is not fitted
        return self.classes_[best]

    def _odds(self, X: Any) -> Any:  # noqa: N803
        """Return the log-odds of each class against the others, (n_messages, n_classes)."""
        check_is_fitted(self, "filter_")
        verdicts: Any = self.filter_.classify_many(_texts(X), jobs=self.jobs)
        places, positive = self._places, self.filter_.metadata.settings.positive_index
        odds = [
            [v.log_odds if k == positive else -v.log_odds for k in places]
            if len(places) == 2
            else [class_log_odds(v.score.log_scores, k) for k in places]
            for v in verdicts
        ]
        return np.array(odds, float).reshape(-1, len(places))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        accepted = tags.input_tags
        accepted.one_d_array, accepted.two_d_array, accepted.string = True, False, True
        return tags


def _repeat_by_weight(messages: Any, y: Any, weights: Any) -> tuple[list[str | bytes], Any]:
    """Return messages and their labels, each as often as its weight says; raises NbspamError."""
    # as objects, so that NaN does not become "nan"
    labels_list = np.asarray(y, object).ravel().tolist()
    texts, labels = _texts(messages), utils.column_or_1d(y, warn=True)
    utils.check_consistent_length(texts, labels)
    missing = np.flatnonzero([label_text(label) == "" for label in labels_list])
    if len(missing):
        raise SourceError(
            f"{len(missing)} of {len(labels)} labels are missing, the first of message"
            f" {missing[0]}; give each message a label, or leave those out"
        )
    if weights is not None:
        times = _times(weights, len(labels))
        labels = np.repeat(labels, times)
        texts = [text for text, n in zip(texts, times, strict=True) for _ in range(n)]
    check_classification_targets(labels)
    return texts, labels


def _times(weights: Any, n: int) -> list[int]:
    """Return how often each of n messages is learned; raises OptionError."""
    try:
        repeats = np.broadcast_to(np.asarray(weights, float), n)
    # not numbers, or not one number per message
    except (TypeError, ValueError) as error:
        raise OptionError(
            f"sample_weight must be a whole number for each of the {n:,} messages; give such"
            " numbers, or leave it out"
        ) from error
    times = np.nan_to_num(repeats, posinf=0, neginf=0).astype(int)
    wrong = np.flatnonzero((times != repeats) | (times < 0))
    if len(wrong):
        raise OptionError(
            f"sample_weight {repeats[wrong[0]]:g} of message {wrong[0]} must be a whole number, as"
            " it says how often the message is learned; give such numbers, or leave it out"
        )
    return times.tolist()  # type: ignore[no-any-return]


def _texts(messages: Any) -> list[str | bytes]:
    """Return the messages of a list or a column; raises SourceError for any other item."""
    if getattr(messages, "ndim", 1) == 2 and messages.shape[1] == 1:
        messages = np.asarray(messages, object).ravel()
    is_list = hasattr(messages, "__iter__") and not isinstance(messages, str | bytes)
    if not is_list or getattr(messages, "ndim", 1) != 1:
        raise SourceError("the messages are not a list; give a list or one column of text or bytes")
    texts = list(messages)
    for i, message in enumerate(texts):
        if not isinstance(message, str | bytes):
            if label_text(message) == "":
                problem = f"row {i} has no text ({message}); give it one, or leave the row out"
                raise SourceError(problem)
            raise SourceError(
                f"message {i} is of the type {type(message).__name__}; give it as text or bytes"
            )
    return texts
