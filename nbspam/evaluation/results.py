"""The results of an evaluation: outcomes, figures, JSON, and files of predictions."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nbspam.bayes.event_model import class_log_odds
from nbspam.display.tables import TableWriter, added_names, open_output, table_format
from nbspam.errors import format_count
from nbspam.evaluation import metrics
from nbspam.evaluation.messages import (
    LearnedBefore,
    Mislabelled,
    SuspectLabels,
    find_suspect_labels,
)
from nbspam.reading.columns import VERDICT_COLUMNS
from nbspam.scoring import explanation, highlights, verdict

if TYPE_CHECKING:
    import pandas as pd


class Outcome(NamedTuple):
    """One message of an evaluation."""

    classification: verdict.Verdict
    words: tuple[explanation.Word, ...] = ()  # only for a mistake: the strongest words
    # The excerpt, if requested; highlighted only for a mistake.
    message: highlights.HighlightedExcerpt | None = None

    @property
    def label(self) -> str:
        """The message's true class."""
        return self.classification.label or ""

    @property
    def assigned_class(self) -> str:
        """The class that counts when errors are counted.

        With two classes, P(spam) = 0.5 decides; with more, the most probable class, as in verdicts.
        """
        if len(self.classification.probabilities) > 2:
            return self.classification.verdict
        ham, spam = self.classification.probabilities
        return spam if self.classification.log_odds > 0 else ham

    @property
    def label_odds(self) -> float:
        """The log-odds of the message's true class, in nats."""
        classes, log_odds = tuple(self.classification.probabilities), self.classification.log_odds
        if len(classes) == 2:
            return log_odds if self.label == classes[1] else -log_odds
        return class_log_odds(self.classification.score.log_scores, classes.index(self.label))

    @property
    def is_mistake(self) -> bool:
        """Whether the message is assigned to a wrong class."""
        return self.assigned_class != self.label


class Evaluation(NamedTuple):
    """The outcomes of a protocol, the classes, and facts about the test for the report."""

    protocol: str
    classes: tuple[str, ...]
    positive: str | None
    outcomes: list[Outcome]
    cut_offs: verdict.CutOffs = verdict.CutOffs()  # used for the verdicts
    learned_before: LearnedBefore | None = None  # only for a saved model
    # Tested messages that are the same as a training message; None if not counted.
    duplicates: int | None = None
    n_texts: int | None = None  # different texts; only if copies are left out together
    learned_so_far: Sequence[int] = ()  # only online: messages learned before each test message
    mislabelled: Mislabelled = Mislabelled()  # messages left out
    skipped: int = 0  # messages that could not be read

    @property
    def assigned_classes(self) -> Counter[tuple[str, str]]:
        """(label, assigned class) -> messages."""
        return Counter((o.label, o.assigned_class) for o in self.outcomes)

    @property
    def verdicts(self) -> Counter[tuple[str, str]]:
        """(label, verdict) -> messages."""
        return Counter((o.label, o.classification.verdict) for o in self.outcomes)


def worst_mistakes(evaluation: Evaluation, limit: int) -> list[Outcome]:
    """Return the mistakes, sorted by the probability of the true class, lowest first."""
    mistakes = [o for o in evaluation.outcomes if o.is_mistake]
    mistakes.sort(key=lambda o: o.classification.probabilities[o.label])
    return mistakes[:limit]


Confusion = dict[str, dict[str, int]]  # class -> assigned class or verdict -> messages


def confusion(verdicts: Counter[tuple[str, str]], classes: tuple[str, ...]) -> Confusion:
    """Arrange the counts of (label, assigned class or verdict) as a table."""
    columns = (*classes, *sorted({name for _, name in verdicts} - {*classes}))
    return {name: {column: verdicts[name, column] for column in columns} for name in classes}


@dataclass(frozen=True)
class Results:
    """An evaluation, and the figures computed from it."""

    evaluation: Evaluation
    messages: metrics.ScoredMessages
    figures: metrics.Figures

    @property
    def title(self) -> str:
        """The protocol, and the messages of each class."""
        outcomes = self.evaluation.outcomes
        counts = Counter(outcome.label for outcome in outcomes)
        by_class = ", ".join(f"{name}: {counts[name]:,}" for name in self.evaluation.classes)
        return f"{self.evaluation.protocol}: {format_count(len(outcomes), 'message')} ({by_class})"

    def __repr__(self) -> str:
        return f"<Results: {self.title}; {format_count(self.messages.counts.errors, 'error')}>"

    @property
    def predictions(self) -> "pd.DataFrame":
        """One row for each message, with the columns that `write_predictions` writes."""
        import pandas as pd

        return pd.DataFrame([flat_prediction(outcome) for outcome in self.evaluation.outcomes])

    @cached_property
    def suspect_labels(self) -> SuspectLabels:
        """The labels that look wrong; empty for a saved or an uncalibrated model."""
        outcomes = self.evaluation.outcomes
        if self.evaluation.learned_before or not all(
            o.classification.score.evidences for o in outcomes
        ):
            return SuspectLabels()
        odds, labels = [o.label_odds for o in outcomes], [o.label for o in outcomes]
        return find_suspect_labels(odds, labels, self.evaluation.positive)

    @property
    def suspect_sources(self) -> list[tuple[str, str]]:
        """Source and label of each message with a suspect label."""
        wrong = (self.evaluation.outcomes[i] for i in self.suspect_labels.messages)
        return [(outcome.classification.source, outcome.label) for outcome in wrong]

    @cached_property
    def bins(self) -> list[metrics.CalibrationBin]:
        """The bins of P(spam); empty without a spam class."""
        messages = self.messages
        spam, probability = messages.spam, messages.probability
        return metrics.calibration_bins(spam, probability) if messages.has_spam_class else []

    @property
    def cut_offs(self) -> verdict.CutOffs | None:
        """The cut-offs of the verdicts; None with three or more classes."""
        return self.evaluation.cut_offs if len(self.evaluation.classes) == 2 else None

    @cached_property
    def confusion(self) -> Confusion:
        """The confusion matrix at the threshold, or by the most probable class."""
        return confusion(self.evaluation.assigned_classes, self.evaluation.classes)

    @cached_property
    def verdicts(self) -> Confusion:
        """The confusion matrix with the cut-offs."""
        return confusion(self.evaluation.verdicts, self.evaluation.classes)

    @property
    def multiclass_note(self) -> str:
        """With three or more classes, a note on what the figures compare; else empty."""
        classes, positive = self.evaluation.classes, self.evaluation.positive
        if len(classes) < 3:
            return ""
        note = f"{len(classes)} classes: the verdict is the most probable one"
        if positive is None:
            return f"{note}; the figures are over all classes"
        return (
            f"{note}; accuracy and log-loss are over all classes, every other figure is of the"
            f" spam class {positive!r} against the rest"
        )


def compute(evaluation: Evaluation) -> Results:
    """Compute the figures of an evaluation."""
    messages = scored_messages(evaluation)
    return Results(evaluation, messages, metrics.figures(messages))


def scored_messages(evaluation: Evaluation) -> metrics.ScoredMessages:
    """Convert the outcomes of an evaluation to arrays."""
    outcomes, positive = evaluation.outcomes, evaluation.positive
    spam = np.array([o.label == positive for o in outcomes], dtype=bool)
    log_odds = np.array([o.classification.log_odds for o in outcomes], dtype=float)
    probability = np.array([o.classification.probability for o in outcomes], dtype=float)
    verdicts = metrics.count_verdicts(evaluation.verdicts, positive)
    if len(evaluation.classes) == 2:
        return metrics.ScoredMessages.binary(spam, log_odds, probability, verdicts)
    called_spam = np.array([o.assigned_class == positive for o in outcomes], dtype=bool)
    right = np.array([not o.is_mistake for o in outcomes], dtype=bool)
    true_class = np.array([o.classification.probabilities[o.label] for o in outcomes], dtype=float)
    counts = metrics.count_verdicts(evaluation.assigned_classes, positive)
    scores = spam, log_odds, probability, called_spam, right, true_class
    return metrics.ScoredMessages(
        *scores, counts, verdicts, None, has_spam_class=positive is not None
    )


_MIN_WINDOW, _MAX_WINDOW = 20, 200  # messages of the rolling error rate
_N_WINDOWS = 10  # windows per test, as far as the bounds above allow
# "recent" (the last messages) or "every" (all so far) -> messages learned -> errors in percent.
Rates = dict[str, dict[int, float]]


def learning_curve(evaluation: Evaluation) -> tuple[int, Rates]:
    """Return the size of the window of recent messages, and the error rates of an online test."""
    import pandas as pd

    wrong = pd.Series([outcome.is_mistake for outcome in evaluation.outcomes], dtype=float)
    window = min(len(wrong), max(_MIN_WINDOW, min(_MAX_WINDOW, len(wrong) // _N_WINDOWS)))
    recent, so_far = wrong.rolling(window, min_periods=1).mean(), wrong.expanding().mean()
    rates = 100 * pd.DataFrame({"recent": recent, "every": so_far})
    batch_ends = rates.groupby(np.array(evaluation.learned_so_far)).last()
    learned = batch_ends.index.tolist()
    return window, {
        str(name): dict(zip(learned, batch_ends[name].tolist(), strict=True)) for name in batch_ends
    }


def format_figure(value: float) -> str:
    """Format a figure for the report."""
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4f}" if abs(value) < 10 else f"{value:.2f}"


def format_interval(
    ends: metrics.Interval | None, form: Callable[[float], str] = format_figure
) -> str:
    """Format an interval for the report."""
    return "" if ends is None else " – ".join(map(form, ends))


def as_json(results: Results, errors: int) -> str:
    """Format the results as a JSON object.

    errors: how many of the worst mistakes to list; 0 leaves the key out.
    """
    evaluation, cut_offs = results.evaluation, results.cut_offs
    before = evaluation.learned_before
    report: dict[str, object] = {
        "protocol": evaluation.protocol,
        "positive": evaluation.positive,
        **results.figures.as_json(),
        "spam_cutoff": cut_offs and cut_offs.spam,
        "ham_cutoff": cut_offs and cut_offs.ham,
        "unsure": results.messages.verdicts.unsure,
        "skipped": evaluation.skipped,
        "mislabelled": evaluation.mislabelled.messages,
        "label_noise": results.suspect_labels.shares,
        "learned": before and before.learned,
        "learned_left_out": before and before.left_out,
        "not_in_ledger": before and before.not_in_ledger,
        "duplicates": evaluation.duplicates,
        "different_texts": evaluation.n_texts,
        "calibration": [b._asdict() for b in results.bins],
        "classes": evaluation.classes,
        "confusion": results.confusion,
        "verdicts": results.verdicts,
        "doubted_labels": results.suspect_labels.as_json(results.suspect_sources),
    }
    if errors:
        report["mistakes"] = [
            prediction(o) | {"words": [w._asdict() for w in o.words]}
            for o in worst_mistakes(evaluation, errors)
        ]
    return json.dumps(verdict.rounded(report), indent=1)


def prediction(outcome: Outcome) -> dict[str, Any]:
    """Return a message as JSON: source, label, the keys of classify, the excerpt if requested."""
    classification = outcome.classification
    fields = {"source": classification.source, "label": outcome.label} | classification.as_json()
    if outcome.message is not None:
        fields["message"] = highlights.excerpt_json(outcome.message)
    return fields


# Files of predictions

Rows = Mapping[str, tuple[Sequence[str], Any]]  # source -> column names, and values or a mapping


def write_predictions(
    outcomes: Sequence[Outcome], path: Path, rows: Rows = MappingProxyType({})
) -> None:
    """Write a record for each message in the format of the file's ending; raises ModelError.

    Tables have a column for each class if there are three or more classes.
    rows: the rows of tables that were read; their columns come first.
    """
    with open_output(path) as file:
        write_records(outcomes, file, table_format(path), rows)


def write_records(
    outcomes: Iterable[Outcome], file: IO[bytes], form: str, rows: Rows = MappingProxyType({})
) -> None:
    """Write a record for each message into an open file; form: a format, as in `TableWriter`."""
    is_json = form in ("json", "jsonl")
    records = [_with_row(outcome, rows, is_json) for outcome in outcomes]
    names = list(dict.fromkeys(name for record in records for name in record))
    writer = TableWriter(file, form)
    for record in records:
        writer.add("", names, record if is_json else [record.get(name) for name in names], {})
    writer.close()


def _with_row(outcome: Outcome, rows: Rows, is_json: bool) -> dict[str, Any]:
    """Return a message's record: the columns of its table, and the keys of `prediction`.

    The table's own columns stay, except `label`, which is replaced by the class that the test
    compared the verdict with.
    """
    record = prediction(outcome) if is_json else flat_prediction(outcome)
    if outcome.classification.source not in rows:
        return record
    names, values = rows[outcome.classification.source]
    row = dict(values if isinstance(values, Mapping) else zip_longest(names, values))
    numbered = dict(zip(VERDICT_COLUMNS, added_names(row), strict=True))
    ours = {numbered.get(name, name): value for name, value in record.items()}
    left_out = {*row, "subject", "from", "text"} - {"label"}
    return row | {name: value for name, value in ours.items() if name not in left_out}


def flat_prediction(outcome: Outcome) -> dict[str, Any]:
    """Return a message's record for a table: no value is a record itself.

    The probability of class x is in `probability_x`.  An excerpt becomes subject, from and text.
    """
    record = prediction(outcome)
    probabilities, message = record.pop("probabilities", {}), record.pop("message", {})
    record.setdefault("reason", "")  # every row of a table needs the same columns
    record |= {f"probability_{name}": p for name, p in probabilities.items()}
    return record | {key: message[key] for key in ("subject", "from", "text") if message}
