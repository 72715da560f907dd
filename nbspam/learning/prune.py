"""A smaller model: without its rarest tokens."""

from pathlib import Path
from typing import NamedTuple

from nbspam.scoring.classifier import Classifier
from nbspam.store.atomic_write import locked, replace
from nbspam.store.check import with_rows
from nbspam.store.metadata import BERNOULLI
from nbspam.store.model_file import Model, Row, already_there, read_model


class Pruned(NamedTuple):
    """What a model had and has."""

    tokens_before: int
    tokens: int
    bytes_before: int
    bytes: int


def prune_file(
    path: Path,
    output: Path | None = None,
    min_count: int = 1,
    max_tokens: int | None = None,
    replace_old: bool = False,
) -> Pruned:
    """Prune a model file, in place or into another one.

    Raises ModelError: it is no model, or is damaged, or the output is there already or cannot be
    written.
    """
    with locked(output or path) as place:
        if output is not None and output.exists() and not replace_old:
            raise already_there(output, "--replace to overwrite it, or name another")
        before = read_model(path)
        size = path.stat().st_size
        after = prune(before, min_count, max_tokens)
        replace(place, after.write)
        return Pruned(len(before.counts), len(after.counts), size, place.stat().st_size)


def prune(model: Model, min_count: int = 1, max_tokens: int | None = None) -> Model:
    """Return a model without the tokens that fewer than `min_count` messages have.

    max_tokens: how many tokens are kept at most: those that most messages have; of equally frequent
    ones the strongest, by weight; of equally strong ones the first by name.
    Messages, calibration and ledger stay as they are; the bias follows from the tokens.
    """
    counts = {token: row for token, row in model.counts.items() if sum(row) >= min_count}
    if max_tokens is not None and len(counts) > max_tokens:
        classifier = Classifier(model.head, lambda _: {})
        rank = {row: _rank(classifier, row) for row in set(counts.values())}
        ranked = sorted(counts, key=lambda token: (rank[counts[token]], token))
        counts = {token: counts[token] for token in sorted(ranked[:max_tokens])}
    return model._replace(head=with_rows(model.head, counts.values()), counts=counts)


def _rank(classifier: Classifier, row: Row) -> tuple[int, float]:
    """Return a token's place: the frequent ones first, and of those the strong ones."""
    weights = classifier.weights(row)
    if classifier.head.scoring == BERNOULLI:  # one a class: what the token can say for one
        return -sum(row), min(weights) - max(weights)
    return -sum(row), -max(map(abs, weights))
