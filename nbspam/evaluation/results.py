"""What an evaluation came to: what was said of each message, the figures, and both as JSON."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from nbspam.errors import counted
from nbspam.evaluation.messages import (
    DoubtedLabels,
    LearnedBefore,
    Mislabelled,
    doubted_labels,
    odds_of_label,
)
from nbspam.evaluation.metrics import GENERAL, TRACK, VERDICTS, Figures, figures
from nbspam.evaluation.samples import (
    SEED,
    CalibrationBin,
    Interval,
    ScoredMessages,
    calibration_error,
    count_verdicts,
)
from nbspam.labels import UNSURE
from nbspam.scoring.explanation import Word
from nbspam.scoring.highlights import HighlightedExcerpt, excerpt_json
from nbspam.scoring.verdict import CutOffs, Verdict

# P(spam) above which a message is called spam, where errors are counted in two classes.
THRESHOLD = 0.5


class Outcome(NamedTuple):
    """One message of an evaluation."""

    judged: Verdict
    words: tuple[Word, ...] = ()  # of a mistake: the strongest, for the report
    # Where it was wanted: what a reader sees of it; of a mistake with its words highlighted.
    message: HighlightedExcerpt | None = None

    @property
    def label(self) -> str:
        """The class that the message is of."""
        return self.judged.label or ""

    @property
    def verdict(self) -> str:
        """The class it was classified as with the cut-offs, or "unsure"."""
        return self.judged.verdict

    @property
    def called(self) -> str:
        """What it is called where errors are counted: of two classes by P(spam) = 0.5, always one.

        Of more it is the verdict, which no cut-off decides: the most probable class.
        """
        if len(self.judged.probabilities) > 2:
            return self.judged.verdict
        ham, spam = self.judged.probabilities
        return spam if self.judged.log_odds > 0 else ham

    @property
    def is_mistake(self) -> bool:
        """Whether it is called something else than it is."""
        return self.called != self.label


class Evaluation(NamedTuple):
    """What a protocol found, and the model's (or models') classes."""

    protocol: str
    classes: tuple[str, ...]
    positive: str | None
    outcomes: list[Outcome]
    cut_offs: CutOffs | None = None  # where the training messages chose them
    learned_before: LearnedBefore | None = None  # of a saved model
    # How many messages tested on are the same as one trained on; None where that is not counted.
    duplicates: int | None = None
    learned_so_far: Sequence[int] = ()  # online: how many messages were learned before each
    mislabelled: Mislabelled = Mislabelled()  # messages left out


def worst_mistakes(evaluation: Evaluation, limit: int) -> list[Outcome]:
    """Return the mistakes, those that gave the true class the least probability first."""
    mistakes = [o for o in evaluation.outcomes if o.is_mistake]
    mistakes.sort(key=lambda o: o.judged.probabilities[o.label])
    return mistakes[:limit]


class Confusion(NamedTuple):
    """How often messages of each class were called what."""

    classes: tuple[str, ...]  # the rows
    verdicts: tuple[str, ...]  # the columns: the classes, and `unsure` where there is one
    counts: list[list[int]]  # (n_classes, n_verdicts)

    @classmethod
    def of(cls, labels: list[str], verdicts: list[str], classes: tuple[str, ...]) -> "Confusion":
        """Return how often messages of each class got each verdict, with cut-offs or without.

        labels, verdicts: of each message, in the same order.
        """
        columns = (*classes, *sorted(set(verdicts) - set(classes)))
        times = Counter(zip(labels, verdicts, strict=True))
        return cls(
            classes, columns, [[times[name, column] for column in columns] for name in classes]
        )

    def as_json(self) -> dict[str, dict[str, int]]:
        """Return class -> verdict -> messages."""
        rows = (dict(zip(self.verdicts, row, strict=True)) for row in self.counts)
        return dict(zip(self.classes, rows, strict=True))


@dataclass(frozen=True)
class Results:
    """An evaluation with all that is computed from it."""

    evaluation: Evaluation
    messages: ScoredMessages
    figures: Figures
    bins: list[CalibrationBin]  # empty without a class that is called spam
    confusion: Confusion  # at the threshold; of three or more classes by the most probable
    cut_offs: CutOffs | None  # of the verdicts; None where no cut-off decides them
    verdicts: Confusion
    seed: int = SEED  # of the bootstrap
    skipped: int = 0  # messages that could not be read

    @property
    def title(self) -> str:
        """The protocol, and the messages of each class."""
        outcomes = self.evaluation.outcomes
        counts = Counter(outcome.label for outcome in outcomes)
        by_class = ", ".join(f"{name}: {counts[name]:,}" for name in self.evaluation.classes)
        return f"{self.evaluation.protocol}: {counted(len(outcomes), 'message')} ({by_class})"

    @cached_property
    def doubted(self) -> DoubtedLabels:
        """The labels that look wrong; none where the model may be, a saved or uncalibrated one."""
        outcomes = self.evaluation.outcomes
        if self.evaluation.learned_before or not all(o.judged.score.evidences for o in outcomes):
            return DoubtedLabels()
        return doubted_labels([odds_of_label(o.judged, o.label) for o in outcomes])

    @property
    def doubted_sources(self) -> list[tuple[str, str]]:
        """Where the messages of those labels are, and the labels."""
        wrong = (self.evaluation.outcomes[i] for i in self.doubted.messages)
        return [(outcome.judged.source, outcome.label) for outcome in wrong]

    @property
    def calibration_error(self) -> float | None:
        """The mean gap between predicted and observed shares of spam."""
        return calibration_error(self.bins) if self.bins else None

    @property
    def of_many_classes(self) -> str:
        """What the figures are of where there are three or more classes; else empty."""
        classes, positive = self.evaluation.classes, self.evaluation.positive
        if len(classes) < 3:
            return ""
        said = f"{len(classes)} classes: the verdict is the most probable one"
        if positive is None:
            return f"{said}; the figures are over all classes"
        return (
            f"{said}; accuracy and log-loss are over all classes, every other figure is of the"
            f" spam class {positive!r} against the rest"
        )


def compute(
    evaluation: Evaluation, cut_offs: CutOffs, seed: int = SEED, skipped: int = 0
) -> Results:
    """Return the results of an evaluation with these cut-offs; seed: of the bootstrap."""
    messages, classes = scored_messages(evaluation), evaluation.classes
    labels = [o.label for o in evaluation.outcomes]
    return Results(
        evaluation,
        messages,
        figures(messages, seed),
        messages.calibration(),
        Confusion.of(labels, [o.called for o in evaluation.outcomes], classes),
        cut_offs if len(classes) == 2 else None,
        Confusion.of(labels, [o.verdict for o in evaluation.outcomes], classes),
        seed,
        skipped,
    )


def scored_messages(evaluation: Evaluation) -> ScoredMessages:
    """Return the outcomes of an evaluation as arrays."""
    outcomes, positive = evaluation.outcomes, evaluation.positive
    spam = np.array([o.label == positive for o in outcomes], dtype=bool)
    log_odds = np.array([o.judged.log_odds for o in outcomes], dtype=float)
    probability = np.array([o.judged.probability for o in outcomes], dtype=float)
    called = np.array([o.called == positive for o in outcomes], dtype=bool)
    verdicts = count_verdicts(((o.label, o.verdict) for o in outcomes), positive)
    of = spam, log_odds, probability, called
    if len(evaluation.classes) == 2:
        return ScoredMessages.of_two_classes(*of, THRESHOLD, verdicts)
    right = np.array([not o.is_mistake for o in outcomes], dtype=bool)
    own = np.array([o.judged.probabilities[o.label] for o in outcomes], dtype=float)
    return ScoredMessages(*of, None, right, own, verdicts, has_spam_class=positive is not None)


class ReportTable(NamedTuple):
    """A table of the report, whatever it is shown as."""

    title: str
    heads: Sequence[str]  # an empty one: of a column that says what the row is
    rows: list[list[str]]


_FIGURE = ("metric", "value", "95 % interval", "")


def number(value: float) -> str:
    """Return a figure as the report has it."""
    return f"{value:.4f}" if abs(value) < 10 else f"{value:.2f}"


def interval(ends: Interval | None, form: Callable[[float], str] = number) -> str:
    """Return an interval as the report has it."""
    return "" if ends is None else " – ".join(map(form, ends))


def _figure_rows(results: Results, *chosen: str) -> list[list[str]]:
    rows = results.figures.rows(*chosen)
    return [[row.name, number(row.value), interval(row.interval), row.shown] for row in rows]


def brief_table(results: Results) -> ReportTable:
    """Return what one looks at: verdicts, errors, precision, recall, ranking, calibration."""
    counts, cut_offs = results.messages.counts, results.cut_offs
    ends = interval(counts.errors_interval, "{:.0f}".format)
    of = f"of {counts.messages:,} messages"
    if cut_offs is not None:
        of = f"{counts.fn:,} spam, {counts.fp:,} ham {of}"
    rows = [["errors", f"{counts.errors:,}", ends, of]]
    if cut_offs is not None:
        rows = _figure_rows(results, VERDICTS) + rows
    rows += _figure_rows(results, "precision", "recall", "1-ROCA%")
    if results.calibration_error is not None:
        rows.append(["cal.err.", number(results.calibration_error), "", CALIBRATION_ERROR])
    title = f"{_verdicts_title(cut_offs)}; errors are counted at {THRESHOLD}" if cut_offs else ""
    return ReportTable(title, _FIGURE, rows)


def figure_tables(results: Results) -> Iterator[ReportTable]:
    """Yield the figures of any classifier, those of the spam tracks, and those of the verdicts."""
    track = "the spam filter's figures, as the TREC spam tracks have them"
    yield ReportTable("", _FIGURE, _figure_rows(results, GENERAL))
    if rows := _figure_rows(results, TRACK):
        yield ReportTable(track, _FIGURE, rows)
    if (cut_offs := results.cut_offs) is not None:
        yield ReportTable(_verdicts_title(cut_offs), _FIGURE, _figure_rows(results, VERDICTS))


def _verdicts_title(cut_offs: CutOffs) -> str:
    return f"verdicts: spam above {cut_offs.spam:g}, ham up to {cut_offs.ham:g}"


def confusion_table(results: Results) -> ReportTable:
    """Return what messages of each class were called, and their verdicts with the cut-offs."""
    at_threshold, verdicts = results.confusion, results.verdicts
    heads = ["actual", *(f"called {name}" for name in at_threshold.verdicts)]
    # Every message is called something, so these columns add up to all of the class.
    pairs = zip(at_threshold.classes, at_threshold.counts, strict=True)
    rows = [[f"{sum(row):,} {name}", *(f"{n:,}" for n in row)] for name, row in pairs]
    if results.cut_offs is not None:
        # Unsure is nothing but a verdict.
        heads += [name if name == UNSURE else f"verdict {name}" for name in verdicts.verdicts]
        for cells, row in zip(rows, verdicts.counts, strict=True):
            cells += [f"{n:,}" for n in row]
    return ReportTable("", heads, rows)


CALIBRATION_ERROR = "mean gap between predicted and observed"


def calibration_table(results: Results) -> ReportTable:
    """Return what was predicted of the messages of each bin, and what was observed."""
    rows = [
        [f"{low:.1f} to {high:.1f}", f"{n:,}", f"{predicted:.4f}", f"{observed:.4f}"]
        for low, high, n, predicted, observed in results.bins
    ]
    return ReportTable("", ("P(spam)", "messages", "predicted", "observed"), rows)


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
        "unsure": sum(o.verdict == UNSURE for o in evaluation.outcomes),
        "skipped": results.skipped,
        "mislabelled": evaluation.mislabelled.messages,
        "label_noise": results.doubted.share,
        "learned": before and before.learned,
        "learned_left_out": before and before.left_out,
        "not_in_ledger": before and before.unnamed,
        "duplicates": evaluation.duplicates,
        "seed": results.seed,
        "calibration_error": results.calibration_error,
        "calibration": [b._asdict() for b in results.bins],
        "classes": evaluation.classes,
        "confusion": results.confusion.as_json(),
        "verdicts": results.verdicts.as_json(),
        "doubted_labels": results.doubted.as_json(results.doubted_sources),
    }
    if errors:
        report["errors"] = [
            prediction(o) | {"words": [w._asdict() for w in o.words]}
            for o in worst_mistakes(evaluation, errors)
        ]
    return json.dumps(report, indent=1)


def prediction(outcome: Outcome) -> dict[str, object]:
    """Return the JSON object of one message: its source, its label, and what classify prints.

    And, where it was wanted, what a reader sees of it, with the places of highlighted words.
    """
    judged = outcome.judged
    fields = {"source": judged.source, "label": outcome.label} | judged.as_json()
    if outcome.message is not None:
        fields["message"] = excerpt_json(outcome.message)
    return fields
