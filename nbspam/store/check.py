"""The check of a model: whether everything that follows from its counts agrees with them.

Standard library only: `model check` and `model info` start fast.
"""

import io
import json
import math
from pathlib import Path
from typing import Any

from nbspam.store.lookup import Lookup
from nbspam.store.metadata import with_counts
from nbspam.store.metadata_json import derived_fields
from nbspam.store.model_file import TOKENS_LINE, Model, parse_model

_TOLERANCE = 1e-9  # of the bias, in nats or relative: logarithms differ between machines


def disagreements(path: Path) -> tuple[Model, list[str]]:
    """Read a whole model; return it with clauses that say what in it contradicts the rest.

    Raises ModelError when it is not a model, or cannot be read.
    """
    with Lookup(path) as lookup:
        raw = lookup.whole()
        model = parse_model(path, raw)
        stated = json.loads(raw.partition(b"\n" + TOKENS_LINE)[0].rstrip(b",") + b"}")["derived"]
        wrong = [*_numbers(model, stated), *_ledger(model), *_places(model, raw, lookup)]
    return model, wrong


def _numbers(model: Model, stated: dict[str, Any]) -> list[str]:
    """Return which of the stated derived numbers do not follow from the tokens."""
    true = derived_fields(with_counts(model.metadata, model.counts))
    wrong = []
    if stated["tokens"] != true["tokens"]:
        wrong.append(f"it states {stated['tokens']} tokens and has {true['tokens']}")
    if stated["count_histograms"] != true["count_histograms"]:
        wrong.append("its count histograms are not those of its tokens")
    if stated["hosts"] != true["hosts"]:
        wrong.append("its counts of hosts are not those of its tokens")
    if not all(map(_agree, true["bias"], stated["bias"])):
        wrong.append("its bias does not follow from its counts")
    return wrong


def _agree(a: float | None, b: float | None) -> bool:
    if a is None or b is None:
        return a is b
    return math.isclose(a, b, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)


def _ledger(model: Model) -> list[str]:
    """Return what is wrong with the ledger's sums; it may name fewer messages than were learned."""
    settings, state = model.metadata
    times = map(sum, zip(*model.learned.values(), strict=True))
    return [
        f"its ledger has {remembered} messages of {name} and it learned {learned}"
        for name, learned, remembered in zip(settings.classes, state.messages, times, strict=False)
        if remembered > learned
    ]


def _places(model: Model, raw: bytes, lookup: Lookup) -> list[str]:
    """Return what the one-message path would not find, or an update would copy wrongly."""
    wrong = []
    if lookup.metadata != model.metadata:
        wrong.append("its first lines are not all of its metadata")
    _ = lookup.sections  # raises if the ledger does not begin on a line of its own
    found = lookup.counts(model.counts)
    if found != model.counts:
        lost = next(token for token, row in model.counts.items() if found.get(token) != row)
        wrong.append(f"the token {lost!r} cannot be found, since its line is out of order")
    if lookup.learned(model.learned) != model.learned:
        wrong.append("a message of its ledger cannot be found, since its line is out of order")
    if not wrong:
        lines = io.BytesIO()
        model.write(lines)
        if raw.partition(TOKENS_LINE)[2] != lines.getvalue().partition(TOKENS_LINE)[2]:
            wrong.append("its lines are not as nbspam writes them, and an update would damage it")
    return wrong
