"""nbspam as a classifier of scikit-learn: in pipelines, searches and cross-validation.

from sklearn.model_selection import cross_val_score
from nbspam.sklearn import NBSpam

cross_val_score(NBSpam(), texts, labels, cv=5)
"""

from typing import Any

import numpy as np

from nbspam.bayes.event_model import BERNOULLI
from nbspam.errors import OptionError, SourceError, install_command
from nbspam.filter import train
from nbspam.names import SPAM, UNSURE, normal_label
from nbspam.reading.rows import label_text
from nbspam.store.metadata import EVIDENCE

try:
    from sklearn import base, utils  # type: ignore[import-untyped]
    from sklearn.utils.multiclass import (  # type: ignore[import-untyped]
        check_classification_targets,
    )
    from sklearn.utils.validation import check_is_fitted  # type: ignore[import-untyped]
except ImportError as error:
    raise ImportError(
        f"nbspam.sklearn needs scikit-learn; install it with: {install_command('scikit-learn')}"
    ) from error


class NBSpam(base.ClassifierMixin, base.BaseEstimator):  # type: ignore[misc]
    """A classifier of texts and mails.

    Its parameters are those of `nbspam.train`.  Labels may be of any type; of two classes that is
    spam which is called so, or else the second in their order, unless `spam_label` names it.
    Fitted it has `classes_`, and `filter_`, which explains, learns and can be saved.
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

    def fit(self, X: Any, y: Any) -> "NBSpam":  # noqa: N803 (as there)
        """Learn messages (text or bytes) and their labels; raises NbspamError."""
        texts, labels = _texts(X), utils.column_or_1d(y, warn=True)
        utils.check_consistent_length(texts, labels)
        labels_list = np.asarray(y, object).ravel().tolist()  # where NaN is not "nan" yet
        missing = np.flatnonzero([label_text(label) == "" for label in labels_list])
        if len(missing):
            raise SourceError(
                f"{len(missing)} of {len(labels)} labels are missing, the first of message"
                f" {missing[0]}; give each message a label, or leave those out"
            )
        check_classification_targets(labels)
        self.classes_, which = np.unique(labels, return_inverse=True)
        names = [normal_label(str(label)) for label in self.classes_.tolist()]
        # Such as Spam and spam, which are two here, or a name that no class can have.
        if len({*names, "", UNSURE}) < len(names) + 2:
            names = [f"class {k}" for k in range(len(names))]
        spam = names[-1] if len(names) == 2 and SPAM not in names else None
        if self.spam_label is not None:
            same = label_text(self.spam_label) or self.spam_label
            class_labels = [label_text(label) or label for label in self.classes_.tolist()]
            places = [k for k, label in enumerate(class_labels) if label == same]
            if not places:
                raise OptionError(
                    f"no message is labelled {self.spam_label!r}; name one of"
                    f" {', '.join(map(repr, self.classes_.tolist()))}"
                )
            spam = names[places[0]]
        self.filter_ = train(
            zip([names[k] for k in which.tolist()], texts, strict=True),
            alpha=self.alpha,
            prior=self.prior,
            scoring=self.scoring,
            event_model=self.event_model,
            traits=self.traits,
            spam_label=spam,
            jobs=self.jobs,
        )
        self._places = [self.filter_.classes.index(name) for name in names]
        return self

    def predict_proba(self, X: Any) -> Any:  # noqa: N803
        """Return the probability of each class, (n_messages, n_classes), as `classes_` has them."""
        check_is_fitted(self)
        return self.filter_.probabilities(_texts(X), jobs=self.jobs)[:, self._places]

    def predict_log_proba(self, X: Any) -> Any:  # noqa: N803
        """Return the logarithms of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: Any) -> Any:  # noqa: N803
        """Return the most probable class of each message; no cut-off decides."""
        probabilities = self.predict_proba(X)
        return self.classes_[probabilities.argmax(axis=1)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        accepted = tags.input_tags
        accepted.one_d_array, accepted.two_d_array, accepted.string = True, False, True
        return tags


def _texts(messages: Any) -> list[str | bytes]:
    """Return the messages of a list or a column; raises SourceError for what is none."""
    if getattr(messages, "ndim", 1) == 2 and messages.shape[1] == 1:
        messages = np.asarray(messages, object).ravel()
    is_list = hasattr(messages, "__iter__") and not isinstance(messages, str | bytes)
    if not is_list or getattr(messages, "ndim", 1) != 1:
        raise SourceError("the messages are not a list; give a list or one column of text or bytes")
    texts = list(messages)
    for i, message in enumerate(texts):
        if not isinstance(message, str | bytes):
            raise SourceError(
                f"message {i} is of the type {type(message).__name__}; give it as text or bytes"
            )
    return texts
