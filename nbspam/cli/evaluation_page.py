"""`nbspam eval --report`: the page, with how the evaluation was made."""

import shlex
import sys
from datetime import datetime
from pathlib import Path

from nbspam import __version__
from nbspam.display.word_rows import class_heads, strongest_rows
from nbspam.evaluation.report_page import Circumstances, StrongestWords, report_page
from nbspam.evaluation.results import Results
from nbspam.scoring.explanation import strongest_words
from nbspam.store.model_file import read_model

_STRONGEST = 15  # words of each class


def write_report_page(
    results: Results, path: Path, errors: int, skipped: int, model: Path | None
) -> None:
    """Write the page of an evaluation.

    errors: how many of the worst mistakes it shows.  skipped: messages that could not be read.
    model: that was tested, if there is a file of it.
    """
    made = Circumstances(
        datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
        __version__,
        shlex.join(["nbspam", *sys.argv[1:]]),
        skipped,
    )
    text = report_page(results, errors, made, None if model is None else _strongest(model))
    with path.open("w", encoding="ascii", newline="\n") as file:
        file.write(text)


def _strongest(path: Path) -> StrongestWords | None:
    """Return a model's strongest words; None if it counts no tokens."""
    model = read_model(path)
    if not model.metadata.settings.counts.has_tokens or model.metadata.is_one_sided:
        return None
    ranked = strongest_words(model, _STRONGEST, fragments=False)
    return StrongestWords(class_heads(model.metadata), strongest_rows(ranked, model.metadata))
