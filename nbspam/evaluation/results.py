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

from nbspam.bayes.event_model import odds_of_class
from nbspam.display.tables import TableWriter, added_names, form_of, opened
from nbspam.errors import counted
from nbspam.evaluation import metrics
from nbspam.evaluation.messages import DoubtedLabels, LearnedBefore, Mislabelled, doubted_labels
from nbspam.evaluation.metrics import SEED, CalibrationBin, Figures, Interval, ScoredMessages
from nbspam.reading.columns import VERDICT_COLUMNS
from nbspam.scoring.explanation import Word
from nbspam.scoring.highlights import HighlightedExcerpt, excerpt_json
from nbspam.scoring.verdict import CutOffs, Verdict, rounded

if TYPE_CHECKING:
    import pandas as pd


class Outcome(NamedTuple):
    """One message of an evaluation."""

    judged: Verdict
    words: tuple[Word, ...] = ()  # of a mistake: the strongest, for the report
    # The excerpt, if it was wanted; that of a mistake has highlights.
    message: HighlightedExcerpt | None = None

    @property
    def label(self) -> str:
        """The message's true class."""
        return self.judged.label or ""

    @property
    def called(self) -> str:
        """The class that it is assigned to when errors are counted.

        Two classes: by P(spam) = 0.5.  More: the most probable class, which is the verdict.
        """
        if len(self.judged.probabilities) > 2:
            return self.judged.verdict
        ham, spam = self.judged.probabilities
        return spam if self.judged.log_odds > 0 else ham

    @property
    def odds(self) -> float:
        """The log-odds of the message's true class, in nats."""
        classes, log_odds = tuple(self.judged.probabilities), self.judged.log_odds
        if len(classes) == 2:
            return log_odds if self.label == classes[1] else -log_odds
        return odds_of_class(self.judged.score.log_scores, classes.index(self.label))

    @property
    def is_mistake(self) -> bool:
        """Whether it is assigned to another class."""
        return self.called != self.label


class Evaluation(NamedTuple):
    """The outcomes of a protocol, and the classes."""

    protocol: str
    classes: tuple[str, ...]
    positive: str | None
    outcomes: list[Outcome]
    cut_offs: CutOffs = CutOffs()  # of the verdicts
    learned_before: LearnedBefore | None = None  # of a saved model
    # How many messages tested on are the same as one trained on; None where that is not counted.
    duplicates: int | None = None
    learned_so_far: Sequence[int] = ()  # online: how many messages were learned before each
    mislabelled: Mislabelled = Mislabelled()  # messages left out
    skipped: int = 0  # messages that could not be read

    @property
    def called(self) -> Counter[tuple[str, str]]:
        """(label, assigned class) -> messages."""
        return Counter((o.label, o.called) for o in self.outcomes)

    @property
    def verdicts(self) -> Counter[tuple[str, str]]:
        """(label, verdict) -> messages."""
        return Counter((o.label, o.judged.verdict) for o in self.outcomes)


def worst_mistakes(evaluation: Evaluation, limit: int) -> list[Outcome]:
    """Return the mistakes, those that gave the true class the least probability first."""
    mistakes = [o for o in evaluation.outcomes if o.is_mistake]
    mistakes.sort(key=lambda o: o.judged.probabilities[o.label])
    return mistakes[:limit]


Confusion = dict[str, dict[str, int]]  # class -> assigned class -> messages


def confusion(called: Counter[tuple[str, str]], classes: tuple[str, ...]) -> Confusion:
    """Return the counts of assigned classes, or of verdicts, as a table."""
    columns = (*classes, *sorted({name for _, name in called} - {*classes}))
    return {name: {column: called[name, column] for column in columns} for name in classes}


@dataclass(frozen=True)
class Results:
    """An evaluation with all that is computed from it."""

    evaluation: Evaluation
    messages: ScoredMessages
    figures: Figures
    seed: int  # of the bootstrap

    @property
    def title(self) -> str:
        """The protocol, and the messages of each class."""
        outcomes = self.evaluation.outcomes
        counts = Counter(outcome.label for outcome in outcomes)
        by_class = ", ".join(f"{name}: {counts[name]:,}" for name in self.evaluation.classes)
        return f"{self.evaluation.protocol}: {counted(len(outcomes), 'message')} ({by_class})"

    def __repr__(self) -> str:
        return f"<Results: {self.title}; {counted(self.messages.counts.errors, 'error')}>"

    @property
    def predictions(self) -> "pd.DataFrame":
        """The predictions, one row a message, as `write_predictions` writes them."""
        import pandas as pd

        return pd.DataFrame([flat_prediction(outcome) for outcome in self.evaluation.outcomes])

    @cached_property
    def doubted(self) -> DoubtedLabels:
        """The labels that look wrong; none by a saved or an uncalibrated model."""
        outcomes = self.evaluation.outcomes
        if self.evaluation.learned_before or not all(o.judged.score.evidences for o in outcomes):
            return DoubtedLabels()
        odds, labels = [o.odds for o in outcomes], [o.label for o in outcomes]
        return doubted_labels(odds, labels, self.evaluation.positive)

    @property
    def doubted_sources(self) -> list[tuple[str, str]]:
        """Source and label of each message whose label looks wrong."""
        wrong = (self.evaluation.outcomes[i] for i in self.doubted.messages)
        return [(outcome.judged.source, outcome.label) for outcome in wrong]

    @cached_property
    def bins(self) -> list[CalibrationBin]:
        """The bins of P(spam); none without a class that is called spam."""
        messages = self.messages
        spam, probability = messages.spam, messages.probability
        return metrics.calibration_bins(spam, probability) if messages.has_spam_class else []

    @property
    def cut_offs(self) -> CutOffs | None:
        """The cut-offs of the verdicts; None with three or more classes."""
        return self.evaluation.cut_offs if len(self.evaluation.classes) == 2 else None

    @cached_property
    def confusion(self) -> Confusion:
        """The confusion matrix at the threshold; with three or more classes, of the likeliest."""
        return confusion(self.evaluation.called, self.evaluation.classes)

    @cached_property
    def verdicts(self) -> Confusion:
        """The verdicts with the cut-offs."""
        return confusion(self.evaluation.verdicts, self.evaluation.classes)

    @property
    def multiclass_note(self) -> str:
        """A note on what the figures compare with three or more classes; else empty."""
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


def compute(evaluation: Evaluation, seed: int = SEED) -> Results:
    """Return the results of an evaluation; seed: of the bootstrap."""
    messages = scored_messages(evaluation)
    return Results(evaluation, messages, metrics.figures(messages, seed), seed)


def scored_messages(evaluation: Evaluation) -> ScoredMessages:
    """Return the outcomes of an evaluation as arrays."""
    outcomes, positive = evaluation.outcomes, evaluation.positive
    spam = np.array([o.label == positive for o in outcomes], dtype=bool)
    log_odds = np.array([o.judged.log_odds for o in outcomes], dtype=float)
    probability = np.array([o.judged.probability for o in outcomes], dtype=float)
    verdicts = metrics.count_verdicts(evaluation.verdicts, positive)
    if len(evaluation.classes) == 2:
        return ScoredMessages.binary(spam, log_odds, probability, verdicts)
    called = np.array([o.called == positive for o in outcomes], dtype=bool)
    right = np.array([not o.is_mistake for o in outcomes], dtype=bool)
    true_class = np.array([o.judged.probabilities[o.label] for o in outcomes], dtype=float)
    counts = metrics.count_verdicts(evaluation.called, positive)
    scores = spam, log_odds, probability, called, right, true_class
    return ScoredMessages(*scores, counts, verdicts, None, has_spam_class=positive is not None)


_WINDOW = 20, 200  # messages of the rolling error rate, at least and at most
_WINDOWS = 10  # in a whole test, if that makes windows of such lengths
# Of an online test: messages learned -> errors in percent, of the last messages (`recent`) and of
# all so far (`every`).
Rates = dict[str, dict[int, float]]


def learning_curve(evaluation: Evaluation) -> tuple[int, Rates]:
    """Return how the errors of an online test fall: how many messages are recent, and the rates."""
    import pandas as pd

    wrong = pd.Series([outcome.is_mistake for outcome in evaluation.outcomes], dtype=float)
    fewest, most = _WINDOW
    window = min(len(wrong), max(fewest, min(most, len(wrong) // _WINDOWS)))
    recent, so_far = wrong.rolling(window, min_periods=1).mean(), wrong.expanding().mean()
    rates = 100 * pd.DataFrame({"recent": recent, "every": so_far})
    # The value at the last message of each batch.
    ends = rates.groupby(np.array(evaluation.learned_so_far)).last()
    learned = ends.index.tolist()
    return window, {str(k): dict(zip(learned, ends[k].tolist(), strict=True)) for k in ends}


def number(value: float) -> str:
    """Return a figure as the report has it."""
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4f}" if abs(value) < 10 else f"{value:.2f}"


def interval(ends: Interval | None, form: Callable[[float], str] = number) -> str:
    """Return an interval as the report has it."""
    return "" if ends is None else " – ".join(map(form, ends))


def as_json(results: Results, errors: int) -> str:
    """Return the results as one JSON object.

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
        "label_noise": results.doubted.shares,
        "learned": before and before.learned,
        "learned_left_out": before and before.left_out,
        "not_in_ledger": before and before.unnamed,
        "duplicates": evaluation.duplicates,
        "seed": results.seed,
        "calibration": [b._asdict() for b in results.bins],
        "classes": evaluation.classes,
        "confusion": results.confusion,
        "verdicts": results.verdicts,
        "doubted_labels": results.doubted.as_json(results.doubted_sources),
    }
    if errors:
        report["mistakes"] = [
            prediction(o) | {"words": [w._asdict() for w in o.words]}
            for o in worst_mistakes(evaluation, errors)
        ]
    return json.dumps(rounded(report), indent=1)


def prediction(outcome: Outcome) -> dict[str, Any]:
    """Return the JSON object of one message: source, label, the keys of classify.

    And its excerpt, if it was wanted, with the places of highlighted words.
    """
    judged = outcome.judged
    fields = {"source": judged.source, "label": outcome.label} | judged.as_json()
    if outcome.message is not None:
        fields["message"] = excerpt_json(outcome.message)
    return fields


# Files of predictions

Rows = Mapping[str, tuple[Sequence[str], Any]]  # source -> names of columns, values or an object


def write_predictions(
    outcomes: Sequence[Outcome], path: Path, rows: Rows = MappingProxyType({})
) -> None:
    """Write a record for each message into a file, by its ending; raises ModelError.

    Tables have a column for each class where there are three or more.
    rows: of the tables that were read; their columns come first.
    """
    with opened(path) as file:
        write_records(outcomes, file, form_of(path), rows)


def write_records(
    outcomes: Iterable[Outcome], file: IO[bytes], form: str, rows: Rows = MappingProxyType({})
) -> None:
    """Write a record for each message into an open file; form: of `TableWriter`."""
    is_json = form in ("json", "jsonl")
    records = [_with_row(outcome, rows, is_json) for outcome in outcomes]
    names = list(dict.fromkeys(name for record in records for name in record))
    writer = TableWriter(file, form)
    for record in records:
        writer.add("", names, record if is_json else [record.get(name) for name in names], {})
    writer.close()


def _with_row(outcome: Outcome, rows: Rows, is_json: bool) -> dict[str, Any]:
    """Return a message's record: the columns of its table, and those of `prediction`.

    A column of the table stays, but for `label`: that is the class as it was counted.
    """
    record = prediction(outcome) if is_json else flat_prediction(outcome)
    if outcome.judged.source not in rows:
        return record
    names, values = rows[outcome.judged.source]
    row = dict(values if isinstance(values, Mapping) else zip_longest(names, values))
    numbered = dict(zip(VERDICT_COLUMNS, added_names(row), strict=True))
    ours = {numbered.get(name, name): value for name, value in record.items()}
    left_out = {*row, "subject", "from", "text"} - {"label"}
    return row | {name: value for name, value in ours.items() if name not in left_out}


def flat_prediction(outcome: Outcome) -> dict[str, Any]:
    """Return the record of a message as a table has it, without records in it.

    The probability of class x is `probability_x`; of the message its Subject, From and text.
    """
    record = prediction(outcome)
    probabilities, message = record.pop("probabilities", {}), record.pop("message", {})
    record.setdefault("reason", "")  # a table has it in every row
    record |= {f"probability_{name}": p for name, p in probabilities.items()}
    return record | {key: message[key] for key in ("subject", "from", "text") if message}
