"""The results of an evaluation as JSON, and each prediction as JSON."""

import json

from nbspam.evaluation.bins import calibration_error
from nbspam.evaluation.comparison import Comparison
from nbspam.evaluation.outcome import Outcome, worst_mistakes
from nbspam.evaluation.results import Confusion, Results
from nbspam.labels import UNSURE
from nbspam.scoring.highlights import excerpt_json


def as_json(results: Results, skipped: int, errors: int) -> str:
    """Return the results as one JSON object.

    skipped: how many messages could not be read.
    errors: how many of the worst mistakes to list; 0 leaves the key out.
    """
    evaluation, bins = results.evaluation, results.bins
    report: dict[str, object] = {
        **numbers(results, skipped),
        "calibration": [b._asdict() for b in bins],
        "classes": list(evaluation.classes),
        "confusion": _confusion_json(results.confusion),
        "verdicts": _confusion_json(results.verdicts),
    }
    outcomes = evaluation.outcomes
    wrong = (outcomes[i] for i in results.doubted.messages)
    report["doubted_labels"] = results.doubted.as_json([(o.judged.source, o.label) for o in wrong])
    if errors:
        report["errors"] = [
            prediction(o) | {"words": [w._asdict() for w in o.words]}
            for o in worst_mistakes(evaluation, errors)
        ]
    return json.dumps(report, indent=1)


def numbers(results: Results, skipped: int) -> dict[str, object]:
    """Return what the results have of single numbers, and their intervals.

    skipped: how many messages could not be read.
    """
    evaluation, bins = results.evaluation, results.bins
    before = evaluation.learned_before
    return {
        "protocol": evaluation.protocol,
        "positive": evaluation.positive,
        **results.figures.as_json(),
        "spam_cutoff": results.cut_offs and results.cut_offs.spam,
        "ham_cutoff": results.cut_offs and results.cut_offs.ham,
        "unsure": sum(o.verdict == UNSURE for o in evaluation.outcomes),
        "skipped": skipped,
        "mislabelled": evaluation.mislabelled.messages,
        "label_noise": results.doubted.share,
        "learned": before and before.learned,
        "learned_left_out": before and before.left_out,
        "not_in_ledger": before and before.unnamed,
        "duplicates": evaluation.duplicates,
        "seed": results.seed,
        "calibration_error": calibration_error(bins) if bins else None,
    }


def comparison_json(comparison: Comparison, said: str, skipped: int) -> str:
    """Return a comparison as one JSON object.

    said: the advice.  skipped: how many messages could not be read.
    """
    fields = {
        "protocol": comparison.protocol,
        "skipped": skipped,
        "mislabelled": comparison.mislabelled,
        "duplicates": comparison.duplicates,
        "seed": comparison.seed,
        "models": [model.as_json() for model in comparison.models],
        "advice": said,
    }
    return json.dumps(fields, indent=1)


def prediction(outcome: Outcome) -> dict[str, object]:
    """Return the JSON object of one message: its source, its label, and what classify prints.

    And, where it was wanted, what a reader sees of it, with the places of highlighted words.
    """
    judged = outcome.judged
    fields = {"source": judged.source, "label": outcome.label} | judged.as_json()
    if outcome.message is not None:
        fields["message"] = excerpt_json(outcome.message)
    return fields


def _confusion_json(confusion: Confusion) -> dict[str, dict[str, int]]:
    """Return class -> verdict -> messages."""
    return {
        name: dict(zip(confusion.verdicts, row, strict=True))
        for name, row in zip(confusion.classes, confusion.counts, strict=True)
    }
