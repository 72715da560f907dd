"""The numbers in a model that follow from its counts: computed anew, and compared.

Standard library only: `model check` and `model info` start fast.
"""

import io
import math
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path

from nbspam.store.lookup import Lookup
from nbspam.store.metadata import Metadata, with_bias
from nbspam.store.model_file import TOKENS_LINE, Model, parse_model

_TOLERANCE = 1e-9  # of the bias, in nats or relative: sums in another order end in other digits


def with_rows(head: Metadata, rows: Collection[Sequence[int]]) -> Metadata:
    """Return the head with all derived numbers computed from the tokens' counts.

    rows: the counts per class of every token.
    """
    histogram = histograms_of(rows, len(head.classes))
    return with_bias(head._replace(n_tokens=len(rows), count_histograms=histogram))


def histograms_of(rows: Collection[Sequence[int]], n_classes: int) -> tuple[Counter[int], ...]:
    """Return per class how many tokens have each count."""
    columns = zip(*rows, strict=True) if rows else [()] * n_classes
    return tuple(Counter(column) for column in columns)


def disagreements(path: Path) -> tuple[Model, list[str]]:
    """Read a model whole; return it with what in it does not follow from the rest, as clauses.

    Raises ModelError when it is no model, or is damaged in a way that shows by itself.
    """
    with Lookup(path) as lookup:
        raw = lookup.whole()
        model = parse_model(path, raw)
        wrong = [*_numbers(model), *_ledger(model), *_places(model, raw, lookup)]
    return model, wrong


def _numbers(model: Model) -> list[str]:
    head, counts, _ = model
    wrong = []
    if head.n_tokens != len(counts):
        wrong.append(f"it says {head.n_tokens} tokens and has {len(counts)}")
    true = with_rows(head, counts.values())
    if tuple(map(dict, true.count_histograms)) != tuple(map(dict, head.count_histograms)):
        wrong.append("its counts of counts are not those of its tokens")
    if not all(
        math.isclose(a, b, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)
        for a, b in zip(true.bias, head.bias, strict=True)
    ):
        wrong.append("its bias is not what its counts make it")
    return wrong


def _ledger(model: Model) -> list[str]:
    """Return what is wrong with the ledger's sums; less than was learned is right: --no-ledger."""
    head = model.head
    times = map(sum, zip(*model.learned.values(), strict=True))
    return [
        f"its ledger has {remembered} messages of {name} and it learned {learned}"
        for name, learned, remembered in zip(head.classes, head.messages, times, strict=False)
        if remembered > learned
    ]


def _places(model: Model, raw: bytes, lookup: Lookup) -> list[str]:
    """Return what the one-message path would not find, or an update would copy wrongly."""
    wrong = []
    if lookup.head != model.head:
        wrong.append("its first lines are not all of its head")
    _ = lookup.sections  # raises if the ledger does not begin on a line of its own
    found = lookup.counts(model.counts)
    if found != model.counts:
        lost = next(token for token, row in model.counts.items() if found.get(token) != row)
        wrong.append(f"the token {lost!r} cannot be found where the order of the lines puts it")
    if lookup.learned(model.learned) != model.learned:
        wrong.append("a message of its ledger cannot be found by the order of the lines")
    if not wrong:
        lines = io.BytesIO()
        model.write(lines)
        if raw.partition(TOKENS_LINE)[2] != lines.getvalue().partition(TOKENS_LINE)[2]:
            wrong.append("its lines are not as nbspam writes them, and an update would spoil it")
    return wrong
